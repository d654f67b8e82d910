//! A request as it is planned, and the head of each that is made of it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::fields::{Field, Place};
use super::output::OutputPlan;
use super::proxy::Proxies;
use super::proxy::Proxy;
use super::redirect::{RedirectPlan, Step};
use super::version::Range;
use crate::net::{ConnectPlan, Failure, Origin};

/// A request and all that belongs to it; immutable for a run.
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the user's")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPlan {
    /// Where it goes.
    pub url: Url,
    /// The method.
    pub method: String,
    /// Whether only the head of the answer is wanted.
    pub head_only: bool,
    /// Header fields.
    pub fields: Vec<Field>,
    /// Who asks, for proxies; may be empty.
    pub agent: String,
    /// Whether it is safe to repeat whatever became of it.
    pub safety: Safety,
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
    /// Whether a person who looks on is shown how far a transfer and a wait are.
    pub shows_progress: bool,
    /// The limit on an attempt, redirects included.
    pub timeout: Option<Duration>,
    /// The limit on the run.
    pub total_timeout: Option<Duration>,
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
        self.safety != Safety::Unsafe
    }

    /// The part of the body that the user asks for (`-r`, or a header that says so).
    pub fn range(&self) -> Option<Range> {
        let field = self.fields.iter().find(|field| field.is("range") && !field.is_absent)?;
        Some(Range::parse(field.line.split_once(':').map_or("", |(_, value)| value)))
    }

    /// The option by which this file, known by its device and number, is written.
    pub fn option_that_writes(&self, file: (u64, u64)) -> Option<&'static str> {
        let is = |path: &Option<PathBuf>| {
            let metadata = path.as_ref().and_then(|path| fs::metadata(path).ok());
            metadata.is_some_and(|metadata| (metadata.dev(), metadata.ino()) == file)
        };
        if is(&self.output.file) { Some("--output") } else { is(&self.dump_heads).then_some("--dump-header") }
    }

    /// The proxy for this origin; a socket that is given leads past any.
    pub fn proxy_for(&self, origin: &Origin) -> Result<Option<Proxy>, Failure> {
        if self.connect.unix_socket.is_some() { Ok(None) } else { self.proxies.find(origin) }
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

/// Whether a request may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// Not where it may have been acted on.
    Unsafe,
    /// By its method, or because the user says so.
    Safe,
    /// By its `Idempotency-Key`, where that goes with it.
    ByKey,
}
