//! Every error that slidewin itself answers with; none of them has changed anything.

use redis_module::RedisError;
use std::fmt;

/// A refused call. The text begins with a code word, as Redis' own do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Too few arguments, or a limit without its window.
    WrongArity,
    /// A limit that is not an integer from 0 to 9223372036854775807.
    Limit,
    /// A window that is not decimal seconds from 0.001 to 315360000.
    Window,
    /// A COST that is not an integer from 1 to 1000.
    Cost,
    /// A COUNT that is not an integer from 1 to 1000.
    Count,
    /// A ninth pair of limit and window.
    TooManyRules,
    /// An unknown, repeated or cut-off option.
    Syntax,
    /// The key holds something other than a sorted set.
    WrongType,
    /// The key holds a sorted set whose lowest entry slidewin did not write.
    NotALog,
    /// A defect of slidewin's own.
    Internal,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Error {}

impl Error {
    fn text(self) -> &'static str {
        match self {
            Self::WrongArity => "ERR wrong number of arguments",
            Self::Limit => "ERR limit is not an integer or out of range",
            Self::Window => "ERR window is not a number of seconds between 0.001 and 315360000",
            Self::Cost => "ERR cost must be an integer between 1 and 1000",
            Self::Count => "ERR count must be an integer between 1 and 1000",
            Self::TooManyRules => "ERR at most 8 limit and window pairs",
            Self::Syntax => "ERR syntax error",
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::NotALog => "ERR key holds a sorted set that is not a slidewin log",
            Self::Internal => "ERR internal error",
        }
    }

    /// The error as the module API sends it; the server words a wrong arity itself.
    pub fn into_reply(self) -> RedisError {
        match self {
            Self::WrongArity => RedisError::WrongArity,
            other => RedisError::Str(other.text()),
        }
    }
}
