//! The retry quota of the AWS SDKs: a token bucket that pays for retries.

use std::time::Duration;

use super::Class;

/// Capacity and start level (reference §1.7).
pub const CAPACITY: u32 = 500;
/// Price of a retry after a transient failure, timeouts included (reference §1.7).
pub const TRANSIENT_COST: u32 = 14;
/// Price of a retry after a throttling failure (reference §1.7).
pub const THROTTLING_COST: u32 = 5;
/// What a first attempt that succeeds gives back (reference §1.7).
pub const FIRST_SUCCESS_REFUND: u32 = 1;

/// Tokens are counted in billionths, so that no fraction of a refill is lost.
pub const NANO: u64 = 1_000_000_000;

/// The greatest refill: a million tokens a second.
pub const MOST_REFILL: u64 = NANO * 1_000_000;

/// The numbers of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaPlan {
    /// The most tokens, and the level at the start.
    pub capacity: u32,
    /// Price of a retry after a transient failure.
    pub transient_cost: u32,
    /// Price of a retry after a throttling failure.
    pub throttling_cost: u32,
    /// Billionths of a token that come back each second by themselves; AWS has none.
    pub refill: u64,
}

impl Default for QuotaPlan {
    fn default() -> Self {
        Self { capacity: CAPACITY, transient_cost: TRANSIENT_COST, throttling_cost: THROTTLING_COST, refill: 0 }
    }
}

impl QuotaPlan {
    /// The refill that fills a bucket of that capacity in that time.
    pub fn refill_that_fills(capacity: u32, time: Duration) -> u64 {
        let tokens = u128::from(capacity) * u128::from(NANO) * u128::from(NANO);
        u64::try_from(tokens / time.as_nanos().max(1)).unwrap_or(u64::MAX).min(MOST_REFILL)
    }

    /// What a retry after a failure of this class costs, in tokens.
    pub fn cost(&self, class: Class) -> u32 {
        if class == Class::Throttling { self.throttling_cost } else { self.transient_cost }
    }
}

/// A token bucket: a retry is paid before it is made, a success gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryQuota {
    plan: QuotaPlan,
    /// Billionths of tokens.
    level: u64,
    /// Billionths of billionths that a refill left over.
    remainder: u64,
    updated: Duration,
}

impl RetryQuota {
    /// A full bucket at time zero.
    pub fn full(plan: QuotaPlan) -> Self {
        Self::with_tokens(plan, plan.capacity)
    }

    /// A bucket with so many tokens, at most its capacity, at time zero.
    pub fn with_tokens(plan: QuotaPlan, tokens: u32) -> Self {
        let level = u64::from(tokens.min(plan.capacity)) * NANO;
        Self { plan, level, remainder: 0, updated: Duration::ZERO }
    }

    /// A bucket as it was kept: billionths of tokens, what a refill left over, and the point
    /// of its time up to which it was refilled. Never more than the capacity.
    pub fn restore(plan: QuotaPlan, level: u64, remainder: u64, updated: Duration) -> Self {
        let full = u64::from(plan.capacity) * NANO;
        let (level, remainder) = if level >= full { (full, 0) } else { (level, remainder) };
        Self { plan, level, remainder: remainder.min(NANO - 1), updated }
    }

    /// Takes over the numbers of another plan; no token comes in by that.
    pub fn adopt(&mut self, plan: QuotaPlan) {
        *self = Self::restore(plan, self.level, self.remainder, self.updated);
    }

    /// The numbers that it was last used with.
    pub fn plan(&self) -> QuotaPlan {
        self.plan
    }

    /// Billionths of tokens left.
    pub fn level(&self) -> u64 {
        self.level
    }

    /// Billionths of billionths of a token that the last refill left over.
    pub fn remainder(&self) -> u64 {
        self.remainder
    }

    /// Whole tokens left.
    pub fn tokens(&self) -> u32 {
        u32::try_from(self.level / NANO).unwrap_or(u32::MAX)
    }

    /// Lets time pass up to `now`; a clock that went back adds nothing.
    pub fn refill(&mut self, now: Duration) {
        let nanos = now.saturating_sub(self.updated).as_nanos();
        self.updated = self.updated.max(now);
        let gained = nanos.saturating_mul(self.plan.refill.into()).saturating_add(self.remainder.into());
        let full = u64::from(self.plan.capacity) * NANO;
        let whole = u64::try_from(gained / u128::from(NANO)).unwrap_or(u64::MAX);
        let level = self.level.saturating_add(whole);
        self.remainder = if level >= full { 0 } else { u64::try_from(gained % u128::from(NANO)).unwrap_or(0) };
        self.level = level.min(full);
    }

    /// Whether so many tokens are there.
    pub fn affords(&self, cost: u32) -> bool {
        self.level >= u64::from(cost) * NANO
    }

    /// Takes so many tokens; false, and nothing taken, where they do not reach.
    pub fn pay(&mut self, cost: u32) -> bool {
        let left = self.level.checked_sub(u64::from(cost) * NANO);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    /// Books a success: the price of the run's last retry comes back, or 1 token where the
    /// first attempt succeeded; never above the capacity.
    pub fn refund(&mut self, last_cost: Option<u32>) {
        let back = last_cost.unwrap_or(FIRST_SUCCESS_REFUND);
        let full = u64::from(self.plan.capacity) * NANO;
        self.level = self.level.saturating_add(u64::from(back) * NANO).min(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_pays_for_35_transient_or_100_throttling_retries() {
        for (class, retries, left) in [(Class::Transient, 35, 10), (Class::Throttling, 100, 0)] {
            let mut quota = RetryQuota::full(QuotaPlan::default());
            let cost = quota.plan().cost(class);
            for _ in 0..retries {
                assert!(quota.pay(cost));
            }
            assert!(!quota.affords(cost));
            assert!(!quota.pay(cost));
            assert_eq!(quota.tokens(), left);
        }
    }

    #[test]
    fn a_refill_loses_no_fraction_and_stops_at_the_capacity() {
        let third = QuotaPlan { capacity: 10, refill: NANO / 3, ..QuotaPlan::default() };
        let mut quota = RetryQuota::with_tokens(third, 0);
        for tick in 1..=9_000 {
            quota.refill(Duration::from_millis(tick));
        }
        assert_eq!(quota.level, 9 * (NANO / 3));
        // The clock goes back, and on from there: no token for the same time twice.
        quota.refill(Duration::ZERO);
        quota.refill(Duration::from_secs(9));
        assert_eq!(quota.level, 9 * (NANO / 3));
        quota.refill(Duration::MAX);
        assert_eq!(quota.tokens(), 10);
        quota.refund(Some(5));
        assert_eq!(quota.tokens(), 10);
    }
}
