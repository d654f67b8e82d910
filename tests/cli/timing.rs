//! Delays: their numbers, that they are really waited, and what waiting costs.

use std::time::Duration;

use crate::support::{Finished, LIMIT, Lab, Running, Timer, await_end, number, numbers, proc, wait_until};

fn delays(run: &Finished) -> Vec<f64> {
    numbers(&run.of("retry_scheduled"), "delay_ms")
}

/// Asserts that a run took at least the delays it announced, and tells of them.
#[track_caller]
fn waited(run: &Finished) {
    let announced: f64 = delays(run).iter().sum();
    assert!(run.elapsed.as_secs_f64() * 1000.0 >= announced, "{:?} < {announced} ms", run.elapsed);
    let told = number(run.last(), "waited_ms");
    assert!(told >= announced, "{told} < {announced}");
    assert!(number(run.last(), "elapsed_ms") >= told);
}

// B38, B43, B44, B45
#[test]
fn delays_have_the_numbers_of_the_formula_and_are_slept_in_full() {
    let lab = Lab::new();
    let cases: [(&str, &[f64]); 9] = [
        // B38: the cap is a ceiling, no reason to stop.
        (
            "-n 8 --mode exponential --base-delay 100ms --factor 2 --max-backoff 400ms --jitter none",
            &[100.0, 200.0, 400.0, 400.0, 400.0, 400.0, 400.0],
        ),
        // B43: the first delay is the base.
        ("-n 3 --mode exponential --base-delay 200ms --jitter none", &[200.0, 400.0]),
        ("-n 3 --base-delay 200ms --jitter none", &[200.0, 400.0]),
        // B44: growth is kept.
        (
            "-n 6 --mode exponential --base-delay 50ms --max-backoff 10s --jitter none",
            &[50.0, 100.0, 200.0, 400.0, 800.0],
        ),
        // B45: whole and broken seconds.
        ("-n 2 --mode fixed --base-delay 1s", &[1000.0]),
        ("-n 2 --mode fixed --base-delay 0.5s", &[500.0]),
        ("-n 2 --mode fixed --base-delay 1.5s", &[1500.0]),
        ("-n 4 --mode linear --base-delay 100ms", &[100.0, 200.0, 300.0]),
        ("-n 3 --mode fixed --base-delay 0 --min-delay 300ms", &[300.0, 300.0]),
    ];
    let runs: Vec<_> =
        cases.into_iter().map(|(options, expected)| (lab.run(options).command(&["false"]).start(), expected)).collect();
    for (run, expected) in runs {
        let run = run.finish();
        run.exited(1).stopped(expected.len() as u64 + 1, "attempts");
        assert_eq!(delays(&run), expected);
        waited(&run);
    }
}

// B40, B42: what is drawn stays within what the formula allows.
#[test]
fn drawn_delays_stay_within_their_bounds() {
    let lab = Lab::new();
    for (options, least, most) in [
        ("--mode exponential --jitter full --base-delay 100ms --max-backoff 100ms", 0.0, 100.0),
        ("--mode exponential --jitter equal --base-delay 100ms --max-backoff 100ms", 50.0, 100.0),
        ("--mode exponential --jitter fraction --base-delay 50ms --max-backoff 100ms", 50.0, 100.0),
        ("--mode exponential --jitter full --base-delay 1h --max-backoff 80ms --min-delay 60ms", 60.0, 80.0),
        ("--mode decorrelated --base-delay 20ms --max-backoff 90ms", 20.0, 90.0),
        ("--base-delay 80ms --max-backoff 80ms", 0.0, 80.0),
        ("--mode google --base-delay 10ms --max-backoff 50ms", 10.0, 50.0),
    ] {
        let start = |seed: u32| lab.run(&format!("{options} -n 6 --seed {seed}")).command(&["false"]).start();
        for run in [0, 1, 2].map(start) {
            let run = run.finish();
            run.exited(1).stopped(6, "attempts");
            let drawn = delays(&run);
            assert!(drawn.iter().all(|delay| (least..=most).contains(delay)), "{options}: {drawn:?}");
            waited(&run);
        }
    }
}

#[test]
fn a_seed_repeats_the_whole_schedule() {
    let lab = Lab::new();
    let draw = |options: &str| {
        let run = lab.run(&format!("-n 4 {options}")).sh("exit 75").finish();
        run.exited(75).stopped(4, "attempts");
        delays(&run)
    };
    let first = draw("--seed 7");
    assert_eq!(draw("--seed 7"), first);
    assert_ne!(draw("--seed 8"), first);
    assert_ne!(draw(""), draw(""));
    // The stagger draws from elsewhere.
    assert_eq!(draw("--seed 7 --stagger 10ms"), first);
}

#[test]
fn the_stagger_is_a_random_wait_before_the_first_attempt() {
    let lab = Lab::new();
    let start = |seed: u32| lab.run(&format!("--stagger 1s --seed {seed}")).command(&["true"]).start();
    let waits = [0, 1, 2, 3, 4, 5].map(start).map(|run| {
        let run = run.finish();
        run.exited(0).stopped(1, "success");
        let waited = number(run.last(), "waited_ms");
        assert!(run.elapsed.as_secs_f64() * 1000.0 >= waited);
        waited
    });
    let (least, most) = waits.iter().fold((f64::MAX, 0f64), |(a, b), &w| (a.min(w), b.max(w)));
    assert!(most - least > 100.0, "{waits:?}");
}

// B48
#[test]
fn every_kind_of_failure_is_followed_by_the_delay() {
    let lab = Lab::new();
    let start = |script: &str| lab.run("-n 2 --mode fixed --base-delay 700ms --timeout 1").leashed().sh(script).start();
    let runs = ["exit 1", "kill -9 $$", "sleep 300", "kill -SEGV $$"].map(start);
    for run in runs {
        let run = run.finish();
        assert_eq!(run.last()["attempts"], 2);
        assert!(run.elapsed >= Duration::from_millis(700));
        waited(&run);
        run.alone();
    }
    // And a command that cannot be started for the moment (B18 tells more).
    let busy = lab.executable("busy", "#!/bin/sh\n");
    let held = std::fs::File::options().append(true).open(&busy).unwrap();
    let run = lab.run("-n 2 --mode fixed --base-delay 700ms").arg(&busy).finish();
    drop(held);
    run.exited(126).stopped(2, "attempts");
    waited(&run);
}

// B49
#[test]
fn there_is_no_wait_after_the_last_attempt_or_a_permanent_failure() {
    let lab = Lab::new();
    let run = lab.run("-n 2 --mode linear --base-delay 1").command(&["false"]).finish();
    run.exited(1).stopped(2, "attempts");
    assert_eq!(delays(&run), [1000.0]);
    let told = number(run.last(), "waited_ms");
    // A second wait would be of two seconds.
    assert!((1000.0..3000.0).contains(&told), "{told}");
    for (script, code) in [("exit 126", 126), ("exit 127", 127), ("exit 130", 130)] {
        let run = lab.run("-n 9 --mode fixed --base-delay 1000").sh(script).finish();
        run.exited(code).stopped(1, "permanent");
        assert!(number(run.last(), "waited_ms") < 1000.0);
    }
}

// B114
#[test]
fn zero_and_tiny_delays_are_what_they_say() {
    let lab = Lab::new();
    for (options, delay) in [
        ("--base-delay 0", 0.0),
        ("--base-delay 0s", 0.0),
        ("--base-delay 0.0009s", 0.9),
        ("--base-delay 1ns", 0.0),
        ("--max-backoff 0", 0.0),
    ] {
        let run = lab.run(&format!("-n 5 --mode fixed {options}")).command(&["false"]).finish();
        run.exited(1).stopped(5, "attempts");
        assert_eq!(delays(&run), [delay; 4], "{options}");
    }
}

// B112
#[test]
fn every_spelling_of_a_duration_gives_the_same_schedule() {
    let lab = Lab::new();
    let runs = ["0.3", ".3", "300ms", "0.3s", "300000us", "300000000ns", "0.005m"].map(|spelling| {
        let options = format!("-n 3 --mode exponential --jitter none --base-delay {spelling}");
        lab.run(&options).command(&["false"]).start()
    });
    for run in runs {
        assert_eq!(delays(&run.finish()), [300.0, 600.0]);
    }
}

// B119
#[test]
fn what_is_said_of_a_delay_is_what_is_waited() {
    let lab = Lab::new();
    let run = lab.run("-n 4 --base-delay 300ms --seed 3").command(&["false"]).finish();
    waited(&run);
    let said = run.messages();
    for (event, line) in run.of("retry_scheduled").iter().zip(&said) {
        let delay = number(event, "delay_ms");
        assert_eq!(event["delay_source"], "backoff");
        // Never more than it is, three digits at least.
        let text = line.split("retrying in ").nth(1).expect(line);
        let (value, unit) = text.split_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        let millis = if unit.starts_with("ms") { value } else { value * 1000.0 };
        assert!(millis <= delay + 1e-9 && millis >= delay - 1.0, "{line}: {delay}");
    }
}

/// The longest that a wait may take to be noticed, in the best of a few runs.
const AT_ONCE: Duration = Duration::from_millis(50);

#[test]
fn an_exit_is_noticed_at_once_and_waiting_for_it_costs_nothing() {
    // A poller whose interval grows is found out only by a longer run.
    let lab = Lab::new();
    let runs: Vec<_> = (0..4)
        .map(|i| {
            let script = format!("echo $$ >$D/pid{i}; exec sleep 6");
            lab.run("--timeout 60").sh(&script).start()
        })
        .collect();
    let mut late = Vec::new();
    std::thread::scope(|scope| {
        let watch = |(i, run)| {
            let command = lab.await_number(&format!("pid{i}"));
            move || {
                let run: Running = run;
                let before = proc::usage(run.pid);
                assert!(await_end(command, LIMIT));
                let timer = Timer::start();
                run.await_end();
                let late = timer.elapsed();
                let used = proc::usage(run.pid).since(before);
                run.finish().exited(0).stopped(1, "success");
                (late, used)
            }
        };
        let threads: Vec<_> = runs.into_iter().enumerate().map(watch).map(|watch| scope.spawn(watch)).collect();
        for thread in threads {
            let (lateness, used) = thread.join().unwrap();
            assert!(used.cpu < Duration::from_millis(20) && used.waits < 20, "in six idle seconds: {used:?}");
            late.push(lateness);
        }
    });
    assert!(late.iter().min().unwrap() < &AT_ONCE, "{late:?}");
}

#[test]
fn an_idle_delay_costs_nothing() {
    let lab = Lab::new();
    let run = lab.run("-n 2 --mode fixed --base-delay 3 --total-timeout 100").command(&["false"]).start();
    run.events.wait("retry_scheduled", 1);
    wait_until("it waits", || proc::state(run.pid) == Some('S'));
    let before = proc::usage(run.pid);
    run.events.wait("attempt_started", 2);
    let used = proc::usage(run.pid).since(before);
    assert!(used.cpu < Duration::from_millis(20) && used.waits < 10, "in three idle seconds: {used:?}");
    run.finish().exited(1).stopped(2, "attempts");
}
