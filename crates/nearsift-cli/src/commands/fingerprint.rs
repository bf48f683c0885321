//! `nearsift fingerprint`: one JSON line a document.

use nearsift::recipe::Outcome;
use nearsift_io::Inputs;
use serde::Serialize;

use crate::Status;
use crate::args::{FingerprintArgs, Global};
use crate::documents::read_options;
use crate::failure::Failure;
use crate::output::Out;
use crate::scan::{Problems, scan};

#[derive(Serialize)]
struct Line {
    id: String,
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub fn run(args: &FingerprintArgs, global: &Global) -> Result<Status, Failure> {
    let inputs =
        Inputs::resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    let recipe = crate::recipes::recipe(&args.recipe, "simhash64")?;
    let recipe = super::with_corpus(recipe, &inputs, global)?;
    recipe.fingerprinter()?;
    let mut out = Out::new();
    let mut problems = Problems::new(global);
    let notes = scan(
        &inputs,
        global,
        "fingerprints",
        || recipe.counter(),
        |fingerprinter, document| match document.fingerprint(fingerprinter) {
            Outcome::Fingerprint(value) => Line {
                id: document.id.to_owned(),
                fingerprint: Some(value.to_string()),
                reason: None,
            },
            Outcome::None(reason) => Line {
                id: document.id.to_owned(),
                fingerprint: None,
                reason: Some(reason.to_string()),
            },
        },
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
