//! HTTP/1.1 answers as bytes: the head, and where the body ends (RFC 9112). Pure.

use memchr::memmem;

use crate::net::{Failure, Fault};

/// The most bytes of an answer's head, all fields together.
pub const MAX_HEAD: usize = 256 * 1024;
/// The most fields of an answer's head, as curl has it.
const MAX_FIELDS: usize = 5000;
/// The most bytes of a line that says how long a chunk is, and of the fields after the last.
const MAX_CHUNK_LINE: usize = 16 * 1024;

/// The head of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The minor version of HTTP/1.
    pub version: u8,
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// Names and values in their order, as text.
    pub fields: Vec<(String, String)>,
    /// The head as it came.
    pub raw: Vec<u8>,
}

impl Head {
    /// Reads the first head of these bytes: with how many bytes it takes. `None` where it is
    /// not whole yet.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Failure> {
        // A head that drips in is not read from its start at every drop.
        let ends = || memmem::find(bytes, b"\n\r\n").is_some() || memmem::find(bytes, b"\n\n").is_some();
        if bytes.starts_with(b"HTTP/1.") && bytes.len() < MAX_HEAD && !ends() {
            return Ok(None);
        }
        // Each takes a line.
        let lines = memchr::memchr_iter(b'\n', &bytes[..bytes.len().min(MAX_HEAD)]).count();
        let mut fields = vec![httparse::EMPTY_HEADER; lines.min(MAX_FIELDS)];
        let mut response = httparse::Response::new(&mut fields);
        let mut config = httparse::ParserConfig::default();
        config.allow_obsolete_multiline_headers_in_responses(true);
        config.allow_spaces_after_header_name_in_responses(true);
        match config.parse_response(&mut response, bytes) {
            Ok(httparse::Status::Complete(length)) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let head = Self {
                    version: response.version.unwrap_or_default(),
                    status: response.code.unwrap_or_default(),
                    reason: response.reason.unwrap_or_default().to_owned(),
                    fields: response.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect(),
                    raw: bytes[..length].to_vec(),
                };
                // Those from 600 on mean nothing, but some servers use them.
                if head.status < 100 {
                    return Err(Failure::new(Fault::Weird, format!("{} is no status of HTTP", head.status)));
                }
                Ok(Some((head, length)))
            }
            Ok(httparse::Status::Partial) if bytes.len() >= MAX_HEAD => {
                Err(Failure::new(Fault::Receive, format!("the answer's head is longer than {} KiB", MAX_HEAD / 1024)))
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                Err(Failure::new(Fault::Receive, format!("the answer's head has more than {MAX_FIELDS} fields")))
            }
            Err(httparse::Error::Version | httparse::Error::Token) if !bytes.starts_with(b"HTTP/") => {
                Err(Failure::new(Fault::Weird, "the answer is no HTTP/1 (does the port speak TLS?)"))
            }
            Err(error) => Err(Failure::new(Fault::Weird, format!("the answer's head is broken: {error}"))),
        }
    }

    /// The values of a field.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The first value of a field.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether one of the comma-separated words of a field is this one.
    fn has_word(&self, name: &str, word: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|known| known.trim().eq_ignore_ascii_case(word))
    }

    /// Whether the connection may be used again afterwards.
    pub fn keeps_alive(&self) -> bool {
        // Two ways to say how long the body is invite two opinions on where the next answer
        // begins.
        let doubtful = self.value("transfer-encoding").is_some() && self.value("content-length").is_some();
        let closes = doubtful || self.has_word("connection", "close");
        !closes && (self.version == 1 || self.has_word("connection", "keep-alive"))
    }

    /// The length of the body, where the answer tells it before.
    pub fn length(&self) -> Option<u64> {
        let length = self.value("content-length").filter(|_| self.value("transfer-encoding").is_none())?;
        length.split(',').next()?.trim().parse().ok()
    }

    /// How the body of this answer is framed, to a request whose method was that.
    pub fn framing(&self, method: &str) -> Result<Framing, Failure> {
        let has_none = method == "HEAD" || matches!(self.status, 100..200 | 204 | 304);
        if has_none {
            return Ok(Framing::Length(0));
        }
        if self.value("transfer-encoding").is_some() {
            let mut codings = self.values("transfer-encoding").flat_map(|value| value.split(',')).map(str::trim);
            let last = codings.next().unwrap_or_default();
            if codings.next().is_some() {
                return Err(Failure::new(Fault::Weird, "the answer has more than one transfer coding"));
            }
            // A length beside it does not count (RFC 9112 §6.3).
            return match last.to_ascii_lowercase().as_str() {
                "chunked" => Ok(Framing::Chunked(Chunk::Size)),
                "identity" => Ok(Framing::UntilClosed),
                other => Err(Failure::new(Fault::Weird, format!("the transfer coding '{other}' is not known"))),
            };
        }
        let mut lengths = self.values("content-length").flat_map(|value| value.split(',')).map(str::trim);
        let Some(first) = lengths.next() else { return Ok(Framing::UntilClosed) };
        let digits = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
        match first.parse().ok().filter(|_| digits && lengths.all(|other| other == first)) {
            Some(length) => Ok(Framing::Length(length)),
            None => Err(Failure::new(Fault::Weird, "the answer's Content-Length is no length")),
        }
    }
}

/// How the end of a body is known, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    /// In chunks.
    Chunked(Chunk),
    /// When the connection is closed.
    UntilClosed,
}

/// Where in a chunked body the next byte is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// In the line that says how long the next chunk is.
    Size,
    /// In a chunk, of which so much is still to come.
    Data(u64),
    /// At the line end after a chunk.
    End,
    /// In the fields after the last chunk, of which so many bytes were seen.
    Trailer(usize),
    /// Past all of it.
    Done,
}

/// What the next bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes of the body.
    Data(usize),
    /// So many bytes that are none.
    Skip(usize),
    /// Not enough is there to say.
    More,
    /// The body is complete.
    Done,
}

impl Framing {
    /// What the bytes at the front are; they are to be taken off.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Piece, Failure> {
        let broken = |what: &str| Failure::new(Fault::Receive, format!("the chunked body is broken: {what}"));
        match self {
            Self::Length(0) | Self::Chunked(Chunk::Done) => Ok(Piece::Done),
            _ if bytes.is_empty() => Ok(Piece::More),
            Self::Length(left) => Ok(Piece::Data(take(left, bytes.len()))),
            Self::UntilClosed => Ok(Piece::Data(bytes.len())),
            Self::Chunked(chunk) => match chunk {
                Chunk::Data(left) => {
                    let count = take(left, bytes.len());
                    if *left == 0 {
                        *chunk = Chunk::End;
                    }
                    Ok(Piece::Data(count))
                }
                // No digits at all would be read as a zero, which ends the body.
                Chunk::Size if !bytes[0].is_ascii_hexdigit() => Err(broken("a size that is none")),
                // To some a bare LF ends the line, to others it does not: each sees another body.
                Chunk::Size if has_bare_lf(bytes) => Err(broken("a bare line feed after a size")),
                Chunk::Size => match httparse::parse_chunk_size(bytes) {
                    Ok(httparse::Status::Complete((length, size))) => {
                        *chunk = if size == 0 { Chunk::Trailer(0) } else { Chunk::Data(size) };
                        Ok(Piece::Skip(length))
                    }
                    Ok(httparse::Status::Partial) if bytes.len() < MAX_CHUNK_LINE => Ok(Piece::More),
                    Ok(httparse::Status::Partial) => Err(broken("a size without an end")),
                    Err(_) => Err(broken("a size that is none")),
                },
                Chunk::End => match bytes {
                    [b'\r', b'\n', ..] => {
                        *chunk = Chunk::Size;
                        Ok(Piece::Skip(2))
                    }
                    [b'\r'] => Ok(Piece::More),
                    _ => Err(broken("a chunk longer than its size")),
                },
                Chunk::Trailer(seen) => match bytes.iter().position(|&byte| byte == b'\n') {
                    Some(end) if *seen + end < MAX_CHUNK_LINE => {
                        *seen += end + 1;
                        if matches!(&bytes[..end], b"" | b"\r") {
                            *chunk = Chunk::Done;
                        }
                        Ok(Piece::Skip(end + 1))
                    }
                    None if *seen + bytes.len() < MAX_CHUNK_LINE => Ok(Piece::More),
                    _ => Err(broken("endless fields after it")),
                },
                Chunk::Done => Ok(Piece::Done),
            },
        }
    }

    /// Whether the body is complete when the connection is closed here.
    pub fn may_end_here(&self) -> bool {
        matches!(self, Self::UntilClosed | Self::Length(0) | Self::Chunked(Chunk::Done))
    }
}

/// Whether the first line feed follows no carriage return.
fn has_bare_lf(bytes: &[u8]) -> bool {
    memchr::memchr(b'\n', bytes).is_some_and(|at| !bytes[..at].ends_with(b"\r"))
}

/// Takes as much as is there, at most what is left.
fn take(left: &mut u64, there: usize) -> usize {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(there);
    *left -= count as u64;
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        Head::parse(text.as_bytes()).unwrap().unwrap().0
    }

    /// The body in these pieces, or what is wrong, or that it is cut.
    fn body(head: &Head, bytes: &[u8], step: usize) -> Result<(Vec<u8>, bool), Failure> {
        let mut framing = head.framing("GET")?;
        let (mut inbound, mut rest, mut data) = (Vec::new(), bytes, Vec::new());
        loop {
            match framing.next(&inbound)? {
                Piece::Done => return Ok((data, true)),
                Piece::Data(count) => data.extend(inbound.drain(..count)),
                Piece::Skip(count) => drop(inbound.drain(..count)),
                Piece::More if rest.is_empty() => return Ok((data, framing.may_end_here())),
                Piece::More => {
                    let (now, later) = rest.split_at(step.min(rest.len()));
                    inbound.extend_from_slice(now);
                    rest = later;
                }
            }
        }
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        let length = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        let chunked = head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n");
        let closed = head("HTTP/1.0 200 OK\r\n\r\n");
        for step in 1..30 {
            assert_eq!(body(&length, b"helloXX", step).unwrap(), (b"hello".to_vec(), true));
            assert_eq!(body(&length, b"hel", step).unwrap(), (b"hel".to_vec(), false));
            let chunks = b"2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\nXX";
            assert_eq!(body(&chunked, chunks, step).unwrap(), (b"hello".to_vec(), true));
            assert_eq!(body(&chunked, &chunks[..20], step).unwrap(), (b"hello".to_vec(), false));
            assert_eq!(body(&closed, b"hello", step).unwrap(), (b"hello".to_vec(), true));
            assert!(body(&chunked, b"2\r\nhello\r\n", step).is_err());
            for none in ["zz", "", ";x", ";", " ", " 5", "\t0", "\r", "-0"] {
                let bytes = format!("5\r\nhello\r\n{none}\r\n\r\n6\r\n world\r\n0\r\n\r\n");
                assert!(body(&chunked, bytes.as_bytes(), step).is_err(), "{none:?}");
            }
            assert!(body(&chunked, b"ffffffffffffffffff\r\n", step).is_err());
            for bare in ["4;a\nabcd\r\n1\r\nX\r\n0\r\n\r\n", "4\nabcd\r\n0\r\n\r\n", "4 \nabcd\r\n0\r\n\r\n"] {
                assert!(body(&chunked, bare.as_bytes(), step).is_err(), "{bare:?}");
            }
        }
    }

    #[test]
    fn lengths_that_are_none_are_refused() {
        for field in [
            "Content-Length: -1",
            "Content-Length: 5, 6",
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: +5",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: what",
        ] {
            assert!(head(&format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n")).framing("GET").is_err(), "{field}");
        }
        let same = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(same.framing("GET").unwrap(), Framing::Length(5));
        assert_eq!(same.framing("HEAD").unwrap(), Framing::Length(0));
    }

    #[test]
    fn heads_without_end_are_refused() {
        assert_eq!(Head::parse(b"HTTP/1.1 200 OK\r\nA: b\r\n").unwrap(), None);
        for (count, is_taken) in [(MAX_FIELDS, true), (MAX_FIELDS + 1, false)] {
            let many = format!("HTTP/1.1 200 OK\r\n{}\r\nbody\n\n", "A: b\n".repeat(count));
            let parsed = Head::parse(many.as_bytes()).map(|head| head.expect("a whole head").0.fields.len());
            assert_eq!(parsed.ok(), is_taken.then_some(count));
        }
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(MAX_HEAD));
        assert!(Head::parse(long.as_bytes()).is_err());
        for junk in
            [&b"\x16\x03\x01"[..], b"hello there\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 099 x\r\n\r\n"]
        {
            assert!(Head::parse(junk).is_err(), "{}", junk.escape_ascii());
        }
    }

    #[test]
    fn connections_are_kept_as_the_head_says() {
        for (text, keeps) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            assert_eq!(head(text).keeps_alive(), keeps, "{text}");
        }
    }
}
