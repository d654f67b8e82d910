//! The private retry quota and the modes that have one.

use crate::support::Lab;

// B97 (the part within one run)
#[test]
fn a_quota_that_is_configured_is_used() {
    let lab = Lab::new();
    let run = lab.run("--quota-capacity 10 --quota-cost 5 -n 50 --base-delay 0").command(&["false"]).finish();
    run.exited(1).stopped(3, "quota").says(&["quota"]);
    assert_eq!(run.each("retry_scheduled", "quota_left"), [5, 0]);
    assert_eq!(run.last()["quota_left"], 0);
}

#[test]
fn the_standard_quota_ends_a_run_that_names_no_number_of_attempts() {
    let lab = Lab::new();
    // 500 tokens pay for 35 retries of 14; AWS's own variable does not lift it.
    let run = lab.run("--base-delay 0 -q").env("AWS_MAX_ATTEMPTS", "99").command(&["false"]).finish();
    run.exited(1).stopped(36, "quota");
    assert_eq!(run.last()["quota_left"], 10);
    let run = lab
        .run("--base-delay 0 -q --throttle-base-delay 0 --throttle-on 1 --quota-capacity 500")
        .env("AWS_MAX_ATTEMPTS", "200");
    run.command(&["false"]).finish().exited(1).stopped(101, "quota");
}

#[test]
fn a_number_of_attempts_lifts_the_quota_unless_a_quota_option_is_given_too() {
    let lab = Lab::new();
    let fail = |options: &str| lab.run(&format!("-q --base-delay 0 {options}")).command(&["false"]).finish();
    let run = fail("-n 40");
    run.stopped(40, "attempts");
    assert!(run.last()["quota_left"].is_null());
    fail("-n 40 --quota-capacity 500").stopped(36, "quota");
    let run = lab.run("-q --base-delay 0").env("RETRYX_MAX_ATTEMPTS", "40").command(&["false"]).finish();
    run.stopped(40, "attempts");
}

#[test]
fn a_quota_and_none_are_not_both_to_be_had() {
    let lab = Lab::new();
    for (option, variable, value) in [
        ("--quota-capacity", "RETRYX_QUOTA_CAPACITY", "500"),
        ("--quota-cost", "RETRYX_QUOTA_COST", "14"),
        ("--quota-refill", "RETRYX_QUOTA_REFILL", "0"),
    ] {
        let run = lab.bare(&format!("--no-quota {option} {value} -- touch ran")).finish();
        run.exited(125).says(&["--no-quota", option, "contradict"]);
        let run = lab.bare("-- touch ran").env("RETRYX_NO_QUOTA", "1").env(variable, value).finish();
        run.exited(125).says(&["RETRYX_NO_QUOTA", variable, "contradict"]);
        // The command line wins.
        let run = lab.run("-q -n 40 --base-delay 0 --no-quota").env(variable, value).command(&["false"]).finish();
        run.stopped(40, "attempts");
        let run = lab.run(&format!("-q -n 40 --base-delay 0 {option} {value}")).env("RETRYX_NO_QUOTA", "yes");
        run.command(&["false"]).finish().stopped(36, "quota");
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn a_mode_without_a_quota_gets_one_when_it_is_asked_for() {
    let lab = Lab::new();
    let run = lab
        .run("--mode fixed --base-delay 0 -n 9 --quota-cost transient=200,throttling=1")
        .command(&["false"])
        .finish();
    run.stopped(3, "quota");
}

#[test]
fn a_refill_pays_for_what_comes_later() {
    let lab = Lab::new();
    // One retry's price in the bucket, another's comes in during the delay.
    let options = "--quota-capacity 5 --quota-cost 5 --quota-refill 100 --mode fixed --base-delay 100ms -n 4";
    lab.run(options).command(&["false"]).finish().stopped(4, "attempts");
}

#[test]
fn attempts_are_the_reason_where_both_end_together() {
    let lab = Lab::new();
    let run = lab.run("--quota-capacity 10 --quota-cost 5 -n 3 --base-delay 0").command(&["false"]).finish();
    run.stopped(3, "attempts");
}

#[test]
fn long_polling_waits_before_it_gives_up_for_the_quota_only() {
    let lab = Lab::new();
    let fail = |options: &str| {
        lab.run(&format!("--long-poll --mode fixed --base-delay 300ms {options}")).command(&["false"]).finish()
    };
    let run = fail("--quota-capacity 0 -n 3");
    run.exited(1).stopped(1, "quota");
    assert!(run.last()["waited_ms"].as_f64() >= Some(300.0));
    let run = fail("-n 1");
    run.stopped(1, "attempts");
    assert!(run.last()["waited_ms"].as_f64() < Some(300.0));
    let run = fail("--quota-capacity 0 --fail-on 1");
    run.stopped(1, "permanent");
    assert!(run.last()["waited_ms"].as_f64() < Some(300.0));
}

#[test]
fn the_adaptive_mode_paces_attempts_after_throttling() {
    let lab = Lab::new();
    let options = "--mode adaptive -n 2 --throttle-on 75 --throttle-base-delay 0";
    let run = lab.run(options).sh("exit 75").finish();
    run.exited(75).stopped(2, "attempts");
    let retry = &run.of("retry_scheduled")[0];
    assert_eq!(retry["delay_source"], "limiter");
    // At the floor of half an attempt a second a token takes two seconds.
    assert!(retry["delay_ms"].as_f64() > Some(1_500.0), "{retry}");
    assert!(run.last()["waited_ms"].as_f64() >= retry["delay_ms"].as_f64());
    // Without throttling it never holds anything up.
    let run = lab.run("--mode adaptive -n 3 --base-delay 0").command(&["false"]).finish();
    assert_eq!(run.each("retry_scheduled", "delay_source"), ["backoff", "backoff"]);
    assert_eq!(run.each("retry_scheduled", "delay_ms"), [0.0, 0.0]);
}

#[test]
fn the_documented_services_and_schedules() {
    let lab = Lab::new();
    let delays = |options: &str| {
        let run = lab.run(&format!("--jitter none {options}")).command(&["false"]).finish();
        run.each("retry_scheduled", "delay_ms")
    };
    assert_eq!(delays("--service dynamodb"), [25.0, 50.0, 100.0]);
    assert_eq!(delays("--delays 10ms,30ms,20ms -n 6"), [10.0, 30.0, 20.0, 20.0, 20.0]);
    assert_eq!(delays("--mode legacy --base-delay 1ms"), [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(delays("--mode linear --base-delay 5ms -n 4"), [5.0, 10.0, 15.0]);
    let run = lab.run("--mode legacy --service dynamodb --deadline 300ms").command(&["false"]).finish();
    run.stopped(3, "deadline");
    assert_eq!(run.each("retry_scheduled", "delay_ms"), [50.0, 100.0]);
}
