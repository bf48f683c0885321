//! Sketches in memory, found by their candidate keys: for corpora that grow one document at a time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{KEYS, Keys, Score, Sketch};

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Sketches in memory. A query scores the documents that share one of 32 keys with it, and so finds a document of weighted
/// Jaccard similarity J with chance 1 - (1 - J^2)^32: 0.95 at J = 0.3, 0.996 at 0.4, and every equal one.
///
/// ```
/// use nearsift::recipe::Recipe;
/// use nearsift::sketch::{MIN_SCORE, Score};
/// use nearsift::sketch::index::SketchIndex;
///
/// let recipe = Recipe::parse("sketch")?;
/// let mut fingerprinter = recipe.fingerprinter()?;
/// let seen = fingerprinter.sketch("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。").unwrap();
/// let again = fingerprinter.sketch("今天下午，市图书馆举办了一场儿童绘本阅读活动。").unwrap();
///
/// let mut index = SketchIndex::default();
/// let document = index.insert(&seen.sketch, &seen.keys);
/// let near = index.query(&again.sketch, &again.keys, Score::at_least(MIN_SCORE));
/// assert_eq!(near[0].0, document);
/// # Ok::<(), nearsift::recipe::RecipeError>(())
/// ```
///
/// # Complexity
/// 192 bytes a document, and 32 entries of 8 bytes in tables that are between half and seven eighths full: 500 to 800 bytes in all. An
/// insertion makes 32 changes of tables. A query costs the documents that share a key with it.
#[derive(Debug, Clone)]
pub struct SketchIndex {
    sketches: Vec<Sketch>,
    /// Of each document and key the document before with the same one.
    before: Vec<[u32; KEYS]>,
    /// Of each key the last document that has it.
    last: Vec<HashMap<u32, u32, BuildHasherDefault<KeyHasher>>>,
    is_removed: Vec<bool>,
    removed: usize,
}

impl Default for SketchIndex {
    fn default() -> SketchIndex {
        SketchIndex {
            sketches: Vec::new(),
            before: Vec::new(),
            last: vec![HashMap::default(); KEYS],
            is_removed: Vec::new(),
            removed: 0,
        }
    }
}

impl SketchIndex {
    /// The number of documents.
    pub fn len(&self) -> usize {
        self.sketches.len() - self.removed
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many documents share each number of a table's keys: of each of the 32 tables, the documents by key.
    pub fn documents_by_key(&self, table: usize) -> impl Iterator<Item = (u32, u64)> {
        self.last[table].iter().map(move |(&key, &last)| {
            let documents = self.chain(table, last).filter(|&d| !self.is_removed[d as usize]);
            (key, documents.count() as u64)
        })
    }

    /// Adds a document, and returns its number: they count up from 0, and are never given again.
    ///
    /// # Panics
    /// After 2^32 - 1 documents.
    pub fn insert(&mut self, sketch: &Sketch, keys: &Keys) -> u32 {
        let document = u32::try_from(self.sketches.len()).ok().filter(|&number| number != NONE);
        let document = document.expect("there are fewer than 2^32 - 1 documents");
        self.sketches.push(*sketch);
        self.is_removed.push(false);
        let before = |(last, &key): (&mut HashMap<u32, u32, _>, &u32)| {
            last.insert(key, document).unwrap_or(NONE)
        };
        let mut befores = self.last.iter_mut().zip(keys).map(before);
        self.before.push(std::array::from_fn(|_| befores.next().unwrap_or(NONE)));
        document
    }

    /// Removes a document. Returns whether it was present.
    ///
    /// Its number stays in the chains of its keys until as many are removed as stay.
    pub fn remove(&mut self, document: u32) -> bool {
        match self.is_removed.get_mut(document as usize) {
            Some(is_removed) if !*is_removed => *is_removed = true,
            _ => return false,
        }
        self.removed += 1;
        if self.removed > 64 && self.removed >= self.len() && self.removed.is_power_of_two() {
            self.unlink_removed();
        }
        true
    }

    /// Takes the removed documents out of the chains.
    fn unlink_removed(&mut self) {
        let SketchIndex { last, before, is_removed, .. } = self;
        for (table, last) in last.iter_mut().enumerate() {
            let staying = |before: &[[u32; KEYS]], mut document: u32| {
                while document != NONE && is_removed[document as usize] {
                    document = before[document as usize][table];
                }
                document
            };
            last.retain(|_, last| {
                *last = staying(before, *last);
                let mut document = *last;
                while document != NONE {
                    let next = staying(before, before[document as usize][table]);
                    before[document as usize][table] = next;
                    document = next;
                }
                *last != NONE
            });
        }
    }

    /// The sketch of a document, if it is there.
    pub fn sketch(&self, document: u32) -> Option<&Sketch> {
        let place = document as usize;
        self.sketches.get(place).filter(|_| !self.is_removed[place])
    }

    /// The documents that share a key with a query, ascending.
    pub fn candidates(&self, keys: &Keys) -> Vec<u32> {
        let chains = self
            .last
            .iter()
            .zip(keys)
            .enumerate()
            .filter_map(|(table, (last, key))| Some(self.chain(table, *last.get(key)?)));
        let mut found: Vec<u32> = chains.flatten().collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|&document| !self.is_removed[document as usize]);
        found
    }

    /// The documents that share a key with a query and score `min_score` or more with it, the best first; of equal ones the
    /// earlier first.
    pub fn query(&self, sketch: &Sketch, keys: &Keys, min_score: Score) -> Vec<(u32, Score)> {
        let scored = |document: u32| (document, sketch.score(&self.sketches[document as usize]));
        let candidates = self.candidates(keys).into_iter().map(scored);
        let mut near: Vec<(u32, Score)> =
            candidates.filter(|(_, score)| *score >= min_score).collect();
        near.sort_by_key(|(document, score)| (std::cmp::Reverse(*score), *document));
        near
    }

    /// The documents of a chain, the last first.
    fn chain(&self, table: usize, last: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(last), move |&document| {
            Some(self.before[document as usize][table]).filter(|&before| before != NONE)
        })
    }
}

/// Keys are hashes already: one multiplication spreads them over the high bits, which the table looks at, too.
#[derive(Debug, Clone, Copy, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, key: u32) {
        self.0 = (self.0 ^ u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few different keys, so that chains are long.
    fn keys(seed: u8) -> Keys {
        std::array::from_fn(|table| u32::from(seed) * 7 % (table as u32 + 3))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn finds_what_a_scan_finds(
            operations in prop::collection::vec((any::<u8>(), any::<u64>(), any::<bool>()), 0..400),
        ) {
            let mut index = SketchIndex::default();
            let mut naive: Vec<Option<(Sketch, Keys)>> = Vec::new();
            for (seed, bits, is_removal) in operations {
                if is_removal && !naive.is_empty() {
                    let document = bits as usize % naive.len();
                    prop_assert_eq!(index.remove(document as u32), naive[document].take().is_some());
                } else {
                    let sketch = Sketch::from_words([bits; 8]);
                    prop_assert_eq!(index.insert(&sketch, &keys(seed)) as usize, naive.len());
                    naive.push(Some((sketch, keys(seed))));
                }
                let own = keys(seed.wrapping_add(1));
                let shares = |other: &Keys| other.iter().zip(&own).any(|(a, b)| a == b);
                let expected: Vec<u32> = (0..)
                    .zip(&naive)
                    .filter(|(_, document)| document.as_ref().is_some_and(|(_, keys)| shares(keys)))
                    .map(|(number, _)| number)
                    .collect();
                prop_assert_eq!(index.candidates(&own), expected);
                prop_assert_eq!(index.len(), naive.iter().flatten().count());
            }
        }
    }

    #[test]
    fn a_query_has_the_best_first() {
        let mut index = SketchIndex::default();
        let of = |word: u64| Sketch::from_words([word, 0, 0, 0, 0, 0, 0, 0]);
        for word in [0b111, 0, 0b1, 0] {
            index.insert(&of(word), &keys(1));
        }
        let near = index.query(&of(0), &keys(1), Score::at_least(0.0));
        assert_eq!(near.iter().map(|near| near.0).collect::<Vec<_>>(), [1, 3, 2, 0]);
        assert!(index.remove(3) && !index.remove(3) && !index.remove(9));
        assert_eq!(index.query(&of(0), &keys(1), Score::MAX), [(1, Score::MAX)]);
    }
}
