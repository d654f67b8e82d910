//! What is kept in a server, and what becomes of it when somebody else has written it.

use std::time::Duration;

use retryx::policy::{BudgetPlan, Entry, Grant, NANO, Operation, QuotaPlan, Start};
use retryx::store::{RedisStore, Scope, ScopeName, ScopeState, StateStore as _};

use crate::server::{Server, is_there, patient_store};
use crate::support::{Lab, skip, wait_until};

/// A scope that lives for an hour.
pub fn scope(name: &str) -> Scope {
    Scope { name: ScopeName::new(name).expect("a name"), ttl: Duration::from_secs(3600) }
}

/// A quota that fills up by itself only if it is told to.
pub fn plan(capacity: u32, refill: u64) -> BudgetPlan {
    BudgetPlan { quota: Some(QuotaPlan { capacity, refill, ..QuotaPlan::default() }), limiter: false }
}

/// A retry that is paid with so many tokens.
pub fn retry(cost: u32) -> Operation {
    let start = Some(Start { delay: Duration::ZERO, longest: None });
    Operation::Book { throttled: false, entry: Entry::Retry { cost, start } }
}

fn tokens(state: Option<&ScopeState>) -> Option<u32> {
    state?.budget.quota.as_ref().map(retryx::policy::RetryQuota::tokens)
}

fn left(store: &mut RedisStore, scope: &Scope, plan: &BudgetPlan, cost: u32) -> Option<u32> {
    store.apply(scope, plan, &retry(cost), None).expect("an answer").answer.tokens
}

#[test]
fn scopes_are_listed_shown_set_and_reset() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    assert_eq!(store.list(), Ok(vec![]));
    assert_eq!(store.show(&scope("b").name), Ok(None));
    assert_eq!(store.reset(&scope("b").name), Ok((false, None)));
    // Names that would be something in keys and patterns, and keys that are none of ours.
    for name in ["b", "a*", "{c}", "}", "d%7B", "ä [x]?"] {
        assert_eq!(left(&mut store, &scope(name), &plan(100, 0), 1), Some(99));
    }
    for key in ["retryx:scope:z", "retryx:scope:{}", "retryx:scope:{%61}", "other", "retryx:damaged:{b}"] {
        server.ask(&["SET", key, "x"]);
    }
    server.ask(&["SET", "retryx:scope:{damaged}", "x"]);
    let problem = store.show(&scope("damaged").name).expect("an answer").expect("a scope").expect_err("a damaged one");
    assert!(problem.0.contains("'damaged'") && problem.0.contains("holds no hash"), "{problem}");
    let mut states = store.list().expect("scopes");
    assert_eq!(states.remove(3), Err(problem));
    let states: Vec<_> = states.into_iter().flatten().collect();
    let names: Vec<_> = states.iter().map(|state| state.name.as_str()).collect();
    assert_eq!(names, ["a*", "b", "d%7B", "{c}", "}", "ä [x]?"]);
    assert!(states.iter().all(|state| tokens(Some(state)) == Some(99)));

    let brief = Scope { ttl: Duration::from_secs(1500), ..scope("brief") };
    left(&mut store, &brief, &plan(100, 0), 1);
    // How long it may lie unused is for its runs to say.
    store.set(&scope("brief"), 7, QuotaPlan::default()).expect("a scope");
    assert_eq!(server.ask(&["HGET", "retryx:scope:{brief}", "ttl_ms"]), "1500000");
    server.ask(&["DEL", "retryx:scope:{brief}"]);

    let (state, _) = store.set(&scope("b"), 7, QuotaPlan::default()).expect("a scope");
    // It keeps its numbers.
    assert_eq!(
        (tokens(Some(&state)), state.budget.quota.as_ref().map(|quota| quota.plan().capacity)),
        (Some(7), Some(100))
    );
    assert_eq!(
        tokens(store.set(&scope("b"), 700, QuotaPlan::default()).ok().map(|(state, _)| state).as_ref()),
        Some(100)
    );
    assert_eq!(
        tokens(store.set(&scope("new"), 700, QuotaPlan::default()).ok().map(|(state, _)| state).as_ref()),
        Some(500)
    );
    assert_eq!(tokens(store.show(&scope("new").name).expect("an answer").and_then(Result::ok).as_ref()), Some(500));
    let throttled = Operation::Book { throttled: true, entry: Entry::Nothing };
    store.apply(&scope("b"), &BudgetPlan { limiter: true, ..plan(100, 0) }, &throttled, None).expect("an answer");
    left(&mut store, &scope("b"), &plan(100, 0), 100);
    assert_eq!(store.reset(&scope("b").name), Ok((true, None)));
    let afresh = store.show(&scope("b").name).expect("an answer").and_then(Result::ok);
    assert_eq!(tokens(afresh.as_ref()), Some(100));
    assert!(afresh.is_some_and(|scope| !scope.budget.limiter.is_enabled()));
    // Full is what the next run has for it.
    assert_eq!(left(&mut store, &scope("b"), &plan(700, 0), 0), Some(700));
    assert_eq!(left(&mut store, &scope("b"), &plan(7000, 0), 0), Some(700));
    assert_eq!(store.place(), server.address());
}

#[test]
fn what_came_in_is_shown_by_the_last_writers_numbers() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    let refill = 1_000_000 * NANO;
    assert_eq!(left(&mut store, &scope("x"), &plan(1000, 0), 1000), Some(0));
    assert_eq!(left(&mut store, &scope("x"), &plan(1000, refill), 0), Some(0));
    wait_until("it is full", || {
        tokens(store.show(&scope("x").name).expect("an answer").and_then(Result::ok).as_ref()) == Some(1000)
    });
    // Nothing was written by that.
    assert_eq!(server.ask(&["HGET", "retryx:scope:{x}", "tokens"]), "0");
}

#[test]
fn an_unused_scope_expires_in_the_time_of_its_last_writer() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    for (ttl, least, most) in [
        (Duration::from_secs(3600), 3_500_000, 3_600_000),
        (Duration::MAX, 3_155_000_000_000, 3_155_760_000_000),
        (Duration::from_secs(1500), 1_400_000, 1_500_000),
    ] {
        let scope = Scope { ttl, ..scope("x") };
        left(&mut store, &scope, &plan(100, 0), 1);
        let found: u64 = server.ask(&["PTTL", "retryx:scope:{x}"]).parse().expect("a number");
        assert!((least..=most).contains(&found), "{found}");
    }
    let scope = Scope { ttl: Duration::from_nanos(1), ..scope("x") };
    left(&mut store, &scope, &plan(100, 0), 1);
    wait_until("it has expired", || store.show(&scope.name) == Ok(None));
    assert_eq!(left(&mut store, &scope, &plan(100, 0), 1), Some(99));
}

#[test]
fn databases_are_kept_apart() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut zero = server.store();
    let mut three = patient_store(&format!("{}?db=3", server.address()));
    assert_eq!(left(&mut zero, &scope("x"), &plan(100, 0), 1), Some(99));
    assert_eq!(left(&mut three, &scope("x"), &plan(100, 0), 5), Some(95));
    assert_eq!(three.list().expect("scopes")[0].as_ref().map(|state| tokens(Some(state))), Ok(Some(95)));
    assert_eq!(three.reset(&scope("x").name), Ok((true, None)));
    assert_eq!(left(&mut zero, &scope("x"), &plan(100, 0), 1), Some(98));
    let mut none = patient_store(&format!("{}?db=99", server.address()));
    let problem = none.apply(&scope("x"), &plan(100, 0), &retry(1), None).expect_err("no such database").0;
    assert!(problem.contains("no database of that number"), "{problem}");
    assert!(none.list().expect_err("no such database").0.contains("no database of that number"));
    assert_eq!(left(&mut zero, &scope("x"), &plan(100, 0), 1), Some(97));
}

// B99, B103, B105
#[test]
fn damaged_states_are_set_aside_and_said_once() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    let adaptive = BudgetPlan { limiter: true, ..plan(10, NANO) };
    let key = "retryx:scope:{x}";
    for (field, value) in [
        ("tokens", "NaN"),
        ("tokens", "nan"),
        ("tokens", "1e308"),
        ("tokens", "-5"),
        ("tokens", "\"7\""),
        ("tokens", "0x7"),
        ("tokens", " 7"),
        ("tokens", "7.5"),
        ("tokens", ""),
        ("tokens", "4294967296"),
        ("billionths", "1000000000"),
        ("remainder", "1000000000"),
        ("refill", "1000000000000001"),
        ("capacity", "inf"),
        ("clock_us", "99999999999999999999"),
        ("clock_us", "-1"),
        ("updated_us", "yesterday"),
        ("schema", "2"),
        ("schema", ""),
        ("limiter_enabled", "yes"),
        ("limiter_fill_rate", "0"),
        ("limiter_fill_rate", "inf"),
        ("limiter_max_capacity", "0.9"),
        ("limiter_capacity", "nan"),
        ("limiter_measured", "1e300"),
        ("limiter_slot", "1e12"),
        ("limiter_refilled", "-1"),
        ("limiter_window", "1e"),
    ] {
        store.reset(&scope("x").name).expect("an answer");
        let throttled = Operation::Book { throttled: true, entry: Entry::Nothing };
        store.apply(&scope("x"), &adaptive, &throttled, None).expect("an answer");
        server.ask(&["HSET", key, field, value]);
        assert_damaged(&server, &mut store, &format!("{field}={value:?}"), field);
    }
    for field in ["schema", "tokens", "clock_us", "updated_us", "limiter_slot", "limiter_enabled"] {
        store.reset(&scope("x").name).expect("an answer");
        let throttled = Operation::Book { throttled: true, entry: Entry::Nothing };
        store.apply(&scope("x"), &adaptive, &throttled, None).expect("an answer");
        server.ask(&["HDEL", key, field]);
        assert_damaged(&server, &mut store, &format!("no {field}"), field);
    }
    for (what, words) in [
        ("a string", &["SET", key, "7"][..]),
        ("a list", &["RPUSH", key, "7"]),
        ("another hash", &["HSET", key, "a", "b"]),
    ] {
        server.ask(&["DEL", key]);
        server.ask(words);
        assert_damaged(&server, &mut store, what, "");
    }
}

#[track_caller]
fn assert_damaged(server: &Server<'_>, store: &mut RedisStore, what: &str, field: &str) {
    server.ask(&["DEL", "retryx:damaged:{x}"]);
    let applied = store.apply(&scope("x"), &plan(10, 0), &retry(3), None).expect("an answer");
    assert_eq!((applied.answer.grant, applied.answer.tokens), (Grant::Granted, Some(7)), "{what}");
    let notice = applied.notice.unwrap_or_else(|| panic!("{what}: nothing is said"));
    assert!(notice.contains("'x'") && notice.contains("retryx:damaged:{x}"), "{notice}");
    assert!(notice.contains(field) || field == "schema", "{notice}");
    let kept: i64 = server.ask(&["TTL", "retryx:damaged:{x}"]).parse().expect("a number");
    assert!((600_000..=604_800).contains(&kept), "{what}: {kept}");
    let applied = store.apply(&scope("x"), &plan(10, 0), &retry(3), None).expect("an answer");
    assert_eq!((applied.answer.tokens, applied.notice), (Some(4), None), "{what}");
}

// B103, B105
#[test]
fn numbers_that_are_odd_but_possible_are_held_within_bounds() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let mut store = server.store();
    let refilled = plan(10, NANO / 1000);
    let key = "retryx:scope:{x}";
    // In the future, and long ago; then the stamp is right again.
    for (stamp, tokens) in
        [("1896047955133845", 3), ("253402300799000000", 3), ("9".repeat(400).as_str(), 3), ("0", 10), ("-5", 10)]
    {
        store.set(&scope("x"), 3, refilled.quota.expect("a quota")).expect("a scope");
        server.ask(&["HSET", key, "updated_us", stamp]);
        assert_eq!(left(&mut store, &scope("x"), &refilled, 0), Some(tokens), "{stamp}");
        let updated: u64 = server.ask(&["HGET", key, "updated_us"]).parse().expect("a number");
        assert!((1_600_000_000_000_000..4_000_000_000_000_000).contains(&updated) && updated.to_string() != stamp);
        store.reset(&scope("x").name).expect("an answer");
    }
    // More than the capacity.
    left(&mut store, &scope("x"), &plan(10, 0), 3);
    server.ask(&["HSET", key, "tokens", "4000000000"]);
    assert_eq!(left(&mut store, &scope("x"), &plan(10, 0), 0), Some(10));
    server.ask(&["HSET", key, "tokens", "4000000000", "capacity", "4000000000"]);
    assert_eq!(left(&mut store, &scope("x"), &plan(10, 0), 0), Some(10));
}

// B96, B97, B106
#[test]
fn runs_of_a_scope_draw_on_one_bucket() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let options = "--quota-capacity 10 --quota-cost 5 --quota-refill 0 -n 50 --base-delay 0";
    let run = |scope: &str, command: &[&str]| {
        lab.run(&format!("{options} --scope {scope} --store {}", server.patient_address())).command(command).finish()
    };
    run("a", &["false"]).exited(1).stopped(3, "quota");
    run("a", &["false"]).exited(1).stopped(1, "quota");
    run("b", &["false"]).exited(1).stopped(3, "quota");
    for success in 1..=5 {
        run("a", &["true"]).exited(0).stopped(1, "success");
        assert_eq!(server.ask(&["HGET", "retryx:scope:{a}", "tokens"]), success.to_string());
    }
    let second = &["sh", "-c", "test -e been && exit 0; touch been; exit 1"];
    run("a", second).exited(0).stopped(2, "success");
    assert_eq!(server.ask(&["HGET", "retryx:scope:{a}", "tokens"]), "5");
}
