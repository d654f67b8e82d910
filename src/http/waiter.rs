//! Waiting for the network, for signals and for time limits, all at once.

use std::time::Duration;

use rustix::event::PollFd;

use super::failure::{Failure, Fault};
use crate::clock::{Alarms, Clock as _, Event, SystemClock};
use crate::policy::{Signal, TimeLimit};
use crate::process::unix;

/// The limits of an attempt, as points of the run's time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// The end of the attempt, on the clock that stands still with the machine.
    pub attempt: Option<(Duration, TimeLimit)>,
    /// The end of the run, on the clock that goes on.
    pub total: Option<(Duration, TimeLimit)>,
    /// The end of connecting.
    pub connecting: Option<Duration>,
}

/// What an attempt waits with.
pub struct Waiter<'a> {
    clock: &'a SystemClock,
    ends: Ends,
}

impl<'a> Waiter<'a> {
    /// A waiter that keeps these limits.
    pub fn new(clock: &'a SystemClock, ends: Ends) -> Self {
        Self { clock, ends }
    }

    /// The same while a connection is made.
    pub fn connecting(&self, limit: Option<Duration>) -> Self {
        let end = limit.map(|limit| self.clock.elapsed().running.saturating_add(limit));
        Self { clock: self.clock, ends: Ends { connecting: end, ..self.ends } }
    }

    /// Time of the run in which the machine ran.
    pub fn now(&self) -> Duration {
        self.clock.elapsed().running
    }

    /// Waits until one of these is ready. Whether it is says its `revents`; an earlier end
    /// than theirs is a failure, but `until` is none.
    pub fn wait<'b>(&'b self, fds: &mut Vec<PollFd<'b>>, until: Option<Duration>) -> Result<(), Failure> {
        loop {
            let ends = [self.ends.attempt.map(|(end, _)| end), self.ends.connecting, until];
            let alarms =
                Alarms { running: ends.into_iter().flatten().min(), boot: self.ends.total.map(|(end, _)| end) };
            match self.clock.next(alarms, fds) {
                Event::Ready => return Ok(()),
                Event::Signal(received) => match received.signal {
                    signal if signal.ends_the_run() => return Err(Failure::Interrupted(signal)),
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                        self.clock.pause(|| unix::take(received.signal));
                    }
                    _ => {}
                },
                Event::Alarm => {
                    let now = self.clock.elapsed();
                    for (end, now) in [(self.ends.total, now.boot), (self.ends.attempt, now.running)] {
                        if let Some((_, limit)) = end.filter(|(end, _)| *end <= now) {
                            return Err(Failure::TimedOut(limit));
                        }
                    }
                    if self.ends.connecting.is_some_and(|end| end <= now.running) {
                        return Err(Failure::new(Fault::Connect, "no connection within --connect-timeout"));
                    }
                    return Ok(());
                }
            }
        }
    }
}
