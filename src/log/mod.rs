//! The log at a key: what commands and the decision see of it.
//!
//! `Log` only reads: nothing that it offers changes the key. `LogMut` is opened for a change; it
//! notes what it does and publishes it at the end, whatever way the call ends (`changes.rs`).
//!
//! From the oldest entry to the newest, a log may hold entries that
//!
//! - have expired: they are out of the call's longest window;
//! - are live;
//! - are ahead of the clock: more than one entry a microsecond, or a clock that was set back. They
//!   are live, too;
//! - are impossible: further ahead than any of this explains. They count until a denial for lack of
//!   room would be given (`decision.rs`), which leaves them out.
//!
//! A call first reads and decides, then changes. Truth never rests on the key's expiry: an entry
//! counts by its time alone.

mod sorted_set;

use crate::api::{Access, Call, Word};
use crate::changes::Changes;
use crate::decision::View;
use crate::error::Error;
use crate::rule::{Micros, Units, Window, FAR};
use sorted_set::SortedSetLog;

/// A log to read: what counts at a time, under a window.
pub struct Log<'a>(SortedSetLog<'a>);

/// A log to change.
pub struct LogMut<'a> {
    call: &'a Call<'a>,
    name: Word<'a>,
    log: Log<'a>,
    changes: Changes,
    removed: u64,
}

impl<'a> Log<'a> {
    /// Opens the log at a key for reading; entries up to the cutoff have expired.
    ///
    /// # Errors
    ///
    /// `WrongType`, or `NotALog`: somebody's leaderboard under a wrong name is refused.
    pub fn open(call: &'a Call<'a>, name: Word<'a>, cutoff: Micros) -> Result<Self, Error> {
        SortedSetLog::open(call, name, Access::Read, cutoff).map(Self)
    }
}

impl View for Log<'_> {
    fn entries(&self) -> u64 {
        self.0.entries()
    }

    fn live(&self) -> u64 {
        self.0.live()
    }

    fn live_after(&self, cutoff: Micros) -> Result<u64, Error> {
        self.0.live_after(cutoff)
    }

    fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error> {
        self.0.nth_newest(rank)
    }

    fn leave_out_after(&mut self, time: Micros) -> Result<bool, Error> {
        self.0.leave_out_after(time)
    }
}

impl<'a> LogMut<'a> {
    /// Opens the log at a key for a change; entries up to the cutoff have expired.
    ///
    /// # Errors
    ///
    /// Those of `Log::open`.
    pub fn open(call: &'a Call<'a>, name: Word<'a>, cutoff: Micros) -> Result<Self, Error> {
        Ok(Self {
            call,
            name,
            log: Log(SortedSetLog::open(call, name, Access::Write, cutoff)?),
            changes: Changes::default(),
            removed: 0,
        })
    }

    /// The same without a time: no entry has expired.
    pub fn open_whole(call: &'a Call<'a>, name: Word<'a>) -> Result<Self, Error> {
        Self::open(call, name, -FAR)
    }

    /// The log as a decision reads it.
    pub fn view(&mut self) -> &mut Log<'a> {
        &mut self.log
    }

    /// Units recorded so far.
    pub fn added(&self) -> u64 {
        self.changes.additions()
    }

    /// Units removed so far, but for those that were refunded.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Removes what has expired and what was left out, as far as a call may that then adds so many
    /// units; the rest stays out of account.
    pub fn settle(&mut self, adding: u64) {
        let Self { log, changes, .. } = self;
        self.removed += if log.0.live() == 0 {
            log.0.unlink()
        } else {
            log.0.remove_left_out(changes) + log.0.remove_expired(adding, changes)
        };
    }

    /// Records units at the first free run of microseconds from `now` on, and returns their id.
    pub fn record(&mut self, now: Micros, units: Units, window: Window) -> Result<Micros, Error> {
        self.add(now, units.get(), window)
    }

    /// Records a denied attempt among the newest `most` units, `most` not being 0.
    ///
    /// To make room, the oldest units go that are not ahead of the clock: what is ahead was granted
    /// or denied, too, and is the newest of the log once the clock has come there. Where the attempt
    /// itself would be pushed out by it, nothing is recorded.
    pub fn record_denied(
        &mut self,
        now: Micros,
        units: Units,
        most: u64,
        window: Window,
    ) -> Result<(), Error> {
        let units = units.get().min(most);
        let log = &mut self.log.0;
        let ahead = log.live_after(now)?;
        if ahead < most {
            let past = log.live() - ahead;
            let surplus = past.saturating_sub(most - units);
            self.removed += log.make_room(surplus, units, &mut self.changes);
            self.add(now, units, window)?;
        }
        Ok(())
    }

    fn add(&mut self, now: Micros, units: u64, window: Window) -> Result<Micros, Error> {
        let log = &mut self.log.0;
        let id = log.free_run(now, units, window.horizon(now, log.entries()))?;
        log.add(id, units, &mut self.changes)?;
        Ok(id)
    }

    /// Lets the key expire when its newest entry is out of a window, unless it lives longer by
    /// another one.
    ///
    /// A call that leaves no trace does not extend the expiry, but moves it, too, after impossible
    /// entries were removed, which it may stem from.
    pub fn expire(&mut self, window: Window, extend: bool) {
        self.log.0.expire(window, extend, &mut self.changes);
    }

    /// Removes the units of an id beyond the first `keep` of `units`, and returns their number.
    pub fn refund(&mut self, id: Micros, units: Units, keep: u64) -> u64 {
        self.log.0.refund(id, units, keep, &mut self.changes)
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
        self.log.0.close();
        std::mem::take(&mut self.changes).publish(self.call, self.name);
    }
}
