//! Standard input: never half-eaten by a retry, never touched by retryx itself.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::support::{Finished, Lab, Run};

const TWICE: &str = "-n 2 --base-delay 0";

fn pipe() -> (File, File) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    (read.into(), write.into())
}

/// Asserts that a run stopped because of its input, with the command's status and the remedies.
#[track_caller]
fn consumed(run: &Finished, code: i32) {
    run.exited(code).stopped(1, "stdin_consumed");
    run.says(&["--stdin replay", "--stdin null", "--stdin inherit"]);
}

// B21
#[test]
fn a_surrounding_loop_sees_every_line_once() {
    let lab = Lab::new();
    lab.write("file", "1\n2\n3\n");
    for options in ["", "--stdin auto", "--stdin inherit", "--stdin null", "--timeout 1000", "-n 1"] {
        for command in ["true", "false", "sh -c 'exit 3'"] {
            for (before, after) in [("", "<$D/file"), ("printf '1\\n2\\n3\\n' |", ""), ("cat $D/file |", "")] {
                let script = format!(
                    "{before} while read l; do retryx --base-delay 0 {options} -- {command}; echo $l; done {after}"
                );
                let run = lab.shell(&script).finish();
                assert_eq!(run.text(), "1\n2\n3\n", "{script}");
            }
        }
    }
}

#[test]
fn a_pipe_from_which_something_was_taken_is_not_retried() {
    let lab = Lab::new();
    let splice = format!("syscall({}, 0, 0, fileno($ARGV), 0, 5, 0)", libc::SYS_splice);
    let splice = format!("pipe(R, $ARGV); {splice} == 5 or die; exit 9");
    for words in [
        &["sh", "-c", "head -c 10 >/dev/null; exit 9"][..],
        &["sh", "-c", "cat >/dev/null; exit 9"],
        &["sh", "-c", "read l; exit 9"],
        &["sh", "-c", "dd bs=1 count=1 of=/dev/null 2>/dev/null; exit 9"],
        &["sh", "-c", "exec 3<&0; head -c 1 <&3 >/dev/null & wait; exit 9"],
        &["sh", "-c", "sh -c 'setsid head -c 1' >/dev/null; exit 9"],
        &["perl", "-e", "open my $f, '<', '/dev/stdin'; sysread $f, my $x, 1; exit 9"],
        &["perl", "-e", &splice],
    ] {
        let run = lab.run(TWICE).input(b"0123456789abcdef\nmore\n").command(words).finish();
        consumed(&run, 9);
        // The producer may still be there.
        let (read, mut write) = pipe();
        write.write_all(b"0123456789abcdef\nmore\n").unwrap();
        let held = (words[2] != "cat >/dev/null; exit 9").then_some(write);
        consumed(&lab.run(TWICE).stdin(read).command(words).finish(), 9);
        drop(held);
    }
}

#[test]
fn the_rest_of_a_pipe_that_was_eaten_from_goes_to_nobody() {
    let lab = Lab::new();
    let script = "seq 1000000 | retryx -n 2 --base-delay 0 -- sh -c 'echo x >>$D/m; head -c 10 >/dev/null; exit 1'";
    let run = lab.shell(script).finish();
    run.exited(1).says(&["--stdin replay"]);
    assert_eq!(lab.lines("m"), ["x"]);
}

#[test]
fn a_producer_that_refills_what_was_taken_does_not_hide_it() {
    let lab = Lab::new();
    let (read, mut write) = pipe();
    write.write_all(b"12345").unwrap();
    let script = "head -c 5 >/dev/null; echo >$D/taken; until [ -e $D/end ]; do sleep 0.02; done; exit 8";
    let run = lab.run(TWICE).stdin(read).sh(script).start();
    lab.await_file("taken");
    write.write_all(b"67890").unwrap();
    lab.write("end", "");
    consumed(&run.finish(), 8);
}

#[test]
fn what_a_left_over_process_takes_during_the_delay_is_noticed() {
    let lab = Lab::new();
    let (read, mut write) = pipe();
    write.write_all(b"12345").unwrap();
    let script = "exec 3<&0; { until [ -e $D/go ]; do sleep 0.02; done; head -c 1 <&3 >/dev/null; } & exit 8";
    let run = lab.run("-n 2 --mode fixed --base-delay 3").stdin(read).sh(script).start();
    run.events.wait("retry_scheduled", 1);
    lab.write("go", "");
    consumed(&run.finish(), 8);
}

#[test]
fn a_pipe_that_nobody_read_from_is_there_whole_for_the_next_attempt() {
    let lab = Lab::new();
    let script = "[ $RETRYX_RUN_ATTEMPT = 3 ] && exec cat; exit 1";
    // With and without a producer that is still there, with something in it and with nothing.
    for content in [&b"all of it\n"[..], b""] {
        let run = lab.run("-n 3 --base-delay 0").input(content).sh(script).finish();
        run.exited(0).stopped(3, "success");
        assert_eq!(run.stdout, content);
        let (read, mut write) = pipe();
        write.write_all(content).unwrap();
        let run = lab.run("-n 3 --base-delay 0").stdin(read).sh("exit 1").finish();
        run.exited(1).stopped(3, "attempts");
        drop(write);
    }
}

#[test]
fn a_fifo_counts_as_a_pipe() {
    let lab = Lab::new();
    lab.tool("mkfifo", &[lab.path("fifo").to_str().unwrap()]);
    let held = || File::options().read(true).write(true).open(lab.path("fifo")).unwrap();
    let mut writer = held();
    writer.write_all(b"12345").unwrap();
    consumed(&lab.run(TWICE).stdin_file("fifo").sh("head -c 1 >/dev/null; exit 3").finish(), 3);
    lab.run(TWICE).stdin_file("fifo").sh("exit 3").finish().exited(3).stopped(2, "attempts");
}

// B22 for a pipe and for /dev/null, without `replay`.
#[test]
fn an_empty_input_is_at_its_end_for_every_attempt() {
    let lab = Lab::new();
    for options in [TWICE, "-n 2 --base-delay 0 --stdin null", "-n 2 --base-delay 0 --stdin inherit"] {
        let run = |input: fn(Run<'_>) -> Run<'_>| {
            let run = input(lab.run(options)).sh("cat; exit 6").finish();
            run.exited(6).stopped(2, "attempts");
            assert!(run.stdout.is_empty());
        };
        run(|run| run);
        run(|run| run.input(b""));
        run(|run| run.stdin(UnixStream::pair().map(|(one, _)| OwnedFd::from(one)).unwrap()));
    }
    let run = lab.shell(": | retryx -n 2 -- cat").finish();
    run.exited(0);
    assert!(run.stdout.is_empty() && run.stderr.is_empty());
}

#[test]
fn inputs_that_are_the_same_for_everybody_are_never_lost() {
    let lab = Lab::new();
    let script = "head -c 10 | od -An -tx1 >>$D/m; exit 6";
    for device in ["/dev/null", "/dev/zero", "/"] {
        let run = lab.run(TWICE).stdin(File::open(device).unwrap()).sh(script).finish();
        run.exited(6).stopped(2, "attempts");
    }
    let write_only = File::create(lab.path("write-only")).unwrap();
    lab.run(TWICE).stdin(write_only).sh(script).finish().exited(6).stopped(2, "attempts");
}

#[test]
fn a_socket_is_retried_only_where_it_was_at_its_end_from_the_start() {
    let lab = Lab::new();
    let unix = || {
        let (one, other) = UnixStream::pair().unwrap();
        (OwnedFd::from(one), OwnedFd::from(other))
    };
    let tcp = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (OwnedFd::from(one), OwnedFd::from(listener.accept().unwrap().0))
    };
    for pair in [&unix as &dyn Fn() -> (OwnedFd, OwnedFd), &tcp] {
        // Open: anything may be taken unnoticed, so that even an idle command is not retried.
        let (near, far) = pair();
        consumed(&lab.run(TWICE).stdin(near).sh("exit 6").finish(), 6);
        drop(far);
        // With something in it.
        let (near, far) = pair();
        File::from(far).write_all(b"x").unwrap();
        consumed(&lab.run(TWICE).stdin(near).sh("cat >/dev/null; exit 6").finish(), 6);
        // What `recv` took and the other side sent again.
        let (near, far) = pair();
        let mut far = File::from(far);
        far.write_all(b"12345").unwrap();
        let script = "recv STDIN, my $x, 5, 0; open my $f, '>', \"$ENV{D}/taken\"; close $f; \
                      select undef, undef, undef, 0.01 until -e \"$ENV{D}/sent\"; exit 6";
        let run = lab.run(TWICE).stdin(near).perl(script).start();
        lab.await_file("taken");
        far.write_all(b"67890").unwrap();
        lab.write("sent", "");
        consumed(&run.finish(), 6);
        for name in ["taken", "sent"] {
            std::fs::remove_file(lab.path(name)).unwrap();
        }
    }
    // At its end; a TCP socket tells of that a moment after the other side closed it.
    let (near, far) = UnixStream::pair().unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    lab.run(TWICE).stdin(OwnedFd::from(near)).sh("cat; exit 6").finish().exited(6).stopped(2, "attempts");
}

#[test]
fn a_file_is_put_back_to_where_the_first_attempt_found_it() {
    let lab = Lab::new();
    lab.write("file", "first\nsecond\nthird\n");
    let script = "cat >>$D/m; echo / >>$D/m; exit 1";
    lab.run("-n 3 --base-delay 0").stdin_file("file").sh(script).finish().exited(1).stopped(3, "attempts");
    assert_eq!(lab.read("m"), "first\nsecond\nthird\n/\n".repeat(3));
    // From the middle, where a caller has read from it before.
    std::fs::remove_file(lab.path("m")).unwrap();
    let mut file = File::open(lab.path("file")).unwrap();
    file.seek(SeekFrom::Start(6)).unwrap();
    let run = lab.run("-n 3 --base-delay 0").stdin(file.try_clone().unwrap()).sh("head -n 1 >>$D/m; exit 1").finish();
    run.exited(1).stopped(3, "attempts");
    assert_eq!(lab.read("m"), "second\n".repeat(3));
    // After the last attempt it is where the command left it.
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty() || rest == "third\n", "{rest}");
}

#[test]
fn a_file_whose_offset_somebody_moved_during_the_wait_is_not_put_back() {
    let lab = Lab::new();
    lab.write("file", "0123456789");
    let runs = ["head -c 4 >/dev/null; exit 2", "exit 2"].map(|script| {
        let mut file = File::open(lab.path("file")).unwrap();
        let run = lab.run("-n 2 --mode fixed --base-delay 3").stdin(file.try_clone().unwrap()).sh(script).start();
        run.events.wait("retry_scheduled", 1);
        file.seek(SeekFrom::Start(7)).unwrap();
        (run, file)
    });
    for (run, mut file) in runs {
        consumed(&run.finish(), 2);
        assert_eq!(file.stream_position().unwrap(), 7, "what somebody else set is left alone");
    }
}

#[test]
fn a_file_open_for_writing_too_counts_as_a_pipe() {
    let lab = Lab::new();
    // Shared with stdout, as `<>file >&0` gives it: putting it back would overwrite.
    let script = "echo attempt $RETRYX_RUN_ATTEMPT; exit 1";
    let run =
        lab.shell("exec retryx -n 2 --base-delay 0 --events $D/e -- sh -c \"$0\" <>$D/both >&0").arg(script).finish();
    run.exited(1);
    assert_eq!(lab.read("both"), "attempt 1\nattempt 2\n");
    let read = || File::options().read(true).write(true).open(lab.path("both")).unwrap();
    consumed(&lab.run(TWICE).stdin(read()).sh("head -c 3 >/dev/null; exit 1").finish(), 1);
    lab.run(TWICE).stdin(read()).sh("exit 1").finish().exited(1).stopped(2, "attempts");
}

#[test]
fn null_leaves_the_callers_input_untouched() {
    let lab = Lab::new();
    let (mut read, write) = pipe();
    (&write).write_all(b"kept").unwrap();
    drop(write);
    let run = lab.run("-n 3 --base-delay 0 --stdin null").stdin(read.try_clone().unwrap());
    let run = run.sh("cat; readlink /proc/self/fd/0; exit 1").finish();
    run.exited(1).stopped(3, "attempts");
    assert_eq!(run.text(), "/dev/null\n".repeat(3));
    let mut rest = String::new();
    read.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "kept");
}

#[test]
fn inherit_retries_with_what_is_left() {
    let lab = Lab::new();
    lab.write("file", "one\ntwo\nthree\n");
    let script = "while read l; do echo $l; break; done; exit 1";
    let options = "-n 3 --base-delay 0 --stdin inherit";
    for run in [lab.run(options).input(b"one\ntwo\nthree\n"), lab.run(options).stdin_file("file")] {
        let run = run.sh(script).finish();
        run.exited(1).stopped(3, "attempts");
        assert_eq!(run.text(), "one\ntwo\nthree\n");
    }
}

#[test]
fn a_run_that_needs_no_retry_may_eat_its_input() {
    let lab = Lab::new();
    let run = lab.run("").input(b"hi\n").command(&["cat"]).finish();
    run.exited(0).stopped(1, "success");
    assert_eq!(run.text(), "hi\n");
    assert!(run.stderr.is_empty());
    // Where other reasons come first they are told.
    lab.run("-n 1").input(b"hi\n").sh("cat; exit 3").finish().exited(3).stopped(1, "attempts");
    lab.run("-n 3").input(b"hi\n").sh("cat; exit 127").finish().exited(127).stopped(1, "permanent");
    let run = lab.run("-n 3").input(b"hi\n").sh("cat >/dev/null; kill -9 $$").finish();
    run.died_of(Signal::KILL).stopped(1, "stdin_consumed");
}

#[test]
fn without_a_watch_a_pipe_counts_as_eaten_from() {
    let lab = Lab::new();
    let (read, write) = pipe();
    // Two descriptors are free: for signals and for the events, none for the watch.
    let script = "ulimit -n 5; exec \"$R\" -n 2 --base-delay 0 --events $D/e -- sh -c 'exit 6'";
    let run = lab.shell(script).stdin(read).finish();
    drop(write);
    run.exited(6).says(&["--stdin replay"]);
    let last = crate::support::Events::at(lab.path("e")).wait("stopped", 1);
    assert_eq!(last["reason"], "stdin_consumed");
    let run = lab.shell("ulimit -n 5; exec \"$R\" -n 2 --base-delay 0 -- sh -c 'exit 6'").input(b"").finish();
    run.exited(6).says(&["giving up after 2 attempts"]);
}
