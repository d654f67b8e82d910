//! The limits that a whole run keeps.

use std::num::NonZeroU64;
use std::time::Duration;

/// How often and how long a run may try. Times count from the start of retryx, on the
/// clock that includes suspension (design §5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most attempts, the first included; `None` is no limit.
    pub max_attempts: Option<NonZeroU64>,
    /// After this no new attempt starts; a running one is left to finish.
    pub deadline: Option<Duration>,
    /// The bound on everything, a running attempt included.
    pub total_timeout: Option<Duration>,
}

/// How late a planned start may come before it counts as missed: a wait ends a little
/// after its time, never before, so a delay that ends exactly on the deadline would
/// otherwise never be in time.
const LATENESS: Duration = Duration::from_millis(100);

/// The limit that a point in time would break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// `--deadline`.
    Deadline,
    /// `--total-timeout`.
    TotalTimeout,
}

impl Limits {
    /// The limit that an attempt planned to start at `start` would break, if any. To
    /// start exactly on the deadline is in time (design §5); to start exactly at the end
    /// of the total timeout leaves no time to run.
    pub fn broken_by_start_at(&self, start: Duration) -> Option<Passed> {
        if self.deadline.is_some_and(|deadline| start > deadline) {
            return Some(Passed::Deadline);
        }
        if self.total_timeout.is_some_and(|total| start >= total) {
            return Some(Passed::TotalTimeout);
        }
        None
    }

    /// As [`Self::broken_by_start_at`], asked when the wait is over: allows for the
    /// moment by which every wait is late. At the end of everything no attempt starts.
    pub fn broken_on_waking_at(&self, now: Duration) -> Option<Passed> {
        let strictly = self.broken_by_start_at(now).filter(|passed| *passed == Passed::TotalTimeout);
        self.broken_by_start_at(now.saturating_sub(LATENESS)).or(strictly)
    }

    /// The longest that the start of an attempt may be put off; `None` without a limit.
    pub fn longest_wait(&self, elapsed: Duration) -> Option<Duration> {
        const LEAST: Duration = Duration::from_nanos(1);
        let total = self.total_timeout.map(|total| total.saturating_sub(LEAST));
        let last = [self.deadline, total].into_iter().flatten().min()?;
        Some(last.saturating_sub(elapsed))
    }

    /// What is left until no further attempt may start or run; `None` without a limit.
    pub fn remaining(&self, elapsed: Duration) -> Option<Duration> {
        let end = match (self.deadline, self.total_timeout) {
            (Some(deadline), Some(total)) => deadline.min(total),
            (one, other) => one.or(other)?,
        };
        Some(end.saturating_sub(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn exactly_on_the_deadline_is_in_time_and_exactly_at_the_total_is_not() {
        let limits = Limits { max_attempts: None, deadline: Some(2 * SECOND), total_timeout: Some(3 * SECOND) };
        assert_eq!(limits.broken_by_start_at(2 * SECOND), None);
        let later = 2 * SECOND + Duration::from_nanos(1);
        assert_eq!(limits.broken_by_start_at(later), Some(Passed::Deadline));
        let limits = Limits { deadline: None, ..limits };
        assert_eq!(limits.broken_by_start_at(later), None);
        assert_eq!(limits.broken_by_start_at(3 * SECOND), Some(Passed::TotalTimeout));
    }

    #[test]
    fn the_longest_wait_ends_in_time_and_a_longer_one_does_not() {
        for (deadline, total_timeout) in [(Some(2), Some(3)), (Some(3), Some(2)), (Some(2), Some(2)), (None, Some(2))] {
            let seconds = |limit: Option<u32>| limit.map(|seconds| seconds * SECOND);
            let limits =
                Limits { max_attempts: None, deadline: seconds(deadline), total_timeout: seconds(total_timeout) };
            let longest = limits.longest_wait(SECOND).unwrap();
            assert_eq!(limits.broken_by_start_at(SECOND + longest), None);
            assert_ne!(limits.broken_by_start_at(SECOND + longest + Duration::from_nanos(1)), None);
        }
    }

    #[test]
    fn what_is_left_is_the_nearer_end() {
        let limits = |deadline, total_timeout| Limits { max_attempts: None, deadline, total_timeout };
        assert_eq!(limits(None, None).remaining(SECOND), None);
        assert_eq!(limits(Some(3 * SECOND), None).remaining(SECOND), Some(2 * SECOND));
        assert_eq!(limits(Some(9 * SECOND), Some(2 * SECOND)).remaining(SECOND), Some(SECOND));
        assert_eq!(limits(None, Some(SECOND)).remaining(5 * SECOND), Some(Duration::ZERO));
    }
}
