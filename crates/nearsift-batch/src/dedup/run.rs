//! What a finished run left beside its results for questions about it.

use std::fs;
use std::io::Read;
use std::path::Path;

use nearsift::feature::frequency::DocumentFrequencies;
use serde::Deserialize;

use crate::error::Error;
use crate::folder::Folder;

/// The table of rarities that texts were weighed by, packed by zstd: at most 512 KiB before.
const RARITY: &str = "rarity.zst";

/// A larger table is none.
const MOST_BYTES: u64 = 4 << 20;

/// How much zstd packs the table.
const PACKING: i32 = 3;

pub(super) fn write_rarity(folder: &Folder, table: &DocumentFrequencies) -> Result<(), Error> {
    let packed = zstd::bulk::compress(&table.to_bytes(), PACKING).map_err(Error::invalid)?;
    folder.bytes(RARITY, &packed)
}

/// How a finished run by sketches judged two texts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOfSketches {
    /// The recipe in full.
    pub recipe: String,
    /// The smallest score of near duplicates, inclusive.
    pub min_score: f64,
    /// How rare each feature was in the run's corpus.
    pub frequencies: DocumentFrequencies,
}

impl RunOfSketches {
    /// Reads it from the folder of the results.
    ///
    /// # Errors
    /// A folder that is no output of `dedup`, of a run that did not compare texts, or whose files are damaged.
    pub fn open(folder: &Path) -> Result<RunOfSketches, Error> {
        /// What is read of `summary.json`.
        #[derive(Deserialize)]
        struct Summary {
            recipe: String,
            method: String,
            min_score: Option<f64>,
            verify: Option<String>,
        }
        let about = |what: &str| Error::invalid(format!("{}: {what}", folder.display()));
        let json = fs::read(folder.join("summary.json")).map_err(|_| {
            about("no results of `nearsift dedup`: expected summary.json in the folder")
        })?;
        let Summary { recipe, method, min_score, verify } = serde_json::from_slice(&json)
            .map_err(|e| about(&format!("summary.json is not one of `nearsift dedup`: {e}")))?;
        let (Some(min_score), Some("exact")) = (min_score, verify.as_deref()) else {
            return Err(about(&format!(
                "the run compared no texts ({method}): give the folder of one that did"
            )));
        };
        let path = folder.join(RARITY);
        let file = fs::File::open(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let damaged = || about("rarity.zst is damaged: run `nearsift dedup` again");
        let mut bytes = Vec::new();
        zstd::stream::Decoder::new(file)
            .and_then(|unpacked| unpacked.take(MOST_BYTES).read_to_end(&mut bytes))
            .map_err(|_| damaged())?;
        let frequencies = DocumentFrequencies::from_bytes(&bytes).map_err(|_| damaged())?;
        Ok(RunOfSketches { recipe, min_score, frequencies })
    }
}
