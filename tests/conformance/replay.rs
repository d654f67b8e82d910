//! Answers as rows describe them, through classification and the state machine.

use std::time::{Duration, SystemTime};

use retryx::config::Plan;
use retryx::policy::response::Response;
use retryx::policy::{Class, Classifier, Decision, Evidence, Judged, Mode, Operation, Outcome, ServerDelay, Session};
use serde_json::Value;

use crate::check::whole;
use crate::recorded::Recorded;

/// The answer of a row, with the fields `status` or `status_code`, `headers` and `body`; an
/// error where the row names no status.
pub fn answer(row: &Value) -> Result<Response, String> {
    let key = ["status_code", "status"].into_iter().find(|key| !row[key].is_null());
    let headers = row["headers"].as_object().into_iter().flatten();
    Ok(Response {
        status: key.map_or(Ok(400), |key| whole(row, key))?,
        headers: headers.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect(),
        body: row["body"].as_str().unwrap_or_default().into(),
    })
}

/// What an answer is taken for; the row's `error_code` or `code` stands for a code that its
/// protocol carries.
pub fn class(classifier: &Classifier, row: &Value) -> Result<Class, String> {
    let response = answer(row)?;
    let outcome = Outcome::Responded(response.status);
    let carried = response.error_code();
    let error_code = row["error_code"].as_str().or(row["code"].as_str()).or(carried.as_deref());
    let allowance_used_up = response.allowance_is_used_up();
    let evidence = Evidence { error_code, allowance_used_up, ..Evidence::of(&outcome) };
    Ok(classifier.classify(&evidence).class)
}

/// What an answer asks for, the moment of its coming being the epoch.
pub fn server_delay(mode: Mode, response: &Response) -> Option<ServerDelay> {
    response.server_delay(mode, SystemTime::UNIX_EPOCH).0
}

/// A run, and the budget that it draws on.
pub struct Run<'a> {
    plan: &'a Plan,
    pub session: Session<'a>,
    pub budget: Recorded,
}

impl<'a> Run<'a> {
    /// A run that starts with what another left, at the same time.
    pub fn with(plan: &'a Plan, budget: Recorded) -> Self {
        Self { plan, session: Session::new(&plan.session, Session::seed_from(1)), budget }
    }

    /// A run with a budget of its own.
    pub fn new(plan: &'a Plan) -> Self {
        Self::with(plan, Recorded::new())
    }

    /// How long until the rate limiter lets an attempt start; zero takes its token.
    pub fn pace(&mut self, now: Duration) -> Duration {
        self.budget.apply(&self.plan.session.budget, &Operation::Take, now).wait
    }
}

/// One attempt that ends with the row's answer `now`.
pub fn decide(run: &mut Run<'_>, row: &Value, now: Duration) -> Result<Decision, String> {
    let (plan, session, budget) = (run.plan, &mut run.session, &mut run.budget);
    let response = answer(row)?;
    let outcome = Outcome::Responded(response.status);
    let class = class(&plan.classifier, row)?;
    session.start_attempt();
    let server = server_delay(plan.mode, &response);
    let judged = Judged { outcome: &outcome, class, server };
    Ok(session.decide(judged, None, now, |operation| budget.apply(&plan.session.budget, operation, now)))
}
