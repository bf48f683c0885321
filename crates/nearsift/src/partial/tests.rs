use std::num::NonZeroUsize;
use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use testkit::random::Random;

use super::*;
use crate::join::Threads;

/// Random letters with punctuation and blanks between them.
fn random_text(random: &mut Random, letters: usize, alphabet: &[char]) -> String {
    let mut text = String::new();
    for _ in 0..letters {
        text.push(alphabet[random.below(alphabet.len())]);
        match random.below(12) {
            0 => text.push('，'),
            1 => text.push_str(". "),
            _ => {}
        }
    }
    text
}

fn han() -> Vec<char> {
    // Traditional and simplified: some change when they are normalised.
    ('\u{4e00}'..'\u{5600}').collect()
}

fn latin() -> Vec<char> {
    ('a'..='z').chain('A'..='Z').chain(['é', 'ö', 'ﬁ']).collect()
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Replaces every so many-th character.
fn edited(random: &mut Random, text: &str, one_of: usize, alphabet: &[char]) -> String {
    text.chars()
        .map(|c| if random.below(one_of) == 0 { alphabet[random.below(alphabet.len())] } else { c })
        .collect()
}

fn near(found: &Range<u64>, planted: &Range<u64>, within: u64) -> bool {
    found.start.abs_diff(planted.start) <= within && found.end.abs_diff(planted.end) <= within
}

proptest! {
    // Where a passage ends is a matter of chance, too: where many letters of its first line are edited it begins behind these. So
    // the cases are the same in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(96) })]

    #[test]
    fn a_planted_passage_is_found_where_it_is(
        seed: u64, han_script: bool, length in 60usize..600, before in 0usize..900, after in 0usize..900,
        host in 0usize..900, at in 0usize..900,
    ) {
        let mut random = Random::new(seed);
        let alphabet = if han_script { han() } else { latin() };
        // Shorter than this and two Latin passages of 60 letters would be below the least length.
        let length = if han_script { length } else { 3 * length };
        let passage = random_text(&mut random, length, &alphabet);
        let [a0, a1, b0, b1] = [before, after, host, at].map(|n| random_text(&mut random, n, &alphabet));
        let texts = [format!("{a0}{passage}{a1}"), format!("{b0}{passage}{b1}")];
        let (found, _) = find(&texts, &Settings::default()).expect("threads");
        let of = |text: &str| characters(text);
        let planted = [of(&a0)..of(&a0) + of(&passage), of(&b0)..of(&b0) + of(&passage)];
        prop_assert_eq!(found.len(), 1);
        let Passage { kind, a_range, b_range, score, .. } = &found[0].passage;
        // Letters beside the passage may be equal by chance, and punctuation is in no passage.
        prop_assert!(near(a_range, &planted[0], 8), "{:?} {:?}", a_range, planted[0]);
        prop_assert!(near(b_range, &planted[1], 8), "{:?} {:?}", b_range, planted[1]);
        prop_assert!(*score > 0.97);
        if *kind == Kind::Whole {
            let share = |text: &str| of(&passage) as f64 / of(text) as f64;
            prop_assert!(share(&texts[0]) > 0.7 && share(&texts[1]) > 0.7);
        }
    }

    #[test]
    fn an_edited_passage_is_found(seed: u64) {
        let mut random = Random::new(seed);
        let alphabet = han();
        let passage = random_text(&mut random, 400, &alphabet);
        let copy = edited(&mut random, &passage, 12, &alphabet);
        let [a0, b0, b1] = [300, 200, 700].map(|n| random_text(&mut random, n, &alphabet));
        let texts = [format!("{a0}{passage}"), format!("{b0}{copy}{b1}")];
        let (found, _) = find(&texts, &Settings::default()).expect("threads");
        prop_assert_eq!(found.len(), 1);
        let Passage { kind, a_range, b_range, .. } = &found[0].passage;
        prop_assert_eq!(*kind, Kind::Overlap);
        let from = characters(&a0);
        prop_assert!(near(a_range, &(from..from + characters(&passage)), 30));
        let from = characters(&b0);
        prop_assert!(near(b_range, &(from..from + characters(&copy)), 30));
    }

    #[test]
    fn nothing_is_found_in_random_texts(seed: u64, han_script: bool) {
        let mut random = Random::new(seed);
        let alphabet = if han_script { han() } else { ('a'..='h').collect() };
        let texts: Vec<String> = (0..20).map(|_| random_text(&mut random, 2000, &alphabet)).collect();
        let (found, _) = find(&texts, &Settings::default()).expect("threads");
        prop_assert_eq!(found, Vec::new());
    }

    #[test]
    fn any_texts_are_taken(
        texts in prop::collection::vec("\\PC{0,300}|[ab]{0,400}|(一二三){0,100}[é㈱ ]{0,9}", 0..8),
    ) {
        let settings = Settings { min_bytes: 24, min_score: 0.0, ..Settings::default() };
        let (found, _) = find(&texts, &settings).expect("threads");
        for Partial { a, b, passage } in &found {
            prop_assert!(a < b);
            prop_assert!(passage.a_range.start < passage.a_range.end);
            prop_assert!(passage.a_range.end <= characters(&texts[*a as usize]));
            prop_assert!(passage.b_range.end <= characters(&texts[*b as usize]));
            prop_assert!((0.0..=1.0).contains(&passage.share_of_a));
            prop_assert!((0.0..=1.0).contains(&passage.share_of_b));
        }
    }
}

/// Documents that quote each other here and there.
fn quoting(documents: usize) -> Vec<String> {
    let mut random = Random::new(3);
    let alphabet = han();
    let passages: Vec<String> = (0..20).map(|_| random_text(&mut random, 150, &alphabet)).collect();
    (0..documents)
        .map(|_| {
            let own = 300 + random.below(1000);
            let mut text = random_text(&mut random, own, &alphabet);
            for _ in 0..random.below(3) {
                text.push_str(&passages[random.below(passages.len())]);
            }
            text
        })
        .collect()
}

#[test]
fn neither_threads_nor_memory_change_the_answer() {
    let texts = quoting(150);
    let base = Settings::default();
    let expect = find(&texts, &base).expect("threads");
    assert!(expect.0.len() > 100);
    for threads in [Threads::Own(NonZeroUsize::new(3).expect("three")), Threads::Current] {
        for memory_bytes in [0, 5000, base.memory_bytes] {
            let found = find(&texts, &Settings { threads, memory_bytes, ..base }).expect("threads");
            assert!(found == expect, "{threads:?}, {memory_bytes} bytes");
        }
    }
}

#[test]
fn what_many_share_is_counted_and_not_compared() {
    let mut random = Random::new(5);
    let alphabet = han();
    let shared = random_text(&mut random, 200, &alphabet);
    let texts: Vec<String> = (0..3000)
        .map(|_| format!("{}{shared}", random_text(&mut random, 100, &alphabet)))
        .collect();
    let (found, work) = find(&texts, &Settings::default()).expect("threads");
    assert!(found.is_empty());
    // Seeds that begin with a letter or two before the passage meet by chance.
    assert!(work.hits < 10_000, "{}", work.hits);
    assert!(work.hot_seeds >= 5 && work.hot_places > 10_000, "{work:?}");
}

#[test]
fn equal_letters_are_represented_by_the_first() {
    let mut random = Random::new(6);
    let alphabet = han();
    let [page, around] = [150, 300].map(|n| random_text(&mut random, n, &alphabet));
    let mut texts = vec![page.replace('，', "。"); 200];
    texts.push(format!("{around}{page}"));
    texts.push(page);
    let (found, work) = find(&texts, &Settings::default()).expect("threads");
    assert_eq!(work.same_letters, 200);
    let documents: Vec<(u32, u32)> = found.iter().map(|partial| (partial.a, partial.b)).collect();
    assert_eq!(documents, [(0, 200)]);
    assert_eq!(found[0].passage.kind, Kind::Contained);
}

#[test]
fn pages_put_together_and_passages_in_another_order() {
    let mut random = Random::new(8);
    let alphabet = han();
    let [x, y, z, rest] = [200, 300, 250, 1500].map(|n| random_text(&mut random, n, &alphabet));
    let kinds = |texts: &[&str]| -> Vec<(u32, u32, Kind)> {
        let found = find(texts, &Settings::default()).expect("threads").0;
        found.iter().map(|partial| (partial.a, partial.b, partial.passage.kind)).collect()
    };
    let both = format!("{x}{y}{z}");
    let contains = |b| (0, b, Kind::Contains);
    assert_eq!(kinds(&[&both, &x, &y, &z]), [contains(1), contains(2), contains(3)]);
    // Both passages together make most of the shorter one.
    let moved = format!("{y}{rest}{x}");
    assert_eq!(kinds(&[&moved, &format!("{x}{y}")]), [contains(1), contains(1)]);
    let whole = (0, 1, Kind::Whole);
    assert_eq!(kinds(&[&format!("{x}{y}"), &format!("{y}{x}")]), [whole, whole]);
}

/// All maximal runs of letters that stand in both texts, by the whole table: where they start, and
/// how long they are.
fn common_runs(a: &[char], b: &[char], least: usize) -> Vec<(usize, usize, usize)> {
    let mut runs = Vec::new();
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        for j in (1..=b.len()).rev() {
            row[j] = if a[i - 1] == b[j - 1] { row[j - 1] + 1 } else { 0 };
            let ends = i == a.len() || j == b.len() || a[i] != b[j];
            if ends && row[j] >= least {
                runs.push((i - row[j], j - row[j], row[j]));
            }
        }
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The guarantee: two texts that share 120 bytes of letters share a passage that holds them.
    #[test]
    fn every_common_run_is_in_a_passage(seed: u64, latin: bool, one_of in 20usize..400) {
        let mut random = Random::new(seed);
        // Letters that normalisation leaves alone.
        let alphabet: Vec<char> = if latin {
            ('a'..='z').collect()
        } else {
            ('\u{ac00}'..'\u{b400}').collect()
        };
        let letters = |random: &mut Random, n: usize| -> String {
            (0..n).map(|_| alphabet[random.below(alphabet.len())]).collect()
        };
        let blocks: Vec<String> = (0..6)
            .map(|_| {
                let length = 20 + random.below(300);
                letters(&mut random, length)
            })
            .collect();
        let texts: Vec<String> = (0..4)
            .map(|_| {
                let mut text = String::new();
                let first = random.below(6);
                for at in 0..1 + random.below(6) {
                    // Each block once, in an order of the text's own.
                    let block = &blocks[(first + 5 * at) % 6];
                    text.push_str(&edited(&mut random, block, one_of, &alphabet));
                    let own = random.below(150);
                    text.push_str(&letters(&mut random, own));
                }
                text
            })
            .collect();
        let (found, _) = find(&texts, &Settings::default()).expect("threads");
        let least = if latin { 120 } else { 40 };
        let chars: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
        let first_with = |i: usize| (0..=i).find(|&j| chars[j] == chars[i]);
        for b in 0..4 {
            for a in (0..b).filter(|&a| first_with(a) == Some(a) && first_with(b) == Some(b)) {
                for (i, j, length) in common_runs(&chars[a], &chars[b], least) {
                    let holds = |range: &Range<u64>, from: usize| {
                        range.start <= from as u64 && (from + length) as u64 <= range.end
                    };
                    let passage = found.iter().find(|p| {
                        (p.a, p.b) == (a as u32, b as u32)
                            && holds(&p.passage.a_range, i)
                            && holds(&p.passage.b_range, j)
                    });
                    prop_assert!(passage.is_some(), "{a} {b}: {length} letters at {i} and {j}");
                }
            }
        }
    }
}

#[test]
fn few_seeds_are_enough_when_memory_is_short() {
    let texts = quoting(150);
    let settings = Settings::default();
    let seeds: Vec<Seeds> = texts.iter().map(|text| Seeder::default().seeds(text)).collect();
    let of = |bytes: Option<u64>| {
        let mut corpus = bytes.map_or_else(Corpus::new, Corpus::with_memory);
        seeds.iter().for_each(|seeds| corpus.push(seeds));
        let mut search = corpus.search(&settings).expect("threads");
        let mut pairs = Vec::new();
        let _: ControlFlow<()> = search.each(&settings, |batch| {
            pairs.extend(batch.iter().map(|pair| (pair.a, pair.b)));
            ControlFlow::Continue(())
        });
        (pairs, search.work())
    };
    let (all, work) = of(None);
    assert_eq!((work.thinned, work.seeds), (0, seeds.iter().map(|s| s.len() as u64).sum()));
    let (some, thin) = of(Some(8 * work.seeds));
    assert!(thin.thinned >= 1 && thin.seeds <= work.seeds / 2, "{thin:?}");
    assert!(some.len() > all.len() / 2 && some.iter().all(|pair| all.contains(pair)));
}
