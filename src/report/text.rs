//! Messages for people: one line an event on standard error, each with one write.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::{Duration, SystemTime};

use super::{Event, Reporter, Summary, cursor, write_line};
use crate::clock::wall;
use crate::config::{Plan, Verbosity};
use crate::policy::{
    Class, DelaySource, Formula, Jitter, Obstacle, Outcome, Passed, Retry, SessionPlan, StopReason, TimeLimit, Verdict,
};
use crate::process::{Source, Wrote};
use crate::units::human;

/// Writes one line, prefixed `retryx: `, to standard error. Line breaks and other control
/// characters in it become spaces. A standard error that is closed, or that nobody reads,
/// loses the line.
pub fn say(line: &str) {
    let mut text = String::with_capacity(line.len() + 10);
    text.push_str(if cursor::leave_line() { "\nretryx: " } else { "retryx: " });
    text.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
    text.push('\n');
    // What cannot be told is told to nobody.
    let _ = write_line(rustix::stdio::stderr(), text.as_bytes());
}

/// What an outcome is called in messages.
pub fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("exit status {code}"),
        Outcome::Responded(status) => format!("HTTP status {status}"),
        Outcome::Signaled(signal) => format!("killed by {signal}"),
        Outcome::TransportFailed { error, .. } => error.clone(),
        Outcome::Interrupted(signal) => format!("cut off by {signal}"),
        Outcome::TimedOut(TimeLimit::Attempt(limit)) => {
            format!("ended by --timeout {}", human(*limit))
        }
        Outcome::TimedOut(TimeLimit::Idle(limit)) => {
            format!("ended by --idle-timeout {}", human(*limit))
        }
        Outcome::TimedOut(TimeLimit::Connect(limit)) => {
            format!("no connection within --connect-timeout {}", human(*limit))
        }
        Outcome::TimedOut(TimeLimit::Total(limit)) => {
            format!("ended by --total-timeout {}", human(*limit))
        }
        Outcome::TimedOut(TimeLimit::KillAfter(limit)) => {
            format!("not ended {} after SIGTERM (--kill-after)", human(*limit))
        }
        Outcome::NotStarted { error, .. } => format!("cannot be started: {error}"),
    }
}

/// A point in time as people and programs read it; `None` for one that no calendar has.
fn moment_after(now: SystemTime, wait: Duration) -> Option<String> {
    let moment = now.checked_add(wait)?;
    let end = SystemTime::UNIX_EPOCH.checked_add(LAST_MOMENT)?;
    (moment < end).then(|| humantime::format_rfc3339_seconds(moment).to_string())
}

/// The end of the year 9999, after which dates are written differently.
const LAST_MOMENT: Duration = Duration::from_secs(253_402_300_799);

/// The most different outcomes in a row that the last message lists.
const LISTED: usize = 8;

/// Neighbouring attempts that ended in the same way.
struct Group {
    first: u64,
    last: u64,
    words: String,
}

/// The reporter for people.
pub struct Text<'a> {
    plan: &'a Plan,
    verbosity: Verbosity,
    groups: Vec<Group>,
    left_out: bool,
    class: Class,
    /// The rule that judged the last attempt.
    rule: String,
    /// What is to be advised, once.
    advice: Option<String>,
    advised: bool,
}

impl<'a> Text<'a> {
    /// A reporter that says as much as the plan asks for.
    pub fn new(plan: &'a Plan) -> Self {
        let verbosity = plan.verbosity;
        let (groups, class, rule) = (Vec::new(), Class::Success, String::new());
        Self { plan, verbosity, groups, left_out: false, class, rule, advice: None, advised: false }
    }

    fn note(&mut self, attempt: u64, outcome: &Outcome, verdict: &Verdict) {
        let words = match outcome {
            Outcome::Exited(0) if verdict.class != Class::Success => {
                format!("exit status 0, a failure by {}", verdict.rule)
            }
            Outcome::Responded(200..400) if verdict.class != Class::Success => {
                format!("{}, a failure by {}", describe(outcome), verdict.rule)
            }
            _ => describe(outcome),
        };
        let full = self.groups.len() == LISTED;
        match self.groups.last_mut() {
            Some(group) if group.words == words => group.last = attempt,
            Some(group) if full => {
                // The first failures tell most; of the rest the latest is kept.
                self.left_out = true;
                *group = Group { first: attempt, last: attempt, words };
            }
            _ => self.groups.push(Group { first: attempt, last: attempt, words }),
        }
    }

    fn last_words(&self) -> &str {
        self.groups.last().map_or("", |group| &group.words)
    }

    fn attempt_of(&self, attempt: u64) -> String {
        match self.plan.session.limits.max_attempts.map(NonZeroU64::get) {
            Some(most) if most < u64::MAX => format!("attempt {attempt} of {most}"),
            _ => format!("attempt {attempt}"),
        }
    }

    fn attempt_finished(&mut self, attempt: u64, outcome: &Outcome, verdict: &Verdict, duration: Duration) {
        self.note(attempt, outcome, verdict);
        self.class = verdict.class;
        self.rule = verdict.rule.to_string();
        self.advice = verdict.advice.as_deref().map(str::to_owned);
        if self.verbosity >= Verbosity::Verbose {
            say(&format!(
                "{}: {} after {}: {} (rule {})",
                self.attempt_of(attempt),
                describe(outcome),
                human(duration),
                verdict.class,
                verdict.rule
            ));
        }
    }

    /// Says what the user could do, once in a run.
    fn advise(&mut self) {
        if let (Some(advice), false) = (&self.advice, self.advised) {
            say(&format!("hint: {advice}"));
            self.advised = true;
        }
    }

    fn retry_scheduled(&mut self, retry: &Retry, wrote: Wrote, is_shared: bool) {
        let mut line = format!("{} failed: {} ({})", self.attempt_of(retry.attempt - 1), self.last_words(), self.class);
        match retry.delay.wait {
            Duration::ZERO => line.push_str("; retrying at once"),
            wait => {
                let _ = write!(line, "; retrying in {}", human(wait));
            }
        }
        line.push_str(match wrote {
            Wrote::No => "",
            Wrote::Perhaps => "; it may have written to stdout (see --stdout final)",
            Wrote::Yes => "; it had written to stdout (see --stdout final)",
        });
        say(&line);
        self.advise();
        if self.verbosity >= Verbosity::Verbose {
            say(&self.computation(retry, is_shared));
        }
    }

    /// How a delay came about, with its numbers.
    fn computation(&self, retry: &Retry, is_shared: bool) -> String {
        let rule = &self.plan.session.backoff;
        let delay = &retry.delay;
        let (base, i) = (human(delay.base), delay.exponent);
        let grown = match &rule.formula {
            Formula::Fixed => base,
            Formula::Linear => format!("{base} × {}", i.saturating_add(1)),
            Formula::Exponential { factor } => format!("{base} × {factor}^{i}"),
            Formula::Schedule(_) => format!("--delays number {}", i.saturating_add(1)),
            Formula::Decorrelated => format!("between {base} and 3 × the delay before"),
        };
        let cap = (rule.cap < Duration::MAX).then(|| human(rule.cap));
        let capped = match &cap {
            Some(cap) => format!("min({cap}, {grown})"),
            None => grown.clone(),
        };
        let u = delay.drawn.unwrap_or_default();
        let by_formula = if delay.source == DelaySource::Backoff { "=" } else { "where the formula alone gives" };
        let mut line = format!("delay before attempt {}: {} {by_formula} ", retry.attempt, human(delay.wait));
        let _ = match (&rule.formula, rule.jitter) {
            (Formula::Decorrelated, _) => write!(line, "{capped}, drawn {u:.4}"),
            (_, Jitter::None) => write!(line, "{capped}"),
            (_, Jitter::Full) => write!(line, "{u:.4} × {capped}"),
            (_, Jitter::Equal) => write!(line, "(1/2 + {u:.4}/2) × {capped}"),
            (_, Jitter::Fraction) => match cap {
                Some(cap) => write!(line, "min({cap}, {grown} + {:.4} s)", 1.0 - u),
                None => write!(line, "{grown} + {:.4} s", 1.0 - u),
            },
        };
        if !rule.floor.is_zero() {
            let _ = write!(line, ", at least {}", human(rule.floor));
        }
        match delay.source {
            DelaySource::Backoff => {}
            DelaySource::Server => line.push_str("; the server asked for more"),
            DelaySource::Output => line.push_str("; the output asked for more"),
            DelaySource::Limiter => line.push_str("; the rate limiter has no token before"),
        }
        if let Some(tokens) = retry.quota_left {
            let _ = write!(line, "; {tokens} tokens left in the quota{}", self.of_scope(is_shared));
        }
        line
    }

    /// The scope that has the quota, where one has.
    fn of_scope(&self, is_shared: bool) -> String {
        let scope = self.plan.scope.as_ref().filter(|_| is_shared);
        scope.map(|(scope, _)| format!(" of scope '{}'", scope.name)).unwrap_or_default()
    }

    /// Why the quota pays for no retry.
    fn lack(&self, is_shared: bool) -> String {
        let scope = self.of_scope(is_shared);
        let quota = self.plan.session.budget.quota.unwrap_or_default();
        let (capacity, cost) = (quota.capacity, quota.cost(self.class));
        if cost > capacity {
            format!("the retry quota{scope} holds {capacity} at most, and a retry costs {cost}")
        } else {
            format!("the retry quota{scope} is spent")
        }
    }

    /// Why the quota pays for no retry, and how to see it where others draw on it too.
    fn spent(&self, quota_left: Option<u32>, is_shared: bool) -> String {
        let mut line = self.lack(is_shared);
        if let Some((scope, store)) = self.plan.scope.as_ref().filter(|_| is_shared) {
            let left = quota_left.map(|left| format!("{left} left; ")).unwrap_or_default();
            let (name, options) = (scope.name.as_argument(), store.options());
            let _ = match options {
                Some(options) => write!(line, " ({left}see retryx quota show{options} {name})"),
                None => write!(line, " ({left}see retryx quota show {name} with the same --store)"),
            };
        }
        line
    }

    fn stopped(&mut self, summary: &Summary, elapsed: Duration, spent: &str) {
        if let Some(lost) = &summary.lost {
            say(lost);
        }
        let line = match &summary.reason {
            StopReason::Success => {
                if self.verbosity >= Verbosity::Verbose {
                    say(&format!("succeeded on {} after {}", self.attempt_of(summary.attempts), human(elapsed)));
                }
                return;
            }
            reason => self.failure(reason, summary, elapsed, spent),
        };
        let routine = matches!(self.last_words(), "killed by SIGPIPE" | "exit status 141")
            && summary.attempts == 1
            && matches!(summary.reason, StopReason::Permanent | StopReason::ReaderGone);
        // A command that lost its reader is no news: `yes | head` ends so every time.
        let needed = if routine { Verbosity::Verbose } else { Verbosity::Normal };
        let is_interrupted = matches!(summary.reason, StopReason::Interrupted(_));
        let own = self.last_words().starts_with("cannot be started")
            || matches!(summary.reason, StopReason::Unkillable { .. })
            || (summary.attempts == 0 && !is_interrupted);
        if self.verbosity >= needed || own {
            say(&line);
        }
        if self.verbosity >= Verbosity::Normal {
            self.advise();
        }
    }

    fn failure(&self, reason: &StopReason, summary: &Summary, elapsed: Duration, spent: &str) -> String {
        let (attempts, is_lost) = (summary.attempts, summary.lost.is_some());
        let history = self.history();
        let tries = match attempts {
            1 => "1 attempt".to_owned(),
            _ => format!("{attempts} attempts"),
        };
        match reason {
            StopReason::Success | StopReason::Attempts => {
                format!("giving up after {tries}: {history}")
            }
            StopReason::Permanent if attempts == 1 && history.starts_with("cannot be started") => {
                format!("{}: {history}", self.plan.program())
            }
            StopReason::Permanent if history.ends_with(&format!("a failure by {}", self.rule)) => {
                format!("giving up after {tries}: {history} (permanent)")
            }
            StopReason::Permanent if !self.rule.starts_with("default:") => {
                format!("giving up after {tries}: {history} (permanent: {})", self.rule)
            }
            StopReason::Permanent => {
                format!("giving up after {tries}: {history} (permanent: a retry cannot help)")
            }
            StopReason::Deadline { .. } | StopReason::TotalTimeout if attempts == 0 => self.never_started(reason),
            StopReason::Deadline { delay: Some(delay) } if !delay.is_zero() => format!(
                "giving up after {tries}: {history}; the next delay of {} would pass --deadline {}",
                human(*delay),
                human(self.plan.session.limits.deadline.unwrap_or_default())
            ),
            StopReason::Deadline { .. } => format!(
                "giving up after {tries}: {history}; --deadline {} passed before the next attempt could start",
                human(self.plan.session.limits.deadline.unwrap_or_default())
            ),
            StopReason::TotalTimeout if is_lost => {
                let limit = human(self.plan.session.limits.total_timeout.unwrap_or_default());
                format!(
                    "giving up after {tries}: {history}; --total-timeout {limit} passed before its output was taken"
                )
            }
            StopReason::TotalTimeout if history.contains("--total-timeout") => {
                format!("giving up after {tries}: {history}")
            }
            StopReason::TotalTimeout => format!(
                "giving up after {tries}: {history}; another attempt would pass --total-timeout {}",
                human(self.plan.session.limits.total_timeout.unwrap_or_default())
            ),
            StopReason::ServerDelay { wanted } if human(*wanted) == "endless" => {
                format!("giving up after {tries}: {history}; asked to stay away for longer than any limit")
            }
            StopReason::ServerDelay { wanted } => format!(
                "giving up after {tries}: {history}; asked to stay away for {}{}, longer than {} allows",
                human(*wanted),
                moment_after(wall(), *wanted).map(|moment| format!(", until {moment}")).unwrap_or_default(),
                self.limit_broken_by(*wanted, elapsed)
            ),
            StopReason::Quota => {
                format!("giving up after {tries}: {history}; {spent}")
            }
            StopReason::StdinConsumed if self.plan.supervision.stdin == Source::Replay => {
                format!("giving up after {tries}: {history}; no retry, because not all of standard input is kept")
            }
            StopReason::StdinConsumed => format!(
                "giving up after {tries}: {history}; no retry, because standard input was read from, or may have been, and cannot be \
                 given again: use --stdin replay to keep it for every attempt, --stdin null if the command needs \
                 none, or --stdin inherit to retry with what is left"
            ),
            StopReason::ReaderGone => {
                format!("giving up after {tries}: {history}; no retry, because nobody reads standard output any more")
            }
            StopReason::UnsafeRequest { lost_key: true } => format!(
                "giving up after {tries}: {history}; no retry, because the request may have been acted on, and a redirect led to \
                 another origin, where the idempotency key does not go: give the URL that it led to, or --idempotent if to do it \
                 twice does no harm"
            ),
            StopReason::UnsafeRequest { lost_key: false } => format!(
                "giving up after {tries}: {history}; no retry, because the request may have been acted on, and to do it twice \
                 may do harm: give an --idempotency-key, or --idempotent if it does none"
            ),
            StopReason::PassedOn => format!(
                "giving up after {tries}: {history}; no retry, because a rule found something in a body that was passed on already and \
                 cannot be taken back: -o FILE holds it until it is known to be good"
            ),
            StopReason::Unkillable { pid, error } => format!(
                "giving up after {tries}: {history}; process {pid} is still there: {error}; no attempt is started beside it"
            ),
            StopReason::Interrupted(signal) if attempts == 0 => {
                format!("stopped by {signal} before the first attempt")
            }
            StopReason::Interrupted(signal) if history == format!("killed by {signal}") => {
                format!("stopped by {signal} after {tries}")
            }
            StopReason::Interrupted(signal) => {
                format!("stopped by {signal} after {tries}: {history}")
            }
        }
    }

    /// The limit that a wait breaks which a server or the output asked for.
    fn limit_broken_by(&self, wanted: Duration, elapsed: Duration) -> String {
        let SessionPlan { limits, max_retry_after, .. } = &self.plan.session;
        let (name, limit) = match limits.broken_by_start_at(elapsed.saturating_add(wanted)) {
            _ if wanted > *max_retry_after => ("--max-retry-after", Some(*max_retry_after)),
            Some(Passed::TotalTimeout) => ("--total-timeout", limits.total_timeout),
            _ => ("--deadline", limits.deadline),
        };
        format!("{name} {}", human(limit.unwrap_or_default()))
    }

    /// Why there was no attempt at all: what throttled others holds the first one back too.
    fn never_started(&self, reason: &StopReason) -> String {
        let limits = &self.plan.session.limits;
        let scope = self.of_scope(true);
        match reason {
            StopReason::Deadline { .. } => format!(
                "giving up before the first attempt: the rate limiter{scope} holds it back past --deadline {}",
                human(limits.deadline.unwrap_or_default())
            ),
            _ => format!(
                "giving up before the first attempt: the rate limiter{scope} holds it back past --total-timeout {}",
                human(limits.total_timeout.unwrap_or_default())
            ),
        }
    }

    /// The failures: the one, or all kinds in their order where they differ.
    fn history(&self) -> String {
        let [one] = self.groups.as_slice() else {
            let mut list: Vec<String> = self
                .groups
                .iter()
                .map(|group| match group {
                    Group { first, last, words } if first == last => format!("attempt {first}: {words}"),
                    Group { first, last, words } => format!("attempts {first}-{last}: {words}"),
                })
                .collect();
            if self.left_out && !list.is_empty() {
                list.insert(list.len() - 1, "…".to_owned());
            }
            return list.join(", ");
        };
        one.words.clone()
    }
}

impl Reporter for Text<'_> {
    fn report(&mut self, event: &Event<'_>) {
        match event {
            Event::RunStarted => {}
            Event::AttemptStarted { attempt } => {
                if self.verbosity >= Verbosity::Everything {
                    say(&format!("{} starts: {}", self.attempt_of(*attempt), self.plan.program()));
                }
            }
            Event::AttemptFinished { attempt, outcome, verdict, duration, obstacle, no_delay } => {
                self.attempt_finished(*attempt, outcome, verdict, *duration);
                if let (Some(text), true) = (no_delay, self.verbosity >= Verbosity::Verbose) {
                    say(text);
                }
                if let (Some(Obstacle::Interrupted(signal)), true) = (obstacle, self.verbosity >= Verbosity::Everything)
                {
                    say(&format!("{signal} arrived during the attempt: no other follows"));
                }
            }
            Event::RetryScheduled { retry, wrote, is_shared } => {
                if self.verbosity >= Verbosity::Normal {
                    self.retry_scheduled(retry, *wrote, *is_shared);
                }
            }
            Event::Paced { attempt, delay, is_shared } => {
                if self.verbosity >= Verbosity::Normal {
                    let (attempt, scope) = (self.attempt_of(*attempt), self.of_scope(*is_shared));
                    let least = if *is_shared { "at least " } else { "" };
                    say(&format!("{attempt} waits {least}{} for the rate limiter{scope}", human(*delay)));
                }
            }
            Event::Noted { text } => {
                if self.verbosity >= Verbosity::Normal {
                    say(text);
                }
            }
            Event::Lingering { delay, is_shared } => {
                if self.verbosity >= Verbosity::Normal {
                    let (lack, delay) = (self.lack(*is_shared), human(*delay));
                    say(&format!("{lack}; waiting {delay} before giving up (--long-poll)"));
                }
            }
            Event::Stopped { summary, elapsed, quota_left, is_shared, .. } => {
                // A plain run is not to pay for words that it does not say.
                let is_spent = summary.reason == StopReason::Quota;
                let spent = if is_spent { self.spent(*quota_left, *is_shared) } else { String::new() };
                self.stopped(summary, *elapsed, &spent);
            }
        }
    }
}
