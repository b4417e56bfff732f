//! The counters of `INFO slidewin`, since the module was loaded.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the counter; only the server's main thread does, so nothing can come between.
    pub fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// CHECKs and CHECKALLs that answered 1.
static ALLOWED: Counter = Counter::new();
/// CHECKs and CHECKALLs that answered 0.
static DENIED: Counter = Counter::new();
/// RESERVEs that got a turn.
pub static RESERVATIONS: Counter = Counter::new();
/// RESERVEs that got none.
pub static TURNED_AWAY: Counter = Counter::new();
/// PEEKs answered.
pub static PEEKS: Counter = Counter::new();
/// Units that REFUND took back.
pub static REFUNDED: Counter = Counter::new();
/// Units recorded.
pub static RECORDED: Counter = Counter::new();
/// Units removed or forgotten: they had run out, were more than the limit, or impossible.
pub static TRIMMED: Counter = Counter::new();
/// Calls refused because the key holds another type, or somebody else's string or sorted set.
pub static REFUSED_KEYS: Counter = Counter::new();

/// Counts the answer of a CHECK or a CHECKALL.
pub fn decided(allowed: bool) {
    let counter = if allowed { &ALLOWED } else { &DENIED };
    counter.add(1);
}

/// The fields in the order shown.
pub fn snapshot() -> [(&'static CStr, u64); 10] {
    let (allowed, denied) = (ALLOWED.get(), DENIED.get());
    [
        (c"checks", allowed.wrapping_add(denied)),
        (c"allowed", allowed),
        (c"denied", denied),
        (c"reservations", RESERVATIONS.get()),
        (c"turned_away", TURNED_AWAY.get()),
        (c"peeks", PEEKS.get()),
        (c"refunded", REFUNDED.get()),
        (c"recorded", RECORDED.get()),
        (c"trimmed", TRIMMED.get()),
        (c"refused_keys", REFUSED_KEYS.get()),
    ]
}
