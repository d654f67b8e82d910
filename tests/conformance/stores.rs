//! The same again in every store: what a row did with a budget in memory is done with one in
//! a file and one in a real Redis server, and all must say and keep the same.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use retryx::policy::{Answer, Budget, BudgetPlan, Operation, RateLimiter, RetryQuota};
use retryx::store::redis::SCRIPT;
use retryx::store::{FileStore, Moment, RedisStore, Scope, ScopeName, ScopeState, StateStore as _, Unshared};
use serde_json::Value;

use crate::check::{Check, ensure, equal};
use crate::recorded::{Log, logs};
use crate::server::{Server, is_there};
use crate::support::{Lab, skipped};

/// Replays what was done since it was asked last.
pub fn agree() -> Check {
    let logs = logs();
    if logs.iter().all(|log| log.borrow().steps.is_empty()) {
        return Ok(());
    }
    let lab = Lab::new();
    let server = is_there().then(|| Server::start(&lab));
    if server.is_none() {
        skipped("redis-server is not installed: vectors are not run against it");
    }
    for (log, number) in logs.iter().zip(0..) {
        let scope = scope(number);
        in_file(&log.borrow(), &lab, &scope).map_err(|problem| format!("in the file store: {problem}"))?;
        if let Some(server) = &server {
            in_redis(&log.borrow(), server.store(), &scope).map_err(|problem| format!("in Redis: {problem}"))?;
        }
    }
    Ok(())
}

fn scope(number: usize) -> Scope {
    let name = ScopeName::new(&format!("row {number}")).expect("a name");
    // No row lasts a year.
    Scope { name, ttl: Duration::from_secs(365 * 86_400) }
}

fn in_file(log: &Log, lab: &Lab, scope: &Scope) -> Check {
    let now = Rc::new(Cell::new(Duration::ZERO));
    let told = Rc::clone(&now);
    let moment =
        move || Moment { boot: Some("this".into()), since_boot: told.get(), wall: SystemTime::UNIX_EPOCH + told.get() };
    let mut store = FileStore::with_moments(Some(lab.path("state")), moment);
    if let Some((quota, tokens)) = log.start {
        said(store.set(scope, tokens, quota))?;
    }
    let mut model = Model::new(log);
    for (plan, operation, time) in &log.steps {
        now.set(whole_micros(*time));
        let applied = said(store.apply(scope, plan, operation, None))?;
        model.agrees(plan, operation, *time, applied.answer)?;
    }
    model.has_kept(said(store.show(&scope.name))?.and_then(Result::ok))
}

fn in_redis(log: &Log, mut store: RedisStore, scope: &Scope) -> Check {
    if let Some((quota, tokens)) = log.start {
        said(store.set(scope, tokens, quota))?;
    }
    let mut model = Model::new(log);
    for (plan, operation, time) in &log.steps {
        let clock = format!("{{'{}', '{}'}}", time.as_secs(), time.subsec_micros());
        let script = SCRIPT.replace("redis.call('TIME')", &clock);
        ensure(script != SCRIPT, || "the script has another clock".to_owned())?;
        let applied = said(store.apply_by(&script, scope, plan, operation))?;
        model.agrees(plan, operation, *time, applied.answer)?;
    }
    model.has_kept(said(store.show(&scope.name))?.and_then(Result::ok))
}

fn said<T>(result: Result<T, Unshared>) -> Result<T, String> {
    result.map_err(|problem| problem.to_string())
}

fn whole_micros(time: Duration) -> Duration {
    Duration::new(time.as_secs(), time.subsec_micros() * 1000)
}

/// The state in memory, at times as stores have them: the clock of a budget begins with the
/// first use of the scope, and goes on by as much as the store's clock does, but never back.
struct Model {
    budget: Budget,
    last: Option<Duration>,
}

impl Model {
    fn new(log: &Log) -> Self {
        let quota = log.start.map(|(quota, tokens)| RetryQuota::with_tokens(quota, tokens));
        let budget = Budget { quota, ..Budget::default() };
        Self { budget, last: None }
    }

    fn agrees(&mut self, plan: &BudgetPlan, operation: &Operation, time: Duration, got: Answer) -> Check {
        let time = whole_micros(time);
        let passed = time.saturating_sub(self.last.replace(time).unwrap_or(time));
        let expected = self.budget.apply(plan, operation, self.budget.now.saturating_add(passed));
        equal("grant", &got.grant, &expected.grant)?;
        equal("tokens", &got.tokens, &expected.tokens)?;
        equal("now", &got.now, &expected.now)?;
        ensure(got.wait.abs_diff(expected.wait) <= Duration::from_micros(1), || {
            format!("{operation:?}: got {:?}, expected {:?}", got.wait, expected.wait)
        })
    }

    fn has_kept(&self, state: Option<ScopeState>) -> Check {
        let kept = state.ok_or("the scope is gone")?.budget;
        let numbers = |budget: &Budget| budget.quota.as_ref().map(|quota| (quota.plan().capacity, quota.level()));
        equal("quota", &numbers(&kept), &numbers(&self.budget))?;
        same_limiter(&kept.limiter, &self.budget.limiter)
    }
}

/// The numbers are the same but for the last digits: Lua has another cube root.
fn same_limiter(kept: &RateLimiter, expected: &RateLimiter) -> Check {
    let numbers = |limiter| serde_json::to_value(limiter).map_err(|error| error.to_string());
    let (kept, expected) = (numbers(kept)?, numbers(expected)?);
    for (name, value) in kept.as_object().into_iter().flatten() {
        match (value.as_f64(), expected[name].as_f64()) {
            (Some(one), Some(other)) => {
                ensure((one - other).abs() <= 1e-9 * one.abs().max(1.0), || {
                    format!("{name}: got {one}, expected {other}")
                })?;
            }
            _ => equal::<Value>(name, value, &expected[name])?,
        }
    }
    Ok(())
}
