use super::*;
use proptest::prelude::*;
use testkit::random::Random;

/// Fingerprints of which a share lies around few centres.
fn fingerprints<const W: usize>(n: usize, seed: u64) -> Vec<[u64; W]> {
    let mut random = Random::new(seed);
    let centres: [[u64; W]; 3] = std::array::from_fn(|_| [0; W].map(|_: u64| random.next_u64()));
    let mut one = || {
        if random.per_mille(700) {
            return [0; W].map(|_: u64| random.next_u64());
        }
        let mut value = *random.pick(&centres);
        for _ in 0..random.below(12) {
            let bit = random.below(64 * W);
            value[bit / 64] ^= 1 << (bit % 64);
        }
        value
    };
    (0..n).map(|_| one()).collect()
}

fn naive<const W: usize>(values: &[[u64; W]], query: &[u64; W], max: u32) -> Vec<Match> {
    let hits = values
        .iter()
        .zip(0..)
        .map(|(value, id)| Match { distance: crate::hamming::distance(query, value), id });
    hits.filter(|hit| hit.distance <= max).collect()
}

/// Every choice of planes that this width has.
fn scans<const W: usize>(values: &[[u64; W]]) -> Vec<Scan<'_, W>> {
    let mut scans = vec![Scan::new(values)];
    for fold in Fold::ALL.into_iter().filter(|fold| fold.bits() < 64 * W as u32) {
        let more: Vec<_> = scans.iter().map(|scan| scan.clone().folded(fold)).collect();
        scans.extend(more);
    }
    scans
}

fn range<const W: usize>(scan: &Scan<'_, W>, query: &[u64; W], max: u32) -> Vec<Match> {
    let mut hits = Vec::new();
    let outcome = scan.range(query, max, Budget::Unlimited, |hit| {
        hits.push(hit);
        ControlFlow::Continue(())
    });
    let n = scan.fingerprints().len() as u64;
    assert_eq!(outcome, compared(n));
    hits
}

fn check<const W: usize>(n: usize, seed: u64, max: u32) -> Result<(), TestCaseError> {
    let values = fingerprints::<W>(n, seed);
    let mut queries = fingerprints::<W>(3, seed);
    queries.extend(values.iter().step_by(5).take(20));
    for scan in scans(&values) {
        let folds: Vec<Fold> = scan.planes().iter().map(Plane::fold).collect();
        let mut many = vec![Vec::new(); queries.len()];
        scan.range_many(&queries, max, Budget::Unlimited, |q, hit| {
            many[q].push(hit);
            ControlFlow::Continue(())
        });
        for (query, many) in queries.iter().zip(&many) {
            let expect = naive(&values, query, max);
            prop_assert_eq!(&range(&scan, query, max), &expect, "range, {:?}", &folds);
            prop_assert_eq!(many, &expect, "range of many, {:?}", &folds);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_scan_finds_what_a_plain_loop_finds(
        n in 0usize..700, seed: u64, share in 0u32..=64,
    ) {
        check::<1>(n, seed, share)?;
        check::<2>(n, seed, share * 2)?;
        check::<4>(n, seed, share * 4)?;
    }

    #[test]
    fn a_fold_is_never_further_apart(a: [u64; 4], bits in prop::collection::vec(0usize..256, 0..20)) {
        let mut b = a;
        for bit in bits {
            b[bit / 64] ^= 1 << (bit % 64);
        }
        let distance = crate::hamming::distance(&a, &b);
        let folds = [
            (fold_16(&a) ^ fold_16(&b)).count_ones(),
            (fold_32(&a) ^ fold_32(&b)).count_ones(),
            (fold_64(&a) ^ fold_64(&b)).count_ones(),
            crate::hamming::distance(&fold_128(&a), &fold_128(&b)),
        ];
        prop_assert!(folds.is_sorted() && folds[3] <= distance, "{:?}, {}", folds, distance);
    }
}

#[test]
fn planes_that_rule_out_nothing_are_left_and_tried_again() {
    // Three chunks: one ball, then random values, then the ball again; all folds of the first lie
    // within the distance, though few of the fingerprints do.
    let mut random = Random::new(3);
    let centre = random.next_u64();
    let ball = |random: &mut Random| {
        // Two bits that one fold has in common: distance 2 or 4, folded 0.
        let bit = random.below(16);
        [centre ^ (0x1_0001 << bit) ^ (0x1_0001 << random.below(16) << 16)]
    };
    let mut values = Vec::new();
    for i in 0..80 * CHUNK {
        let near = (i / CHUNK).is_multiple_of(40);
        values.push(if near { ball(&mut random) } else { [random.next_u64()] });
    }
    for scan in scans(&values) {
        assert_eq!(range(&scan, &[centre], 3), naive(&values, &[centre], 3));
    }
}

#[test]
fn breaks_and_budgets() {
    let values: Vec<[u64; 1]> = (0..100_000).map(|i| [i % 7]).collect();
    let scan = Scan::for_distance(&values, 3);
    assert_eq!(scan.planes().len(), 1);
    let mut seen = 0;
    let outcome = scan.range(&[0], 0, Budget::Unlimited, |_| {
        seen += 1;
        if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((seen, outcome), (3, Outcome { stopped: true, ..compared(15) }));

    let check = |budget: u64, expect: usize, truncated: bool| {
        let mut hits = 0;
        let count = |hits: &mut usize| {
            *hits += 1;
            ControlFlow::Continue(())
        };
        let reached = budget.min(100_000);
        let budget = Budget::Fingerprints(budget);
        let outcome = scan.range(&[0], 0, budget, |_| count(&mut hits));
        assert_eq!(
            (hits, outcome),
            (expect, Outcome { truncated, ..compared(reached) }),
            "{budget:?}"
        );
        hits = 0;
        let outcome = scan.range_many(&[[0], [1]], 0, budget, |q, _| {
            if q == 0 { count(&mut hits) } else { ControlFlow::Continue(()) }
        });
        let outcomes = Outcome { truncated, ..compared(2 * reached) };
        assert_eq!((hits, outcome), (expect, outcomes), "{budget:?}, two queries");
    };
    check(0, 0, true);
    check(1, 1, true);
    check(50_001, 7_143, true);
    check(99_999, 14_286, true);
    check(100_000, 14_286, false);
    check(u64::MAX, 14_286, false);
}

#[test]
fn the_plane_suits_the_distance() {
    fn check<const W: usize>(max: u32, expect: &[Fold]) {
        let values = vec![[0; W]; 3];
        let scan = Scan::for_distance(&values, max);
        let folds: Vec<Fold> = scan.planes().iter().map(Plane::fold).collect();
        assert_eq!(folds, expect, "{} bits, distance {max}", 64 * W);
        assert_eq!(range(&scan, &[0; W], max).len(), 3);
    }
    check::<1>(0, &[Fold::B16]);
    check::<1>(3, &[Fold::B32]);
    check::<1>(8, &[Fold::B32]);
    check::<1>(16, &[]);
    check::<1>(u32::MAX, &[]);
    check::<2>(3, &[Fold::B32]);
    check::<2>(16, &[Fold::B64]);
    check::<2>(32, &[]);
    check::<4>(16, &[Fold::B64]);
    check::<4>(40, &[Fold::B128]);
    check::<4>(90, &[]);
}

#[test]
fn a_part_counts_from_its_start() {
    let values = fingerprints::<2>(1000, 1);
    let whole = Scan::new(&values).folded(Fold::B32).folded(Fold::B64);
    let part = whole.part(300..900);
    assert_eq!(part.planes().len(), 2);
    assert_eq!(part.bytes(), 600 * (16 + 4 + 8));
    assert_eq!(range(&part, &values[500], 9), naive(&values[300..900], &values[500], 9));
}
