//! Many at once, and what an operation costs.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use retryx::policy::{Entry, Grant, Operation};
use retryx::store::StateStore as _;

use crate::keys::{plan, retry, scope};
use crate::server::{Server, is_there, patient_store};
use crate::support::{Lab, skip};

#[test]
fn no_token_is_lost_or_made_by_64_at_once() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let address = server.address();
    let (capacity, rounds) = (10_000, 100);
    // 64 x 100 x 3 asked for, 64 x 33 x 3 given back at most.
    let one = |number: u32| {
        let mut store = patient_store(&address);
        let mut paid = 0;
        for round in 0..rounds {
            let operation = if (round + number).is_multiple_of(3) && paid > 3 {
                Operation::Book { throttled: false, entry: Entry::Success { last_cost: Some(3) } }
            } else {
                retry(3)
            };
            let answer = store.apply(&scope("x"), &plan(capacity, 0), &operation, None).expect("an answer").answer;
            match (operation, answer.grant) {
                (Operation::Book { entry: Entry::Success { .. }, .. }, _) => paid -= 3,
                (_, Grant::Granted) => paid += 3,
                _ => {}
            }
        }
        paid
    };
    let one = &one;
    let books: Vec<i64> = thread::scope(|threads| {
        let all: Vec<_> = (0..64).map(|number| threads.spawn(move || one(number))).collect();
        all.into_iter().map(|one| one.join().expect("an end")).collect()
    });
    let left: i64 = server.ask(&["HGET", "retryx:scope:{x}", "tokens"]).parse().expect("a number");
    assert_eq!(left, i64::from(capacity) - books.iter().sum::<i64>());
    assert_eq!(server.calls("eval"), 64 * u64::from(rounds));
}

#[test]
fn no_token_is_lost_or_made_by_64_runs_at_once() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::start(&lab);
    let quota = "--quota-capacity 100000 --quota-cost 7 --quota-refill 0";
    let options = format!("--scope x {quota} -n 4 --base-delay 0 --store {}", server.patient_address());
    let runs: Vec<_> = (0..64).map(|_| lab.run(&options).command(&["false"]).start()).collect();
    for run in runs {
        run.finish().exited(1).stopped(4, "attempts");
    }
    assert_eq!(server.ask(&["HGET", "retryx:scope:{x}", "tokens"]), (100_000 - 64 * 3 * 7).to_string());
}

/// Passes one connection on, and tells of each piece that went through: to the server or not.
fn recorder(lab: &Lab, server: &Server<'_>) -> (String, Receiver<bool>) {
    let path = lab.path("recorder.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let target = PathBuf::from(server.address().replacen("unix://", "", 1));
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&target).expect("a connection");
            let pairs = [(&client, &server, true), (&server, &client, false)];
            for (from, to, is_request) in pairs {
                let streams = (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
                let sender = sender.clone();
                thread::spawn(move || pass(streams, is_request, &sender));
            }
        }
    });
    (format!("unix://{}", path.display()), receiver)
}

fn pass((mut from, mut to): (UnixStream, UnixStream), is_request: bool, sender: &Sender<bool>) {
    let mut buffer = vec![0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        // Told before it goes on, so that an answer is never told before its request.
        let _ = sender.send(is_request);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn an_operation_is_one_round_trip() {
    if !is_there() {
        skip!("redis-server is not installed");
    }
    let lab = Lab::new();
    let server = Server::with(&lab, "redis", "--requirepass hush");
    server.ask(&["AUTH", "hush"]);
    let (address, pieces) = recorder(&lab, &server);
    let mut store = patient_store(&address.replacen("unix://", "unix://:hush@", 1).replace(".sock", ".sock?db=3"));
    server.ask(&["CONFIG", "RESETSTAT"]);
    for round in 0..10 {
        store.apply(&scope("x"), &plan(100, 0), &retry(1), None).expect("an answer");
        if round == 5 {
            server.ask(&["SCRIPT", "FLUSH"]);
        }
        let mut turns = pieces.try_iter().collect::<Vec<_>>();
        turns.dedup();
        // The first is let in before it asks for anything.
        let expected: &[bool] = if round == 0 { &[true, false, true, false] } else { &[true, false] };
        assert_eq!(turns, expected, "{round}");
    }
    assert_eq!((server.calls("eval"), server.calls("auth")), (10, 1));
    assert_eq!(server.figure("stats", "total_connections_received"), 1);
}
