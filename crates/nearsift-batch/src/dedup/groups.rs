//! The largest groups, of each some members to show.

use nearsift::dedup::Found;

use super::examples::ShownTexts;
use super::finish::Decided;
use super::sources::Sources;
use crate::corpus::{Ids, Records};
use crate::error::Error;
use crate::report::{self, Gone, Relation, snippet, visible_line};

/// Groups that are shown, and members of each beside the one that stays.
const GROUPS: usize = 20;
const MEMBERS: usize = 12;

/// A group that is shown.
#[derive(Debug)]
pub struct LargestGroup {
    /// Its number, from 1 in the order of the first documents.
    number: u32,
    size: u64,
    /// Some of its documents, the one that stays first.
    documents: Vec<u32>,
}

/// The largest groups, of equal ones the earlier.
pub fn largest_groups(found: &Found<'_>) -> Vec<LargestGroup> {
    let clusters = found.clusters();
    let members = clusters.members();
    let mut largest: Vec<(usize, u32)> = Vec::new();
    for (number, group) in (1u32..).zip(members.duplicates()) {
        let size = group.members.len();
        if largest.len() == GROUPS && largest[GROUPS - 1].0 >= size {
            continue;
        }
        let place = largest.partition_point(|(other, _)| *other >= size);
        largest.insert(place, (size, number));
        largest.truncate(GROUPS);
    }
    let mut groups: Vec<LargestGroup> = (1u32..)
        .zip(members.duplicates())
        .filter(|(number, _)| largest.iter().any(|(_, own)| own == number))
        .map(|(number, group)| {
            // Each document that stays, the best first, and those that go in its favour.
            let mut documents = group.members.to_vec();
            documents.sort_by_key(|&member| {
                let stays = clusters.representative(member);
                (stays != group.representative, stays, member != stays)
            });
            documents.truncate(1 + MEMBERS);
            LargestGroup { number, size: group.members.len() as u64, documents }
        })
        .collect();
    groups.sort_by_key(|group| (u64::MAX - group.size, group.number));
    groups
}

/// A group to look at: its first members.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GroupShown {
    /// Its number, from 1 in the order of the first documents.
    pub number: u32,
    /// All documents of the group.
    pub size: u64,
    /// Some of its members, the one that stays first.
    pub members: Vec<MemberShown>,
}

/// A member of a group.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberShown {
    /// Its id as it is in the input.
    pub id: String,
    /// `kept`, `same text`, or how near it is to the one that stays in its place.
    pub what: String,
    relation: Relation,
    /// Where it is from, if there are several sources.
    source: Option<String>,
    record: u64,
}

impl LargestGroup {
    /// The documents that are shown.
    pub fn documents(&self) -> impl Iterator<Item = u32> {
        self.documents.iter().copied()
    }

    /// The group with what is known of its members. `score` is what decided about two documents, where they were compared with
    /// each other; with `by_distance` their Hamming distance is named.
    ///
    /// # Errors
    /// When an id cannot be read back.
    pub fn shown(
        &self,
        documents: Documents<'_>,
        by_distance: bool,
        score: &impl Fn(u32, u32) -> Option<f32>,
    ) -> Result<GroupShown, Error> {
        let Documents { ids, records, found, sources } = documents;
        let relation = |document: u32| {
            let removal = found.removal(document);
            match removal.distance {
                _ if removal.representative == document => Relation::Stays,
                _ if removal.is_same_text => Relation::SameText,
                Some(distance) if by_distance => Relation::Distance(distance),
                _ => match score(document, removal.representative) {
                    Some(score) => Relation::Score(score),
                    None => Relation::Near,
                },
            }
        };
        let source = |document| {
            sources.filter(|sources| sources.are_several()).map(|of| of.name(document).to_owned())
        };
        let member = |&document: &u32| {
            let relation = relation(document);
            Ok(MemberShown {
                id: ids.get(document)?.to_string(),
                what: relation.to_string(),
                relation,
                source: source(document),
                record: records.of(document),
            })
        };
        let members = self.documents.iter().map(member).collect::<Result<_, Error>>()?;
        Ok(GroupShown { number: self.number, size: self.size, members })
    }
}

/// What is known of the documents of groups.
#[derive(Clone, Copy)]
pub struct Documents<'a> {
    pub ids: &'a Ids,
    pub records: &'a Records,
    pub found: &'a Found<'a>,
    /// Where they are from, if that is known.
    pub sources: Option<&'a Sources<'a>>,
}

impl<'a> Documents<'a> {
    pub fn of(decided: &'a Decided<'_>, sources: Option<&'a Sources<'_>>) -> Documents<'a> {
        let Decided { ids, records, found, .. } = decided;
        Documents { ids, records, found, sources }
    }
}

impl GroupShown {
    /// How many members are not shown.
    pub fn more(&self) -> u64 {
        self.size - self.members.len() as u64
    }

    /// The group as the report has it.
    pub(super) fn in_report(&self, texts: &ShownTexts) -> report::Group {
        let words = |member: &MemberShown| snippet(&texts.text(member.record));
        let source = |member: &MemberShown| member.source.as_deref().map(visible_line);
        let gone = |member: &MemberShown| Gone {
            id: visible_line(&member.id),
            why: member.what.clone(),
            relation: member.relation,
            snippet: words(member),
            source: source(member),
        };
        let [first, others @ ..] = &self.members[..] else {
            unreachable!("a group has a document that stays")
        };
        report::Group {
            number: self.number,
            size: self.size,
            kept: visible_line(&first.id),
            snippet: words(first),
            source: source(first),
            removed: others.iter().map(gone).collect(),
            more: self.more(),
        }
    }
}
