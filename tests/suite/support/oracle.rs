//! A sliding-window log as naive as can be, to hold the module's answers against.

/// A rule: limit and window in microseconds.
pub type Rule = (i64, i64);

/// Every unit ever recorded; nothing is trimmed, capped or looked up by rank.
#[derive(Clone, Default)]
pub struct Oracle {
    stamps: Vec<i64>,
}

impl Oracle {
    /// A log of these entries.
    pub fn of(stamps: Vec<i64>) -> Self {
        Self { stamps }
    }

    /// Entries younger than a window.
    pub fn used(&self, window: i64, now: i64) -> i64 {
        self.stamps
            .iter()
            .filter(|stamp| **stamp > now - window)
            .count() as i64
    }

    /// Whether units more are within every limit.
    pub fn allows(&self, rules: &[Rule], units: i64, now: i64) -> bool {
        rules
            .iter()
            .all(|(limit, window)| self.used(*window, now) + units <= *limit)
    }

    /// The first whole millisecond after which `holds`, which can only become true when some entry
    /// leaves one of the windows: 0 if it holds now, -1 if it never does.
    fn first_ms(&self, rules: &[Rule], now: i64, holds: impl Fn(i64) -> bool) -> i64 {
        let mut waits = vec![0];
        for (_, window) in rules {
            for stamp in &self.stamps {
                let micros = stamp + window - now;
                waits.push(if micros > 0 {
                    (micros + 999) / 1_000
                } else {
                    0
                });
            }
        }
        waits.sort_unstable();
        let first = waits.into_iter().find(|ms| holds(now + ms * 1_000));
        first.unwrap_or(-1)
    }

    /// When the same call would be allowed if nobody else calls.
    pub fn retry_after_ms(&self, rules: &[Rule], units: i64, now: i64) -> i64 {
        self.first_ms(rules, now, |then| self.allows(rules, units, then))
    }

    /// When a rule has one unit more left than now.
    pub fn reset_after_ms(&self, rule: Rule, now: i64) -> i64 {
        let (limit, window) = rule;
        let remaining = |then| (limit - self.used(window, then)).max(0);
        if limit == 0 {
            return -1;
        }
        if self.used(window, now) == 0 {
            return 0;
        }
        self.first_ms(&[rule], now, |then| remaining(then) > remaining(now))
    }

    /// When a window is empty.
    pub fn full_after_ms(&self, rule: Rule, now: i64) -> i64 {
        self.first_ms(&[rule], now, |then| self.used(rule.1, then) == 0)
    }

    /// Records units at the first run of so many free microseconds.
    pub fn record(&mut self, units: i64, now: i64) {
        let free = |start: &i64| (*start..start + units).all(|at| !self.stamps.contains(&at));
        let newest = self.stamps.iter().max().map_or(now, |newest| newest + 1);
        let start = (now..newest.max(now)).find(free).unwrap_or(newest.max(now));
        self.stamps.extend(start..start + units);
    }

    /// Adds units at one moment.
    pub fn add(&mut self, units: i64, at: i64) {
        self.stamps.extend(std::iter::repeat_n(at, units as usize));
    }

    /// Removes what was added at a moment, and returns how much that was.
    pub fn remove(&mut self, at: i64) -> i64 {
        let before = self.stamps.len();
        self.stamps.retain(|stamp| *stamp != at);
        (before - self.stamps.len()) as i64
    }

    /// The moments of all units.
    pub fn stamps(&self) -> &[i64] {
        &self.stamps
    }

    /// The newest unit's moment.
    pub fn newest_stamp(&self) -> Option<i64> {
        self.stamps.iter().max().copied()
    }

    /// Units after a moment.
    pub fn used_after(&self, moment: i64) -> i64 {
        self.stamps.iter().filter(|stamp| **stamp > moment).count() as i64
    }

    /// Forgets what is out of a window.
    pub fn trim(&mut self, window: i64, now: i64) {
        self.stamps.retain(|stamp| *stamp > now - window);
    }

    /// The newest entries, oldest first.
    pub fn newest(&self, most: i64) -> Vec<i64> {
        let mut stamps = self.stamps.clone();
        stamps.sort_unstable();
        let surplus = stamps.len().saturating_sub(most as usize);
        stamps.split_off(surplus)
    }
}
