//! retryx: run a command and repeat it under the retry policies that AWS and Google
//! Cloud document.
//!
//! One line runs through the crate, and each stop is a module:
//!
//! ```text
//! argv → cli → config → Plan → driver [ process: Attempt → policy: Verdict, Decision → clock: wait ]*
//!      → report: Summary → exit
//! ```
//!
//! | module | holds | outside effects |
//! |---|---|---|
//! | [`cli`] | what the user typed, and the one table of options | none |
//! | [`config`] | what it means: every value with its source, and the [`config::Plan`] | none |
//! | [`policy`] | classes, delays, limits, quota, the session's state machine | none: pure |
//! | [`driver`] | the loop in which attempts and waits meet | through the doors only |
//! | [`clock`] | the only door to time: now and interruptible waits | time |
//! | [`process`] | starting, supervising and ending commands; standard streams | processes, signals |
//! | [`programs`] | presets: what is known of the programs people run, as data | none |
//! | [`net`] | connections: names, sockets, TLS, and the one place where they are awaited | the network |
//! | [`http`] | one request: bodies in and out, redirects, retries that are safe | the network, files |
//! | [`store`] | the budgets of scopes, shared by processes and machines | files, the network |
//! | [`report`] | events, messages, JSON Lines | standard error, the events file |
//! | [`scopes`] | `quota`: what a store's scopes are, and what is to become of them | through the store only |
//! | [`forecast`] | `plan` and `explain`: what would be done | none: text in, text out |
//! | [`exit`] | the exit statuses | none |
//! | [`app`] | wires all that together | through the doors only |
//!
//! `policy` imports nothing of the crate but itself, `report` never decides, and nothing
//! but `exit` and `main.rs` ends the process.

pub mod app;
pub mod cause;
pub mod cli;
pub mod clock;
pub mod config;
pub mod driver;
pub mod exit;
pub mod forecast;
pub mod http;
pub mod net;
pub mod policy;
pub mod process;
pub mod programs;
pub mod report;
pub mod scopes;
pub mod signal;
pub mod store;
pub mod units;
