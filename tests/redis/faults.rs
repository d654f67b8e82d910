//! What befalls servers in the middle of a run: the run goes on and ends as its command does.

use retryx::policy::{BudgetPlan, Operation, QuotaPlan};
use retryx::store::StateStore as _;
use rustix::process::Signal;

use crate::keys::scope;
use crate::server::{Server, is_there};
use crate::support::{Finished, Lab, skip};

/// Three attempts that all fail with 7; in the first of them something befalls the server.
fn run_through(lab: &Lab, server: &mut Server<'_>, befall: impl FnOnce(&mut Server<'_>)) -> Finished {
    let store = server.patient_address();
    run_with(&store, lab, server, befall)
}

fn run_with(store: &str, lab: &Lab, server: &mut Server<'_>, befall: impl FnOnce(&mut Server<'_>)) -> Finished {
    let script = "echo >>n; until test -e go; do sleep 0.01; done; exit 7";
    let options = format!("--scope x --quota-cost 5 -n 3 --base-delay 0 --store {store}");
    let run = lab.run(&options).sh(script).start();
    lab.await_lines("n", 1);
    befall(server);
    lab.write("go", "");
    let run = run.finish();
    run.exited(7).stopped(3, "attempts");
    run
}

/// The run says once that the scope is not shared, and why, and goes on with tokens of its own.
#[track_caller]
fn goes_on_alone(run: &Finished, why: &str) {
    let said: Vec<_> = run.messages().into_iter().filter(|line| line.contains("is not shared")).collect();
    assert_eq!(said.len(), 1, "{}", run.stderr);
    assert!(said[0].contains(why), "{why}: {}", said[0]);
    assert_eq!(run.each("retry_scheduled", "quota_left"), [495, 490]);
}

#[test]
fn a_server_that_is_killed_leaves_the_run_a_budget_of_its_own() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let run = run_through(&lab, &mut server, |server| {
        server.kill();
    });
    goes_on_alone(&run, "connection refused");
}

#[test]
fn a_server_that_starts_anew_is_shared_anew() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let run = run_through(&lab, &mut server, |server| {
        server.kill();
        server.restart();
    });
    assert!(!run.stderr.contains("shared"), "{}", run.stderr);
    assert_eq!(server.ask(&["HGET", "retryx:scope:{x}", "tokens"]), "490");
}

#[test]
fn a_server_that_is_flushed_starts_the_scope_afresh() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let scope = scope("x");
    let quota = QuotaPlan::default();
    server.store().set(&scope, 5, quota).expect("an answer");
    let run = run_through(&lab, &mut server, |server| {
        server.ask(&["FLUSHALL"]);
        server.ask(&["SCRIPT", "FLUSH"]);
    });
    assert!(!run.stderr.contains("shared"), "{}", run.stderr);
    assert_eq!(server.ask(&["HGET", "retryx:scope:{x}", "tokens"]), "490");
}

#[test]
fn a_server_that_is_paused_holds_nobody() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let store = server.address();
    let run = run_with(&store, &lab, &mut server, |server| server.process.signal(Signal::STOP));
    goes_on_alone(&run, "did not answer within 200 ms");
    server.process.signal(Signal::CONT);
    // What was sent may be done later, but not twice.
    let left: u32 = server.ask(&["HGET", "retryx:scope:{x}", "tokens"]).parse().unwrap_or(500);
    assert!(left >= 495, "{left}");
}

#[test]
fn a_server_without_room_is_said() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let run = run_through(&lab, &mut server, |server| {
        server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    });
    goes_on_alone(&run, "memory is full");
}

#[test]
fn a_server_that_becomes_a_replica_is_said() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let mut server = Server::start(&lab);
    let run = run_through(&lab, &mut server, |server| {
        server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    });
    goes_on_alone(&run, "read-only replica");
}

#[test]
fn the_connection_is_kept_from_the_command() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let options = format!("--scope x -n 2 --base-delay 0 --store {}", server.patient_address());
    let run = lab.run(&options).sh("ls -l /proc/self/fd >>open; exit 1").finish();
    run.exited(1).stopped(2, "attempts");
    let open = lab.read("open");
    assert!(open.contains("/dev/null") && !open.contains("socket:"), "{open}");
}

#[test]
fn a_server_that_is_busy_with_a_script_is_said() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    server.ask(&["CONFIG", "SET", "lua-time-limit", "1"]);
    let (mut other, scope) = (server.client(), scope("x"));
    std::thread::scope(|threads| {
        threads.spawn(move || other.ask(&["EVAL", "while true do end", "0"]));
        let mut store = server.store();
        loop {
            let plan = BudgetPlan { quota: Some(QuotaPlan::default()), limiter: false };
            match store.apply(&scope, &plan, &Operation::Take, None) {
                Ok(_) => {}
                Err(problem) => {
                    assert!(problem.0.contains("busy with a script"), "{problem}");
                    break;
                }
            }
        }
        assert_eq!(server.ask(&["SCRIPT", "KILL"]), "OK");
    });
}

#[test]
fn a_silent_server_leaves_the_job_the_time_that_the_limits_leave() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    server.process.signal(Signal::STOP);
    let adaptive = format!("--mode adaptive --scope x --store {}", server.patient_address());
    for limit in ["--total-timeout", "--deadline"] {
        let run = lab.run(&format!("{adaptive} {limit} 4 -n 1")).sh("echo >>n").finish();
        run.exited(0).stopped(1, "success").says(&["is not shared", "did not answer within"]);
    }
    assert_eq!(lab.lines("n").len(), 2);
    server.process.signal(Signal::CONT);
}

#[test]
fn a_signal_while_the_server_is_asked_ends_the_run_before_its_attempt() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    server.process.signal(Signal::STOP);
    let run =
        lab.run(&format!("--mode adaptive --scope x --store {}", server.patient_address())).sh("echo >>n").start();
    run.events.wait("run_started", 1);
    run.signal(Signal::TERM);
    let run = run.finish();
    run.died_of(Signal::TERM).stopped(0, "interrupted");
    assert!(run.of("attempt_started").is_empty() && lab.lines("n").is_empty());
    // Nobody waited for the server, and nothing is said of it.
    assert!(!run.stderr.contains("shared"), "{}", run.stderr);
    server.process.signal(Signal::CONT);
}
