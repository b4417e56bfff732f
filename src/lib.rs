//! slidewin: an exact sliding-window rate limiter as a Redis module.
//!
//! A call travels in one direction: words of the command → arguments → numbers of the log →
//! decision → effects → reply. The parts, from the top down; each uses only what stands below it:
//!
//! | part | role |
//! | --- | --- |
//! | `module.rs` | the door: what the server calls to load and unload, and what is registered |
//! | `command/` | the commands, a file each: specification, and the steps of a call |
//! | `args.rs` | words of a command into rules, units and options |
//! | `reply.rs` | verdicts and numbers into RESP values |
//! | `log/` | the log at a key: what counts, and how it changes |
//! | `changes.rs` | what a call has done to a key: its replication and events |
//! | `stats.rs` | the counters of `INFO slidewin` |
//! | `decision.rs` | the decision and the waits, over a view of a log; pure |
//! | `api/` | the only folder with unsafe code: safe handles over the raw module API |
//! | `error.rs` | every error that slidewin answers with; pure |
//! | `decimal.rs` | strict decimal numbers; pure |
//! | `rule.rs` | limits, windows and units as types that cannot be wrong; pure |

mod api;
mod args;
mod changes;
mod command;
mod decimal;
mod decision;
mod error;
mod log;
mod module;
mod reply;
mod rule;
mod stats;

/// The server's allocator, so that `used_memory` counts ours; it exists only inside the server.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: redis_module::alloc::RedisAlloc = redis_module::alloc::RedisAlloc;
