//! A file that takes the place of another, all at once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

/// A file that will replace another.
pub(super) struct Beside {
    pub(super) file: File,
    /// What it is to become.
    pub(super) path: PathBuf,
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

/// The most links from one name to another.
const MAX_LINKS: usize = 40;

/// Where a name leads, also where nothing is there yet.
pub(super) fn through_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => break,
        }
    }
    path
}

pub(super) fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// A file in the folder of this path, without a name where the system can.
pub(super) fn beside(path: &Path) -> io::Result<Beside> {
    // Through a link the file that it means is replaced, not the link.
    let path = through_links(path);
    let folder = folder_of(&path);
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    // Such a file gets its name by way of /proc.
    if Path::new("/proc/self/fd").exists()
        && let Ok(file) = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)
    {
        return Ok(Beside { file: File::from(file), path, named: None });
    }
    let named = temporary(&path);
    let file = File::options().read(true).write(true).create_new(true).open(&named)?;
    Ok(Beside { file, path, named: Some(named) })
}

/// The most bytes of a file's name.
const MAX_NAME: usize = 255;

fn temporary(path: &Path) -> PathBuf {
    let mut random = [0; 8];
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let suffix = format!(".{:016x}", u64::from_le_bytes(random));
    let own = path.file_name().unwrap_or_default().as_bytes();
    let mut name = OsString::from(".");
    name.push(OsStr::from_bytes(&own[..own.len().min(MAX_NAME - 1 - suffix.len())]));
    name.push(suffix);
    path.with_file_name(name)
}

impl Beside {
    /// Becomes the file that it is for, all at once. A file that was there hands on its
    /// permissions and, where that is allowed, its owner.
    pub(super) fn replace(&mut self) -> io::Result<()> {
        let old = fs::metadata(&self.path).ok();
        if let Some(old) = &old {
            let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
            self.file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
        }
        if self.named.is_none() {
            let own = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
            // With nothing there it gets its name at once, and no other on the way.
            if old.is_none() && linkat(CWD, &own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW).is_ok() {
                return Ok(());
            }
            let named = temporary(&self.path);
            linkat(CWD, own, CWD, &named, AtFlags::SYMLINK_FOLLOW)?;
            self.named = Some(named);
        }
        if let Some(named) = &self.named {
            fs::rename(named, &self.path)?;
        }
        self.named = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_is_never_too_long() {
        for length in [1, 200, 255] {
            let name = temporary(Path::new(&"é".repeat(length)));
            assert!(name.as_os_str().len() <= MAX_NAME);
        }
    }
}
