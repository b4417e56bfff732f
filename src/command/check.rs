use super::{answer, COST, KEY, RULE, WITHINFO};
use crate::api::{self, Argument, Call, Command, Flags, Keys, Reply, Shape, Spec};
use crate::args;
use crate::decision::decide;
use crate::error::Error;
use crate::log::{LogMut, Moment};
use crate::stats;

/// `SLIDEWIN.CHECK key limit window [limit window ...] [COST units] [PACKED] [SKIPDENIED] [WITHINFO]`
///
/// Records an attempt and answers whether it is allowed: for every rule, live units and its own are
/// within the limit. A denied attempt is recorded too, among the newest units up to the highest
/// limit, unless SKIPDENIED lets it leave no trace.
///
/// Replies 1 or 0, or with WITHINFO the array of `reply::info`. Errors change nothing.
pub struct Check;

impl Command for Check {
    const SPEC: Spec = Spec {
        name: c"slidewin.check",
        flags: c"write deny-oom fast",
        summary: c"Records an attempt in a sliding-window log and returns whether it is allowed.",
        complexity: c"O(log(N)+M) with N being the number of entries in the log and M the number of entries added and removed.",
        since: c"0.1.0",
        arity: -4,
        keys: Keys::First,
        key_flags: Flags::UPDATE,
        acl_categories: c"write sortedset string fast",
        arguments: &[
            KEY,
            RULE,
            COST,
            Argument::option(c"packed", Shape::Token, c"PACKED"),
            Argument::option(c"skipdenied", Shape::Token, c"SKIPDENIED"),
            WITHINFO,
        ],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let key = call.word(1).ok_or(Error::WrongArity)?;
        let attempt = args::check(call.arguments(2))?;
        let (rules, units) = (&attempt.rules, attempt.units);
        let (window, most) = (rules.longest_window(), rules.highest_limit());
        let now = api::now();
        let mut log = LogMut::open(call, key, Moment::new(now, window), attempt.form)?;
        log.check_cost(units)?;
        let allowed = decide(log.view(), rules, units, now)?;

        // A kill switch forgets nothing of what was granted before.
        let counts = allowed || !(attempt.skip_denied || rules.deny_everything());
        if counts {
            log.check_space()?;
        }
        log.settle(if counts { units.get() } else { 0 });
        let mut id = 0;
        if allowed {
            id = log.free_from(now, units, window)?;
            log.record(id, units)?;
        } else if counts {
            log.record_denied(now, units, most, window)?;
        }
        log.expire(window, counts);

        stats::decided(allowed);
        let reply = answer(log.view(), &attempt, allowed, id, now);
        log.publish();
        reply
    }
}
