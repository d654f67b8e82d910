//! Text as patterns see it: lines, without terminal escape sequences.

use std::borrow::Cow;

/// The most bytes of a line that patterns see.
pub const MAX_LINE: usize = 64 * 1024;

/// The lines of a text; LF, CR LF or CR ends one. Of each, at most [`MAX_LINE`] bytes, and
/// none of the escape sequences that colour a terminal. What follows the last end is a line
/// unless it is empty.
pub fn lines(text: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = line_end(rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let crlf = rest.get(end..).is_some_and(|rest| rest.starts_with(b"\r\n"));
        rest = rest.get(end + 1 + usize::from(crlf)..).unwrap_or_default();
        Some(plain(&line[..line.len().min(MAX_LINE)]))
    })
}

/// Where the first line ends.
pub(super) fn line_end(text: &[u8]) -> Option<usize> {
    memchr::memchr2(b'\n', b'\r', text)
}

/// Where the last line end is.
pub(super) fn last_line_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr2(b'\n', b'\r', text)
}

/// Whether there are escape sequences in it.
pub(super) fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr(ESCAPE, text).is_some()
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// A line without escape sequences (ECMA-48, ECMA-35): `ESC [ … final`, the control strings
/// `ESC ] … BEL or ESC \` and `ESC P`, `X`, `^` or `_` `… ESC \`, those with bytes between
/// (`ESC ( B`), and two-byte ones.
pub fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    if !has_escapes(line) {
        return Cow::Borrowed(line);
    }
    let mut kept = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == ESCAPE {
            rest = after_sequence(after);
        } else {
            kept.push(byte);
        }
    }
    Cow::Owned(kept)
}

/// What follows an escape sequence whose first byte was taken.
fn after_sequence(rest: &[u8]) -> &[u8] {
    let Some((&kind, body)) = rest.split_first() else { return rest };
    let end = match kind {
        b'[' => body.iter().position(|byte| (0x40..=0x7e).contains(byte)),
        b']' | b'P' | b'X' | b'^' | b'_' => {
            // The bell is xterm's own end of a string that sets a title or a link.
            let bell = body.iter().position(|&byte| byte == BELL).filter(|_| kind == b']');
            let terminator = body.windows(2).position(|pair| pair == [ESCAPE, b'\\']).map(|at| at + 1);
            bell.into_iter().chain(terminator).min()
        }
        0x20..=0x2f => body.iter().position(|byte| (0x30..=0x7e).contains(byte)),
        _ => return body,
    };
    end.map_or(&[], |end| &body[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &[u8]) -> Vec<Vec<u8>> {
        lines(text).map(Cow::into_owned).collect()
    }

    #[test]
    fn any_line_end_ends_a_line() {
        assert_eq!(seen(b"a\nb\rc\r\nd\n\r\n"), [&b"a"[..], b"b", b"c", b"d", b""]);
        assert!(seen(b"").is_empty());
        assert_eq!(seen(b"\xff\xfe timeout \x80\n")[0], b"\xff\xfe timeout \x80");
    }

    #[test]
    fn escape_sequences_are_not_seen() {
        for text in [
            &b"con\x1b[31mnection\x1b[0m"[..],
            b"\x1b]0;title\x07connection",
            b"\x1b]8;;http://x\x1b\\connection",
            b"\x1bMconnection",
            b"\x1b(Bcon\x1b)0nection\x1b(B\x1b[m",
            b"\x1b%Gconnection\x1b#8",
            b"con\x1bPq#0;2\x07;0\x1b\\nection",
            b"\x1b_a\x1b\\con\x1b^b\x1b\\nec\x1bXc\x1b\\tion",
            b"connection\x1b(",
            b"connection\x1bPunfinished",
            b"connection\x1b[",
            b"connection\x1b",
            b"connection\x1b]unfinished",
        ] {
            assert_eq!(seen(text), [b"connection"], "{}", text.escape_ascii());
        }
    }
}
