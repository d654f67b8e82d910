//! Every example in the README runs and prints what stands there.
//!
//! An example is a block of ```` ```console ````: lines after `$ ` are given to bash (`> `
//! continues one), the lines below are what it prints, standard output and error together.
//! In those, `[..]` stands for anything within a line and a line `...` for any lines. The
//! commands of a block share one shell and one empty folder.

#![expect(clippy::unwrap_used, reason = "what fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "the test starts a shell itself")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Printed between the commands of a block.
const MARK: &str = "@@ next @@";

/// One block: its line in the README, and each command with what it prints.
struct Example {
    line: usize,
    steps: Vec<(String, String)>,
}

fn examples(readme: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut open: Option<Example> = None;
    for (line, text) in (1..).zip(readme.lines()) {
        match &mut open {
            None if text == "```console" => open = Some(Example { line, steps: Vec::new() }),
            None => {}
            Some(_) if text == "```" => found.extend(open.take()),
            Some(example) => {
                if let Some(command) = text.strip_prefix("$ ") {
                    example.steps.push((command.to_owned(), String::new()));
                } else {
                    let last = example.steps.last_mut();
                    let (command, output) = last.unwrap_or_else(|| panic!("line {line}: output before a command"));
                    match text.strip_prefix("> ") {
                        Some(more) if output.is_empty() => {
                            command.push('\n');
                            command.push_str(more);
                        }
                        _ => {
                            output.push_str(text);
                            output.push('\n');
                        }
                    }
                }
            }
        }
    }
    assert!(open.is_none(), "the last example does not end");
    found
}

/// Runs a block; returns what each command printed.
fn run(example: &Example) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_retryx")).parent().unwrap().to_str().unwrap();
    let mut script = String::from("exec 2>&1\n");
    for (command, _) in &example.steps {
        // The status of each command is there for the next.
        let _ = writeln!(script, "{command}\n__status=$?; printf '%s\\n' '{MARK}'; (exit $__status)");
    }
    let path = std::env::var("PATH").unwrap();
    let mut bash = Command::new("bash");
    // Settings of whoever runs the tests are not the reader's.
    for (name, _) in std::env::vars_os() {
        if ["RETRYX_", "AWS_"].iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes())) {
            bash.env_remove(name);
        }
    }
    let done = bash
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{binaries}:{path}"))
        .env("HOME", folder.path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    printed.split(&format!("{MARK}\n")).map(str::to_owned).collect()
}

/// Whether lines are as expected, with the wildcards.
fn matches(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["...", rest @ ..] => (0..=found.len()).any(|skip| matches(rest, &found[skip..])),
        [first, rest @ ..] => found.first().is_some_and(|line| line_matches(first, line)) && matches(rest, &found[1..]),
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    let Some((before, after)) = expected.split_once("[..]") else { return expected == found };
    found.strip_prefix(before).is_some_and(|rest| {
        rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| line_matches(after, &rest[at..]))
    })
}

#[test]
fn every_example_prints_what_stands_there() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let examples = examples(&readme);
    assert!(examples.len() >= 8, "only {} examples found", examples.len());
    let mut wrong = String::new();
    for example in &examples {
        let printed = run(example);
        for ((command, expected), found) in example.steps.iter().zip(&printed) {
            let expected: Vec<_> = expected.lines().collect();
            let found: Vec<_> = found.lines().collect();
            if !matches(&expected, &found) {
                let _ = writeln!(wrong, "README.md:{}: $ {command}\n{}\n", example.line, found.join("\n"));
            }
        }
        if printed.len() != example.steps.len() + 1 {
            let _ = writeln!(wrong, "README.md:{}: the shell ended early", example.line);
        }
    }
    assert!(wrong.is_empty(), "these print something else than what stands there:\n{wrong}");
}

#[test]
fn wildcards_match_what_they_should() {
    for (expected, found, right) in [
        ("a [..] c", "a b c", true),
        ("a [..] c", "a  c", true),
        ("a [..] c", "a b d", false),
        ("[..]", "", true),
        ("a", "b", false),
    ] {
        assert_eq!(line_matches(expected, found), right, "{expected} / {found}");
    }
    assert!(matches(&["a", "...", "b"], &["a", "x", "y", "b"]));
    assert!(matches(&["..."], &[]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert!(!matches(&["a", "b"], &["a"]));
}
