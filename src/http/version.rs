//! Which version of a resource an answer is of, and which part of it. Pure.

use std::time::{Duration, SystemTime};

use super::framing::Head;

/// What tells one version of a resource from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    /// A strong entity tag.
    Tag(String),
    /// The time of the last change.
    Changed(String),
}

/// Whether a time of the last change tells versions apart: it is one, and lies a minute or
/// more before the answer, so that no other change can bear the same (RFC 9110 §8.8.2.2).
fn is_strong(time: &str, date: Option<&str>) -> bool {
    let read = |text: &str| httpdate::parse_http_date(text.trim()).ok();
    let age = |changed: SystemTime| read(date?)?.duration_since(changed).ok();
    read(time).and_then(age).is_some_and(|age| age >= Duration::from_secs(60))
}

/// What `Content-Range` says: `bytes 5-9/10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) total: Option<u64>,
}

pub(super) fn content_range(value: &str) -> Option<Part> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    let part = Part { first: first.trim().parse().ok()?, last: last.trim().parse().ok()?, total };
    (part.first <= part.last && part.total.is_none_or(|total| part.last < total)).then_some(part)
}

impl Version {
    pub(super) fn of(head: &Head) -> Option<Self> {
        let field = |name| head.value(name).map(str::trim).filter(|value| !value.is_empty());
        let tag = field("etag").filter(|tag| tag.len() > 1 && tag.starts_with('"') && tag.ends_with('"'));
        let tag = tag.map(|tag| Self::Tag(tag.to_owned()));
        tag.or_else(|| {
            field("last-modified")
                .filter(|time| is_strong(time, field("date")))
                .map(|time| Self::Changed(time.to_owned()))
        })
    }

    /// As `If-Range` has it.
    pub(super) fn text(&self) -> &str {
        let (Self::Tag(text) | Self::Changed(text)) = self;
        text
    }

    /// Whether the part in this answer is of the same version. The time may be left out
    /// there (RFC 9110 §15.3.7), the tag not.
    pub(super) fn is_still(&self, head: &Head) -> bool {
        let value = |name| head.value(name).map(str::trim);
        match self {
            Self::Tag(tag) => value("etag") == Some(tag),
            Self::Changed(time) => value("last-modified").is_none_or(|value| value == time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_refused() {
        let part = |total| Some(Part { first: 5, last: 9, total });
        assert_eq!(content_range("bytes 5-9/10"), part(Some(10)));
        assert_eq!(content_range(" bytes 5-9/*"), part(None));
        for junk in
            ["", "bytes", "bytes */10", "bytes x-9/10", "bytes 5-9/x", "items 5-9/10", "bytes 9-5/10", "bytes 5-9/9"]
        {
            assert_eq!(content_range(junk), None, "{junk}");
        }
    }

    #[test]
    fn a_weak_tag_tells_nothing() {
        let head = |fields: &[(&str, &str)]| Head {
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Head::default()
        };
        let version = |fields: &[(&str, &str)]| Version::of(&head(fields)).map(|version| version.text().to_owned());
        let (then, soon) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:36 GMT");
        let later = ("Date", "Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(version(&[("ETag", "\"a\""), ("Last-Modified", then), later]).as_deref(), Some("\"a\""));
        assert_eq!(version(&[("ETag", "W/\"a\""), ("Last-Modified", then), later]).as_deref(), Some(then));
        // A time that is none, or too near to tell two changes apart.
        assert_eq!(version(&[("Last-Modified", then)]), None);
        assert_eq!(version(&[("Last-Modified", then), ("Date", soon)]), None);
        assert_eq!(version(&[("Last-Modified", "x"), later]), None);
        assert_eq!(version(&[("ETag", "W/\"a\"")]), None);
        assert_eq!(version(&[("ETag", "\"")]), None);
    }
}
