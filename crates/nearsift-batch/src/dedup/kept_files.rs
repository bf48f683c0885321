//! The last pass: the files of what stays, byte for byte or in another format.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift_io::{Cell, Decide, Deciders, Decision, Inputs, KeptWriter, Note, Place, Record};
use rayon::prelude::*;

use super::examples::ShownTexts;
use super::finish::Decided;
use super::summary::ChangedFile;
use super::{Job, Marks, One, OutputFormat};
use crate::context::{Context, Phase, Progress};
use crate::corpus::{Lacking, Records};
use crate::error::Error;
use crate::folder::{CompletionLog, Folder, ONE_FILE};
use crate::lock;

/// What was written of the files of what is kept.
#[derive(Default)]
pub(super) struct KeptFiles {
    /// Nothing is written of these, because they are not what they were in the first pass.
    pub changed: Vec<ChangedFile>,
    /// How many files without documents are copied.
    pub carried_over: u64,
    /// Rows that could not be converted.
    pub unconverted: Vec<Note>,
    /// Numbers that became null in what was converted.
    pub nulls: u64,
    /// Records that could not have the columns.
    pub unmarked: u64,
}

/// The columns that every document gets where all stay, and what makes the cells of a document.
pub(super) type Marked<'a> = (&'a Marks, &'a (dyn Fn(u32) -> Result<Vec<Cell>, Error> + Sync));

/// What is written of files, and where.
pub(super) struct Writing<'a> {
    pub context: &'a Context<'a>,
    pub inputs: &'a Inputs,
    pub folder: &'a Folder,
    pub output_format: Option<OutputFormat>,
    /// Where the documents of all files go as one, if they do.
    pub one: Option<&'a One>,
    pub records: &'a Records,
    /// Files without documents.
    pub lacking: &'a Lacking,
    /// Whether a document stays.
    pub is_kept: &'a (dyn Fn(u32) -> bool + Sync),
    /// The texts that are shown in a report.
    pub texts: Option<&'a ShownTexts>,
}

impl Job<'_> {
    /// Writes what stays of `documents`, or all of them with their marks, and hands over the texts that are shown.
    pub(super) fn write_kept(
        &self,
        folder: &Folder,
        inputs: &Inputs,
        decided: &Decided<'_>,
        documents: u64,
        texts: &ShownTexts,
        marked: Option<Marked<'_>>,
    ) -> Result<KeptFiles, Error> {
        let writing = Writing {
            context: self.context,
            inputs,
            folder,
            output_format: self.settings.output_format,
            one: self.one.as_ref(),
            records: &decided.records,
            lacking: &decided.lacking,
            is_kept: &|document| decided.is_kept(document),
            texts: Some(texts),
        };
        writing.write(documents, marked)
    }
}

impl Writing<'_> {
    /// Writes what stays of `documents`, or all of them with their marks.
    ///
    /// # Errors
    /// When the disk refuses, a conversion that cannot be done, what makes the cells of a document, or an interruption.
    pub fn write(&self, documents: u64, marked: Option<Marked<'_>>) -> Result<KeptFiles, Error> {
        let &Writing { context, inputs, folder, .. } = self;
        let name = match (self.one, marked.is_some()) {
            (Some(_), _) => ONE_FILE,
            (None, true) => "marked",
            (None, false) => "kept",
        };
        folder.make(name)?;
        let writer = self.writer(name)?;
        let writer = match marked {
            Some((marks, _)) => writer.adding(marks.columns().added()),
            None => writer,
        };
        let progress = context.begin(Phase::Writing, documents);
        let (cells, failed) = (marked.map(|(_, cells)| cells), Mutex::default());
        let done = AtomicU64::new(0);
        let pass = KeptPass { writing: self, cells, failed: &failed, progress: &progress, done };
        // Several inputs may be in one converted file: how far it is would not be known.
        let marks = match self.output_format {
            None => folder.marks(inputs)?,
            Some(_) => CompletionLog::default(),
        };
        let changed = Mutex::new(Vec::new());
        let (nulls, unmarked) = (AtomicU64::new(0), AtomicU64::new(0));
        let files = inputs.files();
        let written = (0..files.len()).into_par_iter().try_for_each(|number| {
            context.check()?;
            if marks.has(number) {
                return Ok(());
            }
            match writer.write_file_by(number, &mut &pass) {
                // The documents of all others are in the same file.
                Err(error) if self.one.is_some() => Err(error.into()),
                Err(error) => {
                    lock(&changed).push((number, ChangedFile::of(context, &files[number], error)?));
                    Ok(())
                }
                Ok(written) => {
                    nulls.fetch_add(written.nulls, Ordering::Relaxed);
                    unmarked.fetch_add(written.unmarked, Ordering::Relaxed);
                    let folders = [folder.path(name), folder.path("unreadable")];
                    marks.set(number, &folders, &inputs.output_path(&files[number]))
                }
            }
        });
        // What is written stays written, also where the run was asked to stop.
        let logged = marks.finish();
        lock(&failed).take().map_or(Ok(()), Err)?;
        written.and(logged)?;
        progress.at(documents);
        let mut changed = std::mem::take(&mut *lock(&changed));
        changed.sort_by_key(|(number, _)| *number);
        let changed = changed.into_iter().map(|(_, file)| file).collect();
        let unconverted = writer.take_unconverted();
        let companions = writer.copy_companions()?;
        let carried_over = writer.carried_over() + companions;
        let (nulls, unmarked) = (nulls.into_inner(), unmarked.into_inner());
        Ok(KeptFiles { changed, carried_over, unconverted, nulls, unmarked })
    }

    fn writer(&self, name: &str) -> Result<KeptWriter, Error> {
        let &Writing { inputs, folder, .. } = self;
        let writer = KeptWriter::new(inputs, folder.path(name), folder.path("unreadable"));
        let writer = writer.carrying_over(self.lacking.records().clone());
        let threads = rayon::current_num_threads();
        let files = if self.one.is_some() { 1 } else { inputs.files().len() };
        // With one for each file the thread that hands it a part checks again and again whether it has ended the one before, which
        // takes long where it has to wait for a core; and the last file would have one alone.
        let writer = writer.compressing_by(threads.div_ceil(files.max(1)).max(threads.min(2)));
        let writer = writer.copying_sections(self.sections_at_once());
        Ok(match (self.output_format, self.one) {
            (Some(format), Some(one)) => writer.joining(format.conversion()?, one.take()),
            (Some(format), None) => writer.converting(format.conversion()?),
            (None, _) => writer,
        })
    }

    /// How many sections of a file are copied at once: one on each thread, and no more than a memory limit has room for.
    fn sections_at_once(&self) -> usize {
        // What is read of a section and what is kept of it, and room to grow.
        let held = (self.inputs.options().batch_bytes as u64).max(1);
        let room = self.context.memory_bytes.map_or(u64::MAX, |bytes| bytes / 16 / held);
        rayon::current_num_threads().min(usize::try_from(room).unwrap_or(usize::MAX))
    }
}

/// The pass over the records of all files, on any number of threads.
struct KeptPass<'a> {
    writing: &'a Writing<'a>,
    /// The cells of a document, where all documents stay.
    cells: Option<&'a (dyn Fn(u32) -> Result<Vec<Cell>, Error> + Sync)>,
    /// The first id that could not be read back.
    failed: &'a Mutex<Option<Error>>,
    progress: &'a Progress<'a>,
    /// Documents so far.
    done: AtomicU64,
}

impl Decide for &KeptPass<'_> {
    fn decide(&mut self, place: Place) -> Decision {
        /// Between two reports of how far it is.
        const STRIDE: u64 = 4096;
        let KeptPass { writing, progress, done, .. } = self;
        let Some(document) = writing.records.document(place.index) else {
            return Decision::Unreadable;
        };
        let before = done.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(STRIDE) {
            progress.at(before);
        }
        match self.cells.is_some() || (writing.is_kept)(document) {
            true => Decision::Keep,
            false => Decision::Drop,
        }
    }

    fn deciders(&self) -> Option<Deciders<'_>> {
        let pass = *self;
        Some(Box::new(move || Box::new(pass)))
    }

    fn wants_to_see(&self, place: Place) -> bool {
        self.writing.texts.is_some_and(|texts| texts.wants(place.index))
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        let document = self.writing.records.document(place.index);
        let Some((cells, document)) = self.cells.zip(document) else { return Vec::new() };
        cells(document).unwrap_or_else(|error| {
            lock(self.failed).get_or_insert(error);
            Vec::new()
        })
    }

    fn see(&mut self, record: &Record<'_>) {
        if let Some(texts) = self.writing.texts {
            texts.take(record);
        }
    }
}
