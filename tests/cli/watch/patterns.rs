//! What patterns see, and what follows from it.

use crate::support::{Lab, Terminal};

use super::{BOTH, pieces, verdict};

/// The most bytes of a line that a pattern sees.
const MOST: usize = 64 * 1024;

#[test]
fn a_pattern_looks_at_lines() {
    let long = |before: usize, after: &str| [&vec![b'x'; before][..], after.as_bytes()].concat();
    let rows: &[(&str, &[u8], bool)] = &[
        ("/^two$/", b"one\ntwo\nthree\n", true),
        ("/^two$/", b"one\rtwo\rthree\r", true),
        ("/^two$/", b"one\r\ntwo\r\nthree\r\n", true),
        ("/^two$/", b"one\ntwo three\n", false),
        ("/^two/", b"one two\n", false),
        ("/two$/", b"two one\n", false),
        // The last line needs no end, and the first none before it.
        ("/^two$/", b"one\ntwo", true),
        ("/^two$/", b"two", true),
        // No pattern sees two lines at once.
        ("/one.two/", b"one\ntwo\n", false),
        (r"/one\stwo/", b"one\ntwo\n", false),
        (r"/one\s+two/", b"one\r\ntwo\n", false),
        (r"/(?s)one.+two/", b"one\rtwo\n", false),
        ("/one[^x]two/", b"one\ntwo\n", false),
        (r"/\Aone$/", b"zero\none\n", true),
        (r"/^one\z/", b"one\ntwo\n", true),
        // Empty lines.
        ("/^$/", b"a\n\nb\n", true),
        ("/^$/", b"\n", true),
        ("/^$/", b"a\r\rb\r", true),
        ("/^$/", b"a\nb\n", false),
        ("/^$/", b"a\r\nb\r\n", false),
        ("/^$/", b"", false),
        // Upper and lower case.
        ("/TWO/", b"two\n", false),
        ("/TWO/i", b"a two\n", true),
        ("/É/i", "é\n".as_bytes(), true),
        (r"/a\/b/", b"a/b\n", true),
        ("/a,b and c/", b"a,b and c\n", true),
        // Any bytes.
        ("/two/", b"\xff\xfe\0two\x80\n", true),
        ("/^two$/", b"\xff\xfe\n\0\n\xc3\ntwo\n\x80", true),
        (r"/(?-u)\xff\xfe/", b"a\xff\xfeb\n", true),
        // What a terminal does not show.
        ("/^two$/", b"\x1b[1;31mt\x1b[0mwo\x1b[K\n", true),
        ("/^two$/", b"\x1b]0;title\x07two\n", true),
        ("/^two$/", b"\x1b]8;;http://x\x1b\\two\x1b]8;;\x1b\\\n", true),
        ("/^two$/", b"t\x1b(Bw\x1b[mo\x1b(B\n", true),
        ("/^two$/", b"two\x1b[", true),
        ("/31m/", b"\x1b[31mtwo\n", false),
        ("/title/", b"\x1b]0;title\x07two\n", false),
        // Of a long line the beginning.
        ("/needle/", &long(MOST - 6, "needle"), true),
        ("/needle/", &long(MOST - 6, "needle\n"), true),
        ("/needle/", &long(MOST - 5, "needle\n"), false),
        ("/^needle$/", &long(3 * MOST, "\nneedle"), true),
        ("/^needle$/", &long(3 * MOST, "\r\nneedle\r\n"), true),
    ];
    let lab = Lab::new();
    for (pattern, text, matches) in rows {
        lab.write("text", text);
        let run = lab.run("-n 1").args(["--retry-on", &format!("stdout:{pattern}")]).sh("cat text; exit 7").finish();
        let (class, rule) = verdict(run.exited(7));
        let shown = format!("{pattern} in {}", text[text.len().saturating_sub(60)..].escape_ascii());
        assert_eq!(class, if *matches { "transient" } else { "permanent" }, "{shown}");
        if *matches {
            assert_eq!(rule, format!("--retry-on stdout:{pattern}"));
        }
        assert!(run.stdout == *text, "{shown}");
    }
}

#[test]
fn it_does_not_matter_where_the_writes_are_cut() {
    let lab = Lab::new();
    for (writes, matches) in [
        (&["retry ", "later\\n"][..], true),
        (&["ret", "ry", " lat", "er"], true),
        (&["\\n", "retry later", "\\n"], true),
        (&["a\\r", "\\nretry later\\r", "\\nb"], true),
        (&["a\\r", "retry later\\r", "b"], true),
        (&["retry la\\e", "[31mter\\n"], true),
        (&["retry la\\e[3", "1mter\\n"], true),
        (&["retry la\\e[31", "mter\\n"], true),
        (&["\\e]0;ti", "tle\\ar", "etry later"], true),
        (&["retry la\\e(", "Bter"], true),
        (&["retry\\n", "later\\n"], false),
        (&["retry \\r", "\\nlater\\n"], false),
        (&["re", "try later too"], false),
    ] {
        let script = writes.iter().fold(String::new(), |script, write| script + &format!("w(qq{{{write}}});"));
        let run = pieces(&lab, &["--retry-on", "stdout:/^retry later$/"], &format!("{script} exit 1"));
        assert_eq!(verdict(&run).0, if matches { "transient" } else { "permanent" }, "{writes:?}");
    }
    // Every cut of one text.
    let text = "x\\e[1my\\r\\nz";
    let bytes = b"x\x1b[1my\r\nz";
    let cuts = (1..bytes.len()).fold(String::new(), |script, at| {
        script + &format!("w(substr(qq({text}), 0, {at})); w(substr(qq({text}), {at}).qq(\\n));")
    });
    let run = pieces(
        &lab,
        &["--retry-on", "stdout:/^xy$/", "--fail-on", "stdout:/^$/,stdout:/[^xyz]/"],
        &format!("{cuts} exit 1"),
    );
    assert_eq!(verdict(&run).1, "--retry-on stdout:/^xy$/");
}

#[test]
fn each_stream_is_looked_at_for_its_own_patterns() {
    let lab = Lab::new();
    let script = "echo out; echo err >&2; exit 7";
    for (rule, matches) in [
        ("stdout:/out/", true),
        ("stdout:/err/", false),
        ("stderr:/err/", true),
        ("stderr:/out/", false),
        ("output:/out/", true),
        ("output:/err/", true),
        ("output:/outerr/", false),
        ("stdout:/nothing/,stderr:/nothing/,stderr:/^err$/", true),
        ("stdout:/out/ and stderr:/err/", true),
        ("stdout:/out/ and stderr:/nothing/", false),
        ("7 and stderr:/err/", true),
        ("8 and stderr:/err/", false),
        ("8,output:/nothing/", false),
        ("default,output:/nothing/", true),
    ] {
        let run = lab.run("-n 2 --base-delay 0").args(["--retry-on", rule]).sh(script).finish();
        run.exited(7).stopped(if matches { 2 } else { 1 }, if matches { "attempts" } else { "permanent" });
        assert_eq!(run.text().lines().filter(|line| *line == "out").count(), run.of("attempt_started").len());
    }
}

#[test]
fn what_was_found_decides_in_the_documented_order() {
    let lab = Lab::new();
    let script = "echo busy; echo denied >&2; exit 7";
    for (options, class, rule) in [
        (
            &["--fail-on", "stderr:/denied/", "--retry-on", "stdout:/busy/"][..],
            "permanent",
            "--fail-on stderr:/denied/",
        ),
        (&["--retry-on", "stdout:/busy/", "--fail-on", "stderr:/denied/"], "permanent", "--fail-on stderr:/denied/"),
        (&["--throttle-on", "stdout:/busy/", "--retry-on", "any"], "throttling", "--throttle-on stdout:/busy/"),
        (&["--throttle-on", "stdout:/idle/", "--retry-on", "any"], "transient", "--retry-on any"),
        (&["--succeed-on", "stderr:/denied/"], "permanent", ""),
    ] {
        let run = lab.run("-n 1").args(options).sh(script).finish();
        if options[0] == "--succeed-on" {
            run.exited(0).stopped(1, "success");
        } else {
            assert_eq!(verdict(run.exited(7)), (class.to_owned(), rule.to_owned()));
        }
    }
    // The next attempt is judged by what it wrote itself.
    let script = "if [ $RETRYX_RUN_ATTEMPT = 1 ]; then echo busy; else echo else; fi; exit 7";
    let run = lab.run("-n 5 --base-delay 0 --retry-on stdout:/busy/").sh(script).finish();
    run.exited(7).stopped(2, "permanent");
}

// The command says 0 and means failure.
#[test]
fn a_success_that_says_otherwise_is_no_success() {
    let lab = Lab::new();
    let rule = ["--retry-on", "0 and output:/could not be loaded/"];
    for stream in ["", ">&2"] {
        let script = format!("[ $RETRYX_RUN_ATTEMPT = 3 ] || echo x could not be loaded {stream}");
        let run = lab.run("-n 5 --base-delay 0").args(rule).sh(&script).finish();
        run.exited(0).stopped(3, "success");
    }
    let run = lab.run("-n 2 --base-delay 0").args(rule).sh("echo could not be loaded").finish();
    run.exited(1).stopped(2, "attempts").says(&["exit status 0, a failure by --retry-on 0 and output:/could not"]);
    // A pattern alone never touches a success.
    let run =
        lab.run("-n 2 --base-delay 0 --retry-on output:/loaded/ --fail-on output:/loaded/").sh("echo loaded").finish();
    run.exited(0).stopped(1, "success");
}

/// Ends right after a large write whose last bytes are the ones that count.
const TAIL: &str = "$x = qq(abc\\n) x 50000; print STDOUT $x, q(THE END); exit 7";

// B32
#[test]
fn no_tail_is_lost_where_the_command_ends_right_after_a_big_write() {
    let lab = Lab::new();
    let rule = ["--retry-on", "output:/^THE END$/"];
    for round in 0..10 {
        let run = lab.run("-n 1").args(rule).perl(TAIL).finish();
        assert_eq!(verdict(&run).0, "transient", "{round}");
        assert_eq!((run.stdout.len(), run.text().ends_with("\nTHE END")), (200_007, true), "{round}");
        let run = lab.run("-n 1").args(rule).perl(&TAIL.replace("STDOUT", "STDERR")).finish();
        assert_eq!(verdict(&run).0, "transient", "{round}");
        assert_eq!(run.stderr.find("THE END"), Some(200_000));
    }
    let script = format!("retryx -n 1 --retry-on stdout:/^THE.END$/ -- perl -e '{TAIL}' | tail -c 7; echo; exit 0");
    let run = lab.bash(&script).finish();
    assert!(run.text() == "THE END\n" && !run.stderr.contains("does not name"), "{}", run.stderr);
}

#[test]
fn no_tail_is_lost_on_a_terminal_either() {
    let lab = Lab::new();
    for round in 0..10 {
        let events = format!("events-{round}");
        let options = ["-n", "1", "--events", &events, "--retry-on", "stdout:/^THE END$/"];
        let words = [&["retryx"][..], &options, &["--", "perl", "-e", TAIL]].concat();
        let mut terminal = Terminal::start(&lab, &words);
        let shown = terminal.wait_for("THE END");
        assert_eq!(shown.len(), 250_007, "{round}: each line end became two bytes, once");
        assert_eq!(terminal.finish().code(), Some(7));
        let last = crate::support::Events::at(lab.path(&events)).wait("attempt_finished", 1);
        assert_eq!(last["class"], "transient", "{round}");
    }
}

#[test]
fn a_pattern_that_cannot_be_read_stops_before_anything_runs() {
    let lab = Lab::new();
    for (option, pattern, hints) in [
        ("--retry-on", "stdout:/ab)c/", &["/ab)c/", "at character 3"][..]),
        ("--retry-on", "7,stderr:/(/", &["/(/", "at character 1", "unclosed group"]),
        ("--fail-on", "output:/é[z-a]/", &["/é[z-a]/", "at character 3"]),
        ("--throttle-on", "stdout:/a{2,1}/i", &["/a{2,1}/", "at character 2"]),
        ("--succeed-on", "stdout:/(?=x)/", &["/(?=x)/", "look-around"]),
        ("--retry-on", "stdout:/x", &["stdout:/x", "closing slash"]),
        ("--retry-on", "stdout:x", &["slashes"]),
        ("--retry-after-match", "stderr:/(a/", &["/(a/", "at character 1"]),
        ("--retry-on", "stdout:/x{50000}{50000}/", &["x{50000}{50000}", "size"]),
    ] {
        let run = lab.bare("-n 1").args([option, pattern]).sh("echo x >>$D/ran").finish();
        run.exited(125).says(&[option]).says(hints);
        assert_eq!(run.messages().len(), 1, "{}", run.stderr);
        assert!(!lab.path("ran").exists());
    }
}

#[test]
fn patterns_of_any_size_and_nastiness_cost_no_more_than_their_length() {
    let lab = Lab::new();
    lab.tool("sh", &["-c", "perl -e 'print q(a) x 200000, qq(b\\n) for 1..5' >text"]);
    // A backtracking matcher would not come to an end.
    for pattern in ["/(a+)+$/", "/(a|a)*$/", "/^(a?){50}a{50}c/", "/(.*)*x/", "/(a*)*b?$/"] {
        let run = lab.run("-n 1").args(["--retry-on", &format!("stdout:{pattern}")]).sh("cat text; exit 7").finish();
        let class = if ["/(a+)+$/", "/(a|a)*$/", "/(a*)*b?$/"].contains(&pattern) { "transient" } else { "permanent" };
        // Only the first 64 KiB are seen, so the line ends in `a`.
        assert_eq!(verdict(run.exited(7)).0, class, "{pattern}");
    }
    // As long as a word of a command line may be, nearly; and very many.
    let words: Vec<String> = (0..9000).map(|number| format!("word{number}")).collect();
    let many: Vec<String> = words.iter().step_by(20).map(|word| format!("stderr:/^{word}$/")).collect();
    let long = format!("stderr:/^(?:{})$/", words.join("|"));
    let literal = format!("stderr:/{}/", "x".repeat(100_000));
    for rule in [&long, &many.join(","), &literal] {
        let run = lab.run("-n 1").args(["--retry-on", rule]).sh("echo word8980 >&2; exit 7").finish();
        let class = if rule == &literal { "permanent" } else { "transient" };
        assert_eq!(verdict(run.exited(7)).0, class, "{}", &rule[..40]);
    }
}

/// Limits are kept also where it takes its time to look at what the command wrote at once.
#[test]
fn what_takes_long_to_look_at_holds_no_limit_up() {
    let lab = Lab::new();
    let script = r"perl -e 'print q(x) x 1000, qq(\n), (q(-) x 1000 . qq(\n)) x 63 for 1..10'; exec sleep 300";
    for limit in ["--timeout 0.3", "--total-timeout 0.3"] {
        let run = lab
            .run(&format!("-n 1 --kill-after 0 {limit}"))
            .args(["--retry-on", "stdout:/(x{1,32}){1,32}y/"])
            .sh(script)
            .finish();
        run.exited(124).says(&["300 ms"]);
        assert!(run.stdout.len() < 640_640, "all of it was looked at");
    }
}

#[test]
fn what_explain_says_of_a_text_is_what_a_run_does() {
    let lab = Lab::new();
    for text in ["busy", "a\nbusy", "a busy", "bu\x1b[1msy", ""] {
        let rule = ["--retry-on", "stderr:/^busy$/"];
        let run = lab.run("-n 1").args(rule).sh(&format!("printf %s '{text}' >&2; exit 7")).finish();
        let said = lab.bare("explain --exit 7 --format json").args(rule).args(["--stderr-text", text]).finish();
        let said: serde_json::Value = serde_json::from_slice(&said.exited(0).stdout).expect("an object");
        let (class, rule) = verdict(&run);
        assert_eq!((&said["class"], &said["rule"]), (&class.into(), &rule.into()), "{text:?}");
    }
}

#[test]
fn output_that_matches_nothing_is_nobodys_business() {
    let lab = Lab::new();
    let run = lab.run("").args(["--retry-on", BOTH]).sh("echo out; echo err >&2").finish();
    run.exited(0).stopped(1, "success");
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("out\n", "err\n"));
}
