//! Google's formula, statuses and deadline, and what its Rust client does alike.

use std::time::Duration;

use retryx::policy::{Classifier, Decision, Jitter, Mode, StopReason};
use serde_json::json;

use crate::backoff::{doubling, wait};
use crate::check::{Check, ensure, equal, number, same_time, seconds, text, whole};
use crate::classification::is_retried;
use crate::plans::plan;
use crate::replay::{self, Run};
use crate::scripted::GREATEST;
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("google/model_armor_formula_derived", formula);
    suite.rows("google/model_armor_statuses", status);
    suite.rows("google/gax_rust_delay_without_jitter", delay);
    suite.rows("google/gax_rust_full_jitter", jittered);
    suite.rows("google/gax_rust_builder_errors", refused);
    suite.rows("google/deadline_overshoot", deadline);
}

/// The random fraction is 1 - u, in (0, 1]: 0 is its limit, and reached to the microsecond.
fn formula(row: &Row) -> Check {
    let cap = row.value["maximum_backoff"].to_string();
    let rule = plan(&["--mode", "google", "--max-backoff", &cap])?.session.backoff;
    let u = (1.0 - number(row.value, "random_fraction")?).min(GREATEST);
    same_time("wait", wait(&rule, whole(row.value, "n")?, u), number(row.value, "wait_seconds")?)
}

fn status(row: &Row) -> Check {
    let retried = |retry_429| {
        let classifier = Classifier { retry_429, ..Classifier::new(Mode::Google) };
        replay::class(&classifier, row.value).map(is_retried)
    };
    let both = [retried(false)?, retried(true)?];
    let expected = match row.value["retry"].as_bool() {
        Some(retry) => [retry; 2],
        None if row.value["retry"] == "optional" => [false, true],
        None => return Err("it is neither told nor optional".to_owned()),
    };
    equal("retried without and with --retry-429", &both, &expected)
}

/// The attempt whose delay is told counts from 1.
fn retry(row: &Row) -> Result<u64, String> {
    whole::<u64>(row.value, "attempt").map(|attempt| attempt - 1)
}

fn delay(row: &Row) -> Check {
    equal("scaling", &row.value["scaling"].as_u64(), &Some(2))?;
    let rule = doubling(seconds(row.value, "initial")?, seconds(row.value, "maximum")?, Jitter::None);
    same_time("delay", wait(&rule, retry(row)?, 0.0), number(row.value, "delay")?)
}

fn jittered(row: &Row) -> Check {
    let rule = doubling(seconds(row.value, "initial")?, seconds(row.value, "maximum")?, Jitter::Full);
    let u = match text(row.value, "random")? {
        "lowest" => 0.0,
        "middle" => 0.5,
        "highest" => GREATEST,
        other => return Err(format!("{other} is not known")),
    };
    same_time("delay", wait(&rule, retry(row)?, u), number(row.value, "delay")?)
}

fn refused(row: &Row) -> Check {
    let options = [("base-delay", "initial"), ("max-backoff", "maximum"), ("factor", "scaling")];
    let options = options.map(|(option, key)| format!("--{option}={}", row.value[key]));
    let options: Vec<_> = ["--mode=exponential"].into_iter().chain(options.iter().map(String::as_str)).collect();
    let problem = plan(&options).err().ok_or("it is taken")?;
    equal("error", &text(row.value, "error")?, &"invalid scaling")?;
    ensure(problem.starts_with("--factor"), || format!("the error is about something else: {problem}"))
}

/// A delay that ends on the deadline is slept, one that ends a microsecond later is not,
/// and nothing is waited for then.
fn deadline(row: &Row) -> Check {
    let rule = text(row.value, "rule")?;
    let same = rule.starts_with("give up before sleeping") && rule.ends_with("(equality still sleeps)");
    ensure(same, || format!("this is not known: {rule}"))?;
    let plan = plan(&["--mode", "google", "--jitter", "none", "--deadline", "10"])?;
    let decide = |elapsed| {
        let mut run = Run::new(&plan);
        replay::decide(&mut run, &json!({ "status": 503 }), elapsed)
    };
    let (second, end) = (Duration::from_secs(1), Duration::from_secs(9));
    let in_time = decide(end)?;
    ensure(matches!(in_time, Decision::Retry(_)), || format!("equality does not sleep: {in_time:?}"))?;
    let late = Decision::Stop(StopReason::Deadline { delay: Some(second) });
    equal("past the deadline", &decide(end + Duration::from_micros(1))?, &late)
}
