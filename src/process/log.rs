//! An output stream that is a regular file and is only to be looked at: the command writes
//! to it directly, and what it wrote is read from the file afterwards. Nothing stands in its
//! way, and a process that it leaves running goes on writing.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{FileType, Mode, OFlags};

use super::channel::CHUNK;
use crate::policy::Scanner;

/// The file at a standard descriptor.
pub(super) struct Log {
    stream: BorrowedFd<'static>,
    file: File,
    /// Where the current attempt's bytes begin.
    start: u64,
    /// Bytes of all attempts.
    seen: u64,
}

impl Log {
    /// The file at this descriptor; `None` where it is none, or cannot be read.
    pub(super) fn new(stream: BorrowedFd<'static>) -> Option<Self> {
        let stat = rustix::fs::fstat(stream).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let own: OwnedFd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mine = rustix::fs::fstat(&own).ok()?;
        let same = (mine.st_dev, mine.st_ino) == (stat.st_dev, stat.st_ino);
        same.then(|| Self { stream, file: File::from(own), start: 0, seen: 0 })
    }

    /// Where the next write goes.
    fn position(&self) -> io::Result<u64> {
        let appends = rustix::fs::fcntl_getfl(self.stream)?.contains(OFlags::APPEND);
        if appends { Ok(self.file.metadata()?.len()) } else { Ok(rustix::fs::tell(self.stream)?) }
    }

    /// Begins an attempt.
    pub(super) fn begin(&mut self) {
        self.start = self.position().unwrap_or(0);
    }

    /// Bytes that the attempts wrote.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Looks at what the attempt wrote.
    pub(super) fn look(&mut self, scanner: &mut Scanner) {
        let Ok(end) = self.file.metadata().map(|metadata| metadata.len()) else { return };
        // Who opened the file by its name once more may have begun it anew.
        let mut at = if end < self.start { 0 } else { self.start };
        self.seen += end - at;
        let mut buffer = vec![0; CHUNK];
        while at < end && !scanner.is_done() {
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(CHUNK);
            match self.file.read_at(&mut buffer[..wanted], at) {
                Ok(0) => return,
                Ok(count) => {
                    scanner.feed(&buffer[..count]);
                    at += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
