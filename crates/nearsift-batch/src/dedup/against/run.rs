//! An earlier run as a reference that left no part: all documents that it read are read again.

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift::search::Acceptance;
use nearsift_io::Inputs;
use serde_json::Value;

use super::{Matched, RunResults, kept_by};
use crate::corpus::{Collected, Sketched};
use crate::dedup::Job;
use crate::error::Error;
use crate::remark::Remark;

/// What such a run is called as a reference.
pub(super) const KIND: &str = "run";

impl Job<'_> {
    /// Against all documents that an earlier run read, while its input is what it was; else against those that it kept, and a
    /// warning says so.
    pub(super) fn against_run(
        &self,
        collected: &Collected<Sketched>,
        acceptance: Acceptance,
        recipe: &Recipe,
        run: &RunResults,
        number: usize,
    ) -> Result<Matched, Error> {
        let missing = match self.inputs_of(run)? {
            Ok(inputs) => {
                let name = format!("reference-{number}-input");
                let read = self.read_reference(&inputs, recipe, &name)?;
                if is_what_was_read(run, &read, recipe) {
                    return self.against_read(collected, acceptance, &inputs, read, KIND);
                }
                None
            }
            Err(missing) => Some(missing),
        };
        let kept = kept_by(run.folder())?;
        let folder = run.folder().display();
        match missing {
            None => self.context.remark(Remark::ReferenceChanged, &[&folder]),
            Some(missing) => self.context.remark(Remark::ReferenceGone, &[&folder, &missing]),
        }
        self.against_documents(collected, acceptance, recipe, &kept, number)
    }

    /// The files that a run read, or the name of the first that is not there.
    fn inputs_of(&self, run: &RunResults) -> Result<Result<Inputs, String>, Error> {
        let files = run.inputs()?;
        if let Some(missing) = files.iter().find(|file| !file.is_file()) {
            return Ok(Err(missing.display().to_string()));
        }
        Ok(Ok(Inputs::resolve(&files, self.files().options().clone())?))
    }
}

/// Whether documents are those that a run read, as far as its summary tells: their number, the bytes of their texts, and, where
/// the run compared texts that the same recipe sketched, how common each feature is in them.
fn is_what_was_read(run: &RunResults, read: &Collected<Sketched>, recipe: &Recipe) -> bool {
    let number = |name| run.summary().get(name).and_then(Value::as_u64);
    let are_as_many = number("documents") == Some(read.corpus.corpus.len() as u64)
        && number("text_bytes") == Some(read.counts.text_bytes);
    let text = |name| run.summary().get(name).and_then(Value::as_str);
    let rarity = text("rarity").filter(|_| text("recipe") == Some(&*recipe.to_string()));
    let is_as_rare = |rarity: &str| {
        let table = read.corpus.sample.table(DocumentFrequencies::shipped());
        table.name() == rarity
    };
    are_as_many && rarity.is_none_or(is_as_rare)
}
