//! Deduplication by dual sketches.

use nearsift::dedup::{Accepted, Grouping};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;

use super::Run;
use super::collect::Sketched;
use super::examples::Sample;
use super::summary::{Search, Summary};
use crate::Status;
use crate::commands::with_corpus;
use crate::failure::Failure;
use crate::near::{Extent, Near, PairLine, Rule, Texts, join_settings, search};

impl Run<'_> {
    pub(super) fn by_sketch(
        &self,
        recipe: Recipe,
        rule: Rule,
    ) -> Result<(Summary, Status), Failure> {
        let recipe = with_corpus(recipe, self.inputs, self.global)?;
        let collected = self.collect(Sketched::default(), &recipe)?;
        let Sketched { corpus, sample: frequencies } = &collected.corpus;
        let join = corpus.join(join_settings(rule, self.memory)).map_err(Failure::new)?;
        let frequencies = frequencies.table(DocumentFrequencies::shipped());
        let decision = search(corpus, &join, Extent::Links, frequencies, rule, |documents| {
            let folder = self.folder.path("");
            Texts::read(
                self.inputs,
                self.global,
                &collected.records,
                documents,
                self.memory,
                &folder,
            )
        })?;
        let search = Search::of_sketches(rule, &decision);
        let mut summary =
            Summary::new(self.inputs, &collected, &recipe, &self.keep, self.clustering, search);

        let first = corpus.first_of_text();
        let mut sample = Sample::default();
        let mut table = self.folder.table("pairs.jsonl")?;
        for pair in decision.with_same_texts(&first) {
            let nearness = u32::MAX - summary.count_scored(pair.score());
            sample.offer(pair.a, pair.b, nearness, || heading(&pair));
            table.line(&PairLine::of(&pair, &collected.ids, corpus))?;
        }
        table.finish()?;

        let accepted: Vec<Accepted> = decision.pairs.iter().map(Near::accepted).collect();
        let grouping = Grouping {
            clustering: self.clustering,
            majority: self.majority,
            keep: self.keep.clone(),
        };
        let found = corpus.find(&accepted, &grouping, decision.judge());
        let score = |document, representative| decision.score_of(document, representative, &first);
        let summary = self.write(&collected, &found, summary, &sample, score)?;
        Ok((summary, collected.problems.status()))
    }
}

fn heading(pair: &Near) -> String {
    match pair.verified {
        Some(verified) => format!(
            "score {:.3}: cosine {:.3}, alignment {:.3}, containment {:.3}",
            verified.score, verified.cosine, verified.alignment, verified.containment
        ),
        None if pair.same_text => "the same text".to_owned(),
        None => format!("score {:.3}", pair.sketch_score),
    }
}
