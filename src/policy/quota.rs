//! The retry quota of the AWS SDKs: a token bucket that pays for retries.

use super::Class;

/// Capacity and start level (reference §1.7).
pub const CAPACITY: u32 = 500;
/// Price of a retry after a transient failure, timeouts included (reference §1.7).
pub const TRANSIENT_COST: u32 = 14;
/// Price of a retry after a throttling failure (reference §1.7).
pub const THROTTLING_COST: u32 = 5;
/// What a first attempt that succeeds gives back (reference §1.7).
pub const FIRST_SUCCESS_REFUND: u32 = 1;

/// A token bucket: a retry is paid before it is made, a success gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryQuota {
    tokens: u32,
    last_cost: Option<u32>,
}

impl Default for RetryQuota {
    fn default() -> Self {
        Self { tokens: CAPACITY, last_cost: None }
    }
}

impl RetryQuota {
    /// Tokens left.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// What a retry after a failure of this class costs, in tokens.
    pub fn cost(class: Class) -> u32 {
        if class == Class::Throttling { THROTTLING_COST } else { TRANSIENT_COST }
    }

    /// Whether a retry after a failure of this class can be paid.
    pub fn affords(&self, class: Class) -> bool {
        self.tokens >= Self::cost(class)
    }

    /// Pays for a retry; false, and nothing taken, when the tokens do not reach.
    pub fn pay(&mut self, class: Class) -> bool {
        let cost = Self::cost(class);
        match self.tokens.checked_sub(cost) {
            Some(left) => {
                self.tokens = left;
                self.last_cost = Some(cost);
                true
            }
            None => false,
        }
    }

    /// Books a success: the cost of the last retry comes back, or 1 token where the
    /// first attempt succeeded; never above the capacity.
    pub fn refund(&mut self) {
        let back = self.last_cost.take().unwrap_or(FIRST_SUCCESS_REFUND);
        self.tokens = self.tokens.saturating_add(back).min(CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_transient_retries_and_a_success_cost_fourteen_net() {
        let mut quota = RetryQuota::default();
        assert!(quota.pay(Class::Transient));
        assert!(quota.pay(Class::Transient));
        quota.refund();
        assert_eq!(quota.tokens(), 486);
    }

    #[test]
    fn a_full_bucket_pays_for_35_transient_or_100_throttling_retries() {
        for (class, retries, left) in [(Class::Transient, 35, 10), (Class::Throttling, 100, 0)] {
            let mut quota = RetryQuota::default();
            for _ in 0..retries {
                assert!(quota.pay(class));
            }
            assert!(!quota.affords(class));
            assert!(!quota.pay(class));
            assert_eq!(quota.tokens(), left);
        }
    }

    #[test]
    fn a_refund_never_passes_the_capacity() {
        let mut quota = RetryQuota::default();
        quota.refund();
        assert_eq!(quota.tokens(), CAPACITY);
    }
}
