//! Chains: seeds that two documents share in the same order and near one diagonal.
//!
//! # References
//! Li, 'Minimap2: pairwise alignment for nucleotide sequences', Bioinformatics 34, 2018, section 2.1:
//! chaining with a bounded look back.

use std::ops::Range;

use super::seed::{SEED, WINDOW};

/// A place of a seed in two documents, in bytes of their letters.
pub(super) type Hit = (u32, u32);

/// Two seeds further apart, in bytes of letters, are of two passages.
const GAP: u32 = 900;

/// A seed looks back at so many others for the one before it.
const LOOK_BACK: usize = 48;

/// The passages of a pair, the longest first; more are left out.
const MAX_CHAINS: usize = 32;

/// Where a passage stands in two documents, by its first and last seed: in bytes of their letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub(super) a: Range<u32>,
    pub(super) b: Range<u32>,
    /// The number of its seeds.
    pub(super) hits: u32,
}

/// Makes chains, and keeps its working memory from pair to pair.
#[derive(Debug, Default)]
pub(super) struct Chainer {
    /// For each hit the score of the best chain that ends with it, and the hit before it.
    best: Vec<(u32, u32)>,
    order: Vec<u32>,
    used: Vec<bool>,
}

const NONE: u32 = u32::MAX;

impl Chainer {
    /// Appends the chains of two or more hits that span `least` bytes in both documents; in the order
    /// of the first document. `hits` ascend.
    ///
    /// # Complexity
    /// O(n log n + 48 n) for n hits.
    pub(super) fn chains(&mut self, hits: &[Hit], least: u32, chains: &mut Vec<Chain>) {
        let Chainer { best, order, used } = self;
        best.clear();
        for (i, &(a, b)) in hits.iter().enumerate() {
            let mut own = (SEED as u32, NONE);
            for j in (i.saturating_sub(LOOK_BACK)..i).rev() {
                let (da, db) = (a - hits[j].0, b.wrapping_sub(hits[j].1));
                if da > GAP {
                    break;
                }
                if da == 0 || db == 0 || db > GAP {
                    continue;
                }
                let fresh = (SEED as u32).min(da).min(db);
                let score = (best[j].0 + fresh).saturating_sub(da.abs_diff(db) / 8);
                if score > own.0 {
                    own = (score, j as u32);
                }
            }
            best.push(own);
        }
        order.clear();
        order.extend(0..hits.len() as u32);
        order.sort_unstable_by_key(|&i| (std::cmp::Reverse(best[i as usize].0), i));
        used.clear();
        used.resize(hits.len(), false);
        let from = chains.len();
        for &last in &*order {
            if best[last as usize].1 == NONE || chains.len() - from == MAX_CHAINS {
                break;
            }
            let mut first = last as usize;
            if used[first] {
                continue;
            }
            let mut count = 1u32;
            used[first] = true;
            while let before = best[first].1
                && before != NONE
                && !used[before as usize]
            {
                first = before as usize;
                used[first] = true;
                count += 1;
            }
            let (start, end) = (hits[first], hits[last as usize]);
            let seed = SEED as u32;
            let chain = Chain { a: start.0..end.0 + seed, b: start.1..end.1 + seed, hits: count };
            let long = chain.a.len().min(chain.b.len()) >= least as usize;
            if count > 1 && long && !chains[from..].iter().any(|other| other.covers(&chain)) {
                chains.push(chain);
            }
        }
        chains[from..].sort_unstable_by_key(|chain| (chain.a.start, chain.b.start));
    }
}

impl Chain {
    /// About how many bytes of letters both sides have in common, judged by the seeds: in equal texts
    /// a window has two on average.
    pub(super) fn shared(&self) -> u64 {
        let length = u64::from((self.a.end - self.a.start).min(self.b.end - self.b.start));
        length.min(u64::from(self.hits) * (WINDOW as u64 + 1))
    }

    /// Whether most of the other is in this one, in one of the documents: it repeats what was found.
    fn covers(&self, other: &Chain) -> bool {
        let most = |x: &Range<u32>, y: &Range<u32>| {
            let both = x.end.min(y.end).saturating_sub(x.start.max(y.start));
            2 * u64::from(both) > u64::from(y.end - y.start)
        };
        most(&self.a, &other.a) || most(&self.b, &other.b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_by_example() {
        let check = |hits: &[Hit], expect: &[[u32; 4]]| {
            let mut hits = hits.to_vec();
            hits.sort_unstable();
            let mut chains = Vec::new();
            Chainer::default().chains(&hits, 40, &mut chains);
            let found: Vec<[u32; 4]> =
                chains.iter().map(|c| [c.a.start, c.a.end, c.b.start, c.b.end]).collect();
            assert_eq!(found, expect, "{hits:?}");
        };
        check(&[], &[]);
        check(&[(0, 0)], &[]);
        // Too short, then long enough.
        check(&[(0, 500), (10, 510)], &[]);
        check(&[(0, 500), (16, 516)], &[[0, 40, 500, 540]]);
        // Against the order in one of the documents.
        check(&[(0, 500), (100, 400)], &[]);
        // Too far apart, so two passages; a stray hit is in none.
        check(
            &[(0, 500), (100, 600), (7, 90), (2000, 700), (2100, 800)],
            &[[0, 124, 500, 624], [2000, 2124, 700, 824]],
        );
        // A second copy in one document repeats what was found.
        check(&[(0, 0), (90, 90), (180, 180), (0, 5000), (90, 5090)], &[[0, 204, 0, 204]]);
    }
}
