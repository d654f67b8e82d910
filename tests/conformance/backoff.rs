//! The delay formula of the AWS SDKs.

use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

use retryx::policy::{Backoff, Class, Formula, Jitter};
use serde_json::Value;

use crate::check::{Check, ensure, float, list, same_time, seconds, whole, within};
use crate::scripted::{Always, GREATEST};
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("backoff_sequences", sequence);
}

/// A rule that doubles `base` up to `cap`.
pub fn doubling(base: Duration, cap: Duration, jitter: Jitter) -> Backoff {
    let formula = Formula::Exponential { factor: 2.0 };
    Backoff { formula, jitter, base, throttling_base: base, cap, floor: Duration::ZERO }
}

/// The delay before retry `i`, from 0, where u is drawn.
pub fn wait(backoff: &Backoff, i: u64, u: f64) -> Duration {
    backoff.delay(i, Class::Transient, None, &mut Always(u)).wait
}

fn sequence(row: &Row) -> Check {
    if row.value["delays"].is_array() {
        return delays(row.value);
    }
    if row.value["range"].is_array() {
        return range(row.value);
    }
    let name = row.value["name"].as_str().unwrap_or_default();
    ensure(name.contains("10 000 draws at attempt 10, per-integer-second histogram within 20 %"), || {
        format!("this is not known: {name}")
    })?;
    histogram()
}

fn delays(row: &Value) -> Check {
    let rule = doubling(seconds(row, "base_seconds")?, seconds(row, "cap_seconds")?, Jitter::None);
    for (delay, i) in list(row, "delays")?.iter().zip(0..) {
        same_time(&format!("retry {}", i + 1), wait(&rule, i, 0.0), float(delay)?)?;
    }
    Ok(())
}

const CAP: Duration = Duration::from_secs(20);

/// The bounds are reached, and not passed.
fn range(row: &Value) -> Check {
    let rule = doubling(seconds(row, "base_seconds")?, CAP, Jitter::Full);
    let i = whole::<u64>(row, "attempt")? - 1;
    same_time("least", wait(&rule, i, 0.0), float(&row["range"][0])?)?;
    same_time("greatest", wait(&rule, i, GREATEST), float(&row["range"][1])?)?;
    within("in the middle", wait(&rule, i, 0.5).as_secs_f64(), &row["range"])
}

fn histogram() -> Check {
    const DRAWS: u32 = 10_000;
    let rule = doubling(Duration::from_millis(50), CAP, Jitter::Full);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut counts = [0u32; 20];
    for _ in 0..DRAWS {
        let wait = rule.delay(9, Class::Transient, None, &mut random).wait;
        let count = usize::try_from(wait.as_secs()).ok().and_then(|second| counts.get_mut(second));
        *count.ok_or_else(|| format!("{wait:?} is past the cap"))? += 1;
    }
    let flat = DRAWS / 20;
    ensure(counts.iter().all(|count| count.abs_diff(flat) * 5 <= flat), || format!("not flat: {counts:?}"))
}
