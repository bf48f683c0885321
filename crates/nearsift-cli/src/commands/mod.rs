//! One module a command: settings, one call, the result.

pub mod bench;
pub mod compare;
pub mod dedup;
pub mod eval;
pub mod fingerprint;
pub mod index;
pub mod keywords;
pub mod pairs;
pub mod partial;
pub mod recipes;
#[cfg(unix)]
pub mod serve;
pub mod trim;
pub mod tune;
pub mod vectors;

use nearsift::recipe::Recipe;
use nearsift_io::Inputs;

use crate::args::Matching;
use crate::failure::Failure;
use crate::scan::{Pass, scan};

/// The largest distance that counts as near: as given, or from the smallest score, or the classic 3
/// of 64 bits in proportion.
///
/// # Errors
/// A distance beyond the width.
pub fn max_distance(matching: &Matching, recipe: &Recipe) -> Result<u32, Failure> {
    let bits = recipe.bits().count();
    if let Some(distance) = matching.max_distance {
        if distance > bits {
            return Err(Failure::new(format!(
                "--max-distance {distance}: expected at most {bits}, the bits of a fingerprint of {}",
                recipe.name()
            )));
        }
        return Ok(distance);
    }
    Ok(match matching.min_score {
        // score = 1 - 2 d / bits >= s holds up to this d; the nudge keeps 0.9 from becoming 0.8999.
        Some(score) => ((1.0 - score) * f64::from(bits) / 2.0 + 1e-9).floor() as u32,
        None => (3 * bits / 64).max(1),
    })
}

/// The recipe with its counts over the corpus, when it needs them: one more pass over the input.
///
/// Every text counts once, however often it is there: copies would make their own words look common.
pub fn with_corpus(recipe: Recipe, inputs: &Inputs) -> Result<Recipe, Failure> {
    if !recipe.needs_corpus() {
        return Ok(recipe);
    }
    let mut statistics = nearsift::feature::rarity::CorpusStatistics::default();
    let mut seen = std::collections::HashSet::new();
    scan(
        inputs,
        &Pass::new("counting"),
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
