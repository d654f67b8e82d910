//! Noticing reads from standard input by whoever shares it, with inotify.
//!
//! A watch on `/proc/self/fd/0` sees the pipe or file itself, so it hears every process
//! that reads from it, also by `splice`. Sockets cannot be watched so. The kernel takes up
//! to 25 ms to take a watch down at exit, so there is one only where it is needed.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// The most events taken at once: somebody may read faster than they are taken. Equal
/// events in a row are one.
const MAX_EVENTS: usize = 1024;

/// A watch on standard input that heard nothing yet.
#[derive(Debug)]
pub(super) struct ReadWatch {
    descriptor: OwnedFd,
}

impl ReadWatch {
    /// Listens from now on; `None` where that cannot be had.
    pub(super) fn listen() -> Option<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&descriptor, "/proc/self/fd/0", WatchFlags::ACCESS).ok()?;
        Some(Self { descriptor })
    }

    /// Whether something was read since the last call.
    pub(super) fn heard(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(&self.descriptor, &mut buffer);
        // Every event is a read, or the overflow of the queue by reads.
        (0..MAX_EVENTS).take_while(|_| reader.next().is_ok()).count() > 0
    }
}
