//! What a person reads on standard error.

use std::fs::File;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::support::{Lab, bytes};

// B123
#[test]
fn one_event_is_one_line_however_wide_the_screen() {
    let lab = Lab::new();
    for columns in ["20", "1", "0", "x"] {
        let run = lab.bare("-n 3 --mode fixed --base-delay 10ms").env("COLUMNS", columns).command(&["false"]).finish();
        run.exited(1);
        assert_eq!(
            run.messages(),
            [
                "attempt 1 of 3 failed: exit status 1 (transient); retrying in 10 ms",
                "attempt 2 of 3 failed: exit status 1 (transient); retrying in 10 ms",
                "giving up after 3 attempts: exit status 1",
            ]
        );
    }
}

#[test]
fn success_at_once_says_nothing() {
    let lab = Lab::new();
    for options in ["", "--timeout 100 --deadline 100", "--mode google", "--stagger 1ms", "-n unlimited"] {
        let run = lab.bare(options).command(&["true"]).finish();
        run.exited(0);
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    }
}

#[test]
fn quiet_says_only_what_retryx_itself_could_not_do() {
    let lab = Lab::new();
    for (options, script, code) in
        [("-n 3 --base-delay 0", "exit 5", 5), ("-n 1 --timeout 0.3", "sleep 300", 124), ("", "exit 127", 127)]
    {
        let run = lab.bare("-q").words(options).sh(script).finish();
        run.exited(code);
        assert_eq!(run.stderr, "");
    }
    let run = lab.bare("-q ./no-such").finish();
    run.exited(127);
    assert_eq!(run.messages().len(), 1);
    lab.bare("-q --timeout x true").finish().exited(125).says(&["--timeout"]);
}

#[test]
fn verbose_shows_how_each_delay_came_about() {
    let lab = Lab::new();
    for (options, parts) in [
        ("--mode fixed --base-delay 10ms", &["delay before attempt 2: 10 ms = 10 ms"][..]),
        ("--mode linear --base-delay 10ms", &["10 ms × 1"]),
        ("--mode exponential --base-delay 10ms --jitter none", &["min(1h, 10 ms × 2^0)"]),
        ("--mode exponential --base-delay 10ms --factor 3", &["10 ms × 3^0", "0."]),
        ("--base-delay 10ms", &["min(20 s, 10 ms × 2^0)", "0."]),
        ("--mode google --base-delay 10ms --max-backoff 20ms", &["min(20 ms, 10 ms × 2^0 + 0."]),
        ("--mode decorrelated --base-delay 10ms", &["between 10 ms and 3 × the delay before"]),
        ("--mode fixed --base-delay 0 --min-delay 5ms", &["at least 5 ms"]),
    ] {
        let run = lab.bare("-v -n 2").words(options).command(&["false"]).finish();
        run.exited(1).says(parts).says(&["attempt 1 of 2: exit status 1 after", "rule default:exit"]);
        run.messages();
    }
    let run = lab.bare("-v true").finish();
    run.says(&["succeeded on attempt 1 of 3"]);
    assert!(lab.bare("-vv true").finish().messages().len() > run.messages().len());
}

#[test]
fn attempts_that_failed_in_different_ways_are_all_listed_at_the_end() {
    let lab = Lab::new();
    let script = "case $RETRYX_RUN_ATTEMPT in 1|2) exit 7;; 3) kill -9 $$;; 4) sleep 300;; esac; exit 75";
    let run = lab.bare("-n 5 --base-delay 0 --timeout 2").sh(script).finish();
    run.exited(75);
    let last = run.messages().pop().unwrap();
    for part in [
        "attempts 1-2: exit status 7",
        "attempt 3: killed by SIGKILL",
        "attempt 4: ended by --timeout 2 s",
        "attempt 5: exit status 75",
    ] {
        assert!(last.contains(part), "{last}");
    }
}

#[test]
fn names_with_control_characters_break_no_line() {
    let lab = Lab::new();
    for name in [&b"no\nsuch\x1b[31m"[..], b"no\rsuch", b"no\xffsuch\x07", b"\x9b31m"] {
        let run = lab.bare("-vv").arg("--").arg(bytes(name)).finish();
        run.exited(127);
        for line in run.messages() {
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
    let run = lab.bare("--timeout").arg("5\n\x1b[31mx").arg("true").finish();
    run.exited(125);
    assert_eq!(run.messages().len(), 1);
}

#[test]
fn trouble_with_standard_error_never_breaks_the_job() {
    let lab = Lab::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    lab.run("-n 3 --base-delay 0 -vv").stderr(full()).sh("exit 4").finish().exited(4).stopped(3, "attempts");
    // A pipe that is full and non-blocking, as a command may leave it.
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    fcntl_setfl(&write, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[b'x'; 4096]).is_ok() {}
    lab.run("-n 2 --base-delay 0").stderr(write).sh("exit 4").finish().exited(4).stopped(2, "attempts");
}

#[test]
fn a_reader_of_messages_that_does_not_read_holds_no_signal_up() {
    // As any program that writes there, retryx may wait; but not so that only KILL helps.
    let lab = Lab::new();
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let size = rustix::pipe::fcntl_getpipe_size(&write).unwrap();
    rustix::io::write(&write, &vec![b'x'; size]).unwrap();
    let run = lab.run("-n 2 --mode fixed --base-delay 1000").stderr(write).sh("exit 4").start();
    run.events.wait("attempt_finished", 1);
    run.signal(Signal::TERM);
    run.finish().died_of_or_exited(Signal::TERM, 4);
}

#[test]
fn a_limit_on_the_size_of_files_never_breaks_the_job() {
    let lab = Lab::new();
    for script in [
        "ulimit -f 0; exec retryx -n 3 --base-delay 0 --events $D/e -- false",
        "ulimit -f 0; exec retryx -n 3 --base-delay 0 -- false 2>$D/err",
    ] {
        let run = lab.shell(script).finish();
        run.exited(1);
    }
}

#[test]
fn messages_never_carry_colours() {
    let lab = Lab::new();
    for (name, value) in [("CLICOLOR_FORCE", "1"), ("FORCE_COLOR", "1"), ("TERM", "xterm-256color")] {
        for words in ["-n 2 --base-delay 0 -vv false", "--nonsense", "--help", "-h"] {
            let run = lab.bare(words).env(name, value).finish();
            assert!(!run.stderr.contains('\x1b') && !run.text().contains('\x1b'), "{words}");
        }
    }
}

#[test]
fn a_signal_that_ended_the_run_is_named() {
    let lab = Lab::new();
    let run = lab.run("-n 3").sh("kill -TERM $PPID; exec sleep 300").finish();
    run.died_of(Signal::TERM).says(&["SIGTERM"]);
    assert_eq!(run.last()["reason"], "interrupted");
}
