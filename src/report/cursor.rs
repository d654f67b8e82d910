//! Whether the terminal's cursor stands in the middle of a line that a command wrote, so that a
//! message has to begin another. There is one cursor, whoever writes; of what commands write to
//! the terminal themselves nothing is known.

use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memrchr;
use rustix::termios::{LocalModes, tcgetattr};

use crate::policy::text::plain;

/// Bytes at the end that are looked at.
const TAIL: usize = 256;
/// What programs write to take a line away that they draw anew.
const CLEARED: [&[u8]; 3] = [b"\r\x1b[K", b"\r\x1b[2K", b"\x1b[2K\r"];

static IN_LINE: AtomicBool = AtomicBool::new(false);

/// Notes what of a command's was written to the terminal that messages go to.
pub fn note(written: &[u8]) {
    if let Some(in_line) = ends_in_line(&written[written.len().saturating_sub(TAIL)..]) {
        IN_LINE.store(in_line, Ordering::Relaxed);
    }
}

/// Notes that a key was pressed that makes a signal, which the terminal may show (`^C`).
pub fn note_key() {
    let shown = LocalModes::ECHO.union(LocalModes::ECHOCTL);
    if tcgetattr(rustix::stdio::stderr()).is_ok_and(|settings| settings.local_modes.contains(shown)) {
        IN_LINE.store(true, Ordering::Relaxed);
    }
}

/// Whether a message has to begin another line; it is at the start of one then.
pub fn leave_line() -> bool {
    IN_LINE.swap(false, Ordering::Relaxed)
}

/// Whether a text leaves something in its last line; `None` where it does not move the cursor.
fn ends_in_line(text: &[u8]) -> Option<bool> {
    let end = memrchr(b'\n', text);
    let line = end.map_or(text, |end| &text[end + 1..]);
    if CLEARED.iter().any(|cleared| line.ends_with(cleared)) {
        return Some(false);
    }
    let is_empty = plain(line).is_empty();
    (end.is_some() || !is_empty).then_some(!is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_seen_in_the_last_line_counts() {
        for (text, in_line) in [
            ("", None),
            ("\x1b[0m", None),
            ("x", Some(true)),
            ("x\n", Some(false)),
            ("x\r\n\x1b[0m", Some(false)),
            ("x\ny", Some(true)),
            ("39 %\r", Some(true)),
            ("39 %\x1b[0m", Some(true)),
            ("39 %\r\x1b[K", Some(false)),
            ("39 %\x1b[2K\r", Some(false)),
        ] {
            assert_eq!(ends_in_line(text.as_bytes()), in_line, "{text:?}");
        }
    }
}
