//! Many runs of one scope against a service that allows only so much.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::server::{Answer, Server};
use crate::support::Lab;

/// When each answer was given, and whether it throttled.
type Answers = Arc<Mutex<Vec<(Duration, bool)>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A service that throttles what is above its rate, and the list of its answers.
struct Service {
    server: Server,
    answers: Answers,
}

impl Service {
    /// A service that allows so many requests a second, and at once after a pause.
    fn new(allowed: f64) -> Self {
        let answers = Answers::default();
        let log = Arc::clone(&answers);
        let level = Mutex::new((allowed, Duration::ZERO));
        let server = Server::by(move |_, request| {
            let throttles = {
                let mut level = locked(&level);
                let gained = request.at.saturating_sub(level.1).as_secs_f64() * allowed;
                *level = ((level.0 + gained).min(allowed), level.1.max(request.at));
                let throttles = level.0 < 1.0;
                level.0 -= if throttles { 0.0 } else { 1.0 };
                throttles
            };
            locked(&log).push((request.at, throttles));
            if throttles { Answer::new(429, &[], "slow down") } else { Answer::new(200, &[], "good") }
        });
        Self { server, answers }
    }

    /// Of the answers from then on: how many, and the share that throttled.
    fn answers_from(&self, start: Duration) -> (f64, f64) {
        let answers = locked(&self.answers);
        let later: Vec<_> = answers.iter().filter(|(at, _)| *at >= start).collect();
        let count = f64::from(u32::try_from(later.len()).expect("few"));
        let throttled = later.iter().filter(|(_, throttled)| *throttled).count();
        (count, f64::from(u32::try_from(throttled).expect("few")) / count)
    }

    /// The time of the last answer.
    fn last(&self) -> Duration {
        locked(&self.answers).last().map(|(at, _)| *at).unwrap_or_default()
    }
}

/// Twenty processes, each of which asks again and again until the service has been asked for so long.
fn fleet(service: &Service, options: &str, time: Duration) {
    let lab = Lab::new();
    std::thread::scope(|threads| {
        for _ in 0..20 {
            threads.spawn(|| {
                while service.last() < time {
                    lab.bare(options).arg("http").arg(service.server.url("/")).finish();
                }
            });
        }
    });
}

#[test]
fn twenty_adaptive_processes_of_one_scope_converge_to_what_is_allowed() {
    let service = Service::new(10.0);
    let (settled, end) = (Duration::from_secs(5), Duration::from_secs(15));
    fleet(&service, "-q --mode adaptive --scope fleet --scope-ttl 60", end);
    let (count, throttled) = service.answers_from(settled);
    let rate = count / service.last().saturating_sub(settled).as_secs_f64();
    assert!(throttled < 0.15, "{throttled} of {count} answers throttle");
    assert!((5.0..12.0).contains(&rate), "{rate} requests a second");
}

#[test]
fn without_a_shared_limiter_they_do_not() {
    for options in ["-q --mode standard", "-q --mode adaptive"] {
        // A busy machine may ask for little more than ten a second.
        let service = Service::new(3.0);
        fleet(&service, options, Duration::from_secs(4));
        let (count, throttled) = service.answers_from(Duration::from_secs(1));
        assert!(throttled > 0.5, "{options}: {throttled} of {count} answers throttle");
    }
}
