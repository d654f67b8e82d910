//! Settings to plans.

use super::*;
use crate::cli::{Invocation, parse};

fn plan(line: &str) -> Result<Plan, String> {
    let words: Vec<OsString> = std::iter::once("retryx").chain(line.split_whitespace()).map(OsString::from).collect();
    match parse(&words).map_err(|error| error.0)? {
        Invocation::Do { given, command, .. } => Plan::resolve(&given, command, String::new()).map_err(|error| error.0),
        Invocation::Print(text) => panic!("{text}"),
    }
}

#[test]
fn the_modes_have_their_documented_numbers() {
    let standard = plan("true").unwrap();
    assert_eq!(standard, plan("--mode standard true").unwrap());
    assert_eq!(standard, plan("--mode aws true").unwrap());
    assert_eq!(standard.session.backoff.base, Duration::from_millis(50));
    assert_eq!(standard.session.backoff.throttling_base, SECOND);
    assert_eq!(standard.session.backoff.cap, 20 * SECOND);
    assert_eq!(standard.session.limits.max_attempts, NonZeroU64::new(3));
    assert_eq!(standard.session.limits.deadline, None);
    assert_eq!(standard.session.budget.quota, Some(QuotaPlan::default()));
    let google = plan("--mode google true").unwrap();
    assert_eq!(google.session.backoff.base, SECOND);
    assert_eq!(google.session.backoff.cap, 32 * SECOND);
    assert_eq!(google.session.backoff.jitter, Jitter::Fraction);
    assert_eq!(google.session.limits.max_attempts, None);
    assert_eq!(google.session.limits.deadline, Some(300 * SECOND));
    assert_eq!(google.session.budget.quota, None);
}

#[test]
fn a_number_of_attempts_lifts_the_private_quota() {
    assert_eq!(plan("-n 100 true").unwrap().session.budget.quota, None);
    assert_eq!(plan("-n unlimited true").unwrap().session.budget.quota, None);
}

#[test]
fn a_wrong_value_is_named_with_its_place_and_the_remedy() {
    for (line, parts) in [
        ("-n 0 x", &["--max-attempts", "'0'", "unlimited"][..]),
        ("-n -1 x", &["--max-attempts", "'-1'"]),
        ("-n 1.5 x", &["--max-attempts", "'1.5'"]),
        ("-n three x", &["--max-attempts", "'three'"]),
        ("--timeout 0 x", &["--timeout", "leave it out"]),
        ("--deadline 0s x", &["--deadline", "leave it out"]),
        ("--total-timeout 0 x", &["--total-timeout", "leave it out"]),
        ("--timeout -5 x", &["--timeout", "'-5'", "250ms"]),
        ("--timeout 5x x", &["--timeout", "'5x'", "250ms"]),
        ("--base-delay nan x", &["--base-delay", "'nan'"]),
        ("--base-delay= x", &["--base-delay", "''"]),
        ("--factor 0.5 x", &["--factor", "'0.5'", "1"]),
        ("--factor inf x", &["--factor", "'inf'"]),
        ("--mode amazon x", &["--mode", "'amazon'", "standard"]),
        ("--jitter some x", &["--jitter", "'some'", "full"]),
        ("--kill-signal NOPE x", &["--kill-signal", "'NOPE'", "TERM"]),
        ("--seed -1 x", &["--seed", "'-1'"]),
        ("--exit-code-on-failure 256 x", &["--exit-code-on-failure", "'256'", "255"]),
        ("--min-delay 30s x", &["--min-delay", "--max-backoff"]),
        ("--stagger 6 --deadline 5 x", &["--stagger", "--deadline"]),
        ("--mode google --stagger 6m x", &["--stagger", "--deadline"]),
        ("--mode fixed --factor 2 x", &["--factor", "fixed"]),
        ("--mode decorrelated --jitter none x", &["--jitter", "decorrelated"]),
        ("--events fd:x y", &["--events", "'fd:x'"]),
        ("-q -v x", &["--quiet", "--verbose"]),
        ("--shell echo hi", &["--shell", "quotes"]),
        ("--stdin some x", &["--stdin", "'some'", "replay"]),
        ("--stdout last x", &["--stdout", "'last'", "final"]),
    ] {
        let error = plan(line).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

#[test]
fn huge_numbers_are_endless() {
    let most = plan("-n 18446744073709551616 true").unwrap().session.limits.max_attempts;
    assert_eq!(most, NonZeroU64::new(u64::MAX));
    for duration in ["18446744073709551615s", "99999999999h", "1000000y"] {
        let line =
            format!("--timeout {duration} --deadline {duration} --base-delay {duration} --max-backoff {duration} true");
        assert!(plan(&line).is_ok(), "{duration}");
    }
}

#[test]
fn the_last_giving_of_an_option_counts() {
    assert_eq!(plan("--timeout 1 --timeout 2 true").unwrap().supervision.timeout, Some(2 * SECOND));
}
