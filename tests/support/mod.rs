//! What the end-to-end tests stand on: a scratch place for each test ([`Lab`]), runs of
//! the real binary ([`Run`]), its events, its terminal ([`Terminal`]), and waits for
//! conditions.

mod doors;
mod events;
mod lab;
mod leash;
pub mod proc;
mod pty;
mod run;
mod unix;

pub use doors::{LIMIT, Timer, command, pause, skipped, variable, wait_until};
pub use events::{Events, number, numbers, texts};
pub use lab::Lab;
pub use leash::Leash;
pub use pty::{PROMPT, Terminal};
pub use run::{Finished, Run, Running, await_end, bytes};
pub use unix::socket_pair;

/// Leaves the test, loudly, where this machine lacks what it needs; on CI that is a
/// failure.
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::support::skipped(&format!($($reason)*));
        return;
    }};
}
pub(crate) use skip;

/// Whether this is the superuser, as containers and CI have it.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether all of these programs can be found.
pub fn has_programs(names: &[&str]) -> bool {
    let found = |name: &&str| {
        ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
            .iter()
            .any(|dir| std::path::Path::new(dir).join(name).exists())
    };
    names.iter().all(found)
}
