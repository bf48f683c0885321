//! The seeds of all documents, and the pairs of documents that share chains of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;

use super::chain::{Chainer, Hit};
use super::seed::Seeds;
use super::{PartialError, Settings, Work};
use crate::threads::{Workers, lock, unlocked};

/// The seeds of a corpus: 16 bytes for each.
#[derive(Debug, Default)]
pub struct Corpus {
    /// `hash << 64 | document << 32 | place`.
    postings: Vec<u128>,
    documents: u32,
    /// The first document with these letters.
    firsts: HashMap<u128, u32>,
    same: u64,
    /// The most postings; `None` is as many as there are.
    capacity: Option<usize>,
    /// Seeds whose hashes end in at least this many zero bits are kept.
    thinned: u32,
}

/// Two documents that share chains of seeds. Their texts decide what comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The earlier document.
    pub a: u32,
    /// The later one.
    pub b: u32,
    /// The hits of all chains, one chain after the other.
    pub(super) hits: Box<[Hit]>,
    /// Where in `hits` each chain ends.
    pub(super) ends: Box<[u32]>,
}

impl Candidate {
    /// The hits of each chain, which ascend in both documents; by its first hit.
    pub(super) fn chains(&self) -> impl Iterator<Item = &[Hit]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.hits[start as usize..end as usize])
    }
}

impl Corpus {
    /// A corpus of no documents, of which all seeds are kept.
    pub fn new() -> Corpus {
        Corpus::default()
    }

    /// A corpus whose seeds take at most this many bytes, and always room for 1,024 of them. When they would take
    /// more, every second one is dropped, by its hash, so that the same stay of every document; and so
    /// on. Then [`Work::thinned`] says so, and short passages are missed.
    pub fn with_memory(bytes: u64) -> Corpus {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u128>();
        Corpus { capacity: Some(most.max(1 << 10)), ..Corpus::default() }
    }

    /// Adds the next document. One that has the same letters as an earlier one is counted, and takes
    /// no part: what that one shares with others, it shares too.
    ///
    /// # Panics
    /// When there are 2^32 - 1 documents already.
    pub fn push(&mut self, seeds: &Seeds) {
        let document = self.documents;
        self.documents = document.checked_add(1).expect("fewer documents than 2^32");
        if seeds.is_empty() {
            return;
        }
        match self.firsts.entry(seeds.key) {
            Entry::Occupied(_) => self.same += 1,
            Entry::Vacant(vacant) => {
                vacant.insert(document);
                let kept = seeds.seeds.iter().filter(|seed| stays(seed.0, self.thinned));
                self.postings.extend(kept.map(|&(hash, place)| {
                    u128::from(hash) << 64 | u128::from(document) << 32 | u128::from(place)
                }));
            }
        }
        while self.capacity.is_some_and(|most| self.postings.len() > most) && self.thinned < 64 {
            self.thinned += 1;
            let thinned = self.thinned;
            self.postings.retain(|&posting| stays((posting >> 64) as u64, thinned));
        }
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.documents as usize
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Brings equal seeds together, and drops those that one document has alone, or too many have.
    ///
    /// # Errors
    /// When threads cannot be started.
    ///
    /// # Complexity
    /// O(s log s) for s seeds, in place.
    pub fn search(self, settings: &Settings) -> Result<Search, PartialError> {
        let workers = Workers::start(settings.threads).map_err(PartialError::Threads)?;
        let Corpus { mut postings, documents, same, thinned, .. } = self;
        let mut work =
            Work { documents: u64::from(documents), same_letters: same, ..Work::default() };
        work.seeds = postings.len() as u64;
        work.thinned = thinned;
        workers.sort(&mut postings);
        let mut search =
            Search { postings, per_document: vec![0; documents as usize], workers, work };
        search.keep_shared(settings.max_documents);
        Ok(search)
    }
}

/// The seeds that documents share.
#[derive(Debug)]
pub struct Search {
    /// Ascending.
    postings: Vec<u128>,
    /// How many hits each document has with later ones.
    per_document: Vec<u64>,
    workers: Workers,
    work: Work,
}

impl Search {
    /// What was done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// The documents that can be in a candidate, ascending: those that share two seeds with others.
    pub fn documents(&self) -> Vec<u32> {
        let mut seeds = vec![0u8; self.per_document.len()];
        for &posting in &self.postings {
            let count = &mut seeds[document(posting) as usize];
            *count = count.saturating_add(1);
        }
        (0..).zip(seeds).filter(|(_, seeds)| *seeds > 1).map(|(document, _)| document).collect()
    }

    /// Calls `each` with the pairs of documents that share a chain of seeds, some at a time, by their
    /// documents. Returns what `each` broke with.
    ///
    /// # Complexity
    /// At most `max_documents / 2` hits a seed (16 times that where all repeat within their documents),
    /// of which as many are held at once as the memory allows, or those of one pair.
    pub fn each<B>(
        &mut self,
        settings: &Settings,
        mut each: impl FnMut(&[Candidate]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let capacity = settings.hit_capacity();
        let all = 0..self.per_document.len() as u32;
        let mut hits = Vec::new();
        for documents in ranges(&self.per_document, capacity) {
            let heavy =
                documents.len() == 1 && self.per_document[documents.start as usize] > capacity;
            let partners = if heavy {
                ranges(&self.partners(documents.start), capacity)
            } else {
                vec![all.clone()]
            };
            for later in partners {
                self.fill_hits(&documents, &later, &mut hits);
                self.workers.sort(&mut hits);
                let candidates = self.candidates(&hits);
                if !candidates.is_empty() {
                    each(&candidates)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Drops the postings of seeds that one document has, or too many, and counts the hits of each
    /// document with later ones.
    fn keep_shared(&mut self, max_documents: u32) {
        let Search { postings, per_document, work, .. } = self;
        let (mut kept, mut at) = (0, 0);
        while at < postings.len() {
            let length = run_length(&postings[at..]);
            let run = &postings[at..at + length];
            let own = |of: &[u128]| of.chunk_by(|x, y| document(*x) == document(*y)).count();
            let documents = if length == 1 { 1 } else { own(run) };
            if documents > max_documents as usize {
                work.hot_seeds += 1;
                work.hot_places += length as u64;
            } else if documents > 1 {
                let mut later = length as u64;
                for same in run.chunk_by(|x, y| document(*x) == document(*y)) {
                    later -= same.len() as u64;
                    let hits = same.len() as u64 * later;
                    per_document[document(same[0]) as usize] += hits;
                    work.hits += hits;
                }
                postings.copy_within(at..at + length, kept);
                kept += length;
            }
            at += length;
        }
        postings.truncate(kept);
        postings.shrink_to_fit();
    }

    /// How many hits one document has with each later one.
    fn partners(&self, a: u32) -> Vec<u64> {
        let mut hits = vec![0; self.per_document.len()];
        for run in self.postings.chunk_by(|x, y| x >> 64 == y >> 64) {
            let from = run.partition_point(|&posting| document(posting) < a);
            let to = run.partition_point(|&posting| document(posting) <= a);
            if from < to {
                run[to..].iter().for_each(|&b| hits[document(b) as usize] += (to - from) as u64);
            }
        }
        hits
    }

    /// Fills `hits` with those whose earlier document is in the one range and the later in the other:
    /// `a << 96 | b << 64 | place in a << 32 | place in b`.
    fn fill_hits(&self, documents: &Range<u32>, later: &Range<u32>, hits: &mut Vec<u128>) {
        hits.clear();
        for run in self.postings.chunk_by(|x, y| x >> 64 == y >> 64) {
            let from = run.partition_point(|&posting| document(posting) < documents.start);
            for &a in run[from..].iter().take_while(|&&a| document(a) < documents.end) {
                let start = later.start.max(document(a) + 1);
                let first = run.partition_point(|&posting| document(posting) < start);
                let partners = run[first..].iter().take_while(|&&b| document(b) < later.end);
                hits.extend(partners.map(|&b| {
                    u128::from(document(a)) << 96
                        | u128::from(document(b)) << 64
                        | u128::from(place(a)) << 32
                        | u128::from(place(b))
                }));
            }
        }
    }

    /// The pairs among sorted hits that share a chain.
    fn candidates(&mut self, hits: &[u128]) -> Vec<Candidate> {
        let parts = parts(hits, 8 * self.workers.count());
        let all = Mutex::new((Vec::new(), 0));
        let _ = self.workers.run(parts.len(), &|part| {
            let (mut own, pairs) = chain(&hits[parts[part].clone()]);
            let mut all = lock(&all);
            all.0.append(&mut own);
            all.1 += pairs;
            ControlFlow::Continue(())
        });
        let (mut candidates, pairs) = unlocked(all);
        candidates.sort_unstable_by_key(|pair: &Candidate| (pair.a, pair.b));
        self.work.pairs += pairs;
        candidates
    }
}

/// Chains the hits of every pair, and counts the pairs.
fn chain(hits: &[u128]) -> (Vec<Candidate>, u64) {
    let mut chainer = Chainer::default();
    let (mut own, mut candidates, mut pairs): (Vec<Hit>, Vec<Candidate>, u64) = Default::default();
    for run in hits.chunk_by(|x, y| x >> 64 == y >> 64) {
        pairs += 1;
        if run.len() < 2 {
            continue;
        }
        own.clear();
        own.extend(run.iter().map(|&hit| ((hit >> 32) as u32, hit as u32)));
        let (hits, ends) = chainer.chains(&own);
        if !ends.is_empty() {
            let (a, b) = ((run[0] >> 96) as u32, (run[0] >> 64) as u32);
            candidates.push(Candidate { a, b, hits: hits.into(), ends: ends.into() });
        }
    }
    (candidates, pairs)
}

/// Whether a seed is among those that are kept: winnowing takes small hashes, so the first bits of a
/// hash say nothing about it, and the last ones do.
fn stays(hash: u64, thinned: u32) -> bool {
    hash.trailing_zeros() >= thinned
}

fn document(posting: u128) -> u32 {
    (posting >> 32) as u32
}

fn place(posting: u128) -> u32 {
    posting as u32
}

/// The number of postings of the first seed.
fn run_length(postings: &[u128]) -> usize {
    let hash = postings[0] >> 64;
    postings.iter().take_while(|&&posting| posting >> 64 == hash).count()
}

/// Ranges of documents, each with at most this many hits or of one document; those without hits are in
/// none or in any.
fn ranges(hits: &[u64], capacity: u64) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    let mut sum = 0;
    for (document, &count) in (0..).zip(hits).filter(|(_, count)| **count > 0) {
        match ranges.last_mut() {
            Some(range) if sum + count <= capacity => range.end = document + 1,
            _ => {
                ranges.push(document..document + 1);
                sum = 0;
            }
        }
        sum += count;
    }
    ranges
}

/// Cuts sorted hits into about `wanted` ranges, between pairs.
fn parts(hits: &[u128], wanted: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for part in 1..=wanted {
        let mut end = hits.len() * part / wanted;
        if 0 < end && end < hits.len() {
            let pair = hits[end - 1] >> 64;
            end += hits[end..].partition_point(|hit| hit >> 64 == pair);
        }
        if start < end {
            parts.push(start..end);
            start = end;
        }
    }
    parts
}
