//! The bytes of one input file: opened, decompressed, bounded and digested.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use lzma_rust2::XzReader;
use xxhash_rust::xxh3::Xxh3;
use zstd::zstd_safe::{self, zstd_sys::ZSTD_ErrorCode};

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
    Xz,
    Bzip2,
}

/// What a document file is read from: a file that can be gone back in, or bytes that come once.
pub(crate) enum Content {
    Origin(Origin),
    Stream(Box<dyn Read + Send>),
}

#[cfg(any(feature = "arrow", feature = "parquet"))]
impl Content {
    /// A file that can be gone back in.
    pub(crate) fn origin(self) -> Result<Origin, Reason> {
        match self {
            Self::Origin(origin) => Ok(origin),
            Self::Stream(_) => Err(Reason::Read("it can be read only once".to_owned())),
        }
    }
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
    /// By the magic numbers of RFC 1952 section 2.3.1, RFC 8878 sections 3.1.1 and 3.1.2, and the xz file format section
    /// 2.1.1.1. bzip2 has no specification; a stream begins with `BZh`, the size of its blocks and the magic number of its
    /// first block or of its end.
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => Self::Bzip2,
            _ => Self::None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// A ratio is looked at only from this much output on.
pub(crate) const RATIO_FROM: u64 = 64 << 20;
/// The longest dictionary. Those of archives have some hundred kilobytes.
const DICTIONARY_BYTES: u64 = 32 << 20;
/// The buffer between a file and its decompressor.
pub(crate) const BUFFER: usize = 64 << 10;

/// Plain bytes, and their digest. Every pass asks with slices of [`Source::chunk`] bytes, so that every pass
/// is given the same bytes also where damage ends the file.
pub(crate) struct Source {
    /// The file, to begin anew somewhere in it.
    file: Option<Arc<File>>,
    decoder: Decoder,
    compression: Compression,
    members: Members,
    /// The number of the member that is read, and where it begins in the file.
    member: u64,
    member_at: u64,
    /// What the frames of zstd were compressed with.
    dictionary: Option<Vec<u8>>,
    taken: Taken,
    limits: Limits,
    given: u64,
    /// `None` where the caller has digests of its own.
    digest: Option<Xxh3>,
}

/// What a file of several gzip members or zstd frames is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// One run of bytes.
    Joined,
    /// One after the other, each of which can be read without those before it.
    Apart,
}

type Raw = BufReader<Counted>;

enum Decoder {
    Plain(Raw),
    Gzip(Box<MultiGzDecoder<Raw>>),
    GzipMember(Box<GzDecoder<Raw>>),
    Zstd(Box<zstd::Decoder<'static, Raw>>),
    Xz(Box<XzReader<Raw>>),
    Bzip2(Box<MultiBzDecoder<Raw>>),
    /// One of these, at work on a thread of its own.
    Ahead(Ahead),
    /// After the last member.
    Spent,
}

impl Decoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Plain(d) => d.read(buffer),
            Decoder::Gzip(d) => d.read(buffer),
            Decoder::GzipMember(d) => d.read(buffer),
            Decoder::Zstd(d) => d.read(buffer),
            Decoder::Xz(d) => d.read(buffer),
            Decoder::Bzip2(d) => d.read(buffer),
            Decoder::Ahead(d) => d.read(buffer),
            Decoder::Spent => Ok(0),
        }
    }
}

/// A decompressor that works ahead on a thread of its own. What it gives is what it gave in each of its reads, one after the other: so
/// whether it works ahead cannot be told from what is read, also where damage or a limit ends the file.
struct Ahead {
    chunks: Receiver<Chunk>,
    chunk: Chunk,
    /// The next read of the chunk, and where its bytes begin.
    next: usize,
    at: usize,
    /// Bytes taken from the file up to the last read.
    taken: u64,
}

/// Some reads of a decompressor.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Of each read its bytes, and the bytes taken from the file by then.
    reads: Vec<(usize, u64)>,
    /// What came after the last read.
    failed: Option<io::Error>,
}

impl Chunk {
    /// Bytes of a chunk, and chunks that wait.
    const BYTES: usize = 256 << 10;
    const WAITING: usize = 4;

    /// The next reads of a decompressor, of `piece` bytes each.
    fn fill(decoder: &mut Decoder, taken: &Taken, piece: usize) -> Chunk {
        let mut chunk = Chunk { bytes: vec![0; Chunk::BYTES], ..Chunk::default() };
        let mut len = 0;
        while len + piece <= chunk.bytes.len() {
            match decoder.read(&mut chunk.bytes[len..len + piece]) {
                Ok(0) => break,
                Ok(read) => {
                    chunk.reads.push((read, taken.0.load(Ordering::Relaxed)));
                    len += read;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    chunk.failed = Some(e);
                    break;
                }
            }
        }
        chunk
    }
}

impl Ahead {
    /// Puts a decompressor to work on a thread, which ends with the file or when nobody reads on.
    fn start(mut decoder: Decoder, taken: Taken, piece: usize) -> Ahead {
        let (filled, chunks) = sync_channel(Chunk::WAITING);
        let work = move || {
            loop {
                let chunk = Chunk::fill(&mut decoder, &taken, piece);
                let is_last = chunk.failed.is_some() || chunk.reads.is_empty();
                if filled.send(chunk).is_err() || is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("nearsift-unpack".to_owned()).spawn(work);
        // Where the system gives no thread, that is what comes of the file.
        let chunk = Chunk { failed: thread.err(), ..Chunk::default() };
        Ahead { chunks, chunk, next: 0, at: 0, taken: 0 }
    }
}

impl Read for Ahead {
    /// The bytes of one read; `buffer` has room for it.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.next == self.chunk.reads.len() {
            if let Some(error) = self.chunk.failed.take() {
                return Err(error);
            }
            match self.chunks.recv() {
                Ok(chunk) if chunk.reads.is_empty() && chunk.failed.is_none() => return Ok(0),
                Ok(chunk) => (self.chunk, self.next, self.at) = (chunk, 0, 0),
                Err(_) => return Ok(0),
            }
        }
        let (len, taken) = self.chunk.reads[self.next];
        buffer[..len].copy_from_slice(&self.chunk.bytes[self.at..self.at + len]);
        (self.next, self.at, self.taken) = (self.next + 1, self.at + len, taken);
        Ok(len)
    }
}

impl Source {
    pub(crate) fn open(content: Content, limits: Limits, members: Members) -> Result<Self, Reason> {
        let origin = match content {
            Content::Origin(origin) => origin,
            Content::Stream(stream) => return Self::new(stream, None, limits, members),
        };
        let (file, _) = origin.file().map_err(|e| Reason::Open(e.to_string()))?;
        let raw = Box::new(Positioned::new(&file, 0));
        Self::new(raw, Some(file), limits, members)
    }

    /// A range of an uncompressed file: `bytes` bytes from `start` on, or all that follow. It is not digested.
    pub(crate) fn open_range(
        origin: &Origin,
        start: u64,
        bytes: Option<u64>,
        limits: Limits,
    ) -> Result<Self, Reason> {
        let (file, _) = origin.file().map_err(|e| Reason::Open(e.to_string()))?;
        let raw = Box::new(Positioned::new(&file, start).take(bytes.unwrap_or(u64::MAX)));
        let mut source =
            Self { digest: None, ..Self::empty(None, Compression::None, limits, Members::Joined) };
        let raw = Counted { inner: raw, taken: source.taken.clone() };
        source.start(BufReader::with_capacity(BUFFER, raw))?;
        Ok(source)
    }

    /// Before anything is read.
    fn empty(
        file: Option<Arc<File>>,
        compression: Compression,
        limits: Limits,
        members: Members,
    ) -> Self {
        Self {
            file,
            decoder: Decoder::Spent,
            compression,
            members,
            member: 0,
            member_at: 0,
            dictionary: None,
            taken: Taken::default(),
            limits,
            given: 0,
            digest: Some(Xxh3::new()),
        }
    }

    /// Reads `raw`, which is what `file` holds.
    pub(crate) fn new(
        mut raw: Box<dyn Read + Send>,
        file: Option<Arc<File>>,
        limits: Limits,
        members: Members,
    ) -> Result<Self, Reason> {
        let mut start = Vec::new();
        let read = raw.by_ref().take(6).read_to_end(&mut start);
        read.map_err(|e| carried(&e).unwrap_or_else(|| Reason::Read(e.to_string())))?;
        let compression = Compression::of(&start);
        let mut source = Self::empty(file, compression, limits, members);
        let inner = Box::new(Cursor::new(start).chain(raw));
        let raw = Counted { inner, taken: source.taken.clone() };
        let mut raw = BufReader::with_capacity(BUFFER, raw);
        if compression == Compression::Zstd {
            source.dictionary = dictionary(&mut raw, limits.zstd_window_log)?;
        }
        source.start(raw)?;
        Ok(source)
    }

    /// Begins a decoder at a place of the file.
    fn start_at(&mut self, file: &Arc<File>, at: u64) -> Result<(), Reason> {
        self.taken.0.store(at, Ordering::Relaxed);
        let inner = Box::new(Positioned::new(file, at));
        let raw = Counted { inner, taken: self.taken.clone() };
        self.start(BufReader::with_capacity(BUFFER, raw))
    }

    fn start(&mut self, raw: Raw) -> Result<(), Reason> {
        self.member_at = self.consumed() - raw.buffer().len() as u64;
        let apart = self.members == Members::Apart;
        self.decoder = match self.compression {
            Compression::None => Decoder::Plain(raw),
            Compression::Gzip if apart => Decoder::GzipMember(Box::new(GzDecoder::new(raw))),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(raw))),
            Compression::Bzip2 => Decoder::Bzip2(Box::new(MultiBzDecoder::new(raw))),
            Compression::Xz => {
                let kib = 1 << (self.limits.zstd_window_log.clamp(10, 31) - 10);
                // The decoder's own tables come on top of the dictionary.
                Decoder::Xz(Box::new(XzReader::new_mem_limit(raw, true, kib + (1 << 10))))
            }
            Compression::Zstd => {
                let open = || {
                    let dictionary = self.dictionary.as_deref().unwrap_or_default();
                    let mut decoder = zstd::Decoder::with_dictionary(raw, dictionary)?;
                    decoder.window_log_max(self.limits.zstd_window_log)?;
                    io::Result::Ok(if apart { decoder.single_frame() } else { decoder })
                };
                Decoder::Zstd(Box::new(open().map_err(|e| damaged("zstd", &e))?))
            }
        };
        Ok(())
    }

    /// The size of the file as stored, in bytes; 0 of a stream.
    pub(crate) fn stored(&self) -> u64 {
        self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.len())
    }

    /// Starts a thread that decompresses ahead of the reads. Must be called before the first read. Does nothing for a plain file, and for
    /// separate members, which a reader may skip or resume.
    pub(crate) fn read_ahead(&mut self) {
        if self.members == Members::Joined && self.compression != Compression::None {
            let decoder = std::mem::replace(&mut self.decoder, Decoder::Spent);
            let ahead = Ahead::start(decoder, self.taken.clone(), self.chunk());
            self.decoder = Decoder::Ahead(ahead);
        }
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// How much to ask for at a time. What a decompressor wrote in the call that meets an error is lost, so
    /// compressed data is asked for in smaller pieces.
    pub(crate) fn chunk(&self) -> usize {
        match self.compression {
            Compression::None => 256 << 10,
            _ => 32 << 10,
        }
    }

    /// Bytes taken from the file so far, with what the decoder has not looked at yet.
    pub(crate) fn consumed(&self) -> u64 {
        match &self.decoder {
            Decoder::Ahead(ahead) => ahead.taken,
            _ => self.taken.0.load(Ordering::Relaxed),
        }
    }

    /// Plain bytes given so far.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// The digest of the bytes given so far; 0 of a [range](Source::open_range).
    pub(crate) fn digest(&self) -> u64 {
        self.digest.as_ref().map_or(0, Xxh3::digest)
    }

    /// Whether a member ends with a check of what was read of it.
    pub(crate) fn has_checked_members(&self) -> bool {
        self.members == Members::Apart && self.compression != Compression::None
    }

    /// The number of the member that is read, from 0; 0 where members are not told apart.
    pub(crate) fn member(&self) -> u64 {
        self.member
    }

    /// After the end of a member: goes on with the next, if there is one.
    pub(crate) fn next_member(&mut self) -> bool {
        let raw = match std::mem::replace(&mut self.decoder, Decoder::Spent) {
            Decoder::GzipMember(decoder) => decoder.into_inner(),
            Decoder::Zstd(decoder) if self.members == Members::Apart => decoder.finish(),
            _ => return false,
        };
        let mut raw = raw;
        if !raw.fill_buf().is_ok_and(|more| !more.is_empty()) {
            return false;
        }
        self.member += 1;
        self.start(raw).is_ok()
    }

    /// After damage: goes on with the next member that can be found by its first bytes.
    pub(crate) fn resume(&mut self) -> bool {
        const LOOK: usize = 64 << 10;
        let Some(file) = self.file.clone().filter(|_| self.members == Members::Apart) else {
            return false;
        };
        let magic: &[u8] = match self.compression {
            // Deflate, and no flag that RFC 1952 reserves, which is looked at below.
            Compression::Gzip => &[0x1f, 0x8b, 8],
            Compression::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            _ => return false,
        };
        let mut at = self.member_at + 1;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = Positioned::new(&file, at).take(LOOK as u64).read_to_end(&mut bytes);
            if read.is_err() || bytes.len() < magic.len() {
                return false;
            }
            match memchr::memmem::find(&bytes, magic) {
                Some(found)
                    if self.compression == Compression::Gzip
                        && bytes.get(found + 3).is_some_and(|flags| flags & 0xe0 != 0) =>
                {
                    at += found as u64 + 1;
                }
                Some(found) => {
                    self.member += 1;
                    return self.start_at(&file, at + found as u64).is_ok();
                }
                // The magic may lie across the end.
                None => at += (bytes.len() - magic.len() + 1) as u64,
            }
        }
    }

    /// Reads the next bytes; 0 is the end, of the member where they are told apart.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Reason> {
        let n = loop {
            match self.decoder.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.reason(&e)),
                Ok(n) => break n,
            }
        };
        self.given += n as u64;
        if self.compression != Compression::None {
            if self.given > self.limits.file_bytes {
                return Err(Reason::TooLarge { limit: self.limits.file_bytes });
            }
            let allowed = self.consumed().saturating_mul(self.limits.ratio);
            if self.given > RATIO_FROM && self.given > allowed {
                return Err(Reason::Ratio { limit: self.limits.ratio });
            }
        }
        if let Some(digest) = &mut self.digest {
            digest.update(&buffer[..n]);
        }
        Ok(n)
    }

    fn reason(&self, error: &io::Error) -> Reason {
        let limit = self.limits.zstd_window_log;
        if let Some(reason) = carried(error) {
            return reason;
        }
        match self.compression {
            // An error of the file itself has the system's number; a decompressor's has none.
            _ if error.raw_os_error().is_some() => Reason::Read(error.to_string()),
            Compression::None => Reason::Read(error.to_string()),
            Compression::Zstd if is_window_too_large(error) => {
                Reason::Window { compression: "zstd", limit }
            }
            Compression::Xz if error.kind() == io::ErrorKind::OutOfMemory => {
                Reason::Window { compression: "xz", limit }
            }
            compression => damaged(compression.name(), error),
        }
    }
}

/// Whether zstd refused a frame whose window is beyond the limit. Its errors carry no code, only the name that the
/// library has for the code.
fn is_window_too_large(error: &io::Error) -> bool {
    let code = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    error.to_string() == zstd_safe::get_error_name(code.wrapping_neg())
}

/// The dictionary that a file of zstd frames begins with, in a frame of its own that is skipped where nobody knows of it.
///
/// # References
/// IIPC, *Zstandard compression for WARC files* 1.0; RFC 8878, sections 3.1.2 and 5.
fn dictionary(raw: &mut Raw, window_log: u32) -> Result<Option<Vec<u8>>, Reason> {
    const FRAME: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
    const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];
    let lost = |e: io::Error| carried(&e).unwrap_or_else(|| damaged("zstd", &e));
    // The buffer may hold less than the file has: its first part was read before.
    let mut head = [0; 8];
    let start = raw.fill_buf().map_err(lost)?;
    if !start.starts_with(&FRAME) {
        return Ok(None);
    }
    raw.read_exact(&mut head).map_err(lost)?;
    let len = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    if len > DICTIONARY_BYTES {
        let mut skipped = raw.take(len);
        io::copy(&mut skipped, &mut io::sink()).map_err(lost)?;
        return Ok(None);
    }
    let mut content = Vec::new();
    raw.take(len).read_to_end(&mut content).map_err(lost)?;
    if (content.len() as u64) < len {
        return Err(lost(io::ErrorKind::UnexpectedEof.into()));
    }
    if Compression::of(&content) == Compression::Zstd {
        let unfold = || {
            let mut plain = Vec::new();
            let mut decoder = zstd::Decoder::with_buffer(&content[..])?;
            decoder.window_log_max(window_log)?;
            decoder.take(DICTIONARY_BYTES + 1).read_to_end(&mut plain)?;
            io::Result::Ok(plain)
        };
        content = unfold().map_err(lost)?;
    }
    let is_dictionary = content.starts_with(&MAGIC) && content.len() as u64 <= DICTIONARY_BYTES;
    Ok(Some(content).filter(|_| is_dictionary))
}

/// Why something cannot be read, on its way through readers that know only errors of the system.
pub(crate) fn carry(reason: Reason) -> io::Error {
    io::Error::other(reason)
}

/// The reason that an error [carries](carry).
pub(crate) fn carried(error: &io::Error) -> Option<Reason> {
    error.get_ref()?.downcast_ref::<Reason>().cloned()
}

pub(crate) fn damaged(compression: &'static str, error: &io::Error) -> Reason {
    let error = match error.kind() {
        io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
        _ => error.to_string(),
    };
    Reason::Damaged { compression, error }
}

/// How many bytes have been taken from a file.
#[derive(Clone, Default)]
struct Taken(Arc<AtomicU64>);

/// A reader that counts what it gives.
struct Counted {
    inner: Box<dyn Read + Send>,
    taken: Taken,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.taken.0.fetch_add(n as u64, Ordering::Relaxed);
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

/// A shared file as the libraries want it that go back and forth in one.
pub(crate) struct Seeker {
    at: Positioned,
    len: u64,
}

impl Seeker {
    pub(crate) fn new(file: &Arc<File>, len: u64) -> Self {
        Self { at: Positioned::new(file, 0), len }
    }
}

impl Read for Seeker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.at.read(buffer)
    }
}

impl Seek for Seeker {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.at.position.checked_add_signed(by),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        self.at.position = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at.position)
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
