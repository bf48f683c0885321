//! What was decided, as values.

use nearsift::dedup::Reason;

use super::Judgement;
use super::finish::Decided;
use super::groups::{Documents, largest_groups};
use super::summary::Summary;
use crate::corpus::{Id, Ids, Records};
use crate::error::Error;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::search::Near;

/// Which documents stay, and why the others go. Documents are numbered from 0 in the order of the input, records that
/// cannot be read left out; [`Decisions::document`] finds the number of a record.
///
/// 20 bytes a document, 16 a pair, and the ids.
#[derive(Debug)]
pub struct Decisions {
    ids: Ids,
    records: Records,
    summary: Summary,
    fates: Vec<Fate>,
    /// Of each cluster of two or more, by its number from 1: its documents.
    members: Vec<Vec<u32>>,
    pairs: Vec<Pair>,
    /// Where texts were compared.
    rarity: Option<DocumentFrequencies>,
}

/// What became of a document.
#[derive(Debug, Clone, Copy)]
struct Fate {
    representative: u32,
    /// The number of its cluster; 0 for none.
    cluster: u32,
    /// NaN for none.
    score: f32,
    removal: Option<Why>,
}

impl Fate {
    /// That of a document that is like no other.
    fn kept(document: u32) -> Fate {
        Fate { representative: document, cluster: 0, score: f32::NAN, removal: None }
    }
}

/// Why a document goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// An earlier document, or the one that stays in its place, has its letters and digits.
    SameText,
    /// It is near the one that stays in its place.
    Near,
    /// A reference has its letters and digits.
    SameTextInReference,
    /// It is near a document of a reference.
    NearReference,
}

impl Why {
    /// That of a document that goes in favour of another one of the input.
    pub(super) fn of(reason: Reason) -> Why {
        match reason {
            Reason::Exact => Why::SameText,
            Reason::Near => Why::Near,
        }
    }

    /// That of a document that a reference has.
    pub(super) fn of_reference(reason: Reason) -> Why {
        match reason {
            Reason::Exact => Why::SameTextInReference,
            Reason::Near => Why::NearReference,
        }
    }

    /// As `removed.jsonl` has it.
    pub fn name(self) -> &'static str {
        match self {
            Why::SameText => "exact-duplicate",
            Why::Near => "near-duplicate",
            Why::SameTextInReference => "exact-duplicate-of-reference",
            Why::NearReference => "near-duplicate-of-reference",
        }
    }
}

/// A document that goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Removed {
    /// Its number.
    pub document: u32,
    /// The document that stays in its place; itself where a reference has it.
    pub representative: u32,
    /// Why it goes.
    pub why: Why,
    /// What decided, from 0 to 1, where the two were compared with each other.
    pub score: Option<f32>,
}

/// A pair of near duplicates, the earlier document first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// What decided, from 0 to 1.
    pub score: f32,
}

impl From<Near> for Pair {
    fn from(pair: Near) -> Pair {
        Pair { a: pair.a, b: pair.b, score: pair.score() }
    }
}

/// Documents that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'d> {
    /// Its number, from 1 in the order of the first documents.
    pub number: u32,
    /// Its documents, ascending: two or more.
    pub members: &'d [u32],
}

impl Decisions {
    /// # Errors
    /// When an id cannot be read back.
    pub(super) fn of(
        decided: Decided<'_>,
        pairs: Vec<Pair>,
        mut summary: Summary,
        judged: impl Fn(u32, u32) -> Option<Judgement>,
    ) -> Result<Decisions, Error> {
        let score = |a, b| judged(a, b).map(|judgement| judgement.score);
        let largest = largest_groups(decided.found);
        summary.set_largest(&largest, Documents::of(&decided, None), &score)?;
        let Decided { ids, records, found, against, .. } = decided;
        let clusters = found.clusters();
        let mut fates: Vec<Fate> = (0..clusters.documents() as u32).map(Fate::kept).collect();
        let mut members = Vec::new();
        for group in clusters.members().duplicates() {
            summary.count_group(group.members.len());
            members.push(group.members.to_vec());
            for &member in group.members {
                fates[member as usize].cluster = members.len() as u32;
            }
        }
        for removal in found.removals() {
            summary.count_removal(removal.reason);
            let fate = &mut fates[removal.document as usize];
            fate.representative = removal.representative;
            fate.score = match removal.is_same_text {
                true => 1.0,
                false => score(removal.document, removal.representative).unwrap_or(f32::NAN),
            };
            fate.removal = Some(Why::of(removal.reason));
        }
        for removal in against.removals() {
            summary.count_referred(removal.reason());
            let fate = &mut fates[removal.document as usize];
            fate.score = removal.score;
            fate.removal = Some(Why::of_reference(removal.reason()));
        }
        summary.set_capped(found.capped());
        Ok(Decisions { ids, records, summary, fates, members, pairs, rarity: None })
    }

    /// The same with the table that texts were weighed by.
    pub(super) fn with_rarity(self, table: DocumentFrequencies) -> Decisions {
        Decisions { rarity: Some(table), ..self }
    }

    /// How rare each feature is, as the texts were weighed; `None` where no texts were compared. Two texts that
    /// are [compared](nearsift::search::Decision::of) by it have the figures of the job.
    pub fn rarity(&self) -> Option<&DocumentFrequencies> {
        self.rarity.as_ref()
    }

    /// Everything that was counted.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.fates.len()
    }

    /// The number of records, those that could not be read included.
    pub fn records(&self) -> u64 {
        self.fates.len() as u64 + self.records.unreadable()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.fates.is_empty()
    }

    /// The number of the document that a record is, records being numbered from 0 over the whole input; `None` where it
    /// could not be read.
    pub fn document(&self, record: u64) -> Option<u32> {
        self.records.document(record).filter(|&document| (document as usize) < self.fates.len())
    }

    /// The record of a document.
    pub fn record(&self, document: u32) -> u64 {
        self.records.of(document)
    }

    /// The id of a document, with its JSON type. Very many ids are in a file without a name, in
    /// [`Context::scratch`](crate::Context::scratch).
    ///
    /// # Errors
    /// When it cannot be read back from there.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn id(&self, document: u32) -> Result<Id<'_>, Error> {
        self.ids.get(document)
    }

    /// Whether a record stays. One that could not be read does not.
    pub fn is_kept(&self, record: u64) -> bool {
        self.document(record)
            .is_some_and(|document| self.fates[document as usize].removal.is_none())
    }

    /// The documents that go, ascending.
    pub fn removals(&self) -> impl Iterator<Item = Removed> {
        (0..).zip(&self.fates).filter_map(|(document, fate)| {
            let score = Some(fate.score).filter(|score| !score.is_nan());
            Some(Removed {
                document,
                representative: fate.representative,
                why: fate.removal?,
                score,
            })
        })
    }

    /// The clusters of two documents and more.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster<'_>> {
        (1..).zip(&self.members).map(|(number, members)| Cluster { number, members })
    }

    /// The cluster of a document, if it is in one of two or more.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn cluster(&self, document: u32) -> Option<Cluster<'_>> {
        let number = self.fates[document as usize].cluster;
        let members = self.members.get(number.checked_sub(1)? as usize)?;
        Some(Cluster { number, members })
    }

    /// The pairs that hold the clusters together, ascending; each document that repeats a text with the first that has it.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }
}
