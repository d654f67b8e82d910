//! `--stdin replay`: standard input, kept and fed to every attempt.
//!
//! Bytes are taken from standard input only when the command's pipe has room for them, so
//! that retryx reads ahead of the command by at most that pipe's size, one page. Each byte
//! goes into the spool first and from there to the command, in this attempt and the next.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::spool::Spool;

/// The size asked for of the command's pipe: the least that Linux makes.
const PIPE_SIZE: usize = 4096;

/// What is kept of standard input, and the pipe of the current attempt.
pub(super) struct Replay {
    spool: Spool,
    /// Whether there is more to come.
    ended: bool,
    /// Why not everything is kept: there is no further attempt then.
    lost: Option<io::Error>,
    /// What was read and could not be kept.
    unkept: Vec<u8>,
    /// Whether standard input could not be read to its end.
    unreadable: bool,
    feed: Option<Feed>,
    given: u64,
}

/// The pipe of an attempt.
struct Feed {
    pipe: OwnedFd,
    /// Bytes given to it so far.
    offset: u64,
    /// Whether it has room, as far as is known.
    roomy: bool,
}

impl Replay {
    /// Keeps nothing yet.
    pub(super) fn new(spool: Spool) -> Self {
        Self { spool, ended: false, lost: None, unkept: Vec::new(), unreadable: false, feed: None, given: 0 }
    }

    /// Begins an attempt; returns its standard input.
    pub(super) fn begin(&mut self) -> io::Result<OwnedFd> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // A pipe of the usual size works too, and reads further ahead.
        let _ = fcntl_setpipe_size(&writer, PIPE_SIZE);
        self.feed = Some(Feed { pipe: writer, offset: 0, roomy: false });
        Ok(reader)
    }

    /// Ends an attempt: what it did not take stays kept for the next.
    pub(super) fn end(&mut self) {
        self.feed = None;
    }

    /// Whether standard input could not be read to its end.
    pub(super) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Why a further attempt would find less than the first, if so.
    pub(super) fn lost(&self) -> Option<&io::Error> {
        self.lost.as_ref()
    }

    /// Bytes written to commands and to the spool's file.
    pub(super) fn written(&self) -> u64 {
        self.given + self.spool.written()
    }

    fn has_more(&self, feed: &Feed) -> bool {
        !self.unkept.is_empty() || feed.offset < self.spool.length()
    }

    /// What to wait for: room in the pipe, then bytes to put there.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        let feed = self.feed.as_ref();
        let waits_for_input = feed.is_some_and(|feed| feed.roomy && !self.has_more(feed));
        // A pipe that nobody reads is told of whatever is asked.
        let room = if waits_for_input { PollFlags::empty() } else { PollFlags::OUT };
        let pipe = feed.map(|feed| PollFd::from_borrowed_fd(feed.pipe.as_fd(), room));
        let source = waits_for_input.then(|| PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN));
        pipe.into_iter().chain(source)
    }

    /// Moves bytes on, after a wait for those interests: `pipe` and `source` are what came
    /// of them. Fails where standard input, or what was kept of it, cannot be read: the
    /// command must not take that for the end of its input.
    pub(super) fn work(&mut self, pipe: PollFlags, source: PollFlags) -> io::Result<()> {
        let Some(mut feed) = self.feed.take() else { return Ok(()) };
        if pipe.contains(PollFlags::ERR) {
            // The command reads no more; that is no error.
            return Ok(());
        }
        feed.roomy |= pipe.contains(PollFlags::OUT);
        if source.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.take_from_source()?;
        }
        if feed.roomy && self.has_more(&feed) && !self.give(&mut feed)? {
            return Ok(());
        }
        // Closing the pipe passes the end on.
        if !self.ended || self.has_more(&feed) {
            self.feed = Some(feed);
        }
        Ok(())
    }

    fn take_from_source(&mut self) -> io::Result<()> {
        let mut buffer = [0; PIPE_SIZE];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => self.ended = true,
            Ok(count) => {
                let bytes = &buffer[..count];
                if self.lost.is_none() {
                    self.lost = self.spool.append(bytes).err();
                }
                if self.lost.is_some() {
                    self.unkept.extend_from_slice(bytes);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The command would have met this error, and a pipe cannot pass it on.
            Err(error) => {
                self.unreadable = true;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Gives the pipe what it takes now; false where nobody reads it any more.
    fn give(&mut self, feed: &mut Feed) -> io::Result<bool> {
        feed.roomy = false;
        let mut buffer = [0; PIPE_SIZE];
        let kept = self.spool.read_at(feed.offset, &mut buffer)?;
        let bytes = if kept > 0 { &buffer[..kept] } else { &self.unkept[..] };
        match rustix::io::write(&feed.pipe, bytes) {
            Ok(count) => {
                self.given += count as u64;
                if kept > 0 {
                    feed.offset += count as u64;
                } else {
                    self.unkept.drain(..count);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Ok(false),
        }
        Ok(true)
    }
}
