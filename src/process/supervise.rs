//! One attempt, from its start to the end of the last process it answers for.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, WaitOptions, WaitStatus, getpgid, getpgrp, getpid, getppid, getsid, set_child_subreaper, wait,
};

use super::family::{self, Family, Member};
use super::held::Held;
use super::inherited::Inherited;
use super::spawn::Command;
use super::stdin::{Source, Stdin};
use super::stdout::{Stdout, Wrote, reader_is_gone};
use super::streams::{Ends, Output, Streams};
use super::terminal::Settings;
use super::unix;
use crate::clock::{Alarms, Clock, Event, SystemClock};
use crate::driver::{AttemptRunner, Attempted, Conclusion, Facts, Wake};
use crate::policy::{Obstacle, Outcome, Signal, StartFailure, StopReason, TimeLimit};
use crate::report::text::say;
use crate::signal::Received;

/// How attempts are run; immutable for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the user's")]
pub struct SupervisionPlan {
    /// The program and its arguments; one string with `shell`.
    pub command: Vec<OsString>,
    /// Whether the command is a string for the shell.
    pub shell: bool,
    /// Whether each attempt leads a process group of its own.
    pub own_group: bool,
    /// What an attempt gets as standard input.
    pub stdin: Source,
    /// What becomes of standard output and standard error.
    pub outputs: [Output; 2],
    /// Where what is kept of them goes, once it is too much for memory.
    pub spool_folder: PathBuf,
    /// The limit on one attempt, on the clock that stands still with the machine.
    pub timeout: Option<Duration>,
    /// The limit on the run, on the clock that goes on.
    pub total_timeout: Option<Duration>,
    /// What a limit sends first.
    pub kill_signal: Signal,
    /// How long after it KILL follows.
    pub kill_after: Duration,
    /// Whether KILL also follows a TERM that somebody sent (an explicit `--kill-after`).
    pub kill_after_term: bool,
    /// Whether a further attempt is possible at all.
    pub may_retry: bool,
    /// `RETRYX_RUN_ID`.
    pub run_id: String,
    /// `RETRYX_RUN_MAX_ATTEMPTS`.
    pub max_attempts: String,
}

/// The least time that KILL is given to take effect, where `--kill-after` is shorter.
const KILL_TAKES: Duration = Duration::from_secs(1);
/// How often the family is looked through once KILL was sent: processes may still be
/// appearing, and the end of one that is not our child makes no signal.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// Runs attempts of one command.
pub struct Supervisor<'a> {
    plan: &'a SupervisionPlan,
    clock: &'a SystemClock,
    inherited: &'a Inherited,
    command: Command,
    family: Option<Family>,
    null: Option<OwnedFd>,
    stdin: Stdin,
    streams: Streams,
}

impl<'a> Supervisor<'a> {
    /// Prepares all that the attempts share. Fails when `/dev/null` is asked for and is
    /// not there.
    pub fn new(plan: &'a SupervisionPlan, clock: &'a SystemClock, inherited: &'a Inherited) -> io::Result<Self> {
        let command = match plan.command.first() {
            Some(string) if plan.shell => Command::shell(string, plan.own_group),
            _ => Command::new(&plan.command, plan.own_group),
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let null = match plan.stdin {
            Source::Null => Some(rustix::fs::open("/dev/null", flags, Mode::empty())?),
            Source::Auto | Source::Inherit | Source::Replay => None,
        };
        let limited = plan.timeout.is_some() || plan.total_timeout.is_some() || plan.kill_after_term;
        let family = limited.then(|| {
            // Elsewhere than on Linux this fails, and the tree ends at processes that
            // left it.
            let _ = set_child_subreaper(Some(getpid()));
            Family::from_now_on(getpid().as_raw_pid(), reap(|_, _| {}) == Children::Some)
        });
        let guarded = plan.stdin == Source::Auto && plan.may_retry && inherited.was_open(0);
        let stdin = if guarded { Stdin::look() } else { Stdin::Free };
        let replays = plan.stdin == Source::Replay && plan.may_retry;
        let streams = Streams::new(replays, plan.outputs, &plan.spool_folder, inherited);
        Ok(Self { plan, clock, inherited, command, family, null, stdin, streams })
    }

    fn facts(&self, facts: &Facts) -> Vec<CString> {
        let mut given = vec![
            ("ID", self.plan.run_id.clone()),
            ("ATTEMPT", facts.attempt.to_string()),
            ("MAX_ATTEMPTS", self.plan.max_attempts.clone()),
        ];
        if let Some((status, class)) = facts.last {
            given.push(("LAST_EXIT", status.to_string()));
            given.push(("LAST_CLASS", class.to_string()));
        }
        if let Some(left) = facts.remaining {
            given.push(("DEADLINE_MS", left.as_millis().to_string()));
        }
        let entry = |(name, value)| OsString::from(format!("RETRYX_RUN_{name}={value}"));
        given.into_iter().map(|fact| super::spawn::c_string(&entry(fact))).collect()
    }

    /// The descriptors of the next attempt; what cannot be made now may be had later.
    fn ends(&mut self) -> Result<Ends, Outcome> {
        let mut ends = self.streams.begin().map_err(|error| {
            let errno = error.raw_os_error().unwrap_or_default();
            let error = format!("no pipe for its streams: {}", error.kind());
            Outcome::NotStarted { failure: StartFailure::Transient, errno, error }
        })?;
        if let Some(null) = self.null.as_ref().and_then(|null| null.try_clone().ok()) {
            ends.set(0, null);
        }
        Ok(ends)
    }

    /// Takes what arrived since the last wait: the signal that ends the run, if one did.
    fn signal_before_start(&self) -> Option<Signal> {
        while let Some(Received { signal, .. }) = self.clock.arrived() {
            match signal {
                _ if signal.ends_the_run() => return Some(signal),
                Signal::TSTP | Signal::TTIN | Signal::TTOU => self.clock.pause(|| unix::take(signal)),
                _ => {}
            }
        }
        None
    }

    /// Whether a limit reaches the command only, as its descendants cannot be seen here.
    pub fn limits_reach_the_command_only(&self) -> bool {
        self.family.is_some() && !family::is_visible()
    }

    /// What forbids a retry as far as the standard streams are concerned.
    fn stream_obstacle(&mut self) -> Option<Obstacle> {
        if let Some(error) = self.streams.input_lost() {
            say(&format!("--stdin replay: standard input cannot be kept: {}", error.kind()));
            return Some(Obstacle::StdinConsumed);
        }
        if self.stdin.is_lost() {
            return Some(Obstacle::StdinConsumed);
        }
        (self.inherited.was_open(1) && reader_is_gone()).then_some(Obstacle::ReaderGone)
    }
}

impl AttemptRunner for Supervisor<'_> {
    fn attempt(&mut self, facts: &Facts) -> Attempted {
        let terminal = Settings::read();
        let looks = self.plan.may_retry && self.inherited.was_open(1) && !self.streams.holds_stdout();
        let stdout = if looks { Stdout::look() } else { Stdout::Indifferent };
        let facts = self.facts(facts);
        if let Some(signal) = self.signal_before_start() {
            // The key was pressed when there was no command yet that it could have reached.
            let obstacle = Some(Obstacle::Interrupted(signal));
            return Attempted { outcome: Outcome::Signaled(signal), obstacle, wrote: Wrote::No };
        }
        let pid = match self.ends().and_then(|ends| self.command.start(self.inherited, &facts, ends.descriptors())) {
            Ok(pid) => pid,
            Err(outcome) => {
                self.streams.end();
                return Attempted { outcome, obstacle: self.stream_obstacle(), wrote: Wrote::No };
            }
        };
        let streams = &mut self.streams;
        let ended = Attempt::new(self.plan, self.clock, self.family.as_ref(), streams, pid).supervise();
        self.streams.end();
        let clean = matches!(ended.outcome, Outcome::Exited(_)) && ended.interrupted.is_none();
        if let (Some(terminal), false) = (terminal, clean) {
            terminal.restore();
        }
        let obstacle = match (ended.unkillable, ended.interrupted) {
            _ if ended.outcome == Outcome::Exited(0) => None,
            (Some((pid, error)), _) => Some(Obstacle::Unkillable { pid, error }),
            (None, Some(signal)) => Some(Obstacle::Interrupted(signal)),
            (None, None) if self.plan.may_retry => {
                self.stdin.note_attempt();
                self.stream_obstacle()
            }
            (None, None) => None,
        };
        let wrote = if obstacle.is_none() && looks { stdout.written_since() } else { Wrote::No };
        Attempted { outcome: ended.outcome, obstacle, wrote }
    }

    fn wait(&mut self, delay: Duration) -> Wake {
        let end = self.clock.elapsed().boot.saturating_add(delay);
        loop {
            match self.clock.next(Alarms { running: None, boot: Some(end) }, &mut Vec::new()) {
                Event::Alarm => return Wake::Elapsed,
                Event::Ready => {}
                Event::Signal(Received { signal, .. }) => match signal {
                    _ if signal.ends_the_run() => return Wake::Interrupted(signal),
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                        self.clock.pause(|| unix::take(signal));
                    }
                    Signal::CHLD => {
                        reap(|_, _| {});
                    }
                    _ => {}
                },
            }
        }
    }

    fn conclude(&mut self, reason: &StopReason) -> Result<(), Conclusion> {
        if matches!(reason, StopReason::Interrupted(_)) {
            // What a signal cut off is not whole.
            return Ok(());
        }
        let success = *reason == StopReason::Success;
        for held in self.streams.wanted(success) {
            if let Some(error) = held.lost() {
                let error = format!("the output could not be kept, and none of it is written: {}", error.kind());
                return Err(Conclusion::Lost(error));
            }
            emit(held, self.clock)?;
        }
        Ok(())
    }

    fn prepare_retry(&mut self) -> Result<(), Obstacle> {
        if let Some(obstacle) = self.stream_obstacle() {
            return Err(obstacle);
        }
        if !self.stdin.put_back() {
            return Err(Obstacle::StdinConsumed);
        }
        self.inherited.restore_status_flags();
        Ok(())
    }
}

/// Writes what was held back. A signal that ends runs ends this too.
fn emit(held: &mut Held, clock: &SystemClock) -> Result<(), Conclusion> {
    let mut offset = 0;
    loop {
        let mut target = vec![PollFd::from_borrowed_fd(held.target(), PollFlags::OUT)];
        match clock.next(Alarms::default(), &mut target) {
            Event::Signal(Received { signal, .. }) => match signal {
                _ if signal.ends_the_run() => return Err(Conclusion::Interrupted(signal)),
                Signal::TSTP | Signal::TTIN | Signal::TTOU => clock.pause(|| unix::take(signal)),
                _ => {}
            },
            Event::Alarm => {}
            Event::Ready => match held.emit(offset) {
                Ok(0) => return Ok(()),
                Ok(count) => offset += count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::PIPE) => return Err(Conclusion::ReaderGone),
                Err(error) => {
                    let error = format!("the output cannot be written: {}", io::Error::from(error).kind());
                    return Err(Conclusion::Lost(error));
                }
            },
        }
    }
}

/// Whether this process has children that live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

/// Takes the news of every child that changed state.
fn reap(mut news: impl FnMut(Pid, WaitStatus)) -> Children {
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    loop {
        match wait(options) {
            Ok(Some((pid, status))) => news(pid, status),
            Ok(None) => return Children::Some,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Children::None,
        }
    }
}

/// How an attempt ended.
struct Ended {
    outcome: Outcome,
    interrupted: Option<Signal>,
    unkillable: Option<(u32, String)>,
}

/// An attempt that runs.
struct Attempt<'a> {
    plan: &'a SupervisionPlan,
    clock: &'a SystemClock,
    family: Option<&'a Family>,
    streams: &'a mut Streams,
    pid: i32,
    started: Duration,
    /// How the command itself ended, once it is reaped.
    outcome: Option<Outcome>,
    children: Children,
    /// The signal that holds the command, while it is stopped.
    stopped_by: Option<Signal>,
    /// A stop signal that reached retryx and waits for the command to stop too.
    stop_asked: Option<Signal>,
    interrupted: Option<Signal>,
    ending: Option<Ending>,
}

/// The end that a limit, or a TERM with `--kill-after`, set in motion.
struct Ending {
    /// The limit; `None` for a TERM that somebody sent.
    limit: Option<TimeLimit>,
    /// When KILL is due, in running time; then, when the next round is.
    next: Duration,
    /// When the attempt counts as unkillable; set once KILL was sent.
    give_up: Option<Duration>,
}

impl<'a> Attempt<'a> {
    fn new(
        plan: &'a SupervisionPlan,
        clock: &'a SystemClock,
        family: Option<&'a Family>,
        streams: &'a mut Streams,
        pid: i32,
    ) -> Self {
        Self {
            plan,
            clock,
            family,
            streams,
            pid,
            started: clock.elapsed().running,
            outcome: None,
            children: Children::Some,
            stopped_by: None,
            stop_asked: None,
            interrupted: None,
            ending: None,
        }
    }

    fn supervise(mut self) -> Ended {
        loop {
            let (event, ready) = self.next();
            match event {
                Event::Ready => {
                    if let Err(error) = self.streams.work(&ready) {
                        // Cut off, its input would look whole.
                        say(&format!("--stdin replay: what was kept cannot be read back: {}", error.kind()));
                        self.pass_on(Signal::KILL);
                    }
                }
                Event::Signal(received) => {
                    self.take(received);
                    if self.is_over() {
                        return self.ended(None);
                    }
                }
                Event::Alarm => {
                    if let Some(unkillable) = self.end_further() {
                        return self.ended(Some(unkillable));
                    }
                    if self.is_over() {
                        return self.ended(None);
                    }
                }
            }
        }
    }

    /// What happens next, and what came of the streams' interests.
    fn next(&self) -> (Event, Vec<PollFlags>) {
        let mut interests = self.streams.interests();
        let event = self.clock.next(self.alarms(), &mut interests);
        let ready = match event {
            Event::Ready => interests.iter().map(PollFd::revents).collect(),
            _ => Vec::new(),
        };
        (event, ready)
    }

    fn alarms(&self) -> Alarms {
        match &self.ending {
            Some(ending) => Alarms { running: Some(ending.next), boot: None },
            None => Alarms {
                running: self.plan.timeout.map(|limit| self.started.saturating_add(limit)),
                boot: self.plan.total_timeout,
            },
        }
    }

    fn take(&mut self, received: Received) {
        match received.signal {
            Signal::CHLD => self.reap(),
            Signal::WINCH => self.streams.resize(),
            Signal::CONT => {
                self.reap();
                if self.stopped_by.is_some() {
                    self.pass_on(Signal::CONT);
                }
            }
            signal @ (Signal::TSTP | Signal::TTIN | Signal::TTOU) => {
                self.stop_asked = Some(signal);
                // Where the command has stopped already, this stops and goes on with it.
                self.reap();
                if self.stop_asked.is_some() {
                    if self.stopped_by.is_none() && !self.reached_command(received) {
                        self.pass_on(signal);
                    }
                    self.stop_with_command();
                }
            }
            signal => {
                if signal.ends_the_run() {
                    self.interrupted.get_or_insert(signal);
                }
                if !self.reached_command(received) {
                    self.pass_on(signal);
                }
                if signal == Signal::TERM && self.plan.kill_after_term && self.ending.is_none() {
                    let next = self.clock.elapsed().running.saturating_add(self.plan.kill_after);
                    self.ending = Some(Ending { limit: None, next, give_up: None });
                }
            }
        }
    }

    /// Whether the command, in the same group, got this signal from the terminal already.
    fn reached_command(&self, received: Received) -> bool {
        let by_key = matches!(received.signal, Signal::INT | Signal::QUIT | Signal::TSTP | Signal::TTIN | Signal::TTOU);
        received.from_terminal && by_key && !self.plan.own_group
    }

    /// Signals the command, or its own group. It is not reaped yet, so the number is its
    /// own; a failure means that it is gone or may not be signalled, and is not ours to mend.
    fn pass_on(&self, signal: Signal) {
        if self.outcome.is_none() {
            let target = if self.plan.own_group { -self.pid } else { self.pid };
            let _ = unix::kill(target, signal);
        }
    }

    fn reap(&mut self) {
        let (mut outcome, mut stopped_by) = (None, self.stopped_by);
        let mut stopped_now = false;
        self.children = reap(|pid, status| {
            if pid.as_raw_pid() != self.pid || self.outcome.is_some() {
                return;
            }
            if let Some(signal) = status.stopping_signal() {
                (stopped_by, stopped_now) = (Some(Signal(signal)), true);
            } else if status.continued() {
                stopped_by = None;
            } else if let Some(signal) = status.terminating_signal() {
                outcome = Some(Outcome::Signaled(Signal(signal)));
            } else if let Some(code) = status.exit_status() {
                outcome = Some(Outcome::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX)));
            }
        });
        self.stopped_by = stopped_by;
        if outcome.is_some() {
            self.outcome = outcome;
            self.stopped_by = None;
        }
        if self.stopped_by.is_some() && stopped_now {
            self.stop_with_command();
        }
    }

    /// Stops this process too, where the command has stopped and either the same stop
    /// signal came here, or a shell with job control waits for this process and would
    /// have noticed. A command that somebody else stops and continues is left to them.
    fn stop_with_command(&mut self) {
        let Some(stopped_by) = self.stopped_by else { return };
        let with = match self.stop_asked.take() {
            Some(signal) => signal,
            None if parent_has_job_control() => stopped_by,
            None => return,
        };
        self.clock.pause(|| unix::take(with));
    }

    /// A limit has passed, or the next step of an ending is due. Returns the process that
    /// cannot be ended, where it comes to that.
    fn end_further(&mut self) -> Option<(u32, String)> {
        let now = self.clock.elapsed();
        let Some(ending) = &self.ending else {
            self.begin_ending(now.boot, now.running);
            return None;
        };
        let give_up = *ending.give_up.as_ref().unwrap_or(&Duration::MAX);
        let living = self.living().unwrap_or_default();
        let refused = Family::signal(&living, &[Signal::KILL]);
        self.pass_on(Signal::KILL);
        self.reap();
        if let [first, ..] = refused.as_slice()
            && refused.len() == living.len()
        {
            let error = format!("it may not be signalled ({})", first.error.kind());
            return Some((u32::try_from(first.pid).unwrap_or(0), error));
        }
        if now.running >= give_up {
            let pid = living.first().map_or(self.pid, |member| member.pid);
            return Some((u32::try_from(pid).unwrap_or(0), "it survived KILL".to_owned()));
        }
        if let Some(ending) = &mut self.ending {
            let takes = self.plan.kill_after.max(KILL_TAKES);
            ending.give_up.get_or_insert(now.running.saturating_add(takes));
            ending.next = now.running.saturating_add(KILL_ROUND);
        }
        None
    }

    fn begin_ending(&mut self, boot: Duration, running: Duration) {
        let limit = match (self.plan.timeout, self.plan.total_timeout) {
            (_, Some(total)) if total <= boot => TimeLimit::Total(total),
            (Some(timeout), _) => TimeLimit::Attempt(timeout),
            (None, _) => return,
        };
        let next = running.saturating_add(self.plan.kill_after);
        self.ending = Some(Ending { limit: Some(limit), next, give_up: None });
        if self.plan.kill_after.is_zero() {
            return;
        }
        let signals = [self.plan.kill_signal, Signal::CONT];
        let living = self.living().unwrap_or_default();
        // Who may not be signalled now is met again when KILL is due.
        let _ = Family::signal(&living, &signals);
        if !living.iter().any(|member| member.pid == self.pid) {
            for signal in signals {
                self.pass_on(signal);
            }
        }
    }

    /// The living members of the family; `None` where only the command itself is known.
    fn living(&self) -> Option<Vec<Member>> {
        self.family.and_then(Family::members)
    }

    /// Whether nothing is left to wait for.
    fn is_over(&self) -> bool {
        if self.outcome.is_none() {
            return false;
        }
        match &self.ending {
            Some(Ending { limit: Some(_), .. }) => {
                self.children == Children::None
                    || match self.living() {
                        Some(living) => living.is_empty(),
                        None => true,
                    }
            }
            _ => true,
        }
    }

    fn ended(self, unkillable: Option<(u32, String)>) -> Ended {
        let limit = self.ending.and_then(|ending| ending.limit);
        let outcome = match (limit, self.outcome) {
            (Some(limit), _) => Outcome::TimedOut(limit),
            (None, Some(outcome)) => outcome,
            (None, None) => Outcome::TimedOut(TimeLimit::KillAfter(self.plan.kill_after)),
        };
        Ended { outcome, interrupted: self.interrupted, unkillable }
    }
}

/// Whether the parent is a shell that watches this process for stops: it is in another
/// group of the same session.
fn parent_has_job_control() -> bool {
    let Some(parent) = getppid() else { return false };
    getpgid(Some(parent)).is_ok_and(|group| group != getpgrp())
        && getsid(Some(parent)).is_ok_and(|session| getsid(None) == Ok(session))
}
