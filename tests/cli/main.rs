//! The end-to-end tests: the real binary, real processes, signals and terminals. A module
//! per theme; `B…` in a comment is the case of that number in `cases.md`.

#[path = "../support/mod.rs"]
mod support;

mod classes;
mod events;
mod facts;
mod family;
mod forecast;
mod held;
mod inherited;
mod job_control;
mod limits;
mod load;
mod messages;
mod outage;
mod own_group;
mod packaging;
mod parsing;
mod pid1;
mod quotas;
mod replay;
mod scopes;
mod scopes_file;
mod settings;
mod signals;
mod start;
mod stdin;
mod stdout;
mod terminal;
mod timing;
mod values;
mod watch;
