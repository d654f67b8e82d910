//! `retryx http` against a server that speaks bytes: what is asked for, what is made of the
//! answers, and what is left behind.

mod connections;
mod delays;
mod downloads;
mod files;
mod fleet;
mod hostile;
mod limits;
mod progress;
mod redirects;
mod safety;
mod server;
mod signals;
mod statuses;
#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what the other end-to-end tests need")]
mod support;
mod uploads;

use server::Server;
use support::{Finished, Lab, Run};

/// `retryx OPTIONS http WORDS URL`, with no delays but those that are asked for.
fn http<'a>(lab: &'a Lab, words: &str, url: &str) -> Run<'a> {
    lab.run("--base-delay 0 --throttle-base-delay 0 --jitter none http").words(words).arg(url)
}

/// The same to its end, at a server's root.
#[track_caller]
fn ask(lab: &Lab, words: &str, server: &Server) -> Finished {
    http(lab, words, &server.url("/")).finish()
}

/// Bytes that tell where they are.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from(at.wrapping_mul(31).wrapping_add(at >> 8) % 251);
    (0..length).map(|at| byte(at).unwrap_or_default()).collect()
}
