//! Zip archives, by their directory; where that is missing, by the headers before the members.
//!
//! # References
//! PKWARE, `APPNOTE.TXT`, .ZIP File Format Specification 6.3.10, sections 4.3 and 4.4.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bzip2::bufread::MultiBzDecoder;
use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use lzma_rust2::XzReader;
use memchr::memmem;
use xxhash_rust::xxh3::Xxh3;
use zip::write::FullFileOptions;
use zip::{CompressionMethod, ZipArchive};

use super::{Header as AnyHeader, Member, Stream};
use crate::source::{self, BUFFER, Compression, Origin, Positioned, RATIO_FROM, Seeker};
use crate::{Limits, Reason};

const NAME: &str = "zip";
/// The longest name and extra field that a header found without a directory may have.
const FOUND_BYTES: usize = 64 << 10;

/// What is known of a member.
pub(crate) struct Header {
    /// The name as it is stored.
    pub(crate) name: Vec<u8>,
    /// What the member is written with again.
    pub(crate) options: FullFileOptions<'static, 'static>,
    /// The place in the directory, if it has one.
    pub(crate) index: Option<usize>,
    method: Option<CompressionMethod>,
    is_encrypted: bool,
    start: u64,
    compressed: u64,
    /// The length and the checksum of the content, where they are known.
    expected: Option<(u64, u32)>,
}

impl Header {
    pub(crate) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

pub(crate) struct Zip {
    file: Arc<File>,
    len: u64,
    limits: Limits,
    directory: Directory,
    /// The next member.
    next: usize,
    /// Bytes that members gave so far, all together.
    given: Arc<AtomicU64>,
    position: u64,
    digest: Xxh3,
    notes: Vec<Reason>,
}

enum Directory {
    Told(Box<ZipArchive<BufReader<Seeker>>>),
    Found(Vec<Found>),
}

/// A member found by its own header.
struct Found {
    name: Vec<u8>,
    method: u16,
    is_encrypted: bool,
    start: u64,
    compressed: u64,
    expected: Option<(u64, u32)>,
}

impl Zip {
    pub(super) fn open(origin: &Origin, limits: &Limits) -> Result<Self, Reason> {
        let (file, len) = origin.file().map_err(|e| Reason::Open(e.to_string()))?;
        let mut start = Vec::new();
        let read = Positioned::new(&file, 0).take(6).read_to_end(&mut start);
        read.map_err(|e| Reason::Read(e.to_string()))?;
        if Compression::of(&start) != Compression::None {
            return Err(refused("it is compressed as a whole; decompress it first"));
        }
        let mut notes = Vec::new();
        let reader = || BufReader::with_capacity(BUFFER, Seeker::new(&file, len));
        let directory = match ZipArchive::new(reader()) {
            Ok(mut archive) => {
                if archive.has_duplicate_names() {
                    let error = "members of the same name: of each name the last is read";
                    notes.push(Reason::Archive { error });
                }
                if archive.has_overlapping_files().unwrap_or(false) {
                    return Err(refused("its members overlap"));
                }
                Directory::Told(Box::new(archive))
            }
            Err(error) => {
                let found = search(&file).map_err(|e| Reason::Read(e.to_string()))?;
                if found.is_empty() {
                    return Err(refused(&message(&error)));
                }
                notes.push(Reason::Damaged {
                    compression: NAME,
                    error: "its directory is missing, what is left of its members is read"
                        .to_owned(),
                });
                Directory::Found(found)
            }
        };
        notes.reverse();
        Ok(Self {
            file,
            len,
            limits: *limits,
            directory,
            next: 0,
            given: Arc::default(),
            position: 0,
            digest: Xxh3::new(),
            notes,
        })
    }

    pub(super) fn next(&mut self) -> Option<Result<Member, Reason>> {
        if let Some(note) = self.notes.pop() {
            return Some(Err(note));
        }
        let index = self.next;
        self.next += 1;
        let member = match &mut self.directory {
            Directory::Told(archive) if index < archive.len() => told(archive, index),
            Directory::Found(found) => Ok(found.get(index)?.member()),
            Directory::Told(_) => return None,
        };
        if let Ok(Member { name, header: AnyHeader::Zip(header), .. }) = &member {
            self.position = self.position.max(header.start);
            let (size, crc) = header.expected.unwrap_or_default();
            self.digest.update(name.as_bytes());
            for number in [header.start, header.compressed, size, u64::from(crc)] {
                self.digest.update(&number.to_le_bytes());
            }
        }
        Some(member)
    }

    pub(super) fn content(&self, header: &Header) -> Result<Stream, Reason> {
        if header.is_encrypted {
            let error = "encrypted: not read, and only in the input; decrypt it first";
            return Err(Reason::Archive { error });
        }
        let raw = Positioned::new(&self.file, header.start).take(header.compressed);
        let raw = BufReader::with_capacity(BUFFER, raw);
        let window = self.limits.zstd_window_log;
        let plain: Stream = match header.method {
            Some(CompressionMethod::Stored) => Box::new(raw),
            Some(CompressionMethod::Deflated) => Box::new(DeflateDecoder::new(raw)),
            Some(CompressionMethod::Bzip2) => Box::new(MultiBzDecoder::new(raw)),
            Some(CompressionMethod::Zstd) => {
                let mut decoder = zstd::Decoder::with_buffer(raw).map_err(|e| damaged(&e))?;
                decoder.window_log_max(window).map_err(|e| damaged(&e))?;
                Box::new(decoder)
            }
            Some(CompressionMethod::Xz) => {
                let kib = 1 << (window.clamp(10, 31) - 10);
                Box::new(XzReader::new_mem_limit(raw, true, kib + (1 << 10)))
            }
            _ => {
                let error = "compressed by a method that is not read; pack it again with deflate";
                return Err(Reason::Archive { error });
            }
        };
        Ok(Box::new(Checked {
            plain,
            crc: Crc::new(),
            len: 0,
            expected: header.expected,
            allowed: RATIO_FROM.max(header.compressed.saturating_mul(self.limits.ratio)),
            limits: self.limits,
            given: Arc::clone(&self.given),
        }))
    }

    /// The archive as the library has it, when it has a directory.
    pub(crate) fn told(&mut self) -> Option<&mut ZipArchive<BufReader<Seeker>>> {
        match &mut self.directory {
            Directory::Told(archive) => Some(archive),
            Directory::Found(_) => None,
        }
    }

    pub(super) fn consumed(&self) -> u64 {
        let members = match &self.directory {
            Directory::Told(archive) => archive.len(),
            Directory::Found(found) => found.len(),
        };
        if self.next > members { self.len } else { self.position.min(self.len) }
    }

    pub(super) fn digest(&self) -> (u64, u64) {
        (self.len, self.digest.digest())
    }
}

/// A member of the directory.
fn told(archive: &mut ZipArchive<BufReader<Seeker>>, index: usize) -> Result<Member, Reason> {
    let lost = |e: zip::result::ZipError| Reason::Member { compression: NAME, error: message(&e) };
    let file = archive.by_index_raw(index).map_err(lost)?;
    let start = file.data_start().ok_or_else(|| Reason::Member {
        compression: NAME,
        error: "its content cannot be found".to_owned(),
    })?;
    let mut options = file.options().into_full_options();
    if !file.comment().is_empty() {
        options = options.with_file_comment(file.comment());
    }
    for (id, data) in extra_fields(&file.extra_data().unwrap_or_default()) {
        // What says how long a member is, or how it is encrypted, is written anew.
        if !matches!(id, 0x0001 | 0x9901) {
            // One field too many is no reason to lose the member.
            drop(options.add_extra_field(id, data, false));
        }
    }
    let name = text(file.name_raw());
    let is_file = file.is_file() && !name.ends_with('/');
    let header = Header {
        name: file.name_raw().to_vec(),
        options,
        index: Some(index),
        method: Some(file.compression()),
        is_encrypted: file.encrypted(),
        start,
        compressed: file.compressed_size(),
        expected: Some((file.size(), file.crc32())),
    };
    Ok(Member { name, is_file, unread: None, header: AnyHeader::Zip(header) })
}

impl Found {
    fn member(&self) -> Member {
        let method = match self.method {
            0 => Some(CompressionMethod::Stored),
            8 => Some(CompressionMethod::Deflated),
            12 => Some(CompressionMethod::Bzip2),
            93 => Some(CompressionMethod::Zstd),
            95 => Some(CompressionMethod::Xz),
            _ => None,
        };
        let options = FullFileOptions::default();
        let options = match method {
            Some(method) => options.compression_method(method),
            None => options,
        };
        let name = text(&self.name);
        let header = Header {
            name: self.name.clone(),
            options,
            index: None,
            method,
            is_encrypted: self.is_encrypted,
            start: self.start,
            compressed: self.compressed,
            expected: self.expected,
        };
        let is_file = !name.ends_with('/');
        Member { name, is_file, unread: None, header: AnyHeader::Zip(header) }
    }
}

/// The fields of an extra block: their numbers and content. APPNOTE 4.5.1.
fn extra_fields(block: &[u8]) -> Vec<(u16, &[u8])> {
    let mut fields = Vec::new();
    let mut rest = block;
    while let [a, b, c, d, after @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*c, *d]));
        let Some((data, next)) = after.split_at_checked(len) else { break };
        fields.push((u16::from_le_bytes([*a, *b]), data));
        rest = next;
    }
    fields
}

/// A name as text. Those that are no UTF-8 are GBK when all of their other bytes are pairs of the Chinese characters of GB
/// 2312, as programs on Chinese systems wrote them; else their lossy reading tells enough.
fn text(name: &[u8]) -> String {
    if let Ok(name) = std::str::from_utf8(name) {
        return name.to_owned();
    }
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        rest = match (byte, after) {
            (0..=0x7f, _) => after,
            (0xb0..=0xf7, [0xa1..=0xfe, after @ ..]) => after,
            _ => return String::from_utf8_lossy(name).into_owned(),
        };
    }
    encoding_rs::GBK.decode_without_bom_handling(name).0.into_owned()
}

/// Finds members by their headers. APPNOTE 4.3.7.
fn search(file: &Arc<File>) -> io::Result<Vec<Found>> {
    const LOOK: usize = 256 << 10;
    let mut found: Vec<Found> = Vec::new();
    let mut at = 0_u64;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        Positioned::new(file, at).take((LOOK + FOUND_BYTES * 2) as u64).read_to_end(&mut bytes)?;
        let Some(offset) = memmem::find(&bytes, b"PK\x03\x04").filter(|o| *o < LOOK) else {
            if bytes.len() < LOOK {
                break;
            }
            at += LOOK as u64 - 3;
            continue;
        };
        let here = at + offset as u64;
        match local_header(&bytes[offset..], here) {
            Some(member) => {
                // A length that is not told is that up to the next header, which deflated data need not be told.
                at = member.start + if member.expected.is_some() { member.compressed } else { 0 };
                found.push(member);
            }
            None => at = here + 4,
        }
    }
    Ok(found)
}

fn local_header(bytes: &[u8], at: u64) -> Option<Found> {
    let head = bytes.first_chunk::<30>()?;
    let short = |i: usize| u16::from_le_bytes([head[i], head[i + 1]]);
    let long = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let (flags, method) = (short(6), short(8));
    let (crc, compressed, size) = (long(14), long(18), long(22));
    let (name, extra) = (usize::from(short(26)), usize::from(short(28)));
    let name_bytes = bytes.get(30..30 + name).filter(|n| !n.is_empty() && !n.contains(&0))?;
    let is_told = flags & 8 == 0 && compressed != u32::MAX && size != u32::MAX;
    Some(Found {
        name: name_bytes.to_vec(),
        method,
        is_encrypted: flags & 1 != 0,
        start: at + (30 + name + extra) as u64,
        compressed: if is_told { u64::from(compressed) } else { u64::MAX >> 1 },
        expected: is_told.then_some((u64::from(size), crc)),
    })
}

/// Content that is held to what the directory says, and to the limits.
struct Checked {
    plain: Stream,
    crc: Crc,
    len: u64,
    expected: Option<(u64, u32)>,
    allowed: u64,
    limits: Limits,
    given: Arc<AtomicU64>,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let n = self.plain.read(buffer).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ if e.raw_os_error().is_some() => e,
            _ => source::carry(damaged(&e)),
        })?;
        self.crc.update(&buffer[..n]);
        self.len += n as u64;
        let all = self.given.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
        if all > self.limits.file_bytes {
            return Err(source::carry(Reason::TooLarge { limit: self.limits.file_bytes }));
        }
        if self.len > self.allowed {
            return Err(source::carry(Reason::Ratio { limit: self.limits.ratio }));
        }
        match self.expected {
            Some((size, _)) if self.len > size => Err(lies("longer than the directory says")),
            Some((size, _)) if n == 0 && self.len < size => Err(lies("cut short")),
            Some((_, crc)) if n == 0 && self.crc.sum() != crc => Err(lies("its checksum differs")),
            _ => Ok(n),
        }
    }
}

fn lies(error: &str) -> io::Error {
    source::carry(Reason::Damaged { compression: NAME, error: error.to_owned() })
}

fn damaged(error: &io::Error) -> Reason {
    source::damaged(NAME, error)
}

fn refused(error: &str) -> Reason {
    Reason::NotReadable { format: NAME, error: error.to_owned() }
}

fn message(error: &zip::result::ZipError) -> String {
    match error {
        zip::result::ZipError::InvalidArchive(message) => message.to_string(),
        other => other.to_string(),
    }
}
