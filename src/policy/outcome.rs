//! What one attempt came to.

use std::time::Duration;

use super::Signal;

/// Which of the user's time limits ended an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// `--timeout`, the limit on one attempt.
    Attempt(Duration),
    /// `--idle-timeout`, the limit on silence.
    Idle(Duration),
    /// `--connect-timeout`, the limit on making a connection.
    Connect(Duration),
    /// `--total-timeout`, the limit on the whole run.
    Total(Duration),
    /// `--kill-after`, given with a TERM that somebody sent, where KILL did not help.
    KillAfter(Duration),
}

/// Why a command could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// No such command: exit status 127.
    NotFound,
    /// It is there and cannot be run: exit status 126.
    CannotRun,
    /// An obstacle that passes by itself, such as "text file busy" or no free
    /// processes for a moment: retried, and 126 in the end.
    Transient,
}

/// What another attempt could come to after a failure of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// The same.
    Same,
    /// It could fare better.
    Better,
    /// It could after a rest: who leads to the server is asked too often.
    BetterAfterRest,
}

/// How one attempt ended. A failed attempt is an outcome, never an error of retryx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The command exited with this code.
    Exited(u8),
    /// The command was killed by this signal.
    Signaled(Signal),
    /// A time limit ended the attempt, whatever the dying command returned.
    TimedOut(TimeLimit),
    /// A server answered with this status.
    Responded(u16),
    /// No answer, or none that is whole.
    TransportFailed {
        /// curl's exit code for it.
        code: u8,
        /// What another attempt could come to.
        prospect: Prospect,
        /// More, in words.
        error: String,
    },
    /// A signal that ends runs cut a request off.
    Interrupted(Signal),
    /// The command was never started.
    NotStarted {
        /// The kind of obstacle.
        failure: StartFailure,
        /// The system's error number.
        errno: i32,
        /// The system's words for it.
        error: String,
    },
}
