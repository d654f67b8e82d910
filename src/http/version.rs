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

/// What a `Range` field asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// What begins at one byte, and ends at another or with the whole.
    From(u64, Option<u64>),
    /// So many bytes at the end.
    Last(u64),
    /// Several parts, or what is not known here.
    Other,
}

impl Range {
    /// Reads the field's value.
    pub(super) fn parse(value: &str) -> Self {
        let one = |range: &str| {
            let number = |text: &str| text.trim().parse().ok();
            let (first, last) = range.split_once('-')?;
            Some(match (first.trim(), last.trim()) {
                ("", count) => Self::Last(number(count)?),
                (first, "") => Self::From(number(first)?, None),
                (first, last) => Self::From(number(first)?, Some(number(last)?)),
            })
        };
        value.trim().strip_prefix("bytes=").and_then(one).unwrap_or(Self::Other)
    }

    /// Whether a part is what was asked for, or the beginning of that.
    pub(super) fn is_met_by(self, part: &Part) -> bool {
        match self {
            Self::From(first, last) => part.first == first && last.is_none_or(|last| part.last <= last),
            Self::Last(count) => part.total.is_none_or(|total| part.first == total.saturating_sub(count)),
            Self::Other => true,
        }
    }

    /// The last byte of what was asked for, as far as this answer to it tells.
    pub(super) fn last_of(self, part: &Part) -> u64 {
        let end = part.total.map(|total| total.saturating_sub(1));
        match self {
            // Where the whole may end anywhere, all that was asked for is wanted.
            Self::From(_, Some(last)) => end.map_or(last, |end| last.min(end)),
            Self::From(_, None) | Self::Last(_) => end.unwrap_or(part.last),
            Self::Other => part.last,
        }
    }
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
    fn a_part_is_what_was_asked_for_or_not() {
        let part = |first, last, total| Part { first, last, total };
        for (range, part, last) in [
            ("bytes=0-5", part(0, 5, Some(100)), Some(5)),
            ("bytes=0-5", part(0, 3, Some(4)), Some(3)),
            ("bytes=0-5", part(0, 3, None), Some(5)),
            ("bytes=0-5", part(0, 5, None), Some(5)),
            ("bytes=7-", part(7, 8, None), Some(8)),
            // Less than there is: the rest is still wanted.
            ("bytes=0-5", part(0, 3, Some(100)), Some(5)),
            ("bytes=0-5", part(4, 9, Some(100)), None),
            ("bytes=0-5", part(0, 6, Some(100)), None),
            (" bytes=7- ", part(7, 9, Some(10)), Some(9)),
            ("bytes=7-", part(7, 8, Some(10)), Some(9)),
            ("bytes=7-", part(0, 9, Some(10)), None),
            ("bytes=-3", part(7, 9, Some(10)), Some(9)),
            ("bytes=-30", part(0, 9, Some(10)), Some(9)),
            ("bytes=-3", part(0, 9, Some(10)), None),
            ("bytes=-3", part(7, 9, None), Some(9)),
            ("bytes=0-1,5-6", part(0, 6, Some(10)), Some(6)),
            ("lines=0-5", part(4, 9, Some(100)), Some(9)),
            ("bytes=x-5", part(4, 9, Some(100)), Some(9)),
        ] {
            let asked = Range::parse(range);
            assert_eq!(asked.is_met_by(&part).then(|| asked.last_of(&part)), last, "{range} {part:?}");
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
