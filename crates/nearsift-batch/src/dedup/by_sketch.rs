//! Deduplication by dual sketches.

use nearsift::cluster::MajorityLink;
use nearsift::dedup::Grouping;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;

use super::against;
use super::budget::Budget;
use super::decisions::{Decisions, Pair};
use super::examples::Sample;
use super::summary::{Search, Summary};
use super::write::Decided;
use super::{Job, Judgement, Outcome, run};
use crate::corpus::{Collected, Sketched, with_statistics};
use crate::error::Error;
use crate::folder::Table;
use crate::search::{PairLine, Texts, Workspace, decide, load_candidates, save_candidates};
use nearsift::search::{Acceptance, Candidates, Near, PairScope, join_settings};

impl Job<'_> {
    pub(super) fn by_sketch(
        &self,
        recipe: Recipe,
        acceptance: Acceptance,
    ) -> Result<Outcome, Error> {
        let &Job { inputs, settings, context, .. } = self;
        let recipe = with_statistics(context, recipe, inputs)?;
        let mut collected = self.collect(Sketched::default(), &recipe)?;
        let against = self.against(&mut collected, acceptance, &recipe)?;
        let Sketched { corpus, sample: frequencies } = &collected.corpus;
        let memory = context.memory_bytes;
        let budget = match (memory, self.state()) {
            (Some(limit), Some(_)) => {
                let columns = corpus.bytes() + collected.ids.bytes();
                Some(Budget::new(limit, corpus.len() as u64, "documents", columns)?)
            }
            _ => None,
        };
        let candidates = self.candidates(&collected, acceptance, budget)?;
        // Where the search was bounded, so are the texts: by what the candidates leave.
        let texts = match budget {
            Some(budget) => Some(budget.texts(candidates.pairs.len() as u64)?),
            None => memory.map(|bytes| bytes / 8),
        };
        let frequencies = frequencies.table(DocumentFrequencies::shipped());
        let scratch = self.scratch();
        let workspace = Workspace { context, state: self.state(), folder: &scratch };
        let mut decision =
            decide(corpus, candidates, frequencies, acceptance, workspace, |wanted| {
                let wanted = wanted.past_changes();
                Texts::read(context, inputs, &collected.records, wanted, texts, &scratch)
            })?;
        let search = Search::of_sketches(acceptance, &decision, &collected.ids)?;
        let clustering = self.clustering();
        let mut summary =
            Summary::new(inputs, &collected, &recipe, &settings.keep, clustering, search);

        let first = corpus.first_of_text();
        let mut sample = Sample::default();
        let grouping = Grouping {
            clustering,
            majority: MajorityLink { max_cluster: settings.max_cluster },
            keep: settings.keep.clone(),
        };
        // The groups follow from the pairs, whether or not these are written already.
        let (written, found) = rayon::join(
            || -> Result<Vec<Pair>, Error> {
                let mut in_memory = Vec::new();
                let mut table =
                    self.folder.map(|folder| folder.table("pairs.jsonl")).transpose()?;
                for pair in decision.with_same_texts(&first) {
                    let pair = pair?;
                    let nearness = u32::MAX - summary.count_scored(f64::from(pair.score()));
                    sample.offer(pair.a, pair.b, nearness, || heading(&pair));
                    match &mut table {
                        Some(table) => table.line(&PairLine::of(&pair, &collected.ids, corpus)?)?,
                        None => in_memory.push(Pair::of(&pair)),
                    }
                }
                table.map_or(Ok(()), Table::finish)?;
                Ok(in_memory)
            },
            || corpus.find(&decision.accepted, &grouping, || decision.judge()),
        );
        let (pairs, found) = (written?, found?);
        summary.set_same_form(&decision.of_one_form(found.clusters())?, &collected.ids)?;
        decision.take_up(found.judged());
        let facts = decision.facts_of(found.clusters().removed(), &first)?;
        let judged = |a, b| {
            let score = decision.score_of(a, b, &first)?;
            Some(Judgement { score, facts: facts.of(a, b, &first) })
        };
        let Some(folder) = self.folder else {
            let decisions = Decisions::of(
                collected.ids,
                collected.records,
                &found,
                &against,
                pairs,
                summary,
                judged,
            )?;
            return Ok(Outcome::Found(Box::new(decisions)));
        };
        if let Acceptance::Verified(_) = acceptance {
            run::write_rarity(folder, decision.frequencies())?;
        }
        let summary = self.write(
            folder,
            &Decided { collected: &collected, found: &found, against: &against },
            summary,
            &sample,
            judged,
        )?;
        if settings.keep_state {
            let is_kept = |document| found.clusters().is_kept(document) && !against.has(document);
            against::kept::write(folder, inputs, &collected, &recipe, is_kept)?;
        }
        Ok(Outcome::Written(Box::new(summary)))
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
        let (Some(state), Some(keys)) = (self.state(), &collected.keys) else {
            let join = corpus.join(settings).map_err(Error::invalid)?;
            let Ok(candidates) = Candidates::find(corpus, &join, scope, acceptance);
            return Ok(candidates);
        };
        if let Some(candidates) = load_candidates(state)? {
            return Ok(candidates);
        }
        let join = corpus.join_by(keys, settings).map_err(Error::invalid)?;
        let candidates = Candidates::find(corpus, &join, scope, acceptance)?;
        save_candidates(&candidates, state)?;
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
