//! The progress of a transfer, for a person who looks on.

use std::time::Duration;

use crate::report::live::Live;
use crate::units::human;

/// How long a transfer must take before it is worth a line.
const WORTH_SHOWING: Duration = Duration::from_secs(1);
/// How often the line is drawn anew.
const PERIOD: Duration = Duration::from_millis(200);
/// Columns of the bar.
const WIDTH: u64 = 24;

/// The progress of one attempt's transfer.
pub struct Meter {
    live: Live,
    started: Duration,
    next: Duration,
    /// Bytes that were there before the attempt.
    before: Option<u64>,
}

impl Meter {
    /// A meter of a transfer that begins now; it shows nothing where that is not wanted, or
    /// nobody looks on.
    pub fn new(wanted: bool, now: Duration) -> Self {
        let live = Live::beside_output(wanted);
        Self { live, started: now, next: now.saturating_add(WORTH_SHOWING), before: None }
    }

    /// Whether it is of any use to tell it.
    pub fn is_on(&self) -> bool {
        self.live.is_on()
    }

    /// So much is done, of all where that is known.
    pub fn at(&mut self, now: Duration, word: &str, done: u64, all: Option<u64>) {
        let before = *self.before.get_or_insert(done);
        if now < self.next {
            return;
        }
        self.next = now.saturating_add(PERIOD);
        let elapsed = now.saturating_sub(self.started).as_millis().max(1);
        let rate = u64::try_from(u128::from(done.saturating_sub(before)) * 1000 / elapsed).unwrap_or(u64::MAX);
        let texts = [true, false].map(|with_bar| line(word, done, all, rate, with_bar));
        self.live.draw(texts.iter().find(|text| self.live.has_room(text)).unwrap_or(&texts[1]));
    }

    /// When it is to be told again, so that a transfer that stands still is shown too.
    pub fn next(&self) -> Duration {
        self.next
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        self.live.clear();
    }
}

/// One line: what, how far, how fast, how long still.
fn line(word: &str, done: u64, all: Option<u64>, rate: u64, with_bar: bool) -> String {
    let Some(all) = all.filter(|&all| all > 0) else {
        return format!("retryx: {word} {}, {}/s", bytes(done), bytes(rate));
    };
    let part = u64::try_from(u128::from(done.min(all)) * 100 / u128::from(all)).unwrap_or(100);
    let full = usize::try_from(part * WIDTH / 100).unwrap_or(0);
    let empty = usize::try_from(WIDTH).unwrap_or(0) - full;
    let left = (rate > 0).then(|| all.saturating_sub(done).div_ceil(rate)).map(|left| human(Duration::from_secs(left)));
    let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
    let bar = if with_bar { format!("[{}{}] ", "#".repeat(full), ".".repeat(empty)) } else { String::new() };
    format!("retryx: {word} {bar}{part} % of {}, {}/s{left}", bytes(all), bytes(rate))
}

/// A number of bytes, in three digits or so.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let unit = usize::try_from(count.ilog2() / 10).unwrap_or(1).min(UNITS.len());
    // In tenths, without a float.
    let tenths = (u128::from(count) * 10) >> (10 * unit);
    let name = UNITS[unit - 1];
    if tenths < 100 { format!("{}.{} {name}", tenths / 10, tenths % 10) } else { format!("{} {name}", tenths / 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10_240, "10 KiB"),
            (1_572_864, "1.5 MiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long() {
        let half = |with_bar| line("received", 512 * 1024, Some(1024 * 1024), 256 * 1024, with_bar);
        assert_eq!(half(true), "retryx: received [############............] 50 % of 1.0 MiB, 256 KiB/s, 2 s left");
        assert_eq!(half(false), "retryx: received 50 % of 1.0 MiB, 256 KiB/s, 2 s left");
        assert_eq!(line("sent", 2048, None, 1024, true), "retryx: sent 2.0 KiB, 1.0 KiB/s");
        assert!(line("received", 20, Some(10), 0, true).contains("100 %"));
    }
}
