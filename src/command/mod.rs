//! The commands: each reads top to bottom as arguments, log, decision, effects, reply.
//!
//! A command is a file of its own here, with its specification, and a line of `register`.

mod check;
mod checkall;
mod entries;
mod peek;
mod refund;
mod reserve;

use crate::api::{self, Argument, Loading, Reply, Shape};
use crate::args::Attempt;
use crate::decision::{statuses, View};
use crate::error::Error;
use crate::reply;
use crate::rule::Micros;

/// Registers every command.
pub fn register(server: &Loading) -> Result<(), String> {
    api::register::<check::Check>(server)?;
    api::register::<checkall::CheckAll>(server)?;
    api::register::<entries::Entries>(server)?;
    api::register::<peek::Peek>(server)?;
    api::register::<refund::Refund>(server)?;
    api::register::<reserve::Reserve>(server)?;
    Ok(())
}

const KEY: Argument = Argument::new(c"key", Shape::Key);
const RULE: Argument = Argument::new(
    c"rule",
    Shape::Block(&[
        Argument::new(c"limit", Shape::Integer),
        Argument::new(c"window", Shape::Double),
    ]),
)
.repeated();
const COST: Argument = Argument::option(c"units", Shape::Integer, c"COST");
const WITHINFO: Argument = Argument::option(c"withinfo", Shape::Token, c"WITHINFO");

/// The reply to an attempt, of the log as the call leaves it; the id is 0 unless units were granted.
fn answer(
    log: &impl View,
    attempt: &Attempt,
    allowed: bool,
    id: Micros,
    now: Micros,
) -> Result<Reply, Error> {
    if !attempt.with_info {
        return Ok(reply::verdict(allowed));
    }
    let statuses = statuses(log, &attempt.rules, attempt.units, allowed, now)?;
    Ok(reply::info(allowed, &statuses, id))
}
