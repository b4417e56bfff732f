//! Answers as RESP values: integers and arrays of integers, the same in RESP2 and RESP3.

use crate::decision::{Standing, Wait};
use crate::rule::Rule;
use redis_module::RedisValue;

/// 1 allowed, 0 denied: safe in every language's `if`.
pub fn verdict(allowed: bool) -> RedisValue {
    RedisValue::Integer(i64::from(allowed))
}

/// A count or a limit.
pub fn number(number: u64) -> RedisValue {
    RedisValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The WITHINFO array: allowed, then limit, remaining, `retry_after_ms`, `reset_after_ms`,
/// `full_after_ms` and used of the binding rule; with two rules or more an eighth element, an array
/// for each rule of limit, `window_ms`, used, remaining, `retry_after_ms` and `reset_after_ms`.
pub fn info(allowed: bool, binding: &Standing, standings: &[Standing]) -> RedisValue {
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
        fields.push(RedisValue::Array(standings.iter().map(rule).collect()));
    }
    RedisValue::Array(fields)
}

fn rule(standing: &Standing) -> RedisValue {
    RedisValue::Array(vec![
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
fn wait(wait: Wait) -> RedisValue {
    match wait {
        Wait::Ms(ms) => number(ms),
        Wait::Never => RedisValue::Integer(-1),
    }
}
