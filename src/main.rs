//! The binary. It enters at C's `main`, because Rust's own start-up code opens closed
//! standard descriptors and ignores SIGPIPE, and a command must find both as retryx did.

#![no_main]

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

use retryx::exit::{ExitStatus, OWN_FAILURE};

#[expect(unsafe_code, reason = "the symbol that C's start-up code calls")]
#[unsafe(no_mangle)]
extern "C" fn main(_argc: c_int, _argv: *const *const c_char) -> c_int {
    let words: Vec<_> = std::env::args_os().collect();
    let status = catch_unwind(|| retryx::app::run(&words)).unwrap_or(ExitStatus::Code(OWN_FAILURE));
    if let ExitStatus::Signal(signal) = status {
        retryx::process::die_of(signal);
    }
    c_int::from(status.shell_code())
}
