//! Bytes of a watched stream: exact, live, and in their order, wherever they go.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::support::{Lab, has_programs, skip, socket_pair, wait_until};

use super::{BOTH, MIB, most_memory, verdict};

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

/// Makes `$D/1` and `$D/2` of some MiB: random bytes, NULs, UTF-16 and its like.
fn random_files(lab: &Lab) {
    let make = "for i in 1 2; do head -c 3000000 /dev/urandom; head -c 100000 /dev/zero; \
                printf '\\377\\376b\\0u\\0s\\0y\\0\\r\\0\\n\\0'; head -c 1${i}00001 /dev/urandom; done";
    lab.tool("sh", &["-c", &format!("({make}) >1; ({make}) >2")]);
}

#[test]
fn any_bytes_pass_through_both_streams_at_once() {
    let lab = Lab::new();
    random_files(&lab);
    let command = "sh -c 'cat 1 & cat 2 >&2; wait; exit 0'";
    for sinks in [
        ">out 2>err",
        "2>err | cat >out",
        "2>&1 >out | cat >err",
        "> >(cat >out; echo >done1) 2> >(cat >err; echo >done2); until [ -e done1 -a -e done2 ]; do sleep 0.01; done",
    ] {
        for rule in [BOTH, "stdout:/^never$/", "stderr:/^never$/", "output:/^(never)$/"] {
            lab.tool("sh", &["-c", "rm -f out err done1 done2"]);
            let run =
                lab.bash(&format!("retryx --retry-on '{rule}' -- {command} {sinks}; cmp 1 out && cmp 2 err")).finish();
            run.exited(0);
            assert_eq!(run.stderr, "", "{sinks} {rule}");
        }
    }
}

#[test]
fn a_prompt_without_a_line_end_arrives_before_the_command_goes_on() {
    let lab = Lab::new();
    let script = "printf 'name? '; printf 'sure? ' >&2; until [ -e $D/end ]; do sleep 0.02; done; exit 2";
    let ((out, out_end), (err, err_end)) = (pipe(), pipe());
    let run = lab.run("-n 1").args(["--retry-on", BOTH]).stdout(out_end).stderr(err_end).sh(script).start();
    for (end, prompt) in [(out, b"name? "), (err, b"sure? ")] {
        let mut seen = [0; 6];
        File::from(end).read_exact(&mut seen).expect("the prompt");
        assert_eq!(&seen, prompt);
    }
    assert!(run.is_running());
    lab.write("end", "");
    run.finish().exited(2);
}

/// Writes lines to both streams in turn, each with a write of its own.
const IN_TURN: &str = "$| = 1; for $i (1..400) { syswrite STDOUT, qq(o$i\\n); syswrite STDERR, qq(e$i\\n) } exit 7";

fn in_turn() -> String {
    (1..=400).fold(String::new(), |text, i| text + &format!("o{i}\ne{i}\n"))
}

// B29
#[test]
fn streams_that_are_one_keep_their_order_and_are_looked_at_together() {
    let lab = Lab::new();
    let ways = [">both 2>&1", "2>&1 | cat >both", ">>both 2>&1", "2>&1 1>both"];
    for (sinks, merged) in ways.into_iter().zip([true, true, true, false]) {
        for (rule, matches) in [("stdout:/^e7$/", merged), ("stderr:/^o7$/", merged), ("output:/^e400$/", true)] {
            lab.tool("sh", &["-c", "rm -f both e"]);
            let command = format!("perl -e '{IN_TURN}'");
            lab.bash(&format!("retryx -q -n 1 --events e --retry-on '{rule}' -- {command} {sinks}")).finish();
            if merged {
                assert_eq!(lab.read("both"), in_turn(), "{sinks} {rule}");
            }
            let finished = crate::support::Events::at(lab.path("e")).wait("attempt_finished", 1);
            let class = if matches { "transient" } else { "permanent" };
            assert_eq!(finished["class"], class, "{sinks} {rule}");
        }
    }
}

#[test]
fn a_file_that_is_appended_to_keeps_what_it_had() {
    let lab = Lab::new();
    lab.write("log", "before\n");
    let script = "echo out$RETRYX_RUN_ATTEMPT; echo err$RETRYX_RUN_ATTEMPT >&2; exit 7";
    let command = format!("retryx -q -n 2 --base-delay 0 --retry-on 'stdout:/out/' -- sh -c '{script}' >>log 2>>log");
    let run = lab.bash(&format!("{command}; echo $?")).finish();
    assert_eq!(run.text(), "7\n");
    assert_eq!(lab.read("log"), "before\nout1\nerr1\nout2\nerr2\n");
    // Somebody else appends meanwhile: nothing is written over.
    let out = File::options().append(true).open(lab.path("log")).expect("the log");
    let script = "echo one; until [ -e $D/end ]; do sleep 0.02; done; echo two; exit 7";
    let run = lab.run("-n 1 --retry-on stdout:/two/").stdout(out).sh(script).start();
    wait_until("the first line is there", || lab.read("log").ends_with("one\n"));
    File::options().append(true).open(lab.path("log")).unwrap().write_all(b"between\n").unwrap();
    lab.write("end", "");
    run.finish().exited(7);
    assert!(lab.read("log").ends_with("one\nbetween\ntwo\n"), "{}", lab.read("log"));
}

#[test]
fn a_file_is_written_where_its_offset_is() {
    let lab = Lab::new();
    let script =
        "(echo before; retryx -n 2 -q --base-delay 0 --retry-on stdout:/x/ -- sh -c 'echo x; exit 7'; echo after) >out";
    lab.shell(script).finish().exited(0);
    assert_eq!(lab.read("out"), "before\nx\nx\nafter\n");
}

#[test]
fn nothing_is_a_place_to_write_to_as_well() {
    let lab = Lab::new();
    let null = File::options().write(true).open("/dev/null").unwrap();
    let run =
        lab.run("-n 2 --base-delay 0 --retry-on stdout:/x/").stdout(null).sh("seq 100000; echo x; exit 7").finish();
    run.exited(7).stopped(2, "attempts");
    assert!(!run.stderr.contains("written"), "{}", run.stderr);
}

#[test]
fn output_that_cannot_be_written_is_never_taken_for_whole() {
    let lab = Lab::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for script in ["echo x", "echo x; exec >&-; sleep 0.2"] {
        let run = lab.run("--retry-on stdout:/y/").stdout(full()).sh(script).finish();
        run.exited(125).says(&["standard output cannot be written"]);
    }
    let run = lab.run("--retry-on stderr:/y/").stderr(full()).sh("echo x >&2").finish();
    assert_ne!(run.status.code(), Some(0));
    // The failure of a command is its own, and the next attempt may have room.
    let run = lab.run("-n 2 --base-delay 0 --retry-on stdout:/x/").stdout(full()).sh("echo x; exit 9").finish();
    run.exited(9).stopped(2, "attempts");
    let script = "trap '' PIPE XFSZ; ulimit -f 8; retryx -q -n 3 --base-delay 0 --retry-on default,stdout:/x/ -- \
                  sh -c 'if [ $RETRYX_RUN_ATTEMPT = 1 ]; then seq 1000000; exit 9; fi; : >out; echo fits' >>out";
    lab.bash(script).finish().exited(0);
    assert_eq!(lab.read("out"), "fits\n");
}

#[test]
fn a_socket_gets_the_same_bytes() {
    let lab = Lab::new();
    random_files(&lab);
    let (ours, theirs) = socket_pair();
    let run = lab.run("-n 1 --retry-on stdout:/^never$/").stdout(theirs).sh("cat 1").start();
    let mut seen = Vec::new();
    File::from(ours).read_to_end(&mut seen).expect("the bytes");
    run.finish().exited(0);
    assert!(seen == std::fs::read(lab.path("1")).unwrap());
}

#[test]
fn a_pipe_that_makes_nobody_wait_gets_the_same_bytes() {
    let lab = Lab::new();
    random_files(&lab);
    let (read, write) = pipe();
    fcntl_setfl(&write, fcntl_getfl(&write).unwrap() | OFlags::NONBLOCK).unwrap();
    let copy = write.try_clone().unwrap();
    let run = lab.run("-n 1 --retry-on stdout:/^never$/").stdout(write).sh("cat 1").start();
    run.events.wait("attempt_started", 1);
    assert!(fcntl_getfl(&copy).unwrap().contains(OFlags::NONBLOCK), "the flag is the caller's");
    drop(copy);
    let mut seen = Vec::new();
    File::from(read).read_to_end(&mut seen).expect("the bytes");
    run.finish().exited(0);
    assert!(seen == std::fs::read(lab.path("1")).unwrap());
    // Nor does a watched pipe stop to make its writer wait, for whoever shares it.
    let (_read, write) = pipe();
    let copy = write.try_clone().unwrap();
    let script = "echo x; until [ -e $D/end ]; do sleep 0.02; done";
    let run = lab.run("-n 1 --retry-on stdout:/^never$/").stdout(write).sh(script).start();
    run.events.wait("attempt_started", 1);
    wait_until("it has written", || rustix::io::ioctl_fionread(&copy).is_ok_and(|waiting| waiting > 0));
    assert!(!fcntl_getfl(&copy).unwrap().contains(OFlags::NONBLOCK));
    lab.write("end", "");
    run.finish().exited(0);
}

#[test]
fn a_closed_descriptor_stays_closed() {
    let lab = Lab::new();
    for (closed, open) in [(&[1][..], "2\n"), (&[2], "1\n"), (&[1, 2], "")] {
        lab.write("open", "");
        let look = "exec 9>>$D/open; for i in 1 2; do [ -e /proc/$$/fd/$i ] && echo $i >&9; done; exit 7";
        let run = lab.run("-n 1").args(["--retry-on", BOTH]).closing(closed).sh(look).finish();
        run.exited(7);
        assert_eq!(lab.read("open"), open, "{closed:?}");
    }
}

#[test]
fn held_streams_are_looked_at_too() {
    let lab = Lab::new();
    let script = "echo $RETRYX_RUN_ATTEMPT busy; echo note >&2; [ $RETRYX_RUN_ATTEMPT = 3 ] && exit 0; exit 7";
    for (options, out) in [
        ("--stdout final --retry-on stdout:/busy/", "3 busy\n"),
        ("--stdout success --retry-on stderr:/^note$/", "3 busy\n"),
        ("--stdout success --retry-on output:/busy/", "3 busy\n"),
        ("--stderr final --retry-on stdout:/busy/", "1 busy\n2 busy\n3 busy\n"),
    ] {
        let run = lab.run("-q -n 5 --base-delay 0").words(options).sh(script).finish();
        run.exited(0).stopped(3, "success");
        assert_eq!(run.text(), out, "{options}");
        let notes = if options.contains("--stderr final") { 1 } else { 3 };
        assert_eq!(run.stderr, "note\n".repeat(notes), "{options}");
    }
    // With input that is kept for every attempt.
    let run = lab
        .run("-q -n 5 --base-delay 0 --stdin replay --stdout final --retry-on stderr:/note/")
        .input(b"input\n")
        .sh("cat; echo note >&2; [ $RETRYX_RUN_ATTEMPT = 3 ]")
        .finish();
    run.exited(0).stopped(3, "success");
    assert_eq!(run.text(), "input\n");
}

#[test]
fn input_that_is_kept_and_output_that_is_watched_do_not_wait_for_each_other() {
    let lab = Lab::new();
    random_files(&lab);
    let script = "retryx -n 2 --base-delay 0 -q --stdin replay --retry-on 'default,output:/^never$/' -- \
                  sh -c 'perl -ne \"print; print STDERR\"; exit $((RETRYX_RUN_ATTEMPT % 2))' 2>err | cat >out";
    lab.bash(&format!("cat 1 | {script}; cat 1 1 | cmp - out && cat 1 1 | cmp - err")).finish().exited(0);
}

#[test]
fn a_retry_says_that_standard_output_was_written_to_only_where_it_was() {
    let lab = Lab::new();
    let hint = |options: &[&str], script: &str| {
        let (_read, write) = pipe();
        let run = lab.run("-n 2 --base-delay 0").args(options).stdout(write).sh(script).finish();
        run.exited(1);
        let line = run.stderr.lines().find(|line| line.contains("retrying")).expect("a retry").to_owned();
        ["it had written to stdout", "it may have written to stdout"].map(|hint| line.contains(hint))
    };
    let stdout = ["--retry-on", "default,stdout:/x/"];
    let stderr = ["--retry-on", "default,stderr:/x/"];
    let both = ["--retry-on", "default,output:/x/"];
    for (options, script, expected) in [
        (&stdout, "echo out; exit 1", [true, false]),
        (&stdout, "exit 1", [false, false]),
        (&both, "echo err >&2; exit 1", [false, false]),
        (&both, "echo out; echo err >&2; exit 1", [true, false]),
        (&stderr, "exit 1", [false, false]),
        (&stderr, "seq 100000 >&2; exit 1", [false, false]),
        (&stderr, "echo out; exit 1", [true, false]),
    ] {
        assert_eq!(hint(options, script), expected, "{options:?} {script}");
    }
    // Where everything is read by somebody at once, so that nothing waits in the pipe.
    let retried = "retryx -n 2 --base-delay 0 --retry-on 'default,stderr:/x/' -- sh -c 'seq 100000 >&2; exit 1' | cat";
    let run = lab.shell(retried).finish();
    assert!(!run.stderr.contains("written to stdout"), "{}", &run.stderr[run.stderr.len() - 300..]);
}

#[test]
fn a_line_of_any_length_needs_no_memory() {
    if !has_programs(&["cmp", "perl"]) {
        skip!("cmp is not installed");
    }
    let lab = Lab::new();
    let (read, write) = pipe();
    let script = "$x = q(abcdefgh) x 131072; for (1..500) { syswrite STDOUT, $x } \
                  open F, q(>), qq($ENV{D}/written); close F; \
                  select undef, undef, undef, 0.01 until -e qq($ENV{D}/end); exit 7";
    let run = lab.run("-n 1").args(["--retry-on", "stdout:/^abc.*fgh$/"]).stdout(write).perl(script).start();
    let reader = std::thread::spawn(move || {
        let (mut source, mut buffer) = (File::from(read), vec![0; 1 << 20]);
        let (mut count, mut right) = (0u64, true);
        loop {
            let got = source.read(&mut buffer).expect("the bytes");
            if got == 0 {
                return (count, right);
            }
            let expected = b"abcdefgh".iter().cycle().skip(usize::try_from(count % 8).unwrap());
            right &= got < 64 || buffer[..64].iter().zip(expected).all(|(a, b)| a == b);
            count += got as u64;
        }
    });
    lab.await_file("written");
    assert!(most_memory(run.pid) < 64 * MIB, "{}", most_memory(run.pid));
    lab.write("end", "");
    let run = run.finish();
    // Its first 64 KiB are seen, and end in `fgh`.
    assert_eq!(verdict(run.exited(7)).0, "transient");
    assert_eq!(reader.join().expect("the reader"), (500 * MIB, true));
}

#[test]
fn a_flood_on_both_streams_needs_no_memory() {
    let lab = Lab::new();
    let flood = "perl -e '$x = qq(abcdefg\\n) x 8192; print $x for 1..400; print qq(last\\n)'";
    let script = format!("{flood} & {flood} >&2; wait; echo >$D/written; until [ -e $D/end ]; do sleep 0.02; done");
    let command =
        format!("exec retryx --retry-on output:/^never$/ -- sh -c '{}' >out 2>err", script.replace('\'', r"'\''"));
    let run = lab.shell(&command).start();
    lab.await_file("written");
    assert!(most_memory(run.pid) < 64 * MIB, "{}", most_memory(run.pid));
    lab.write("end", "");
    run.finish().exited(0);
    let expected = format!("{flood} >right; cmp out right && cmp err right");
    lab.tool("sh", &["-c", &expected]);
}

// A command that dies as its output cannot be passed on lost no reader.
#[test]
fn a_full_disk_is_no_reader_that_went_away() {
    let lab = Lab::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let run = lab.run("-n 1 --fail-on output:/x/").stdout(full).sh("head -c 3000000 /dev/zero").finish();
    run.exited(125).says(&["standard output cannot be written: no space left on device"]);
}
