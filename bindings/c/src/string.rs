//! Strings of the caller's and of the library's.

use std::ffi::c_char;

use crate::failure::{guard, nearsift_status};
use crate::pointer::out;

/// A string of the caller's: UTF-8, `length` bytes, no NUL needed. `data` may be NULL when `length` is 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct nearsift_str {
    /// Its bytes.
    pub data: *const c_char,
    /// The number of its bytes.
    pub length: usize,
}

/// A string of the library's: UTF-8, `length` bytes and then a NUL. Free it with `nearsift_string_free`.
#[repr(C)]
#[derive(Debug)]
pub struct nearsift_string {
    /// Its bytes; NULL once it is freed.
    pub data: *mut c_char,
    /// The number of its bytes, the NUL left out.
    pub length: usize,
}

impl nearsift_string {
    pub(crate) fn new(text: &str) -> nearsift_string {
        let bytes: Box<[u8]> = [text.as_bytes(), b"\0"].concat().into();
        nearsift_string { data: Box::into_raw(bytes).cast(), length: text.len() }
    }
}

/// Frees a string of the library's and makes it empty, so that to free it again is harmless. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_string_free(string: *mut nearsift_string) -> nearsift_status {
    guard(|| {
        if string.is_null() {
            return Ok(());
        }
        // SAFETY: the pointer is not NULL, and the caller owns the string.
        let place = unsafe { out(string, "string") }?;
        // SAFETY: `out` has checked the pointer; the fields can be copied.
        let nearsift_string { data, length } = unsafe { string.read() };
        if !data.is_null() {
            let bytes = std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), length + 1);
            // SAFETY: it came from a box of this length.
            drop(unsafe { Box::from_raw(bytes) });
        }
        place.write(nearsift_string { data: std::ptr::null_mut(), length: 0 });
        Ok(())
    })
}
