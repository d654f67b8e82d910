//! Scopes in Redis, or Valkey: for fleets.
//!
//! A scope is a hash, `retryx:scope:{NAME}`, whose fields people can read; it expires when
//! it was not used for its time to live. An operation is one script that the server runs at
//! once and as a whole, sent in one request and never twice; time is the server's. The text of
//! the script goes along each time, so that a server that forgot it costs no second request.
//! What the script does is what [`Budget::apply`] does, which the tests compare. It needs
//! Redis 5 or later.

mod address;
mod link;
mod protocol;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use self::link::{Link, Patience};
use self::protocol::{Reply, pack};
use super::{Applied, Looked, Scope, ScopeName, ScopeState, StateStore, Unshared};
use crate::net::percent_decoded;
use crate::policy::{
    Answer, Budget, BudgetPlan, Entry, FIRST_SUCCESS_REFUND, Grant, NANO, Operation, QuotaPlan, RateLimiter,
    RetryQuota, Start,
};

pub use address::RedisAddress;

/// The script that the server runs, without what is there for its readers only.
pub const SCRIPT: &str = match str::from_utf8(LEAN.0.split_at(LEAN.1).0) {
    Ok(script) => script,
    Err(_) => panic!("the script is text"),
};

const SOURCE: &[u8] = include_bytes!("scope.lua");

/// The script without comments, indentation and empty lines, and its length.
const LEAN: ([u8; SOURCE.len()], usize) = {
    let (mut lean, mut length, mut at) = ([0; SOURCE.len()], 0, 0);
    while at < SOURCE.len() {
        while at < SOURCE.len() && (SOURCE[at] == b' ' || SOURCE[at] == b'\n') {
            at += 1;
        }
        let is_comment = at + 1 < SOURCE.len() && SOURCE[at] == b'-' && SOURCE[at + 1] == b'-';
        while at < SOURCE.len() {
            if !is_comment {
                lean[length] = SOURCE[at];
                length += 1;
            }
            at += 1;
            if SOURCE[at - 1] == b'\n' {
                break;
            }
        }
    }
    (lean, length)
};

/// How long an operation of a run may take, names and handshakes included, where the address
/// says nothing else (design §6).
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the others may take at least, for which somebody waits.
const ADMINISTRATION: Duration = Duration::from_secs(5);

/// The longest time to live: a server refuses one that passes the end of its calendar.
const LONGEST_TTL: Duration = Duration::from_secs(100 * 31_557_600);

/// The longest wait for a token of the rate limiter, whose least rate is half an attempt a
/// second; nobody else makes a run wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The most scopes that are listed.
const MOST_SCOPES: usize = 100_000;

/// The scopes that are asked for in one go.
const BATCH: usize = 64;

/// The keys that are looked through in one go: some milliseconds of a server's time.
const LOOKED_THROUGH: &str = "10000";

/// What the keys of scopes begin with, and what those of damaged ones do.
const PREFIX: &str = "retryx:scope:{";
const DAMAGED: &str = "retryx:damaged:{";

/// Keeps scopes in a Redis server.
pub struct RedisStore {
    link: Link,
    patience: Duration,
}

impl RedisStore {
    /// A store that touches nothing before it is used. An operation of a run, whatever it
    /// needs, is given up after the timeout of the address, else 200 ms.
    pub fn new(address: RedisAddress) -> Self {
        let patience = address.timeout.unwrap_or(PATIENCE);
        Self { link: Link::new(address), patience }
    }

    /// How much patience there is with what somebody waits for.
    fn administration(&self) -> Patience {
        self.link.patience(self.patience.max(ADMINISTRATION))
    }

    /// Applies an operation by a script that takes and answers what [`SCRIPT`] does.
    pub fn apply_by(
        &mut self,
        script: &str,
        scope: &Scope,
        plan: &BudgetPlan,
        operation: &Operation,
    ) -> Result<Applied, Unshared> {
        self.operate(script, scope, plan, operation, self.patience)
    }

    fn operate(
        &mut self,
        script: &str,
        scope: &Scope,
        plan: &BudgetPlan,
        operation: &Operation,
        patience: Duration,
    ) -> Result<Applied, Unshared> {
        let mut words = vec![match operation {
            Operation::Take => "take".to_owned(),
            Operation::Book { .. } => "book".to_owned(),
        }];
        words.extend(beginning(scope, plan.limiter, plan.quota));
        words.extend(arguments(operation));
        let patience = self.link.patience(patience);
        let reply = self.run(script, &scope.name, &words, patience)?;
        let list = if let Reply::List(list) = &reply { &list[..] } else { &[] };
        let [grant, wait, tokens, now, wrong] = list else { return Err(self.strange()) };
        let grant = match grant {
            Reply::Integer(0) => Grant::Granted,
            Reply::Integer(1) => Grant::Refused,
            Reply::Integer(2) if may_be_too_late(operation) => Grant::TooLate,
            _ => return Err(self.strange()),
        };
        let wait = wait.whole().map(Duration::from_micros).filter(|wait| *wait <= LONGEST_WAIT);
        let (Some(wait), Some(now)) = (wait, now.whole()) else { return Err(self.strange()) };
        let tokens = tokens.whole().and_then(|tokens| u32::try_from(tokens).ok());
        if plan.quota.is_some() != tokens.is_some() {
            return Err(self.strange());
        }
        let answer = Answer { grant, wait, tokens, now: Duration::from_micros(now) };
        let notice =
            Some(wrong.text()).filter(|wrong| !wrong.is_empty()).map(|wrong| self.damaged(&scope.name, &wrong));
        Ok(Applied { answer, notice })
    }

    /// Runs the script on a scope.
    fn run(&mut self, script: &str, name: &ScopeName, words: &[String], patience: Patience) -> Result<Reply, Unshared> {
        let request = self.request(script, name, words);
        let replies = self.link.ask(&[request], patience)?;
        match replies.into_iter().next() {
            Some(Reply::Error(error)) => Err(self.refused(&Reply::Error(error))),
            Some(reply) => Ok(reply),
            None => Err(self.strange()),
        }
    }

    fn request(&self, script: &str, name: &ScopeName, words: &[String]) -> Vec<u8> {
        let keys = [PREFIX, DAMAGED].map(|prefix| key(prefix, name));
        let database = self.link.address().database.to_string();
        let head = ["EVAL", script, "2", &keys[0], &keys[1], &database];
        pack(&head.into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>())
    }

    fn refused(&self, error: &Reply) -> Unshared {
        Unshared(format!("{}: {}", self.link.address(), words::refusal(&error.text())))
    }

    fn strange(&self) -> Unshared {
        Unshared(format!("{}: the answer is none to what was asked; is this a Redis server?", self.link.address()))
    }

    fn damaged(&self, name: &ScopeName, wrong: &str) -> String {
        let address = self.link.address();
        let wrong = said_of(wrong);
        let place = key(DAMAGED, name);
        format!("scope '{name}' at {address} was damaged: {wrong}; it is set aside as {place} and starts afresh")
    }

    /// The keys of all scopes.
    fn names(&mut self, patience: Patience) -> Result<BTreeSet<ScopeName>, Unshared> {
        let mut names = BTreeSet::new();
        let mut cursor = "0".to_owned();
        loop {
            let database = self.link.address().database;
            let pattern = format!("{PREFIX}*");
            let select = (database > 0).then(|| pack(&["SELECT", &database.to_string()]));
            let scan = pack(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", LOOKED_THROUGH]);
            let requests: Vec<_> = select.into_iter().chain([scan]).collect();
            let replies = self.link.ask(&requests, patience).map_err(|Unshared(why)| match &cursor[..] {
                "0" => Unshared(why),
                _ => Unshared(format!(
                    "{why}: so many keys were not all looked through; ?timeout=10 in the address gives it longer, and retryx \
                     quota show NAME needs none of them"
                )),
            })?;
            if let Some(error) = replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
                return Err(self.refused(error));
            }
            let Some(Reply::List(scanned)) = replies.last() else { return Err(self.strange()) };
            let [next, Reply::List(keys)] = &scanned[..] else { return Err(self.strange()) };
            names.extend(keys.iter().filter_map(|key| name_of(&key.text())));
            if names.len() > MOST_SCOPES {
                let address = self.link.address();
                return Err(Unshared(format!("{address}: there are more than {MOST_SCOPES} scopes")));
            }
            cursor = next.text();
            if cursor == "0" || cursor.is_empty() {
                return Ok(names);
            }
        }
    }

    /// What a script showed. `None` where there is no such scope, or it is damaged: the second
    /// says how.
    fn shown(&self, name: &ScopeName, reply: &Reply) -> Result<(Option<ScopeState>, String), Unshared> {
        let list = if let Reply::List(list) = reply { &list[..] } else { &[] };
        let Some((Reply::Integer(there), rest)) = list.split_first() else { return Err(self.strange()) };
        let texts: Vec<String> = rest.iter().map(Reply::text).collect();
        let wrong = texts.first().cloned().unwrap_or_default();
        if *there == 0 {
            return Ok((None, wrong));
        }
        let state = state(name, &texts).ok_or_else(|| self.strange())?;
        Ok((Some(state), wrong))
    }

    /// The scope that a script showed, if there is one.
    fn standing(&self, name: &ScopeName, reply: &Reply) -> Result<Option<ScopeState>, Unshared> {
        match self.shown(name, reply)? {
            (None, wrong) if !wrong.is_empty() => {
                let (address, wrong) = (self.link.address(), said_of(&wrong));
                Err(Unshared(format!(
                    "scope '{name}' at {address} is damaged: {wrong}; the next run sets it aside and starts afresh"
                )))
            }
            (state, _) => Ok(state),
        }
    }
}

impl StateStore for RedisStore {
    fn apply(
        &mut self,
        scope: &Scope,
        plan: &BudgetPlan,
        operation: &Operation,
        left: Option<Duration>,
    ) -> Result<Applied, Unshared> {
        let patience = left.map_or(self.patience, |left| left.min(self.patience));
        self.operate(SCRIPT, scope, plan, operation, patience)
    }

    fn list(&mut self) -> Result<Vec<Looked>, Unshared> {
        let patience = self.administration();
        let names: Vec<_> = self.names(patience)?.into_iter().collect();
        let mut states = Vec::new();
        for names in names.chunks(BATCH) {
            let requests: Vec<_> = names.iter().map(|name| self.request(SCRIPT, name, &["show".into()])).collect();
            for (name, reply) in names.iter().zip(self.link.ask(&requests, patience)?) {
                if matches!(reply, Reply::Error(_)) {
                    return Err(self.refused(&reply));
                }
                states.extend(self.standing(name, &reply).transpose());
            }
        }
        Ok(states)
    }

    fn show(&mut self, name: &ScopeName) -> Result<Option<Looked>, Unshared> {
        let patience = self.administration();
        let reply = self.run(SCRIPT, name, &["show".into()], patience)?;
        Ok(self.standing(name, &reply).transpose())
    }

    fn reset(&mut self, name: &ScopeName) -> Result<(bool, Option<String>), Unshared> {
        let patience = self.administration();
        let reply = self.run(SCRIPT, name, &["reset".into()], patience)?;
        let list = if let Reply::List(list) = &reply { &list[..] } else { &[] };
        let [Reply::Integer(there @ (0 | 1)), wrong] = list else { return Err(self.strange()) };
        let wrong = Some(wrong.text()).filter(|wrong| !wrong.is_empty());
        Ok((*there == 1, wrong.map(|wrong| self.damaged(name, &wrong))))
    }

    fn set(&mut self, scope: &Scope, tokens: u32, plan: QuotaPlan) -> Result<(ScopeState, Option<String>), Unshared> {
        let mut words = vec!["set".to_owned()];
        words.extend(beginning(scope, false, Some(plan)));
        words.push(tokens.to_string());
        let patience = self.administration();
        let reply = self.run(SCRIPT, &scope.name, &words, patience)?;
        let (state, wrong) = self.shown(&scope.name, &reply)?;
        let notice = (!wrong.is_empty()).then(|| self.damaged(&scope.name, &wrong));
        Ok((state.ok_or_else(|| self.strange())?, notice))
    }

    fn place(&self) -> String {
        self.link.address().to_string()
    }
}

/// What an operation begins with: time to live, limiter, quota.
fn beginning(scope: &Scope, limiter: bool, quota: Option<QuotaPlan>) -> [String; 4] {
    let ttl = scope.ttl.min(LONGEST_TTL).as_nanos().div_ceil(1_000_000).max(1);
    let flag = u8::from(limiter).to_string();
    let numbers = quota.map_or_else(Default::default, |quota| [quota.capacity.to_string(), quota.refill.to_string()]);
    let [capacity, refill] = numbers;
    [ttl.to_string(), flag, capacity, refill]
}

/// Whether an operation can come to that.
fn may_be_too_late(operation: &Operation) -> bool {
    let Operation::Book { entry: Entry::Retry { start, .. }, .. } = operation else { return false };
    start.is_none_or(|start| start.longest.is_some())
}

/// What the script is told of an operation.
fn arguments(operation: &Operation) -> Vec<String> {
    let Operation::Book { throttled, entry } = operation else { return Vec::new() };
    let mut words = vec![u8::from(*throttled).to_string()];
    match entry {
        Entry::Nothing => words.extend(["nothing".into(), String::new()]),
        Entry::Success { last_cost } => {
            words.extend(["success".into(), last_cost.unwrap_or(FIRST_SUCCESS_REFUND).to_string()]);
        }
        Entry::Retry { cost, start } => {
            words.extend(["retry".into(), cost.to_string()]);
            if let Some(Start { delay, longest }) = start {
                // Beyond that a double is no whole number any more; it is far beyond anything.
                words.push(delay.as_secs().min(1 << 52).to_string());
                words.push(delay.subsec_nanos().to_string());
                words.extend(longest.map(|longest| match longest.checked_sub(*delay) {
                    // Waits are whole microseconds.
                    Some(left) => left.as_micros().min(1 << 52).to_string(),
                    None => "-1".to_owned(),
                }));
            }
        }
    }
    words
}

/// The key of a scope. Braces make Redis's clusters keep both keys of a scope together.
fn key(prefix: &str, name: &ScopeName) -> String {
    let mut key = prefix.to_owned();
    for c in name.as_str().chars() {
        if "%{}".contains(c) {
            let _ = write!(key, "%{:02X}", u32::from(c));
        } else {
            key.push(c);
        }
    }
    key.push('}');
    key
}

/// The scope of a key, if it is one's.
fn name_of(text: &str) -> Option<ScopeName> {
    let encoded = text.strip_prefix(PREFIX)?.strip_suffix('}')?;
    let name = ScopeName::new(&String::from_utf8(percent_decoded(encoded)).ok()?)?;
    (key(PREFIX, &name) == text).then_some(name)
}

/// What is wrong with a state.
fn said_of(wrong: &str) -> String {
    match wrong {
        "type" => "its key holds no hash".to_owned(),
        "schema" => "it is not of schema 1".to_owned(),
        field => format!("its {} is no good number", words::shown(field)),
    }
}

/// The limiter's numbers, in the order in which the script shows them.
const LIMITER: [&str; 10] = [
    "fill_rate",
    "max_capacity",
    "capacity",
    "refilled",
    "measured",
    "slot",
    "count",
    "last_max",
    "last_throttle",
    "window",
];

/// A state from what a script showed after the flag in front.
fn state(name: &ScopeName, texts: &[String]) -> Option<ScopeState> {
    let [_, updated, now, rest @ ..] = texts else { return None };
    let [capacity, refill, tokens, billionths, remainder, enabled, limiter @ ..] = rest else { return None };
    let now = Duration::from_micros(now.parse().ok()?);
    let quota = if capacity.is_empty() {
        None
    } else {
        let plan = QuotaPlan { capacity: capacity.parse().ok()?, refill: refill.parse().ok()?, ..QuotaPlan::default() };
        let tokens: u32 = tokens.parse().ok()?;
        let level = (u64::from(tokens) * NANO).saturating_add(billionths.parse().ok()?);
        Some(RetryQuota::restore(plan, level, remainder.parse().ok()?, now))
    };
    if limiter.len() != LIMITER.len() {
        return None;
    }
    let limiter = if limiter[0].is_empty() {
        RateLimiter::new()
    } else {
        let mut numbers = serde_json::Map::new();
        numbers.insert("enabled".into(), (enabled == "1").into());
        for (field, text) in LIMITER.iter().zip(limiter) {
            numbers.insert((*field).to_owned(), text.parse::<f64>().ok()?.into());
        }
        serde_json::from_value(numbers.into()).ok()?
    };
    let updated = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(updated.parse().ok()?))?;
    Some(ScopeState { name: name.clone(), budget: Budget { quota, limiter, now }, updated })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_out_of_keys() {
        for name in ["x", "a:b", "ä ö", "{}%", "}", "%7B"] {
            let name = ScopeName::new(name).unwrap();
            assert_eq!(name_of(&key(PREFIX, &name)), Some(name));
        }
        for key in ["retryx:scope:x", "retryx:scope:{}", "retryx:scope:{a", "retryx:scope:{%61}", "retryx:scope:{a}b}"]
        {
            assert_eq!(name_of(key), None, "{key}");
        }
    }

    #[test]
    fn the_script_is_sent_without_its_comments() {
        let whole = include_str!("scope.lua").lines().map(str::trim);
        let lean = whole.filter(|line| !line.is_empty() && !line.starts_with("--"));
        assert!(lean.eq(SCRIPT.lines()) && SCRIPT.ends_with('\n'));
        assert_eq!(SCRIPT.matches("redis.call('TIME')").count(), 1);
        // The most that servers take from somebody who has not given a password yet.
        assert!(SCRIPT.len() < 16 * 1024);
    }
}
