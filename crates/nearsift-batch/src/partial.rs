//! `--partial` of `pairs` and `dedup`: passages that documents share, found beside the whole
//! near duplicates.

use std::ops::ControlFlow;
use std::path::Path;

use nearsift::join::Threads;
use nearsift::partial::{Candidate, Corpus, Kind, Passage, Refiner, Seeder, Seeds, Settings, Work};
use nearsift_io::Inputs;
use rayon::prelude::*;
use serde::Serialize;

use crate::context::{Context, Phase};
use crate::corpus::{Id, Ids, Records};
use crate::error::Error;
use crate::numbers::grouped;
use crate::remark::Remark;
use crate::scan::{Pass, scan};
use crate::search::{Texts, Wanted};
use nearsift::search::TextSource;

/// A passage as a JSON line.
#[derive(Debug, Serialize)]
pub struct PartialLine<'a> {
    a: Id<'a>,
    b: Id<'a>,
    kind: Kind,
    /// In characters of the original text, the end not included.
    a_range: [u64; 2],
    b_range: [u64; 2],
    share_of_a: f64,
    share_of_b: f64,
    score: f64,
}

impl<'a> PartialLine<'a> {
    /// # Errors
    /// When an id cannot be read back.
    fn of(pair: &Candidate, passage: &Passage, ids: &'a Ids) -> Result<PartialLine<'a>, Error> {
        let range = |range: &std::ops::Range<u64>| [range.start, range.end];
        Ok(PartialLine {
            a: ids.get(pair.a)?,
            b: ids.get(pair.b)?,
            kind: passage.kind,
            a_range: range(&passage.a_range),
            b_range: range(&passage.b_range),
            share_of_a: passage.share_of_a,
            share_of_b: passage.share_of_b,
            score: passage.score,
        })
    }
}

/// Candidates whose texts are compared before any of their lines is written.
const AT_ONCE: usize = 1 << 12;

/// Where the documents come from, and what may be used.
pub struct Source<'a> {
    pub context: &'a Context<'a>,
    pub inputs: &'a Inputs,
    pub ids: &'a Ids,
    pub records: &'a Records,
    /// Where texts are kept aside that do not fit into it.
    pub folder: &'a Path,
}

/// What a search for passages did.
#[derive(Debug, Serialize)]
pub struct PartialSummary {
    /// Lines that were written.
    passages: u64,
    /// Pairs of documents that have one.
    pairs: u64,
    #[serde(flatten)]
    work: Work,
}

/// Calls `each` with every passage that two of the documents share for which `takes_part` holds, by
/// document. Reads the input twice: once for the seeds, once for the texts that are compared.
///
/// # Errors
/// What `each` returns, an input that changed, or an interruption.
pub fn each_passage(
    source: &Source<'_>,
    takes_part: impl Fn(u32) -> bool + Sync,
    mut each: impl FnMut(PartialLine<'_>) -> Result<(), Error>,
) -> Result<PartialSummary, Error> {
    let &Source { context, inputs, ids, records, folder } = source;
    let memory = context.memory_bytes;
    let base = Settings { threads: Threads::Current, ..Settings::default() };
    let settings = Settings { memory_bytes: memory.map_or(base.memory_bytes, |m| m / 4), ..base };
    let mut corpus = memory.map_or_else(Corpus::new, |m| Corpus::with_memory(m / 4));
    let takes_part = |record| records.document(record).is_some_and(&takes_part);
    scan(
        context,
        inputs,
        &Pass::new(Phase::Passages),
        Seeder::default,
        |seeder, seen| match takes_part(seen.place.index) {
            true => seeder.seeds(&seen.text.text),
            false => Seeds::default(),
        },
        |_, done| {
            if let Ok(seeds) = done {
                corpus.push(&seeds);
            }
            Ok(())
        },
    )?;
    context.check()?;
    let mut search = corpus.search(&settings).map_err(Error::invalid)?;
    let wanted = Wanted::from(search.documents()).in_form(str::to_owned);
    let texts = Texts::read(context, inputs, records, wanted, memory.map(|m| m / 8), folder)?;
    let (mut passages, mut with_passages) = (0, 0);
    let mut refine = |pairs: &[Candidate]| {
        context.check()?;
        let found: Vec<Result<Vec<Passage>, Error>> = pairs
            .par_iter()
            .with_min_len(64)
            .map_init(
                || Refiner::new(&settings),
                |refiner, pair| {
                    texts.with_text(pair.a, |a| {
                        texts.with_text(pair.b, |b| refiner.refine(pair, a, b))
                    })?
                },
            )
            .collect();
        for (pair, found) in pairs.iter().zip(found) {
            let found = found?;
            passages += found.len() as u64;
            with_passages += u64::from(!found.is_empty());
            found.iter().try_for_each(|passage| each(PartialLine::of(pair, passage, ids)?))?;
        }
        Ok(())
    };
    let flow =
        search.each(&settings, |pairs| match pairs.chunks(AT_ONCE).try_for_each(&mut refine) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => ControlFlow::Break(failure),
        });
    if let ControlFlow::Break(failure) = flow {
        return Err(failure);
    }
    let summary = PartialSummary { passages, pairs: with_passages, work: search.work() };
    summary.report(context, &settings);
    Ok(summary)
}

impl PartialSummary {
    /// Says what was found, and what was skipped.
    fn report(&self, context: &Context<'_>, settings: &Settings) {
        let PartialSummary { passages, pairs, work } = self;
        context.remark(Remark::Passages, &[&grouped(*passages), &grouped(*pairs)]);
        if work.hot_seeds > 0 {
            let (seeds, places) = (grouped(work.hot_seeds), grouped(work.hot_places));
            context.remark(Remark::CommonPassages, &[&settings.max_documents, &seeds, &places]);
        }
        if work.thinned > 0 {
            context.remark(Remark::MissedPassages, &[&grouped(1 << work.thinned.min(63))]);
        }
    }
}
