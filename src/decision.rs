//! The decision and the waits, as pure functions of a rule, the time and numbers of the log.
//!
//! Ranks count from the newest entry, which has rank 0. A rule's live entries are the newest ones
//! of the log, so an entry of rank `n` is live exactly when more than `n` are.

use crate::rule::{Micros, Rule, Units};
use std::cmp::Reverse;

/// What a rule says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Live entries and units together are within the limit.
    Allowed,
    /// Not before the entry of this rank leaves the window.
    DeniedBy(u64),
    /// The units exceed the limit.
    Never,
}

/// A span until something happens; `Never` is the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Milliseconds, rounded up so that obeying them always works.
    Ms(u64),
    /// It does not happen.
    Never,
}

/// What one rule says about a log: the numbers of a WITHINFO reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The rule.
    pub rule: Rule,
    /// Live entries.
    pub used: u64,
    /// Until the same attempt would be allowed if nobody else calls; 0 when it is.
    pub retry_after: Wait,
    /// Until `remaining` grows; 0 when nothing is used, `Never` when the limit is 0.
    pub reset_after: Wait,
    /// Until no entry is live; 0 when none is.
    pub full_after: Wait,
}

impl Rule {
    /// Whether an attempt of `units` is allowed beside `used` live entries: used + units <= limit.
    ///
    /// If not, it waits for the entry of rank limit - units: when that one leaves, as many entries
    /// are live as leave room. After the limit was lowered this is not the oldest entry.
    pub fn judge(self, used: u64, units: Units) -> Verdict {
        match self.limit.checked_sub(units.get()) {
            None => Verdict::Never,
            Some(rank) if rank < used => Verdict::DeniedBy(rank),
            Some(_) => Verdict::Allowed,
        }
    }

    /// The rank of the entry with whose leaving `remaining` grows.
    pub fn next_free(self, used: u64) -> Option<u64> {
        used.min(self.limit).checked_sub(1)
    }

    /// The time until an entry leaves the window; 0 when it has.
    pub fn wait_for(self, entry: Micros, now: Micros) -> Wait {
        let wait = self.window.leaves_at(entry).saturating_sub(now);
        Wait::Ms(wait.max(0).unsigned_abs().div_ceil(1_000))
    }
}

impl Standing {
    /// Units left in the window.
    pub fn remaining(&self) -> u64 {
        self.rule.limit.saturating_sub(self.used)
    }
}

/// The rule that an answer is about: of a denied attempt the one with the longest wait, else the
/// one with the fewest remaining; of equal ones the first.
pub fn binding(standings: &[Standing], allowed: bool) -> Option<&Standing> {
    if allowed {
        standings.iter().min_by_key(|standing| standing.remaining())
    } else {
        standings
            .iter()
            .min_by_key(|standing| Reverse(standing.retry_after))
    }
}
