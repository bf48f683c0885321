//! SimHash fingerprints: the value, a column of them, and the votes that make one.
//!
//! # References
//! Charikar, 'Similarity estimation techniques from rounding algorithms', STOC 2002, section 3;
//! Manku, Jain and Das Sarma, 'Detecting near-duplicates for web crawling', WWW 2007, section 2.

pub mod hash;
pub mod votes;

use std::fmt;
use std::str::FromStr;

use crate::pages;

/// The width of a fingerprint in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bits {
    /// 32 bits.
    B32,
    /// 64 bits: the classic width.
    B64,
    /// 128 bits.
    B128,
    /// 256 bits.
    B256,
}

impl Bits {
    /// All widths, narrowest first.
    pub const ALL: [Bits; 4] = [Bits::B32, Bits::B64, Bits::B128, Bits::B256];

    /// The width as a number of bits.
    pub const fn count(self) -> u32 {
        match self {
            Bits::B32 => 32,
            Bits::B64 => 64,
            Bits::B128 => 128,
            Bits::B256 => 256,
        }
    }

    /// The 64-bit words that hold a fingerprint of this width: 1, 1, 2 or 4.
    pub const fn words(self) -> usize {
        match self {
            Bits::B32 | Bits::B64 => 1,
            Bits::B128 => 2,
            Bits::B256 => 4,
        }
    }

    /// The width of a number of bits, if it is one of 32, 64, 128 and 256.
    pub const fn from_count(count: u32) -> Option<Bits> {
        match count {
            32 => Some(Bits::B32),
            64 => Some(Bits::B64),
            128 => Some(Bits::B128),
            256 => Some(Bits::B256),
            _ => None,
        }
    }
}

/// A SimHash value of 32, 64, 128 or 256 bits.
///
/// It prints as lower-case hex digits, most significant first, bits / 4 of them.
///
/// ```
/// use nearsift::fingerprint::Fingerprint;
/// let a: Fingerprint = "000023b259a66fe7".parse().unwrap();
/// assert_eq!(a, Fingerprint::from_u64(0x0000_23b2_59a6_6fe7));
/// assert_eq!(a.to_string(), "000023b259a66fe7");
/// assert_eq!(a.distance(&Fingerprint::from_u64(0x0000_23b2_59a6_6fe0)), 3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    bits: Bits,
    // The lowest 64 bits first; words past the width are 0.
    words: [u64; 4],
}

impl Fingerprint {
    /// A fingerprint of a width from its words, lowest 64 bits first. Bits past the width are cut off.
    ///
    /// # Panics
    /// When `words` is shorter than [`Bits::words`].
    pub fn from_words(bits: Bits, words: &[u64]) -> Fingerprint {
        let mut own = [0; 4];
        own[..bits.words()].copy_from_slice(&words[..bits.words()]);
        if bits == Bits::B32 {
            own[0] &= 0xffff_ffff;
        }
        Fingerprint { bits, words: own }
    }

    /// A 64-bit fingerprint.
    pub const fn from_u64(value: u64) -> Fingerprint {
        Fingerprint { bits: Bits::B64, words: [value, 0, 0, 0] }
    }

    /// The width.
    pub const fn bits(&self) -> Bits {
        self.bits
    }

    /// The words, lowest 64 bits first: [`Bits::words`] of them.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.bits.words()]
    }

    /// The Hamming distance in bits: in how many positions the two differ.
    ///
    /// # Panics
    /// When the widths differ: fingerprints of two widths come from two recipes, and comparing them
    /// means nothing.
    pub fn distance(&self, other: &Fingerprint) -> u32 {
        assert_eq!(self.bits, other.bits, "fingerprints of two widths cannot be compared");
        self.words.iter().zip(&other.words).map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == Bits::B32 {
            return write!(f, "{:08x}", self.words[0]);
        }
        self.words().iter().rev().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

/// Why a string is not a fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a fingerprint: expected 8, 16, 32 or 64 hex digits (32, 64, 128 or 256 bits)"
)]
pub struct ParseFingerprintError(String);

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(hex: &str) -> Result<Fingerprint, ParseFingerprintError> {
        let error = || ParseFingerprintError(hex.chars().take(80).collect());
        let digits = u32::try_from(hex.len()).map_err(|_| error())?;
        let bits = digits.checked_mul(4).and_then(Bits::from_count).ok_or_else(error)?;
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut words = [0; 4];
        for (word, digits) in words.iter_mut().zip(hex.as_bytes().rchunks(16)) {
            let digits = std::str::from_utf8(digits).map_err(|_| error())?;
            *word = u64::from_str_radix(digits, 16).map_err(|_| error())?;
        }
        Ok(Fingerprint { bits, words })
    }
}

/// Many fingerprints of one width, stored one after the other.
///
/// ```
/// use nearsift::fingerprint::{Bits, Fingerprint, Fingerprints};
/// let mut column = Fingerprints::new(Bits::B64);
/// column.push(&Fingerprint::from_u64(7));
/// assert_eq!((column.len(), column.get(0)), (1, Fingerprint::from_u64(7)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprints {
    bits: Bits,
    words: Vec<u64>,
}

impl Fingerprints {
    /// An empty column.
    pub fn new(bits: Bits) -> Fingerprints {
        Fingerprints { bits, words: Vec::new() }
    }

    /// A column of the given words: [`Bits::words`] for each fingerprint, lowest 64 bits first.
    ///
    /// # Panics
    /// When the number of words is not a multiple of [`Bits::words`].
    pub fn from_words(bits: Bits, words: Vec<u64>) -> Fingerprints {
        assert_eq!(words.len() % bits.words(), 0, "whole fingerprints of {} words", bits.words());
        Fingerprints { bits, words }
    }

    /// The width.
    pub fn bits(&self) -> Bits {
        self.bits
    }

    /// The number of fingerprints.
    pub fn len(&self) -> usize {
        self.words.len() / self.bits.words()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// All words: [`Bits::words`] for each fingerprint.
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }

    /// The words of fingerprint `index`.
    #[inline]
    pub fn words_of(&self, index: usize) -> &[u64] {
        let stride = self.bits.words();
        &self.words[index * stride..(index + 1) * stride]
    }

    /// Fingerprint `index`.
    pub fn get(&self, index: usize) -> Fingerprint {
        Fingerprint::from_words(self.bits, self.words_of(index))
    }

    /// Appends one.
    ///
    /// # Panics
    /// When the width differs from the column's.
    pub fn push(&mut self, fingerprint: &Fingerprint) {
        assert_eq!(self.bits, fingerprint.bits, "one column holds one width");
        pages::reserve(&mut self.words, self.bits.words());
        self.words.extend_from_slice(fingerprint.words());
    }

    /// Appends those of another column.
    ///
    /// # Panics
    /// When the width differs.
    pub fn append(&mut self, mut other: Fingerprints) {
        assert_eq!(self.bits, other.bits, "one column holds one width");
        pages::reserve(&mut self.words, other.words.len());
        self.words.append(&mut other.words);
    }

    /// The Hamming distance in bits between two of them.
    #[inline]
    pub fn distance(&self, a: usize, b: usize) -> u32 {
        self.words_of(a).iter().zip(self.words_of(b)).map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_at_every_width() {
        for bits in Bits::ALL {
            let words: Vec<u64> =
                (1..=4u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let fingerprint = Fingerprint::from_words(bits, &words);
            let hex = fingerprint.to_string();
            assert_eq!(hex.len() as u32, bits.count() / 4);
            assert_eq!(hex.parse(), Ok(fingerprint));
        }
    }

    #[test]
    fn what_is_not_a_fingerprint_is_refused() {
        for bad in [
            "",
            "0",
            "xyz",
            "00000000000000g0",
            "+000000000000000",
            "é23456é",
            "0x23456789abcdef01",
        ] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
