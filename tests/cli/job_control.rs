//! At the prompt of a shell with job control: `^C` in scripts and pipelines, `^Z` and `fg`,
//! background jobs, and who has the terminal.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Lab, PROMPT, Terminal, Timer, pause, proc, wait_until};

const INTERRUPT: &str = "\x03";
const SUSPEND: &str = "\x1a";

// Commands that are suspended here are no loops of `sh`: a stop that comes between the
// `vfork` and the `exec` of a shell leaves that shell waiting, not stopped, with retryx or
// without it.

/// Perl for a command that notes `x` in the file `$M` and runs until `$D/end` is there.
const UNTIL_END: &str = "open F, q(>>), qq($ENV{D}/$ENV{M}); print F qq(x\\n); close F; \
                         select undef, undef, undef, 0.01 until -e qq($ENV{D}/end);";

#[test]
fn an_interrupt_ends_a_loop_around_retryx() {
    for shell in ["bash", "sh"] {
        let lab = Lab::new();
        let child = "echo up >>$D/up; exec sleep 300";
        lab.write("loop.sh", format!("for i in 1 2 3; do retryx -- sh -c '{child}'; done; echo finished >>$D/up\n"));
        let mut terminal = Terminal::shell(&lab);
        terminal.line(&format!("{shell} loop.sh"));
        lab.await_lines("up", 1);
        terminal.keys(INTERRUPT);
        terminal.wait_for(PROMPT);
        terminal.status_is(130);
        assert_eq!(lab.lines("up"), ["up"]);
    }
}

#[test]
fn a_loop_goes_on_where_the_command_made_the_interrupt_its_own() {
    // What a shell decides by: a child that exits was not killed by the key.
    let lab = Lab::new();
    let child = "trap \"echo got >>$D/m; exit 1\" INT; echo up >>$D/m; while :; do sleep 0.05; done";
    lab.write(
        "script.sh",
        format!("echo $$ >$D/shell; retryx -n 5 --base-delay 0 -- sh -c '{child}'; echo status $? >>$D/m\n"),
    );
    let mut terminal = Terminal::shell(&lab);
    terminal.line("bash script.sh");
    lab.await_lines("m", 1);
    // Bash takes the key as a reason to die until it waits for what it has started.
    let shell = lab.await_number("shell");
    wait_until("the script waits", || proc::state(shell) == Some('S'));
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    assert_eq!(lab.lines("m"), ["up", "got", "status 1"]);
}

#[test]
fn an_interrupt_during_a_delay_gives_the_prompt_back() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.line("retryx -n 15 --mode fixed --base-delay 1000 -- sh -c 'echo x >>$D/m; exit 1'");
    terminal.wait_for("retrying in");
    terminal.keys(INTERRUPT);
    terminal.wait_for("stopped by SIGINT");
    terminal.wait_for(PROMPT);
    terminal.status_is(130);
    assert_eq!(lab.lines("m"), ["x"]);
}

/// A pipeline whose two commands note their numbers in `$D/up`.
const PIPELINE: &str = "retryx -- sh -c 'echo $$ >>$D/up; exec sleep 300' | sh -c 'echo $$ >>$D/up; exec cat'";

/// The processes of the pipeline: both commands, and the retryx above the first.
fn pipeline(lab: &Lab) -> Vec<i32> {
    let commands: Vec<i32> = lab.await_lines("up", 2).iter().map(|line| line.parse().expect("a number")).collect();
    let groups = [0, 1].map(|i| proc::group_and_session(commands[i]).expect("it runs").0);
    assert_eq!(groups[0], groups[1], "one job");
    [commands, vec![groups[0]]].concat()
}

#[test]
fn an_interrupt_in_a_pipeline_gives_the_prompt_back() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.line(PIPELINE);
    let processes = pipeline(&lab);
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    assert!(processes.iter().all(|&pid| !proc::is_alive(pid)));
}

#[test]
fn suspending_a_pipeline_gives_the_prompt_back_and_fg_resumes_it() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.line(PIPELINE);
    let processes = pipeline(&lab);
    // Often, as a race between the two stops shows only now and then.
    for _ in 0..20 {
        terminal.keys(SUSPEND);
        terminal.wait_for("Stopped");
        terminal.wait_for(PROMPT);
        for &pid in &processes {
            wait_until("it is stopped", || proc::is_stopped(pid));
        }
        terminal.line("fg");
        terminal.await_job();
        for &pid in &processes {
            wait_until("it runs", || !proc::is_stopped(pid));
        }
    }
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    assert!(processes.iter().all(|&pid| !proc::is_alive(pid)));
}

// B16: by the key, and by whoever sends the signal to whichever of the two.
#[test]
fn retryx_and_its_command_stop_and_go_on_together() {
    for (who, signal) in [
        ("both, by the key", None),
        ("retryx", Some(Signal::TSTP)),
        ("command", Some(Signal::TSTP)),
        ("command", Some(Signal::STOP)),
    ] {
        for limit in ["--timeout 1000", "--own-group", ""] {
            stops_and_goes_on(who, signal, limit);
        }
    }
}

fn stops_and_goes_on(who: &str, signal: Option<Signal>, limit: &str) {
    println!("{who} {signal:?} {limit}");
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let script = "sub note { open my $f, q(>>), qq($ENV{D}/$_[0]); print $f $_[1]; close $f } \
                  note(q(pid), qq($$\\n)); note(q(ppid), getppid . qq(\\n)); \
                  while (1) { note(q(m), qq(.\\n)); select undef, undef, undef, 0.02 }";
    terminal.line(&format!("retryx {limit} -- perl -e '{script}'"));
    lab.await_lines("m", 1);
    let (command, retryx) = (lab.await_number("pid"), lab.await_number("ppid"));
    match signal {
        None => terminal.keys(SUSPEND),
        Some(signal) if who == "retryx" => proc::kill(retryx, signal),
        Some(signal) => proc::kill(command, signal),
    }
    terminal.wait_for("Stopped");
    terminal.wait_for(PROMPT);
    wait_until("both are stopped", || proc::is_stopped(command) && proc::is_stopped(retryx));
    let written = lab.read("m").len();
    pause(Duration::from_millis(300));
    assert_eq!(lab.read("m").len(), written, "it goes on while stopped");
    terminal.line("fg");
    wait_until("the command goes on", || lab.read("m").len() > written + 4);
    assert!(!proc::is_stopped(retryx));
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    terminal.status_is(130);
}

#[test]
fn time_between_suspending_and_fg_counts_against_nothing() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    for (number, (options, file)) in [
        ("-n 1 --timeout 6", "t"),
        ("-n 1 --total-timeout 6", "tt"),
        ("-n 2 --mode fixed --base-delay 1 --deadline 6", "dl"),
    ]
    .into_iter()
    .enumerate()
    {
        // Under the deadline the first attempt fails, and there is time for the second.
        let exit = if file == "dl" { "exit(1 == $ENV{RETRYX_RUN_ATTEMPT})" } else { "" };
        terminal.line(&format!("M={file} retryx {options} -- perl -e '{UNTIL_END} {exit}'"));
        lab.await_lines(file, 1);
        terminal.keys(SUSPEND);
        terminal.wait_for(&format!("[{}]", number + 1));
        terminal.wait_for(PROMPT);
    }
    let timer = Timer::start();
    terminal.line("retryx -n 2 --mode fixed --base-delay 4 -- sh -c 'echo x >>$D/delay; exit 9'");
    terminal.wait_for("retrying in");
    terminal.keys(SUSPEND);
    terminal.wait_for("Stopped");
    let before = timer.elapsed();
    terminal.wait_for(PROMPT);
    pause(Duration::from_millis(6500));
    lab.write("end", "");
    for job in 1..=3 {
        terminal.line(&format!("fg %{job}"));
        terminal.wait_for(PROMPT);
        terminal.status_is(0);
    }
    let timer = Timer::start();
    terminal.line("fg %4");
    terminal.wait_for(PROMPT);
    let after = timer.elapsed();
    terminal.status_is(9);
    assert_eq!((lab.lines("delay").len(), lab.lines("dl").len()), (2, 2));
    assert!(before + after >= Duration::from_secs(4), "{before:?} {after:?}");
}

#[test]
fn parallel_runs_under_xargs_leave_the_terminal_with_their_job() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    let script = "echo $$ >>$D/up; until [ -e $D/end ]; do sleep 0.02; done";
    terminal.line(&format!("printf '1\\n2\\n' | xargs -P2 -n1 retryx --timeout 1000 -- sh -c '{script}'"));
    let commands = lab.await_lines("up", 2);
    let job = terminal.await_job();
    for command in commands {
        assert_eq!(proc::group_and_session(command.parse().unwrap()).unwrap().0, job);
    }
    assert_eq!(terminal.foreground(), job);
    lab.write("end", "");
    let shown = terminal.wait_for(PROMPT);
    assert!(!shown.contains("Stopped"), "{shown}");
    terminal.status_is(0);
}

#[test]
fn a_background_job_leaves_the_terminal_with_the_shell() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.run("retryx --timeout 1000 -n 3 --base-delay 0 -- sh -c 'echo $$ >$D/bg; exec sleep 300' &");
    lab.await_number("bg");
    assert!(terminal.run("echo still $((40 + 2))").contains("still 42"));
    assert_eq!(terminal.foreground(), terminal.pid);
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    assert!(proc::is_alive(lab.await_number("bg")), "the key is not for the background");
    terminal.run("kill %1; wait %1; echo $? >$D/status");
    assert_eq!(lab.await_number("status"), 143);
}

#[test]
fn a_background_job_that_reads_the_terminal_stops_until_it_is_in_the_foreground() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.run("retryx -n 3 -- cat >$D/copy &");
    // The shell tells of it before a prompt.
    wait_until("the shell tells that it stopped", || terminal.run("").contains("Stopped"));
    assert_eq!(terminal.foreground(), terminal.pid);
    terminal.line("fg");
    terminal.await_job();
    terminal.line("typed");
    terminal.keys("\x04");
    terminal.wait_for(PROMPT);
    terminal.status_is(0);
    assert_eq!(lab.read("copy"), "typed\n");
}

// B15
#[test]
fn the_terminal_is_with_the_same_group_before_and_after() {
    let lab = Lab::new();
    lab.write(
        "script.sh",
        "retryx -- true; retryx -n 2 --base-delay 0 -- false; retryx --timeout 1 -n 1 -- sleep 300\n\
         retryx -- sh -c 'echo $PPID >$D/retryx; exec sleep 300'; echo $$ >$D/after; exec sleep 300\n",
    );
    let mut terminal = Terminal::shell(&lab);
    terminal.line("bash script.sh");
    let job = terminal.await_job();
    let retryx = lab.await_number("retryx");
    assert_eq!(terminal.foreground(), job);
    proc::kill(retryx, Signal::KILL);
    assert_eq!(lab.await_number("after"), job);
    assert_eq!(terminal.foreground(), job);
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    terminal.status_is(130);
}
