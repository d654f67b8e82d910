//! The loop: the only place where attempts and waits meet.

use std::time::Duration;

use crate::clock::Clock;
use crate::config::Plan;
use crate::exit::ExitStatus;
use crate::policy::{Class, Decision, Obstacle, Outcome, Session, Signal, StopReason, classify};
use crate::report::{Event, Reporter};

/// What a command is told about its run, in `RETRYX_RUN_*` variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The number of this attempt, from 1.
    pub attempt: u64,
    /// The exit status that the attempt before gave, and its class.
    pub last: Option<(u8, Class)>,
    /// What is left until no further attempt may start or run.
    pub remaining: Option<Duration>,
}

/// One attempt, done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// How it ended.
    pub outcome: Outcome,
    /// What stands in the way of another, if anything.
    pub obstacle: Option<Obstacle>,
    /// Whether it is known to have written to a standard output that is no terminal.
    pub wrote_stdout: bool,
}

/// What ended a wait between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Its time.
    Elapsed,
    /// A signal that ends the run.
    Interrupted(Signal),
}

/// Makes attempts: the door to whatever is retried.
pub trait AttemptRunner {
    /// Makes one attempt and waits for its end.
    fn attempt(&mut self, facts: &Facts) -> Attempted;

    /// Waits between attempts, on the clock that includes suspension.
    fn wait(&mut self, delay: Duration) -> Wake;

    /// Makes ready for another attempt after a wait, or says what stands in the way.
    fn prepare_retry(&mut self) -> Result<(), Obstacle>;
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Why it ended.
    pub reason: StopReason,
    /// Attempts made.
    pub attempts: u64,
    /// How retryx is to end.
    pub exit_status: ExitStatus,
}

/// A run in progress: the plan's state machine and the doors it acts through.
pub struct Driver<'a, C, R, P> {
    /// What was resolved.
    pub plan: &'a Plan,
    /// What is decided.
    pub session: Session<'a>,
    /// The door to time.
    pub clock: &'a C,
    /// The door to what is retried.
    pub runner: &'a mut R,
    /// Who is told.
    pub reporter: &'a mut P,
    /// Time spent waiting so far.
    pub waited: Duration,
}

impl<C: Clock, R: AttemptRunner, P: Reporter> Driver<'_, C, R, P> {
    /// Makes attempts until the session says stop, telling the reporter of each step.
    pub fn run(mut self) -> Summary {
        self.reporter.report(&Event::RunStarted);
        if let Wake::Interrupted(signal) = self.wait(self.session.stagger()) {
            return self.stop(StopReason::Interrupted(signal), ExitStatus::Signal(signal));
        }
        let mut last = None;
        loop {
            let (class, done, elapsed) = self.attempt(last);
            let status = ExitStatus::of(&done.outcome);
            last = Some((status.shell_code(), class));
            match self.session.decide(&done.outcome, class, done.obstacle, elapsed) {
                Decision::Stop(reason) => return self.stop(reason, status),
                Decision::Retry(retry) => {
                    let wrote_stdout = done.wrote_stdout;
                    self.reporter.report(&Event::RetryScheduled { retry: &retry, wrote_stdout });
                    if let Wake::Interrupted(signal) = self.wait(retry.delay.wait) {
                        let reason = StopReason::Interrupted(signal);
                        return self.stop(reason, ExitStatus::Signal(signal));
                    }
                }
            }
            if let Some(reason) = self.session.missed(self.clock.elapsed().boot) {
                return self.stop(reason, status);
            }
            if let Err(obstacle) = self.runner.prepare_retry() {
                return self.stop(obstacle.into(), status);
            }
        }
    }

    fn attempt(&mut self, last: Option<(u8, Class)>) -> (Class, Attempted, Duration) {
        let started = self.clock.elapsed().boot;
        let attempt = self.session.start_attempt();
        self.reporter.report(&Event::AttemptStarted { attempt });
        let remaining = self.plan.session.limits.remaining(started);
        let done = self.runner.attempt(&Facts { attempt, last, remaining });
        let elapsed = self.clock.elapsed().boot;
        let verdict = classify(&done.outcome);
        self.reporter.report(&Event::AttemptFinished {
            attempt,
            outcome: &done.outcome,
            obstacle: done.obstacle.as_ref(),
            verdict: &verdict,
            duration: elapsed.saturating_sub(started),
        });
        (verdict.class, done, elapsed)
    }

    fn wait(&mut self, delay: Duration) -> Wake {
        let before = self.clock.elapsed().boot;
        let wake = self.runner.wait(delay);
        self.waited += self.clock.elapsed().boot.saturating_sub(before);
        wake
    }

    fn stop(self, reason: StopReason, status: ExitStatus) -> Summary {
        let exit_status = match (&reason, self.plan.exit_code_on_failure) {
            (StopReason::Success | StopReason::Interrupted(_), _) | (_, None) => status,
            (_, Some(code)) => ExitStatus::Code(code),
        };
        let summary = Summary { reason, attempts: self.session.attempts(), exit_status };
        self.reporter.report(&Event::Stopped {
            summary: &summary,
            elapsed: self.clock.elapsed().boot,
            waited: self.waited,
            quota_left: self.session.quota_left(),
        });
        summary
    }
}
