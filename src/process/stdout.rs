//! Standard output: whether a failed attempt wrote to it, and whether anybody reads it.
//!
//! A file tells by its size and offset. A pipe tells only while the bytes wait in it; once
//! they are read, what is left is the count of all bytes that the attempt's processes
//! wrote to anything. (An inotify watch would know, and cost every run that has a pipe for
//! standard output up to 25 ms at its exit, when the kernel takes the watch down.)

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::ioctl_fionread;

/// Whether an attempt wrote to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// Nothing, or it went to a terminal, where nobody mistakes it for data.
    No,
    /// It wrote something somewhere.
    Perhaps,
    /// Yes.
    Yes,
}

/// What is known of standard output before an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdout {
    /// A terminal, nothing, or something that swallows all.
    Indifferent,
    /// A file: its size and the offset in it.
    File {
        /// Bytes in it.
        size: i64,
        /// Where the next write goes, unless it appends.
        offset: u64,
    },
    /// A pipe or socket.
    Stream {
        /// Bytes that wait to be read.
        waiting: u64,
        /// Bytes that its reaped descendants wrote so far.
        written: Option<u64>,
    },
}

impl Stdout {
    /// Looks at standard output before an attempt; `own` is what was written so far for the
    /// command's streams and into them where retryx stands in them.
    pub(super) fn look(own: u64) -> Self {
        let stdout = rustix::stdio::stdout();
        let Ok(stat) = rustix::fs::fstat(stdout) else { return Self::Indifferent };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => match rustix::fs::tell(stdout) {
                Ok(offset) => Self::File { size: stat.st_size, offset },
                Err(_) => Self::Indifferent,
            },
            FileType::Fifo | FileType::Socket => {
                let waiting = ioctl_fionread(stdout).unwrap_or(0);
                Self::Stream { waiting, written: bytes_written().map(|all| all.saturating_sub(own)) }
            }
            _ => Self::Indifferent,
        }
    }

    /// Whether anything was written since this look, by an attempt whose processes are
    /// reaped; before retryx writes anything itself.
    pub(super) fn written_since(self, own: u64) -> Wrote {
        match (self, Self::look(own)) {
            // The offset is that of the command's own writes, the size grows by others' too.
            (Self::File { offset: before, .. }, Self::File { offset, .. }) if offset != before => Wrote::Yes,
            (Self::File { .. }, now) if now != self => Wrote::Perhaps,
            (Self::Stream { waiting: before, .. }, Self::Stream { waiting, .. }) if waiting > before => Wrote::Yes,
            (Self::Stream { written: before, .. }, Self::Stream { written, .. }) if written > before => Wrote::Perhaps,
            _ => Wrote::No,
        }
    }
}

/// The count `wchar` of proc(5), which takes in what reaped children wrote.
fn bytes_written() -> Option<u64> {
    let counts = fs::read("/proc/self/io").ok()?;
    let text = std::str::from_utf8(&counts).ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

/// Whether nobody will ever read what is written to standard output.
pub(crate) fn reader_is_gone() -> bool {
    let mut fds = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
