use super::{answer, decide};
use crate::api::{self, Access, Words};
use crate::args;
use crate::error::Error;
use crate::log::Log;
use crate::reply::Reply;
use crate::stats;
use redis_module::Context;

/// `SLIDEWIN.CHECK key limit window [limit window ...] [COST units] [SKIPDENIED] [WITHINFO]`
///
/// Records an attempt and answers whether it is allowed: for every rule, live entries + units <=
/// limit. A denied attempt is recorded too, among the newest entries up to the highest limit,
/// unless SKIPDENIED lets it leave no trace.
///
/// Replies 1 or 0, or with WITHINFO the array of `reply::info`. Errors change nothing.
pub fn check(ctx: &Context, words: &Words) -> Result<Reply, Error> {
    let (key, arguments) = words.key_and_arguments(ctx).ok_or(Error::WrongArity)?;
    let attempt = args::check(arguments)?;
    let mut log = Log::open(ctx, &key, Access::Write)?;
    let now = api::now();
    let window = attempt.rules.longest_window();

    log.trim(window.cutoff(now))?;
    let mut decision = decide(&log, &attempt, now)?;
    let horizon = window.horizon(now);
    if decision.rests_on_entries && log.has_after(horizon) {
        log.remove_untrue(horizon)?;
        decision = decide(&log, &attempt, now)?;
    }

    if decision.allowed || !attempt.skip_denied {
        let most = attempt.rules.highest_limit();
        let units = attempt.units.get().min(most);
        log.make_room(most.saturating_sub(units), units);
        let kept = log.live();
        for used in &mut decision.used {
            *used = kept.min(*used).saturating_add(units);
        }
        if units > 0 {
            log.record(now, units)?;
            log.expire_after(window);
        }
        stats::RECORDED.add(units);
    }
    stats::TRIMMED.add(log.removed());
    if decision.allowed {
        stats::ALLOWED.add(1);
    } else {
        stats::DENIED.add(1);
    }
    answer(&log, &attempt, &decision, now)
}
