//! Where an answer's body goes: held until it is known to be good and whole, continued
//! where it broke off, and put in its place at once.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::failure::{Failure, Fault};
use super::framing::Head;
use super::waiter::Waiter;
use crate::process::{IN_MEMORY, Spool, Target};
use crate::report::text::cause;

/// What becomes of bodies; immutable for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputPlan {
    /// The file that gets it (`-o`, `-O`); `None` for standard output.
    pub file: Option<PathBuf>,
    /// Whether bytes are passed on as they come (`-N`).
    pub live: bool,
    /// Whether the heads stand before it (`-i`).
    pub include: bool,
    /// Whether the body of a failure is kept too (`--fail-with-body`).
    pub keep_failure: bool,
    /// What it must be, as SHA-256.
    pub checksum: Option<[u8; 32]>,
    /// Where to go on with a file that is partly there (`-C`).
    pub resume: Option<Resume>,
    /// Where what is kept goes, once it is too much for memory.
    pub spool_folder: PathBuf,
}

/// `-C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// After what the file has.
    AfterFile,
    /// From this byte.
    At(u64),
}

/// The body of a run's answers, across its attempts.
pub struct Output<'a> {
    plan: &'a OutputPlan,
    store: Store,
    /// Bytes of the body that are there.
    have: u64,
    /// The first byte that is asked for by the user's own `-C`.
    first: u64,
    /// The length of the whole, where an answer told it.
    total: Option<u64>,
    /// What tells that the server's is still the same, in the form of `If-Range`.
    validator: Option<String>,
    /// Whether bytes went to where they cannot be taken back from.
    released: bool,
}

/// Where bytes are until they are known to be good.
enum Store {
    /// In memory, or a nameless file.
    Spool(Spool),
    /// In a nameless file beside the one that it is to become.
    Beside(Beside),
}

/// A file that will replace another.
struct Beside {
    file: File,
    /// What it is to become.
    path: PathBuf,
    /// Its name, where the file system has none without.
    named: Option<PathBuf>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.named {
            let _ = fs::remove_file(path);
        }
    }
}

impl<'a> Output<'a> {
    /// An output that has nothing yet. Fails where the file can never be written.
    pub fn new(plan: &'a OutputPlan) -> Result<Self, String> {
        let spool = || Store::Spool(Spool::new(plan.spool_folder.clone()));
        let mut first = 0;
        let store = match &plan.file {
            None => spool(),
            Some(path) => {
                let metadata = fs::metadata(path);
                if metadata.as_ref().is_ok_and(fs::Metadata::is_dir) {
                    return Err(format!("{} is a folder", path.display()));
                }
                let size = metadata.as_ref().map_or(0, fs::Metadata::len);
                first = match plan.resume {
                    Some(Resume::AfterFile) => size,
                    Some(Resume::At(at)) => at,
                    None => 0,
                };
                let is_special = metadata.is_ok_and(|metadata| !metadata.is_file());
                if is_special || plan.resume.is_some() || plan.live {
                    spool()
                } else {
                    // Where a neighbour cannot be made it is copied into place in the end.
                    beside(path).map_or_else(|_| spool(), Store::Beside)
                }
            }
        };
        Ok(Self { plan, store, have: 0, first, total: None, validator: None, released: false })
    }

    /// The fields that ask for the rest only.
    pub fn continuation(&self) -> Vec<(String, String)> {
        let from = self.first + self.have;
        if from == 0 {
            return Vec::new();
        }
        let mut fields = vec![("Range".to_owned(), format!("bytes={from}-"))];
        if self.have > 0 {
            fields.extend(self.validator.clone().map(|validator| ("If-Range".to_owned(), validator)));
        }
        fields
    }

    /// Makes ready for the body of a successful answer.
    pub fn begin(&mut self, head: &Head) -> Result<(), Failure> {
        let asked = self.first + self.have;
        if head.status == 206 && asked > 0 {
            let Some((from, total)) = head.value("content-range").and_then(content_range) else {
                return Err(Failure::new(Fault::Range, "the server sends a part without saying which"));
            };
            let same = |known: Option<u64>| known.is_none() || total.is_none() || known == total;
            let changed = self.have > 0 && self.validator.is_some() && validator(head) != self.validator;
            if from == asked && same(self.total) && !changed {
                self.total = total;
                if self.have == 0 {
                    self.validator = validator(head);
                }
                return Ok(());
            }
            self.forget()?;
            return Err(Failure::new(Fault::Range, "the server sends another part than was asked for"));
        }
        if self.first > 0 {
            return Err(Failure::new(Fault::Range, "the server cannot continue the file (-C)"));
        }
        self.forget()?;
        self.validator = validator(head);
        self.total = head.value("content-length").and_then(|length| length.trim().parse().ok());
        Ok(())
    }

    /// Starts over: what came of an earlier attempt is no longer wanted.
    fn forget(&mut self) -> Result<(), Failure> {
        if self.have == 0 {
            return Ok(());
        }
        if self.released {
            return Err(Failure::new(Fault::Range, "the server cannot continue what was passed on already"));
        }
        self.have = 0;
        let cleared = match &mut self.store {
            Store::Spool(spool) => spool.clear(),
            Store::Beside(beside) => beside.file.set_len(0).and_then(|()| io::Seek::rewind(&mut beside.file)),
        };
        cleared.map_err(|error| lost(&error))
    }

    /// Whether an answer 416 says that everything is there.
    pub fn is_complete_by(&self, head: &Head) -> bool {
        let total = head.value("content-range").and_then(|value| value.trim().strip_prefix("bytes */")?.parse().ok());
        let there = self.first + self.have;
        there > 0 && total == Some(there)
    }

    /// Whether an answer 416 says that what is here is of another version.
    pub fn restart(&mut self) -> Result<(), Failure> {
        (self.validator, self.total) = (None, None);
        self.forget()
    }

    /// Takes bytes of the body.
    pub fn take(&mut self, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        let is_stdout = self.plan.file.is_none();
        let streams = self.plan.live
            || is_stdout
                && self.plan.checksum.is_none()
                && (self.released || self.have + bytes.len() as u64 > IN_MEMORY as u64);
        if streams {
            self.release(waiter)?;
            self.released = true;
            self.have += bytes.len() as u64;
            return self.write(bytes, waiter);
        }
        self.have += bytes.len() as u64;
        let kept = match &mut self.store {
            Store::Spool(spool) => spool.append(bytes),
            Store::Beside(beside) => beside.file.write_all(bytes),
        };
        kept.map_err(|error| lost(&error))
    }

    /// Whether bytes are still missing that can be asked for alone.
    pub fn can_continue(&self) -> bool {
        self.have == 0 || self.validator.is_some() || !self.released
    }

    /// Drops what cannot be continued.
    pub fn note_broken(&mut self) {
        if self.validator.is_none() && !self.released {
            let _ = self.forget();
        }
    }

    /// Passes on what is held.
    fn release(&mut self, waiter: &Waiter<'_>) -> Result<(), Failure> {
        let Store::Spool(spool) = &mut self.store else { return Ok(()) };
        if spool.length() == 0 {
            return Ok(());
        }
        let spool = std::mem::replace(spool, Spool::new(self.plan.spool_folder.clone()));
        let mut buffer = vec![0; 64 * 1024];
        let mut offset = 0;
        loop {
            match spool.read_at(offset, &mut buffer).map_err(|error| lost(&error))? {
                0 => return Ok(()),
                count => {
                    self.write(&buffer[..count], waiter)?;
                    offset += count as u64;
                }
            }
        }
    }

    fn write(&self, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        match &self.plan.file {
            None => write_stdout(bytes, waiter),
            Some(path) => {
                let opened = File::options().append(true).create(true).open(path);
                opened.and_then(|mut file| file.write_all(bytes)).map_err(|error| unwritable(path, &error))
            }
        }
    }

    /// Whether the body is what its checksum says.
    pub fn check(&mut self) -> Result<(), Failure> {
        let Some(wanted) = self.plan.checksum else { return Ok(()) };
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut offset = 0;
        loop {
            let count = match &self.store {
                Store::Spool(spool) => spool.read_at(offset, &mut buffer),
                Store::Beside(beside) => std::os::unix::fs::FileExt::read_at(&beside.file, &mut buffer, offset),
            };
            match count.map_err(|error| lost(&error))? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    offset += count as u64;
                }
            }
        }
        let got: [u8; 32] = hasher.finalize().into();
        if got == wanted {
            return Ok(());
        }
        // What is wrong is not continued.
        (self.validator, self.total) = (None, None);
        self.forget()?;
        Err(Failure::new(Fault::Checksum, format!("the body's SHA-256 is {}, not {}", hex(&got), hex(&wanted))))
    }

    /// Puts what is known to be good in its place, after these heads.
    pub fn finish(&mut self, heads: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        let heads = if self.plan.include { heads } else { b"" };
        match &mut self.store {
            Store::Beside(beside) if heads.is_empty() => {
                let (path, result) = (beside.path.clone(), beside.replace());
                result.map_err(|error| unwritable(&path, &error))
            }
            Store::Beside(beside) => {
                let path = beside.path.clone();
                let mut body = Vec::new();
                let read = io::Seek::rewind(&mut beside.file).and_then(|()| beside.file.read_to_end(&mut body));
                read.map_err(|error| lost(&error))?;
                fs::write(&path, [heads, &body].concat()).map_err(|error| unwritable(&path, &error))
            }
            Store::Spool(_) => {
                if let (Some(path), false) = (&self.plan.file, self.released || self.first > 0) {
                    let special = fs::metadata(path).is_ok_and(|metadata| {
                        let kind = metadata.file_type();
                        kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
                    });
                    let made = if special { Ok(()) } else { File::create(path).map(drop) };
                    made.map_err(|error| unwritable(path, &error))?;
                }
                if !heads.is_empty() {
                    self.write(heads, waiter)?;
                }
                self.release(waiter)
            }
        }
    }

    /// Bytes of the body that are there.
    pub fn size(&self) -> u64 {
        self.have
    }

    /// Bytes that were there before, and the length of the whole where it is known.
    pub fn extent(&self) -> (u64, Option<u64>) {
        (self.first + self.have, self.total.map(|total| total.max(self.first)))
    }
}

/// Writes to standard output, without waiting for its reader alone.
pub fn write_stdout(bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
    let target = Target::new(rustix::stdio::stdout());
    let mut rest = bytes;
    while !rest.is_empty() {
        match target.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::AGAIN) => {
                let mut fds = vec![PollFd::from_borrowed_fd(target.stream(), PollFlags::OUT)];
                waiter.wait(&mut fds, None)?;
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                return Err(Failure::new(
                    Fault::Write,
                    format!("standard output cannot be written: {}", cause(&error.into())),
                ));
            }
        }
    }
    Ok(())
}

fn lost(error: &io::Error) -> Failure {
    Failure::new(Fault::Write, format!("what is received cannot be kept: {}", cause(error)))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Write, format!("{} cannot be written: {}", path.display(), cause(error)))
}

/// The first byte and the length of the whole, of `bytes 5-9/10`.
fn content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, _) = range.split_once('-')?;
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    Some((first.trim().parse().ok()?, total))
}

/// What tells one version of a resource from another: a strong entity tag, else the time of
/// its last change.
fn validator(head: &Head) -> Option<String> {
    let tag = head.value("etag").map(str::trim).filter(|tag| tag.starts_with('"'));
    tag.or_else(|| head.value("last-modified").map(str::trim)).filter(|value| !value.is_empty()).map(str::to_owned)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file in the folder of this path, without a name where the system can.
fn beside(path: &Path) -> io::Result<Beside> {
    // Through a link the file that it means is replaced, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(Beside { file: File::from(file), path, named: None }),
        Err(_) => {
            let named = temporary(&path);
            let file = File::options().read(true).write(true).create_new(true).open(&named)?;
            Ok(Beside { file, path, named: Some(named) })
        }
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut random = [0; 8];
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:016x}", u64::from_le_bytes(random)));
    path.with_file_name(name)
}

impl Beside {
    /// Becomes the file that it is for, all at once. A file that was there hands on its
    /// permissions and, where that is allowed, its owner.
    fn replace(&mut self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.path) {
            let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
            self.file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        }
        let named = match self.named.take() {
            Some(named) => named,
            None => {
                let named = temporary(&self.path);
                let own = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
                linkat(CWD, own, CWD, &named, AtFlags::SYMLINK_FOLLOW)?;
                named
            }
        };
        self.named = Some(named.clone());
        fs::rename(&named, &self.path)?;
        self.named = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_refused() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range(" bytes 5-9/*"), Some((5, None)));
        for junk in ["", "bytes", "bytes */10", "bytes x-9/10", "bytes 5-9/x", "items 5-9/10"] {
            assert_eq!(content_range(junk), None, "{junk}");
        }
    }

    #[test]
    fn a_weak_tag_tells_nothing() {
        let head = |fields: &[(&str, &str)]| Head {
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Head::default()
        };
        assert_eq!(validator(&head(&[("ETag", "\"a\""), ("Last-Modified", "x")])).as_deref(), Some("\"a\""));
        assert_eq!(validator(&head(&[("ETag", "W/\"a\""), ("Last-Modified", "x")])).as_deref(), Some("x"));
        assert_eq!(validator(&head(&[("ETag", "W/\"a\"")])), None);
    }
}
