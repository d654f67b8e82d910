//! Scopes in files: many processes and one budget.

mod faults;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Finished, Lab, Running, pause, proc, wait_until};

/// The scope `q` in the folder `s`, with ten tokens, five a retry, and no refill.
const SCOPE: &str = "--scope q --state-dir s --quota-capacity 10 --quota-cost 5 --quota-refill 0 --base-delay 0";

/// The record that counts in a scope's file.
#[track_caller]
fn record(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a scope's file");
    assert_eq!(text.len(), 2048, "{text}");
    let records = text.lines().filter_map(|line| serde_json::from_str(line.trim_end()).ok());
    records.max_by_key(|record: &Value| record["sequence"].as_u64()).expect("a record")
}

/// The tokens in the scope `q`.
#[track_caller]
fn tokens(lab: &Lab) -> u64 {
    record(&lab.path("s/q.scope"))["tokens"].as_u64().expect("a number of tokens")
}

/// Runs a command that fails, with the scope `q`.
fn fail(lab: &Lab, options: &str) -> Finished {
    lab.run(SCOPE).words(options).command(&["false"]).finish()
}

/// Whether a process has that file open.
fn has_open(process: &Running, path: &Path) -> bool {
    let entries = fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|open| open == path)
}

/// The names in the folder of the scopes.
fn names(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.path("s")).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

// B97
#[test]
fn the_next_process_finds_what_the_last_one_left() {
    let lab = Lab::new();
    fail(&lab, "-n 50").exited(1).stopped(3, "quota").says(&["quota"]);
    fail(&lab, "-n 50").exited(1).stopped(1, "quota").says(&["quota"]);
    fail(&lab, "-n 50 --scope other").exited(1).stopped(3, "quota").says(&["quota"]);
    assert_eq!(names(&lab), ["other.scope", "q.scope"]);
}

// B96
#[test]
fn successes_bring_the_quota_back() {
    let lab = Lab::new();
    fail(&lab, "-n 3").exited(1).stopped(3, "attempts");
    assert_eq!(tokens(&lab), 0);
    for left in 1..=5 {
        lab.run(SCOPE).command(&["true"]).finish().exited(0);
        assert_eq!(tokens(&lab), left);
    }
    let run = lab.run(SCOPE).sh("[ $RETRYX_RUN_ATTEMPT = 2 ]").finish();
    run.exited(0).stopped(2, "success");
    assert_eq!(run.each("retry_scheduled", "quota_left"), [0]);
    assert_eq!(tokens(&lab), 5);
}

// B106
#[test]
fn a_job_that_always_fails_does_not_hammer_on_every_tick() {
    let lab = Lab::new();
    let options = "--quota-refill 0.0166 -n 3";
    fail(&lab, options).exited(1).stopped(3, "attempts");
    for _ in 0..9 {
        let run = fail(&lab, options);
        run.exited(1).stopped(1, "quota");
        assert_eq!(run.messages().len(), 1, "{}", run.stderr);
    }
}

// B37
#[test]
fn a_retry_inside_a_retry_draws_on_the_same_scope() {
    let lab = Lab::new();
    let options = "--scope q --state-dir $D/s --quota-capacity 4 --quota-cost 1 --quota-refill 0 --base-delay 0";
    let script = format!(
        "exec retryx {options} -n 3 --events $D/outer -- \
         retryx {options} -n 9 --events $D/inner -- sh -c 'echo x >>$D/m; exit 1'"
    );
    lab.shell(&script).finish().exited(1);
    assert_eq!(lab.lines("m").len(), 5);
    for events in ["outer", "inner"] {
        assert_eq!(lab.lines(events).last().map(|line| line.contains("\"reason\":\"quota\"")), Some(true));
    }
}

// B100
#[test]
fn a_holder_of_the_lock_that_is_stopped_holds_nobody_up_and_killed_it_is_free() {
    let lab = Lab::new();
    fail(&lab, "-n 1");
    let script = "use Fcntl ':flock'; open F, '+<', 's/q.scope'; flock F, LOCK_EX; kill 'STOP', $$; sleep 1 while 1";
    let holder = lab.program("perl").args(["-e", script]).start();
    wait_until("the holder is stopped", || proc::is_stopped(holder.pid));
    let run = fail(&lab, "-n 3");
    run.exited(1)
        .stopped(3, "attempts")
        .says(&["scope 'q' is not shared", "s/q.scope has been locked by another process"]);
    assert_eq!(tokens(&lab), 10);
    // A signal that ends the run does not wait for it, and nothing is said of it; unless it
    // comes late, as the machine is busy.
    let is_silent = |_| {
        let run = lab.run("--scope q --state-dir s --base-delay 100").command(&["false"]).start();
        run.events.wait("attempt_finished", 1);
        run.signal(Signal::TERM);
        let run = run.finish();
        run.died_of(Signal::TERM).stopped(1, "interrupted");
        !run.stderr.contains("shared")
    };
    assert!((0..20).any(is_silent), "the lock is waited for");
    // Who only looks does not wait; who mends waits longer.
    lab.bare("quota show q --state-dir s").finish().exited(0);
    let reset = lab.bare("quota reset q --state-dir s").start();
    wait_until("it waits for the lock", || proc::holds_open(reset.pid, "q.scope"));
    // Longer than a run would.
    pause(Duration::from_millis(300));
    holder.signal(Signal::KILL);
    holder.finish().died_of(Signal::KILL);
    reset.finish().exited(0);
    fail(&lab, "-n 2").exited(1);
    assert_eq!(tokens(&lab), 5);
}

// B100
#[test]
fn a_file_that_is_replaced_while_its_lock_is_waited_for_is_opened_anew() {
    let lab = Lab::new();
    fail(&lab, "-n 1");
    let path = lab.path("s/q.scope").canonicalize().expect("a path");
    let old = lab.read("s/q.scope");
    // The lock is given up for after a while, and a slow machine may need longer here.
    for _ in 0..50 {
        let file = File::options().read(true).write(true).open(&path).expect("the file");
        flock(&file, FlockOperation::LockExclusive).expect("the lock");
        let run = lab.run(SCOPE).words("-n 2").command(&["false"]).start();
        wait_until("the run waits", || has_open(&run, &path) || !run.is_running());
        lab.write("new", old.replace("\"tokens\":10", "\"tokens\": 7"));
        fs::rename(lab.path("new"), &path).expect("a file");
        flock(&file, FlockOperation::Unlock).expect("the lock");
        let run = run.finish();
        run.exited(1);
        let mut left = String::new();
        std::io::Read::read_to_string(&mut &file, &mut left).expect("the old file");
        assert_eq!(left, old);
        if !run.stderr.contains("not shared") {
            assert_eq!(tokens(&lab), 2);
            return;
        }
        lab.write("s/q.scope", &old);
    }
    panic!("never in time");
}

// B100
#[test]
fn sixty_four_at_once_make_one_file_and_lose_nothing() {
    let lab = Lab::new();
    let options = "--scope q --state-dir s --quota-capacity 100000 --quota-cost 7 --quota-refill 0 --base-delay 0 -n 3";
    let runs: Vec<_> = (0..64).map(|_| lab.run(options).command(&["false"]).start()).collect();
    let (mut sure, mut most) = (0, 0);
    let mut await_all = |runs: Vec<Running>| {
        for run in runs {
            let (least, all) = shared_retries(run.finish().exited(1));
            (sure, most) = (sure + least, most + all);
        }
        let paid = 100_000 - tokens(&lab);
        assert!(paid.is_multiple_of(7) && (sure..=most).contains(&(paid / 7)), "{paid}: {sure} to {most}");
    };
    await_all(runs);
    let inode = fs::metadata(lab.path("s/q.scope")).expect("a file").ino();
    await_all((0..20).map(|_| lab.run(options).command(&["false"]).start()).collect());
    // It was neither unlinked nor renamed, and nothing was left beside it.
    assert_eq!(fs::metadata(lab.path("s/q.scope")).expect("a file").ino(), inode);
    assert_eq!(names(&lab), ["q.scope"]);
}

/// How many retries a run says it paid from the scope for sure, and at most: where a machine is
/// so loaded that the lock is given up for, those after that are its own for a while.
fn shared_retries(run: &Finished) -> (u64, u64) {
    let retries = |text: &str| text.lines().filter(|line| line.contains("; retrying ")).count() as u64;
    let sure = run.stderr.split("is not shared").next().unwrap_or_default();
    (retries(sure), retries(&run.stderr))
}

#[test]
fn with_random_kills_the_tokens_of_the_survivors_add_up() {
    const CAPACITY: u64 = 4_000_000_000;
    /// What a survivor pays; all the killed together pay less.
    const COST: u64 = 5_000_000;
    let lab = Lab::new();
    let options = |cost, attempts: &str| {
        format!(
            "--scope q --state-dir s --quota-capacity {CAPACITY} --quota-refill 0 --quota-cost {cost} \
             -n {attempts} --mode fixed --base-delay 1ms"
        )
    };
    let start = |cost, attempts: &str| lab.run(&options(cost, attempts)).command(&["false"]).start();
    let (mut doomed, mut killed, mut survivors) = (Vec::new(), Vec::new(), Vec::new());
    let mut seed = 12_345_u32;
    for number in 1..=108 {
        if number <= 100 {
            doomed.push(start(1, "unlimited"));
            survivors.push(start(COST, "8"));
        }
        if number > 8 {
            // Linear congruence (Numerical Recipes): which one, and after how long.
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            pause(Duration::from_micros(u64::from(seed >> 16) % 3000));
            let run = doomed.swap_remove(seed as usize % doomed.len());
            run.signal(Signal::KILL);
            killed.push(run);
        }
    }
    let (mut sure, mut most) = (0, 0);
    for run in survivors {
        let run = run.finish();
        run.exited(1).stopped(8, "attempts");
        let (least, all) = shared_retries(&run);
        (sure, most) = (sure + least, most + all);
    }
    let (mut sure_of_killed, mut most_of_killed) = (0, 0);
    for run in killed {
        let run = run.finish();
        run.died_of(Signal::KILL);
        let (least, all) = shared_retries(&run);
        // It may have paid, and died before it could say so.
        (sure_of_killed, most_of_killed) = (sure_of_killed + least, most_of_killed + all + 1);
    }
    assert!(sure > 0 && sure_of_killed > 0, "nothing was paid");
    let paid = CAPACITY - tokens(&lab);
    assert!((sure..=most).contains(&(paid / COST)), "{paid}: {sure} to {most}");
    assert!((sure_of_killed..=most_of_killed).contains(&(paid % COST)), "{paid}: {sure_of_killed} to {most_of_killed}");
    assert_eq!(names(&lab), ["q.scope"]);
    assert_eq!(lab.run(SCOPE).command(&["true"]).finish().exited(0).stderr, "");
}

// B130
#[test]
fn files_and_folders_are_for_this_user_only_whatever_the_umask() {
    for umask in ["000", "077", "022"] {
        let lab = Lab::new();
        let script = format!("umask {umask}; retryx --scope q --state-dir a/b/c -- true; retryx --scope h -- true");
        assert_eq!(lab.shell(&script).finish().exited(0).stderr, "");
        let mode = |path: &str| fs::metadata(lab.path(path)).expect("a path").permissions().mode() & 0o7777;
        for folder in ["a", "a/b", "a/b/c", "home/.local", "home/.local/state", "home/.local/state/retryx"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        for file in ["a/b/c/q.scope", "home/.local/state/retryx/h.scope"] {
            assert_eq!(mode(file), 0o600, "{file}");
        }
    }
    // A folder that was there stays as it was.
    let lab = Lab::new();
    fs::create_dir(lab.path("s")).expect("a folder");
    fs::set_permissions(lab.path("s"), Permissions::from_mode(0o2755)).expect("a folder");
    fail(&lab, "-n 1").exited(1);
    assert_eq!(fs::metadata(lab.path("s")).expect("a folder").permissions().mode() & 0o7777, 0o2755);
}

// B130
#[test]
fn killed_in_mid_run_it_leaves_the_scope_s_file_only_and_the_command_never_saw_it() {
    let lab = Lab::new();
    let script = "ls -l /proc/self/fd >>fds; [ $RETRYX_RUN_ATTEMPT = 2 ] || exit 1; echo >ready; exec sleep 300";
    let run = lab.run(SCOPE).sh(script).start();
    lab.await_file("ready");
    // Nobody has to wait for it meanwhile.
    let file = File::open(lab.path("s/q.scope")).expect("the file");
    assert_eq!(flock(&file, FlockOperation::NonBlockingLockExclusive), Ok(()));
    assert!(!has_open(&run, &lab.path("s/q.scope").canonicalize().expect("a path")));
    run.signal(Signal::KILL);
    run.finish().died_of(Signal::KILL);
    assert_eq!((names(&lab), tokens(&lab)), (vec!["q.scope".to_owned()], 5));
    let seen = lab.read("fds");
    assert!(seen.contains("/dev/null") && !seen.contains("scope") && !seen.contains("/s\n"), "{seen}");
}

// B126
#[test]
fn without_a_home_a_scope_is_not_shared_and_the_job_runs() {
    let lab = Lab::new();
    let run = |options: &str| lab.bare(options).empty_env().command(&["true"]).finish();
    assert_eq!(run("").exited(0).stderr, "");
    let bare = run("--scope q");
    bare.exited(0).says(&[
        "scope 'q' is not shared: XDG_STATE_HOME is not set to an absolute path, and HOME to no folder; give --state-dir DIR",
    ]);
    assert_eq!(bare.messages().len(), 1);
    // A home that is not there is nobody's to make; a state folder is.
    let nowhere = lab.path("nowhere");
    let run = lab.bare("--scope q").env("HOME", &nowhere).command(&["true"]).finish();
    run.exited(0).says(&["scope 'q' is not shared: ", "give --state-dir DIR"]);
    assert_eq!(run.messages().len(), 1);
    lab.bare("quota set q --tokens 1").env("HOME", &nowhere).finish().exited(125).says(&["--state-dir"]);
    assert!(!nowhere.exists());
    let run = lab.bare("--scope q").env("XDG_STATE_HOME", nowhere.join("state")).command(&["true"]).finish();
    assert_eq!(run.exited(0).stderr, "");
    std::fs::remove_dir_all(&nowhere).unwrap();
    // A folder that is gone, and one that is named from there.
    let script = "mkdir gone2 && cd gone2 && rmdir ../gone2 && exec $R --scope q --state-dir s -- sh -c 'exit 3'";
    lab.shell(script).finish().exited(3).says(&["scope 'q' is not shared", "s cannot be made: no such file"]);
    // What is no absolute path does not count (XDG Base Directory Specification).
    let run = lab.bare("--scope q").env("XDG_STATE_HOME", "relative").command(&["true"]).finish();
    assert_eq!(run.exited(0).stderr, "");
    assert!(lab.path("home/.local/state/retryx/q.scope").exists());
    let run = lab.bare("--scope q").env("XDG_STATE_HOME", lab.path("x")).command(&["true"]).finish();
    assert_eq!(run.exited(0).stderr, "");
    assert!(lab.path("x/retryx/q.scope").exists());
}

#[test]
fn names_of_scopes_reach_no_other_folder() {
    let lab = Lab::new();
    for name in ["../x", "/x", "..", ".", "a/../../b", "é ü"] {
        lab.bare("--state-dir s --scope").arg(name).command(&["true"]).finish().exited(0);
    }
    let made =
        ["%2E.%2Fx.scope", "%2E..scope", "%2E.scope", "%2Fx.scope", "%C3%A9%20%C3%BC.scope", "a%2F..%2F..%2Fb.scope"];
    assert_eq!(names(&lab), made);
    let beside = fs::read_dir(lab.path("")).expect("a folder").flatten();
    let beside = beside.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own = |name: &String| ["home", "tmp", "bin", "s"].contains(&name.as_str()) || name.starts_with("run-");
    assert_eq!(beside.filter(|name| !own(name)).collect::<Vec<_>>(), Vec::<String>::new());
}
