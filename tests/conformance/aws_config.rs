//! AWS's own settings: variables, and the shared config file.

use std::collections::HashMap;

use retryx::config::aws::parse;
use retryx::policy::QuotaPlan;
use serde_json::Value;

use crate::check::{Check, ensure, equal, text};
use crate::plans::AwsSettings;
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("aws_config/retry_settings", settings);
    suite.rows("aws_config/profile_parser", profiles);
}

fn settings(row: &Row) -> Check {
    let settings = AwsSettings::of(row.value)?;
    if row.value["error"].is_string() {
        return settings.are_refused();
    }
    let (plan, warnings) = settings.plan(&[])?;
    equal("warnings", &warnings, &Vec::new())?;
    if let Some(mode) = row.value["mode"].as_str() {
        equal("mode", &plan.mode.as_str(), &mode)?;
    }
    if let Some(attempts) = row.value["max_attempts"].as_u64() {
        equal("attempts", &plan.session.limits.max_attempts.map(u64::from), &Some(attempts))?;
    }
    match row.value["spec"].as_str() {
        // The rules that the opt-in chose; today they are the only ones.
        Some("2.1") => equal("quota", &plan.session.budget.quota, &Some(QuotaPlan::default())),
        None => Ok(()),
        Some(other) => Err(format!("the specification {other} is not known")),
    }
}

fn profiles(row: &Row) -> Check {
    let got = parse(text(&row.value["input"], "configFile")?);
    let output = &row.value["output"];
    if let Some(problem) = output["errorContaining"].as_str() {
        return ensure(got.is_err(), || format!("{got:?}, where '{problem}' was expected"));
    }
    let profiles = output["config"]["profiles"].as_object().ok_or("no profiles are expected")?;
    let properties = |profile: &Value| {
        let fields = profile.as_object().into_iter().flatten();
        fields.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let expected: HashMap<String, HashMap<String, String>> =
        profiles.iter().map(|(name, profile)| (name.clone(), properties(profile))).collect();
    equal("profiles", &got, &Ok(expected))
}
