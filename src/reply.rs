//! Answers as integers and arrays of integers, the same in RESP2 and RESP3.

use crate::api::Reply;
use crate::decision::{binding, Status, Wait};
use crate::rule::{Micros, Rule};

/// 1 allowed, 0 denied: safe in every language's `if`.
pub fn verdict(allowed: bool) -> Reply {
    Reply::Integer(i64::from(allowed))
}

/// A count or a limit.
pub fn number(number: u64) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// An array of id and units for each call.
pub fn entries(entries: &[(Micros, u64)]) -> Reply {
    let row = |(id, units): &(Micros, u64)| Reply::Array(vec![Reply::Integer(*id), number(*units)]);
    Reply::Array(entries.iter().map(row).collect())
}

/// The WITHINFO array: allowed, then limit, remaining, `retry_after_ms`, `reset_after_ms`,
/// `full_after_ms` and used of the binding rule, and the id, 0 when there is none; with two rules or
/// more a ninth element, `rules`.
pub fn info(allowed: bool, statuses: &[Status], id: Micros) -> Reply {
    let mut fields = eight(allowed, statuses, id);
    if statuses.len() > 1 {
        fields.push(rules(statuses));
    }
    Reply::Array(fields)
}

/// The same with `rules` in any case: a row each of a CHECKALL.
pub fn info_of_rows(allowed: bool, statuses: &[Status], id: Micros) -> Reply {
    let mut fields = eight(allowed, statuses, id);
    fields.push(rules(statuses));
    Reply::Array(fields)
}

/// Granted, `wait_ms` and the id, 0 when there is none.
pub fn turn(granted: bool, wait_ms: Wait, id: Micros) -> Reply {
    Reply::Array(vec![verdict(granted), wait(wait_ms), Reply::Integer(id)])
}

fn eight(allowed: bool, statuses: &[Status], id: Micros) -> Vec<Reply> {
    let mut fields = Vec::with_capacity(9);
    fields.push(verdict(allowed));
    if let Some(binding) = binding(statuses, allowed) {
        fields.extend([
            number(binding.rule.limit),
            number(binding.remaining()),
            wait(binding.retry_after),
            wait(binding.reset_after),
            wait(binding.full_after),
            number(binding.used),
        ]);
    }
    fields.push(Reply::Integer(id));
    fields
}

/// An array for each rule, in the order given: limit, `window_ms`, used, remaining,
/// `retry_after_ms` and `reset_after_ms`.
fn rules(statuses: &[Status]) -> Reply {
    let row = |status: &Status| {
        Reply::Array(vec![
            number(status.rule.limit),
            number(window_ms(status.rule)),
            number(status.used),
            number(status.remaining()),
            wait(status.retry_after),
            wait(status.reset_after),
        ])
    };
    Reply::Array(statuses.iter().map(row).collect())
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
