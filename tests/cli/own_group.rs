//! Commands that leave retryx's process group, and signals that come in quick turns.

use rustix::process::Signal;

use crate::support::{Lab, PROMPT, Terminal, proc, wait_until};

const INTERRUPT: &str = "\x03";
const QUIT: &str = "\x1c";
const SUSPEND: &str = "\x1a";

/// `timeout` makes a group of its own, so that no key of the terminal reaches it.
const LEAVES: &str = "retryx -- timeout 300 sh -c 'echo $$ > up; exec sleep 300'";

#[test]
fn keys_reach_a_command_that_made_its_own_group() {
    for key in [INTERRUPT, QUIT] {
        let lab = Lab::new();
        let mut terminal = Terminal::shell(&lab);
        terminal.line(LEAVES);
        let sleeper = lab.await_number("up");
        terminal.keys(key);
        terminal.wait_for(PROMPT);
        wait_until("the command has ended", || !proc::is_alive(sleeper));
    }
}

#[test]
fn it_is_suspended_and_resumed_with_retryx() {
    let lab = Lab::new();
    let mut terminal = Terminal::shell(&lab);
    terminal.line(LEAVES);
    let sleeper = lab.await_number("up");
    terminal.keys(SUSPEND);
    terminal.wait_for(PROMPT);
    terminal.line("fg");
    terminal.wait_for("timeout 300");
    wait_until("the command goes on", || !proc::is_stopped(sleeper));
    terminal.keys(INTERRUPT);
    terminal.wait_for(PROMPT);
    wait_until("the command has ended", || !proc::is_alive(sleeper));
}

#[test]
fn who_stops_and_continues_at_once_leaves_nobody_stopped() {
    let lab = Lab::new();
    let runs: Vec<_> = (0..20)
        .map(|_| {
            lab.run("-q")
                .perl("open F, q(>>), q(up); print F qq(x\\n); close F; select undef, undef, undef, 0.5")
                .start()
        })
        .collect();
    lab.await_lines("up", 20);
    for run in &runs {
        run.signal(Signal::TSTP);
        run.signal(Signal::CONT);
    }
    for run in runs {
        run.finish().exited(0);
    }
}
