//! How rare a feature is: inverse document frequencies, entropies and given levels.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::hash::Hasher;

use xxhash_rust::xxh3::Xxh3Default;

use super::hash_token;
use super::weight::log2_sixteenths;

/// A table from feature hashes to a number: an inverse document frequency, or a level.
#[derive(Debug, Clone)]
pub struct RarityTable {
    values: HashMap<u64, f64, BuildHasherDefault<PassThrough>>,
    missing: f64,
    digest: u64,
}

/// Why a table file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: '{content}' is not {expected}")]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// The start of what stands there.
    pub content: String,
    /// What was expected.
    pub expected: &'static str,
}

impl RarityTable {
    /// Reads inverse document frequencies: one `token idf` a line, the idf a decimal number from 0
    /// to 4000 in any logarithm base (one base for the whole file). Of a token that comes twice the
    /// last line counts; one that is missing gets the median, the upper one of two, as in jieba.
    /// Tokens are taken as they stand: write them normalised.
    ///
    /// # Errors
    /// The first line that has another form.
    pub fn parse_idf(content: &str) -> Result<RarityTable, TableError> {
        let expected = "a token, a space and its inverse document frequency from 0 to 4000";
        let value = |text: &str| text.parse().ok().filter(|idf| (0.0..=4000.0).contains(idf));
        let mut table = RarityTable::parse(content, expected, value)?;
        let mut sorted: Vec<f64> = table.values.values().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        table.missing = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
        Ok(table)
    }

    /// Reads levels: one `token level` a line, the level a whole number from 1 to 5. A token that is
    /// missing has level 1.
    ///
    /// # Errors
    /// The first line that has another form.
    pub fn parse_levels(content: &str) -> Result<RarityTable, TableError> {
        RarityTable::parse(content, "a token, a space and its level from 1 to 5", |value| {
            value.parse().ok().filter(|level: &u8| (1..=5).contains(level)).map(f64::from)
        })
    }

    fn parse(
        content: &str,
        expected: &'static str,
        value: impl Fn(&str) -> Option<f64>,
    ) -> Result<RarityTable, TableError> {
        let mut values = HashMap::default();
        for (index, line) in content.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let (token, number) = line
                .rsplit_once([' ', '\t'])
                .and_then(|(token, number)| Some((token.trim_end(), value(number)?)))
                .ok_or_else(|| TableError {
                    line: index + 1,
                    content: line.chars().take(60).collect(),
                    expected,
                })?;
            values.insert(hash_token(token), number);
        }
        let digest = xxhash_rust::xxh3::xxh3_64(content.as_bytes());
        Ok(RarityTable { values, missing: 1.0, digest })
    }

    /// The value of a feature.
    #[inline]
    pub fn get(&self, hash: u64) -> f64 {
        self.values.get(&hash).copied().unwrap_or(self.missing)
    }

    /// What identifies the table: the XXH3-64 of the file's bytes.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

/// Passes a feature's hash through: it is uniform already, and the keys come from the user's own file.
#[derive(Debug, Default, Clone, Copy)]
struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 keys are hashed")
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Counts over a corpus from which inverse document frequencies and entropies follow.
///
/// Features share 2^18 counters by the top bits of their hash, so memory does not grow with the
/// corpus (5 MB). Counts are integers and therefore independent of the order of documents: shards can
/// be counted apart and [merged](CorpusStatistics::merge).
///
/// Count every text once: duplicates would make their own words look common.
#[derive(Debug, Clone)]
pub struct CorpusStatistics {
    documents: u64,
    document_frequency: Vec<u32>,
    occurrences: Vec<u64>,
    // The sum over documents of tf x 16 log2 tf.
    tf_log_tf: Vec<u64>,
}

/// The statistics of the distinct texts of a corpus: of texts with one key the first counts. Copies would make their own words
/// look common.
#[derive(Debug, Default)]
pub struct DistinctTexts {
    statistics: CorpusStatistics,
    seen: HashSet<u128>,
}

impl DistinctTexts {
    /// Counts a text, given as its distinct features and how often each occurs, unless one of the same key was counted. A text
    /// without a key has no letters and digits, and does not count.
    pub fn add(&mut self, key: Option<u128>, hashes: &[u64], counts: &[u32]) {
        if key.is_some_and(|key| self.seen.insert(key)) {
            self.statistics.add(hashes, counts);
        }
    }

    /// The counts of all that was added.
    pub fn finish(self) -> CorpusStatistics {
        self.statistics
    }
}

const BUCKET_BITS: u32 = 18;

impl Default for CorpusStatistics {
    fn default() -> Self {
        CorpusStatistics {
            documents: 0,
            document_frequency: vec![0; 1 << BUCKET_BITS],
            occurrences: vec![0; 1 << BUCKET_BITS],
            tf_log_tf: vec![0; 1 << BUCKET_BITS],
        }
    }
}

impl CorpusStatistics {
    #[inline]
    fn bucket(hash: u64) -> usize {
        (hash >> (64 - BUCKET_BITS)) as usize
    }

    /// Counts one document, given as its distinct features and how often each occurs.
    pub fn add(&mut self, hashes: &[u64], counts: &[u32]) {
        self.documents += 1;
        for (&hash, &count) in hashes.iter().zip(counts) {
            let bucket = CorpusStatistics::bucket(hash);
            self.document_frequency[bucket] = self.document_frequency[bucket].saturating_add(1);
            self.occurrences[bucket] += u64::from(count);
            self.tf_log_tf[bucket] += u64::from(count) * u64::from(log2_sixteenths(count.into()));
        }
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &CorpusStatistics) {
        self.documents += other.documents;
        for (own, more) in self.document_frequency.iter_mut().zip(&other.document_frequency) {
            *own = own.saturating_add(*more);
        }
        for (own, more) in self.occurrences.iter_mut().zip(&other.occurrences) {
            *own += more;
        }
        for (own, more) in self.tf_log_tf.iter_mut().zip(&other.tf_log_tf) {
            *own += more;
        }
    }

    /// The number of documents counted.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// log2((N + 1) / (df + 1)) in sixteenths.
    #[inline]
    pub fn idf(&self, hash: u64) -> u32 {
        let frequency = u64::from(self.document_frequency[CorpusStatistics::bucket(hash)]);
        log2_sixteenths(self.documents + 1) - log2_sixteenths(frequency.min(self.documents) + 1)
    }

    /// The entropy weight in sixteenths, 0 (evenly spread over all documents) to 16 (in one only):
    /// 1 - (log2 gf - (sum of tf log2 tf) / gf) / log2 N, where gf is the number of all occurrences.
    #[inline]
    pub fn entropy(&self, hash: u64) -> u32 {
        let bucket = CorpusStatistics::bucket(hash);
        let occurrences = self.occurrences[bucket];
        let log_documents = log2_sixteenths(self.documents);
        if occurrences == 0 || log_documents == 0 {
            return 16;
        }
        let own = (self.tf_log_tf[bucket] / occurrences) as u32;
        let spread = log2_sixteenths(occurrences).saturating_sub(own);
        16u32.saturating_sub(spread * 16 / log_documents)
    }

    /// What identifies the counts: an XXH3-64 over them in order.
    pub fn digest(&self) -> u64 {
        let mut hasher = Xxh3Default::new();
        hasher.update(&self.documents.to_le_bytes());
        for bucket in 0..1 << BUCKET_BITS {
            hasher.update(&self.document_frequency[bucket].to_le_bytes());
            hasher.update(&self.occurrences[bucket].to_le_bytes());
            hasher.update(&self.tf_log_tf[bucket].to_le_bytes());
        }
        hasher.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_values_and_a_median() {
        let table =
            RarityTable::parse_idf("\u{feff}的 0.5\r\n\nnew york\t4\n飞碟 10\n").expect("a table");
        assert_eq!(table.get(hash_token("的")), 0.5);
        assert_eq!(table.get(hash_token("new york")), 4.0);
        assert_eq!(table.get(hash_token("飞碟")), 10.0);
        assert_eq!(table.get(hash_token("unknown")), 4.0);
    }

    #[test]
    fn a_bad_table_names_the_line() {
        let check = |error: TableError, line| assert_eq!(error.line, line, "{error}");
        check(RarityTable::parse_idf("a 1\nb\n").unwrap_err(), 2);
        check(RarityTable::parse_idf("a NaN").unwrap_err(), 1);
        check(RarityTable::parse_idf("a -1").unwrap_err(), 1);
        check(RarityTable::parse_levels("a 5\nb 3\nc 6").unwrap_err(), 3);
        check(RarityTable::parse_levels("a 2.5").unwrap_err(), 1);
        assert_eq!(RarityTable::parse_levels("a 5").expect("levels").get(hash_token("b")), 1.0);
    }

    #[test]
    fn counts_do_not_depend_on_order_or_split() {
        let documents: Vec<(Vec<u64>, Vec<u32>)> = (0..50u64)
            .map(|d| {
                let hashes = (0..20).map(|f| hash_token(&format!("{}", (d * f) % 37))).collect();
                (hashes, (1..=20).collect())
            })
            .collect();
        let mut whole = CorpusStatistics::default();
        let (mut left, mut right) = (CorpusStatistics::default(), CorpusStatistics::default());
        for (hashes, counts) in &documents {
            whole.add(hashes, counts);
        }
        for (index, (hashes, counts)) in documents.iter().rev().enumerate() {
            if index % 3 == 0 { left.add(hashes, counts) } else { right.add(hashes, counts) }
        }
        left.merge(&right);
        assert_eq!(whole.digest(), left.digest());
    }

    #[test]
    fn rarity_follows_its_formulas() {
        let mut statistics = CorpusStatistics::default();
        let (common, rare) = (hash_token("common"), hash_token("rare"));
        for document in 0..255 {
            if document == 0 {
                statistics.add(&[common, rare], &[1, 4]);
            } else {
                statistics.add(&[common], &[1]);
            }
        }
        assert_eq!(statistics.idf(common), 0);
        assert_eq!(statistics.idf(rare), 128 - 16);
        assert_eq!(statistics.idf(hash_token("never seen")), 128);
        assert_eq!(statistics.entropy(rare), 16);
        assert_eq!(statistics.entropy(common), 0);
    }
}
