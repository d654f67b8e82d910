//! Signals: wherever it hangs, a run ends at once and of the signal; Ctrl-Z holds it.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;

use crate::http;
use crate::limits::Full;
use crate::server::{Answer, Server};
use crate::support::{Lab, PROMPT, Terminal, pause, proc, wait_until};

const ENDS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

fn is_empty(lab: &Lab) {
    let names: Vec<_> = std::fs::read_dir(lab.path("tmp")).expect("a folder").collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(!lab.path("out").exists());
}

#[test]
fn a_signal_ends_an_attempt_at_once() {
    let lab = Lab::new();
    lab.write("large", vec![b'x'; 64 << 20]);
    for signal in ENDS {
        for (words, answer) in [
            ("-o out", Answer::silence()),
            ("-o out", Answer::raw("HTTP/1.1 200 OK\r\nX: ").stall()),
            ("-o out", Answer::head(200, &["Content-Length: 9"]).send("half").stall()),
            ("", Answer::head(200, &["Content-Length: 9"]).send("half").stall()),
            // It does not read what it is sent.
            ("-T large", Answer::default().early().wait(&crate::server::Gate::default())),
        ] {
            let server = Server::new([answer]);
            let run = http(&lab, words, &server.url("/")).start();
            server.await_requests(1);
            run.signal(signal);
            let run = run.finish();
            run.died_of(signal).stopped(1, "interrupted");
            let event = run.of("attempt_finished").swap_remove(0);
            assert_eq!((&event["outcome"], &event["signal"]), (&"interrupted".into(), &signal.as_raw().into()));
            assert_eq!((run.text(), server.requests().len()), (String::new(), 1));
            is_empty(&lab);
        }
    }
}

#[test]
fn a_signal_ends_connecting() {
    let lab = Lab::new();
    // It takes the connection, and never says a word of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    for signal in ENDS {
        let run = http(&lab, "-k -o out", &url).start();
        let (_stream, _) = listener.accept().unwrap();
        run.signal(signal);
        run.finish().died_of(signal).stopped(1, "interrupted");
        is_empty(&lab);
        // Nor the connection.
        let full = Full::new().expect("a full queue");
        let run = http(&lab, "-o out", &format!("http://{}/", full.address)).start();
        run.events.wait("attempt_started", 1);
        run.signal(signal);
        run.finish().died_of(signal).stopped(1, "interrupted");
        is_empty(&lab);
    }
}

#[test]
fn a_signal_ends_a_wait() {
    let lab = Lab::new();
    for signal in ENDS {
        let server = Server::new([Answer::new(503, &[], "")]);
        let run = lab.run("--base-delay 1h --max-backoff 1h --jitter none http -o out").arg(server.url("/")).start();
        run.events.wait("retry_scheduled", 1);
        run.signal(signal);
        run.finish().died_of(signal).stopped(1, "interrupted");
        assert_eq!(server.requests().len(), 1);
        is_empty(&lab);
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let lab = Lab::new();
    let gate = crate::server::Gate::default();
    let good = Answer::default().wait(&gate).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
    let server = Server::new([good]);
    let run = http(&lab, "", &server.url("/")).ignoring(&[Signal::HUP, Signal::INT]).start();
    server.await_requests(1);
    run.signal(Signal::HUP);
    run.signal(Signal::INT);
    run.signal(Signal::USR1);
    gate.open();
    assert_eq!(run.finish().exited(0).text(), "good");
}

#[test]
fn the_suspend_key_holds_an_attempt_and_fg_goes_on() {
    let lab = Lab::new();
    let gate = crate::server::Gate::default();
    let good = Answer::default().wait(&gate).send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ngood\n");
    let server = Server::new([Answer::new(503, &["Retry-After: 0"], ""), good]);
    let mut terminal = Terminal::shell(&lab);
    // The wait at the prompt is longer than the attempt may take, and counts against nothing.
    terminal.line(&format!("retryx --base-delay 0 --timeout 5 http {}", server.url("/")));
    server.await_requests(2);
    terminal.keys("\x1a");
    terminal.wait_for(PROMPT);
    pause(Duration::from_millis(5500));
    terminal.line("fg");
    gate.open();
    terminal.wait_for("good");
    terminal.wait_for(PROMPT);
    terminal.status_is(0);
}

#[test]
fn a_stop_holds_everything_and_counts_against_nothing() {
    let lab = Lab::new();
    let gate = crate::server::Gate::default();
    let good = Answer::default().wait(&gate).send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
    let server = Server::new([good]);
    let run = http(&lab, "-m 3 --max-attempts 1", &server.url("/")).start();
    server.await_requests(1);
    run.signal(Signal::TSTP);
    // Nobody is there to continue an orphaned group, so the kernel does not stop it by TSTP.
    let stopped = || proc::is_stopped(run.pid);
    run.signal(Signal::STOP);
    wait_until("it is stopped", stopped);
    run.signal(Signal::CONT);
    wait_until("it goes on", || !stopped());
    gate.open();
    assert_eq!(run.finish().exited(0).text(), "good");
}
