//! Settings that cannot stand beside a stronger one. They are left aside, as a weaker value of
//! the same setting is: a variable that holds for all runs is not to make an option unusable.
//! Where both come from the same place, or the stronger is the one that cannot act, that is an
//! error, said where the settings are put to use.

use super::settings::Settings;
use super::{Mode, defaults};
use crate::cli::options::Id;
use crate::policy::Formula;

/// A setting that counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Aside {
    /// Which one.
    pub(super) id: Id,
    /// Where it was given.
    pub(super) place: String,
    /// Where the stronger one was.
    pub(super) beside: String,
}

/// Settings of which one can make the other meaningless.
const PAIRS: [(Id, Id); 9] = [
    (Id::Delays, Id::BaseDelay),
    (Id::Delays, Id::ThrottleBaseDelay),
    (Id::Delays, Id::Factor),
    (Id::MinDelay, Id::MaxBackoff),
    (Id::Stagger, Id::Deadline),
    (Id::Stagger, Id::TotalTimeout),
    (Id::NoQuota, Id::QuotaCapacity),
    (Id::NoQuota, Id::QuotaCost),
    (Id::NoQuota, Id::QuotaRefill),
];

impl Settings {
    /// Leaves aside what a stronger setting makes meaningless, and says what that is.
    pub(super) fn leave_aside(&mut self) -> Vec<Aside> {
        let mut aside = Vec::new();
        for (one, other) in PAIRS {
            let weaker = if self.is_weaker(one, other) { (one, other) } else { (other, one) };
            if self.are_apart(one, other) && self.is_weaker(weaker.0, weaker.1) {
                aside.push(self.drop(weaker.0, weaker.1));
            }
        }
        for id in [Id::Factor, Id::Jitter, Id::Service] {
            if self.has(id) && !self.acts_in_mode(id) && self.is_weaker(id, Id::Mode) {
                aside.push(self.drop(id, Id::Mode));
            }
        }
        aside
    }

    fn drop(&mut self, id: Id, stronger: Id) -> Aside {
        let aside = Aside { id, place: self.place(id).to_owned(), beside: self.place(stronger).to_owned() };
        self.leave(id);
        aside
    }

    /// Whether both are given, and together make no sense.
    pub(super) fn are_apart(&self, one: Id, other: Id) -> bool {
        self.has(one)
            && self.has(other)
            && match (one, other) {
                (Id::MinDelay, _) => self.min_delay > self.max_backoff,
                (Id::Stagger, Id::Deadline) => self.stagger > self.deadline,
                (Id::Stagger, _) => self.stagger > self.total_timeout,
                (Id::NoQuota, _) => self.no_quota == Some(true),
                _ => true,
            }
    }

    /// Whether the mode has what this setting changes.
    fn acts_in_mode(&self, id: Id) -> bool {
        let mode = self.mode.unwrap_or(Mode::Standard);
        match (id, defaults(mode, None).formula) {
            (Id::Service, _) => mode.is_aws(),
            (Id::Factor, formula) => matches!(formula, Formula::Exponential { .. }),
            (_, formula) => formula != Formula::Decorrelated || self.delays.is_some(),
        }
    }
}
