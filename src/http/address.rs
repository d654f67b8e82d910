//! URLs: found among the words, read as curl reads them, put together, shown. Pure.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use url::Url;

use super::body::Body;
use super::refusal::Refusal;
use crate::cli::UsageError;

/// Words that are methods, which other programs take in front of the URL.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];

/// The URL among the words.
pub fn given_url<'a>(words: &[&'a OsString]) -> Result<&'a str, Refusal> {
    let own = "to run a program called http: retryx -- http ...";
    let word = match words {
        [] => {
            let usage = "http needs a URL; usage: retryx [OPTIONS] http [OPTIONS] URL";
            return Err(Refusal::Url(format!("{usage} ({own})")));
        }
        [word] => word,
        [first, rest @ ..] => {
            let hint = match METHODS.iter().find(|method| first.as_os_str() == **method) {
                Some(method) => format!("the method is given by -X {method}; {own}"),
                None => "one request is made a run".to_owned(),
            };
            let count = rest.len() + 1;
            return Err(UsageError(format!("http takes one URL, but {count} words were given; {hint}")).into());
        }
    };
    let text = word.to_str().ok_or_else(|| Refusal::Url("the URL is no UTF-8 text; percent-encode it".into()))?;
    if METHODS.contains(&text) {
        return Err(UsageError(format!("http needs a URL; the method is given by -X {text} ({own})")).into());
    }
    Ok(text)
}

/// Reads a URL. A name without a scheme is taken for http, as curl takes it.
pub fn parse_url(text: &str) -> Result<Url, Refusal> {
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

/// Puts a body of data into the query, as `-G` does.
pub fn add_query(url: &mut Url, body: &Body) -> Result<(), Refusal> {
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
        Some(query) if query.is_empty() || query.ends_with('&') => format!("{query}{data}"),
        Some(query) => format!("{query}&{data}"),
        None => data,
    };
    url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
    Ok(())
}

/// Ends a URL whose path ends in a slash with a file's name, as `-T` does.
pub fn add_file_name(url: &mut Url, path: &Path) {
    if url.path().ends_with('/')
        && let Some(name) = path.file_name()
    {
        let whole = format!("{}{}", url.path(), percent_encoded(name.as_bytes()));
        url.set_path(&whole);
    }
}

/// Everything but what never needs it percent-encoded.
pub fn percent_encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// A URL as it can be shown: without a password in it, nor what its query says. A password
/// may hold any of `/?#` that nobody has encoded, so nothing before the last `@` is shown.
pub fn without_password(url: &str) -> String {
    let (start, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(is_of_scheme) => (&url[..scheme.len() + 3], rest),
        _ => ("", url),
    };
    let Some((hidden, shown)) = rest.rsplit_once('@') else {
        return format!("{start}{}", rest.split(['?', '#']).next().unwrap_or_default());
    };
    if hidden.contains(['?', '#']) {
        // Whether that is a password or a query, nobody can tell, nor what stands behind it.
        return format!("{start}...");
    }
    let left_out = if hidden.contains('/') { "...@" } else { "" };
    format!("{start}{left_out}{}", shown.split(['?', '#']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(without_password("http://u:p@h:1/x?token=1#f"), "http://h:1/x");
        assert_eq!(without_password("u:p@h/x"), "h/x");
        assert_eq!(without_password("://"), "://");
        assert_eq!(without_password("u:a://b@h/x"), "...@h/x");
        assert_eq!(without_password("http://u:a/b@h:1/x?y"), "http://...@h:1/x");
        for url in ["http://u:a?b@h/x", "u:a#b@h", "http://h/?a=b@c&d=e"] {
            assert!(without_password(url).ends_with("..."), "{url}");
        }
    }
}
