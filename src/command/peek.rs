use super::{answer, COST, KEY, RULE, WITHINFO};
use crate::api::{self, Call, Command, Flags, Keys, Reply, Spec};
use crate::args;
use crate::decision::decide;
use crate::error::Error;
use crate::log::{Log, Moment};
use crate::stats;

/// `SLIDEWIN.PEEK key limit window [limit window ...] [COST units] [WITHINFO]`
///
/// Answers whether CHECK would allow the attempt now, and changes nothing. The numbers of WITHINFO
/// are those of the log as it stands, without the attempt.
///
/// Replies and errors are those of CHECK; an absent key is an empty log.
pub struct Peek;

impl Command for Peek {
    const SPEC: Spec = Spec {
        name: c"slidewin.peek",
        flags: c"readonly fast",
        summary: c"Returns whether an attempt would be allowed, changing nothing.",
        complexity: c"O(log(N)) with N being the number of entries in the log.",
        since: c"0.1.0",
        arity: -4,
        keys: Keys::First,
        key_flags: Flags::READ,
        acl_categories: c"read sortedset string fast",
        arguments: &[KEY, RULE, COST, WITHINFO],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let key = call.word(1).ok_or(Error::WrongArity)?;
        let attempt = args::peek(call.arguments(2))?;
        let now = api::now();
        let at = Moment::new(now, attempt.rules.longest_window());
        let mut log = Log::open(call, key, at)?;
        let allowed = decide(&mut log, &attempt.rules, attempt.units, now)?;
        stats::PEEKS.add(1);
        answer(&log, &attempt, allowed, 0, now)
    }
}
