//! Dense balls against a naive scan.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use testkit::random::Random;

use super::super::image::seal;
use super::super::tests::naive;
use super::super::{Hit, Ids, Index, Match, Search, Settings, Threads, Wide};
use super::*;
use crate::fingerprint::Bits;
use crate::hamming::distance;
use crate::hamming::planner::Plan;

/// Values in balls of so many documents each within a radius, and evenly spread ones.
fn crowded(words: usize, balls: &[(usize, usize)], even: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut values: Vec<Vec<u64>> = Vec::new();
    for &(documents, radius) in balls {
        let centre: Vec<u64> = (0..words).map(|_| random.next_u64()).collect();
        for _ in 0..documents {
            let mut value = centre.clone();
            for _ in 0..radius {
                let bit = random.below(64 * words);
                value[bit / 64] ^= 1 << (bit % 64);
            }
            values.push(value);
        }
    }
    values.extend((0..even).map(|_| (0..words).map(|_| random.next_u64()).collect()));
    // Balls and others stand in no order.
    for i in (1..values.len()).rev() {
        values.swap(i, random.below(i + 1));
    }
    values.concat()
}

fn balls_of(index: &Index<'_>) -> usize {
    wide!(&index.layout, layout => layout.balls.len())
}

/// Queries from the centre of a crowd to beyond its edge.
fn queries(values: &[u64], words: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random::new(seed);
    let query = |flips: usize| {
        let from = random.below(values.len() / words) * words;
        let mut query = values[from..from + words].to_vec();
        for _ in 0..flips {
            let bit = random.below(64 * words);
            query[bit / 64] ^= 1 << (bit % 64);
        }
        query
    };
    [0, 0, 1, 2, 3, 4, 5, 6, 7, 9].into_iter().map(query).collect()
}

/// Three steps find what a query as a whole does.
fn check_ways(index: &Index<'_>, queries: &[Vec<u64>], ask: &Ask) {
    let mut scratch = index.scratch();
    let (mut single, mut steps) = (Vec::new(), Vec::new());
    let take = |to: &mut Vec<(usize, u32, u64)>, query: usize, hit: &Hit<'_>| {
        hit.each_id(|id| to.push((query, hit.distance(), id)));
        ControlFlow::Continue(())
    };
    for (q, query) in queries.iter().enumerate() {
        let each = &mut |hit: &Hit<'_>| take(&mut single, q, hit);
        let whole = index.visit(query, ask, &mut scratch, each).unwrap();
        index.begin(query, ask, &mut scratch).unwrap();
        index.look_up(&mut scratch);
        let each = &mut |hit: &Hit<'_>| take(&mut steps, q, hit);
        assert_eq!(index.finish(query, ask, &mut scratch, each), whole);
    }
    assert!(steps == single);
}

fn check(bits: Bits, values: &[u64], plan: Option<Plan>, max_distance: u32, seed: u64) -> usize {
    let words = bits.words();
    let settings = Settings { plan, ..Settings::new(max_distance) };
    let n = values.len() / words;
    let (narrow, broad): (Vec<u32>, Vec<u64>) =
        (0..n as u64).map(|i| ((i * 7 % 5) as u32, u64::MAX - i)).unzip();
    let kinds = [Ids::None, Ids::Positions, Ids::U32(&narrow), Ids::U64(&broad)];
    let kinds = kinds.map(|ids| Index::build(bits, values, ids, &settings).unwrap());
    let (ordered, order) = Index::build_ordered(bits, values, &settings).unwrap();
    let mut place = 0;
    ordered.each_value_from(0, &mut |value| {
        let at = order[place] as usize * words;
        assert_eq!(value, &values[at..at + words]);
        place += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(place, n);
    let mut whole = 0;
    ordered.each_whole_value(&|at| at.end <= ordered.as_bytes().len(), &mut |place, value| {
        let at = order[place as usize] as usize * words;
        assert_eq!(value, &values[at..at + words]);
        whole += 1;
    });
    assert_eq!(whole, n);
    let threads = Threads::Own(NonZeroUsize::new(3).unwrap());
    let again = Settings { threads, ..settings };
    let again = Index::build_ordered(bits, values, &again).unwrap();
    assert!(again.0.as_bytes() == ordered.as_bytes() && again.1 == order);
    let mut distinct: Vec<&[u64]> = values.chunks(words).collect();
    distinct.sort_unstable();
    distinct.dedup();
    for index in kinds.iter().chain([&ordered]) {
        assert_eq!((index.verify(), index.documents()), (Ok(()), n as u64));
        assert_eq!(index.values(), distinct.len() as u64);
        assert_eq!(balls_of(index), balls_of(&ordered));
        let index = Index::from_bytes(index.as_bytes()).unwrap();
        let mut scratch = index.scratch();
        let queries = queries(values, words, seed);
        check_ways(&index, &queries, &Ask::within(max_distance));
        for query in queries {
            for k in [max_distance, max_distance / 2, 0] {
                let near = naive(values, &query, k);
                let found = index.range(&query, &Ask::within(k), &mut scratch).unwrap();
                assert!(!found.outcome.truncated);
                let with = |id: &dyn Fn(u64) -> u64| {
                    let id_of = |m: &Match| Match { id: id(m.id), ..*m };
                    let mut all: Vec<Match> = near.iter().map(id_of).collect();
                    all.sort_unstable();
                    all
                };
                let mut matches = found.matches;
                match index.as_bytes() {
                    bytes if bytes == kinds[0].as_bytes() => {
                        let near = distinct.iter().filter(|v| distance(v, &query) <= k);
                        assert_eq!(matches.len(), near.count());
                        continue;
                    }
                    bytes if bytes == kinds[1].as_bytes() => {}
                    bytes if bytes == kinds[2].as_bytes() => {
                        assert_eq!(matches, with(&|id| u64::from(narrow[id as usize])));
                        continue;
                    }
                    bytes if bytes == kinds[3].as_bytes() => {
                        assert_eq!(matches, with(&|id| broad[id as usize]));
                        continue;
                    }
                    _ => {
                        matches.iter_mut().for_each(|m| m.id = u64::from(order[m.id as usize]));
                        matches.sort_unstable();
                    }
                }
                assert_eq!(matches, near, "{} within {k}", index.plan());
                // What was found with a budget is right, and it is kept.
                let work = found.outcome.work.candidates;
                for budget in [work, work / 2, 7] {
                    let ask = Ask { max_distance: k, budget: Budget::Fingerprints(budget) };
                    let some = index.range(&query, &ask, &mut scratch).unwrap();
                    assert!(some.outcome.work.candidates <= budget);
                    assert_eq!(some.outcome.truncated, budget < work);
                }
            }
        }
    }
    balls_of(&ordered)
}

#[test]
fn tight_balls_stand_outside_the_tables() {
    let plans = [
        None,
        Some(Plan::BLOCKS_4X16),
        Some(Plan::MultiIndex { blocks: 4, key_bits: 6 }),
        Some(Plan::MultiIndex { blocks: 2, key_bits: 10 }),
        Some(Plan::PerfectCode { tables: 2, key_bits: 12 }),
    ];
    for plan in plans {
        // Whether there are crowded buckets depends on the plan.
        let one = crowded(1, &[(4000, 2)], 0, 3);
        let found = check(Bits::B64, &one, plan, 3, 1);
        assert!(found == 1 || plan.is_none(), "{plan:?}");
        let three = crowded(1, &[(3000, 3), (900, 1), (5000, 2)], 2000, 4);
        let found = check(Bits::B64, &three, plan, 3, 2);
        assert!((1..=3).contains(&found) || plan.is_none(), "{found} by {plan:?}");
    }
    for bits in [Bits::B128, Bits::B256] {
        let values = crowded(bits.words(), &[(3000, 2)], 500, 8);
        let plan = Plan::MultiIndex { blocks: 4, key_bits: 12 };
        assert_eq!(check(bits, &values, Some(plan), 3, 1), 1);
    }
}

#[test]
fn sparse_balls_stay_in_the_tables() {
    let plan = Some(Plan::MultiIndex { blocks: 4, key_bits: 6 });
    let values = crowded(1, &[(4000, 9)], 100, 3);
    assert_eq!(check(Bits::B64, &values, plan, 3, 1), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn balls_find_what_a_scan_finds(
        words in 0usize..3, balls in prop::collection::vec((200usize..1500, 0usize..5), 1..4),
        even in 0usize..800, max_distance in 0u32..9, key_bits in 2u32..12, seed: u64,
    ) {
        let bits = [Bits::B64, Bits::B128, Bits::B256][words];
        let values = crowded(bits.words(), &balls, even, seed);
        let plan = Plan::MultiIndex { blocks: max_distance / 2 + 1, key_bits };
        check(bits, &values, Some(plan), max_distance, seed);
    }

    #[test]
    fn damaged_balls_never_panic(at: usize, xor in 1u8.., seed in 0u64..4, in_record: bool) {
        let values = crowded(1, &[(1500, 2)], 50, seed);
        let plan = Some(Plan::MultiIndex { blocks: 4, key_bits: 6 });
        let settings = Settings { plan, ..Settings::new(3) };
        let index = Index::build(Bits::B64, &values, Ids::Positions, &settings).unwrap();
        let Wide::One(layout) = &index.layout else { panic!("one word") };
        let mut bytes = index.as_bytes().to_vec();
        let record_at = layout.balls[0].record_at.clone();
        // The header's numbers of them, a record, or anything.
        let at = match in_record {
            true => [104 + at % 12, record_at.start + at % RECORD][at % 2],
            false => at % bytes.len(),
        };
        bytes[at] ^= xor;
        seal(&mut bytes);
        if let Ok(damaged) = Index::from_bytes(&bytes) {
            let mut scratch = damaged.scratch();
            for query in queries(&values, 1, seed) {
                let _ = damaged.range(&query, &Ask::within(3.min(damaged.max_distance())), &mut scratch);
            }
            let mut read = 0;
            damaged.each_value_from(0, &mut |_| {
                read += 1;
                if read > values.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
    }

    #[test]
    fn every_choice_is_looked_up_once(centre: u64, query: u64, radius in 0u32..64, k in 0u32..4) {
        let query = centre ^ (query & 0xfff);
        let apart = (query ^ centre).count_ones();
        let sections = [0..RECORD, 0..LINE, 0..PADDING];
        let ball = StoredBall::new(([centre], radius), 0, 0, sections).unwrap();
        let (query_words, ignore) = ([query], &mut |_| ControlFlow::Continue(()));
        let bytes = (&[0; LINE][..], &[0; PADDING][..]);
        let mut lookups =
            Lookups::new(Kernel::best(), &ball, bytes, &query_words, Budget::Unlimited, ignore);
        let _ = lookups.all(apart, k);
        let looked_up = lookups.outcome.work.probes;
        let counted = if apart > radius + k { 0.0 } else { ball.words(apart, k) };
        prop_assert_eq!(looked_up as f64, counted);
        // By comparing: of all words within k of the query those in the ball.
        let mut expect = 0u64;
        let changes: Vec<Word<1>> = (0..64).map(|bit| Word { hash: 0, bits: [1 << bit] }).collect();
        for flips in 0..=k {
            let _ = choose(&Word { hash: 0, bits: [query] }, &changes, flips, &mut |word| {
                expect += u64::from((word.bits[0] ^ centre).count_ones() <= radius);
                ControlFlow::Continue(())
            });
        }
        prop_assert_eq!(looked_up, expect);
    }
}
