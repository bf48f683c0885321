//! One pass over all documents: read in order, worked on in parallel, taken in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nearsift::recipe::{Fingerprinter, Outcome};
use nearsift_io::{Batch, Body, DocumentId, Inputs, Note, Parser, Place, Reader, Record, Value};
use rayon::prelude::*;

use crate::admission::{self, TooLarge};
use crate::documents::{Text, text_of};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Level, escaped, tell};
use crate::progress::Progress;

/// A document as a worker sees it.
pub struct Seen<'a> {
    pub place: Place,
    pub id: &'a DocumentId<'a>,
    pub text: &'a Text<'a>,
    /// The values of the fields that were asked for.
    pub fields: &'a [Option<Value<'a>>],
    /// Characters that could not be decoded.
    pub replaced: u64,
}

impl Seen<'_> {
    /// The fingerprint of the document, if it is one of its own.
    pub fn fingerprint(&self, fingerprinter: &mut Fingerprinter<'_>) -> Outcome {
        self.text.fingerprint(fingerprinter)
    }
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

/// What a pass over the input is for.
pub struct Pass<'a> {
    /// A word for whoever watches.
    pub what: &'static str,
    /// The first batches, so many, are read and not worked on: an earlier run did that.
    pub skip: u64,
    /// Whether a record, by its number, is worked on; the others are not even parsed.
    pub wanted: Option<&'a (dyn Fn(u64) -> bool + Sync)>,
    /// Whether to go on where a file is not what an earlier pass read: [`Inputs::change`] tells which.
    pub past_changes: bool,
}

impl Pass<'_> {
    /// Over all records.
    pub fn new(what: &'static str) -> Pass<'static> {
        Pass { what, skip: 0, wanted: None, past_changes: false }
    }
}

/// Who takes the results of a pass, in the order of the input.
pub trait Take<T> {
    /// A record's result, or why it is no document.
    ///
    /// # Errors
    /// What ends the pass.
    fn record(&mut self, place: Place, done: Result<T, Note>) -> Result<(), Failure>;

    /// All records of a batch were taken.
    ///
    /// # Errors
    /// What ends the pass.
    fn batch(&mut self, _: &Batch) -> Result<(), Failure> {
        Ok(())
    }

    /// The user has asked to stop, between two batches.
    ///
    /// # Errors
    /// What ends the pass.
    fn stop(&mut self) -> Result<(), Failure> {
        Err(Failure::Interrupted)
    }
}

/// A closure that takes the results of records.
struct Each<F>(F);

impl<T, F: FnMut(Place, Result<T, Note>) -> Result<(), Failure>> Take<T> for Each<F> {
    fn record(&mut self, place: Place, done: Result<T, Note>) -> Result<(), Failure> {
        self.0(place, done)
    }
}

/// As [`scan_into`], with a closure for the results.
///
/// # Errors
/// As there.
pub fn scan<W: Send, T: Send>(
    inputs: &Inputs,
    pass: &Pass<'_>,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    take: impl FnMut(Place, Result<T, Note>) -> Result<(), Failure>,
) -> Result<Vec<Note>, Failure> {
    scan_into(inputs, pass, make, work, &mut Each(take))
}

/// Reads every document once. `work` runs on all threads, each with what `make` gives;
/// `take` gets what it returned, or why the record is no document, in the order of the input.
///
/// Returns what was wrong with whole files or with records that were never seen.
///
/// # Errors
/// What `take` returns, an input that changed unless the pass goes on all the same, a document too large for
/// [`admission`], or [`Failure::Interrupted`].
pub fn scan_into<W: Send, T: Send>(
    inputs: &Inputs,
    pass: &Pass<'_>,
    make: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, Seen<'_>) -> T + Sync,
    take: &mut impl Take<T>,
) -> Result<Vec<Note>, Failure> {
    let charset = inputs.options().encoding.clone();
    let parser = Parser::new(inputs);
    let idle: Mutex<Vec<W>> = Mutex::new(Vec::new());
    let mut reader = match pass.past_changes {
        true => Reader::past_changes(inputs, AHEAD)?,
        false => Reader::in_background(inputs, AHEAD)?,
    };
    let mut notes = inputs.notes().to_vec();
    let progress = Progress::bytes(pass.what, inputs.total_bytes());
    let is_wanted = |record| pass.wanted.is_none_or(|wanted| wanted(record));
    // The document that is too large, the first one met.
    let refused: Mutex<Option<Failure>> = Mutex::new(None);
    let refuse = |record: &Record<'_>, too_large: TooLarge| {
        let file = inputs.files()[record.place.file as usize].name();
        let place = format!("{}:{}", escaped(&file), record.place.line);
        locked(&refused).get_or_insert_with(|| too_large.at(&place));
    };
    let work_on = |batch: &Batch, len: usize| -> Vec<Vec<(u32, Result<T, Note>)>> {
        let chunks = (0..len.div_ceil(CHUNK)).into_par_iter();
        let done = chunks.map(|chunk| {
            let own = locked(&idle).pop();
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
                        Body::Html { bytes, .. } => admission::for_page(bytes.len()),
                        Body::Text(_) | Body::Plain { .. } => Ok(admission::Ticket::default()),
                    };
                    let page = page.map_err(|too_large| refuse(&record, too_large)).ok()?;
                    let mut text = text_of(document.body, charset.as_deref());
                    drop(page);
                    let ticket = admission::for_text(&text.text, record.bytes.len());
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
            locked(&idle).push(worker);
            done
        });
        done.collect()
    };
    let work_on = &work_on;
    let mut skip = pass.skip;
    rayon::in_place_scope(|scope| -> Result<(), Failure> {
        let mut under_way = VecDeque::new();
        let mut bytes_under_way = 0;
        let mut is_ended = false;
        loop {
            let next = if is_ended { None } else { reader.next_batch()? };
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
            if let Some(failure) = locked(&refused).take() {
                return Err(failure);
            }
            done.hand_over(take, &progress, &mut reader)?;
            if interrupt::is_asked() {
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
    fn wait(result: &Receiver<Done<T>>) -> Result<Done<T>, Failure> {
        result.recv().map_err(|_| Failure::new("a worker has failed"))
    }

    /// Hands the results over in order, and gives the batch back to the reader.
    fn hand_over(
        self,
        take: &mut impl Take<T>,
        progress: &Progress,
        reader: &mut Reader,
    ) -> Result<(), Failure> {
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

/// A lock that another thread's panic does not spoil: the panic itself is what reaches the caller.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts and lists, on standard error, what could not be read. The list is short: the output folder
/// of `dedup` has it whole.
#[derive(Default)]
pub struct Problems {
    count: u64,
}

const LISTED: u64 = 10;

impl Problems {
    pub fn add(&mut self, note: &Note) {
        if !note.reason.is_loss() {
            tell(Level::Note, &note.to_string());
            return;
        }
        self.count += 1;
        if self.count <= LISTED {
            tell(Level::Warning, &note.to_string());
        } else if self.count == LISTED + 1 {
            tell(Level::Warning, "more of the kind are counted, not listed");
        }
    }

    /// As if so many had been counted: they were listed by an earlier run.
    pub fn restore(&mut self, count: u64) {
        self.count = count;
    }

    /// How many documents, or files, were not read.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn status(&self) -> crate::Status {
        if self.count == 0 {
            return crate::Status::Done;
        }
        let what = plural_of(self.count, UNREADABLE);
        tell(Level::Warning, &format!("{what} could not be read; all others were"));
        crate::Status::SomeUnreadable
    }
}

/// What [`Problems`] counts: a file that is damaged or cannot be opened is one, whatever was in it.
pub const UNREADABLE: [&str; 2] = ["document or file", "documents or files"];

/// `1 document`, `2 documents`.
pub fn plural(count: u64, what: &str) -> String {
    plural_of(count, [what, &format!("{what}s")])
}

/// The number with the singular or the plural.
pub fn plural_of(count: u64, [one, many]: [&str; 2]) -> String {
    format!("{} {}", crate::report::grouped(count), if count == 1 { one } else { many })
}
