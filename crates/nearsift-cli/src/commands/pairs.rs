//! `nearsift pairs`: near-duplicate pairs as JSON lines.

use std::ops::ControlFlow;

use nearsift::compare::score_of_distance;
use nearsift::dedup::{Corpus, Keep, Options};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;
use serde::Serialize;

use super::dedup::collect::{Collected, Id, Ids, Records, Sketched, collect};
use super::partial::{Source, each_passage};
use super::with_corpus;
use crate::Status;
use crate::args::Pairs;
use crate::calibration;
use crate::documents::{read_options, resolve};
use crate::failure::Failure;
use crate::near::{
    Candidates, Extent, PairLine, Rule, Texts, Way, Workspace, decide, join_settings, way,
};
use crate::output::{Out, explain};

#[derive(Serialize)]
struct Line<'a> {
    a: Id<'a>,
    b: Id<'a>,
    score: f64,
    distance: u32,
}

pub fn run(args: &Pairs) -> Result<Status, Failure> {
    let way = way(&args.recipe, &args.matching, args.searching.verify)?;
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    match way {
        Way::Simhash { recipe, max_distance } => by_simhash(args, &inputs, recipe, max_distance),
        Way::Sketch { recipe, rule } => by_sketch(args, &inputs, recipe, rule),
    }
}

fn by_simhash(
    args: &Pairs,
    inputs: &Inputs,
    recipe: Recipe,
    max_distance: u32,
) -> Result<Status, Failure> {
    let options = Options {
        speed: calibration::join_speed(recipe.bits()),
        ..super::dedup::search(args.searching.memory, max_distance)
    };
    let recipe = with_corpus(recipe, inputs)?;
    let columns = Corpus::new(recipe.bits());
    let Collected { corpus, ids, records, problems, .. } =
        collect(columns, inputs, &recipe, &options.keep, None, |_| Ok(()))?;
    if args.explain {
        explain(&corpus.explain(&options).map_err(Failure::new)?.to_string());
    }
    let bits = recipe.bits().count();
    let mut out = Out::new();
    let flow = corpus
        .pairs(&options, |pair| {
            let line = Line {
                a: ids.get(pair.a),
                b: ids.get(pair.b),
                score: score_of_distance(pair.distance, bits),
                distance: pair.distance,
            };
            match out.json(&line) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break(failure),
            }
        })
        .map_err(Failure::new)?;
    if let ControlFlow::Break(failure) = flow {
        return Err(failure);
    }
    print_partial(args, inputs, &ids, &records, &mut out)?;
    out.finish()?;
    Ok(problems.status())
}

fn by_sketch(args: &Pairs, inputs: &Inputs, recipe: Recipe, rule: Rule) -> Result<Status, Failure> {
    let recipe = with_corpus(recipe, inputs)?;
    let Collected { corpus: Sketched { corpus, sample }, ids, records, problems, .. } =
        collect(Sketched::default(), inputs, &recipe, &Keep::First, None, |_| Ok(()))?;
    let memory = args.searching.memory;
    let join = corpus.join(join_settings(rule, corpus.len(), memory)).map_err(Failure::new)?;
    if args.explain {
        explain(&join.explain().to_string());
    }
    let frequencies = sample.table(DocumentFrequencies::shipped());
    let candidates = Candidates::find(&corpus, &join, Extent::All, rule);
    let folder = std::env::temp_dir();
    let workspace = Workspace { state: None, folder: &folder };
    let decision = decide(&corpus, candidates, frequencies, rule, workspace, |documents| {
        Texts::read(inputs, &records, documents, memory.map(|m| m / 8), &folder)
    })?;
    let mut out = Out::new();
    for pair in decision.of_all_documents(&corpus.first_of_text())? {
        out.json(&PairLine::of(&pair, &ids, &corpus))?;
    }
    print_partial(args, inputs, &ids, &records, &mut out)?;
    out.finish()?;
    Ok(problems.status())
}

/// After the pairs, the passages, where they are asked for.
fn print_partial(
    args: &Pairs,
    inputs: &Inputs,
    ids: &Ids,
    records: &Records,
    out: &mut Out,
) -> Result<(), Failure> {
    if !args.partial {
        return Ok(());
    }
    let folder = std::env::temp_dir();
    let memory = args.searching.memory;
    let source = Source { inputs, ids, records, memory, folder: &folder };
    each_passage(&source, |_| true, |line| out.json(line))?;
    Ok(())
}
