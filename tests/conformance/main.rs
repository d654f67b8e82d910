//! The providers' own vectors, each a trial with its own name.
//!
//! `retry-vectors.json` is walked as a whole: a row is run, or [`set_aside`] says why not,
//! or the run fails. After the trials a table tells how many rows of each group passed and
//! which were set aside. What a row does with a budget in memory is done again in a file and in
//! a real Redis server, and all must agree.

mod adaptive;
mod aws_cli;
mod aws_config;
mod backoff;
mod check;
mod classification;
mod error_codes;
mod google;
mod legacy;
mod limiter;
mod observed;
mod plans;
mod quota;
mod recorded;
mod replay;
mod scripted;
#[path = "../redis/server.rs"]
#[expect(dead_code, reason = "what the tests of Redis need")]
mod server;
mod server_delay;
mod set_aside;
mod standard;
mod stores;
mod suite;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "what the end-to-end tests need")]
mod support;

use libtest_mimic::Arguments;

use suite::Suite;

fn main() {
    let arguments = Arguments::from_args();
    let mut suite = Suite::new();
    standard::add(&mut suite);
    backoff::add(&mut suite);
    server_delay::add(&mut suite);
    classification::add(&mut suite);
    quota::add(&mut suite);
    adaptive::add(&mut suite);
    limiter::add(&mut suite);
    legacy::add(&mut suite);
    google::add(&mut suite);
    aws_cli::add(&mut suite);
    observed::add(&mut suite);
    error_codes::add(&mut suite);
    aws_config::add(&mut suite);
    let (trials, summary) = suite.finish();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        print!("{summary}");
    }
    conclusion.exit();
}
