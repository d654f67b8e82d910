//! The only door to time: now, and waits that a signal can end.

use std::cell::{Cell, OnceCell};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::policy::Signal;
use crate::process::unix::{self, SignalSet, clock};
use crate::signal::{Received, Signals};

/// Time since the start of retryx, less the time for which Ctrl-Z held it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// Time in which the machine ran: for `--timeout`.
    pub running: Duration,
    /// Time that passed, suspension included: for deadlines and delays.
    pub boot: Duration,
}

/// Tells how much of the run has passed.
pub trait Clock {
    /// Time since the start.
    fn elapsed(&self) -> Elapsed;
}

/// Points of run time at which a wait ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alarms {
    /// On the clock that stands still while the machine is suspended.
    pub running: Option<Duration>,
    /// On the clock that goes on.
    pub boot: Option<Duration>,
}

impl Alarms {
    fn passed(self, elapsed: Elapsed) -> bool {
        let passed = |alarm: Option<Duration>, now| alarm.is_some_and(|alarm| alarm <= now);
        passed(self.running, elapsed.running) || passed(self.boot, elapsed.boot)
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A signal arrived.
    Signal(Received),
    /// One of the alarms passed.
    Alarm,
    /// One of the other descriptors is ready.
    Ready,
}

/// A clock that can be waited on.
pub trait WaitingClock: Clock {
    /// Waits for a signal, the first alarm, or one of the other descriptors, which are left
    /// as the last look at them found them.
    fn next<'a>(&'a self, alarms: Alarms, others: &mut Vec<PollFd<'a>>) -> Event;

    /// Lets a signal of job control stop this process; the time it takes counts against nothing.
    fn stop(&self, signal: Signal);
}

/// The wall clock, for time stamps only: it may jump, and nothing is measured by it.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Time since the machine was started, suspension included: one clock for all its processes.
pub fn since_boot() -> Duration {
    clock(libc::CLOCK_BOOTTIME)
}

/// Time in which the machine ran, from some beginning.
pub fn running() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// Holds this process for a moment that no signal has to end: at most 20 milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn nap(time: Duration) {
    std::thread::sleep(time.min(Duration::from_millis(20)));
}

/// The system's clocks, joined with the channel of signals.
pub struct SystemClock {
    signals: Signals,
    start: Elapsed,
    paused: Cell<Elapsed>,
    timer: OnceCell<Option<OwnedFd>>,
}

fn now() -> Elapsed {
    Elapsed { running: clock(libc::CLOCK_MONOTONIC), boot: clock(libc::CLOCK_BOOTTIME) }
}

impl SystemClock {
    /// A clock that starts now.
    pub fn start(signals: Signals) -> Self {
        Self { signals, start: now(), paused: Cell::default(), timer: OnceCell::new() }
    }

    /// A signal that is already there.
    pub fn arrived(&self) -> Option<Received> {
        self.signals.next()
    }

    /// Waits for a signal, the first alarm, or one of the other descriptors, which are left
    /// as the last look at them found them. What is already there comes in that order.
    pub fn next<'a>(&'a self, alarms: Alarms, others: &mut Vec<PollFd<'a>>) -> Event {
        loop {
            if let Some(received) = self.signals.next() {
                return Event::Signal(received);
            }
            let elapsed = self.elapsed();
            if alarms.passed(elapsed) {
                return Event::Alarm;
            }
            if self.poll(alarms, elapsed, others) {
                return Event::Ready;
            }
        }
    }

    /// Blocks until something may have happened; true where that is one of the others.
    fn poll<'a>(&'a self, alarms: Alarms, elapsed: Elapsed, others: &mut Vec<PollFd<'a>>) -> bool {
        let mut timeout = alarms.running.map(|alarm| alarm.saturating_sub(elapsed.running));
        let timer = alarms.boot.and_then(|alarm| self.set_timer(alarm));
        if let (Some(alarm), None) = (alarms.boot, timer) {
            // No timer descriptor to be had: correct while the machine is not suspended.
            let left = alarm.saturating_sub(elapsed.boot);
            timeout = Some(timeout.map_or(left, |timeout| timeout.min(left)));
        }
        // What is too long for the kernel is endless.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let count = others.len();
        others.push(PollFd::new(&self.signals, PollFlags::IN));
        others.extend(timer.map(|timer| PollFd::new(timer, PollFlags::IN)));
        // An interrupted or failed poll is looked into by the caller's next round.
        let ready = poll(others, timeout.as_ref()).is_ok();
        let signalled = others.get(count).is_some_and(|signals| !signals.revents().is_empty());
        others.truncate(count);
        ready && !signalled && others.iter().any(|other| !other.revents().is_empty())
    }

    /// Sets the boot-time timer to a point of run time.
    fn set_timer(&self, alarm: Duration) -> Option<&OwnedFd> {
        let timer = self.timer.get_or_init(|| {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            timerfd_create(TimerfdClockId::Boottime, flags).ok()
        });
        let timer = timer.as_ref()?;
        let point = self.start.boot.saturating_add(self.paused.get().boot).saturating_add(alarm);
        let point = Timespec::try_from(point).ok()?;
        let setting = Itimerspec { it_interval: Timespec::default(), it_value: point };
        timerfd_settime(timer.as_fd(), TimerfdTimerFlags::ABSTIME, &setting).ok()?;
        Some(timer)
    }

    /// Runs `stop`, which holds this process; the time it takes counts against nothing.
    pub fn pause(&self, stop: impl FnOnce()) {
        let before = now();
        stop();
        let after = now();
        let paused = self.paused.get();
        self.paused.set(Elapsed {
            running: paused.running + after.running.saturating_sub(before.running),
            boot: paused.boot + after.boot.saturating_sub(before.boot),
        });
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Elapsed {
        let now = now();
        let paused = self.paused.get();
        let since = |now: Duration, start, paused| now.saturating_sub(start).saturating_sub(paused);
        Elapsed {
            running: since(now.running, self.start.running, paused.running),
            boot: since(now.boot, self.start.boot, paused.boot),
        }
    }
}

impl WaitingClock for SystemClock {
    fn next<'a>(&'a self, alarms: Alarms, others: &mut Vec<PollFd<'a>>) -> Event {
        Self::next(self, alarms, others)
    }

    fn stop(&self, signal: Signal) {
        self.pause(|| unix::take(signal));
    }
}

/// The signals that end a run.
const ENDINGS: [Signal; 4] = [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP];

/// Whether a signal that ends the run is there, for the run to take.
pub fn is_ending() -> bool {
    ENDINGS.into_iter().any(|signal| unix::is_pending(signal) && !unix::is_ignored(signal))
}

/// The system's clocks for short waits that leave signals to the run: one that ends it ends the
/// wait and stays pending, the others are found afterwards.
pub struct BorrowedClock {
    start: Elapsed,
    endings: OnceCell<Option<OwnedFd>>,
}

impl BorrowedClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: now(), endings: OnceCell::new() }
    }

    /// What tells that one of the signals is pending; what was ignored from the start ends nothing.
    fn endings(&self) -> Option<&OwnedFd> {
        let open = || {
            let heard = ENDINGS.into_iter().filter(|signal| !unix::is_ignored(*signal));
            unix::signal_descriptor(&SignalSet::of(heard)).ok()
        };
        self.endings.get_or_init(open).as_ref()
    }
}

impl Clock for BorrowedClock {
    fn elapsed(&self) -> Elapsed {
        let now = now();
        Elapsed {
            running: now.running.saturating_sub(self.start.running),
            boot: now.boot.saturating_sub(self.start.boot),
        }
    }
}

impl WaitingClock for BorrowedClock {
    /// Tells of a signal that ends the run and leaves it pending. An alarm on the clock that
    /// goes on is late by what the machine was suspended for.
    fn next<'a>(&'a self, alarms: Alarms, others: &mut Vec<PollFd<'a>>) -> Event {
        let count = others.len();
        loop {
            let elapsed = self.elapsed();
            if alarms.passed(elapsed) {
                return Event::Alarm;
            }
            let left = [(alarms.running, elapsed.running), (alarms.boot, elapsed.boot)];
            let left = left.into_iter().filter_map(|(alarm, now)| Some(alarm?.saturating_sub(now))).min();
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            others.extend(self.endings().map(|endings| PollFd::new(endings, PollFlags::IN)));
            // A poll that was interrupted or failed is looked into by the next round.
            let ready = poll(others, timeout.as_ref()).is_ok();
            let is_ended = others.get(count).is_some_and(|endings| !endings.revents().is_empty());
            others.truncate(count);
            let ending = ENDINGS.into_iter().find(|signal| is_ended && unix::is_pending(*signal));
            if let Some(signal) = ending {
                return Event::Signal(Received { signal, from_terminal: false });
            }
            if ready && others.iter().any(|other| !other.revents().is_empty()) {
                return Event::Ready;
            }
        }
    }

    fn stop(&self, _: Signal) {}
}
