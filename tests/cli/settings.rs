//! Settings from variables and AWS's own files: which counts, and what is wrong with them.

use crate::support::{Lab, is_root, skip};

/// The plan's settings, by the options, variables and AWS config file.
fn explained(lab: &Lab, options: &str, variables: &[(&str, &str)]) -> String {
    let mut run = lab.bare("plan --explain-config").words(options);
    for (name, value) in variables {
        run = run.env(name, value);
    }
    let run = run.finish();
    run.exited(0);
    run.text()
}

/// The value and source of one setting.
fn setting(explained: &str, name: &str) -> String {
    let line = explained.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name} in {explained}")).split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn aws_variables_are_named_as_sources() {
    let lab = Lab::new();
    let text = explained(&lab, "", &[("AWS_RETRY_MODE", "adaptive"), ("AWS_MAX_ATTEMPTS", "5")]);
    assert_eq!(setting(&text, "mode"), "adaptive AWS_RETRY_MODE");
    assert_eq!(setting(&text, "max-attempts"), "5 AWS_MAX_ATTEMPTS");
    assert_eq!(setting(&text, "base-delay"), "50 ms default of the adaptive mode");
}

#[test]
fn the_stronger_source_counts_for_each_setting_alone() {
    let lab = Lab::new();
    lab.write("config", "[default]\nretry_mode = legacy\nmax_attempts = 7\n[profile p]\nmax_attempts=8\n");
    let file = lab.path("config").display().to_string();
    let with = |options: &str, variables: &[(&str, &str)]| {
        let variables: Vec<_> = [("AWS_CONFIG_FILE", file.as_str())].iter().chain(variables).copied().collect();
        let text = explained(&lab, options, &variables);
        (setting(&text, "mode"), setting(&text, "max-attempts"))
    };
    let (mode, attempts) = with("", &[]);
    assert!(mode.starts_with("legacy retry_mode of profile 'default' in "), "{mode}");
    assert!(attempts.starts_with("7 max_attempts of profile 'default' in "), "{attempts}");
    assert!(with("", &[("AWS_PROFILE", "p")]).1.starts_with("8 max_attempts of profile 'p'"));
    assert_eq!(with("", &[("AWS_MAX_ATTEMPTS", "5")]).1, "5 AWS_MAX_ATTEMPTS");
    let both = [("AWS_MAX_ATTEMPTS", "5"), ("RETRYX_MAX_ATTEMPTS", "4")];
    assert_eq!(with("", &both).1, "4 RETRYX_MAX_ATTEMPTS");
    assert_eq!(with("-n 3", &both).1, "3 --max-attempts");
    // AWS's settings mean nothing in another mode.
    assert_eq!(with("--mode fixed", &both[..1]), ("fixed --mode".into(), "3 default of the fixed mode".into()));
    assert_eq!(with("", &[("RETRYX_MODE", "google")]).1, "unlimited default of the google mode");
    // Empty is not set.
    assert_eq!(with("", &[("RETRYX_MAX_ATTEMPTS", ""), ("AWS_MAX_ATTEMPTS", "5")]).1, "5 AWS_MAX_ATTEMPTS");
}

#[test]
fn the_home_folders_file_is_read_and_a_missing_one_is_fine() {
    let lab = Lab::new();
    assert_eq!(setting(&explained(&lab, "", &[]), "max-attempts"), "3 default of the standard mode");
    std::fs::create_dir(lab.path("home/.aws")).expect("a folder");
    lab.write("home/.aws/config", "[default]\nmax_attempts = 6\n");
    assert!(setting(&explained(&lab, "", &[]), "max-attempts").starts_with("6 max_attempts of profile 'default'"));
    let run = lab.run("--base-delay 0").command(&["false"]).finish();
    run.exited(1).stopped(6, "attempts");
}

#[test]
fn every_option_has_a_variable_and_the_command_line_beats_it() {
    let lab = Lab::new();
    let variables =
        [("RETRYX_BASE_DELAY", "7ms"), ("RETRYX_JITTER", "none"), ("RETRYX_RETRY_ON", "75"), ("RETRYX_VERBOSE", "1")];
    let fail = |options: &str, code: i32| {
        let mut run = lab.run(options);
        for (name, value) in variables {
            run = run.env(name, value);
        }
        run.sh(&format!("exit {code}")).finish()
    };
    let run = fail("-n 2", 75);
    assert_eq!(run.each("retry_scheduled", "delay_ms"), [7.0]);
    run.says(&["delay before attempt 2"]);
    fail("-n 2", 1).stopped(1, "permanent");
    // A list on the command line replaces the variable's, it does not add to it.
    fail("-n 2 --retry-on 1", 75).stopped(1, "permanent");
    fail("-n 2 --retry-on 1", 1).stopped(2, "attempts");
    let quiet = fail("-q -n 2", 75);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_nested_run_is_not_bound_by_the_facts_of_the_outer_one() {
    let lab = Lab::new();
    let run = lab
        .run("-n 1")
        .env("RETRYX_RUN_MAX_ATTEMPTS", "9")
        .env("RETRYX_RUN_SOMETHING", "x")
        .command(&["false"])
        .finish();
    run.exited(1).stopped(1, "attempts");
    assert_eq!(run.messages().len(), 1);
}

// B112 (the variables)
#[test]
fn a_wrong_variable_stops_before_anything_runs_and_names_itself() {
    let lab = Lab::new();
    for (name, value) in [
        ("RETRYX_TIMEOUT", "soon"),
        ("RETRYX_MAX_ATTEMPTS", "0"),
        ("RETRYX_MODE", "amazon"),
        ("RETRYX_RETRY_ON", "256"),
        ("RETRYX_QUIET", "perhaps"),
        ("RETRYX_VERBOSE", "7"),
        ("RETRYX_QUOTA_COST", "much"),
        ("RETRYX_QUOTA_REFILL", "-1"),
        ("RETRYX_DELAYS", "1s,,2s"),
    ] {
        let run = lab.bare("-- touch ran").env(name, value).finish();
        run.exited(125).says(&[name, value]);
        assert_eq!(run.messages().len(), 1);
    }
    assert!(!lab.path("ran").exists());
    let run = lab.bare("-- true").env("RETRYX_MAX_ATEMPTS", "3").finish();
    run.exited(0).says(&["RETRYX_MAX_ATEMPTS", "ignored"]);
}

#[test]
fn something_wrong_in_awss_settings_is_said_once_and_stops_only_where_aws_was_asked_for() {
    let lab = Lab::new();
    lab.executable("bin/aws", "#!/bin/sh\nexit 0\n");
    lab.write("broken", "[default\nmax_attempts = 3\n");
    lab.write("odd", "[default]\nretry_mode = fast\nmax_attempts = potato\n");
    lab.write("huge", vec![b'#'; 2 * 1024 * 1024]);
    lab.write("binary", [0xff, 0xfe, 0x00, b'[']);
    lab.tool("mkfifo", &["fifo"]);
    let path = |name: &str| lab.path(name).display().to_string();
    for (name, value, said) in [
        ("AWS_RETRY_MODE", "fast".to_owned(), "AWS_RETRY_MODE"),
        ("AWS_RETRY_MODE", "google".to_owned(), "AWS_RETRY_MODE"),
        ("AWS_CONFIG_FILE", path("broken"), "line 1"),
        ("AWS_CONFIG_FILE", path("odd"), "retry_mode"),
        ("AWS_CONFIG_FILE", path("huge"), "1 MiB"),
        ("AWS_CONFIG_FILE", path("binary"), "UTF-8"),
        ("AWS_CONFIG_FILE", path("fifo"), "not a file"),
        ("AWS_CONFIG_FILE", path(""), "not a file"),
        ("AWS_CONFIG_FILE", "/dev/zero".to_owned(), "not a file"),
    ] {
        let run = lab.bare("-- true").env(name, &value).finish();
        run.exited(0).says(&[said, "ignored"]);
        lab.bare("-- aws").env(name, &value).finish().exited(125).says(&[said]);
        assert_eq!(lab.bare("--mode google -- true").env(name, &value).finish().exited(0).stderr, "");
        assert_eq!(lab.bare("-q -- true").env(name, &value).finish().exited(0).stderr, "");
    }
    for value in ["0", "-1", "potato", "unlimited", "1.5"] {
        lab.bare("-- true").env("AWS_MAX_ATTEMPTS", value).finish().exited(0).says(&["AWS_MAX_ATTEMPTS", "ignored"]);
        lab.bare("--mode standard -- true")
            .env("AWS_MAX_ATTEMPTS", value)
            .finish()
            .exited(125)
            .says(&["AWS_MAX_ATTEMPTS"]);
        // It is the AWS CLI's own setting, so retryx does not read it at all.
        assert_eq!(lab.bare("-- aws").env("AWS_MAX_ATTEMPTS", value).finish().exited(0).stderr, "");
    }
    for nothing in ["/dev/null", "/nowhere/at/all"] {
        assert_eq!(lab.bare("-- true").env("AWS_CONFIG_FILE", nothing).finish().exited(0).stderr, "");
    }
    lab.bare("-- true")
        .env("AWS_PROFILE", "nobody")
        .env("AWS_CONFIG_FILE", path("odd"))
        .finish()
        .exited(0)
        .says(&["nobody"]);
}

/// Settings that make no sense together: for each two, as options.
const APART: [[(&str, &str); 2]; 9] = [
    [("--delays", "1,2"), ("--base-delay", "3")],
    [("--delays", "1,2"), ("--throttle-base-delay", "3")],
    [("--delays", "1,2"), ("--factor", "3")],
    [("--min-delay", "3"), ("--max-backoff", "2")],
    [("--stagger", "3"), ("--deadline", "2")],
    [("--stagger", "3"), ("--total-timeout", "2")],
    [("--factor", "3"), ("--mode", "fixed")],
    [("--jitter", "none"), ("--mode", "decorrelated")],
    [("--service", "dynamodb"), ("--mode", "google")],
];

#[test]
fn a_stagger_may_take_all_that_a_limit_leaves() {
    // It ends before that, and exactly on the deadline is still in time.
    let lab = Lab::new();
    for limit in ["--deadline", "--total-timeout"] {
        lab.bare("plan --stagger 9").args([limit, "9"]).finish().exited(0);
    }
}

#[test]
fn a_mode_without_a_quota_has_none_to_be_lifted() {
    let lab = Lab::new();
    for (mode, why) in [("standard", "lifted by --max-attempts"), ("google", "default of the google mode")] {
        let text = lab.bare("plan --explain-config -n 3 --mode").arg(mode).finish().exited(0).text();
        let quota = text.lines().find(|line| line.starts_with("quota-capacity")).expect("a line");
        assert!(quota.contains(why), "{quota}");
    }
}

fn variable(option: &str) -> String {
    format!("RETRYX_{}", option[2..].to_uppercase().replace('-', "_"))
}

#[test]
fn of_settings_that_make_no_sense_together_the_weaker_is_left_aside_and_equals_are_an_error() {
    let lab = Lab::new();
    let names = |run: &crate::support::Finished, places: [&str; 2]| {
        run.exited(125);
        assert!(run.stderr.contains(places[0]), "{places:?}: {}", run.stderr);
        // The mode is named by its word, which is the value.
        assert!(
            run.stderr.contains(places[1]) || places[1].ends_with("MODE") || places[1] == "--mode",
            "{}",
            run.stderr
        );
    };
    for [(one, first), (other, second)] in APART {
        let run = lab.bare("").args([one, first, other, second, "--", "touch", "ran"]).finish();
        names(&run, [one, other]);
        let (weak, weaker) = (variable(one), variable(other));
        let run = lab.bare("-- touch ran").env(&weak, first).env(&weaker, second).finish();
        names(&run, [&weak, &weaker]);
        assert!(!run.stderr.contains(one) || run.stderr.contains("--mode"), "{}", run.stderr);
        // A variable does not make an option unusable.
        let run = lab.bare("-v").args([other, second, "--", "true"]).env(&weak, first).finish();
        run.exited(0).says(&[&format!("{weak} is left aside"), other]);
        let text = lab.bare("plan --explain-config").args([other, second]).env(&weak, first).finish().text();
        assert!(setting(&text, &one[2..]).ends_with(&format!("{weak}, left aside beside {other}")), "{text}");
        let run = lab.bare("").args([one, first, "--", "true"]).env(&weaker, second).finish();
        if other == "--mode" {
            // The mode has more to say than this.
            names(&run, [one, &weaker]);
        } else {
            assert_eq!(run.exited(0).stderr, "", "{one} {weaker}");
        }
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn messages_name_the_variable_that_gave_a_setting() {
    let lab = Lab::new();
    for (name, value, said) in [
        ("RETRYX_SHELL", "1", "RETRYX_SHELL takes the command as one string"),
        ("RETRYX_RETRY_ON", "http:503", "RETRYX_RETRY_ON: 'http:503'"),
        ("RETRYX_SUCCEED_ON", "error:X", "RETRYX_SUCCEED_ON: 'error:X'"),
        ("RETRYX_MIN_DELAY", "1h", "RETRYX_MIN_DELAY: 1h is above"),
    ] {
        let run = lab.bare("-- false a").env(name, value).finish();
        run.exited(125).says(&[said]);
        assert!(!run.stderr.contains("--shell") && !run.stderr.contains("-on"), "{}", run.stderr);
    }
}

#[test]
fn a_variable_says_yes_or_no_in_any_case() {
    let lab = Lab::new();
    for (value, lines) in [("YES", 0), ("True", 0), ("On", 0), ("No", 1), ("OFF", 1), ("False", 1)] {
        let run = lab.run("-n 1").env("RETRYX_QUIET", value).command(&["false"]).finish();
        assert_eq!(run.exited(1).messages().len(), lines, "{value}");
    }
}

#[test]
fn the_explained_settings_come_as_json_too() {
    let lab = Lab::new();
    let text = lab.bare("plan --explain-config --format json -n 7").finish().text();
    let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let settings = told["settings"].as_array().expect("a list");
    let attempts = settings.iter().find(|setting| setting["name"] == "max-attempts").expect("the attempts");
    assert_eq!((&attempts["value"], &attempts["source"]), (&"7".into(), &"--max-attempts".into()));
    lab.bare("plan --explain-config --format csv").finish().exited(125).says(&["--format", "csv"]);
}

// A setting of retryx's own in the place of a wrong one does not make that one right.
#[test]
fn a_wrong_setting_of_awss_is_wrong_also_where_another_takes_its_place() {
    let lab = Lab::new();
    lab.executable("bin/aws", "#!/bin/sh\nexit 0\n");
    lab.write("mode", "[default]\nretry_mode = bad\n");
    lab.write("attempts", "[default]\nmax_attempts = unlimited\n");
    let path = |name: &str| lab.path(name).display().to_string();
    for (name, value, said) in [
        ("AWS_RETRY_MODE", "bad".to_owned(), "AWS_RETRY_MODE: 'bad'"),
        ("AWS_CONFIG_FILE", path("mode"), "retry_mode of profile 'default'"),
        ("AWS_MAX_ATTEMPTS", "2.5".to_owned(), "AWS_MAX_ATTEMPTS: '2.5'"),
        ("AWS_CONFIG_FILE", path("attempts"), "max_attempts of profile 'default'"),
    ] {
        for options in ["--mode standard", "--mode adaptive -n 2", "--mode legacy"] {
            let run = lab.bare(options).env(name, &value).sh("echo >ran").finish();
            run.exited(125).says(&[said]);
            assert!(!run.stderr.contains("'unlimited'; valid") && !run.stderr.contains("or 'unlimited'"));
        }
        for (options, variable) in [("-n 2", "x"), ("", "RETRYX_MAX_ATTEMPTS")] {
            let run = lab.bare(options).env(name, &value).env(variable, "2").sh("echo once >>m").finish();
            run.exited(0).says(&[said, "ignored"]);
        }
        let stops = name == "AWS_RETRY_MODE" || value == path("mode");
        let run = lab.bare("--mode standard -- aws --version").env(name, &value).finish();
        run.exited(if stops { 125 } else { 0 });
    }
    assert!(!lab.path("ran").exists());
}

#[test]
fn a_config_file_that_cannot_be_read_is_spoken_of_only_where_somebody_asked_for_it() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let lab = Lab::new();
    std::fs::create_dir_all(lab.path("closed/.aws")).expect("a folder");
    lab.write("closed/.aws/config", "[default]\n");
    lab.tool("chmod", &["700", "closed"]);
    let run = |options: &str, variables: &[(&str, &str)]| {
        let run = lab.program("setpriv").args(["--reuid", "65534", "--clear-groups", "retryx"]).words(options);
        let run = run.args(["--", "true"]).env("HOME", lab.path("closed"));
        variables.iter().fold(run, |run, (name, value)| run.env(name, value)).finish()
    };
    assert_eq!(run("", &[]).exited(0).stderr, "");
    run("-v", &[]).exited(0).says(&[".aws/config: it cannot be read: permission denied"]);
    run("", &[("AWS_PROFILE", "p")]).exited(0).says(&["permission denied"]);
    let file = lab.path("closed/.aws/config").display().to_string();
    run("", &[("AWS_CONFIG_FILE", &file)]).exited(0).says(&["permission denied"]);
    run("--mode standard", &[]).exited(125).says(&["permission denied"]);
    // The system's own words.
    lab.tool("ln", &["-s", "loop", "loop"]);
    let run = lab.bare("-- true").env("AWS_CONFIG_FILE", lab.path("loop")).finish();
    run.exited(0).says(&["loop: it cannot be read: too many levels of symbolic links"]);
}

#[test]
fn a_hundred_odd_config_files_never_keep_a_command_from_running() {
    let lab = Lab::new();
    let good = "[default]\nretry_mode = standard\nmax_attempts = 3\n[profile p]\ns3 =\n  a = b\n";
    let odd: [&[u8]; 20] = [
        b"[",
        b"]",
        b"=",
        b"[]\n",
        b"[profile]\n",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\r",
        b" x\n",
        b"\tx = y\n",
        b"# c\n",
        b";",
        b"[default]\n",
        b"max_attempts = \xe2\x91\xa2\n",
        b"max_attempts = 99999999999999999999\n",
        b"retry_mode =\n",
        b"[sso-session s]\n",
        b"[profile \"q r\"]\n",
    ];
    let mut files: Vec<Vec<u8>> = (0..good.len()).map(|end| good.as_bytes()[..end].to_vec()).collect();
    for piece in odd {
        for at in [0, 10, good.len()] {
            files.push([&good.as_bytes()[..at], piece, &good.as_bytes()[at..]].concat());
        }
    }
    files.push(b"[default]\n".repeat(50_000));
    files.push([&b"[default]\nmax_attempts = "[..], &b"9".repeat(900_000)].concat());
    assert!(files.len() > 100);
    for file in files {
        lab.write("config", &file);
        let run = lab.bare("-- true").env("AWS_CONFIG_FILE", lab.path("config")).finish();
        let shown = file[..file.len().min(200)].escape_ascii().to_string();
        assert_eq!(run.status.code(), Some(0), "{shown}: {}", run.stderr);
        assert!(run.messages().len() <= 1, "{shown}: {}", run.stderr);
        assert!(run.stderr.len() < 1000, "{shown}: {}", run.stderr);
    }
}
