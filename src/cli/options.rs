//! The one table of options.

/// Names each option in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the table says what each is")]
pub enum Id {
    Mode,
    MaxAttempts,
    BaseDelay,
    ThrottleBaseDelay,
    Factor,
    MaxBackoff,
    MinDelay,
    Jitter,
    Stagger,
    Seed,
    Deadline,
    Timeout,
    TotalTimeout,
    KillAfter,
    KillSignal,
    Stdin,
    Shell,
    OwnGroup,
    ExitCodeOnFailure,
    Events,
    LogArguments,
    Quiet,
    Verbose,
    Help,
    Version,
}

/// One option, in the words that help, manual and completions share.
#[derive(Debug)]
pub struct Opt {
    /// Its name in the code.
    pub id: Id,
    /// Its long name, without dashes.
    pub long: &'static str,
    /// Its short name.
    pub short: Option<char>,
    /// What its value is called; `None` for a flag.
    pub value: Option<&'static str>,
    /// The values it takes, where these are words of a list.
    pub choices: &'static [&'static str],
    /// The group it is shown in.
    pub heading: &'static str,
    /// What it does, in a phrase.
    pub help: &'static str,
    /// The rest that a user has to know, in sentences; shown by `--help` and the manual.
    pub more: &'static str,
}

const POLICY: &str = "Policy";
const LIMITS: &str = "Limits";
const COMMAND: &str = "Command";
const REPORT: &str = "Report";

/// Every option, in the order of the help.
pub static OPTIONS: [Opt; 25] = [
    Opt {
        id: Id::Mode,
        long: "mode",
        short: None,
        value: Some("MODE"),
        choices: &["standard", "aws", "google", "fixed", "linear", "exponential", "decorrelated"],
        heading: POLICY,
        help: "The policy: delay formula, attempts and limits [default: standard]",
        more: "standard (or aws) is the AWS SDKs' standard mode: u × min(20 s, 50 ms × 2^i), 3 attempts. google is \
               min(2^i + f, 32) s with f in (0, 1], no limit on attempts, a deadline of 300 s. fixed, linear and \
               exponential start from 1 s with 3 attempts, a cap of 1 h for the last two, and full jitter for \
               exponential; decorrelated draws each delay between 1 s and 3 times the one before, up to 20 s",
    },
    Opt {
        id: Id::MaxAttempts,
        long: "max-attempts",
        short: Some('n'),
        value: Some("N"),
        choices: &[],
        heading: POLICY,
        help: "Most runs of the command, the first included; 'unlimited' for no limit",
        more: "1 never retries; 0 is refused. Given, it lifts the retry quota of the standard mode (500 tokens, 14 a \
               retry), which by itself ends a run after 36 attempts",
    },
    Opt {
        id: Id::BaseDelay,
        long: "base-delay",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: POLICY,
        help: "The delay that the formula starts from [default: 50ms in standard mode, else 1s]",
        more: "Zero is no wait",
    },
    Opt {
        id: Id::ThrottleBaseDelay,
        long: "throttle-base-delay",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: POLICY,
        help: "The same after a failure that was throttling [default: 1s]",
        more: "",
    },
    Opt {
        id: Id::Factor,
        long: "factor",
        short: None,
        value: Some("NUMBER"),
        choices: &[],
        heading: POLICY,
        help: "What each delay grows by, in place of the 2 of the formulas; at least 1",
        more: "",
    },
    Opt {
        id: Id::MaxBackoff,
        long: "max-backoff",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: POLICY,
        help: "The longest delay [default: that of the mode]",
        more: "A base above it is cut to it; zero is no wait at all",
    },
    Opt {
        id: Id::MinDelay,
        long: "min-delay",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: POLICY,
        help: "The shortest delay, jitter included [default: 0]",
        more: "Full jitter can draw almost no wait; this is the floor under it",
    },
    Opt {
        id: Id::Jitter,
        long: "jitter",
        short: None,
        value: Some("KIND"),
        choices: &["full", "equal", "fraction", "none"],
        heading: POLICY,
        help: "How a delay d is spread [default: that of the mode]",
        more: "full: u × d with u in [0, 1). equal: d/2 + u × d/2. fraction: d + f seconds with f in (0, 1], cut at \
               the longest delay. none: d",
    },
    Opt {
        id: Id::Stagger,
        long: "stagger",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: POLICY,
        help: "Wait a random part of this before the first attempt",
        more: "For fleets whose cron fires at the same second",
    },
    Opt {
        id: Id::Seed,
        long: "seed",
        short: None,
        value: Some("N"),
        choices: &[],
        heading: POLICY,
        help: "Draw the same random numbers each time",
        more: "",
    },
    Opt {
        id: Id::Deadline,
        long: "deadline",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: LIMITS,
        help: "Start no attempt after this [default: 300s in google mode, else none]",
        more: "A delay that would end past it is not slept: retryx stops at once and says so. A running attempt is \
               left to finish; --total-timeout ends it",
    },
    Opt {
        id: Id::Timeout,
        long: "timeout",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: LIMITS,
        help: "End an attempt that takes longer; it is retried",
        more: "All its processes get the --kill-signal, and KILL if they are still there after --kill-after, also \
               those that left its process group or session",
    },
    Opt {
        id: Id::TotalTimeout,
        long: "total-timeout",
        short: None,
        value: Some("DURATION"),
        choices: &[],
        heading: LIMITS,
        help: "End everything after this, a running attempt included",
        more: "The run is over at this time plus at most --kill-after. A delay that would reach it is not slept",
    },
    Opt {
        id: Id::KillAfter,
        long: "kill-after",
        short: Some('k'),
        value: Some("DURATION"),
        choices: &[],
        heading: LIMITS,
        help: "How long after the --kill-signal KILL follows [default: 10s]",
        more: "Zero kills at once. Given, it also bounds a TERM that somebody sends to retryx and that is passed on",
    },
    Opt {
        id: Id::KillSignal,
        long: "kill-signal",
        short: None,
        value: Some("SIGNAL"),
        choices: &[],
        heading: LIMITS,
        help: "What a limit sends first, by name or number [default: TERM]",
        more: "CONT follows it, so that a stopped process acts on it",
    },
    Opt {
        id: Id::Stdin,
        long: "stdin",
        short: None,
        value: Some("KIND"),
        choices: &["auto", "inherit", "null"],
        heading: COMMAND,
        help: "What attempts read [default: auto]",
        more: "auto: retryx's own standard input; a file is put back to where it was before each retry, and nothing \
               is retried once something was read from a pipe. inherit: as it is, at your risk. null: /dev/null",
    },
    Opt {
        id: Id::Shell,
        long: "shell",
        short: None,
        value: None,
        choices: &[],
        heading: COMMAND,
        help: "The command is one string for the shell",
        more: "It runs with sh -c, and fails where any part of it fails (set -e, pipefail). Where sh does not know \
               pipefail, bash runs it",
    },
    Opt {
        id: Id::OwnGroup,
        long: "own-group",
        short: None,
        value: None,
        choices: &[],
        heading: COMMAND,
        help: "Give each attempt a process group of its own",
        more: "Keys such as Ctrl-C then reach retryx only, which passes them on to that group; the command cannot \
               read from the terminal",
    },
    Opt {
        id: Id::ExitCodeOnFailure,
        long: "exit-code-on-failure",
        short: None,
        value: Some("N"),
        choices: &[],
        heading: COMMAND,
        help: "Exit with this when the run fails, whatever the command returned",
        more: "Not when a signal ended the run, nor for retryx's own failures (125)",
    },
    Opt {
        id: Id::Events,
        long: "events",
        short: None,
        value: Some("FILE|fd:N"),
        choices: &[],
        heading: REPORT,
        help: "Append each step as a line of JSON to a file, or write it to a descriptor",
        more: "One write a line, so that many runs can share a file",
    },
    Opt {
        id: Id::LogArguments,
        long: "log-arguments",
        short: None,
        value: None,
        choices: &[],
        heading: REPORT,
        help: "Let --events hold the command's arguments, which may be secret",
        more: "",
    },
    Opt {
        id: Id::Quiet,
        long: "quiet",
        short: Some('q'),
        value: None,
        choices: &[],
        heading: REPORT,
        help: "Say only what retryx itself could not do",
        more: "",
    },
    Opt {
        id: Id::Verbose,
        long: "verbose",
        short: Some('v'),
        value: None,
        choices: &[],
        heading: REPORT,
        help: "Say how each delay came about; twice: everything",
        more: "",
    },
    Opt {
        id: Id::Help,
        long: "help",
        short: Some('h'),
        value: None,
        choices: &[],
        heading: REPORT,
        help: "Print help; -h prints less of it",
        more: "",
    },
    Opt {
        id: Id::Version,
        long: "version",
        short: Some('V'),
        value: None,
        choices: &[],
        heading: REPORT,
        help: "Print the version",
        more: "",
    },
];
