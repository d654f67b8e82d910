//! Redis's protocol, RESP2: requests packed, replies read. Pure.
//!
//! The crate `redis` is not used for it: what it needs for these two functions is under
//! licences that this package does not take, and its reader cannot tell a reply that is not
//! whole yet from one that is none.

/// The most bytes of one reply.
pub(super) const MOST_BYTES: usize = 1024 * 1024;

/// How deep arrays may lie in each other; what is asked for has two levels.
const MOST_DEPTH: usize = 8;

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// A word or a string; `None` for nothing.
    Text(Option<Vec<u8>>),
    /// That it will not, or cannot.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// A list.
    List(Vec<Reply>),
}

/// What was received is no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Garbage;

/// A request of these words.
pub(super) fn pack<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The reply at the front of these bytes and its length; `None` where it is not whole yet.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Garbage> {
    let mut at = 0;
    let reply = parse_at(bytes, &mut at, MOST_DEPTH)?;
    if reply.is_none() && bytes.len() > MOST_BYTES {
        return Err(Garbage);
    }
    Ok(reply.map(|reply| (reply, at)))
}

fn parse_at(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Option<Reply>, Garbage> {
    let Some(&kind) = bytes.get(*at) else { return Ok(None) };
    if !b"+-:$*".contains(&kind) {
        return Err(Garbage);
    }
    let Some(end) = memchr::memchr(b'\n', &bytes[*at..]).map(|length| *at + length) else { return Ok(None) };
    let line = bytes[*at + 1..end].strip_suffix(b"\r").ok_or(Garbage)?;
    *at = end + 1;
    let reply = match kind {
        b'+' => Reply::Text(Some(line.to_vec())),
        b'-' => Reply::Error(line.to_vec()),
        b':' => Reply::Integer(number(line)?),
        _ => match (kind, usize::try_from(number(line)?)) {
            (_, Err(_)) if line == b"-1" => Reply::Text(None),
            (b'$', Ok(length)) if length <= MOST_BYTES => {
                let Some(rest) = bytes.get(*at..*at + length + 2) else { return Ok(None) };
                *at += length + 2;
                Reply::Text(Some(rest.strip_suffix(b"\r\n").ok_or(Garbage)?.to_vec()))
            }
            (b'*', Ok(count)) if depth > 0 => {
                let mut list = Vec::new();
                while list.len() < count {
                    let Some(reply) = parse_at(bytes, at, depth - 1)? else { return Ok(None) };
                    list.push(reply);
                }
                Reply::List(list)
            }
            _ => return Err(Garbage),
        },
    };
    Ok(Some(reply))
}

fn number(line: &[u8]) -> Result<i64, Garbage> {
    let digits = line.strip_prefix(b"-").unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Garbage);
    }
    std::str::from_utf8(line).ok().and_then(|line| line.parse().ok()).ok_or(Garbage)
}

impl Reply {
    /// It, as text; nothing for what is none.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(Some(bytes)) | Self::Error(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Text(None) | Self::List(_) => String::new(),
        }
    }

    /// It, as a whole number.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            _ => self.text().parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_whole_and_in_no_other_way() {
        let bytes = b"*4\r\n:-7\r\n$3\r\na\r\n\r\n*-1\r\n*2\r\n$-1\r\n-ERR x\r\n+next\r\n";
        let reply = Reply::List(vec![
            Reply::Integer(-7),
            Reply::Text(Some(b"a\r\n".to_vec())),
            Reply::Text(None),
            Reply::List(vec![Reply::Text(None), Reply::Error(b"ERR x".to_vec())]),
        ]);
        let whole = bytes.len() - b"+next\r\n".len();
        for end in 0..whole {
            assert_eq!(parse(&bytes[..end]), Ok(None), "{end}");
        }
        assert_eq!(parse(bytes), Ok(Some((reply, whole))));
        assert_eq!(pack(&["GET", "a\r\n"]), b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
    }

    #[test]
    fn garbage_is_told_from_what_is_not_whole() {
        let deep = "*1\r\n".repeat(1_000_000);
        let long = format!("+{}", "x".repeat(MOST_BYTES));
        let many = format!("*1000000\r\n{}", ":1\r\n".repeat(300_000));
        for bytes in [
            "HTTP/1.1 400 Bad Request\r\n",
            "\0",
            ":\r\n",
            ":1x\r\n",
            ":+1\r\n",
            ":99999999999999999999\r\n",
            ":1\n",
            "$-2\r\n",
            "$9223372036854775807\r\n",
            "$1\r\nabc\r\n",
            "*-2\r\n",
            "*1\r\n!",
            &deep,
            &long,
            &many,
        ] {
            assert_eq!(parse(bytes.as_bytes()), Err(Garbage), "{}", &bytes[..bytes.len().min(30)]);
        }
        assert_eq!(parse(b"*9223372036854775807\r\n:1\r\n"), Ok(None));
    }
}
