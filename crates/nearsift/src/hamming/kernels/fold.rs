//! Folds: 32 bits of each value, which are compared first.

/// How values are folded: their parts of 32 bits are turned and XORed.
///
/// However the parts are turned, folds of two values differ in no more bits than the values. But bits on which all
/// values agree tell nothing. Where such bits lie upon each other, a fold has fewer bits that tell values apart, and
/// many pairs come near by their folds alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fold<const W: usize> {
    /// Places that the low and the high part of each word are turned left by; the very first part is not.
    turns: [[u32; 2]; W],
}

impl<const W: usize> Fold<W> {
    /// Without turning any part.
    pub(crate) const PLAIN: Fold<W> = Fold { turns: [[0; 2]; W] };

    /// For values that agree on these bits: part after part is turned to where it adds most to the bits of the fold
    /// that tell values apart.
    pub(crate) fn of_agreeing(agreed: &[u64; W]) -> Fold<W> {
        let mut telling = 0u32;
        Fold {
            turns: agreed.map(|word| {
                [!word as u32, (!word >> 32) as u32].map(|free| {
                    let gained = |turn: &u32| (telling | free.rotate_left(*turn)).count_ones();
                    // Of equals the smallest turn.
                    let turn = (0..32).rev().max_by_key(gained).unwrap_or(0);
                    telling |= free.rotate_left(turn);
                    turn
                })
            }),
        }
    }

    /// The fold of a value.
    #[inline(always)]
    pub(crate) fn of(&self, value: &[u64; W]) -> u32 {
        let low = |w: usize| value[w] as u32;
        let high = |w: usize| ((value[w] >> 32) as u32).rotate_left(self.turns[w][1]);
        let first = low(0) ^ high(0);
        (1..W).fold(first, |fold, w| fold ^ low(w).rotate_left(self.turns[w][0]) ^ high(w))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn folds_differ_in_no_more_bits_than_values(
            a: [u64; 4], agreed: [u64; 4], flips in prop::collection::vec(0..256usize, 0..20),
        ) {
            // Values far from each other would hold any fold.
            let mut b = a;
            for bit in flips {
                b[bit / 64] ^= 1 << (bit % 64);
            }
            let fold = Fold::of_agreeing(&agreed);
            let distance = crate::hamming::distance(&a, &b);
            for fold in [fold, Fold::PLAIN] {
                prop_assert!((fold.of(&a) ^ fold.of(&b)).count_ones() <= distance);
            }
            prop_assert_eq!(fold.turns[0][0], 0);
        }
    }

    #[test]
    fn agreed_bits_do_not_lie_upon_each_other() {
        let telling = |agreed: [u64; 1]| {
            let fold = Fold::of_agreeing(&agreed);
            (0..64)
                .filter(|bit| !agreed[0] >> bit & 1 == 1)
                .fold(0, |all, bit| all | fold.of(&[1 << bit]))
        };
        for agreed in
            [0, 0xff, 0xff00_0000_00ff, 0xffff_0000_ffff, 0xffff_ffff, 0x000f_f000_000f_f000]
        {
            assert_eq!(telling([agreed]), u32::MAX, "{agreed:x}");
        }
        assert_eq!(Fold::of_agreeing(&[0; 2]), Fold::PLAIN);
        assert_eq!(Fold::<1>::PLAIN.of(&[0x1234_5678_0000_ffff]), 0x1234_5678 ^ 0xffff);
    }
}
