//! How long to wait: delay formulas, caps and jitter (design §2).

use std::fmt;
use std::time::Duration;

use rand::{Rng, RngExt};

use super::Class;

/// A set of documented defaults for formula, limits and quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The AWS SDKs' standard mode (reference §1).
    Standard,
    /// Standard with the client rate limiter before every attempt (reference §4).
    Adaptive,
    /// The AWS CLI's old mode (reference §5).
    Legacy,
    /// Google Cloud's truncated exponential backoff (reference §9).
    Google,
    /// The same delay every time.
    Fixed,
    /// A delay that grows by the base each time.
    Linear,
    /// Exponential growth with full jitter.
    Exponential,
    /// Each delay drawn between the base and three times the one before.
    Decorrelated,
}

impl Mode {
    /// All modes, by the name that `--mode` takes.
    pub const ALL: [(&'static str, Self); 9] = [
        ("standard", Self::Standard),
        ("aws", Self::Standard),
        ("adaptive", Self::Adaptive),
        ("legacy", Self::Legacy),
        ("google", Self::Google),
        ("fixed", Self::Fixed),
        ("linear", Self::Linear),
        ("exponential", Self::Exponential),
        ("decorrelated", Self::Decorrelated),
    ];

    /// Whether AWS documents this mode, so that its settings apply.
    pub fn is_aws(self) -> bool {
        matches!(self, Self::Standard | Self::Adaptive | Self::Legacy)
    }

    /// The name shown in events and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Adaptive => "adaptive",
            Self::Legacy => "legacy",
            Self::Google => "google",
            Self::Fixed => "fixed",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
            Self::Decorrelated => "decorrelated",
        }
    }
}

/// How the delay grows with the number of the retry i = 0, 1, …
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// base
    Fixed,
    /// base × (i + 1)
    Linear,
    /// base × factor^i
    Exponential {
        /// The 2 of the documented formulas; at least 1.
        factor: f64,
    },
    /// uniform(base, 3 × previous)
    Decorrelated,
    /// These delays in turn; the last repeats. Never empty.
    Schedule(Vec<Duration>),
}

/// How randomness enters; u is uniform in [0, 1), drawn afresh for each delay d.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// u × d
    Full,
    /// d/2 + u × d/2
    Equal,
    /// d + f seconds, f uniform in (0, 1]; the cap comes after it, as Google documents.
    Fraction,
    /// d
    None,
}

impl Jitter {
    /// All kinds, by the name that `--jitter` takes.
    pub const ALL: [(&'static str, Self); 4] =
        [("full", Self::Full), ("equal", Self::Equal), ("fraction", Self::Fraction), ("none", Self::None)];

    /// The name shown in events and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Fraction => "fraction",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A complete delay rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    /// How the delay grows.
    pub formula: Formula,
    /// How it is spread.
    pub jitter: Jitter,
    /// Base after a transient failure.
    pub base: Duration,
    /// Base after a throttling failure.
    pub throttling_base: Duration,
    /// No delay is longer; [`Duration::MAX`] is no cap.
    pub cap: Duration,
    /// No delay is shorter.
    pub floor: Duration,
}

/// One computed delay and what it was computed from.
#[derive(Debug, Clone, PartialEq)]
pub struct Delay {
    /// The wait itself, in whole microseconds, so that what is said is what is slept.
    pub wait: Duration,
    /// The base that entered.
    pub base: Duration,
    /// The number of the retry, from 0.
    pub exponent: u64,
    /// The random number that entered, in [0, 1); `None` where nothing was drawn.
    pub drawn: Option<f64>,
    /// What set its length.
    pub source: DelaySource,
    /// What the server asked for, if it did.
    pub server: Option<Duration>,
}

/// What set the length of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelaySource {
    /// The formula.
    Backoff,
    /// A header of the answer.
    Server,
    /// A line of the command's output.
    Output,
    /// The rate limiter, which had no token yet when the formula's delay was over.
    Limiter,
}

impl DelaySource {
    /// The word used in events and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Server => "server",
            Self::Output => "output",
            Self::Limiter => "limiter",
        }
    }
}

const NANOS_PER_SECOND: f64 = 1e9;

impl Backoff {
    /// The delay before retry `i` (from 0) after a failure of `class`; `previous` is the
    /// delay before it, if any. Defined for every i: what does not fit is the cap.
    pub fn delay(&self, i: u64, class: Class, previous: Option<Duration>, random: &mut impl Rng) -> Delay {
        let base = if class == Class::Throttling { self.throttling_base } else { self.base };
        let cap = nanos(self.cap);
        let (delay, drawn) = if self.formula == Formula::Decorrelated {
            let low = nanos(base);
            let high = (3.0 * nanos(previous.unwrap_or(base))).max(low);
            let u: f64 = random.random();
            ((low + u * (high - low)).min(cap), Some(u))
        } else {
            self.spread(self.grown(nanos(base), i), cap, random)
        };
        let wait = self.held(whole_micros(delay));
        Delay { wait, base, exponent: i, drawn, source: DelaySource::Backoff, server: None }
    }

    /// The formula's value in nanoseconds, without cap and jitter.
    fn grown(&self, base: f64, i: u64) -> f64 {
        match &self.formula {
            Formula::Fixed | Formula::Decorrelated => base,
            Formula::Schedule(delays) => {
                let index = usize::try_from(i).unwrap_or(usize::MAX).min(delays.len().saturating_sub(1));
                delays.get(index).map_or(0.0, |delay| nanos(*delay))
            }
            Formula::Linear => base * (to_f64(i) + 1.0),
            // A zero base stays zero; 0 × ∞ would not be a number.
            Formula::Exponential { .. } if base == 0.0 => 0.0,
            Formula::Exponential { factor } => base * factor.powi(i32::try_from(i).unwrap_or(i32::MAX)),
        }
    }

    /// The formula's value before retry `i`, without cap, jitter and floor.
    pub fn without_cap(&self, i: u64, class: Class) -> Duration {
        let base = if class == Class::Throttling { self.throttling_base } else { self.base };
        whole_micros(self.grown(nanos(base), i))
    }

    /// The bounds between which the jitter draws evenly before retry `i`, cap and floor not
    /// yet held where they come after the jitter.
    pub fn range(&self, i: u64, class: Class) -> (Duration, Duration) {
        let capped = self.without_cap(i, class).min(self.cap);
        match self.jitter {
            Jitter::Full => (Duration::ZERO, capped),
            Jitter::Equal => (capped / 2, capped),
            Jitter::Fraction => (capped, capped.saturating_add(Duration::from_secs(1))),
            Jitter::None => (capped, capped),
        }
    }

    /// A delay held within cap and floor.
    pub fn held(&self, delay: Duration) -> Duration {
        delay.min(self.cap).max(self.floor)
    }

    fn spread(&self, delay: f64, cap: f64, random: &mut impl Rng) -> (f64, Option<f64>) {
        let capped = delay.min(cap);
        if self.jitter == Jitter::None {
            return (capped, None);
        }
        let u: f64 = random.random();
        let spread = match self.jitter {
            Jitter::Full => u * capped,
            Jitter::Equal => capped / 2.0 + u * (capped / 2.0),
            Jitter::Fraction => (capped + (1.0 - u) * NANOS_PER_SECOND).min(cap),
            Jitter::None => capped,
        };
        (spread, Some(u))
    }
}

/// Exact up to 104 days (2^53 ns); beyond, a delay's last digits do not matter.
fn nanos(duration: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let nanos = duration.as_nanos() as f64;
    nanos
}

fn to_f64(i: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "past 2^53 retries any delay is at its cap")]
    let i = i as f64;
    i
}

/// Cut to whole microseconds; what is too long for a `u64` of them (584,000 years) is
/// endless.
fn whole_micros(nanos: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, and the value is never negative"
    )]
    let micros = (nanos / 1e3) as u64;
    if micros == u64::MAX { Duration::MAX } else { Duration::from_micros(micros) }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    fn backoff(formula: Formula, jitter: Jitter, base_ms: u64, cap_ms: u64) -> Backoff {
        Backoff {
            formula,
            jitter,
            base: Duration::from_millis(base_ms),
            throttling_base: Duration::from_secs(1),
            cap: Duration::from_millis(cap_ms),
            floor: Duration::ZERO,
        }
    }

    const DOUBLING: Formula = Formula::Exponential { factor: 2.0 };

    fn waits(backoff: &Backoff, class: Class, count: u64) -> Vec<u128> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut previous = None;
        (0..count)
            .map(|i| {
                let delay = backoff.delay(i, class, previous, &mut random);
                previous = Some(delay.wait);
                delay.wait.as_millis()
            })
            .collect()
    }

    #[test]
    fn the_documented_table_without_jitter() {
        let aws = backoff(DOUBLING, Jitter::None, 50, 20_000);
        assert_eq!(waits(&aws, Class::Transient, 11), [50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 20000, 20000]);
        assert_eq!(waits(&aws, Class::Throttling, 6), [1000, 2000, 4000, 8000, 16000, 20000]);
        let capped = backoff(DOUBLING, Jitter::None, 100, 400);
        assert_eq!(waits(&capped, Class::Transient, 7), [100, 200, 400, 400, 400, 400, 400]);
        let linear = backoff(Formula::Linear, Jitter::None, 1000, 3500);
        assert_eq!(waits(&linear, Class::Transient, 5), [1000, 2000, 3000, 3500, 3500]);
        let fixed = backoff(Formula::Fixed, Jitter::None, 700, 20_000);
        assert_eq!(waits(&fixed, Class::Transient, 3), [700, 700, 700]);
    }

    #[test]
    fn google_lies_between_two_to_the_n_and_one_second_more_up_to_its_cap() {
        let google = backoff(DOUBLING, Jitter::Fraction, 1000, 32_000);
        for seed in 0..1000 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for i in 0..5 {
                let wait = google.delay(i, Class::Transient, None, &mut random).wait;
                let least = Duration::from_secs(1 << i);
                assert!(wait >= least && wait <= least + Duration::from_secs(1), "{i}: {wait:?}");
            }
            for i in [5, 6, 63, u64::MAX] {
                let wait = google.delay(i, Class::Transient, None, &mut random).wait;
                assert_eq!(wait, Duration::from_secs(32));
            }
        }
    }

    #[test]
    fn no_jitter_passes_the_cap_and_nothing_overflows() {
        let kinds = [Jitter::Full, Jitter::Equal, Jitter::Fraction, Jitter::None];
        let formulas = [
            Formula::Fixed,
            Formula::Linear,
            DOUBLING,
            Formula::Exponential { factor: f64::MAX },
            Formula::Decorrelated,
        ];
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for jitter in kinds {
            for formula in &formulas {
                for base in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1), Duration::MAX] {
                    for cap in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
                        let rule = Backoff { base, cap, ..backoff(formula.clone(), jitter, 0, 0) };
                        for i in [0, 1, 31, 64, 1023, 1 << 40, u64::MAX] {
                            let wait = rule.delay(i, Class::Transient, Some(Duration::MAX), &mut random).wait;
                            assert!(wait <= cap, "{rule:?} at {i}: {wait:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn full_jitter_fills_its_range_and_the_floor_holds() {
        let full = backoff(DOUBLING, Jitter::Full, 1000, 1_000_000);
        let equal = Backoff { jitter: Jitter::Equal, ..full.clone() };
        let floored = Backoff { floor: Duration::from_millis(300), ..full.clone() };
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mean = |rule: &Backoff, random: &mut ChaCha8Rng| {
            let sum: f64 = (0..10_000).map(|_| rule.delay(3, Class::Transient, None, random).wait.as_secs_f64()).sum();
            sum / 10_000.0
        };
        assert!((mean(&full, &mut random) - 4.0).abs() < 0.1);
        assert!((mean(&equal, &mut random) - 6.0).abs() < 0.1);
        for i in 0..6 {
            for _ in 0..1000 {
                let wait = floored.delay(i, Class::Transient, None, &mut random).wait;
                assert!(wait >= floored.floor);
            }
        }
    }

    #[test]
    fn each_jitter_has_the_mean_and_the_spread_of_its_formula() {
        // For d = 8 s: an even draw between a and b has the mean (a + b)/2 and the variance
        // (b - a)²/12.
        for (jitter, low, high) in [
            (Jitter::Full, 0.0, 8.0),
            (Jitter::Equal, 4.0, 8.0),
            (Jitter::Fraction, 8.0, 9.0),
            (Jitter::None, 8.0, 8.0),
        ] {
            let rule = backoff(DOUBLING, jitter, 1000, 1_000_000);
            let mut random = ChaCha8Rng::seed_from_u64(6);
            let count = 20_000u32;
            let draws: Vec<f64> =
                (0..count).map(|_| rule.delay(3, Class::Transient, None, &mut random).wait.as_secs_f64()).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(count);
            let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / f64::from(count);
            let (right_mean, right_variance) = (f64::midpoint(low, high), (high - low).powi(2) / 12.0);
            assert!((mean - right_mean).abs() < 0.01 * right_mean, "{jitter}: mean {mean}");
            assert!((variance - right_variance).abs() <= 0.03 * right_variance + 1e-9, "{jitter}: variance {variance}");
            assert!(draws.iter().all(|draw| (low..=high).contains(draw)), "{jitter}");
        }
    }

    #[test]
    fn decorrelated_stays_between_base_and_three_times_the_one_before() {
        let rule = backoff(Formula::Decorrelated, Jitter::None, 1000, 20_000);
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut previous = None;
        for i in 0..1000 {
            let wait = rule.delay(i, Class::Transient, previous, &mut random).wait;
            let high = 3 * previous.unwrap_or(rule.base);
            assert!(wait >= rule.base && wait <= high.min(rule.cap));
            previous = Some(wait);
        }
    }
}
