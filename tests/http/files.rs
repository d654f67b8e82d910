//! `-o`: the file is whole or as it was, and nothing else is left behind.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::server::{Answer, Gate, Server};
use crate::support::{Lab, is_root, skip};
use crate::{ask, http, pattern};

/// The names in the folder of the output.
fn names(lab: &Lab) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(lab.path("d"))
        .expect("a folder")
        .map(|entry| entry.expect("a folder").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn lab() -> Lab {
    let lab = Lab::new();
    fs::create_dir(lab.path("d")).expect("a folder");
    lab
}

#[test]
fn an_old_file_survives_every_failure() {
    let lab = lab();
    let long = pattern(100_000);
    for bad in [
        Answer::new(404, &[], "bad"),
        Answer::new(503, &[], "bad"),
        Answer::raw("").close(),
        Answer::head(200, &["Content-Length: 200000"]).send(&long).close(),
        Answer::head(200, &["Content-Length: 200000"]).send(&long).reset(),
        Answer::head(200, &["Transfer-Encoding: chunked"]).send("zz"),
        Answer::new(301, &["Location: ftp://x/"], ""),
    ] {
        for old in [Some("old"), None] {
            if let Some(old) = old {
                lab.write("d/f", old);
            }
            let server = Server::new([bad.clone()]);
            let run = ask(&lab, "-L --max-attempts 2 -o d/f", &server);
            assert_ne!(run.status.code(), Some(0));
            assert_eq!(names(&lab), old.map(|_| "f".to_owned()).into_iter().collect::<Vec<_>>());
            assert_eq!(lab.read("d/f"), old.unwrap_or_default());
            let _ = fs::remove_file(lab.path("d/f"));
        }
    }
}

#[test]
fn an_old_file_survives_every_end() {
    let lab = lab();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL] {
        for words in ["-o d/f", "-o d/f -i", "-o d/f --fail-with-body"] {
            lab.write("d/f", "old");
            let server = Server::new([Answer::head(200, &["Content-Length: 200000"]).send(pattern(100_000)).stall()]);
            let run = http(&lab, words, &server.url("/")).start();
            server.await_requests(1);
            crate::support::wait_until("half of it is sent", || server.sent() > 100_000);
            run.signal(signal);
            run.finish().died_of(signal);
            assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "old".to_owned()));
        }
    }
    lab.write("d/f", "old");
    let server = Server::new([Answer::silence()]);
    ask(&lab, "-m 0.2 --max-attempts 1 -o d/f", &server).exited(28);
    assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "old".to_owned()));
}

#[test]
fn a_new_file_replaces_the_old_one_all_at_once() {
    let lab = lab();
    lab.write("d/f", "old, and longer than the new one");
    fs::set_permissions(lab.path("d/f"), Permissions::from_mode(0o640)).unwrap();
    let before = File::open(lab.path("d/f")).unwrap();
    let server = Server::new([Answer::new(200, &[], "new")]);
    ask(&lab, "-o d/f", &server).exited(0);
    let after = fs::metadata(lab.path("d/f")).unwrap();
    assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "new".to_owned()));
    assert_eq!(after.mode() & 0o7777, 0o640);
    // Who has the old one open still reads the old one.
    assert_eq!(std::io::read_to_string(before).unwrap(), "old, and longer than the new one");

    // A new file is made as any program makes it.
    let run = lab.shell("umask 027; exec retryx http -o d/g $U").env("U", server.url("/")).finish();
    run.exited(0);
    assert_eq!(fs::metadata(lab.path("d/g")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(&lab), ["f", "g"]);
    // Also with a name as long as there can be one.
    let name = "n".repeat(255);
    for _ in 0..2 {
        ask(&lab, &format!("-o d/{name}"), &server).exited(0);
        assert_eq!(lab.read(&format!("d/{name}")), "new");
    }
    // And in the folder where one is.
    let run = lab.shell("cd d; exec retryx http -o h $U").env("U", server.url("/")).finish();
    run.exited(0);
    assert_eq!(lab.read("d/h"), "new");
}

#[test]
fn links_are_followed() {
    let lab = lab();
    lab.write("real", "old");
    symlink("../real", lab.path("d/link")).unwrap();
    symlink("link", lab.path("d/link2")).unwrap();
    symlink("../made", lab.path("d/dangling")).unwrap();
    symlink("loop", lab.path("d/loop")).unwrap();
    let server = Server::new([Answer::new(200, &[], "new")]);
    for (name, target) in [("link", "real"), ("link2", "real"), ("dangling", "made")] {
        ask(&lab, &format!("-o d/{name}"), &server).exited(0);
        assert_eq!(lab.read(target), "new");
        assert!(fs::symlink_metadata(lab.path(&format!("d/{name}"))).unwrap().is_symlink());
        let _ = fs::write(lab.path("real"), "old");
    }
    assert_eq!(names(&lab), ["dangling", "link", "link2", "loop"]);
    let run = ask(&lab, "-o d/loop", &server);
    assert_ne!(run.status.code(), Some(0));
    assert!(fs::symlink_metadata(lab.path("d/loop")).unwrap().is_symlink());
}

// B85.
#[test]
fn special_files_are_written_in_place() {
    let lab = lab();
    let answers = || Server::new([Answer::new(503, &[], "bad"), Answer::new(200, &[], "good")]);
    ask(&lab, "-o /dev/null", &answers()).exited(0).stopped(2, "success");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    mknodat(CWD, lab.path("d/fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = lab.program("cat").arg("d/fifo").start();
    ask(&lab, "-o d/fifo", &answers()).exited(0).stopped(2, "success");
    assert_eq!(reader.finish().exited(0).text(), "good");
    assert!(fs::metadata(lab.path("d/fifo")).unwrap().file_type().is_fifo());
    assert_eq!(names(&lab), ["fifo"]);

    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
        let server = answers();
        let script = "retryx --base-delay 0 http -o $F $U | cat; echo ' and more'";
        let run = lab.shell(script).env("F", name).env("U", server.url("/")).finish();
        assert_eq!(run.exited(0).text(), "good and more\n");
        // What stdout is, is not replaced.
        let server = answers();
        let script = "{ echo before; retryx --base-delay 0 http -o $F $U; echo ' and more'; } >file";
        lab.shell(script).env("F", name).env("U", server.url("/")).finish().exited(0);
        assert_eq!(lab.read("file"), "before\ngood and more\n", "{name}");
    }
    let server = answers();
    let run = lab.shell("retryx -q --base-delay 0 http -o /dev/stderr $U").env("U", server.url("/")).finish();
    assert_eq!((run.exited(0).text(), run.stderr.as_str()), (String::new(), "good"));
}

#[test]
fn a_pipe_that_nobody_reads_is_waited_for_but_not_for_ever() {
    let lab = lab();
    mknodat(CWD, lab.path("d/fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let server = Server::new([Answer::new(200, &[], "good")]);
    let run = http(&lab, "-o d/fifo", &server.url("/")).start();
    run.events.wait("attempt_finished", 1);
    run.signal(Signal::TERM);
    run.finish().died_of(Signal::TERM).stopped(1, "interrupted");
    let run = ask(&lab, "--total-timeout 0.4 -o d/fifo", &server);
    run.exited(28).stopped(1, "total_timeout");
}

// More than fits into memory goes to nothing without being kept.
#[test]
fn what_is_thrown_away_is_not_kept() {
    let lab = lab();
    let server = Server::new([Answer::new(200, &[], pattern(20_000_000))]);
    let run = http(&lab, "-o /dev/null", &server.url("/")).env("TMPDIR", "/nowhere").finish();
    run.exited(0);
}

#[test]
fn a_folder_that_cannot_be_written_is_seen_before_anything() {
    let lab = lab();
    let server = Server::new([Answer::new(200, &[], "new")]);
    for words in ["-o d", "-o nowhere/f", "--output-dir nowhere -O", "-o d/f/g"] {
        lab.write("d/f", "old");
        let run = http(&lab, words, &server.url("/name")).finish();
        run.exited(125);
        assert!(run.stderr.contains("nowhere") || run.stderr.contains('d'), "{}", run.stderr);
    }
    assert_eq!(server.requests().len(), 0);
    ask(&lab, "-o /dev/full", &server).exited(23);
}

/// Runs a script as nobody, in a folder of root's.
fn as_nobody(lab: &Lab, script: &str, server: &Server) -> crate::support::Finished {
    let run = lab.program("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script]);
    run.env("U", server.url("/")).finish()
}

#[test]
fn a_file_is_written_in_a_folder_that_is_not() {
    if !is_root() || !crate::support::has_programs(&["setpriv"]) {
        skip!("needs root and setpriv");
    }
    let lab = lab();
    for path in [lab.path("").as_path(), &lab.path("d")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(lab.path("tmp"), Permissions::from_mode(0o777)).unwrap();
    // Where the tests were built may be closed to others.
    fs::copy(Lab::binary(), lab.path("copy")).unwrap();
    let retryx = "./copy --base-delay 0 --max-attempts 2 http -o d/f $U";
    for (length, before) in [(3, 1000), (9_000_000, 10)] {
        let body = pattern(length);
        lab.write("d/f", pattern(before));
        fs::set_permissions(lab.path("d/f"), Permissions::from_mode(0o666)).unwrap();
        let server = Server::new([Answer::new(404, &[], "no")]);
        as_nobody(&lab, retryx, &server).exited(22);
        assert!(fs::read(lab.path("d/f")).unwrap() == pattern(before));
        let server = Server::new([Answer::new(200, &[], &body)]);
        as_nobody(&lab, retryx, &server).exited(0);
        assert!(fs::read(lab.path("d/f")).unwrap() == body);
    }
    // One that may not be written is not replaced either, where the folder would allow it.
    fs::set_permissions(lab.path("d"), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(lab.path("d/f"), Permissions::from_mode(0o444)).unwrap();
    let server = Server::new([Answer::new(200, &[], "new")]);
    as_nobody(&lab, retryx, &server).exited(125).says(&["d/f cannot be written"]);
    assert_eq!(server.requests().len(), 0);
}

struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = crate::support::command("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let lab = lab();
    let folder = lab.path("d");
    let mount = || {
        let mut mount = crate::support::command("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "none"]).arg(&folder).output()
    };
    if !is_root() || !mount().is_ok_and(|output| output.status.success()) {
        skip!("needs to mount a tmpfs");
    }
    let _mounted = Mounted(&folder);
    lab.write("d/f", "old");
    let server = Server::new([Answer::new(200, &[], pattern(1_000_000))]);
    for words in ["-o d/f", "-i -o d/f"] {
        let run = ask(&lab, words, &server);
        run.exited(23).stopped(1, "permanent").says(&["no space left"]);
        assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "old".to_owned()));
    }
    // A part that was there stays as long as it was.
    lab.write("d/f", "old");
    let body = pattern(1_000_000);
    let server = Server::by(move |_, _| Answer::new(206, &["Content-Range: bytes 3-1000002/1000003"], &body));
    let run = ask(&lab, "-C - -o d/f", &server);
    run.exited(23).says(&["no space left"]);
    assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "old".to_owned()));
    // The room is there again.
    let server = Server::new([Answer::new(200, &[], pattern(100_000))]);
    ask(&lab, "-o d/f", &server).exited(0);
}

// Some files cannot be replaced, and are written where they are: they keep their owner, too.
#[test]
fn a_file_that_cannot_be_replaced_is_overwritten() {
    if !is_root() || !crate::support::has_programs(&["setpriv", "unshare", "mount"]) {
        skip!("needs root, setpriv, unshare and mount");
    }
    let lab = lab();
    fs::copy(Lab::binary(), lab.path("copy")).unwrap();
    let body = pattern(20_000);
    let server = Server::new([Answer::new(200, &[], &body), Answer::new(404, &[], &body)]);
    let good = |words: &str| format!("./copy --base-delay 0 http {words} -o d/f $U");
    // Somebody else's in a folder like /tmp.
    for path in [lab.path("").as_path(), &lab.path("tmp")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(lab.path("d"), Permissions::from_mode(0o1777)).unwrap();
    let rights = |name: &str| {
        let metadata = fs::metadata(lab.path(name)).unwrap();
        (metadata.uid(), metadata.mode() & 0o777, metadata.ino())
    };
    for before in [50_000, 10] {
        lab.write("d/f", pattern(before));
        fs::set_permissions(lab.path("d/f"), Permissions::from_mode(0o666)).unwrap();
        let was = rights("d/f");
        let server = Server::new([Answer::new(200, &[], &body)]);
        as_nobody(&lab, &good(""), &server).exited(0);
        assert!(fs::read(lab.path("d/f")).unwrap() == body);
        as_nobody(&lab, &good("-i"), &server).exited(0);
        assert!(fs::read(lab.path("d/f")).unwrap().ends_with(&body));
        assert_eq!((rights("d/f"), names(&lab)), (was, vec!["f".to_owned()]));
    }
    // One that something is mounted on.
    let mounted = |words: &str| {
        lab.write("other", pattern(50_000));
        let script = format!("mount --bind other d/f || exit 99; {}", good(words));
        let run = lab.program("unshare").args(["-m", "sh", "-c", &script]).env("U", server.url("/")).finish();
        if run.status.code() == Some(99) {
            return None;
        }
        assert_eq!(names(&lab), ["f"]);
        assert!(fs::read(lab.path("other")).unwrap() == body, "{}", run.stderr);
        Some(run.status.code())
    };
    let Some(code) = mounted("") else { skip!("needs to mount") };
    assert_eq!((code, mounted("--fail-with-body").flatten()), (Some(0), Some(22)));
}

// B84.
#[test]
fn a_file_goes_on_where_it_ends() {
    let lab = lab();
    let body = pattern(5000);
    let ranges = |request: &crate::server::Request, body: &[u8]| match request.from() {
        None => Answer::new(200, &[], body),
        Some(from) if from >= body.len() => {
            Answer::new(416, &[&format!("Content-Range: bytes */{}", body.len())], "no")
        }
        Some(from) => {
            let range = format!("Content-Range: bytes {from}-{}/{}", body.len() - 1, body.len());
            Answer::new(206, &[&range], &body[from..])
        }
    };
    let server = |body: &[u8]| {
        let body = body.to_vec();
        Server::by(move |_, request| ranges(request, &body))
    };
    // Complete, partial, empty, missing.
    for (there, requests) in [(Some(5000), 1), (Some(2000), 1), (Some(0), 1), (None, 1)] {
        let _ = fs::remove_file(lab.path("d/f"));
        if let Some(there) = there {
            lab.write("d/f", &body[..there]);
        }
        let server = server(&body);
        let run = ask(&lab, "-C - -o d/f", &server);
        run.exited(0).stopped(1, "success");
        assert!(fs::read(lab.path("d/f")).unwrap() == body, "{there:?}");
        assert_eq!((server.requests().len(), names(&lab)), (requests, vec!["f".to_owned()]));
    }
    // Longer than what the server has: it is not taken for complete.
    lab.write("d/f", pattern(6000));
    let run = ask(&lab, "-C - -o d/f", &server(&body));
    run.exited(22).stopped(1, "permanent");
    assert!(fs::read(lab.path("d/f")).unwrap() == pattern(6000));
    // A server without ranges: nothing is doubled.
    lab.write("d/f", &body[..2000]);
    let whole = Server::new([Answer::new(200, &[], &body)]);
    ask(&lab, "-C - -o d/f", &whole).exited(33).stopped(1, "permanent").says(&["-C"]);
    assert!(fs::read(lab.path("d/f")).unwrap() == body[..2000]);
    // It breaks off on the way, and fails for good: what was there is there.
    let sent = body.clone();
    let broken = Server::by(move |number, request| {
        let from = request.from().expect("a part");
        let range = format!("Content-Range: bytes {from}-4999/5000");
        let length = format!("Content-Length: {}", 5000 - from);
        let head = Answer::head(206, &["ETag: \"x\"", &range, &length]);
        if number == 0 { head.send(&sent[from..from + 500]).close() } else { head.send(&sent[from..]) }
    });
    ask(&lab, "--max-attempts 1 -C - -o d/f", &broken).exited(18);
    assert!(fs::read(lab.path("d/f")).unwrap() == body[..2000]);
    let sent = body.clone();
    let broken = Server::by(move |number, request| {
        let from = request.from().expect("a part");
        let range = format!("Content-Range: bytes {from}-4999/5000");
        let length = format!("Content-Length: {}", 5000 - from);
        let head = Answer::head(206, &["ETag: \"x\"", &range, &length]);
        if number == 0 { head.send(&sent[from..from + 500]).close() } else { head.send(&sent[from..]) }
    });
    ask(&lab, "-C - -o d/f", &broken).exited(0).stopped(2, "success");
    assert!(fs::read(lab.path("d/f")).unwrap() == body);
    assert_eq!(broken.requests()[1].from(), Some(2500));
    // From a number on.
    lab.write("d/f", &body[..10]);
    ask(&lab, "-C 10 -o d/f", &server(&body)).exited(0);
    assert!(fs::read(lab.path("d/f")).unwrap() == body);
    // From the beginning on, which is the whole.
    for words in ["-C 0 -o d/f", "-C 00 -o d/f"] {
        lab.write("d/f", pattern(1000));
        let server = server(&body);
        ask(&lab, words, &server).exited(0);
        assert!(fs::read(lab.path("d/f")).unwrap() == body);
        assert_eq!(server.requests()[0].value("range"), None);
    }
    // To a new file the rest alone.
    fs::remove_file(lab.path("d/f")).unwrap();
    ask(&lab, "-C 10 -o d/f", &server(&body)).exited(0);
    assert!(fs::read(lab.path("d/f")).unwrap() == body[10..]);
    // What does not follow what is there is not put behind it.
    lab.write("d/f", &body[..1000]);
    for words in ["-C 100 -o d/f", "-C 1001 -o d/f"] {
        let server = server(&body);
        ask(&lab, words, &server).exited(125).says(&["d/f has 1000 bytes", "-C -"]);
        assert_eq!((server.requests().len(), fs::read(lab.path("d/f")).unwrap().len()), (0, 1000));
    }
    // Nor what was to follow it, where it has grown meanwhile.
    let gate = Gate::default();
    let head = Answer::head(206, &["Content-Range: bytes 1000-4999/5000", "Content-Length: 4000"]);
    let server_that_waits = Server::new([head.wait(&gate).send(&body[1000..])]);
    let run = http(&lab, "-C - -o d/f", &server_that_waits.url("/")).start();
    server_that_waits.await_requests(1);
    lab.write("d/f", &body[..1001]);
    gate.open();
    run.finish().exited(23).says(&["1001"]);
    assert!(fs::read(lab.path("d/f")).unwrap() == body[..1001]);
    // A rule looks at all of it, whichever part came when.
    let needle = b"a NEEDLE\nand more\n";
    for there in [0, 4, 12, needle.len()] {
        lab.write("d/f", &needle[..there]);
        let server = server(needle);
        let rule = ["--fail-on", "http:200-299 and body:/NEEDLE/"];
        let run = http(&lab, "-C - -o d/f", &server.url("/")).args(rule).finish();
        run.exited(22).stopped(1, "permanent");
        assert_eq!(fs::read(lab.path("d/f")).unwrap(), needle[..there]);
    }
    for wrong in ["-C x -o d/f", "-C -1 -o d/f", "-C - -r 1-2 -o d/f", "-C -"] {
        http(&lab, wrong, "http://127.0.0.1:1/").finish().exited(125);
    }
}

#[test]
fn nothing_is_seen_of_a_file_before_it_is_whole() {
    let lab = lab();
    let gate = Gate::default();
    let server = Server::new([Answer::head(200, &["Content-Length: 10"]).send("hello").wait(&gate).send("world")]);
    let run = http(&lab, "-o d/f", &server.url("/")).start();
    server.await_requests(1);
    crate::support::wait_until("half of it is sent", || server.sent() >= 50);
    assert!(names(&lab).is_empty());
    gate.open();
    run.finish().exited(0);
    assert_eq!((names(&lab), lab.read("d/f")), (vec!["f".to_owned()], "helloworld".to_owned()));
}

// What the user has is still good: that is no empty file.
#[test]
fn an_unchanged_file_stays() {
    let lab = lab();
    let server = Server::new([Answer::head(304, &["ETag: \"x\""])]);
    for words in ["-o d/f", "-C - -o d/f", "-i -o d/f"] {
        lab.write("d/f", "old");
        ask(&lab, &format!("{words} -H If-None-Match:\"x\""), &server).exited(0);
        assert_eq!(lab.read("d/f"), "old");
        let _ = fs::remove_file(lab.path("d/f"));
    }
}

#[test]
fn heads_go_where_they_are_wanted() {
    let lab = lab();
    let server = Server::new([Answer::new(200, &["X: y"], "good")]);
    let head = "HTTP/1.1 200 Whatever\r\nX: y\r\nContent-Length: 4\r\n\r\n";
    for name in ["-", "/dev/stdout"] {
        let script = "{ echo before; retryx http -D $F $U; } >file";
        lab.shell(script).env("F", name).env("U", server.url("/")).finish().exited(0);
        assert_eq!(lab.read("file"), format!("before\n{head}good"), "{name}");
    }
    ask(&lab, "-D /dev/null", &server).exited(0);
    mknodat(CWD, lab.path("d/fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = lab.program("cat").arg("d/fifo").start();
    ask(&lab, "-D d/fifo", &server).exited(0);
    assert_eq!(reader.finish().exited(0).text(), head);
    let before = server.requests().len();
    for wrong in ["-D nowhere/f", "-D d"] {
        ask(&lab, wrong, &server).exited(125);
    }
    // Two outputs are too many for one file, under whatever names; not for a device.
    lab.write("d/there", "old");
    symlink("there", lab.path("d/link")).unwrap();
    for wrong in ["-D d/new -o d/new", "-D d/new -o ./d/../d/new", "-D d/there -o d/there", "-D d/link -o d/there"] {
        ask(&lab, wrong, &server).exited(125).says(&["same file"]);
    }
    assert_eq!(lab.read("d/there"), "old");
    assert_eq!(server.requests().len(), before);
}

#[test]
fn names_come_from_the_url() {
    let lab = lab();
    let server = Server::new([Answer::new(200, &[], "x")]);
    let get = |words: &str, path: &str| http(&lab, words, &server.url(path)).finish();
    get("-O --output-dir d", "/a/name.txt?query=1").exited(0);
    assert_eq!(names(&lab), ["name.txt"]);
    get("-O", "/").exited(125).says(&["--remote-name"]);
    for path in ["/..", "/a/..", "/a/.", "/%2e%2e"] {
        let run = get("-O --output-dir d", path);
        assert_ne!(run.status.code(), Some(0), "{path}");
    }
    assert_eq!(names(&lab), ["name.txt"]);
}

// What is not whole replaces nothing, also where the bodies of failures are wanted.
#[test]
fn a_body_that_is_cut_leaves_the_file_as_it_was() {
    let lab = Lab::new();
    let cut = |status: u16| Answer::head(status, &["Content-Length: 10"]).send("0123");
    for (words, answer, code) in [
        ("", cut(200).close(), 18),
        ("--fail-with-body", cut(200).close(), 18),
        ("--fail-with-body -m 0.3", cut(200).stall(), 28),
        ("--fail-with-body -m 0.3", cut(404).stall(), 28),
        ("--fail-with-body", cut(404).close(), 22),
        ("--fail-with-body -m 0.3", Answer::silence(), 28),
    ] {
        let server = Server::new([answer]);
        lab.write("file", "as it was");
        let run = lab.run("-n 1 http").words(words).words("-o file").arg(server.url("/")).finish();
        run.exited(code);
        assert_eq!(lab.read("file"), "as it was", "{words}");
        let run = lab.run("-n 1 http").words(words).words("-o new").arg(server.url("/")).finish();
        run.exited(code);
        assert!(!lab.path("new").exists(), "{words}");
    }
    // A rule that makes a success of what has no body makes no file.
    for (rule, answer) in
        [("any", Answer::silence().close()), ("timeout", Answer::silence()), ("any", cut(200).close())]
    {
        let server = Server::new([answer]);
        let options = format!("-n 1 --timeout 0.5 --succeed-on {rule} http -o file");
        lab.run(&options).arg(server.url("/")).finish().exited(0);
        assert_eq!(lab.read("file"), "as it was", "{rule}");
    }
}

#[test]
fn the_name_of_a_folder_is_refused_before_anything_is_sent() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "good")]);
    for words in ["-o missing/", "-D missing/", "-o home/"] {
        lab.bare("http -d x").words(words).arg(server.url("/")).finish().exited(125).says(&["folder"]);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn events_have_a_file_of_their_own() {
    let lab = Lab::new();
    let server = Server::new([Answer::new(200, &[], "good")]);
    std::fs::create_dir(lab.path("d")).unwrap();
    let events = lab.write("d/x", "");
    std::os::unix::fs::symlink("x", lab.path("d/y")).unwrap();
    for (words, said) in [
        ("-o d/x", "--output"),
        ("-o d/../d/y", "--output"),
        ("--output-dir d -O --url", "--output"),
        ("-D d/y", "--dump-header"),
        ("-T d/x", "read from"),
        ("-d @d/y", "read from"),
        ("--data-binary @d/x", "read from"),
        ("-F a=@d/x", "read from"),
        ("-H @d/x", "read from"),
    ] {
        let run = lab.bare("--events").arg(&events).words("http").words(words).arg(server.url("/x")).finish();
        run.exited(125).says(&["--events", said, "same file"]);
        assert_eq!(std::fs::read(&events).unwrap(), b"");
    }
    let run = lab.bash("exec retryx --events fd:3 http -o d/x $0 3>>d/y").arg(server.url("/x")).finish();
    run.exited(125).says(&["--events", "--output"]);
    assert!(server.requests().is_empty());
    // What is no file is nobody's.
    lab.bare("--events /dev/null http -o /dev/null -d @/dev/null").arg(server.url("/x")).finish().exited(0);
}
