//! Reading what may be long in coming, standard input and pipes: signals and the limit on the
//! run are heard meanwhile.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::event::{PollFd, PollFlags};

use super::failure::Failure;
use super::waiter::Waiter;

/// Where bodies, headers and the like are read from.
pub struct Input<'a> {
    waiter: Waiter<'a>,
    /// What ended the reading, where that was no fault of what is read.
    ended: RefCell<Option<Failure>>,
    /// The files that were opened: device and number.
    opened: RefCell<Vec<(u64, u64)>>,
}

impl<'a> Input<'a> {
    /// Reading that what ends this waiting ends too.
    pub fn new(waiter: Waiter<'a>) -> Self {
        Self { waiter, ended: RefCell::new(None), opened: RefCell::default() }
    }

    /// The signal or limit that ended the reading.
    pub fn ended(&self) -> Option<Failure> {
        self.ended.borrow_mut().take()
    }

    /// Whether a file, known by its device and number, was opened here.
    pub fn has_opened(&self, file: (u64, u64)) -> bool {
        self.opened.borrow().contains(&file)
    }

    /// Standard input for `-`, else a file; a closed standard input is a fault.
    pub fn open(&self, path: &OsStr) -> io::Result<Reader<'_>> {
        if path != "-" {
            return self.open_file(Path::new(path));
        }
        self.reader(File::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?))
    }

    /// A file, whatever it is called.
    pub fn open_file(&self, path: &Path) -> io::Result<Reader<'_>> {
        // A pipe that nobody writes to yet is waited for like one that is silent.
        self.reader(File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
    }

    fn reader(&self, file: File) -> io::Result<Reader<'_>> {
        let metadata = file.metadata()?;
        if metadata.is_file() {
            self.opened.borrow_mut().push((metadata.dev(), metadata.ino()));
        }
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

/// The most bytes read at once, however much room there is: signals and limits are looked at
/// between two readings.
const STEP: usize = 64 * 1024;

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let step = buffer.len().min(STEP);
        loop {
            let waited = if self.waits {
                let mut fds = vec![PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
                self.input.waiter.wait(&mut fds, None)
            } else {
                self.input.waiter.pass(step)
            };
            if let Err(failure) = waited {
                let text = failure.to_string();
                *self.input.ended.borrow_mut() = Some(failure);
                self.is_read = false;
                return Err(io::Error::other(text));
            }
            match self.file.read(&mut buffer[..step]) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::BorrowedClock;
    use crate::net::Ends;
    use crate::policy::TimeLimit;

    #[test]
    fn between_two_readings_there_is_a_look_at_limits() {
        let clock = BorrowedClock::start();
        let read = |path: &OsStr, total| {
            let ends = Ends { total, ..Ends::default() };
            let input = Input::new(Waiter::new(&clock, ends));
            let mut buffer = vec![0; 4 * STEP];
            let count = input.open(path).unwrap().read(&mut buffer).unwrap_or_default();
            let all = input.open(path).unwrap().take(1 << 22).read_to_end(&mut Vec::new());
            (count, all.is_ok(), input.ended().is_some())
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 30).unwrap();
        let over = Some((Duration::ZERO, TimeLimit::Total(Duration::ZERO)));
        assert_eq!(read(OsStr::new("/dev/zero"), None), (STEP, true, false));
        assert_eq!(read(OsStr::new("/dev/zero"), over), (0, false, true));
        assert_eq!(read(file.path().as_os_str(), None), (STEP, true, false));
        assert_eq!(read(file.path().as_os_str(), over), (STEP, false, true));
    }
}
