//! The settings as typed values: the strongest source of each counts.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::aws::{self, FileError};
use super::env::{self, Environment};
use super::values::{
    self, MaxAttempts, QuotaCost, code, delay_pattern, delays, duration, events, factor, flag, folder, limit,
    max_attempts, one_of, preset, quota_capacity, quota_cost, rate, scope, scope_ttl, seed, signal, store, terms,
};
use super::{EventsTarget, Note, Service, Verbosity, is_aws_cli};
use crate::cli::options::Id;
use crate::cli::{Given, Rank, UsageError};
use crate::policy::matcher::{Pattern, Term};
use crate::policy::{Jitter, Mode, Signal};
use crate::process::{Output, Source};
use crate::store::{ScopeName, StorePlan};

/// Each setting as its strongest source left it; `None` where no source has it.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) mode: Option<Mode>,
    pub(super) service: Option<Service>,
    pub(super) max_attempts: Option<MaxAttempts>,
    pub(super) delays: Option<Vec<Duration>>,
    pub(super) base: Option<Duration>,
    pub(super) throttling_base: Option<Duration>,
    pub(super) factor: Option<f64>,
    pub(super) max_backoff: Option<Duration>,
    pub(super) min_delay: Option<Duration>,
    pub(super) jitter: Option<Jitter>,
    pub(super) stagger: Option<Duration>,
    pub(super) seed: Option<u64>,
    pub(super) retry_on: Vec<Term>,
    pub(super) throttle_on: Vec<Term>,
    pub(super) fail_on: Vec<Term>,
    pub(super) succeed_on: Vec<Term>,
    pub(super) retry_429: Option<bool>,
    pub(super) preset: Option<String>,
    pub(super) watch: Option<bool>,
    pub(super) retry_after: Option<Pattern>,
    pub(super) max_retry_after: Option<Duration>,
    pub(super) sole_retrier: Option<bool>,
    pub(super) quota_capacity: Option<u32>,
    pub(super) quota_cost: Option<QuotaCost>,
    pub(super) quota_refill: Option<u64>,
    pub(super) no_quota: Option<bool>,
    pub(super) scope: Option<ScopeName>,
    pub(super) scope_ttl: Option<Duration>,
    pub(super) store: Option<StorePlan>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) long_poll: Option<bool>,
    pub(super) deadline: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) total_timeout: Option<Duration>,
    pub(super) kill_after: Option<Duration>,
    pub(super) kill_signal: Option<Signal>,
    pub(super) stdin: Option<Source>,
    pub(super) stdout: Option<Output>,
    pub(super) stderr: Option<Output>,
    pub(super) shell: Option<bool>,
    pub(super) own_group: Option<bool>,
    pub(super) exit_code_on_failure: Option<u8>,
    pub(super) events: Option<EventsTarget>,
    pub(super) log_arguments: Option<bool>,
    quiet: Option<bool>,
    verbose: u64,
    sources: HashMap<Id, (Rank, String)>,
}

impl Settings {
    /// Reads what was given, weakest first.
    pub(super) fn read(given: &[Given]) -> Result<Self, UsageError> {
        let mut settings = Self::default();
        for option in given {
            let source = (option.rank, option.place.clone());
            let stronger = settings.sources.insert(option.id, source).is_some_and(|(rank, _)| rank < option.rank);
            if stronger {
                settings.forget(option.id);
            }
            settings.take(option)?;
        }
        Ok(settings)
    }

    /// Drops what a weaker source added to; all else is simply replaced.
    fn forget(&mut self, id: Id) {
        match id {
            Id::RetryOn => self.retry_on.clear(),
            Id::ThrottleOn => self.throttle_on.clear(),
            Id::FailOn => self.fail_on.clear(),
            Id::SucceedOn => self.succeed_on.clear(),
            Id::Verbose => self.verbose = 0,
            _ => {}
        }
    }

    fn take(&mut self, option: &Given) -> Result<(), UsageError> {
        match option.id {
            Id::Mode => self.mode = Some(one_of(option, &Mode::ALL)?),
            Id::Service => self.service = Some(one_of(option, &[("dynamodb", Service::DynamoDb)])?),
            Id::MaxAttempts => self.max_attempts = Some(max_attempts(option)?),
            Id::Delays => self.delays = Some(delays(option)?),
            Id::BaseDelay => self.base = Some(duration(option)?),
            Id::ThrottleBaseDelay => self.throttling_base = Some(duration(option)?),
            Id::Factor => self.factor = Some(factor(option)?),
            Id::MaxBackoff => self.max_backoff = Some(duration(option)?),
            Id::MinDelay => self.min_delay = Some(duration(option)?),
            Id::Jitter => self.jitter = Some(one_of(option, &Jitter::ALL)?),
            Id::Stagger => self.stagger = Some(duration(option)?),
            Id::Seed => self.seed = Some(seed(option)?),
            Id::RetryOn => self.retry_on.extend(terms(option)?),
            Id::ThrottleOn => self.throttle_on.extend(terms(option)?),
            Id::FailOn => self.fail_on.extend(terms(option)?),
            Id::SucceedOn => self.succeed_on.extend(terms(option)?),
            Id::Retry429 => self.retry_429 = Some(flag(option)?),
            Id::Preset => self.preset = Some(preset(option)?),
            Id::Watch => self.watch = Some(flag(option)?),
            Id::RetryAfterMatch => self.retry_after = Some(delay_pattern(option)?),
            Id::MaxRetryAfter => self.max_retry_after = Some(duration(option)?),
            Id::SoleRetrier => self.sole_retrier = Some(flag(option)?),
            Id::QuotaCapacity => self.quota_capacity = Some(quota_capacity(option)?),
            Id::QuotaCost => self.quota_cost = Some(quota_cost(option)?),
            Id::QuotaRefill => self.quota_refill = Some(rate(option)?),
            Id::NoQuota => self.no_quota = Some(flag(option)?),
            Id::Scope => self.scope = Some(scope(option)?),
            Id::ScopeTtl => self.scope_ttl = Some(scope_ttl(option)?),
            Id::Store => self.store = Some(store(option)?),
            Id::StateDir => self.state_dir = Some(folder(option)?),
            Id::LongPoll => self.long_poll = Some(flag(option)?),
            Id::Deadline => self.deadline = Some(limit(option)?),
            Id::Timeout | Id::MaxTime => self.timeout = Some(limit(option)?),
            Id::IdleTimeout => self.idle_timeout = Some(limit(option)?),
            Id::TotalTimeout => self.total_timeout = Some(limit(option)?),
            Id::KillAfter => self.kill_after = Some(duration(option)?),
            Id::KillSignal => self.kill_signal = Some(signal(option)?),
            Id::Stdin => self.stdin = Some(values::stdin(option)?),
            Id::Stdout => self.stdout = Some(values::output(option)?),
            Id::Stderr => self.stderr = Some(values::output(option)?),
            Id::Shell => self.shell = Some(flag(option)?),
            Id::OwnGroup => self.own_group = Some(flag(option)?),
            Id::ExitCodeOnFailure => self.exit_code_on_failure = Some(code(option)?),
            Id::Events => self.events = Some(events(option)?),
            Id::LogArguments => self.log_arguments = Some(flag(option)?),
            Id::Quiet => self.quiet = Some(flag(option)?),
            Id::Verbose => self.verbose += values::verbosity(option)?,
            // Those of the subcommands are read by these.
            _ => {}
        }
        Ok(())
    }

    /// Takes a setting back, as if nobody had given it.
    pub(super) fn leave(&mut self, id: Id) {
        match id {
            Id::Service => self.service = None,
            Id::Delays => self.delays = None,
            Id::BaseDelay => self.base = None,
            Id::ThrottleBaseDelay => self.throttling_base = None,
            Id::Factor => self.factor = None,
            Id::MaxBackoff => self.max_backoff = None,
            Id::MinDelay => self.min_delay = None,
            Id::Jitter => self.jitter = None,
            Id::Stagger => self.stagger = None,
            Id::QuotaCapacity => self.quota_capacity = None,
            Id::QuotaCost => self.quota_cost = None,
            Id::QuotaRefill => self.quota_refill = None,
            Id::NoQuota => self.no_quota = None,
            Id::Deadline => self.deadline = None,
            Id::TotalTimeout => self.total_timeout = None,
            _ => return,
        }
        self.sources.remove(&id);
    }

    /// Whether a setting was given.
    pub(super) fn has(&self, id: Id) -> bool {
        self.sources.contains_key(&id)
    }

    /// Whether the place of a setting is weaker than that of another.
    pub(super) fn is_weaker(&self, id: Id, than: Id) -> bool {
        let rank = |id| self.sources.get(&id).map(|(rank, _)| rank);
        rank(id) < rank(than)
    }

    /// Whether the user of retryx gave an option, rather than AWS's own settings.
    pub(super) fn by_user(&self, id: Id) -> bool {
        self.sources.get(&id).is_some_and(|(rank, _)| *rank >= Rank::Variable)
    }

    /// Whether an option stands on the command line.
    pub(super) fn on_command_line(&self, id: Id) -> bool {
        self.sources.get(&id).is_some_and(|(rank, _)| *rank == Rank::CommandLine)
    }

    /// Where a setting was given, as messages name it.
    pub(super) fn place(&self, id: Id) -> &str {
        self.sources.get(&id).map_or("", |(_, place)| place)
    }

    /// The same, or other words where nobody gave it.
    pub(super) fn place_or<'a>(&'a self, id: Id, other: &'a str) -> &'a str {
        self.sources.get(&id).map_or(other, |(_, place)| place)
    }

    /// How much is said. Of `--quiet` and `--verbose` the stronger source counts.
    pub(super) fn verbosity(&self) -> Result<Verbosity, UsageError> {
        let rank = |id| self.sources.get(&id).map(|(rank, _)| rank);
        match (self.quiet.unwrap_or(false), self.verbose) {
            (true, 1..) if rank(Id::Quiet) == rank(Id::Verbose) => {
                let (quiet, verbose) = (self.place(Id::Quiet), self.place(Id::Verbose));
                Err(UsageError(format!("{quiet} and {verbose} contradict each other: give one")))
            }
            (true, 1..) if rank(Id::Quiet) < rank(Id::Verbose) => Ok(Verbosity::Verbose),
            (true, _) => Ok(Verbosity::Quiet),
            (false, 0) => Ok(Verbosity::Normal),
            (false, 1) => Ok(Verbosity::Verbose),
            (false, _) => Ok(Verbosity::Everything),
        }
    }
}

/// Joins what the command line gave with what retryx's own variables say, weakest first. The
/// second part are warnings.
pub fn gather_own(given: Vec<Given>, environment: &dyn Environment) -> (Vec<Given>, Vec<Note>) {
    let (mut all, warnings) = env::settings(environment);
    all.extend(given);
    (all, warnings)
}

/// Joins what the command line gave with what the environment and AWS's own files say,
/// weakest first. The second part are warnings.
///
/// AWS's settings count within the AWS modes only, and its number of attempts not where
/// the command is the AWS CLI, whose own it is. Something wrong in them is a warning, also
/// where a stronger setting overrides it; an error only where an AWS mode was asked for on the
/// command line, or the command is the AWS CLI.
pub fn gather(
    given: Vec<Given>,
    command: &[OsString],
    environment: &dyn Environment,
) -> Result<(Vec<Given>, Vec<Note>), UsageError> {
    let (mut all, mut warnings) = gather_own(given, environment);
    let mode = all.iter().rev().find(|given| given.id == Id::Mode);
    let aws_mode = |given: &Given| {
        let known = Mode::ALL.iter().find(|(name, _)| given.value == *name);
        known.is_some_and(|(_, mode)| mode.is_aws())
    };
    let strict = is_aws_cli(command) || mode.is_some_and(|mode| mode.rank == Rank::CommandLine && aws_mode(mode));
    if mode.is_none_or(aws_mode) {
        let (found, problems) = AwsSettings { wants_attempts: !is_aws_cli(command), environment }.find();
        if let (true, Some((_, problem))) = (strict, problems.first()) {
            return Err(UsageError(problem.clone()));
        }
        warnings.extend(problems.into_iter().map(|(from, problem)| (from, format!("{problem}; it is ignored"))));
        all.splice(0..0, found);
    }
    all.sort_by_key(|given| given.rank);
    Ok((all, warnings))
}

/// What AWS's own variables and file say.
struct AwsSettings<'a> {
    wants_attempts: bool,
    environment: &'a dyn Environment,
}

impl AwsSettings<'_> {
    /// The settings, and what is wrong with others.
    fn find(&self) -> (Vec<Given>, Vec<Note>) {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        let mut missing = Vec::new();
        for (wanted, id, variable, key) in [
            (true, Id::Mode, "AWS_RETRY_MODE", "retry_mode"),
            (self.wants_attempts, Id::MaxAttempts, "AWS_MAX_ATTEMPTS", "max_attempts"),
        ] {
            match self.environment.get(variable).filter(|_| wanted) {
                // A wrong value does not let a weaker one through, as in the SDKs.
                Some(value) => {
                    let place = variable.to_owned();
                    sort(Given { id, value, place, rank: Rank::AwsVariable }, &mut found, &mut problems);
                }
                None if wanted => missing.push((id, key)),
                None => {}
            }
        }
        if !missing.is_empty() {
            self.find_in_file(&missing, &mut found, &mut problems);
        }
        (found, problems)
    }

    fn find_in_file(&self, missing: &[(Id, &str)], found: &mut Vec<Given>, problems: &mut Vec<Note>) {
        let Some(path) = aws::config_file(self.environment) else { return };
        let asked = self.environment.get("AWS_PROFILE").map(|name| name.to_string_lossy().into_owned());
        let profiles = match aws::read(&path) {
            Ok(Some(profiles)) => profiles,
            Ok(None) => return,
            Err(problem) => {
                // Of a file that nobody spoke of the SDKs say nothing either.
                let is_asked_for = asked.is_some() || self.environment.get("AWS_CONFIG_FILE").is_some();
                let from = match problem {
                    FileError::Unreadable(_) if !is_asked_for => Verbosity::Verbose,
                    _ => Verbosity::Normal,
                };
                return problems.push((from, format!("the AWS config file {}: {problem}", path.display())));
            }
        };
        let profile = asked.as_deref().unwrap_or("default");
        let Some(properties) = profiles.get(profile) else {
            if asked.is_some() {
                let problem = format!("AWS_PROFILE: there is no profile '{profile}' in {}", path.display());
                problems.push((Verbosity::Normal, problem));
            }
            return;
        };
        for &(id, key) in missing {
            if let Some(value) = properties.get(key) {
                let place = format!("{key} of profile '{profile}' in {}", path.display());
                sort(Given { id, value: value.into(), place, rank: Rank::AwsFile }, found, problems);
            }
        }
    }
}

/// Puts a setting of AWS's where it belongs.
fn sort(given: Given, found: &mut Vec<Given>, problems: &mut Vec<Note>) {
    match checked(given) {
        Ok(given) => found.push(given),
        Err(problem) => problems.push((Verbosity::Normal, problem)),
    }
}

/// A setting of AWS's in retryx's form, or what is wrong with it. Modes are taken in any
/// case and with white space around, as smithy-rs takes them.
fn checked(mut given: Given) -> Result<Given, String> {
    if given.id == Id::Mode {
        let text = given.value.to_string_lossy().trim().to_ascii_lowercase();
        if !["standard", "adaptive", "legacy"].contains(&text.as_str()) {
            return Err(format!(
                "{}: '{text}' is not a retry mode; AWS knows standard, adaptive and legacy",
                given.place
            ));
        }
        given.value = text.into();
        return Ok(given);
    }
    match max_attempts(&given) {
        Ok(MaxAttempts(Some(_))) => Ok(given),
        _ => Err(format!(
            "{}: '{}' is not a number of attempts in AWS's settings; valid is a whole number from 1",
            given.place,
            given.value.to_string_lossy()
        )),
    }
}
