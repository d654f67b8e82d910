//! What is generated from the code equals what is in the repository: the manual, the
//! completions and the marked regions of the README. Also: what these say is true of the
//! program, each completion parses in its shell, and each dependency's licence is allowed.
//!
//! To write the files anew: `BLESS=1 cargo test --test generated`.

#![expect(clippy::unwrap_used, reason = "what fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "a test of files and programs reads and runs them itself")]

mod completions;
mod manpage;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Arg;
use manpage::man_page;
use retryx::cli::manual::{self, DYNAMODB, EVENTS, EVERY_EVENT, LEGACY_WORDS, MODES, SERVICE_WORDS};
use retryx::cli::options::{OPTIONS, Opt, Sub};
use retryx::cli::{Invocation, full_command, parse};
use retryx::config::Plan;
use retryx::exit;
use retryx::policy::{Class, Classifier, Evidence, Mode, Outcome};
use retryx::programs::Program;
use retryx::units::parse_duration;

const REGENERATE: &str = "to write it anew: BLESS=1 cargo test --test generated";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether an option is one of a run, or one that a subcommand takes besides.
fn is_besides(option: &Opt, sub: Sub) -> bool {
    option.of(sub) && (sub == Sub::Run || !option.of(Sub::Run))
}

/// The definition of those options of a run or subcommand, with each one's argument changed.
fn with_options(sub: Sub, those: impl Fn(&Opt) -> bool, change: impl Fn(Arg, &Opt) -> Arg) -> clap::Command {
    let known = full_command(sub);
    let args = OPTIONS.iter().filter(|option| those(option)).map(|option| {
        let arg = known.get_arguments().find(|arg| arg.get_id() == option.long).unwrap();
        change(arg.clone(), option)
    });
    let command = clap::Command::new("retryx").disable_help_flag(true).disable_version_flag(true);
    command.override_usage("").args(args)
}

/// Compares a file with what it must be, or writes it where that was asked for.
fn check(path: &str, generated: &str) {
    let file = root(path);
    if std::env::var_os("BLESS").is_some() {
        return fs::write(&file, generated).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let differing = found.lines().zip(generated.lines()).position(|(found, made)| found != made);
    assert!(found == generated, "{path} differs from the code, first in line {differing:?} from 0; {REGENERATE}");
}

#[test]
fn the_manual_is_up_to_date() {
    check("man/retryx.1", &man_page());
}

#[test]
fn the_completions_are_up_to_date() {
    check("completions/retryx.bash", &completions::bash());
    check("completions/_retryx", &completions::zsh());
    check("completions/retryx.fish", &completions::fish());
}

#[test]
fn the_readme_regions_are_up_to_date() {
    let usage =
        format!("```text\n{}\n```\n", full_command(Sub::Run).term_width(90).render_help().to_string().trim_end());
    let statuses: Vec<[&str; 2]> = exit::TABLE.iter().map(|(status, meaning)| [*status, *meaning]).collect();
    let statuses: Vec<&[&str]> =
        std::iter::once(&["status", "meaning"][..]).chain(statuses.iter().map(|row| &row[..])).collect();
    let mut readme = fs::read_to_string(root("README.md")).unwrap();
    for (name, text) in [
        ("modes", format!("{}\n{}\n", markdown_table(MODES), manual::MODES_LEGEND)),
        ("exit statuses", markdown_table(&statuses)),
        ("programs", markdown_list(&presets())),
        ("usage", usage),
    ] {
        readme = with_region(&readme, name, &text);
    }
    check("README.md", &readme);
}

/// Each preset: the programs it knows, and what it knows of them.
fn presets() -> Vec<(String, String)> {
    Program::names().map(|name| words_of(&Program::named(name).unwrap().unwrap())).collect()
}

fn words_of(program: &Program) -> (String, String) {
    let names: Vec<_> = program.base_names().iter().map(|name| format!("`{name}`")).collect();
    let mut words = String::new();
    for (class, title) in
        [(Class::Permanent, "Permanent"), (Class::Throttling, "Throttling"), (Class::Transient, "Transient")]
    {
        let rows = program.preset.rows.iter().filter(|row| row.class == class);
        let list: Vec<_> = rows.map(|row| row.is.as_str()).collect();
        if !list.is_empty() {
            let _ = write!(words, "{title}: {}. ", list.join("; "));
        }
    }
    if program.preset.status.is_some() {
        words.push_str("Its messages tell the status of an answer. ");
    }
    if program.preset.code.is_some() {
        words.push_str("Its messages tell a service's error code. ");
    }
    let own = &program.sole_retrier;
    let set = own.environment.iter().map(|(name, value)| format!("`{name}={value}`"));
    let set: Vec<_> =
        set.chain((!own.arguments.is_empty()).then(|| format!("`{}`", own.arguments.join(" ")))).collect();
    if !set.is_empty() {
        let _ = write!(words, "Its own retries: {}. ", set.join(", "));
    }
    (names.join(", "), words.trim_end().to_owned())
}

/// The text with one marked region replaced.
fn with_region(text: &str, name: &str, region: &str) -> String {
    let (begin, end) = (format!("<!-- begin generated: {name} -->\n"), "<!-- end generated -->");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("README.md has no region '{name}'"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("the region '{name}' does not end"));
    format!("{before}{begin}\n{region}\n{end}{after}")
}

fn markdown_list(terms: &[(String, String)]) -> String {
    let mut text = String::new();
    for (term, words) in terms {
        let _ = writeln!(text, "- {term}: {words}");
    }
    text
}

fn markdown_table(rows: &[&[&str]]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
        }
    }
    text
}

fn resolve(line: &str) -> Plan {
    let words: Vec<OsString> = std::iter::once("retryx").chain(line.split_whitespace()).map(OsString::from).collect();
    let Ok(Invocation::Do { given, command, .. }) = parse(&words) else { panic!("{line}") };
    Plan::resolve(&given, command, String::new()).unwrap()
}

/// The modes that a row names.
fn modes<'a>(row: &'a [&str]) -> impl Iterator<Item = &'a str> {
    row[0].split(", ").map(|mode| mode.trim_matches('`'))
}

#[test]
fn the_tables_of_modes_have_the_numbers_of_the_code() {
    let duration = |cell: &str| parse_duration(&cell.replace(' ', "")).unwrap();
    for (rows, options) in [(MODES, ""), (DYNAMODB, "--service dynamodb")] {
        for (row, mode) in rows[1..].iter().flat_map(|row| modes(row).map(move |mode| (row, mode))) {
            let plan = resolve(&format!("--mode {mode} {options} x")).session;
            assert_eq!(plan.backoff.base, duration(row[2]), "{row:?}");
            // As the legend says.
            let throttling = if ["standard", "aws", "adaptive"].contains(&mode) { "1 s" } else { row[2] };
            assert_eq!(plan.backoff.throttling_base, duration(throttling), "{row:?}");
            let cap = if row[3] == "none" { Duration::MAX } else { duration(row[3]) };
            assert_eq!(plan.backoff.cap, cap, "{row:?}");
            let attempts = plan.limits.max_attempts.map(|most| format!("{most} attempts"));
            let deadline = plan.limits.deadline.map(|_| row[4].to_owned());
            assert_eq!(attempts.or(deadline).as_deref(), Some(row[4]));
            assert_eq!(plan.limits.deadline, row[4].strip_prefix("deadline ").map(duration), "{row:?}");
        }
    }
    let known: Vec<_> = OPTIONS.iter().find(|option| option.long == "mode").unwrap().choices.to_vec();
    assert_eq!(MODES[1..].iter().flat_map(|row| modes(row)).collect::<Vec<_>>(), known);
}

/// The words between backquotes.
fn quoted_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_words_of_services_have_the_classes_of_the_code() {
    let judge = |mode, status, code: &str| {
        let outcome = Outcome::Responded(status);
        Classifier::new(mode).classify(&Evidence { error_code: Some(code), ..Evidence::of(&outcome) }).class
    };
    let mut seen = 0;
    for (name, words) in SERVICE_WORDS {
        let class = if name.ends_with("throttling") { Class::Throttling } else { Class::Transient };
        for code in quoted_words(words) {
            assert_eq!(judge(Mode::Standard, 404, code), class, "{code}");
            seen += 1;
        }
    }
    let legacy: Vec<_> = quoted_words(LEGACY_WORDS).filter(|word| *word != "legacy").collect();
    assert_eq!((seen, legacy.len()), (23, 5));
    for code in legacy {
        assert_eq!(judge(Mode::Legacy, 400, code), Class::Throttling, "{code}");
        assert_eq!(judge(Mode::Legacy, 404, code), Class::Permanent, "{code}");
    }
    assert_eq!(judge(Mode::Legacy, 400, "SlowDown"), Class::Permanent);
}

#[test]
fn the_manual_names_every_field_of_every_event_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events");
    let all: BTreeSet<String> = EVENTS
        .iter()
        .flat_map(|(event, _, fields)| fields.iter().map(move |(name, _)| format!("{event}.{name}")))
        .collect();
    let every: BTreeSet<_> = EVERY_EVENT.iter().map(|(name, _)| (*name).to_owned()).collect();
    // A run that waits, and one that a signal ends, which has a field of its own.
    for script in ["exit 1", "trap : TERM; kill -TERM $PPID; exit 1"] {
        let status = Command::new(env!("CARGO_BIN_EXE_retryx"))
            .args(["-q", "-n", "2", "--base-delay", "0", "--log-arguments", "--events"])
            .arg(&events)
            .args(["sh", "-c", script])
            .stdin(Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(1));
    }
    let mut seen = BTreeSet::new();
    for line in fs::read_to_string(&events).unwrap().lines() {
        let serde_json::Value::Object(object) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        let event = object["event"].as_str().unwrap();
        assert!(every.iter().all(|name| object.contains_key(name)), "{line}");
        seen.extend(object.keys().filter(|name| !every.contains(*name)).map(|name| format!("{event}.{name}")));
    }
    assert_eq!(seen, all);
}

/// Whether a program is there. In CI all of them have to be.
fn present(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

#[test]
fn each_completion_parses_in_its_shell() {
    for (shell, path) in
        [("bash", "completions/retryx.bash"), ("zsh", "completions/_retryx"), ("fish", "completions/retryx.fish")]
    {
        if present(shell) {
            let parsed = Command::new(shell).arg("-n").arg(root(path)).output().unwrap();
            assert!(parsed.status.success(), "{shell}: {}", String::from_utf8_lossy(&parsed.stderr));
        }
    }
}

#[test]
fn bash_completes_options_and_values() {
    if !present("bash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a file"), "").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let script = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _retryx retryx \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; echo \"${COMPREPLY[@]}\"";
    let modes = "standard aws adaptive legacy google fixed linear exponential decorrelated";
    for (words, expected) in [
        (&["retryx", "--kill-"][..], "--kill-after --kill-signal"),
        (&["retryx", "--mode", "go"], "google"),
        (&["retryx", "--jitter", "f"], "full fraction"),
        (&["retryx", "--mode", "=", "go"], "google"),
        (&["retryx", "--mode", "="], modes),
        (&["retryx", "--mode", ""], modes),
        (&["retryx", "--stdout", ""], "each final success"),
        (&["retryx", "--deadline", ""], ""),
        (&["retryx", "-n", "3", "--timeout", "=", "9", "env", "--kill-"], ""),
        (&["retryx", "-n", "3", "--", "base"], "base32 base64 basename basenc"),
        (&["retryx", "--events", "="], "a file folder"),
        (&["retryx", "--events", "a"], "a file"),
        // Subcommands, and their options besides those of a run.
        (&["retryx", "-n", "3", "expl"], "explain"),
        (&["retryx", "--", "expl"], ""),
        (&["retryx", "--cl"], ""),
        (&["retryx", "plan", "--cl"], "--class"),
        (&["retryx", "plan", "--class", "th"], "throttling"),
        (&["retryx", "plan", "--format", ""], "table json csv"),
        (&["retryx", "explain", "--format", "="], "text json"),
        (&["retryx", "-v", "plan", "-n", "3", "--mode", "leg"], "legacy"),
        (&["retryx", "explain", "--std"], "--stdin --stdout --stdout-text --stderr --stderr-text"),
        (&["retryx", "explain", "--exit", "1", "--stderr-"], "--stderr-text"),
        (&["retryx", "explain", "base"], ""),
        (&["retryx", "--", "plan", "--cl"], ""),
        (&["retryx", "env", "plan", "--cl"], ""),
        // The words of quota, and the few options that it takes, also after them.
        (&["retryx", "quota", ""], "list show reset set"),
        (&["retryx", "--store", "file", "quota", "re"], "reset"),
        (&["retryx", "quota", "--store", "file", "s"], "show set"),
        (&["retryx", "quota", "show", ""], ""),
        (&["retryx", "quota", "set", "x", "--tok"], "--tokens"),
        (&["retryx", "quota", "set", "x", "--tokens", ""], ""),
        (&["retryx", "quota", "list", "--format", ""], "text json"),
        (&["retryx", "quota", "--mo"], ""),
        (&["retryx", "quota", "list", "--state-dir", "f"], "folder"),
        (&["retryx", "--state-dir", ""], "folder"),
    ] {
        let file = root("completions/retryx.bash");
        let done = Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(&file)
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let replies = String::from_utf8(done.stdout).unwrap();
        let sorted = |words: &str| words.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&replies), sorted(expected), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn the_manual_is_sound_roff() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("retryx.1");
    fs::write(&page, man_page()).unwrap();
    if present("mandoc") {
        let lint = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&page).output();
        let words = String::from_utf8(lint.unwrap().stdout).unwrap();
        // The page has no date, so that the same version always gives the same page.
        let faults: Vec<_> = words.lines().filter(|line| !line.contains("missing date")).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
    if present("groff") {
        let made = Command::new("groff").args(["-t", "-k", "-man", "-ww", "-Tutf8"]).arg(&page).output();
        assert_eq!(String::from_utf8(made.unwrap().stderr).unwrap(), "");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let deny = fs::read_to_string(root("deny.toml")).unwrap();
    let list = deny.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
    let allowed: Vec<_> = list.split(',').map(|name| name.trim().trim_matches('"')).filter(|n| !n.is_empty()).collect();
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform"])
        .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
        .current_dir(root(""))
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let mut used = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        let may_use = |part: &str| {
            let ways = part.split(" OR ").map(|way| way.trim_matches(['(', ')', ' ']));
            let chosen = ways.into_iter().find(|way| allowed.contains(way));
            used.extend(chosen.map(str::to_owned));
            chosen.is_some()
        };
        assert!(licence.replace('/', " OR ").split(" AND ").all(may_use), "{}: {licence}", package["name"]);
    }
    let unused: Vec<_> = allowed.iter().filter(|name| !used.contains(**name)).collect();
    assert!(unused.is_empty(), "deny.toml allows what nothing needs: {unused:?}");
}
