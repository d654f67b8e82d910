//! `retryx quota` with scopes in a server.

use serde_json::Value;

use crate::server::{Server, is_there};
use crate::support::{Lab, skip};

#[test]
fn scopes_are_listed_shown_set_and_reset_and_no_secret_is_told() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::with(&lab, "redis", "--requirepass hunter2");
    let store = server.address().replace("unix://", "unix://:hunter2@");
    let quota = |words: &str| {
        let run = lab.bare(&format!("quota {words}")).env("RETRYX_STORE", &store).finish();
        assert!(!run.stderr.contains("hunter2") && !run.text().contains("hunter2"), "{}{}", run.text(), run.stderr);
        run
    };
    let run = quota("list");
    run.exited(0).says(&["there are no scopes in unix://"]);
    assert_eq!(run.text(), "");
    quota("set x --tokens 9 --quota-capacity 10 --quota-refill 0").exited(0);
    quota("set a --tokens 1").exited(0);
    let all: Value = serde_json::from_slice(&quota("list --format json").stdout).expect("JSON");
    assert_eq!((&all[0]["scope"], &all[1]["scope"]), (&"a".into(), &"x".into()));
    assert_eq!((&all[1]["tokens"], &all[1]["capacity"]), (&9.into(), &10.into()));
    assert_eq!(all[1]["store"], server.address());
    assert!(quota("show x").text().contains("tokens:  9 of 10"));
    let run = quota("reset x");
    assert_eq!((run.exited(0).text().as_str(), run.stderr.as_str()), ("", ""));
    assert!(quota("show x").exited(0).text().contains("tokens:  10 of 10"));
    quota("show y").exited(125).says(&["there is no scope 'y' in unix://"]);
    quota("reset y").exited(0).says(&["full anyway"]);
    quota("list --state-dir d").exited(125).says(&["--state-dir", "RETRYX_STORE"]);
    let without = lab.bare("quota list --store").arg(server.address()).finish();
    without.exited(125).says(&["wants a password"]);
    let gone = lab.bare("quota list --store unix:///nowhere/redis.sock").finish();
    gone.exited(125).says(&["unix:///nowhere/redis.sock"]);
    let text = lab.bare("plan --explain-config --scope x").env("RETRYX_STORE", &store).finish().text();
    assert!(text.contains(&server.address()) && !text.contains("hunter2"), "{text}");
}
