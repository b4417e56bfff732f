//! What `COMMAND DOCS`, `COMMAND INFO` and `COMMAND GETKEYS` say of the commands.
//!
//! Plain data; `api.rs` hands it to the server. On servers without these APIs (before 7.0 the
//! documentation, before 7.2 the ACL categories) the commands work all the same.

use redis_module::raw;
use std::ffi::{c_int, CStr};

/// One command's entry.
pub struct CommandDoc {
    /// The command's name in lower case.
    pub name: &'static CStr,
    /// How the server treats the command.
    pub flags: &'static CStr,
    /// One line for a person.
    pub summary: &'static CStr,
    /// Its cost, in the words of Redis' own documentation.
    pub complexity: &'static CStr,
    /// The first version of slidewin that has it.
    pub since: &'static CStr,
    /// The least number of words, negated, as Redis counts them.
    pub arity: c_int,
    /// What the command does to its key, `REDISMODULE_CMD_KEY_*`.
    pub key_flags: u64,
    /// The ACL categories, separated by spaces.
    pub acl_categories: &'static CStr,
    /// The arguments after the name.
    pub arguments: &'static [Argument],
}

/// One argument of a command.
pub struct Argument {
    /// Its name in the grammar.
    pub name: &'static CStr,
    /// What it is.
    pub shape: Shape,
    /// The word that introduces it.
    pub token: Option<&'static CStr>,
    /// `REDISMODULE_CMD_ARG_*`.
    pub flags: c_int,
}

/// The kind of an argument.
pub enum Shape {
    /// The key.
    Key,
    /// A whole number.
    Integer,
    /// A number with a fraction.
    Double,
    /// A word that stands for itself.
    Token,
    /// Arguments that stand together.
    Block(&'static [Argument]),
}

#[allow(clippy::cast_possible_wrap)] // bindgen types the flags 1 and 2 as unsigned
const OPTIONAL: c_int = raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int;
#[allow(clippy::cast_possible_wrap)]
const MULTIPLE: c_int = raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int;

const KEY: Argument = plain(c"key", Shape::Key);
const RULE: Argument = Argument {
    flags: MULTIPLE,
    ..plain(
        c"rule",
        Shape::Block(&[
            plain(c"limit", Shape::Integer),
            plain(c"window", Shape::Double),
        ]),
    )
};
const COST: Argument = option(c"units", Shape::Integer, c"COST");
const SKIPDENIED: Argument = option(c"skipdenied", Shape::Token, c"SKIPDENIED");
const WITHINFO: Argument = option(c"withinfo", Shape::Token, c"WITHINFO");

/// CHECK.
pub const CHECK: CommandDoc = CommandDoc {
        name: c"slidewin.check",
        flags: c"write deny-oom fast",
        summary: c"Records an attempt in a sliding-window log and returns whether it is allowed.",
        complexity: c"O(log(N)+M) with N being the number of entries in the log and M the number of entries added and removed.",
        since: c"0.1.0",
        arity: -4,
        key_flags: key_flags(&[
            raw::REDISMODULE_CMD_KEY_RW,
            raw::REDISMODULE_CMD_KEY_ACCESS,
            raw::REDISMODULE_CMD_KEY_UPDATE, // the server refuses DELETE beside it
        ]),
        acl_categories: c"write sortedset fast",
        arguments: &[KEY, RULE, COST, SKIPDENIED, WITHINFO],
};

/// PEEK.
pub const PEEK: CommandDoc = CommandDoc {
    name: c"slidewin.peek",
    flags: c"readonly fast",
    summary: c"Returns whether an attempt would be allowed, changing nothing.",
    complexity: c"O(log(N)) with N being the number of entries in the log.",
    since: c"0.1.0",
    arity: -4,
    key_flags: key_flags(&[raw::REDISMODULE_CMD_KEY_RO, raw::REDISMODULE_CMD_KEY_ACCESS]),
    acl_categories: c"read sortedset fast",
    arguments: &[KEY, RULE, COST, WITHINFO],
};

/// REFUND.
pub const REFUND: CommandDoc = CommandDoc {
        name: c"slidewin.refund",
        flags: c"write fast",
        summary: c"Removes the newest entries of a sliding-window log and returns their number.",
        complexity: c"O(M*log(N)) with N being the number of entries in the log and M the number of entries removed.",
        since: c"0.1.0",
        arity: -2,
        key_flags: key_flags(&[
            raw::REDISMODULE_CMD_KEY_RW,
            raw::REDISMODULE_CMD_KEY_DELETE,
        ]),
        acl_categories: c"write sortedset fast",
        arguments: &[KEY, option(c"units", Shape::Integer, c"COUNT")],
};

const fn plain(name: &'static CStr, shape: Shape) -> Argument {
    Argument {
        name,
        shape,
        token: None,
        flags: 0,
    }
}

const fn option(name: &'static CStr, shape: Shape, token: &'static CStr) -> Argument {
    Argument {
        name,
        shape,
        token: Some(token),
        flags: OPTIONAL,
    }
}

const fn key_flags(flags: &[u32]) -> u64 {
    let mut all = 0;
    let mut rest = flags;
    while let [flag, others @ ..] = rest {
        all |= *flag as u64;
        rest = others;
    }
    all
}
