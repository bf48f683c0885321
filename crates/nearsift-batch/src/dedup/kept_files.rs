//! The last pass: the files of what stays, byte for byte or in another format.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift_io::{Decide, Decision, KeptWriter, Note, Place, Record, Written};
use rayon::prelude::*;

use super::Job;
use super::examples::ShownTexts;
use super::finish::Decided;
use super::summary::ChangedFile;
use crate::context::{Phase, Progress};
use crate::error::Error;
use crate::folder::{CompletionLog, Folder};
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
}

impl Job<'_> {
    /// Writes what stays of `documents`, and hands over the texts that are shown.
    pub(super) fn write_kept(
        &self,
        folder: &Folder,
        decided: &Decided<'_>,
        documents: u64,
        texts: &ShownTexts,
    ) -> Result<KeptFiles, Error> {
        folder.make("kept")?;
        let writer = self.kept_writer(folder, decided)?;
        let progress = self.context.begin(Phase::Writing, documents);
        let pass = KeptPass { decided, texts, progress: &progress, done: AtomicU64::new(0) };
        // Several inputs may be in one converted file: how far it is would not be known.
        let marks = match self.settings.output_format {
            None => folder.marks(self.inputs)?,
            Some(_) => CompletionLog::default(),
        };
        let changed = Mutex::new(Vec::new());
        let nulls = AtomicU64::new(0);
        let files = self.inputs.files();
        let written = (0..files.len()).into_par_iter().try_for_each(|number| {
            self.context.check()?;
            if marks.has(number) {
                return Ok(());
            }
            match writer.write_file_by(number, &mut &pass) {
                Err(error) => {
                    lock(&changed)
                        .push((number, ChangedFile::of(self.context, &files[number], error)?));
                    Ok(())
                }
                Ok(Written { nulls: own, .. }) => {
                    nulls.fetch_add(own, Ordering::Relaxed);
                    let folders = [folder.path("kept"), folder.path("unreadable")];
                    marks.set(number, &folders, &self.inputs.output_path(&files[number]))
                }
            }
        });
        // What is written stays written, also where the run was asked to stop.
        let marked = marks.finish();
        written.and(marked)?;
        progress.at(documents);
        let mut changed = std::mem::take(&mut *lock(&changed));
        changed.sort_by_key(|(number, _)| *number);
        let changed = changed.into_iter().map(|(_, file)| file).collect();
        let unconverted = writer.take_unconverted();
        let (carried_over, nulls) = (writer.carried_over(), nulls.into_inner());
        Ok(KeptFiles { changed, carried_over, unconverted, nulls })
    }

    fn kept_writer(&self, folder: &Folder, decided: &Decided<'_>) -> Result<KeptWriter, Error> {
        let writer = KeptWriter::new(self.inputs, folder.path("kept"), folder.path("unreadable"));
        let writer = writer.carrying_over(decided.lacking.records().clone());
        let (threads, files) = (rayon::current_num_threads(), self.inputs.files().len());
        // With one for each file the thread that hands it a part checks again and again whether it has ended the one before, which
        // takes long where it has to wait for a core; and the last file would have one alone.
        let writer = writer.compressing_by(threads.div_ceil(files.max(1)).max(threads.min(2)));
        Ok(match self.settings.output_format {
            Some(format) => writer.converting(format.conversion()?),
            None => writer,
        })
    }
}

/// The pass over the records of all files, on any number of threads.
struct KeptPass<'a> {
    decided: &'a Decided<'a>,
    texts: &'a ShownTexts,
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
        if decided.is_kept(document) { Decision::Keep } else { Decision::Drop }
    }

    fn wants_to_see(&self, place: Place) -> bool {
        self.texts.wants(place.index)
    }

    fn see(&mut self, record: &Record<'_>) {
        self.texts.take(record);
    }
}
