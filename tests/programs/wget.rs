//! wget: GNU's, and `BusyBox`'s under the same name.

use crate::Case;
use crate::server::{REFUSED, Server, UNRESOLVED, plain};
use crate::support::{Finished, Lab, has_programs};
use crate::tls::{AUTHORITY, Certificate, TlsServer};

/// Each way that wget was brought to fail.
pub const CASES: &[Case] = &[
    case("bad usage", "permanent", "option", |lab| wget(lab, &["--nosuch", REFUSED])),
    case("bad usage", "permanent", "value", |lab| wget(lab, &["-q", "--timeout=soon", REFUSED])),
    case("bad usage", "permanent", "settings", |lab| {
        lab.write("home/.wgetrc", "nosuch = 1\n");
        wget(lab, &["-nv", REFUSED])
    }),
    case("no URL", "permanent", "", |lab| wget(lab, &["-nv"])),
    case("malformed URL", "permanent", "scheme", |lab| wget(lab, &["htps://127.0.0.1/"])),
    case("malformed URL", "permanent", "no host", |lab| wget(lab, &["http://"])),
    case("malformed URL", "permanent", "port", |lab| wget(lab, &["-nv", "http://127.0.0.1:99999/"])),
    case("malformed URL", "permanent", "address", |lab| wget(lab, &["-nv", "http://[::1"])),
    case("certificate refused", "permanent", "self-signed", |lab| refusing(lab, Certificate::SelfSigned, false)),
    case("certificate refused", "permanent", "unknown issuer", |lab| refusing(lab, Certificate::Good, false)),
    case("certificate refused", "permanent", "other name", |lab| refusing(lab, Certificate::OtherName, true)),
    case("certificate refused", "permanent", "expired", |lab| refusing(lab, Certificate::Expired, true)),
    case("certificate not yet valid", "transient", "", |lab| refusing(lab, Certificate::NotYetValid, true)),
    case("authentication refused", "permanent", "", |lab| asking(lab, &["-nv"], &["/401"])),
    case("status 403", "permanent", "", |lab| asking(lab, &["-nv"], &["/403"])),
    case("status 404", "permanent", "verbose", |lab| asking(lab, &[], &["/404"])),
    case("status 404", "permanent", "terse", |lab| asking(lab, &["-nv"], &["/404"])),
    case("status 404", "permanent", "headers shown", |lab| asking(lab, &["-S"], &["/404"])),
    case("status 404", "permanent", "with content", |lab| asking(lab, &["-nv", "--content-on-error"], &["/404"])),
    case("status 404", "permanent", "last of three", |lab| asking(lab, &["-nv"], &["/503", "/here", "/404"])),
    case("status 404", "permanent", "BusyBox", |lab| busybox(lab, "/404")),
    case("default:exit", "transient", "408", |lab| asking(lab, &["-nv"], &["/408"])),
    case("default:exit", "transient", "425", |lab| asking(lab, &["-nv"], &["/425"])),
    case("status 429", "throttling", "", |lab| asking(lab, &["-nv"], &["/429"])),
    case("status 429", "throttling", "BusyBox", |lab| busybox(lab, "/429")),
    case("status 500", "transient", "", |lab| asking(lab, &["-nv"], &["/500"])),
    case("status 502", "transient", "", |lab| asking(lab, &["-nv"], &["/502"])),
    case("status 503", "transient", "verbose", |lab| asking(lab, &[], &["/503"])),
    case("status 503", "transient", "terse", |lab| asking(lab, &["-nv"], &["/503"])),
    case("status 503", "transient", "last of two", |lab| asking(lab, &["-nv"], &["/404", "/503"])),
    case("status 503", "transient", "BusyBox", |lab| busybox(lab, "/503")),
    case("default:exit", "transient", "522", |lab| asking(lab, &["-nv"], &["/522"])),
    case("default:exit", "transient", "no status line", |lab| asking(lab, &["-q"], &["/404"])),
    case("default:exit", "transient", "broken link", |lab| asking(lab, &["-nv", "--spider"], &["/404"])),
    case("default:exit", "transient", "redirects", |lab| asking(lab, &["-nv"], &["/loop"])),
    case("default:exit", "transient", "BusyBox, empty", |lab| busybox(lab, "/empty")),
    case("network failure", "transient", "refused", |lab| wget(lab, &["-nv", "-t1", REFUSED])),
    case("network failure", "transient", "unresolved", |lab| wget(lab, &["-nv", "-t1", UNRESOLVED])),
    case("network failure", "transient", "empty", |lab| asking(lab, &["-nv", "-t1"], &["/empty"])),
    case("network failure", "transient", "reset", |lab| asking(lab, &["-nv", "-t1"], &["/reset"])),
    case("network failure", "transient", "part", |lab| asking(lab, &["-nv", "-t1"], &["/part"])),
    case("network failure", "transient", "504", |lab| asking(lab, &["-nv", "-t1"], &["/504"])),
    // The lowest code counts, so the status is not all that failed.
    case("network failure", "transient", "before 404", |lab| {
        let server = Server::new(plain);
        wget(lab, &["-nv", "-t1", REFUSED, &server.url("/404")])
    }),
    case("file not written", "transient", "full disk", |lab| asking(lab, &["-nv", "-O", "/dev/full"], &["/here"])),
];

const fn case(
    row: &'static str,
    class: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "wget", row, class, how, provoke }
}

fn wget(lab: &Lab, arguments: &[&str]) -> Result<Finished, String> {
    if !has_programs(&["wget"]) {
        return Err("wget is not installed".to_owned());
    }
    Ok(lab.run("-n 1 -- wget").args(arguments).finish())
}

/// Asks a server for these paths.
fn asking(lab: &Lab, options: &[&str], paths: &[&str]) -> Result<Finished, String> {
    let server = Server::new(plain);
    let urls: Vec<_> = paths.iter().map(|path| server.url(path)).collect();
    let words: Vec<_> = options.iter().copied().chain(urls.iter().map(String::as_str)).collect();
    wget(lab, &words)
}

/// Asks a server, as the wget of `BusyBox`.
fn busybox(lab: &Lab, path: &str) -> Result<Finished, String> {
    if !has_programs(&["busybox"]) {
        return Err("busybox is not installed".to_owned());
    }
    let place = lab.tool("sh", &["-c", "command -v busybox"]);
    std::os::unix::fs::symlink(place.trim(), lab.path("bin/wget")).expect("a link");
    let server = Server::new(plain);
    Ok(lab.run("-n 1 -- wget -q -O there").arg(server.url(path)).finish())
}

/// Asks a TLS server with such a certificate, whose authority is known or not.
fn refusing(lab: &Lab, certificate: Certificate, known: bool) -> Result<Finished, String> {
    let server = TlsServer::new(lab, certificate)?;
    let authority = format!("--ca-certificate={AUTHORITY}");
    wget(lab, &["-nv", &server.url("/"), if known { &authority } else { "--no-hsts" }])
}
