//! From sketches to pairs that are worth comparing.

use std::convert::Infallible;
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::Acceptance;
use super::hubs::{HubFilter, best};
use crate::dedup::{Clustering, SketchCorpus};
use crate::sketch::join::{KeySource, Pair, Plan, SketchJoin, Work};

/// Which pairs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairScope {
    /// Those that hold groups together: of equal sketches only the first is compared with others, and
    /// a document that is like many others is compared with the nearest of them, as many as the rule wants.
    SpanningLinks(Clustering),
    /// Those of every two different texts.
    AllPairs,
}

/// What the search for candidates found.
pub struct Candidates {
    /// The candidates, ascending.
    pub pairs: Vec<Pair>,
    /// Of documents with very many candidates, those that are not among them.
    pub skipped: u64,
    /// What the search did.
    pub work: Work,
    /// How it was done.
    pub plan: Plan,
}

impl Candidates {
    /// Finds the candidates.
    ///
    /// # Errors
    /// When a column of keys cannot be read.
    pub fn find<K: KeySource>(
        corpus: &SketchCorpus,
        join: &SketchJoin<'_, K>,
        scope: PairScope,
        acceptance: Acceptance,
    ) -> Result<Candidates, K::Error> {
        match scope {
            PairScope::SpanningLinks(clustering) => {
                links(corpus, join, acceptance, best(clustering))
            }
            PairScope::AllPairs => {
                let (mut pairs, work) = corpus.all_candidates(join)?;
                pairs.retain(|pair| acceptance.is_candidate(corpus, pair));
                Ok(Candidates { pairs, skipped: 0, work, plan: join.plan() })
            }
        }
    }

    /// Whether two searches of the same documents find the same candidates: by what accepts pairs, and the rule by which they
    /// become groups.
    pub fn are_same(
        (one, of_one): (Acceptance, Clustering),
        (other, of_other): (Acceptance, Clustering),
    ) -> bool {
        one.has_candidates_of(other) && best(of_one) == best(of_other)
    }

    /// The documents in a candidate, ascending.
    pub fn documents(&self, corpus: &SketchCorpus) -> Vec<u32> {
        let mut is_in = vec![0u64; corpus.len().div_ceil(64)];
        for document in self.pairs.iter().flat_map(|pair| [pair.a, pair.b]) {
            is_in[document as usize / 64] |= 1 << (document % 64);
        }
        let is_in = |document: &u32| is_in[*document as usize / 64] >> (document % 64) & 1 == 1;
        (0..corpus.len() as u32).filter(is_in).collect()
    }
}

/// The candidates in compact form, the best of each document, and how many there are beside these.
fn links<K: KeySource>(
    corpus: &SketchCorpus,
    join: &SketchJoin<'_, K>,
    acceptance: Acceptance,
    best: usize,
) -> Result<Candidates, K::Error> {
    /// Pairs that all threads look at together.
    const TOGETHER: usize = 1 << 16;
    let is_wanted =
        |pair: &Pair| !corpus.same_text(pair.a, pair.b) && acceptance.is_candidate(corpus, pair);
    let mut hubs = HubFilter::new(best);
    let mut found = Vec::with_capacity(TOGETHER);
    let mut push = |found: &mut Vec<Pair>| {
        let are_wanted: Vec<bool> = found.par_iter().with_min_len(1 << 10).map(is_wanted).collect();
        let pairs = found.drain(..).zip(are_wanted);
        pairs.filter(|(_, is_wanted)| *is_wanted).for_each(|(pair, _)| hubs.push(pair));
    };
    let (ControlFlow::Continue(()), work) = join.for_each_link(|pair| {
        found.push(pair);
        if found.len() == TOGETHER {
            push(&mut found);
        }
        ControlFlow::<Infallible>::Continue(())
    })?;
    push(&mut found);
    let (pairs, skipped) = hubs.finish();
    Ok(Candidates { pairs, skipped, work, plan: join.plan() })
}
