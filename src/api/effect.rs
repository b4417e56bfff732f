//! How the rest of the world learns of a change: replication, watchers, events.

use super::{required, Call, OwnedString, Word};
use crate::rule::Micros;
use redis_module::raw::NotifyEvent;
use std::ffi::{CStr, CString};

/// A plain command that replays a change, without its key.
#[derive(Clone, Copy)]
pub enum Effect<'a> {
    /// `UNLINK key`
    Unlink,
    /// `ZREMRANGEBYRANK key 0 last`
    RemoveUpToRank(i64),
    /// `ZREMRANGEBYRANK key first -1`
    RemoveFromRank(i64),
    /// `ZREMRANGEBYSCORE key (after +inf`
    RemoveAfter(Micros),
    /// `ZREMRANGEBYSCORE key first last`
    RemoveBetween(Micros, Micros),
    /// `ZADD key score member ...`, each string being both.
    Add(&'a [OwnedString]),
    /// `SET key value`
    Set(&'a OwnedString),
    /// `APPEND key value`
    Append(&'a OwnedString),
    /// `SETRANGE key offset value`
    SetRange(i64, &'a OwnedString),
    /// `PEXPIREAT key ms`
    Expire(i64),
}

/// Sends an effect on the named key to replicas and the append-only file.
pub fn replicate(call: &Call, name: Word, effect: Effect) {
    let (ctx, key) = (call.ctx, name.pointer());
    let send = required!(RedisModule_Replicate);
    // SAFETY: the context and all strings outlive this call. Every format names the types of the
    // arguments after it: `s` a string, `l` a long long, `c` a NUL-terminated text, `v` a pointer to
    // strings and their number.
    unsafe {
        match effect {
            Effect::Unlink => send(ctx, c"UNLINK".as_ptr(), c"s".as_ptr(), key),
            Effect::RemoveUpToRank(last) => {
                let (command, first) = (c"ZREMRANGEBYRANK".as_ptr(), c"0".as_ptr());
                send(ctx, command, c"scl".as_ptr(), key, first, last)
            }
            Effect::RemoveFromRank(first) => {
                let (command, last) = (c"ZREMRANGEBYRANK".as_ptr(), c"-1".as_ptr());
                send(ctx, command, c"slc".as_ptr(), key, first, last)
            }
            Effect::RemoveAfter(after) => {
                let after = CString::new(format!("({after}")).unwrap_or_default();
                let (command, max) = (c"ZREMRANGEBYSCORE".as_ptr(), c"+inf".as_ptr());
                send(ctx, command, c"scc".as_ptr(), key, after.as_ptr(), max)
            }
            Effect::RemoveBetween(first, last) => {
                let command = c"ZREMRANGEBYSCORE".as_ptr();
                send(ctx, command, c"sll".as_ptr(), key, first, last)
            }
            Effect::Add([one]) => {
                let (command, one) = (c"ZADD".as_ptr(), one.pointer());
                send(ctx, command, c"sss".as_ptr(), key, one, one)
            }
            Effect::Add(many) => {
                let pairs: Vec<_> = many.iter().flat_map(|one| [one.pointer(); 2]).collect();
                let (command, count) = (c"ZADD".as_ptr(), pairs.len());
                send(ctx, command, c"sv".as_ptr(), key, pairs.as_ptr(), count)
            }
            Effect::Set(value) => send(ctx, c"SET".as_ptr(), c"ss".as_ptr(), key, value.pointer()),
            Effect::Append(value) => send(
                ctx,
                c"APPEND".as_ptr(),
                c"ss".as_ptr(),
                key,
                value.pointer(),
            ),
            Effect::SetRange(offset, value) => {
                let (command, value) = (c"SETRANGE".as_ptr(), value.pointer());
                send(ctx, command, c"sls".as_ptr(), key, offset, value)
            }
            Effect::Expire(at_ms) => send(ctx, c"PEXPIREAT".as_ptr(), c"sl".as_ptr(), key, at_ms),
        }
    };
}

/// Tells watchers and tracking clients that the key has changed.
pub fn signal_modified(call: &Call, name: Word) {
    // SAFETY: the context and the name are those of the running command.
    unsafe { required!(RedisModule_SignalModifiedKey)(call.ctx, name.pointer()) };
}

/// A keyspace event: its class and its name.
pub struct Event(NotifyEvent, &'static CStr);

impl Event {
    /// The key is gone.
    pub const DEL: Self = Self(NotifyEvent::GENERIC, c"del");
    /// The key's expiry was set.
    pub const EXPIRE: Self = Self(NotifyEvent::GENERIC, c"expire");
    /// The value was replaced.
    pub const SET: Self = Self(NotifyEvent::STRING, c"set");
    /// Something was appended to the value.
    pub const APPEND: Self = Self(NotifyEvent::STRING, c"append");
    /// A part of the value was overwritten.
    pub const SETRANGE: Self = Self(NotifyEvent::STRING, c"setrange");
    /// Members were added.
    pub const ZADD: Self = Self(NotifyEvent::ZSET, c"zadd");
    /// Members were removed by rank.
    pub const ZREMRANGEBYRANK: Self = Self(NotifyEvent::ZSET, c"zremrangebyrank");
    /// Members were removed by score.
    pub const ZREMRANGEBYSCORE: Self = Self(NotifyEvent::ZSET, c"zremrangebyscore");
}

/// Sends a keyspace event. No key may be open, for a listener of another module may change it.
pub fn notify(call: &Call, name: Word, event: &Event) {
    let (class, text) = (event.0.bits(), event.1.as_ptr());
    // SAFETY: the context and the name are those of the running command, and the text is
    // NUL-terminated.
    unsafe { required!(RedisModule_NotifyKeyspaceEvent)(call.ctx, class, text, name.pointer()) };
}
