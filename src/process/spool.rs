//! Bytes that are kept: in memory at first, then in a temporary file that has no name, so
//! that nothing is left behind whatever ends this process.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The most bytes that are kept in memory (design §9).
pub(crate) const IN_MEMORY: usize = 8 * 1024 * 1024;

/// A sequence of bytes that grows at its end and can be read anywhere.
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
    folder: PathBuf,
    written: u64,
}

impl Spool {
    /// An empty one that would spill into a file in this folder.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { memory: Vec::new(), file: None, length: 0, folder, written: 0 }
    }

    /// Bytes written to a file since it was made.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The file that holds all of it, where it is too much for memory.
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Bytes in it.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Empties it. A file that was opened is kept for what comes.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.memory.clear();
        self.length = 0;
        match &mut self.file {
            Some(file) => {
                file.set_len(0)?;
                io::Seek::rewind(file)
            }
            None => Ok(()),
        }
    }

    /// Adds bytes at the end; all or an error, after which nothing more can be added.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fits = self.file.is_none() && self.memory.len() + bytes.len() <= IN_MEMORY;
        // A process that may not have so much memory has a file instead.
        if fits && self.memory.try_reserve(bytes.len()).is_ok() {
            self.memory.extend_from_slice(bytes);
        } else {
            self.spilled()?.write_all(bytes)?;
            self.written += bytes.len() as u64;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The file that holds everything, made with what was in memory so far.
    fn spilled(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let mut file = nameless_file(&self.folder)?;
                file.write_all(&self.memory)?;
                self.written += self.memory.len() as u64;
                self.memory = Vec::new();
                Ok(none.insert(file))
            }
        }
    }

    /// Copies bytes from an offset on into the buffer; returns how many, zero at the end.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        if let Some(file) = &self.file {
            return file.read_at(&mut buffer[..wanted], offset);
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.memory.len());
        buffer[..wanted].copy_from_slice(&self.memory[start..start + wanted]);
        Ok(wanted)
    }
}

/// A file without a name, readable by nobody else.
fn nameless_file(folder: &Path) -> io::Result<File> {
    let private = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, private) {
        Ok(file) => Ok(File::from(file)),
        // Not every file system makes files without names.
        Err(_) => named_then_unlinked(folder),
    }
}

fn named_then_unlinked(folder: &Path) -> io::Result<File> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let path = folder.join(format!(".retryx-{:032x}", u128::from_le_bytes(random)));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::unlink(&path)?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_memory_and_past_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path().to_owned());
        for round in 0..2 {
            let mut expected = 0u64;
            let chunk: Vec<u8> = (0..60_000u32).map(|i| (i % 251) as u8).collect();
            while expected < 20 * 1024 * 1024 {
                spool.append(&chunk).unwrap();
                expected += chunk.len() as u64;
            }
            assert_eq!(spool.length(), expected, "{round}");
            assert!(spool.memory.is_empty() && spool.file.is_some());
            let mut buffer = vec![0; 60_000];
            assert_eq!(spool.read_at(60_000, &mut buffer).unwrap(), 60_000);
            assert_eq!(buffer, chunk);
            assert_eq!(spool.read_at(expected - 10, &mut buffer).unwrap(), 10);
            assert_eq!(spool.read_at(expected, &mut buffer).unwrap(), 0);
            spool.clear().unwrap();
            assert_eq!(spool.read_at(0, &mut buffer).unwrap(), 0);
        }
        // Nothing has a name.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_only_when_it_is_needed() {
        let mut spool = Spool::new("/nowhere/at/all".into());
        spool.append(&[1; 1000]).unwrap();
        assert!(spool.append(&vec![1; IN_MEMORY]).is_err());
    }

    #[test]
    fn a_file_with_a_name_for_a_moment_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = named_then_unlinked(folder.path()).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
