//! `retryx quota`: shows and mends the scopes that runs share.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::cli::UsageError;
use crate::config::ScopesPlan;
use crate::policy::{NANO, RateLimiter, RetryQuota};
use crate::store::{Scope, ScopeName, ScopeState, StateStore, Unshared};
use crate::units::human;

/// What can be done.
pub const VERBS: [&str; 4] = ["list", "show", "reset", "set"];

/// What can be done, for messages.
const FORMS: &str = "list, show NAME, reset NAME, set NAME --tokens N";

/// What a scope is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    List,
    Show(ScopeName),
    Reset(ScopeName),
    Set(ScopeName, u32),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// What to print on standard output; may be nothing.
    pub printed: String,
    /// What else a user should know.
    pub said: Vec<String>,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum ScopesError {
    /// What was asked for cannot be done.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] Unshared),
    /// There is no such scope.
    #[error("there is no scope '{name}' in {place}; a run with --scope begins it, and retryx quota list prints all")]
    Unknown {
        /// Its name.
        name: ScopeName,
        /// Where it was looked for.
        place: String,
    },
}

/// Does what the words after `quota` say. `now` is the wall clock's time.
pub fn answer(
    plan: &ScopesPlan,
    words: &[OsString],
    store: &mut dyn StateStore,
    now: SystemTime,
) -> Result<Told, ScopesError> {
    let mut told = Told::default();
    match read(words, plan)? {
        Asked::List => {
            let mut scopes = Vec::new();
            for scope in store.list()? {
                match scope {
                    Ok(scope) => scopes.push(scope),
                    Err(Unshared(why)) => told.said.push(why),
                }
            }
            if scopes.is_empty() && told.said.is_empty() {
                told.said.push(format!("there are no scopes in {}", store.place()));
            }
            told.printed = if plan.json {
                let place = store.place();
                line_of(&scopes.iter().map(|scope| object(scope, &place)).collect())
            } else {
                table(&scopes, now)
            };
        }
        Asked::Show(name) => {
            let Some(scope) = store.show(&name)? else {
                return Err(ScopesError::Unknown { name, place: store.place() });
            };
            told.printed = one(plan, &scope?, &store.place(), now);
        }
        Asked::Reset(name) => {
            let (was_there, notice) = store.reset(&name)?;
            told.said.extend(notice);
            if !was_there {
                let place = store.place();
                told.said.push(format!("there is no scope '{name}' in {place}; when it begins, it is full anyway"));
            }
        }
        Asked::Set(name, tokens) => {
            // A scope that is damaged is mended by setting it.
            let known = store.show(&name)?.and_then(Result::ok).and_then(|scope| scope.budget.quota);
            check_room(plan, &name, tokens, known.as_ref())?;
            told.said.extend(known.and_then(|known| left_aside(plan, &name, &known)));
            let (scope, notice) = store.set(&Scope { name, ttl: plan.ttl }, tokens, plan.beginning)?;
            told.said.extend(notice);
            told.printed = one(plan, &scope, &store.place(), now);
        }
    }
    Ok(told)
}

/// What is asked for, by the words and what belongs to them.
fn read(words: &[OsString], plan: &ScopesPlan) -> Result<Asked, UsageError> {
    let wrong = |what: String| Err(UsageError(what));
    let Some((verb, names)) = words.split_first() else {
        return wrong(format!("quota does one of: {FORMS}; name one (see retryx quota --help)"));
    };
    let verb = verb.to_string_lossy();
    if !VERBS.contains(&verb.as_ref()) {
        return wrong(format!(
            "quota: '{verb}' is not one of: {FORMS}; to run a program called quota: retryx -- quota ..."
        ));
    }
    let most = usize::from(verb != "list");
    if let Some(word) = names.get(most) {
        let word = word.to_string_lossy();
        return wrong(match most {
            0 => format!("quota list prints all scopes, but '{word}' was given; to print one: retryx quota show NAME"),
            _ => format!("quota {verb} takes one name, but '{word}' was given too; put a name with spaces in quotes"),
        });
    }
    if verb != "set" {
        let tokens = plan.tokens.is_some().then_some("--tokens");
        if let Some(place) = tokens.or(plan.for_a_beginning.first().map(String::as_str)) {
            return wrong(format!("{place} is for quota set; quota {verb} has nothing to do with it: leave it out"));
        }
    }
    if verb == "list" {
        return Ok(Asked::List);
    }
    let Some(word) = names.first() else {
        return wrong(format!("quota {verb} needs the name of a scope; retryx quota list prints those there are"));
    };
    let Some(name) = word.to_str().and_then(ScopeName::new) else {
        let word = word.to_string_lossy();
        return wrong(format!("quota {verb}: '{word}' is no name of a scope; valid is {}", ScopeName::FORM));
    };
    match (verb.as_ref(), plan.tokens) {
        ("show", _) => Ok(Asked::Show(name)),
        ("reset", _) => Ok(Asked::Reset(name)),
        (_, Some(tokens)) => Ok(Asked::Set(name, tokens)),
        (_, None) => wrong("quota set needs --tokens N: a whole number, at most the scope's capacity".into()),
    }
}

/// Refuses more tokens than the scope can hold.
fn check_room(plan: &ScopesPlan, name: &ScopeName, tokens: u32, known: Option<&RetryQuota>) -> Result<(), UsageError> {
    let capacity = known.map_or(plan.beginning.capacity, |known| known.plan().capacity);
    if tokens <= capacity {
        return Ok(());
    }
    let what = match known {
        Some(_) => format!("scope '{name}' can hold: its runs say how many these are, with --quota-capacity"),
        None => "a scope that begins can hold: raise --quota-capacity".to_owned(),
    };
    Err(UsageError(format!("--tokens: '{tokens}' is more than the {capacity} that {what}")))
}

/// That options are left aside, because the scope has numbers already that differ from them.
fn left_aside(plan: &ScopesPlan, name: &ScopeName, known: &RetryQuota) -> Option<String> {
    let (known, new) = (known.plan(), plan.beginning);
    let differs = (known.capacity, known.refill) != (new.capacity, new.refill);
    (differs && !plan.for_a_beginning.is_empty()).then(|| {
        let places = plan.for_a_beginning.join(", ");
        let are = if plan.for_a_beginning.len() > 1 { "are" } else { "is" };
        format!("scope '{name}' is there already and keeps the numbers of its last run: {places} {are} left aside")
    })
}

fn one(plan: &ScopesPlan, scope: &ScopeState, place: &str, now: SystemTime) -> String {
    if plan.json { line_of(&object(scope, place)) } else { card(scope, place, now) }
}

fn line_of(value: &Value) -> String {
    format!("{value}\n")
}

/// A scope as JSON.
fn object(scope: &ScopeState, place: &str) -> Value {
    let quota = scope.budget.quota.as_ref();
    let limiter = &scope.budget.limiter;
    json!({
        "scope": scope.name.as_str(),
        "store": place,
        "tokens": quota.map(RetryQuota::tokens),
        "capacity": quota.map(|quota| quota.plan().capacity),
        "refill_per_second": quota.map(|quota| per_second(quota.plan().refill)),
        "limiter": {
            "enabled": limiter.is_enabled(),
            "fill_rate": limiter.fill_rate(),
            "measured_rate": limiter.measured_rate(),
        },
        "updated": stamp(scope.updated),
    })
}

/// A scope for people.
fn card(scope: &ScopeState, place: &str, now: SystemTime) -> String {
    let budget = &scope.budget;
    let refill = budget.quota.as_ref().map_or_else(none, |quota| match full_in(quota) {
        Some(time) => format!("{}; full in {}", refill(quota), human(time)),
        None => refill(quota),
    });
    let updated = stamp(scope.updated).map(|stamp| format!("{stamp}, {}", ago(scope.updated, now)));
    let lines = [
        ("scope", shown(scope.name.as_str())),
        ("tokens", tokens(budget.quota.as_ref())),
        ("refill", refill),
        ("limiter", limiter(&budget.limiter)),
        ("updated", updated.unwrap_or_else(none)),
        ("store", place.replace(char::is_control, "\u{fffd}")),
    ];
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{:<9}{value}", format!("{name}:"));
        text
    })
}

/// All scopes for people; nothing where there are none.
fn table(scopes: &[ScopeState], now: SystemTime) -> String {
    if scopes.is_empty() {
        return String::new();
    }
    let heading = ["scope", "tokens", "refill", "limiter", "used"].map(str::to_owned);
    let rows = scopes.iter().map(|scope| {
        let quota = scope.budget.quota.as_ref();
        let refill = quota.map_or_else(none, refill);
        let limiter = limiter(&scope.budget.limiter);
        [shown(scope.name.as_str()), tokens(quota), refill, limiter, ago(scope.updated, now)]
    });
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

fn none() -> String {
    "none".to_owned()
}

/// A name for a terminal: plain where it is, else in quotes and without what could move the
/// cursor or turn the writing around.
fn shown(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_alphanumeric() || "-_./:@+".contains(c));
    if plain { name.to_owned() } else { format!("{name:?}") }
}

fn tokens(quota: Option<&RetryQuota>) -> String {
    quota.map_or_else(|| "no quota".to_owned(), |quota| format!("{} of {}", quota.tokens(), quota.plan().capacity))
}

fn limiter(limiter: &RateLimiter) -> String {
    if limiter.is_enabled() {
        let (rate, measured) = (number(limiter.fill_rate()), number(limiter.measured_rate()));
        format!("{rate} attempts a second (measured {measured})")
    } else {
        "off".to_owned()
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact to fifteen digits, for readers")]
fn per_second(refill: u64) -> f64 {
    refill as f64 / NANO as f64
}

/// A refill in the shortest time in which a whole token comes in.
fn refill(quota: &RetryQuota) -> String {
    let rate = per_second(quota.plan().refill);
    let units = [(1.0, "a second"), (60.0, "a minute"), (3600.0, "an hour"), (86400.0, "a day")];
    // As it is shown: a rate is cut at billionths, which would make 59.99 of one a minute.
    match units.iter().find(|(seconds, _)| rate * seconds >= 0.995) {
        Some((seconds, unit)) => format!("{} {unit}", number(rate * seconds)),
        None if rate > 0.0 => "less than 1 a day".to_owned(),
        None => none(),
    }
}

/// The time until the bucket is full, in whole seconds, to the nearest; `None` where it is, or
/// never will be.
fn full_in(quota: &RetryQuota) -> Option<Duration> {
    let missing =
        (u64::from(quota.plan().capacity) * NANO).checked_sub(quota.level()).filter(|missing| *missing > 0)?;
    let refill = Some(quota.plan().refill).filter(|refill| *refill > 0)?;
    Some(Duration::from_secs(((missing + refill / 2) / refill).max(1)))
}

/// At most two places behind the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ago(then: SystemTime, now: SystemTime) -> String {
    match now.duration_since(then).map(|age| age.as_secs()) {
        Ok(seconds @ 1..) => format!("{} ago", human(Duration::from_secs(seconds))),
        // Two clocks differ by a little.
        Ok(0) | Err(_) => "just now".to_owned(),
    }
}

/// A time stamp; `None` for one that is not between the years 1970 and 9999.
fn stamp(moment: SystemTime) -> Option<String> {
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    let range = SystemTime::UNIX_EPOCH..SystemTime::UNIX_EPOCH.checked_add(LAST)?;
    range.contains(&moment).then(|| humantime::format_rfc3339_millis(moment).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Verbosity;
    use crate::policy::{Budget, BudgetPlan, Entry, Operation, QuotaPlan, Start};
    use crate::store::Looked;
    use crate::store::{Applied, StorePlan};

    /// Scopes in memory; without any, one that nobody can read.
    struct Kept(Option<Vec<ScopeState>>);

    fn away() -> Unshared {
        Unshared("the store is away".into())
    }

    impl StateStore for Kept {
        fn apply(
            &mut self,
            _: &Scope,
            _: &BudgetPlan,
            _: &Operation,
            _: Option<Duration>,
        ) -> Result<Applied, Unshared> {
            Err(away())
        }
        fn list(&mut self) -> Result<Vec<Looked>, Unshared> {
            let scopes = self.0.clone().ok_or_else(away)?;
            Ok(scopes.into_iter().map(Ok).collect())
        }
        fn show(&mut self, name: &ScopeName) -> Result<Option<Looked>, Unshared> {
            Ok(self.list()?.into_iter().flatten().find(|scope| scope.name == *name).map(Ok))
        }
        fn reset(&mut self, name: &ScopeName) -> Result<(bool, Option<String>), Unshared> {
            Ok((self.show(name)?.is_some(), None))
        }
        fn set(
            &mut self,
            scope: &Scope,
            tokens: u32,
            beginning: QuotaPlan,
        ) -> Result<(ScopeState, Option<String>), Unshared> {
            let known = self.show(&scope.name)?.transpose()?.and_then(|scope| scope.budget.quota);
            let plan = known.map_or(beginning, |known| known.plan());
            let quota = RetryQuota::with_tokens(plan, tokens);
            Ok((state(scope.name.as_str(), Some(quota), RateLimiter::new()), None))
        }
        fn place(&self) -> String {
            "/state".into()
        }
    }

    /// 2026-01-02T03:04:05.678Z.
    const UPDATED: Duration = Duration::from_millis(1_767_323_045_678);

    fn state(name: &str, quota: Option<RetryQuota>, limiter: RateLimiter) -> ScopeState {
        let budget = Budget { quota, limiter, now: Duration::ZERO };
        ScopeState { name: ScopeName::new(name).unwrap(), budget, updated: SystemTime::UNIX_EPOCH + UPDATED }
    }

    fn hourly() -> QuotaPlan {
        let refill = QuotaPlan::refill_that_fills(500, Duration::from_secs(3600));
        QuotaPlan { refill, ..QuotaPlan::default() }
    }

    fn kept() -> Kept {
        let mut paced = Budget::default();
        let entry = Entry::Retry { cost: 5, start: Some(Start { delay: Duration::ZERO, longest: None }) };
        let plan = BudgetPlan { quota: None, limiter: true };
        paced.apply(&plan, &Operation::Book { throttled: true, entry }, Duration::ZERO);
        let few = RetryQuota::with_tokens(hourly(), 486);
        let drained = RetryQuota::with_tokens(QuotaPlan { capacity: 10, refill: 0, ..QuotaPlan::default() }, 0);
        Kept(Some(vec![
            state("a \u{202e}b", Some(drained), RateLimiter::new()),
            state("paced", None, paced.limiter),
            state("shop/api", Some(few), RateLimiter::new()),
        ]))
    }

    fn plan() -> ScopesPlan {
        ScopesPlan {
            store: StorePlan::Folder(None),
            ttl: Duration::from_secs(3600),
            beginning: hourly(),
            for_a_beginning: Vec::new(),
            tokens: None,
            json: false,
            verbosity: Verbosity::Normal,
        }
    }

    fn ask(plan: &ScopesPlan, words: &[&str], store: &mut Kept) -> Result<Told, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let now = SystemTime::UNIX_EPOCH + UPDATED + Duration::from_secs(182);
        answer(plan, &words, store, now).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scope_for_people() {
        let told = ask(&plan(), &["show", "shop/api"], &mut kept()).unwrap();
        let expected = "scope:   shop/api\n\
                        tokens:  486 of 500\n\
                        refill:  8.33 a minute; full in 101 s\n\
                        limiter: off\n\
                        updated: 2026-01-02T03:04:05.678Z, 3m 2s ago\n\
                        store:   /state\n";
        assert_eq!(told, Told { printed: expected.to_owned(), said: Vec::new() });
    }

    #[test]
    fn all_scopes_for_people_and_no_name_moves_their_terminal() {
        let told = ask(&plan(), &["list"], &mut kept()).unwrap();
        let expected = "\
scope          tokens      refill         limiter                             used
\"a \\u{202e}b\"  0 of 10     none           off                                 3m 2s ago
paced          no quota    none           0.5 attempts a second (measured 0)  3m 2s ago
shop/api       486 of 500  8.33 a minute  off                                 3m 2s ago
";
        assert_eq!(told.printed, expected);
        let none = ask(&plan(), &["list"], &mut Kept(Some(Vec::new()))).unwrap();
        assert_eq!(none, Told { printed: String::new(), said: vec!["there are no scopes in /state".into()] });
    }

    #[test]
    fn json_has_the_fields_of_the_contract() {
        let json = ScopesPlan { json: true, ..plan() };
        let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let told = ask(&json, &["show", "shop/api"], &mut kept()).unwrap();
        let off = json!({ "enabled": false, "fill_rate": 0.0, "measured_rate": 0.0 });
        let expected = json!({
            "scope": "shop/api", "store": "/state", "tokens": 486, "capacity": 500,
            "refill_per_second": 0.138_888_888, "limiter": off, "updated": "2026-01-02T03:04:05.678Z",
        });
        assert_eq!(parse(&told.printed), expected);
        let all = parse(&ask(&json, &["list"], &mut kept()).unwrap().printed);
        assert_eq!(all[0]["scope"], "a \u{202e}b");
        assert_eq!(all[1]["tokens"], Value::Null);
        assert_eq!(all[1]["limiter"]["enabled"], true);
        assert_eq!(all[2], expected);
        let none = ask(&json, &["list"], &mut Kept(Some(Vec::new()))).unwrap();
        assert_eq!(none.printed, "[]\n");
    }

    #[test]
    fn what_is_set_keeps_to_the_capacity_and_leaves_the_numbers_of_runs_alone() {
        let set = |tokens, capacity, name: &str| {
            let beginning = QuotaPlan { capacity, ..hourly() };
            let for_a_beginning = vec!["--quota-capacity".to_owned()];
            let plan = ScopesPlan { tokens: Some(tokens), beginning, for_a_beginning, ..plan() };
            ask(&plan, &["set", name], &mut kept())
        };
        let begun = set(700, 800, "new").unwrap();
        assert!(begun.printed.contains("tokens:  700 of 800") && begun.said.is_empty(), "{begun:?}");
        let kept = set(7, 800, "shop/api").unwrap();
        assert!(kept.printed.contains("tokens:  7 of 500"), "{kept:?}");
        assert!(kept.said[0].contains("--quota-capacity is left aside"));
        assert_eq!(set(7, 500, "shop/api").unwrap().said, Vec::<String>::new());
        assert!(set(900, 800, "new").unwrap_err().contains("'900' is more than the 800"));
        assert!(set(700, 800, "shop/api").unwrap_err().contains("'700' is more than the 500 that scope 'shop/api'"));
    }

    #[test]
    fn a_store_that_is_away_is_told_in_its_words_and_a_scope_that_is_not_there_by_name() {
        for words in [&["list"][..], &["show", "x"], &["reset", "x"], &["set", "x"]] {
            let plan = ScopesPlan { tokens: (words[0] == "set").then_some(1), ..plan() };
            assert_eq!(ask(&plan, words, &mut Kept(None)).unwrap_err(), "the store is away");
        }
        let unknown = ask(&plan(), &["show", "x"], &mut kept()).unwrap_err();
        assert!(unknown.starts_with("there is no scope 'x' in /state; "), "{unknown}");
        let told = ask(&plan(), &["reset", "x"], &mut kept()).unwrap();
        assert!(told.said[0].contains("'x'"));
        assert_eq!(ask(&plan(), &["reset", "paced"], &mut kept()).unwrap(), Told::default());
    }

    #[test]
    fn numbers_and_moments_of_any_size_are_shown() {
        for (refill_rate, shown) in [
            (0, "none"),
            (1, "less than 1 a day"),
            (NANO / 60, "1 a minute"),
            (NANO / 3600, "1 an hour"),
            (NANO / 3700, "23.35 a day"),
            (NANO / 2, "30 a minute"),
            (NANO * 1_000_000, "1000000 a second"),
        ] {
            let plan = QuotaPlan { refill: refill_rate, ..QuotaPlan::default() };
            assert_eq!(refill(&RetryQuota::full(plan)), shown);
        }
        let slow = QuotaPlan { capacity: u32::MAX, refill: 1, ..QuotaPlan::default() };
        assert_eq!(full_in(&RetryQuota::with_tokens(slow, 0)).map(human).as_deref(), Some("endless"));
        assert_eq!(full_in(&RetryQuota::full(slow)), None);
        let epoch = SystemTime::UNIX_EPOCH;
        for moment in [epoch.checked_sub(UPDATED), epoch.checked_add(Duration::from_secs(1 << 62))] {
            assert_eq!(moment.and_then(stamp), None);
        }
        assert_eq!(ago(epoch + UPDATED, epoch), "just now");
    }
}
