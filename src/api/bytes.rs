//! A key that holds a string.

use super::{required, Key};
use redis_module::raw;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::slice;

#[allow(clippy::cast_possible_wrap)] // bindgen types these small constants as unsigned
const READ: c_int = raw::REDISMODULE_READ as c_int;
#[allow(clippy::cast_possible_wrap)]
const WRITE: c_int = raw::REDISMODULE_WRITE as c_int;

/// The bytes of a string under an open key, or of an absent key, which has none.
///
/// `RM_StringDMA` lends the server's own memory. Nobody else writes it while the key is open; it
/// moves only when it is resized, which takes `self` as mutable, so that no slice outlives it.
pub struct Bytes<'a> {
    key: Key<'a>,
    start: NonNull<u8>,
    len: usize,
    /// Whether the server has lent them for writing.
    writable: bool,
}

impl<'a> Bytes<'a> {
    /// The most bytes that a string can have.
    pub const MAX_LEN: usize = 512 << 20;

    /// The bytes under a key that is known to hold a string, or nothing.
    ///
    /// Even to read them turns a short string or an integer into one of the general encoding; so
    /// its length should be looked at first.
    pub(super) fn new(key: Key<'a>) -> Self {
        let mut bytes = Self {
            key,
            start: NonNull::dangling(),
            len: 0,
            writable: false,
        };
        bytes.lend(READ);
        bytes
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        // SAFETY: the memory is the server's, of this length (`lend`), and stays while the key is
        // open and `self` is borrowed; without bytes the pointer is dangling, but aligned.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to be changed; none unless `resize` was called before.
    pub fn get_mut(&mut self) -> &mut [u8] {
        if !self.writable {
            self.lend(READ | WRITE);
        }
        // SAFETY: as in `get`; asked for writing, the server lends memory that only this key uses,
        // and `self` is borrowed as mutable.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Makes the string longer, with zeros, or shorter, creating the key; false when the server
    /// refuses.
    #[must_use]
    pub fn resize(&mut self, len: usize) -> bool {
        let Some(key) = self.key.for_change() else {
            return false;
        };
        // SAFETY: the key is open for writing and holds a string or nothing.
        let status = unsafe { required!(RedisModule_StringTruncate)(key, len) };
        self.lend(READ | WRITE);
        status == raw::Status::Ok as c_int
    }

    /// Asks the server where the bytes are.
    fn lend(&mut self, mode: c_int) {
        self.len = 0;
        let key = self.key.pointer();
        if key.is_null() {
            return;
        }
        let mut len = 0;
        // SAFETY: the handle is open, and what it opens is a string or nothing.
        let start = unsafe { required!(RedisModule_StringDMA)(key, &raw mut len, mode) };
        if let Some(start) = NonNull::new(start.cast()) {
            (self.start, self.len) = (start, len);
            self.writable = mode & WRITE != 0;
        }
    }

    /// Closes the key, after which there are no bytes.
    pub fn close(&mut self) {
        self.len = 0;
        self.key.close();
    }

    /// The key that the string is under.
    pub fn key(&self) -> &Key<'a> {
        &self.key
    }

    /// The key that the string is under, to be changed, but for its value.
    pub fn key_mut(&mut self) -> &mut Key<'a> {
        &mut self.key
    }

    /// Removes the key.
    pub fn unlink(&mut self) {
        self.len = 0;
        self.key.unlink();
    }
}
