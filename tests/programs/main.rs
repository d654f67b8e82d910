//! What real programs say when they fail, and what retryx takes it for: each row of
//! `src/programs/presets.toml` for permanent or throttling, provoked in the program itself.
//!
//! A case runs the program under retryx against a server on loopback, or against nothing,
//! and compares the class and the rule of its first attempt. A last trial fails where a
//! row has no case.

mod apt_get;
mod aws;
mod aws_endpoint;
mod aws_runs;
mod cargo;
mod curl;
mod docker;
mod git;
mod loopback;
mod npm;
mod pip;
mod postgres;
mod psql;
mod rsync;
mod server;
mod sole_retrier;
mod ssh;
mod sshd;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "what the other end-to-end tests need")]
mod support;
mod tls;
mod wget;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use retryx::policy::Class;
use retryx::programs::Program;
use support::{Finished, Lab, skipped};

/// A failure that a real program is brought to.
#[derive(Clone, Copy)]
pub struct Case {
    /// The preset that knows it.
    pub preset: &'static str,
    /// What decides: `is` of its row, or `status 404`; the whole rule where it is none of
    /// the preset's (`default:exit`).
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
        let of_preset = format!("{} preset, {}", self.preset, self.row);
        let wanted = (self.class, if self.row.contains(':') { self.row } else { &*of_preset });
        if seen == wanted {
            return Ok(());
        }
        Err(format!("{seen:?}, not {wanted:?}; {}; {attempt}", finished.stderr).into())
    }
}

/// Each row that says more than the defaults would is provoked by some case.
fn every_row_has_a_case(cases: &[Case]) -> Result<(), Failed> {
    let mut missing = Vec::new();
    for name in Program::names() {
        let program = Program::named(name)?.ok_or("a name without a preset")?;
        for row in program.preset.rows.iter().filter(|row| row.class != Class::Transient) {
            if !cases.iter().any(|case| (case.preset, case.row, case.class) == (name, &row.is, row.class.as_str())) {
                missing.push(format!("{name}: {}", row.is));
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(format!("rows without a case: {}", missing.join("; ")).into()) }
}

fn main() -> ExitCode {
    let cases = [
        apt_get::CASES,
        aws::CASES,
        cargo::CASES,
        curl::CASES,
        docker::CASES,
        git::CASES,
        npm::CASES,
        pip::CASES,
        psql::CASES,
        rsync::CASES,
        ssh::CASES,
        wget::CASES,
    ]
    .concat();
    let mut trials: Vec<_> = cases.iter().map(|&case| Trial::test(case.name(), move || case.check())).collect();
    trials.extend(aws_runs::trials());
    trials.extend(sole_retrier::trials());
    trials.push(Trial::test("every_row_has_a_case", move || every_row_has_a_case(&cases)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
