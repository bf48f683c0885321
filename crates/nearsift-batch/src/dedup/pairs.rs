//! The pairs that a job finds, as it finds them.

use rayon::prelude::*;
use serde::Serialize;

use super::Job;
use super::decisions::Pair;
use super::examples::Sample;
use super::lookup::{Blocks, KeyedTable};
use crate::error::Error;

/// Found pairs: lines of `pairs.jsonl`, or values where nothing is written; and some of them to show.
pub(super) struct FoundPairs {
    table: Option<KeyedTable>,
    /// Where the lines of a document are.
    pub blocks: Blocks,
    pub values: Vec<Pair>,
    pub sample: Sample,
}

impl FoundPairs {
    /// # Errors
    /// When the table cannot be made.
    pub fn begin(job: &Job<'_>) -> Result<FoundPairs, Error> {
        let create = |folder| KeyedTable::create(folder, "pairs.jsonl");
        let (table, blocks) = (job.folder.map(create).transpose()?, Blocks::default());
        Ok(FoundPairs { table, blocks, values: Vec::new(), sample: Sample::default() })
    }

    /// Adds a pair, with its line in the table.
    ///
    /// # Errors
    /// What `line` returns, or when the disk refuses.
    pub fn add<L: Serialize>(
        &mut self,
        pair: Pair,
        line: impl FnOnce() -> Result<L, Error>,
    ) -> Result<(), Error> {
        match &mut self.table {
            Some(table) => table.line(pair.a, &line()?),
            None => {
                self.values.push(pair);
                Ok(())
            }
        }
    }

    /// Adds pairs in order, with their lines in the table, which all threads make.
    ///
    /// # Errors
    /// As [`FoundPairs::add`].
    pub fn add_all<P: Copy + Into<Pair> + Sync, L: Serialize>(
        &mut self,
        pairs: &[P],
        line: impl Fn(&P) -> Result<L, Error> + Sync,
    ) -> Result<(), Error> {
        /// Lines that a thread makes at a time.
        const LINES: usize = 256;
        let Some(table) = &mut self.table else {
            self.values.extend(pairs.iter().map(|&pair| pair.into()));
            return Ok(());
        };
        let line = |pair: &P| serde_json::to_string(&line(pair)?).map_err(Error::invalid);
        let lines: Vec<String> =
            pairs.par_iter().with_min_len(LINES).map(line).collect::<Result<_, Error>>()?;
        pairs.iter().zip(&lines).try_for_each(|(&pair, line)| table.raw(pair.into().a, line))
    }

    /// Completes the table.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(mut self) -> Result<FoundPairs, Error> {
        if let Some(table) = self.table.take() {
            self.blocks = table.finish()?;
        }
        Ok(self)
    }
}
