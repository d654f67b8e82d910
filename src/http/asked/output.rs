//! Where an answer goes, by the options.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use url::Url;

use super::{Asked, read};
use crate::cause::cause;
use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::http::output::{Failures, OutputPlan, Resume};
use crate::http::write_out;

/// The mode of a folder that is made, as curl has it.
const CREATED_MODE: u32 = 0o750;

impl Asked<'_> {
    pub(super) fn output(&self, url: &Url) -> Result<OutputPlan, UsageError> {
        let files = |given: &&Given| matches!(given.id, Id::Output | Id::DumpHeader | Id::OutputDir);
        if let Some(given) = self.given.iter().filter(files).find(|given| given.value.is_empty()) {
            return Err(UsageError(format!("{}: '' is no name; leave the option out, or name one", given.place)));
        }
        if self.all(Id::Output).count() > 1 {
            return Err(UsageError("--output is given twice, but there is one answer to write: give it once".into()));
        }
        let mut file = self.path(Id::Output).filter(|path| path.as_os_str() != "-");
        if self.has(Id::RemoteName) {
            if file.is_some() {
                return Err(UsageError("--output and --remote-name both name the file; give one".into()));
            }
            let name = url.path().rsplit('/').next().unwrap_or_default();
            if name.is_empty() {
                return Err(UsageError("--remote-name: the URL's path ends in no name; give the file by -o".into()));
            }
            file = Some(PathBuf::from(name));
        }
        if let (Some(folder), Some(name)) = (self.path(Id::OutputDir), &file) {
            // A name from the root is in the folder too, as curl has it.
            file = Some(folder.join(name.strip_prefix("/").unwrap_or(name)));
        }
        let checksum = match self.text(Id::Checksum)? {
            None => None,
            Some(text) => Some(sha256(text).ok_or_else(|| {
                UsageError(format!(
                    "--checksum: '{text}' is not a checksum; valid is sha256: and 64 hexadecimal digits"
                ))
            })?),
        };
        let resume = match self.text(Id::ContinueAt)? {
            None => None,
            Some("-") => Some(Resume::AfterFile),
            Some(text) => {
                let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let at = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                    UsageError(format!("--continue-at: '{text}' is not an offset; valid are a number of bytes, and -"))
                })?;
                // What begins at the beginning goes on with nothing.
                (at > 0).then_some(Resume::At(at))
            }
        };
        if resume.is_some() && file.is_none() {
            return Err(UsageError("--continue-at goes on with a file: name it by -o or -O".into()));
        }
        if resume.is_some() && self.has(Id::Range) {
            return Err(UsageError("--continue-at and --range both say which part is wanted: give one".into()));
        }
        if resume.is_some() && (checksum.is_some() || self.has(Id::Compressed)) {
            return Err(UsageError("--continue-at cannot be joined with --checksum or --compressed".into()));
        }
        Ok(OutputPlan {
            file,
            live: self.has(Id::NoBuffer),
            include: self.has(Id::Include) || self.has(Id::Head),
            failures: match (self.has(Id::FailWithBody), self.has(Id::SucceedOn)) {
                (true, _) => Failures::Written,
                (false, true) => Failures::MaySucceed,
                (false, false) => Failures::Dropped,
            },
            checksum,
            resume,
            spool_folder: self.spool_folder.to_owned(),
        })
    }

    pub(super) fn write_out(&self) -> Result<Option<String>, UsageError> {
        let Some(format) = self.text(Id::WriteOut)? else { return Ok(None) };
        let format = match format.strip_prefix('@') {
            Some(path) => {
                let given =
                    self.last(Id::WriteOut).map(|given| read(OsStr::new(path), given, self.input)).transpose()?;
                // As curl has it: the line ends of a file are no part of the format.
                String::from_utf8_lossy(&given.unwrap_or_default()).replace(['\r', '\n'], "")
            }
            None => format.to_owned(),
        };
        if let Some(name) = write_out::unknown_variable(&format) {
            let known = write_out::VARIABLES.join(", ");
            return Err(UsageError(format!("--write-out: the variable '{name}' is not known; valid are {known}")));
        }
        Ok(Some(format))
    }
}

fn sha256(text: &str) -> Option<[u8; 32]> {
    let digits = text
        .strip_prefix("sha256:")
        .filter(|digits| digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Makes the folder that a file is to be in, and those above it, as curl does.
pub(super) fn create_folder_of(file: &Path) -> Result<(), UsageError> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let created = fs::DirBuilder::new().recursive(true).mode(CREATED_MODE).create(folder);
    created.map_err(|error| UsageError(format!("--create-dirs: {}: {}", folder.display(), cause(&error))))
}
