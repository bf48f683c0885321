//! Batches: operations that become durable together or not at all.

use crate::StoreError;
use crate::codec::Output;
use crate::document::{Content, Id, Metadata, OwnId, Tag};
use crate::schema::Schema;
use crate::store::{Near, Sighting};

/// The most bytes of a batch.
pub const MAX_BATCH_BYTES: usize = 64 << 20;

/// Operations that become durable together or not at all. They are done in order: an id may
/// occur more than once.
///
/// ```
/// use nearsift::fingerprint::Fingerprint;
/// use nearsift_store::{Metadata, Outcome, Value};
/// # use nearsift::fingerprint::Bits;
/// # use nearsift_store::{Store, Settings, Kind, IdKind, RecipeMark};
/// # let folder = tempfile::tempdir()?;
/// # let settings = Settings {
/// #     kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 }, ids: IdKind::Texts,
/// #     recipe: RecipeMark { written: "simhash64".into(), digest: 1 }, hash_key: None, texts: None };
/// # let store = Store::create(&folder.path().join("store"), &settings)?;
/// let mut batch = store.batch();
/// batch.insert("a".into(), &Value::from(Fingerprint::from_u64(7)), &Metadata::default())?;
/// batch.insert("a".into(), &Value::from(Fingerprint::from_u64(8)), &Metadata::default())?;
/// batch.delete("b".into())?;
/// assert_eq!(store.write(&batch)?, [Outcome::Added, Outcome::Exists, Outcome::Absent]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batch {
    pub(crate) schema: std::sync::Arc<Schema>,
    pub(crate) bytes: Vec<u8>,
    /// The hash of each operation's id: computed here and not by the one thread that writes for all.
    pub(crate) hashes: Vec<u64>,
    /// What was looked for ahead, by the number of the operation, ascending.
    pub(crate) sightings: Vec<(u32, Sighting)>,
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A document was added under an id that was free.
    Added,
    /// A document took the place of one with the same id.
    Replaced,
    /// Nothing was done: a document has this id.
    Exists,
    /// Nothing was done: this document is near enough.
    Near {
        /// The nearest document, of equally near ones that with the least id.
        id: OwnId,
        /// How near it is.
        near: Near,
    },
    /// The document was removed.
    Removed,
    /// There was none to remove.
    Absent,
}

impl Batch {
    pub(crate) fn new(schema: std::sync::Arc<Schema>) -> Batch {
        Batch { schema, bytes: Vec::new(), hashes: Vec::new(), sightings: Vec::new() }
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of the operations, at most [`MAX_BATCH_BYTES`].
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Forgets all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.hashes.clear();
        self.sightings.clear();
    }

    /// Adds a document unless one has this id.
    ///
    /// # Errors
    /// [`StoreError::Id`] or [`StoreError::Invalid`]: the document does not fit the store, or the batch is
    /// full ([`MAX_BATCH_BYTES`]), or lacks its text where the store keeps texts. The batch stays as it was.
    ///
    /// # Complexity
    /// Linear in the document's bytes, as of every operation that is added here; nothing is looked up before
    /// [`Store::write`](crate::Store::write).
    pub fn insert<'c>(
        &mut self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<(), StoreError> {
        self.put(Tag::Insert, id, content.into(), metadata)
    }

    /// Adds a document unless one has this id, or one is as near as the store was created for. Of several
    /// near ones it is told which is the nearest. For sketches, near ones are found as a query finds them; where texts are
    /// kept these decide.
    ///
    /// # Errors
    /// As [`insert`](Batch::insert).
    ///
    /// # Complexity
    /// As [`insert`](Batch::insert).
    pub fn insert_unless_near<'c>(
        &mut self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<(), StoreError> {
        self.put(Tag::InsertUnlessNear, id, content.into(), metadata)
    }

    /// The same of a value that was looked for ahead by [`Store::look`](crate::Store::look): who writes the batch compares it
    /// only with what was written since. What becomes of it is what [`insert_unless_near`](Batch::insert_unless_near)
    /// would find.
    ///
    /// # Errors
    /// As [`insert`](Batch::insert).
    ///
    /// # Complexity
    /// As [`insert`](Batch::insert); what was found is shared, not copied.
    pub fn insert_unless_near_since(
        &mut self,
        id: Id<'_>,
        sighting: &Sighting,
        metadata: &Metadata,
    ) -> Result<(), StoreError> {
        self.put(Tag::InsertUnlessNear, id, sighting.content(), metadata)?;
        self.sightings.push((self.hashes.len() as u32 - 1, sighting.clone()));
        Ok(())
    }

    /// Adds a document, in place of one that has this id.
    ///
    /// # Errors
    /// As [`insert`](Batch::insert).
    ///
    /// # Complexity
    /// As [`insert`](Batch::insert).
    pub fn upsert<'c>(
        &mut self,
        id: Id<'_>,
        content: impl Into<Content<'c>>,
        metadata: &Metadata,
    ) -> Result<(), StoreError> {
        self.put(Tag::Put, id, content.into(), metadata)
    }

    /// Removes the document with this id, if there is one.
    ///
    /// # Errors
    /// As [`insert`](Batch::insert).
    ///
    /// # Complexity
    /// Linear in the id's bytes.
    pub fn delete(&mut self, id: Id<'_>) -> Result<(), StoreError> {
        id.check(&self.schema)?;
        let before = self.bytes.len();
        self.bytes.push(Tag::Delete as u8);
        id.write(&mut self.bytes);
        self.settle(before, id)
    }

    fn put(
        &mut self,
        tag: Tag,
        id: Id<'_>,
        content: Content<'_>,
        metadata: &Metadata,
    ) -> Result<(), StoreError> {
        id.check(&self.schema)?;
        content.check(&self.schema)?;
        metadata.check()?;
        let before = self.bytes.len();
        self.bytes.push(tag as u8);
        id.write(&mut self.bytes);
        for word in content.value.words() {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        for key in content.value.keys() {
            self.bytes.extend_from_slice(&key.to_le_bytes());
        }
        metadata.write(&mut self.bytes);
        if self.schema.texts.is_some() {
            let packed = content.packed();
            self.bytes.put_u32(packed.len() as u32);
            self.bytes.put(packed);
        }
        self.settle(before, id)
    }

    fn settle(&mut self, before: usize, id: Id<'_>) -> Result<(), StoreError> {
        if self.bytes.len() > MAX_BATCH_BYTES {
            self.bytes.truncate(before);
            return Err(StoreError::Invalid(format!(
                "the batch would have more than {MAX_BATCH_BYTES} bytes: write it and start another"
            )));
        }
        self.hashes.push(self.schema.hash(id));
        Ok(())
    }
}
