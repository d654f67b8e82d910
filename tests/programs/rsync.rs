//! rsync, with its daemon and over ssh.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use crate::loopback::{REFUSED, Server, UNRESOLVED};
use crate::support::{Finished, Lab, has_programs};
use crate::{Case, sshd};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn refused(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "rsync", row, class: "permanent", how, provoke }
}

/// A failure that may pass by itself.
const fn passing(how: &'static str, provoke: Provoke) -> Case {
    Case { class: "transient", ..refused("default:exit", how, provoke) }
}

fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    if !has_programs(&["rsync"]) {
        return Err("rsync is not installed".into());
    }
    Ok(lab.run("-n 1 -- rsync").words(line).env("RSYNC_PASSWORD", "wrong").finish())
}

/// A real daemon: `open` is for all to read, `secret` for who knows the password, `one` for
/// one at a time.
fn daemon(lab: &Lab) -> Result<u16, String> {
    if !has_programs(&["rsync"]) {
        return Err("rsync is not installed".into());
    }
    let folder = lab.path("");
    let folder = folder.display();
    let user = lab.tool("id", &["-un"]);
    lab.write("secrets", "user:right\n");
    lab.tool("chmod", &["600", "secrets"]);
    let config = lab.write(
        "rsyncd.conf",
        format!(
            "use chroot = no\nuid = {user}\nlog file = {folder}/log\n[open]\npath = {folder}/home\n\
             [secret]\npath = {folder}/home\nauth users = user\nsecrets file = {folder}/secrets\n\
             [one]\npath = {folder}/home\nmax connections = 1\nlock file = {folder}/lock\n\
             [gone]\npath = {folder}/nosuch\n"
        ),
    );
    let config = format!("--config={}", config.display());
    Ok(Server::handing_to(lab, "rsync", &["--daemon", &config]).port)
}

fn served(lab: &Lab, options: &str, module: &str) -> Result<Finished, String> {
    let port = daemon(lab)?;
    alone(lab, &format!("{options} rsync://user@127.0.0.1:{port}/{module} copy"))
}

/// Asks a module for one, while another has it.
fn crowded(lab: &Lab) -> Result<Finished, String> {
    let port = daemon(lab)?;
    let mut other = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    let mut lines = BufReader::new(other.try_clone().expect("a copy")).lines();
    let greeting = lines.next().expect("a greeting").expect("a line");
    assert!(greeting.starts_with("@RSYNCD: "), "{greeting}");
    other.write_all(b"@RSYNCD: 31.0\none\n").expect("a listener");
    let reply = lines.next().expect("a reply").expect("a line");
    assert_eq!(reply, "@RSYNCD: OK");
    alone(lab, &format!("-a rsync://127.0.0.1:{port}/one/x copy"))
}

fn over_ssh(lab: &Lab, config: &str) -> Result<Finished, String> {
    sshd::start(lab)?;
    lab.executable("rsh", &format!("#!/bin/sh\nexec ssh -F {config} \"$@\"\n"));
    alone(lab, "-a -e ./rsh 127.0.0.1:/nosuch/x copy")
}

/// Each way that it was brought to fail.
pub const CASES: &[Case] = &[
    refused("bad usage", "no such option", |lab| alone(lab, "--nope a b")),
    refused("bad usage", "quiet", |lab| alone(lab, "-q --max-size=x a b")),
    refused("bad usage", "two hosts", |lab| alone(lab, "-a 127.0.0.1:a 127.0.0.2:b")),
    refused("bad usage", "read only", |lab| {
        let port = daemon(lab)?;
        alone(lab, &format!("-a rsyncd.conf rsync://127.0.0.1:{port}/open/"))
    }),
    refused("no such module", "", |lab| served(lab, "-a", "nosuch/x")),
    refused("no such module", "quiet", |lab| served(lab, "-aq", "nosuch/x")),
    refused("authentication refused", "", |lab| served(lab, "-a", "secret/x")),
    refused("ssh key refused", "", |lab| over_ssh(lab, "ssh_bad")),
    refused("host key refused", "", |lab| over_ssh(lab, "ssh_changed")),
    Case { class: "throttling", ..refused("too many connections", "", crowded) },
    Case {
        class: "transient",
        ..refused("no such file yet", "list", |lab| alone(lab, "-a --files-from=nosuch . copy"))
    },
    Case {
        class: "transient",
        ..refused("no such file yet", "password", |lab| served(lab, "-a --password-file=nosuch", "secret/x"))
    },
    passing("no such file here", |lab| alone(lab, "-a nosuch copy")),
    passing("no such file there", |lab| served(lab, "-a", "open/nosuch")),
    passing("module without its folder", |lab| served(lab, "-a", "gone/x")),
    passing("refused", |lab| alone(lab, &format!("-a rsync://127.0.0.1:{REFUSED}/open/x copy"))),
    passing("not resolved", |lab| alone(lab, &format!("-a rsync://{UNRESOLVED}/open/x copy"))),
    passing("dropped", |lab| alone(lab, &format!("-a rsync://127.0.0.1:{}/open/x copy", Server::dropping().port))),
    passing("ssh refused", |lab| {
        lab.executable("rsh", &format!("#!/bin/sh\nexec ssh -F none -p {REFUSED} \"$@\"\n"));
        if has_programs(&["ssh"]) { alone(lab, "-a -e ./rsh 127.0.0.1:x copy") } else { Err("no ssh".into()) }
    }),
    passing("ssh quiet", |lab| {
        sshd::start(lab)?;
        lab.executable("rsh", "#!/bin/sh\nexec ssh -q -F ssh_bad \"$@\"\n");
        alone(lab, "-aq -e ./rsh 127.0.0.1:x copy")
    }),
];
