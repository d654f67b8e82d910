//! Delays that a server asks for (design §7, reference §1.6 and §11).

use std::time::{Duration, SystemTime};

/// How far `x-amz-retry-after` may lengthen the computed delay (reference §1.6).
const AWS_MAX_EXTRA: Duration = Duration::from_secs(5);
/// The random part added to a `Retry-After` is at most this part of it.
const SPREAD: u32 = 10;

/// What a server asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerDelay {
    /// `x-amz-retry-after`: a bounded hint.
    Aws(Duration),
    /// `Retry-After` and its like; [`Duration::MAX`] for what no integer holds.
    RetryAfter(Duration),
    /// What a command's output asks for; treated as `Retry-After`.
    Output(Duration),
}

impl ServerDelay {
    /// The time that was asked for.
    pub fn wanted(self) -> Duration {
        match self {
            Self::Aws(wanted) | Self::RetryAfter(wanted) | Self::Output(wanted) => wanted,
        }
    }

    /// The delay to wait where `computed` is the delay of the formula and `u` a random
    /// number in [0, 1), `None` for no randomness.
    pub fn join(self, computed: Duration, u: Option<f64>) -> Duration {
        match self {
            Self::Aws(wanted) => wanted.clamp(computed, computed.saturating_add(AWS_MAX_EXTRA)),
            Self::RetryAfter(Duration::ZERO) | Self::Output(Duration::ZERO) => computed,
            Self::RetryAfter(wanted) | Self::Output(wanted) => {
                let spread = (wanted / SPREAD).as_secs_f64() * u.unwrap_or(0.0);
                let spread = Duration::try_from_secs_f64(spread).unwrap_or(Duration::ZERO);
                let spread = Duration::from_micros(u64::try_from(spread.as_micros()).unwrap_or(u64::MAX));
                wanted.max(computed).saturating_add(spread)
            }
        }
    }
}

/// Reads `x-amz-retry-after`: whole milliseconds, digits only. What no integer holds is
/// longer than any limit (the SDKs differ; smithy-rs ignores it). `None` for junk.
pub fn parse_aws(value: &str) -> Option<Duration> {
    digits(value.trim_matches([' ', '\t'])).map(Duration::from_millis)
}

/// Reads `Retry-After`: seconds, or any of the three HTTP dates. Fractions of a second
/// are rounded up. A date counts from `answered`, the answer's own `Date`, or else from
/// `now`; one that is past is zero. `None` for junk.
pub fn parse_retry_after(value: &str, answered: Option<SystemTime>, now: SystemTime) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    let from = answered.unwrap_or(now);
    if let Some(date) = parse_date(value, now) {
        return Some(date.duration_since(from).unwrap_or(Duration::ZERO));
    }
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let seconds = digits(whole)?;
    if whole.len() == value.len() {
        return Some(seconds_or_endless(seconds));
    }
    let fraction_counts = fraction.bytes().any(|digit| digit != b'0');
    digits(fraction)?;
    Some(seconds_or_endless(seconds.saturating_add(u64::from(fraction_counts))))
}

/// The longest of several headers, and whether any of them was junk.
pub fn longest(values: impl IntoIterator<Item = Option<Duration>>) -> (Option<Duration>, bool) {
    values.into_iter().fold((None, false), |(longest, junk), value| (longest.max(value), junk || value.is_none()))
}

fn seconds_or_endless(seconds: u64) -> Duration {
    if seconds == u64::MAX { Duration::MAX } else { Duration::from_secs(seconds) }
}

/// Digits only; what is too large is `u64::MAX`.
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Reads an HTTP date. A two-digit year more than fifty years ahead of `now` is the
/// latest past year that ends so (RFC 9110 §5.6.7).
fn parse_date(value: &str, now: SystemTime) -> Option<SystemTime> {
    // Everything that reads as a date ends in a zone or a four-digit year; names are
    // case-sensitive, which the library does not insist on.
    if !value.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let Some((_, rest)) = value.split_once("day, ").filter(|(_, rest)| rest.as_bytes().get(2) == Some(&b'-')) else {
        return httpdate::parse_http_date(value).ok();
    };
    // RFC 850: `06-Nov-94 08:49:37 GMT`, rewritten as `06 Nov 1994 08:49:37 GMT`.
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 2 {
        return None;
    }
    let year: u64 = digits(year)?;
    let this_year = year_of(now);
    let mut full = this_year - this_year % 100 + 100 + year;
    while full > this_year + 50 {
        full -= 100;
    }
    // The weekday is left out: it belongs to the century that the server meant.
    let parse = |year: u64| with_any_weekday(&format!("{day} {month} {year:04} {time}"));
    let date = parse(full)?;
    if full == this_year + 50 && date > fifty_years_after(now)? { parse(full - 100) } else { Some(date) }
}

/// The same day and time fifty calendar years later; for 29 February the next day.
fn fifty_years_after(time: SystemTime) -> Option<SystemTime> {
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    let text = httpdate::fmt_http_date(time);
    let (date, clock) = (text.get(5..12)?, text.get(17..)?);
    let year = year_of(time) + 50;
    with_any_weekday(&format!("{date}{year:04} {clock}"))
        .or_else(|| with_any_weekday(&format!("01 Mar {year:04} {clock}")))
}

/// Reads `06 Nov 1994 08:49:37 GMT`, whatever its day of the week is.
fn with_any_weekday(date: &str) -> Option<SystemTime> {
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        .iter()
        .find_map(|weekday| httpdate::parse_http_date(&format!("{weekday}, {date}")).ok())
}

fn year_of(time: SystemTime) -> u64 {
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    httpdate::fmt_http_date(time).get(12..16).and_then(digits).unwrap_or(1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_is_junk_and_numbers_are_numbers() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let parse = |value: &str| parse_retry_after(value, None, now);
        for junk in [
            "",
            " ",
            "-5",
            "nan",
            "inf",
            "1e400",
            "+3",
            "0x10",
            "3;a",
            "3 4",
            "1.",
            ".5",
            "1.x",
            "1.5.2",
            "soon",
            "1 Jan 2099 00:00:00",
            "30 Nov",
            "SUN, 06 NOV 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "٣",
        ] {
            assert_eq!(parse(junk), None, "{junk:?}");
        }
        for (value, seconds) in
            [("0", 0), ("  3  ", 3), ("007", 7), ("0.25", 1), ("1.5", 2), ("300.75", 301), ("3.0", 3)]
        {
            assert_eq!(parse(value), Some(Duration::from_secs(seconds)), "{value}");
        }
        for huge in ["18446744073709551616", &"9".repeat(400), &"8".repeat(8192)] {
            assert_eq!(parse(huge), Some(Duration::MAX));
        }
        assert_eq!(parse("8888888888"), Some(Duration::from_secs(8_888_888_888)));
    }

    #[test]
    fn all_three_dates_count_from_the_answers_own_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 37);
        for date in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse_retry_after(date, None, now), Some(Duration::from_secs(37)), "{date}");
            let skewed = now + Duration::from_secs(7);
            assert_eq!(parse_retry_after(date, Some(skewed), now), Some(Duration::from_secs(30)));
            let past = now + Duration::from_secs(99);
            assert_eq!(parse_retry_after(date, None, past), Some(Duration::ZERO));
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        // Thu, 24 Sep 2026 12:00:00 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_251_200);
        let ahead = |value: &str| parse_retry_after(value, None, now).is_some_and(|delay| !delay.is_zero());
        assert!(ahead("Thursday, 24-Sep-76 12:00:00 GMT"));
        assert!(ahead("Wednesday, 23-Sep-76 20:00:00 GMT"));
        assert!(!ahead("Friday, 24-Sep-76 12:00:01 GMT"));
        assert!(!ahead("Friday, 31-Dec-76 00:00:00 GMT"));
        assert!(ahead("Wednesday, 01-Jan-70 00:00:00 GMT"));
    }

    #[test]
    fn the_longest_of_several_counts() {
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(longest([seconds(2), seconds(9)]), (seconds(9), false));
        assert_eq!(longest([seconds(2), None]), (seconds(2), true));
        assert_eq!(longest([]), (None, false));
    }

    #[test]
    fn the_aws_header_is_held_within_five_seconds() {
        let t = Duration::from_millis(50);
        let join = |ms| ServerDelay::Aws(Duration::from_millis(ms)).join(t, Some(0.5)).as_millis();
        assert_eq!([join(0), join(10), join(1500), join(5050), join(60_000)], [50, 50, 1500, 5050, 5050]);
        assert_eq!(parse_aws("1500"), Some(Duration::from_millis(1500)));
        for junk in ["", "-100", "+1500", "1500.5", "1e3", "1_500", "abc"] {
            assert_eq!(parse_aws(junk), None, "{junk}");
        }
    }

    #[test]
    fn retry_after_raises_the_delay_and_spreads_it() {
        let (t, ten) = (Duration::from_secs(2), Duration::from_secs(10));
        assert_eq!(ServerDelay::RetryAfter(ten).join(t, None), ten);
        assert_eq!(ServerDelay::RetryAfter(ten).join(t, Some(0.5)), Duration::from_millis(10_500));
        assert_eq!(ServerDelay::RetryAfter(Duration::from_secs(1)).join(t, None), t);
        assert_eq!(ServerDelay::RetryAfter(Duration::ZERO).join(t, Some(0.5)), t);
        assert_eq!(ServerDelay::RetryAfter(Duration::MAX).join(t, Some(0.5)), Duration::MAX);
    }
}
