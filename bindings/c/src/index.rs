//! The durable index: documents of a folder that survive crashes, found by what they are near to.

use std::ffi::c_char;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nearsift::fingerprint::Bits;
use nearsift::recipe::Recipe;
use nearsift::sketch::Score;
use nearsift_store::{
    Access, Answer, Ask, Batch, Content, Id, IdKind, Kind, MAX_BATCH_BYTES, Metadata, Near,
    Options, Outcome, OwnContent, OwnId, RecipeMark, Settings, Store, StoreError, TextScore, Value,
};

use crate::failure::{Failure, guard, nearsift_status};
use crate::fingerprinters::Fingerprinters;
use crate::method::{check_distance, checked_score, nearsift_method};
use crate::pointer::{Out, optional, out, reference, slice_mut, take_back, text, texts};
use crate::recipe::nearsift_recipe;
use crate::string::{nearsift_str, nearsift_string};

/// A durable index in a folder, open. Each document has an id of 1 to 2,048 bytes of UTF-8. What a call has added or removed is on
/// the disk when it returns, and survives a crash of the process and of the machine. All threads may use one at the same time; threads
/// that write at the same time share one sync of the disk. One handle of one process writes to a folder at a time; others may read.
pub struct nearsift_index {
    store: Store,
    fingerprinters: Fingerprinters,
}

/// What became of a document.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum nearsift_outcome {
    /// It was added under an id that was free.
    Added = 0,
    /// It took the place of the one with its id.
    Replaced = 1,
    /// Nothing was done: a document has this id.
    Exists = 2,
    /// Nothing was done: it is near to an indexed document.
    Near = 3,
    /// It was removed.
    Removed = 4,
    /// There was none to remove.
    Absent = 5,
    /// Nothing was done: its text has no fingerprint or sketch. Only functions of many documents say so; others return
    /// `NEARSIFT_STATUS_NO_FINGERPRINT`.
    NoFingerprint = 6,
}

/// What it rests on that two documents are near.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum nearsift_evidence {
    /// Fingerprints alone.
    Fingerprint = 0,
    /// Sketches alone.
    Sketch = 1,
    /// The texts, compared by exact measures.
    Text = 2,
}

/// An indexed document that is near.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct nearsift_match {
    /// Its id: UTF-8, `id_length` bytes and then a NUL. It lives until `nearsift_matches_free`.
    pub id: *const c_char,
    /// The number of the id's bytes.
    pub id_length: usize,
    /// What was compared.
    pub evidence: nearsift_evidence,
    /// The Hamming distance of the fingerprints, in bits; 0 of sketches and texts.
    pub distance: u32,
    /// The score of the sketches or texts, from 0 to 1; of fingerprints max(0, 1 - 2 x distance / bits).
    pub score: f64,
}

/// Indexed documents that one text is near to. It never changes. All threads may use one at the same time.
pub struct nearsift_matches {
    /// The ids, which the matches point to.
    _ids: Vec<Box<[u8]>>,
    matches: Vec<nearsift_match>,
    is_truncated: bool,
}

/// How large an index is.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nearsift_index_stats {
    /// Documents that were not removed.
    pub documents: u64,
    /// Of these, documents that are in the log and in no segment yet.
    pub fresh: u64,
    /// Segments: files that never change, and are merged now and then.
    pub segments: u64,
    /// Bytes of the segments on the disk.
    pub disk_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes in memory, about.
    pub memory_bytes: u64,
    /// Bytes that were dropped from the end of the log when the index was opened: a write that a crash tore before it was accepted.
    pub dropped_bytes: u64,
}

/// Creates an index in a folder that is empty or does not exist, and opens it.
///
/// What is near is decided by the method, for good: a method of texts keeps each text, compressed; one of sketches keeps 64 bytes and
/// keys for each; one of fingerprints these. `method` may be NULL for the default, which keeps texts. On failure `*index` is NULL. Close
/// it with `nearsift_index_close`.
///
/// `NEARSIFT_STATUS_NOT_EMPTY`; `NEARSIFT_STATUS_RECIPE` when the recipe counts over a corpus; `NEARSIFT_STATUS_INVALID_ARGUMENT` when
/// fingerprints have 32 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_create(
    folder: *const c_char,
    folder_length: usize,
    method: *const nearsift_method,
    index: *mut *mut nearsift_index,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let index = unsafe { out(index, "index") }?.cleared();
        // SAFETY: the same.
        let folder = unsafe { path(folder, folder_length) }?;
        // SAFETY: the same.
        let method = unsafe { nearsift_method::given(method) }?;
        let store = Store::create(folder, &Settings::of_method(&method.method)?)?;
        let fingerprinters = Fingerprinters::new(method.method.recipe().clone());
        index.hand_over(nearsift_index { store, fingerprinters });
        Ok(())
    })
}

/// Opens an index for reading and writing.
///
/// `recipe` may be NULL for the one that the index was created with; another one is refused, by `NEARSIFT_STATUS_RECIPE_MISMATCH`.
/// `NEARSIFT_STATUS_NOT_AN_INDEX`, `NEARSIFT_STATUS_LOCKED`, `NEARSIFT_STATUS_DAMAGED`, `NEARSIFT_STATUS_VERSION`. On failure `*index` is
/// NULL. Close it with `nearsift_index_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_open(
    folder: *const c_char,
    folder_length: usize,
    recipe: *const nearsift_recipe,
    index: *mut *mut nearsift_index,
) -> nearsift_status {
    // SAFETY: the contract is the same.
    guard(|| unsafe { open(folder, folder_length, recipe, Access::ReadWrite, index) })
}

/// Opens an index for reading what was written before, beside a process that writes to it. See `nearsift_index_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_open_read_only(
    folder: *const c_char,
    folder_length: usize,
    recipe: *const nearsift_recipe,
    index: *mut *mut nearsift_index,
) -> nearsift_status {
    // SAFETY: the contract is the same.
    guard(|| unsafe { open(folder, folder_length, recipe, Access::ReadOnly, index) })
}

/// Adds a document unless one has its id: `NEARSIFT_OUTCOME_ADDED` or `NEARSIFT_OUTCOME_EXISTS`.
///
/// `NEARSIFT_STATUS_NO_FINGERPRINT` when the text has none: it is not added. `outcome` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_insert(
    index: *const nearsift_index,
    id: *const c_char,
    id_length: usize,
    text_data: *const c_char,
    text_length: usize,
    outcome: *mut nearsift_outcome,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let document = unsafe { document(index, (id, id_length), (text_data, text_length)) }?;
        // SAFETY: the same.
        let outcome = unsafe { optional(outcome, "outcome") }?;
        let done = document.with_content(|store, content, metadata| {
            store.insert(Id::Text(document.id), content, metadata)
        })?;
        write_outcome(outcome, &done);
        Ok(())
    })
}

/// Adds a document, in place of the one that has its id: `NEARSIFT_OUTCOME_ADDED` or `NEARSIFT_OUTCOME_REPLACED`. See
/// `nearsift_index_insert`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_upsert(
    index: *const nearsift_index,
    id: *const c_char,
    id_length: usize,
    text_data: *const c_char,
    text_length: usize,
    outcome: *mut nearsift_outcome,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let document = unsafe { document(index, (id, id_length), (text_data, text_length)) }?;
        // SAFETY: the same.
        let outcome = unsafe { optional(outcome, "outcome") }?;
        let done = document.with_content(|store, content, metadata| {
            store.upsert(Id::Text(document.id), content, metadata)
        })?;
        write_outcome(outcome, &done);
        Ok(())
    })
}

/// Adds a document unless one has its id or is near, in one step that no other thread comes between: `NEARSIFT_OUTCOME_ADDED`,
/// `NEARSIFT_OUTCOME_EXISTS` or `NEARSIFT_OUTCOME_NEAR`.
///
/// `*matches` gets the nearest document when the outcome is `NEARSIFT_OUTCOME_NEAR`, and is NULL else; free it with
/// `nearsift_matches_free`. `matches` and `outcome` may be NULL. See `nearsift_index_insert`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_check_and_insert(
    index: *const nearsift_index,
    id: *const c_char,
    id_length: usize,
    text_data: *const c_char,
    text_length: usize,
    outcome: *mut nearsift_outcome,
    matches: *mut *mut nearsift_matches,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let matches = unsafe { optional(matches, "matches") }?.map(Out::cleared);
        // SAFETY: the same.
        let document = unsafe { document(index, (id, id_length), (text_data, text_length)) }?;
        // SAFETY: the same.
        let outcome = unsafe { optional(outcome, "outcome") }?;
        let done = document.with_content(|store, content, metadata| {
            store.insert_unless_near(Id::Text(document.id), content, metadata)
        })?;
        write_outcome(outcome, &done);
        if let (Outcome::Near { id, near }, Some(matches)) = (done, matches) {
            let bits = document.index.bits();
            matches.hand_over(nearsift_matches::new(vec![(id, near)], bits, false));
        }
        Ok(())
    })
}

/// `nearsift_index_check_and_insert` of many documents, in order, which share a sync of the disk: much faster than one by one. Each is
/// compared with those before it, too.
///
/// `outcomes` has room for `count`. `*matches` gets one match for each document whose outcome is `NEARSIFT_OUTCOME_NEAR`, in order: the
/// nearest document. `matches` may be NULL.
///
/// They are written in groups of up to 1,000. When the call fails, documents of earlier groups stay, and calling again finds them by
/// their ids; nothing is written when an argument is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_check_and_insert_many(
    index: *const nearsift_index,
    ids: *const nearsift_str,
    texts_data: *const nearsift_str,
    count: usize,
    outcomes: *mut nearsift_outcome,
    matches: *mut *mut nearsift_matches,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let matches = unsafe { optional(matches, "matches") }?.map(Out::cleared);
        // SAFETY: the same.
        let (index, ids, texts, outcomes) = unsafe {
            (
                reference(index, "index")?,
                texts(ids, count, "ids")?,
                texts(texts_data, count, "texts")?,
                slice_mut(outcomes, count, "outcomes")?,
            )
        };
        let (done, near) = index.check_and_insert_many(&ids, &texts)?;
        for (place, outcome) in outcomes.iter_mut().zip(done) {
            place.write(outcome);
        }
        if let Some(matches) = matches {
            matches.hand_over(nearsift_matches::new(near, index.bits(), false));
        }
        Ok(())
    })
}

/// Finds the indexed documents that a text is near to, the nearest first and equally near ones by ascending id; at most `limit`, or all
/// for 0.
///
/// `NEARSIFT_STATUS_NO_FINGERPRINT` when the text has none. On failure `*matches` is NULL. Free it with `nearsift_matches_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_query(
    index: *const nearsift_index,
    text_data: *const c_char,
    text_length: usize,
    limit: usize,
    matches: *mut *mut nearsift_matches,
) -> nearsift_status {
    // SAFETY: the contract is the same.
    guard(|| unsafe { query(index, (text_data, text_length), limit, matches, |_| Ok(None)) })
}

/// The same with another distance than that of the index, inclusive, in bits: for an index of fingerprints, at most its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_query_within(
    index: *const nearsift_index,
    text_data: *const c_char,
    text_length: usize,
    max_distance: u32,
    limit: usize,
    matches: *mut *mut nearsift_matches,
) -> nearsift_status {
    let near = |index: &nearsift_index| match index.store.kind() {
        Kind::Fingerprints { bits, .. } => {
            check_distance(max_distance, bits)?;
            Ok(Some(Near::Distance(max_distance)))
        }
        kind => Err(Failure::argument(format_args!(
            "the index holds {kind}, and a distance was asked: use nearsift_index_query_scoring"
        ))),
    };
    // SAFETY: the contract is the same.
    guard(|| unsafe { query(index, (text_data, text_length), limit, matches, near) })
}

/// The same with another score than that of the index, inclusive, from 0 to 1: of texts where the index keeps them, else of sketches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_query_scoring(
    index: *const nearsift_index,
    text_data: *const c_char,
    text_length: usize,
    min_score: f64,
    limit: usize,
    matches: *mut *mut nearsift_matches,
) -> nearsift_status {
    let near = |index: &nearsift_index| {
        let score = checked_score(min_score)?;
        match index.store.kind() {
            Kind::Sketches { .. } if index.store.texts().is_some() => {
                Ok(Some(Near::Text(TextScore::of(score))))
            }
            Kind::Sketches { .. } => Ok(Some(Near::Score(Score::at_least(score)))),
            kind => Err(Failure::argument(format_args!(
                "the index holds {kind}, and a score was asked: use nearsift_index_query_within"
            ))),
        }
    };
    // SAFETY: the contract is the same.
    guard(|| unsafe { query(index, (text_data, text_length), limit, matches, near) })
}

/// Removes a document: `NEARSIFT_OUTCOME_REMOVED` or `NEARSIFT_OUTCOME_ABSENT`. `outcome` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_delete(
    index: *const nearsift_index,
    id: *const c_char,
    id_length: usize,
    outcome: *mut nearsift_outcome,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, id, outcome) = unsafe {
            (reference(index, "index")?, text(id, id_length, "id")?, optional(outcome, "outcome")?)
        };
        write_outcome(outcome, &index.store.delete(Id::Text(id))?);
        Ok(())
    })
}

/// How large the index is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_get_stats(
    index: *const nearsift_index,
    stats: *mut nearsift_index_stats,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, out) = unsafe { (reference(index, "index")?, out(stats, "stats")?) };
        let stats = index.store.stats();
        out.write(nearsift_index_stats {
            documents: stats.documents,
            fresh: stats.fresh,
            segments: stats.segments.len() as u64,
            disk_bytes: stats.disk_bytes,
            log_bytes: stats.log_bytes,
            memory_bytes: stats.memory_bytes,
            dropped_bytes: stats.dropped_bytes,
        });
        Ok(())
    })
}

/// The recipe of the index in its written form. Free it with `nearsift_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_recipe(
    index: *const nearsift_index,
    written: *mut nearsift_string,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, written) = unsafe { (reference(index, "index")?, out(written, "written")?) };
        written.write(nearsift_string::new(&index.store.recipe().written));
        Ok(())
    })
}

/// Makes a segment of the documents that are in the log alone. Nothing depends on it: what was added is durable already; the index opens
/// faster afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_flush(index: *const nearsift_index) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        Ok(unsafe { reference(index, "index") }?.store.flush()?)
    })
}

/// Closes an index and frees the handle, also when it fails. NULL is fine. Nothing that was accepted is lost when it is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_index_close(index: *mut nearsift_index) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        match unsafe { take_back(index) } {
            Some(index) => Ok(index.store.close()?),
            None => Ok(()),
        }
    })
}

/// The number of matches, and whether there may be more: a search among sketches ends after 4,096 comparisons. `is_truncated` may be
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_matches_count(
    matches: *const nearsift_matches,
    count: *mut usize,
    is_truncated: *mut bool,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (matches, count, is_truncated) = unsafe {
            (
                reference(matches, "matches")?,
                out(count, "count")?,
                optional(is_truncated, "is_truncated")?,
            )
        };
        count.write(matches.matches.len());
        if let Some(is_truncated) = is_truncated {
            is_truncated.write(matches.is_truncated);
        }
        Ok(())
    })
}

/// A match by its place from 0. What it points to lives until `nearsift_matches_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_matches_get(
    matches: *const nearsift_matches,
    place: usize,
    found: *mut nearsift_match,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (matches, out) = unsafe { (reference(matches, "matches")?, out(found, "found")?) };
        let Some(found) = matches.matches.get(place) else {
            return Err(Failure::argument(format_args!(
                "there is no match {place}: expected a place below {}",
                matches.matches.len()
            )));
        };
        out.write(*found);
        Ok(())
    })
}

/// Frees matches. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_matches_free(matches: *mut nearsift_matches) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        drop(unsafe { take_back(matches) });
        Ok(())
    })
}

impl nearsift_matches {
    fn new(found: Vec<(OwnId, Near)>, bits: Option<Bits>, is_truncated: bool) -> nearsift_matches {
        let mut ids = Vec::with_capacity(found.len());
        let mut matches = Vec::with_capacity(found.len());
        for (id, near) in found {
            let id: Box<[u8]> = [id.to_string().as_bytes(), b"\0"].concat().into();
            let (evidence, distance, score) = match (near, bits) {
                (Near::Distance(distance), bits) => {
                    let bits = bits.map_or(64, Bits::count);
                    let score = nearsift::compare::score_of_distance(distance, bits);
                    (nearsift_evidence::Fingerprint, distance, score)
                }
                (Near::Score(score), _) => (nearsift_evidence::Sketch, 0, score.value()),
                (Near::Text(score), _) => (nearsift_evidence::Text, 0, score.value()),
            };
            let (data, id_length) = (id.as_ptr().cast(), id.len() - 1);
            matches.push(nearsift_match { id: data, id_length, evidence, distance, score });
            ids.push(id);
        }
        nearsift_matches { _ids: ids, matches, is_truncated }
    }
}

/// What became of documents, and what those that are near are near to.
type Done = (Vec<nearsift_outcome>, Vec<(OwnId, Near)>);

/// Documents that are written together, and bytes: a batch takes one more of the longest texts.
const GROUP: usize = 1000;
const GROUP_BYTES: usize = MAX_BATCH_BYTES / 2;

impl nearsift_index {
    /// The width of its fingerprints, if it holds these.
    fn bits(&self) -> Option<Bits> {
        match self.store.kind() {
            Kind::Fingerprints { bits, .. } => Some(bits),
            Kind::Sketches { .. } => None,
        }
    }

    /// What stands for a text, and the text where the index keeps it.
    ///
    /// # Errors
    /// It has no fingerprint, or is too long to be kept.
    fn made(&self, text: &str) -> Result<OwnContent, Failure> {
        let value = self.fingerprinters.with(text.len(), |fingerprinter| {
            Ok(Value::of_text(text, self.store.kind(), fingerprinter)?)
        })?;
        let content = self.store.content_of(value, text);
        content.map_err(|error| Failure::new(nearsift_status::TooLarge, error))
    }

    /// As `nearsift_index_check_and_insert_many`.
    fn check_and_insert_many(&self, ids: &[&str], texts: &[&str]) -> Result<Done, Failure> {
        let (mut outcomes, mut near) =
            (vec![nearsift_outcome::NoFingerprint; ids.len()], Vec::new());
        let mut groups: Vec<(Batch, Vec<usize>)> = Vec::new();
        for (place, (id, text)) in ids.iter().zip(texts).enumerate() {
            let content = match self.made(text) {
                Ok(made) => made,
                Err(failure) if failure.status() == nearsift_status::NoFingerprint => continue,
                Err(failure) => return Err(failure.of("texts", place)),
            };
            let is_full = |batch: &Batch| batch.len() >= GROUP || batch.bytes() >= GROUP_BYTES;
            if groups.last().is_none_or(|(batch, _)| is_full(batch)) {
                groups.push((self.store.batch(), Vec::new()));
            }
            let Some((batch, places)) = groups.last_mut() else { continue };
            let put = batch.insert_unless_near(Id::Text(id), content.as_content(), &seen_now(text));
            put.map_err(|error| Failure::from(error).of("ids", place))?;
            places.push(place);
        }
        for (batch, places) in groups {
            for (place, outcome) in places.into_iter().zip(self.store.write(&batch)?) {
                outcomes[place] = (&outcome).into();
                if let Outcome::Near { id, near: how } = outcome {
                    near.push((id, how));
                }
            }
        }
        Ok((outcomes, near))
    }
}

/// What is known of a document that is seen now.
fn seen_now(text: &str) -> Metadata {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Metadata { time: Some(now), length: Some(text.len() as u64), ..Metadata::default() }
}

/// A folder's name.
///
/// # Safety
/// The contract of this crate.
unsafe fn path<'a>(folder: *const c_char, length: usize) -> Result<&'a Path, Failure> {
    // SAFETY: the contract is the same.
    let folder = unsafe { text(folder, length, "folder") }?;
    if folder.is_empty() || folder.contains('\0') {
        return Err(Failure::argument(
            "'folder' is empty or has a NUL: expected the path of a folder, and its length without the NUL",
        ));
    }
    Ok(Path::new(folder))
}

/// # Safety
/// The contract of this crate.
unsafe fn open(
    folder: *const c_char,
    folder_length: usize,
    recipe: *const nearsift_recipe,
    access: Access,
    index: *mut *mut nearsift_index,
) -> Result<(), Failure> {
    // SAFETY: the contract is the same.
    let index = unsafe { out(index, "index") }?.cleared();
    // SAFETY: the contract is the same.
    let folder = unsafe { path(folder, folder_length) }?;
    let given = match recipe.is_null() {
        true => None,
        // SAFETY: the contract is the same.
        false => Some(unsafe { reference(recipe, "recipe") }?.recipe().clone()),
    };
    let expected = given.as_ref().map(RecipeMark::of);
    let store =
        Store::open_with(folder, Options { access, recipe: expected, ..Options::default() })?;
    let recipe = match given {
        Some(recipe) => recipe,
        None => Recipe::parse(&store.recipe().written)?,
    };
    let asked = RecipeMark::of(&recipe);
    if asked != *store.recipe() {
        // Its dictionaries were others.
        let (path, stored) = (folder.to_owned(), Box::new(store.recipe().clone()));
        return Err(StoreError::Recipe { path, stored, asked: Box::new(asked) }.into());
    }
    if store.ids() != IdKind::Texts {
        return Err(Failure::argument(format_args!(
            "{}: the ids of the index are {}: expected an index whose ids are texts",
            folder.display(),
            store.ids()
        )));
    }
    recipe.fingerprinter()?;
    index.hand_over(nearsift_index { store, fingerprinters: Fingerprinters::new(recipe) });
    Ok(())
}

/// A document on its way to an index.
struct Document<'a> {
    index: &'a nearsift_index,
    id: &'a str,
    text: &'a str,
}

/// # Safety
/// The contract of this crate.
unsafe fn document<'a>(
    index: *const nearsift_index,
    (id, id_length): (*const c_char, usize),
    (data, length): (*const c_char, usize),
) -> Result<Document<'a>, Failure> {
    // SAFETY: the contract is the same.
    unsafe {
        Ok(Document {
            index: reference(index, "index")?,
            id: text(id, id_length, "id")?,
            text: text(data, length, "text")?,
        })
    }
}

impl Document<'_> {
    fn with_content(
        &self,
        write: impl FnOnce(&Store, Content<'_>, &Metadata) -> Result<Outcome, StoreError>,
    ) -> Result<Outcome, Failure> {
        let content = self.index.made(self.text)?;
        Ok(write(&self.index.store, content.as_content(), &seen_now(self.text))?)
    }
}

fn write_outcome(place: Option<Out<nearsift_outcome>>, outcome: &Outcome) {
    if let Some(place) = place {
        place.write(outcome.into());
    }
}

impl From<&Outcome> for nearsift_outcome {
    fn from(outcome: &Outcome) -> nearsift_outcome {
        match outcome {
            Outcome::Added => nearsift_outcome::Added,
            Outcome::Replaced => nearsift_outcome::Replaced,
            Outcome::Exists => nearsift_outcome::Exists,
            Outcome::Near { .. } => nearsift_outcome::Near,
            Outcome::Removed => nearsift_outcome::Removed,
            Outcome::Absent => nearsift_outcome::Absent,
        }
    }
}

/// # Safety
/// The contract of this crate.
unsafe fn query(
    index: *const nearsift_index,
    (data, length): (*const c_char, usize),
    limit: usize,
    matches: *mut *mut nearsift_matches,
    near: impl FnOnce(&nearsift_index) -> Result<Option<Near>, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the contract is the same.
    let matches = unsafe { out(matches, "matches") }?.cleared();
    // SAFETY: the contract is the same.
    let (index, text) = unsafe { (reference(index, "index")?, text(data, length, "text")?) };
    let near = near(index)?;
    let content = index.made(text)?;
    let ask = Ask { near, limit: (limit > 0).then_some(limit), ..Ask::default() };
    let Answer { matches: found, truncated, .. } = index.store.query(content.as_content(), &ask)?;
    let found = found.into_iter().map(|found| (found.id, found.near)).collect();
    matches.hand_over(nearsift_matches::new(found, index.bits(), truncated));
    Ok(())
}
