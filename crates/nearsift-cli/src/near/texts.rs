//! The texts of those documents that are compared exactly, read again and kept aside.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use nearsift::text::normalise::normalise;
use nearsift_io::Inputs;

use crate::args::Global;
use crate::commands::dedup::collect::Records;
use crate::failure::Failure;
use crate::scan::scan;

/// Normalised texts by document.
pub trait TextSource: Sync {
    /// The normalised text of a document; an empty one for a document whose text is not at hand.
    ///
    /// # Errors
    /// When it cannot be read back.
    fn text(&self, document: u32) -> Result<Cow<'_, str>, Failure>;
}

/// The normalised texts of some documents of the input, in memory, or in a file when they are many.
pub struct Texts {
    /// Ascending.
    documents: Vec<u32>,
    ends: Vec<u64>,
    body: Body,
}

enum Body {
    Memory(Vec<u8>),
    File(File),
}

/// More bytes of text than this are kept in a file, unless a memory limit says otherwise.
const IN_MEMORY: u64 = 1 << 30;

impl Texts {
    /// Reads the input once more for the texts of `documents`, which are ascending. What does not fit
    /// into a quarter of `memory` goes into a file without a name in `folder`.
    ///
    /// # Errors
    /// An input that changed, an interruption, or a file that cannot be written.
    pub fn read(
        inputs: &Inputs,
        global: &Global,
        records: &Records,
        documents: Vec<u32>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Failure> {
        Texts::read_as(normalise, inputs, global, records, documents, memory, folder)
    }

    /// As [`Texts::read`], with the form of a text that is kept.
    pub fn read_as(
        form: fn(&str) -> String,
        inputs: &Inputs,
        global: &Global,
        records: &Records,
        documents: Vec<u32>,
        memory: Option<u64>,
        folder: &Path,
    ) -> Result<Texts, Failure> {
        let most = memory.map_or(IN_MEMORY, |bytes| bytes / 4);
        let mut store = Store { bytes: Vec::new(), file: None, written: 0 };
        let mut ends = Vec::with_capacity(documents.len());
        let wanted = |record| {
            let document = records.document(record)?;
            documents.binary_search(&document).ok()
        };
        if !documents.is_empty() {
            scan(
                inputs,
                global,
                "comparing",
                || (),
                |(), seen| wanted(seen.place.index).map(|_| form(&seen.text.text)),
                |_, done| {
                    if let Ok(Some(text)) = done {
                        store.push(text.as_bytes(), most, folder)?;
                        ends.push(store.written);
                    }
                    Ok(())
                },
            )?;
        }
        if ends.len() != documents.len() {
            return Err(Failure::new(
                "the input changed while it was read: documents of the first pass are missing in the second; run again on files that stay as they are",
            ));
        }
        Ok(Texts { documents, ends, body: store.finish(folder)? })
    }
}

struct Store {
    bytes: Vec<u8>,
    file: Option<BufWriter<File>>,
    written: u64,
}

impl Store {
    fn push(&mut self, text: &[u8], most: u64, folder: &Path) -> Result<(), Failure> {
        let error = |e| Failure::at(folder, "keep texts in", &e);
        self.written += text.len() as u64;
        if self.file.is_none() && self.written > most {
            let mut file =
                BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder).map_err(error)?);
            file.write_all(&std::mem::take(&mut self.bytes)).map_err(error)?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(text).map_err(error),
            None => {
                self.bytes.extend_from_slice(text);
                Ok(())
            }
        }
    }

    fn finish(self, folder: &Path) -> Result<Body, Failure> {
        match self.file {
            None => Ok(Body::Memory(self.bytes)),
            Some(file) => file
                .into_inner()
                .map(Body::File)
                .map_err(|e| Failure::at(folder, "keep texts in", e.error())),
        }
    }
}

impl TextSource for Texts {
    fn text(&self, document: u32) -> Result<Cow<'_, str>, Failure> {
        let Ok(place) = self.documents.binary_search(&document) else {
            return Ok(Cow::Borrowed(""));
        };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        let range = start..self.ends[place];
        match &self.body {
            Body::Memory(bytes) => {
                let text = &bytes[range.start as usize..range.end as usize];
                Ok(String::from_utf8_lossy(text))
            }
            Body::File(file) => {
                let mut text = vec![0; (range.end - range.start) as usize];
                read_at(file, &mut text, range.start)
                    .map_err(|e| Failure::new(format!("cannot read the texts kept aside: {e}")))?;
                Ok(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
            }
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_read(&mut bytes[done..], at + done as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}
