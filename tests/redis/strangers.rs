//! Servers that are none, or mean no good: the run goes on and ends as its command does.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use retryx::store::{RedisAddress, RedisStore, StateStore as _};
use rustix::process::Signal;

use crate::keys::{plan, retry, scope};
use crate::server::patient_store;
use crate::support::{Lab, pause};

/// What becomes of a connection.
type Act = fn(TcpStream);

/// Listens at a port and does that with each connection.
fn stranger(act: Act) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || act(stream));
        }
    });
    port
}

/// Sends that over and over.
fn endless(mut stream: TcpStream, start: &str, rest: &str) {
    let rest = rest.repeat(10_000);
    let _ = stream.write_all(start.as_bytes());
    while stream.write_all(rest.as_bytes()).is_ok() {}
}

/// Answers each piece of a request with that.
fn answering(mut stream: TcpStream, answer: &str) {
    let mut buffer = vec![0; 65536];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) && stream.write_all(answer.as_bytes()).is_ok() {}
}

const SILENT: &str = "did not answer within 200 ms";
const NO_REDIS: &str = "is this a Redis server?";

#[test]
fn no_stranger_holds_or_ends_a_run() {
    let lab = Lab::new();
    let strangers: [(Act, &[&str]); 18] = [
        (std::mem::forget, &[SILENT]),
        (drop, &["closed the connection", "connection reset"]),
        (|stream| answering(stream, "HTTP/1.1 400 Bad Request\r\n\r\n"), &["is HTTP"]),
        (|stream| answering(stream, "220 mail.example ESMTP\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "\0\u{1}\u{2}"), &[NO_REDIS]),
        (|stream| answering(stream, "+OK\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "*5\r\n:0\r\n:0\r\n:0\r\n:0\r\n"), &[SILENT]),
        (|stream| answering(stream, "*5\r\n:9\r\n:0\r\n:0\r\n:0\r\n+\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "*5\r\n:0\r\n:-1\r\n:0\r\n:0\r\n+\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "*5\r\n:0\r\n:0\r\n:99999999999\r\n:0\r\n+\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "*5\r\n:0\r\n:2000001\r\n:0\r\n:0\r\n+\r\n"), &[NO_REDIS]),
        (|stream| answering(stream, "*5\r\n:0\r\n:0\r\n$3\r\n500\r\n:0\r\n+\u{1b}[2J\r\n"), &["its [2J is no good"]),
        (|stream| answering(stream, "-ERR \u{1b}[2Jgo away\r\n"), &["the server refuses: ERR [2Jgo away"]),
        (|stream| answering(stream, "-DENIED Redis is running in protected mode\r\n"), &["protected mode"]),
        (|stream| endless(stream, "+", "x"), &[NO_REDIS, SILENT]),
        (|stream| endless(stream, "*1000000000\r\n", ":1\r\n"), &[NO_REDIS, SILENT]),
        (|stream| endless(stream, "", "*1\r\n"), &[NO_REDIS]),
        (
            |mut stream| {
                while stream.write_all(b"+").is_ok() {
                    pause(std::time::Duration::from_millis(5));
                }
            },
            &[SILENT],
        ),
    ];
    for (number, (act, why)) in strangers.into_iter().enumerate() {
        let port = stranger(act);
        // An answer may be late where the machine is busy; then that is what is said.
        let retryx = "ulimit -v 400000; exec retryx --scope x -n 2 --base-delay 0";
        let run = lab.shell(&format!("{retryx} --store redis://127.0.0.1:{port} -- sh -c 'exit 7'")).finish();
        run.exited(7);
        let mut said: Vec<_> = run
            .messages()
            .into_iter()
            .filter(|line| line.contains("is not shared") || line.contains("was damaged"))
            .collect();
        said.dedup();
        assert_eq!(said.len(), 1, "{number}: {}", run.stderr);
        assert!(why.iter().chain(&[SILENT]).any(|why| said[0].contains(why)), "{number}: {}", said[0]);
        assert!(!run.stderr.contains('\u{1b}'));
    }
}

#[test]
fn a_signal_that_arrives_while_a_server_is_asked_is_not_lost() {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let options = format!("--scope x -n 2 --base-delay 1h --jitter none --store redis://127.0.0.1:{port}");
    let run = lab.run(&options).command(&["false"]).start();
    let (_connection, _) = listener.accept().expect("a connection");
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM);
}

#[test]
fn a_server_may_be_slow_but_not_scan_for_ever() {
    // Each answer leads on to the next.
    let port = stranger(|stream| answering(stream, "+OK\r\n*2\r\n$1\r\n7\r\n*1\r\n$16\r\nretryx:scope:{x}\r\n"));
    let address = RedisAddress::parse(&format!("redis://127.0.0.1:{port}/1")).expect("an address");
    let mut store = RedisStore::new(address);
    let problem = store.list().expect_err("no end").0;
    assert!(problem.contains("did not answer within 5 s: so many keys"), "{problem}");
}

#[test]
fn what_is_wrong_with_the_way_is_said() {
    for (address, why) in [
        ("redis://127.0.0.1:1", "connection refused"),
        ("redis://[::1]:1", "[::1]:1"),
        ("redis://no-name.invalid", "no-name.invalid"),
        ("unix:///nonexistent/socket", "no such file"),
        ("rediss://127.0.0.1:1?cacert=/nonexistent", "/nonexistent: no such file"),
        ("rediss://127.0.0.1:1?cacert=/dev/zero", "/dev/zero: this is no regular file"),
        ("redis://u@127.0.0.1:1?password-file=/nonexistent", "/nonexistent: no such file"),
        ("redis://127.0.0.1:1?password-file=/dev/zero", "/dev/zero: this is no regular file"),
    ] {
        let problem = patient_store(address).apply(&scope("x"), &plan(10, 0), &retry(1), None).expect_err(address).0;
        assert!(problem.contains(why), "{problem}");
    }
}
