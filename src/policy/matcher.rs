//! The grammar of `--retry-on`, `--throttle-on`, `--fail-on` and `--succeed-on`
//! (design §3): what a user writes to match an outcome.
//!
//! ```text
//! list    = term { "," term }
//! term    = atom { " and " atom }
//! atom    = CODE | CODE-CODE | signal:NAME | timeout | http:STATUS | http:Nxx | http:STATUS-STATUS
//!         | error:NAME | stdout:/RE/[i] | stderr:/RE/[i] | output:/RE/[i] | body:/RE/[i] | any | default
//! ```

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::Look;

use super::{Class, Evidence, Outcome, Preset, Signal, StartFailure};

/// Where a pattern looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both.
    Output,
    /// The body of a response.
    Body,
}

/// Blanks before the pattern in the picture of an error.
const INDENT: usize = 4;

const STREAMS: [(&str, Stream); 4] =
    [("stdout:", Stream::Stdout), ("stderr:", Stream::Stderr), ("output:", Stream::Output), ("body:", Stream::Body)];

/// A pattern, as it was written and as it runs.
#[derive(Debug, Clone)]
pub struct Pattern {
    stream: Stream,
    source: String,
    ignore_case: bool,
    /// Shared by all copies.
    expressions: Arc<Expressions>,
}

/// A pattern's expressions, each made when it is first needed.
#[derive(Debug, Default)]
struct Expressions {
    of_line: OnceLock<Regex>,
    among_lines: OnceLock<Option<Regex>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (self.stream, &self.source, self.ignore_case) == (other.stream, &other.source, other.ignore_case)
    }
}

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Atom {
    /// An exit code.
    Exit(RangeInclusive<u8>),
    /// Death by a signal.
    Signal(Signal),
    /// An attempt that a time limit ended.
    Timeout,
    /// A response status.
    Http(RangeInclusive<u16>),
    /// An error code of the service.
    Error(String),
    /// A line that a pattern matches.
    Pattern(Pattern),
    /// Any failure of a command that was started.
    Any,
    /// What would be said without the user's rules.
    Default,
}

/// Conditions that must all hold; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Term(Vec<Atom>);

impl Term {
    /// Whether it names success: exit code 0, or a status of 2xx or 3xx.
    fn names_success(&self) -> bool {
        self.0.iter().any(|atom| match atom {
            Atom::Exit(codes) => codes.contains(&0),
            Atom::Http(statuses) => *statuses.start() < 400,
            _ => false,
        })
    }

    /// Whether it says just what would be said without the user's rules.
    pub(super) fn is_default(&self) -> bool {
        self.0.contains(&Atom::Default)
    }

    /// The patterns for what a command writes or a server answers.
    pub fn watched(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter().filter_map(|atom| match atom {
            Atom::Pattern(pattern) => Some(pattern),
            _ => None,
        })
    }

    /// Whether it can hold for a command, of which that preset is known: conditions on
    /// answers do where the program tells of them.
    pub fn may_speak_of_a_command(&self, preset: Option<&Preset>) -> bool {
        let tells = |told: fn(&Preset) -> bool| preset.is_some_and(told);
        self.0.iter().all(|atom| match atom {
            Atom::Http(_) => tells(|preset| preset.status.is_some() || preset.code.is_some()),
            Atom::Error(_) => tells(|preset| preset.code.is_some()),
            Atom::Pattern(pattern) => pattern.stream != Stream::Body,
            _ => true,
        })
    }

    /// The statuses that all of its conditions on one allow.
    fn statuses(&self) -> RangeInclusive<u16> {
        self.0.iter().fold(0..=u16::MAX, |left, atom| match atom {
            Atom::Http(range) => *left.start().max(range.start())..=*left.end().min(range.end()),
            _ => left,
        })
    }

    /// Why it can hold for no outcome, if that is so: an attempt ends in one way, with one code.
    fn contradiction(&self) -> Option<String> {
        let (mut codes, mut names, mut ends) = (0..=u8::MAX, Vec::new(), Vec::new());
        let (statuses, has) = (self.statuses(), |wanted: fn(&Atom) -> bool| self.0.iter().any(wanted));
        for atom in &self.0 {
            match atom {
                Atom::Exit(range) => codes = *codes.start().max(range.start())..=*codes.end().min(range.end()),
                Atom::Error(name) => names.push(name),
                Atom::Signal(signal) => ends.push(Some(*signal)),
                Atom::Timeout => ends.push(None),
                Atom::Http(_) | Atom::Pattern(_) | Atom::Any | Atom::Default => {}
            }
        }
        let exits = has(|atom| matches!(atom, Atom::Exit(_)));
        // What was told of an answer counts only where a program failed by itself.
        let answered = has(|atom| matches!(atom, Atom::Http(_) | Atom::Error(_)));
        let without_answer = !ends.is_empty() || codes == (0..=0);
        let differ = |ends: &[Option<Signal>]| ends.windows(2).any(|two| two[0] != two[1]);
        let is_success = codes == (0..=0) && self.0.contains(&Atom::Any);
        let several = codes.is_empty()
            || statuses.is_empty()
            || names.windows(2).any(|two| two[0] != two[1])
            || differ(&ends)
            || (exits && !ends.is_empty())
            || (answered && without_answer);
        let either = || self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        if several {
            Some(format!(
                "'{self}' can never hold: an attempt ends in one way only; for any of them write {}",
                either()
            ))
        } else if let (Some(status), true) = (bodiless(&statuses), has(Atom::is_of_body)) {
            Some(format!("'{self}' can never hold: an answer with status {status} has no body"))
        } else {
            is_success.then(|| format!("'{self}' can never hold: 'any' stands for failures, and 0 is none; write 0"))
        }
    }

    /// Why it cannot give this class to a request, if that is so. `head_only` says that no
    /// answer has a body.
    pub fn obstacle_for_a_request(&self, class: Class, head_only: bool) -> Option<&'static str> {
        let has = |wanted: &dyn Fn(&Atom) -> bool| self.0.iter().any(wanted);
        let of_command = |atom: &Atom| match atom {
            Atom::Exit(_) | Atom::Signal(_) => true,
            Atom::Pattern(pattern) => pattern.stream != Stream::Body,
            _ => false,
        };
        // What is said of failures only.
        let of_failure = |atom: &Atom| match atom {
            Atom::Any | Atom::Error(_) => true,
            Atom::Default => class != Class::Success,
            _ => false,
        };
        let statuses = self.statuses();
        if has(&of_command) {
            Some(
                "speaks of a command and can never hold for a request; write http:503 or http:2xx for a status, \
                 body:/RE/ for a body, error:CODE, timeout, any (every failure, also without an answer) or default",
            )
        } else if *statuses.end() < 200 {
            Some("can never hold: the status of an answer is 200 at least; write http:2xx or http:5xx")
        } else if *statuses.end() < 400 && has(&of_failure) {
            Some("can never hold: it names a success and speaks of failures; write the status alone")
        } else if *statuses.start() >= 400 && class == Class::Success && self.is_default() {
            Some("can never hold: by default that status is no success; write the status alone")
        } else if head_only && has(&Atom::is_of_body) {
            Some("can never hold: only a head is asked for, which has no body")
        } else {
            None
        }
    }

    /// Whether it holds. `default` is the class without the user's rules, `wanted` the
    /// class that this term gives.
    pub(super) fn matches(&self, evidence: &Evidence<'_>, default: Class, wanted: Class) -> bool {
        (default != Class::Success || self.names_success() || self.is_default())
            && self.0.iter().all(|atom| atom.matches(evidence, default, wanted))
    }
}

/// The status that is the only one left of these, where answers with it have no body.
fn bodiless(statuses: &RangeInclusive<u16>) -> Option<u16> {
    let only = (statuses.start() == statuses.end()).then_some(*statuses.start());
    only.filter(|status| [204, 304].contains(status))
}

impl Atom {
    fn is_of_body(&self) -> bool {
        matches!(self, Self::Pattern(pattern) if pattern.stream == Stream::Body)
    }

    fn matches(&self, evidence: &Evidence<'_>, default: Class, wanted: Class) -> bool {
        let outcome = evidence.outcome;
        match self {
            Self::Exit(codes) => match outcome {
                Outcome::Exited(code) => codes.contains(code),
                Outcome::NotStarted { failure: StartFailure::NotFound, .. } => codes.contains(&127),
                Outcome::NotStarted { .. } => codes.contains(&126),
                _ => false,
            },
            Self::Signal(signal) => *outcome == Outcome::Signaled(*signal),
            Self::Timeout => matches!(outcome, Outcome::TimedOut(_)),
            Self::Http(statuses) => evidence.status().is_some_and(|status| statuses.contains(&status)),
            Self::Error(name) => evidence.error_code == Some(name),
            Self::Pattern(pattern) => evidence.sightings.has(pattern),
            Self::Any => default != Class::Success && !matches!(outcome, Outcome::NotStarted { .. }),
            // To list what is retried by default includes what is retried slowly.
            Self::Default if wanted == Class::Transient => {
                matches!(default, Class::Transient | Class::Throttling)
            }
            Self::Default => default == wanted,
        }
    }
}

impl Pattern {
    fn new(stream: Stream, source: String, ignore_case: bool, check: Check) -> Result<Self, String> {
        let pattern = Self { stream, source, ignore_case, expressions: Arc::default() };
        if check == Check::Now {
            let _ = pattern.expressions.of_line.set(pattern.compile()?);
        }
        Ok(pattern)
    }

    fn compile(&self) -> Result<Regex, String> {
        RegexBuilder::new(&self.source).case_insensitive(self.ignore_case).build().map_err(|error| {
            // The library draws a picture over several lines: the pattern, a caret below
            // the place, and in the last line what is wrong.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let caret = text.lines().find(|line| line.trim_start().starts_with('^')).and_then(|line| line.find('^'));
            let place = caret.map(|at| format!(" at character {}", at.saturating_sub(INDENT) + 1));
            format!("the pattern /{}/ cannot be read{}: {reason}", self.source, place.unwrap_or_default())
        })
    }

    /// The expression; one that was never checked and is none matches nothing.
    fn regex(&self) -> &Regex {
        self.expressions.of_line.get_or_init(|| self.compile().unwrap_or_else(|_| nothing()))
    }

    /// Reads one pattern alone, `stderr:/RE/` for example.
    pub fn parse(text: &str, check: Check) -> Result<Self, String> {
        match parse_atom(text, check)? {
            (Atom::Pattern(pattern), "") => Ok(pattern),
            _ => Err(format!("'{text}' is not one pattern; write it as stderr:/text (\\d+)/")),
        }
    }

    /// Where it looks.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Whether it looks at what comes on this stream.
    pub(super) fn looks_at(&self, stream: Stream) -> bool {
        self.stream == stream || (self.stream == Stream::Output && stream != Stream::Body)
    }

    /// How many groups it has that capture something.
    pub fn groups(&self) -> usize {
        self.regex().captures_len() - 1
    }

    /// What the first group that took part captured in a line; nothing at all is an empty
    /// text where the pattern has no group.
    pub(super) fn capture(&self, line: &[u8]) -> Option<String> {
        let captures = self.regex().captures(line)?;
        let group = captures.iter().skip(1).flatten().next();
        Some(group.map(|group| String::from_utf8_lossy(group.as_bytes()).into_owned()).unwrap_or_default())
    }

    /// Whether it may match one of these lines; false is certain.
    pub(super) fn may_be_among(&self, lines: &[u8]) -> bool {
        let regex = self.expressions.among_lines.get_or_init(|| self.among_lines());
        regex.as_ref().is_none_or(|regex| regex.is_match(lines))
    }

    /// An expression that matches in a text wherever this pattern matches a line of it;
    /// `None` where none can be had, as the pattern speaks of the beginning or end of a text.
    fn among_lines(&self) -> Option<Regex> {
        let mut parser = regex_syntax::ParserBuilder::new();
        parser.utf8(false).case_insensitive(self.ignore_case).multi_line(true).crlf(true);
        let looks = parser.build().parse(&self.source).ok()?.properties().look_set();
        let others = [Look::Start, Look::End, Look::StartLF, Look::EndLF];
        if others.into_iter().any(|look| looks.contains(look)) {
            return None;
        }
        let mut builder = RegexBuilder::new(&self.source);
        builder.case_insensitive(self.ignore_case).multi_line(true).crlf(true).build().ok()
    }
}

/// When a pattern's expression is made, and so what is wrong with it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// At once: somebody typed it.
    Now,
    /// When it is needed: it came with this program, whose tests have checked it.
    Later,
}

/// An expression that matches nothing.
fn nothing() -> Regex {
    Regex::new("[a&&b]").expect("an empty class is an expression")
}

/// Reads a list. The error names the part and what would be valid.
pub fn parse(list: &str) -> Result<Vec<Term>, String> {
    parse_list(list, Check::Now)
}

/// Reads a list whose patterns are checked then.
pub fn parse_list(list: &str, check: Check) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    let mut rest = list;
    loop {
        let (term, after) = parse_term(rest, check)?;
        if let Some(contradiction) = term.contradiction() {
            return Err(contradiction);
        }
        terms.push(term);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(terms),
            None => return Err(format!("'{after}' cannot stand there; put a comma or 'and' before another condition")),
        }
    }
}

fn parse_term(text: &str, check: Check) -> Result<(Term, &str), String> {
    let mut atoms = Vec::new();
    let mut rest = text;
    loop {
        let (atom, after) = parse_atom(rest.trim_start_matches(' '), check)?;
        atoms.push(atom);
        let after = after.trim_start_matches(' ');
        match after.strip_prefix("and") {
            Some(next) if next.trim_start_matches(' ').is_empty() || next.trim_start_matches(' ').starts_with(',') => {
                return Err(format!("a condition is missing after '{} and'", Term(atoms)));
            }
            Some(next) if next.starts_with(' ') => rest = next,
            _ => return Ok((Term(atoms), after)),
        }
    }
}

fn parse_atom(text: &str, check: Check) -> Result<(Atom, &str), String> {
    for (prefix, stream) in STREAMS {
        if let Some(rest) = text.strip_prefix(prefix) {
            return parse_pattern(prefix, stream, rest, check);
        }
    }
    let end = text.find([',', ' ']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    Ok((parse_word(word)?, rest))
}

fn parse_pattern<'a>(prefix: &str, stream: Stream, text: &'a str, check: Check) -> Result<(Atom, &'a str), String> {
    let body =
        text.strip_prefix('/').ok_or(format!("{prefix} needs a pattern between slashes, as in {prefix}/text/"))?;
    let mut source = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '/' => {
                let after = &body[at + 1..];
                let ignore_case = after.starts_with('i');
                let pattern = Pattern::new(stream, source, ignore_case, check)?;
                return Ok((Atom::Pattern(pattern), &after[usize::from(ignore_case)..]));
            }
            '\\' => match chars.next() {
                Some((_, '/')) => source.push('/'),
                Some((_, other)) => source.extend(['\\', other]),
                None => source.push('\\'),
            },
            _ => source.push(c),
        }
    }
    Err(format!("the pattern {prefix}/{body} has no closing slash; a slash in it is written \\/"))
}

fn parse_word(word: &str) -> Result<Atom, String> {
    if let Some(name) = word.strip_prefix("signal:") {
        return Signal::parse(name)
            .map(Atom::Signal)
            .ok_or_else(|| format!("'{name}' is not a signal; valid are names (KILL) and numbers from 1 to 64"));
    }
    if let Some(status) = word.strip_prefix("http:") {
        return parse_status(status).map(Atom::Http);
    }
    if let Some(name) = word.strip_prefix("error:") {
        let plain = !name.is_empty();
        return plain.then(|| Atom::Error(name.to_owned())).ok_or_else(|| "error: needs a code".to_owned());
    }
    match word {
        "timeout" => Ok(Atom::Timeout),
        "any" => Ok(Atom::Any),
        "default" => Ok(Atom::Default),
        "" => Err("a condition is missing: nothing stands between two commas, or at an end".to_owned()),
        _ => parse_codes(word).map(Atom::Exit),
    }
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

fn parse_codes(word: &str) -> Result<RangeInclusive<u8>, String> {
    const FORMS: &str = "valid are codes (7), ranges (100-110), signal:NAME, timeout, http:STATUS, error:NAME, \
                         stdout:/RE/, stderr:/RE/, output:/RE/, body:/RE/, any, default";
    if let Some(below) = word.strip_prefix('-').and_then(number) {
        let seen = (256 - below % 256) % 256;
        return Err(format!(
            "-{below} is not an exit code: they are 0 to 255, and a program that returns -{below} exits {seen}"
        ));
    }
    if let Some((low, high)) = word.split_once("..").or_else(|| word.split_once(':'))
        && number(low).is_some()
        && number(high).is_some()
    {
        return Err(format!("a range is written with a dash: {low}-{high}"));
    }
    let (low, high) = word.split_once('-').unwrap_or((word, word));
    let (Some(low), Some(high)) = (number(low), number(high)) else {
        let hint = match Signal::parse(word) {
            Some(_) => format!("; for the signal write signal:{}", word.trim_start_matches("SIG")),
            None => String::new(),
        };
        return Err(format!("'{word}' is not a condition{hint}; {FORMS}"));
    };
    match (u8::try_from(low), u8::try_from(high)) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        (Ok(first), Ok(last)) => Err(format!("the range {first}-{last} runs backwards; write {last}-{first}")),
        _ => {
            let wide = low.max(high);
            Err(format!(
                "{wide} is not an exit code: they are 0 to 255, and a program that returns {wide} exits {}",
                wide % 256
            ))
        }
    }
}

fn parse_status(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || format!("'{text}' is not an HTTP status; valid are http:503, http:5xx and http:500-504");
    let status = |text: &str| {
        let number = number(text).and_then(|number| u16::try_from(number).ok());
        number.filter(|number| (100..600).contains(number))
    };
    if let Some(hundred) = text.strip_suffix("xx") {
        let hundred = number(hundred).filter(|hundred| (1..6).contains(hundred)).ok_or_else(wrong)?;
        let first = u16::try_from(hundred * 100).map_err(|_| wrong())?;
        return Ok(first..=first + 99);
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (status(low), status(high)) {
        (Some(low), Some(high)) if low <= high => Ok(low..=high),
        _ => Err(wrong()),
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, atom) in self.0.iter().enumerate() {
            write!(f, "{}{atom}", if index > 0 { " and " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(codes) if codes.start() == codes.end() => write!(f, "{}", codes.start()),
            Self::Exit(codes) => write!(f, "{}-{}", codes.start(), codes.end()),
            Self::Signal(signal) => write!(f, "signal:{}", signal.to_string().trim_start_matches("SIG")),
            Self::Timeout => f.write_str("timeout"),
            Self::Http(statuses) if statuses.start() == statuses.end() => write!(f, "http:{}", statuses.start()),
            Self::Http(statuses) if statuses.start() % 100 == 0 && *statuses.end() == statuses.start() + 99 => {
                write!(f, "http:{}xx", statuses.start() / 100)
            }
            Self::Http(statuses) => write!(f, "http:{}-{}", statuses.start(), statuses.end()),
            Self::Error(name) => write!(f, "error:{name}"),
            Self::Pattern(pattern) => write!(f, "{pattern}"),
            Self::Any => f.write_str("any"),
            Self::Default => f.write_str("default"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = STREAMS.iter().find_map(|(prefix, stream)| (*stream == self.stream).then_some(*prefix));
        f.write_str(prefix.unwrap_or_default())?;
        let source = self.source.replace('/', "\\/");
        write!(f, "/{source}/{}", if self.ignore_case { "i" } else { "" })
    }
}

#[cfg(test)]
mod tests;
