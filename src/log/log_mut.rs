//! A log to change.

use super::{Form, Log, Moment, Stored};
use crate::api::{Access, Call, Word};
use crate::changes::Changes;
use crate::decision::View;
use crate::error::Error;
use crate::rule::{Micros, Units, Window};
use crate::stats;

/// A log to change.
pub struct LogMut<'a> {
    call: &'a Call<'a>,
    name: Word<'a>,
    log: Log<'a>,
    changes: Changes,
    recorded: u64,
    removed: u64,
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
        stats::RECORDED.add(self.recorded);
        stats::TRIMMED.add(self.removed);
        self.changes.publish(self.call, self.name);
    }
}
