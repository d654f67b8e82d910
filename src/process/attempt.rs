//! A running attempt: signals passed on, stops followed, limits kept, until the last process
//! that it answers for has ended.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus, getppid, wait};

use super::family::{self, Family, Member};
use super::plan::SupervisionPlan;
use super::streams::Streams;
use super::unix;
use crate::cause::cause;
use crate::clock::{Alarms, Clock, Event, SystemClock};
use crate::policy::{Outcome, Signal, TimeLimit};
use crate::report::cursor;
use crate::report::text::say;
use crate::signal::Received;

/// The least time that KILL is given to take effect, where `--kill-after` is shorter.
const KILL_TAKES: Duration = Duration::from_secs(1);
/// How soon the family is looked through again once it was signalled: processes may still be
/// appearing, and neither that nor the end of one that is not our child makes a signal.
const ROUND: Duration = Duration::from_millis(20);

/// Whether this process has children that live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Children {
    Some,
    None,
}

/// Takes the news of every child that changed state.
pub(super) fn reap(mut news: impl FnMut(Pid, WaitStatus)) -> Children {
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
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) interrupted: Option<Signal>,
    pub(super) unkillable: Option<(u32, String)>,
}

/// An attempt that runs.
pub(super) struct Attempt<'a> {
    plan: &'a SupervisionPlan,
    clock: &'a SystemClock,
    family: Option<&'a Family>,
    streams: &'a mut Streams,
    pid: i32,
    started: Duration,
    /// When it last wrote something, where that counts.
    last_written: Duration,
    /// Bytes that it had written by then.
    written: u64,
    /// How the command itself ended, once it is reaped.
    outcome: Option<Outcome>,
    children: Children,
    /// The signal that holds the command, while it is stopped.
    stopped_by: Option<Signal>,
    /// A stop signal that reached retryx and waits for the command to stop too.
    stop_asked: Option<Signal>,
    /// Signals that were taken from the channel and are not acted on yet.
    waiting: VecDeque<Received>,
    interrupted: Option<Signal>,
    ending: Option<Ending>,
}

/// The end that a limit, or a TERM with `--kill-after`, set in motion.
struct Ending {
    /// The limit; `None` for a TERM that somebody sent.
    limit: Option<TimeLimit>,
    /// When the next look or KILL is due, in running time.
    next: Duration,
    /// When KILL is.
    kill: Duration,
    /// Who got the first signal.
    reached: HashSet<Member>,
    /// How long the last look was waited for; while none finds anybody, each waits longer.
    pause: Duration,
    /// When the attempt counts as unkillable; set once KILL was sent.
    give_up: Option<Duration>,
}

impl Ending {
    /// One whose first step is KILL.
    fn new(limit: Option<TimeLimit>, kill: Duration) -> Self {
        Self { limit, next: kill, kill, reached: HashSet::new(), pause: ROUND, give_up: None }
    }

    /// Whether the family is still asked to end, and not made to.
    fn asks(&self, now: Duration) -> bool {
        self.limit.is_some() && self.give_up.is_none() && now < self.kill
    }

    /// Looks after this pause, the next time after a longer one.
    fn look_after(&mut self, pause: Duration, now: Duration) {
        self.pause = pause;
        self.next = now.saturating_add(pause).min(self.kill);
    }
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
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
            last_written: clock.elapsed().running,
            written: 0,
            outcome: None,
            children: Children::Some,
            stopped_by: None,
            stop_asked: None,
            waiting: VecDeque::new(),
            interrupted: None,
            ending: None,
        }
    }

    pub(super) fn supervise(mut self) -> Ended {
        loop {
            let (event, ready) = self.next();
            match event {
                Event::Ready => {
                    if let Err(error) = self.streams.work(&ready) {
                        // Cut off, its input would look whole.
                        say(&format!("--stdin replay: standard input cannot be read: {}", cause(&error)));
                        self.pass_on(Signal::KILL);
                    }
                    self.note_output();
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
    fn next(&mut self) -> (Event, Vec<PollFlags>) {
        if let Some(received) = self.waiting.pop_front() {
            return (Event::Signal(received), Vec::new());
        }
        let mut interests = self.streams.interests();
        let event = self.clock.next(self.alarms(), &mut interests);
        let ready = match event {
            Event::Ready => interests.iter().map(PollFd::revents).collect(),
            _ => Vec::new(),
        };
        (event, ready)
    }

    fn alarms(&self) -> Alarms {
        if let Some(ending) = &self.ending {
            return Alarms { running: Some(ending.next), boot: None };
        }
        let timeout = self.plan.timeout.map(|limit| self.started.saturating_add(limit));
        let running = timeout.into_iter().chain(self.silence_ends()).min();
        Alarms { running, boot: self.plan.total_timeout }
    }

    /// When the command has been silent for too long.
    fn silence_ends(&self) -> Option<Duration> {
        self.plan.idle_timeout.map(|limit| self.last_written.saturating_add(limit))
    }

    /// Remembers when the command last wrote something, where its silence is limited.
    fn note_output(&mut self) {
        if self.plan.idle_timeout.is_some() && self.streams.of_attempt() != self.written {
            self.written = self.streams.of_attempt();
            self.last_written = self.clock.elapsed().running;
        }
    }

    fn take(&mut self, received: Received) {
        match received.signal {
            Signal::CHLD => {
                self.reap();
                // Whose parent ended is left to nobody else.
                let now = self.clock.elapsed().running;
                if let Some(ending) = self.ending.as_mut().filter(|ending| ending.asks(now)) {
                    ending.pause = ROUND;
                    ending.next = ending.next.min(now.saturating_add(ROUND));
                }
            }
            Signal::WINCH => {
                // The command heard of it too, maybe before its own terminal had changed.
                if self.streams.resize() {
                    self.pass_on(Signal::WINCH);
                }
            }
            Signal::CONT => {
                // Whoever continues this process means the command too, also where a stop
                // that was passed on has not been acted on yet.
                let asked = self.stop_asked.take().is_some();
                self.reap();
                if asked || self.stopped_by.is_some() {
                    // A shell's `fg` reaches no group but retryx's.
                    self.pass_on_key(Received { signal: Signal::CONT, from_terminal: true });
                }
            }
            signal @ (Signal::TSTP | Signal::TTIN | Signal::TTOU) => {
                self.stop_asked = Some(signal);
                // Where the command has stopped already, this stops and goes on with it.
                self.reap();
                if self.stop_asked.is_some() {
                    if self.stopped_by.is_none() && !self.reached_command(received) {
                        self.pass_on_key(received);
                    }
                    self.stop_with_command();
                }
            }
            signal => {
                if signal.ends_the_run() {
                    self.interrupted.get_or_insert(signal);
                    if received.from_terminal {
                        cursor::note_key();
                    }
                }
                if !self.reached_command(received) {
                    self.pass_on_key(received);
                }
                if signal == Signal::TERM && self.plan.kill_after_term && self.ending.is_none() {
                    let kill = self.clock.elapsed().running.saturating_add(self.plan.kill_after);
                    self.ending = Some(Ending::new(None, kill));
                }
            }
        }
    }

    /// Whether the command got this signal from the terminal already: it did if it is in the
    /// same group, which a command may leave (`timeout` does).
    fn reached_command(&self, received: Received) -> bool {
        let by_key = matches!(received.signal, Signal::INT | Signal::QUIT | Signal::TSTP | Signal::TTIN | Signal::TTOU);
        received.from_terminal && by_key && self.group() == unix::group_of(0)
    }

    /// The command's process group, while it is not reaped.
    fn group(&self) -> Option<i32> {
        if self.outcome.is_none() { unix::group_of(self.pid) } else { None }
    }

    /// Signals the command. It is not reaped yet, so the number is its own; a failure means
    /// that it is gone or may not be signalled, and is not ours to mend.
    fn pass_on(&self, signal: Signal) {
        if self.plan.own_group {
            self.pass_on_to_group(signal);
        } else if self.outcome.is_none() {
            let _ = unix::kill(self.pid, signal);
        }
    }

    /// Gives a key of the terminal to the command, and to its group where it leads one, as
    /// the terminal would have.
    fn pass_on_key(&self, received: Received) {
        if received.from_terminal && self.group() == Some(self.pid) {
            self.pass_on_to_group(received.signal);
        } else {
            self.pass_on(received.signal);
        }
    }

    fn pass_on_to_group(&self, signal: Signal) {
        if self.outcome.is_none() {
            let _ = unix::kill(-self.pid, signal);
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
        // Who continued this process in the meantime would find it stopped for good.
        while let Some(received) = self.clock.arrived() {
            self.waiting.push_back(received);
        }
        if self.waiting.iter().any(|received| received.signal == Signal::CONT) {
            return;
        }
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
        if ending.asks(now.running) {
            self.ask_to_end(now.running);
            return None;
        }
        let give_up = *ending.give_up.as_ref().unwrap_or(&Duration::MAX);
        let refused = self.family.map(|family| family.sweep(&mut HashSet::new(), &[Signal::KILL])).unwrap_or_default();
        self.pass_on(Signal::KILL);
        self.reap();
        let living = self.living().unwrap_or_default();
        let may_not = |member: &Member| refused.iter().any(|refused| refused.pid == member.pid);
        if let Some(first) = refused.iter().find(|refused| living.iter().any(|member| member.pid == refused.pid))
            && living.iter().all(may_not)
        {
            let error = format!("it may not be signalled ({})", cause(&first.error));
            return Some((u32::try_from(first.pid).unwrap_or(0), error));
        }
        if now.running >= give_up {
            let pid = living.first().map_or(self.pid, |member| member.pid);
            return Some((u32::try_from(pid).unwrap_or(0), "it survived KILL".to_owned()));
        }
        if let Some(ending) = &mut self.ending {
            let takes = self.plan.kill_after.max(KILL_TAKES);
            ending.give_up.get_or_insert(now.running.saturating_add(takes));
            ending.next = now.running.saturating_add(ROUND);
        }
        None
    }

    fn begin_ending(&mut self, boot: Duration, running: Duration) {
        let limit = match (self.plan.timeout, self.plan.total_timeout) {
            (_, Some(total)) if total <= boot => TimeLimit::Total(total),
            (Some(timeout), _) if self.started.saturating_add(timeout) <= running => TimeLimit::Attempt(timeout),
            _ => match self.plan.idle_timeout {
                // Who cannot write is not silent.
                Some(_) if self.streams.is_blocked() => {
                    self.last_written = running;
                    return;
                }
                Some(limit) => {
                    // What waits to be read was not read because this process was held up.
                    self.streams.take();
                    self.note_output();
                    if self.silence_ends() > Some(running) {
                        return;
                    }
                    TimeLimit::Idle(limit)
                }
                None => return,
            },
        };
        self.ending = Some(Ending::new(Some(limit), running.saturating_add(self.plan.kill_after)));
        if self.plan.kill_after.is_zero() {
            return;
        }
        self.ask_to_end(running);
        let command_is_reached =
            self.ending.iter().flat_map(|ending| &ending.reached).any(|member| member.pid == self.pid);
        if !command_is_reached {
            for signal in [self.plan.kill_signal, Signal::CONT] {
                self.pass_on(signal);
            }
        }
    }

    /// Signals all of the family that were not signalled yet. Looks again soon where there
    /// were any, else after twice the time that this look was waited for.
    fn ask_to_end(&mut self, now: Duration) {
        let (Some(ending), Some(family)) = (&mut self.ending, self.family) else { return };
        let before = ending.reached.len();
        // Who may not be signalled now is met again when KILL is due.
        family.sweep(&mut ending.reached, &[self.plan.kill_signal, Signal::CONT]);
        let pause = if ending.reached.len() > before { ROUND } else { ending.pause.saturating_mul(2) };
        ending.look_after(pause, now);
    }

    /// The living members of the family; `None` where only the command itself is known.
    fn living(&self) -> Option<Vec<Member>> {
        self.family.and_then(|family| family.members(&HashSet::new()))
    }

    /// Whether nothing is left to wait for.
    fn is_over(&self) -> bool {
        if self.outcome.is_none() {
            return false;
        }
        match &self.ending {
            Some(Ending { limit: Some(_), .. }) => {
                // Without a child there is no descendant, not even one to be reaped. Where
                // strangers are among the children, the family must be looked for.
                self.children == Children::None
                    || match self.family.filter(|_| family::is_visible()) {
                        Some(family) => family.has_strangers() && self.living().is_none_or(|living| living.is_empty()),
                        None => true,
                    }
            }
            _ => true,
        }
    }

    fn ended(mut self, unkillable: Option<(u32, String)>) -> Ended {
        // What was taken from the channel and came too late for the command still counts.
        let late = self.waiting.iter().map(|received| received.signal).find(|signal| signal.ends_the_run());
        self.interrupted = self.interrupted.or(late);
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
    let Some(parent) = getppid().map(Pid::as_raw_pid) else { return false };
    unix::group_of(parent).is_some_and(|group| unix::group_of(0) != Some(group))
        && unix::session_of(parent) == unix::session_of(0)
}
