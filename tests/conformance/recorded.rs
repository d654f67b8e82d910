//! Budgets that remember what was done with them, so that it can be done again elsewhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use retryx::policy::{Answer, Budget, BudgetPlan, Entry, Operation, QuotaPlan, RetryQuota};

/// What was done with one budget, from its beginning.
#[derive(Debug, Default)]
pub struct Log {
    /// The tokens that it began with, where it did not begin as any does.
    pub start: Option<(QuotaPlan, u32)>,
    /// Each operation, and when.
    pub steps: Vec<(BudgetPlan, Operation, Duration)>,
}

thread_local! {
    static LOGS: RefCell<Vec<Rc<RefCell<Log>>>> = RefCell::default();
}

/// The logs of all budgets since it was asked last.
pub fn logs() -> Vec<Rc<RefCell<Log>>> {
    LOGS.take()
}

/// A budget in memory.
pub struct Recorded {
    budget: Budget,
    log: Rc<RefCell<Log>>,
}

impl Recorded {
    /// One that nobody has used.
    pub fn new() -> Self {
        Self::beginning(Budget::default(), Log::default())
    }

    /// One with so many tokens.
    pub fn with_tokens(quota: QuotaPlan, tokens: u32) -> Self {
        let budget = Budget { quota: Some(RetryQuota::with_tokens(quota, tokens)), ..Budget::default() };
        Self::beginning(budget, Log { start: Some((quota, tokens)), ..Log::default() })
    }

    fn beginning(budget: Budget, log: Log) -> Self {
        let log = Rc::new(RefCell::new(log));
        LOGS.with_borrow_mut(|logs| logs.push(Rc::clone(&log)));
        Self { budget, log }
    }

    /// Applies an operation.
    pub fn apply(&mut self, plan: &BudgetPlan, operation: &Operation, now: Duration) -> Answer {
        self.log.borrow_mut().steps.push((*plan, *operation, now));
        self.budget.apply(plan, operation, now)
    }

    /// Whole tokens in the quota.
    pub fn tokens(&self) -> Option<u32> {
        self.budget.quota.as_ref().map(RetryQuota::tokens)
    }
}

/// The rate limiter of a budget.
pub struct Limiter(Recorded);

const PLAN: BudgetPlan = BudgetPlan { quota: None, limiter: true };

impl Limiter {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self(Recorded::new())
    }

    /// Books a response.
    pub fn update(&mut self, now: Duration, throttled: bool) {
        self.0.apply(&PLAN, &Operation::Book { throttled, entry: Entry::Nothing }, now);
    }

    /// Takes the token for an attempt, or says how long until there is one.
    pub fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let wait = self.0.apply(&PLAN, &Operation::Take, now).wait;
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// What [`Self::take`] would say, without taking anything.
    pub fn ask(&self, now: Duration) -> Result<(), Duration> {
        self.0.budget.limiter.clone().take(now)
    }

    /// Whether it paces.
    pub fn is_enabled(&self) -> bool {
        self.0.budget.limiter.is_enabled()
    }

    /// Attempts a second.
    pub fn fill_rate(&self) -> f64 {
        self.0.budget.limiter.fill_rate()
    }

    /// Responses a second.
    pub fn measured_rate(&self) -> f64 {
        self.0.budget.limiter.measured_rate()
    }
}
