//! A corpus in parts: what several machines find out about its documents, each about its own files, for one that decides.
//!
//! [`sketch`] reads files once and leaves a part: a folder with a few numbers about each document, its id, and its text.
//! [`dedup::join`](crate::dedup::join) decides about the documents of any number of parts, as
//! [`dedup::run`](crate::dedup::run) does of all their files; [`dedup::apply`](crate::dedup::apply) writes what stays of the
//! files of a part.
//!
//! A part is 208 bytes a document, its id, and its text, packed by zstd: about two fifths of the bytes of the text.
//! Parts are never changed, and can be joined again and again, with parts of earlier days among them.
//!
//! ```
//! use nearsift::recipe::Recipe;
//! use nearsift_batch::parts::{self, Parts};
//! use nearsift_batch::{Context, dedup};
//! use nearsift_io::ReadOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (folder, context) = (tempfile::tempdir()?, Context::default());
//! let mut made = Vec::new();
//! for day in ["monday", "tuesday"] {
//!     let file = folder.path().join(format!("{day}.jsonl"));
//!     std::fs::write(&file, format!(r#"{{"id": "{day}", "text": "今天下午，市图书馆举办了一场绘本阅读活动。"}}"#))?;
//!     let inputs = nearsift_batch::open(&[file], ReadOptions::default())?;
//!     let settings = parts::Settings::new(Recipe::parse("sketch")?);
//!     made.push(folder.path().join(day));
//!     parts::sketch(&inputs, &settings, &made[made.len() - 1], &context)?;
//! }
//! let joined = dedup::Output::new(folder.path().join("joined"));
//! dedup::join(&Parts::open(&made)?, &dedup::Settings::default(), &joined, &context)?;
//! let tuesday = folder.path().join("kept-tuesday");
//! let applied =
//!     dedup::apply(&made[1], &joined.folder, &dedup::Apply::default(), &tuesday, &context)?;
//! assert_eq!((applied.documents, applied.kept), (1, 0));
//! # Ok(()) }
//! ```

mod manifest;
mod opened;

use std::path::{Path, PathBuf};

use nearsift::dedup::{Corpus, Keep};
use nearsift::recipe::Recipe;
use nearsift_io::{Inputs, prepare_output_around};

pub(crate) use manifest::{PartManifest, PartOfRun};
pub use opened::Parts;
pub(crate) use opened::{Part, records_of};

use crate::checkpoint::{Checkpoint, Manifest};
use crate::context::Context;
use crate::corpus::{self, Collected, Columns, Sketched, Wanted, shard};
use crate::error::Error;

/// What decides what a part has.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The recipe of sketches or of fingerprints.
    pub recipe: Recipe,
    /// Which member of a group will stay.
    pub keep: Keep,
    /// The field that says where a document comes from; `None` for the top folders of the input.
    pub source_field: Option<String>,
    /// Whether the part has the texts, without which sketches alone decide.
    pub texts: bool,
}

impl Settings {
    /// By a recipe: the first member stays. With texts where the recipe makes sketches, whose candidates are compared.
    pub fn new(recipe: Recipe) -> Settings {
        Settings { texts: recipe.is_sketch(), recipe, keep: Keep::First, source_field: None }
    }

    /// The fields that the inputs must be opened with: [`ReadOptions::fields`](nearsift_io::ReadOptions::fields).
    pub fn fields(&self) -> Vec<String> {
        let fields = self.keep.field().map(str::to_owned).into_iter();
        fields.chain(self.source_field.clone()).collect()
    }

    /// What decides what a part has, by name.
    fn identity(&self, inputs: &Inputs) -> Vec<(String, String)> {
        let source = self.source_field.clone().unwrap_or_else(|| "none".to_owned());
        let settings = [
            ("recipe", format!("{} (digest {:016x})", self.recipe, self.recipe.digest())),
            ("keep", self.keep.to_string()),
            ("source-field", source),
            ("without-texts", (!self.texts).to_string()),
            ("reading", crate::dedup::reading(inputs.options())),
        ];
        settings.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// What a part has.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct PartSummary {
    /// The folder.
    pub part: PathBuf,
    /// Its documents.
    pub documents: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
    /// The bytes of the texts.
    pub text_bytes: u64,
    /// The bytes of the files of the part.
    pub bytes: u64,
}

/// Reads files of documents, and leaves a part in a folder. A job that was stopped goes on where it was when it is begun again
/// with the same files and settings; of a part that is complete it says what it has.
///
/// # Errors
/// An input that cannot be read again, such as standard input; a folder that holds something else, or a part of other files or
/// settings; a recipe that counts over the whole corpus; a disk that refuses, or an interruption.
pub fn sketch(
    inputs: &Inputs,
    settings: &Settings,
    folder: &Path,
    context: &Context<'_>,
) -> Result<PartSummary, Error> {
    if settings.recipe.needs_corpus() {
        return Err(Error::invalid(
            "`idf` corpus counts over all documents, and a part has some of them: count them before, and give the file by `idf`",
        ));
    }
    let again = Manifest::new(inputs, settings.identity(inputs)).ok_or_else(|| {
        Error::invalid("a part needs files that can be read again: not standard input or pipes")
    })?;
    let has_work = Checkpoint::is_in(folder);
    let folder =
        prepare_output_around(folder, inputs, |name| has_work || Checkpoint::begins_with(name))?;
    if PartManifest::is_in(&folder) {
        let part = Part::open(&folder)?;
        part.manifest.check_same(&again)?;
        return finish(&part);
    }
    let state = Checkpoint::open(
        &folder,
        &again,
        context.bounds.checkpoint_bytes,
        std::sync::Arc::default(),
    )?;
    let work = || match settings.recipe.is_sketch() {
        true => collect(inputs, settings, context, &state, Sketched::default()),
        false => collect(inputs, settings, context, &state, Corpus::new(settings.recipe.bits())),
    };
    let mut manifest = work().map_err(|error| match error {
        Error::Interrupted { .. } => Error::Interrupted { is_resumable: true },
        error => error,
    })?;
    manifest.again = again;
    manifest.write(&folder)?;
    finish(&Part::open(&folder)?)
}

/// Removes what a complete part does not need, and says what it has.
fn finish(part: &Part) -> Result<PartSummary, Error> {
    // The counts of features follow from the texts of all parts.
    shard::remove_sample(&part.folder, part.manifest.shards());
    part.summary()
}

/// Reads all documents into the shards of a part.
fn collect<C: Columns>(
    inputs: &Inputs,
    settings: &Settings,
    context: &Context<'_>,
    state: &Checkpoint,
    columns: C,
) -> Result<PartManifest, Error> {
    let wanted = Wanted {
        recipe: &settings.recipe,
        keep: &settings.keep,
        source_field: settings.source_field.as_deref(),
        opened: None,
        texts: settings.texts,
    };
    let collected: Collected<C> =
        corpus::collect(context, columns, inputs, &wanted, Some(state), |_| Ok(()))?;
    PartManifest::of(inputs, settings, &collected)
}
