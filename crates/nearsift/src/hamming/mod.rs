//! Distances between fingerprints, and how many neighbours come by chance.
//!
//! The Hamming distance of two fingerprints is the number of bit positions in which they differ.
//! [`kernels`] holds the code that compares many at once; [`scan`] finds the neighbours of a query by
//! comparing it with all, [`mod@index`] by tables; [`planner`] chooses how; [`crate::join`] finds all near
//! pairs.

mod answer;
pub mod index;
pub mod kernels;
pub mod planner;
pub mod scan;

pub use answer::{Budget, Match, Outcome, Work};

/// The Hamming distance of two 64-bit fingerprints, in bits, from 0 to 64.
///
/// ```
/// assert_eq!(nearsift::hamming::distance64(0b1011, 0b0010), 2);
/// ```
#[inline]
pub const fn distance64(a: u64, b: u64) -> u32 {
    (a ^ b).count_ones()
}

/// The Hamming distance, in bits, of two fingerprints of equal width, given as words.
///
/// ```
/// assert_eq!(nearsift::hamming::distance(&[1, 0], &[0, 7]), 4);
/// ```
///
/// # Panics
/// When the two have different numbers of words: they are of two widths and cannot be compared.
#[inline]
pub fn distance(a: &[u64], b: &[u64]) -> u32 {
    assert_eq!(a.len(), b.len(), "fingerprints of two widths cannot be compared");
    a.iter().zip(b).map(|(a, b)| distance64(*a, *b)).sum()
}

/// The mean number of unrelated fingerprints that lie within `max_distance` (inclusive) of one,
/// when `n` fingerprints of `bits` bits are spread evenly: `n * V(max_distance) / 2^bits`, where
/// `V(k)` is the number of values within distance `k` of a given one.
///
/// Above [`CHANCE_WARNING`] a near fingerprint is weak evidence that two documents are alike.
///
/// ```
/// use nearsift::hamming::{CHANCE_WARNING, chance_neighbours};
/// // The web of 2007: 2^33 pages at distance 3 of 64 bits are safe, at distance 8 they are not.
/// assert!(chance_neighbours(1 << 33, 64, 3) < CHANCE_WARNING);
/// assert!(chance_neighbours(1 << 33, 64, 8) > 2.0);
/// ```
///
/// # Complexity
/// O(max_distance).
///
/// # References
/// Manku, Jain and Das Sarma, WWW 2007, section 4.1, choose 64 bits and distance 3 for 2^33 pages.
pub fn chance_neighbours(n: u64, bits: u32, max_distance: u32) -> f64 {
    // C(bits, i) / 2^bits, one factor at a time: 2^-256 is still a normal number.
    let mut share = (0..bits).fold(1.0, |p: f64, _| p / 2.0);
    let mut ball = 0.0;
    for i in 0..=max_distance.min(bits) {
        ball += share;
        share *= f64::from(bits - i) / f64::from(i + 1);
    }
    n as f64 * ball
}

/// The mean number of chance neighbours above which a user should be warned: one document in ten
/// then has a neighbour that means nothing.
pub const CHANCE_WARNING: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_neighbours_of_known_settings() {
        let check = |n: u64, bits: u32, k: u32, expect: f64| {
            let got = chance_neighbours(n, bits, k);
            assert!((got / expect - 1.0).abs() < 1e-9, "n {n} bits {bits} k {k}: {got}");
        };
        check(1 << 32, 32, 0, 1.0);
        // V(3) = 1 + 64 + 2016 + 41664.
        check(1_000_000, 64, 3, 1e6 * 43_745.0 / 2f64.powi(64));
        check(1000, 64, 64, 1000.0);
        check(7, 256, 256, 7.0);
        check(7, 256, 1, 7.0 * 257.0 / 2f64.powi(256));
        assert_eq!(chance_neighbours(0, 64, 3), 0.0);
        assert!((0.099..0.101).contains(&chance_neighbours(360_000_000, 64, 8)));
    }

    #[test]
    fn distance_counts_every_word() {
        assert_eq!(distance(&[], &[]), 0);
        assert_eq!(distance(&[0, 0, 0, 0], &[u64::MAX; 4]), 256);
        assert_eq!(distance(&[1, 2], &[1, 3]), distance64(2, 3));
    }
}
