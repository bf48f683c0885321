//! Connected components.

use super::{Clusters, KeepOrder};

/// Collects links, in any order and any number, into connected components; 8 bytes a document.
///
/// # Complexity
/// O(n + links * a(n)), where a is the inverse of Ackermann's function.
///
/// # References
/// Tarjan and van Leeuwen, 'Worst-case analysis of set union algorithms', JACM 31(2), 1984:
/// union by size and path halving.
#[derive(Debug, Clone)]
pub struct Components {
    parents: Vec<u32>,
    /// The size of each root's set.
    sizes: Vec<u32>,
}

impl Components {
    /// Documents none of which is linked yet.
    ///
    /// # Panics
    /// When there are 2^32 documents or more.
    pub fn new(documents: usize) -> Components {
        let documents = u32::try_from(documents).expect("documents are numbered in 32 bits");
        Components { parents: (0..documents).collect(), sizes: vec![1; documents as usize] }
    }

    /// Links two documents.
    pub fn link(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let (small, large) =
            if self.sizes[a as usize] < self.sizes[b as usize] { (a, b) } else { (b, a) };
        self.parents[small as usize] = large;
        self.sizes[large as usize] += self.sizes[small as usize];
    }

    /// The document that stands for all that are linked with this one: which of them it is depends on the
    /// order of the links.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn root(&mut self, mut document: u32) -> u32 {
        loop {
            let parent = self.parents[document as usize];
            if parent == document {
                return document;
            }
            let above = self.parents[parent as usize];
            self.parents[document as usize] = above;
            document = above;
        }
    }

    /// The number of documents that a root stands for.
    pub(super) fn size(&self, root: u32) -> u32 {
        self.sizes[root as usize]
    }

    /// The components, each represented by its best member.
    ///
    /// # Panics
    /// When `keep` is an order of another number of documents.
    pub fn finish(mut self, keep: &KeepOrder) -> Clusters {
        keep.check_covers(self.parents.len());
        let documents = 0..self.parents.len() as u32;
        // Once the roots are known the sizes are not needed: the room serves for each root's best
        // member, and then for each root's smallest.
        let mut roots: Vec<u32> = documents.clone().map(|document| self.root(document)).collect();
        drop(self.parents);
        let (representatives, mut smallest) = best_of_each(&roots, keep, self.sizes);
        smallest.fill(u32::MAX);
        for document in documents {
            let smallest = &mut smallest[roots[document as usize] as usize];
            *smallest = (*smallest).min(document);
        }
        for root in &mut roots {
            *root = smallest[*root as usize];
        }
        Clusters { labels: roots, representatives, divided: Vec::new() }
    }
}

/// For each document the best one of those with the same root, and the room for as many numbers that
/// was used for it.
fn best_of_each(roots: &[u32], keep: &KeepOrder, mut room: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    room.fill(u32::MAX);
    for (&root, document) in roots.iter().zip(0..) {
        let best = &mut room[root as usize];
        if *best == u32::MAX || keep.rank(document) < keep.rank(*best) {
            *best = document;
        }
    }
    (roots.iter().map(|&root| room[root as usize]).collect(), room)
}

impl Clusters {
    /// The connected components of pairs of documents.
    ///
    /// # Panics
    /// When a pair names a document beyond those, or `keep` ranks another number of documents.
    pub fn components(
        documents: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
        keep: &KeepOrder,
    ) -> Clusters {
        let mut components = Components::new(documents);
        for (a, b) in pairs {
            components.link(a, b);
        }
        components.finish(keep)
    }
}
