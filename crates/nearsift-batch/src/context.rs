//! How a job runs: who watches it, who may stop it, and what it may use. Nothing here changes a result.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nearsift::join::Speed;
use nearsift_io::Note;
use serde::{Serialize, Serializer};

use crate::admission::Admission;
use crate::error::Error;
use crate::lock;
use crate::notice::{Level, Notice, Topic};
use crate::report::PageLanguage;

/// How a job runs. Two jobs with a context each never touch each other's work.
///
/// The default reports to nobody, is never interrupted, and takes the memory that it needs.
///
/// ```
/// use nearsift_batch::{Context, Interrupt};
///
/// let mut context = Context::default();
/// context.memory_bytes = Some(4_000_000_000);
/// context.interrupt = Interrupt::default();
/// let from_elsewhere = context.interrupt.clone();
/// from_elsewhere.request();
/// assert!(context.interrupt.is_requested());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Context<'a> {
    /// Receives progress and notices.
    pub observer: &'a dyn Observer,
    /// Who may stop the job.
    pub interrupt: Interrupt,
    /// The most memory, in bytes. What does not fit goes to the disk; a limit that is too small is
    /// [`Error::Memory`] with one that is not.
    pub memory_bytes: Option<u64>,
    /// The folder for files without a name, where the job has no output folder of its own.
    pub scratch: PathBuf,
    /// The measured speed of joins of fingerprints, by which their plan is chosen.
    pub join_speed: Option<Speed>,
    /// From which sizes on work goes to the disk.
    pub bounds: Bounds,
    /// What becomes of results of an earlier job in the output folder.
    pub earlier: EarlierResults,
    /// How the report names a setting: `max-cluster` of this library is `--max-cluster` on a command line.
    pub spelling: fn(&str) -> String,
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Context {
            observer: &Silent,
            interrupt: Interrupt::default(),
            memory_bytes: None,
            scratch: std::env::temp_dir(),
            join_speed: None,
            bounds: Bounds::default(),
            earlier: EarlierResults::default(),
            spelling: str::to_owned,
            admission: None,
        }
    }
}

impl<'a> Context<'a> {
    /// A context with an observer, and defaults for all else.
    pub fn observed_by(observer: &'a dyn Observer) -> Context<'a> {
        Context { observer, ..Context::default() }
    }

    /// Fails once the job is to stop.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.interrupt.is_requested() { Err(Error::INTERRUPTED) } else { Ok(()) }
    }

    /// Begins a phase with `total` units of work.
    pub(crate) fn begin(&self, phase: Phase, total: u64) -> Progress<'a> {
        self.observer.begin(phase, total);
        Progress { observer: self.observer, phase }
    }

    pub(crate) fn notice(&self, level: Level, topic: Topic, message: &str) {
        self.observer.notice(&Notice { level, topic, message });
    }

    /// A note as a line of a table, in which settings are named as in the report.
    pub(crate) fn note_line(&self, note: &Note) -> Result<String, Error> {
        /// Serialises with the message.
        struct Spelled<'n>(&'n Note, String);

        impl Serialize for Spelled<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize_with(&self.1, serializer)
            }
        }

        let spelled = Spelled(note, self.spell(&note.reason.to_string()));
        serde_json::to_string(&spelled).map_err(Error::invalid)
    }

    /// The text with its settings, which stand in backticks, as the report names them.
    pub(crate) fn spell(&self, text: &str) -> String {
        crate::notice::spell(text, self.spelling)
    }
}

/// What becomes of results of an earlier job in the output folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlierResults {
    /// They stay, and the job is refused.
    #[default]
    Refuse,
    /// They are replaced when the new ones are complete. A folder with a file that no job wrote is refused.
    Replace,
}

/// Sizes from which on work goes to the disk. Small ones make a small input take the paths of a large one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Bytes of input from which on a job keeps its work, so that another can resume it.
    pub resumable_bytes: u64,
    /// Bytes of records between two checkpoints of the first pass: what an interrupted job does again.
    pub checkpoint_bytes: u64,
    /// Bytes of files, as stored, that are read one after another while others are read beside them. A job is resumed with the
    /// bound that it was begun with.
    pub lane_bytes: u64,
    /// Records of an external sort that stay in memory.
    pub sorted_records: usize,
    /// Bytes of ids that stay in memory.
    pub id_bytes: u64,
    /// Bytes of text around samples that share a gram, which are in memory at once while exact repeats are found.
    pub hull_bytes: u64,
}

/// Bytes of ids that usually stay in memory.
pub(crate) const ID_BYTES: u64 = 256 << 20;

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            resumable_bytes: 128 << 20,
            checkpoint_bytes: 256 << 20,
            lane_bytes: 16 << 20,
            sorted_records: 1 << 20,
            id_bytes: ID_BYTES,
            hull_bytes: 64 << 20,
        }
    }
}

/// Watches a job. Methods are called from several threads; what they return in is the job's time.
///
/// A panic of an observer ends the job like any other panic: the caller gets it, and nothing is left half-written.
pub trait Observer: Sync {
    /// A phase begins, with `total` units of work.
    fn begin(&self, phase: Phase, total: u64) {
        let _ = (phase, total);
    }

    /// `done` units of a phase's work are done, of `total`. Numbers from several threads may come out of order.
    fn advance(&self, phase: Phase, done: u64) {
        let _ = (phase, done);
    }

    /// A phase has ended, in success or failure.
    fn end(&self, phase: Phase) {
        let _ = phase;
    }

    /// Something that is worth knowing, and no failure.
    fn notice(&self, notice: &Notice<'_>) {
        let _ = notice;
    }
}

/// Watches nothing.
struct Silent;

impl Observer for Silent {}

/// What a job does at a time. Phases of one job follow each other or, rarely, overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Fingerprints and sketches of all documents are made.
    Fingerprints,
    /// Features are counted over the corpus.
    Counting,
    /// Texts of candidates are read.
    Comparing,
    /// Candidates are compared exactly.
    Verifying,
    /// Runs of letters that documents share are looked for.
    Passages,
    /// Lines or paragraphs are counted.
    Pieces,
    /// Grams of texts are sampled.
    Samples,
    /// The surroundings of samples that occur more than once are read.
    Hulls,
    /// The texts with repeats are read.
    Repeats,
    /// Labelled documents are read.
    Documents,
    /// Documents are put into an index.
    Indexing,
    /// An index is searched for documents.
    Querying,
    /// Kept documents are written.
    Writing,
}

impl Phase {
    /// One word for a progress bar.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Fingerprints => "fingerprints",
            Phase::Counting => "counting",
            Phase::Comparing => "comparing",
            Phase::Verifying => "verifying",
            Phase::Passages => "passages",
            Phase::Pieces => "pieces",
            Phase::Samples => "samples",
            Phase::Hulls => "hulls",
            Phase::Repeats => "repeats",
            Phase::Documents => "documents",
            Phase::Indexing => "indexing",
            Phase::Querying => "asking",
            Phase::Writing => "writing",
        }
    }

    /// The same in a language.
    pub fn name_in(self, language: PageLanguage) -> &'static str {
        let chinese = match self {
            Phase::Fingerprints => "生成指纹",
            Phase::Counting => "统计特征",
            Phase::Comparing => "读取候选",
            Phase::Verifying => "比较文本",
            Phase::Passages => "查找片段",
            Phase::Pieces => "统计行段",
            Phase::Samples => "抽样",
            Phase::Hulls => "读取上下文",
            Phase::Repeats => "读取重复",
            Phase::Documents => "读取文档",
            Phase::Indexing => "写入索引",
            Phase::Querying => "查询",
            Phase::Writing => "写出文档",
        };
        language.pick([self.name(), chinese])
    }

    /// What its work is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Phase::Verifying => "pairs",
            Phase::Writing => "documents",
            _ => "bytes",
        }
    }
}

/// A phase at work; it ends when this is dropped.
pub(crate) struct Progress<'a> {
    observer: &'a dyn Observer,
    phase: Phase,
}

impl Progress<'_> {
    pub(crate) fn at(&self, done: u64) {
        self.observer.advance(self.phase, done);
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        // A second panic would end the process.
        if !std::thread::panicking() {
            self.observer.end(self.phase);
        }
    }
}

/// Stops a job from another thread. Clones stop the same job.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_requested: AtomicBool,
    /// The folder of unfinished results, and whether a later job can resume what is in it.
    unfinished: Mutex<Option<(PathBuf, Arc<AtomicBool>)>>,
}

impl Interrupt {
    /// Asks the job to stop at the next batch of documents: it returns [`Error::Interrupted`].
    pub fn request(&self) {
        self.0.is_requested.store(true, Ordering::Relaxed);
    }

    /// Whether the job was asked to stop.
    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Relaxed)
    }

    /// Removes the unfinished results of the job at work, unless a later one can resume them: for a program that exits
    /// at once and never gets the job's answer.
    pub fn discard(&self) {
        if let Some((folder, is_resumable)) = &*lock(&self.0.unfinished)
            && !is_resumable.load(Ordering::Relaxed)
        {
            // Other threads still write into it: what they do in between is tried once more. What is left says by
            // its name that it is unfinished.
            let _ = std::fs::remove_dir_all(folder).or_else(|_| std::fs::remove_dir_all(folder));
        }
    }

    /// The job's unfinished results are in a folder.
    pub(crate) fn set_unfinished(&self, folder: &Path, is_resumable: &Arc<AtomicBool>) {
        *lock(&self.0.unfinished) = Some((folder.to_owned(), Arc::clone(is_resumable)));
    }

    /// There are no unfinished results.
    pub(crate) fn clear_unfinished(&self) {
        *lock(&self.0.unfinished) = None;
    }
}
