//! Scans of a column: one query or sixteen against every value.
//!
//! The loops are written once; [`Instructions`] says what an instruction set does for a block of 64
//! values, and `compiled_for!` compiles the loops for it.

/// Values compared in one step: the near ones fill a 64-bit mask.
pub(super) const BLOCK: usize = 64;

/// Queries compared in one pass over a column by [`Kernel::scan_many`](super::Kernel::scan_many).
pub const QUERIES: usize = 16;

/// What a column holds of each fingerprint: the whole as words, or a part of 16, 32 or 64 bits.
///
/// Implemented for `u16`, `u32`, `u64` and arrays of `u64`; it cannot be implemented elsewhere.
pub trait Lane: Copy + Send + Sync + sealed::Lane {}

impl<T: Copy + Send + Sync + sealed::Lane> Lane for T {}

pub(super) use sealed::Instructions;

mod sealed {
    use super::{BLOCK, QUERIES};

    /// Plain data without padding, which the vector loads rely on.
    pub trait Lane: Sized {
        /// The number of bits in which the two differ.
        fn distance(self, other: Self) -> u32;

        /// Bit `i` says whether value `i` of the block is within `max` of the query.
        ///
        /// # Safety
        /// The processor has the instructions `I`.
        unsafe fn near<I: Instructions>(block: &[Self; BLOCK], query: Self, max: u32) -> u64;

        /// Whether any value of the block is within `max` of any query.
        ///
        /// # Safety
        /// The processor has the instructions `I`.
        unsafe fn any_near<I: Instructions>(
            block: &[Self; BLOCK],
            queries: &[Self; QUERIES],
            max: u32,
        ) -> bool;
    }

    /// What an instruction set does for one block; as in [`Lane`], by the size of a value.
    ///
    /// # Safety
    /// Every function needs the instructions that the type stands for. `W` is 1, 2 or 4.
    pub trait Instructions {
        unsafe fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64;
        unsafe fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64;
        unsafe fn near_words<const W: usize>(
            block: &[[u64; W]; BLOCK],
            query: &[u64; W],
            max: u32,
        ) -> u64;
        unsafe fn any_near_16(block: &[u16; BLOCK], queries: &[u16; QUERIES], max: u32) -> bool;
        unsafe fn any_near_32(block: &[u32; BLOCK], queries: &[u32; QUERIES], max: u32) -> bool;
        unsafe fn any_near_words<const W: usize>(
            block: &[[u64; W]; BLOCK],
            queries: &[[u64; W]; QUERIES],
            max: u32,
        ) -> bool;
    }
}

macro_rules! part_lane {
    ($type:ty, $near:ident, $any_near:ident) => {
        impl sealed::Lane for $type {
            #[inline(always)]
            fn distance(self, other: $type) -> u32 {
                (self ^ other).count_ones()
            }

            #[inline(always)]
            unsafe fn near<I: Instructions>(block: &[$type; BLOCK], query: $type, max: u32) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { I::$near(block, query, max) }
            }

            #[inline(always)]
            unsafe fn any_near<I: Instructions>(
                block: &[$type; BLOCK],
                queries: &[$type; QUERIES],
                max: u32,
            ) -> bool {
                // SAFETY: the caller's promise.
                unsafe { I::$any_near(block, queries, max) }
            }
        }
    };
}

part_lane!(u16, near_16, any_near_16);
part_lane!(u32, near_32, any_near_32);

impl sealed::Lane for u64 {
    #[inline(always)]
    fn distance(self, other: u64) -> u32 {
        (self ^ other).count_ones()
    }

    #[inline(always)]
    unsafe fn near<I: Instructions>(block: &[u64; BLOCK], query: u64, max: u32) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { I::near_words::<1>(as_words(block), &[query], max) }
    }

    #[inline(always)]
    unsafe fn any_near<I: Instructions>(
        block: &[u64; BLOCK],
        queries: &[u64; QUERIES],
        max: u32,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { I::any_near_words::<1>(as_words(block), as_words(queries), max) }
    }
}

#[inline(always)]
fn as_words<const N: usize>(values: &[u64; N]) -> &[[u64; 1]; N] {
    let (words, _) = values.as_chunks::<1>();
    words.try_into().expect("as many arrays of one as there are words")
}

impl<const W: usize> sealed::Lane for [u64; W] {
    #[inline(always)]
    fn distance(self, other: [u64; W]) -> u32 {
        let mut sum = 0;
        for w in 0..W {
            sum += (self[w] ^ other[w]).count_ones();
        }
        sum
    }

    #[inline(always)]
    unsafe fn near<I: Instructions>(block: &[[u64; W]; BLOCK], query: [u64; W], max: u32) -> u64 {
        match W {
            // SAFETY: the caller's promise, and the arm's width.
            1 | 2 | 4 => unsafe { I::near_words(block, &query, max) },
            _ => near(block, query, max),
        }
    }

    #[inline(always)]
    unsafe fn any_near<I: Instructions>(
        block: &[[u64; W]; BLOCK],
        queries: &[[u64; W]; QUERIES],
        max: u32,
    ) -> bool {
        match W {
            // SAFETY: the caller's promise, and the arm's width.
            1 | 2 | 4 => unsafe { I::any_near_words(block, queries, max) },
            _ => any_near(block, queries, max),
        }
    }
}

/// No instructions but those that the code around it is compiled for.
pub(super) struct Plain;

impl Instructions for Plain {
    #[inline(always)]
    unsafe fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64 {
        near(block, query, max)
    }

    #[inline(always)]
    unsafe fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64 {
        near(block, query, max)
    }

    #[inline(always)]
    unsafe fn near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        query: &[u64; W],
        max: u32,
    ) -> u64 {
        near(block, *query, max)
    }

    #[inline(always)]
    unsafe fn any_near_16(block: &[u16; BLOCK], queries: &[u16; QUERIES], max: u32) -> bool {
        any_near(block, queries, max)
    }

    #[inline(always)]
    unsafe fn any_near_32(block: &[u32; BLOCK], queries: &[u32; QUERIES], max: u32) -> bool {
        any_near(block, queries, max)
    }

    #[inline(always)]
    unsafe fn any_near_words<const W: usize>(
        block: &[[u64; W]; BLOCK],
        queries: &[[u64; W]; QUERIES],
        max: u32,
    ) -> bool {
        any_near(block, queries, max)
    }
}

#[inline(always)]
fn near<T: Lane>(block: &[T; BLOCK], query: T, max: u32) -> u64 {
    let mut mask = 0;
    for (i, &value) in block.iter().enumerate() {
        mask |= u64::from(value.distance(query) <= max) << i;
    }
    mask
}

#[inline(always)]
fn any_near<T: Lane>(block: &[T; BLOCK], queries: &[T; QUERIES], max: u32) -> bool {
    let mut least = u32::MAX;
    for &query in queries {
        for &value in block {
            least = least.min(value.distance(query));
        }
    }
    least <= max
}

/// Below this many values a plain loop beats a block that is mostly padding.
const FEW: usize = 12;

/// Appends the position of every value within `max` of the query, in ascending order.
///
/// # Safety
/// The processor has the instructions `I`.
#[inline(always)]
pub(super) unsafe fn scan<I: Instructions, T: Lane>(
    values: &[T],
    query: T,
    max: u32,
    hits: &mut Vec<u32>,
) {
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    let mut first = 0;
    for block in blocks {
        // SAFETY: the caller's promise.
        let mut mask = unsafe { T::near::<I>(block, query, max) };
        while mask != 0 {
            hits.push(first + mask.trailing_zeros());
            mask &= mask - 1;
        }
        first += BLOCK as u32;
    }
    if rest.len() < FEW {
        for (i, &value) in rest.iter().enumerate() {
            if value.distance(query) <= max {
                hits.push(first + i as u32);
            }
        }
        return;
    }
    let (block, real) = padded(rest);
    // SAFETY: the caller's promise.
    let mut mask = unsafe { T::near::<I>(&block, query, max) } & real;
    while mask != 0 {
        hits.push(first + mask.trailing_zeros());
        mask &= mask - 1;
    }
}

/// Appends `(query, position)` for every value within `max` of a query: blocks of values in
/// ascending order, in each block by query, then position.
///
/// # Safety
/// The processor has the instructions `I`.
#[inline(always)]
pub(super) unsafe fn scan_many<I: Instructions, T: Lane>(
    values: &[T],
    queries: &[T],
    max: u32,
    hits: &mut Vec<(u32, u32)>,
) {
    let Some(&last) = queries.last() else { return };
    let mut full = [last; QUERIES];
    full[..queries.len()].copy_from_slice(queries);
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    let mut visit = |block: &[T; BLOCK], first: u32, real: u64| {
        // SAFETY: the caller's promise.
        if unsafe { T::any_near::<I>(block, &full, max) } {
            for (q, &query) in queries.iter().enumerate() {
                // SAFETY: the caller's promise.
                let mut mask = unsafe { T::near::<I>(block, query, max) } & real;
                while mask != 0 {
                    hits.push((q as u32, first + mask.trailing_zeros()));
                    mask &= mask - 1;
                }
            }
        }
    };
    let mut first = 0;
    for block in blocks {
        visit(block, first, u64::MAX);
        first += BLOCK as u32;
    }
    if !rest.is_empty() {
        let (block, real) = padded(rest);
        visit(&block, first, real);
    }
}

/// A block that starts with these values, fewer than a block, and the mask of them.
#[inline(always)]
fn padded<T: Lane>(rest: &[T]) -> ([T; BLOCK], u64) {
    let mut block = [rest[0]; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    (block, (1 << rest.len()) - 1)
}

/// Functions `scan` and `scan_many` in a module of their own, compiled for these instructions.
macro_rules! compiled_for {
    ($module:ident, $features:literal, $instructions:ident) => {
        pub(in super::super) mod $module {
            use crate::hamming::kernels::columns::{self, Lane};

            #[target_feature(enable = $features)]
            pub(in super::super::super) fn scan<T: Lane>(
                values: &[T],
                query: T,
                max: u32,
                hits: &mut Vec<u32>,
            ) {
                // SAFETY: this function is compiled for these instructions.
                unsafe { columns::scan::<super::$instructions, T>(values, query, max, hits) }
            }

            #[target_feature(enable = $features)]
            pub(in super::super::super) fn scan_many<T: Lane>(
                values: &[T],
                queries: &[T],
                max: u32,
                hits: &mut Vec<(u32, u32)>,
            ) {
                // SAFETY: this function is compiled for these instructions.
                unsafe { columns::scan_many::<super::$instructions, T>(values, queries, max, hits) }
            }
        }
    };
}
pub(super) use compiled_for;

/// Implements [`Instructions`] by functions of these names in a module, compiled for the features.
macro_rules! instructions {
    ($name:ident, $module:ident) => {
        pub(super) struct $name;

        impl Instructions for $name {
            #[inline(always)]
            unsafe fn near_16(block: &[u16; BLOCK], query: u16, max: u32) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { $module::near_16(block, query, max) }
            }

            #[inline(always)]
            unsafe fn near_32(block: &[u32; BLOCK], query: u32, max: u32) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { $module::near_32(block, query, max) }
            }

            #[inline(always)]
            unsafe fn near_words<const W: usize>(
                block: &[[u64; W]; BLOCK],
                query: &[u64; W],
                max: u32,
            ) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { $module::near_words(block, query, max) }
            }

            #[inline(always)]
            unsafe fn any_near_16(
                block: &[u16; BLOCK],
                queries: &[u16; QUERIES],
                max: u32,
            ) -> bool {
                // SAFETY: the caller's promise.
                unsafe { $module::any_near_16(block, queries, max) }
            }

            #[inline(always)]
            unsafe fn any_near_32(
                block: &[u32; BLOCK],
                queries: &[u32; QUERIES],
                max: u32,
            ) -> bool {
                // SAFETY: the caller's promise.
                unsafe { $module::any_near_32(block, queries, max) }
            }

            #[inline(always)]
            unsafe fn any_near_words<const W: usize>(
                block: &[[u64; W]; BLOCK],
                queries: &[[u64; W]; QUERIES],
                max: u32,
            ) -> bool {
                // SAFETY: the caller's promise.
                unsafe { $module::any_near_words(block, queries, max) }
            }
        }
    };
}
pub(super) use instructions;
