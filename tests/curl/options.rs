//! Every option that curl has is taken, or refused by name with what to do here.

use std::collections::BTreeSet;

use retryx::cli::options::{OPTIONS, Sub};
use retryx::cli::refused::REFUSED;

use crate::server::Server;
use crate::support::Lab;

/// The options that `curl --help all` lists: long name, letter, whether it has a value.
fn curl_options(lab: &Lab) -> Vec<(String, Option<char>, bool)> {
    let help = lab.tool("curl", &["--help", "all"]);
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-'));
    lines
        .map(|line| {
            let (letter, rest) = match line.trim_start().split_once(", --") {
                Some((letter, rest)) => (letter.chars().nth(1), rest),
                None => (None, line.trim_start().trim_start_matches("--")),
            };
            let (name, after) = rest.split_once(' ').unwrap_or((rest, ""));
            (name.to_owned(), letter, after.starts_with(['<', '[']))
        })
        .collect()
}

fn is_taken(name: &str) -> bool {
    OPTIONS.iter().any(|option| option.long == name && option.of(Sub::Http))
}

#[test]
fn each_option_of_curl_is_taken_or_refused_by_name() {
    let lab = Lab::new();
    let options = curl_options(&lab);
    assert!(options.len() > 200, "{options:?}");
    let mut wrong = Vec::new();
    for (name, letter, has_value) in options {
        let mut ways = vec![format!("--{name}")];
        ways.extend(letter.map(|letter| format!("-{letter}")));
        let taken = OPTIONS.iter().find(|option| option.long == name && option.of(Sub::Http));
        if let Some(option) = taken {
            if letter != option.short_of(Sub::Http) || has_value != option.value.is_some() && name != "help" {
                wrong.push(format!("{name}: {letter:?} {has_value}, but {:?} {:?}", option.short, option.value));
            }
            continue;
        }
        for way in ways {
            // Letters that retryx itself has in all places.
            if way == "-q" {
                continue;
            }
            let run = lab.bare("http").args([way.as_str(), "x", "http://127.0.0.1:1/"]).finish();
            let refused = run.stderr.starts_with(&format!("retryx: http does not take {way}"));
            if run.status.code() != Some(125) || !refused || run.stderr.lines().count() != 1 {
                wrong.push(format!("{way}: {:?} {}", run.status, run.stderr));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_both_taken_and_refused() {
    let mut seen = BTreeSet::new();
    for row in REFUSED {
        assert!(!row.reason.is_empty() && !row.reason.ends_with(". "), "{}", row.reason);
        for (long, letter) in row.options {
            assert!(seen.insert(*long), "{long} is there twice");
            assert!(!is_taken(long), "{long} is taken");
            let own =
                OPTIONS.iter().filter(|option| option.of(Sub::Http)).filter_map(|option| option.short_of(Sub::Http));
            assert!(letter.is_none_or(|letter| own.into_iter().all(|taken| taken != letter)), "{letter:?} is taken");
        }
    }
}

#[test]
fn a_refused_name_may_be_a_value_or_a_commands_option() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/", server.address);
    lab.bare("http -d --retry").arg(&url).finish().exited(0);
    lab.bare("http --data=--retry -H").arg("X: --netrc").arg(&url).finish().exited(0);
    let bodies: Vec<_> = server.take().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"--retry", b"--retry"]);
    // A letter of curl's is no matter of a command's.
    lab.bare("-Z true").finish().exited(125).says(&["unknown option '-Z'"]);
    lab.bare("-- true --retry").finish().exited(0);
}

#[test]
fn words_that_cannot_be_meant_are_told_from_urls() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/", server.address);
    let http = |words: &[&str]| lab.bare("http").args(words).finish();
    http(&["GET", &url]).exited(125).says(&["-X GET", "retryx -- http"]);
    http(&["POST", &url, "a=b"]).exited(125).says(&["-X POST"]);
    http(&["GET"]).exited(125).says(&["-X GET"]);
    http(&[]).exited(3).says(&["needs a URL", "retryx -- http"]);
    http(&["-s"]).exited(3).says(&["needs a URL"]);
    http(&[&url, &url]).exited(125).says(&["one URL"]);
    http(&["--", &url]).exited(0);
    http(&["-s", "--", &url, "-X"]).exited(125).says(&["one URL"]);
    http(&["--", "-x"]).exited(6);
    http(&["-X", "PU T", &url]).exited(125).says(&["PU T"]);
    http(&["-m", "0", &url]).exited(125);
    http(&["-m", "1x", &url]).exited(125).says(&["1x"]);
    http(&["--connect-timeout", "-1", &url]).exited(125);
    http(&["--max-redirs", "x", &url]).exited(125).says(&["--max-redirs", "'x'", "-1"]);
    http(&["--checksum", "md5:x", &url]).exited(125).says(&["--checksum", "sha256:"]);
    http(&["-o", "a", "-O", &url]).exited(125);
    http(&["-o", "a", "-o", "b", &url]).exited(125).says(&["--output", "twice"]);
    for option in ["-o", "-D", "--output-dir"] {
        http(&[option, "", &url]).exited(125).says(&["''"]);
    }
    http(&["-o", "", "-O", &url]).exited(125);
    for value in [";auto", "http://x/;auto"] {
        http(&["-L", "-e", value, &url]).exited(125).says(&["--referer", ";auto"]);
    }
    for option in ["--cacert", "--cert"] {
        http(&[option, "missing", &url]).exited(125).says(&[option, "missing: no such file"]);
        http(&[option, ".", &url]).exited(125).says(&[option, "directory"]);
    }
    http(&["--cert", "/dev/null", "--key", "missing", &url]).exited(125).says(&["--key", "missing: no such file"]);
    lab.write("big", vec![b'x'; 9 << 20]);
    let folder = lab.bare("http -T -").arg(&url).env("TMPDIR", "/no/folder").stdin_file("big");
    folder.finish().exited(125).says(&["TMPDIR", "/no/folder"]);
    http(&["-b", "jar.txt", &url]).exited(125).says(&["file of cookies"]);
    // curl would ask ("nobody-is-asked").
    http(&["-u", "n0body", &url]).exited(125).says(&["--user", "NAME:"]);
    http(&["-K", "f", &url]).exited(125).says(&["-K (--config)"]);
    http(&["-n", "3", &url]).exited(125).says(&["-n (--netrc)", "--max-attempts"]);
    http(&["-sn", &url]).exited(125).says(&["-n (--netrc)"]);
    http(&["--no-such", &url]).exited(125).says(&["--no-such"]);
    // What is suggested is close, and what was taken for a value is found.
    http(&["--no-fail", &url]).exited(125).says(&["'--no-fail'", "leave --fail out"]);
    http(&["--sient", &url]).exited(125).says(&["did you mean '--silent'"]);
    for far in ["--wat", "--no-quota-retry"] {
        let run = http(&[far, &url]);
        assert!(!run.exited(125).stderr.contains("did you mean"), "{}", run.stderr);
    }
    http(&["-o", &url]).exited(3).says(&["needs a URL", "--output took"]);
    http(&["-s", "-H", &url, "-f"]).exited(3).says(&["needs a URL", "--header took"]);
    lab.write("headers", "X-A: 1\n\nnonsense\n");
    http(&["-H", "@headers", &url]).exited(125).says(&["headers, line 3: a header is written as"]);
    for (lines, said) in [(5001, "headers, line 49"), (500_000, "headers: it has more than 1 MiB")] {
        lab.write("headers", "a:b\n".repeat(lines));
        http(&["-H", "@headers", &url]).exited(125).says(&[said, "more than"]);
    }
    http(&["-F", "a=@x,y", &url]).exited(125).says(&["several files", "a=@\"x,y\""]);
    lab.write("file", "");
    http(&["--create-dirs", "-o", "file/x/y", &url]).exited(125).says(&["--create-dirs: file/x"]);
    http(&["-4", "-6", &url]).exited(125);
    http(&["--key", "k", &url]).exited(125).says(&["--cert"]);
    http(&["-x", "socks5://127.0.0.1:1", &url]).says(&["SOCKS", "http:"]);
    for injected in ["X: a\r\nY: b", "X: a\nY: b", "X\r\nY: a"] {
        http(&["-H", injected, &url]).exited(125);
    }
    for header in ["Content-Length: 5", "Content-Length:", "Transfer-Encoding: chunked"] {
        http(&["-d", "x", "-H", header, &url]).exited(125).says(&["leave"]);
    }
    for [option, value] in [["-A", "a\r\nX: 1"], ["-e", "a\nX: 1"], ["-b", "a=b\r\nX: 1"]] {
        http(&[option, value, &url]).exited(125).says(&["breaks the line"]);
    }
    for range in ["5,7", "", "-", "abc", "5x", "7-3", "1--2", "bytes=1-2", "0-1\r\nX: 1"] {
        http(&[&format!("--range={range}"), &url]).exited(125).says(&["--range: ", "0-499"]);
    }
    http(&["-F", "a=b;type=x\r\nX: 1", &url]).exited(125).says(&["breaks the line"]);
    // Only those that are right have asked anything.
    assert_eq!(server.take().len(), 1);
}

#[test]
fn no_password_is_shown_however_it_is_written() {
    let lab = Lab::new();
    for url in [
        "http://u:s3c/r3t@127.0.0.1:1/",
        "https://t0k:s3c/d+r3t==@127.0.0.1:1/p",
        "http://u:s3c?r3t@127.0.0.1:1",
        "u:s3c#r3t@127.0.0.1:1",
        "ftp://u:s3c/r3t@127.0.0.1:1/",
        "http://127.0.0.1:1/?a=s3c@r3t",
        "http://127.0.0.1:1/s3c@x?r3t",
    ] {
        let run = lab.run("-n 1 -vv http").arg(url).finish();
        assert_ne!(run.status.code(), Some(0));
        let told = format!("{} {:?}", run.stderr, run.events);
        assert!(!told.contains("s3c") && !told.contains("r3t"), "{url}: {told}");
    }
    lab.bare("http ://").finish().exited(3).says(&["'://'"]);
}

#[test]
fn policy_options_stand_before_or_after_the_name() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/503", server.address);
    lab.run("--max-attempts 2 --base-delay 0 http").arg(&url).finish().exited(22).stopped(2, "attempts");
    lab.run("http --max-attempts 2 --base-delay 0").arg(&url).finish().exited(22).stopped(2, "attempts");
    lab.run("-n 2 http -sS --base-delay 0 -f").arg(&url).finish().exited(22).stopped(2, "attempts");
    lab.run("http").arg(&url).words("--base-delay 0 -n2").finish().exited(125);
}

#[test]
fn options_about_commands_are_refused_in_front_too() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/", server.address);
    for words in [
        "--idle-timeout 500ms",
        "--preset curl",
        "--watch",
        "--retry-after-match (x)",
        "--sole-retrier",
        "--kill-after 1s",
        "--kill-signal INT",
        "--stdin null",
        "--stdout final",
        "--stderr final",
        "--shell",
        "--own-group",
    ] {
        let option = words.split(' ').next().expect("an option");
        let run = lab.bare(words).arg("http").arg(&url).finish();
        run.exited(125).says(&[option, "is about commands", "http does not take it"]);
    }
    lab.bare("--idle-timeout 1s http").arg(&url).finish().says(&["--timeout"]);
    assert!(server.take().is_empty());
    // Variables may be set for all runs.
    let run = lab.bare("http").arg(&url).env("RETRYX_IDLE_TIMEOUT", "1s").env("RETRYX_STDOUT", "final");
    run.env("RETRYX_WATCH", "true").finish().exited(0);
    // One of a run's is everybody's.
    lab.bare("--exit-code-on-failure 9 http").arg(format!("{url}404")).finish().exited(9);
}

#[test]
fn secrets_come_from_files_and_variables() {
    let lab = Lab::new();
    let server = Server::start();
    lab.write("hdr", "Authorization: Bearer s3cr3t\n");
    lab.write("body", "token=s3cr3t");
    let url = format!("http://{}/503", server.address);
    let started = lab.run("http -H @hdr -d @body --idempotent --mode fixed --base-delay 60").arg(&url).start();
    started.events.wait("retry_scheduled", 1);
    let words = std::fs::read_to_string(format!("/proc/{}/cmdline", started.pid)).unwrap();
    assert!(words.contains("@hdr") && !words.contains("s3cr3t"), "{words}");
    let seen = server.take();
    assert!(seen[0].holds("Authorization: Bearer s3cr3t") && seen[0].body == b"token=s3cr3t");
    drop(started);
    let run = lab
        .run("-vv http --variable %TOKEN --expand-header")
        .args(["X-Key: {{TOKEN}}", "--expand-data", "a={{TOKEN}}&b={{ TOKEN }}"])
        .arg(format!("http://{}/404", server.address))
        .env("TOKEN", "s3cr3t")
        .finish();
    run.exited(22);
    let seen = server.take();
    assert!(seen[0].holds("X-Key: s3cr3t"), "{seen:?}");
    assert_eq!(seen[0].body, b"a=s3cr3t&b=s3cr3t");
    let told = format!("{} {:?}", run.stderr, run.events);
    assert!(!told.contains("s3cr3t"), "{told}");
    lab.write("token", "from a file\n");
    lab.bare("http --variable t@token --variable u=lit --expand-header")
        .args(["X-A: {{t:trim}} {{u:url}}", &format!("http://{}/", server.address)])
        .finish()
        .exited(0);
    assert!(server.take()[0].holds("X-A: from a file lit"));
    // What is filled in counts as if it were written there, as in curl 8.
    lab.bare("http --variable t=@token --expand-data")
        .args(["{{t}}", "--expand-data-raw", "{{t}}", &format!("http://{}/", server.address)])
        .finish()
        .exited(0);
    assert_eq!(server.take()[0].body, b"from a file&@token");
    for (words, said) in [
        ("--variable %NOT_SET --expand-header X:{{NOT_SET}}", "NOT_SET"),
        ("--expand-header X:{{nothing}}", "nothing"),
        ("--variable 1x=y", "1x"),
        ("--variable a=b --expand-header X:{{a:nonsense}}", "nonsense"),
        ("--variable t@missing", "missing"),
    ] {
        lab.bare("http").words(words).arg(&url).finish().exited(125).says(&[said]);
    }
    assert!(server.take().is_empty());
}

/// The difference "timeout-of-attempts".
#[test]
fn the_limit_on_an_attempt_does_not_count_the_reading_of_input() {
    let lab = Lab::new();
    let server = Server::start();
    let url = format!("http://{}/x", server.address);
    let late = |program: &str| {
        let script = format!("{{ sleep 1.5; echo late; }} | {program} -sS -m 1 -T - $0");
        lab.shell(&script).arg(&url).finish()
    };
    late("curl").exited(28);
    server.take();
    late("retryx -n 1 http").exited(0);
    assert_eq!(server.take().len(), 1);
    late("retryx -n 1 --total-timeout 1 http").exited(28).says(&["--total-timeout"]);
    assert!(server.take().is_empty());
}
