//! Argument vectors into validated types, and every error that an argument can cause.

use crate::decimal::{integer, seconds};
use crate::error::Error;
use crate::rule::{Rule, Rules, Units, Window};

/// The arguments of CHECK and PEEK after the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The rules that must all hold.
    pub rules: Rules,
    /// What the attempt consumes.
    pub units: Units,
    /// Whether a denied attempt leaves no trace.
    pub skip_denied: bool,
    /// Whether the reply is the array of numbers.
    pub with_info: bool,
}

/// `limit window [limit window ...] [COST units] [SKIPDENIED] [WITHINFO]`
///
/// An argument that begins with a letter ends the list of rules.
pub fn check<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Attempt, Error> {
    let mut args = args.peekable();
    let mut rules = Rules::new(rule(&mut args)?);
    while args.peek().is_some_and(|arg| !begins_with_letter(arg)) {
        if !rules.push(rule(&mut args)?) {
            return Err(Error::TooManyRules);
        }
    }
    let (mut units, mut skip_denied, mut with_info) = (None, false, false);
    while let Some(option) = args.next() {
        if option.eq_ignore_ascii_case(b"COST") && units.is_none() {
            units = Some(option_units(&mut args, Error::Cost)?);
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
        skip_denied,
        with_info,
    })
}

/// `limit window [limit window ...] [COST units] [WITHINFO]`
pub fn peek<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Attempt, Error> {
    check(args).and_then(|attempt| {
        if attempt.skip_denied {
            Err(Error::Syntax)
        } else {
            Ok(attempt)
        }
    })
}

/// `[COUNT units]`
pub fn refund<'a>(mut args: impl Iterator<Item = &'a [u8]>) -> Result<Units, Error> {
    let units = match args.next() {
        None => Units::ONE,
        Some(option) if option.eq_ignore_ascii_case(b"COUNT") => {
            option_units(&mut args, Error::Count)?
        }
        Some(_) => return Err(Error::Syntax),
    };
    match args.next() {
        None => Ok(units),
        Some(_) => Err(Error::Syntax),
    }
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

fn option_units<'a>(
    args: &mut impl Iterator<Item = &'a [u8]>,
    out_of_range: Error,
) -> Result<Units, Error> {
    let units = args.next().ok_or(Error::Syntax)?;
    integer(units)
        .and_then(|units| u16::try_from(units).ok())
        .and_then(Units::new)
        .ok_or(out_of_range)
}

fn begins_with_letter(arg: &[u8]) -> bool {
    arg.first().is_some_and(u8::is_ascii_alphabetic)
}
