//! Zeroed memory for big tables, in huge pages where the system has them.
//!
//! A query touches dozens of random cache lines. With pages of 4 KiB most of these would also miss
//! the translation buffer, which costs up to half the speed of a big index.

/// Zeroed bytes, aligned to a cache line at least.
#[derive(Debug)]
pub(in crate::hamming::index) struct Pages(inner::Pages);

impl Pages {
    /// So many zero bytes. Memory is taken from the system when it is first written.
    pub(in crate::hamming::index) fn zeroed(len: usize) -> Pages {
        Pages(inner::Pages::zeroed(len))
    }

    /// The first `len` bytes alone; what lies after them goes back to the system where it can.
    pub(in crate::hamming::index) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl std::ops::Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl std::ops::DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

#[cfg(target_os = "linux")]
mod inner {
    use std::ptr::NonNull;

    const HUGE: usize = 2 << 20;

    #[derive(Debug)]
    pub(super) struct Pages {
        /// The mapping, and its length.
        map: NonNull<u8>,
        mapped: usize,
        /// Where the bytes start in it, and how many there are.
        skipped: usize,
        len: usize,
    }

    // SAFETY: the mapping belongs to this value alone, and is reached through references to it.
    unsafe impl Send for Pages {}
    // SAFETY: as above.
    unsafe impl Sync for Pages {}

    impl Pages {
        pub(super) fn zeroed(len: usize) -> Pages {
            if len == 0 {
                return Pages { map: NonNull::dangling(), mapped: 0, skipped: 0, len: 0 };
            }
            let mapped = len.checked_add(HUGE).expect("less than the address space");
            // SAFETY: a new private mapping, of no file, wherever the system likes.
            let map = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    mapped,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            let map = match NonNull::new(map.cast::<u8>()) {
                Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => map,
                _ => std::alloc::handle_alloc_error(
                    std::alloc::Layout::from_size_align(len, 64).expect("a size"),
                ),
            };
            let skipped = map.as_ptr().align_offset(HUGE);
            // SAFETY: the range lies in the mapping. That huge pages are refused changes nothing but
            // the speed.
            unsafe {
                libc::madvise(
                    map.as_ptr().add(skipped).cast(),
                    mapped - skipped,
                    libc::MADV_HUGEPAGE,
                );
            }
            Pages { map, mapped, skipped, len }
        }

        pub(super) fn truncate(&mut self, len: usize) {
            self.len = self.len.min(len);
            if self.mapped == 0 {
                return;
            }
            let kept = self.skipped + self.len.next_multiple_of(HUGE);
            if kept < self.mapped {
                // SAFETY: the range lies in the mapping, past every byte that is still used; what it
                // held is 0 again, which no reference sees.
                unsafe {
                    let unused = self.map.as_ptr().add(kept).cast();
                    libc::madvise(unused, self.mapped - kept, libc::MADV_DONTNEED);
                }
            }
        }

        #[inline]
        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: `len` bytes from there on are mapped, initialised by the system with zeros.
            unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.skipped), self.len) }
        }

        #[inline]
        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above, and this value is borrowed for writing.
            unsafe { std::slice::from_raw_parts_mut(self.map.as_ptr().add(self.skipped), self.len) }
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            if self.mapped > 0 {
                // SAFETY: the mapping is this value's own, and nothing borrows it any more.
                unsafe { libc::munmap(self.map.as_ptr().cast(), self.mapped) };
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod inner {
    /// A cache line.
    #[derive(Debug, Clone, Copy)]
    #[repr(C, align(64))]
    struct Line([u8; 64]);

    #[derive(Debug)]
    pub(super) struct Pages {
        lines: Vec<Line>,
        len: usize,
    }

    impl Pages {
        pub(super) fn zeroed(len: usize) -> Pages {
            Pages { lines: vec![Line([0; 64]); len.div_ceil(64)], len }
        }

        pub(super) fn truncate(&mut self, len: usize) {
            self.len = self.len.min(len);
            self.lines.truncate(self.len.div_ceil(64));
            self.lines.shrink_to_fit();
        }

        #[inline]
        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: the lines are plain bytes without gaps, and there are `len` of them at least.
            unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
        }

        #[inline]
        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above, and this value is borrowed for writing.
            unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
        }
    }
}
