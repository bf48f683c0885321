//! Near-duplicate jobs over files of documents, as a library: what the program `nearsift` runs.
//!
//! A job takes inputs, settings that decide its result, and a [`Context`] that does not: who watches it, who may stop it, how
//! much memory it has. It returns values, or writes a folder of results that can be resumed after a kill.
//!
//! ```
//! use nearsift_batch::{Context, dedup};
//! use nearsift_io::ReadOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let input = folder.path().join("news.jsonl");
//! std::fs::write(&input, r#"{"id": "a", "text": "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。"}
//! {"id": "b", "text": "本报讯：昨天的大雨使两条地铁线路停运了三个小时。"}
//! {"id": "c", "text": "今天下午，市图书馆举办了一场儿童绘本阅读活动。"}
//! "#)?;
//! let (settings, context) = (dedup::Settings::default(), Context::default());
//! let inputs = nearsift_batch::open(&[&input], ReadOptions::default())?;
//!
//! // As values:
//! let found = dedup::find(&inputs, &settings, &context)?;
//! let gone = found.removals().next().expect("one goes");
//! assert_eq!(found.id(gone.document)?.to_string(), "c");
//! assert_eq!(found.id(gone.representative)?.to_string(), "a");
//!
//! // As a folder: kept/, removed.jsonl, pairs.jsonl, clusters.jsonl, report.html, summary.json.
//! let output = dedup::Output::new(folder.path().join("out"));
//! dedup::run(&inputs, &settings, &output, &context)?;
//! assert_eq!(std::fs::read_to_string(output.folder.join("kept/news.jsonl"))?.lines().count(), 2);
//! # Ok(()) }
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`mod@dedup`] | decides which documents stay, and why the others go |
//! | [`parts`] | finds out about the documents of some files what another machine decides by |
//! | [`pairs`] | all pairs of near duplicates, and the passages that documents share |
//! | [`trim`] | removes the lines or paragraphs that documents repeat |
//! | [`decontaminate`] | finds the items of benchmarks in documents |
//! | [`tune`] | proposes a threshold for the user's own documents |
//! | [`eval`] | measures pairs and clusters against a truth |
//! | [`compare`] | compares two documents by every measure |
//! | [`fingerprint`] | the fingerprint or sketch of every document |
//! | [`index`] | puts documents into a durable index, and asks it about documents |
//!
//! Jobs print nothing and read no environment, but for the system's folder for temporary files, which is the default of
//! [`Context::scratch`]. They run on the threads of the rayon pool that they are called in, or rayon's global one. The same
//! input and settings give the same bytes, whatever the context.

mod admission;
mod bits;
mod checkpoint;
mod choice;
pub mod compare;
mod context;
mod corpus;
pub mod decontaminate;
pub mod dedup;
mod documents;
mod error;
pub mod eval;
mod external_sort;
pub mod fingerprint;
mod folder;
pub mod index;
mod inputs;
mod marks;
mod notice;
pub mod numbers;
pub mod pairs;
mod partial;
pub mod parts;
mod remark;
mod report;
mod scan;
mod search;
#[cfg(feature = "arrow")]
mod tables;
pub mod trim;
pub mod tune;
mod written;

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use choice::{Choice, MethodName, RecipeChoice, Verify};
pub use context::{Bounds, Context, EarlierResults, Interrupt, Observer, Phase};
pub use corpus::Id;
pub use documents::Text;
pub use error::Error;
pub use inputs::{FoundDocument, find_documents, open, read_one, read_texts};
pub use nearsift::search::{Acceptance, Method};
pub use notice::{Level, Notice, Topic, spell};
#[doc(hidden)]
pub use remark::REMARKS;
pub use report::PageLanguage;
#[cfg(feature = "arrow")]
pub use tables::Tables;

/// A lock that another thread's panic does not spoil: the panic itself is what reaches the caller.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads bytes from a place in a file that other threads may read, too.
///
/// # Errors
/// What the system says, or the end of the file.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Reads bytes from a place in a file that other threads may read, too.
///
/// # Errors
/// What the system says, or the end of the file.
#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_read(&mut bytes[done..], at + done as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}
