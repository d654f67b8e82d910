//! What a person in front of a terminal is shown of a transfer and a wait, and nobody else.

use std::time::Duration;

use crate::http;
use crate::server::{Answer, Gate, Server};
use crate::support::{Lab, PROMPT, Terminal};

/// Half of a body that takes longer than what is not worth a line, then the rest.
fn slow(gate: &Gate) -> Server {
    let half = Answer::head(200, &["Content-Length: 40"]).drip([b'x'; 20], Duration::from_millis(100));
    Server::new([half.wait(gate).send([b'y'; 20])])
}

#[test]
fn a_transfer_that_takes_its_time_is_shown_and_nothing_is_left_of_that() {
    let lab = Lab::new();
    let gate = Gate::default();
    let server = slow(&gate);
    let mut terminal = Terminal::shell(&lab);
    terminal.line(&format!("retryx http -o f {}", server.url("/")));
    terminal.wait_for("received [");
    terminal.wait_for("% of 40 B");
    gate.open();
    let rest = terminal.wait_for(PROMPT);
    assert!(rest.contains("\r\u{1b}[K"), "{rest:?}");
    terminal.status_is(0);
    assert_eq!(lab.read("f"), "x".repeat(20) + &"y".repeat(20));
}

#[test]
fn a_line_is_never_longer_than_the_terminal_is_wide() {
    let lab = Lab::new();
    let drips = Answer::head(200, &["Content-Length: 4000"]).drip([b'x'; 2000], Duration::from_millis(50));
    let server = Server::new([drips]);
    let mut terminal = Terminal::shell(&lab);
    terminal.resize(24, 50);
    terminal.line(&format!("retryx http -o f {}", server.url("/")));
    terminal.wait_for("received ");
    terminal.wait_for("received ");
    let wide = terminal.wait_for("\u{1b}[K");
    assert!(wide.contains("% of 3.9 KiB") && !wide.contains("#]") && !wide.contains(".]"), "{wide:?}");
    terminal.resize(24, 30);
    // The one that was on its way may have the old width.
    terminal.wait_for("received ");
    terminal.wait_for("\rretryx");
    let line = "retryx".to_owned() + terminal.wait_for("\u{1b}[K").trim_end_matches("\u{1b}[K");
    assert_eq!(line.chars().count(), 29, "{line:?}");
    terminal.keys("\x03");
    terminal.wait_for(PROMPT);
}

/// A server that takes nothing is what somebody wants to see.
#[test]
fn an_upload_that_stands_still_is_shown() {
    let lab = Lab::new();
    let door = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", door.local_addr().expect("an address"));
    std::fs::File::create(lab.path("big")).and_then(|file| file.set_len(30 << 20)).expect("a file");
    let mut terminal = Terminal::shell(&lab);
    terminal.line(&format!("retryx http -T big {url}"));
    terminal.wait_for("sent [");
    terminal.wait_for("sent [");
    terminal.keys("\x03");
    terminal.wait_for(PROMPT);
}

#[test]
fn nobody_else_is_shown_anything() {
    let lab = Lab::new();
    let gate = Gate::default();
    gate.open();
    let server = slow(&gate);
    let run = http(&lab, "-o f", &server.url("/")).finish();
    assert_eq!(run.exited(0).stderr, "");
    let mut terminal = Terminal::shell(&lab);
    for words in ["-s -o f", "-o f 2>err", "-q -o f"] {
        let server = slow(&gate);
        let seen = terminal.run(&format!("retryx http {words} {}", server.url("/")));
        assert!(!seen.contains("received"), "{words}: {seen:?}");
    }
    assert_eq!(lab.read("err"), "");
}

#[test]
fn a_long_wait_is_counted_down() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &[], ""), Answer::new(200, &[], "good\n")]);
    let mut terminal = Terminal::shell(&lab);
    terminal.line(&format!("retryx --delays 3.5 http {}", server.url("/")));
    terminal.wait_for("next attempt in 4 s");
    terminal.wait_for("next attempt in 1 s");
    terminal.wait_for("good");
    terminal.wait_for(PROMPT);
    terminal.status_is(0);
}
