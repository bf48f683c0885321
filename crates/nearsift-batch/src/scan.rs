//! One pass over all documents: read in order, worked on in parallel, taken in order.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

use nearsift_io::{Batch, Body, DocumentId, Inputs, Note, Parser, Place, Reader, Record, Value};
use rayon::Yield;
use rayon::prelude::*;

use crate::admission::{Ticket, TooLarge};
use crate::context::{Context, Phase, Progress};
use crate::documents::{Text, text_of};
use crate::error::Error;
use crate::lock;
use crate::notice::{Level, Topic};

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

/// What a pass over the input is for.
pub struct Pass<'a> {
    /// What observers call it.
    pub phase: Phase,
    /// The first batches that are read and not worked on: an earlier job did that.
    pub skip: u64,
    /// Whether a record, by its number, is worked on; the others are not even parsed.
    pub wanted: Option<&'a (dyn Fn(u64) -> bool + Sync)>,
    /// Whether to go on where a file is not what an earlier pass read: [`Inputs::change`] tells which.
    pub past_changes: bool,
}

impl Pass<'_> {
    /// Over all records.
    pub fn new(phase: Phase) -> Pass<'static> {
        Pass { phase, skip: 0, wanted: None, past_changes: false }
    }
}

/// Who takes the results of a pass, in the order of the input.
pub trait Take<T> {
    /// A record's result, or why it is no document.
    ///
    /// # Errors
    /// What ends the pass.
    fn record(&mut self, place: Place, done: Result<T, Note>) -> Result<(), Error>;

    /// All records of a batch were taken.
    ///
    /// # Errors
    /// What ends the pass.
    fn batch(&mut self, _: &Batch) -> Result<(), Error> {
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

/// A reader whose first batch was looked at before the pass.
pub struct Opened {
    reader: Reader,
    first: Option<Batch>,
}

impl Opened {
    /// # Errors
    /// An input that cannot be read.
    pub fn at(inputs: &Inputs) -> Result<Opened, Error> {
        let mut reader = Reader::in_background(inputs, AHEAD)?;
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
    fn record(&mut self, place: Place, done: Result<T, Note>) -> Result<(), Error> {
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
/// `take` gets what it returned, or why the record is no document, in the order of the input. `opened` is a reader at the
/// beginning of the input, if there is one already.
///
/// Returns what was wrong with whole files or with records that were never seen.
///
/// # Errors
/// What `take` returns, an input that changed unless the pass goes on all the same, a document too large for
/// the memory limit, or an interruption.
pub fn scan_into<W: Send, T: Send>(
    context: &Context<'_>,
    inputs: &Inputs,
    pass: &Pass<'_>,
    opened: Option<Opened>,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    take: &mut impl Take<T>,
) -> Result<Vec<Note>, Error> {
    let charset = inputs.options().encoding.clone();
    let parser = Parser::new(inputs);
    let idle: Mutex<Vec<W>> = Mutex::new(Vec::new());
    let (mut reader, mut first) = match (opened, pass.past_changes) {
        (Some(Opened { reader, first }), _) => (reader, Some(first)),
        (None, true) => (Reader::past_changes(inputs, AHEAD)?, None),
        (None, false) => (Reader::in_background(inputs, AHEAD)?, None),
    };
    let mut notes = inputs.notes().to_vec();
    let progress = context.begin(pass.phase, inputs.total_bytes());
    let is_wanted = |record| pass.wanted.is_none_or(|wanted| wanted(record));
    // The document that is too large, the first one met.
    let refused: Mutex<Option<Error>> = Mutex::new(None);
    let refuse = |record: &Record<'_>, too_large: TooLarge| {
        let file = inputs.files()[record.place.file as usize].name();
        let place = format!("{file}:{}", record.place.line);
        lock(&refused).get_or_insert_with(|| too_large.at(&place));
    };
    let work_on = |batch: &Batch, len: usize| -> Vec<Vec<(u32, Result<T, Note>)>> {
        let chunks = (0..len.div_ceil(CHUNK)).into_par_iter();
        let done = chunks.map(|chunk| {
            let own = lock(&idle).pop();
            let mut worker = own.unwrap_or_else(&make);
            let records = chunk * CHUNK..((chunk + 1) * CHUNK).min(len);
            let done = records
                .filter(|&i| is_wanted(batch.first_index() + i as u64))
                .filter_map(|i| {
                    let record = batch.record(i);
                    let document = match parser.parse(&record) {
                        Ok(document) => document,
                        Err(note) => return Some((i as u32, Err(note))),
                    };
                    let page = match &document.body {
                        Body::Html { bytes, .. } => context.admit_page(bytes.len()),
                        Body::Text(_) | Body::Plain { .. } => Ok(Ticket::default()),
                    };
                    let page = page.map_err(|too_large| refuse(&record, too_large)).ok()?;
                    let mut text = text_of(document.body, charset.as_deref());
                    drop(page);
                    let ticket = context.admit_text(&text.text, record.bytes.len());
                    let ticket = ticket.map_err(|too_large| refuse(&record, too_large)).ok()?;
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
                    let done = work(&mut worker, seen);
                    if ticket.is_large() {
                        worker = make();
                    }
                    Some((i as u32, Ok(done)))
                })
                .collect();
            lock(&idle).push(worker);
            done
        });
        done.collect()
    };
    let work_on = &work_on;
    let mut skip = pass.skip;
    rayon::in_place_scope(|scope| -> Result<(), Error> {
        let mut under_way = VecDeque::new();
        let mut bytes_under_way = 0;
        let mut is_ended = false;
        loop {
            let next = match first.take() {
                Some(first) => first,
                None if is_ended => None,
                None => reader.next_batch()?,
            };
            is_ended = next.is_none();
            if let Some(batch) = next {
                notes.extend_from_slice(batch.notes());
                let len = if skip > 0 { 0 } else { batch.len() };
                skip = skip.saturating_sub(1);
                let bytes = batch.bytes();
                bytes_under_way += bytes;
                let (done, result) = sync_channel(1);
                scope.spawn(move |_| {
                    let chunks = work_on(&batch, len);
                    // Where nobody waits for it any more, the pass has ended.
                    drop(done.send(Done { batch, chunks }));
                });
                under_way.push_back((bytes, result));
            }
            if under_way.len() <= AT_ONCE && bytes_under_way <= BYTES_AT_ONCE && !is_ended {
                continue;
            }
            let Some((bytes, first)) = under_way.pop_front() else { return Ok(()) };
            bytes_under_way -= bytes;
            let done = Done::wait(&first)?;
            if let Some(failure) = lock(&refused).take() {
                return Err(failure);
            }
            done.hand_over(take, &progress, &mut reader)?;
            if context.interrupt.is_requested() {
                take.stop()?;
            }
        }
    })?;
    Ok(notes)
}

/// A batch that was worked on, and what became of its records.
struct Done<T> {
    batch: Batch,
    chunks: Vec<Vec<(u32, Result<T, Note>)>>,
}

impl<T> Done<T> {
    /// The batch, once it was worked on. When it was not, a panic is on its way to the caller of the pass.
    fn wait(result: &Receiver<Done<T>>) -> Result<Done<T>, Error> {
        let failed = || Error::invalid("a worker has failed");
        loop {
            match result.try_recv() {
                Ok(done) => return Ok(done),
                Err(TryRecvError::Disconnected) => return Err(failed()),
                Err(TryRecvError::Empty) => {}
            }
            match rayon::yield_now() {
                // A thread of the pool works on what it waits for: the pool may have no other one.
                Some(Yield::Executed) => {}
                Some(Yield::Idle) => match result.recv_timeout(LOOK) {
                    Ok(done) => return Ok(done),
                    Err(RecvTimeoutError::Disconnected) => return Err(failed()),
                    Err(RecvTimeoutError::Timeout) => {}
                },
                None => return result.recv().map_err(|_| failed()),
            }
        }
    }

    /// Hands the results over in order, and gives the batch back to the reader.
    fn hand_over(
        self,
        take: &mut impl Take<T>,
        progress: &Progress<'_>,
        reader: &mut Reader,
    ) -> Result<(), Error> {
        let Done { batch, chunks } = self;
        for (i, done) in chunks.into_iter().flatten() {
            take.record(batch.record(i as usize).place, done)?;
        }
        take.batch(&batch)?;
        progress.at(batch.position());
        reader.recycle(batch);
        Ok(())
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
            let more = "more of the kind are counted, not listed";
            context.notice(Level::Warning, Topic::Input, more);
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
