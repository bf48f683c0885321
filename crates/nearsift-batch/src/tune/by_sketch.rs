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
use super::report::{
    Band, Documents, Example, Forecast, Random, Report, STEPS, Sample, Seen, Threshold, steps,
};
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

/// The pairs whose texts are compared.
struct Drawn {
    /// The documents that were searched against all others.
    anchors: Anchors,
    /// The candidates of the anchors.
    pairs: Vec<Pair>,
    /// Random pairs of different documents, sorted.
    random: Vec<Pair>,
}

impl Drawn {
    fn sample(&self) -> Sample {
        Sample {
            population: self.anchors.population(),
            anchors: self.anchors.count() as u64,
            pairs: self.pairs.len() as u64,
            verified: self.pairs.len() as u64,
        }
    }
}

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
        let asked = self.settings.is_threshold_given.then_some(given);
        let mut watch = Stopwatch::start();
        let (collected, recipe) = self.collect(Sketched::default(), recipe, &mut watch)?;
        let Sketched { corpus, sample: frequencies } = &collected.corpus;
        let first = corpus.first_of_text();
        let mut report = self.report("sketch", &recipe, documents(&collected, &first));

        let floor = asked.unwrap_or(FLOOR).min(FLOOR);
        let candidates = self.sketch_candidates(corpus, floor)?;
        watch.searching = watch.lap();
        let drawn = self.draw(corpus, &first, &candidates);

        watch.lap();
        let texts = self.texts(&collected, drawn.pairs.iter().chain(&drawn.random))?;
        let texts = Bounded::by(self.context, texts);
        watch.reading_again = watch.lap();
        let frequencies = frequencies.table(DocumentFrequencies::shipped());
        let material =
            Material { texts: &texts, frequencies: &frequencies, templates: &Templates::default() };
        let (measured, templates) =
            measure(&drawn.pairs, material, floor, asked.unwrap_or(MIN_SCORE))?;
        watch.verifying = watch.lap();
        let random_scores: Vec<f64> =
            verify(&drawn.random, Material { templates: &templates, ..material }, 0.0)?
                .into_iter()
                .map(|(_, texts)| texts.score)
                .collect();
        let scored: Vec<ScoredPair> = measured
            .iter()
            .map(|(pair, texts)| ScoredPair { a: pair.a, b: pair.b, score: texts.score })
            .collect();

        report.sample = drawn.sample();
        report.seen = Seen::Sketch {
            sketch_scores: steps(candidates.iter().map(|pair| pair.score.value())),
            random_sketch_scores: steps(drawn.random.iter().map(|pair| pair.score.value())),
            scores: steps(scored.iter().map(|pair| pair.score)),
            random_scores: steps(random_scores.iter().copied()),
        };
        report.threshold = self.score_threshold(&scored, &random_scores, asked);
        let min_score = report.threshold.min_score.unwrap_or(MIN_SCORE);
        let accepted_at_random = random_scores.iter().filter(|s| **s >= min_score).count() as u64;
        report.random = Random { accepted: accepted_at_random, ..Random::of(random_scores) };
        report.bands = self.bands(&measured, &drawn.anchors, min_score, &texts, &collected.ids)?;

        let acceptance = Acceptance::Verified(min_score);
        let same_text = report.documents.same_text;
        let forecast = match drawn.anchors.are_all() {
            true => self.decided(corpus, frequencies, acceptance, &texts, same_text)?,
            false => {
                let accepted = scored.iter().filter(|pair| pair.score >= min_score);
                estimated(accepted.map(|pair| pair.b), &drawn.anchors, same_text)
            }
        };
        let each = watch.verifying / drawn.pairs.len().max(1) as f64;
        let mut candidates = candidates;
        candidates.retain(|pair| acceptance.is_candidate(corpus, pair));
        let cost = sketch_cost(&candidates, each, &report.documents, collected.ids.bytes(), &watch);
        report.forecast = cost.complete(forecast, self.settings.documents);
        Ok(report)
    }

    /// The pairs whose sketches may score `floor` by their texts.
    fn sketch_candidates(&self, corpus: &SketchCorpus, floor: f64) -> Result<Vec<Pair>, Error> {
        let memory = self.context.memory_bytes;
        let join = corpus
            .join(join_settings(Acceptance::Verified(floor), corpus.len(), memory))
            .map_err(Error::invalid)?;
        let Ok((candidates, _)) = corpus.candidates(&join);
        Ok(candidates)
    }

    /// Draws the anchors and the random pairs among the documents of different texts.
    fn draw(&self, corpus: &SketchCorpus, first: &[u32], candidates: &[Pair]) -> Drawn {
        let is_first = |document: u32| first[document as usize] == document;
        let population: Vec<u32> = (0..corpus.len() as u32)
            .filter(|&document| is_first(document) && corpus.sketch(document).is_some())
            .collect();
        let mut reservoir = Reservoir::new(self.settings.seed, self.settings.sample as usize);
        population.iter().for_each(|&document| reservoir.offer(document));
        let mut anchors = reservoir.finish();
        let of_firsts = candidates.iter().copied().filter(|pair| is_first(pair.b));
        let pairs = anchors.pairs(of_firsts, |pair| pair.b, MAX_PAIRS);
        let random = self.random_pairs(corpus, &population);
        Drawn { anchors, pairs, random }
    }

    /// The asked threshold, or the one that the scores of the pairs propose, with the precision to expect of it.
    fn score_threshold(
        &self,
        scored: &[ScoredPair],
        random_scores: &[f64],
        asked: Option<f64>,
    ) -> Threshold {
        let p99 = Random::of(random_scores.to_vec()).p99;
        let proposal = Proposal::of_pairs(scored, p99);
        let spelled = self.context.spell("`min-score`");
        let mut threshold = Threshold::of_score(&proposal, asked, MIN_SCORE, &spelled);
        if let Evidence::Valley(valley) = proposal.evidence {
            let min_score = threshold.min_score.unwrap_or(MIN_SCORE);
            let expected = expected_precision(scored, &valley, min_score, self.settings.seed);
            threshold.precision = expected.map(Into::into);
        }
        threshold
    }

    /// What `dedup` decides, where the sample is the whole input.
    fn decided(
        &self,
        corpus: &SketchCorpus,
        frequencies: DocumentFrequencies,
        acceptance: Acceptance,
        texts: &Bounded<'_, Texts>,
        same_text: u64,
    ) -> Result<Forecast, Error> {
        let join = corpus
            .join(join_settings(acceptance, corpus.len(), self.context.memory_bytes))
            .map_err(Error::invalid)?;
        let clustering = Clustering::Majority;
        let scope = PairScope::SpanningLinks(clustering);
        let Ok(links) = Candidates::find(corpus, &join, scope, acceptance);
        let workspace = Workspace::scratch(self.context, &self.context.scratch);
        let decision = decide(corpus, links, frequencies, acceptance, workspace, |_| Ok(texts))?;
        let grouping = Grouping { clustering, ..Grouping::default() };
        let found = corpus.find(&decision.accepted, &grouping, || decision.judge())?;
        Ok(counted(&found, decision.accepted.len() as u64 + same_text))
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

/// Compares the texts of pairs, and judges documents of one form by their neighbours.
fn measure(
    pairs: &[Pair],
    material: Material<'_, impl TextSource<Error = Error>>,
    floor: f64,
    min_score: f64,
) -> Result<(Vec<Measured>, Templates), Error> {
    let verified = verify(pairs, material, floor)?;
    let mut measured: Vec<Measured> =
        verified.into_iter().map(|(place, texts)| (pairs[place], texts)).collect();
    let templates = judge_by_neighbours(&mut measured, material.texts, min_score)?;
    Ok((measured, templates))
}

/// What `dedup` costs that compares some candidates, given the seconds that one comparison takes.
fn sketch_cost(
    candidates: &[Pair],
    seconds_each: f64,
    counts: &Documents,
    id_bytes: u64,
    watch: &Stopwatch,
) -> Cost {
    let compared = in_pairs(candidates).len() as u64;
    let documents = counts.documents;
    let text_bytes =
        u128::from(counts.text_bytes) * u128::from(compared) / u128::from(documents.max(1));
    Cost {
        documents,
        // The last pass, which writes the kept documents, reads as the second does.
        linear_seconds: watch.reading + 2.0 * watch.reading_again,
        pair_seconds: watch.searching + seconds_each * candidates.len() as f64,
        linear_bytes: documents * (SKETCH_COLUMNS + JOIN_COLUMNS) + id_bytes,
        text_bytes: text_bytes as u64,
        pairs: candidates.len() as u64,
        bytes_each: size_of::<Pair>() as u64,
        fixed_bytes: FREQUENCIES,
    }
}

/// The documents of some pairs, ascending.
fn in_pairs<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Vec<u32> {
    let mut documents: Vec<u32> = pairs.into_iter().flat_map(|pair| [pair.a, pair.b]).collect();
    documents.sort_unstable();
    documents.dedup();
    documents
}
