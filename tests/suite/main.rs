//! What slidewin promises, shown on a real server over a real connection.
//!
//! Every test starts a server of its own: redis-server, or the one that SLIDEWIN_SERVER names. Where
//! time matters the server's clock stands still and the test moves it. A test that stems from a
//! public bug report of some rate limiter or module says which, by the number of the case.

mod admission;
mod support;
