//! `--idle-timeout`: an attempt that writes nothing for so long.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Lab, PROMPT, Terminal, pause};

#[test]
fn output_on_either_stream_keeps_an_attempt_alive() {
    let lab = Lab::new();
    let script =
        |stream: &str| format!("$| = 1; for (1..40) {{ syswrite {stream}, q(.); select undef, undef, undef, 0.1 }}");
    let (out, err) = (script("STDOUT"), script("STDERR"));
    let runs = [("", &out), ("", &err), ("--stdout final --stderr final", &out), ("--stdout success", &err)]
        .map(|(options, script)| lab.run("-q -n 1 --idle-timeout 2").words(options).perl(script).start());
    for run in runs {
        let run = run.finish();
        run.exited(0).stopped(1, "success");
        assert_eq!(run.text().len() + run.stderr.len(), 40);
        assert!(run.elapsed > Duration::from_secs(4));
    }
}

#[test]
fn silence_ends_an_attempt_and_the_next_one_has_its_own_time() {
    let lab = Lab::new();
    let runs =
        ["echo x; exec sleep 600", "exec sleep 600", "exec >&- 2>&-; exec sleep 600", "echo x >&2; sleep 600 & wait"]
            .map(|script| lab.run("-n 2 --base-delay 0 --idle-timeout 1").sh(script).leashed().start());
    for run in runs {
        let run = run.finish();
        run.exited(124).stopped(2, "attempts").alone();
        assert_eq!(run.each("attempt_finished", "outcome"), ["timed_out", "timed_out"]);
        assert_eq!(run.each("attempt_finished", "timed_out"), [true, true]);
        assert_eq!(run.each("attempt_finished", "rule"), ["default:timeout", "default:timeout"]);
        run.says(&["ended by --idle-timeout 1 s"]);
        assert!(run.elapsed >= Duration::from_secs(2), "{:?}", run.elapsed);
    }
    let run = lab.run("-n 3 --base-delay 0 --idle-timeout 1 --fail-on timeout").sh("exec sleep 600").finish();
    run.exited(124).stopped(1, "permanent");
    let run =
        lab.run("-n 3 --base-delay 0 --idle-timeout 1").sh("[ $RETRYX_RUN_ATTEMPT = 2 ] || exec sleep 600").finish();
    run.exited(0).stopped(2, "success");
}

#[test]
fn the_whole_family_is_ended_and_killed_where_it_does_not_listen() {
    let lab = Lab::new();
    let script = "trap '' TERM; echo $$ >>$D/m; (setsid sh -c 'trap \"\" TERM; sleep 601' &); sleep 602; sleep 603";
    let run = lab.run("-n 2 --base-delay 0 --idle-timeout 1 --kill-after 1").sh(script).leashed().finish();
    run.exited(124).stopped(2, "attempts").alone();
    assert_eq!(lab.lines("m").len(), 2);
    assert!(run.elapsed >= Duration::from_secs(4), "{:?}", run.elapsed);
    // What it says while it is being ended is heard and counts for nothing.
    let script = "trap 'while :; do echo bye; sleep 0.02; done' TERM; while :; do sleep 0.02; done";
    let run = lab.run("-n 1 --idle-timeout 1 --kill-after 1").sh(script).leashed().finish();
    run.exited(124).stopped(1, "attempts").alone();
    assert!(run.text().starts_with("bye\nbye\n"));
}

#[test]
fn an_idle_limit_goes_with_input_and_output_that_are_kept() {
    let lab = Lab::new();
    let script = "cat; [ $RETRYX_RUN_ATTEMPT = 2 ] || { echo half; exec sleep 600; }; echo whole";
    let run = lab
        .run("-n 2 --base-delay 0 --idle-timeout 1 --stdin replay --stdout final")
        .input(b"input\n")
        .sh(script)
        .leashed()
        .finish();
    run.exited(0).stopped(2, "success").alone();
    assert_eq!(run.text(), "input\nwhole\n");
    // Input alone is no sign of life: here the command takes some and says nothing.
    let (read, write) = std::io::pipe().expect("a pipe");
    let run =
        lab.run("-n 1 --idle-timeout 1 --stdin replay").stdin(read).sh("read x; exec sleep 600").leashed().start();
    std::io::Write::write_all(&mut &write, b"x\n").unwrap();
    run.finish().exited(124).alone();
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let lab = Lab::new();
    for zero in ["0", "0s", "0ms"] {
        let run = lab.bare("--idle-timeout").arg(zero).sh("echo >ran").finish();
        run.exited(125).says(&["--idle-timeout", zero, "leave it out"]);
    }
    for junk in ["", "x", "-1", "1x", "1e3"] {
        lab.bare("")
            .arg(format!("--idle-timeout={junk}"))
            .sh("echo >ran")
            .finish()
            .exited(125)
            .says(&["--idle-timeout"]);
    }
    let run = lab.bare("").env("RETRYX_IDLE_TIMEOUT", "0").sh("echo >ran").finish();
    run.exited(125).says(&["RETRYX_IDLE_TIMEOUT"]);
    assert!(!lab.path("ran").exists());
    let run = lab.run("-n 1").env("RETRYX_IDLE_TIMEOUT", "1").sh("exec sleep 600").finish();
    run.exited(124).says(&["--idle-timeout 1 s"]);
    lab.run("--idle-timeout 99999999999h").sh("echo x").finish().exited(0);
}

#[test]
fn other_limits_go_beside_it() {
    let lab = Lab::new();
    let alive = "while :; do echo x; sleep 0.05; done";
    for (options, script, says) in [
        ("--idle-timeout 600 --timeout 1", alive, "ended by --timeout 1 s"),
        ("--idle-timeout 600 --total-timeout 1", alive, "ended by --total-timeout 1 s"),
        ("--idle-timeout 600 --timeout 1", "sleep 600", "ended by --timeout 1 s"),
        ("--idle-timeout 1 --timeout 600 --total-timeout 600", "sleep 600", "ended by --idle-timeout 1 s"),
    ] {
        let run = lab.run("-n 1").words(options).sh(script).leashed().finish();
        run.exited(124).says(&[says]).alone();
    }
}

// What the command wrote while retryx was held up was written in time.
#[test]
fn a_retryx_that_was_held_up_does_not_blame_the_command() {
    let lab = Lab::new();
    let script = "while :; do echo x; echo x >>$D/m; [ -e $D/end ] && exit 7; sleep 0.02; done";
    let run = lab.run("-n 1 --idle-timeout 1").sh(script).start();
    lab.await_lines("m", 2);
    for _ in 0..2 {
        run.signal(Signal::STOP);
        pause(Duration::from_millis(1500));
        run.signal(Signal::CONT);
        pause(Duration::from_millis(100));
    }
    lab.write("end", "");
    run.finish().exited(7).stopped(1, "attempts");
}

#[test]
fn time_between_suspending_and_fg_is_no_silence() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let script = "open F, q(>>), qq($ENV{D}/m); print F qq(x\\n); close F; $| = 1; \
                  until (-e qq($ENV{D}/end)) { print q(.); select undef, undef, undef, 0.05 } exit 7";
    terminal.line(&format!("retryx -n 1 --idle-timeout 3 -- perl -e '{script}'"));
    lab.await_lines("m", 1);
    terminal.keys("\x1a");
    terminal.wait_for("Stopped");
    terminal.wait_for(PROMPT);
    pause(Duration::from_millis(4500));
    terminal.line("fg");
    terminal.await_job();
    terminal.wait_for("......");
    lab.write("end", "");
    terminal.wait_for(PROMPT);
    terminal.status_is(7);
}

#[test]
fn what_is_written_to_a_terminal_counts_too() {
    let lab = Lab::new();
    let script = "$| = 1; for (1..30) { print q(.); select undef, undef, undef, 0.1 } print q(done); sleep 600";
    let words = ["retryx", "-n", "1", "--idle-timeout", "2", "--", "perl", "-e", script];
    let mut terminal = Terminal::start(&lab, &words);
    let shown = terminal.wait_for("ended by --idle-timeout 2 s");
    assert!(shown.contains("..............................done"), "{shown}");
    assert_eq!(terminal.finish().code(), Some(124));
}
