//! Argument vectors into validated types, and every error that an argument can cause.
//!
//! Words are read from left to right, and the first fault is told.
#![deny(clippy::arithmetic_side_effects)]

use crate::decimal::{integer, seconds};
use crate::error::Error;
use crate::log::Form;
use crate::rule::{Micros, Rule, Rules, Units, Window};

/// The arguments of CHECK and PEEK after the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The rules that must all hold.
    pub rules: Rules,
    /// What the attempt consumes.
    pub units: Units,
    /// How the log is stored if the key does not exist.
    pub form: Form,
    /// Whether a denied attempt leaves no trace.
    pub skip_denied: bool,
    /// Whether the reply is the array of numbers.
    pub with_info: bool,
}

/// `limit window [limit window ...] [COST units] [PACKED] [SKIPDENIED] [WITHINFO]`
pub fn check<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Attempt, Error> {
    let mut args = args.peekable();
    let rules = rules(&mut args)?;
    let (mut units, mut packed, mut skip_denied, mut with_info) = (None, false, false, false);
    while let Some(option) = args.next() {
        if option.eq_ignore_ascii_case(b"COST") && units.is_none() {
            units = Some(cost(&mut args)?);
        } else if option.eq_ignore_ascii_case(b"PACKED") && !packed {
            packed = true;
        } else if option.eq_ignore_ascii_case(b"SKIPDENIED") && !skip_denied {
            skip_denied = true;
        } else if option.eq_ignore_ascii_case(b"WITHINFO") && !with_info {
            with_info = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(Attempt {
        rules,
        units: units.unwrap_or(Units::ONE),
        form: if packed {
            Form::Packed
        } else {
            Form::SortedSet
        },
        skip_denied,
        with_info,
    })
}

/// `limit window [limit window ...] [COST units] [WITHINFO]`
pub fn peek<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Attempt, Error> {
    check(args).and_then(|attempt| {
        if attempt.skip_denied || attempt.form == Form::Packed {
            Err(Error::Syntax)
        } else {
            Ok(attempt)
        }
    })
}

/// The arguments of RESERVE after the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rules that must all hold.
    pub rules: Rules,
    /// What the attempt consumes.
    pub units: Units,
    /// How long the attempt waits at most.
    pub max_wait: Micros,
}

/// `limit window [limit window ...] [COST units] [MAXWAIT seconds]`
pub fn reserve<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Reservation, Error> {
    let mut args = args.peekable();
    let rules = rules(&mut args)?;
    let longest = rules.longest_window().micros();
    let (mut units, mut max_wait) = (None, None);
    while let Some(option) = args.next() {
        if option.eq_ignore_ascii_case(b"COST") && units.is_none() {
            units = Some(cost(&mut args)?);
        } else if option.eq_ignore_ascii_case(b"MAXWAIT") && max_wait.is_none() {
            let wait = seconds(args.next().ok_or(Error::Syntax)?);
            max_wait = Some(wait.filter(|wait| *wait <= longest).ok_or(Error::MaxWait)?);
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(Reservation {
        rules,
        units: units.unwrap_or(Units::ONE),
        max_wait: max_wait.unwrap_or(longest),
    })
}

/// What a CHECKALL asks of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The position of the key among the words.
    pub key: usize,
    /// The rules of its rows, in the order given.
    pub rules: Rules,
    /// What the call consumes there.
    pub units: Units,
}

/// The arguments of CHECKALL, key by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// What is asked of each key.
    pub keys: Vec<Share>,
    /// Of each row, in the order given, the index of its key.
    pub rows: Vec<usize>,
}

/// `key limit window units [key limit window units ...]`
pub fn check_all<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Shares, Error> {
    let words: Vec<&[u8]> = args.collect();
    let (rows, rest) = words.as_chunks();
    if rows.is_empty() || !rest.is_empty() {
        return Err(Error::WrongArity);
    }
    let mut shares = Shares {
        keys: Vec::with_capacity(rows.len()),
        rows: Vec::with_capacity(rows.len()),
    };
    let mut names: Vec<&[u8]> = Vec::with_capacity(rows.len());
    for (position, [key, limit, window, units]) in (1..).step_by(4).zip(rows) {
        if shares.rows.len() == Rules::MAX {
            return Err(Error::TooManyRows);
        }
        let rule = rule(&mut [*limit, *window].into_iter())?;
        let units = integer(units).and_then(Units::new).ok_or(Error::Units)?;
        let index = names.iter().position(|name| name == key);
        if let Some(share) = index.and_then(|index| shares.keys.get_mut(index)) {
            if share.units != units {
                return Err(Error::UnitsDiffer);
            }
            if !share.rules.push(rule) {
                return Err(Error::TooManyRules);
            }
        } else {
            names.push(key);
            shares.keys.push(Share {
                key: position,
                rules: Rules::new(rule),
                units,
            });
        }
        shares
            .rows
            .push(index.unwrap_or(names.len().saturating_sub(1)));
    }
    Ok(shares)
}

/// `[COUNT n]`: how many entries to show.
pub fn entries<'a>(mut args: impl Iterator<Item = &'a [u8]>) -> Result<usize, Error> {
    let count = match args.next() {
        None => 100,
        Some(option) if option.eq_ignore_ascii_case(b"COUNT") => {
            let count = integer(args.next().ok_or(Error::Syntax)?);
            let count = count.filter(|count| (1..=1_000_000).contains(count));
            count
                .and_then(|count| count.try_into().ok())
                .ok_or(Error::Count)?
        }
        Some(_) => return Err(Error::Syntax),
    };
    args.next().map_or(Ok(count), |_| Err(Error::Syntax))
}

/// The arguments of REFUND after the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// The id that CHECK replied with.
    pub id: Micros,
    /// What the call recorded.
    pub units: Units,
    /// How much of it the call keeps, at most `units`.
    pub keep: u64,
}

/// `id [COST units] [KEEP units]`
pub fn refund<'a>(mut args: impl Iterator<Item = &'a [u8]>) -> Result<Refund, Error> {
    let id = args.next().ok_or(Error::WrongArity)?;
    let id = integer(id).and_then(|id| Micros::try_from(id).ok());
    let id = id.filter(|id| *id > 0).ok_or(Error::Id)?;
    let (mut units, mut keep) = (None, None);
    while let Some(option) = args.next() {
        if option.eq_ignore_ascii_case(b"COST") && units.is_none() {
            units = Some(cost(&mut args)?);
        } else if option.eq_ignore_ascii_case(b"KEEP") && keep.is_none() {
            let units = args.next().ok_or(Error::Syntax)?;
            keep = Some(integer(units).ok_or(Error::Keep)?);
        } else {
            return Err(Error::Syntax);
        }
    }
    let (units, keep) = (units.unwrap_or(Units::ONE), keep.unwrap_or(0));
    if keep > units.get() {
        return Err(Error::Keep);
    }
    Ok(Refund { id, units, keep })
}

/// `limit window [limit window ...]`, up to a word that begins with a letter.
fn rules<'a>(
    args: &mut std::iter::Peekable<impl Iterator<Item = &'a [u8]>>,
) -> Result<Rules, Error> {
    let mut rules = Rules::new(rule(args)?);
    while args.peek().is_some_and(|arg| !begins_with_letter(arg)) {
        if !rules.push(rule(args)?) {
            return Err(Error::TooManyRules);
        }
    }
    Ok(rules)
}

fn rule<'a>(args: &mut impl Iterator<Item = &'a [u8]>) -> Result<Rule, Error> {
    let limit = args.next().ok_or(Error::WrongArity)?;
    let limit = integer(limit).ok_or(Error::Limit)?;
    let window = args.next().ok_or(Error::WrongArity)?;
    let window = seconds(window)
        .and_then(Window::from_micros)
        .ok_or(Error::Window)?;
    Ok(Rule { limit, window })
}

/// The number after the word COST.
fn cost<'a>(args: &mut impl Iterator<Item = &'a [u8]>) -> Result<Units, Error> {
    let units = args.next().ok_or(Error::Syntax)?;
    integer(units).and_then(Units::new).ok_or(Error::Cost)
}

fn begins_with_letter(arg: &[u8]) -> bool {
    arg.first().is_some_and(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests;
