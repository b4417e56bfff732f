//! A log stored as a sorted set.
//!
//! # Stored form
//!
//! An entry is one unit. Its score is a Unix time in whole microseconds, its member the same number
//! in decimal digits, so nothing else need be stored: `ZCARD` is the number of units, `ZRANGE`
//! their times, `DEL` a reset. Integers on both sides keep a small log in Redis' compact encoding,
//! at about 21 bytes an entry.
//!
//! Members are unique: the units of a call take consecutive microseconds that are free, of which the
//! first is the call's id. So two attempts at one instant count twice, and a call's own entries can
//! be told from all others.
//!
//! The key expires when its newest entry is out of the longest window that a call named.
//!
//! (A long file, for one type: its numbers hold only together. Where its units go is in `free_run.rs`.)

mod free_run;

use super::expire_key;
use crate::api::{Access, End, Key, Member, OwnedString, SortedSet, Value};
use crate::changes::{publish_unlink, Changes};
use crate::decimal;
use crate::error::Error;
use crate::rule::{Micros, Units, Window, FAR, MAX_TIME};

/// The most entries that one call removes beyond those that it adds, so that none holds the server
/// for long.
const MAX_REMOVED: usize = 1_000;

/// The most entries to walk over; a command that goes by rank costs as much.
const MAX_WALK: u64 = 64;

/// A sorted set in the stored form, or an absent key.
pub struct SortedSetLog<'a> {
    set: SortedSet<'a>,
    /// The entries that the call found.
    found: u64,
    /// All entries.
    len: u64,
    /// Entries up to this time have expired.
    cutoff: Micros,
    /// How many of the oldest entries have expired.
    expired: u64,
    /// The lowest members in order, as many as were read so far and not removed: those that have
    /// expired, and then the first that has not.
    lowest: std::vec::IntoIter<Member>,
    next: Option<Member>,
    /// The time of the oldest live entry, as far as known.
    oldest_live: Option<Micros>,
    /// Entries after this time are left out.
    horizon: Option<Micros>,
    /// How many of the newest entries are left out.
    left_out: u64,
    /// The time of the newest entry, as far as known.
    newest: Option<Micros>,
    /// Entries removed so far.
    removed: u64,
    /// The expiry to restore, where making room removed every entry.
    least_expiry: i64,
    /// Whether the newest entries were removed, so that a longer expiry may stem from them.
    lost_newest: bool,
}

impl<'a> SortedSetLog<'a> {
    /// The log in a set; entries up to the cutoff have expired.
    ///
    /// # Errors
    ///
    /// `NotALog` when the lowest member is no entry.
    pub fn open(set: SortedSet<'a>, cutoff: Micros) -> Result<Self, Error> {
        // Mostly one entry has expired, or none.
        let (lowest, next) = set.lowest_past(score(cutoff), 2);
        if !lowest.first().or(next.as_ref()).is_none_or(is_entry) {
            return Err(Error::NotALog);
        }
        let len = set.len();
        let mut log = Self {
            set,
            found: len,
            len,
            cutoff,
            expired: lowest.len() as u64,
            lowest: Vec::new().into_iter(),
            next: None,
            oldest_live: None,
            horizon: None,
            left_out: 0,
            newest: None,
            removed: 0,
            least_expiry: 0,
            lost_newest: false,
        };
        log.read_expired(lowest, next)?;
        Ok(log)
    }

    /// Completes what is known of the expired entries from the first of them.
    fn read_expired(
        &mut self,
        mut lowest: Vec<Member>,
        mut next: Option<Member>,
    ) -> Result<(), Error> {
        let cutoff = score(self.cutoff);
        if lowest.len() == 2 && next.is_some() {
            if !self.set.has_above(cutoff) {
                self.expired = self.len;
                return Ok(());
            }
            (lowest, next) = self.set.lowest_past(cutoff, MAX_REMOVED);
            self.expired = lowest.len() as u64;
        }
        match next {
            Some(member) if member.score > cutoff => {
                self.oldest_live = Some(time(member.score));
                self.next = Some(member);
            }
            Some(_) => self.expired = self.count(None, Some(self.cutoff))?,
            None => {}
        }
        self.lowest = lowest.into_iter();
        Ok(())
    }

    /// The entries that the call found.
    pub fn entries(&self) -> u64 {
        self.found
    }

    /// Entries that have neither expired nor been left out.
    pub fn live(&self) -> u64 {
        debug_assert!(self.expired + self.left_out <= self.len);
        self.len.saturating_sub(self.expired + self.left_out)
    }

    /// Of these, the entries after a time.
    pub fn live_after(&self, cutoff: Micros) -> Result<u64, Error> {
        if cutoff <= self.cutoff || self.oldest_live.is_some_and(|oldest| oldest > cutoff) {
            Ok(self.live())
        } else if self.set.has_above(score(cutoff)) {
            let after = self.count(Some(cutoff), None)?;
            Ok(after.saturating_sub(self.left_out).min(self.live()))
        } else {
            Ok(0)
        }
    }

    /// The time of a live entry by its rank: 0 is the newest.
    pub fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error> {
        let live = self.live();
        if rank >= live {
            return Ok(None);
        }
        let from_newest = self.left_out + rank;
        if rank == live - 1 && self.oldest_live.is_some() {
            Ok(self.oldest_live)
        } else if from_newest == 0 && self.newest.is_some() {
            Ok(self.newest)
        } else if from_newest <= MAX_WALK {
            let member = self.set.nth_from_highest(from_newest);
            Ok(member.map(|member| time(member.score)))
        } else {
            let rank = self.len - 1 - from_newest;
            let found = self.set.score_at(rank);
            found.map(|score| Some(time(score))).ok_or(Error::Internal)
        }
    }

    /// The newest entries, at most so many, with a unit each.
    pub fn newest(&self, count: usize) -> Vec<(Micros, u64)> {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let members = self.set.members(End::Highest, all.0, all.1, count);
        members
            .iter()
            .map(|member| (time(member.score), 1))
            .collect()
    }

    /// Leaves entries after a time out of account; false when there are none.
    pub fn leave_out_after(&mut self, horizon: Micros) -> Result<bool, Error> {
        if !self.set.has_above(score(horizon)) {
            return Ok(false);
        }
        let after = self.count(Some(horizon), None)?;
        self.left_out = after.min(self.len - self.expired);
        self.horizon = Some(horizon);
        Ok(true)
    }

    /// Whether there are entries, none of which counts.
    pub fn is_spent(&self) -> bool {
        self.len > 0 && self.live() == 0
    }

    /// Removes what has expired and what was left out, as far as a call may that then adds so many
    /// entries, and returns the number.
    pub fn settle(&mut self, adding: u64, changes: &mut Changes) -> u64 {
        if self.is_spent() {
            return self.unlink();
        }
        let left_out = self.remove_left_out(changes);
        let expired = self.remove_oldest(self.expired, adding, changes);
        self.expired -= expired;
        left_out + expired
    }

    /// Removes the key with all its entries, and returns their number.
    fn unlink(&mut self) -> u64 {
        let (call, name) = (self.set.key().call(), self.set.key().name());
        self.set.key_mut().unlink();
        self.close();
        publish_unlink(call, name);
        let removed = std::mem::take(&mut self.len);
        self.expired = 0;
        self.left_out = 0;
        self.horizon = None;
        self.lowest = Vec::new().into_iter();
        self.next = None;
        self.oldest_live = None;
        // Whoever listens to events may have made the key anew, of any type.
        match Key::open(call, name, Access::Write).value() {
            Value::Absent(key) => self.set = key.into_sorted_set(),
            Value::SortedSet(set) => {
                self.len = set.len();
                self.set = set;
            }
            Value::String(..) | Value::Other => {}
        }
        removed
    }

    /// Removes the entries that were left out, or the newest of them when they are too many, and
    /// returns their number.
    fn remove_left_out(&mut self, changes: &mut Changes) -> u64 {
        let Some(horizon) = self.horizon else {
            return 0;
        };
        let most = MAX_REMOVED;
        let members = self
            .set
            .members(End::Highest, score(horizon), f64::INFINITY, most);
        for member in &members {
            self.set.remove(&member.name);
        }
        let removed = members.len() as u64;
        self.left_out = self.left_out.saturating_sub(removed);
        self.note_removed(removed);
        self.lost_newest = true;
        self.newest = None;
        if self.left_out == 0 {
            changes.removed_after(horizon);
        } else {
            changes.removed_newest(members.len());
        }
        removed
    }

    /// Removes the oldest entries beside what has expired, as far as a call may that then adds so
    /// many, and returns their number.
    pub fn make_room(&mut self, surplus: u64, adding: u64, changes: &mut Changes) -> u64 {
        if surplus == 0 {
            return 0;
        }
        if self.expired + surplus == self.len {
            self.least_expiry = self.set.key().expiry().unwrap_or(0);
        }
        let removed = self.remove_oldest(self.expired + surplus, adding, changes);
        if removed > self.expired {
            self.oldest_live = None;
        }
        self.expired -= removed.min(self.expired);
        removed
    }

    fn remove_oldest(&mut self, count: u64, adding: u64, changes: &mut Changes) -> u64 {
        let budget = (MAX_REMOVED as u64 + adding).saturating_sub(self.removed);
        let count = count.min(budget);
        for removed in 0..count {
            let member = self.lowest.next().or_else(|| self.next.take()).or_else(|| {
                let most = usize::try_from(count - removed).unwrap_or(usize::MAX);
                let (all, end) = ((f64::NEG_INFINITY, f64::INFINITY), End::Lowest);
                self.lowest = self.set.members(end, all.0, all.1, most).into_iter();
                self.lowest.next()
            });
            if let Some(member) = member {
                self.set.remove(&member.name);
            }
        }
        changes.removed_oldest(count);
        self.note_removed(count);
        count
    }

    fn note_removed(&mut self, entries: u64) {
        debug_assert!(entries <= self.len);
        self.len = self.len.saturating_sub(entries);
        self.removed += entries;
    }

    /// The time of the newest entry up to a time.
    pub fn newest_up_to(&self, time_limit: Micros) -> Option<Micros> {
        let max = score(time_limit);
        let newest = self.set.members(End::Highest, f64::NEG_INFINITY, max, 1);
        newest.first().map(|member| time(member.score))
    }

    /// Adds so many entries from an id on.
    pub fn add(&mut self, id: Micros, units: u64, changes: &mut Changes) -> Result<(), Error> {
        // Later than any score that is exact there is only what somebody else wrote.
        let id = id.min(MAX_TIME);
        let mut stamp = id;
        for _ in 0..units {
            let name = OwnedString::digits(stamp);
            if !self.set.add(score(stamp), &name) {
                return Err(Error::Internal);
            }
            changes.added(name);
            stamp += 1;
        }
        self.len += units;
        self.newest = self.newest.max(Some(stamp - 1));
        self.oldest_live = match self.oldest_live {
            Some(oldest) => Some(oldest.min(id)),
            None => (self.live() == units).then_some(id),
        };
        Ok(())
    }

    /// Lets the key expire when its newest entry is out of a window, unless it lives longer.
    pub fn expire(&mut self, window: Window, extend: bool, changes: &mut Changes) {
        if !(extend || self.lost_newest) || self.len == 0 {
            return;
        }
        let newest = self
            .newest
            .or_else(|| self.set.end(End::Highest).map(|last| time(last.score)));
        let at_ms = window.expiry_of(newest.unwrap_or(0)).max(self.least_expiry);
        expire_key(self.set.key_mut(), at_ms, self.lost_newest, changes);
    }

    /// Removes the entries of an id beyond the first `keep` of `units`, and returns their number.
    pub fn refund(&mut self, id: Micros, units: Units, keep: u64, changes: &mut Changes) -> u64 {
        let offset = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        let first = id.saturating_add(offset(keep));
        let last = id.saturating_add(offset(units.get())).saturating_sub(1);
        if first > last || last > MAX_TIME {
            return 0;
        }
        let (above, max) = (score(first - 1), score(last));
        let members = self.set.members(End::Lowest, above, max, usize::MAX);
        for member in &members {
            self.set.remove(&member.name);
        }
        let removed = members.len() as u64;
        if removed > 0 {
            self.note_removed(removed);
            changes.refunded(first, last, self.len == 0);
        }
        removed
    }

    /// Closes the key.
    pub fn close(&mut self) {
        self.set.key_mut().close();
    }

    /// The number of entries after one time and up to another.
    fn count(&self, after: Option<Micros>, up_to: Option<Micros>) -> Result<u64, Error> {
        let min = after.map_or("-inf".to_owned(), |after| format!("({after}"));
        let max = up_to.map_or("+inf".to_owned(), |up_to| up_to.to_string());
        let count = self.set.count(&min, &max);
        count.ok_or(Error::Internal)
    }
}

/// Whether a member is of the stored form: decimal digits of its score.
fn is_entry(member: &Member) -> bool {
    decimal::integer(member.name.bytes())
        .and_then(|stamp| Micros::try_from(stamp).ok())
        .is_some_and(|stamp| stamp <= MAX_TIME && score(stamp).total_cmp(&member.score).is_eq())
}

/// A time as a score, exact up to `MAX_TIME`.
#[allow(clippy::cast_precision_loss)]
fn score(time: Micros) -> f64 {
    time as f64
}

/// A score as the time from which on it has passed: of a score that is no whole number, which only
/// somebody else can have written, the next one.
#[allow(clippy::cast_possible_truncation)]
fn time(score_of_entry: f64) -> Micros {
    let whole = score_of_entry as Micros;
    let passed = whole.saturating_add(i64::from(score(whole) < score_of_entry));
    passed.clamp(-FAR, FAR)
}
