//! Starting, supervising and ending commands.
//!
//! Theory of operation. retryx has one thread. A [`Supervisor`] owns the command of the
//! current attempt and waits for three things at once, in [`crate::clock::SystemClock`]:
//! signals (SIGCHLD among them), a point of running time, and a point of boot time.
//! Whatever comes is handled before the next wait:
//!
//! 1. signals first, in the kernel's order, so that a command that ended in time is never
//!    taken for late, and a signal that reached the command too is known before its end is
//!    judged;
//! 2. then the reaping of every child that ended (orphans of the command come to retryx
//!    where it is PID 1 or a subreaper);
//! 3. then the limits.
//!
//! The command stays in the caller's process group, so the terminal and the shell reach
//! it as if retryx were not there. Its pid is signalled only while it is not reaped, so it
//! can be nobody else's by then; other descendants are signalled through handles.
//!
//! Traps that this module knows of: `kill` may fail because a process is gone (no error)
//! or may not be signalled (said, never fatal); a stopped process acts on TERM only after
//! CONT; SIGCHLD must not be ignored by whoever waits; the parent-death signal is lost by
//! set-user-id programs.

mod attempt;
pub(crate) mod between;
mod channel;
mod family;
mod inherited;
mod plan;
mod replay;
mod spawn;
mod spool;
mod stdin;
mod stdout;
mod streams;
mod supervise;
mod target;
mod terminal;
pub(crate) mod unix;
mod watch;

pub use inherited::{Inherited, inherited_descriptor};
pub use plan::{Output, SupervisionPlan};
pub(crate) use spool::{IN_MEMORY, Spool};
pub use stdin::Source;
pub use stdout::Wrote;
pub(crate) use stdout::reader_is_gone;
pub use supervise::Supervisor;
pub(crate) use target::Target;
pub use unix::{die_of, environment};
