//! Whoever reads what a watched command writes: he may be slow, or leave.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::support::{Lab, PROMPT, Terminal, pause, proc, wait_until};

use super::{MIB, most_memory};

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

#[test]
fn losing_the_reader_ends_the_run_as_without_retryx() {
    let lab = Lab::new();
    for rule in ["stdout:/x/", "default,stdout:/z/", "stderr:/x/", "output:/x/"] {
        let script = format!(
            "set -o pipefail; retryx -n 5 --base-delay 0 --events e --retry-on {rule} -- yes | head -n 1; echo $?"
        );
        let run = lab.bash(&script).finish();
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("y\n141\n", ""), "{rule}");
        let events = crate::support::Events::at(lab.path("e"));
        assert_eq!(events.of("attempt_started").len(), 1, "{rule}");
        assert_eq!(events.of("stopped")[0]["exit_status"], 141);
        std::fs::remove_file(lab.path("e")).unwrap();
    }
    // A command that does not die of it ends as it likes; there is no retry.
    let (read, write) = pipe();
    let run = lab.run("-n 5 --base-delay 0 --retry-on default,stdout:/x/").ignoring(&[Signal::PIPE]).stdout(write);
    let run = run.command(&["yes"]).start();
    let mut line = [0; 2];
    File::from(read).read_exact(&mut line).expect("a line");
    run.finish().exited(1).stopped(1, "reader_gone").says(&["nobody reads"]);
}

#[test]
fn losing_the_reader_of_standard_error_is_the_commands_affair() {
    let lab = Lab::new();
    // As without retryx the write fails; here the command can bear it, and goes on.
    let script = "$SIG{PIPE} = q(IGNORE); 1 while syswrite STDERR, qq(x\\n) x 1000; print q(done)";
    let (read, write) = pipe();
    drop(read);
    let run = lab.run("-n 2 --retry-on stderr:/y/").stderr(write).perl(script).finish();
    assert_eq!(run.text(), "done");
    assert_eq!(run.of("attempt_started").len(), 1);
}

#[test]
fn no_attempt_is_made_for_a_reader_that_is_gone() {
    let lab = Lab::new();
    let (read, write) = pipe();
    let run =
        lab.run("-n 5 --mode fixed --base-delay 2 --retry-on stdout:/x/").stdout(write).sh("echo x; exit 7").start();
    run.events.wait("retry_scheduled", 1);
    drop(read);
    run.finish().exited(7).stopped(1, "reader_gone").says(&["nobody reads"]);
}

/// Starts a command that writes without end to a reader that reads nothing, and waits until
/// it is held back.
fn stuck(lab: &Lab, options: &str) -> (crate::support::Running, OwnedFd) {
    let (read, write) = pipe();
    let script = "$SIG{TERM} = sub { open F, q(>), qq($ENV{D}/term); exit 3 } if $ENV{HANDLE}; \
                  $x = qq(abcdefg\\n) x 8192; open F, q(>), qq($ENV{D}/pid); print F qq($$\\n); close F; \
                  1 while syswrite STDOUT, $x";
    let run = lab.run("--retry-on stdout:/x/").words(options).stdout(write).perl(script).start();
    let command = lab.await_number("pid");
    // Its state changes no more once every pipe is full.
    let waits = || proc::usage(command).waits;
    wait_until("the command waits for room", || {
        let before = (waits(), proc::usage(command).cpu);
        pause(Duration::from_millis(50));
        proc::state(command) == Some('S')
            && before == (waits(), proc::usage(command).cpu)
            && ioctl_fionread(&read).expect("a pipe") > 0
    });
    (run, read)
}

#[test]
fn a_reader_that_does_not_read_holds_the_command_back() {
    let lab = Lab::new();
    let (run, read) = stuck(&lab, "-n 1");
    assert!(most_memory(run.pid) < 64 * MIB, "{}", most_memory(run.pid));
    let before = proc::usage(run.pid);
    pause(Duration::from_millis(300));
    let used = proc::usage(run.pid).since(before);
    assert!(used.cpu < Duration::from_millis(5), "{used:?}");
    // It goes on when he reads.
    let mut buffer = vec![0; 8 << 20];
    File::from(read).read_exact(&mut buffer).expect("more than any pipe holds");
    assert!(buffer.chunks(8).all(|line| line == b"abcdefg\n"));
    run.finish().died_of(Signal::PIPE);
}

#[test]
fn a_signal_ends_the_run_while_the_reader_does_not_read() {
    let lab = Lab::new();
    let (run, read) = stuck(&lab, "");
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
    drop(read);
}

#[test]
fn time_limits_hold_while_the_reader_does_not_read() {
    let lab = Lab::new();
    for (options, reason, attempts) in [
        ("-n 1 --timeout 2 --kill-after 1", "attempts", 1),
        ("-n 2 --base-delay 0 --timeout 2 --kill-after 0", "attempts", 2),
        ("-n 5 --base-delay 0 --total-timeout 2 --kill-after 1", "total_timeout", 1),
    ] {
        let (read, write) = pipe();
        let run =
            lab.run("--retry-on timeout,stdout:/x/").words(options).stdout(write).command(&["yes"]).leashed().start();
        let run = run.finish();
        run.exited(124).stopped(attempts, reason).alone();
        drop(read);
    }
    // The command has ended, and what it wrote is still here.
    let (read, write) = pipe();
    let run = lab.run("-n 1 --total-timeout 2 --kill-after 1 --retry-on stdout:/x/").stdout(write);
    run.command(&["head", "-c", "500000", "/dev/zero"]).finish().exited(124).stopped(1, "total_timeout");
    drop(read);
}

#[test]
fn the_rest_of_an_attempt_that_a_limit_ended_is_not_lost_to_a_slow_reader() {
    let lab = Lab::new();
    let (read, write) = pipe();
    let script =
        "$SIG{TERM} = q(IGNORE); syswrite STDOUT, q(x) x 600000; open F, q(>), qq($ENV{D}/up); close F; sleep 600";
    let run = lab.run("-n 1 --timeout 1 --kill-after 2 --retry-on stdout:/x/").stdout(write).perl(script).start();
    lab.await_file("up");
    let mut buffer = vec![0; 30_000];
    let mut source = File::from(read);
    let mut count = 0;
    while let Ok(got @ 1..) = source.read(&mut buffer) {
        count += got;
        pause(Duration::from_millis(100));
    }
    run.finish().exited(124);
    assert_eq!(count, 600_000);
}

// Who waits for his reader is not silent.
#[test]
fn a_slow_reader_is_not_taken_for_a_silent_command() {
    let lab = Lab::new();
    let (read, write) = pipe();
    let script = "$x = q(x) x 65536; for (1..80) { syswrite STDOUT, $x } exit 7";
    let run = lab.run("-n 1 --idle-timeout 1").stdout(write).perl(script).start();
    run.events.wait("attempt_started", 1);
    // For much longer than the limit nobody reads.
    pause(Duration::from_secs(4));
    assert!(run.is_running(), "{}", run.stderr());
    let mut seen = Vec::new();
    File::from(read).read_to_end(&mut seen).expect("the bytes");
    run.finish().exited(7).stopped(1, "attempts");
    assert_eq!(seen.len(), 80 * 65536);
}

#[test]
fn a_terminal_that_is_held_holds_the_command_back_and_nothing_else() {
    let lab = Lab::new();
    let script = "$SIG{INT} = sub { open F, q(>), qq($ENV{D}/int); exit 3 }; open F, q(>), qq($ENV{D}/up); close F; \
                  1 while syswrite STDOUT, qq(abcdefg\\n) x 100";
    let mut terminal = Terminal::shell(&lab);
    terminal.keys("\x13");
    terminal.keys("\x11");
    terminal.line(&format!("retryx -n 1 --retry-on 'stdout:/x/' -- perl -e '{script}'"));
    lab.await_file("up");
    terminal.keys("\x13");
    pause(Duration::from_millis(200));
    terminal.keys("\x03");
    lab.await_file("int");
    terminal.keys("\x11");
    terminal.wait_for(PROMPT);
    terminal.status_is(3);
}

#[test]
fn what_was_written_before_the_end_reaches_a_reader_who_comes_late() {
    let lab = Lab::new();
    let (read, write) = pipe();
    let run = lab
        .run("-n 1 --retry-on stdout:/x/")
        .stdout(write)
        .sh("head -c 900000 /dev/zero; echo >$D/over; exit 7")
        .start();
    lab.await_file("over");
    pause(Duration::from_millis(300));
    assert!(run.is_running());
    let mut seen = Vec::new();
    File::from(read).read_to_end(&mut seen).expect("the bytes");
    assert_eq!(seen.len(), 900_000);
    run.finish().exited(7);
}

#[test]
fn a_reader_of_one_stream_does_not_hold_up_the_other() {
    let lab = Lab::new();
    let ((_out, out_end), (err, err_end)) = (pipe(), pipe());
    let script = "if (fork) { 1 while syswrite STDOUT, q(x) x 65536 } else { for (1..50) { syswrite STDERR, q(y) x 65536 } close STDERR; close STDOUT; sleep 600 }";
    let run = lab.run("-n 1 --retry-on output:/^never$/").stdout(out_end).stderr(err_end).perl(script).start();
    let mut seen = vec![0; 50 * 65536];
    File::from(err).read_exact(&mut seen).expect("all of it");
    assert!(seen.iter().all(|&byte| byte == b'y'));
    run.signal_group(Signal::TERM);
    run.finish().died_of(Signal::TERM);
    std::io::stdout().flush().unwrap();
}
