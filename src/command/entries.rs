use super::KEY;
use crate::api::{self, Argument, Call, Command, Flags, Keys, Reply, Shape, Spec};
use crate::args;
use crate::error::Error;
use crate::log::{Log, Moment};
use crate::reply;

/// `SLIDEWIN.ENTRIES key [COUNT n]`
///
/// What a log holds, newest first, for people who look into a case. Calls that hold no units are
/// left out; what has run out may still be there.
///
/// Replies with an array of id and units for each call, of a sorted set for each unit. An absent key
/// is an empty log.
pub struct Entries;

impl Command for Entries {
    const SPEC: Spec = Spec {
        name: c"slidewin.entries",
        flags: c"readonly",
        summary: c"Returns the newest calls of a sliding-window log with their units.",
        complexity: c"O(N) with N being the number of entries in the log.",
        since: c"0.1.0",
        arity: -2,
        keys: Keys::First,
        key_flags: Flags::READ,
        acl_categories: c"read sortedset string slow",
        arguments: &[KEY, Argument::option(c"n", Shape::Integer, c"COUNT")],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let key = call.word(1).ok_or(Error::WrongArity)?;
        let count = args::entries(call.arguments(2))?;
        let log = Log::open(call, key, Moment::without_window(api::now()))?;
        Ok(reply::entries(&log.newest(count)))
    }
}
