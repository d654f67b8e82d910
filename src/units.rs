//! Durations as people write and read them.

use std::time::Duration;

/// The forms that [`parse_duration`] takes, for messages.
pub const DURATION_FORMS: &str = "seconds (300, 0.5, .3) or numbers with units (250ms, 5m, 1h 30m); \
                                  units are ns, us, ms, s, m or min, h, d, w and y";

/// Nanoseconds in each unit, by the spellings that are taken.
const UNITS: [(&[&str], u128); 8] = [
    (&["ns", "nsec", "nanos"], 1),
    (&["us", "µs", "usec", "micros"], 1_000),
    (&["ms", "msec", "millis"], 1_000_000),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["m", "min", "mins", "minute", "minutes"], 60 * SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["w", "week", "weeks"], 604_800 * SECOND),
];
/// Years of 365.25 days, as `humantime` counts them.
const YEAR: u128 = 31_557_600 * SECOND;
const SECOND: u128 = 1_000_000_000;

/// Reads a duration: plain seconds (`300`, `0.5`, `.3`), or terms with units, the
/// larger first (`250ms`, `1h 30m`, `1h30m`). Anything finer than a nanosecond is
/// cut; anything longer than [`Duration::MAX`] is [`Duration::MAX`]. `None` for all else:
/// signs, exponents, words, an empty text, a bare number among terms.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if let Some((nanos, "")) = leading_nanos(text, SECOND) {
        return Some(saturating(nanos));
    }
    let mut rest = text;
    let mut total: u128 = 0;
    let mut larger = u128::MAX;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_alphabetic()).unwrap_or(tail.len());
        let unit = unit(&tail[..end])?;
        // `1s 2s` is a list that lost its comma rather than three seconds.
        if unit >= larger {
            return None;
        }
        larger = unit;
        let (nanos, "") = leading_nanos(number, unit)? else { return None };
        total = total.saturating_add(nanos);
        rest = tail[end..].trim_start_matches(' ');
        if rest.is_empty() {
            return tail[end..].is_empty().then(|| saturating(total));
        }
    }
}

fn unit(name: &str) -> Option<u128> {
    if matches!(name, "y" | "yr" | "year" | "years") {
        return Some(YEAR);
    }
    UNITS.iter().find_map(|(names, nanos)| names.contains(&name).then_some(*nanos))
}

/// The decimal number at the start of `text` in units of `unit` nanoseconds, and what
/// follows it. `None` unless there is a digit.
fn leading_nanos(text: &str, unit: u128) -> Option<(u128, &str)> {
    let is_not_digit = |c: char| !c.is_ascii_digit();
    let end = text.find(is_not_digit).unwrap_or(text.len());
    let (whole, mut rest) = text.split_at(end);
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(is_not_digit).unwrap_or(after.len());
        (fraction, rest) = after.split_at(end);
        if fraction.is_empty() {
            return None;
        }
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut nanos = decimal(whole).saturating_mul(unit);
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos = nanos.saturating_add(u128::from(digit - b'0') * place);
    }
    Some((nanos, rest))
}

fn decimal(digits: &str) -> u128 {
    digits.bytes().fold(0u128, |number, digit| number.saturating_mul(10).saturating_add(u128::from(digit - b'0')))
}

fn saturating(nanos: u128) -> Duration {
    let Ok(seconds) = u64::try_from(nanos / SECOND) else { return Duration::MAX };
    Duration::new(seconds, (nanos % SECOND) as u32)
}

/// A duration for people: `34.2 ms`, `1.5 s`, `5m 3s`; never more than it is, and exact
/// where it is a whole number of milliseconds below two minutes.
pub fn human(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        0..100_000 => format!("{} ms", decimals(micros, 3)),
        100_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..120_000_000 => format!("{} s", decimals(micros / 1000, 3)),
        _ if duration > Duration::from_secs(100 * 31_557_600) => "endless".to_owned(),
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

/// `number` ÷ 10^places without trailing zeros.
fn decimals(number: u128, places: usize) -> String {
    let unit = 10u128.pow(u32::try_from(places).unwrap_or(0));
    let fraction = format!("{:0places$}", number % unit);
    match fraction.trim_end_matches('0') {
        "" => (number / unit).to_string(),
        fraction => format!("{}.{fraction}", number / unit),
    }
}

/// Milliseconds as a JSON number, exact to the microsecond.
pub fn millis(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 285 years")]
    let micros = duration.as_micros() as f64;
    micros / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_every_form() {
        for (text, nanos) in [
            ("300", 300 * SECOND),
            ("0", 0),
            ("0s", 0),
            ("0.5", SECOND / 2),
            (".3", 300_000_000),
            (".3s", 300_000_000),
            ("1", SECOND),
            ("1s", SECOND),
            ("1000ms", SECOND),
            ("1sec", SECOND),
            ("250ms", 250_000_000),
            ("5m", 300 * SECOND),
            ("1h 30m", 5_400 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1.5h", 5_400 * SECOND),
            ("0.0009s", 900_000),
            ("1ns", 1),
            ("0.1ns", 0),
            ("1y", YEAR),
            ("007", 7 * SECOND),
            ("2µs", 2_000),
        ] {
            let expected = Duration::from_nanos(u64::try_from(nanos).unwrap());
            assert_eq!(parse_duration(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn too_long_is_endless() {
        let digits = "9".repeat(400);
        for text in
            [digits.as_str(), "18446744073709551616s", "99999999999999999999y", "18446744073709551615s 1000000000ns"]
        {
            assert!(parse_duration(text) >= Some(Duration::from_secs(u64::MAX)), "{text}");
        }
        for text in ["18446744073709551615s", "99999999999h", "1000000y", "4294967296ms"] {
            assert!(parse_duration(text).is_some(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "", " ", "-1", "+1", "1e3", "1e3s", "nan", "NaN", "inf", "infinity", "1.", ".", "1.2.3", "1x", "1s ",
            " 1s", "1 s", "1s 2", "s", "1h,30m", "0x10", "1_000", "١", "1s\n", "1s 2s", "1h1h", "1m1h", "1ms1s", "5 m",
            "1m 1", "\u{0}",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_for_people() {
        for (micros, text) in [
            (0, "0 ms"),
            (34_000, "34 ms"),
            (34_217, "34.217 ms"),
            (500, "0.5 ms"),
            (1_000_000, "1 s"),
            (1_500_000, "1.5 s"),
            (303_000_000, "5m 3s"),
        ] {
            assert_eq!(human(Duration::from_micros(micros)), text);
        }
        assert_eq!(human(Duration::MAX), "endless");
    }
}
