//! What statuses and error codes are taken for, what is written of their bodies, and what the
//! events tell.

use crate::server::{Answer, Server};
use crate::support::{Lab, texts};
use crate::{ask, http};

/// One run for each case, all at once: a server answers `/STATUS` with it.
fn attempts(lab: &Lab, words: &str, statuses: &[u16]) -> Vec<(u16, usize, String)> {
    let server = Server::by(|_, request| {
        let line = request.line();
        let status = line.rsplit('/').next().and_then(|status| status.parse().ok()).unwrap_or(500);
        Answer::new(status, &[], "no")
    });
    let runs: Vec<_> = statuses
        .iter()
        .map(|status| {
            (*status, http(lab, &format!("--max-attempts 2 {words}"), &server.url(&format!("/{status}"))).start())
        })
        .collect();
    let finish = |(status, run): (u16, crate::support::Running)| {
        let run = run.finish();
        run.exited(22);
        assert_eq!(run.stdout, b"", "{status}");
        let finished = run.of("attempt_finished");
        assert_eq!(finished.len(), run.of("attempt_started").len());
        for event in &finished {
            assert_eq!((&event["outcome"], &event["http_status"]), (&"responded".into(), &status.into()));
            assert!(event["exit_code"].is_null() && event["signal"].is_null() && event["timed_out"] == false);
        }
        (status, finished.len(), texts(&finished, "class").swap_remove(0))
    };
    runs.into_iter().map(finish).collect()
}

// B81, as design.md §3 has it: 408 and 425 are retried only where that is asked for.
#[test]
fn each_status_has_its_class() {
    let lab = Lab::new();
    let all: Vec<u16> = (400..=431).chain(500..=511).collect();
    for mode in ["standard", "google", "adaptive", "legacy"] {
        for (status, attempts, class) in attempts(&lab, &format!("--mode {mode}"), &all) {
            let (most, expected) = match (status, mode) {
                (500 | 502 | 503 | 504, _) => (2, "transient"),
                (429, "google") => (1, "permanent"),
                (429, _) | (509, "legacy") => (2, "throttling"),
                _ => (1, "permanent"),
            };
            assert_eq!((attempts, &*class), (most, expected), "{mode} {status}");
        }
    }
}

#[test]
fn statuses_are_retried_where_that_is_asked_for() {
    let lab = Lab::new();
    for (words, expected) in [
        ("--retry-on http:404", [(404, 2), (408, 1), (503, 1), (429, 1)]),
        ("-f --retry-on http:404", [(404, 2), (408, 1), (503, 1), (429, 1)]),
        ("--retry-on default,http:408", [(404, 1), (408, 2), (503, 2), (429, 2)]),
        ("--retry-on http:4xx", [(404, 2), (408, 2), (503, 1), (429, 2)]),
        ("--fail-on http:5xx", [(404, 1), (408, 1), (503, 1), (429, 2)]),
        ("--mode google --retry-429", [(404, 1), (408, 1), (503, 2), (429, 2)]),
    ] {
        let statuses = expected.map(|(status, _)| status);
        let got: Vec<_> =
            attempts(&lab, words, &statuses).into_iter().map(|(status, count, _)| (status, count)).collect();
        assert_eq!(got, expected, "{words}");
    }
}

#[test]
fn a_service_says_what_it_means() {
    let lab = Lab::new();
    let json = "Content-Type: application/x-amz-json-1.1";
    for (status, fields, body, class, code) in [
        (400, &["x-amzn-errortype: ThrottlingException:http://x"][..], "", "throttling", "ThrottlingException"),
        (400, &[json], r#"{"__type":"com.x#SlowDown"}"#, "throttling", "SlowDown"),
        (400, &[], r#"{"code":"RequestTimeout"}"#, "transient", "RequestTimeout"),
        (400, &["x-amzn-query-error: RequestThrottled;Sender"], "{}", "throttling", "RequestThrottled"),
        (403, &[], "<Error><Code>SlowDown</Code></Error>", "throttling", "SlowDown"),
        (400, &[], r#"{"error":{"code":400,"status":"UNAVAILABLE"}}"#, "transient", "UNAVAILABLE"),
        (400, &[], r#"[{"error":{"status":"RESOURCE_EXHAUSTED"}}]"#, "throttling", "RESOURCE_EXHAUSTED"),
        (400, &[], r#"{"code":"AccessDenied"}"#, "permanent", "AccessDenied"),
        (503, &[], r#"{"code":"AccessDenied"}"#, "transient", "AccessDenied"),
        (403, &["X-RateLimit-Remaining: 0"], "", "throttling", ""),
        (403, &["X-RateLimit-Remaining: 1"], "", "permanent", ""),
    ] {
        let server = Server::new([Answer::new(status, fields, body), Answer::new(200, &[], "good")]);
        let run = ask(&lab, "--max-attempts 2", &server);
        let first = run.of("attempt_finished").swap_remove(0);
        assert_eq!(
            (first["class"].as_str(), first["error_code"].as_str().unwrap_or_default()),
            (Some(class), code),
            "{body}"
        );
        if class == "permanent" {
            run.exited(22);
        } else {
            run.exited(0);
            assert_eq!(run.text(), "good");
        }
    }
}

// What is no failure is not made one by what its body says.
#[test]
fn a_success_is_a_success_whatever_it_says() {
    let lab = Lab::new();
    for (status, fields) in
        [(200, &[][..]), (201, &["x-amzn-errortype: ThrottlingException"]), (302, &["Location: /x"]), (304, &[])]
    {
        let body = if status == 304 { "" } else { r#"{"code":"ThrottlingException"}"# };
        let server = Server::new([Answer::new(status, fields, body)]);
        let run = ask(&lab, "", &server);
        run.exited(0).stopped(1, "success");
        assert_eq!((run.text(), run.stderr.as_str()), (body.to_owned(), ""));
    }
}

#[test]
fn rules_can_look_at_any_body() {
    let lab = Lab::new();
    let answers = || ["pending", "pending", "done"].map(|body| Answer::new(200, &["ETag: \"x\""], body));
    let server = Server::new(answers());
    let run = lab
        .run("--base-delay 0 --retry-on")
        .arg("http:200 and body:/pending/")
        .arg("http")
        .arg(server.url("/"))
        .finish();
    run.exited(0).stopped(3, "success");
    assert_eq!(run.text(), "done");
    // A body that was whole is not continued.
    assert!(server.requests().iter().all(|request| request.value("range").is_none()));

    let server = Server::new(answers());
    let run =
        lab.run("--fail-on").arg("http:200 and body:/pending/").args(["http", "-o", "f"]).arg(server.url("/")).finish();
    run.stopped(1, "permanent");
    assert_ne!(run.status.code(), Some(0));
    assert!(!lab.path("f").exists());
}

// As long as it may be, and whatever becomes of it.
#[test]
fn rules_look_at_the_whole_of_a_body() {
    let lab = Lab::new();
    let long = |line: &str| format!("{}\n{line}\n{}", "x".repeat(1_500_000), "y\n".repeat(10_000));
    for (status, rule) in [
        (200, "http:200 and body:/^pending$/"),
        (200, "http:200 and body:/(pend)ing/"),
        (404, "http:404 and body:/^pending$/"),
        (503, "body:/^pending$/"),
    ] {
        for words in [&[][..], &["-o", "f"], &["--fail-with-body"]] {
            let server =
                Server::new([Answer::new(status, &[], long("pending")), Answer::new(status, &[], long("done"))]);
            let run = lab.run("--base-delay 0 --retry-on").arg(rule).arg("http").args(words).arg(server.url("/"));
            let run = run.finish();
            run.exited(if status == 200 { 0 } else { 22 });
            assert_eq!(server.requests().len(), 2, "{rule} {words:?}: {}", run.stderr);
        }
    }
    // In a part that was continued, and the first 64 KiB of a line.
    let body = long("pending");
    let cut = Server::by(move |number, request| {
        let length = |first: usize| format!("Content-Length: {}", body.len() - first);
        match (number, request.from()) {
            (0, _) => Answer::head(200, &["ETag: \"x\"", &length(0)]).send(&body[..1_500_004]).close(),
            (1, Some(first)) => {
                let range = format!("Content-Range: bytes {first}-{}/{}", body.len() - 1, body.len());
                Answer::head(206, &["ETag: \"x\"", &length(first), &range]).send(&body[first..])
            }
            _ => Answer::new(200, &[], "done"),
        }
    });
    let rule = "http:2xx and body:/^pending$/";
    let run =
        lab.run("--base-delay 0 --retry-on").arg(format!("default,{rule}")).arg("http").arg(cut.url("/")).finish();
    assert_eq!((run.exited(0).text(), cut.requests().len()), ("done".to_owned(), 3));
    let server = Server::new([Answer::new(200, &[], "x".repeat(65_536) + "pending")]);
    lab.run("--retry-on").arg("http:200 and body:/pending/").arg("http").arg(server.url("/")).finish().exited(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn only_a_good_body_is_written_and_once() {
    let lab = Lab::new();
    for words in ["", "-f", "-o -", "-sS"] {
        let server =
            Server::new([Answer::new(503, &[], "bad"), Answer::new(500, &[], "worse"), Answer::new(200, &[], "good")]);
        let run = ask(&lab, words, &server);
        run.exited(0).stopped(3, "success");
        assert_eq!(run.text(), "good", "{words}");
    }
}

// B80.
#[test]
fn the_body_of_the_last_failure_is_shown_where_it_is_asked_for() {
    let lab = Lab::new();
    let answers = || [Answer::new(500, &[], "AAA"), Answer::new(500, &[], "BB"), Answer::new(500, &[], "C")];
    let server = Server::new(answers());
    let run = ask(&lab, "--fail-with-body --max-attempts 3", &server);
    run.exited(22).stopped(3, "attempts");
    assert_eq!(run.text(), "C");

    lab.write("o", "old");
    let server = Server::new(answers());
    let run = ask(&lab, "--fail-with-body --max-attempts 3 -o o", &server);
    run.exited(22).stopped(3, "attempts");
    assert_eq!((run.text(), lab.read("o")), (String::new(), "C".to_owned()));

    // A last attempt without any answer has no body, not even that of another.
    let server = Server::new([Answer::new(500, &[], "AAA"), Answer::raw("").close()]);
    let run = ask(&lab, "--fail-with-body --max-attempts 2", &server);
    run.exited(52).stopped(2, "attempts");
    assert_eq!(run.text(), "");

    // Success is written as ever.
    let server = Server::new([Answer::new(500, &[], "AAA"), Answer::new(200, &[], "good")]);
    let run = ask(&lab, "--fail-with-body", &server);
    run.exited(0);
    assert_eq!(run.text(), "good");
}

// What a rule makes a success has a body that is wanted, whatever its length.
#[test]
fn the_body_of_what_is_made_a_success_is_written() {
    let lab = Lab::new();
    for length in [4, 3_000_000] {
        let body = crate::pattern(length);
        let server = || Server::new([Answer::new(503, &[], "bad"), Answer::new(404, &["X: y"], &body)]);
        let run = ask(&lab, "--succeed-on http:404", &server());
        run.exited(0).stopped(2, "success");
        assert!(run.stdout == body);
        ask(&lab, "--succeed-on http:404 -f -o f", &server()).exited(0);
        assert!(std::fs::read(lab.path("f")).unwrap() == body);
        let run = ask(&lab, "--succeed-on http:416,http:404 -i", &server());
        let head = format!("HTTP/1.1 404 Whatever\r\nX: y\r\nContent-Length: {length}\r\n\r\n");
        assert!(run.exited(0).stdout == [head.as_bytes(), &body].concat());
        assert_eq!(ask(&lab, "--succeed-on http:405", &server()).exited(22).text(), "");
    }
    let server = Server::new([Answer::new(416, &[], "none")]);
    assert_eq!(ask(&lab, "--succeed-on http:416", &server).exited(0).text(), "none");
}

#[test]
fn a_failing_body_that_is_cut_is_still_that_status() {
    let lab = Lab::new();
    for bad in [
        Answer::head(503, &["Content-Length: 100"]).send("bad").close(),
        Answer::head(503, &["Content-Length: 100"]).send("bad").reset(),
        Answer::head(503, &["Transfer-Encoding: chunked"]).send("zz\r\n"),
        // It never ends, and is not waited for.
        Answer::head(503, &["Content-Length: 100"]).send("bad").stall(),
        Answer::head(503, &[]).repeat("bad".repeat(1000)),
    ] {
        let server = Server::new([bad, Answer::new(200, &[], "good")]);
        let run = ask(&lab, "", &server);
        run.exited(0).stopped(2, "success");
        assert_eq!(run.each("attempt_finished", "http_status"), [503, 200]);
        assert_eq!(run.text(), "good");
    }
}

#[test]
fn rules_that_could_never_hold_for_a_request_are_refused() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "good")]);
    let get = |words: &str, rule: &str| lab.run(words).args([rule, "http", &server.url("/")]);
    for rule in
        ["7", "22", "126", "0", "signal:KILL", "stderr:/x/", "stdout:/x/", "output:/x/", "0 and body:/x/", "http:503,7"]
    {
        for option in ["--retry-on", "--throttle-on", "--fail-on", "--succeed-on"] {
            let term = rule.rsplit(',').next().expect("a condition");
            let said = format!("{option}: '{term}' speaks of a command");
            get(option, rule).finish().exited(125).says(&[&said, "http:503", "body:/RE/", "any"]);
        }
    }
    for rule in
        ["http:1xx", "http:2xx and any", "default and http:200", "timeout and http:503", "http:304 and body:/x/"]
    {
        get("--retry-on", rule).finish().exited(125).says(&["--retry-on: ", rule, "can never hold"]);
    }
    for words in ["-I", "-X HEAD", "-I -X GET"] {
        let ask = |rule: &str| get("--retry-on", rule).words(words).finish();
        ask("body:/x/").exited(125).says(&["--retry-on: 'body:/x/' can never hold", "a head"]);
        ask("http:503").exited(0);
    }
    // A variable may be set for commands too, but a list that says nothing of requests is a mistake.
    let run = || lab.run("http").arg(server.url("/"));
    run().env("RETRYX_FAIL_ON", "7,signal:KILL").finish().exited(125).says(&["RETRYX_FAIL_ON: '7'"]);
    run().env("RETRYX_FAIL_ON", "7,http:503").finish().exited(0);
    for rule in ["http:503", "http:2xx and body:/no/", "error:X", "timeout", "any", "default", "body:/no/"] {
        get("--fail-on", rule).finish().exited(0);
    }
}

#[test]
fn a_good_status_that_a_rule_makes_a_failure_exits_22_and_names_the_rule() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "pending")]);
    for option in ["--fail-on", "--retry-on"] {
        let rule = "http:200 and body:/pending/";
        let run = lab.run("-n 2 --base-delay 0").args([option, rule, "http", &server.url("/")]).finish();
        run.exited(22).says(&[&format!("HTTP status 200, a failure by {option} {rule}")]);
    }
}

#[test]
fn the_end_says_what_failed() {
    let lab = Lab::new();
    let server =
        Server::new([Answer::new(503, &["Connection: close"], ""), Answer::raw("").close(), Answer::new(404, &[], "")]);
    let run = ask(&lab, "--max-attempts 5", &server);
    run.exited(22).stopped(3, "permanent").says(&["HTTP status 503", "HTTP status 404", "closed", "attempt 2"]);
    assert_eq!(run.each("attempt_finished", "outcome"), ["responded", "transport_failed", "responded"]);
    let failed = &run.of("attempt_finished")[1];
    assert_eq!(failed["exit_code"], 52);
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("closed")));
    let run = lab.run("-q --base-delay 0 --exit-code-on-failure 9 http").arg(server.url("/")).finish();
    run.exited(9);
    assert_eq!(run.stderr, "");
}

#[test]
fn a_status_that_means_nothing_is_a_failure_for_good() {
    let lab = Lab::new();
    for status in [600, 999] {
        let server = Server::new([Answer::new(status, &[], "what")]);
        ask(&lab, "", &server).exited(22).stopped(1, "permanent").says(&[&status.to_string()]);
    }
    let server = Server::new([Answer::new(99, &[], "what")]);
    ask(&lab, "--max-attempts 1", &server).exited(8);
}
