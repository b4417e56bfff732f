//! A log stored as a string of 16 bytes a call, whatever its cost (`bytes.rs`).
//!
//! Recording appends; a time below existing entries is inserted. What has run out is not removed one
//! by one: when it is half of the entries, the string is rewritten without it, so that a log is never
//! more than about twice what counts, and a rewrite is paid for by the calls before it.
//!
//! The changes of a call are noted as what part of the string differs, and told as one `APPEND`,
//! `SETRANGE` or `SET` at the end. (A long file, for one type: its positions hold only together.)

mod bytes;
mod edit;

use crate::api::{Access, Bytes, Key, OwnedString, Value};
use crate::changes::{publish_unlink, Changes, Written};
use crate::error::Error;
use crate::rule::{Micros, Window};
use bytes::{Entries, SIZE};
use std::ops::Range;

/// The least number of entries that a rewrite drops, so that small logs are rewritten rarely.
const MIN_DROPPED: usize = 16;

/// A string in the stored form, or an absent key.
pub struct PackedLog<'a> {
    bytes: Bytes<'a>,
    /// The bytes that the call found, and that are still told of.
    found: usize,
    /// The first entry that has not expired.
    start: usize,
    /// The first entry after those that count.
    end: usize,
    now: Micros,
    /// What differs from the bytes that the call found.
    differs: Differs,
    /// Whether the newest entries were removed, so that a longer expiry may stem from them.
    lost_newest: bool,
}

/// What part of the string differs.
#[derive(Default)]
struct Differs {
    all: bool,
    base: bool,
    /// From this byte on.
    tail: Option<usize>,
}

impl<'a> PackedLog<'a> {
    /// The log in a string; `None` when it is somebody else's, whose length is looked at first.
    pub fn parse(key: Key<'a>, len: usize, cutoff: Micros, now: Micros) -> Option<Self> {
        if !bytes::may_be_log(len) {
            return None;
        }
        let bytes = key.into_bytes();
        Entries::parse(bytes.get())?;
        Some(Self::new(bytes, cutoff, now))
    }

    /// The log of an absent key.
    pub fn absent(key: Key<'a>, now: Micros) -> Self {
        Self::new(key.into_bytes(), 0, now)
    }

    fn new(bytes: Bytes<'a>, cutoff: Micros, now: Micros) -> Self {
        let entries = Entries::of(bytes.get());
        Self {
            found: bytes.get().len(),
            start: entries.up_to(cutoff),
            end: entries.len(),
            now,
            differs: Differs::default(),
            lost_newest: false,
            bytes,
        }
    }

    fn entries_now(&self) -> Entries<'_> {
        Entries::of(self.bytes.get())
    }

    /// The entries that the call found.
    pub fn entries(&self) -> u64 {
        (self.found / SIZE).saturating_sub(1) as u64
    }

    /// Units that have neither expired nor been left out nor forgotten.
    pub fn live(&self) -> u64 {
        self.entries_now().units_of(&(self.start..self.end))
    }

    /// Of these, the units after a time.
    pub fn live_after(&self, cutoff: Micros) -> u64 {
        let entries = self.entries_now();
        let start = entries.up_to(cutoff).max(self.start);
        entries.units_of(&(start..self.end.max(start)))
    }

    /// The time of a live unit by its rank: 0 is the newest.
    pub fn nth_newest(&self, rank: u64) -> Option<Micros> {
        if rank >= self.live() {
            return None;
        }
        self.entries_now().nth_newest(&(self.start..self.end), rank)
    }

    /// The newest calls that hold units, at most so many: of each its id and its units.
    pub fn newest(&self, count: usize) -> Vec<(Micros, u64)> {
        let entries = self.entries_now();
        let newest = (0..entries.len()).rev().filter_map(|index| {
            let units = entries.units(index);
            Some((entries.time(index)?, units)).filter(|_| units > 0)
        });
        newest.take(count).collect()
    }

    /// Leaves entries after a time out of account; false when there are none.
    pub fn leave_out_after(&mut self, horizon: Micros) -> bool {
        let entries = self.entries_now();
        let end = entries.up_to(horizon);
        let some = end < entries.len();
        self.end = end.max(self.start);
        some
    }

    /// Whether one entry more fits into a string.
    pub fn has_space(&self) -> bool {
        self.bytes.get().len() + SIZE <= Bytes::MAX_LEN || self.rewrite_is_due()
    }

    /// Whether what can be dropped is worth a rewrite.
    fn rewrite_is_due(&self) -> bool {
        let entries = self.entries_now();
        let (len, most) = (entries.len(), entries.up_to(self.now - 1));
        if self.end < len || is_worth_a_rewrite(self.start, len) {
            return true;
        }
        if !is_worth_a_rewrite(most, len) {
            return false;
        }
        let forgotten = entries.forgotten(self.start, most);
        // Entries of 0 units are counted one by one, and so only at every 16th of the log's size.
        let step = (len.next_power_of_two() / 16).max(1);
        let refunded = || entries.without_units(forgotten..most);
        is_worth_a_rewrite(forgotten, len)
            || (len.is_multiple_of(step) && is_worth_a_rewrite(forgotten + refunded(), len))
    }

    /// Whether there are entries, none of which counts or is to stay for its id.
    pub fn is_spent(&self) -> bool {
        let entries = self.entries_now();
        entries.len() > 0
            && entries.units_of(&(self.start..self.end)) == 0
            && entries.up_to(self.now - 1) >= self.end
    }

    /// Removes what has expired, is forgotten or was left out, if that is all or a rewrite is due,
    /// and returns its units.
    pub fn settle(&mut self) -> u64 {
        if self.is_spent() {
            return self.unlink();
        }
        if !self.rewrite_is_due() {
            return 0;
        }
        let entries = self.entries_now();
        let (all, kept) = (0..entries.len(), self.start..self.end);
        let dropped = entries.units_of(&(0..kept.start)) + entries.units_of(&(kept.end..all.end));
        self.lost_newest |= kept.end < all.end;
        self.rewrite(kept);
        dropped
    }

    /// Rewrites the string with the entries of a range only, and without refunded calls of the past.
    fn rewrite(&mut self, kept: Range<usize>) {
        let used = edit::compact(self.bytes.get_mut(), kept, self.now);
        // A shorter string is never refused; if it were, the rest would count on.
        let _ = self.bytes.resize(used);
        self.differs.all = true;
        self.start = 0;
        self.end = self.entries_now().len();
    }

    /// Removes the key with all its entries, and returns their units.
    fn unlink(&mut self) -> u64 {
        let entries = self.entries_now();
        let units = entries.units_of(&(0..entries.len()));
        let (call, name) = (self.bytes.key().call(), self.bytes.key().name());
        self.bytes.unlink();
        self.bytes.close();
        publish_unlink(call, name);
        (self.found, self.start, self.end) = (0, 0, 0);
        self.differs = Differs::default();
        // Whoever listens to events may have made the key anew, of any type.
        match Key::open(call, name, Access::Write).value() {
            Value::Absent(key) => self.bytes = key.into_bytes(),
            Value::String(key, len) => {
                if let Some(log) = Self::parse(key, len, 0, self.now) {
                    *self = log;
                }
            }
            Value::SortedSet(_) | Value::Other => {}
        }
        units
    }

    /// Forgets so many of the oldest live units, and returns how many units that is with those
    /// that have expired.
    pub fn make_room(&mut self, surplus: u64) -> u64 {
        if surplus == 0 {
            return 0;
        }
        let forgotten = self.entries_now().units_of_first(self.start) + surplus;
        edit::forget(self.bytes.get_mut(), forgotten);
        self.differs.base = true;
        forgotten
    }

    /// The first free microsecond at a time or after it.
    pub fn free_from(&self, start: Micros) -> Micros {
        self.entries_now().free_from(start)
    }

    /// The time of the newest entry up to a time.
    pub fn newest_up_to(&self, time_limit: Micros) -> Option<Micros> {
        let entries = self.entries_now();
        entries.time(entries.up_to(time_limit).checked_sub(1)?)
    }

    /// Adds a call of so many units at a free microsecond.
    pub fn add(&mut self, id: Micros, units: u64) -> Result<(), Error> {
        let old = self.bytes.get().len();
        let index = self.entries_now().up_to(id);
        if !self.bytes.resize(old.max(SIZE) + SIZE) {
            return Err(Error::Internal);
        }
        let bytes = self.bytes.get_mut();
        if old == 0 {
            let (first, _) = bytes.split_at_mut(SIZE);
            first.copy_from_slice(&bytes::header(0));
        }
        edit::insert(bytes, index, id, units);
        self.touch(if old == 0 { 0 } else { (index + 1) * SIZE });
        self.end += 1;
        Ok(())
    }

    fn touch(&mut self, from: usize) {
        let tail = self.differs.tail.get_or_insert(from);
        *tail = from.min(*tail);
    }

    /// Lets the call of an id keep at most so many units, and returns how many it loses. A log in
    /// which nothing is left disappears.
    pub fn refund(&mut self, id: Micros, keep: u64) -> u64 {
        let entries = self.entries_now();
        let Some(index) = entries.find(id) else {
            return 0;
        };
        let units = entries.units(index).saturating_sub(keep);
        if units > 0 {
            edit::reduce(self.bytes.get_mut(), index, units);
            self.touch((index + 1) * SIZE);
            self.settle_refund();
        }
        units
    }

    /// Removes a log in which nothing is left, or rewrites it without what was refunded.
    fn settle_refund(&mut self) {
        let entries = self.entries_now();
        let past = entries.up_to(self.now - 1);
        let dropped = entries.without_units(0..past);
        let nothing_left = entries.units_of_first(entries.len()) == 0 && past == entries.len();
        if nothing_left {
            self.unlink();
        } else if is_worth_a_rewrite(dropped, entries.len()) {
            self.rewrite(0..entries.len());
        }
    }

    /// Lets the key expire when its newest entry is out of a window, unless it lives longer.
    pub fn expire(&mut self, window: Window, extend: bool, changes: &mut Changes) {
        let entries = self.entries_now();
        let newest = entries
            .len()
            .checked_sub(1)
            .and_then(|last| entries.time(last));
        if let Some(newest) = newest.filter(|_| extend || self.lost_newest) {
            let at_ms = window.expiry_of(newest);
            super::expire_key(self.bytes.key_mut(), at_ms, self.lost_newest, changes);
        }
    }

    /// Notes what part of the string differs, and closes the key.
    pub fn close(&mut self, changes: &mut Changes) {
        let bytes = self.bytes.get();
        let part = |from: usize| OwnedString::copy(bytes.get(from..).unwrap_or_default());
        let offset = |from: usize| i64::try_from(from).unwrap_or(i64::MAX);
        if self.differs.all {
            // A new value has no expiry; it keeps the one that the string has.
            changes.wrote(Written::Set(part(0)), self.bytes.key().expiry());
        } else {
            if self.differs.base {
                let base = OwnedString::copy(bytes.get(SIZE / 2..SIZE).unwrap_or_default());
                changes.wrote(Written::SetRange(offset(SIZE / 2), base), None);
            }
            match self.differs.tail {
                Some(from) if from == self.found => {
                    changes.wrote(Written::Append(part(from)), None);
                }
                Some(from) => changes.wrote(Written::SetRange(offset(from), part(from)), None),
                None => {}
            }
        }
        self.differs = Differs::default();
        self.bytes.close();
    }
}

fn is_worth_a_rewrite(dropped: usize, entries: usize) -> bool {
    dropped >= MIN_DROPPED && dropped * 2 >= entries
}
