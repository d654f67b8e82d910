//! The words of the manual that are not options: shared by `--help`, `man/retryx.1` and
//! the tables in the README.
//!
//! Only [`ABOUT`] and [`after_help`] are reached by the binary; the linker drops the rest
//! of this module from it. In all texts here, backquotes mark words that are typed or
//! printed as they stand.

use std::fmt::Write as _;

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
        "A duration is in seconds (300, 0.5, .3) or carries a unit (250ms, 5m, 1h 30m).\n\n\
         Exit status:\n{}\nThe manual, retryx(1), says more: classes, signals, standard input, events.",
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
}

/// The modes with their numbers.
pub const MODES: &[&[&str]] = &[
    &["mode", "delay before retry i", "base", "cap", "limit"],
    &["`standard`, `aws`", "u × min(cap, base × 2^i)", "50 ms", "20 s", "3 attempts"],
    &["`google`", "min(cap, base × 2^i + f)", "1 s", "32 s", "deadline 300 s"],
    &["`fixed`", "base", "1 s", "none", "3 attempts"],
    &["`linear`", "min(cap, base × (i + 1))", "1 s", "1 h", "3 attempts"],
    &["`exponential`", "u × min(cap, base × 2^i)", "1 s", "1 h", "3 attempts"],
    &["`decorrelated`", "min(cap, uniform(base, 3p))", "1 s", "20 s", "3 attempts"],
];

/// What the letters in [`MODES`] stand for.
pub const MODES_LEGEND: &str = "i counts retries from 0. u is uniform in [0, 1). f is uniform in (0, 1] seconds. p is \
the delay before, at first the base. u and f are drawn afresh for each delay.";

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
            ("program", "The command's first word; with `--shell` the whole string."),
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
                 `not_started`.",
            ),
            ("exit_code", "The command's exit code, where it exited; else null."),
            ("signal", "The number of the signal that killed it; else null."),
            ("timed_out", "Whether a limit of retryx ended it."),
            ("http_status", "Always null; kept for requests."),
            ("error_code", "Always null; kept for requests."),
            ("error", "Why the command could not be started, or which of its processes could not be ended; else null."),
            ("class", "`success`, `transient`, `throttling` or `permanent`."),
            ("rule", "The name of the rule that gave the class, `default:exit` for example."),
            ("duration_ms", "How long it took, in milliseconds."),
        ],
    ),
    (
        "retry_scheduled",
        "Before each wait.",
        &[
            ("attempt", "The number of the attempt to come, from 2."),
            ("delay_ms", "The wait in milliseconds, as it is slept."),
            ("delay_source", "What asked for it: `backoff`."),
            ("base_ms", "The base delay that entered, in milliseconds."),
            ("exponent", "i, the number of the retry, from 0."),
            ("cap_ms", "The longest delay in milliseconds; null without one."),
            ("jitter", "`full`, `equal`, `fraction` or `none`."),
            ("server_delay_ms", "Always null; kept for requests."),
            ("quota_left", "Tokens left in the retry quota once this retry is paid; null without a quota."),
        ],
    ),
    (
        "stopped",
        "Once, at the end.",
        &[
            (
                "reason",
                "`success`, `permanent` (the class), `attempts` (used up), `deadline`, `total_timeout`, `quota`, \
                 `stdin_consumed`, `reader_gone`, `unkillable` or `interrupted` (by a signal).",
            ),
            ("attempts", "How many were made."),
            ("exit_status", "What a shell will show: the exit code, or 128 + the signal."),
            ("elapsed_ms", "Time since the start, in milliseconds."),
            ("waited_ms", "Time spent in waits, in milliseconds."),
            ("quota_left", "Tokens left in the retry quota; null without a quota."),
            ("server_delay_ms", "Always null; kept for requests."),
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
             looks like. These words are kept for subcommands where they come first and not after `--`: `http`, \
             `plan`, `explain`, `quota`, `simulate`, `stats`, `config`, `schema`, `translate`, `help`. To run a \
             program of that name, write `retryx -- plan`.",
        ),
        Part::Text(
            "Each attempt ends in an outcome, the outcome is given a class, and a transient failure is repeated after \
             a delay, while the limits allow it. What is repeated and why, how long retryx waits and why it stops is \
             said on standard error, in lines that begin with `retryx:`. Nothing is said about a command that \
             succeeds at once.",
        ),
        Part::Text(
            "A duration is a number of seconds (`300`, `0.5`, `.3`) or numbers with units (`250ms`, `5m`, `1h 30m`). \
             Zero means zero: a zero delay is no wait. Time limits of zero are refused.",
        ),
    ],
}];

/// The sections that stand after the options in the manual.
pub const AFTER_OPTIONS: &[Section] = &[
    Section {
        title: "POLICIES",
        parts: &[
            Part::Text("A mode is a delay formula with limits. Each number in it can be set on its own."),
            Part::Table(MODES),
            Part::Text(MODES_LEGEND),
            Part::Text(
                "`--base-delay` sets the base, `--max-backoff` the cap, `--factor` the 2, `-n` the attempts, `--deadline` \
                 the deadline. `--jitter` replaces the mode's own: `full` is that of `standard`, \
                 `fraction` that of `google`, `none` that of `fixed` and `linear`; `decorrelated` has no other. The \
                 cap is applied before the jitter of `full`, `equal` and `none`, and to the sum of `fraction`, as AWS \
                 and Google document. `--min-delay` comes last.",
            ),
            Part::Text(
                "The mode `standard` has the AWS retry quota: 500 tokens, of which a retry takes 14 (5 after \
                 throttling). A run that succeeds on a retry gets back what that retry took, one that succeeds at \
                 once gets 1. A bucket that one run uses alone protects nobody, so `-n` lifts it.",
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
                &["ended by `--timeout`", "transient", "default:timeout"],
                &["not found, or may not be run", "permanent", "default:cannot-run"],
                &["cannot be started just now", "transient", "default:not-started"],
            ]),
            Part::Text(
                "A command cannot be started just now while its file is being written, or the system has no process, \
                 memory or descriptor to spare. A transient failure is retried, a permanent one never. Throttling is a \
                 class of its own, with `--throttle-base-delay`; no default rule gives it to a command.",
            ),
        ],
    },
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
                    "A bound on everything: it ends the running attempt too. The run is over at this time plus at \
                     most `--kill-after`. A delay that would reach it is not slept.",
                ),
                ("`--timeout`", "A bound on each attempt by itself. An attempt that it ends is transient."),
            ]),
            Part::Text(
                "All clocks start when retryx starts, so the wait of `--stagger` counts. `--timeout` and \
                 `--kill-after` count time in which the machine ran. `--deadline`, `--total-timeout` and all delays \
                 count the time that a suspended machine slept, too. The wall clock never matters. Time between \
                 Ctrl-Z and `fg` counts against nothing.",
            ),
            Part::Text(
                "A limit ends all processes that descend from the command, also those that left its process group or \
                 session, and those that an earlier attempt left behind. They get the `--kill-signal` followed by \
                 CONT, and KILL if they are still there after `--kill-after`. Where no limit strikes, nobody is \
                 killed: what a command leaves running goes on running.",
            ),
            Part::Text(
                "If a process is still there after KILL, or may not be signalled, the run ends with exit status 124 and \
                 the reason `unkillable`, and the message names the process: no attempt ever starts beside a living \
                 one that a limit should have ended.",
            ),
        ],
    },
    Section {
        title: "STANDARD INPUT",
        parts: &[
            Part::Text(
                "retryx never reads standard input. `--stdin` says what attempts get, and what must be true of it for \
                 a retry:",
            ),
            Part::List(&[
                (
                    "`auto`",
                    "The standard input of retryx. A terminal and `/dev/null` are always fine. A file that is open for \
                     reading only is put back to where the attempt found it, unless somebody else moved the offset \
                     during the wait. From a pipe or FIFO nothing must have been read, by anybody, since the run \
                     began (watched by inotify); an empty pipe that nobody can write to is fine. Of a socket retryx \
                     cannot know, so it is fine only if it was at its end from the start. Else retryx stops with the \
                     status of the attempt; the reason is `stdin_consumed`.",
                ),
                ("`inherit`", "The standard input of retryx, as the attempt before left it. Nothing is checked."),
                ("`null`", "`/dev/null`."),
            ]),
            Part::Text(
                "With `-n 1` nothing is checked either. The kernel may take some milliseconds to end the watch on a pipe \
                 when retryx ends; `inherit`, `null` and `-n 1` need none. A loop such as `while read` around retryx loses no line to \
                 retryx.",
            ),
        ],
    },
    Section {
        title: "STANDARD OUTPUT",
        parts: &[
            Part::Text(
                "The command writes to the very standard output and standard error that retryx was given; nothing is \
                 copied or held back. So what a failed attempt wrote stays, and the next attempt's output follows it. \
                 Where standard output is no terminal and a failed attempt wrote to it, the message about the retry \
                 says so. Of a pipe whose reader is quick, retryx knows only that the attempt wrote something \
                 somewhere, and says that it may have been there.",
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
                    "From a key (Ctrl-C, Ctrl-\\) the command has it already. From a process it is passed on. Either \
                     way retryx waits for the command, reports what it did, and makes no further attempt.",
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
            Part::Text("`PATH` is where a command without a slash in its name is looked for."),
        ],
    },
    Section {
        title: "MESSAGES",
        parts: &[
            Part::Text(
                "By default: each failure that is retried, with its class and the delay; and why retryx gave up, with \
                 all failures where they differed. With `-v` also each outcome with the rule that classed it, the \
                 computation of each delay with its random number, a success, and a retryx that runs this one. With \
                 `-vv` also the start of each attempt and signals. With `-q` only what retryx itself could not do.",
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
                "A run that gives up for a deadline, for standard input or for a reader that is gone keeps the status of \
             its last attempt. `--exit-code-on-failure` replaces the status of a run that failed, but neither 125 nor \
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
            Part::Text("A pipeline, of which any part may fail:"),
            Part::Code("retryx --shell 'pg_dump shop | gzip > shop.sql.gz'"),
            Part::Text("A job of cron that starts within a minute at random and is over within ten:"),
            Part::Code("retryx --stagger 60 --total-timeout 10m rsync -a src/ backup:dst/"),
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
