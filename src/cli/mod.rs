//! What the user typed: words in, given options and a command out. Touches nothing.
//!
//! There is one definition of the options, [`options::OPTIONS`]; the parser, the help,
//! the manual and the completions are all made from it. A plain run builds a parser for
//! the options that its words name and for no others, which is most of what start-up
//! costs; help and errors build the whole.

pub mod differences;
mod errors;
pub mod manual;
pub mod options;
pub mod refused;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use options::{Id, OPTIONS, Opt, Sub};

/// Words that name a subcommand, now or later, where they stand first and not after `--`.
pub const RESERVED: [&str; 10] =
    ["http", "plan", "explain", "quota", "simulate", "stats", "config", "schema", "translate", "help"];

/// Where a setting comes from, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The shared AWS config file.
    AwsFile,
    /// `AWS_RETRY_MODE` or `AWS_MAX_ATTEMPTS`.
    AwsVariable,
    /// A `RETRYX_*` variable.
    Variable,
    /// The command line.
    CommandLine,
}

/// An option with the value that was given to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Which option.
    pub id: Id,
    /// Its value; empty for a flag on the command line.
    pub value: OsString,
    /// Where it was given, as messages name it.
    pub place: String,
    /// How much that counts.
    pub rank: Rank,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Text to print on standard output: help or version.
    Print(String),
    /// Something to do.
    Do {
        /// What.
        sub: Sub,
        /// The options, in the order of the table, equal ones in that of the words.
        given: Vec<Given>,
        /// The command and its arguments; never empty for a run.
        command: Vec<OsString>,
    },
}

/// What is wrong with the words, or with a value: one line that names the place, the
/// value and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

const COMMAND: &str = "command";

/// How options begin whose value has variables in it, as messages name them.
pub const EXPAND: &str = "--expand-";

/// Reads the words, the program's own name first.
pub fn parse(words: &[OsString]) -> Result<Invocation, UsageError> {
    let (given, command) = match lex(words, Sub::Run)? {
        Lexed::Print(text) => return Ok(Invocation::Print(text)),
        Lexed::Words(given, command) => (given, command),
    };
    let at = words.len() - command.len();
    let explicit = at > 0 && words[at - 1].as_bytes() == b"--";
    let name = command.first().and_then(|word| word.to_str()).filter(|_| !explicit);
    if let Some(&(_, sub)) = Sub::NAMED.iter().find(|(known, _)| Some(*known) == name) {
        refuse_foreign(&given, sub)?;
        return match lex(&words[at..], sub)? {
            Lexed::Print(text) => Ok(Invocation::Print(text)),
            Lexed::Words(more, command) => Ok(Invocation::Do { sub, given: [given, more].concat(), command }),
        };
    }
    match name {
        None if command.is_empty() => Err(UsageError(
            "no command given; usage: retryx [OPTIONS] [--] COMMAND [ARG]... (see retryx --help)".into(),
        )),
        Some("help") => {
            let about = command.get(1).and_then(|word| Sub::NAMED.iter().find(|(name, _)| word == *name));
            let sub = about.map_or(Sub::Run, |(_, sub)| *sub);
            Ok(Invocation::Print(full_command(sub).render_long_help().to_string()))
        }
        Some(word) if RESERVED.contains(&word) => Err(UsageError(format!(
            "'{word}' is the name of a subcommand that this version does not have; to run a program of that name: \
             retryx -- {word} ..."
        ))),
        _ => Ok(Invocation::Do { sub: Sub::Run, given, command }),
    }
}

/// Refuses options in front of a subcommand that mean nothing to it.
fn refuse_foreign(given: &[Given], sub: Sub) -> Result<(), UsageError> {
    let foreign = |given: &Given| OPTIONS.iter().find(|option| option.id == given.id && !option.of(sub));
    given.iter().find_map(foreign).map_or(Ok(()), |option| Err(foreign_to(sub, option)))
}

/// That an option of a run means nothing to a subcommand.
fn foreign_to(sub: Sub, option: &Opt) -> UsageError {
    let (long, name, remedy) = (option.long, sub.name(), option.in_place(sub));
    let about = if sub == Sub::Quota { "runs" } else { "commands" };
    UsageError(format!("--{long} is about {about}; {name} does not take it{remedy}"))
}

enum Lexed {
    Print(String),
    Words(Vec<Given>, Vec<OsString>),
}

/// Takes the options of a run or subcommand off the front of the words, whose first is the
/// name of the program or subcommand.
fn lex(words: &[OsString], sub: Sub) -> Result<Lexed, UsageError> {
    let words = &apart(words, sub)[..];
    let lean = OPTIONS.iter().filter(|option| option.of(sub) && words.iter().any(|word| option.is_named_in(word, sub)));
    let expanding: Vec<Arg> = OPTIONS
        .iter()
        .filter(|option| sub == Sub::Http && option.expands() && words.iter().any(|word| option.is_expanded_in(word)))
        .map(|option| {
            // The parser takes names for as long as the program runs.
            let name: &str = format!("expand-{}", option.long).leak();
            let arg = Arg::new(name).long(name).action(ArgAction::Append).allow_hyphen_values(true);
            arg.value_parser(value_parser!(OsString))
        })
        .collect();
    let matches = match skeleton(sub, lean).args(&expanding).try_get_matches_from(words) {
        Ok(matches) => matches,
        // The whole definition knows what else might have been meant.
        Err(_) => full_command(sub)
            .args(&expanding)
            .try_get_matches_from(words)
            .map_err(|error| errors::usage_error(&error, sub, words))?,
    };
    let given = given(&matches, sub);
    let has = |id| given.iter().any(|given| given.id == id);
    if has(Id::Help) {
        let mut command = full_command(sub);
        let long = words.iter().any(|word| word == "--help");
        let help = if long { command.render_long_help() } else { command.render_help() };
        return Ok(Lexed::Print(help.to_string()));
    }
    if has(Id::Version) {
        return Ok(Lexed::Print(format!("retryx {}\n", env!("CARGO_PKG_VERSION"))));
    }
    let command = matches.get_many(COMMAND).into_iter().flatten().map(OsString::clone).collect();
    Ok(Lexed::Words(given, command))
}

/// For curl a `=` behind a letter is the value's first character, for the parser it stands
/// between the two: such a value is made a word of its own.
fn apart(words: &[OsString], sub: Sub) -> Cow<'_, [OsString]> {
    let may_hold_one = |word: &OsString| matches!(word.as_bytes(), [b'-', _, rest @ ..] if rest.contains(&b'='));
    if sub != Sub::Http || !words.iter().any(may_hold_one) {
        return words.into();
    }
    let valued = || OPTIONS.iter().filter(|option| option.of(sub) && option.value.is_some());
    let is_letter = |byte: &u8| valued().any(|option| option.short_of(sub) == Some(char::from(*byte)));
    let is_name = |word: &OsStr| valued().any(|option| option.is_long(word) || option.expands_as(word));
    let mut apart = Vec::with_capacity(words.len() + 1);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        let letter =
            if bytes.starts_with(b"--") || !bytes.starts_with(b"-") { None } else { bytes.iter().position(is_letter) };
        match letter {
            Some(at) if bytes.get(at + 1) == Some(&b'=') => {
                apart.extend([&bytes[..=at], &bytes[at + 1..]].map(|part| OsStr::from_bytes(part).to_owned()));
                continue;
            }
            _ => apart.push(word.clone()),
        }
        if bytes == b"--" {
            apart.extend(rest.by_ref().cloned());
        } else if letter.is_some_and(|at| at + 1 == bytes.len()) || is_name(word) {
            apart.extend(rest.next().cloned());
        }
    }
    apart.into()
}

fn given(matches: &ArgMatches, sub: Sub) -> Vec<Given> {
    let mut given = Vec::new();
    for option in OPTIONS.iter().filter(|option| option.of(sub)) {
        if sub == Sub::Http && option.expands() {
            let name = format!("expand-{}", option.long);
            let values = matches.try_get_many::<OsString>(&name).ok().flatten();
            let places = values.is_some().then(|| matches.indices_of(&name)).flatten().into_iter().flatten();
            let place = format!("{EXPAND}{}", option.long);
            given.extend(values.into_iter().flatten().zip(places).map(|(value, at)| {
                (at, Given { id: option.id, value: value.clone(), place: place.clone(), rank: Rank::CommandLine })
            }));
        }
        let mut push = |value, at| {
            let place = format!("--{}", option.long);
            given.push((at, Given { id: option.id, value, place, rank: Rank::CommandLine }));
        };
        if option.value.is_some() {
            let values = matches.try_get_many::<OsString>(option.long).ok().flatten();
            let mut places = values.is_some().then(|| matches.indices_of(option.long)).flatten().into_iter().flatten();
            values.into_iter().flatten().for_each(|value| push(value.clone(), places.next().unwrap_or_default()));
        } else {
            let count = matches.try_get_one::<u8>(option.long).ok().flatten().map_or(0, |&n| n);
            (0..count).for_each(|_| push(OsString::new(), 0));
        }
    }
    if sub == Sub::Http {
        // What is sent is put together from several options, in the order of the words.
        given.sort_by_key(|(at, _)| *at);
    }
    given.into_iter().map(|(_, given)| given).collect()
}

/// The parser for some of the options.
fn skeleton<'a>(sub: Sub, options: impl Iterator<Item = &'a Opt>) -> Command {
    let command = Arg::new(COMMAND)
        .num_args(1..)
        // A command's options are its own; others may stand after a URL or a scope's name.
        .trailing_var_arg(!matches!(sub, Sub::Http | Sub::Quota))
        .value_name("COMMAND")
        .value_parser(value_parser!(OsString));
    Command::new("retryx")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(options.map(|option| argument(option, sub)))
        .arg(command)
}

fn argument(option: &Opt, sub: Sub) -> Arg {
    let arg = Arg::new(option.long).long(option.long);
    let arg = if let Some(short) = option.short_of(sub) { arg.short(short) } else { arg };
    match option.value {
        // What a request sends may look like an option.
        Some(_) if !option.of(Sub::Run) && sub == Sub::Http => {
            arg.action(ArgAction::Append).allow_hyphen_values(true).value_parser(value_parser!(OsString))
        }
        Some(_) => arg.action(ArgAction::Append).allow_negative_numbers(true).value_parser(value_parser!(OsString)),
        None => arg.action(ArgAction::Count),
    }
}

/// The whole definition of a run or a subcommand, with all its words: for help, errors,
/// the manual and the completions.
pub fn full_command(sub: Sub) -> Command {
    let describe = |arg: Arg| {
        let Some(option) = OPTIONS.iter().find(|option| option.of(sub) && arg.get_id() == option.long) else {
            return arg.help("The command to run, and its arguments").hide(true);
        };
        let mut arg = arg.help(option.help).help_heading(option.heading);
        if option.value.is_none() && option.id != Id::Verbose {
            // Only what counts is shown as repeatable; given twice, others are as if once.
            arg = arg.action(ArgAction::SetTrue).overrides_with(option.long);
        }
        if !option.more.is_empty() {
            arg = arg.long_help(format!("{}. {}", option.help, option.more));
        }
        if let Some(value) = option.value {
            arg = arg.value_name(value);
        }
        if !option.choices.is_empty() {
            let parser = clap::builder::PossibleValuesParser::new(option.choices.iter().copied());
            arg = arg.value_parser(clap::builder::TypedValueParser::map(parser, OsString::from));
        }
        arg
    };
    let (usage, about) = match sub {
        Sub::Run => (
            "retryx [OPTIONS] [--] COMMAND [ARG]...\n       retryx [OPTIONS] http [OPTIONS] URL\n       retryx [OPTIONS] plan | explain [OPTIONS]\n       retryx quota list | show NAME | reset NAME | set NAME --tokens N [OPTIONS]",
            "Run a command, and repeat it under the retry policies that AWS and Google Cloud document",
        ),
        Sub::Plan => ("retryx plan [OPTIONS]", "Show the delays that a policy gives, without running anything"),
        Sub::Explain => ("retryx explain [OPTIONS]", "Say what an outcome is taken for, and which rule says so"),
        Sub::Quota => (
            "retryx quota list [OPTIONS]\n       retryx quota show NAME [OPTIONS]\n       retryx quota reset NAME [OPTIONS]\n       retryx quota set NAME --tokens N [OPTIONS]",
            "Show and mend the scopes that runs share, their quotas and rate limiters",
        ),
        Sub::Http => ("retryx [OPTIONS] http [OPTIONS] URL", "Make an HTTP request, and repeat it where that is safe"),
    };
    let command = skeleton(sub, OPTIONS.iter().filter(|option| option.of(sub)))
        .mut_args(describe)
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .override_usage(usage)
        .after_help("A duration is in seconds or carries a unit: 300, 0.5, 250ms, 1h 30m. See --help for all words, and retryx(1).");
    match sub {
        Sub::Run => command.long_about(manual::ABOUT).after_long_help(manual::after_help()),
        Sub::Plan | Sub::Explain | Sub::Quota | Sub::Http => command,
    }
}

impl Opt {
    /// Whether this is its long or its short name, dashes included.
    fn is_called(&self, name: &str) -> bool {
        let short = self.short.map(|short| format!("-{short}"));
        name.strip_prefix("--") == Some(self.long) || short.as_deref() == Some(name)
    }

    /// Whether a word is its long name.
    fn is_long(&self, word: &OsStr) -> bool {
        word.as_bytes().strip_prefix(b"--") == Some(self.long.as_bytes())
    }

    /// Whether a word is its long name with `--expand-` in front.
    fn expands_as(&self, word: &OsStr) -> bool {
        self.expands() && word.as_bytes().strip_prefix(EXPAND.as_bytes()) == Some(self.long.as_bytes())
    }

    /// Whether a word gives it with `--expand-` in front.
    fn is_expanded_in(&self, word: &OsStr) -> bool {
        let name = word.as_bytes().strip_prefix(EXPAND.as_bytes());
        name.and_then(|name| name.split(|&byte| byte == b'=').next()) == Some(self.long.as_bytes())
    }

    /// Whether a word may give this option; may say yes wrongly, never no.
    fn is_named_in(&self, word: &OsStr, sub: Sub) -> bool {
        match word.as_bytes() {
            [b'-', b'-', name @ ..] => {
                let end = name.iter().position(|&byte| byte == b'=').unwrap_or(name.len());
                &name[..end] == self.long.as_bytes()
            }
            [b'-', letters @ ..] => {
                self.short_of(sub).is_some_and(|short| letters.iter().any(|&letter| char::from(letter) == short))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        std::iter::once("retryx").chain(line.iter().copied()).map(OsString::from).collect()
    }

    fn run(line: &[&str]) -> (Vec<(Id, String)>, Vec<String>) {
        match parse(&words(line)) {
            Ok(Invocation::Do { given, command, .. }) => (
                given.into_iter().map(|g| (g.id, g.value.into_string().unwrap())).collect(),
                command.into_iter().map(|word| word.into_string().unwrap()).collect(),
            ),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn everything_from_the_first_other_word_on_belongs_to_the_command() {
        for line in [
            &["-n", "2", "curl", "-n", "9", "--help", "--", "-x"][..],
            &["-n2", "curl", "-n", "9", "--help", "--", "-x"],
            &["--max-attempts=2", "--", "curl", "-n", "9", "--help", "--", "-x"],
        ] {
            let (given, command) = run(line);
            assert_eq!(given, [(Id::MaxAttempts, "2".to_owned())]);
            assert_eq!(command, ["curl", "-n", "9", "--help", "--", "-x"]);
        }
        assert_eq!(run(&["--", "--version"]).1, ["--version"]);
        assert_eq!(run(&["--", "http", "x"]).1, ["http", "x"]);
        assert_eq!(run(&["--", ""]).1, [""]);
    }

    #[test]
    fn the_last_of_a_repeated_option_comes_last_and_flags_count() {
        let (given, _) = run(&["-n", "2", "-vv", "-n", "3", "-v", "true"]);
        let attempts: Vec<_> = given.iter().filter(|(id, _)| *id == Id::MaxAttempts).collect();
        assert_eq!(attempts.last().map(|(_, value)| value.as_str()), Some("3"));
        assert_eq!(given.iter().filter(|(id, _)| *id == Id::Verbose).count(), 3);
    }

    #[test]
    fn errors_name_the_word_and_the_remedy() {
        for (line, parts) in [
            (&[][..], &["no command given", "retryx --help"][..]),
            (&["--"], &["no command given"]),
            (&["--max-attempt", "3", "x"], &["--max-attempt'", "--max-attempts"]),
            (&["--nonsense", "x"], &["--nonsense", "retryx --help"]),
            (&["-n"], &["--max-attempts", "needs a value"]),
            (&["--scope", "-lead", "x"], &["--scope needs a value", "--scope=-"]),
            (&["-q", "--scope", "-qlead", "x"], &["--scope needs a value", "--scope=-"]),
            (&["--state-dir", "-s", "x"], &["--state-dir needs a value", "--state-dir=-"]),
            (&["--scope", "--lead=er", "x"], &["--scope needs a value", "--scope=-"]),
            (&["-qn", "-lead", "x"], &["--max-attempts needs a value", "--max-attempts=-"]),
            (&["http", "--scope", "-lead", "u"], &["--scope needs a value", "--scope=-"]),
            (&["quota", "list", "--state-dir", "-lead"], &["--state-dir needs a value", "--state-dir=-"]),
            (&["-v", "-lead", "--scope", "-lead"], &["unknown option '-l'"]),
            (&["--scope=a", "-lead", "x"], &["unknown option '-l'"]),
            (&["http", "-d", "-lead", "--lead", "u"], &["unknown option '--lead'"]),
            (&["stats", "x"], &["stats", "retryx -- stats"]),
            (&["--shell=1", "x"], &["--shell", "takes no value"]),
        ] {
            let error = parse(&words(line)).unwrap_err().0;
            for part in parts {
                assert!(error.contains(part), "{line:?}: {error}");
            }
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_equals_sign_behind_a_letter_belongs_to_the_value() {
        let run = |line: &[&str]| {
            let (given, words) = run(line);
            (given.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), words)
        };
        for (line, values, words) in [
            (&["http", "-d=a", "u", ""][..], &["=a"][..], &["u", ""][..]),
            (&["http", "", "-sd=a", "-"], &["=a", ""], &["", "-"]),
            (&["http", "-d", "-d=a", "--data", "-d=b", "u"], &["-d=a", "-d=b"], &["u"]),
            (&["http", "--expand-data", "-d=a", "--data=-d=b"], &["-d=a", "-d=b"], &[]),
            (&["http", "-H-d=a", "-XA=b", "--", "-d=a"], &["-d=a", "A=b"], &["-d=a"]),
        ] {
            let (given, rest) = run(line);
            let mut given: Vec<_> = given.iter().map(String::as_str).collect();
            given.sort_unstable();
            let mut values = values.to_vec();
            values.sort_unstable();
            assert_eq!((given, rest), (values, words.iter().map(|word| (*word).to_owned()).collect()), "{line:?}");
        }
    }

    #[test]
    fn the_definition_is_sound() {
        for sub in [Sub::Run, Sub::Plan, Sub::Explain, Sub::Quota, Sub::Http] {
            full_command(sub).debug_assert();
        }
        for option in &OPTIONS {
            assert!(!option.long.starts_with("run-"), "RETRYX_RUN_* are facts, not options");
        }
    }
}
