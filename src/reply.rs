//! Answers as RESP values: integers and arrays of integers, the same in RESP2 and RESP3.

use crate::decision::{Standing, Wait};
use crate::rule::Rule;
use redis_module::{raw, Context};
use std::ffi::c_long;

/// What a command answers. (The crate's own type of replies has many more forms, and moving one
/// about costs more than making it.)
pub enum Reply {
    /// An integer.
    Integer(i64),
    /// An array.
    Array(Vec<Reply>),
}

impl Reply {
    /// Sends the reply to the client.
    pub fn send(&self, ctx: &Context) -> raw::Status {
        match self {
            Self::Integer(number) => raw::reply_with_long_long(ctx.ctx, *number),
            Self::Array(elements) => {
                let len = c_long::try_from(elements.len()).unwrap_or(c_long::MAX);
                let begun = raw::reply_with_array(ctx.ctx, len);
                for element in elements {
                    element.send(ctx);
                }
                begun
            }
        }
    }
}

/// 1 allowed, 0 denied: safe in every language's `if`.
pub fn verdict(allowed: bool) -> Reply {
    Reply::Integer(i64::from(allowed))
}

/// A count or a limit.
pub fn number(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The WITHINFO array: allowed, then limit, remaining, `retry_after_ms`, `reset_after_ms`,
/// `full_after_ms` and used of the binding rule; with two rules or more an eighth element, an array
/// for each rule of limit, `window_ms`, used, remaining, `retry_after_ms` and `reset_after_ms`.
pub fn info(allowed: bool, binding: &Standing, standings: &[Standing]) -> Reply {
    let mut fields = vec![
        verdict(allowed),
        number(binding.rule.limit),
        number(binding.remaining()),
        wait(binding.retry_after),
        wait(binding.reset_after),
        wait(binding.full_after),
        number(binding.used),
    ];
    if standings.len() > 1 {
        fields.push(Reply::Array(standings.iter().map(rule).collect()));
    }
    Reply::Array(fields)
}

fn rule(standing: &Standing) -> Reply {
    Reply::Array(vec![
        number(standing.rule.limit),
        number(window_ms(standing.rule)),
        number(standing.used),
        number(standing.remaining()),
        wait(standing.retry_after),
        wait(standing.reset_after),
    ])
}

fn window_ms(rule: Rule) -> u64 {
    rule.window.micros().unsigned_abs().div_ceil(1_000)
}

/// Milliseconds, or -1 for never.
fn wait(wait: Wait) -> Reply {
    match wait {
        Wait::Ms(ms) => number(ms),
        Wait::Never => Reply::Integer(-1),
    }
}
