//! Proxies: which is used for which host, and how one is asked for the way through.

use std::cell::Cell;
use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::address::without_password;
use super::framing::Head;
use crate::cause::cause;
use crate::net::{Connection, Failure, Fault, Got, Origin, Waiter, percent_decoded};
use crate::policy::response::Response;

/// The port of a proxy whose URL has none, as curl has it.
const PROXY_PORT: u16 = 1080;

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `Proxy-Authorization`, where it wants one.
    pub authorization: Option<String>,
}

impl Proxy {
    /// Asks this proxy for a way through, which makes the connection one to somewhere else.
    /// `agent` is the name of who asks; it may be empty. `refusal` is set to the answer by which
    /// the way is refused: it may say when to come back.
    pub fn tunnel(
        &self,
        connection: &mut Connection,
        to: &Origin,
        agent: &str,
        waiter: &Waiter<'_>,
        refusal: &Cell<Option<Response>>,
    ) -> Result<(), Failure> {
        let told = |error: &dyn std::fmt::Display| format!("the proxy {}:{}: {error}", self.host, self.port);
        let lost = |error: &dyn std::fmt::Display| Failure::new(Fault::Receive, told(error));
        let target = format!("{}:{}", to.host, to.port);
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        let fields = [
            ("Proxy-Authorization", self.authorization.as_deref().unwrap_or_default()),
            ("User-Agent", agent),
            ("Proxy-Connection", "Keep-Alive"),
        ];
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        request.push_str("\r\n");
        let mut rest = request.as_bytes();
        loop {
            if let Some((head, length)) = Head::parse(connection.received())? {
                connection.consume(length);
                return match head.status {
                    100..200 => continue,
                    200..300 => Ok(()),
                    407 => {
                        let remedy = "it wants to know who asks (status 407): give it http://USER:PASSWORD@HOST:PORT";
                        Err(Failure::new(Fault::ProxyRefused, told(&remedy)))
                    }
                    status => {
                        let fault = match status {
                            429 => Fault::ProxyBusy,
                            500.. => Fault::Receive,
                            _ => Fault::ProxyRefused,
                        };
                        refusal.set(Some(Response { status, headers: head.fields, body: Vec::new() }));
                        Err(Failure::new(fault, told(&format!("it refuses the way to {target} with status {status}"))))
                    }
                };
            }
            if !rest.is_empty() {
                let count = connection.put(rest).map_err(|error| lost(&cause(&error)))?;
                rest = &rest[count..];
            }
            let mut fds = vec![connection.interest(!rest.is_empty())];
            waiter.wait(&mut fds, None)?;
            if connection.fill().map_err(|error| lost(&cause(&error)))? == Got::End {
                return Err(lost(&"it closed the connection"));
            }
        }
    }
}

/// Which proxy is used for which host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For http, and for https: where it was given, and what.
    pub urls: [Option<(String, String)>; 2],
    /// Hosts to be reached without; a `*` alone means all.
    pub direct: Vec<String>,
}

impl Proxies {
    /// The proxy for this origin.
    pub fn find(&self, origin: &Origin) -> Result<Option<Proxy>, Failure> {
        let Some((place, url)) = &self.urls[usize::from(origin.secure)] else { return Ok(None) };
        if self.direct == ["*"] || self.direct.iter().any(|pattern| is_meant(pattern, &origin.host)) {
            return Ok(None);
        }
        let shown = without_password(url);
        let wrong = |what: &dyn std::fmt::Display| Failure::new(Fault::Scheme, format!("{place}: '{shown}': {what}"));
        let text = if url.contains("://") { url.clone() } else { format!("http://{url}") };
        let scheme = text.split("://").next().unwrap_or_default().to_ascii_lowercase();
        match scheme.as_str() {
            "http" => {}
            "https" => {
                return Err(wrong(&"no TLS is spoken to proxies; name an http: one, which https: goes through too"));
            }
            socks if socks.starts_with("socks") => {
                return Err(wrong(&"SOCKS is not spoken; name an http: proxy, or let curl do it: retryx -- curl ..."));
            }
            _ => return Err(wrong(&"such a proxy is not known, only http: ones")),
        }
        // The port that the URL standard leaves out is no other than one that was never there.
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('@') {
            return Err(wrong(&"a /, ? or # in a name or password is to be percent-encoded: %2F, %3F, %23"));
        }
        let parsed = Url::parse(&text).map_err(|error| wrong(&error))?;
        let has_name = !parsed.username().is_empty() || parsed.password().is_some();
        let authorization = has_name.then(|| {
            let name = percent_decoded(parsed.username());
            let pair = [name, b":".to_vec(), percent_decoded(parsed.password().unwrap_or_default())].concat();
            format!("Basic {}", STANDARD.encode(pair))
        });
        let host = parsed.host_str().unwrap_or_default().to_owned();
        let default = if authority.trim_end_matches(':').ends_with(":80") { 80 } else { PROXY_PORT };
        match parsed.port().unwrap_or(default) {
            0 => Err(wrong(&"there is no port 0")),
            port => Ok(Some(Proxy { host, port, authorization })),
        }
    }
}

/// Whether a pattern of `NO_PROXY` means this host: itself, a domain above it, an address or
/// a block of addresses.
fn is_meant(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim().trim_start_matches('.').to_ascii_lowercase();
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    if pattern.is_empty() {
        return false;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_in_block(&pattern, address);
    }
    let pattern = pattern.trim_end_matches('.');
    host == pattern || host.strip_suffix(pattern).is_some_and(|rest| rest.ends_with('.'))
}

fn is_in_block(block: &str, address: IpAddr) -> bool {
    let (base, bits) = block.split_once('/').unwrap_or((block, ""));
    let Ok(base) = base.trim_matches(['[', ']']).parse::<IpAddr>() else { return false };
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((base_number, width), (number, other)) = (number(base), number(address));
    let bits = if bits.is_empty() { Some(width) } else { bits.parse().ok().filter(|bits| *bits <= width) };
    let Some(bits) = bits else { return false };
    let mask = if bits == 0 { 0 } else { u128::MAX << (128 - bits) };
    width == other && base_number & mask == number & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_proxy_are_told_from_others() {
        for (pattern, host, meant) in [
            ("example.com", "example.com", true),
            (".example.com", "www.Example.com", true),
            ("example.com", "badexample.com", false),
            ("*", "x", false),
            ("", "x", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("::1", "[::1]", true),
            ("0.0.0.0/0", "[::1]", false),
            ("10.0.0.0/99", "10.0.0.0", false),
        ] {
            assert_eq!(is_meant(pattern, host), meant, "{pattern} {host}");
        }
    }
}
