//! Downloads that break off: continued where that is safe, begun again where it is not, never
//! joined from two versions.

use rustix::pipe::{PipeFlags, pipe_with};

use crate::server::{Answer, Request, Server};
use crate::support::{Finished, Lab};
use crate::{ask, http, pattern};

const TAG: &str = "ETag: \"v1\"";

/// The part of a body that a request asks for, as a server with ranges answers.
fn part(body: &[u8], request: &Request, fields: &[&str]) -> Answer {
    match request.from() {
        Some(from) if from < body.len() => {
            let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
            Answer::new(206, &[fields, &[&range]].concat(), &body[from..])
        }
        Some(_) => Answer::new(416, &[&format!("Content-Range: bytes */{}", body.len())], "no such part"),
        None => Answer::new(200, fields, body),
    }
}

/// An answer that promises the rest of the body and sends only so much of it.
fn cut(body: &[u8], request: &Request, fields: &[&str], sent: usize) -> Answer {
    let from = request.from().unwrap_or(0);
    let length = format!("Content-Length: {}", body.len() - from);
    let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
    let fields = if from > 0 { [fields, &[&length, &range]].concat() } else { [fields, &[&length]].concat() };
    Answer::head(if from > 0 { 206 } else { 200 }, &fields).send(&body[from..from + sent])
}

/// A run to a file and one to standard output, each from a server of its own.
fn both(lab: &Lab, words: &str, server: impl Fn() -> Server) -> [(Finished, Vec<u8>, Server); 2] {
    let (one, other) = (server(), server());
    let to_file = ask(lab, &format!("{words} -o out"), &one);
    let file = std::fs::read(lab.path("out")).unwrap_or_default();
    let _ = std::fs::remove_file(lab.path("out"));
    assert_eq!(to_file.text(), "");
    let to_stdout = ask(lab, words, &other);
    let stdout = to_stdout.stdout.clone();
    [(to_file, file, one), (to_stdout, stdout, other)]
}

// B82.
#[test]
fn a_short_body_is_no_success() {
    let lab = Lab::new();
    let good = || Answer::new(200, &[], "0123456789");
    let chunked = || Answer::head(200, &["Transfer-Encoding: chunked"]);
    for (bad, code) in [
        (Answer::head(200, &["Content-Length: 10"]).send("0123").close(), 18),
        (Answer::head(200, &["Content-Length: 10"]).send("0123").reset(), 18),
        (Answer::head(200, &["Content-Length: 10"]).close(), 18),
        (chunked().send("4\r\n0123\r\n").close(), 18),
        (chunked().send("a\r\n0123").close(), 18),
        (chunked().send("4\r\n0123\r\n0\r\n").close(), 18),
        (chunked().send("4\r\n0123").reset(), 18),
        (chunked().send("4\r\n0123\r\nxyz\r\n").close(), 56),
        (chunked().send("4\r\n0123456\r\n").close(), 56),
        (Answer::head(200, &[]).send("0123").reset(), 56),
    ] {
        let server = || Server::new([bad.clone(), good()]);
        for (run, got, _) in both(&lab, "--max-attempts 2", server) {
            run.exited(0).stopped(2, "success");
            assert_eq!(got, b"0123456789");
            assert_eq!(run.of("attempt_finished")[0]["exit_code"], code);
        }
        for (run, got, _) in both(&lab, "--max-attempts 1", server) {
            run.exited(code).stopped(1, "attempts");
            assert_eq!(got, b"");
        }
        assert!(!lab.path("out").exists());
    }
}

#[test]
fn bodies_of_every_framing_are_taken() {
    let lab = Lab::new();
    for good in [
        Answer::new(200, &[], "hello"),
        Answer::head(200, &[]).send("hello").close(),
        Answer::raw("HTTP/1.0 200 OK\r\n\r\nhello").close(),
        Answer::head(200, &["Transfer-Encoding: chunked"]).send("2;x=y\r\nhe\r\n03\r\nllo\r\n0\r\nX: y\r\n\r\n"),
        // What follows the body is not of it.
        Answer::head(200, &["Content-Length: 5"]).send("hello, and more"),
        Answer::raw("\r\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    ] {
        let server = Server::new([good]);
        let run = ask(&lab, "", &server);
        run.exited(0).stopped(1, "success");
        assert_eq!(run.text(), "hello");
    }
}

// The first show: five breaks, and each byte is sent about once.
#[test]
fn a_body_that_breaks_five_times_is_continued() {
    let lab = Lab::new();
    let body = pattern(1_200_000);
    let dated = ["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 09:49:37 GMT"];
    for fields in [&[TAG][..], &dated, &[TAG, "Last-Modified: x"]] {
        let server = || {
            let (body, fields) = (body.clone(), fields.to_vec());
            Server::by(move |number, request| match number {
                0..5 => {
                    let answer = cut(&body, request, &fields, 200_000);
                    if number % 2 == 0 { answer.close() } else { answer.reset() }
                }
                _ => part(&body, request, &fields),
            })
        };
        for (run, got, server) in both(&lab, "--max-attempts 9", server) {
            run.exited(0).stopped(6, "success");
            assert!(got == body);
            let requests = server.requests();
            assert_eq!(requests[0].value("range"), None);
            for (number, request) in requests.iter().enumerate().skip(1) {
                // A reset may take some of what was sent with it.
                let from = request.from().expect("a part is asked for");
                assert!(from <= number * 200_000, "{from}");
                let guard = if fields[0] == TAG { "\"v1\"" } else { "Sun, 06 Nov 1994 08:49:37 GMT" };
                assert_eq!(request.value("if-range").as_deref(), Some(guard));
            }
            if server
                .requests()
                .iter()
                .enumerate()
                .all(|(number, request)| request.from().unwrap_or(0) == number * 200_000)
            {
                assert!(server.sent() < body.len() + 6 * 1000, "{}", server.sent());
            }
        }
    }
}

#[test]
fn each_byte_is_sent_once_where_nothing_is_lost_on_the_way() {
    let lab = Lab::new();
    let body = pattern(1_200_000);
    let sent = body.clone();
    let server = Server::by(move |number, request| match number {
        0..5 => cut(&sent, request, &[TAG], 200_000).close(),
        _ => part(&sent, request, &[TAG]),
    });
    let run = ask(&lab, "--max-attempts 9 -o out", &server);
    run.exited(0).stopped(6, "success");
    assert!(std::fs::read(lab.path("out")).unwrap() == body);
    let from: Vec<_> = server.requests().iter().map(|request| request.from().unwrap_or(0)).collect();
    assert_eq!(from, [0, 200_000, 400_000, 600_000, 800_000, 1_000_000]);
    assert!(server.sent() < body.len() + 6 * 1000);
}

// As where a release's page leads to a store of files.
#[test]
fn a_body_behind_a_redirect_is_continued_there() {
    let lab = Lab::new();
    let body = pattern(5000);
    let store = || {
        let body = body.clone();
        Server::by(move |number, request| match number {
            0 | 1 => cut(&body, request, &[TAG], 2000).close(),
            _ => part(&body, request, &[TAG]),
        })
    };
    let (store, other) = (store(), store());
    let there = [format!("{}?sign=1", store.url("/f")), format!("{}?sign=2", store.url("/f")), other.url("/f")];
    let page = Server::by(move |number, _| {
        Answer::new(302, &[&format!("Location: {}", there[if number == 3 { 2 } else { number % 2 }])], "")
    });
    let run = ask(&lab, "-L --max-attempts 5", &page);
    run.exited(0).stopped(3, "success");
    assert!(run.stdout == body);
    let from: Vec<_> = store.requests().iter().map(Request::from).collect();
    assert_eq!(from, [None, Some(2000), Some(4000)]);
    // The same tag elsewhere is another file's.
    let elsewhere = Server::by(|_, request| part(&[b'y'; 5000], request, &[TAG]));
    let broken = Server::by(|_, request| cut(&[b'x'; 5000], request, &[TAG], 2000).close());
    let there = [broken.url("/f"), elsewhere.url("/f")];
    let page = Server::by(move |number, _| Answer::new(302, &[&format!("Location: {}", there[number.min(1)])], ""));
    let run = ask(&lab, "-L --max-attempts 5", &page);
    run.exited(0).stopped(3, "success");
    assert!(run.stdout == [b'y'; 5000]);
}

/// A sequence of numbers that is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).expect("a small number")
    }
}

// Whatever an honest server does, in whatever order, what comes out is one of its versions
// and whole, or a failure.
#[test]
fn a_server_in_trouble_never_makes_a_wrong_file() {
    let lab = Lab::new();
    let mut succeeded = 0;
    for seed in 0..60 {
        let server = || {
            let dice = std::sync::Mutex::new((Dice(seed), 1u8));
            Server::by(move |number, request| {
                let mut state = dice.lock().unwrap();
                let (dice, version) = &mut *state;
                if number > 0 && dice.roll(4) == 0 {
                    *version += 1;
                }
                let body = vec![*version; 3000 + usize::from(*version)];
                let tag = format!("ETag: \"v{version}\"");
                let weak = format!("ETag: W/\"v{version}\"");
                let time = format!("Last-Modified: Sun, 06 Nov 1994 08:49:{:02} GMT", *version);
                let none = String::new();
                let kind = usize::try_from(seed).unwrap() % 4;
                let guard = [&tag, &time, &weak, &none][kind].clone();
                let fields: Vec<_> = [guard.as_str()].into_iter().filter(|field| !field.is_empty()).collect();
                let known = guard.split_once(": ").map_or("", |(_, value)| value);
                // A part only of the version that is asked for.
                let matches = request.value("if-range").is_some_and(|asked| asked == known);
                let from = request.from().filter(|_| matches).filter(|from| *from < body.len());
                let rest = &body[from.unwrap_or(0)..];
                let range = format!("Content-Range: bytes {}-{}/{}", from.unwrap_or(0), body.len() - 1, body.len());
                let status = if from.is_some() { 206 } else { 200 };
                let fields = if from.is_some() { [&fields[..], &[&range]].concat() } else { fields };
                let length = format!("Content-Length: {}", rest.len());
                let sized = Answer::head(status, &[&fields[..], &[&length]].concat());
                let chunked = Answer::head(status, &[&fields[..], &["Transfer-Encoding: chunked"]].concat());
                let sent = dice.roll(rest.len());
                match dice.roll(9) {
                    0 => sized.send(&rest[..sent]).close(),
                    1 => sized.send(&rest[..sent]).reset(),
                    2 => chunked.send(format!("{:x}\r\n", rest.len())).send(&rest[..sent]).close(),
                    3 => chunked.send(format!("{:x}\r\n", rest.len())).send(rest).send("\r\n").close(),
                    4 => Answer::new(503, &[], "bad"),
                    5 => Answer::raw("").close(),
                    6 => Answer::raw("HTTP/1.1 2").reset(),
                    7 => Answer::new(
                        if request.from().is_some() { 416 } else { 500 },
                        &["Content-Range: bytes */1"],
                        "no",
                    ),
                    _ => sized.send(rest),
                }
            })
        };
        for (run, got, _) in both(&lab, "--max-attempts 9", server) {
            if run.status.code() == Some(0) {
                let version = got.first().copied().unwrap_or_default();
                let is_whole = got.len() == 3000 + usize::from(version) && got.iter().all(|byte| *byte == version);
                assert!(is_whole, "{seed}: {} bytes from {version}: {}", got.len(), run.stderr);
                succeeded += 1;
            } else {
                assert!(got.is_empty(), "{seed}: {}", run.stderr);
            }
        }
    }
    assert!(succeeded > 60, "{succeeded} of 120");
}

#[test]
fn what_cannot_be_told_from_another_version_is_begun_again() {
    let lab = Lab::new();
    let body = pattern(5000);
    for fields in [&[][..], &["ETag: W/\"v1\""], &["ETag: v1"]] {
        let server = || {
            let (body, fields) = (body.clone(), fields.to_vec());
            Server::by(move |number, request| match number {
                0 => cut(&body, request, &fields, 2000).close(),
                _ => part(&body, request, &fields),
            })
        };
        for (run, got, server) in both(&lab, "", server) {
            run.exited(0).stopped(2, "success");
            assert!(got == body);
            assert_eq!(server.requests()[1].value("range"), None);
        }
    }
}

/// What a server answers to the second request, of an old and a new body.
type Second = fn(&[u8], &[u8], &Request) -> Answer;

// Whatever a server does with the question for the rest, nothing is joined that is not one.
#[test]
fn two_versions_are_never_joined() {
    let lab = Lab::new();
    let (old, new) = (pattern(5000), pattern(7001).split_off(1));
    let seconds: [(Second, bool); 10] = [
        // It has another one now, and says so with the whole.
        (|_, new, _| Answer::new(200, &["ETag: \"v2\""], new), true),
        (|_, new, _| Answer::new(200, &[], new), true),
        // It sends a part of the other one all the same.
        (|_, new, _| Answer::new(206, &["ETag: \"v2\"", "Content-Range: bytes 2000-6999/7000"], &new[2000..]), false),
        (|_, new, _| Answer::new(206, &["ETag: W/\"v1\"", "Content-Range: bytes 2000-6999/7000"], &new[2000..]), false),
        (|_, new, _| Answer::new(206, &["Content-Range: bytes 2000-6999/7000"], &new[2000..]), false),
        // Or with the old tag, but of another length.
        (|_, new, _| Answer::new(206, &[TAG, "Content-Range: bytes 2000-6999/7000"], &new[2000..]), false),
        // Or another part.
        (|old, _, _| Answer::new(206, &[TAG, "Content-Range: bytes 1000-4999/5000"], &old[1000..]), false),
        (|old, _, _| Answer::new(206, &[TAG, "Content-Range: bytes 0-4999/5000"], old), false),
        // Or without saying which, or what is none.
        (|old, _, _| Answer::new(206, &[TAG], &old[2000..]), false),
        (|old, _, _| Answer::new(206, &[TAG, "Content-Range: bytes 2000-1/x"], &old[2000..]), false),
    ];
    for (number, (second, at_once)) in seconds.into_iter().enumerate() {
        let server = || {
            let (old, new) = (old.clone(), new.clone());
            Server::by(move |number, request| match number {
                0 => cut(&old, request, &[TAG], 2000).close(),
                1 => second(&old, &new, request),
                _ => part(&new, request, &["ETag: \"v2\""]),
            })
        };
        for (run, got, server) in both(&lab, "--max-attempts 3", server) {
            println!("{number}: {}", run.stderr);
            run.exited(0).stopped(if at_once { 2 } else { 3 }, "success");
            assert!(got == new, "{number}: {} bytes", got.len());
            if !at_once {
                assert_eq!(server.requests()[2].value("range"), None, "{number}");
            }
        }
    }
}

#[test]
fn a_part_that_stops_early_is_not_the_rest() {
    let lab = Lab::new();
    let body = pattern(5000);
    let server = || {
        let body = body.clone();
        Server::by(move |number, request| match number {
            0 => cut(&body, request, &[TAG], 2000).close(),
            1 => Answer::new(206, &[TAG, "Content-Range: bytes 2000-2999/5000"], &body[2000..3000]),
            _ => part(&body, request, &[TAG]),
        })
    };
    for (run, got, server) in both(&lab, "--max-attempts 3", server) {
        run.exited(0).stopped(3, "success");
        assert!(got == body);
        assert_eq!(server.requests()[2].from(), Some(3000));
    }
}

#[test]
fn a_416_is_the_end_or_a_new_beginning() {
    let lab = Lab::new();
    let body = pattern(3000);
    // Everything came, but not the word that it was everything.
    let server = || {
        let body = body.clone();
        Server::by(move |number, request| match number {
            0 => {
                Answer::head(200, &[TAG, "Transfer-Encoding: chunked"]).send("bb8\r\n").send(&body).send("\r\n").close()
            }
            _ => part(&body, request, &[TAG]),
        })
    };
    for (run, got, server) in both(&lab, "", server) {
        run.exited(0).stopped(2, "success");
        assert!(got == body);
        assert_eq!(server.requests()[1].from(), Some(3000));
    }
    // It has become shorter.
    let server = || {
        let body = body.clone();
        Server::by(move |number, request| match number {
            0 => cut(&body, request, &[TAG], 2000).close(),
            _ => part(b"short", request, &[]),
        })
    };
    for (run, got, _) in both(&lab, "--max-attempts 3", server) {
        run.exited(0).stopped(3, "success");
        assert_eq!(got, b"short");
    }
}

#[test]
fn a_part_that_the_user_asked_for_is_continued_within_it() {
    let lab = Lab::new();
    let body = pattern(5000);
    for (words, from, to) in [("-r 1000-2999", 1000, 2999), ("-r 1000-", 1000, 4999), ("-r -2000", 3000, 4999)] {
        let server = || {
            let body = body.clone();
            Server::by(move |number, request| {
                let first = if number == 0 { from } else { request.from().expect("a part") };
                let range = format!("Content-Range: bytes {first}-{to}/{}", body.len());
                let length = format!("Content-Length: {}", to + 1 - first);
                let head = Answer::head(206, &[TAG, &range, &length]);
                if number == 0 { head.send(&body[first..first + 700]).close() } else { head.send(&body[first..=to]) }
            })
        };
        for (run, got, server) in both(&lab, words, server) {
            run.exited(0).stopped(2, "success");
            assert!(got == body[from..=to], "{words}");
            let requests = server.requests();
            assert_eq!(requests[0].value("range"), Some(format!("bytes={}", &words[3..])));
            assert_eq!(requests[1].value("range"), Some(format!("bytes={}-{to}", from + 700)));
        }
    }
    // A server without ranges sends the whole, which is what curl takes too.
    let server = Server::new([Answer::new(200, &[], "whole")]);
    assert_eq!(ask(&lab, "-r 1-2", &server).exited(0).text(), "whole");
}

#[test]
fn another_part_than_was_asked_for_is_refused() {
    let lab = Lab::new();
    let body = pattern(100);
    for (asked, got) in [
        ("-r 0-5", (4, 9)),
        ("-r 0-5", (0, 9)),
        ("-r 50-", (0, 99)),
        ("-r -10", (0, 9)),
        ("-H Range:bytes=0-5", (4, 9)),
    ] {
        let server = || {
            let range = format!("Content-Range: bytes {}-{}/100", got.0, got.1);
            Server::new([Answer::new(206, &[TAG, &range], &body[got.0..=got.1])])
        };
        for (run, got, _) in both(&lab, asked, server) {
            run.exited(33).stopped(1, "permanent").says(&["another part"]);
            assert_eq!(got, b"", "{asked}");
        }
    }
    // One that cannot be told is none.
    for field in [
        "X: y",
        "Content-Range: lines 10-19/100",
        "Content-Range: bytes 10-19/5",
        "Content-Type: multipart/byteranges; boundary=x",
    ] {
        lab.write("there", &body[..10]);
        for words in ["-r 10-19", "-r 10-", "-r -90", "-C - -o there"] {
            let server = Server::new([Answer::new(206, &[TAG, field], &body[10..20])]);
            ask(&lab, words, &server).exited(33).stopped(1, "permanent").says(&["which part"]);
        }
        // Several are for whoever asked for several.
        let server = Server::new([Answer::new(206, &[TAG, field], "parts")]);
        assert_eq!(ask(&lab, "-r 0-1,5-6", &server).exited(0).text(), "parts");
    }
    // The rest of a part that came short is asked for; what the server does not have is not.
    for (asked, total, then) in [("-r 90-200", "100", "bytes=94-99"), ("-r 90-99", "*", "bytes=94-99")] {
        let server = || {
            let body = body.clone();
            Server::by(move |number, request| {
                let first = request.from().expect("a part");
                let last = if number == 0 { first + 3 } else { 99 };
                Answer::new(206, &[TAG, &format!("Content-Range: bytes {first}-{last}/{total}")], &body[first..=last])
            })
        };
        for (run, got, server) in both(&lab, asked, server) {
            run.exited(0).stopped(2, "success");
            assert!(got == body[90..]);
            assert_eq!(server.requests()[1].value("range"), Some(then.to_owned()));
        }
    }
    // Where only a 416 tells that the whole ends before.
    let server = Server::new([
        Answer::new(206, &[TAG, "Content-Range: bytes 90-99/*"], &body[90..]),
        Answer::new(416, &["Content-Range: bytes */100"], ""),
    ]);
    assert!(ask(&lab, "-r 90-200", &server).exited(0).stopped(2, "success").stdout == body[90..]);
}

/// A rule of the user's is about the answer to what the user asked for, not about those that
/// retryx asked for to continue it.
#[test]
fn a_continued_body_is_judged_as_one_that_came_at_once() {
    let lab = Lab::new();
    let body = pattern(5000);
    let needle = format!("{}\nNEEDLE\n", "x".repeat(4000)).into_bytes();
    let cut_once = |body: &[u8]| {
        let body = body.to_vec();
        Server::by(move |number, request| match number {
            0 => cut(&body, request, &[TAG, "X-Number: first"], 2000).close(),
            _ => part(&body, request, &[TAG, "X-Number: second"]),
        })
    };
    for rule in ["http:200 and body:/NEEDLE/", "http:200-206 and body:/NEEDLE/"] {
        for to in ["out", "-"] {
            let server = cut_once(&needle);
            let words = ["--fail-on", rule, "-o", to];
            let run = http(&lab, "", &server.url("/")).args(words).finish();
            run.exited(22).stopped(2, "permanent");
            assert_eq!(run.of("attempt_finished")[1]["http_status"], 200);
            assert_eq!((run.text(), lab.path("out").exists()), (String::new(), false));
        }
    }
    let server = cut_once(&body);
    let run = ask(&lab, "-w %{http_code},%header{x-number} -i -D heads -o out --fail-on http:206", &server);
    run.exited(0).stopped(2, "success");
    assert_eq!(run.text(), "200,first");
    let heads = lab.read("heads");
    assert!(heads.starts_with("HTTP/1.1 200 ") && heads.contains("X-Number: first"), "{heads}");
    assert!(std::fs::read(lab.path("out")).unwrap() == [heads.as_bytes(), &body].concat());
    // Also where the end is known from a 416, and where it is not reached.
    let sent = body.clone();
    let server = Server::by(move |number, request| match number {
        0 => Answer::head(200, &[TAG, "Transfer-Encoding: chunked"])
            .send(format!("{:x}\r\n", sent.len()))
            .send(&sent)
            .send("\r\n")
            .close(),
        _ => part(&sent, request, &[TAG]),
    });
    let run = ask(&lab, "-w %{http_code} -o out", &server);
    run.exited(0).stopped(2, "success");
    assert_eq!(run.text(), "200");
    let sent = body.clone();
    let server = Server::by(move |number, request| {
        let from = if number == 0 { 0 } else { request.from().expect("a part") };
        cut(&sent, request, &[TAG], 100 + from.min(1)).close()
    });
    let run = ask(&lab, "-w %{http_code} -o out --max-attempts 2", &server);
    run.exited(18);
    assert_eq!(run.text(), "200");
    // What the user asked for a part of is answered with a part.
    let server = Server::by(move |number, request| match number {
        0 => cut(&body, request, &[TAG], 500).close(),
        _ => part(&body, request, &[TAG]),
    });
    let run = ask(&lab, "-r 1000- -w %{http_code} -o out --fail-on http:206", &server);
    run.exited(22);
    assert_eq!(run.text(), "206");
}

/// What a rule finds in a body that was passed on is the end at once: nothing is waited for or
/// paid.
#[test]
fn a_rule_cannot_ask_for_another_body_than_was_passed_on() {
    let lab = Lab::new();
    let long = format!("{}NEEDLE\n", "x\n".repeat(5_000_000));
    for (words, body) in [("-N", "NEEDLE\n"), ("", long.as_str())] {
        let server = Server::new([Answer::new(200, &["Retry-After: 60"], body)]);
        let rule = ["--retry-on", "http:200 and body:/NEEDLE/"];
        let run = http(&lab, words, &server.url("/")).args(rule).finish();
        run.exited(18).stopped(1, "permanent").says(&["passed on already", "-o FILE"]);
        assert_eq!((run.of("retry_scheduled").len(), server.requests().len()), (0, 1));
        assert!(run.text() == body);
    }
    // Nothing was passed on where there is nothing, nor where it is held.
    for (words, bad) in [("-N --retry-on http:200", ""), ("-o out --retry-on http:200", "bad")] {
        let server = Server::new([Answer::new(200, &[], bad), Answer::new(201, &[], "good")]);
        ask(&lab, words, &server).exited(0).stopped(2, "success");
    }
}

#[test]
fn another_method_than_get_is_not_continued() {
    let lab = Lab::new();
    let body = pattern(5000);
    let sent = body.clone();
    let server = Server::by(move |number, request| match number {
        0 => cut(&sent, request, &[TAG], 2000).close(),
        _ => part(&sent, request, &[TAG]),
    });
    let run = ask(&lab, "-d x --idempotent", &server);
    run.exited(0).stopped(2, "success");
    assert!(run.stdout == body);
    assert_eq!(server.requests()[1].value("range"), None);
}

#[test]
fn a_coded_body_is_begun_again() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    let lab = Lab::new();
    let body = pattern(50_000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&body).unwrap();
    let coded = encoder.finish().unwrap();
    let server = || {
        let coded = coded.clone();
        Server::by(move |number, request| match number {
            0 => cut(&coded, request, &[TAG, "Content-Encoding: gzip"], coded.len() / 2).close(),
            // Cut within the code, though whole by its length.
            1 => Answer::new(200, &[TAG, "Content-Encoding: gzip"], &coded[..coded.len() / 2]),
            2 => Answer::new(200, &[TAG, "Content-Encoding: gzip"], [&coded[..100], b"junk", &coded[104..]].concat()),
            _ => part(&coded, request, &[TAG, "Content-Encoding: gzip"]),
        })
    };
    for (run, got, server) in both(&lab, "--compressed --max-attempts 4", server) {
        run.exited(0).stopped(4, "success");
        assert!(got == body);
        assert!(server.requests().iter().all(|request| request.value("range").is_none()));
        assert_eq!(run.each("attempt_finished", "exit_code")[..3], [18, 61, 61]);
    }
}

#[test]
fn a_checksum_decides() {
    let lab = Lab::new();
    let right = "--checksum sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let answers = |first: Answer| move || Server::new([first.clone(), Answer::new(200, &[TAG], "hello")]);
    for (run, got, _) in both(&lab, right, answers(Answer::new(200, &[TAG], "hello"))) {
        run.exited(0).stopped(1, "success");
        assert_eq!(got, b"hello");
    }
    for (run, got, server) in both(&lab, right, answers(Answer::new(200, &[TAG], "jello"))) {
        run.exited(0).stopped(2, "success").says(&["SHA-256"]);
        assert_eq!(got, b"hello");
        assert_eq!(server.requests()[1].value("range"), None);
    }
    lab.write("out", "old");
    let server = Server::new([Answer::new(200, &[TAG], "jello")]);
    let run = ask(&lab, &format!("{right} --max-attempts 2 -o out"), &server);
    run.exited(18).stopped(2, "attempts");
    assert_eq!(lab.read("out"), "old");
    // Where there is no body there is no sum of it.
    let server = Server::new([Answer::head(304, &[TAG])]);
    ask(&lab, &format!("{right} -o out -H If-None-Match:\"v1\""), &server).exited(0).stopped(1, "success");
    assert_eq!(lab.read("out"), "old");
    for words in ["-I", "-X HEAD"] {
        ask(&lab, &format!("{right} {words}"), &server).exited(125).says(&["--checksum"]);
    }
    // Also over a continued body, and one that is too long for memory.
    let body = pattern(9_000_000);
    lab.write("body", &body);
    let sum = lab.tool("sha256sum", &["body"])[..64].to_owned();
    let server = || {
        let body = body.clone();
        Server::by(move |number, request| match number {
            0 => cut(&body, request, &[TAG], 8_900_000).close(),
            _ => part(&body, request, &[TAG]),
        })
    };
    for (run, got, server) in both(&lab, &format!("--checksum sha256:{sum}"), server) {
        run.exited(0).stopped(2, "success");
        assert!(got == body);
        assert_eq!(server.requests()[1].from(), Some(8_900_000));
    }
    for wrong in ["md5:1", "sha256:12", "sha256:zz", "", &format!("sha256:{sum}0")] {
        let run = http(&lab, "--checksum", wrong).arg("http://127.0.0.1:1/").finish();
        run.exited(125).says(&["--checksum", "64"]);
    }
}

// Past 8 MiB bytes are passed on as they come.
#[test]
fn a_long_body_to_a_pipe_streams_and_goes_on_by_range() {
    let lab = Lab::new();
    let body = pattern(10_000_000);
    for (fields, at, code) in [
        (&[TAG][..], 9_500_000, 0),
        (&[], 9_500_000, 18),
        // What was not passed on yet can be begun again.
        (&[], 5_000_000, 0),
        (&[TAG], 5_000_000, 0),
    ] {
        let (sent, fields) = (body.clone(), fields.to_vec());
        let server = Server::by(move |number, request| match number {
            0 => cut(&sent, request, &fields, at).close(),
            _ => part(&sent, request, &fields),
        });
        let run = ask(&lab, "", &server);
        run.exited(code);
        if code == 0 {
            run.stopped(2, "success");
            assert!(run.stdout == body);
        } else {
            run.stopped(1, "permanent").says(&["cannot be continued", "-o FILE"]);
            assert!(run.stdout == body[..at]);
            assert_eq!(server.requests().len(), 1);
        }
    }
    // Another version, when the beginning was passed on.
    let sent = body.clone();
    let server = Server::by(move |number, request| match number {
        0 => cut(&sent, request, &[TAG], 9_500_000).close(),
        _ => Answer::new(200, &["ETag: \"v2\""], &sent),
    });
    let run = ask(&lab, "", &server);
    run.exited(18).stopped(2, "permanent").says(&["cannot be taken back"]);
    assert!(run.stdout == body[..9_500_000]);
}

#[test]
fn live_output_is_written_as_it_comes() {
    let lab = Lab::new();
    let gate = crate::server::Gate::default();
    let server = Server::new([Answer::head(200, &[TAG, "Content-Length: 10"]).send("hello").wait(&gate).send("world")]);
    let run = http(&lab, "-N", &server.url("/")).stdout(std::fs::File::create(lab.path("live")).unwrap()).start();
    crate::support::wait_until("the first half is there", || lab.read("live") == "hello");
    gate.open();
    run.finish().exited(0);
    assert_eq!(lab.read("live"), "helloworld");
    // A break is continued, or the end.
    let body = pattern(5000);
    for (fields, code) in [(&[TAG][..], 0), (&[], 18)] {
        let (sent, fields) = (body.clone(), fields.to_vec());
        let server = Server::by(move |number, request| match number {
            0 => cut(&sent, request, &fields, 2000).close(),
            _ => part(&sent, request, &fields),
        });
        let run = ask(&lab, "-N", &server);
        run.exited(code);
        assert!(run.stdout == body[..if code == 0 { 5000 } else { 2000 }]);
    }
    // Of a coded one no part can be asked for, whatever the server told.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut gzip, &body).unwrap();
    let coded = gzip.finish().unwrap();
    let head = Answer::head(200, &[TAG, "Content-Encoding: gzip", &format!("Content-Length: {}", coded.len())]);
    let server = Server::new([head.send(&coded[..4000]).close()]);
    for words in ["-N --compressed", "-N --compressed --retry-on any --max-attempts 2"] {
        ask(&lab, words, &server).exited(18).says(&["because it is coded", "-o FILE"]);
    }
    assert!(server.requests().iter().all(|request| request.value("range").is_none()));
    // Where a time limit broke it off, no more is asked for.
    let server = Server::new([Answer::head(200, &["Content-Length: 10"]).send("hello").stall()]);
    let run = ask(&lab, "-N -m 0.4", &server);
    run.exited(28).stopped(1, "permanent").says(&["--timeout 400 ms", "cannot be continued"]);
    assert_eq!((run.text(), server.requests().len()), ("hello".to_owned(), 1));
    // A failure is no output, live or not.
    let server = Server::new([Answer::new(503, &[], "bad"), Answer::new(200, &[], "good")]);
    assert_eq!(ask(&lab, "-N", &server).exited(0).text(), "good");
    // In a file it is whole or not there.
    lab.write("out", "old and longer than the new one");
    let server = Server::new([Answer::head(200, &["Content-Length: 9"]).send("half").close()]);
    ask(&lab, "-N --max-attempts 1 -o out", &server).exited(18);
    assert_eq!(lab.read("out"), "old and longer than the new one");
    let server = Server::new([Answer::new(200, &[], "new")]);
    ask(&lab, "-N -o out", &server).exited(0);
    assert_eq!(lab.read("out"), "new");
}

#[test]
fn a_reader_that_has_gone_ends_the_run() {
    let lab = Lab::new();
    let gone = || {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(read);
        write
    };
    // Before a retry.
    let server = Server::new([Answer::new(503, &[], ""), Answer::new(200, &[], "good")]);
    let run = http(&lab, "", &server.url("/")).stdout(gone()).finish();
    run.stopped(1, "reader_gone");
    assert_eq!(server.requests().len(), 1);
    // At the end, and in the middle.
    for (words, body) in [("", pattern(10)), ("-N", pattern(10)), ("", pattern(9_000_000))] {
        let server = Server::new([Answer::new(200, &[TAG], body)]);
        let run = http(&lab, words, &server.url("/")).stdout(gone()).finish();
        run.died_of(rustix::process::Signal::PIPE);
        assert_eq!(server.requests().len(), 1);
    }
    // To a file it does not matter.
    let server = Server::new([Answer::new(503, &[], ""), Answer::new(200, &[], "good")]);
    http(&lab, "-o out", &server.url("/")).stdout(gone()).finish().exited(0);
    assert_eq!(lab.read("out"), "good");
}

#[test]
fn heads_stand_before_the_body_however_long_it_is() {
    let lab = Lab::new();
    for length in [5, 9_000_000] {
        let body = pattern(length);
        let server = || {
            let body = body.clone();
            Server::by(move |number, request| match number {
                0 => Answer::new(503, &["X-Which: first"], "bad"),
                _ => part(&body, request, &["X-Which: second"]),
            })
        };
        for (run, got, _) in both(&lab, "-i", server) {
            run.exited(0).stopped(2, "success");
            let head = format!("HTTP/1.1 200 Whatever\r\nX-Which: second\r\nContent-Length: {length}\r\n\r\n");
            assert!(got.starts_with(head.as_bytes()) && got[head.len()..] == body);
        }
    }
}
