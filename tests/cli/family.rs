//! What a time limit ends: every descendant, wherever it went, and nobody else.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{LIMIT, Lab, Running, is_root, proc, skip, wait_until};

/// Ways to get away from whoever wants to end a family.
const ESCAPES: [(&str, &str); 12] = [
    ("a pipeline", "sleep 301 | sleep 302"),
    ("a session of its own", "setsid sleep 303 & sleep 304 | sleep 305"),
    ("forked twice", "(setsid sh -c 'sleep 306 & exit' &); sleep 307"),
    ("deep", "sh -c \"sh -c 'sh -c \\\"sleep 308; :\\\"; :'; :\"; :"),
    ("all ignore TERM (B4)", "trap '' TERM; sleep 309 | sleep 310"),
    ("nohup", "nohup sleep 311 >/dev/null 2>&1 & sleep 312"),
    ("one is stopped", "sh -c 'kill -STOP $$; sleep 313' & sleep 314"),
    ("it stops itself", "kill -STOP $$; sleep 315"),
    ("the command goes, a daemon ignores TERM (B5)", "setsid sh -c \"trap '' TERM; sleep 316; :\" & sleep 317"),
    ("TERM makes it fork", "exec perl -e '$SIG{TERM} = sub { exit if fork }; sleep 318 while 1'"),
    ("it forks and forks", "exec perl -e 'while (1) { exit if fork; select undef, undef, undef, 0.05 }' & sleep 319"),
    ("exits 0 on TERM", "trap 'exit 0' TERM; sleep 320 & wait; sleep 321"),
];

#[test]
fn a_limit_ends_every_descendant_wherever_it_went() {
    let lab = Lab::new();
    for limit in ["--timeout 1", "--total-timeout 1"] {
        let start = |(name, script): (&'static str, &str)| {
            let options = format!("-n 1 --kill-after 1 {limit}");
            (name, lab.run(&options).leashed().sh(script).start())
        };
        let runs: Vec<(&str, Running)> = ESCAPES.into_iter().map(start).collect();
        for (name, run) in runs {
            println!("{limit}: {name}");
            let run = run.finish();
            run.exited(124).alone();
            assert_eq!(run.of("attempt_finished")[0]["outcome"], "timed_out");
            assert!(run.elapsed >= Duration::from_secs(1));
        }
    }
}

// None of these is kept waiting for KILL, which would come too late for this test.
#[test]
fn whatever_is_born_while_the_family_is_asked_to_end_is_asked_too() {
    let lab = Lab::new();
    for script in [
        "while :; do (sleep 330 &); done",
        "while :; do (setsid sleep 331 &); sleep 0.01; done",
        "sh -c 'while :; do (setsid sleep 332 &); sleep 0.01; done' & sleep 333",
        "exec perl -e 'while (1) { exit if fork; select undef, undef, undef, 0.01 }' & sleep 334",
    ] {
        for _ in 0..4 {
            let run = lab.run("-n 1 --kill-after 1000 --timeout 300ms").leashed().sh(script).finish();
            run.exited(124).alone();
            assert!(run.elapsed < LIMIT, "{script}");
        }
    }
}

#[test]
fn what_a_process_starts_to_put_things_in_order_is_left_to_it() {
    let lab = Lab::new();
    let script = "trap 'sleep 0.5; echo $? >>$D/kept; exit' TERM; while :; do sleep 0.05; done";
    let run = lab.run("-n 1 --timeout 300ms").leashed().sh(script).finish();
    run.exited(124).alone();
    assert_eq!(lab.lines("kept"), ["0"]);
}

#[test]
fn the_family_is_found_with_signals_in_any_state() {
    // SIGCHLD ignored or blocked by the caller must not hide an end.
    let lab = Lab::new();
    for (ignored, blocked) in
        [(vec![Signal::CHILD], vec![]), (vec![], vec![Signal::CHILD]), (vec![], vec![Signal::TERM])]
    {
        let run = lab.run("-n 1 --timeout 1 --kill-after 1").ignoring(&ignored).blocking(&blocked).leashed();
        run.sh("setsid sleep 301 & sleep 302 | sleep 303").finish().exited(124).alone();
    }
}

// B2
#[test]
fn a_command_that_ignores_term_never_overlaps_with_its_retry() {
    let lab = Lab::new();
    let script = "trap '' TERM; exec 9>$D/lock; flock -n 9 || echo overlap >>$D/m; \
                  echo start >>$D/m; sleep 300; echo end >>$D/m";
    let run = lab.run("-n 2 --base-delay 0 --timeout 1 --kill-after 1").leashed().sh(script).finish();
    run.exited(124).stopped(2, "attempts").alone();
    assert_eq!(lab.lines("m"), ["start", "start"]);
    assert!(run.elapsed >= Duration::from_secs(4), "{:?}", run.elapsed);
}

#[test]
fn descendants_that_outlive_a_normal_end_are_left_alone_and_hold_nothing_up() {
    let lab = Lab::new();
    for code in [0, 1] {
        for limit in ["", "--timeout 1000", "--total-timeout 1000", "--kill-after 1"] {
            let script = format!("sleep 300 & echo $! >$D/pid; setsid sleep 301 & echo $! >>$D/pid; exit {code}");
            let run = lab.run(&format!("-n 1 {limit}")).leashed().sh(&script).finish();
            run.exited(code);
            assert!(run.left_somebody());
            for pid in lab.lines("pid") {
                let pid = pid.parse().unwrap();
                assert!(proc::is_alive(pid));
                proc::kill(pid, Signal::KILL);
            }
            run.await_alone();
            assert!(run.elapsed < LIMIT);
        }
    }
}

#[test]
fn children_that_retryx_had_from_before_are_strangers() {
    let lab = Lab::new();
    let script = "sleep 300 & echo $! >$D/stranger; exec retryx --timeout 1 --kill-after 1 -n 1 -- sh -c 'sleep 301 | sleep 302'";
    let run = lab.shell(script).leashed().finish();
    run.exited(124);
    let stranger = lab.await_number("stranger");
    assert!(proc::is_alive(stranger));
    proc::kill(stranger, Signal::KILL);
    run.await_alone();
}

// B1, first part: the command gives itself to another user, and retryx may not signal it.
#[test]
fn a_process_that_may_not_be_signalled_ends_the_run_and_no_attempt_starts_beside_it() {
    if !is_root() {
        skip!("only root can make a process that it may not signal");
    }
    let lab = Lab::new();
    // Root without the right to signal others' processes.
    let other = "setpriv --reuid 65534 --clear-groups sleep 300";
    for script in [format!("exec {other}"), format!("{other} & sleep 301")] {
        let words = ["--bounding-set", "-kill", "--inh-caps", "-kill", "retryx", "-n", "3", "--timeout", "1"];
        let run = lab.program("setpriv").args(words).args(["--base-delay", "0", "--kill-after", "1", "--events"]);
        let events = lab.path(&format!("e{}", script.len()));
        let run = run.arg(&events).leashed().sh(&script).finish();
        run.exited(124);
        assert!(run.elapsed >= Duration::from_secs(2));
        let events = crate::support::Events::at(events).all();
        let last = events.last().unwrap();
        assert_eq!((&last["reason"], &last["attempts"]), (&"unkillable".into(), &1.into()), "{}", run.stderr);
        let error = events.iter().find_map(|event| event["error"].as_str()).expect("the event tells the error");
        let pid = error.split_whitespace().nth(1).unwrap().trim_end_matches(':').parse().unwrap();
        run.says(&[&format!("process {pid}")]);
        assert_eq!(run.messages().len(), 1, "{}", run.stderr);
        assert!(proc::is_alive(pid));
        proc::kill(pid, Signal::KILL);
        run.await_alone();
    }
}

// B1, second part: the command ends in the moment in which it would be signalled.
#[test]
fn a_command_that_ends_as_the_limit_strikes_ends_one_way_or_the_other() {
    let lab = Lab::new();
    for _ in 0..10 {
        let runs: Vec<_> =
            (0..20).map(|_| lab.run("-n 1 --timeout 50ms").leashed().command(&["sleep", "0.05"]).start()).collect();
        for run in runs {
            let run = run.finish();
            let code = run.status.code();
            assert!(matches!(code, Some(0 | 124)), "{:?}: {}", run.status, run.stderr);
            run.stopped(1, if code == Some(0) { "success" } else { "attempts" }).alone();
        }
    }
}

#[test]
fn orphans_of_the_command_leave_no_zombies_while_it_runs() {
    let lab = Lab::new();
    let script = "for i in 1 2 3 4 5; do (true &); done; echo >$D/ready; until [ -e $D/end ]; do sleep 0.02; done";
    let run = lab.run("--timeout 1000").leashed().sh(script).start();
    lab.await_file("ready");
    wait_until("only the command is left", || {
        let children = proc::children(run.pid);
        children.len() == 1 && proc::is_alive(children[0])
    });
    lab.write("end", "");
    run.finish().exited(0).alone();
}

// B37, first part.
#[test]
fn an_outer_limit_ends_an_inner_retryx_with_all_that_it_runs() {
    let lab = Lab::new();
    let script = "retryx -n 5 --mode fixed --base-delay 0.3 -- sh -c 'echo x >>$D/m; setsid sleep 300 & exit 1'";
    let run = lab.run("-n 3 --base-delay 0 --total-timeout 2").leashed().sh(script).finish();
    run.exited(124).alone();
    assert_eq!(run.last()["reason"], "total_timeout");
    let inner = lab.lines("m").len();
    assert!((1..=15).contains(&inner), "{inner}");
}

/// Perl that takes in orphans (`PR_SET_CHILD_SUBREAPER`), runs retryx, waits for that alone,
/// and exits 1 if it has any other child then, dead or alive.
const HEIR: &str = "my $prctl = `uname -m` =~ /^x86_64/ ? 157 : 167; \
                    syscall($prctl, 36, 1, 0, 0, 0) == 0 or die; \
                    my $pid = fork; \
                    exec qw(retryx -q -n 1 --timeout 300ms -- sh -c), $ENV{S} unless $pid; \
                    waitpid $pid, 0; \
                    exit 1 if waitpid(-1, 1) != -1;";

#[test]
fn a_limit_leaves_not_even_the_dead_behind() {
    let lab = Lab::new();
    for (way, script) in ESCAPES.iter().take(4) {
        for _ in 0..3 {
            let run = lab.program("perl").args(["-e", HEIR]).env("S", script).finish();
            assert_eq!(run.status.code(), Some(0), "{way}: {}", run.stderr);
        }
    }
}
