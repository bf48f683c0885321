//! Tuning of SimHash: the largest distance at which pairs are near duplicates, judged by their texts.

use std::collections::HashMap;

use nearsift::dedup::{Corpus, Options};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::fingerprint::{Bits, Fingerprints};
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
use super::report::{
    Band, Basis, Distance, Documents, Example, F1, Forecast, Random, Report, Sample, Seen,
    Threshold,
};
use super::{MAX_PAIRS, Run, Settings, documents};
use crate::corpus::{Collected, Ids};
use crate::error::Error;
use crate::search::{Bounded, Texts};
use nearsift::search::{Material, Templates, TextSource, verify};

/// Comparisons of fingerprints, at most: some seconds.
const COMPARISONS: u64 = 1 << 34;
/// Pairs of one distance that are compared exactly, at most.
const VERIFIED: usize = 1_000;
/// A document's columns beside its fingerprint: its number, the key of its text, the keep policy's value.
const COLUMNS: u64 = 4 + 16 + 16;

/// The range of distances grows by this part of the fingerprint's bits, and F1 must turn as far within it.
const MARGIN: u32 = 16;

/// The documents of different texts that have a fingerprint.
struct Population {
    /// The number of each document.
    documents: Vec<u32>,
    /// The fingerprint of each document, in the same order.
    fingerprints: Fingerprints,
}

impl Population {
    /// Takes the first document of each text; `first` is [`first_of_text`].
    fn of(corpus: &Corpus, first: &[u32], bits: Bits) -> Population {
        let mut documents = Vec::new();
        let mut fingerprints = Fingerprints::new(bits);
        for (document, &first) in (0u32..).zip(first) {
            if let Some(fingerprint) = corpus.fingerprint(document).filter(|_| first == document) {
                documents.push(document);
                fingerprints.push(&fingerprint);
            }
        }
        Population { documents, fingerprints }
    }

    /// The two documents of a pair of fingerprints.
    fn documents_of(&self, near: &Near) -> (u32, u32) {
        (self.documents[near.a as usize], self.documents[near.b as usize])
    }

    /// Random pairs of documents, sorted.
    fn random_pairs(&self, settings: &Settings) -> Vec<Pair> {
        let count = self.documents.len() as u32;
        let drawn = RandomPairs::new(settings.seed, count, settings.random_pairs);
        let document = |place: u32| self.documents[place as usize];
        let mut pairs: Vec<Pair> =
            drawn.map(|(a, b)| unscored((document(a), document(b)))).collect();
        pairs.sort_unstable();
        pairs
    }
}

/// What a search up to some distance found.
struct Range<'a> {
    anchors: Anchors,
    near: Vec<Near>,
    /// The pairs that were compared exactly.
    verified: Vec<Near>,
    texts: Bounded<'a, Texts>,
    score_of: HashMap<(u32, u32), Verified>,
    seen: Vec<AtDistance>,
    /// The largest distance of the search, in bits.
    farthest: u32,
    best: Option<BestF1>,
    /// Whether F1 turns well within the range.
    turns: bool,
}

impl Range<'_> {
    fn sample(&self) -> Sample {
        Sample {
            population: self.anchors.population(),
            anchors: self.anchors.count() as u64,
            pairs: self.near.len() as u64,
            verified: self.verified.len() as u64,
        }
    }

    /// How many pairs have each distance, and how many of them are near duplicates.
    fn distances(&self) -> Vec<Distance> {
        let of_distance = |(distance, at): (u32, &AtDistance)| Distance {
            distance,
            pairs: at.pairs,
            verified: at.verified,
            near: at.near,
        };
        (0u32..).zip(&self.seen).map(of_distance).collect()
    }

    fn best_f1(&self) -> Option<F1> {
        self.best.map(|best| F1 {
            distance: best.distance,
            f1: best.f1,
            precision: best.precision,
            recall_within_range: best.recall,
            turns_within_range: self.turns,
        })
    }
}

impl<'a> Run<'a> {
    pub(super) fn by_simhash(&self, recipe: Recipe, asked: u32) -> Result<Report, Error> {
        let mut watch = Stopwatch::start();
        let columns = Corpus::new(recipe.bits());
        let (collected, recipe) = self.collect(columns, recipe, &mut watch)?;
        let corpus = &collected.corpus;
        let first = first_of_text(corpus);
        let mut report = self.report("simhash", &recipe, documents(&collected, &first));
        let bits = recipe.bits().count();
        let population = Population::of(corpus, &first, recipe.bits());
        let random = population.random_pairs(self.settings);

        let range = self.turning_range(&collected, &population, &random, asked, &mut watch)?;
        let random_distances = distances_of(corpus, &random);
        report.random = Random::of(scores_of(&random, &range.texts)?);
        report.threshold = self.threshold(&range.seen, asked);
        let accepted = report.threshold.max_distance.unwrap_or(asked);
        report.random.accepted = random_distances.iter().take(accepted as usize + 1).sum();
        report.sample = range.sample();
        report.seen = Seen::Simhash {
            bits,
            distances: range.distances(),
            random_distances,
            farthest: range.farthest,
            best_f1: range.best_f1(),
            chance_neighbours: chance_neighbours(population.documents.len() as u64, bits, accepted),
        };
        report.bands = self.distance_bands(&population, &range, accepted, &collected.ids)?;
        report.forecast = self.simhash_forecast(
            &collected,
            &population,
            &range,
            accepted,
            &report.documents,
            &watch,
        )?;
        Ok(report)
    }

    /// Searches farther and farther, until F1 turns well within the range or the range is as large as it may be.
    fn turning_range(
        &self,
        collected: &Collected<Corpus>,
        population: &Population,
        random: &[Pair],
        asked: u32,
        watch: &mut Stopwatch,
    ) -> Result<Range<'a>, Error> {
        let bits = population.fingerprints.bits().count();
        let most = (bits * 3 / 8).max(asked);
        let mut farthest = asked.max(bits / 5);
        loop {
            let range = self.range(collected, population, random, farthest, watch)?;
            if range.turns || farthest == most {
                return Ok(range);
            }
            farthest = (farthest + bits / MARGIN).min(most);
        }
    }

    /// Searches up to a distance, and compares the texts of some pairs of each distance.
    fn range(
        &self,
        collected: &Collected<Corpus>,
        population: &Population,
        random: &[Pair],
        farthest: u32,
        watch: &mut Stopwatch,
    ) -> Result<Range<'a>, Error> {
        watch.lap();
        let (anchors, near) = self.search(&population.fingerprints, farthest)?;
        watch.searching = watch.lap();
        let verified = sampled(&near, farthest);
        let mut of_anchors: Vec<Pair> =
            verified.iter().map(|near| unscored(population.documents_of(near))).collect();
        of_anchors.sort_unstable();
        let texts = self.texts(collected, of_anchors.iter().chain(random))?;
        let texts = Bounded::by(self.context, texts);
        watch.reading_again = watch.lap();
        let templates = Templates::default();
        let scores = verify(&of_anchors, material(&texts, &templates), 0.0)?;
        let pair_of = |place: usize| (of_anchors[place].a, of_anchors[place].b);
        let score_of: HashMap<(u32, u32), Verified> =
            scores.into_iter().map(|(place, texts)| (pair_of(place), texts)).collect();
        let mut seen = vec![AtDistance::default(); farthest as usize + 1];
        near.iter().for_each(|near| seen[near.distance as usize].pairs += 1);
        for near in &verified {
            let own = &mut seen[near.distance as usize];
            own.verified += 1;
            let is_near = |texts: &Verified| texts.score >= MIN_SCORE;
            own.near +=
                u64::from(score_of.get(&population.documents_of(near)).is_some_and(is_near));
        }
        let best = best_f1(&seen);
        let margin = population.fingerprints.bits().count() / MARGIN;
        let turns = best.is_none_or(|best| best.distance + margin <= farthest);
        Ok(Range { anchors, near, verified, texts, score_of, seen, farthest, best, turns })
    }

    /// What `dedup` will find within a distance, and what that costs.
    fn simhash_forecast(
        &self,
        collected: &Collected<Corpus>,
        population: &Population,
        range: &Range<'_>,
        accepted: u32,
        counts: &Documents,
        watch: &Stopwatch,
    ) -> Result<Forecast, Error> {
        let corpus = &collected.corpus;
        let options = Options {
            threads: Threads::Current,
            memory_bytes: self.context.memory_bytes,
            ..Options::new(accepted)
        };
        let explanation = corpus.explain(&options).map_err(Error::invalid)?;
        let forecast = match range.anchors.are_all() {
            true => {
                // The sample is the whole input: the forecast is what dedup decides.
                let mut pairs = 0;
                let found = corpus.find(&options, |_| pairs += 1).map_err(Error::invalid)?;
                counted(&found, pairs)
            }
            false => {
                let within = range.near.iter().filter(|near| near.distance <= accepted);
                let later = within.map(|near| population.documents_of(near).1);
                estimated(later, &range.anchors, counts.same_text)
            }
        };
        let fingerprint_bytes = u64::from(population.fingerprints.bits().count()) / 8;
        let cost = Cost {
            documents: counts.documents,
            linear_seconds: watch.reading + watch.reading_again,
            pair_seconds: explanation.seconds,
            pairs: forecast.pairs.value,
            linear_bytes: counts.documents * (COLUMNS + fingerprint_bytes)
                + collected.ids.bytes()
                + explanation.bytes,
            ..Cost::default()
        };
        Ok(cost.complete(forecast, self.settings.documents))
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
        population: &Population,
        range: &Range<'_>,
        accepted: u32,
        ids: &Ids,
    ) -> Result<Vec<Band>, Error> {
        let bands = range.verified.iter().map(|near| near.distance as usize);
        let shown = chosen(bands, self.settings.seed, self.settings.examples);
        let of_band = |(band, items): (usize, Vec<usize>)| {
            let examples = items.into_iter().map(|item| {
                let near = &range.verified[item];
                let (a, b) = population.documents_of(near);
                let measured = range.score_of.get(&(a, b));
                Ok(Example {
                    score: measured.map(|texts| texts.score),
                    cosine: measured.map(|texts| texts.cosine),
                    alignment: measured.map(|texts| texts.alignment),
                    distance: Some(near.distance),
                    ..example(&range.texts, ids, a, b)?
                })
            });
            Ok(Band {
                name: format!("distance {band}"),
                pairs: range.seen[band].pairs,
                accepted: Some(band as u32 <= accepted),
                examples: examples.collect::<Result<_, Error>>()?,
            })
        };
        shown.into_iter().map(of_band).collect()
    }
}

/// A pair whose sketches were not compared.
fn unscored((a, b): (u32, u32)) -> Pair {
    Pair { a, b, score: Score::MAX }
}

/// What texts are compared with.
fn material<'m, T>(texts: &'m T, templates: &'m Templates) -> Material<'m, T> {
    Material { texts, frequencies: DocumentFrequencies::shipped(), templates }
}

/// The scores of the texts of some pairs.
fn scores_of(pairs: &[Pair], texts: &impl TextSource<Error = Error>) -> Result<Vec<f64>, Error> {
    let scores = verify(pairs, material(texts, &Templates::default()), 0.0)?;
    Ok(scores.into_iter().map(|(_, texts)| texts.score).collect())
}

/// How many pairs have each Hamming distance.
fn distances_of(corpus: &Corpus, pairs: &[Pair]) -> Vec<u64> {
    let mut distances = Vec::new();
    for pair in pairs {
        let both = corpus.fingerprint(pair.a).zip(corpus.fingerprint(pair.b));
        let distance = both.map_or(0, |(a, b)| a.distance(&b)) as usize;
        distances.resize(distances.len().max(distance + 1), 0);
        distances[distance] += 1;
    }
    distances
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
