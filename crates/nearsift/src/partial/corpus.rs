//! The seeds of all documents, and the pairs of documents that share chains of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use super::chain::{Chain, Chainer, Hit};
use super::seed::Seeds;
use super::{PartialError, Settings, WHOLE_PERCENT, Work};
use crate::join::Workers;

/// The seeds of a corpus: 16 bytes for each.
#[derive(Debug, Default)]
pub struct Corpus {
    /// `hash << 64 | document << 32 | place`.
    postings: Vec<u128>,
    /// Bytes of each document's letters.
    bytes: Vec<u32>,
    /// The first document with these letters.
    firsts: HashMap<u128, u32>,
    same: u64,
}

/// Two documents that share chains of seeds. Their texts decide what comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The earlier document.
    pub a: u32,
    /// The later one.
    pub b: u32,
    pub(super) chains: Box<[Chain]>,
}

/// What a search for candidates gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// By their documents, ascending.
    pub pairs: Vec<Candidate>,
    /// What was done.
    pub work: Work,
}

impl Corpus {
    /// A corpus of no documents.
    pub fn new() -> Corpus {
        Corpus::default()
    }

    /// Adds the next document. One that has the same letters as an earlier one is counted, and takes
    /// no part: what that one shares with others, it shares too.
    ///
    /// # Panics
    /// When there are 2^32 - 1 documents already.
    pub fn push(&mut self, seeds: &Seeds) {
        let document = u32::try_from(self.bytes.len()).expect("fewer documents than 2^32");
        self.bytes.push(seeds.bytes);
        if seeds.is_empty() {
            return;
        }
        match self.firsts.entry(seeds.key) {
            Entry::Occupied(_) => self.same += 1,
            Entry::Vacant(vacant) => {
                vacant.insert(document);
                self.postings.extend(seeds.seeds.iter().map(|&(hash, place)| {
                    u128::from(hash) << 64 | u128::from(document) << 32 | u128::from(place)
                }));
            }
        }
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The pairs of documents that share a chain of seeds, without those whose seeds say already that
    /// they share most of both: these are whole duplicates.
    ///
    /// # Errors
    /// When threads cannot be started.
    ///
    /// # Complexity
    /// O(s log s) for s seeds, and at most `max_documents / 2` hits a seed (16 times that where all
    /// repeat within their documents), of which as many are held at once as the memory allows, or those
    /// of one document.
    pub fn candidates(mut self, settings: &Settings) -> Result<Candidates, PartialError> {
        let workers = Workers::start(settings.threads).map_err(PartialError::Threads)?;
        self.firsts = HashMap::new();
        let mut work = Work { documents: self.len() as u64, same_letters: self.same, ..Work::default() };
        work.seeds = self.postings.len() as u64;
        workers.sort(&mut self.postings);
        let per_document = self.keep_shared(settings.max_documents, &mut work);
        work.hits = per_document.iter().sum();
        let pairs = Mutex::new(Vec::new());
        let counts = Mutex::new(Work::default());
        let mut hits = Vec::new();
        for documents in ranges(&per_document, settings.hit_capacity()) {
            self.fill_hits(&documents, &mut hits);
            workers.sort(&mut hits);
            let parts = parts(&hits, 8 * workers.count());
            let _ = workers.run(parts.len(), &|part| {
                let (mut own, mut work) = (Vec::new(), Work::default());
                self.chain(&hits[parts[part].clone()], settings, &mut own, &mut work);
                locked(&pairs).append(&mut own);
                locked(&counts).add(&work);
                ControlFlow::Continue(())
            });
        }
        let mut pairs = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
        pairs.sort_unstable_by_key(|pair: &Candidate| (pair.a, pair.b));
        work.add(&locked(&counts));
        Ok(Candidates { pairs, work })
    }

    /// Drops the postings of seeds that one document has, or too many, and returns how many hits each
    /// document has with later ones.
    fn keep_shared(&mut self, max_documents: u32, work: &mut Work) -> Vec<u64> {
        let mut hits = vec![0; self.len()];
        let (mut kept, mut at) = (0, 0);
        while at < self.postings.len() {
            let length = run_length(&self.postings[at..]);
            let run = &self.postings[at..at + length];
            let own = |of: &[u128]| of.chunk_by(|x, y| document(*x) == document(*y)).count();
            let documents = if length == 1 { 1 } else { own(run) };
            if documents > max_documents as usize {
                work.crowded_seeds += 1;
                work.crowded_places += length as u64;
            } else if documents > 1 {
                let mut later = length as u64;
                for same in run.chunk_by(|x, y| document(*x) == document(*y)) {
                    later -= same.len() as u64;
                    hits[document(same[0]) as usize] += same.len() as u64 * later;
                }
                self.postings.copy_within(at..at + length, kept);
                kept += length;
            }
            at += length;
        }
        self.postings.truncate(kept);
        self.postings.shrink_to_fit();
        hits
    }

    /// Fills `hits` with those whose earlier document is in the range:
    /// `a << 96 | b << 64 | place in a << 32 | place in b`.
    fn fill_hits(&self, documents: &Range<u32>, hits: &mut Vec<u128>) {
        hits.clear();
        for run in self.postings.chunk_by(|x, y| x >> 64 == y >> 64) {
            let from = run.partition_point(|&posting| document(posting) < documents.start);
            for (number, &a) in (from..).zip(&run[from..]) {
                if document(a) >= documents.end {
                    break;
                }
                let later = run[number..].iter().filter(|&&b| document(b) != document(a));
                hits.extend(later.map(|&b| {
                    u128::from(document(a)) << 96
                        | u128::from(document(b)) << 64
                        | u128::from(place(a)) << 32
                        | u128::from(place(b))
                }));
            }
        }
    }

    /// Chains the hits of every pair.
    fn chain(&self, hits: &[u128], settings: &Settings, pairs: &mut Vec<Candidate>, work: &mut Work) {
        let mut chainer = Chainer::default();
        let (mut own, mut chains): (Vec<Hit>, Vec<Chain>) = (Vec::new(), Vec::new());
        for run in hits.chunk_by(|x, y| x >> 64 == y >> 64) {
            work.pairs += 1;
            if run.len() < 2 {
                continue;
            }
            own.clear();
            own.extend(run.iter().map(|&hit| ((hit >> 32) as u32, hit as u32)));
            chains.clear();
            // What is beyond the first and the last seed is seen in the texts.
            chainer.chains(&own, settings.min_bytes / 3, &mut chains);
            if chains.is_empty() {
                continue;
            }
            let (a, b) = ((run[0] >> 96) as u32, (run[0] >> 64) as u32);
            let shared: u64 = chains.iter().map(Chain::shared).sum();
            let most = |document: u32| {
                100 * shared >= WHOLE_PERCENT * u64::from(self.bytes[document as usize])
            };
            if most(a) && most(b) {
                work.whole += 1;
            } else {
                pairs.push(Candidate { a, b, chains: chains.as_slice().into() });
            }
        }
    }
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

/// Ranges of documents, each with at most so many hits or of one document; those without hits are in
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

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
