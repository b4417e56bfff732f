//! A packed log as bytes: reading and changing them. Pure.
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

/// The first bytes of every packed log.
const MARK: [u8; 8] = *b"slidewin";

/// Times and running totals of a packed log, to be read.
#[derive(Clone, Copy)]
pub struct Entries<'a> {
    base: u64,
    entries: &'a [[u8; SIZE]],
}

/// An entry's two numbers as they were written: its time and the running total.
#[allow(clippy::cast_possible_truncation)] // each is half of the bytes
fn split(entry: &[u8; SIZE]) -> (Micros, u64) {
    let both = u128::from_le_bytes(*entry);
    ((both as u64).cast_signed(), (both >> 64) as u64)
}

/// An entry's time, whatever somebody wrote.
fn time_of(entry: &[u8; SIZE]) -> Micros {
    split(entry).0.clamp(-FAR, FAR)
}

fn join(time: Micros, total: u64) -> [u8; SIZE] {
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
        let (blocks, rest) = bytes.as_chunks();
        let (header, entries) = blocks.split_first()?;
        let ours = rest.is_empty() && header.starts_with(&MARK);
        let base = split(header).1;
        ours.then_some(Self { base, entries })
    }

    /// The entries of a new log.
    pub fn none() -> Self {
        Self {
            base: 0,
            entries: &[],
        }
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
        match self.entries.last() {
            // Mostly the clock is later than the newest entry.
            Some(newest) if time_of(newest) <= time => self.len(),
            _ => self.entries.partition_point(|entry| time_of(entry) <= time),
        }
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

    /// How many of the first `count` entries are forgotten, that is, hold no unit above the base.
    pub fn forgotten(&self, count: usize) -> usize {
        let first = self.entries.get(..count).unwrap_or(self.entries);
        first.partition_point(|entry| self.above_base(entry) == 0)
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
    fn total_before(&self, index: usize) -> u64 {
        self.base.wrapping_add(self.units_of_first(index))
    }
}

/// Lets the totals from an index on grow by so many units, which wrap.
fn shift_totals(bytes: &mut [u8], base: u64, from: usize, units: u64) {
    let (blocks, _) = bytes.as_chunks_mut();
    for entry in blocks.iter_mut().skip(1).skip(from) {
        let (time, total) = split(entry);
        *entry = join(time, at_least(base, total).wrapping_add(units));
    }
}

/// A number of entries as a span of microseconds.
fn signed(entries: usize) -> Micros {
    Micros::try_from(entries).unwrap_or(FAR)
}

/// A total, or the base where it is below.
fn at_least(base: u64, total: u64) -> u64 {
    // The difference to a total below the base wraps to a negative number.
    if total.wrapping_sub(base).cast_signed() < 0 {
        base
    } else {
        total
    }
}

/// Inserts an entry at an index, in bytes that are already one entry longer: later entries move up,
/// and their totals grow by its units.
pub fn insert(bytes: &mut [u8], index: usize, time: Micros, units: u64) {
    let old = bytes
        .len()
        .checked_sub(SIZE)
        .and_then(|len| bytes.get(..len));
    let Some(log) = old.and_then(Entries::parse) else {
        return;
    };
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    /// What a packed log is held against: calls as a list, units one by one.
    #[derive(Clone, Debug, Default)]
    struct Model {
        calls: Vec<(Micros, u64)>,
    }

    impl Model {
        /// The times of all units, newest first.
        fn units(&self) -> Vec<Micros> {
            let units =
                |(time, units): &(Micros, u64)| vec![*time; usize::try_from(*units).unwrap()];
            self.calls.iter().rev().flat_map(units).collect()
        }

        fn insert(&mut self, time: Micros, units: u64) {
            let index = self.calls.partition_point(|call| call.0 <= time);
            self.calls.insert(index, (time, units));
        }

        fn forget(&mut self, mut units: u64) {
            for call in &mut self.calls {
                let taken = call.1.min(units);
                call.1 -= taken;
                units -= taken;
            }
        }
    }

    fn new_log(base: u64) -> Vec<u8> {
        header(base).to_vec()
    }

    fn add(bytes: &mut Vec<u8>, time: Micros, units: u64) -> Micros {
        let log = Entries::parse(bytes).unwrap();
        let id = log.free_from(time);
        let index = log.up_to(id);
        bytes.resize(bytes.len() + SIZE, 0);
        insert(bytes, index, id, units);
        id
    }

    fn calls(bytes: &[u8]) -> Vec<(Micros, u64)> {
        let log = Entries::parse(bytes).unwrap();
        let call = |index| (log.time(index).unwrap(), log.units(index));
        (0..log.len()).map(call).collect()
    }

    #[test]
    fn the_stored_form_is_the_documented_one() {
        let mut bytes = new_log(0);
        add(&mut bytes, 1_700_000_000_000_000, 5);
        add(&mut bytes, 1_700_000_000_000_001, 2);
        let mut expected = b"slidewin".to_vec();
        for number in [0, 1_700_000_000_000_000, 5, 1_700_000_000_000_001, 7_u64] {
            expected.extend(number.to_le_bytes());
        }
        assert_eq!(bytes, expected);
    }

    #[rstest]
    #[case(b"", false)]
    #[case(b"slidewin", false)]
    #[case(b"slidewin00000000", true)]
    #[case(b"slidewin000000001", false)]
    #[case(b"Slidewin00000000", false)]
    #[case(b"slidewin0000000000000000", false)]
    #[case(b"slidewin000000000000000000000000", true)]
    fn a_log_is_told_by_its_length_and_its_first_bytes(#[case] bytes: &[u8], #[case] log: bool) {
        assert_eq!(Entries::parse(bytes).is_some(), log);
        assert!(may_be_log(bytes.len()) || !log);
    }

    /// Case 131: totals below the base.
    #[test]
    fn units_below_the_base_stay_forgotten() {
        let mut bytes = new_log(0);
        for time in [1_000, 2_000, 3_000] {
            add(&mut bytes, time, 1);
        }
        forget(&mut bytes, 2);
        assert_eq!(calls(&bytes), [(1_000, 0), (2_000, 0), (3_000, 1)]);
        add(&mut bytes, 500, 1);
        assert_eq!(
            calls(&bytes),
            [(500, 1), (1_000, 0), (2_000, 0), (3_000, 1)]
        );
        reduce(&mut bytes, 0, 1);
        assert_eq!(
            calls(&bytes),
            [(500, 0), (1_000, 0), (2_000, 0), (3_000, 1)]
        );
    }

    #[test]
    fn a_taken_microsecond_is_passed_over() {
        let mut bytes = new_log(0);
        for (wanted, id) in [
            (5, 5),
            (5, 6),
            (4, 4),
            (4, 7),
            (9, 9),
            (6, 8),
            (4, 10),
            (0, 0),
        ] {
            assert_eq!(add(&mut bytes, wanted, 1), id);
        }
    }

    #[test]
    fn a_rewrite_drops_what_holds_no_units_and_is_past() {
        let mut bytes = new_log(u64::MAX - 1);
        for (time, units) in [(1, 5), (2, 3), (3, 2), (4, 1), (5, 1), (6, 7)] {
            add(&mut bytes, time, units);
        }
        reduce(&mut bytes, 2, 2);
        reduce(&mut bytes, 4, 1);
        let used = compact(&mut bytes, 1..6, 5);
        bytes.truncate(used);
        assert_eq!(calls(&bytes), [(2, 3), (4, 1), (5, 0), (6, 7)]);
        let used = compact(&mut bytes, 1..3, 9);
        bytes.truncate(used);
        assert_eq!(calls(&bytes), [(4, 1)]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(Micros, u64),
        Forget(u64),
        Reduce(usize, u64),
        Compact(usize, Micros),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..200_i64, 1..50_u64).prop_map(|(time, units)| Step::Add(time, units)),
            1 => (0..100_u64).prop_map(Step::Forget),
            1 => (0..40_usize, 0..60_u64).prop_map(|(index, units)| Step::Reduce(index, units)),
            1 => (0..4_usize, 0..200_i64).prop_map(|(start, now)| Step::Compact(start, now)),
        ]
    }

    proptest! {
        /// Whatever is done, and wherever the totals wrap, every number is that of a list.
        #[test]
        fn numbers_are_those_of_a_list(
            base in prop_oneof![Just(0), Just(u64::MAX - 100), any::<u64>()],
            steps in proptest::collection::vec(step(), 1..60),
        ) {
            let (mut bytes, mut model) = (new_log(base), Model::default());
            for step in steps {
                match step {
                    Step::Add(time, units) => {
                        let id = add(&mut bytes, time, units);
                        model.insert(id, units);
                    }
                    Step::Forget(units) => {
                        let units = units.min(model.units().len() as u64);
                        forget(&mut bytes, units);
                        model.forget(units);
                    }
                    Step::Reduce(index, units) => if let Some(call) = model.calls.get_mut(index) {
                        let units = units.min(call.1);
                        reduce(&mut bytes, index, units);
                        call.1 -= units;
                    },
                    Step::Compact(start, now) => {
                        let start = start.min(model.calls.len());
                        let used = compact(&mut bytes, start..model.calls.len(), now);
                        bytes.truncate(used);
                        model.calls.drain(..start);
                        model.calls.retain(|(time, units)| *units > 0 || *time >= now);
                    }
                }
                prop_assert_eq!(calls(&bytes), model.calls.clone());
                let log = Entries::parse(&bytes).unwrap();
                let all = 0..log.len();
                let units = model.units();
                prop_assert_eq!(log.units_of(&all), units.len() as u64);
                for (rank, time) in units.iter().enumerate() {
                    prop_assert_eq!(log.nth_newest(&all, rank as u64), Some(*time));
                }
                let empty = model.calls.iter().filter(|call| call.1 == 0).count();
                prop_assert_eq!(log.without_units(all), empty);
                for time in [0, 50, 150, 400] {
                    let before = model.calls.iter().filter(|call| call.0 <= time).count();
                    prop_assert_eq!(log.up_to(time), before);
                }
            }
        }

        /// No bytes make it panic, and what it says stays within its range.
        #[test]
        fn any_bytes_are_answered(
            blocks in proptest::collection::vec(any::<[u8; SIZE]>(), 0..40),
            base in any::<u64>(),
            time in any::<Micros>(),
            index in 0..50_usize,
            units in any::<u64>(),
        ) {
            let mut bytes = new_log(base);
            bytes.extend(blocks.iter().flatten());
            let log = Entries::parse(&bytes).unwrap();
            let time = time.clamp(-FAR, FAR);
            let all = 0..log.len();
            prop_assert!(log.up_to(time) <= log.len());
            prop_assert!(log.free_from(time) >= time);
            prop_assert!(log.forgotten(index) <= log.len());
            prop_assert!(log.without_units(all.clone()) <= log.len());
            let _ = (log.units_of(&all), log.nth_newest(&all, units), log.find(time));
            reduce(&mut bytes, index, units);
            forget(&mut bytes, units);
            bytes.resize(bytes.len() + SIZE, 0);
            insert(&mut bytes, index, time, units);
            prop_assert!(compact(&mut bytes, all, time) <= bytes.len());
        }
    }
}
