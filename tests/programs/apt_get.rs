//! apt-get, with folders of its own and a mirror on loopback.

use rustix::fs::{FlockOperation, fcntl_lock};

use crate::Case;
use crate::loopback::{REFUSED, Server, answer};
use crate::support::{Finished, Lab, Run, has_programs, is_root};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn refused(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "apt-get", row, class: "permanent", how, provoke }
}

/// A failure that may pass by itself.
const fn passing(how: &'static str, provoke: Provoke) -> Case {
    Case { class: "transient", ..refused("default:exit", how, provoke) }
}

/// A package of four bytes, and one that needs a package that is not there.
const PACKAGES: &str = "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m\nFilename: ./p.deb\nSize: 4\n\
     SHA256: 3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7\nDescription: p\n\n\
     Package: q\nVersion: 1\nArchitecture: all\nMaintainer: m\nDepends: nosuch\nFilename: ./q.deb\nSize: 4\n\
     SHA256: 3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7\nDescription: q\n";

/// A release signed with a key that nobody has any more.
const SIGNED: &str = "-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: t
Label: t
Suite: stable
Codename: stable
Date: Thu, 01 Jan 2026 00:00:00 UTC
SHA256:
 54d23dc3b6cf362b4a2e5b437bcd3ef1cb9431e41ef0f841dac1faefe77636da 368 Packages
-----BEGIN PGP SIGNATURE-----

iHUEARYIAB0WIQQHzshpvU1pQjF0CyvES7no6HykEwUCaw1AHQAKCRDES7no6Hyk
E9+zAQCcNAbGHu79/q/Xo3oFp506dn6EREHD+8yXjXMxxDbqGgEAsG3P648lekZi
t07d0c6iuYHqkaUdd7KgSFdBfqC/gQ8=
=12ul
-----END PGP SIGNATURE-----
";

/// A key that signed nothing.
const ANOTHER_KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw1EmhYJKwYBBAHaRw8BAQdAzxLCxFbvKkq1fD4bJEbISJrFk8V/3AinBiqN
dCqu+zq0GU90aGVyIDxvQGV4YW1wbGUuaW52YWxpZD6IkAQTFggAOBYhBMqX9nIB
Pn7AsuvzEXVhkXCVpFy8BQJrDUSaAhsDBQsJCAcCBhUKCQgLAgQWAgMBAh4BAheA
AAoJEHVhkXCVpFy8BHkBAJxIy+K+jU4wiLajV21jjZ/kZ82cyP4DMEIRFYJKLuN6
AQDGKzD9KwOnbdu/h+ZJzmLLTN1XIH0HPAdbNued9qB3Cg==
=Th2w
-----END PGP PUBLIC KEY BLOCK-----
";

/// Makes the folders; what the list of sources says follows.
fn prepare(lab: &Lab, sources: &str) -> Result<(), String> {
    if !has_programs(&["apt-get"]) {
        return Err("apt-get is not installed".into());
    }
    let folders = "mkdir -p state/lists/partial cache/archives/partial dpkg/info dpkg/updates etc/preferences.d \
                   etc/trusted.gpg.d etc/apt.conf.d etc/sources.d log; : >dpkg/status";
    lab.tool("sh", &["-ec", folders]);
    lab.write("sources.list", format!("{sources}\n"));
    let folder = lab.path("");
    let folder = folder.display();
    lab.write(
        "apt.conf",
        format!(
            "Dir::State \"{folder}/state\"; Dir::State::status \"{folder}/dpkg/status\";\n\
             Dir::Cache \"{folder}/cache\"; Dir::Log \"{folder}/log\"; Dir::Etc \"{folder}/etc\";\n\
             Dir::Etc::sourcelist \"{folder}/sources.list\"; Dir::Etc::sourceparts \"{folder}/etc/sources.d\";\n\
             Dir::Bin::dpkg \"true\"; APT::Sandbox::User \"\"; Acquire::Languages \"none\";\n\
             Acquire::http::Proxy \"DIRECT\"; Acquire::Check-Date \"false\";\n"
        ),
    );
    Ok(())
}

/// A run that finds these folders and no others.
fn run<'a>(lab: &'a Lab, options: &str) -> Run<'a> {
    lab.run("-n 1")
        .words(options)
        .env("APT_CONFIG", lab.path("apt.conf"))
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("--")
}

fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    prepare(lab, "")?;
    Ok(run(lab, "").words(line).finish())
}

/// A mirror with the packages, but whose archives answer so.
fn mirror(archive: fn() -> Vec<u8>) -> Server {
    Server::answering(move |request| match request.target.rsplit('/').next() {
        Some("Packages") => answer("200 OK", "", PACKAGES),
        Some("p.deb") => archive(),
        _ => answer("404 Not Found", "", ""),
    })
}

/// The list of sources for a mirror.
fn trusted(server: &Server) -> String {
    format!("deb [trusted=yes] http://127.0.0.1:{}/ ./", server.port)
}

/// Knows the mirror's packages; then a script changes something.
fn updated(lab: &Lab, archive: fn() -> Vec<u8>, script: &str) -> Result<Server, String> {
    let server = mirror(archive);
    prepare(lab, &trusted(&server))?;
    lab.tool("sh", &["-ec", &format!("APT_CONFIG=apt.conf apt-get -qq update; {script}")]);
    Ok(server)
}

/// Downloads a package from a mirror that answers so.
fn downloaded(lab: &Lab, archive: fn() -> Vec<u8>) -> Result<Finished, String> {
    let server = updated(lab, archive, "")?;
    let before = server.requests();
    let finished = run(lab, "--sole-retrier").words("apt-get -qq -y -d install p").finish();
    assert_eq!(server.requests() - before, 1, "apt-get retried by itself");
    Ok(finished)
}

/// Installs, while a file of its own is locked by somebody else.
fn locked(lab: &Lab, file: &str, line: &str) -> Result<Finished, String> {
    prepare(lab, "")?;
    let file = std::fs::File::create(lab.path(file)).expect("a file");
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("a lock");
    Ok(run(lab, "").words(line).finish())
}

/// Each way that it was brought to fail.
pub const CASES: &[Case] = &[
    refused("bad usage", "operation", |lab| alone(lab, "apt-get nosuch")),
    refused("bad usage", "option", |lab| alone(lab, "apt-get -qq --nope update")),
    refused("bad usage", "apt", |lab| alone(lab, "apt nosuch")),
    refused("bad list of sources", "type", |lab| {
        prepare(lab, "dep http://127.0.0.1/ ./")?;
        Ok(run(lab, "").words("apt-get -qq update").finish())
    }),
    refused("bad list of sources", "entry", |lab| {
        prepare(lab, "deb http://127.0.0.1/")?;
        Ok(run(lab, "").words("apt-get -y install p").finish())
    }),
    refused("signing key not known", "", |lab| {
        let server = Server::answering(|request| match request.target.rsplit('/').next() {
            Some("InRelease") => answer("200 OK", "", SIGNED),
            _ => answer("404 Not Found", "", ""),
        });
        prepare(lab, &format!("deb http://127.0.0.1:{}/ ./", server.port))?;
        lab.write("etc/trusted.gpg.d/another.asc", ANOTHER_KEY);
        Ok(run(lab, "").words("apt-get -qq update").finish())
    }),
    refused("repository became another", "", |lab| {
        let release = |name| {
            let sum = "f0f7c3bf2efbb0ab37aa7cbb5d2ec64eec2bcc9dff4d9c3d7ff5e2a8a92a9d3a";
            format!("Suite: {name}\nCodename: {name}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {sum} 4 Sources\n")
        };
        let first = std::sync::atomic::AtomicBool::new(true);
        let server = Server::answering(move |request| match request.target.rsplit('/').next() {
            Some("Release") if first.swap(false, std::sync::atomic::Ordering::Relaxed) => {
                answer("200 OK", "", &release("old"))
            }
            Some("Release") => answer("200 OK", "", &release("new")),
            _ => answer("404 Not Found", "", ""),
        });
        prepare(lab, &trusted(&server))?;
        lab.tool("sh", &["-ec", "APT_CONFIG=apt.conf apt-get -qq update || true"]);
        Ok(run(lab, "").words("apt-get -qq update").finish())
    }),
    refused("dpkg was interrupted", "", |lab| {
        updated(lab, Vec::new, ": >dpkg/updates/0001")?;
        Ok(run(lab, "").words("apt-get -qq -y install p").finish())
    }),
    refused("no right to lock", "", |lab| {
        updated(lab, Vec::new, "chmod 0 dpkg")?;
        // The superuser may open everything, unless that right is taken away.
        let run = run(lab, "--preset apt-get");
        let run = if is_root() { run.words("setpriv --bounding-set -dac_override,-dac_read_search") } else { run };
        Ok(run.words("apt-get -y install p").finish())
    }),
    refused("authentication refused", "", |lab| downloaded(lab, || answer("401 Unauthorized", "", ""))),
    Case {
        class: "throttling",
        ..refused("too many requests", "", |lab| downloaded(lab, || answer("429 Too Many Requests", "", "")))
    },
    passing("status 503", |lab| downloaded(lab, || answer("503 Service Unavailable", "", ""))),
    // An index that is newer or older than the archive: a mirror in the middle of its sync.
    passing("status 404", |lab| downloaded(lab, || answer("404 Not Found", "", ""))),
    passing("hash mismatch", |lab| downloaded(lab, || answer("200 OK", "", "oops"))),
    passing("size mismatch", |lab| downloaded(lab, || answer("200 OK", "", "<html>"))),
    // It asks once more for what a connection that it held open did not answer.
    passing("hung up", |lab| {
        let _server = updated(lab, Vec::new, "")?;
        Ok(run(lab, "--sole-retrier").words("apt-get -qq -y -d install p").finish())
    }),
    passing("refused", |lab| {
        updated(lab, Vec::new, "")?;
        let options = format!("-o Acquire::Retries=0 -o Acquire::http::Proxy=http://127.0.0.1:{REFUSED}");
        Ok(run(lab, "").words(&format!("apt-get {options} -qq -y -d install p")).finish())
    }),
    passing("captive portal", |lab| {
        let server = Server::answering(|_| answer("200 OK", "Content-Type: text/html\r\n", "<html>"));
        prepare(lab, &format!("deb http://127.0.0.1:{}/ ./", server.port))?;
        Ok(run(lab, "").words("apt-get -qq update").finish())
    }),
    passing("no such package", |lab| alone(lab, "apt-get -qq -y install nosuch")),
    passing("unmet dependency", |lab| {
        updated(lab, Vec::new, "")?;
        Ok(run(lab, "").words("apt-get -qq -y install q").finish())
    }),
    passing("dpkg locked", |lab| locked(lab, "dpkg/lock-frontend", "apt-get -y install p")),
    passing("lists locked", |lab| locked(lab, "state/lists/lock", "apt-get update")),
    passing("archives locked", |lab| {
        let _server = updated(lab, Vec::new, "")?;
        let file = std::fs::File::create(lab.path("cache/archives/lock")).expect("a file");
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("a lock");
        Ok(run(lab, "").words("apt-get -y -d install p").finish())
    }),
];
