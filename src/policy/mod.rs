//! The retry policies, pure: no I/O, no clock, no global random source.
//!
//! Time, randomness and outcomes are passed in; decisions come out as enums that
//! carry their reason. Nothing here imports anything of the crate but this module.

mod backoff;
mod classify;
mod decision;
mod limits;
mod outcome;
mod quota;
mod session;
mod signal;

pub use backoff::{Backoff, Delay, Formula, Jitter, Mode};
pub use classify::{Class, Verdict, classify};
pub use decision::{Decision, Obstacle, Retry, StopReason};
pub use limits::Limits;
pub use outcome::{Outcome, StartFailure, TimeLimit};
pub use quota::RetryQuota;
pub use session::{Session, SessionPlan};
pub use signal::Signal;
