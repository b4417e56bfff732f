use super::{COST, KEY};
use crate::api::{self, Argument, Call, Command, Flags, Keys, Reply, Shape, Spec};
use crate::args;
use crate::error::Error;
use crate::log::{Form, LogMut, Moment};
use crate::reply;
use crate::stats;

/// `SLIDEWIN.REFUND key id [COST units] [KEEP units]`
///
/// Takes back what one allowed call recorded, but for the units that it keeps. By id, because "the
/// newest" is somebody else's as soon as two calls overlap; and it names what is kept, not what
/// is taken, so that it is safe to repeat. A log in which nothing is left disappears; the expiry of any
/// other stays.
///
/// Replies with the units taken back now. Errors change nothing.
pub struct Refund;

impl Command for Refund {
    const SPEC: Spec = Spec {
        name: c"slidewin.refund",
        flags: c"write fast",
        summary: c"Takes back what an allowed call recorded and returns the number of units.",
        complexity: c"O(log(N)+M*log(N)) with N being the number of entries in the log and M the number of entries removed.",
        since: c"0.1.0",
        arity: -3,
        keys: Keys::First,
        key_flags: Flags::DELETE,
        acl_categories: c"write sortedset string fast",
        arguments: &[
            KEY,
            Argument::new(c"id", Shape::Integer),
            COST,
            Argument::option(c"units", Shape::Integer, c"KEEP"),
        ],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let key = call.word(1).ok_or(Error::WrongArity)?;
        let refund = args::refund(call.arguments(2))?;
        let at = Moment::without_window(api::now());
        let mut log = LogMut::open(call, key, at, Form::Packed)?;
        log.check_cost(refund.units)?;

        let units = log.refund(refund.id, refund.units, refund.keep);
        stats::REFUNDED.add(units);
        log.publish();
        Ok(reply::number(units))
    }
}
