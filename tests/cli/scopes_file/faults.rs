//! What can be wrong with a scope's file, its folder, and its file system.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use super::{SCOPE, fail, names, record, shared_retries, tokens};
use crate::support::{Finished, Lab, Running, has_programs, is_root, skip};

/// Puts something where a scope's file should be.
type Plant<'a> = &'a dyn Fn(&Path);

// B99, B105
#[test]
fn a_damaged_file_is_set_aside_said_once_and_started_afresh() {
    let lab = Lab::new();
    fail(&lab, "-n 2");
    let good = lab.lines("s/q.scope")[0].trim_end().to_owned();
    let with_tokens = |tokens: &str| good.replace("\"tokens\":5", &format!("\"tokens\":{tokens}")).into_bytes();
    let damaged: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"{".into(),
        vec![0; 4096],
        format!("{good}}}").into_bytes(),
        format!("{}}}", lab.read("s/q.scope")).into_bytes(),
        b"[1, 2, 3]".into(),
        b"\"tokens\"".into(),
        format!("\u{feff}{good}").into_bytes(),
        good.replace("\"schema\":1", "\"schema\":2").into_bytes(),
        with_tokens("NaN"),
        with_tokens("1e308"),
        with_tokens("-5"),
        with_tokens("\"7\""),
        good.as_bytes()[..good.len() / 2].into(),
        b"\xff\xfe\x00".into(),
        vec![b'x'; 1 << 20],
    ];
    for content in damaged {
        let shown = String::from_utf8_lossy(&content[..content.len().min(300)]).into_owned();
        lab.write("s/q.scope", &content);
        let run = lab.run(SCOPE).words("-n 2").sh("exit 7").finish();
        run.exited(7).stopped(2, "attempts");
        let said: Vec<_> = run.messages().into_iter().filter(|line| line.contains("starts afresh")).collect();
        assert_eq!(said.len(), 1, "{shown}: {}", run.stderr);
        assert!(said[0].contains("s/q.scope") && said[0].contains("q.scope.damaged"), "{}", said[0]);
        assert_eq!(fs::read(lab.path("s/q.scope.damaged")).expect("what was there"), content);
        // Never more than what the command line says.
        assert_eq!(run.each("retry_scheduled", "quota_left"), [5], "{shown}");
        let run = lab.run(SCOPE).command(&["true"]).finish();
        assert_eq!((run.exited(0).stderr.as_str(), tokens(&lab)), ("", 6), "{shown}");
    }
    assert_eq!(names(&lab), ["q.scope", "q.scope.damaged"]);
}

#[test]
fn of_many_who_find_it_damaged_one_sets_it_aside() {
    for plant in ["printf { >s/q.scope", "mkdir s/q.scope", "mkdir -p s/q.scope/inside s/q.scope.damaged/inside"] {
        let lab = Lab::new();
        lab.shell(&format!("mkdir s; {plant}")).finish().exited(0);
        let options = "--scope q --state-dir s --quota-capacity 100000 --quota-cost 7 --quota-refill 0 --base-delay 0";
        let runs: Vec<_> = (0..40).map(|_| lab.run(options).command(&["false"]).start()).collect();
        let runs: Vec<_> = runs.into_iter().map(Running::finish).collect();
        let said = |part| runs.iter().filter(|run| run.stderr.contains(part)).count();
        assert_eq!(said("starts afresh"), 1, "{plant}");
        let retries = runs.iter().map(|run| shared_retries(run.exited(1)));
        let (sure, most) = retries.fold((0, 0), |(sure, most), (least, all)| (sure + least, most + all));
        let paid = 100_000 - tokens(&lab);
        assert!(paid.is_multiple_of(7) && (sure..=most).contains(&(paid / 7)), "{plant}: {paid}: {sure} to {most}");
    }
}

// B105
#[test]
fn another_capacity_than_the_command_line_s_makes_no_tokens() {
    let lab = Lab::new();
    fail(&lab, "-n 1 --quota-capacity 4000");
    assert_eq!(tokens(&lab), 4000);
    assert_eq!(fail(&lab, "-n 2").each("retry_scheduled", "quota_left"), [5]);
}

// B99
#[test]
fn a_folder_in_place_of_the_file_is_set_aside() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("s/q.scope/inside")).expect("a folder");
    let run = fail(&lab, "-n 2");
    run.exited(1).stopped(2, "attempts").says(&["it is a folder; it is kept as q.scope.damaged"]);
    assert!(lab.path("s/q.scope.damaged/inside").is_dir());
    assert_eq!(lab.run(SCOPE).command(&["true"]).finish().exited(0).stderr, "");
    assert_eq!(tokens(&lab), 6);
}

// B129
#[test]
fn links_and_special_files_are_left_alone_and_their_targets_too() {
    let lab = Lab::new();
    fail(&lab, "-n 1");
    let good = lab.read("s/q.scope");
    for name in ["victim", "s/victim"] {
        lab.write(name, &good);
    }
    let plants: [(Plant<'_>, &str); 5] = [
        (&|path| symlink(lab.path("victim"), path).expect("a link"), "is a symbolic link"),
        (&|path| symlink("victim", path).expect("a link"), "is a symbolic link"),
        (&|path| symlink("nothing", path).expect("a link"), "is a symbolic link"),
        (&|path| fs::hard_link(lab.path("victim"), path).expect("a link"), "has another name too"),
        (&|path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe"), "is no regular file"),
    ];
    for (plant, why) in plants {
        fs::remove_file(lab.path("s/q.scope")).expect("something to remove");
        plant(&lab.path("s/q.scope"));
        let run = fail(&lab, "-n 3");
        run.exited(1).stopped(3, "attempts").says(&["scope 'q' is not shared", why, "--state-dir"]);
        assert_eq!(run.messages().iter().filter(|line| line.contains("not shared")).count(), 1);
        assert_eq!((lab.read("victim"), lab.read("s/victim")), (good.clone(), good.clone()));
        assert_eq!(names(&lab), ["q.scope", "victim"]);
    }
    // What is set aside replaces a link and does not follow it.
    symlink(lab.path("victim"), lab.path("s/q.scope.damaged")).expect("a link");
    fs::remove_file(lab.path("s/q.scope")).expect("the last plant");
    lab.write("s/q.scope", "{");
    fail(&lab, "-n 1").exited(1);
    assert_eq!((lab.read("victim"), lab.read("s/q.scope.damaged")), (good, "{".to_owned()));
}

// B129
#[test]
fn what_another_user_planted_in_a_shared_folder_is_not_used() {
    if !is_root() {
        skip!("needs root, to make what belongs to others");
    }
    let lab = Lab::new();
    fs::create_dir(lab.path("shared")).expect("a folder");
    fs::create_dir(lab.path("victim")).expect("a folder");
    fs::set_permissions(lab.path("shared"), Permissions::from_mode(0o1777)).expect("a folder");
    symlink(lab.path("victim"), lab.path("shared/link")).expect("a link");
    let run = |folder: &str| {
        let options = format!("--scope q --state-dir {folder} -n 1");
        lab.run(&options).command(&["false"]).finish()
    };
    run("shared/link").exited(1);
    assert!(lab.path("victim/q.scope").exists(), "a link of one's own is followed");
    fs::remove_file(lab.path("victim/q.scope")).expect("a file");
    std::os::unix::fs::lchown(lab.path("shared/link"), Some(65534), None).expect("root");
    for folder in ["shared/link", "shared/link/", "shared/link/deeper", "shared/./link/."] {
        run(folder).exited(1).says(&["not shared", "is a link that belongs to another user (65534)"]);
        assert_eq!(fs::read_dir(lab.path("victim")).expect("a folder").count(), 0);
    }
    // A file of another user's.
    run("s").exited(1);
    let before = lab.read("s/q.scope");
    std::os::unix::fs::chown(lab.path("s/q.scope"), Some(65534), None).expect("root");
    run("s").exited(1).says(&["not shared", "s/q.scope belongs to another user (65534)"]);
    assert_eq!(lab.read("s/q.scope"), before);
    assert_eq!(names(&lab), ["q.scope"]);
}

/// Runs a script as nobody, who finds retryx as `$R` and may write in the scratch folder.
fn as_nobody(lab: &Lab, script: &str) -> Finished {
    for (path, mode) in [("", 0o777), ("tmp", 0o777)] {
        fs::set_permissions(lab.path(path), Permissions::from_mode(mode)).expect("a folder");
    }
    // Where the tests were built may be closed to others.
    let copy = lab.path("copy");
    if !copy.exists() {
        fs::copy(Lab::binary(), &copy).expect("a copy");
    }
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script];
    lab.program("setpriv").args(other).env("R", copy).env("Q", SCOPE).finish()
}

// B99
#[test]
fn what_may_not_be_read_or_written_never_fails_a_job() {
    if !is_root() || !has_programs(&["setpriv"]) {
        skip!("needs root and setpriv");
    }
    let lab = Lab::new();
    let run = as_nobody(&lab, "$R $Q -n 2 -- sh -c 'exit 7'; $R $Q -n 1 -- true; chmod 0 s/q.scope");
    run.exited(0);
    assert!(!run.stderr.contains("shared"), "{}", run.stderr);
    let run = as_nobody(&lab, "$R $Q -n 2 -- sh -c 'exit 7'");
    run.exited(7).says(&["s/q.scope was no good: it may not be read and written; it is kept as q.scope.damaged"]);
    let run = as_nobody(&lab, "$R $Q -- true");
    assert_eq!((run.exited(0).stderr.as_str(), tokens(&lab)), ("", 6));
    // A folder that may be read: the scopes in it are shared, as no entry has to be made.
    let run = as_nobody(&lab, "chmod 555 s; $R $Q -- true");
    assert_eq!((run.exited(0).stderr.as_str(), tokens(&lab)), ("", 7));
    let run = as_nobody(&lab, "chmod 0 s/q.scope; $R $Q -- sh -c 'exit 9'");
    run.exited(9).says(&["not shared", "cannot be set aside: permission denied"]);
    as_nobody(&lab, "$R $Q --scope new -- sh -c 'exit 9'").exited(9).says(&["not shared", "cannot be made"]);
    as_nobody(&lab, "chmod 0 s; $R $Q -- sh -c 'exit 9'").exited(9).says(&["not shared", "permission denied"]);
    // Other people's folders, and places that are none.
    for folder in ["/root/s", "/proc/s", "/dev/null", "copy", "copy/s", "/sys"] {
        let run = as_nobody(&lab, &format!("$R --scope q --state-dir {folder} -n 2 --base-delay 0 -- sh -c 'exit 9'"));
        run.exited(9).says(&["scope 'q' is not shared", folder, "--state-dir"]);
    }
}

/// Runs a script in a mount namespace of its own, with a small file system at `s`.
fn on_a_disk(lab: &Lab, script: &str) -> Option<Finished> {
    fs::create_dir_all(lab.path("s")).expect("a folder");
    let script = format!("set -e; mount -t tmpfs -o size=64k none s; {script}");
    if !is_root() || !has_programs(&["unshare", "mount"]) {
        return None;
    }
    Some(lab.program("unshare").args(["-m", "sh", "-c", &script]).env("Q", SCOPE).finish())
}

#[test]
fn a_full_disk_stops_no_update_and_no_job() {
    let lab = Lab::new();
    let script = "$R $Q -n 2 -- false 2>e1 || cat s/q.scope >before
        dd if=/dev/zero of=s/fill 2>/dev/null || :
        $R $Q --scope new -n 2 -- sh -c 'exit 7' 2>e2 || echo $? >status
        $R $Q -n 2 -- false 2>e3 || cat s/q.scope >after
        ls s >names";
    let Some(run) = on_a_disk(&lab, script) else { skip!("needs to mount a tmpfs") };
    run.exited(0);
    assert_eq!((lab.read("status").as_str(), lab.read("names").as_str()), ("7\n", "fill\nq.scope\n"));
    assert!(!lab.read("e1").contains("shared") && !lab.read("e3").contains("shared"), "{}", lab.read("e3"));
    let said = lab.read("e2");
    assert!(said.contains("scope 'new' is not shared") && said.contains("no space left"), "{said}");
    let tokens = |name: &str| record(&lab.path(name))["tokens"].clone();
    assert_eq!((tokens("before"), tokens("after")), (5.into(), 0.into()));
}

// B99
#[test]
fn a_read_only_file_system_is_said_once_and_can_be_looked_at() {
    let lab = Lab::new();
    let script = "$R $Q -n 2 -- false 2>e1 || :
        mount -o remount,ro none s
        $R $Q -n 3 -- sh -c 'exit 7' 2>e2 || echo $? >status
        $R $Q --scope new -n 1 -- sh -c 'exit 8' 2>e3 || echo $? >>status
        $R quota show q --state-dir s --format json >shown
        $R quota list --state-dir s >list";
    let Some(run) = on_a_disk(&lab, script) else { skip!("needs to mount a tmpfs") };
    run.exited(0);
    assert_eq!(lab.read("status"), "7\n8\n");
    for name in ["e2", "e3"] {
        let said = lab.lines(name).into_iter().filter(|line| line.contains("not shared")).collect::<Vec<_>>();
        assert!(said.len() == 1 && said[0].contains("read-only file system"), "{said:?}");
    }
    let shown: Value = serde_json::from_str(&lab.read("shown")).expect("JSON");
    assert_eq!(shown["tokens"], 5);
    assert!(lab.read("list").contains('q'));
}

/// A command that fails, run under strace with these options.
fn traced(lab: &Lab, strace: &[&str], options: &str) -> Finished {
    let run = lab.program("strace").args(["-qq", "-o", "/dev/null"]).args(strace);
    run.arg(Lab::binary()).words(SCOPE).words(options).command(&["false"]).finish()
}

/// Whether strace can be used here.
fn can_trace(lab: &Lab) -> bool {
    has_programs(&["strace"])
        && lab.program("strace").args(["-o", "/dev/null", "true"]).finish().status.code() == Some(0)
}

#[test]
fn what_the_file_system_cannot_do_is_said_once() {
    let lab = Lab::new();
    if !can_trace(&lab) {
        skip!("needs strace");
    }
    fail(&lab, "-n 1");
    let path = lab.path("s/q.scope").canonicalize().expect("a path");
    for (inject, why) in [
        ("flock:error=ENOLCK", "s/q.scope is on a file system without locks"),
        ("flock:error=ENOSYS", "s/q.scope is on a file system without locks"),
        ("pread64:error=EIO", "s/q.scope cannot be read: input/output error"),
        ("pwrite64:error=EIO", "s/q.scope cannot be written: input/output error"),
        ("pwrite64:error=ENOSPC", "s/q.scope cannot be written: no space left"),
    ] {
        let inject = format!("inject={inject}");
        let run = traced(&lab, &["-P", &path.to_string_lossy(), "-e", &inject], "-n 3");
        run.exited(1).says(&["scope 'q' is not shared", why]);
        assert_eq!(run.messages().iter().filter(|line| line.contains("not shared")).count(), 1);
        assert_eq!(tokens(&lab), 10, "{inject}");
    }
    // Half of a new file, or no more than half of one that is there, may be written.
    for scope in ["q", "newer"] {
        let script = format!("ulimit -f 1; exec $R {SCOPE} --scope {scope} -n 1 -- false 2>&1 | cat");
        let run = lab.bash(&script).finish();
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(told.contains("giving up after 1 attempt: exit status 1"), "{told}");
        assert!(scope == "q" || told.contains("newer.scope cannot be made: file too large"), "{told}");
    }
    assert_eq!(names(&lab), ["q.scope"]);
    // A new file without the means to make one at once.
    let run = traced(&lab, &["-e", "inject=linkat:error=ENOENT:when=1"], "-n 2 --scope new");
    assert!(!run.exited(1).stderr.contains("shared"), "{}", run.stderr);
    assert_eq!(record(&lab.path("s/new.scope"))["tokens"], 5);
    assert_eq!(names(&lab), ["new.scope", "q.scope"]);
}

#[test]
fn killed_at_any_step_it_leaves_the_old_state_or_the_new() {
    let lab = Lab::new();
    if !can_trace(&lab) {
        skip!("needs strace");
    }
    fail(&lab, "-n 1");
    let kept = lab.read("s/q.scope");
    let edited = format!("\n{}\n{}", kept.lines().next().expect("a line").trim_end(), " ".repeat(3000));
    let damaged = "{".to_owned();
    for before in [None, Some(&kept), Some(&edited), Some(&damaged)] {
        let mut killed = 0;
        for call in ["openat", "flock", "pread64", "pwrite64", "fchmod", "linkat", "ftruncate", "renameat", "close"] {
            for step in 1.. {
                let _ = fs::remove_dir_all(lab.path("s"));
                if let Some(before) = before {
                    fs::create_dir(lab.path("s")).expect("a folder");
                    lab.write("s/q.scope", before);
                }
                let inject = format!("inject={call}:signal=KILL:when={step}");
                if traced(&lab, &["-e", &inject], "-n 2").status.code() == Some(1) {
                    break;
                }
                killed += 1;
                // The next run finds it good: full, or with one retry paid, and then the token of
                // its own success.
                let run = lab.run(SCOPE).command(&["true"]).finish();
                run.exited(0);
                let may_be_said = before == Some(&damaged) && run.stderr.contains("starts afresh");
                assert!(run.stderr.is_empty() || may_be_said, "{call} {step}: {}", run.stderr);
                assert!([10, 6].contains(&tokens(&lab)), "{call} {step}: {}", tokens(&lab));
                assert!(names(&lab).iter().all(|name| name.starts_with("q.scope")), "{:?}", names(&lab));
            }
        }
        assert!(killed > 20, "killed at {killed} steps only");
    }
}
