//! What `-w` prints: curl's variables, and the attempts and waits of the run. Pure.

use std::time::Duration;

use super::framing::Head;

/// What the variables stand for.
pub struct Figures<'a> {
    /// The last head.
    pub head: &'a Head,
    /// The URL that it came from.
    pub url: &'a str,
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
    /// Attempts made.
    pub attempts: u64,
    /// The time spent in waits.
    pub waited: Duration,
}

/// The names of the variables.
pub const VARIABLES: [&str; 15] = [
    "http_code",
    "response_code",
    "http_version",
    "content_type",
    "num_redirects",
    "redirect_url",
    "url_effective",
    "method",
    "scheme",
    "size_download",
    "size_upload",
    "time_total",
    "num_retries",
    "num_attempts",
    "time_waited",
];

impl Figures<'_> {
    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "http_code" | "response_code" => format!("{:03}", self.head.status),
            "http_version" => if self.head.version == 0 && self.head.status > 0 { "1.0" } else { "1.1" }.to_owned(),
            "content_type" => self.head.value("content-type").unwrap_or_default().to_owned(),
            "num_redirects" => self.redirects.to_string(),
            "redirect_url" => match self.head.status {
                300..400 => self.head.value("location").unwrap_or_default().to_owned(),
                _ => String::new(),
            },
            "url_effective" => self.url.to_owned(),
            "method" => self.method.to_owned(),
            "scheme" => self.url.split(':').next().unwrap_or_default().to_owned(),
            "size_download" => self.size.to_string(),
            "size_upload" => self.uploaded.to_string(),
            "time_total" => format!("{:.6}", self.took.as_secs_f64()),
            "num_retries" => self.attempts.saturating_sub(1).to_string(),
            "num_attempts" => self.attempts.to_string(),
            "time_waited" => format!("{:.6}", self.waited.as_secs_f64()),
            _ => {
                let header = name.strip_prefix("header{")?.strip_suffix('}')?;
                self.head.value(header).unwrap_or_default().to_owned()
            }
        })
    }
}

/// The variable in a format that is none, if there is one.
pub fn unknown_variable(format: &str) -> Option<String> {
    pieces(format).find_map(|piece| match piece {
        Piece::Variable(name) if !VARIABLES.contains(&name) => Some(name.to_owned()),
        _ => None,
    })
}

/// The text with its variables filled in.
pub fn fill(format: &str, figures: &Figures<'_>) -> String {
    pieces(format)
        .map(|piece| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Char(c) => c.to_string(),
            Piece::Variable(name) => figures.value(name).unwrap_or_default(),
        })
        .collect()
}

enum Piece<'a> {
    Text(&'a str),
    Char(char),
    Variable(&'a str),
}

fn pieces(format: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = format;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        for (escape, c) in [("\\n", '\n'), ("\\r", '\r'), ("\\t", '\t'), ("\\\\", '\\'), ("%%", '%')] {
            if let Some(after) = rest.strip_prefix(escape) {
                rest = after;
                return Some(Piece::Char(c));
            }
        }
        if let Some((name, after)) = rest.strip_prefix("%{").and_then(|rest| rest.split_once('}')) {
            rest = after;
            return Some(Piece::Variable(name));
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
        let head = Head { status: 404, version: 1, ..Head::default() };
        let figures = Figures {
            head: &head,
            url: "http://x/",
            method: "GET",
            redirects: 2,
            size: 10,
            uploaded: 0,
            took: Duration::from_millis(1500),
            attempts: 3,
            waited: Duration::from_millis(250),
        };
        for (format, text) in [
            ("%{http_code}\\n", "404\n"),
            ("100%% of %{size_download}\\t%{num_attempts}", "100% of 10\t3"),
            ("%{time_total} %{time_waited} %{scheme}", "1.500000 0.250000 http"),
            ("plain é \\x %x", "plain é \\x %x"),
            ("%{unfinished", "%{unfinished"),
        ] {
            assert_eq!(fill(format, &figures), text);
        }
        assert_eq!(unknown_variable("%{http_code} %{nope}"), Some("nope".to_owned()));
        assert_eq!(unknown_variable("%{http_code}"), None);
        assert!(VARIABLES.iter().all(|name| figures.value(name).is_some()));
    }
}
