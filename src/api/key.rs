//! An open key, whatever it holds.

use super::{required, Bytes, Call, SortedSet, Word};
use redis_module::raw;
use std::ffi::c_int;
use std::ptr;

/// What a key is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading; the key need not exist and is not created.
    Read,
    /// Reading and writing.
    Write,
}

/// An open key, closed when dropped.
pub struct Key<'a> {
    /// Null for an absent key that was opened for reading, and once it is closed.
    pointer: *mut raw::RedisModuleKey,
    call: &'a Call<'a>,
    name: Word<'a>,
}

/// What a key holds, as far as a log may be stored in it.
pub enum Value<'a> {
    /// Nothing.
    Absent(Key<'a>),
    /// A sorted set.
    SortedSet(SortedSet<'a>),
    /// A string of so many bytes.
    String(Key<'a>, usize),
    /// Something else.
    Other,
}

impl<'a> Key<'a> {
    /// Opens a key.
    pub fn open(call: &'a Call<'a>, name: Word<'a>, access: Access) -> Self {
        let mode = match access {
            Access::Read => raw::KeyMode::READ,
            Access::Write => raw::KeyMode::READ | raw::KeyMode::WRITE,
        };
        Self {
            pointer: raw::open_key(call.ctx, name.pointer(), mode),
            call,
            name,
        }
    }

    /// What the key holds.
    pub fn value(self) -> Value<'a> {
        // SAFETY: the handle is open, or null, whose type is EMPTY.
        let kind = unsafe { required!(RedisModule_KeyType)(self.pointer) };
        if kind == raw::KeyType::Empty as c_int {
            Value::Absent(self)
        } else if kind == raw::KeyType::ZSet as c_int {
            Value::SortedSet(SortedSet::new(self))
        } else if kind == raw::KeyType::String as c_int {
            let len = self.value_length();
            Value::String(self, len)
        } else {
            Value::Other
        }
    }

    /// The key, which holds nothing, as an empty sorted set, which appears with its first member.
    pub fn into_sorted_set(self) -> SortedSet<'a> {
        SortedSet::new(self)
    }

    /// The key, which holds a string or nothing, as bytes.
    pub fn into_bytes(self) -> Bytes<'a> {
        Bytes::new(self)
    }

    /// When the key expires, in Unix milliseconds.
    pub fn expiry(&self) -> Option<i64> {
        if self.pointer.is_null() {
            return None;
        }
        // SAFETY: the handle is open; a key that is gone has no expiry.
        let expiry = unsafe { required!(RedisModule_GetAbsExpire)(self.pointer) };
        (expiry != i64::from(raw::REDISMODULE_NO_EXPIRE)).then_some(expiry)
    }

    /// Lets the key expire at a time in Unix milliseconds, which must not be negative.
    pub fn set_expiry(&mut self, at_ms: i64) {
        debug_assert!(at_ms >= 0, "a negative number would mean no expiry");
        if let Some(key) = self.for_change() {
            // SAFETY: the handle is open for writing; a key that is gone is refused by status.
            unsafe { required!(RedisModule_SetAbsExpire)(key, at_ms) };
        }
    }

    /// Removes the key; its memory is freed in the background.
    pub fn unlink(&mut self) {
        if let Some(key) = self.for_change() {
            // SAFETY: the handle is open for writing, and stays valid, for a key that is gone.
            unsafe { required!(RedisModule_UnlinkKey)(key) };
        }
    }

    /// Closes the key; from then on it is as if absent and opened for reading.
    pub fn close(&mut self) {
        raw::close_key(std::mem::replace(&mut self.pointer, ptr::null_mut()));
    }

    /// The command that opened the key.
    pub fn call(&self) -> &'a Call<'a> {
        self.call
    }

    /// The key's name.
    pub fn name(&self) -> Word<'a> {
        self.name
    }

    /// The length of what the key holds: members of a sorted set, bytes of a string, 0 for nothing.
    pub(super) fn value_length(&self) -> usize {
        // SAFETY: the handle is open, or null, whose length is 0.
        unsafe { required!(RedisModule_ValueLength)(self.pointer) }
    }

    /// The handle for reading, possibly null.
    pub(super) fn pointer(&self) -> *mut raw::RedisModuleKey {
        self.pointer
    }

    /// The handle for a change; `None` only for an absent key that was opened for reading, or a
    /// closed one. (The server itself refuses a change through a handle for reading.)
    pub(super) fn for_change(&mut self) -> Option<*mut raw::RedisModuleKey> {
        (!self.pointer.is_null()).then_some(self.pointer)
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
