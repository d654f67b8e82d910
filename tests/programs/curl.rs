//! curl.

use crate::Case;
use crate::server::{REFUSED, Server, UNRESOLVED, plain};
use crate::support::{Finished, Lab, has_programs};
use crate::tls::{AUTHORITY, Certificate, TlsServer};

/// Each way that curl was brought to fail.
pub const CASES: &[Case] = &[
    case("malformed URL", "permanent", "", |lab| curl(lab, &["http://[::1"])),
    case("malformed URL", "permanent", "silent", |lab| curl(lab, &["-s", "http://a b/"])),
    case("malformed URL", "permanent", "port", |lab| curl(lab, &["-fsS", "http://127.0.0.1:99999/"])),
    case("malformed URL in a redirect", "transient", "", |lab| asking(lab, "-sSL", &["/astray"])),
    case("unknown protocol", "permanent", "", |lab| curl(lab, &["-sS", "htps://127.0.0.1/"])),
    case("bad usage", "permanent", "option", |lab| curl(lab, &["-s", "--nosuch", REFUSED])),
    case("bad usage", "permanent", "ambiguous", |lab| curl(lab, &["--ma", "3", REFUSED])),
    case("bad usage", "permanent", "value", |lab| curl(lab, &["-sS", REFUSED, "--max-time"])),
    case("bad usage", "permanent", "number", |lab| curl(lab, &["--max-time", "soon", REFUSED])),
    case("bad usage", "permanent", "no URL", |lab| curl(lab, &["-fsS"])),
    case("bad usage", "permanent", "alone", |lab| curl(lab, &[])),
    case("bad usage", "permanent", "beside another", |lab| curl(lab, &["-f", "--fail-with-body", REFUSED])),
    case("bad usage", "permanent", "unread", |lab| curl(lab, &["-s", "--no-such", "--stderr", "/dev/null"])),
    case("broken off", "transient", "no such settings", |lab| curl(lab, &["-sSK", "/no/such/file", REFUSED])),
    case("certificate refused", "permanent", "self-signed", |lab| refusing(lab, Certificate::SelfSigned, &[])),
    case("certificate refused", "permanent", "unknown issuer", |lab| refusing(lab, Certificate::Good, &[])),
    case("certificate refused", "permanent", "other name", |lab| refusing(lab, Certificate::OtherName, KNOWN)),
    case("certificate refused", "permanent", "other common name", |lab| {
        refusing(lab, Certificate::OtherCommonName, KNOWN)
    }),
    case("certificate refused", "permanent", "expired", |lab| refusing(lab, Certificate::Expired, KNOWN)),
    case("certificate not yet valid", "transient", "", |lab| refusing(lab, Certificate::NotYetValid, KNOWN)),
    case("status 400", "permanent", "", |lab| asking(lab, "-fsS", &["/400"])),
    case("status 401", "permanent", "", |lab| asking(lab, "-fsSL", &["/401"])),
    case("status 403", "permanent", "", |lab| asking(lab, "-fSs", &["/403"])),
    case("status 404", "permanent", "progress", |lab| asking(lab, "-f", &["/404"])),
    case("status 404", "permanent", "without it", |lab| asking(lab, "-fsS", &["/404"])),
    case("status 404", "permanent", "verbose", |lab| asking(lab, "-fv", &["/404"])),
    case("status 404", "permanent", "with body", |lab| asking(lab, "--fail-with-body", &["/404"])),
    case("status 404", "permanent", "last of three", |lab| asking(lab, "-fsS", &["/503", "/here", "/404"])),
    case("default:exit", "transient", "408", |lab| asking(lab, "-fsS", &["/408"])),
    case("default:exit", "transient", "425", |lab| asking(lab, "-fsS", &["/425"])),
    case("status 429", "throttling", "progress", |lab| asking(lab, "-f", &["/429"])),
    case("status 429", "throttling", "without it", |lab| asking(lab, "-fsS", &["/429"])),
    case("status 500", "transient", "", |lab| asking(lab, "-fsS", &["/500"])),
    case("status 502", "transient", "", |lab| asking(lab, "-fsS", &["/502"])),
    case("status 503", "transient", "progress", |lab| asking(lab, "-f", &["/503"])),
    case("status 503", "transient", "without it", |lab| asking(lab, "-fsS", &["/503"])),
    case("status 503", "transient", "last of two", |lab| asking(lab, "-fsS", &["/404", "/503"])),
    case("status 504", "transient", "", |lab| asking(lab, "-fsS", &["/504"])),
    case("default:exit", "transient", "522", |lab| asking(lab, "-fsS", &["/522"])),
    case("status not told", "transient", "", |lab| asking(lab, "-fs", &["/404"])),
    // Its code is the last URL's: the first one's status does not count.
    case("no HTTP status", "transient", "after 404", |lab| {
        let server = Server::new(plain);
        curl(lab, &["-fsS", &server.url("/404"), REFUSED])
    }),
    case("no HTTP status", "transient", "refused", |lab| curl(lab, &["-fsS", REFUSED])),
    case("no HTTP status", "transient", "unresolved", |lab| curl(lab, &["-fsS", UNRESOLVED])),
    case("no HTTP status", "transient", "proxy refused", |lab| {
        curl(lab, &["-fsS", "-x", REFUSED, "http://x.invalid/"])
    }),
    case("broken off", "transient", "empty", |lab| asking(lab, "-fsS", &["/empty"])),
    case("broken off", "transient", "reset", |lab| asking(lab, "-fsS", &["/reset"])),
    case("no HTTP status", "transient", "part", |lab| asking(lab, "-fsS", &["/part"])),
    case("broken off", "transient", "redirects", |lab| asking(lab, "-fsSL", &["/loop"])),
    case("broken off", "transient", "full disk", |lab| asking(lab, "-fsSo/dev/full", &["/here"])),
    case("default:exit", "transient", "garbage", |lab| asking(lab, "-fsS", &["/garbage"])),
    case("default:exit", "transient", "protocol of a redirect", |lab| asking(lab, "-fsSL", &["/to?htps://127.0.0.1/"])),
];

const KNOWN: &[&str] = &["--cacert", AUTHORITY];

const fn case(
    row: &'static str,
    class: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Result<Finished, String>,
) -> Case {
    Case { preset: "curl", row, class, how, provoke }
}

fn curl(lab: &Lab, arguments: &[&str]) -> Result<Finished, String> {
    if !has_programs(&["curl"]) {
        return Err("curl is not installed".to_owned());
    }
    Ok(lab.run("-n 1 -- curl").args(arguments).finish())
}

/// Asks a server for these paths.
fn asking(lab: &Lab, options: &str, paths: &[&str]) -> Result<Finished, String> {
    let server = Server::new(plain);
    let urls: Vec<_> = paths.iter().map(|path| server.url(path)).collect();
    let words: Vec<_> = [options].into_iter().chain(urls.iter().map(String::as_str)).collect();
    curl(lab, &words)
}

/// Asks a TLS server with such a certificate.
fn refusing(lab: &Lab, certificate: Certificate, options: &[&str]) -> Result<Finished, String> {
    let server = TlsServer::new(lab, certificate)?;
    curl(lab, &[&["-fsS", &server.url("/")], options].concat())
}
