//! Apache Parquet, by its physical columns.
//!
//! Nothing is converted: the second pass moves the stored values and their levels from one file to the other, under the
//! same schema. So every type is carried through, also one that has no counterpart elsewhere.
//!
//! Memory: the footer; of each column one page, decoded; and in the second pass one column chunk of one row group,
//! compressed.

mod blocks;
mod column;
mod copy;
mod rows;
mod scalar;

use std::io::Read;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::Type;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::source::{Compression, Origin, Positioned};
use crate::{Limits, Reason};

use blocks::{Blocks, Bomb};
pub(crate) use copy::copy;
pub(crate) use rows::Rows;

/// The format's name in messages.
const NAME: &str = "Parquet";
/// Rows that are decoded at a time.
const CHUNK: usize = 256;
/// The deepest nesting of a schema. Real ones stay below 20.
const DEPTH: usize = 100;

/// A file whose footer has been read.
pub(crate) struct Opened {
    blocks: Arc<Blocks>,
    meta: ParquetMetaData,
    /// The digest of the footer, which says where everything else is.
    footer: u64,
}

impl Opened {
    pub(crate) fn open(origin: &Origin, limits: &Limits) -> Result<Self, Reason> {
        let (file, len) = origin.file().map_err(|e| Reason::Open(e.to_string()))?;
        let mut start = [0; 4];
        let read = Positioned::new(&file, 0).take(4).read(&mut start);
        let read = read.map_err(|e| Reason::Read(e.to_string()))?;
        if Compression::of(&start[..read]) != Compression::None {
            let error = "it is compressed as a whole; decompress it first".to_owned();
            return Err(Reason::NotReadable { format: NAME, error });
        }
        let blocks = Blocks::new(file, len, limits.ratio);
        let tail = blocks.read_at(len.saturating_sub(8), 8).map_err(|e| not_readable(&e))?;
        let (length, magic) = tail.split_at(4);
        match magic {
            b"PAR1" => {}
            b"PARE" => return Err(refused("it is encrypted")),
            _ => {
                return Err(refused(
                    "its last bytes are not PAR1: it is cut short, or another format",
                ));
            }
        }
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let at = len.checked_sub(length as u64 + 8);
        let at = at.ok_or_else(|| refused("its footer would be longer than the file"))?;
        let footer = blocks.read_at(at, length).map_err(|e| not_readable(&e))?;
        let digest = xxh3_64(&footer);
        let meta = metadata(footer)?;
        Ok(Self { blocks: Arc::new(blocks), meta, footer: digest })
    }

    /// The names of the columns, of nested ones the outermost.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.meta.file_metadata().schema().get_fields().iter().map(|field| field.name())
    }

    fn groups(&self) -> &[RowGroupMetaData] {
        self.meta.row_groups()
    }

    /// The digest of what a pass has read. A row group of which not all can be read counts by the rows that can:
    /// how far a pass reads into the damage is no part of it.
    fn digest(&self, parts: &[u64], digests: &[u64]) -> u64 {
        let mut digest = Xxh3::new();
        digest.update(&self.footer.to_le_bytes());
        for ((group, rows), pages) in self.groups().iter().zip(parts).zip(digests) {
            // Of a row group without rows nothing need be readable.
            let is_whole = *rows > 0 && i64::try_from(*rows) == Ok(group.num_rows());
            digest.update(&if is_whole { *pages } else { *rows }.to_le_bytes());
        }
        digest.digest()
    }

    /// A reader from the first row of a column of a row group on.
    fn column(&self, group: usize, column: usize) -> parquet::errors::Result<ColumnReader> {
        let group = self.meta.row_group(group);
        let chunk = group.column(column);
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        let lies = start < 0
            || chunk.compressed_size() < 0
            || end.is_none_or(|end| end.cast_unsigned() > self.blocks.size());
        if lies {
            let error = "a column would lie beyond the end of the file";
            return Err(ParquetError::General(error.to_owned()));
        }
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(Arc::clone(&self.blocks), chunk, rows, None)?;
        Ok(get_column_reader(chunk.column_descr_ptr(), Box::new(pages)))
    }
}

/// Decodes a footer, on a stack that its nesting cannot exceed: the library descends into a schema by recursion.
fn metadata(footer: Vec<u8>) -> Result<ParquetMetaData, Reason> {
    // An element of a schema takes several bytes of the footer, and a level of the descent less than these.
    let stack = footer.len().saturating_mul(256).clamp(1 << 20, 1 << 31);
    let work = move || {
        let meta = guarded(|| ParquetMetaDataReader::decode_metadata(&footer))?;
        // A deep one is dropped here, which descends too.
        match depth(meta.file_metadata().schema()) {
            ..=DEPTH => Ok(meta),
            _ => Err(refused("its columns are nested too deep")),
        }
    };
    let thread = std::thread::Builder::new().name("nearsift-footer".to_owned()).stack_size(stack);
    let thread = thread.spawn(work).map_err(|e| Reason::Read(e.to_string()))?;
    let read = thread.join().unwrap_or_else(|_| Err(refused("its footer is damaged")));
    read.map_err(|reason| match reason {
        Reason::Damaged { error, .. } => Reason::NotReadable { format: NAME, error },
        other => other,
    })
}

fn depth(schema: &Type) -> usize {
    let mut deepest = 0;
    let mut open = vec![(schema, 1)];
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if node.is_group() {
            open.extend(node.get_fields().iter().map(|child| (&**child, depth + 1)));
        }
    }
    deepest
}

fn refused(error: &str) -> Reason {
    Reason::NotReadable { format: NAME, error: error.to_owned() }
}

fn not_readable(error: &ParquetError) -> Reason {
    refused(&message(error))
}

/// What the library says, without the words that it puts before everything.
fn message(error: &ParquetError) -> String {
    match error {
        ParquetError::General(message)
        | ParquetError::EOF(message)
        | ParquetError::NYI(message) => message.clone(),
        other => other.to_string(),
    }
}

/// Runs a call of the library, which on damaged input may panic.
fn guarded<T>(work: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T, Reason> {
    let error = match crate::panics::caught(work) {
        Some(Ok(done)) => return Ok(done),
        Some(Err(error)) => error,
        None => ParquetError::General("the decoder gave up".to_owned()),
    };
    Err(match &error {
        ParquetError::External(source) if source.is::<Bomb>() => Reason::Bomb { format: NAME },
        other => Reason::Damaged { compression: NAME, error: message(other) },
    })
}
