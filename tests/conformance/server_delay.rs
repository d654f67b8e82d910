//! `x-amz-retry-after` and `Retry-After`, as read and as joined with the computed delay.

use std::time::{Duration, SystemTime};

use retryx::policy::server_delay::{parse_aws, parse_retry_after};
use retryx::policy::{Mode, ServerDelay};
use serde_json::{Value, json};

use crate::check::{Check, equal, float, text, whole};
use crate::replay;
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("x_amz_retry_after", aws_header);
    suite.rows("retry_after/rfc_examples", rfc_example);
    suite.rows("retry_after/strict_third_party/accept", accepted_seconds);
    suite.rows("retry_after/strict_third_party/date_accept", accepted_date);
    suite.rows("retry_after/strict_third_party/two_digit_year", two_digit_year);
    suite.rows("retry_after/strict_third_party/reject", rejected);
    suite.rows("retry_after/strict_third_party/choices", choice);
    suite.rows("retry_after/typescript_sdk", typescript);
}

/// Where SDKs disagree about a value that no integer holds, it counts as longer than any
/// limit (design §7), as in Python and TypeScript.
const BEYOND_ANY_INTEGER_MS: u64 = 5050;

fn aws_header(row: &Row) -> Check {
    let value = text(row.value, "value")?;
    if !row.value["parsed_ms"].is_null() {
        let parsed = Some(Duration::from_millis(whole(row.value, "parsed_ms")?));
        return equal("parsed", &parse_aws(value), &parsed);
    }
    let response = replay::answer(&json!({ "status": 500, "headers": { "x-amz-retry-after": value } }))?;
    let server = replay::server_delay(Mode::Standard, &response);
    let computed = Duration::from_millis(whole(row.value, "t_i_ms")?);
    let expected = match &row.value["expected_delay_ms"] {
        Value::Null => BEYOND_ANY_INTEGER_MS,
        _ => whole(row.value, "expected_delay_ms")?,
    };
    let joined = server.map_or(computed, |server| server.join(computed, None));
    equal("delay", &joined, &Duration::from_millis(expected))
}

fn time(rfc3339: &str) -> Result<SystemTime, String> {
    humantime::parse_rfc3339(rfc3339).map_err(|error| format!("{rfc3339}: {error}"))
}

fn now(row: &Value) -> Result<SystemTime, String> {
    time(text(row, "now")?)
}

/// What a value reads as at `now`: the time since the epoch, for a date.
fn since_the_epoch(value: &str, now: SystemTime) -> Option<Duration> {
    parse_retry_after(value, Some(SystemTime::UNIX_EPOCH), now)
}

fn rfc_example(row: &Row) -> Check {
    let value = text(row.value, "value")?;
    let now = now(&row.holder["strict_third_party"])?;
    let read = since_the_epoch(value, now).ok_or("it is not read")?;
    let key = if row.value["epoch"].is_null() { "seconds" } else { "epoch" };
    let expected = match whole(row.value, key) {
        Ok(seconds) => Duration::from_secs(seconds),
        // The row gives no number.
        Err(_) => time("1999-12-31T23:59:59Z")?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
    };
    equal("time", &read, &expected)
}

fn accepted_seconds(row: &Row) -> Check {
    let value = row.value[0].as_str().ok_or("the value is missing")?;
    let read = parse_retry_after(value, None, now(row.holder)?).ok_or("it is not read")?;
    equal("seconds", &Some(read.as_secs()), &row.value[1].as_u64())
}

fn accepted_date(row: &Row) -> Check {
    let read = parse_retry_after(text(row.value, "value")?, None, now(row.value)?);
    equal("delay", &read, &Some(Duration::from_secs(whole(row.value, "seconds")?)))
}

fn two_digit_year(row: &Row) -> Check {
    let means = text(row.value, "means")?;
    let midnight = if means.contains('T') { String::new() } else { "T00:00:00Z".to_owned() };
    let means = time(&(means.to_owned() + &midnight))?.duration_since(SystemTime::UNIX_EPOCH).ok();
    equal("date", &since_the_epoch(text(row.value, "value")?, now(row.value)?), &means)
}

fn rejected(row: &Row) -> Check {
    let value = row.value.as_str().ok_or("the value is no text")?;
    equal("delay", &parse_retry_after(value, None, now(row.holder)?), &None)
}

/// What the author of the rows chose where the RFC leaves it open.
fn choice(row: &Row) -> Check {
    equal("choice", &row.value.as_str(), &Some("day name must match the date"))?;
    let read =
        ["Sun", "Mon"].map(|day| since_the_epoch(&format!("{day}, 06 Nov 1994 08:49:37 GMT"), SystemTime::UNIX_EPOCH));
    equal("delays", &read, &[Some(Duration::from_secs(784_111_777)), None])
}

fn typescript(row: &Row) -> Check {
    let now = Duration::try_from_secs_f64(float(&row.holder["now_ms"])? / 1e3).map_err(|error| error.to_string())?;
    // Dates have no fractions of a second; the answer's own Date is the second it came in.
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(now.as_secs());
    let date = httpdate::fmt_http_date(second);
    let value = match text(row.value, "value")? {
        "<IMF-fixdate now+60s>" => httpdate::fmt_http_date(second + Duration::from_secs(60)),
        value => value.to_owned(),
    };
    let headers = json!({ "date": date, text(row.value, "header")?: value });
    let response = replay::answer(&json!({ "status": 503, "headers": headers }))?;
    let wanted = replay::server_delay(Mode::Standard, &response).map(ServerDelay::wanted);
    equal("delay", &wanted, &row.value["delay_ms"].as_u64().map(Duration::from_millis))
}
