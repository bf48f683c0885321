//! The durable index: 'have I seen this document?', answered fast, and remembered through crashes.
//!
//! A [`Store`] is a folder of fingerprints or dual sketches with ids. What [`Store::write`] has accepted is on the
//! disk; documents are found exactly by distance, or by score through their candidate keys.
//!
//! ```
//! use nearsift::fingerprint::{Bits, Fingerprint};
//! use nearsift_store::{Ask, IdKind, Kind, Metadata, RecipeMark, Settings, Store, Value};
//!
//! let folder = tempfile::tempdir()?;
//! let settings = Settings {
//!     kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
//!     ids: IdKind::Texts,
//!     recipe: RecipeMark { written: "simhash64".into(), digest: 0x1234 },
//!     hash_key: None,
//!     texts: None,
//! };
//! let path = folder.path().join("seen");
//! let store = Store::create(&path, &settings)?;
//! let page = Value::from(Fingerprint::from_u64(0b1011));
//! store.insert("http://a/".into(), &page, &Metadata::default())?;
//! store.close()?;
//!
//! let store = Store::open(&path)?;
//! let near = store.query(&Value::from(Fingerprint::from_u64(0b1000)), &Ask::default())?;
//! assert_eq!(near.matches[0].id.to_string(), "http://a/");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! A write is appended to the log and synced, together with those of other threads that wait; then it is filed in the
//! memory table and seen by queries. A full memory table becomes a segment: a file that never changes,
//! with the tables that find its documents. Segments are merged so that each is several times larger than all smaller ones
//! together. The manifest says which segments are live and which log goes on from them; it is
//! replaced by a rename. A removed document of a segment is a bit in memory, written beside the segment when the log
//! that removed it is let go. `docs/operate/file-format.md` has every byte.
//!
//! # What is promised
//!
//! - What was accepted survives a crash of the process and of the machine; a batch as a whole or not at all.
//! - After a sync that failed nothing is written until the store is opened again.
//! - Bytes that are not what was written are told, not used. The one exception is the last frame of the log of a store that
//!   was not closed: damage there cannot be told from a write that a crash tore, and is dropped.
//! - Segments never change; a published file is removed only when no manifest names it.
//! - All file access is in [`disk`].

mod batch;
mod bitmap;
mod cancel;
mod codec;
pub mod disk;
mod document;
mod error;
mod id_filter;
mod log;
mod manifest;
mod memory;
mod planted;
mod priority;
mod schema;
mod sealed;
mod segment;
mod store;
mod sync;
mod text;

pub use batch::{Batch, MAX_BATCH_BYTES, Outcome};
pub use cancel::Cancellation;
pub use document::{
    Content, Document, Id, MAX_ID_BYTES, MAX_SOURCE_BYTES, Metadata, OwnContent, OwnId,
    StoredValue, Value,
};
pub use error::StoreError;
pub use priority::Priority;
pub use schema::{IdKind, Kind, NotIndexed, RecipeMark, Settings};
pub use store::{
    Access, Answer, Ask, Clock, Documents, Evidence, Loan, Maintenance, Match, Near, Options,
    Repaired, SegmentStats, Sighting, Stats, Store, TextMemory, Verified, repair, restore, verify,
};
pub use text::{CANDIDATE_SCORE, MAX_TEXT_BYTES, Text, TextScore};
