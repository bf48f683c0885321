//! From the pointers of a caller to references, checked for all that can be checked.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::failure::{Failure, nearsift_status};
use crate::string::nearsift_str;

/// Refuses NULL and pointers that are not aligned.
fn check<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    let problem = match (pointer.is_null(), pointer.is_aligned()) {
        (true, _) => "is NULL",
        (_, false) => "is not aligned for its type",
        (false, true) => return Ok(()),
    };
    let message = format_args!("'{what}' {problem}: expected a pointer to a valid object");
    Err(Failure::new(nearsift_status::BadPointer, message))
}

/// Refuses what no array of this length can be.
fn check_many<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Failure> {
    check(pointer, what)?;
    if count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize) {
        return Ok(());
    }
    Err(Failure::argument(format_args!(
        "'{what}' has a length of {count}, which is more than memory holds: expected its number of elements"
    )))
}

/// An object of the caller's, or a handle.
///
/// # Safety
/// The pointer is NULL or points to an object that lives for `'a` and is not written to meanwhile.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    check(pointer, what)?;
    // SAFETY: not NULL, aligned, and by the contract of this function a valid object.
    Ok(unsafe { &*pointer })
}

/// `count` objects of the caller's. NULL is fine for none.
///
/// # Safety
/// The pointer is NULL or points to that number of objects, which live for `'a` and are not written to meanwhile.
pub(crate) unsafe fn slice<'a, T>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check_many(pointer, count, what)?;
    // SAFETY: not NULL, aligned, no longer than an object can be, and by the contract of this function valid.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Places for `count` results. NULL is fine for none.
///
/// # Safety
/// The pointer is NULL or points to memory for that number of objects that is not used by others for `'a`.
pub(crate) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_many(pointer, count, what)?;
    // SAFETY: as in `slice`; the memory need not be initialised.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) })
}

/// A string of the caller's. NULL is fine for an empty one.
///
/// # Safety
/// As [`slice`].
pub(crate) unsafe fn text<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<&'a str, Failure> {
    // SAFETY: the contract is the same.
    let bytes = unsafe { slice(data.cast::<u8>(), length, what) }?;
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let message = format_args!(
            "'{what}' is not UTF-8: byte {at} is 0x{:02x}; decode it first, and give bytes and not characters as its length",
            bytes[at]
        );
        Failure::new(nearsift_status::InvalidUtf8, message)
    })
}

/// Strings of the caller's.
///
/// # Safety
/// As [`slice`], of the strings and of each string's bytes.
pub(crate) unsafe fn texts<'a>(
    strings: *const nearsift_str,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the contract is the same.
    let strings = unsafe { slice(strings, count, what) }?;
    let each = strings.iter().enumerate();
    // SAFETY: the contract covers each string.
    each.map(|(i, s)| unsafe { text(s.data, s.length, &format!("{what}[{i}]")) }).collect()
}

/// Where a result goes.
pub(crate) struct Out<T>(*mut T);

/// Where the caller wants a result.
///
/// # Safety
/// The pointer is NULL or points to memory for a `T` that is not used by others before the call ends.
pub(crate) unsafe fn out<T>(pointer: *mut T, what: &str) -> Result<Out<T>, Failure> {
    check(pointer, what)?;
    Ok(Out(pointer))
}

/// Where the caller wants a result; NULL where he does not.
///
/// # Safety
/// As [`out`].
pub(crate) unsafe fn optional<T>(pointer: *mut T, what: &str) -> Result<Option<Out<T>>, Failure> {
    // SAFETY: the contract is the same.
    (!pointer.is_null()).then(|| unsafe { out(pointer, what) }).transpose()
}

impl<T> Out<T> {
    /// Writes the result. What was there before is not dropped: it may be uninitialised.
    pub(crate) fn write(self, value: T) {
        // SAFETY: `out` has checked the pointer, and its caller says that the memory is the call's.
        unsafe { self.0.write(value) }
    }
}

impl<T> Out<*mut T> {
    /// Writes NULL, which stays there if the call fails: freeing it is fine then.
    pub(crate) fn cleared(self) -> Out<*mut T> {
        // SAFETY: as in `write`.
        unsafe { self.0.write(std::ptr::null_mut()) }
        self
    }

    /// Writes a new handle, which is the caller's.
    pub(crate) fn hand_over(self, handle: T) {
        self.write(Box::into_raw(Box::new(handle)));
    }
}

/// Takes a handle back that [`Out::hand_over`] has given; `None` of NULL.
///
/// # Safety
/// The pointer is NULL or such a handle, and nobody uses it any more.
pub(crate) unsafe fn take_back<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: it came from a box, and is used for the last time.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
