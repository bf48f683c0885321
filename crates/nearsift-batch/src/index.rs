//! Files of documents and a durable index: what is put into it, and what it is asked.

use nearsift::fingerprint::Bits;
use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome as Made, Recipe};
use nearsift::search::Method;
use nearsift::sketch::{MIN_SCORE, Score};
use nearsift_io::Inputs;
use nearsift_store::{
    Answer, Ask, Batch, CANDIDATE_SCORE, Content, Id, IdKind, Kind, MAX_BATCH_BYTES, Metadata,
    Near, Outcome, OwnId, RecipeMark, Settings, Store, StoreError, Text, TextScore, Value,
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
    let (recipe, kind) = match method {
        Method::Simhash { recipe, .. } if recipe.bits() == Bits::B32 => {
            let problem =
                " 32: fingerprints of 32 bits are not indexed; use 64, 128 or 256".to_owned();
            return Err(Error::Setting { setting: "bits", problem });
        }
        Method::Simhash { recipe, max_distance } => {
            let bits = recipe.bits();
            (recipe, Kind::Fingerprints { bits, max_distance })
        }
        Method::Sketch { recipe, .. } => {
            let least = if keeps_texts { CANDIDATE_SCORE } else { min_score.unwrap_or(MIN_SCORE) };
            (recipe, Kind::Sketches { min_score: Score::at_least(least) })
        }
    };
    if recipe.needs_corpus() {
        let problem = " corpus: an index grows, and its recipe must not; count over a corpus once and give the file";
        return Err(Error::Setting { setting: "idf", problem: problem.to_owned() });
    }
    let texts = keeps_texts.then(|| min_score.map_or(TextScore::NEAR, TextScore::of));
    let mark = RecipeMark::of(&recipe);
    Ok((recipe, Settings { kind, ids: IdKind::Texts, recipe: mark, hash_key: None, texts }))
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
            valued(&document, fingerprinter, recipe, store).map_err(|error| (id, error))
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
            let Ok(value) = document.value else {
                adding.counts.without_fingerprint += 1;
                return Ok(());
            };
            let metadata =
                Metadata { time: Some(now), length: Some(document.length), source: None, expires };
            let id = Id::Text(&document.id);
            let content = Content { value: &value, text: document.text.as_ref() };
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
            let answer = valued(&document, fingerprinter, recipe, store).and_then(|valued| {
                let Valued { value, text, .. } = valued;
                value.map_or(Ok(Answer::default()), |value| {
                    store.query(Content { value: &value, text: text.as_ref() }, ask)
                })
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
    value: Result<Value, NoFingerprint>,
    /// Where the index keeps texts.
    text: Option<Text>,
}

/// # Errors
/// The text is too long to be kept.
fn valued(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    recipe: &Recipe,
    store: &Store,
) -> Result<Valued, StoreError> {
    let value = value_of(document, fingerprinter, recipe);
    let text = match (store.texts(), &value) {
        (Some(_), Ok(_)) => Some(Text::new(&document.text.text)?),
        _ => None,
    };
    let (id, length) = (document.id.as_str().to_owned(), document.text.text.len() as u64);
    Ok(Valued { id, length, value, text })
}

/// What stands for a document, or why nothing does.
fn value_of(
    document: &Seen<'_>,
    fingerprinter: &mut Fingerprinter<'_>,
    recipe: &Recipe,
) -> Result<Value, NoFingerprint> {
    if recipe.is_sketch() {
        return document.text.sketch(fingerprinter).map(Value::Sketch);
    }
    match document.text.fingerprint(fingerprinter) {
        Made::Fingerprint(fingerprint) => Ok(fingerprint.into()),
        Made::None(reason) => Err(reason),
    }
}
