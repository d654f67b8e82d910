//! OS signals as values on one channel.
//!
//! The signals that retryx acts on are blocked and read from a descriptor, so that no
//! handler ever runs, a signal can be awaited together with anything else, and the sender
//! is known: what the terminal sent reached the command already, what a process sent did
//! not. A signal that was ignored when retryx started is left alone and stays ignored, in
//! the command too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::policy::Signal;
use crate::process::Inherited;
use crate::process::unix;

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Which one.
    pub signal: Signal,
    /// Whether the kernel sent it, to the whole foreground group of a terminal.
    pub from_terminal: bool,
}

/// The channel of arriving signals.
pub struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    /// Signals that are watched unless they were ignored from the start.
    pub const WATCHED: [Signal; 11] = [
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::HUP,
        Signal::USR1,
        Signal::USR2,
        Signal::TSTP,
        Signal::TTIN,
        Signal::TTOU,
        Signal::CONT,
        Signal::WINCH,
    ];

    /// Opens the channel: from now on the watched signals arrive here. Fails when no
    /// descriptor is free.
    pub fn open(inherited: &Inherited) -> io::Result<Self> {
        inherited.supervise();
        let descriptor = unix::signal_descriptor(inherited.watched())?;
        Ok(Self { descriptor })
    }

    /// The next signal that has arrived; `None` when there is none.
    pub fn next(&self) -> Option<Received> {
        let (signal, from_terminal) = unix::read_signal(self.descriptor.as_fd())?;
        Some(Received { signal, from_terminal })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
