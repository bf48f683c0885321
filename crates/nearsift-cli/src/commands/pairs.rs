//! `nearsift pairs`: near-duplicate pairs as JSON lines.

use std::ops::ControlFlow;

use nearsift::compare::score_of_distance;
use nearsift_io::Inputs;
use serde::Serialize;

use super::dedup::collect::{Collected, collect};
use crate::Status;
use crate::args::{Global, Pairs};
use crate::documents::read_options;
use crate::failure::Failure;
use crate::output::{Out, explain};

#[derive(Serialize)]
struct Line<'a> {
    a: &'a str,
    b: &'a str,
    score: f64,
    distance: u32,
}

pub fn run(args: &Pairs, global: &Global) -> Result<Status, Failure> {
    let inputs =
        Inputs::resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    let recipe = crate::recipes::recipe(&args.recipe, "simhash64")?;
    let max_distance = super::max_distance(&args.matching, &recipe)?;
    let options = super::dedup::search(&args.matching, max_distance);
    let recipe = super::with_corpus(recipe, &inputs, global)?;
    let Collected { corpus, ids, problems, .. } =
        collect(&inputs, global, &recipe, &options.keep, |_| Ok(()))?;
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
    out.finish()?;
    Ok(problems.status())
}
