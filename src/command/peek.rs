use super::{answer, decide};
use crate::api::{self, Access, Words};
use crate::args;
use crate::error::Error;
use crate::log::Log;
use crate::reply::Reply;
use crate::stats;
use redis_module::Context;

/// `SLIDEWIN.PEEK key limit window [limit window ...] [COST units] [WITHINFO]`
///
/// Answers whether CHECK would allow the attempt now, and changes nothing. The numbers of WITHINFO
/// are those of the log as it stands, without the attempt.
///
/// Replies and errors are those of CHECK; an absent key is an empty log.
pub fn peek(ctx: &Context, words: &Words) -> Result<Reply, Error> {
    let (key, arguments) = words.key_and_arguments(ctx).ok_or(Error::WrongArity)?;
    let attempt = args::peek(arguments)?;
    let mut log = Log::open(ctx, &key, Access::Read)?;
    let now = api::now();
    let window = attempt.rules.longest_window();

    log.overlook_expired(window.cutoff(now))?;
    let mut decision = decide(&log, &attempt, now)?;
    let horizon = window.horizon(now);
    if decision.rests_on_entries && log.has_after(horizon) {
        log.overlook_untrue(horizon)?;
        decision = decide(&log, &attempt, now)?;
    }
    stats::PEEKS.add(1);
    answer(&log, &attempt, &decision, now)
}
