//! slidewin: an exact sliding-window rate limiter as a Redis module.
//!
//! A call travels in one direction: words of the command → arguments → numbers of the log →
//! verdict → effects → reply. The files, from the bottom up, each using only what stands above it:
//!
//! | file | role |
//! | --- | --- |
//! | `rule.rs` | limits, windows and costs as types that cannot be wrong; pure |
//! | `decision.rs` | the verdict and the waits, of a rule, the time and numbers of the log; pure |
//! | `decimal.rs` | strict decimal numbers; pure |
//! | `error.rs` | every error that slidewin answers with |
//! | `args.rs` | words of a command into rules, units and options |
//! | `stats.rs` | the counters of `INFO slidewin` |
//! | `docs.rs` | what `COMMAND DOCS` says, as data |
//! | `api.rs` | the only unsafe file: safe handles over the raw module API |
//! | `changes.rs` | what a call has done to a key: its replication and events |
//! | `log.rs` | the sorted set: its stored form, what counts, how it changes |
//! | `reply.rs` | verdicts and standings as RESP values |
//! | `command/` | CHECK, PEEK and REFUND, a file each |
//!
//! `log.rs` does not know what a rule decides, and `decision.rs` not where numbers come from; the
//! commands carry numbers between them.

mod rule;

mod decision;

mod decimal;

mod error;

mod args;

mod stats;

mod docs;

mod api;

mod changes;

mod log;

mod reply;

mod command;

use error::Error;
use redis_module::{raw, Context, RedisString};
use redis_module::{CallOptionsBuilder, CallReply, CallResult};
use reply::Reply;
use std::ffi::{c_int, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The server's allocator, so that `used_memory` counts ours; it exists only inside the server.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;

/// The package's version as a number that sorts: 1.2.3 is 10203.
const VERSION: i32 = {
    const fn part(text: &str) -> i32 {
        let mut number = 0;
        let mut rest = text.as_bytes();
        while let [digit, others @ ..] = rest {
            number = number * 10 + (*digit - b'0') as i32;
            rest = others;
        }
        number
    }
    part(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + part(env!("CARGO_PKG_VERSION_PATCH"))
};

/// Commands that changes are replicated as, and those that read what the module API cannot.
const NEEDED_COMMANDS: [&CStr; 7] = [
    c"ZADD",
    c"ZREMRANGEBYRANK",
    c"ZREMRANGEBYSCORE",
    c"PEXPIREAT",
    c"UNLINK",
    c"ZCOUNT",
    c"ZRANGE",
];

/// Completes the registration, or says why the module does not load.
fn load(ctx: &Context, arguments: &[RedisString]) -> Result<(), String> {
    if let Some(argument) = arguments.first() {
        return Err(format!(
            "it takes no arguments, but was given '{}'",
            argument.as_slice().escape_ascii()
        ));
    }
    for command in NEEDED_COMMANDS {
        if !api::knows_command(ctx, command) {
            return Err(format!(
                "it needs the command {}, which this server has renamed or disabled",
                command.to_string_lossy()
            ));
        }
    }
    let commands: [(_, api::EntryPoint); 3] = [
        (docs::CHECK, check),
        (docs::PEEK, peek),
        (docs::REFUND, refund),
    ];
    for (doc, entry_point) in commands {
        if !api::register(ctx, &doc, entry_point) {
            return Err(format!(
                "the server refused the command {}",
                doc.name.to_string_lossy()
            ));
        }
    }
    api::set_options(ctx);
    api::register_info(ctx);
    Ok(())
}

/// Defines what the server calls to run a command of this name.
macro_rules! entry_point {
    ($name:ident) => {
        extern "C" fn $name(
            ctx: *mut raw::RedisModuleCtx,
            words: *mut *mut raw::RedisModuleString,
            count: c_int,
        ) -> c_int {
            api::run(ctx, words, count, |ctx, words| {
                answer(ctx, || command::$name(ctx, words))
            })
        }
    };
}
entry_point!(check);
entry_point!(peek);
entry_point!(refund);

/// Lets go of every client that still points to a command of the module, or says why the module stays.
///
/// The server frees the commands, but a client keeps a pointer to its last one: `CLIENT LIST` reads
/// it, and Redis 8 calls it again (crashes seen on 6.2, 7.2 and 8.2). Such clients are disconnected.
/// A transaction keeps pointers to all of its commands, whatever the last one is; so as not to
/// break one that has nothing to do with slidewin, the module stays until it has ended.
fn unload(ctx: &Context) -> Result<(), String> {
    let client = |words: &[&[u8]]| -> CallResult<'static> {
        ctx.call_ext("CLIENT", &CallOptionsBuilder::new().build(), words)
    };
    let Ok(CallReply::String(list)) = client(&[b"LIST"]) else {
        return Err("CLIENT LIST failed".to_owned());
    };
    let list = String::from_utf8_lossy(list.as_bytes());
    let queued = |line| field(line, "multi").parse().unwrap_or(0_i64);
    if list.lines().any(|line| queued(line) > 0) {
        return Err("a client has commands queued in MULTI".to_owned());
    }
    let is_ours = |line: &&str| field(line, "cmd").starts_with("slidewin.");
    for line in list.lines().filter(is_ours) {
        if client(&[b"KILL", b"ID", field(line, "id").as_bytes()]).is_err() {
            return Err("CLIENT KILL failed".to_owned());
        }
    }
    Ok(())
}

/// A field of a line of `CLIENT LIST`; empty when it is not there.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    let value = fields.find_map(|(field, value)| (field == name).then_some(value));
    value.unwrap_or_default()
}

/// Runs a command and sends what it answers.
fn answer(ctx: &Context, command: impl FnOnce() -> Result<Reply, Error>) -> raw::Status {
    match guarded(command) {
        Ok(reply) => reply.send(ctx),
        Err(error) => ctx.reply(Err(error.into_reply())),
    }
}

/// Runs a command; a panic, which would abort the server, becomes an error.
fn guarded<T>(command: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(command)).unwrap_or(Err(Error::Internal))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 50.
    #[test]
    fn a_panic_becomes_an_internal_error() {
        let answer: Result<(), _> = guarded(|| panic!("a defect"));
        assert_eq!(answer, Err(Error::Internal));
        assert_eq!(Error::Internal.to_string(), "ERR internal error");
    }
}
