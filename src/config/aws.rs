//! The shared AWS config file, as far as retries are concerned (reference §6).

use std::collections::HashMap;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::env::Environment;
use crate::cause::cause;

/// The most bytes of a config file that are read.
const MAX_FILE: u64 = 1024 * 1024;

/// The properties of each profile, keys in lower case.
pub type Profiles = HashMap<String, HashMap<String, String>>;

/// What is wrong with a config file, and in which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Why a config file says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The system does not let this process read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is none.
    #[error("{0}")]
    Wrong(String),
}

/// Reads a config file's text, by the rules of the shared specification that smithy-rs
/// follows: `[default]`, `[profile NAME]` (which beats `[default]` for that name), merged
/// sections, the last of equal keys, continuation lines, comments after white space.
pub fn parse(text: &str) -> Result<Profiles, SyntaxError> {
    let mut reader = Reader::default();
    for (line, number) in text.split('\n').zip(1..) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        reader.take(line).map_err(|problem| SyntaxError { line: number, problem })?;
    }
    let mut profiles = reader.profiles;
    if let Some(default) = reader.prefixed_default {
        profiles.insert("default".to_owned(), default);
    }
    Ok(profiles)
}

/// Where the lines that come belong.
#[derive(Default)]
enum Place {
    /// Before the first section.
    #[default]
    Nowhere,
    /// In a section of another kind, or with a name that is none.
    Ignored,
    /// In a profile.
    Profile(String),
    /// In `[profile default]`.
    PrefixedDefault,
}

#[derive(Default)]
struct Reader {
    profiles: Profiles,
    prefixed_default: Option<HashMap<String, String>>,
    place: Place,
    /// What a continuation line continues.
    property: Property,
}

/// The last property of a section.
#[derive(Default, Clone)]
enum Property {
    /// There was none yet.
    #[default]
    None,
    /// It has a name that is none, and so has all that continues it.
    Ignored,
    /// It has this name.
    Named(String),
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), &'static str> {
        if line.trim().is_empty() || line.starts_with(['#', ';']) {
            return Ok(());
        }
        if line.starts_with('[') {
            return self.section(line);
        }
        if matches!(self.place, Place::Nowhere) {
            return Err("a profile must come before the first property, as in [default]");
        }
        if line.starts_with([' ', '\t']) { self.continuation(line.trim()) } else { self.property(line) }
    }

    fn section(&mut self, line: &str) -> Result<(), &'static str> {
        let inside = line.get(1..).and_then(|rest| rest.split_once(']'));
        let (name, after) = inside.ok_or("a section must end with ']'")?;
        if !after.trim().is_empty() && !after.trim_start().starts_with(['#', ';']) {
            return Err("nothing may follow the ']' of a section");
        }
        self.property = Property::None;
        let name = name.trim();
        let profile = name.strip_prefix("profile").filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim);
        self.place = match (profile, name) {
            (Some("default"), _) => Place::PrefixedDefault,
            (Some(name), _) if is_identifier(name) || quoted(name) != name => Place::Profile(quoted(name).to_owned()),
            (None, "default") => Place::Profile("default".to_owned()),
            _ => Place::Ignored,
        };
        if let Place::Ignored = self.place {
            return Ok(());
        }
        self.properties();
        Ok(())
    }

    fn properties(&mut self) -> Option<&mut HashMap<String, String>> {
        match &self.place {
            Place::Nowhere | Place::Ignored => None,
            Place::PrefixedDefault => Some(self.prefixed_default.get_or_insert_default()),
            Place::Profile(name) => Some(self.profiles.entry(name.clone()).or_default()),
        }
    }

    fn property(&mut self, line: &str) -> Result<(), &'static str> {
        let comment = line
            .char_indices()
            .zip(line.chars().skip(1))
            .find_map(|((at, before), mark)| (matches!(before, ' ' | '\t') && matches!(mark, '#' | ';')).then_some(at));
        let line = &line[..comment.unwrap_or(line.len())];
        let (name, value) = line.split_once('=').ok_or("a property needs an '='")?;
        let name = name.trim().to_lowercase();
        if name.is_empty() {
            return Err("a property needs a name before its '='");
        }
        if !is_identifier(&name) {
            self.property = Property::Ignored;
            return Ok(());
        }
        self.property = Property::Named(name.clone());
        if let Some(properties) = self.properties() {
            properties.insert(name, value.trim().to_owned());
        }
        Ok(())
    }

    fn continuation(&mut self, line: &str) -> Result<(), &'static str> {
        let name = match self.property.clone() {
            Property::None => return Err("an indented line must follow a property"),
            Property::Ignored => return Ok(()),
            Property::Named(name) => name,
        };
        let Some(value) = self.properties().and_then(|properties| properties.get_mut(&name)) else { return Ok(()) };
        if value.is_empty() || value.starts_with('\n') {
            // A block of properties of its own.
            match line.split_once('=') {
                Some((name, _)) if !name.trim().is_empty() => {}
                Some(_) => return Err("an indented property needs a name before its '='"),
                None => return Err("an indented property needs an '='"),
            }
        }
        value.push('\n');
        value.push_str(line);
        Ok(())
    }
}

/// A name without the quotes around it, in which the AWS CLI takes any name.
fn quoted(name: &str) -> &str {
    let inside = |quote| name.strip_prefix(quote)?.strip_suffix(quote).filter(|name| !name.is_empty());
    inside('"').or_else(|| inside('\'')).unwrap_or(name)
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-/.%@_:+".contains(&byte))
}

/// The config file's place: `AWS_CONFIG_FILE`, else `~/.aws/config`; `None` without a home.
pub fn config_file(environment: &dyn Environment) -> Option<PathBuf> {
    let home = || environment.get("HOME").map(PathBuf::from);
    match environment.get("AWS_CONFIG_FILE").map(PathBuf::from) {
        Some(path) => match path.strip_prefix("~") {
            Ok(rest) => Some(home()?.join(rest)),
            Err(_) => Some(path),
        },
        None => Some(home()?.join(".aws/config")),
    }
}

/// Reads a config file; `Ok(None)` where there is none. The error says what is wrong with
/// it, without its name.
pub fn read(path: &Path) -> Result<Option<Profiles>, FileError> {
    let unreadable = |error: std::io::Error| FileError::Unreadable(cause(&error));
    let wrong = |what: &str| FileError::Wrong(what.to_owned());
    // Opened without waiting, as it may be a pipe that nobody writes to.
    let file = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        // /dev/null is how a user says that there is no file.
        Ok(_) if path == Path::new("/dev/null") => return Ok(None),
        _ => return Err(wrong("it is not a file")),
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong("it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(text).map(Some).map_err(|error| FileError::Wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefixed_default_beats_the_plain_one() {
        let text = "[default]\nretry_mode = adaptive\nmax_attempts = 1\n[profile default]\nmax_attempts = 2\n";
        let profiles = parse(text).unwrap();
        assert_eq!(profiles["default"].get("max_attempts").map(String::as_str), Some("2"));
        assert_eq!(profiles["default"].get("retry_mode"), None);
    }

    #[test]
    fn a_name_in_quotes_may_be_any() {
        let profiles =
            parse("[profile \"a b\"]\nmax_attempts=9\n[profile 'c']\n[profile \"]\n[profile d e]\n").unwrap();
        let mut names: Vec<_> = profiles.keys().collect();
        names.sort();
        assert_eq!(names, ["a b", "c"]);
    }

    #[test]
    fn no_text_panics_and_errors_name_their_line() {
        assert_eq!(parse("[default]\nnonsense\n").unwrap_err().line, 2);
        for text in [
            "[",
            "[]",
            "[ ]",
            "[profile]",
            "[profile ]",
            "\u{0}",
            "[default]\n=",
            "[default]\na\u{e9}#=",
            "]",
            "[\u{1f600}]",
            " ;",
        ] {
            let _ = parse(text);
        }
    }
}
