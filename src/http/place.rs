//! Where bodies go in the end: files, devices, pipes, standard output.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Access, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beside::{Beside, beside, folder_of, through_links};
use crate::cause::cause;
use crate::net::{Failure, Fault, Waiter};
use crate::process::{Spool, Target};

/// Where a body goes in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard output, under whatever name.
    Stdout,
    /// A device or a named pipe, written as it is.
    Special(PathBuf),
    /// A file that goes on where it ends (`-C`).
    After(PathBuf),
    /// A file that is replaced.
    File(PathBuf),
}

/// What kind of place the file is, which may go on where it ends; without one it is standard
/// output. Fails where it can never be written.
pub(super) fn place(file: Option<&Path>, goes_on: bool) -> Result<Place, String> {
    let Some(path) = file else { return Ok(Place::Stdout) };
    Ok(match place_of(path)? {
        Place::File(path) if goes_on => Place::After(path),
        place => place,
    })
}

fn place_of(path: &Path) -> Result<Place, String> {
    let unwritable = |error: io::Error| format!("{} cannot be written: {}", path.display(), cause(&error));
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(format!("{} is the name of a folder; name a file", path.display()));
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(&through_links(path));
            let allowed = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK);
            allowed.map_err(|error| unwritable(error.into()))?;
            return Ok(Place::File(path.to_owned()));
        }
        Err(error) => return Err(unwritable(error)),
    };
    if metadata.is_dir() {
        return Err(format!("{} is a folder", path.display()));
    }
    let own = (metadata.dev(), metadata.ino());
    let is = |stream| rustix::fs::fstat(stream).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == own);
    if is(rustix::stdio::stdout()) {
        return Ok(Place::Stdout);
    }
    let kind = metadata.file_type();
    if kind.is_socket() {
        return Err(format!("{} is a socket, which cannot be written like a file", path.display()));
    }
    rustix::fs::access(path, Access::WRITE_OK).map_err(|error| unwritable(error.into()))?;
    let as_it_is = !kind.is_file() || is(rustix::stdio::stderr());
    Ok(if as_it_is { Place::Special(path.to_owned()) } else { Place::File(path.to_owned()) })
}

/// A file beside the body that something is written to at the end (`-D`).
pub struct SideFile(Place);

impl SideFile {
    /// Fails where it can never be written.
    pub fn new(path: &Path) -> Result<Self, String> {
        Ok(Self(if path.as_os_str() == "-" { Place::Stdout } else { place_of(path)? }))
    }

    /// Whether it is a file, and the same as one where a body goes.
    pub(super) fn is_same(&self, other: &Place) -> bool {
        let file = |place: &Place| match place {
            Place::File(path) | Place::After(path) => {
                let path = through_links(path);
                Some(fs::canonicalize(folder_of(&path)).ok()?.join(path.file_name()?))
            }
            Place::Stdout | Place::Special(_) => None,
        };
        file(&self.0).is_some_and(|own| file(other) == Some(own))
    }

    /// Writes all of it.
    pub fn write(&self, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
        match &self.0 {
            Place::Stdout => write_stdout(bytes, waiter),
            Place::Special(path) => write_special(&open_special(path, waiter)?, path, bytes, waiter),
            Place::File(path) | Place::After(path) => fs::write(path, bytes).map_err(|error| unwritable(path, &error)),
        }
    }
}

/// How often a named pipe is looked at for a reader.
const READER: Duration = Duration::from_millis(20);

/// Opens a device or named pipe without waiting for its reader alone.
pub(super) fn open_special(path: &Path, waiter: &Waiter<'_>) -> Result<OwnedFd, Failure> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => return Ok(file),
            Err(Errno::NXIO) => waiter.wait(&mut Vec::new(), Some(waiter.now().saturating_add(READER)))?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(unwritable(path, &error.into())),
        }
    }
}

pub(super) fn write_special(file: &OwnedFd, path: &Path, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(file, rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::AGAIN) => {
                let mut fds = vec![PollFd::from_borrowed_fd(file.as_fd(), PollFlags::OUT)];
                waiter.wait(&mut fds, None)?;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(unwritable(path, &error.into())),
        }
    }
    Ok(())
}

/// Goes on with a file of that length; one that could not take all is left as it was.
pub(super) fn append(path: &Path, length: u64, heads: &[u8], body: &Spool, waiter: &Waiter<'_>) -> Result<(), Failure> {
    let unwritable = |error: io::Error| unwritable(path, &error);
    let mut file = File::options().append(true).create(true).open(path).map_err(unwritable)?;
    let now = file.metadata().map_err(unwritable)?.len();
    if now != length {
        let text = format!("{} has {now} bytes now, not {length}: what was received does not follow", path.display());
        return Err(Failure::new(Fault::Write, text));
    }
    let filled = file.write_all(heads).map_err(unwritable);
    let filled =
        filled.and_then(|()| fill(&mut file, path, Some(waiter), |offset, buffer| body.read_at(offset, buffer)));
    filled.inspect_err(|_| drop(file.set_len(length)))
}

/// Puts what is beside a file in its place, after these heads.
pub(super) fn put(beside: &mut Beside, heads: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
    if heads.is_empty() {
        return put_whole(beside);
    }
    let path = &beside.path;
    let mut whole = self::beside(path).map_err(|error| unwritable(path, &error))?;
    whole.file.write_all(heads).map_err(|error| unwritable(path, &error))?;
    fill(&mut whole.file, path, Some(waiter), |offset, buffer| beside.file.read_at(buffer, offset))?;
    put_whole(&mut whole)
}

/// Puts a body in the place of a file, after these heads.
pub(super) fn put_spool(path: &Path, heads: &[u8], body: &Spool, waiter: &Waiter<'_>) -> Result<(), Failure> {
    match beside(path) {
        Ok(mut new) => {
            new.file.write_all(heads).map_err(|error| unwritable(path, &error))?;
            fill(&mut new.file, path, Some(waiter), |offset, buffer| body.read_at(offset, buffer))?;
            put_whole(&mut new)
        }
        Err(_) => copy_into(path, heads, body.length(), |offset, buffer| body.read_at(offset, buffer)),
    }
}

/// Some files cannot be replaced: something is mounted there, or somebody else's file is in a
/// folder like `/tmp`. Those are overwritten.
fn put_whole(beside: &mut Beside) -> Result<(), Failure> {
    let Err(error) = beside.replace() else { return Ok(()) };
    if !beside.path.exists() {
        return Err(unwritable(&beside.path, &error));
    }
    let length = beside.file.metadata().map_err(|error| lost(&error))?.len();
    copy_into(&beside.path, b"", length, |offset, buffer| beside.file.read_at(buffer, offset))
}

/// Overwrites a file with heads and a body of that length. Room is made before, so that a full
/// disk costs nothing of what was there; and no signal ends it, which would leave half of each.
fn copy_into(
    path: &Path,
    heads: &[u8],
    length: u64,
    read: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
) -> Result<(), Failure> {
    let after = heads.len() as u64 + length;
    let open = || {
        let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
        let before = file.metadata()?.len();
        if after > before {
            // A file system that cannot tell takes its chance.
            if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) =
                rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, before, after - before)
            {
                return Err(error.into());
            }
        }
        file.write_all(heads)?;
        Ok(file)
    };
    let mut file = open().map_err(|error: io::Error| unwritable(path, &error))?;
    fill(&mut file, path, None, read)?;
    file.set_len(after).map_err(|error| unwritable(path, &error))
}

/// Copies all that is kept to the end of what was written to a file.
fn fill(
    file: &mut File,
    path: &Path,
    waiter: Option<&Waiter<'_>>,
    read: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
) -> Result<(), Failure> {
    let mut buffer = vec![0; 64 * 1024];
    let mut offset = 0;
    loop {
        match read(offset, &mut buffer).map_err(|error| lost(&error))? {
            0 => return Ok(()),
            count => {
                waiter.map_or(Ok(()), |waiter| waiter.pass(count))?;
                file.write_all(&buffer[..count]).map_err(|error| unwritable(path, &error))?;
                offset += count as u64;
            }
        }
    }
}

/// Writes to standard output, without waiting for its reader alone.
pub fn write_stdout(bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Ok(());
    }
    write_to(&Target::new(rustix::stdio::stdout()), bytes, waiter)
}

pub(super) fn write_to(target: &Target, bytes: &[u8], waiter: &Waiter<'_>) -> Result<(), Failure> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match target.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::AGAIN) => {
                let mut fds = vec![PollFd::from_borrowed_fd(target.stream(), PollFlags::OUT)];
                waiter.wait(&mut fds, None)?;
            }
            Err(Errno::INTR) => {}
            Err(Errno::PIPE) => return Err(Failure::new(Fault::ReaderGone, "nobody reads standard output any more")),
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

pub(super) fn lost(error: &io::Error) -> Failure {
    Failure::new(Fault::Write, format!("what is received cannot be kept: {}", cause(error)))
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Write, format!("{} cannot be written: {}", path.display(), cause(error)))
}
