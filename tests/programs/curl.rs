//! curl.

use crate::Case;

/// Each way that curl was brought to fail.
pub const CASES: &[Case] = &[Case {
    preset: "curl",
    row: "malformed URL",
    class: "permanent",
    how: "",
    provoke: |lab| Ok(lab.run("-n 1").command(&["curl", "http://[::1"]).finish()),
}];
