//! Memory that is written at random places, in huge pages where the system has them.
//!
//! A join moves values into hundreds of buckets at once and connects values that lie anywhere, and a table of fresh
//! fingerprints files each of them in several buckets. With pages of 4 KiB most of these moves would miss the
//! translation buffer too, and clearing pages one by one would take as long as a move.

#![expect(unsafe_code, reason = "advice to the system and the processor about memory")]

use std::ops::Range;

/// Asks for the memory of an item, which may be none, to be brought near for writing.
#[inline(always)]
pub(crate) fn will_write<T>(items: &[T], place: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and does nothing at an address that is not mapped.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(items.as_ptr().wrapping_add(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, place);
}

/// Asks for the memory of a range of items, which may not be there, to be brought near for reading.
///
/// Between lines that are written to hundreds of buckets the processor does not see by itself that items are read in
/// order.
#[inline(always)]
pub(crate) fn will_read<T>(items: &[T], range: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        for place in range.step_by((LINE / size_of::<T>().max(1)).max(1)) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(place).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, range);
}

/// So many zeros, of which the system provides memory when they are first written.
pub(crate) fn zeroed<T: Clone>(len: usize, zero: T) -> Vec<T> {
    let zeros = vec![zero; len];
    advise(&zeros);
    zeros
}

/// Asks for huge pages for what a vector has room for. Nothing of it may have been written to yet.
pub(crate) fn advise_room<T>(items: &mut Vec<T>) {
    advise(items.spare_capacity_mut());
}

#[cfg(target_os = "linux")]
fn advise<T>(items: &[T]) {
    /// Less memory than that is no gain.
    const HUGE: usize = 2 << 20;
    const PAGE: usize = 1 << 12;
    let bytes = items.as_ptr_range();
    let start = bytes.start.addr().next_multiple_of(PAGE);
    let end = bytes.end.addr() / PAGE * PAGE;
    if end.saturating_sub(start) >= 2 * HUGE {
        let first = items.as_ptr().cast::<u8>().wrapping_add(start - bytes.start.addr());
        // SAFETY: the range lies within the items. That huge pages are refused changes nothing but the speed.
        unsafe {
            libc::madvise(first.cast_mut().cast(), end - start, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_items: &[T]) {}
