//! The fingerprint or sketch of every document.

use nearsift::recipe::{Fingerprinter, Outcome, Recipe};
use nearsift_io::Inputs;
use serde::Serialize;

use crate::context::{Context, Phase};
use crate::corpus::{Id, with_statistics};
use crate::error::Error;
use crate::scan::{Seen, scan_documents};

/// A document's fingerprint or sketch. It is written as a JSON object by [`Serialize`].
#[derive(Debug, Serialize)]
pub struct Fingerprinted {
    /// The id of the document, with its JSON type.
    pub id: Id<'static>,
    /// What the recipe makes of it.
    #[serde(flatten)]
    pub value: Value,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Hex digits under the name of what they are; `null` where there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Of a recipe of fingerprints.
    Fingerprint(Option<String>),
    /// Of a recipe of sketches.
    Sketch(Option<String>),
}

fn fingerprinted(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    recipe: &Recipe,
) -> Fingerprinted {
    let (value, reason) = if recipe.is_sketch() {
        let sketched = document.text.sketch(fingerprinter);
        let reason = sketched.err();
        (Value::Sketch(sketched.ok().map(|s| s.sketch.to_string())), reason)
    } else {
        let outcome = document.text.fingerprint(fingerprinter);
        let reason = match outcome {
            Outcome::Fingerprint(_) => None,
            Outcome::None(reason) => Some(reason),
        };
        (Value::Fingerprint(outcome.fingerprint().map(|f| f.to_string())), reason)
    };
    let id = Id::of(document.id).into_owned();
    Fingerprinted { id, value, reason: reason.map(|r| r.to_string()) }
}

/// Calls `each` with what the recipe makes of every document, in order. Returns how many documents and files could not
/// be read.
///
/// # Errors
/// An input that cannot be read, a recipe that lacks a table, what `each` returns, or an interruption.
pub fn each(
    inputs: &Inputs,
    recipe: Recipe,
    context: &Context<'_>,
    each: impl FnMut(Fingerprinted) -> Result<(), Error>,
) -> Result<u64, Error> {
    let recipe = with_statistics(context, recipe, inputs)?;
    recipe.fingerprinter()?;
    scan_documents(
        context,
        inputs,
        Phase::Fingerprints,
        || recipe.counter(),
        |fingerprinter, document| fingerprinted(&document, fingerprinter, &recipe),
        each,
    )
}
