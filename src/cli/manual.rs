//! The words of the manual that are not options: shared by `--help` and `man/retryx.1`.

use std::fmt::Write as _;

use crate::exit;

/// The first paragraph.
pub const ABOUT: &str = "Runs a command and repeats it under the retry policy that the AWS SDKs or Google Cloud \
document, until it succeeds, fails for good, or the budget for retrying is spent. Around a command that succeeds at \
once it changes nothing: same bytes, same exit status, same terminal, same signals.";

/// The exit statuses, as text.
pub fn exit_statuses() -> String {
    let mut text = String::new();
    for (status, meaning) in exit::TABLE {
        let _ = writeln!(text, "  {status}\n          {meaning}");
    }
    text
}

/// What stands below the options in `--help`.
pub fn after_help() -> String {
    format!(
        "A duration is in seconds (300, 0.5, .3) or carries a unit (250ms, 5m, 1h 30m).\n\n\
         Exit status:\n{}\nThe manual, retryx(1), says more: classes, signals, standard input, events.",
        exit_statuses()
    )
}
