use super::KEY;
use crate::api::{self, Argument, Call, Command, Flags, Keys, Reply, Shape, Spec};
use crate::args::{self, Share, Shares};
use crate::decision::{decide, statuses};
use crate::error::Error;
use crate::log::{Form, LogMut, Moment};
use crate::reply;
use crate::rule::Micros;
use crate::stats;

/// `SLIDEWIN.CHECKALL key limit window units [key limit window units ...]`
///
/// Records an attempt on several logs, all or nothing: when every row's rule holds, each key records
/// its units, all with the same id; otherwise no key keeps a trace. Every key is opened and checked
/// before any is changed.
///
/// Replies with the array of `reply::info_of_rows`. Errors change nothing.
pub struct CheckAll;

impl Command for CheckAll {
    const SPEC: Spec = Spec {
        name: c"slidewin.checkall",
        flags: c"write deny-oom fast",
        summary: c"Records an attempt in several sliding-window logs, all or nothing.",
        complexity:
            c"O(K*log(N)) with K being the number of keys and N the number of entries in a log.",
        since: c"0.1.0",
        arity: -5,
        keys: Keys::Every(4),
        key_flags: Flags::UPDATE,
        acl_categories: c"write sortedset string fast",
        arguments: &[Argument::new(
            c"row",
            Shape::Block(&[
                KEY,
                Argument::new(c"limit", Shape::Integer),
                Argument::new(c"window", Shape::Double),
                Argument::new(c"units", Shape::Integer),
            ]),
        )
        .repeated()],
    };

    fn run(call: &Call) -> Result<Reply, Error> {
        let attempt = args::check_all(call.arguments(1))?;
        let now = api::now();
        let (mut logs, mut allowed) = open(call, &attempt, now)?;
        if logs.iter().any(LogMut::is_spent) {
            // A key that is removed is announced at once, while no other one is open.
            drop(logs);
            for share in &attempt.keys {
                open_one(call, share, now)?.settle(0);
            }
            (logs, allowed) = open(call, &attempt, now)?;
        }

        for (log, share) in logs.iter_mut().zip(&attempt.keys) {
            log.settle(if allowed { share.units.get() } else { 0 });
        }
        let mut id = 0;
        if allowed {
            id = common_id(&mut logs, &attempt, now)?;
            for (log, share) in logs.iter_mut().zip(&attempt.keys) {
                log.record(id, share.units)?;
            }
        }
        for (log, share) in logs.iter_mut().zip(&attempt.keys) {
            log.expire(share.rules.longest_window(), allowed);
        }
        stats::decided(allowed);
        let reply = answer(&mut logs, &attempt, allowed, id, now);
        logs.iter_mut().for_each(LogMut::close);
        logs.into_iter().for_each(LogMut::publish);
        reply
    }
}

/// Opens every log, and decides; nothing is changed yet.
fn open<'a>(
    call: &'a Call<'a>,
    attempt: &Shares,
    now: Micros,
) -> Result<(Vec<LogMut<'a>>, bool), Error> {
    let mut logs = Vec::with_capacity(attempt.keys.len());
    let mut allowed = true;
    for share in &attempt.keys {
        let mut log = open_one(call, share, now)?;
        log.check_cost(share.units)?;
        allowed &= decide(log.view(), &share.rules, share.units, now)?;
        logs.push(log);
    }
    if allowed {
        logs.iter().try_for_each(LogMut::check_space)?;
    }
    Ok((logs, allowed))
}

fn open_one<'a>(call: &'a Call<'a>, share: &Share, now: Micros) -> Result<LogMut<'a>, Error> {
    let key = call.word(share.key).ok_or(Error::WrongArity)?;
    let at = Moment::new(now, share.rules.longest_window());
    LogMut::open(call, key, at, Form::Packed)
}

/// How often a log may move the id on before it goes after everybody's newest entry.
const MAX_ROUNDS: u32 = 64;

/// The first microsecond from now on that every log has free; each log moves it on until none does.
fn common_id(logs: &mut [LogMut], attempt: &Shares, now: Micros) -> Result<Micros, Error> {
    let mut id = now;
    for round in 1.. {
        let before = id;
        for (log, share) in logs.iter_mut().zip(&attempt.keys) {
            let longest = share.rules.longest_window();
            id = log.free_from(id, share.units, longest)?;
            if round == MAX_ROUNDS {
                id = id.max(log.after_newest(now, longest));
            }
        }
        if id == before {
            break;
        }
    }
    Ok(id)
}

/// The reply, with a row for each row of the call.
fn answer(
    logs: &mut [LogMut],
    attempt: &Shares,
    allowed: bool,
    id: Micros,
    now: Micros,
) -> Result<Reply, Error> {
    let of_key = |(log, share): (&mut LogMut, &Share)| {
        let rows = statuses(log.view(), &share.rules, share.units, allowed, now)?;
        Ok(rows.into_iter())
    };
    let keys = logs.iter_mut().zip(&attempt.keys).map(of_key);
    let mut keys = keys.collect::<Result<Vec<_>, Error>>()?;
    let row = |key: &usize| keys.get_mut(*key)?.next();
    let rows: Vec<_> = attempt.rows.iter().filter_map(row).collect();
    Ok(reply::info_of_rows(allowed, &rows, id))
}
