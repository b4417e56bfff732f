//! Limits, windows and units: the validated words of a call. Pure; time is a number.
//!
//! A value of these types cannot be out of range, so nothing after the arguments asks again, and
//! plain arithmetic on it cannot overflow: times lie within `±FAR`, windows are at most ten years.

/// Unix time, or a span of it, in whole microseconds: the unit of scores, windows and waits.
///
/// The clock's times lie in `0..=MAX_TIME`; what somebody else wrote is clamped to `-FAR..=FAR`.
pub type Micros = i64;

/// The latest time that a score holds exactly: scores are doubles, exact up to 2^53 (year 2255).
pub const MAX_TIME: Micros = (1 << 53) - 1;

/// Later than every time that a clock can show, and far enough from overflow to add windows to.
pub const FAR: Micros = 1 << 61;

/// The span that a limit holds for: 1 millisecond to ten years, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(Micros);

impl Window {
    /// The shortest window, 0.001 seconds.
    pub const MIN: Micros = 1_000;
    /// The longest window, 315,360,000 seconds (ten years).
    pub const MAX: Micros = 315_360_000_000_000;

    /// A window of that many microseconds, or `None` outside `MIN..=MAX`.
    pub fn from_micros(micros: Micros) -> Option<Self> {
        (Self::MIN..=Self::MAX)
            .contains(&micros)
            .then_some(Self(micros))
    }

    /// Its length in microseconds.
    pub fn micros(self) -> Micros {
        self.0
    }

    /// The newest time that is out of the window at `now`: an entry exactly one window old is out.
    pub fn cutoff(self, now: Micros) -> Micros {
        now - self.0
    }

    /// The first time at which an entry of time `entry` is out of the window.
    pub fn leaves_at(self, entry: Micros) -> Micros {
        debug_assert!((-FAR..=FAR).contains(&entry));
        entry + self.0
    }

    /// When a log expires whose newest entry has this time, in Unix milliseconds, rounded up.
    pub fn expiry_of(self, entry: Micros) -> i64 {
        let leaves_at = self.leaves_at(entry).max(0);
        leaves_at / 1_000 + i64::from(leaves_at % 1_000 > 0)
    }

    /// The latest time that an entry can honestly have at `now`, in a log of so many entries.
    ///
    /// A clock that was set back, or a turn, accounts for a window each, and more than one entry a
    /// microsecond for as many microseconds as there are entries.
    pub fn horizon(self, now: Micros, entries: u64) -> Micros {
        let entries = Micros::try_from(entries).unwrap_or(FAR).min(FAR);
        now + 2 * self.0 + entries
    }
}

/// What an attempt consumes: 1 to 1,000,000,000 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units(u32);

impl Units {
    /// What an attempt consumes unless COST says more.
    pub const ONE: Self = Self(1);
    /// The most that one attempt may consume.
    pub const MAX: u32 = 1_000_000_000;
    /// The most that one attempt may consume where each unit is an entry of its own.
    pub const MAX_ENTRIES: u64 = 1_000;

    /// That many units, or `None` outside `1..=MAX`.
    pub fn new(units: u64) -> Option<Self> {
        let units = u32::try_from(units).ok()?;
        (1..=Self::MAX).contains(&units).then_some(Self(units))
    }

    /// As many, but no more than a number that is not 0.
    pub fn at_most(self, most: u64) -> Self {
        Self(u32::try_from(most).unwrap_or(u32::MAX).min(self.0))
    }

    /// The number of units.
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }
}

/// A rate limit: at most `limit` units in any `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The most units in one window, 0 to 9223372036854775807; 0 denies everything.
    pub limit: u64,
    /// The span that the limit holds for.
    pub window: Window,
}

/// One to eight rules on one log, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    first: Rule,
    others: Vec<Rule>,
}

impl Rules {
    /// The most rules of one call.
    pub const MAX: usize = 8;

    /// A list of one rule.
    pub fn new(first: Rule) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }

    /// Adds a rule at the end; false, and no change, when there are `MAX` already.
    #[must_use]
    pub fn push(&mut self, rule: Rule) -> bool {
        let fits = self.len() < Self::MAX;
        if fits {
            self.others.push(rule);
        }
        fits
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// The rules in the order given.
    pub fn iter(&self) -> impl Iterator<Item = Rule> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// The longest window of all rules: what is older is of no use to any.
    pub fn longest_window(&self) -> Window {
        self.others
            .iter()
            .fold(self.first.window, |longest, rule| longest.max(rule.window))
    }

    /// The highest limit of all rules: more units than that decide nothing.
    pub fn highest_limit(&self) -> u64 {
        self.others
            .iter()
            .fold(self.first.limit, |highest, rule| highest.max(rule.limit))
    }

    /// Whether a limit of 0 denies every call, whatever the log holds.
    pub fn deny_everything(&self) -> bool {
        self.iter().any(|rule| rule.limit == 0)
    }
}
