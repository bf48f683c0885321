//! `nearsift tune`: a threshold for the user's own documents, with evidence, and what it will cost.

mod by_simhash;
mod by_sketch;
mod examples;
mod forecast;
mod print;
mod report;
mod write;

use nearsift::dedup::Keep;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;

use super::dedup::collect::{self, Collected, Columns, Counts};
use super::with_corpus;
use crate::Status;
use crate::args::{Global, Tune};
use crate::documents::{read_options, resolve};
use crate::failure::Failure;
use crate::near::{Way, way};
use crate::output::{Level, Out, tell};
use forecast::Stopwatch;
use report::{Documents, Report};

/// Everything that was asked for, but for how near duplicates are found.
struct Run<'a> {
    args: &'a Tune,
    inputs: &'a Inputs,
}

/// Pairs that are compared exactly, at most; fewer documents are searched when they have more.
const MAX_PAIRS: usize = 1_000_000;

pub fn run(args: &Tune, global: &Global) -> Result<Status, Failure> {
    let way = way(&args.recipe, &args.matching, args.searching.verify)?;
    let file = match &args.output {
        Some(output) => Some(write::place(output, args.overwrite)?),
        None => None,
    };
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    let run = Run { args, inputs: &inputs };
    let (mut report, status) = match way {
        Way::Sketch { recipe, rule } => run.by_sketch(recipe, rule)?,
        Way::Simhash { recipe, max_distance } => run.by_simhash(recipe, max_distance)?,
    };
    report.settings = write::settings(args, &report);
    if let Some(file) = file {
        let replaced = file.write(&report)?;
        let what = if replaced { "replaced" } else { "written" };
        tell(Level::Note, &format!("{}: {what}", file.path().display()));
    }
    let mut out = Out::new();
    if global.json {
        out.json(&report)?;
    } else {
        print::print(&mut out, &report)?;
    }
    out.finish()?;
    Ok(status)
}

impl Run<'_> {
    /// Reads all documents into columns.
    fn collect<C: Columns>(
        &self,
        columns: C,
        recipe: Recipe,
        watch: &mut Stopwatch,
    ) -> Result<(Collected<C>, Recipe), Failure> {
        let recipe = with_corpus(recipe, self.inputs)?;
        let collected =
            collect::collect(columns, self.inputs, &recipe, &Keep::First, None, |_| Ok(()))?;
        watch.read(collected.counts.text_bytes);
        Ok((collected, recipe))
    }

    fn report(&self, method: &'static str, recipe: &Recipe, documents: Documents) -> Report {
        Report::new(method, recipe.to_string(), self.args.seed, documents)
    }
}

fn documents<C: Columns>(collected: &Collected<C>, first: &[u32]) -> Documents {
    let Counts { without_text, navigation_only, too_few_features, too_long, text_bytes, .. } =
        collected.counts;
    let same_text = (0u32..).zip(first).filter(|(document, first)| document != *first).count();
    Documents {
        documents: first.len() as u64,
        same_text: same_text as u64,
        unjudged: without_text + navigation_only + too_few_features + too_long,
        unreadable: collected.problems.count(),
        text_bytes,
    }
}
