//! What runs draw on: a retry quota and a rate limiter, on one clock.
//!
//! A run alone has a budget of its own; the runs of a scope share one. Wherever it is kept,
//! the same [`Operation`]s are applied to it in the same way: in memory and in a file by this
//! code, in Redis by a script that says the same.

use std::time::Duration;

use super::{QuotaPlan, RateLimiter, RetryQuota};

/// The parts of a budget that a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetPlan {
    /// The numbers of the retry quota, if the run has one.
    pub quota: Option<QuotaPlan>,
    /// Whether a rate limiter paces attempts.
    pub limiter: bool,
}

/// A budget as it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Budget {
    /// The quota, once a run had one.
    pub quota: Option<RetryQuota>,
    /// The rate limiter, idle until a response throttles.
    pub limiter: RateLimiter,
    /// The budget's time, from its beginning. It never goes back.
    pub now: Duration,
}

/// What a run does with a budget, as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Takes the rate limiter's token for an attempt that is about to start.
    Take,
    /// Books the end of an attempt.
    Book {
        /// Whether the service throttled it.
        throttled: bool,
        /// What that means for the quota.
        entry: Entry,
    },
}

/// What the end of an attempt means for the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Nothing is paid and nothing given back.
    Nothing,
    /// A success gives back what the run's last retry cost; 1 where there was none.
    Success {
        /// What the last retry cost.
        last_cost: Option<u32>,
    },
    /// A retry is to be paid.
    Retry {
        /// Its price in tokens.
        cost: u32,
        /// When it would start; without that it is only asked whether it could be paid.
        start: Option<Start>,
    },
}

/// When a retry would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The delay before it.
    pub delay: Duration,
    /// The longest that it may be put off, the delay included; `None` for no limit.
    pub longest: Option<Duration>,
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whether the retry was paid; granted where none was asked for.
    pub grant: Grant,
    /// What the rate limiter adds: to a retry's delay, or until the attempt can have its
    /// token. Zero took the token.
    pub wait: Duration,
    /// Whole tokens in the quota now; `None` for a run without one.
    pub tokens: Option<u32>,
    /// The budget's time at the operation.
    pub now: Duration,
}

/// Whether a retry was paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// It was, or nothing had to be.
    Granted,
    /// The tokens do not reach; none was taken.
    Refused,
    /// It would start too late; nothing was taken.
    TooLate,
}

impl Budget {
    /// Applies an operation at `now`, a point of the budget's time.
    pub fn apply(&mut self, plan: &BudgetPlan, operation: &Operation, now: Duration) -> Answer {
        let now = self.now.max(now);
        self.now = now;
        if let Some(quota) = &mut self.quota {
            quota.refill(now);
        }
        if let Some(plan) = plan.quota {
            match &mut self.quota {
                Some(quota) => quota.adopt(plan),
                None => self.quota = Some(RetryQuota::restore(plan, RetryQuota::full(plan).level(), 0, now)),
            }
        }
        let (grant, wait) = match *operation {
            Operation::Take if plan.limiter => (Grant::Granted, self.limiter.take(now).err().unwrap_or_default()),
            Operation::Take => (Grant::Granted, Duration::ZERO),
            Operation::Book { throttled, entry } => {
                if plan.limiter {
                    self.limiter.update(now, throttled);
                }
                self.enter(plan, entry)
            }
        };
        let quota = self.quota.as_ref().filter(|_| plan.quota.is_some());
        Answer { grant, wait, tokens: quota.map(RetryQuota::tokens), now }
    }

    fn enter(&mut self, plan: &BudgetPlan, entry: Entry) -> (Grant, Duration) {
        let quota = self.quota.as_mut().filter(|_| plan.quota.is_some());
        let (cost, start) = match entry {
            Entry::Nothing => return (Grant::Granted, Duration::ZERO),
            Entry::Success { last_cost } => {
                if let Some(quota) = quota {
                    quota.refund(last_cost);
                }
                return (Grant::Granted, Duration::ZERO);
            }
            Entry::Retry { cost, start } => (cost, start),
        };
        let mut wait = Duration::ZERO;
        if let (Some(start), true) = (start, plan.limiter) {
            // Tokens come in during the delay; what is missing then is waited for too.
            let taken = self.limiter.clone().take(self.now.saturating_add(start.delay));
            wait = taken.err().map_or(Duration::ZERO, whole_micros_up);
        }
        let grant = match (&quota, start) {
            (Some(quota), _) if !quota.affords(cost) => Grant::Refused,
            (_, None) => Grant::TooLate,
            (_, Some(Start { delay, longest: Some(longest) })) if delay.saturating_add(wait) > longest => {
                Grant::TooLate
            }
            (_, Some(_)) => Grant::Granted,
        };
        if let (Some(quota), Grant::Granted) = (quota, grant) {
            quota.pay(cost);
        }
        (grant, wait)
    }
}

/// Rounded up, so that the token is there when the wait is over.
fn whole_micros_up(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: BudgetPlan = BudgetPlan {
        quota: Some(QuotaPlan { capacity: 10, transient_cost: 5, throttling_cost: 2, refill: 0 }),
        limiter: false,
    };

    fn retry(cost: u32, start: Option<Start>) -> Operation {
        Operation::Book { throttled: false, entry: Entry::Retry { cost, start } }
    }

    const AT_ONCE: Option<Start> = Some(Start { delay: Duration::ZERO, longest: None });

    fn answer(budget: &mut Budget, plan: &BudgetPlan, operation: &Operation) -> (Grant, Option<u32>) {
        let answer = budget.apply(plan, operation, Duration::ZERO);
        (answer.grant, answer.tokens)
    }

    #[test]
    fn what_is_refused_or_too_late_is_not_paid() {
        let mut budget = Budget::default();
        let late = Some(Start { delay: Duration::from_secs(2), longest: Some(Duration::from_secs(1)) });
        let on_time = Some(Start { delay: Duration::from_secs(1), longest: Some(Duration::from_secs(1)) });
        assert_eq!(answer(&mut budget, &QUOTA, &retry(5, late)), (Grant::TooLate, Some(10)));
        assert_eq!(answer(&mut budget, &QUOTA, &retry(5, None)), (Grant::TooLate, Some(10)));
        assert_eq!(answer(&mut budget, &QUOTA, &retry(5, on_time)), (Grant::Granted, Some(5)));
        assert_eq!(answer(&mut budget, &QUOTA, &retry(6, AT_ONCE)), (Grant::Refused, Some(5)));
        assert_eq!(answer(&mut budget, &QUOTA, &retry(6, late)), (Grant::Refused, Some(5)));
        assert_eq!(answer(&mut budget, &QUOTA, &retry(5, AT_ONCE)), (Grant::Granted, Some(0)));
    }

    #[test]
    fn another_capacity_takes_tokens_away_and_never_makes_any() {
        let mut budget = Budget::default();
        answer(&mut budget, &QUOTA, &Operation::Take);
        let sized =
            |capacity| BudgetPlan { quota: QUOTA.quota.map(|quota| QuotaPlan { capacity, ..quota }), limiter: false };
        assert_eq!(answer(&mut budget, &sized(500), &Operation::Take), (Grant::Granted, Some(10)));
        assert_eq!(answer(&mut budget, &sized(3), &Operation::Take), (Grant::Granted, Some(3)));
        assert_eq!(answer(&mut budget, &sized(500), &Operation::Take), (Grant::Granted, Some(3)));
    }

    #[test]
    fn a_run_without_a_quota_leaves_the_scopes_alone() {
        let mut budget = Budget::default();
        let bare = BudgetPlan::default();
        assert_eq!(answer(&mut budget, &bare, &retry(500, AT_ONCE)), (Grant::Granted, None));
        assert_eq!(budget.quota, None);
        answer(&mut budget, &QUOTA, &retry(5, AT_ONCE));
        assert_eq!(answer(&mut budget, &bare, &retry(500, AT_ONCE)), (Grant::Granted, None));
        assert_eq!(answer(&mut budget, &QUOTA, &Operation::Take), (Grant::Granted, Some(5)));
    }

    #[test]
    fn a_refill_goes_by_the_rate_that_held_while_the_time_passed() {
        let rated =
            |refill| BudgetPlan { quota: QUOTA.quota.map(|quota| QuotaPlan { refill, ..quota }), limiter: false };
        let mut budget = Budget::default();
        budget.apply(&rated(0), &retry(10, AT_ONCE), Duration::ZERO);
        let second = |seconds| Duration::from_secs(seconds);
        assert_eq!(budget.apply(&rated(super::super::NANO), &Operation::Take, second(4)).tokens, Some(0));
        assert_eq!(budget.apply(&rated(0), &Operation::Take, second(7)).tokens, Some(3));
        assert_eq!(budget.apply(&rated(0), &Operation::Take, second(1)).tokens, Some(3));
    }

    #[test]
    fn the_limiter_puts_a_retry_off_and_the_take_after_that_wait_has_its_token() {
        let plan = BudgetPlan { quota: None, limiter: true };
        let mut budget = Budget::default();
        assert_eq!(budget.apply(&plan, &Operation::Take, Duration::ZERO).wait, Duration::ZERO);
        let delay = Duration::from_millis(300);
        let entry = Entry::Retry { cost: 5, start: Some(Start { delay, longest: None }) };
        let booked = budget.apply(&plan, &Operation::Book { throttled: true, entry }, Duration::ZERO);
        // Half an attempt a second is the floor.
        assert_eq!(booked.wait + delay, Duration::from_secs(2));
        assert!(budget.apply(&plan, &Operation::Take, Duration::from_secs(1)).wait > Duration::ZERO);
        assert_eq!(budget.apply(&plan, &Operation::Take, Duration::from_secs(2)).wait, Duration::ZERO);
    }
}
