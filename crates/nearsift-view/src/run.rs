//! An opened run: its results, the texts of its input, and the judgements of its reviewers.

use std::path::PathBuf;

use nearsift_batch::compare::{Comparison, PairOfTexts};
use nearsift_batch::dedup::{
    Explanation, FoundTexts, RunOfSketches, RunResults, RunTexts, TextSearch, TextsState,
    WantedWords,
};
use nearsift_batch::eval::Judgements;
use nearsift_batch::{Error, Method, Text};
use nearsift_io::ReadOptions;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Language, ViewSettings};

/// A run that is shown.
pub struct Run {
    pub results: RunResults,
    method: Method,
    like: Option<RunOfSketches>,
    texts: Result<RunTexts, String>,
    pub judgements: Option<Judgements>,
    name: String,
    finished: Option<String>,
    language: Option<Language>,
}

/// Whether texts are at hand.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Texts {
    /// All of them are.
    Ready,
    /// They are being read.
    Reading {
        /// Bytes so far.
        done: u64,
        /// All bytes, about.
        total: u64,
    },
    /// They are not, or not all.
    Absent {
        /// Why.
        why: String,
    },
}

impl Run {
    /// # Errors
    /// A folder without results, an input that was named and cannot be read, or judgements that cannot be written.
    pub fn open(settings: ViewSettings) -> Result<Run, Error> {
        let ViewSettings { run, inputs, reading, review, language, scratch, .. } = settings;
        let results = RunResults::open(&run)?;
        let (method, like) = results.method()?;
        let texts = match inputs.is_empty() {
            false => Ok(RunTexts::start(nearsift_batch::open(&inputs, reading)?, &scratch)?),
            true => match own_inputs(&results, reading) {
                Ok(inputs) => Ok(RunTexts::start(inputs, &scratch)?),
                Err(why) => Err(why),
            },
        };
        let judgements = review.as_deref().map(Judgements::open).transpose()?;
        let absolute = std::path::absolute(&run).unwrap_or(run);
        let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
        let modified = std::fs::metadata(absolute.join("summary.json")).and_then(|m| m.modified());
        let finished = modified.ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
        Ok(Run {
            results,
            method,
            like,
            texts,
            judgements,
            name: name.unwrap_or_default(),
            finished: finished.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            language,
        })
    }

    pub fn without_texts(&self) -> Option<&str> {
        self.texts.as_ref().err().map(String::as_str)
    }

    /// What the page asks first.
    pub fn face(&self) -> Value {
        json!({
            "face": "run",
            "review": self.judgements.is_some(),
            "language": self.language.map(Language::tag),
        })
    }

    /// The run in figures. What may be long in its summary is left out.
    pub fn overview(&self) -> Value {
        const FIGURES: [&str; 16] = [
            "nearsift",
            "method",
            "recipe",
            "recipe_digest",
            "keep",
            "cluster",
            "verify",
            "min_score",
            "max_distance",
            "documents",
            "text_bytes",
            "kept",
            "removed",
            "groups",
            "largest_group",
            "pairs",
        ];
        let summary = self.results.summary();
        let figures =
            FIGURES.iter().filter_map(|&name| Some((name.to_owned(), summary.get(name)?.clone())));
        let inputs = self.results.inputs().unwrap_or_default();
        let shown: Vec<String> =
            inputs.iter().take(20).map(|path| path.display().to_string()).collect();
        json!({
            "name": self.name,
            "finished": self.finished,
            "figures": figures.collect::<Map<_, _>>(),
            "unreadable": summary.get("unreadable"),
            "inputs": shown,
            "more_inputs": inputs.len().saturating_sub(shown.len()),
            "sources": self.results.sources(),
            "texts": self.texts(),
            "review": self.judgements.is_some(),
        })
    }

    pub fn texts(&self) -> Texts {
        match self.texts.as_ref().map(RunTexts::state) {
            Ok(TextsState::Ready) => Texts::Ready,
            Ok(TextsState::Reading { done, total }) => Texts::Reading { done, total },
            Ok(TextsState::Failed(why)) => Texts::Absent { why },
            Ok(_) => Texts::Absent { why: String::new() },
            Err(why) => Texts::Absent { why: why.clone() },
        }
    }

    /// The first characters of a text, where it is at hand.
    pub fn beginning(&self, id: &Value, record: u64) -> Option<String> {
        const CHARACTERS: usize = 240;
        let texts = self.texts.as_ref().ok()?;
        texts.beginning(id, record, CHARACTERS).ok().flatten()
    }

    /// Documents whose texts have all words; `None` where there are no texts.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn search_texts(
        &self,
        words: &WantedWords,
        search: &TextSearch<'_>,
    ) -> Result<Option<FoundTexts>, Error> {
        self.texts.as_ref().ok().map(|texts| texts.search(words, search)).transpose()
    }

    /// Two documents compared as the run did; `None` while a text is not at hand.
    ///
    /// # Errors
    /// An input that is not the one that the run read.
    pub fn compare(&self, a: &Explanation, b: &Explanation) -> Result<Option<Comparison>, Error> {
        let Ok(texts) = &self.texts else { return Ok(None) };
        let (Some(text_a), Some(text_b)) =
            (texts.text(&a.id, a.record)?, texts.text(&b.id, b.record)?)
        else {
            return Ok(None);
        };
        self.compare_texts([shown(&a.id), shown(&b.id)], [text_a, text_b]).map(Some)
    }

    /// Two texts compared as the run would.
    ///
    /// # Errors
    /// A text of 4 GiB or more.
    pub fn compare_texts(
        &self,
        names: [String; 2],
        texts: [Text<'static>; 2],
    ) -> Result<Comparison, Error> {
        PairOfTexts { names, texts }.compare(&self.method, self.like.as_ref())
    }
}

/// The inputs that the run lists, where all are still there.
fn own_inputs(results: &RunResults, reading: ReadOptions) -> Result<nearsift_io::Inputs, String> {
    let listed = results.inputs().map_err(|error| error.to_string())?;
    let absent: Vec<&PathBuf> = listed.iter().filter(|path| !path.exists()).collect();
    if let Some(first) = absent.first() {
        return Err(format!("{}: the input of the run is not there any more", first.display()));
    }
    if listed.is_empty() {
        return Err("the run lists no input".to_owned());
    }
    nearsift_batch::open(&listed, reading).map_err(|error| error.to_string())
}

/// An id as people read it.
pub fn shown(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
