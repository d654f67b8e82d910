//! Standard output: whether a failed attempt wrote to it, and whether anybody reads it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use super::watch::Watch;

/// What is known of standard output between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// A terminal, nothing, or something that cannot be looked at.
    Unknown,
    /// A pipe with a watch on it.
    Watched,
    /// A file: its size and the offset in it.
    File {
        /// Bytes in it.
        size: i64,
        /// Where the next write goes, unless it appends.
        offset: u64,
    },
}

impl Stdout {
    /// Looks at standard output before an attempt.
    pub fn look(watch: &mut Watch) -> Self {
        let stdout = rustix::stdio::stdout();
        let Ok(stat) = rustix::fs::fstat(stdout) else { return Self::Unknown };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::file(),
            FileType::Fifo if watch.listen_to_stdout() => Self::Watched,
            _ => Self::Unknown,
        }
    }

    fn file() -> Self {
        let stdout = rustix::stdio::stdout();
        match (rustix::fs::fstat(stdout), rustix::fs::tell(stdout)) {
            (Ok(stat), Ok(offset)) => Self::File { size: stat.st_size, offset },
            _ => Self::Unknown,
        }
    }

    /// Takes stock again, and says whether anything was written since it was last done;
    /// `heard` is what the watch heard.
    pub fn was_written(&mut self, heard: bool) -> bool {
        match self {
            Self::Unknown => false,
            Self::Watched => heard,
            Self::File { .. } => {
                let before = std::mem::replace(self, Self::file());
                *self != before
            }
        }
    }
}

/// Whether nobody will ever read what is written to standard output.
pub fn reader_is_gone() -> bool {
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
