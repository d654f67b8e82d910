//! Presets: what is known of the programs people run, read from one file of data
//! (`presets.toml`, whose head says what a row is).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use memchr::memmem;
use serde::Deserialize;

use crate::policy::matcher::{self, Check, Pattern};
use crate::policy::{Class, Preset, Row};

const PRESETS: &str = include_str!("presets.toml");

/// All that is known of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    names: Vec<String>,
    /// What its failures mean.
    pub preset: Preset,
    /// How its own retries are switched off.
    pub sole_retrier: SoleRetrier,
    arguments: Arguments,
}

/// What switches a program's own retries off; empty where nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoleRetrier {
    /// Words put after the command's own, or before its `--`.
    pub arguments: Vec<String>,
    /// Variables set.
    pub environment: BTreeMap<String, String>,
}

/// What a command line tells of the service that the program asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Arguments {
    /// Options before the operation that take a value.
    valued: Vec<String>,
    /// Operations that wait at the server for something to come.
    long_poll: Vec<String>,
    /// Services with `DynamoDB`'s own defaults.
    dynamodb: Vec<String>,
    /// Operations that run other programs, whose messages and codes are not the program's.
    runs_others: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    names: Vec<String>,
    status: Option<String>,
    code: Option<String>,
    #[serde(default)]
    rows: Vec<TableRow>,
    #[serde(default)]
    sole_retrier: SoleRetrier,
    #[serde(default)]
    arguments: Arguments,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    when: String,
    class: String,
    is: String,
    advice: Option<String>,
    #[serde(default)]
    read: bool,
    #[serde(default)]
    without_status: bool,
}

/// The section for the program with this base name.
fn section_of(base: &str) -> Option<(&'static str, &'static str)> {
    let is_its_name = |name: &str, text: &str| {
        let start = memmem::find(text.as_bytes(), b"\nnames = ");
        let line = start.and_then(|start| text[start + 1..].lines().next());
        line.map_or(name == base, |line| line.split('"').skip(1).step_by(2).any(|name| name == base))
    };
    sections().find(|(name, text)| is_its_name(name, text))
}

impl Program {
    /// The preset with this name, or for the program with this base name.
    pub fn named(name: &str) -> Result<Option<Self>, String> {
        section_of(name).map(|(name, text)| read(name, text)).transpose()
    }

    /// Whether there is one with this name, or for the program with this base name.
    pub fn is_known(name: &str) -> bool {
        section_of(name).is_some()
    }

    /// The preset of the program that a command names, by its base name.
    pub fn of(command: &[OsString]) -> Result<Option<Self>, String> {
        let base = command.first().and_then(|program| Path::new(program).file_name()).and_then(OsStr::to_str);
        let Some(base) = base else { return Ok(None) };
        Self::named(base)
    }

    /// The base names of the programs that it is for.
    pub fn base_names(&self) -> &[String] {
        &self.names
    }

    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        sections().map(|(name, _)| name)
    }

    /// Whether what the command says and returns may be another program's.
    pub fn runs_others(&self, command: &[OsString]) -> bool {
        let operation = self.operation(command);
        operation.first().is_some_and(|word| self.arguments.runs_others.iter().any(|known| known == word))
    }

    /// Whether the command waits at its service for something to come.
    pub fn polls_long(&self, command: &[OsString]) -> bool {
        let operation = self.operation(command).join(" ");
        self.arguments.long_poll.contains(&operation)
    }

    /// Whether the command speaks with `DynamoDB`.
    pub fn asks_dynamodb(&self, command: &[OsString]) -> bool {
        let operation = self.operation(command);
        operation.first().is_some_and(|service| self.arguments.dynamodb.iter().any(|known| known == service))
    }

    /// The first two words that are not options: the service and what it is to do.
    fn operation<'a>(&self, command: &'a [OsString]) -> Vec<&'a str> {
        let mut words = command.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
        let mut found = Vec::new();
        while let (Some(word), true) = (words.next(), found.len() < 2) {
            if self.arguments.valued.iter().any(|option| option == word) {
                words.next();
            } else if !word.starts_with('-') {
                found.push(word);
            }
        }
        found
    }
}

/// The file's parts, a preset each, with their names: only the one that is needed is read.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut rest = PRESETS;
    std::iter::from_fn(move || {
        // The search of `str` reads byte by byte, which every run of any command would pay.
        let header = |text: &str, from| Some(memmem::find(&text.as_bytes()[from..], b"\n[")? + from + 1);
        let start = if rest.starts_with('[') { 0 } else { header(rest, 0)? };
        let text = &rest[start..];
        let name = &text[1..text.find(']')?];
        let is_part = |at: usize| text[at + 1..].starts_with(&format!("{name}."));
        let mut end = header(text, 1).unwrap_or(text.len());
        while end < text.len() && is_part(end) {
            end = header(text, end).unwrap_or(text.len());
        }
        rest = &text[end..];
        Some((name, &text[..end]))
    })
}

/// Reads one preset. A mistake in it names the preset and the row.
fn read(name: &str, text: &str) -> Result<Program, String> {
    let wrong = |what: String| format!("the preset {name}: {what}");
    let mut tables: BTreeMap<String, Table> = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let table = tables.remove(name).ok_or_else(|| wrong("its table is missing".into()))?;
    let pattern =
        |text: Option<String>| text.map(|text| Pattern::parse(&text, Check::Later)).transpose().map_err(wrong);
    let preset = Preset {
        name: name.to_owned(),
        status: pattern(table.status)?,
        code: pattern(table.code)?,
        rows: table.rows.into_iter().map(row).collect::<Result<_, _>>().map_err(wrong)?,
    };
    let names = if table.names.is_empty() { vec![name.to_owned()] } else { table.names };
    Ok(Program { names, preset, sole_retrier: table.sole_retrier, arguments: table.arguments })
}

fn row(row: TableRow) -> Result<Row, String> {
    let wrong = |what: &str| format!("the row '{}': {what}", row.is);
    let class = [Class::Permanent, Class::Throttling, Class::Transient].into_iter().find(|c| c.as_str() == row.class);
    let class = class.ok_or_else(|| wrong("class is permanent, throttling or transient"))?;
    let mut terms = matcher::parse_list(&row.when, Check::Later).map_err(|error| wrong(&error))?;
    match (terms.pop(), terms.as_slice()) {
        (Some(when), []) => {
            let TableRow { is, advice, read, without_status, .. } = row;
            Ok(Row { when, class, is, advice, read, without_status })
        }
        _ => Err(wrong("when is one condition; several take a row each")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn every_preset_reads_and_no_two_rows_are_alike() {
        let names: Vec<_> = Program::names().collect();
        assert!(names.contains(&"curl"), "{names:?}");
        for name in names {
            let program = Program::named(name).unwrap().unwrap();
            let mut seen = HashSet::new();
            for text in program.preset.watched().map(ToString::to_string) {
                // What was put off until it is needed is checked here.
                Pattern::parse(&text, Check::Now).unwrap();
            }
            for pattern in program.preset.status.iter().chain(&program.preset.code) {
                assert!(pattern.groups() > 0, "{name}: {pattern}");
            }
            for row in &program.preset.rows {
                assert!(seen.insert(row.when.to_string()), "{name}: {}", row.when);
            }
        }
        assert_eq!(Program::named("nosuch").unwrap(), None);
    }

    #[test]
    fn a_program_is_known_by_its_base_name() {
        for (line, name) in [("curl", Some("curl")), ("/usr/bin/curl x", Some("curl")), ("curl.sh", None), ("", None)] {
            let found = Program::of(&words(line)).unwrap();
            assert_eq!(found.as_ref().map(|program| program.preset.name.as_str()), name, "{line}");
        }
    }

    #[test]
    fn mistakes_in_a_preset_are_named() {
        for (text, hint) in [
            ("rows = [{ when = '1,2', class = 'permanent', is = 'x' }]", "one condition"),
            ("rows = [{ when = '1', class = 'success', is = 'x' }]", "class is"),
            ("rows = [{ when = 'stderr:/x', class = 'permanent', is = 'x' }]", "the row 'x'"),
            ("rows = [{ when = '1', is = 'x' }]", "class"),
            ("status = '7'", "not one pattern"),
            ("stauts = 'stderr:/(x)/'", "stauts"),
        ] {
            let error = read("p", &format!("[p]\n{text}")).unwrap_err();
            assert!(error.starts_with("the preset p: ") && error.contains(hint), "{error}");
        }
    }

    #[test]
    fn the_operation_is_found_among_the_options() {
        let text = "[aws]\narguments.valued = ['--region']\narguments.long_poll = ['sqs receive-message']\n\
                    arguments.dynamodb = ['dynamodb']";
        let aws = read("aws", text).unwrap();
        for (line, polls, dynamodb) in [
            ("aws sqs receive-message --queue-url x", true, false),
            ("aws --region sqs --debug sqs receive-message", true, false),
            ("aws --region=x sqs receive-message", true, false),
            ("aws sqs send-message receive-message", false, false),
            ("aws sqs", false, false),
            ("aws", false, false),
            ("aws --region x dynamodb get-item", false, true),
            ("aws s3 ls dynamodb", false, false),
        ] {
            assert_eq!((aws.polls_long(&words(line)), aws.asks_dynamodb(&words(line))), (polls, dynamodb), "{line}");
        }
    }
}
