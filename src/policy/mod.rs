//! The retry policies, pure: no I/O, no clock, no global random source.
//!
//! Time, randomness and outcomes are passed in; decisions come out as enums that
//! carry their reason. Nothing here imports anything of the crate but this module.

mod backoff;
mod budget;
mod classify;
mod decision;
mod limits;
pub mod matcher;
mod outcome;
mod preset;
mod quota;
mod rate_limiter;
pub mod response;
pub mod server_delay;
mod session;
mod signal;
pub mod text;
mod watch;

pub use backoff::{Backoff, Delay, DelaySource, Formula, Jitter, Mode};
pub use budget::{Answer, Budget, BudgetPlan, Entry, Grant, Operation, Start};
pub use classify::{Class, Classifier, Evidence, Verdict};
pub use decision::{Decision, Obstacle, Retry, StopReason};
pub use limits::{Limits, Passed};
pub use outcome::{Outcome, Prospect, StartFailure, TimeLimit};
pub use preset::{Preset, Row};
pub use quota::{FIRST_SUCCESS_REFUND, MOST_REFILL, NANO, QuotaPlan, RetryQuota};
pub use rate_limiter::RateLimiter;
pub use server_delay::ServerDelay;
pub use session::{Judged, Session, SessionPlan};
pub use signal::Signal;
pub use watch::{Lookout, Scanner, Sightings};
