//! Connections: kept where they can be, left where they cannot; and what is told of requests.

use crate::server::{Answer, Server};
use crate::support::Lab;
use crate::{ask, http};

#[test]
fn one_connection_serves_all_attempts() {
    let lab = Lab::new();
    for bad in [
        Answer::new(503, &[], "bad"),
        Answer::head(503, &["Transfer-Encoding: chunked"]).send("3\r\nbad\r\n0\r\n\r\n"),
        Answer::new(503, &[], vec![b'x'; 200_000]),
        Answer::raw("HTTP/1.0 503 x\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nbad"),
        Answer::head(503, &["Content-Length: 0"]),
    ] {
        let server = Server::new([bad.clone(), bad, Answer::new(200, &[], "good")]);
        let run = ask(&lab, "", &server);
        run.exited(0).stopped(3, "success");
        assert_eq!((run.text(), server.connections()), ("good".to_owned(), 1));
    }
    // Redirects too.
    let server = Server::by(|_, request| {
        if request.line().ends_with('/') {
            Answer::new(302, &["Location: /b"], "moved")
        } else {
            Answer::new(200, &[], "good")
        }
    });
    ask(&lab, "-L", &server).exited(0);
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[test]
fn a_connection_that_cannot_be_used_again_is_not() {
    let lab = Lab::new();
    for bad in [
        Answer::new(503, &["Connection: close"], "bad"),
        Answer::raw("HTTP/1.0 503 x\r\nContent-Length: 3\r\n\r\nbad"),
        Answer::new(503, &[], "bad").close(),
        Answer::new(503, &[], "bad").reset(),
        Answer::head(503, &[]).send("bad").close(),
        // A body too long to be worth it.
        Answer::new(503, &[], vec![b'x'; 3_000_000]),
        Answer::head(200, &["Content-Length: 9"]).send("half").close(),
    ] {
        let server = Server::new([bad.clone(), bad, Answer::new(200, &[], "good")]);
        let run = ask(&lab, "", &server);
        run.exited(0).stopped(3, "success");
        assert_eq!((run.text(), server.connections()), ("good".to_owned(), 3));
    }
}

// The server closes a kept connection at the moment at which it is used again: that is no
// failure of the request.
#[test]
fn a_connection_that_was_closed_meanwhile_does_no_harm() {
    let lab = Lab::new();
    for end in [Answer::raw("").close(), Answer::raw("").reset()] {
        let server = Server::by(move |number, request| match (number, request.connection) {
            (0, _) => Answer::new(503, &[], "bad"),
            (_, 0) => end.clone(),
            _ => Answer::new(200, &[], "good"),
        });
        let run = ask(&lab, "--max-attempts 2", &server);
        run.exited(0).stopped(2, "success");
        assert_eq!((run.text(), server.requests().len(), server.connections()), ("good".to_owned(), 3, 2));
    }
    // A request that must not be made twice does not take the risk.
    let server = Server::new([Answer::new(429, &[], "bad"), Answer::new(200, &[], "good")]);
    ask(&lab, "-d x", &server).exited(0).stopped(2, "success");
    assert_eq!((server.requests().len(), server.connections()), (2, 2));
}

// B91.
#[test]
fn nobody_there_is_a_failure_that_can_pass() {
    let lab = Lab::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for host in ["127.0.0.1", "localhost"] {
        let run = http(&lab, "--max-attempts 2", &format!("http://{host}:{port}/")).finish();
        run.exited(7).stopped(2, "attempts").says(&[host, "127.0.0.1", "refused"]);
        for event in run.of("attempt_finished") {
            assert_eq!((&event["outcome"], &event["exit_code"]), (&"transport_failed".into(), &7.into()));
            assert_eq!((&event["class"], &event["rule"]), (&"transient".into(), &"default:transport".into()));
            assert!(event["error"].as_str().is_some_and(|error| error.contains("127.0.0.1")));
        }
    }
    let server = Server::new([Answer::new(200, &[], "good")]);
    let run = http(&lab, "--max-attempts 1", &format!("http://localhost:{}/", server.port())).finish();
    assert_eq!(run.exited(0).text(), "good");
}

#[test]
fn no_secret_is_told() {
    let lab = Lab::new();
    let events = |lab: &Lab| {
        let mut all = String::new();
        for entry in std::fs::read_dir(lab.path("")).unwrap().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "events") {
                all += &std::fs::read_to_string(entry.path()).unwrap();
            }
        }
        all
    };
    lab.write("header", "Authorization: Bearer s3cret-header\n");
    lab.write("data", "s3cret-data");
    let answers = [
        Answer::new(503, &["Retry-After: soon"], ""),
        Answer::raw("").close(),
        Answer::raw("junk").close(),
        Answer::new(302, &["Location: http://u:s3cret-there@127.0.0.1:1/?t=s3cret-there#s3cret-there"], ""),
    ];
    let server = Server::new(answers);
    let url =
        format!("http://user:s3cret-password@127.0.0.1:{}/path?token=s3cret-query#s3cret-fragment", server.port());
    let words =
        "-vv --log-arguments --max-attempts 4 -L -H @header -d @data --idempotent -u me:s3cret-user -b s=s3cret-cookie";
    let run = http(&lab, words, &url).finish();
    assert_eq!(run.status.code(), Some(7), "{}", run.stderr);
    assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    assert!(!events(&lab).contains("s3cret"), "{}", events(&lab));
    assert!(run.text().is_empty());
    assert!(server.requests()[0].head().contains("s3cret-header"));
    // Nor in what is said of a URL that is none, nor of a header.
    for (words, url) in [
        ("", "http://user:s3cret@[::1/?t=s3cret"),
        ("", "ftp://user:s3cret@x/?t=s3cret"),
        ("", "http://user:s3cret@x:99999/"),
        ("", "http://user:s3cret@x:0/?t=s3cret"),
        ("-x http://u:s3cret@[::1", "http://127.0.0.1:1/"),
        ("-x socks5://u:s3cret@x", "http://127.0.0.1:1/"),
        ("-x http://u:s3cret@127.0.0.1:1", "http://127.0.0.1:1/"),
    ] {
        let run = http(&lab, &format!("--max-attempts 1 {words}"), url).finish();
        assert_ne!(run.status.code(), Some(0));
        assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    }
    let run = lab.run("http -H").arg("X-Key: s3cret\r\nX: y").arg("http://127.0.0.1:1/").finish();
    run.exited(125);
    assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    assert!(!events(&lab).contains("s3cret"), "{}", events(&lab));
}

#[test]
fn attempts_and_waits_can_be_printed() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(503, &[], "bad"), Answer::new(200, &["Content-Type: a/b"], "good")]);
    let run = lab
        .run("--base-delay 50ms --jitter none http -w")
        .arg("|%{http_code} %{num_attempts} %{num_retries} %{time_waited} %{size_download} %{content_type}|\\n")
        .arg(server.url("/"))
        .finish();
    let text = run.exited(0).text();
    let words: Vec<_> = text.trim_start_matches("good|").split(' ').collect();
    assert_eq!((words[..3].join(" "), words[4], words[5]), ("200 2 1".to_owned(), "4", "a/b|\n"), "{text}");
    assert!(words[3].parse::<f64>().is_ok_and(|waited| (0.05..5.0).contains(&waited)), "{text}");
    // The heads of the last attempt.
    let server = Server::new([Answer::new(503, &["X: first"], "bad"), Answer::new(200, &["X: second"], "good")]);
    assert_eq!(ask(&lab, "-D heads", &server).exited(0).text(), "good");
    assert_eq!(lab.read("heads"), "HTTP/1.1 200 Whatever\r\nX: second\r\nContent-Length: 4\r\n\r\n");
    let server = Server::new([Answer::head(404, &["X: y", "Content-Length: 10"])]);
    let run = ask(&lab, "-I", &server);
    assert_eq!(run.exited(22).text(), "HTTP/1.1 404 Whatever\r\nX: y\r\nContent-Length: 10\r\n\r\n");
}
