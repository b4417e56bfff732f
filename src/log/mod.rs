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

mod log_mut;
mod packed;
mod sorted_set;

pub use log_mut::LogMut;

use crate::api::{Access, Call, Key, Value, Word};
use crate::changes::Changes;
use crate::decision::View;
use crate::error::Error;
use crate::rule::{Micros, Window, FAR};
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

/// Lets a key expire at a time in Unix milliseconds, unless it lives longer and may go on to.
fn expire_key(key: &mut Key, at_ms: i64, may_shorten: bool, changes: &mut Changes) {
    let current = key.expiry();
    if current.is_none_or(|current| current < at_ms || (may_shorten && current > at_ms)) {
        key.set_expiry(at_ms);
        changes.expires(at_ms);
    }
}
