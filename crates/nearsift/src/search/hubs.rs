//! Documents with very many candidates, hubs: pages of one template, or texts made to look alike. All pairs of hubs would
//! take quadratic time, so of each document only the best candidates are compared.

use std::cmp::Reverse;

use crate::dedup::Clustering;
use crate::sketch::Score;
use crate::sketch::join::Pair;
use rayon::prelude::*;

/// How many candidates of a document are compared for its own sake. Majority link asks a judge about the other pairs
/// that it needs, and of the pairs of a large group it needs few; the other rules ask about none.
pub fn best(rule: Clustering) -> usize {
    match rule {
        Clustering::Majority => 8,
        Clustering::Components | Clustering::Star => 256,
    }
}

/// Takes candidates in ascending order, and keeps for each document those with the `best` later ones
/// that score highest, and of what is left those with as many earlier ones: of equal scores, with the
/// earliest documents. So all pairs of documents with `best` candidates or fewer are kept, and at most
/// 2 x `best` for each document.
///
/// 12 bytes for each pair that is kept, and as many for those that may be.
pub struct HubFilter {
    best: usize,
    /// Candidates of one earlier document.
    later: Vec<Pair>,
    kept: Vec<Pair>,
    /// Of what was left, the later document, the score, and the earlier document: the best of each later document come
    /// first in this order.
    left: Vec<(u32, Reverse<Score>, u32)>,
    /// How many of these there may be before only the best are kept.
    most_left: usize,
    skipped: u64,
}

/// Pairs that are left and may always wait.
const LEFT: usize = 1 << 20;

impl HubFilter {
    pub fn new(best: usize) -> HubFilter {
        let (later, kept, left) = (Vec::new(), Vec::new(), Vec::new());
        HubFilter { best, later, kept, left, most_left: LEFT, skipped: 0 }
    }

    pub fn push(&mut self, pair: Pair) {
        if self.later.first().is_some_and(|first| first.a != pair.a) {
            self.settle();
        }
        self.later.push(pair);
    }

    /// Chooses among the candidates of an earlier document.
    fn settle(&mut self) {
        if self.later.len() > self.best {
            self.later.sort_unstable_by_key(|pair| (Reverse(pair.score), pair.b));
            let left = self.later.drain(self.best..);
            self.left.extend(left.map(|pair| (pair.b, Reverse(pair.score), pair.a)));
            if self.left.len() > self.most_left {
                self.keep_best();
                self.most_left = self.most_left.max(2 * self.left.len());
            }
        }
        self.kept.append(&mut self.later);
    }

    /// Keeps of what is left the best of each later document.
    fn keep_best(&mut self) {
        self.left.par_sort_unstable();
        let before = self.left.len();
        let (mut of, mut nth) = (None, 0);
        self.left.retain(|&(b, ..)| {
            nth = if of == Some(b) { nth + 1 } else { 0 };
            of = Some(b);
            nth < self.best
        });
        self.skipped += (before - self.left.len()) as u64;
    }

    /// The pairs that are kept, ascending, and how many are not.
    pub fn finish(mut self) -> (Vec<Pair>, u64) {
        self.settle();
        self.keep_best();
        let left = self.left.into_iter();
        self.kept.extend(left.map(|(b, Reverse(score), a)| Pair { a, b, score }));
        self.kept.par_sort_unstable();
        (self.kept, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(a: u32, b: u32) -> Score {
        // Some equal scores, in no order.
        Score::of(0, a.wrapping_mul(0x9e37_79b9) >> 28 ^ b.wrapping_mul(0x85eb_ca6b) >> 27)
    }

    /// By the definition, from the list of all pairs.
    fn naive(pairs: &[Pair], best: usize) -> Vec<Pair> {
        let first = |pair: &&Pair| {
            let better = |other: &&Pair| {
                other.a == pair.a && (Reverse(other.score), other.b) < (Reverse(pair.score), pair.b)
            };
            pairs.iter().filter(better).count() < best
        };
        let (chosen, left): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(first);
        let second = |pair: &&&Pair| {
            let better = |other: &&&Pair| {
                other.b == pair.b && (Reverse(other.score), other.a) < (Reverse(pair.score), pair.a)
            };
            left.iter().filter(better).count() < best
        };
        let mut kept: Vec<Pair> =
            chosen.into_iter().chain(left.iter().filter(second).copied()).copied().collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn the_best_of_each_document_are_kept() {
        for (documents, best) in [(0u32, 3), (1, 3), (4, 3), (5, 3), (40, 1), (40, 7), (60, 16)] {
            let pairs: Vec<Pair> = (0..documents)
                .flat_map(|a| (a + 1..documents).map(move |b| Pair { a, b, score: score(a, b) }))
                .filter(|pair| (pair.a * 7 + pair.b) % 5 > 0)
                .collect();
            let mut hubs = HubFilter { most_left: 20, ..HubFilter::new(best) };
            pairs.iter().for_each(|&pair| hubs.push(pair));
            let (kept, skipped) = hubs.finish();
            assert_eq!(kept, naive(&pairs, best), "{documents} documents, the best {best}");
            assert_eq!(kept.len() as u64 + skipped, pairs.len() as u64);
            assert!(kept.len() <= 2 * best * documents as usize);
        }
    }
}
