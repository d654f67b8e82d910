//! `--retry-after-match`: the output asks for a delay.

use std::time::Duration;

use crate::support::{Finished, Lab};

/// Runs two attempts of a command that says this on standard error and fails.
fn run(lab: &Lab, options: &str, pattern: &str, says: &str) -> Finished {
    let script = format!("printf '%b' '{says}' >&2; exit 7");
    lab.run("-n 2 --mode fixed --base-delay 0")
        .words(options)
        .args(["--retry-after-match", pattern])
        .sh(&script)
        .finish()
}

/// What the first retry's event tells of its delay.
#[track_caller]
fn delay(run: &Finished) -> (f64, String, Option<f64>) {
    let event = run.of("retry_scheduled").first().unwrap_or_else(|| panic!("no retry: {}", run.stderr)).clone();
    let source = event["delay_source"].as_str().expect("a source").to_owned();
    (event["delay_ms"].as_f64().expect("a delay"), source, event["server_delay_ms"].as_f64())
}

const IN_SECONDS: &str = r"stderr:/retry in (\d+)s/";
const WITH_UNIT: &str = "stderr:/^wait (.+)$/";

#[test]
fn the_output_sets_the_delay() {
    let lab = Lab::new();
    for (pattern, says, milliseconds) in [
        (IN_SECONDS, "please retry in 1s", 1000.0),
        (WITH_UNIT, "wait 0.3", 300.0),
        (WITH_UNIT, "wait .25\\n", 250.0),
        (WITH_UNIT, "wait 250ms\\r\\n", 250.0),
        (WITH_UNIT, "wait  100ms \\n", 100.0),
        (WITH_UNIT, "\\033[33mwait 0.2s\\033[0m\\n", 200.0),
        (r"stderr:/(?:try|ask) again in (\S+)/i", "Ask Again In 120ms.\\n", f64::NAN),
        (r"stderr:/(?:try|ask) again in ([0-9.]+m?s)/i", "Ask Again In 120ms.\\n", 120.0),
        // The last line that matches counts.
        (WITH_UNIT, "wait 50\\nwait 0.2\\nother\\n", 200.0),
        (WITH_UNIT, "wait 50\\nother\\nwait 150ms", 150.0),
    ] {
        let run = run(&lab, "", pattern, says);
        run.exited(7).stopped(2, "attempts");
        let told = delay(&run);
        if milliseconds.is_nan() {
            assert_eq!(told, (0.0, "backoff".to_owned(), None), "{says}");
        } else {
            assert_eq!(told, (milliseconds, "output".to_owned(), Some(milliseconds)), "{says}");
            assert!(run.elapsed.as_secs_f64() * 1000.0 >= milliseconds, "{says}: {:?}", run.elapsed);
        }
    }
}

#[test]
fn either_stream_may_ask() {
    let lab = Lab::new();
    for (pattern, script, asked) in [
        (r"stdout:/wait (\S+)/", "echo wait 0.1; echo wait 0.2 >&2", Some(100.0)),
        (r"stderr:/wait (\S+)/", "echo wait 0.1; echo wait 0.2 >&2", Some(200.0)),
        (r"output:/wait (\S+)/", "echo wait 0.1", Some(100.0)),
        (r"output:/wait (\S+)/", "echo wait 0.2 >&2", Some(200.0)),
        (r"stdout:/wait (\S+)/", "echo wait 0.2 >&2", None),
    ] {
        let run = lab
            .run("-n 2 --base-delay 0")
            .args(["--retry-after-match", pattern])
            .sh(&format!("{script}; exit 7"))
            .finish();
        run.exited(7).stopped(2, "attempts");
        assert_eq!(delay(&run).2, asked, "{pattern} {script}");
    }
    let held = "--stdout final --stderr final";
    let run = lab
        .run("-n 2 --base-delay 0")
        .words(held)
        .args(["--retry-after-match", r"stdout:/wait (\S+)/"])
        .sh("echo wait 0.1; exit 7")
        .finish();
    assert_eq!(delay(&run).2, Some(100.0));
}

#[test]
fn the_formula_gives_the_least_and_a_random_part_is_added() {
    let lab = Lab::new();
    let longer = run(&lab, "--base-delay 0.3", WITH_UNIT, "wait 0.1");
    assert_eq!(delay(&longer), (300.0, "backoff".to_owned(), Some(100.0)));
    let nothing = run(&lab, "--base-delay 0.1", WITH_UNIT, "wait 0");
    assert_eq!(delay(&nothing), (100.0, "backoff".to_owned(), Some(0.0)));
    let spread: Vec<f64> = (1..=5)
        .map(|seed| {
            let run = run(&lab, &format!("--mode exponential --seed {seed}"), WITH_UNIT, "wait 0.2");
            let (delay, source, server) = delay(&run);
            assert_eq!((source.as_str(), server), ("output", Some(200.0)));
            assert!((200.0..=220.0).contains(&delay), "{delay}");
            delay
        })
        .collect();
    assert!(spread.iter().any(|delay| *delay > 200.0), "{spread:?}");
}

#[test]
fn only_the_latest_attempt_asks() {
    let lab = Lab::new();
    let script = "[ $RETRYX_RUN_ATTEMPT = 1 ] && echo wait 0.1 >&2; exit 7";
    let run = lab.run("-n 3 --mode fixed --base-delay 0").args(["--retry-after-match", WITH_UNIT]).sh(script).finish();
    run.exited(7).stopped(3, "attempts");
    assert_eq!(run.each("retry_scheduled", "delay_source"), ["output", "backoff"]);
    let asked = run.of("retry_scheduled").iter().map(|event| event["server_delay_ms"].as_f64()).collect::<Vec<_>>();
    assert_eq!(asked, [Some(100.0), None]);
}

#[test]
fn more_than_the_limits_allow_stops_the_run() {
    let lab = Lab::new();
    for (options, asked, milliseconds, limit) in [
        ("", "61", 61_000.0, "--max-retry-after 60 s"),
        ("", "1h 30m", 5_400_000.0, "--max-retry-after 60 s"),
        ("--max-retry-after 5", "6s", 6000.0, "--max-retry-after 5 s"),
        ("--max-retry-after 0", "1ms", 1.0, "--max-retry-after 0 ms"),
        ("--deadline 5", "20", 20_000.0, "--deadline 5 s"),
        ("--total-timeout 5", "20", 20_000.0, "--total-timeout 5 s"),
        ("--deadline 9 --total-timeout 5", "20", 20_000.0, "--deadline 9 s"),
    ] {
        let run = run(&lab, options, WITH_UNIT, &format!("wait {asked}\\n"));
        run.exited(7).stopped(1, "server_delay");
        assert_eq!(run.last()["server_delay_ms"].as_f64(), Some(milliseconds), "{options} {asked}");
        run.says(&["asked to stay away", &format!(", longer than {limit} allows")]);
        assert!(run.elapsed < Duration::from_secs(60));
    }
    for endless in ["99999999999999999999999", &"9".repeat(3000), "999999999999h"] {
        run(&lab, "", WITH_UNIT, &format!("wait {endless}\\n")).exited(7).stopped(1, "server_delay");
    }
    let run = run(&lab, "--max-retry-after 2h --deadline 300", WITH_UNIT, "wait 1h\\n");
    run.exited(7).stopped(1, "server_delay");
}

#[test]
fn what_is_no_duration_is_ignored_and_said_when_asked() {
    let lab = Lab::new();
    for junk in ["soon", "-5", "1e3", "5 apples", "nan", "٣", "\\0303", "inf", "3;"] {
        let run = run(&lab, "-v", "stderr:/(?-u)^wait (.+)$/", &format!("wait {junk}\\n"));
        run.exited(7).stopped(2, "attempts").says(&["--retry-after-match", "no duration"]);
        assert_eq!(delay(&run), (0.0, "backoff".to_owned(), None), "{junk}");
    }
    assert!(!run(&lab, "", WITH_UNIT, "wait soon\\n").stderr.contains("--retry-after-match"));
    // The last that matches is junk; the one before does not come back.
    assert_eq!(delay(&run(&lab, "", WITH_UNIT, "wait 50\\nwait soon\\n")).2, None);
}

#[test]
fn a_wish_for_a_delay_makes_nothing_retryable() {
    let lab = Lab::new();
    for options in ["--fail-on 7", "--retry-on 8", "--fail-on stderr:/wait/"] {
        run(&lab, options, WITH_UNIT, "wait 0.1\\n").exited(7).stopped(1, "permanent");
    }
    let match_it = ["--retry-after-match", WITH_UNIT];
    lab.run("-n 3").args(match_it).sh("echo wait 0.1 >&2").finish().exited(0).stopped(1, "success");
    lab.run("-n 3").args(match_it).sh("echo wait 0.1 >&2; exit 127").finish().exited(127).stopped(1, "permanent");
    lab.run("-n 1").args(match_it).sh("echo wait 0.1 >&2; exit 7").finish().exited(7).stopped(1, "attempts");
    // After throttling it goes over that class's own delay.
    let run = run(&lab, "--throttle-on any --throttle-base-delay 0", WITH_UNIT, "wait 0.1\\n");
    assert_eq!(delay(&run).1, "output");
    assert_eq!(run.each("attempt_finished", "class")[0], "throttling");
}

#[test]
fn a_pattern_without_exactly_one_group_is_refused() {
    let lab = Lab::new();
    for (pattern, says) in [
        ("stderr:/wait 5s/", "0 groups"),
        ("stderr:/(wait) (5)s/", "2 groups"),
        ("stderr:/(?:wait) 5s/", "0 groups"),
        ("body:/(5)/", "body"),
        ("7", "one pattern"),
        ("stderr:/(5)/,stderr:/(6)/", "one pattern"),
        ("", "one"),
        ("http:503", "one pattern"),
    ] {
        let run = lab.bare("-n 1").args(["--retry-after-match", pattern]).sh("echo >ran").finish();
        run.exited(125).says(&["--retry-after-match", says]);
        let run = lab.bare("-n 1").env("RETRYX_RETRY_AFTER_MATCH", pattern).sh("[ -z \"$X\" ] || echo >ran").finish();
        run.exited(if pattern.is_empty() { 0 } else { 125 });
    }
    assert!(!lab.path("ran").exists());
    let run = lab
        .run("-n 2 --base-delay 0 --mode fixed")
        .env("RETRYX_RETRY_AFTER_MATCH", WITH_UNIT)
        .sh("echo wait 0.1 >&2; exit 7")
        .finish();
    assert_eq!(delay(&run).1, "output");
}
