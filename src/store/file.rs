//! Scopes in files: one a scope, which is locked while it is read and written and at no
//! other time.

use std::fmt::Write as _;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::folder::{Entry, Folder, LOCK_WAIT, Lock, unshared};
use super::record::{Moment, Next, Record, SLOT};
use super::{Applied, Looked, Scope, ScopeName, ScopeState, StateStore, Unshared};
use crate::clock;
use crate::policy::{Budget, BudgetPlan, Operation, QuotaPlan, RetryQuota};

/// What the files of scopes end in.
const SUFFIX: &str = ".scope";
/// How long a lock is waited for by somebody who mends a scope.
const MENDING: Duration = Duration::from_secs(5);
/// How often a file may be replaced under an operation before that gives up.
const ROUNDS: u32 = 100;

/// Keeps scopes in files of a folder.
pub struct FileStore {
    folder: Option<PathBuf>,
    moment: Box<dyn FnMut() -> Moment>,
}

/// What is to be kept from an operation on.
struct Kept {
    budget: Budget,
    ttl: Duration,
    /// Whether the scope starts afresh with its next use all the same.
    fresh: bool,
}

impl Kept {
    fn record(&self, moment: &Moment, after: Option<&Record>) -> Record {
        let record = Record::of(&self.budget, self.ttl, moment, after);
        if self.fresh { record.starting_afresh() } else { record }
    }
}

impl FileStore {
    /// A store in that folder, which is made when it is first needed.
    pub fn new(folder: Option<PathBuf>) -> Self {
        let mut boot = None;
        Self::with_moments(folder, move || Moment {
            boot: boot.get_or_insert_with(boot_id).clone(),
            since_boot: clock::since_boot(),
            wall: clock::wall(),
        })
    }

    /// A store that is told the time of each operation, under the lock.
    pub fn with_moments(folder: Option<PathBuf>, moment: impl FnMut() -> Moment + 'static) -> Self {
        Self { folder, moment: Box::new(moment) }
    }

    fn path(&self) -> Result<&PathBuf, Unshared> {
        let missing = || {
            Unshared(
                "XDG_STATE_HOME is not set to an absolute path, and HOME to no folder; give --state-dir DIR".into(),
            )
        };
        self.folder.as_ref().ok_or_else(missing)
    }

    /// Changes what a file keeps, under its lock. Without a file, or with a damaged one, which
    /// is set aside, there is no record. `change` may be asked again, and only its last answer
    /// counts. The second part tells of what was set aside.
    fn update<T>(
        &mut self,
        scope: &ScopeName,
        patience: Duration,
        mut change: impl FnMut(Option<&Record>, &Moment) -> (Option<Kept>, T),
    ) -> Result<(T, Option<String>), Unshared> {
        let name = file_name(scope);
        let folder = Folder::open_or_make(self.path()?)?;
        let mut notice = None;
        for _ in 0..ROUNDS {
            let done = self.try_update(&folder, &name, patience, &mut change, &mut notice);
            match done {
                Ok(None) => {}
                Ok(Some(answer)) => return Ok((answer, notice)),
                Err(Unshared(why)) => {
                    return Err(Unshared(match notice {
                        Some(set) if !why.is_empty() => format!("{set} once it can; {why}"),
                        notice => notice.unwrap_or(why),
                    }));
                }
            }
        }
        Err(unshared(folder.place(&name), "is replaced by somebody again and again"))
    }

    /// The same, once; `None` where the file was not there any more, or is not there yet.
    fn try_update<T>(
        &mut self,
        folder: &Folder,
        name: &str,
        patience: Duration,
        change: &mut impl FnMut(Option<&Record>, &Moment) -> (Option<Kept>, T),
        notice: &mut Option<String>,
    ) -> Result<Option<T>, Unshared> {
        let file = match folder.entry(name)? {
            Entry::Missing => {
                let moment = (self.moment)();
                let (kept, answer) = change(None, &moment);
                let Some(kept) = kept else { return Ok(Some(answer)) };
                let bytes = kept.record(&moment, None).whole(0);
                return Ok(folder.make(name, &written(folder, name, bytes)?)?.then_some(answer));
            }
            Entry::Unusable => {
                if let Some((why, aside)) = folder.set_unusable_aside(name, patience)? {
                    *notice = Some(set_aside(folder, name, why, &aside));
                }
                return Ok(None);
            }
            Entry::File(file) => folder.lock(name, file, Lock::Alone, patience)?,
        };
        if !folder.is_current(name, &file)? {
            return Ok(None);
        }
        let bytes = folder.read(name, &file)?;
        let length = bytes.as_ref().map_or(0, Vec::len);
        let (record, next) = match bytes.and_then(|bytes| Record::read(&bytes)) {
            Ok(read) => read,
            Err(why) => {
                let aside = folder.set_aside(name)?;
                *notice = Some(set_aside(folder, name, &why, &aside));
                return Ok(None);
            }
        };
        let moment = (self.moment)();
        let (kept, answer) = change(Some(&record), &moment);
        if let Some(kept) = kept {
            write(folder, name, &file, &kept.record(&moment, Some(&record)), next, length)?;
        }
        Ok(Some(answer))
    }

    /// What a file keeps now; `None` where there is none.
    fn look(&mut self, folder: &Folder, scope: &ScopeName) -> Result<Option<ScopeState>, Unshared> {
        let name = file_name(scope);
        let Some(file) = folder.look_at(&name)? else { return Ok(None) };
        let read = || Ok(folder.read(&name, &file)?.and_then(|bytes| Record::read(&bytes)));
        // As a rule whoever is writing leaves one record whole, and there is no need to wait.
        let record = if let Ok((record, _)) = read()? {
            record
        } else {
            let _locked = folder.lock(&name, &file, Lock::Together, LOCK_WAIT)?;
            let damaged = |why| {
                let place = folder.place(&name);
                Unshared(format!("{place} is damaged: {why}; the next run sets it aside and starts afresh"))
            };
            read()?.map_err(damaged)?.0
        };
        let moment = (self.moment)();
        Ok(Some(state(scope.clone(), standing(&record, &moment), &record)))
    }
}

impl StateStore for FileStore {
    fn apply(
        &mut self,
        scope: &Scope,
        plan: &BudgetPlan,
        operation: &Operation,
        left: Option<Duration>,
    ) -> Result<Applied, Unshared> {
        let patience = left.map_or(LOCK_WAIT, |left| left.min(LOCK_WAIT));
        let (answer, notice) = self.update(&scope.name, patience, |record, moment| {
            let (mut budget, now) = match record {
                // Full means by the numbers of the run that begins with it.
                Some(record) if plan.quota.is_some() => record.budget(moment).unwrap_or_default(),
                Some(record) => record.budget(moment).unwrap_or_else(|| (record.fresh(), Duration::ZERO)),
                None => Default::default(),
            };
            let answer = budget.apply(plan, operation, now);
            (Some(Kept { budget, ttl: scope.ttl, fresh: false }), answer)
        })?;
        Ok(Applied { answer, notice })
    }

    fn list(&mut self) -> Result<Vec<Looked>, Unshared> {
        let Some(folder) = Folder::open(self.path()?)? else { return Ok(Vec::new()) };
        let mut scopes: Vec<_> = folder.names()?.iter().filter_map(|name| scope_name(name)).collect();
        scopes.sort();
        Ok(scopes.iter().filter_map(|scope| self.look(&folder, scope).transpose()).collect())
    }

    fn show(&mut self, name: &ScopeName) -> Result<Option<Looked>, Unshared> {
        match Folder::open(self.path()?)? {
            Some(folder) => Ok(self.look(&folder, name).transpose()),
            None => Ok(None),
        }
    }

    fn reset(&mut self, name: &ScopeName) -> Result<(bool, Option<String>), Unshared> {
        if Folder::open(self.path()?)?.is_none() {
            return Ok((false, None));
        }
        let (found, notice) = self.update(name, MENDING, |record, _| match record {
            Some(record) => (Some(Kept { budget: record.fresh(), ttl: record.ttl(), fresh: true }), true),
            None => (None, false),
        })?;
        // What is set aside starts afresh with the next use.
        Ok((found || notice.is_some(), notice))
    }

    fn set(
        &mut self,
        scope: &Scope,
        tokens: u32,
        beginning: QuotaPlan,
    ) -> Result<(ScopeState, Option<String>), Unshared> {
        self.update(&scope.name, MENDING, |record, moment| {
            let mut budget = record.map_or_else(Budget::default, |record| standing(record, moment));
            let plan = budget.quota.as_ref().map_or(beginning, RetryQuota::plan);
            let level = RetryQuota::with_tokens(plan, tokens).level();
            budget.quota = Some(RetryQuota::restore(plan, level, 0, budget.now));
            let ttl = record.map_or(scope.ttl, Record::ttl);
            let state = ScopeState { name: scope.name.clone(), budget: budget.clone(), updated: moment.wall };
            (Some(Kept { budget, ttl, fresh: false }), state)
        })
    }

    fn place(&self) -> String {
        self.folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
    }
}

fn state(name: ScopeName, budget: Budget, record: &Record) -> ScopeState {
    ScopeState { name, budget, updated: record.updated() }
}

/// The budget of a record, with what has come in up to a moment.
fn standing(record: &Record, moment: &Moment) -> Budget {
    let (mut budget, now) = record.budget(moment).unwrap_or_else(|| (record.fresh(), Duration::ZERO));
    budget.apply(&BudgetPlan::default(), &Operation::Take, now);
    budget
}

/// Puts a record in a file of that length, after the one that counted.
fn write(
    folder: &Folder,
    name: &str,
    file: impl AsFd,
    record: &Record,
    next: Next,
    length: usize,
) -> Result<(), Unshared> {
    match next {
        Next::Slot(slot) => {
            let bytes = written(folder, name, record.slot())?;
            folder.write(name, file, &bytes, slot * SLOT)
        }
        Next::Whole => {
            let bytes = written(folder, name, record.whole(length))?;
            folder.write(name, &file, &bytes, 0)?;
            folder.cut(name, file, 2 * SLOT)
        }
    }
}

fn written(folder: &Folder, name: &str, bytes: Option<Vec<u8>>) -> Result<Vec<u8>, Unshared> {
    bytes.ok_or_else(|| unshared(folder.place(name), format_args!("would need more than {SLOT} bytes for a record")))
}

fn set_aside(folder: &Folder, name: &str, why: &str, aside: &str) -> String {
    format!("{} was no good: {why}; it is kept as {aside}, and the scope starts afresh", folder.place(name))
}

/// What this boot of the machine is called.
fn boot_id() -> Option<String> {
    let file = rustix::fs::open(c"/proc/sys/kernel/random/boot_id", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut bytes = [0; 36];
    let count = rustix::io::read(file.ok()?, &mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    (count == text.len()).then(|| text.to_owned())
}

/// The name of a scope's file: letters, digits, `-`, `_`, and dots but the first stand for
/// themselves, all other bytes for two hexadecimal digits after `%`.
fn file_name(scope: &ScopeName) -> String {
    let mut name = String::new();
    for (place, byte) in scope.as_str().bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if place > 0 => name.push('.'),
            _ => {
                // A string takes all that is written to it.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    name + SUFFIX
}

/// The scope that a file of that name is for, if any.
fn scope_name(name: &str) -> Option<ScopeName> {
    let mut rest = name.strip_suffix(SUFFIX)?.bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    let scope = ScopeName::new(&String::from_utf8(bytes).ok()?)?;
    (file_name(&scope) == name).then_some(scope)
}

#[cfg(test)]
mod tests;
