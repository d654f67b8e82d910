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
    /// Whether the scope starts afresh with its next use, whatever else stands here.
    #[serde(default)]
    fresh: bool,
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
    Good(Box<Record>),
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
            fresh: false,
            end: sequence,
        }
    }

    /// The same, of a scope that starts afresh with its next use.
    pub(super) fn starting_afresh(self) -> Self {
        Self { fresh: true, ..self }
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
        let mut newest: Option<Box<Self>> = None;
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
            Some(record) if count <= 2 => Ok((*record, Next::Whole)),
            Some(_) => Err("it has more than two records".into()),
            None => Err("it has no record".into()),
        }
    }

    /// The newer slot counts, unless it is what a write left that was cut off.
    fn read_slots(bytes: &[u8]) -> Result<(Self, Next), String> {
        let (first, second) = bytes.split_at(SLOT);
        let mut slots = [(0, first), (1, second)];
        if sequence(first) < sequence(second) {
            slots.reverse();
        }
        let mut broken = None;
        for (slot, line) in slots {
            match Line::of(line) {
                Line::Good(record) => return Ok((*record, Next::Slot(1 - slot))),
                Line::Wrong(why) => return Err(format!("line {} {why}", slot + 1)),
                Line::Broken(why) => broken = broken.or(Some(format!("line {} {why}", slot + 1))),
                Line::Blank => {}
            }
        }
        Err(broken.unwrap_or_else(|| "it has no record".into()))
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
        if self.fresh {
            return None;
        }
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
            ("sequence", Some(self.sequence), MOST / 2),
            ("billionths", self.billionths, NANO - 1),
            ("remainder", self.remainder, NANO - 1),
            ("refill", self.refill, MOST_REFILL),
            ("clock_us", Some(self.clock_us), MOST / 2),
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
                Ok(()) => Self::Good(Box::new(record)),
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

/// The sequence at the beginning of a slot, as this version writes it.
fn sequence(slot: &[u8]) -> Option<u64> {
    let digits = slot.strip_prefix(b"{\"sequence\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: QuotaPlan = QuotaPlan { capacity: 10, transient_cost: 5, throttling_cost: 5, refill: NANO };

    fn moment(boot: Option<&str>, since_boot: u64, wall: u64) -> Moment {
        let seconds = Duration::from_secs;
        let wall = SystemTime::UNIX_EPOCH + seconds(wall);
        Moment { boot: boot.map(str::to_owned), since_boot: seconds(since_boot), wall }
    }

    fn with_tokens(tokens: u32) -> Budget {
        Budget { quota: Some(RetryQuota::with_tokens(PLAN, tokens)), ..Budget::default() }
    }

    fn record(tokens: u32) -> Record {
        Record::of(&with_tokens(tokens), Duration::from_secs(60), &moment(Some("b"), 100, 1000), None)
    }

    fn tokens(record: &Record) -> Option<u32> {
        record.tokens
    }

    fn text(record: &Record) -> String {
        serde_json::to_string(record).unwrap()
    }

    #[test]
    fn the_longest_record_fits_its_slot() {
        let longest = "1234567890.1234567e-300";
        let mut limiter = serde_json::to_value(RateLimiter::new()).unwrap();
        for (field, value) in limiter.as_object_mut().unwrap() {
            *value = serde_json::from_str(if field == "enabled" { "false" } else { longest }).unwrap();
        }
        let most = Record {
            sequence: MOST / 2,
            tokens: Some(u32::MAX),
            billionths: Some(NANO - 1),
            remainder: Some(NANO - 1),
            capacity: Some(u32::MAX),
            refill: Some(MOST_REFILL),
            ttl_us: u64::MAX,
            clock_us: MOST / 2,
            updated: u64::MAX,
            boot: Some("12345678-1234-1234-1234-123456789012".into()),
            boot_us: u64::MAX,
            limiter: serde_json::from_value(limiter).unwrap(),
            fresh: false,
            end: MOST / 2,
            ..record(1)
        };
        assert!(most.slot().is_some(), "{} bytes", text(&most).len());
        // No number in it is too much to go on with.
        assert_eq!(Record::read(&most.whole(0).unwrap()).unwrap().0, most);
        assert!(most.budget(&moment(None, 0, 1)).is_none_or(|(_, now)| now.as_micros() <= MOST.into()));
        let _ = (most.updated(), most.ttl(), most.fresh());
    }

    #[test]
    fn records_take_turns_and_the_newer_counts() {
        let first = record(1);
        let mut bytes = first.whole(0).unwrap();
        let (read, next) = Record::read(&bytes).unwrap();
        assert_eq!((&read, next), (&first, Next::Slot(1)));
        let second = Record::of(&with_tokens(2), Duration::from_secs(60), &moment(None, 1, 1), Some(&read));
        bytes[SLOT..].copy_from_slice(&second.slot().unwrap());
        let (read, next) = Record::read(&bytes).unwrap();
        assert_eq!((&read, next), (&second, Next::Slot(0)));
    }

    #[test]
    fn however_much_of_a_write_was_done_the_old_state_counts_or_the_new() {
        let old = record(7);
        let newer = Record::of(&with_tokens(3), Duration::from_secs(5), &moment(Some("b"), 101, 1001), Some(&old));
        let third = Record::of(&with_tokens(9), Duration::from_secs(61), &moment(Some("c"), 7, 90_001), Some(&newer));
        let mut before = old.whole(0).unwrap();
        before[SLOT..].copy_from_slice(&newer.slot().unwrap());
        let written = third.slot().unwrap();
        for done in 0..=SLOT {
            let mut bytes = before.clone();
            bytes[..done].copy_from_slice(&written[..done]);
            let (read, _) = Record::read(&bytes).unwrap();
            assert!(read == newer || read == third, "{done}: {read:?}");
            // Sectors may come out of turn where the power fails.
            bytes.clone_from(&before);
            bytes[SLOT - done..SLOT].copy_from_slice(&written[SLOT - done..]);
            let (read, _) = Record::read(&bytes).unwrap();
            assert!(read == newer || read == third, "{done} from the end: {read:?}");
        }
    }

    #[test]
    fn lines_as_people_leave_them_are_taken_and_written_over_in_full() {
        let line = text(&record(3));
        for content in [line.clone(), format!("{line}\n"), format!("\n  {line}  \r\n\n"), format!("{line}\n{line}\n\n")]
        {
            let (read, next) = Record::read(content.as_bytes()).unwrap();
            assert_eq!((tokens(&read), next), (Some(3), Next::Whole), "{content}");
        }
        let over = record(4).whole(5000).unwrap();
        assert_eq!(over.len(), 5000);
        // What is left until the rest is cut off is as good.
        assert_eq!(tokens(&Record::read(&over).unwrap().0), Some(4));
    }

    // B99, B105
    #[test]
    fn what_is_no_record_is_damage_and_is_named() {
        let line = text(&record(3));
        let with = |from: &str, to: &str| {
            let changed = line.replace(from, to);
            assert_ne!(changed, line);
            changed
        };
        let nuls = "\0".repeat(4096);
        for (content, why) in [
            ("", "it is empty"),
            (" \n ", "it has no record"),
            ("{", "line 1 is no record: EOF"),
            (&nuls, "line 1 is no JSON object"),
            (&format!("{line}}}"), "line 1 is no record: trailing characters"),
            (&format!("{line}\n}}\n"), "line 2 is no JSON object"),
            (&format!("{line}\n{line}\n{line}\n"), "more than two records"),
            ("[1, 2]", "line 1 is no JSON object"),
            ("\"text\"", "line 1 is no JSON object"),
            ("{}", "line 1 is no record: missing field `sequence`"),
            ("{\"unlike\": 1}", "missing field"),
            (&format!("\u{feff}{line}"), "line 1 is no JSON object"),
            (&with("\"schema\":1", "\"schema\":2"), "line 1 has schema 2, and this version knows 1 only"),
            ("{\"sequence\":1,\"schema\":2,\"new\":[],\"end\":1}", "has schema 2"),
            (&with("\"end\":1", "\"end\":2"), "begins and ends as two records"),
            (&with("\"tokens\":3", "\"tokens\":NaN"), "is no record: expected value"),
            (&with("\"tokens\":3", "\"tokens\":1e308"), "floating point `1e+308`, expected u32"),
            (&with("\"tokens\":3", "\"tokens\":-5"), "integer `-5`, expected u32"),
            (&with("\"tokens\":3", "\"tokens\":\"7\""), "string \"7\", expected u32"),
            (&with("\"tokens\":3,", ""), "has only a part of a quota"),
            (&with("\"billionths\":0", "\"billionths\":1000000000"), "1000000000 as billionths"),
            (&with("\"remainder\":0", "\"remainder\":1000000000"), "1000000000 as remainder"),
            (&with("\"refill\":1000000000", "\"refill\":1000000000000001"), "as refill"),
            (&with("\"clock_us\":0", "\"clock_us\":9999999999999999"), "as clock_us"),
            (&with("\"limiter\":null", "\"limiter\":7"), "expected struct RateLimiter"),
            (&with("\"updated\":1000000000", "\"updated\":-1"), "integer `-1`"),
        ] {
            let error = Record::read(content.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{content}: {error}");
        }
        // However long what stands there is, what is said of it is short.
        let long = with("\"tokens\":3", &format!("\"tokens\":\"{}\"", "7".repeat(60_000)));
        assert!(Record::read(long.as_bytes()).unwrap_err().len() < 200);
        let limiter = serde_json::to_string(&RateLimiter::new()).unwrap().replace("\"slot\":0.0", "\"slot\":-1.0");
        let error = Record::read(with("null", &limiter).as_bytes()).unwrap_err();
        assert!(error.contains("limiter whose numbers"), "{error}");
        // A slot that is whole is no leftover of a write: the other does not stand in for it.
        let mut slots = record(3).whole(0).unwrap();
        let mut wrong = record(4);
        (wrong.sequence, wrong.end, wrong.billionths) = (2, 2, Some(NANO));
        slots[SLOT..].copy_from_slice(&wrong.slot().unwrap());
        assert!(Record::read(&slots).unwrap_err().starts_with("line 2 has 1000000000 as billionths"));
        (wrong.end, wrong.billionths) = (1, Some(0));
        slots[SLOT..].copy_from_slice(&wrong.slot().unwrap());
        assert_eq!(tokens(&Record::read(&slots).unwrap().0), Some(3));
    }

    // B103
    #[test]
    fn time_passes_by_the_boot_clock_else_by_the_wall_and_never_backwards() {
        let kept = record(3);
        let passed =
            |boot, since_boot, wall| kept.budget(&moment(boot, since_boot, wall)).map(|(_, now)| now.as_secs_f64());
        // The same boot: the wall clock may be stepped as it likes.
        assert_eq!(passed(Some("b"), 104, 0), Some(4.0));
        assert_eq!(passed(Some("b"), 104, 99_999_999), Some(4.0));
        assert_eq!(passed(Some("b"), 99, 1004), Some(0.0));
        // Another boot, or one that is not known.
        assert_eq!(passed(Some("c"), 1, 1004), Some(4.0));
        assert_eq!(passed(None, 104, 1007), Some(7.0));
        assert_eq!(passed(Some("c"), 1, 900), Some(0.0));
        // Unused for long enough it starts afresh.
        assert_eq!(passed(Some("b"), 159, 0), Some(59.0));
        assert_eq!(passed(Some("b"), 160, 0), None);
        assert_eq!(passed(Some("c"), 0, 1060), None);
        assert_eq!(
            kept.fresh().quota,
            Some(RetryQuota::full(QuotaPlan { capacity: 10, refill: NANO, ..QuotaPlan::default() }))
        );
        let bootless = Record { boot: None, ..record(3) };
        assert_eq!(bootless.budget(&moment(None, 500, 1004)).unwrap().1, Duration::from_secs(4));
    }

    #[test]
    fn a_budget_comes_back_as_it_was() {
        let plan = crate::policy::BudgetPlan { quota: Some(PLAN), limiter: true };
        let mut budget = Budget::default();
        let mut last = None;
        for step in 0..500_u32 {
            let at = moment(Some("b"), 100, 1000);
            let at = Moment { since_boot: at.since_boot + Duration::from_micros(u64::from(step) * 123_457), ..at };
            let now = last.as_ref().map_or(Duration::ZERO, |last: &Record| last.budget(&at).unwrap().1);
            let entry = crate::policy::Entry::Success { last_cost: None };
            let operation = crate::policy::Operation::Book { throttled: step % 7 == 0, entry };
            budget.apply(&plan, &operation, now);
            budget.apply(&plan, &crate::policy::Operation::Take, now);
            let record = Record::of(&budget, Duration::from_secs(60), &at, last.as_ref());
            let (read, _) = Record::read(&record.whole(0).unwrap()).unwrap();
            let (back, _) = read.budget(&at).unwrap();
            assert_eq!(back.limiter, budget.limiter);
            let quota = |budget: &Budget| budget.quota.as_ref().map(|quota| (quota.level(), quota.remainder()));
            assert_eq!((quota(&back), back.now), (quota(&budget), budget.now));
            last = Some(read);
        }
    }
}
