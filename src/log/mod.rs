//! The log at a key: what commands and the decision see of it, whichever form it is stored in.
//!
//! `Log` only reads: nothing that it offers changes the key. `LogMut` is opened for a change; it
//! notes what it does and publishes it at the end, whatever way the call ends (`changes.rs`).
//!
//! From the oldest entry to the newest, a log may hold entries that
//!
//! - have expired: they are out of the call's longest window;
//! - are live;
//! - are ahead of the clock: more than one entry a microsecond, a turn, or a clock that was set back.
//!   They are live, too;
//! - are impossible: further ahead than any of this explains. They count until a denial for lack of
//!   room would be given (`decision.rs`), which leaves them out.
//!
//! A call first reads and decides, then changes. Truth never rests on the key's expiry: an entry
//! counts by its time alone.

mod packed;
mod sorted_set;

use crate::api::{Access, Call, Key, Value, Word};
use crate::changes::Changes;
use crate::decision::View;
use crate::error::Error;
use crate::rule::{Micros, Units, Window, FAR};
use crate::stats;
use packed::PackedLog;
use sorted_set::SortedSetLog;

/// How the log of a key that does not exist yet is to be stored; an existing one keeps its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A sorted set, an entry a unit: what any tool reads.
    SortedSet,
    /// A string, 16 bytes a call.
    Packed,
}

/// The time of a call, and up to when entries have expired by then.
#[derive(Clone, Copy)]
pub struct Moment {
    now: Micros,
    cutoff: Micros,
}

impl Moment {
    /// A time at which entries have expired that are out of a window.
    pub fn new(now: Micros, longest: Window) -> Self {
        let cutoff = longest.cutoff(now);
        Self { now, cutoff }
    }

    /// A time at which no entry has expired.
    pub fn without_window(now: Micros) -> Self {
        let cutoff = -FAR - 1;
        Self { now, cutoff }
    }
}

/// A log to read: what counts at a moment.
pub struct Log<'a>(Stored<'a>);

enum Stored<'a> {
    SortedSet(SortedSetLog<'a>),
    Packed(PackedLog<'a>),
}

/// A log to change.
pub struct LogMut<'a> {
    call: &'a Call<'a>,
    name: Word<'a>,
    log: Log<'a>,
    changes: Changes,
    recorded: u64,
    removed: u64,
}

impl<'a> Log<'a> {
    /// Opens the log at a key for reading.
    ///
    /// # Errors
    ///
    /// `WrongType`, or `NotALog`: somebody's leaderboard under a wrong name is refused.
    pub fn open(call: &'a Call<'a>, name: Word<'a>, at: Moment) -> Result<Self, Error> {
        Self::open_for(call, name, Access::Read, at, Form::SortedSet)
    }

    fn open_for(
        call: &'a Call<'a>,
        name: Word<'a>,
        access: Access,
        at: Moment,
        new: Form,
    ) -> Result<Self, Error> {
        let packed = |log: PackedLog<'a>| Ok(Stored::Packed(log));
        let sorted_set = |set| SortedSetLog::open(set, at.cutoff).map(Stored::SortedSet);
        let stored = match (Key::open(call, name, access).value(), new) {
            (Value::SortedSet(set), _) => sorted_set(set),
            (Value::Absent(key), Form::SortedSet) => sorted_set(key.into_sorted_set()),
            (Value::Absent(key), Form::Packed) => packed(PackedLog::absent(key, at.now)),
            (Value::String(key, len), _) => {
                PackedLog::parse(key, len, at.cutoff, at.now).map_or(Err(Error::WrongType), packed)
            }
            (Value::Other, _) => Err(Error::WrongType),
        };
        if stored.is_err() {
            stats::REFUSED_KEYS.add(1);
        }
        stored.map(Self)
    }

    /// The newest calls, at most so many: of each its id and its units. (In a sorted set each unit
    /// stands for itself.)
    pub fn newest(&self, count: usize) -> Vec<(Micros, u64)> {
        match &self.0 {
            Stored::SortedSet(log) => log.newest(count),
            Stored::Packed(log) => log.newest(count),
        }
    }
}

impl View for Log<'_> {
    fn entries(&self) -> u64 {
        match &self.0 {
            Stored::SortedSet(log) => log.entries(),
            Stored::Packed(log) => log.entries(),
        }
    }

    fn live(&self) -> u64 {
        match &self.0 {
            Stored::SortedSet(log) => log.live(),
            Stored::Packed(log) => log.live(),
        }
    }

    fn live_after(&self, cutoff: Micros) -> Result<u64, Error> {
        match &self.0 {
            Stored::SortedSet(log) => log.live_after(cutoff),
            Stored::Packed(log) => Ok(log.live_after(cutoff)),
        }
    }

    fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error> {
        match &self.0 {
            Stored::SortedSet(log) => log.nth_newest(rank),
            Stored::Packed(log) => Ok(log.nth_newest(rank)),
        }
    }

    fn leave_out_after(&mut self, time: Micros) -> Result<bool, Error> {
        match &mut self.0 {
            Stored::SortedSet(log) => log.leave_out_after(time),
            Stored::Packed(log) => Ok(log.leave_out_after(time)),
        }
    }
}

impl<'a> LogMut<'a> {
    /// Opens the log at a key for a change.
    ///
    /// # Errors
    ///
    /// Those of `Log::open`.
    pub fn open(call: &'a Call<'a>, name: Word<'a>, at: Moment, new: Form) -> Result<Self, Error> {
        Ok(Self {
            call,
            name,
            log: Log::open_for(call, name, Access::Write, at, new)?,
            changes: Changes::default(),
            recorded: 0,
            removed: 0,
        })
    }

    /// The log as a decision reads it.
    pub fn view(&mut self) -> &mut Log<'a> {
        &mut self.log
    }

    /// The form that the log is, or will be, stored in.
    pub fn form(&self) -> Form {
        match self.log.0 {
            Stored::SortedSet(_) => Form::SortedSet,
            Stored::Packed(_) => Form::Packed,
        }
    }

    /// Refuses a cost that this form of the log does not take.
    ///
    /// # Errors
    ///
    /// `CostNeedsPacked` where each unit would be an entry.
    pub fn check_cost(&self, units: Units) -> Result<(), Error> {
        if self.form() == Form::SortedSet && units.get() > Units::MAX_ENTRIES {
            return Err(Error::CostNeedsPacked);
        }
        Ok(())
    }

    /// Refuses to record where there is no space for one entry more.
    ///
    /// # Errors
    ///
    /// `LogFull`, of a packed log of 512 MB.
    pub fn check_space(&self) -> Result<(), Error> {
        match &self.log.0 {
            Stored::Packed(log) if !log.has_space() => Err(Error::LogFull),
            _ => Ok(()),
        }
    }

    /// Units recorded so far.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Units removed so far, but for those that were refunded.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Removes what has expired and what was left out, as far as a call may that then adds so many
    /// units; the rest stays out of account.
    pub fn settle(&mut self, adding: u64) {
        let removed = match &mut self.log.0 {
            Stored::SortedSet(log) => log.settle(adding, &mut self.changes),
            Stored::Packed(log) => log.settle(),
        };
        self.removed = self.removed.saturating_add(removed);
    }

    /// The first of the free microseconds that a call of so many units takes, from a time on: the id
    /// that it gets.
    ///
    /// `longest` tells what is impossible, for where free ones are hard to find in a sorted set.
    pub fn free_from(
        &mut self,
        time: Micros,
        units: Units,
        longest: Window,
    ) -> Result<Micros, Error> {
        match &mut self.log.0 {
            Stored::SortedSet(log) => {
                let horizon = longest.horizon(time, log.entries());
                log.free_run(time, units.get(), horizon)
            }
            Stored::Packed(log) => Ok(log.free_from(time)),
        }
    }

    /// The microsecond after the newest entry that is not impossible, or `now` if that is later.
    pub fn after_newest(&self, now: Micros, longest: Window) -> Micros {
        let horizon = longest.horizon(now, self.log.entries());
        let newest = match &self.log.0 {
            Stored::SortedSet(log) => log.newest_up_to(horizon),
            Stored::Packed(log) => log.newest_up_to(horizon),
        };
        newest.map_or(now, |newest| now.max(newest + 1))
    }

    /// Records units at an id that is free.
    pub fn record(&mut self, id: Micros, units: Units) -> Result<(), Error> {
        self.recorded += units.get();
        match &mut self.log.0 {
            Stored::SortedSet(log) => log.add(id, units.get(), &mut self.changes),
            Stored::Packed(log) => log.add(id, units.get()),
        }
    }

    /// Records a denied attempt among the newest `most` units, `most` not being 0.
    ///
    /// To make room, the oldest units go that are not ahead of the clock: what is ahead was granted
    /// or denied, too, and is the newest of the log once the clock has come there. A sorted set
    /// takes no more of it where that much is ahead: a flood of large costs would stack up there.
    pub fn record_denied(
        &mut self,
        now: Micros,
        units: Units,
        most: u64,
        longest: Window,
    ) -> Result<(), Error> {
        let units = units.at_most(most);
        let ahead = self.log.live_after(now)?;
        if self.form() == Form::SortedSet && ahead >= most {
            return Ok(());
        }
        // Totals of a packed log that somebody wrote may make no sense.
        let past = self.log.live().saturating_sub(ahead);
        let surplus = past.saturating_sub(most - units.get());
        let removed = match &mut self.log.0 {
            Stored::SortedSet(log) => log.make_room(surplus, units.get(), &mut self.changes),
            Stored::Packed(log) => log.make_room(surplus),
        };
        self.removed = self.removed.saturating_add(removed);
        let id = self.free_from(now, units, longest)?;
        self.record(id, units)
    }

    /// Lets the key expire when its newest entry is out of a window, unless it lives longer by
    /// another one.
    ///
    /// A call that leaves no trace does not extend the expiry, but moves it, too, after impossible
    /// entries were removed, which it may stem from.
    pub fn expire(&mut self, window: Window, extend: bool) {
        match &mut self.log.0 {
            Stored::SortedSet(log) => log.expire(window, extend, &mut self.changes),
            Stored::Packed(log) => log.expire(window, extend, &mut self.changes),
        }
    }

    /// Takes back what the call of an id recorded, `units`, but for the first `keep`, and returns
    /// how many it took.
    pub fn refund(&mut self, id: Micros, units: Units, keep: u64) -> u64 {
        match &mut self.log.0 {
            Stored::SortedSet(log) => log.refund(id, units, keep, &mut self.changes),
            Stored::Packed(log) => log.refund(id, keep),
        }
    }

    /// Whether nothing in the log counts any more, so that `settle` removes the key and says so at
    /// once, which it may do only while no other key is open.
    pub fn is_spent(&self) -> bool {
        match &self.log.0 {
            Stored::SortedSet(log) => log.is_spent(),
            Stored::Packed(log) => log.is_spent(),
        }
    }

    /// Closes the key: no more can be read or changed.
    pub fn close(&mut self) {
        match &mut self.log.0 {
            Stored::SortedSet(log) => log.close(),
            Stored::Packed(log) => log.close(&mut self.changes),
        }
    }

    /// Replicates and announces the changes.
    pub fn publish(self) {
        drop(self);
    }
}

impl Drop for LogMut<'_> {
    fn drop(&mut self) {
        // On every way out of a call, even after a defect: what was changed is told. First the key is
        // closed, for a listener of another module may change it.
        self.close();
        self.changes.publish(self.call, self.name);
    }
}

/// Lets a key expire at a time in Unix milliseconds, unless it lives longer and may go on to.
fn expire_key(key: &mut Key, at_ms: i64, may_shorten: bool, changes: &mut Changes) {
    let current = key.expiry();
    if current.is_none_or(|current| current < at_ms || (may_shorten && current > at_ms)) {
        key.set_expiry(at_ms);
        changes.expires(at_ms);
    }
}
