//! The budget that a run draws on: its scope's, or its own.

use std::time::Duration;

use super::{Scope, StateStore};
use crate::policy::{Answer, Budget, BudgetPlan, Entry, Grant, Operation};

/// How long a store that failed is left alone before the run asks it again.
const LEFT_ALONE: Duration = Duration::from_secs(10);

/// The budget of a run.
pub struct RunBudget {
    plan: BudgetPlan,
    own: Budget,
    shared: Option<Shared>,
    /// Whether the last operation was applied to the scope's budget.
    is_shared: bool,
    /// Whether the run's last retry was paid by the scope's budget; `None` before the first.
    paid_by_scope: Option<bool>,
    /// What it was told of the tokens last.
    tokens: Option<u32>,
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
        Self { plan, own: Budget::default(), shared: None, is_shared: false, paid_by_scope: None, tokens: None }
    }

    /// The budget of a scope; the run's own wherever that cannot be had.
    pub fn shared(plan: BudgetPlan, store: Box<dyn StateStore>, scope: Scope) -> Self {
        let shared = Shared { store, scope, again_at: Duration::ZERO, is_said: false };
        // What draws on nothing has nothing to share.
        let draws = plan.quota.is_some() || plan.limiter;
        Self { shared: Some(shared).filter(|_| draws), ..Self::private(plan) }
    }

    /// Whether attempts wait for the rate limiter's token.
    pub fn paces(&self) -> bool {
        self.plan.limiter
    }

    /// Whether operations are meant for the budget of a scope.
    pub fn has_scope(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether the last operation was applied to the budget of a scope.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Applies an operation, `elapsed` after the start of the run, which has so much time `left`
    /// for it. The second part is what a user should know of the store.
    pub fn apply(
        &mut self,
        operation: &Operation,
        elapsed: Duration,
        left: Option<Duration>,
    ) -> (Answer, Option<String>) {
        let needs_none = matches!(operation, Operation::Book { entry: Entry::Nothing | Entry::Success { .. }, .. });
        if self.shared.is_some() && left == Some(Duration::ZERO) && needs_none {
            // The run is over, and its own budget is not what there is to tell of.
            let (grant, wait) = (Grant::Granted, Duration::ZERO);
            return (Answer { grant, wait, tokens: self.tokens, now: elapsed }, None);
        }
        let (answer, notice) = self.apply_somewhere(operation, elapsed, left);
        self.tokens = answer.tokens;
        let Operation::Book { entry: Entry::Retry { .. }, .. } = operation else { return (answer, notice) };
        if answer.grant == Grant::Granted {
            self.paid_by_scope = Some(self.is_shared);
        }
        (answer, notice)
    }

    fn apply_somewhere(
        &mut self,
        operation: &Operation,
        elapsed: Duration,
        left: Option<Duration>,
    ) -> (Answer, Option<String>) {
        let mut notice = None;
        self.is_shared = false;
        let has_time = left.is_none_or(|left| !left.is_zero());
        if let Some(shared) = self.shared.as_mut().filter(|shared| has_time && shared.again_at <= elapsed) {
            let due = due(operation, self.paid_by_scope, true);
            match shared.store.apply(&shared.scope, &self.plan, &due, left) {
                Ok(applied) => {
                    self.is_shared = true;
                    return (applied.answer, applied.notice);
                }
                Err(problem) => {
                    shared.again_at = elapsed.saturating_add(LEFT_ALONE);
                    let name = &shared.scope.name;
                    if !problem.0.is_empty() && !std::mem::replace(&mut shared.is_said, true) {
                        notice = Some(format!(
                            "scope '{name}' is not shared: {problem}; this run goes on with a budget of its own"
                        ));
                    }
                }
            }
        }
        (self.own.apply(&self.plan, &due(operation, self.paid_by_scope, false), elapsed), notice)
    }
}

/// The operation, but that a budget gives nothing back for a retry which another one paid.
fn due(operation: &Operation, paid_by_scope: Option<bool>, by_scope: bool) -> Operation {
    match *operation {
        Operation::Book { throttled, entry: Entry::Success { last_cost: Some(_) } }
            if paid_by_scope.is_some_and(|paid_by_scope| paid_by_scope != by_scope) =>
        {
            Operation::Book { throttled, entry: Entry::Success { last_cost: Some(0) } }
        }
        operation => operation,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Applied, Looked, ScopeName, ScopeState, Unshared};
    use super::*;
    use crate::policy::{QuotaPlan, Start};

    /// Fails while the list says so.
    struct Failing(Vec<bool>, Budget);

    impl StateStore for Failing {
        fn apply(
            &mut self,
            _: &Scope,
            plan: &BudgetPlan,
            operation: &Operation,
            _: Option<Duration>,
        ) -> Result<Applied, Unshared> {
            if self.0.pop() == Some(true) {
                return Err(Unshared("it is away".into()));
            }
            Ok(Applied { answer: self.1.apply(plan, operation, Duration::ZERO), notice: None })
        }
        fn list(&mut self) -> Result<Vec<Looked>, Unshared> {
            Ok(Vec::new())
        }
        fn show(&mut self, _: &ScopeName) -> Result<Option<Looked>, Unshared> {
            Ok(None)
        }
        fn reset(&mut self, _: &ScopeName) -> Result<(bool, Option<String>), Unshared> {
            Ok((false, None))
        }
        fn set(&mut self, _: &Scope, _: u32, _: QuotaPlan) -> Result<(ScopeState, Option<String>), Unshared> {
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
            let (answer, notice) = budget.apply(&operation, Duration::from_secs(seconds), None);
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

    #[test]
    fn what_one_budget_paid_for_the_other_gives_nothing_back() {
        let plan = BudgetPlan { quota: Some(QuotaPlan { capacity: 100, ..QuotaPlan::default() }), limiter: false };
        let scope = || Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        let entry = Entry::Retry { cost: 10, start: Some(Start { delay: Duration::ZERO, longest: None }) };
        let retry = Operation::Book { throttled: false, entry };
        let success = Operation::Book { throttled: false, entry: Entry::Success { last_cost: Some(10) } };
        let left = |budget: &mut RunBudget, operation, seconds| {
            budget.apply(operation, Duration::from_secs(seconds), None).0.tokens.unwrap()
        };
        // Taken from the end: paid by the run's own, 20 s later the scope is there.
        let mut spent = Budget::default();
        spent.apply(&plan, &retry, Duration::ZERO);
        let mut budget = RunBudget::shared(plan, Box::new(Failing(vec![false, true], spent.clone())), scope());
        assert_eq!(left(&mut budget, &retry, 0), 90);
        assert_eq!(left(&mut budget, &success, 20), 90);
        // Paid by the scope, which is away then.
        let mut budget = RunBudget::shared(plan, Box::new(Failing(vec![true, false], spent.clone())), scope());
        assert_eq!(left(&mut budget, &retry, 0), 80);
        assert_eq!(left(&mut budget, &success, 20), 100);
        // Paid by the scope, and given back to it.
        let mut budget = RunBudget::shared(plan, Box::new(Failing(vec![false, false], spent)), scope());
        assert_eq!(left(&mut budget, &retry, 0), 80);
        assert_eq!(left(&mut budget, &success, 20), 90);
    }

    #[test]
    fn without_time_or_need_the_store_is_not_asked() {
        let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        let away = || Box::new(Failing(vec![true; 9], Budget::default()));
        let mut budget = RunBudget::shared(BudgetPlan::default(), away(), scope.clone());
        assert_eq!(budget.apply(&Operation::Take, Duration::ZERO, None).1, None);
        let plan = BudgetPlan { quota: None, limiter: true };
        let mut budget = RunBudget::shared(plan, away(), scope);
        assert_eq!(budget.apply(&Operation::Take, Duration::ZERO, Some(Duration::ZERO)).1, None);
        assert!(budget.apply(&Operation::Take, Duration::ZERO, Some(Duration::from_secs(1))).1.is_some());
        // Where the run is over, what the scope said last is told.
        let plan = BudgetPlan { quota: Some(QuotaPlan::default()), limiter: false };
        let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        let mut budget = RunBudget::shared(plan, Box::new(Failing(vec![false; 9], Budget::default())), scope);
        let end = Operation::Book { throttled: false, entry: Entry::Nothing };
        let left =
            |budget: &mut RunBudget, operation| budget.apply(operation, Duration::ZERO, Some(Duration::ZERO)).0.tokens;
        assert_eq!(left(&mut budget, &end), None);
        let entry = Entry::Retry { cost: 10, start: Some(Start { delay: Duration::ZERO, longest: None }) };
        budget.apply(&Operation::Book { throttled: false, entry }, Duration::ZERO, None);
        assert_eq!(left(&mut budget, &end), Some(490));
    }
}
