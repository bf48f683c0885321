//! Deduplication by dual sketches.

use std::path::Path;

use nearsift::cluster::MajorityLink;
use nearsift::dedup::{Grouping, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift::search::{Acceptance, Candidates, Near, PairScope, TextSource, join_settings};

use super::budget::Budget;
use super::examples::Offered;
use super::finish::Decided;
use super::origin::Origin;
use super::pairs::FoundPairs;
use super::summary::{Search, Summary};
use super::{Job, Judgement, Outcome, run};
use crate::checkpoint::CorpusKeys;
use crate::corpus::{Collected, Ids, Sketched};
use crate::error::Error;
use crate::report::{Measured, Place};
use crate::search::{
    Decision, KeptScores, PairLine, Texts, Workspace, decide, load_candidates, save_candidates,
};

impl Job<'_> {
    pub(super) fn by_sketch(
        &self,
        recipe: Recipe,
        acceptance: Acceptance,
    ) -> Result<Outcome, Error> {
        let &Job { origin, settings, .. } = self;
        let recipe = self.with_statistics(recipe)?;
        let mut collected = self.collect(Sketched::default(), &recipe)?;
        if let (Origin::Parts(parts), Acceptance::Verified(_)) = (origin, acceptance) {
            collected.corpus.sample = parts.sample(self.context, &recipe, &collected.corpus)?;
        }
        let part = self.part_manifest(acceptance, &recipe, &collected)?;
        let against = self.against(&mut collected, acceptance, &recipe)?;
        let scratch = self.scratch();
        let mut decision = self.decide(&collected.corpus, &collected, acceptance, &scratch)?;
        let search = Search::of_sketches(acceptance, &decision, &collected.ids)?;
        let clustering = self.clustering();
        let mut summary =
            Summary::new(origin, &collected, &recipe, &settings.keep, clustering, search);

        let corpus = &collected.corpus.corpus;
        let first = corpus.first_of_text();
        let grouping = Grouping {
            clustering,
            majority: MajorityLink { max_cluster: settings.max_cluster },
            keep: settings.keep.clone(),
        };
        // The groups follow from the pairs, whether or not these are written already.
        let (pairs, found) = rayon::join(
            || self.list_pairs(&decision, corpus, &collected.ids, &first, &mut summary),
            || corpus.find(&decision.accepted, &grouping, || decision.judge()),
        );
        let (mut pairs, found) = (pairs?, found?);
        if self.folder.is_some() {
            let refused = decision.refused()?;
            let nearest = refused.iter().flat_map(|refused| &refused.nearest);
            pairs
                .sample
                .take_refused(nearest.map(|pair| offered(pair, Place::Refused, 0)).collect());
            summary.set_refused(refused);
        }
        summary.set_same_form(&decision.of_one_form(found.clusters())?, &collected.ids)?;
        decision.take_up(found.judged());
        let facts = decision.facts_of(found.clusters().removed(), &first)?;
        if let (Some(folder), Acceptance::Verified(_)) = (self.folder, acceptance) {
            run::write_rarity(folder, decision.frequencies())?;
        }
        let judged = |a, b| {
            let score = decision.score_of(a, b, &first)?;
            Some(Judgement { score, facts: facts.of(a, b, &first) })
        };
        let Collected { ids, records, lacking, sources, .. } = collected;
        let (found, against) = (&found, &against);
        let decided = Decided { ids, records, lacking, sources, found, against };
        self.leave_part(part.as_ref())?;
        let outcome = self.finish(decided, pairs, summary, judged)?;
        Ok(match (outcome, acceptance) {
            (Outcome::Found(decisions), Acceptance::Verified(_)) => {
                let rarity = decision.frequencies().clone();
                Outcome::Found(Box::new(decisions.with_rarity(rarity)))
            }
            (outcome, _) => outcome,
        })
    }

    /// Searches the candidates and decides about them, within the memory that there is. The decision borrows the columns of
    /// what was collected, and nothing else of it.
    fn decide<'c>(
        &'c self,
        columns: &'c Sketched,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        scratch: &'c Path,
    ) -> Result<Decision<'c, Texts>, Error> {
        let &Job { origin, context, .. } = self;
        let Sketched { corpus, sample } = columns;
        let memory = context.memory_bytes;
        let budget = match (memory, self.state()) {
            (Some(limit), Some(_)) => {
                let columns = corpus.bytes() + collected.ids.bytes();
                Some(Budget::new(limit, corpus.len() as u64, "documents", columns)?)
            }
            _ => None,
        };
        let candidates = self.candidates(collected, acceptance, budget)?;
        // Where the search was bounded, so are the texts: by what the candidates leave.
        let texts = match budget {
            Some(budget) => Some(budget.texts(candidates.pairs.len() as u64)?),
            None => memory.map(|bytes| bytes / 8),
        };
        let frequencies = sample.table(DocumentFrequencies::shipped());
        let scores = KeptScores {
            from: self.settings.keep_pairs_from,
            earlier: self.scores_of_run(acceptance),
        };
        let workspace = Workspace { context, state: self.state(), folder: scratch, scores };
        decide(corpus, candidates, frequencies, acceptance, workspace, |wanted| match origin {
            Origin::Parts(parts) => parts.texts(context, wanted, texts, scratch),
            Origin::Files(inputs) => {
                let wanted = wanted.past_changes();
                Texts::read(context, inputs, &collected.records, wanted, texts, scratch)
            }
        })
    }

    /// The folder with the scores of all pairs that may be accepted, where the run whose part is decided anew left them.
    fn scores_of_run(&self, acceptance: Acceptance) -> Option<&Path> {
        match self.origin {
            Origin::Files(_) => None,
            Origin::Parts(parts) => parts.scores(acceptance, self.clustering()),
        }
    }

    /// Lists and counts the pairs, those of documents with the same text among them.
    fn list_pairs<T: TextSource<Error = Error>>(
        &self,
        decision: &Decision<'_, T>,
        corpus: &SketchCorpus,
        ids: &Ids,
        first: &[u32],
        summary: &mut Summary,
    ) -> Result<FoundPairs, Error> {
        /// Scores so near to the threshold are on the border.
        const BORDER: f64 = 0.07;
        /// Pairs whose lines are made together.
        const TOGETHER: usize = 1 << 14;
        let least = decision.min_score();
        let mut found = FoundPairs::begin(self)?;
        let mut rest = decision.with_same_texts(first);
        loop {
            let pairs: Vec<Near> = rest.by_ref().take(TOGETHER).collect::<Result<_, Error>>()?;
            if pairs.is_empty() {
                return found.finish();
            }
            for pair in &pairs {
                let score = f64::from(pair.score());
                let nearness = u32::MAX - summary.count_scored(score);
                let place = match !pair.same_text && score < least + BORDER {
                    true => Place::Borderline,
                    false => Place::Alike,
                };
                // Values that differ tell documents of one form apart: no plain pair has any.
                let equal = pair.texts.filter(|texts| texts.facts.differ == 0);
                let equal = equal.map(|texts| texts.alignment);
                found.sample.offer(offered(pair, place, nearness), equal);
            }
            found.add_all(&pairs, |pair| PairLine::of(pair, ids, corpus))?;
        }
    }

    /// The candidates, from the state where an earlier job left them there.
    fn candidates(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        budget: Option<Budget>,
    ) -> Result<Candidates, Error> {
        let corpus = &collected.corpus.corpus;
        let memory = budget.map_or(self.context.memory_bytes, |budget| Some(budget.search()));
        let settings = join_settings(acceptance, corpus.len(), memory);
        let scope = PairScope::SpanningLinks(self.clustering());
        let earlier = self.state().map(|state| state.path(""));
        let of_run = self.scores_of_run(acceptance).map(Path::to_owned);
        for folder in earlier.into_iter().chain(of_run) {
            if let Some(candidates) = load_candidates(&folder)? {
                return Ok(candidates);
            }
        }
        let keys = CorpusKeys::of(&collected.keys, corpus);
        let join = corpus.join_by(&keys, settings).map_err(Error::invalid)?;
        let candidates = Candidates::find(corpus, &join, scope, acceptance)?;
        self.state().map_or(Ok(()), |state| save_candidates(&candidates, state))?;
        Ok(candidates)
    }
}

/// A pair as an example.
fn offered(pair: &Near, place: Place, nearness: u32) -> Offered {
    let measured = match pair.texts {
        Some(texts) => Measured::Texts {
            score: texts.score,
            cosine: texts.cosine,
            alignment: texts.alignment,
            containment: texts.containment,
        },
        None if pair.same_text => Measured::SameText,
        None => Measured::Sketches(pair.score()),
    };
    Offered { a: pair.a, b: pair.b, measured, nearness, place }
}
