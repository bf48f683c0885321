//! Samples, occurrences and repeats as records of the external sort.

use nearsift::substrings::{Occurrence, Repeat, Sample, SampleOrder};

use crate::external_sort::Stored;

/// A sample of a document, in the order in which samples are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentSample {
    pub sample: Sample,
    pub document: u32,
}

impl DocumentSample {
    /// What is the same in samples that are equal in all their windows.
    pub fn key_of_bytes(&self) -> (u64, [u8; 12], u16, u16) {
        let Sample { gram, hull, least, most, .. } = self.sample;
        (gram, hull, least, most)
    }
}

impl Stored for DocumentSample {
    type Key = SampleOrder;
    const BYTES: usize = 36;

    fn key(&self) -> Self::Key {
        self.sample.order(self.document)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let Sample { gram, hull, at, least, most, stride, count } = self.sample;
        bytes.extend_from_slice(&gram.to_le_bytes());
        bytes.extend_from_slice(&hull);
        [self.document, at].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        [least, most, stride, count].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    }

    fn read(mut bytes: &[u8]) -> Option<DocumentSample> {
        let rest = &mut bytes;
        let (gram, hull) = (u64::from_le_bytes(take(rest)?), take(rest)?);
        let [document, at] = [word(rest)?, word(rest)?];
        let [least, most, stride, count] = offsets(rest)?;
        let sample = Sample { gram, hull, at, least, most, stride, count };
        rest.is_empty().then_some(DocumentSample { sample, document })
    }
}

/// An occurrence whose hull is wanted, in the order of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOccurrence {
    pub own: Occurrence,
    pub group: u64,
}

impl Stored for OpenOccurrence {
    type Key = (u32, u32, u64);
    const BYTES: usize = 24;

    fn key(&self) -> Self::Key {
        (self.own.document, self.own.at, self.group)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        write_occurrence(&self.own, bytes);
        bytes.extend_from_slice(&self.group.to_le_bytes());
    }

    fn read(mut bytes: &[u8]) -> Option<OpenOccurrence> {
        let rest = &mut bytes;
        let own = read_occurrence(rest)?;
        let group = u64::from_le_bytes(take(rest)?);
        rest.is_empty().then_some(OpenOccurrence { own, group })
    }
}

/// An occurrence whose hull was kept, by its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptHull {
    pub open: OpenOccurrence,
    /// Where the hull begins among all that were kept.
    pub address: u64,
}

impl Stored for KeptHull {
    type Key = (u64, u32, u32);
    const BYTES: usize = OpenOccurrence::BYTES + 8;

    fn key(&self) -> Self::Key {
        let OpenOccurrence { own, group } = self.open;
        (group, own.document, own.at)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.open.write(bytes);
        bytes.extend_from_slice(&self.address.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<KeptHull> {
        let (open, address) = bytes.split_last_chunk()?;
        let open = OpenOccurrence::read(open)?;
        Some(KeptHull { open, address: u64::from_le_bytes(*address) })
    }
}

impl Stored for Repeat {
    type Key = Repeat;
    const BYTES: usize = 20;

    fn key(&self) -> Repeat {
        *self
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let &Repeat { document, start, end, first_document, first_start } = self;
        for number in [document, start, end, first_document, first_start] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn read(mut bytes: &[u8]) -> Option<Repeat> {
        let rest = &mut bytes;
        let [document, start, end] = [word(rest)?, word(rest)?, word(rest)?];
        let [first_document, first_start] = [word(rest)?, word(rest)?];
        rest.is_empty().then_some(Repeat { document, start, end, first_document, first_start })
    }
}

fn write_occurrence(own: &Occurrence, bytes: &mut Vec<u8>) {
    let &Occurrence { document, at, least, most, stride, count } = own;
    [document, at].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    [least, most, stride, count].iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
}

fn read_occurrence(rest: &mut &[u8]) -> Option<Occurrence> {
    let [document, at] = [word(rest)?, word(rest)?];
    let [least, most, stride, count] = offsets(rest)?;
    Some(Occurrence { document, at, least, most, stride, count })
}

fn offsets(rest: &mut &[u8]) -> Option<[u16; 4]> {
    let mut offset = || take(rest).map(u16::from_le_bytes);
    Some([offset()?, offset()?, offset()?, offset()?])
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::super::cut::Cut;
    use super::*;

    fn check<T: Stored + PartialEq + Debug>(record: T) {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        assert_eq!(bytes.len(), T::BYTES, "{record:?}");
        assert_eq!(T::read(&bytes), Some(record));
        assert_eq!(T::read(&bytes[1..]), None, "a record that is cut short");
        bytes.push(0);
        assert_eq!(T::read(&bytes), None, "a record with a byte more");
    }

    #[test]
    fn what_is_stored_is_read() {
        let (at, least, most, stride, count) = (1 << 30 | 5, 6, 7, 8, 9);
        let sample =
            Sample { gram: 1 << 60 | 2, hull: *b"abcdefghijkl", at, least, most, stride, count };
        check(DocumentSample { sample, document: 1 << 31 | 4 });
        let own = Occurrence { document: 1 << 31 | 4, at, least, most, stride, count };
        let open = OpenOccurrence { own, group: 1 << 50 | 3 };
        check(open);
        check(KeptHull { open, address: 1 << 40 | 1 });
        check(Repeat { document: 1, start: 2, end: 3, first_document: 4, first_start: 5 });
        let (document, start, end, characters) = (1, 2, 3, [4, 5]);
        check(Cut { document, start, end, characters, first_document: 6, first_start: 7 });
    }
}
