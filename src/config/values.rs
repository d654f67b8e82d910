//! The values of options, read from text.

use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use super::EventsTarget;
use crate::cli::{Given, UsageError};
use crate::policy::matcher::{self, Check, Pattern, Stream, Term};
use crate::policy::{MOST_REFILL, Signal};
use crate::process::{Output, Source};
use crate::programs::Program;
use crate::store::{RedisAddress, ScopeName, StorePlan};
use crate::units::{DURATION_FORMS, parse_duration};

/// An error that names the place, the value and what would be valid.
fn wrong(given: &Given, what: &str) -> UsageError {
    UsageError(format!("{}: '{}' {what}", given.place, given.value.to_string_lossy()))
}

/// What is wrong with a pattern that holds bytes as they are.
const NO_TEXT: &str = r"is no UTF-8 text; a byte is written as in /(?-u:\xff)/";

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

/// For how long a scope is kept: a duration above zero.
pub(super) fn scope_ttl(given: &Given) -> Result<Duration, UsageError> {
    match duration(given)? {
        Duration::ZERO => Err(wrong(given, "would forget a scope at once; without the option it is kept for 1h")),
        ttl => Ok(ttl),
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
    let kinds =
        [("auto", Source::Auto), ("replay", Source::Replay), ("inherit", Source::Inherit), ("null", Source::Null)];
    one_of(given, &kinds)
}

/// What becomes of an output stream.
pub(super) fn output(given: &Given) -> Result<Output, UsageError> {
    one_of(given, &[("each", Output::Each), ("final", Output::Final), ("success", Output::Success)])
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

/// A flag: given on the command line, or by a variable that says yes or no.
pub(super) fn flag(given: &Given) -> Result<bool, UsageError> {
    match text(given).to_ascii_lowercase().as_str() {
        "" | "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(wrong(given, "is neither yes nor no; valid are 1, true, yes, on, 0, false, no and off")),
    }
}

/// How much one giving of `--verbose` adds; a variable gives a number.
pub(super) fn verbosity(given: &Given) -> Result<u64, UsageError> {
    if given.value.is_empty() {
        return Ok(1);
    }
    let level = whole(text(given)).filter(|level| *level <= 2);
    level.ok_or_else(|| wrong(given, "is not a level; valid are 0, 1 and 2"))
}

/// The name of a preset, `auto` or `none`.
pub(super) fn preset(given: &Given) -> Result<String, UsageError> {
    let name = text(given);
    if ["auto", "none"].contains(&name) || Program::is_known(name) {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = Program::names().collect();
    Err(wrong(given, &format!("is no preset; valid are auto, none, {}", names.join(", "))))
}

/// A pattern whose one group captures a delay.
pub(super) fn delay_pattern(given: &Given) -> Result<Pattern, UsageError> {
    const FORM: &str = "valid is a pattern with one group, as in stderr:/retry in (\\d+)s/";
    if given.value.to_str().is_none() {
        return Err(wrong(given, NO_TEXT));
    }
    match Pattern::parse(text(given), Check::Now) {
        Ok(pattern) if pattern.stream() == Stream::Body => {
            Err(wrong(given, &format!("speaks of an answer's body, and a command has none; {FORM}")))
        }
        Ok(pattern) if pattern.groups() == 1 => Ok(pattern),
        Ok(pattern) => Err(wrong(given, &format!("has {} groups; {FORM}", pattern.groups()))),
        Err(error) => Err(UsageError(format!("{}: {error}; {FORM}", given.place))),
    }
}

/// A schedule: durations, separated by commas.
pub(super) fn delays(given: &Given) -> Result<Vec<Duration>, UsageError> {
    let list: Option<Vec<_>> = text(given).split(',').map(|delay| parse_duration(delay.trim())).collect();
    list.ok_or_else(|| {
        wrong(given, &format!("is not a list of durations, as in 1s,5s,30s; valid are {DURATION_FORMS}"))
    })
}

/// Conditions.
pub(super) fn terms(given: &Given) -> Result<Vec<Term>, UsageError> {
    if given.value.to_str().is_none() {
        return Err(wrong(given, NO_TEXT));
    }
    matcher::parse(text(given)).map_err(|problem| UsageError(format!("{}: {problem}", given.place)))
}

/// The size of a quota.
pub(super) fn quota_capacity(given: &Given) -> Result<u32, UsageError> {
    let number = whole(text(given)).and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| wrong(given, "is not a number of tokens; valid is a whole number from 0 to 4294967295"))
}

/// What `--quota-cost` says.
#[derive(Clone, Copy)]
pub(super) struct QuotaCost {
    /// Tokens after a transient failure.
    pub(super) transient: Option<u32>,
    /// Tokens after a throttling failure.
    pub(super) throttling: Option<u32>,
}

/// The price of a retry.
pub(super) fn quota_cost(given: &Given) -> Result<QuotaCost, UsageError> {
    let problem =
        || wrong(given, "is not a price in tokens; valid are 5 and transient=14,throttling=5, up to 4294967295");
    let number = |text: &str| whole(text).and_then(|number| u32::try_from(number).ok()).ok_or_else(problem);
    if let Ok(cost) = number(text(given)) {
        return Ok(QuotaCost { transient: Some(cost), throttling: Some(cost) });
    }
    let mut cost = QuotaCost { transient: None, throttling: None };
    for part in text(given).split(',') {
        match part.split_once('=') {
            Some(("transient", tokens)) if cost.transient.is_none() => cost.transient = Some(number(tokens)?),
            Some(("throttling", tokens)) if cost.throttling.is_none() => cost.throttling = Some(number(tokens)?),
            _ => return Err(problem()),
        }
    }
    Ok(cost)
}

/// Billionths of a token a second.
pub(super) fn rate(given: &Given) -> Result<u64, UsageError> {
    // A rate reads as a number of seconds does: a plain decimal.
    let plain = text(given).bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = parse_duration(text(given)).filter(|_| plain);
    let nanos = number.map(|number| u64::try_from(number.as_nanos()).unwrap_or(u64::MAX));
    let is_zero = text(given).bytes().all(|byte| b"0.".contains(&byte));
    nanos.filter(|nanos| *nanos <= MOST_REFILL && (*nanos > 0 || is_zero)).ok_or_else(|| {
        wrong(given, "is not a rate in tokens a second; valid is 0, or a plain number from 0.000000001 to a million")
    })
}

/// The name of a scope.
pub(super) fn scope(given: &Given) -> Result<ScopeName, UsageError> {
    ScopeName::new(text(given))
        .filter(|_| given.value.to_str().is_some())
        .ok_or_else(|| wrong(given, &format!("is no name of a scope; valid is {}", ScopeName::FORM)))
}

/// Where scopes are kept.
pub(super) fn store(given: &Given) -> Result<StorePlan, UsageError> {
    match text(given) {
        "file" => Ok(StorePlan::Folder(None)),
        // The value may hold a password: nothing of it is shown.
        address => RedisAddress::parse(address)
            .map(StorePlan::Redis)
            .map_err(|problem| UsageError(format!("{}: {problem}", given.place))),
    }
}

/// A folder.
pub(super) fn folder(given: &Given) -> Result<PathBuf, UsageError> {
    if given.value.is_empty() {
        Err(wrong(given, "is no folder; for the default one leave it out"))
    } else {
        Ok(PathBuf::from(&given.value))
    }
}
