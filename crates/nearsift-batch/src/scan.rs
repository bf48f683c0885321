//! One pass over all documents: read in order, or in several lanes at once, worked on in parallel, taken in the order of each lane.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use nearsift_io::{
    Batch, Body, DocumentId, Inputs, Note, Parser, Place, Reader, Record, Span, Value,
};
use rayon::Yield;
use rayon::prelude::*;

use crate::admission::{Ticket, TooLarge};
use crate::context::{Context, Phase};
use crate::documents::{Text, text_of};
use crate::error::Error;
use crate::lock;
use crate::notice::{Level, Topic};
use crate::remark::Remark;

/// A document as a worker sees it.
pub struct Seen<'a> {
    pub place: Place,
    pub id: &'a DocumentId<'a>,
    pub text: &'a Text<'a>,
    /// The values of the wanted fields.
    pub fields: &'a [Option<Value<'a>>],
    /// Characters that could not be decoded.
    pub replaced: u64,
}

/// Records that one worker takes at a time: enough to be worth the hand-over, few enough to share.
const CHUNK: usize = 32;
/// Batches that are read ahead.
const AHEAD: std::num::NonZeroUsize = std::num::NonZeroUsize::new(2).expect("two");

/// Batches that are worked on at once: so nobody waits at the end of one for who has its last records, and meanwhile the
/// one before is taken.
const AT_ONCE: usize = 2;

/// While the batches that are worked on hold more bytes, no other is begun: records may be as large as batches.
const BYTES_AT_ONCE: usize = 64 << 20;

/// How long a thread of the pool that has nothing to do waits before it looks for work again.
const LOOK: Duration = Duration::from_micros(200);

/// A part of the input that is read in order, while other lanes are read beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    pub span: Span,
    /// The first batches that are read and not worked on: an earlier job did that.
    pub skip: u64,
}

/// More lanes are not made: each has columns of its own.
const LANES: u64 = 64;

/// More lanes are not read at once: each has a thread that reads.
const LANES_AT_ONCE: usize = 8;

impl Lane {
    /// All files.
    pub fn whole(inputs: &Inputs) -> Lane {
        Lane::of(Span::Files(0..inputs.files().len()))
    }

    fn of(span: Span) -> Lane {
        Lane { span, skip: 0 }
    }

    /// For a first pass: all files, cut into lanes of at least [`lane_bytes`](crate::Bounds::lane_bytes) each as stored, but for the last one. The
    /// cut depends on the sizes of the files alone, and not on the machine: a job goes on with the lanes of the job that it
    /// resumes.
    pub fn cut(context: &Context<'_>, inputs: &Inputs) -> Vec<Lane> {
        let least = Lane::least_bytes(context, inputs);
        let mut lanes = Vec::new();
        let (mut start, mut size) = (0, 0);
        for (file, after) in inputs.files().iter().zip(1..) {
            size += file.bytes();
            if size >= least || after == inputs.files().len() {
                lanes.push(Lane::of(Span::Files(start..after)));
                (start, size) = (after, 0);
            }
        }
        lanes
    }

    /// For a later pass: as [`cut`](Lane::cut), but that large files are cut into their sections.
    pub fn cut_again(context: &Context<'_>, inputs: &Inputs) -> Vec<Lane> {
        let least = Lane::least_bytes(context, inputs);
        let sections_of = |lane: Lane| match lane.span {
            Span::Files(Range { start: file, end }) if file + 1 == end => {
                let sections = inputs.sections(file, least);
                let of_section = |sections| Lane::of(Span::Sections { file, sections });
                match sections.len() {
                    0 | 1 => vec![lane],
                    _ => sections.into_iter().map(of_section).collect(),
                }
            }
            _ => vec![lane],
        };
        Lane::cut(context, inputs).into_iter().flat_map(sections_of).collect()
    }

    /// What reads it in a first pass. Sections are known after one only.
    fn first_reader(&self, inputs: &Inputs) -> Result<Reader, Error> {
        Ok(match &self.span {
            Span::Files(files) => Reader::in_background(inputs, files.clone(), AHEAD)?,
            span @ Span::Sections { .. } => Reader::again(inputs, span, AHEAD, false)?,
        })
    }

    fn least_bytes(context: &Context<'_>, inputs: &Inputs) -> u64 {
        context.bounds.lane_bytes.max(inputs.total_bytes() / LANES).max(1)
    }

    /// How many are read at once: so many that reading keeps up with the threads, and no more than a memory limit has room for.
    fn at_once(context: &Context<'_>, inputs: &Inputs) -> usize {
        /// Threads that one reader keeps busy where records are only parsed, as in a second pass.
        const THREADS: usize = 2;
        let held = inputs.options().batch_bytes.saturating_mul(AHEAD.get() + AT_ONCE + 2).max(1);
        let room = context.memory_bytes.map_or(u64::MAX, |bytes| bytes / 16 / held as u64);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        (rayon::current_num_threads() / THREADS).min(room).clamp(1, LANES_AT_ONCE)
    }
}

/// What a pass over the input is for.
pub struct Pass<'a> {
    /// What observers call it.
    pub phase: Phase,
    /// The lanes that the input is read in; `None` for one of all files.
    pub lanes: Option<&'a [Lane]>,
    /// Whether a record, by its number, is worked on; the others are not even parsed.
    pub wanted: Option<&'a (dyn Fn(u64) -> bool + Sync)>,
    /// Whether files were read before.
    pub reads: Reads,
}

/// How a pass reads files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Perhaps for the first time: records are numbered from 0 in every lane.
    First,
    /// Once more: records have their numbers in the whole input.
    Again,
    /// As [`Reads::Again`], also where a file is not what an earlier pass read: [`Inputs::change`] reports which.
    PastChanges,
}

impl Pass<'_> {
    /// Over all records, in order.
    pub fn new(phase: Phase) -> Pass<'static> {
        Pass { phase, lanes: None, wanted: None, reads: Reads::First }
    }

    fn reader(&self, inputs: &Inputs, lane: &Lane) -> Result<Reader, Error> {
        Ok(match self.reads {
            Reads::First => lane.first_reader(inputs)?,
            Reads::Again => Reader::again(inputs, &lane.span, AHEAD, false)?,
            Reads::PastChanges => Reader::again(inputs, &lane.span, AHEAD, true)?,
        })
    }
}

/// Who takes the results of a pass: those of one lane in the order of its files. Lanes are numbered from 0 in the order of the
/// input, and take turns.
pub trait Take<T> {
    /// A record's result, or why it is no document.
    ///
    /// # Errors
    /// What ends the pass.
    fn record(&mut self, lane: usize, place: Place, done: Result<T, Note>) -> Result<(), Error>;

    /// All records of a batch were taken.
    ///
    /// # Errors
    /// What ends the pass.
    fn batch(&mut self, _lane: usize, _: &Batch) -> Result<(), Error> {
        Ok(())
    }

    /// All batches of a lane were taken.
    ///
    /// # Errors
    /// What ends the pass.
    fn end(&mut self, _lane: usize) -> Result<(), Error> {
        Ok(())
    }

    /// The user has asked to stop, between two batches.
    ///
    /// # Errors
    /// What ends the pass.
    fn stop(&mut self) -> Result<(), Error> {
        Err(Error::INTERRUPTED)
    }
}

/// A reader of the first lane whose first batch was looked at before the pass.
pub struct Opened {
    reader: Reader,
    first: Option<Batch>,
}

impl Opened {
    /// # Errors
    /// An input that cannot be read.
    pub fn at(inputs: &Inputs, lane: &Lane) -> Result<Opened, Error> {
        let mut reader = lane.first_reader(inputs)?;
        let first = reader.next_batch()?;
        Ok(Opened { reader, first })
    }

    /// The first batch; `None` where there is no record.
    pub fn first(&self) -> Option<&Batch> {
        self.first.as_ref()
    }
}

/// A closure that takes the results of records.
struct Each<F>(F);

impl<T, F: FnMut(Place, Result<T, Note>) -> Result<(), Error>> Take<T> for Each<F> {
    fn record(&mut self, _: usize, place: Place, done: Result<T, Note>) -> Result<(), Error> {
        self.0(place, done)
    }
}

/// As [`scan_into`], with a closure for the results.
///
/// # Errors
/// What `take` returns, or as [`scan_into`].
pub fn scan<W: Send, T: Send>(
    context: &Context<'_>,
    inputs: &Inputs,
    pass: &Pass<'_>,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    take: impl FnMut(Place, Result<T, Note>) -> Result<(), Error>,
) -> Result<Vec<Note>, Error> {
    scan_into(context, inputs, pass, None, make, work, &mut Each(take))
}

/// Gives what `work` makes of every document to `each`, in the order of the input. Reports what could not be read, and returns
/// how many documents and files that were.
///
/// # Errors
/// What `each` returns, or as [`scan_into`].
pub fn scan_documents<W: Send, T: Send>(
    context: &Context<'_>,
    inputs: &Inputs,
    phase: Phase,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    mut each: impl FnMut(T) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut problems = Problems::default();
    let notes = scan(context, inputs, &Pass::new(phase), make, work, |_, done| match done {
        Ok(made) => each(made),
        Err(note) => {
            problems.add(context, &note);
            Ok(())
        }
    })?;
    notes.iter().for_each(|note| problems.add(context, note));
    Ok(problems.count())
}

/// Reads every document once. `work` runs on all threads, each with what `make` gives;
/// `take` gets what it returned, or why the record is no document, in the order of each lane. `opened` is a reader of the first
/// lane, if there is one already.
///
/// Returns what was wrong with whole files or with records that were never seen, in the order of the input.
///
/// # Errors
/// What `take` returns, an input that changed unless the pass goes on all the same, a document too large for
/// the memory limit, or an interruption.
pub fn scan_into<W: Send, T: Send>(
    context: &Context<'_>,
    inputs: &Inputs,
    pass: &Pass<'_>,
    mut opened: Option<Opened>,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    take: &mut impl Take<T>,
) -> Result<Vec<Note>, Error> {
    let workers = &Workers::new(context, inputs, pass, make, work);
    let progress = context.begin(pass.phase, inputs.total_bytes());
    let whole = [Lane::whole(inputs)];
    let lanes = pass.lanes.unwrap_or(&whole);
    let at_once = Lane::at_once(context, inputs);
    let mut notes: Vec<Vec<Note>> = vec![Vec::new(); lanes.len()];
    let (mut position, mut bytes_under_way) = (0, 0);
    rayon::in_place_scope(|scope| -> Result<(), Error> {
        let mut waiting = lanes.iter().enumerate();
        let mut open: Vec<OpenLane<T>> = Vec::new();
        loop {
            while open.len() < at_once
                && let Some((number, lane)) = waiting.next()
            {
                let opened = opened.take().map_or_else(
                    || Ok((pass.reader(inputs, lane)?, None)),
                    |opened| Ok::<_, Error>((opened.reader, Some(opened.first))),
                )?;
                open.push(OpenLane::new(number, lane.skip, opened));
            }
            if open.is_empty() {
                return Ok(());
            }
            // Nothing else can be done meanwhile: the one lane waits for its reader and its workers.
            let waits = open.len() == 1;
            let mut is_idle = !waits;
            for lane in &mut open {
                while lane.has_room(bytes_under_way) {
                    let Some(batch) = lane.next_batch(waits)? else { break };
                    is_idle = false;
                    notes[lane.number].extend_from_slice(batch.notes());
                    let len = lane.len_of(&batch);
                    let bytes = batch.bytes();
                    bytes_under_way += bytes;
                    let (done, result) = sync_channel(1);
                    scope.spawn(move |_| {
                        let chunks = workers.work_on(&batch, len);
                        // Where nobody waits for it any more, the pass has ended.
                        drop(done.send(Done { batch, chunks }));
                    });
                    lane.under_way.push_back(UnderWay { bytes, result });
                }
                let Some((bytes, done)) = lane.next_done(waits)? else { continue };
                is_idle = false;
                bytes_under_way -= bytes;
                workers.check_refused()?;
                let batch = done.hand_over(lane.number, take)?;
                position += batch.position() - lane.position;
                lane.position = batch.position();
                progress.at(position);
                lane.reader.recycle(batch);
                if context.interrupt.is_requested() {
                    take.stop()?;
                }
            }
            for lane in open.extract_if(.., |lane| lane.is_ended()) {
                take.end(lane.number)?;
                is_idle = false;
            }
            if is_idle {
                wait_a_little();
            }
        }
    })?;
    Ok(inputs.notes().iter().cloned().chain(notes.into_iter().flatten()).collect())
}

/// Works on a job of the pool, if there is one; else waits.
fn wait_a_little() {
    if rayon::yield_now() != Some(Yield::Executed) {
        std::thread::sleep(LOOK);
    }
}

/// What is done with every record, on any thread.
struct Workers<'a, W, M, F> {
    context: &'a Context<'a>,
    inputs: &'a Inputs,
    pass: &'a Pass<'a>,
    parser: Parser,
    make: M,
    work: F,
    /// Of threads that work on nothing.
    idle: Mutex<Vec<W>>,
    /// The document that is too large, the first one met.
    refused: Mutex<Option<Error>>,
}

/// What became of some records of a batch, each with its number in it.
type Chunk<T> = Vec<(u32, Result<T, Note>)>;

impl<'a, W: Send, M: Fn() -> W + Sync, F> Workers<'a, W, M, F> {
    fn new(
        context: &'a Context<'a>,
        inputs: &'a Inputs,
        pass: &'a Pass<'a>,
        make: M,
        work: F,
    ) -> Self {
        let (idle, refused) = (Mutex::default(), Mutex::default());
        Workers { context, inputs, pass, parser: Parser::new(inputs), make, work, idle, refused }
    }

    /// Works on the first `len` records of a batch.
    fn work_on<T: Send>(&self, batch: &Batch, len: usize) -> Vec<Chunk<T>>
    where
        F: Fn(&mut W, Seen<'_>) -> T + Sync,
    {
        let is_wanted = |i: usize| {
            let record = batch.first_index() + i as u64;
            self.pass.wanted.is_none_or(|wanted| wanted(record))
        };
        let chunks = (0..len.div_ceil(CHUNK)).into_par_iter();
        let done = chunks.map(|chunk| {
            let own = lock(&self.idle).pop();
            let mut worker = own.unwrap_or_else(&self.make);
            let records = chunk * CHUNK..((chunk + 1) * CHUNK).min(len);
            let done = records
                .filter(|&i| is_wanted(i))
                .filter_map(|i| {
                    Some((i as u32, self.work_on_record(&mut worker, &batch.record(i))?))
                })
                .collect();
            lock(&self.idle).push(worker);
            done
        });
        done.collect()
    }

    /// `None` for a document that is too large.
    fn work_on_record<T>(&self, worker: &mut W, record: &Record<'_>) -> Option<Result<T, Note>>
    where
        F: Fn(&mut W, Seen<'_>) -> T + Sync,
    {
        let context = self.context;
        let document = match self.parser.parse(record) {
            Ok(document) => document,
            Err(note) => return Some(Err(note)),
        };
        let page = match &document.body {
            Body::Html { bytes, .. } => context.admit_page(bytes.len()),
            Body::Text(_) | Body::Plain { .. } => Ok(Ticket::default()),
        };
        let page = page.map_err(|too_large| self.refuse(record, too_large)).ok()?;
        let mut text = text_of(document.body, self.inputs.options().encoding.as_deref());
        drop(page);
        let ticket = context.admit_text(&text.text, record.bytes.len());
        let ticket = ticket.map_err(|too_large| self.refuse(record, too_large)).ok()?;
        if document.raw.is_some() {
            text.raw = document.raw;
        }
        let seen = Seen {
            place: record.place,
            id: &document.id,
            replaced: document.replaced + text.replaced,
            text: &text,
            fields: &document.fields,
        };
        let done = (self.work)(worker, seen);
        if ticket.is_large() {
            *worker = (self.make)();
        }
        Some(Ok(done))
    }

    fn refuse(&self, record: &Record<'_>, too_large: TooLarge) {
        let file = self.inputs.files()[record.place.file as usize].name();
        let place = format!("{file}:{}", record.place.line);
        lock(&self.refused).get_or_insert_with(|| too_large.at(&place));
    }

    /// # Errors
    /// When a document was too large.
    fn check_refused(&self) -> Result<(), Error> {
        lock(&self.refused).take().map_or(Ok(()), Err)
    }
}

/// A lane that is read.
struct OpenLane<T> {
    number: usize,
    reader: Reader,
    /// What was read before the pass.
    first: Option<Option<Batch>>,
    skip: u64,
    under_way: VecDeque<UnderWay<T>>,
    /// Whether all is read.
    is_read: bool,
    /// Of its last batch that was taken.
    position: u64,
}

/// A batch that is worked on.
struct UnderWay<T> {
    bytes: usize,
    result: Receiver<Done<T>>,
}

impl<T> OpenLane<T> {
    fn new(number: usize, skip: u64, (reader, first): (Reader, Option<Option<Batch>>)) -> Self {
        let under_way = VecDeque::new();
        OpenLane { number, reader, first, skip, under_way, is_read: false, position: 0 }
    }

    /// Whether another batch may be worked on, beside batches of these bytes in all lanes.
    fn has_room(&self, bytes_under_way: usize) -> bool {
        let is_within = self.under_way.len() <= AT_ONCE && bytes_under_way <= BYTES_AT_ONCE;
        !self.is_read && (self.under_way.is_empty() || is_within)
    }

    /// The next batch; `None` at the end, and where the reader is at work on it and is not waited for.
    fn next_batch(&mut self, waits: bool) -> Result<Option<Batch>, Error> {
        let next = match self.first.take() {
            Some(first) => Ok(first),
            None if waits => Ok(self.reader.next_batch()?),
            None => self.reader.try_next_batch()?,
        };
        self.is_read = matches!(next, Ok(None));
        Ok(next.ok().flatten())
    }

    /// How many records of the next batch are worked on.
    fn len_of(&mut self, batch: &Batch) -> usize {
        let len = if self.skip > 0 { 0 } else { batch.len() };
        self.skip = self.skip.saturating_sub(1);
        len
    }

    /// The batch that was read first of those that are worked on, with its bytes; `None` where there is none, or it is not
    /// done and not waited for.
    fn next_done(&mut self, waits: bool) -> Result<Option<(usize, Done<T>)>, Error> {
        let Some(first) = self.under_way.front() else { return Ok(None) };
        let done = match waits {
            true => Some(first.wait()?),
            false => first.try_done()?,
        };
        Ok(done.and_then(|done| Some((self.under_way.pop_front()?.bytes, done))))
    }

    fn is_ended(&self) -> bool {
        self.is_read && self.under_way.is_empty()
    }
}

impl<T> UnderWay<T> {
    /// The batch, if it is done. When no one works on it any more, a panic is on its way to the caller of the pass.
    fn try_done(&self) -> Result<Option<Done<T>>, Error> {
        match self.result.try_recv() {
            Ok(done) => Ok(Some(done)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(failed()),
        }
    }

    /// The batch, once it is done.
    fn wait(&self) -> Result<Done<T>, Error> {
        loop {
            if let Some(done) = self.try_done()? {
                return Ok(done);
            }
            match rayon::yield_now() {
                // A thread of the pool works on what it waits for: the pool may have no other one.
                Some(Yield::Executed) => {}
                Some(Yield::Idle) => match self.result.recv_timeout(LOOK) {
                    Ok(done) => return Ok(done),
                    Err(RecvTimeoutError::Disconnected) => return Err(failed()),
                    Err(RecvTimeoutError::Timeout) => {}
                },
                None => return self.result.recv().map_err(|_| failed()),
            }
        }
    }
}

fn failed() -> Error {
    Error::invalid("a worker has failed")
}

/// A batch that was worked on, and what became of its records.
struct Done<T> {
    batch: Batch,
    chunks: Vec<Chunk<T>>,
}

impl<T> Done<T> {
    /// Hands the results over in order, and returns the batch.
    fn hand_over(self, lane: usize, take: &mut impl Take<T>) -> Result<Batch, Error> {
        let Done { batch, chunks } = self;
        for (i, done) in chunks.into_iter().flatten() {
            take.record(lane, batch.record(i as usize).place, done)?;
        }
        take.batch(lane, &batch)?;
        Ok(batch)
    }
}

/// Counts what could not be read, and reports the first of it: the output folder of `dedup` lists it whole.
#[derive(Debug, Default)]
pub struct Problems {
    count: u64,
}

/// Problems that are reported one by one.
const LISTED: u64 = 10;

impl Problems {
    pub fn add(&mut self, context: &Context<'_>, note: &Note) {
        if !note.reason.is_loss() {
            context.notice(Level::Note, Topic::Input, &note.to_string());
            return;
        }
        self.count += 1;
        if self.count <= LISTED {
            context.notice(Level::Warning, Topic::Input, &note.to_string());
        } else if self.count == LISTED + 1 {
            context.remark(Remark::MoreUnreadable, &[]);
        }
    }

    /// Continues at a count: an earlier job listed these.
    pub fn restore(&mut self, count: u64) {
        self.count = count;
    }

    /// Documents and files that were not read: a file that is damaged or cannot be opened is one, whatever was in it.
    pub fn count(&self) -> u64 {
        self.count
    }
}
