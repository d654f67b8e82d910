//! The names of scopes.

use std::fmt;

/// The name of a scope: text without control characters, from 1 to 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeName(String);

/// The longest name, in bytes: three times as much, in a file's name, still leaves room.
const LONGEST: usize = 64;

impl ScopeName {
    /// What a name looks like, for messages.
    pub const FORM: &'static str = "text of 1 to 64 bytes without control characters, as in my-service";

    /// A name, if that text is one.
    pub fn new(text: &str) -> Option<Self> {
        let good = !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
        good.then(|| Self(text.to_owned()))
    }

    /// It, as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It as an argument, as a shell reads it.
    pub fn as_argument(&self) -> String {
        let word = shell_word(&self.0);
        if self.0.starts_with('-') { format!("-- {word}") } else { word }
    }
}

/// Text as one word of a shell's command line.
pub(super) fn shell_word(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:@+,%".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

impl fmt::Display for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
