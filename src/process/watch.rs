//! Noticing reads from and writes to a descriptor that somebody else uses, with inotify.
//!
//! A watch on `/proc/self/fd/N` sees the pipe or file itself, so it hears every process
//! that reads from or writes to it, also by `splice`. Sockets cannot be watched so.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// The most events taken at once: somebody may write faster than they are read. Equal
/// events in a row are one.
const MAX_EVENTS: usize = 1024;

/// What a watch heard since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Something was read from standard input.
    pub stdin: bool,
    /// Something was written to standard output.
    pub stdout: bool,
}

/// The watch on standard input and output; one for both, as a user may have few.
#[derive(Default)]
pub struct Watch {
    descriptor: Option<OwnedFd>,
    stdin: Option<i32>,
    stdout: Option<i32>,
}

impl Watch {
    /// Listens for reads from standard input; false where that cannot be had.
    pub fn listen_to_stdin(&mut self) -> bool {
        self.stdin = self.add("/proc/self/fd/0", WatchFlags::ACCESS);
        self.stdin.is_some()
    }

    /// Listens for writes to standard output; false where that cannot be had.
    pub fn listen_to_stdout(&mut self) -> bool {
        self.stdout = self.add("/proc/self/fd/1", WatchFlags::MODIFY);
        self.stdout.is_some()
    }

    fn add(&mut self, path: &str, events: WatchFlags) -> Option<i32> {
        if self.descriptor.is_none() {
            self.descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        // Where both streams are one file, the second watch adds to the first.
        inotify::add_watch(self.descriptor.as_ref()?, path, events | WatchFlags::MASK_ADD).ok()
    }

    /// What was heard since the last call. A queue that ran over may have lost anything,
    /// so then both were.
    pub fn heard(&self) -> Heard {
        let mut heard = Heard::default();
        let Some(descriptor) = &self.descriptor else { return heard };
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(descriptor, &mut buffer);
        for _ in 0..MAX_EVENTS {
            let Ok(event) = reader.next() else { break };
            let events = event.events();
            let overflow = events.contains(ReadFlags::QUEUE_OVERFLOW);
            let is = |watch: Option<i32>, kind| watch == Some(event.wd()) && events.contains(kind);
            heard.stdin |= overflow || is(self.stdin, ReadFlags::ACCESS);
            heard.stdout |= overflow || is(self.stdout, ReadFlags::MODIFY);
        }
        heard
    }
}
