//! The client rate limiter's bucket of tokens, and its constants.

use crate::adaptive::{at, successes, throttled_at_five};
use crate::check::{Check, ensure, equal, list, near, number, text};
use crate::recorded::Limiter;
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("adaptive/constants", constant);
    suite.rows("adaptive/typescript_first_wait_ms", first_wait);
    suite.rows("adaptive/token_bucket", bucket);
    suite.rows("adaptive/rust_bucket", rust_bucket);
    suite.rows("adaptive/kotlin_limiter", kotlin_limiter);
}

/// A limiter with nothing behind it but a throttling response at `now`.
fn throttled_at(now: f64) -> Limiter {
    let mut limiter = Limiter::new();
    limiter.update(at(now), true);
    limiter
}

/// How long until there is a token; zero takes it.
fn wait(limiter: &mut Limiter, now: f64) -> f64 {
    limiter.take(at(now)).map_or_else(|wait| wait.as_secs_f64(), |()| 0.0)
}

/// A limiter that fills at 10/s, `TEN_FROM` seconds after its start: it was throttled at
/// that rate, and the curve is back there.
fn at_ten_a_second() -> Result<Limiter, String> {
    let mut limiter = throttled_at_five(10.0)?;
    successes(&mut limiter, 5.0, 100);
    limiter.update(at(TEN_FROM), false);
    near("fill rate", limiter.fill_rate(), 10.0)?;
    Ok(limiter)
}

/// 5 s, and K for a rate of 10/s.
const TEN_FROM: f64 = 5.0 + 1.957_433_820_584_431_7;

/// Brings a limiter to 1/s, by a response every two seconds: that measures 0.5/s, and the
/// rate is never more than twice what is measured. Returns the time of the last.
fn slow_down(limiter: &mut Limiter, from: f64) -> Result<f64, String> {
    let mut times = (1..=20).map(|n| from + 2.0 * f64::from(n));
    times.clone().for_each(|now| limiter.update(at(now), false));
    near("fill rate", limiter.fill_rate(), 1.0)?;
    times.next_back().ok_or_else(|| "no time passed".to_owned())
}

/// Each constant by what it makes the limiter do.
fn constant(row: &Row) -> Check {
    let got = match row.key.as_str() {
        "beta" => throttled_at_five(10.0)?.fill_rate() / 10.0,
        "scale_constant" => {
            // Before any throttling, the curve is C × t³; 100 responses keep the ceiling away.
            let mut limiter = Limiter::new();
            successes(&mut limiter, 2.0, 100);
            successes(&mut limiter, 3.0, 1);
            limiter.fill_rate() / 27.0
        }
        "smooth" => {
            let mut limiter = Limiter::new();
            successes(&mut limiter, 1.0, 1);
            limiter.measured_rate()
        }
        "min_fill_rate" => throttled_at(0.0).fill_rate(),
        "min_capacity" => {
            let mut limiter = throttled_at(0.0);
            f64::from((0..10).map(|_| u8::from(limiter.take(at(1000.0)).is_ok())).sum::<u8>())
        }
        "measure_bucket_seconds" => {
            let mut limiter = Limiter::new();
            let times = (1..100).map(|n| f64::from(n) / 100.0);
            let first = times.into_iter().find(|&now| {
                limiter.update(at(now), false);
                limiter.measured_rate() > 0.0
            });
            first.ok_or("nothing was measured")?
        }
        "max_rate_multiple_of_measured" => {
            let mut limiter = Limiter::new();
            limiter.update(at(100.0), false);
            successes(&mut limiter, 200.0, 300);
            successes(&mut limiter, 200.5, 1);
            limiter.fill_rate() / limiter.measured_rate()
        }
        "send_token_cost" => {
            let mut limiter = throttled_at(0.0);
            equal("first wait", &limiter.take(at(2.0)), &Ok(()))?;
            wait(&mut limiter, 2.0) * limiter.fill_rate()
        }
        other => return Err(format!("{other} is not known")),
    };
    near(&row.key, got, row.value.as_f64().ok_or("it is no number")?)
}

fn first_wait(row: &Row) -> Check {
    let now = number(row.value, "throttled_at_seconds")?;
    let (got, expected) = (wait(&mut throttled_at(now), now) * 1e3, number(row.value, "wait_ms")?);
    // A wait is a whole number of nanoseconds.
    ensure((got - expected).abs() < 1e-5, || format!("got {got} ms, expected {expected}"))
}

fn bucket(row: &Row) -> Check {
    near("rate", number(row.value, "rate")?, 10.0)?;
    equal("all immediate", &row.value["all_immediate"].as_bool(), &Some(true))?;
    let mut limiter = at_ten_a_second()?;
    let acquire = |limiter: &mut Limiter, key: &str, zero: f64| {
        for time in list(row.value, key)? {
            let now = zero + time.as_f64().ok_or("a time is no number")?;
            near(&format!("wait at {time}"), wait(limiter, now), 0.0)?;
        }
        Ok::<_, String>(())
    };
    acquire(&mut limiter, "acquires_at", TEN_FROM)?;
    if row.value["then_set_rate_at_5"].is_null() {
        return Ok(());
    }
    near("rate from 5 on", number(row.value, "then_set_rate_at_5")?, 1.0)?;
    let slow = slow_down(&mut limiter, TEN_FROM + 5.0)?;
    acquire(&mut limiter, "acquires_after", slow - 5.0)
}

fn rust_bucket(row: &Row) -> Check {
    let setup = text(row.value, "setup")?;
    if setup.starts_with("capacity 1 - 1e-12") {
        return shortfall();
    }
    let mut limiter = throttled_at(0.0);
    if setup.contains("10 acquires at t=0.1") {
        let waits: Vec<_> = (0..10).map(|_| limiter.take(at(0.1))).collect();
        return ensure(waits[0].is_err() && waits.iter().all(|wait| *wait == waits[0]), || format!("{waits:?}"));
    }
    let now = number(row.value, "acquire_at")?;
    let got = wait(&mut limiter, now);
    equal("granted", &Some(got <= 0.0), &row.value["granted"].as_bool())?;
    near("wait", got, number(row.value, "wait_seconds")?)?;
    near("capacity", 1.0 - got * limiter.fill_rate(), number(row.value, "capacity")?)
}

/// At 7/s a token takes 142,857,142.857… ns: a nanosecond before, the rest is waited for, and
/// within the last nanosecond it is granted.
fn shortfall() -> Check {
    let mut limiter = throttled_at_five(10.0)?;
    equal("the token that was there", &limiter.take(at(5.0)), &Ok(()))?;
    let early = limiter.ask(at(5.142_857_141));
    ensure(early.is_err(), || "granted too early".to_owned())?;
    equal("within the last nanosecond", &limiter.take(at(5.142_857_142)), &Ok(()))
}

fn kotlin_limiter(row: &Row) -> Check {
    let expected = number(row.value, "wait")?;
    let tokens = row.value["acquire"].as_u64().ok_or("acquire is no number")?;
    if row.value["enabled"] == false {
        return near("wait", wait(&mut Limiter::new(), 0.0), expected);
    }
    let (mut limiter, mut now) = match row.value["fill_rate"].as_u64() {
        Some(10) => (at_ten_a_second()?, TEN_FROM + number(row.value, "after_seconds")?),
        Some(1) => {
            // The token that has come in is taken first, so that the bucket is empty.
            let mut limiter = at_ten_a_second()?;
            let now = slow_down(&mut limiter, TEN_FROM)?;
            equal("the token that was there", &limiter.take(at(now)), &Ok(()))?;
            (limiter, now)
        }
        other => return Err(format!("a fill rate of {other:?} is not known")),
    };
    // Each attempt takes one token, so several are taken one after the other.
    let start = now;
    for _ in 0..tokens {
        while let Err(wait) = limiter.take(at(now)) {
            now += wait.as_secs_f64();
        }
    }
    let waited = now - start;
    ensure((waited - expected).abs() < 1e-6, || format!("waited {waited} s, expected {expected}"))
}
