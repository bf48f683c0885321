//! A file that has its name only when it is complete, and its compression.

use std::fs;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use tempfile::SpooledTempFile;

use super::behind::{Behind, ExpectMuch};
use crate::Error;
use crate::source::Compression;

/// A file as the system gives it.
pub(crate) type Raw = Box<dyn File>;

/// What can be written and gone back in.
pub(crate) trait File: Write + Seek + Send {}

impl<T: Write + Seek + Send> File for T {}

/// How files are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    pub(super) create: fn(&Path) -> io::Result<Raw>,
    /// Threads that compress a long file together, where its compression allows that: at least 1.
    pub(super) workers: u32,
}

impl Default for Making {
    fn default() -> Self {
        Self { create: |path| Ok(Box::new(fs::File::create_new(path)?)), workers: 1 }
    }
}

/// How what is written is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packing {
    compression: Compression,
    workers: u32,
}

/// Where a file will be, or be put together.
pub(crate) struct Target {
    /// The file, or the archive that what is put together goes into.
    path: PathBuf,
    making: Making,
    place: Place,
}

enum Place {
    Named {
        number: u32,
        made: Option<Temporary>,
    },
    Aside(Aside),
    Memory(Memory),
    /// It is handed out once.
    Stream(Option<Stream>),
}

/// What takes the bytes of a file as they come, such as standard output.
pub(super) type Stream = Box<dyn Write + Send>;

/// What only takes bytes, in the place of a file: nothing goes back in it.
struct Forward<W>(W);

impl<W: Write> Write for Forward<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W> Seek for Forward<W> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

impl Target {
    /// A file for input `number`; it is made when it is asked for.
    pub(super) fn new(path: PathBuf, number: u32, making: Making) -> Self {
        Self { path, making, place: Place::Named { number, made: None } }
    }

    /// Something that goes into the archive of this target.
    pub(super) fn aside(&self, aside: &Aside) -> Self {
        Self { path: self.path.clone(), making: self.making, place: Place::Aside(aside.clone()) }
    }

    /// Memory in place of a file.
    pub(super) fn in_memory(&self, memory: &Memory) -> Self {
        Self { path: self.path.clone(), making: self.making, place: Place::Memory(memory.clone()) }
    }

    /// A stream in place of a file; what has to be put aside lies in the folder.
    pub(super) fn stream(folder: &Path, stream: Stream, making: Making) -> Self {
        let path = folder.join("standard output");
        Self { path, making, place: Place::Stream(Some(stream)) }
    }

    /// How its content is compressed.
    pub(super) fn packing(&self, compression: Compression) -> Packing {
        Packing { compression, workers: self.making.workers }
    }

    /// The folder that it will be in.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn error(&self, source: io::Error) -> Error {
        let path = match self.place {
            Place::Stream(_) => PathBuf::from("standard output"),
            _ => self.path.clone(),
        };
        Error::Write { path, source }
    }

    /// Makes the file, empty and under a temporary name in its folder.
    pub(crate) fn create(&mut self) -> io::Result<Raw> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        match &mut self.place {
            Place::Named { number, made } => {
                fs::create_dir_all(folder)?;
                let path = folder.join(format!(".nearsift-{number}.partial"));
                let file = (self.making.create)(&path)?;
                *made = Some(Temporary(path));
                Ok(file)
            }
            Place::Aside(aside) => Ok(Box::new(aside.create(folder))),
            Place::Memory(memory) => {
                memory.bytes().clear();
                Ok(Box::new(Forward(memory.clone())))
            }
            Place::Stream(stream) => {
                let stream = stream.take().ok_or(io::ErrorKind::AlreadyExists)?;
                Ok(Box::new(Forward(stream)))
            }
        }
    }

    /// Gives the file its name, if it was made. It must be complete.
    pub(super) fn publish(&mut self) -> Result<(), Error> {
        let Place::Named { made, .. } = &mut self.place else { return Ok(()) };
        let Some(temporary) = made.take() else { return Ok(()) };
        if fs::symlink_metadata(&self.path).is_ok() {
            return Err(self.error(io::ErrorKind::AlreadyExists.into()));
        }
        // The temporary file's guard then finds nothing to remove.
        fs::rename(&temporary.0, &self.path).map_err(|e| self.error(e))
    }
}

/// What is put together before it goes into an archive, which wants to know its length first: in memory, and from some length
/// on in a nameless file.
#[derive(Clone, Default)]
pub(super) struct Aside(Arc<Mutex<Option<Shared>>>);

#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<SpooledTempFile>>);

impl Aside {
    const MEMORY_BYTES: usize = 1 << 20;

    pub(super) fn create(&self, folder: &Path) -> Shared {
        let spool = tempfile::spooled_tempfile_in(Self::MEMORY_BYTES, folder);
        let shared = Shared(Arc::new(Mutex::new(spool)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(shared.clone());
        shared
    }

    /// What was put together from its start, and its length; `None` when nothing was.
    pub(super) fn take(&self) -> io::Result<Option<(Shared, u64)>> {
        let Some(mut shared) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(None);
        };
        let len = shared.seek(SeekFrom::End(0))?;
        shared.rewind()?;
        Ok(Some((shared, len)))
    }
}

/// Memory that is written to as a file is, and used again for the next one.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// What was written.
    pub(super) fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SpooledTempFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lock().read(buffer)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.lock().seek(to)
    }
}

/// A file that is removed unless it has been renamed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// What is written to a file, in its compression: a thread of its own compresses what is long.
pub(super) enum Encoder {
    Plain(BufWriter<Raw>),
    Packed(Box<Behind<Packer>>),
}

pub(super) enum Packer {
    Gzip(GzEncoder<Raw>),
    /// With the threads that share the work when there is much.
    Zstd(zstd::Encoder<'static, Raw>, u32),
    Xz(XzWriter<Raw>),
    Bzip2(BzEncoder<Raw>),
}

impl Encoder {
    pub(super) fn new(packing: Packing, raw: Raw) -> io::Result<Self> {
        const BUFFER: usize = 128 << 10;
        let packer = match packing.compression {
            Compression::None => return Ok(Self::Plain(BufWriter::with_capacity(BUFFER, raw))),
            Compression::Gzip => Packer::Gzip(GzEncoder::new(raw, flate2::Compression::default())),
            Compression::Xz => Packer::Xz(XzWriter::new(raw, XzOptions::default())?),
            Compression::Bzip2 => Packer::Bzip2(BzEncoder::new(raw, bzip2::Compression::best())),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(raw, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                // As the `zstd` program does: damage is to be found, not read.
                encoder.include_checksum(true)?;
                Packer::Zstd(encoder, packing.workers)
            }
        };
        Ok(Self::Packed(Box::new(Behind::new(packer))))
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(w) => w.write_all(bytes),
            Self::Packed(w) => w.put(bytes),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.close()?.flush()
    }

    /// Ends the member of the file that is being written.
    fn close(self) -> io::Result<Raw> {
        match self {
            Self::Plain(w) => w.into_inner().map_err(io::IntoInnerError::into_error),
            Self::Packed(w) => match w.finish()? {
                Packer::Gzip(w) => w.finish(),
                Packer::Zstd(w, _) => w.finish(),
                Packer::Xz(w) => w.finish(),
                Packer::Bzip2(w) => w.finish(),
            },
        }
    }

    /// Ends the member, and begins another.
    pub(super) fn next_member(self, packing: Packing) -> io::Result<Self> {
        Self::new(packing, self.close()?)
    }
}

impl ExpectMuch for Packer {
    /// What zstd compresses in parts is one frame all the same, whose bytes do not depend on the number of
    /// threads; but they differ from those without sharing, so that one thread shares as well.
    fn expect_much(&mut self) -> io::Result<()> {
        match self {
            Self::Zstd(encoder, workers) => encoder.multithread(*workers),
            Self::Gzip(_) | Self::Xz(_) | Self::Bzip2(_) => Ok(()),
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(w) => w.write(bytes),
            Self::Zstd(w, _) => w.write(bytes),
            Self::Xz(w) => w.write(bytes),
            Self::Bzip2(w) => w.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(w) => w.flush(),
            Self::Zstd(w, _) => w.flush(),
            Self::Xz(w) => w.flush(),
            Self::Bzip2(w) => w.flush(),
        }
    }
}
