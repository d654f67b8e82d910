//! docker: the real client, before a scripted daemon. Each of its messages is what a real
//! dockerd 20.10.24 was seen to say when a registry on loopback refused it, with details or
//! without; the statuses are those that the daemon's interface documents.

use crate::Case;
use crate::loopback::{REFUSED, Request, answer, answering_at};
use crate::support::{Finished, Lab, has_programs};

type Provoke = fn(&Lab) -> Result<Finished, String>;

const fn refused(row: &'static str, how: &'static str, provoke: Provoke) -> Case {
    Case { preset: "docker", row, class: "permanent", how, provoke }
}

/// A failure that may pass by itself.
const fn passing(how: &'static str, provoke: Provoke) -> Case {
    Case { class: "transient", ..refused("default:exit", how, provoke) }
}

/// Runs docker against the daemon at an address.
fn at(lab: &Lab, host: &str, line: &str) -> Result<Finished, String> {
    if !has_programs(&["docker"]) {
        return Err("docker is not installed".into());
    }
    Ok(lab.run("-n 1 -- docker").words(line).env("DOCKER_HOST", host).finish())
}

/// Runs docker where no daemon is needed.
fn alone(lab: &Lab, line: &str) -> Result<Finished, String> {
    at(lab, &format!("tcp://127.0.0.1:{REFUSED}"), line)
}

/// Runs docker before the scripted daemon.
fn served(lab: &Lab, line: &str) -> Result<Finished, String> {
    let socket = lab.path("docker.sock");
    answering_at(&socket, daemon);
    at(lab, &format!("unix://{}", socket.display()), line)
}

/// What the daemon answers: the name of the image says what is wrong with it.
fn daemon(request: &Request) -> Vec<u8> {
    let failed = |status, message| {
        answer(status, "Content-Type: application/json\r\n", &format!("{{\"message\":\"{message}\"}}"))
    };
    let target = request.target.as_str();
    if target.contains("/containers/create") {
        return failed("404 Not Found", "No such image: nosuch:1");
    }
    for (image, status, message) in [
        ("nosuch", "404 Not Found", "manifest for nosuch:1 not found: manifest unknown: manifest unknown"),
        ("nohead", "404 Not Found", "manifest unknown"),
        (
            "denied",
            "404 Not Found",
            "pull access denied for denied, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
        ),
        ("forbidden", "500 Internal Server Error", "denied"),
        ("unauthorized", "500 Internal Server Error", "unauthorized"),
        ("token", "500 Internal Server Error", "unauthorized: authentication required"),
        (
            "busy",
            "500 Internal Server Error",
            "toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading",
        ),
        ("down", "500 Internal Server Error", "received unexpected HTTP status: 503 Service Unavailable"),
        ("gone", "500 Internal Server Error", "Head \\\"http://127.0.0.1:1/v2/gone/manifests/1\\\": EOF"),
    ] {
        if target.contains(&format!("{image}&")) {
            return failed(status, message);
        }
    }
    answer("200 OK", "Api-Version: 1.41\r\nContent-Type: application/json\r\n", "{}")
}

/// Each way that it was brought to fail.
pub const CASES: &[Case] = &[
    refused("bad usage", "pull", |lab| alone(lab, "pull --nope x")),
    refused("bad usage", "run", |lab| alone(lab, "run -Z x")),
    refused("unknown command", "", |lab| alone(lab, "nosuch")),
    refused("wrong number of arguments", "", |lab| alone(lab, "pull")),
    refused("bad image name", "", |lab| alone(lab, "run UPPER:1")),
    refused("no such image there", "pull", |lab| served(lab, "pull nosuch:1")),
    refused("no such image there", "quiet", |lab| served(lab, "pull -q nohead:1")),
    refused("no such image there", "run", |lab| served(lab, "run --rm nosuch:1")),
    refused("authentication refused", "no access", |lab| served(lab, "pull denied:1")),
    refused("authentication refused", "forbidden", |lab| served(lab, "pull forbidden:1")),
    refused("authentication refused", "unauthorized", |lab| served(lab, "pull unauthorized:1")),
    refused("authentication refused", "token", |lab| served(lab, "pull token:1")),
    Case { class: "throttling", ..refused("too many requests", "", |lab| served(lab, "pull busy:1")) },
    passing("registry down", |lab| served(lab, "pull -q down:1")),
    passing("registry hung up", |lab| served(lab, "pull gone:1")),
    passing("no daemon", |lab| alone(lab, "pull x:1")),
    passing("no socket", |lab| at(lab, &format!("unix://{}", lab.path("nosuch").display()), "ps")),
];
