//! `--stdout` and `--stderr` `final` and `success`: whose output is written.

use rustix::process::Signal;

use crate::support::{Lab, Terminal};

/// Writes `BAD` and fails, then `GOOD` and succeeds.
const FLAKY: &str = "if [ $RETRYX_RUN_ATTEMPT = 1 ]; then echo BAD; echo bad >&2; exit 1; fi; echo GOOD; echo good >&2";

// B24
#[test]
fn only_the_last_attempts_bytes_are_written() {
    let lab = Lab::new();
    for (options, out) in [
        ("", "BAD\nGOOD\n"),
        ("--stdout each", "BAD\nGOOD\n"),
        ("--stdout final", "GOOD\n"),
        ("--stdout success", "GOOD\n"),
    ] {
        let run = lab.run(&format!("-n 3 --base-delay 0 {options}")).sh(FLAKY).finish();
        run.exited(0).stopped(2, "success");
        assert_eq!(run.text(), out, "{options}");
    }
    let run = lab.run("-q -n 3 --base-delay 0 --stderr final").sh(FLAKY).finish();
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("BAD\nGOOD\n", "good\n"));
}

#[test]
fn a_run_that_fails_ends_with_the_last_output_or_with_none() {
    let lab = Lab::new();
    let fail = |kind: &str| {
        lab.run(&format!("-q -n 2 --base-delay 0 --stdout {kind}")).sh("echo $RETRYX_RUN_ATTEMPT; exit 7").finish()
    };
    let run = fail("final");
    run.exited(7);
    assert_eq!(run.text(), "2\n");
    let run = fail("success");
    run.exited(7);
    assert_eq!(run.text(), "");
}

// B25
#[test]
fn the_bytes_are_exact_whatever_the_size() {
    let lab = Lab::new();
    for (first, second) in [(204_800, 307_200), (0, 1), (20_000_000, 10), (10, 20_000_000)] {
        lab.tool("sh", &["-c", &format!("head -c {first} /dev/urandom > 1; head -c {second} /dev/urandom > 2")]);
        for target in ["| cat > got", "> got"] {
            let script = format!(
                "retryx -q --stdout final -n 2 --base-delay 0 -- sh -c 'cat $RETRYX_RUN_ATTEMPT; test $RETRYX_RUN_ATTEMPT = 2' {target}; cmp got 2"
            );
            let run = lab.shell(&script).finish();
            run.exited(0);
        }
    }
    assert_eq!(lab.tool("sh", &["-c", "ls \"$TMPDIR\""]), "");
}

// B29 in the held mode
#[test]
fn streams_that_are_one_file_keep_their_order() {
    let lab = Lab::new();
    let lines = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
    for _ in 0..20 {
        let run = lab.shell(&format!("retryx --stdout final -- sh -c '{lines}' > merged 2>&1; cat merged")).finish();
        assert_eq!(run.text(), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
    }
}

// B32
#[test]
fn no_tail_is_lost_where_the_command_ends_right_after_a_big_write() {
    let lab = Lab::new();
    for _ in 0..10 {
        let run = lab.shell("retryx --stdout final -- head -c 3000000 /dev/urandom | wc -c").finish();
        assert_eq!(run.text().trim(), "3000000");
    }
}

// B5 in the held mode
#[test]
fn a_background_process_that_holds_the_stream_holds_nobody_up() {
    let lab = Lab::new();
    let run = lab.run("--stdout final").sh("echo now; setsid sleep 600 & echo $! > background").leashed().finish();
    run.exited(0);
    assert_eq!(run.text(), "now\n");
    assert!(run.left_somebody(), "the background process was ended");
    lab.tool("sh", &["-c", "kill $(cat background)"]);
    run.await_alone();
}

#[test]
fn nothing_is_written_of_an_attempt_that_a_passed_on_signal_ended() {
    let lab = Lab::new();
    let run = lab.run("--stdout final").sh("echo half; touch ready; sleep 600").start();
    lab.await_file("ready");
    run.signal(Signal::TERM);
    let run = run.finish();
    run.died_of(Signal::TERM).stopped(1, "interrupted");
    assert_eq!(run.text(), "");
}

#[test]
fn a_reader_that_goes_away_ends_it_as_it_would_end_the_command() {
    let lab = Lab::new();
    let run = lab.bash("retryx --stdout final -- seq 1000000 | head -n 1; echo ${PIPESTATUS[0]}").finish();
    assert_eq!(run.text(), "1\n141\n");
}

#[test]
fn a_signal_ends_the_writing_to_a_reader_that_does_not_read() {
    let lab = Lab::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let run = lab.run("--stdout final").sh("head -c 1000000 /dev/zero; touch over").stdout(writer).start();
    lab.await_file("over");
    run.events.wait("attempt_finished", 1);
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
    drop(reader);
}

#[test]
fn output_that_cannot_be_kept_is_never_taken_for_whole() {
    let lab = Lab::new();
    let script = "ulimit -f 10240; retryx --stdout final -- sh -c 'ulimit -f unlimited 2>/dev/null; head -c 20000000 /dev/zero; exit 0' | wc -c; echo ${PIPESTATUS[0]}";
    let run = lab.bash(script).finish();
    run.says(&["could not be kept"]);
    assert_eq!(run.text(), "0\n125\n");
    // A full disk behind standard output is an error too, never a success.
    if std::path::Path::new("/dev/full").exists() {
        let run = lab.shell("retryx --stdout final -- echo x > /dev/full").finish();
        run.exited(125).says(&["cannot be written"]);
    }
}

#[test]
fn a_closed_stream_stays_closed() {
    let lab = Lab::new();
    let run = lab.shell("echo hi | retryx -n 1 --stdout final -- cat >&-").finish();
    run.exited(1);
}

#[test]
fn a_terminal_stays_a_terminal_of_the_same_size_and_exact_bytes() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let out = terminal
        .run("stty rows 30 cols 99; retryx --stdout final -- sh -c 'test -t 1 && echo is a tty && stty size <&1'");
    assert!(out.contains("\nis a tty") && out.contains("\n30 99"), "{out}");
}

#[test]
fn a_command_that_handles_the_signal_and_succeeds_has_its_output_written() {
    let lab = Lab::new();
    for kind in ["final", "success"] {
        let script = "trap 'echo bye; exit 0' TERM; echo data; touch ready; while :; do sleep 0.01; done";
        let run = lab.run(&format!("--stdout {kind}")).sh(script).start();
        lab.await_file("ready");
        run.signal(Signal::TERM);
        let run = run.finish();
        run.exited(0).stopped(1, "success");
        assert_eq!(run.text(), "data\nbye\n", "{kind}");
        lab.tool("rm", &["ready"]);
    }
}

#[test]
fn the_limit_on_everything_bounds_the_writing_too() {
    let lab = Lab::new();
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    let run = lab.run("--total-timeout 1 --kill-after 1 --stdout final").stdout(writer);
    let run = run.sh("head -c 2000000 /dev/zero").finish();
    run.exited(124).stopped(1, "total_timeout").says(&["the rest of the output is lost"]);
    drop(reader);
}
