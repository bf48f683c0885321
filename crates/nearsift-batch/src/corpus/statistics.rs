//! Counts of features over the corpus.

use nearsift::feature::rarity::DistinctTexts;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;

use crate::context::{Context, Phase};
use crate::documents::Features;
use crate::error::Error;
use crate::scan::{Pass, scan};

/// The recipe with its counts over the corpus, when it needs them: one more pass over the input.
///
/// # Errors
/// An input that cannot be read, or an interruption.
pub fn with_statistics(
    context: &Context<'_>,
    recipe: Recipe,
    inputs: &Inputs,
) -> Result<Recipe, Error> {
    if !recipe.needs_corpus() {
        return Ok(recipe);
    }
    let mut counted = DistinctTexts::default();
    scan(
        context,
        inputs,
        &Pass::new(Phase::Counting),
        || recipe.counter(),
        |counter, document| document.text.features(counter),
        |_, done| {
            if let Ok(Features { key, hashes, counts }) = done {
                counted.add(key, &hashes, &counts);
            }
            Ok(())
        },
    )?;
    Ok(recipe.with_corpus(counted.finish()))
}
