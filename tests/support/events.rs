//! Reads the JSON lines of `--events`, also while they are being written.

use std::path::PathBuf;

use serde_json::Value;

use super::wait_until;

/// A file of events.
pub struct Events {
    path: PathBuf,
}

impl Events {
    /// The events in that file, now and later.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// All events so far. Every whole line must be one JSON object.
    #[track_caller]
    pub fn all(&self) -> Vec<Value> {
        let content = std::fs::read(&self.path).unwrap_or_default();
        let content = String::from_utf8(content).expect("events are valid UTF-8");
        let whole = content.rfind('\n').map_or("", |end| &content[..end]);
        whole
            .lines()
            .map(|line| match serde_json::from_str(line) {
                Ok(value @ Value::Object(_)) => value,
                other => panic!("not an object: {line}: {other:?}"),
            })
            .collect()
    }

    /// The events of one kind.
    #[track_caller]
    pub fn of(&self, kind: &str) -> Vec<Value> {
        self.all().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// Waits for the `count`-th event of a kind and returns it.
    #[track_caller]
    pub fn wait(&self, kind: &str, count: usize) -> Value {
        wait_until(&format!("event {kind} number {count}"), || self.of(kind).len() >= count);
        self.of(kind).swap_remove(count - 1)
    }
}

/// A number in an event.
#[track_caller]
pub fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("{field} is no number in {event}"))
}

/// A number in each of these events.
#[track_caller]
pub fn numbers(events: &[Value], field: &str) -> Vec<f64> {
    events.iter().map(|event| number(event, field)).collect()
}

/// A text in each of these events.
#[track_caller]
pub fn texts(events: &[Value], field: &str) -> Vec<String> {
    let text = |event: &Value| event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event}")).to_owned();
    events.iter().map(text).collect()
}
