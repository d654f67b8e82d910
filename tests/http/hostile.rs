//! Servers that mean harm: a clear failure each, in bounded time and memory.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use rustix::process::Signal;

use crate::server::{Answer, Server};
use crate::support::{Lab, Run, wait_until};
use crate::{ask, http};

/// A run under a limit of 64 MiB on its memory; more would be its end.
fn bounded<'a>(lab: &'a Lab, words: &str, server: &Server) -> Run<'a> {
    let script = "ulimit -d 65536; exec retryx --base-delay 0 --events $D/events http $W $U";
    lab.shell(script).env("W", words).env("U", server.url("/"))
}

#[test]
fn answers_that_are_none_are_failures() {
    let lab = Lab::new();
    let fields = "X: y\r\n".repeat(5001);
    for (answer, codes, words) in [
        (Answer::raw("HTTP/1.1 200 OK\r\n").repeat("X: ".to_owned() + &"y".repeat(1000) + "\r\n"), &[56][..], "head"),
        (Answer::raw("HTTP/1.1 200 OK\r\nX: ").repeat("y".repeat(1000)), &[56], "head"),
        (Answer::raw("HTTP/1.1 200 OK\r\n".to_owned() + &fields + "\r\n").stall(), &[56], "fields"),
        (Answer::raw("").repeat("HTTP/1.1 100 Continue\r\n\r\n"), &[8], "100"),
        (Answer::raw("").repeat("HTTP/1.1 102 Processing\r\nX: y\r\n\r\n"), &[8], "102"),
        (Answer::raw("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n").stall(), &[8], "head"),
        (Answer::raw("HTTP/1.1 200 OK\r\nX\0: ab\r\n\r\n").stall(), &[8], "head"),
        (Answer::raw("HTTP/1.1 200 OK\r\nno colon\r\n\r\n").stall(), &[8], "head"),
        (Answer::raw("HTTP/1.1 2000 OK\r\n\r\n").stall(), &[8], "head"),
        (Answer::raw("HTTP/1.1 000 OK\r\n\r\n").stall(), &[8], "0"),
        (Answer::raw("HTTP/9.9 200 OK\r\n\r\n").stall(), &[8], "head"),
        (Answer::raw("<html>I am HTTP/0.9</html>").close(), &[8], "HTTP/1"),
        (Answer::raw("SSH-2.0-OpenSSH\r\n").stall(), &[8], "HTTP/1"),
        // The settings of HTTP/2, and an alert of TLS.
        (
            Answer::raw(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0d\0\x04\0\x0f\xff\xff\0\x06\0\0\x10\0").stall(),
            &[8],
            "HTTP/1",
        ),
        (Answer::raw(b"\x15\x03\x01\0\x02\x02\x46").stall(), &[8], "TLS"),
        (Answer::raw("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n").stall(), &[8], "101"),
        (Answer::head(200, &["Content-Length: 5", "Content-Length: 6"]).send("hello!").stall(), &[8], "Content-Length"),
        (Answer::head(200, &["Content-Length: -1"]).stall(), &[8], "Content-Length"),
        (Answer::head(200, &["Content-Length: 18446744073709551616"]).stall(), &[8], "Content-Length"),
        (Answer::head(200, &["Content-Length: 0x10"]).stall(), &[8], "Content-Length"),
        (Answer::head(200, &["Transfer-Encoding: gzip, chunked"]).stall(), &[8], "coding"),
        (Answer::head(200, &["Transfer-Encoding: nonsense"]).stall(), &[8], "coding"),
        (Answer::head(200, &[&format!("Transfer-Encoding: {}", "x".repeat(100_000))]).stall(), &[8], "coding"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("-5\r\nhello").stall(), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("ffffffffffffffffff\r\n").stall(), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("0x5\r\nhello").stall(), &[56], "chunk"),
        // No digits are no zero, which would be the end.
        (
            Answer::head(200, &["Transfer-Encoding: chunked"])
                .send("5\r\nhello\r\n\r\n6\r\n world\r\n0\r\n\r\n")
                .stall(),
            &[56],
            "chunk",
        ),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("5\r\nhello\r\n;x\r\n\r\n").stall(), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("5\r\nhello\r\n 0\r\n\r\n").stall(), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).repeat("0".repeat(1000)), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("5;").repeat("x".repeat(1000)), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("0\r\n").repeat("X: y\r\n"), &[56], "chunk"),
        (Answer::head(200, &["Transfer-Encoding: chunked"]).send("0\r\n").repeat("y".repeat(1000)), &[56], "chunk"),
    ] {
        let server = Server::new([answer]);
        let run = bounded(&lab, "--max-attempts 2", &server).finish();
        let _ = std::fs::remove_file(lab.path("events"));
        assert!(
            run.status.code().is_some_and(|code| codes.contains(&code)),
            "{words} {:?}: {}",
            run.status,
            run.stderr
        );
        run.says(&[words]);
        assert!(run.stderr.len() < 10_000, "{}", run.stderr.len());
        assert_eq!(run.text(), "");
        assert_eq!(server.requests().len(), 2, "{words}: {}", run.stderr);
    }
}

// Chunks count where both lengths are given (RFC 9112 §6.3), and the connection is not used
// again: what follows may be anybody's.
#[test]
fn two_kinds_of_length_are_one_too_many() {
    let lab = Lab::new();
    let server = Server::new([
        Answer::head(503, &["Content-Length: 3", "Transfer-Encoding: chunked"]).send("3\r\nbad\r\n0\r\n\r\n"),
        Answer::head(200, &["Transfer-Encoding: chunked", "Content-Length: 3"]).send("5\r\nhello\r\n0\r\n\r\n"),
    ]);
    let run = ask(&lab, "", &server);
    run.exited(0);
    assert_eq!((run.text(), server.connections()), ("hello".to_owned(), 2));
    // An answer that nobody asked for is not taken for the next one; it is there before the next
    // request, as both come at once.
    let unasked = "HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nbadHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let server = Server::new([Answer::raw(unasked), Answer::new(200, &[], "good")]);
    let run = ask(&lab, "", &server);
    run.exited(0);
    assert_eq!((run.text(), server.connections()), ("good".to_owned(), 2));
}

#[test]
fn an_endless_body_ends_by_a_limit() {
    let lab = Lab::new();
    for head in [
        Answer::head(200, &[]).repeat(vec![0; 65536]),
        Answer::head(200, &["Content-Length: 18446744073709551615"]).repeat(vec![0; 65536]),
        Answer::head(200, &["Transfer-Encoding: chunked"]).repeat("10000\r\n".to_owned() + &"x".repeat(65536) + "\r\n"),
    ] {
        let server = Server::new([head]);
        for words in ["-m 1 --max-attempts 1 -o /dev/null", "--total-timeout 1 -o /dev/null"] {
            let run = bounded(&lab, words, &server).stdout(std::process::Stdio::null()).finish();
            run.exited(28);
        }
    }
    // One that nobody wants is not received.
    let server = Server::new([Answer::head(404, &[]).repeat(vec![0; 65536])]);
    bounded(&lab, "", &server).finish().exited(22);
    let server = Server::new([Answer::head(302, &["Location: /"]).repeat(vec![0; 65536])]);
    bounded(&lab, "-L", &server).finish().exited(47);
}

/// Answers of which there is always more to read, so that nothing is ever waited for, with the
/// words that make somebody want them.
fn floods() -> Vec<(Answer, String)> {
    let chunked = |status| Answer::head(status, &["Transfer-Encoding: chunked"]);
    let tiny = "1\r\na\r\n".repeat(20_000);
    let coded = |content: &[u8], count: usize| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(content).expect("memory");
        Answer::head(200, &["Content-Encoding: gzip"]).repeat(gzip.finish().expect("memory").repeat(count))
    };
    let checked = format!("--compressed --checksum sha256:{}", "0".repeat(64));
    let floods = [
        (chunked(200).repeat(&tiny), "-o /dev/null"),
        (chunked(200).repeat(&tiny), "-N"),
        (chunked(200).repeat(&tiny), "-o f"),
        (chunked(404).repeat(&tiny), "--fail-with-body"),
        (chunked(404).repeat(&tiny), "--retry-on http:404,body:/b/"),
        // Members of nothing at all, and such that unfold a thousandfold.
        (coded(b"", 2000), "--compressed -o /dev/null"),
        (coded(b"", 2000), "--compressed -o f"),
        (coded(b"", 2000), &checked),
        (coded(&vec![0; 1 << 20], 64), "--compressed -o /dev/null"),
    ];
    floods.map(|(answer, words)| (answer, words.to_owned())).into()
}

#[test]
fn a_flood_is_no_excuse() {
    let lab = Lab::new();
    let limits = ["-m 0.3", "--total-timeout 0.3"].into_iter().cycle();
    for ((answer, words), limit) in floods().into_iter().zip(limits) {
        let server = Server::new([answer]);
        let run = |limit: &str| {
            let words = format!("{words} {limit} --max-attempts 1");
            http(&lab, &words, &server.url("/")).stdout(std::process::Stdio::null()).start()
        };
        run(limit).finish().exited(28);
        let run = run("");
        let before = server.sent();
        wait_until("a flood", || server.sent() > before + (1 << 20));
        run.signal(Signal::TERM);
        run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
    }
}

#[test]
fn an_endless_input_is_no_excuse() {
    let lab = Lab::new();
    for words in ["-d @/dev/zero", "--data-urlencode x@/dev/zero", "--variable x@/dev/zero"] {
        let run = http(&lab, &format!("{words} --total-timeout 0.1"), "http://127.0.0.1:1/").finish();
        run.exited(28).says(&["--total-timeout"]);
    }
    http(&lab, "-H @/dev/zero", "http://127.0.0.1:1/").finish().exited(125).says(&["/dev/zero", "1 MiB"]);
}

#[test]
fn an_endless_failure_that_is_wanted_ends_by_a_limit() {
    let lab = Lab::new();
    let server = Server::new([Answer::head(404, &["Content-Length: 99999999999999"]).repeat(vec![0; 1000]).stall()]);
    let run =
        bounded(&lab, "--fail-with-body -m 1 --max-attempts 1", &server).stdout(std::process::Stdio::null()).finish();
    run.exited(28);
}

#[test]
fn a_bomb_unfolds_within_bounds() {
    let lab = Lab::new();
    let (mut gzip, mut zlib) =
        (GzEncoder::new(Vec::new(), Compression::best()), ZlibEncoder::new(Vec::new(), Compression::best()));
    let zeros = vec![0; 1 << 20];
    for _ in 0..200 {
        gzip.write_all(&zeros).unwrap();
        zlib.write_all(&zeros).unwrap();
    }
    for (coding, bomb) in [("gzip", gzip.finish().unwrap()), ("deflate", zlib.finish().unwrap())] {
        let server = Server::new([Answer::new(200, &[&format!("Content-Encoding: {coding}")], bomb)]);
        for words in ["--compressed -o /dev/null", "--compressed"] {
            bounded(&lab, words, &server).stdout(std::process::Stdio::null()).finish().exited(0);
        }
        // Where nobody asked for it, it is passed on as it came.
        let run = bounded(&lab, "", &server).finish();
        assert!(run.exited(0).stdout.len() < 1 << 20);
    }
    let server = Server::new([Answer::new(200, &["Content-Encoding: br"], "x")]);
    ask(&lab, "--compressed --max-attempts 1", &server).exited(61).says(&["'br'"]);
}

#[test]
fn ten_thousand_redirects_are_not_followed() {
    let lab = Lab::new();
    let server = Server::by(|number, _| {
        if number < 10_000 {
            Answer::new(302, &[&format!("Location: /{number}")], "")
        } else {
            Answer::new(200, &[], "good")
        }
    });
    bounded(&lab, "-L", &server).finish().exited(47);
    assert_eq!(server.requests().len(), 51);
    // With heads of a size that together is too much, kept to be shown.
    let long = format!("X: {}", "y".repeat(200_000));
    let server = Server::by(move |number, _| Answer::new(302, &[&format!("Location: /{number}"), &long], ""));
    let run = bounded(&lab, "-L --max-redirs 9999 --max-attempts 1 -D heads", &server).finish();
    run.exited(56).says(&["heads"]);
}

#[test]
fn plain_and_tls_are_told_apart() {
    let lab = Lab::new();
    let server = Server::new([Answer::raw("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n").close()]);
    // The handshake is no request that this server understands: it waits for its end.
    let run = http(&lab, "-k --max-attempts 1 -m 2", &format!("https://127.0.0.1:{}/", server.port())).finish();
    assert!(matches!(run.status.code(), Some(28 | 35)), "{}", run.stderr);
    // One that speaks first.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let run = http(&lab, "-k --max-attempts 2", &format!("https://127.0.0.1:{port}/")).finish();
    run.exited(35).stopped(2, "attempts").says(&["TLS"]);
}

#[test]
fn what_a_server_says_is_shown_without_its_control_characters() {
    let lab = Lab::new();
    let code = "Throttling\u{1b}[2J";
    let server = Server::new([
        Answer::raw(format!(
            "HTTP/1.1 503 \x1b[31m\r\nRetry-After: \x1b[2Jx\r\nx-amzn-errortype: {code}\r\nContent-Length: 0\r\n\r\n"
        )),
        Answer::new(302, &["Location: \u{1b}[2J://x"], ""),
    ]);
    let run = http(&lab, "-vv --max-attempts 3 -L", &server.url("/")).finish();
    assert!(!run.stderr.contains('\u{1b}'), "{:?}", run.stderr);
}

#[test]
fn a_long_download_needs_little_memory() {
    let lab = Lab::new();
    let server = Server::by(|_, _| {
        let block = vec![b'x'; 1 << 20];
        (0..100).fold(Answer::head(200, &["Content-Length: 104857600"]), |answer, _| answer.send(&block))
    });
    for words in ["-o f", "-o /dev/null", "", "-N", "-i -o f", "-o f"] {
        // On the data segment and anonymous mappings; what is mapped of the program is beside it.
        let script = "ulimit -d 16384; exec retryx http $W $U";
        let run =
            lab.shell(script).env("W", words).env("U", server.url("/")).stdout(std::process::Stdio::null()).finish();
        run.exited(0);
    }
    assert_eq!(std::fs::metadata(lab.path("f")).unwrap().len(), 104_857_600);
    // The same where it comes a thousandth as long.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&vec![0; 104_857_600]).unwrap();
    let server = Server::new([Answer::new(200, &["Content-Encoding: gzip"], gzip.finish().unwrap())]);
    for words in ["--compressed", "--compressed -o /dev/null", "--compressed -o f"] {
        let script = "ulimit -d 16384; exec retryx http $W $U";
        let run =
            lab.shell(script).env("W", words).env("U", server.url("/")).stdout(std::process::Stdio::null()).finish();
        run.exited(0);
    }
}
