//! The sections of one file, copied on several threads.

use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::pieces::Pair;
use super::target::{Aside, Raw, Target};
use super::{Deciders, InputFile, KeptWriter, Run, Written};
use crate::source::Compression;
use crate::split::{Section, Stretch, open_stretch};
use crate::{Error, Format};

/// The compression of a file that has sections, and of what is written of it.
const PLAIN: [Compression; 2] = [Compression::None; 2];

/// A file whose sections are copied.
pub(super) struct Sections<'a> {
    pub(super) writer: &'a KeptWriter,
    pub(super) file: &'a InputFile,
    /// The number of the file in the inputs.
    pub(super) number: u32,
    /// The index of its first record in the whole input.
    pub(super) first: u64,
    /// At least one.
    pub(super) sections: &'a [Section],
    pub(super) deciders: Deciders<'a>,
}

/// A section that was copied into memory.
struct Copied {
    kept: Vec<u8>,
    unreadable: Vec<u8>,
    written: Written,
}

/// The sections get their places one after another.
struct Turns<'a> {
    turn: Mutex<Turn<'a>>,
    changed: Condvar,
}

struct Turn<'a> {
    /// The section whose turn it is.
    section: usize,
    pair: &'a mut Pair,
    written: Written,
    /// Why nothing more is written.
    failed: Option<Error>,
}

impl Sections<'_> {
    /// Writes the file. The first section is copied as a whole file is; every other one is copied into memory, gets its place
    /// behind the one before, and is written there, on any thread.
    pub(super) fn write(&self) -> Result<Written, Error> {
        let mut pair = Pair::new(self.targets(), Format::JsonLines, PLAIN);
        pair.kept.open()?;
        let written = self.copy(0, &mut pair)?;
        let turn = Turn { section: 1, pair: &mut pair, written, failed: None };
        let turns = Turns { turn: Mutex::new(turn), changed: Condvar::new() };
        let next = AtomicUsize::new(1);
        rayon::scope(|scope| {
            for _ in 0..self.writer.sections_at_once.min(self.sections.len() - 1) {
                scope.spawn(|_| self.copy_some(&next, &turns));
            }
        });
        let turn = turns.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Turn { mut written, failed, .. } = turn;
        failed.map_or(Ok(()), Err)?;
        written.bytes = pair.finish()?;
        Ok(written)
    }

    fn targets(&self) -> [Target; 2] {
        self.writer.targets(self.file, self.number)
    }

    /// Copies sections until none is left.
    fn copy_some(&self, next: &AtomicUsize, turns: &Turns<'_>) {
        let mut output = None;
        loop {
            // In order: who waits for its turn waits for a thread that is at work.
            let section = next.fetch_add(1, Ordering::Relaxed);
            if section >= self.sections.len() || turns.has_failed() {
                return;
            }
            let copied = self.copy_aside(section);
            let Some((at, kept)) = turns.take_place(section, copied, &mut output) else { return };
            if let Some(file) = &mut output
                && let Err(error) = write_at(file, at, &kept)
            {
                return turns.fail(error);
            }
        }
    }

    /// Copies a section into memory.
    fn copy_aside(&self, section: usize) -> Result<Copied, Error> {
        let [kept, unreadable] = [Aside::in_memory(), Aside::in_memory()];
        let [to_kept, to_unreadable] = self.targets();
        let targets = [to_kept.aside(&kept), to_unreadable.aside(&unreadable)];
        let mut pair = Pair::new(targets, Format::JsonLines, PLAIN);
        // Also for blank lines alone.
        pair.kept.open()?;
        let written = self.copy(section, &mut pair)?;
        pair.finish()?;
        let kept = kept.into_bytes().map_err(|e| to_kept.error(e))?;
        let unreadable = unreadable.into_bytes().map_err(|e| to_unreadable.error(e))?;
        Ok(Copied { kept, unreadable, written })
    }

    /// Copies a section to a pair of outputs.
    ///
    /// # Errors
    /// [`Error::Changed`] where it is not what the first pass saw.
    fn copy(&self, section: usize, pair: &mut Pair) -> Result<Written, Error> {
        let name = self.file.name();
        let stretch = Stretch::of(self.sections, section..section + 1);
        let mut splitter = open_stretch(self.file, &stretch, self.writer.inputs.options(), 0)
            .map_err(|reason| Error::Gone { file: name.clone(), reason })?;
        let run = Run {
            name: &name,
            number: self.number,
            format: Format::JsonLines,
            first: self.first + stretch.before.records,
            records: stretch.records(),
            others: stretch.other_records(),
        };
        let mut decide = (self.deciders)();
        let (_, written) = self.writer.copy_run(&run, &mut splitter, pair, &mut *decide)?;
        match stretch.change(&splitter.sections()) {
            Some(change) => Err(change.of(&name)),
            None => Ok(written),
        }
    }
}

impl<'a> Turns<'a> {
    fn lock(&self) -> MutexGuard<'_, Turn<'a>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// Waits for the turn of a section, and takes its place in the kept file: where it begins. `None` where this or an
    /// earlier section has failed.
    fn take_place(
        &self,
        section: usize,
        copied: Result<Copied, Error>,
        output: &mut Option<Raw>,
    ) -> Option<(u64, Vec<u8>)> {
        let mut turn = self.lock();
        while turn.section < section && turn.failed.is_none() {
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.failed.is_some() {
            return None;
        }
        let placed = copied.and_then(|copied| turn.place(copied, output));
        turn.section += 1;
        self.changed.notify_all();
        placed.map_err(|error| turn.failed = Some(error)).ok()
    }

    fn fail(&self, error: io::Error) {
        let mut turn = self.lock();
        let error = turn.pair.kept.target.error(error);
        turn.failed.get_or_insert(error);
        self.changed.notify_all();
    }
}

impl Turn<'_> {
    fn place(&mut self, copied: Copied, output: &mut Option<Raw>) -> Result<(u64, Vec<u8>), Error> {
        if output.is_none() {
            *output = Some(self.pair.reopen_kept()?);
        }
        if !copied.unreadable.is_empty() {
            self.pair.unreadable.record(Some(&copied.unreadable))?;
        }
        let at = self.pair.kept.bytes;
        self.pair.kept.bytes += copied.kept.len() as u64;
        self.written += copied.written;
        Ok((at, copied.kept))
    }
}

fn write_at(file: &mut Raw, at: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)?;
    file.flush()
}
