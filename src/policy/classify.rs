//! Outcome → class, by ordered rules that each have a name.

use std::fmt;

use super::{Outcome, Signal, StartFailure};

/// What an outcome means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command did its work.
    Success,
    /// Likely to pass: retried with the short base delay.
    Transient,
    /// The service asks for rest: retried with the long base delay.
    Throttling,
    /// Cannot succeed on a retry: never repeated.
    Permanent,
}

impl Class {
    /// The word used in messages, events and `RETRYX_RUN_LAST_CLASS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Transient => "transient",
            Self::Throttling => "throttling",
            Self::Permanent => "permanent",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A class and the name of the rule that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What the outcome was taken for.
    pub class: Class,
    /// The rule that decided, `default:exit` for example.
    pub rule: &'static str,
}

/// Exit codes that a shell or wrapper uses for a command that cannot be run (126)
/// or was not found (127).
const CANNOT_RUN: [u8; 2] = [126, 127];
/// 128 + SIGINT, as a shell reports a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// 128 + SIGPIPE, as a shell reports a command whose reader went away.
const BROKEN_PIPE: u8 = 141;

/// The defaults for commands (design §3.4): success at 0; 126, 127, 130, 141, death by
/// INT or PIPE, and a command that is not there are permanent; all else is transient.
pub fn classify(outcome: &Outcome) -> Verdict {
    let (class, rule) = match outcome {
        Outcome::Exited(0) => (Class::Success, "default:success"),
        Outcome::Exited(code) if CANNOT_RUN.contains(code) => (Class::Permanent, "default:cannot-run"),
        Outcome::Exited(INTERRUPTED) | Outcome::Signaled(Signal::INT) => (Class::Permanent, "default:interrupted"),
        Outcome::Exited(BROKEN_PIPE) | Outcome::Signaled(Signal::PIPE) => (Class::Permanent, "default:broken-pipe"),
        Outcome::Exited(_) => (Class::Transient, "default:exit"),
        Outcome::Signaled(_) => (Class::Transient, "default:signal"),
        Outcome::TimedOut(_) => (Class::Transient, "default:timeout"),
        Outcome::NotStarted { failure: StartFailure::Transient, .. } => (Class::Transient, "default:not-started"),
        Outcome::NotStarted { .. } => (Class::Permanent, "default:cannot-run"),
    };
    Verdict { class, rule }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::TimeLimit;

    #[test]
    fn every_exit_code_has_the_documented_class() {
        for code in 0..=u8::MAX {
            let expected = match code {
                0 => Class::Success,
                126 | 127 | 130 | 141 => Class::Permanent,
                _ => Class::Transient,
            };
            assert_eq!(classify(&Outcome::Exited(code)).class, expected, "{code}");
        }
    }

    #[test]
    fn only_int_and_pipe_are_permanent_deaths() {
        for number in 1..=Signal::MAX {
            let expected = match Signal(number) {
                Signal::INT | Signal::PIPE => Class::Permanent,
                _ => Class::Transient,
            };
            assert_eq!(classify(&Outcome::Signaled(Signal(number))).class, expected);
        }
    }

    #[test]
    fn a_timeout_is_transient_and_start_failures_follow_their_kind() {
        let limit = TimeLimit::Attempt(Duration::from_secs(1));
        assert_eq!(classify(&Outcome::TimedOut(limit)).class, Class::Transient);
        for (failure, expected) in [
            (StartFailure::NotFound, Class::Permanent),
            (StartFailure::CannotRun, Class::Permanent),
            (StartFailure::Transient, Class::Transient),
        ] {
            let outcome = Outcome::NotStarted { failure, errno: 0, error: String::new() };
            assert_eq!(classify(&outcome).class, expected);
        }
    }
}
