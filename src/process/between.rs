//! The wait between two attempts, whatever is attempted.

use std::time::Duration;

use super::attempt::reap;
use super::unix;
use crate::clock::{Alarms, Clock as _, Event, SystemClock};
use crate::driver::Wake;
use crate::policy::Signal;
use crate::report::cursor;
use crate::report::live::Live;

/// Waits, on the clock that includes suspension. A signal that ends runs ends it at once; a
/// person who looks on is shown how long it takes.
pub(crate) fn wait(clock: &SystemClock, delay: Duration, shown: bool) -> Wake {
    let end = clock.elapsed().boot.saturating_add(delay);
    let mut live = Live::new(shown);
    loop {
        let now = clock.elapsed().boot;
        let next = live.count_down(end.saturating_sub(now), delay).map(|next| now.saturating_add(next));
        match clock.next(Alarms { running: None, boot: Some(next.unwrap_or(end).min(end)) }, &mut Vec::new()) {
            Event::Alarm if clock.elapsed().boot >= end => return Wake::Elapsed,
            Event::Alarm | Event::Ready => {}
            Event::Signal(received) => match received.signal {
                signal if signal.ends_the_run() => {
                    // What is taken away takes the key along.
                    if received.from_terminal && !live.is_drawn() {
                        cursor::note_key();
                    }
                    return Wake::Interrupted(signal);
                }
                Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                    live.clear();
                    clock.pause(|| unix::take(received.signal));
                }
                Signal::CHLD => {
                    reap(|_, _| {});
                }
                _ => {}
            },
        }
    }
}
