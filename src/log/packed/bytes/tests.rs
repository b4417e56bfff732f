use super::super::edit::{compact, forget, insert, reduce};
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
        let units = |(time, units): &(Micros, u64)| vec![*time; usize::try_from(*units).unwrap()];
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
        prop_assert!(log.forgotten(index, log.len()) <= log.len().max(index));
        prop_assert!(log.without_units(all.clone()) <= log.len());
        let _ = (log.units_of(&all), log.nth_newest(&all, units), log.find(time));
        reduce(&mut bytes, index, units);
        forget(&mut bytes, units);
        bytes.resize(bytes.len() + SIZE, 0);
        insert(&mut bytes, index, time, units);
        prop_assert!(compact(&mut bytes, all, time) <= bytes.len());
    }
}
