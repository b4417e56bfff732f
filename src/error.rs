//! Every error that slidewin itself answers with. All but `Internal` come before anything changed.

use std::ffi::CStr;
use std::fmt;

/// A refused call. The text begins with a code word, as Redis' own do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Too few arguments, or a limit without its window; the server words it, with the command's name.
    WrongArity,
    /// A limit that is not an integer from 0 to 9223372036854775807.
    Limit,
    /// A window that is not decimal seconds from 0.001 to 315360000.
    Window,
    /// A COST that is not an integer from 1 to 1000000000.
    Cost,
    /// A COST above 1000 where the log is, or would be, a sorted set.
    CostNeedsPacked,
    /// An id that is not an integer from 1 to 9223372036854775807.
    Id,
    /// A KEEP that is not an integer from 0 to the cost.
    Keep,
    /// A ninth pair of limit and window.
    TooManyRules,
    /// A COUNT of ENTRIES that is not an integer from 1 to 1000000.
    Count,
    /// The units of a row of CHECKALL, not an integer from 1 to 1000000000.
    Units,
    /// A ninth row of CHECKALL.
    TooManyRows,
    /// Rows of CHECKALL with one key and different units.
    UnitsDiffer,
    /// A MAXWAIT that is not decimal seconds from 0 to the longest window.
    MaxWait,
    /// RESERVE of a key whose log is a sorted set.
    TurnsNeedPacked,
    /// An unknown, repeated or cut-off option.
    Syntax,
    /// The key holds something other than a log's type.
    WrongType,
    /// The key holds a sorted set whose lowest entry slidewin did not write.
    NotALog,
    /// A packed log has as many entries as a string can hold.
    LogFull,
    /// A defect of slidewin's own.
    Internal,
}

impl Error {
    /// The text as the server sends it.
    pub fn text(self) -> &'static CStr {
        match self {
            Self::WrongArity => c"ERR wrong number of arguments",
            Self::Limit => c"ERR limit is not an integer or out of range",
            Self::Window => c"ERR window is not a number of seconds between 0.001 and 315360000",
            Self::Cost => c"ERR cost must be an integer between 1 and 1000000000",
            Self::CostNeedsPacked => c"ERR cost above 1000 needs a packed log",
            Self::Id => c"ERR id is not an integer or out of range",
            Self::Keep => c"ERR keep must be an integer between 0 and the cost",
            Self::TooManyRules => c"ERR at most 8 limit and window pairs",
            Self::Count => c"ERR count must be an integer between 1 and 1000000",
            Self::Units => c"ERR units must be an integer between 1 and 1000000000",
            Self::TooManyRows => c"ERR at most 8 rows",
            Self::UnitsDiffer => c"ERR rows of one key differ in their units",
            Self::MaxWait => {
                c"ERR maxwait is not a number of seconds between 0 and the longest window"
            }
            Self::TurnsNeedPacked => c"ERR turns need a packed log",
            Self::Syntax => c"ERR syntax error",
            Self::WrongType => c"WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::NotALog => c"ERR key holds a sorted set that is not a slidewin log",
            Self::LogFull => c"ERR log is full",
            Self::Internal => c"ERR internal error",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().to_string_lossy())
    }
}

impl std::error::Error for Error {}
