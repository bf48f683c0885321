//! What the first pass found, on disk: a shard is a run of batches whose documents' columns were kept.
//!
//! `N.keys` holds keys of sketches by column, `N.sample` the document frequencies up to here, `N.texts` the texts where
//! these are kept, and `N.columns` all else; it is written last, so a shard is there when that file is. Only the newest
//! sample is kept: it counts the shards before it too.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use nearsift::feature::sample::FrequencySample;
use serde::{Deserialize, Serialize};

use super::sources::SourcesPart;
use super::{Columns, Counts, Id, SharedSample, Sketched};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::file::{self, ByteReader};
use crate::error::Error;

/// What a shard says of itself. Batches, records, problems and counts are those of its lane.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Head {
    pub documents: u32,
    /// Batches up to its end.
    pub batches: u64,
    /// Records up to its end.
    pub records: u64,
    /// The records in it that are no documents.
    pub unreadable: Vec<u64>,
    /// The lines of `unreadable.jsonl` about these.
    pub notes: Vec<String>,
    /// Problems up to its end.
    pub problems: u64,
    /// Counts up to its end.
    pub counts: Counts,
    /// Where its documents come from, when a field says so.
    pub sources: SourcesPart,
}

/// How much zstd packs a sample: what lies on the disk for some minutes is worth little time.
const PACKING: i32 = -3;

/// A shard by the number of its lane and its number in the lane.
pub type ShardPlace = (usize, usize);

fn name((lane, shard): ShardPlace, what: &str) -> String {
    format!("{lane:03}-{shard:08}.{what}")
}

/// The name of the sample as it was when so many shards had been made before, those of all lanes.
fn sample_name(count: usize) -> String {
    format!("{count:08}.sample")
}

/// The file with a shard's keys.
pub fn keys_path(folder: &Path, place: ShardPlace) -> PathBuf {
    folder.join(name(place, "keys"))
}

/// The file with the texts of a shard.
pub fn texts_path(folder: &Path, place: ShardPlace) -> PathBuf {
    folder.join(name(place, "texts"))
}

/// A shard that is ready to be written.
pub struct Shard {
    place: ShardPlace,
    keys: Option<Vec<u8>>,
    /// With the number of shards that were made before.
    sample: Option<(usize, Vec<u8>)>,
    texts: Option<Vec<u8>>,
    columns: Vec<u8>,
}

impl Shard {
    /// That of the documents of a lane from `first` on, without texts and sample. What need not stay in memory is released.
    ///
    /// # Errors
    /// When it cannot be written down, or an id cannot be read back.
    pub fn of<'i, C: Columns>(
        place: ShardPlace,
        head: &Head,
        ids: impl Iterator<Item = Result<Id<'i>, Error>>,
        columns: &mut C,
        first: u32,
    ) -> Result<Shard, Error> {
        let keys = columns.release_keys();
        let head = serde_json::to_vec(head).map_err(Error::invalid)?;
        let mut content = (head.len() as u64).to_le_bytes().to_vec();
        content.extend_from_slice(&head);
        for id in ids {
            let id = id?;
            // A record that holds an id of 4 GiB is not read.
            let id = id.written().as_bytes();
            content.extend_from_slice(&(id.len() as u32).to_le_bytes());
            content.extend_from_slice(id);
        }
        columns.save(first, &mut content);
        Ok(Shard { place, keys, sample: None, texts: None, columns: content })
    }

    /// The same with the texts of its documents, as [`super::texts`] packs them.
    pub fn with_texts(self, texts: Option<Vec<u8>>) -> Shard {
        Shard { texts, ..self }
    }

    /// The same with the sample so far, when `count` shards had been made before. It has the documents of all of these, and perhaps
    /// some of later ones, which change nothing when they are counted once more.
    pub fn with_sample(self, count: usize, sample: Option<Vec<u8>>) -> Shard {
        Shard { sample: sample.map(|sample| (count, sample)), ..self }
    }

    fn write(self, state: &Checkpoint) -> Result<(), Error> {
        let Shard { place, keys, sample, texts, columns } = self;
        if let Some(keys) = keys {
            state.write(&name(place, "keys"), &keys)?;
        }
        if let Some(texts) = texts {
            state.write(&name(place, "texts"), &texts)?;
        }
        if let Some((count, sample)) = &sample {
            let packed = zstd::bulk::compress(sample, PACKING).map_err(Error::invalid)?;
            state.write(&sample_name(*count), &packed)?;
        }
        state.write(&name(place, "columns"), &columns)?;
        state.keep_work();
        if let Some(before) = sample.and_then(|(count, _)| count.checked_sub(1)) {
            state.remove(&sample_name(before));
        }
        Ok(())
    }
}

/// Writes shards in order, on a thread of its own: the pass goes on while they reach the disk.
pub struct Writer<'scope> {
    ready: SyncSender<Shard>,
    thread: ScopedJoinHandle<'scope, Result<(), Error>>,
}

impl<'scope> Writer<'scope> {
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        state: &'scope Checkpoint,
    ) -> Result<Writer<'scope>, Error> {
        // While one is written another waits, and the pass with a third.
        let (ready, shards) = sync_channel::<Shard>(1);
        let work = move || shards.into_iter().try_for_each(|shard| shard.write(state));
        let thread = Builder::new().name("nearsift-state".to_owned()).spawn_scoped(scope, work);
        let thread = thread.map_err(Error::invalid)?;
        Ok(Writer { ready, thread })
    }

    /// Hands the next shard over, and tells whether it was taken: not when one before it could not be written, and
    /// [`finish`](Writer::finish) says why.
    #[must_use]
    pub fn push(&self, shard: Shard) -> bool {
        self.ready.send(shard).is_ok()
    }

    /// Waits until all are written.
    ///
    /// # Errors
    /// When one could not be.
    pub fn finish(self) -> Result<(), Error> {
        drop(self.ready);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Takes up the shards of a lane that are in a folder, in order, and calls `each` with what they say of themselves and
/// the ids of their documents. Returns how many there are.
///
/// # Errors
/// A file that cannot be read or is damaged, or what `each` returns.
pub fn load<C: Columns>(
    folder: &Path,
    lane: usize,
    columns: &mut C,
    mut each: impl FnMut(Head, Vec<&str>) -> Result<(), Error>,
) -> Result<usize, Error> {
    each_shard(folder, lane, |content, damaged| {
        let (head, ids) = head_and_ids(content).ok_or_else(damaged)?;
        columns.load(content, head.documents).ok_or_else(damaged)?;
        columns.release_keys();
        each(head, ids)
    })
}

/// Calls `each` with what the shards of a lane in a folder say of themselves, in order.
///
/// # Errors
/// As [`load`].
pub fn each_head(
    folder: &Path,
    lane: usize,
    mut each: impl FnMut(Head) -> Result<(), Error>,
) -> Result<usize, Error> {
    each_shard(folder, lane, |content, damaged| each(head_of(content).ok_or_else(damaged)?))
}

/// Calls `each` with the ids of the documents of the shards of a lane in a folder, in order, in their
/// [written](Id::written) form.
///
/// # Errors
/// As [`load`].
pub fn each_id(
    folder: &Path,
    lane: usize,
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<usize, Error> {
    each_shard(folder, lane, |content, damaged| {
        let (_, ids) = head_and_ids(content).ok_or_else(damaged)?;
        ids.into_iter().try_for_each(&mut each)
    })
}

fn each_shard(
    folder: &Path,
    lane: usize,
    mut each: impl FnMut(&mut ByteReader<'_>, &dyn Fn() -> Error) -> Result<(), Error>,
) -> Result<usize, Error> {
    for shard in 0.. {
        let path = folder.join(name((lane, shard), "columns"));
        let content = file::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let Some(content) = content else { return Ok(shard) };
        let damaged = || {
            Error::invalid(format!(
                "{}: not what this program wrote: remove the folder to begin again",
                path.display()
            ))
        };
        each(&mut ByteReader(&content), &damaged)?;
    }
    unreachable!("a folder has an end")
}

/// Goes on with the sample that the last of so many shards left, those of all lanes.
///
/// # Errors
/// When it cannot be read or is damaged.
pub fn load_sample<C: Columns>(
    folder: &Path,
    shards: usize,
    shared: &C::Shared,
) -> Result<(), Error> {
    let Some(last) = shards.checked_sub(1).filter(|_| C::sample(shared).is_some()) else {
        return Ok(());
    };
    let path = folder.join(sample_name(last));
    let packed = file::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
    let restored = packed
        .and_then(|packed| zstd::stream::decode_all(packed.as_slice()).ok())
        .and_then(|sample| C::restore_sample(shared, &sample));
    restored.ok_or_else(|| {
        Error::invalid(format!("{}: damaged: remove the folder to begin again", path.display()))
    })
}

/// The sample that the last of so many shards left, if it is still there.
///
/// # Errors
/// When it cannot be read or is damaged.
pub fn kept_sample(folder: &Path, shards: usize) -> Result<Option<FrequencySample>, Error> {
    let last = shards.checked_sub(1).filter(|&last| folder.join(sample_name(last)).is_file());
    if last.is_none() {
        return Ok(None);
    }
    let (shared, mut columns) = (SharedSample::default(), Sketched::default());
    load_sample::<Sketched>(folder, shards, &shared)?;
    columns.take_sample(shared);
    Ok(Some(columns.sample))
}

/// Removes the sample that the last of so many shards left.
pub fn remove_sample(folder: &Path, shards: usize) {
    if let Some(last) = shards.checked_sub(1) {
        // It may be gone already.
        drop(std::fs::remove_file(folder.join(sample_name(last))));
    }
}

fn head_of(content: &mut ByteReader<'_>) -> Option<Head> {
    let head = usize::try_from(content.u64()?).ok()?;
    serde_json::from_slice(content.bytes(head)?).ok()
}

fn head_and_ids<'b>(content: &mut ByteReader<'b>) -> Option<(Head, Vec<&'b str>)> {
    let head = head_of(content)?;
    let ids = (0..head.documents).map(|_| {
        let len = content.u32()? as usize;
        std::str::from_utf8(content.bytes(len)?).ok()
    });
    let ids = ids.collect::<Option<_>>()?;
    Some((head, ids))
}
