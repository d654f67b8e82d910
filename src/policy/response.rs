//! What a service says in its own words: error codes and delays in HTTP answers (reference
//! §8 and §11).

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::server_delay::{longest, parse_aws, parse_retry_after};
use super::{Mode, ServerDelay};

/// The most bytes of a body that are looked into.
const MAX_BODY: usize = 1024 * 1024;

/// An HTTP answer, as far as it is needed to judge it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Names and values, as they came.
    pub headers: Vec<(String, String)>,
    /// The beginning of its body.
    pub body: Vec<u8>,
}

impl Response {
    /// The values of a header, whatever its case.
    fn values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let same = move |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().filter(same).map(|(_, value)| value.as_str())
    }

    /// Whether the client is told to come back, by a `Retry-After` that says when.
    pub fn asks_back(&self, now: SystemTime) -> bool {
        self.values("retry-after").any(|value| parse_retry_after(value, None, now).is_some())
    }

    fn first(&self, name: &'static str) -> Option<&str> {
        self.values(name).next()
    }

    /// The AWS error code or Google RPC status that the answer carries, where its protocol
    /// documents it. A header beats the body, except where the protocol has none there.
    pub fn error_code(&self) -> Option<String> {
        // `CODE;Type`: a service that used to speak another protocol.
        let query =
            self.first("x-amzn-query-error").and_then(|value| word(value.split(';').next().unwrap_or_default()));
        if query.is_some() {
            return query;
        }
        let media_type = self.first("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
        // These protocols have it in one place only.
        let is_json_rpc = media_type.starts_with("application/x-amz-json-1.");
        let header = self.first("x-amzn-errortype").filter(|_| !is_json_rpc).and_then(json_code);
        if header.is_some() {
            return header;
        }
        let body = self.body.get(..MAX_BODY).unwrap_or(&self.body);
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        match body.trim_ascii_start().first() {
            Some(b'{' | b'[') => {
                let keys: &[&str] = if is_json_rpc { &["__type"] } else { &["code", "Code", "__type"] };
                code_in_json(&serde_json::from_slice(body).ok()?, keys)
            }
            Some(b'<') => code_in_xml(&String::from_utf8_lossy(body)),
            _ => None,
        }
    }

    /// Whether a service says that the caller's allowance is used up.
    pub fn allowance_is_used_up(&self) -> bool {
        self.first("x-ratelimit-remaining").is_some_and(|value| value.trim() == "0")
    }

    /// The delay that the answer asks for, and whether a header meant for that was junk.
    ///
    /// `x-amz-retry-after` counts in the standard and adaptive modes and wins there; then
    /// `Retry-After`, and where that is missing `x-ratelimit-reset` (a time) or
    /// `RateLimit-Reset` (seconds). Of several headers of one name the longest counts.
    pub fn server_delay(&self, mode: Mode, now: SystemTime) -> (Option<ServerDelay>, bool) {
        let mut junk = false;
        for source in Source::of(mode) {
            let (wanted, wrong) = longest(self.values(source.header()).map(|value| self.read(*source, value, now)));
            junk |= wrong;
            if let Some(wanted) = wanted {
                let aws = *source == Source::Aws;
                return (Some(if aws { ServerDelay::Aws(wanted) } else { ServerDelay::RetryAfter(wanted) }), junk);
            }
        }
        (None, junk)
    }

    /// What is to be said of a header that asks for a delay and is junk, if there is one.
    pub fn junk_delay(&self, mode: Mode, now: SystemTime) -> Option<String> {
        Source::of(mode).iter().find_map(|source| {
            let junk = self.values(source.header()).find(|value| self.read(*source, value, now).is_none())?;
            let shown: String = junk.chars().take(MAX_SHOWN).collect();
            Some(format!("{}: '{shown}' is not {}; it is ignored", source.header(), source.valid()))
        })
    }

    /// The delay in a value of a header; `None` for junk.
    fn read(&self, source: Source, value: &str, now: SystemTime) -> Option<Duration> {
        let answered = || self.first("date").and_then(|date| httpdate::parse_http_date(date.trim()).ok());
        match source {
            Source::Aws => parse_aws(value),
            Source::RetryAfter | Source::Reset => parse_retry_after(value, answered(), now),
            Source::ResetAt => {
                let value = value.trim();
                if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                // What no integer or calendar holds is longer than any limit.
                let reset =
                    value.parse().ok().and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at)));
                let from = answered().unwrap_or(now);
                Some(reset.map_or(Duration::MAX, |reset| reset.duration_since(from).unwrap_or(Duration::ZERO)))
            }
        }
    }
}

/// The most characters of a header that are shown.
const MAX_SHOWN: usize = 80;

/// Headers that ask for a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Aws,
    RetryAfter,
    ResetAt,
    Reset,
}

impl Source {
    /// Those that count in a mode, in their order.
    fn of(mode: Mode) -> &'static [Self] {
        const ALL: [Source; 4] = [Source::Aws, Source::RetryAfter, Source::ResetAt, Source::Reset];
        if matches!(mode, Mode::Standard | Mode::Adaptive) { &ALL } else { &ALL[1..] }
    }

    fn header(self) -> &'static str {
        match self {
            Self::Aws => "x-amz-retry-after",
            Self::RetryAfter => "retry-after",
            Self::ResetAt => "x-ratelimit-reset",
            Self::Reset => "ratelimit-reset",
        }
    }

    fn valid(self) -> &'static str {
        match self {
            Self::Aws => "a number of milliseconds",
            Self::RetryAfter => "a number of seconds, nor an HTTP date",
            Self::ResetAt => "a time in seconds since 1970",
            Self::Reset => "a number of seconds",
        }
    }
}

/// A code without what surrounds it; `None` for nothing.
fn word(code: &str) -> Option<String> {
    let code = code.trim();
    (!code.is_empty()).then(|| code.to_owned())
}

/// JSON protocols write `namespace#Code:address`.
fn json_code(code: &str) -> Option<String> {
    let code = code.split(':').next().unwrap_or_default();
    word(code.rsplit('#').next().unwrap_or_default())
}

fn code_in_json(body: &Value, keys: &[&str]) -> Option<String> {
    let text = |value: &Value| value.as_str().and_then(json_code);
    // Google wraps the status: `{"error": {"code": 503, "status": "UNAVAILABLE"}}`, in a
    // list where the answer was to be a stream.
    let body = body.get(0).unwrap_or(body);
    let google = body.get("error").and_then(|error| error.get("status")).and_then(text);
    let aws = || keys.iter().find_map(|key| body.get(key).and_then(text));
    google.or_else(aws)
}

/// XML without comments, and with no markup in what is text only.
fn without_comments(xml: &str) -> String {
    let mut plain = String::with_capacity(xml.len());
    let mut rest = xml;
    while let Some(at) = rest.find("<!") {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
        } else if let Some(text) = rest.strip_prefix("<![CDATA[") {
            let (text, after) = text.split_once("]]>").unwrap_or((text, ""));
            plain.push_str(&text.replace('<', "&lt;"));
            rest = after;
        } else {
            plain.push_str("<!");
            rest = &rest[2..];
        }
    }
    plain + rest
}

fn code_in_xml(body: &str) -> Option<String> {
    let whole = without_comments(body);
    let mut body = whole.trim_start();
    // A declaration may stand before the root.
    if body.starts_with("<?") {
        body = body.split_once("?>")?.1.trim_start();
    }
    // Where an element's content begins: its name ends, and so does its tag.
    let content = |text: &'static str, body: &str| {
        let rest = body.strip_prefix(text)?;
        let ends = rest.starts_with('>') || rest.starts_with(|c: char| c.is_ascii_whitespace());
        ends.then(|| rest.split_once('>').map(|(_, content)| content.to_owned()))?
    };
    let error = if let Some(error) = content("<Error", body) {
        error
    } else {
        let root = content("<ErrorResponse", body).or_else(|| content("<Response", body))?;
        content("<Error", root.get(root.find("<Error>").or_else(|| root.find("<Error "))?..)?)?
    };
    word(error.split_once("<Code>")?.1.split_once("</Code>")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status: 400, headers, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn google_statuses_are_found() {
        let body = r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#;
        assert_eq!(answer(&[], body).error_code().as_deref(), Some("UNAVAILABLE"));
        assert_eq!(answer(&[], &format!("[{body}]")).error_code().as_deref(), Some("UNAVAILABLE"));
    }

    #[test]
    fn codes_are_found_where_each_protocol_has_them() {
        let json = ("Content-Type", "Application/X-Amz-JSON-1.1");
        for (headers, body, code) in [
            (&[json][..], r#"{"__type":"B","code":"C"}"#, Some("B")),
            (&[json], r#"{"code":"C"}"#, None),
            (&[json, ("x-amzn-errortype", "A")], r#"{"__type":"B"}"#, Some("B")),
            (&[("x-amzn-errortype", "A")], r#"{"__type":"B"}"#, Some("A")),
            (&[("x-amzn-query-error", ""), ("x-amzn-errortype", "")], r#"{"__type":"B"}"#, Some("B")),
            (
                &[],
                "\u{feff}<?xml version=\"1.0\"?><!-- x -->\n<ErrorResponse\n xmlns=\"u\"><Error><Code>C</Code></Error></ErrorResponse>",
                Some("C"),
            ),
            (&[], "<Error xmlns=\"u\"><Code> C </Code></Error>", Some("C")),
            (&[], "<Errors><Error><Code>C</Code></Error></Errors>", None),
            (&[], "<Error><!--<Code>Throttling</Code>--></Error>", None),
            (&[], "<!--a--><!--b--><!--<Error>--><Error><!-- <Code>B</Code> --><Code>C</Code></Error>", Some("C")),
            (&[], "<Error><Message><![CDATA[<Code>B</Code><!--]]></Message><Code>C</Code></Error>", Some("C")),
            (&[], "<Error><Code><![CDATA[C]]></Code></Error>", Some("C")),
            (&[], "<Error><!-- <Code>C</Code></Error>", None),
            (&[], "<!DOCTYPE x><Error><Code>C</Code></Error>", None),
            (&[], "<html><Error><Code>C</Code></Error></html>", None),
        ] {
            assert_eq!(answer(headers, body).error_code().as_deref(), code, "{body}");
        }
    }

    #[test]
    fn junk_bodies_have_no_code() {
        let deep = "[".repeat(100_000);
        for body in
            ["", "{", "null", "[]", "<", "<a/>", "<Error>", "<Error><Code></Code></Error>", "{\"code\":7}", &deep]
        {
            assert_eq!(answer(&[], body).error_code(), None, "{}", &body[..body.len().min(20)]);
        }
    }

    #[test]
    fn the_headers_come_in_their_order() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let all = [("X-Amz-Retry-After", "1500"), ("Retry-After", "7"), ("x-ratelimit-reset", "1000009")];
        let delay = |headers: &[(&str, &str)], mode| answer(headers, "").server_delay(mode, now);
        let after = |seconds| Some(ServerDelay::RetryAfter(Duration::from_secs(seconds)));
        let aws = Some(ServerDelay::Aws(Duration::from_millis(1500)));
        assert_eq!(delay(&all, Mode::Standard), (aws, false));
        assert_eq!(delay(&all, Mode::Google), (after(7), false));
        assert_eq!(delay(&all[2..], Mode::Google), (after(9), false));
        assert_eq!(delay(&[("RateLimit-Reset", "5")], Mode::Google), (after(5), false));
        assert_eq!(delay(&[("Retry-After", "2"), ("Retry-After", "9")], Mode::Google), (after(9), false));
        assert_eq!(delay(&[("Retry-After", "soon")], Mode::Standard), (None, true));
        assert_eq!(delay(&[("x-ratelimit-reset", "1")], Mode::Standard), (after(0), false));
        assert_eq!(delay(&[], Mode::Standard), (None, false));
    }
}
