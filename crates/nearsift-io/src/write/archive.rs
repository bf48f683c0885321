//! The second pass over an archive: an archive of the same kind, with the same members in the same order.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tar::EntryType;
use zip::ZipWriter;
use zip::result::ZipError;

use super::convert::{Decided, RowSpool};
use super::target::{Aside, Encoder, Raw, Target};
use super::{Decide, KeptWriter, Task, Written};
use crate::archive::{Archive, Header, Kind, Member, TarHeader, ZipHeader, prepare};
use crate::inputs::{InputFile, Seen, State};
use crate::source::{Compression, Content};
use crate::split::Passed;
use crate::{Error, Format};

const BLOCK: u64 = 512;
/// The map and the length of a sparse member in a header of GNU tar.
const SPARSE_FIELDS: std::ops::Range<usize> = 386..495;
/// Longer content needs the longer fields of a zip archive.
const LARGE_BYTES: u64 = u32::MAX as u64;

impl KeptWriter {
    /// Writes the members of an archive one after another, each as the file that it is.
    pub(super) fn write_archive(
        &self,
        file: &InputFile,
        number: u32,
        seen: &Seen,
        rows: Option<&mut RowSpool>,
        decide: &mut dyn Decide,
    ) -> Result<Written, Error> {
        let options = self.inputs.options();
        let gone = |reason| Error::Gone { file: file.name(), reason };
        let file_first = self.inputs.first_record(number as usize);
        let file_first = file_first.ok_or_else(|| Error::NotRead { file: file.name() })?;
        let mut archive =
            Archive::open(file.origin(), file.format(), &options.limits).map_err(gone)?;
        let [kept, unreadable] = self.targets(file, number);
        let mut unreadable = Packer::new(unreadable, &mut archive);
        let (place, mut kept) = match rows {
            Some(rows) => (kept, Kept::Rows(rows)),
            None => {
                let mut packer = Packer::new(kept, &mut archive);
                packer.open()?;
                (self.target(&self.kept, file, number), Kept::Packed(packer))
            }
        };
        let (to_kept, to_unreadable) = (Aside::default(), Aside::default());
        let mut written = Written::default();
        let mut members = Vec::with_capacity(seen.passed.members.len());
        let mut records = 0;
        while let Some(member) = archive.next() {
            let Ok(member) = member else { continue };
            let format = match member.kind(options) {
                Kind::Documents(format) => format,
                Kind::Archive | Kind::Unread(_) | Kind::Other => {
                    if let Kept::Packed(packer) = &mut kept {
                        packer.copy(&mut archive, &member)?;
                    }
                    continue;
                }
            };
            let Some((known, before)) = seen.passed.members.get(members.len()) else {
                let (expected, got) = (members.len() as u64, members.len() as u64 + 1);
                return Err(seen.changed(&file.name(), "members", expected, got));
            };
            let name = Archive::full_name(&file.name(), &member).to_string();
            if let Kept::Packed(packer) = &mut kept
                && self.lacks_text(&name, before)
            {
                packer.copy(&mut archive, &member)?;
                records += before.records;
                members.push((Arc::clone(known), before.clone()));
                continue;
            }
            if before.state != State::Read {
                unreadable.copy(&mut archive, &member)?;
                written.unreadable += 1;
                members.push((Arc::clone(known), before.clone()));
                continue;
            }
            let gone = |reason| Error::Gone { file: name.clone(), reason };
            let stream = archive.content(&member).map_err(gone)?;
            let (content, _) = prepare(stream, format, options).map_err(gone)?;
            let first = file_first + records;
            let targets = || [place.aside(&to_kept), place.aside(&to_unreadable)];
            // What is a table was copied aside, and can be read again.
            let same = match &content {
                Content::Origin(origin) => Some(Content::Origin(origin.clone())),
                Content::Stream(_) => None,
            };
            let compression = match kept {
                Kept::Packed(_) => None,
                Kept::Rows(_) => Some(Compression::None),
            };
            let from = name.clone();
            let task = |content| {
                let name = from.clone();
                Task { name, number, format, content, first, seen: before, compression }
            };
            let as_rows = match kept {
                Kept::Packed(_) => &[][..],
                Kept::Rows(_) => &self.added,
            };
            let mut decided = Decided::new(decide, format, as_rows);
            let mut done = self.records(task(content), targets(), &mut decided)?;
            match &mut kept {
                Kept::Packed(packer) => packer.add_made(&member, &to_kept)?,
                Kept::Rows(rows) => {
                    let made = to_kept.take().map_err(|e| place.error(e))?;
                    let odd = match made {
                        Some((made, _)) => rows.add(made, format, &from, decided.take_cells()),
                        None => Ok(Vec::new()),
                    };
                    let odd = odd.map_err(|e| place.error(e))?;
                    // The unreadable rows are made once more, with these.
                    if let (Some(mut again), Some(same)) =
                        (decided.without(&odd, &from, self), same)
                    {
                        done = self.records(task(same), targets(), &mut again)?;
                        drop(to_kept.take());
                    }
                }
            }
            written += done;
            unreadable.add_made(&member, &to_unreadable)?;
            records += before.records;
            members.push((Arc::clone(known), before.clone()));
        }
        let (bytes, digest) = archive.digest();
        let passed = Passed { bytes, digest, members, ..Passed::default() };
        seen.compare(&Seen { records, passed, ..*seen }, &file.name())?;
        if let Kept::Packed(packer) = &mut kept {
            packer.finish()?;
        }
        unreadable.finish()?;
        unreadable.target.publish()?;
        if let Kept::Packed(packer) = &mut kept {
            packer.target.publish()?;
        }
        Ok(written)
    }
}

/// Where the kept records of the members go.
enum Kept<'a> {
    Packed(Packer),
    Rows(&'a mut RowSpool),
}

/// An archive that is written. It is made when something is to be put into it.
struct Packer {
    target: Target,
    format: Format,
    compression: Compression,
    comment: Box<[u8]>,
    output: Option<Output>,
}

enum Output {
    Tar(Box<Encoder>),
    Zip(Box<Zip>),
}

struct Zip {
    writer: ZipWriter<Once>,
    /// The library refuses a second member of the same name.
    names: HashSet<Vec<u8>>,
    is_over: Arc<AtomicBool>,
}

impl Packer {
    /// A writer of the same kind of archive.
    fn new(target: Target, archive: &mut Archive) -> Self {
        let (format, compression, comment) = match archive {
            Archive::Tar(tar) => (Format::Tar, tar.compression(), Box::default()),
            Archive::Zip(zip) => {
                let comment = zip.told().map_or_else(Box::default, |z| z.comment().into());
                (Format::Zip, Compression::None, comment)
            }
        };
        Self { target, format, compression, comment, output: None }
    }

    fn open(&mut self) -> Result<&mut Output, Error> {
        if self.output.is_none() {
            let made = self.target.create().and_then(|raw| self.begin(raw));
            self.output = Some(made.map_err(|e| self.target.error(e))?);
        }
        self.output.as_mut().ok_or(Error::Thread("an archive that is not there".to_owned()))
    }

    fn begin(&self, raw: Raw) -> io::Result<Output> {
        if self.format == Format::Tar {
            let packing = self.target.packing(self.compression);
            return Ok(Output::Tar(Box::new(Encoder::new(packing, raw)?)));
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let mut writer = ZipWriter::new(Once { raw, end: 0, is_over: Arc::clone(&is_over) });
        writer.set_raw_comment(self.comment.clone()).map_err(zip_error)?;
        Ok(Output::Zip(Box::new(Zip { writer, names: HashSet::new(), is_over })))
    }

    /// Adds what was made of a member, if anything was.
    fn add_made(&mut self, member: &Member, made: &Aside) -> Result<(), Error> {
        match made.take().map_err(|e| self.target.error(e))? {
            Some((mut content, len)) => self.add(member, &mut content, len, Form::Plain),
            None => Ok(()),
        }
    }

    /// Adds a member with other content.
    fn add(
        &mut self,
        member: &Member,
        content: &mut dyn Read,
        len: u64,
        form: Form,
    ) -> Result<(), Error> {
        self.open()?;
        let added = match (&mut self.output, &member.header) {
            (Some(Output::Tar(output)), Header::Tar(header)) => {
                add_to_tar(output, member, header, content, len, form)
            }
            (Some(Output::Zip(output)), Header::Zip(header)) => output.add(header, content, len),
            _ => Ok(()),
        };
        added.map_err(|e| self.target.error(e))
    }

    /// Adds a member as it is, as far as it can be read.
    fn copy(&mut self, archive: &mut Archive, member: &Member) -> Result<(), Error> {
        self.open()?;
        if let (Archive::Zip(zip), Header::Zip(header), Some(Output::Zip(output))) =
            (&mut *archive, &member.header, &mut self.output)
            && let (Some(zip), Some(index)) = (zip.told(), header.index)
        {
            // What is encrypted cannot be carried over, and has been said to be in the input alone.
            if header.is_encrypted() {
                return Ok(());
            }
            return output.copy(zip, index, header).map_err(|e| self.target.error(e));
        }
        let Ok(mut stream) = archive.stored(member) else { return Ok(()) };
        let aside = Aside::default();
        let mut copy = aside.create(self.target.folder());
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Damage has been told by the first pass.
                Ok(0) | Err(_) => break,
                Ok(n) => copy.write_all(&buffer[..n]).map_err(|e| self.target.error(e))?,
            }
        }
        match aside.take().map_err(|e| self.target.error(e))? {
            Some((mut content, len)) => self.add(member, &mut content, len, Form::Stored),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        let done = match self.output.take() {
            None => Ok(()),
            Some(Output::Tar(mut encoder)) => {
                // Two blocks of zeros mark the end.
                encoder.write_all(&[0; 2 * BLOCK as usize]).and_then(|()| encoder.finish())
            }
            Some(Output::Zip(zip)) => zip.finish(),
        };
        done.map_err(|e| self.target.error(e))
    }
}

/// How content stands in an archive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As in the input's, which may leave out the holes of a file.
    Stored,
    /// As it is.
    Plain,
}

fn add_to_tar(
    output: &mut Encoder,
    member: &Member,
    header: &TarHeader,
    content: &mut dyn Read,
    len: u64,
    form: Form,
) -> io::Result<()> {
    // What was a sparse member becomes a plain one, with the name that its records give.
    let sparse = header.sparse.as_ref().filter(|_| form == Form::Plain);
    for extension in &header.extensions {
        let is_pax = extension.is_records();
        let mut content = match is_pax {
            true => without_size(&extension.content, sparse.is_some()),
            false => extension.content.clone(),
        };
        if let Some(name) = sparse.filter(|_| is_pax).and_then(|sparse| sparse.name.as_ref()) {
            content.extend_from_slice(&path_record(name));
        }
        if is_pax && content.is_empty() {
            continue;
        }
        let mut head = extension.header.clone();
        resize(&mut head, content.len() as u64);
        output.write_all(head.as_bytes())?;
        output.write_all(&content)?;
        pad(output, content.len() as u64)?;
    }
    let mut head = header.header.clone();
    // Of links and folders the size says something else; a sparse member has the length that its map says.
    if member.is_file || header.size != len {
        resize(&mut head, len);
    }
    if sparse.is_some() && head.entry_type() == EntryType::GNUSparse {
        head.set_entry_type(EntryType::Regular);
        head.as_mut_bytes()[SPARSE_FIELDS].fill(0);
        head.set_cksum();
    }
    output.write_all(head.as_bytes())?;
    if sparse.is_none() {
        output.write_all(&header.more)?;
    }
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            n => output.write_all(&buffer[..n])?,
        }
    }
    pad(output, len)
}

fn resize(header: &mut tar::Header, len: u64) {
    if header.size().ok() != Some(len) {
        header.set_size(len);
        header.set_cksum();
    }
}

fn pad(output: &mut Encoder, len: u64) -> io::Result<()> {
    let padding = len.next_multiple_of(BLOCK) - len;
    output.write_all(&[0; BLOCK as usize][..padding as usize])
}

/// The records of a pax header without that of the size, which the header itself can hold whatever it is, and where a sparse
/// member becomes a plain one without what says that it is one.
fn without_size(records: &[u8], becomes_plain: bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(records.len());
    let mut rest = records;
    // A record is its length, a blank, the key, `=`, the value and a line feed.
    while let Some(blank) = rest.iter().position(|b| *b == b' ') {
        let len = std::str::from_utf8(&rest[..blank]).ok().and_then(|n| n.parse().ok());
        let Some((record, after)) = len.and_then(|n| rest.split_at_checked(n)) else { break };
        if record.is_empty() {
            break;
        }
        let key = record.get(blank + 1..).unwrap_or_default();
        let is_sparse = key.starts_with(b"GNU.sparse.");
        if !(key.starts_with(b"size=") || becomes_plain && is_sparse) {
            kept.extend_from_slice(record);
        }
        rest = after;
    }
    kept
}

/// A record of a name, which the last one of a header decides. The length counts its own digits.
fn path_record(name: &[u8]) -> Vec<u8> {
    let rest = [b" path=", name, b"\n"].concat();
    let mut len = rest.len();
    while len != rest.len() + len.to_string().len() {
        len = rest.len() + len.to_string().len();
    }
    [len.to_string().as_bytes(), &rest].concat()
}

impl Zip {
    fn add(&mut self, header: &ZipHeader, content: &mut dyn Read, len: u64) -> io::Result<()> {
        let name = self.free_name(&header.name);
        let options = header.options.clone().name(&name).large_file(len >= LARGE_BYTES);
        self.writer.start_file_with_options(options).map_err(zip_error)?;
        io::copy(content, &mut self.writer).map(drop)
    }

    fn copy<R: Read + Seek>(
        &mut self,
        archive: &mut zip::ZipArchive<R>,
        index: usize,
        header: &ZipHeader,
    ) -> io::Result<()> {
        self.names.insert(header.name.clone());
        let file = archive.by_index_raw(index).map_err(zip_error)?;
        self.writer.raw_copy_file(file).map_err(zip_error)
    }

    /// The name, or with a number behind it when it is taken.
    fn free_name(&mut self, name: &[u8]) -> Vec<u8> {
        let mut free = name.to_vec();
        for number in 2.. {
            if self.names.insert(free.clone()) {
                break;
            }
            free = [name, format!("~{number}").as_bytes()].concat();
        }
        free
    }

    fn finish(self) -> io::Result<()> {
        self.writer.finish().map_err(zip_error)?.flush()
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        if let Some(Output::Zip(zip)) = &self.output {
            zip.is_over.store(true, Ordering::Relaxed);
        }
    }
}

/// A file that swallows everything after its first error, or once its archive is abandoned: the library finishes an archive
/// when it is dropped, and tells on standard error when that fails.
struct Once {
    raw: Raw,
    /// The furthest place that the library knows of.
    end: u64,
    is_over: Arc<AtomicBool>,
}

impl Once {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn watch<T>(&self, done: io::Result<T>) -> io::Result<T> {
        let is_over = done.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        self.is_over.fetch_or(is_over, Ordering::Relaxed);
        done
    }
}

impl Write for Once {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_over() {
            return Ok(bytes.len());
        }
        let done = self.raw.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let done = self.raw.flush();
        self.watch(done)
    }
}

impl Seek for Once {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if self.is_over() {
            // The library expects to be behind the header of the member that it was writing.
            return Ok(self.end);
        }
        let done = self.raw.seek(to);
        let place = self.watch(done)?;
        self.end = self.end.max(place);
        Ok(place)
    }
}

fn zip_error(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
