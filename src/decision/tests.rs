use super::*;
use crate::rule::{Window, FAR, MAX_TIME};
use proptest::prelude::*;
use rstest::rstest;

const NOW: Micros = 1_700_000_000_000_000;

fn rule(limit: u64, window: Micros) -> Rule {
    let window = Window::from_micros(window).unwrap();
    Rule { limit, window }
}

fn units(units: u64) -> Units {
    Units::new(units).unwrap()
}

/// Cases 7 and 17: allowed up to the limit, without overflow at either end.
#[rstest]
#[case(3, 0, 1, Verdict::Allowed)]
#[case(3, 2, 1, Verdict::Allowed)]
#[case(3, 3, 1, Verdict::DeniedBy(2))]
#[case(3, 1, 3, Verdict::DeniedBy(0))]
#[case(3, 0, 4, Verdict::Never)]
#[case(0, 0, 1, Verdict::Never)]
#[case(3, 9, 1, Verdict::DeniedBy(2))]
#[case(u64::MAX, u64::MAX, 1000, Verdict::DeniedBy(u64::MAX - 1000))]
#[case(u64::MAX, 0, 1000, Verdict::Allowed)]
fn used_and_units_must_be_within_the_limit(
    #[case] limit: u64,
    #[case] used: u64,
    #[case] cost: u64,
    #[case] verdict: Verdict,
) {
    assert_eq!(rule(limit, 1_000).judge(used, units(cost)), verdict);
}

/// Cases 11 and 71: an entry exactly one window old is out, and waits are rounded up.
#[rstest]
#[case(0, 0)]
#[case(1, 1)]
#[case(1_000, 1)]
#[case(1_001, 2)]
#[case(-1, 0)]
fn a_wait_ends_when_the_entry_leaves(#[case] micros_left: Micros, #[case] ms: u64) {
    let rule = rule(1, 60_000_000);
    let entry = NOW - 60_000_000 + micros_left;
    assert_eq!(rule.wait_for(entry, NOW), Wait::Ms(ms));
    assert_eq!(entry > rule.window.cutoff(NOW), ms > 0);
}

#[test]
fn waits_do_not_overflow() {
    let rule = rule(1, Window::MAX);
    let longest = Wait::Ms((FAR + Window::MAX).unsigned_abs().div_ceil(1_000));
    assert_eq!(rule.wait_for(FAR, 0), longest);
    assert_eq!(rule.wait_for(-FAR, MAX_TIME), Wait::Ms(0));
    assert!(rule.window.horizon(MAX_TIME, u64::MAX) > FAR);
}

#[test]
fn never_is_the_longest_wait() {
    assert!(Wait::Never > Wait::Ms(u64::MAX));
}

fn status(limit: u64, used: u64, retry_after: Wait) -> Status {
    Status {
        rule: rule(limit, 1_000),
        used,
        retry_after,
        reset_after: Wait::Ms(0),
        full_after: Wait::Ms(0),
    }
}

#[test]
fn a_denial_binds_by_the_longest_wait_and_then_the_order() {
    let [short, long, same, never] = [Wait::Ms(1), Wait::Ms(9), Wait::Ms(9), Wait::Never];
    let statuss = [(1, short), (2, long), (3, same)].map(|(limit, wait)| status(limit, 9, wait));
    assert_eq!(binding(&statuss, false), Some(&statuss[1]));
    let statuss = [(1, long), (2, never), (3, never)].map(|(limit, wait)| status(limit, 9, wait));
    assert_eq!(binding(&statuss, false), Some(&statuss[1]));
}

#[test]
fn an_allowance_binds_by_the_fewest_remaining_and_then_the_order() {
    let statuss = [(9, 1), (5, 3), (4, 2)].map(|(limit, used)| status(limit, used, Wait::Ms(0)));
    assert_eq!(binding(&statuss, true), Some(&statuss[1]));
}

/// A log as a list of times, newest first, seen by a call whose longest window is the second.
struct List {
    times: Vec<Micros>,
    found: u64,
    cutoff: Micros,
}

impl List {
    fn new(times: &[Micros], cutoff: Micros) -> Self {
        Self {
            times: times.to_vec(),
            found: times.len() as u64,
            cutoff,
        }
    }
}

impl View for List {
    fn entries(&self) -> u64 {
        self.found
    }

    fn live(&self) -> u64 {
        live_since(&self.times, self.cutoff)
    }

    fn live_after(&self, cutoff: Micros) -> Result<u64, Error> {
        Ok(live_since(&self.times, cutoff.max(self.cutoff)))
    }

    fn nth_newest(&self, rank: u64) -> Result<Option<Micros>, Error> {
        Ok(self.times.get(usize::try_from(rank).unwrap()).copied())
    }

    fn leave_out_after(&mut self, time: Micros) -> Result<bool, Error> {
        let before = self.times.len();
        self.times.retain(|entry| *entry <= time);
        Ok(self.times.len() < before)
    }
}

fn live_since(times: &[Micros], cutoff: Micros) -> u64 {
    times.iter().filter(|entry| **entry > cutoff).count() as u64
}

fn rules(list: &[(u64, Micros)]) -> Rules {
    let mut rules = Rules::new(rule(list[0].0, list[0].1));
    for (limit, window) in &list[1..] {
        assert!(rules.push(rule(*limit, *window)));
    }
    rules
}

/// Case 94: as far ahead as twice the window and a microsecond an entry is honest.
#[rstest]
#[case(2 * 60_000_000 + 1, false)]
#[case(2 * 60_000_000 + 2, true)]
fn what_is_impossible_denies_nobody(#[case] ahead: Micros, #[case] allowed: bool) {
    let rules = rules(&[(1, 60_000_000)]);
    let mut log = List::new(&[NOW + ahead], NOW - 60_000_000);
    assert_eq!(decide(&mut log, &rules, Units::ONE, NOW), Ok(allowed));
    assert_eq!(log.times.is_empty(), allowed);
}

#[test]
fn what_is_impossible_stays_while_it_denies_nobody() {
    let rules = rules(&[(2, 1_000)]);
    let mut log = List::new(&[NOW + 1_000_000], NOW - 1_000);
    assert_eq!(decide(&mut log, &rules, Units::ONE, NOW), Ok(true));
    assert_eq!(decide(&mut log, &rules, units(3), NOW), Ok(false));
    assert_eq!(log.times, [NOW + 1_000_000]);
}

/// The entries that an oracle counts one by one, newest first.
fn log() -> impl Strategy<Value = Vec<Micros>> {
    proptest::collection::btree_set(-400_000..50_000_i64, 0..40).prop_map(|offsets| {
        offsets
            .into_iter()
            .rev()
            .map(|offset| NOW + offset)
            .collect()
    })
}

fn live(log: &[Micros], window: Micros, now: Micros) -> u64 {
    log.iter().filter(|entry| now - **entry < window).count() as u64
}

proptest! {
    /// Allowed exactly when a count of every rule's own window leaves room, and each rule's
    /// numbers are by their definitions.
    #[test]
    fn the_decision_is_that_of_every_rule(
        log in log(),
        list in proptest::collection::vec((0..20_u64, 1_000..300_000_i64), 1..5),
        cost in 1..6_u64,
    ) {
        let log: Vec<_> = log.into_iter().filter(|entry| *entry <= NOW + 2_000).collect();
        let rules = rules(&list);
        let mut view = List::new(&log, rules.longest_window().cutoff(NOW));
        let allowed = decide(&mut view, &rules, units(cost), NOW).unwrap();
        let room = |(limit, window): &(u64, Micros)| live(&log, *window, NOW) + cost <= *limit;
        prop_assert_eq!(allowed, list.iter().all(room));
        let statuses = statuses(&view, &rules, units(cost), allowed, NOW).unwrap();
        for (status, (limit, window)) in statuses.iter().zip(&list) {
            prop_assert_eq!(status.used, live(&log, *window, NOW));
            prop_assert_eq!(status.remaining(), limit.saturating_sub(status.used));
            prop_assert_eq!(status.retry_after == Wait::Ms(0), room(&(*limit, *window)));
        }
    }

    /// The verdict is a count of live entries, and the wait the first moment at which that
    /// count leaves room: found here by trying every microsecond at which one can leave.
    #[test]
    fn verdict_and_wait_equal_an_oracles(
        log in log(),
        limit in 0..20_u64,
        window in 1_000..300_000_i64,
        cost in 1..6_u64,
    ) {
        let rule = rule(limit, window);
        let allowed_at = |now| live(&log, window, now) + cost <= limit;
        let moments = log.iter().map(|entry| entry + window).filter(|moment| *moment > NOW);
        let first = moments.filter(|moment| allowed_at(*moment)).min();
        let verdict = rule.judge(live(&log, window, NOW), units(cost));
        match verdict {
            Verdict::Allowed => prop_assert!(allowed_at(NOW)),
            Verdict::Never => prop_assert_eq!((allowed_at(NOW), first), (false, None)),
            Verdict::DeniedBy(rank) => {
                prop_assert!(!allowed_at(NOW));
                let entry = log[usize::try_from(rank).unwrap()];
                let Wait::Ms(ms) = rule.wait_for(entry, NOW) else {
                    panic!("an entry that never leaves");
                };
                let ms = i64::try_from(ms).unwrap();
                prop_assert_eq!(Some(entry + window), first);
                prop_assert!(allowed_at(NOW + ms * 1_000));
                prop_assert!(!allowed_at(NOW + ms * 1_000 - 1_000));
            }
        }
    }

    /// `remaining` grows when the entry of rank `next_free` leaves, and not before.
    #[test]
    fn the_next_unit_is_free_when_its_entry_leaves(
        log in log(),
        limit in 1..20_u64,
        window in 1_000..300_000_i64,
    ) {
        let rule = rule(limit, window);
        let remaining_at = |now| limit.saturating_sub(live(&log, window, now));
        match rule.next_free(live(&log, window, NOW)) {
            None => prop_assert_eq!(remaining_at(NOW), limit),
            Some(rank) => {
                let moment = log[usize::try_from(rank).unwrap()] + window;
                prop_assert_eq!(remaining_at(moment - 1), remaining_at(NOW));
                prop_assert!(remaining_at(moment) > remaining_at(NOW));
            }
        }
    }
}
