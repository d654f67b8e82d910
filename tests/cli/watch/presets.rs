//! Presets on the command line, and programs that say in their own words what went wrong.

use crate::support::{Lab, Terminal, has_programs, skip};

use super::verdict;

/// Puts a `curl` into the PATH that notes its arguments, says `$SAY` and exits `$CODE`.
fn with_curl(lab: &Lab) {
    let script = "#!/bin/sh\nprintf '%s\\n' \"$*\" >>$D/arguments\n[ -z \"$SAY\" ] || echo \"$SAY\" >&2\nexit $CODE\n";
    lab.executable("bin/curl", script);
}

const ANSWER: &str = "curl: (22) The requested URL returned error: ";

#[test]
fn what_a_program_says_decides() {
    let lab = Lab::new();
    with_curl(&lab);
    for (options, code, says, class, rule) in [
        ("", "3", "", "permanent", "curl preset, malformed URL"),
        ("--preset auto", "3", "", "permanent", "curl preset, malformed URL"),
        ("--preset curl", "3", "", "permanent", "curl preset, malformed URL"),
        ("--preset none", "3", "", "transient", "default:exit"),
        ("", "22", "404", "permanent", "curl preset, status 404"),
        ("", "22", "503", "transient", "curl preset, status 503"),
        ("", "22", "429", "throttling", "curl preset, status 429"),
        ("--preset none", "22", "404", "transient", "default:exit"),
        ("--retry-on default,http:404", "22", "404", "transient", "--retry-on http:404"),
        ("--retry-on http:5xx", "22", "404", "permanent", "curl preset, status 404"),
        ("--fail-on http:503", "22", "503", "permanent", "--fail-on http:503"),
        ("--throttle-on http:503", "22", "503", "throttling", "--throttle-on http:503"),
        // Another command's own words are its own.
        ("", "22", "404 not found\nmore", "permanent", "curl preset, status 404"),
    ] {
        let says = if says.is_empty() { String::new() } else { format!("{ANSWER}{says}") };
        let run = lab.run("-n 1").words(options).env("CODE", code).env("SAY", &says).command(&["curl", "x"]).finish();
        assert_eq!(verdict(&run), (class.to_owned(), rule.to_owned()), "{options} {code} {says}");
        let told = says.strip_prefix(ANSWER).map(|rest| rest[..3].parse::<u64>().unwrap());
        let told = told.filter(|_| !options.contains("none"));
        assert_eq!(run.of("attempt_finished")[0]["http_status"].as_u64(), told, "{options} {says}");
        assert!(run.stderr.starts_with(&says), "{}", run.stderr);
    }
    // By its base name, wherever it is; and no other name.
    for (program, class) in [("bin/curl", "permanent"), ("./bin/curl", "permanent"), ("mycurl", "transient")] {
        let run = lab.run("-n 1").env("CODE", "3");
        let run = if program == "mycurl" { run.sh("exit 3") } else { run.command(&[program]) }.finish();
        assert_eq!(verdict(&run).0, class, "{program}");
    }
    let run = lab.run("-n 1 --preset curl").sh("exit 3").finish();
    assert_eq!(verdict(&run).1, "curl preset, malformed URL");
    // A success is one whatever was said on the way.
    let run = lab.run("").env("CODE", "0").env("SAY", format!("{ANSWER}404")).command(&["curl"]).finish();
    run.exited(0).stopped(1, "success");
}

#[test]
fn a_permanent_failure_names_the_rule_that_said_so() {
    let lab = Lab::new();
    with_curl(&lab);
    let run = lab.run("-n 5").env("CODE", "3").command(&["curl", "x"]).finish();
    run.exited(3).stopped(1, "permanent");
    assert_eq!(run.messages(), ["giving up after 1 attempt: exit status 3 (permanent: curl preset, malformed URL)"]);
    let run = lab.run("-n 5").env("CODE", "22").env("SAY", format!("{ANSWER}404")).command(&["curl", "x"]).finish();
    run.exited(22).says(&["(permanent: curl preset, status 404)"]);
    let run = lab.run("-n 5 --fail-on stdout:/never/,3").sh("exit 3").finish();
    run.exited(3).says(&["(permanent: --fail-on 3)"]);
    let run = lab.run("-v -n 1").env("CODE", "3").command(&["curl", "x"]).finish();
    run.says(&["judged by the preset curl", "permanent (rule curl preset, malformed URL)"]);
}

// Design §4: "without a status line it stays transient and the message advises -S".
#[test]
fn advice_is_given_once_in_a_run() {
    let lab = Lab::new();
    with_curl(&lab);
    for attempts in ["1", "3"] {
        let run = lab.run("--base-delay 0 -n").arg(attempts).env("CODE", "22").command(&["curl", "-fs", "x"]).finish();
        run.exited(22).stopped(attempts.parse().unwrap(), "attempts");
        let hints: Vec<_> = run.messages().into_iter().filter(|line| line.starts_with("hint: ")).collect();
        assert_eq!(hints.len(), 1, "{}", run.stderr);
        assert!(hints[0].contains("-S"), "{hints:?}");
    }
    let run = lab.run("-q -n 2 --base-delay 0").env("CODE", "22").command(&["curl", "-fs", "x"]).finish();
    assert_eq!(run.stderr, "");
}

#[test]
fn a_preset_goes_by_the_names_of_its_programs_too() {
    let lab = Lab::new();
    for name in ["pip", "pip3", "apt", "apt-get", "sftp", "pg_dump"] {
        lab.bare("-n 1").arg(format!("--preset={name}")).command(&["true"]).finish().exited(0);
    }
}

#[test]
fn a_preset_that_nobody_knows_is_refused() {
    let lab = Lab::new();
    for name in ["nosuch", "", "Curl", "curl,wget", "AUTO"] {
        let run = lab.bare("").arg(format!("--preset={name}")).sh("echo >ran").finish();
        run.exited(125).says(&["--preset", "auto, none", "curl"]);
    }
    let run = lab.bare("").env("RETRYX_PRESET", "nosuch").sh("echo >ran").finish();
    run.exited(125).says(&["RETRYX_PRESET", "'nosuch'", "auto, none"]);
    for (variable, value) in [("RETRYX_WATCH", "maybe"), ("RETRYX_SOLE_RETRIER", "2")] {
        lab.bare("").env(variable, value).sh("echo >ran").finish().exited(125).says(&[variable, value]);
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn variables_set_what_options_set_and_give_way_to_them() {
    let lab = Lab::new();
    for (variable, options, class) in [
        ("curl", "", "permanent"),
        ("none", "", "transient"),
        ("", "", "transient"),
        ("curl", "--preset none", "transient"),
        ("curl", "--preset auto", "transient"),
        ("none", "--preset curl", "permanent"),
    ] {
        let run = lab.run("-n 1").env("RETRYX_PRESET", variable).words(options).sh("exit 3").finish();
        assert_eq!(verdict(&run).0, class, "{variable} {options}");
    }
}

#[test]
fn the_programs_own_retries_are_switched_off_where_that_is_known() {
    let lab = Lab::new();
    with_curl(&lab);
    let run =
        lab.run("-n 2 --base-delay 0 -v --sole-retrier").env("CODE", "7").command(&["curl", "a b", "-x"]).finish();
    run.exited(7).says(&["--sole-retrier", "switched off by --retry 0"]);
    assert_eq!(lab.lines("arguments"), ["a b -x --retry 0", "a b -x --retry 0"]);
    let run = lab.run("-n 1").env("RETRYX_SOLE_RETRIER", "yes").env("CODE", "7").command(&["curl", "c"]).finish();
    assert_eq!(lab.lines("arguments")[2], "c --retry 0");
    assert!(!run.stderr.contains("switched off"), "only where it is asked for: {}", run.stderr);
    lab.run("-n 1").env("CODE", "7").command(&["curl", "d"]).finish();
    assert_eq!(lab.lines("arguments")[3], "d");
    lab.run("-n 1 --sole-retrier").env("CODE", "7").command(&["curl", "--retry", "3", "--", "e"]).finish();
    assert_eq!(lab.lines("arguments")[4], "--retry 3 --retry 0 -- e");
    // Nothing is known: one line says so, and the command runs.
    for (options, quiet) in [("", false), ("--preset none", false), ("-q", true)] {
        let run = lab.run("-n 1 --sole-retrier").words(options).sh("exit 7").finish();
        run.exited(7);
        assert_eq!(run.stderr.matches("nothing is known").count(), usize::from(!quiet), "{}", run.stderr);
    }
}

#[test]
fn on_a_terminal_a_preset_judges_by_the_code_alone_unless_asked_to_watch() {
    let lab = Lab::new();
    with_curl(&lab);
    let mut terminal = Terminal::shell(&lab);
    for (options, code, rule) in [
        ("", 22, "default:exit"),
        // Not even by that where the code alone could be wrong.
        ("", 3, "default:exit"),
        ("", 2, "curl preset, bad usage"),
        ("--watch", 3, "curl preset, malformed URL"),
        ("--watch", 22, "curl preset, status 404"),
        ("--preset curl", 22, "curl preset, status 404"),
    ] {
        terminal.run(&format!("rm -f e; CODE={code} SAY='{ANSWER}404' retryx -n 1 --events e {options} -- curl x"));
        let finished = crate::support::Events::at(lab.path("e")).wait("attempt_finished", 1);
        // A row may know more of the code than that it failed.
        let right = finished["rule"] == rule || (rule == "default:exit" && finished["class"] == "transient");
        assert!(right, "{options} {code}: {finished}");
    }
    // The README's tour.
    if !has_programs(&["git"]) {
        skip!("git is not installed");
    }
    terminal.run("rm -f e; retryx --events e -- git clone --bad-option");
    let stopped = crate::support::Events::at(lab.path("e")).wait("stopped", 1);
    assert_eq!((&stopped["attempts"], &stopped["reason"]), (&1.into(), &"permanent".into()));
}
