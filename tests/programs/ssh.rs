//! ssh, scp and sftp.

use crate::loopback::{REFUSED, Server, UNRESOLVED};
use crate::support::{Finished, Lab, has_programs};
use crate::{Case, sshd};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn ssh(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "ssh", row, class: "permanent", how, provoke }
}

const fn scp(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "scp", ..ssh(row, how, provoke) }
}

/// A failure that may pass by itself.
const fn passing(preset: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset, row: "default:exit", class: "transient", how, provoke }
}

/// Runs a command, whose words stand in one line, without a server.
fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    if !has_programs(&["ssh", "scp", "sftp"]) {
        return Err("ssh is not installed".into());
    }
    Ok(lab.run("-n 1 --").words(line).finish())
}

/// Runs a command beside a server.
fn served(lab: &Lab, line: &str) -> Result<Finished, String> {
    sshd::start(lab)?;
    alone(lab, line)
}

/// Each way that they were brought to fail.
pub const CASES: &[Case] = &[
    ssh("bad usage", "no host", |lab| alone(lab, "ssh")),
    ssh("bad usage", "no such option", |lab| alone(lab, "ssh -F none -9 127.0.0.1 true")),
    ssh("bad option", "on the command line", |lab| alone(lab, "ssh -F none -o Nope=1 127.0.0.1 true")),
    ssh("bad option", "in a file", |lab| {
        lab.write("config", "Nope 1\n");
        alone(lab, "ssh -F config 127.0.0.1 true")
    }),
    ssh("bad port", "", |lab| alone(lab, "ssh -F none -p 99999 127.0.0.1 true")),
    ssh("authentication refused", "", |lab| served(lab, "ssh -F ssh_bad 127.0.0.1 true")),
    ssh("authentication refused", "verbose", |lab| served(lab, "ssh -v -F ssh_bad 127.0.0.1 true")),
    ssh("too many keys tried", "", |lab| served(lab, "ssh -F ssh_many 127.0.0.1 true")),
    ssh("host key refused", "changed", |lab| served(lab, "ssh -F ssh_changed 127.0.0.1 true")),
    ssh("host key refused", "unknown", |lab| {
        served(lab, "ssh -F ssh_config -o UserKnownHostsFile=none 127.0.0.1 true")
    }),
    ssh("no algorithm in common", "cipher", |lab| served(lab, "ssh -F ssh_config -c 3des-cbc 127.0.0.1 true")),
    ssh("no algorithm in common", "host key", |lab| {
        served(lab, "ssh -F ssh_config -o HostKeyAlgorithms=rsa-sha2-512 127.0.0.1 true")
    }),
    scp("bad usage", "scp", |lab| alone(lab, "scp x")),
    scp("bad usage", "sftp", |lab| alone(lab, "sftp -9 127.0.0.1")),
    scp("bad option", "", |lab| alone(lab, "scp -F none -o Nope=1 127.0.0.1:x x")),
    scp("authentication refused", "scp", |lab| served(lab, "scp -F ssh_bad good 127.0.0.1:x")),
    scp("authentication refused", "old scp", |lab| served(lab, "scp -O -F ssh_bad 127.0.0.1:x x")),
    scp("authentication refused", "sftp", |lab| served(lab, "sftp -b /dev/null -F ssh_bad 127.0.0.1")),
    scp("host key refused", "", |lab| served(lab, "scp -F ssh_changed 127.0.0.1:x x")),
    // Nothing is known of what -q hides, nor of what a remote command says with this code.
    passing("ssh", "quiet", |lab| served(lab, "ssh -q -F ssh_bad 127.0.0.1 true")),
    passing("ssh", "remote command", |lab| served(lab, "ssh -F ssh_config 127.0.0.1 exit 255")),
    passing("ssh", "refused", |lab| alone(lab, &format!("ssh -F none -p {REFUSED} 127.0.0.1 true"))),
    passing("ssh", "not resolved", |lab| alone(lab, &format!("ssh -F none {UNRESOLVED} true"))),
    passing("ssh", "dropped", |lab| alone(lab, &format!("ssh -F none -p {} 127.0.0.1 true", Server::dropping().port))),
    passing("ssh", "jump not resolved", |lab| {
        served(lab, &format!("ssh -F ssh_config -J {UNRESOLVED} 127.0.0.1 true"))
    }),
    passing("scp", "refused", |lab| alone(lab, &format!("scp -F none -P {REFUSED} 127.0.0.1:x x"))),
    passing("scp", "no such file", |lab| served(lab, "scp -F ssh_config 127.0.0.1:/nonexistent/x x")),
];
