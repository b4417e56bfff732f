//! The only unsafe file: safe handles over the raw module API.
//!
//! Why raw: the hot path of CHECK is a handful of sorted-set calls, and each one that goes through
//! `RM_Call` costs more than the call's own work. What is rare goes through the safe `redis_module`
//! crate instead (`log.rs`).
//!
//! Three facts carry every block below:
//!
//! 1. **One thread.** The server runs commands, `INFO` and `OnLoad` on its main thread only, and the
//!    table of API functions is written once, before `OnLoad` runs our code, so reading a function
//!    pointer from it races with nobody. `required!` takes a function that `missing_function`
//!    found present when the module was loaded.
//! 2. **Handles live within one command.** A `SortedSet` borrows the command's `Context` and key
//!    name, so the pointers it passes on outlive it, and it closes what it opened when dropped.
//!    Nobody else can touch the key meanwhile: no event is sent and no write is called while it is
//!    open.
//! 3. **Ownership of strings.** A string that the API hands out is wrapped into a `RedisString` at
//!    once, which frees it when dropped; a string passed in is only borrowed by the call (the
//!    server copies it or counts the reference).
//!
//! The sorted-set calls are undefined on a key of another type, so `SortedSet::open` refuses one, and
//! a change makes an iteration invalid, so a `Range` never leaves the method that started it.
#![allow(unsafe_code)]

use crate::docs::{Argument, CommandDoc, Shape};
use crate::error::Error;
use crate::rule::{Micros, MAX_TIME};
use redis_module::{decode_args, raw, Context, RedisString};
use std::ffi::{c_int, CStr, CString};
use std::panic::catch_unwind;
use std::ptr::{self, NonNull};
use std::slice;
use std::time::{SystemTime, UNIX_EPOCH};

/// An API function that was found present at load time (fact 1).
macro_rules! required {
    ($function:ident) => {
        match raw::$function {
            Some(function) => function,
            None => unreachable!("the module does not load without it"),
        }
    };
}

/// The name of an API function that this server lacks and slidewin cannot do without.
fn missing_function() -> Option<&'static str> {
    macro_rules! first_missing {
        ($($function:ident)*) => {{
            // SAFETY: fact 1.
            $(if unsafe { raw::$function }.is_none() { return Some(stringify!($function)); })*
            None
        }};
    }
    first_missing! {
        RedisModule_OpenKey RedisModule_CloseKey RedisModule_KeyType RedisModule_ValueLength
        RedisModule_UnlinkKey RedisModule_GetAbsExpire RedisModule_SetAbsExpire
        RedisModule_ZsetAdd RedisModule_ZsetRem RedisModule_ZsetFirstInScoreRange
        RedisModule_ZsetLastInScoreRange RedisModule_ZsetRangeCurrentElement
        RedisModule_ZsetRangeStop RedisModule_ZsetRangeEndReached RedisModule_ZsetRangePrev
        RedisModule_CreateString RedisModule_CreateStringFromLongLong RedisModule_StringPtrLen
        RedisModule_RetainString RedisModule_FreeString RedisModule_Replicate RedisModule_Call
        RedisModule_SignalModifiedKey RedisModule_NotifyKeyspaceEvent RedisModule_SetModuleOptions
        RedisModule_RegisterInfoFunc RedisModule_InfoAddSection RedisModule_InfoAddFieldULongLong
        RedisModule_CreateCommand RedisModule_Log
    }
}

/// The server's wall clock, kept within `0..=MAX_TIME`.
///
/// `RM_Microseconds` exists since Redis 7.2; before, the system's clock is the same one.
pub fn now() -> Micros {
    // SAFETY: fact 1; the function takes nothing and only reads the clock.
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

/// An integer as a string of decimal digits.
pub fn digits(number: i64) -> RedisString {
    // SAFETY: fact 1; no context is needed, and the new string is owned by the wrapper.
    let string =
        unsafe { required!(RedisModule_CreateStringFromLongLong)(ptr::null_mut(), number) };
    RedisString::from_redis_module_string(ptr::null_mut(), string)
}

// bindgen types these small constants as unsigned.
#[allow(clippy::cast_possible_wrap)]
const ADD_NEW_ONLY: c_int = raw::REDISMODULE_ZADD_NX as c_int;
#[allow(clippy::cast_possible_wrap)]
const ADDED: c_int = raw::REDISMODULE_ZADD_ADDED as c_int;
#[allow(clippy::cast_possible_wrap)]
const API_VERSION: c_int = raw::REDISMODULE_APIVER_1 as c_int;

/// What a key may be opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading; the key need not exist and is not created.
    Read,
    /// Reading and writing.
    Write,
}

/// An open key that holds a sorted set or nothing.
pub struct SortedSet<'a> {
    key: *mut raw::RedisModuleKey,
    ctx: &'a Context,
}

/// Where in a range of scores an iteration starts.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// An iteration at a member, ended when dropped.
struct Range<'a> {
    set: &'a SortedSet<'a>,
}

impl Range<'_> {
    /// Goes to the next lower member, if there is one.
    fn step_down(&self) -> Option<()> {
        // SAFETY: fact 2; an iteration is under way.
        let moved = unsafe { required!(RedisModule_ZsetRangePrev)(self.set.key) };
        (moved != 0).then_some(())
    }

    fn current(&self) -> Option<Member> {
        let mut score = 0.0;
        // SAFETY: fact 2; an iteration is under way, and the new string is owned by the wrapper.
        let name =
            unsafe { required!(RedisModule_ZsetRangeCurrentElement)(self.set.key, &raw mut score) };
        (!name.is_null()).then(|| Member {
            score,
            name: RedisString::from_redis_module_string(self.set.ctx.ctx, name),
        })
    }
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        // SAFETY: fact 2; ending an iteration twice is harmless.
        unsafe { required!(RedisModule_ZsetRangeStop)(self.set.key) };
    }
}

/// A member of a sorted set and its score.
pub struct Member {
    /// The score, never NaN.
    pub score: f64,
    /// The member's bytes.
    pub name: RedisString,
}

impl<'a> SortedSet<'a> {
    /// Opens a key; `None` when it holds another type.
    pub fn open(ctx: &'a Context, name: &'a RedisString, access: Access) -> Option<Self> {
        let mode = match access {
            Access::Read => raw::KeyMode::READ,
            Access::Write => raw::KeyMode::READ | raw::KeyMode::WRITE,
        };
        let set = Self {
            key: raw::open_key(ctx.ctx, name.inner, mode),
            ctx,
        };
        // SAFETY: fact 2; the type of a null key is EMPTY.
        let kind = unsafe { required!(RedisModule_KeyType)(set.key) };
        (kind == raw::KeyType::Empty as c_int || kind == raw::KeyType::ZSet as c_int).then_some(set)
    }

    /// The number of members.
    pub fn len(&self) -> u64 {
        // SAFETY: fact 2; the length of a null key is 0.
        let len = unsafe { required!(RedisModule_ValueLength)(self.key) };
        len as u64
    }

    /// The member with the lowest score, if that is at most `max`.
    pub fn first_up_to(&self, max: f64) -> Option<Member> {
        self.range(End::First, f64::NEG_INFINITY, max)?.current()
    }

    /// The member with the highest score.
    pub fn last(&self) -> Option<Member> {
        self.nth_last(0)
    }

    /// The member with the highest score but `n`, reached by walking.
    pub fn nth_last(&self, n: u64) -> Option<Member> {
        let range = self.range(End::Last, f64::NEG_INFINITY, f64::INFINITY)?;
        for _ in 0..n {
            range.step_down()?;
        }
        range.current()
    }

    /// Whether a member's score is at most `max`.
    pub fn has_up_to(&self, max: f64) -> bool {
        self.range(End::First, f64::NEG_INFINITY, max).is_some()
    }

    /// Whether a member's score is above `min`.
    pub fn has_above(&self, min: f64) -> bool {
        self.range(End::First, min, f64::INFINITY).is_some()
    }

    /// Starts an iteration at one end of a range of scores, above `min` or from minus infinity and
    /// up to `max`; `None` when no member is in it.
    fn range(&self, end: End, min: f64, max: f64) -> Option<Range<'_>> {
        if self.key.is_null() {
            return None;
        }
        let above_min = c_int::from(min.is_finite());
        // SAFETY: fact 2; an empty key is refused by status, and `Range` ends the iteration.
        unsafe {
            let seek = match end {
                End::First => required!(RedisModule_ZsetFirstInScoreRange),
                End::Last => required!(RedisModule_ZsetLastInScoreRange),
            };
            if seek(self.key, min, max, above_min, 0) != raw::Status::Ok as c_int {
                return None;
            }
            let range = Range { set: self };
            (required!(RedisModule_ZsetRangeEndReached)(self.key) == 0).then_some(range)
        }
    }

    /// The handle for a change: null only when an absent key was opened for reading. (The server
    /// itself refuses a change through any other handle for reading.)
    fn for_change(&mut self) -> Option<*mut raw::RedisModuleKey> {
        (!self.key.is_null()).then_some(self.key)
    }

    /// Adds a member, creating the key; false, and no change, when the member exists.
    pub fn add(&mut self, score: f64, name: &RedisString) -> Result<bool, Error> {
        let key = self.for_change().ok_or(Error::Internal)?;
        let mut flags = ADD_NEW_ONLY;
        // SAFETY: fact 2; the key is a sorted set or empty.
        let status =
            unsafe { required!(RedisModule_ZsetAdd)(key, score, name.inner, &raw mut flags) };
        if status != raw::Status::Ok as c_int {
            return Err(Error::Internal);
        }
        Ok(flags & ADDED != 0)
    }

    /// Removes a member, and the key with its last one; false when there was no such member.
    pub fn remove(&mut self, name: &RedisString) -> bool {
        let Some(key) = self.for_change() else {
            return false;
        };
        let mut removed = 0;
        // SAFETY: fact 2; the key is a sorted set, or empty, which is refused by status.
        let status = unsafe { required!(RedisModule_ZsetRem)(key, name.inner, &raw mut removed) };
        status == raw::Status::Ok as c_int && removed == 1
    }

    /// Removes the key; the memory is freed in the background.
    pub fn unlink(&mut self) {
        if let Some(key) = self.for_change() {
            // SAFETY: fact 2; the handle stays valid, for an empty key.
            unsafe { required!(RedisModule_UnlinkKey)(key) };
        }
    }

    /// When the key expires, in Unix milliseconds.
    pub fn expiry(&self) -> Option<i64> {
        if self.key.is_null() {
            return None;
        }
        // SAFETY: fact 2; an empty key has no expiry.
        let expiry = unsafe { required!(RedisModule_GetAbsExpire)(self.key) };
        (expiry != i64::from(raw::REDISMODULE_NO_EXPIRE)).then_some(expiry)
    }

    /// Lets the key expire at a time in Unix milliseconds, which must not be negative.
    pub fn set_expiry(&mut self, at_ms: i64) {
        if let Some(key) = self.for_change() {
            // SAFETY: fact 2; an empty key is refused by status.
            unsafe { required!(RedisModule_SetAbsExpire)(key, at_ms) };
        }
    }

    /// Closes the key; from then on it is as if absent and opened for reading.
    pub fn close(&mut self) {
        raw::close_key(std::mem::replace(&mut self.key, ptr::null_mut()));
    }
}

impl Drop for SortedSet<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// What follows the key in a replicated command.
pub enum Effect<'a> {
    /// `UNLINK key`
    Unlink,
    /// `ZREMRANGEBYRANK key 0 last`
    RemoveUpToRank(i64),
    /// `ZREMRANGEBYRANK key first -1`
    RemoveFromRank(i64),
    /// `ZREMRANGEBYSCORE key (after +inf`
    RemoveAfter(Micros),
    /// `ZADD key score member ...`, each string being both.
    Add(&'a [RedisString]),
    /// `PEXPIREAT key ms`
    Expire(i64),
}

/// Sends an effect on the named key to replicas and the append-only file.
pub fn replicate(ctx: &Context, key: &RedisString, effect: &Effect) {
    let (ctx, key) = (ctx.ctx, key.inner);
    // SAFETY: every format names the types of the arguments after it, which outlive the call: `s` a
    // string, `l` a long long, `c` a NUL-terminated text, `v` a pointer to strings and their number.
    unsafe {
        let send = required!(RedisModule_Replicate);
        match effect {
            Effect::Unlink => send(ctx, c"UNLINK".as_ptr(), c"s".as_ptr(), key),
            Effect::RemoveUpToRank(last) => {
                let (command, first) = (c"ZREMRANGEBYRANK".as_ptr(), c"0".as_ptr());
                send(ctx, command, c"scl".as_ptr(), key, first, *last)
            }
            Effect::RemoveFromRank(first) => {
                let (command, last) = (c"ZREMRANGEBYRANK".as_ptr(), c"-1".as_ptr());
                send(ctx, command, c"slc".as_ptr(), key, *first, last)
            }
            Effect::RemoveAfter(after) => {
                let command = c"ZREMRANGEBYSCORE".as_ptr();
                let after = CString::new(format!("({after}")).unwrap_or_default();
                let max = c"+inf".as_ptr();
                send(ctx, command, c"scc".as_ptr(), key, after.as_ptr(), max)
            }
            Effect::Add([one]) => {
                let command = c"ZADD".as_ptr();
                send(ctx, command, c"sss".as_ptr(), key, one.inner, one.inner)
            }
            Effect::Add(many) => {
                let command = c"ZADD".as_ptr();
                let pairs: Vec<_> = many.iter().flat_map(|one| [one.inner; 2]).collect();
                send(
                    ctx,
                    command,
                    c"sv".as_ptr(),
                    key,
                    pairs.as_ptr(),
                    pairs.len(),
                )
            }
            Effect::Expire(at_ms) => send(ctx, c"PEXPIREAT".as_ptr(), c"sl".as_ptr(), key, *at_ms),
        }
    };
}

/// Tells watchers and tracking clients that the key has changed.
pub fn signal_modified(ctx: &Context, key: &RedisString) {
    // SAFETY: fact 2; both belong to the running command.
    unsafe { required!(RedisModule_SignalModifiedKey)(ctx.ctx, key.inner) };
}

/// Sends a keyspace event.
pub fn notify(ctx: &Context, class: raw::NotifyEvent, event: &CStr, key: &RedisString) {
    // SAFETY: fact 2; no key is open, for a listener of another module may change it.
    unsafe {
        required!(RedisModule_NotifyKeyspaceEvent)(
            ctx.ctx,
            class.bits(),
            event.as_ptr(),
            key.inner,
        );
    }
}

/// Tells the server what the module takes care of itself: it says which keys it has changed, so that
/// a refusal breaks no WATCH, and it holds no data of its own, so that a replica may go on serving
/// the old data while it loads the new.
pub fn set_options(ctx: &Context) {
    let options = raw::ModuleOptions::NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::ModuleOptions::HANDLE_REPL_ASYNC_LOAD;
    // SAFETY: fact 1; called from OnLoad.
    unsafe { required!(RedisModule_SetModuleOptions)(ctx.ctx, options.bits()) };
}

/// Whether the server knows a command by its own name, which `rename-command` can take from it.
///
/// A call without arguments runs nothing: an arity error comes back, or `ENOENT`.
pub fn knows_command(ctx: &Context, command: &CStr) -> bool {
    // SAFETY: an empty format takes no arguments; a reply, if any, is freed.
    unsafe {
        let reply = required!(RedisModule_Call)(ctx.ctx, command.as_ptr(), c"".as_ptr());
        let error = std::io::Error::last_os_error();
        if reply.is_null() {
            return error.kind() != std::io::ErrorKind::NotFound;
        }
        raw::free_call_reply(reply);
    }
    true
}

/// Writes a warning to the server's log; the text is data, never a format.
fn log_warning(ctx: *mut raw::RedisModuleCtx, text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: `%s` takes one NUL-terminated string.
    unsafe {
        required!(RedisModule_Log)(ctx, c"warning".as_ptr(), c"%s".as_ptr(), text.as_ptr());
    }
}

/// Lets `INFO` show the counters of `stats.rs`, in a section of the module's name.
pub fn register_info(ctx: &Context) {
    extern "C" fn info(info: *mut raw::RedisModuleInfoCtx, _crash_report: c_int) {
        // SAFETY: the server passes a valid context; all strings are NUL-terminated literals.
        unsafe {
            required!(RedisModule_InfoAddSection)(info, ptr::null());
            for (field, value) in crate::stats::snapshot() {
                required!(RedisModule_InfoAddFieldULongLong)(info, field.as_ptr(), value);
            }
        }
    }
    raw::register_info_function(ctx.ctx, Some(info));
}

/// Called by the server when it loads the module; a module that does not load says why in one line.
#[no_mangle]
pub extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> c_int {
    // SAFETY: the server passes a valid context; this fills the table of API functions.
    let status = unsafe {
        raw::Export_RedisModule_Init(ctx, c"slidewin".as_ptr(), crate::VERSION, API_VERSION)
    };
    if status != raw::Status::Ok as c_int {
        return status;
    }
    let loaded = if let Some(function) = missing_function() {
        Err(format!("this server has no {function}"))
    } else {
        let arguments = decode_args(ctx, words, count);
        catch_unwind(|| crate::load(&Context::new(ctx), &arguments))
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
    };
    match loaded {
        Ok(()) => raw::Status::Ok as c_int,
        Err(reason) => {
            log_warning(ctx, &format!("slidewin does not load: {reason}"));
            raw::Status::Err as c_int
        }
    }
}

/// Called by the server before it unloads the module, which a module may refuse, in one line.
#[no_mangle]
pub extern "C" fn RedisModule_OnUnload(ctx: *mut raw::RedisModuleCtx) -> c_int {
    let unloaded = catch_unwind(|| crate::unload(&Context::new(ctx)));
    match unloaded.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        Ok(()) => raw::Status::Ok as c_int,
        Err(reason) => {
            log_warning(ctx, &format!("slidewin does not unload: {reason}"));
            raw::Status::Err as c_int
        }
    }
}

/// Runs a command for its entry point.
pub fn run(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
    command: impl FnOnce(&Context, &Words) -> raw::Status,
) -> c_int {
    let ctx = Context::new(ctx);
    // SAFETY: the server passes that many words, and holds them until the command returns.
    let words = unsafe { slice::from_raw_parts(words, usize::try_from(count).unwrap_or(0)) };
    command(&ctx, &Words(words)) as c_int
}

/// The words of a running command, which the server holds.
pub struct Words<'a>(&'a [*mut raw::RedisModuleString]);

impl<'a> Words<'a> {
    /// The key, and the bytes of each argument after it; `None` without a key.
    pub fn key_and_arguments(
        &self,
        ctx: &Context,
    ) -> Option<(RedisString, impl Iterator<Item = &'a [u8]>)> {
        let [_, key, arguments @ ..] = self.0 else {
            return None;
        };
        let bytes = |word: &*mut raw::RedisModuleString| {
            let mut len = 0;
            // SAFETY: fact 2; the bytes live as long as the word does, and nobody changes them.
            unsafe {
                let start = required!(RedisModule_StringPtrLen)(*word, &raw mut len);
                slice::from_raw_parts(start.cast(), len)
            }
        };
        let key = RedisString::new(NonNull::new(ctx.ctx), *key);
        Some((key, arguments.iter().map(bytes)))
    }
}

/// A function that the server calls to run a command.
pub type EntryPoint =
    extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;

/// Registers a command with its documentation, key flags, arity and ACL categories, as far as the
/// server has such things (7.0 and 7.2); false when it refuses.
pub fn register(ctx: &Context, doc: &CommandDoc, entry_point: EntryPoint) -> bool {
    let ok = raw::Status::Ok as c_int;
    // SAFETY: fact 1; name and flags are NUL-terminated, and the server copies them.
    let status = unsafe {
        required!(RedisModule_CreateCommand)(
            ctx.ctx,
            doc.name.as_ptr(),
            Some(entry_point),
            doc.flags.as_ptr(),
            1,
            1,
            1,
        )
    };
    if status != ok {
        return false;
    }
    // SAFETY: fact 1.
    let Some(get_command) = (unsafe { raw::RedisModule_GetCommand }) else {
        return true;
    };
    // SAFETY: the name is NUL-terminated.
    let command = unsafe { get_command(ctx.ctx, doc.name.as_ptr()) };
    if command.is_null() {
        return false;
    }
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    // SAFETY: all-zero is the API's own default of a key spec, and the end mark of a list.
    let (mut spec, end) = unsafe {
        (
            std::mem::zeroed::<raw::RedisModuleCommandKeySpec>(),
            std::mem::zeroed::<raw::RedisModuleCommandKeySpec>(),
        )
    };
    spec.flags = doc.key_flags;
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = 1;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
        lastkey: 0,
        keystep: 1,
        limit: 0,
    };
    let mut specs = [spec, end];
    let mut nested = Vec::new();
    let mut arguments = raw_arguments(doc.arguments, &mut nested);
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: doc.summary.as_ptr(),
        complexity: doc.complexity.as_ptr(),
        since: doc.since.as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: doc.arity,
        key_specs: specs.as_mut_ptr(),
        args: arguments.as_mut_ptr(),
    };
    // SAFETY: fact 1; the server copies what `info` points to, all of which lives to the end of
    // this function, and every list ends with a zeroed element.
    unsafe {
        raw::RedisModule_SetCommandInfo.is_none_or(|set| set(command, &raw const info) == ok)
            && raw::RedisModule_SetCommandACLCategories
                .is_none_or(|set| set(command, doc.acl_categories.as_ptr()) == ok)
    }
}

/// The list of arguments as the API takes it; `nested` keeps the lists that it points into.
fn raw_arguments(
    arguments: &[Argument],
    nested: &mut Vec<Vec<raw::RedisModuleCommandArg>>,
) -> Vec<raw::RedisModuleCommandArg> {
    let mut list: Vec<_> = arguments
        .iter()
        .map(|argument| {
            // SAFETY: all-zero is the API's own default: no token, no flags, no sub-arguments.
            let mut raw = unsafe { std::mem::zeroed::<raw::RedisModuleCommandArg>() };
            raw.name = argument.name.as_ptr();
            raw.key_spec_index = -1;
            raw.token = argument.token.map_or(ptr::null(), CStr::as_ptr);
            raw.flags = argument.flags;
            raw.type_ = match argument.shape {
                Shape::Key => {
                    raw.key_spec_index = 0;
                    raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY
                }
                Shape::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
                Shape::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
                Shape::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
                Shape::Block(parts) => {
                    let mut parts = raw_arguments(parts, nested);
                    raw.subargs = parts.as_mut_ptr();
                    nested.push(parts);
                    raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK
                }
            };
            raw
        })
        .collect();
    // SAFETY: as above; a zeroed element ends the list.
    list.push(unsafe { std::mem::zeroed() });
    list
}
