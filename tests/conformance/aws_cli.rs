//! The AWS CLI's exit codes and error lines.

use std::cell::OnceCell;

use retryx::policy::matcher::Stream;
use retryx::policy::{Class, Classifier, Evidence, Lookout, Mode, Outcome, Preset, Verdict};
use retryx::programs::Program;
use serde_json::Value;

use crate::check::{Check, ensure, equal, list, text};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("aws_cli/v2_exit_codes", exit_code);
    suite.rows("aws_cli/v1_exit_codes", exit_code);
    suite.rows("aws_cli/stderr", line);
    suite.rows("aws_cli/stderr_regex", pattern);
    suite.rows("aws_cli/client_error_fields", client_error);
    suite.rows("aws_cli/network_messages", network);
}

thread_local! {
    static AWS: OnceCell<(Classifier, Lookout)> = const { OnceCell::new() };
}

/// What the preset makes of an exit and of what standard error says.
fn judge(code: u8, stderr: &str) -> Verdict {
    AWS.with(|aws| {
        let (classifier, lookout) = aws.get_or_init(|| {
            let program = Program::named("aws").expect("a preset that reads").expect("the preset aws");
            let preset: Preset = program.preset;
            let mut lookout = Lookout::default();
            preset.watched().for_each(|pattern| lookout.add(pattern, true));
            (Classifier { preset: Some(preset), ..Classifier::new(Mode::Standard) }, lookout)
        });
        let (outcome, sightings) = (Outcome::Exited(code), lookout.sightings(&[(Stream::Stderr, stderr.as_bytes())]));
        classifier.classify(&Evidence { sightings: &sightings, ..Evidence::of(&outcome) })
    })
}

/// What an exit is taken for where standard error says this.
pub fn class(code: u8, stderr: &str) -> Class {
    judge(code, stderr).class
}

/// The code that a text holds, or the status in its place.
pub fn code_of(stderr: &str) -> Option<String> {
    let verdict = judge(255, stderr);
    verdict.error_code.or(verdict.http_status.map(|status| status.to_string()))
}

/// Success and the user's interrupt are told by the code alone.
fn exit_code(row: &Row) -> Check {
    let expected = match row.key.as_str() {
        "0" => Class::Success,
        "130" => Class::Permanent,
        other => return Err(format!("{other} is not known")),
    };
    let code = row.key.parse().map_err(|_| "it is no exit code".to_owned())?;
    equal("class", &class(code, ""), &expected)
}

fn line(row: &Row) -> Check {
    equal("code", &code_of(text(row.value, "text")?).as_deref(), &row.value["code"].as_str())
}

/// The code that the vectors' own pattern finds in a text.
pub fn code_by_pattern<'a>(pattern: &Value, stderr: &'a str) -> Result<Option<&'a str>, String> {
    let pattern = regex::Regex::new(pattern.as_str().unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok(pattern.captures(stderr).and_then(|groups| groups.name("code")).map(|code| code.as_str()))
}

/// Pattern and product find the same, in the samples and in texts without an error line.
fn pattern(row: &Row) -> Check {
    let samples = list(row.holder, "stderr")?.iter().filter_map(|sample| sample["text"].as_str());
    let network = list(row.holder, "network_messages")?.iter().filter_map(Value::as_str);
    for text in samples.chain(network) {
        for text in [text.to_owned(), format!("aws: [ERROR]: {text}"), format!("warning\n\n{text}\nmore")] {
            equal(&text, &code_of(&text).as_deref(), &code_by_pattern(row.value, &text)?)?;
        }
    }
    Ok(())
}

/// The line that the CLI makes of these fields.
fn client_error(row: &Row) -> Check {
    let (code, message) = (text(row.value, "code")?, text(row.value, "message")?);
    let suffix = text(row.value, "retry_suffix")?;
    let line = format!("An error occurred ({code}) when calling the Op operation{suffix}: {message}");
    equal("code", &code_of(&line).as_deref(), &Some(code))
}

fn network(row: &Row) -> Check {
    let message = row.value.as_str().ok_or("the message is no text")?;
    ensure(code_of(message).is_none(), || "a code was found".to_owned())?;
    equal("class", &class(255, message), &Class::Transient)
}
