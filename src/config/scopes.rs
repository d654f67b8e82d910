//! What `retryx quota` works on.

use std::time::Duration;

use super::settings::Settings;
use super::values::{one_of, quota_capacity};
use super::{SCOPE_TTL, Verbosity, store_plan};
use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::policy::QuotaPlan;
use crate::store::StorePlan;

/// The settings of `retryx quota`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopesPlan {
    /// Where the scopes are kept.
    pub store: StorePlan,
    /// How long a scope that begins may lie unused.
    pub ttl: Duration,
    /// The numbers of a scope that begins.
    pub beginning: QuotaPlan,
    /// The options on the command line that speak of such a scope.
    pub for_a_beginning: Vec<String>,
    /// The tokens that a scope is to have.
    pub tokens: Option<u32>,
    /// Whether scopes are printed as JSON.
    pub json: bool,
    /// How much is said.
    pub verbosity: Verbosity,
}

impl ScopesPlan {
    /// Resolves what was given, weakest first.
    pub fn resolve(given: &[Given]) -> Result<Self, UsageError> {
        let settings = Settings::read(given)?;
        let (mut tokens, mut json) = (None, false);
        for option in given {
            match option.id {
                Id::Tokens => tokens = Some(quota_capacity(option)?),
                Id::QuotaFormat => json = one_of(option, &[("text", false), ("json", true)])?,
                _ => {}
            }
        }
        let ttl = settings.scope_ttl.unwrap_or(SCOPE_TTL);
        let capacity = settings.quota_capacity.unwrap_or(QuotaPlan::default().capacity);
        let refill = settings.quota_refill.unwrap_or_else(|| QuotaPlan::refill_that_fills(capacity, ttl));
        let for_a_beginning = [Id::QuotaCapacity, Id::QuotaRefill, Id::ScopeTtl].into_iter();
        Ok(Self {
            store: store_plan(&settings)?,
            ttl,
            beginning: QuotaPlan { capacity, refill, ..QuotaPlan::default() },
            for_a_beginning: for_a_beginning
                .filter(|id| settings.on_command_line(*id))
                .map(|id| settings.place(id).to_owned())
                .collect(),
            tokens,
            json,
            verbosity: settings.verbosity()?,
        })
    }
}
