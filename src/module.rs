//! The door: what the server calls to load and unload the module, and what is registered.

use crate::api::{self, Loading};
use crate::{command, stats};
use std::ffi::{c_int, CStr};

api::door! {
    name: c"slidewin",
    version: VERSION,
    load: load,
    counters: stats::snapshot,
    stays: "the server keeps pointers to a module's commands and would crash later; restart it or fail over",
}

/// The package's version as a number that sorts: 1.2.3 is 10203.
const VERSION: c_int = {
    const fn part(text: &str) -> c_int {
        let mut number = 0;
        let mut rest = text.as_bytes();
        while let [digit, others @ ..] = rest {
            number = number * 10 + (*digit - b'0') as c_int;
            rest = others;
        }
        number
    }
    part(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + part(env!("CARGO_PKG_VERSION_PATCH"))
};

/// Commands that changes are replicated as, and those that read what the module API cannot.
const NEEDED_COMMANDS: [&CStr; 10] = [
    c"ZADD",
    c"ZREMRANGEBYRANK",
    c"ZREMRANGEBYSCORE",
    c"SET",
    c"APPEND",
    c"SETRANGE",
    c"PEXPIREAT",
    c"UNLINK",
    c"ZCOUNT",
    c"ZRANGE",
];

/// Registers everything, or says why the module does not load.
fn load(server: &Loading, arguments: &[Vec<u8>]) -> Result<(), String> {
    if let Some(argument) = arguments.first() {
        return Err(format!(
            "it takes no arguments, but was given '{}'",
            argument.escape_ascii()
        ));
    }
    for command in NEEDED_COMMANDS {
        if !server.knows_command(command) {
            return Err(format!(
                "it needs the command {}, which this server has renamed or disabled",
                command.to_string_lossy()
            ));
        }
    }
    command::register(server)?;
    api::declare_options(server);
    Ok(())
}
