//! The exit-status contract (design §13): one type, one table.

use crate::policy::{Class, Outcome, Signal, StartFailure};

/// The last attempt was ended by a time limit, or could not be ended.
pub const TIMED_OUT: u8 = 124;
/// retryx itself failed: usage, configuration, internal.
pub const OWN_FAILURE: u8 = 125;
/// curl's code for a part of a body.
pub const PARTIAL: u8 = 18;
/// curl's code for a status that is a failure.
pub const HTTP_FAILURE: u8 = 22;
/// curl's code for a time limit, the one for requests.
pub const REQUEST_TIMED_OUT: u8 = 28;
/// curl's code for a body that cannot be written.
pub const WRITE_FAILED: u8 = 23;
/// The command cannot be run.
pub const CANNOT_RUN: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The table shown by `--help`, the manual and the README: status, meaning.
pub const TABLE: [(&str, &str); 7] = [
    ("the command's own", "the last attempt's, success or not"),
    (
        "death by signal N",
        "signal N killed the last attempt's command, or ended the wait for the next: a shell shows 128 + N \
         (retryx exits 128 + N as PID 1 or where the signal cannot kill it)",
    ),
    (
        "124",
        "the last attempt was ended by a time limit, KILL needed or not, whatever the dying command returned; \
         or a process of it could not be ended",
    ),
    ("125", "retryx itself failed: usage, configuration, internal, or output that it could not keep or write"),
    ("126", "the command cannot be run"),
    ("127", "the command was not found"),
    (
        "curl's codes",
        "for a request: 22 for a status that is a failure, 28 for every time limit, 3 for a URL that cannot be read, \
         and so on (see the manual under HTTP)",
    ),
];

/// How retryx itself ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Exit with this code.
    Code(u8),
    /// Die of this signal, so that the parent sees what it would have seen.
    Signal(Signal),
}

impl ExitStatus {
    /// What an attempt that ended so, and was taken for that, gives; `timed_out` is the code
    /// for time limits, which commands and requests have each their own.
    pub fn of(outcome: &Outcome, class: Class, timed_out: u8) -> Self {
        match outcome {
            _ if class == Class::Success => Self::Code(0),
            // A rule made a failure of it.
            Outcome::Exited(0) => Self::Code(1),
            Outcome::Exited(code) | Outcome::TransportFailed { code, .. } => Self::Code(*code),
            Outcome::Signaled(signal) | Outcome::Interrupted(signal) => Self::Signal(*signal),
            Outcome::TimedOut(_) => Self::Code(timed_out),
            Outcome::Responded(_) => Self::Code(HTTP_FAILURE),
            Outcome::NotStarted { failure: StartFailure::NotFound, .. } => Self::Code(NOT_FOUND),
            Outcome::NotStarted { .. } => Self::Code(CANNOT_RUN),
        }
    }

    /// The number a shell shows: the code, or 128 + the signal.
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(signal.0).unwrap_or(0).saturating_add(128),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::TimeLimit;

    #[test]
    fn every_outcome_has_its_status() {
        let not_started = |failure| Outcome::NotStarted { failure, errno: 0, error: String::new() };
        for (outcome, status) in [
            (Outcome::Exited(42), 42),
            (Outcome::Exited(0), 1),
            (Outcome::Responded(503), 22),
            (Outcome::Signaled(Signal::KILL), 137),
            (Outcome::Signaled(Signal(64)), 192),
            (Outcome::TimedOut(TimeLimit::Attempt(Duration::ZERO)), 124),
            (Outcome::TimedOut(TimeLimit::Total(Duration::ZERO)), 124),
            (not_started(StartFailure::NotFound), 127),
            (not_started(StartFailure::CannotRun), 126),
            (not_started(StartFailure::Transient), 126),
        ] {
            assert_eq!(ExitStatus::of(&outcome, Class::Transient, TIMED_OUT).shell_code(), status);
            assert_eq!(ExitStatus::of(&outcome, Class::Success, TIMED_OUT).shell_code(), 0);
        }
    }
}
