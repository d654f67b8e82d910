//! `retryx explain`: the class of an outcome, and the rule that decided.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use serde_json::json;

use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::config::Plan;
use crate::policy::matcher::Stream;
use crate::policy::response::Response;
use crate::policy::{Evidence, Outcome, Signal, TimeLimit, Verdict};

/// What is to be explained.
#[derive(Default)]
struct Asked {
    outcome: Option<(String, Outcome)>,
    response: Response,
    program: Option<OsString>,
    stdout: OsString,
    stderr: OsString,
    json: bool,
}

/// The answer, as text or JSON.
pub fn show(given: &[Given], command: &[OsString]) -> Result<String, UsageError> {
    if let Some(word) = command.first() {
        return Err(UsageError(format!(
            "explain runs nothing, but '{}' was given; name the outcome with --exit, --signal, --timed-out or --status",
            word.to_string_lossy()
        )));
    }
    let asked = read(given)?;
    let Some((_, outcome)) = &asked.outcome else {
        return Err(UsageError(
            "explain needs an outcome: --exit CODE, --signal NAME, --timed-out, or --status N with --header and --body"
                .into(),
        ));
    };
    let program = asked.program.iter().cloned().collect();
    let plan = Plan::resolve(given, program, String::new())?;
    let verdict = judge(&asked, outcome, &plan);
    if asked.json {
        let mut answer = json!({ "class": verdict.class.as_str(), "rule": verdict.rule });
        if let Some(advice) = verdict.advice {
            answer["hint"] = advice.into();
        }
        return Ok(format!("{answer}\n"));
    }
    let hint = verdict.advice.map(|advice| format!("hint:  {advice}\n")).unwrap_or_default();
    Ok(format!("class: {}\nrule:  {}\n{hint}", verdict.class, verdict.rule))
}

fn judge(asked: &Asked, outcome: &Outcome, plan: &Plan) -> Verdict {
    let error_code = match outcome {
        Outcome::Responded(_) => asked.response.error_code(),
        _ => None,
    };
    let sightings = plan.supervision.lookout.sightings(&[
        (Stream::Stdout, asked.stdout.as_bytes()),
        (Stream::Stderr, asked.stderr.as_bytes()),
        (Stream::Body, &asked.response.body),
    ]);
    plan.classifier.classify(&Evidence {
        error_code: error_code.as_deref(),
        allowance_used_up: asked.response.allowance_is_used_up(),
        sightings: &sightings,
        ..Evidence::of(outcome)
    })
}

fn read(given: &[Given]) -> Result<Asked, UsageError> {
    let mut asked = Asked::default();
    for option in given {
        let wrong = |what: &str| UsageError(format!("{}: '{}' {what}", option.place, option.value.to_string_lossy()));
        let text = option.value.to_str().unwrap_or("\u{fffd}");
        let outcome = match option.id {
            Id::Exit => {
                let code = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
                Some(Outcome::Exited(code.ok_or_else(|| wrong("is not an exit code; valid are 0 to 255"))?))
            }
            Id::Signal => {
                let signal =
                    Signal::parse(text).ok_or_else(|| wrong("is not a signal; valid are names and numbers"))?;
                Some(Outcome::Signaled(signal))
            }
            Id::TimedOut => Some(Outcome::TimedOut(TimeLimit::Attempt(Duration::ZERO))),
            Id::Status => {
                let status = text.parse().ok().filter(|status| (100..600).contains(status) && text.len() == 3);
                Some(Outcome::Responded(status.ok_or_else(|| wrong("is not an HTTP status; valid are 100 to 599"))?))
            }
            Id::Header => {
                let (name, value) = text
                    .split_once(':')
                    .filter(|(name, _)| !name.trim().is_empty())
                    .ok_or_else(|| wrong("is not a header; write it as 'Name: value'"))?;
                asked.response.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                None
            }
            Id::Body => {
                asked.response.body = option.value.as_bytes().to_vec();
                None
            }
            _ => {
                match option.id {
                    Id::Program => asked.program = Some(option.value.clone()),
                    Id::StdoutText => asked.stdout.clone_from(&option.value),
                    Id::StderrText => asked.stderr.clone_from(&option.value),
                    Id::ExplainFormat => asked.json = format(text).ok_or_else(|| wrong("is not one of: text, json"))?,
                    _ => {}
                }
                None
            }
        };
        if let Some(outcome) = outcome {
            if let Some((other, _)) = &asked.outcome
                && *other != option.place
            {
                return Err(UsageError(format!("{other} and {} are two outcomes; explain takes one", option.place)));
            }
            asked.outcome = Some((option.place.clone(), outcome));
        }
    }
    let of_a_command = [&asked.stdout, &asked.stderr].iter().any(|text| !text.is_empty()) || asked.program.is_some();
    let answered = matches!(asked.outcome, Some((_, Outcome::Responded(_))));
    if !answered && (!asked.response.headers.is_empty() || !asked.response.body.is_empty()) {
        return Err(UsageError("--header and --body belong to an answer: give its --status too".into()));
    }
    if answered && of_a_command {
        return Err(UsageError(
            "--program, --stdout-text and --stderr-text belong to a command: give its --exit, --signal or --timed-out"
                .into(),
        ));
    }
    Ok(asked)
}

fn format(text: &str) -> Option<bool> {
    match text {
        "text" => Some(false),
        "json" => Some(true),
        _ => None,
    }
}
