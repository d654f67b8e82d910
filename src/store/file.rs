//! Scopes in files.

use std::path::PathBuf;

use super::{Applied, Scope, ScopeName, ScopeState, StateStore, Unshared};
use crate::policy::{BudgetPlan, Operation, QuotaPlan};

/// Keeps scopes in files of a folder.
pub struct FileStore {
    folder: Option<PathBuf>,
}

impl FileStore {
    /// A store in that folder, which is made when it is first needed.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }
}

impl StateStore for FileStore {
    fn apply(&mut self, _: &Scope, _: &BudgetPlan, _: &Operation) -> Result<Applied, Unshared> {
        Err(Unshared("not yet".into()))
    }
    fn list(&mut self) -> Result<Vec<ScopeState>, Unshared> {
        Err(Unshared("not yet".into()))
    }
    fn show(&mut self, _: &ScopeName) -> Result<Option<ScopeState>, Unshared> {
        Err(Unshared("not yet".into()))
    }
    fn reset(&mut self, _: &ScopeName) -> Result<bool, Unshared> {
        Err(Unshared("not yet".into()))
    }
    fn set(&mut self, _: &Scope, _: u32, _: QuotaPlan) -> Result<ScopeState, Unshared> {
        Err(Unshared("not yet".into()))
    }
    fn place(&self) -> String {
        self.folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
    }
}
