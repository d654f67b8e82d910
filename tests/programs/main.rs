//! What real programs say when they fail, and what retryx takes it for: each row of
//! `src/programs/presets.toml` for permanent or throttling, provoked in the program itself.
//!
//! A case runs the program under retryx against a server on loopback, or against nothing,
//! and compares the class and the rule of its first attempt. A last trial fails where a
//! row has no case.

mod curl;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use support::{Finished, Lab, skipped};

/// A failure that a real program is brought to.
#[derive(Clone, Copy)]
pub struct Case {
    /// The preset that knows it.
    pub preset: &'static str,
    /// What decides: `is` of its row, or `status 404`.
    pub row: &'static str,
    /// The class it must get.
    pub class: &'static str,
    /// A word that tells this case from others of the same row; empty for the only one.
    pub how: &'static str,
    /// Runs `retryx -n 1 … -- PROGRAM …` to the failure, or says what this machine lacks.
    pub provoke: fn(&Lab) -> Result<Finished, String>,
}

impl Case {
    fn name(&self) -> String {
        let words = format!("{} {} {}", self.preset, self.row, self.how);
        words.split_whitespace().collect::<Vec<_>>().join("_")
    }

    fn check(&self) -> Result<(), Failed> {
        let lab = Lab::new();
        let finished = match (self.provoke)(&lab) {
            Ok(finished) => finished,
            Err(reason) => {
                skipped(&reason);
                return Ok(());
            }
        };
        let attempts = finished.of("attempt_finished");
        let attempt = attempts.first().ok_or_else(|| format!("no attempt: {}", finished.stderr))?;
        let seen = (attempt["class"].as_str().unwrap_or_default(), attempt["rule"].as_str().unwrap_or_default());
        let wanted = (self.class, &*format!("{} preset, {}", self.preset, self.row));
        if seen == wanted {
            return Ok(());
        }
        Err(format!("{seen:?}, not {wanted:?}; {}; {attempt}", finished.stderr).into())
    }
}

fn main() -> ExitCode {
    let cases = [curl::CASES].concat();
    let trials = cases.into_iter().map(|case| Trial::test(case.name(), move || case.check()));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
