//! The log: one key's sorted set, its stored form, and every change to it.
//!
//! # Stored form
//!
//! An entry is one unit. Its score is a Unix time in whole microseconds, its member the same number
//! in decimal digits, so nothing else need be stored: `ZCARD` is the number of units, `ZRANGE`
//! their times, `DEL` a reset. Integers on both sides keep a small log in Redis' compact encoding,
//! at about 21 bytes an entry. Members are unique: a stamp that is taken moves on to the next free
//! microsecond, so two attempts at one instant count twice.
//!
//! The key expires when its newest entry is out of the longest window that a call named. Truth
//! never rests on that: an entry counts by its score alone.
//!
//! # What counts
//!
//! From the oldest entry to the newest, a log may hold entries that
//!
//! - have expired: run out, and too many to be removed at once;
//! - are live;
//! - are untrue: more than a window ahead of the clock, which was set back. These count like live
//!   ones until a denial would rest on them.
//!
//! A `Log` notes what it changes and publishes it when dropped, whatever way the call ends: see
//! `changes.rs`.

use crate::api::{digits, Access, Member, SortedSet};
use crate::changes::Changes;
use crate::decimal;
use crate::error::Error;
use crate::rule::{Micros, Window, MAX_TIME};
use crate::stats;
use redis_module::{CallOptionsBuilder, CallReply, CallResult, Context, RedisString};

/// The most entries that one call removes beyond those that it adds, so that none holds the server
/// for long.
const MAX_REMOVED: u64 = 1_000;

/// The most entries to walk over; a command that goes by rank costs as much.
const MAX_WALK: u64 = 64;

/// A sorted set in the stored form, or an absent key.
pub struct Log<'a> {
    ctx: &'a Context,
    name: &'a RedisString,
    set: SortedSet<'a>,
    /// All entries.
    len: u64,
    /// The oldest entry as it was when the log was opened, for the first removal.
    oldest: Option<Member>,
    /// Entries up to this time are removed or counted as expired.
    cutoff: Micros,
    /// How many of the oldest entries have expired.
    expired: u64,
    /// How many of the newest entries are untrue.
    untrue: u64,
    /// The time of the newest entry, once it was needed.
    newest: Option<Micros>,
    changes: Changes,
}

impl<'a> Log<'a> {
    /// Opens the log at a key.
    ///
    /// # Errors
    ///
    /// `WrongType`, or `NotALog` when the lowest entry is not of the stored form: somebody's
    /// leaderboard under a wrong name is refused, not trimmed away.
    pub fn open(ctx: &'a Context, name: &'a RedisString, access: Access) -> Result<Self, Error> {
        let refused = |error| {
            stats::REFUSED_KEYS.add(1);
            error
        };
        let set = SortedSet::open(ctx, name, access).ok_or_else(|| refused(Error::WrongType))?;
        let oldest = set.first_up_to(f64::INFINITY);
        if oldest.as_ref().is_some_and(|member| !is_entry(member)) {
            return Err(refused(Error::NotALog));
        }
        Ok(Self {
            ctx,
            name,
            len: set.len(),
            oldest,
            cutoff: Micros::MIN,
            expired: 0,
            untrue: 0,
            newest: None,
            changes: Changes::default(),
            set,
        })
    }

    /// Whether there are entries after a time.
    pub fn has_after(&self, time: Micros) -> bool {
        self.set.has_above(score(time))
    }

    /// Entries that are neither expired nor untrue.
    pub fn live(&self) -> u64 {
        self.len
            .saturating_sub(self.expired)
            .saturating_sub(self.untrue)
    }

    /// Of these, the entries after a time.
    pub fn live_after(&self, cutoff: Micros) -> Result<u64, Error> {
        if cutoff <= self.cutoff || !self.set.has_up_to(score(cutoff)) {
            Ok(self.live())
        } else if self.has_after(cutoff) {
            let after = self.count(Some(cutoff), None)?;
            Ok(after.saturating_sub(self.untrue))
        } else {
            Ok(0)
        }
    }

    /// Whether the entry of a rank below `live` is after a time.
    pub fn is_after(&self, cutoff: Micros, rank: u64) -> Result<bool, Error> {
        Ok(cutoff <= self.cutoff || self.nth_newest(rank)? > Some(cutoff))
    }

    /// The time of an entry by its rank: 0 is the newest one that is not untrue.
    pub fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error> {
        let newer = self.untrue.saturating_add(rank);
        let time_of = |member: Member| time(member.score);
        match self.len.checked_sub(newer) {
            None | Some(0) => Ok(None),
            Some(1) => Ok(self.set.first_up_to(f64::INFINITY).map(time_of)),
            Some(_) if newer == 0 => Ok(self.newest.or_else(|| self.set.last().map(time_of))),
            Some(_) if newer <= MAX_WALK => Ok(self.set.nth_last(newer).map(time_of)),
            Some(index) => self.time_at(index.saturating_sub(1)).map(Some),
        }
    }

    /// Entries removed so far.
    pub fn removed(&self) -> u64 {
        self.changes.removed
    }

    /// Leaves entries up to a time out of account, removing nothing.
    pub fn overlook_expired(&mut self, cutoff: Micros) -> Result<(), Error> {
        if self.set.has_up_to(score(cutoff)) {
            self.expired = self.count(None, Some(cutoff))?;
        }
        self.cutoff = cutoff;
        Ok(())
    }

    /// Leaves entries after a time out of account, removing nothing.
    pub fn overlook_untrue(&mut self, horizon: Micros) -> Result<(), Error> {
        self.untrue = self.count(Some(horizon), None)?;
        Ok(())
    }

    /// Removes entries up to a time; of more than `MAX_REMOVED` the rest is left out of account.
    pub fn trim(&mut self, cutoff: Micros) -> Result<(), Error> {
        let up_to_cutoff = |member: &Member| time(member.score) <= cutoff;
        let mut expired = self.oldest.take().filter(up_to_cutoff);
        while let Some(member) = expired {
            // Mostly one entry has run out; whether all have is worth a question at the second one.
            if self.len == 1 || (self.changes.removed == 1 && !self.has_after(cutoff)) {
                self.unlink();
                break;
            }
            if self.changes.removed >= MAX_REMOVED {
                return self.overlook_expired(cutoff);
            }
            self.remove_oldest(&member);
            expired = self.set.first_up_to(score(cutoff));
        }
        self.cutoff = cutoff;
        Ok(())
    }

    /// Removes entries after a time; of too many the rest is left out of account.
    pub fn remove_untrue(&mut self, horizon: Micros) -> Result<(), Error> {
        self.overlook_untrue(horizon)?;
        if self.live() == 0 {
            self.unlink();
        }
        while self.untrue > 0 && self.changes.removed < MAX_REMOVED {
            self.remove_newest();
            self.untrue = self.untrue.saturating_sub(1);
        }
        if self.untrue == 0 && self.changes.removed_newest > 0 {
            self.changes.removed_after = Some(horizon);
        }
        Ok(())
    }

    /// Removes what has expired and all but the newest `keep` live entries, as far as a call that
    /// then adds `adding` may.
    pub fn make_room(&mut self, keep: u64, adding: u64) {
        if keep == 0 && self.untrue == 0 {
            self.unlink();
        }
        let surplus = self
            .live()
            .saturating_sub(keep)
            .saturating_add(self.expired);
        let budget = MAX_REMOVED
            .saturating_add(adding)
            .saturating_sub(self.changes.removed);
        for _ in 0..surplus.min(budget) {
            if let Some(member) = self.set.first_up_to(f64::INFINITY) {
                self.remove_oldest(&member);
            }
        }
    }

    /// Adds entries at `now` and the microseconds after it, each at the next one that is free.
    pub fn record(&mut self, now: Micros, units: u64) -> Result<(), Error> {
        let mut stamp = now;
        for _ in 0..units {
            let mut name = digits(stamp);
            while !self.set.add(score(stamp), &name)? {
                stamp = self.free_after(stamp)?;
                name = digits(stamp);
            }
            self.changes.added.push(name);
            self.len = self.len.saturating_add(1);
            self.newest = Some(stamp);
            stamp = stamp.saturating_add(1);
        }
        if self.newest.is_some_and(|newest| self.has_after(newest)) {
            // The clock was set back.
            self.newest = self.set.last().map(|member| time(member.score));
        }
        Ok(())
    }

    /// After entries were added: lets the key expire when its newest one is out of a window, unless
    /// it lives longer.
    pub fn expire_after(&mut self, window: Window) {
        let Some(newest) = self.newest else { return };
        let leaves_at = window.leaves_at(newest).max(0).unsigned_abs();
        let at_ms = leaves_at
            .div_ceil(1_000)
            .try_into()
            .unwrap_or(i64::MAX)
            .max(self.changes.lost_expiry.unwrap_or(0));
        if self.set.expiry().is_none_or(|current| current < at_ms) {
            self.set.set_expiry(at_ms);
            self.changes.expiry = Some(at_ms);
        }
    }

    /// Removes the newest entries, as many as there are up to `units`, and returns their number.
    pub fn take_back(&mut self, units: u64) -> u64 {
        if units >= self.len {
            self.unlink();
        } else {
            for _ in 0..units {
                self.remove_newest();
            }
        }
        self.removed()
    }

    fn remove_oldest(&mut self, member: &Member) {
        self.set.remove(&member.name);
        self.expired = self.expired.saturating_sub(1);
        self.changes.removed_oldest = self.changes.removed_oldest.saturating_add(1);
        self.note_removed(1);
    }

    fn remove_newest(&mut self) {
        if let Some(member) = self.set.last() {
            self.set.remove(&member.name);
            self.changes.removed_newest = self.changes.removed_newest.saturating_add(1);
            self.note_removed(1);
        }
    }

    fn unlink(&mut self) {
        if self.len > 0 {
            self.changes = Changes {
                unlinked: true,
                lost_expiry: self.set.expiry(),
                removed: self.changes.removed,
                ..Changes::default()
            };
            self.set.unlink();
            self.note_removed(self.len);
            self.expired = 0;
            self.untrue = 0;
        }
    }

    fn note_removed(&mut self, entries: u64) {
        self.len = self.len.saturating_sub(entries);
        self.changes.removed = self.changes.removed.saturating_add(entries);
    }

    /// The first free microsecond after one that is taken.
    ///
    /// All of `n` microseconds are taken exactly when `n` entries lie in them, so that a long run
    /// is skipped by doubling and halving, not by walking.
    fn free_after(&self, taken: Micros) -> Result<Micros, Error> {
        let before = taken.saturating_sub(1);
        let all_taken = |n: Micros| -> Result<bool, Error> {
            let there = self.count(Some(before), Some(before.saturating_add(n)))?;
            Ok(there >= n.unsigned_abs())
        };
        let (mut taken_run, mut free_run) = (1, 2);
        while all_taken(free_run)? {
            taken_run = free_run;
            free_run = free_run.saturating_mul(2);
        }
        while free_run.saturating_sub(taken_run) > 1 {
            let middle = taken_run.midpoint(free_run);
            if all_taken(middle)? {
                taken_run = middle;
            } else {
                free_run = middle;
            }
        }
        Ok(before.saturating_add(free_run))
    }

    /// The number of entries after one time and up to another.
    fn count(&self, after: Option<Micros>, up_to: Option<Micros>) -> Result<u64, Error> {
        let min = after.map_or("-inf".to_owned(), |after| format!("({after}"));
        let max = up_to.map_or("+inf".to_owned(), |up_to| up_to.to_string());
        match self.read("ZCOUNT", &[min.as_bytes(), max.as_bytes()]) {
            Ok(CallReply::I64(count)) => count.to_i64().try_into().map_err(|_| Error::Internal),
            _ => Err(Error::Internal),
        }
    }

    /// The time of the entry at an index, 0 being the oldest.
    fn time_at(&self, index: u64) -> Result<Micros, Error> {
        let index = index.to_string();
        let reply = self.read(
            "ZRANGE",
            &[index.as_bytes(), index.as_bytes(), b"WITHSCORES"],
        );
        let Ok(CallReply::Array(reply)) = reply else {
            return Err(Error::Internal);
        };
        let score = match reply.get(1) {
            Some(Ok(CallReply::String(score))) => score.to_string(),
            _ => None,
        };
        let score = score.and_then(|score| score.parse().ok());
        score.map(time).ok_or(Error::Internal)
    }

    /// Runs a read command on the key: what the module API has no call for.
    fn read(&self, command: &str, arguments: &[&[u8]]) -> CallResult<'static> {
        let options = CallOptionsBuilder::new().build();
        let words: Vec<&[u8]> = std::iter::once(self.name.as_slice())
            .chain(arguments.iter().copied())
            .collect();
        self.ctx.call_ext(command, &options, words.as_slice())
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        // A listener of another module may change the key.
        self.set.close();
        std::mem::take(&mut self.changes).publish(self.ctx, self.name);
    }
}

/// Whether a member is of the stored form: decimal digits of its score.
fn is_entry(member: &Member) -> bool {
    decimal::integer(member.name.as_slice())
        .and_then(|stamp| Micros::try_from(stamp).ok())
        .is_some_and(|stamp| stamp <= MAX_TIME && score(stamp).total_cmp(&member.score).is_eq())
}

/// A time as a score, exact up to `MAX_TIME`.
#[allow(clippy::cast_precision_loss)]
fn score(time: Micros) -> f64 {
    time as f64
}

/// A score as the time from which on it has passed: of a score that is no whole number, which only
/// somebody else can have written, the next one. Infinities become the ends of the range.
#[allow(clippy::cast_possible_truncation)]
fn time(score_of_entry: f64) -> Micros {
    let whole = score_of_entry as Micros;
    if score(whole) < score_of_entry {
        whole.saturating_add(1)
    } else {
        whole
    }
}
