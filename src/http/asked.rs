//! What the user asks for: curl's options and the URL made into a plan and a body.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::USER_AGENT;
use super::address::{add_file_name, add_query, given_url, parse_url, percent_encoded};
use super::body::Body;
use super::fields::{Fields, Place};
use super::form::{Part, Source};
use super::input::Input;
use super::output::{Failures, OutputPlan, Resume};
use super::proxy::Proxies;
use super::redirect::RedirectPlan;
use super::refusal::Refusal;
use super::request::{RequestPlan, Safety};
use super::schemes::Schemes;
use super::variables::Variables;
use super::write_out;
use crate::cause::cause;
use crate::cli::options::{Id, OPTIONS};
use crate::cli::{EXPAND, Given, UsageError};
use crate::config::env::Environment;
use crate::net::tls::TlsPlan;
use crate::net::{ConnectPlan, Family, Origin, Redirection, percent_decoded};
use crate::units::parse_duration;

/// The most redirects, as curl has it.
const MAX_REDIRECTS: u32 = 50;

/// The mode of a folder that is made, as curl has it.
const CREATED_MODE: u32 = 0o750;

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
                let what = "';auto' is not known: the same Referer is sent along redirects; give it without";
                return Err(UsageError(format!("--referer: {what}")).into());
            }
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
            push_file(&mut body, &given.value, given, self.spool_folder, self.input)?;
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
                let encoded = urlencoded(given, self.input)?;
                body.push(encoded);
                Ok(())
            }
            (Id::DataRaw, _) | (_, None) => {
                body.push(bytes);
                Ok(())
            }
            (Id::Data, Some(path)) => {
                // As curl has it: the line ends and NULs of a file are no part of the data.
                let mut content = read(OsStr::from_bytes(path), given, self.input)?;
                content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                body.push(content);
                Ok(())
            }
            (_, Some(path)) => push_file(body, OsStr::from_bytes(path), given, self.spool_folder, self.input),
        }
    }

    fn part(&self, given: &Given, boundary: &str, disposition: &str, body: &mut Body) -> Result<(), UsageError> {
        let part = Part::parse(text(given)?).map_err(|what| UsageError(format!("--form: {what}")))?;
        body.push(part.head(boundary, disposition));
        if part.source == Source::Text {
            body.push(part.content.as_bytes());
        } else {
            push_file(body, OsStr::new(&part.content), given, self.spool_folder, self.input)?;
        }
        body.push("\r\n");
        Ok(())
    }

    fn connect(&self, environment: &dyn Environment) -> Result<ConnectPlan, UsageError> {
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
                store_file: named("SSL_CERT_FILE"),
                identity,
            },
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
        let files = |given: &&Given| matches!(given.id, Id::Output | Id::DumpHeader | Id::OutputDir);
        if let Some(given) = self.given.iter().filter(files).find(|given| given.value.is_empty()) {
            return Err(UsageError(format!("{}: '' is no name; leave the option out, or name one", given.place)));
        }
        if self.all(Id::Output).count() > 1 {
            return Err(UsageError("--output is given twice, but there is one answer to write: give it once".into()));
        }
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
            // A name from the root is in the folder too, as curl has it.
            file = Some(folder.join(name.strip_prefix("/").unwrap_or(name)));
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
            Some(text) => {
                let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let at = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                    UsageError(format!("--continue-at: '{text}' is not an offset; valid are a number of bytes, and -"))
                })?;
                // What begins at the beginning goes on with nothing.
                (at > 0).then_some(Resume::At(at))
            }
        };
        if resume.is_some() && file.is_none() {
            return Err(UsageError("--continue-at goes on with a file: name it by -o or -O".into()));
        }
        if resume.is_some() && self.has(Id::Range) {
            return Err(UsageError("--continue-at and --range both say which part is wanted: give one".into()));
        }
        if resume.is_some() && (checksum.is_some() || self.has(Id::Compressed)) {
            return Err(UsageError("--continue-at cannot be joined with --checksum or --compressed".into()));
        }
        Ok(OutputPlan {
            file,
            live: self.has(Id::NoBuffer),
            include: self.has(Id::Include) || self.has(Id::Head),
            failures: match (self.has(Id::FailWithBody), self.has(Id::SucceedOn)) {
                (true, _) => Failures::Written,
                (false, true) => Failures::MaySucceed,
                (false, false) => Failures::Dropped,
            },
            checksum,
            resume,
            spool_folder: self.spool_folder.to_owned(),
        })
    }

    fn write_out(&self) -> Result<Option<String>, UsageError> {
        let Some(format) = self.text(Id::WriteOut)? else { return Ok(None) };
        let format = match format.strip_prefix('@') {
            Some(path) => {
                let given =
                    self.last(Id::WriteOut).map(|given| read(OsStr::new(path), given, self.input)).transpose()?;
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

fn text(given: &Given) -> Result<&str, UsageError> {
    let text = given.value.to_str();
    text.filter(|text| !text.contains('\0'))
        .ok_or_else(|| UsageError(format!("{}: the value is no UTF-8 text", given.place)))
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
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Adds what one `-H` says.
fn header(given: &Given, fields: &mut Fields, input: &Input<'_>) -> Result<(), UsageError> {
    if let Some(path) = given.value.as_bytes().strip_prefix(b"@") {
        let path = Path::new(OsStr::from_bytes(path));
        let mut content = Vec::new();
        let read = input.open(path.as_os_str()).and_then(|file| file.take(MAX_HEADERS).read_to_end(&mut content));
        read.map_err(|error| UsageError(format!("--header: {}: {}", path.display(), cause(&error))))?;
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

/// `content`, `=content`, `name=content`, `@file` or `name@file`: the first `=` counts, and
/// `@` only where there is none.
fn urlencoded(given: &Given, input: &Input<'_>) -> Result<String, UsageError> {
    let bytes = given.value.as_bytes();
    let first = |wanted| bytes.iter().position(|byte| *byte == wanted);
    let at = first(b'=').or_else(|| first(b'@'));
    let (name, content) = match at {
        None => (&b""[..], bytes.to_vec()),
        Some(at) if bytes[at] == b'=' => (&bytes[..at], bytes[at + 1..].to_vec()),
        Some(at) => (&bytes[..at], read(OsStr::from_bytes(&bytes[at + 1..]), given, input)?),
    };
    let mut text = String::from_utf8_lossy(name).into_owned();
    if !text.is_empty() {
        text.push('=');
    }
    text.push_str(&percent_encoded(&content).replace("%20", "+"));
    Ok(text)
}

/// Makes the folder that a file is to be in, and those above it, as curl does.
fn create_folder_of(file: &Path) -> Result<(), UsageError> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let created = fs::DirBuilder::new().recursive(true).mode(CREATED_MODE).create(folder);
    created.map_err(|error| UsageError(format!("--create-dirs: {}: {}", folder.display(), cause(&error))))
}

fn read(path: &OsStr, given: &Given, input: &Input<'_>) -> Result<Vec<u8>, UsageError> {
    read_file(path, input).map_err(|error| unreadable(path, given, &error))
}

fn push_file(body: &mut Body, path: &OsStr, given: &Given, folder: &Path, input: &Input<'_>) -> Result<(), UsageError> {
    let is_standard = path == "-" || path == ".";
    let opened = input.open(if is_standard { OsStr::new("-") } else { path });
    let mut reader = opened.map_err(|error| unreadable(path, given, &error))?;
    let pushed = if is_standard {
        body.push_stream(&mut reader, folder)
    } else {
        body.push_file(Path::new(path), &mut reader, folder)
    };
    pushed.map_err(|error| {
        if !reader.is_read() {
            return unreadable(path, given, &error);
        }
        let (place, folder, why) = (&given.place, folder.display(), cause(&error));
        UsageError(format!("{place}: the body cannot be kept in {folder} (the folder is that of TMPDIR): {why}"))
    })
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
