//! One run as a state machine: verdicts in, decisions out.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::limits::Passed;
use super::{Backoff, Class, Decision, Limits, Obstacle, Outcome, Retry, RetryQuota, StopReason, TimeLimit};

/// What a session decides by; immutable for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlan {
    /// The delay rule.
    pub backoff: Backoff,
    /// The run's limits.
    pub limits: Limits,
    /// Whether the run has a retry quota of its own.
    pub quota: bool,
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
    attempts: u64,
    previous: Option<Duration>,
}

/// The seed of a run's random numbers: 256 bits, of which `--seed` gives 64.
pub type Seed = [u8; 32];

/// Retries draw from the first stream of the seed, the stagger from another, so that
/// adding `--stagger` leaves the schedule as it was.
const STAGGER_STREAM: u64 = 1;

impl<'a> Session<'a> {
    /// A run that has made no attempt yet.
    pub fn new(plan: &'a SessionPlan, seed: Seed) -> Self {
        let quota = plan.quota.then(RetryQuota::default);
        Self { plan, seed, random: None, quota, attempts: 0, previous: None }
    }

    /// The seed that `--seed N` stands for.
    pub fn seed_from(number: u64) -> Seed {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        seed
    }

    /// The wait before the first attempt, in [0, stagger).
    pub fn stagger(&self) -> Duration {
        use rand::RngExt;
        if self.plan.stagger.is_zero() {
            return Duration::ZERO;
        }
        let mut random = ChaCha8Rng::from_seed(self.seed);
        random.set_stream(STAGGER_STREAM);
        let nanos = u64::try_from(self.plan.stagger.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(random.random_range(0..nanos))
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

    /// Decides what follows an attempt that ended as `outcome` and was taken for `class`,
    /// `elapsed` after the start of the run.
    ///
    /// The order of the checks is the documented one (reference §1.3): retryable?
    /// attempts? quota? then the delay; the run's end comes before, its time limits after.
    pub fn decide(
        &mut self,
        outcome: &Outcome,
        class: Class,
        obstacle: Option<Obstacle>,
        elapsed: Duration,
    ) -> Decision {
        if class == Class::Success {
            if let Some(quota) = &mut self.quota {
                quota.refund();
            }
            return Decision::Stop(StopReason::Success);
        }
        if let Some(end @ (Obstacle::Interrupted(_) | Obstacle::Unkillable { .. })) = obstacle {
            return Decision::Stop(end.into());
        }
        if class == Class::Permanent {
            return Decision::Stop(StopReason::Permanent);
        }
        if matches!(outcome, Outcome::TimedOut(TimeLimit::Total(_))) {
            return Decision::Stop(StopReason::TotalTimeout);
        }
        if self.plan.limits.max_attempts.is_some_and(|most| self.attempts >= most.get()) {
            return Decision::Stop(StopReason::Attempts);
        }
        if let Some(obstacle) = obstacle {
            return Decision::Stop(obstacle.into());
        }
        if self.quota.as_ref().is_some_and(|quota| !quota.affords(class)) {
            return Decision::Stop(StopReason::Quota);
        }
        self.schedule(class, elapsed)
    }

    fn schedule(&mut self, class: Class, elapsed: Duration) -> Decision {
        let seed = self.seed;
        let random = self.random.get_or_insert_with(|| ChaCha8Rng::from_seed(seed));
        let i = self.attempts.saturating_sub(1);
        let delay = self.plan.backoff.delay(i, class, self.previous, random);
        let start = elapsed.saturating_add(delay.wait);
        match self.plan.limits.broken_by_start_at(start) {
            Some(Passed::Deadline) => {
                return Decision::Stop(StopReason::Deadline { delay: Some(delay.wait) });
            }
            Some(Passed::TotalTimeout) => return Decision::Stop(StopReason::TotalTimeout),
            None => {}
        }
        if let Some(quota) = &mut self.quota {
            // Afforded above; nothing ran in between.
            quota.pay(class);
        }
        self.previous = Some(delay.wait);
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
            quota: true,
            stagger: Duration::ZERO,
        }
    }

    const FAILED: Outcome = Outcome::Exited(1);

    fn fail(session: &mut Session<'_>, elapsed: Duration) -> Decision {
        session.start_attempt();
        session.decide(&FAILED, Class::Transient, None, elapsed)
    }

    fn reason(decision: Decision) -> StopReason {
        match decision {
            Decision::Stop(reason) => reason,
            Decision::Retry(retry) => panic!("retried: {retry:?}"),
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
            let got = session.decide(&FAILED, Class::Permanent, Some(obstacle), Duration::ZERO);
            assert_eq!(reason(got), expected);
        }
        let mut session = Session::new(&plan, Session::seed_from(7));
        for _ in 0..3 {
            session.start_attempt();
        }
        let last = session.decide(&FAILED, Class::Transient, Some(Obstacle::ReaderGone), Duration::ZERO);
        assert_eq!(reason(last), StopReason::Attempts);
        let ended = session.decide(&total, Class::Transient, None, Duration::ZERO);
        assert_eq!(reason(ended), StopReason::TotalTimeout);
        let done = session.decide(
            &Outcome::Exited(0),
            Class::Success,
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
                    Decision::Stop(reason) => panic!("{reason:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(&jittered, 7), draw(&jittered, 7));
        assert_eq!(draw(&jittered, 7), draw(&staggered, 7));
        assert_ne!(draw(&jittered, 7), draw(&jittered, 8));
    }
}
