//! Candidates across two corpora: for each document of one, those of another that score highest.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::kernels::{Kernel, LANES, Row, Tile, budget};
use super::{KeyColumns, KeySource, NO_KEY, Settings, Sketches};
use crate::sketch::{KEYS, Score};

/// A document and one of another corpus whose sketches score high enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossPair {
    /// The document.
    pub document: u32,
    /// The document of the other corpus.
    pub reference: u32,
    /// How alike their sketches say they are.
    pub score: Score,
}

/// Sketches and the keys that find them, of the same documents.
#[derive(Debug)]
pub struct Keyed<'a, K = KeyColumns> {
    /// The sketches.
    pub sketches: &'a Sketches,
    /// The keys.
    pub keys: &'a K,
}

/// What is asked of a search across two corpora.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossSettings {
    /// The least score, inclusive.
    pub min_score: Score,
    /// The most candidates of a document: those that score highest, of equal scores the first ones.
    pub best: usize,
    /// With at most this many pairs of documents, all pairs are compared.
    pub all_pairs_up_to: u64,
}

impl CrossSettings {
    /// Candidates of a document, unless another bound is asked.
    pub const BEST: usize = 16;

    /// All pairs are compared up to here, which takes about a second.
    pub const ALL_PAIRS_UP_TO: u64 = 1 << 30;

    /// Up to 16 candidates of `min_score` or more for each document.
    pub fn new(min_score: Score) -> CrossSettings {
        let (best, all_pairs_up_to) = (CrossSettings::BEST, CrossSettings::ALL_PAIRS_UP_TO);
        CrossSettings { min_score, best, all_pairs_up_to }
    }
}

/// What a search across two corpora cost, and what it left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrossWork {
    /// Pairs of sketches that were compared.
    pub comparisons: u64,
    /// Comparisons that were not made, of keys that very many documents of the other corpus have.
    pub skipped: u64,
}

/// The most documents of the other corpus that a document is compared with for one key.
const EACH_KEY: u32 = Settings::MAX_COMPARISONS / KEYS as u32;

/// The candidates, in ascending order of the document, then from the highest score on.
///
/// Small corpora have all pairs compared. Of others, documents that share a key are, and of a key that
/// more than 128 documents of the other corpus have, the first 128 are; what is left out is counted.
/// Who is a candidate depends on the two corpora and the settings alone.
///
/// ```
/// use nearsift::sketch::join::{CrossSettings, KeyColumns, Keyed, Sketches, cross};
/// use nearsift::sketch::{Score, Sketch};
/// let of = |words: &[u64]| {
///     let (mut sketches, mut keys) = (Sketches::new(), KeyColumns::new());
///     for &word in words {
///         sketches.push(Some(&Sketch::from_words([word, 1, 1, 1, 2, 2, 2, 2])));
///         keys.push(&[7; 32]);
///     }
///     (sketches, keys)
/// };
/// let ((new, new_keys), (old, old_keys)) = (of(&[0x0f, !0]), of(&[0xff, 0x0f]));
/// let Ok((found, _)) = cross(
///     &Keyed { sketches: &new, keys: &new_keys },
///     &Keyed { sketches: &old, keys: &old_keys },
///     CrossSettings::new(Score::at_least(0.9)),
/// );
/// assert_eq!(found.iter().map(|p| (p.document, p.reference)).collect::<Vec<_>>(), [(0, 1), (0, 0)]);
/// ```
///
/// # Errors
/// When a column of keys cannot be read.
///
/// # Complexity
/// For n documents and m of the other corpus: O(n log n + m) for each key, and at most 4,096 comparisons
/// for each of the n. 8 bytes for each of the n, a column of keys of either, and 16 bytes a candidate.
pub fn cross<K: KeySource>(
    documents: &Keyed<'_, K>,
    references: &Keyed<'_, K>,
    settings: CrossSettings,
) -> Result<(Vec<CrossPair>, CrossWork), K::Error> {
    let mut best = Best { most: settings.best, of: HashMap::new() };
    let count = |sketches: &Sketches| sketches.present().count() as u64;
    let pairs = count(documents.sketches).saturating_mul(count(references.sketches));
    let work = match pairs <= settings.all_pairs_up_to {
        true => all_pairs(documents.sketches, references.sketches, settings.min_score, &mut best),
        false => by_keys(documents, references, settings.min_score, &mut best)?,
    };
    Ok((best.finish(), work))
}

/// The best candidates of each document.
struct Best {
    most: usize,
    of: HashMap<u32, Ranked>,
}

/// Scores and who has them, the highest first.
type Ranked = Vec<(Reverse<Score>, u32)>;

impl Best {
    /// The same pair may come several times.
    fn offer(&mut self, document: u32, reference: u32, score: Score) {
        let own = self.of.entry(document).or_default();
        let item = (Reverse(score), reference);
        if let Err(place) = own.binary_search(&item)
            && place < self.most
        {
            own.insert(place, item);
            own.truncate(self.most);
        }
    }

    fn finish(self) -> Vec<CrossPair> {
        let mut all: Vec<(u32, Ranked)> = self.of.into_iter().collect();
        all.sort_unstable_by_key(|(document, _)| *document);
        let pairs = all.into_iter().flat_map(|(document, own)| {
            own.into_iter().map(move |(Reverse(score), reference)| CrossPair {
                document,
                reference,
                score,
            })
        });
        pairs.collect()
    }
}

/// Documents that are compared with a part of the other corpus at a time.
const QUERIES: usize = 256;
/// Tiles of the other corpus that stay in the near cache.
const STRETCH: usize = 512;

fn all_pairs(
    documents: &Sketches,
    references: &Sketches,
    min_score: Score,
    best: &mut Best,
) -> CrossWork {
    let (kernel, budget) = (Kernel::best(), budget(min_score));
    let (numbers, rows): (Vec<u32>, Vec<Row>) =
        documents.present().map(|(number, words)| (number, Row::of(words))).unzip();
    let present: Vec<u32> = references.present().map(|(number, _)| number).collect();
    let mut tiles = Vec::new();
    Tile::lay_out(references.present().map(|(_, words)| Row::of(words)), &mut tiles);
    let mut hits = Vec::new();
    for (first, stretch) in (0..).step_by(STRETCH * LANES).zip(tiles.chunks(STRETCH)) {
        for (rows, numbers) in rows.chunks(QUERIES).zip(numbers.chunks(QUERIES)) {
            kernel.within(rows, stretch, budget, &mut hits);
            for (query, lane) in hits.drain(..) {
                if let Some(&reference) = present.get(first + lane as usize) {
                    let document = numbers[query as usize];
                    let score = score(documents, document, references, reference);
                    best.offer(document, reference, score);
                }
            }
        }
    }
    CrossWork { comparisons: (numbers.len() * present.len()) as u64, skipped: 0 }
}

fn score(documents: &Sketches, document: u32, references: &Sketches, reference: u32) -> Score {
    use crate::sketch::Sketch;
    let sketch = |of: &Sketches, number| Sketch::from_words(*of.words(number));
    sketch(documents, document).score(&sketch(references, reference))
}

fn by_keys<K: KeySource>(
    documents: &Keyed<'_, K>,
    references: &Keyed<'_, K>,
    min_score: Score,
    best: &mut Best,
) -> Result<CrossWork, K::Error> {
    let mut work = CrossWork::default();
    let mut entries: Vec<u64> = Vec::new();
    for key in 0..KEYS {
        entries.clear();
        let own = documents.keys.column(key)?;
        let numbers = documents.sketches.present().map(|(number, _)| number);
        let entry = |number: u32| u64::from(own[number as usize]) << 32 | u64::from(number);
        entries.extend(numbers.map(entry).filter(|entry| entry >> 32 != u64::from(NO_KEY)));
        drop(own);
        entries.sort_unstable();
        let filter = Filter::of(&entries);
        // By the place of the first entry of a key: how many have been compared with.
        let mut seen: HashMap<usize, u32> = HashMap::new();
        let column = references.keys.column(key)?;
        for (reference, _) in references.sketches.present() {
            let wanted = column[reference as usize];
            if wanted == NO_KEY || !filter.may_hold(wanted) {
                continue;
            }
            let start = entries.partition_point(|entry| (entry >> 32) < u64::from(wanted));
            let run = entries[start..].iter().take_while(|&&e| e >> 32 == u64::from(wanted));
            if entries.get(start).is_none_or(|entry| entry >> 32 != u64::from(wanted)) {
                continue;
            }
            let compared = seen.entry(start).or_default();
            if *compared == EACH_KEY {
                work.skipped += run.count() as u64;
                continue;
            }
            *compared += 1;
            for &entry in run {
                let document = entry as u32;
                work.comparisons += 1;
                let score = score(documents.sketches, document, references.sketches, reference);
                if score >= min_score {
                    best.offer(document, reference, score);
                }
            }
        }
    }
    Ok(work)
}

/// Which keys there may be: most of another corpus are told from these by one look.
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// Of sorted entries that begin with a key: at least 16 bits for each.
    fn of(entries: &[u64]) -> Filter {
        let log2 = (entries.len().max(64) as u64 * 16).next_power_of_two().ilog2().min(32);
        let mut filter = Filter { bits: vec![0; 1 << (log2 - 6)], shift: 32 - log2 };
        for entry in entries {
            let place = ((entry >> 32) >> filter.shift) as usize;
            filter.bits[place / 64] |= 1 << (place % 64);
        }
        filter
    }

    fn may_hold(&self, key: u32) -> bool {
        let place = (u64::from(key) >> self.shift) as usize;
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sketch::{Keys, Sketch};

    type Document = Option<(u8, u8)>;

    /// Some sketches that are alike and some that are not, with keys of few values.
    fn corpus(documents: &[Document]) -> (Sketches, KeyColumns) {
        let (mut sketches, mut keys) = (Sketches::new(), KeyColumns::new());
        for document in documents {
            let sketch = document.map(|(bits, _)| {
                let word = u64::from(bits).wrapping_mul(0x0101_0101_0101_0101);
                Sketch::from_words([word, word, 1, 1, u64::from(bits), 2, 2, 2])
            });
            sketches.push(sketch.as_ref());
            let own: Keys = match document {
                Some((_, seed)) => std::array::from_fn(|i| {
                    (u32::from(*seed) + i as u32) % 29 * 0x0890_1234 % 0xffff_fff1
                }),
                None => [NO_KEY; KEYS],
            };
            keys.push(&own);
        }
        (sketches, keys)
    }

    fn naive(
        (new, new_keys): &(Sketches, KeyColumns),
        (old, old_keys): &(Sketches, KeyColumns),
        settings: CrossSettings,
        share_a_key: bool,
    ) -> Vec<CrossPair> {
        let mut all = Vec::new();
        for document in 0..new.len() {
            let mut own = Vec::new();
            for reference in 0..old.len() {
                let Some((a, b)) = new.get(document).zip(old.get(reference)) else { continue };
                let shared = (0..KEYS).any(|key| {
                    let own = new_keys.column(key)[document];
                    own != NO_KEY && own == old_keys.column(key)[reference]
                });
                let score = a.score(&b);
                if score >= settings.min_score && (shared || !share_a_key) {
                    own.push((Reverse(score), reference as u32));
                }
            }
            own.sort_unstable();
            own.truncate(settings.best);
            all.extend(own.into_iter().map(|(Reverse(score), reference)| CrossPair {
                document: document as u32,
                reference,
                score,
            }));
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn equals_the_definition(
            new in prop::collection::vec(any::<Document>(), 0..60),
            old in prop::collection::vec(any::<Document>(), 0..100),
            least in 0.3f64..1.0,
            best in 1usize..20,
            all in any::<bool>(),
        ) {
            let (new, old) = (corpus(&new), corpus(&old));
            let settings = CrossSettings {
                min_score: Score::at_least(least),
                best,
                all_pairs_up_to: if all { u64::MAX } else { 0 },
            };
            let Ok((found, work)) = cross(
                &Keyed { sketches: &new.0, keys: &new.1 },
                &Keyed { sketches: &old.0, keys: &old.1 },
                settings,
            );
            prop_assert_eq!(found, naive(&new, &old, settings, !all));
            prop_assert_eq!(work.skipped, 0);
        }
    }

    #[test]
    fn a_key_of_very_many_is_left_and_counted() {
        let (new, new_keys) = corpus(&[Some((1, 1))]);
        let (old, old_keys) = corpus(&[Some((1, 1)); 200]);
        let settings =
            CrossSettings { all_pairs_up_to: 0, ..CrossSettings::new(Score::at_least(0.5)) };
        let Ok((found, work)) = cross(
            &Keyed { sketches: &new, keys: &new_keys },
            &Keyed { sketches: &old, keys: &old_keys },
            settings,
        );
        assert_eq!(
            found.iter().map(|p| p.reference).collect::<Vec<_>>(),
            (0..16).collect::<Vec<_>>()
        );
        let keys = (0..KEYS).filter(|&key| new_keys.column(key)[0] != NO_KEY).count() as u64;
        assert_eq!((work.comparisons, work.skipped), (128 * keys, 72 * keys));
    }
}
