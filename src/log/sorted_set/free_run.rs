//! Where in a log the units of a call find free microseconds.

use super::{score, time, SortedSetLog};
use crate::api::End;
use crate::error::Error;
use crate::rule::{Micros, MAX_TIME};

/// The most gaps between entries to look for room in.
const MAX_GAPS: u32 = 64;

impl SortedSetLog<'_> {
    /// The first of the free microseconds that so many units take, from `now` on: the first run that
    /// is long enough, or what comes after the newest entry up to the horizon.
    pub fn free_run(&mut self, now: Micros, units: u64, horizon: Micros) -> Result<Micros, Error> {
        let units = Micros::try_from(units).unwrap_or(MAX_TIME);
        let Some(newest) = self.set.end_above(End::Highest, score(now - 1)).map(time) else {
            return Ok(now);
        };
        self.newest = Some(newest);
        if newest <= horizon && self.all_taken(now, newest)? {
            return Ok(newest + 1);
        }
        let mut start = now;
        let mut gaps = 0;
        while gaps < MAX_GAPS {
            let Some(taken) = self
                .first_from(start)
                .filter(|taken| *taken < start + units)
            else {
                return Ok(start);
            };
            gaps += u32::from(taken > start);
            start = self.free_after(taken)?;
        }
        let after = self
            .newest_up_to(horizon)
            .map_or(now, |last| now.max(last + 1));
        if self
            .first_from(after)
            .is_some_and(|taken| taken < after + units)
        {
            return Ok(newest + 1);
        }
        Ok(after)
    }

    /// The first entry at a time or after it.
    fn first_from(&self, start: Micros) -> Option<Micros> {
        self.set.end_above(End::Lowest, score(start - 1)).map(time)
    }

    /// Whether every microsecond from one to another is taken.
    fn all_taken(&self, first: Micros, last: Micros) -> Result<bool, Error> {
        let there = self.count(Some(first - 1), Some(last))?;
        Ok(there >= (last - first + 1).unsigned_abs())
    }

    /// The first free microsecond after one that is taken.
    ///
    /// All of a run are taken exactly when as many entries lie in it, so that a long run is skipped
    /// by doubling and halving, not by walking.
    fn free_after(&self, taken: Micros) -> Result<Micros, Error> {
        let (mut taken_run, mut free_run) = (1, 2);
        while self.all_taken(taken, taken + free_run - 1)? {
            taken_run = free_run;
            free_run *= 2;
        }
        while free_run - taken_run > 1 {
            let middle = taken_run.midpoint(free_run);
            if self.all_taken(taken, taken + middle - 1)? {
                taken_run = middle;
            } else {
                free_run = middle;
            }
        }
        Ok(taken + free_run - 1)
    }
}
