//! Text as patterns see it: lines, without terminal escape sequences.

use std::borrow::Cow;

/// The most bytes of a line that patterns see.
pub const MAX_LINE: usize = 64 * 1024;

/// The lines of a text; LF, CR LF or CR ends one. Of each, at most [`MAX_LINE`] bytes, and
/// none of the escape sequences that colour a terminal.
pub fn lines(text: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    // CR LF gives an empty line more, which only a pattern for empty lines could tell.
    text.split(|byte| matches!(byte, b'\n' | b'\r')).map(|line| plain(&line[..line.len().min(MAX_LINE)]))
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// A line without escape sequences (ECMA-48): `ESC [ … final`, `ESC ] … BEL or ESC \`, and
/// two-byte ones.
fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&ESCAPE) {
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
        b']' => {
            let bell = body.iter().position(|&byte| byte == BELL);
            let terminator = body.windows(2).position(|pair| pair == [ESCAPE, b'\\']).map(|at| at + 1);
            bell.into_iter().chain(terminator).min()
        }
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
        assert_eq!(seen(b"a\nb\rc\r\nd"), [&b"a"[..], b"b", b"c", b"", b"d"]);
        assert_eq!(seen(b"\xff\xfe timeout \x80\n")[0], b"\xff\xfe timeout \x80");
    }

    #[test]
    fn escape_sequences_are_not_seen() {
        for text in [
            &b"con\x1b[31mnection\x1b[0m"[..],
            b"\x1b]0;title\x07connection",
            b"\x1b]8;;http://x\x1b\\connection",
            b"\x1bMconnection",
            b"connection\x1b[",
            b"connection\x1b",
            b"connection\x1b]unfinished",
        ] {
            assert_eq!(seen(text), [b"connection"], "{}", text.escape_ascii());
        }
    }
}
