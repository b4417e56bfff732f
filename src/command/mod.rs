//! The commands: each reads top to bottom as arguments, log, decision, effects, reply.

mod check;
mod peek;
mod refund;

pub use check::check;
pub use peek::peek;
pub use refund::refund;

use crate::args::Attempt;
use crate::decision::{binding, Standing, Verdict, Wait};
use crate::error::Error;
use crate::log::Log;
use crate::reply::{self, Reply};
use crate::rule::{Micros, Rule, Rules};

/// What all rules together say to an attempt.
struct Decision {
    allowed: bool,
    /// Whether entries, and not the attempt's own cost, stand in the way.
    rests_on_entries: bool,
    /// Live entries, a rule each, in the order given; of meaning only when the reply shows them.
    used: [u64; Rules::MAX],
}

fn decide(log: &Log, attempt: &Attempt, now: Micros) -> Result<Decision, Error> {
    let mut decision = Decision {
        allowed: true,
        rests_on_entries: false,
        used: [0; Rules::MAX],
    };
    for (rule, used) in attempt.rules.iter().zip(&mut decision.used) {
        let cutoff = rule.window.cutoff(now);
        let verdict = if attempt.with_info {
            *used = log.live_after(cutoff)?;
            rule.judge(*used, attempt.units)
        } else {
            // Without counting: the rule is violated when the entry that would have to leave is live.
            match rule.judge(log.live(), attempt.units) {
                Verdict::DeniedBy(rank) if !log.is_after(cutoff, rank)? => Verdict::Allowed,
                verdict => verdict,
            }
        };
        decision.allowed &= verdict == Verdict::Allowed;
        decision.rests_on_entries |= matches!(verdict, Verdict::DeniedBy(_));
    }
    Ok(decision)
}

/// The reply to an attempt, from the log as the call leaves it and the live entries of each rule.
fn answer(log: &Log, attempt: &Attempt, decision: &Decision, now: Micros) -> Result<Reply, Error> {
    if !attempt.with_info {
        return Ok(reply::verdict(decision.allowed));
    }
    let standings = attempt
        .rules
        .iter()
        .zip(&decision.used)
        .map(|(rule, used)| standing(log, attempt, decision.allowed, rule, *used, now))
        .collect::<Result<Vec<_>, _>>()?;
    let binding = binding(&standings, decision.allowed).ok_or(Error::Internal)?;
    Ok(reply::info(decision.allowed, binding, &standings))
}

fn standing(
    log: &Log,
    attempt: &Attempt,
    allowed: bool,
    rule: Rule,
    used: u64,
    now: Micros,
) -> Result<Standing, Error> {
    let wait_for = |rank| {
        let entry = log.nth_newest(rank)?;
        Ok(entry.map_or(Wait::Ms(0), |entry| rule.wait_for(entry, now)))
    };
    Ok(Standing {
        rule,
        used,
        retry_after: match rule.judge(used, attempt.units) {
            Verdict::DeniedBy(rank) if !allowed => wait_for(rank)?,
            Verdict::Never if !allowed => Wait::Never,
            _ => Wait::Ms(0),
        },
        reset_after: match rule.next_free(used) {
            Some(rank) => wait_for(rank)?,
            None if rule.limit == 0 => Wait::Never,
            None => Wait::Ms(0),
        },
        full_after: match used {
            0 => Wait::Ms(0),
            _ => wait_for(0)?,
        },
    })
}
