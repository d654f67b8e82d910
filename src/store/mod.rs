//! The budgets of scopes: kept where the processes of one machine, or many machines, reach
//! them. Every store applies the same [`Operation`] to the same [`Budget`].
//!
//! A store never fails a run: what it cannot do it says as [`Unshared`], and [`RunBudget`]
//! goes on with a budget of the run's own.

mod file;
mod folder;
mod record;
pub mod redis;
mod run;
mod scope;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::policy::{Answer, Budget, BudgetPlan, Operation, QuotaPlan};

pub use file::FileStore;
pub use record::Moment;
pub use redis::{RedisAddress, RedisStore};
pub use run::RunBudget;
pub use scope::ScopeName;

/// A scope, as a run uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Its name.
    pub name: ScopeName,
    /// How long it may lie unused before it starts full again.
    pub ttl: Duration,
}

/// Where scopes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlan {
    /// In files of this folder; `None` is the user's own state folder.
    Folder(Option<PathBuf>),
    /// In a Redis server.
    Redis(RedisAddress),
}

/// Why a scope is not shared: a fragment that names the place, what is wrong, and the remedy
/// where there is one. It is empty where a signal ended the operation that ends the run, too:
/// then there is nothing to say of the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unshared(pub String);

/// What came of an operation, and what is to be said of the store, which is shared all the
/// same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The operation's answer.
    pub answer: Answer,
    /// A damaged state that was set aside.
    pub notice: Option<String>,
}

/// A scope as it stands now.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeState {
    /// Its name.
    pub name: ScopeName,
    /// Its budget, with what has come in since it was last used.
    pub budget: Budget,
    /// When it was last used.
    pub updated: SystemTime,
}

/// A scope that was looked at: how it stands, or what is wrong with it.
pub type Looked = Result<ScopeState, Unshared>;

/// Keeps the budgets of scopes: a door. An operation is done as a whole or not at all, and
/// none of another process is lost, whatever is killed when.
pub trait StateStore {
    /// Applies an operation to the budget of a scope, which begins with it where there is none.
    /// It takes at most 200 ms, or what a store's address says, and less where the run has less `left`.
    fn apply(
        &mut self,
        scope: &Scope,
        plan: &BudgetPlan,
        operation: &Operation,
        left: Option<Duration>,
    ) -> Result<Applied, Unshared>;

    /// All scopes, by name.
    fn list(&mut self) -> Result<Vec<Looked>, Unshared>;

    /// One scope; `None` where there is none of that name.
    fn show(&mut self, name: &ScopeName) -> Result<Option<Looked>, Unshared>;

    /// Makes a scope start afresh; false where there is none of that name. The second part
    /// tells of a damaged state that was set aside.
    fn reset(&mut self, name: &ScopeName) -> Result<(bool, Option<String>), Unshared>;

    /// Sets the tokens of a scope, at most its capacity; one that does not exist yet begins
    /// with these numbers. The second part tells of a damaged state that was set aside.
    fn set(
        &mut self,
        scope: &Scope,
        tokens: u32,
        beginning: QuotaPlan,
    ) -> Result<(ScopeState, Option<String>), Unshared>;

    /// Where it keeps them, without secrets.
    fn place(&self) -> String;
}

/// As `--store` takes it, without secrets.
impl fmt::Display for StorePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(_) => f.write_str("file"),
            Self::Redis(address) => address.fmt(f),
        }
    }
}

impl StorePlan {
    /// The options of `retryx quota` that lead to it, each after a space; `None` where there are
    /// secrets among them.
    pub fn options(&self) -> Option<String> {
        Some(match self {
            Self::Folder(None) => String::new(),
            Self::Folder(Some(folder)) => {
                let folder = folder.to_string_lossy();
                // As a word of its own it would be an option.
                if folder.starts_with('-') {
                    format!(" {}", scope::shell_word(&format!("--state-dir={folder}")))
                } else {
                    format!(" --state-dir {}", scope::shell_word(&folder))
                }
            }
            Self::Redis(address) if address.is_shown_whole() => {
                format!(" --store {}", scope::shell_word(&address.to_string()))
            }
            Self::Redis(_) => return None,
        })
    }

    /// The store, which touches nothing before it is used. `state_folder` is the user's own,
    /// if that is known.
    pub fn open(&self, state_folder: Option<PathBuf>) -> Box<dyn StateStore> {
        match self {
            Self::Folder(folder) => Box::new(FileStore::new(folder.clone().or(state_folder))),
            Self::Redis(address) => Box::new(RedisStore::new(address.clone())),
        }
    }
}
