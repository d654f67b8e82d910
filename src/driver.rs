//! The loop: the only place where attempts and waits meet.

use std::time::Duration;

use crate::clock::{Clock, wall};
use crate::config::Plan;
use crate::exit::{ExitStatus, OWN_FAILURE, PARTIAL, TIMED_OUT};
use crate::policy::response::Response;
use crate::policy::{
    Class, Decision, DelaySource, Entry, Evidence, Judged, Limits, Obstacle, Operation, Outcome, ServerDelay, Session,
    Sightings, Signal, StopReason,
};
use crate::process::Wrote;
use crate::report::{Event, Reporter, Summary};
use crate::store::RunBudget;

/// What a shell shows for a death by PIPE.
const BROKEN_PIPE: u8 = 141;

/// What a store takes is told as part of a delay from here on.
const NOTICED: Duration = Duration::from_millis(5);

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
#[derive(Debug, Clone, PartialEq)]
pub struct Attempted {
    /// How it ended.
    pub outcome: Outcome,
    /// What stands in the way of another, if anything.
    pub obstacle: Option<Obstacle>,
    /// Whether it wrote to a standard output that is no terminal.
    pub wrote: Wrote,
    /// What was found in what it wrote, or in the body of the answer.
    pub sightings: Sightings,
    /// The answer of a server, or of a proxy that refused the way to it.
    pub response: Option<Response>,
}

impl Attempted {
    /// An attempt of which nothing else is to be told.
    pub fn with(outcome: Outcome) -> Self {
        Self { outcome, obstacle: None, wrote: Wrote::No, sightings: Sightings::default(), response: None }
    }
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
    /// The exit status of an attempt that a time limit ended.
    const TIMED_OUT: u8 = TIMED_OUT;
    /// The exit status of a success whose output is lost.
    const LOST: u8 = OWN_FAILURE;

    /// Makes one attempt and waits for its end.
    fn attempt(&mut self, facts: &Facts) -> Attempted;

    /// Waits between attempts, on the clock that includes suspension.
    fn wait(&mut self, delay: Duration) -> Wake;

    /// Does what is left to do when no further attempt follows: output that was held back
    /// is written.
    fn conclude(&mut self, reason: &StopReason) -> Result<(), Conclusion>;

    /// Makes ready for another attempt after a wait, or says what stands in the way.
    fn prepare_retry(&mut self) -> Result<(), Obstacle>;
}

/// What can go wrong at the end of a run, which the last attempt's result does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// Nobody reads standard output any more.
    ReaderGone,
    /// A signal that ends runs arrived.
    Interrupted(Signal),
    /// The limit on everything passed while output was written: what is lost by it.
    TooLate(String),
    /// Output is lost: why.
    Lost(String),
}

/// A run in progress: the plan's state machine and the doors it acts through.
pub struct Driver<'a, C, R, P> {
    /// What was resolved.
    pub plan: &'a Plan,
    /// What is decided.
    pub session: Session<'a>,
    /// What retries are paid from and attempts are paced by.
    pub budget: RunBudget,
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
        // Where the first attempt would come too late, a limit is what ended the run.
        if let Err(reason) = self.pace() {
            return self.stop_waiting(reason, ExitStatus::Code(R::TIMED_OUT));
        }
        loop {
            let (class, done, elapsed) = self.attempt(last);
            let status = ExitStatus::of(&done.outcome, class, R::TIMED_OUT);
            last = Some((status.shell_code(), class));
            let server = self.asked_delay(&done);
            let judged = Judged { outcome: &done.outcome, class, server };
            let (budget, limits, mut notice) = (&mut self.budget, &self.plan.session.limits, None);
            let decision = self.session.decide(judged, done.obstacle, elapsed, |operation| {
                let (answer, said) = budget.apply(operation, elapsed, time_for(operation, limits, elapsed));
                notice = said;
                answer
            });
            self.note(notice.as_deref());
            // Who interrupts while the store is asked need not hear of a retry that never comes.
            if self.budget.has_scope()
                && matches!(decision, Decision::Retry(_) | Decision::StopAfter(..))
                && let Wake::Interrupted(signal) = self.wait(Duration::ZERO)
            {
                return self.stop_waiting(StopReason::Interrupted(signal), status);
            }
            match decision {
                Decision::Stop(StopReason::PassedOn) => {
                    return self.stop(StopReason::PassedOn, ExitStatus::Code(PARTIAL));
                }
                Decision::Stop(reason) => return self.stop(reason, status),
                Decision::StopAfter(delay, reason) => {
                    let is_shared = self.budget.is_shared();
                    self.reporter.report(&Event::Lingering { delay: delay.wait, is_shared });
                    return match self.wait(delay.wait) {
                        Wake::Elapsed => self.stop(reason, status),
                        Wake::Interrupted(signal) => self.stop_waiting(StopReason::Interrupted(signal), status),
                    };
                }
                Decision::Retry(mut retry) => {
                    // The store took its time, where there is one.
                    let asked = self.budget.has_scope().then(|| self.clock.elapsed().boot);
                    let since = asked.map(|now| now.saturating_sub(elapsed)).unwrap_or_default();
                    // A delay counts from the attempt's end, that of the limiter from its answer.
                    let due = match retry.delay.source {
                        DelaySource::Limiter => retry.delay.wait.saturating_add(since),
                        _ => retry.delay.wait.max(since),
                    };
                    if let Some(reason) = self.session.too_late(due, elapsed) {
                        return self.stop(reason, status);
                    }
                    if since >= NOTICED {
                        retry.delay.wait = due;
                    }
                    let (wrote, is_shared) = (done.wrote, self.budget.is_shared());
                    self.reporter.report(&Event::RetryScheduled { retry: &retry, wrote, is_shared });
                    if let Wake::Interrupted(signal) = self.wait(due.saturating_sub(since)) {
                        return self.stop_waiting(StopReason::Interrupted(signal), status);
                    }
                }
            }
            if let Some(reason) = self.session.missed(self.clock.elapsed().boot) {
                return self.stop(reason, status);
            }
            if let Err(reason) = self.pace() {
                return self.stop_waiting(reason, status);
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
        let failed = done.response.as_ref().filter(|response| !(200..400).contains(&response.status));
        let code = failed.and_then(Response::error_code);
        let evidence = Evidence {
            sightings: &done.sightings,
            error_code: code.as_deref(),
            allowance_used_up: done.response.as_ref().is_some_and(Response::allowance_is_used_up),
            ..Evidence::of(&done.outcome)
        };
        let verdict = self.plan.classifier.classify(&evidence);
        let no_delay = match failed {
            Some(response) => response.junk_delay(self.plan.mode, wall()),
            None => self
                .plan
                .asked_delay(&done.sightings)
                .and_then(Result::err)
                .map(|text| format!("--retry-after-match: '{text}' is no duration; it is ignored")),
        };
        self.reporter.report(&Event::AttemptFinished {
            attempt,
            outcome: &done.outcome,
            obstacle: done.obstacle.as_ref(),
            verdict: &verdict,
            duration: elapsed.saturating_sub(started),
            no_delay: no_delay.as_deref(),
        });
        (verdict.class, done, elapsed)
    }

    /// How long the attempt's output or answer asks to be left alone.
    fn asked_delay(&self, done: &Attempted) -> Option<ServerDelay> {
        if let Some(response) = &done.response {
            return response.server_delay(self.plan.mode, wall()).0;
        }
        self.plan.asked_delay(&done.sightings).and_then(Result::ok).map(ServerDelay::Output)
    }

    /// Waits for the rate limiter's token, where there is a limiter; says why no attempt may
    /// follow where a signal or a limit comes first.
    fn pace(&mut self) -> Result<(), StopReason> {
        let started = self.clock.elapsed().boot;
        let mut is_said = false;
        while self.budget.paces() {
            let elapsed = self.clock.elapsed().boot;
            let left = time_for(&Operation::Take, &self.plan.session.limits, elapsed);
            let (answer, notice) = self.budget.apply(&Operation::Take, elapsed, left);
            self.note(notice.as_deref());
            self.session.told_of_quota(answer.tokens);
            if answer.wait.is_zero() {
                // Both may have come while the store was asked.
                if let Wake::Interrupted(signal) = self.wait(Duration::ZERO) {
                    return Err(StopReason::Interrupted(signal));
                }
                return self.session.missed(self.clock.elapsed().boot).map_or(Ok(()), Err);
            }
            // The wait counts from the answer, for which the store took its time.
            let elapsed = self.clock.elapsed().boot;
            if let Some(reason) = self.session.too_late(answer.wait, elapsed) {
                return Err(reason);
            }
            let is_shared = self.budget.is_shared();
            if !std::mem::replace(&mut is_said, true) {
                let attempt = self.session.attempts() + 1;
                self.reporter.report(&Event::Paced { attempt, delay: answer.wait, is_shared });
            }
            let waited = elapsed.saturating_sub(started);
            let courtesy = if is_shared { courtesy(answer.wait, waited) } else { Duration::ZERO };
            // There is none where a limit would come first.
            let longest = self.plan.session.limits.longest_wait(elapsed);
            let polite =
                Some(answer.wait.saturating_add(courtesy)).filter(|wait| longest.is_none_or(|most| *wait < most));
            if let Wake::Interrupted(signal) = self.wait(polite.unwrap_or(answer.wait)) {
                return Err(StopReason::Interrupted(signal));
            }
        }
        Ok(())
    }

    fn note(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.reporter.report(&Event::Noted { text });
        }
    }

    fn wait(&mut self, delay: Duration) -> Wake {
        let before = self.clock.elapsed().boot;
        let wake = self.runner.wait(delay);
        self.waited += self.clock.elapsed().boot.saturating_sub(before);
        wake
    }

    /// Ends a run whose next attempt was waited for.
    fn stop_waiting(self, reason: StopReason, status: ExitStatus) -> Summary {
        let status = if let StopReason::Interrupted(signal) = reason { ExitStatus::Signal(signal) } else { status };
        self.stop(reason, status)
    }

    fn stop(self, mut reason: StopReason, mut status: ExitStatus) -> Summary {
        let mut lost = None;
        match self.runner.conclude(&reason) {
            Ok(()) => {}
            Err(Conclusion::ReaderGone) => status = ExitStatus::Signal(Signal::PIPE),
            Err(Conclusion::Interrupted(signal)) => {
                (reason, status) = (StopReason::Interrupted(signal), ExitStatus::Signal(signal));
            }
            Err(Conclusion::TooLate(error)) => {
                (reason, status) = (StopReason::TotalTimeout, ExitStatus::Code(R::TIMED_OUT));
                lost = Some(error);
            }
            Err(Conclusion::Lost(error)) => {
                // Without its output a success is none, and what died of that was not the
                // reader's to end.
                if reason == StopReason::Success || status.shell_code() == BROKEN_PIPE {
                    status = ExitStatus::Code(R::LOST);
                }
                lost = Some(error);
            }
        }
        let exit_status = match (&reason, self.plan.exit_code_on_failure) {
            (StopReason::Success | StopReason::Interrupted(_), _) | (_, None) => status,
            (_, Some(code)) => ExitStatus::Code(code),
        };
        let summary = Summary { reason, attempts: self.session.attempts(), exit_status, lost };
        self.reporter.report(&Event::Stopped {
            summary: &summary,
            elapsed: self.clock.elapsed().boot,
            waited: self.waited,
            quota_left: self.session.quota_left(),
            is_shared: self.budget.is_shared(),
        });
        summary
    }
}

/// How much longer than for the token itself an attempt of a scope waits: the less, the longer
/// it will have waited by then. So who came first goes first, as nobody keeps a list of who
/// waits; without it the last of forty may wait four times as long.
fn courtesy(wait: Duration, waited: Duration) -> Duration {
    const MOST: Duration = Duration::from_millis(50);
    let shares = (1.0 + 4.0 * waited.saturating_add(wait).as_secs_f64()).powi(2);
    MOST.div_f64(shares).min(wait)
}

/// How long the store may take for an operation, where that is up to the run's limits: a
/// quarter of what they leave, as the rest is for the job.
fn time_for(operation: &Operation, limits: &Limits, elapsed: Duration) -> Option<Duration> {
    /// The least, whatever is left.
    const MOMENT: Duration = Duration::from_millis(10);
    /// The most at the end of a run that gets nothing from it.
    const SIDE: Duration = Duration::from_secs(1);
    let share = |left: Duration| left / 4;
    let room = match operation {
        Operation::Take => limits.longest_wait(elapsed).map(|room| share(room).max(MOMENT)),
        Operation::Book { entry: Entry::Retry { start: Some(start), .. }, .. } => {
            start.longest.map(|longest| share(longest.saturating_sub(start.delay)).max(MOMENT))
        }
        Operation::Book { entry: Entry::Success { .. }, .. } => None,
        // Nothing of the run depends on it.
        Operation::Book { entry: Entry::Nothing | Entry::Retry { start: None, .. }, .. } => Some(SIDE),
    };
    let total = limits.total_timeout.map(|total| share(total.saturating_sub(elapsed)));
    [room, total].into_iter().flatten().min()
}

#[cfg(test)]
mod tests;
