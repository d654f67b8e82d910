//! cargo, the one that built this test, with a registry of our own.

use std::path::{Path, PathBuf};

use crate::Case;
use crate::server::{REFUSED, Reply, Request, Server, UNRESOLVED};
use crate::support::{Finished, Lab, variable};
use crate::tls::{AUTHORITY, Certificate, TlsServer};

/// Each way that cargo was brought to fail.
pub const CASES: &[Case] = &[
    case("certificate refused", "permanent", "self-signed", |lab| refusing(lab, Certificate::SelfSigned, false)),
    case("certificate refused", "permanent", "unknown issuer", |lab| refusing(lab, Certificate::Good, false)),
    case("certificate refused", "permanent", "other name", |lab| refusing(lab, Certificate::OtherName, true)),
    case("certificate refused", "permanent", "expired", |lab| refusing(lab, Certificate::Expired, true)),
    case("certificate not yet valid", "transient", "", |lab| refusing(lab, Certificate::NotYetValid, true)),
    case("not logged in", "permanent", "fetch", |lab| fetching(lab, "private", "good")),
    case("not logged in", "permanent", "publish", |lab| asking(lab, "", "publish --registry local --no-verify")),
    case("malformed manifest", "permanent", "no name", |lab| {
        lab.write("Cargo.toml", "[package]\nversion = '1.0.0'\n");
        cargo(lab, REFUSED, "fetch")
    }),
    case("malformed manifest", "permanent", "feature", |lab| {
        lab.write("Cargo.toml", "cargo-features = ['nosuch']\n[package]\nname = 'tried'\n");
        cargo(lab, REFUSED, "fetch")
    }),
    case("malformed manifest", "permanent", "registry", |lab| fetching(lab, "unheard-of", "good")),
    case("lock file out of date", "permanent", "none", |lab| asking(lab, "", "fetch --locked")),
    case("lock file out of date", "permanent", "old", |lab| {
        lab.write("Cargo.lock", "version = 4\n");
        asking(lab, "", "check --frozen")
    }),
    case("compiler too old", "permanent", "", |lab| asking(lab, "rust-version = '1.9999'\n", "check")),
    case("no such package, target or feature", "permanent", "package", |lab| asking(lab, "", "check -p nosuch")),
    case("no such package, target or feature", "permanent", "target", |lab| asking(lab, "", "check -q --bin nosuch")),
    case("no such package, target or feature", "permanent", "feature", |lab| asking(lab, "", "check -F nosuch")),
    case("unknown command", "permanent", "", |lab| asking(lab, "", "nosuch")),
    case("unknown option", "permanent", "", |lab| asking(lab, "", "check --nosuch")),
    case("status 401", "permanent", "file", |lab| fetching(lab, "local", "file-401")),
    case("status 401", "permanent", "publish", |lab| publishing(lab, 401)),
    case("status 403", "permanent", "index", |lab| fetching(lab, "local", "index-403")),
    case("status 403", "permanent", "file", |lab| fetching(lab, "local", "file-403")),
    case("status 403", "permanent", "publish", |lab| publishing(lab, 403)),
    case("status 429", "throttling", "index", |lab| fetching(lab, "local", "index-429")),
    case("status 429", "throttling", "file", |lab| fetching(lab, "local", "file-429")),
    case("status 429", "throttling", "publish", |lab| publishing(lab, 429)),
    case("status 503", "transient", "index", |lab| fetching(lab, "local", "index-503")),
    case("status 503", "transient", "file", |lab| fetching(lab, "local", "file-503")),
    case("status 503", "transient", "publish", |lab| publishing(lab, 503)),
    case("default:exit", "transient", "408", |lab| fetching(lab, "local", "file-408")),
    case("default:exit", "transient", "425", |lab| fetching(lab, "local", "file-425")),
    case("default:exit", "transient", "522", |lab| fetching(lab, "local", "file-522")),
    case("default:exit", "transient", "test failed", |lab| {
        project(lab, "");
        lab.write("src/lib.rs", "#[test]\nfn fails() {\n    panic!();\n}\n");
        cargo(lab, REFUSED, "test")
    }),
    case("default:exit", "transient", "index 404", |lab| fetching(lab, "local", "index-404")),
    case("status 404", "transient", "file", |lab| fetching(lab, "local", "file-404")),
    case("status 404", "transient", "publish", |lab| publishing(lab, 404)),
    case("default:exit", "transient", "reset", |lab| fetching(lab, "local", "file-reset")),
    case("default:exit", "transient", "part", |lab| fetching(lab, "local", "file-part")),
    case("default:exit", "transient", "other checksum", |lab| fetching(lab, "local", "good")),
    case("default:exit", "transient", "version not there yet", |lab| {
        asking(lab, "[dependencies]\ngood = {version = '2', registry = 'local'}\n", "fetch")
    }),
    case("default:exit", "transient", "refused", |lab| {
        project(lab, &dependency("local", "good"));
        cargo(lab, REFUSED, "fetch")
    }),
    case("default:exit", "transient", "unresolved", |lab| {
        project(lab, &dependency("local", "good"));
        cargo(lab, UNRESOLVED, "fetch")
    }),
    case("default:exit", "transient", "git refused", |lab| {
        asking(lab, &format!("[dependencies]\ngood = {{git = '{REFUSED}/good'}}\n"), "fetch")
    }),
    case("default:exit", "transient", "compile error", |lab| {
        project(lab, "");
        lab.write("src/lib.rs", "pub fn broken() -> u8 { \"text\" }\n");
        cargo(lab, REFUSED, "check")
    }),
];

const fn case(
    row: &'static str,
    class: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "cargo", row, class, how, provoke }
}

/// A registry that knows every package, in version 1.0.0. The name of a package may say what
/// comes instead of its place in the index or of its file: `index-503`, `file-reset`.
fn registry(request: &Request) -> Reply {
    let server = &request.server;
    let name = request.path.rsplit('/').next().unwrap_or_default();
    let is_file = request.path.starts_with("/files/");
    let wanted = name.strip_prefix(if is_file { "file-" } else { "index-" });
    match (name, wanted) {
        ("config.json", _) => {
            let private = request.path.starts_with("/private/");
            Reply::text(format!(
                r#"{{"dl": "{server}/files/{{crate}}", "api": "{server}", "auth-required": {private}}}"#
            ))
        }
        (_, Some("reset")) => Reply::Reset,
        (_, Some("part")) => Reply::part(200),
        (_, Some(status)) => Reply::status(status.parse().unwrap_or(500)),
        _ if is_file => Reply::text("no archive, if you look at it"),
        _ => Reply::text(format!(
            r#"{{"name": "{name}", "vers": "1.0.0", "deps": [], "cksum": "{:064}", "features": {{}}, "yanked": false}}"#,
            0
        )),
    }
}

/// The path of cargo.
pub fn place() -> Result<PathBuf, String> {
    variable("CARGO").map(PathBuf::from).ok_or_else(|| "cargo does not run this test".to_owned())
}

/// Makes a package, with more in its manifest.
pub fn project(lab: &Lab, more: &str) {
    let about =
        "name = 'tried'\nversion = '0.1.0'\nedition = '2021'\ndescription = 'x'\nlicense = 'MIT'\ninclude = ['src']\n";
    lab.write("Cargo.toml", format!("[package]\n{about}{more}"));
    std::fs::create_dir_all(lab.path("src")).expect("a folder");
    lab.write("src/lib.rs", "");
}

/// A dependency on a package of that registry.
fn dependency(registry: &str, name: &str) -> String {
    format!("[dependencies]\n{name} = {{version = '1', registry = '{registry}'}}\n")
}

/// Runs cargo in the scratch folder, with the registries of this server.
fn cargo(lab: &Lab, server: &str, words: &str) -> Result<Finished, String> {
    let place = place()?;
    let run = lab.run("-n 1 --").arg(&place).words(words);
    Ok(with_settings(lab, server, run, &place).env("CARGO_NET_RETRY", "0").finish())
}

/// Gives cargo a home with the registries of this server.
pub fn with_settings<'a>(
    lab: &Lab,
    server: &str,
    run: crate::support::Run<'a>,
    place: &Path,
) -> crate::support::Run<'a> {
    std::fs::create_dir_all(lab.path("cargo")).expect("a folder");
    let registries = format!(
        "[registries]\nlocal.index = 'sparse+{server}/index/'\nprivate.index = 'sparse+{server}/private/'\n\
         private.credential-provider = 'cargo:token'\n"
    );
    lab.write("cargo/config.toml", registries);
    run.env("CARGO_HOME", lab.path("cargo")).env("RUSTC", place.with_file_name("rustc"))
}

/// Runs cargo in a package with more in its manifest.
fn asking(lab: &Lab, more: &str, words: &str) -> Result<Finished, String> {
    let server = Server::new(registry);
    project(lab, more);
    cargo(lab, &server.url(""), words)
}

/// Fetches a package.
fn fetching(lab: &Lab, registry: &str, name: &str) -> Result<Finished, String> {
    asking(lab, &dependency(registry, name), "fetch -q")
}

/// Publishes at a registry that answers with this status.
fn publishing(lab: &Lab, status: u16) -> Result<Finished, String> {
    let server = Server::new(move |request| match request.method.as_str() {
        "PUT" => Reply::Answer(status, String::new(), br#"{"errors": [{"detail": "so it is"}]}"#.to_vec()),
        _ => registry(request),
    });
    project(lab, "");
    cargo(lab, &server.url(""), "publish --registry local --no-verify --token given")
}

/// Asks a registry that has such a certificate, whose authority is known or not.
fn refusing(lab: &Lab, certificate: Certificate, known: bool) -> Result<Finished, String> {
    let server = TlsServer::new(lab, certificate)?;
    project(lab, &dependency("local", "good"));
    let place = place()?;
    let run = lab.run("-n 1 --").arg(&place).arg("fetch");
    let mut run = with_settings(lab, &server.url(""), run, &place).env("CARGO_NET_RETRY", "0");
    if known {
        run = run.env("CARGO_HTTP_CAINFO", lab.path(AUTHORITY));
    }
    Ok(run.finish())
}
