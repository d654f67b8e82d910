//! The only door to the environment: variables as settings.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::{Note, Verbosity};
use crate::cli::options::{OPTIONS, Sub};
use crate::cli::{Given, Rank};
use crate::process::environment;

/// Variables that start so tell a command about its run; no option's variable does.
const FACTS: &[u8] = b"RUN_";
const PREFIX: &[u8] = b"RETRYX_";

/// The environment that this process was started with.
pub trait Environment {
    /// The value of a variable; `None` where it is not set or empty.
    fn get(&self, name: &str) -> Option<OsString>;

    /// The names, without prefix, and values of the variables that start with `RETRYX_`.
    fn own(&self) -> Vec<(Vec<u8>, OsString)>;
}

/// The process's own.
pub struct ProcessEnvironment;

fn split(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = entry.iter().position(|&byte| byte == b'=')?;
    Some((&entry[..equals], &entry[equals + 1..]))
}

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<OsString> {
        let value = environment().find_map(|entry| {
            let (known, value) = split(entry.to_bytes())?;
            (known == name.as_bytes()).then_some(value)
        })?;
        (!value.is_empty()).then(|| OsString::from_vec(value.to_vec()))
    }

    fn own(&self) -> Vec<(Vec<u8>, OsString)> {
        let own = environment().filter_map(|entry| {
            let (name, value) = split(entry.to_bytes())?;
            let name = name.strip_prefix(PREFIX)?;
            (!value.is_empty()).then(|| (name.to_vec(), OsString::from_vec(value.to_vec())))
        });
        own.collect()
    }
}

/// The name of an option's variable.
pub fn variable(long: &str) -> String {
    format!("RETRYX_{}", long.to_ascii_uppercase().replace('-', "_"))
}

/// The settings that `RETRYX_*` variables give, and a warning for each that is none.
pub fn settings(environment: &dyn Environment) -> (Vec<Given>, Vec<Note>) {
    let (mut given, mut warnings) = (Vec::new(), Vec::new());
    for (name, value) in environment.own() {
        if name.starts_with(FACTS) {
            continue;
        }
        let name = format!("RETRYX_{}", String::from_utf8_lossy(&name));
        let option = OPTIONS.iter().find(|option| option.of(Sub::Run) && variable(option.long) == name);
        match option {
            Some(option) if option.has_variable() => {
                given.push(Given { id: option.id, value, place: name, rank: Rank::Variable });
            }
            _ => warnings.push((Verbosity::Normal, format!("{name}: no option has this variable; it is ignored"))),
        }
    }
    (given, warnings)
}
