//! `--stdin replay`: the same input for every attempt.

use std::io::Write as _;

use crate::support::{Lab, wait_until};

// B19
#[test]
fn every_attempt_gets_every_byte() {
    let lab = Lab::new();
    let script =
        "cat input | retryx -q --stdin replay -n 3 --base-delay 0 -- sh -c 'cat > got-$RETRYX_RUN_ATTEMPT; exit 1'";
    for size in [0, 2, 4096, 4097, 65_536, 5_000_000] {
        lab.tool("sh", &["-c", &format!("head -c {size} /dev/urandom > input")]);
        lab.shell(script).finish().exited(1);
        for attempt in 1..=3 {
            lab.tool("cmp", &["input", &format!("got-{attempt}")]);
        }
    }
}

#[test]
fn what_does_not_fit_in_memory_leaves_no_file_behind() {
    let lab = Lab::new();
    let script = "head -c 30000000 /dev/zero | retryx -q --stdin replay -n 2 --base-delay 0 -- sh -c 'wc -c; ls \"$TMPDIR\"; exit 1'";
    let run = lab.shell(script).finish();
    run.exited(1);
    assert_eq!(run.text(), "30000000\n30000000\n");
    assert_eq!(lab.tool("sh", &["-c", "ls \"$TMPDIR\""]), "");
}

// B22
#[test]
fn the_end_of_the_input_is_passed_on() {
    let lab = Lab::new();
    for script in [
        "retryx --stdin replay -- cat < /dev/null",
        ": | retryx --stdin replay -- cat",
        "retryx --stdin replay -- cat <&-; test $? -ne 0",
        "printf x | retryx --stdin replay -- cat >/dev/null",
    ] {
        let run = lab.shell(script).finish();
        run.exited(0);
        assert_eq!(run.text(), "");
    }
}

#[test]
fn a_command_that_takes_only_part_is_no_error_and_the_next_gets_all() {
    let lab = Lab::new();
    let script = "seq 200000 | retryx -q --stdin replay -n 3 --base-delay 0 -- sh -c 'head -n 1; exit 1'";
    let run = lab.shell(script).finish();
    run.exited(1);
    assert_eq!(run.text(), "1\n1\n1\n");
    // Nor is one that closes its input and lives on, or never reads.
    let script = "seq 200000 | retryx -q --stdin replay -n 2 --base-delay 0 -- sh -c 'exec <&-; echo closed; exit 1'";
    assert_eq!(lab.shell(script).finish().text(), "closed\nclosed\n");
    let script = "seq 200000 | retryx -q --stdin replay -n 2 --base-delay 0 -- sh -c 'echo ignored; exit 1'";
    assert_eq!(lab.shell(script).finish().text(), "ignored\nignored\n");
}

#[test]
fn idle_input_never_holds_up_a_command_that_does_not_read() {
    let lab = Lab::new();
    lab.tool("mkfifo", &["idle"]);
    // Open for reading and writing, it is neither empty at its end nor full.
    let run = lab.shell("exec 9<>idle; retryx --stdin replay -n 2 --base-delay 0 -- sh -c 'echo ran; exit 1' <&9");
    let run = run.finish();
    run.exited(1);
    assert_eq!(run.text(), "ran\nran\n");
}

#[test]
fn bytes_arrive_as_they_come_and_no_more_is_taken_than_a_page() {
    let lab = Lab::new();
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let run =
        lab.run("--stdin replay -n 2 --base-delay 0").sh("read a; echo $a >> got; read b; echo $b >> got; exit 1");
    let run = run.stdin(reader.try_clone().expect("a copy")).start();
    writer.write_all(b"one\n").expect("room");
    assert_eq!(lab.await_lines("got", 1), ["one"]);
    writer.write_all(b"two\n").expect("room");
    // The second attempt has both at once.
    assert_eq!(lab.await_lines("got", 4), ["one", "two", "one", "two"]);
    run.finish().exited(1).stopped(2, "attempts");
    // A command that reads nothing leaves all but what fits its pipe to whoever shares it.
    let waiting = || rustix::io::ioctl_fionread(&reader).expect("a count");
    writer.write_all(&vec![b'x'; 30_000]).expect("room");
    let run = lab.run("--stdin replay -n 2").sh("touch started; while [ ! -e over ]; do sleep 0.01; done");
    let run = run.stdin(reader.try_clone().expect("a copy")).start();
    lab.await_file("started");
    wait_until("a page was read ahead", || waiting() < 30_000);
    lab.write("over", "");
    run.finish().exited(0);
    assert!(waiting() >= 30_000 - 2 * 4096, "{} left", waiting());
}

#[test]
fn input_that_cannot_be_kept_is_given_on_once_and_never_half() {
    let lab = Lab::new();
    // The spool may not grow past 10 MiB; the attempt has all of 20, and is the last.
    let script = "ulimit -f 10240; head -c 20000000 /dev/zero | retryx --stdin replay -n 3 --base-delay 0 -- sh -c 'wc -c; exit 1'";
    let run = lab.bash(script).finish();
    run.exited(1).says(&["--stdin replay", "cannot be kept", "giving up after 1 attempt"]);
    assert_eq!(run.text(), "20000000\n");
}

// B21: only replay takes anything from a surrounding loop.
#[test]
fn a_surrounding_loop_loses_nothing_in_any_other_mode() {
    let lab = Lab::new();
    for mode in ["auto", "inherit", "null"] {
        let script =
            format!("printf '1\\n2\\n3\\n' | while read -r l; do retryx --stdin {mode} -- true; echo $l; done | wc -l");
        assert_eq!(lab.shell(&script).finish().text().trim(), "3", "{mode}");
    }
}

#[test]
fn input_that_breaks_off_is_never_taken_for_its_end() {
    let lab = Lab::new();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    // A peer that closes with bytes unread resets the connection.
    (&theirs).write_all(b"unread").expect("room");
    (&ours).write_all(b"half\n").expect("room");
    let run = lab.run("--stdin replay -n 3 --base-delay 0").sh("read a; echo $a > got; cat; echo whole");
    let run = run.stdin(std::os::fd::OwnedFd::from(theirs.try_clone().expect("a copy"))).start();
    lab.await_lines("got", 1);
    drop(theirs);
    drop(ours);
    let run = run.finish();
    run.died_of(rustix::process::Signal::KILL).stopped(1, "stdin_consumed").says(&["cannot be read"]);
    assert_eq!(run.text(), "");
}

#[test]
fn what_cannot_be_kept_is_passed_on_with_its_own_errors() {
    let lab = Lab::new();
    for script in [
        "retryx -q -n 2 --base-delay 0 --stdin replay -- cat < /",
        "retryx -q -n 2 --base-delay 0 --stdin replay -- cat 0> file",
    ] {
        let run = lab.shell(script).finish();
        run.exited(1).says(&["cat: "]);
    }
}

#[test]
fn a_folder_that_cannot_hold_the_spool_is_named() {
    let lab = Lab::new();
    let script = "head -c 20000000 /dev/zero | TMPDIR=/no/such retryx --stdin replay -n 2 -- sh -c 'wc -c; exit 1'";
    let run = lab.shell(script).finish();
    run.exited(1).says(&["/no/such (TMPDIR)", "not all of standard input is kept"]);
    assert_eq!(run.text(), "20000000\n");
    assert!(!run.stderr.contains("use --stdin replay"), "{}", run.stderr);
}
