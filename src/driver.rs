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
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use std::rc::Rc;

    use super::*;
    use crate::cli::{Invocation, parse};
    use crate::clock::Elapsed;
    use crate::policy::{BudgetPlan, QuotaPlan, TimeLimit};
    use crate::store::{Applied, Looked, Scope, ScopeName, ScopeState, StateStore, Unshared};

    /// Time that only attempts and waits move.
    struct FakeClock(Cell<Duration>);

    impl FakeClock {
        fn pass(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }
    }

    impl Clock for FakeClock {
        fn elapsed(&self) -> Elapsed {
            Elapsed { running: self.0.get(), boot: self.0.get() }
        }
    }

    /// Attempts that end as written, and waits that take no real time.
    struct FakeRunner<'a> {
        clock: &'a FakeClock,
        script: VecDeque<Outcome>,
        attempt_takes: Duration,
        /// Ends the n-th wait, from 1.
        interrupt: Option<(usize, Signal)>,
        /// How much longer than asked a wait takes.
        oversleep: Duration,
        /// What stands in the way after a wait.
        obstacle: Option<Obstacle>,
        conclusion: Option<Conclusion>,
        facts: Vec<Facts>,
        waits: Vec<Duration>,
    }

    impl<'a> FakeRunner<'a> {
        fn new(clock: &'a FakeClock, script: impl IntoIterator<Item = Outcome>) -> Self {
            Self {
                clock,
                script: script.into_iter().collect(),
                attempt_takes: Duration::ZERO,
                interrupt: None,
                oversleep: Duration::ZERO,
                obstacle: None,
                conclusion: None,
                facts: Vec::new(),
                waits: Vec::new(),
            }
        }
    }

    impl AttemptRunner for FakeRunner<'_> {
        fn attempt(&mut self, facts: &Facts) -> Attempted {
            self.facts.push(facts.clone());
            self.clock.pass(self.attempt_takes);
            let outcome = self.script.pop_front().unwrap_or(Outcome::Exited(1));
            Attempted::with(outcome)
        }

        fn wait(&mut self, delay: Duration) -> Wake {
            self.waits.push(delay);
            match self.interrupt {
                Some((wait, signal)) if wait == self.waits.len() => Wake::Interrupted(signal),
                _ => {
                    self.clock.pass(delay + self.oversleep);
                    Wake::Elapsed
                }
            }
        }

        fn conclude(&mut self, _: &StopReason) -> Result<(), Conclusion> {
            self.conclusion.take().map_or(Ok(()), Err)
        }

        fn prepare_retry(&mut self) -> Result<(), Obstacle> {
            self.obstacle.take().map_or(Ok(()), Err)
        }
    }

    /// Remembers the kinds of events.
    #[derive(Default)]
    struct Recorder(Vec<&'static str>);

    impl Reporter for Recorder {
        fn report(&mut self, event: &Event<'_>) {
            self.0.push(match event {
                Event::RunStarted => "run",
                Event::AttemptStarted { .. } => "start",
                Event::AttemptFinished { .. } => "finish",
                Event::RetryScheduled { .. } => "retry",
                Event::Lingering { .. } => "linger",
                Event::Noted { .. } => "note",
                Event::Paced { .. } => "pace",
                Event::Stopped { .. } => "stop",
            });
        }
    }

    fn plan(line: &str) -> Plan {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match parse(&words) {
            Ok(Invocation::Do { given, command, .. }) => Plan::resolve(&given, command, String::new()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn drive(plan: &Plan, clock: &FakeClock, runner: &mut FakeRunner<'_>) -> (Summary, Vec<&'static str>) {
        drive_with(RunBudget::private(plan.session.budget), plan, clock, runner)
    }

    fn drive_with(
        budget: RunBudget,
        plan: &Plan,
        clock: &FakeClock,
        runner: &mut FakeRunner<'_>,
    ) -> (Summary, Vec<&'static str>) {
        let mut reporter = Recorder::default();
        let session = Session::new(&plan.session, Session::seed_from(7));
        let driver = Driver { plan, session, budget, clock, runner, reporter: &mut reporter, waited: Duration::ZERO };
        (driver.run(), reporter.0)
    }

    const FAILED: Outcome = Outcome::Exited(75);

    #[test]
    fn a_success_at_once_is_one_attempt_and_no_wait() {
        let (plan, clock) = (plan("retryx true"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [Outcome::Exited(0)]);
        let (summary, events) = drive(&plan, &clock, &mut runner);
        assert_eq!(summary.reason, StopReason::Success);
        assert_eq!(summary.exit_status, ExitStatus::Code(0));
        assert_eq!(events, ["run", "start", "finish", "stop"]);
        // The stagger of zero is the only wait.
        assert_eq!(runner.waits, [Duration::ZERO]);
    }

    #[test]
    fn there_is_no_wait_after_the_last_attempt() {
        let (plan, clock) = (plan("retryx -n 3 --base-delay 1 --jitter none x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED, FAILED, FAILED]);
        let (summary, events) = drive(&plan, &clock, &mut runner);
        assert_eq!((summary.reason, summary.attempts), (StopReason::Attempts, 3));
        assert_eq!(summary.exit_status, ExitStatus::Code(75));
        let once = ["start", "finish"];
        let expected = [&["run"][..], &once, &["retry"], &once, &["retry"], &once, &["stop"]].concat();
        assert_eq!(events, expected);
        assert_eq!(clock.0.get(), Duration::from_secs(3));
    }

    #[test]
    fn success_on_the_last_attempt_is_success() {
        let (plan, clock) = (plan("retryx -n 3 x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED, Outcome::Signaled(Signal::KILL), Outcome::Exited(0)]);
        let (summary, _) = drive(&plan, &clock, &mut runner);
        assert_eq!((summary.reason, summary.exit_status), (StopReason::Success, ExitStatus::Code(0)));
        let last: Vec<_> = runner.facts.iter().map(|facts| facts.last).collect();
        let transient = Class::Transient;
        assert_eq!(last, [None, Some((75, transient)), Some((137, transient))]);
    }

    #[test]
    fn google_stops_where_the_next_delay_would_pass_the_deadline() {
        let (plan, clock) = (plan("retryx --mode google --deadline 5 --jitter none x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, []);
        let (summary, _) = drive(&plan, &clock, &mut runner);
        let delay = Some(Duration::from_secs(4));
        assert_eq!((summary.reason, summary.attempts), (StopReason::Deadline { delay }, 3));
        let left: Vec<_> = runner.facts.iter().map(|facts| facts.remaining.unwrap().as_secs()).collect();
        assert_eq!(left, [5, 4, 2]);
    }

    #[test]
    fn a_signal_during_a_wait_ends_the_run_of_that_signal() {
        let (plan, clock) = (plan("retryx -n 9 --exit-code-on-failure 7 x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED]);
        runner.interrupt = Some((2, Signal::TERM));
        let (summary, _) = drive(&plan, &clock, &mut runner);
        assert_eq!(summary.reason, StopReason::Interrupted(Signal::TERM));
        assert_eq!((summary.attempts, summary.exit_status), (1, ExitStatus::Signal(Signal::TERM)));
    }

    #[test]
    fn a_wait_that_took_past_the_deadline_starts_nothing() {
        let (plan, clock) = (plan("retryx --deadline 60 --base-delay 1 x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, []);
        runner.oversleep = Duration::from_secs(100);
        // The stagger's wait of zero oversleeps too: the first attempt is always made.
        let (summary, _) = drive(&plan, &clock, &mut runner);
        assert_eq!(summary.attempts, 1);
        assert!(matches!(summary.reason, StopReason::Deadline { .. }));
    }

    #[test]
    fn an_obstacle_after_a_wait_keeps_the_last_status() {
        let (plan, clock) = (plan("retryx x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED]);
        runner.obstacle = Some(Obstacle::StdinConsumed);
        let (summary, _) = drive(&plan, &clock, &mut runner);
        assert_eq!((summary.reason, summary.exit_status), (StopReason::StdinConsumed, ExitStatus::Code(75)));
    }

    /// A budget that was just throttled: at the floor of the rate, a token takes two seconds.
    fn throttled(plan: &Plan) -> RunBudget {
        let mut budget = RunBudget::private(plan.session.budget);
        let throttled = Operation::Book { throttled: true, entry: Entry::Nothing };
        budget.apply(&throttled, Duration::ZERO, None);
        assert_eq!(budget.apply(&Operation::Take, Duration::ZERO, None).0.wait, Duration::from_secs(2));
        budget
    }

    #[test]
    fn the_rate_limiter_paces_the_first_attempt_and_says_so_once() {
        let (plan, clock) = (plan("retryx --mode adaptive x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [Outcome::Exited(0)]);
        let budget = throttled(&plan);
        let (summary, events) = drive_with(budget, &plan, &clock, &mut runner);
        assert_eq!((summary.reason, summary.attempts), (StopReason::Success, 1));
        assert_eq!(events, ["run", "pace", "start", "finish", "stop"]);
        assert_eq!(clock.0.get(), Duration::from_secs(2));
    }

    #[test]
    fn a_first_attempt_that_would_come_too_late_is_not_made() {
        for (limit, reason) in [
            ("--deadline 1", StopReason::Deadline { delay: Some(Duration::from_secs(2)) }),
            ("--total-timeout 1", StopReason::TotalTimeout),
        ] {
            let plan = plan(&format!("retryx --mode adaptive {limit} x"));
            let clock = FakeClock(Cell::default());
            let mut runner = FakeRunner::new(&clock, []);
            let (summary, events) = drive_with(throttled(&plan), &plan, &clock, &mut runner);
            assert_eq!((summary.reason, summary.attempts), (reason, 0));
            assert_eq!(summary.exit_status, ExitStatus::Code(TIMED_OUT));
            assert_eq!(events, ["run", "stop"]);
            assert_eq!(clock.0.get(), Duration::ZERO);
        }
    }

    #[test]
    fn who_has_waited_longer_is_less_polite() {
        let ms = Duration::from_millis;
        let all = [(ms(2000), ms(0)), (ms(100), ms(1000)), (ms(100), ms(300)), (ms(50), ms(0))];
        let courtesies: Vec<_> = all.into_iter().map(|(wait, waited)| courtesy(wait, waited)).collect();
        assert!(courtesies.is_sorted() && courtesies[0] < ms(1) && courtesies[3] > ms(30), "{courtesies:?}");
        assert_eq!(courtesy(ms(1), ms(0)), ms(1));
        assert_eq!(courtesy(Duration::MAX, Duration::MAX), Duration::ZERO);
    }

    /// A store that takes its time, of which the clock knows, and then says nothing.
    struct Slow(Rc<FakeClock>, Duration);

    impl StateStore for Slow {
        fn apply(
            &mut self,
            _: &Scope,
            _: &BudgetPlan,
            _: &Operation,
            left: Option<Duration>,
        ) -> Result<Applied, Unshared> {
            self.0.pass(left.map_or(self.1, |left| left.min(self.1)));
            Err(Unshared("it says nothing".into()))
        }
        fn list(&mut self) -> Result<Vec<Looked>, Unshared> {
            Ok(Vec::new())
        }
        fn show(&mut self, _: &ScopeName) -> Result<Option<Looked>, Unshared> {
            Ok(None)
        }
        fn reset(&mut self, _: &ScopeName) -> Result<(bool, Option<String>), Unshared> {
            Ok((false, None))
        }
        fn set(&mut self, _: &Scope, _: u32, _: QuotaPlan) -> Result<(ScopeState, Option<String>), Unshared> {
            Err(Unshared("it says nothing".into()))
        }
        fn place(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn a_slow_store_leaves_the_job_most_of_what_the_limits_leave() {
        for (limit, passed) in [
            ("--deadline 1", 200_000),
            ("--deadline 0.4", 100_000),
            // The moment by which an attempt may come late is the least that it gets.
            ("--deadline 0.01", 10_000),
            ("--total-timeout 1", 200_000),
            ("--total-timeout 0.05", 12_499),
        ] {
            let plan = plan(&format!("retryx --mode adaptive {limit} x"));
            let clock = Rc::new(FakeClock(Cell::default()));
            let mut runner = FakeRunner::new(&clock, [Outcome::Exited(0)]);
            let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
            let store = Slow(Rc::clone(&clock), Duration::from_millis(200));
            let budget = RunBudget::shared(plan.session.budget, Box::new(store), scope);
            let (summary, _) = drive_with(budget, &plan, &clock, &mut runner);
            assert_eq!((summary.attempts, clock.0.get().as_micros()), (1, passed), "{limit}: {:?}", summary.reason);
        }
    }

    #[test]
    fn a_delay_counts_from_the_end_of_the_attempt_however_slow_the_store_is() {
        for (store, end) in [(200, 1000), (3000, 3000)] {
            let plan = plan("retryx --mode fixed --base-delay 1 --quota-capacity 99 x");
            let clock = Rc::new(FakeClock(Cell::default()));
            let mut runner = FakeRunner::new(&clock, [FAILED, Outcome::Exited(0)]);
            let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
            let store = Slow(Rc::clone(&clock), Duration::from_millis(store));
            let budget = RunBudget::shared(plan.session.budget, Box::new(store), scope);
            let (summary, _) = drive_with(budget, &plan, &clock, &mut runner);
            assert_eq!((summary.attempts, clock.0.get()), (2, Duration::from_millis(end)));
        }
    }

    #[test]
    fn a_retry_that_a_slow_store_put_past_the_deadline_is_not_announced() {
        let plan = plan("retryx --mode fixed --base-delay 0 --deadline 0.005 --quota-capacity 99 x");
        let clock = Rc::new(FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED]);
        let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        let store = Slow(Rc::clone(&clock), Duration::from_secs(9));
        let budget = RunBudget::shared(plan.session.budget, Box::new(store), scope);
        let (summary, told) = drive_with(budget, &plan, &clock, &mut runner);
        assert_eq!(summary.reason, StopReason::Deadline { delay: Some(Duration::from_millis(10)) });
        assert_eq!(told, ["run", "start", "finish", "note", "stop"]);
    }

    #[test]
    fn a_retry_is_not_announced_to_who_interrupted_while_the_store_was_asked() {
        let plan = plan("retryx --quota-capacity 99 x");
        let clock = Rc::new(FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, [FAILED]);
        // The first wait is the stagger, of no time.
        runner.interrupt = Some((2, Signal::TERM));
        let scope = Scope { name: ScopeName::new("x").unwrap(), ttl: Duration::from_secs(60) };
        let store = Slow(Rc::clone(&clock), Duration::ZERO);
        let budget = RunBudget::shared(plan.session.budget, Box::new(store), scope);
        let (summary, told) = drive_with(budget, &plan, &clock, &mut runner);
        assert_eq!(summary.exit_status, ExitStatus::Signal(Signal::TERM));
        assert_eq!(told, ["run", "start", "finish", "note", "stop"]);
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_token() {
        let (plan, clock) = (plan("retryx --mode adaptive x"), FakeClock(Cell::default()));
        let mut runner = FakeRunner::new(&clock, []);
        runner.interrupt = Some((2, Signal::TERM));
        let (summary, _) = drive_with(throttled(&plan), &plan, &clock, &mut runner);
        assert_eq!((summary.attempts, summary.exit_status), (0, ExitStatus::Signal(Signal::TERM)));
    }

    #[test]
    fn a_failure_can_have_one_number_for_all() {
        for outcome in [FAILED, Outcome::TimedOut(TimeLimit::Attempt(Duration::ZERO)), Outcome::Signaled(Signal(11))] {
            let (plan, clock) = (plan("retryx -n 1 --exit-code-on-failure 7 x"), FakeClock(Cell::default()));
            let (summary, _) = drive(&plan, &clock, &mut FakeRunner::new(&clock, [outcome]));
            assert_eq!(summary.exit_status, ExitStatus::Code(7));
        }
    }
}
