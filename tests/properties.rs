//! Properties that hold for any numbers and any words.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use retryx::cli::{Invocation, parse};
use retryx::config::Plan;
use retryx::policy::{
    Backoff, Budget, BudgetPlan, Class, Decision, Formula, Jitter, Judged, Limits, Outcome, QuotaPlan, RateLimiter,
    RetryQuota, ServerDelay, Session, SessionPlan, Signal, StopReason, matcher, response, server_delay,
};
use retryx::units::{human, parse_duration};

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0u64..10_000_000_000).prop_map(Duration::from_nanos),
        (any::<u64>(), 0u32..1_000_000_000).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
    ]
}

fn formulas() -> impl Strategy<Value = Formula> {
    prop_oneof![
        Just(Formula::Fixed),
        Just(Formula::Linear),
        Just(Formula::Decorrelated),
        (1.0..1e6f64).prop_map(|factor| Formula::Exponential { factor }),
    ]
}

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![Just(Jitter::Full), Just(Jitter::Equal), Just(Jitter::Fraction), Just(Jitter::None)]
}

prop_compose! {
    fn backoffs()(
        formula in formulas(), jitter in jitters(), base in durations(), throttling_base in durations(),
        cap in durations(), floor in durations(),
    ) -> Backoff {
        Backoff { formula, jitter, base, throttling_base, cap, floor: floor.min(cap) }
    }
}

fn session_plan(backoff: Backoff, limits: Limits) -> SessionPlan {
    SessionPlan {
        backoff,
        limits,
        budget: BudgetPlan::default(),
        long_poll: false,
        max_retry_after: Duration::from_secs(60),
        stagger: Duration::ZERO,
    }
}

fn judged(class: Class) -> Judged<'static> {
    Judged { outcome: &Outcome::Exited(1), class, server: None }
}

/// What can happen to a quota.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Pay(bool),
    Refund,
    Pass(Duration),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let one = prop_oneof![
        any::<bool>().prop_map(Operation::Pay),
        Just(Operation::Refund),
        durations().prop_map(Operation::Pass),
    ];
    proptest::collection::vec(one, 0..100)
}

proptest! {
    // What fails is written below as an example, not into a file beside.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_delay_lies_between_floor_and_cap_at_any_retry(
        rule in backoffs(), i in any::<u64>(), seed in any::<u64>(), previous in proptest::option::of(durations()),
        throttled in any::<bool>(),
    ) {
        let class = if throttled { Class::Throttling } else { Class::Transient };
        let wait = rule.delay(i, class, previous, &mut ChaCha8Rng::seed_from_u64(seed)).wait;
        prop_assert!(wait >= rule.floor && wait <= rule.cap, "{wait:?}");
    }

    #[test]
    fn without_jitter_delays_never_shrink(mut rule in backoffs(), from in 0u64..2000) {
        if rule.formula == Formula::Decorrelated {
            rule.formula = Formula::Linear;
        }
        rule.jitter = Jitter::None;
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut wait = |i| rule.delay(i, Class::Transient, None, &mut random).wait;
        prop_assert!(wait(from) <= wait(from + 1));
    }

    #[test]
    fn a_session_keeps_its_limits_and_its_tokens(
        rule in backoffs(), most in 1u64..60, deadline in durations(), quota in any::<bool>(), seed in any::<u64>(),
        throttled in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let limits = Limits { max_attempts: NonZeroU64::new(most), deadline: Some(deadline), total_timeout: None };
        let plan = SessionPlan {
            budget: BudgetPlan { quota: quota.then(QuotaPlan::default), limiter: false },
            ..session_plan(rule, limits)
        };
        let mut budget = Budget::default();
        let mut session = Session::new(&plan, Session::seed_from(seed));
        let (mut elapsed, mut paid) = (Duration::ZERO, 0);
        for throttled in throttled {
            session.start_attempt();
            let class = if throttled { Class::Throttling } else { Class::Transient };
            match session.decide(judged(class), None, elapsed, |operation| budget.apply(&plan.budget, operation, elapsed)) {
                Decision::Stop(reason) => {
                    let attempts_are_used_up = session.attempts() == most;
                    prop_assert_eq!(reason == StopReason::Attempts, attempts_are_used_up);
                    break;
                }
                Decision::StopAfter(..) => prop_assert!(false, "no long polling was asked for"),
                Decision::Retry(retry) => {
                    prop_assert!(session.attempts() < most);
                    elapsed = elapsed.saturating_add(retry.delay.wait);
                    prop_assert!(elapsed <= deadline);
                    paid += if throttled { 5 } else { 14 };
                    prop_assert_eq!(retry.quota_left, quota.then(|| 500 - paid));
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_duration_or_refused(text in ".{0,40}") {
        if let Some(duration) = parse_duration(&text) {
            prop_assert!(text.contains(|c: char| c.is_ascii_digit()));
            let _ = human(duration);
        }
    }

    #[test]
    fn what_looks_like_a_duration_reads_back(seconds in any::<u32>(), nanos in 0u32..1_000_000_000) {
        let duration = Duration::new(seconds.into(), nanos);
        let plain = format!("{seconds}.{nanos:09}");
        prop_assert_eq!(parse_duration(&plain), Some(duration));
        prop_assert_eq!(parse_duration(&format!("{plain}s")), Some(duration));
        prop_assert_eq!(parse_duration(&format!("{seconds}s {nanos}ns")), Some(duration));
    }

    #[test]
    fn any_text_is_a_signal_or_refused(text in ".{0,12}") {
        if let Some(signal) = Signal::parse(&text) {
            prop_assert!((1..=Signal::MAX).contains(&signal.0));
            prop_assert_eq!(Signal::parse(&signal.to_string()), Some(signal));
        }
    }

    #[test]
    fn any_words_are_a_plan_or_one_line_of_error(
        words in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(1u8.., 0..8),
                "--(timeout|deadline|mode|events|seed|jitter|stdin|factor|max-attempts|base-delay)(=.{0,4})?"
                    .prop_map(String::into_bytes),
                "-[nqvkhV]{1,3}[0-9]{0,2}".prop_map(String::into_bytes),
                "[0-9.]{0,6}(ms|s|m|h)?".prop_map(String::into_bytes),
                Just(b"--".to_vec()),
                Just(b"true".to_vec()),
            ],
            0..8,
        )
    ) {
        let words: Vec<OsString> =
            std::iter::once(b"retryx".to_vec()).chain(words).map(OsString::from_vec).collect();
        let error = match parse(&words) {
            Ok(Invocation::Print(_)) => return Ok(()),
            Ok(Invocation::Do { given, command, .. }) => {
                prop_assert!(!command.is_empty());
                prop_assert!(words.ends_with(&command));
                match Plan::resolve(&given, command, String::new()) {
                    Ok(_) => return Ok(()),
                    Err(error) => error.0,
                }
            }
            Err(error) => error.0,
        };
        prop_assert!(!error.is_empty());
    }

    #[test]
    fn a_quota_is_never_above_its_capacity_and_never_gives_what_was_not_there(
        capacity in any::<u32>(), transient_cost in any::<u32>(), throttling_cost in 0u32..100, refill in 0u64..1_000_000_000_000,
        operations in operations(),
    ) {
        let plan = QuotaPlan { capacity, transient_cost, throttling_cost, refill };
        let mut quota = RetryQuota::full(plan);
        for operation in operations {
            let before = quota.tokens();
            match operation {
                Operation::Pay(throttled) => {
                    let class = if throttled { Class::Throttling } else { Class::Transient };
                    let paid = quota.pay(plan.cost(class));
                    prop_assert_eq!(paid, before >= plan.cost(class));
                    prop_assert_eq!(quota.tokens(), if paid { before - plan.cost(class) } else { before });
                }
                Operation::Refund => {
                    quota.refund(None);
                    prop_assert!(quota.tokens() >= before);
                }
                Operation::Pass(now) => {
                    quota.refill(now);
                    prop_assert!(quota.tokens() >= before);
                }
            }
            prop_assert!(quota.tokens() <= capacity);
        }
    }

    #[test]
    fn a_limiter_never_passes_its_rate_and_survives_any_clock(
        steps in proptest::collection::vec((durations(), any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut limiter = RateLimiter::new();
        for (now, throttled, responds) in steps {
            if responds {
                limiter.update(now, throttled);
                prop_assert!(limiter.fill_rate() >= 0.5 && limiter.fill_rate().is_finite());
                prop_assert!(limiter.measured_rate().is_finite());
            } else if let Err(wait) = limiter.take(now) {
                // At the floor of half an attempt a second a token takes two seconds.
                prop_assert!(!wait.is_zero() && wait <= Duration::from_secs(2), "{:?}", wait);
                let then = now.saturating_add(wait).saturating_add(Duration::from_micros(1));
                if then < Duration::from_secs(1 << 20) {
                    prop_assert_eq!(limiter.clone().take(then), Ok(()));
                }
            }
        }
    }

    #[test]
    fn a_server_delay_only_lengthens_and_keeps_its_bounds(wanted in durations(), computed in durations(), u in 0.0..1.0f64) {
        let aws = ServerDelay::Aws(wanted).join(computed, Some(u));
        prop_assert!(aws >= computed && aws <= computed.saturating_add(Duration::from_secs(5)));
        let after = ServerDelay::RetryAfter(wanted).join(computed, Some(u));
        prop_assert!(after >= computed && after >= wanted);
        prop_assert!(after <= wanted.max(computed).saturating_add(wanted / 10));
    }

    #[test]
    fn any_header_is_a_delay_or_junk(value in "[ -~]{0,40}", now in 0u64..10_000_000_000) {
        let now = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(now);
        let _ = server_delay::parse_retry_after(&value, None, now);
        let _ = server_delay::parse_aws(&value);
    }

    #[test]
    fn any_body_has_a_code_or_none(body in proptest::collection::vec(any::<u8>(), 0..200), json in "[\\[{}\\]\":,a-z_0-9]{0,60}") {
        for body in [body, json.into_bytes()] {
            let answer = response::Response { status: 500, headers: Vec::new(), body };
            prop_assert_ne!(answer.error_code(), Some(String::new()));
        }
    }

    #[test]
    fn any_conditions_are_read_or_refused_and_print_back(
        list in "((-?[0-9]{1,3}(-[0-9]{1,3})?|signal:(KILL|9|X)|timeout|http:[0-9]{3}|http:[0-9]xx|error:[A-Za-z.]{1,5}|(stdout|stderr|output|body):/[a-z,/ \\\\]{0,5}/i?|any|default| and |,)){0,5}",
    ) {
        if let Ok(terms) = matcher::parse(&list) {
            for term in terms {
                prop_assert_eq!(matcher::parse(&term.to_string()), Ok(vec![term]));
            }
        }
    }

    #[test]
    fn any_text_is_an_aws_config_file_or_an_error(text in "[\\[\\]a-z =#;\n\t\r]{0,80}") {
        if let Err(error) = retryx::config::aws::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.split('\n').count());
        }
    }
}
