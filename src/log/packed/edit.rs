//! Changes to the bytes of a packed log (`bytes.rs`). Pure.
//!
//! No bytes make this code panic or loop: somebody else may have written them.

use super::bytes::{at_least, header, join, split, Entries, SIZE};
use crate::rule::Micros;
use std::ops::Range;

/// Inserts an entry at an index, in bytes that are already one entry longer: later entries move up,
/// and their totals grow by its units.
pub fn insert(bytes: &mut [u8], index: usize, time: Micros, units: u64) {
    let Some(old) = bytes
        .len()
        .checked_sub(SIZE)
        .and_then(|len| bytes.get(..len))
    else {
        return;
    };
    let log = Entries::of(old);
    let (base, total) = (log.base, log.total_before(index).wrapping_add(units));
    let (at, old_end) = ((index + 1) * SIZE, bytes.len() - SIZE);
    if at < old_end {
        bytes.copy_within(at..old_end, at + SIZE);
        shift_totals(bytes, base, index + 1, units);
    }
    if let Some(place) = bytes.get_mut(at..at + SIZE) {
        place.copy_from_slice(&join(time, total));
    }
}

/// Takes units from the call at an index.
pub fn reduce(bytes: &mut [u8], index: usize, units: u64) {
    if let Some(base) = Entries::parse(bytes).map(|log| log.base) {
        shift_totals(bytes, base, index, units.wrapping_neg());
    }
}

/// Forgets so many of the oldest units beside those that are forgotten.
pub fn forget(bytes: &mut [u8], units: u64) {
    if let Some(base) = Entries::parse(bytes).map(|log| log.base.wrapping_add(units)) {
        if let Some(place) = bytes.get_mut(..SIZE) {
            place.copy_from_slice(&header(base));
        }
    }
}

/// Keeps of the entries in a range those that hold units, or are not before `now`, moving them to
/// the front, and returns how many bytes are in use then.
pub fn compact(bytes: &mut [u8], kept: Range<usize>, now: Micros) -> usize {
    let Some(log) = Entries::parse(bytes) else {
        return bytes.len();
    };
    let base = log.base;
    let mut before = log.total_before(kept.start);
    let (blocks, _) = bytes.as_chunks_mut::<SIZE>();
    let mut used = 1;
    if let Some(first) = blocks.first_mut() {
        *first = header(before);
    }
    for index in kept.start + 1..=kept.end {
        let Some(entry) = blocks.get(index) else {
            break;
        };
        let (time, total) = split(entry);
        let total = at_least(base, total);
        if total != before || time >= now {
            before = total;
            if let Some(place) = blocks.get_mut(used) {
                *place = join(time, total);
                used += 1;
            }
        }
    }
    used * SIZE
}

/// Lets the totals from an index on grow by so many units, which wrap.
fn shift_totals(bytes: &mut [u8], base: u64, from: usize, units: u64) {
    let (blocks, _) = bytes.as_chunks_mut();
    for entry in blocks.iter_mut().skip(1).skip(from) {
        let (time, total) = split(entry);
        *entry = join(time, at_least(base, total).wrapping_add(units));
    }
}
