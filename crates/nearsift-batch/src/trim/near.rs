//! Pieces that are nearly the same: to the search each different piece is a document.

use std::ops::Range;
use std::path::Path;

use nearsift::cluster::{Capped, Clusters};
use nearsift::dedup::{Clustering, Grouping, MAX_DOCUMENTS, SketchEntry};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::Recipe;
use nearsift_io::Inputs;
use serde::Serialize;

use super::pieces::{Likeness, Piece, Repeat, Stays, Unit};
use crate::context::{Context, Phase};
use crate::corpus::{Columns, Records, Sketched};
use crate::dedup::budget::Budget;
use crate::documents::Text;
use crate::error::Error;
use crate::external_sort::{Sorted, Sorter};
use crate::scan::{Pass, Reads, Seen, scan};
use crate::search::{Decision, Segmentation, Texts, Workspace, decide};
use nearsift::search::{Acceptance, Candidates, PairScope, TextSource, join_settings};

/// The different pieces that count, each where it stands first: numbered in the order of the input.
pub struct Different<'a> {
    unit: Unit,
    records: &'a Records,
    /// The document of each, and its number among the pieces of that.
    firsts: Vec<(u32, u32)>,
    /// How often each is there.
    counts: Vec<u32>,
    /// Their numbers, in the order of their keys.
    by_key: Vec<u32>,
}

/// Of a different piece: where it stands first, its count and its place by key; its sketch, keys and text key.
const COLUMNS: u64 = 8 + 4 + 4 + 64 + 128 + 16 + 1;

/// How pieces that are nearly the same are searched for.
pub struct Search<'a> {
    pub context: &'a Context<'a>,
    pub inputs: &'a Inputs,
    /// How alike they are at least.
    pub min_score: f64,
    /// Where the memory is limited.
    pub budget: Option<Budget>,
    /// For files without a name.
    pub folder: &'a Path,
}

impl<'a> Different<'a> {
    /// The different ones among sorted pieces. 16 bytes for each.
    ///
    /// # Errors
    /// When there are too many, or pieces cannot be read back.
    pub fn of(
        pieces: &Sorted<Piece>,
        unit: Unit,
        records: &'a Records,
    ) -> Result<Different<'a>, Error> {
        // In the order of their keys.
        let mut firsts: Vec<(u32, u32)> = Vec::new();
        let mut counts: Vec<u32> = Vec::new();
        let mut before = None;
        for piece in pieces.iter() {
            let Piece { key, document, number, .. } = piece?;
            if before != Some(key) {
                before = Some(key);
                if firsts.len() == MAX_DOCUMENTS {
                    return Err(Error::invalid(format!(
                        "more than {MAX_DOCUMENTS} different pieces: split the input into several runs, or trim without `near`"
                    )));
                }
                firsts.push((document, number));
                counts.push(0);
            }
            if let Some(count) = counts.last_mut() {
                *count = count.saturating_add(1);
            }
        }
        let mut order: Vec<u32> = (0..firsts.len() as u32).collect();
        order.sort_unstable_by_key(|&place| firsts[place as usize]);
        let mut by_key = vec![0; order.len()];
        for (number, &place) in (0..).zip(&order) {
            by_key[place as usize] = number;
        }
        let counts = order.iter().map(|&place| counts[place as usize]).collect();
        firsts.sort_unstable();
        Ok(Different { unit, records, firsts, counts, by_key })
    }

    /// The shares of a memory limit, beside `beside` bytes for other things.
    ///
    /// # Errors
    /// When it is too small; the message has the least that works.
    pub fn budget(&self, limit: u64, beside: u64) -> Result<Budget, Error> {
        let pieces = self.firsts.len() as u64;
        Budget::new(limit, pieces, "different pieces", beside + pieces * COLUMNS)
    }

    /// Pieces that are nearly the same, in groups.
    ///
    /// # Errors
    /// When the disk is full or refuses, a memory limit that is too small, or an interruption.
    pub fn group(&self, search: &Search<'_>) -> Result<Groups, Error> {
        let &Search { context, inputs, min_score, budget, folder } = search;
        let acceptance = Acceptance::Verified(min_score);
        let Sketched { corpus, sample } = self.sketch(context, inputs)?;
        let settings =
            join_settings(acceptance, corpus.len(), budget.map(|budget| budget.search()));
        let join = corpus.join(settings).map_err(Error::invalid)?;
        let clustering = Clustering::Majority;
        let Ok(candidates) =
            Candidates::find(&corpus, &join, PairScope::SpanningLinks(clustering), acceptance);
        let found = candidates.pairs.len() as u64;
        let memory = budget.map(|budget| budget.texts(found)).transpose()?;
        let frequencies = sample.table(DocumentFrequencies::shipped());
        let workspace = Workspace::scratch(context, folder);
        let mut decision =
            decide(&corpus, candidates, frequencies, acceptance, workspace, |wanted| {
                Texts::read(context, inputs, self, wanted.past_changes(), memory, folder)
            })?;
        let grouping = Grouping { clustering, ..Grouping::default() };
        let judges = || decision.judge();
        // In the pool, whose threads it shares the groups out to.
        let found = rayon::scope(|_| corpus.find(&decision.accepted, &grouping, judges))?;
        let (clusters, capped) = (found.clusters(), found.capped());
        let first: Vec<u32> = (0..corpus.len() as u32).collect();
        decision.take_up(found.judged());
        let sketched = first.iter().filter(|&&piece| corpus.sketch(piece).is_some()).count();
        Ok(Groups {
            likeness: self.likeness(clusters, &decision, &first),
            counts: self.counts_of(clusters),
            representatives: first.iter().map(|&piece| clusters.representative(piece)).collect(),
            search: NearPieces::of(min_score, sketched as u64, &decision, capped),
        })
    }

    /// The sketches of the different pieces.
    fn sketch(&self, context: &Context<'_>, inputs: &Inputs) -> Result<Sketched, Error> {
        let recipe = Recipe::parse("sketch").map_err(Error::invalid)?;
        let shared = <Sketched as Columns>::Shared::default();
        let mut sketched = Sketched::default();
        let is_wanted = |record| !self.documents(record).is_empty();
        let pass = Pass {
            wanted: Some(&is_wanted),
            reads: Reads::PastChanges,
            ..Pass::new(Phase::Fingerprints)
        };
        scan(
            context,
            inputs,
            &pass,
            || recipe.counter(),
            |fingerprinter, seen| -> Vec<_> {
                let own = self.documents(seen.place.index);
                let entry = |(piece, text): (u32, &str)| {
                    let text = Text::plain(text.into());
                    let Seen { place, id, replaced, .. } = seen;
                    let seen = Seen { place, id, text: &text, fields: &[], replaced };
                    (piece, Sketched::entry(&shared, fingerprinter, &seen).0)
                };
                self.texts(own, &seen.text.text).map(entry).collect()
            },
            |_, done| {
                for (piece, entry) in done.unwrap_or_default() {
                    // Of a file that has changed, pieces may be missing.
                    skip_to(&mut sketched, piece);
                    sketched.push(entry, None);
                }
                Ok(())
            },
        )?;
        sketched.take_sample(shared);
        skip_to(&mut sketched, self.firsts.len() as u32);
        for records in inputs.changed_records() {
            let is_its = |piece: &u32| records.contains(&self.record(*piece));
            let all = 0..self.firsts.len() as u32;
            all.filter(is_its).for_each(|piece| sketched.corpus.exclude(piece));
        }
        Ok(sketched)
    }

    /// How alike each piece is to that which stands for its group.
    fn likeness<T: TextSource<Error = Error>>(
        &self,
        clusters: &Clusters,
        decision: &Decision<'_, T>,
        first: &[u32],
    ) -> Vec<Likeness> {
        let likeness = |piece| match clusters.representative(piece) {
            own if own == piece => Likeness::SAME,
            // Of a file that has changed meanwhile, nobody knows.
            other => Likeness::of_score(decision.score_of(other, piece, first).unwrap_or(0.0)),
        };
        (0..self.firsts.len() as u32).map(likeness).collect()
    }

    /// How many pieces there are in the group that each stands for.
    fn counts_of(&self, clusters: &Clusters) -> Vec<u64> {
        let mut counts = vec![0; self.counts.len()];
        for (piece, &count) in (0..).zip(&self.counts) {
            counts[clusters.representative(piece) as usize] += u64::from(count);
        }
        counts
    }

    /// Of pieces in groups of at least `least` (2 or more), those that go, in the order of the input.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn repeats(
        &self,
        groups: &Groups,
        pieces: &Sorted<Piece>,
        mut sorter: Sorter<Repeat>,
        least: u32,
        stays: Stays,
    ) -> Result<Sorted<Repeat>, Error> {
        let mut different = self.by_key.iter();
        let (mut before, mut own) = (None, 0);
        for piece in pieces.iter() {
            let piece = piece?;
            if before != Some(piece.key) {
                before = Some(piece.key);
                own = different.next().map_or(0, |&piece| piece as usize);
            }
            let representative = groups.representatives[own] as usize;
            let first = self.firsts[representative];
            let stays = stays == Stays::First && (piece.document, piece.number) == first;
            if groups.counts[representative] >= u64::from(least) && !stays {
                sorter.push(piece.repeats(first, groups.likeness[own]))?;
            }
        }
        sorter.finish()
    }
}

/// Appends pieces that are not at hand before one.
fn skip_to(sketched: &mut Sketched, before: u32) {
    while sketched.corpus.len() < before as usize {
        sketched.corpus.push(SketchEntry { sketched: None, text_key: None, value: None });
    }
}

impl Segmentation for Different<'_> {
    fn documents(&self, record: u64) -> Range<u32> {
        let Some(document) = self.records.document(record) else { return 0..0 };
        let start = self.firsts.partition_point(|&(other, _)| other < document);
        let len = self.firsts[start..].partition_point(|&(other, _)| other == document);
        start as u32..(start + len) as u32
    }

    fn texts<'t>(
        &self,
        documents: Range<u32>,
        text: &'t str,
    ) -> impl Iterator<Item = (u32, &'t str)> {
        let mut wanted = documents.map(|piece| (piece, self.firsts[piece as usize].1)).peekable();
        (0..).zip(self.unit.pieces(text)).filter_map(move |(number, text)| {
            let (piece, _) = wanted.next_if(|&(_, wanted)| wanted == number)?;
            Some((piece, text))
        })
    }

    fn record(&self, document: u32) -> u64 {
        self.records.of(self.firsts[document as usize].0)
    }
}

/// Groups of pieces that are nearly the same.
pub struct Groups {
    /// Of each piece that which stands for its group.
    representatives: Vec<u32>,
    likeness: Vec<Likeness>,
    /// Of each that stands for a group, how many pieces this has, equal ones counted.
    counts: Vec<u64>,
    /// What was counted.
    pub search: NearPieces,
}

/// What the search for pieces that are nearly the same counted.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NearPieces {
    min_score: f64,
    /// Different pieces with enough features for a sketch.
    sketched: u64,
    candidates: u64,
    candidates_skipped: u64,
    hot_keys: u64,
    comparisons_skipped: u64,
    capped_groups: u32,
    capped_links: u64,
}

impl NearPieces {
    fn of<T>(
        min_score: f64,
        sketched: u64,
        decision: &Decision<'_, T>,
        capped: Capped,
    ) -> NearPieces {
        NearPieces {
            min_score,
            sketched,
            candidates: decision.candidates,
            candidates_skipped: decision.skipped,
            hot_keys: decision.work.hot_keys,
            comparisons_skipped: decision.work.skipped,
            capped_groups: capped.groups,
            capped_links: capped.links,
        }
    }
}
