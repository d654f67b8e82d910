//! On its own: no help from other programs, no surroundings assumed, one static file.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Lab, has_programs, is_root, skip, variable};

// B124
#[test]
fn it_needs_no_other_program() {
    let lab = Lab::new();
    let options = "-n 2 --base-delay 10ms -- /bin/false";
    lab.bare(options).empty_env().env("PATH", "/nonexistent").finish().exited(1).says(&["after 2 attempts"]);
    if !has_programs(&["strace"]) {
        skip!("strace is not installed: whether other programs are started was not looked at");
    }
    let trace = lab.path("trace");
    let run = lab.program("strace").args(["-f", "-e", "trace=execve", "-o"]).arg(&trace).arg(Lab::binary());
    run.words(options).finish().exited(1);
    let trace = lab.read("trace");
    let executed: Vec<&str> =
        trace.lines().filter_map(|line| line.split_once("execve(\"")?.1.split('"').next()).collect();
    let own = Lab::binary().to_str().unwrap();
    assert_eq!(executed, [own, "/bin/false", "/bin/false"], "{trace}");
}

// B126
#[test]
fn a_bare_environment_is_enough() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("gone")).unwrap();
    let silent = |run: crate::support::Run<'_>| {
        let run = run.finish();
        run.exited(0);
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    };
    silent(lab.bare("-- /bin/true").empty_env());
    silent(lab.bare("-- true").empty_env());
    silent(lab.bare("-n 3 --timeout 100 -- true").no_env("HOME"));
    silent(lab.bare("true").env("HOME", "/no/such/home").env("TMPDIR", "/no/such").env("XDG_CONFIG_HOME", ""));
    silent(lab.bare("true").env("LC_ALL", "xx_XX.nonsense").env("LANG", "").env("TZ", ":/nonsense"));
    for (name, value) in
        [("RETRYX_MAX_ATTEMPTS", ""), ("AWS_MAX_ATTEMPTS", ""), ("RUST_BACKTRACE", "1"), ("RUST_LOG", "trace")]
    {
        silent(lab.bare("true").env(name, value));
    }
    silent(lab.shell("cd $D/gone && rmdir $D/gone && exec retryx -- /bin/true"));
}

#[test]
fn a_user_without_a_home_or_a_name_can_run_it() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let lab = Lab::new();
    std::fs::set_permissions(lab.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let other = ["--reuid", "4242424", "--regid", "4242424", "--clear-groups"];
    if !lab.program("setpriv").args(other).arg(Lab::binary()).arg("--version").finish().status.success() {
        skip!("the binary cannot be run by another user");
    }
    let run = lab
        .program("setpriv")
        .args(other)
        .arg(Lab::binary())
        .words("-n 2 --base-delay 0 -- true")
        .no_env("HOME")
        .finish();
    run.exited(0);
    assert_eq!(run.stderr, "");
}

/// The release binary, where `.ci/run` has built it.
fn static_binary() -> Option<PathBuf> {
    variable("STATIC_RETRYX").map(PathBuf::from)
}

#[test]
fn the_release_binary_is_one_static_file_of_modest_size() {
    let Some(binary) = static_binary() else { skip!("STATIC_RETRYX names no release binary") };
    let content = std::fs::read(&binary).unwrap();
    assert!(content.len() <= 6 * 1024 * 1024, "{} bytes", content.len());
    assert_eq!(&content[..5], b"\x7fELF\x02", "a 64-bit program");
    let number = |at: usize, size: usize| {
        content[at..at + size].iter().rev().fold(0usize, |number, &byte| number << 8 | usize::from(byte))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    // PT_INTERP names a loader; PT_DYNAMIC is there in a static position-independent program
    // too, but then it needs no library (DT_NEEDED).
    let kinds: Vec<usize> = (0..count).map(|i| number(table + i * size, 4)).collect();
    assert!(!kinds.contains(&3), "it asks for a loader");
    for header in (0..count).map(|i| table + i * size).filter(|&header| number(header, 4) == 2) {
        let (at, length) = (number(header + 8, 8), number(header + 32, 8));
        assert!((at..at + length).step_by(16).all(|entry| number(entry, 8) != 1), "it needs a library");
    }
}

#[test]
fn the_release_binary_works_in_an_empty_root_folder() {
    let Some(binary) = static_binary() else { skip!("STATIC_RETRYX names no release binary") };
    if !is_root() {
        skip!("only root can change the root folder");
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("root")).unwrap();
    std::fs::copy(binary, lab.path("root/retryx")).unwrap();
    let inside = |words: &str| {
        let bare = "chroot=$(command -v chroot); exec env -i \"$chroot\" $D/root /retryx \"$@\"";
        lab.shell(bare).arg("sh").words(words).leashed().finish()
    };
    let run = inside("--version");
    run.exited(0);
    assert_eq!(run.text(), format!("retryx {}\n", env!("CARGO_PKG_VERSION")));
    // The only program there is retryx itself.
    let run = inside("-n 3 --base-delay 1ms --events /e -- /retryx --nonsense");
    run.exited(125).says(&["giving up after 3 attempts"]);
    assert_eq!(crate::support::Events::at(lab.path("root/e")).wait("stopped", 1)["attempts"], 3);
    inside("-n 3 -- no-such").exited(127).says(&["not found"]);
    inside("-- /retryx -- /retryx --version").exited(0);
    // A limit ends what it can find without /proc.
    let inner = "-n 5 --mode fixed --base-delay 1000 -- /retryx --nonsense";
    inside(&format!("-n 1 --timeout 1 -- /retryx {inner}")).exited(124).alone();
    inside(&format!("-n 1 --timeout 1 --kill-after 0 -- /retryx {inner}")).exited(124).alone();
}
