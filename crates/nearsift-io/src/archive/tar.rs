//! Tar archives, plain or compressed as a whole, read once from front to back.
//!
//! # References
//! POSIX.1-2017, `pax`, "ustar Interchange Format" and "pax Extended Header"; the GNU tar manual, "Basic Tar Format".

use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tar::{EntryType, GnuExtSparseHeader, PaxExtensions};

use super::sparse::Sparse;
use super::{Header as AnyHeader, Member, Stream};
use crate::source::{self, Compression, Content, Origin, Source};
use crate::{Limits, Reason};

const BLOCK: usize = 512;
const NAME: &str = "tar";
/// The longest extension of a header. Real ones have some hundred bytes.
const EXTENSION_BYTES: u64 = 1 << 20;

/// Whether a file begins like an archive: with a header whose checksum is right.
pub(crate) fn is_tar(start: &[u8]) -> bool {
    start.first_chunk::<BLOCK>().is_some_and(|block| block[0] != 0 && is_header(block))
}

/// The blocks before the content of a member.
pub(crate) struct Header {
    /// What stands before the header and goes with it: long names, pax records.
    pub(crate) extensions: Vec<Extension>,
    pub(crate) header: tar::Header,
    /// The rest of the map of a sparse member.
    pub(crate) more: Vec<u8>,
    /// The bytes of the content as it is stored.
    pub(crate) size: u64,
    /// Where they belong, when the holes of a file are not stored.
    pub(crate) sparse: Option<Sparse>,
}

/// A header with content that says something about the next member.
pub(crate) struct Extension {
    pub(crate) header: tar::Header,
    pub(crate) content: Vec<u8>,
}

pub(crate) struct Tar {
    tape: Arc<Mutex<Tape>>,
    limits: Limits,
    ended: bool,
}

impl Tar {
    pub(super) fn open(origin: &Origin, limits: &Limits) -> Result<Self, Reason> {
        let content = Content::Origin(origin.clone());
        let source = Source::open(content, *limits, source::Members::Joined)?;
        let tape = Tape {
            source,
            buffer: Vec::new(),
            at: 0,
            left: 0,
            padding: 0,
            between: false,
            failed: false,
        };
        Ok(Self { tape: Arc::new(Mutex::new(tape)), limits: *limits, ended: false })
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn next(&mut self) -> Option<Result<Member, Reason>> {
        if self.ended {
            return None;
        }
        let found = self.tape().member().transpose();
        // After damage to a header the next one is looked for; after that of the bytes there is no way on.
        self.ended = found.is_none() || self.tape().failed;
        found
    }

    /// The content of the member that came last.
    pub(super) fn content(&self, header: &Header) -> Stream {
        match &header.sparse {
            Some(sparse) => Box::new(sparse.content(self.current(), header.size, &self.limits)),
            None => self.stored(),
        }
    }

    /// The same as it is stored.
    pub(super) fn stored(&self) -> Stream {
        Box::new(self.current())
    }

    fn current(&self) -> Current {
        Current(Arc::clone(&self.tape))
    }

    /// How the archive is compressed as a whole.
    pub(crate) fn compression(&self) -> Compression {
        self.tape().source.compression()
    }

    pub(super) fn consumed(&self) -> u64 {
        self.tape().source.consumed()
    }

    pub(super) fn digest(&self) -> (u64, u64) {
        let tape = self.tape();
        (tape.source.given(), tape.source.digest())
    }
}

/// The content of the member that came last.
struct Current(Arc<Mutex<Tape>>);

impl Read for Current {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tape.content(buffer).map_err(source::carry)
    }
}

/// The archive as it goes by.
struct Tape {
    source: Source,
    /// What has been read, always in slices of the same size, so that every pass is given the same before damage.
    buffer: Vec<u8>,
    at: usize,
    /// What is left of the content, and what stands between it and the next header.
    left: u64,
    padding: u64,
    /// After the mark of an end, where another archive may follow.
    between: bool,
    failed: bool,
}

impl Tape {
    /// Makes sure that something is in the buffer, unless the end has come.
    fn fill(&mut self) -> Result<bool, Reason> {
        if self.at < self.buffer.len() {
            return Ok(true);
        }
        if self.failed {
            return Ok(false);
        }
        self.at = 0;
        self.buffer.resize(self.source.chunk(), 0);
        let read = self.source.read(&mut self.buffer);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        self.failed = read.is_err();
        Ok(read? > 0)
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        if out.is_empty() || !self.fill()? {
            return Ok(0);
        }
        let n = out.len().min(self.buffer.len() - self.at);
        out[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }

    fn content(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let n = self.read(&mut out[..most])?;
        self.left -= n as u64;
        if n == 0 && most > 0 {
            self.failed = true;
            self.left = 0;
            return Err(damaged("cut short"));
        }
        Ok(n)
    }

    /// Goes to the next header.
    fn skip(&mut self) -> Result<(), Reason> {
        while self.left > 0 {
            let mut nothing = [0; 4096];
            self.content(&mut nothing)?;
        }
        while self.padding > 0 && self.fill()? {
            let n = self.padding.min((self.buffer.len() - self.at) as u64);
            self.at += n as usize;
            self.padding -= n;
        }
        self.padding = 0;
        Ok(())
    }

    /// The next block; `None` at the end.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, Reason> {
        let mut block = [0; BLOCK];
        let mut len = 0;
        while len < BLOCK {
            match self.read(&mut block[len..])? {
                0 if len == 0 || self.between => return Ok(None),
                0 => {
                    self.failed = true;
                    return Err(damaged("cut short in a header"));
                }
                n => len += n,
            }
        }
        Ok(Some(block))
    }

    fn member(&mut self) -> Result<Option<Member>, Reason> {
        self.skip()?;
        let mut extensions = Vec::new();
        let mut zeros = 0;
        loop {
            let Some(block) = self.block()? else { return Ok(None) };
            if block.iter().all(|b| *b == 0) {
                zeros += 1;
                // Two mark the end. One alone is skipped, as other programs do.
                self.between |= zeros == 2;
                continue;
            }
            if !is_header(&block) {
                // What stands behind the end is no part of the archive, but another one may follow.
                if self.between {
                    continue;
                }
                return Err(self.search());
            }
            self.between = false;
            let header = tar::Header::from_byte_slice(&block).clone();
            let kind = header.entry_type();
            if !has_content(kind) {
                return self.found(extensions, header, kind).map(Some);
            }
            let size = header.entry_size().map_err(|_| damaged("a size that is no number"))?;
            if kind.is_gnu_longname()
                || kind.is_gnu_longlink()
                || kind.is_pax_local_extensions()
                || kind.is_pax_global_extensions()
                || kind.as_byte() == SUN_RECORDS
            {
                if size > EXTENSION_BYTES {
                    self.expect(size);
                    return Err(damaged("a header that is too long"));
                }
                self.expect(size);
                let mut content = vec![0; size as usize];
                let mut len = 0;
                while len < content.len() {
                    len += self.content(&mut content[len..])?;
                }
                self.skip()?;
                extensions.push(Extension { header, content });
                continue;
            }
            return self.found(extensions, header, kind).map(Some);
        }
    }

    fn found(
        &mut self,
        extensions: Vec<Extension>,
        header: tar::Header,
        kind: EntryType,
    ) -> Result<Member, Reason> {
        let mut more = Vec::new();
        let mut is_extended = header.as_gnu().is_some_and(tar::GnuHeader::is_extended);
        while kind.is_gnu_sparse() && is_extended {
            let Some(block) = self.block()? else { return Err(damaged("cut short")) };
            let mut map = GnuExtSparseHeader::new();
            map.as_mut_bytes().copy_from_slice(&block);
            is_extended = map.is_extended();
            more.extend_from_slice(&block);
        }
        let mut size = header.entry_size().unwrap_or(0);
        let mut name = None;
        let mut is_sparse = kind.is_gnu_sparse();
        for extension in &extensions {
            if extension.header.entry_type().is_gnu_longname() {
                let end = extension.content.iter().position(|b| *b == 0);
                let end = end.unwrap_or(extension.content.len());
                name = Some(extension.content[..end].to_vec());
            } else if extension.is_records() {
                for record in PaxExtensions::new(&extension.content).flatten() {
                    match record.key_bytes() {
                        b"path" => name = Some(record.value_bytes().to_vec()),
                        b"size" => {
                            let value = record.value().ok().and_then(|v| v.parse().ok());
                            size = value.ok_or_else(|| damaged("a size that is no number"))?;
                        }
                        key => is_sparse |= key.starts_with(b"GNU.sparse."),
                    }
                }
            }
        }
        if !has_content(kind) {
            size = 0;
        }
        let sparse = if kind.is_gnu_sparse() {
            Sparse::of_header(&header, &more)
        } else if is_sparse {
            let records = extensions.iter().filter(|e| e.is_records());
            Sparse::of_records(records.map(|e| &e.content[..]))
        } else {
            None
        };
        let name = sparse.as_ref().and_then(|s| s.name.clone()).or(name);
        let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        let name = String::from_utf8_lossy(&name).into_owned();
        let unread = match kind.as_byte() {
            b'M' => Some(
                "the rest of a file that begins in another volume: not read, kept as in the input; join the volumes first",
            ),
            _ if is_sparse && sparse.is_none() => Some(
                "a sparse file whose map cannot be read: not read, kept as in the input; pack it again without holes",
            ),
            _ => None,
        };
        let is_file = has_content(kind) && !is_about_others(kind) && !name.ends_with('/');
        self.expect(size);
        let header = AnyHeader::Tar(Box::new(Header { extensions, header, more, size, sparse }));
        Ok(Member { name, is_file, unread, header })
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// Goes on to the next block that is a header, and says what was wrong with the one before.
    fn search(&mut self) -> Reason {
        let error = "a damaged header".to_owned();
        loop {
            match self.block() {
                Ok(Some(block)) if is_header(&block) && block[257..262] == *b"ustar" => {
                    // The block is read again.
                    let rest = self.buffer.split_off(self.at);
                    self.buffer = [&block[..], &rest].concat();
                    self.at = 0;
                    return Reason::Member { compression: NAME, error };
                }
                Ok(Some(_)) => {}
                Ok(None) => return Reason::Damaged { compression: NAME, error },
                Err(_) => return Reason::Damaged { compression: NAME, error },
            }
        }
    }
}

/// The type of the pax records of Sun's tar.
const SUN_RECORDS: u8 = b'X';

impl Extension {
    /// Whether its content is records about the next member alone.
    pub(crate) fn is_records(&self) -> bool {
        let kind = self.header.entry_type();
        kind.is_pax_local_extensions() || kind.as_byte() == SUN_RECORDS
    }
}

/// Whether bytes follow the header of a member. A volume's label has none, nor a size.
fn has_content(kind: EntryType) -> bool {
    !matches!(kind.as_byte(), b'1'..=b'6' | b'V')
}

/// Whether the content says something about other members: what a folder held, names that were too long, access
/// lists, attributes, inodes. All other types that are not known are files, as POSIX has it.
fn is_about_others(kind: EntryType) -> bool {
    matches!(kind.as_byte(), b'D' | b'N' | b'A' | b'E' | b'I')
}

/// Whether a block is a header: its checksum is that of its bytes, those of the checksum itself taken as blanks.
fn is_header(block: &[u8; BLOCK]) -> bool {
    let told = tar::Header::from_byte_slice(block).cksum();
    let sum: u32 = block[..148].iter().chain(&block[156..]).map(|b| u32::from(*b)).sum();
    told.is_ok_and(|told| told == sum + 8 * u32::from(b' '))
}

fn damaged(error: &str) -> Reason {
    Reason::Damaged { compression: NAME, error: error.to_owned() }
}
