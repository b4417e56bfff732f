//! The decision and the waits, as pure functions of a rule, the time and numbers of the log.
//!
//! Ranks count from the newest entry, which has rank 0. A rule's live entries are the newest ones
//! of the log, so an entry of rank `n` is live exactly when more than `n` are.

use crate::rule::{Micros, Rule, Units};
use std::cmp::Reverse;

/// What a rule says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Live entries and units together are within the limit.
    Allowed,
    /// Not before the entry of this rank leaves the window.
    DeniedBy(u64),
    /// The units exceed the limit.
    Never,
}

/// A span until something happens; `Never` is the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Milliseconds, rounded up so that obeying them always works.
    Ms(u64),
    /// It does not happen.
    Never,
}

/// What one rule says about a log: the numbers of a WITHINFO reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The rule.
    pub rule: Rule,
    /// Live entries.
    pub used: u64,
    /// Until the same attempt would be allowed if nobody else calls; 0 when it is.
    pub retry_after: Wait,
    /// Until `remaining` grows; 0 when nothing is used, `Never` when the limit is 0.
    pub reset_after: Wait,
    /// Until no entry is live; 0 when none is.
    pub full_after: Wait,
}

impl Rule {
    /// Whether an attempt of `units` is allowed beside `used` live entries: used + units <= limit.
    ///
    /// If not, it waits for the entry of rank limit - units: when that one leaves, as many entries
    /// are live as leave room. After the limit was lowered this is not the oldest entry.
    pub fn judge(self, used: u64, units: Units) -> Verdict {
        match self.limit.checked_sub(units.get()) {
            None => Verdict::Never,
            Some(rank) if rank < used => Verdict::DeniedBy(rank),
            Some(_) => Verdict::Allowed,
        }
    }

    /// The rank of the entry with whose leaving `remaining` grows.
    pub fn next_free(self, used: u64) -> Option<u64> {
        used.min(self.limit).checked_sub(1)
    }

    /// The time until an entry leaves the window; 0 when it has.
    pub fn wait_for(self, entry: Micros, now: Micros) -> Wait {
        let wait = self.window.leaves_at(entry).saturating_sub(now);
        Wait::Ms(wait.max(0).unsigned_abs().div_ceil(1_000))
    }
}

impl Standing {
    /// Units left in the window.
    pub fn remaining(&self) -> u64 {
        self.rule.limit.saturating_sub(self.used)
    }
}

/// The rule that an answer is about: of a denied attempt the one with the longest wait, else the
/// one with the fewest remaining; of equal ones the first.
pub fn binding(standings: &[Standing], allowed: bool) -> Option<&Standing> {
    if allowed {
        standings.iter().min_by_key(|standing| standing.remaining())
    } else {
        standings
            .iter()
            .min_by_key(|standing| Reverse(standing.retry_after))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::rule::Window;
    use proptest::prelude::*;
    use rstest::rstest;

    const NOW: Micros = 1_700_000_000_000_000;

    fn rule(limit: u64, window: Micros) -> Rule {
        let window = Window::from_micros(window).unwrap();
        Rule { limit, window }
    }

    fn units(units: u16) -> Units {
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
        #[case] cost: u16,
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
        let longest = Wait::Ms(i64::MAX.unsigned_abs().div_ceil(1_000));
        assert_eq!(rule.wait_for(Micros::MAX, 0), longest);
        assert_eq!(rule.wait_for(Micros::MIN, Micros::MAX), Wait::Ms(0));
    }

    #[test]
    fn never_is_the_longest_wait() {
        assert!(Wait::Never > Wait::Ms(u64::MAX));
    }

    fn standing(limit: u64, used: u64, retry_after: Wait) -> Standing {
        Standing {
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
        let standings =
            [(1, short), (2, long), (3, same)].map(|(limit, wait)| standing(limit, 9, wait));
        assert_eq!(binding(&standings, false), Some(&standings[1]));
        let standings =
            [(1, long), (2, never), (3, never)].map(|(limit, wait)| standing(limit, 9, wait));
        assert_eq!(binding(&standings, false), Some(&standings[1]));
    }

    #[test]
    fn an_allowance_binds_by_the_fewest_remaining_and_then_the_order() {
        let standings =
            [(9, 1), (5, 3), (4, 2)].map(|(limit, used)| standing(limit, used, Wait::Ms(0)));
        assert_eq!(binding(&standings, true), Some(&standings[1]));
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
        /// The verdict is a count of live entries, and the wait the first moment at which that
        /// count leaves room: found here by trying every microsecond at which one can leave.
        #[test]
        fn verdict_and_wait_equal_an_oracles(
            log in log(),
            limit in 0..20_u64,
            window in 1_000..300_000_i64,
            cost in 1..6_u16,
        ) {
            let rule = rule(limit, window);
            let allowed_at = |now| live(&log, window, now) + u64::from(cost) <= limit;
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
}
