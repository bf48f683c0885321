//! Tuning of SimHash: the largest distance at which pairs are near duplicates, judged by their texts.

use std::collections::HashMap;

use nearsift::dedup::{Corpus, Options};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::Fingerprints;
use nearsift::hamming::chance_neighbours;
use nearsift::join::{Pair as Near, Threads};
use nearsift::recipe::Recipe;
use nearsift::sketch::Score;
use nearsift::sketch::join::Pair;
use nearsift::tune::{
    Anchors, AtDistance, BestF1, RandomPairs, Reservoir, best_f1, max_distance, near_before,
};
use nearsift::verify::{MIN_SCORE, Verified};
use rayon::prelude::*;

use super::examples::{chosen, example};
use super::forecast::{Cost, Stopwatch, counted, estimated};
use super::report::{Band, Basis, Distance, Example, F1, Random, Report, Sample, Seen, Threshold};
use super::{MAX_PAIRS, Run, documents};
use crate::corpus::Ids;
use crate::error::Error;
use crate::search::Bounded;
use nearsift::search::{Material, Templates, TextSource, verify};

/// Comparisons of fingerprints, at most: some seconds.
const COMPARISONS: u64 = 1 << 34;
/// Pairs of one distance that are compared exactly, at most.
const VERIFIED: usize = 1_000;
/// A document's columns beside its fingerprint: its number, the key of its text, the keep policy's value.
const COLUMNS: u64 = 4 + 16 + 16;

/// The range of distances grows by this part of the fingerprint's bits, and F1 must turn as far within it.
const MARGIN: u32 = 16;

/// What a search up to some distance found.
struct Range<T> {
    anchors: Anchors,
    near: Vec<Near>,
    /// Those that were compared exactly.
    verified: Vec<Near>,
    texts: T,
    score_of: HashMap<(u32, u32), Verified>,
    seen: Vec<AtDistance>,
    best: Option<BestF1>,
    /// Whether F1 turns well within the range.
    turns: bool,
}

impl Run<'_> {
    pub(super) fn by_simhash(&self, recipe: Recipe, asked: u32) -> Result<Report, Error> {
        let &Run { settings, context, .. } = self;
        let mut watch = Stopwatch::start();
        let columns = Corpus::new(recipe.bits());
        let (collected, recipe) = self.collect(columns, recipe, &mut watch)?;
        let corpus = &collected.corpus;
        let first = first_of_text(corpus);
        let mut report = self.report("simhash", &recipe, documents(&collected, &first));

        // Of documents with different texts: the number and the fingerprint of each.
        let mut population = Vec::new();
        let mut fingerprints = Fingerprints::new(recipe.bits());
        for (document, &first) in (0u32..).zip(&first) {
            if let Some(fingerprint) = corpus.fingerprint(document).filter(|_| first == document) {
                population.push(document);
                fingerprints.push(&fingerprint);
            }
        }
        let bits = recipe.bits().count();
        let frequencies = DocumentFrequencies::shipped();
        let drawn = RandomPairs::new(settings.seed, population.len() as u32, settings.random_pairs);
        let pair = |(a, b)| Pair { a, b, score: Score::MAX };
        let mut random: Vec<Pair> =
            drawn.map(|(a, b)| pair((population[a as usize], population[b as usize]))).collect();
        random.sort_unstable();
        let templates = Templates::default();

        // The range grows until F1 turns well within it.
        let most = (bits * 3 / 8).max(asked);
        let mut farthest = asked.max(bits / 5);
        let range = loop {
            watch.lap();
            let (anchors, near) = self.search(&fingerprints, farthest)?;
            watch.searching = watch.lap();
            let at = |near: &Near| (population[near.a as usize], population[near.b as usize]);
            let verified = sampled(&near, farthest);
            let mut of_anchors: Vec<Pair> = verified.iter().map(|near| pair(at(near))).collect();
            of_anchors.sort_unstable();
            let texts = self.texts(&collected, of_anchors.iter().chain(&random))?;
            let texts = Bounded::by(context, texts);
            watch.reading_again = watch.lap();
            let material = Material { texts: &texts, frequencies, templates: &templates };
            let scores = verify(&of_anchors, material, 0.0)?;
            let pair_of = |place: usize| (of_anchors[place].a, of_anchors[place].b);
            let score_of: HashMap<(u32, u32), Verified> =
                scores.into_iter().map(|(place, texts)| (pair_of(place), texts)).collect();
            let mut seen = vec![AtDistance::default(); farthest as usize + 1];
            near.iter().for_each(|near| seen[near.distance as usize].pairs += 1);
            for near in &verified {
                let own = &mut seen[near.distance as usize];
                own.verified += 1;
                let is_near = |texts: &Verified| texts.score >= MIN_SCORE;
                own.near += u64::from(score_of.get(&at(near)).is_some_and(is_near));
            }
            let best = best_f1(&seen);
            let turns = best.is_none_or(|best| best.distance + bits / MARGIN <= farthest);
            if turns || farthest == most {
                break Range { anchors, near, verified, texts, score_of, seen, best, turns };
            }
            farthest = (farthest + bits / MARGIN).min(most);
        };
        let Range { anchors, near, verified, texts, score_of, seen, best, turns } = range;
        let at = |near: &Near| (population[near.a as usize], population[near.b as usize]);
        let material = Material { texts: &texts, frequencies, templates: &templates };
        let mut random_distances = Vec::new();
        for pair in &random {
            let both = corpus.fingerprint(pair.a).zip(corpus.fingerprint(pair.b));
            let distance = both.map_or(0, |(a, b)| a.distance(&b)) as usize;
            random_distances.resize(random_distances.len().max(distance + 1), 0);
            random_distances[distance] += 1;
        }
        report.random = Random::of(
            verify(&random, material, 0.0)?.into_iter().map(|(_, texts)| texts.score).collect(),
        );
        report.threshold = self.threshold(&seen, asked);
        let accepted = report.threshold.max_distance.unwrap_or(asked);
        report.random.accepted = random_distances.iter().take(accepted as usize + 1).sum();
        report.sample = Sample {
            population: anchors.population(),
            anchors: anchors.count() as u64,
            pairs: near.len() as u64,
            verified: verified.len() as u64,
        };
        report.seen = Seen::Simhash {
            bits,
            distances: (0u32..)
                .zip(&seen)
                .map(|(distance, at)| Distance {
                    distance,
                    pairs: at.pairs,
                    verified: at.verified,
                    near: at.near,
                })
                .collect(),
            random_distances,
            farthest,
            best_f1: best.map(|best| F1 {
                distance: best.distance,
                f1: best.f1,
                precision: best.precision,
                recall_within_range: best.recall,
                turns_within_range: turns,
            }),
            chance_neighbours: chance_neighbours(population.len() as u64, bits, accepted),
        };
        let documents: Vec<(u32, u32, u32)> = verified
            .iter()
            .map(|near| {
                let (a, b) = at(near);
                (a, b, near.distance)
            })
            .collect();
        report.bands =
            self.distance_bands(&documents, &seen, accepted, &score_of, &texts, &collected.ids)?;

        let options = Options {
            threads: Threads::Current,
            memory_bytes: context.memory_bytes,
            ..Options::new(accepted)
        };
        let explanation = corpus.explain(&options).map_err(Error::invalid)?;
        let forecast = match anchors.are_all() {
            true => {
                // Everything is at hand, so dedup decides here as it will.
                let mut pairs = 0;
                let found = corpus.find(&options, |_| pairs += 1).map_err(Error::invalid)?;
                counted(&found, pairs)
            }
            false => {
                let within = near.iter().filter(|near| near.distance <= accepted);
                estimated(within.map(|near| at(near).1), &anchors, report.documents.same_text)
            }
        };
        let pairs_found = forecast.pairs.value;
        let documents = report.documents.documents;
        let cost = Cost {
            documents,
            linear_seconds: watch.reading + watch.reading_again,
            pair_seconds: explanation.seconds,
            pairs: pairs_found,
            linear_bytes: documents * (COLUMNS + u64::from(bits) / 8)
                + collected.ids.bytes()
                + explanation.bytes,
            ..Cost::default()
        };
        report.forecast = cost.complete(forecast, settings.documents);
        Ok(report)
    }

    /// The anchors, as places among the fingerprints, and their pairs with earlier ones.
    fn search(
        &self,
        fingerprints: &Fingerprints,
        max_distance: u32,
    ) -> Result<(Anchors, Vec<Near>), Error> {
        /// Anchors that one worker takes at a time.
        const CHUNK: usize = 64;
        let population = fingerprints.len() as u64;
        let most = u64::from(self.settings.sample).min(COMPARISONS / population.max(1)).max(1);
        let mut reservoir = Reservoir::new(self.settings.seed, most as usize);
        (0..population as u32).for_each(|place| reservoir.offer(place));
        let mut anchors = reservoir.finish();
        let given: Vec<u32> =
            (0..population as u32).filter(|&place| anchors.contains(place)).collect();
        let mut stopped = false;
        let groups = given.chunks(CHUNK * rayon::current_num_threads()).take_while(|_| {
            stopped = self.context.interrupt.is_requested();
            !stopped
        });
        let found = groups.flat_map(|group| {
            let chunks = group.par_chunks(CHUNK);
            let near = |chunk: &[u32]| near_before(fingerprints, chunk, max_distance);
            chunks.flat_map_iter(near).collect::<Vec<Near>>()
        });
        let mut pairs = anchors.pairs(found, |near| near.b, MAX_PAIRS);
        self.context.check()?;
        pairs.sort_unstable();
        Ok((anchors, pairs))
    }

    fn threshold(&self, seen: &[AtDistance], asked: u32) -> Threshold {
        let is_asked = self.settings.is_threshold_given;
        let (distance, basis, because) = match max_distance(seen) {
            _ if is_asked => (asked, Basis::Asked, "the command line".to_owned()),
            Some(distance) => {
                let because = "98% of the pairs up to there are near duplicates by their texts";
                (distance, Basis::Proposed, because.to_owned())
            }
            None => {
                let because = "too few pairs were found, or too few of them are near duplicates by their texts, to judge by";
                (asked, Basis::Default, because.to_owned())
            }
        };
        let precision = None;
        Threshold { min_score: None, max_distance: Some(distance), basis, because, precision }
    }

    /// Pairs of every distance, the smallest first.
    fn distance_bands(
        &self,
        pairs: &[(u32, u32, u32)],
        seen: &[AtDistance],
        accepted: u32,
        score_of: &HashMap<(u32, u32), Verified>,
        texts: &impl TextSource<Error = Error>,
        ids: &Ids,
    ) -> Result<Vec<Band>, Error> {
        let bands = pairs.iter().map(|pair| pair.2 as usize);
        let shown = chosen(bands, self.settings.seed, self.settings.examples);
        let of_band = |(band, items): (usize, Vec<usize>)| {
            let examples = items.into_iter().map(|item| {
                let (a, b, distance) = pairs[item];
                let measured = score_of.get(&(a, b));
                Ok(Example {
                    score: measured.map(|texts| texts.score),
                    cosine: measured.map(|texts| texts.cosine),
                    alignment: measured.map(|texts| texts.alignment),
                    distance: Some(distance),
                    ..example(texts, ids, a, b)?
                })
            });
            Ok(Band {
                name: format!("distance {band}"),
                pairs: seen[band].pairs,
                accepted: Some(band as u32 <= accepted),
                examples: examples.collect::<Result<_, Error>>()?,
            })
        };
        shown.into_iter().map(of_band).collect()
    }
}

/// For each document the first one with the same text: itself, or an earlier one.
fn first_of_text(corpus: &Corpus) -> Vec<u32> {
    let mut first: HashMap<u128, u32> = HashMap::new();
    let own = |document| match corpus.text_key(document) {
        Some(key) => *first.entry(key).or_insert(document),
        None => document,
    };
    (0..corpus.len() as u32).map(own).collect()
}

/// Some pairs of every distance, evenly from all of them.
fn sampled(near: &[Near], farthest: u32) -> Vec<Near> {
    let mut sample = Vec::new();
    for distance in 0..=farthest {
        let of_distance = || near.iter().filter(|near| near.distance == distance);
        let step = of_distance().count().div_ceil(VERIFIED).max(1);
        sample.extend(of_distance().step_by(step));
    }
    sample
}
