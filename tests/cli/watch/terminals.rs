//! Watched streams that are terminals: the command finds a terminal of the same size, keys and
//! jobs work as ever, and one that nobody asked about is the caller's own.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::support::{Events, Lab, PROMPT, Terminal, has_programs, is_root, proc, skip, wait_until};

const INTERRUPT: &str = "\x03";
const SUSPEND: &str = "\x1a";

#[test]
fn colours_stay() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("folder")).unwrap();
    let mut terminal = Terminal::shell(&lab);
    for rule in ["stderr:/x/", "stdout:/x/", "output:/x/"] {
        let shown = terminal.run(&format!("TERM=xterm retryx --retry-on '{rule}' -- ls --color=auto"));
        assert!(shown.contains("\x1b[") && shown.contains("folder"), "{rule}: {shown}");
        let shown = terminal.run(&format!("TERM=xterm retryx --retry-on '{rule}' -- ls --color=auto 2>/dev/null"));
        assert!(shown.contains("\x1b[") && shown.contains("folder"), "{rule}: {shown}");
    }
    // What was no terminal is none.
    let shown = terminal.run("TERM=xterm retryx --retry-on output:/x/ -- ls --color=auto | cat");
    assert!(!shown.contains("\x1b[") && shown.contains("folder"), "{shown}");
    // Colours are no part of a line.
    terminal
        .run("retryx -n 1 --events e --retry-on 'stdout:/^folder$/' -- sh -c 'ls -d1 --color=always folder; exit 7'");
    assert_eq!(Events::at(lab.path("e")).wait("attempt_finished", 1)["class"], "transient");
}

#[test]
fn a_message_begins_a_line_of_its_own() {
    let lab = Lab::new();
    lab.write("say", "printf \"$SAY\" >&$TO; exit 7\n");
    let mut terminal = Terminal::shell(&lab);
    for (options, to) in [
        ("--retry-on default,stderr:/x/", 2),
        ("--retry-on default,stdout:/x/", 1),
        ("--idle-timeout 1000", 1),
        ("--stdout final", 1),
    ] {
        for (say, shown) in [
            (r"39%%", "39%\r\nretryx: "),
            (r"39%%\r", "39%\r\r\nretryx: "),
            (r"39%%\n", "39%\r\nretryx: "),
            (r"39%%\r\033[K", "39%\r\x1b[Kretryx: "),
            (r"39%%\n\033[0m", "39%\r\n\x1b[0mretryx: "),
        ] {
            let text = terminal.run(&format!("SAY='{say}' TO={to} retryx -n 2 --base-delay 0 {options} -- sh say"));
            let held = options == "--stdout final";
            assert_eq!(text.matches(shown).count(), if held { 1 } else { 2 }, "{options} {say}: {text:?}");
            assert!(!text.contains("\n\r\n"), "{options} {say}: {text:?}");
        }
    }
}

#[test]
fn the_size_is_the_same_and_follows_the_real_one() {
    let lab = Lab::new();
    let note = "sub note { system q(stty size <&2 >>$D/err); system q(stty size <&1 >>$D/out) } ";
    let script = "$SIG{WINCH} = sub { note }; note; open F, q(>), qq($ENV{D}/up); close F; \
                  select undef, undef, undef, 0.02 until -e qq($ENV{D}/end); exit 7";
    let words = ["retryx", "-n", "2", "--base-delay", "0", "--retry-on", "default,output:/x/", "--", "perl", "-e"];
    let terminal = Terminal::start(&lab, &[&words[..], &[&format!("{note} {script}")]].concat());
    lab.await_file("up");
    for name in ["err", "out"] {
        assert_eq!(lab.lines(name), ["40 500"]);
    }
    for size in ["20 77", "50 120", "1 1"] {
        let (rows, columns) = size.split_once(' ').unwrap();
        terminal.resize(rows.parse().unwrap(), columns.parse().unwrap());
        for name in ["err", "out"] {
            wait_until("the command hears of the size", || lab.lines(name).last().is_some_and(|line| line == size));
        }
    }
    // The next attempt finds the new size too.
    lab.write("end", "");
    assert_eq!(terminal.finish().code(), Some(7));
    assert_eq!(lab.lines("out").last().unwrap(), "1 1");
}

#[test]
fn a_preset_reads_a_terminal_only_where_that_is_asked_for() {
    let lab = Lab::new();
    // The shell's own redirections would be looked at otherwise.
    lab.executable(
        "bin/curl",
        "#!/usr/bin/perl\nopen F, '>', \"$ENV{D}/links\"; print F readlink(\"/proc/self/fd/$_\"), \"\\n\" for 1, 2; exit 7\n",
    );
    let mut terminal = Terminal::shell(&lab);
    let own = terminal.run("tty").lines().find(|line| line.starts_with("/dev/")).expect("a name").trim().to_owned();
    let mut look = |line: &str| {
        terminal.run(line);
        let links = lab.lines("links");
        let read = |link: &String| match link.as_str() {
            own_name if own_name == own => "own",
            name if name.starts_with("/dev/pts/") => "terminal",
            name if name.starts_with("pipe:") => "pipe",
            _ => "file",
        };
        [read(&links[0]), read(&links[1])]
    };
    for (line, expected) in [
        ("retryx -n 1 -- curl", ["own", "own"]),
        ("retryx -n 1 --preset auto -- curl", ["own", "own"]),
        ("retryx -n 1 --retry-on 7 -- curl", ["own", "own"]),
        ("retryx -n 1 -- curl | cat", ["pipe", "own"]),
        ("retryx -n 1 -- curl 2>err", ["own", "pipe"]),
        ("retryx -n 1 --preset none --watch -- curl", ["own", "own"]),
        // Both are one terminal, and so are both that the command gets.
        ("retryx -n 1 --watch -- curl", ["terminal", "terminal"]),
        ("retryx -n 1 --preset curl -- curl", ["terminal", "terminal"]),
        ("RETRYX_WATCH=1 retryx -n 1 -- curl", ["terminal", "terminal"]),
        ("retryx -n 1 --preset none --retry-on stderr:/x/ -- curl", ["terminal", "terminal"]),
        ("retryx -n 1 --retry-on stdout:/x/ -- curl 2>err", ["terminal", "pipe"]),
        ("retryx -n 1 --watch -- curl >out", ["file", "terminal"]),
        ("retryx -n 1 --watch -- curl | cat", ["pipe", "terminal"]),
        ("retryx -n 1 --idle-timeout 1h -- curl", ["terminal", "terminal"]),
        ("retryx -n 1 --retry-after-match 'stderr:/(x)/' -- curl | cat", ["pipe", "terminal"]),
    ] {
        assert_eq!(look(line), expected, "{line}");
    }
}

#[test]
fn a_terminal_shows_what_it_would_show_without_retryx() {
    let lab = Lab::new();
    let mut text: Vec<u8> = (0..=127u8).filter(|byte| ![0x03, 0x04].contains(byte)).collect();
    text.extend(b"a\nb\r\nc\rd\te\n\n\x1b[1mbold\x1b[m \xc3\xa9\n".repeat(30));
    lab.write("text", text);
    for settings in ["sane", "raw -echo", "sane tab3 -onlcr"] {
        let script = |how: &str| {
            format!("stty {settings}; printf '<<<'; {how} cat text; printf '>>>'; stty sane; exec sleep 600")
        };
        let shown: Vec<String> =
            ["", "retryx --retry-on output:/x/ --", "retryx --retry-on stdout:/x/ --", "retryx --idle-timeout 600 --"]
                .into_iter()
                .map(|how| {
                    let mut terminal = Terminal::start(&lab, &["sh", "-c", &script(how)]);
                    terminal.wait_for("<<<");
                    terminal.wait_for(">>>")
                })
                .collect();
        assert!(shown[0].contains("bold"));
        for other in &shown[1..] {
            assert_eq!(other, &shown[0], "{settings}");
        }
    }
}

#[test]
fn both_streams_of_a_terminal_keep_their_order() {
    let lab = Lab::new();
    let in_turn = "for $i (1..400) { syswrite STDOUT, qq(o$i\\n); syswrite STDERR, qq(e$i\\n) } exit 7";
    let expected = (1..=400).fold(String::new(), |text, i| text + &format!("o{i}\r\ne{i}\r\n"));
    for rule in ["stdout:/^e7$/", "stderr:/^o7$/", "output:/^e400$/"] {
        let events = format!("{}.events", &rule[..6]);
        let words = ["retryx", "-q", "-n", "1", "--events", &events, "--retry-on", rule, "--", "perl", "-e", in_turn];
        let mut terminal = Terminal::start(&lab, &words);
        assert_eq!(terminal.wait_for("e400\r\n"), expected, "{rule}");
        assert_eq!(terminal.finish().code(), Some(7));
        assert_eq!(Events::at(lab.path(&events)).wait("attempt_finished", 1)["class"], "transient", "{rule}");
    }
}

#[test]
fn an_interrupt_reaches_the_command_once_and_its_last_words_are_shown() {
    let lab = Lab::new();
    let script = "trap 'echo got >>$D/m; sleep 0.3; echo last words >&2; exit 3' INT; echo up >>$D/m; while :; do sleep 0.05; done";
    for options in
        ["--retry-on default,output:/x/", "--watch --preset curl", "--own-group --retry-on default,output:/x/"]
    {
        let words: Vec<&str> =
            ["retryx", "-n", "5", "--base-delay", "0"].into_iter().chain(options.split(' ')).collect();
        let mut terminal = Terminal::start(&lab, &[&words[..], &["--", "sh", "-c", script]].concat());
        lab.await_lines("m", 1);
        terminal.keys(INTERRUPT);
        terminal.wait_for("last words");
        let status = terminal.finish();
        assert_eq!(lab.lines("m"), ["up", "got"], "{options}");
        assert_eq!(status.code(), Some(3), "{options}: {status:?}");
        std::fs::remove_file(lab.path("m")).unwrap();
    }
    let words =
        ["retryx", "-n", "5", "--retry-on", "default,output:/x/", "--", "sh", "-c", "echo up >>$D/m; exec sleep 300"];
    let terminal = Terminal::start(&lab, &words);
    lab.await_lines("m", 1);
    terminal.keys(INTERRUPT);
    let status = terminal.finish();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status:?}");
}

#[test]
fn suspending_and_resuming_work_while_watched() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let script = "sub note { open my $f, q(>>), qq($ENV{D}/$_[0]); print $f $_[1]; close $f } \
                  note(q(pid), qq($$\\n)); note(q(ppid), getppid . qq(\\n)); $| = 1; \
                  while (1) { note(q(m), qq(.\\n)); print q(.); select undef, undef, undef, 0.02 }";
    terminal.line(&format!("retryx --retry-on default,output:/x/ -- perl -e '{script}'"));
    lab.await_lines("m", 1);
    let (command, retryx) = (lab.await_number("pid"), lab.await_number("ppid"));
    for _ in 0..5 {
        terminal.keys(SUSPEND);
        terminal.wait_for("Stopped");
        terminal.wait_for(PROMPT);
        wait_until("both are stopped", || proc::is_stopped(command) && proc::is_stopped(retryx));
        let written = lab.read("m").len();
        terminal.line("fg");
        terminal.await_job();
        wait_until("the command goes on", || lab.read("m").len() > written + 4);
        // And is heard.
        terminal.wait_for("......");
    }
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    terminal.status_is(130);
}

#[test]
fn a_background_job_is_shown_and_ends_beside_the_shell() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let script = "echo here $((40 + 2)); echo up >$D/up; until [ -e $D/end ]; do sleep 0.02; done; echo over $((40 + 2)); exit 7";
    terminal.run(&format!("retryx -q -n 1 --retry-on output:/x/ -- sh -c '{script}' &"));
    lab.await_file("up");
    wait_until("it is shown", || terminal.seen().contains("here 42"));
    assert_eq!(terminal.foreground(), terminal.pid);
    lab.write("end", "");
    terminal.run("wait %1; echo $? >status");
    assert_eq!(lab.await_number("status"), 7);
    assert!(terminal.seen().contains("over 42"));
}

#[test]
fn a_question_is_asked_and_answered_on_the_terminal() {
    let lab = Lab::new();
    lab.write("ask", "read -p 'name? ' x; read -s -p 'word? ' y; echo \"<$x $y>\"");
    let mut terminal = Terminal::shell(&lab);
    for options in ["--retry-on stderr:/x/", "--retry-on output:/x/", "--idle-timeout 600", "--preset curl"] {
        terminal.line(&format!("retryx {options} -- bash ask"));
        terminal.wait_for("name? ");
        terminal.line("joe");
        terminal.wait_for("word? ");
        terminal.line("secret");
        let shown = terminal.wait_for("<joe secret>");
        assert!(!shown.replace("<joe secret>", "").contains("secret"), "{options}: {shown}");
        terminal.wait_for(PROMPT);
        assert!(!terminal.echoes(), "the line editor's settings are back");
    }
}

#[test]
fn a_full_screen_program_works_while_its_output_is_watched() {
    if !has_programs(&["less"]) {
        skip!("less is not installed");
    }
    let lab = Lab::new();
    lab.tool("sh", &["-c", "seq -f 'row %.0f.' 500 >$D/text"]);
    let mut terminal = Terminal::shell(&lab);
    // It reads its keys from the terminal that standard error is, which must be the real one.
    for line in ["TERM=xterm retryx --retry-on stdout:/x/ -- less text 2>err", "TERM=xterm retryx -- less text"] {
        terminal.line(line);
        terminal.wait_for("row 39.");
        terminal.keys("G");
        terminal.wait_for("row 500.");
        terminal.keys("q");
        let rest = terminal.wait_for(PROMPT);
        assert!(!rest.contains("Stopped"), "{rest}");
        terminal.status_is(0);
    }
}

#[test]
fn hanging_up_ends_the_command_and_retryx() {
    let lab = Lab::new();
    let script = "echo up >>$D/m; while :; do echo x; sleep 0.01; done";
    let words =
        ["retryx", "-n", "5", "--base-delay", "0", "--retry-on", "default,output:/y/", "--", "sh", "-c", script];
    let mut terminal = Terminal::start(&lab, &words);
    lab.await_lines("m", 1);
    terminal.close();
    terminal.leash.await_free();
    let status = terminal.finish();
    assert_eq!(status.signal(), Some(Signal::HUP.as_raw()), "{status:?}");
    assert_eq!(lab.lines("m"), ["up"]);
}

#[test]
fn settings_are_put_back_after_an_attempt_that_a_limit_ended() {
    let lab = Lab::new();
    let change = "stty raw -echo; echo >$D/changed; exec sleep 300";
    for options in ["--timeout 1 --retry-on output:/x/", "--idle-timeout 1"] {
        let script = format!("stty -a >$D/before; retryx -n 1 {options} -- sh -c '{change}'; stty -a >$D/after");
        Terminal::start(&lab, &["sh", "-c", &script]).finish();
        assert!(lab.read("before").contains(" icanon") && lab.path("changed").exists());
        assert_eq!(lab.read("before"), lab.read("after"), "{options}");
        std::fs::remove_file(lab.path("changed")).unwrap();
    }
}

#[test]
fn where_no_terminal_can_be_made_the_command_finds_a_pipe() {
    if !is_root() || !has_programs(&["unshare", "mount"]) {
        skip!("only root can mount over /dev/ptmx");
    }
    let lab = Lab::new();
    let link =
        "print STDERR readlink(q(/proc/self/fd/2)), qq(\\n); print STDOUT q(x) x 100000, qq(\\n), q(THE END); exit 7";
    for hide in ["mount --bind /dev/null /dev/ptmx", "mount --bind /dev/null /dev/ptmx; mount -t tmpfs none /dev/pts"] {
        let script =
            format!("({hide}) || exit 99; retryx -n 1 --events e --retry-on 'output:/^THE END$/' -- perl -e '{link}'");
        let mut terminal = Terminal::start(&lab, &["unshare", "-m", "sh", "-c", &script]);
        let shown = terminal.wait_for("THE END");
        assert!(shown.contains(&format!("\n{}\r\nTHE END", "x".repeat(100_000))), "{hide}");
        assert!(shown.contains("no pseudo-terminal to be had") && shown.contains("pipe:["), "{hide}: {shown}");
        assert_eq!(terminal.finish().code(), Some(7));
        assert_eq!(Events::at(lab.path("e")).wait("attempt_finished", 1)["class"], "transient");
        std::fs::remove_file(lab.path("e")).unwrap();
    }
    // The message about it is no output of the command's.
    let script = "mount --bind /dev/null /dev/ptmx || exit 99; \
                  (retryx -n 2 --base-delay 0 --retry-on default,stderr:/x/ -- false; echo over >&2) | cat";
    let mut terminal = Terminal::start(&lab, &["unshare", "-m", "sh", "-c", script]);
    let shown = terminal.wait_for("over");
    assert!(shown.contains("retrying") && !shown.contains("written to stdout"), "{shown}");
}

#[test]
fn a_terminal_hides_no_retry_behind_a_hint_about_data() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    for rule in ["default,stdout:/x/", "default,output:/x/"] {
        let shown =
            terminal.run(&format!("retryx -n 2 --base-delay 0 --retry-on '{rule}' -- sh -c 'echo out; exit 1'"));
        assert!(shown.contains("retrying") && !shown.contains("written to stdout"), "{rule}: {shown}");
    }
}
