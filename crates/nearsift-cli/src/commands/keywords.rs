//! `nearsift keywords`: a document's features with their weights.

use nearsift::recipe::Outcome;
use serde::Serialize;

use crate::Status;
use crate::args::{Global, Keywords};
use crate::failure::Failure;
use crate::output::{Out, Severity, escaped, tell};
use crate::resolve::read_one;

/// How many keywords the keyword recipe takes, and how many features are shown.
const USUAL: usize = 20;

#[derive(Serialize)]
struct Line<'a> {
    feature: &'a str,
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rarity: Option<f64>,
    weight: u64,
    hash: String,
}

pub fn run(args: &Keywords, global: &Global) -> Result<Status, Failure> {
    let shown = args.top.map_or(USUAL, |top| top as usize);
    let recipe = crate::resolve::recipe(&args.recipe, &default_recipe(shown))?;
    let document = read_one(&args.file, args.format, args.charset.as_deref())?;
    let mut fingerprinter = recipe.fingerprinter()?;
    if let Outcome::None(reason) = document.fingerprint(&mut fingerprinter) {
        tell(Severity::Note, &format!("{}: no fingerprint: {reason}", args.file.display()));
    }
    let features = fingerprinter.explain(&document.text);
    let mut out = Out::new();
    if !global.json && !features.is_empty() {
        out.line("weight  count  rarity  feature")?;
    }
    for feature in features.iter().take(shown) {
        if global.json {
            out.json(&Line {
                feature: &feature.token,
                count: feature.count,
                rarity: feature.rarity,
                weight: feature.weight,
                hash: format!("{:016x}", feature.hash),
            })?;
        } else {
            let rarity = feature.rarity.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
            out.line(&format!(
                "{:>6}  {:>5}  {rarity:>6}  {}",
                feature.weight,
                feature.count,
                escaped(&feature.token)
            ))?;
        }
    }
    out.finish()?;
    Ok(if features.is_empty() { Status::Nothing } else { Status::Done })
}

/// The keyword recipe with its usual number of keywords, or as many as are to be shown.
fn default_recipe(shown: usize) -> String {
    format!("keywords64:top={}", shown.clamp(USUAL, 10_000))
}
