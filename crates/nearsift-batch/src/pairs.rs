//! All near-duplicate pairs, one after the other.

use std::ops::ControlFlow;

use nearsift::compare::score_of_distance;
use nearsift::dedup::{Corpus, Options};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;
use serde::Serialize;

use crate::context::Context;
use crate::corpus::{Collected, Id, Ids, Records, Sketched, Wanted, collect, with_statistics};
use crate::error::Error;
use crate::partial::{Source, each_passage};
use crate::search::{Texts, Workspace, decide};
use nearsift::search::{Acceptance, Candidates, Method, PairScope, join_settings};

pub use crate::partial::PartialLine as Passage;
pub use crate::search::PairLine as SketchPair;

/// Which pairs are wanted.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// How near duplicates are found.
    pub method: Method,
    /// Whether the passages that documents share are wanted too, after the pairs.
    pub partial: bool,
}

/// What is found. It is written as a JSON object by [`Serialize`], but for the plan.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Event<'a> {
    /// How the search is done and what it is expected to cost: lines of text, before the first pair.
    #[serde(skip)]
    Plan(String),
    /// A pair of fingerprints.
    Simhash(SimhashPair<'a>),
    /// A pair of sketches, verified by its texts or not.
    Sketch(SketchPair<'a>),
    /// A passage that two documents share.
    Passage(Passage<'a>),
}

/// Two documents within a Hamming distance.
#[derive(Debug, Serialize)]
pub struct SimhashPair<'a> {
    a: Id<'a>,
    b: Id<'a>,
    score: f64,
    distance: u32,
}

/// Calls `each` with the plan, with every pair of near duplicates, ascending, and with the passages. Returns how many
/// documents and files could not be read.
///
/// # Errors
/// As [`dedup::find`](crate::dedup::find), and what `each` returns.
pub fn each(
    inputs: &Inputs,
    settings: &Settings,
    context: &Context<'_>,
    mut each: impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (ids, records, unreadable) = match settings.method.clone() {
        Method::Simhash { recipe, max_distance } => {
            by_simhash(inputs, context, recipe, max_distance, &mut each)?
        }
        Method::Sketch { recipe, acceptance } => {
            by_sketch(inputs, context, recipe, acceptance, &mut each)?
        }
    };
    if settings.partial {
        let folder = &context.scratch;
        let source = Source { context, inputs, ids: &ids, records: &records, folder };
        each_passage(&source, |_| true, |line| each(Event::Passage(line)))?;
    }
    Ok(unreadable)
}

/// The ids and records of the documents, and how many could not be read.
type Read = (Ids, Records, u64);

fn by_simhash(
    inputs: &Inputs,
    context: &Context<'_>,
    recipe: Recipe,
    max_distance: u32,
    each: &mut impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<Read, Error> {
    let options = Options {
        threads: Threads::Current,
        memory_bytes: context.memory_bytes,
        speed: context.join_speed,
        ..Options::new(max_distance)
    };
    let recipe = with_statistics(context, recipe, inputs)?;
    let columns = Corpus::new(recipe.bits());
    let Collected { corpus, ids, records, problems, .. } =
        collect(context, columns, inputs, &Wanted::by(&recipe), None, |_| Ok(()))?;
    each(Event::Plan(corpus.explain(&options).map_err(Error::invalid)?.to_string()))?;
    let bits = recipe.bits().count();
    let flow = corpus
        .pairs(&options, |pair| {
            let [a, b] = [pair.a, pair.b].map(|document| ids.get(document));
            let (distance, score) = (pair.distance, score_of_distance(pair.distance, bits));
            let give = || each(Event::Simhash(SimhashPair { a: a?, b: b?, score, distance }));
            match give() {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        })
        .map_err(Error::invalid)?;
    match flow {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok((ids, records, problems.count())),
    }
}

fn by_sketch(
    inputs: &Inputs,
    context: &Context<'_>,
    recipe: Recipe,
    acceptance: Acceptance,
    each: &mut impl FnMut(Event<'_>) -> Result<(), Error>,
) -> Result<Read, Error> {
    let recipe = with_statistics(context, recipe, inputs)?;
    let Collected { corpus: Sketched { corpus, sample }, ids, records, problems, .. } =
        collect(context, Sketched::default(), inputs, &Wanted::by(&recipe), None, |_| Ok(()))?;
    let memory = context.memory_bytes;
    let join =
        corpus.join(join_settings(acceptance, corpus.len(), memory)).map_err(Error::invalid)?;
    let frequencies = sample.table(DocumentFrequencies::shipped());
    let rarity = match acceptance {
        Acceptance::Verified(_) => format!("\nrarity: {}", frequencies.name()),
        Acceptance::Scored(_) => String::new(),
    };
    let Ok(plan) = join.explain();
    each(Event::Plan(format!("{plan}{rarity}")))?;
    let Ok(candidates) = Candidates::find(&corpus, &join, PairScope::AllPairs, acceptance);
    let folder = &context.scratch;
    let workspace = Workspace::scratch(context, folder);
    let decision = decide(&corpus, candidates, frequencies, acceptance, workspace, |documents| {
        Texts::read(context, inputs, &records, documents, memory.map(|m| m / 8), folder)
    })?;
    for pair in decision.of_all_documents(&corpus.first_of_text())? {
        each(Event::Sketch(SketchPair::of(&pair, &ids, &corpus)?))?;
    }
    drop(decision);
    Ok((ids, records, problems.count()))
}
