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
    fn apply(&mut self, _: &Scope, _: &BudgetPlan, _: &Operation, left: Option<Duration>) -> Result<Applied, Unshared> {
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
