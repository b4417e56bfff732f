//! The only folder with unsafe code: safe handles over the raw module API.
//!
//! Why raw: the hot path of CHECK is a handful of calls of the API, and each one that goes through
//! `RM_Call` costs more than the call's own work. What is rare goes through the safe `redis_module`
//! crate instead.
//!
//! What the blocks below rely on, each where it says so:
//!
//! - **The table of functions** is filled by the server's own initialization before any code of ours
//!   runs, and never written again; the server runs commands, `INFO` and `OnLoad` on its main thread
//!   only. So reading a function from it races with nobody. `required!` takes a function that
//!   `missing_function` found there when the module was loaded.
//! - **Handles live within one command.** Whatever is made from a `Call` borrows it, so that no
//!   pointer outlives the command that the server holds it for, and it frees what it owns when
//!   dropped, on every way out of the command.
//! - **Nobody else touches an open key.** Commands run one at a time; events, which may run code of
//!   other modules, are sent only when no key is open.
//!
//! Nothing in here knows what a rate limit is, or calls anything above it: the door (`module.rs`)
//! hands over what is to be registered.
#![allow(unsafe_code)]

mod bytes;
mod command;
mod effect;
mod key;
mod load;
mod set;
mod spec;
mod string;

pub use bytes::Bytes;
pub use command::{Call, Command, Reply};
pub use effect::{notify, replicate, signal_modified, Effect, Event};
pub use key::{Access, Key, Value};
pub(crate) use load::door;
pub use load::{declare_options, load_module, refuse_unload, show_info, Loading};
pub use set::{End, Member, SortedSet};
pub use spec::{register, Argument, Flags, Keys, Shape, Spec};
pub use string::{OwnedString, Word};

use crate::rule::{Micros, MAX_TIME};
use redis_module::raw;
use std::time::{SystemTime, UNIX_EPOCH};

/// A function of the API that was found present at load time.
macro_rules! required {
    ($function:ident) => {{
        #[allow(unused_unsafe)] // where it is named in an unsafe block
        // SAFETY: the table is not written any more (see the essay of `api`), so the read races
        // with nobody.
        let function = unsafe { redis_module::raw::$function };
        match function {
            Some(function) => function,
            None => unreachable!("the module does not load without it"),
        }
    }};
}
use required;

/// The name of an API function that this server lacks and slidewin cannot do without.
fn missing_function() -> Option<&'static str> {
    macro_rules! first_missing {
        ($($function:ident)*) => {{
            // SAFETY: the server has filled the table, and nobody writes it (see the essay).
            $(if unsafe { raw::$function }.is_none() { return Some(stringify!($function)); })*
            None
        }};
    }
    first_missing! {
        RedisModule_OpenKey RedisModule_CloseKey RedisModule_KeyType RedisModule_ValueLength
        RedisModule_UnlinkKey RedisModule_GetAbsExpire RedisModule_SetAbsExpire
        RedisModule_ZsetAdd RedisModule_ZsetRem RedisModule_ZsetFirstInScoreRange
        RedisModule_ZsetLastInScoreRange RedisModule_ZsetRangeCurrentElement
        RedisModule_ZsetRangeStop RedisModule_ZsetRangeEndReached RedisModule_ZsetRangeNext
        RedisModule_ZsetRangePrev RedisModule_CreateStringFromLongLong RedisModule_StringPtrLen
        RedisModule_FreeString RedisModule_Replicate RedisModule_Call
        RedisModule_SignalModifiedKey RedisModule_NotifyKeyspaceEvent RedisModule_SetModuleOptions
        RedisModule_RegisterInfoFunc RedisModule_InfoAddSection RedisModule_InfoAddFieldULongLong
        RedisModule_StringDMA RedisModule_StringTruncate RedisModule_CreateString
        RedisModule_CreateCommand RedisModule_Log RedisModule_ReplyWithLongLong
        RedisModule_ReplyWithArray RedisModule_ReplyWithError RedisModule_WrongArity
    }
}

/// The server's wall clock, kept within `0..=MAX_TIME`.
///
/// `RM_Microseconds` exists since Redis 7.2; before, the system's clock is the same one.
pub fn now() -> Micros {
    // SAFETY: an optional function of the table (see the essay); it takes nothing and only reads
    // the clock.
    let server_time = unsafe { raw::RedisModule_Microseconds.map(|microseconds| microseconds()) };
    let micros = server_time.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| Micros::try_from(since.as_micros()).ok())
            .unwrap_or_default()
    });
    micros.clamp(0, MAX_TIME)
}
