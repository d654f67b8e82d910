//! Output streams that retryx reads: for patterns, presets, delays that the output asks for,
//! and silence. What is not read is the caller's own.

mod bytes;
mod delays;
mod idle;
mod only_where_needed;
mod patterns;
mod presets;
mod readers;
mod terminals;

use std::fs::File;

use rustix::process::Signal;

use crate::support::{Finished, Lab, Terminal, proc};

/// Never matches, and makes both streams watched.
const BOTH: &str = "stdout:/^never$/,stderr:/^never$/";

/// Perl for `w(BYTES)`, which writes to standard output and waits until all that was written
/// so far has arrived in `$D/out`: the next bytes come in another piece.
const PIECES: &str = "sub w { syswrite STDOUT, $_[0]; $n += length $_[0]; \
                      select undef, undef, undef, 0.002 until -s qq($ENV{D}/out) >= $n } ";

/// Runs a script of [`PIECES`], its output in `$D/out`.
fn pieces(lab: &Lab, options: &[&str], script: &str) -> Finished {
    let out = File::create(lab.path("out")).expect("a file");
    lab.run("-n 1").args(options).stdout(out).perl(&format!("{PIECES} {script}")).finish()
}

/// The class and the rule by which the last attempt was judged.
#[track_caller]
fn verdict(run: &Finished) -> (String, String) {
    let last = run.of("attempt_finished").pop().expect("an attempt");
    ["class", "rule"].map(|field| last[field].as_str().expect("a text").to_owned()).into()
}

/// The most memory that a process had so far, in bytes. It must not have ended.
fn most_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a living process");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

const MIB: u64 = 1024 * 1024;

// Death of retryx: the kernel ends the command, and what retryx had made is gone with it.
#[test]
fn a_killed_retryx_leaves_nothing_behind() {
    let lab = Lab::new();
    let script = "echo $$ >>$D/up; while :; do echo x; echo y >&2; done";
    let run = lab.run("").args(["--retry-on", BOTH]).sh(script).leashed().start();
    let command = lab.await_number("up");
    run.signal(Signal::KILL);
    run.finish().died_of(Signal::KILL).await_alone();
    assert!(!proc::is_alive(command));
    // Also where the command only waits, and has a terminal of retryx's making.
    let script = "echo $$ >>$D/down; exec sleep 600";
    let words = ["sh", "-c", &format!("retryx --watch --preset curl -- sh -c '{script}' & echo $! >retryx; wait")];
    let terminal = Terminal::start(&lab, &words);
    lab.await_number("down");
    proc::kill(lab.await_number("retryx"), Signal::KILL);
    terminal.leash.await_free();
    terminal.finish();
    assert_eq!(lab.tool("sh", &["-c", "ls \"$TMPDIR\""]), "");
}
