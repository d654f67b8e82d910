//! Reading what may be long in coming, standard input and pipes: signals and the limit on the
//! run are heard meanwhile.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::clock::SystemClock;
use crate::net::{Ends, Failure, Waiter};
use crate::policy::TimeLimit;

/// Where bodies, headers and the like are read from.
pub struct Input<'a> {
    waiter: Waiter<'a>,
    /// What ended the reading, where that was no fault of what is read.
    ended: RefCell<Option<Failure>>,
}

impl<'a> Input<'a> {
    /// Reading that the limit on the run ends, on its clock.
    pub fn new(clock: &'a SystemClock, total: Option<Duration>) -> Self {
        let total = total.map(|limit| (limit, TimeLimit::Total(limit)));
        Self { waiter: Waiter::new(clock, Ends { total, ..Ends::default() }), ended: RefCell::new(None) }
    }

    /// The signal or limit that ended the reading.
    pub fn ended(&self) -> Option<Failure> {
        self.ended.borrow_mut().take()
    }

    /// Standard input for `-`, else a file; a closed standard input is a fault.
    pub fn open(&self, path: &OsStr) -> io::Result<Reader<'_>> {
        let file = if path == "-" {
            File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?)
        } else {
            // A pipe that nobody writes to yet is waited for like one that is silent.
            File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?
        };
        let metadata = file.metadata()?;
        Ok(Reader { waits: !metadata.is_file(), is_read: !metadata.is_dir(), file, input: self })
    }
}

/// Something that is read.
pub struct Reader<'a> {
    file: File,
    waits: bool,
    /// Whether the last reading went well.
    is_read: bool,
    input: &'a Input<'a>,
}

impl Reader<'_> {
    /// Whether all that was asked for could be read so far.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.waits {
                let mut fds = vec![PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
                if let Err(failure) = self.input.waiter.wait(&mut fds, None) {
                    let text = failure.to_string();
                    *self.input.ended.borrow_mut() = Some(failure);
                    self.is_read = false;
                    return Err(io::Error::other(text));
                }
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => {
                    let is_fault = |error: &io::Error| error.kind() != io::ErrorKind::Interrupted;
                    self.is_read = !result.as_ref().is_err_and(is_fault);
                    return result;
                }
            }
        }
    }
}
