//! Readers and writers of the document formats: JSON lines, JSON, CSV, TSV, WARC, ARC, text and HTML, plain or in gzip, zstd,
//! bzip2 or xz, and as members of tar and zip files; Parquet and Arrow IPC, which the features `parquet` and `arrow` bring in.
//!
//! [`Inputs`] finds the files. A [`Reader`] gives their records in [`Batch`]es, and a [`Parser`] makes
//! [`Document`]s of them, on any number of threads. A [`KeptWriter`] goes over the same files again and writes
//! the records that are kept.
//!
//! - No input is ever changed, and no output folder may touch one ([`prepare_output`]).
//! - One bad record never costs another: it is a [`Note`], and reading goes on.
//! - Memory is bounded by [`ReadOptions::batch_bytes`] and [`Limits::record_bytes`], whatever the input; of a table by a page
//!   of each of its columns (Parquet, which writes one column chunk at a time) or by one record batch (Arrow).
//! - What is read does not depend on batch size, threads or the order of a folder on disk.
//!
//! ```
//! use nearsift_io::{Decision, Inputs, KeptWriter, Parser, ReadOptions, Reader, prepare_output};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let input = folder.path().join("in.jsonl");
//! std::fs::write(&input, "{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\"text\":\"a\"}\n{\"id\":3}\n")?;
//!
//! let inputs = Inputs::resolve(&[&input], ReadOptions::default())?;
//! let output = prepare_output(&folder.path().join("out"), &inputs)?;
//! let parser = Parser::new(&inputs);
//! let mut decisions = Vec::new();
//! let mut reader = Reader::new(&inputs);
//! while let Some(batch) = reader.next_batch()? {
//!     for record in batch.records() {
//!         decisions.push(match parser.parse(&record) {
//!             Ok(document) if document.id.as_str() == "2" => Decision::Drop,
//!             Ok(_) => Decision::Keep,
//!             Err(_note) => Decision::Unreadable,
//!         });
//!     }
//!     reader.recycle(batch);
//! }
//! let writer = KeptWriter::new(&inputs, output.join("kept"), output.join("unreadable"));
//! writer.write_all(|place| decisions[place.index as usize])?;
//! assert_eq!(std::fs::read(output.join("kept/in.jsonl"))?, b"{\"id\":1,\"text\":\"a\"}\n");
//! assert_eq!(std::fs::read(output.join("unreadable/in.jsonl"))?, b"{\"id\":3}\n");
//! # Ok(()) }
//! ```

mod archive;
mod batch;
mod companions;
mod error;
mod inputs;
mod options;
mod output;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod panics;
mod parse;
mod reader;
mod source;
mod split;
mod table;
mod write;

pub use batch::{Batch, Place, Record};
pub use error::{Error, Lack, Note, Reason};
pub use inputs::{InputFile, Inputs, Passes, Skipped};
pub use options::{Format, Limits, Links, ReadOptions};
pub use output::{
    ExistingFile, prepare_output, prepare_output_around, prepare_output_beside, prepare_output_file,
};
pub use parse::{Body, Document, DocumentId, Parser, Value};
pub use reader::{NotYet, Reader, Span};
pub use write::{
    AddedColumn, Cell, CellKind, Codec, Conversion, Decide, Deciders, Decision, KeptWriter,
    OneFile, Rewriting, TextOf, Written, table_of_lines,
};
