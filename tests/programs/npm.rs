//! npm, with a registry of our own.

use serde_json::{Value, json};

use crate::Case;
use crate::server::{REFUSED, Reply, Request, Server, UNRESOLVED};
use crate::support::{Finished, Lab, has_programs};
use crate::tls::{AUTHORITY, Certificate, TlsServer};

/// Each way that npm was brought to fail.
pub const CASES: &[Case] = &[
    case("certificate refused", "permanent", "self-signed", |lab| refusing(lab, Certificate::SelfSigned, false)),
    case("certificate refused", "permanent", "unknown issuer", |lab| refusing(lab, Certificate::Good, false)),
    case("certificate refused", "permanent", "unknown root", |lab| refusing(lab, Certificate::WithAuthority, false)),
    case("certificate refused", "permanent", "unknown chain", |lab| refusing(lab, Certificate::Chain, false)),
    case("certificate refused", "permanent", "other name", |lab| refusing(lab, Certificate::OtherName, true)),
    case("certificate refused", "permanent", "expired", |lab| refusing(lab, Certificate::Expired, true)),
    case("default:exit", "transient", "certificate not yet valid", |lab| refusing(lab, Certificate::NotYetValid, true)),
    case("not logged in", "permanent", "publish", |lab| asking(lab, "publish")),
    case("not logged in", "permanent", "one-time password", |lab| asking(lab, "view one-time")),
    case("malformed package name", "permanent", "scope", |lab| asking(lab, "install @@/x")),
    case("malformed package name", "permanent", "tag", |lab| asking(lab, "install good@a,b")),
    case("malformed package name", "permanent", "protocol", |lab| asking(lab, "install good@nosuch:1")),
    case("malformed package.json", "permanent", "", |lab| npm(lab, REFUSED, "install", "{\"name\": \"tried\",\n")),
    case("package for another platform", "permanent", "engine", |lab| asking(lab, "install --engine-strict engine")),
    case("package for another platform", "permanent", "system", |lab| asking(lab, "install system")),
    case("bad usage", "permanent", "ci without a lock file", |lab| asking(lab, "ci")),
    // What a script runs, and says, is another program's.
    case("default:exit", "transient", "no such script", |lab| asking(lab, "run nosuch")),
    case("status 401", "permanent", "view", |lab| asking(lab, "view status-401")),
    case("status 401", "permanent", "install", |lab| asking(lab, "install --loglevel=error status-401")),
    case("status 403", "permanent", "view", |lab| asking(lab, "view status-403")),
    case("status 403", "permanent", "file", |lab| asking(lab, "install -q file-403")),
    case("status 429", "throttling", "view", |lab| asking(lab, "view status-429")),
    case("status 429", "throttling", "file", |lab| asking(lab, "install file-429")),
    case("status 500", "transient", "", |lab| asking(lab, "view status-500")),
    case("status 503", "transient", "view", |lab| asking(lab, "view status-503")),
    case("status 503", "transient", "file", |lab| asking(lab, "install file-503")),
    case("default:exit", "transient", "silent", |lab| asking(lab, "view --silent status-401")),
    case("status 404", "transient", "view", |lab| asking(lab, "view status-404")),
    case("status 404", "transient", "file", |lab| asking(lab, "install file-404")),
    case("default:exit", "transient", "408", |lab| asking(lab, "view status-408")),
    case("status 409", "transient", "", |lab| asking(lab, "view status-409")),
    case("default:exit", "transient", "425", |lab| asking(lab, "view status-425")),
    case("default:exit", "transient", "522", |lab| asking(lab, "view status-522")),
    case("default:exit", "transient", "version not there yet", |lab| asking(lab, "install good@2")),
    case("default:exit", "transient", "damaged file", |lab| asking(lab, "install good")),
    case("default:exit", "transient", "no JSON", |lab| asking(lab, "install no-json")),
    case("default:exit", "transient", "reset", |lab| asking(lab, "view reset")),
    case("default:exit", "transient", "part", |lab| asking(lab, "view part")),
    case("default:exit", "transient", "refused", |lab| npm(lab, REFUSED, "install good", PROJECT)),
    case("default:exit", "transient", "unresolved", |lab| npm(lab, UNRESOLVED, "view good", PROJECT)),
    case("default:exit", "transient", "failed script", |lab| asking(lab, "run --silent failing")),
];

const PROJECT: &str = r#"{"name": "tried", "version": "1.0.0", "scripts": {"failing": "exit 1"}}"#;

const fn case(
    row: &'static str,
    class: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "npm", row, class, how, provoke }
}

/// A registry that knows every package, in version 1.0.0. The name of a package may say what
/// comes instead of it or of its file: `status-503`, `file-404`.
fn registry(request: &Request) -> Reply {
    let path = request.path.trim_start_matches('/');
    if let Some(name) = path.strip_prefix("files/") {
        let status = name.strip_prefix("file-").and_then(|status| status.parse().ok());
        return status.map_or_else(|| Reply::text("no archive, if you look at it"), Reply::status);
    }
    match path {
        "reset" => Reply::Reset,
        "part" => Reply::part(200),
        "no-json" => Reply::text("<html>Please log in to this hotel's network"),
        "one-time" => Reply::Answer(401, "WWW-Authenticate: OTP\r\n".to_owned(), Vec::new()),
        _ => path.strip_prefix("status-").and_then(|status| status.parse().ok()).map_or_else(
            || Reply::text(package(path, &request.server).to_string()),
            |status| Reply::Answer(status, String::new(), b"{}".to_vec()),
        ),
    }
}

/// What a registry says of a package.
fn package(name: &str, server: &str) -> Value {
    let file = json!({"tarball": format!("{server}/files/{name}"), "shasum": "0".repeat(40)});
    let mut version = json!({"name": name, "version": "1.0.0", "dist": file});
    match name {
        "engine" => version["engines"] = json!({"node": ">=999"}),
        "system" => version["os"] = json!(["win32"]),
        _ => {}
    }
    json!({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})
}

/// Runs npm in a project, with this registry.
fn npm(lab: &Lab, registry: &str, words: &str, project: &str) -> Result<Finished, String> {
    if !has_programs(&["npm", "node"]) {
        return Err("npm is not installed".to_owned());
    }
    lab.write("package.json", project);
    lab.write("home/.npmrc", format!("registry={registry}/\nfetch-retries=0\naudit=false\nupdate-notifier=false\n"));
    Ok(lab.run("-n 1 -- npm").words(words).finish())
}

/// Runs npm with a registry of our own.
fn asking(lab: &Lab, words: &str) -> Result<Finished, String> {
    let server = Server::new(registry);
    npm(lab, &server.url(""), words, PROJECT)
}

/// Runs npm with a registry that has such a certificate, whose authority is known or not.
fn refusing(lab: &Lab, certificate: Certificate, known: bool) -> Result<Finished, String> {
    let server = TlsServer::new(lab, certificate)?;
    let words = if known { format!("view --cafile={AUTHORITY} good") } else { "view good".to_owned() };
    npm(lab, &server.url(""), &words, PROJECT)
}
