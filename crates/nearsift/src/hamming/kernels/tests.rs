use super::*;
use proptest::prelude::*;

/// Values in few clusters, so that small distances do occur.
fn values<const W: usize>() -> impl Strategy<Value = Vec<[u64; W]>> {
    let flips = prop::collection::vec(0..64 * W, 0..6);
    let lists = prop_oneof![8 => 0..90usize, 1 => 90..300usize];
    let list = move |len| prop::collection::vec((0..3u64, flips.clone()), len);
    lists.prop_flat_map(list).prop_map(|docs| {
        docs.into_iter()
            .map(|(centre, flips)| {
                let mut value = [centre.wrapping_mul(0x9e37_79b9_7f4a_7c15); W];
                for bit in flips {
                    value[bit / 64] ^= 1 << (bit % 64);
                }
                value
            })
            .collect()
    })
}

fn check<const W: usize>(values: &[[u64; W]], cut: usize, max: u32) -> Result<(), TestCaseError> {
    let near = |a: &[u64; W], b: &[u64; W]| crate::hamming::distance(a, b) <= max;
    let n = values.len();
    let every = |from: usize| {
        (0..n).flat_map(move |i| (if from == 0 { 0 } else { i + 1 }..n).map(move |j| (i, j)))
    };
    let pairs: Vec<(u32, u32)> = every(1)
        .filter(|&(i, j)| near(&values[i], &values[j]))
        .map(|(i, j)| (i as u32, j as u32))
        .collect();
    let (queries, others) = values.split_at(cut.min(n));
    let mut across = Vec::new();
    for (q, query) in queries.iter().enumerate() {
        for (j, other) in others.iter().enumerate() {
            if near(query, other) {
                across.push((q as u32, j as u32));
            }
        }
    }
    // Any folds will do, if the parts are turned.
    let fold = values.first().map_or(Fold::PLAIN, Fold::of_agreeing);
    for kernel in Kernel::available() {
        let mut hits = Vec::new();
        let middle = cut / TILE * TILE;
        if middle < n {
            kernel.pairs_by_folds(values, 0..middle, &fold, max, &mut hits);
            kernel.pairs_by_folds(values, middle..n, &fold, max, &mut hits);
        } else {
            kernel.pairs_within(values, 0..n, max, &mut hits);
        }
        hits.sort_unstable();
        prop_assert_eq!(&hits, &pairs, "pairs by {}", kernel);
        hits.clear();
        kernel.across_within(queries, others, max, &mut hits);
        hits.sort_unstable();
        prop_assert_eq!(&hits, &across, "across by {}", kernel);
    }
    Ok(())
}

/// Scans of the column from each of some offsets, so that vectors are loaded unaligned.
fn check_scans<T: Lane + fmt::Debug>(
    column: &[T],
    distance: impl Fn(&T, &T) -> u32,
    max: u32,
) -> Result<(), TestCaseError> {
    let queries: Vec<T> = column.iter().copied().step_by(7).take(QUERIES).collect();
    for from in [0, 1, 3] {
        let values = &column[from.min(column.len())..];
        let near = |query: &T| -> Vec<u32> {
            let positions = (0u32..).zip(values);
            positions.filter(|(_, v)| distance(query, v) <= max).map(|(at, _)| at).collect()
        };
        for kernel in Kernel::available() {
            let mut many = Vec::new();
            kernel.scan_many(values, &queries, max, &mut many);
            prop_assert!(
                many.is_sorted_by_key(|&(q, at)| (at / 64, q, at)),
                "order of many by {}",
                kernel
            );
            for (q, query) in queries.iter().enumerate() {
                let expect = near(query);
                let mut hits = Vec::new();
                kernel.scan(values, *query, max, &mut hits);
                prop_assert_eq!(&hits, &expect, "scan by {}", kernel);
                let own = many.iter().filter(|hit| hit.0 == q as u32);
                let own: Vec<u32> = own.map(|hit| hit.1).collect();
                prop_assert_eq!(&own, &expect, "query {} of many by {}", q, kernel);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_kernel_scans_as_a_plain_loop_does(
        one in values::<1>(), two in values::<2>(), four in values::<4>(), copies in 1usize..4,
        max in 0u32..40,
    ) {
        // Up to 270 values: blocks, rests of every length, and long ones.
        let (one, two, four) = (one.repeat(copies), two.repeat(copies), four.repeat(copies));
        let words: Vec<u64> = one.iter().map(|v| v[0]).collect();
        check_scans(&words, |a, b| (a ^ b).count_ones(), max)?;
        let halves: Vec<u32> = words.iter().map(|v| *v as u32).collect();
        check_scans(&halves, |a, b| (a ^ b).count_ones(), max)?;
        let quarters: Vec<u16> = words.iter().map(|v| *v as u16).collect();
        check_scans(&quarters, |a, b| (a ^ b).count_ones(), max)?;
        check_scans(&one, |a, b| crate::hamming::distance(a, b), max)?;
        check_scans(&two, |a, b| crate::hamming::distance(a, b), max)?;
        check_scans(&four, |a, b| crate::hamming::distance(a, b), max)?;
    }

    #[test]
    fn every_kernel_finds_what_a_plain_loop_finds(
        one in values::<1>(), two in values::<2>(), four in values::<4>(),
        cut in 0usize..90, max in 0u32..24,
    ) {
        check(&one, cut, max)?;
        check(&two, cut, max)?;
        check(&four, cut, max)?;
    }
}

proptest! {
    #[test]
    fn every_kernel_compares_folds_as_a_plain_loop_does(
        one in values::<1>(), two in values::<2>(), copies in 1usize..3, start in 0usize..40,
        len in 0usize..600, max in 0u32..34,
    ) {
        let mut folds: Vec<u32> = one.iter().map(|value| Fold::PLAIN.of(value)).collect();
        folds.extend(two.iter().map(|value| Fold::PLAIN.of(value)));
        folds = folds.repeat(copies);
        let end = (start + len).min(folds.len());
        let run = start.min(end)..end;
        folds.extend([0; FOLDS_BEHIND]);
        let mut expect = Vec::new();
        tiles::fold_pairs(&folds, run.clone(), max, &mut expect);
        for kernel in Kernel::available() {
            let mut hits = Vec::new();
            kernel.fold_pairs(&folds, run.clone(), max, &mut hits);
            hits.sort_unstable();
            prop_assert_eq!(&hits, &expect, "{}", kernel);
        }
    }
}

/// Long lists, of values spread evenly and of values whose halves are alike, so that what differs cancels
/// out when they are folded.
#[test]
fn long_lists_give_the_same_pairs_by_every_kernel() {
    let even = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i * i) << 20;
    let cancelling = |i: u64| even(i) >> 32 | even(i) >> 32 << 32;
    for values in [
        (0..4500).map(|i| [even(i / 2) ^ 1 << (i % 64)]).collect::<Vec<_>>(),
        (0..4500).map(|i| [cancelling(i / 2) ^ 1 << (i % 64)]).collect(),
        (0..4500).map(|i| [cancelling(i)]).collect(),
    ] {
        for max in [2, 4, 7] {
            let mut expect = Vec::new();
            Kernel::PORTABLE.pairs_within(&values, 0..values.len(), max, &mut expect);
            expect.sort_unstable();
            for kernel in Kernel::available() {
                let mut hits = Vec::new();
                for rows in [0..48, 48..56, 56..4000, 4000..4500] {
                    kernel.pairs_within(&values, rows, max, &mut hits);
                }
                hits.sort_unstable();
                assert!(hits == expect, "{kernel}, {max}");
                let (queries, others) = values.split_at(1003);
                hits.clear();
                kernel.across_within(queries, others, max, &mut hits);
                hits.sort_unstable();
                let across = expect.iter().filter(|&&(i, j)| i < 1003 && j >= 1003);
                assert!(
                    hits.iter().copied().eq(across.map(|&(i, j)| (i, j - 1003))),
                    "{kernel}, {max}"
                );
            }
        }
    }
}

#[test]
fn a_distance_beyond_the_width_finds_all() {
    let values: Vec<[u64; 1]> = (0..20).map(|i| [u64::MAX << i]).collect();
    for kernel in Kernel::available() {
        let mut hits = Vec::new();
        kernel.pairs_within(&values, 0..20, u32::MAX, &mut hits);
        assert_eq!(hits.len(), 190, "{kernel}");
    }
}

#[test]
fn scans_beyond_the_width_find_all() {
    let words: Vec<u64> = (0..100).map(|i| u64::MAX << (i % 64)).collect();
    for kernel in Kernel::available() {
        for max in [64, 65, 70_000, u32::MAX] {
            let (mut hits, mut many) = (Vec::new(), Vec::new());
            kernel.scan(&words, 0, max, &mut hits);
            kernel.scan_many(&words, &[0; QUERIES], max, &mut many);
            let halves: Vec<u32> = words.iter().map(|&v| v as u32).collect();
            kernel.scan(&halves, 0, max, &mut hits);
            kernel.scan_many(&halves, &[0; QUERIES], max, &mut many);
            let quarters: Vec<u16> = words.iter().map(|&v| v as u16).collect();
            kernel.scan(&quarters, 0, max, &mut hits);
            kernel.scan_many(&quarters, &[0; QUERIES], max, &mut many);
            assert_eq!((hits.len(), many.len()), (300, 300 * QUERIES), "{kernel}, {max}");
        }
    }
}

#[test]
fn nothing_is_near_nothing() {
    for kernel in Kernel::available() {
        let (mut hits, mut many) = (Vec::new(), Vec::new());
        kernel.scan::<u64>(&[], 0, 64, &mut hits);
        kernel.scan_many::<u64>(&[], &[0; 3], 64, &mut many);
        kernel.scan_many::<u64>(&[1, 2, 3], &[], 64, &mut many);
        assert!(hits.is_empty() && many.is_empty(), "{kernel}");
    }
}
