//! The AWS CLI's legacy mode: its lists, delays and counts.

use std::time::Duration;

use retryx::config::Plan;
use retryx::policy::{Classifier, Decision, Jitter, Mode, StopReason};
use serde_json::{Value, json};

use crate::backoff::{doubling, wait};
use crate::check::{Check, ensure, equal, float, same_time, seconds, text, whole};
use crate::classification::is_retried;
use crate::plans::plan;
use crate::replay::{self, Run};
use crate::scripted::{Always, GREATEST};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("legacy/policies_default", retried);
    suite.rows("legacy/policies_by_service", retried);
    suite.rows("legacy/max_attempts", default_attempts);
    suite.rows("legacy/delay/default", default_delay);
    suite.rows("legacy/delay/dynamodb", dynamodb_delay);
    suite.rows("legacy/delay_vectors", delay);
    suite.rows("legacy/dynamodb_delays_derived", dynamodb_delays);
    suite.rows("legacy/max_attempts_vectors", after_attempts);
    suite.rows("legacy/retries_by_configuration", requests);
}

fn retried(row: &Row) -> Check {
    let class = replay::class(&Classifier::new(Mode::Legacy), row.value)?;
    ensure(is_retried(class), || format!("it is {class}"))
}

/// The legacy mode, with the defaults of a service.
fn legacy(service: &str, more: &[&str]) -> Result<Plan, String> {
    let service: &[_] = if service == "dynamodb" { &["--service", "dynamodb"] } else { &[] };
    plan(&[&["--mode", "legacy"], service, more].concat())
}

fn default_attempts(row: &Row) -> Check {
    let attempts = legacy(&row.key, &[])?.session.limits.max_attempts;
    equal("attempts", &attempts.map(std::num::NonZeroU64::get), &row.value.as_u64())
}

/// The fields `formula` and `cap`: the delays that the plan draws, and how far they go.
fn documented_delay(row: &Row, service: &str, documented: &str, jittered: bool, base: f64) -> Check {
    let rule = legacy(service, &[])?.session.backoff;
    match row.key.as_str() {
        "formula" => {
            equal("formula", &row.value.as_str(), &Some(documented))?;
            for (u, i) in [0.0, 0.25, 0.5].into_iter().flat_map(|u| (0..10).map(move |i| (u, i))) {
                let grown = base * 2f64.powi(i);
                let expected = if jittered { u * grown } else { grown };
                let exponent = u64::try_from(i).map_err(|error| error.to_string())?;
                same_time(&format!("retry {} at u = {u}", i + 1), wait(&rule, exponent, u), expected)?;
            }
            Ok(())
        }
        "cap" => equal("cap", &(row.value, rule.cap), &(&Value::Null, Duration::MAX)),
        other => Err(format!("{other} is not known")),
    }
}

fn default_delay(row: &Row) -> Check {
    documented_delay(row, "", "random(0,1) * 2^(attempt-1) seconds", true, 1.0)
}

fn dynamodb_delay(row: &Row) -> Check {
    documented_delay(row, "dynamodb", "0.05 * 2^(attempt-1) seconds, no jitter", false, 0.05)
}

fn delay(row: &Row) -> Check {
    let row = row.value;
    equal("growth", &row["growth"].as_u64(), &Some(2))?;
    if row["error"].is_string() {
        let option = format!("--base-delay={}", row["base"]);
        return ensure(legacy("", &[&option]).is_err(), || format!("{option} is taken"));
    }
    let i = whole::<u64>(row, "attempt")? - 1;
    if row["base"] == "rand" {
        let rule = doubling(Duration::from_secs(1), Duration::MAX, Jitter::Full);
        same_time("least", wait(&rule, i, 0.0), float(&row["range"][0])?)?;
        return same_time("greatest", wait(&rule, i, GREATEST), float(&row["range"][1])?);
    }
    same_time(
        "delay",
        wait(&doubling(seconds(row, "base")?, Duration::MAX, Jitter::None), i, 0.0),
        float(&row["delay"])?,
    )
}

fn dynamodb_delays(row: &Row) -> Check {
    let rule = legacy("dynamodb", &[])?.session.backoff;
    let i = row.key.parse().map_err(|_| "a list was expected".to_owned())?;
    for class in [retryx::policy::Class::Transient, retryx::policy::Class::Throttling] {
        same_time("delay", rule.delay(i, class, None, &mut Always(0.5)).wait, float(row.value)?)?;
    }
    Ok(())
}

/// Whether the answer that ends attempt N is followed by another.
fn after_attempts(row: &Row) -> Check {
    let plan = legacy("", &["--max-attempts", &row.value["max_attempts"].to_string()])?;
    let mut run = Run::new(&plan);
    let attempt: u64 = whole(row.value, "attempt")?;
    for _ in 1..attempt {
        let decision = replay::decide(&mut run, &json!({ "status": 500 }), Duration::ZERO)?;
        ensure(matches!(decision, Decision::Retry(_)), || format!("ended early: {decision:?}"))?;
    }
    let decision = replay::decide(&mut run, row.value, Duration::ZERO)?;
    equal("retry", &Some(matches!(decision, Decision::Retry(_))), &row.value["retry"].as_bool())
}

/// How many requests a service that always fails gets. The client's `max_attempts` counts
/// retries, retryx's counts runs.
fn requests(row: &Row) -> Check {
    let service = text(row.value, "service")?;
    let retries = row.value["client_max_attempts"].as_u64();
    let given = retries.map(|retries| format!("--max-attempts={}", retries + 1));
    let plan = legacy(service, &given.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut run = Run::new(&plan);
    let end = loop {
        if let Decision::Stop(reason) = replay::decide(&mut run, &json!({ "status": 500 }), Duration::ZERO)? {
            break reason;
        }
    };
    equal("end", &end, &StopReason::Attempts)?;
    equal("requests", &run.session.attempts(), &whole(row.value, "requests")?)?;
    equal("retries", &(run.session.attempts() - 1), &whole(row.value, "retries")?)
}
