//! Keywords of Python as the settings of a job.

use std::path::PathBuf;

use nearsift::dedup::{Clustering, Keep};
use nearsift::recipe::Recipe;
use nearsift_batch::dedup::RunOfSketches;
use nearsift_batch::parts::Parts;
use nearsift_batch::{Choice, Method, MethodName, PageLanguage, RecipeChoice, Verify};
use nearsift_io::{Codec, Format, Links, ReadOptions};
use pyo3::prelude::*;

use crate::errors::{Class, exception, of_job};

/// What decides which documents are near.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Matching {
    method: Option<String>,
    recipe: Option<String>,
    bits: Option<u32>,
    idf: Option<String>,
    user_dictionary: Option<PathBuf>,
    stop_words: Option<PathBuf>,
    levels: Option<PathBuf>,
    pub max_distance: Option<u32>,
    pub min_score: Option<f64>,
    preset: Option<String>,
    verify: Option<bool>,
}

impl Matching {
    /// Whether the threshold was given.
    pub fn is_threshold_given(&self) -> bool {
        self.max_distance.is_some() || self.min_score.is_some() || self.preset.is_some()
    }

    /// The recipe as it was written, if it was.
    pub fn recipe_as_given(&self) -> Option<String> {
        self.recipe.clone()
    }

    /// The method that the settings mean; what they leave open is that of a run.
    pub fn method_like(mut self, run: &RunOfSketches) -> PyResult<Method> {
        self.recipe.get_or_insert_with(|| run.recipe.clone());
        if !self.is_threshold_given() {
            self.min_score = Some(run.min_score);
        }
        self.method()
    }

    /// The method that the settings mean.
    pub fn method(&self) -> PyResult<Method> {
        if let Some(score) = self.min_score.filter(|score| !(0.0..=1.0).contains(score)) {
            let said = format!("min_score={score}: expected a number from 0 to 1");
            return Err(exception(Class::Value, said));
        }
        if self.min_score.is_some() && self.max_distance.is_some() {
            let said = "min_score and max_distance were both given: leave one of them out";
            return Err(exception(Class::Value, said));
        }
        let method = self.method.as_deref().map(|name| {
            one_of(
                "method",
                name,
                &[("sketch", MethodName::Sketch), ("simhash", MethodName::Simhash)],
            )
        });
        let preset = self.preset.as_deref().map(|name| one_of("preset", name, &[("records", 0.9)]));
        let preset = preset.transpose()?;
        let choice = Choice {
            method: method.transpose()?,
            recipe: self.recipe_choice(),
            max_distance: self.max_distance,
            min_score: self.min_score.or(preset),
            is_preset: preset.is_some(),
            verify: self.verify.map(|exact| if exact { Verify::Exact } else { Verify::Off }),
        };
        choice.method().map_err(|error| of_job(&error))
    }

    /// Leaves to parts what they decide: their recipe, and that sketches alone decide where there are no texts.
    pub fn take_recipe_of(&mut self, parts: &Parts) {
        self.recipe.get_or_insert_with(|| parts.recipe().to_owned());
        if parts.are_sketches() && !parts.have_texts() {
            self.verify.get_or_insert(false);
        }
    }

    /// The recipe alone, else the default of what is done.
    pub fn recipe_or(&self, default: &str) -> PyResult<Recipe> {
        self.recipe_choice().recipe(default).map_err(|error| of_job(&error))
    }

    /// The recipe with its dictionaries, as they are named.
    pub fn recipe_choice(&self) -> RecipeChoice {
        RecipeChoice {
            recipe: self.recipe.clone(),
            bits: self.bits,
            idf: self.idf.clone(),
            user_dictionary: self.user_dictionary.clone(),
            stop_words: self.stop_words.clone(),
            levels: self.levels.clone(),
        }
    }
}

/// Which documents stay.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Grouping {
    keep: String,
    cluster: Option<String>,
    max_cluster: Option<u32>,
    source: Option<String>,
    against: Vec<PathBuf>,
    against_kept_only: bool,
}

impl Grouping {
    /// The settings of a job.
    pub fn settings(&self, method: Method) -> PyResult<nearsift_batch::dedup::Settings> {
        let mut settings = nearsift_batch::dedup::Settings::default();
        settings.method = method;
        settings.keep = keep(&self.keep)?;
        settings.clustering = clustering(self.cluster.as_deref())?;
        if let Some(most) = self.max_cluster {
            if most < 2 {
                let said = format!("max_cluster={most}: expected 2 or more");
                return Err(exception(Class::Value, said));
            }
            settings.max_cluster = most;
        }
        settings.source_field.clone_from(&self.source);
        settings.against.clone_from(&self.against);
        settings.against_kept_only = self.against_kept_only;
        Ok(settings)
    }
}

/// Which document of a group stays, as it is written.
pub fn keep(written: &str) -> PyResult<Keep> {
    written.parse().map_err(|e| exception(Class::Value, format!("keep={written:?}: {e}")))
}

/// The rule of clusters, by its name.
pub fn clustering(name: Option<&str>) -> PyResult<Option<Clustering>> {
    let rules = [
        ("majority", Clustering::Majority),
        ("components", Clustering::Components),
        ("star", Clustering::Star),
    ];
    name.map(|name| one_of("cluster", name, &rules)).transpose()
}

/// How documents are read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Reading {
    pub text: String,
    pub id: Option<String>,
    format: Option<String>,
    charset: Option<String>,
    delimiter: Option<String>,
    follow_links: bool,
    max_record_bytes: Option<usize>,
    max_file_bytes: Option<u64>,
    max_ratio: Option<u64>,
}

impl Reading {
    /// The options of a reader, with further fields.
    pub fn options(&self, fields: Vec<String>) -> PyResult<ReadOptions> {
        let delimiter = self.delimiter.as_deref().map(|text| match text.as_bytes() {
            &[byte] => Ok(byte),
            _ => Err(exception(Class::Value, format!("delimiter={text:?}: expected one byte"))),
        });
        let mut options = ReadOptions {
            format: format(self.format.as_deref())?,
            text_field: Some(self.text.clone()),
            fields,
            encoding: self.charset.clone(),
            delimiter: delimiter.transpose()?,
            links: if self.follow_links { Links::Followed } else { Links::Inside },
            ..ReadOptions::default()
        };
        if let Some(id) = &self.id {
            options.id_field.clone_from(id);
        }
        let limits = &mut options.limits;
        limits.record_bytes = self.max_record_bytes.unwrap_or(limits.record_bytes);
        limits.file_bytes = self.max_file_bytes.unwrap_or(limits.file_bytes);
        limits.ratio = self.max_ratio.unwrap_or(limits.ratio);
        Ok(options)
    }
}

/// A format by its name; none for that of each file.
pub fn format(name: Option<&str>) -> PyResult<Option<Format>> {
    match name {
        None | Some("auto") => Ok(None),
        Some(name) => name.parse().map(Some).map_err(|e| exception(Class::Value, e)),
    }
}

/// A compression by its name.
pub fn codec(name: Option<&str>) -> PyResult<Option<Codec>> {
    name.map(|name| name.parse().map_err(|e| exception(Class::Value, e))).transpose()
}

/// The bytes of a size such as `4GB`; nothing where it is none.
#[pyfunction]
pub fn parse_size(text: &str) -> Option<u64> {
    nearsift_batch::numbers::parse_size(text)
}

/// The language of a report, by its name.
pub fn language(name: &str) -> PyResult<PageLanguage> {
    one_of("language", name, &[("en", PageLanguage::English), ("zh", PageLanguage::Chinese)])
}

/// The value with a name.
pub fn one_of<T: Copy>(setting: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(known, _)| format!("{known:?}")).collect();
        exception(Class::Value, format!("{setting}={name:?}: expected {}", names.join(" or ")))
    })
}
