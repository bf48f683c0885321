//! Which document is better than which.

/// The order in which documents would be kept: of two near-duplicates the one that stands earlier.
///
/// It is a total order. What makes a document better, be it length, date or a field, is the
/// caller's policy; documents that the policy holds equal keep their own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepOrder {
    /// The place of each document, 0 for the best.
    ranks: Vec<u32>,
}

/// Why ranks are not an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "ranks of {documents} documents must be 0 to {documents} - 1, each once: document {document} has rank {rank}, which is too large or was given before"
)]
pub struct KeepOrderError {
    /// Documents in all.
    pub documents: usize,
    /// The first document whose rank is wrong.
    pub document: u32,
    /// Its rank.
    pub rank: u32,
}

impl KeepOrder {
    /// The documents' own order: the first of a cluster is kept.
    pub fn first(documents: usize) -> KeepOrder {
        KeepOrder { ranks: (0..documents as u32).collect() }
    }

    /// Documents with a smaller key are kept rather than those with a larger one, and of equal keys
    /// the earlier document. Use [`std::cmp::Reverse`] to keep the largest.
    ///
    /// ```
    /// use nearsift::cluster::KeepOrder;
    /// use std::cmp::Reverse;
    /// let dates = ["2024-05-01", "2025-01-31", "2025-01-31"];
    /// let newest = KeepOrder::by_key(&dates, |date| Reverse(*date));
    /// assert_eq!((newest.rank(0), newest.rank(1), newest.rank(2)), (2, 0, 1));
    /// ```
    ///
    /// # Complexity
    /// O(n log n) calls of `key`.
    pub fn by_key<'a, T, K: Ord>(documents: &'a [T], key: impl Fn(&'a T) -> K) -> KeepOrder {
        let mut order: Vec<u32> = (0..documents.len() as u32).collect();
        order.sort_by_key(|&document| key(&documents[document as usize]));
        let mut ranks = vec![0; order.len()];
        for (rank, &document) in order.iter().enumerate() {
            ranks[document as usize] = rank as u32;
        }
        KeepOrder { ranks }
    }

    /// The given rank of each document, 0 for the best, each from 0 to n - 1 given once.
    ///
    /// # Errors
    /// When a rank is n or more, or given twice.
    pub fn from_ranks(ranks: Vec<u32>) -> Result<KeepOrder, KeepOrderError> {
        let mut given = vec![false; ranks.len()];
        for (document, &rank) in ranks.iter().enumerate() {
            match given.get_mut(rank as usize) {
                Some(given) if !*given => *given = true,
                _ => {
                    let (documents, document) = (ranks.len(), document as u32);
                    return Err(KeepOrderError { documents, document, rank });
                }
            }
        }
        Ok(KeepOrder { ranks })
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The place of the document, 0 for the best.
    pub fn rank(&self, document: u32) -> u32 {
        self.ranks[document as usize]
    }

    /// The documents, best first.
    pub fn best_first(&self) -> Vec<u32> {
        let mut order = vec![0; self.ranks.len()];
        for (document, &rank) in self.ranks.iter().enumerate() {
            order[rank as usize] = document as u32;
        }
        order
    }

    /// The same order of documents that have other numbers: each is given its old one.
    pub(crate) fn renumbered(&self, documents: &[u32]) -> KeepOrder {
        KeepOrder { ranks: documents.iter().map(|&document| self.rank(document)).collect() }
    }

    pub(super) fn check_covers(&self, documents: usize) {
        assert_eq!(self.len(), documents, "the order of keeping must rank every document");
    }
}
