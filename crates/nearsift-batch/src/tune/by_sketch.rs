//! Tuning of dual sketches: the score of the texts from which pairs are near duplicates.

use nearsift::dedup::{Clustering, Grouping, SketchCorpus};
use nearsift::evaluate::ScoredPair;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift::sketch::join::Pair;
use nearsift::tune::{
    Anchors, Evidence, Histogram, Proposal, RandomPairs, Reservoir, expected_precision,
};
use nearsift::verify::{MIN_SCORE, Verified};

use super::examples::{chosen, example};
use super::forecast::{
    Cost, FREQUENCIES, JOIN_COLUMNS, SKETCH_COLUMNS, Stopwatch, counted, estimated,
};
use super::report::{Band, Example, Random, Report, STEPS, Sample, Seen, Threshold, steps};
use super::{MAX_PAIRS, Run, documents};
use crate::corpus::{Collected, Ids, Sketched};
use crate::error::Error;
use crate::search::{Bounded, Texts, Workspace, decide};
use nearsift::search::{
    Acceptance, Candidates, Material, PairScope, Templates, TextSource, join_settings,
    judge_by_neighbours, pair_of, verify,
};

/// Texts that score less are not distinguished further.
const FLOOR: f64 = 0.25;

/// A pair of an anchor, with what its texts measure.
type Measured = (Pair, Verified);

impl Run<'_> {
    pub(super) fn by_sketch(
        &self,
        recipe: Recipe,
        acceptance: Acceptance,
    ) -> Result<Report, Error> {
        let Acceptance::Verified(given) = acceptance else {
            let problem =
                " off: tuning compares texts exactly, to see what scores are worth; leave it out";
            return Err(Error::Setting { setting: "verify", problem: problem.to_owned() });
        };
        let &Run { settings, context, .. } = self;
        let memory = context.memory_bytes;
        let asked = settings.is_threshold_given.then_some(given);
        let mut watch = Stopwatch::start();
        let (collected, recipe) = self.collect(Sketched::default(), recipe, &mut watch)?;
        let Sketched { corpus, sample: frequencies } = &collected.corpus;
        let first = corpus.first_of_text();
        let mut report = self.report("sketch", &recipe, documents(&collected, &first));

        let is_first = |document: u32| first[document as usize] == document;
        let floor = asked.unwrap_or(FLOOR).min(FLOOR);
        let join = corpus
            .join(join_settings(Acceptance::Verified(floor), corpus.len(), memory))
            .map_err(Error::invalid)?;
        let Ok((candidates, _)) = corpus.candidates(&join);
        watch.searching = watch.lap();

        let population: Vec<u32> = (0..corpus.len() as u32)
            .filter(|&document| is_first(document) && corpus.sketch(document).is_some())
            .collect();
        let mut reservoir = Reservoir::new(settings.seed, settings.sample as usize);
        population.iter().for_each(|&document| reservoir.offer(document));
        let mut anchors = reservoir.finish();
        let of_firsts = candidates.iter().copied().filter(|pair| is_first(pair.b));
        let pairs = anchors.pairs(of_firsts, |pair| pair.b, MAX_PAIRS);
        let random = self.random_pairs(corpus, &population);

        watch.lap();
        let texts = Bounded::by(context, self.texts(&collected, pairs.iter().chain(&random))?);
        watch.reading_again = watch.lap();
        let frequencies = frequencies.table(DocumentFrequencies::shipped());
        let material =
            Material { texts: &texts, frequencies: &frequencies, templates: &Templates::default() };
        let verified = verify(&pairs, material, floor)?;
        let mut measured: Vec<Measured> =
            verified.into_iter().map(|(place, texts)| (pairs[place], texts)).collect();
        let templates = judge_by_neighbours(&mut measured, &texts, asked.unwrap_or(MIN_SCORE))?;
        watch.verifying = watch.lap();
        let material = Material { templates: &templates, ..material };
        let random_scores: Vec<f64> =
            verify(&random, material, 0.0)?.into_iter().map(|(_, texts)| texts.score).collect();
        let scored: Vec<ScoredPair> = measured
            .iter()
            .map(|(pair, texts)| ScoredPair { a: pair.a, b: pair.b, score: texts.score })
            .collect();

        report.sample = Sample {
            population: anchors.population(),
            anchors: anchors.count() as u64,
            pairs: pairs.len() as u64,
            verified: pairs.len() as u64,
        };
        report.seen = Seen::Sketch {
            sketch_scores: steps(candidates.iter().map(|pair| pair.score.value())),
            random_sketch_scores: steps(random.iter().map(|pair| pair.score.value())),
            scores: steps(scored.iter().map(|pair| pair.score)),
            random_scores: steps(random_scores.iter().copied()),
        };
        let random_of_score = |least: f64| random_scores.iter().filter(|s| **s >= least).count();
        let p99 = Random::of(random_scores.clone()).p99;
        let proposal = Proposal::of_pairs(&scored, p99);
        report.threshold =
            Threshold::of_score(&proposal, asked, MIN_SCORE, &context.spell("`min-score`"));
        let min_score = report.threshold.min_score.unwrap_or(MIN_SCORE);
        if let Evidence::Valley(valley) = proposal.evidence {
            let expected = expected_precision(&scored, &valley, min_score, settings.seed);
            report.threshold.precision = expected.map(Into::into);
        }
        let accepted_at_random = random_of_score(min_score) as u64;
        report.random = Random { accepted: accepted_at_random, ..Random::of(random_scores) };
        report.bands = self.bands(&measured, &anchors, min_score, &texts, &collected.ids)?;

        let acceptance = Acceptance::Verified(min_score);
        let forecast = match anchors.are_all() {
            true => {
                // Everything is at hand, so dedup decides here as it will.
                let join = corpus
                    .join(join_settings(acceptance, corpus.len(), memory))
                    .map_err(Error::invalid)?;
                let clustering = Clustering::Majority;
                let Ok(links) = Candidates::find(
                    corpus,
                    &join,
                    PairScope::SpanningLinks(clustering),
                    acceptance,
                );
                let folder = &context.scratch;
                let workspace = Workspace::scratch(context, folder);
                let decision =
                    decide(corpus, links, frequencies, acceptance, workspace, |_| Ok(&texts))?;
                let grouping = Grouping { clustering, ..Grouping::default() };
                let found = corpus.find(&decision.accepted, &grouping, || decision.judge())?;
                counted(&found, decision.accepted.len() as u64 + report.documents.same_text)
            }
            false => {
                let accepted = scored.iter().filter(|pair| pair.score >= min_score);
                estimated(accepted.map(|pair| pair.b), &anchors, report.documents.same_text)
            }
        };
        let each = watch.verifying / pairs.len().max(1) as f64;
        let mut candidates = candidates;
        candidates.retain(|pair| acceptance.is_candidate(corpus, pair));
        let compared = in_pairs(&candidates).len() as u64;
        let documents = report.documents.documents;
        let texts_bytes = u128::from(report.documents.text_bytes) * u128::from(compared)
            / u128::from(documents.max(1));
        let cost = Cost {
            documents,
            // The last pass, which writes what stays, reads as the second does.
            linear_seconds: watch.reading + 2.0 * watch.reading_again,
            pair_seconds: watch.searching + each * candidates.len() as f64,
            linear_bytes: documents * (SKETCH_COLUMNS + JOIN_COLUMNS) + collected.ids.bytes(),
            text_bytes: texts_bytes as u64,
            pairs: candidates.len() as u64,
            bytes_each: size_of::<Pair>() as u64,
            fixed_bytes: FREQUENCIES,
        };
        report.forecast = cost.complete(forecast, settings.documents);
        Ok(report)
    }

    fn random_pairs(&self, corpus: &SketchCorpus, population: &[u32]) -> Vec<Pair> {
        let drawn = RandomPairs::new(
            self.settings.seed,
            population.len() as u32,
            self.settings.random_pairs,
        );
        let mut pairs: Vec<Pair> = drawn
            .filter_map(|(a, b)| {
                let (a, b) = (population[a as usize], population[b as usize]);
                pair_of(corpus, a, b)
            })
            .collect();
        // Neighbours share documents, which are then prepared once.
        pairs.sort_unstable();
        pairs
    }

    /// Reads the texts of all documents in some pairs.
    pub(super) fn texts<'p, C>(
        &self,
        collected: &Collected<C>,
        pairs: impl Iterator<Item = &'p Pair>,
    ) -> Result<Texts, Error> {
        let documents = in_pairs(pairs);
        let memory = self.context.memory_bytes.map(|bytes| bytes / 8);
        let folder = &self.context.scratch;
        Texts::read(self.context, self.inputs, &collected.records, documents, memory, folder)
    }

    /// Pairs of every score, the highest first.
    fn bands(
        &self,
        measured: &[Measured],
        anchors: &Anchors,
        min_score: f64,
        texts: &impl TextSource<Error = Error>,
        ids: &Ids,
    ) -> Result<Vec<Band>, Error> {
        let steps = Histogram::new(STEPS);
        let bands = measured.iter().map(|(_, texts)| steps.step(texts.score));
        let mut sizes = Histogram::new(STEPS);
        measured.iter().for_each(|(_, texts)| sizes.add(texts.score));
        let shown = chosen(bands, self.settings.seed, self.settings.examples);
        let whole = anchors.population() as f64 / anchors.count().max(1) as f64;
        let of_band = |(band, items): (usize, Vec<usize>)| {
            let range = steps.range(band);
            let examples = items.into_iter().map(|item| {
                let (pair, measured) = measured[item];
                Ok(Example {
                    score: Some(measured.score),
                    cosine: Some(measured.cosine),
                    alignment: Some(measured.alignment),
                    facts: Some(measured.facts).filter(|facts| facts.differ > 0),
                    ..example(texts, ids, pair.a, pair.b)?
                })
            });
            Ok(Band {
                name: format!("{:.2} to {:.2}", range.start, range.end),
                pairs: (sizes.counts()[band] as f64 * whole).round() as u64,
                accepted: match () {
                    () if range.start >= min_score => Some(true),
                    () if range.end <= min_score => Some(false),
                    () => None,
                },
                examples: examples.collect::<Result<_, Error>>()?,
            })
        };
        shown.into_iter().rev().map(of_band).collect()
    }
}

/// The documents of some pairs, ascending.
fn in_pairs<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Vec<u32> {
    let mut documents: Vec<u32> = pairs.into_iter().flat_map(|pair| [pair.a, pair.b]).collect();
    documents.sort_unstable();
    documents.dedup();
    documents
}
