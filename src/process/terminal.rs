//! Terminals: their settings, put back after an attempt that could not do so itself, and a
//! terminal for a command whose own is read by retryx.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

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

/// A pseudo-terminal like this terminal and of its size, whose bytes come out as they went
/// in: the side to read from and the side to write to. `None` where it is no terminal.
pub(super) fn like(terminal: BorrowedFd<'_>) -> Option<io::Result<(OwnedFd, OwnedFd)>> {
    let settings = tcgetattr(terminal).ok()?;
    let size = tcgetwinsize(terminal).ok();
    Some(pair(settings, size))
}

fn pair(mut settings: Termios, size: Option<Winsize>) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    // The real terminal turns line ends, once.
    settings.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    if let Some(size) = size {
        tcsetwinsize(&slave, size)?;
    }
    Ok((master, slave))
}
