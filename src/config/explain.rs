//! `plan --explain-config`: each setting with where it came from.

use std::path::Path;
use std::time::Duration;

use super::{Plan, defaults, values};
use crate::cli::options::{Id, OPTIONS, Sub};
use crate::cli::{Given, Rank};
use crate::policy::{Formula, NANO};
use crate::store::StorePlan;
use crate::units::human;

/// A setting, what it is, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    /// The long name of its option.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Where that came from.
    pub source: String,
}

/// The settings. Those that nobody gave and that have no default are left out. `state_folder`
/// is the user's own, if that is known.
pub fn explain(plan: &Plan, given: &[Given], state_folder: Option<&Path>) -> Vec<Explained> {
    let mut settings = Vec::new();
    for option in OPTIONS.iter().filter(|option| option.of(Sub::Run) && option.has_variable()) {
        let all: Vec<_> = given.iter().filter(|given| given.id == option.id).collect();
        let strongest = all.iter().map(|given| given.rank).max();
        let values = all.iter().filter(|given| Some(given.rank) == strongest);
        let (value, source) = match all.last() {
            Some(last) => {
                let told: Vec<_> = values.map(|given| given.value.to_string_lossy()).collect();
                let told = match last.id {
                    // Repeated ones add up; of all others the last counts.
                    Id::RetryOn | Id::ThrottleOn | Id::FailOn | Id::SucceedOn => told.join(","),
                    // It may hold a password.
                    Id::Store => values::store(last).map(|store| store.to_string()).unwrap_or_default(),
                    _ => told.last().map(ToString::to_string).unwrap_or_default(),
                };
                let aside = plan.aside.iter().find(|aside| aside.id == option.id);
                let aside = aside.map(|aside| format!(", left aside beside {}", aside.beside)).unwrap_or_default();
                (if told.is_empty() { "on".to_owned() } else { told }, format!("{}{aside}", last.place))
            }
            None if option.id == Id::QuotaCapacity && plan.session.budget.quota.is_none() => {
                match lifted(given, plan) {
                    Some(place) => ("no quota".to_owned(), format!("lifted by {place}")),
                    None => ("no quota".to_owned(), format!("default of the {} mode", plan.mode.as_str())),
                }
            }
            None => match default(option.id, plan, state_folder) {
                Some(value) if option.id == Id::QuotaCapacity && plan.scope.is_some() => {
                    (value, "default of a scope".to_owned())
                }
                Some(value) if is_up_to_the_mode(option.id) => {
                    (value, format!("default of the {} mode", plan.mode.as_str()))
                }
                Some(value) => (value, "default".to_owned()),
                None => continue,
            },
        };
        settings.push(Explained { name: option.long, value, source });
    }
    settings
}

/// What took away the quota that the mode may have.
fn lifted<'a>(given: &'a [Given], plan: &Plan) -> Option<&'a str> {
    if !defaults(plan.mode, None).quota {
        return None;
    }
    let by = |id| given.iter().rev().find(move |given| given.id == id && given.rank >= Rank::Variable);
    by(Id::NoQuota).or_else(|| by(Id::MaxAttempts)).map(|given| given.place.as_str())
}

/// Whether the default of a setting is another in each mode.
fn is_up_to_the_mode(id: Id) -> bool {
    use Id::{BaseDelay, Deadline, Jitter, MaxAttempts, MaxBackoff, MaxRetryAfter, QuotaCapacity, ThrottleBaseDelay};
    matches!(
        id,
        MaxRetryAfter | MaxAttempts | BaseDelay | ThrottleBaseDelay | MaxBackoff | Jitter | Deadline | QuotaCapacity
    )
}

/// The value of a setting that nobody gave.
fn default(id: Id, plan: &Plan, state_folder: Option<&Path>) -> Option<String> {
    let session = &plan.session;
    let rule = &session.backoff;
    let spelled_out = matches!(rule.formula, Formula::Schedule(_));
    let endless = |duration: Duration| if duration == Duration::MAX { "none".to_owned() } else { human(duration) };
    let optional = |limit: Option<Duration>| limit.map_or_else(|| "none".to_owned(), human);
    Some(match id {
        Id::Mode => plan.mode.as_str().to_owned(),
        Id::MaxAttempts => plan.supervision.max_attempts.clone(),
        Id::BaseDelay if !spelled_out => human(rule.base),
        Id::ThrottleBaseDelay if !spelled_out => human(rule.throttling_base),
        Id::Factor => match rule.formula {
            Formula::Exponential { factor } => factor.to_string(),
            _ => return None,
        },
        Id::MaxBackoff => endless(rule.cap),
        Id::MaxRetryAfter => human(session.max_retry_after),
        Id::IdleTimeout => optional(plan.supervision.idle_timeout),
        Id::MinDelay => human(rule.floor),
        Id::Jitter if rule.formula != Formula::Decorrelated => rule.jitter.to_string(),
        Id::Deadline => optional(session.limits.deadline),
        Id::TotalTimeout => optional(session.limits.total_timeout),
        Id::Timeout => optional(plan.supervision.timeout),
        Id::KillAfter => human(plan.supervision.kill_after),
        Id::KillSignal => plan.supervision.kill_signal.to_string().trim_start_matches("SIG").to_owned(),
        Id::Preset | Id::Stdin => "auto".to_owned(),
        Id::Stdout | Id::Stderr => "each".to_owned(),
        Id::QuotaCapacity => {
            session.budget.quota.map_or_else(|| "no quota".to_owned(), |quota| quota.capacity.to_string())
        }
        Id::QuotaCost => {
            let quota = session.budget.quota?;
            format!("transient={},throttling={}", quota.transient_cost, quota.throttling_cost)
        }
        Id::ScopeTtl => human(plan.scope.as_ref()?.0.ttl),
        Id::Store => plan.scope.as_ref()?.1.to_string(),
        Id::StateDir => match plan.scope.as_ref()?.1 {
            StorePlan::Folder(_) => state_folder?.display().to_string(),
            StorePlan::Redis(_) => return None,
        },
        Id::QuotaRefill => {
            #[expect(clippy::cast_precision_loss, reason = "shown to people")]
            let rate = session.budget.quota?.refill as f64 / NANO as f64;
            rate.to_string()
        }
        _ => return None,
    })
}
