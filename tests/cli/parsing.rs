//! The words of the command line: what belongs to retryx and what to the command.

use std::fs::File;

use crate::support::{Lab, bytes};

// B107
#[test]
fn everything_after_the_separator_belongs_to_the_command() {
    let lab = Lab::new();
    let words = ["printf", "[%s]", "--max-attempts", "9", "-n", "--help", "--", "-x", "-V"];
    let expected = "[--max-attempts][9][-n][--help][--][-x][-V]";
    let run = lab.bare("-n 1 --").args(words).finish();
    run.exited(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), (expected, ""));
    // And without it, from the first word that is no option of retryx.
    for options in ["", "-n 1", "-n1", "--max-attempts=1", "-vqn 1"] {
        let run = lab.bare(options).args(words).finish();
        if options == "-vqn 1" {
            run.exited(125);
        } else {
            assert_eq!(run.text(), expected, "{options}");
        }
    }
    lab.executable("bin/--version", "#!/bin/sh\necho mine\n");
    assert_eq!(lab.bare("-- --version").finish().text(), "mine\n");
    let run = lab.bare("ls -l").arg(lab.path("")).finish();
    run.exited(0);
    assert!(run.text().contains("home"));
}

// B108
#[test]
fn arguments_reach_the_command_byte_for_byte_in_every_attempt() {
    let lab = Lab::new();
    let words = ["a  b", "", "it's", "*", "$HOME", "`id`", "a;b", "\\\\", "x\ny", "\"", "--", "-", "ü", "\t", "%s"];
    let odd = [&b"\xff\xfe"[..], b"a\x80b", b"\xc3", b"\x01\x1b[0m"];
    let give = |run: crate::support::Run<'_>| {
        let run = run.args(words).args(odd.map(bytes));
        run.finish()
    };
    let script = "printf '[%s]\\n' \"$@\"; [ \"${RETRYX_RUN_ATTEMPT-1}\" = 2 ] || exit 1";
    let direct = give(lab.program("sh").args(["-c", script, "sh"]));
    let wrapped = give(lab.run("-n 2 --base-delay 0").args(["--", "sh", "-c", script, "sh"]));
    wrapped.exited(0).stopped(2, "success");
    assert_eq!(wrapped.stdout, direct.stdout.repeat(2));
}

#[test]
fn a_very_long_argument_and_very_many_are_passed_on() {
    let lab = Lab::new();
    let long = "x".repeat(120_000);
    let run = lab
        .run("--log-arguments")
        .command(&["sh", "-c", "echo ${#1} $#", "sh", &long])
        .args(vec!["y"; 10_000])
        .finish();
    run.exited(0);
    assert_eq!(run.text(), "120000 10001\n");
}

// B110
#[test]
fn no_command_is_a_usage_error() {
    let lab = Lab::new();
    for words in ["", "--", "-n 3", "-n 3 --", "--timeout 5 -q"] {
        let run = lab.bare(words).finish();
        run.exited(125).says(&["no command given", "retryx [OPTIONS]", "--help"]);
        assert_eq!(run.messages().len(), 1);
        assert!(run.stdout.is_empty());
    }
}

#[test]
fn names_of_subcommands_are_kept_for_them_but_not_after_the_separator() {
    let lab = Lab::new();
    for name in ["http", "quota", "simulate", "stats", "config", "schema", "translate"] {
        lab.executable(&format!("bin/{name}"), "#!/bin/sh\necho ran $1\n");
        let run = lab.bare("-n 1").args([name, "GET"]).finish();
        run.exited(125).says(&[&format!("retryx -- {name}")]);
        assert!(run.stdout.is_empty());
        assert_eq!(lab.bare("-n 1 --").args([name, "GET"]).finish().text(), "ran GET\n");
        // Only as the first word.
        assert_eq!(lab.bare("echo").arg(name).finish().text(), format!("{name}\n"));
    }
    lab.executable("bin/help", "#!/bin/sh\necho ran\n");
    assert_eq!(lab.bare("-- help").finish().text(), "ran\n");
    let run = lab.bare("help").finish();
    run.exited(0);
    assert!(run.text().contains("--max-attempts"));
}

#[test]
fn help_and_version_are_output_and_nothing_is_run() {
    let lab = Lab::new();
    for words in
        ["--help", "-h", "-n 3 --help", "--help touch ran", "-h -- touch ran", "-V", "--version", "-V touch ran"]
    {
        let run = lab.bare(words).finish();
        run.exited(0);
        assert!(run.stderr.is_empty());
        assert!(
            run.text().starts_with(if words.contains("-V") || words.contains("--version") {
                "retryx 0"
            } else {
                "Run"
            }),
            "{words}: {}",
            run.text()
        );
        assert!(!lab.path("ran").exists());
    }
    let long = lab.bare("--help").finish().text();
    let short = lab.bare("-h").finish().text();
    assert!(long.len() > short.len());
    // What a user must not get wrong stands there: the deadline is no time limit.
    let deadline = long[long.find("--deadline").unwrap()..].split_whitespace().collect::<Vec<_>>().join(" ");
    let deadline = &deadline[..deadline.find("--timeout").unwrap()];
    assert!(deadline.contains("left to finish; --total-timeout ends it"), "{deadline}");
    for status in ["124", "125", "126", "127", "128 + N"] {
        assert!(long.contains(status));
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    lab.bare("--help").stdout(full).finish().exited(125).says(&["standard output"]);
}

#[test]
fn the_last_giving_of_an_option_counts() {
    let lab = Lab::new();
    let run = lab.run("-n 9 --base-delay 100 -n 2 --base-delay 0").sh("exit 1").finish();
    run.exited(1).stopped(2, "attempts");
    let run = lab.run("--max-attempts=9 --max-attempts=1").sh("exit 1").finish();
    run.exited(1).stopped(1, "attempts");
}

// B116
#[test]
fn attempts_are_runs() {
    let lab = Lab::new();
    for attempts in 1..=3 {
        let options = format!("-n {attempts} --base-delay 0");
        let run = lab.run(&options).sh("echo x >>$D/m; exit 1").finish();
        run.exited(1).stopped(attempts, "attempts");
        assert_eq!(lab.lines("m").len() as u64, attempts);
        std::fs::remove_file(lab.path("m")).unwrap();
        for attempt in 1..attempts {
            run.says(&[&format!("attempt {attempt} of {attempts}")]);
        }
    }
}

#[test]
fn numbers_of_attempts_beyond_any_count_are_no_limit() {
    let lab = Lab::new();
    for number in ["18446744073709551615", "18446744073709551616", "99999999999999999999999999", "unlimited"] {
        let run = lab.run(&format!("-n {number} --base-delay 0")).sh("[ $RETRYX_RUN_ATTEMPT = 40 ]").finish();
        run.exited(0).stopped(40, "success").says(&["attempt 39 failed"]);
        assert!(!run.stderr.contains(number));
    }
}
