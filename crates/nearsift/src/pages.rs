//! Memory that is written at random places, in huge pages where the system has them.
//!
//! A join moves values into hundreds of buckets at once, a table of fresh fingerprints files each of them in several
//! buckets, and a query of an index or among sketches reads dozens to thousands of lines of the cache, each elsewhere. With
//! pages of 4 KiB most of these would miss the translation buffer too, and clearing pages one by one would take as long
//! as a move.
//!
//! For the crates of this workspace.

#![expect(unsafe_code, reason = "advice to the system about memory")]

use std::ops::Range;

/// So many zeros, of which the system provides memory when they are first written.
pub fn zeroed<T: Clone>(len: usize, zero: T) -> Vec<T> {
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

/// An empty vector with room for this many items.
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

/// Reserves room for exactly this many more items, in huge pages if the vector is large.
pub fn reserve_exact<T>(items: &mut Vec<T>, more: usize) {
    grow(items, |items| items.reserve_exact(more));
}

#[cold]
fn grow<T>(items: &mut Vec<T>, reserve: impl FnOnce(&mut Vec<T>)) {
    reserve(items);
    // All of it, for it may lie elsewhere now.
    advise(items.as_ptr()..items.as_ptr().wrapping_add(items.capacity()));
}

/// Zero bytes that start at a line of the cache, in huge pages where there are many.
#[derive(Debug)]
pub(crate) struct Pages {
    words: Vec<u64>,
    /// Where the bytes start in these.
    from: usize,
    len: usize,
}

impl Pages {
    /// So many zero bytes. Memory is taken from the system when it is first written.
    pub(crate) fn zeroed(len: usize) -> Pages {
        const LINE: usize = 64;
        let words = zeroed(len.div_ceil(8) + LINE / 8, 0u64);
        let bytes: &[u8] = bytemuck::must_cast_slice(&words);
        let from = bytes.as_ptr().align_offset(LINE).min(LINE);
        Pages { words, from, len }
    }

    /// The first `len` bytes alone; what lies after them goes back to the system where it can.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.words.truncate((self.from + self.len).div_ceil(8));
        self.words.shrink_to_fit();
    }
}

impl std::ops::Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = bytemuck::must_cast_slice(&self.words);
        &bytes[self.from..self.from + self.len]
    }
}

impl std::ops::DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::must_cast_slice_mut(&mut self.words);
        &mut bytes[self.from..self.from + self.len]
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_and_hold_what_is_written() {
        for len in [0, 1, 4096, (2 << 20) + 1, 5 << 20] {
            let mut pages = Pages::zeroed(len);
            assert_eq!((pages.len(), pages.as_ptr().addr() % 64), (len, 0));
            assert!(pages.iter().all(|&b| b == 0));
            pages.fill(7);
            pages.truncate(len / 2);
            assert_eq!(pages.len(), len / 2);
            assert!(pages.iter().all(|&b| b == 7));
        }
    }

    #[test]
    fn room_holds_what_is_added() {
        for len in [0, 1, 4096, 16 << 20] {
            let mut room = vec![5u32; 3];
            reserve_exact(&mut room, len / 4);
            assert!(room.capacity() >= 3 + len / 4 && room == [5; 3]);
            room.resize(3 + len / 4, 7);
            assert!(zeroed(len / 8, 0u64).iter().all(|&word| word == 0));
        }
    }
}
