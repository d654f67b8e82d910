//! One run as a state machine: verdicts in, decisions out.

use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::limits::Passed;
use super::{
    Backoff, Class, Decision, Delay, DelaySource, Jitter, Limits, Obstacle, Outcome, QuotaPlan, RateLimiter, Retry,
    RetryQuota, ServerDelay, StopReason, TimeLimit,
};

/// What a session decides by; immutable for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// The delay rule.
    pub backoff: Backoff,
    /// The run's limits.
    pub limits: Limits,
    /// The run's own retry quota, if it has one.
    pub quota: Option<QuotaPlan>,
    /// Whether a rate limiter paces attempts.
    pub limiter: bool,
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
    quota: Option<RetryQuota>,
    limiter: Option<RateLimiter>,
    attempts: u64,
    previous: Option<Duration>,
    /// What the last retry of this run cost.
    last_cost: Option<u32>,
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
        let quota = plan.quota.map(RetryQuota::full);
        let limiter = plan.limiter.then(RateLimiter::new);
        Self { plan, seed, random: None, quota, limiter, attempts: 0, previous: None, last_cost: None }
    }

    /// The same with a quota that was used before.
    #[must_use]
    pub fn with_quota(mut self, quota: RetryQuota) -> Self {
        self.quota = Some(quota);
        self
    }

    /// Gives the quota on to a next run, which starts with it at time zero.
    pub fn into_quota(self) -> Option<RetryQuota> {
        self.quota
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

    /// Takes the rate limiter's token for an attempt at `now`, or says how long to wait
    /// for it.
    pub fn pace(&mut self, now: Duration) -> Result<(), Duration> {
        self.limiter.as_mut().map_or(Ok(()), |limiter| limiter.take(now))
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

    /// Tokens left in the quota; `None` without one.
    pub fn quota_left(&self) -> Option<u32> {
        self.quota.as_ref().map(RetryQuota::tokens)
    }

    /// Decides what follows an attempt that ended `elapsed` after the start of the run.
    ///
    /// The order of the checks is the documented one (reference §1.3): retryable?
    /// attempts? quota? then the delay; the run's end comes before, its time limits after.
    pub fn decide(&mut self, attempt: Judged<'_>, obstacle: Option<Obstacle>, elapsed: Duration) -> Decision {
        let class = attempt.class;
        if let Some(limiter) = &mut self.limiter {
            limiter.update(elapsed, class == Class::Throttling);
        }
        if let Some(quota) = &mut self.quota {
            quota.refill(elapsed);
        }
        if class == Class::Success {
            if let Some(quota) = &mut self.quota {
                quota.refund(self.last_cost);
            }
            return Decision::Stop(StopReason::Success);
        }
        if let Some(end @ (Obstacle::Interrupted(_) | Obstacle::Unkillable { .. })) = obstacle {
            return Decision::Stop(end.into());
        }
        if class == Class::Permanent {
            return Decision::Stop(StopReason::Permanent);
        }
        if matches!(attempt.outcome, Outcome::TimedOut(TimeLimit::Total(_))) {
            return Decision::Stop(StopReason::TotalTimeout);
        }
        if self.plan.limits.max_attempts.is_some_and(|most| self.attempts >= most.get()) {
            return Decision::Stop(StopReason::Attempts);
        }
        if let Some(obstacle) = obstacle {
            return Decision::Stop(obstacle.into());
        }
        let refused = self.quota.as_ref().is_some_and(|quota| !quota.affords(class));
        if refused && !self.plan.long_poll {
            return Decision::Stop(StopReason::Quota);
        }
        match self.schedule(class, attempt.server, elapsed) {
            Ok(delay) if refused => Decision::StopAfter(delay, StopReason::Quota),
            Ok(delay) => self.retry(class, delay),
            Err(_) if refused => Decision::Stop(StopReason::Quota),
            Err(reason) => Decision::Stop(reason),
        }
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
        if let Some(limiter) = &self.limiter {
            // Tokens come in during the delay; what is missing then is waited for too.
            if let Err(more) = limiter.clone().take(elapsed.saturating_add(delay.wait)) {
                delay.wait = delay.wait.saturating_add(whole_micros_up(more));
                delay.source = DelaySource::Limiter;
            }
        }
        match self.plan.limits.broken_by_start_at(elapsed.saturating_add(delay.wait)) {
            Some(Passed::Deadline) => Err(StopReason::Deadline { delay: Some(delay.wait) }),
            Some(Passed::TotalTimeout) => Err(StopReason::TotalTimeout),
            None => {
                self.previous = Some(computed);
                Ok(delay)
            }
        }
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
            let u = (self.plan.backoff.jitter != Jitter::None).then(|| self.spread());
            let spread = server.join(computed, u);
            // The random part gives way first.
            let most = self.plan.max_retry_after.max(computed);
            delay.wait = if spread <= most && in_time(spread) { spread } else { server.join(computed, None) };
        } else {
            delay.wait = server.join(computed, None);
        }
        if delay.wait > computed {
            let by_output = matches!(server, ServerDelay::Output(_));
            delay.source = if by_output { DelaySource::Output } else { DelaySource::Server };
        }
        Ok(())
    }

    /// A random number for the spread of a server delay, fresh for each attempt.
    fn spread(&self) -> f64 {
        let mut random = self.stream(SPREAD_STREAM);
        random.set_word_pos(u128::from(self.attempts) * 16);
        random.random()
    }

    fn retry(&mut self, class: Class, delay: Delay) -> Decision {
        if let Some(quota) = &mut self.quota {
            // Afforded when it was asked; nothing ran in between.
            self.last_cost = quota.pay(class);
        }
        let attempt = self.attempts.saturating_add(1);
        Decision::Retry(Retry { attempt, delay, quota_left: self.quota_left() })
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

/// Rounded up, so that the token is there when the wait is over.
fn whole_micros_up(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::policy::{Formula, Jitter, Signal};

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
            quota: Some(QuotaPlan::default()),
            limiter: false,
            long_poll: false,
            max_retry_after: Duration::from_secs(60),
            stagger: Duration::ZERO,
        }
    }

    const FAILED: Outcome = Outcome::Exited(1);

    fn judged(outcome: &Outcome, class: Class) -> Judged<'_> {
        Judged { outcome, class, server: None }
    }

    fn fail(session: &mut Session<'_>, elapsed: Duration) -> Decision {
        session.start_attempt();
        session.decide(judged(&FAILED, Class::Transient), None, elapsed)
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
        let mut session = Session::new(&plan, Session::seed_from(7));
        for (attempt, wait, quota) in [(2, 50, 486), (3, 100, 472)] {
            let Decision::Retry(retry) = fail(&mut session, Duration::ZERO) else {
                panic!("attempt {attempt} was refused")
            };
            assert_eq!(retry.attempt, attempt);
            assert_eq!(retry.delay.wait, Duration::from_millis(wait));
            assert_eq!(retry.quota_left, Some(quota));
        }
        assert_eq!(reason(fail(&mut session, Duration::ZERO)), StopReason::Attempts);
        assert_eq!(session.quota_left(), Some(472));
    }

    #[test]
    fn the_quota_runs_out_after_35_retries() {
        let mut plan = plan();
        plan.limits.max_attempts = None;
        let mut session = Session::new(&plan, Session::seed_from(7));
        for _ in 0..35 {
            assert!(matches!(fail(&mut session, Duration::ZERO), Decision::Retry(_)));
        }
        assert_eq!(reason(fail(&mut session, Duration::ZERO)), StopReason::Quota);
    }

    #[test]
    fn a_delay_that_ends_past_the_deadline_is_not_slept() {
        let mut plan = plan();
        plan.limits.deadline = Some(Duration::from_secs(1));
        let mut session = Session::new(&plan, Session::seed_from(7));
        let exactly = Duration::from_millis(950);
        assert!(matches!(fail(&mut session, exactly), Decision::Retry(_)));
        let delay = Some(Duration::from_millis(100));
        let late = fail(&mut session, exactly);
        assert_eq!(reason(late), StopReason::Deadline { delay });
        // What was refused was not paid for.
        assert_eq!(session.quota_left(), Some(486));
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
            let mut session = Session::new(&plan, Session::seed_from(7));
            session.start_attempt();
            let got = session.decide(judged(&FAILED, Class::Permanent), Some(obstacle), Duration::ZERO);
            assert_eq!(reason(got), expected);
        }
        let mut session = Session::new(&plan, Session::seed_from(7));
        for _ in 0..3 {
            session.start_attempt();
        }
        let last = session.decide(judged(&FAILED, Class::Transient), Some(Obstacle::ReaderGone), Duration::ZERO);
        assert_eq!(reason(last), StopReason::Attempts);
        let ended = session.decide(judged(&total, Class::Transient), None, Duration::ZERO);
        assert_eq!(reason(ended), StopReason::TotalTimeout);
        let done = session.decide(
            judged(&Outcome::Exited(0), Class::Success),
            Some(Obstacle::Interrupted(Signal::TERM)),
            Duration::ZERO,
        );
        assert_eq!(reason(done), StopReason::Success);
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule_and_a_stagger_does_not_change_it() {
        let mut jittered = plan();
        jittered.backoff.jitter = Jitter::Full;
        jittered.limits.max_attempts = None;
        let staggered = SessionPlan { stagger: Duration::from_secs(9), ..jittered.clone() };
        let draw = |plan: &SessionPlan, seed| {
            let mut session = Session::new(plan, Session::seed_from(seed));
            let stagger = session.stagger();
            assert!(stagger <= plan.stagger);
            (0..20)
                .map(|_| match fail(&mut session, Duration::ZERO) {
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
