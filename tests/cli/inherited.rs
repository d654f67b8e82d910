//! As found, so given: whatever the caller set up, the command finds it as without
//! retryx, in every attempt, and retryx itself works with it.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::support::{Lab, socket_pair};

/// Signals that a caller may have ignored, and blocked.
type Found = (&'static [Signal], &'static [Signal]);

const ALL: [Signal; 14] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::PIPE,
    Signal::ALARM,
    Signal::TERM,
    Signal::CHILD,
    Signal::CONT,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
    Signal::WINCH,
];

const FOUND: [Found; 11] = [
    (&[], &[]),
    (&[Signal::PIPE], &[]),
    (&[Signal::CHILD], &[]),
    (&[Signal::HUP], &[]),
    (&[Signal::INT, Signal::QUIT], &[]),
    (&[Signal::TERM, Signal::USR1, Signal::TSTP], &[]),
    (&[], &[Signal::USR1]),
    (&[], &[Signal::CHILD]),
    (&[], &[Signal::TERM, Signal::INT, Signal::PIPE]),
    (&[Signal::CHILD, Signal::PIPE], &[Signal::CHILD, Signal::USR2]),
    (&ALL, &ALL),
];

#[test]
fn the_command_finds_its_surroundings_as_without_retryx() {
    let lab = Lab::new();
    let status = "^(Umask|Groups|Uid|Gid|SigBlk|SigIgn|SigCgt|ShdPnd|Cap...|CapBnd|NoNewPrivs|Seccomp|Cpus_allowed|Mems_allowed):";
    for command in [
        &["grep", "-E", status, "/proc/self/status"][..],
        &["cat", "/proc/self/limits"],
        &["cat", "/proc/self/oom_score_adj", "/proc/self/timerslack_ns", "/proc/self/personality"],
        &["pwd"],
        &["nice"],
        &["env"],
    ] {
        for (ignored, blocked) in FOUND {
            let direct = lab.program(command[0]).args(&command[1..]).ignoring(ignored).blocking(blocked).finish();
            for options in ["", "--timeout 1000 --base-delay 0 -n 2"] {
                let run = lab.run(options).ignoring(ignored).blocking(blocked).command(command).finish();
                run.exited(direct.status.code().unwrap());
                let facts = |line: &&str| !line.starts_with("RETRYX_RUN_");
                let found: Vec<String> = run.text().lines().filter(facts).map(str::to_owned).collect();
                let expected: Vec<String> = direct.text().lines().map(str::to_owned).collect();
                assert_eq!(found, expected, "{command:?} ignoring {ignored:?}, blocking {blocked:?}");
            }
        }
    }
}

#[test]
fn retryx_works_with_whatever_signals_it_was_given() {
    let lab = Lab::new();
    let mut limited = Vec::new();
    for (number, (ignored, blocked)) in FOUND.into_iter().enumerate() {
        let run = |options| lab.run(options).ignoring(ignored).blocking(blocked).leashed();
        let script = format!("echo >>$D/m{number}; [ $RETRYX_RUN_ATTEMPT = 3 ] || exit 5");
        run("-n 4 --base-delay 0").sh(&script).finish().exited(0).stopped(3, "success");
        assert_eq!(lab.lines(&format!("m{number}")).len(), 3);
        run("-n 2 --base-delay 0").sh("kill -9 $$").finish().died_of(Signal::KILL).stopped(2, "attempts");
        limited.push(run("-n 1 --timeout 0.5 --kill-after 1").command(&["sleep", "300"]).start());
    }
    for run in limited {
        run.finish().exited(124).alone();
    }
}

#[test]
fn a_death_by_signal_is_reported_even_where_the_caller_ignored_and_blocked_it() {
    let lab = Lab::new();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::QUIT, "QUIT")]
    {
        // The command takes back what it was given, and dies.
        let script = format!(
            "use POSIX; $SIG{{{name}}} = 'DEFAULT'; \
             sigprocmask(SIG_UNBLOCK, POSIX::SigSet->new(SIG{name})); kill {name} => $$; exit 1"
        );
        let run = lab.run("-n 2 --base-delay 0").ignoring(&[signal]).blocking(&[signal]).perl(&script).finish();
        run.died_of(signal).stopped(2, "attempts");
    }
}

#[test]
fn a_signal_that_the_caller_ignored_ends_nothing() {
    let lab = Lab::new();
    let runs = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].map(|signal| {
        let run = lab.run("-n 2 --mode fixed --base-delay 1").ignoring(&[signal]).sh("exit 6").start();
        run.events.wait("retry_scheduled", 1);
        run.signal(signal);
        run
    });
    for run in runs {
        run.finish().exited(6).stopped(2, "attempts");
    }
}

#[test]
fn a_signal_that_the_caller_blocked_still_reaches_retryx_and_the_command() {
    let lab = Lab::new();
    // It waits in the command until the command lets it through.
    let script = r#"
        use POSIX; $SIG{USR1} = sub { exit 42 };
        open my $f, '>', "$ENV{D}/ready"; close $f;
        select undef, undef, undef, 0.01 until -e "$ENV{D}/end";
        sigprocmask(SIG_UNBLOCK, POSIX::SigSet->new(SIGUSR1));
        select undef, undef, undef, 1;
        exit 1;
    "#;
    let run = lab.run("-n 1").blocking(&[Signal::USR1]).perl(script).start();
    lab.await_file("ready");
    run.signal(Signal::USR1);
    // Passed on once retryx has read it from its own pending ones.
    crate::support::wait_until("it was passed on", || {
        let command = crate::support::proc::children(run.pid)[0];
        let status = std::fs::read_to_string(format!("/proc/{command}/status")).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap().trim();
        u64::from_str_radix(pending, 16).unwrap() & (1 << (libc::SIGUSR1 - 1)) != 0
    });
    lab.write("end", "");
    run.finish().exited(42);
    // And one that ends a run ends a delay.
    let run = lab.run("-n 2 --mode fixed --base-delay 1000").blocking(&[Signal::TERM]).command(&["false"]).start();
    run.events.wait("retry_scheduled", 1);
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
}

/// Says which of the standard descriptors are open, in a file of its own.
const OPEN: &str = "for i in 0 1 2; do [ -e /proc/self/fd/$i ] && s=\"$s$i\"; done; \
                    [ $RETRYX_RUN_ATTEMPT = 1 ]; ls -l /proc/self/fd >/dev/null 2>&1; echo \"open $s\" >>$D/m; exit 3";

#[test]
fn closed_descriptors_stay_closed_in_every_attempt() {
    let lab = Lab::new();
    for closed in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
        for options in ["-n 2 --base-delay 0", "-n 2 --base-delay 0 --timeout 1000", "-n 2 --base-delay 0 -vv"] {
            let run = lab.run(options).closing(closed).sh(OPEN).finish();
            run.exited(3).stopped(2, "attempts");
            let open: String = ["0", "1", "2"].into_iter().filter(|n| !closed.contains(&n.parse().unwrap())).collect();
            assert_eq!(lab.lines("m"), [format!("open {open}"), format!("open {open}")]);
            std::fs::remove_file(lab.path("m")).unwrap();
            assert!(closed.contains(&2) != run.stderr.contains("retryx: "));
            assert!(run.stdout.is_empty());
        }
    }
}

#[test]
fn a_program_that_needs_a_closed_descriptor_fails_as_without_retryx() {
    let lab = Lab::new();
    for (script, code) in [
        ("echo hi | retryx -n 3 --base-delay 0 -- cat >&-", 1),
        ("retryx -n 3 --base-delay 0 -- cat <&-", 1),
        ("retryx -n 3 --base-delay 0 -- sh -c 'echo x >&2' 2>&-", 2),
        ("retryx --stdin null -- cat <&-", 0),
        ("retryx -- true <&- >&- 2>&-", 0),
    ] {
        let direct = lab.shell(&script.replace("retryx -n 3 --base-delay 0 --", "").replace("retryx --", "")).finish();
        let run = lab.shell(script).finish();
        if !script.contains("--stdin") {
            assert_eq!(run.status.code(), direct.status.code(), "{script}");
        }
        run.exited(code);
    }
}

#[test]
fn retryx_leaks_no_descriptor_of_its_own() {
    let lab = Lab::new();
    // The listing holds one for the folder itself.
    let listing = "set -- /proc/self/fd/*; echo ${#} >>$D/m; for i in 3 4 5 6 7 8; do [ -e /proc/self/fd/$i ] && echo leaked $i >>$D/m; done; exit 1";
    let options = "-n 2 --base-delay 0 --timeout 100 --total-timeout 1000 --stdin null";
    for run in [lab.run(options), lab.run("-n 2 --base-delay 0").input(b"unread")] {
        let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        run.stdout(write).sh(listing).finish().exited(1).stopped(2, "attempts");
        assert!(!lab.read("m").contains("leaked"), "{}", lab.read("m"));
    }
}

#[test]
fn descriptors_that_the_caller_gave_are_given_on() {
    let lab = Lab::new();
    let kept: OwnedFd = File::create(lab.path("kept")).unwrap().into();
    let script = "echo $RETRYX_RUN_ATTEMPT >&7; exit 1";
    lab.run("-n 3 --base-delay 0").giving(&kept, 7).sh(script).finish().exited(1).stopped(3, "attempts");
    assert_eq!(lab.lines("kept"), ["1", "2", "3"]);
}

/// Notes the status flags of the three streams, and makes them all non-blocking.
const NONBLOCKING: &str = r#"
    use Fcntl; open my $m, '>>', "$ENV{D}/m";
    for my $h (*STDIN, *STDOUT, *STDERR) {
        my $flags = fcntl $h, F_GETFL, 0;
        printf $m "%o ", $flags;
        fcntl $h, F_SETFL, $flags | O_NONBLOCK;
    }
    print $m "\n"; close $m; exit 1;
"#;

#[test]
fn status_flags_are_as_found_in_every_attempt_and_as_left_after_the_last() {
    let lab = Lab::new();
    let append = || File::options().append(true).create(true).open(lab.path("appended")).unwrap().into();
    let (_far, socket) = socket_pair();
    let (_reader, pipe) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    for (stream, extra) in [
        (pipe, OFlags::empty()),
        (pipe_with(PipeFlags::CLOEXEC).unwrap().1, OFlags::NONBLOCK),
        (append(), OFlags::empty()),
        (socket, OFlags::empty()),
    ] {
        let found = fcntl_getfl(&stream).unwrap() | extra;
        fcntl_setfl(&stream, found).unwrap();
        let copy = || stream.try_clone().unwrap();
        let run = lab.run("-n 3 --base-delay 0 --stdin inherit -q").stdout(copy()).stderr(copy()).perl(NONBLOCKING);
        let run = run.finish();
        let lines = lab.lines("m");
        std::fs::remove_file(lab.path("m")).unwrap();
        // A pipe whose reader is gone ends the run after the first attempt.
        if run.last()["reason"] == "attempts" {
            assert_eq!(lines.len(), 3);
        }
        assert!(lines.iter().all(|line| *line == lines[0]), "{lines:?}");
        let seen = lines[0].split(' ').nth(1).unwrap();
        assert_eq!(u32::from_str_radix(seen, 8).unwrap() & !0o100_000, found.bits() & !0o100_000);
        assert!(fcntl_getfl(&stream).unwrap().contains(OFlags::NONBLOCK), "what the last attempt did stays");
    }
}

#[test]
fn a_standard_error_that_an_attempt_made_non_blocking_or_lost_its_reader_harms_nothing() {
    let lab = Lab::new();
    for ignored in [&[][..], &[Signal::PIPE]] {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(read);
        let run = lab.run("-n 3 --base-delay 0 -vv").ignoring(ignored).stderr(write).sh("exit 3").finish();
        run.exited(3).stopped(3, "attempts");
    }
}
