//! What a run tells: one model of events that every reporter reads. Reporters decide
//! nothing, and a reporter that fails says so once and never touches the run.

pub mod cursor;
pub mod json;
pub mod live;
pub mod text;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use crate::exit::ExitStatus;
use crate::policy::{Obstacle, Outcome, Retry, StopReason, Verdict};
use crate::process::Wrote;

/// How long somebody who does not read may hold up a line.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Writes a line, with one write wherever that can be. Signals wait meanwhile, so nobody may
/// hold it up: to a pipe or terminal goes as much as it has room for, and after a moment
/// without room the rest is given up with an error.
fn write_line(target: impl AsFd, line: &[u8]) -> rustix::io::Result<()> {
    let target = target.as_fd();
    let is_file = FileType::from_raw_mode(rustix::fs::fstat(target)?.st_mode) == FileType::RegularFile;
    let mut rest = line;
    while !rest.is_empty() {
        if !is_file && !has_room(target)? {
            return Err(Errno::TIMEDOUT);
        }
        // A pipe that has room takes this much without waiting.
        let most = if is_file { rest.len() } else { rest.len().min(PIPE_BUF) };
        match rustix::io::write(target, &rest[..most]) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn has_room(target: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(target, PollFlags::OUT)];
    Ok(poll(&mut fds, Some(&PATIENCE))? > 0)
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Why it ended.
    pub reason: StopReason,
    /// Attempts made.
    pub attempts: u64,
    /// How retryx is to end.
    pub exit_status: ExitStatus,
    /// Why the output is not whole, where it is not.
    pub lost: Option<String>,
}

/// A step of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Nothing was done yet.
    RunStarted,
    /// An attempt is about to be made.
    AttemptStarted {
        /// Its number, from 1.
        attempt: u64,
    },
    /// An attempt ended.
    AttemptFinished {
        /// Its number, from 1.
        attempt: u64,
        /// How.
        outcome: &'a Outcome,
        /// What stands in the way of another.
        obstacle: Option<&'a Obstacle>,
        /// What it was taken for.
        verdict: &'a Verdict,
        /// How long it took.
        duration: Duration,
        /// Where it asked for a delay that is none: what is to be said of that.
        no_delay: Option<&'a str>,
    },
    /// A wait begins, and another attempt after it.
    RetryScheduled {
        /// The wait and what it was computed from.
        retry: &'a Retry,
        /// Whether the failed attempt wrote to a standard output that is no terminal.
        wrote: Wrote,
        /// Whether the quota that paid is the scope's.
        is_shared: bool,
    },
    /// A wait begins for the rate limiter's token, without which the attempt may not start.
    Paced {
        /// The attempt's number, from 1.
        attempt: u64,
        /// How long at least.
        delay: Duration,
        /// Whether the limiter is a scope's.
        is_shared: bool,
    },
    /// Something about the run's surroundings that a user should know.
    Noted {
        /// What.
        text: &'a str,
    },
    /// A wait begins that no attempt follows: a long-polling operation is slowed.
    Lingering {
        /// How long.
        delay: Duration,
        /// Whether the quota that refused a retry is the scope's.
        is_shared: bool,
    },
    /// The run is over.
    Stopped {
        /// Why, and how retryx will end.
        summary: &'a Summary,
        /// Time since the start.
        elapsed: Duration,
        /// Time spent waiting.
        waited: Duration,
        /// Tokens left in the quota; `None` without one.
        quota_left: Option<u32>,
        /// Whether that quota is the scope's.
        is_shared: bool,
    },
}

/// Reads the events of a run, in order.
pub trait Reporter {
    /// Takes one event.
    fn report(&mut self, event: &Event<'_>);
}

/// Two reporters that hear the same.
impl<A: Reporter, B: Reporter> Reporter for (A, Option<B>) {
    fn report(&mut self, event: &Event<'_>) {
        self.0.report(event);
        if let Some(second) = &mut self.1 {
            second.report(event);
        }
    }
}
