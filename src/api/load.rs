//! Loading: what the server calls when it loads and unloads the module, and what it is told then.

use super::{missing_function, required};
use redis_module::{decode_args, raw, CallOptionsBuilder, CallReply, Context};
use std::ffi::{c_int, CStr, CString};
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Defines the functions that the server looks up by name, for the door, which denies unsafe code.
///
/// `load` registers everything or says why the module does not load, `counters` are the fields of
/// `INFO`, and `stays` says why the module is not unloaded.
macro_rules! door {
    (name: $name:expr, version: $version:expr, load: $load:path, counters: $counters:path, stays: $stays:expr $(,)?) => {
        /// Called by the server to load the module.
        ///
        /// # Safety
        ///
        /// Only the server may call it, with a context and words of its own.
        #[no_mangle]
        #[allow(unsafe_code)]
        pub unsafe extern "C" fn RedisModule_OnLoad(
            ctx: *mut redis_module::raw::RedisModuleCtx,
            words: *mut *mut redis_module::raw::RedisModuleString,
            count: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server's own context and words are passed on as they are.
            unsafe { $crate::api::load_module(ctx, words, count, $name, $version, $load, info) }
        }

        extern "C" fn info(
            info: *mut redis_module::raw::RedisModuleInfoCtx,
            _crash_report: std::ffi::c_int,
        ) {
            $crate::api::show_info(info, &$counters());
        }

        /// Called by the server before it unloads the module, which is refused.
        #[no_mangle]
        #[allow(unsafe_code)]
        pub extern "C" fn RedisModule_OnUnload(
            ctx: *mut redis_module::raw::RedisModuleCtx,
        ) -> std::ffi::c_int {
            $crate::api::refuse_unload(ctx, $stays)
        }
    };
}
pub(crate) use door;

#[allow(clippy::cast_possible_wrap)] // bindgen types this small constant as unsigned
const API_VERSION: c_int = raw::REDISMODULE_APIVER_1 as c_int;

/// Valkey's option of a module whose keys may migrate with their slots (Valkey 9).
const HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

/// The server's context while it loads the module.
pub struct Loading(pub(super) *mut raw::RedisModuleCtx);

/// Loads the module: initializes the API, then calls `load`; a failure is one line in the log.
///
/// # Safety
///
/// `ctx` and `words` must be what the server passed to `RedisModule_OnLoad`.
pub unsafe fn load_module(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
    name: &CStr,
    version: c_int,
    load: fn(&Loading, &[Vec<u8>]) -> Result<(), String>,
    info: unsafe extern "C" fn(*mut raw::RedisModuleInfoCtx, c_int),
) -> c_int {
    // SAFETY: the context is the server's, by this function's contract; this fills the table of
    // API functions, before anything else runs.
    let status = unsafe { raw::Export_RedisModule_Init(ctx, name.as_ptr(), version, API_VERSION) };
    if status != raw::Status::Ok as c_int {
        return status;
    }
    let loaded = if let Some(function) = missing_function() {
        Err(format!("this server has no {function}"))
    } else {
        let arguments = decode_args(ctx, words, count);
        let arguments: Vec<_> = arguments
            .iter()
            .map(|word| word.as_slice().to_vec())
            .collect();
        catch_unwind(|| load(&Loading(ctx), &arguments))
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
    };
    match loaded {
        Ok(()) => {
            raw::register_info_function(ctx, Some(info));
            LOADED_AT.store(command_time().unwrap_or(0), Relaxed);
            raw::Status::Ok as c_int
        }
        Err(reason) => {
            log_warning(ctx, &format!("slidewin does not load: {reason}"));
            raw::Status::Err as c_int
        }
    }
}

/// When the command that loaded the module began, by `command_time`.
static LOADED_AT: AtomicI64 = AtomicI64::new(0);

/// The time at which the running command began, in microseconds (7.2 and later).
fn command_time() -> Option<i64> {
    // SAFETY: an optional function of the table (see the essay of `api`); it takes nothing.
    unsafe { raw::RedisModule_CachedMicroseconds.map(|time| time()) }
}

/// Refuses to be unloaded, with one line in the log.
///
/// But for the command that loads the module: where the server finds its configuration wrong
/// afterwards, it takes the module back at once, before anybody can know its commands, and Redis 8
/// ends itself if that is refused.
pub fn refuse_unload(ctx: *mut raw::RedisModuleCtx, reason: &str) -> c_int {
    if command_time().is_some_and(|time| time == LOADED_AT.load(Relaxed)) {
        return raw::Status::Ok as c_int;
    }
    log_warning(ctx, &format!("slidewin does not unload: {reason}"));
    raw::Status::Err as c_int
}

/// Adds a section of counters, named like the module, to the answer to `INFO`.
pub fn show_info(info: *mut raw::RedisModuleInfoCtx, counters: &[(&CStr, u64)]) {
    // SAFETY: the server passes a valid context to its callback, the only caller; a null name is
    // the module's own, and all names are NUL-terminated.
    unsafe {
        required!(RedisModule_InfoAddSection)(info, ptr::null());
        for (field, value) in counters {
            required!(RedisModule_InfoAddFieldULongLong)(info, field.as_ptr(), *value);
        }
    }
}

/// Writes a warning to the server's log; the text is data, never a format.
fn log_warning(ctx: *mut raw::RedisModuleCtx, text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let (level, format) = (c"warning".as_ptr(), c"%s".as_ptr());
    // SAFETY: the context is the server's; `%s` takes one NUL-terminated string.
    unsafe { required!(RedisModule_Log)(ctx, level, format, text.as_ptr()) };
}

impl Loading {
    /// Whether the server knows a command by its own name, which `rename-command` can take from it.
    ///
    /// A call without arguments runs nothing: an arity error comes back, or `ENOENT`.
    pub fn knows_command(&self, command: &CStr) -> bool {
        let call = required!(RedisModule_Call);
        // SAFETY: the context is the server's, and an empty format takes no arguments. The error
        // number is read before anything else can change it.
        let (reply, error) = unsafe {
            let reply = call(self.0, command.as_ptr(), c"".as_ptr());
            (reply, std::io::Error::last_os_error())
        };
        if reply.is_null() {
            return error.kind() != std::io::ErrorKind::NotFound;
        }
        raw::free_call_reply(reply);
        true
    }

    /// Whether the server is Valkey, by what it says of itself.
    fn is_valkey(&self) -> bool {
        let options = CallOptionsBuilder::new().build();
        let info = Context::new(self.0).call_ext("INFO", &options, &[b"server".as_slice()]);
        match info {
            Ok(CallReply::String(text)) => text
                .to_string()
                .is_some_and(|text| text.contains("valkey_version:")),
            Ok(CallReply::VerbatimString(text)) => text
                .to_parts()
                .is_some_and(|(_, text)| text.windows(15).any(|part| part == b"valkey_version:")),
            _ => false,
        }
    }
}

/// Tells the server what the module takes care of itself: it says which keys it has changed, so that
/// a refusal breaks no WATCH, and it holds no data of its own, so that a replica may go on serving
/// the old data while it loads the new, and a slot may migrate with its keys.
pub fn declare_options(ctx: &Loading) {
    let mut options = (raw::ModuleOptions::NO_IMPLICIT_SIGNAL_MODIFIED
        | raw::ModuleOptions::HANDLE_REPL_ASYNC_LOAD)
        .bits();
    // SAFETY: an optional function of the table (see the essay of `api`); it takes nothing.
    let known = unsafe { raw::RedisModule_GetModuleOptionsAll.map_or(0, |all| all()) };
    // On Redis the bit may come to mean something else one day.
    if known & HANDLE_ATOMIC_SLOT_MIGRATION != 0 && ctx.is_valkey() {
        options |= HANDLE_ATOMIC_SLOT_MIGRATION;
    }
    // SAFETY: called while the module is loaded, with the server's context.
    unsafe { required!(RedisModule_SetModuleOptions)(ctx.0, options) };
}
