//! Folded planes: a few bits of each fingerprint that decide for most of them.

use std::borrow::Cow;

/// How many bits of each fingerprint a plane keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fold {
    /// 16 bits: for distances up to 2.
    B16,
    /// 32 bits: for distances up to about 8.
    B32,
    /// 64 bits of 128 or 256: for distances up to about 22.
    B64,
    /// 128 bits of 256: for distances up to about 50.
    B128,
}

impl Fold {
    /// All, the narrowest first.
    pub const ALL: [Fold; 4] = [Fold::B16, Fold::B32, Fold::B64, Fold::B128];

    /// The number of bits.
    pub const fn bits(self) -> u32 {
        match self {
            Fold::B16 => 16,
            Fold::B32 => 32,
            Fold::B64 => 64,
            Fold::B128 => 128,
        }
    }

    /// How many bits it has by this number: the reverse of [`Fold::bits`].
    pub(in crate::hamming) fn of_bits(bits: u32) -> Option<Fold> {
        Fold::ALL.into_iter().find(|fold| fold.bits() == bits)
    }

    /// The fold that serves a distance best at a width, both in bits, if any is better than none.
    pub fn for_distance(bits: u32, max_distance: u32) -> Option<Fold> {
        let narrower = Fold::ALL.into_iter().filter(|fold| fold.bits() < bits);
        super::cheapest(narrower.map(Some).chain([None]), bits, max_distance, 1)
    }
}

/// The values of all fingerprints, folded to fewer bits, in the order of the fingerprints.
///
/// Folding is XOR of the two halves, repeated: bit `i` of a fold of `b` bits is the XOR of the bits
/// `i`, `i + b`, `i + 2b`, ... of the fingerprint. Each differing bit of two fingerprints changes one
/// bit of the fold, so folds are never further apart than the fingerprints are: a fold beyond
/// `max_distance` rules the fingerprint out. Every bit has its part in the fold, so neither constant
/// blocks nor biased bits spoil it, as they spoil a filter on some of the bits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Plane<'a> {
    /// Folds to 16 bits.
    B16(Cow<'a, [u16]>),
    /// Folds to 32 bits.
    B32(Cow<'a, [u32]>),
    /// Folds to 64 bits.
    B64(Cow<'a, [u64]>),
    /// Folds to 128 bits, the low word first.
    B128(Cow<'a, [[u64; 2]]>),
}

impl Plane<'static> {
    /// The plane of these fingerprints.
    ///
    /// # Complexity
    /// One pass; `fold.bits() / 8` bytes a fingerprint.
    pub fn of<const W: usize>(fold: Fold, fingerprints: &[[u64; W]]) -> Plane<'static> {
        match fold {
            Fold::B16 => Plane::B16(fingerprints.iter().map(fold_16).collect()),
            Fold::B32 => Plane::B32(fingerprints.iter().map(fold_32).collect()),
            Fold::B64 => Plane::B64(fingerprints.iter().map(fold_64).collect()),
            Fold::B128 => Plane::B128(fingerprints.iter().map(fold_128).collect()),
        }
    }
}

impl Plane<'_> {
    /// The number of fingerprints.
    pub fn len(&self) -> usize {
        match self {
            Plane::B16(values) => values.len(),
            Plane::B32(values) => values.len(),
            Plane::B64(values) => values.len(),
            Plane::B128(values) => values.len(),
        }
    }

    /// Whether there is no fingerprint.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bits of each fingerprint it keeps.
    pub fn fold(&self) -> Fold {
        match self {
            Plane::B16(_) => Fold::B16,
            Plane::B32(_) => Fold::B32,
            Plane::B64(_) => Fold::B64,
            Plane::B128(_) => Fold::B128,
        }
    }

    /// The same values, borrowed: those of the fingerprints in the range.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Plane<'_> {
        match self {
            Plane::B16(values) => Plane::B16(Cow::Borrowed(&values[range])),
            Plane::B32(values) => Plane::B32(Cow::Borrowed(&values[range])),
            Plane::B64(values) => Plane::B64(Cow::Borrowed(&values[range])),
            Plane::B128(values) => Plane::B128(Cow::Borrowed(&values[range])),
        }
    }
}

#[inline]
pub(super) fn fold_128<const W: usize>(fingerprint: &[u64; W]) -> [u64; 2] {
    let mut fold = [0; 2];
    for (w, word) in fingerprint.iter().enumerate() {
        fold[w % 2] ^= word;
    }
    fold
}

#[inline]
pub(super) fn fold_64<const W: usize>(fingerprint: &[u64; W]) -> u64 {
    fingerprint.iter().fold(0, |fold, word| fold ^ word)
}

#[inline]
pub(super) fn fold_32<const W: usize>(fingerprint: &[u64; W]) -> u32 {
    let fold = fold_64(fingerprint);
    (fold ^ fold >> 32) as u32
}

#[inline]
pub(super) fn fold_16<const W: usize>(fingerprint: &[u64; W]) -> u16 {
    let fold = fold_32(fingerprint);
    (fold ^ fold >> 16) as u16
}
