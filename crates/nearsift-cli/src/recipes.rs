//! From the command line to a recipe with its dictionaries.

use std::path::Path;

use nearsift::feature::rarity::RarityTable;
use nearsift::recipe::compat::{Compat, InputKind};
use nearsift::recipe::{Recipe, Tables};
use nearsift::text::words::{Lexicon, StopWords};

use crate::args::RecipeArgs;
use crate::failure::Failure;

/// The recipe that was asked for, else `default`.
///
/// # Errors
/// An unknown recipe, parameters that do not fit together, or a dictionary that cannot be read.
pub fn recipe(args: &RecipeArgs, default: &str) -> Result<Recipe, Failure> {
    let mut written = args.recipe.clone().unwrap_or_else(|| default.to_owned());
    if let Some(bits) = &args.bits {
        written = with_bits(&written, bits)?;
    }
    let recipe = match &args.idf {
        Some(idf) => {
            let source = if idf == "corpus" { "corpus" } else { "file" };
            Recipe::parse(&with_parameter(&written, "idf", source)).or_else(|error| {
                // A recipe that has no such parameter is named with one that has.
                Recipe::parse(&written).map_or(Ok(()), |recipe| refuse_unused(args, &recipe))?;
                Err(Failure::from(error))
            })?
        }
        None => Recipe::parse(&written)?,
    };
    refuse_unused(args, &recipe)?;
    let mut tables = Tables::default();
    if let Some(path) = &args.user_dictionary {
        let lexicon = Lexicon::with_user_dictionary(&read(path)?).map_err(|e| about(path, e))?;
        tables.lexicon = Some(lexicon.into());
    }
    if let Some(path) = &args.stop_words {
        tables.stop_words = Some(StopWords::from_text(&read(path)?));
    }
    if let Some(path) = args.idf.as_deref().filter(|idf| *idf != "corpus").map(Path::new) {
        let table = RarityTable::parse_idf(&read(path)?).map_err(|e| about(path, e))?;
        tables.idf = Some(table.into());
    }
    if let Some(path) = &args.levels {
        tables.levels = Some(RarityTable::parse_levels(&read(path)?).map_err(|e| about(path, e))?);
    }
    let recipe = recipe.with_tables(tables);
    // What is missing is said before anything is read or made.
    if !recipe.needs_corpus() {
        recipe.fingerprinter()?;
    }
    Ok(recipe)
}

/// A dictionary that the recipe never looks into would be a silent mistake.
fn refuse_unused(args: &RecipeArgs, recipe: &Recipe) -> Result<(), Failure> {
    let parameters = recipe.parameters();
    let value = |key| parameters.iter().find(|p| p.0 == key).map(|p| p.1.as_str());
    let takes_words = value("words").is_some()
        || Compat::describe(recipe.name())
            .is_some_and(|d| matches!(d.input, InputKind::Words | InputKind::Keywords));
    let checks = [
        (
            "--idf",
            args.idf.is_some(),
            value("idf").is_some(),
            "simhash64:features=word1,weight=tf-idf",
        ),
        (
            "--levels",
            args.levels.is_some(),
            value("weight") == Some("levels"),
            "simhash64:features=word1,weight=levels",
        ),
        (
            "--stop-words",
            args.stop_words.is_some(),
            value("features") == Some("keywords"),
            "keywords64",
        ),
        ("--user-dictionary", args.user_dictionary.is_some(), takes_words, "keywords64"),
    ];
    for (flag, is_given, is_used, other) in checks {
        if is_given && !is_used {
            return Err(Failure::new(format!(
                "{flag}: the recipe '{recipe}' never looks into it; choose one that does, such as --recipe {other}"
            )));
        }
    }
    Ok(())
}

fn with_parameter(written: &str, key: &str, value: &str) -> String {
    let separator = if written.contains(':') { ',' } else { ':' };
    format!("{written}{separator}{key}={value}")
}

/// The same recipe at another width: `simhash64` at 128 bits is `simhash128`.
fn with_bits(written: &str, bits: &str) -> Result<String, Failure> {
    let (name, parameters) = written.split_at(written.find(':').unwrap_or(written.len()));
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if family == "simhash" || family == "keywords" {
        return Ok(format!("{family}{bits}{parameters}"));
    }
    Ok(with_parameter(written, "bits", bits))
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::at(path, "read", &e))?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{}: not UTF-8: save it as UTF-8", path.display())))
}

fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}
