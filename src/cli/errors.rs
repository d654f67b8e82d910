//! The parser's errors in retryx's own form: one line, with the remedy.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::options::{OPTIONS, Opt, Sub};
use super::{UsageError, foreign_to, refused};

const SEE: &str = "see retryx --help";

/// One line for an error of the parser that read these words.
pub(super) fn usage_error(error: &Error, sub: Sub, words: &[OsString]) -> UsageError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let option = context(ContextKind::InvalidArg);
    let value = context(ContextKind::InvalidValue);
    // `--timeout <DURATION>` → `--timeout`, `--verbose...` → `--verbose`
    let name = option.split(' ').next().unwrap_or_default().trim_end_matches("...");
    if let Some(option) =
        Some(name).filter(|_| error.kind() == ErrorKind::UnknownArgument).and_then(|name| lacks_value(name, sub, words))
    {
        return UsageError(needs_value(&format!("--{}", option.long)));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && sub == Sub::Http
        && let Some(refusal) = refused::refusal(name)
    {
        return UsageError(refusal);
    }
    if error.kind() == ErrorKind::UnknownArgument
        && sub == Sub::Quota
        && let Some(option) = OPTIONS.iter().find(|option| option.of(Sub::Run) && option.is_called(name))
    {
        return foreign_to(sub, option);
    }
    // What switches an option off that is not given is no option of its own.
    let negated = name
        .strip_prefix("--no-")
        .and_then(|rest| OPTIONS.iter().find(|option| option.of(sub) && option.long == rest && option.value.is_none()));
    if let Some(option) = negated.filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        return UsageError(format!("unknown option '{name}'; leave --{} out instead", option.long));
    }
    UsageError(match error.kind() {
        ErrorKind::UnknownArgument => {
            match Some(context(ContextKind::SuggestedArg)).filter(|meant| is_close(name, meant)).unwrap_or_default() {
                meant if meant.is_empty() && sub == Sub::Quota => format!(
                    "unknown option '{option}'; see retryx quota --help (to run a program called quota: retryx -- quota ...)"
                ),
                meant if meant.is_empty() && sub == Sub::Http => {
                    format!("unknown option '{option}'; see retryx http --help")
                }
                meant if meant.is_empty() => {
                    format!("unknown option '{option}'; {SEE} (what belongs to the command comes after its name)")
                }
                meant => format!("unknown option '{option}'; did you mean '{meant}'? {SEE}"),
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => needs_value(name),
        ErrorKind::InvalidValue => {
            format!("{name}: '{value}' is not one of: {}", context(ContextKind::ValidValue))
        }
        ErrorKind::TooManyValues => format!("{name} takes no value, but '{value}' was given; {SEE}"),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}; {SEE}", first.strip_prefix("error: ").unwrap_or(first))
        }
    })
}

fn needs_value(name: &str) -> String {
    format!("{name} needs a value; one that begins with a dash is written {name}=-…; {SEE}")
}

/// The option whose value the word may be that an unknown name was read in: the word before
/// is that of an option which takes a value.
fn lacks_value(unknown: &str, sub: Sub, words: &[OsString]) -> Option<&'static Opt> {
    let is_read_in = |word: &OsString| match word.as_bytes() {
        [b'-', b'-', ..] => word.as_bytes().split(|&byte| byte == b'=').next() == Some(unknown.as_bytes()),
        [b'-', letters @ ..] => unknown.as_bytes().strip_prefix(b"-").is_some_and(|letter| letters.starts_with(letter)),
        _ => false,
    };
    let at = words.iter().position(is_read_in)?;
    let before = words[..at].last()?;
    let by_letter =
        |byte: u8| OPTIONS.iter().find(|option| option.of(sub) && option.short_of(sub) == Some(byte.into()));
    let option = match before.as_bytes() {
        [b'-', b'-', ..] => OPTIONS.iter().find(|option| option.of(sub) && option.is_long(before)),
        [b'-', flags @ .., last]
            if flags.iter().all(|&flag| by_letter(flag).is_some_and(|flag| flag.value.is_none())) =>
        {
            by_letter(*last)
        }
        _ => None,
    };
    option.filter(|option| option.value.is_some())
}

/// Whether one name may be the other with a slip or two in it.
fn is_close(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // The edits that make the beginning of one the beginning of the other, row by row.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, byte) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (column, known) in other.iter().enumerate() {
            let replaced = before + usize::from(byte != known);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    3 * row[other.len()] <= one.len().max(other.len()).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_close_is_suggested() {
        for (one, other) in [("--max-attempt", "--max-attempts"), ("--sient", "--silent"), ("--tiemout", "--timeout")] {
            assert!(is_close(one, other), "{one} {other}");
        }
        for (one, other) in [("--wat", "--data"), ("--no-fail", "--quota-refill"), ("--x", "--get"), ("--foo", "")] {
            assert!(!is_close(one, other), "{one} {other}");
        }
    }
}
