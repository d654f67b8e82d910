//! The rows of the vector file as trials, and the account of them.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use crate::check::Check;
use crate::set_aside::{SET_ASIDE, SetAside};
use crate::stores;

/// The vectors; what is no JSON has no rows, which the coverage trials report.
static VECTORS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("retry-vectors.json")).unwrap_or_default());

/// Keys that describe rows and are none.
const DESCRIPTION: [&str; 5] = ["about", "sources", "source", "note", "given"];
/// Fields beside lists that say under what conditions their rows hold.
const CONDITIONS: [&str; 9] = [
    "google/model_armor_statuses_note",
    "retry_after/strict_third_party/now",
    "retry_after/typescript_sdk/now_ms",
    "observed_aws_cli_v1/status_only_standard_2_1/max_attempts",
    "observed_aws_cli_v1/status_only_standard_2_1/service",
    "observed_aws_cli_v1/code_with_status_400_standard_2_1/max_attempts",
    "observed_aws_cli_v1/code_with_status_400_standard_2_1/service",
    "observed_aws_cli_v1/legacy/max_attempts",
    "observed_aws_cli_v1/legacy/service",
];
/// The most characters of a row that its trial's name shows.
const LABEL: usize = 80;

/// One vector: an element of a list, or a field that is no list or object itself.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place: keys and, in lists, its `id` or number, joined by slashes.
    path: String,
    /// The last part of the place.
    pub key: String,
    /// What stands there.
    pub value: &'static Value,
    /// In a list, its elements up to this one.
    pub so_far: &'static [Value],
    /// The object around the list, or around the field.
    pub holder: &'static Value,
}

impl Row {
    /// The first two keys of its place.
    fn group(&self) -> String {
        let keys: Vec<_> = self.path.split('/').collect();
        keys[..keys.len().saturating_sub(1).clamp(1, 2)].join("/")
    }

    /// The key of the list or object that it stands in.
    pub fn list(&self) -> &str {
        self.path.rsplit('/').nth(1).unwrap_or_default()
    }

    fn is_under(&self, place: &str) -> bool {
        self.path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The name of its trial: its place, and its own name or what it says.
    fn title(&self) -> String {
        let label = match (self.value["name"].as_str(), self.value.as_object()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(fields)) => {
                let told = fields.iter().filter(|(key, _)| !DESCRIPTION.contains(&key.as_str()));
                told.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
            }
            (None, None) => self.value.to_string(),
        };
        format!("{} {}", self.path, label.chars().take(LABEL).collect::<String>())
    }
}

fn walk(value: &'static Value, holder: &'static Value, path: &str, rows: &mut Vec<Row>) {
    let under = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    match value {
        Value::Array(list) => rows.extend(list.iter().enumerate().map(|(index, value)| {
            let key = value["id"].as_str().map_or_else(|| index.to_string(), str::to_owned);
            Row { path: under(&key), key, value, so_far: &list[..=index], holder }
        })),
        Value::Object(fields) => {
            for (key, field) in fields.iter().filter(|(key, _)| !DESCRIPTION.contains(&key.as_str())) {
                let path = under(key);
                if !CONDITIONS.contains(&path.as_str()) {
                    walk(field, value, &path, rows);
                }
            }
        }
        _ => {
            let key = path.rsplit('/').next().unwrap_or_default().to_owned();
            rows.push(Row { path: path.to_owned(), key, value, so_far: &[], holder });
        }
    }
}

/// The whole file.
pub fn vectors() -> &'static Value {
    &VECTORS
}

fn all_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    walk(&VECTORS, &VECTORS, "", &mut rows);
    rows
}

impl SetAside {
    fn covers(&self, row: &Row) -> bool {
        row.is_under(self.place)
    }

    /// Whether the place is there and holds what the entry means.
    fn is_true(&self, rows: &[Row]) -> bool {
        let mut covered = rows.iter().filter(|row| self.covers(row)).peekable();
        covered.peek().is_some() && covered.any(|row| row.value.to_string().contains(self.holding))
    }
}

/// What became of the rows of one group.
#[derive(Debug, Default, Clone)]
struct Tally {
    group: String,
    rows: usize,
    passed: usize,
    failed: usize,
    set_aside: usize,
}

/// Collects trials.
pub struct Suite {
    rows: Vec<Row>,
    run: HashSet<String>,
    trials: Vec<Trial>,
    tallies: Arc<Mutex<Vec<Tally>>>,
    problems: Vec<String>,
}

impl Suite {
    /// Knows all rows, and has no trial yet.
    pub fn new() -> Self {
        let rows = all_rows();
        let mut tallies: Vec<Tally> = Vec::new();
        for row in &rows {
            let group = row.group();
            let known = tallies.iter().position(|tally| tally.group == group);
            let at = known.unwrap_or(tallies.len());
            if known.is_none() {
                tallies.push(Tally { group, ..Tally::default() });
            }
            tallies[at].rows += 1;
            tallies[at].set_aside += usize::from(SET_ASIDE.iter().any(|entry| entry.covers(row)));
        }
        let tallies = Arc::new(Mutex::new(tallies));
        Self { rows, run: HashSet::new(), trials: Vec::new(), tallies, problems: Vec::new() }
    }

    /// Makes a trial of each row at or under a place that is not set aside.
    pub fn rows(&mut self, place: &str, check: fn(&Row) -> Check) {
        let mut found = false;
        for row in self.rows.iter().filter(|row| row.is_under(place)) {
            found = true;
            if SET_ASIDE.iter().any(|entry| entry.covers(row)) {
                continue;
            }
            if !self.run.insert(row.path.clone()) {
                self.problems.push(format!("{} is run twice", row.path));
            }
            let (row, tallies) = (row.clone(), Arc::clone(&self.tallies));
            self.trials.push(Trial::test(row.title(), move || {
                let result = check(&row).and_then(|()| stores::agree());
                let group = row.group();
                let mut tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
                for tally in tallies.iter_mut().filter(|tally| tally.group == group) {
                    tally.passed += usize::from(result.is_ok());
                    tally.failed += usize::from(result.is_err());
                }
                result.map_err(Failed::from)
            }));
        }
        if !found {
            self.problems.push(format!("there is nothing at {place}"));
        }
    }

    /// The trials, with those that check the account, and what is to be said after them.
    pub fn finish(mut self) -> (Vec<Trial>, Summary) {
        let left_out: Vec<_> = self.rows.iter().filter(|row| !self.run.contains(&row.path)).collect();
        let unaccounted = left_out.iter().filter(|row| !SET_ASIDE.iter().any(|entry| entry.covers(row)));
        let unaccounted: Vec<_> = unaccounted.map(|row| row.path.clone()).collect();
        let untrue = SET_ASIDE.iter().filter(|entry| !entry.is_true(&self.rows));
        let untrue: Vec<_> = untrue.map(|entry| entry.place.to_owned()).collect();
        let is_there = |place: &str| place.split('/').try_fold(&*VECTORS, |value, key| value.get(key)).is_some();
        let absent = CONDITIONS.iter().filter(|place| !is_there(place)).map(|&place| place.to_owned()).collect();
        for (claim, against) in [
            ("every row is run or set aside", unaccounted),
            ("every entry set aside is in the file, and says what it is thought to say", untrue),
            ("every condition is in the file", absent),
            ("every place that is run is in the file, and is run once", self.problems),
        ] {
            self.trials.push(Trial::test(format!("coverage/{claim}"), move || {
                if against.is_empty() { Ok(()) } else { Err(against.join("\n").into()) }
            }));
        }
        (self.trials, Summary { rows: self.rows, tallies: self.tallies })
    }
}

/// The table that ends the run.
pub struct Summary {
    rows: Vec<Row>,
    tallies: Arc<Mutex<Vec<Tally>>>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut total = Tally { group: "all".to_owned(), ..Tally::default() };
        writeln!(f, "{:<56}{:>6}{:>8}{:>8}{:>11}", "group", "rows", "passed", "failed", "set aside")?;
        for tally in tallies.iter() {
            write_line(f, tally)?;
            total.rows += tally.rows;
            total.passed += tally.passed;
            total.failed += tally.failed;
            total.set_aside += tally.set_aside;
        }
        write_line(f, &total)?;
        writeln!(f, "\nset aside:")?;
        for entry in &SET_ASIDE {
            let rows = self.rows.iter().filter(|row| entry.covers(row)).count();
            let rows = if rows == 1 { String::new() } else { format!(" ({rows} rows)") };
            writeln!(f, "  {}{rows}: {}", entry.place, entry.reason)?;
        }
        Ok(())
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    let Tally { group, rows, passed, failed, set_aside } = tally;
    writeln!(f, "{group:<56}{rows:>6}{passed:>8}{failed:>8}{set_aside:>11}")
}
