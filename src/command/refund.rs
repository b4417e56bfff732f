use crate::api::{Access, Words};
use crate::args;
use crate::error::Error;
use crate::log::Log;
use crate::reply::{self, Reply};
use crate::stats;
use redis_module::Context;

/// `SLIDEWIN.REFUND key [COUNT units]`
///
/// Removes the newest entries, one unless COUNT says more, for a request that failed through no
/// fault of the client. A log emptied disappears; the expiry of any other stays.
///
/// Replies with the number of entries removed. Errors change nothing.
pub fn refund(ctx: &Context, words: &Words) -> Result<Reply, Error> {
    let (key, arguments) = words.key_and_arguments(ctx).ok_or(Error::WrongArity)?;
    let units = args::refund(arguments)?;
    let mut log = Log::open(ctx, &key, Access::Write)?;

    let removed = log.take_back(units.get());
    stats::REFUNDED.add(removed);
    Ok(reply::number(removed))
}
