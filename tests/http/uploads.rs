//! What is sent: the same bytes in every attempt, and no more than the server wants.

use std::fs::File;
use std::io::Write as _;

use crate::server::{Answer, Gate, Server};
use crate::support::{Lab, wait_until};
use crate::{ask, http, pattern};

fn two() -> Server {
    let first = Answer::new(503, &["Retry-After: 0", "Connection: close"], "");
    Server::new([first, Answer::raw("").close(), Answer::new(200, &[], "good")])
}

#[test]
fn every_attempt_sends_the_same_bytes() {
    let lab = Lab::new();
    let large = pattern(1_000_000);
    lab.write("large", &large);
    lab.write("small", "a\r\nb\0c\n");
    for (words, body) in [
        ("-X PUT -d hello", &b"hello"[..]),
        ("-X PUT -d @small", b"abc"),
        ("-X PUT --data-binary @small", b"a\r\nb\0c\n"),
        ("-X PUT --data-binary @large", &large),
        ("-T large", &large),
        ("-T - -X PUT", b"from stdin"),
        ("-X PUT -d @-", b"from stdin"),
        ("-X PUT --data-binary @-", b"from stdin"),
        ("-X PUT --json {}", b"{}"),
        ("-d a -d b --idempotent", b"a&b"),
    ] {
        let server = two();
        let run = http(&lab, words, &server.url("/")).input(b"from stdin").finish();
        run.exited(0).stopped(3, "success");
        for request in server.requests() {
            assert!(request.body() == body, "{words}: {:?}", request.head());
            assert_eq!(request.value("content-length"), Some(body.len().to_string()));
        }
    }
}

#[test]
fn a_form_is_the_same_in_every_attempt() {
    let lab = Lab::new();
    lab.write("f.txt", "content");
    let server = two();
    ask(&lab, "-F a=1 -F b=@f.txt --idempotent", &server).exited(0);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.raw == requests[0].raw), "{requests:?}");
    let body = String::from_utf8_lossy(requests[0].body()).into_owned();
    assert!(body.contains("name=\"a\"\r\n\r\n1\r\n") && body.contains("filename=\"f.txt\""), "{body}");
}

// What does not fit into memory is kept in a file without a name.
#[test]
fn a_long_input_is_kept() {
    let lab = Lab::new();
    let long = pattern(9 * 1024 * 1024);
    lab.write("long", &long);
    let server = Server::new([Answer::new(503, &[], ""), Answer::new(200, &[], "")]);
    let run = http(&lab, "-T - -X PUT", &server.url("/")).stdin_file("long").finish();
    run.exited(0).stopped(2, "success");
    assert!(server.requests().iter().all(|request| request.body() == long));
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
}

/// What happens to a file meanwhile.
type Change = fn(&Lab);

#[test]
fn a_file_that_changed_between_attempts_stops_the_run() {
    let lab = Lab::new();
    let changes: [Change; 4] = [
        |lab| drop(lab.write("f", "other")),
        |lab| File::options().append(true).open(lab.path("f")).unwrap().write_all(b"more").unwrap(),
        |lab| std::fs::remove_file(lab.path("f")).unwrap(),
        |lab| {
            lab.write("g", "hello");
            std::fs::rename(lab.path("g"), lab.path("f")).unwrap();
        },
    ];
    for (words, change) in
        ["-T f", "-X PUT --data-binary @f"].iter().flat_map(|words| changes.map(|change| (words, change)))
    {
        lab.write("f", "hello");
        let gate = Gate::default();
        // The answer is held back until the change is made.
        let bad = Answer::default().wait(&gate).send("HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n");
        let server = Server::new([bad, Answer::new(200, &[], "")]);
        let run = http(&lab, words, &server.url("/")).start();
        // All of the first attempt's body is sent.
        wait_until("the body has come", || server.requests().first().is_some_and(|first| first.body() == b"hello"));
        change(&lab);
        gate.open();
        let run = run.finish();
        run.exited(26).stopped(2, "permanent").says(&["f has changed since"]);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_file_that_is_missing_stops_before_anything() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "")]);
    for words in ["-T nowhere", "-d @nowhere", "--data-binary @nowhere", "-F a=@nowhere", "-T home"] {
        let run = http(&lab, words, &server.url("/")).finish();
        run.exited(125);
        assert!(run.stderr.contains("nowhere") || run.stderr.contains("home"), "{}", run.stderr);
    }
    assert_eq!(server.requests().len(), 0);
}

// The server says no after the head, while megabytes are still to be sent.
#[test]
fn an_early_answer_is_read_and_believed() {
    let lab = Lab::new();
    lab.write("large", pattern(32 * 1024 * 1024));
    for (status, attempts) in [(413, 1), (401, 1), (503, 2)] {
        for ending in [
            (|answer: Answer| answer.close()) as fn(Answer) -> Answer,
            // Unread bytes make a reset of a close, too.
            |answer| answer.reset(),
            |answer| answer.stall(),
        ] {
            let server =
                Server::by(move |_, _| ending(Answer::new(status, &["Connection: close"], "too much")).early());
            let run = ask(&lab, "-T large --max-attempts 2 --fail-with-body", &server);
            let seen = run.each("attempt_finished", "http_status");
            run.exited(22);
            assert_eq!(seen, vec![status; attempts]);
        }
    }
}

#[test]
fn an_early_answer_without_a_reset_is_never_lost() {
    let lab = Lab::new();
    lab.write("large", pattern(32 * 1024 * 1024));
    for words in ["-T large", "--data-binary @large"] {
        let server = Server::by(|_, _| Answer::new(413, &[], "too much").early().stall());
        let run = ask(&lab, &format!("{words} --fail-with-body"), &server);
        run.exited(22).stopped(1, "permanent");
        assert_eq!(run.text(), "too much");
    }
}

#[test]
fn provisional_answers_are_passed_over() {
    let lab = Lab::new();
    let server = Server::new([Answer::raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
        .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")]);
    let run = ask(&lab, "-d x", &server);
    run.exited(0);
    assert_eq!(run.text(), "good");
}

#[test]
fn a_query_is_made_of_data() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &[], ""), Answer::new(200, &[], "")]);
    ask(&lab, "-G -d a=1 -d b=2", &server).exited(0);
    assert_eq!(server.lines(), ["GET /?a=1&b=2", "GET /?a=1&b=2"]);
    assert!(server.requests().iter().all(|request| request.value("content-length").is_none()));
}

// The library's own standard input takes a closed one for an empty one.
#[test]
fn input_that_cannot_be_read_is_no_empty_body() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "")]);
    for words in ["-T -", "-d @-", "--data-binary @-", "-F x=@-", "-H @-"] {
        for closed in ["0<&-", "0>written"] {
            let url = server.url("/");
            let run = lab.shell(&format!("retryx http {words} {url} {closed}")).finish();
            run.exited(125).says(&["bad file descriptor"]);
        }
    }
    assert!(server.requests().is_empty());
}
