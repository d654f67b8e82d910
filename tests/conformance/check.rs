//! Reading fields of a row, and comparing what came out with what was expected.

use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

/// What a trial comes to: nothing, or what differs.
pub type Check = Result<(), String>;

/// Delays are whole microseconds, cut; the rest is for the rounding of seconds.
const MICROSECOND: f64 = 1.001e-6;

/// The same value.
pub fn equal<T: PartialEq + Debug>(what: &str, got: &T, expected: &T) -> Check {
    ensure(got == expected, || format!("{what}: got {got:?}, expected {expected:?}"))
}

/// The same number, to the digits that the vectors give.
pub fn near(what: &str, got: f64, expected: f64) -> Check {
    ensure((got - expected).abs() < 1e-9, || format!("{what}: got {got}, expected {expected}"))
}

/// The same time, to the microsecond that delays are cut to.
pub fn same_time(what: &str, got: Duration, expected: f64) -> Check {
    let difference = (got.as_secs_f64() - expected).abs();
    ensure(difference <= MICROSECOND, || format!("{what}: got {got:?}, expected {expected} s"))
}

/// Between the two numbers of `range`, to the microsecond that delays are cut to.
pub fn within(what: &str, got: f64, range: &Value) -> Check {
    let (low, high) = (float(&range[0])?, float(&range[1])?);
    let inside = got >= low - MICROSECOND && got <= high + MICROSECOND;
    ensure(inside, || format!("{what}: got {got}, expected {low} to {high}"))
}

/// A condition, with what is wrong where it does not hold.
pub fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(problem()) }
}

/// A number as it stands in the vectors.
pub fn float(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{value} is no number"))
}

/// A field that holds a number.
pub fn number(row: &Value, key: &str) -> Result<f64, String> {
    float(&row[key]).map_err(|problem| format!("{key}: {problem}"))
}

/// A field that holds a whole number from 0.
pub fn whole<T: TryFrom<u64>>(row: &Value, key: &str) -> Result<T, String> {
    let number = row[key].as_u64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{key}: {} is no whole number of its kind", row[key]))
}

/// A field that holds text.
pub fn text<'a>(row: &'a Value, key: &str) -> Result<&'a str, String> {
    row[key].as_str().ok_or_else(|| format!("{key}: {} is no text", row[key]))
}

/// A field that holds a list.
pub fn list<'a>(row: &'a Value, key: &str) -> Result<&'a [Value], String> {
    row[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("{key}: {} is no list", row[key]))
}

/// A field that holds true or false.
pub fn flag(row: &Value, key: &str) -> Result<bool, String> {
    row[key].as_bool().ok_or_else(|| format!("{key}: {} is neither true nor false", row[key]))
}

/// A field that holds a number of seconds, not negative.
pub fn seconds(row: &Value, key: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(row, key)?).map_err(|problem| format!("{key}: {problem}"))
}
