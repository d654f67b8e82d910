//! What is asked for: curl's options as a plan, and the head of each request.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::USER_AGENT;
use super::body::Body;
use super::connect::{ConnectPlan, Origin, Proxy, Redirection};
use super::failure::{Failure, Fault};
use super::names::Family;
use super::output::{OutputPlan, Resume};
use super::redirect::{RedirectPlan, Step};
use super::tls::TlsPlan;
use super::variables::Variables;
use super::write_out;
use crate::cli::options::Id;
use crate::cli::{EXPAND, Given, UsageError};
use crate::config::env::Environment;
use crate::exit::OWN_FAILURE;
use crate::report::text::cause;
use crate::units::parse_duration;

/// The most redirects, as curl has it.
const MAX_REDIRECTS: u32 = 50;
/// The port of a proxy whose URL has none, as curl has it.
const PROXY_PORT: u16 = 1080;
/// The most bytes of a file that holds headers.
const MAX_HEADERS: u64 = 1024 * 1024;

/// A request and all that belongs to it; immutable for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPlan {
    /// Where it goes.
    pub url: Url,
    /// The method.
    pub method: String,
    /// Header fields.
    pub fields: Vec<Field>,
    /// Whether it is safe to repeat whatever became of it.
    pub safe: bool,
    /// Whether a body is sent, be it empty.
    pub has_body: bool,
    /// Whether a coded body is asked for and decoded.
    pub compressed: bool,
    /// Redirects.
    pub redirects: RedirectPlan,
    /// Connections.
    pub connect: ConnectPlan,
    /// Proxies.
    pub proxies: Proxies,
    /// The body of the answer.
    pub output: OutputPlan,
    /// Where the heads of the answer go (`-D`).
    pub dump_heads: Option<PathBuf>,
    /// What is printed afterwards (`-w`).
    pub write_out: Option<String>,
    /// The URL as it was given.
    pub given_url: String,
    /// The limit on an attempt, redirects included.
    pub timeout: Option<Duration>,
    /// The limit on the run.
    pub total_timeout: Option<Duration>,
}

/// Which proxy is used for which host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For http, and for https: where it was given, and what.
    urls: [Option<(String, String)>; 2],
    /// Hosts to be reached without.
    direct: Vec<String>,
}

impl RequestPlan {
    /// The first step of every attempt.
    pub fn first_step(&self) -> Step {
        Step {
            url: self.url.clone(),
            method: self.method.clone(),
            with_body: self.has_body,
            with_credentials: true,
            redirects: 0,
        }
    }

    /// Whether the request may be made twice.
    pub fn is_safe(&self) -> bool {
        self.safe
    }

    /// Whether the user asks for a part of the body (`-r`, or a header that says so).
    pub fn asks_for_a_part(&self) -> bool {
        self.fields.iter().any(|field| field.is("range") && !field.is_absent)
    }

    /// The proxy for this origin.
    pub fn proxy_for(&self, origin: &Origin) -> Result<Option<Proxy>, Failure> {
        self.proxies.find(origin)
    }

    /// The head of the request of a step. `more` are fields that this attempt adds.
    pub fn head(
        &self,
        step: &Step,
        length: u64,
        through: Option<&Proxy>,
        more: &[(String, String)],
        is_harmless: impl Fn(&str) -> bool,
    ) -> Vec<u8> {
        let mut url = step.url.clone();
        url.set_fragment(None);
        let target = if through.is_some() {
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.to_string()
        } else {
            match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            }
        };
        let mut text = format!("{} {target} HTTP/1.1\r\n", step.method);
        let own = |name: &str| self.fields.iter().any(|field| field.is(name));
        let mut fields: Vec<Field> = Vec::new();
        if !own("host") || !step.with_credentials {
            let host = url.host_str().unwrap_or_default();
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            fields.push(Field::new(Place::Host, "Host", &format!("{host}{port}")));
        }
        if let Some(proxy) = through {
            let value = proxy.authorization.as_ref();
            fields.extend(value.map(|value| Field::new(Place::ProxyAuthorization, "Proxy-Authorization", value)));
            if !own("proxy-connection") {
                fields.push(Field::new(Place::ProxyConnection, "Proxy-Connection", "Keep-Alive"));
            }
        }
        if step.with_body && !own("content-length") {
            fields.push(Field::new(Place::ContentLength, "Content-Length", &length.to_string()));
        }
        fields.extend(more.iter().map(|(name, value)| Field::new(Place::Range, name, value)));
        let replaced = |field: &Field| more.iter().any(|(name, _)| field.is(name));
        let kept = self.fields.iter().filter(|field| {
            let is_of_body = field.name.to_ascii_lowercase().starts_with("content-");
            (step.with_credentials || is_harmless(&field.name))
                && (step.with_body || !is_of_body || !self.has_body)
                && !replaced(field)
                && !field.is_absent
        });
        fields.extend(kept.cloned());
        fields.sort_by_key(|field| field.place);
        for field in fields {
            text.push_str(&field.line);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        // What is no Latin-1 goes as UTF-8, as curl sends it.
        text.into_bytes()
    }
}

/// A header field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    place: Place,
    name: String,
    /// The line, as it is sent.
    line: String,
    /// Whether it says that the field is not to be sent at all.
    is_absent: bool,
}

/// Where in a head a field stands: the order is curl's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Host,
    ProxyAuthorization,
    Authorization,
    Range,
    UserAgent,
    Accept,
    AcceptEncoding,
    Referer,
    ProxyConnection,
    Cookie,
    /// What the user gave.
    Own,
    ContentLength,
    ContentType,
}

impl Field {
    fn new(place: Place, name: &str, value: &str) -> Self {
        Self { place, name: name.to_owned(), line: format!("{name}: {value}"), is_absent: false }
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Proxies {
    fn find(&self, origin: &Origin) -> Result<Option<Proxy>, Failure> {
        let Some((place, url)) = &self.urls[usize::from(origin.secure)] else { return Ok(None) };
        if self.direct.iter().any(|pattern| is_meant(pattern, &origin.host)) {
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
        let parsed = Url::parse(&text).map_err(|error| wrong(&error))?;
        let has_name = !parsed.username().is_empty() || parsed.password().is_some();
        let authorization = has_name.then(|| {
            let name = percent_decoded(parsed.username());
            let pair = [name, b":".to_vec(), percent_decoded(parsed.password().unwrap_or_default())].concat();
            format!("Basic {}", STANDARD.encode(pair))
        });
        let host = parsed.host_str().unwrap_or_default().to_owned();
        // The port that the URL standard leaves out is no other than one that was never there.
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default().trim_end_matches(':');
        let default = if authority.ends_with(":80") { 80 } else { PROXY_PORT };
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
    if pattern == "*" {
        return true;
    }
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

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    decoded
}

/// A URL as it can be shown: without a password in it, nor what its query says.
pub fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{}{host}{path}", if scheme.is_empty() { String::new() } else { format!("{scheme}://") })
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What is wrong with the options.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// There is no URL, or it cannot be read.
    #[error("{0}")]
    Url(String),
    /// The URL's scheme is none that is spoken here.
    #[error("{0}")]
    Scheme(String),
}

impl Refusal {
    /// The exit status: curl's for what is wrong with the URL.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => OWN_FAILURE,
            Self::Url(_) => Fault::Url.code(),
            Self::Scheme(_) => Fault::Scheme.code(),
        }
    }
}

/// Makes the plan, and the body to send, of the options and the words after them.
pub fn plan_request(
    given: &[Given],
    words: &[OsString],
    spool_folder: &Path,
    environment: &dyn Environment,
) -> Result<(RequestPlan, Body), Refusal> {
    let expanded = expanded(given, environment)?;
    let asked = Asked { given: &expanded, spool_folder };
    asked.plan(words, environment)
}

/// The options with their variables filled in.
fn expanded(given: &[Given], environment: &dyn Environment) -> Result<Vec<Given>, UsageError> {
    let mut variables = Variables::default();
    let from_environment = |name: &str| environment.get(name).map(|value| value.as_bytes().to_vec());
    let read = |path: &str| read_file(OsStr::new(path)).map_err(|error| format!("{path}: {}", cause(&error)));
    let mut all = Vec::new();
    for given in given {
        let wrong = |what: String| UsageError(format!("{}: {what}", given.place));
        let mut given = given.clone();
        if given.place.starts_with(EXPAND) {
            given.value = variables.expand(text(&given)?).map_err(wrong)?.into();
        }
        if given.id == Id::Variable {
            variables.set(text(&given)?, from_environment, read).map_err(wrong)?;
        } else {
            all.push(given);
        }
    }
    Ok(all)
}

fn read_file(path: &OsStr) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if path == "-" {
        std::io::stdin().lock().read_to_end(&mut content)?;
    } else {
        fs::File::open(path)?.read_to_end(&mut content)?;
    }
    Ok(content)
}

/// The options of a request.
struct Asked<'a> {
    given: &'a [Given],
    spool_folder: &'a Path,
}

impl<'a> Asked<'a> {
    fn all(&self, id: Id) -> impl Iterator<Item = &'a Given> {
        self.given.iter().filter(move |given| given.id == id)
    }

    fn last(&self, id: Id) -> Option<&'a Given> {
        self.all(id).last()
    }

    fn has(&self, id: Id) -> bool {
        self.last(id).is_some()
    }

    fn text(&self, id: Id) -> Result<Option<&'a str>, UsageError> {
        self.last(id).map(text).transpose()
    }

    fn path(&self, id: Id) -> Option<PathBuf> {
        self.last(id).map(|given| PathBuf::from(&given.value))
    }

    fn plan(&self, words: &[OsString], environment: &dyn Environment) -> Result<(RequestPlan, Body), Refusal> {
        let given_url = given_url(words)?;
        let mut url = parse_url(given_url)?;
        let mut fields = Fields::default();
        let (mut body, kind) = self.body()?;
        let as_query = self.has(Id::Get);
        let uploads = kind == Some(Kind::Upload);
        if as_query && kind == Some(Kind::Data) {
            add_query(&mut url, &body)?;
            body = Body::default();
        }
        let has_body = kind.is_some() && !(as_query && kind == Some(Kind::Data));
        if uploads && let Some(name) = self.last(Id::Upload).filter(|given| given.value != *"-") {
            add_file_name(&mut url, Path::new(&name.value));
        }
        let head_only = self.has(Id::Head);
        let method = match self.text(Id::RequestMethod)? {
            Some(method) => {
                let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
                if method.is_empty() || !method.bytes().all(token) {
                    let text = format!("--request: '{method}' is not a method; valid is a word such as PUT");
                    return Err(UsageError(text).into());
                }
                method.to_owned()
            }
            None if head_only => "HEAD".to_owned(),
            None if uploads => "PUT".to_owned(),
            None if has_body => "POST".to_owned(),
            None => "GET".to_owned(),
        };
        let user = match self.text(Id::User)? {
            Some(user) => Some(user.to_owned()),
            None if !url.username().is_empty() || url.password().is_some() => {
                let part = |text: &str| String::from_utf8_lossy(&percent_decoded(text)).into_owned();
                Some(format!("{}:{}", part(url.username()), part(url.password().unwrap_or_default())))
            }
            None => None,
        };
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if let Some(user) = user {
            let pair = if user.contains(':') { user } else { format!("{user}:") };
            fields.set(Place::Authorization, "Authorization", &format!("Basic {}", STANDARD.encode(pair)));
        }
        let agent = self.text(Id::UserAgent)?.unwrap_or(USER_AGENT);
        if !agent.is_empty() {
            fields.set(Place::UserAgent, "User-Agent", agent);
        }
        if kind != Some(Kind::Json) {
            fields.set(Place::Accept, "Accept", "*/*");
        }
        let compressed = self.has(Id::Compressed);
        if compressed {
            fields.set(Place::AcceptEncoding, "Accept-Encoding", "deflate, gzip");
        }
        if let Some(referer) = self.text(Id::Referer)?.filter(|referer| !referer.is_empty()) {
            fields.set(Place::Referer, "Referer", referer);
        }
        if let Some(cookies) = self.cookies()? {
            fields.set(Place::Cookie, "Cookie", &cookies);
        }
        if let Some(range) = self.text(Id::Range)? {
            fields.set(Place::Range, "Range", &format!("bytes={range}"));
        }
        match kind {
            Some(Kind::Data) if has_body => {
                fields.set(Place::ContentType, "Content-Type", "application/x-www-form-urlencoded");
            }
            Some(Kind::Form(ref boundary)) => {
                let value = format!("multipart/form-data; boundary={boundary}");
                fields.set(Place::ContentType, "Content-Type", &value);
            }
            _ => {}
        }
        if let Some(broken) = fields.0.iter().find(|field| field.line.contains(['\r', '\n', '\0'])) {
            let name = &broken.name;
            let text = format!("the value for {name} breaks the line, which would be another header");
            return Err(UsageError(text).into());
        }
        let key = self.text(Id::IdempotencyKey)?;
        if let Some(key) = key {
            let made = if key == "auto" { random_key() } else { key.to_owned() };
            fields
                .add(&format!("Idempotency-Key: {made}"))
                .map_err(|what| UsageError(format!("--idempotency-key: {what}")))?;
        }
        for given in self.all(Id::RequestHeader) {
            self.header(given, &mut fields)?;
        }
        // What says how long the body is must be right, or the server waits for more of it.
        for field in fields.0.iter().filter(|field| field.place == Place::Own) {
            let value = field.line.split_once(':').map_or("", |(_, value)| value.trim());
            let text = match field.name.to_ascii_lowercase().as_str() {
                "content-length" if has_body && value != body.length().to_string() => {
                    format!(
                        "--header: the body has {} bytes, not Content-Length: '{value}'; leave it out",
                        body.length()
                    )
                }
                "content-length" if !has_body && !field.is_absent && value != "0" => {
                    "--header: there is no body of the length that Content-Length says; leave it out".to_owned()
                }
                "transfer-encoding" if !field.is_absent => {
                    "--header: a body is sent with its Content-Length; leave Transfer-Encoding out".to_owned()
                }
                _ => continue,
            };
            return Err(UsageError(text).into());
        }
        if let Some(Kind::Form(boundary)) = &kind {
            fields.add_boundary(boundary);
        }
        if kind == Some(Kind::Json) {
            for name in ["Content-Type", "Accept"] {
                if !fields.0.iter().any(|field| field.is(name)) {
                    fields.set(Place::Own, name, "application/json");
                }
            }
        }
        let has_key = fields.0.iter().any(|field| field.is("idempotency-key") && !field.is_absent);
        let is_safe = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"].contains(&method.as_str());
        let plan = RequestPlan {
            safe: is_safe || has_key || self.has(Id::Idempotent),
            redirects: RedirectPlan {
                follow: self.has(Id::Location) || self.has(Id::LocationTrusted),
                trusted: self.has(Id::LocationTrusted),
                most: self.most_redirects()?,
                keeps_method: self.has(Id::RequestMethod),
            },
            connect: self.connect()?,
            proxies: self.proxies(&url, environment)?,
            output: self.output(&url)?,
            dump_heads: self.path(Id::DumpHeader),
            write_out: self.write_out()?,
            given_url: given_url.to_owned(),
            timeout: None,
            total_timeout: None,
            url,
            method,
            fields: fields.0,
            has_body,
            compressed,
        };
        if head_only && has_body {
            let text = "--head asks for a head only, but data are given too; leave one out, or add --get";
            return Err(UsageError(text.to_owned()).into());
        }
        Ok((plan, body))
    }

    /// What `-b` sends; a file of cookies is not read.
    fn cookies(&self) -> Result<Option<String>, UsageError> {
        let mut cookies: Option<String> = None;
        for given in self.all(Id::Cookie) {
            let value = text(given)?;
            if !value.contains('=') {
                return Err(UsageError(format!(
                    "--cookie: '{value}' would name a file of cookies, which is not read; give name=value, or the header by -H @FILE"
                )));
            }
            cookies = Some(cookies.map_or_else(|| value.to_owned(), |before| format!("{before};{value}")));
        }
        Ok(cookies)
    }

    fn most_redirects(&self) -> Result<Option<u32>, UsageError> {
        match self.text(Id::MaxRedirs)? {
            None => Ok(Some(MAX_REDIRECTS)),
            Some("-1") => Ok(None),
            Some(text) => {
                let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
                number.map(Some).ok_or_else(|| {
                    UsageError(format!(
                        "--max-redirs: '{text}' is not a number; valid are whole numbers, and -1 for no limit"
                    ))
                })
            }
        }
    }

    /// Adds what one `-H` says.
    fn header(&self, given: &Given, fields: &mut Fields) -> Result<(), UsageError> {
        if let Some(path) = given.value.as_bytes().strip_prefix(b"@") {
            let path = Path::new(OsStr::from_bytes(path));
            let mut content = Vec::new();
            let read = if path.as_os_str() == "-" {
                std::io::stdin().lock().take(MAX_HEADERS).read_to_end(&mut content)
            } else {
                fs::File::open(path).and_then(|file| file.take(MAX_HEADERS).read_to_end(&mut content))
            };
            read.map_err(|error| UsageError(format!("--header: {}: {}", path.display(), cause(&error))))?;
            let text = String::from_utf8_lossy(&content);
            for line in text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !line.trim().is_empty()) {
                fields.add(line).map_err(|what| UsageError(format!("--header: in {}: {what}", path.display())))?;
            }
            return Ok(());
        }
        fields.add(text(given)?).map_err(|what| UsageError(format!("--header: {what}")))
    }

    fn body(&self) -> Result<(Body, Option<Kind>), UsageError> {
        let mut body = Body::default();
        let mut kind: Option<Kind> = None;
        let mut set = |new: Kind, place: &str| match &kind {
            Some(old) if std::mem::discriminant(old) != std::mem::discriminant(&new) => Err(UsageError(format!(
                "{place}: the body is given in two ways; give one of data, JSON, form and file"
            ))),
            _ => {
                kind = Some(new);
                Ok(())
            }
        };
        let mut first = true;
        for given in self.given {
            match given.id {
                Id::Data | Id::DataRaw | Id::DataBinary | Id::DataUrlencode => {
                    set(Kind::Data, &given.place)?;
                    if !std::mem::take(&mut first) {
                        body.push("&");
                    }
                    self.data(given, &mut body)?;
                }
                Id::Json => {
                    set(Kind::Json, &given.place)?;
                    self.data(given, &mut body)?;
                }
                _ => {}
            }
        }
        if let Some(given) = self.last(Id::Upload) {
            set(Kind::Upload, &given.place)?;
            self.push_file(&mut body, &given.value, given)?;
        }
        let parts: Vec<_> = self.all(Id::Form).collect();
        if let Some(first) = parts.first() {
            let boundary = format!("------------------------{}", &random_key().replace('-', "")[..16]);
            set(Kind::Form(boundary.clone()), &first.place)?;
            // Where the user gives the type, only that of a form has forms' parts.
            let own = self.all(Id::RequestHeader).filter_map(|given| given.value.to_str()).find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-type").then(|| value.trim().to_ascii_lowercase())
            });
            let is_form = own.is_none_or(|kind| kind.is_empty() || kind.starts_with("multipart/form-data"));
            let disposition = if is_form { "form-data" } else { "attachment" };
            for part in &parts {
                self.part(part, &boundary, disposition, &mut body)?;
            }
            body.push(format!("--{boundary}--\r\n"));
        }
        Ok((body, kind))
    }

    fn data(&self, given: &Given, body: &mut Body) -> Result<(), UsageError> {
        let bytes = given.value.as_bytes();
        match (given.id, bytes.strip_prefix(b"@")) {
            (Id::DataUrlencode, _) => {
                let encoded = self.urlencoded(given)?;
                body.push(encoded);
                Ok(())
            }
            (Id::DataRaw, _) | (_, None) => {
                body.push(bytes);
                Ok(())
            }
            (Id::Data, Some(path)) => {
                // As curl has it: the line ends and NULs of a file are no part of the data.
                let mut content = self.read(OsStr::from_bytes(path), given)?;
                content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                body.push(content);
                Ok(())
            }
            (_, Some(path)) => self.push_file(body, OsStr::from_bytes(path), given),
        }
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    fn urlencoded(&self, given: &Given) -> Result<String, UsageError> {
        let bytes = given.value.as_bytes();
        let at = bytes.iter().position(|byte| matches!(byte, b'=' | b'@'));
        let (name, content) = match at {
            None => (&b""[..], bytes.to_vec()),
            Some(at) if bytes[at] == b'=' => (&bytes[..at], bytes[at + 1..].to_vec()),
            Some(at) => (&bytes[..at], self.read(OsStr::from_bytes(&bytes[at + 1..]), given)?),
        };
        let mut text = String::from_utf8_lossy(name).into_owned();
        if !text.is_empty() {
            text.push('=');
        }
        text.push_str(&percent_encoded(&content).replace("%20", "+"));
        Ok(text)
    }

    /// `name=text`, `name=@file`, `name=<file`, each with `;type=` and `;filename=`.
    fn part(&self, given: &Given, boundary: &str, disposition: &str, body: &mut Body) -> Result<(), UsageError> {
        let whole = text(given)?;
        let wrong = |what: String| UsageError(format!("--form: {what}"));
        let (name, rest) =
            whole.split_once('=').ok_or_else(|| wrong(format!("'{whole}' is no part; write it as name=content")))?;
        let sign = rest.chars().next().filter(|c| matches!(c, '@' | '<'));
        let (content, mut settings) = form_word(&rest[sign.map_or(0, char::len_utf8)..]);
        let mut content = content.into_owned();
        let (mut kind, mut file_name) = (None, None);
        while let Some(setting) = settings.strip_prefix(';') {
            let setting = setting.trim_start();
            if let Some(value) = setting.strip_prefix("type=") {
                // A type may have parameters of its own: up to the next setting that is known.
                let (mut end, mut from) = (value.len(), 0);
                while let Some(at) = value[from..].find(';').map(|at| from + at) {
                    if is_form_setting(&value[at + 1..]) {
                        end = at;
                        break;
                    }
                    from = at + 1;
                }
                kind = Some(value[..end].trim().to_owned());
                settings = &value[end..];
            } else if let Some(value) = setting.strip_prefix("filename=") {
                let (value, after) = form_word(value);
                file_name = Some(value.into_owned());
                settings = after;
            } else if is_form_setting(setting) {
                let name = setting.split('=').next().unwrap_or_default();
                return Err(wrong(format!("'{name}=' is not taken; valid are type= and filename=")));
            } else if sign.is_none() {
                // Text may hold semicolons of its own.
                let (more, after) = form_word(setting);
                content.push_str(&settings[..settings.len() - setting.len()]);
                content.push_str(&more);
                settings = after;
            } else {
                return Err(wrong(format!("'{setting}' is not known; valid are type= and filename=")));
            }
        }
        if kind.as_ref().is_some_and(|kind| kind.contains(['\r', '\n', '\0'])) {
            return Err(wrong("the type breaks the line, which would be another header".to_owned()));
        }
        let escaped = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let mut piece = Body::default();
        match sign {
            Some(sign) => {
                self.push_file(&mut piece, OsStr::new(&content), given)?;
                if sign == '@' {
                    let base = Path::new(&content).file_name().map(|name| name.to_string_lossy().into_owned());
                    file_name = file_name.or(base);
                    let named = file_name.as_deref().unwrap_or_default();
                    kind =
                        kind.or_else(|| Some(media_type(named).or(media_type(&content)).unwrap_or(OCTETS).to_owned()));
                }
            }
            None => piece.push(content.as_bytes()),
        }
        let mut head = format!("--{boundary}\r\nContent-Disposition: {disposition}");
        if !name.is_empty() {
            head.push_str(&format!("; name=\"{}\"", escaped(name)));
        }
        if let Some(file_name) = file_name {
            head.push_str(&format!("; filename=\"{}\"", escaped(&file_name)));
        }
        head.push_str("\r\n");
        if let Some(kind) = kind {
            head.push_str(&format!("Content-Type: {kind}\r\n"));
        }
        head.push_str("\r\n");
        body.push(head);
        body.append(piece);
        body.push("\r\n");
        Ok(())
    }

    fn read(&self, path: &OsStr, given: &Given) -> Result<Vec<u8>, UsageError> {
        read_file(path)
            .map_err(|error| UsageError(format!("{}: {}: {}", given.place, path.to_string_lossy(), cause(&error))))
    }

    fn push_file(&self, body: &mut Body, path: &OsStr, given: &Given) -> Result<(), UsageError> {
        let pushed = if path == "-" || path == "." {
            body.push_stream(&mut std::io::stdin().lock(), self.spool_folder)
        } else {
            body.push_file(Path::new(path), self.spool_folder)
        };
        pushed.map_err(|error| UsageError(format!("{}: {}: {}", given.place, path.to_string_lossy(), cause(&error))))
    }

    fn connect(&self) -> Result<ConnectPlan, UsageError> {
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
        Ok(ConnectPlan {
            family,
            timeout,
            resolved: self.all(Id::Resolve).map(resolution).collect::<Result<_, _>>()?,
            redirections: self.all(Id::ConnectTo).map(redirection).collect::<Result<_, _>>()?,
            unix_socket: self.path(Id::UnixSocket),
            tls: TlsPlan { insecure: self.has(Id::Insecure), authorities: self.path(Id::Cacert), identity },
        })
    }

    fn proxies(&self, url: &Url, environment: &dyn Environment) -> Result<Proxies, UsageError> {
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

    fn output(&self, url: &Url) -> Result<OutputPlan, UsageError> {
        let mut file = self.path(Id::Output).filter(|path| path.as_os_str() != "-");
        if self.has(Id::RemoteName) {
            if file.is_some() {
                return Err(UsageError("--output and --remote-name both name the file; give one".into()));
            }
            let name = url.path().rsplit('/').next().unwrap_or_default();
            if name.is_empty() {
                return Err(UsageError("--remote-name: the URL's path ends in no name; give the file by -o".into()));
            }
            file = Some(PathBuf::from(name));
        }
        if let (Some(folder), Some(name)) = (self.path(Id::OutputDir), &file) {
            file = Some(folder.join(name));
        }
        let checksum = match self.text(Id::Checksum)? {
            None => None,
            Some(text) => Some(sha256(text).ok_or_else(|| {
                UsageError(format!(
                    "--checksum: '{text}' is not a checksum; valid is sha256: and 64 hexadecimal digits"
                ))
            })?),
        };
        let resume = match self.text(Id::ContinueAt)? {
            None => None,
            Some("-") => Some(Resume::AfterFile),
            Some(text) => Some(Resume::At(text.parse().map_err(|_| {
                UsageError(format!("--continue-at: '{text}' is not an offset; valid are a number of bytes, and -"))
            })?)),
        };
        if resume.is_some() && file.is_none() {
            return Err(UsageError("--continue-at goes on with a file: name it by -o or -O".into()));
        }
        if resume.is_some() && (checksum.is_some() || self.has(Id::Compressed)) {
            return Err(UsageError("--continue-at cannot be joined with --checksum or --compressed".into()));
        }
        Ok(OutputPlan {
            file,
            live: self.has(Id::NoBuffer),
            include: self.has(Id::Include) || self.has(Id::Head),
            keep_failure: self.has(Id::FailWithBody),
            checksum,
            resume,
            spool_folder: self.spool_folder.to_owned(),
        })
    }

    fn write_out(&self) -> Result<Option<String>, UsageError> {
        let Some(format) = self.text(Id::WriteOut)? else { return Ok(None) };
        let format = match format.strip_prefix('@') {
            Some(path) => {
                let given = self.last(Id::WriteOut).map(|given| self.read(OsStr::new(path), given)).transpose()?;
                // As curl has it: the line ends of a file are no part of the format.
                String::from_utf8_lossy(&given.unwrap_or_default()).replace(['\r', '\n'], "")
            }
            None => format.to_owned(),
        };
        if let Some(name) = write_out::unknown_variable(&format) {
            let known = write_out::VARIABLES.join(", ");
            return Err(UsageError(format!("--write-out: the variable '{name}' is not known; valid are {known}")));
        }
        Ok(Some(format))
    }
}

/// What the body is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Data,
    Json,
    Upload,
    /// With its boundary.
    Form(String),
}

/// Header fields: defaults, each of which the user may replace or take away.
#[derive(Default)]
struct Fields(Vec<Field>);

impl Fields {
    /// Adds a default; what the user gives replaces it.
    fn set(&mut self, place: Place, name: &str, value: &str) {
        self.0.push(Field::new(place, name, value));
    }

    /// A type that the user gave for a form's body says where its parts end.
    fn add_boundary(&mut self, boundary: &str) {
        let own = self.0.iter_mut().find(|field| field.is("content-type") && field.place == Place::Own);
        if let Some(field) = own.filter(|field| !field.is_absent) {
            field.place = Place::ContentType;
            field.line.push_str(&format!("; boundary={boundary}"));
        }
    }

    /// Adds `Name: value`, empties `Name;` and takes `Name:` away.
    fn add(&mut self, line: &str) -> Result<(), String> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let (name, value) = match line.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (line.trim_end().strip_suffix(';').ok_or("a header is written as 'Name: value'")?, None),
        };
        if name.is_empty() || !name.bytes().all(token) {
            return Err("a header's name is a word".to_owned());
        }
        if line.contains(['\r', '\n', '\0']) {
            return Err(format!("the value of {name} breaks the line, which would be another header"));
        }
        self.0.retain(|field| field.place == Place::Own || !field.is(name));
        let place = if name.eq_ignore_ascii_case("host") { Place::Host } else { Place::Own };
        let is_absent = value.is_some_and(|value| value.trim().is_empty());
        let line = if value.is_none() { format!("{name}:") } else { line.to_owned() };
        self.0.push(Field { place, name: name.to_owned(), line, is_absent });
        Ok(())
    }
}

fn text(given: &Given) -> Result<&str, UsageError> {
    let text = given.value.to_str();
    text.filter(|text| !text.contains('\0'))
        .ok_or_else(|| UsageError(format!("{}: the value is no UTF-8 text", given.place)))
}

/// Words that are methods, which other programs take in front of the URL.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];

/// The URL among the words.
fn given_url(words: &[OsString]) -> Result<&str, Refusal> {
    let own = "to run a program called http: retryx -- http ...";
    let word = match words {
        [] => {
            let usage = "http needs a URL; usage: retryx [OPTIONS] http [OPTIONS] URL";
            return Err(Refusal::Url(format!("{usage} ({own})")));
        }
        [word] => word,
        [first, rest @ ..] => {
            let hint = match METHODS.iter().find(|method| first == *method) {
                Some(method) => format!("the method is given by -X {method}; {own}"),
                None => "one request is made a run".to_owned(),
            };
            let count = rest.len() + 1;
            return Err(UsageError(format!("http takes one URL, but {count} words were given; {hint}")).into());
        }
    };
    let text = word.to_str().ok_or_else(|| Refusal::Url("the URL is no UTF-8 text; percent-encode it".into()))?;
    if METHODS.contains(&text) {
        return Err(Refusal::Url(format!("http needs a URL; the method is given by -X {text} ({own})")));
    }
    Ok(text)
}

/// Reads a URL. A name without a scheme is taken for http, as curl takes it.
fn parse_url(text: &str) -> Result<Url, Refusal> {
    let shown = without_password(text);
    let wrong = |what: &dyn std::fmt::Display| Refusal::Url(format!("'{shown}' is no URL: {what}"));
    if text.is_empty() {
        return Err(wrong(&"it is empty"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(wrong(&"it has a space or control character in it; percent-encode these"));
    }
    let (scheme, rest) = match text.split_once(":/") {
        Some((scheme, rest)) if !scheme.is_empty() && scheme.bytes().all(is_of_scheme) => {
            // One slash or three are taken for two, as curl takes them.
            let rest = rest.strip_prefix('/').unwrap_or(rest);
            (scheme, rest.strip_prefix('/').unwrap_or(rest))
        }
        _ => ("http", text),
    };
    if !["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return Err(Refusal::Scheme(format!("'{shown}': {scheme}: is not spoken; valid are http: and https:")));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || authority.contains('\\') {
        return Err(wrong(&if authority.is_empty() { "it names no host" } else { "a host has no \\ in it" }));
    }
    // The URL standard takes \ for a slash; here it is what it is.
    let full = format!("{scheme}://{authority}{}", path.replace('\\', "%5C"));
    let url = Url::parse(&full).map_err(|error| wrong(&error))?;
    if url.port() == Some(0) {
        return Err(wrong(&"there is no port 0"));
    }
    Ok(url)
}

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

fn add_query(url: &mut Url, body: &Body) -> Result<(), Refusal> {
    let mut data = vec![0; usize::try_from(body.length()).unwrap_or(0)];
    let mut at = 0;
    while at < data.len() {
        match body.read_at(at as u64, &mut data[at..]) {
            Ok(0) => break,
            Ok(count) => at += count,
            Err(failure) => return Err(UsageError(format!("--get: {failure}")).into()),
        }
    }
    let data =
        String::from_utf8(data).ok().filter(|data| !data.contains(|c: char| c.is_whitespace() || c.is_control()));
    let Some(data) = data else {
        let what = "they have a space, a control character or no UTF-8 in them; use --data-urlencode";
        return Err(Refusal::Url(format!("--get: the data cannot stand in a URL: {what}")));
    };
    let query = match url.query() {
        Some(query) if !query.is_empty() => format!("{query}&{data}"),
        _ => data,
    };
    url.set_query(Some(&query));
    Ok(())
}

fn add_file_name(url: &mut Url, path: &Path) {
    if url.path().ends_with('/')
        && let Some(name) = path.file_name()
    {
        let whole = format!("{}{}", url.path(), percent_encoded(name.as_bytes()));
        url.set_path(&whole);
    }
}

/// Everything but what never needs it percent-encoded.
pub(super) fn percent_encoded(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
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

fn sha256(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

/// A random key in the form of a UUID (version 4).
fn random_key() -> String {
    let mut bytes = [0; 16];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A word of a form's part, up to a semicolon; in quotes it may hold any.
fn form_word(text: &str) -> (std::borrow::Cow<'_, str>, &str) {
    let mut word = String::new();
    if let Some(quoted) = text.trim_start().strip_prefix('"') {
        let mut rest = quoted.char_indices();
        while let Some((at, c)) = rest.next() {
            match c {
                '\\' => match quoted[at + 1..].chars().next() {
                    Some(c @ ('"' | '\\')) => {
                        rest.next();
                        word.push(c);
                    }
                    _ => word.push('\\'),
                },
                // What follows the closing quote up to the semicolon is dropped, as by curl.
                '"' => {
                    let after = &quoted[at + 1..];
                    return (word.into(), &after[after.find(';').unwrap_or(after.len())..]);
                }
                c => word.push(c),
            }
        }
    }
    let end = text.find(';').unwrap_or(text.len());
    (text[..end].into(), &text[end..])
}

fn is_form_setting(text: &str) -> bool {
    let text = text.trim_start();
    ["type=", "filename=", "headers=", "encoder="].iter().any(|setting| text.starts_with(setting))
}

/// The media type of bytes of no known kind.
const OCTETS: &str = "application/octet-stream";

/// The media type that curl gives a file of a form by its name.
fn media_type(path: &str) -> Option<&'static str> {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    Some(match extension.as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => return None,
    })
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
            ("*", "x", true),
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

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(without_password("http://u:p@h:1/x?token=1#f"), "http://h:1/x");
        assert_eq!(without_password("u:p@h/x"), "h/x");
    }

    #[test]
    fn headers_are_added_emptied_and_taken_away() {
        let mut fields = Fields::default();
        fields.set(Place::UserAgent, "User-Agent", "x");
        fields.set(Place::Accept, "Accept", "*/*");
        for line in ["X-A: 1", "X-A: 2", "accept: text/html", "User-Agent:", "X-B;"] {
            fields.add(line).unwrap();
        }
        let lines: Vec<_> = fields.0.iter().filter(|field| !field.is_absent).map(|field| field.line.as_str()).collect();
        assert_eq!(lines, ["X-A: 1", "X-A: 2", "accept: text/html", "X-B:"]);
        for wrong in ["", "no colon", "X Y: 1", "X-A: 1\r\nX-B: 2", ": 1", "X\n: 1"] {
            assert!(fields.add(wrong).is_err(), "{wrong:?}");
        }
    }
}
