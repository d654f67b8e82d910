//! `--events`: JSON Lines for programs. One object and one write an event, so that many
//! writers can append to one file.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::event::{Timespec, poll};
use rustix::fs::FileType;
use serde_json::{Map, Value, json};

use super::text::say;
use super::{Event, Reporter, Summary, write_line};
use crate::clock::wall;
use crate::config::{EventsTarget, Plan};
use crate::policy::{Obstacle, Outcome, Retry, StopReason, Verdict};
use crate::units::millis;

/// The version of the objects.
const SCHEMA: u8 = 1;
/// The most bytes of an object, line end included.
const MAX_LINE: usize = 64 * 1024;
/// The most bytes of one text in an object; the rest is cut and marked.
const MAX_TEXT: usize = 4 * 1024;

/// How often a named pipe is looked at for a reader, and how long after each look.
const FIFO_TRIES: u32 = 200;
const FIFO_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The reporter for programs.
pub struct Json<'a> {
    plan: &'a Plan,
    target: Option<OwnedFd>,
    name: String,
}

impl<'a> Json<'a> {
    /// Opens the target: a file is created or appended to; a descriptor must be open. The
    /// error names neither: the caller knows which it asked for.
    pub fn open(plan: &'a Plan, target: &EventsTarget) -> std::io::Result<Self> {
        let (target, name) = match target {
            EventsTarget::File(path) => {
                use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
                let file = match std::fs::metadata(path) {
                    Ok(metadata) if metadata.file_type().is_fifo() => open_fifo(path)?,
                    _ => File::options().append(true).create(true).mode(0o644).open(path)?,
                };
                (OwnedFd::from(file), path.to_string_lossy().into_owned())
            }
            EventsTarget::Descriptor(number) => {
                let found = crate::process::inherited_descriptor(*number)?;
                (found, format!("fd:{number}"))
            }
        };
        Ok(Self { plan, target: Some(target), name })
    }

    /// The regular file that is written: its device and number.
    pub fn file(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::fstat(self.target.as_ref()?).ok()?;
        FileType::from_raw_mode(stat.st_mode).is_file().then_some((stat.st_dev, stat.st_ino))
    }

    fn write(&mut self, mut event: Map<String, Value>, kind: &str, time: SystemTime) {
        let Some(target) = &self.target else { return };
        let mut object = Map::new();
        object.insert("schema".into(), SCHEMA.into());
        object.insert("time".into(), humantime::format_rfc3339_millis(time).to_string().into());
        object.insert("run_id".into(), self.plan.supervision.run_id.clone().into());
        object.insert("event".into(), kind.into());
        object.append(&mut event);
        let mut line = Value::Object(object).to_string();
        line.push('\n');
        if let Err(error) = write_line(target, line.as_bytes()) {
            say(&format!("--events {}: {}; the run goes on without events", self.name, std::io::Error::from(error)));
            self.target = None;
        }
    }

    fn run_started(&self) -> Map<String, Value> {
        let limits = &self.plan.session.limits;
        let command = &self.plan.supervision.command;
        let mut event = object(json!({
            "program": text(command.first().map_or(OsStr::new(""), |word| word)),
            "argument_count": command.len().saturating_sub(1),
            "mode": self.plan.mode.as_str(),
            "max_attempts": limits.max_attempts,
            "deadline_ms": limits.deadline.map(millis),
        }));
        if self.plan.log_arguments {
            let mut room = MAX_LINE - 4 * MAX_TEXT * 2;
            let mut fits = |value: &Value| {
                let size = value.to_string().len() + 1;
                room = room.saturating_sub(size);
                room > 0
            };
            let arguments = command.iter().skip(1).map(|word| Value::from(text(word)));
            let arguments: Vec<Value> = arguments.take_while(|value| fits(value)).collect();
            event.insert("arguments".into(), arguments.into());
        }
        event
    }
}

/// Opens a pipe that has a name. A reader that was started beside this run may need a moment
/// to open it; who has none after that gets none.
fn open_fifo(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    for _ in 0..FIFO_TRIES {
        match File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                // An empty poll is a wait that a signal ends.
                let _ = poll(&mut [], Some(&FIFO_PAUSE));
            }
            opened => {
                let file = opened?;
                rustix::io::ioctl_fionbio(&file, false)?;
                return Ok(file);
            }
        }
    }
    Err(std::io::Error::other("nobody reads from this pipe"))
}

/// Valid UTF-8 of bounded length, whatever came.
fn text(raw: &OsStr) -> String {
    bounded(&raw.to_string_lossy())
}

fn bounded(whole: &str) -> String {
    if whole.len() <= MAX_TEXT {
        return whole.to_owned();
    }
    let end = (0..=MAX_TEXT).rev().find(|&end| whole.is_char_boundary(end)).unwrap_or(0);
    format!("{}…", &whole[..end])
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn attempt_finished(
    attempt: u64,
    outcome: &Outcome,
    obstacle: Option<&Obstacle>,
    verdict: &Verdict,
    duration: Duration,
) -> Map<String, Value> {
    let (kind, exit_code, signal) = match outcome {
        Outcome::Exited(code) => ("exited", Some(*code), None),
        Outcome::Responded(_) => ("responded", None, None),
        Outcome::Signaled(signal) => ("signaled", None, Some(signal.0)),
        Outcome::TimedOut(_) => ("timed_out", None, None),
        Outcome::NotStarted { .. } => ("not_started", None, None),
        Outcome::TransportFailed { code, .. } => ("transport_failed", Some(*code), None),
        Outcome::Interrupted(signal) => ("interrupted", None, Some(signal.0)),
    };
    let error = match (outcome, obstacle) {
        (Outcome::NotStarted { error, errno, .. }, _) => Some(bounded(&format!("{error} (errno {errno})"))),
        (Outcome::TransportFailed { error, .. }, _) => Some(bounded(error)),
        (_, Some(Obstacle::Unkillable { pid, error })) => Some(format!("process {pid}: {error}")),
        _ => None,
    };
    object(json!({
        "attempt": attempt,
        "outcome": kind,
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": matches!(outcome, Outcome::TimedOut(_)),
        "http_status": verdict.http_status,
        "error_code": verdict.error_code.as_deref().map(bounded),
        "error": error,
        "class": verdict.class.as_str(),
        "rule": bounded(&verdict.rule),
        "duration_ms": millis(duration),
    }))
}

impl Json<'_> {
    fn retry_scheduled(&self, retry: &Retry) -> Map<String, Value> {
        let rule = &self.plan.session.backoff;
        object(json!({
            "attempt": retry.attempt,
            "delay_ms": millis(retry.delay.wait),
            "delay_source": retry.delay.source.as_str(),
            "base_ms": millis(retry.delay.base),
            "exponent": retry.delay.exponent,
            "cap_ms": (rule.cap < Duration::MAX).then(|| millis(rule.cap)),
            "jitter": rule.jitter.as_str(),
            "server_delay_ms": retry.delay.server.map(millis),
            "quota_left": retry.quota_left,
        }))
    }
}

fn stopped(summary: &Summary, elapsed: Duration, waited: Duration, quota_left: Option<u32>) -> Map<String, Value> {
    let mut event = object(json!({
        "reason": summary.reason.as_str(),
        "attempts": summary.attempts,
        "exit_status": summary.exit_status.shell_code(),
        "elapsed_ms": millis(elapsed),
        "waited_ms": millis(waited),
        "quota_left": quota_left,
        "server_delay_ms": match &summary.reason { StopReason::ServerDelay { wanted } => Some(millis(*wanted)), _ => None },
    }));
    if let StopReason::Interrupted(signal) = summary.reason {
        event.insert("signal".into(), signal.0.into());
    }
    event
}

impl Reporter for Json<'_> {
    fn report(&mut self, event: &Event<'_>) {
        let (kind, fields) = match *event {
            Event::RunStarted => ("run_started", self.run_started()),
            Event::AttemptStarted { attempt } => ("attempt_started", object(json!({ "attempt": attempt }))),
            Event::AttemptFinished { attempt, outcome, obstacle, verdict, duration, .. } => {
                ("attempt_finished", attempt_finished(attempt, outcome, obstacle, verdict, duration))
            }
            Event::RetryScheduled { retry, .. } => ("retry_scheduled", self.retry_scheduled(retry)),
            // The contract tells these waits in the end's `waited_ms`, and what is noted is for
            // people.
            Event::Lingering { .. } | Event::Paced { .. } | Event::Noted { .. } => return,
            Event::Stopped { summary, elapsed, waited, quota_left, .. } => {
                ("stopped", stopped(summary, elapsed, waited, quota_left))
            }
        };
        self.write(fields, kind, wall());
    }
}
