//! Asking for memory ahead of its use.

#![expect(unsafe_code, reason = "an instruction that asks for a line of memory")]

/// Asks for the line where something begins.
#[inline(always)]
pub(crate) fn ahead<T>(thing: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address is that of a value, and asking for it changes nothing that the program sees.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(thing).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = thing;
}
