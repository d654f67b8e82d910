//! The standard mode: attempts, waits and the quota, answer by answer.

use std::time::Duration;

use retryx::config::Plan;
use retryx::policy::{Decision, QuotaPlan, StopReason};
use serde_json::Value;

use crate::check::{Check, ensure, equal, list, same_time, text, whole};
use crate::plans::plan;
use crate::recorded::Recorded;
use crate::replay::{self, Run};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("standard_v2_1", invocations_in_turn);
    suite.rows("standard_v2_1_long_polling", invocations_in_turn);
    suite.rows("standard_v2_1_shared_bucket", invocations_that_share_a_bucket);
}

/// The plan and the budget at the start.
fn start(given: &Value) -> Result<(Plan, Recorded), String> {
    let mut options = vec!["--mode=standard".to_owned()];
    let capacity = QuotaPlan::default().capacity;
    let mut tokens = capacity;
    for (key, value) in given.as_object().into_iter().flatten() {
        match (key.as_str(), value.as_str()) {
            // u is 1, which [0, 1) does not hold.
            ("exponential_base", _) if value == 1 => options.push("--jitter=none".to_owned()),
            // A number of the user's lifts the quota, unless that is asked for too.
            ("max_attempts", _) => {
                options.extend([format!("--max-attempts={value}"), format!("--quota-capacity={capacity}")]);
            }
            ("max_backoff_seconds", _) => options.push(format!("--max-backoff={value}")),
            ("initial_retry_tokens", _) => tokens = whole(given, key)?,
            ("service", Some("dynamodb")) => options.push("--service=dynamodb".to_owned()),
            ("long_polling", _) if value == true => options.push("--long-poll".to_owned()),
            // Long polling is an option, whatever the operation.
            ("service", Some("sqs")) | ("operation", Some("ReceiveMessage")) => {}
            _ => return Err(format!("given {key}: {value} is not known")),
        }
    }
    let plan = plan(&options.iter().map(String::as_str).collect::<Vec<_>>())?;
    let quota = plan.session.budget.quota.ok_or("the plan has no quota")?;
    Ok((plan, Recorded::with_tokens(quota, tokens)))
}

/// The outcome as the vectors call it, and the wait.
fn named(decision: &Decision) -> (&'static str, Option<Duration>) {
    match decision {
        Decision::Retry(retry) => ("retry_request", Some(retry.delay.wait)),
        Decision::Stop(StopReason::Success) => ("success", None),
        Decision::Stop(StopReason::Attempts) => ("max_attempts_exceeded", None),
        Decision::Stop(StopReason::Quota) => ("retry_quota_exceeded", None),
        Decision::StopAfter(delay, StopReason::Quota) => ("retry_quota_exceeded", Some(delay.wait)),
        Decision::Stop(StopReason::Permanent) => ("fail_request", None),
        Decision::Stop(reason) | Decision::StopAfter(_, reason) => (reason.as_str(), None),
    }
}

/// Takes the steps of invocations, each started with what the one before left in the quota,
/// and returns what the last one left.
fn take(plan: &Plan, budget: Recorded, steps: &[Value], shared: bool) -> Result<Recorded, String> {
    let mut invocation = Run::with(plan, budget);
    let mut now = Duration::ZERO;
    for (step, number) in steps.iter().zip(1..) {
        let decision = replay::decide(&mut invocation, &step["response"], now)?;
        let expected = &step["expected"];
        let (outcome, wait) = named(&decision);
        equal(&format!("step {number}"), &outcome, &text(expected, "outcome")?)?;
        match (wait, expected["delay_seconds"].as_f64()) {
            (Some(wait), Some(delay)) => same_time(&format!("delay after step {number}"), wait, delay)?,
            (None, None) => {}
            // With other invocations about, only outcomes and the quota's end are told.
            (Some(_), None) if shared => {}
            (wait, delay) => return Err(format!("delay after step {number}: got {wait:?}, expected {delay:?} s")),
        }
        if !shared && !expected["retry_quota"].is_null() {
            let left = invocation.session.quota_left();
            equal(&format!("quota after step {number}"), &left, &Some(whole(expected, "retry_quota")?))?;
        }
        now += wait.unwrap_or_default();
        if outcome == "success" {
            invocation = Run::with(plan, invocation.budget);
        }
    }
    Ok(invocation.budget)
}

fn invocations_in_turn(row: &Row) -> Check {
    let (plan, budget) = start(&row.value["given"])?;
    take(&plan, budget, list(row.value, "steps")?, false).map(drop)
}

/// The interleaving is free, so one invocation follows the other.
fn invocations_that_share_a_bucket(row: &Row) -> Check {
    let (plan, mut budget) = start(&row.value["given"])?;
    let invocations = list(row.value, "invocations")?;
    for steps in invocations {
        budget = take(&plan, budget, steps.as_array().ok_or("an invocation is a list of steps")?, true)?;
    }
    ensure(invocations.len() > 1, || "nobody shares the bucket".to_owned())?;
    equal("final quota", &budget.tokens(), &Some(whole(row.value, "expected_final_quota")?))
}
