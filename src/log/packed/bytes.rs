//! A packed log as bytes: what they say. Pure; `edit.rs` changes them.
//!
//! # Stored form
//!
//! All numbers are little-endian. A header of 16 bytes: the 8 bytes `slidewin`, then `base`, a u64.
//! Then 16 bytes for each call, oldest first: its time in Unix microseconds (i64), which is unique
//! and the call's id, and the running total of units up to and with it (u64, wrapping). A call's
//! units are its total less the total before it (`base` before the first); after a refund they may
//! be 0. Units up to `base` are forgotten: a total below it counts as `base` wherever one is read,
//! and is written as `base` when what follows it is written.
//!
//! So the units of a window are a difference of two totals, and a unit of a rank is found by its
//! total: both by binary search.
//!
//! No bytes make this code panic or loop: somebody may have written them. Totals that make no sense
//! give numbers that make no sense.

use crate::rule::{Micros, FAR};
use std::ops::Range;

/// The bytes of the header, and of an entry.
pub const SIZE: usize = 16;

/// The number of entries in a line of the processor's cache.
const ENTRIES_IN_A_LINE: usize = 64 / SIZE;

/// The first bytes of every packed log.
const MARK: [u8; 8] = *b"slidewin";

/// Times and running totals of a packed log, to be read.
#[derive(Clone, Copy)]
pub struct Entries<'a> {
    pub(super) base: u64,
    entries: &'a [[u8; SIZE]],
}

/// An entry's two numbers as they were written: its time and the running total.
#[allow(clippy::cast_possible_truncation)] // each is half of the bytes
pub(super) fn split(entry: &[u8; SIZE]) -> (Micros, u64) {
    let both = u128::from_le_bytes(*entry);
    ((both as u64).cast_signed(), (both >> 64) as u64)
}

/// An entry's time, whatever somebody wrote.
fn time_of(entry: &[u8; SIZE]) -> Micros {
    split(entry).0.clamp(-FAR, FAR)
}

pub(super) fn join(time: Micros, total: u64) -> [u8; SIZE] {
    (u128::from(total) << 64 | u128::from(time.cast_unsigned())).to_le_bytes()
}

/// The header of a log that has forgotten so many units.
pub fn header(base: u64) -> [u8; SIZE] {
    join(Micros::from_le_bytes(MARK), base)
}

/// Whether a string may be a packed log by its length alone.
pub fn may_be_log(len: usize) -> bool {
    len >= SIZE && len.is_multiple_of(SIZE)
}

impl<'a> Entries<'a> {
    /// The entries of a packed log; `None` when the bytes are something else.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let ours = may_be_log(bytes.len()) && bytes.starts_with(&MARK);
        ours.then(|| Self::of(bytes))
    }

    /// The entries of bytes that are known to be a packed log; none of no bytes, for a new log.
    pub fn of(bytes: &'a [u8]) -> Self {
        let (blocks, _) = bytes.as_chunks();
        let (base, entries) = match blocks {
            [header, entries @ ..] => (split(header).1, entries),
            [] => (0, blocks),
        };
        Self { base, entries }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The time of an entry.
    pub fn time(&self, index: usize) -> Option<Micros> {
        self.entries.get(index).map(time_of)
    }

    /// The units of the first `count` entries that are not forgotten.
    pub fn units_of_first(&self, count: usize) -> u64 {
        let last = count.checked_sub(1).and_then(|last| self.entries.get(last));
        last.map_or(0, |entry| self.above_base(entry))
    }

    /// An entry's running total above the base.
    fn above_base(&self, entry: &[u8; SIZE]) -> u64 {
        at_least(self.base, split(entry).1).wrapping_sub(self.base)
    }

    /// The units of one entry.
    pub fn units(&self, index: usize) -> u64 {
        let up_to = self.units_of_first(index.saturating_add(1));
        up_to.saturating_sub(self.units_of_first(index))
    }

    /// The units of a range of entries.
    pub fn units_of(&self, range: &Range<usize>) -> u64 {
        let before = self.units_of_first(range.start);
        self.units_of_first(range.end).saturating_sub(before)
    }

    /// The number of entries up to a time.
    pub fn up_to(&self, time: Micros) -> usize {
        match self.entries {
            // Mostly the clock is later than the newest entry.
            [.., newest] if time_of(newest) <= time => self.len(),
            [oldest, .., newest] => self.search(time, time_of(oldest)..time_of(newest)),
            _ => 0,
        }
    }

    /// The number of entries up to a time before that of the newest; `all` are the times of both ends.
    ///
    /// Each look at another part of a log is a miss of the cache, so the search goes outwards from
    /// where the time would be if calls came evenly; it bisects what is left of a wrong guess.
    fn search(&self, time: Micros, all: Range<Micros>) -> usize {
        let [before, whole] =
            [time - all.start, all.end - all.start].map(|span| span.max(0).unsigned_abs());
        let guess = u128::from(before) * self.len() as u128 / u128::from(whole.max(1));
        let (mut low, mut high) = (0, self.len());
        let (mut probe, mut step) = (usize::try_from(guess).unwrap_or(high), ENTRIES_IN_A_LINE);
        while low < high {
            if probe < low || probe >= high {
                probe = usize::midpoint(low, high);
            }
            if self.time(probe).is_some_and(|entry| entry <= time) {
                low = probe + 1;
                probe = low.saturating_add(step);
            } else {
                high = probe;
                probe = high.saturating_sub(step);
            }
            step = step.saturating_mul(2);
        }
        low
    }

    /// The time of the unit that is so many units before the end of a range.
    pub fn nth_newest(&self, range: &Range<usize>, rank: u64) -> Option<Micros> {
        let total = self.units_of_first(range.end).checked_sub(rank)?;
        let entries = self.entries.get(range.clone())?;
        let before = entries.partition_point(|entry| self.above_base(entry) < total);
        entries.get(before).map(time_of)
    }

    /// The first microsecond at a time or after it that no entry has.
    pub fn free_from(&self, start: Micros) -> Micros {
        if self
            .entries
            .last()
            .is_none_or(|newest| time_of(newest) < start)
        {
            return start;
        }
        let later = self.entries.get(self.up_to(start - 1)..);
        let later = later.unwrap_or_default();
        // In a run of taken microseconds each entry is as far from the start as from the first one.
        let (mut taken, mut free) = (0, later.len());
        while taken < free {
            let middle = usize::midpoint(taken, free);
            let in_run = |entry| time_of(entry) - start == signed(middle);
            if later.get(middle).is_some_and(in_run) {
                taken = middle + 1;
            } else {
                free = middle;
            }
        }
        start + signed(taken)
    }

    /// How many of the first `count` entries no longer count: those that have expired, and after them
    /// those that are forgotten, which hold no unit above the base.
    pub fn forgotten(&self, expired: usize, count: usize) -> usize {
        let first = self.entries.get(expired..count).unwrap_or_default();
        let is_forgotten = |entry: &_| self.above_base(entry) == 0;
        match first.first() {
            // Mostly none is, and the search for expired entries has just read this one.
            Some(entry) if is_forgotten(entry) => expired + first.partition_point(is_forgotten),
            _ => expired,
        }
    }

    /// How many entries of a range hold no unit.
    pub fn without_units(&self, range: Range<usize>) -> usize {
        let mut before = self.units_of_first(range.start);
        let entries = self.entries.get(range).unwrap_or_default();
        let empty = entries.iter().filter(|entry| {
            let total = self.above_base(entry);
            std::mem::replace(&mut before, total) >= total
        });
        empty.count()
    }

    /// The index of the entry of an id.
    pub fn find(&self, id: Micros) -> Option<usize> {
        let index = self.up_to(id - 1);
        (self.time(index) == Some(id)).then_some(index)
    }

    /// The running total before an entry, as it is written.
    pub(super) fn total_before(&self, index: usize) -> u64 {
        self.base.wrapping_add(self.units_of_first(index))
    }
}

/// A number of entries as a span of microseconds.
fn signed(entries: usize) -> Micros {
    Micros::try_from(entries).unwrap_or(FAR)
}

/// A total, or the base where it is below.
pub(super) fn at_least(base: u64, total: u64) -> u64 {
    // The difference to a total below the base wraps to a negative number.
    if total.wrapping_sub(base).cast_signed() < 0 {
        base
    } else {
        total
    }
}

#[cfg(test)]
mod tests;
