//! The words of the manual that are not options: shared by `--help`, `man/retryx.1` and
//! the tables in the README.
//!
//! Only [`ABOUT`] and [`after_help`] are reached by the binary; the linker drops the rest
//! of this module from it. In all texts here, backquotes mark words that are typed or
//! printed as they stand.

use std::fmt::Write as _;

use super::options::Sub;
use crate::exit;

/// The first paragraph.
pub const ABOUT: &str = "Runs a command and repeats it under the retry policy that the AWS SDKs or Google Cloud \
document, until it succeeds, fails for good, or the budget for retrying is spent. Around a command that succeeds at \
once it changes nothing: same bytes, same exit status, same terminal, same signals.";

/// The exit statuses, as text.
pub fn exit_statuses() -> String {
    let mut text = String::new();
    for (status, meaning) in exit::TABLE {
        let _ = writeln!(text, "  {status}\n          {meaning}");
    }
    text
}

/// What stands below the options in `--help`.
pub fn after_help() -> String {
    format!(
        "A duration is in seconds (300, 0.5, .3) or carries units (250ms, 5m, 1h 30m): ns, us, ms, s, m or min, h, d, w, y.\n\n\
         Exit status:\n{}\nThe manual, retryx(1), says more: classes, rules, quota, settings, streams, signals, events.",
        exit_statuses()
    )
}

/// A section of the manual.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What it says, in order.
    pub parts: &'static [Part],
}

/// A piece of a section.
#[derive(Debug)]
pub enum Part {
    /// A paragraph.
    Text(&'static str),
    /// Terms, each with what it means.
    List(&'static [(&'static str, &'static str)]),
    /// Rows of cells; the first row is the heading.
    Table(&'static [&'static [&'static str]]),
    /// Lines to be typed.
    Code(&'static str),
    /// The exit statuses, from [`exit::TABLE`].
    ExitStatuses,
    /// The events, from [`EVENTS`].
    Events,
    /// The options that a subcommand has besides those of a run.
    Options(Sub),
    /// The presets, from their file.
    Presets,
    /// Where requests differ from curl's, from [`DIFFERENCES`].
    ///
    /// [`DIFFERENCES`]: super::differences::DIFFERENCES
    Differences,
}

/// The modes with their numbers.
pub const MODES: &[&[&str]] = &[
    &["mode", "delay before retry i", "base", "cap", "limit"],
    &["`standard`, `aws`", "u × min(cap, base × 2^i)", "50 ms", "20 s", "3 attempts"],
    &["`adaptive`", "u × min(cap, base × 2^i)", "50 ms", "20 s", "3 attempts"],
    &["`legacy`", "u × base × 2^i", "1 s", "none", "5 attempts"],
    &["`google`", "min(cap, base × 2^i + f)", "1 s", "32 s", "deadline 300 s"],
    &["`fixed`", "base", "1 s", "none", "3 attempts"],
    &["`linear`", "min(cap, base × (i + 1))", "1 s", "1 h", "3 attempts"],
    &["`exponential`", "u × min(cap, base × 2^i)", "1 s", "1 h", "3 attempts"],
    &["`decorrelated`", "min(cap, uniform(base, 3p))", "1 s", "20 s", "3 attempts"],
];

/// What the letters in [`MODES`] stand for.
pub const MODES_LEGEND: &str = "i counts retries from 0. u is uniform in [0, 1). f is uniform in (0, 1] seconds. p is \
the delay before, at first the base. u and f are drawn afresh for each delay. \
`adaptive` is `standard` with a rate limiter; both have a retry quota, and 1 s as the base after throttling.";

/// The modes with `--service dynamodb`, in the columns of [`MODES`].
pub const DYNAMODB: &[&[&str]] = &[
    &["mode", "delay before retry i", "base", "cap", "limit"],
    &["`standard`, `adaptive`", "u × min(cap, base × 2^i)", "25 ms", "20 s", "4 attempts"],
    &["`legacy`", "base × 2^i", "50 ms", "none", "10 attempts"],
];

/// The words of services that give a class, with that class and the mode they count in.
pub const SERVICE_WORDS: &[(&str, &str)] = &[
    ("AWS, transient", "`RequestTimeout`, `RequestTimeoutException`, `InternalError`, `IDPCommunicationError`."),
    (
        "AWS, throttling",
        "`Throttling`, `ThrottlingException`, `ThrottledException`, `RequestThrottledException`, \
         `TooManyRequestsException`, `ProvisionedThroughputExceededException`, `TransactionInProgressException`, \
         `RequestLimitExceeded`, `BandwidthLimitExceeded`, `LimitExceededException`, `RequestThrottled`, `SlowDown`, \
         `PriorRequestNotComplete`, `EC2ThrottledException`.",
    ),
    ("Google, transient", "`UNAVAILABLE`, `INTERNAL`, `UNKNOWN`, `DEADLINE_EXCEEDED`."),
    ("Google, throttling", "`RESOURCE_EXHAUSTED`."),
];

/// What the `legacy` mode knows instead of [`SERVICE_WORDS`].
pub const LEGACY_WORDS: &str = "In the mode `legacy` only these count instead, with status 400 or in the line of the \
AWS CLI, all as throttling: `Throttling`, `ThrottlingException`, `ThrottledException`, `RequestThrottledException`, \
`ProvisionedThroughputExceededException`.";

/// An event with its fields: name, when it is written, and each field with its meaning.
pub type EventWords = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The fields that every event has.
pub const EVERY_EVENT: &[(&str, &str)] = &[
    ("schema", "The version of this form: 1."),
    ("time", "When it was written, by the wall clock: RFC 3339, UTC, to the millisecond."),
    ("run_id", "32 hexadecimal digits, drawn at random for each run; also in `RETRYX_RUN_ID`."),
    ("event", "The name of the event."),
];

/// The events of `--events`.
pub const EVENTS: &[EventWords] = &[
    (
        "run_started",
        "Once, before anything is done.",
        &[
            (
                "program",
                "The command's first word; with `--shell` the whole string; of a request the URL without its secrets.",
            ),
            ("argument_count", "How many words follow it."),
            ("mode", "The `--mode`."),
            ("max_attempts", "The most attempts; null for no limit."),
            ("deadline_ms", "The `--deadline` in milliseconds; null without one."),
            ("arguments", "The words after the first; only with `--log-arguments`."),
        ],
    ),
    ("attempt_started", "Before each attempt.", &[("attempt", "Its number, from 1.")]),
    (
        "attempt_finished",
        "After each attempt.",
        &[
            ("attempt", "Its number, from 1."),
            (
                "outcome",
                "`exited`, `signaled` (a signal killed the command), `timed_out` (a limit of retryx ended it) or \
                 `not_started`; of a request `responded`, `transport_failed`, `timed_out` or `interrupted` (a signal cut \
                 it off).",
            ),
            (
                "exit_code",
                "The command's exit code, where it exited; curl's for a request without an answer; else null.",
            ),
            ("signal", "The number of the signal that killed it; else null."),
            ("timed_out", "Whether a limit of retryx ended it."),
            (
                "http_status",
                "The status of the answer, or of one that the program told of, where its preset finds one; else null.",
            ),
            ("error_code", "The error code of a service, likewise."),
            (
                "error",
                "Why the command could not be started, which of its processes could not be ended, or why a request has no \
              answer; else null.",
            ),
            ("class", "`success`, `transient`, `throttling` or `permanent`."),
            ("rule", "The name of the rule that gave the class, `default:exit` or `--retry-on 75` for example."),
            ("duration_ms", "How long it took, in milliseconds."),
        ],
    ),
    (
        "retry_scheduled",
        "Before each wait for a retry.",
        &[
            ("attempt", "The number of the attempt to come, from 2."),
            (
                "delay_ms",
                "The wait in milliseconds, as it is slept. Where others of a scope take the rate limiter's token first, the \
                 attempt waits on after it; `waited_ms` of `stopped` tells the whole.",
            ),
            (
                "delay_source",
                "What asked for it: `backoff` (the formula), `limiter` (the rate limiter of the mode `adaptive` held the \
                 attempt longer), `output` (the output asked for longer) or `server` (a server did).",
            ),
            ("base_ms", "The base delay that entered, in milliseconds."),
            ("exponent", "i, the number of the retry, from 0."),
            ("cap_ms", "The longest delay in milliseconds; null without one."),
            ("jitter", "`full`, `equal`, `fraction` or `none`."),
            ("server_delay_ms", "What the output or a server asked for, in milliseconds; else null."),
            ("quota_left", "Tokens left in the retry quota once this retry is paid; null without a quota."),
        ],
    ),
    (
        "stopped",
        "Once, at the end.",
        &[
            (
                "reason",
                "`success`, `permanent` (the class), `attempts` (used up), `deadline`, `total_timeout`, `quota` (spent), \
                 `server_delay` (the output or a server asked for a longer wait than the limits allow), \
                 `stdin_consumed`, `reader_gone`, `unsafe_request`, `unkillable` or `interrupted` (by a signal).",
            ),
            ("attempts", "How many were made."),
            ("exit_status", "What a shell will show: the exit code, or 128 + the signal."),
            ("elapsed_ms", "Time since the start, in milliseconds."),
            ("waited_ms", "Time spent in waits, in milliseconds."),
            ("quota_left", "Tokens left in the retry quota; null without a quota, or where it was not asked yet."),
            ("server_delay_ms", "The wait that was asked for, where that is the reason; else null."),
            ("signal", "The number of the signal; only where the reason is `interrupted`."),
        ],
    ),
];

/// The sections that stand before the options in the manual.
pub const BEFORE_OPTIONS: &[Section] = &[Section {
    title: "DESCRIPTION",
    parts: &[
        Part::Text(ABOUT),
        Part::Text(
            "From the first word that is not an option of retryx, everything belongs to the command, options included: \
             `retryx -n 5 curl -n URL` gives curl its own `-n`. After `--` the next word is the command, whatever it \
             looks like. `http`, where it comes first and not after `--`, makes a request: see `HTTP` below. `plan` and `explain` run \
             nothing: see `PLAN` and `EXPLAIN`. `quota` shows what runs share: see `QUOTA`. More words are kept for \
             subcommands to come: `simulate`, `stats`, `config`, `schema`, `translate`; and `help` prints what `--help` prints. To run a \
             program of such a name, write `retryx -- plan`.",
        ),
        Part::Text(
            "Each attempt ends in an outcome, the outcome is given a class, and a transient or throttling failure is \
             repeated after a delay, while the limits allow it. What is repeated and why, how long retryx waits and why it stops is \
             said on standard error, in lines that begin with `retryx:`. Nothing is said about a command that \
             succeeds at once.",
        ),
        Part::Text(
            "A duration is a number of seconds (`300`, `0.5`, `.3`) or numbers with units (`250ms`, `5m`, `1h 30m`), \
             the larger first: `ns`, `us`, `ms`, `s`, `m` or `min`, `h`, `d`, `w` and `y` (365.25 days). \
             Zero means zero: a zero delay is no wait. Time limits of zero are refused.",
        ),
    ],
}];

/// What runs share.
const SCOPES: &[Part] = &[
    Part::Text(
        "During an outage every job of a fleet retries on its own, and makes the outage longer. `--scope NAME` lets all \
         runs with that name draw on one retry quota and, in the mode `adaptive`, on one rate limiter, whatever \
         commands or requests they make. In a hundred failing jobs one after the other, of three attempts each, a \
         quota of 500 leaves about 135 attempts of 300: each job still gets its first.",
    ),
    Part::Text(
        "Give one name to all that asks the same service, and different names to what can fail apart: the service and its \
         region, say, as in `s3-eu-west-1`. A name is text of 1 to 64 bytes without control characters.",
    ),
    Part::Code("retryx --scope billing-api http -d @invoice.json --idempotent https://billing.example.com/"),
    Part::List(&[
        (
            "the quota",
            "Every mode has one in a scope, also with `-n`; `--no-quota` takes it away for that run. It never delays or \
             refuses a first attempt. A retry that is refused ends the run, with the reason `quota` and the status of \
             the last attempt. By default the tokens come back evenly, so that an empty bucket is full again after \
             `--scope-ttl`; `--quota-refill` gives another rate.",
        ),
        (
            "the rate limiter",
            "Only runs in the mode `adaptive` are paced by it and report to it. It does nothing until one of them was \
             throttled. From then on every attempt of theirs waits for a token, the first too; the wait that is said \
             is the least, as several may wait for the same token, of whom those who wait for long have the better \
             chances. Where that would take past `--deadline`, or to `--total-timeout`, there is no attempt at all, and \
             the exit status is 124, of a request 28. A run inside a run, both of them adaptive and of one scope, is \
             paced twice.",
        ),
        (
            "the numbers",
            "Capacity, refill and `--scope-ttl` of a scope are those of the run that used it last; its prices are each run's own. A \
             capacity that grows makes no tokens, one that shrinks takes those away that have no room. So give all \
             runs of a scope the same options, by `RETRYX_QUOTA_CAPACITY` and its like for instance. What was paid for a \
             retry that then cannot start, because a signal or a limit comes first, is not given back.",
        ),
        (
            "`--scope-ttl`",
            "A scope that was not used for that long starts full again, and its rate limiter anew. Without \
             `--quota-refill` it is also the time in which an empty bucket fills. [1h]",
        ),
    ]),
    Part::Text(
        "Where a scope cannot be read or written, a message says so once, and the run goes on with a quota and a limiter \
         of its own, full at its start: no run ever fails or hangs for that. After 10 seconds it asks the store again; what \
         one of the two has paid for, the other gives nothing back for. A store may take 200 milliseconds for an \
         operation of a run (or what `?timeout=` says), less where the limits of the run leave less, and at least 5 seconds \
         for one of `retryx quota`. Only a file system that hangs (frozen, or a network's that is gone) holds everybody who \
         touches it, and no program can end that wait: keep `--state-dir` on a local one.",
    ),
    Part::Text("`--store` says where scopes are kept:"),
    Part::List(&[
        (
            "`file`",
            "In files of `--state-dir`, else of `$XDG_STATE_HOME/retryx`, else of `~/.local/state/retryx`: the runs of one \
             user on one machine share them. Of the two variables only absolute paths count, and a home that is not there is not made. \
             This is the default.",
        ),
        (
            "`redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`",
            "In Redis (5 or later) or Valkey: the runs of many machines share them. The port is 6379 and DB is 0 where they \
             are not given. `valkey://` means the same. In a user or password `/ ? # @ : %` are written as `%2F` and so on. \
             A user without a password is `USER:@`.",
        ),
        (
            "`rediss://HOST`",
            "The same over TLS, as `valkeys://` too, trusting the certificates that `retryx http` trusts. Behind the address \
             may stand `?cacert=FILE` for others, and `cert=FILE&key=FILE` for a certificate of one's own.",
        ),
        (
            "`unix:///SOCKET`, `redis+unix:///SOCKET`",
            "A server at a socket of this machine; `?db=N` behind it is for another database than 0.",
        ),
        (
            "`?password-file=FILE`",
            "Behind any of these: the password is the content of that file. A file of an address that is missing is, as a \
             server that is, a reason to go on without sharing.",
        ),
        (
            "`?timeout=DURATION`",
            "Behind any of these: how long an operation may take before the run goes on without sharing, from the name's \
             lookup on; 200 milliseconds where it is not given, 10 seconds at most. A server that is far away needs more, \
             above all with TLS.",
        ),
    ]),
    Part::Text(
        "A scope's file is named after it, with `%XX` for what has no place in a file's name, and ends in `.scope`. It \
         holds lines of JSON, of which the one with the greatest `sequence` counts, and may be read and edited by hand \
         while nobody uses it. It belongs to its user alone (mode 0600, in a folder of mode 0700 where retryx made that); a \
         file of somebody else's, a link or a special file at its name is left alone and not used. For the \
         moment of an update it is locked, never while retryx waits or the command runs, and the command does not inherit \
         the lock. Whatever is killed at whatever moment, the file holds the state before or after an update.",
    ),
    Part::List(&[
        (
            "a damaged file",
            "What cannot be read, or was written by a version that is not known, is set aside beside it, with `.damaged` at \
             its end, of which the latest stays, or with a number more where a folder is in the way. A message says so \
             once, and the scope starts afresh.",
        ),
        (
            "a full disk",
            "Files that are there need no more room for an update; a scope that does not exist yet is not shared.",
        ),
        ("a read-only folder", "The scope is not shared. `retryx quota list` and `show` read it all the same."),
        (
            "a lock that is held",
            "After 200 milliseconds the run goes on without it: a process that was stopped in the middle of an update \
             holds nobody up.",
        ),
        ("no locks", "On a file system that has none, scopes are not shared."),
    ]),
    Part::Text(
        "With Redis an operation is one script and one round trip, in the time of the server, so that the clocks of the \
         machines do not matter; a connection is made before the first one, and the password takes a round trip of its own. \
         An operation that is not answered in time is never sent again, though the server may still do it. A scope is the hash `retryx:scope:{NAME}` (with `%XX` for `%`, `{` and `}` in the name), which the server drops once `--scope-ttl` is over. What \
         is no such hash, or holds no good numbers, is renamed to `retryx:damaged:{NAME}` and said once, and the scope \
         starts afresh. A user of an access list needs `~retryx:* +eval +select +time +type +hmget +hset +pexpire \
         +rename`, for `retryx quota` also `+scan +del`. In a cluster each scope has its node, which the address has to \
         name; `retryx quota list` prints those of the node that is named.",
    ),
    Part::Text(
        "A password is best given by a file, or in the variable `RETRYX_STORE`, as others can see arguments. No message or \
         event shows it.",
    ),
    Part::Code("export RETRYX_STORE=rediss://:secret@cache.example.com/2\nretryx --scope billing-api ./job"),
];

/// `retryx quota`.
const QUOTA: &[Part] = &[
    Part::Text(
        "`retryx quota` shows and mends scopes. It takes `--store`, `--state-dir` and their variables, and runs nothing. \
         What is told of tokens includes those that have come in since the last use, at the rate that the last run gave.",
    ),
    Part::List(&[
        (
            "`quota list`",
            "Prints all scopes, by name. Where there are none it prints none, and a message says so; of one that is damaged \
             or cannot be read a message says why.",
        ),
        ("`quota show NAME`", "Prints one scope. Where there is none of that name, the exit status is 125."),
        (
            "`quota reset NAME`",
            "Makes the scope start afresh: its limiter is idle, and its bucket full, with the capacity that the next run has. It \
             prints nothing. Runs that wait for the limiter wait on. Where there is no such scope, there is nothing to do, and \
             a message says so.",
        ),
        (
            "`quota set NAME --tokens N`",
            "Gives the scope so many tokens, at most its capacity, and prints it. Zero stops the retries of its runs until \
             some come back. A scope that does not exist yet begins with `--quota-capacity`, `--quota-refill` and \
             `--scope-ttl`, or what these are without being given.",
        ),
    ]),
    Part::Options(Sub::Quota),
    Part::Text(
        "For people: the tokens of the capacity; the refill, and when it will have filled the bucket; the limiter, `off` or the \
         attempts a second that it lets start and those that it measured; and the last use.",
    ),
    Part::Text(
        "`--format json` prints an object a scope, `list` a list of them. `tokens`, `capacity` and `refill_per_second` are null \
         where no run of the scope had a quota.",
    ),
    Part::List(SCOPE_FIELDS),
    Part::Text(
        "The exit status is 0, or 125 where something is wrong with the words, or the store cannot be read or written.",
    ),
    Part::Code(
        "retryx quota list\nretryx quota set billing-api --tokens 0\nretryx quota show billing-api --format json | jq .tokens",
    ),
];

/// The fields of a scope in JSON.
pub const SCOPE_FIELDS: &[(&str, &str)] = &[
    ("scope", "Its name."),
    ("store", "Where it is kept: the folder, or the URL without secrets."),
    ("tokens", "Whole tokens that are there now."),
    ("capacity", "The most that it can hold."),
    ("refill_per_second", "The tokens that come back each second."),
    (
        "limiter",
        "The rate limiter: `enabled` (whether it paces attempts), `fill_rate` (how many it lets start each second) and \
         `measured_rate` (how many ended each second).",
    ),
    ("updated", "When it was last used or set: RFC 3339, UTC, to the millisecond."),
];

/// The sections that stand after the options in the manual.
pub const AFTER_OPTIONS: &[Section] = &[
    Section {
        title: "POLICIES",
        parts: &[
            Part::Text("A mode is a delay formula with limits. Each number in it can be set on its own."),
            Part::Table(MODES),
            Part::Text(MODES_LEGEND),
            Part::Text(
                "`--base-delay` sets the base, `--throttle-base-delay` the base \
                 after throttling, `--max-backoff` the cap, `--factor` the 2, `-n` the attempts, `--deadline` \
                 the deadline. `--jitter` replaces the mode's own: `full` is that of `standard` and `legacy`, \
                 `fraction` that of `google`, `none` that of `fixed` and `linear`; `decorrelated` has no other. The \
                 cap is applied before the jitter of `full`, `equal` and `none`, and to the sum of `fraction`, as AWS \
                 and Google document: at the cap of `google` nothing is random. `--min-delay` comes last.",
            ),
            Part::Text(
                "`--service dynamodb` takes the defaults that AWS documents for DynamoDB, in the AWS modes `standard`, \
                 `adaptive` and `legacy` only:",
            ),
            Part::Table(DYNAMODB),
            Part::Text(
                "`--delays 1s,5s,30s` spells the delays out in place of the formula; the last repeats. There is no \
                 jitter and no cap then unless `--jitter` or `--max-backoff` is given. The attempts and the deadline \
                 stay those of the mode.",
            ),
            Part::Text("`--seed` makes the whole schedule repeat; `-v` prints how each delay came about."),
        ],
    },
    Section {
        title: "CLASSES",
        parts: &[
            Part::Text("How an attempt ended decides whether another can help:"),
            Part::Table(&[
                &["outcome", "class", "rule"],
                &["exit code 0", "success", "default:success"],
                &["exit code 126 or 127", "permanent", "default:cannot-run"],
                &["exit code 130, killed by SIGINT", "permanent", "default:interrupted"],
                &["exit code 141, killed by SIGPIPE", "permanent", "default:broken-pipe"],
                &["any other exit code", "transient", "default:exit"],
                &["killed by any other signal", "transient", "default:signal"],
                &["ended by `--timeout` or `--idle-timeout`", "transient", "default:timeout"],
                &["not found, or may not be run", "permanent", "default:cannot-run"],
                &["cannot be started just now", "transient", "default:not-started"],
            ]),
            Part::Text(
                "A command cannot be started just now while its file is being written, or the system has no process, \
                 memory or descriptor to spare. A transient failure is retried, a permanent one never. Throttling is \
                 retried too, with `--throttle-base-delay`; no default gives it to a command, only `--throttle-on` \
                 and what is known of a program do (see `PROGRAMS`).",
            ),
        ],
    },
    Section {
        title: "RULES",
        parts: &[
            Part::Text(
                "`--succeed-on`, `--fail-on`, `--throttle-on` and `--retry-on` take a list of conditions, separated by \
                 commas, and can be repeated, which adds to the list:",
            ),
            Part::List(&[
                ("`7`, `100-110`", "The command exited with this code, or with one from the first to the last."),
                (
                    "`signal:KILL`, `signal:9`",
                    "This signal killed the command. 137, as a shell shows it, does not match.",
                ),
                ("`timeout`", "A time limit of retryx ended the attempt. No number matches that, not even 124."),
                ("`any`", "Any failure of a command that was started."),
                (
                    "`default`",
                    "What has this class without rules; for `--retry-on` all that is retried without rules, which \
                     keeps its class. So `--retry-on default,126` only adds.",
                ),
                ("A `and` B", "Both hold."),
                ("`http:503`, `http:5xx`, `http:500-504`", "A server answered with such a status."),
                ("`error:SlowDown`", "A service gave this error code, spelled so."),
                (
                    "`stdout:/RE/`, `stderr:/RE/`, `output:/RE/`, `body:/RE/`",
                    "A line of that text, of `output` any of the first two, matches the regular expression; an `i` after \
                     the last slash ignores case, `\\/` is a slash. LF, CR LF or CR ends a line; the first 64 KiB of it \
                     are looked at, without the escape sequences that colour a terminal. A body is looked at as \
                     a whole, decoded, however long: that of a failure too is then received to its end.",
                ),
            ]),
            Part::Text(
                "A pattern on output makes retryx read that stream while it passes it on (see `STANDARD OUTPUT`). Of \
                 a command, `http:` and `error:` hold where its preset finds a status or a code in its messages (see \
                 `PROGRAMS`); a run refuses a list that could never hold for its command. For a request `http:`, \
                 `error:`, `body:`, `timeout`, `any` and `default` can hold, and a condition that cannot is refused (of \
                 a variable, which may be set for commands too, a list that has no other); \
                 a failure without an answer is named by the last two. A condition that holds for no outcome, as `7 and 8`, \
                 is refused anywhere.",
            ),
            Part::Text(
                "The syntax of patterns is that of Rust's regex crate: no look-around and no backreferences. `\\d`, `\\w`, \
                 `\\s`, `\\b` and the ignoring of case know all of Unicode, but classes by property, as `\\p{L}`, are not \
                 there. What grows too large is refused, as `\\w{300}`; of ASCII alone, `(?-u:\\w){300}`, it is small.",
            ),
            Part::Text(
                "Whatever the order of the options, the lists are asked in this order, and the first condition that \
                 holds decides: `--succeed-on` (gives success, and exit status 0), `--fail-on` (permanent), \
                 `--throttle-on` (throttling), `--retry-on` (transient). So a rule of refusal beats a rule of retry. If \
                 none holds, the table above does.",
            ),
            Part::Text(
                "Once `--retry-on` is given, its list is the whole list: a failure that no condition names is permanent. \
                 An attempt that a time limit ended is excepted and stays transient; `--fail-on timeout` makes it \
                 permanent. The other three options only give other classes to what they name.",
            ),
            Part::Text(
                "Success is touched only by a condition that names it, with 0 or a status below 400 in it: \
                 `--fail-on any` leaves exit code 0 alone, `--retry-on 0` does not. A run that ends with such a \
                 failure exits 1, a request with a status exits 22 as for any other.",
            ),
            Part::Text(
                "A command that could not be started is named only by 127 (not found), 126 (all else) or `default`, \
                 never by `any`.",
            ),
        ],
    },
    Section {
        title: "PROGRAMS",
        parts: &[
            Part::Text(
                "Some programs say in their exit code or messages whether trying again can help. `--preset auto` goes by \
                 the base name of the command; a string for `--shell` has none. `--preset NAME` takes the one named, \
                 whatever the command is called, `--preset none` none. What a preset does not know stays with the \
                 defaults, and rules of the user's go before it. It judges what exited by itself, never a command \
                 that a signal or a limit ended.",
            ),
            Part::Text(
                "A preset reads the streams that it knows messages on. With `auto` it never reads a terminal, and judges \
                 by the exit code alone there; `--watch` or a preset that is named has terminals read too. An \
                 operation that runs other programs (`npm run`, `cargo test`, `git rebase`) has no preset unless one is named. The \
                 messages that are known are those of the C locale.",
            ),
            Part::Text(
                "In the order of this: a service's error code in the messages of the program, by the lists under \
                 `EXPLAIN`; then what follows here; then the status of an answer, where the program tells of one, as \
                 `EXPLAIN` says of statuses.",
            ),
            Part::Presets,
            Part::Text(
                "Many programs retry by themselves, so that attempts multiply. `--sole-retrier` switches that off as \
                 told above: by variables, or by options after the command's own, which these override. `-v` says which.",
            ),
        ],
    },
    Section {
        title: "DELAYS ASKED FOR",
        parts: &[
            Part::Text(
                "`--retry-after-match stderr:/retry in (\\d+)s/` waits as long as a line of the output asks for: \
                 what the one group of the pattern captures is a duration, seconds or with a unit, and the last line \
                 that matches counts. What is no duration is ignored, and said with `-v`. The wait is the larger of \
                 that and of the formula's delay, and up to a tenth of it more, at random, unless the jitter is `none`, as it is in the modes `fixed` and `linear` and with `--delays` where `--jitter` says nothing else. Zero \
                 is the ordinary delay. It never makes a failure retryable.",
            ),
            Part::Text(
                "Asked for more than `--max-retry-after`, or than `--deadline` or `--total-timeout` leave, retryx stops \
                 at once and says for how long it was to stay away; the reason is `server_delay`.",
            ),
        ],
    },
    Section {
        title: "QUOTA AND RATE LIMITER",
        parts: &[
            Part::Text(
                "The modes `standard` and `adaptive` have the retry quota of the AWS SDKs: a bucket of 500 tokens that is \
                 full at the start. Each retry is paid before its wait: 14 tokens, 5 after throttling. A run that \
                 succeeds on a retry gets back what that retry took, one that succeeds at once gets 1, a failure \
                 nothing. Where the tokens do not reach, there is no retry; the reason is `quota`. With failures only, \
                 that ends a run after 36 attempts, or 101 after throttling. The quota neither delays nor refuses a \
                 first attempt.",
            ),
            Part::Text(
                "Without `--scope` each run has a bucket of its own, and a bucket that one run uses alone protects \
                 nobody. So a number of attempts that the user gives, by `-n` or `RETRYX_MAX_ATTEMPTS`, lifts the \
                 quota. `AWS_MAX_ATTEMPTS` and the AWS config file do not. With `--scope` the bucket is shared, and \
                 stays: see `SCOPES`.",
            ),
            Part::List(&[
                (
                    "`--quota-capacity`, `--quota-cost`, `--quota-refill`",
                    "The size of the bucket, the price of a retry, and the tokens that come back each second, in the \
                     course of attempts as of waits; AWS has no refill, a scope has one. Each of them gives a quota to a mode that has \
                     none, and keeps it where `-n` would lift it. What is not given is as above.",
                ),
                ("`--no-quota`", "Takes the quota away, also in a scope. None of the three above may stand beside it."),
                (
                    "`--long-poll`",
                    "Where the quota refuses a retry, the delay before it is waited all the same before retryx gives up, \
                     so that a caller who polls in a loop does not ask again at once. There is no such wait after a \
                     permanent failure nor after the last attempt.",
                ),
            ]),
            Part::Text(
                "The mode `adaptive` has the client rate limiter of the AWS SDKs besides. It does nothing until an \
                 attempt was throttled. From then on it lets attempts start at a limited rate: at first 0.7 of the \
                 rate at which they came, never less than one in two seconds, growing again while no attempt is \
                 throttled. A delay that it prolongs has the source `limiter` in the events.",
            ),
        ],
    },
    Section { title: "SCOPES", parts: SCOPES },
    Section {
        title: "LIMITS",
        parts: &[
            Part::List(&[
                (
                    "`-n`, `--max-attempts`",
                    "Counts runs, the first included: `-n 1` never retries. No wait follows the last attempt.",
                ),
                (
                    "`--deadline`",
                    "No attempt starts after it. A delay that would end past it is not slept: retryx stops at once. A \
                     running attempt is left to finish, however long it takes.",
                ),
                (
                    "`--total-timeout`",
                    "A bound on everything: it ends the running attempt too, and the writing of output that nobody takes. The run is over at this time plus at \
                     most `--kill-after`. A delay that would reach it is not slept.",
                ),
                ("`--timeout`", "A bound on each attempt by itself. An attempt that it ends is transient."),
                (
                    "`--idle-timeout`",
                    "A bound on the silence of an attempt: on the time since its start, or since it last wrote something to \
                     standard output or standard error. Both are read for that. Time in which nobody takes its output \
                     does not count. An attempt that it ends is transient.",
                ),
            ]),
            Part::Text(
                "All clocks start when retryx starts, so the wait of `--stagger` counts. `--timeout`, `--idle-timeout` and \
                 `--kill-after` count time in which the machine ran. `--deadline`, `--total-timeout` and all delays \
                 count the time that a suspended machine slept, too. The wall clock never matters. Time between \
                 Ctrl-Z and `fg` counts against nothing; time in which a STOP held retryx, of which it hears nothing, \
                 does.",
            ),
            Part::Text(
                "A limit ends all processes that descend from the command, also those that left its process group or \
                 session, and those that an earlier attempt left behind. Each of them gets the `--kill-signal` followed \
                 by CONT, once, and so does whatever appears meanwhile, and KILL if it is still there after \
                 `--kill-after`. What one of them starts when it has the signal already is its own while it lives: it \
                 may be putting things in order. Where no limit strikes, nobody is killed: what a command leaves \
                 running goes on running.",
            ),
            Part::Text(
                "If a process is still there after KILL, or may not be signalled, the run ends with exit status 124 and \
                 the reason `unkillable`, and the message names the process: no attempt ever starts beside a living \
                 one that a limit should have ended.",
            ),
        ],
    },
    Section {
        title: "SETTINGS",
        parts: &[
            Part::Text("Each setting is taken by itself from the first of these places that has it:"),
            Part::List(&[
                ("1. the command line", "Of an option given twice the last counts; rules add up."),
                (
                    "2. `RETRYX_*` variables",
                    "Every option of a run but `--help` and `--version` has one: `RETRYX_MAX_ATTEMPTS` for \
                     `--max-attempts`, and so on. A flag takes `1`, `true`, `yes` or `on`, and `0`, `false`, `no` or \
                     `off`, in any case; `RETRYX_VERBOSE` takes `0`, `1` or `2`. A list of rules on the command line replaces that \
                     of the variable.",
                ),
                ("3. AWS's variables", "`AWS_RETRY_MODE` for `--mode`, `AWS_MAX_ATTEMPTS` for `--max-attempts`."),
                (
                    "4. the AWS config file",
                    "`retry_mode` and `max_attempts` of the profile `AWS_PROFILE`, else `default`, in the file \
                     `AWS_CONFIG_FILE`, else `~/.aws/config`.",
                ),
                ("5. the defaults", "Those of the mode, or of the option."),
            ]),
            Part::Text(
                "A variable that is set but empty counts as not set. A wrong value in retryx's own settings stops \
                 retryx before anything runs, with status 125 and a message that names the place. A `RETRYX_*` variable \
                 that belongs to no option is warned about and ignored; `RETRYX_RUN_*` are facts, not settings (see \
                 `ENVIRONMENT`).",
            ),
            Part::Text(
                "AWS's settings count only where the mode is `standard`, `adaptive` or `legacy`; in the other modes they \
                 are not even read. The mode is taken in any case, the attempts as a whole number from 1. Where the \
                 command is the AWS CLI, a program called `aws`, the number of attempts is its own setting: retryx reads \
                 neither `AWS_MAX_ATTEMPTS` nor `max_attempts` then.",
            ),
            Part::Text(
                "Something wrong in AWS's settings (a word that is no mode, a number that is none, a profile that is \
                 asked for and not there, a file that cannot be read, is no UTF-8 text, breaks the form or is larger \
                 than 1 MiB) is said once and ignored, and a wrong variable does not let the file's value through. It \
                 stops retryx where an AWS mode is asked for on the command line, or the command is `aws`. Both hold \
                 also where an option or a variable of retryx's own takes the place of the wrong setting. A file that \
                 is not there is no error. Of one that cannot be read, and that neither `AWS_CONFIG_FILE` nor \
                 `AWS_PROFILE` speaks of, only `-v` tells.",
            ),
            Part::Text(
                "Settings that make no sense together, as `--delays` and `--base-delay`, `--no-quota` and \
                 `--quota-capacity`, `--quiet` and `--verbose`, or a `--min-delay` above `--max-backoff`, are an error \
                 where they come from the same place; else the one from the place that comes later in this list is left \
                 aside. So is one that has nothing to act on in a `--mode` from an earlier place, or a `--stagger` that \
                 could take longer than a `--deadline` or `--total-timeout` from one.",
            ),
            Part::Text(
                "`retryx plan --explain-config` prints each setting with the place that it came from; with `--format \
                 json` one object whose `settings` is a list of objects with `name`, `value` and `source`.",
            ),
        ],
    },
    Section {
        title: "PLAN",
        parts: &[
            Part::Text(
                "`retryx plan` prints the delays of a policy without running anything. It takes the options of a run, \
                 before or after its name, and its own, after it. A command may follow, so that a command line can be \
                 planned as it stands; it is not run.",
            ),
            Part::Options(Sub::Plan),
            Part::Text(
                "The table has a row a retry, counted from 1, the one before attempt 2: the `least`, `mean` and \
                 `greatest` delay before it, and the sum of the means up to it; with `--seed` also the delays `drawn`, \
                 which are those that a run with that seed and only such failures waits. The bar is as long as the \
                 greatest delay; `cap` stands where the longest delay cuts it.",
            ),
            Part::Text(
                "The rows end where the attempts or the quota end, and before the retry at which the sum of the means \
                 would pass `--deadline` or reach `--total-timeout`; a line below says so. Without any limit there are \
                 20 rows, and never more than 200,000. The time that attempts take is not known and counts as none, so a run may end sooner; by \
                 the draw also later. The waits of the rate limiter, of `--stagger` and of servers are not planned, \
                 nor is the quota's end where it has a refill. The mean of `decorrelated` is approximate from where \
                 the cap bites.",
            ),
            Part::Text(
                "`--format json` prints one object: `mode`, `class`, `max_attempts`, `deadline_ms`, `ended_by` \
                 (`attempts`, `deadline`, `total_timeout`, `quota` or `rows`) and `retries`, a list of objects with \
                 `retry`, `min_ms`, `mean_ms`, `max_ms`, `drawn_ms`, `capped` and the running sums `total_min_ms`, \
                 `total_mean_ms`, `total_max_ms`, `total_drawn_ms`. `--format csv` prints the same columns but `capped`, \
                 after a line of their names. What is not drawn is null, in CSV empty.",
            ),
        ],
    },
    Section {
        title: "EXPLAIN",
        parts: &[
            Part::Text(
                "`retryx explain` prints the class of an outcome and the name of the rule that decided, without running \
                 anything. It takes one outcome (`--exit`, `--signal`, `--timed-out` or `--status`), what else is \
                 known of it, and the options of a run, of which rules and mode matter. It takes no command.",
            ),
            Part::Options(Sub::Explain),
            Part::Text(
                "A status from 200 to 399 is success, 500, 502, 503 and 504 are transient, 429 is throttling (in the mode \
                 `google` only with `--retry-429`, else permanent), and so are 403 with the header \
                 `x-ratelimit-remaining: 0` and, in the mode `legacy`, 509; any other status is permanent. Before the \
                 status, these words of services count:",
            ),
            Part::List(SERVICE_WORDS),
            Part::Text(LEGACY_WORDS),
            Part::Text(
                "They are looked for where each service documents them: in the headers `x-amzn-query-error` and \
                 `x-amzn-errortype`, in a JSON or XML body, and in the line `An error occurred (CODE) when calling the \
                 ...` that the AWS CLI writes to standard error.",
            ),
            Part::Text(
                "`--program` names the command, so that its preset judges `--exit` with `--stdout-text` and `--stderr-text`. What a user could do about \
                 it, where something is known, is a third line, in JSON `hint`.",
            ),
        ],
    },
    Section { title: "QUOTA", parts: QUOTA },
    Section {
        title: "HTTP",
        parts: &[
            Part::Text(
                "`retryx http` makes a request itself, with the names and the meaning of curl's options, and repeats it \
                 where that is safe. It takes the options of a run but those about commands, before or after its name, and its own, before or \
                 after the URL. Letters are curl's: `-k` trusts any certificate, and `-n` is not taken. A URL \
                 without a scheme is taken for `http:`.",
            ),
            Part::Options(Sub::Http),
            Part::Text(
                "The body of a good answer, with a status from 200 to 399, is written, to standard output or to the file; a 304 has none, and leaves the file as it is. A status that ends the run as a \
                 failure, by itself or by a rule, exits 22, with or without `-f`, and its body is written with `--fail-with-body` only. The \
                 exit statuses of failures without an answer are curl's: 1 (the scheme is not spoken), 3 (URL), 5 \
                 (proxy's name), 6 (name), 7 (connection), 8 (no HTTP), 18 (the body ended early, or its checksum is \
                 wrong), 23 (output), 26 (input), 28 (any time limit), 33 (a download cannot be continued), 35 (TLS), \
                 47 (redirects), 52 (no answer), 55 (sending), 56 (receiving), 58 (the client's certificate), 60 (the \
                 server's certificate), 61 (coding), 77 (no trusted certificates).",
            ),
            Part::Text(
                "Statuses have the classes that `EXPLAIN` tells of. Of the failures without an answer these are permanent: \
                 1, 3, 23, 26, 47, 58, 60 and 77; all others are transient.",
            ),
            Part::Text(
                "GET, HEAD, OPTIONS, PUT, DELETE and TRACE are repeated after any failure that may pass; POST, PATCH and others \
                 only where the request cannot have been acted on: no connection was made, or the answer is 429, or 503 \
                 with `Retry-After`. Else the reason is `unsafe_request`. `--idempotent` says that a repetition does no harm; so \
                 does a header `Idempotency-Key` that is not empty, which `--idempotency-key` sends, the same in every attempt. The body \
                 is the same in every attempt: what comes from standard input is kept, past 8 MiB in a temporary file \
                 without a name, and a file that has changed since the first attempt ends the run.",
            ),
            Part::Text(
                "The server's word on when to come back counts: `x-amz-retry-after` in the modes `standard` and \
                 `adaptive`, `Retry-After` with seconds or any HTTP date, else `x-ratelimit-reset` or `RateLimit-Reset`. See \
                 `DELAYS ASKED FOR`; a date counts from the answer's own `Date`.",
            ),
            Part::Text(
                "A body is taken for good only when its length or its last chunk says that it is whole, and `--checksum` that it \
                 is right. What broke off is continued, not restarted, where the server can: with `Range` and \
                 `If-Range`, never from two versions. `-o FILE` replaces the file at once, when the body is whole; until then the old one \
                 stays, whatever happens. A file that cannot be replaced, as something is mounted there or it is somebody \
                 else's in a folder like /tmp, is overwritten then. A special file is written in place. A body for standard output is held \
                 until it is good; one that is larger than 8 MiB streams from there on, and can then only be continued. \
                 `-N` passes everything on as it comes. After a body that was passed on already, in whole or in part, a \
                 rule that finds something in it cannot ask for another: the run ends at once, with 18. A body that \
                 was continued counts as one that came at once: its status and fields are those of the answer that it began with.",
            ),
            Part::Text(
                "With `-r` and one range, an answer with another part than was asked for is refused (33), and the rest of \
                 one that came short is asked for. `-C 0` asks for the whole, as without it; any other `-C` puts \
                 what comes behind what the file has, and is refused where that does not follow, unless the file is empty or missing; \
                 rules look at both. \
                 `--checksum` is that of a body as it is written; an answer 304 has none, and is not held against it.",
            ),
            Part::Text(
                "Limits hold for all of an attempt, redirects included: `-m` is `--timeout`. On a redirect to another origin \
                 (scheme, host or port) only headers go along that can carry no secret: `Accept` and its like, \
                 `Content-*`, `User-Agent`, `Range` and `If-*`. No message or event holds a password, a query or a \
                 header. Names are looked up in `/etc/hosts` and with the servers of `/etc/resolv.conf`, without the modules of \
                 nsswitch.conf. HTTP/1.1 is spoken, and TLS 1.2 and 1.3, trusting the system's store, or what \
                 `CURL_CA_BUNDLE`, else `SSL_CERT_FILE` and `SSL_CERT_DIR` name.",
            ),
            Part::Text(
                "On a terminal a line shows how far a transfer is, once it takes a second, and how long a wait is. Options of \
                 curl's that are not taken are refused by name, with the way to do it here. Where the same words do \
                 something else than in curl, that is on purpose:",
            ),
            Part::Differences,
        ],
    },
    Section {
        title: "STANDARD INPUT",
        parts: &[
            Part::Text("`--stdin` says what attempts read, and what must be true of it for a retry:"),
            Part::List(&[
                (
                    "`auto`",
                    "The standard input of retryx, which retryx itself does not read. A terminal and `/dev/null` are \
                     always fine. A file that is open for reading only is put back to where the attempt found it, \
                     unless somebody else moved the offset during the wait. From a pipe or FIFO nothing must have been \
                     read, by anybody, since the run began (watched by inotify); an empty pipe that nobody can write \
                     to is fine. Of a socket retryx cannot know, so it is fine only if it was at its end from the \
                     start. Else retryx stops with the status of the attempt; the reason is `stdin_consumed`.",
                ),
                (
                    "`replay`",
                    "A pipe in which every attempt finds all of the standard input of retryx, from its first byte; an \
                     attempt that reads only part of it does no harm. What was read is kept: up to 8 MiB in memory, \
                     beyond that in a temporary file without a name in `$TMPDIR`, else `/tmp`, which is gone when \
                     retryx is. With `-n 1` there is nothing to keep, and it is as `inherit`; so it is with a terminal.",
                ),
                ("`inherit`", "The standard input of retryx, as the attempt before left it. Nothing is checked."),
                ("`null`", "`/dev/null`."),
            ]),
            Part::Text(
                "With `replay`, retryx takes input only as the command makes room for it, so it reads ahead by at most one \
                 page, 4 KiB on most machines. That much is lost to others who read the same standard input, such as \
                 the `while read` loop around retryx; in the other kinds such a loop loses no line to retryx.",
            ),
            Part::Text(
                "If what was read cannot be kept, for a full disk say, a message says so: the attempt that runs gets all \
                 of the input, and no retry follows it, with the reason `stdin_consumed`. Where \
                 the input itself cannot be read to its end (a connection was reset, say), or what was kept cannot be \
                 read back, the command is killed, so that it does not take a part for the whole.",
            ),
            Part::Text(
                "With `-n 1` nothing is checked in `auto` either. The kernel may take some milliseconds to end the watch \
                 on a pipe when retryx ends; the other kinds and `-n 1` need none.",
            ),
        ],
    },
    Section {
        title: "STANDARD OUTPUT",
        parts: &[
            Part::Text("`--stdout`, and `--stderr` for standard error, say whose output is written, and when:"),
            Part::List(&[
                (
                    "`each`",
                    "The command writes to the very descriptor that retryx was given; nothing is copied or held back, \
                     unless the stream is read for a reason given below. \
                     So what a failed attempt wrote stays, and the next attempt's output follows it. Where standard \
                     output is no terminal and a failed attempt wrote to it, the message about the retry says so. Of \
                     a pipe whose reader is quick, retryx knows only that the attempt wrote something somewhere, and \
                     says that it may have been there.",
                ),
                (
                    "`final`",
                    "What an attempt writes is kept, as `--stdin replay` keeps input, and forgotten when the next begins. \
                     When the run is over, the last attempt's bytes are written, whether it succeeded or not: a reader \
                     never sees two halves.",
                ),
                ("`success`", "As `final`, but nothing is written unless the run succeeds."),
            ]),
            Part::Text(
                "A stream is read by retryx where a rule, a preset, `--retry-after-match` or `--idle-timeout` needs it, \
                 and only then. The command writes to a pipe; every byte is passed on as it comes, whatever it is, \
                 before it is looked at. Where the reader is slow, the command waits as it would by itself. The first \
                 64 KiB of a line are looked at. Of a line that is no UTF-8, `.` matches only what is; `(?-u:.)` matches \
                 any byte. A pager that the command starts on a terminal that is read gets no keys, as it looks for \
                 them at the end of its output: switch it off (`git --no-pager`).",
            ),
            Part::Text(
                "A stream that is read or held back and was a terminal is a terminal for the command too, a \
                 pseudo-terminal of the same size, so that colours stay. Where standard output and standard error are \
                 one file, pipe or terminal, both are one stream, in the order in which they were written, and `stdout:`, \
                 `stderr:` and `output:` all mean that one; held back on a terminal, nothing of either is seen before \
                 the end, questions included. Without a pseudo-terminal to be had, a message says so and it is a pipe. \
                 Messages of retryx are never held back.",
            ),
            Part::Text(
                "Where a signal ends the run, nothing is written of an attempt that did not succeed: what it cut off is \
                 not whole. retryx does not wait for a background process that still holds such a pipe. What it writes once its \
                 attempt is over goes nowhere, and it dies of SIGPIPE unless it ignores that: give what is to \
                 live on a file of its own, or `--preset none`.",
            ),
            Part::Text(
                "Output that cannot be kept, for a full disk say, is never written in part: none of it is, a message says \
                 so, and a run that would have succeeded exits 125. So it does where what was kept cannot be written \
                 to the end. Where the reader goes away while it is written, retryx dies of SIGPIPE as the command \
                 would have: a shell shows 141.",
            ),
            Part::Text(
                "Before each retry retryx looks whether anybody still reads standard output. If not, it stops; the \
                 reason is `reader_gone`. A command that dies of SIGPIPE is not retried and, where that was the first \
                 attempt, not spoken of: `retryx yes | head -1` ends as `yes | head -1` does.",
            ),
        ],
    },
    Section {
        title: "SIGNALS",
        parts: &[
            Part::Text(
                "The command stays in the process group of retryx, and retryx never changes which group is in the \
                 foreground of a terminal. So keys, shells and job control reach the command as if retryx were not \
                 there. With `--own-group` it has a group of its own, and retryx passes keys on to it.",
            ),
            Part::List(&[
                (
                    "INT, QUIT",
                    "From a key (Ctrl-C, Ctrl-\\) the command has it already, unless it left retryx's process group, as \
                     timeout(1) does; then, and from a process, it is passed on. In any case retryx waits for the command, reports what it did, and makes no further attempt.",
                ),
                (
                    "TERM, HUP",
                    "Passed on each time they arrive. retryx waits for the command and makes no further attempt. None \
                     is turned into KILL, unless `--kill-after` is given: that bounds a TERM passed on.",
                ),
                ("USR1, USR2", "Passed on; during a wait they are ignored."),
                ("TSTP, TTIN, TTOU", "Ctrl-Z stops the command and retryx, `fg` or `bg` resumes both."),
                (
                    "during a wait",
                    "INT, QUIT, TERM and HUP end retryx at once, of that signal, as they would end the command.",
                ),
            ]),
            Part::Text(
                "A signal that was ignored when retryx was started (`nohup`, `&` in a script) stays ignored, in the \
                 command too. The signal mask, the dispositions of SIGPIPE and SIGCHLD, closed descriptors and the \
                 status flags of the open ones are given on as they were found. Terminal settings are put back after \
                 an attempt that a signal or a limit ended.",
            ),
            Part::Text(
                "Where a signal killed the command of the last attempt, retryx dies of the same signal. Where retryx \
                 itself is killed by KILL, the kernel kills the command; not its children, nor a set-user-id program. \
                 As PID 1 of a container retryx passes signals on, reaps orphans, and exits 128 + N where it cannot \
                 die of the signal N.",
            ),
        ],
    },
    Section {
        title: "SHELL",
        parts: &[Part::Text(
            "Without `--shell` the command is started directly: no quoting is needed or undone. With it, the one \
                 word given is run by `sh -c` under `set -e` and `set -o pipefail`, so that a failure in any part of \
                 it, a part of a pipeline included, is a failure of the attempt. Where `sh` does not know `pipefail`, \
                 `bash` runs it; where there is no `bash` either, a message says that only the last command of a \
                 pipeline counts.",
        )],
    },
    Section {
        title: "ENVIRONMENT",
        parts: &[
            Part::Text(
                "The command gets the environment of retryx and these facts about its run. They are for the command \
                 only: retryx takes no settings from them, and replaces those of a retryx around it.",
            ),
            Part::List(&[
                ("`RETRYX_RUN_ID`", "The run: 32 hexadecimal digits, as in the events."),
                ("`RETRYX_RUN_ATTEMPT`", "The number of this attempt, from 1."),
                ("`RETRYX_RUN_MAX_ATTEMPTS`", "The most attempts, or `unlimited`."),
                ("`RETRYX_RUN_LAST_EXIT`", "What the attempt before gave, as a shell shows it. Not set at first."),
                ("`RETRYX_RUN_LAST_CLASS`", "The class of that: `transient` or `throttling`. Not set at first."),
                (
                    "`RETRYX_RUN_DEADLINE_MS`",
                    "Milliseconds left until the deadline or the total timeout, whichever is first. Not set without \
                     one.",
                ),
            ]),
            Part::Text("retryx itself reads these:"),
            Part::List(&[
                ("`RETRYX_*`", "Settings, one an option; see `SETTINGS`."),
                (
                    "`AWS_RETRY_MODE`, `AWS_MAX_ATTEMPTS`, `AWS_CONFIG_FILE`, `AWS_PROFILE`, `HOME`",
                    "AWS's settings, and where they are; see `SETTINGS`.",
                ),
                ("`XDG_STATE_HOME`, `HOME`", "Where the files of scopes are; see `SCOPES`."),
                ("`TMPDIR`", "Where input and output go that are kept and too large for memory; else `/tmp`."),
                ("`PATH`", "Where a command without a slash in its name is looked for."),
            ]),
        ],
    },
    Section {
        title: "MESSAGES",
        parts: &[
            Part::Text(
                "By default: each failure that is retried, with its class and the delay; why retryx gave up, with \
                 all failures where they differed; that an attempt waits for the rate limiter of a scope, also the first; \
                 and warnings about settings and scopes. With `-v` also each outcome with the rule that classed it, the \
                 computation of each delay with its random number, a success, and a retryx that runs this one. With \
                 `-vv` also the start of each attempt and signals. With `-q` only what retryx itself could not do, and no warning.",
            ),
            Part::Text(
                "Arguments of the command are never printed, as they may be secret; only the name of the program is.",
            ),
        ],
    },
    Section {
        title: "EVENTS",
        parts: &[
            Part::Text(
                "`--events` writes JSON Lines: one object and one write for each event, valid UTF-8 whatever the \
                 command's words hold, at most 64 KiB. Many runs can append to one file. A file that cannot be opened \
                 stops retryx before anything runs; one that fails later is said once and the run goes on. To watch a \
                 run from a script, use a descriptor: `retryx --events fd:3 COMMAND 3>log`. Every event has:",
            ),
            Part::List(EVERY_EVENT),
            Part::Events,
        ],
    },
    Section {
        title: "EXIT STATUS",
        parts: &[
            Part::ExitStatuses,
            Part::Text(
                "A run that gives up for a deadline, the quota, standard input or a reader that is gone keeps the status of \
                 its last attempt. An outcome that `--succeed-on` names gives 0; an exit code 0 that a rule made a failure \
                 gives 1. A run whose output was held back and is lost gives 125 in place of 0. `--exit-code-on-failure` replaces the status of a run that failed, but neither 125 nor \
                 the end by a signal that came to retryx.",
            ),
        ],
    },
    Section {
        title: "EXAMPLES",
        parts: &[
            Part::Text("Three attempts with the delays of the AWS SDKs:"),
            Part::Code("retryx aws s3 cp report.csv s3://bucket/"),
            Part::Text("Google's delays for ten minutes, and no attempt longer than 30 seconds:"),
            Part::Code("retryx --mode google --deadline 10m --timeout 30 gcloud builds list"),
            Part::Text("Wait for a database, at most 30 times, a second apart, without a word:"),
            Part::Code("retryx -q --mode fixed -n 30 pg_isready"),
            Part::Text("What that policy waits, before it is used:"),
            Part::Code("retryx plan --mode google --deadline 10m"),
            Part::Text("Only two failures are worth a retry, one of them after a longer delay:"),
            Part::Code("retryx --retry-on 7 --throttle-on 75 ./fetch"),
            Part::Text("The same input for every attempt, and the output of the last one only:"),
            Part::Code("pg_dump shop | retryx --stdin replay --stdout final ./upload | tee receipt"),
            Part::Text("A pipeline, of which any part may fail:"),
            Part::Code("retryx --shell 'pg_dump shop | gzip > shop.sql.gz'"),
            Part::Text("A job of cron that starts within a minute at random and is over within ten:"),
            Part::Code("retryx --stagger 60 --total-timeout 10m rsync -a src/ backup:dst/"),
            Part::Text("Jobs of a fleet that leave a service alone together:"),
            Part::Code("retryx --scope billing-api --store redis://cache.example.com ./job"),
            Part::Text("What happened, for a program:"),
            Part::Code("retryx --events run.jsonl make test; jq -r .event run.jsonl"),
        ],
    },
    Section {
        title: "NOTES",
        parts: &[
            Part::Text(
                "retryx runs on Linux, 5.3 or later. It uses `/proc` to find the processes that a limit has to end: \
                 without it only the command itself is ended.",
            ),
            Part::Text(
                "A command is repeated as it stands. Whether it may be run twice is for its user to know: a command \
                 that failed may have done its work in part.",
            ),
            Part::Text(
                "Programs that retry by themselves multiply: three attempts of a command that makes five are fifteen.",
            ),
        ],
    },
    Section {
        title: "SEE ALSO",
        parts: &[Part::Text("timeout(1), env(1), nohup(1), sh(1), signal(7), proc(5), inotify(7)")],
    },
];
