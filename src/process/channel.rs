//! One output stream of the attempts that retryx stands in: it is read from a pipe or a
//! pseudo-terminal, looked at, and passed on at once or held back until it is known which
//! attempt's counts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::termios::{tcgetwinsize, tcsetwinsize};

use super::spool::Spool;
use super::target::Target;
use super::terminal;
use crate::cause::cause;
use crate::clock::running;
use crate::policy::Scanner;
use crate::report::text::say;

/// Bytes taken at once.
pub(super) const CHUNK: usize = 64 * 1024;
/// The size asked for of a command's pipe, so that it seldom waits.
const PIPE_SIZE: usize = 1024 * 1024;
/// Chunks taken before other things get their turn.
const TURN: usize = 16;
/// How long a turn may take: what is looked for may be expensive.
const LONG: Duration = Duration::from_millis(50);

/// A stream between the command and where it goes.
pub(super) struct Channel {
    target: Target,
    destination: Destination,
    source: Option<OwnedFd>,
    scanner: Option<Scanner>,
    buffer: Vec<u8>,
    /// Bytes that came in since the channel was made.
    taken: u64,
    /// Bytes that came in with the current attempt.
    of_attempt: u64,
    /// Whether it was said that there is no terminal for the command.
    is_told: bool,
    /// Where `of_attempt` ends, whoever goes on writing, once the command has ended.
    last: Option<u64>,
}

/// What becomes of the bytes.
enum Destination {
    /// They are written at once.
    Pass {
        /// The part of the buffer that is not written yet.
        pending: std::ops::Range<usize>,
        /// What ended the writing for good.
        broken: Option<Errno>,
        written: u64,
    },
    /// They are kept.
    Hold {
        spool: Spool,
        /// Why not everything is kept.
        lost: Option<io::Error>,
    },
}

fn is_long_since(started: Duration) -> bool {
    running().saturating_sub(started) >= LONG
}

impl Channel {
    /// A channel that passes everything on at once.
    pub(super) fn passing(target: BorrowedFd<'static>) -> Self {
        Self::new(target, Destination::Pass { pending: 0..0, broken: None, written: 0 })
    }

    /// A channel that holds everything back.
    pub(super) fn holding(target: BorrowedFd<'static>, spool: Spool) -> Self {
        Self::new(target, Destination::Hold { spool, lost: None })
    }

    fn new(target: BorrowedFd<'static>, destination: Destination) -> Self {
        let target = Target::new(target);
        let buffer = vec![0; CHUNK];
        Self {
            target,
            destination,
            source: None,
            scanner: None,
            buffer,
            taken: 0,
            of_attempt: 0,
            is_told: false,
            last: None,
        }
    }

    /// Begins an attempt, forgetting what was held of the one before; returns what it is to
    /// write to: a terminal of the same size where the stream is one, else a pipe.
    pub(super) fn begin(&mut self, scanner: Scanner) -> io::Result<OwnedFd> {
        match &mut self.destination {
            Destination::Hold { spool, lost } => {
                spool.clear()?;
                *lost = None;
            }
            // What kept an attempt from writing may have passed.
            Destination::Pass { broken, .. } => *broken = None,
        }
        self.scanner = Some(scanner);
        (self.of_attempt, self.last) = (0, None);
        let (source, sink) = match terminal::like(self.target.stream()) {
            Some(Ok(pair)) => pair,
            Some(Err(error)) => {
                let name = self.target.name();
                if !std::mem::replace(&mut self.is_told, true) {
                    say(&format!("no pseudo-terminal to be had: {}; the command's {name} is a pipe", cause(&error)));
                }
                pipe()?
            }
            None => pipe()?,
        };
        rustix::io::ioctl_fionbio(&source, true)?;
        self.source = Some(source);
        Ok(sink)
    }

    /// What to wait for: room where something waits to be written, else more to read.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        if self.is_blocked() {
            return Some(PollFd::from_borrowed_fd(self.target.stream(), PollFlags::OUT));
        }
        self.source.as_ref().map(|source| PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN))
    }

    /// Whether something waits to be written.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(&self.destination, Destination::Pass { pending, .. } if pending.start < pending.end)
    }

    /// Takes what is there, a turn's worth at most.
    pub(super) fn work(&mut self) {
        let started = running();
        for _ in 0..TURN {
            if !self.pass_on() || !self.take() {
                return;
            }
            if is_long_since(started) {
                break;
            }
        }
        self.pass_on();
    }

    /// Takes what the attempt left, whose command has ended, and nothing of what a background
    /// process writes later. True once it is all passed on; to be called until then, in turns.
    pub(super) fn finish(&mut self) -> bool {
        let last = match (self.last, &self.source) {
            (Some(last), _) => last,
            (None, None) => self.of_attempt,
            (None, Some(source)) => {
                // A terminal counts only a part of what is under way in it, which is never much.
                let waiting = ioctl_fionread(source).unwrap_or(PIPE_SIZE as u64).saturating_add(CHUNK as u64);
                self.of_attempt.saturating_add(waiting)
            }
        };
        self.last = Some(last);
        let started = running();
        while !is_long_since(started) {
            if !self.pass_on() {
                return false;
            }
            if self.of_attempt >= last || !self.take() {
                self.source = None;
                return true;
            }
        }
        false
    }

    /// Ends an attempt, whatever is left; returns what was seen.
    pub(super) fn end(&mut self) -> Option<Scanner> {
        self.source = None;
        if let Destination::Pass { pending, .. } = &mut self.destination {
            *pending = 0..0;
        }
        self.scanner.take()
    }

    /// Takes one chunk; false where there is none now.
    fn take(&mut self) -> bool {
        let Some(source) = &self.source else { return false };
        match rustix::io::read(source, &mut self.buffer[..]) {
            Ok(0) => {}
            Ok(count) => {
                self.taken += count as u64;
                self.of_attempt += count as u64;
                match &mut self.destination {
                    Destination::Pass { pending, .. } => *pending = 0..count,
                    Destination::Hold { spool, lost } if lost.is_none() => {
                        // What cannot be kept is still taken, so that the command is not held up.
                        *lost = spool.append(&self.buffer[..count]).err();
                    }
                    Destination::Hold { .. } => {}
                }
                // Whoever waits for the bytes gets them before they are looked at.
                self.pass_on();
                if let Some(scanner) = &mut self.scanner {
                    scanner.feed(&self.buffer[..count]);
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

    /// Writes what waits; false where there is no room for it now.
    fn pass_on(&mut self) -> bool {
        let Destination::Pass { pending, broken, written } = &mut self.destination else { return true };
        while pending.start < pending.end {
            match self.target.write(&self.buffer[pending.clone()]) {
                Ok(count) => {
                    pending.start += count;
                    *written += count as u64;
                }
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => {}
                Err(error) => {
                    // The command finds nobody reading, as it would have by itself.
                    *broken = Some(error);
                    *pending = 0..0;
                    self.source = None;
                }
            }
        }
        true
    }

    /// Gives the attempt's terminal the size of the real one; true where it had another.
    pub(super) fn resize(&self) -> bool {
        let Some(source) = &self.source else { return false };
        let (Ok(now), Ok(before)) = (tcgetwinsize(self.target.stream()), tcgetwinsize(source)) else { return false };
        let changed = (now.ws_row, now.ws_col) != (before.ws_row, before.ws_col);
        // A pipe has no size.
        changed && tcsetwinsize(source, now).is_ok()
    }

    /// Why the last attempt's output is not whole, if so.
    pub(super) fn lost(&self) -> Option<&io::Error> {
        match &self.destination {
            Destination::Hold { lost, .. } => lost.as_ref(),
            Destination::Pass { .. } => None,
        }
    }

    /// What ended the passing on, if anything did.
    pub(super) fn broken(&self) -> Option<Errno> {
        match &self.destination {
            Destination::Pass { broken, .. } => *broken,
            Destination::Hold { .. } => None,
        }
    }

    /// Writes held bytes from `offset` on to the real stream, as many as it takes at once;
    /// returns how many, zero at the end.
    pub(super) fn emit(&mut self, offset: u64) -> rustix::io::Result<u64> {
        let Destination::Hold { spool, .. } = &self.destination else { return Ok(0) };
        if let Some(file) = spool.file()
            && let Some(result) = self.target.write_from(file, offset, PIPE_SIZE)
        {
            return result.map(|count| count as u64);
        }
        let count = match spool.read_at(offset, &mut self.buffer) {
            Ok(0) => return Ok(0),
            Ok(count) => count,
            Err(_) => return Err(Errno::IO),
        };
        self.target.write(&self.buffer[..count]).map(|count| count as u64)
    }

    /// Bytes that retryx, or the command into this channel, wrote to something.
    pub(super) fn counted(&self) -> u64 {
        self.taken
            + match &self.destination {
                Destination::Pass { written, .. } => *written,
                Destination::Hold { spool, .. } => spool.written(),
            }
    }

    /// Bytes of the current attempt, or the one that ended last.
    pub(super) fn of_attempt(&self) -> u64 {
        self.of_attempt
    }

    /// Where it goes.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // A user may be allowed less; then the usual size has to do.
    let _ = fcntl_setpipe_size(&reader, PIPE_SIZE);
    Ok((reader, writer))
}
