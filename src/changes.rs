//! What a call has done to a log, and how the rest of the world learns of it.
//!
//! The module API's own changes neither reach replicas and the append-only file nor send events. So
//! they are noted, and published together: as plain commands that replay to the same bytes without a
//! clock and without the module, and as the events that core would send. Nothing changed, nothing is
//! published.

use crate::api::{self, Effect};
use crate::rule::Micros;
use redis_module::raw::NotifyEvent;
use redis_module::{Context, RedisString};
use std::ffi::CStr;

/// The changes of one call to one key.
#[derive(Default)]
pub struct Changes {
    /// The key was unlinked, before anything was added: removals that came before are part of it.
    pub unlinked: bool,
    /// The expiry that went with an unlinked key, in Unix milliseconds.
    pub lost_expiry: Option<i64>,
    /// Entries removed at the old end.
    pub removed_oldest: i64,
    /// Entries removed at the new end.
    pub removed_newest: i64,
    /// The newest ones removed are all that were after this time.
    pub removed_after: Option<Micros>,
    /// The entries added.
    pub added: Vec<RedisString>,
    /// The new expiry, in Unix milliseconds.
    pub expiry: Option<i64>,
    /// Entries removed in all.
    pub removed: u64,
}

type Event = (NotifyEvent, &'static CStr);

const DELETED: Event = (NotifyEvent::GENERIC, c"del");
const REMOVED_BY_RANK: Event = (NotifyEvent::ZSET, c"zremrangebyrank");
const REMOVED_BY_SCORE: Event = (NotifyEvent::ZSET, c"zremrangebyscore");
const ADDED: Event = (NotifyEvent::ZSET, c"zadd");
const EXPIRES: Event = (NotifyEvent::GENERIC, c"expire");

impl Changes {
    /// Replicates and announces the changes. The key must not be open.
    pub fn publish(&self, ctx: &Context, key: &RedisString) {
        let newest = (self.removed_newest > 0).then(|| {
            let first = self.removed_newest.saturating_neg();
            let by_rank = (Effect::RemoveFromRank(first), REMOVED_BY_RANK);
            let by_score = |after| (Effect::RemoveAfter(after), REMOVED_BY_SCORE);
            self.removed_after.map_or(by_rank, by_score)
        });
        let oldest = (self.removed_oldest > 0).then(|| {
            let last = self.removed_oldest.saturating_sub(1);
            (Effect::RemoveUpToRank(last), REMOVED_BY_RANK)
        });
        let added = !self.added.is_empty();
        let effects = [
            self.unlinked.then_some((Effect::Unlink, DELETED)),
            newest,
            oldest,
            added.then_some((Effect::Add(&self.added), ADDED)),
            self.expiry.map(|at_ms| (Effect::Expire(at_ms), EXPIRES)),
        ];
        let effects = || effects.iter().flatten();
        if effects().next().is_none() {
            return;
        }
        for (effect, _) in effects() {
            api::replicate(ctx, key, effect);
        }
        api::signal_modified(ctx, key);
        for (_, (class, event)) in effects() {
            api::notify(ctx, *class, event, key);
        }
    }
}
