//! Picking bits out of a fingerprint and putting them back.

/// The bits of `value` where `mask` has ones, moved together, lowest first.
#[inline]
pub(super) fn gather<const W: usize>(value: &[u64; W], mask: &[u64; W]) -> [u64; W] {
    let mut out = [0; W];
    let mut at = 0;
    for w in 0..W {
        // One step for each run of ones: masks of contiguous blocks have few.
        let (mut left, mut bits) = (mask[w], value[w]);
        while left != 0 {
            let skipped = left.trailing_zeros();
            left >>= skipped;
            bits >>= skipped;
            let run = left.trailing_ones();
            put(&mut out, at, bits & ones(run), run);
            at += run;
            left = left.checked_shr(run).unwrap_or(0);
            bits = bits.checked_shr(run).unwrap_or(0);
        }
    }
    out
}

/// The value that has the lowest bits of `packed` where `mask` has ones, in order, and else zeros.
#[inline]
pub(super) fn scatter<const W: usize>(packed: &[u64; W], mask: &[u64; W]) -> [u64; W] {
    let mut out = [0; W];
    let mut at = 0;
    for w in 0..W {
        let (mut left, mut skipped) = (mask[w], 0);
        while left != 0 {
            let zeros = left.trailing_zeros();
            left >>= zeros;
            skipped += zeros;
            let run = left.trailing_ones();
            out[w] |= get(packed, at, run) << skipped;
            at += run;
            skipped += run;
            left = left.checked_shr(run).unwrap_or(0);
        }
    }
    out
}

/// The lowest `count` bits, from 0 to 64.
#[inline]
pub(super) const fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Ones in all of `W` words.
pub(super) const fn lowest<const W: usize>(count: u32) -> [u64; W] {
    let mut mask = [0; W];
    let mut w = 0;
    while w < W {
        mask[w] = ones(count.saturating_sub(w as u32 * 64));
        w += 1;
    }
    mask
}

/// Sets `count` bits from bit `at` on, which must be 0 before.
#[inline]
pub(super) fn put<const W: usize>(words: &mut [u64; W], at: u32, bits: u64, count: u32) {
    if count == 0 {
        return;
    }
    // In a single word nothing runs over into the next.
    let (w, shift) = if W == 1 { (0, at) } else { ((at / 64) as usize, at % 64) };
    words[w] |= bits << shift;
    if W > 1 && shift + count > 64 {
        words[w + 1] |= bits >> (64 - shift);
    }
}

/// `count` bits from bit `at` on.
#[inline]
pub(super) fn get<const W: usize>(words: &[u64; W], at: u32, count: u32) -> u64 {
    let (w, shift) = ((at / 64) as usize, at % 64);
    if count == 0 {
        return 0;
    }
    let mut bits = words[w] >> shift;
    if shift + count > 64 {
        bits |= words[w + 1] << (64 - shift);
    }
    bits & ones(count)
}

/// All of it moved up by `by` bits, less than 64.
#[inline]
pub(super) fn shift_up<const W: usize>(words: &[u64; W], by: u32) -> [u64; W] {
    let mut out = [0; W];
    for w in 0..W {
        out[w] = words[w] << by;
        if by > 0 && w > 0 {
            out[w] |= words[w - 1] >> (64 - by);
        }
    }
    out
}

/// All of it moved down by `by` bits, less than 64.
#[inline]
pub(super) fn shift_down<const W: usize>(words: &[u64; W], by: u32) -> [u64; W] {
    let mut out = [0; W];
    for w in 0..W {
        out[w] = words[w] >> by;
        if by > 0 && w + 1 < W {
            out[w] |= words[w + 1] << (64 - by);
        }
    }
    out
}

/// The number of ones.
#[inline]
pub(super) fn weight<const W: usize>(words: &[u64; W]) -> u32 {
    words.iter().map(|w| w.count_ones()).sum()
}

/// The Hamming distance where `mask` has ones.
#[inline(always)]
pub(super) fn distance_in<const W: usize>(a: &[u64; W], b: &[u64; W], mask: &[u64; W]) -> u32 {
    (0..W).map(|w| ((a[w] ^ b[w]) & mask[w]).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gathered_bits_scatter_back(value: [u64; 4], mask: [u64; 4]) {
            let packed = gather(&value, &mask);
            let mut slow = [0u64; 4];
            let mut at = 0;
            for bit in 0..256 {
                if mask[bit / 64] >> (bit % 64) & 1 == 1 {
                    slow[at / 64] |= (value[bit / 64] >> (bit % 64) & 1) << (at % 64);
                    at += 1;
                }
            }
            prop_assert_eq!(packed, slow);
            let back = scatter(&packed, &mask);
            prop_assert!((0..4).all(|w| back[w] == value[w] & mask[w]));
        }

        #[test]
        fn shifts_undo_each_other(value: [u64; 2], by in 0u32..32) {
            let value = [value[0], value[1] >> 32];
            prop_assert_eq!(shift_down(&shift_up(&value, by), by), value);
        }
    }

    #[test]
    fn edges() {
        assert_eq!(gather(&[u64::MAX], &[u64::MAX]), [u64::MAX]);
        assert_eq!(scatter(&[5, 0], &[0, u64::MAX]), [0, 5]);
        assert_eq!(lowest::<2>(70), [u64::MAX, 63]);
        assert_eq!(lowest::<1>(0), [0]);
    }
}
