//! Signals that somebody sends: passed on, ending the run or a delay, never lost.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{LIMIT, Lab, pause, proc, wait_until};

/// The four that ask a run to end.
const ENDING: [(Signal, &str); 4] =
    [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::QUIT, "QUIT")];

/// Notes each signal in `$D/m`, says its number in `$D/ready`, and exits 1 once `$D/end` is there.
const RECORDER: &str = r#"
    sub note { open my $f, '>>', "$ENV{D}/$_[0]"; print $f "$_[1]\n"; close $f }
    for my $s (qw(INT QUIT TERM HUP USR1 USR2)) { $SIG{$s} = sub { note('m', $s) } }
    note('ready', $$);
    select undef, undef, undef, 0.005 until -e "$ENV{D}/end";
    exit 1;
"#;

#[test]
fn a_signal_sent_to_retryx_alone_reaches_the_command_every_time() {
    let lab = Lab::new();
    let run = lab.run("-n 5 --base-delay 0").perl(RECORDER).start();
    lab.await_file("ready");
    let mut expected = Vec::new();
    let others = [(Signal::USR1, "USR1"), (Signal::USR2, "USR2")];
    for (signal, name) in others.into_iter().chain(ENDING) {
        for _ in 0..3 {
            run.signal(signal);
            expected.push(name);
            lab.await_lines("m", expected.len());
        }
    }
    lab.write("end", "");
    let run = run.finish();
    run.exited(1).stopped(1, "interrupted");
    assert_eq!(run.last()["signal"], Signal::TERM.as_raw(), "the first that asked for the end");
    assert_eq!(lab.lines("m"), expected);
}

#[test]
fn user_signals_are_passed_on_and_end_nothing() {
    let lab = Lab::new();
    let run = lab.run("-n 2 --base-delay 0").perl(RECORDER).start();
    lab.await_file("ready");
    run.signal(Signal::USR1);
    lab.await_lines("m", 1);
    run.signal(Signal::USR2);
    lab.await_lines("m", 2);
    lab.write("end", "");
    run.finish().exited(1).stopped(2, "attempts");
    assert_eq!(lab.lines("m"), ["USR1", "USR2"]);
}

// B10, and its kind: whatever the command makes of the signal is what retryx reports.
#[test]
fn no_attempt_follows_an_ending_signal_and_the_commands_own_end_is_reported() {
    let lab = Lab::new();
    let mut runs = Vec::new();
    for (number, (signal, name)) in ENDING.into_iter().enumerate() {
        for (code, reason) in [(0, "success"), (3, "interrupted"), (127, "interrupted")] {
            let ready = format!("ready-{number}-{code}");
            let script = format!(
                "trap 'exit {code}' {name}; echo >$D/{ready}; n=0; while [ $n -lt 3000 ]; do sleep 0.02; n=$((n+1)); done"
            );
            let run = lab.run("-n 5 --base-delay 0").leashed().sh(&script).start();
            runs.push((run, ready, signal, code, reason));
        }
    }
    for (run, ready, signal, code, reason) in runs {
        lab.await_file(&ready);
        run.signal(signal);
        let run = run.finish();
        run.exited(code).stopped(1, reason).alone();
        let finished = &run.of("attempt_finished")[0];
        assert_eq!((&finished["outcome"], &finished["exit_code"]), (&"exited".into(), &code.into()));
    }
}

#[test]
fn a_command_that_dies_of_the_signal_passed_on_gives_that_death() {
    let lab = Lab::new();
    for (signal, name) in ENDING {
        let run = lab.run("-n 5 --base-delay 0").leashed().command(&["sleep", "300"]).start();
        let command = first_child(run.pid);
        assert!(command > 0);
        run.signal(signal);
        let run = run.finish();
        run.died_of(signal).stopped(1, "interrupted").says(&[&format!("SIG{name}")]).alone();
        assert!(!run.status.core_dumped());
        let finished = &run.of("attempt_finished")[0];
        assert_eq!((&finished["outcome"], &finished["signal"]), (&"signaled".into(), &signal.as_raw().into()));
    }
}

/// The command that retryx runs, once it runs.
fn first_child(retryx: i32) -> i32 {
    wait_until("the command runs", || !proc::children(retryx).is_empty());
    proc::children(retryx)[0]
}

// B9
#[test]
fn an_ending_signal_ends_a_delay_at_once_and_retryx_dies_of_it() {
    let lab = Lab::new();
    for (signal, name) in ENDING {
        let run = lab.run("-n 15 --mode fixed --base-delay 1000").command(&["false"]).start();
        run.events.wait("retry_scheduled", 1);
        run.signal(signal);
        let run = run.finish();
        run.died_of(signal).stopped(1, "interrupted").says(&[&format!("stopped by SIG{name}")]);
        assert!(!run.status.core_dumped());
        assert_eq!(run.last()["signal"], signal.as_raw());
        assert_eq!(run.last()["exit_status"], 128 + signal.as_raw());
        assert!(run.elapsed < LIMIT);
    }
}

#[test]
fn an_ending_signal_ends_the_stagger_before_the_first_attempt() {
    let lab = Lab::new();
    for (signal, _) in ENDING {
        let run = lab.run("--stagger 10000000").command(&["true"]).start();
        run.events.wait("run_started", 1);
        run.signal(signal);
        run.finish().died_of(signal).stopped(0, "interrupted").says(&["before the first attempt"]);
    }
}

#[test]
fn other_signals_leave_a_delay_as_long_as_it_is() {
    let lab = Lab::new();
    let run = lab.run("-n 2 --mode fixed --base-delay 1.5").command(&["false"]).start();
    run.events.wait("retry_scheduled", 1);
    for signal in [Signal::USR1, Signal::USR2, Signal::CONT, Signal::WINCH, Signal::CHILD, Signal::URG] {
        run.signal(signal);
    }
    let run = run.finish();
    run.exited(1).stopped(2, "attempts");
    assert!(run.elapsed >= Duration::from_millis(1500));
}

#[test]
fn a_signal_that_arrives_between_attempts_is_never_lost() {
    let lab = Lab::new();
    for round in 0..40 {
        let run = lab.run("-n unlimited --base-delay 0").leashed().sh("exit 1").start();
        run.events.wait("attempt_started", 1 + round % 5);
        run.signal(Signal::TERM);
        let run = run.finish();
        run.died_of_or_exited(Signal::TERM, 1).alone();
        assert_eq!(run.last()["reason"], "interrupted");
    }
}

// B13, and its kind.
#[test]
fn a_death_by_signal_is_a_failure_that_is_retried_and_reported_as_that_death() {
    let lab = Lab::new();
    for (signal, class, attempts) in [
        (Signal::KILL, "transient", 3),
        (Signal::SEGV, "transient", 3),
        (Signal::ABORT, "transient", 3),
        (Signal::TERM, "transient", 3),
        (Signal::BUS, "transient", 3),
        (Signal::ALARM, "transient", 3),
        (Signal::QUIT, "transient", 3),
        (Signal::HUP, "transient", 3),
        (Signal::INT, "permanent", 1),
        (Signal::PIPE, "permanent", 1),
    ] {
        let number = signal.as_raw();
        let script = format!("echo >>$D/m-{number}; kill -{number} $$");
        let run =
            lab.shell("ulimit -c unlimited 2>/dev/null; exec retryx -n 3 --base-delay 0 --events $D/e -- sh -c \"$1\"");
        let run = run.args(["sh", &script]).finish();
        run.died_of(signal);
        assert!(!run.status.core_dumped(), "retryx itself leaves no core");
        assert_eq!(lab.lines(&format!("m-{number}")).len(), attempts, "{number}");
        let events = crate::support::Events::at(lab.path("e")).all();
        for event in events.iter().filter(|event| event["event"] == "attempt_finished") {
            assert_eq!(event["outcome"], "signaled");
            assert_eq!(event["signal"], number);
            assert!(event["exit_code"].is_null());
            assert_eq!(event["class"], class);
        }
        assert_eq!(events.last().unwrap()["exit_status"], 128 + number);
        std::fs::remove_file(lab.path("e")).unwrap();
    }
}

#[test]
fn a_real_time_signal_is_a_death_like_any_other() {
    let lab = Lab::new();
    let run = lab.run("-n 2 --base-delay 0").sh("kill -40 $$").finish();
    assert_eq!(run.status.signal(), Some(40));
    run.stopped(2, "attempts").says(&["SIGRTMIN+6"]);
}

#[test]
fn timeouts_term_sent_twice_leaves_the_command_its_cleanup() {
    // coreutils' timeout signals retryx, and then its whole group.
    let lab = Lab::new();
    let child = r#"
        sub note { open my $f, '>>', "$ENV{D}/m"; print $f "$_[0]\n"; close $f }
        my $asked = 0; $SIG{TERM} = sub { $asked++ };
        note('up');
        select undef, undef, undef, 0.01 until $asked;
        my $end = time + 2; select undef, undef, undef, 0.1 while time < $end;
        note('clean');
        exit 3;
    "#;
    let run = lab.program("timeout").args(["3", "retryx", "-n", "5", "--base-delay", "0", "--events"]);
    let run = run.arg(lab.path("e")).leashed().perl(child).finish();
    run.exited(124).await_alone();
    assert_eq!(lab.lines("m"), ["up", "clean"]);
    let last = crate::support::Events::at(lab.path("e")).wait("stopped", 1);
    assert_eq!((&last["reason"], &last["exit_status"]), (&"interrupted".into(), &3.into()));
}

#[test]
fn a_term_that_is_ignored_is_never_turned_into_kill_by_itself() {
    // Longer than the ten seconds after which a limit would send KILL.
    let lab = Lab::new();
    let child = "trap '' TERM; echo >$D/ready; while [ ! -e $D/end ]; do sleep 0.1; done; exit 4";
    let run = lab.run("-n 5 --timeout 1000 --base-delay 0").leashed().sh(child).start();
    lab.await_file("ready");
    run.signal(Signal::TERM);
    pause(Duration::from_millis(10_500));
    assert!(run.is_running());
    lab.write("end", "");
    run.finish().exited(4).stopped(1, "interrupted").alone();
}

#[test]
fn an_explicit_kill_after_bounds_a_term_that_was_passed_on() {
    let lab = Lab::new();
    let child = "trap '' TERM; echo >$D/ready; sleep 300; sleep 301";
    let run = lab.run("-n 5 --kill-after 0.5 --base-delay 0").leashed().sh(child).start();
    lab.await_file("ready");
    run.signal(Signal::TERM);
    let run = run.finish();
    run.died_of(Signal::KILL).stopped(1, "interrupted").alone();
}

#[test]
fn kill_leaves_no_direct_child_and_kill_to_the_group_no_grandchild() {
    let lab = Lab::new();
    let run = lab.run("").leashed().command(&["sleep", "300"]).start();
    first_child(run.pid);
    run.signal(Signal::KILL);
    run.finish().died_of(Signal::KILL).await_alone();
    let run = lab.run("--timeout 1000").leashed().sh("sleep 301 & echo >$D/ready; sleep 302 | sleep 303").start();
    lab.await_file("ready");
    run.signal_group(Signal::KILL);
    run.finish().died_of(Signal::KILL).await_alone();
}

#[test]
fn a_command_that_stops_itself_goes_on_when_somebody_continues_it() {
    let lab = Lab::new();
    let run = lab.run("-n 2").leashed().sh("echo $$ >$D/pid; kill -STOP $$; exit 0").start();
    let command = lab.await_number("pid");
    wait_until("it is stopped", || proc::is_stopped(command));
    assert!(run.is_running());
    proc::kill(command, Signal::CONT);
    run.finish().exited(0).stopped(1, "success").alone();
}

#[test]
fn continuing_retryx_continues_a_command_that_is_stopped() {
    let lab = Lab::new();
    let run = lab.run("-n 2").leashed().sh("echo $$ >$D/pid; kill -STOP $$; exit 0").start();
    let command = lab.await_number("pid");
    wait_until("it is stopped", || proc::is_stopped(command));
    run.signal(Signal::CONT);
    run.finish().exited(0).stopped(1, "success").alone();
}

#[test]
fn a_stop_key_signal_where_no_shell_could_continue_stops_nobody() {
    // In an orphaned group the kernel lets TSTP stop nothing.
    let lab = Lab::new();
    let run = lab.run("").leashed().sh("echo >$D/ready; until [ -e $D/end ]; do sleep 0.02; done").start();
    lab.await_file("ready");
    for signal in [Signal::TSTP, Signal::TTIN, Signal::TTOU] {
        run.signal(signal);
        run.signal_group(signal);
    }
    lab.write("end", "");
    run.finish().exited(0).stopped(1, "success").alone();
}

#[test]
fn a_group_of_its_own_gets_what_is_passed_on_as_a_whole() {
    let lab = Lab::new();
    let script = "(trap 'echo inner >>$D/m; exit' TERM; echo >$D/in; while :; do sleep 0.02; done) & \
                  trap 'wait; echo outer >>$D/m; exit 3' TERM; echo $$ >$D/pid; while :; do sleep 0.02; done";
    let run = lab.run("--own-group").leashed().sh(script).start();
    let command = lab.await_number("pid");
    lab.await_file("in");
    let (group, session) = proc::group_and_session(command).unwrap();
    assert_eq!((group, session), (command, run.pid), "own group, same session");
    run.signal(Signal::TERM);
    run.finish().exited(3).stopped(1, "interrupted").alone();
    let mut noted = lab.lines("m");
    noted.sort();
    noted.dedup();
    assert_eq!(noted, ["inner", "outer"]);
}

#[test]
fn the_command_stays_in_retryxs_group_and_session() {
    let lab = Lab::new();
    let run = lab.run("--timeout 1000").leashed().command(&["sleep", "300"]).start();
    let command = first_child(run.pid);
    assert_eq!(proc::group_and_session(command), proc::group_and_session(run.pid));
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM);
}
