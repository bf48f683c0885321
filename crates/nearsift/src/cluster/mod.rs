//! Groups of near-duplicates, and the member of each that is kept.
//!
//! A *component* is a set of documents that are connected, perhaps through others: chains can join
//! documents that are not alike. A *star* holds only documents that are directly linked to its
//! representative. A group by *majority link* holds documents most of whose pairs are alike. Which document is better is the caller's policy, given as a [`KeepOrder`].
//!
//! [`Clusters::by_majority`] and [`Clusters::by_components`] keep as many documents of a group as it takes for
//! each other one to be near the one that stands for it.
//!
//! ```
//! use nearsift::cluster::{Clusters, KeepOrder};
//! use nearsift::fingerprint::{Bits, Fingerprints};
//! use nearsift::join::{SelfJoin, Settings};
//!
//! // A chain: each is 2 bits from the one before.
//! let column = Fingerprints::from_words(Bits::B64, vec![0b000011, 0b001111, 0b111111, 0xff00]);
//! let longest = KeepOrder::by_key(&[30, 90, 60, 10], |length| std::cmp::Reverse(*length));
//!
//! let links = SelfJoin::new(&column, Settings::new(2))?.links();
//! let links = || links.iter().map(|link| (link.a, link.b));
//! let components = Clusters::components(4, links(), &longest);
//! assert_eq!(components.kept().collect::<Vec<_>>(), [1, 3]);
//! assert_eq!(components.representative(2), 1);
//!
//! // In the order of keeping first to last, nothing is left to remove but what is near 0.
//! let stars = Clusters::stars(4, links(), &KeepOrder::first(4));
//! assert_eq!(stars.kept().collect::<Vec<_>>(), [0, 2, 3]);
//! # Ok::<(), nearsift::join::JoinError>(())
//! ```

mod components;
mod cover;
mod id;
mod judge;
mod keep;
mod majority;
mod star;
#[cfg(test)]
mod tests;

pub use components::Components;
pub use id::ClusterId;
pub use judge::{Judge, LinksAlone};
pub use keep::{KeepOrder, KeepOrderError};
pub use majority::{Capped, Grouped, Link, MajorityLink};

/// The cluster of every document and the document that is kept in its place; 8 bytes a document, and 8 for each cluster
/// that keeps several.
///
/// A document that is like no other is a cluster of one and its own representative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    /// The smallest member of each document's cluster.
    labels: Vec<u32>,
    /// The kept document of its cluster that stands for each document.
    representatives: Vec<u32>,
    /// The label and the best kept document of each cluster that keeps several, by label.
    divided: Vec<(u32, u32)>,
}

impl Clusters {
    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.labels.len()
    }

    /// The smallest member of the document's cluster, which names the cluster.
    pub fn label(&self, document: u32) -> u32 {
        self.labels[document as usize]
    }

    /// The document of the same cluster that is kept in this one's place, or this one itself.
    pub fn representative(&self, document: u32) -> u32 {
        self.representatives[document as usize]
    }

    /// The best of the kept documents of the document's cluster.
    pub fn best(&self, document: u32) -> u32 {
        let label = self.label(document);
        match self.divided.binary_search_by_key(&label, |&(label, _)| label) {
            Ok(place) => self.divided[place].1,
            Err(_) => self.representative(label),
        }
    }

    /// Whether the document is kept: it is its own representative.
    pub fn is_kept(&self, document: u32) -> bool {
        self.representative(document) == document
    }

    /// The kept documents, ascending: one or more of each cluster.
    pub fn kept(&self) -> impl Iterator<Item = u32> {
        (0..self.documents() as u32).filter(|&document| self.is_kept(document))
    }

    /// The removed documents, ascending, each with the document that is kept in its place.
    pub fn removed(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.documents() as u32)
            .map(|document| (document, self.representative(document)))
            .filter(|(document, representative)| document != representative)
    }

    /// The clusters with all their members.
    ///
    /// # Complexity
    /// O(n) time; 4 bytes a document and 4 a cluster.
    pub fn members(&self) -> Members<'_> {
        // A counting sort by label; labels are numbered as they appear, which is ascending.
        let mut number = vec![0u32; self.documents()];
        let mut ends: Vec<u32> = Vec::new();
        for (document, &label) in self.labels.iter().enumerate() {
            if label as usize == document {
                number[document] = ends.len() as u32;
                ends.push(0);
            }
            ends[number[label as usize] as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut documents = vec![0; self.documents()];
        for (document, &label) in self.labels.iter().enumerate() {
            let place = &mut ends[number[label as usize] as usize];
            documents[*place as usize] = document as u32;
            *place += 1;
        }
        Members { clusters: self, ends, documents }
    }

    /// How many clusters there are of each size: `(size, clusters)`, sizes ascending.
    pub fn sizes(&self) -> Vec<(u32, u32)> {
        let mut sizes = self.sizes_by_label();
        sizes.retain(|size| *size > 0);
        sizes.sort_unstable();
        sizes.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect()
    }

    /// The clusters of more than `most` documents, by label: of these the caller should warn, since
    /// a component that large is more often a chain of chance links or a page template than one text.
    pub fn oversized(&self, most: u32) -> Vec<Oversized> {
        let sizes = self.sizes_by_label();
        (0..self.documents() as u32)
            .map(|label| Oversized {
                label,
                representative: self.best(label),
                documents: sizes[label as usize],
            })
            .filter(|cluster| cluster.documents > most)
            .collect()
    }

    fn sizes_by_label(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.documents()];
        for &label in &self.labels {
            sizes[label as usize] += 1;
        }
        sizes
    }

    /// Clusters that keep one document each, by their representatives.
    pub(crate) fn by_representative(representatives: Vec<u32>) -> Clusters {
        Clusters::of_kept(representatives, |representative| representative)
    }

    /// Clusters by the representative of each document, and the best kept document of each representative's
    /// cluster.
    pub(crate) fn of_kept(representatives: Vec<u32>, best_of: impl Fn(u32) -> u32) -> Clusters {
        let mut smallest = vec![u32::MAX; representatives.len()];
        for (document, &representative) in (0..).zip(&representatives) {
            let smallest = &mut smallest[best_of(representative) as usize];
            *smallest = (*smallest).min(document);
        }
        let label = |&r: &u32| smallest[best_of(r) as usize];
        let labels: Vec<u32> = representatives.iter().map(label).collect();
        let mut divided: Vec<(u32, u32)> = (0..)
            .zip(&representatives)
            .filter(|&(document, &representative)| document == representative)
            .map(|(kept, _)| (kept, best_of(kept)))
            .filter(|(kept, best)| kept != best)
            .map(|(_, best)| (labels[best as usize], best))
            .collect();
        divided.sort_unstable();
        divided.dedup();
        Clusters { labels, representatives, divided }
    }

    /// The same clusters, given the document that each one here stands for and the number here of each document.
    pub(crate) fn renumbered(&self, documents: &[u32], numbers: &[u32]) -> Clusters {
        let document = |number: u32| documents[number as usize];
        let number = |document: u32| numbers[document as usize];
        let representatives = numbers.iter().map(|&n| document(self.representative(n))).collect();
        Clusters::of_kept(representatives, |kept| document(self.best(number(kept))))
    }

    /// These clusters, of which other ones that lie within them and keep their best say what is kept.
    pub(crate) fn keeping(&self, kept: &Clusters) -> Clusters {
        Clusters::of_kept(kept.representatives.clone(), |kept| self.best(kept))
    }

    /// The clusters of other documents, each of which goes where its leader is: a leader leads itself.
    pub(crate) fn following(&self, leaders: &[u32]) -> Clusters {
        let representatives = leaders.iter().map(|&leader| self.representative(leader)).collect();
        Clusters::of_kept(representatives, |representative| self.best(representative))
    }
}

/// A cluster above the size that was thought possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversized {
    /// Its smallest member.
    pub label: u32,
    /// The member that is kept, or the best of several.
    pub representative: u32,
    /// Its size.
    pub documents: u32,
}

/// Clusters with their members, by label.
#[derive(Debug)]
pub struct Members<'a> {
    clusters: &'a Clusters,
    ends: Vec<u32>,
    documents: Vec<u32>,
}

/// One cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// Its smallest member, which names it.
    pub label: u32,
    /// The member that is kept, or the best of several.
    pub representative: u32,
    /// All members, ascending, the representative among them.
    pub members: &'a [u32],
}

impl Members<'_> {
    /// The number of clusters, those of one document included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no document at all.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Every cluster, those of one document included, by label.
    pub fn iter(&self) -> impl Iterator<Item = Cluster<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let members = &self.documents[start..end as usize];
            start = end as usize;
            let label = members[0];
            Cluster { label, representative: self.clusters.best(label), members }
        })
    }

    /// The clusters of two documents or more, by label.
    pub fn duplicates(&self) -> impl Iterator<Item = Cluster<'_>> {
        self.iter().filter(|cluster| cluster.members.len() > 1)
    }
}
