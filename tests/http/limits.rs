//! Time limits: each ends what it bounds, wherever that hangs, and gives 28.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::server::{Answer, Server};
use crate::support::{Finished, Lab, number};
use crate::{ask, http};

const DROP: Duration = Duration::from_millis(50);

#[track_caller]
fn timed_out(run: &Finished, attempts: usize, at_least: f64) {
    run.exited(28);
    let finished = run.of("attempt_finished");
    assert_eq!(finished.len(), attempts);
    for event in &finished {
        assert_eq!((&event["outcome"], &event["timed_out"]), (&"timed_out".into(), &true.into()));
        assert_eq!((&event["class"], &event["rule"]), (&"transient".into(), &"default:timeout".into()));
        assert!(event["http_status"].is_null() && event["exit_code"].is_null());
        assert!(number(event, "duration_ms") >= at_least, "{event}");
    }
    assert_eq!(run.last()["exit_status"], 28);
}

/// Ways in which a server takes for ever.
fn hangs() -> Vec<Answer> {
    let head = "HTTP/1.1 200 OK\r\nX-Long: ".to_owned() + &"x".repeat(2000);
    vec![
        Answer::silence(),
        Answer::raw("HTTP/1.1 200 OK\r\nX: ").stall(),
        Answer::raw("").drip(head, DROP),
        Answer::head(200, &["Content-Length: 2000"]).drip("x".repeat(2000), DROP),
        Answer::head(200, &["Transfer-Encoding: chunked"]).drip("1\r\nx\r\n".repeat(400), DROP),
        Answer::head(200, &[]).drip("x".repeat(2000), DROP),
        Answer::raw("HTTP/1.1 100 Continue\r\n\r\n").stall(),
    ]
}

// B88.
#[test]
fn an_attempt_has_its_time_whatever_the_server_does() {
    let lab = Lab::new();
    let servers: Vec<_> = hangs().into_iter().map(|hang| Server::new([hang])).collect();
    for words in ["-m 0.5 --max-attempts 2", "--timeout 0.5 --max-attempts 2", "-m 0.5 --max-attempts 2 -o f"] {
        let runs: Vec<_> = servers.iter().map(|server| http(&lab, words, &server.url("/")).start()).collect();
        for run in runs {
            let run = run.finish();
            run.stopped(2, "attempts").says(&["ended by --timeout 500 ms"]);
            timed_out(&run, 2, 500.0);
            assert_eq!(run.stdout, b"");
        }
    }
}

#[test]
fn the_run_has_its_time_whatever_the_server_does() {
    let lab = Lab::new();
    let servers: Vec<_> = hangs().into_iter().map(|hang| Server::new([hang])).collect();
    let runs: Vec<_> =
        servers.iter().map(|server| http(&lab, "--total-timeout 0.7", &server.url("/")).start()).collect();
    for run in runs {
        let run = run.finish();
        run.stopped(1, "total_timeout").says(&["--total-timeout 700 ms"]);
        timed_out(&run, 1, 600.0);
        assert!(run.elapsed >= Duration::from_millis(700));
    }
}

// B94.
#[test]
fn one_limit_holds_for_the_whole_chain_of_redirects() {
    let lab = Lab::new();
    let server = Server::by(|_, _| {
        Answer::default()
            .pause(Duration::from_millis(600))
            .send("HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
    });
    let run = ask(&lab, "-L -m 1 --max-attempts 1", &server);
    timed_out(&run, 1, 1000.0);
    assert!(server.requests().len() <= 2);
}

/// A socket that takes no more connections: its queue is full.
pub struct Full {
    /// Where it is.
    pub address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Full {
    /// A new one, where the system lets its queue be filled.
    pub fn new() -> Option<Self> {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
        bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().ok()?).ok()?;
        listen(&socket, 0).ok()?;
        let address = SocketAddr::try_from(getsockname(&socket).ok()?).ok()?;
        let mut queue = Vec::new();
        for _ in 0..16 {
            match TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
                Ok(stream) => queue.push(stream),
                Err(_) => return Some(Self { address, _listener: TcpListener::from(socket), _queue: queue }),
            }
        }
        None
    }
}

#[test]
fn connecting_has_its_time() {
    let lab = Lab::new();
    let full = Full::new().expect("a full queue");
    let url = format!("http://{}/", full.address);
    let run = http(&lab, "--connect-timeout 0.4 --max-attempts 2", &url).finish();
    run.stopped(2, "attempts").says(&["--connect-timeout 400 ms"]);
    timed_out(&run, 2, 400.0);
    for words in ["-m 0.4 --max-attempts 1", "--total-timeout 0.4", "-m 0.4 --connect-timeout 100 --max-attempts 1"] {
        let run = http(&lab, words, &url).finish();
        timed_out(&run, 1, 300.0);
    }
    // A request that was not made may be made again.
    let run = http(&lab, "-d x --connect-timeout 0.2 --max-attempts 2", &url).finish();
    run.stopped(2, "attempts");
    // A server that was reached has all the time it wants.
    let server = Server::new([Answer::default().pause(Duration::from_millis(700)).send("HTTP/1.1 204 x\r\n\r\n")]);
    ask(&lab, "--connect-timeout 0.3 --max-attempts 1", &server).exited(0);
}

#[test]
fn a_deadline_starts_no_more_and_keeps_the_status() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &[], "")]);
    let run = lab.run("--deadline 0.5 --base-delay 1 --jitter none http").arg(server.url("/")).finish();
    run.exited(22).stopped(1, "deadline").says(&["--deadline 500 ms"]);
    let run = lab.run("--total-timeout 0.5 --base-delay 1 --jitter none http").arg(server.url("/")).finish();
    run.exited(22).stopped(1, "total_timeout").says(&["--total-timeout 500 ms"]);
    // A running attempt is left to finish by the one, and ended by the other.
    let slow =
        Answer::default().pause(Duration::from_millis(700)).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
    let server = Server::new([slow]);
    ask(&lab, "--deadline 0.3", &server).exited(0).stopped(1, "success");
    timed_out(&ask(&lab, "--total-timeout 0.3", &server), 1, 200.0);
}

#[test]
fn a_timeout_is_one_for_the_rules() {
    let lab = Lab::new();
    let server = Server::new([Answer::silence(), Answer::new(200, &[], "good")]);
    ask(&lab, "-m 0.3", &server).exited(0).stopped(2, "success");
    let server = Server::new([Answer::silence(), Answer::new(200, &[], "good")]);
    ask(&lab, "-m 0.3 --fail-on timeout", &server).exited(28).stopped(1, "permanent");
    for wrong in ["-m 0", "-m x", "--connect-timeout 0", "--connect-timeout 1e3", "--total-timeout 0"] {
        http(&lab, wrong, "http://127.0.0.1:1/").finish().exited(125);
    }
    // One that is too long to matter is endless.
    ask(&lab, "-m 99999999999h --connect-timeout 99999999999h --total-timeout 99999999999h", &server).exited(0);
}

#[test]
fn a_slow_reader_is_bounded_too() {
    use rustix::pipe::{PipeFlags, pipe_with};
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], vec![b'x'; 1_000_000])]);
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let run = http(&lab, "--total-timeout 0.5", &server.url("/")).stdout(write).finish();
    run.exited(28).stopped(1, "total_timeout");
}

/// What rules look for may take its time, and all of it has come long before.
#[test]
fn looking_at_a_body_has_its_time() {
    let lab = Lab::new();
    let body = (format!("{}\n", "x".repeat(1000)) + &format!("{}\n", "-".repeat(1000)).repeat(63)).repeat(10);
    for (status, limit) in [(200, "-m 0.3"), (404, "--total-timeout 0.3")] {
        let server = Server::new([Answer::new(status, &[], &body)]);
        let words = format!("{limit} --max-attempts 1 -o f --retry-on body:/(x{{1,32}}){{1,32}}y/");
        ask(&lab, &words, &server).exited(28).says(&["300 ms"]);
    }
}
