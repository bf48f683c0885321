//! Memory for what is read at random places, in huge pages where the system has them.
//!
//! A search among sketches reads thousands of lines of the cache, each from another page. With pages of 4 KiB each
//! would also miss the translation buffer.

#![expect(unsafe_code, reason = "the system is told how memory will be used")]

/// So many numbers, all 0.
pub(crate) fn zeros<T: Copy + Default>(len: usize) -> Vec<T> {
    let zeros = vec![T::default(); len];
    advise(zeros.as_ptr().cast(), size_of_val(&zeros[..]));
    zeros
}

/// Makes room for so many more items, which are not moved until there are more of them.
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) {
    items.reserve_exact(more);
    let room = items.spare_capacity_mut();
    advise(room.as_ptr().cast(), size_of_val(room));
}

/// Asks for huge pages for the whole ones of a range of memory that was not written to yet.
#[cfg(target_os = "linux")]
fn advise(start: *const u8, len: usize) {
    /// A page of the smallest size that is usual.
    const PAGE: usize = 4096;
    /// What is smaller than some huge pages does not miss often.
    const LEAST: usize = 8 << 20;
    let skipped = start.align_offset(PAGE);
    if len < LEAST || skipped >= len {
        return;
    }
    let whole = (len - skipped) / PAGE * PAGE;
    // SAFETY: the range lies in one allocation, and the advice changes nothing of what it holds. That it is
    // refused changes nothing but the speed.
    unsafe {
        libc::madvise(start.wrapping_add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *const u8, _: usize) {}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_zero_and_can_be_written() {
        for len in [0, 1, 4096, 16 << 20, (16 << 20) + 3] {
            let mut bytes = super::zeros::<u8>(len);
            assert!(bytes.len() == len && bytes.iter().all(|&byte| byte == 0));
            bytes.fill(7);
            let mut words = super::zeros::<u64>(len / 8);
            assert!(words.len() == len / 8 && words.iter().all(|&word| word == 0));
            words.fill(7);
            let mut room = vec![5u32; 3];
            super::reserve(&mut room, len / 4);
            assert!(room.capacity() >= 3 + len / 4 && room == [5; 3]);
            room.resize(3 + len / 4, 7);
        }
    }
}
