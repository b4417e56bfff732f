//! What the server is told of a command, and its registration.

use super::command::enter;
use super::{required, Command, Loading};
use redis_module::raw;
use std::ffi::{c_int, CStr};
use std::ptr::{self, NonNull};

/// What `COMMAND DOCS`, `COMMAND INFO` and `COMMAND GETKEYS` say of a command.
///
/// On servers without these APIs (before 7.0 the documentation, before 7.2 the ACL categories) the
/// command works all the same.
pub struct Spec {
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
    /// Where the command's keys stand.
    pub keys: Keys,
    /// What the command does to its keys.
    pub key_flags: Flags,
    /// The ACL categories, separated by spaces.
    pub acl_categories: &'static CStr,
    /// The arguments after the name.
    pub arguments: &'static [Argument],
}

/// Where the keys of a command stand among its words.
#[derive(Clone, Copy)]
pub enum Keys {
    /// After the name.
    First,
    /// After the name, and so many words further each.
    Every(c_int),
}

/// What a command does to its keys, as key specifications say it.
#[derive(Clone, Copy)]
pub struct Flags(u64);

impl Flags {
    /// Reads the key's value and returns something of it.
    pub const READ: Self = Self(key_flags(&[
        raw::REDISMODULE_CMD_KEY_RO,
        raw::REDISMODULE_CMD_KEY_ACCESS,
    ]));
    /// Reads and changes the key's value. (The server refuses a DELETE flag beside UPDATE.)
    pub const UPDATE: Self = Self(key_flags(&[
        raw::REDISMODULE_CMD_KEY_RW,
        raw::REDISMODULE_CMD_KEY_ACCESS,
        raw::REDISMODULE_CMD_KEY_UPDATE,
    ]));
    /// Removes something of the key's value.
    pub const DELETE: Self = Self(key_flags(&[
        raw::REDISMODULE_CMD_KEY_RW,
        raw::REDISMODULE_CMD_KEY_DELETE,
    ]));
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

/// One argument of a command.
pub struct Argument {
    name: &'static CStr,
    shape: Shape,
    token: Option<&'static CStr>,
    flags: c_int,
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

impl Argument {
    /// A required argument.
    pub const fn new(name: &'static CStr, shape: Shape) -> Self {
        Self {
            name,
            shape,
            token: None,
            flags: 0,
        }
    }

    /// The same, once or more.
    pub const fn repeated(self) -> Self {
        Self {
            flags: MULTIPLE,
            ..self
        }
    }

    /// An argument that may be left out, with the word that introduces it.
    pub const fn option(name: &'static CStr, shape: Shape, token: &'static CStr) -> Self {
        Self {
            name,
            shape,
            token: Some(token),
            flags: OPTIONAL,
        }
    }
}

/// Registers a command with its documentation, key flags, arity and ACL categories, as far as the
/// server has such things (7.0 and 7.2); an error names the command that it refuses.
pub fn register<C: Command>(ctx: &Loading) -> Result<(), String> {
    if registered::<C>(ctx.0).is_some() {
        return Ok(());
    }
    let name = C::SPEC.name.to_string_lossy();
    Err(format!("the server refused the command {name}"))
}

fn registered<C: Command>(ctx: *mut raw::RedisModuleCtx) -> Option<()> {
    let spec = C::SPEC;
    let done = |status: c_int| (status == raw::Status::Ok as c_int).then_some(());
    let (name, flags) = (spec.name.as_ptr(), spec.flags.as_ptr());
    let (last, step) = match spec.keys {
        Keys::First => (1, 1),
        Keys::Every(step) => (-1, step),
    };
    let create = required!(RedisModule_CreateCommand);
    // SAFETY: called while the module is loaded; name and flags are NUL-terminated, and the server
    // copies them. It calls `enter` with what `enter` asks for.
    done(unsafe { create(ctx, name, Some(enter::<C>), flags, 1, last, step) })?;
    // SAFETY: an optional function of the table (see the essay of `api`).
    let Some(get_command) = (unsafe { raw::RedisModule_GetCommand }) else {
        return Some(());
    };
    // SAFETY: the name is NUL-terminated; an unknown one gives null, which is refused below.
    let command = NonNull::new(unsafe { get_command(ctx, name) })?.as_ptr();

    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    // SAFETY: all-zero is the API's own default of a key specification, and the end mark of a list.
    let (mut key, end) = unsafe {
        (
            std::mem::zeroed::<raw::RedisModuleCommandKeySpec>(),
            std::mem::zeroed::<raw::RedisModuleCommandKeySpec>(),
        )
    };
    key.flags = spec.key_flags.0;
    key.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    key.bs.index.pos = 1;
    key.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    key.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
        // Counted from the first key, or from the last word.
        lastkey: if last < 0 { last } else { 0 },
        keystep: step,
        limit: 0,
    };
    let mut keys = [key, end];
    let mut nested = Vec::new();
    let mut arguments = raw_arguments(spec.arguments, &mut nested);
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: spec.summary.as_ptr(),
        complexity: spec.complexity.as_ptr(),
        since: spec.since.as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: spec.arity,
        key_specs: keys.as_mut_ptr(),
        args: arguments.as_mut_ptr(),
    };
    // SAFETY: optional functions of the table (see the essay of `api`); the server copies what
    // `info` points to, all of which lives to the end of this function, and every list ends with a
    // zeroed element.
    unsafe {
        if let Some(set) = raw::RedisModule_SetCommandInfo {
            done(set(command, &raw const info))?;
        }
        if let Some(set) = raw::RedisModule_SetCommandACLCategories {
            done(set(command, spec.acl_categories.as_ptr()))?;
        }
    }
    Some(())
}

/// The list of arguments as the API takes it; `nested` keeps the lists that it points into.
fn raw_arguments(
    arguments: &[Argument],
    nested: &mut Vec<Vec<raw::RedisModuleCommandArg>>,
) -> Vec<raw::RedisModuleCommandArg> {
    let mut list: Vec<_> = arguments
        .iter()
        .map(|argument| {
            // SAFETY: all-zero is the API's own default: no token, no flags, no sub-arguments.
            let mut raw = unsafe { std::mem::zeroed::<raw::RedisModuleCommandArg>() };
            raw.name = argument.name.as_ptr();
            raw.key_spec_index = -1;
            raw.token = argument.token.map_or(ptr::null(), CStr::as_ptr);
            raw.flags = argument.flags;
            raw.type_ = match argument.shape {
                Shape::Key => {
                    raw.key_spec_index = 0;
                    raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY
                }
                Shape::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
                Shape::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
                Shape::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
                Shape::Block(parts) => {
                    let mut parts = raw_arguments(parts, nested);
                    raw.subargs = parts.as_mut_ptr();
                    nested.push(parts);
                    raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK
                }
            };
            raw
        })
        .collect();
    // SAFETY: a zeroed element ends the list, by the API's own rule.
    list.push(unsafe { std::mem::zeroed() });
    list
}
