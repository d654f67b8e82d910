//! The folder of the scopes' files: how a file is opened, locked, made, and set aside.
//!
//! The file that holds a state is also what is locked (`flock`). A good one is never
//! unlinked and never renamed, by nobody here; as people and programs may do that, whoever got
//! the lock looks whether the name still means the file. A new file appears whole, under a name
//! that nothing has. What is not a file of this user's own is left alone, and no link is
//! followed.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::Unshared;
use super::record::LONGEST;
use super::scope::shell_word;
use crate::cause::cause;
use crate::clock::{is_ending, nap, running};
use crate::units::human;

/// How long a lock is waited for. It is held for microseconds, unless its holder was stopped.
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(200);
/// The first wait for a lock, and the longest: hundreds of processes that look for it more
/// often than they use it would keep its holder from the processor.
const NAPS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(8));
/// How many names are tried for what is set aside.
const ASIDES: u32 = 9;

const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);
const REMEDY: &str = "mend that, or give another folder with --state-dir";

/// An open folder.
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a name in the folder means.
pub(super) enum Entry {
    /// Nothing.
    Missing,
    /// Something that cannot be opened for writing, and may be the user's to set aside.
    Unusable,
    /// A file.
    File(OwnedFd),
}

/// A lock on an open file, until it is dropped.
pub(super) struct Locked<F: AsFd>(F);

impl<F: AsFd> Drop for Locked<F> {
    fn drop(&mut self) {
        // By itself it would end with the last copy of the descriptor, and another thread's
        // child can have one for a moment.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

impl<F: AsFd> AsFd for Locked<F> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What is wrong with a place, and what to do.
pub(super) fn unshared(place: impl Display, wrong: impl Display) -> Unshared {
    Unshared(format!("{place} {wrong}; {REMEDY}"))
}

fn failed(place: impl Display, what: &str, errno: Errno) -> Unshared {
    unshared(place, format_args!("{what}: {}", cause(&io::Error::from(errno))))
}

/// Whether the system's answer means that there is no such operation here.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOLCK | Errno::PERM)
}

impl Folder {
    /// The folder at a path; `None` where there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Unshared> {
        refuse_planted(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path: path.to_owned() })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(path.display(), "cannot be opened", errno)),
        }
    }

    /// The folder at a path, which is made where it is missing, for this user alone.
    pub(super) fn open_or_make(path: &Path) -> Result<Self, Unshared> {
        if let Some(folder) = Self::open(path)? {
            return Ok(folder);
        }
        make_folder(path).map_err(|errno| failed(path.display(), "cannot be made", errno))?;
        Self::open(path)?.ok_or_else(|| unshared(path.display(), "is a link to nowhere, or gone as soon as it is made"))
    }

    /// The path of a file in it, for messages.
    pub(super) fn place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// The names in it, in no order.
    pub(super) fn names(&self) -> Result<Vec<String>, Unshared> {
        let failed = |errno| failed(self.path.display(), "cannot be read", errno);
        let folder = self.readable().map_err(failed)?;
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(failed)? {
            // What has no UTF-8 for a name is nothing of retryx's.
            names.extend(entry.map_err(failed)?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    fn readable(&self) -> rustix::io::Result<OwnedFd> {
        rustix::fs::openat(&self.fd, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Opens a file for reading only; `None` where there is none.
    pub(super) fn look_at(&self, name: &str) -> Result<Option<OwnedFd>, Unshared> {
        match self.open_file(name, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.no_file(name, errno)),
        }
    }

    /// Opens a file for reading and writing.
    pub(super) fn entry(&self, name: &str) -> Result<Entry, Unshared> {
        match self.open_file(name, OFlags::RDWR) {
            Ok(file) => Ok(Entry::File(file)),
            Err(Errno::NOENT) => Ok(Entry::Missing),
            Err(Errno::ISDIR | Errno::ACCESS) => Ok(Entry::Unusable),
            Err(errno) => Err(self.no_file(name, errno)),
        }
    }

    fn open_file(&self, name: &str, access: OFlags) -> rustix::io::Result<OwnedFd> {
        // Not to wait for the other end of a pipe, nor to get a terminal to control.
        let safe = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        rustix::fs::openat(&self.fd, name, access | safe, Mode::empty())
    }

    fn no_file(&self, name: &str, errno: Errno) -> Unshared {
        let place = self.place(name);
        if errno == Errno::LOOP {
            unshared(place, "is a symbolic link")
        } else {
            failed(place, "cannot be opened", errno)
        }
    }

    /// Whether the name still means this file, which must be a file of this user's own, and
    /// by no other name.
    pub(super) fn is_current(&self, name: &str, file: impl AsFd) -> Result<bool, Unshared> {
        let Some(named) = self.stat(name)? else { return Ok(false) };
        let open = rustix::fs::fstat(file).map_err(|errno| failed(self.place(name), "cannot be looked at", errno))?;
        if (open.st_dev, open.st_ino) != (named.st_dev, named.st_ino) {
            return Ok(false);
        }
        if FileType::from_raw_mode(named.st_mode) != FileType::RegularFile {
            return Err(unshared(self.place(name), "is no regular file"));
        }
        self.refuse_foreign(name, &named)?;
        if named.st_nlink != 1 {
            return Err(unshared(self.place(name), "has another name too"));
        }
        Ok(true)
    }

    fn stat(&self, name: &str) -> Result<Option<Stat>, Unshared> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(self.place(name), "cannot be looked at", errno)),
        }
    }

    fn refuse_foreign(&self, name: &str, stat: &Stat) -> Result<(), Unshared> {
        if stat.st_uid == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        Err(unshared(self.place(name), format_args!("belongs to another user ({})", stat.st_uid)))
    }

    /// Locks an open file, for this process alone or together with others who read.
    pub(super) fn lock<F: AsFd>(
        &self,
        name: &str,
        file: F,
        how: Lock,
        patience: Duration,
    ) -> Result<Locked<F>, Unshared> {
        let operation = match how {
            Lock::Alone => FlockOperation::NonBlockingLockExclusive,
            Lock::Together => FlockOperation::NonBlockingLockShared,
        };
        let start = running();
        let mut wait = NAPS.0;
        loop {
            // Looked at before the lock is, so that the last look comes after the whole time.
            let waited = running().saturating_sub(start);
            match rustix::fs::flock(&file, operation) {
                Ok(()) => return Ok(Locked(file)),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if is_ending() => return Err(Unshared(String::new())),
                Err(Errno::WOULDBLOCK) if waited < patience => {
                    // Whose time runs out looks more often.
                    let most = wait.min(patience.saturating_sub(waited) / 8).max(NAPS.0);
                    // Those who wait should not come back all at once.
                    nap(most / 2 + most * (waited.subsec_nanos() / 64 % 64) / 64);
                    wait = (wait * 2).min(NAPS.1);
                }
                Err(Errno::WOULDBLOCK) => {
                    let place = self.place(name);
                    let patience = human(patience);
                    let word = shell_word(&place);
                    return Err(Unshared(format!(
                        "{place} has been locked by another process for {patience}; fuser {word} names it"
                    )));
                }
                Err(errno) if is_unsupported(errno) => {
                    return Err(unshared(self.place(name), "is on a file system without locks"));
                }
                Err(errno) => return Err(failed(self.place(name), "cannot be locked", errno)),
            }
        }
    }

    /// All that is in a file; or what is wrong with it.
    pub(super) fn read(&self, name: &str, file: impl AsFd) -> Result<Result<Vec<u8>, String>, Unshared> {
        let failed = |errno| failed(self.place(name), "cannot be read", errno);
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unshared(self.place(name), "is no regular file"));
        }
        let Some(size) = usize::try_from(stat.st_size).ok().filter(|size| *size <= LONGEST) else {
            return Ok(Err(format!("it is longer than {} KiB", LONGEST / 1024)));
        };
        let (mut bytes, mut filled) = (vec![0; size], 0);
        while filled < size {
            match rustix::io::pread(&file, &mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        bytes.truncate(filled);
        Ok(Ok(bytes))
    }

    /// Writes into a file, as a rule in one go: what a signal or a full disk cut off is no record.
    pub(super) fn write(&self, name: &str, file: impl AsFd, bytes: &[u8], offset: usize) -> Result<(), Unshared> {
        write_all(file, bytes, offset).map_err(|errno| failed(self.place(name), "cannot be written", errno))
    }

    /// Takes away what a file has beyond that length.
    pub(super) fn cut(&self, name: &str, file: impl AsFd, length: usize) -> Result<(), Unshared> {
        rustix::fs::ftruncate(file, length as u64).map_err(|errno| failed(self.place(name), "cannot be cut", errno))
    }

    /// Makes a file with these bytes, at once; false where something of that name is there.
    pub(super) fn make(&self, name: &str, bytes: &[u8]) -> Result<bool, Unshared> {
        match self.make_nameless(name, bytes) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // Not every file system makes files without a name, and giving one takes /proc.
            Err(_) => match self.make_named(name, bytes) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(errno) => Err(failed(self.place(name), "cannot be made", errno)),
            },
        }
    }

    fn make_nameless(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, c".", flags, OWNER)?;
        fill(&file, bytes)?;
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, own, &self.fd, name, AtFlags::SYMLINK_FOLLOW)
    }

    fn make_named(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let mut random = [0; 16];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let temporary = format!(".retryx-{:032x}", u128::from_le_bytes(random));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, &temporary, flags, OWNER)?;
        let made = fill(&file, bytes).and_then(|()| {
            match rustix::fs::renameat_with(&self.fd, &temporary, &self.fd, name, RenameFlags::NOREPLACE) {
                Err(errno) if is_unsupported(errno) => {
                    // Locked, so that nobody looks at it while it has two names.
                    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
                    rustix::fs::linkat(&self.fd, &temporary, &self.fd, name, AtFlags::empty())
                }
                done => done,
            }
        });
        // Where it was renamed there is none of that name.
        let _ = rustix::fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
        made
    }

    /// Takes the name from what is no good, whose lock is held; returns the one it has now.
    pub(super) fn set_aside(&self, name: &str) -> Result<String, Unshared> {
        for number in 1..=ASIDES {
            let aside = if number == 1 { format!("{name}.damaged") } else { format!("{name}.damaged-{number}") };
            match rustix::fs::renameat(&self.fd, name, &self.fd, &aside) {
                Ok(()) => return Ok(aside),
                // A folder is not put in place of a file, nor a file in place of a folder.
                Err(Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(errno) => return Err(failed(self.place(name), "is no good, and cannot be set aside", errno)),
            }
        }
        Err(unshared(self.place(name), "is no good, and there are folders in place of all names to set it aside under"))
    }

    /// Sets aside what cannot be opened, where it is this user's: what it is, and its name
    /// now. `None` where it is no longer there.
    pub(super) fn set_unusable_aside(
        &self,
        name: &str,
        patience: Duration,
    ) -> Result<Option<(&'static str, String)>, Unshared> {
        // As it cannot be locked itself, the folder is, against others who do the same.
        let folder = self.readable().map_err(|errno| failed(self.path.display(), "cannot be read", errno))?;
        let _locked = self.lock("", folder, Lock::Alone, patience)?;
        let Some(stat) = self.stat(name)? else { return Ok(None) };
        self.refuse_foreign(name, &stat)?;
        let what = match self.open_file(name, OFlags::RDWR) {
            Err(Errno::ISDIR) => "it is a folder",
            Err(Errno::ACCESS) => "it may not be read and written",
            _ => return Ok(None),
        };
        Ok(Some((what, self.set_aside(name)?)))
    }
}

/// How a file is locked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock {
    /// To change it.
    Alone,
    /// To read it.
    Together,
}

/// Writes all that, as a rule in one go. Where that was only a part, the next try says why.
fn write_all(file: impl AsFd, bytes: &[u8], offset: usize) -> rustix::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[done..], (offset + done) as u64)? {
            0 => return Err(Errno::NOSPC),
            count => done += count,
        }
    }
    Ok(())
}

/// Makes a folder and those around it that are missing, for this user alone whatever the umask.
fn make_folder(path: &Path) -> rustix::io::Result<()> {
    let mut made = rustix::fs::mkdir(path, Mode::RWXU);
    if made == Err(Errno::NOENT)
        && let Some(around) = path.parent().filter(|around| !around.as_os_str().is_empty())
    {
        make_folder(around)?;
        made = rustix::fs::mkdir(path, Mode::RWXU);
    }
    match made {
        Ok(()) => rustix::fs::chmod(path, Mode::RWXU),
        // Somebody else was first, as the next look at it tells.
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes a new file that no other process may read, whatever the umask.
fn fill(file: impl AsFd, bytes: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::fchmod(&file, OWNER)?;
    write_all(file, bytes, 0)
}

/// Refuses a path that goes through a link which another user may have planted: where
/// everybody can make entries, one that belongs neither to this user nor to root.
fn refuse_planted(path: &Path) -> Result<(), Unshared> {
    for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
        // Without a slash at its end a link is not followed. What cannot be looked at is
        // opening's to complain of.
        let Ok(link) = rustix::fs::lstat(part.components().as_path()) else { continue };
        let trusted = [0, rustix::process::geteuid().as_raw()].contains(&link.st_uid);
        if trusted || FileType::from_raw_mode(link.st_mode) != FileType::Symlink {
            continue;
        }
        let around = part.parent().filter(|parent| *parent != OsStr::new("")).unwrap_or(Path::new("."));
        let shared = Mode::WOTH.union(Mode::SVTX);
        if rustix::fs::stat(around).is_ok_and(|around| Mode::from_raw_mode(around.st_mode).contains(shared)) {
            return Err(unshared(
                part.display(),
                format_args!("is a link that belongs to another user ({})", link.st_uid),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_with_a_name_for_a_moment_is_made_like_one_without() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path()).unwrap().unwrap();
        for make in [Folder::make_nameless, Folder::make_named] {
            make(&folder, "x", b"one").unwrap();
            assert_eq!(make(&folder, "x", b"two"), Err(Errno::EXIST));
            assert_eq!(std::fs::read(scratch.path().join("x")).unwrap(), b"one");
            let mode = std::fs::metadata(scratch.path().join("x")).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
            assert_eq!(folder.names().unwrap().iter().filter(|name| !name.starts_with('.')).count(), 1);
            assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
            std::fs::remove_file(scratch.path().join("x")).unwrap();
        }
    }

    #[test]
    fn what_is_set_aside_goes_over_the_last_and_beside_folders() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path()).unwrap().unwrap();
        let path = |name: &str| scratch.path().join(name);
        for text in ["one", "two"] {
            std::fs::write(path("x"), text).unwrap();
            assert_eq!(folder.set_aside("x").unwrap(), "x.damaged");
            assert_eq!(std::fs::read_to_string(path("x.damaged")).unwrap(), text);
        }
        for name in ["x.damaged-2", "x.damaged-3"] {
            std::fs::create_dir(path("x")).unwrap();
            std::fs::write(path("x/inside"), "").unwrap();
            assert_eq!(folder.set_aside("x").unwrap(), name);
            assert!(path(name).join("inside").exists());
        }
    }
}
