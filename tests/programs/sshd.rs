//! A real sshd on loopback, started for each connection, for whoever runs the tests.

use std::path::Path;

use crate::loopback::Server;
use crate::support::{Lab, has_programs, is_root};

/// Starts it and returns its port. In the scratch folder are configurations of clients:
/// `ssh_config` is let in, `ssh_bad` has a key that is refused, `ssh_many` too many of
/// them, and `ssh_changed` knows the server by another key.
pub fn start(lab: &Lab) -> Result<u16, String> {
    if !has_programs(&["ssh", "sshd", "ssh-keygen"]) {
        return Err("ssh or sshd is not installed".into());
    }
    if is_root() && !Path::new("/run/sshd").exists() {
        return Err("the folder that sshd wants as root is missing".into());
    }
    let folder = lab.path("");
    let folder = folder.display();
    for key in ["host", "good", "bad", "worse"] {
        lab.tool("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key]);
    }
    lab.write("authorized", lab.read("good.pub"));
    let config = lab.write(
        "sshd_config",
        format!(
            "HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxAuthTries 2\n\
             Subsystem sftp internal-sftp\n"
        ),
    );
    let port = Server::handing_to(lab, "sshd", &["-i", "-f", &config.to_string_lossy()]).port;
    for (name, key) in [("known", "host.pub"), ("known_before", "worse.pub")] {
        lab.write(name, format!("[127.0.0.1]:{port} {}", lab.read(key)));
    }
    for (name, known, keys) in [
        ("ssh_config", "known", &["good"][..]),
        ("ssh_bad", "known", &["bad"]),
        ("ssh_many", "known", &["bad", "worse", "host"]),
        ("ssh_changed", "known_before", &["good"]),
    ] {
        let keys = keys.iter().map(|key| format!("IdentityFile {folder}/{key}\n")).collect::<Vec<_>>().concat();
        lab.write(
            name,
            format!(
                "Port {port}\nBatchMode yes\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/{known}\n\
                 GlobalKnownHostsFile none\n{keys}"
            ),
        );
    }
    Ok(port)
}
