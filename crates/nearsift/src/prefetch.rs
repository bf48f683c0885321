//! Asking for memory before it is needed.

#![expect(unsafe_code, reason = "a prefetch is an instruction of the processor")]

/// Asks for the cache line at byte `at` of `bytes` to be fetched; what lies outside is ignored.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees, and of no memory it does nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            bytes.as_ptr().wrapping_add(at as usize).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Asks for the cache line of one of several things to be fetched; what lies outside is ignored.
#[inline(always)]
pub(crate) fn prefetch_one<T>(things: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(thing) = things.get(at) {
        // SAFETY: a prefetch of memory that can be read; it reads nothing that the program sees.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(thing).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (things, at);
}
