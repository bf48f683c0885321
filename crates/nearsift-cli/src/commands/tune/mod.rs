//! `nearsift tune`: a threshold for the user's own documents, with evidence, and what it will cost.

mod print;
mod write;

use nearsift_batch::tune::{self, Settings};

use crate::args::{Global, Tune};
use crate::failure::Failure;
use crate::output::{Out, Severity, tell};
use crate::{Status, resolve, terminal};

pub fn run(args: &Tune, global: &Global) -> Result<Status, Failure> {
    let mut settings = Settings::default();
    settings.method = resolve::method(&args.recipe, &args.matching, args.searching.verify)?;
    settings.is_threshold_given =
        args.matching.min_score().is_some() || args.matching.max_distance.is_some();
    settings.sample = args.sample;
    settings.random_pairs = args.random_pairs;
    settings.seed = args.seed;
    settings.documents = args.documents;
    settings.examples = args.examples;
    let file = match &args.output {
        Some(output) => Some(write::place(output, args.overwrite)?),
        None => None,
    };
    let inputs = resolve::open(&args.input, Vec::new())?;
    let context = terminal::context(global, args.searching.memory);
    let mut report = tune::run(&inputs, &settings, &context)?;
    let status = Status::of_reading(report.documents.unreadable);
    report.settings = write::settings(args, &report);
    if let Some(file) = file {
        let replaced = file.write(&report)?;
        let what = if replaced { "replaced" } else { "written" };
        tell(Severity::Note, &format!("{}: {what}", file.path().display()));
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
