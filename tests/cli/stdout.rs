//! Standard output and error: passed straight through, nothing added, nothing reordered,
//! and no retry for nobody.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::support::{Lab, socket_pair};

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

// B27
#[test]
fn standard_output_holds_the_commands_bytes_and_nothing_else() {
    let lab = Lab::new();
    let run = lab.run("").command(&["printf", "abc"]).finish();
    run.exited(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("abc", ""));
    for verbosity in ["", "-v", "-vv", "-q"] {
        let run = lab.run(&format!("-n 2 --base-delay 0 {verbosity}")).sh("printf d; exit 1").finish();
        run.exited(1).stopped(2, "attempts");
        assert_eq!(run.text(), "dd");
        assert!(run.stderr.lines().all(|line| line.starts_with("retryx: ")), "{}", run.stderr);
        assert_eq!(run.stderr.is_empty(), verbosity == "-q");
    }
}

#[test]
fn bytes_of_any_kind_and_number_pass_through() {
    let lab = Lab::new();
    lab.tool("sh", &["-c", "head -c 3000000 /dev/urandom >$D/random"]);
    let run = lab.run("").command(&["cat", "random"]).finish();
    run.exited(0);
    assert!(run.stdout == std::fs::read(lab.path("random")).unwrap());
    let run = lab.shell("retryx -- cat $D/random | sha256sum; sha256sum <$D/random").finish();
    let sums: Vec<String> = run.text().lines().map(str::to_owned).collect();
    assert_eq!(sums[0], sums[1]);
}

// B29
#[test]
fn the_order_of_output_and_error_is_kept() {
    let lab = Lab::new();
    let expected = "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n";
    for _ in 0..100 {
        let both = File::create(lab.path("both")).unwrap();
        let script = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
        let run = lab.run("").stdout(both.try_clone().unwrap()).stderr(both).sh(script).finish();
        run.exited(0);
        assert_eq!(lab.read("both"), expected);
    }
}

#[test]
fn the_command_writes_to_the_very_file_that_retryx_was_given() {
    let lab = Lab::new();
    let look = "exec 3>>$D/m; for i in 0 1 2; do l=$(readlink /proc/$$/fd/$i); echo \"$l\" >&3; done; exit 1";
    let streams = [pipe(), pipe(), pipe()];
    let [stdin, stdout, stderr] = streams.each_ref().map(|(_, write)| write.try_clone().unwrap());
    let inside = lab.run("-n 2 --base-delay 0").stdin(stdin).stdout(stdout).stderr(stderr).sh(look).start();
    let lines = lab.await_lines("m", 6);
    let expected = streams.each_ref().map(|(_, write)| {
        let number = std::os::fd::AsRawFd::as_raw_fd(write);
        std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap().to_string_lossy().into_owned()
    });
    assert_eq!(lines[..3], expected);
    assert_eq!(lines[3..], expected);
    inside.finish().exited(1);
}

#[test]
fn output_arrives_while_the_command_runs() {
    let lab = Lab::new();
    let (read, write) = pipe();
    let script = "printf partial; until [ -e $D/end ]; do sleep 0.02; done; exit 2";
    let run = lab.run("-n 1").stdout(write).sh(script).start();
    let mut bytes = [0; 7];
    File::from(read.try_clone().unwrap()).read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"partial");
    assert!(run.is_running());
    lab.write("end", "");
    run.finish().exited(2);
}

#[test]
fn losing_the_reader_ends_the_run_as_without_retryx() {
    let lab = Lab::new();
    let run = lab.bash("retryx -n 5 --base-delay 0 --events $D/e -- yes | head -1; echo ${PIPESTATUS[0]}").finish();
    assert_eq!(run.text(), "y\n141\n");
    assert_eq!(run.stderr, "", "no news, since it is the rule");
    let last = crate::support::Events::at(lab.path("e")).wait("stopped", 1);
    assert_eq!((&last["attempts"], &last["exit_status"]), (&1.into(), &141.into()));
    // Where PIPE is ignored the command sees an error instead.
    let (read, write) = pipe();
    let run = lab.run("-n 5 --base-delay 0").ignoring(&[Signal::PIPE]).stdout(write).command(&["yes"]).start();
    let mut line = String::new();
    BufReader::with_capacity(2, File::from(read)).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    run.finish().exited(1).stopped(1, "reader_gone").says(&["nobody reads"]);
}

#[test]
fn no_attempt_is_made_for_a_reader_that_is_gone() {
    let lab = Lab::new();
    for sockets in [false, true] {
        let ends = || if sockets { socket_pair() } else { pipe() };
        // Gone from the start, and gone during the delay.
        let (read, write) = ends();
        drop(read);
        lab.run("-n 5 --base-delay 0").stdout(write).sh("exit 7").finish().exited(7).stopped(1, "reader_gone");
        let (read, write) = ends();
        let run = lab.run("-n 5 --mode fixed --base-delay 2").stdout(write).sh("exit 7").start();
        run.events.wait("retry_scheduled", 1);
        drop(read);
        run.finish().exited(7).stopped(1, "reader_gone").says(&["nobody reads"]);
        // A command that needs no reader succeeds.
        let (read, write) = ends();
        drop(read);
        lab.run("-n 5").stdout(write).command(&["true"]).finish().exited(0).stopped(1, "success");
    }
}

#[test]
fn a_full_output_is_the_commands_affair() {
    let lab = Lab::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let run =
        lab.run("-n 2 --base-delay 0").stdout(full.try_clone().unwrap()).stderr(full).sh("echo x || exit 9").finish();
    run.exited(9).stopped(2, "attempts");
}

#[test]
fn a_retry_after_output_says_so_where_the_output_is_no_terminal() {
    let lab = Lab::new();
    let writes = "echo part; exit 1";
    let hint = "--stdout final";
    // A file: new, and appended to.
    let run = lab.run("-n 2 --base-delay 0").sh(writes).finish();
    assert!(run.messages()[0].contains(hint), "{}", run.stderr);
    assert!(!run.messages()[1].contains(hint), "{}", run.stderr);
    let appended = File::options().append(true).open(lab.write("appended", "before\n")).unwrap();
    lab.run("-n 2 --base-delay 0").stdout(appended).sh(writes).finish().says(&[hint]);
    // A file that grew: by itself, or by somebody else, which cannot be told apart.
    for (script, told) in
        [("echo part; exit 1", "it had written"), ("echo other >>$D/shared; exit 1", "it may have written")]
    {
        let shared = File::options().append(true).create(true).open(lab.path("shared")).unwrap();
        lab.run("-n 2 --base-delay 0").stdout(shared).sh(script).finish().says(&[told]);
    }
    // A pipe that keeps up, and one that nobody has read from yet.
    let run = lab.shell("retryx -n 2 --base-delay 0 -- sh -c 'echo part; exit 1' | cat").finish();
    run.exited(0).says(&[hint]);
    assert_eq!(run.text(), "part\npart\n");
    let (_read, write) = pipe();
    lab.run("-n 2 --base-delay 0").stdout(write).sh(writes).finish().says(&[hint]);
    // Only the attempt that wrote is blamed.
    let run = lab.run("-n 3 --base-delay 0").sh("[ $RETRYX_RUN_ATTEMPT = 2 ] && echo part; exit 1").finish();
    let blamed: Vec<bool> = run.messages().iter().map(|line| line.contains(hint)).collect();
    assert_eq!(blamed, [false, true, false]);
    // Nothing written, nothing said; nor when quiet.
    for script in ["exit 1", "echo x >&2; exit 1"] {
        assert!(!lab.run("-n 2 --base-delay 0").sh(script).finish().stderr.contains(hint));
        let (_read, write) = pipe();
        let run = lab.run("-n 2 --base-delay 0").stdout(write).sh(script).finish();
        // What went to standard error cannot be told apart behind a pipe.
        assert!(!run.stderr.contains("had written"), "{}", run.stderr);
        assert_eq!(run.stderr.contains("may have written"), script != "exit 1", "{}", run.stderr);
    }
    assert_eq!(lab.run("-q -n 2 --base-delay 0").sh(writes).finish().stderr, "");
    let null = File::options().write(true).open("/dev/null").unwrap();
    assert!(!lab.run("-n 2 --base-delay 0").stdout(null).sh(writes).finish().stderr.contains(hint));
}
