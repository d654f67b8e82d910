//! Where the error code sits in an answer, protocol by protocol.

use crate::check::{Check, equal, text};
use crate::replay;
use crate::suite::{Row, Suite};

/// Adds the trials of this module.
pub fn add(suite: &mut Suite) {
    suite.rows("aws_error_code_extraction", extracted);
}

fn extracted(row: &Row) -> Check {
    let mut answer = replay::answer(row.value)?;
    if text(row.value, "protocol")?.starts_with("json") {
        answer.headers.push(("Content-Type".to_owned(), "application/x-amz-json-1.0".to_owned()));
    }
    // Without a code in the answer, the CLI shows its status as text; retryx knows it as one.
    let code = answer.error_code().unwrap_or_else(|| answer.status.to_string());
    equal("code", &code.as_str(), &text(row.value, "code")?)
}
