//! Sections of a file: consecutive records that a later pass reads without those before them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::inputs::Change;

/// What a pass saw in one section of a file. The sections of a file follow one another without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    pub(crate) lines: u64,
    /// XXH3 of its bytes.
    pub(crate) digest: u64,
}

impl Section {
    /// Consecutive sections as one, without a digest.
    pub(crate) fn sum(sections: &[Section]) -> Section {
        sections.iter().fold(Section::default(), |sum, next| Section {
            bytes: sum.bytes + next.bytes,
            records: sum.records + next.records,
            lines: sum.lines + next.lines,
            digest: 0,
        })
    }
}

/// Cuts the sections that a pass over a file sees.
pub(crate) struct Cutter {
    ends: Ends,
    done: Vec<Section>,
    /// The unfinished section, whose digest is not known yet.
    current: Section,
    digest: Xxh3,
}

/// Where sections end.
enum Ends {
    /// With the first record that brings the section to this size, in bytes.
    AtLeast(u64),
    /// At these sizes in bytes, one for each section, as in the first pass.
    After(std::vec::IntoIter<u64>),
}

impl Cutter {
    /// In a first pass: a section has at least `bytes` bytes, but for the last one.
    pub(crate) fn at_least(bytes: u64) -> Cutter {
        Cutter::new(Ends::AtLeast(bytes.max(1)))
    }

    /// In a later pass over these sections.
    pub(crate) fn again(sections: &[Section]) -> Cutter {
        let ends: Vec<u64> = sections.iter().map(|section| section.bytes).collect();
        Cutter::new(Ends::After(ends.into_iter()))
    }

    fn new(ends: Ends) -> Cutter {
        Cutter { ends, done: Vec::new(), current: Section::default(), digest: Xxh3::new() }
    }

    /// Adds the next bytes of the file, in which `lines` lines end.
    pub(crate) fn add(&mut self, bytes: &[u8], lines: u64) {
        self.digest.update(bytes);
        self.current.bytes += bytes.len() as u64;
        self.current.lines += lines;
    }

    pub(crate) fn count_record(&mut self) {
        self.current.records += 1;
    }

    /// A line ends here: the section may.
    pub(crate) fn end_line(&mut self) {
        let is_end = match &self.ends {
            Ends::AtLeast(least) => self.current.bytes >= *least,
            Ends::After(ends) => ends.as_slice().first() == Some(&self.current.bytes),
        };
        if is_end {
            if let Ends::After(ends) = &mut self.ends {
                ends.next();
            }
            let last = self.unfinished();
            self.done.push(last);
            self.current = Section::default();
            self.digest.reset();
        }
    }

    fn unfinished(&self) -> Section {
        Section { digest: self.digest.digest(), ..self.current }
    }

    /// The sections up to here.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let last = (self.current.bytes > 0).then(|| self.unfinished());
        self.done.iter().cloned().chain(last).collect()
    }
}

/// Consecutive sections of a file whose first pass is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The first byte in the file, and how many records and lines are before it.
    pub(crate) before: Section,
    pub(crate) sections: Vec<Section>,
    /// The sections as one.
    own: Section,
    /// The whole file.
    whole: Section,
    /// Whether they are the last ones: what follows them was not there before.
    pub(crate) is_last: bool,
}

impl Stretch {
    /// # Panics
    /// When there are no such sections.
    pub(crate) fn of(sections: &[Section], range: Range<usize>) -> Stretch {
        let before = Section::sum(&sections[..range.start]);
        Stretch::after(before, Section::sum(sections), sections, range)
    }

    /// Each section of a file by itself. O(sections).
    pub(crate) fn each(sections: &[Section]) -> Vec<Stretch> {
        let whole = Section::sum(sections);
        let mut before = Section::default();
        let next = |section| {
            let stretch =
                Stretch::after(before.clone(), whole.clone(), sections, section..section + 1);
            before = Section::sum(&[before.clone(), stretch.own.clone()]);
            stretch
        };
        (0..sections.len()).map(next).collect()
    }

    fn after(
        before: Section,
        whole: Section,
        sections: &[Section],
        range: Range<usize>,
    ) -> Stretch {
        let is_last = range.end == sections.len();
        let sections = sections[range].to_vec();
        Stretch { before, own: Section::sum(&sections), sections, whole, is_last }
    }

    /// How many bytes they have.
    pub(crate) fn bytes(&self) -> u64 {
        self.own.bytes
    }

    /// How many records they have.
    pub(crate) fn records(&self) -> u64 {
        self.own.records
    }

    /// How many records the file has beside these.
    pub(crate) fn other_records(&self) -> u64 {
        self.whole.records - self.own.records
    }

    /// How the file differs from what the first pass read, where a later pass saw these sections otherwise. What is counted is
    /// counted over the whole file.
    pub(crate) fn change(&self, seen: &[Section]) -> Option<Change> {
        let (before, after) = (&self.own, Section::sum(seen));
        let of_file = |whole: u64, before: u64, after: u64| (whole, whole - before + after);
        let (what, (expected, got)) = if before.records != after.records {
            ("records", of_file(self.whole.records, before.records, after.records))
        } else if before.bytes != after.bytes {
            ("bytes", of_file(self.whole.bytes, before.bytes, after.bytes))
        } else {
            let (before, after) = self.sections.iter().zip(seen).find(|(a, b)| a != b)?;
            ("as the digest of the bytes", (before.digest, after.digest))
        };
        Some(Change { what, expected, got })
    }
}
