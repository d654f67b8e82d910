//! Whether any process of a run still lives, whatever it did to its session, group and
//! parent: all of them hold the write end of one pipe.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::wait_until;

/// The read end of the pipe.
pub struct Leash {
    end: OwnedFd,
}

impl Leash {
    /// A new one, and the end to give to a process.
    pub fn new() -> (Self, OwnedFd) {
        let (end, held) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        (Self { end }, held)
    }

    /// Whether nobody holds it any more.
    pub fn is_free(&self) -> bool {
        let mut fds = [PollFd::new(&self.end, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).expect("poll");
        fds[0].revents().contains(PollFlags::HUP)
    }

    /// Waits until nobody does.
    #[track_caller]
    pub fn await_free(&self) {
        wait_until("no process of the run is left", || self.is_free());
    }
}
