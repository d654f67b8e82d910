//! git, over each of its transports.

use std::fs::File;

use crate::loopback::{REFUSED, Server, UNRESOLVED, answer};
use crate::support::{Finished, Lab, Run, Running, has_programs, wait_until};
use crate::{Case, sshd};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn refused(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "git", row, class: "permanent", how, provoke }
}

/// A failure that may pass by itself.
const fn passing(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { class: "transient", ..refused(row, how, provoke) }
}

/// A run of git, whose words stand in one line, as a script would have it.
fn git<'a>(lab: &'a Lab, line: &str) -> Run<'a> {
    lab.run("-n 1 --").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").arg("git").words(line)
}

/// Runs git without a server.
fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    if !has_programs(&["git"]) {
        return Err("git is not installed".into());
    }
    Ok(git(lab, line).finish())
}

/// Runs git after a script has made repositories: `served/x.git` with one commit, which
/// `work` has too, and `other` beside a commit of its own.
fn beside(lab: &Lab, script: &str, line: &str) -> Result<Finished, String> {
    prepare(lab, script)?;
    Ok(git(lab, line).finish())
}

fn prepare(lab: &Lab, script: &str) -> Result<(), String> {
    if !has_programs(&["git"]) {
        return Err("git is not installed".into());
    }
    lab.write("home/.gitconfig", "[user]\nname = n\nemail = n@example.invalid\n[init]\ndefaultBranch = main\n");
    let repositories = "git init -q --bare served/x.git; for i in work other; do git clone -q served/x.git $i; done
        commit() { echo $2 >$1/a; git -C $1 add a; git -C $1 commit -qm $2; }
        commit work 1; git -C work push -q origin main
        git -C other pull -q origin main; commit other 2; commit work 3; git -C work push -q origin main";
    lab.tool("sh", &["-euc", &format!("{repositories}\n{script}")]);
    Ok(())
}

/// Clones over HTTP from a server that answers so.
fn cloned(lab: &Lab, reply: fn() -> Vec<u8>) -> Result<Finished, String> {
    let server = Server::answering(move |_| reply());
    alone(lab, &format!("clone -q http://u:p@127.0.0.1:{}/x.git new", server.port))
}

/// Clones over HTTP from a server that talks well until the second request.
fn asked_twice(lab: &Lab, reply: fn() -> Vec<u8>) -> Result<Finished, String> {
    let server = Server::answering(move |request| match request.method.as_str() {
        "GET" => answer(
            "200 OK",
            "Content-Type: application/x-git-upload-pack-advertisement\r\n",
            "001e# service=git-upload-pack\n0000000eversion 2\n000cls-refs\n000afetch\n0000",
        ),
        _ => reply(),
    });
    alone(lab, &format!("clone -q http://127.0.0.1:{}/x.git new", server.port))
}

/// Clones over ssh with one of the configurations that the server comes with.
fn over_ssh(lab: &Lab, config: &str, from: &str) -> Result<Finished, String> {
    if !has_programs(&["git"]) {
        return Err("git is not installed".into());
    }
    sshd::start(lab)?;
    Ok(git(lab, &format!("clone -q {from} new")).env("GIT_SSH_COMMAND", format!("ssh -F {config}")).finish())
}

/// A real server of TLS whose certificate nobody has signed.
fn tls(lab: &Lab) -> Result<(Running, String), String> {
    if !has_programs(&["openssl"]) {
        return Err("openssl is not installed".into());
    }
    let words = "req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=127.0.0.1";
    lab.tool("openssl", &words.split(' ').collect::<Vec<_>>());
    let log = File::create(lab.path("tls")).expect("a file");
    let server = lab.program("openssl").words("s_server -www -accept 127.0.0.1:0 -key key -cert cert");
    let server = server.stdout(log).start();
    let address = || lab.read("tls").lines().find_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned));
    wait_until("openssl listens", || address().is_some());
    Ok((server, address().expect("an address")))
}

/// Each way that it was brought to fail.
pub const CASES: &[Case] = &[
    refused("bad usage", "", |lab| alone(lab, "clone --nope x")),
    refused("bad usage", "of git itself", |lab| alone(lab, "--nope")),
    refused("unknown command", "", |lab| alone(lab, "nosuch")),
    refused("unknown transport", "", |lab| alone(lab, "clone -q nosuch://127.0.0.1/x new")),
    refused("malformed URL", "", |lab| alone(lab, "clone -q http://[::1/x new")),
    refused("no such repository", "http", |lab| cloned(lab, || answer("404 Not Found", "", ""))),
    refused("no such repository", "verbose", |lab| {
        let server = Server::answering(|_| answer("404 Not Found", "", ""));
        alone(lab, &format!("ls-remote http://127.0.0.1:{}/x.git", server.port))
    }),
    refused("not a repository", "ssh", |lab| over_ssh(lab, "ssh_config", "127.0.0.1:/nosuch/x.git")),
    refused("not a repository", "no such remote", |lab| beside(lab, "", "-C work push -q nosuch main")),
    refused("repository not served", "", |lab| {
        if !has_programs(&["git"]) {
            return Err("git is not installed".into());
        }
        let server = Server::handing_to(lab, "git", &["daemon", "--inetd", "--export-all", "/nosuch"]);
        alone(lab, &format!("clone -q git://127.0.0.1:{}/nosuch/x.git new", server.port))
    }),
    refused("authentication refused", "", |lab| {
        cloned(lab, || answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", ""))
    }),
    refused("ssh key refused", "", |lab| over_ssh(lab, "ssh_bad", "127.0.0.1:x.git")),
    refused("host key refused", "", |lab| over_ssh(lab, "ssh_changed", "127.0.0.1:x.git")),
    refused("certificate refused", "", |lab| {
        let (_server, address) = tls(lab)?;
        alone(lab, &format!("clone -q https://{address}/x.git new"))
    }),
    refused("destination not empty", "", |lab| beside(lab, "", "clone -q served/x.git work")),
    refused("not in a repository", "", |lab| alone(lab, "fetch -q")),
    refused("repository of another user", "", |lab| {
        prepare(lab, "")?;
        Ok(git(lab, "-C work fetch -q").env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1").finish())
    }),
    refused("push not a fast-forward", "fetch first", |lab| beside(lab, "", "-C other push -q origin main")),
    refused("push not a fast-forward", "behind", |lab| {
        beside(lab, "git -C other fetch -q", "-C other push origin main")
    }),
    refused("no such branch here", "", |lab| beside(lab, "", "-C work push -q origin nosuch")),
    refused("diverged branches", "ff only", |lab| beside(lab, "", "-C other pull -q --ff-only origin main")),
    refused("diverged branches", "not said how", |lab| beside(lab, "", "-C other pull -q origin main")),
    refused("unresolved conflict", "", |lab| {
        beside(lab, "git -C other pull -q --no-rebase origin main || true", "-C other pull -q origin main")
    }),
    refused("status 403", "", |lab| cloned(lab, || answer("403 Forbidden", "", ""))),
    refused("status 403", "second request", |lab| asked_twice(lab, || answer("403 Forbidden", "", ""))),
    Case {
        class: "throttling",
        ..refused("status 429", "", |lab| cloned(lab, || answer("429 Too Many Requests", "Retry-After: 1\r\n", "")))
    },
    passing("status 503", "", |lab| cloned(lab, || answer("503 Service Unavailable", "", ""))),
    passing("status 502", "second request", |lab| asked_twice(lab, || answer("502 Bad Gateway", "", ""))),
    // A status of somebody's own, as content delivery networks have.
    passing("default:exit", "status 522", |lab| cloned(lab, || answer("522 Unknown", "", ""))),
    passing("default:exit", "status 408", |lab| cloned(lab, || answer("408 Request Timeout", "", ""))),
    passing("default:exit", "captive portal", |lab| {
        cloned(lab, || answer("200 OK", "Content-Type: text/html\r\n", "<html>please log in</html>\n"))
    }),
    passing("default:exit", "hung up", |lab| cloned(lab, Vec::new)),
    passing("default:exit", "broken off", |lab| {
        cloned(lab, || b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 99\r\n\r\n001e".to_vec())
    }),
    passing("default:exit", "second request hung up", |lab| asked_twice(lab, Vec::new)),
    passing("default:exit", "refused", |lab| alone(lab, &format!("clone -q http://127.0.0.1:{REFUSED}/x new"))),
    passing("default:exit", "not resolved", |lab| alone(lab, &format!("clone -q http://{UNRESOLVED}/x new"))),
    passing("default:exit", "git refused", |lab| alone(lab, &format!("clone -q git://127.0.0.1:{REFUSED}/x new"))),
    passing("default:exit", "ssh refused", |lab| {
        lab.write("ssh_port", format!("Port {REFUSED}\nBatchMode yes\n"));
        let run = git(lab, "clone -q 127.0.0.1:x new").env("GIT_SSH_COMMAND", "ssh -F ssh_port");
        if has_programs(&["git", "ssh"]) { Ok(run.finish()) } else { Err("git or ssh is not installed".into()) }
    }),
    // Not known from a token's source or an account's service that fails for a moment.
    passing("default:exit", "nobody to ask", |lab| {
        let server = Server::answering(|_| answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", ""));
        alone(lab, &format!("clone -q http://127.0.0.1:{}/x.git new", server.port))
    }),
    passing("default:exit", "no such path", |lab| alone(lab, "clone -q /nosuch/x.git new")),
    passing("default:exit", "no such branch there", |lab| beside(lab, "", "-C work fetch -q origin nosuch")),
    passing("default:exit", "index locked", |lab| beside(lab, "touch work/.git/index.lock", "-C work add a")),
    passing("default:exit", "reference locked", |lab| {
        beside(lab, "commit work 4; touch served/x.git/refs/heads/main.lock", "-C work push -q origin main")
    }),
];
