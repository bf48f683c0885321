//! The second pass: the kept records, byte for byte, in the input's own format and compression.

mod elements;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use crate::batch::Place;
use crate::inputs::{InputFile, Inputs, Seen};
use crate::source::Compression;
use crate::split::{Around, Piece, Splitter};
use crate::{Error, Format};

use elements::Elements;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes that have been handed over are taken out of the buffer when there are so many.
const FORGET_BYTES: usize = 4 << 20;

/// What becomes of a record in the second pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Written to the kept documents.
    Keep,
    /// Written nowhere.
    Drop,
    /// Written to the unreadable records, as it stands.
    Unreadable,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Records decided [`Keep`](Decision::Keep).
    pub kept: u64,
    /// Records decided [`Drop`](Decision::Drop).
    pub dropped: u64,
    /// Records decided [`Unreadable`](Decision::Unreadable), those too long, and those cut short by damage.
    pub unreadable: u64,
    /// Uncompressed bytes of the kept documents, with what stands between them.
    pub bytes: u64,
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.dropped += other.dropped;
        self.unreadable += other.unreadable;
        self.bytes += other.bytes;
    }
}

/// Writes what is kept of each input file, and beside it what could not be read.
///
/// The file of an input is at [`Inputs::output_path`] below both folders, in the format and compression of the
/// input. What is kept is kept byte for byte; so are a byte order mark, a CSV header and blank lines. A JSON
/// array stays one, with the bytes of its kept elements; runs of more than 64 KiB of white space between
/// elements are cut to that. A file of which nothing is kept is written without records; a text or HTML
/// file that is not kept is not written.
///
/// A file has a temporary name in its folder until it is complete, so that no half file has a final name.
/// Nothing is synced to the disk.
#[derive(Debug)]
pub struct KeptWriter {
    inputs: Inputs,
    kept: PathBuf,
    unreadable: PathBuf,
    create: fn(&Path) -> io::Result<Box<dyn Write + Send>>,
}

impl KeptWriter {
    /// A writer into two folders, which are made when something is to be written there. They belong in a folder
    /// that [`prepare_output`](crate::prepare_output) has approved.
    pub fn new(inputs: &Inputs, kept: impl Into<PathBuf>, unreadable: impl Into<PathBuf>) -> Self {
        Self {
            inputs: inputs.clone(),
            kept: kept.into(),
            unreadable: unreadable.into(),
            create: |path| Ok(Box::new(File::create_new(path)?)),
        }
    }

    /// Writes every file in order; see [`write_file`](KeptWriter::write_file).
    ///
    /// # Errors
    /// As there. Files before the one with the error are complete.
    pub fn write_all(&self, mut decide: impl FnMut(Place) -> Decision) -> Result<Written, Error> {
        let mut all = Written::default();
        for file in 0..self.inputs.files().len() {
            all += self.write_file(file, &mut decide)?;
        }
        Ok(all)
    }

    /// Writes one file by its index in [`Inputs::files`]. Different files may be written on different threads.
    ///
    /// `decide` is asked once for each record that a [`Batch`](crate::Batch) held, in the same order and with the same
    /// place. Records in no batch are written to the unreadable ones.
    ///
    /// # Errors
    /// [`Error::NotRead`] before a [`Reader`](crate::Reader) has read the file to its end, [`Error::Changed`] when it is no longer what
    /// that one read, [`Error::Gone`] when it cannot be opened again, [`Error::Write`] when the disk is full or
    /// refuses. Then nothing of this file is under its final name.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn write_file(
        &self,
        file: usize,
        mut decide: impl FnMut(Place) -> Decision,
    ) -> Result<Written, Error> {
        let number = file as u32;
        let file = &self.inputs.files()[file];
        let Some(seen) = file.seen.get() else {
            return Err(Error::NotRead { file: file.name() });
        };
        if !seen.opened {
            return Ok(Written::default());
        }
        let mut buffer = Vec::new();
        let mut splitter = Splitter::open(file, self.inputs.options(), &buffer)
            .map_err(|reason| Error::Gone { file: file.name(), reason })?;
        let mut pair = self.sinks(file, number, splitter.compression());
        if !file.format().is_one_document_a_file() {
            pair.kept.open()?;
        }
        let mut written = Written::default();
        let mut records = 0;
        // Whether the record that is too long has begun.
        let mut in_long = false;
        while let Some(piece) = splitter.next(&mut buffer) {
            match piece {
                Piece::Gap(range) => pair.gap(&buffer[range], splitter.around())?,
                Piece::Header(range) => {
                    pair.kept.put(&buffer[range.clone()])?;
                    pair.unreadable.put(&buffer[range])?;
                }
                Piece::Record { range, line, .. } => {
                    let place = Place { file: number, index: seen.first + records, line };
                    records += 1;
                    // The caller knows nothing of a record that was not there before.
                    if records > seen.records {
                        return Err(seen.changed(file, "records", seen.records, records));
                    }
                    let decision = decide(place);
                    pair.record(&buffer[range], decision)?;
                    match decision {
                        Decision::Keep => written.kept += 1,
                        Decision::Drop => written.dropped += 1,
                        Decision::Unreadable => written.unreadable += 1,
                    }
                }
                Piece::Long { range, .. } | Piece::Cut(range) if in_long => {
                    pair.unreadable.put(&buffer[range])?;
                }
                Piece::Long { range, .. } | Piece::Cut(range) => {
                    pair.record(&buffer[range], Decision::Unreadable)?;
                    written.unreadable += 1;
                }
                Piece::Damage { .. } => {}
            }
            in_long = splitter.is_in_long();
            let done = splitter.start();
            if done >= FORGET_BYTES {
                buffer.drain(..done);
                splitter.rebase(done);
            }
        }
        let source = splitter.source();
        let now = Seen { records, bytes: source.given(), digest: source.digest(), ..*seen };
        seen.compare(&now, file)?;
        written.bytes = pair.finish()?;
        Ok(written)
    }

    fn sinks(&self, file: &InputFile, number: u32, compression: Compression) -> Pair {
        let below = self.inputs.output_path(file);
        let sink = |folder: &Path| Sink {
            path: folder.join(&below),
            number,
            compression,
            create: self.create,
            out: Out::None,
            before: Vec::new(),
            elements: (file.format() == Format::Json).then(Elements::default),
            bytes: 0,
        };
        Pair { kept: sink(&self.kept), unreadable: sink(&self.unreadable) }
    }
}

impl Seen {
    /// Whether a later pass over the file saw the same.
    pub(crate) fn compare(&self, now: &Self, file: &InputFile) -> Result<(), Error> {
        let (what, expected, got) = if self.opened != now.opened {
            ("times opened", u64::from(self.opened), u64::from(now.opened))
        } else if self.records != now.records {
            ("records", self.records, now.records)
        } else if self.bytes != now.bytes {
            ("bytes", self.bytes, now.bytes)
        } else if self.digest != now.digest {
            ("as the digest of the bytes", self.digest, now.digest)
        } else {
            return Ok(());
        };
        Err(self.changed(file, what, expected, got))
    }

    fn changed(&self, file: &InputFile, what: &'static str, expected: u64, got: u64) -> Error {
        Error::Changed { file: file.name(), what, expected, got }
    }
}

/// The two files that are written for one input.
struct Pair {
    kept: Sink,
    unreadable: Sink,
}

impl Pair {
    fn gap(&mut self, bytes: &[u8], around: Around) -> Result<(), Error> {
        let is_mark = bytes == BYTE_ORDER_MARK;
        if self.kept.elements.is_some() && !is_mark {
            self.kept.gap(bytes, around)?;
            return self.unreadable.gap(bytes, around);
        }
        self.kept.put(bytes)?;
        // Blank lines belong to no record, and go with what is kept.
        if is_mark { self.unreadable.put(bytes) } else { Ok(()) }
    }

    fn record(&mut self, bytes: &[u8], decision: Decision) -> Result<(), Error> {
        let to_kept = decision == Decision::Keep;
        let to_unreadable = decision == Decision::Unreadable;
        self.kept.record(to_kept.then_some(bytes))?;
        self.unreadable.record(to_unreadable.then_some(bytes))
    }

    /// Completes both files before either gets its name.
    fn finish(mut self) -> Result<u64, Error> {
        self.kept.complete()?;
        self.unreadable.complete()?;
        self.unreadable.publish()?;
        self.kept.publish()?;
        Ok(self.kept.bytes)
    }
}

/// One output file. It is made when a record comes, or when [`Sink::open`] asks for it.
struct Sink {
    path: PathBuf,
    number: u32,
    compression: Compression,
    create: fn(&Path) -> io::Result<Box<dyn Write + Send>>,
    out: Out,
    /// What was put before the file was made.
    before: Vec<u8>,
    /// What stands between the records of a JSON file.
    elements: Option<Elements>,
    bytes: u64,
}

enum Out {
    None,
    Open(Box<Encoder>, Temporary),
    Complete(Temporary),
}

impl Sink {
    fn error(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }

    fn open(&mut self) -> Result<(), Error> {
        if !matches!(self.out, Out::None) {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let make = || {
            fs::create_dir_all(folder)?;
            let path = folder.join(format!(".nearsift-{}.partial", self.number));
            let file = (self.create)(&path)?;
            let temporary = Temporary(path);
            io::Result::Ok(Out::Open(Box::new(Encoder::new(self.compression, file)?), temporary))
        };
        self.out = make().map_err(|e| self.error(e))?;
        let before = std::mem::take(&mut self.before);
        self.put(&before)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Out::Open(encoder, _) = &mut self.out {
            self.bytes += bytes.len() as u64;
            return encoder.write_all(bytes).map_err(|e| self.error(e));
        }
        self.before.extend_from_slice(bytes);
        Ok(())
    }

    fn gap(&mut self, bytes: &[u8], around: Around) -> Result<(), Error> {
        match &mut self.elements {
            Some(elements) => {
                let now = elements.gap(bytes, around);
                self.put(&now)
            }
            None => self.put(bytes),
        }
    }

    /// The next record, if it goes here.
    fn record(&mut self, bytes: Option<&[u8]>) -> Result<(), Error> {
        if let Some(elements) = &mut self.elements {
            let first = elements.record(bytes.is_some());
            self.put(&first)?;
        }
        let Some(bytes) = bytes else { return Ok(()) };
        self.open()?;
        self.put(bytes)
    }

    fn complete(&mut self) -> Result<(), Error> {
        if let Some(elements) = &mut self.elements {
            let last = elements.finish();
            self.put(&last)?;
        }
        self.out = match std::mem::replace(&mut self.out, Out::None) {
            Out::Open(encoder, temporary) => {
                encoder.finish().map_err(|e| self.error(e))?;
                Out::Complete(temporary)
            }
            other => other,
        };
        Ok(())
    }

    /// Gives the complete file its name.
    fn publish(&mut self) -> Result<(), Error> {
        let Out::Complete(temporary) = std::mem::replace(&mut self.out, Out::None) else {
            return Ok(());
        };
        if fs::symlink_metadata(&self.path).is_ok() {
            return Err(self.error(io::ErrorKind::AlreadyExists.into()));
        }
        // The temporary file's guard then finds nothing to remove.
        fs::rename(&temporary.0, &self.path).map_err(|e| self.error(e))
    }
}

/// A file that is removed unless it has been renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

type Raw = Box<dyn Write + Send>;

enum Encoder {
    Plain(BufWriter<Raw>),
    Gzip(BufWriter<GzEncoder<Raw>>),
    Zstd(BufWriter<zstd::Encoder<'static, Raw>>),
}

impl Encoder {
    fn new(compression: Compression, raw: Raw) -> io::Result<Self> {
        const BUFFER: usize = 128 << 10;
        Ok(match compression {
            Compression::None => Self::Plain(BufWriter::with_capacity(BUFFER, raw)),
            Compression::Gzip => {
                let encoder = GzEncoder::new(raw, flate2::Compression::default());
                Self::Gzip(BufWriter::with_capacity(BUFFER, encoder))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(raw, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                // As the `zstd` program does: damage is to be found, not read.
                encoder.include_checksum(true)?;
                Self::Zstd(BufWriter::with_capacity(BUFFER, encoder))
            }
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(w) => w.write_all(bytes),
            Self::Gzip(w) => w.write_all(bytes),
            Self::Zstd(w) => w.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        let mut raw = match self {
            Self::Plain(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?,
            Self::Gzip(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
            Self::Zstd(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?,
        };
        raw.flush()
    }
}
