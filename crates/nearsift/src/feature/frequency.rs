//! How rare a hashed feature is, from a compact table: the shipped one, or one of a corpus.
//!
//! A table has 2^12 to 2^22 entries of four bits, indexed by the top bits of a feature's hash. An
//! entry is a step of 11/16 bits of inverse document frequency, so the scale ends at 165/16: what is
//! in fewer than one document in 1,270 counts as never seen. Finer steps gain nothing; a longer scale
//! gains on long texts what it loses on short ones, whose rarest features are largely slips of the
//! pen, and it fills the table.
//!
//! Features that share an entry share the smallest of their inverse document frequencies: a rare
//! feature may be taken for a more common one, never the other way round.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use xxhash_rust::xxh3::Xxh3Default;

use super::weight::log2_sixteenths;

/// The inverse document frequencies of hashed features.
///
/// ```
/// use nearsift::feature::frequency::DocumentFrequencies;
/// use nearsift::feature::hash_token;
/// let table = DocumentFrequencies::shipped();
/// let idf = |feature| table.idf_sixteenths(hash_token(feature));
/// assert!(idf("我们") < idf("饕餮"));
/// assert!(idf("the") < idf("zebra"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFrequencies {
    log2_entries: u32,
    /// Two entries a byte, the even one in the low half.
    steps: Box<[u8]>,
    digest: u64,
}

/// The logarithms of the smallest and of the largest number of entries.
const LOG2_ENTRIES: RangeInclusive<u32> = 12..=22;

/// One step in sixteenths of a bit.
const STEP: u32 = 11;

/// What each step stands for. The first is not 0: a feature of every document weighs little, not
/// nothing.
pub(crate) const SIXTEENTHS: [u8; 16] =
    [3, 11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121, 132, 143, 154, 165];

const MAGIC: [u8; 4] = *b"NSDF";
const VERSION: u32 = 1;
const HEADER: usize = 16;

/// Why bytes are no table of document frequencies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrequencyTableError {
    /// They begin with something else.
    #[error("not a table of document frequencies: it must begin with 'NSDF' and version {VERSION}")]
    Kind,
    /// The number of entries is out of range.
    #[error("a table of document frequencies has 2^12 to 2^22 entries, and this one says 2^{0}")]
    Entries(u32),
    /// There are more or fewer bytes than the number of entries needs.
    #[error("a table of 2^{log2_entries} entries has {expected} bytes, and there are {found}")]
    Length {
        /// The logarithm of the number of entries, as the header has it.
        log2_entries: u32,
        /// The bytes of such a table.
        expected: usize,
        /// The bytes at hand.
        found: usize,
    },
}

impl DocumentFrequencies {
    /// The table that is part of the program. `docs/understand/rarity.md` says from which texts it was counted.
    pub fn shipped() -> &'static DocumentFrequencies {
        static SHIPPED: LazyLock<DocumentFrequencies> = LazyLock::new(|| {
            DocumentFrequencies::from_bytes(include_bytes!("../../data/rarity.bin"))
                .expect("the shipped table is whole")
        });
        &SHIPPED
    }

    /// The inverse document frequency of a feature, log2((N + 1) / (df + 1)), in sixteenths of a bit:
    /// 3 for a feature of nearly every document to 165 for one that is rare or was never seen.
    ///
    /// # Complexity
    /// O(1): one load from the table.
    #[inline]
    pub fn idf_sixteenths(&self, hash: u64) -> u8 {
        SIXTEENTHS[usize::from(self.step(hash))]
    }

    /// The place of that among the [`SIXTEENTHS`].
    #[inline]
    pub(crate) fn step(&self, hash: u64) -> u8 {
        let entry = hash >> (64 - self.log2_entries);
        let pair = self.steps[(entry >> 1) as usize];
        pair >> (4 * (entry & 1)) & 15
    }

    /// The logarithm of the number of entries.
    pub fn log2_entries(&self) -> u32 {
        self.log2_entries
    }

    /// How results name the table that they rest on: `shipped`, or `corpus:` and its [digest](Self::digest) in hexadecimal.
    pub fn name(&self) -> String {
        match self.digest == DocumentFrequencies::shipped().digest {
            true => "shipped".to_owned(),
            false => format!("corpus:{:016x}", self.digest),
        }
    }

    /// What identifies the table: the XXH3-64 of its written form.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// A table from counts of documents by the top bits of the features' hashes: `counts[i]` is that
    /// of the hashes whose top log2(`counts.len()`) bits are `i`. Where there are more counts than
    /// entries, an entry stands for the largest of its counts.
    ///
    /// # Panics
    /// When `log2_entries` is not from 12 to 22, or `counts` has not 2^k items with k at least
    /// `log2_entries`.
    ///
    /// # Complexity
    /// O(counts).
    pub fn from_counts(documents: u64, counts: &[u32], log2_entries: u32) -> DocumentFrequencies {
        assert!(LOG2_ENTRIES.contains(&log2_entries), "a table has 2^12 to 2^22 entries");
        let entries = 1 << log2_entries;
        assert!(
            counts.len().is_power_of_two() && counts.len() >= entries,
            "the number of counts must be a power of two, and not below that of entries"
        );
        let step = |counts: &[u32]| {
            let frequency = u64::from(counts.iter().copied().max().unwrap_or(0)).min(documents);
            let idf = log2_sixteenths(documents + 1) - log2_sixteenths(frequency + 1);
            // Never seen is rarest, however small the corpus.
            if frequency == 0 { 15 } else { ((idf + STEP / 2) / STEP).min(15) as u8 }
        };
        let per_entry = counts.len() / entries;
        let steps = counts
            .chunks_exact(2 * per_entry)
            .map(|pair| step(&pair[..per_entry]) | step(&pair[per_entry..]) << 4)
            .collect();
        DocumentFrequencies::new(log2_entries, steps)
    }

    fn new(log2_entries: u32, steps: Box<[u8]>) -> DocumentFrequencies {
        let mut hasher = Xxh3Default::new();
        hasher.update(&header(log2_entries));
        hasher.update(&steps);
        DocumentFrequencies { log2_entries, steps, digest: hasher.digest() }
    }

    /// Reads the form that [`to_bytes`](DocumentFrequencies::to_bytes) writes.
    ///
    /// # Errors
    /// The bytes begin with something else, or are too few or too many for the number of entries.
    pub fn from_bytes(bytes: &[u8]) -> Result<DocumentFrequencies, FrequencyTableError> {
        let log2_entries = match bytes.get(..HEADER) {
            Some(head) if head[..4] == MAGIC && head[4..8] == VERSION.to_le_bytes() => {
                u32::from_le_bytes([head[8], head[9], head[10], head[11]])
            }
            _ => return Err(FrequencyTableError::Kind),
        };
        if !LOG2_ENTRIES.contains(&log2_entries) {
            return Err(FrequencyTableError::Entries(log2_entries));
        }
        let expected = HEADER + (1 << (log2_entries - 1));
        let found = bytes.len();
        if found != expected {
            return Err(FrequencyTableError::Length { log2_entries, expected, found });
        }
        Ok(DocumentFrequencies::new(log2_entries, bytes[HEADER..].into()))
    }

    /// The written form: `NSDF`, the version and the logarithm of the number of entries as
    /// little-endian `u32`, four zero bytes, then the steps, two a byte, the even entry in the low
    /// half.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&header(self.log2_entries)[..], &self.steps].concat()
    }
}

fn header(log2_entries: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&VERSION.to_le_bytes());
    header[8..12].copy_from_slice(&log2_entries.to_le_bytes());
    header
}

/// Counts in how many documents of a corpus each feature occurs.
///
/// Features share 2^22 counters by the top bits of their hash, so memory does not grow with the
/// corpus (16 MB). Counts are integers: the order of documents does not matter, and parts of a corpus
/// can be counted apart and [merged](FrequencyCounter::merge).
///
/// Count every text once: duplicates would make their own features look common.
#[derive(Debug, Clone)]
pub struct FrequencyCounter {
    documents: u64,
    counts: Vec<u32>,
}

const LOG2_COUNTERS: u32 = 22;

/// The logarithm of the number of entries of a table that a corpus gives.
const LOG2_CORPUS_ENTRIES: u32 = 20;

impl Default for FrequencyCounter {
    fn default() -> FrequencyCounter {
        FrequencyCounter { documents: 0, counts: vec![0; 1 << LOG2_COUNTERS] }
    }
}

impl FrequencyCounter {
    /// Counts one document, given as the hashes of its distinct features.
    pub fn add(&mut self, hashes: &[u64]) {
        self.documents += 1;
        for &hash in hashes {
            let count = &mut self.counts[(hash >> (64 - LOG2_COUNTERS)) as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &FrequencyCounter) {
        self.documents += other.documents;
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*more);
        }
    }

    /// The number of documents counted.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The table of what was counted, with 2^20 entries.
    pub fn table(&self) -> DocumentFrequencies {
        DocumentFrequencies::from_counts(self.documents, &self.counts, LOG2_CORPUS_ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::feature::hash_token;

    fn written() -> Vec<u8> {
        DocumentFrequencies::from_counts(100, &[7; 1 << 12], 12).to_bytes()
    }

    #[test]
    fn rarity_follows_its_formula() {
        let check = |documents, frequency, expect| {
            let counts = vec![frequency; 1 << 12];
            let table = DocumentFrequencies::from_counts(documents, &counts, 12);
            assert_eq!(table.idf_sixteenths(u64::MAX / 3), expect, "{frequency} of {documents}");
        };
        check(1023, 1023, 3);
        check(1023, 2000, 3);
        // log2(1024 / 512) = 16/16, log2(1024 / 2) = 144/16, to the nearest of 0, 11, 22, ...
        check(1023, 511, 11);
        check(1023, 1, 143);
        check(u64::MAX - 1, 1, 165);
        check(1023, 0, 165);
        check(1, 0, 165);
        check(0, 0, 165);
    }

    #[test]
    fn the_shipped_table_knows_common_features() {
        let table = DocumentFrequencies::shipped();
        let idf = |feature: &str| table.idf_sixteenths(hash_token(feature));
        for (more, less) in [("国家", "法院"), ("法院", "饕餮"), ("the", "water")] {
            assert!(idf(more) < idf(less), "{more} {}, {less} {}", idf(more), idf(less));
        }
        // Features that nobody counted: most meet no other in the table.
        let unknown = (0..1000).filter(|n| idf(&format!("\u{1}{n}")) == 165).count();
        assert!(unknown > 750, "{unknown} of 1000");
    }

    #[test]
    fn what_is_no_table_is_said() {
        let check = |bytes: &[u8], expect: &str| {
            let error = DocumentFrequencies::from_bytes(bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        let with = |at: usize, byte: u8| {
            let mut bytes = written();
            bytes[at] = byte;
            bytes
        };
        check(b"", "NSDF");
        check(&written()[..15], "NSDF");
        check(&with(0, b'X'), "NSDF");
        check(&with(4, 2), "version 1");
        check(&with(8, 11), "says 2^11");
        check(&with(8, 255), "says 2^255");
        check(&with(8, 13), "2^13 entries has 4112 bytes, and there are 2064");
        check(&written()[..2063], "2063");
    }

    proptest! {
        #[test]
        fn a_table_equals_counting_in_a_map(
            documents in prop::collection::vec(prop::collection::btree_set(any::<u64>(), 0..20), 0..30),
            split in any::<prop::sample::Index>(),
        ) {
            let mut parts = [FrequencyCounter::default(), FrequencyCounter::default()];
            let mut exact: BTreeMap<u64, u32> = BTreeMap::new();
            let split = split.index(documents.len() + 1);
            for (at, document) in documents.iter().enumerate() {
                let hashes: Vec<u64> = document.iter().copied().collect();
                parts[usize::from(at >= split)].add(&hashes);
                for hash in hashes {
                    *exact.entry(hash >> (64 - LOG2_COUNTERS)).or_default() += 1;
                }
            }
            let [mut whole, rest] = parts;
            whole.merge(&rest);
            let table = whole.table();
            let n = documents.len() as f64;
            for &hash in documents.iter().flatten() {
                let entry = hash >> (64 - LOG2_CORPUS_ENTRIES);
                let most = exact
                    .range(entry << 2..(entry + 1) << 2)
                    .map(|(_, count)| (*count).min(documents.len() as u32))
                    .max()
                    .unwrap_or(0);
                let idf = ((n + 1.0) / f64::from(most + 1)).log2() * 16.0;
                let found = f64::from(table.idf_sixteenths(hash));
                // Half a step, and the roundings of two logarithms.
                prop_assert!((found - idf.min(165.0)).abs() <= 7.5, "{found} for {idf}");
            }
            prop_assert_eq!(&DocumentFrequencies::from_bytes(&table.to_bytes()), &Ok(table));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), log2 in 0u32..40) {
            let _ = DocumentFrequencies::from_bytes(&bytes);
            let mut forged = header(log2).to_vec();
            forged.extend(bytes);
            let _ = DocumentFrequencies::from_bytes(&forged);
        }
    }
}
