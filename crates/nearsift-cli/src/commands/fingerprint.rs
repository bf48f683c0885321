//! `nearsift fingerprint`: one JSON line a document, with its fingerprint or its sketch.

use nearsift_batch::fingerprint;

use crate::args::{FingerprintArgs, Global};
use crate::failure::Failure;
use crate::output::Out;
use crate::{Status, resolve, terminal};

pub fn run(args: &FingerprintArgs, global: &Global) -> Result<Status, Failure> {
    let inputs = resolve::open(&args.input, Vec::new())?;
    // Only a fingerprint has a width to choose.
    let default = if args.recipe.bits.is_some() { "simhash64" } else { "sketch" };
    let recipe = resolve::recipe(&args.recipe, default)?;
    let context = terminal::context(global, None);
    let mut out = Out::new();
    let unreadable = fingerprint::each(&inputs, recipe, &context, |found| Ok(out.json(&found)?))?;
    out.finish()?;
    Ok(Status::of_reading(unreadable))
}
