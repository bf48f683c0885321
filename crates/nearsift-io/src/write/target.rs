//! A file that has its name only when it is complete, and its compression.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

use crate::Error;
use crate::source::Compression;

/// A file as the system gives it.
pub(crate) type Raw = Box<dyn Write + Send>;

/// How a file is made.
pub(super) type Create = fn(&Path) -> io::Result<Raw>;

pub(super) fn create_new(path: &Path) -> io::Result<Raw> {
    Ok(Box::new(File::create_new(path)?))
}

/// Where a file will be.
pub(crate) struct Target {
    path: PathBuf,
    number: u32,
    create: Create,
    made: Option<Temporary>,
}

impl Target {
    /// A file for input `number`; it is made when it is asked for.
    pub(super) fn new(path: PathBuf, number: u32, create: Create) -> Self {
        Self { path, number, create, made: None }
    }

    pub(super) fn error(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }

    /// Makes the file, empty and under a temporary name in its folder.
    pub(crate) fn create(&mut self) -> io::Result<Raw> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let path = folder.join(format!(".nearsift-{}.partial", self.number));
        let file = (self.create)(&path)?;
        self.made = Some(Temporary(path));
        Ok(file)
    }

    /// Gives the file its name, if it was made. It must be complete.
    pub(super) fn publish(&mut self) -> Result<(), Error> {
        let Some(temporary) = self.made.take() else { return Ok(()) };
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

pub(super) enum Encoder {
    Plain(BufWriter<Raw>),
    Gzip(BufWriter<GzEncoder<Raw>>),
    Zstd(BufWriter<zstd::Encoder<'static, Raw>>),
    Xz(BufWriter<XzWriter<Raw>>),
}

impl Encoder {
    pub(super) fn new(compression: Compression, raw: Raw) -> io::Result<Self> {
        const BUFFER: usize = 128 << 10;
        Ok(match compression {
            Compression::None => Self::Plain(BufWriter::with_capacity(BUFFER, raw)),
            Compression::Gzip => {
                let encoder = GzEncoder::new(raw, flate2::Compression::default());
                Self::Gzip(BufWriter::with_capacity(BUFFER, encoder))
            }
            Compression::Xz => {
                let encoder = XzWriter::new(raw, XzOptions::default())?;
                Self::Xz(BufWriter::with_capacity(BUFFER, encoder))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(raw, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                // As the `zstd` program does: damage is to be found, not read.
                encoder.include_checksum(true)?;
                Self::Zstd(BufWriter::with_capacity(BUFFER, encoder))
            }
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(w) => w.write_all(bytes),
            Self::Gzip(w) => w.write_all(bytes),
            Self::Zstd(w) => w.write_all(bytes),
            Self::Xz(w) => w.write_all(bytes),
        }
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.close()?.flush()
    }

    /// Ends the member of the file that is being written.
    fn close(self) -> io::Result<Raw> {
        match self {
            Self::Plain(w) => w.into_inner().map_err(io::IntoInnerError::into_error),
            Self::Gzip(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Self::Zstd(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Self::Xz(w) => w.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
        }
    }

    /// Ends the member, and begins another.
    pub(super) fn next_member(self, compression: Compression) -> io::Result<Self> {
        Self::new(compression, self.close()?)
    }
}
