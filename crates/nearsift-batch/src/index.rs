//! Files of documents and a durable index: what is put into it, and what it is asked.

use nearsift::recipe::{Fingerprinter, NoFingerprint, Recipe};
use nearsift::search::{Acceptance, Method};
use nearsift::sketch::{MIN_SCORE, Score};
use nearsift_io::Inputs;
use nearsift_store::{
    Answer, Ask, Batch, Id, MAX_BATCH_BYTES, Metadata, Near, NotIndexed, Outcome, OwnContent,
    OwnId, RecipeMark, Settings, Store, StoreError, TextScore, Value,
};
use serde::Serialize;

use crate::choice::RecipeChoice;
use crate::context::{Context, Phase};
use crate::error::Error;
use crate::notice::{Level, Topic};
use crate::scan::{Seen, scan_documents};

/// What a new index holds by a method, with ids that are texts, and the recipe of its documents. An index that keeps texts
/// lets them decide, from `min_score` on; any other goes by the method alone.
///
/// # Errors
/// Fingerprints of 32 bits, or a recipe that counts features over a corpus.
pub fn settings(
    method: Method,
    min_score: Option<f64>,
    keeps_texts: bool,
) -> Result<(Recipe, Settings), Error> {
    let texts = keeps_texts.then(|| min_score.map_or(TextScore::NEAR, TextScore::of));
    let method = match method {
        Method::Sketch { recipe, .. } => {
            let alone = Acceptance::Scored(Score::at_least(min_score.unwrap_or(MIN_SCORE)));
            let acceptance = texts.map_or(alone, |least| Acceptance::Verified(least.value()));
            Method::Sketch { recipe, acceptance }
        }
        simhash => simhash,
    };
    let settings = Settings::of_method(&method).map_err(|reason| {
        let (setting, value) = match reason {
            NotIndexed::CountsOverCorpus => ("idf", "corpus"),
            _ => ("bits", "32"),
        };
        Error::Setting { setting, problem: format!(" {value}: {reason}") }
    })?;
    Ok((method.recipe().clone(), Settings { texts, ..settings }))
}

/// The recipe of an index; `choice` gives its dictionaries again.
///
/// # Errors
/// A recipe or dictionaries that are not those of the index.
pub fn recipe(store: &Store, choice: &RecipeChoice) -> Result<Recipe, Error> {
    let recipe = choice.recipe(&store.recipe().written)?;
    let asked = RecipeMark::of(&recipe);
    if asked != *store.recipe() {
        let (path, stored) = (store.dir().to_owned(), Box::new(store.recipe().clone()));
        return Err(StoreError::Recipe { path, stored, asked: Box::new(asked) }.into());
    }
    recipe.fingerprinter()?;
    Ok(recipe)
}

/// A question to an index: the most documents, and how near they must be, if that is not what the index was made for. A score
/// is that of texts where the index keeps them, else that of sketches; a distance goes before it.
pub fn ask(
    store: &Store,
    max_distance: Option<u32>,
    min_score: Option<f64>,
    limit: Option<usize>,
) -> Ask {
    let near = match (max_distance, min_score) {
        (Some(distance), _) => Some(Near::Distance(distance)),
        (None, Some(score)) if store.texts().is_some() => Some(Near::Text(TextScore::of(score))),
        (None, Some(score)) => Some(Near::Score(Score::at_least(score))),
        (None, None) => None,
    };
    Ask { near, limit, ..Ask::default() }
}

/// What happens to a document whose id is in the index, or that is near to one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Insertion {
    /// It is added unless its id is there.
    #[default]
    New,
    /// It is added unless its id is there or it is near to an indexed document.
    UnlessNear,
    /// It takes the place of the one with its id.
    Replace,
}

/// What came of adding documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// Documents that are in the index now and were not before.
    pub added: u64,
    /// Documents that took the place of another.
    pub replaced: u64,
    /// Documents whose ids are there.
    pub there: u64,
    /// Documents that are near to indexed ones.
    pub near: u64,
    /// Documents that have no fingerprint or sketch.
    pub without_fingerprint: u64,
    /// Documents that the index does not take: an id or a text that is too long.
    pub refused: u64,
    /// Documents and files that could not be read.
    pub unreadable: u64,
}

/// An indexed document that one of the input is near to. It is written as a JSON object by [`Serialize`].
#[derive(Debug, Serialize)]
pub struct Nearby<'a> {
    /// The id of the document.
    pub id: &'a str,
    /// The id of the indexed one.
    pub near: String,
    /// The Hamming distance of their fingerprints, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// How alike the two are, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What that rests on.
    pub evidence: &'static str,
}

impl<'a> Nearby<'a> {
    fn new(id: &'a str, other: &OwnId, near: Near) -> Nearby<'a> {
        let (distance, score) = match near {
            Near::Distance(distance) => (Some(distance), None),
            Near::Score(score) => (None, Some(score.value())),
            Near::Text(score) => (None, Some(score.value())),
        };
        Nearby { id, near: other.to_string(), distance, score, evidence: near.evidence().name() }
    }
}

/// Documents that are written together, and bytes: a batch takes one more of the longest texts.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = MAX_BATCH_BYTES / 2;

/// Puts documents into an index. All that were added are durable when this returns. `each` gets the documents that were
/// not added because they are near to indexed ones, in order.
///
/// `times` are the present and, if the documents expire, the moment, in seconds since 1970.
///
/// # Errors
/// An input or an index that cannot be read, a disk that refuses, what `each` returns, or an interruption. Batches
/// that were written before stay.
pub fn add(
    inputs: &Inputs,
    store: &Store,
    recipe: &Recipe,
    insertion: Insertion,
    times: (u64, Option<u32>),
    context: &Context<'_>,
    each: impl FnMut(&Nearby<'_>) -> Result<(), Error>,
) -> Result<Added, Error> {
    let mut adding =
        Adding { store, batch: store.batch(), ids: Vec::new(), counts: Added::default(), each };
    let (now, expires) = times;
    let unreadable = scan_documents(
        context,
        inputs,
        Phase::Indexing,
        || recipe.counter(),
        |fingerprinter, document| {
            let id = document.id.as_str().to_owned();
            valued(&document, fingerprinter, store).map_err(|error| (id, error))
        },
        |valued| {
            let refuse = |adding: &mut Adding<'_, _>, said: &str| {
                adding.counts.refused += 1;
                context.notice(Level::Warning, Topic::Input, said);
                Ok(())
            };
            let document = match valued {
                Ok(document) => document,
                // A text that cannot be kept is the document's fault.
                Err((id, error)) => return refuse(&mut adding, &format!("'{id}': {error}")),
            };
            let Ok(content) = document.content else {
                adding.counts.without_fingerprint += 1;
                return Ok(());
            };
            let metadata =
                Metadata { time: Some(now), length: Some(document.length), source: None, expires };
            let id = Id::Text(&document.id);
            let content = content.as_content();
            let batch = &mut adding.batch;
            let put = match insertion {
                Insertion::Replace => batch.upsert(id, content, &metadata),
                Insertion::UnlessNear => batch.insert_unless_near(id, content, &metadata),
                Insertion::New => batch.insert(id, content, &metadata),
            };
            match put {
                Ok(()) => adding.ids.push(document.id),
                // An id that cannot be is the document's fault.
                Err(error @ StoreError::Id(_)) => refuse(&mut adding, &error.to_string())?,
                Err(error) => return Err(error.into()),
            }
            let is_full = adding.batch.len() >= BATCH || adding.batch.bytes() >= BATCH_BYTES;
            if is_full { adding.write() } else { Ok(()) }
        },
    )?;
    adding.write()?;
    Ok(Added { unreadable, ..adding.counts })
}

struct Adding<'a, F> {
    store: &'a Store,
    batch: Batch,
    /// The ids of the batch's operations.
    ids: Vec<String>,
    counts: Added,
    each: F,
}

impl<F: FnMut(&Nearby<'_>) -> Result<(), Error>> Adding<'_, F> {
    fn write(&mut self) -> Result<(), Error> {
        let outcomes = self.store.write(&self.batch)?;
        for (id, outcome) in self.ids.iter().zip(outcomes) {
            match outcome {
                Outcome::Added => self.counts.added += 1,
                Outcome::Replaced => self.counts.replaced += 1,
                Outcome::Exists => self.counts.there += 1,
                Outcome::Near { id: other, near } => {
                    self.counts.near += 1;
                    (self.each)(&Nearby::new(id, &other, near))?;
                }
                Outcome::Removed | Outcome::Absent => {}
            }
        }
        self.batch.clear();
        self.ids.clear();
        Ok(())
    }
}

/// Asks an index about documents. `each` gets what each document is near to, in order. Returns how many documents and
/// files could not be read.
///
/// # Errors
/// An input or an index that cannot be read, what `each` returns, or an interruption.
pub fn query(
    inputs: &Inputs,
    store: &Store,
    recipe: &Recipe,
    ask: &Ask,
    context: &Context<'_>,
    mut each: impl FnMut(&Nearby<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    scan_documents(
        context,
        inputs,
        Phase::Querying,
        || recipe.counter(),
        |fingerprinter, document| -> (String, Result<Answer, StoreError>) {
            let id = document.id.as_str().to_owned();
            let answer = valued(&document, fingerprinter, store).and_then(|valued| {
                let content = valued.content;
                content
                    .map_or(Ok(Answer::default()), |content| store.query(content.as_content(), ask))
            });
            (id, answer)
        },
        |(id, answer)| {
            let matches = answer?.matches;
            matches.iter().try_for_each(|near| each(&Nearby::new(&id, &near.id, near.near)))
        },
    )
}

/// A document on its way to the index.
struct Valued {
    id: String,
    length: u64,
    content: Result<OwnContent, NoFingerprint>,
}

/// # Errors
/// The text is too long to be kept.
fn valued(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    store: &Store,
) -> Result<Valued, StoreError> {
    let text = &document.text.text;
    let content = match Value::of_text(text, store.kind(), fingerprinter) {
        Ok(_) if document.text.is_navigation_only() => Err(NoFingerprint::NavigationOnly),
        Ok(value) => Ok(store.content_of(value, text)?),
        Err(reason) => Err(reason),
    };
    Ok(Valued { id: document.id.as_str().to_owned(), length: text.len() as u64, content })
}
