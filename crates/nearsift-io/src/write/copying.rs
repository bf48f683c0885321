//! Records that are runs of bytes, copied one after another to where they belong.

use super::pieces::Pair;
use super::rewrite::Fields;
use super::{Change, Decide, Decision, KeptWriter, NotAdded, Rewriting, Written};
use crate::batch::{Place, Record};
use crate::parse::Columns;
use crate::split::{Piece, Pieces, Splitter};
use crate::{Error, Format};

/// Bytes that have been handed over are taken out of the buffer when there are more of them.
const FORGET_BYTES: usize = 4 << 20;

/// The records of a file, or of a section of one.
pub(super) struct Run<'a> {
    /// The name of the file.
    pub(super) name: &'a str,
    /// The number of the file in the inputs.
    pub(super) number: u32,
    pub(super) format: Format,
    /// The index of the first record in the whole input.
    pub(super) first: u64,
    /// How many the first pass found.
    pub(super) records: u64,
    /// How many more the file has.
    pub(super) others: u64,
}

/// The copying of a run.
pub(super) struct Copying<'a> {
    writer: &'a KeptWriter,
    run: Run<'a>,
    /// The byte between the fields of CSV, and its columns.
    delimiter: u8,
    columns: Columns,
    /// Whether columns are added. Records that are converted get them later, as rows.
    is_adding: bool,
    /// Whether records can have the added columns: their names are not taken.
    takes_columns: bool,
    /// How many records came.
    records: u64,
    written: Written,
}

impl<'a> Copying<'a> {
    pub(super) fn new(writer: &'a KeptWriter, run: Run<'a>) -> Copying<'a> {
        let is_adding = !writer.added.is_empty() && writer.conversion.is_none();
        let takes_columns = is_adding && run.format.has_fields();
        Copying {
            writer,
            run,
            delimiter: b',',
            columns: Columns::default(),
            is_adding,
            takes_columns,
            records: 0,
            written: Written::default(),
        }
    }

    /// Copies all pieces through a buffer. Returns how many records there were, and what became of them.
    ///
    /// # Errors
    /// [`Error::Changed`] at a record that the first pass did not see, [`Error::Write`] when the disk refuses.
    pub(super) fn copy(
        mut self,
        splitter: &mut Splitter,
        buffer: &mut Vec<u8>,
        pair: &mut Pair,
        decide: &mut dyn Decide,
    ) -> Result<(u64, Written), Error> {
        buffer.clear();
        // Whether the record that is too long has begun.
        let mut in_long = false;
        while let Some(piece) = splitter.next(buffer, &mut Vec::new()) {
            pair.at_member(splitter.member());
            match piece {
                Piece::Gap(range) => pair.gap(&buffer[range], splitter.around())?,
                Piece::Header { range, delimiter } => {
                    self.header(&buffer[range], delimiter, pair)?;
                }
                Piece::Record { range, line, closed } => {
                    let place = self.next_place(line)?;
                    self.record(&buffer[range], place, closed, pair, decide)?;
                }
                Piece::Long { range, .. } | Piece::Cut(range) if in_long => {
                    pair.unreadable.put(&buffer[range])?;
                }
                Piece::Long { range, .. } | Piece::Cut(range) => {
                    pair.record(&buffer[range], Decision::Unreadable)?;
                    self.written.unreadable += 1;
                }
                // The last two are an archive's own, whose members come here one by one.
                Piece::Damage { .. } | Piece::Member { .. } | Piece::Note { .. } => {}
            }
            in_long = splitter.is_in_long();
            let done = splitter.start();
            if done >= FORGET_BYTES {
                buffer.drain(..done);
                splitter.rebase(done);
            }
        }
        Ok((self.records, self.written))
    }

    fn header(&mut self, header: &[u8], delimiter: u8, pair: &mut Pair) -> Result<(), Error> {
        self.delimiter = delimiter;
        self.columns = Columns::new(header, delimiter, self.writer.inputs.plan());
        let mut with = None;
        if self.takes_columns {
            let adding = self.writer.adding_to(self.run.format, delimiter);
            with = adding.header(header, &self.columns).ok();
            self.takes_columns = with.is_some();
        }
        pair.kept.put(with.as_deref().unwrap_or(header))?;
        pair.unreadable.put(header)
    }

    /// The place of the next record. The caller decided nothing about a record that was not there before.
    fn next_place(&mut self, line: u64) -> Result<Place, Error> {
        let Run { name, number, first, records, others, .. } = self.run;
        let place = Place { file: number, index: first + self.records, line };
        self.records += 1;
        if self.records > records {
            let [expected, got] = [records, self.records].map(|n| others + n);
            return Err(Change { what: "records", expected, got }.of(name));
        }
        Ok(place)
    }

    fn record(
        &mut self,
        record: &[u8],
        place: Place,
        closed: bool,
        pair: &mut Pair,
        decide: &mut dyn Decide,
    ) -> Result<(), Error> {
        let decision = decide.decide(place);
        if decide.wants_to_see(place) {
            let Run { name, format, .. } = self.run;
            let (bytes, columns) = (record, &self.columns);
            let (member, cells) = (Some(name), &[]);
            decide.see(&Record { bytes, place, format, member, columns, closed, cells });
        }
        self.written.count(decision);
        if decision != Decision::Keep {
            return pair.record(record, decision);
        }
        let rewritten = match decide.rewriting() {
            Rewriting::Some => self.rewritten(record, place, decide),
            Rewriting::None => None,
        };
        let record = rewritten.as_deref().unwrap_or(record);
        let longer = match self.is_adding {
            true => self.with_columns(record, place, closed, decide),
            false => None,
        };
        pair.record(longer.as_deref().unwrap_or(record), decision)
    }

    /// The record with another text, if it gets one.
    fn rewritten(&self, record: &[u8], place: Place, decide: &mut dyn Decide) -> Option<Vec<u8>> {
        let Copying { delimiter, ref columns, .. } = *self;
        let fields =
            Fields { format: self.run.format, plan: self.writer.inputs.plan(), delimiter, columns };
        fields.rewritten(record, &mut |text| decide.rewrite(place, text))
    }

    /// The record with the added columns, if it can have them.
    fn with_columns(
        &mut self,
        record: &[u8],
        place: Place,
        closed: bool,
        decide: &mut dyn Decide,
    ) -> Option<Vec<u8>> {
        let format = self.run.format;
        let cells = decide.cells(place);
        let added = match self.takes_columns && closed {
            true => self.writer.adding_to(format, self.delimiter).record(record, &cells),
            false => Err(NotAdded::NoFields),
        };
        self.written.unmarked += u64::from(added.is_err() && format.has_fields());
        added.ok()
    }
}
