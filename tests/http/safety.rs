//! Which requests are made again, and which not.

use rustix::process::Signal;

use crate::server::{Answer, Server};
use crate::support::Lab;
use crate::{ask, http};

/// What can become of a request that reached a server.
fn fates() -> Vec<(Answer, i32)> {
    vec![
        (Answer::raw("").close(), 52),
        (Answer::raw("").reset(), 56),
        (Answer::raw("HTTP/1.1 2").close(), 56),
        (Answer::new(500, &[], ""), 22),
        (Answer::new(502, &[], ""), 22),
        (Answer::new(503, &[], ""), 22),
        (Answer::new(503, &["Retry-After: soon"], ""), 22),
        (Answer::new(504, &["Retry-After: 0"], ""), 22),
        (Answer::head(200, &["Content-Length: 9"]).send("half").close(), 18),
    ]
}

#[test]
fn a_post_that_may_have_been_acted_on_is_made_once() {
    let lab = Lab::new();
    for words in ["-d x", "-X PATCH -d x", "-X POST", "--json {}", "-X FROB"] {
        for (fate, code) in fates() {
            let server = Server::new([fate, Answer::new(200, &[], "good")]);
            let run = ask(&lab, words, &server);
            run.exited(code).stopped(1, "unsafe_request");
            run.says(&["may have been acted on", "--idempotency-key", "--idempotent"]);
            assert_eq!((run.text(), server.requests().len()), (String::new(), 1), "{words}");
        }
    }
}

#[test]
fn a_timeout_of_a_post_is_not_safe_either() {
    let lab = Lab::new();
    let server = Server::new([Answer::silence(), Answer::new(200, &[], "good")]);
    let run = ask(&lab, "-d x -m 0.3", &server);
    run.exited(28).stopped(1, "unsafe_request").says(&["may have been acted on"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_post_is_repeated_where_it_was_not_acted_on() {
    let lab = Lab::new();
    for bad in [Answer::new(429, &[], ""), Answer::new(503, &["Retry-After: 0"], "")] {
        let server = Server::new([bad, Answer::new(200, &[], "good")]);
        let run = ask(&lab, "-d x", &server);
        run.exited(0).stopped(2, "success");
        let bodies: Vec<_> = server.requests().iter().map(|request| request.body().to_vec()).collect();
        assert_eq!(bodies, [b"x", b"x"]);
    }
    // Nobody listens at first.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let run = http(&lab, "--max-attempts unlimited --mode fixed -d x", &format!("http://{address}/"));
    let run = run.start();
    run.events.wait("attempt_finished", 2);
    // The port may have been given to somebody else meanwhile; then there is nothing to see.
    let Ok(listener) = std::net::TcpListener::bind(address) else { return };
    let server = Server::at(listener, |_, _| Answer::new(200, &[], "good"));
    let run = run.finish();
    run.exited(0);
    assert_eq!((run.text(), server.requests().len()), ("good".to_owned(), 1));
    assert_eq!(run.of("attempt_finished")[0]["exit_code"], 7);
}

#[test]
fn a_key_that_is_none_makes_nothing_safe() {
    let lab = Lab::new();
    lab.write("head", "Idempotency-Key: k\n");
    for words in ["-H Idempotency-Key;", "-H Idempotency-Key:"] {
        let server = Server::new([Answer::new(500, &[], ""), Answer::new(200, &[], "good")]);
        ask(&lab, &format!("-d x {words}"), &server).exited(22).stopped(1, "unsafe_request");
    }
    let server = Server::new([Answer::new(200, &[], "good")]);
    for key in ["", " "] {
        let run = http(&lab, "-d x --idempotency-key", key).arg(server.url("/")).finish();
        run.exited(125).says(&["--idempotency-key: ''", "auto"]);
    }
    for words in ["-H Idempotency-Key:q", "-H idempotency-key;", "-H @head"] {
        let run = ask(&lab, &format!("-d x --idempotency-key auto {words}"), &server);
        run.exited(125).says(&["--idempotency-key and a header", "leave one out"]);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn an_idempotent_post_is_repeated_with_the_same_key() {
    let lab = Lab::new();
    for words in ["--idempotent", "--idempotency-key k1", "--idempotency-key auto", "-H Idempotency-Key:k2"] {
        for (fate, _) in fates() {
            let server = Server::new([fate, Answer::new(200, &[], "good")]);
            let run = ask(&lab, &format!("-d x {words}"), &server);
            run.exited(0).stopped(2, "success");
            assert_eq!(run.text(), "good");
            let keys: Vec<_> = server.requests().iter().map(|request| request.value("idempotency-key")).collect();
            assert_eq!(keys[0], keys[1]);
            assert_eq!(keys[0].is_some(), words != "--idempotent", "{words}");
        }
    }
    let key = || {
        let server = Server::new([Answer::new(200, &[], "")]);
        ask(&lab, "-d x --idempotency-key auto", &server).exited(0);
        server.requests()[0].value("idempotency-key").expect("a key")
    };
    let (one, other) = (key(), key());
    assert!(one != other && one.len() >= 32, "{one} {other}");
}

#[test]
fn safe_methods_are_repeated_whatever_happened() {
    let lab = Lab::new();
    for words in ["-X GET", "-X PUT -d x", "-X DELETE", "-X OPTIONS", "-X TRACE", "-T f"] {
        lab.write("f", "x");
        for (fate, _) in fates() {
            let server = Server::new([fate, Answer::new(200, &[], "good")]);
            let run = ask(&lab, words, &server);
            run.exited(0).stopped(2, "success");
            assert_eq!(run.text(), "good", "{words}");
        }
    }
    let server = Server::new([Answer::raw("").close(), Answer::head(200, &["Content-Length: 5"])]);
    ask(&lab, "-I", &server).exited(0).stopped(2, "success");
    assert_eq!(server.lines(), ["HEAD /", "HEAD /"]);
}

// A redirect that keeps the request as it is was no acting on it; one that turns it into a
// GET was.
#[test]
fn redirects_of_a_post_are_told_apart() {
    let lab = Lab::new();
    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("Location: http://{}/", listener.local_addr().expect("an address"))
    };
    for (status, attempts, reason) in [(307, 2, "attempts"), (308, 2, "attempts"), (303, 1, "unsafe_request")] {
        let server = Server::new([Answer::new(status, &[&nowhere], "")]);
        let run = ask(&lab, "-L -d x --max-attempts 2", &server);
        run.exited(7).stopped(attempts, reason);
        assert_eq!(server.requests().len() as u64, attempts);
    }
    // What the answer to the GET says is not said of the POST.
    for status in [301, 302, 303] {
        let server = Server::by(move |_, request| {
            let is_post = request.line().starts_with("POST");
            if is_post { Answer::new(status, &["Location: /y"], "") } else { Answer::new(429, &["Retry-After: 0"], "") }
        });
        let run = ask(&lab, "-L -d x --max-attempts 3 --base-delay 0 --throttle-base-delay 0", &server);
        run.exited(22).stopped(1, "unsafe_request");
        assert_eq!(server.lines(), ["POST /", "GET /y"]);
    }
}

// The key stays with its origin, and so does the safety.
#[test]
fn a_key_that_was_left_behind_makes_nothing_safe() {
    let lab = Lab::new();
    for (words, attempts) in
        [("--idempotency-key k", 1), ("--idempotency-key k --location-trusted", 2), ("--idempotent", 2)]
    {
        let other = Server::new([Answer::raw("").close(), Answer::new(200, &[], "good")]);
        let there = format!("Location: {}", other.url("/"));
        let server = Server::by(move |_, _| Answer::new(307, &[&there], ""));
        let run = ask(&lab, &format!("-L -d x {words}"), &server);
        run.exited(if attempts == 1 { 52 } else { 0 });
        if attempts == 1 {
            run.stopped(1, "unsafe_request").says(&["a redirect led to another origin"]);
        }
        assert_eq!((other.requests().len(), run.of("attempt_finished").len()), (attempts, attempts), "{words}");
        assert_eq!(other.requests()[0].value("idempotency-key").is_some(), words.contains("trusted"));
    }
}

#[test]
fn a_signal_is_not_an_unsafe_request() {
    let lab = Lab::new();
    let server = Server::new([Answer::silence()]);
    let run = http(&lab, "-d x", &server.url("/")).start();
    server.await_requests(1);
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
}
