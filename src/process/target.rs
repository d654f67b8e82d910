//! A standard stream that retryx writes a command's bytes to, without ever waiting there:
//! signals and time limits must be heard meanwhile.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, Stat, major, minor};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;
use rustix::termios::isatty;

use crate::report::cursor;

/// The device that makes pseudo-terminals (Linux's devices.txt).
const PTMX: (u32, u32) = (5, 2);

/// A stream of the caller's.
pub(crate) struct Target {
    stream: BorrowedFd<'static>,
    way: Way,
    /// Whether it is the terminal that messages go to.
    is_seen: bool,
}

/// How it is written to.
enum Way {
    /// A file, which makes nobody wait.
    File,
    /// The same pipe or terminal, opened once more so that only this opening does not wait:
    /// the flag belongs to an opening, and the caller's is shared with others.
    Own(OwnedFd),
    /// Where it cannot be opened: as many bytes as whatever has room takes without waiting.
    Little,
}

impl Target {
    /// The stream at this standard descriptor.
    pub(crate) fn new(stream: BorrowedFd<'static>) -> Self {
        let stat = rustix::fs::fstat(stream).ok();
        let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
        // To open this device once more makes another terminal.
        let is_master = stat.is_some_and(|stat| (major(stat.st_rdev), minor(stat.st_rdev)) == PTMX);
        let way = match kind {
            Some(FileType::RegularFile) => Way::File,
            Some(FileType::Fifo | FileType::CharacterDevice) if !is_master => {
                reopened(stream).map_or(Way::Little, Way::Own)
            }
            _ => Way::Little,
        };
        let device = |stat: Stat| (FileType::from_raw_mode(stat.st_mode), stat.st_rdev);
        let messages = rustix::fs::fstat(rustix::stdio::stderr()).ok();
        let is_seen = isatty(stream) && stat.map(device) == messages.map(device);
        Self { stream, way, is_seen }
    }

    /// Writes some of these bytes and says how many; `AGAIN` where there is no room.
    pub(crate) fn write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let written = self.write_some(bytes)?;
        if self.is_seen {
            cursor::note(&bytes[..written]);
        }
        Ok(written)
    }

    fn write_some(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        match &self.way {
            Way::File => rustix::io::write(self.stream, bytes),
            Way::Own(own) => rustix::io::write(own, bytes),
            Way::Little => {
                let mut fds = [PollFd::from_borrowed_fd(self.stream, PollFlags::OUT)];
                if poll(&mut fds, Some(&Timespec::default()))? == 0 {
                    return Err(Errno::AGAIN);
                }
                rustix::io::write(self.stream, &bytes[..bytes.len().min(PIPE_BUF)])
            }
        }
    }

    /// Has the kernel write some of a file's bytes and says how many, zero at its end; `None`
    /// where it cannot, as for a stream that only appends.
    pub(crate) fn write_from(&self, file: &File, offset: u64, most: usize) -> Option<rustix::io::Result<usize>> {
        let to = match &self.way {
            Way::File => self.stream,
            Way::Own(own) => own.as_fd(),
            Way::Little => return None,
        };
        match rustix::fs::sendfile(to, file, Some(&mut { offset }), most) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::BADF) => None,
            result => Some(result),
        }
    }

    /// The caller's own opening of it.
    pub(crate) fn stream(&self) -> BorrowedFd<'static> {
        self.stream
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        if self.stream.as_raw_fd() == 2 { "standard error" } else { "standard output" }
    }
}

fn reopened(stream: BorrowedFd<'_>) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    // Whatever is mounted there: it must be the same thing.
    let [mine, theirs] = [rustix::fs::fstat(own.as_fd()), rustix::fs::fstat(stream)];
    let same = matches!((mine, theirs), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino));
    same.then_some(own)
}
