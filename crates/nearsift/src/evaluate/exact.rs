//! All documents compared with all, exactly: what a sketch of any size could reach at best.
//!
//! MinHash estimates the Jaccard similarity of sets of shingles; with unlimited permutations it would give
//! the similarity itself. SimHash of weighted features estimates their cosine.
//!
//! # References
//! Broder, 'On the resemblance and containment of documents', SEQUENCES 1997.
//! Charikar, 'Similarity estimation techniques from rounding algorithms', STOC 2002.

use rayon::prelude::*;

use super::ScoredPair;
use crate::feature::hash_char_shingles;
use crate::feature::shingle::{Reduced, word_shingles};
use crate::join::Threads;
use crate::text::normalise::normalise_into;

/// What a text is cut into, after normalisation; only letters and digits are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shingle {
    /// Shingles of this many characters. A shorter text is one shingle.
    Characters(usize),
    /// Shingles of this many words, in scripts written with spaces. A shorter text is one shingle.
    Words(usize),
}

/// Why an exact comparison is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExactError {
    /// Features that very many documents share.
    #[error(
        "comparing all documents exactly would take {additions} additions: expected at most {most}; evaluate a sample"
    )]
    TooMuchWork {
        /// How many additions it would take.
        additions: u64,
        /// The most that are made.
        most: u64,
    },
    /// More pairs of equal score than fit.
    #[error("more than {most} pairs have the best score: too many documents are equal")]
    TooManyEqual {
        /// The most pairs that are kept.
        most: usize,
    },
}

/// The most additions: some minutes.
const MOST_ADDITIONS: u64 = 400_000_000_000;
/// The most pairs that are handed out.
const MOST_PAIRS: usize = 4_000_000;
/// Documents that one worker takes at a time.
const BLOCK: usize = 32;
/// Blocks after which the pairs are cut to the best. A constant, so that the result does not depend on
/// the number of threads.
const ROUND: usize = 32;

/// The features of every document, with how often each occurs.
#[derive(Debug, Clone)]
pub struct Features {
    /// Where each document's features begin, and where the last ends.
    starts: Vec<usize>,
    /// Numbered features, ascending within a document.
    features: Vec<u32>,
    counts: Vec<u32>,
    /// In how many documents each feature is.
    frequencies: Vec<u32>,
    /// In how many different documents each feature is: equal ones count once.
    distinct_frequencies: Vec<u32>,
    distinct_documents: u32,
}

impl Features {
    /// Cuts all texts.
    ///
    /// # Panics
    /// When a shingle is of no characters or words, or a text is 4 GiB or longer.
    ///
    /// # Complexity
    /// O(features * log(features)) time, 16 bytes a feature.
    pub fn of_texts<T: AsRef<str> + Sync>(
        texts: &[T],
        shingle: Shingle,
        threads: Threads,
    ) -> Features {
        let cut = |text: &T| counted(hashes(text.as_ref(), shingle));
        let cut: Vec<Vec<(u64, u32)>> = match threads {
            Threads::One => texts.iter().map(cut).collect(),
            _ => texts.par_iter().map(cut).collect(),
        };
        let mut known: Vec<u64> = cut.iter().flatten().map(|f| f.0).collect();
        known.sort_unstable();
        known.dedup();
        let mut order: Vec<usize> = (0..cut.len()).collect();
        order.sort_by(|&x, &y| cut[x].cmp(&cut[y]));
        let firsts = order.chunk_by(|&x, &y| cut[x] == cut[y]).map(|equal| equal[0]);
        let mut is_first = vec![false; cut.len()];
        firsts.for_each(|document| is_first[document] = true);

        let mut all = Features {
            starts: vec![0],
            features: Vec::new(),
            counts: Vec::new(),
            frequencies: vec![0; known.len()],
            distinct_frequencies: vec![0; known.len()],
            distinct_documents: is_first.iter().filter(|first| **first).count() as u32,
        };
        for (document, is_first) in cut.iter().zip(is_first) {
            let mut from = 0;
            for (hash, count) in document {
                from += known[from..].partition_point(|known| known < hash);
                all.features.push(from as u32);
                all.counts.push(*count);
                all.frequencies[from] += 1;
                all.distinct_frequencies[from] += u32::from(is_first);
            }
            all.starts.push(all.features.len());
        }
        all
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.starts.len() - 1
    }

    /// Every pair of documents whose Jaccard similarity, shared features / features of either, is at
    /// least `min_score`; when there are very many, the best of them.
    ///
    /// # Errors
    /// [`ExactError`] when it would take too long or too many documents are equal.
    ///
    /// # Complexity
    /// O(n^2 + sum over the features of the square of their documents).
    pub fn jaccard(&self, min_score: f64, threads: Threads) -> Result<Vec<ScoredPair>, ExactError> {
        let sizes: Vec<f64> = self.starts.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let score = |shared: u32, a: usize, b: usize| {
            let shared = f64::from(shared);
            shared / (sizes[a] + sizes[b] - shared)
        };
        self.all_pairs(&vec![(); self.features.len()], score, min_score, threads)
    }

    /// Every pair of documents whose cosine of (1 + ln tf) * ln((N + 1) / (df + 1)) is at least
    /// `min_score`; when there are very many, the best of them. Equal documents count once in df.
    ///
    /// # Errors
    /// As [`Features::jaccard`].
    ///
    /// # Complexity
    /// As [`Features::jaccard`].
    pub fn cosine(&self, min_score: f64, threads: Threads) -> Result<Vec<ScoredPair>, ExactError> {
        let documents = f64::from(self.distinct_documents) + 1.0;
        let idf = |feature: u32| {
            let frequency = f64::from(self.distinct_frequencies[feature as usize]) + 1.0;
            (documents / frequency).ln()
        };
        let mut weights: Vec<f64> = self
            .features
            .iter()
            .zip(&self.counts)
            .map(|(&feature, &count)| (1.0 + f64::from(count).ln()) * idf(feature))
            .collect();
        for w in self.starts.windows(2) {
            let own = &mut weights[w[0]..w[1]];
            let norm = own.iter().map(|w| w * w).sum::<f64>().sqrt();
            if norm > 0.0 {
                own.iter_mut().for_each(|w| *w /= norm);
            }
        }
        // Rounding may lift equal documents a hair above or below 1: they must stay tied.
        let score = |dot: f64, _, _| (dot * 1e12).round() / 1e12;
        self.all_pairs(&weights, score, min_score, threads)
    }

    /// The features of a document, ascending, with their weights.
    fn weighted<W: Copy>(
        &self,
        document: usize,
        weights: &[W],
    ) -> impl Iterator<Item = (usize, W)> {
        let own = self.starts[document]..self.starts[document + 1];
        self.features[own.clone()].iter().map(|&f| f as usize).zip(weights[own].iter().copied())
    }

    fn all_pairs<W: Weight>(
        &self,
        weights: &[W],
        score: impl Fn(W::Sum, usize, usize) -> f64 + Sync,
        min_score: f64,
        threads: Threads,
    ) -> Result<Vec<ScoredPair>, ExactError> {
        let additions = self.frequencies.iter().map(|&n| u64::from(n) * u64::from(n)).sum::<u64>();
        if additions / 2 > MOST_ADDITIONS {
            return Err(ExactError::TooMuchWork { additions: additions / 2, most: MOST_ADDITIONS });
        }
        let index = Index::new(self, weights);
        let block = |block: usize, floor: f64| {
            let mut sums = Vec::new();
            let mut found = Vec::new();
            for b in block * BLOCK..((block + 1) * BLOCK).min(self.documents()) {
                index.sums(self, weights, b, &mut sums);
                let scored = sums.iter().enumerate().filter(|(_, sum)| **sum > W::Sum::default());
                let pairs = scored.map(|(a, &sum)| ScoredPair {
                    a: a as u32,
                    b: b as u32,
                    score: score(sum, a, b),
                });
                found.extend(pairs.filter(|pair| pair.score >= floor));
            }
            found
        };
        let mut best = Best { pairs: Vec::new(), floor: min_score, most: MOST_PAIRS };
        let blocks: Vec<usize> = (0..self.documents().div_ceil(BLOCK)).collect();
        for round in blocks.chunks(ROUND) {
            let floor = best.floor;
            let found: Vec<Vec<ScoredPair>> = match threads {
                Threads::One => round.iter().map(|&b| block(b, floor)).collect(),
                _ => round.par_iter().with_max_len(1).map(|&b| block(b, floor)).collect(),
            };
            found.into_iter().for_each(|found| best.pairs.extend(found));
            if best.pairs.len() > 2 * best.most {
                best.cut()?;
            }
        }
        if best.pairs.len() > best.most {
            best.cut()?;
        }
        Ok(best.pairs)
    }
}

fn hashes(text: &str, shingle: Shingle) -> Vec<u64> {
    let mut normalised = String::with_capacity(text.len());
    normalise_into(text, &mut normalised);
    let mut reduced = Reduced::default();
    reduced.fill(&normalised).unwrap_or_else(|error| panic!("{error}"));
    let mut hashes = Vec::new();
    match shingle {
        Shingle::Characters(n) => {
            let n = n.min(reduced.text().chars().count());
            if n > 0 {
                hash_char_shingles(reduced.text(), n, &mut hashes);
            }
        }
        Shingle::Words(n) => {
            let words: Vec<&str> = reduced.words().collect();
            word_shingles(&words, n, &mut String::new(), |shingle| {
                hashes.push(crate::feature::hash_token(shingle));
            });
        }
    }
    hashes
}

/// Distinct hashes, ascending, each with how often it occurs.
fn counted(mut hashes: Vec<u64>) -> Vec<(u64, u32)> {
    hashes.sort_unstable();
    hashes.chunk_by(|x, y| x == y).map(|equal| (equal[0], equal.len() as u32)).collect()
}

/// What a feature weighs in a document, and what the products of two weights add up to.
trait Weight: Copy + Sync {
    type Sum: Copy + Default + PartialOrd;

    /// For every document of a feature, ascending, adds the product of its weight and `self`, until one
    /// lies beyond the sums.
    fn add(self, documents: &[u32], weights: &[Self], sums: &mut [Self::Sum]);
}

/// Shared features are counted.
impl Weight for () {
    type Sum = u32;

    fn add(self, documents: &[u32], _: &[()], sums: &mut [u32]) {
        for &document in documents {
            let Some(sum) = sums.get_mut(document as usize) else { break };
            *sum += 1;
        }
    }
}

impl Weight for f64 {
    type Sum = f64;

    fn add(self, documents: &[u32], weights: &[f64], sums: &mut [f64]) {
        for (&document, &weight) in documents.iter().zip(weights) {
            let Some(sum) = sums.get_mut(document as usize) else { break };
            *sum += weight * self;
        }
    }
}

/// The documents of every feature that several have, ascending, with the feature's weight in each.
struct Index<W> {
    starts: Vec<usize>,
    documents: Vec<u32>,
    weights: Vec<W>,
}

impl<W: Weight> Index<W> {
    fn new(features: &Features, weights: &[W]) -> Index<W> {
        let mut starts = vec![0];
        for &frequency in &features.frequencies {
            let kept = if frequency > 1 { frequency as usize } else { 0 };
            starts.push(starts[starts.len() - 1] + kept);
        }
        let mut next = starts.clone();
        let mut documents = vec![0; starts[starts.len() - 1]];
        // Any weight will do: each is replaced.
        let mut own: Vec<W> = weights.first().map_or_else(Vec::new, |w| vec![*w; documents.len()]);
        for document in 0..features.documents() {
            for (feature, weight) in features.weighted(document, weights) {
                if features.frequencies[feature] > 1 {
                    documents[next[feature]] = document as u32;
                    own[next[feature]] = weight;
                    next[feature] += 1;
                }
            }
        }
        Index { starts, documents, weights: own }
    }

    /// For every document before `b`, the sum over the shared features of the products of weights. The
    /// order of the additions is that of the features, for every caller.
    fn sums(&self, features: &Features, weights: &[W], b: usize, sums: &mut Vec<W::Sum>) {
        sums.clear();
        sums.resize(b, W::Sum::default());
        for (feature, weight) in features.weighted(b, weights) {
            let postings = self.starts[feature]..self.starts[feature + 1];
            weight.add(&self.documents[postings.clone()], &self.weights[postings], sums);
        }
    }
}

/// The pairs of the best scores.
struct Best {
    pairs: Vec<ScoredPair>,
    floor: f64,
    most: usize,
}

impl Best {
    /// Keeps at most `most` pairs, and of equal scores all or none.
    fn cut(&mut self) -> Result<(), ExactError> {
        let by_score = |x: &ScoredPair, y: &ScoredPair| y.score.total_cmp(&x.score);
        let (_, last, _) = self.pairs.select_nth_unstable_by(self.most, by_score);
        let beyond = last.score;
        self.pairs.retain(|pair| pair.score > beyond);
        if self.pairs.is_empty() {
            return Err(ExactError::TooManyEqual { most: self.most });
        }
        self.floor = self.pairs.iter().map(|p| p.score).fold(f64::INFINITY, f64::min);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn naive(text: &str, n: usize) -> BTreeMap<String, f64> {
        let characters: Vec<char> = text.chars().collect();
        let mut counts = BTreeMap::new();
        for window in characters.windows(n.min(characters.len()).max(1)) {
            *counts.entry(window.iter().collect::<String>()).or_insert(0.0) += 1.0;
        }
        counts
    }

    fn scores(pairs: Vec<ScoredPair>) -> BTreeMap<(u32, u32), f64> {
        pairs.into_iter().map(|p| ((p.a, p.b), p.score)).collect()
    }

    proptest! {
        #[test]
        fn equal_the_definitions(texts in prop::collection::vec("[a-c]{0,8}", 1..80)) {
            let features = Features::of_texts(&texts, Shingle::Characters(2), Threads::One);
            let sets: Vec<_> = texts.iter().map(|t| naive(t, 2)).collect();
            let distinct: std::collections::BTreeSet<_> =
                sets.iter().map(|s| format!("{s:?}")).collect();
            let different: Vec<_> = sets
                .iter()
                .enumerate()
                .filter(|(i, s)| !sets[..*i].contains(s))
                .map(|(_, s)| s)
                .collect();
            let idf = |f: &String| {
                let df = different.iter().filter(|s| s.contains_key(f)).count();
                ((distinct.len() as f64 + 1.0) / (df as f64 + 1.0)).ln()
            };
            let vectors: Vec<BTreeMap<_, f64>> = sets
                .iter()
                .map(|s| s.iter().map(|(f, n)| (f, (1.0 + n.ln()) * idf(f))).collect())
                .collect();
            let norm = |v: &BTreeMap<_, f64>| v.values().map(|w| w * w).sum::<f64>().sqrt();
            let jaccard = scores(features.jaccard(0.0, Threads::One).expect("few"));
            let cosine = scores(features.cosine(0.0, Threads::Current).expect("few"));
            for b in 0..texts.len() {
                for a in 0..b {
                    let key = (a as u32, b as u32);
                    let shared = sets[a].keys().filter(|f| sets[b].contains_key(*f)).count();
                    let either = sets[a].len() + sets[b].len() - shared;
                    let expect = (shared > 0).then(|| shared as f64 / either as f64);
                    prop_assert_eq!(jaccard.get(&key).copied(), expect);
                    let dot: f64 =
                        vectors[a].iter().filter_map(|(f, w)| Some(w * vectors[b].get(f)?)).sum();
                    let norms = norm(&vectors[a]) * norm(&vectors[b]);
                    let expect = if norms > 0.0 { dot / norms } else { 0.0 };
                    prop_assert!((cosine.get(&key).copied().unwrap_or(0.0) - expect).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn the_best_are_kept_and_ties_are_whole(
            scores in prop::collection::vec(0u8..20, 1..60),
            most in 1usize..60,
        ) {
            let pair = |(at, &score): (usize, &u8)| ScoredPair {
                a: at as u32,
                b: 100,
                score: f64::from(score),
            };
            let pairs: Vec<_> = scores.iter().enumerate().map(pair).collect();
            let mut best = Best { pairs: pairs.clone(), floor: 0.0, most };
            if pairs.len() <= most {
                return Ok(());
            }
            let mut sorted = scores.clone();
            sorted.sort_unstable_by(|x, y| y.cmp(x));
            let beyond = f64::from(sorted[most]);
            let expect: Vec<_> = pairs.iter().filter(|p| p.score > beyond).map(|p| p.a).collect();
            match best.cut() {
                Ok(()) => {
                    let mut kept: Vec<_> = best.pairs.iter().map(|p| p.a).collect();
                    kept.sort_unstable();
                    prop_assert_eq!(kept, expect);
                }
                Err(_) => prop_assert!(expect.is_empty()),
            }
        }
    }

    #[test]
    fn what_texts_are_cut_into() {
        let check = |text: &str, shingle, expect: usize| {
            let features = Features::of_texts(&[text], shingle, Threads::One);
            assert_eq!(features.features.len(), expect, "{text}");
        };
        check("", Shingle::Characters(5), 0);
        check("。", Shingle::Characters(5), 0);
        check("短文", Shingle::Characters(5), 1);
        check("繁體，中文。", Shingle::Characters(3), 2);
        check("One two THREE", Shingle::Words(2), 2);
        check("one", Shingle::Words(5), 1);
    }
}
