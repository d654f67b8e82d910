//! Standard input: whether a further attempt would find what the first found.
//!
//! A file that was opened for reading is put back to where it was. A pipe cannot be put
//! back, so what matters is that nothing was taken from it: the watch must have heard no
//! read, and no fewer bytes may be waiting than before (an empty pipe without writers
//! gives nothing to take).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::ioctl_fionread;

use super::watch::ReadWatch;

/// What an attempt gets as standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The caller's, and no retry once it was eaten from.
    Auto,
    /// The caller's, at the caller's risk.
    Inherit,
    /// `/dev/null`.
    Null,
    /// The caller's, kept and fed to every attempt.
    Replay,
}

/// The state of standard input between attempts.
#[derive(Debug)]
pub(super) enum Stdin {
    /// A further attempt may always have it.
    Free,
    /// A file opened for reading only: the offset before the attempt and the one that the
    /// attempt left.
    File {
        /// Where the attempt began.
        before: u64,
        /// Where it ended.
        after: u64,
    },
    /// Anything with a watch on it that heard no read yet.
    Watched {
        /// Bytes that waited before the first attempt.
        waiting: u64,
        /// The watch.
        watch: ReadWatch,
    },
    /// Something was taken that cannot be given back, or would go unnoticed.
    Lost,
}

/// Linux's device numbers with major 1: null, zero, full, random: the same for all.
const MEMORY_DEVICES: u32 = 1;

impl Stdin {
    /// Looks at standard input before the first attempt.
    pub(super) fn look() -> Self {
        let stdin = rustix::stdio::stdin();
        let (Ok(stat), Ok(flags)) = (rustix::fs::fstat(stdin), rustix::fs::fcntl_getfl(stdin)) else {
            return Self::Free;
        };
        let readable = flags & OFlags::RWMODE != OFlags::WRONLY && !flags.contains(OFlags::PATH);
        match FileType::from_raw_mode(stat.st_mode) {
            _ if !readable => return Self::Free,
            FileType::Directory => return Self::Free,
            FileType::CharacterDevice if rustix::fs::major(stat.st_rdev) == MEMORY_DEVICES => return Self::Free,
            FileType::CharacterDevice if rustix::termios::isatty(stdin) => return Self::Free,
            FileType::RegularFile | FileType::BlockDevice if flags & OFlags::RWMODE == OFlags::RDONLY => {
                if let Ok(before) = offset() {
                    return Self::File { before, after: before };
                }
            }
            _ => {}
        }
        let waiting = ioctl_fionread(stdin).unwrap_or(0);
        if waiting == 0 && at_end(stdin) {
            return Self::Free;
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Socket {
            // A watch can be had, but hears nothing of what is received.
            return Self::Lost;
        }
        match ReadWatch::listen() {
            Some(watch) => Self::Watched { waiting, watch },
            None => Self::Lost,
        }
    }

    /// Notes what an attempt left.
    pub(super) fn note_attempt(&mut self) {
        if let Self::File { after, .. } = self {
            *after = offset().unwrap_or(u64::MAX);
        }
    }

    /// Whether a further attempt would find other input than the first did.
    pub(super) fn is_lost(&mut self) -> bool {
        let lost = match self {
            Self::Free => false,
            Self::Lost => true,
            // Somebody else moved it since: they share it, so it is not ours to put back.
            Self::File { after, .. } => offset().ok() != Some(*after),
            Self::Watched { waiting, watch } => {
                watch.heard() || ioctl_fionread(rustix::stdio::stdin()).unwrap_or(0) < *waiting
            }
        };
        if lost {
            *self = Self::Lost;
        }
        lost
    }

    /// Puts a file back to where the attempt found it; false when that fails.
    pub(super) fn put_back(&self) -> bool {
        let Self::File { before, after } = *self else { return true };
        before == after || rustix::fs::seek(rustix::stdio::stdin(), SeekFrom::Start(before)).is_ok()
    }
}

fn offset() -> rustix::io::Result<u64> {
    rustix::fs::tell(rustix::stdio::stdin())
}

/// Whether nobody can write to it any more.
fn at_end(stdin: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(stdin, PollFlags::IN | PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP)
}
