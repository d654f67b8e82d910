//! A scope's budget, as its file keeps it.
//!
//! A file holds two slots of [`SLOT`] bytes, each a line: one JSON object, padded with
//! spaces. A new record goes over the older of the two, in one write, so that the one that
//! counts stays whole whatever ends the writer when; of two, the one with the greater
//! `sequence` counts. That number stands first and, as `end`, last: a record of which only a
//! part was written is known by it. A full disk does not matter, as no write needs room.
//!
//! People may edit the file. Then it need not have slots: one or two lines, each a record,
//! are taken as well, and written as above with the next use.
//!
//! `tokens` are whole and `billionths` of one come on top; `remainder` is what the last refill
//! left over, in billionths of these. `refill` is in billionths of a token a second. `clock_us`
//! is the budget's time, at the moment that `boot_us` (since the start of the machine whose
//! boot is called `boot`) and `updated` (since 1970) tell. All that ends in `_us`, and
//! `updated`, is in microseconds.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;

use crate::policy::{Budget, MOST_REFILL, NANO, QuotaPlan, RateLimiter, RetryQuota};

/// Bytes of a slot, its line feed included.
pub(super) const SLOT: usize = 1024;

/// The longest file that is looked into.
pub(super) const LONGEST: usize = 64 * 1024;

/// The layout that this version writes and reads.
const SCHEMA: u64 = 1;

/// Times and sequences stay below this: 285 years of microseconds.
const MOST: u64 = 1 << 53;

/// A moment that means something to other processes, and after a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// What this boot of the machine is called; `None` where that cannot be known.
    pub boot: Option<String>,
    /// Time since then, suspension included.
    pub since_boot: Duration,
    /// The wall clock, which is all that counts across boots and machines.
    pub wall: SystemTime,
}

/// A budget as it stood at some moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    sequence: u64,
    schema: u64,
    tokens: Option<u32>,
    billionths: Option<u64>,
    remainder: Option<u64>,
    capacity: Option<u32>,
    refill: Option<u64>,
    ttl_us: u64,
    clock_us: u64,
    updated: u64,
    boot: Option<String>,
    boot_us: u64,
    limiter: Option<RateLimiter>,
    end: u64,
}

/// Where a file's record is to be followed by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// In this slot.
    Slot(usize),
    /// In place of all that is there, which has no slots.
    Whole,
}

/// What a slot or a line holds.
enum Line {
    Blank,
    /// No record, or only a part of one: why.
    Broken(String),
    /// A whole record that says what cannot be: why.
    Wrong(String),
    Good(Record),
}

impl Record {
    /// The record of a budget at a moment; it follows the one with that sequence.
    pub(super) fn of(budget: &Budget, ttl: Duration, moment: &Moment, after: Option<&Self>) -> Self {
        let sequence = after.map_or(1, |last| last.sequence + 1);
        let quota = budget.quota.as_ref();
        Self {
            sequence,
            schema: SCHEMA,
            tokens: quota.map(RetryQuota::tokens),
            billionths: quota.map(|quota| quota.level() % NANO),
            remainder: quota.map(RetryQuota::remainder),
            capacity: quota.map(|quota| quota.plan().capacity),
            refill: quota.map(|quota| quota.plan().refill),
            ttl_us: micros(ttl),
            clock_us: micros(budget.now),
            updated: micros(since_1970(moment.wall)),
            boot: moment.boot.clone(),
            boot_us: micros(moment.since_boot),
            limiter: Some(&budget.limiter).filter(|limiter| **limiter != RateLimiter::new()).cloned(),
            end: sequence,
        }
    }

    /// The record that counts in these bytes, and where the next one goes; or what is wrong
    /// with them.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, Next), String> {
        if bytes.is_empty() {
            return Err("it is empty".into());
        }
        if bytes.len() == 2 * SLOT && bytes[SLOT - 1] == b'\n' && bytes[2 * SLOT - 1] == b'\n' {
            return Self::read_slots(bytes);
        }
        let mut newest: Option<Self> = None;
        let mut count = 0;
        for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
            let record = match Line::of(line) {
                Line::Blank => continue,
                Line::Broken(why) | Line::Wrong(why) => return Err(format!("line {number} {why}")),
                Line::Good(record) => record,
            };
            count += 1;
            if newest.as_ref().is_none_or(|newest| newest.sequence < record.sequence) {
                newest = Some(record);
            }
        }
        match newest {
            Some(record) if count <= 2 => Ok((record, Next::Whole)),
            Some(_) => Err("it has more than two records".into()),
            None => Err("it has no record".into()),
        }
    }

    fn read_slots(bytes: &[u8]) -> Result<(Self, Next), String> {
        let mut newest: Option<(Self, usize)> = None;
        let mut broken = None;
        for (slot, line) in bytes.chunks_exact(SLOT).enumerate() {
            match Line::of(line) {
                Line::Blank => {}
                Line::Broken(why) => broken = broken.or(Some(format!("line {} {why}", slot + 1))),
                Line::Wrong(why) => return Err(format!("line {} {why}", slot + 1)),
                Line::Good(record) => {
                    if newest.as_ref().is_none_or(|(newest, _)| newest.sequence < record.sequence) {
                        newest = Some((record, slot));
                    }
                }
            }
        }
        match newest {
            Some((record, slot)) => Ok((record, Next::Slot(1 - slot))),
            None => Err(broken.unwrap_or_else(|| "it has no record".into())),
        }
    }

    /// The bytes of a slot that holds it, if that is long enough.
    pub(super) fn slot(&self) -> Option<Vec<u8>> {
        let mut line = serde_json::to_vec(self).ok().filter(|line| line.len() < SLOT)?;
        line.resize(SLOT - 1, b' ');
        line.push(b'\n');
        Some(line)
    }

    /// The bytes of a file that holds only this, over one of so many bytes.
    pub(super) fn whole(&self, over: usize) -> Option<Vec<u8>> {
        let mut bytes = self.slot()?;
        bytes.resize(over.max(2 * SLOT), b' ');
        bytes[2 * SLOT - 1] = b'\n';
        Some(bytes)
    }

    /// How long the scope may lie unused, as the last writer had it.
    pub(super) fn ttl(&self) -> Duration {
        Duration::from_micros(self.ttl_us)
    }

    /// When the scope was last used.
    pub(super) fn updated(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.updated)
    }

    /// The budget, and which point of its time a moment is; `None` where it lay unused too
    /// long for that.
    pub(super) fn budget(&self, moment: &Moment) -> Option<(Budget, Duration)> {
        let elapsed = self.until(moment);
        let now = self.clock_us.checked_add(elapsed).filter(|now| *now <= MOST && elapsed < self.ttl_us)?;
        let then = Duration::from_micros(self.clock_us);
        let budget = Budget { quota: self.quota(then), limiter: self.limiter(then).unwrap_or_default(), now: then };
        Some((budget, Duration::from_micros(now)))
    }

    /// A new budget with these numbers.
    pub(super) fn fresh(&self) -> Budget {
        Budget { quota: self.plan().map(RetryQuota::full), ..Budget::default() }
    }

    /// Microseconds from the record to a moment. Clocks that went back add nothing.
    fn until(&self, moment: &Moment) -> u64 {
        let same_boot = self.boot.is_some() && self.boot == moment.boot;
        let (from, to) = if same_boot {
            (self.boot_us, micros(moment.since_boot))
        } else {
            (self.updated, micros(since_1970(moment.wall)))
        };
        to.saturating_sub(from)
    }

    fn plan(&self) -> Option<QuotaPlan> {
        let (capacity, refill) = (self.capacity?, self.refill?);
        Some(QuotaPlan { capacity, refill, ..QuotaPlan::default() })
    }

    fn quota(&self, now: Duration) -> Option<RetryQuota> {
        let level = u64::from(self.tokens?) * NANO + self.billionths?;
        Some(RetryQuota::restore(self.plan()?, level, self.remainder?, now))
    }

    /// `None` for numbers that cannot be.
    fn limiter(&self, now: Duration) -> Option<RateLimiter> {
        self.limiter.clone().unwrap_or_default().restore(now)
    }

    /// Says what cannot be in it.
    fn check(&self) -> Result<(), String> {
        let quota = [
            self.tokens.is_some(),
            self.billionths.is_some(),
            self.remainder.is_some(),
            self.capacity.is_some(),
            self.refill.is_some(),
        ];
        if quota.contains(&true) && quota.contains(&false) {
            return Err("has only a part of a quota".into());
        }
        for (field, number, most) in [
            ("sequence", Some(self.sequence), MOST),
            ("billionths", self.billionths, NANO - 1),
            ("remainder", self.remainder, NANO - 1),
            ("refill", self.refill, MOST_REFILL),
            ("clock_us", Some(self.clock_us), MOST),
        ] {
            if let Some(number) = number.filter(|number| *number > most) {
                return Err(format!("has {number} as {field}, more than {most}"));
            }
        }
        let limiter = self.limiter(Duration::from_micros(self.clock_us));
        limiter.map(|_| ()).ok_or_else(|| "has a limiter whose numbers cannot have come about".into())
    }
}

impl Line {
    fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.trim_ascii();
        match bytes.first() {
            None => return Self::Blank,
            Some(b'{') => {}
            // An array would pass for an object.
            Some(_) => return Self::Broken("is no JSON object".into()),
        }
        match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.end != record.sequence => Self::Broken("begins and ends as two records".into()),
            Ok(record) if record.schema != SCHEMA => Self::Wrong(other_schema(record.schema)),
            Ok(record) => match record.check() {
                Ok(()) => Self::Good(record),
                Err(why) => Self::Wrong(why),
            },
            Err(error) if error.classify() == Category::Data => {
                let object: Value = serde_json::from_slice(bytes).unwrap_or_default();
                match object["schema"].as_u64() {
                    Some(schema) if schema != SCHEMA => Self::Wrong(other_schema(schema)),
                    _ if object["sequence"] == object["end"] => Self::Wrong(no_record(&error)),
                    _ => Self::Broken(no_record(&error)),
                }
            }
            Err(error) => Self::Broken(no_record(&error)),
        }
    }
}

fn other_schema(schema: u64) -> String {
    format!("has schema {schema}, and this version knows {SCHEMA} only")
}

/// In what way a line is no record; what stands there may be of any length.
fn no_record(error: &serde_json::Error) -> String {
    let text: String = error.to_string().chars().take(120).collect();
    format!("is no record: {}", text.replace(" at line 1 column ", " at byte "))
}

fn since_1970(wall: SystemTime) -> Duration {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Whole microseconds, as many as a file can tell.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
