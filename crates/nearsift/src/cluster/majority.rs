//! Groups most of whose members are alike: majority link.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cover::{Covered, cover};
use super::{Clusters, Components, Judge, KeepOrder};
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
    /// No cluster has more documents: a larger group is divided.
    pub max_cluster: u32,
}

impl Default for MajorityLink {
    /// Groups of at most 10,000 documents: a larger one is more often a template than a text.
    fn default() -> MajorityLink {
        MajorityLink { max_cluster: 10_000 }
    }
}

/// What the largest size of a cluster kept apart; of this the caller should warn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capped {
    /// The kept documents that stand for as many documents as they may, while their groups have more or they are linked with
    /// more.
    pub groups: u32,
    /// The links of such documents with others that came after.
    pub links: u64,
}

/// Clusters, and what they rest on beside the links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    /// Every removed document is near its representative: by a link, or by what the judge said.
    pub clusters: Clusters,
    /// What the largest size kept apart.
    pub capped: Capped,
    /// The pairs of removed documents and their representatives that were no links and that the judge accepted, with
    /// the strength that it gave: ascending.
    pub judged: Vec<Link>,
}

/// When two linked groups become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joins {
    Always,
    ByMajority,
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
    /// when a [`Judge`] says so, which is asked once about a pair. So a
    /// chain of documents each like the next one alone stays in parts, and a group whose members are
    /// like each other stays whole even if some of their pairs were never candidates: for these the judge
    /// compares the documents. With [`LinksAlone`](super::LinksAlone) the links decide.
    ///
    /// All cross pairs are looked at while there are at most 16; of more, those of a few members of
    /// each group that a hash of their numbers chooses. Which they are depends on the two groups
    /// alone, so the clusters do not depend on the order of the links.
    ///
    /// # What stays
    /// Going through the documents from the best one on, each goes to the first kept document of its group that it is
    /// near, by a link or by the judge; else to the first kept document of another group that it is linked with,
    /// and into that cluster; else it is kept. So
    /// - every removed document is near its representative, which is better;
    /// - no two kept documents are linked, but where one of them stands for `max_cluster` documents;
    /// - no two kept documents of a cluster are near, as long as the judge refused fewer than 16 kept documents for
    ///   the worse one.
    ///
    /// A kept document stands for at most `max_cluster` documents, itself among them. A group of more is divided: each
    /// kept document and those that it stands for are a cluster. Of a pair that is given twice the stronger link counts.
    ///
    /// ```
    /// use nearsift::cluster::{Clusters, KeepOrder, Link, LinksAlone, MajorityLink};
    /// // A chain: each document is like the one before and like no other.
    /// let chain = [(0, 1, 9), (1, 2, 8), (2, 3, 9)].map(|(a, b, strength)| Link { a, b, strength });
    /// let rule = MajorityLink { max_cluster: 100 };
    /// let Ok(found) = Clusters::by_majority(4, chain, rule, &KeepOrder::first(4), || LinksAlone);
    /// assert_eq!(found.clusters.kept().collect::<Vec<_>>(), [0, 2]);
    /// ```
    ///
    /// # Errors
    /// When a judge cannot judge.
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
    /// most once for each cross pair looked at, in practice for a few of each merger, once for each removed document that is
    /// not linked with its representative, and for at most 16 kept documents that it is not near. 28 bytes a link,
    /// 28 a document, and of a component while it is worked on 4 more a link, 52 a document and 15 to 30 for each pair judged.
    ///
    /// # References
    /// Sokal and Michener, 'A statistical method for evaluating systematic relationships', University
    /// of Kansas Science Bulletin 38, 1958: average linkage, here of yes and no, and sampled.
    pub fn by_majority<J: Judge>(
        documents: usize,
        links: impl IntoIterator<Item = Link>,
        rule: MajorityLink,
        keep: &KeepOrder,
        judges: impl Fn() -> J + Sync,
    ) -> Result<Grouped, J::Error> {
        group(documents, links, Joins::ByMajority, rule.max_cluster, keep, judges)
    }

    /// The connected components of the links, of which as many documents are kept as
    /// [by majority](Clusters::by_majority).
    ///
    /// # Errors
    /// When a judge cannot judge.
    ///
    /// # Panics
    /// When a link names a document beyond those, or `keep` ranks another number of documents.
    ///
    /// # Complexity
    /// That of [`Clusters::by_majority`] without its samples of cross pairs.
    pub fn by_components<J: Judge>(
        documents: usize,
        links: impl IntoIterator<Item = Link>,
        keep: &KeepOrder,
        judges: impl Fn() -> J + Sync,
    ) -> Result<Grouped, J::Error> {
        group(documents, links, Joins::Always, u32::MAX, keep, judges)
    }
}

fn group<J: Judge>(
    documents: usize,
    links: impl IntoIterator<Item = Link>,
    joins: Joins,
    most: u32,
    keep: &KeepOrder,
    judges: impl Fn() -> J + Sync,
) -> Result<Grouped, J::Error> {
    keep.check_covers(documents);
    let mut links = distinct(links);
    let neighbours = Neighbours::of(documents, &links);
    set_components(documents, &mut links);
    let order =
        |Linked { component, link }: &Linked| (*component, Reverse(link.strength), link.a, link.b);
    sort_by_key(&mut links, order);
    let mut parts: Vec<&[Linked]> = links.chunk_by(|x, y| x.component == y.component).collect();
    // The largest first, so that no thread is left with one when the others have none.
    parts.sort_by_key(|part| Reverse(part.len()));

    let next = AtomicUsize::new(0);
    let place = |part: &[Linked], judge: &mut J| {
        let mut accepted = Accepted { neighbours: &neighbours, judged: HashMap::new(), judge };
        let mut groups = grow(part, joins, &mut accepted)?;
        cover(part, &mut groups, keep, most, &mut accepted, &judges)
    };
    let work = || {
        let mut judge = judges();
        let mut done = Vec::new();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Once a judge failed there is nothing more to do for the other threads.
            let stop = |_: &J::Error| next.store(parts.len(), Ordering::Relaxed);
            done.push(place(part, &mut judge).inspect_err(stop)?);
        }
        Ok(done)
    };
    let done: Vec<Vec<Covered>> = match in_pool() {
        true => rayon::broadcast(|_| work()).into_iter().collect::<Result<_, _>>()?,
        false => vec![work()?],
    };
    let mut representatives: Vec<u32> = (0..documents as u32).collect();
    let mut best: Vec<u32> = representatives.clone();
    let (mut capped, mut judged) = (Capped::default(), Vec::new());
    for covered in done.into_iter().flatten() {
        for placed in covered.placed {
            representatives[placed.document as usize] = placed.representative;
            best[placed.document as usize] = placed.best;
        }
        capped.groups += covered.capped.groups;
        capped.links += covered.capped.links;
        judged.extend(covered.judged);
    }
    judged.sort_unstable_by_key(|link| (link.a, link.b));
    let clusters = Clusters::of_kept(representatives, |document| best[document as usize]);
    Ok(Grouped { clusters, capped, judged })
}

/// The smaller number first.
pub(super) fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// A link among those of its connected component.
pub(super) struct Linked {
    /// The representative of the component, once it is known.
    component: u32,
    pub link: Link,
}

/// Sets the component of each link among `documents` documents.
fn set_components(documents: usize, links: &mut [Linked]) {
    let mut components = Components::new(documents);
    links.iter().for_each(|linked| components.link(linked.link.a, linked.link.b));
    links.iter_mut().for_each(|linked| linked.component = components.root(linked.link.a));
}

/// The groups of a connected component of the links, given from the strongest to the weakest.
fn grow<J: Judge>(
    links: &[Linked],
    joins: Joins,
    accepted: &mut Accepted<'_, J>,
) -> Result<Groups, J::Error> {
    let mut groups = Groups::of(links);
    for Linked { link, .. } in links {
        let (a, b) = (groups.root(link.a), groups.root(link.b));
        match joins {
            _ if a == b => {}
            Joins::Always => groups.components.link(a, b),
            Joins::ByMajority if groups.most_accepted(a, b, accepted)? => groups.merge(a, b),
            Joins::ByMajority => {}
        }
    }
    Ok(groups)
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
pub(super) struct Accepted<'a, J> {
    neighbours: &'a Neighbours,
    judged: HashMap<(u32, u32), Option<u32>>,
    judge: &'a mut J,
}

impl<J: Judge> Accepted<'_, J> {
    /// What needs no judgement: links, and pairs that were judged before.
    fn known(&self, a: u32, b: u32) -> Option<bool> {
        if self.neighbours.contains(a, b) {
            return Some(true);
        }
        self.judged(a, b).map(|strength| strength.is_some())
    }

    /// What the judge said about a pair, if it was asked: the strength of a pair that it accepted.
    pub fn judged(&self, a: u32, b: u32) -> Option<Option<u32>> {
        self.judged.get(&(a, b)).copied()
    }

    pub fn judge(&mut self, a: u32, b: u32) -> Result<Option<u32>, J::Error> {
        let strength = self.judge.strength(a, b)?;
        self.learn((a, b), strength);
        Ok(strength)
    }

    /// Takes up what another judge said.
    pub fn learn(&mut self, pair: (u32, u32), strength: Option<u32>) {
        self.judged.insert(pair, strength);
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
pub(super) struct Groups {
    /// Ascending.
    pub documents: Vec<u32>,
    pub components: Components,
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

    /// The place of a document.
    pub fn place(&self, document: u32) -> u32 {
        self.documents.partition_point(|&other| other < document) as u32
    }

    /// The place of the document that stands for this one.
    fn root(&mut self, document: u32) -> u32 {
        self.components.root(self.place(document))
    }

    /// The members of a root's list, by hash.
    fn listed(&self, root: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(self.heads[root as usize]), |&place| {
            Some(self.next[place as usize]).filter(|&next| next != END)
        })
    }

    /// Whether at least half of the sampled cross pairs of two roots' groups are accepted.
    fn most_accepted<J: Judge>(
        &self,
        a: u32,
        b: u32,
        accepted: &mut Accepted<'_, J>,
    ) -> Result<bool, J::Error> {
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
            votes.count(accepted.judge(a, b)?.is_some());
        }
        Ok(votes.most())
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
    use std::convert::Infallible;
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::super::cover::REFUSALS;
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
    ) -> Grouped {
        let links = links.iter().copied();
        let keep = KeepOrder::first(n);
        let judge = || |a: u32, b: u32| Ok::<_, Infallible>(judge(a, b).then_some(7));
        let Ok(found) = Clusters::by_majority(n, links, rule(max_cluster), &keep, judge);
        found
    }

    /// The groups with sets, from the words of the definition.
    fn naive_groups(
        n: usize,
        links: &[Link],
        judge: impl Fn(u32, u32) -> bool,
    ) -> Vec<BTreeSet<u32>> {
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
        let mut refused = BTreeSet::new();
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
            let taken = std::mem::take(&mut groups[y]);
            groups[x].extend(taken);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Who stays for each document, of some groups: from the words of the definition, for a judge that is asked
    /// without end. Documents are kept in their own order.
    fn naive_cover(
        n: usize,
        links: &[Link],
        groups: &[BTreeSet<u32>],
        most: u32,
        judge: impl Fn(u32, u32) -> bool,
    ) -> Vec<u32> {
        let linked = |x: u32, y: u32| links.iter().any(|l| ordered(l.a, l.b) == ordered(x, y));
        let of = |d: u32| groups.iter().position(|group| group.contains(&d));
        let mut stays: Vec<u32> = Vec::new();
        for d in 0..n as u32 {
            let load = |k: u32| stays.iter().filter(|&&other| other == k).count();
            let open: Vec<u32> =
                (0..d).filter(|&k| stays[k as usize] == k && load(k) < most as usize).collect();
            let own = || open.iter().copied().filter(|&k| of(k) == of(d));
            let found = own()
                .find(|&k| linked(k, d))
                .or_else(|| own().find(|&k| judge(k, d)))
                .or_else(|| open.iter().copied().find(|&k| linked(k, d)));
            stays.push(found.unwrap_or(d));
        }
        stays
    }

    proptest! {
        #[test]
        fn equals_the_definition((n, links, accepted) in case(), max in 1u32..40) {
            let judge = |a, b| accepted.contains(&(a, b));
            let links: Vec<Link> = links.into_iter().filter(|link| link.a != link.b).collect();
            let found = by_majority(n, &links, max, judge).clusters;
            let groups = naive_groups(n, &links, judge);
            // No document has so many kept ones in its group that the judge is asked no more.
            if groups.iter().any(|group| group.len() > REFUSALS as usize) {
                return Ok(());
            }
            let stays = naive_cover(n, &links, &groups, max, judge);
            let own: Vec<u32> = (0..n as u32).map(|d| found.representative(d)).collect();
            prop_assert_eq!(&own, &stays);
            // Clusters are the groups of those that stay, unless they are larger than that or nothing of them goes.
            for x in 0..n as u32 {
                let group = |d: u32| groups.iter().position(|g| g.contains(&stays[d as usize]));
                let size = (0..n as u32).filter(|&d| group(d) == group(x)).count();
                let kept = (0..n as u32).filter(|&d| group(d) == group(x) && stays[d as usize] == d).count();
                for y in 0..n as u32 {
                    let together = match size > max as usize || kept == size {
                        true => stays[x as usize] == stays[y as usize],
                        false => group(x) == group(y),
                    };
                    prop_assert_eq!(found.label(x) == found.label(y), together);
                }
            }
        }

        #[test]
        fn what_goes_is_near_what_stays(
            (n, links, accepted) in case(), max in 1u32..40, majority: bool,
        ) {
            let judge = |a, b| accepted.contains(&(a, b));
            let Grouped { clusters, judged, capped } = match majority {
                true => by_majority(n, &links, max, judge),
                false => {
                    let links = links.iter().copied();
                    let judge = || |a: u32, b: u32| Ok::<_, Infallible>(judge(a, b).then_some(7));
                    let Ok(found) =
                        Clusters::by_components(n, links, &KeepOrder::first(n), judge);
                    found
                }
            };
            let linked = |x, y| links.iter().any(|l| ordered(l.a, l.b) == ordered(x, y));
            let mut more = BTreeSet::new();
            for (document, stays) in clusters.removed() {
                prop_assert!(clusters.is_kept(stays) && stays < document);
                prop_assert_eq!(clusters.label(document), clusters.label(stays));
                prop_assert!(clusters.best(document) <= stays);
                if !linked(stays, document) {
                    prop_assert!(judge(stays, document));
                    more.insert((stays, document));
                }
            }
            let judged: BTreeSet<(u32, u32)> =
                judged.iter().map(|link| { assert_eq!(link.strength, 7); (link.a, link.b) }).collect();
            prop_assert_eq!(judged, more);
            prop_assert_eq!(clusters.kept().count() + clusters.removed().count(), n);
            let stands_for = |kept: u32| {
                (0..n as u32).filter(|&d| clusters.representative(d) == kept).count()
            };
            let most = if majority { max } else { u32::MAX };
            // What stays is not near what stays, unless that is full.
            let kept: Vec<u32> = clusters.kept().collect();
            prop_assert!(kept.iter().all(|&kept| stands_for(kept) <= most as usize));
            let is_full = |kept: u32| stands_for(kept) == most as usize;
            let is_near = |(x, y): (u32, u32)| linked(x, y)
                || clusters.label(x) == clusters.label(y) && kept.len() < REFUSALS as usize && judge(x, y);
            for (i, &x) in kept.iter().enumerate() {
                for &y in &kept[i + 1..] {
                    prop_assert!(!is_near((x, y)) || is_full(x), "{x} {y}");
                }
            }
            prop_assert!(clusters.oversized(most).is_empty());
            prop_assert!(capped.groups > 0 || capped.links == 0);
            prop_assert!(capped.groups as usize <= kept.iter().filter(|&&k| is_full(k)).count());
        }

        #[test]
        fn a_second_pass_removes_nothing((n, links, accepted) in case()) {
            // Where all pairs are known.
            let judge = |a, b| accepted.contains(&(a, b));
            let mut links = links;
            links.extend(accepted.iter().map(|&(a, b)| Link { a, b, strength: 1 }));
            let first = by_majority(n, &links, u32::MAX, judge).clusters;
            links.retain(|link| link.a != link.b && first.is_kept(link.a) && first.is_kept(link.b));
            prop_assert_eq!(links, []);
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
            let found = by_majority(n, &links, n as u32, |_, _| true);
            let pairs = links.iter().map(|link| (link.a, link.b));
            prop_assert_eq!(found.clusters, Clusters::components(n, pairs, &KeepOrder::first(n)));
            prop_assert_eq!(found.capped, Capped::default());
        }

        #[test]
        fn groups_lie_in_components((n, links, accepted) in case()) {
            let clusters = by_majority(n, &links, 99, |a, b| accepted.contains(&(a, b))).clusters;
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
            let of_each = 16 * links.len() + (1 + REFUSALS as usize) * n;
            prop_assert!(asked.into_inner().expect("no panic").len() <= of_each);
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
        let found = by_majority(1001, &chain, 1000, |_, _| false);
        assert_eq!(found.capped, Capped::default());
        // One that stays with its neighbours, and a neighbour of these that came from the next group.
        assert!(found.clusters.sizes().last().is_some_and(|size| size.0 <= 4));
        let is_near = |(document, stays): (u32, u32)| document.abs_diff(stays) == 1;
        assert!(found.clusters.removed().all(is_near));
    }

    #[test]
    fn a_chain_of_versions_keeps_enough() {
        // Sixteen versions: each is near those up to six versions away, and the groups reach further.
        let is_near = |a: u32, b: u32| a.abs_diff(b) <= 6;
        let links: Vec<Link> = (0..16)
            .flat_map(|a| (a + 1..16).map(move |b| Link { a, b, strength: 100 - (b - a) }))
            .filter(|link| is_near(link.a, link.b))
            .collect();
        let found = by_majority(16, &links, 10_000, is_near).clusters;
        assert!(found.removed().all(|(document, stays)| is_near(document, stays)));
        assert_eq!(found.kept().collect::<Vec<_>>(), [0, 7, 14]);
    }

    #[test]
    fn copies_beyond_the_largest_size_leave_no_crumbs() {
        // Copies of one page, of which each is linked with a few of the best ones alone.
        for (n, most, threads) in
            [(1000u32, 100, 1), (1000, 100, 3), (5000, 2000, 3), (999, 100, 1)]
        {
            let mut links: Vec<Link> = Vec::new();
            for b in 1..n {
                let a = b.saturating_sub(1 + mix(b) % 8);
                links.push(Link { a, b, strength: mix(a ^ b) });
            }
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let found = pool.install(|| by_majority(n as usize, &links, most, |_, _| true));
            assert_eq!(found.clusters.kept().count() as u32, n.div_ceil(most), "{n} {most}");
            assert_eq!(found.clusters.sizes().last().map(|size| size.0), Some(most));
            assert!(found.capped.groups > 0);
        }
    }

    #[test]
    fn a_cap_is_counted() {
        // Each is like all others, by the judge; the links are a chain.
        let chain: Vec<Link> = (0..9).map(|a| Link { a, b: a + 1, strength: 9 - a }).collect();
        let found = by_majority(10, &chain, 4, |_, _| true);
        assert_eq!(found.clusters.sizes(), [(2, 1), (4, 2)]);
        // The fifth document is linked with the fourth, which was removed.
        assert_eq!(found.capped, Capped { groups: 2, links: 0 });
        let star: Vec<Link> = (1..10).map(|b| Link { a: 0, b, strength: 10 - b }).collect();
        let found = by_majority(10, &star, 4, |_, _| true);
        assert_eq!(found.clusters.sizes(), [(2, 1), (4, 2)]);
        assert_eq!(found.capped, Capped { groups: 2, links: 6 });
    }

    #[test]
    fn a_judge_that_fails_ends_the_clustering() {
        // A chain of one component, and some hundred of two documents that both groups of a pair are judged for.
        let chain = (0..40).map(|a| Link { a, b: a + 1, strength: 100 - a });
        let pairs = (25..200).map(|a| Link { a: 2 * a, b: 2 * a + 1, strength: 1 });
        let links: Vec<Link> = chain.chain(pairs).collect();
        let keep = KeepOrder::first(400);
        let asked = AtomicUsize::new(0);
        let judges = || {
            |a: u32, b: u32| match asked.fetch_add(1, Ordering::Relaxed) {
                0..5 => Ok(None),
                _ => Err(format!("{a} and {b} cannot be read")),
            }
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
        let run = |majority| {
            asked.store(0, Ordering::Relaxed);
            let links = links.iter().copied();
            match majority {
                true => Clusters::by_majority(400, links, rule(99), &keep, judges),
                false => Clusters::by_components(400, links, &keep, judges),
            }
        };
        for majority in [true, false] {
            for failed in [run(majority), pool.install(|| run(majority))] {
                let error = failed.expect_err("no judge can read the texts");
                assert!(error.ends_with("cannot be read"), "{error}");
            }
        }
        // Where many are judged at once, too.
        let most = super::super::cover::TOGETHER as u32 + 50;
        let star = (1..most).map(|b| Link { a: b / 2, b, strength: most - b });
        let failed = pool.install(|| {
            Clusters::by_components(most as usize, star, &KeepOrder::first(most as usize), || {
                |_: u32, _: u32| Err("the disk is gone")
            })
        });
        assert_eq!(failed, Err("the disk is gone"));
    }

    #[test]
    fn no_document_and_no_link() {
        let found = by_majority(0, &[], 4, |_, _| true);
        assert_eq!((found.clusters.documents(), found.capped), (0, Capped::default()));
        let itself = Link { a: 1, b: 1, strength: 3 };
        assert_eq!(by_majority(2, &[itself], 4, |_, _| true).clusters.kept().count(), 2);
    }
}
