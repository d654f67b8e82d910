//! A stream is read only where something needs it; else the command has the caller's own.

use rustix::fs::fstat;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::support::{Lab, wait_until};

use super::BOTH;

/// Notes what the command's standard output and error are.
const LOOK: &str = "for (1, 2) { push @l, readlink qq(/proc/self/fd/$_) } \
                    open F, q(>), qq($ENV{D}/links); print F join(qq(\\n), @l, q()); close F; exit 7";

#[test]
fn a_stream_that_nobody_asked_about_is_the_callers_own() {
    let lab = Lab::new();
    for (options, read) in [
        (&[][..], [false, false]),
        (&["--retry-on", "7"], [false, false]),
        (&["--retry-on", "7", "--preset", "none", "--watch"], [false, false]),
        (&["--retry-on", "stderr:/x/"], [false, true]),
        (&["--fail-on", "stdout:/x/"], [true, false]),
        (&["--succeed-on", "output:/x/"], [true, true]),
        (&["--throttle-on", BOTH], [true, true]),
        (&["--retry-after-match", "stderr:/(x)/"], [false, true]),
        (&["--retry-after-match", "stdout:/(x)/"], [true, false]),
        (&["--stdout", "final"], [true, false]),
        (&["--stderr", "success"], [false, true]),
        (&["--idle-timeout", "1h"], [true, true]),
        (&["--timeout", "1h", "--total-timeout", "1h"], [false, false]),
        (&["--preset", "curl"], [false, true]),
        (&["--preset", "aws"], [false, true]),
    ] {
        let pipes = [(); 2].map(|()| pipe_with(PipeFlags::CLOEXEC).expect("a pipe"));
        let names = pipes.each_ref().map(|(_, write)| format!("pipe:[{}]", fstat(write).expect("a pipe").st_ino));
        let [(_out, out), (_err, err)] = pipes;
        lab.run("-n 1").args(options).stdout(out).stderr(err).perl(LOOK).finish().exited(7);
        let links = lab.lines("links");
        for (index, name) in names.iter().enumerate() {
            assert_eq!(links[index] == *name, !read[index], "{options:?}: {links:?}");
            assert!(links[index].starts_with("pipe:"), "{options:?}: {links:?}");
        }
    }
}

#[test]
fn the_name_of_a_program_brings_its_preset() {
    let lab = Lab::new();
    lab.executable("bin/curl", &format!("#!/usr/bin/perl\n{}", LOOK.replace("\\n", "\n")));
    for (options, read) in [("", true), ("--preset auto", true), ("--preset none", false)] {
        let (_err, err) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let name = format!("pipe:[{}]", fstat(&err).expect("a pipe").st_ino);
        lab.run("-n 1").words(options).stderr(err).command(&["curl", "x"]).finish().exited(7);
        assert_eq!(lab.lines("links")[1] != name, read, "{options}");
    }
}

#[test]
fn a_background_process_that_holds_the_stream_holds_nobody_up() {
    let lab = Lab::new();
    let background = "trap '' PIPE; echo early; echo >$D/up; until [ -e $D/go ]; do sleep 0.01; done; echo late; echo late >&2; echo >$D/late";
    lab.write("background", background);
    let script = "echo now; sh background & until [ -e $D/up ]; do sleep 0.01; done; exit 7";
    // Held back, or read from a pipe.
    let run = lab.run("-n 1 --stderr final").args(["--stdout", "final"]).sh(script).leashed().finish();
    run.exited(7).stopped(1, "attempts");
    assert_eq!(run.text(), "now\nearly\n");
    assert!(run.left_somebody(), "the background process was ended");
    lab.write("go", "");
    lab.await_file("late");
    run.await_alone();
    let written = std::fs::read_dir(lab.path("")).unwrap().flatten().filter(|entry| {
        entry.file_name().to_string_lossy().starts_with("run-")
            && std::fs::read(entry.path()).unwrap().windows(4).any(|bytes| bytes == b"late")
    });
    assert_eq!(written.count(), 0, "what came late went somewhere");
}

#[test]
fn a_background_process_that_never_stops_writing_holds_nobody_up() {
    let lab = Lab::new();
    // To a reader who reads slowly, so that there is always something left.
    let script = "yes & echo $! >$D/yes; sleep 0.3; exit 7";
    for sink in ["cat >/dev/null", "perl -e 'while (sysread STDIN, $x, 65536) { select undef, undef, undef, 0.05 }'"] {
        let run = lab
            .bash(&format!(
                "retryx -n 1 --retry-on 'stdout:/^y$/' -- sh -c '{script}' | {sink}; exit ${{PIPESTATUS[0]}}"
            ))
            .finish();
        run.exited(7);
        wait_until("the flood has met its end", || !crate::support::proc::is_alive(lab.await_number("yes")));
    }
    let run = lab
        .shell(&format!("retryx -n 3 --base-delay 0 --retry-on 'default,stdout:/x/' -- sh -c '{script}' >/dev/null"))
        .finish();
    run.exited(7).says(&["giving up after 3 attempts"]);
}

#[test]
fn no_descriptor_is_left_over_in_the_command_or_from_attempt_to_attempt() {
    let lab = Lab::new();
    let script = "echo $(ls /proc/self/fd) >>$D/own; ls /proc/$PPID/fd | wc -l >>$D/retryx; exit 7";
    for options in
        ["--retry-on output:/x/,7", "--idle-timeout 600 --stdout final", "--stdin replay --retry-on output:/x/,7"]
    {
        let run = lab.run("-q -n 40 --no-quota --base-delay 0").words(options).input(b"x").sh(script).finish();
        run.exited(7).stopped(40, "attempts");
        let own = lab.lines("own");
        // The last is the folder that `ls` reads, one is the file that the shell appends to.
        assert!(own.iter().all(|line| line == "0 1 2 3"), "{options}: {own:?}");
        let counts: Vec<u32> = lab.lines("retryx").iter().map(|count| count.parse().expect("a number")).collect();
        // The command may look before retryx has closed its own copies of what it was given.
        assert!(counts.iter().all(|count| *count <= counts.iter().min().unwrap() + 3), "{options}: {counts:?}");
        lab.tool("rm", &["own", "retryx"]);
    }
}

#[test]
fn a_stream_that_cannot_be_written_fails_as_without_retryx() {
    let lab = Lab::new();
    let run = lab.shell("retryx -n 1 --fail-on output:/z/ -- sh -c 'echo hi' 1</dev/null").finish();
    assert_ne!(run.status.code(), Some(0));
}

// Many share one file, each by its own opening or by the same: nobody is judged by another's.
#[test]
fn what_others_write_to_the_same_file_is_not_the_commands() {
    let lab = Lab::new();
    for redirection in [">", ">>"] {
        let script = format!(
            "exec {redirection}log 2>&1; (until [ -e up ]; do sleep 0.01; done; echo fatal; echo >go) & \
             retryx -n 1 --events e --fail-on output:/fatal/ -- \
             sh -c 'echo >up; until [ -e go ]; do sleep 0.01; done; exit 3'"
        );
        lab.shell(&script).finish().exited(3);
        let ended = crate::support::Events::at(lab.path("e")).wait("attempt_finished", 1);
        assert_eq!(ended["rule"], "default:exit", "{redirection}");
        for left in ["up", "go", "e"] {
            std::fs::remove_file(lab.path(left)).expect("a file");
        }
    }
}
