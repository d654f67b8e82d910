//! What is known of a program's exit codes and messages (design §4), as it is judged by.

use super::Class;
use super::matcher::{Pattern, Term};

/// What one program says in its own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// What it is called in the name of a rule.
    pub name: String,
    /// Captures the status of an answer.
    pub status: Option<Pattern>,
    /// Captures a service's error code, or a bare status in its place.
    pub code: Option<Pattern>,
    /// The first that holds decides.
    pub rows: Vec<Row>,
}

/// A failure that the program tells from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// How it is known.
    pub when: Term,
    /// What it is taken for.
    pub class: Class,
    /// What it is, in a few words.
    pub is: String,
    /// What a user could do about it.
    pub advice: Option<String>,
    /// Whether it holds only where everything was read.
    pub read: bool,
    /// Whether it holds only where everything was read and no status was found.
    pub without_status: bool,
}

impl Preset {
    /// All that is looked for in what the program writes.
    pub fn watched(&self) -> impl Iterator<Item = &Pattern> {
        let rows = self.rows.iter().flat_map(|row| row.when.watched());
        self.status.iter().chain(&self.code).chain(rows)
    }

    /// The name of a rule of this preset.
    pub(super) fn rule(&self, what: &str) -> String {
        format!("{} preset, {what}", self.name)
    }
}
