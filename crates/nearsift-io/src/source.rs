//! The bytes of one input file: opened, decompressed, bounded and digested.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use xxhash_rust::xxh3::Xxh3;

use crate::{Limits, Reason};

/// Where the bytes of an input are.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Path(PathBuf),
    /// A nameless copy of something that can be read only once.
    Spool(Arc<File>),
}

/// The compression of an input, told by its first bytes and not by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Origin {
    /// The file itself, and its length in bytes.
    pub(crate) fn file(&self) -> io::Result<(Arc<File>, u64)> {
        let file = match self {
            Self::Path(path) => Arc::new(File::open(path)?),
            Self::Spool(file) => Arc::clone(file),
        };
        let len = file.metadata()?.len();
        Ok((file, len))
    }
}

impl Compression {
    /// By the magic numbers of RFC 1952 section 2.3.1 and RFC 8878 sections 3.1.1 and 3.1.2.
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// A ratio is looked at only from this much output on.
pub(crate) const RATIO_FROM: u64 = 64 << 20;
/// The buffer between a file and its decompressor.
const BUFFER: usize = 64 << 10;

/// Plain bytes, and their digest. Every pass asks with slices of [`Source::chunk`] bytes, so that every pass
/// is given the same bytes also where damage ends the file.
pub(crate) struct Source {
    decoder: Decoder,
    limits: Limits,
    given: u64,
    digest: Xxh3,
}

enum Decoder {
    Plain(BufReader<Counted>),
    Gzip(Box<MultiGzDecoder<BufReader<Counted>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Counted>>>),
}

impl Source {
    pub(crate) fn open(origin: &Origin, limits: Limits) -> Result<Self, Reason> {
        let raw: Box<dyn Read + Send> = match origin {
            Origin::Path(path) => {
                Box::new(File::open(path).map_err(|e| Reason::Open(e.to_string()))?)
            }
            Origin::Spool(file) => Box::new(Positioned::new(file, 0)),
        };
        Self::new(raw, limits)
    }

    pub(crate) fn new(mut raw: Box<dyn Read + Send>, limits: Limits) -> Result<Self, Reason> {
        let mut start = Vec::new();
        let read = raw.by_ref().take(4).read_to_end(&mut start);
        read.map_err(|e| Reason::Read(e.to_string()))?;
        let compression = Compression::of(&start);
        let raw = Counted { inner: Box::new(Cursor::new(start).chain(raw)), bytes: 0 };
        let raw = BufReader::with_capacity(BUFFER, raw);
        let decoder = match compression {
            Compression::None => Decoder::Plain(raw),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(raw))),
            Compression::Zstd => {
                let open = || {
                    let mut decoder = zstd::Decoder::with_buffer(raw)?;
                    decoder.window_log_max(limits.zstd_window_log)?;
                    io::Result::Ok(decoder)
                };
                Decoder::Zstd(Box::new(open().map_err(|e| damaged("zstd", &e))?))
            }
        };
        Ok(Self { decoder, limits, given: 0, digest: Xxh3::new() })
    }

    pub(crate) fn compression(&self) -> Compression {
        match self.decoder {
            Decoder::Plain(_) => Compression::None,
            Decoder::Gzip(_) => Compression::Gzip,
            Decoder::Zstd(_) => Compression::Zstd,
        }
    }

    /// How much to ask for at a time. What a decompressor wrote in the call that meets an error is lost, so
    /// compressed data is asked for in smaller pieces.
    pub(crate) fn chunk(&self) -> usize {
        match self.decoder {
            Decoder::Plain(_) => 256 << 10,
            Decoder::Gzip(_) | Decoder::Zstd(_) => 32 << 10,
        }
    }

    /// Bytes taken from the file so far.
    pub(crate) fn consumed(&self) -> u64 {
        let raw = match &self.decoder {
            Decoder::Plain(d) => d,
            Decoder::Gzip(d) => d.get_ref(),
            Decoder::Zstd(d) => d.get_ref(),
        };
        raw.get_ref().bytes - raw.buffer().len() as u64
    }

    /// Plain bytes given so far.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The digest of the bytes given so far.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.digest()
    }

    /// Reads the next bytes; 0 is the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Reason> {
        let n = loop {
            let read = match &mut self.decoder {
                Decoder::Plain(d) => d.read(buffer),
                Decoder::Gzip(d) => d.read(buffer),
                Decoder::Zstd(d) => d.read(buffer),
            };
            match read {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.reason(&e)),
                Ok(n) => break n,
            }
        };
        self.given += n as u64;
        if self.compression() != Compression::None {
            if self.given > self.limits.file_bytes {
                return Err(Reason::TooLarge { limit: self.limits.file_bytes });
            }
            let allowed = self.consumed().saturating_mul(self.limits.ratio);
            if self.given > RATIO_FROM && self.given > allowed {
                return Err(Reason::Ratio { limit: self.limits.ratio });
            }
        }
        self.digest.update(&buffer[..n]);
        Ok(n)
    }

    fn reason(&self, error: &io::Error) -> Reason {
        match self.compression() {
            // An error of the file itself has the system's number; a decompressor's has none.
            _ if error.raw_os_error().is_some() => Reason::Read(error.to_string()),
            Compression::None => Reason::Read(error.to_string()),
            Compression::Gzip => damaged("gzip", error),
            // The library gives this case no code of its own.
            Compression::Zstd if error.to_string().contains("too much memory") => {
                Reason::Window { limit: self.limits.zstd_window_log }
            }
            Compression::Zstd => damaged("zstd", error),
        }
    }
}

fn damaged(compression: &'static str, error: &io::Error) -> Reason {
    let error = match error.kind() {
        io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
        _ => error.to_string(),
    };
    Reason::Damaged { compression, error }
}

/// A reader that counts what it gives.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes += n as u64;
        Ok(n)
    }
}

/// Reads a shared file from its own position.
pub(crate) struct Positioned {
    file: Arc<File>,
    position: u64,
}

impl Positioned {
    pub(crate) fn new(file: &Arc<File>, position: u64) -> Self {
        Self { file: Arc::clone(file), position }
    }
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let n = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.position)?;
        #[cfg(windows)]
        let n = std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, self.position)?;
        self.position += n as u64;
        Ok(n)
    }
}

/// Copies what can be read only once into a nameless file.
pub(crate) fn spool(input: &mut dyn Read, folder: &std::path::Path) -> io::Result<(File, u64)> {
    let mut copy = tempfile::tempfile_in(folder)?;
    let bytes = io::copy(input, &mut copy)?;
    Ok((copy, bytes))
}
