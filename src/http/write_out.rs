//! What `-w` prints: curl's variables, and the attempts and waits of the run. Pure.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use url::Url;

use super::framing::Head;
use crate::net::Moments;

/// What the variables stand for.
pub struct Figures<'a> {
    /// The last head.
    pub head: &'a Head,
    /// Bytes of all heads.
    pub heads: usize,
    /// The URL that it came from.
    pub url: &'a str,
    /// The URL as the user gave it.
    pub given_url: &'a str,
    /// The method of the last request.
    pub method: &'a str,
    /// Redirects followed.
    pub redirects: u32,
    /// Bytes received of the body.
    pub size: u64,
    /// Bytes of the request's body.
    pub uploaded: u64,
    /// The time of the last attempt.
    pub took: Duration,
    /// What of it was when.
    pub times: Times,
    /// The other end of the last connection.
    pub peer: Option<SocketAddr>,
    /// The file that has the body.
    pub file: Option<&'a Path>,
    /// How the run ends.
    pub exit_code: u8,
    /// Why, where it fails.
    pub error: &'a str,
    /// Attempts made.
    pub attempts: u64,
    /// The time spent in waits.
    pub waited: Duration,
}

/// What happened when in an attempt, from its start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// The connection was made, step by step.
    pub made: Moments,
    /// The head of the answer was there.
    pub answered: Duration,
    /// The last redirect was followed.
    pub redirected: Duration,
}

impl Times {
    /// The same from an attempt's start, where they are of the run's clock.
    pub fn since(self, start: Duration) -> Self {
        let from = |time: Duration| time.saturating_sub(start);
        Self {
            made: Moments {
                resolved: from(self.made.resolved),
                connected: from(self.made.connected),
                secured: from(self.made.secured),
                ready: from(self.made.ready),
            },
            answered: from(self.answered),
            redirected: from(self.redirected),
        }
    }
}

/// The names of the variables.
pub const VARIABLES: [&str; 37] = [
    "http_code",
    "response_code",
    "http_version",
    "content_type",
    "num_headers",
    "num_redirects",
    "redirect_url",
    "url_effective",
    "url",
    "method",
    "scheme",
    "header_json",
    "size_download",
    "size_upload",
    "size_header",
    "speed_download",
    "speed_upload",
    "remote_ip",
    "remote_port",
    "time_namelookup",
    "time_connect",
    "time_appconnect",
    "time_pretransfer",
    "time_starttransfer",
    "time_redirect",
    "time_total",
    "filename_effective",
    "exitcode",
    "errormsg",
    "urlnum",
    "ssl_verify_result",
    "stdout",
    "stderr",
    "onerror",
    "num_retries",
    "num_attempts",
    "time_waited",
];

impl Figures<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let seconds = |time: Duration| format!("{:.6}", time.as_secs_f64());
        let rate = |bytes: u64| {
            let micros = self.took.as_micros().max(1);
            (u128::from(bytes) * 1_000_000 / micros).to_string()
        };
        Some(match name {
            "http_code" | "response_code" => format!("{:03}", self.head.status),
            "http_version" => match (self.head.status, self.head.version) {
                (0, _) => "0",
                (_, 0) => "1.0",
                _ => "1.1",
            }
            .to_owned(),
            "content_type" => self.head.value("content-type").unwrap_or_default().trim().to_owned(),
            "num_headers" => self.head.fields.len().to_string(),
            "num_redirects" => self.redirects.to_string(),
            "redirect_url" => self.redirect_url().unwrap_or_default(),
            "url_effective" => self.url.to_owned(),
            "url" => self.given_url.to_owned(),
            "method" => self.method.to_owned(),
            "scheme" => self.url.split(':').next().unwrap_or_default().to_owned(),
            "header_json" => self.header_json(),
            "size_download" => self.size.to_string(),
            "size_upload" => self.uploaded.to_string(),
            "size_header" => self.heads.to_string(),
            "speed_download" => rate(self.size),
            "speed_upload" => rate(self.uploaded),
            "remote_ip" => self.peer.map(|peer| peer.ip().to_string()).unwrap_or_default(),
            "remote_port" => self.peer.map_or(0, |peer| peer.port()).to_string(),
            "time_namelookup" => seconds(self.times.made.resolved),
            "time_connect" => seconds(self.times.made.connected),
            "time_appconnect" => seconds(self.times.made.secured),
            "time_pretransfer" => seconds(self.times.made.ready),
            "time_starttransfer" => seconds(self.times.answered),
            "time_redirect" => seconds(self.times.redirected),
            "time_total" => seconds(self.took),
            "filename_effective" => self.file.map(|file| file.display().to_string()).unwrap_or_default(),
            "exitcode" => self.exit_code.to_string(),
            "errormsg" => self.error.to_owned(),
            "urlnum" | "ssl_verify_result" => "0".to_owned(),
            "num_retries" => self.attempts.saturating_sub(1).to_string(),
            "num_attempts" => self.attempts.to_string(),
            "time_waited" => seconds(self.waited),
            _ => return None,
        })
    }

    /// Where the last answer would have led to.
    fn redirect_url(&self) -> Option<String> {
        let location = self.head.value("location").filter(|_| (300..400).contains(&self.head.status))?;
        Some(Url::parse(self.url).ok()?.join(location.trim()).ok()?.to_string())
    }

    /// The fields of the last head as curl prints them: the names in lower case, all values
    /// of a name together.
    fn header_json(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in &self.head.fields {
            let name = name.to_ascii_lowercase();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let entries: Vec<String> = names
            .iter()
            .map(|name| {
                let values: Vec<String> = self.head.values(name).map(|value| quoted(value.trim())).collect();
                format!("{}:[{}]", quoted(name), values.join(","))
            })
            .collect();
        format!("{{{}\n}}", entries.join(",\n"))
    }
}

/// The variable in a format that is none, if there is one.
pub fn unknown_variable(format: &str) -> Option<String> {
    pieces(format).find_map(|piece| match piece {
        Piece::Variable(name) if !VARIABLES.contains(&name) => Some(name.to_owned()),
        _ => None,
    })
}

/// What is printed where.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
}

/// The text with its variables filled in.
pub fn fill(format: &str, figures: &Figures<'_>) -> Printed {
    let mut printed = Printed::default();
    let mut to_stderr = false;
    for piece in pieces(format) {
        let text = match piece {
            Piece::Variable("stdout") => {
                to_stderr = false;
                continue;
            }
            Piece::Variable("stderr") => {
                to_stderr = true;
                continue;
            }
            // What follows is for failures only.
            Piece::Variable("onerror") if figures.exit_code == 0 => break,
            Piece::Text(text) => text.to_owned(),
            Piece::Char(c) => c.to_string(),
            Piece::Variable(name) => figures.value(name).unwrap_or_default(),
            Piece::Header(name) => figures.head.value(name).unwrap_or_default().trim().to_owned(),
        };
        if to_stderr { &mut printed.stderr } else { &mut printed.stdout }.push_str(&text);
    }
    printed
}

enum Piece<'a> {
    Text(&'a str),
    Char(char),
    Variable(&'a str),
    Header(&'a str),
}

fn pieces(format: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = format;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        for (escape, c) in [("\\n", '\n'), ("\\r", '\r'), ("\\t", '\t'), ("%%", '%')] {
            if let Some(after) = rest.strip_prefix(escape) {
                rest = after;
                return Some(Piece::Char(c));
            }
        }
        if let Some((name, after)) = rest.strip_prefix("%{").and_then(|rest| rest.split_once('}')) {
            rest = after;
            return Some(Piece::Variable(name));
        }
        if let Some((name, after)) = rest.strip_prefix("%header{").and_then(|rest| rest.split_once('}')) {
            rest = after;
            return Some(Piece::Header(name));
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest[first..].find(['\\', '%']).map_or(rest.len(), |at| first + at);
        let (text, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_escapes_are_filled_in() {
        let fields =
            [("X-A", " 1"), ("Location", "/y"), ("x-a", "\"2\"")].map(|(name, value)| (name.into(), value.into()));
        let head = Head { status: 302, version: 1, fields: fields.to_vec(), ..Head::default() };
        let mut figures = Figures {
            head: &head,
            heads: 100,
            url: "http://x/a/b",
            given_url: "x/a/b",
            method: "GET",
            redirects: 2,
            size: 10,
            uploaded: 0,
            took: Duration::from_millis(1500),
            times: Times::default(),
            peer: Some(([127, 0, 0, 1], 80).into()),
            file: None,
            exit_code: 0,
            error: "",
            attempts: 3,
            waited: Duration::from_millis(250),
        };
        for (format, text) in [
            ("%{http_code}\\n", "302\n"),
            ("100%% of %{size_download}\\t%{num_attempts}", "100% of 10\t3"),
            ("%{time_total} %{time_waited} %{scheme}", "1.500000 0.250000 http"),
            ("plain é \\x %x", "plain é \\x %x"),
            ("%{unfinished", "%{unfinished"),
            ("%{redirect_url} %header{x-A}|%header{no}|", "http://x/y 1||"),
            ("%{header_json}", "{\"x-a\":[\"1\",\"\\\"2\\\"\"],\n\"location\":[\"/y\"]\n}"),
            ("%{speed_download} %{remote_ip}:%{remote_port}", "6 127.0.0.1:80"),
            ("a%{onerror}b", "a"),
        ] {
            assert_eq!(fill(format, &figures), Printed { stdout: text.to_owned(), stderr: String::new() });
        }
        figures.exit_code = 7;
        let printed = Printed { stdout: "1 4".to_owned(), stderr: "7 3".to_owned() };
        assert_eq!(fill("%{onerror}1%{stderr}%{exitcode} 3%{stdout} 4", &figures), printed);
        assert_eq!(unknown_variable("%{http_code} %{nope}"), Some("nope".to_owned()));
        assert_eq!(unknown_variable("%{http_code}"), None);
        let known = |name: &&str| figures.value(name).is_some() || ["stdout", "stderr", "onerror"].contains(name);
        assert!(VARIABLES.iter().all(known));
    }

    #[test]
    fn the_help_names_all_variables() {
        use crate::cli::options::{Id, OPTIONS};
        let option = OPTIONS.iter().find(|option| option.id == Id::WriteOut).unwrap();
        for name in VARIABLES {
            assert!(option.more.contains(&format!(" {name},")), "{name}");
        }
    }
}
