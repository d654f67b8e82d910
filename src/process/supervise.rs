//! One attempt, from its start to the end of the last process it answers for.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper};

use super::attempt::{Attempt, Children, Ended, reap};
use super::between;
use super::channel::Channel;
use super::family::{self, Family};
use super::inherited::Inherited;
use super::plan::SupervisionPlan;
use super::spawn::Command;
use super::stdin::{Source, Stdin};
use super::stdout::{Stdout, Wrote, reader_is_gone};
use super::streams::{Ends, Streams};
use super::terminal::Settings;
use super::unix;
use crate::cause::cause;
use crate::clock::{Alarms, Clock, Event, SystemClock};
use crate::driver::{AttemptRunner, Attempted, Conclusion, Facts, Wake};
use crate::policy::{Obstacle, Outcome, Signal, StartFailure, StopReason, TimeLimit};
use crate::report::text::say;
use crate::signal::Received;

/// How long the rest of a command's output may take once a signal has ended the run.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// Whether a signal ended the last attempt.
    cut_off: bool,
}

impl<'a> Supervisor<'a> {
    /// Prepares all that the attempts share. Fails when `/dev/null` is asked for and is
    /// not there.
    pub fn new(plan: &'a SupervisionPlan, clock: &'a SystemClock, inherited: &'a Inherited) -> io::Result<Self> {
        let command = match plan.command.first() {
            Some(string) if plan.shell => Command::shell(string, plan.own_group, &plan.environment),
            _ => Command::new(&plan.command, plan.own_group, &plan.environment),
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let null = match plan.stdin {
            Source::Null => Some(rustix::fs::open("/dev/null", flags, Mode::empty())?),
            Source::Auto | Source::Inherit | Source::Replay => None,
        };
        let limits = [plan.timeout, plan.idle_timeout, plan.total_timeout];
        let limited = limits.iter().any(Option::is_some) || plan.kill_after_term;
        let family = limited.then(|| {
            // Elsewhere than on Linux this fails, and the tree ends at processes that
            // left it.
            let _ = set_child_subreaper(Some(getpid()));
            Family::from_now_on(getpid().as_raw_pid(), reap(|_, _| {}) == Children::Some)
        });
        let guarded = plan.stdin == Source::Auto && plan.may_retry && inherited.was_open(0);
        let stdin = if guarded { Stdin::look() } else { Stdin::Free };
        let streams = Streams::new(plan, inherited);
        Ok(Self { plan, clock, inherited, command, family, null, stdin, streams, cut_off: false })
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
            let error = format!("no pipe for its streams: {}", cause(&error));
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

    /// Passes on what the command left behind. A reader who takes his time is waited for,
    /// until a signal or the limit on everything ends that too. What is left by an attempt
    /// that a limit ended waits no longer than its processes may (`--kill-after`) for a
    /// reader who takes nothing.
    fn pass_on_the_rest(&mut self, ended: &mut Ended) {
        let late = matches!(ended.outcome, Outcome::TimedOut(_));
        let patience = match (ended.interrupted, late) {
            (Some(_), _) => Some(PATIENCE),
            (None, true) => Some(self.plan.kill_after),
            (None, false) => None,
        };
        let grace = if late { self.plan.kill_after } else { Duration::ZERO };
        let total = self.plan.total_timeout.map(|limit| limit.saturating_add(grace));
        let until = |now: Duration| patience.map(|patience| now.saturating_add(patience));
        let mut given_up = until(self.clock.elapsed().boot);
        while !self.streams.finish() {
            let end = given_up.into_iter().chain(total).min();
            // Whoever is not waited for has his next turn at once.
            let is_blocked = self.streams.is_blocked();
            let alarms = Alarms { running: (!is_blocked).then_some(Duration::ZERO), boot: end };
            match self.clock.next(alarms, &mut self.streams.blocked()) {
                Event::Signal(Received { signal, .. }) => match signal {
                    _ if signal.ends_the_run() && ended.interrupted.is_none() => {
                        // As the command itself would have ended, had it waited there.
                        (ended.interrupted, ended.outcome) = (Some(signal), Outcome::Signaled(signal));
                        return;
                    }
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => self.clock.pause(|| unix::take(signal)),
                    Signal::CHLD => {
                        reap(|_, _| {});
                    }
                    _ => {}
                },
                Event::Alarm if end.is_some_and(|end| end <= self.clock.elapsed().boot) => {
                    if let (None, Some(limit)) = (patience, self.plan.total_timeout) {
                        ended.outcome = Outcome::TimedOut(TimeLimit::Total(limit));
                    }
                    if ended.interrupted.is_none() {
                        let why = if is_blocked { "nobody reads it" } else { "to look at it takes too long" };
                        say(&format!("the rest of the attempt's output is lost: {why}"));
                    }
                    return;
                }
                Event::Ready if ended.interrupted.is_none() => given_up = until(self.clock.elapsed().boot),
                Event::Ready | Event::Alarm => {}
            }
        }
    }

    /// What forbids a retry as far as the standard streams are concerned.
    fn stream_obstacle(&mut self) -> Option<Obstacle> {
        if self.streams.input_unreadable() || self.streams.input_lost().is_some() || self.stdin.is_lost() {
            return Some(Obstacle::StdinConsumed);
        }
        (self.inherited.was_open(1) && reader_is_gone()).then_some(Obstacle::ReaderGone)
    }
}

impl AttemptRunner for Supervisor<'_> {
    fn attempt(&mut self, facts: &Facts) -> Attempted {
        let terminal = Settings::read();
        let facts = self.facts(facts);
        if let Some(signal) = self.signal_before_start() {
            // The key was pressed when there was no command yet that it could have reached.
            let obstacle = Some(Obstacle::Interrupted(signal));
            return Attempted { obstacle, ..Attempted::with(Outcome::Signaled(signal)) };
        }
        let ends = self.ends();
        let looks = self.plan.may_retry && self.inherited.was_open(1) && !self.streams.holds_stdout();
        let stdout = if looks { Stdout::look(self.streams.counted()) } else { Stdout::Indifferent };
        let pid = match ends.and_then(|ends| self.command.start(self.inherited, &facts, ends.descriptors())) {
            Ok(pid) => pid,
            Err(outcome) => {
                self.streams.end();
                return Attempted { obstacle: self.stream_obstacle(), ..Attempted::with(outcome) };
            }
        };
        let streams = &mut self.streams;
        let mut ended = Attempt::new(self.plan, self.clock, self.family.as_ref(), streams, pid).supervise();
        self.pass_on_the_rest(&mut ended);
        let sightings = self.streams.end();
        self.cut_off = ended.interrupted.is_some();
        let clean = matches!(ended.outcome, Outcome::Exited(_)) && ended.interrupted.is_none();
        if let (Some(terminal), false) = (terminal, clean) {
            terminal.restore();
        }
        let obstacle = match (ended.unkillable, ended.interrupted) {
            (Some((pid, error)), _) => Some(Obstacle::Unkillable { pid, error }),
            (None, Some(signal)) => Some(Obstacle::Interrupted(signal)),
            (None, None) if self.plan.may_retry => {
                self.stdin.note_attempt();
                self.stream_obstacle()
            }
            (None, None) => None,
        };
        if let (Some(error), true) = (self.streams.input_lost(), ended.outcome != Outcome::Exited(0)) {
            let folder = self.plan.spool_folder.display();
            say(&format!("--stdin replay: standard input cannot be kept in {folder} (TMPDIR): {}", cause(error)));
        }
        let wrote = if obstacle.is_none() && stdout != Stdout::Indifferent {
            self.streams.wrote_to_stdout().unwrap_or_else(|| stdout.written_since(self.streams.counted()))
        } else {
            Wrote::No
        };
        Attempted { obstacle, wrote, sightings, ..Attempted::with(ended.outcome) }
    }

    fn wait(&mut self, delay: Duration) -> Wake {
        between::wait(self.clock, delay, self.plan.counts_down)
    }

    fn conclude(&mut self, reason: &StopReason) -> Result<(), Conclusion> {
        let success = *reason == StopReason::Success;
        if self.cut_off && !success {
            // What a signal ended is not whole, unless the command says that it is.
            return Ok(());
        }
        match self.streams.broken() {
            Some((_, Errno::PIPE)) if success => return Err(Conclusion::ReaderGone),
            Some((name, error)) if error != Errno::PIPE => {
                return Err(Conclusion::Lost(cannot_be_written(name, error)));
            }
            // A command that failed was told by itself, and did what it thought right.
            _ => {}
        }
        for channel in self.streams.wanted(success) {
            if let Some(error) = channel.lost() {
                let folder = self.plan.spool_folder.display();
                let cause = cause(error);
                return Err(Conclusion::Lost(format!(
                    "{}: the output could not be kept in {folder} (TMPDIR), and none of it is written: {cause}",
                    channel.target().name()
                )));
            }
            let end = self.plan.total_timeout.map(|limit| limit.saturating_add(self.plan.kill_after));
            emit(channel, self.clock, end)?;
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

/// Writes what was held back. A signal that ends runs ends this too, and so does the limit on
/// everything.
fn emit(held: &mut Channel, clock: &SystemClock, end: Option<Duration>) -> Result<(), Conclusion> {
    let mut offset = 0;
    let alarms = Alarms { running: None, boot: end };
    loop {
        let mut target = vec![PollFd::from_borrowed_fd(held.target().stream(), PollFlags::OUT)];
        match clock.next(alarms, &mut target) {
            Event::Signal(Received { signal, .. }) => match signal {
                _ if signal.ends_the_run() => return Err(Conclusion::Interrupted(signal)),
                Signal::TSTP | Signal::TTIN | Signal::TTOU => clock.pause(|| unix::take(signal)),
                _ => {}
            },
            Event::Alarm => {
                let name = held.target().name();
                return Err(Conclusion::TooLate(format!("{name}: the rest of the output is lost: nobody reads it")));
            }
            Event::Ready => match held.emit(offset) {
                Ok(0) => return Ok(()),
                Ok(count) => offset += count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::PIPE) => return Err(Conclusion::ReaderGone),
                Err(error) => return Err(Conclusion::Lost(cannot_be_written(held.target().name(), error))),
            },
        }
    }
}

fn cannot_be_written(name: &str, error: Errno) -> String {
    format!("{name} cannot be written: {}", cause(&error.into()))
}
