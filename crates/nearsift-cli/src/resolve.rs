//! From the command line to the settings of a job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nearsift::dedup::Clustering;
use nearsift::recipe::Recipe;
use nearsift_batch::{Choice, EarlierResults, Method, MethodName, Text, Verify};
use nearsift_io::{Format, Inputs, Links, ReadOptions};

use crate::args::{self, ClusterRule, FormatArg, Input, Matching, Reading, RecipeArgs};
use crate::failure::Failure;

/// The inputs of a command that reads texts, with further fields.
///
/// # Errors
/// As [`nearsift_batch::open`].
pub fn open(input: &Input, fields: Vec<String>) -> Result<Inputs, Failure> {
    Ok(nearsift_batch::open(&paths(input)?, read_options(&input.reading, fields))?)
}

/// What is to be read: what the command line names, and what the list names.
///
/// # Errors
/// A list that cannot be read, or that names nothing where nothing else is named.
pub fn paths(input: &Input) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = input.inputs.clone();
    let Some(list) = &input.files_from else { return Ok(paths) };
    let read = match list.as_os_str() == "-" {
        true => io::read_to_string(io::stdin()),
        false => fs::read_to_string(list),
    };
    let error = |what: &str| Failure::new(format!("--files-from {}: {what}", list.display()));
    let lines = read.map_err(|e| error(&format!("cannot read the list: {e}")))?;
    let names = lines.lines().filter(|line| !line.trim().is_empty());
    paths.extend(names.map(PathBuf::from));
    match paths.is_empty() {
        true => Err(error("the list is empty: expected a file, folder or pattern on each line")),
        false => Ok(paths),
    }
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

/// The method that the options mean.
///
/// # Errors
/// An unknown recipe, options that contradict each other, or a distance beyond the width.
pub fn method(
    recipe: &RecipeArgs,
    matching: &Matching,
    verify: Option<args::Verify>,
) -> Result<Method, Failure> {
    let choice = Choice {
        method: matching.method.map(|method| match method {
            args::Method::Sketch => MethodName::Sketch,
            args::Method::Simhash => MethodName::Simhash,
        }),
        recipe: recipe.choice(),
        max_distance: matching.max_distance,
        min_score: matching.min_score(),
        is_preset: matching.preset.is_some(),
        verify: verify.map(|verify| match verify {
            args::Verify::Exact => Verify::Exact,
            args::Verify::Off => Verify::Off,
        }),
    };
    Ok(choice.method()?)
}

/// The recipe that the options name, else `default`.
///
/// # Errors
/// An unknown recipe, parameters that do not fit together, or a dictionary that cannot be read.
pub fn recipe(args: &RecipeArgs, default: &str) -> Result<Recipe, Failure> {
    Ok(args.choice().recipe(default)?)
}

/// What becomes of earlier results in the output folder.
pub fn earlier(overwrite: bool) -> EarlierResults {
    if overwrite { EarlierResults::Replace } else { EarlierResults::Refuse }
}
