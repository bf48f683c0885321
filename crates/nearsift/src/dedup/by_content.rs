//! Documents in an order that their contents decide, whatever the order of the input.

use crate::cluster::{Grouped, KeepOrder, Link};
use crate::threads::sort_by_key;

/// The documents of a corpus by the order of their contents: each has a place. 8 bytes a document.
///
/// Where links are equally strong, and where the members of a sample are chosen, majority link goes by numbers. With
/// places in that role the groups are the same however the documents are ordered in the input.
pub(super) struct ByContent {
    /// The document at each place.
    documents: Vec<u32>,
    places: Vec<u32>,
}

impl ByContent {
    /// Sorts `documents` documents by key; those with equal keys stay in their order.
    pub fn sorted_by_key<K: Ord>(documents: usize, key: impl Fn(u32) -> K + Sync) -> ByContent {
        let mut order: Vec<u32> = (0..documents as u32).collect();
        sort_by_key(&mut order, |&document| (key(document), document));
        ByContent::new(order)
    }

    /// Given all documents in their order.
    pub fn new(documents: Vec<u32>) -> ByContent {
        let mut places = vec![0; documents.len()];
        for (place, &document) in (0..).zip(&documents) {
            places[document as usize] = place;
        }
        ByContent { documents, places }
    }

    pub fn document(&self, place: u32) -> u32 {
        self.documents[place as usize]
    }

    /// The link of two documents as one of their places.
    pub fn link(&self, link: Link) -> Link {
        let place = |document: u32| self.places[document as usize];
        Link { a: place(link.a), b: place(link.b), ..link }
    }

    /// Groups of documents from groups of places.
    ///
    /// # Errors
    /// What `group` returns.
    pub fn group<E>(
        &self,
        keep: &KeepOrder,
        group: impl FnOnce(&KeepOrder) -> Result<Grouped, E>,
    ) -> Result<Grouped, E> {
        let Grouped { clusters, capped, mut judged } = group(&keep.renumbered(&self.documents))?;
        for link in &mut judged {
            let (a, b) = (self.document(link.a), self.document(link.b));
            (link.a, link.b) = (a.min(b), a.max(b));
        }
        judged.sort_unstable_by_key(|link| (link.a, link.b));
        let clusters = clusters.renumbered(&self.documents, &self.places);
        Ok(Grouped { clusters, capped, judged })
    }
}
