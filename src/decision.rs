//! The decision: whether an attempt is allowed, and how long to wait, of rules, the time and a view
//! of the log. Pure: time is an argument.
//!
//! Ranks count units from the newest one, which has rank 0. A rule's live units are the newest ones
//! of the log, so a unit of rank `n` is live exactly when more than `n` are.

use crate::error::Error;
use crate::rule::{Micros, Rule, Rules, Units};
use std::cmp::Reverse;

/// What a decision reads of a log, none of which changes the log.
///
/// Units that are out of the call's longest window do not count, nor do those that were left out.
pub trait View {
    /// The entries that the call found, whether they count or not.
    fn entries(&self) -> u64;

    /// The units that count.
    fn live(&self) -> u64;

    /// Of these, the units after a time.
    fn live_after(&self, cutoff: Micros) -> Result<u64, Error>;

    /// The time of a unit by its rank; `None` when fewer count.
    fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error>;

    /// Leaves entries after a time out of account from now on; false when there are none.
    fn leave_out_after(&mut self, time: Micros) -> Result<bool, Error>;
}

/// What a rule says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Live units and the attempt's together are within the limit.
    Allowed,
    /// Not before the unit of this rank leaves the window.
    DeniedBy(u64),
    /// The attempt's units exceed the limit.
    Never,
}

/// What all rules together say to an attempt; the more telling, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allowed,
    /// Whatever the log holds.
    Never,
    /// Some rule has no room.
    NoRoom,
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
pub struct Status {
    /// The rule.
    pub rule: Rule,
    /// Live units.
    pub used: u64,
    /// Until the same attempt would be allowed if nobody else calls; 0 when it is.
    pub retry_after: Wait,
    /// Until `remaining` grows; 0 when nothing is used, `Never` when the limit is 0.
    pub reset_after: Wait,
    /// Until no unit is live; 0 when none is.
    pub full_after: Wait,
}

/// Whether an attempt is allowed: for every rule, live units and its own are within the limit.
///
/// A denial for lack of room is not made while the log holds *impossible* entries, further ahead of
/// the clock than it can honestly have come (see `Window::horizon`): they are left out of account
/// and the decision is made anew, so that a broken clock blocks nobody for long.
pub fn decide(
    log: &mut impl View,
    rules: &Rules,
    units: Units,
    now: Micros,
) -> Result<bool, Error> {
    let mut outcome = judge_all(log, rules, units, now)?;
    if outcome == Outcome::NoRoom {
        let horizon = rules.longest_window().horizon(now, log.entries());
        if log.leave_out_after(horizon)? {
            outcome = judge_all(log, rules, units, now)?;
        }
    }
    Ok(outcome == Outcome::Allowed)
}

/// The turn of an attempt that would rather wait than be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It can be had: this is its time.
    Granted(Micros),
    /// It would come at this time, later than the attempt wants to wait.
    Later(Micros),
    /// The attempt's units exceed a limit.
    Never,
}

/// The turn of an attempt: the earliest time at which it is allowed, behind everybody who has a turn.
///
/// A turn beyond `max_wait` is a denial for lack of room, before which impossible entries are left
/// out, as in `decide`.
pub fn reserve(
    log: &mut impl View,
    rules: &Rules,
    units: Units,
    now: Micros,
    max_wait: Micros,
) -> Result<Turn, Error> {
    let horizon = rules.longest_window().horizon(now, log.entries());
    let mut turn = earliest(log, rules, units, now)?;
    if turn.is_some_and(|turn| turn > now + max_wait) && log.leave_out_after(horizon)? {
        turn = earliest(log, rules, units, now)?;
    }
    Ok(match turn {
        Some(turn) if turn <= now + max_wait => Turn::Granted(turn),
        Some(turn) => Turn::Later(turn),
        None => Turn::Never,
    })
}

/// The latest of: now, the newest unit's time, and for each rule the time at which the unit leaves
/// that would have to.
fn earliest(
    log: &impl View,
    rules: &Rules,
    units: Units,
    now: Micros,
) -> Result<Option<Micros>, Error> {
    let mut turn = log.nth_newest(0)?.map_or(now, |newest| newest.max(now));
    for rule in rules.iter() {
        match rule.judge(log.live(), units) {
            Verdict::Allowed => {}
            Verdict::DeniedBy(rank) => {
                let entry = log.nth_newest(rank)?;
                turn = turn.max(entry.map_or(now, |entry| rule.window.leaves_at(entry)));
            }
            Verdict::Never => return Ok(None),
        }
    }
    Ok(Some(turn))
}

/// The time until a moment, rounded up.
pub fn wait_until(moment: Micros, now: Micros) -> Wait {
    Wait::Ms((moment - now).max(0).unsigned_abs().div_ceil(1_000))
}

/// Without counting: a rule has no room exactly when the unit that would have to leave is live.
fn judge_all(log: &impl View, rules: &Rules, units: Units, now: Micros) -> Result<Outcome, Error> {
    let longest = rules.longest_window();
    let mut outcome = Outcome::Allowed;
    for rule in rules.iter() {
        outcome = outcome.max(match rule.judge(log.live(), units) {
            Verdict::Allowed => Outcome::Allowed,
            Verdict::Never => Outcome::Never,
            Verdict::DeniedBy(rank) => {
                let cutoff = rule.window.cutoff(now);
                if rule.window == longest || log.nth_newest(rank)? > Some(cutoff) {
                    Outcome::NoRoom
                } else {
                    Outcome::Allowed
                }
            }
        });
    }
    Ok(outcome)
}

/// What each rule says about the log as it stands, in the order given.
pub fn statuses(
    log: &impl View,
    rules: &Rules,
    units: Units,
    allowed: bool,
    now: Micros,
) -> Result<Vec<Status>, Error> {
    let status = |rule: Rule| {
        let used = log.live_after(rule.window.cutoff(now))?;
        let wait_for = |rank| {
            let entry = log.nth_newest(rank)?;
            Ok::<_, Error>(entry.map_or(Wait::Ms(0), |entry| rule.wait_for(entry, now)))
        };
        Ok(Status {
            rule,
            used,
            retry_after: match rule.judge(used, units) {
                Verdict::DeniedBy(rank) if !allowed => wait_for(rank)?,
                Verdict::Never if !allowed => Wait::Never,
                _ => Wait::Ms(0),
            },
            reset_after: match rule.next_free(used) {
                Some(rank) => wait_for(rank)?,
                None if rule.limit == 0 => Wait::Never,
                None => Wait::Ms(0),
            },
            full_after: match used {
                0 => Wait::Ms(0),
                _ => wait_for(0)?,
            },
        })
    };
    rules.iter().map(status).collect()
}

/// The rule that an answer is about: of a denied attempt the one with the longest wait, else the
/// one with the fewest remaining; of equal ones the first.
pub fn binding(statuses: &[Status], allowed: bool) -> Option<&Status> {
    if allowed {
        statuses.iter().min_by_key(|status| status.remaining())
    } else {
        statuses
            .iter()
            .min_by_key(|status| Reverse(status.retry_after))
    }
}

impl Rule {
    /// Whether an attempt of `units` is allowed beside `used` live ones: used + units <= limit.
    ///
    /// If not, it waits for the unit of rank limit - units: when that one leaves, as many are live
    /// as leave room. After the limit was lowered this is not the oldest unit.
    pub fn judge(self, used: u64, units: Units) -> Verdict {
        match self.limit.checked_sub(units.get()) {
            None => Verdict::Never,
            Some(rank) if rank < used => Verdict::DeniedBy(rank),
            Some(_) => Verdict::Allowed,
        }
    }

    /// The rank of the unit with whose leaving `remaining` grows.
    pub fn next_free(self, used: u64) -> Option<u64> {
        used.min(self.limit).checked_sub(1)
    }

    /// The time until an entry leaves the window; 0 when it has.
    pub fn wait_for(self, entry: Micros, now: Micros) -> Wait {
        wait_until(self.window.leaves_at(entry), now)
    }
}

impl Status {
    /// Units left in the window.
    pub fn remaining(&self) -> u64 {
        self.rule.limit.saturating_sub(self.used)
    }
}

#[cfg(test)]
mod tests;
