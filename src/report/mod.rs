//! What a run tells: one model of events that every reporter reads. Reporters decide
//! nothing, and a reporter that fails says so once and never touches the run.

pub mod json;
pub mod text;

use std::time::Duration;

use crate::driver::Summary;
use crate::policy::{Obstacle, Outcome, Retry, Verdict};
use crate::process::Wrote;

/// A step of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Nothing was done yet.
    RunStarted,
    /// An attempt is about to be made.
    AttemptStarted {
        /// Its number, from 1.
        attempt: u64,
    },
    /// An attempt ended.
    AttemptFinished {
        /// Its number, from 1.
        attempt: u64,
        /// How.
        outcome: &'a Outcome,
        /// What stands in the way of another.
        obstacle: Option<&'a Obstacle>,
        /// What it was taken for.
        verdict: &'a Verdict,
        /// How long it took.
        duration: Duration,
    },
    /// A wait begins, and another attempt after it.
    RetryScheduled {
        /// The wait and what it was computed from.
        retry: &'a Retry,
        /// Whether the failed attempt wrote to a standard output that is no terminal.
        wrote: Wrote,
    },
    /// The run is over.
    Stopped {
        /// Why, and how retryx will end.
        summary: &'a Summary,
        /// Time since the start.
        elapsed: Duration,
        /// Time spent waiting.
        waited: Duration,
        /// Tokens left in the quota; `None` without one.
        quota_left: Option<u32>,
    },
}

/// Reads the events of a run, in order.
pub trait Reporter {
    /// Takes one event.
    fn report(&mut self, event: &Event<'_>);
}

/// Two reporters that hear the same.
impl<A: Reporter, B: Reporter> Reporter for (A, Option<B>) {
    fn report(&mut self, event: &Event<'_>) {
        self.0.report(event);
        if let Some(second) = &mut self.1 {
            second.report(event);
        }
    }
}
