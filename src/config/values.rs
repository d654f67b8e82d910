//! The values of options, read from text.

use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use super::EventsTarget;
use crate::cli::{Given, UsageError};
use crate::policy::Signal;
use crate::process::Source;
use crate::units::{DURATION_FORMS, parse_duration};

/// An error that names the place, the value and what would be valid.
fn wrong(given: &Given, what: &str) -> UsageError {
    UsageError(format!("{}: '{}' {what}", given.place, given.value.to_string_lossy()))
}

fn text(given: &Given) -> &str {
    // What is no UTF-8 is no number, name or duration either.
    given.value.to_str().unwrap_or("\u{fffd}")
}

/// A duration, zero included.
pub(super) fn duration(given: &Given) -> Result<Duration, UsageError> {
    parse_duration(text(given)).ok_or_else(|| wrong(given, &format!("is not a duration; valid are {DURATION_FORMS}")))
}

/// A time limit: a duration above zero.
pub(super) fn limit(given: &Given) -> Result<Duration, UsageError> {
    match duration(given)? {
        Duration::ZERO => Err(wrong(given, "leaves no time at all; for no limit leave it out")),
        limit => Ok(limit),
    }
}

/// Digits only; what is beyond `u64` is its greatest number.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// What `--max-attempts` says; `None` is `unlimited`.
#[derive(Clone, Copy)]
pub(super) struct MaxAttempts(pub(super) Option<NonZeroU64>);

/// A number of attempts.
pub(super) fn max_attempts(given: &Given) -> Result<MaxAttempts, UsageError> {
    let forms = "a whole number from 1 (the first run counts), or 'unlimited'";
    match text(given) {
        "unlimited" => Ok(MaxAttempts(None)),
        text => match whole(text).map(NonZeroU64::new) {
            Some(Some(number)) => Ok(MaxAttempts(Some(number))),
            Some(None) => Err(wrong(given, &format!("would never run the command; valid is {forms}"))),
            None => Err(wrong(given, &format!("is not a number of attempts; valid is {forms}"))),
        },
    }
}

/// A seed.
pub(super) fn seed(given: &Given) -> Result<u64, UsageError> {
    let exact = text(given).parse().ok().filter(|_| whole(text(given)).is_some());
    exact.ok_or_else(|| wrong(given, "is not a seed; valid is a whole number from 0 to 2^64 - 1"))
}

/// A growth factor: a plain decimal number from 1.
pub(super) fn factor(given: &Given) -> Result<f64, UsageError> {
    let plain = text(given).bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text(given).parse().ok().filter(|number: &f64| plain && number.is_finite() && *number >= 1.0);
    number.ok_or_else(|| wrong(given, "is not a factor; valid is a number from 1, such as 1.5"))
}

/// An exit code.
pub(super) fn code(given: &Given) -> Result<u8, UsageError> {
    let number = whole(text(given)).and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| wrong(given, "is not an exit code; valid are 0 to 255"))
}

/// A signal.
pub(super) fn signal(given: &Given) -> Result<Signal, UsageError> {
    Signal::parse(text(given)).ok_or_else(|| {
        wrong(given, "is not a signal; valid are names (TERM, SIGINT, RTMIN+1) and numbers from 1 to 64")
    })
}

/// A word of a list.
pub(super) fn one_of<T: Copy>(given: &Given, words: &[(&str, T)]) -> Result<T, UsageError> {
    let known = words.iter().find(|(word, _)| *word == text(given));
    known.map(|(_, value)| *value).ok_or_else(|| {
        let list: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        wrong(given, &format!("is not one of: {}", list.join(", ")))
    })
}

/// What attempts read.
pub(super) fn stdin(given: &Given) -> Result<Source, UsageError> {
    one_of(given, &[("auto", Source::Auto), ("inherit", Source::Inherit), ("null", Source::Null)])
}

/// Where events go.
pub(super) fn events(given: &Given) -> Result<EventsTarget, UsageError> {
    let forms = "valid is a file name, or fd:N for a descriptor that is open";
    if given.value.is_empty() {
        return Err(wrong(given, &format!("is no file; {forms}")));
    }
    match given.value.as_bytes().strip_prefix(b"fd:") {
        None => Ok(EventsTarget::File(PathBuf::from(&given.value))),
        Some(digits) => std::str::from_utf8(digits)
            .ok()
            .filter(|digits| whole(digits).is_some())
            .and_then(|digits| digits.parse().ok())
            .map(EventsTarget::Descriptor)
            .ok_or_else(|| wrong(given, &format!("is no descriptor; {forms}"))),
    }
}
