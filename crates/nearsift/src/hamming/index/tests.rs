//! Every plan against a naive scan.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use testkit::random::Random;

use super::*;
use crate::hamming::distance;

/// Shapes of data that break naive indexes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Uniform,
    Clustered,
    AllEqual,
    OneBlockShared,
    OneBall,
    BiasedBits,
}

pub(super) const SHAPES: [Shape; 6] = [
    Shape::Uniform,
    Shape::Clustered,
    Shape::AllEqual,
    Shape::OneBlockShared,
    Shape::OneBall,
    Shape::BiasedBits,
];

pub(super) fn values(shape: Shape, n: usize, words: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let centres: Vec<u64> = (0..4 * words).map(|_| random.next_u64()).collect();
    let mut all = Vec::with_capacity(n * words);
    for _ in 0..n {
        let mut value: Vec<u64> = match shape {
            Shape::Uniform | Shape::OneBlockShared => {
                (0..words).map(|_| random.next_u64()).collect()
            }
            Shape::AllEqual | Shape::OneBall => centres[..words].to_vec(),
            Shape::Clustered => {
                let c = random.below(4);
                centres[c * words..(c + 1) * words].to_vec()
            }
            Shape::BiasedBits => (0..words)
                .map(|_| random.next_u64() & random.next_u64() & 0xffff_0fff_f0f0_ffff)
                .collect(),
        };
        let flips = match shape {
            Shape::Clustered => random.below(7),
            Shape::OneBall => random.below(5),
            _ => 0,
        };
        for _ in 0..flips {
            let bit = random.below(64 * words);
            value[bit / 64] ^= 1 << (bit % 64);
        }
        if matches!(shape, Shape::OneBlockShared) {
            value[0] = value[0] & !0x7fff_ffff | centres[0] & 0x7fff_ffff;
        }
        all.extend(value);
    }
    all
}

fn queries(values: &[u64], words: usize, max_distance: u32, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random::new(seed);
    (0..12)
        .map(|i| {
            let mut query: Vec<u64> = (0..words).map(|_| random.next_u64()).collect();
            if i > 1 && !values.is_empty() {
                let from = random.below(values.len() / words) * words;
                query = values[from..from + words].to_vec();
                for _ in 0..random.below(max_distance as usize + 2) {
                    let bit = random.below(64 * words);
                    query[bit / 64] ^= 1 << (bit % 64);
                }
            }
            query
        })
        .collect()
}

fn plans(bits: Bits, max_distance: u32) -> Vec<Plan> {
    let mut plans = vec![Plan::Linear, Plan::BLOCKS_4X16];
    for blocks in 1..=8 {
        // The last is more than an equal share from five blocks on.
        for key_bits in [1, 5, 8, 12, 14] {
            plans.push(Plan::MultiIndex { blocks, key_bits });
        }
    }
    for tables in 1..=8 {
        for key_bits in [8, 9, 15, 22] {
            plans.push(Plan::PerfectCode { tables, key_bits });
        }
    }
    plans.retain(|plan| plan.fits(bits, max_distance).is_ok());
    plans
}

/// Documents within the distance by comparing all.
pub(super) fn naive(values: &[u64], query: &[u64], max_distance: u32) -> Vec<Match> {
    let mut matches: Vec<Match> = values
        .chunks(query.len())
        .zip(0..)
        .map(|(value, id)| Match { distance: distance(value, query), id })
        .filter(|found| found.distance <= max_distance)
        .collect();
    matches.sort_unstable();
    matches
}

fn check(bits: Bits, values: &[u64], plan: Plan, max_distance: u32, threads: Threads, seed: u64) {
    let settings = Settings { plan: Some(plan), threads, ..Settings::new(max_distance) };
    let index = Index::build(bits, values, Ids::Positions, &settings).unwrap();
    assert_eq!(index.verify(), Ok(()));
    let index = Index::from_bytes(index.as_bytes()).unwrap();
    assert_eq!(index.documents() as usize, values.len() / bits.words());
    let mut scratch = index.scratch();
    let queries = queries(values, bits.words(), max_distance, seed);
    let near: Vec<Vec<Match>> =
        queries.iter().map(|query| naive(values, query, max_distance)).collect();
    for (query, near) in queries.iter().zip(&near) {
        for k in [max_distance, max_distance / 2, max_distance.saturating_sub(1), 0] {
            // The nearest come first.
            let expect = &near[..near.partition_point(|found| found.distance <= k)];
            let found = index.range(query, &Ask::within(k), &mut scratch).unwrap();
            assert_eq!(found.matches, expect, "{plan} for {max_distance}, asked {k}");
            assert!(!found.outcome.truncated);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_plan_finds_what_a_scan_finds(
        words in 0usize..3, n in 0usize..400, max_distance in 0u32..8, seed: u64, pick: usize,
    ) {
        let bits = [Bits::B64, Bits::B128, Bits::B256][words];
        for shape in SHAPES {
            let values = values(shape, n, bits.words(), seed);
            let plans = plans(bits, max_distance);
            for i in 0..6 {
                let plan = plans[(pick.wrapping_add(i * 7)) % plans.len()];
                check(bits, &values, plan, max_distance, Threads::One, seed);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_fresh_table_finds_what_a_scan_finds(
        words in 0usize..3, n in 0usize..300, max_distance in 0u32..9, seed: u64, removed: Vec<u16>,
    ) {
        let bits = [Bits::B64, Bits::B128, Bits::B256][words];
        let words = bits.words();
        for shape in SHAPES {
            let values = values(shape, n, words, seed);
            let mut fresh = MutableIndex::new(bits, max_distance, 200).unwrap();
            let (alone, together) = values.split_at(n / 3 * words);
            for (value, id) in alone.chunks(words).zip(0..) {
                fresh.insert(value, id).unwrap();
            }
            fresh.insert_many(together, n as u64 / 3).unwrap();
            let mut gone = vec![false; n];
            for at in removed.iter().map(|&at| at as usize).filter(|&at| at < n) {
                let was = fresh.remove(&values[at * words..(at + 1) * words], at as u64).unwrap();
                prop_assert_eq!(was, !std::mem::replace(&mut gone[at], true));
            }
            let left = gone.iter().filter(|&&gone| !gone).count();
            prop_assert_eq!(fresh.documents(), left as u64);
            let mut listed = 0;
            fresh.each_document(|value, id| {
                assert_eq!(value, &values[id as usize * words..][..words]);
                listed += 1;
            });
            prop_assert_eq!(listed, left);
            let ask = Ask::within(max_distance);
            let mut scratch = fresh.scratch();
            for query in queries(&values, words, max_distance, seed) {
                let mut expect = naive(&values, &query, max_distance);
                expect.retain(|found| !gone[found.id as usize]);
                let found = fresh.range(&query, &ask, &mut scratch).unwrap();
                prop_assert_eq!(found.matches, expect);
            }
            // Emptied, it is as a new one.
            fresh.clear();
            for query in queries(&values, words, max_distance, seed) {
                let found = fresh.range(&query, &ask, &mut scratch).unwrap();
                prop_assert_eq!(found.matches, []);
            }
            fresh.reserve(n as u64);
            fresh.insert_many(&values, 0).unwrap();
            for query in queries(&values, words, max_distance, seed) {
                let found = fresh.range(&query, &ask, &mut scratch).unwrap();
                prop_assert_eq!(found.matches, naive(&values, &query, max_distance));
            }
        }
    }
}

#[test]
fn many_values_in_many_parts() {
    for shape in SHAPES {
        // In tests a part has 256 values: these are in 32 parts, and in eight slices of parts.
        let values = values(shape, 8_200, 1, 5);
        let plans = [
            Plan::BLOCKS_4X16,
            Plan::MultiIndex { blocks: 3, key_bits: 15 },
            Plan::MultiIndex { blocks: 4, key_bits: 5 },
            Plan::MultiIndex { blocks: 3, key_bits: 22 },
            Plan::PerfectCode { tables: 2, key_bits: 12 },
            Plan::PerfectCode { tables: 2, key_bits: 17 },
            Plan::PerfectCode { tables: 2, key_bits: 24 },
            Plan::PerfectCode { tables: 2, key_bits: 27 },
        ];
        for plan in plans {
            check(Bits::B64, &values, plan, 3, Threads::One, 3);
        }
    }
}

#[test]
fn threads_do_not_change_the_bytes() {
    for (shape, key_bits) in SHAPES.into_iter().flat_map(|shape| [(shape, 18), (shape, 13)]) {
        let values = values(shape, 20_000, 1, 9);
        let build = |threads| {
            let plan = Some(Plan::PerfectCode { tables: 2, key_bits });
            let settings = Settings { plan, threads, ..Settings::new(3) };
            Index::build(Bits::B64, &values, Ids::Positions, &settings).unwrap()
        };
        let three = Threads::Own(NonZeroUsize::new(3).unwrap());
        assert!(build(Threads::One).as_bytes() == build(three).as_bytes(), "{shape:?}");
    }
}

#[test]
fn ids_of_all_kinds() {
    let values = [5, 9, 5, 1 << 63];
    let check = |ids: Ids<'_>, expect: &[u64]| {
        let index = Index::build(Bits::B64, &values, ids, &Settings::new(1)).unwrap();
        let found = index.range(&[5], &Ask::within(0), &mut index.scratch()).unwrap();
        assert_eq!(found.matches.iter().map(|m| m.id).collect::<Vec<_>>(), expect);
        assert_eq!((index.values(), index.documents()), (3, 4));
    };
    check(Ids::Positions, &[0, 2]);
    check(Ids::U32(&[7, 8, 7, 9]), &[7, 7]);
    check(Ids::U64(&[u64::MAX, 8, 3, 9]), &[3, u64::MAX]);
    let index = Index::build(Bits::B64, &values, Ids::None, &Settings::new(1)).unwrap();
    assert_eq!(index.range(&[5], &Ask::within(0), &mut index.scratch()).unwrap().matches.len(), 1);
}

#[test]
fn bytes_at_any_place_give_the_same() {
    let values = values(Shape::Clustered, 3000, 2, 4);
    for plan in [Plan::Linear, Plan::MultiIndex { blocks: 4, key_bits: 8 }] {
        let settings = Settings { plan: Some(plan), ..Settings::new(9) };
        let index = Index::build(Bits::B128, &values, Ids::Positions, &settings).unwrap();
        let mut moved = vec![0; index.as_bytes().len() + 64];
        for at in [1, 4, 8, 62] {
            moved[at..][..index.as_bytes().len()].copy_from_slice(index.as_bytes());
            let again = Index::from_bytes(&moved[at..]).unwrap();
            for query in queries(&values, 2, 9, 4) {
                let ask = Ask::within(9);
                let ranges =
                    [&index, &again].map(|i| i.range(&query, &ask, &mut i.scratch()).unwrap());
                assert_eq!(ranges[0].matches, ranges[1].matches, "{plan}, byte {at}");
            }
        }
    }
}

#[test]
fn no_other_version_is_read() {
    let values = values(Shape::Uniform, 300, 1, 4);
    let index = Index::build(Bits::B64, &values, Ids::Positions, &Settings::new(3)).unwrap();
    let mut bytes = index.as_bytes().to_vec();
    assert_eq!(bytes[8], 5);
    for version in [0, 1, 2, 3, 4, 6] {
        bytes[8] = version;
        image::seal(&mut bytes);
        let error = Index::from_bytes(&bytes).unwrap_err();
        assert_eq!(error, FormatError::Version { found: version.into() });
        assert!(error.to_string().contains("build the index again"), "{error}");
    }
}

#[test]
fn a_budget_and_a_break_end_a_query() {
    let values = values(Shape::OneBall, 5000, 1, 1);
    for plan in plans(Bits::B64, 3) {
        let settings = Settings { plan: Some(plan), ..Settings::new(3) };
        let index = Index::build(Bits::B64, &values, Ids::None, &settings).unwrap();
        let mut scratch = index.scratch();
        let ask = Ask { max_distance: 3, budget: Budget::Fingerprints(100) };
        let found = index.range(&values[..1], &ask, &mut scratch).unwrap();
        assert!(found.outcome.truncated && found.outcome.work.candidates <= 100, "{plan}");
        let mut hits = 0;
        let outcome = index.visit(&values[..1], &Ask::within(3), &mut scratch, &mut |_| {
            hits += 1;
            ControlFlow::Break(())
        });
        assert!(outcome.unwrap().stopped && hits == 1, "{plan}");
    }
}

#[test]
fn mistakes_name_the_remedy() {
    let build = |bits, words: &[u64], ids: Ids<'_>, settings: &Settings| {
        Index::build(bits, words, ids, settings).unwrap_err().to_string()
    };
    let settings = Settings::new(3);
    assert!(build(Bits::B32, &[1], Ids::None, &settings).contains("use 64, 128 or 256"));
    assert!(build(Bits::B128, &[1], Ids::None, &settings).contains("of 2 words"));
    assert!(build(Bits::B64, &[1], Ids::U32(&[]), &settings).contains("expected 1 ids"));
    assert!(build(Bits::B64, &[1], Ids::None, &Settings::new(65)).contains("64 at most"));
    let plan = Some(Plan::PerfectCode { tables: 2, key_bits: 26 });
    let error = build(Bits::B64, &[1], Ids::None, &Settings { plan, ..Settings::new(4) });
    assert!(error.contains("reaches distance 3 and 4 is asked"), "{error}");
    let plan = Some(Plan::MultiIndex { blocks: 3, key_bits: 31 });
    let error = build(Bits::B64, &[1], Ids::None, &Settings { plan, ..settings });
    assert!(error.contains("from 1 to 30"), "{error}");
    let index = Index::build(Bits::B64, &[1], Ids::None, &settings).unwrap();
    let mut scratch = index.scratch();
    let error = index.range(&[1], &Ask::within(4), &mut scratch).unwrap_err().to_string();
    assert!(error.contains("build it for 4"), "{error}");
    let error = index.range(&[1, 2], &Ask::within(3), &mut scratch).unwrap_err().to_string();
    assert!(error.contains("two widths"), "{error}");
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(
        n in 0usize..300, at: usize, xor in 1u8.., cut: usize, seed: u64, sealed: bool, pick: usize,
    ) {
        let values = values(Shape::Clustered, n, 1, seed);
        let plans = plans(Bits::B64, 3);
        let settings = Settings { plan: Some(plans[pick % plans.len()]), ..Settings::new(3) };
        let index = Index::build(Bits::B64, &values, Ids::Positions, &settings).unwrap();
        let mut bytes = index.as_bytes().to_vec();
        // Half of the damage is done to the header and sealed again, to reach past its checksum.
        let header = image::header_bytes(1);
        let at = if sealed { at % header } else { at % bytes.len() };
        bytes[at] ^= xor;
        if sealed {
            image::seal(&mut bytes);
        }
        if let Ok(damaged) = Index::from_bytes(&bytes) {
            let intact = bytes[..] == *index.as_bytes();
            let _ = damaged.verify();
            let mut scratch = damaged.scratch();
            let query: Vec<u64> = (0..damaged.bits().words()).map(|_| seed).collect();
            let ask = Ask { max_distance: damaged.max_distance().min(3), budget: Budget::Fingerprints(100_000) };
            let found = damaged.range(&query, &ask, &mut scratch);
            prop_assert!(found.is_ok() || !intact);
        }
        let cut = cut % bytes.len();
        prop_assert!(Index::from_bytes(&index.as_bytes()[..cut]).is_err());
    }
}
