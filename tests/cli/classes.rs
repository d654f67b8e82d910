//! What outcomes are taken for in real runs, and what follows from it.

use rustix::process::Signal;

use crate::support::Lab;

// B56
#[test]
fn a_list_of_codes_is_obeyed_both_ways() {
    let lab = Lab::new();
    for (code, attempts, reason) in [
        (1, 1, "permanent"),
        (2, 3, "attempts"),
        (74, 1, "permanent"),
        (75, 3, "attempts"),
        (78, 3, "attempts"),
        (79, 1, "permanent"),
    ] {
        let run = lab.run("--retry-on 2,75-78 -n 3 --base-delay 0").sh(&format!("exit {code}")).finish();
        run.exited(code).stopped(attempts, reason);
    }
}

#[test]
fn refusal_beats_retry_whatever_the_order() {
    let lab = Lab::new();
    for options in
        ["--fail-on 7 --retry-on any", "--retry-on any --fail-on 7", "--throttle-on 7 --fail-on 7 --retry-on 7"]
    {
        let run = lab.run(options).sh("exit 7").finish();
        run.exited(7).stopped(1, "permanent");
        assert_eq!(run.each("attempt_finished", "rule"), ["--fail-on 7"], "{options}");
    }
}

// B64, B65 (the part without patterns)
#[test]
fn success_is_touched_only_by_a_rule_that_names_it() {
    let lab = Lab::new();
    for options in ["--retry-on any", "--fail-on any", "--throttle-on any", "--retry-on 1-255,signal:KILL,timeout"] {
        lab.run(options).command(&["true"]).finish().exited(0).stopped(1, "success");
    }
    let run = lab.run("--retry-on 0 -n 3 --base-delay 0").command(&["true"]).finish();
    run.exited(1).stopped(3, "attempts").says(&["exit status 0", "--retry-on 0"]);
    lab.run("--fail-on 0").command(&["true"]).finish().exited(1).stopped(1, "permanent");
}

#[test]
fn what_succeeds_by_a_rule_exits_zero() {
    let lab = Lab::new();
    lab.run("--succeed-on 3,signal:TERM").sh("exit 3").finish().exited(0).stopped(1, "success");
    lab.run("--succeed-on 3,signal:TERM").sh("kill -TERM $$").finish().exited(0).stopped(1, "success");
    let run = lab.run("--succeed-on timeout --timeout 50ms").command(&["sleep", "60"]).finish();
    run.exited(0).stopped(1, "success");
}

#[test]
fn throttling_waits_by_the_long_base() {
    let lab = Lab::new();
    let run =
        lab.run("--throttle-on 75 -n 2 --throttle-base-delay 60ms --base-delay 0 --jitter none").sh("exit 75").finish();
    run.exited(75).stopped(2, "attempts");
    assert_eq!(run.each("attempt_finished", "class"), ["throttling", "throttling"]);
    assert_eq!(
        (&run.of("retry_scheduled")[0]["delay_ms"], &run.of("retry_scheduled")[0]["base_ms"]),
        (&60.0.into(), &60.0.into())
    );
}

#[test]
fn a_command_that_is_not_there_is_retried_only_by_its_number() {
    let lab = Lab::new();
    lab.run("--retry-on any -n 3 --base-delay 0 -- ./no-such").finish().exited(127).stopped(1, "permanent");
    lab.run("--retry-on 127 -n 3 --base-delay 0 -- ./no-such").finish().exited(127).stopped(3, "attempts");
}

#[test]
fn a_timeout_is_no_number_and_stays_outside_the_closed_list() {
    let lab = Lab::new();
    let timed = |options: &str| {
        lab.run(&format!("--timeout 50ms -n 2 --base-delay 0 {options}")).command(&["sleep", "60"]).finish()
    };
    timed("--retry-on 75").exited(124).stopped(2, "attempts");
    timed("--fail-on 124").exited(124).stopped(2, "attempts");
    timed("--fail-on timeout").exited(124).stopped(1, "permanent");
}

#[test]
fn signals_are_matched_by_name_and_number() {
    let lab = Lab::new();
    for rule in ["signal:KILL", "signal:9", "signal:SIGKILL"] {
        let run = lab.run(&format!("--fail-on {rule}")).sh("kill -KILL $$").finish();
        run.died_of(Signal::KILL).stopped(1, "permanent");
    }
    // The number that a shell shows is not the signal.
    lab.run("--fail-on 137 -n 2 --base-delay 0").sh("kill -KILL $$").finish().stopped(2, "attempts");
}

// B118
#[test]
fn impossible_rules_are_refused_with_a_hint_before_anything_runs() {
    let lab = Lab::new();
    for (rule, hint) in [
        ("-1", "255"),
        ("256", "exits 0"),
        ("5-2", "2-5"),
        ("1,,2", "missing"),
        ("a", "valid are"),
        ("1-", "valid are"),
        ("SIGKILL", "signal:KILL"),
        ("75..78", "75-78"),
        ("stdout:/(/", "cannot be read"),
    ] {
        for option in ["--retry-on", "--throttle-on", "--fail-on", "--succeed-on"] {
            let run = lab.bare(option).arg(rule).args(["touch", "ran"]).finish();
            run.exited(125).says(&[option, hint]);
            assert_eq!(run.messages().len(), 1);
        }
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn rules_that_no_command_can_meet_are_refused_rather_than_ignored() {
    let lab = Lab::new();
    for (rule, program) in [("http:503", "touch"), ("error:X", "curl"), ("body:/x/", "touch")] {
        lab.bare(&format!("--retry-on {rule} {program} ran")).finish().exited(125).says(&[rule, "answers", program]);
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn a_failure_that_exited_0_is_guarded_as_any_other() {
    let lab = Lab::new();
    // Half-eaten input is not given to a second attempt,
    let script = "seq 1000000 | retryx --retry-on 0 -n 3 --base-delay 0 -- sh -c 'echo x >> m; head -c 10 > /dev/null'";
    lab.shell(script).finish().exited(1).says(&["standard input", "giving up after 1 attempt"]);
    assert_eq!(lab.lines("m"), ["x"]);
    // a file is put back,
    lab.write("input", "one\ntwo\n");
    let run = lab.shell("retryx -q --retry-on 0 -n 2 --base-delay 0 -- sh -c 'read a; echo $a' < input").finish();
    run.exited(1);
    assert_eq!(run.text(), "one\none\n");
    // and nothing follows a TERM, whatever the rules say.
    let run =
        lab.run("--retry-on 0 -n 3 --base-delay 0").sh("trap 'exit 0' TERM; touch ready; while :; do sleep 0.01; done");
    let run = run.start();
    lab.await_file("ready");
    run.signal(Signal::TERM);
    run.finish().exited(1).stopped(1, "interrupted");
}
