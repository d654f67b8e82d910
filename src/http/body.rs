//! What a request sends: a sequence of pieces that every attempt reads from the start.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::cause::cause;
use crate::net::Reader;
use crate::net::{Failure, Fault};
use crate::process::Spool;

/// A body; empty where nothing is sent.
#[derive(Default)]
pub struct Body {
    pieces: Vec<Piece>,
}

/// A part of a body.
enum Piece {
    Bytes(Vec<u8>),
    File(Watched),
    Spool(Spool),
}

/// A file, and what it was like when the run began.
struct Watched {
    path: PathBuf,
    file: File,
    length: u64,
    seen: Stamp,
}

/// What tells that a file was changed.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl Body {
    /// Adds bytes.
    pub fn push(&mut self, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes)),
        }
    }

    /// Adds what a file holds. A regular file is read when it is sent, anything else now,
    /// into the spool.
    pub fn push_file(&mut self, path: &Path, reader: &mut Reader<'_>, folder: &Path) -> io::Result<()> {
        let metadata = reader.file().metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if metadata.is_file() {
            self.push_watched(path, reader.file().try_clone()?, &metadata);
            return Ok(());
        }
        self.push_stream(reader, folder)
    }

    fn push_watched(&mut self, path: &Path, file: File, metadata: &std::fs::Metadata) {
        let (length, seen) = (metadata.len(), stamp(metadata));
        self.pieces.push(Piece::File(Watched { path: path.to_owned(), file, length, seen }));
    }

    /// Adds all that can be read, kept in the spool.
    pub fn push_stream(&mut self, stream: &mut impl io::Read, folder: &Path) -> io::Result<()> {
        let mut spool = Spool::new(folder.to_owned());
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => spool.append(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.pieces.push(Piece::Spool(spool));
        Ok(())
    }

    /// Adds another body's pieces.
    pub fn append(&mut self, mut other: Self) {
        self.pieces.append(&mut other.pieces);
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.pieces.iter().map(Piece::length).sum()
    }

    /// Whether a file in it is no longer what it was: which.
    pub fn changed(&self) -> Option<&Path> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::File(file) => {
                let now = std::fs::metadata(&file.path).map(|metadata| stamp(&metadata)).ok();
                (now != Some(file.seen)).then_some(file.path.as_path())
            }
            _ => None,
        })
    }

    /// Reads from an offset on; zero at the end.
    pub fn read_at(&self, mut offset: u64, buffer: &mut [u8]) -> Result<usize, Failure> {
        for piece in &self.pieces {
            if offset >= piece.length() {
                offset -= piece.length();
                continue;
            }
            return match piece {
                Piece::Bytes(bytes) => {
                    let rest = &bytes[usize::try_from(offset).unwrap_or(usize::MAX)..];
                    let count = rest.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&rest[..count]);
                    Ok(count)
                }
                Piece::Spool(spool) => spool.read_at(offset, buffer).map_err(|error| {
                    Failure::new(Fault::Read, format!("what was kept of the body: {}", cause(&error)))
                }),
                Piece::File(file) => match file.file.read_at(buffer, offset) {
                    Ok(0) => {
                        Err(Failure::new(Fault::Read, format!("{} became shorter meanwhile", file.path.display())))
                    }
                    Ok(count) => Ok(count.min(usize::try_from(file.length - offset).unwrap_or(usize::MAX))),
                    Err(error) => Err(Failure::new(Fault::Read, format!("{}: {}", file.path.display(), cause(&error)))),
                },
            };
        }
        Ok(0)
    }
}

impl Piece {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.length,
            Self::Spool(spool) => spool.length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "file").unwrap();
        let mut body = Body::default();
        body.push("a");
        body.push("b");
        let file = File::open(&path).unwrap();
        let metadata = file.metadata().unwrap();
        body.push_watched(&path, file, &metadata);
        body.push_stream(&mut &b"stream"[..], folder.path()).unwrap();
        body.push("z");
        assert_eq!(body.length(), 13);
        let mut seen = Vec::new();
        let mut buffer = [0; 3];
        loop {
            match body.read_at(seen.len() as u64, &mut buffer).unwrap() {
                0 => break,
                count => seen.extend_from_slice(&buffer[..count]),
            }
        }
        assert_eq!(seen, b"abfilestreamz");
        assert_eq!(body.changed(), None);
        std::fs::write(&path, "fil").unwrap();
        assert_eq!(body.changed(), Some(path.as_path()));
    }
}
