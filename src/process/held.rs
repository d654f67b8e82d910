//! `--stdout` and `--stderr` `final` or `success`: output that is held back until it is
//! known which attempt's counts.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PIPE_BUF, PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use super::spool::Spool;

/// Bytes taken at once.
const CHUNK: usize = 64 * 1024;
/// The size asked for of a command's pipe, so that it seldom waits.
const PIPE_SIZE: usize = 1024 * 1024;
/// Chunks taken before other things get their turn.
const TURN: usize = 16;

/// A stream that is held back: what the current attempt wrote so far.
pub(super) struct Held {
    /// Where it goes in the end.
    target: BorrowedFd<'static>,
    spool: Spool,
    source: Option<OwnedFd>,
    /// Why not everything is kept.
    lost: Option<io::Error>,
    buffer: Vec<u8>,
    /// The most bytes written at once: as many as a pipe that has room takes without
    /// waiting, so that a signal is never waited out.
    at_once: usize,
}

impl Held {
    /// Holds what goes to this standard descriptor.
    pub(super) fn new(target: BorrowedFd<'static>, spool: Spool) -> Self {
        let kind = rustix::fs::fstat(target).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let at_once = if kind == Ok(FileType::RegularFile) { CHUNK } else { PIPE_BUF };
        Self { target, spool, source: None, lost: None, buffer: vec![0; CHUNK], at_once }
    }

    /// Begins an attempt, forgetting the one before; returns what it is to write to: a
    /// terminal of the same size where the stream is one, else a pipe.
    pub(super) fn begin(&mut self) -> io::Result<OwnedFd> {
        self.spool.clear()?;
        self.lost = None;
        let size = tcgetwinsize(self.target).ok();
        let pair = size.and_then(|size| terminal(self.target, size).ok());
        let (source, sink) = if let Some(pair) = pair {
            pair
        } else {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            // A user may be allowed less; then the usual size has to do.
            let _ = fcntl_setpipe_size(&reader, PIPE_SIZE);
            (reader, writer)
        };
        rustix::io::ioctl_fionbio(&source, true)?;
        self.source = Some(source);
        Ok(sink)
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        self.source.as_ref().map(|source| PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN))
    }

    /// Takes what is there, a turn's worth at most.
    pub(super) fn work(&mut self) {
        for _ in 0..TURN {
            if !self.take() {
                return;
            }
        }
    }

    /// Takes one chunk; false where there is none now.
    fn take(&mut self) -> bool {
        let Some(source) = &self.source else { return false };
        match rustix::io::read(source, &mut self.buffer[..]) {
            Ok(0) => {}
            Ok(count) => {
                if self.lost.is_none() {
                    // What cannot be kept is still taken, so that the command is not held up.
                    self.lost = self.spool.append(&self.buffer[..count]).err();
                }
                return true;
            }
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            // A terminal whose other side was closed says EIO.
            Err(_) => {}
        }
        self.source = None;
        false
    }

    /// Ends an attempt: takes what it left in the pipe, and nothing of what a background
    /// process writes later.
    pub(super) fn end(&mut self) {
        // At most a pipe-full can be left, whoever goes on writing.
        let most = PIPE_SIZE / CHUNK + 1;
        for _ in 0..most.max(TURN) {
            if !self.take() {
                break;
            }
        }
        self.source = None;
    }

    /// Gives the attempt's terminal the size of the real one.
    pub(super) fn resize(&self) {
        if let (Some(source), Ok(size)) = (&self.source, tcgetwinsize(self.target)) {
            // A pipe has no size.
            let _ = tcsetwinsize(source, size);
        }
    }

    /// Why the last attempt's output is not whole, if so.
    pub(super) fn lost(&self) -> Option<&io::Error> {
        self.lost.as_ref()
    }

    /// Writes bytes from `offset` on to the real stream, as many as it takes at once;
    /// returns how many, zero at the end.
    pub(super) fn emit(&mut self, offset: u64) -> rustix::io::Result<u64> {
        let count = match self.spool.read_at(offset, &mut self.buffer[..self.at_once]) {
            Ok(0) => return Ok(0),
            Ok(count) => count,
            Err(_) => return Err(Errno::IO),
        };
        rustix::io::write(self.target, &self.buffer[..count]).map(|count| count as u64)
    }

    /// Bytes written to the spool's file.
    pub(super) fn written(&self) -> u64 {
        self.spool.written()
    }

    /// What the real stream is called.
    pub(super) fn name(&self) -> &'static str {
        if self.target.as_raw_fd() == 2 { "standard error" } else { "standard output" }
    }

    /// The real stream.
    pub(super) fn target(&self) -> BorrowedFd<'static> {
        self.target
    }
}

/// A pseudo-terminal like the real one, whose bytes come out as they went in: the side to
/// read from and the side to write to.
fn terminal(like: BorrowedFd<'_>, size: Winsize) -> io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    let mut settings = tcgetattr(like)?;
    // The real terminal turns line ends, once.
    settings.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&slave, OptionalActions::Now, &settings)?;
    tcsetwinsize(&slave, size)?;
    Ok((master, slave))
}
