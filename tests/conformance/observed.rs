//! Runs of the real AWS CLI, made again by the state machine: how many requests, with which
//! gaps between them, and what the error line said.

use std::time::Duration;

use regex::Regex;
use retryx::policy::{Classifier, Decision, DelaySource, Mode, Retry, StopReason};
use serde_json::{Value, json};

use crate::aws_cli::{code_by_pattern, code_of};
use crate::check::{Check, ensure, equal, float, list, text, whole};
use crate::classification::is_retried;
use crate::plans::AwsSettings;
use crate::replay::{self, Run};
use crate::suite::{Row, Suite, vectors};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("observed_aws_cli_v1/rows", run);
    suite.rows("observed_aws_cli_v1/status_only_standard_2_1", |row| listed(row, Mode::Standard));
    suite.rows("observed_aws_cli_v1/code_with_status_400_standard_2_1", |row| listed(row, Mode::Standard));
    suite.rows("observed_aws_cli_v1/legacy", |row| listed(row, Mode::Legacy));
    suite.rows("observed_aws_cli_v1/config_file", config_file);
}

/// A status, or a code with status 400, in a list of those that are retried or are not.
fn listed(row: &Row, mode: Mode) -> Check {
    let answer = if row.value.is_u64() { json!({ "status": row.value }) } else { json!({ "code": row.value }) };
    let expected = match row.list() {
        "retried" | "status_retried" | "code_400_retried" => true,
        "not_retried" | "status_not_retried" | "code_400_not_retried" => false,
        other => return Err(format!("the list {other} is not known")),
    };
    equal("retried", &is_retried(replay::class(&Classifier::new(mode), &answer)?), &expected)
}

fn config_file(row: &Row) -> Check {
    let settings = AwsSettings::of(row.value)?;
    let requests: u64 = whole(row.value, "requests")?;
    if requests == 0 {
        return settings.are_refused();
    }
    let (plan, warnings) = settings.plan(&[])?;
    equal("warnings", &warnings, &Vec::new())?;
    equal("attempts", &plan.session.limits.max_attempts.map(u64::from), &Some(requests))
}

/// What arrives later than the wait's end is the CLI's own work.
const WORK: f64 = 0.06;

fn run(row: &Row) -> Check {
    let settings = AwsSettings::of(row.value)?;
    let requests: usize = whole(row.value, "requests")?;
    if requests == 0 {
        return settings.are_refused();
    }
    let (what, stderr) = (text(row.value, "what")?, text(row.value, "stderr")?);
    let code = code_by_pattern(&vectors()["aws_cli"]["stderr_regex"], stderr)?;
    equal("code in the error line", &code_of(stderr).as_deref(), &code)?;
    let failure = failure(what, code)?;
    // With u = 1, to be above what was drawn.
    let mut options = vec!["--jitter", "none"];
    if what.contains("DynamoDB") {
        options.extend(["--service", "dynamodb"]);
    }
    if row.value["note"].as_str().is_some_and(|note| note.contains("legacy default")) {
        options.extend(["--mode", "legacy"]);
    }
    let (plan, _) = settings.plan(&options)?;
    let mut run = Run::new(&plan);
    let mut now = Duration::ZERO;
    for gap in list(row.value, "observed_gaps_seconds")? {
        equal("pace", &run.pace(now), &Duration::ZERO)?;
        match replay::decide(&mut run, &failure, now)? {
            Decision::Retry(retry) => {
                is_possible(&retry, float(gap)?)?;
                now += retry.delay.wait;
            }
            other => return Err(format!("the CLI sent another request after {gap} s: {other:?}")),
        }
    }
    let succeeds = row.value["exit_code"] == 0;
    let last = if succeeds { json!({ "status": 200 }) } else { failure };
    let end = replay::decide(&mut run, &last, now)?;
    let expected = match (succeeds, stderr.contains("reached max retries")) {
        (true, _) => StopReason::Success,
        (false, true) => StopReason::Attempts,
        (false, false) => StopReason::Permanent,
    };
    equal("end", &end, &Decision::Stop(expected))?;
    equal("requests", &usize::try_from(run.session.attempts()).ok(), &Some(requests))
}

/// The stub server's answer, as the row's `what` describes it.
fn failure(what: &str, code: Option<&str>) -> Result<Value, String> {
    let find = |pattern: &str| {
        let pattern = Regex::new(pattern).map_err(|error| error.to_string())?;
        Ok::<_, String>(pattern.captures(what).map(|groups| (groups[1].to_owned(), groups[2].to_owned())))
    };
    let (_, status) = find(r"(^|\s)([1-5]\d\d)\b")?.ok_or("no status is told")?;
    let status: u16 = status.parse().map_err(|_| format!("{status} is no status"))?;
    let mut headers = json!({});
    if what.contains("JSON 1.1") {
        headers["content-type"] = "application/x-amz-json-1.1".into();
    }
    let header = find(r"([\w-]+): ([\w.]+)")?;
    // A code in a header is to be found there; one that is the status is none.
    let named = header.as_ref().is_some_and(|(name, _)| name == "x-amzn-errortype");
    let code = code.filter(|code| !named && code.parse::<u16>().is_err());
    if let Some((name, value)) = header {
        headers[name] = value.into();
    }
    Ok(json!({ "status": status, "headers": headers, "code": code }))
}

/// Whether the gap lies within what the jitter can draw.
fn is_possible(retry: &Retry, gap: f64) -> Check {
    let most = retry.delay.wait.as_secs_f64();
    let least = match retry.delay.source {
        DelaySource::Backoff => 0.0,
        // At least what is asked for, or five seconds of it.
        DelaySource::Server | DelaySource::Output => retry.delay.server.unwrap_or_default().as_secs_f64().min(5.0),
        DelaySource::Limiter => most - WORK,
    };
    ensure(gap >= least && gap <= most + WORK, || format!("a gap of {gap} s is not between {least} and {most} s"))
}
