//! One run as a state machine: verdicts in, decisions out.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::limits::Passed;
use super::{
    Answer, Backoff, BudgetPlan, Class, Decision, Delay, DelaySource, Entry, Formula, Grant, Jitter, Limits, Obstacle,
    Operation, Outcome, Retry, ServerDelay, Start, StopReason, TimeLimit,
};

/// What a session decides by; immutable for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// The delay rule.
    pub backoff: Backoff,
    /// The run's limits.
    pub limits: Limits,
    /// What of a budget the run uses: a retry quota, a rate limiter.
    pub budget: BudgetPlan,
    /// Whether the delay is waited also where the quota refuses the retry.
    pub long_poll: bool,
    /// The longest `Retry-After` that is waited for.
    pub max_retry_after: Duration,
    /// The longest random wait before the first attempt; zero is none.
    pub stagger: Duration,
}

/// The state of one run. Randomness comes from the seed alone, so that the same seed and
/// outcomes give the same decisions.
#[derive(Debug)]
pub struct Session<'a> {
    plan: &'a SessionPlan,
    seed: Seed,
    random: Option<ChaCha8Rng>,
    attempts: u64,
    previous: Option<Duration>,
    /// What the last retry of this run cost.
    last_cost: Option<u32>,
    /// What the budget said of its tokens last.
    quota_left: Option<u32>,
}

/// The seed of a run's random numbers: 256 bits, of which `--seed` gives 64.
pub type Seed = [u8; 32];

/// Retries draw from the first stream of the seed, the stagger and the spread of server
/// delays from others, so that neither changes the schedule.
const STAGGER_STREAM: u64 = 1;
const SPREAD_STREAM: u64 = 2;

/// One attempt's end, as a session judges it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// How it ended.
    pub outcome: &'a Outcome,
    /// What that was taken for.
    pub class: Class,
    /// What the server asked for, in the latest answer.
    pub server: Option<ServerDelay>,
}

impl<'a> Session<'a> {
    /// A run that has made no attempt yet.
    pub fn new(plan: &'a SessionPlan, seed: Seed) -> Self {
        Self { plan, seed, random: None, attempts: 0, previous: None, last_cost: None, quota_left: None }
    }

    /// The seed that `--seed N` stands for.
    pub fn seed_from(number: u64) -> Seed {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        seed
    }

    /// The wait before the first attempt, in [0, stagger).
    pub fn stagger(&self) -> Duration {
        if self.plan.stagger.is_zero() {
            return Duration::ZERO;
        }
        let nanos = u64::try_from(self.plan.stagger.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.stream(STAGGER_STREAM).random_range(0..nanos))
    }

    fn stream(&self, number: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::from_seed(self.seed);
        random.set_stream(number);
        random
    }

    /// Books the start of an attempt and returns its number, from 1.
    pub fn start_attempt(&mut self) -> u64 {
        self.attempts = self.attempts.saturating_add(1);
        self.attempts
    }

    /// Attempts started so far.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Tokens left in the quota, as far as the run was told; `None` without one.
    pub fn quota_left(&self) -> Option<u32> {
        self.quota_left
    }

    /// Takes note of what the budget said of the tokens.
    pub fn told_of_quota(&mut self, tokens: Option<u32>) {
        self.quota_left = tokens;
    }

    /// Decides what follows an attempt that ended `elapsed` after the start of the run. What
    /// that means for the budget is one operation, for which it asks at most once.
    ///
    /// The order of the checks is the documented one (reference §1.3): retryable?
    /// attempts? quota? then the delay; the run's end comes before, its time limits after.
    pub fn decide(
        &mut self,
        attempt: Judged<'_>,
        obstacle: Option<Obstacle>,
        elapsed: Duration,
        budget: impl FnOnce(&Operation) -> Answer,
    ) -> Decision {
        let class = attempt.class;
        let end = self.end(attempt, obstacle);
        if let Some(reason @ (StopReason::Interrupted(_) | StopReason::Unkillable { .. })) = end {
            // Of the service it tells nothing.
            return Decision::Stop(reason);
        }
        let delay = match &end {
            Some(_) => None,
            None => Some(self.schedule(class, attempt.server, elapsed)),
        };
        let cost = self.plan.budget.quota.map(|quota| quota.cost(class));
        let entry = match &delay {
            None if end == Some(StopReason::Success) => Entry::Success { last_cost: self.last_cost },
            None => Entry::Nothing,
            Some(delay) => {
                let longest = self.plan.limits.longest_wait(elapsed);
                let start = delay.as_ref().ok().map(|delay| Start { delay: delay.wait, longest });
                Entry::Retry { cost: cost.unwrap_or_default(), start }
            }
        };
        let answer = budget(&Operation::Book { throttled: class == Class::Throttling, entry });
        self.quota_left = answer.tokens;
        match (end, delay, answer.grant) {
            (Some(reason), _, _) | (_, Some(Err(reason)), Grant::Granted | Grant::TooLate) => Decision::Stop(reason),
            (None, Some(Ok(delay)), grant) => self.granted(put_off(delay, answer.wait), grant, cost, elapsed),
            (None, _, _) => Decision::Stop(StopReason::Quota),
        }
    }

    /// Why no further attempt follows, whatever the budget says.
    fn end(&self, attempt: Judged<'_>, obstacle: Option<Obstacle>) -> Option<StopReason> {
        if attempt.class == Class::Success {
            return Some(StopReason::Success);
        }
        if let Some(end @ (Obstacle::Interrupted(_) | Obstacle::Unkillable { .. })) = obstacle {
            return Some(end.into());
        }
        if attempt.class == Class::Permanent {
            return Some(StopReason::Permanent);
        }
        if matches!(attempt.outcome, Outcome::TimedOut(TimeLimit::Total(_))) {
            return Some(StopReason::TotalTimeout);
        }
        if self.plan.limits.max_attempts.is_some_and(|most| self.attempts >= most.get()) {
            return Some(StopReason::Attempts);
        }
        obstacle.map(Into::into)
    }

    /// What follows where a retry could start after that delay.
    fn granted(&mut self, delay: Delay, grant: Grant, cost: Option<u32>, elapsed: Duration) -> Decision {
        match (self.too_late(delay.wait, elapsed), grant) {
            (None, Grant::Granted) => {
                self.last_cost = cost;
                let attempt = self.attempts.saturating_add(1);
                Decision::Retry(Retry { attempt, delay, quota_left: self.quota_left })
            }
            (None, Grant::Refused) if self.plan.long_poll => Decision::StopAfter(delay, StopReason::Quota),
            (_, Grant::Refused) => Decision::Stop(StopReason::Quota),
            (Some(reason), _) => Decision::Stop(reason),
            // Stores count in microseconds: by less than one it was not in time.
            (None, Grant::TooLate) => Decision::Stop(StopReason::Deadline { delay: Some(delay.wait) }),
        }
    }

    /// The limit that a start after this delay would break.
    pub fn too_late(&self, delay: Duration, elapsed: Duration) -> Option<StopReason> {
        Some(match self.plan.limits.broken_by_start_at(elapsed.saturating_add(delay))? {
            Passed::Deadline => StopReason::Deadline { delay: Some(delay) },
            Passed::TotalTimeout => StopReason::TotalTimeout,
        })
    }

    /// The delay before the next attempt, or the limit that it would break.
    fn schedule(&mut self, class: Class, server: Option<ServerDelay>, elapsed: Duration) -> Result<Delay, StopReason> {
        let seed = self.seed;
        let random = self.random.get_or_insert_with(|| ChaCha8Rng::from_seed(seed));
        let i = self.attempts.saturating_sub(1);
        let mut delay = self.plan.backoff.delay(i, class, self.previous, random);
        let computed = delay.wait;
        if let Some(server) = server {
            self.join_server_delay(&mut delay, server, elapsed)?;
        }
        if let Some(reason) = self.too_late(delay.wait, elapsed) {
            return Err(reason);
        }
        self.previous = Some(computed);
        Ok(delay)
    }

    fn join_server_delay(&self, delay: &mut Delay, server: ServerDelay, elapsed: Duration) -> Result<(), StopReason> {
        let computed = delay.wait;
        delay.server = Some(server.wanted());
        if let ServerDelay::RetryAfter(wanted) | ServerDelay::Output(wanted) = server {
            let start = |wait| elapsed.saturating_add(wait);
            let in_time = |wait| self.plan.limits.broken_by_start_at(start(wait)).is_none();
            if wanted > self.plan.max_retry_after || (wanted > computed && !in_time(wanted)) {
                return Err(StopReason::ServerDelay { wanted });
            }
            let is_random = self.plan.backoff.formula == Formula::Decorrelated;
            let u = (is_random || self.plan.backoff.jitter != Jitter::None).then(|| self.spread());
            let spread = server.join(computed, u);
            // The random part gives way first.
            let most = self.plan.max_retry_after.max(computed);
            delay.wait = if spread <= most && in_time(spread) { spread } else { server.join(computed, None) };
        } else {
            delay.wait = server.join(computed, None);
        }
        // Where the formula gives more by itself, only the spread is the server's.
        delay.source = match server {
            ServerDelay::Output(wanted) if wanted > computed => DelaySource::Output,
            ServerDelay::RetryAfter(wanted) if wanted > computed => DelaySource::Server,
            ServerDelay::Aws(_) if delay.wait > computed => DelaySource::Server,
            _ => delay.source,
        };
        Ok(())
    }

    /// A random number for the spread of a server delay, fresh for each attempt.
    fn spread(&self) -> f64 {
        let mut random = self.stream(SPREAD_STREAM);
        random.set_word_pos(u128::from(self.attempts) * 16);
        random.random()
    }

    /// Asked when a wait is over: why the planned attempt may not start after all, where
    /// the wait took much longer than planned (the machine or retryx was stopped).
    pub fn missed(&self, elapsed: Duration) -> Option<StopReason> {
        Some(match self.plan.limits.broken_on_waking_at(elapsed)? {
            Passed::Deadline => StopReason::Deadline { delay: None },
            Passed::TotalTimeout => StopReason::TotalTimeout,
        })
    }
}

/// The delay, put off until the rate limiter has a token.
fn put_off(mut delay: Delay, wait: Duration) -> Delay {
    if !wait.is_zero() {
        delay.wait = delay.wait.saturating_add(wait);
        delay.source = DelaySource::Limiter;
    }
    delay
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::policy::{Budget, Jitter, QuotaPlan, Signal};

    fn plan() -> SessionPlan {
        SessionPlan {
            backoff: Backoff {
                formula: Formula::Exponential { factor: 2.0 },
                jitter: Jitter::None,
                base: Duration::from_millis(50),
                throttling_base: Duration::from_secs(1),
                cap: Duration::from_secs(20),
                floor: Duration::ZERO,
            },
            limits: Limits { max_attempts: NonZeroU64::new(3), deadline: None, total_timeout: None },
            budget: BudgetPlan { quota: Some(QuotaPlan::default()), limiter: false },
            long_poll: false,
            max_retry_after: Duration::from_secs(60),
            stagger: Duration::ZERO,
        }
    }

    const FAILED: Outcome = Outcome::Exited(1);

    fn judged(outcome: &Outcome, class: Class) -> Judged<'_> {
        Judged { outcome, class, server: None }
    }

    /// A run alone.
    struct Run<'a> {
        session: Session<'a>,
        budget: Budget,
    }

    impl<'a> Run<'a> {
        fn new(plan: &'a SessionPlan, seed: u64) -> Self {
            Self { session: Session::new(plan, Session::seed_from(seed)), budget: Budget::default() }
        }

        fn decide(&mut self, attempt: Judged<'_>, obstacle: Option<Obstacle>, elapsed: Duration) -> Decision {
            let (plan, budget) = (self.session.plan.budget, &mut self.budget);
            self.session.decide(attempt, obstacle, elapsed, |operation| budget.apply(&plan, operation, elapsed))
        }

        fn fail(&mut self, elapsed: Duration) -> Decision {
            self.session.start_attempt();
            self.decide(judged(&FAILED, Class::Transient), None, elapsed)
        }
    }

    fn reason(decision: Decision) -> StopReason {
        match decision {
            Decision::Stop(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn attempts_are_runs_and_the_quota_pays_each_retry() {
        let plan = plan();
        let mut run = Run::new(&plan, 7);
        for (attempt, wait, quota) in [(2, 50, 486), (3, 100, 472)] {
            let Decision::Retry(retry) = run.fail(Duration::ZERO) else { panic!("attempt {attempt} was refused") };
            assert_eq!(retry.attempt, attempt);
            assert_eq!(retry.delay.wait, Duration::from_millis(wait));
            assert_eq!(retry.quota_left, Some(quota));
        }
        assert_eq!(reason(run.fail(Duration::ZERO)), StopReason::Attempts);
        assert_eq!(run.session.quota_left(), Some(472));
    }

    #[test]
    fn the_quota_runs_out_after_35_retries() {
        let mut plan = plan();
        plan.limits.max_attempts = None;
        let mut run = Run::new(&plan, 7);
        for _ in 0..35 {
            assert!(matches!(run.fail(Duration::ZERO), Decision::Retry(_)));
        }
        assert_eq!(reason(run.fail(Duration::ZERO)), StopReason::Quota);
    }

    #[test]
    fn a_delay_that_ends_past_the_deadline_is_not_slept() {
        let mut plan = plan();
        plan.limits.deadline = Some(Duration::from_secs(1));
        let mut run = Run::new(&plan, 7);
        let exactly = Duration::from_millis(950);
        assert!(matches!(run.fail(exactly), Decision::Retry(_)));
        let delay = Some(Duration::from_millis(100));
        let late = run.fail(exactly);
        assert_eq!(reason(late), StopReason::Deadline { delay });
        // What was refused was not paid for.
        assert_eq!(run.session.quota_left(), Some(486));
    }

    #[test]
    fn reasons_come_in_their_order() {
        let plan = plan();
        let total = Outcome::TimedOut(TimeLimit::Total(Duration::from_secs(1)));
        let obstacles = [
            (Obstacle::Interrupted(Signal::INT), StopReason::Interrupted(Signal::INT)),
            (Obstacle::StdinConsumed, StopReason::Permanent),
        ];
        for (obstacle, expected) in obstacles {
            let mut run = Run::new(&plan, 7);
            run.session.start_attempt();
            let got = run.decide(judged(&FAILED, Class::Permanent), Some(obstacle), Duration::ZERO);
            assert_eq!(reason(got), expected);
        }
        let mut run = Run::new(&plan, 7);
        for _ in 0..3 {
            run.session.start_attempt();
        }
        let last = run.decide(judged(&FAILED, Class::Transient), Some(Obstacle::ReaderGone), Duration::ZERO);
        assert_eq!(reason(last), StopReason::Attempts);
        let ended = run.decide(judged(&total, Class::Transient), None, Duration::ZERO);
        assert_eq!(reason(ended), StopReason::TotalTimeout);
        let done = run.decide(
            judged(&Outcome::Exited(0), Class::Success),
            Some(Obstacle::Interrupted(Signal::TERM)),
            Duration::ZERO,
        );
        assert_eq!(reason(done), StopReason::Success);
    }

    #[test]
    fn only_who_asked_for_more_than_the_formula_is_the_source() {
        let mut plan = plan();
        plan.backoff = Backoff { base: Duration::from_secs(2), jitter: Jitter::Equal, ..plan.backoff };
        for (seconds, source) in [(0, DelaySource::Backoff), (1, DelaySource::Backoff), (3, DelaySource::Server)] {
            let mut run = Run::new(&plan, 7);
            run.session.start_attempt();
            let server = Some(ServerDelay::RetryAfter(Duration::from_secs(seconds)));
            let attempt = Judged { outcome: &FAILED, class: Class::Transient, server };
            let Decision::Retry(retry) = run.decide(attempt, None, Duration::ZERO) else { panic!("no retry") };
            assert_eq!(retry.delay.source, source, "{seconds}");
        }
    }

    #[test]
    fn what_a_server_asks_for_is_spread_where_the_mode_is_random() {
        let asked = Duration::from_secs(30);
        for (formula, jitter, spreads) in [
            (Formula::Decorrelated, Jitter::None, true),
            (Formula::Fixed, Jitter::Full, true),
            (Formula::Fixed, Jitter::None, false),
        ] {
            let mut plan = plan();
            plan.backoff = Backoff { formula, jitter, ..plan.backoff };
            let mut run = Run::new(&plan, 7);
            run.session.start_attempt();
            let server = Some(ServerDelay::RetryAfter(asked));
            let attempt = Judged { outcome: &FAILED, class: Class::Transient, server };
            let Decision::Retry(retry) = run.decide(attempt, None, Duration::ZERO) else { panic!("no retry") };
            assert!(retry.delay.wait >= asked && (retry.delay.wait > asked) == spreads, "{:?}", retry.delay);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_and_a_stagger_does_not_change_it() {
        let mut jittered = plan();
        jittered.backoff.jitter = Jitter::Full;
        jittered.limits.max_attempts = None;
        let staggered = SessionPlan { stagger: Duration::from_secs(9), ..jittered.clone() };
        let draw = |plan: &SessionPlan, seed| {
            let mut run = Run::new(plan, seed);
            let stagger = run.session.stagger();
            assert!(stagger <= plan.stagger);
            (0..20)
                .map(|_| match run.fail(Duration::ZERO) {
                    Decision::Retry(retry) => retry.delay.wait,
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(&jittered, 7), draw(&jittered, 7));
        assert_eq!(draw(&jittered, 7), draw(&staggered, 7));
        assert_ne!(draw(&jittered, 7), draw(&jittered, 8));
    }
}
