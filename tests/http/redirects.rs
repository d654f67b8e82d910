//! `-L`: where it leads, with what, and what stays behind.

use std::net::TcpListener;

use crate::server::{Answer, Request, Server};
use crate::support::Lab;
use crate::{ask, http};

fn to(status: u16, location: &str) -> Answer {
    Answer::new(status, &[&format!("Location: {location}")], "moved")
}

// B93.
#[test]
fn methods_and_bodies_go_on_as_the_standard_says() {
    let lab = Lab::new();
    for (status, words, first, next, body) in [
        (301, "-d hello", "POST", "GET", ""),
        (302, "-d hello", "POST", "GET", ""),
        (303, "-d hello", "POST", "GET", ""),
        (307, "-d hello", "POST", "POST", "hello"),
        (308, "-d hello", "POST", "POST", "hello"),
        (301, "-X PUT -d hello", "PUT", "PUT", "hello"),
        (302, "-X DELETE", "DELETE", "DELETE", ""),
        (303, "-T f", "PUT", "GET", ""),
        (307, "-T f", "PUT", "PUT", "hello"),
        (302, "-I", "HEAD", "HEAD", ""),
        (303, "-I", "HEAD", "HEAD", ""),
        (303, "", "GET", "GET", ""),
    ] {
        lab.write("f", "hello");
        // The second place is unwell at first: the attempt after starts at the first again.
        let server = Server::by(move |number, request: &Request| match (request.line().contains("/a"), number) {
            (true, _) if request.line().starts_with("HEAD") => Answer::head(status, &["Location: /b"]),
            (true, _) => to(status, "/b"),
            (_, 0..2) => Answer::new(503, &["Retry-After: 0"], ""),
            _ => Answer::new(200, &[], if request.line().starts_with("HEAD") { "" } else { "good" }),
        });
        let run = http(&lab, &format!("-L --idempotent {words}"), &server.url("/a")).finish();
        run.exited(0).stopped(2, "success");
        let expected = [format!("{first} /a"), format!("{next} /b")];
        assert_eq!(server.lines(), [&expected[..], &expected[..]].concat(), "{status} {words}");
        for request in server.requests().iter().filter(|request| request.line().ends_with("/b")) {
            assert_eq!(request.body(), body.as_bytes(), "{status} {words}");
            let kept = !body.is_empty();
            assert_eq!(request.value("content-length").is_some(), kept, "{status} {words}: {}", request.head());
            assert_eq!(request.value("content-type").is_some(), kept && words.contains("-d"), "{}", request.head());
        }
    }
}

#[test]
fn without_l_a_redirect_is_an_answer() {
    let lab = Lab::new();
    let server = Server::new([to(302, "/b")]);
    let run = ask(&lab, "", &server);
    run.exited(0).stopped(1, "success");
    assert_eq!((run.text(), server.requests().len()), ("moved".to_owned(), 1));
}

#[test]
fn locations_are_joined_to_where_they_come_from() {
    let lab = Lab::new();
    for (location, line) in [
        ("/b", "GET /b"),
        ("b", "GET /x/b"),
        ("../b", "GET /b"),
        ("?q=1", "GET /x/a?q=1"),
        ("b c", "GET /x/b%20c"),
        ("b#fragment", "GET /x/b"),
        ("//127.0.0.1:PORT/n", "GET /n"),
        ("HTTP://127.0.0.1:PORT", "GET /"),
        ("  /b  ", "GET /b"),
        ("/\u{e9}", "GET /%C3%A9"),
        // A password in it is nobody's that is known.
        ("http://u:p@127.0.0.1:PORT/n", "GET /n"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let location = location.replace("PORT", &listener.local_addr().unwrap().port().to_string());
        let server = Server::at(
            listener,
            move |number, _| if number == 0 { to(302, &location) } else { Answer::new(200, &[], "good") },
        );
        let run = http(&lab, "-L", &server.url("/x/a?old=1")).finish();
        run.exited(0);
        assert_eq!(server.lines()[1], line);
        assert_eq!(server.requests()[1].value("authorization"), None);
    }
}

#[test]
fn loops_and_chains_end() {
    let lab = Lab::new();
    for (words, requests) in [("", 51), ("--max-redirs 3", 4), ("--max-redirs 0", 1)] {
        let server = Server::new([to(302, "/again")]);
        let run = ask(&lab, &format!("-L {words}"), &server);
        run.exited(47).stopped(1, "permanent").says(&["redirects", "--max-redirs"]);
        assert_eq!((server.requests().len(), server.connections()), (requests, 1));
    }
    // Without a limit there is none.
    let server = Server::by(|number, _| if number < 200 { to(302, "/again") } else { Answer::new(200, &[], "good") });
    assert_eq!(ask(&lab, "-L --max-redirs -1", &server).exited(0).text(), "good");
    let server = Server::by(|number, _| if number < 3 { to(302, "/again") } else { Answer::new(200, &[], "good") });
    assert_eq!(ask(&lab, "-L --max-redirs 3", &server).exited(0).text(), "good");
}

#[test]
fn what_is_no_http_is_not_followed() {
    let lab = Lab::new();
    lab.write("secret", "secret");
    for location in ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x/", "javascript:1", "data:text/plain,x"] {
        let server = Server::new([to(302, location)]);
        let run = ask(&lab, "-L", &server);
        run.exited(1).stopped(1, "permanent").says(&["is not followed"]);
        assert_eq!(run.text(), "");
    }
    for location in ["http://", "http://[::1", "http://x:99999/", "//"] {
        let server = Server::new([to(302, location)]);
        ask(&lab, "-L", &server).exited(3).stopped(1, "permanent");
    }
    // No Location, or an empty one.
    let server = Server::new([Answer::new(302, &[], "here")]);
    assert_eq!(ask(&lab, "-L", &server).exited(0).text(), "here");
}

/// Whatever can carry a secret, and what cannot.
const WORDS: [&str; 22] = [
    "-u",
    "user:password",
    "-b",
    "a=cookie",
    "-e",
    "http://x/?referer=secret",
    "-H",
    "X-Api-Key: key",
    "-H",
    "Proxy-Authorization: proxy",
    "-H",
    "Accept-Language: de",
    "-A",
    "agent",
    "-r",
    "0-9",
    "-H",
    "If-None-Match: \"t\"",
    "-H",
    "Cookie2: c2",
    "-H",
    "Accept: a/b",
];

fn secrets(request: &Request) -> Vec<&'static str> {
    let names = ["Authorization", "Cookie", "Cookie2", "Referer", "X-Api-Key", "Proxy-Authorization"];
    names.into_iter().filter(|name| !request.values(name).is_empty()).collect()
}

#[test]
fn credentials_stay_with_their_origin() {
    let lab = Lab::new();
    let all = ["Authorization", "Cookie", "Cookie2", "Referer", "X-Api-Key", "Proxy-Authorization"];
    for (flag, same, kept) in [
        ("-L", true, true),
        ("-L", false, false),
        ("--location-trusted", false, true),
        ("--location-trusted", true, true),
    ] {
        // Another port is another origin, and so is another name of the same host.
        for name in ["127.0.0.1", "localhost"] {
            let other = Server::new([Answer::new(200, &[], "good")]);
            let other_port = other.port();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let own = listener.local_addr().unwrap().port();
            let location = match (same, name) {
                (true, _) => format!("http://127.0.0.1:{own}/b"),
                (false, "localhost") => format!("http://localhost:{own}/b"),
                _ => format!("http://127.0.0.1:{other_port}/b"),
            };
            let first = Server::at(listener, move |_, request| {
                if request.line().ends_with("/a") { to(302, &location) } else { Answer::new(200, &[], "good") }
            });
            let run = lab.run("-4 http".trim_start_matches("-4 ")).arg(flag).args(WORDS).arg(first.url("/a")).finish();
            run.exited(0);
            assert_eq!(secrets(&first.requests()[0]), all);
            let requests = [first.requests(), other.requests()].concat();
            let last = requests.iter().find(|request| request.line().ends_with("/b")).expect("it was followed");
            assert_eq!(secrets(last), if kept { all.to_vec() } else { Vec::new() }, "{flag} {}", last.head());
            // What cannot carry any goes on.
            let goes_on = [
                ("User-Agent", "agent"),
                ("Accept-Language", "de"),
                ("Accept", "a/b"),
                ("Range", "bytes=0-9"),
                ("If-None-Match", "\"t\""),
            ];
            for (name, value) in goes_on {
                assert_eq!(last.value(name).as_deref(), Some(value));
            }
            assert!(last.value("host").is_some());
        }
    }
}

#[test]
fn credentials_do_not_come_back() {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let other = Server::by(move |_, _| to(302, &format!("http://127.0.0.1:{own}/back")));
    let there = other.url("/");
    let first = Server::at(listener, move |_, request| {
        if request.line().ends_with("/a") { to(302, &there) } else { Answer::new(200, &[], "good") }
    });
    lab.run("http -L -u user:password").arg(first.url("/a")).finish().exited(0);
    let requests = first.requests();
    assert!(requests[0].value("authorization").is_some() && requests[1].value("authorization").is_none());
}

// The whole body goes to whoever answers; a location cannot smuggle in a header.
#[test]
fn a_location_makes_no_headers() {
    let lab = Lab::new();
    for location in ["/b\r\n X-Evil: 1", "/b\tX-Evil: 1", "/b%0d%0aX-Evil:%201", "/b X-Evil: 1"] {
        let server = Server::by({
            let location = location.to_owned();
            move |number, _| if number == 0 { to(302, &location) } else { Answer::new(200, &[], "good") }
        });
        ask(&lab, "-L", &server);
        for request in server.requests() {
            assert!(request.values("x-evil").is_empty(), "{}", request.head());
        }
    }
}
