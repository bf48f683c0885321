//! `nearsift fingerprint`: one JSON line a document.

use nearsift::recipe::{NoFingerprint, Outcome};
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
    #[serde(flatten)]
    value: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Hex digits under the name of what they are; null where there is none.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    Fingerprint(Option<String>),
    Sketch(Option<String>),
}

impl Line {
    fn new<T: ToString>(
        id: &str,
        made: Result<T, NoFingerprint>,
        value: fn(Option<String>) -> Value,
    ) -> Line {
        let (made, reason) = match made {
            Ok(made) => (Some(made.to_string()), None),
            Err(reason) => (None, Some(reason.to_string())),
        };
        Line { id: id.to_owned(), value: value(made), reason }
    }
}

pub fn run(args: &FingerprintArgs, global: &Global) -> Result<Status, Failure> {
    let inputs =
        Inputs::resolve(&args.input.inputs, read_options(&args.input.reading, Vec::new()))?;
    // Only a fingerprint has a width to choose.
    let default = if args.recipe.bits.is_some() { "simhash64" } else { "sketch" };
    let recipe = crate::recipes::recipe(&args.recipe, default)?;
    let recipe = super::with_corpus(recipe, &inputs, global)?;
    recipe.fingerprinter()?;
    let mut out = Out::new();
    let mut problems = Problems::new(global);
    let notes = scan(
        &inputs,
        global,
        "fingerprints",
        || recipe.counter(),
        |fingerprinter, document| {
            if recipe.is_sketch() {
                let made = document.sketch(fingerprinter).map(|sketched| sketched.sketch);
                return Line::new(document.id, made, Value::Sketch);
            }
            let made = match document.fingerprint(fingerprinter) {
                Outcome::Fingerprint(value) => Ok(value),
                Outcome::None(reason) => Err(reason),
            };
            Line::new(document.id, made, Value::Fingerprint)
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
