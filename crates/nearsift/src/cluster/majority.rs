//! Groups most of whose members are alike: majority link.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Clusters, Components, KeepOrder};
use crate::threads::{in_pool, sort_by_key};

/// An accepted pair of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// One document.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// How alike they are, on any scale: stronger links are followed first.
    pub strength: u32,
}

/// How groups grow by majority link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MajorityLink {
    /// No group has more documents.
    pub max_cluster: u32,
}

impl Default for MajorityLink {
    /// Groups of at most 10,000 documents: a larger one is more often a template than a text.
    fn default() -> MajorityLink {
        MajorityLink { max_cluster: 10_000 }
    }
}

/// What the largest size of a group kept apart; of this the caller should warn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capped {
    /// The clusters that would have been joined with another one.
    pub groups: u32,
    /// The links that would have joined them.
    pub links: u64,
}

/// At most this many cross pairs of two groups are looked at.
const SAMPLE: usize = 16;

/// The side of a square sample.
const SIDE: usize = 4;

/// The end of a list of documents.
const END: u32 = u32::MAX;

impl Clusters {
    /// Groups by majority link: links are followed from the strongest to the weakest, and two groups
    /// become one only when at least half of a sample of their cross pairs are accepted.
    ///
    /// A cross pair is one document of each group. It is accepted when it is among the links, and else
    /// when a judge says so, which is asked with the smaller number first and once about a pair. So a
    /// chain of documents each like the next one alone stays in parts, and a group whose members are
    /// like each other stays whole even if some of their pairs were never candidates: for these the judge
    /// compares the documents. When it always refuses, the links alone decide.
    ///
    /// All cross pairs are looked at while there are at most 16; of more, those of a few members of
    /// each group that a hash of their numbers chooses. Which they are depends on the two groups
    /// alone, so the clusters do not depend on the order of the links.
    ///
    /// Where the union of two groups would have more than `max_cluster` documents they stay apart, and
    /// are counted. Of a pair that is given twice the stronger link counts.
    ///
    /// ```
    /// use nearsift::cluster::{Clusters, KeepOrder, Link, MajorityLink};
    /// // A chain: each document is like the one before and like no other.
    /// let chain = [(0, 1, 9), (1, 2, 8), (2, 3, 9)].map(|(a, b, strength)| Link { a, b, strength });
    /// let rule = MajorityLink { max_cluster: 100 };
    /// let (clusters, _) = Clusters::by_majority(4, chain, rule, &KeepOrder::first(4), || |_, _| false);
    /// assert_eq!(clusters.kept().collect::<Vec<_>>(), [0, 2]);
    /// ```
    ///
    /// # Panics
    /// When a link names a document beyond those, `keep` ranks another number of documents, or
    /// there are 2^32 documents or more.
    ///
    /// Groups never reach over connected components of the links, which are shared out among the threads of
    /// the rayon pool that this is called in, if it is in one: `judges` makes a judge for each of them.
    ///
    /// # Complexity
    /// O(links x log(links)), and for each link at most 16 looks at a cross pair; a judge is called at
    /// most once for each cross pair looked at, in practice for a few of each merger. 28 bytes a link,
    /// 28 a document, and 15 to 30 for each pair judged in a component.
    ///
    /// # References
    /// Sokal and Michener, 'A statistical method for evaluating systematic relationships', University
    /// of Kansas Science Bulletin 38, 1958: average linkage, here of yes and no, and sampled.
    pub fn by_majority<J: FnMut(u32, u32) -> bool>(
        documents: usize,
        links: impl IntoIterator<Item = Link>,
        rule: MajorityLink,
        keep: &KeepOrder,
        judges: impl Fn() -> J + Sync,
    ) -> (Clusters, Capped) {
        keep.check_covers(documents);
        let mut links = distinct(links);
        let neighbours = Neighbours::of(documents, &links);
        tell_components(documents, &mut links);
        let order = |Linked { component, link }: &Linked| {
            (*component, Reverse(link.strength), link.a, link.b)
        };
        sort_by_key(&mut links, order);
        let mut parts: Vec<&[Linked]> = links.chunk_by(|x, y| x.component == y.component).collect();
        // The largest first, so that no thread is left with one when the others have none.
        parts.sort_by_key(|part| Reverse(part.len()));

        let next = AtomicUsize::new(0);
        let work = || {
            let (mut pairs, mut capped) = (Vec::new(), Capped::default());
            let mut judge = judges();
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (groups, more) = grow(part, rule, &neighbours, &mut judge);
                pairs.extend(groups.pairs());
                capped.groups += more.groups;
                capped.links += more.links;
            }
            (pairs, capped)
        };
        let done = match in_pool() {
            true => rayon::broadcast(|_| work()),
            false => vec![work()],
        };
        let mut groups = Components::new(documents);
        let mut capped = Capped::default();
        for (pairs, more) in done {
            pairs.into_iter().for_each(|(a, b)| groups.link(a, b));
            capped.groups += more.groups;
            capped.links += more.links;
        }
        (groups.finish(keep), capped)
    }
}

/// A link among those of its connected component.
struct Linked {
    /// A document that stands for the component, once that is told.
    component: u32,
    link: Link,
}

/// Tells the components of links among so many documents.
fn tell_components(documents: usize, links: &mut [Linked]) {
    let mut components = Components::new(documents);
    links.iter().for_each(|linked| components.link(linked.link.a, linked.link.b));
    links.iter_mut().for_each(|linked| linked.component = components.root(linked.link.a));
}

/// The groups of a connected component of the links, given from the strongest to the weakest.
fn grow<J: FnMut(u32, u32) -> bool>(
    links: &[Linked],
    rule: MajorityLink,
    neighbours: &Neighbours,
    judge: &mut J,
) -> (Groups, Capped) {
    let mut groups = Groups::of(links);
    let mut accepted = Accepted { neighbours, judged: HashMap::new(), judge };
    let mut capped = Capped::default();
    let mut at_cap = Vec::new();
    for Linked { link, .. } in links {
        let (a, b) = (groups.root(link.a), groups.root(link.b));
        if a == b || !groups.most_accepted(a, b, &mut accepted) {
            continue;
        }
        if groups.components.size(a).saturating_add(groups.components.size(b)) > rule.max_cluster {
            capped.links += 1;
            at_cap.extend([a, b]);
            continue;
        }
        groups.merge(a, b);
    }
    for place in &mut at_cap {
        *place = groups.components.root(*place);
    }
    at_cap.sort_unstable();
    at_cap.dedup();
    capped.groups = at_cap.len() as u32;
    (groups, capped)
}

/// The links by pair, each once, the smaller document first.
fn distinct(links: impl IntoIterator<Item = Link>) -> Vec<Linked> {
    let mut links: Vec<Linked> = links
        .into_iter()
        .filter(|link| link.a != link.b)
        .map(|link| Linked {
            component: 0,
            link: Link { a: link.a.min(link.b), b: link.a.max(link.b), ..link },
        })
        .collect();
    let order = |Linked { link, .. }: &Linked| (link.a, link.b, Reverse(link.strength));
    sort_by_key(&mut links, order);
    links.dedup_by_key(|Linked { link, .. }| (link.a, link.b));
    links
}

/// Whether pairs are accepted.
struct Accepted<'a, J> {
    neighbours: &'a Neighbours,
    judged: HashMap<(u32, u32), bool>,
    judge: &'a mut J,
}

impl<J: FnMut(u32, u32) -> bool> Accepted<'_, J> {
    /// What needs no judgement: links, and pairs that were judged before.
    fn known(&self, a: u32, b: u32) -> Option<bool> {
        if self.neighbours.contains(a, b) {
            return Some(true);
        }
        self.judged.get(&(a, b)).copied()
    }

    fn judge(&mut self, a: u32, b: u32) -> bool {
        let yes = (self.judge)(a, b);
        self.judged.insert((a, b), yes);
        yes
    }
}

/// The links of each document to larger ones.
struct Neighbours {
    ends: Vec<usize>,
    larger: Vec<u32>,
}

impl Neighbours {
    /// Of distinct links in the order of their pairs.
    fn of(documents: usize, links: &[Linked]) -> Neighbours {
        let mut ends = vec![0; documents];
        for (at, Linked { link, .. }) in links.iter().enumerate() {
            ends[link.a as usize] = at + 1;
        }
        // A document without a link ends where the one before it does.
        let mut end = 0;
        for own in &mut ends {
            end = end.max(*own);
            *own = end;
        }
        Neighbours { ends, larger: links.iter().map(|linked| linked.link.b).collect() }
    }

    fn contains(&self, a: u32, b: u32) -> bool {
        let start = a.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        self.larger[start..self.ends[a as usize]].binary_search(&b).is_ok()
    }
}

/// The groups of some documents so far, each with the few members that stand for it. Here documents have
/// their places among these.
struct Groups {
    /// Ascending.
    documents: Vec<u32>,
    components: Components,
    /// The first document of each root's list: of its group the 16 members whose hash is smallest.
    heads: Vec<u32>,
    /// The next document of a list.
    next: Vec<u32>,
}

impl Groups {
    /// Each document that is linked, alone.
    fn of(links: &[Linked]) -> Groups {
        let ends = links.iter().flat_map(|linked| [linked.link.a, linked.link.b]);
        let mut documents: Vec<u32> = ends.collect();
        documents.sort_unstable();
        documents.dedup();
        let n = documents.len();
        let components = Components::new(n);
        Groups { documents, components, heads: (0..n as u32).collect(), next: vec![END; n] }
    }

    /// The place of the document that stands for this one.
    fn root(&mut self, document: u32) -> u32 {
        let place = self.documents.partition_point(|&other| other < document);
        self.components.root(place as u32)
    }

    /// Pairs of documents that link each group.
    fn pairs(mut self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.documents.len()).map(move |place| {
            let root = self.components.root(place as u32);
            (self.documents[root as usize], self.documents[place])
        })
    }

    /// The members of a root's list, by hash.
    fn listed(&self, root: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.heads[root as usize]), |&place| {
            Some(self.next[place as usize]).filter(|&next| next != END)
        })
    }

    /// Whether at least half of the sampled cross pairs of two roots' groups are accepted.
    fn most_accepted<J: FnMut(u32, u32) -> bool>(
        &self,
        a: u32,
        b: u32,
        accepted: &mut Accepted<'_, J>,
    ) -> bool {
        let (size_a, size_b) = (self.components.size(a) as usize, self.components.size(b) as usize);
        let (rows, columns) = sample(size_a, size_b);
        let mut votes = Votes { pairs: rows * columns, yes: 0, no: 0 };
        // What is known is free: often it decides.
        let mut open = Vec::new();
        for x in self.listed(a).take(rows) {
            for y in self.listed(b).take(columns) {
                let (a, b) = (self.documents[x.min(y) as usize], self.documents[x.max(y) as usize]);
                match accepted.known(a, b) {
                    Some(yes) => votes.count(yes),
                    None => open.push((a, b)),
                }
            }
        }
        for (a, b) in open {
            if votes.decided() {
                break;
            }
            votes.count(accepted.judge(a, b));
        }
        votes.most()
    }

    fn merge(&mut self, a: u32, b: u32) {
        let mut members: Vec<u32> = self.listed(a).chain(self.listed(b)).collect();
        members.sort_unstable_by_key(|&place| mix(self.documents[place as usize]));
        members.truncate(SAMPLE);
        self.components.link(a, b);
        let root = self.components.root(a);
        self.heads[root as usize] = members[0];
        for pair in members.windows(2) {
            self.next[pair[0] as usize] = pair[1];
        }
        self.next[members[members.len() - 1] as usize] = END;
    }
}

/// How many of some cross pairs are accepted.
struct Votes {
    pairs: usize,
    yes: usize,
    no: usize,
}

impl Votes {
    fn count(&mut self, yes: bool) {
        *(if yes { &mut self.yes } else { &mut self.no }) += 1;
    }

    /// Whether at least half are.
    fn most(&self) -> bool {
        2 * self.yes >= self.pairs
    }

    /// Whether those not yet counted cannot change the answer.
    fn decided(&self) -> bool {
        self.most() || 2 * self.no > self.pairs
    }
}

/// How many members of each of two groups make the sample: all of both if that is at most 16 pairs.
fn sample(size_a: usize, size_b: usize) -> (usize, usize) {
    let members = |own: usize, other: usize| own.min(SAMPLE / other.min(SIDE));
    (members(size_a, size_b), members(size_b, size_a))
}

/// A one-to-one hash of a document's number: no two members of a group are equal in it.
///
/// # References
/// Wellons, 'Prospecting for hash functions', 2018: two rounds with low bias.
fn mix(document: u32) -> u32 {
    let x = (document ^ document >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    /// What is asked in a case: documents, links, and further pairs that a judge accepts.
    type Case = (usize, Vec<Link>, BTreeSet<(u32, u32)>);

    fn case() -> impl Strategy<Value = Case> {
        (2usize..40, 1usize..6).prop_flat_map(|(n, density)| {
            let pair = || (0..n as u32, 0..n as u32);
            let link = (pair(), 0u32..4).prop_map(|((a, b), strength)| Link { a, b, strength });
            let accepted = prop::collection::btree_set(pair(), 0..n * density);
            (Just(n), prop::collection::vec(link, 0..n * density), accepted)
        })
    }

    fn rule(max_cluster: u32) -> MajorityLink {
        MajorityLink { max_cluster }
    }

    fn by_majority(
        n: usize,
        links: &[Link],
        max_cluster: u32,
        judge: impl Fn(u32, u32) -> bool + Sync,
    ) -> (Clusters, Capped) {
        let links = links.iter().copied();
        let keep = KeepOrder::first(n);
        Clusters::by_majority(n, links, rule(max_cluster), &keep, || &judge)
    }

    /// The same with sets, from the words of the definition.
    fn naive(
        n: usize,
        links: &[Link],
        max_cluster: usize,
        judge: impl Fn(u32, u32) -> bool,
    ) -> (Vec<BTreeSet<u32>>, Capped) {
        let mut groups: Vec<BTreeSet<u32>> = (0..n as u32).map(|d| BTreeSet::from([d])).collect();
        let mut links: Vec<(Reverse<u32>, u32, u32)> = links
            .iter()
            .map(|link| (Reverse(link.strength), link.a.min(link.b), link.a.max(link.b)))
            .collect();
        links.sort_unstable();
        let accepted = |x: u32, y: u32| {
            let (a, b) = (x.min(y), x.max(y));
            links.iter().any(|link| (link.1, link.2) == (a, b)) || judge(a, b)
        };
        let (mut refused, mut capped) = (BTreeSet::new(), BTreeSet::new());
        for &(_, a, b) in &links {
            let of = |groups: &[BTreeSet<u32>], d| groups.iter().position(|g| g.contains(&d));
            let (x, y) = (of(&groups, a).expect("a group"), of(&groups, b).expect("a group"));
            // A pair that is given again with a weaker link is not looked at again.
            if x == y || !refused.insert((a, b)) {
                continue;
            }
            let (left, right) = (&groups[x], &groups[y]);
            let (rows, columns) = match (left.len(), right.len()) {
                (l, r) if l * r <= 16 => (l, r),
                (l, r) if l >= 4 && r >= 4 => (4, 4),
                (l, r) if l < r => (l, 16 / l),
                (_, r) => (16 / r, r),
            };
            let chosen = |group: &BTreeSet<u32>, count: usize| {
                let mut members: Vec<u32> = group.iter().copied().collect();
                members.sort_by_key(|d| mix(*d));
                members.truncate(count);
                members
            };
            let mut votes = Vec::new();
            for x in chosen(left, rows) {
                for y in chosen(right, columns) {
                    votes.push(accepted(x, y));
                }
            }
            if votes.iter().filter(|yes| **yes).count() * 2 < votes.len() {
                continue;
            }
            if left.len() + right.len() > max_cluster {
                capped.insert((a, b));
                continue;
            }
            let taken = std::mem::take(&mut groups[y]);
            groups[x].extend(taken);
        }
        groups.retain(|group| !group.is_empty());
        let at_cap = groups
            .iter()
            .filter(|group| capped.iter().any(|(a, b)| group.contains(a) || group.contains(b)));
        let capped = Capped { groups: at_cap.count() as u32, links: capped.len() as u64 };
        (groups, capped)
    }

    fn sets(clusters: &Clusters) -> Vec<BTreeSet<u32>> {
        clusters.members().iter().map(|c| c.members.iter().copied().collect()).collect()
    }

    proptest! {
        #[test]
        fn equals_the_definition((n, links, accepted) in case(), max in 1u32..40) {
            let judge = |a, b| accepted.contains(&(a, b));
            let (clusters, capped) = by_majority(n, &links, max, judge);
            let (mut expect, expect_capped) = naive(n, &links, max as usize, judge);
            expect.sort();
            prop_assert_eq!(sets(&clusters), expect);
            prop_assert_eq!(capped, expect_capped);
            prop_assert!(clusters.oversized(max).is_empty());
        }

        #[test]
        fn threads_do_not_matter((n, links, accepted) in case(), max in 1u32..40) {
            let judge = |a, b| accepted.contains(&(a, b));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
            prop_assert_eq!(
                pool.install(|| by_majority(n, &links, max, judge)),
                by_majority(n, &links, max, judge)
            );
        }

        #[test]
        fn the_order_of_links_does_not_matter((n, links, accepted) in case(), max in 1u32..40) {
            let judge = |a, b| accepted.contains(&(a, b));
            let turned: Vec<Link> =
                links.iter().rev().map(|l| Link { a: l.b, b: l.a, ..*l }).collect();
            prop_assert_eq!(
                by_majority(n, &links, max, judge),
                by_majority(n, &turned, max, judge)
            );
        }

        #[test]
        fn all_accepted_gives_components((n, links, _) in case()) {
            let (clusters, capped) = by_majority(n, &links, n as u32, |_, _| true);
            let pairs = links.iter().map(|link| (link.a, link.b));
            prop_assert_eq!(clusters, Clusters::components(n, pairs, &KeepOrder::first(n)));
            prop_assert_eq!(capped, Capped::default());
        }

        #[test]
        fn groups_lie_in_components((n, links, accepted) in case()) {
            let (clusters, _) = by_majority(n, &links, 99, |a, b| accepted.contains(&(a, b)));
            let pairs = links.iter().map(|link| (link.a, link.b));
            let components = Clusters::components(n, pairs, &KeepOrder::first(n));
            for cluster in clusters.members().iter() {
                let own = components.label(cluster.label);
                prop_assert!(cluster.members.iter().all(|&d| components.label(d) == own));
            }
        }

        #[test]
        fn a_pair_is_judged_once((n, links, accepted) in case()) {
            let asked = Mutex::new(BTreeSet::new());
            by_majority(n, &links, 99, |a, b| {
                assert!(a < b && asked.lock().expect("no panic").insert((a, b)), "{a} {b}");
                assert!(!links.iter().any(|l| (l.a.min(l.b), l.a.max(l.b)) == (a, b)));
                accepted.contains(&(a, b))
            });
            prop_assert!(asked.into_inner().expect("no panic").len() <= 16 * links.len());
        }

        #[test]
        fn samples_are_whole_while_they_are_small(a in 1usize..50, b in 1usize..50) {
            let (rows, columns) = sample(a, b);
            prop_assert!(rows <= a && columns <= b && rows * columns <= SAMPLE);
            prop_assert!(a * b > SAMPLE || rows * columns == a * b);
            // Nothing more would fit but a part of a row.
            prop_assert!(rows * columns > SAMPLE - SIDE || rows * columns == a * b);
        }
    }

    #[test]
    fn a_long_chain_stays_in_parts() {
        let chain: Vec<Link> =
            (0..1000).map(|a| Link { a, b: a + 1, strength: 1000 - a }).collect();
        let (clusters, capped) = by_majority(1001, &chain, 1000, |_, _| false);
        assert_eq!(capped, Capped::default());
        assert_eq!(clusters.sizes().last().map(|size| size.0), Some(3));
    }

    #[test]
    fn a_cap_is_counted() {
        // Each is like all others, by the judge; the links are a chain.
        let chain: Vec<Link> = (0..9).map(|a| Link { a, b: a + 1, strength: 9 - a }).collect();
        let (clusters, capped) = by_majority(10, &chain, 4, |_, _| true);
        assert_eq!(clusters.sizes(), [(2, 1), (4, 2)]);
        assert_eq!(capped, Capped { groups: 3, links: 2 });
    }

    #[test]
    fn no_document_and_no_link() {
        let (clusters, capped) = by_majority(0, &[], 4, |_, _| true);
        assert_eq!((clusters.documents(), capped), (0, Capped::default()));
        let itself = Link { a: 1, b: 1, strength: 3 };
        assert_eq!(by_majority(2, &[itself], 4, |_, _| true).0.kept().count(), 2);
    }
}
