//! The server's strings: words of a command, which it holds, and strings of our own.

use super::required;
use redis_module::raw;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

/// A word of the running command, which the server holds until the command returns.
#[derive(Clone, Copy)]
pub struct Word<'a> {
    pointer: NonNull<raw::RedisModuleString>,
    call: PhantomData<&'a ()>,
}

impl<'a> Word<'a> {
    /// A word that the server has passed to the running command.
    ///
    /// # Safety
    ///
    /// The string must live as long as `'a`.
    pub(super) unsafe fn from_raw(pointer: NonNull<raw::RedisModuleString>) -> Self {
        Self {
            pointer,
            call: PhantomData,
        }
    }

    /// The word's bytes.
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: the string lives as long as `'a`, by `from_raw`, and nobody changes it.
        unsafe { bytes_of(self.pointer.as_ptr()) }
    }

    pub(super) fn pointer(self) -> *mut raw::RedisModuleString {
        self.pointer.as_ptr()
    }
}

/// A string of our own, freed when dropped.
pub struct OwnedString(NonNull<raw::RedisModuleString>);

impl OwnedString {
    /// An integer in decimal digits.
    pub fn digits(number: i64) -> Self {
        // SAFETY: no context is needed, and the new string, never null, is ours to free.
        unsafe {
            let string = required!(RedisModule_CreateStringFromLongLong)(ptr::null_mut(), number);
            Self(NonNull::new_unchecked(string))
        }
    }

    /// A copy of bytes.
    pub fn copy(bytes: &[u8]) -> Self {
        // SAFETY: the server copies so many bytes from a live slice; no context is needed, and the
        // new string, never null, is ours to free.
        unsafe {
            let create = required!(RedisModule_CreateString);
            let string = create(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len());
            Self(NonNull::new_unchecked(string))
        }
    }

    /// Takes over a string that the API has handed out; `None` if it is null.
    ///
    /// # Safety
    ///
    /// The string must be valid, and the caller's to free.
    pub(super) unsafe fn from_raw(pointer: *mut raw::RedisModuleString) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    /// The string's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self`, and nobody changes it.
        unsafe { bytes_of(self.0.as_ptr()) }
    }

    pub(super) fn pointer(&self) -> *mut raw::RedisModuleString {
        self.0.as_ptr()
    }
}

impl Drop for OwnedString {
    fn drop(&mut self) {
        // SAFETY: the string is ours, and freed only here. Without a context the server's automatic
        // memory management, which slidewin does not use, is left alone.
        unsafe { required!(RedisModule_FreeString)(ptr::null_mut(), self.pointer()) };
    }
}

/// The bytes of a string.
///
/// # Safety
///
/// The string must be valid, live as long as `'a`, and not change meanwhile.
unsafe fn bytes_of<'a>(string: *mut raw::RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the string is valid, by this function's contract; the server says where its bytes
    // start and how many they are.
    unsafe {
        let start = required!(RedisModule_StringPtrLen)(string, &raw mut len);
        slice::from_raw_parts(start.cast(), len)
    }
}
