//! Outcome → class, by ordered rules that each have a name (design §3).

use std::borrow::Cow;
use std::fmt;

use super::matcher::Term;
use super::preset::{Preset, Row};
use super::watch::Sightings;
use super::{Mode, Outcome, Prospect, Signal, StartFailure};

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
    /// What a user could do so that more is known, or less is needed.
    pub advice: Option<Cow<'static, str>>,
    /// The status of an answer that the program told of.
    pub http_status: Option<u16>,
    /// The error code of a service that the program told of.
    pub error_code: Option<String>,
}

/// All that is known of an attempt's end.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How it ended.
    pub outcome: &'a Outcome,
    /// The status of an answer that a command told of.
    pub told_status: Option<u16>,
    /// The service's error code, where it gave one.
    pub error_code: Option<&'a str>,
    /// Whether the service says that the caller's allowance is used up.
    pub allowance_used_up: bool,
    /// What was found in what the command wrote, or in the body of the answer.
    pub sightings: &'a Sightings,
}

impl<'a> Evidence<'a> {
    /// Nothing known but the outcome.
    pub fn of(outcome: &'a Outcome) -> Self {
        Self { outcome, told_status: None, error_code: None, allowance_used_up: false, sightings: Sightings::NONE }
    }

    /// The status of the answer, whoever told of it.
    pub(super) fn status(&self) -> Option<u16> {
        match self.outcome {
            Outcome::Responded(status) => Some(*status),
            _ => self.told_status,
        }
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
    /// What is known of the program.
    pub preset: Option<Preset>,
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

/// Said where a preset could have judged by messages that went to a terminal.
const UNREAD: &str = "its messages on the terminal are not read; with --watch they tell whether a retry can help";

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
        Self { succeed: none(), fail: none(), throttle: none(), retry: none(), preset: None, mode, retry_429: false }
    }

    /// Judges an attempt: the user's rules first, then the service's own words, then what is
    /// known of the program, then the defaults.
    pub fn classify(&self, evidence: &Evidence<'_>) -> Verdict {
        let evidence = &self.with_told(evidence);
        let mut verdict = self.judge(evidence);
        verdict.http_status = evidence.status();
        verdict.error_code = evidence.error_code.map(str::to_owned);
        verdict
    }

    /// Adds what the program told of an answer, where it failed by itself.
    fn with_told<'a>(&'a self, evidence: &Evidence<'a>) -> Evidence<'a> {
        let mut evidence = *evidence;
        if let (Some(preset), Outcome::Exited(1..)) = (&self.preset, evidence.outcome) {
            let told = |pattern: &Option<_>| pattern.as_ref().and_then(|pattern| evidence.sightings.captured(pattern));
            let (status, code) = (told(&preset.status), told(&preset.code));
            let number = |text: &str| text.parse().ok().filter(|status| (100..600).contains(status));
            evidence.told_status = status.or(code).and_then(number);
            evidence.error_code = code.filter(|code| number(code).is_none());
        }
        evidence
    }

    fn judge(&self, evidence: &Evidence<'_>) -> Verdict {
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
                return Verdict::new(class, format!("{option} {term}"));
            }
        }
        let failed = matches!(default.class, Class::Transient | Class::Throttling);
        if failed && !self.retry.is_empty() && !matches!(evidence.outcome, Outcome::TimedOut(_)) {
            return Verdict::new(Class::Permanent, "--retry-on does not name it");
        }
        default
    }

    fn without_rules(&self, evidence: &Evidence<'_>) -> Verdict {
        if let Some(code) = evidence.error_code
            && by_default(evidence).class != Class::Success
            && let Some(verdict) = self.by_code(code, evidence.status())
        {
            return verdict;
        }
        match evidence.outcome {
            Outcome::Responded(status) => {
                let (class, rule) = self.by_status(*status, evidence.allowance_used_up);
                Verdict::new(class, format!("default:{rule}"))
            }
            Outcome::Exited(1..) | Outcome::Signaled(Signal::PIPE) => self.by_preset(evidence).unwrap_or_else(|| {
                let advice = evidence.sightings.is_unread().then_some(Cow::Borrowed(UNREAD));
                Verdict { advice, ..by_default(evidence) }
            }),
            _ => by_default(evidence),
        }
    }

    /// What is known of the program's own failures.
    fn by_preset(&self, evidence: &Evidence<'_>) -> Option<Verdict> {
        let preset = self.preset.as_ref()?;
        let known = by_default(evidence).class;
        let read = !evidence.sightings.is_unread();
        let silent = evidence.told_status.is_none() && read;
        let applies = |row: &&Row| (read || !row.read) && (silent || !row.without_status);
        let holds = |row: &&Row| applies(row) && row.when.matches(evidence, known, row.class);
        if let Some(row) = preset.rows.iter().find(holds) {
            let advice = row.advice.clone().map(Cow::Owned);
            return Some(Verdict { advice, ..Verdict::new(row.class, preset.rule(&row.is)) });
        }
        // Success was another answer's: the program failed. And statuses that are a network's
        // rather than a server's word do not make permanent what the defaults retry.
        let told = evidence.told_status.filter(|status| !matches!(status, 100..400 | 408 | 425 | 505..))?;
        let (class, _) = self.by_status(told, false);
        Some(Verdict::new(class, preset.rule(&format!("status {told}"))))
    }

    /// What a service's own word means; `None` for one that is in no list.
    fn by_code(&self, code: &str, status: Option<u16>) -> Option<Verdict> {
        if self.mode == Mode::Legacy {
            let known = LEGACY_CODES.contains(&code) && status.is_none_or(|status| status == 400);
            return known.then(|| Verdict::new(Class::Throttling, format!("aws:code {code}")));
        }
        if TRANSIENT_CODES.contains(&code) {
            return Some(Verdict::new(Class::Transient, format!("aws:code {code}")));
        }
        if THROTTLING_CODES.contains(&code) {
            return Some(Verdict::new(Class::Throttling, format!("aws:code {code}")));
        }
        if GOOGLE_TRANSIENT.contains(&code) {
            return Some(Verdict::new(Class::Transient, format!("google:status {code}")));
        }
        (code == GOOGLE_THROTTLING).then(|| Verdict::new(self.too_many_requests(), format!("google:status {code}")))
    }

    /// Google's guide makes retrying 429 optional (reference §9).
    fn too_many_requests(&self) -> Class {
        if self.mode == Mode::Google && !self.retry_429 { Class::Permanent } else { Class::Throttling }
    }

    fn by_status(&self, status: u16, allowance_used_up: bool) -> (Class, String) {
        let class = match status {
            200..400 => Class::Success,
            TOO_MANY_REQUESTS => self.too_many_requests(),
            FORBIDDEN if allowance_used_up => {
                return (Class::Throttling, "x-ratelimit-remaining 0".to_owned());
            }
            BANDWIDTH if self.mode == Mode::Legacy => Class::Throttling,
            _ if TRANSIENT_STATUSES.contains(&status) => Class::Transient,
            _ => Class::Permanent,
        };
        (class, format!("http {status}"))
    }
}

impl Verdict {
    fn new(class: Class, rule: impl Into<Cow<'static, str>>) -> Self {
        Self { class, rule: rule.into(), advice: None, http_status: None, error_code: None }
    }
}

/// The defaults for commands: success at 0; 126, 127, 130, 141, death by INT or PIPE, and
/// a command that is not there are permanent; all else is transient.
fn by_default(evidence: &Evidence<'_>) -> Verdict {
    let (class, rule) = match evidence.outcome {
        Outcome::Exited(0) => (Class::Success, "default:success"),
        Outcome::Responded(200..400) => (Class::Success, "default:http"),
        Outcome::Exited(code) if CANNOT_RUN.contains(code) => (Class::Permanent, "default:cannot-run"),
        Outcome::Exited(INTERRUPTED) | Outcome::Signaled(Signal::INT) | Outcome::Interrupted(_) => {
            (Class::Permanent, "default:interrupted")
        }
        Outcome::Exited(BROKEN_PIPE) | Outcome::Signaled(Signal::PIPE) => (Class::Permanent, "default:broken-pipe"),
        Outcome::Exited(_) => (Class::Transient, "default:exit"),
        Outcome::Responded(_) => (Class::Permanent, "default:http"),
        Outcome::TransportFailed { prospect, .. } => {
            let class = match prospect {
                Prospect::Same => Class::Permanent,
                Prospect::Better => Class::Transient,
                Prospect::BetterAfterRest => Class::Throttling,
            };
            (class, "default:transport")
        }
        Outcome::Signaled(_) => (Class::Transient, "default:signal"),
        Outcome::TimedOut(_) => (Class::Transient, "default:timeout"),
        Outcome::NotStarted { failure: StartFailure::Transient, .. } => (Class::Transient, "default:not-started"),
        Outcome::NotStarted { .. } => (Class::Permanent, "default:cannot-run"),
    };
    Verdict::new(class, rule)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::matcher::parse;
    use crate::policy::matcher::{Check, Pattern, Stream};
    use crate::policy::{Lookout, Row, TimeLimit};

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
            let mut lookout = Lookout::default();
            parse(rule).unwrap()[0].watched().for_each(|pattern| lookout.add(pattern, true));
            let sightings =
                lookout.sightings(&[(Stream::Stdout, b"to out"), (Stream::Stderr, b"to \x1b[31merr\x1b[0m")]);
            let evidence = Evidence { sightings: &sightings, ..Evidence::of(outcome) };
            assert_eq!(ruled(["", "", "", rule], &evidence), expected, "{rule}");
        }
    }

    #[test]
    fn a_preset_sharpens_what_the_program_itself_failed_with() {
        let row = |when: &str, class, is: &str| Row {
            when: parse(when).unwrap().remove(0),
            class,
            is: is.to_owned(),
            advice: None,
            read: false,
            without_status: false,
        };
        let preset = Preset {
            name: "p".to_owned(),
            status: Some(Pattern::parse("stderr:/error: (\\d+)/", Check::Now).unwrap()),
            code: Some(Pattern::parse("stderr:/occurred \\((\\w+)\\)/", Check::Now).unwrap()),
            rows: vec![
                row("3", Class::Permanent, "bad usage"),
                row("22 and stderr:/later/", Class::Throttling, "asked to wait"),
                row("error:AccessDenied", Class::Permanent, "access denied"),
                Row { without_status: true, ..row("22", Class::Transient, "status not told") },
            ],
        };
        let mut lookout = Lookout::default();
        preset.watched().for_each(|pattern| lookout.add(pattern, true));
        let classifier = Classifier { preset: Some(preset), ..Classifier::new(Mode::Standard) };
        let (exited, killed) = (Outcome::Exited, Outcome::Signaled(Signal::KILL));
        for (outcome, stderr, class, rule) in [
            (exited(3), "", Class::Permanent, "p preset, bad usage"),
            (exited(22), "come later", Class::Throttling, "p preset, asked to wait"),
            (exited(22), "error: 404", Class::Permanent, "p preset, status 404"),
            (exited(22), "error: 429", Class::Throttling, "p preset, status 429"),
            (exited(22), "error: 503", Class::Transient, "p preset, status 503"),
            (exited(22), "error: 200", Class::Transient, "default:exit"),
            (exited(22), "error: 408", Class::Transient, "default:exit"),
            (exited(22), "error: 522", Class::Transient, "default:exit"),
            (exited(22), "error: 999", Class::Transient, "p preset, status not told"),
            (exited(22), "", Class::Transient, "p preset, status not told"),
            (exited(1), "occurred (SlowDown)", Class::Throttling, "aws:code SlowDown"),
            (exited(1), "occurred (AccessDenied)", Class::Permanent, "p preset, access denied"),
            (exited(1), "occurred (503)", Class::Transient, "p preset, status 503"),
            (exited(1), "occurred (Other)", Class::Transient, "default:exit"),
            (exited(0), "error: 404", Class::Success, "default:success"),
            (killed, "error: 404", Class::Transient, "default:signal"),
            (TIMED_OUT, "occurred (AccessDenied)", Class::Transient, "default:timeout"),
        ] {
            let sightings = lookout.sightings(&[(Stream::Stderr, stderr.as_bytes())]);
            let evidence = Evidence { sightings: &sightings, ..Evidence::of(&outcome) };
            let verdict = classifier.classify(&evidence);
            assert_eq!((verdict.class, &*verdict.rule), (class, rule), "{outcome:?} {stderr}");
            let own = Classifier { retry: parse("http:404,error:Other").unwrap(), ..classifier.clone() };
            let named = matches!(outcome, Outcome::Exited(1..)) && (stderr.contains("404") || stderr.contains("Other"));
            assert_eq!(
                own.classify(&evidence).rule.starts_with("--retry-on http:404"),
                named && stderr.contains("404")
            );
        }
    }
}
