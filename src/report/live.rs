//! A line on the terminal that is drawn anew: the countdown of a wait, the progress of a
//! transfer. Nobody sees it but a person in the foreground, and nothing is left of it.

use std::time::Duration;

use rustix::termios::isatty;

use super::write_line;
use crate::process::unix;
use crate::units::human;

/// The least wait that is counted down.
const WORTH_COUNTING: Duration = Duration::from_secs(3);

/// The line; nothing is ever drawn where it is off.
pub struct Live {
    on: bool,
    drawn: bool,
}

impl Live {
    /// A line that is on where a person looks on: standard error and standard output are
    /// terminals, this process is in the foreground, and messages are not switched off.
    pub fn new(wanted: bool) -> Self {
        let on = wanted && isatty(rustix::stdio::stderr()) && isatty(rustix::stdio::stdout()) && is_in_foreground();
        Self { on, drawn: false }
    }

    /// The same where only standard error need be a terminal: standard output is the data's.
    pub fn beside_output(wanted: bool) -> Self {
        let on = wanted && isatty(rustix::stdio::stderr()) && is_in_foreground();
        Self { on, drawn: false }
    }

    /// Whether it is of any use to draw.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether something is drawn now.
    pub fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// Whether a text has room in the terminal's line as wide as it is now: what goes round
    /// into another line would stay there.
    pub fn has_room(&self, text: &str) -> bool {
        text.chars().count() <= room()
    }

    /// Draws it anew, as much of it as there is room for.
    pub fn draw(&mut self, text: &str) {
        // A job that was sent to the background meanwhile leaves the terminal alone.
        if self.on && is_in_foreground() {
            self.drawn = true;
            // What cannot be shown is shown to nobody.
            let text: String = text.chars().take(room()).collect();
            let _ = write_line(rustix::stdio::stderr(), format!("\r{text}\x1b[K").as_bytes());
        }
    }

    /// Takes it away, before anything else is written.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write_line(rustix::stdio::stderr(), b"\r\x1b[K");
        }
    }

    /// Counts a wait down; returns how long what it says is true, where it says anything.
    pub fn count_down(&mut self, left: Duration, whole: Duration) -> Option<Duration> {
        if !self.on || whole < WORTH_COUNTING || left.is_zero() {
            return None;
        }
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        // Of a long wait the minutes are enough.
        let step = if seconds > 120 { 60 } else { 1 };
        let steps = seconds.div_ceil(step);
        self.draw(&format!("retryx: next attempt in {}", human(Duration::from_secs(steps * step))));
        Some(left.saturating_sub(Duration::from_secs((steps - 1) * step)))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The most characters of a line on the terminal. The last column is left free: with it some
/// terminals begin another line. One that tells no width is taken to have room.
fn room() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.ok().filter(|size| size.ws_col > 0).map_or(usize::MAX, |size| usize::from(size.ws_col) - 1)
}

fn is_in_foreground() -> bool {
    unix::foreground_of(rustix::stdio::stderr()) == unix::group_of(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_says_what_is_true_until_the_next() {
        let mut live = Live { on: true, drawn: false };
        let whole = Duration::from_secs(7200);
        for (left, next) in [(7200, 60_000), (7199, 59_000), (121, 1000), (120, 1000), (1, 1000)] {
            let next = Some(Duration::from_millis(next));
            assert_eq!(live.count_down(Duration::from_secs(left), whole), next, "{left}");
        }
        assert_eq!(live.count_down(Duration::from_millis(2300), whole), Some(Duration::from_millis(300)));
        assert_eq!(live.count_down(Duration::ZERO, whole), None);
        assert_eq!(live.count_down(Duration::from_secs(2), Duration::from_secs(2)), None);
    }
}
