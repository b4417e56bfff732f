//! Commands: how the server's call reaches one, and its answer the client.

use super::{required, Spec, Word};
use crate::error::Error;
use redis_module::raw;
use std::ffi::{c_int, c_long};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;
use std::slice;

/// A command of the module.
pub trait Command {
    /// What the server, its clients and its operators are told of the command.
    const SPEC: Spec;

    /// Runs the command and returns what to answer.
    fn run(call: &Call) -> Result<Reply, Error>;
}

/// What a command answers. (The crate's own type of replies has many more forms, and moving one
/// about costs more than making it.)
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// An integer.
    Integer(i64),
    /// An array.
    Array(Vec<Reply>),
}

/// A running command.
pub struct Call<'a> {
    pub(super) ctx: *mut raw::RedisModuleCtx,
    words: &'a [NonNull<raw::RedisModuleString>],
}

impl Call<'_> {
    /// A word of the call by its position; 0 is the command's name.
    pub fn word(&self, position: usize) -> Option<Word<'_>> {
        // SAFETY: the server holds the words until the command returns, and so longer than `self`.
        let borrow = |word: &NonNull<_>| unsafe { Word::from_raw(*word) };
        self.words.get(position).map(borrow)
    }

    /// The bytes of the words from a position on.
    pub fn arguments(&self, from: usize) -> impl Iterator<Item = &[u8]> {
        let positions = from..self.words.len().max(from);
        positions.map(|position| self.word(position).map_or(&[][..], Word::bytes))
    }

    fn send(&self, reply: &Reply) {
        match reply {
            Reply::Integer(number) => {
                raw::reply_with_long_long(self.ctx, *number);
            }
            Reply::Array(elements) => {
                let len = c_long::try_from(elements.len()).unwrap_or(c_long::MAX);
                raw::reply_with_array(self.ctx, len);
                for element in elements {
                    self.send(element);
                }
            }
        }
    }

    fn send_error(&self, error: Error) {
        // SAFETY: the context is the running command's, and the text is NUL-terminated.
        unsafe {
            if error == Error::WrongArity {
                required!(RedisModule_WrongArity)(self.ctx);
            } else {
                required!(RedisModule_ReplyWithError)(self.ctx, error.text().as_ptr());
            }
        }
    }
}

/// What the server calls to run a command: words in, answer out; no panic gets past it.
///
/// # Safety
///
/// `words` must point to `count` strings, none of them null, that live until the function returns, as the server's do.
pub(super) unsafe extern "C" fn enter<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    words: *mut *mut raw::RedisModuleString,
    count: c_int,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: by this function's contract; a pointer to a string is never null.
    let words = unsafe { slice::from_raw_parts(words.cast(), count) };
    let call = Call { ctx, words };
    match guarded(|| C::run(&call)) {
        Ok(reply) => call.send(&reply),
        Err(error) => call.send_error(error),
    }
    raw::Status::Ok as c_int
}

/// Runs a command; a panic, which would abort the server, becomes an error.
fn guarded<T>(command: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(command)).unwrap_or(Err(Error::Internal))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case 50.
    #[test]
    fn a_panic_becomes_an_internal_error() {
        let answer: Result<(), _> = guarded(|| panic!("a defect"));
        assert_eq!(answer, Err(Error::Internal));
    }
}
