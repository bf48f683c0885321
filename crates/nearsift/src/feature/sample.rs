//! Document frequencies of a corpus while it is read: from a sample of bounded size, which the order
//! of the documents does not change.
//!
//! Every text belongs to a level by its key: level 0 with a chance of 1/2, level 1 with 1/4, and so on.
//! All levels are counted apart, and when there are too many texts the lowest level is dropped. What
//! is left is the sample of a fair coin, whatever came first.
//!
//! # References
//! Gibbons, 'Distinct sampling for highly-accurate answers to distinct values queries and event
//! reports', VLDB 2001, section 3.

use std::collections::HashSet;

use super::frequency::{DocumentFrequencies, SIXTEENTHS};

/// The document frequencies of a sample of the distinct texts of a corpus.
///
/// It holds at most 2^17 texts: some 20 MB and 2 MB for each level.
///
/// ```
/// use nearsift::feature::frequency::DocumentFrequencies;
/// use nearsift::feature::sample::FrequencySample;
/// let mut sample = FrequencySample::default();
/// for text in 0..1000u128 {
///     let common = 7 << 60;
///     sample.add(text, &[common, (text as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)]);
/// }
/// let table = sample.table(DocumentFrequencies::shipped());
/// assert!(table.idf_sixteenths(7 << 60) < 33);
/// ```
#[derive(Debug, Clone)]
pub struct FrequencySample {
    capacity: usize,
    /// Texts of lower levels are not counted.
    least: u32,
    keys: HashSet<u128>,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Default)]
struct Level {
    documents: u32,
    counts: Counts,
}

/// Counts up to 65,535, in two columns: the low bytes, which stay in the near cache because nearly all counts
/// are small, and the high ones. Both are empty until something is counted.
#[derive(Debug, Clone, Default)]
struct Counts {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl Counts {
    /// Counts each of these once more.
    fn add(&mut self, hashes: &[u64]) {
        self.low.resize(COUNTERS, 0);
        self.high.resize(COUNTERS, 0);
        let (low, high) = (&mut self.low[..COUNTERS], &mut self.high[..COUNTERS]);
        for &hash in hashes {
            let counter = (hash >> (64 - LOG2_COUNTERS)) as usize;
            let count = &mut low[counter];
            *count = count.wrapping_add(1);
            if *count == 0 {
                let high = &mut high[counter];
                // What is full stays so.
                *count = if *high == u8::MAX { u8::MAX } else { 0 };
                *high = high.saturating_add(1);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// All of them, or none when nothing was counted.
    fn iter(&self) -> impl Iterator<Item = u16> {
        self.low.iter().zip(&self.high).map(|(&low, &high)| u16::from_le_bytes([low, high]))
    }
}

const LOG2_COUNTERS: u32 = 20;
const COUNTERS: usize = 1 << LOG2_COUNTERS;
const CAPACITY: usize = 1 << 17;

/// The shipped table counts as this many documents beside those of the sample.
const PRIOR: u64 = 256;

/// 16 x [`PRIOR`] x 2^(-s / 16), rounded down, for each step s of a table: of the documents that the
/// shipped table stands for, how many sixteenths have such a feature.
const PRIOR_SIXTEENTHS: [u32; 16] =
    [3596, 2543, 1579, 980, 608, 378, 234, 145, 90, 56, 34, 21, 13, 8, 5, 3];

impl Default for FrequencySample {
    fn default() -> FrequencySample {
        FrequencySample::with_capacity(CAPACITY)
    }
}

impl FrequencySample {
    fn with_capacity(capacity: usize) -> FrequencySample {
        FrequencySample { capacity, least: 0, keys: HashSet::new(), levels: Vec::new() }
    }

    /// Whether the text with this key would be counted if it is new: what is not need not be handed
    /// over. It may be asked of an older state of the sample, which wants no less.
    pub fn wants(&self, text_key: u128) -> bool {
        level(text_key) >= self.least
    }

    /// The lowest level that is wanted, for [`FrequencySample::wants_at`].
    pub fn least_level(&self) -> u32 {
        self.least
    }

    /// As [`FrequencySample::wants`], of a sample whose lowest level was `least_level`.
    pub fn wants_at(least_level: u32, text_key: u128) -> bool {
        level(text_key) >= least_level
    }

    /// Counts a text, given as its key and the hashes of its distinct features, unless it was counted.
    pub fn add(&mut self, text_key: u128, hashes: &[u64]) {
        let level = level(text_key);
        if level < self.least || !self.keys.insert(text_key) {
            return;
        }
        if self.levels.len() <= level as usize {
            self.levels.resize_with(level as usize + 1, Level::default);
        }
        let own = &mut self.levels[level as usize];
        own.documents += 1;
        own.counts.add(hashes);
        while self.keys.len() > self.capacity {
            self.levels[self.least as usize] = Level::default();
            self.least += 1;
            let least = self.least;
            self.keys.retain(|&key| self::level(key) >= least);
        }
    }

    /// The number of texts in the sample.
    pub fn documents(&self) -> usize {
        self.keys.len()
    }

    /// The sample as bytes, for [`FrequencySample::from_bytes`]: the same for the same texts.
    ///
    /// # Complexity
    /// 16 bytes a text and 2 MB a level.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut keys: Vec<u128> = self.keys.iter().copied().collect();
        keys.sort_unstable();
        let mut bytes = Vec::new();
        let mut word = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
        word(self.capacity as u64);
        word(u64::from(self.least));
        word(keys.len() as u64);
        word(self.levels.len() as u64);
        for level in &self.levels {
            word(u64::from(level.documents));
            word(if level.counts.is_empty() { 0 } else { COUNTERS as u64 });
        }
        bytes.extend(keys.iter().flat_map(|key| key.to_le_bytes()));
        for level in self.levels.iter().filter(|level| !level.counts.is_empty()) {
            let start = bytes.len();
            // Room of a known length is filled by whole vectors.
            bytes.resize(start + 2 * COUNTERS, 0);
            let (places, _) = bytes[start..].as_chunks_mut::<2>();
            places
                .iter_mut()
                .zip(level.counts.iter())
                .for_each(|(place, count)| *place = count.to_le_bytes());
        }
        bytes
    }

    /// What [`FrequencySample::to_bytes`] wrote; `None` when the bytes are no such sample.
    pub fn from_bytes(bytes: &[u8]) -> Option<FrequencySample> {
        let mut rest = bytes;
        let mut word = || {
            let (first, more) = rest.split_first_chunk::<8>()?;
            rest = more;
            Some(u64::from_le_bytes(*first))
        };
        let capacity = usize::try_from(word()?).ok()?;
        let least = u32::try_from(word()?).ok()?;
        let (keys, levels) = (usize::try_from(word()?).ok()?, word()?);
        // A key has at most 65 levels.
        let sizes: Vec<(u32, usize)> = (0..levels.min(66))
            .map(|_| Some((u32::try_from(word()?).ok()?, usize::try_from(word()?).ok()?)))
            .collect::<Option<_>>()?;
        let (all_keys, mut rest) = rest.split_at_checked(keys.checked_mul(16)?)?;
        let (keys, _) = all_keys.as_chunks::<16>();
        let levels = sizes.into_iter().map(|(documents, counts)| {
            let own = rest.split_at_checked(counts.checked_mul(2)?)?;
            rest = own.1;
            let (counts, _) = own.0.as_chunks::<2>();
            let low = counts.iter().map(|count| count[0]).collect();
            let high = counts.iter().map(|count| count[1]).collect();
            Some(Level { documents, counts: Counts { low, high } })
        });
        let levels = levels.collect::<Option<Vec<Level>>>()?;
        let whole = levels.iter().all(|level| matches!(level.counts.low.len(), 0 | COUNTERS))
            && rest.is_empty();
        let keys = keys.iter().map(|key| u128::from_le_bytes(*key)).collect();
        whole.then_some(FrequencySample { capacity, least, keys, levels })
    }

    /// The table of the corpus: the counts of the sample, and the prior's rates for another 256
    /// documents, so that a corpus of a few documents does not take its own words for common ones.
    ///
    /// # Complexity
    /// O(2^20 x levels).
    pub fn table(&self, prior: &DocumentFrequencies) -> DocumentFrequencies {
        let documents: u64 = self.levels.iter().map(|l| u64::from(l.documents)).sum();
        let mut own = vec![0u32; COUNTERS];
        for level in &self.levels {
            own.iter_mut()
                .zip(level.counts.iter())
                .for_each(|(sum, count)| *sum += u32::from(count));
        }
        let counts: Vec<u32> = (0u64..)
            .zip(own)
            .map(|(counter, own)| {
                let idf = prior.idf_sixteenths(counter << (64 - LOG2_COUNTERS));
                let step = SIXTEENTHS.partition_point(|&sixteenths| sixteenths < idf);
                16 * own + PRIOR_SIXTEENTHS[step]
            })
            .collect();
        DocumentFrequencies::from_counts(16 * (documents + PRIOR), &counts, LOG2_COUNTERS)
    }
}

fn level(text_key: u128) -> u32 {
    // The key is a hash already; a key of zeros alone has the highest level.
    (text_key as u64 ^ (text_key >> 64) as u64).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fingerprint::votes::lane_hash;

    #[test]
    fn the_prior_is_its_formula() {
        for (step, sixteenths) in SIXTEENTHS.into_iter().enumerate() {
            let expect = (4096.0 * 2f64.powf(-f64::from(sixteenths) / 16.0)).floor() as u32;
            assert_eq!(PRIOR_SIXTEENTHS[step], expect, "{sixteenths}");
        }
    }

    #[test]
    fn without_documents_the_prior_is_left() {
        let shipped = DocumentFrequencies::shipped();
        let table = FrequencySample::default().table(shipped);
        let close = |hash: u64| {
            let (a, b) = (shipped.idf_sixteenths(hash), table.idf_sixteenths(hash));
            // One more document on either side, and the smallest rate is 3 of 4096.
            a.abs_diff(b) <= 11
        };
        assert!((0..1000u64).all(|i| close(lane_hash(i, 1))));
    }

    #[test]
    fn counts_end_at_the_largest() {
        let mut counts = Counts::default();
        let (often, once) = (7 << 44, u64::MAX);
        counts.add(&[once]);
        for expect in 1..=70_000u32 {
            counts.add(&[often]);
            if expect % 251 < 3 || expect > 65_500 {
                assert_eq!(counts.iter().nth(7), Some(expect.min(65_535) as u16));
            }
        }
        assert_eq!(counts.iter().map(u32::from).sum::<u32>(), 65_535 + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_order_of_documents_does_not_matter(
            texts in prop::collection::vec(0u64..60, 0..120),
            capacity in 1usize..40,
            turn in any::<prop::sample::Index>(),
        ) {
            let of = |texts: &[u64]| {
                let mut sample = FrequencySample::with_capacity(capacity);
                for &text in texts {
                    let key = u128::from(lane_hash(text, 1));
                    sample.add(key, &[lane_hash(text % 7, 2), lane_hash(text, 3)]);
                }
                prop_assert!(sample.documents() <= capacity);
                Ok(sample)
            };
            let mut turned = texts.clone();
            if !texts.is_empty() {
                turned.rotate_left(turn.index(texts.len()));
            }
            let (a, b) = (of(&texts)?, of(&turned)?);
            prop_assert_eq!(a.least_level(), b.least_level());
            let shipped = DocumentFrequencies::shipped();
            prop_assert_eq!(a.table(shipped), b.table(shipped));

            // Laid down and taken up again it goes on as it would have.
            let written = a.to_bytes();
            let mut again = FrequencySample::from_bytes(&written).expect("a sample");
            prop_assert_eq!(&again.to_bytes(), &written);
            prop_assert!(FrequencySample::from_bytes(&written[1..]).is_none());
            prop_assert!(FrequencySample::from_bytes(&[&written[..], &[0]].concat()).is_none());
            let mut on = a.clone();
            for text in 60..90 {
                let key = u128::from(lane_hash(text, 1));
                on.add(key, &[lane_hash(text, 3)]);
                again.add(key, &[lane_hash(text, 3)]);
            }
            prop_assert_eq!(on.table(shipped), again.table(shipped));

            // What is left are the distinct texts of the levels that fit.
            let mut distinct = texts;
            distinct.sort_unstable();
            distinct.dedup();
            let fit = |least: u32| {
                distinct.iter().filter(|&&t| level(u128::from(lane_hash(t, 1))) >= least).count()
            };
            let least = (0..).find(|&least| fit(least) <= capacity).unwrap_or(0);
            prop_assert_eq!((a.least_level(), a.documents()), (least, fit(least)));
        }
    }
}
