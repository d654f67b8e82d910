//! The client rate limiter of the AWS SDKs' adaptive mode (reference §4): idle until the
//! first throttling response, then it paces every attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Multiplicative decrease.
const BETA: f64 = 0.7;
/// Scale of the cubic curve.
const SCALE: f64 = 0.4;
/// Weight of the newest measurement.
const SMOOTH: f64 = 0.8;
/// Half-second slots: how many there are in a second.
const SLOTS_PER_SECOND: f64 = 2.0;
/// Attempts a second below which the rate never falls.
const MIN_FILL_RATE: f64 = 0.5;
/// Tokens that the bucket always can hold.
const MIN_CAPACITY: f64 = 1.0;
/// The rate never passes this multiple of what was measured.
const RATE_CEILING: f64 = 2.0;
/// What is missing of a token and would take less than this is granted: a sleep of no
/// length would be asked for again and again.
const SHORTFALL: f64 = 1e-9;
/// More than any rate or count that comes about.
const MOST: f64 = 1e12;

/// The limiter's state; times in seconds of the clock that the state lives on, rates in
/// attempts a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimiter {
    enabled: bool,
    fill_rate: f64,
    max_capacity: f64,
    capacity: f64,
    refilled: Option<f64>,
    measured: f64,
    slot: f64,
    count: f64,
    last_max: f64,
    last_throttle: f64,
    window: f64,
}

impl RateLimiter {
    /// A limiter that has seen nothing, at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// A limiter as it was kept, at `now` of its clock, after which none of its points of time
    /// can lie. `None` where its numbers cannot have come about.
    pub fn restore(mut self, now: Duration) -> Option<Self> {
        let now = now.as_secs_f64();
        let Self { fill_rate, max_capacity, capacity, measured, count, last_max, window, .. } = self;
        let times = [self.refilled.unwrap_or_default(), self.slot, self.last_throttle];
        let numbers = [fill_rate, max_capacity, capacity, measured, count, last_max, window];
        let sound = numbers.into_iter().chain(times).all(|number| (0.0..=MOST).contains(&number));
        // With less of either, a token would never come.
        let comes = fill_rate >= MIN_FILL_RATE && max_capacity >= MIN_CAPACITY;
        if !sound || (self.enabled && !comes) {
            return None;
        }
        self.refilled = self.refilled.map(|refilled| refilled.min(now));
        self.slot = self.slot.min(now);
        self.last_throttle = self.last_throttle.min(now);
        self.capacity = capacity.min(max_capacity);
        Some(self)
    }

    /// Whether it paces attempts yet.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The rate at which attempts are allowed.
    pub fn fill_rate(&self) -> f64 {
        self.fill_rate
    }

    /// The rate at which responses came.
    pub fn measured_rate(&self) -> f64 {
        self.measured
    }

    /// Takes the token for an attempt at `now`, or says how long until there is one.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        if !self.enabled {
            return Ok(());
        }
        self.refill(now.as_secs_f64());
        let wait = (1.0 - self.capacity) / self.fill_rate;
        if wait >= SHORTFALL {
            return Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX));
        }
        self.capacity = (self.capacity - 1.0).max(0.0);
        Ok(())
    }

    /// Books a response at `now`, and whether it was throttling.
    pub fn update(&mut self, now: Duration, throttled: bool) {
        let now = now.as_secs_f64();
        self.measure(now);
        let rate = if throttled { self.throttled(now) } else { self.cubic(now) };
        self.set_rate(now, rate.min(RATE_CEILING * self.measured));
    }

    fn measure(&mut self, now: f64) {
        self.count += 1.0;
        let slot = (now * SLOTS_PER_SECOND).floor() / SLOTS_PER_SECOND;
        if slot > self.slot {
            let rate = self.count / (slot - self.slot);
            self.measured = rate * SMOOTH + self.measured * (1.0 - SMOOTH);
            self.count = 0.0;
            self.slot = slot;
        }
    }

    fn throttled(&mut self, now: f64) -> f64 {
        let used = if self.enabled { self.measured.min(self.fill_rate) } else { self.measured };
        self.last_max = used;
        self.window = (used * (1.0 - BETA) / SCALE).cbrt();
        self.last_throttle = now;
        self.enabled = true;
        used * BETA
    }

    fn cubic(&self, now: f64) -> f64 {
        SCALE * (now - self.last_throttle - self.window).powi(3) + self.last_max
    }

    fn set_rate(&mut self, now: f64, rate: f64) {
        // What has come in so far came at the old rate.
        self.refill(now);
        self.fill_rate = rate.max(MIN_FILL_RATE);
        self.max_capacity = rate.max(MIN_CAPACITY);
        self.capacity = self.capacity.min(self.max_capacity);
    }

    fn refill(&mut self, now: f64) {
        if let Some(refilled) = self.refilled {
            let gained = (now - refilled).max(0.0) * self.fill_rate;
            self.capacity = (self.capacity + gained).min(self.max_capacity);
        }
        self.refilled = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Starts at the state that the published cubic vectors give.
    fn after_a_throttle_at_five() -> RateLimiter {
        let mut limiter = RateLimiter { last_max: 10.0, last_throttle: 5.0, enabled: true, ..RateLimiter::new() };
        limiter.window = (10.0 * (1.0 - BETA) / SCALE).cbrt();
        limiter
    }

    #[test]
    fn the_cubic_curve_is_the_published_one() {
        let limiter = after_a_throttle_at_five();
        for (now, rate) in [
            (5.0, 7.0),
            (6.0, 9.648_936_009_66),
            (7.0, 10.000_030_849_917_364),
            (8.0, 10.453_284_520_772_092),
            (9.0, 13.408_697_022_224_185),
            (10.0, 21.266_268_354_273_64),
            (11.0, 36.425_998_516_920_465),
        ] {
            assert!((limiter.cubic(now) - rate).abs() < 1e-9, "{now}");
        }
    }

    #[test]
    fn a_mixed_sequence_follows_the_specification() {
        let mut limiter = after_a_throttle_at_five();
        let mut rate = 0.0;
        for (now, throttled, expected) in [
            (5.0, false, 7.0),
            (6.0, false, 9.648_936_009_66),
            (7.0, true, 6.754_255_206_761_999),
            (8.0, true, 4.727_978_644_733_399),
            (9.0, false, 6.606_547_753_887_045),
            (10.0, false, 6.763_279_816_944_947),
            (11.0, false, 7.598_174_833_907_107),
            (12.0, false, 11.511_232_804_773_524),
        ] {
            // The vectors leave the measured rate and the ceiling out.
            (limiter.measured, limiter.fill_rate) = (f64::MAX, rate);
            rate = if throttled { limiter.throttled(now) } else { limiter.cubic(now) };
            assert!((rate - expected).abs() < 1e-9, "{now}: {rate}");
        }
    }

    #[test]
    fn a_decrease_is_seventy_percent_and_sets_the_window() {
        let mut limiter = RateLimiter { enabled: true, measured: 8.0, fill_rate: 8.0, ..RateLimiter::new() };
        assert!((limiter.throttled(0.0) - 5.6).abs() < 1e-12);
        assert!((limiter.window - 1.817_120_592_832_139_7).abs() < 1e-12);
    }

    #[test]
    fn after_one_throttle_at_low_volume_the_next_send_is_two_seconds_away() {
        let mut limiter = RateLimiter::new();
        assert_eq!(limiter.take(at(0.0)), Ok(()));
        limiter.update(at(0.0), true);
        let wait = limiter.take(at(0.1)).unwrap_err();
        assert!((wait.as_secs_f64() - 1.9).abs() < 1e-9, "{wait:?}");
        for _ in 0..10 {
            assert_eq!(limiter.take(at(0.1)), Err(wait));
        }
        assert_eq!(limiter.take(at(2.0)), Ok(()));
        assert!(limiter.capacity >= 0.0);
    }

    #[test]
    fn what_was_kept_is_taken_back_only_where_it_can_have_come_about() {
        let good = RateLimiter { refilled: Some(5.0), slot: 4.5, max_capacity: 9.0, ..after_a_throttle_at_five() };
        let good = RateLimiter { fill_rate: 0.5, capacity: 1.0, measured: 3.0, count: 2.0, ..good };
        assert_eq!(good.clone().restore(at(5.0)), Some(good.clone()));
        let early = good.clone().restore(at(2.0)).unwrap();
        assert_eq!((early.refilled, early.slot, early.last_throttle), (Some(2.0), 2.0, 2.0));
        for bad in [f64::NAN, f64::INFINITY, -1.0, 1e308] {
            assert_eq!(RateLimiter { measured: bad, ..good.clone() }.restore(at(5.0)), None);
            assert_eq!(RateLimiter { refilled: Some(bad), ..good.clone() }.restore(at(5.0)), None);
        }
        assert_eq!(RateLimiter { fill_rate: 0.1, ..good.clone() }.restore(at(5.0)), None);
        assert_eq!(RateLimiter::new().restore(at(0.0)), Some(RateLimiter::new()));
    }

    #[test]
    fn what_is_kept_is_taken_only_if_a_token_can_ever_come() {
        let mut kept = after_a_throttle_at_five();
        kept.update(at(6.0), false);
        assert!(kept.clone().restore(at(6.0)).is_some());
        for spoil in [
            (|limiter| limiter.fill_rate = 0.49) as fn(&mut RateLimiter),
            |limiter| limiter.max_capacity = 0.99,
            |limiter| limiter.capacity = -1.0,
            |limiter| limiter.measured = f64::NAN,
            |limiter| limiter.window = f64::INFINITY,
        ] {
            let mut spoilt = kept.clone();
            spoil(&mut spoilt);
            assert_eq!(spoilt.restore(at(6.0)), None);
        }
    }

    #[test]
    fn a_shortfall_of_nothing_is_granted_and_a_clock_that_goes_back_gives_nothing() {
        let mut limiter = RateLimiter {
            enabled: true,
            capacity: 1.0 - 1e-12,
            fill_rate: 0.5,
            max_capacity: 1.0,
            refilled: Some(5.0),
            ..RateLimiter::new()
        };
        assert_eq!(limiter.take(at(4.0)), Ok(()));
        assert!(limiter.take(at(4.0)).is_err());
    }
}
