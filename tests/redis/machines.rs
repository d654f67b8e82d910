//! Two machines, each with a network of its own, that share a scope in one Redis: as many
//! processes on one machine that share it in a file.

use std::thread;

use crate::namespace::own_network_and_mounts;
use crate::server::{Server, is_there};
use crate::support::{Lab, Running, is_root, skip, wait_until};

/// Jobs of each machine, all of which fail.
const JOBS: usize = 50;

/// A job list that runs on one machine: what it asks for is counted, and its refusals too.
fn job_list(store: &str) -> String {
    format!(
        "for i in $(seq {JOBS}); do $R --scope outage {store} --quota-refill 0 --base-delay 0 -- \
         sh -c 'echo >>$D/requests; exit 75' 2>>$D/said; done; :"
    )
}

/// A machine on the test's network, with that address.
fn machine(lab: &Lab, number: u8) -> Running {
    let process = lab.program("unshare").args(["--net", "sleep", "600"]).start();
    let pid = process.pid.to_string();
    // That of this thread: the process itself is elsewhere.
    let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
    wait_until("the machine has its network", || {
        std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|theirs| theirs != own)
    });
    let (here, there) = (format!("here{number}"), format!("there{number}"));
    lab.tool("ip", &["link", "add", &here, "type", "veth", "peer", "name", &there, "netns", &pid]);
    lab.tool("ip", &["address", "add", &format!("10.77.{number}.1/24"), "dev", &here]);
    lab.tool("ip", &["link", "set", &here, "up"]);
    let inside = |words: &[&str]| lab.tool("nsenter", &[&["--net", "--target", &pid, "ip"], words].concat());
    inside(&["address", "add", &format!("10.77.{number}.2/24"), "dev", &there]);
    inside(&["link", "set", &there, "up"]);
    process
}

fn lines(lab: &Lab) -> usize {
    let lines = lab.lines("requests").len();
    std::fs::remove_file(lab.path("requests")).expect("the requests");
    lines
}

#[test]
fn two_machines_with_one_redis_ask_as_often_as_one_machine_with_a_file() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    if !is_root() {
        skip!("only root gets a network of its own");
    }
    let told = thread::scope(|scope| {
        let inside = scope.spawn(|| {
            if !own_network_and_mounts() {
                return Err("no network of one's own is allowed");
            }
            let lab = Lab::new();
            lab.tool("ip", &["link", "set", "lo", "up"]);
            let options = "--bind 0.0.0.0 --protected-mode no";
            let (server, port) = Server::at_port(&lab, "redis", "--port", options);
            let machines: Vec<_> = [1, 2].map(|number| (number, machine(&lab, number))).into();
            let runs: Vec<_> = machines
                .iter()
                .map(|(number, machine)| {
                    let script = job_list(&format!("--store 'redis://10.77.{number}.1:{port}?timeout=10'"));
                    let pid = machine.pid.to_string();
                    let inside = ["--net", "--target", &pid, "--", "sh", "-c", &script];
                    lab.program("nsenter").args(inside).start()
                })
                .collect();
            for run in runs {
                run.finish().exited(0);
            }
            let on_two = lines(&lab);
            let kept = server.ask(&["HGET", "retryx:scope:{outage}", "tokens"]);

            let runs: Vec<_> = machines.iter().map(|_| lab.shell(&job_list("")).start()).collect();
            for run in runs {
                run.finish().exited(0);
            }
            // 500 tokens pay for 35 retries, whoever makes them.
            assert_eq!((on_two, lines(&lab)), (2 * JOBS + 35, 2 * JOBS + 35));
            assert_eq!(kept, "10");
            let said = lab.read("said");
            assert!(!said.contains("not shared"), "{said}");
            Ok(())
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if let Err(reason) = told {
        skip!("{reason}");
    }
}
