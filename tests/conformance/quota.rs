//! The retry quota: its bucket, what is paid when, and when it drains.

use std::time::Duration;

use retryx::config::Plan;
use retryx::policy::{Class, QuotaPlan, RetryQuota};
use serde_json::{Value, json};

use crate::check::{Check, ensure, equal, list, number, text, whole};
use crate::plans::plan;
use crate::recorded::Recorded;
use crate::replay::{self, Run};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("quota_bucket", bucket);
    suite.rows("quota_checker", checker);
    suite.rows("quota_drain_thresholds_derived", threshold);
}

/// Operations on the bucket: `acquire N -> bool`, `release N`. A release gives back what
/// was acquired last, so the amounts acquired are the two prices.
fn bucket(row: &Row) -> Check {
    let ops: Vec<_> = list(row.value, "ops")?.iter().filter_map(Value::as_str).collect();
    let amount = |op: &str| op.split(' ').nth(1).and_then(|number| number.parse::<u32>().ok());
    let mut prices = ops.iter().filter(|op| op.starts_with("acquire")).map(|op| amount(op));
    let transient_cost = prices.next().flatten().unwrap_or(1);
    let throttling_cost = prices.next().flatten().unwrap_or(transient_cost);
    ensure(prices.next().is_none(), || "there are more than two prices".to_owned())?;
    let initial = whole(row.value, "initial")?;
    let mut quota = RetryQuota::full(QuotaPlan { capacity: initial, transient_cost, throttling_cost, refill: 0 });
    let mut last_cost = None;
    for op in ops {
        if op.starts_with("release") {
            quota.refund(last_cost.take());
            continue;
        }
        let class = if amount(op) == Some(transient_cost) { Class::Transient } else { Class::Throttling };
        let cost = quota.plan().cost(class);
        let granted = quota.pay(cost);
        last_cost = granted.then_some(cost).or(last_cost);
        if let Some((_, expected)) = op.split_once(" -> ") {
            equal(op, &granted.to_string().as_str(), &expected)?;
        }
    }
    equal("available", &quota.tokens(), &whole(row.value, "available")?)
}

type Answer = (u16, Option<&'static str>);

/// The answers that an event stands for, and after how many attempts the run ends.
fn answers(event: &str) -> Result<(&'static [Answer], &'static str), String> {
    const THROTTLED: Answer = (400, Some("Throttling"));
    Ok(match event {
        "acquire throttling" => (&[THROTTLED], "3"),
        "acquire other (incl. timeouts)" => (&[(500, None)], "3"),
        "acquire throttling then HTTP 200" => (&[THROTTLED, (200, None)], "3"),
        "acquire other then HTTP 500" => (&[(500, None), (500, None)], "2"),
        "capacity 14: first acquire ok, second refused" => (&[(500, None), (500, None)], "3"),
        "single failed request (HTTP 400), no retry" => (&[(400, None)], "3"),
        _ if event.starts_with("first-try success") => (&[(200, None)], "3"),
        _ => return Err(format!("this is not known: {event}")),
    })
}

/// The levels of a quota after each answer of one run.
fn levels(plan: &Plan, start: u32, answers: &[Answer]) -> Result<Vec<u32>, String> {
    let quota = plan.session.budget.quota.ok_or("the plan has no quota")?;
    let mut run = Run::with(plan, Recorded::with_tokens(quota, start));
    let level = |(status, code): &Answer| {
        replay::decide(&mut run, &json!({ "status": status, "code": code }), Duration::ZERO)?;
        run.session.quota_left().ok_or_else(|| "the quota was lost".to_owned())
    };
    answers.iter().map(level).collect()
}

fn checker(row: &Row) -> Check {
    let (answers, attempts) = answers(text(row.value, "event")?)?;
    let plan = plan(&["--mode", "standard", "--max-attempts", attempts, "--quota-capacity", "500"])?;
    let quota = plan.session.budget.quota.ok_or("the plan has no quota")?;
    let start = if row.value["start"].is_null() { quota.capacity } else { whole(row.value, "start")? };
    let levels = levels(&plan, start, answers)?;
    let (Some(&first), Some(&last)) = (levels.first(), levels.last()) else { return Err("no answer".to_owned()) };
    for (key, got) in
        [("cost", start.saturating_sub(first)), ("after_acquire", first), ("after_release", last), ("after", last)]
    {
        if !row.value[key].is_null() {
            equal(key, &got, &whole(row.value, key)?)?;
        }
    }
    Ok(())
}

/// Where a quota neither fills nor drains: the failure probability p of an attempt for which
/// what retries cost and first successes give are even, by bisection.
fn threshold(row: &Row) -> Check {
    let cost: u32 = whole(row.value, "cost")?;
    let prices = QuotaPlan::default();
    let documented = [Class::Transient, Class::Throttling].map(|class| prices.cost(class));
    ensure(documented.contains(&cost), || format!("no retry costs {cost}: {documented:?}"))?;
    equal("formula", &text(row.value, "formula")?, &"cost*(p^2+...+p^N) = 1-p")?;
    let most: i32 = whole(row.value, "max_attempts")?;
    let drain = |p: f64| f64::from(cost) * (2..=most).map(|n| p.powi(n)).sum::<f64>() - (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if drain(middle) < 0.0 { low = middle } else { high = middle }
    }
    let expected = number(row.value, "per_attempt_failure_probability")?;
    ensure((low - expected).abs() < 5e-5, || format!("got {low}, expected {expected}"))
}
