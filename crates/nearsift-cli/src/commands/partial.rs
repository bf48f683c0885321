//! `--partial` of `pairs` and `dedup`: passages that documents share, found beside the whole
//! near duplicates.

use std::path::Path;

use nearsift::join::Threads;
use nearsift::partial::{
    Candidate, Candidates, Corpus, Kind, Passage, Refiner, Seeder, Settings, Verdict, Work,
};
use nearsift_io::Inputs;
use rayon::prelude::*;
use serde::Serialize;

use super::dedup::collect::{Ids, Records};
use crate::args::Global;
use crate::failure::Failure;
use crate::interrupt;
use crate::near::{TextSource, Texts};
use crate::output::{Level, tell};
use crate::report::grouped;
use crate::scan::{plural, scan};

/// A passage as a JSON line.
#[derive(Debug, Serialize)]
pub struct PartialLine<'a> {
    a: &'a str,
    b: &'a str,
    kind: Kind,
    /// In characters of the original text, the end not included.
    a_range: [u64; 2],
    b_range: [u64; 2],
    share_of_a: f64,
    share_of_b: f64,
    score: f64,
}

impl<'a> PartialLine<'a> {
    fn of(pair: &Candidate, passage: &Passage, ids: &'a Ids) -> PartialLine<'a> {
        let range = |range: &std::ops::Range<u64>| [range.start, range.end];
        PartialLine {
            a: ids.get(pair.a),
            b: ids.get(pair.b),
            kind: passage.kind,
            a_range: range(&passage.a_range),
            b_range: range(&passage.b_range),
            share_of_a: passage.share_of_a,
            share_of_b: passage.share_of_b,
            score: passage.score,
        }
    }
}

/// Candidates whose texts are compared before any of their lines is written.
const AT_ONCE: usize = 1 << 12;

/// Where the documents come from, and what may be used.
pub struct Source<'a> {
    pub inputs: &'a Inputs,
    pub global: &'a Global,
    pub ids: &'a Ids,
    pub records: &'a Records,
    /// The memory limit.
    pub memory: Option<u64>,
    /// Where texts are kept aside that do not fit into it.
    pub folder: &'a Path,
}

/// Calls `each` with every passage, by document. Reads the input twice: once for the seeds, once for
/// the texts that are compared.
///
/// # Errors
/// What `each` returns, an input that changed, or an interruption.
pub fn each_passage(
    source: &Source<'_>,
    mut each: impl FnMut(&PartialLine<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let &Source { inputs, global, ids, records, memory, folder } = source;
    let mut corpus = Corpus::new();
    scan(
        inputs,
        global,
        "passages",
        Seeder::default,
        |seeder, document| seeder.seeds(&document.text.text),
        |_, done| {
            if let Ok(seeds) = done {
                corpus.push(&seeds);
            }
            Ok(())
        },
    )?;
    let base = Settings { threads: Threads::Current, ..Settings::default() };
    let settings = Settings { memory_bytes: memory.map_or(base.memory_bytes, |m| m / 4), ..base };
    let Candidates { pairs, mut work } = corpus.candidates(&settings).map_err(Failure::new)?;
    interrupt::check()?;
    let mut documents: Vec<u32> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    documents.sort_unstable();
    documents.dedup();
    let texts = Texts::read_as(str::to_owned, inputs, global, records, documents, memory, folder)?;
    let mut passages = 0;
    for pairs in pairs.chunks(AT_ONCE) {
        interrupt::check()?;
        let verdicts: Vec<Result<Verdict, Failure>> = pairs
            .par_iter()
            .with_min_len(32)
            .map_init(Refiner::new, |refiner, pair| {
                let (a, b) = (texts.text(pair.a)?, texts.text(pair.b)?);
                Ok(refiner.refine(pair, &a, &b, &settings))
            })
            .collect();
        for (pair, verdict) in pairs.iter().zip(verdicts) {
            match verdict? {
                Verdict::Whole => work.whole += 1,
                Verdict::Parts(found) => {
                    passages += found.len() as u64;
                    found.iter().try_for_each(|p| each(&PartialLine::of(pair, p, ids)))?;
                }
            }
        }
    }
    if !global.quiet {
        tell(Level::Note, &summary(passages, &work, &settings));
    }
    Ok(())
}

fn summary(passages: u64, work: &Work, settings: &Settings) -> String {
    let found = format!("--partial: {} that two documents share", plural(passages, "passage"));
    if work.crowded_seeds == 0 {
        return found;
    }
    format!(
        "{found}; {}, each in more than {} documents, {} counted as boilerplate and not compared ({} places)",
        plural(work.crowded_seeds, "short run of letters"),
        settings.max_documents,
        if work.crowded_seeds == 1 { "was" } else { "were" },
        grouped(work.crowded_places)
    )
}
