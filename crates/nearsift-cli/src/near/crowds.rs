//! Documents with very many candidates: a page's template, or texts made to look alike. All pairs of
//! such a crowd would take quadratic time, so of each document only the best candidates are compared.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use nearsift::dedup::Clustering;
use nearsift::sketch::join::Pair;

/// How many candidates of a document are compared for its own sake. Majority link asks for the other pairs
/// that it needs, and of the pairs of a large group it needs few; with other rules nobody asks.
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
/// 12 bytes for each pair that is kept.
pub struct Crowds {
    best: usize,
    /// Candidates of one earlier document.
    later: Vec<Pair>,
    kept: Vec<Pair>,
    /// Of what was left, the best of each later document, the worst of them on top.
    left: HashMap<u32, BinaryHeap<(Reverse<u16>, u32)>>,
    passed_over: u64,
}

impl Crowds {
    pub fn new(best: usize) -> Crowds {
        Crowds { best, later: Vec::new(), kept: Vec::new(), left: HashMap::new(), passed_over: 0 }
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
            for pair in self.later.drain(self.best..) {
                let heap = self.left.entry(pair.b).or_default();
                heap.push((Reverse(pair.score.points()), pair.a));
                if heap.len() > self.best {
                    heap.pop();
                    self.passed_over += 1;
                }
            }
        }
        self.kept.append(&mut self.later);
    }

    /// The pairs that are kept, ascending, and how many are not.
    pub fn finish(
        mut self,
        score: impl Fn(u32, u32) -> nearsift::sketch::Score,
    ) -> (Vec<Pair>, u64) {
        self.settle();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for (b, heap) in self.left {
            self.kept.extend(heap.into_iter().map(|(_, a)| Pair { a, b, score: score(a, b) }));
        }
        self.kept.sort_unstable();
        (self.kept, self.passed_over)
    }
}

#[cfg(test)]
mod tests {
    use nearsift::sketch::Score;

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
            let mut crowds = Crowds::new(best);
            pairs.iter().for_each(|&pair| crowds.push(pair));
            let (kept, passed_over) = crowds.finish(score);
            assert_eq!(kept, naive(&pairs, best), "{documents} documents, the best {best}");
            assert_eq!(kept.len() as u64 + passed_over, pairs.len() as u64);
            assert!(kept.len() <= 2 * best * documents as usize);
        }
    }
}
