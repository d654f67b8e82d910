//! The budget that a run draws on: its scope's, or its own.

use std::time::Duration;

use super::{Scope, StateStore};
use crate::policy::{Answer, Budget, BudgetPlan, Operation};

/// How long a store that failed is left alone before the run asks it again.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// The budget of a run.
pub struct RunBudget {
    plan: BudgetPlan,
    own: Budget,
    shared: Option<Shared>,
    /// Whether the last operation was applied to the scope's budget.
    is_shared: bool,
}

struct Shared {
    store: Box<dyn StateStore>,
    scope: Scope,
    /// The point of the run's time before which the store is left alone.
    again_at: Duration,
    /// Whether it was said that the scope is not shared.
    is_said: bool,
}

impl RunBudget {
    /// A budget of the run's own, full at its start.
    pub fn private(plan: BudgetPlan) -> Self {
        Self { plan, own: Budget::default(), shared: None, is_shared: false }
    }

    /// The budget of a scope; the run's own wherever that cannot be had.
    pub fn shared(plan: BudgetPlan, store: Box<dyn StateStore>, scope: Scope) -> Self {
        let shared = Shared { store, scope, again_at: Duration::ZERO, is_said: false };
        Self { plan, own: Budget::default(), shared: Some(shared), is_shared: false }
    }

    /// Whether attempts wait for the rate limiter's token.
    pub fn paces(&self) -> bool {
        self.plan.limiter
    }

    /// Whether the last operation was applied to the budget of a scope.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Applies an operation, `elapsed` after the start of the run. The second part is what a
    /// user should know of the store.
    pub fn apply(&mut self, operation: &Operation, elapsed: Duration) -> (Answer, Option<String>) {
        let mut notice = None;
        self.is_shared = false;
        if let Some(shared) = self.shared.as_mut().filter(|shared| shared.again_at <= elapsed) {
            match shared.store.apply(&shared.scope, &self.plan, operation) {
                Ok(applied) => {
                    self.is_shared = true;
                    return (applied.answer, applied.notice);
                }
                Err(problem) => {
                    shared.again_at = elapsed.saturating_add(LEFT_ALONE);
                    let name = &shared.scope.name;
                    let said = std::mem::replace(&mut shared.is_said, true);
                    notice = (!said).then(|| {
                        format!("scope '{name}' is not shared: {problem}; this run goes on with a budget of its own")
                    });
                }
            }
        }
        (self.own.apply(&self.plan, operation, elapsed), notice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Applied, ScopeName, ScopeState, Unshared};
    use super::*;
    use crate::policy::{Entry, Grant, QuotaPlan, Start};

    /// Fails while the list says so.
    struct Failing(Vec<bool>, Budget);

    impl StateStore for Failing {
        fn apply(&mut self, _: &Scope, plan: &BudgetPlan, operation: &Operation) -> Result<Applied, Unshared> {
            if self.0.pop() == Some(true) {
                return Err(Unshared("it is away".into()));
            }
            Ok(Applied { answer: self.1.apply(plan, operation, Duration::ZERO), notice: None })
        }
        fn list(&mut self) -> Result<Vec<Result<ScopeState, Unshared>>, Unshared> {
            Ok(Vec::new())
        }
        fn show(&mut self, _: &ScopeName) -> Result<Option<ScopeState>, Unshared> {
            Ok(None)
        }
        fn reset(&mut self, _: &ScopeName) -> Result<bool, Unshared> {
            Ok(false)
        }
        fn set(&mut self, _: &Scope, _: u32, _: QuotaPlan) -> Result<ScopeState, Unshared> {
            Err(Unshared("it is away".into()))
        }
        fn place(&self) -> String {
            "nowhere".into()
        }
    }

    #[test]
    fn a_store_that_fails_is_said_once_left_alone_for_a_while_and_asked_again() {
        let quota = QuotaPlan { capacity: 100, ..QuotaPlan::default() };
        let plan = BudgetPlan { quota: Some(quota), limiter: false };
        let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        // Taken from the end: good, bad, bad, good.
        let store = Failing(vec![false, true, true, false], Budget::default());
        let mut budget = RunBudget::shared(plan, Box::new(store), scope);
        let entry = Entry::Retry { cost: 10, start: Some(Start { delay: Duration::ZERO, longest: None }) };
        let operation = Operation::Book { throttled: false, entry };
        let mut left = |seconds| {
            let (answer, notice) = budget.apply(&operation, Duration::from_secs(seconds));
            assert_eq!(answer.grant, Grant::Granted);
            (answer.tokens.unwrap(), notice.is_some())
        };
        assert_eq!(left(0), (90, false));
        assert_eq!(left(1), (90, true));
        assert_eq!(left(2), (80, false));
        assert_eq!(left(11), (70, false));
        assert_eq!(left(20), (60, false));
        assert_eq!(left(21), (80, false));
    }
}
