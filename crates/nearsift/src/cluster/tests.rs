use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::fingerprint::{Bits, Fingerprints};
use crate::join::{SelfJoin, Settings};

type Pairs = Vec<(u32, u32)>;

/// A number of documents, pairs of them, and an order of keeping.
fn graph() -> impl Strategy<Value = (usize, Pairs, KeepOrder)> {
    (1usize..60)
        .prop_flat_map(|n| {
            let document = 0..n as u32;
            let pairs = prop::collection::vec((document.clone(), document), 0..n * 2);
            (Just(n), pairs, prop::collection::vec(0u8..5, n))
        })
        .prop_map(|(n, pairs, keys)| {
            let pairs = pairs.into_iter().filter(|(a, b)| a != b).collect();
            (n, pairs, KeepOrder::by_key(&keys, |key| *key))
        })
}

/// What can be reached from each document, breadth first.
fn reached(n: usize, pairs: &Pairs, from: u32) -> BTreeSet<u32> {
    let mut seen = BTreeSet::from([from]);
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for &(a, b) in pairs {
            for (near, far) in [(a, b), (b, a)] {
                if near == at && seen.insert(far) {
                    queue.push_back(far);
                }
            }
        }
    }
    assert!(seen.len() <= n);
    seen
}

fn check_consistent(clusters: &Clusters) -> Result<(), TestCaseError> {
    let n = clusters.documents();
    let members = clusters.members();
    let mut seen: Vec<u32> = Vec::new();
    prop_assert!(members.iter().map(|c| c.label).is_sorted());
    for cluster in members.iter() {
        prop_assert!(cluster.members.is_sorted());
        prop_assert_eq!(cluster.label, cluster.members[0]);
        prop_assert!(cluster.members.contains(&cluster.representative));
        for &document in cluster.members {
            prop_assert_eq!(clusters.label(document), cluster.label);
            prop_assert_eq!(clusters.representative(document), cluster.representative);
        }
        seen.extend(cluster.members);
    }
    seen.sort_unstable();
    prop_assert_eq!(seen, (0..n as u32).collect::<Vec<_>>());
    prop_assert_eq!(clusters.kept().count(), members.len());
    prop_assert_eq!(clusters.removed().count(), n - members.len());
    let sizes = clusters.sizes();
    prop_assert_eq!(sizes.iter().map(|(size, count)| size * count).sum::<u32>(), n as u32);
    let large: Vec<u32> = clusters.oversized(2).iter().map(|c| c.label).collect();
    let expect: Vec<u32> =
        members.iter().filter(|c| c.members.len() > 2).map(|c| c.label).collect();
    prop_assert_eq!(large, expect);
    Ok(())
}

fn check_stars(clusters: &Clusters, pairs: &Pairs, keep: &KeepOrder) -> Result<(), TestCaseError> {
    let paired = |a, b| pairs.contains(&(a, b)) || pairs.contains(&(b, a));
    for (removed, representative) in clusters.removed() {
        prop_assert!(
            paired(removed, representative),
            "{removed} is not paired with {representative}"
        );
        prop_assert!(clusters.is_kept(representative));
        prop_assert!(keep.rank(representative) < keep.rank(removed));
    }
    for &(a, b) in pairs {
        prop_assert!(!(clusters.is_kept(a) && clusters.is_kept(b)), "{a} and {b} are both kept");
    }
    Ok(())
}

/// Stars as they are defined.
fn naive_stars(n: usize, pairs: &Pairs, keep: &KeepOrder) -> Vec<u32> {
    let mut representative = vec![None; n];
    for document in keep.best_first() {
        if representative[document as usize].is_some() {
            continue;
        }
        representative[document as usize] = Some(document);
        for &(a, b) in pairs {
            for (near, far) in [(a, b), (b, a)] {
                if near == document && representative[far as usize].is_none() {
                    representative[far as usize] = Some(document);
                }
            }
        }
    }
    representative.into_iter().flatten().collect()
}

proptest! {
    #[test]
    fn components_are_what_a_search_reaches((n, pairs, keep) in graph()) {
        let clusters = Clusters::components(n, pairs.iter().copied(), &keep);
        check_consistent(&clusters)?;
        for document in 0..n as u32 {
            let reached = reached(n, &pairs, document);
            prop_assert_eq!(Some(&clusters.label(document)), reached.first());
            let best = reached.iter().min_by_key(|d| keep.rank(**d));
            prop_assert_eq!(Some(&clusters.representative(document)), best);
        }
    }

    #[test]
    fn the_order_of_pairs_does_not_matter((n, pairs, keep) in graph()) {
        let components = Clusters::components(n, pairs.iter().copied(), &keep);
        let stars = Clusters::stars(n, pairs.iter().copied(), &keep);
        let turned = || pairs.iter().rev().map(|&(a, b)| (b, a));
        prop_assert_eq!(components, Clusters::components(n, turned(), &keep));
        prop_assert_eq!(stars, Clusters::stars(n, turned(), &keep));
    }

    #[test]
    fn stars_remove_only_what_is_paired_with_the_kept((n, pairs, keep) in graph()) {
        let clusters = Clusters::stars(n, pairs.iter().copied(), &keep);
        check_consistent(&clusters)?;
        check_stars(&clusters, &pairs, &keep)?;
        prop_assert_eq!(clusters.representatives, naive_stars(n, &pairs, &keep));
    }

    #[test]
    fn links_give_the_components_of_all_pairs(
        values in prop::collection::vec(0u64..400, 0..150),
        keys in prop::collection::vec(0u8..9, 150),
        max_distance in 0u32..4,
    ) {
        // Few of many bits: chains and repeats.
        let n = values.len();
        let words = values.iter().map(|v| v.wrapping_mul(0x0101_0101)).collect();
        let column = Fingerprints::from_words(Bits::B64, words);
        let keep = KeepOrder::by_key(&keys[..n], |key| *key);
        let settings = Settings::new(max_distance);
        let join = SelfJoin::new(&column, settings).expect("a join");
        let pairs: Pairs = join.pairs().iter().map(|p| (p.a, p.b)).collect();
        let links = join.links();
        prop_assert_eq!(
            Clusters::components(n, links.iter().map(|p| (p.a, p.b)), &keep),
            Clusters::components(n, pairs.iter().copied(), &keep)
        );
    }

    #[test]
    fn ranks_are_an_order(ranks in prop::collection::vec(0u32..8, 0..8)) {
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let valid = sorted.iter().enumerate().all(|(i, rank)| i as u32 == *rank);
        let order = KeepOrder::from_ranks(ranks.clone());
        prop_assert_eq!(order.is_ok(), valid);
        if let Ok(order) = order {
            for (rank, document) in order.best_first().into_iter().enumerate() {
                prop_assert_eq!(ranks[document as usize], rank as u32);
            }
        }
    }
}

#[test]
fn no_document_gives_no_cluster() {
    let clusters = Clusters::components(0, [], &KeepOrder::first(0));
    assert!(clusters.members().is_empty());
    assert_eq!(clusters.sizes(), []);
    assert_eq!(clusters, Clusters::stars(0, [], &KeepOrder::first(0)));
}

#[test]
fn sizes_and_warnings_of_a_chain() {
    let keep = KeepOrder::first(7);
    let chain = (0..4).map(|i| (i, i + 1));
    let components = Clusters::components(7, chain.clone(), &keep);
    assert_eq!(components.sizes(), [(1, 2), (5, 1)]);
    assert_eq!(components.oversized(4), [Oversized { label: 0, representative: 0, documents: 5 }]);
    assert_eq!(components.oversized(5), []);
    let stars = Clusters::stars(7, chain, &keep);
    assert_eq!(stars.sizes(), [(1, 3), (2, 2)]);
}
