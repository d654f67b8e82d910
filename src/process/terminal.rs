//! Terminal settings, put back after an attempt that could not do so itself.

use std::os::fd::BorrowedFd;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::unix;

/// The settings of the terminal among the standard descriptors, as an attempt found them.
pub struct Settings {
    terminal: BorrowedFd<'static>,
    found: Termios,
}

impl Settings {
    /// Reads them; `None` where none of the three is a terminal.
    pub fn read() -> Option<Self> {
        [rustix::stdio::stdin(), rustix::stdio::stderr(), rustix::stdio::stdout()]
            .into_iter()
            .find_map(|terminal| Some(Self { terminal, found: tcgetattr(terminal).ok()? }))
    }

    /// Puts them back, where this process is in the foreground of that terminal: in the
    /// background it is somebody else's.
    pub fn restore(&self) {
        if unix::foreground_of(self.terminal) == unix::group_of(0) {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(self.terminal, OptionalActions::Drain, &self.found);
        }
    }
}
