//! Outcome → class, as the SDKs' own checkers and classifiers see it.

use std::time::Duration;

use retryx::policy::{Class, Classifier, Decision, Evidence, Mode, Outcome, ServerDelay, StopReason, TimeLimit};
use serde_json::{Value, json};

use crate::check::{Check, equal, flag, list, text, whole};
use crate::plans::plan;
use crate::replay::{self, Run};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("classification/throttling_checker", throttling);
    suite.rows("classification/transient_checker", transient);
    suite.rows("classification/modeled", retryable);
    suite.rows("classification/rust_http_status", status_action);
    suite.rows("classification/rust_error_kind", error_kind);
    suite.rows("classification/rust_classifier_chain", chain);
    suite.rows("classification/typescript_end_to_end", attempts);
    suite.rows("classification/python_specials", retryable);
}

/// What the standard mode takes an answer for.
fn class(row: &Value) -> Result<Class, String> {
    replay::class(&Classifier::new(Mode::Standard), row)
}

/// Whether a class is retried.
pub fn is_retried(class: Class) -> bool {
    matches!(class, Class::Transient | Class::Throttling)
}

fn throttling(row: &Row) -> Check {
    equal("throttling", &(class(row.value)? == Class::Throttling), &flag(row.value, "is_throttling")?)
}

fn transient(row: &Row) -> Check {
    equal("transient", &(class(row.value)? == Class::Transient), &flag(row.value, "is_transient")?)
}

fn retryable(row: &Row) -> Check {
    equal("retryable", &is_retried(class(row.value)?), &flag(row.value, "retryable")?)
}

/// A class as smithy-rs calls it.
fn action(class: Class) -> &'static str {
    if is_retried(class) { class.as_str() } else { "none" }
}

fn status_action(row: &Row) -> Check {
    equal("action", &action(class(row.value)?), &text(row.value, "action")?)
}

fn error_kind(row: &Row) -> Check {
    equal("error", &text(row.value, "error")?, &"timeout error")?;
    let outcome = Outcome::TimedOut(TimeLimit::Attempt(Duration::from_secs(1)));
    let class = Classifier::new(Mode::Standard).classify(&Evidence::of(&outcome)).class;
    equal("action", &action(class), &text(row.value, "action")?)
}

/// A verdict of the status, then the AWS classifier with code and header.
fn chain(row: &Row) -> Check {
    let (previous, status) = match &row.value["previous"] {
        Value::Null => ("none", 400),
        previous if previous == "transient" => ("transient", 500),
        other => return Err(format!("previous {other} is not known")),
    };
    equal("previous", &action(class(&json!({ "status": status }))?), &previous)?;
    let header = row.value["header"].as_str();
    let headers = header.map_or_else(|| json!({}), |value| json!({ "x-amz-retry-after": value }));
    let answer = json!({ "status": status, "headers": headers, "code": row.value["own_code"] });
    let result = &row.value["result"];
    let (expected, delay) = match result {
        Value::Null => ("none", None),
        same if same == "unchanged" => (previous, None),
        _ => (text(result, "kind")?, Some(Duration::from_millis(whole(result, "server_delay_ms")?))),
    };
    equal("class", &action(class(&answer)?), &expected)?;
    let wanted = replay::server_delay(Mode::Standard, &replay::answer(&answer)?).map(ServerDelay::wanted);
    // What is not retried has a header that nobody reads.
    if result.is_null() { Ok(()) } else { equal("server delay", &wanted, &delay) }
}

fn attempts(row: &Row) -> Check {
    let plan = plan(&["--mode", "standard"])?;
    let mut run = Run::new(&plan);
    let mut end = None;
    for (status, code) in list(row.value, "statuses")?.iter().zip(list(row.value, "codes")?) {
        equal("ended before the last answer", &end, &None)?;
        match replay::decide(&mut run, &json!({ "status": status, "code": code }), Duration::ZERO)? {
            Decision::Retry(_) => {}
            Decision::Stop(reason) | Decision::StopAfter(_, reason) => end = Some(reason),
        }
    }
    equal("attempts", &run.session.attempts(), &whole(row.value, "attempts")?)?;
    let succeeds = list(row.value, "statuses")?.last().is_some_and(|status| status == 200);
    equal("end", &end, &Some(if succeeds { StopReason::Success } else { StopReason::Permanent }))
}
