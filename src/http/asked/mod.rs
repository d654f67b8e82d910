//! What the user asks for: curl's options and the URL made into a plan and a body.

mod body;
mod connect;
mod output;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use self::body::Kind;
use self::output::create_folder_of;
use super::USER_AGENT;
use super::address::{add_file_name, add_query, given_url, parse_url};
use super::body::Body;
use super::fields::{Fields, Place};
use super::redirect::RedirectPlan;
use super::refusal::Refusal;
use super::request::{RequestPlan, Safety};
use super::schemes::Schemes;
use super::variables::Variables;
use crate::cause::cause;
use crate::cli::options::{Id, OPTIONS};
use crate::cli::{EXPAND, Given, UsageError};
use crate::config::env::Environment;
use crate::net::{Input, percent_decoded};

/// The most redirects, as curl has it.
const MAX_REDIRECTS: u32 = 50;

/// The most bytes of a file that holds headers.
const MAX_HEADERS: u64 = 1024 * 1024;

/// The most bytes of a file that is kept in memory, as curl has it.
const MAX_IN_MEMORY: u64 = 1024 * 1024 * 1024;

/// Makes the plan, and the body to send, of the options and the words after them.
pub fn plan_request(
    given: &[Given],
    words: &[OsString],
    spool_folder: &Path,
    environment: &dyn Environment,
    input: &Input<'_>,
) -> Result<(RequestPlan, Body), Refusal> {
    let expanded = expanded(given, environment, input)?;
    let asked = Asked { given: &expanded, spool_folder, input };
    asked.plan(words, environment)
}

/// The options with their variables filled in.
fn expanded(given: &[Given], environment: &dyn Environment, input: &Input<'_>) -> Result<Vec<Given>, UsageError> {
    let mut variables = Variables::default();
    let from_environment = |name: &str| environment.get(name).map(|value| value.as_bytes().to_vec());
    let read = |path: &str| read_file(OsStr::new(path), input).map_err(|error| format!("{path}: {}", cause(&error)));
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

fn read_file(path: &OsStr, input: &Input<'_>) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    input.open(path)?.take(MAX_IN_MEMORY + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_IN_MEMORY {
        return Err(std::io::Error::other("it has more than 1 GiB, the most that is kept in memory"));
    }
    Ok(content)
}

/// The options of a request.
struct Asked<'a> {
    given: &'a [Given],
    spool_folder: &'a Path,
    input: &'a Input<'a>,
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
        let words: Vec<_> = self.all(Id::Url).map(|given| &given.value).chain(words).collect();
        let given_url = given_url(&words).map_err(|refusal| self.with_lost_url(refusal, words.is_empty()))?;
        let mut url = parse_url(given_url)?;
        let schemes = self.schemes(Id::Proto)?;
        if !schemes.allow(url.scheme()) {
            return Err(Refusal::Scheme(format!("--proto: {}: is not allowed by it", url.scheme())));
        }
        let mut fields = Fields::default();
        let (mut body, kind) = self.body()?;
        let as_query = self.has(Id::Get) && matches!(kind, Some(Kind::Data | Kind::Json));
        let uploads = kind == Some(Kind::Upload);
        if as_query {
            add_query(&mut url, &body)?;
            body = Body::default();
        }
        let has_body = kind.is_some() && !as_query;
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
            Some(user) if !user.contains(':') => {
                let remedy = "give NAME:PASSWORD, best by --variable and --expand-user, or NAME: for an empty one";
                return Err(UsageError(format!("--user: nobody is asked for a password; {remedy}")).into());
            }
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
            fields.set(Place::Authorization, "Authorization", &format!("Basic {}", STANDARD.encode(user)));
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
            if referer.ends_with(";auto") {
                let what = "';auto' is not known: along redirects the same Referer is sent, to the same origin only; \
                            give it without";
                return Err(UsageError(format!("--referer: {what}")).into());
            }
            fields.set(Place::Referer, "Referer", referer);
        }
        if let Some(cookies) = self.cookies()? {
            fields.set(Place::Cookie, "Cookie", &cookies);
        }
        if let Some(range) = self.range()? {
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
            if key.trim().is_empty() {
                let text = "--idempotency-key: '' is no key; give one, or auto to have one made";
                return Err(UsageError(text.to_owned()).into());
            }
            let made = if key == "auto" { random_key() } else { key.to_owned() };
            fields
                .add(&format!("Idempotency-Key: {made}"))
                .map_err(|what| UsageError(format!("--idempotency-key: {what}")))?;
        }
        for given in self.all(Id::RequestHeader) {
            header(given, &mut fields, self.input)?;
        }
        let keys: Vec<_> = fields.0.iter().filter(|field| field.is("idempotency-key")).collect();
        if key.is_some() && keys.len() > 1 {
            let text = "--idempotency-key and a header Idempotency-Key both give the key: leave one out";
            return Err(UsageError(text.to_owned()).into());
        }
        let has_key = keys.iter().any(|field| !field.is_absent && !field.value().is_empty());
        // What says how long the body is must be right, or the server waits for more of it.
        for field in fields.0.iter().filter(|field| field.place == Place::Own) {
            let value = field.value();
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
        let is_safe = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"].contains(&method.as_str());
        let plan = RequestPlan {
            safety: match is_safe || self.has(Id::Idempotent) {
                true => Safety::Safe,
                false if has_key => Safety::ByKey,
                false => Safety::Unsafe,
            },
            redirects: RedirectPlan {
                follow: self.has(Id::Location) || self.has(Id::LocationTrusted),
                trusted: self.has(Id::LocationTrusted),
                most: self.most_redirects()?,
                schemes: schemes.and(self.schemes(Id::ProtoRedir)?),
                keeps_method: self.has(Id::RequestMethod),
            },
            connect: self.connect(environment)?,
            proxies: self.proxies(&url, environment)?,
            output: self.output(&url)?,
            dump_heads: self.path(Id::DumpHeader),
            write_out: self.write_out()?,
            given_url: given_url.to_owned(),
            timeout: None,
            total_timeout: None,
            shows_progress: !self.has(Id::Silent) && !self.has(Id::NoProgressMeter),
            url,
            method,
            head_only,
            fields: fields.0,
            agent: agent.to_owned(),
            has_body,
            compressed,
        };
        if plan.method == "HEAD" && plan.output.checksum.is_some() {
            let text = "--checksum is that of a body, but a head is asked for, which has none; leave one out";
            return Err(UsageError(text.to_owned()).into());
        }
        if head_only && has_body {
            let text = "--head asks for a head only, but data are given too; leave one out, or add --get";
            return Err(UsageError(text.to_owned()).into());
        }
        if self.has(Id::CreateDirs) {
            plan.output.file.iter().chain(&plan.dump_heads).try_for_each(|file| create_folder_of(file))?;
        }
        Ok((plan, body))
    }

    /// Says which option took what looks like the URL, where there is none.
    fn with_lost_url(&self, refusal: Refusal, is_missing: bool) -> Refusal {
        let is_of_a_request = |id| OPTIONS.iter().any(|option| option.id == id && option.expands());
        let looks_like_one =
            |given: &&Given| is_of_a_request(given.id) && given.value.as_bytes().windows(3).any(|part| part == b"://");
        match (refusal, self.given.iter().rfind(looks_like_one)) {
            (Refusal::Url(text), Some(given)) if is_missing => {
                Refusal::Url(format!("{text}; {} took what looks like one for its value", given.place))
            }
            (refusal, _) => refusal,
        }
    }

    /// The schemes that an option and those of its name before it leave.
    fn schemes(&self, id: Id) -> Result<Schemes, UsageError> {
        self.all(id).try_fold(Schemes::ALL, |schemes, given| {
            schemes.changed(text(given)?).map_err(|what| UsageError(format!("{}: {what}", given.place)))
        })
    }

    /// What `-b` sends; a file of cookies is not read.
    fn cookies(&self) -> Result<Option<String>, UsageError> {
        let mut cookies: Option<String> = None;
        for given in self.all(Id::Cookie) {
            let value = text(given)?;
            if !value.contains('=') {
                let what = "without a = it would name a file of cookies, which is not read";
                return Err(UsageError(format!("--cookie: {what}; give name=value, or the header by -H @FILE")));
            }
            cookies = Some(cookies.map_or_else(|| value.to_owned(), |before| format!("{before};{value}")));
        }
        Ok(cookies)
    }

    /// The bytes that `-r` asks for, as they are sent: a number alone is where they begin.
    fn range(&self) -> Result<Option<String>, UsageError> {
        let Some(given) = self.text(Id::Range)? else { return Ok(None) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(given) {
            return Ok(Some(format!("{given}-")));
        }
        let is_part = |part: &str| {
            let Some((first, last)) = part.trim_matches(' ').split_once('-') else { return false };
            let runs_on =
                first.parse().ok().zip(last.parse().ok()).is_none_or(|(first, last): (u64, u64)| first <= last);
            match (first, last) {
                ("", last) => is_number(last),
                (first, "") => is_number(first),
                (first, last) => is_number(first) && is_number(last) && runs_on,
            }
        };
        if !given.split(',').all(is_part) {
            let what =
                "is no part of a body; valid are 0-499, 500- (or 500), -500 for the last, and several with commas";
            return Err(UsageError(format!("--range: '{given}' {what}")));
        }
        Ok(Some(given.to_owned()))
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
}

fn text(given: &Given) -> Result<&str, UsageError> {
    let text = given.value.to_str();
    text.filter(|text| !text.contains('\0'))
        .ok_or_else(|| UsageError(format!("{}: the value is no UTF-8 text", given.place)))
}

/// A random key in the form of a UUID (version 4).
fn random_key() -> String {
    let mut bytes = [0; 16];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Adds what one `-H` says.
fn header(given: &Given, fields: &mut Fields, input: &Input<'_>) -> Result<(), UsageError> {
    if let Some(path) = given.value.as_bytes().strip_prefix(b"@") {
        let path = Path::new(OsStr::from_bytes(path));
        let mut content = Vec::new();
        let read = input.open(path.as_os_str()).and_then(|file| file.take(MAX_HEADERS + 1).read_to_end(&mut content));
        read.map_err(|error| UsageError(format!("--header: {}: {}", path.display(), cause(&error))))?;
        if content.len() as u64 > MAX_HEADERS {
            let what = "it has more than 1 MiB, the most that is read of headers";
            return Err(UsageError(format!("--header: {}: {what}", path.display())));
        }
        let text = String::from_utf8_lossy(&content);
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = index + 1;
            fields
                .add(line.trim_end_matches('\r'))
                .map_err(|what| UsageError(format!("--header: {}, line {number}: {what}", path.display())))?;
        }
        return Ok(());
    }
    fields.add(text(given)?).map_err(|what| UsageError(format!("--header: {what}")))
}

fn read(path: &OsStr, given: &Given, input: &Input<'_>) -> Result<Vec<u8>, UsageError> {
    read_file(path, input).map_err(|error| unreadable(path, given, &error))
}

/// Refuses a file that is not there or may not be read. It is not opened: a pipe has one
/// reader.
fn check_readable(given: &Given) -> Result<(), UsageError> {
    let wrong = |error: &std::io::Error| unreadable(&given.value, given, error);
    if fs::metadata(&given.value).map_err(|error| wrong(&error))?.is_dir() {
        return Err(wrong(&std::io::ErrorKind::IsADirectory.into()));
    }
    rustix::fs::access(&given.value, rustix::fs::Access::READ_OK).map_err(|error| wrong(&error.into()))
}

fn unreadable(path: &OsStr, given: &Given, error: &std::io::Error) -> UsageError {
    UsageError(format!("{}: {}: {}", given.place, path.to_string_lossy(), cause(error)))
}
