//! The names of scopes.

use std::fmt;

/// The name of a scope: text without control characters, from 1 to 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeName(String);

/// The longest name, in bytes: three times as much, in a file's name, still leaves room.
const LONGEST: usize = 64;

impl ScopeName {
    /// A name, if that text is one.
    pub fn new(text: &str) -> Option<Self> {
        let good = !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
        good.then(|| Self(text.to_owned()))
    }

    /// It, as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
