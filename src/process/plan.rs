//! What a run asks of its attempts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::stdin::Source;
use crate::policy::{Lookout, Signal};

/// How attempts are run; immutable for a run.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the user's")]
pub struct SupervisionPlan {
    /// The program and its arguments; one string with `shell`.
    pub command: Vec<OsString>,
    /// Variables set for the command beside the inherited ones.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the command is a string for the shell.
    pub shell: bool,
    /// Whether each attempt leads a process group of its own.
    pub own_group: bool,
    /// What an attempt gets as standard input.
    pub stdin: Source,
    /// What becomes of standard output and standard error.
    pub outputs: [Output; 2],
    /// What is looked for in them.
    pub lookout: Lookout,
    /// Where what is kept of them goes, once it is too much for memory.
    pub spool_folder: PathBuf,
    /// The limit on one attempt, on the clock that stands still with the machine.
    pub timeout: Option<Duration>,
    /// The limit on the silence of an attempt, on the same clock.
    pub idle_timeout: Option<Duration>,
    /// The limit on the run, on the clock that goes on.
    pub total_timeout: Option<Duration>,
    /// What a limit sends first.
    pub kill_signal: Signal,
    /// How long after it KILL follows.
    pub kill_after: Duration,
    /// Whether KILL also follows a TERM that somebody sent (an explicit `--kill-after`).
    pub kill_after_term: bool,
    /// Whether a further attempt is possible at all.
    pub may_retry: bool,
    /// Whether a person who looks on is shown how long a wait takes.
    pub counts_down: bool,
    /// `RETRYX_RUN_ID`.
    pub run_id: String,
    /// `RETRYX_RUN_MAX_ATTEMPTS`.
    pub max_attempts: String,
}

/// What happens to an output stream of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Each attempt writes to it directly.
    Each,
    /// Only the last attempt's bytes are written, when it is over.
    Final,
    /// As final, and nothing unless the run succeeds.
    Success,
}
