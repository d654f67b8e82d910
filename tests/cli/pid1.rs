//! As the first process of a container: signals reach it, orphans are reaped, and it exits
//! where it cannot die of a signal.

use rustix::process::Signal;

use crate::support::{Lab, Running, proc, skip, wait_until};

const NAMESPACE: [&str; 5] = ["--pid", "--fork", "--mount-proc", "--kill-child=KILL", "--"];

/// How to start something as the first process, where that can be done here.
fn namespace(lab: &Lab) -> Option<Vec<&'static str>> {
    let ways = [vec![], vec!["--user", "--map-root-user"]];
    ways.into_iter()
        .map(|way| [way, NAMESPACE.to_vec()].concat())
        .find(|way| lab.program("unshare").args(way).arg("true").finish().status.success())
}

/// Starts retryx as the first process, with its events in `$D/NAME`, and finds its number.
fn start(lab: &Lab, way: &[&str], name: &str, options: &str, script: &str) -> (Running, i32) {
    let run = lab.program("unshare").args(way).args(["retryx", "--events", name]).words(options).leashed();
    let run = run.sh(script).start();
    wait_until("retryx runs", || lab.path(name).exists());
    let inner = proc::children(run.pid)[0];
    (run, inner)
}

// B17
#[test]
fn the_first_process_of_a_container_ends_when_told_to() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        // During a delay.
        let name = format!("delay-{status}");
        let (run, inner) = start(&lab, &way, &name, "-n 5 --mode fixed --base-delay 1000", "exit 1");
        crate::support::Events::at(lab.path(&name)).wait("retry_scheduled", 1);
        proc::kill(inner, signal);
        run.finish().exited(status).await_alone();
        // During an attempt.
        let name = format!("attempt-{status}");
        let (run, inner) = start(&lab, &way, &name, "-n 5 --timeout 1000", "echo >$D/$0; exec sleep 300");
        crate::support::Events::at(lab.path(&name)).wait("attempt_started", 1);
        wait_until("the command runs", || !proc::children(inner).is_empty());
        proc::kill(inner, signal);
        run.finish().exited(status).await_alone();
    }
}

#[test]
fn the_first_process_of_a_container_exits_as_its_command_does() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    for (script, status) in
        [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)]
    {
        let run = lab.program("unshare").args(&way).args(["retryx", "-n", "2", "--base-delay", "0"]);
        run.leashed().sh(script).finish().exited(status).await_alone();
    }
}

#[test]
fn the_first_process_of_a_container_reaps_what_is_left_to_it() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    // In an attempt, and in the delay after it.
    let script = "for i in 1 2 3 4 5; do (sh -c 'sleep 0.2; exit 3' &); done; \
                  echo >>$D/ready; if [ $RETRYX_RUN_ATTEMPT = 1 ]; then exit 1; fi; until [ -e $D/end ]; do sleep 0.02; done";
    let (run, inner) = start(&lab, &way, "e", "-n 2 --mode fixed --base-delay 5", script);
    let only = |alive: usize| {
        let children = proc::children(inner);
        children.len() == alive && children.iter().all(|&pid| proc::is_alive(pid))
    };
    lab.await_lines("ready", 1);
    wait_until("orphans are reaped in the delay", || only(0));
    lab.await_lines("ready", 2);
    wait_until("orphans are reaped in an attempt", || only(1));
    lab.write("end", "");
    run.finish().exited(0).await_alone();
}

#[test]
fn a_limit_ends_the_family_in_a_container_too() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    let (run, _) = start(&lab, &way, "e", "-n 1 --timeout 1", "setsid sleep 301 & sleep 302 | sleep 303");
    run.finish().exited(124).await_alone();
}

#[test]
fn a_limit_where_proc_is_another_namespaces_ends_the_command_and_blames_nobody() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    let way: Vec<&str> = way.into_iter().filter(|word| *word != "--mount-proc").collect();
    for script in ["exec sleep 300", "sleep 301 | sleep 302"] {
        let run = lab.program("unshare").args(&way).args(["retryx", "--timeout", "1", "--kill-after", "1", "-n", "1"]);
        let run = run.leashed().sh(script).finish();
        run.exited(124).await_alone();
        assert!(!run.stderr.contains("survived KILL"), "{}", run.stderr);
    }
}

#[test]
fn a_session_whose_leader_is_outside_of_the_namespace_is_no_fault() {
    let lab = Lab::new();
    let Some(way) = namespace(&lab) else { skip!("no PID namespace can be made here") };
    // The command stops itself, and somebody continues it: retryx asks for its parent's session.
    let stops = "(until grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) & kill -STOP $$; exit 7";
    let inner = format!("retryx -n 1 -- sh -c '{}'; exit $?", stops.replace('\'', "'\\''"));
    lab.program("unshare").args(way).args(["sh", "-c", &inner]).finish().exited(7);
}
