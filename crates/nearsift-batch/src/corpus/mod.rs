//! The first pass: a few numbers and the id of every document, in columns.

use std::ops::Add;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use nearsift::dedup::{Corpus, Entry, Keep, MAX_DOCUMENTS, SketchCorpus, SketchEntry};
use nearsift::feature::sample::FrequencySample;
use nearsift::fingerprint::Fingerprint;
use nearsift::recipe::Sketched as SketchAndKeys;
use nearsift::recipe::{Fingerprinter, NoFingerprint, Outcome, Recipe};
use nearsift::sketch::join::NO_KEY;
use nearsift::sketch::{KEYS, Sketch, WORDS};
use nearsift_io::{Batch, Inputs, Note, Place, Value};
use serde::{Deserialize, Serialize};

mod ids;
mod lacking;
pub mod shard;
mod sources;
mod statistics;
pub mod texts;

use crate::checkpoint::file::ByteReader;
use crate::checkpoint::{Checkpoint, FileKeys};
use crate::context::{Context, Phase};
use crate::error::Error;
use crate::lock;
use crate::scan::{Lane, Opened, Pass, Problems, Seen, Take, scan_into};
pub use ids::{Id, Ids};
pub use lacking::Lacking;
use shard::{Head, Shard};
pub use sources::{Names, SourceColumn};
pub use statistics::with_statistics;
use texts::PackedTexts;

/// What the first pass found.
pub struct Collected<C> {
    /// The documents, without the records that are none.
    pub corpus: C,
    pub ids: Ids,
    /// Which record each document is: the records are numbered from 0 over the whole input.
    pub records: Records,
    pub problems: Problems,
    /// Files without documents.
    pub lacking: Lacking,
    pub counts: Counts,
    /// The documents' keys, where they are not among the columns.
    pub keys: Option<FileKeys>,
    /// Where each document comes from, when a field says so.
    pub sources: Option<SourceColumn>,
    /// Of each lane, in order, how many shards the state has.
    pub lanes: Vec<usize>,
    /// Lines about whole files, and about records that were never seen as such.
    pub unseen: Vec<String>,
    /// Bytes of texts that could not be decoded, for a guess at their charset.
    undecoded: Vec<u8>,
    /// Records of the files that [were appended](Collected::append).
    seen: u64,
}

/// What is kept of each document.
pub struct Wanted<'a> {
    pub recipe: &'a Recipe,
    pub keep: &'a Keep,
    /// The field whose value says where a document comes from.
    pub source_field: Option<&'a str>,
    /// A reader at the beginning of the input, if there is one already.
    pub opened: Option<&'a Mutex<Option<Opened>>>,
    /// Whether the state keeps the texts, too.
    pub texts: bool,
}

impl<'a> Wanted<'a> {
    /// What a recipe makes, and no more.
    pub fn by(recipe: &'a Recipe) -> Wanted<'a> {
        Wanted { recipe, keep: &Keep::First, source_field: None, opened: None, texts: false }
    }
}

/// The places of wanted fields among those that are read.
#[derive(Clone, Copy)]
struct Fields {
    keep: Option<usize>,
    source: Option<usize>,
}

impl Fields {
    fn of(inputs: &Inputs, wanted: &Wanted<'_>) -> Fields {
        let place = |field: &str| inputs.options().fields.iter().position(|read| read == field);
        Fields {
            keep: wanted.keep.field().and_then(place),
            source: wanted.source_field.and_then(place),
        }
    }
}

/// The bytes that are kept of each text that could not be decoded, and of all of them.
const UNDECODED: [usize; 2] = [512, 32 << 10];

impl<C> Collected<C> {
    /// The charset that what could not be decoded looks like, if it is not UTF-8 with some damage.
    pub fn likely_charset(&self) -> Option<&'static str> {
        if self.undecoded.is_empty() {
            return None;
        }
        nearsift::text::decode::likely_charset(&self.undecoded)
    }
}

/// What else is worth telling about the documents.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub struct Counts {
    pub without_text: u64,
    pub navigation_only: u64,
    pub too_few_features: u64,
    #[serde(default)]
    pub too_long: u64,
    /// Documents with too much that could not be decoded.
    #[serde(default)]
    pub undecodable: u64,
    pub duplicate_ids: u64,
    /// Documents in which something could not be decoded, and how many characters.
    pub documents_replaced: u64,
    pub characters_replaced: u64,
    /// Documents without a value for the keep policy.
    pub without_value: u64,
    /// Bytes of text.
    pub text_bytes: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            without_text: self.without_text + other.without_text,
            navigation_only: self.navigation_only + other.navigation_only,
            too_few_features: self.too_few_features + other.too_few_features,
            too_long: self.too_long + other.too_long,
            undecodable: self.undecodable + other.undecodable,
            duplicate_ids: self.duplicate_ids + other.duplicate_ids,
            documents_replaced: self.documents_replaced + other.documents_replaced,
            characters_replaced: self.characters_replaced + other.characters_replaced,
            without_value: self.without_value + other.without_value,
            text_bytes: self.text_bytes + other.text_bytes,
        }
    }
}

/// Which records are documents: 8 bytes for each that is none.
#[derive(Debug, Default)]
pub struct Records {
    unreadable: Vec<u64>,
}

impl Records {
    /// The next record is none: they come in ascending order.
    pub fn skip(&mut self, record: u64) {
        self.unreadable.push(record);
    }

    /// The number of records that could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.len() as u64
    }

    /// The document that a record is; `None` when it could not be read.
    pub fn document(&self, record: u64) -> Option<u32> {
        match self.unreadable.binary_search(&record) {
            Ok(_) => None,
            // There are fewer documents than 2^32.
            Err(before) => Some((record - before as u64) as u32),
        }
    }

    /// The record of a document.
    pub fn of(&self, document: u32) -> u64 {
        // Every unreadable record before it shifts the document by one.
        let mut record = u64::from(document);
        loop {
            let before = self.unreadable.partition_point(|&u| u <= record) as u64;
            if u64::from(document) + before == record {
                return record;
            }
            record = u64::from(document) + before;
        }
    }
}

/// Columns of numbers about documents, filled in the order of the input.
pub trait Columns {
    /// What is kept of a document.
    type Entry: Send;
    /// What the workers share while the columns are filled.
    type Shared: Sync + Default;

    /// What a worker keeps of a document, and why there is no fingerprint or sketch. What is counted over a sample of the
    /// documents is counted here.
    fn entry(
        shared: &Self::Shared,
        fingerprinter: &mut Fingerprinter<'_>,
        document: &Seen<'_>,
    ) -> (Self::Entry, Option<NoFingerprint>);

    /// Appends a document, with what the keep policy compares.
    fn push(&mut self, entry: Self::Entry, value: Option<f64>);

    /// The number of documents.
    fn len(&self) -> usize;

    /// Appends the numbers of the documents from `first` on, but for keys, to the content of a shard.
    fn save(&self, first: u32, content: &mut Vec<u8>);

    /// Appends `documents` documents whose numbers [`Columns::save`] wrote; `None` when it did not.
    fn load(&mut self, content: &mut ByteReader<'_>, documents: u32) -> Option<()>;

    /// The keys of the documents since they were last released, as a file of [`FileKeys`] has them:
    /// they leave the memory.
    fn release_keys(&mut self) -> Option<Vec<u8>>;

    /// Columns of the same kind without documents.
    fn empty(&self) -> Self;

    /// Appends the documents of other columns.
    fn append(&mut self, other: Self);

    /// What was counted over a sample of the documents so far.
    fn sample(shared: &Self::Shared) -> Option<Vec<u8>>;

    /// Goes on with a sample; `None` when the bytes are none.
    fn restore_sample(shared: &Self::Shared, sample: &[u8]) -> Option<()>;

    /// Takes over what was counted over all documents.
    fn take_sample(&mut self, shared: Self::Shared);
}

/// A key and a value, each as what stands for none where there is none.
fn save_both(text_key: Option<u128>, value: Option<f64>, content: &mut Vec<u8>) {
    content.extend_from_slice(&text_key.unwrap_or(0).to_le_bytes());
    content.extend_from_slice(&value.unwrap_or(f64::NAN).to_le_bytes());
}

fn load_both(content: &mut ByteReader<'_>) -> Option<(Option<u128>, Option<f64>)> {
    Some((Some(content.u128()?).filter(|&key| key != 0), content.value()?))
}

impl Columns for Corpus {
    type Entry = Entry;
    type Shared = ();

    fn entry(
        (): &(),
        fingerprinter: &mut Fingerprinter<'_>,
        document: &Seen<'_>,
    ) -> (Entry, Option<NoFingerprint>) {
        let outcome = document.text.fingerprint(fingerprinter);
        let why_not = match outcome {
            Outcome::Fingerprint(_) => None,
            Outcome::None(reason) => Some(reason),
        };
        let fingerprint = outcome.fingerprint();
        (Entry { fingerprint, text_key: document.text.key(fingerprinter), value: None }, why_not)
    }

    fn push(&mut self, entry: Entry, value: Option<f64>) {
        Corpus::push(self, Entry { value, ..entry });
    }

    fn len(&self) -> usize {
        Corpus::len(self)
    }

    fn save(&self, first: u32, content: &mut Vec<u8>) {
        for document in first..Corpus::len(self) as u32 {
            let Entry { fingerprint, text_key, value } = self.entry(document);
            content.push(u8::from(fingerprint.is_some()));
            let words = fingerprint.iter().flat_map(|fingerprint| fingerprint.words().to_vec());
            content.extend(words.flat_map(u64::to_le_bytes));
            save_both(text_key, value, content);
        }
    }

    fn load(&mut self, content: &mut ByteReader<'_>, documents: u32) -> Option<()> {
        for _ in 0..documents {
            let [present] = content.array()?;
            let bits = self.bits();
            let words = |_| content.u64();
            let words = (0..bits.words() * usize::from(present)).map(words);
            let words: Vec<u64> = words.collect::<Option<_>>()?;
            let fingerprint = (present == 1).then(|| Fingerprint::from_words(bits, &words));
            let (text_key, value) = load_both(content)?;
            Corpus::push(self, Entry { fingerprint, text_key, value });
        }
        Some(())
    }

    fn release_keys(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn empty(&self) -> Corpus {
        Corpus::new(self.bits())
    }

    fn append(&mut self, other: Corpus) {
        Corpus::append(self, other);
    }

    fn sample((): &()) -> Option<Vec<u8>> {
        None
    }

    fn restore_sample((): &(), _: &[u8]) -> Option<()> {
        None
    }

    fn take_sample(&mut self, (): ()) {}
}

/// Sketches, and how common each feature is among a sample of the documents.
#[derive(Default)]
pub struct Sketched {
    pub corpus: SketchCorpus,
    pub sample: FrequencySample,
}

/// A sample that the workers count. What it holds in the end depends neither on the order of the documents nor on whether some come
/// twice: so it may be ahead of the columns, and a job that resumes another one counts again what that one had not kept.
#[derive(Default)]
pub struct SharedSample {
    /// The lowest level that is wanted: what a worker reads late it hands over in vain.
    least_level: AtomicU32,
    waiting: Mutex<Waiting>,
    sample: Mutex<FrequencySample>,
}

/// Texts that are not counted yet: their keys and features.
#[derive(Default)]
struct Waiting {
    texts: Vec<(u128, Vec<u64>)>,
    /// Of all texts.
    features: usize,
}

/// From so many features on that wait, 8 MB, workers wait, too.
const FEATURES_WAITING: usize = 1 << 20;

impl SharedSample {
    /// Counts a text, now or soon: one worker counts at a time, and the others leave it their texts.
    fn add(&self, key: u128, features: Vec<u64>) {
        let waiting = {
            let mut waiting = lock(&self.waiting);
            waiting.features += features.len();
            waiting.texts.push((key, features));
            waiting.features
        };
        match self.sample.try_lock() {
            Ok(mut sample) => self.count(&mut sample),
            Err(TryLockError::WouldBlock) if waiting < FEATURES_WAITING => {}
            Err(_) => self.count(&mut lock(&self.sample)),
        }
    }

    /// Counts all texts that wait.
    fn count(&self, sample: &mut FrequencySample) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for (key, features) in waiting.texts {
            sample.add(key, &features);
        }
        self.least_level.store(sample.least_level(), Ordering::Relaxed);
    }

    /// The sample with all texts that were added.
    fn counted(&self) -> MutexGuard<'_, FrequencySample> {
        let mut sample = lock(&self.sample);
        self.count(&mut sample);
        sample
    }
}

impl Columns for Sketched {
    type Entry = SketchEntry;
    type Shared = SharedSample;

    fn entry(
        shared: &SharedSample,
        fingerprinter: &mut Fingerprinter<'_>,
        document: &Seen<'_>,
    ) -> (SketchEntry, Option<NoFingerprint>) {
        let sketched = document.text.sketch(fingerprinter);
        let text_key = document.text.key(fingerprinter);
        if let (Some(key), Ok(_)) = (text_key, &sketched) {
            let least_level = shared.least_level.load(Ordering::Relaxed);
            if FrequencySample::wants_at(least_level, key) {
                shared.add(key, fingerprinter.sketched_features());
            }
        }
        (SketchEntry { sketched: sketched.ok(), text_key, value: None }, sketched.err())
    }

    fn push(&mut self, entry: SketchEntry, value: Option<f64>) {
        self.corpus.push(SketchEntry { value, ..entry });
    }

    fn len(&self) -> usize {
        self.corpus.len()
    }

    fn save(&self, first: u32, content: &mut Vec<u8>) {
        for document in first..self.corpus.len() as u32 {
            let SketchEntry { sketched, text_key, value } = self.corpus.entry(document);
            let words = sketched.map_or([0; WORDS], |sketched| *sketched.sketch.words());
            content.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            // The columns have no more than a byte of it.
            content.push(sketched.map_or(0, |sketched| sketched.features as u8));
            save_both(text_key, value, content);
        }
    }

    fn load(&mut self, content: &mut ByteReader<'_>, documents: u32) -> Option<()> {
        for _ in 0..documents {
            let mut words = [0; WORDS];
            for word in &mut words {
                *word = content.u64()?;
            }
            let [features] = content.array()?;
            // No text's sketch is all zeros.
            let sketched = (words != [0; WORDS]).then(|| {
                let (sketch, keys) = (Sketch::from_words(words), [NO_KEY; KEYS]);
                SketchAndKeys { sketch, keys, features: features.into() }
            });
            let (text_key, value) = load_both(content)?;
            self.corpus.push(SketchEntry { sketched, text_key, value });
        }
        Some(())
    }

    fn release_keys(&mut self) -> Option<Vec<u8>> {
        let keys = FileKeys::encode(self.corpus.keys());
        self.corpus.release_keys();
        Some(keys)
    }

    fn empty(&self) -> Sketched {
        Sketched::default()
    }

    fn append(&mut self, other: Sketched) {
        self.corpus.append(other.corpus);
    }

    fn sample(shared: &SharedSample) -> Option<Vec<u8>> {
        Some(shared.counted().to_bytes())
    }

    fn restore_sample(shared: &SharedSample, sample: &[u8]) -> Option<()> {
        let sample = FrequencySample::from_bytes(sample)?;
        shared.least_level.store(sample.least_level(), Ordering::Relaxed);
        *lock(&shared.sample) = sample;
        Some(())
    }

    fn take_sample(&mut self, shared: SharedSample) {
        drop(shared.counted());
        self.sample = shared.sample.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
}

struct Row<E> {
    id: Id<'static>,
    entry: E,
    value: Option<f64>,
    why_not: Option<NoFingerprint>,
    replaced: u64,
    undecoded: Vec<u8>,
    bytes: u64,
    /// The value of the source field; `None` where the document has none.
    source: Option<String>,
    /// Its text, where it is kept.
    text: Option<String>,
}

/// Reads and fingerprints all documents. `on_note` gets every problem as a line of JSON. With a state,
/// what was done before is taken up, and what is done is kept.
///
/// The files are read in [lanes](Lane), each into columns of its own, which are put together in the order of the input.
///
/// # Errors
/// A full corpus, an input that changes, what `on_note` returns, an interruption, or a state that cannot
/// be written or taken up.
pub fn collect<C: Columns>(
    context: &Context<'_>,
    corpus: C,
    inputs: &Inputs,
    wanted: &Wanted<'_>,
    state: Option<&Checkpoint>,
    on_note: impl FnMut(&str) -> Result<(), Error>,
) -> Result<Collected<C>, Error> {
    wanted.recipe.fingerprinter()?;
    let shared = C::Shared::default();
    let mut collected = std::thread::scope(|scope| {
        let writer = state.map(|state| shard::Writer::start(scope, state)).transpose()?;
        let fields = Fields::of(inputs, wanted);
        let mut lanes = Lane::cut(context, inputs);
        let columns = |corpus, id_bytes| columns_of(corpus, wanted, state, id_bytes);
        let of_lane = |_: &Lane| {
            let own = columns(corpus.empty(), context.bounds.id_bytes / ID_SHARES);
            Some(CollectedLane::new(own, wanted))
        };
        let of_lanes = lanes.iter().map(of_lane).collect();
        let all = columns(corpus, context.bounds.id_bytes);
        let mut collecting = Collecting {
            context,
            all,
            lanes: of_lanes,
            done: Vec::new(),
            documents: 0,
            shared: &shared,
            keep: wanted.keep,
            on_note,
            state,
            writer,
            shards: 0,
        };
        if let Some(state) = state {
            collecting.resume(state, &mut lanes)?;
        }
        let pass = Pass { lanes: Some(&lanes), ..Pass::new(Phase::Fingerprints) };
        let notes = scan_into(
            context,
            inputs,
            &pass,
            wanted.opened.and_then(|opened| lock(opened).take()),
            || wanted.recipe.counter(),
            |fingerprinter, document| {
                let text = wanted.texts.then(|| document.text.text.clone().into_owned());
                Row { text, ..row::<C>(&shared, fingerprinter, &document, wanted.keep, fields) }
            },
            &mut collecting,
        )?;
        collecting.finish(&notes)
    })?;
    collected.corpus.take_sample(shared);
    Ok(collected)
}

/// The ids of lanes that are not put together yet may take as many times less memory as those of all.
const ID_SHARES: u64 = 8;

fn columns_of<C: Columns>(
    corpus: C,
    wanted: &Wanted<'_>,
    state: Option<&Checkpoint>,
    id_bytes: u64,
) -> Collected<C> {
    let ids = state.map_or_else(Ids::default, |state| Ids::in_folder(&state.path(""), id_bytes));
    let sources = wanted.source_field.map(|_| SourceColumn::default());
    Collected::new(corpus, ids, state.map(|_| FileKeys::default()), sources)
}

/// Whether a job can take a document beside `documents` others.
///
/// # Errors
/// When it cannot.
pub fn check_room(documents: usize) -> Result<(), Error> {
    if documents < MAX_DOCUMENTS {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "more than {MAX_DOCUMENTS} documents: split the input into several runs"
    )))
}

fn changed() -> Error {
    Error::invalid(
        "the input changed since the work was begun: there are other records than then; remove the unfinished output to begin again",
    )
}

/// The first pass at work.
struct Collecting<'a, 'scope, C: Columns, F> {
    context: &'a Context<'a>,
    /// The documents of the lanes that are put together.
    all: Collected<C>,
    /// The others, in order; `None` for those before them.
    lanes: Vec<Option<CollectedLane<C>>>,
    /// The shards of each lane that is put together.
    done: Vec<usize>,
    /// Documents of all lanes.
    documents: usize,
    shared: &'a C::Shared,
    keep: &'a Keep,
    on_note: F,
    state: Option<&'a Checkpoint>,
    writer: Option<shard::Writer<'scope>>,
    /// Shards of all lanes.
    shards: usize,
}

/// The documents of a lane.
struct CollectedLane<C> {
    own: Collected<C>,
    /// Shards that are done.
    shards: usize,
    /// What is known of the next.
    head: Head,
    /// Its first document.
    first: u32,
    /// The bytes of its records.
    bytes: u64,
    /// The batches and records that shards of an earlier run hold.
    skip: (u64, u64),
    /// The texts of the documents since the last shard, where they are kept.
    texts: Option<PackedTexts>,
    /// Documents and files that could not be read, up to here.
    problems: u64,
    /// Those among them that an earlier run reported.
    reported: u64,
    /// Lines that wait for the lanes before this one, and what they say where this run has to report it.
    waiting: Vec<(String, Option<Note>)>,
    is_ended: bool,
}

impl<C: Columns> CollectedLane<C> {
    fn new(own: Collected<C>, wanted: &Wanted<'_>) -> Self {
        CollectedLane {
            own,
            shards: 0,
            head: Head::default(),
            first: 0,
            bytes: 0,
            skip: (0, 0),
            texts: wanted.texts.then(PackedTexts::default),
            problems: 0,
            reported: 0,
            waiting: Vec::new(),
            is_ended: false,
        }
    }

    /// Takes up the shards of an earlier run.
    fn resume(&mut self, folder: &Path, number: usize) -> Result<(), Error> {
        let from = From { records: 0, counts: Counts::default(), problems: 0 };
        let waiting = &mut self.waiting;
        let on_note = |line: &str| {
            waiting.push((line.to_owned(), None));
            Ok(())
        };
        let taken = self.own.take_up(folder, number, from, on_note)?;
        self.shards = taken.shards;
        self.skip = (taken.batches, taken.records);
        self.first = self.own.corpus.len() as u32;
        self.reported = self.own.problems.count();
        self.problems = self.reported;
        Ok(())
    }

    /// What was done since the last shard, as shard number `count` of all lanes.
    fn end_of_shard(
        &mut self,
        number: usize,
        count: usize,
        shared: &C::Shared,
    ) -> Result<Shard, Error> {
        let own = &mut self.own;
        let last = own.corpus.len() as u32;
        let mut head = std::mem::take(&mut self.head);
        if let Some(sources) = &own.sources {
            head.sources = sources.since(self.first);
        }
        head.documents = last - self.first;
        (head.problems, head.counts) = (self.problems, own.counts);
        let ids = (self.first..last).map(|document| own.ids.get(document));
        let place = (number, self.shards);
        let shard = Shard::of(place, &head, ids, &mut own.corpus, self.first)?;
        let shard = shard.with_sample(count, C::sample(shared));
        let texts = self.texts.as_mut().map(PackedTexts::take).transpose()?;
        self.shards += 1;
        self.first = last;
        self.bytes = 0;
        self.head = Head { batches: head.batches, records: head.records, ..Head::default() };
        Ok(shard.with_texts(texts))
    }
}

impl<C: Columns, F: FnMut(&str) -> Result<(), Error>> Collecting<'_, '_, C, F> {
    /// Takes up the shards of an earlier run.
    fn resume(&mut self, state: &Checkpoint, lanes: &mut [Lane]) -> Result<(), Error> {
        let folder = state.path("");
        for (number, lane) in self.lanes.iter_mut().flatten().enumerate() {
            lane.resume(&folder, number)?;
            lanes[number].skip = lane.skip.0;
            self.shards += lane.shards;
            self.documents += lane.own.corpus.len();
        }
        shard::load_sample::<C>(&folder, self.shards, self.shared)
    }

    fn lane(&mut self, number: usize) -> &mut CollectedLane<C> {
        self.lanes[number]
            .as_mut()
            .expect("a lane is put together with the others when it has ended")
    }

    /// Reports what waited in the first lane that is not put together yet.
    fn report(&mut self) -> Result<(), Error> {
        let Some(lane) = self.lanes.get_mut(self.done.len()).and_then(Option::as_mut) else {
            return Ok(());
        };
        let problems = &mut self.all.problems;
        problems.restore(problems.count() + std::mem::take(&mut lane.reported));
        for (line, note) in lane.waiting.drain(..) {
            if let Some(note) = note {
                problems.add(self.context, &note);
            }
            (self.on_note)(&line)?;
        }
        Ok(())
    }

    /// Waits until all shards are written.
    fn finish_writing(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), shard::Writer::finish)
    }

    /// Keeps what was done in a lane since its last shard.
    fn end_of_shard(&mut self, number: usize) -> Result<(), Error> {
        let (Some(state), Some(writer)) = (self.state, &self.writer) else { return Ok(()) };
        let Some(lane) = self.lanes[number].as_mut().filter(|lane| lane.bytes > 0) else {
            return Ok(());
        };
        let place = (number, lane.shards);
        let first = lane.first;
        let shard = lane.end_of_shard(number, self.shards, self.shared)?;
        if !writer.push(shard) {
            return self.finish_writing();
        }
        if let Some(keys) = &mut lane.own.keys {
            let documents = lane.first - first;
            keys.push(shard::keys_path(&state.path(""), place), documents as usize);
        }
        self.shards += 1;
        Ok(())
    }

    /// All documents, and `notes` about whole files and about records that were never seen.
    fn finish(mut self, notes: &[Note]) -> Result<Collected<C>, Error> {
        for note in notes {
            let line = self.context.note_line(note)?;
            self.all.problems.add(self.context, note);
            (self.on_note)(&line)?;
            self.all.unseen.push(line);
        }
        self.all.counts.duplicate_ids = self.all.ids.duplicates()?;
        self.finish_writing()?;
        self.all.lanes = self.done;
        Ok(self.all)
    }
}

impl<C: Columns, F: FnMut(&str) -> Result<(), Error>> Take<Row<C::Entry>>
    for Collecting<'_, '_, C, F>
{
    fn record(
        &mut self,
        lane: usize,
        place: Place,
        done: Result<Row<C::Entry>, Note>,
    ) -> Result<(), Error> {
        let (context, keep, keeps_work) = (self.context, self.keep, self.state.is_some());
        let documents = self.documents;
        let lane = self.lane(lane);
        match done {
            Ok(row) => {
                check_room(documents)?;
                if let Some((texts, text)) = lane.texts.as_mut().zip(row.text.as_ref()) {
                    texts.push(text)?;
                }
                lane.own.add(row, keep)?;
                self.documents += 1;
                Ok(())
            }
            Err(note) => {
                lane.own.records.skip(place.index);
                let line = context.note_line(&note)?;
                if keeps_work {
                    lane.head.unreadable.push(place.index);
                    lane.head.notes.push(line.clone());
                }
                lane.problems += u64::from(note.reason.is_loss());
                lane.waiting.push((line, Some(note)));
                Ok(())
            }
        }
    }

    fn batch(&mut self, number: usize, batch: &Batch) -> Result<(), Error> {
        let shard_bytes = self.state.map_or(u64::MAX, Checkpoint::shard_bytes);
        let lane = self.lane(number);
        lane.head.batches += 1;
        lane.head.records = batch.first_index() + batch.len() as u64;
        if lane.head.batches == lane.skip.0 && lane.head.records != lane.skip.1 {
            return Err(changed());
        }
        if lane.head.batches > lane.skip.0 {
            // A batch without a byte counts too: what follows it must not come before it again.
            lane.bytes += batch.records().map(|record| record.bytes.len() as u64).sum::<u64>() + 1;
        }
        if lane.bytes >= shard_bytes {
            self.end_of_shard(number)?;
        }
        // What lanes further on have to say waits for this one.
        if number == self.done.len() { self.report() } else { Ok(()) }
    }

    fn end(&mut self, number: usize) -> Result<(), Error> {
        self.end_of_shard(number)?;
        let lane = self.lane(number);
        if lane.head.records < lane.skip.1 {
            return Err(changed());
        }
        lane.is_ended = true;
        while let Some(next) = self.lanes.get(self.done.len())
            && next.as_ref().is_some_and(|lane| lane.is_ended)
        {
            self.report()?;
            if let Some(lane) = self.lanes[self.done.len()].take() {
                self.done.push(lane.shards);
                self.all.append(lane.own, lane.head.records)?;
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Error> {
        for number in self.done.len()..self.lanes.len() {
            self.end_of_shard(number)?;
        }
        self.finish_writing()?;
        Err(Error::INTERRUPTED)
    }
}

fn row<C: Columns>(
    shared: &C::Shared,
    fingerprinter: &mut Fingerprinter<'_>,
    document: &Seen<'_>,
    keep: &Keep,
    fields: Fields,
) -> Row<C::Entry> {
    let field = |place: Option<usize>| document.fields.get(place?)?.as_ref();
    let (entry, why_not) = C::entry(shared, fingerprinter, document);
    let value = keep_value(keep, field(fields.keep), || f64::from(fingerprinter.length()));
    Row {
        id: Id::of(document.id).into_owned(),
        entry,
        value,
        why_not,
        replaced: document.replaced,
        undecoded: document
            .text
            .raw
            .as_ref()
            .map_or_else(Vec::new, |raw| raw[..raw.len().min(UNDECODED[0])].to_vec()),
        bytes: document.text.text.len() as u64,
        source: field(fields.source).map(|value| value.as_str().to_owned()),
        text: None,
    }
}

/// The number that a policy compares, of a document with this value of its field; `length` gives its characters. `None` where it has none.
pub fn keep_value(
    keep: &Keep,
    field: Option<&Value<'_>>,
    length: impl FnOnce() -> f64,
) -> Option<f64> {
    match keep {
        Keep::First => None,
        Keep::Longest => Some(length()),
        Keep::Newest(_) => field.and_then(time),
        Keep::Highest(_) => field.and_then(Value::as_f64),
        Keep::Ranked(_, values) => field.and_then(|value| Keep::rank(values, value.as_str())),
    }
}

/// What was found before the shards of a folder.
#[derive(Clone, Copy)]
pub struct From {
    pub records: u64,
    pub counts: Counts,
    pub problems: u64,
}

/// What was taken up of a folder's shards.
#[derive(Clone, Copy, Default)]
pub struct TakenUp {
    pub shards: usize,
    pub batches: u64,
    /// Records in them, those that are no documents among them.
    pub records: u64,
}

impl<C: Columns> Collected<C> {
    /// No documents yet. Many ids, and those of all documents if `keys` are, go to a folder.
    pub fn new(corpus: C, ids: Ids, keys: Option<FileKeys>, sources: Option<SourceColumn>) -> Self {
        Collected {
            corpus,
            ids,
            records: Records::default(),
            problems: Problems::default(),
            lacking: Lacking::default(),
            counts: Counts::default(),
            keys,
            sources,
            lanes: Vec::new(),
            unseen: Vec::new(),
            undecoded: Vec::new(),
            seen: 0,
        }
    }

    /// Appends what was found in files that follow: of so many records, those that are no documents among them.
    fn append(&mut self, other: Collected<C>, records: u64) -> Result<(), Error> {
        let before = self.seen;
        other.records.unreadable.iter().for_each(|&record| self.records.skip(before + record));
        self.seen += records;
        self.corpus.append(other.corpus);
        self.ids.append(&other.ids)?;
        self.counts = self.counts + other.counts;
        if let (Some(keys), Some(other)) = (&mut self.keys, other.keys) {
            keys.append(other);
        }
        if let (Some(sources), Some(other)) = (&mut self.sources, &other.sources) {
            sources.take_up(&other.since(0));
        }
        if self.undecoded.len() < UNDECODED[1] {
            self.undecoded.extend_from_slice(&other.undecoded);
        }
        Ok(())
    }

    /// Appends the documents of the shards of a lane in a folder, but for what they say of common features. `on_note` gets the
    /// lines about records that are none.
    ///
    /// # Errors
    /// As [`shard::load`], or what `on_note` returns.
    pub fn take_up(
        &mut self,
        folder: &Path,
        lane: usize,
        from: From,
        mut on_note: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<TakenUp, Error> {
        let Collected { corpus, ids, records, problems, counts, keys, sources, .. } = self;
        let mut taken = TakenUp::default();
        shard::load(folder, lane, corpus, |head, own| {
            own.iter().try_for_each(|id| ids.push_written(id))?;
            if let Some(sources) = sources {
                sources.take_up(&head.sources);
            }
            head.unreadable.iter().for_each(|&record| records.skip(from.records + record));
            head.notes.iter().try_for_each(|note| on_note(note))?;
            problems.restore(from.problems + head.problems);
            *counts = from.counts + head.counts;
            if let Some(keys) = keys {
                let path = shard::keys_path(folder, (lane, taken.shards));
                keys.push(path, head.documents as usize);
            }
            (taken.batches, taken.records) = (head.batches, head.records);
            taken.shards += 1;
            Ok(())
        })?;
        Ok(taken)
    }

    fn add(&mut self, row: Row<C::Entry>, keep: &Keep) -> Result<(), Error> {
        let counts = &mut self.counts;
        match row.why_not {
            Some(NoFingerprint::Empty) => counts.without_text += 1,
            Some(NoFingerprint::Undecodable) => counts.undecodable += 1,
            Some(NoFingerprint::NavigationOnly) => counts.navigation_only += 1,
            Some(NoFingerprint::TooFewFeatures { .. }) => counts.too_few_features += 1,
            Some(NoFingerprint::TooLong { .. }) => counts.too_long += 1,
            None => {}
        }
        counts.documents_replaced += u64::from(row.replaced > 0);
        counts.characters_replaced += row.replaced;
        counts.without_value += u64::from(*keep != Keep::First && row.value.is_none());
        counts.text_bytes += row.bytes;
        if !row.undecoded.is_empty() && self.undecoded.len() < UNDECODED[1] {
            self.undecoded.extend_from_slice(&row.undecoded);
            self.undecoded.push(b'\n');
        }
        self.ids.push(&row.id)?;
        if let Some(sources) = &mut self.sources {
            sources.push(row.source.as_deref());
        }
        self.corpus.push(row.entry, row.value);
        Ok(())
    }
}

/// Seconds since 1970 of a field: a number as it is, else a date or a time in ISO 8601, with `/` or `.`
/// for `-` and a blank for `T` allowed. A time without offset counts as UTC.
fn time(value: &Value<'_>) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number);
    }
    let text = value.as_str().trim();
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond() as f64 / 1000.0);
    }
    let (date, rest) = text.split_at(text.find(['T', ' ']).unwrap_or(text.len()));
    let text = format!("{}{rest}", date.replace(['/', '.'], "-"));
    let civil = text
        .parse::<jiff::civil::DateTime>()
        .or_else(|_| {
            text.parse::<jiff::civil::Date>().map(|d| d.to_datetime(jiff::civil::Time::midnight()))
        })
        .ok()?;
    let time = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(time.as_millisecond() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn records_and_documents() {
        let mut records = Records::default();
        [0, 3, 4, 9].into_iter().for_each(|r| records.skip(r));
        let readable: Vec<u64> = (0..12).filter(|&r| records.document(r).is_some()).collect();
        assert_eq!(readable, [1, 2, 5, 6, 7, 8, 10, 11]);
        for (document, &record) in readable.iter().enumerate() {
            assert_eq!(records.of(document as u32), record);
            assert_eq!(records.document(record), Some(document as u32));
        }
    }

    #[test]
    fn times() {
        let check = |text: &str, expect| {
            assert_eq!(time(&Value::Text(Cow::Borrowed(text))), expect, "{text}");
        };
        check("1700000000", Some(1_700_000_000.0));
        check("1970-01-02", Some(86_400.0));
        check("1970/01/02", Some(86_400.0));
        check("1970-01-01T01:00:00Z", Some(3_600.0));
        check("1970-01-01T01:00:00+01:00", Some(0.0));
        check("1970-01-01 00:01:00", Some(60.0));
        check("yesterday", None);
        check("", None);
    }
}
