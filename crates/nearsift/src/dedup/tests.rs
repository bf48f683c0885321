use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A small corpus: fingerprints that crowd, some texts without one, values that tie.
fn corpus() -> impl Strategy<Value = Vec<(Option<u64>, u128, Option<f64>)>> {
    let fingerprint = prop_oneof![
        3 => (0u64..12).prop_map(|i| Some(i * 0x0101_0101)),
        1 => Just(None),
    ];
    let value = prop_oneof![Just(None), (0u8..4).prop_map(|v| Some(f64::from(v)))];
    prop::collection::vec((fingerprint, 0u128..4, value), 0..24)
}

proptest! {
    #[test]
    fn every_removal_has_a_reason_and_nothing_is_lost(
        documents in corpus(),
        max_distance in 0u32..5,
        clustering in prop::sample::select(vec![Clustering::Components, Clustering::Star, Clustering::Majority]),
        keep in prop::sample::select(vec![Keep::First, Keep::Longest]),
    ) {
        let mut columns = Corpus::new(Bits::B64);
        for &(fingerprint, key, value) in &documents {
            // A key of 0 stands for no text; equal fingerprints need not mean equal texts.
            let text_key = (key > 0).then_some(key);
            let fingerprint = fingerprint.map(Fingerprint::from_u64);
            columns.push(Entry { fingerprint, text_key, value });
        }
        let options = Options { clustering, keep: keep.clone(), ..Options::new(max_distance) };
        let n = documents.len();
        let near = |a: usize, b: usize| match (documents[a].0, documents[b].0) {
            (Some(x), Some(y)) => (x ^ y).count_ones() <= max_distance,
            (None, None) => documents[a].1 > 0 && documents[a].1 == documents[b].1,
            _ => false,
        };

        // All pairs are those that the definition gives, in order.
        let mut pairs = Vec::new();
        let _ = columns.pairs(&options, |pair| {
            pairs.push((pair.a as usize, pair.b as usize));
            ControlFlow::<()>::Continue(())
        }).expect("a join");
        let naive: Vec<(usize, usize)> =
            (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).filter(|&(a, b)| near(a, b)).collect();
        prop_assert_eq!(&pairs, &naive);

        let mut links = BTreeSet::new();
        let found = columns.find(&options, |link| {
            links.insert((link.a as usize, link.b as usize));
        }).expect("a join");
        prop_assert!(links.iter().all(|&(a, b)| near(a, b)));

        // The groups are those of all pairs, by the definition of each rule.
        let order = keep.order(&documents.iter().map(|d| d.2).collect::<Vec<_>>());
        let all = naive.iter().map(|&(a, b)| (a as u32, b as u32));
        let components = Clusters::components(n, all.clone(), &order);
        let stars = Clusters::stars(n, all, &order);
        match clustering {
            Clustering::Components => {
                prop_assert!((0..n as u32).all(|d| found.clusters().label(d) == components.label(d)));
                prop_assert!((0..n as u32).all(|d| found.clusters().best(d) == components.representative(d)));
                prop_assert_eq!(found.clusters().kept().collect::<Vec<_>>(), stars.kept().collect::<Vec<_>>());
            }
            Clustering::Star => prop_assert_eq!(found.clusters(), &stars),
            Clustering::Majority => {
                let apart = |d: u32| components.label(d) != components.label(found.clusters().label(d));
                prop_assert!(!(0..n as u32).any(apart), "a group lies within one component");
            }
        }
        // What goes is near what stays, and what stays is near nothing that stays: a second pass removes nothing.
        for (document, stays) in found.clusters().removed() {
            prop_assert!(near(document as usize, stays as usize));
        }
        let kept: Vec<u32> = found.clusters().kept().collect();
        prop_assert!(!naive.iter().any(|&(a, b)| kept.contains(&(a as u32)) && kept.contains(&(b as u32))));

        for removal in found.removals() {
            prop_assert!(found.clusters().is_kept(removal.representative));
            prop_assert!(order.rank(removal.representative) < order.rank(removal.document));
            let same = documents[removal.document as usize].1 == documents[removal.representative as usize].1;
            prop_assert_eq!(removal.is_same_text, same);
            let own = removal.document as usize;
            let is_copy = documents[own].1 > 0 && documents[..own].iter().any(|d| d.1 == documents[own].1);
            prop_assert_eq!(removal.reason == Reason::Exact, same || is_copy);
        }
        let removed = found.removals().count();
        prop_assert_eq!(found.clusters().kept().count() + removed, n);
    }
}

proptest! {
    #[test]
    fn the_first_of_each_text_is_found(
        // Keys that differ in their lowest bits alone, in their highest alone, and none.
        keys in prop::collection::vec((0u128..3, 0u128..3), 0..40),
    ) {
        let keys: Vec<Option<u128>> =
            keys.iter().map(|&(high, low)| Some(high << 100 | low).filter(|&key| key != 0)).collect();
        let mut corpus = SketchCorpus::default();
        for &text_key in &keys {
            corpus.push(SketchEntry { sketched: None, text_key, value: None });
        }
        let is_same = |a: usize, b: usize| a == b || keys[a].is_some() && keys[a] == keys[b];
        let first = |document| (0..=document).find(|&earlier| is_same(earlier, document));
        let expect: Vec<u32> = (0..keys.len()).filter_map(first).map(|first| first as u32).collect();
        prop_assert_eq!(corpus.first_of_text(), expect);
    }
}

proptest! {
    #[test]
    fn appended_corpora_are_those_of_all_documents(documents in corpus(), cut in 0usize..24, releases in any::<bool>()) {
        let cut = cut.min(documents.len());
        let fill = |own: &[(Option<u64>, u128, Option<f64>)]| {
            let (mut simhash, mut sketches) = (Corpus::new(Bits::B64), SketchCorpus::default());
            for &(fingerprint, key, value) in own {
                let text_key = (key > 0).then_some(key);
                let sketched = fingerprint.map(|word| crate::recipe::Sketched {
                    sketch: crate::sketch::Sketch::from_words([word + 1; crate::sketch::WORDS]),
                    keys: [word as u32; crate::sketch::KEYS],
                    features: key as u32,
                });
                let fingerprint = fingerprint.map(Fingerprint::from_u64);
                simhash.push(Entry { fingerprint, text_key, value });
                sketches.push(SketchEntry { sketched, text_key, value });
            }
            if releases {
                sketches.release_keys();
            }
            (simhash, sketches)
        };
        let (mut simhash, mut sketches) = fill(&documents[..cut]);
        let rest = fill(&documents[cut..]);
        simhash.append(rest.0);
        sketches.append(rest.1);
        let whole = fill(&documents);
        prop_assert_eq!(format!("{simhash:?}"), format!("{:?}", whole.0));
        prop_assert_eq!(format!("{sketches:?}"), format!("{:?}", whole.1));
    }
}
