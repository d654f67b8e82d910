//! Starting the command: where it is found, what it means when it cannot be started, and
//! the exit status in the end.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Finished, Lab, bytes, is_root, skip};

/// Asserts that the command was never started, and what that was taken for.
#[track_caller]
fn never_started(run: &Finished, code: i32, attempts: u64, words: &[&str]) {
    run.exited(code).says(words);
    assert_eq!(run.last()["attempts"], attempts);
    for event in run.of("attempt_finished") {
        assert_eq!(event["outcome"], "not_started");
        assert!(event["exit_code"].is_null());
        assert!(event["error"].as_str().is_some_and(|error| error.contains("errno")), "{event}");
    }
}

// B55, B110
#[test]
fn what_is_not_there_or_cannot_be_run_is_permanent() {
    let lab = Lab::new();
    lab.write("not-executable", "#!/bin/sh\n");
    lab.executable("no-interpreter", "#!/no/such/interpreter\n");
    std::fs::create_dir(lab.path("folder")).unwrap();
    std::fs::create_dir(lab.path("bin/shadow")).unwrap();
    lab.write("bin/plain", "#!/bin/sh\n");
    for (name, code, words) in [
        ("./no-such", 127, "not found"),
        ("no-such-program-here", 127, "not found"),
        ("/no/such/folder/x", 127, "not found"),
        ("./not-executable/x", 127, "not found"),
        ("", 127, "not found"),
        ("ls /no-such", 127, "quotes"),
        ("./not-executable", 126, "permission denied"),
        ("plain", 126, "permission denied"),
        ("./folder", 126, "permission denied"),
        ("shadow", 127, "not found"),
        ("./no-interpreter", 126, "interpreter"),
    ] {
        let run = lab.run("-n 5 --base-delay 0").command(&[name]).finish();
        never_started(&run, code, 1, &["cannot be started", words]);
        assert_eq!(run.last()["reason"], "permanent", "{name}");
        assert_eq!(run.messages().len(), 1, "{}", run.stderr);
        // Said even when quiet: it is what retryx itself could not do.
        let run = lab.run("-q").command(&[name]).finish();
        never_started(&run, code, 1, &[words]);
    }
}

// B55, third part.
#[test]
fn a_childs_own_126_and_127_are_exits_and_permanent() {
    let lab = Lab::new();
    for code in [126, 127] {
        let run = lab.run("-n 3 --base-delay 0").sh(&format!("exit {code}")).finish();
        run.exited(code).stopped(1, "permanent");
        let event = &run.of("attempt_finished")[0];
        assert_eq!((&event["outcome"], &event["exit_code"]), (&"exited".into(), &code.into()));
        assert!(event["error"].is_null());
    }
}

#[test]
fn a_name_is_searched_as_a_shell_does_it() {
    let lab = Lab::new();
    for folder in ["one", "two", "three", "shut"] {
        std::fs::create_dir(lab.path(folder)).unwrap();
    }
    std::fs::create_dir(lab.path("one/tool")).unwrap();
    lab.write("two/tool", "#!/bin/sh\necho never\n");
    lab.executable("three/tool", "#!/bin/sh\necho three\n");
    lab.executable("here", "#!/bin/sh\necho here\n");
    std::fs::set_permissions(lab.path("shut"), std::fs::Permissions::from_mode(0o0)).unwrap();
    let d = lab.path("");
    let d = d.to_str().unwrap().trim_end_matches('/');
    for (path, name) in [
        (format!("{d}/one:{d}/two:{d}/three"), "tool"),
        (format!("{d}/one:{d}/two"), "tool"),
        (format!("{d}/one"), "tool"),
        (format!("{d}/missing:{d}/three"), "tool"),
        (format!("{d}/shut:{d}/three"), "tool"),
        (format!("{d}/shut:{d}/missing"), "tool"),
        (format!("{d}/here:{d}/three"), "tool"),
        (format!(":{d}/three"), "here"),
        (format!("{d}/three:"), "here"),
        (format!("{d}/one::{d}/three"), "here"),
        (String::new(), "here"),
        (format!("{d}/three"), "here"),
        (format!("{d}/three"), "./here"),
        (format!("{d}/three"), "three/tool"),
    ] {
        // The binary is called by its own path, so that the search is the command's alone.
        let run = lab.run("").env("PATH", &path).arg(name).finish();
        let shells = ["/bin/sh", "/bin/bash"].map(|shell| {
            let shell = lab.program(shell).args(["-c", "exec \"$0\"", name]).env("PATH", &path).finish();
            (shell.status.code(), shell.text())
        });
        // Shells differ where a folder or a file that cannot be executed has the name.
        assert!(shells.contains(&(run.status.code(), run.text())), "{path}: {name}: {:?} {shells:?}", run.status);
    }
}

#[test]
fn without_a_path_the_systems_folders_are_searched() {
    let lab = Lab::new();
    let run = lab.run("").no_env("PATH").command(&["true"]).finish();
    run.exited(0).stopped(1, "success");
    never_started(&lab.run("").no_env("PATH").command(&["no-such-program-here"]).finish(), 127, 1, &["not found"]);
}

#[test]
fn a_folder_in_the_path_that_may_not_be_read_is_passed_over() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("shut")).unwrap();
    lab.executable("shut/tool", "#!/bin/sh\n");
    std::fs::set_permissions(lab.path("shut"), std::fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["", "tmp"] {
        std::fs::set_permissions(lab.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = "PATH=$D/shut:/usr/bin:/bin; \"$R\" -n 3 -- no-such; echo $?; \"$R\" -n 3 -- tool; echo $?; \"$R\" -n 3 -- true; echo $?";
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c"];
    if !lab.program("setpriv").args(other).arg("exec \"$R\" --version").finish().status.success() {
        skip!("the binary cannot be run by another user");
    }
    let run = lab.program("setpriv").args(other).arg(script).finish();
    assert_eq!(run.text(), "127\n127\n0\n", "{}", run.stderr);
}

#[test]
fn a_script_without_a_first_line_is_run_by_sh() {
    let lab = Lab::new();
    lab.executable("script", "echo \"$0 $# $1 $2\"; exit 3\n");
    let run = lab.run("-n 1").command(&["./script", "a b", "c"]).finish();
    run.exited(3).stopped(1, "attempts");
    assert_eq!(run.text(), "./script 2 a b c\n");
    lab.executable("bin/found", "echo found; exit 4\n");
    let run = lab.run("-n 1").command(&["found"]).finish();
    run.exited(4);
    assert_eq!(run.text(), "found\n");
}

// B18
#[test]
fn text_file_busy_passes_by_itself() {
    let lab = Lab::new();
    let script = lab.executable("s.sh", "#!/bin/sh\necho ran\n");
    // Another process holds it open for writing until retryx has tried it twice.
    let run = lab.run("-n 10 --mode fixed --base-delay 200ms").arg(&script);
    let holder = lab.bash("exec 3>>$D/s.sh; echo >$D/held; until [ -e $D/release ]; do sleep 0.01; done").start();
    lab.await_file("held");
    let run = run.start();
    run.events.wait("retry_scheduled", 2);
    lab.write("release", "");
    holder.finish().exited(0);
    let run = run.finish();
    run.exited(0).says(&["text file busy"]);
    assert_eq!(run.text(), "ran\n");
    let finished = run.of("attempt_finished");
    assert!(finished.len() >= 3);
    for event in &finished[..finished.len() - 1] {
        assert_eq!((&event["outcome"], &event["class"]), (&"not_started".into(), &"transient".into()));
        assert!(event["error"].as_str().unwrap().contains(&format!("errno {}", libc::ETXTBSY)));
    }
}

#[test]
fn a_moment_without_processes_passes_by_itself() {
    if !is_root() {
        skip!("only root can become a user of its own");
    }
    let lab = Lab::new();
    std::fs::set_permissions(lab.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    // A user that nobody else is; the limit counts all processes of a user.
    let user = (100_000 + std::process::id() % 1_000_000).to_string();
    let other = ["--reuid", &user, "--regid", &user, "--clear-groups", "sh", "-c"];
    if !lab.program("setpriv").args(other).arg("exec \"$R\" --version").finish().status.success() {
        skip!("the binary cannot be run by another user");
    }
    let script = "exec prlimit --nproc=1 \"$R\" -n 3 --base-delay 0 -- true";
    let run = lab.program("setpriv").args(other).arg(script).finish();
    run.exited(126).says(&["giving up after 3 attempts", "temporarily unavailable"]);
}

// B52
#[test]
fn the_commands_own_code_is_retryxs() {
    let lab = Lab::new();
    for code in 1..=255 {
        let run = lab.run("-n 2 --base-delay 0").sh(&format!("exit {code}")).finish();
        let attempts = if matches!(code, 126 | 127 | 130 | 141) { 1 } else { 2 };
        run.exited(code);
        assert_eq!((&run.last()["attempts"], &run.last()["exit_status"]), (&attempts.into(), &code.into()));
    }
    let run = lab.run("-n 3 --base-delay 0").sh("echo x >>$D/m; exit 42").finish();
    run.exited(42).stopped(3, "attempts");
    assert_eq!(lab.lines("m").len(), 3);
}

// B69
#[test]
fn a_count_never_becomes_an_exit_status() {
    let lab = Lab::new();
    for attempts in [256, 512] {
        let run = lab.run(&format!("-q -n {attempts} --base-delay 0")).command(&["false"]).finish();
        run.exited(1).stopped(attempts, "attempts");
    }
}

// B54
#[test]
fn success_on_the_last_attempt_is_success() {
    let lab = Lab::new();
    let script = "echo x >>$D/m; [ $(wc -l <$D/m) = 3 ]";
    let run = lab.run("-n 3 --base-delay 0").sh(script).finish();
    run.exited(0).stopped(3, "success");
    assert!(!run.stderr.contains("giving up"), "{}", run.stderr);
    assert_eq!(run.of("attempt_finished")[2]["class"], "success");
}

#[test]
fn one_number_for_every_failure_where_it_is_asked_for() {
    let lab = Lab::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 77), ("exit 127", 77), ("kill -9 $$", 77), ("sleep 300", 77)] {
        let run = lab.run("-n 1 --timeout 1 --exit-code-on-failure 77").leashed().sh(script).finish();
        run.exited(code).alone();
    }
    lab.run("--exit-code-on-failure 77").command(&["./no-such"]).finish().exited(77);
    // A run that a signal ended still dies of it.
    let run = lab.run("-n 9 --mode fixed --base-delay 1000 --exit-code-on-failure 77").command(&["false"]).start();
    run.events.wait("retry_scheduled", 1);
    run.signal(rustix::process::Signal::TERM);
    run.finish().died_of(rustix::process::Signal::TERM);
}

#[test]
fn a_program_with_a_name_that_is_no_utf8_is_run_and_told_of() {
    let lab = Lab::new();
    let name = bytes(b"pro\xffgram");
    let path = lab.executable("program", "#!/bin/sh\nexit 5\n");
    let odd = path.with_file_name(&name);
    std::fs::rename(path, &odd).unwrap();
    let run = lab.run("-n 2 --base-delay 0").arg(&odd).finish();
    run.exited(5).stopped(2, "attempts");
    let run = lab.run("-vv").arg(bytes(b"no-\xff-such")).finish();
    never_started(&run, 127, 1, &["not found"]);
}

#[test]
fn a_name_too_long_or_a_loop_of_links_is_no_panic() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("loop", lab.path("loop")).unwrap();
    for name in ["./loop", &"x".repeat(300), &"x/".repeat(3000)] {
        let run = lab.run("-n 3 --base-delay 0").command(&[name]).finish();
        assert!(matches!(run.status.code(), Some(126 | 127)), "{:?}: {}", run.status, run.stderr);
        assert_eq!(run.last()["attempts"], 1);
    }
}
