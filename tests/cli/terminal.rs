//! On a terminal: keys, the command's terminal, its settings, and hanging up.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use rustix::termios::LocalModes;

use crate::support::{Lab, Terminal, has_programs, proc, skip, wait_until};

const INTERRUPT: &str = "\x03";
const QUIT: &str = "\x1c";

// B7, in the caller's group and in one of its own.
#[test]
fn an_interrupt_reaches_the_command_once_and_its_cleanup_is_waited_for() {
    let lab = Lab::new();
    for options in [&["-n", "5"][..], &["-n", "5", "--own-group"]] {
        let script = "trap 'echo got >>$D/m; sleep 0.5; echo clean >>$D/m; exit 3' INT; \
                      echo up >>$D/m; while :; do sleep 0.05; done";
        let words = [&["retryx"], options, &["--base-delay", "0", "--", "sh", "-c", script]].concat();
        let terminal = Terminal::start(&lab, &words);
        lab.await_lines("m", 1);
        terminal.keys(INTERRUPT);
        let status = terminal.finish();
        assert_eq!(lab.lines("m"), ["up", "got", "clean"]);
        assert_eq!(status.code(), Some(3), "{status:?}");
        std::fs::remove_file(lab.path("m")).unwrap();
    }
}

#[test]
fn a_key_that_kills_the_command_kills_retryx_the_same_way_and_nothing_is_retried() {
    let lab = Lab::new();
    for (key, signal) in [(INTERRUPT, Signal::INT), (QUIT, Signal::QUIT)] {
        for limit in ["--kill-after=1", "--timeout=1000", "--total-timeout=1000", "-v"] {
            let script = "echo up >>$D/m; exec sleep 300";
            let words = ["retryx", "-n", "5", "--base-delay", "0", limit, "--", "sh", "-c", script];
            let terminal = Terminal::start(&lab, &words);
            lab.await_lines("m", 1);
            terminal.keys(key);
            let status = terminal.finish();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{limit}: {status:?}");
            assert!(!status.core_dumped());
            assert_eq!(lab.lines("m"), ["up"]);
            std::fs::remove_file(lab.path("m")).unwrap();
        }
    }
}

#[test]
fn a_command_that_traps_the_interrupt_and_fails_is_not_retried() {
    let lab = Lab::new();
    let script = "trap 'echo got >>$D/m; exit 1' INT; echo up >>$D/m; while :; do sleep 0.05; done";
    let words = ["retryx", "-n", "5", "--base-delay", "0", "--", "sh", "-c", script];
    let terminal = Terminal::start(&lab, &words);
    lab.await_lines("m", 1);
    terminal.keys(INTERRUPT);
    assert_eq!(terminal.finish().code(), Some(1));
    assert_eq!(lab.lines("m"), ["up", "got"]);
}

#[test]
fn an_interrupt_before_the_command_has_started_still_ends_the_run() {
    // The moment between retryx's start and the command's is made long by an events pipe
    // that is full: retryx waits a second for a reader. Either nothing fits in, or one
    // event does, so that the wait comes directly before the command is started.
    for filled in [16 * 4096, 15 * 4096] {
        let lab = Lab::new();
        let command = "echo up >>$D/m; sleep 2; echo survived >>$D/m";
        let script = format!(
            "mkfifo $D/fifo; exec 3<>$D/fifo; head -c {filled} /dev/zero >&3; \
             exec retryx -n 5 --base-delay 0 --events fd:3 -- sh -c \"$0\""
        );
        let terminal = Terminal::start(&lab, &["sh", "-c", &script, command]);
        wait_until("retryx waits with its signals blocked", || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid)).unwrap_or_default();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim();
            let blocked = u64::from_str_radix(field("SigBlk:"), 16).unwrap_or(0);
            field("Name:") == "retryx" && blocked & 2 != 0 && field("State:").starts_with('S')
        });
        terminal.keys(INTERRUPT);
        let status = terminal.finish();
        assert!(!lab.read("m").contains("survived"), "the command never heard of it: {status:?}");
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status:?}");
    }
}

// B30
#[test]
fn the_command_has_the_terminal_in_all_three_streams() {
    let lab = Lab::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && tty >$D/tty && exit 3";
    let terminal =
        Terminal::start(&lab, &["sh", "-c", "tty >$D/own; exec retryx -n 2 --base-delay 0 -- sh -c \"$0\"", script]);
    assert_eq!(terminal.finish().code(), Some(3));
    assert_eq!(lab.read("tty"), lab.read("own"));
    assert!(lab.read("tty").starts_with("/dev/"));
}

#[test]
fn what_is_typed_goes_to_one_attempt_after_the_other() {
    let lab = Lab::new();
    let script = "read line; echo \"got $line\" >>$D/m; exit 4";
    let terminal = Terminal::start(&lab, &["retryx", "-n", "2", "--base-delay", "0", "--", "sh", "-c", script]);
    terminal.line("one");
    lab.await_lines("m", 1);
    terminal.line("two");
    assert_eq!(terminal.finish().code(), Some(4));
    assert_eq!(lab.lines("m"), ["got one", "got two"]);
}

#[test]
fn messages_on_a_terminal_are_plain_lines() {
    let lab = Lab::new();
    let mut terminal = Terminal::start(&lab, &["retryx", "-n", "2", "--base-delay", "0", "--", "false"]);
    terminal.wait_for("retryx: attempt 1 of 2 failed: exit status 1 (transient); retrying at once\r\n");
    terminal.wait_for("retryx: giving up after 2 attempts: exit status 1\r\n");
    let seen = terminal.seen();
    assert!(!seen.contains('\x1b') && !seen.contains("stdout"), "{seen:?}");
    assert_eq!(terminal.finish().code(), Some(1));
}

#[test]
fn a_countdown_stays_in_its_line_however_narrow_the_terminal_is() {
    let lab = Lab::new();
    let script = "until [ -e $D/narrow ]; do sleep 0.02; done; exec retryx --mode fixed --base-delay 100 false";
    let mut terminal = Terminal::start(&lab, &["sh", "-c", script]);
    terminal.resize(40, 10);
    lab.write("narrow", "");
    for columns in [10, 17] {
        terminal.resize(40, columns);
        let line = &"retryx: next attempt"[..usize::from(columns) - 1];
        for _ in 0..2 {
            terminal.wait_for(&format!("\r{line}\x1b[K"));
        }
    }
    terminal.keys("\x03");
    terminal.finish();
}

#[test]
fn a_message_after_a_key_begins_a_line_of_its_own() {
    let lab = Lab::new();
    for (echo, shown) in [("echo", "2 s\r\n^C\r\nretryx: stopped"), ("-echo", "2 s\r\nretryx: stopped")] {
        let script = format!("stty {echo}; exec retryx --mode fixed --base-delay 2 false");
        let mut terminal = Terminal::start(&lab, &["sh", "-c", &script]);
        terminal.wait_for("retrying in 2 s\r\n");
        terminal.keys(INTERRUPT);
        terminal.wait_for("stopped by SIGINT");
        assert!(terminal.seen().contains(shown), "{:?}", terminal.seen());
        terminal.finish();
    }
}

#[test]
fn a_terminal_that_cannot_draw_anew_is_shown_no_countdown() {
    let lab = Lab::new();
    let script = "export TERM=dumb; exec retryx --mode fixed --base-delay 3 -n 2 false";
    let mut terminal = Terminal::start(&lab, &["sh", "-c", script]);
    terminal.wait_for("giving up after 2 attempts");
    assert!(!terminal.seen().contains("next attempt"), "{}", terminal.seen());
    terminal.finish();
}

/// Runs a script on a terminal, with the terminal's settings noted before and after.
fn settings_around(lab: &Lab, script: &str) -> (String, String) {
    let around = format!("stty -a >$D/before; {script}; stty -a >$D/after");
    let terminal = Terminal::start(lab, &["sh", "-c", &around]);
    terminal.finish();
    (lab.read("before"), lab.read("after"))
}

#[test]
fn settings_are_put_back_after_an_attempt_that_a_limit_or_a_signal_ended() {
    let lab = Lab::new();
    let change = "stty raw -echo; echo >$D/changed";
    for (options, end) in [
        ("--timeout 1", "exec sleep 300"),
        ("--total-timeout 1", "exec sleep 300"),
        ("--timeout 1 --kill-after 0", "exec sleep 300"),
        ("", "kill -9 $$"),
        ("", "kill -SEGV $$"),
        ("", "kill -TERM $PPID; exec sleep 300"),
        ("", "trap 'exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.02; done"),
    ] {
        let (before, after) =
            settings_around(&lab, &format!("retryx -n 1 {options} -- sh -c '{}'", quoted(&format!("{change}; {end}"))));
        assert!(before.contains(" icanon") && lab.path("changed").exists());
        assert_eq!(before, after, "{options}, {end}");
        std::fs::remove_file(lab.path("changed")).unwrap();
    }
}

/// A text for between single quotes.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

#[test]
fn settings_that_a_command_leaves_when_it_exits_stay_as_without_retryx() {
    let lab = Lab::new();
    for code in [0, 1] {
        let (before, after) =
            settings_around(&lab, &format!("retryx -n 1 --timeout 1000 -- sh -c 'stty -echo; exit {code}'"));
        assert!(before.contains(" echo ") && after.contains("-echo "), "{before}{after}");
    }
}

#[test]
fn an_attempt_after_a_timeout_finds_the_settings_that_the_first_found() {
    let lab = Lab::new();
    let script = "stty -a >$D/$RETRYX_RUN_ATTEMPT; stty raw -echo; exec sleep 300";
    settings_around(&lab, &format!("retryx -n 3 --base-delay 0 --timeout 1 -- sh -c '{script}'"));
    assert!(lab.read("1").contains(" icanon"));
    assert_eq!(lab.read("1"), lab.read("2"));
    assert_eq!(lab.read("1"), lab.read("3"));
}

#[test]
fn settings_of_a_terminal_that_is_somebody_elses_are_left_alone() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.run("(retryx --timeout 1 -n 1 -- sleep 300; echo $? >$D/done) &");
    // The line editor has its own settings while it waits for a command.
    let editing = |terminal: &Terminal| !terminal.settings().local_modes.contains(LocalModes::ICANON);
    wait_until("the line editor waits", || editing(&terminal));
    assert_eq!(lab.await_number("done"), 124);
    assert!(editing(&terminal));
    assert!(!terminal.echoes());
    assert!(terminal.run("echo still $((40 + 2))").contains("still 42"));
}

#[test]
fn hanging_up_ends_the_command_and_retryx() {
    let lab = Lab::new();
    let words = ["retryx", "-n", "5", "--base-delay", "0", "--", "sh", "-c", "echo up >>$D/m; exec sleep 300"];
    let mut terminal = Terminal::start(&lab, &words);
    lab.await_lines("m", 1);
    terminal.close();
    terminal.leash.await_free();
    let status = terminal.finish();
    assert_eq!(status.signal(), Some(Signal::HUP.as_raw()), "{status:?}");
    assert_eq!(lab.lines("m"), ["up"]);
}

#[test]
fn nohup_survives_the_hanging_up_and_goes_on_retrying() {
    let lab = Lab::new();
    let script = "echo up >>$D/m; until [ -e $D/end ]; do sleep 0.02; done; exit 9";
    let words = ["nohup", "retryx", "-n", "2", "--base-delay", "0", "--events", "e", "--", "sh", "-c", script];
    let mut terminal = Terminal::start(&lab, &words);
    lab.await_lines("m", 1);
    terminal.close();
    lab.write("end", "");
    assert_eq!(terminal.finish().code(), Some(9));
    assert_eq!(lab.lines("m"), ["up", "up"]);
}

#[test]
fn a_full_screen_program_works_under_retryx_and_behind_it() {
    if !has_programs(&["less"]) {
        skip!("less is not installed");
    }
    let lab = Lab::new();
    lab.tool("sh", &["-c", "seq -f 'row %.0f.' 500 >$D/text"]);
    let mut terminal = Terminal::shell(&lab);
    for line in
        ["retryx -- cat text | TERM=xterm less", "TERM=xterm retryx -- less text", "TERM=xterm retryx -- less < text"]
    {
        terminal.line(line);
        terminal.wait_for("row 39.");
        terminal.keys("G");
        terminal.wait_for("row 500.");
        terminal.keys("q");
        let rest = terminal.wait_for(crate::support::PROMPT);
        assert!(!rest.contains("Stopped"), "{rest}");
        terminal.status_is(0);
    }
    assert!(proc::is_alive(terminal.pid));
}
