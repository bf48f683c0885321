//! `nearsift fingerprint`: one JSON line a document, with its fingerprint or its sketch.

use nearsift::recipe::{Fingerprinter, Outcome, Recipe};
use serde::Serialize;

use super::dedup::collect::Id;
use crate::Status;
use crate::args::FingerprintArgs;
use crate::documents::{read_options, resolve};
use crate::failure::Failure;
use crate::output::Out;
use crate::scan::{Pass, Problems, Seen, scan};

#[derive(Serialize)]
struct Line {
    id: Id<'static>,
    #[serde(flatten)]
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Hex digits under the name of what they are; `null` where there is none.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    Fingerprint(Option<String>),
    Sketch(Option<String>),
}

fn line(document: &Seen<'_>, fingerprinter: &mut Fingerprinter<'_>, recipe: &Recipe) -> Line {
    let (value, reason) = if recipe.is_sketch() {
        let sketched = document.text.sketch(fingerprinter);
        let reason = sketched.err();
        (Value::Sketch(sketched.ok().map(|s| s.sketch.to_string())), reason)
    } else {
        let outcome = document.fingerprint(fingerprinter);
        let reason = match outcome {
            Outcome::Fingerprint(_) => None,
            Outcome::None(reason) => Some(reason),
        };
        (Value::Fingerprint(outcome.fingerprint().map(|f| f.to_string())), reason)
    };
    Line { id: Id::of(document.id).into_owned(), value, reason: reason.map(|r| r.to_string()) }
}

pub fn run(args: &FingerprintArgs) -> Result<Status, Failure> {
    let inputs = resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    // Only a fingerprint has a width to choose.
    let default = if args.recipe.bits.is_some() { "simhash64" } else { "sketch" };
    let recipe = crate::recipes::recipe(&args.recipe, default)?;
    let recipe = super::with_corpus(recipe, &inputs)?;
    recipe.fingerprinter()?;
    let mut out = Out::new();
    let mut problems = Problems::default();
    let notes = scan(
        &inputs,
        &Pass::new("fingerprints"),
        || recipe.counter(),
        |fingerprinter, document| line(&document, fingerprinter, &recipe),
        |_, done| match done {
            Ok(line) => out.json(&line),
            Err(note) => {
                problems.add(&note);
                Ok(())
            }
        },
    )?;
    out.finish()?;
    notes.iter().for_each(|note| problems.add(note));
    Ok(problems.status())
}
