//! What the given options mean: typed, joined with the defaults of the mode, checked
//! against each other, and made into one immutable [`Plan`].

mod values;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::policy::{Backoff, Formula, Jitter, Limits, Mode, SessionPlan, Signal};
use crate::process::{Source, SupervisionPlan};
use crate::report::text::Verbosity;
use values::{MaxAttempts, code, duration, events, factor, limit, max_attempts, one_of, seed, signal};

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsTarget {
    /// A file, appended to.
    File(PathBuf),
    /// A descriptor that the caller opened.
    Descriptor(i32),
}

/// Everything a run is decided by.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The policy that was asked for.
    pub mode: Mode,
    /// What is decided between attempts.
    pub session: SessionPlan,
    /// How attempts are run.
    pub supervision: SupervisionPlan,
    /// The seed that was asked for.
    pub seed: Option<u64>,
    /// Where events go.
    pub events: Option<EventsTarget>,
    /// Whether they hold the command's arguments.
    pub log_arguments: bool,
    /// What to exit with in place of a failure's own status.
    pub exit_code_on_failure: Option<u8>,
    /// How much is said.
    pub verbosity: Verbosity,
}

/// The numbers of a mode (design §2, reference §1.5 and §9).
struct Defaults {
    formula: Formula,
    jitter: Jitter,
    base: Duration,
    cap: Duration,
    attempts: Option<NonZeroU64>,
    deadline: Option<Duration>,
    quota: bool,
}

const SECOND: Duration = Duration::from_secs(1);
const DOUBLING: Formula = Formula::Exponential { factor: 2.0 };
const THREE: Option<NonZeroU64> = NonZeroU64::new(3);
/// The time a process gets between the first signal and KILL (design §5).
const KILL_AFTER: Duration = Duration::from_secs(10);

fn defaults(mode: Mode) -> Defaults {
    let simple = |formula, jitter, cap| Defaults {
        formula,
        jitter,
        base: SECOND,
        cap,
        attempts: THREE,
        deadline: None,
        quota: false,
    };
    match mode {
        Mode::Standard => {
            Defaults { base: Duration::from_millis(50), quota: true, ..simple(DOUBLING, Jitter::Full, 20 * SECOND) }
        }
        Mode::Google => {
            Defaults { attempts: None, deadline: Some(300 * SECOND), ..simple(DOUBLING, Jitter::Fraction, 32 * SECOND) }
        }
        Mode::Fixed => simple(Formula::Fixed, Jitter::None, Duration::MAX),
        Mode::Linear => simple(Formula::Linear, Jitter::None, 3600 * SECOND),
        Mode::Exponential => simple(DOUBLING, Jitter::Full, 3600 * SECOND),
        Mode::Decorrelated => simple(Formula::Decorrelated, Jitter::None, 20 * SECOND),
    }
}

/// The options as values, each as its last giving left it.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "one flag an option")]
struct Values {
    mode: Option<Mode>,
    max_attempts: Option<MaxAttempts>,
    base: Option<Duration>,
    throttling_base: Option<Duration>,
    factor: Option<f64>,
    max_backoff: Option<Duration>,
    min_delay: Option<Duration>,
    jitter: Option<Jitter>,
    stagger: Option<Duration>,
    seed: Option<u64>,
    deadline: Option<Duration>,
    timeout: Option<Duration>,
    total_timeout: Option<Duration>,
    kill_after: Option<Duration>,
    kill_signal: Option<Signal>,
    stdin: Option<Source>,
    shell: bool,
    own_group: bool,
    exit_code_on_failure: Option<u8>,
    events: Option<EventsTarget>,
    log_arguments: bool,
    quiet: bool,
    verbose: usize,
}

impl Values {
    fn read(given: &[Given]) -> Result<Self, UsageError> {
        let mut values = Self::default();
        for option in given {
            match option.id {
                Id::Mode => values.mode = Some(one_of(option, &Mode::ALL)?),
                Id::MaxAttempts => values.max_attempts = Some(max_attempts(option)?),
                Id::BaseDelay => values.base = Some(duration(option)?),
                Id::ThrottleBaseDelay => values.throttling_base = Some(duration(option)?),
                Id::Factor => values.factor = Some(factor(option)?),
                Id::MaxBackoff => values.max_backoff = Some(duration(option)?),
                Id::MinDelay => values.min_delay = Some(duration(option)?),
                Id::Jitter => values.jitter = Some(one_of(option, &Jitter::ALL)?),
                Id::Stagger => values.stagger = Some(duration(option)?),
                Id::Seed => values.seed = Some(seed(option)?),
                Id::Deadline => values.deadline = Some(limit(option)?),
                Id::Timeout => values.timeout = Some(limit(option)?),
                Id::TotalTimeout => values.total_timeout = Some(limit(option)?),
                Id::KillAfter => values.kill_after = Some(duration(option)?),
                Id::KillSignal => values.kill_signal = Some(signal(option)?),
                Id::Stdin => values.stdin = Some(values::stdin(option)?),
                Id::Shell => values.shell = true,
                Id::OwnGroup => values.own_group = true,
                Id::ExitCodeOnFailure => values.exit_code_on_failure = Some(code(option)?),
                Id::Events => values.events = Some(events(option)?),
                Id::LogArguments => values.log_arguments = true,
                Id::Quiet => values.quiet = true,
                Id::Verbose => values.verbose += 1,
                Id::Help | Id::Version => {}
            }
        }
        Ok(values)
    }

    fn verbosity(&self) -> Result<Verbosity, UsageError> {
        match (self.quiet, self.verbose) {
            (true, 0) => Ok(Verbosity::Quiet),
            (true, _) => Err(UsageError("--quiet and --verbose contradict each other: give one".into())),
            (false, 0) => Ok(Verbosity::Normal),
            (false, 1) => Ok(Verbosity::Verbose),
            (false, _) => Ok(Verbosity::Everything),
        }
    }
}

impl Plan {
    /// Resolves what was given. `run_id` is the run's name in events and for the command.
    pub fn resolve(given: &[Given], command: Vec<OsString>, run_id: String) -> Result<Self, UsageError> {
        let values = Values::read(given)?;
        let mode = values.mode.unwrap_or(Mode::Standard);
        let session = session_plan(&values, mode)?;
        if values.shell && command.len() > 1 {
            return Err(UsageError(format!(
                "--shell takes the command as one string, but {} words were given: put them in quotes",
                command.len()
            )));
        }
        let max_attempts = session.limits.max_attempts;
        let supervision = SupervisionPlan {
            command,
            shell: values.shell,
            own_group: values.own_group,
            stdin: values.stdin.unwrap_or(Source::Auto),
            timeout: values.timeout,
            total_timeout: values.total_timeout,
            kill_signal: values.kill_signal.unwrap_or(Signal::TERM),
            kill_after: values.kill_after.unwrap_or(KILL_AFTER),
            kill_after_term: values.kill_after.is_some(),
            may_retry: max_attempts.is_none_or(|most| most.get() > 1),
            run_id,
            max_attempts: max_attempts.map_or_else(|| "unlimited".to_owned(), |most| most.to_string()),
        };
        Ok(Self {
            mode,
            session,
            supervision,
            seed: values.seed,
            verbosity: values.verbosity()?,
            events: values.events,
            log_arguments: values.log_arguments,
            exit_code_on_failure: values.exit_code_on_failure,
        })
    }

    /// The program as messages name it.
    pub fn program(&self) -> String {
        let word = self.supervision.command.first().map_or(&b""[..], |word| word.as_bytes());
        let name = String::from_utf8_lossy(word);
        if name.is_empty() || name.contains(char::is_whitespace) { format!("'{name}'") } else { name.into_owned() }
    }
}

fn session_plan(values: &Values, mode: Mode) -> Result<SessionPlan, UsageError> {
    let defaults = defaults(mode);
    if mode == Mode::Decorrelated && values.jitter.is_some() {
        return Err(UsageError(
            "--jitter: the decorrelated mode is random by its formula; leave --jitter out, or take --mode exponential"
                .into(),
        ));
    }
    let formula = match (defaults.formula, values.factor) {
        (Formula::Exponential { .. }, Some(factor)) => Formula::Exponential { factor },
        (formula, None) => formula,
        (_, Some(_)) => {
            return Err(UsageError(format!(
                "--factor: the {} mode has no power to put it in; take --mode exponential, standard or google",
                mode.as_str()
            )));
        }
    };
    let base = values.base.unwrap_or(defaults.base);
    // Where a mode has one base, it is the base of every failure.
    let throttling_base = match (values.throttling_base, mode) {
        (Some(base), _) => base,
        (None, Mode::Standard) => SECOND,
        (None, _) => base,
    };
    let backoff = Backoff {
        formula,
        jitter: values.jitter.unwrap_or(defaults.jitter),
        base,
        throttling_base,
        cap: values.max_backoff.unwrap_or(defaults.cap),
        floor: values.min_delay.unwrap_or(Duration::ZERO),
    };
    if backoff.floor > backoff.cap {
        return Err(UsageError(format!(
            "--min-delay: {} is above the longest delay, {}; lower it or raise --max-backoff",
            crate::units::human(backoff.floor),
            crate::units::human(backoff.cap)
        )));
    }
    let limits = Limits {
        max_attempts: values.max_attempts.map_or(defaults.attempts, |MaxAttempts(most)| most),
        deadline: values.deadline.or(defaults.deadline),
        total_timeout: values.total_timeout,
    };
    let stagger = values.stagger.unwrap_or(Duration::ZERO);
    for (name, limit) in [("--deadline", limits.deadline), ("--total-timeout", limits.total_timeout)] {
        if let Some(limit) = limit
            && stagger >= limit
        {
            return Err(UsageError(format!(
                "--stagger: a wait of up to {} can pass {name} {} before the first attempt; lower it",
                crate::units::human(stagger),
                crate::units::human(limit)
            )));
        }
    }
    // A bucket that one run uses protects nobody: a number of attempts given by the user
    // goes before it.
    let quota = defaults.quota && values.max_attempts.is_none();
    Ok(SessionPlan { backoff, limits, quota, stagger })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Invocation, parse};

    fn plan(line: &str) -> Result<Plan, String> {
        let words: Vec<OsString> =
            std::iter::once("retryx").chain(line.split_whitespace()).map(OsString::from).collect();
        match parse(&words).map_err(|error| error.0)? {
            Invocation::Run { given, command } => {
                Plan::resolve(&given, command, String::new()).map_err(|error| error.0)
            }
            Invocation::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn the_modes_have_their_documented_numbers() {
        let standard = plan("true").unwrap();
        assert_eq!(standard, plan("--mode standard true").unwrap());
        assert_eq!(standard, plan("--mode aws true").unwrap());
        assert_eq!(standard.session.backoff.base, Duration::from_millis(50));
        assert_eq!(standard.session.backoff.throttling_base, SECOND);
        assert_eq!(standard.session.backoff.cap, 20 * SECOND);
        assert_eq!(standard.session.limits.max_attempts, THREE);
        assert_eq!(standard.session.limits.deadline, None);
        assert!(standard.session.quota);
        let google = plan("--mode google true").unwrap();
        assert_eq!(google.session.backoff.base, SECOND);
        assert_eq!(google.session.backoff.cap, 32 * SECOND);
        assert_eq!(google.session.backoff.jitter, Jitter::Fraction);
        assert_eq!(google.session.limits.max_attempts, None);
        assert_eq!(google.session.limits.deadline, Some(300 * SECOND));
        assert!(!google.session.quota);
    }

    #[test]
    fn a_number_of_attempts_lifts_the_private_quota() {
        assert!(!plan("-n 100 true").unwrap().session.quota);
        assert!(!plan("-n unlimited true").unwrap().session.quota);
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place_and_the_remedy() {
        for (line, parts) in [
            ("-n 0 x", &["--max-attempts", "'0'", "unlimited"][..]),
            ("-n -1 x", &["--max-attempts", "'-1'"]),
            ("-n 1.5 x", &["--max-attempts", "'1.5'"]),
            ("-n three x", &["--max-attempts", "'three'"]),
            ("--timeout 0 x", &["--timeout", "leave it out"]),
            ("--deadline 0s x", &["--deadline", "leave it out"]),
            ("--total-timeout 0 x", &["--total-timeout", "leave it out"]),
            ("--timeout -5 x", &["--timeout", "'-5'", "250ms"]),
            ("--timeout 5x x", &["--timeout", "'5x'", "250ms"]),
            ("--base-delay nan x", &["--base-delay", "'nan'"]),
            ("--base-delay= x", &["--base-delay", "''"]),
            ("--factor 0.5 x", &["--factor", "'0.5'", "1"]),
            ("--factor inf x", &["--factor", "'inf'"]),
            ("--mode amazon x", &["--mode", "'amazon'", "standard"]),
            ("--jitter some x", &["--jitter", "'some'", "full"]),
            ("--kill-signal NOPE x", &["--kill-signal", "'NOPE'", "TERM"]),
            ("--seed -1 x", &["--seed", "'-1'"]),
            ("--exit-code-on-failure 256 x", &["--exit-code-on-failure", "'256'", "255"]),
            ("--min-delay 30s x", &["--min-delay", "--max-backoff"]),
            ("--stagger 5 --deadline 5 x", &["--stagger", "--deadline"]),
            ("--mode google --stagger 5m x", &["--stagger", "--deadline"]),
            ("--mode fixed --factor 2 x", &["--factor", "fixed"]),
            ("--mode decorrelated --jitter none x", &["--jitter", "decorrelated"]),
            ("--events fd:x y", &["--events", "'fd:x'"]),
            ("-q -v x", &["--quiet", "--verbose"]),
            ("--shell echo hi", &["--shell", "quotes"]),
            ("--stdin replay x", &["--stdin", "'replay'"]),
        ] {
            let error = plan(line).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{line}: {error}");
            }
        }
    }

    #[test]
    fn huge_numbers_are_endless() {
        let most = plan("-n 18446744073709551616 true").unwrap().session.limits.max_attempts;
        assert_eq!(most, NonZeroU64::new(u64::MAX));
        for duration in ["18446744073709551615s", "99999999999h", "1000000y"] {
            let line = format!(
                "--timeout {duration} --deadline {duration} --base-delay {duration} --max-backoff {duration} true"
            );
            assert!(plan(&line).is_ok(), "{duration}");
        }
    }

    #[test]
    fn the_last_giving_of_an_option_counts() {
        assert_eq!(plan("--timeout 1 --timeout 2 true").unwrap().supervision.timeout, Some(2 * SECOND));
    }
}
