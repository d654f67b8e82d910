//! Outcome → class, by ordered rules that each have a name (design §3).

use std::borrow::Cow;
use std::fmt;

use super::matcher::Term;
use super::{Mode, Outcome, Signal, StartFailure};

/// What an outcome means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command did its work.
    Success,
    /// Likely to pass: retried with the short base delay.
    Transient,
    /// The service asks for rest: retried with the long base delay.
    Throttling,
    /// Cannot succeed on a retry: never repeated.
    Permanent,
}

impl Class {
    /// The word used in messages, events and `RETRYX_RUN_LAST_CLASS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Transient => "transient",
            Self::Throttling => "throttling",
            Self::Permanent => "permanent",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A class and the name of the rule that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What the outcome was taken for.
    pub class: Class,
    /// The rule that decided, `default:exit` or `--retry-on 75` for example.
    pub rule: Cow<'static, str>,
}

/// All that is known of an attempt's end.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How it ended.
    pub outcome: &'a Outcome,
    /// The service's error code, where it gave one.
    pub error_code: Option<&'a str>,
    /// Whether the service says that the caller's allowance is used up.
    pub allowance_used_up: bool,
    /// What is known of standard output.
    pub stdout: &'a [u8],
    /// What is known of standard error.
    pub stderr: &'a [u8],
    /// What is known of the body of a response.
    pub body: &'a [u8],
}

impl<'a> Evidence<'a> {
    /// Nothing known but the outcome.
    pub fn of(outcome: &'a Outcome) -> Self {
        Self { outcome, error_code: None, allowance_used_up: false, stdout: b"", stderr: b"", body: b"" }
    }
}

/// The user's rules and what stands behind them; immutable for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifier {
    /// `--succeed-on`.
    pub succeed: Vec<Term>,
    /// `--fail-on`.
    pub fail: Vec<Term>,
    /// `--throttle-on`.
    pub throttle: Vec<Term>,
    /// `--retry-on`; if there is any, the list is the whole list.
    pub retry: Vec<Term>,
    /// The mode, whose statuses and codes count.
    pub mode: Mode,
    /// Whether 429 is retried in the google mode too.
    pub retry_429: bool,
}

/// Codes of transient errors (reference §1.4).
const TRANSIENT_CODES: [&str; 4] =
    ["RequestTimeout", "RequestTimeoutException", "InternalError", "IDPCommunicationError"];
/// Codes of throttling (reference §1.4).
const THROTTLING_CODES: [&str; 14] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "TransactionInProgressException",
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "LimitExceededException",
    "RequestThrottled",
    "SlowDown",
    "PriorRequestNotComplete",
    "EC2ThrottledException",
];
/// Codes that the legacy mode retries, with status 400 only (reference §5).
const LEGACY_CODES: [&str; 5] = [
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottledException",
    "ProvisionedThroughputExceededException",
];
/// Google RPC statuses that go with HTTP 500, 503 and 504.
const GOOGLE_TRANSIENT: [&str; 4] = ["UNAVAILABLE", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED"];
/// The Google RPC status that goes with HTTP 429.
const GOOGLE_THROTTLING: &str = "RESOURCE_EXHAUSTED";
/// Statuses of a server that may recover (reference §1.4 and §9).
const TRANSIENT_STATUSES: [u16; 4] = [500, 502, 503, 504];
/// "Bandwidth limit exceeded", which the legacy mode retries too (reference §5).
const BANDWIDTH: u16 = 509;
const TOO_MANY_REQUESTS: u16 = 429;
const FORBIDDEN: u16 = 403;

/// Exit codes that a shell or wrapper uses for a command that cannot be run (126)
/// or was not found (127).
const CANNOT_RUN: [u8; 2] = [126, 127];
/// 128 + SIGINT, as a shell reports a command that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// 128 + SIGPIPE, as a shell reports a command whose reader went away.
const BROKEN_PIPE: u8 = 141;

impl Classifier {
    /// A classifier without rules of the user's.
    pub fn new(mode: Mode) -> Self {
        let none = Vec::new;
        Self { succeed: none(), fail: none(), throttle: none(), retry: none(), mode, retry_429: false }
    }

    /// Judges an attempt: the user's rules first, then the service's own words, then the
    /// defaults.
    pub fn classify(&self, evidence: &Evidence<'_>) -> Verdict {
        let default = self.without_rules(evidence);
        let options = [
            ("--succeed-on", &self.succeed, Class::Success),
            ("--fail-on", &self.fail, Class::Permanent),
            ("--throttle-on", &self.throttle, Class::Throttling),
            ("--retry-on", &self.retry, Class::Transient),
        ];
        for (option, terms, class) in options {
            if let Some(term) = terms.iter().find(|term| term.matches(evidence, default.class, class)) {
                let class = if term.is_default() { default.class } else { class };
                return Verdict { class, rule: format!("{option} {term}").into() };
            }
        }
        let failed = matches!(default.class, Class::Transient | Class::Throttling);
        if failed && !self.retry.is_empty() && !matches!(evidence.outcome, Outcome::TimedOut(_)) {
            return Verdict { class: Class::Permanent, rule: "--retry-on does not name it".into() };
        }
        default
    }

    fn without_rules(&self, evidence: &Evidence<'_>) -> Verdict {
        let status = match evidence.outcome {
            Outcome::Responded(status) => Some(*status),
            _ => None,
        };
        if let Some(code) = evidence.error_code
            && by_default(evidence).class != Class::Success
            && let Some(verdict) = self.by_code(code, status)
        {
            return verdict;
        }
        match status {
            Some(status) => self.by_status(status, evidence.allowance_used_up),
            None => by_default(evidence),
        }
    }

    /// What a service's own word means; `None` for one that is in no list.
    fn by_code(&self, code: &str, status: Option<u16>) -> Option<Verdict> {
        if self.mode == Mode::Legacy {
            let known = LEGACY_CODES.contains(&code) && status.is_none_or(|status| status == 400);
            return known.then(|| named(Class::Throttling, format!("aws:code {code}")));
        }
        if TRANSIENT_CODES.contains(&code) {
            return Some(named(Class::Transient, format!("aws:code {code}")));
        }
        if THROTTLING_CODES.contains(&code) {
            return Some(named(Class::Throttling, format!("aws:code {code}")));
        }
        if GOOGLE_TRANSIENT.contains(&code) {
            return Some(named(Class::Transient, format!("google:status {code}")));
        }
        (code == GOOGLE_THROTTLING).then(|| named(self.too_many_requests(), format!("google:status {code}")))
    }

    /// Google's guide makes retrying 429 optional (reference §9).
    fn too_many_requests(&self) -> Class {
        if self.mode == Mode::Google && !self.retry_429 { Class::Permanent } else { Class::Throttling }
    }

    fn by_status(&self, status: u16, allowance_used_up: bool) -> Verdict {
        let class = match status {
            200..400 => Class::Success,
            TOO_MANY_REQUESTS => self.too_many_requests(),
            FORBIDDEN if allowance_used_up => {
                return named(Class::Throttling, "default:x-ratelimit-remaining 0".to_owned());
            }
            BANDWIDTH if self.mode == Mode::Legacy => Class::Throttling,
            _ if TRANSIENT_STATUSES.contains(&status) => Class::Transient,
            _ => Class::Permanent,
        };
        named(class, format!("default:http {status}"))
    }
}

fn named(class: Class, rule: String) -> Verdict {
    Verdict { class, rule: rule.into() }
}

/// The defaults for commands: success at 0; 126, 127, 130, 141, death by INT or PIPE, and
/// a command that is not there are permanent; all else is transient.
fn by_default(evidence: &Evidence<'_>) -> Verdict {
    let (class, rule) = match evidence.outcome {
        Outcome::Exited(0) => (Class::Success, "default:success"),
        Outcome::Responded(200..400) => (Class::Success, "default:http"),
        Outcome::Exited(code) if CANNOT_RUN.contains(code) => (Class::Permanent, "default:cannot-run"),
        Outcome::Exited(INTERRUPTED) | Outcome::Signaled(Signal::INT) => (Class::Permanent, "default:interrupted"),
        Outcome::Exited(BROKEN_PIPE) | Outcome::Signaled(Signal::PIPE) => (Class::Permanent, "default:broken-pipe"),
        Outcome::Exited(_) => (Class::Transient, "default:exit"),
        Outcome::Responded(_) => (Class::Permanent, "default:http"),
        Outcome::Signaled(_) => (Class::Transient, "default:signal"),
        Outcome::TimedOut(_) => (Class::Transient, "default:timeout"),
        Outcome::NotStarted { failure: StartFailure::Transient, .. } => (Class::Transient, "default:not-started"),
        Outcome::NotStarted { .. } => (Class::Permanent, "default:cannot-run"),
    };
    Verdict { class, rule: rule.into() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::TimeLimit;
    use crate::policy::matcher::parse;

    fn class(outcome: &Outcome) -> Class {
        Classifier::new(Mode::Standard).classify(&Evidence::of(outcome)).class
    }

    #[test]
    fn every_exit_code_has_the_documented_class() {
        for code in 0..=u8::MAX {
            let expected = match code {
                0 => Class::Success,
                126 | 127 | 130 | 141 => Class::Permanent,
                _ => Class::Transient,
            };
            assert_eq!(class(&Outcome::Exited(code)), expected, "{code}");
        }
    }

    #[test]
    fn only_int_and_pipe_are_permanent_deaths() {
        for number in 1..=Signal::MAX {
            let expected = match Signal(number) {
                Signal::INT | Signal::PIPE => Class::Permanent,
                _ => Class::Transient,
            };
            assert_eq!(class(&Outcome::Signaled(Signal(number))), expected);
        }
    }

    fn not_started(failure: StartFailure) -> Outcome {
        Outcome::NotStarted { failure, errno: 0, error: String::new() }
    }

    const TIMED_OUT: Outcome = Outcome::TimedOut(TimeLimit::Attempt(Duration::ZERO));

    #[test]
    fn a_timeout_is_transient_and_start_failures_follow_their_kind() {
        assert_eq!(class(&TIMED_OUT), Class::Transient);
        for (failure, expected) in [
            (StartFailure::NotFound, Class::Permanent),
            (StartFailure::CannotRun, Class::Permanent),
            (StartFailure::Transient, Class::Transient),
        ] {
            assert_eq!(class(&not_started(failure)), expected);
        }
    }

    #[test]
    fn every_status_has_the_documented_class() {
        for status in 100..600 {
            for (mode, retry_429) in
                [(Mode::Standard, false), (Mode::Google, false), (Mode::Google, true), (Mode::Legacy, false)]
            {
                let expected = match (status, mode) {
                    (200..400, _) => Class::Success,
                    (500 | 502 | 503 | 504, _) => Class::Transient,
                    (429, Mode::Google) if !retry_429 => Class::Permanent,
                    (429, _) | (509, Mode::Legacy) => Class::Throttling,
                    _ => Class::Permanent,
                };
                let classifier = Classifier { retry_429, ..Classifier::new(mode) };
                let outcome = Outcome::Responded(status);
                assert_eq!(classifier.classify(&Evidence::of(&outcome)).class, expected, "{status} {mode:?}");
            }
        }
    }

    #[test]
    fn a_code_goes_before_the_status_and_never_touches_success() {
        let classifier = Classifier::new(Mode::Standard);
        for (status, code, expected) in [
            (400, "Throttling", Class::Throttling),
            (503, "SlowDown", Class::Throttling),
            (400, "RequestTimeout", Class::Transient),
            (500, "InternalServiceError", Class::Transient),
            (400, "AccessDenied", Class::Permanent),
            (400, "throttling", Class::Permanent),
            (404, "UNAVAILABLE", Class::Transient),
            (200, "Throttling", Class::Success),
        ] {
            let outcome = Outcome::Responded(status);
            let evidence = Evidence { error_code: Some(code), ..Evidence::of(&outcome) };
            assert_eq!(classifier.classify(&evidence).class, expected, "{status} {code}");
        }
        let google = Classifier::new(Mode::Google);
        let outcome = Outcome::Responded(429);
        let exhausted = Evidence { error_code: Some("RESOURCE_EXHAUSTED"), ..Evidence::of(&outcome) };
        assert_eq!(google.classify(&exhausted).class, Class::Permanent);
        let forbidden = Outcome::Responded(403);
        let used_up = Evidence { allowance_used_up: true, ..Evidence::of(&forbidden) };
        assert_eq!(classifier.classify(&used_up).class, Class::Throttling);
    }

    /// The class that rules give an outcome, by the lists of the four options.
    fn ruled(lists: [&str; 4], evidence: &Evidence<'_>) -> Class {
        let [succeed, fail, throttle, retry] =
            lists.map(|list| if list.is_empty() { Vec::new() } else { parse(list).unwrap() });
        let classifier = Classifier { succeed, fail, throttle, retry, ..Classifier::new(Mode::Standard) };
        classifier.classify(evidence).class
    }

    #[test]
    fn rules_close_the_list_and_refusal_beats_retry() {
        let retry = |list| ["", "", "", list];
        let code = Outcome::Exited;
        for (lists, outcome, expected) in [
            (retry("2,75-78"), code(1), Class::Permanent),
            (retry("2,75-78"), code(2), Class::Transient),
            (retry("2,75-78"), code(74), Class::Permanent),
            (retry("2,75-78"), code(78), Class::Transient),
            (retry("2"), TIMED_OUT, Class::Transient),
            (["", "timeout", "", "2"], TIMED_OUT, Class::Permanent),
            (retry("124"), TIMED_OUT, Class::Transient),
            (["", "124", "", ""], TIMED_OUT, Class::Transient),
            (["", "7", "", "any"], code(7), Class::Permanent),
            (["7", "7", "7", "7"], code(7), Class::Success),
            (["", "", "75", ""], code(75), Class::Throttling),
            (["", "", "75", ""], code(1), Class::Transient),
            (["", "", "75", "75"], code(75), Class::Throttling),
            (retry("any"), code(126), Class::Transient),
            (retry("any"), not_started(StartFailure::NotFound), Class::Permanent),
            (retry("127"), not_started(StartFailure::NotFound), Class::Transient),
            (retry("126"), not_started(StartFailure::CannotRun), Class::Transient),
            (retry("any"), code(0), Class::Success),
            (["", "any", "", ""], code(0), Class::Success),
            (["", "0", "", ""], code(0), Class::Permanent),
            (retry("0"), code(0), Class::Transient),
            (retry("signal:KILL"), Outcome::Signaled(Signal::KILL), Class::Transient),
            (retry("137"), Outcome::Signaled(Signal::KILL), Class::Permanent),
            (retry("default,http:408"), Outcome::Responded(408), Class::Transient),
            (retry("default,http:408"), Outcome::Responded(503), Class::Transient),
            (retry("default,http:408"), Outcome::Responded(429), Class::Throttling),
            (retry("default,http:408"), Outcome::Responded(404), Class::Permanent),
            (retry("http:4xx"), Outcome::Responded(200), Class::Success),
            (retry("http:2xx"), Outcome::Responded(200), Class::Transient),
        ] {
            assert_eq!(ruled(lists, &Evidence::of(&outcome)), expected, "{lists:?} {outcome:?}");
        }
    }

    #[test]
    fn patterns_look_where_they_say_and_only_at_failures() {
        let failed = Outcome::Exited(1);
        let done = Outcome::Exited(0);
        let with = |outcome| Evidence { stdout: b"to out", stderr: b"to \x1b[31merr\x1b[0m", ..Evidence::of(outcome) };
        for (rule, outcome, expected) in [
            ("stdout:/out/", &failed, Class::Transient),
            ("stdout:/err/", &failed, Class::Permanent),
            ("stderr:/TO ERR$/i", &failed, Class::Transient),
            ("output:/err/", &failed, Class::Transient),
            ("1 and output:/never/", &failed, Class::Permanent),
            ("output:/out/", &done, Class::Success),
            ("0 and output:/out/", &done, Class::Transient),
            ("0 and output:/never/", &done, Class::Success),
        ] {
            assert_eq!(ruled(["", "", "", rule], &with(outcome)), expected, "{rule}");
        }
    }
}
