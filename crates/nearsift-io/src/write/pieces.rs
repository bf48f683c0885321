//! The outputs of files whose records are runs of bytes.

use super::elements::Elements;
use super::target::{Encoder, Target};
use super::{BYTE_ORDER_MARK, Decision};
use crate::source::Compression;
use crate::split::Around;
use crate::{Error, Format};

/// The two files that are written for one input.
pub(super) struct Pair {
    pub(super) kept: Sink,
    pub(super) unreadable: Sink,
}

impl Pair {
    pub(super) fn new(
        targets: [Target; 2],
        format: Format,
        compressions: [Compression; 2],
    ) -> Self {
        let sink = |target, compression| Sink {
            target,
            compression,
            encoder: None,
            before: Vec::new(),
            member: 0,
            written: None,
            elements: (format == Format::Json).then(Elements::default),
            bytes: 0,
        };
        let ([kept, unreadable], [a, b]) = (targets, compressions);
        Self { kept: sink(kept, a), unreadable: sink(unreadable, b) }
    }

    /// What comes is of this member of the input.
    pub(super) fn at_member(&mut self, member: u64) {
        self.kept.member = member;
        self.unreadable.member = member;
    }

    pub(super) fn gap(&mut self, bytes: &[u8], around: Around) -> Result<(), Error> {
        let is_mark = bytes == BYTE_ORDER_MARK;
        if self.kept.elements.is_some() && !is_mark {
            self.kept.gap(bytes, around)?;
            return self.unreadable.gap(bytes, around);
        }
        self.kept.put(bytes)?;
        // Blank lines belong to no record, and go with what is kept.
        if is_mark { self.unreadable.put(bytes) } else { Ok(()) }
    }

    pub(super) fn record(&mut self, bytes: &[u8], decision: Decision) -> Result<(), Error> {
        let to_kept = decision == Decision::Keep;
        let to_unreadable = decision == Decision::Unreadable;
        self.kept.record(to_kept.then_some(bytes))?;
        self.unreadable.record(to_unreadable.then_some(bytes))
    }

    /// Completes both files before either gets its name.
    pub(super) fn finish(mut self) -> Result<u64, Error> {
        self.kept.complete()?;
        self.unreadable.complete()?;
        self.unreadable.target.publish()?;
        self.kept.target.publish()?;
        Ok(self.kept.bytes)
    }
}

/// One output file of pieces. It is made when a record comes, or when [`Sink::open`] asks for it.
pub(super) struct Sink {
    target: Target,
    compression: Compression,
    encoder: Option<Box<Encoder>>,
    /// The member of the input that is read, and that from which was written last.
    member: u64,
    written: Option<u64>,
    /// What was put before the file was made.
    before: Vec<u8>,
    /// What stands between the records of a JSON file.
    elements: Option<Elements>,
    bytes: u64,
}

impl Sink {
    pub(super) fn open(&mut self) -> Result<(), Error> {
        if self.encoder.is_some() {
            return Ok(());
        }
        let packing = self.target.packing(self.compression);
        let encoder = self.target.create().and_then(|raw| Encoder::new(packing, raw));
        self.encoder = Some(Box::new(encoder.map_err(|e| self.target.error(e))?));
        let before = std::mem::take(&mut self.before);
        self.put(&before)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.encoder.is_some() {
            if bytes.is_empty() {
                return Ok(());
            }
            // What was compressed apart is again: a member can be read without those before it.
            if self.written.replace(self.member).is_some_and(|m| m != self.member)
                && let Some(old) = self.encoder.take()
            {
                let packing = self.target.packing(self.compression);
                let next = old.next_member(packing).map_err(|e| self.target.error(e))?;
                self.encoder = Some(Box::new(next));
            }
            let Some(encoder) = &mut self.encoder else { return Ok(()) };
            self.bytes += bytes.len() as u64;
            return encoder.write_all(bytes).map_err(|e| self.target.error(e));
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
    pub(super) fn record(&mut self, bytes: Option<&[u8]>) -> Result<(), Error> {
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
        match self.encoder.take() {
            Some(encoder) => encoder.finish().map_err(|e| self.target.error(e)),
            None => Ok(()),
        }
    }
}
