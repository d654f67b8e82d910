//! Looking ahead without running: the schedule of a policy, and what an outcome would be
//! taken for.

pub mod explain;
pub mod plan;
