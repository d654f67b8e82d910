//! What a fleet of jobs that share a scope does to a service that fails, and what the
//! documented quota makes of it.

use crate::support::Lab;

/// Tokens of a scope, as `retryx quota show` tells them.
#[track_caller]
fn tokens(lab: &Lab, scope: &str) -> u64 {
    let shown = lab.bare("quota show --format json").arg(scope).finish();
    shown.exited(0);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("one JSON object");
    shown["tokens"].as_u64().expect("a whole number")
}

/// Runs that many jobs one after the other, and returns how many requests they made in all.
#[track_caller]
fn jobs(lab: &Lab, count: usize, options: &str, request: &str) -> usize {
    let before = lab.read("requests").len();
    let script = format!(
        "for i in $(seq {count}); do retryx -q --base-delay 0 {options} -- sh -c 'printf . >>$D/requests; {request}'; done; :"
    );
    lab.shell(&script).finish().exited(0);
    lab.read("requests").len() - before
}

#[test]
fn an_outage_costs_a_fleet_its_bucket_and_no_more() {
    let lab = Lab::new();
    assert_eq!(jobs(&lab, 100, "--no-quota", "exit 1"), 300);
    // 500 tokens pay for 35 retries of 14.
    assert_eq!(jobs(&lab, 100, "--scope shop --quota-refill 0", "exit 1"), 135);
    assert_eq!(tokens(&lab, "shop"), 10);
    // The service comes back: first attempts are never refused, and each success brings a token.
    assert_eq!(jobs(&lab, 32, "--scope shop --quota-refill 0", "exit 0"), 32);
    assert_eq!(tokens(&lab, "shop"), 42);
    // It fails once more, and three retries can be paid again.
    assert_eq!(jobs(&lab, 10, "--scope shop --quota-refill 0", "exit 1"), 13);
    assert_eq!(tokens(&lab, "shop"), 0);
}

/// Runs jobs of three attempts of which so many succeed at once, on the first retry, on the
/// second, or never, and returns by how much the bucket grew.
#[track_caller]
fn growth(lab: &Lab, scope: &str, options: &str, mix: [usize; 4]) -> i64 {
    const START: i64 = 500;
    let options = format!("--scope {scope} --quota-capacity 1000 --quota-refill 0 -n 3 {options}");
    lab.bare("quota set --tokens 500 --quota-capacity 1000 --quota-refill 0").arg(scope).finish().exited(0);
    for (failures, count) in mix.into_iter().enumerate() {
        let request = format!("[ $RETRYX_RUN_ATTEMPT -gt {failures} ] || exit 75");
        assert_eq!(jobs(lab, count, &options, &request), count * (failures + 1).min(3));
    }
    i64::try_from(tokens(lab, scope)).expect("few") - START
}

/// Each mix is that of attempts which fail independently with a probability p: 1 - p,
/// p (1 - p), p² (1 - p) and p³ of the runs. The documented break-even is at about 22 % for
/// transient failures and 32 % for throttling (reference §1.7).
#[test]
fn the_bucket_drains_from_the_documented_share_of_failures_on() {
    let lab = Lab::new();
    let throttled = "--throttle-on 75 --throttle-base-delay 0";
    // p = 1/5 and 1/4.
    assert_eq!(growth(&lab, "fifth", "", [100, 20, 4, 1]), 16);
    assert_eq!(growth(&lab, "quarter", "", [48, 12, 3, 1]), -22);
    // p = 3/10 and 1/3.
    assert_eq!(growth(&lab, "three-tenths", throttled, [70, 21, 6, 3]), 10);
    assert_eq!(growth(&lab, "third", throttled, [54, 18, 6, 3]), -6);
}

#[test]
fn waiters_whose_deadline_comes_first_start_nothing() {
    let lab = Lab::new();
    let options = "-q --mode adaptive --scope slow -n 1 --throttle-on 75";
    for _ in 0..3 {
        lab.bare(options).sh("exit 75").finish().exited(75);
    }
    // The next token is there in two seconds, and only one of them can have it; who has it is
    // throttled again, so that there is no other for two seconds more.
    let deadlines = ["1.9", "2", "2.02", "2.1"].into_iter().cycle().take(12);
    let start =
        |deadline: &str| lab.run(&format!("{options} --deadline {deadline}")).sh("echo >>$D/started; exit 75").start();
    let runs: Vec<_> = deadlines.map(start).collect();
    for run in runs {
        let run = run.finish();
        if run.last()["attempts"] == 0 {
            run.exited(124).stopped(0, "deadline");
        } else {
            run.exited(75);
        }
    }
    assert!(lab.lines("started").len() <= 1, "{} started", lab.lines("started").len());
}
