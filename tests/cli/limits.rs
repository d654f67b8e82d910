//! The time limits: which strikes when, what it sends, and which exit status it gives.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{LIMIT, Lab, number, numbers};

/// Notes each of some signals in `$D/$1` and goes on.
const STUBBORN: &str = r#"
    my $file = "$ENV{D}/$ENV{M}";
    sub note { open my $f, '>>', $file; print $f "$_[0]\n"; close $f }
    for my $s (qw(INT TERM HUP USR1 NUM35)) { $SIG{$s} = sub { note($s) } }
    note('up');
    sleep 300 while 1;
"#;

// B59: one status for every way in which a time limit ends an attempt.
#[test]
fn a_time_limit_gives_124_however_the_command_dies() {
    let lab = Lab::new();
    let mut runs = Vec::new();
    for limit in ["--timeout 1", "--total-timeout 1"] {
        for (script, cause) in [
            ("sleep 300", "it dies of TERM"),
            ("trap '' TERM; sleep 300; sleep 301", "it ignores TERM"),
            ("trap 'exit 0' TERM; sleep 300 & wait", "it exits 0 on TERM"),
            ("trap 'exit 42' TERM; sleep 300 & wait", "it exits 42 on TERM"),
            ("trap 'exit 127' TERM; sleep 300 & wait", "it exits 127 on TERM"),
            ("trap 'kill -9 $$' TERM; sleep 300 & wait", "it dies of KILL"),
        ] {
            let options = format!("-n 2 --base-delay 0 --kill-after 1 {limit}");
            runs.push((limit, cause, lab.run(&options).leashed().sh(script).start()));
        }
    }
    for (limit, cause, run) in runs {
        println!("{limit}, {cause}");
        let run = run.finish();
        run.exited(124).alone();
        match limit {
            "--timeout 1" => run.stopped(2, "attempts"),
            _ => run.stopped(1, "total_timeout"),
        };
        for event in run.of("attempt_finished") {
            assert_eq!(event["outcome"], "timed_out");
            assert_eq!(event["timed_out"], true);
            assert_eq!((&event["class"], &event["rule"]), (&"transient".into(), &"default:timeout".into()));
            assert!(event["exit_code"].is_null() && event["signal"].is_null());
            // The clock of a limit on everything runs before the attempt does.
            assert!(limit != "--timeout 1" || number(&event, "duration_ms") >= 1000.0);
        }
        assert!(number(&run.of("stopped")[0], "elapsed_ms") >= 1000.0);
        let (name, _) = limit.split_once(' ').unwrap();
        run.says(&[name]);
    }
}

#[test]
fn the_kill_signal_is_the_first_that_a_limit_sends() {
    let lab = Lab::new();
    let start = |(given, noted): (&'static str, &'static [&'static str])| {
        let options = format!("-n 1 --timeout 3 --kill-after 1 {given}");
        let file = format!("m{}", given.replace(' ', ""));
        let run = lab.run(&options).leashed().env("M", &file).perl(STUBBORN).start();
        (run, file, noted)
    };
    let cases: [(&str, &[&str]); 9] = [
        ("", &["up", "TERM"]),
        ("--kill-signal TERM", &["up", "TERM"]),
        ("--kill-signal INT", &["up", "INT"]),
        ("--kill-signal sighup", &["up", "HUP"]),
        ("--kill-signal 10", &["up", "USR1"]),
        ("--kill-signal RTMIN+1", &["up", "NUM35"]),
        ("--kill-signal KILL", &["up"]),
        ("--kill-signal 9", &["up"]),
        ("--kill-after 0", &["up"]),
    ];
    let runs: Vec<_> = cases.into_iter().map(start).collect();
    for (run, file, noted) in runs {
        run.finish().exited(124).stopped(1, "attempts").alone();
        assert_eq!(lab.lines(&file), noted, "{file}");
    }
}

#[test]
fn a_stopped_command_is_continued_so_that_it_can_act_on_the_signal() {
    let lab = Lab::new();
    let script = "$SIG{TERM} = sub { open my $f, '>', \"$ENV{D}/m\"; exit 0 }; kill STOP => $$; sleep 300 while 1";
    let run = lab.run("-n 1 --timeout 2 --kill-after 10000").leashed().perl(script).finish();
    run.exited(124).alone();
    assert!(lab.path("m").exists());
    assert!(run.elapsed < LIMIT);
}

#[test]
fn kill_follows_after_ten_seconds_where_nothing_else_is_said() {
    let lab = Lab::new();
    let run = lab.run("-n 1 --timeout 0.5").leashed().sh("trap '' TERM; sleep 300; sleep 301").finish();
    run.exited(124).alone();
    assert!(run.elapsed >= Duration::from_millis(10_500), "{:?}", run.elapsed);
}

// B35, as `--total-timeout`.
#[test]
fn the_total_timeout_ends_a_running_attempt() {
    let lab = Lab::new();
    let run = lab.run("--total-timeout 2 -n 5").leashed().command(&["sleep", "300"]).finish();
    run.exited(124).stopped(1, "total_timeout").says(&["--total-timeout 2 s"]).alone();
    assert!(run.elapsed >= Duration::from_secs(2));
}

// B35, second part.
#[test]
fn no_attempt_starts_after_the_deadline() {
    let lab = Lab::new();
    let script = "echo x >>$D/m; sleep 0.7; exit 5";
    let run = lab.run("--deadline 2 -n unlimited --base-delay 0").sh(script).finish();
    run.exited(5).says(&["--deadline 2 s"]);
    assert_eq!(run.last()["reason"], "deadline");
    // Starts at 0, 0.7 and 1.4 s; a slow machine makes fewer.
    assert!((1..=3).contains(&lab.lines("m").len()), "{:?}", run.events);
}

#[test]
fn a_running_attempt_is_left_to_finish_after_the_deadline() {
    let lab = Lab::new();
    let run = lab.run("--deadline 0.5 -n 5").sh("sleep 1.5; echo done").finish();
    run.exited(0).stopped(1, "success");
    assert_eq!(run.text(), "done\n");
    let run = lab.run("--deadline 0.5 -n 5 --base-delay 0").sh("sleep 1; exit 6").finish();
    run.exited(6).stopped(1, "deadline").says(&["--deadline"]);
}

#[test]
fn a_delay_that_would_pass_a_limit_is_not_slept() {
    let lab = Lab::new();
    for (limit, reason) in [("--deadline 500", "deadline"), ("--total-timeout 500", "total_timeout")] {
        let run = lab.run(&format!("{limit} -n 5 --mode fixed --base-delay 1000")).sh("exit 7").finish();
        run.exited(7).stopped(1, reason).says(&[limit.split_once(' ').unwrap().0, "would pass"]);
        assert!(number(run.last(), "waited_ms") < 1000.0);
        assert!(run.elapsed < Duration::from_secs(500));
    }
}

#[test]
fn googles_mode_stops_early_rather_than_wait_past_its_deadline() {
    let lab = Lab::new();
    let run = lab.run("--mode google --deadline 5").command(&["false"]).finish();
    run.exited(1).says(&["--deadline 5 s"]);
    assert_eq!(run.last()["reason"], "deadline");
    assert!(run.last()["attempts"].as_u64().unwrap() >= 2);
    let delays = numbers(&run.of("retry_scheduled"), "delay_ms");
    for (i, delay) in delays.iter().enumerate() {
        let least = [1000.0, 2000.0][i];
        assert!(*delay > least && *delay <= least + 1000.0, "{delays:?}");
    }
    assert!(delays.iter().sum::<f64>() <= 5000.0);
    assert!(run.elapsed.as_secs_f64() * 1000.0 >= delays.iter().sum());
}

// B36, as `--timeout` and `--total-timeout`; times doubled for slow machines.
#[test]
fn the_limit_on_an_attempt_and_the_limit_on_all_work_together() {
    let lab = Lab::new();
    let options = "--timeout 2 --total-timeout 6.2 --mode exponential --base-delay 200ms --jitter none -n 10";
    let run = lab.run(options).leashed().command(&["sleep", "300"]).finish();
    run.exited(124).stopped(3, "total_timeout").says(&["--timeout", "--total-timeout"]).alone();
    assert!(run.elapsed >= Duration::from_millis(6200));
    assert_eq!(numbers(&run.of("retry_scheduled"), "delay_ms"), [200.0, 400.0]);
    let durations = numbers(&run.of("attempt_finished"), "duration_ms");
    assert!(durations[0] >= 2000.0 && durations[1] >= 2000.0 && durations[2] < 2000.0, "{durations:?}");
}

// B47
#[test]
fn a_hung_attempt_is_ended_and_tried_again() {
    let lab = Lab::new();
    let script = "echo x >>$D/m; [ $(wc -l <$D/m) = 2 ] && { echo ok; exit 0; }; sleep 300";
    let run = lab.run("-n 3 --timeout 2 --base-delay 100ms --jitter none").leashed().sh(script).finish();
    run.exited(0).stopped(2, "success").alone();
    assert_eq!(run.text(), "ok\n");
    assert!(run.elapsed >= Duration::from_millis(2100));
}

#[test]
fn a_signal_in_the_grace_of_a_limit_changes_nothing_but_what_follows() {
    let lab = Lab::new();
    let run = lab.run("-n 5 --base-delay 0 --timeout 2 --kill-after 2").leashed().env("M", "m").perl(STUBBORN).start();
    lab.await_lines("m", 2);
    run.signal(Signal::INT);
    lab.await_lines("m", 3);
    run.finish().exited(124).stopped(1, "interrupted").alone();
    assert_eq!(lab.lines("m"), ["up", "TERM", "INT"]);
}
