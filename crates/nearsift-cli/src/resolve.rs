//! From the command line to the settings of a job.

use std::path::Path;

use nearsift::dedup::Clustering;
use nearsift::recipe::Recipe;
use nearsift::sketch::Score;
use nearsift::verify::MIN_SCORE;
use nearsift_batch::{Acceptance, Method, Text};
use nearsift_io::{Format, Inputs, Links, ReadOptions};

use crate::args::{self, ClusterRule, FormatArg, Input, Matching, Reading, RecipeArgs, Verify};
use crate::failure::Failure;

/// The inputs of a command that reads texts, with further fields.
///
/// # Errors
/// As [`nearsift_batch::open`].
pub fn open(input: &Input, fields: Vec<String>) -> Result<Inputs, Failure> {
    Ok(nearsift_batch::open(&input.inputs, read_options(&input.reading, fields))?)
}

/// The text of the one document that a file holds.
///
/// # Errors
/// When the file cannot be read, or holds no document or several.
pub fn read_one(
    path: &Path,
    arg: FormatArg,
    charset: Option<&str>,
) -> Result<Text<'static>, Failure> {
    let options = ReadOptions {
        format: format(arg),
        encoding: charset.map(str::to_owned),
        ..ReadOptions::default()
    };
    Ok(nearsift_batch::read_one(path, options)?)
}

pub fn format(arg: FormatArg) -> Option<Format> {
    match arg {
        FormatArg::Auto => None,
        FormatArg::Jsonl => Some(Format::JsonLines),
        FormatArg::Json => Some(Format::Json),
        FormatArg::Csv => Some(Format::Csv),
        FormatArg::Tsv => Some(Format::Tsv),
        FormatArg::Parquet => Some(Format::Parquet),
        FormatArg::Arrow => Some(Format::Arrow),
        FormatArg::Warc => Some(Format::Warc),
        FormatArg::Text => Some(Format::Text),
        FormatArg::Html => Some(Format::Html),
    }
}

/// What to read and how, from the command line.
pub fn read_options(reading: &Reading, fields: Vec<String>) -> ReadOptions {
    let mut options = ReadOptions {
        format: format(reading.format),
        text_field: Some(reading.text_field.clone()),
        id_field: reading.id_field.clone(),
        fields,
        encoding: reading.charset.clone(),
        delimiter: reading.delimiter,
        links: match reading.follow_links {
            true => Links::Followed,
            false => Links::Inside,
        },
        ..ReadOptions::default()
    };
    let limits = &mut options.limits;
    if let Some(bytes) = reading.max_record_bytes {
        limits.record_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    limits.file_bytes = reading.max_file_bytes.unwrap_or(limits.file_bytes);
    limits.ratio = reading.max_ratio.unwrap_or(limits.ratio);
    limits.zstd_window_log = reading.max_window_log.unwrap_or(limits.zstd_window_log);
    options
}

/// The rule as the library names it.
pub fn clustering(rule: ClusterRule) -> Clustering {
    match rule {
        ClusterRule::Majority => Clustering::Majority,
        ClusterRule::Components => Clustering::Components,
        ClusterRule::Star => Clustering::Star,
    }
}

/// The way that the options ask for: a largest distance, a width or a recipe of fingerprints means
/// SimHash, and nothing means sketches.
///
/// # Errors
/// An unknown recipe, options that contradict each other, or a distance beyond the width.
pub fn method(
    recipe: &RecipeArgs,
    matching: &Matching,
    verify: Option<Verify>,
) -> Result<Method, Failure> {
    let written = recipe.recipe.as_deref();
    let is_sketch = |written: &str| written == "sketch" || written.starts_with("sketch:");
    let chosen = matching.method.unwrap_or(
        if matching.max_distance.is_some()
            || recipe.bits.is_some()
            || written.is_some_and(|written| !is_sketch(written))
        {
            args::Method::Simhash
        } else {
            args::Method::Sketch
        },
    );
    let contradiction = |option: &str| {
        Err(Failure::new(format!(
            "{option} is of --method simhash, and --method sketch was asked: leave one of them out"
        )))
    };
    match chosen {
        args::Method::Simhash => {
            if verify.is_some() {
                return Err(Failure::new(
                    "--verify is of --method sketch, and SimHash was asked by --method, --max-distance, --bits or --recipe: leave it out",
                ));
            }
            if matching.preset.is_some() {
                return Err(Failure::new(
                    "--preset is for --method sketch, and SimHash was chosen by --method, --max-distance, --bits or --recipe: use --max-distance instead",
                ));
            }
            if let Some(written) = written.filter(|written| is_sketch(written)) {
                return Err(Failure::new(format!(
                    "--recipe {written} makes sketches, and SimHash was asked by --method, --max-distance or --bits: leave one of them out"
                )));
            }
            let recipe = crate::recipes::recipe(recipe, "simhash64")?;
            let max_distance = max_distance(matching, &recipe)?;
            Ok(Method::Simhash { recipe, max_distance })
        }
        args::Method::Sketch if matching.max_distance.is_some() => contradiction("--max-distance"),
        args::Method::Sketch if recipe.bits.is_some() => contradiction("--bits"),
        args::Method::Sketch if written.is_some_and(|written| !is_sketch(written)) => {
            contradiction(&format!("--recipe {}", written.unwrap_or_default()))
        }
        args::Method::Sketch => {
            let recipe = crate::recipes::recipe(recipe, "sketch")?;
            let acceptance = match verify.unwrap_or(Verify::Exact) {
                Verify::Exact => Acceptance::Verified(matching.min_score().unwrap_or(MIN_SCORE)),
                Verify::Off if matching.preset.is_some() => {
                    return Err(Failure::new(
                        "--preset sets the score of compared texts, and --verify off compares none: leave one of them out",
                    ));
                }
                Verify::Off => Acceptance::Scored(Score::at_least(
                    matching.min_score.unwrap_or(Acceptance::SKETCHES_ALONE),
                )),
            };
            Ok(Method::Sketch { recipe, acceptance })
        }
    }
}

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
