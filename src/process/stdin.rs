//! Standard input: whether a further attempt would find what the first found.
//!
//! A file that was opened for reading is put back to where it was. A pipe cannot be put
//! back, so what matters is that nothing was taken from it: the watch must have heard no
//! read, and no fewer bytes may be waiting than before (an empty pipe without writers
//! gives nothing to take).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::io::ioctl_fionread;

use super::watch::Watch;

/// What an attempt gets as standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The caller's, and no retry once it was eaten from.
    Auto,
    /// The caller's, at the caller's risk.
    Inherit,
    /// `/dev/null`.
    Null,
}

/// The state of standard input between attempts.
#[derive(Debug)]
pub enum Stdin {
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
    /// Anything with a watch on it that heard no read yet; bytes waiting before.
    Watched(u64),
    /// Something was taken that cannot be given back, or would go unnoticed.
    Lost,
}

/// Linux's device numbers with major 1: null, zero, full, random: the same for all.
const MEMORY_DEVICES: u32 = 1;

impl Stdin {
    /// Looks at standard input before the first attempt.
    pub fn look(watch: &mut Watch) -> Self {
        let stdin = rustix::stdio::stdin();
        let (Ok(stat), Ok(flags)) = (rustix::fs::fstat(stdin), rustix::fs::fcntl_getfl(stdin)) else {
            return Self::Free;
        };
        // `RDONLY` is zero, so a placeholder (`PATH`) must be told apart by its own flag.
        if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == OFlags::WRONLY {
            return Self::Free;
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Self::Free,
            FileType::CharacterDevice if rustix::fs::major(stat.st_rdev) == MEMORY_DEVICES => {
                return Self::Free;
            }
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
        if watch.listen_to_stdin() { Self::Watched(waiting) } else { Self::Lost }
    }

    /// Notes what an attempt left; `heard` is whether the watch heard a read.
    pub fn note_attempt(&mut self, heard: bool) {
        if let Self::File { after, .. } = self {
            *after = offset().unwrap_or(u64::MAX);
        }
        self.note_heard(heard);
    }

    fn note_heard(&mut self, heard: bool) {
        if let Self::Watched(before) = *self {
            let waiting = ioctl_fionread(rustix::stdio::stdin()).unwrap_or(0);
            if heard || waiting < before {
                *self = Self::Lost;
            }
        }
    }

    /// Whether a further attempt would find other input than the first did; `heard` as for
    /// [`Self::note_attempt`].
    pub fn is_lost(&mut self, heard: bool) -> bool {
        self.note_heard(heard);
        match *self {
            Self::Free | Self::Watched(_) => false,
            Self::Lost => true,
            // Somebody else moved it since: they share it, so it is not ours to put back.
            Self::File { after, .. } => offset().ok() != Some(after),
        }
    }

    /// Puts a file back to where the attempt found it; false when that fails.
    pub fn put_back(&self) -> bool {
        let Self::File { before, after } = *self else { return true };
        before == after || rustix::fs::seek(rustix::stdio::stdin(), rustix::fs::SeekFrom::Start(before)).is_ok()
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
