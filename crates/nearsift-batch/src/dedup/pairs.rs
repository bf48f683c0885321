//! The pairs that a job finds, as it finds them.

use serde::Serialize;

use super::Job;
use super::decisions::Pair;
use super::examples::Sample;
use crate::error::Error;
use crate::folder::Table;

/// Found pairs: lines of `pairs.jsonl`, or values where nothing is written; and some of them to show.
pub(super) struct FoundPairs {
    table: Option<Table>,
    pub values: Vec<Pair>,
    pub sample: Sample,
}

impl FoundPairs {
    /// # Errors
    /// When the table cannot be made.
    pub fn begin(job: &Job<'_>) -> Result<FoundPairs, Error> {
        let table = job.folder.map(|folder| folder.table("pairs.jsonl")).transpose()?;
        Ok(FoundPairs { table, values: Vec::new(), sample: Sample::default() })
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
            Some(table) => table.line(&line()?),
            None => {
                self.values.push(pair);
                Ok(())
            }
        }
    }

    /// Completes the table.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finish(mut self) -> Result<FoundPairs, Error> {
        self.table.take().map_or(Ok(()), Table::finish)?;
        Ok(self)
    }
}
