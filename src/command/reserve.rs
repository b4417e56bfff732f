use super::{COST, KEY, RULE};
use crate::api::{self, Argument, Call, Command, Flags, Keys, Reply, Shape, Spec};
use crate::args;
use crate::decision::{reserve, wait_until, Turn, Wait};
use crate::error::Error;
use crate::log::{Form, LogMut, Moment};
use crate::reply;
use crate::stats;

/// `SLIDEWIN.RESERVE key limit window [limit window ...] [COST units] [MAXWAIT seconds]`
///
/// Takes a turn at the earliest time at which the attempt is allowed, first come, first served, and
/// says how long to wait for it. The units are recorded there, in the future, and count for everybody
/// from now on. A turn that would come later than MAXWAIT is not taken, and leaves no trace.
///
/// Replies with an array: granted, `wait_ms`, and the id for REFUND. Errors change nothing.
pub struct Reserve;

impl Command for Reserve {
    const SPEC: Spec = Spec {
        name: c"slidewin.reserve",
        flags: c"write deny-oom fast",
        summary: c"Takes the next turn under a sliding-window rate limit and returns how long to wait for it.",
        complexity: c"O(log(N)) with N being the number of entries in the log.",
        since: c"0.1.0",
        arity: -4,
        keys: Keys::First,
        key_flags: Flags::UPDATE,
        acl_categories: c"write string fast",
        arguments: &[
            KEY,
            RULE,
            COST,
            Argument::option(c"seconds", Shape::Double, c"MAXWAIT"),
        ],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let key = call.word(1).ok_or(Error::WrongArity)?;
        let attempt = args::reserve(call.arguments(2))?;
        let (rules, units) = (&attempt.rules, attempt.units);
        let window = rules.longest_window();
        let now = api::now();
        let mut log = LogMut::open(call, key, Moment::new(now, window), Form::Packed)?;
        if log.form() != Form::Packed {
            return Err(Error::TurnsNeedPacked);
        }
        let turn = reserve(log.view(), rules, units, now, attempt.max_wait)?;

        let mut id = 0;
        if let Turn::Granted(at) = turn {
            log.check_space()?;
            log.settle(units.get());
            id = log.free_from(at, units, window)?;
            log.record(id, units)?;
            log.expire(window, true);
            stats::RESERVATIONS.add(1);
        } else {
            log.settle(0);
            log.expire(window, false);
            stats::TURNED_AWAY.add(1);
        }
        log.publish();
        Ok(match turn {
            Turn::Granted(at) => reply::turn(true, wait_until(at, now), id),
            Turn::Later(at) => reply::turn(false, wait_until(at, now), 0),
            Turn::Never => reply::turn(false, Wait::Never, 0),
        })
    }
}
