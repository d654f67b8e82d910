//! The script and the state in memory do the same, operation by operation.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use retryx::policy::{Budget, BudgetPlan, Entry, MOST_REFILL, NANO, Operation, QuotaPlan, RateLimiter, Start};
use retryx::store::redis::SCRIPT;
use retryx::store::{Scope, ScopeName, StateStore as _};

use crate::server::{Server, is_there};
use crate::support::{Lab, skip};

fn plans() -> impl Strategy<Value = BudgetPlan> {
    let capacity = prop_oneof![Just(0), Just(10), Just(500), 0..1000u32, Just(u32::MAX), any::<u32>()];
    let refill = prop_oneof![Just(0), Just(1), Just(NANO / 3), Just(NANO), 0..MOST_REFILL, Just(MOST_REFILL)];
    let quota =
        (capacity, refill).prop_map(|(capacity, refill)| QuotaPlan { capacity, refill, ..QuotaPlan::default() });
    (proptest::option::weighted(0.9, quota), any::<bool>()).prop_map(|(quota, limiter)| BudgetPlan { quota, limiter })
}

fn tokens() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..20u32, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0u64..5_000_000_000).prop_map(Duration::from_nanos),
        (any::<u64>(), 0u32..1_000_000_000).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
    ]
}

fn operations() -> impl Strategy<Value = Operation> {
    let start = (durations(), proptest::option::of(durations())).prop_map(|(delay, longest)| Start { delay, longest });
    let entry = prop_oneof![
        Just(Entry::Nothing),
        proptest::option::of(tokens()).prop_map(|last_cost| Entry::Success { last_cost }),
        (tokens(), proptest::option::weighted(0.9, start)).prop_map(|(cost, start)| Entry::Retry { cost, start }),
    ];
    prop_oneof![
        2 => Just(Operation::Take),
        5 => (any::<bool>(), entry).prop_map(|(throttled, entry)| Operation::Book { throttled, entry }),
    ]
}

/// Microseconds by which the server's clock moves.
fn steps() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..3_000_000i64,
        2 => Just(0),
        2 => 0..4_000_000_000_000i64,
        1 => -4_000_000_000_000..0i64,
        1 => 0..20_000_000_000_000i64,
    ]
}

fn scope(name: &str) -> Scope {
    Scope { name: ScopeName::new(name).expect("a name"), ttl: Duration::from_secs(3600) }
}

/// The numbers of both limiters are the same but for the last digits.
fn assert_alike(kept: &RateLimiter, model: &RateLimiter) {
    let numbers = |limiter| match serde_json::to_value(limiter) {
        Ok(Value::Object(numbers)) => numbers,
        other => panic!("{other:?}"),
    };
    let (kept, model) = (numbers(kept), numbers(model));
    for (name, value) in &kept {
        match (value.as_f64(), model[name].as_f64()) {
            (Some(one), Some(other)) => {
                assert!((one - other).abs() <= 1e-9 * one.abs().max(1.0), "{name}: {one} and {other}");
            }
            _ => assert_eq!(value, &model[name], "{name}"),
        }
    }
}

/// A wait as Redis tells it.
fn whole_micros_up(wait: Duration) -> Duration {
    Duration::from_micros(u64::try_from(wait.as_nanos().div_ceil(1000)).expect("a short wait"))
}

fn assert_states_agree(kept: &Budget, model: &mut Budget) {
    // Some time may have passed until it was shown.
    let numbers = |budget: &Budget| {
        let mut quota = budget.quota.clone()?;
        quota.refill(kept.now);
        Some((quota.plan().capacity, quota.plan().refill, quota.level(), quota.remainder()))
    };
    assert_eq!(numbers(kept), numbers(model));
    assert_alike(&kept.limiter, &model.limiter);
    // The last digits are not to add up.
    model.limiter = kept.limiter.clone();
}

/// A script whose clock the test sets.
fn timed_script() -> String {
    let timed = SCRIPT.replace("redis.call('TIME')", "redis.call('HMGET', 'test:time', 's', 'us')");
    assert_ne!(timed, SCRIPT);
    timed
}

// B103 too: the clock steps in both directions.
#[test]
fn any_operations_at_any_times_do_the_same_in_redis_and_in_memory() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let store = std::cell::RefCell::new(server.store());
    let script = timed_script();
    let number = std::cell::Cell::new(0);
    let steps = proptest::collection::vec((steps(), plans(), operations()), 1..40);
    let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
    let result = runner.run(&steps, |steps| {
        let store = &mut *store.borrow_mut();
        number.set(number.get() + 1);
        let scope = scope(&format!("case {}", number.get()));
        // Ahead of the real clock, by which the state is shown: nothing comes in by that.
        let (mut time, mut last) = (3_000_000_000_000_000i64, None);
        let (mut model, mut now) = (Budget::default(), 0);
        for (step, plan, operation) in steps {
            time += step;
            let (secs, micros) = (time / 1_000_000, time % 1_000_000);
            server.ask(&["HSET", "test:time", "s", &secs.to_string(), "us", &micros.to_string()]);
            // A clock that goes back gives nothing, and counts from there.
            now += (time - last.unwrap_or(time)).max(0);
            last = Some(time);
            let applied = store.apply_by(&script, &scope, &plan, &operation).expect("an answer");
            let answer = applied.answer;
            prop_assert_eq!(applied.notice, None);
            prop_assert_eq!(answer.now, Duration::from_micros(now.unsigned_abs()));
            let wanted = model.apply(&plan, &operation, answer.now);
            prop_assert_eq!((answer.grant, answer.tokens), (wanted.grant, wanted.tokens), "{:?}", operation);
            prop_assert_eq!(answer.wait, whole_micros_up(wanted.wait), "{:?}", operation);
            let kept = store.show(&scope.name).expect("an answer").expect("a scope").expect("a good one").budget;
            assert_states_agree(&kept, &mut model);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn operations_by_the_servers_own_clock_do_the_same() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    let scope = scope("x");
    let quota = QuotaPlan { capacity: 50, refill: NANO * 7000 / 3, ..QuotaPlan::default() };
    let plan = BudgetPlan { quota: Some(quota), limiter: true };
    let mut model = Budget::default();
    for round in 0..500u32 {
        let start = Some(Start { delay: Duration::from_millis(5), longest: None });
        let entry = if round % 3 == 0 { Entry::Retry { cost: round % 11, start } } else { Entry::Nothing };
        for operation in [Operation::Take, Operation::Book { throttled: round % 20 == 19, entry }] {
            let answer = store.apply(&scope, &plan, &operation, None).expect("an answer").answer;
            let wanted = model.apply(&plan, &operation, answer.now);
            assert_eq!((answer.grant, answer.tokens), (wanted.grant, wanted.tokens));
            assert_eq!(answer.wait, whole_micros_up(wanted.wait));
            let kept = store.show(&scope.name).expect("an answer").expect("a scope").expect("a good one").budget;
            assert_states_agree(&kept, &mut model);
        }
    }
    assert!(model.now > Duration::ZERO);
}
