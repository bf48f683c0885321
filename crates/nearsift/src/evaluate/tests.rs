//! The measures against their definitions, pair by pair.

use proptest::prelude::*;

use super::*;

const DOCUMENTS: u32 = 9;

fn all_pairs(documents: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..documents).flat_map(move |b| (0..b).map(move |a| (a, b)))
}

/// Clusters and labels that do not contradict each other.
fn truths() -> impl Strategy<Value = Truth> {
    prop::collection::vec(0u8..3, (DOCUMENTS * (DOCUMENTS - 1) / 2) as usize).prop_filter_map(
        "one class only",
        |labels| {
            let label = |l| [Label::Positive, Label::Grey, Label::Negative][usize::from(l)];
            let pairs = all_pairs(DOCUMENTS).zip(labels).map(|((a, b), l)| (b, a, label(l)));
            Truth::of_pairs(DOCUMENTS as usize, pairs).ok()
        },
    )
}

fn scores() -> impl Strategy<Value = Vec<ScoredPair>> {
    let pair = (0..DOCUMENTS, 0..DOCUMENTS, 0u8..6);
    prop::collection::vec(
        pair.prop_map(|(a, b, score)| ScoredPair { a, b, score: f64::from(score) / 5.0 }),
        0..40,
    )
}

/// The best score of a pair, if it was given.
fn score_of(scored: &[ScoredPair], a: u32, b: u32) -> Option<f64> {
    let given = scored.iter().filter(|p| (p.a, p.b) == (a, b) || (p.b, p.a) == (a, b));
    given.map(|p| p.score).reduce(f64::max)
}

fn naive_tally(truth: &Truth, scored: &[ScoredPair], threshold: f64) -> Tally {
    let mut tally = Tally::default();
    for (a, b) in all_pairs(DOCUMENTS) {
        let is_accepted = score_of(scored, a, b).is_some_and(|s| s >= threshold);
        let label = truth.label(a, b);
        tally.positives += u64::from(label == Label::Positive);
        tally.true_pairs += u64::from(label == Label::Positive && is_accepted);
        tally.false_pairs += u64::from(label == Label::Negative && is_accepted);
    }
    tally
}

proptest! {
    #[test]
    fn a_ranking_counts_what_the_definitions_count(truth in truths(), scored in scores()) {
        let ranking = Ranking::new(&truth, scored.iter().copied()).expect("valid");
        let thresholds: Vec<f64> = (0..=6).map(|t| f64::from(t) / 5.0).collect();
        for &threshold in &thresholds {
            prop_assert_eq!(ranking.at(threshold), naive_tally(&truth, &scored, threshold));
        }
        for operating in ranking.thresholds() {
            prop_assert_eq!(operating.tally, naive_tally(&truth, &scored, operating.threshold));
        }
        for (min, weight) in [(0.99, 1), (0.99, 100), (0.5, 1), (0.5, 3)] {
            let best = thresholds
                .iter()
                .map(|&t| naive_tally(&truth, &scored, t))
                .filter(|t| {
                    t.true_pairs > 0
                        && t.true_pairs as f64 / (t.true_pairs + weight * t.false_pairs) as f64 >= min
                })
                .map(|t| t.true_pairs)
                .max();
            let found = ranking.recall_at_precision(min, weight).map(|o| o.tally.true_pairs);
            prop_assert_eq!(found, best);
        }
        let f1 = thresholds.iter().filter_map(|&t| naive_tally(&truth, &scored, t).f1());
        let best = ranking.best_f1().map_or(0.0, |o| o.tally.f1().expect("positives"));
        prop_assert_eq!(best, f1.fold(0.0, f64::max));
    }

    #[test]
    fn precision_recall_and_f1_are_the_usual_ones(truth in truths(), scored in scores()) {
        let tally = naive_tally(&truth, &scored, 0.4);
        let (p, r) = (tally.precision(), tally.recall().expect("positives"));
        if let Some(p) = p.filter(|p| p + r > 0.0) {
            prop_assert!((tally.f1().expect("positives") - 2.0 * p * r / (p + r)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_rand_index_equals_its_definition(
        a in prop::collection::vec(0u32..4, 2..12),
        shuffled in prop::collection::vec(0u32..4, 12),
    ) {
        let b = &shuffled[..a.len()];
        let mut table = PairTable::default();
        for (x, y) in all_pairs(a.len() as u32) {
            let (x, y) = (x as usize, y as usize);
            *match (a[x] == a[y], b[x] == b[y]) {
                (true, true) => &mut table.both,
                (true, false) => &mut table.truth_only,
                (false, true) => &mut table.measured_only,
                (false, false) => &mut table.neither,
            } += 1.0;
        }
        prop_assert_eq!(pair_table(&a, b), table);
        // Hubert and Arabie: (index - expected index) / (largest index - expected index).
        let (truth, measured) = (table.both + table.truth_only, table.both + table.measured_only);
        let all = truth + table.measured_only + table.neither;
        let expected = truth * measured / all;
        let largest = (truth + measured) / 2.0;
        let ari = adjusted_rand_index(&a, b);
        if largest != expected {
            prop_assert!((ari - (table.both - expected) / (largest - expected)).abs() < 1e-9);
        } else {
            prop_assert_eq!(ari, 1.0);
        }
    }

    #[test]
    fn grey_pairs_are_in_no_cell(
        truth in truths(),
        measured in prop::collection::vec(0u32..5, DOCUMENTS as usize),
    ) {
        let mut table = PairTable::default();
        for (a, b) in all_pairs(DOCUMENTS) {
            if truth.label(a, b) == Label::Grey {
                continue;
            }
            let is_together = |of: &[u32]| of[a as usize] == of[b as usize];
            *match (is_together(truth.clusters()), is_together(&measured)) {
                (true, true) => &mut table.both,
                (true, false) => &mut table.truth_only,
                (false, true) => &mut table.measured_only,
                (false, false) => &mut table.neither,
            } += 1.0;
        }
        prop_assert_eq!(cluster_table(&truth, &measured), table);
    }

    #[test]
    fn documents_count_as_the_sets_of_their_companions_say(
        truth in truths(),
        measured in prop::collection::vec(0u32..5, DOCUMENTS as usize),
    ) {
        let mut expect = DocumentClasses::default();
        for d in 0..DOCUMENTS {
            let others = || (0..DOCUMENTS).filter(|&o| o != d);
            let labelled: Vec<u32> =
                others().filter(|&o| truth.label(d, o) == Label::Positive).collect();
            let found: Vec<u32> = others()
                .filter(|&o| measured[d as usize] == measured[o as usize])
                .filter(|&o| truth.label(d, o) != Label::Grey)
                .collect();
            *match (found.is_empty(), labelled.is_empty()) {
                (true, true) => &mut expect.true_singles,
                (true, false) => &mut expect.missed_duplicates,
                (false, false) if labelled.iter().all(|l| found.contains(l)) => {
                    &mut expect.true_duplicates
                }
                (false, _) => &mut expect.false_duplicates,
            } += 1;
        }
        prop_assert_eq!(by_document(&truth, &measured), expect);
    }

    #[test]
    fn origins_label_as_the_rule_says(
        origins in prop::collection::vec((0u32..3, 0u8..6, any::<bool>()), 2..10),
        most in 0u8..10,
    ) {
        let rate = |r: u8| f64::from(r) / 10.0;
        let documents: Vec<_> = origins
            .iter()
            .map(|&(origin, r, is_truncation)| Some(Origin { origin, rate: rate(r), is_truncation }))
            .collect();
        let Ok(truth) = Truth::of_origins(&documents, PositiveWithin::CombinedEdit(rate(most)))
        else {
            return Ok(());
        };
        for (a, b) in all_pairs(origins.len() as u32) {
            let (x, y) = (origins[a as usize], origins[b as usize]);
            // In whole tenths, where nothing is rounded.
            let combined = if x.2 && y.2 { x.1.max(y.1) } else { x.1 + y.1 };
            let expect = match () {
                () if x.0 != y.0 => Label::Negative,
                () if combined <= most => Label::Positive,
                () => Label::Grey,
            };
            prop_assert_eq!(truth.label(b, a), expect);
        }
    }

    #[test]
    fn intervals_lie_around_the_figures(truth in truths(), scored in scores()) {
        let ranking = Ranking::new(&truth, scored.iter().copied()).expect("valid");
        let clusters: Vec<u32> = truth.clusters().to_vec();
        let how = Bootstrap { replicates: 40, ..Bootstrap::default() };
        let found = intervals(&truth, &ranking, 0.4, &clusters, &how);
        prop_assert_eq!(found, intervals(&truth, &ranking, 0.4, &clusters, &how));
        for interval in [found.recall, found.precision, found.f1, found.recall_at_p99] {
            let Some(interval) = interval else { continue };
            prop_assert!(0.0 <= interval.low && interval.low <= interval.high);
            prop_assert!(interval.high <= 1.0);
        }
        // The clusters are those of the truth in every sample.
        prop_assert_eq!(found.cluster_ari, Some(Interval { low: 1.0, high: 1.0 }));
    }
}

#[test]
fn an_interval_has_the_width_that_theory_gives() {
    // 400 pairs of which 300 are found: the standard error of recall is sqrt(.75 * .25 / 400).
    let clusters: Vec<Option<u32>> = (0..800).map(|d| Some(d / 2)).collect();
    let truth = Truth::of_clusters(&clusters).expect("valid");
    let scored = (0..300).map(|p| ScoredPair { a: 2 * p, b: 2 * p + 1, score: 1.0 });
    let ranking = Ranking::new(&truth, scored).expect("valid");
    let found = intervals(&truth, &ranking, 0.5, truth.clusters(), &Bootstrap::default());
    let recall = found.recall.expect("positives");
    let error = (0.75f64 * 0.25 / 400.0).sqrt();
    assert!((recall.low - (0.75 - 1.96 * error)).abs() < 0.01, "{recall:?}");
    assert!((recall.high - (0.75 + 1.96 * error)).abs() < 0.01, "{recall:?}");
    assert_eq!(found.precision, Some(Interval { low: 1.0, high: 1.0 }));
}

#[test]
fn every_pair_once_weighs_what_it_is() {
    // Every sample of one unit that is drawn once is the corpus itself.
    let truth = Truth::of_pairs(3, [(0, 1, Label::Positive), (1, 2, Label::Grey)]).expect("valid");
    assert_eq!(truth.units(), [0, 0, 0]);
    let scored = [(0, 1, 0.9), (0, 2, 0.9)].map(|(a, b, score)| ScoredPair { a, b, score });
    let ranking = Ranking::new(&truth, scored).expect("valid");
    let how = Bootstrap { replicates: 3, ..Bootstrap::default() };
    let found = intervals(&truth, &ranking, 0.9, &[0, 0, 0], &how);
    let tally = ranking.at(0.9);
    let exactly = |value: f64| Some(Interval { low: value, high: value });
    assert_eq!(found.precision, exactly(0.5));
    assert_eq!(found.f1, exactly(tally.f1().expect("positives")));
    let pairs = PairTable::of_pairs(&truth, &tally).adjusted_rand_index();
    assert_eq!(found.pair_ari, exactly(pairs));
    let clusters = cluster_table(&truth, &[0, 0, 0]).adjusted_rand_index();
    assert_eq!(found.cluster_ari, exactly(clusters));
    assert_eq!(
        found.macro_f1,
        exactly(by_document(&truth, &[0, 0, 0]).macro_f1().expect("documents"))
    );
    assert_eq!(found.recall_at_p99, exactly(0.0));
}

#[test]
fn what_cannot_be_evaluated() {
    use EvaluationError::*;
    let (pos, neg) = (Label::Positive, Label::Negative);
    let check = |documents, pairs: &[(u32, u32, Label)], expect| {
        assert_eq!(Truth::of_pairs(documents, pairs.iter().copied()), Err(expect));
    };
    check(2, &[], NoPositive);
    check(0, &[], NoPositive);
    check(3, &[(0, 1, neg)], NoPositive);
    check(3, &[(1, 1, pos)], NoPositive);
    check(2, &[(0, 1, pos)], NoNegative { documents: 2 });
    check(2, &[(0, 2, pos)], UnknownDocument { document: 2, documents: 2 });
    check(3, &[(0, 1, pos), (1, 0, neg)], Contradiction { a: 0, b: 1, first: pos, second: neg });
    let origin = |rate| Some(Origin { origin: 0, rate, is_truncation: false });
    for rate in [-0.1, 1.5, f64::INFINITY] {
        assert_eq!(
            Truth::of_origins(&[origin(0.0), origin(rate)], PositiveWithin::Origin),
            Err(Rate { document: 1, rate })
        );
    }
    let million = vec![Some(1); 1_000_000];
    assert!(matches!(Truth::of_clusters(&million), Err(TooManyPairs { largest: 1_000_000, .. })));

    let truth = Truth::of_pairs(3, [(0, 1, pos), (1, 0, pos)]).expect("said twice, the same");
    let rank = |a, b, score| Ranking::new(&truth, [ScoredPair { a, b, score }]).map(|_| ());
    assert_eq!(rank(7, 1, 0.5), Err(UnknownDocument { document: 7, documents: 3 }));
    assert_eq!(rank(1, 0, f64::NAN), Err(Score { a: 0, b: 1 }));
    assert_eq!(rank(2, 2, 0.5), Ok(()));
}

#[test]
fn published_rates_give_the_macro_f1() {
    // Counts with the rates that text-dedup publishes of MinHash on the CORE 2020 set: precision .9594
    // and recall .9445 of the duplicates, .9474 and .9616 of the others. The 'macro F1' beside them,
    // .9534, is the mean of the precisions; the mean of the F1 is .9532.
    let counts = DocumentClasses {
        true_duplicates: 44_447,
        false_duplicates: 1_881,
        missed_duplicates: 2_612,
        true_singles: 47_060,
    };
    let close = |value: f64, expect: f64| assert!((value - expect).abs() < 5e-4, "{value}");
    close(counts.duplicate_precision().expect("some"), 0.9594);
    close(counts.duplicate_recall().expect("some"), 0.9445);
    close(counts.duplicate_f1().expect("documents"), 2.0 * 0.9594 * 0.9445 / (0.9594 + 0.9445));
    close(counts.single_f1().expect("documents"), 2.0 * 0.9474 * 0.9616 / (0.9474 + 0.9616));
    close(counts.macro_f1().expect("documents"), 0.9532);
}
