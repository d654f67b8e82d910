//! What to do after an attempt, and why.

use std::time::Duration;

use super::{Delay, Signal};

/// Something outside the policy that forbids a further attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A signal asked the run to end.
    Interrupted(Signal),
    /// A process of the attempt outlived KILL, or may not be signalled.
    Unkillable {
        /// The process that still lives.
        pid: u32,
        /// Why it could not be ended.
        error: String,
    },
    /// The attempt took something from a standard input that cannot be given twice.
    StdinConsumed,
    /// Nobody reads standard output any more.
    ReaderGone,
    /// The request may have been acted on, and doing it twice may do harm.
    UnsafeRequest {
        /// Whether a key that makes it safe was given, but did not go along to another origin.
        lost_key: bool,
    },
    /// The body of the answer was passed on, and cannot be taken back.
    PassedOn,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The command succeeded.
    Success,
    /// The failure cannot pass.
    Permanent,
    /// The attempts are used up.
    Attempts,
    /// The next attempt would start after `--deadline`.
    Deadline {
        /// The delay that was not slept; `None` where the wait took longer than planned
        /// because the machine or retryx was stopped.
        delay: Option<Duration>,
    },
    /// `--total-timeout` is over, or the next delay would pass it.
    TotalTimeout,
    /// The retry quota does not pay for another attempt.
    Quota,
    /// The server asked for a longer wait than the limits allow.
    ServerDelay {
        /// What it asked for.
        wanted: Duration,
    },
    /// See [`Obstacle::StdinConsumed`].
    StdinConsumed,
    /// See [`Obstacle::ReaderGone`].
    ReaderGone,
    /// See [`Obstacle::UnsafeRequest`].
    UnsafeRequest {
        /// Whether a key that makes it safe was given, but did not go along to another origin.
        lost_key: bool,
    },
    /// See [`Obstacle::PassedOn`]: a failure that another attempt cannot mend.
    PassedOn,
    /// See [`Obstacle::Unkillable`].
    Unkillable {
        /// The process that still lives.
        pid: u32,
        /// Why it could not be ended.
        error: String,
    },
    /// See [`Obstacle::Interrupted`].
    Interrupted(Signal),
}

impl StopReason {
    /// The word used in the `stopped` event.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Permanent | Self::PassedOn => "permanent",
            Self::Attempts => "attempts",
            Self::Deadline { .. } => "deadline",
            Self::TotalTimeout => "total_timeout",
            Self::Quota => "quota",
            Self::ServerDelay { .. } => "server_delay",
            Self::StdinConsumed => "stdin_consumed",
            Self::ReaderGone => "reader_gone",
            Self::UnsafeRequest { .. } => "unsafe_request",
            Self::Unkillable { .. } => "unkillable",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

impl From<Obstacle> for StopReason {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Interrupted(signal) => Self::Interrupted(signal),
            Obstacle::Unkillable { pid, error } => Self::Unkillable { pid, error },
            Obstacle::StdinConsumed => Self::StdinConsumed,
            Obstacle::ReaderGone => Self::ReaderGone,
            Obstacle::UnsafeRequest { lost_key } => Self::UnsafeRequest { lost_key },
            Obstacle::PassedOn => Self::PassedOn,
        }
    }
}

/// A retry that the policy allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// The number of the attempt to come, from 2.
    pub attempt: u64,
    /// How long to wait before it.
    pub delay: Delay,
    /// Tokens left in the quota once it is paid; `None` without a quota.
    pub quota_left: Option<u32>,
}

/// What to do after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Wait, then try again.
    Retry(Retry),
    /// End the run.
    Stop(StopReason),
    /// Wait, then end the run: the quota refused a retry of a long-polling operation,
    /// whose caller would otherwise ask again at once (reference §1.8).
    StopAfter(Delay, StopReason),
}
