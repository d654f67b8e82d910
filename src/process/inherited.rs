//! What retryx was given by its caller and gives on to the command unchanged: standard
//! descriptors (closed ones stay closed), their status flags, the signal mask and the
//! dispositions.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};

use super::unix::{self, SignalSet};
use crate::policy::Signal;
use crate::signal::Signals;

/// The caller's gifts, taken once at the start.
pub struct Inherited {
    mask: SignalSet,
    watched: SignalSet,
    chld_ignored: bool,
    status_flags: [Option<OFlags>; 3],
}

impl Inherited {
    /// Takes stock. Nothing is changed yet but this: descriptors 0 to 2 that are closed
    /// are held by placeholders that close on exec, so that nothing that retryx opens can
    /// land there and be taken for a standard stream, and the command finds them closed.
    pub fn take() -> Self {
        let status_flags = standard_descriptors().map(|fd| rustix::fs::fcntl_getfl(fd).ok());
        if status_flags.contains(&None) {
            hold_closed_descriptors();
        }
        let heard = Signals::WATCHED.into_iter().filter(|signal| !unix::is_ignored(*signal));
        Self {
            mask: SignalSet::of([]).block(),
            watched: SignalSet::of(heard.chain([Signal::CHLD])),
            chld_ignored: unix::is_ignored(Signal::CHLD),
            status_flags,
        }
    }

    /// Makes the process fit to supervise: the signals of [`Self::watched`] are blocked
    /// for reading, SIGPIPE and SIGXFSZ are blocked so that a closed standard error and a full
    /// file are errors and no death, and
    /// SIGCHLD gets its default action, without which no child could be waited for.
    pub fn supervise(&self) {
        if self.chld_ignored {
            unix::set_default(Signal::CHLD);
        }
        self.watched.block();
        SignalSet::of([Signal::PIPE, Signal::XFSZ]).block();
    }

    /// The mask to give to a command.
    pub fn mask(&self) -> &SignalSet {
        &self.mask
    }

    /// The signals to read: those of [`Signals::WATCHED`] that are not ignored, and
    /// SIGCHLD.
    pub fn watched(&self) -> &SignalSet {
        &self.watched
    }

    /// Whether a command gets SIGCHLD ignored.
    pub fn chld_ignored(&self) -> bool {
        self.chld_ignored
    }

    /// Whether one of the standard descriptors (0, 1, 2) was open.
    pub fn was_open(&self, descriptor: usize) -> bool {
        self.status_flags.get(descriptor).is_some_and(Option::is_some)
    }

    /// Undoes what an attempt did to the status flags of the standard descriptors (a
    /// program that left them non-blocking, say), so that the next finds them as the
    /// first did.
    pub fn restore_status_flags(&self) {
        for (fd, flags) in standard_descriptors().into_iter().zip(self.status_flags) {
            if let Some(flags) = flags
                && rustix::fs::fcntl_getfl(fd) != Ok(flags)
            {
                // A descriptor that refuses its own old flags is as the attempt left it.
                let _ = rustix::fs::fcntl_setfl(fd, flags);
            }
        }
    }
}

/// The standard descriptors, open or not.
fn standard_descriptors() -> [BorrowedFd<'static>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
}

fn hold_closed_descriptors() {
    // A path descriptor of the root folder exists in every container, empty ones too, and
    // refuses to be read or written as a closed descriptor does.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    while let Ok(placeholder) = rustix::fs::open("/", flags, Mode::empty()) {
        if placeholder.as_raw_fd() > 2 {
            break;
        }
        // Held until the process ends.
        let _: i32 = placeholder.into_raw_fd();
    }
}

/// A copy of a descriptor that the caller named by its number, closed on exec and not
/// among the standard ones. Fails where the number is not open for writing.
pub fn inherited_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    let copy = unix::duplicate(number)?;
    match rustix::fs::fcntl_getfl(&copy)? & (OFlags::RWMODE | OFlags::PATH) {
        OFlags::WRONLY | OFlags::RDWR => Ok(copy),
        _ => Err(rustix::io::Errno::BADF.into()),
    }
}
