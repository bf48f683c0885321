//! The columns of a corpus that candidates are searched in: its sketches, and its keys.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;

use crate::pages;
use crate::prefetch::prefetch_one;
use crate::sketch::{KEYS, Keys, Sketch, WORDS};

/// The key of a document that has none: it brings no documents together.
///
/// A document without a sketch has 32 of them. A real key that happens to have this value, one in
/// 2^32, is lost, and its document has 31 others.
pub const NO_KEY: u32 = 0;

/// The sketches of a corpus by the number of the document: 64 bytes each.
///
/// A document may have none, if it has too few features. Its place holds 64 bytes of 0, which no
/// text's sketch is.
///
/// ```
/// use nearsift::sketch::{Sketch, join::Sketches};
/// let mut sketches = Sketches::new();
/// sketches.push(Some(&Sketch::from_words([1; 8])));
/// sketches.push(None);
/// assert_eq!(sketches.len(), 2);
/// assert_eq!(sketches.get(0), Some(Sketch::from_words([1; 8])));
/// assert_eq!(sketches.get(1), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketches {
    words: Vec<[u64; WORDS]>,
}

const NO_SKETCH: [u64; WORDS] = [0; WORDS];

impl Sketches {
    /// No documents.
    pub fn new() -> Sketches {
        Sketches::default()
    }

    /// No documents, and room for some.
    pub fn with_capacity(documents: usize) -> Sketches {
        Sketches { words: Vec::with_capacity(documents) }
    }

    /// Appends a document's sketch, or `None` for a document without one.
    pub fn push(&mut self, sketch: Option<&Sketch>) {
        // They will be read at random places.
        pages::reserve(&mut self.words, 1);
        self.words.push(sketch.map_or(NO_SKETCH, |sketch| *sketch.words()));
    }

    /// Appends the documents of another column.
    pub(crate) fn append(&mut self, mut other: Sketches) {
        pages::reserve(&mut self.words, other.words.len());
        self.words.append(&mut other.words);
    }

    /// The number of documents, those without a sketch included.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The sketch of a document, if it has one.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn get(&self, document: usize) -> Option<Sketch> {
        let words = self.words[document];
        (words != NO_SKETCH).then_some(Sketch::from_words(words))
    }

    /// Takes the sketch of a document away.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn remove(&mut self, document: usize) {
        self.words[document] = NO_SKETCH;
    }

    /// The documents that have a sketch, ascending.
    pub(super) fn present(&self) -> impl Iterator<Item = (u32, &[u64; WORDS])> {
        (0u32..).zip(&self.words).filter(|(_, words)| **words != NO_SKETCH)
    }

    /// Asks for a sketch that will be read.
    #[inline]
    pub(super) fn prefetch(&self, document: u32) {
        prefetch_one(&self.words, document as usize);
    }

    #[inline]
    pub(super) fn words(&self, document: u32) -> &[u64; WORDS] {
        &self.words[document as usize]
    }
}

/// The keys of a corpus, by the number of the key and then of the document: 128 bytes a document,
/// needed only while candidates are searched.
///
/// ```
/// use nearsift::sketch::{KEYS, join::{KeyColumns, NO_KEY}};
/// let mut keys = KeyColumns::new();
/// keys.push(&std::array::from_fn(|i| i as u32 + 1));
/// keys.push(&[NO_KEY; KEYS]);
/// assert_eq!(keys.len(), 2);
/// assert_eq!(keys.column(31), [32, 0]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyColumns {
    columns: [Vec<u32>; KEYS],
}

impl KeyColumns {
    /// No documents.
    pub fn new() -> KeyColumns {
        KeyColumns::default()
    }

    /// No documents, and room for some.
    pub fn with_capacity(documents: usize) -> KeyColumns {
        KeyColumns { columns: std::array::from_fn(|_| Vec::with_capacity(documents)) }
    }

    /// Appends a document's keys; [`NO_KEY`] in every place for a document without a sketch.
    pub fn push(&mut self, keys: &Keys) {
        for (column, &key) in self.columns.iter_mut().zip(keys) {
            column.push(key);
        }
    }

    /// Appends the keys of other documents.
    pub(crate) fn append(&mut self, mut other: KeyColumns) {
        self.columns.iter_mut().zip(&mut other.columns).for_each(|(all, own)| all.append(own));
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of that number of every document.
    ///
    /// # Panics
    /// When `key` is [`KEYS`] or more.
    pub fn column(&self, key: usize) -> &[u32] {
        &self.columns[key]
    }
}

/// Where the keys of a corpus are: in memory, as [`KeyColumns`], or wherever the caller keeps them. A
/// search reads the columns one after the other and holds one at a time, 4 bytes a document.
pub trait KeySource: fmt::Debug + Sync {
    /// Why a column cannot be read. It ends the search.
    type Error;

    /// The number of documents.
    fn documents(&self) -> usize;

    /// The key of that number of every document.
    ///
    /// # Errors
    /// When it cannot be read.
    fn column(&self, key: usize) -> Result<Cow<'_, [u32]>, Self::Error>;
}

impl KeySource for KeyColumns {
    type Error = Infallible;

    fn documents(&self) -> usize {
        self.len()
    }

    fn column(&self, key: usize) -> Result<Cow<'_, [u32]>, Infallible> {
        Ok(Cow::Borrowed(&self.columns[key]))
    }
}
