//! Where a request goes, by the options.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use url::Url;

use super::{Asked, check_readable, text};
use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::config::env::Environment;
use crate::http::proxy::Proxies;
use crate::net::tls::{Store, TlsPlan};
use crate::net::{ConnectPlan, Family, Origin, Redirection};
use crate::units::parse_duration;

impl Asked<'_> {
    /// How connections are made.
    pub(super) fn connect(&self, environment: &dyn Environment) -> Result<ConnectPlan, UsageError> {
        let family = match (self.has(Id::Ipv4), self.has(Id::Ipv6)) {
            (true, true) => return Err(UsageError("--ipv4 and --ipv6 contradict each other: give one".into())),
            (true, false) => Family::V4,
            (false, true) => Family::V6,
            (false, false) => Family::Any,
        };
        let timeout = match self.text(Id::ConnectTimeout)? {
            None => None,
            Some(text) => Some(parse_duration(text).filter(|limit| !limit.is_zero()).ok_or_else(|| {
                UsageError(format!("--connect-timeout: '{text}' is not a time limit; valid are durations above zero"))
            })?),
        };
        if let Some(given) = self.last(Id::Cert) {
            // curl's FILE:PASSPHRASE, of which nothing is to be shown.
            let shown = given.value.to_string_lossy();
            if let Some((file, _)) = shown.split_once(':').filter(|_| !Path::new(&given.value).exists()) {
                let what = "a passphrase is not taken; openssl pkey -in KEY -out PLAIN takes it off the key";
                return Err(UsageError(format!("--cert: '{file}:...': {what}")));
            }
        }
        let identity = match (self.path(Id::Cert), self.path(Id::Key)) {
            (Some(certificate), key) => Some((certificate.clone(), key.unwrap_or(certificate))),
            (None, Some(_)) => {
                return Err(UsageError("--key needs the certificate that it belongs to: give --cert too".into()));
            }
            (None, None) => None,
        };
        for given in self.given.iter().filter(|given| matches!(given.id, Id::Cacert | Id::Cert | Id::Key)) {
            check_readable(given)?;
        }
        let named = |name| environment.get(name).map(|path| (name, PathBuf::from(path)));
        Ok(ConnectPlan {
            family,
            timeout,
            resolved: self.all(Id::Resolve).map(resolution).collect::<Result<_, _>>()?,
            redirections: self.all(Id::ConnectTo).map(redirection).collect::<Result<_, _>>()?,
            unix_socket: self.path(Id::UnixSocket),
            tls: TlsPlan {
                insecure: self.has(Id::Insecure),
                authorities: self.path(Id::Cacert).map(|path| ("--cacert", path)).or_else(|| named("CURL_CA_BUNDLE")),
                store: Store::named_by(environment),
                identity,
            },
        })
    }

    pub(super) fn proxies(&self, url: &Url, environment: &dyn Environment) -> Result<Proxies, UsageError> {
        let variable = |name: &str| {
            let value = environment.get(name).filter(|value| !value.is_empty())?;
            Some((name.to_owned(), value.to_string_lossy().into_owned()))
        };
        let either = |lower: &str, upper: &str| variable(lower).or_else(|| variable(upper));
        let urls = match self.text(Id::Proxy)? {
            Some("") => [None, None],
            Some(url) => [0, 1].map(|_| Some(("--proxy".to_owned(), url.to_owned()))),
            None => {
                let all = || either("all_proxy", "ALL_PROXY");
                // In a CGI program the upper-case name is a header of its client's.
                let http = variable("http_proxy")
                    .or_else(|| if variable("REQUEST_METHOD").is_some() { None } else { variable("HTTP_PROXY") });
                [http.or_else(all), either("https_proxy", "HTTPS_PROXY").or_else(all)]
            }
        };
        let direct = match self.text(Id::Noproxy)? {
            Some(hosts) => hosts.to_owned(),
            None => either("no_proxy", "NO_PROXY").map(|(_, hosts)| hosts).unwrap_or_default(),
        };
        let proxies = Proxies { urls, direct: direct.split([',', ' ']).map(str::to_owned).collect() };
        // What is wrong with the one that is used is said before anything is sent.
        if let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) {
            let origin = Origin { secure: url.scheme() == "https", host: host.to_owned(), port };
            proxies.find(&origin).map_err(|failure| UsageError(failure.to_string()))?;
        }
        Ok(proxies)
    }
}

fn resolution(given: &Given) -> Result<(String, u16, Vec<IpAddr>), UsageError> {
    let whole = text(given)?;
    let wrong = || UsageError(format!("--resolve: '{whole}' is not known; valid is HOST:PORT:ADDRESS[,ADDRESS]"));
    let (host, rest) = whole.trim_start_matches('+').split_once(':').ok_or_else(wrong)?;
    let (port, addresses) = rest.split_once(':').ok_or_else(wrong)?;
    let addresses: Result<Vec<_>, _> =
        addresses.split(',').map(|address| address.trim_matches(['[', ']']).parse()).collect();
    match (port.parse(), addresses) {
        (Ok(port), Ok(addresses)) if !host.is_empty() && !addresses.is_empty() => {
            Ok((host.to_owned(), port, addresses))
        }
        _ => Err(wrong()),
    }
}

fn redirection(given: &Given) -> Result<Redirection, UsageError> {
    let whole = text(given)?;
    let wrong = || UsageError(format!("--connect-to: '{whole}' is not known; valid is HOST:PORT:HOST:PORT"));
    let parts: Vec<_> = colon_parts(whole);
    let [host, port, to_host, to_port] = parts.as_slice() else { return Err(wrong()) };
    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let number = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) };
    Ok(Redirection { host: name(host), port: number(port)?, to_host: name(to_host), to_port: number(to_port)? })
}

/// The parts between colons that stand in no brackets.
fn colon_parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ':' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
