//! The address of a Redis server, read from text. Pure: nothing is opened or asked.

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::net::percent_decoded;
use crate::units::parse_duration;

/// Where a Redis or Valkey server is, and how to get in. Neither `Debug` nor `Display` tells
/// a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    pub(super) server: Server,
    pub(super) database: u32,
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) authorities: Option<PathBuf>,
    pub(super) identity: Option<(PathBuf, PathBuf)>,
    pub(super) timeout: Option<Duration>,
    shown: String,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Server {
    /// At a port of a host.
    Network {
        /// The host, an IPv6 address in brackets.
        host: String,
        /// The port.
        port: u16,
        /// Whether TLS is spoken.
        secure: bool,
    },
    /// At a socket in the file system.
    Socket(PathBuf),
}

/// What a server asks for.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Password {
    /// It stands in the address.
    Given(Vec<u8>),
    /// It is the content of a file, which is read when it is needed.
    File(PathBuf),
}

const PORT: u16 = 6379;

/// The shortest and the longest timeout: an attempt may wait for it twice.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

/// What an address looks like.
const FORM: &str = "valid is redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]";

/// What to do about a password.
const ENCODE: &str = "in a user or password each of / ? # @ : % is percent-encoded, as in %2F";

impl RedisAddress {
    /// Reads an address. The error is a fragment that never holds any of the text: a password
    /// may stand anywhere in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let scheme = &scheme.to_ascii_lowercase()[..];
        let secure = match scheme {
            "redis" | "valkey" | "unix" | "redis+unix" => false,
            "rediss" | "valkeys" => true,
            _ => {
                return Err(
                    "this is no store; valid are file (its folder is --state-dir), redis://HOST, rediss://HOST \
                            and unix:///SOCKET"
                        .into(),
                );
            }
        };
        let is_socket = scheme.ends_with("unix");
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("the address has a space or control character in it; percent-encode these".into());
        }
        if !is_encoded(rest) {
            return Err(format!("a % of the address stands before what is no two hexadecimal digits: {ENCODE}"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        if place.contains('#') || path.contains('@') || query.contains(['?', '#', '@']) {
            return Err(format!("the address cannot be read: {ENCODE}"));
        }
        let (entrance, host) = authority.rsplit_once('@').map_or((None, authority), |(who, host)| (Some(who), host));
        let (user, password) = entrance.map_or(Ok((None, None)), read_entrance)?;
        let mut address = Self {
            server: Server::Socket(PathBuf::new()),
            database: 0,
            user,
            password: password.map(Password::Given),
            authorities: None,
            identity: None,
            timeout: None,
            shown: String::new(),
        };
        if is_socket {
            if !host.is_empty() || path.len() < 2 {
                return Err("the address of a socket is unix:///PATH, an absolute path".into());
            }
            address.server = Server::Socket(decoded(path)?.into());
        } else {
            let (host, port) = read_host(host)?;
            address.server = Server::Network { host: host.to_owned(), port, secure };
            address.database = match path.trim_start_matches('/') {
                "" => 0,
                digits => read_database(digits)?,
            };
        }
        address.read_parameters(query, is_socket, secure)?;
        if address.user.is_some() && address.password.is_none() {
            return Err(
                "the address has a user and no password; give USER:PASSWORD@HOST, ?password-file=FILE, or USER:@HOST \
                 for a user without one"
                    .into(),
            );
        }
        address.shown = match &address.server {
            Server::Network { host, port, .. } => format!("{scheme}://{host}:{port}/{}", address.database),
            Server::Socket(path) if address.database == 0 => format!("{scheme}://{}", path.display()),
            Server::Socket(path) => format!("{scheme}://{}?db={}", path.display(), address.database),
        };
        Ok(address)
    }

    /// Whether the server is spoken to by TLS.
    pub(super) fn speaks_tls(&self) -> bool {
        matches!(self.server, Server::Network { secure: true, .. })
    }

    /// Whether what is shown is all that leads there.
    pub fn is_shown_whole(&self) -> bool {
        self.password.is_none() && self.authorities.is_none() && self.identity.is_none()
    }

    fn read_parameters(&mut self, query: &str, is_socket: bool, secure: bool) -> Result<(), String> {
        const NAMES: [&str; 6] = ["cacert", "cert", "key", "password-file", "db", "timeout"];
        let mut found: [Option<String>; NAMES.len()] = Default::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let Some(at) = NAMES.iter().position(|known| *known == name) else {
                return Err(format!("the address has a parameter that is none; valid are {}", NAMES.join(", ")));
            };
            if value.is_empty() || found[at].is_some() {
                return Err(format!("the parameter {name} of the address is given once and with a value"));
            }
            found[at] = Some(decoded(value)?);
        }
        let [authorities, certificate, key, password_file, database, timeout] = found;
        if !secure && (authorities.is_some() || certificate.is_some() || key.is_some()) {
            return Err(
                "cacert, cert and key are about TLS, which this address does without; valid is rediss://HOST".into()
            );
        }
        self.authorities = authorities.map(PathBuf::from);
        self.identity = match (certificate, key) {
            (None, None) => None,
            // A file may hold both.
            (Some(certificate), key) => Some((certificate.clone().into(), key.unwrap_or(certificate).into())),
            (None, Some(_)) => return Err("the address has a key and no certificate; give cert too".into()),
        };
        if let Some(database) = database {
            if !is_socket {
                return Err("db is for sockets; the database of a host stands behind it: redis://HOST/DATABASE".into());
            }
            self.database = read_database(&database)?;
        }
        if let Some(timeout) = timeout {
            let time = parse_duration(&timeout).filter(|time| TIMEOUTS.contains(time));
            let problem =
                "the timeout of the address is no time from 1 ms to 10 s; valid is ?timeout=0.5 or ?timeout=500ms";
            self.timeout = Some(time.ok_or(problem)?);
        }
        if let Some(file) = password_file
            && self.password.replace(Password::File(file.into())).is_some()
        {
            return Err("the address has a password and a password-file; give one of them".into());
        }
        Ok(())
    }
}

/// Reads user and password. What stands alone is a user, as with a password in a file.
fn read_entrance(entrance: &str) -> Result<(Option<String>, Option<Vec<u8>>), String> {
    if entrance.contains('@') {
        return Err(format!("the address cannot be read: {ENCODE}"));
    }
    let (user, password) = entrance.split_once(':').map_or((entrance, None), |(user, word)| (user, Some(word)));
    let user = Some(decoded(user)?).filter(|user| !user.is_empty());
    // A user may have none, which the colon says.
    let password = password.map(percent_decoded).filter(|password| user.is_some() || !password.is_empty());
    Ok((user, password))
}

/// Whether each `%` stands before two digits that say what is meant.
fn is_encoded(text: &str) -> bool {
    let digits = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    text.split('%').skip(1).all(digits)
}

fn read_host(text: &str) -> Result<(&str, u16), String> {
    let (host, port) = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => Some(PORT),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0)
        }
        _ => None,
    };
    if host.is_empty() || (!host.ends_with(']') && text.matches(':').count() > 1) {
        return Err(format!("the address names no host, or an IPv6 address without its brackets, as in [::1]; {FORM}"));
    }
    let port = port.ok_or_else(|| format!("the port of the address is no number from 1 to 65535; {FORM}; {ENCODE}"))?;
    let is_good = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)),
    };
    let letters = "a host is letters, digits, dots, dashes and underlines, or an IPv6 address in [ ]";
    if is_good { Ok((host, port)) } else { Err(format!("the host of the address cannot be one: {letters}")) }
}

fn read_database(digits: &str) -> Result<u32, String> {
    let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.ok_or_else(|| format!("the database of the address is no number up to {}; {FORM}", u32::MAX))
}

fn decoded(text: &str) -> Result<String, String> {
    String::from_utf8(percent_decoded(text)).map_err(|_| "the address is no UTF-8 text when it is decoded".into())
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_their_secrets() {
        for (text, shown) in [
            ("redis://h", "redis://h:6379/0"),
            ("REDIS://h/", "redis://h:6379/0"),
            ("valkeys://:s%65cret@h.example:1/12", "valkeys://h.example:1/12"),
            ("rediss://u:secret@[::1]:7/3?cacert=secret&cert=secret", "rediss://[::1]:7/3"),
            ("redis://u@h?password-file=/run/secret", "redis://h:6379/0"),
            ("redis://u:@h", "redis://h:6379/0"),
            ("unix:///run/x%20y.sock?db=2", "unix:///run/x y.sock?db=2"),
            ("redis+unix://:secret@/s?timeout=10s", "redis+unix:///s"),
        ] {
            let address = RedisAddress::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("secret"), "{address:?}");
        }
        let address = RedisAddress::parse("redis://%75:p%2F%25:@h").unwrap();
        assert_eq!(address.user.as_deref(), Some("u"));
        assert!(address.password == Some(Password::Given(b"p/%:".to_vec())));
        let timeout = |text| RedisAddress::parse(text).expect(text).timeout;
        assert_eq!(timeout("unix:///s"), None);
        assert_eq!(timeout("unix:///s?timeout=.3"), Some(Duration::from_millis(300)));
        assert_eq!(timeout("redis://h/1?timeout=1s%20500ms"), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn bad_addresses_are_refused_without_a_word_of_them() {
        for text in [
            "",
            "secret",
            "redis:secret@h",
            "http://:secret@h",
            "redis://",
            "redis:///secret",
            "redis://:secret@",
            "redis://:secret@:1",
            "redis://:secret@h:",
            "redis://:secret@h:0",
            "redis://:secret@h:65536",
            "redis://:secret@h:+1",
            "redis://:secret@h:1:2",
            "redis://:secret@h/secret",
            "redis://:secret@h/-1",
            "redis://:secret@h/4294967296",
            "redis://:secret@h/1/2",
            "redis://:sec/ret@h",
            "redis://:sec?ret@h",
            "redis://:sec#ret@h",
            "redis://:sec@ret@h",
            "redis://:sec ret@h",
            "redis://secret@h",
            "redis://:secret@h?password-file=x",
            "redis://:secret@h?secret=x",
            "redis://:secret@h?secret",
            "redis://:secret@h?cacert=secret",
            "redis://:secret@h?db=1",
            "redis://:secret@h?timeout=secret",
            "redis://:secret@h?timeout=0",
            "redis://:secret@h?timeout=11",
            "redis://:secret@h?timeout=1ns",
            "rediss://:secret@h?cacert=",
            "rediss://:secret@h?cacert=1&cacert=2",
            "rediss://:secret@h?key=1",
            "redis://:secret@[::g]",
            "redis://:secret@[::1]x",
            "redis://:secret@h%20x",
            "redis://%ff:secret@h",
            "redis://:secret%@h",
            "redis://:secret%4@h",
            "redis://:secret%zz@h",
            "redis://:secret@::1:17001",
            "unix://secret",
            "unix://",
            "unix:///",
            "unix:///s?db=secret",
        ] {
            let problem = RedisAddress::parse(text).expect_err(text);
            for word in ["secret", "sec", "ret@"] {
                assert!(!problem.contains(word), "{text}: {problem}");
            }
        }
    }
}
