//! Deduplication by dual sketches.

use nearsift::dedup::Grouping;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;

use super::budget::Budget;
use super::collect::{Collected, Sketched};
use super::examples::Sample;
use super::summary::{Search, Summary};
use super::{Judgement, Run, against};
use crate::Status;
use crate::commands::with_corpus;
use crate::failure::Failure;
use crate::near::{
    Candidates, Extent, Near, PairLine, Rule, Texts, Workspace, decide, join_settings,
};

impl Run<'_> {
    pub(super) fn by_sketch(
        &self,
        recipe: Recipe,
        rule: Rule,
    ) -> Result<(Summary, Status), Failure> {
        let recipe = with_corpus(recipe, self.inputs)?;
        let mut collected = self.collect(Sketched::default(), &recipe)?;
        let against = self.against(&mut collected, rule, &recipe)?;
        let Sketched { corpus, sample: frequencies } = &collected.corpus;
        let budget = match (self.memory, self.folder.state()) {
            (Some(limit), Some(_)) => {
                let columns = corpus.bytes() + collected.ids.bytes();
                Some(Budget::new(limit, corpus.len() as u64, "documents", columns)?)
            }
            _ => None,
        };
        let candidates = self.candidates(&collected, rule, budget)?;
        // Where the search was bounded, so are the texts: by what the candidates leave.
        let texts = match budget {
            Some(budget) => Some(budget.texts(candidates.pairs.len() as u64)?),
            None => self.memory.map(|bytes| bytes / 8),
        };
        let frequencies = frequencies.table(DocumentFrequencies::shipped());
        let folder = self.folder.path("");
        let workspace = Workspace { state: self.folder.state(), folder: &folder };
        let mut decision = decide(corpus, candidates, frequencies, rule, workspace, |wanted| {
            let wanted = wanted.past_changes();
            Texts::read(self.inputs, &collected.records, wanted, texts, &folder)
        })?;
        let search = Search::of_sketches(rule, &decision, &collected.ids);
        let mut summary =
            Summary::new(self.inputs, &collected, &recipe, &self.keep, self.clustering, search);

        let first = corpus.first_of_text();
        let mut sample = Sample::default();
        let grouping = Grouping {
            clustering: self.clustering,
            majority: self.majority,
            keep: self.keep.clone(),
        };
        // The groups follow from the pairs, whether or not these are written already.
        let (written, found) = rayon::join(
            || {
                let mut table = self.folder.table("pairs.jsonl")?;
                for pair in decision.with_same_texts(&first) {
                    let pair = pair?;
                    let nearness = u32::MAX - summary.count_scored(f64::from(pair.score()));
                    sample.offer(pair.a, pair.b, nearness, || heading(&pair));
                    table.line(&PairLine::of(&pair, &collected.ids, corpus))?;
                }
                table.finish()
            },
            || corpus.find(&decision.accepted, &grouping, || decision.judge()),
        );
        written?;
        summary.tell_same_form(&decision.of_one_form(found.clusters())?, &collected.ids);
        decision.take_up(found.judged());
        let facts = decision.facts_of(found.clusters().removed(), &first)?;
        let judged = |a, b| {
            let score = decision.score_of(a, b, &first)?;
            Some(Judgement { score, facts: facts.of(a, b, &first) })
        };
        let summary = self.write(&collected, &found, &against, summary, &sample, judged)?;
        if self.keep_state {
            let is_kept = |document| found.clusters().is_kept(document) && !against.has(document);
            against::kept::write(self.folder, self.inputs, &collected, &recipe, is_kept)?;
        }
        Ok((summary, collected.problems.status()))
    }

    /// The candidates, from the state where an earlier run left them there.
    fn candidates(
        &self,
        collected: &Collected<Sketched>,
        rule: Rule,
        budget: Option<Budget>,
    ) -> Result<Candidates, Failure> {
        let corpus = &collected.corpus.corpus;
        let memory = budget.map_or(self.memory, |budget| Some(budget.search()));
        let settings = join_settings(rule, corpus.len(), memory);
        let extent = Extent::Links(self.clustering);
        let (Some(state), Some(keys)) = (self.folder.state(), &collected.keys) else {
            let join = corpus.join(settings).map_err(Failure::new)?;
            return Ok(Candidates::find(corpus, &join, extent, rule));
        };
        if let Some(candidates) = Candidates::load(state)? {
            return Ok(candidates);
        }
        let join = corpus.join_by(keys, settings).map_err(Failure::new)?;
        let candidates = Candidates::find(corpus, &join, extent, rule);
        keys.check()?;
        candidates.save(state)?;
        Ok(candidates)
    }
}

fn heading(pair: &Near) -> String {
    match pair.texts {
        Some(texts) => format!(
            "score {:.3}: cosine {:.3}, alignment {:.3}, containment {:.3}",
            texts.score, texts.cosine, texts.alignment, texts.containment
        ),
        None if pair.same_text => "the same text".to_owned(),
        None => format!("score {:.3}", pair.score()),
    }
}
