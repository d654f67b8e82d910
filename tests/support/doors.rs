//! The doors of the tests to time, environment and programs, as `src/` has its own.

#![expect(clippy::disallowed_methods, reason = "the one home of these calls in the tests")]

use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a condition may take to come true before a test fails: far beyond what any of
/// them needs, since the machine may be slow and shared.
pub const LIMIT: Duration = Duration::from_secs(90);

/// How often a condition is looked at.
const PERIOD: Duration = Duration::from_millis(2);

/// A program to start.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// A variable of the environment of the tests themselves, if set and not empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Holds the test for a time that is part of what it tests; never a substitute for
/// awaiting something.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until the condition holds; fails the test, saying `what`, where it never does.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let timer = Timer::start();
    while !condition() {
        assert!(timer.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(PERIOD);
    }
}

/// Says that a test could not be made here; on CI every test must be.
#[track_caller]
pub fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
    assert!(variable("CI").is_none_or(|value| value != "true"), "skipped on CI: {reason}");
}

/// Measures time from its start.
pub struct Timer(Instant);

impl Timer {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
