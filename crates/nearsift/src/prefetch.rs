//! Prefetching: memory is brought near before it is used. What lies outside of the items is ignored.
//!
//! For the crates of this workspace.

#![expect(unsafe_code, reason = "a prefetch is an instruction of the processor")]

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};

/// Asks for the cache line at an address, by a hint.
macro_rules! fetch {
    ($hint:ident, $address:expr) => {{
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing that the program sees, and does nothing at an address that is not mapped.
        unsafe {
            _mm_prefetch::<$hint>($address.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = $address;
    }};
}

/// Asks for the cache line at byte `at` of `bytes` to be fetched.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: u64) {
    fetch!(_MM_HINT_T0, bytes.as_ptr().wrapping_add(at as usize));
}

/// Asks for the cache line where something begins to be fetched.
#[inline(always)]
pub fn prefetch_start<T>(thing: &T) {
    fetch!(_MM_HINT_T0, std::ptr::from_ref(thing));
}

/// Asks for the cache line of one of several things to be fetched.
#[inline(always)]
pub(crate) fn prefetch_one<T>(things: &[T], at: usize) {
    things.get(at).into_iter().for_each(prefetch_start);
}

/// Asks for the memory of an item, which may be none, to be brought near for writing.
#[inline(always)]
pub(crate) fn will_write<T>(items: &[T], place: usize) {
    fetch!(_MM_HINT_ET0, items.as_ptr().wrapping_add(place));
}

/// Asks for the memory of a range of items, which may not be there, to be brought near for reading.
///
/// Between lines that are written to hundreds of buckets the processor does not see by itself that items are read in
/// order.
#[inline(always)]
pub(crate) fn will_read<T>(items: &[T], range: Range<usize>) {
    const LINE: usize = 64;
    for place in range.step_by((LINE / size_of::<T>().max(1)).max(1)) {
        fetch!(_MM_HINT_T0, items.as_ptr().wrapping_add(place));
    }
}
