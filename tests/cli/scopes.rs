//! `retryx quota`, and what a run says of its scope.

use serde_json::Value;

use crate::support::{Finished, Lab};

/// What `quota` prints as JSON.
#[track_caller]
fn json(run: &Finished) -> Value {
    run.exited(0);
    assert_eq!(run.stderr, "");
    serde_json::from_slice(&run.stdout).expect("JSON")
}

/// A run of 3 attempts at 5 tokens each retry, from a bucket of 100 that nothing fills.
fn drain(lab: &Lab, scope: &str) {
    let run = lab.run("-q --base-delay 0 --quota-capacity 100 --quota-cost 5 --quota-refill 0 --scope").arg(scope);
    run.command(&["false"]).finish().exited(1).stopped(3, "attempts");
}

#[test]
fn scopes_are_listed_shown_set_and_reset() {
    let lab = Lab::new();
    let run = lab.bare("quota list").finish();
    run.exited(0).says(&["there are no scopes in ", "home/.local/state/retryx"]);
    assert_eq!(run.text(), "");
    assert_eq!(lab.bare("quota list --format json").finish().text(), "[]\n");
    drain(&lab, "b");
    drain(&lab, "a");
    let text = lab.bare("quota list").finish().text();
    let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(rows[0], ["scope", "tokens", "refill", "limiter", "used"]);
    assert_eq!(rows[1][..6], ["a", "90", "of", "100", "none", "off"]);
    assert_eq!(rows[2][0], "b");
    assert_eq!(rows.len(), 3);
    let text = lab.bare("quota show a").finish().text();
    let head: Vec<_> = text.lines().take(4).collect();
    assert_eq!(head, ["scope:   a", "tokens:  90 of 100", "refill:  none", "limiter: off"]);
    let text = lab.bare("quota set a --tokens 3").finish().text();
    assert!(text.contains("tokens:  3 of 100"), "{text}");
    let run = lab.bare("quota reset a").finish();
    run.exited(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    assert!(lab.bare("quota show a").finish().text().contains("tokens:  100 of 100"));
    let run = lab.bare("quota reset nope").finish();
    run.exited(0).says(&["no scope 'nope'", "full anyway"]);
    assert_eq!(lab.bare("-q quota reset nope").finish().exited(0).stderr, "");
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let lab = Lab::new();
    drain(&lab, "a");
    let shown = json(&lab.bare("quota show a --format json").finish());
    let fields: Vec<_> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["scope", "store", "tokens", "capacity", "refill_per_second", "limiter", "updated"]);
    assert_eq!(shown["scope"], "a");
    let folder = lab.path("home/.local/state/retryx");
    assert_eq!(shown["store"], folder.to_str().expect("UTF-8"));
    assert_eq!(
        (&shown["tokens"], &shown["capacity"], &shown["refill_per_second"]),
        (&90.into(), &100.into(), &0.0.into())
    );
    assert_eq!(shown["limiter"], serde_json::json!({ "enabled": false, "fill_rate": 0.0, "measured_rate": 0.0 }));
    humantime::parse_rfc3339(shown["updated"].as_str().expect("a time stamp")).expect("RFC 3339");
    assert_eq!(json(&lab.bare("quota list --format json").finish())[0], shown);
    let set = json(&lab.bare("quota --format json set a --tokens 7").finish());
    assert_eq!(set["tokens"], 7);
}

#[test]
fn what_is_set_is_what_runs_find() {
    let lab = Lab::new();
    lab.bare("quota set x --tokens 9 --quota-capacity 10 --quota-refill 0").finish().exited(0);
    let options = "--quota-capacity 10 --quota-cost 5 --quota-refill 0 -n 9 --base-delay 0 --scope x";
    let run = lab.run(options).command(&["false"]).finish();
    run.exited(1).stopped(2, "quota");
    run.says(&["the retry quota of scope 'x' is spent (4 left; see retryx quota show x)"]);
    lab.bare("quota reset x").finish().exited(0);
    lab.run(options).command(&["false"]).finish().stopped(3, "quota");
    // A price that no bucket can pay is said to be one.
    let run = lab.run(options).args(["--quota-cost", "11"]).command(&["false"]).finish();
    run.exited(1).stopped(1, "quota");
    run.says(&["the retry quota of scope 'x' holds 10 at most, and a retry costs 11 (0 left; see"]);
    // The hint can be typed as it stands.
    let run = lab.run(options).args(["--state-dir=-d e", "--quota-capacity=4"]).command(&["false"]).finish();
    let hint = run.stderr.split("see retryx ").nth(1).and_then(|rest| rest.split(')').next()).expect("a hint");
    assert_eq!(hint, "quota show '--state-dir=-d e' x", "{}", run.stderr);
    lab.shell(&format!("retryx {hint}")).finish().exited(0);
    // A scope that begins without words on it begins as that of a run does.
    let begun = json(&lab.bare("quota set y --tokens 1 --format json").finish());
    assert_eq!((&begun["capacity"], &begun["refill_per_second"]), (&500.into(), &0.138_888_888.into()));
    let run = lab.bare("quota set y --tokens 2 --quota-capacity 3").finish();
    run.exited(0).says(&["keeps the numbers of its last run", "--quota-capacity"]);
    assert!(run.text().contains("tokens:  2 of 500"));
}

#[test]
fn variables_say_where_scopes_are() {
    let lab = Lab::new();
    let folder = lab.path("elsewhere");
    let set = lab.bare("quota set x --tokens 1").env("RETRYX_STATE_DIR", &folder).finish();
    set.exited(0);
    let set = lab.bare("quota set y --tokens 1").env("RETRYX_STORE", "file").env("XDG_STATE_HOME", lab.path("xdg"));
    set.finish().exited(0);
    let names = |options: &str| {
        let all = json(&lab.bare(&format!("quota list --format json {options}")).finish());
        all.as_array().expect("a list").iter().map(|scope| scope["scope"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("--state-dir elsewhere"), ["x"]);
    assert_eq!(names("--state-dir xdg/retryx"), ["y"]);
    assert!(!lab.path("home/.local").exists());
    let run = lab.bare("quota list").env("RETRYX_STORE", "carrier://pigeon:secret@loft").finish();
    run.exited(125).says(&["RETRYX_STORE"]);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    // What is about runs, and AWS's settings, are nothing to it.
    let run = lab.bare("quota list").env("RETRYX_MODE", "adaptive").env("AWS_RETRY_MODE", "fast");
    assert_eq!(run.env("RETRYX_STATE_DIR", &folder).finish().exited(0).stderr, "");
    let run = lab.bare("quota list").no_env("HOME").finish();
    run.exited(125).says(&["--state-dir"]);
}

#[test]
fn wrong_words_name_the_place_the_value_and_the_remedy() {
    let lab = Lab::new();
    for (words, parts) in [
        ("quota", &["list", "show NAME", "reset NAME", "set NAME --tokens N"][..]),
        ("quota shwo x", &["'shwo'", "show NAME", "retryx -- quota"]),
        ("quota list x", &["'x'", "show NAME"]),
        ("quota show", &["quota show", "retryx quota list"]),
        ("quota show x y", &["'y'", "quotes"]),
        ("quota reset", &["quota reset", "retryx quota list"]),
        ("quota set --tokens 3", &["quota set", "name"]),
        ("quota set x", &["--tokens N"]),
        ("quota set x --tokens", &["--tokens", "needs a value"]),
        ("quota show x --state-dir=", &["--state-dir", "leave it out"]),
        ("quota show x --store /tmp", &["--store", "--state-dir"]),
        ("quota set x --tokens many", &["--tokens", "'many'", "whole number"]),
        ("quota set x --tokens -1", &["--tokens", "'-1'", "whole number"]),
        ("quota set x --tokens 4294967296", &["--tokens", "4294967295"]),
        ("quota set x --tokens 501", &["--tokens", "'501'", "500", "--quota-capacity"]),
        ("quota set x --tokens 1 --quota-capacity 0", &["--tokens", "'1'", "0"]),
        ("quota set x --tokens 1 --scope-ttl 0", &["--scope-ttl", "'0'", "1h"]),
        ("quota show x --tokens 1", &["--tokens", "quota set"]),
        ("quota list --quota-refill 1", &["--quota-refill", "quota set"]),
        ("quota list --format xml", &["--format", "'xml'", "text, json"]),
        ("quota list --store nowhere", &["--store", "file"]),
        ("quota show x --scope y", &["--scope", "retryx quota show NAME"]),
        ("-n 3 quota list", &["--max-attempts", "quota", "retryx -- quota"]),
        ("quota list --mode fixed", &["--mode", "quota"]),
        ("quota -u joe", &["'-u'", "retryx -- quota"]),
        ("quota show nope", &["'nope'", "home/.local/state/retryx", "retryx quota list"]),
    ] {
        let run = lab.bare(words).finish();
        run.exited(125).says(parts);
        assert_eq!(run.messages().len(), 1, "{words}");
        assert_eq!(run.text(), "", "{words}");
    }
    for name in ["", "a\nb", "\u{1b}[2J", &"x".repeat(65)] {
        let run = lab.bare("quota show").arg(name).finish();
        run.exited(125).says(&["is no name of a scope", "64 bytes"]);
        assert!(!run.stderr.contains('\u{1b}'));
    }
    let run = lab.bare("quota show").arg(crate::support::bytes(b"\xff")).finish();
    run.exited(125).says(&["is no name of a scope"]);
    assert!(!lab.path("home/.local").exists(), "a wrong word wrote something");
}

#[test]
fn a_name_of_any_kind_is_shown_as_it_can_be_typed() {
    let lab = Lab::new();
    for name in ["it's a name", "-x", "a/../b", ".", "\u{202e}gpj", "é 日本"] {
        let set = lab.bare("quota set --tokens 0 --format json --").arg(name).finish();
        assert_eq!(json(&set)["scope"], name);
        let run = lab.run("--base-delay 0").arg(format!("--scope={name}")).command(&["false"]).finish();
        run.exited(1).stopped(1, "quota");
        let (_, hint) = run.stderr.split_once("see ").expect("a hint");
        let hint = hint.trim_end().trim_end_matches(')');
        let shown = lab.shell(hint).finish();
        shown.exited(0);
        assert!(!shown.text().contains('\u{202e}'), "{}", shown.text());
    }
    let all = json(&lab.bare("quota list --format json").finish());
    assert_eq!(all.as_array().map(Vec::len), Some(6));
    assert!(!lab.bare("quota list").finish().text().contains('\u{202e}'));
    // Where the folder was given, the hint leads there.
    let options = "--base-delay 0 --quota-capacity 0 --scope x --state-dir";
    let run = lab.run(options).arg(lab.path("a folder")).command(&["false"]).finish();
    let (_, hint) = run.stderr.split_once("see ").expect("a hint");
    lab.shell(hint.trim_end().trim_end_matches(')')).finish().exited(0);
}

#[test]
fn a_run_says_which_quota_it_draws_on() {
    let lab = Lab::new();
    let run = lab.run("-v -n 2 --base-delay 0 --scope x").command(&["false"]).finish();
    run.says(&["486 tokens left in the quota of scope 'x'"]);
    // What the store took is part of the delay only where somebody notices.
    let at_once = |_| {
        let run = lab.run("-n 2 --base-delay 0 --scope x").command(&["false"]).finish();
        run.stderr.contains("; retrying at once\n")
    };
    assert!((0..20).any(at_once), "the store is slow");
    let options = "--long-poll --base-delay 0 --quota-capacity 0 --scope x";
    lab.run(options).command(&["false"]).finish().says(&["the retry quota of scope 'x' holds 0 at most", "; waiting"]);
    // Where the scope cannot be had, it is the run's own.
    let options = "-v -n 2 --base-delay 0 --scope x --state-dir /dev/null/x";
    let run = lab.run(options).command(&["false"]).finish();
    run.exited(1).stopped(2, "attempts").says(&["scope 'x' is not shared", "486 tokens left in the quota\n"]);
    let run = lab.run("--base-delay 0 --quota-capacity 0 --scope x --state-dir /dev/null/x");
    run.command(&["false"]).finish().says(&["the retry quota holds 0 at most, and a retry costs 14\n"]);
}

/// Runs with `options` right after an attempt of the same scope was throttled. At the floor of
/// half an attempt a second its turn is two seconds later; a machine that holds the second run
/// up for that long gets another chance.
#[track_caller]
fn after_throttling(lab: &Lab, options: &str, request: bool) -> Finished {
    for scope in 0..20 {
        let throttled = format!("--mode adaptive -n 1 --throttle-on 1 --scope {scope}");
        lab.run(&throttled).command(&["false"]).finish().exited(1).stopped(1, "attempts");
        let run = lab.run(&format!("--mode adaptive --scope {scope} {options}"));
        let run = if request { run.args(["http", "http://127.0.0.1:1/"]) } else { run.command(&["true"]) };
        let run = run.finish();
        if run.last()["attempts"] == 0 {
            return run;
        }
    }
    panic!("the rate limiter never held an attempt back");
}

#[test]
fn a_first_attempt_that_would_be_too_late_is_not_made_and_that_is_said() {
    let lab = Lab::new();
    for (limit, words) in
        [("--deadline 0.1", "past --deadline 100 ms"), ("--total-timeout 0.1", "past --total-timeout")]
    {
        let run = after_throttling(&lab, limit, false);
        run.exited(124).says(&["before the first attempt", "rate limiter of scope '", words]);
        assert_eq!(run.messages().len(), 1);
        after_throttling(&lab, limit, true).exited(28).says(&["before the first attempt", words]);
    }
    // A run that made nothing of its job says so even then.
    after_throttling(&lab, "-q --deadline 0.1", false).says(&["before the first attempt"]);
    let limiter = &json(&lab.bare("quota show 0 --format json").finish())["limiter"];
    assert_eq!(limiter["enabled"], true);
    assert!(lab.bare("quota show 0").finish().text().contains(" attempts a second (measured "));
}

#[test]
fn a_damaged_scope_is_named_and_can_be_mended() {
    let lab = Lab::new();
    for (mend, left) in [("quota set x --tokens 50", 40), ("quota reset x", 90)] {
        drain(&lab, "x");
        let file = "home/.local/state/retryx/x.scope";
        assert!(!lab.read(file).is_empty());
        lab.write(file, "nonsense");
        lab.bare("quota show x").finish().exited(125).says(&["x.scope"]);
        lab.bare(mend).arg("--state-dir=home/.local/state/retryx").finish().exited(0);
        drain(&lab, "x");
        assert_eq!(json(&lab.bare("quota show x --format json").finish())["tokens"], left);
        lab.bare("quota set x --tokens 100").finish().exited(0);
    }
}

#[test]
fn the_plan_tells_of_the_scope_and_where_it_is_from() {
    let lab = Lab::new();
    let text = lab.bare("plan --scope x").finish().text();
    assert!(text.contains("quota 500 of scope 'x'"), "{text}");
    let text = lab.bare("plan --explain-config").env("RETRYX_SCOPE", "x").env("RETRYX_STORE", "file").finish().text();
    let setting = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(setting("scope"), "x RETRYX_SCOPE");
    assert_eq!(setting("store"), "file RETRYX_STORE");
    assert_eq!(setting("scope-ttl"), "1h default");
    assert_eq!(setting("state-dir"), format!("{} default", lab.path("home/.local/state/retryx").display()));
}

#[test]
fn what_cannot_be_printed_or_kept_is_an_error() {
    let lab = Lab::new();
    drain(&lab, "a");
    for script in ["retryx quota show a >&-", "retryx quota show a >/dev/full", "retryx plan >&-"] {
        lab.shell(script).finish().exited(125).says(&["standard output"]);
    }
    // The limit on the size of files ends programs that do not look out for it.
    for words in ["set a --tokens 3", "reset a", "set new --tokens 3"] {
        let run =
            lab.bash(&format!("(ulimit -f 0; exec retryx quota {words}) 2>&1 | cat; exit ${{PIPESTATUS[0]}}")).finish();
        run.exited(125);
        assert!(String::from_utf8_lossy(&run.stdout).contains("file too large"), "{words}");
    }
    assert!(lab.bare("quota show a").finish().text().contains("90 of 100"));
}

#[test]
fn variables_of_runs_are_none_of_its_business() {
    let lab = Lab::new();
    drain(&lab, "a");
    lab.bare("quota show a").env("RETRYX_MAX_ATTEMPTS", "zz").finish().exited(0);
    lab.bare("quota show a").env("RETRYX_STORE", "zz").finish().exited(125).says(&["RETRYX_STORE"]);
}
