//! Memory that is written at random places, in huge pages where the system has them.
//!
//! A join moves values into hundreds of buckets at once and connects values that lie anywhere, and a table of fresh
//! fingerprints files each of them in several buckets. With pages of 4 KiB most of these moves would miss the
//! translation buffer too, and clearing pages one by one would take as long as a move.

#![expect(unsafe_code, reason = "advice to the system about memory")]

/// So many zeros, of which the system provides memory when they are first written.
pub(crate) fn zeroed<T: Clone>(len: usize, zero: T) -> Vec<T> {
    let zeros = vec![zero; len];
    advise(&zeros);
    zeros
}

/// So many items, made in order by their places.
pub(crate) fn made<T>(len: usize, make: impl FnMut(usize) -> T) -> Vec<T> {
    let mut items = Vec::with_capacity(len);
    advise_room(&mut items);
    items.extend((0..len).map(make));
    items
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
