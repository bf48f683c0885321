//! The output folder: everything is written aside and gets its final name together, at the end.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nearsift_io::{
    ExistingFile, Inputs, prepare_output_around, prepare_output_beside, prepare_output_file,
};
use serde::Serialize;

use crate::checkpoint::{Checkpoint, Manifest};
use crate::context::{Context, EarlierResults, Interrupt};
use crate::error::BE_WRITTEN;
use crate::error::Error;
use crate::lock;
use crate::written::{self, Earlier, LIST};

/// Where results lie until all are complete.
const UNFINISHED: &str = ".unfinished";
/// Present in a folder exactly when a run has finished in it.
const LAST: &str = "summary.json";

/// What results are called that a run with one file of documents may write beside it.
const RESULTS: [&str; 18] = [
    "clusters.jsonl",
    "clusters.parquet",
    "inputs.jsonl",
    "lookup.idx",
    "pairs.jsonl",
    "pairs.parquet",
    PART,
    "partial.jsonl",
    "rarity.zst",
    "removed.jsonl",
    "removed.parquet",
    "report.html",
    "report.json",
    "run.json",
    "sketches",
    "summary.json",
    "unreadable",
    "unreadable.jsonl",
];

/// The folders of documents.
const OF_DOCUMENTS: [&str; 3] = ["kept", "marked", "unreadable"];

/// Where the one file of all documents is made, which gets its name elsewhere.
pub const ONE_FILE: &str = "output-file";

/// What is left for other decisions about the documents.
pub const PART: &str = "part";

/// Where a long run keeps its work, below [`UNFINISHED`].
const STATE: &str = "state";
/// In the state: all is written, and gets its final names; its content is the exit status.
const PUBLISHING: &str = "publishing";
/// In the state: the files whose kept documents are written, a number a line.
const WRITTEN: &str = "written";

/// An output folder whose results are not published yet. When it is dropped before, what was written
/// is removed, but for work that a later run can go on with.
pub struct Folder {
    output: PathBuf,
    unfinished: PathBuf,
    /// Where the one file of all documents goes.
    file: Option<PathBuf>,
    policy: EarlierResults,
    /// What the results replace.
    earlier: Option<Earlier>,
    state: Option<Checkpoint>,
    /// Whether a later job can resume what is in it.
    has_work: Arc<AtomicBool>,
    interrupt: Interrupt,
}

/// Where results get their final names.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    pub folder: &'a Path,
    /// The one file that all documents are written to, if they are.
    pub file: Option<&'a Path>,
}

/// What results must not touch: what a job reads.
#[derive(Debug, Clone, Copy)]
pub enum Untouched<'a> {
    /// Files.
    Inputs(&'a Inputs),
    /// Folders, and how many bytes are read of them.
    Folders { folders: &'a [PathBuf], bytes: u64 },
}

impl<'a> Untouched<'a> {
    pub fn of(inputs: &'a Inputs) -> Untouched<'a> {
        Untouched::Inputs(inputs)
    }

    /// See [`prepare_output_around`].
    fn prepare(self, output: &Path, is_own: impl Fn(&OsStr) -> bool) -> Result<PathBuf, Error> {
        Ok(match self {
            Untouched::Inputs(inputs) => prepare_output_around(output, inputs, is_own)?,
            Untouched::Folders { folders, .. } => {
                let folders = folders.iter().map(|folder| (folder.as_path(), true));
                prepare_output_beside(output, folders, is_own)?
            }
        })
    }

    fn bytes(self) -> u64 {
        match self {
            Untouched::Inputs(inputs) => inputs.total_bytes(),
            Untouched::Folders { bytes, .. } => bytes,
        }
    }
}

/// What to do with the work of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// There must be none.
    Afresh,
    /// It is taken up, if there is any.
    Resume,
}

/// What there is to do.
pub enum OpenedFolder {
    /// Results are to be made.
    Work(Box<Folder>),
    /// They were made, and lacked only their final names.
    Published {
        /// Whether every document was read and written.
        is_complete: bool,
    },
}

/// What an earlier job left in the output folder.
struct EarlierWork<'a> {
    destination: Destination<'a>,
    policy: EarlierResults,
    /// The folder of unfinished results, which need not exist.
    unfinished: PathBuf,
    /// Whether the new results replace earlier ones.
    replaces: bool,
    /// The results that are replaced.
    replaced: Option<Earlier>,
    /// Whether there is work that this job may resume, or must not overwrite.
    has_work: bool,
}

impl<'a> EarlierWork<'a> {
    fn find(
        context: &Context<'_>,
        destination: Destination<'a>,
        untouched: Untouched<'_>,
        start: Start,
    ) -> Result<EarlierWork<'a>, Error> {
        let output = destination.folder;
        let unfinished = output.join(UNFINISHED);
        let replaces = context.earlier == EarlierResults::Replace;
        let replaced = match replaces {
            true => Earlier::find(&untouched.prepare(output, |_| true)?, UNFINISHED)?,
            false => None,
        };
        let has_work = Checkpoint::is_in(&unfinished.join(STATE));
        let has_work = has_work && (start == Start::Resume || !replaces);
        let policy = context.earlier;
        Ok(EarlierWork { destination, policy, unfinished, replaces, replaced, has_work })
    }

    /// Removes what cannot be resumed, and publishes results that lack only their final names.
    ///
    /// # Errors
    /// When the work of an earlier job is in the way, or cannot be resumed.
    fn take_up(
        &self,
        manifest: Option<&Manifest>,
        start: Start,
    ) -> Result<Option<OpenedFolder>, Error> {
        let &EarlierWork { destination, ref unfinished, replaces, has_work, .. } = self;
        let output = destination.folder;
        match start {
            Start::Afresh if replaces && unfinished.is_dir() => self.remove()?,
            Start::Afresh if has_work => {
                return Err(Error::invalid(format!(
                    "{}: the output folder is not empty: it holds a run that was stopped; go on with it by `resume`, or remove {} to begin again",
                    output.display(),
                    unfinished.display()
                )));
            }
            Start::Resume if has_work && manifest.is_none() => {
                return Err(Error::invalid(format!(
                    "cannot resume: standard input and pipes cannot be read again, and {} holds a run over files",
                    output.display()
                )));
            }
            Start::Resume if has_work && unfinished.join(STATE).join(PUBLISHING).is_file() => {
                return self.publish().map(Some);
            }
            Start::Resume if has_work => {}
            // A run that was stopped while it tidied up.
            Start::Resume if !replaces && unfinished.is_dir() && output.join(LAST).is_file() => {
                return Folder::tidy(output, unfinished).map(Some);
            }
            // A run that kept nothing.
            Start::Resume if unfinished.is_dir() => self.remove()?,
            Start::Afresh | Start::Resume => {}
        }
        Ok(None)
    }

    /// Removes the unfinished results.
    fn remove(&self) -> Result<(), Error> {
        let unfinished = &self.unfinished;
        Copying::take_up(unfinished)?;
        fs::remove_dir_all(unfinished).map_err(|e| Error::io(unfinished, "remove", &e))
    }

    /// Gives complete results their final names.
    fn publish(&self) -> Result<OpenedFolder, Error> {
        let Destination { folder: output, file } = self.destination;
        publish(output, &self.unfinished, file, self.policy)?;
        // The job may have been stopped before it removed the results that it replaced.
        if let Ok(Some(replaced)) = Earlier::find(output, UNFINISHED) {
            replaced.remove()?;
        }
        Folder::tidy(output, &self.unfinished)
    }
}

impl Folder {
    /// Makes the output folder. Long work is kept in it as it is done, where the input can be read again.
    ///
    /// # Errors
    /// When the folder cannot be written to, holds something, or work of another input or settings.
    pub fn begin(
        context: &Context<'_>,
        destination: Destination<'_>,
        untouched: Untouched<'_>,
        manifest: Option<&Manifest>,
        start: Start,
    ) -> Result<OpenedFolder, Error> {
        let Destination { folder: output, file } = destination;
        let earlier = EarlierWork::find(context, destination, untouched, start)?;
        if let Some(published) = earlier.take_up(manifest, start)? {
            return Ok(published);
        }
        let EarlierWork { replaces, replaced, has_work, .. } = earlier;
        let is_own = |name: &OsStr| replaces || (has_work && name == UNFINISHED);
        let output = untouched.prepare(output, is_own)?;
        let file = match (file, untouched) {
            (Some(file), Untouched::Inputs(inputs)) => {
                Some(prepare_file(file, &output, inputs, context.earlier)?)
            }
            _ => None,
        };
        let unfinished = output.join(UNFINISHED);
        fs::create_dir_all(&unfinished)
            .map_err(|e| Error::io(&output, "make the output folder", &e))?;
        // Whatever happens from here on, the work of an earlier job stays.
        let has_work = Arc::new(AtomicBool::new(has_work));
        let interrupt = context.interrupt.clone();
        interrupt.set_unfinished(&unfinished, &has_work);
        let mut folder = Folder {
            output,
            unfinished,
            file,
            policy: context.earlier,
            earlier: replaced,
            state: None,
            has_work,
            interrupt,
        };
        folder.open_state(context, untouched, manifest)?;
        Ok(OpenedFolder::Work(Box::new(folder)))
    }

    /// Opens the state, where the job is long and its input can be read again.
    fn open_state(
        &mut self,
        context: &Context<'_>,
        untouched: Untouched<'_>,
        manifest: Option<&Manifest>,
    ) -> Result<(), Error> {
        let bounds = context.bounds;
        let is_long = self.keeps_work() || untouched.bytes() >= bounds.resumable_bytes;
        if let Some(manifest) = manifest.filter(|_| is_long) {
            let (path, has_work) = (self.path(STATE), Arc::clone(&self.has_work));
            let opened = Checkpoint::open(&path, manifest, bounds.checkpoint_bytes, has_work);
            self.state = Some(opened?);
            // What is not part of the state is made again.
            clear(&self.unfinished)?;
        }
        Ok(())
    }

    /// Where the work is kept, if it is.
    pub fn state(&self) -> Option<&Checkpoint> {
        self.state.as_ref()
    }

    /// Whether there is work that a later run can go on with.
    pub fn keeps_work(&self) -> bool {
        self.has_work.load(Ordering::Relaxed)
    }

    /// Makes the output folder for a job that cannot be resumed.
    ///
    /// # Errors
    /// When the folder cannot be written to, or holds something.
    pub fn begin_afresh(
        context: &Context<'_>,
        output: &Path,
        inputs: &Inputs,
    ) -> Result<Folder, Error> {
        let destination = Destination { folder: output, file: None };
        match Folder::begin(context, destination, Untouched::of(inputs), None, Start::Afresh)? {
            OpenedFolder::Work(folder) => Ok(*folder),
            OpenedFolder::Published { .. } => unreachable!("nothing is resumed"),
        }
    }

    /// Which files' kept documents are written. What else an earlier run left there is removed.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn marks(&self, inputs: &Inputs) -> Result<CompletionLog, Error> {
        let Some(state) = &self.state else { return Ok(CompletionLog::default()) };
        let path = state.path(WRITTEN);
        let error = |e: &std::io::Error| Error::io(&path, "keep the work in", e);
        let lines = match fs::read_to_string(&path) {
            Ok(lines) => lines,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(error(&e)),
        };
        // A line that was cut short has no end.
        let whole = lines.rfind('\n').map_or("", |end| &lines[..end]);
        let done: HashSet<usize> = whole.lines().filter_map(|line| line.parse().ok()).collect();
        let files = done.iter().filter_map(|&file| inputs.files().get(file));
        let outputs: HashSet<PathBuf> = files.map(|file| inputs.output_path(file)).collect();
        for folder in OF_DOCUMENTS.map(|name| self.path(name)) {
            let is_whole =
                |path: &Path| path.strip_prefix(&folder).is_ok_and(|p| outputs.contains(p));
            remove_files(&folder, &is_whole).map_err(|e| error(&e))?;
        }
        let mut file = File::create(&path).map_err(|e| error(&e))?;
        let mut again: Vec<usize> = done.iter().copied().collect();
        again.sort_unstable();
        again.iter().try_for_each(|number| writeln!(file, "{number}")).map_err(|e| error(&e))?;
        let state = Marking {
            unfinished: self.unfinished.clone(),
            group: Mutex::default(),
            marks: Mutex::new((path, file)),
        };
        Ok(CompletionLog { done, state: Some(state) })
    }

    /// The name of the output folder, with links resolved where the path ends in none, such as `..`.
    pub fn name(&self) -> Option<String> {
        let resolved = || self.output.canonicalize().ok();
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        name(&self.output).or_else(|| name(&resolved()?))
    }

    /// Where a result is written until it is published.
    pub fn path(&self, name: &str) -> PathBuf {
        self.unfinished.join(name)
    }

    /// Makes a folder among the results.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn make(&self, name: &str) -> Result<(), Error> {
        fs::create_dir_all(self.path(name)).map_err(|e| cannot_write(&self.output.join(name), &e))
    }

    /// A file of JSON lines.
    pub fn table(&self, name: &str) -> Result<Table, Error> {
        let path = self.output.join(name);
        let file = File::create_new(self.path(name)).map_err(|e| cannot_write(&path, &e))?;
        let writer = BufWriter::with_capacity(1 << 16, file);
        Ok(Table { path, writer: Counted { writer, bytes: 0 } })
    }

    /// A whole file.
    pub fn text(&self, name: &str, text: &str) -> Result<(), Error> {
        fs::write(self.path(name), text).map_err(|e| cannot_write(&self.output.join(name), &e))
    }

    /// A whole file of bytes.
    pub fn bytes(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        fs::write(self.path(name), content).map_err(|e| cannot_write(&self.output.join(name), &e))
    }

    /// The error that a result cannot be written.
    pub fn cannot_write(&self, name: &str, error: &std::io::Error) -> Error {
        cannot_write(&self.output.join(name), error)
    }

    /// Gives everything its final name, the summary last. From here on nothing is left to do but this,
    /// and a later run can do it too.
    pub fn publish(&self) -> Result<(), Error> {
        let file = self.file.as_deref();
        let beside = file.and_then(|file| file.strip_prefix(&self.output).ok());
        written::list(&self.unfinished, &[STATE, ONE_FILE], beside)?;
        self.earlier.as_ref().map_or(Ok(()), |earlier| earlier.set_aside(UNFINISHED))?;
        if let Some(state) = &self.state {
            state.write(PUBLISHING, &[])?;
        }
        publish(&self.output, &self.unfinished, file, self.policy)?;
        self.earlier.as_ref().map_or(Ok(()), Earlier::remove)?;
        self.has_work.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Removes what is left of an earlier run that published all.
    fn tidy(output: &Path, unfinished: &Path) -> Result<OpenedFolder, Error> {
        let is_complete = is_complete(&output.join(LAST))?;
        fs::remove_dir_all(unfinished).map_err(|e| Error::io(unfinished, "remove", &e))?;
        Ok(OpenedFolder::Published { is_complete })
    }
}

/// Whether the job that a summary is of read and wrote every document.
fn is_complete(summary: &Path) -> Result<bool, Error> {
    let json = fs::read(summary).map_err(|e| Error::io(summary, "read", &e))?;
    let summary: serde_json::Value = serde_json::from_slice(&json).map_err(Error::invalid)?;
    Ok(summary["unreadable"] == 0 && summary["changed_files"].is_null())
}

/// Where the one file of all documents will be: its path with all links resolved.
///
/// # Errors
/// When it is there already, is or lies in an input, or would be among the results under the name of one of them.
fn prepare_file(
    file: &Path,
    output: &Path,
    inputs: &Inputs,
    earlier: EarlierResults,
) -> Result<PathBuf, Error> {
    let existing = match earlier {
        EarlierResults::Refuse => ExistingFile::Refuse,
        EarlierResults::Replace => ExistingFile::Replace,
    };
    let resolved = prepare_output_file(file, inputs, existing)?;
    let is_among = resolved.parent() == Some(output);
    let name = resolved.file_name().unwrap_or_default();
    if is_among && (name == UNFINISHED || RESULTS.iter().any(|of| name == *of)) {
        let problem = format!(
            " {}: a result of this name is in that folder: choose another name",
            file.display()
        );
        return Err(Error::Setting { setting: "output-file", problem });
    }
    if resolved.starts_with(output.join(UNFINISHED)) {
        let problem = format!(
            " {}: the folder of unfinished results is removed at the end: choose another",
            file.display()
        );
        return Err(Error::Setting { setting: "output-file", problem });
    }
    Ok(resolved)
}

/// Gives the one file of all documents its name. It may be on another disk, and gets there under another name first.
fn publish_file(
    made: &Path,
    file: &Path,
    unfinished: &Path,
    earlier: EarlierResults,
) -> Result<(), Error> {
    let error = |e: std::io::Error| cannot_write(file, &e);
    let parent = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(error)?;
    if Copying::take_up(unfinished)? == Copying::Published {
        return Ok(());
    }
    let replaces = earlier == EarlierResults::Replace;
    if !replaces && fs::symlink_metadata(file).is_ok() {
        return Err(error(std::io::ErrorKind::AlreadyExists.into()));
    }
    match fs::rename(made, file) {
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {
            let copy = Copying::copy(made, file, unfinished)?;
            let named = if replaces { copy.persist(file) } else { copy.persist_noclobber(file) };
            named.map_err(|e| {
                // The copy is removed, and has not got its name.
                let _ = fs::remove_file(unfinished.join(Copying::NOTE));
                error(e.error)
            })
        }
        renamed => renamed.map_err(error),
    }
}

/// What the note of a copy to another disk says once the job was stopped.
///
/// The note is a file in the folder of unfinished results: where the copy is, and a second line once the copy is whole. So a later job
/// removes a part of a copy, and knows a whole one that has got its final name. A path that is no text is not noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// No copy is left.
    None,
    /// The copy was whole, and has its final name.
    Published,
}

impl Copying {
    /// In the folder of unfinished results.
    const NOTE: &str = "copying";
    const WHOLE: &str = "whole";
    /// In the name of a copy, between that of the file and a number.
    const MARK: &str = ".nearsift-";

    /// Removes what a stopped job left of a copy.
    ///
    /// # Errors
    /// When the disk refuses.
    fn take_up(unfinished: &Path) -> Result<Copying, Error> {
        let note = unfinished.join(Copying::NOTE);
        let Ok(written) = fs::read_to_string(&note) else { return Ok(Copying::None) };
        // A note that was cut short here is older than the copy.
        let Some((path, rest)) = written.split_once('\n') else { return Ok(Copying::None) };
        let path: PathBuf = serde_json::from_str(path).map_err(Error::invalid)?;
        // A note that names anything else is not of this program.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !(name.starts_with('.') && name.contains(Copying::MARK)) {
            return Ok(Copying::None);
        }
        match fs::remove_file(&path) {
            Ok(()) => Ok(Copying::None),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => match rest.trim_end() {
                Copying::WHOLE => Ok(Copying::Published),
                _ => Ok(Copying::None),
            },
            Err(e) => Err(Error::io(&path, "remove", &e)),
        }
    }

    /// Copies a file to the disk of `file`, beside it, under a name that is not taken.
    ///
    /// # Errors
    /// When a disk refuses or is full; nothing stays of the copy then.
    fn copy(made: &Path, file: &Path, unfinished: &Path) -> Result<tempfile::TempPath, Error> {
        let error = |e: std::io::Error| cannot_write(file, &e);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut names =
            (0u32..).map(|n| file.with_file_name(format!(".{name}{}{n}", Copying::MARK)));
        let path = names.find(|path| fs::symlink_metadata(path).is_err());
        let path = path.ok_or_else(|| error(std::io::ErrorKind::AlreadyExists.into()))?;
        let note = unfinished.join(Copying::NOTE);
        let mut lines = File::create(&note).map_err(|e| Error::io(&note, BE_WRITTEN, &e))?;
        let mut add = |line: &str| match path.to_str() {
            None => Ok(()),
            Some(_) => writeln!(lines, "{line}")
                .and_then(|()| lines.sync_all())
                .map_err(|e| Error::io(&note, BE_WRITTEN, &e)),
        };
        add(&serde_json::Value::from(path.to_string_lossy()).to_string())?;
        let mut to = File::create_new(&path).map_err(error)?;
        let copy = tempfile::TempPath::try_from_path(&path).map_err(error)?;
        let mut from = File::open(made).map_err(error)?;
        std::io::copy(&mut from, &mut to).map_err(error)?;
        let mode = from.metadata().map_err(error)?.permissions();
        to.set_permissions(mode).map_err(error)?;
        to.sync_all().map_err(error)?;
        add(Copying::WHOLE)?;
        Ok(copy)
    }
}

fn publish(
    output: &Path,
    unfinished: &Path,
    file: Option<&Path>,
    earlier: EarlierResults,
) -> Result<(), Error> {
    let error = |e| cannot_write(output, &e);
    // The list first: it covers what has its name already, should this end in the middle.
    match fs::rename(unfinished.join(LIST), output.join(LIST)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(error(e)),
        _ => {}
    }
    let one = unfinished.join(ONE_FILE);
    if let Some(file) = file.filter(|_| one.is_dir()) {
        for entry in fs::read_dir(&one).map_err(error)? {
            publish_file(&entry.map_err(error)?.path(), file, unfinished, earlier)?;
        }
        fs::remove_dir_all(&one).map_err(error)?;
    }
    match fs::remove_file(unfinished.join(Copying::NOTE)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(error(e)),
        _ => {}
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(unfinished).map_err(error)? {
        names.push(entry.map_err(error)?.file_name());
    }
    names.retain(|name| name != STATE);
    names.sort_by_key(|name| (name == LAST, name.clone()));
    for name in names {
        fs::rename(unfinished.join(&name), output.join(&name)).map_err(error)?;
    }
    Ok(())
}

/// Removes what an earlier run wrote, but for its state and the kept documents: which of these are
/// whole the state knows.
fn clear(unfinished: &Path) -> Result<(), Error> {
    let error = |e| Error::io(unfinished, "clear", &e);
    let written = unfinished.join(STATE).join(WRITTEN).is_file();
    for entry in fs::read_dir(unfinished).map_err(error)? {
        let entry = entry.map_err(error)?;
        let name = entry.file_name();
        if name == STATE || (written && OF_DOCUMENTS.iter().any(|of| name == *of)) {
            continue;
        }
        let is_folder = entry.file_type().map_err(error)?.is_dir();
        let path = entry.path();
        if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }.map_err(error)?;
    }
    Ok(())
}

/// Removes the files below a folder, if it is there, but for those that are whole.
fn remove_files(folder: &Path, is_whole: &impl Fn(&Path) -> bool) -> std::io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_files(&path, is_whole)?;
        } else if !is_whole(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keeps_work() {
            // Nothing can be done about a failure here, and an unfinished folder says so by its name.
            let _ = fs::remove_dir_all(&self.unfinished);
        }
        self.interrupt.clear_unfinished();
    }
}

/// Files whose kept documents are written.
///
/// Files reach the disk and are marked in groups: of a million small ones, each with a sync of its own, syncs take nearly all
/// of the time.
#[derive(Debug, Default)]
pub struct CompletionLog {
    done: HashSet<usize>,
    state: Option<Marking>,
}

#[derive(Debug)]
struct Marking {
    unfinished: PathBuf,
    group: Mutex<Group>,
    marks: Mutex<(PathBuf, File)>,
}

/// Files that are written and not marked yet.
#[derive(Debug, Default)]
struct Group {
    files: Vec<usize>,
    outputs: Vec<PathBuf>,
    bytes: u64,
}

impl Group {
    /// As many files, or as many bytes of them, are synced and marked together: what a killed run does again.
    const FILES: usize = 4096;
    const BYTES: u64 = 64 << 20;
    /// From this many outputs on their file system is synced as a whole.
    #[cfg(target_os = "linux")]
    const MANY: usize = 16;

    fn is_full(&self) -> bool {
        self.files.len() >= Group::FILES || self.bytes >= Group::BYTES
    }

    /// Waits until the outputs are on the disk.
    fn sync(&self, unfinished: &Path) -> Result<(), Error> {
        // Others than Linux say nothing of what failed while a file system was synced.
        #[cfg(target_os = "linux")]
        if self.outputs.len() >= Group::MANY {
            return File::open(unfinished)
                .and_then(|folder| Ok(rustix::fs::syncfs(folder)?))
                .map_err(|e| cannot_write(unfinished, &e));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = unfinished;
        self.outputs.iter().try_for_each(|path| {
            File::open(path)
                .and_then(|written| written.sync_all())
                .map_err(|e| cannot_write(path, &e))
        })
    }
}

impl CompletionLog {
    /// Whether a file's are.
    pub fn has(&self, file: usize) -> bool {
        self.done.contains(&file)
    }

    /// From now on they are, once their bytes have reached the disk: at `output` below the folders. Marked they are then, or at
    /// the latest by [`CompletionLog::finish`].
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set(&self, file: usize, folders: &[PathBuf], output: &Path) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        let mut outputs = Vec::new();
        let mut bytes = 0;
        for path in folders.iter().map(|folder| folder.join(output)) {
            match fs::metadata(&path) {
                Ok(written) => {
                    bytes += written.len();
                    outputs.push(path);
                }
                // Nothing stays of it there.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(cannot_write(&path, &e)),
            }
        }
        let full = {
            let mut group = lock(&state.group);
            group.files.push(file);
            group.outputs.append(&mut outputs);
            group.bytes += bytes;
            if !group.is_full() {
                return Ok(());
            }
            std::mem::take(&mut *group)
        };
        state.mark(&full)
    }

    /// CompletionLog what is not marked yet.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(self) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        let group = std::mem::take(&mut *lock(&state.group));
        state.mark(&group)
    }
}

impl Marking {
    fn mark(&self, group: &Group) -> Result<(), Error> {
        if group.files.is_empty() {
            return Ok(());
        }
        group.sync(&self.unfinished)?;
        let mut lines = String::new();
        for file in &group.files {
            lines.push_str(&format!("{file}\n"));
        }
        let (path, marks) = &mut *lock(&self.marks);
        marks
            .write_all(lines.as_bytes())
            .and_then(|()| marks.sync_data())
            .map_err(|e| Error::io(path, "keep the work in", &e))
    }
}

/// JSON lines that are being written.
pub struct Table {
    path: PathBuf,
    writer: Counted,
}

/// What is written to a file, and how many bytes that is.
struct Counted {
    writer: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

impl Table {
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.writer, value)
            .map_err(Into::into)
            .and_then(|()| self.writer.write_all(b"\n"))
            .map_err(|e| cannot_write(&self.path, &e))
    }

    /// The bytes of the lines so far.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes
    }

    /// A line that is JSON already.
    pub fn raw(&mut self, line: &str) -> Result<(), Error> {
        writeln!(self.writer, "{line}").map_err(|e| cannot_write(&self.path, &e))
    }

    /// Must be called at the end: a full disk may show only here.
    pub fn finish(mut self) -> Result<(), Error> {
        self.writer.flush().map_err(|e| cannot_write(&self.path, &e))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::io(path, BE_WRITTEN, error)
}
