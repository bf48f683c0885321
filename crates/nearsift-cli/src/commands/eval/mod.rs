//! `nearsift eval`: recall, precision and clusters against a truth.

mod print;

use nearsift_batch::eval::{self, Settings};

use crate::args::{Eval, Global};
use crate::failure::Failure;
use crate::output::Out;
use crate::{Status, resolve, terminal};

pub fn run(args: &Eval, global: &Global) -> Result<Status, Failure> {
    let title = args.title_field.iter().cloned().collect();
    let inputs = resolve::open(&args.input, title)?;
    let mut settings = Settings::default();
    if args.pairs.is_some() {
        if args.matching.max_distance.is_some() {
            return Err(Failure::new(
                "--max-distance: the pairs of --pairs have scores; give --min-score, or neither",
            ));
        }
        settings.pairs.clone_from(&args.pairs);
        settings.pairs_min_score = args.matching.min_score();
    } else {
        settings.method = resolve::method(&args.recipe, &args.matching, args.searching.verify)?;
        settings.recipe_as_given.clone_from(&args.recipe.recipe);
    }
    settings.truth.clone_from(&args.truth);
    settings.positive_within = args.positive_within;
    settings.clustering = args.cluster.map(resolve::clustering);
    settings.peer_rows = args.peer_rows;
    settings.replicates = args.replicates;
    settings.seed = args.seed;
    settings.output.clone_from(&args.output);
    let context = terminal::context(global, args.searching.memory);
    let (report, unreadable) = eval::run(&inputs, &settings, &context)?;
    let mut out = Out::new();
    if global.json {
        out.json(&report)?;
    } else {
        print::print(&mut out, &report)?;
    }
    out.finish()?;
    Ok(Status::of_reading(unreadable))
}
