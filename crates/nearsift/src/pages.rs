//! Memory that is written at random places, in huge pages where the system has them.
//!
//! A join moves values into hundreds of buckets at once and connects values that lie anywhere, and a table of fresh
//! fingerprints files each of them in several buckets. With pages of 4 KiB most of these moves would miss the
//! translation buffer too, and clearing pages one by one would take as long as a move.

#![expect(unsafe_code, reason = "advice to the system about memory")]

use std::ops::Range;

/// So many zeros, of which the system provides memory when they are first written.
pub(crate) fn zeroed<T: Clone>(len: usize, zero: T) -> Vec<T> {
    let zeros = vec![zero; len];
    advise(zeros.as_ptr_range());
    zeros
}

/// So many items, made in order by their places.
pub(crate) fn made<T>(len: usize, make: impl FnMut(usize) -> T) -> Vec<T> {
    let mut items = with_room(len);
    items.extend((0..len).map(make));
    items
}

/// No items, with room for so many.
pub(crate) fn with_room<T>(len: usize) -> Vec<T> {
    let mut items = Vec::with_capacity(len);
    advise_room(&mut items);
    items
}

/// Asks for huge pages for what a vector has room for. Nothing of it may have been written to yet.
pub(crate) fn advise_room<T>(items: &mut Vec<T>) {
    let room = items.spare_capacity_mut().as_ptr_range();
    advise(room.start..room.end);
}

/// Makes room for more items, in huge pages where the vector is large.
#[inline]
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        grow(items, |items| items.reserve(more));
    }
}

/// Makes room for so many more items and no others, in huge pages where the vector is large.
pub(crate) fn reserve_exact<T>(items: &mut Vec<T>, more: usize) {
    grow(items, |items| items.reserve_exact(more));
}

#[cold]
fn grow<T>(items: &mut Vec<T>, reserve: impl FnOnce(&mut Vec<T>)) {
    reserve(items);
    // All of it, for it may lie elsewhere now.
    advise(items.as_ptr()..items.as_ptr().wrapping_add(items.capacity()));
}

#[cfg(target_os = "linux")]
fn advise<T>(items: Range<*const T>) {
    /// Less memory than that is no gain.
    const HUGE: usize = 2 << 20;
    const PAGE: usize = 1 << 12;
    // Whole pages: a mapping of which a part is of another kind could not be moved as a whole when it grows.
    let start = items.start.addr() / PAGE * PAGE;
    let end = items.end.addr().next_multiple_of(PAGE);
    if end - start >= 2 * HUGE {
        let first = items.start.cast::<u8>().wrapping_sub(items.start.addr() - start);
        // SAFETY: the advice is about pages that hold the items; what else lies in them stays as it is. That huge pages are
        // refused changes nothing but the speed.
        unsafe {
            libc::madvise(first.cast_mut().cast(), end - start, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_items: Range<*const T>) {}
