//! The last pass: the files of what stays, byte for byte or in another format.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift_io::{Cell, Decide, Decision, KeptWriter, Note, Place, Record};
use rayon::prelude::*;

use super::examples::ShownTexts;
use super::finish::Decided;
use super::summary::ChangedFile;
use super::{Job, Marks};
use crate::context::{Phase, Progress};
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
type Marked<'a> = (&'a Marks, &'a (dyn Fn(u32) -> Result<Vec<Cell>, Error> + Sync));

impl Job<'_> {
    /// Writes what stays of `documents`, or all of them with their marks, and hands over the texts that are shown.
    pub(super) fn write_kept(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        documents: u64,
        texts: &ShownTexts,
        marked: Option<Marked<'_>>,
    ) -> Result<KeptFiles, Error> {
        let name = match (&self.one, marked.is_some()) {
            (Some(_), _) => ONE_FILE,
            (None, true) => "marked",
            (None, false) => "kept",
        };
        folder.make(name)?;
        let writer = self.kept_writer(folder, name, decided)?;
        let writer = match marked {
            Some((marks, _)) => writer.adding(marks.columns().added()),
            None => writer,
        };
        let progress = self.context.begin(Phase::Writing, documents);
        let (cells, failed) = (marked.map(|(_, cells)| cells), Mutex::default());
        let done = AtomicU64::new(0);
        let pass = KeptPass { decided, texts, cells, failed: &failed, progress: &progress, done };
        // Several inputs may be in one converted file: how far it is would not be known.
        let marks = match self.settings.output_format {
            None => folder.marks(self.inputs)?,
            Some(_) => CompletionLog::default(),
        };
        let changed = Mutex::new(Vec::new());
        let (nulls, unmarked) = (AtomicU64::new(0), AtomicU64::new(0));
        let files = self.inputs.files();
        let written = (0..files.len()).into_par_iter().try_for_each(|number| {
            self.context.check()?;
            if marks.has(number) {
                return Ok(());
            }
            match writer.write_file_by(number, &mut &pass) {
                // The documents of all others are in the same file.
                Err(error) if self.one.is_some() => Err(error.into()),
                Err(error) => {
                    lock(&changed)
                        .push((number, ChangedFile::of(self.context, &files[number], error)?));
                    Ok(())
                }
                Ok(written) => {
                    nulls.fetch_add(written.nulls, Ordering::Relaxed);
                    unmarked.fetch_add(written.unmarked, Ordering::Relaxed);
                    let folders = [folder.path(name), folder.path("unreadable")];
                    marks.set(number, &folders, &self.inputs.output_path(&files[number]))
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

    fn kept_writer(
        &self,
        folder: &Folder,
        name: &str,
        decided: &Decided<'_>,
    ) -> Result<KeptWriter, Error> {
        let writer = KeptWriter::new(self.inputs, folder.path(name), folder.path("unreadable"));
        let writer = writer.carrying_over(decided.lacking.records().clone());
        let threads = rayon::current_num_threads();
        let files = if self.one.is_some() { 1 } else { self.inputs.files().len() };
        // With one for each file the thread that hands it a part checks again and again whether it has ended the one before, which
        // takes long where it has to wait for a core; and the last file would have one alone.
        let writer = writer.compressing_by(threads.div_ceil(files.max(1)).max(threads.min(2)));
        Ok(match (self.settings.output_format, &self.one) {
            (Some(format), Some(one)) => writer.joining(format.conversion()?, one.take()),
            (Some(format), None) => writer.converting(format.conversion()?),
            (None, _) => writer,
        })
    }
}

/// The pass over the records of all files, on any number of threads.
struct KeptPass<'a> {
    decided: &'a Decided<'a>,
    texts: &'a ShownTexts,
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
        let KeptPass { decided, progress, done, .. } = self;
        let Some(document) = decided.records.document(place.index) else {
            return Decision::Unreadable;
        };
        let before = done.fetch_add(1, Ordering::Relaxed);
        if before.is_multiple_of(STRIDE) {
            progress.at(before);
        }
        match self.cells.is_some() || decided.is_kept(document) {
            true => Decision::Keep,
            false => Decision::Drop,
        }
    }

    fn wants_to_see(&self, place: Place) -> bool {
        self.texts.wants(place.index)
    }

    fn cells(&mut self, place: Place) -> Vec<Cell> {
        let document = self.decided.records.document(place.index);
        let Some((cells, document)) = self.cells.zip(document) else { return Vec::new() };
        cells(document).unwrap_or_else(|error| {
            lock(self.failed).get_or_insert(error);
            Vec::new()
        })
    }

    fn see(&mut self, record: &Record<'_>) {
        self.texts.take(record);
    }
}
