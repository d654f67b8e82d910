//! The parser's errors in retryx's own form: one line, with the remedy.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::options::{OPTIONS, Sub};
use super::{UsageError, foreign_to, refused};

const SEE: &str = "see retryx --help";

/// One line for an error of the parser.
pub(super) fn usage_error(error: &Error, sub: Sub) -> UsageError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let option = context(ContextKind::InvalidArg);
    let value = context(ContextKind::InvalidValue);
    // `--timeout <DURATION>` → `--timeout`
    let name = option.split(' ').next().unwrap_or_default();
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
    UsageError(match error.kind() {
        ErrorKind::UnknownArgument => match context(ContextKind::SuggestedArg) {
            meant if meant.is_empty() && sub == Sub::Quota => format!(
                "unknown option '{option}'; see retryx quota --help (to run a program called quota: retryx -- quota ...)"
            ),
            meant if meant.is_empty() => {
                format!("unknown option '{option}'; {SEE} (what belongs to the command comes after its name)")
            }
            meant => format!("unknown option '{option}'; did you mean '{meant}'? {SEE}"),
        },
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{name} needs a value; one that begins with a dash is written {name}=-…; {SEE}")
        }
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
