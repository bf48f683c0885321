//! The documents of all inputs as batches of raw records.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::batch::{Batch, Context, Entry};
use crate::inputs::{Change, InputFile, Seen, State};
use crate::parse::Columns;
use crate::split::{self, Passed, Piece, Pieces, Stretch};
use crate::{Error, Format, Inputs, Note, Reason};

/// A batch ends after this many records, however short they are.
const BATCH_RECORDS: usize = 1 << 16;

/// Whether a thread that decompresses takes no core from those that work on documents.
fn has_cores() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 4)
}

/// What a later pass reads: a part of the inputs that can be read beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Whole files, by their indices in [`Inputs::files`].
    Files(Range<usize>),
    /// Sections of one file, by their numbers: see [`Inputs::sections`].
    Sections {
        /// The index of the file.
        file: usize,
        /// The sections.
        sections: Range<usize>,
    },
}

impl Span {
    fn first_file(&self) -> usize {
        match self {
            Span::Files(files) => files.start,
            Span::Sections { file, .. } => *file,
        }
    }
}

/// Reads all inputs, or a part of them, in order, in batches of about
/// [`ReadOptions::batch_bytes`](crate::ReadOptions::batch_bytes). Readers of different parts may work at the same time.
///
/// Batches may be given back with [`recycle`](Reader::recycle), so that their memory is used again. What a batch
/// holds depends on the inputs and options alone.
///
/// A file that cannot be read, or not to its end, is a [note](Batch::notes), and reading goes on with the next.
#[derive(Debug)]
pub struct Reader {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Here(Box<Sequence>),
    Background(Background),
}

impl Reader {
    /// Reads when asked, on the caller's thread.
    pub fn new(inputs: &Inputs) -> Self {
        Self { way: Way::Here(Box::new(Sequence::new(inputs))) }
    }

    /// Reads a range of files on a thread of its own, at most `ahead` batches ahead; a batch as large as `ahead` usual ones counts as
    /// all of them. Dropping the reader stops and joins the thread.
    ///
    /// For a first pass: records are numbered from 0 at the first file of the range, because nothing is known of the files
    /// before it.
    ///
    /// # Errors
    /// [`Error::Thread`] when the system gives no thread.
    ///
    /// # Panics
    /// When the range ends behind the last file.
    pub fn in_background(
        inputs: &Inputs,
        files: Range<usize>,
        ahead: NonZeroUsize,
    ) -> Result<Self, Error> {
        let sequence = Sequence {
            works_ahead: has_cores(),
            cuts_sections: true,
            ..Sequence::of(inputs, files)
        };
        Ok(Self { way: Way::Background(Background::start(sequence, ahead)?) })
    }

    /// As [`in_background`](Reader::in_background), for a later pass: every record has the index that it has in the whole input.
    ///
    /// With `past_changes` it goes on where a file is not what the first pass read: every other record has the index that it
    /// had, and of that file no more are read than there were. [`Inputs::change`] reports which files these are; nothing of them
    /// can be written.
    ///
    /// # Errors
    /// As [`in_background`](Reader::in_background); [`Error::NotRead`] before the files in front of the span, and the file whose
    /// sections are read, have been read to their ends.
    ///
    /// # Panics
    /// When there are no such files or sections.
    pub fn again(
        inputs: &Inputs,
        span: &Span,
        ahead: NonZeroUsize,
        past_changes: bool,
    ) -> Result<Self, Error> {
        let sequence = Sequence {
            passes_over: past_changes,
            works_ahead: has_cores(),
            ..Sequence::again(inputs, span)?
        };
        Ok(Self { way: Way::Background(Background::start(sequence, ahead)?) })
    }

    /// Reads one file once more, by its index in [`Inputs::files`], when asked and on the caller's thread: every record has the
    /// index that it had.
    ///
    /// # Errors
    /// [`Error::NotRead`] before the file and all before it have been read to their ends.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn of_file(inputs: &Inputs, file: usize) -> Result<Self, Error> {
        let own = &inputs.files()[file];
        if own.seen.get().is_none() {
            return Err(Error::NotRead { file: own.name() });
        }
        let sequence = Sequence::again(inputs, &Span::Files(file..file + 1))?;
        Ok(Self { way: Way::Here(Box::new(sequence)) })
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Changed`] when an earlier pass over the same inputs read something else.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        match &mut self.way {
            Way::Here(sequence) => sequence.next_batch(),
            Way::Background(background) => background.next_batch(),
        }
    }

    /// As [`next_batch`](Reader::next_batch), but returns `Ok(Err(NotYet))` while the thread of the reader still works on the batch.
    ///
    /// # Errors
    /// As [`next_batch`](Reader::next_batch).
    pub fn try_next_batch(&mut self) -> Result<Result<Option<Batch>, NotYet>, Error> {
        match &mut self.way {
            Way::Here(sequence) => sequence.next_batch().map(Ok),
            Way::Background(background) => background.try_next_batch(),
        }
    }

    /// Takes a batch back for its memory.
    pub fn recycle(&mut self, batch: Batch) {
        match &mut self.way {
            Way::Here(sequence) => sequence.recycle(batch),
            // When the thread has ended, so has the need.
            Way::Background(background) => {
                if let Some(used) = &background.used {
                    drop(used.send(batch));
                }
            }
        }
    }
}

/// A batch that is not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotYet;

/// Files one after another.
struct Sequence {
    inputs: Inputs,
    /// The file that is read, or will be next.
    file: usize,
    /// The file before which reading ends.
    end: usize,
    /// Whether reading goes on after a file that has changed.
    passes_over: bool,
    /// Whether large files are decompressed on a thread of their own.
    works_ahead: bool,
    /// Whether files are cut into sections, for later passes.
    cuts_sections: bool,
    /// The sections that are read, where it is not the whole file.
    stretch: Option<Stretch>,
    current: Option<Box<dyn Pieces>>,
    /// The member of an archive that is read, and its format.
    member: Option<(Arc<str>, Format)>,
    columns: Columns,
    /// What has been read and not yet handed over, from the start of the batch on.
    buffer: Vec<u8>,
    /// Records handed over, or in the batch that is being filled.
    records: u64,
    /// The same at the start of the file.
    file_first: u64,
    /// Bytes taken from the files before this one.
    position: u64,
    spare: Vec<Batch>,
}

impl std::fmt::Debug for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, records, .. } = self;
        f.debug_struct("Sequence").field("file", file).field("records", records).finish()
    }
}

impl Sequence {
    fn new(inputs: &Inputs) -> Self {
        Self::of(inputs, 0..inputs.files().len())
    }

    /// In a later pass, which numbers records over the whole input.
    fn again(inputs: &Inputs, span: &Span) -> Result<Self, Error> {
        let file = span.first_file();
        let not_read = || Error::NotRead { file: inputs.files()[file].name() };
        let first = inputs.first_record(file).ok_or_else(not_read)?;
        match span {
            Span::Files(files) => Ok(Self { records: first, ..Self::of(inputs, files.clone()) }),
            Span::Sections { sections, .. } => {
                let seen = inputs.files()[file].seen.get().ok_or_else(not_read)?;
                let stretch = Stretch::of(&seen.passed.sections, sections.clone());
                let records = first + stretch.before.records;
                let stretch = Some(stretch);
                Ok(Self { records, stretch, ..Self::of(inputs, file..file + 1) })
            }
        }
    }

    fn of(inputs: &Inputs, files: Range<usize>) -> Self {
        assert!(files.end <= inputs.files().len(), "there are no such files");
        Self {
            inputs: inputs.clone(),
            file: files.start,
            end: files.end,
            passes_over: false,
            works_ahead: false,
            cuts_sections: false,
            stretch: None,
            current: None,
            member: None,
            columns: Columns::default(),
            buffer: Vec::new(),
            records: 0,
            file_first: 0,
            position: 0,
            spare: Vec::new(),
        }
    }

    fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        // One huge record must not hold its memory for ever.
        let usual = self.inputs.options().batch_bytes.saturating_mul(2).max(4 << 20);
        batch.bytes.shrink_to(usual);
        if self.spare.len() < 4 {
            self.spare.push(batch);
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.first = self.records;
        // What the next record shares with others, where the batch has it already.
        let mut context = None;
        while self.file < self.end {
            // Behind a file that has changed, indices go on as they were: those of a batch have no gap.
            if batch.entries.is_empty() {
                batch.first = self.records;
            } else if batch.first + batch.entries.len() as u64 != self.records {
                break;
            }
            let Some(pieces) = &self.current else {
                context = None;
                self.begin_file(&mut batch)?;
                continue;
            };
            let is_full = pieces.start() >= self.inputs.options().batch_bytes;
            if is_full || batch.entries.len() >= BATCH_RECORDS {
                break;
            }
            self.take_piece(&mut batch, &mut context)?;
        }
        self.hand_over(batch)
    }

    /// Opens the next file, or notes why it cannot be read.
    fn begin_file(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let inputs = self.inputs.clone();
        let file = &inputs.files()[self.file];
        self.file_first = self.records;
        self.columns = Columns::default();
        self.member = None;
        match self.open(file) {
            Ok(pieces) => self.current = Some(pieces),
            Err(reason) => {
                let state = match reason {
                    Reason::Open(_) | Reason::Read(_) => State::Closed,
                    _ => State::Refused,
                };
                batch.notes.push(Note::new(file.name(), None, reason));
                self.end_of_file(state)?;
            }
        }
        Ok(())
    }

    /// Adds the next piece of the open file to a batch.
    fn take_piece(&mut self, batch: &mut Batch, context: &mut Option<u32>) -> Result<(), Error> {
        let is_past_end = self.is_past_end();
        let cells = batch.cells.len();
        let Some(pieces) = &mut self.current else { return Ok(()) };
        match pieces.next(&mut self.buffer, &mut batch.cells) {
            Some(Piece::Record { .. }) if is_past_end => {
                let got = self.records - self.file_first + 1;
                self.leave_file(got);
            }
            Some(Piece::Record { range, line, closed }) => {
                let context = *context.get_or_insert_with(|| {
                    batch.contexts.push(self.context());
                    batch.contexts.len() as u32 - 1
                });
                let cells = cells..batch.cells.len();
                batch.entries.push(Entry { range, line, context, closed, cells });
                self.records += 1;
            }
            Some(Piece::Header { range, delimiter }) => {
                self.columns = Columns::new(&self.buffer[range], delimiter, self.inputs.plan());
            }
            Some(Piece::Long { range, line, whole }) => {
                // The record is not wanted: its bytes make room, those after it move up.
                let len = range.len();
                self.buffer.drain(range);
                pieces.rebase(len);
                if let Some(bytes) = whole {
                    let limit = self.inputs.options().limits.record_bytes;
                    let reason = Reason::TooLong { bytes, limit };
                    batch.notes.push(Note::new(self.name(), Some(line), reason));
                }
            }
            Some(Piece::Damage { reason, line }) => {
                batch.notes.push(Note::new(self.name(), Some(line), reason));
            }
            Some(Piece::Member { name, format }) => {
                self.member = Some((name, format));
                self.columns = Columns::default();
                *context = None;
            }
            Some(Piece::Note { name, reason }) => {
                batch.notes.push(Note::new(&*name, None, reason));
            }
            Some(Piece::Gap(_) | Piece::Cut(_)) => {}
            None => {
                self.end_of_file(State::Read)?;
                *context = None;
            }
        }
        Ok(())
    }

    /// What the records share that come next.
    fn context(&self) -> Context {
        let (member, format) = match &self.member {
            Some((member, format)) => (Some(Arc::clone(member)), *format),
            None => (None, self.inputs.files()[self.file].format()),
        };
        Context { file: self.file as u32, format, member, columns: self.columns.clone() }
    }

    /// The name of the open file, or of its member that is read.
    fn name(&self) -> String {
        match &self.member {
            Some((member, _)) => member.to_string(),
            None => self.inputs.files()[self.file].name(),
        }
    }

    fn open(&self, file: &InputFile) -> Result<Box<dyn Pieces>, Reason> {
        let start = self.buffer.len();
        if let Some(stretch) = &self.stretch {
            let splitter = split::open_stretch(file, stretch, self.inputs.options(), start)?;
            return Ok(Box::new(splitter));
        }
        let cuts = self.cuts_sections && !file.format().is_archive();
        let section_bytes = cuts.then(|| self.inputs.section_bytes(file));
        let way = split::Way { ahead: self.works_ahead, section_bytes, ..self.inputs.way() };
        split::open(file, &way, start)
    }

    /// The batch with its bytes; the unfinished rest moves to the buffer of the next.
    fn hand_over(&mut self, mut batch: Batch) -> Result<Option<Batch>, Error> {
        let done = self.current.as_ref().map_or(self.buffer.len(), |p| p.start());
        batch.bytes.clear();
        batch.bytes.extend_from_slice(&self.buffer[done..]);
        self.buffer.truncate(done);
        std::mem::swap(&mut self.buffer, &mut batch.bytes);
        if let Some(pieces) = &mut self.current {
            pieces.rebase(done);
        }
        batch.position = self.position + self.current.as_ref().map_or(0, |p| p.consumed());
        let at_end = self.file >= self.end;
        let nothing = batch.is_empty() && batch.notes.is_empty();
        if at_end && nothing {
            return Ok(None);
        }
        Ok(Some(batch))
    }

    /// Whether the file has as many records already as it had in the first pass, and may have changed.
    fn is_past_end(&self) -> bool {
        let file = &self.inputs.files()[self.file];
        let expected = match &self.stretch {
            Some(stretch) => Some(stretch.records()),
            None => file.seen.get().map(|seen| seen.records),
        };
        self.passes_over && expected.is_some_and(|all| self.records - self.file_first >= all)
    }

    /// Goes on with the next file: this one has more records than it had, at least `got`.
    fn leave_file(&mut self, got: u64) {
        let expected = self.records - self.file_first;
        let others = self.stretch.as_ref().map_or(0, Stretch::other_records);
        let change = Change { what: "records", expected: others + expected, got: others + got };
        self.inputs.files()[self.file].change.get_or_init(|| change);
        let pieces = self.current.take();
        self.position += pieces.map_or(0, |p| p.consumed());
        self.file += 1;
    }

    fn end_of_file(&mut self, state: State) -> Result<(), Error> {
        let pieces = self.current.take();
        let passed = pieces.as_ref().map_or_else(Passed::default, |p| p.passed());
        let file = &self.inputs.files()[self.file];
        let (records, change) = match &self.stretch {
            Some(stretch) => (stretch.records(), stretch.change(&passed.sections)),
            None => {
                let records = self.records - self.file_first;
                let seen = Seen { records, state, passed };
                let first = file.seen.get_or_init(|| seen.clone());
                (first.records, first.change(&seen))
            }
        };
        if let Some(change) = change {
            if !self.passes_over {
                return Err(change.of(&file.name()));
            }
            file.change.get_or_init(|| change);
            self.records = self.file_first + records;
        }
        self.position += pieces.map_or(0, |p| p.consumed());
        self.file += 1;
        Ok(())
    }
}

/// A [`Sequence`] on its own thread.
#[derive(Debug)]
struct Background {
    filled: Option<Receiver<Result<Batch, Error>>>,
    used: Option<Sender<Batch>>,
    unread: Arc<Unread>,
    thread: Option<JoinHandle<()>>,
}

/// How many bytes were read ahead.
#[derive(Debug)]
struct Unread {
    /// `None` when nobody wants more.
    bytes: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Unread {
    fn change(&self, change: impl FnOnce(&mut Option<usize>)) {
        change(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits while the batches ahead hold this many bytes or more.
    fn wait_below(&self, most: usize) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while bytes.is_some_and(|bytes| bytes >= most) {
            bytes = self.changed.wait(bytes).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Background {
    fn start(mut sequence: Sequence, ahead: NonZeroUsize) -> Result<Self, Error> {
        // The thread holds one more batch, the one that it waits to send.
        let (filled_in, filled): (SyncSender<Result<Batch, Error>>, _) =
            sync_channel(ahead.get() - 1);
        let (used, used_out) = channel();
        let unread = Arc::new(Unread { bytes: Mutex::new(Some(0)), changed: Condvar::new() });
        let own = Arc::clone(&unread);
        let most = sequence.inputs.options().batch_bytes.saturating_mul(ahead.get());
        let work = move || {
            while let Some(next) = sequence.next_batch().transpose() {
                let failed = next.is_err();
                let read = next.as_ref().map_or(0, Batch::bytes);
                own.change(|bytes| *bytes = bytes.map(|bytes| bytes + read));
                if filled_in.send(next).is_err() || failed {
                    return;
                }
                own.wait_below(most);
                while let Ok(batch) = used_out.try_recv() {
                    sequence.recycle(batch);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("nearsift-read".to_owned())
            .spawn(work)
            .map_err(|e| Error::Thread(e.to_string()))?;
        Ok(Self { filled: Some(filled), used: Some(used), unread, thread: Some(thread) })
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        match self.filled.as_ref().map(Receiver::recv) {
            Some(Ok(next)) => self.take(next).map(Some),
            Some(Err(_)) | None => self.end(),
        }
    }

    fn try_next_batch(&mut self) -> Result<Result<Option<Batch>, NotYet>, Error> {
        match self.filled.as_ref().map(Receiver::try_recv) {
            Some(Ok(next)) => self.take(next).map(|batch| Ok(Some(batch))),
            Some(Err(TryRecvError::Empty)) => Ok(Err(NotYet)),
            Some(Err(TryRecvError::Disconnected)) | None => self.end().map(Ok),
        }
    }

    /// Makes room for what is read after a batch.
    fn take(&self, next: Result<Batch, Error>) -> Result<Batch, Error> {
        let taken = next.as_ref().map_or(0, Batch::bytes);
        self.unread.change(|bytes| *bytes = bytes.map(|bytes| bytes - taken));
        next
    }

    /// Joins the thread, which has ended: nothing comes any more.
    fn end(&mut self) -> Result<Option<Batch>, Error> {
        self.filled = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => {
                let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(Error::Thread(text.unwrap_or_else(|| "panicked".to_owned())))
            }
            Some(Ok(())) | None => Ok(None),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The thread ends when nothing takes what it sends.
        self.filled = None;
        self.used = None;
        self.unread.change(|bytes| *bytes = None);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
