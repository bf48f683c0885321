//! The join against brute force, on corpora made to hurt it.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use proptest::prelude::*;
use testkit::random::Random;
use testkit::sketches::Document;

use super::*;
use crate::sketch::{KEYS, Keys, Sketch};

fn pairs_of(join: &SketchJoin<'_>) -> Vec<Pair> {
    let Ok((pairs, _)) = join.pairs();
    pairs
}

fn links_of(join: &SketchJoin<'_>) -> Vec<Pair> {
    let Ok((links, _)) = join.links();
    links
}

#[derive(Debug, Default)]
struct Corpus {
    sketches: Sketches,
    keys: KeyColumns,
}

impl Corpus {
    fn push(&mut self, document: Option<&Document>) {
        let sketch = document.map(|document| Sketch::from_words(document.words()));
        self.sketches.push(sketch.as_ref());
        self.keys.push(&document.map_or([NO_KEY; KEYS], Document::keys));
    }

    fn keys_of(&self, document: u32) -> Keys {
        std::array::from_fn(|key| self.keys.column(key)[document as usize])
    }

    fn join(&self, settings: Settings) -> SketchJoin<'_> {
        SketchJoin::new(&self.sketches, Some(&self.keys), settings).expect("a join")
    }

    fn first_of(&self, document: u32) -> u32 {
        let sketch = self.sketches.get(document as usize);
        (0..document)
            .find(|&d| sketch.is_some() && self.sketches.get(d as usize) == sketch)
            .unwrap_or(document)
    }

    /// Every pair that scores enough and, by keys, shares one by the first documents of its sketches.
    fn naive(&self, min_score: Score, plan: Plan) -> Vec<Pair> {
        let n = self.sketches.len() as u32;
        let firsts: Vec<u32> = (0..n).map(|d| self.first_of(d)).collect();
        let shares_key = |a: u32, b: u32| {
            let keys = self.keys_of(a).into_iter().zip(self.keys_of(b));
            keys.into_iter().any(|(a, b)| a == b && a != NO_KEY)
        };
        let mut pairs = Vec::new();
        for a in 0..n {
            for b in a + 1..n {
                let sketches = (self.sketches.get(a as usize), self.sketches.get(b as usize));
                let (Some(x), Some(y)) = sketches else { continue };
                let (first, other) = (firsts[a as usize], firsts[b as usize]);
                let compared = plan == Plan::AllPairs || first == other || shares_key(first, other);
                if compared && x.score(&y) >= min_score {
                    pairs.push(Pair { a, b, score: x.score(&y) });
                }
            }
        }
        pairs
    }

    /// The compact form of all pairs.
    fn compact(&self, pairs: &[Pair]) -> Vec<Pair> {
        let is_first = |d: u32| self.first_of(d) == d;
        let stays = |p: &&Pair| is_first(p.a) && (is_first(p.b) || self.first_of(p.b) == p.a);
        pairs.iter().filter(stays).copied().collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Unlike,
    Clusters,
    Repeats,
    OneBall,
    SharedKeys,
    Without,
}

const SHAPES: [Shape; 6] = [
    Shape::Unlike,
    Shape::Clusters,
    Shape::Repeats,
    Shape::OneBall,
    Shape::SharedKeys,
    Shape::Without,
];

fn corpus(shape: Shape, n: usize, seed: u64) -> Corpus {
    let random = &mut Random::new(seed);
    let centres: Vec<Document> = (0..n / 6 + 1).map(|_| Document::random(random)).collect();
    let mut corpus = Corpus::default();
    for _ in 0..n {
        let centre = random.pick(&centres).clone();
        let similarity = [0.3, 0.5, 0.7, 0.9, 1.0][random.below(5)];
        let document = match shape {
            Shape::Unlike => Some(Document::random(random)),
            Shape::Clusters => Some(centre.like(similarity, random)),
            Shape::Repeats => Some(centres[random.below(centres.len().min(5))].clone()),
            Shape::OneBall => Some(centres[0].like(similarity, random)),
            Shape::SharedKeys => Some(centres[0].with_simhash_of(&centre.like(similarity, random))),
            Shape::Without => (random.below(3) > 0).then(|| centre.like(similarity, random)),
        };
        corpus.push(document.as_ref());
    }
    corpus
}

fn two_threads() -> Threads {
    Threads::Own(NonZeroUsize::new(2).expect("two"))
}

fn check(corpus: &Corpus, min_score: Score) -> Result<(), TestCaseError> {
    for plan in [Plan::AllPairs, Plan::Keys] {
        let pairs = corpus.naive(min_score, plan);
        let links = corpus.compact(&pairs);
        let settings =
            Settings { plan: Some(plan), max_comparisons: u32::MAX, ..Settings::new(min_score) };
        for threads in [Threads::One, two_threads()] {
            let mut join = corpus.join(Settings { threads, ..settings });
            prop_assert_eq!(&pairs_of(&join), &pairs, "pairs by {}", plan);
            prop_assert_eq!(&links_of(&join), &links, "links by {}", plan);
            // Too little memory for all pairs at once.
            join.pair_capacity = pairs.len() / 5 + 1;
            prop_assert_eq!(&pairs_of(&join), &pairs, "pairs in parts by {}", plan);
            prop_assert_eq!(&links_of(&join), &links, "links in parts by {}", plan);
            for kernel in Kernel::available() {
                join.kernel = kernel;
                prop_assert_eq!(&pairs_of(&join), &pairs, "pairs by {} with {}", plan, kernel);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn plans_find_what_brute_force_finds(
        shape in prop::sample::select(SHAPES.to_vec()),
        n in prop_oneof![0usize..12, 0usize..150],
        min_score in prop_oneof![0.0..=1.0, 0.2..=0.6],
        seed in any::<u64>(),
    ) {
        check(&corpus(shape, n, seed), Score::at_least(min_score))?;
    }

    #[test]
    fn hot_keys_give_true_pairs_and_the_same_ones_always(
        shape in prop::sample::select(SHAPES.to_vec()),
        n in 0usize..300,
        max_comparisons in 32u32..640,
        max_neighbours in prop_oneof![0u32..20, Just(u32::MAX)],
        seed in any::<u64>(),
    ) {
        let corpus = corpus(shape, n, seed);
        let settings = Settings {
            plan: Some(Plan::Keys),
            max_comparisons,
            max_neighbours,
            ..Settings::new(Score::at_least(0.4))
        };
        let join = corpus.join(settings);
        let Ok((pairs, work)) = join.pairs();
        let naive: BTreeSet<Pair> = corpus.naive(settings.min_score, Plan::Keys).into_iter().collect();
        prop_assert!(pairs.iter().all(|pair| naive.contains(pair)));
        prop_assert!(pairs.is_sorted_by(|x, y| (x.a, x.b) < (y.a, y.b)));
        prop_assert!(work.comparisons <= u64::from(max_comparisons) * join.distinct() as u64);
        prop_assert_eq!(work.skipped > 0 || pairs.len() == naive.len(), true, "{:?}", work);
        let mut parallel = corpus.join(Settings { threads: two_threads(), ..settings });
        prop_assert_eq!(parallel.pairs(), Ok((pairs.clone(), work)));
        parallel.pair_capacity = pairs.len() / 3 + 1;
        prop_assert_eq!(parallel.pairs(), Ok((pairs, work)));
    }
}

/// The bad corpora of many documents: bounded work, everything said.
#[test]
fn adversarial_corpora_are_bounded() {
    const N: usize = 20_000;
    let mut random = Random::new(5);
    let (one, min_score) = (Document::random(&mut random), Score::at_least(0.4));
    let settings = Settings { plan: Some(Plan::Keys), ..Settings::new(min_score) };
    let of = |document: &mut dyn FnMut() -> Option<Document>| {
        let mut corpus = Corpus::default();
        (0..N).for_each(|_| corpus.push(document().as_ref()));
        corpus
    };

    let empty = of(&mut || None);
    let join = empty.join(settings);
    assert_eq!((join.without_sketch(), join.distinct()), (N, 0));
    assert_eq!(join.pairs(), Ok((Vec::new(), Work::default())));

    let equal = of(&mut || Some(one.clone()));
    let join = equal.join(settings);
    let Ok((links, work)) = join.links();
    assert_eq!((links.len(), work.comparisons), (N - 1, 0));
    let mut first = Vec::new();
    let Ok((ended, _)) = join.for_each_pair(|pair| {
        first.push((pair.a, pair.b));
        if first.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(ended.is_break());
    assert_eq!(first, [(0, 1), (0, 2), (0, 3)]);

    // They score 0.5 at least whatever the SimHash says.
    let hot = of(&mut || Some(one.with_simhash_of(&Document::random(&mut random))));
    let join = hot.join(settings);
    let Ok((links, work)) = join.links();
    let n = N as u64;
    assert!(work.comparisons <= n * u64::from(Settings::MAX_COMPARISONS), "{work:?}");
    assert_eq!((work.hot_keys, work.hot_sketches), (32, 32 * n));
    assert!(work.skipped > 31 * n * (n - 1) / 2, "{work:?}");
    assert!(links.len() <= N * 128, "{} links", links.len());
    let linked: BTreeSet<u32> = links.iter().flat_map(|link| [link.a, link.b]).collect();
    assert_eq!(linked.len(), N);
}

/// Near-duplicates inside a hot key, of which half of the keys are shared by all, still meet.
#[test]
fn pairs_in_a_hot_key_are_found() {
    let mut random = Random::new(9);
    let template = Document::random(&mut random);
    let mut corpus = Corpus::default();
    for _ in 0..2_000 {
        let page = template.like(0.6, &mut random);
        corpus.push(Some(&page));
        corpus.push(Some(&page.like(0.85, &mut random)));
    }
    let min_score = Score::at_least(0.65);
    let settings =
        Settings { plan: Some(Plan::Keys), max_comparisons: 512, ..Settings::new(min_score) };
    let join = corpus.join(settings);
    let found: BTreeSet<(u32, u32)> = pairs_of(&join).iter().map(|pair| (pair.a, pair.b)).collect();
    let planted = |i: u32| (2 * i, 2 * i + 1);
    let score = |(a, b): (u32, u32)| {
        let sketch = |d: u32| corpus.sketches.get(d as usize).expect("a sketch");
        sketch(a).score(&sketch(b))
    };
    let wanted: Vec<_> = (0..2_000).map(planted).filter(|&pair| score(pair) >= min_score).collect();
    let recall =
        wanted.iter().filter(|pair| found.contains(*pair)).count() as f64 / wanted.len() as f64;
    assert!(wanted.len() > 1_500 && recall > 0.98, "{recall} of {}", wanted.len());
}

/// What somebody makes to hide documents: sketches of whatever words, with most of the keys of a document.
fn hot_key(keys: Keys, mut words: impl FnMut(u64) -> [u64; 8], random: &mut Random) -> Corpus {
    let mut corpus = Corpus::default();
    for n in 0..12_000 {
        corpus.sketches.push(Some(&Sketch::from_words(words(n))));
        let mut keys = keys;
        (0..8).for_each(|_| keys[random.below(KEYS)] = random.next_u64() as u32 | 1);
        corpus.keys.push(&keys);
    }
    corpus
}

/// How many of the copies, of documents that stand behind a hot key, are found.
fn found_behind(mut corpus: Corpus, documents: &[(Document, Document)]) -> usize {
    let first = corpus.sketches.len() as u32;
    for (document, copy) in documents {
        corpus.push(Some(document));
        corpus.push(Some(copy));
    }
    let settings = Settings { plan: Some(Plan::Keys), ..Settings::new(Score::at_least(0.4)) };
    let Ok((links, work)) = corpus.join(settings).links();
    let most = u64::from(Settings::MAX_COMPARISONS) * corpus.sketches.len() as u64;
    assert!(work.comparisons <= most, "{work:?}");
    let found: BTreeSet<(u32, u32)> = links.iter().map(|link| (link.a, link.b)).collect();
    (0..documents.len() as u32)
        .filter(|n| found.contains(&(first + 2 * n, first + 2 * n + 1)))
        .count()
}

/// Copies are found behind 12,000 sketches that share most keys with them: whether these are like nothing, near the
/// documents themselves, or differ from each other only where a document differs from its copy.
#[test]
fn copies_are_found_behind_hot_keys() {
    let random = &mut Random::new(21);
    let template = Document::random(random);
    let pair = |random: &mut Random| {
        let document = template.like(0.9, random);
        let copy = document.like(0.8, random);
        (document, copy)
    };
    let documents: Vec<_> = (0..20).map(|_| pair(random)).collect();
    let mut own = Random::new(22);
    let unlike = hot_key(template.keys(), |_| std::array::from_fn(|_| own.next_u64()), random);
    assert_eq!(found_behind(unlike, &documents), 20);
    let near = hot_key(template.keys(), |_| template.like(0.62, &mut own).words(), random);
    assert_eq!(found_behind(near, &documents), 20);
    for document in &documents[..4] {
        // Groups of four bits of the SimHash in which the two differ most.
        let (a, b) = (document.0.words(), document.1.words());
        let nibble = |words: &[u64; 8], place: usize| words[place / 16] >> (4 * (place % 16)) & 15;
        let mut places: Vec<usize> = (0..64).collect();
        places.sort_by_key(|&p| std::cmp::Reverse((nibble(&a, p) ^ nibble(&b, p)).count_ones()));
        let words = |n: u64| {
            let mut words = a.map(|word| !word);
            for (at, &place) in (0..).zip(&places[..4]) {
                let shift = 4 * (place % 16);
                words[place / 16] &= !(15 << shift);
                words[place / 16] |= (n >> (4 * at) & 15) << shift;
            }
            words
        };
        let apart = hot_key(document.0.keys(), words, random);
        assert_eq!(found_behind(apart, std::slice::from_ref(document)), 1);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_with_what_can() {
    let corpus = corpus(Shape::Clusters, 40, 1);
    let settings = Settings::new(Score::at_least(0.4));
    let check = |keys: Option<&KeyColumns>, settings: Settings, expect: &str| {
        let error = SketchJoin::new(&corpus.sketches, keys, settings).expect_err("refused");
        assert!(error.to_string().contains(expect), "{error}");
    };
    let by_keys = Settings { plan: Some(Plan::Keys), ..settings };
    check(None, by_keys, "ask for 'all pairs'");
    check(Some(&KeyColumns::new()), settings, "keys of 0 documents");
    check(Some(&corpus.keys), Settings { max_comparisons: 31, ..settings }, "allow 32 or more");
    let tight = |limit| Settings { memory_bytes: Some(limit), ..settings };
    let refused = SketchJoin::new(&corpus.sketches, None, tight(1));
    let Err(SketchJoinError::Memory { needed, .. }) = refused else {
        panic!("refused for memory");
    };
    check(None, tight(needed - 1), &format!("raise the memory limit to {needed} bytes"));
    let least = SketchJoin::new(&corpus.sketches, None, tight(needed)).expect("enough");
    assert_eq!(least.pairs(), corpus.join(settings).pairs());
}

#[test]
fn the_number_of_sketches_decides_the_plan() {
    assert_eq!(Plan::choose(Plan::ALL_PAIRS_UP_TO, 0.0), Plan::AllPairs);
    assert_eq!(Plan::choose(Plan::ALL_PAIRS_UP_TO + 1, 0.0), Plan::Keys);
    let corpus = corpus(Shape::Clusters, 40, 1);
    let join = corpus.join(Settings::new(Score::at_least(0.4)));
    assert_eq!(join.plan(), Plan::AllPairs);
    let Ok(explained) = join.explain();
    assert_eq!(explained.recall[0].expected, 1.0);
}

/// Documents of which every two share a part that is the template's.
fn of_one_template(documents: usize, similarity: f64) -> Corpus {
    let mut random = Random::new(5);
    let template = Document::random(&mut random);
    let mut corpus = Corpus::default();
    (0..documents).for_each(|_| corpus.push(Some(&template.like(similarity, &mut random))));
    corpus
}

#[test]
fn where_nearly_all_pairs_score_enough_keys_decide_what_is_compared() {
    let check = |documents, similarity, expect| {
        let corpus = of_one_template(documents, similarity);
        let join = corpus.join(Settings::new(Score::at_least(0.2)));
        assert_eq!(join.plan(), expect, "{documents} documents alike by {similarity}");
        let Ok((_, work)) = join.links();
        work.comparisons
    };
    let most = u64::from(Settings::MAX_COMPARISONS);
    assert!(check(6_000, 0.8, Plan::Keys) <= 6_000 * most);
    check(2_000, 0.8, Plan::AllPairs);
    check(6_000, 0.05, Plan::AllPairs);
}

#[test]
fn an_explanation_is_near_the_work_done_and_readable() {
    let corpus = corpus(Shape::Clusters, 3_000, 4);
    for plan in [Plan::AllPairs, Plan::Keys] {
        let settings = Settings { plan: Some(plan), ..Settings::new(Score::at_least(0.4)) };
        let join = corpus.join(settings);
        let Ok(explained) = join.explain();
        let Ok((_, work)) = join.links();
        let done = work.comparisons as f64;
        assert!((0.8..1.25).contains(&(done / explained.comparisons)), "{explained}, did {done}");
        assert!(explained.to_string().contains(&format!("plan          {plan}")), "{explained}");
    }
    let settings = Settings { plan: Some(Plan::Keys), ..Settings::new(Score::at_least(0.4)) };
    let Ok(explained) = corpus.join(settings).explain();
    let said = explained.to_string();
    assert!(said.contains("99.62 % of pairs alike by 0.4"), "{said}");
}

/// Keys of which some column cannot be read.
#[derive(Debug)]
struct Unreadable<'a> {
    keys: &'a KeyColumns,
    column: usize,
}

impl KeySource for Unreadable<'_> {
    type Error = String;

    fn documents(&self) -> usize {
        self.keys.len()
    }

    fn column(&self, key: usize) -> Result<std::borrow::Cow<'_, [u32]>, String> {
        match key == self.column {
            true => Err(format!("column {key} is gone")),
            false => Ok(self.keys.column(key).into()),
        }
    }
}

#[test]
fn a_column_that_cannot_be_read_ends_the_search() {
    let corpus = corpus(Shape::Clusters, 400, 1);
    let by_keys = Settings { plan: Some(Plan::Keys), ..Settings::new(Score::at_least(0.4)) };
    let cross_by_keys =
        CrossSettings { all_pairs_up_to: 0, ..CrossSettings::new(by_keys.min_score) };
    for (column, explained) in [(0, false), (7, true), (KEYS - 1, true)] {
        let keys = Unreadable { keys: &corpus.keys, column };
        let expect = format!("column {column} is gone");
        let join = SketchJoin::with_keys(&corpus.sketches, &keys, by_keys).expect("a join");
        assert_eq!(join.pairs().expect_err("no pairs"), expect);
        assert_eq!(join.links().expect_err("no links"), expect);
        // It looks at three of the columns.
        assert_eq!(join.explain().is_ok(), explained, "{column}");
        let keyed = Keyed { sketches: &corpus.sketches, keys: &keys };
        assert_eq!(cross(&keyed, &keyed, cross_by_keys).expect_err("no candidates"), expect);
        // All pairs need no keys.
        let all = Settings { plan: Some(Plan::AllPairs), ..by_keys };
        let join = SketchJoin::with_keys(&corpus.sketches, &keys, all).expect("a join");
        assert_eq!(join.pairs().expect("no key is read").0, pairs_of(&corpus.join(all)));
    }
}
