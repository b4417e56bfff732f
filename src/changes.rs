//! What a call has done to a log, and how the rest of the world learns of it.
//!
//! The module API's own changes neither reach replicas and the append-only file nor send events. So
//! they are noted, and published together: as plain commands that replay to the same bytes without a
//! clock and without the module, and as the events that core would send. Nothing changed, nothing is
//! published.

use crate::api::{self, Call, Effect, Event, OwnedString, Word};
use crate::rule::Micros;

/// The changes of one call to one key, in the order in which they are replayed.
#[derive(Default)]
pub struct Changes {
    newest: Option<Newest>,
    oldest: i64,
    refunded: Option<(Micros, Micros)>,
    emptied: bool,
    added: Vec<OwnedString>,
    written: [Option<Written>; 2],
    expiry: Option<i64>,
}

/// What was removed at the new end.
#[derive(Clone, Copy)]
enum Newest {
    /// All after a time.
    After(Micros),
    /// So many, of more.
    Count(i64),
}

/// What became of a string.
pub enum Written {
    /// It was replaced.
    Set(OwnedString),
    /// This was appended.
    Append(OwnedString),
    /// This was written from a byte on.
    SetRange(i64, OwnedString),
}

impl Written {
    fn effect(&self) -> (Effect<'_>, Event) {
        match self {
            Self::Set(value) => (Effect::Set(value), Event::SET),
            Self::Append(value) => (Effect::Append(value), Event::APPEND),
            Self::SetRange(from, value) => (Effect::SetRange(*from, value), Event::SETRANGE),
        }
    }
}

impl Changes {
    /// All entries after a time were removed.
    pub fn removed_after(&mut self, time: Micros) {
        self.newest = Some(Newest::After(time));
    }

    /// So many of the newest entries were removed.
    pub fn removed_newest(&mut self, entries: usize) {
        self.newest = Some(Newest::Count(signed(entries as u64)));
    }

    /// So many of the oldest entries were removed, beside those noted before.
    pub fn removed_oldest(&mut self, entries: u64) {
        self.oldest += signed(entries);
    }

    /// The entries from one time to another were removed, and with them the key if none is left.
    pub fn refunded(&mut self, first: Micros, last: Micros, emptied: bool) {
        self.refunded = Some((first, last));
        self.emptied = emptied;
    }

    /// An entry was added.
    pub fn added(&mut self, entry: OwnedString) {
        self.added.push(entry);
    }

    /// The expiry was set, in Unix milliseconds.
    pub fn expires(&mut self, at_ms: i64) {
        self.expiry = Some(at_ms);
    }

    /// A string was written, which has an expiry or keeps it where that is `None`.
    pub fn wrote(&mut self, written: Written, expiry: Option<i64>) {
        let [first, second] = &mut self.written;
        *(if first.is_none() { first } else { second }) = Some(written);
        self.expiry = expiry.or(self.expiry);
    }

    fn is_empty(&self) -> bool {
        self.newest.is_none()
            && self.oldest == 0
            && self.refunded.is_none()
            && self.added.is_empty()
            && self.written[0].is_none()
            && self.expiry.is_none()
    }

    /// Replicates and announces the changes. No key may be open.
    pub fn publish(&self, call: &Call, name: Word) {
        if self.is_empty() {
            return;
        }
        self.each(|effect, _| api::replicate(call, name, effect));
        api::signal_modified(call, name);
        self.each(|_, event| api::notify(call, name, event));
        if self.emptied {
            api::notify(call, name, &Event::DEL);
        }
    }

    /// The plain commands that replay the changes, in their order, and the event of each.
    fn each(&self, mut tell: impl FnMut(Effect, &Event)) {
        match self.newest {
            Some(Newest::After(time)) => tell(Effect::RemoveAfter(time), &Event::ZREMRANGEBYSCORE),
            Some(Newest::Count(n)) => tell(Effect::RemoveFromRank(-n), &Event::ZREMRANGEBYRANK),
            None => {}
        }
        if self.oldest > 0 {
            tell(
                Effect::RemoveUpToRank(self.oldest - 1),
                &Event::ZREMRANGEBYRANK,
            );
        }
        if let Some((first, last)) = self.refunded {
            tell(Effect::RemoveBetween(first, last), &Event::ZREMRANGEBYSCORE);
        }
        if !self.added.is_empty() {
            tell(Effect::Add(&self.added), &Event::ZADD);
        }
        for written in self.written.iter().flatten() {
            let (effect, event) = written.effect();
            tell(effect, &event);
        }
        if let Some(at_ms) = self.expiry {
            tell(Effect::Expire(at_ms), &Event::EXPIRE);
        }
    }
}

/// Tells the world that a key was unlinked. No key may be open.
///
/// At once and not with the other changes, for the server itself announces a new key while it is
/// made: the `del` of the old one comes before it.
pub fn publish_unlink(call: &Call, name: Word) {
    api::replicate(call, name, Effect::Unlink);
    api::signal_modified(call, name);
    api::notify(call, name, &Event::DEL);
}

fn signed(entries: u64) -> i64 {
    i64::try_from(entries).unwrap_or(i64::MAX)
}
