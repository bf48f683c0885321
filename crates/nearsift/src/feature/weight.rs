//! Weights of features, as integers.
//!
//! A persisted fingerprint must not depend on a machine's floating point library, so every weight is
//! computed in integers: logarithms in sixteenths of a power of two, document frequencies as counts.

use std::fmt;
use std::str::FromStr;

/// How a feature's weight follows from its count in the document and from its rarity.
///
/// With tf the count, and idf = log2((N + 1) / (df + 1)) for a corpus of N documents of which df
/// contain the feature (for shipped and given tables: the table's value):
///
/// | name | weight |
/// |---|---|
/// | `none` | 1 for each distinct feature |
/// | `tf` | tf |
/// | `log-tf` | 1 + log2 tf |
/// | `tf-idf` | tf x idf |
/// | `log-tf-idf` | (1 + log2 tf) x idf |
/// | `log-tf-root-idf` | (1 + log2 tf) x the square root of idf |
/// | `levels` | the level 1 to 5 that a given list has for the feature, 1 where it has none |
/// | `entropy` | (1 + log2 tf) x g, where g = 1 + sum over documents of p log p / log N, p = tf / (all occurrences) |
///
/// # References
/// Salton and Buckley, 'Term-weighting approaches in automatic text retrieval', 1988, table 1;
/// Dumais, 'Improving the retrieval of information from external sources', 1991, for `entropy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weighting {
    /// 1 for each distinct feature.
    None,
    /// The count in the document.
    Tf,
    /// 1 + log2 of the count.
    LogTf,
    /// Count x rarity.
    TfIdf,
    /// (1 + log2 count) x rarity.
    LogTfIdf,
    /// (1 + log2 count) x the square root of the rarity.
    LogTfRootIdf,
    /// A given level from 1 to 5.
    Levels,
    /// (1 + log2 count) x entropy weight over the corpus.
    Entropy,
}

impl Weighting {
    /// All weightings with their names.
    pub const ALL: [(Weighting, &'static str); 8] = [
        (Weighting::None, "none"),
        (Weighting::Tf, "tf"),
        (Weighting::LogTf, "log-tf"),
        (Weighting::TfIdf, "tf-idf"),
        (Weighting::LogTfIdf, "log-tf-idf"),
        (Weighting::LogTfRootIdf, "log-tf-root-idf"),
        (Weighting::Levels, "levels"),
        (Weighting::Entropy, "entropy"),
    ];

    /// Whether the weight needs to know how rare a feature is.
    pub fn needs_rarity(self) -> bool {
        matches!(
            self,
            Weighting::TfIdf | Weighting::LogTfIdf | Weighting::LogTfRootIdf | Weighting::Entropy
        )
    }

    /// The unscaled weight of a feature that occurs `count` times, with its rarity in sixteenths (for
    /// [`Weighting::Levels`] the level itself). It is at least 1.
    #[inline]
    pub fn weight(self, count: u32, rarity: u32) -> u64 {
        let rarity = u64::from(rarity);
        let log_count = 16 + u64::from(log2_sixteenths(u64::from(count)));
        let weight = match self {
            Weighting::None => 1,
            Weighting::Tf => u64::from(count),
            Weighting::LogTf => log_count,
            Weighting::TfIdf => u64::from(count) * rarity,
            Weighting::LogTfIdf | Weighting::Entropy => (log_count * rarity).div_ceil(16),
            // In eighths: the root of a rarity in sixteenths is in quarters, and that of four times as
            // much in eighths.
            Weighting::LogTfRootIdf => (log_count * (4 * rarity).isqrt()).div_ceil(16),
            Weighting::Levels => rarity,
        };
        weight.max(1)
    }
}

impl fmt::Display for Weighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Weighting::ALL.iter().find(|(w, _)| w == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Weighting {
    type Err = String;

    fn from_str(name: &str) -> Result<Weighting, String> {
        Weighting::ALL.iter().find(|(_, n)| *n == name).map(|(w, _)| *w).ok_or_else(|| {
            let names: Vec<&str> = Weighting::ALL.iter().map(|(_, n)| *n).collect();
            format!("'{name}' is not a weighting: expected one of {}", names.join(", "))
        })
    }
}

/// floor(16 log2 n), in integers; 0 for 0.
///
/// # Complexity
/// O(1): four squarings, or below 256 a look into a table.
#[inline]
pub fn log2_sixteenths(n: u64) -> u32 {
    /// Nearly all counts are small.
    static SMALL: [u8; 256] = {
        let mut table = [0; 256];
        let mut n = 0;
        while n < table.len() {
            table[n] = by_squaring(n as u64) as u8;
            n += 1;
        }
        table
    };
    let small = usize::try_from(n).ok().and_then(|n| SMALL.get(n));
    small.map_or_else(|| by_squaring(n), |&small| small.into())
}

const fn by_squaring(n: u64) -> u32 {
    if n < 2 {
        return 0;
    }
    let whole = n.ilog2();
    // n / 2^whole as a fixed-point number in [1, 2) with 63 fraction bits; each squaring yields the
    // next binary digit of its logarithm.
    let mut mantissa = n << (63 - whole);
    let mut fraction = 0;
    let mut digit = 0;
    while digit < 4 {
        let square = mantissa as u128 * mantissa as u128;
        fraction <<= 1;
        digit += 1;
        if square >> 127 == 1 {
            fraction |= 1;
            mantissa = (square >> 64) as u64;
        } else {
            mantissa = (square >> 63) as u64;
        }
    }
    whole * 16 + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_equal_their_definition() {
        // floor(16 log2 n) = floor(log2 n^16): exact in integers while n^16 fits.
        for n in 1..256u128 {
            assert_eq!(log2_sixteenths(n as u64), n.pow(16).ilog2(), "{n}");
        }
        for power in 0..64 {
            assert_eq!(log2_sixteenths(1 << power), power * 16);
        }
        for n in [3u64, 1000, 1_000_003, u64::MAX / 3, u64::MAX] {
            let float = ((n as f64).log2() * 16.0).floor();
            assert!((f64::from(log2_sixteenths(n)) - float).abs() <= 1.0, "{n}");
        }
    }

    #[test]
    fn weights() {
        let check = |name: &str, count, rarity, expect| {
            let weighting: Weighting = name.parse().expect("a weighting");
            assert_eq!(weighting.to_string(), name);
            assert_eq!(weighting.weight(count, rarity), expect, "{name} {count} {rarity}");
        };
        check("none", 9, 50, 1);
        check("tf", 9, 50, 9);
        check("log-tf", 1, 50, 16);
        check("log-tf", 8, 50, 64);
        check("tf-idf", 3, 50, 150);
        check("tf-idf", 3, 0, 1);
        check("log-tf-idf", 4, 32, 96);
        check("log-tf-root-idf", 1, 64, 16);
        check("log-tf-root-idf", 4, 64, 48);
        check("log-tf-root-idf", 1, 0, 1);
        check("levels", 7, 5, 5);
        check("entropy", 1, 16, 16);
        assert!("tfidf".parse::<Weighting>().unwrap_err().contains("tf-idf"));
    }
}
