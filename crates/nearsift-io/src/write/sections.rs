//! The sections of one file, copied on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::copying::{Copying, Run};
use super::pieces::Pair;
use super::target::{Memory, Target};
use super::{Deciders, InputFile, KeptWriter, Written};
use crate::source::Compression;
use crate::split::{Stretch, open_stretch};
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
    /// The sections, at least one.
    pub(super) stretches: Vec<Stretch>,
    pub(super) deciders: Deciders<'a>,
}

/// The memory of a thread that copies sections.
#[derive(Default)]
struct Buffers {
    input: Vec<u8>,
    kept: Memory,
    unreadable: Memory,
}

/// The sections are written one after another: a file system takes the bytes of one file from one thread at a time anyway.
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
    /// Writes the file. The first section is copied as a whole file is; every other one is copied into memory, on any thread, and
    /// written when those before it are.
    pub(super) fn write(&self) -> Result<Written, Error> {
        let mut pair = Pair::new(self.targets(), Format::JsonLines, PLAIN);
        pair.kept.open()?;
        let written = self.copy(0, &mut Vec::new(), &mut pair)?;
        let turn = Turn { section: 1, pair: &mut pair, written, failed: None };
        let turns = Turns { turn: Mutex::new(turn), changed: Condvar::new() };
        let next = AtomicUsize::new(1);
        rayon::scope(|scope| {
            for _ in 0..self.writer.sections_at_once.min(self.stretches.len() - 1) {
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
        let mut buffers = Buffers::default();
        loop {
            // In order: who waits for its turn waits for a thread that is at work.
            let section = next.fetch_add(1, Ordering::Relaxed);
            if section >= self.stretches.len() || turns.has_failed() {
                return;
            }
            let copied = self.copy_aside(section, &mut buffers);
            turns.write(section, copied, &buffers);
        }
    }

    /// Copies a section into memory.
    fn copy_aside(&self, section: usize, buffers: &mut Buffers) -> Result<Written, Error> {
        let Buffers { input, kept, unreadable } = buffers;
        let [to_kept, to_unreadable] = self.targets();
        let targets = [to_kept.in_memory(kept), to_unreadable.in_memory(unreadable)];
        let mut pair = Pair::new(targets, Format::JsonLines, PLAIN);
        unreadable.bytes().clear();
        // Also for blank lines alone.
        pair.kept.open()?;
        let written = self.copy(section, input, &mut pair)?;
        pair.finish()?;
        Ok(written)
    }

    /// Copies a section to a pair of outputs.
    ///
    /// # Errors
    /// [`Error::Changed`] where it is not what the first pass saw.
    fn copy(
        &self,
        section: usize,
        buffer: &mut Vec<u8>,
        pair: &mut Pair,
    ) -> Result<Written, Error> {
        let name = self.file.name();
        let stretch = &self.stretches[section];
        let mut splitter = open_stretch(self.file, stretch, self.writer.inputs.options(), 0)
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
        let copying = Copying::new(self.writer, run);
        let (_, written) = copying.copy(&mut splitter, buffer, pair, &mut *decide)?;
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

    /// Waits for the turn of a section, and writes it, unless this or an earlier one has failed.
    fn write(&self, section: usize, copied: Result<Written, Error>, buffers: &Buffers) {
        let mut turn = self.lock();
        while turn.section < section && turn.failed.is_none() {
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.failed.is_none() {
            turn.failed = copied.and_then(|written| turn.write(written, buffers)).err();
            turn.section += 1;
        }
        self.changed.notify_all();
    }
}

impl Turn<'_> {
    fn write(&mut self, written: Written, buffers: &Buffers) -> Result<(), Error> {
        let unreadable = buffers.unreadable.bytes();
        if !unreadable.is_empty() {
            self.pair.unreadable.record(Some(&unreadable))?;
        }
        self.pair.kept.put(&buffers.kept.bytes())?;
        self.written += written;
        Ok(())
    }
}
