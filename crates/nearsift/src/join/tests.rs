//! The join against brute force, on data made to hurt it.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::fingerprint::Fingerprint;

/// So many threads.
pub(super) fn workers(count: usize) -> Workers {
    let count = NonZeroUsize::new(count).expect("a thread");
    Workers::start(Threads::Own(count)).expect("threads start")
}

/// A small generator of bits: seeded, the same everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }

    fn fingerprint(&mut self, bits: Bits) -> Fingerprint {
        let words = [self.next(), self.next(), self.next(), self.next()];
        Fingerprint::from_words(bits, &words)
    }

    fn flipped(&mut self, value: &Fingerprint, flips: u32) -> Fingerprint {
        let mut words = value.words().to_vec();
        for _ in 0..flips {
            let bit = self.below(value.bits().count()) as usize;
            words[bit / 64] ^= 1 << (bit % 64);
        }
        Fingerprint::from_words(value.bits(), &words)
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Uniform,
    Clusters,
    BiasedBits,
    AllEqual,
    OneBall,
    SharedBlock,
    FewValues,
    Counting,
}

const SHAPES: [Shape; 8] = [
    Shape::Uniform,
    Shape::Clusters,
    Shape::BiasedBits,
    Shape::AllEqual,
    Shape::OneBall,
    Shape::SharedBlock,
    Shape::FewValues,
    Shape::Counting,
];

fn column(shape: Shape, bits: Bits, n: usize, spread: u32, seed: u64) -> Fingerprints {
    let mut random = Random(seed);
    let centres: Vec<Fingerprint> = (0..n / 8 + 1).map(|_| random.fingerprint(bits)).collect();
    let mut column = Fingerprints::new(bits);
    for i in 0..n {
        let flips = random.below(spread + 1);
        let next = match shape {
            Shape::Uniform => random.fingerprint(bits),
            Shape::Clusters => {
                let centre = centres[random.below(centres.len() as u32) as usize];
                random.flipped(&centre, flips)
            }
            Shape::BiasedBits => {
                let parts =
                    [random.fingerprint(bits), random.fingerprint(bits), random.fingerprint(bits)];
                let words: Vec<u64> = (0..bits.words())
                    .map(|w| parts.iter().fold(u64::MAX, |all, part| all & part.words()[w]))
                    .collect();
                Fingerprint::from_words(bits, &words)
            }
            Shape::AllEqual => centres[0],
            Shape::OneBall => random.flipped(&centres[0], flips),
            Shape::SharedBlock => {
                let mut words = random.fingerprint(bits).words().to_vec();
                words[0] = words[0] & !0xffff | 0xabcd;
                Fingerprint::from_words(bits, &words)
            }
            Shape::FewValues => centres[random.below(3.min(centres.len() as u32)) as usize],
            Shape::Counting => Fingerprint::from_words(bits, &[i as u64, 0, 0, 0]),
        };
        column.push(&next);
    }
    column
}

fn brute_force(column: &Fingerprints, max_distance: u32) -> Vec<Pair> {
    let n = column.len();
    let mut pairs = Vec::new();
    for a in 0..n {
        for b in a + 1..n {
            let distance = column.distance(a, b);
            if distance <= max_distance {
                pairs.push(Pair { a: a as u32, b: b as u32, distance });
            }
        }
    }
    pairs
}

/// The compact form of all pairs.
fn compact(column: &Fingerprints, pairs: &[Pair]) -> Vec<Pair> {
    let first_of = |d: u32| (0..=d).find(|&e| column.get(e as usize) == column.get(d as usize));
    pairs
        .iter()
        .filter(|p| first_of(p.a) == Some(p.a) && (p.distance == 0 || first_of(p.b) == Some(p.b)))
        .copied()
        .collect()
}

fn join(column: &Fingerprints, max_distance: u32, plan: Option<Plan>) -> SelfJoin<'_> {
    SelfJoin::new(column, Settings { plan, ..Settings::new(max_distance) }).expect("a join")
}

fn check(column: &Fingerprints, max_distance: u32) -> Result<(), TestCaseError> {
    let expect = brute_force(column, max_distance);
    let links = compact(column, &expect);
    for plan in [None, Some(Plan::AllPairs), Some(Plan::Nested)] {
        let mut join = join(column, max_distance, plan);
        prop_assert_eq!(&join.pairs(), &expect, "by {:?}", plan);
        // Splitting everything that can be split, in slices, on the best kernel and the portable one.
        join.tuning = Tuning::EAGER;
        join.slices = 3;
        for kernel in [Kernel::best(), Kernel::PORTABLE] {
            join.kernel = kernel;
            join.known = OnceLock::new();
            prop_assert_eq!(&join.pairs(), &expect, "split by {:?}", plan);
            prop_assert_eq!(&join.pairs(), &expect, "again, split by {:?}", plan);
        }
        prop_assert_eq!(&join.links(), &links, "links by {:?}", plan);
        prop_assert_eq!(join.count_pairs().0, expect.len() as u64);
        // Memory for some rows of repeated values, and too little for all pairs at once.
        join.tuning = Tuning::DEFAULT;
        join.slices = 1;
        for capacity in [expect.len() + 60, expect.len() / 5] {
            join.pair_capacity = capacity;
            prop_assert_eq!(&join.pairs(), &expect, "with {} pairs held by {:?}", capacity, plan);
        }
        prop_assert_eq!(&join.links(), &links, "links in ranges by {:?}", plan);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_finds_what_brute_force_finds(
        shape in prop::sample::select(SHAPES.to_vec()),
        bits in prop::sample::select(Bits::ALL.to_vec()),
        n in prop_oneof![0usize..12, 0usize..300],
        max_distance in prop_oneof![0u32..=8, 0u32..=20],
        spread in 0u32..14,
        seed in any::<u64>(),
    ) {
        let column = column(shape, bits, n, spread, seed);
        check(&column, max_distance)?;
    }
}

#[test]
fn a_distance_of_the_whole_width_takes_every_pair() {
    for bits in Bits::ALL {
        let column = column(Shape::Uniform, bits, 40, 0, 7);
        let join = join(&column, bits.count(), None);
        assert_eq!(join.plan(), Plan::AllPairs);
        assert_eq!(join.pairs().len(), 780);
    }
}

/// Twenty thousand values in each shape: all pairs is the oracle here, checked itself above.
#[test]
fn plans_and_threads_agree_on_twenty_thousand() {
    let two = Threads::Own(NonZeroUsize::new(2).expect("two"));
    for (shape, spread) in
        [(Shape::Uniform, 0), (Shape::Clusters, 5), (Shape::SharedBlock, 0), (Shape::BiasedBits, 0)]
    {
        for (bits, max_distance) in
            [(Bits::B32, 2), (Bits::B64, 3), (Bits::B64, 8), (Bits::B128, 6), (Bits::B256, 11)]
        {
            let column = column(shape, bits, 20_000, spread, 11);
            let expect = join(&column, max_distance, Some(Plan::AllPairs)).pairs();
            for plan in [None, Some(Plan::Nested)] {
                for threads in [Threads::One, two] {
                    let settings = Settings { plan, threads, ..Settings::new(max_distance) };
                    let mut join = SelfJoin::new(&column, settings).expect("a join");
                    assert!(join.pairs() == expect, "{shape:?} {bits:?} {plan:?} {threads:?}");
                    let tuning = std::mem::replace(&mut join.tuning, Tuning::AS_MANY);
                    assert!(join.pairs() == expect, "as many {shape:?} {bits:?} {plan:?}");
                    join.tuning = tuning;
                    join.pair_capacity = expect.len() / 3 + 1;
                    assert!(
                        join.pairs() == expect,
                        "ranges {shape:?} {bits:?} {plan:?} {threads:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn one_repeat_among_many_is_found_wherever_it_is() {
    let two = Threads::Own(NonZeroUsize::new(2).expect("two"));
    for (from, to) in [(0, 1), (0, 19_999), (7_000, 13_000)] {
        let mut words: Vec<u64> = {
            let mut random = Random(5);
            (0..20_000).map(|_| random.next()).collect()
        };
        words[100] = words[200] ^ 0b101;
        words[to] = words[from];
        let column = Fingerprints::from_words(Bits::B64, words);
        let mut expect = vec![(from as u32, to as u32, 0), (100, 200, 2)];
        expect.sort_unstable();
        for threads in [Threads::One, two] {
            for max_distance in [2, 8] {
                let settings = Settings { threads, ..Settings::new(max_distance) };
                let join = SelfJoin::new(&column, settings).expect("a join");
                let pairs = join.pairs();
                let pairs: Vec<_> = pairs.iter().map(|p| (p.a, p.b, p.distance)).collect();
                assert_eq!(pairs, expect);
                assert_eq!(join.distinct(), 19_999);
                assert_eq!(join.first_of(to as u32), from as u32);
            }
        }
    }
}

/// The first branch of a cut finds nothing where all pairs differ in a bit of its part, so that pairs seem to be rare.
#[test]
fn pairs_are_found_that_the_first_branch_has_none_of() {
    let two = Threads::Own(NonZeroUsize::new(2).expect("two"));
    for bit in (0..64).step_by(5) {
        for (n, planted) in [(900usize, 5), (900, 400), (20_000, 9_000)] {
            let mut random = Random(bit);
            let mut words: Vec<u64> = (0..n).map(|_| random.next()).collect();
            for i in 0..planted {
                words[n - 1 - i] = words[i] ^ 1 << bit;
            }
            let column = Fingerprints::from_words(Bits::B64, words);
            let expect = join(&column, 2, Some(Plan::AllPairs)).pairs();
            assert!(expect.len() >= planted);
            for (tuning, slices) in [(Tuning::EAGER, 1), (Tuning::EAGER, 4), (Tuning::DEFAULT, 2)] {
                for threads in [Threads::One, two] {
                    let settings = Settings { threads, ..Settings::new(2) };
                    let mut join = SelfJoin::new(&column, settings).expect("a join");
                    (join.tuning, join.slices) = (tuning, slices);
                    assert!(join.pairs() == expect, "bit {bit}, {planted} of {n}, {threads:?}");
                }
            }
        }
    }
}

#[test]
fn values_that_crowd_cost_no_more_than_comparing_all() {
    let n = 20_000u64;
    for shape in [Shape::OneBall, Shape::SharedBlock, Shape::Counting, Shape::Clusters] {
        for plan in [None, Some(Plan::Nested)] {
            let column = column(shape, Bits::B64, n as usize, 3, 3);
            let (_, work) = join(&column, 3, plan).count_pairs();
            assert!(work.comparisons <= n * n / 2, "{shape:?} {plan:?} {work:?}");
            assert!(work.moves <= 64 * n, "{shape:?} {plan:?} {work:?}");
        }
    }
}

#[test]
fn the_caller_can_stop() {
    let column = column(Shape::OneBall, Bits::B64, 500, 2, 1);
    let join = join(&column, 4, None);
    let mut seen = Vec::new();
    let ended = join.for_each_pair(|pair| {
        seen.push(pair);
        if seen.len() == 10 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
    });
    assert_eq!(ended, ControlFlow::Break("enough"));
    assert_eq!(seen, join.pairs()[..10]);
}

#[test]
fn settings_that_cannot_work_are_refused_with_what_can() {
    let column = column(Shape::Uniform, Bits::B64, 1000, 0, 1);
    let check = |settings: Settings, expect: &str| {
        let error = SelfJoin::new(&column, settings).expect_err("refused").to_string();
        assert!(error.contains(expect), "{error}");
    };
    check(Settings::new(65), "ask for 64 at most");
    let tight = |limit| Settings { memory_bytes: Some(limit), ..Settings::new(3) };
    let Err(JoinError::Memory { needed, .. }) = SelfJoin::new(&column, tight(1)) else {
        panic!("refused for memory");
    };
    check(tight(needed - 1), &format!("raise the memory limit to {needed} bytes"));
    let least = SelfJoin::new(&column, tight(needed)).expect("enough");
    assert_eq!(least.pairs(), join(&column, 3, None).pairs());
}

#[test]
fn the_explanation_is_near_the_work_done() {
    for max_distance in [3, 6, 8] {
        let column = column(Shape::Uniform, Bits::B64, 50_000, 0, 2);
        let join = join(&column, max_distance, None);
        let explained = join.explain();
        let (_, work) = join.count_pairs();
        let ratio = work.comparisons as f64 / explained.comparisons;
        assert!((0.3..3.0).contains(&ratio), "{explained} and did {work:?}");
    }
}
