//! The client rate limiter: the cubic curve, what is measured, and whole runs.
//!
//! The limiter's state cannot be set from outside, so it is led there by responses: many
//! at one moment raise the measured rate, which keeps the ceiling of twice that rate away
//! from vectors that leave it out.

use std::time::Duration;

use retryx::policy::Decision;
use serde_json::{Value, json};

use crate::check::{Check, ensure, equal, float, list, near, number, text, within};
use crate::plans::plan;
use crate::recorded::{Limiter, Recorded};
use crate::replay::{self, Run};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("adaptive/cubic_success", cubic);
    suite.rows("adaptive/cubic_mixed_spec", cubic);
    suite.rows("adaptive/cubic_mixed_go_rust_harness", cubic);
    suite.rows("adaptive/end_to_end", end_to_end);
    suite.rows("adaptive/beta_decrease", decrease);
    suite.rows("adaptive/zero_point", zero_point);
    suite.rows("adaptive/typescript_throttle_at_t", first_response_throttles);
    suite.rows("adaptive/rate_clocker", measured);
    suite.rows("adaptive/rate_cap", cap);
    suite.rows("adaptive/rust_dynamodb_integration", operations);
}

/// A time of the limiter's clock.
pub fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Books so many successes at one moment.
pub fn successes(limiter: &mut Limiter, now: f64, count: u32) {
    for _ in 0..count {
        limiter.update(at(now), false);
    }
}

/// Enough successes at one moment to keep the ceiling away.
const MANY: u32 = 1000;

/// Leads a new limiter to its first throttling response 5 s after its start, when it
/// measures this rate, of at least 4/s.
pub fn throttled_at_five(rate: f64) -> Result<Limiter, String> {
    let mut limiter = Limiter::new();
    // 25 responses in the first second measure 0.8 × 25 = 20/s; c in the next four make it
    // 0.8 × c/4 + 0.2 × 20 = 0.2 × c + 4.
    successes(&mut limiter, 0.0, 24);
    successes(&mut limiter, 1.0, 1);
    let more = (1..MANY).find(|&count| f64::from(count) >= (rate - 4.0) * 5.0 - 1e-9);
    successes(&mut limiter, 1.0, more.ok_or("the rate is too high")? - 1);
    limiter.update(at(5.0), true);
    near("measured rate", limiter.measured_rate(), rate)?;
    ensure(limiter.is_enabled(), || "throttling did not enable the limiter".to_owned())?;
    Ok(limiter)
}

fn cubic(row: &Row) -> Check {
    let given = &row.holder["given"];
    near("last throttle", number(given, "last_throttle_time")?, 5.0)?;
    let mut limiter = throttled_at_five(number(given, "last_max_rate")?)?;
    let mut now = 5.0;
    for response in row.so_far {
        successes(&mut limiter, now, MANY);
        now = number(response, "timestamp")?;
        limiter.update(at(now), response["response"] == "throttle");
    }
    near("rate", limiter.fill_rate(), number(row.value, "calculated_rate")?)
}

fn end_to_end(row: &Row) -> Check {
    let mut limiter = Limiter::new();
    for response in row.so_far {
        limiter.update(at(number(response, "timestamp")?), text(response, "response")? == "throttle");
    }
    near("measured rate", limiter.measured_rate(), number(row.value, "measured_tx_rate")?)?;
    near("fill rate", limiter.fill_rate(), number(row.value, "fill_rate")?)
}

fn decrease(row: &Row) -> Check {
    near("beta", number(row.value, "beta")?, 0.7)?;
    let rate = number(row.value, "rate")?;
    let mut limiter = throttled_at_five(rate)?;
    near("after the throttle", limiter.fill_rate(), number(row.value, "after_throttle")?)?;
    limiter.update(at(5.0), false);
    if !row.value["rate_at_same_instant"].is_null() {
        near("at the same instant", limiter.fill_rate(), number(row.value, "rate_at_same_instant")?)?;
    }
    if row.value["new_k"].is_null() {
        return Ok(());
    }
    plateau(rate, number(row.value, "new_k")?, number(row.value, "new_w_max")?)
}

/// K after the throttle the curve is back where it was before.
fn plateau(rate: f64, k: f64, back: f64) -> Check {
    let mut limiter = throttled_at_five(rate)?;
    successes(&mut limiter, 5.0, MANY);
    limiter.update(at(5.0 + k), false);
    near("after K", limiter.fill_rate(), back)
}

fn zero_point(row: &Row) -> Check {
    near("beta", number(row.value, "beta")?, 0.7)?;
    near("scale", number(row.value, "scale")?, 0.4)?;
    plateau(number(row.value, "w_max")?, number(row.value, "k")?, number(row.value, "rate_at_k")?)
}

/// The rate before the floor of 0.5/s, which the limiter keeps and the rows leave out.
fn first_response_throttles(row: &Row) -> Check {
    let mut limiter = Limiter::new();
    limiter.update(at(number(row.value, "timestamp")?), true);
    let (calculated, expected) = (limiter.measured_rate() * 0.7, number(row.value, "calculated_rate")?);
    ensure((calculated - expected).abs() < 1e-8, || format!("got {calculated}, expected {expected}"))?;
    near("fill rate", limiter.fill_rate(), calculated.max(0.5))
}

fn measured(row: &Row) -> Check {
    near("start", number(row.value, "start")?, 0.0)?;
    let mut limiter = Limiter::new();
    for timestamp in list(row.value, "timestamps")? {
        limiter.update(at(float(timestamp)?), false);
    }
    let (rate, row) = (limiter.measured_rate(), row.value);
    match (row["measured"].as_f64(), row["measured_approx"].as_f64(), row["measured_min"].as_f64()) {
        (Some(expected), ..) => near("measured", rate, expected),
        (_, Some(expected), _) => {
            ensure((rate - expected).abs() < 1e-3, || format!("got {rate}, expected about {expected}"))
        }
        (.., Some(least)) => ensure(rate >= least, || format!("got {rate}, expected at least {least}")),
        _ => within("measured", rate, &row["measured_range"]),
    }
}

/// Leads a new limiter to a measured rate and, in the same half second, to a point of the
/// curve that starts at its first throttling response, when it had measured nothing.
fn cap(row: &Row) -> Check {
    let (rate, calculated) = (number(row.value, "measured")?, number(row.value, "calculated")?);
    let start = [0.0, 0.4].into_iter().map(|throttled| {
        let point = throttled + (calculated / 0.4).cbrt();
        let slot = (point * 2.0).floor() / 2.0;
        (throttled, point, slot, rate / 0.8 * slot)
    });
    let whole = |count: f64| (2..MANY).find(|&whole| (f64::from(whole) - count).abs() < 1e-9);
    let start =
        start.into_iter().find_map(|(throttled, point, slot, count)| Some((throttled, point, slot, whole(count)?)));
    let (throttled, point, slot, count) = start.ok_or("no number of responses measures that rate")?;
    let mut limiter = Limiter::new();
    limiter.update(at(throttled), true);
    successes(&mut limiter, throttled, count - 2);
    successes(&mut limiter, slot, 1);
    near("measured", limiter.measured_rate(), rate)?;
    limiter.update(at(point), false);
    let (got, expected) = (limiter.fill_rate(), number(row.value, "new_max_rate")?);
    // The point is a whole number of nanoseconds.
    ensure((got - expected).abs() < 1e-6, || format!("got {got}, expected {expected}"))
}

/// An answer as the letters F, T and S stand for it.
fn answer(letter: &Value) -> Result<Value, String> {
    match letter.as_str() {
        Some("F") => Ok(json!({ "status": 500 })),
        Some("T") => Ok(json!({ "status": 400, "code": "ThrottlingException" })),
        Some("S") => Ok(json!({ "status": 200 })),
        _ => Err(format!("{letter} is not known")),
    }
}

/// Operations in turn on one budget.
fn operations(row: &Row) -> Check {
    equal("specification", &text(row.value, "spec")?, &"2.1")?;
    let plan = plan(&["--mode", "adaptive", "--service", "dynamodb", "--jitter", "none"])?;
    let mut budget = Recorded::new();
    let mut now = Duration::ZERO;
    for (operation, sleep) in list(row.value, "ops")?.iter().zip(list(row.value, "cumulative_sleep_seconds")?) {
        let mut run = Run::with(&plan, budget);
        for letter in operation.as_array().into_iter().flatten() {
            loop {
                let wait = run.pace(now);
                now += wait;
                if wait.is_zero() {
                    break;
                }
            }
            if let Decision::Retry(retry) = replay::decide(&mut run, &answer(letter)?, now)? {
                now += retry.delay.wait;
            }
        }
        budget = run.budget;
        let range = if sleep.is_array() { sleep.clone() } else { json!([sleep, sleep]) };
        within("slept", now.as_secs_f64(), &range)?;
    }
    Ok(())
}
