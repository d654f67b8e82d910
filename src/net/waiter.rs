//! Waiting for the network, for signals and for time limits, all at once.

use std::cell::Cell;
use std::time::Duration;

use rustix::event::PollFd;

use super::failure::{Failure, Fault};
use crate::clock::{Alarms, Event, WaitingClock};
use crate::policy::{Signal, TimeLimit};

/// The most bytes that go by between two looks at signals and limits.
const UNSEEN: usize = 1024 * 1024;
/// What a piece counts for beside its bytes: small ones take their time too.
const PIECE: usize = 1024;

/// The limits of an attempt, as points of the run's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// The end of the attempt, on the clock that stands still with the machine.
    pub attempt: Option<(Duration, TimeLimit)>,
    /// The end of the run, on the clock that goes on.
    pub total: Option<(Duration, TimeLimit)>,
    /// The end of connecting, on the first clock.
    pub connecting: Option<(Duration, TimeLimit)>,
    /// The end of the patience with a body that nobody needs, on the first clock.
    pub patience: Option<Duration>,
}

/// What an attempt waits with.
#[derive(Clone)]
pub struct Waiter<'a> {
    clock: &'a dyn WaitingClock,
    ends: Ends,
    /// What went by since the last look at signals and limits.
    unseen: Cell<usize>,
}

impl<'a> Waiter<'a> {
    /// A waiter that keeps these limits.
    pub fn new(clock: &'a dyn WaitingClock, ends: Ends) -> Self {
        Self { clock, ends, unseen: Cell::new(0) }
    }

    /// The same while a connection is made.
    #[must_use]
    pub fn connecting(&self, limit: Option<Duration>) -> Self {
        let end = limit.map(|limit| (self.now().saturating_add(limit), TimeLimit::Connect(limit)));
        Self::new(self.clock, Ends { connecting: end, ..self.ends })
    }

    /// The same with no more than so much patience.
    #[must_use]
    pub fn patient(&self, limit: Duration) -> Self {
        let patience = Some(self.now().saturating_add(limit));
        Self::new(self.clock, Ends { patience, ..self.ends })
    }

    /// Time of the run in which the machine ran.
    pub fn now(&self) -> Duration {
        self.clock.elapsed().running
    }

    /// Notes that a piece of so many bytes went by. Where there is always more of them nothing is
    /// ever waited for, and signals and limits are looked at from time to time all the same.
    pub fn pass(&self, bytes: usize) -> Result<(), Failure> {
        let unseen = self.unseen.get().saturating_add(PIECE).saturating_add(bytes);
        if unseen < UNSEEN {
            self.unseen.set(unseen);
            return Ok(());
        }
        self.look()
    }

    /// Looks at signals and limits now, after what may have taken its time.
    pub fn look(&self) -> Result<(), Failure> {
        self.unseen.set(0);
        self.wait(&mut Vec::new(), Some(Duration::ZERO))
    }

    /// Waits until one of these is ready. Whether it is says its `revents`; an earlier end
    /// than theirs is a failure, but `until` is none.
    pub fn wait<'b>(&'b self, fds: &mut Vec<PollFd<'b>>, until: Option<Duration>) -> Result<(), Failure> {
        loop {
            let limits = [self.ends.attempt, self.ends.connecting];
            let ends = limits.map(|limit| limit.map(|(end, _)| end)).into_iter().chain([self.ends.patience, until]);
            let alarms = Alarms { running: ends.flatten().min(), boot: self.ends.total.map(|(end, _)| end) };
            match self.clock.next(alarms, fds) {
                Event::Ready => return Ok(()),
                Event::Signal(received) => match received.signal {
                    signal if signal.ends_the_run() => return Err(Failure::Interrupted(signal)),
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => self.clock.stop(received.signal),
                    _ => {}
                },
                Event::Alarm => {
                    let now = self.clock.elapsed();
                    let limits = [(self.ends.total, now.boot), (limits[0], now.running), (limits[1], now.running)];
                    for (end, now) in limits {
                        if let Some((_, limit)) = end.filter(|(end, _)| *end <= now) {
                            return Err(Failure::TimedOut(limit));
                        }
                    }
                    if self.ends.patience.is_some_and(|end| end <= now.running) {
                        return Err(Failure::new(Fault::Receive, "the body takes too long"));
                    }
                    return Ok(());
                }
            }
        }
    }
}
