//! Chains: seeds that two documents share in the same order and near one diagonal.
//!
//! # References
//! Li, 'Minimap2: pairwise alignment for nucleotide sequences', Bioinformatics 34, 2018, section 2.1:
//! chaining with a bounded look back.

use std::ops::Range;

use super::seed::SEED;

/// A place of a seed in two documents, in bytes of their letters.
pub(super) type Hit = (u32, u32);

/// Two seeds further apart, in bytes of letters, are of two passages.
const GAP: u32 = 900;

/// The number of earlier seeds among which a seed's predecessor is chosen.
const LOOK_BACK: usize = 48;

/// The passages of a pair, the longest first; more are left out.
const MAX_CHAINS: usize = 32;

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
    /// The chains of two or more hits: the hits of all, one chain after the other, and where among them
    /// each chain ends. Chains are in the order of their first hits, and so are the hits of each.
    /// `hits` ascend.
    ///
    /// # Complexity
    /// O(n log n + 48 n) for n hits.
    pub(super) fn chains(&mut self, hits: &[Hit]) -> (Vec<Hit>, Vec<u32>) {
        self.fill_best(hits);
        let Chainer { best, order, used } = self;
        order.clear();
        order.extend(0..hits.len() as u32);
        order.sort_unstable_by_key(|&i| (std::cmp::Reverse(best[i as usize].0), i));
        used.clear();
        used.resize(hits.len(), false);
        let mut chains: Vec<Vec<Hit>> = Vec::new();
        for &last in &*order {
            if best[last as usize].1 == NONE || chains.len() == MAX_CHAINS {
                break;
            }
            let mut chain = Vec::new();
            let mut at = last;
            while at != NONE && !used[at as usize] {
                used[at as usize] = true;
                chain.push(hits[at as usize]);
                at = best[at as usize].1;
            }
            chain.reverse();
            if chain.len() > 1 && !chains.iter().any(|other| covers(other, &chain)) {
                chains.push(chain);
            }
        }
        chains.sort_unstable_by_key(|chain| chain[0]);
        let mut ends = Vec::with_capacity(chains.len());
        let mut all = Vec::with_capacity(chains.iter().map(Vec::len).sum());
        for chain in &chains {
            all.extend_from_slice(chain);
            ends.push(all.len() as u32);
        }
        (all, ends)
    }

    /// Fills in the best chain that ends with each hit.
    fn fill_best(&mut self, hits: &[Hit]) {
        let best = &mut self.best;
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
    }
}

/// Whether most of a chain is in another one, in one of the documents: it repeats what was found.
fn covers(other: &[Hit], chain: &[Hit]) -> bool {
    let spans = |chain: &[Hit]| {
        let ((a, b), (c, d)) = (chain[0], chain[chain.len() - 1]);
        [a..c + SEED as u32, b..d + SEED as u32]
    };
    let most = |(x, y): (Range<u32>, Range<u32>)| {
        let both = x.end.min(y.end).saturating_sub(x.start.max(y.start));
        2 * u64::from(both) > u64::from(y.end - y.start)
    };
    spans(other).into_iter().zip(spans(chain)).any(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_by_example() {
        let check = |hits: &[Hit], expect: &[&[Hit]]| {
            let mut hits = hits.to_vec();
            hits.sort_unstable();
            let (all, ends) = Chainer::default().chains(&hits);
            let mut from = 0;
            let found: Vec<&[Hit]> = ends
                .iter()
                .map(|&to| &all[std::mem::replace(&mut from, to as usize)..to as usize])
                .collect();
            assert_eq!(found, expect, "{hits:?}");
        };
        check(&[], &[]);
        check(&[(0, 0)], &[]);
        check(&[(0, 500), (1, 501)], &[&[(0, 500), (1, 501)]]);
        // Against the order in one of the documents.
        check(&[(0, 500), (100, 400)], &[]);
        // Too far apart, so two passages; a stray hit is in none.
        check(
            &[(0, 500), (100, 600), (7, 90), (2000, 700), (2100, 800)],
            &[&[(0, 500), (100, 600)], &[(2000, 700), (2100, 800)]],
        );
        // A second copy in one document repeats what was found.
        check(
            &[(0, 0), (90, 90), (180, 180), (0, 5000), (90, 5090)],
            &[&[(0, 0), (90, 90), (180, 180)]],
        );
    }
}
