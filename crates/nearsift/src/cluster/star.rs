//! Stars: clusters all of whose members are directly linked to the one that is kept.

use super::{Clusters, KeepOrder};

/// No representative yet.
const FREE: u32 = u32::MAX;

impl Clusters {
    /// The stars of pairs of documents: going through the documents from the best one on, each that
    /// has no representative yet becomes the representative of itself and of all documents without
    /// one that it is paired with.
    ///
    /// So every removed document is directly paired with its representative, which is better; and
    /// no two kept documents are paired.
    ///
    /// # Panics
    /// When a pair names a document beyond those, or `keep` ranks another number of documents.
    ///
    /// # Complexity
    /// O(n + pairs * log(pairs)); 8 bytes a pair.
    ///
    /// # References
    /// Aslam, Pelekhov and Rus, 'The star clustering algorithm for static and dynamic information
    /// organization', JGAA 8(1), 2004, with the order of keeping in the place of degrees.
    pub fn stars(
        documents: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
        keep: &KeepOrder,
    ) -> Clusters {
        keep.check_covers(documents);
        let mut ranked: Vec<(u32, u32)> = pairs
            .into_iter()
            .filter(|(a, b)| a != b)
            .map(|(a, b)| (keep.rank(a), keep.rank(b)))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .collect();
        ranked.sort_unstable();
        let mut chosen = vec![FREE; documents];
        for (better, worse) in ranked {
            if chosen[better as usize] == FREE && chosen[worse as usize] == FREE {
                chosen[worse as usize] = better;
            }
        }
        Clusters::by_rank(&chosen, keep)
    }

    /// Clusters of the chosen representatives, both given by rank; free ones represent themselves.
    fn by_rank(chosen: &[u32], keep: &KeepOrder) -> Clusters {
        let order = keep.best_first();
        let representative = |document: u32| {
            let rank = keep.rank(document);
            let chosen = chosen[rank as usize];
            order[if chosen == FREE { rank } else { chosen } as usize]
        };
        Clusters::by_representative((0..chosen.len() as u32).map(representative).collect())
    }
}
