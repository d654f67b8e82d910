//! What the settings mean: taken from the command line, variables and AWS's own files,
//! joined with the defaults of the mode, checked against each other, and made into one
//! immutable [`Plan`].

mod aside;
pub mod aws;
pub mod env;
mod explain;
mod scopes;
mod settings;
mod values;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::policy::matcher::{Pattern, Term};
use crate::policy::{
    Backoff, BudgetPlan, Class, Classifier, Formula, Jitter, Limits, Lookout, Mode, Preset, QuotaPlan, SessionPlan,
    Sightings, Signal,
};
use crate::process::{Output, Source, SupervisionPlan};
use crate::programs::{Program, SoleRetrier};
use crate::store::{Scope, StorePlan};
use crate::units::{human, parse_duration};

use aside::Aside;
pub use explain::{Explained, explain};
pub use scopes::ScopesPlan;
use settings::Settings;
pub use settings::{gather, gather_own};

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsTarget {
    /// A file, appended to.
    File(PathBuf),
    /// A descriptor that the caller opened.
    Descriptor(i32),
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Only what retryx itself could not do (`-q`).
    Quiet,
    /// Failures, waits, and why a run ended; nothing on success.
    Normal,
    /// Also how each delay was computed (`-v`).
    Verbose,
    /// Everything (`-vv`).
    Everything,
}

/// Something to be said of the settings, and from which verbosity on.
pub type Note = (Verbosity, String);

/// Everything a run is decided by.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The policy that was asked for.
    pub mode: Mode,
    /// What an outcome is taken for.
    pub classifier: Classifier,
    /// What is decided between attempts.
    pub session: SessionPlan,
    /// How attempts are run.
    pub supervision: SupervisionPlan,
    /// The scope whose budget the run draws on, and where that is kept.
    pub scope: Option<(Scope, StorePlan)>,
    /// The seed that was asked for.
    pub seed: Option<u64>,
    /// Where events go.
    pub events: Option<EventsTarget>,
    /// Where that was asked for, as messages name it.
    pub events_place: String,
    /// Where the lists of rules were given, in the order in which they count.
    rule_places: [String; 4],
    /// What was given and counts for nothing.
    aside: Vec<Aside>,
    /// Whether they hold the command's arguments.
    pub log_arguments: bool,
    /// What to exit with in place of a failure's own status.
    pub exit_code_on_failure: Option<u8>,
    /// Captures how long the output asks to be left alone.
    pub retry_after: Option<Pattern>,
    /// What is to be said of the plan itself.
    pub notes: Vec<Note>,
    /// How much is said.
    pub verbosity: Verbosity,
}

/// The numbers of a mode (design §2, reference §1.5, §5 and §9).
struct Defaults {
    formula: Formula,
    jitter: Jitter,
    base: Duration,
    throttling_base: Duration,
    cap: Duration,
    attempts: Option<NonZeroU64>,
    deadline: Option<Duration>,
    quota: bool,
}

const SECOND: Duration = Duration::from_secs(1);
const DOUBLING: Formula = Formula::Exponential { factor: 2.0 };
/// The time a process gets between the first signal and KILL (design §5).
const KILL_AFTER: Duration = Duration::from_secs(10);
/// How long a scope may lie unused (design §6).
const SCOPE_TTL: Duration = Duration::from_secs(3600);
/// The least that `Retry-After` may ask for where nothing else is said (design §7).
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A service whose own defaults AWS documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// `DynamoDB` and its streams (reference §1.8).
    DynamoDb,
}

fn defaults(mode: Mode, service: Option<Service>) -> Defaults {
    let simple = |formula, jitter, cap, attempts| Defaults {
        formula,
        jitter,
        base: SECOND,
        throttling_base: SECOND,
        cap,
        attempts: NonZeroU64::new(attempts),
        deadline: None,
        quota: false,
    };
    let ms = Duration::from_millis;
    match (mode, service) {
        (Mode::Standard | Mode::Adaptive, service) => {
            let (base, attempts) = if service.is_some() { (ms(25), 4) } else { (ms(50), 3) };
            Defaults { base, quota: true, ..simple(DOUBLING, Jitter::Full, 20 * SECOND, attempts) }
        }
        (Mode::Legacy, None) => simple(DOUBLING, Jitter::Full, Duration::MAX, 5),
        (Mode::Legacy, Some(Service::DynamoDb)) => {
            let base = ms(50);
            Defaults { base, throttling_base: base, ..simple(DOUBLING, Jitter::None, Duration::MAX, 10) }
        }
        (Mode::Google, _) => {
            Defaults { deadline: Some(300 * SECOND), ..simple(DOUBLING, Jitter::Fraction, 32 * SECOND, 0) }
        }
        (Mode::Fixed, _) => simple(Formula::Fixed, Jitter::None, Duration::MAX, 3),
        (Mode::Linear, _) => simple(Formula::Linear, Jitter::None, 3600 * SECOND, 3),
        (Mode::Exponential, _) => simple(DOUBLING, Jitter::Full, 3600 * SECOND, 3),
        (Mode::Decorrelated, _) => simple(Formula::Decorrelated, Jitter::None, 20 * SECOND, 3),
    }
}

impl Plan {
    /// Resolves what was given, weakest first. `run_id` is the run's name in events and for
    /// the command.
    pub fn resolve(given: &[Given], mut command: Vec<OsString>, run_id: String) -> Result<Self, UsageError> {
        let mut settings = Settings::read(given)?;
        let aside = settings.leave_aside();
        let mode = settings.mode.unwrap_or(Mode::Standard);
        let shell = settings.shell.unwrap_or(false);
        if shell && command.len() > 1 {
            let (place, count) = (settings.place(Id::Shell), command.len());
            let or = if settings.on_command_line(Id::Shell) { "" } else { ", or set it to no" };
            return Err(UsageError(format!(
                "{place} takes the command as one string, but {count} words were given: put them in quotes{or}"
            )));
        }
        let known = Known::of(&settings, mode, &command)?;
        let session = session_plan(&settings, mode, &known)?;
        let scope = shared(&settings)?;
        let (own_retries, mut notes) = (known.sole_retrier(&settings), known.notes(&settings));
        notes.extend(aside.iter().map(|Aside { place, beside, .. }| {
            (Verbosity::Verbose, format!("{place} is left aside: it has no meaning beside {beside}"))
        }));
        // Of an option given twice the last counts; what follows `--` is none.
        let end = command.iter().position(|word| word == "--").unwrap_or(command.len());
        command.splice(end..end, own_retries.arguments.iter().map(OsString::from));
        let max_attempts = session.limits.max_attempts;
        let events_place = settings.place(Id::Events).to_owned();
        let rule_places =
            [Id::SucceedOn, Id::FailOn, Id::ThrottleOn, Id::RetryOn].map(|id| settings.place(id).to_owned());
        let verbosity = settings.verbosity()?;
        let classifier = Classifier {
            succeed: settings.succeed_on,
            fail: settings.fail_on,
            throttle: settings.throttle_on,
            retry: settings.retry_on,
            preset: known.program.map(|program| program.preset),
            mode,
            retry_429: settings.retry_429.unwrap_or(false),
        };
        let named = settings.preset.as_ref().is_some_and(|name| name != AUTO);
        let supervision = SupervisionPlan {
            command,
            environment: own_retries.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            shell,
            own_group: settings.own_group.unwrap_or(false),
            stdin: settings.stdin.unwrap_or(Source::Auto),
            outputs: [settings.stdout, settings.stderr].map(|output| output.unwrap_or(Output::Each)),
            lookout: lookout(&classifier, settings.retry_after.as_ref(), named || settings.watch.unwrap_or(false)),
            spool_folder: PathBuf::new(),
            timeout: settings.timeout,
            idle_timeout: settings.idle_timeout,
            total_timeout: settings.total_timeout,
            kill_signal: settings.kill_signal.unwrap_or(Signal::TERM),
            kill_after: settings.kill_after.unwrap_or(KILL_AFTER),
            kill_after_term: settings.kill_after.is_some(),
            counts_down: verbosity >= Verbosity::Normal,
            may_retry: max_attempts.is_none_or(|most| most.get() > 1),
            run_id,
            max_attempts: max_attempts.map_or_else(|| "unlimited".to_owned(), |most| most.to_string()),
        };
        Ok(Self {
            events_place,
            rule_places,
            aside,
            mode,
            session,
            supervision,
            scope,
            seed: settings.seed,
            verbosity,
            log_arguments: settings.log_arguments.unwrap_or(false),
            exit_code_on_failure: settings.exit_code_on_failure,
            classifier,
            events: settings.events,
            retry_after: settings.retry_after,
            notes,
        })
    }

    /// Refuses lists that could never match a command.
    pub fn check_for_a_run(&self) -> Result<(), UsageError> {
        let rules = &self.classifier;
        let lists = [&rules.succeed, &rules.fail, &rules.throttle, &rules.retry];
        for (place, terms) in self.rule_places.iter().zip(lists) {
            if !terms.is_empty() && terms.iter().all(|term| !term.may_speak_of_a_command(rules.preset.as_ref())) {
                return Err(UsageError(format!(
                    "{place}: '{}' speaks of a server's answers only, and nothing is known of how {} tells of them; \
                     match exit codes, signals and output, or add 'default'",
                    terms[0],
                    self.program()
                )));
            }
        }
        Ok(())
    }

    /// How long the output of an attempt asks to be left alone; what was captured where that
    /// is no duration.
    pub fn asked_delay<'a>(&self, sightings: &'a Sightings) -> Option<Result<Duration, &'a str>> {
        let captured = sightings.captured(self.retry_after.as_ref()?)?;
        Some(parse_duration(captured.trim()).ok_or(captured))
    }

    /// The program as messages name it.
    pub fn program(&self) -> String {
        let word = self.supervision.command.first().map_or(&b""[..], |word| word.as_bytes());
        let name = String::from_utf8_lossy(word);
        if name.is_empty() || name.contains(char::is_whitespace) { format!("'{name}'") } else { name.into_owned() }
    }
}

/// Refuses conditions that could never hold for a request. A variable may be set for commands
/// too: of its list one condition at least has to be able to.
pub fn check_for_a_request(given: &[Given]) -> Result<(), UsageError> {
    let settings = Settings::read(given)?;
    let method = given.iter().rfind(|given| given.id == Id::RequestMethod);
    let head_only = given.iter().any(|given| given.id == Id::Head) || method.is_some_and(|given| given.value == "HEAD");
    for (id, terms, class) in [
        (Id::SucceedOn, &settings.succeed_on, Class::Success),
        (Id::FailOn, &settings.fail_on, Class::Permanent),
        (Id::ThrottleOn, &settings.throttle_on, Class::Throttling),
        (Id::RetryOn, &settings.retry_on, Class::Transient),
    ] {
        let obstacles: Vec<_> =
            terms.iter().map(|term| (term, term.obstacle_for_a_request(class, head_only))).collect();
        let may = obstacles.iter().any(|(_, obstacle)| obstacle.is_none());
        let never = obstacles.iter().find_map(|(term, obstacle)| Some((term, (*obstacle)?)));
        if let Some((term, why)) = never
            && (!may || settings.on_command_line(id))
        {
            return Err(UsageError(format!("{}: '{term}' {why}", settings.place(id))));
        }
    }
    Ok(())
}

/// What `--preset` says where it goes by the command's name.
const AUTO: &str = "auto";

/// What is known of the program: by the preset that was named, or by its base name.
fn program(settings: &Settings, command: &[OsString]) -> Result<Option<Program>, UsageError> {
    match settings.preset.as_deref() {
        Some("none") => Ok(None),
        // A string for the shell names no program.
        None | Some(AUTO) if settings.shell.unwrap_or(false) => Ok(None),
        None | Some(AUTO) => {
            let known = Program::of(command).map_err(UsageError)?;
            Ok(known.filter(|program| !program.runs_others(command)))
        }
        Some(name) => Program::named(name).map_err(UsageError),
    }
}

/// What is known of the program that is run, and what its command line tells.
struct Known {
    program: Option<Program>,
    asks_dynamodb: bool,
    polls_long: bool,
}

impl Known {
    fn of(settings: &Settings, mode: Mode, command: &[OsString]) -> Result<Self, UsageError> {
        let program = program(settings, command)?;
        let known = program.as_ref();
        Ok(Self {
            asks_dynamodb: mode.is_aws() && known.is_some_and(|program| program.asks_dynamodb(command)),
            polls_long: known.is_some_and(|program| program.polls_long(command)),
            program,
        })
    }

    /// What switches its own retries off, where that is asked for.
    fn sole_retrier(&self, settings: &Settings) -> SoleRetrier {
        let asked = self.program.as_ref().filter(|_| settings.sole_retrier.unwrap_or(false));
        asked.map(|program| program.sole_retrier.clone()).unwrap_or_default()
    }

    /// What is to be said of all that.
    fn notes(&self, settings: &Settings) -> Vec<Note> {
        let mut notes = Vec::new();
        if let Some(program) = &self.program {
            notes.push((Verbosity::Verbose, format!("failures are judged by the preset {}", program.preset.name)));
        }
        if self.asks_dynamodb && settings.service.is_none() {
            notes.push((Verbosity::Verbose, "the command asks DynamoDB: as with --service dynamodb".to_owned()));
        }
        if self.polls_long && settings.long_poll.is_none() {
            notes.push((Verbosity::Verbose, "the command waits for something to come: as with --long-poll".to_owned()));
        }
        let (place, own) = (settings.place(Id::SoleRetrier), self.sole_retrier(settings));
        let asked = settings.sole_retrier.unwrap_or(false);
        if asked && own == SoleRetrier::default() {
            notes.push((Verbosity::Normal, format!("{place}: nothing is known of retries of the program's own")));
        } else if asked {
            let set = own.environment.iter().map(|(name, value)| format!("{name}={value}"));
            let told = set.chain(own.arguments).collect::<Vec<_>>().join(" ");
            notes.push((Verbosity::Verbose, format!("{place}: the program's own retries are switched off by {told}")));
        }
        notes
    }
}

/// What is looked for in what the command writes. The user's own patterns are looked for
/// on terminals too, those of a preset where that is asked for.
fn lookout(classifier: &Classifier, retry_after: Option<&Pattern>, preset_on_terminals: bool) -> Lookout {
    let mut lookout = Lookout::default();
    let Classifier { succeed, fail, throttle, retry, preset, .. } = classifier;
    let own = [succeed, fail, throttle, retry].into_iter().flatten().flat_map(Term::watched);
    own.chain(retry_after).for_each(|pattern| lookout.add(pattern, true));
    let known = preset.iter().flat_map(Preset::watched);
    known.for_each(|pattern| lookout.add(pattern, preset_on_terminals));
    lookout
}

/// Whether a command is the AWS CLI, whose own settings AWS's variables are.
fn is_aws_cli(command: &[OsString]) -> bool {
    command.first().is_some_and(|program| Path::new(program).file_name() == Some("aws".as_ref()))
}

fn formula(settings: &Settings, mode: Mode, default: Formula) -> Result<Formula, UsageError> {
    if let Some(delays) = &settings.delays {
        let idle = [Id::BaseDelay, Id::ThrottleBaseDelay, Id::Factor].into_iter().find(|id| settings.has(*id));
        if let Some(idle) = idle {
            return Err(UsageError(format!(
                "{} spells the delays out, so {} has nothing to act on; give one",
                settings.place(Id::Delays),
                settings.place(idle)
            )));
        }
        return Ok(Formula::Schedule(delays.clone()));
    }
    match (default, settings.factor) {
        (Formula::Exponential { .. }, Some(factor)) => Ok(Formula::Exponential { factor }),
        (formula, None) => Ok(formula),
        (_, Some(_)) => Err(UsageError(format!(
            "{}: the {} mode has no power to put it in; take --mode exponential, standard or google",
            settings.place(Id::Factor),
            mode.as_str()
        ))),
    }
}

fn backoff(settings: &Settings, mode: Mode, defaults: &Defaults) -> Result<Backoff, UsageError> {
    let formula = formula(settings, mode, defaults.formula.clone())?;
    if formula == Formula::Decorrelated && settings.jitter.is_some() {
        let place = settings.place(Id::Jitter);
        return Err(UsageError(format!(
            "{place}: the decorrelated mode is random by its formula; leave {place} out, or take --mode exponential"
        )));
    }
    let spelled_out = settings.delays.is_some();
    let base = settings.base.unwrap_or(defaults.base);
    // Where a mode has one base, it is the base of every failure.
    let throttling_base = match (settings.throttling_base, mode) {
        (Some(base), _) => base,
        (None, Mode::Standard | Mode::Adaptive) => defaults.throttling_base,
        (None, _) => base,
    };
    let rule = Backoff {
        formula,
        jitter: settings.jitter.unwrap_or(if spelled_out { Jitter::None } else { defaults.jitter }),
        base,
        throttling_base,
        cap: settings.max_backoff.unwrap_or(if spelled_out { Duration::MAX } else { defaults.cap }),
        floor: settings.min_delay.unwrap_or(Duration::ZERO),
    };
    if rule.floor > rule.cap {
        return Err(UsageError(format!(
            "{}: {} is above the longest delay, {}; lower it or raise {}",
            settings.place(Id::MinDelay),
            human(rule.floor),
            human(rule.cap),
            settings.place_or(Id::MaxBackoff, "--max-backoff")
        )));
    }
    Ok(rule)
}

/// The run's quota. A bucket that one run uses protects nobody, so a number of attempts given
/// by the user goes before it, unless a quota option or a scope is given too.
fn quota(settings: &Settings, by_default: bool) -> Option<QuotaPlan> {
    let scope = scope(settings);
    let asked = settings.quota_capacity.is_some()
        || settings.quota_cost.is_some()
        || settings.quota_refill.is_some()
        || scope.is_some();
    let own_attempts = settings.by_user(Id::MaxAttempts);
    if settings.no_quota.unwrap_or(false) || !(asked || (by_default && !own_attempts)) {
        return None;
    }
    let defaults = QuotaPlan::default();
    let (transient_cost, throttling_cost) =
        settings.quota_cost.map_or((None, None), |cost| (cost.transient, cost.throttling));
    let capacity = settings.quota_capacity.unwrap_or(defaults.capacity);
    Some(QuotaPlan {
        capacity,
        transient_cost: transient_cost.unwrap_or(defaults.transient_cost),
        throttling_cost: throttling_cost.unwrap_or(defaults.throttling_cost),
        refill: settings.quota_refill.unwrap_or_else(|| {
            scope.map_or(defaults.refill, |scope| QuotaPlan::refill_that_fills(capacity, scope.ttl))
        }),
    })
}

/// The scope, where one is given.
fn scope(settings: &Settings) -> Option<Scope> {
    let ttl = settings.scope_ttl.unwrap_or(SCOPE_TTL);
    settings.scope.clone().map(|name| Scope { name, ttl })
}

/// The scope and its store. What is given for a scope on the command line, and none with it,
/// would be given for nothing; variables may hold for all runs.
fn shared(settings: &Settings) -> Result<Option<(Scope, StorePlan)>, UsageError> {
    let Some(scope) = scope(settings) else {
        let idle = [Id::ScopeTtl, Id::Store, Id::StateDir].into_iter().find(|id| settings.on_command_line(*id));
        return idle.map_or(Ok(None), |id| {
            let place = settings.place(id);
            Err(UsageError(format!(
                "{place} is about scopes, and this run has none; give it --scope NAME, or leave {place} out"
            )))
        });
    };
    Ok(Some((scope, store_plan(settings)?)))
}

/// Where scopes are kept. A folder on the command line is none for Redis; a variable may hold
/// for runs that use files.
fn store_plan(settings: &Settings) -> Result<StorePlan, UsageError> {
    match (&settings.store, &settings.state_dir) {
        (None | Some(StorePlan::Folder(_)), folder) => Ok(StorePlan::Folder(folder.clone())),
        (Some(StorePlan::Redis(_)), Some(_)) if settings.on_command_line(Id::StateDir) => Err(UsageError(format!(
            "{} is for scopes in files, and {} keeps them in Redis; leave one of them out, or give --store file",
            settings.place(Id::StateDir),
            settings.place(Id::Store)
        ))),
        (Some(StorePlan::Redis(address)), _) => Ok(StorePlan::Redis(address.clone())),
    }
}

fn session_plan(settings: &Settings, mode: Mode, known: &Known) -> Result<SessionPlan, UsageError> {
    if settings.service.is_some() && !mode.is_aws() {
        return Err(UsageError(format!(
            "{}: AWS documents its services' defaults for the modes standard, adaptive and legacy, not {}; leave it out",
            settings.place(Id::Service),
            mode.as_str()
        )));
    }
    let defaults = defaults(mode, settings.service.or(known.asks_dynamodb.then_some(Service::DynamoDb)));
    let backoff = backoff(settings, mode, &defaults)?;
    let limits = Limits {
        max_attempts: settings.max_attempts.map_or(defaults.attempts, |most| most.0),
        deadline: settings.deadline.or(defaults.deadline),
        total_timeout: settings.total_timeout,
    };
    let stagger = settings.stagger.unwrap_or(Duration::ZERO);
    for (id, name, limit) in [
        (Id::Deadline, "the --deadline of the mode,", limits.deadline),
        (Id::TotalTimeout, "--total-timeout", limits.total_timeout),
    ] {
        if let Some(limit) = limit
            && stagger > limit
        {
            return Err(UsageError(format!(
                "{}: a wait of up to {} can pass {} {} before the first attempt; lower it",
                settings.place(Id::Stagger),
                human(stagger),
                settings.place_or(id, name),
                human(limit)
            )));
        }
    }
    for id in [Id::QuotaCapacity, Id::QuotaCost, Id::QuotaRefill] {
        if settings.are_apart(Id::NoQuota, id) {
            let (none, some) = (settings.place(Id::NoQuota), settings.place(id));
            return Err(UsageError(format!("{none} and {some} contradict each other: give one")));
        }
    }
    let max_retry_after = if backoff.cap == Duration::MAX { MAX_RETRY_AFTER } else { backoff.cap.max(MAX_RETRY_AFTER) };
    Ok(SessionPlan {
        budget: BudgetPlan { quota: quota(settings, defaults.quota), limiter: mode == Mode::Adaptive },
        long_poll: settings.long_poll.unwrap_or(known.polls_long),
        backoff,
        limits,
        max_retry_after: settings.max_retry_after.unwrap_or(max_retry_after),
        stagger,
    })
}

#[cfg(test)]
mod tests;
