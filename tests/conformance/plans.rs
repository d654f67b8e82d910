//! Plans as a user gets them: from options, variables and an AWS config file.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use retryx::cli::{Given, Invocation, parse};
use retryx::config::env::Environment;
use retryx::config::{Plan, gather};
use serde_json::Value;

use crate::check::Check;

/// The options as the command line gives them, and a command.
fn typed(options: &[&str]) -> Result<(Vec<Given>, Vec<OsString>), String> {
    let words: Vec<_> = ["retryx"].iter().chain(options).chain(&["true"]).map(OsString::from).collect();
    match parse(&words).map_err(|error| error.0)? {
        Invocation::Do { given, command, .. } => Ok((given, command)),
        Invocation::Print(text) => Err(text),
    }
}

/// The plan that these options make, or what is wrong with them.
pub fn plan(options: &[&str]) -> Result<Plan, String> {
    let (given, command) = typed(options)?;
    Plan::resolve(&given, command, String::new()).map_err(|error| error.0)
}

/// What AWS's own settings are, in a row.
pub struct AwsSettings {
    variables: Value,
    config: tempfile::NamedTempFile,
}

impl AwsSettings {
    /// The variables `env` of a row, and its `config` as the shared config file.
    pub fn of(row: &Value) -> Result<Self, String> {
        let mut config = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let text = row["config"].as_str().unwrap_or_default();
        config.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self { variables: row["env"].clone(), config })
    }

    /// The plan that these and the options make, and the warnings.
    pub fn plan(&self, options: &[&str]) -> Result<(Plan, Vec<String>), String> {
        let (given, command) = typed(options)?;
        let (all, warnings) = gather(given, &command, self).map_err(|error| error.0)?;
        let plan = Plan::resolve(&all, command, String::new()).map_err(|error| error.0)?;
        Ok((plan, warnings.into_iter().map(|(_, warning)| warning).collect()))
    }

    /// Something is wrong with them: said once and skipped, unless an AWS mode is
    /// asked for on the command line (design §2).
    pub fn are_refused(&self) -> Check {
        let (plan, warnings) = self.plan(&[])?;
        let [warning] = warnings.as_slice() else { return Err(format!("one warning was expected: {warnings:?}")) };
        let (default, _) = typed(&[])?;
        let default = Plan::resolve(&default, vec!["true".into()], String::new()).map_err(|error| error.0)?;
        if plan != default {
            return Err(format!("what was wrong changed the plan: {plan:?}"));
        }
        match self.plan(&["--mode", "standard"]) {
            Ok(_) => Err(format!("--mode standard let it pass: {warning}")),
            Err(problem) if warning.starts_with(&problem) => Ok(()),
            Err(problem) => Err(format!("warning and error differ: {warning:?}, {problem:?}")),
        }
    }
}

impl Environment for AwsSettings {
    fn get(&self, name: &str) -> Option<OsString> {
        if name == "AWS_CONFIG_FILE" {
            return Some(PathBuf::from(self.config.path()).into());
        }
        self.variables[name].as_str().filter(|value| !value.is_empty()).map(OsString::from)
    }

    fn own(&self) -> Vec<(Vec<u8>, OsString)> {
        Vec::new()
    }
}
