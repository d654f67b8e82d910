//! Starting a command: the search in `PATH`, the environment, and what a failure to start
//! means.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::inherited::Inherited;
use super::unix::{self, Launch, LaunchError};
use crate::cause::cause;
use crate::policy::{Outcome, StartFailure};

/// Where a command is looked for when there is no `PATH`, as the C library does it.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The prefix of the variables that tell a command about its run; no option's variable
/// will ever start so.
const FACT_PREFIX: &[u8] = b"RETRYX_RUN_";

/// What `--shell` runs: `sh`, made to fail where any part of the string fails. A shell
/// that does not know `pipefail` gives way to bash, where there is one.
const STRICT_SHELL: &str = "if (set -o pipefail) 2>/dev/null; then set -o pipefail
elif command -v bash >/dev/null 2>&1; then exec bash -e -o pipefail -c \"$1\" sh
else echo 'retryx: --shell: this sh has no pipefail and there is no bash: only the last command of a pipeline counts' >&2
fi
set -e
eval \"$1\"";

/// A command, prepared once for all attempts.
pub struct Command {
    candidates: Vec<CString>,
    searched: bool,
    arguments: Vec<CString>,
    environment: Vec<&'static CStr>,
    added: Vec<CString>,
    own_group: bool,
    shell: bool,
}

impl Command {
    /// Prepares a program with its arguments. The words cannot hold NUL bytes, since they
    /// came through `argv`.
    pub fn new(words: &[OsString], own_group: bool, added: &[(OsString, OsString)]) -> Self {
        let arguments: Vec<CString> = words.iter().map(|word| c_string(word)).collect();
        let name = words.first().map_or(&b""[..], |word| word.as_bytes());
        let is_replaced = |entry: &CStr| {
            let name = entry.to_bytes().split(|&byte| byte == b'=').next();
            added.iter().any(|(own, _)| Some(own.as_bytes()) == name)
        };
        let environment: Vec<_> = unix::environment()
            .filter(|entry| !entry.to_bytes().starts_with(FACT_PREFIX) && !is_replaced(entry))
            .collect();
        let added = added.iter().map(|(name, value)| {
            let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
            c_string(&OsString::from_vec(entry))
        });
        let searched = !name.contains(&b'/') && !name.is_empty();
        let candidates = if searched {
            let path = environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
            let folders = path.unwrap_or(DEFAULT_PATH).split(|&byte| byte == b':');
            folders.map(|folder| candidate(folder, name)).collect()
        } else {
            arguments.first().cloned().into_iter().collect()
        };
        let added = added.collect();
        Self { candidates, searched, arguments, environment, added, own_group, shell: false }
    }

    /// Prepares a string for the shell (see the manual under `--shell`).
    pub fn shell(string: &OsStr, own_group: bool, added: &[(OsString, OsString)]) -> Self {
        let words = ["sh".as_ref(), "-c".as_ref(), STRICT_SHELL.as_ref(), "sh".as_ref(), string];
        Self { shell: true, ..Self::new(&words.map(OsStr::to_owned), own_group, added) }
    }

    /// Starts the command with these facts in its environment, and with these descriptors
    /// in place of the inherited standard ones. A command that cannot be started is an
    /// outcome.
    pub fn start(
        &self,
        inherited: &Inherited,
        facts: &[CString],
        descriptors: [Option<RawFd>; 3],
    ) -> Result<i32, Outcome> {
        let own = self.added.iter().chain(facts).map(|entry| entry.as_ptr());
        let environment = self.environment.iter().map(|entry| entry.as_ptr());
        unix::launch(&Launch {
            candidates: &self.candidates,
            searched: self.searched,
            arguments: &self.arguments,
            environment: environment.chain(own).chain([std::ptr::null()]).collect(),
            mask: inherited.mask(),
            ignore_chld: inherited.chld_ignored(),
            own_group: self.own_group,
            descriptors,
        })
        .map_err(|error| self.not_started(error))
    }

    fn not_started(&self, LaunchError { errno, found }: LaunchError) -> Outcome {
        let failure = match errno {
            libc::ETXTBSY | libc::EAGAIN | libc::ENOMEM | libc::ENFILE | libc::EMFILE => StartFailure::Transient,
            libc::ENOENT | libc::ENOTDIR if !found => StartFailure::NotFound,
            _ => StartFailure::CannotRun,
        };
        let mut error = match failure {
            StartFailure::NotFound if self.shell => "there is no sh in PATH".to_owned(),
            StartFailure::NotFound => "not found".to_owned(),
            _ if errno == libc::ENOENT => {
                "the interpreter named in its first line, or its loader, was not found".to_owned()
            }
            _ => cause(&io::Error::from_raw_os_error(errno)),
        };
        let name = self.arguments.first().map_or(&b""[..], |name| name.to_bytes());
        if failure == StartFailure::NotFound && name.iter().any(u8::is_ascii_whitespace) {
            error.push_str("; it is one word with a space in it: leave the quotes out, or use --shell");
        }
        Outcome::NotStarted { failure, errno, error }
    }
}

fn candidate(folder: &[u8], name: &[u8]) -> CString {
    let mut path = Vec::with_capacity(folder.len() + name.len() + 1);
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    c_string(&OsString::from_vec(path))
}

/// Cuts at a NUL byte, which words and variables of a process cannot hold.
pub fn c_string(text: &OsStr) -> CString {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}
