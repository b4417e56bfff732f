//! What slidewin promises, shown on a real server over a real connection.
//!
//! Every test starts a server of its own: redis-server, or the one that `SLIDEWIN_SERVER` names. Where
//! time matters the server's clock stands still and the test moves it. A test that stems from a
//! public bug report of some rate limiter or module says which, by the number of the case.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod access;
mod admission;
mod bench;
mod big_logs;
mod checkall;
mod clocks;
mod cluster;
mod docs;
mod effects;
mod entries;
mod errors;
mod expiry;
mod fuzz;
mod info;
mod leaks;
mod loading;
mod packed;
mod peek;
mod properties;
mod refund;
mod registration;
mod replication;
mod reserve;
mod rules;
mod server_states;
mod soak;
mod stored_form;
mod support;
mod withinfo;
