//! The values of options: what is refused, and that nothing runs then; what is endless.

use crate::support::{Lab, bytes};

#[test]
fn a_wrong_value_stops_before_anything_runs_and_is_named_with_the_remedy() {
    let lab = Lab::new();
    for (words, parts) in [
        // B117
        ("--timeout 0", &["--timeout", "'0'", "leave it out"][..]),
        ("--deadline 0", &["--deadline", "'0'", "leave it out"]),
        ("--deadline 0ms", &["--deadline", "'0ms'"]),
        ("--total-timeout 0s", &["--total-timeout", "'0s'"]),
        // B114, B112
        ("--timeout -1", &["--timeout", "'-1'", "250ms"]),
        ("--timeout 1e3", &["--timeout", "'1e3'", "250ms"]),
        ("--timeout 5x", &["--timeout", "'5x'", "250ms"]),
        ("--timeout 5ss", &["--timeout", "'5ss'"]),
        ("--timeout nan", &["--timeout", "'nan'"]),
        ("--timeout inf", &["--timeout", "'inf'"]),
        ("--timeout=", &["--timeout", "''"]),
        ("--timeout .", &["--timeout", "'.'"]),
        ("--timeout 1.2.3", &["--timeout", "'1.2.3'"]),
        ("--timeout +1", &["--timeout", "'+1'"]),
        ("--timeout 0x10", &["--timeout", "'0x10'"]),
        ("--base-delay 1,5", &["--base-delay", "'1,5'"]),
        ("--max-backoff ms", &["--max-backoff", "'ms'"]),
        ("--kill-after -0", &["--kill-after", "'-0'"]),
        ("--stagger soon", &["--stagger", "'soon'"]),
        ("--min-delay 30 --max-backoff 20", &["--min-delay", "--max-backoff"]),
        ("-n 0", &["--max-attempts", "'0'", "unlimited"]),
        ("-n -1", &["--max-attempts", "'-1'", "unlimited"]),
        ("-n 1.5", &["--max-attempts", "'1.5'"]),
        ("-n 3x", &["--max-attempts", "'3x'"]),
        ("-n ∞", &["--max-attempts", "unlimited"]),
        ("-n=", &["--max-attempts", "unlimited"]),
        ("--mode amazon", &["--mode", "'amazon'", "standard", "google"]),
        ("--jitter some", &["--jitter", "'some'", "full", "none"]),
        ("--factor 0.5", &["--factor", "'0.5'"]),
        ("--factor 1e3", &["--factor", "'1e3'"]),
        ("--seed -1", &["--seed", "'-1'"]),
        ("--seed 18446744073709551616", &["--seed", "18446744073709551616"]),
        ("--kill-signal NOPE", &["--kill-signal", "'NOPE'", "TERM"]),
        ("--kill-signal 0", &["--kill-signal", "'0'"]),
        ("--kill-signal 65", &["--kill-signal", "'65'"]),
        ("--stdin some", &["--stdin", "'some'", "replay, inherit"]),
        ("--stdout last", &["--stdout", "'last'", "each, final, success"]),
        ("--stderr last", &["--stderr", "'last'", "each, final, success"]),
        ("--exit-code-on-failure 256", &["--exit-code-on-failure", "'256'", "255"]),
        ("--events fd:x", &["--events", "'fd:x'"]),
        ("--events=", &["--events"]),
        ("-q -v", &["--quiet", "--verbose"]),
        ("--nonsense", &["--nonsense", "--help"]),
        ("--max-attempt 3", &["--max-attempt", "--max-attempts"]),
        ("-Z", &["-Z", "--help"]),
        ("--shell=yes", &["--shell takes no value"]),
        ("--verbose=2", &["--verbose takes no value, but '2' was given"]),
        ("--mode fixed --factor 2", &["--factor", "fixed"]),
        ("--shell echo", &["--shell", "quotes"]),
    ] {
        let run = lab.bare(words).args(["touch", "ran"]).finish();
        run.exited(125).says(parts);
        assert_eq!(run.messages().len(), 1, "{words}: {}", run.stderr);
        assert!(run.stdout.is_empty());
        assert!(!lab.path("ran").exists(), "{words}");
    }
}

#[test]
fn an_option_without_its_value_says_so() {
    let lab = Lab::new();
    for option in ["-n", "--timeout", "--events", "--mode"] {
        lab.bare(option).finish().exited(125).says(&["needs a value"]);
    }
}

#[test]
fn values_that_are_no_utf8_are_refused_without_a_panic() {
    let lab = Lab::new();
    for option in
        ["--timeout", "--max-attempts", "--mode", "--jitter", "--factor", "--kill-signal", "--stdin", "--seed"]
    {
        let run = lab.bare("").arg(option).arg(bytes(b"1\xff")).args(["touch", "ran"]).finish();
        run.exited(125).says(&[option]);
        assert!(!lab.path("ran").exists());
    }
    let run = lab.bare("").arg(bytes(b"--ba\xffse-delay=1")).args(["touch", "ran"]).finish();
    run.exited(125);
    // A file may have any name.
    let run = lab.bare("--events").arg(bytes(b"e\xff")).arg("true").finish();
    run.exited(0);
    assert!(lab.path("").join(bytes(b"e\xff")).exists());
}

// B113
#[test]
fn durations_beyond_any_clock_are_endless() {
    let lab = Lab::new();
    for duration in [
        "18446744073709551615s",
        "99999999999h",
        "4294967296ms",
        "1000000y",
        "99999999999999999999999999999999999999999999",
    ] {
        for option in [
            "--base-delay",
            "--max-backoff",
            "--deadline",
            "--timeout",
            "--total-timeout",
            "--kill-after",
            "--throttle-base-delay",
        ] {
            let run = lab.run("-n 2").args([option, duration, "true"]).finish();
            run.exited(0).stopped(1, "success");
            assert!(run.stderr.is_empty());
        }
        // As a delay it is waited for, or cut at the cap.
        let run = lab.run("-n 2 --max-backoff 0").args(["--base-delay", duration, "false"]).finish();
        run.exited(1).stopped(2, "attempts");
        let run = lab.run("-n 2 --mode fixed").args(["--base-delay", duration, "false"]).start();
        run.events.wait("retry_scheduled", 1);
        run.signal(rustix::process::Signal::TERM);
        run.finish().died_of(rustix::process::Signal::TERM);
    }
}

#[test]
fn growth_beyond_any_number_overflows_nothing() {
    let lab = Lab::new();
    let mut runs = Vec::new();
    for mode in ["exponential", "standard", "google", "linear", "decorrelated"] {
        // Two to the 1024 is beyond any number that a computer calculates with.
        let options = format!("-q -n 1100 --mode {mode} --base-delay 1000y --max-backoff 0");
        runs.push(lab.run(&options).command(&["false"]).start());
    }
    for run in runs {
        run.finish().exited(1).stopped(1100, "attempts");
    }
}
