//! Counts of features over the corpus.

use std::collections::HashSet;

use nearsift::feature::rarity::CorpusStatistics;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;

use crate::context::{Context, Phase};
use crate::error::Error;
use crate::scan::{Pass, scan};

/// The recipe with its counts over the corpus, when it needs them: one more pass over the input.
///
/// Every text counts once, however often it is there: copies would make their own words look common.
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
    let mut statistics = CorpusStatistics::default();
    let mut seen = HashSet::new();
    scan(
        context,
        inputs,
        &Pass::new(Phase::Counting),
        || recipe.counter(),
        |counter, document| {
            let (hashes, counts) = counter.count(&document.text.text);
            let counted = (hashes.to_vec(), counts.to_vec());
            (document.text.key(counter), counted)
        },
        |_, done| {
            if let Ok((Some(key), (hashes, counts))) = done
                && seen.insert(key)
            {
                statistics.add(&hashes, &counts);
            }
            Ok(())
        },
    )?;
    Ok(recipe.with_corpus(statistics))
}
