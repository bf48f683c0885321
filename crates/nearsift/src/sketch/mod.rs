//! The dual sketch: 64 bytes that tell how alike two documents are.
//!
//! One half is a 256-bit SimHash, whose Hamming distance estimates the angle between two documents'
//! weighted features; the other is 64 minwise values of four bits, whose agreement estimates their
//! weighted Jaccard similarity. The two err in different ways, and their mean is better than either.
//!
//! ```
//! use nearsift::sketch::Sketch;
//! let a = Sketch::from_words([7, 0, 0, 0, 0x4321, 0, 0, 0]);
//! let b = Sketch::from_words([0, 0, 0, 0, 0x4321, 0, 0, 0xf]);
//! assert_eq!((a.distance(&b), a.equal_values(&b)), (3, 63));
//! assert_eq!(a.score(&a), nearsift::sketch::Score::MAX);
//! ```
//!
//! # References
//! Charikar, 'Similarity estimation techniques from rounding algorithms', STOC 2002, section 3;
//! Li and König, 'b-bit minwise hashing', WWW 2010; Dahlgaard, Knudsen and Thorup, 'Fast similarity
//! sketching', FOCS 2017.

pub mod index;
pub mod join;
pub mod minwise;

use std::fmt;
use std::str::FromStr;

/// The SimHash half, in bits.
pub const BITS: u32 = 256;

/// The number of minwise values in the other half.
pub const VALUES: u32 = 64;

/// 64-bit words of a sketch.
pub const WORDS: usize = 8;

/// The number of candidate keys of a document.
pub const KEYS: usize = 32;

/// The least score of near duplicates whose texts are not looked at, unless another is asked.
pub const MIN_SCORE: f64 = 0.4;

/// What two documents must share one of to be compared, when there are too many to compare all: key
/// `i` of one can only equal key `i` of another. Each is a hash of two whole minwise values.
pub type Keys = [u32; KEYS];

/// A dual sketch: a 256-bit SimHash and 64 minwise values of four bits.
///
/// It prints as 128 lower-case hex digits: the SimHash as a fingerprint prints, then the minwise
/// values from the last to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sketch {
    // Four words of the SimHash, lowest bits first; four of minwise values: value i is in bits
    // 4 (i mod 16) to 4 (i mod 16) + 3 of word 4 + i / 16.
    words: [u64; WORDS],
}

/// How alike two sketches say that two documents are, in 256ths from 0 to 256:
/// `max(0, 128 - distance) + 2 x equal minwise values`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Score(u16);

impl Score {
    /// That of two equal sketches.
    pub const MAX: Score = Score(256);

    /// The least score that is at least `value`, which is from 0 to 1.
    ///
    /// ```
    /// use nearsift::sketch::Score;
    /// assert_eq!(Score::at_least(0.5).value(), 0.5);
    /// assert!(Score::at_least(0.4).value() >= 0.4);
    /// ```
    pub fn at_least(value: f64) -> Score {
        Score((value.clamp(0.0, 1.0) * 256.0).ceil() as u16)
    }

    /// From a distance and a number of equal minwise values.
    pub const fn of(distance: u32, equal_values: u32) -> Score {
        Score((128u32.saturating_sub(distance) + 2 * equal_values) as u16)
    }

    /// From 256ths, which are at most 256.
    pub fn from_points(points: u16) -> Option<Score> {
        Some(Score(points)).filter(|score| *score <= Score::MAX)
    }

    /// From 0 to 1.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 256.0
    }

    /// In 256ths.
    pub const fn points(self) -> u16 {
        self.0
    }
}

impl Sketch {
    /// A sketch of its words: four of the SimHash, lowest bits first, then four of minwise values.
    pub const fn from_words(words: [u64; WORDS]) -> Sketch {
        Sketch { words }
    }

    /// Its words.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The Hamming distance of the SimHash halves, from 0 to 256.
    #[inline(always)]
    pub fn distance(&self, other: &Sketch) -> u32 {
        let mut distance = 0;
        let mut i = 0;
        while i < WORDS / 2 {
            distance += (self.words[i] ^ other.words[i]).count_ones();
            i += 1;
        }
        distance
    }

    /// How many of the 64 minwise values are equal.
    #[inline(always)]
    pub fn equal_values(&self, other: &Sketch) -> u32 {
        let mut differing = 0;
        let mut i = WORDS / 2;
        while i < WORDS {
            let bits = self.words[i] ^ other.words[i];
            // A value is four bits.
            let pairs = bits | bits >> 1;
            differing += ((pairs | pairs >> 2) & 0x1111_1111_1111_1111).count_ones();
            i += 1;
        }
        VALUES - differing
    }

    /// How alike the two are: half the share of bits beyond chance that agree, and half the share of
    /// minwise values that do.
    ///
    /// It becomes part of the loop that calls it however the crates are compiled, and of its instruction set: a call in such
    /// a loop would wait for each sketch before the next one.
    #[inline(always)]
    pub fn score(&self, other: &Sketch) -> Score {
        Score::of(self.distance(other), self.equal_values(other))
    }
}

impl fmt::Display for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = |f: &mut fmt::Formatter<'_>, words: &[u64]| {
            words.iter().rev().try_for_each(|word| write!(f, "{word:016x}"))
        };
        half(f, &self.words[..4])?;
        half(f, &self.words[4..])
    }
}

/// Why a string is not a sketch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a sketch: expected 128 hex digits")]
pub struct ParseSketchError(String);

impl FromStr for Sketch {
    type Err = ParseSketchError;

    fn from_str(hex: &str) -> Result<Sketch, ParseSketchError> {
        let error = || ParseSketchError(hex.chars().take(140).collect());
        if hex.len() != 16 * WORDS || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut words = [0; WORDS];
        let (simhash, minwise) = words.split_at_mut(4);
        let places = simhash.iter_mut().rev().chain(minwise.iter_mut().rev());
        for (word, digits) in places.zip(hex.as_bytes().chunks(16)) {
            let digits = std::str::from_utf8(digits).map_err(|_| error())?;
            *word = u64::from_str_radix(digits, 16).map_err(|_| error())?;
        }
        Ok(Sketch { words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn measures_equal_their_definitions(a: [u64; 8], b: [u64; 8], same in 0u32..4) {
            // Random words agree by chance only: some are made equal.
            let b: [u64; 8] = std::array::from_fn(|i| if (i as u32) < 2 * same { a[i] } else { b[i] });
            let (x, y) = (Sketch::from_words(a), Sketch::from_words(b));
            let bit = |words: [u64; 8], i: usize| words[i / 64] >> (i % 64) & 1;
            let value = |words: [u64; 8], i: usize| words[4 + i / 16] >> (4 * (i % 16)) & 15;
            let distance = (0..256).filter(|&i| bit(a, i) != bit(b, i)).count() as u32;
            let equal = (0..64).filter(|&i| value(a, i) == value(b, i)).count() as u32;
            prop_assert_eq!(x.distance(&y), distance);
            prop_assert_eq!(x.equal_values(&y), equal);
            let score = 0.5 * (1.0 - 2.0 * f64::from(distance) / 256.0).max(0.0)
                + 0.5 * f64::from(equal) / 64.0;
            prop_assert_eq!(x.score(&y).value(), score);
            prop_assert_eq!(x.to_string().parse(), Ok(x));
        }
    }

    #[test]
    fn what_is_not_a_sketch_is_refused() {
        let good = "0".repeat(128);
        assert!(good.parse::<Sketch>().is_ok());
        for bad in ["", "0", &good[1..], &format!("{good}0"), &format!("g{}", &good[1..])] {
            assert!(bad.parse::<Sketch>().is_err(), "{bad}");
        }
    }
}
