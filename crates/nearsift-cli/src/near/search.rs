//! From a corpus of sketches to its near-duplicate pairs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use nearsift::dedup::{Accepted, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::sketch::Score;
use nearsift::sketch::join::{Explanation, Pair, SketchJoin, Work};

use nearsift::verify::Verified;
use serde::Serialize;

use super::Rule;
use super::crowds::{BEST, Crowds};
use super::texts::TextSource;
use super::verify::{Examiner, verify};
use crate::commands::dedup::collect::Ids;
use crate::failure::Failure;

/// Two different texts that are near duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// How alike their sketches are, from 0 to 1.
    pub sketch_score: f64,
    /// What the texts measure, when they were compared.
    pub verified: Option<Verified>,
    /// Whether the two have the same letters and digits.
    pub same_text: bool,
}

/// A pair as a JSON line.
#[derive(Debug, Serialize)]
pub struct PairLine<'a> {
    a: &'a str,
    b: &'a str,
    /// What decided: from the texts where these were compared, else from the sketches.
    score: f64,
    /// The Hamming distance of the sketches' SimHash halves, in bits of 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch_score: Option<f64>,
    #[serde(flatten)]
    texts: Option<TextMeasures>,
}

/// What the texts of a pair measure, where they were compared.
#[derive(Debug, Serialize)]
struct TextMeasures {
    cosine: f64,
    alignment: f64,
    jaccard: f64,
    containment: f64,
}

impl<'a> PairLine<'a> {
    pub fn of(pair: &Near, ids: &'a Ids, corpus: &SketchCorpus) -> PairLine<'a> {
        let both = corpus.sketch(pair.a).zip(corpus.sketch(pair.b));
        PairLine {
            a: ids.get(pair.a),
            b: ids.get(pair.b),
            score: pair.score(),
            distance: both.map(|(a, b)| a.distance(&b)),
            sketch_score: both.map(|(a, b)| a.score(&b).value()),
            texts: pair.verified.map(|texts| TextMeasures {
                cosine: texts.cosine,
                alignment: texts.alignment,
                jaccard: texts.jaccard,
                containment: texts.containment,
            }),
        }
    }
}

impl Near {
    const SAME_TEXT: Near = Near { a: 0, b: 0, sketch_score: 1.0, verified: None, same_text: true };

    /// What decided: the score of the texts, else that of the sketches.
    pub fn score(&self) -> f64 {
        self.verified.map_or(self.sketch_score, |verified| verified.score)
    }

    /// The pair as the clustering rules take it.
    pub fn accepted(&self) -> Accepted {
        Accepted { a: self.a, b: self.b, strength: (self.score() * f64::from(u32::MAX)) as u32 }
    }
}

/// The near-duplicate pairs of a corpus, and how they were found.
pub struct Decision<'c, T> {
    /// In ascending order. Of documents with the same text or the same sketch, the first stands for all.
    pub pairs: Vec<Near>,
    /// Pairs whose sketches scored high enough to be looked at.
    pub candidates: u64,
    /// Of documents with very many candidates, those that were not looked at.
    pub passed_over: u64,
    pub work: Work,
    pub explanation: Explanation,
    corpus: &'c SketchCorpus,
    rule: Rule,
    texts: T,
    frequencies: DocumentFrequencies,
}

/// Which pairs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that hold groups together: of equal sketches only the first is compared with others, and
    /// a document that is like very many others is compared with the nearest of them.
    Links,
    /// Those of every two different texts.
    All,
}

/// Finds the pairs. `texts` is asked once for the texts of documents, ascending: of those in a
/// candidate, when the rule wants to see them.
///
/// # Errors
/// What `texts` returns, a text that cannot be read back, or an interruption.
pub fn search<'c, T: TextSource>(
    corpus: &'c SketchCorpus,
    join: &SketchJoin<'_>,
    extent: Extent,
    frequencies: DocumentFrequencies,
    rule: Rule,
    texts: impl FnOnce(Vec<u32>) -> Result<T, Failure>,
) -> Result<Decision<'c, T>, Failure> {
    let ((candidates, passed_over), work) = match extent {
        Extent::Links => links(corpus, join, rule),
        Extent::All => {
            let (mut candidates, work) = corpus.all_candidates(join);
            candidates.retain(|pair| rule.looks_at(corpus, pair));
            ((candidates, 0), work)
        }
    };
    let mut compared: Vec<u32> = match rule {
        Rule::Verified(_) => candidates.iter().flat_map(|pair| [pair.a, pair.b]).collect(),
        Rule::Scored(_) => Vec::new(),
    };
    compared.sort_unstable();
    compared.dedup();
    let texts = texts(compared)?;
    let near = |pair: &Pair, verified| Near {
        a: pair.a,
        b: pair.b,
        sketch_score: pair.score.value(),
        verified,
        same_text: false,
    };
    let pairs = match rule {
        Rule::Scored(_) => candidates.iter().map(|pair| near(pair, None)).collect(),
        Rule::Verified(min_score) => {
            let measured = verify(&candidates, &texts, &frequencies, min_score)?;
            let near = |(place, verified): (usize, _)| near(&candidates[place], Some(verified));
            measured.into_iter().map(near).collect()
        }
    };
    Ok(Decision {
        pairs,
        candidates: candidates.len() as u64,
        passed_over,
        work,
        explanation: join.explain(),
        corpus,
        rule,
        texts,
        frequencies,
    })
}

/// The candidates in compact form, the best of each document, and how many there are beside these.
fn links(corpus: &SketchCorpus, join: &SketchJoin<'_>, rule: Rule) -> ((Vec<Pair>, u64), Work) {
    let mut crowds = Crowds::new(BEST);
    let (ControlFlow::Continue(()), work) = join.for_each_link(|pair| {
        if !corpus.same_text(pair.a, pair.b) && rule.looks_at(corpus, &pair) {
            crowds.push(pair);
        }
        ControlFlow::<Infallible>::Continue(())
    });
    let score = |a, b| match corpus.sketch(a).zip(corpus.sketch(b)) {
        Some((a, b)) => a.score(&b),
        None => Score::at_least(0.0),
    };
    (crowds.finish(score), work)
}

impl<T: TextSource> Decision<'_, T> {
    /// The pairs, and each document that repeats a text with the first that has it: in ascending order,
    /// given the first document of each text.
    pub fn with_same_texts(&self, first: &[u32]) -> impl Iterator<Item = Near> {
        let repeats = (0u32..).zip(first).filter(|(document, first)| document != *first);
        let same = repeats.map(|(b, &a)| Near { a, b, ..Near::SAME_TEXT });
        let mut all: Vec<Near> = self.pairs.iter().copied().chain(same).collect();
        all.sort_unstable_by_key(|pair| (pair.a, pair.b));
        all.into_iter()
    }

    /// The pairs of all documents, in ascending order, given the first document of each text: of
    /// [`Extent::All`], and each two of the same text.
    ///
    /// 12 bytes a pair.
    pub fn of_all_documents(&self, first: &[u32]) -> impl Iterator<Item = Near> {
        const SAME: u32 = u32::MAX;
        let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
        for (document, &first) in (0u32..).zip(first) {
            copies.entry(first).or_default().push(document);
        }
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for (place, near) in (0u32..).zip(&self.pairs) {
            for &a in &copies[&near.a] {
                all.extend(copies[&near.b].iter().map(|&b| (a.min(b), a.max(b), place)));
            }
        }
        for same in copies.values().filter(|same| same.len() > 1) {
            for (at, &a) in same.iter().enumerate() {
                all.extend(same[at + 1..].iter().map(|&b| (a, b, SAME)));
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(a, b, place)| match self.pairs.get(place as usize) {
            Some(near) => Near { a, b, ..*near },
            None => Near { a, b, ..Near::SAME_TEXT },
        })
    }

    /// What decided about two documents, given the first document of each text; `None` when they were
    /// not accepted as a pair of their own.
    pub fn score_of(&self, a: u32, b: u32, first: &[u32]) -> Option<f64> {
        let (a, b) = (first[a as usize], first[b as usize]);
        let pair = (a.min(b), a.max(b));
        let place = self.pairs.binary_search_by_key(&pair, |near| (near.a, near.b)).ok()?;
        Some(self.pairs[place].score())
    }

    /// Whether two documents that are in no accepted pair are near duplicates all the same: what is
    /// asked of pairs that no shared key made a candidate.
    ///
    /// A text that cannot be read back is like no other.
    pub fn judge(&self) -> impl FnMut(u32, u32) -> bool {
        let min_score = match self.rule {
            Rule::Verified(min_score) => Some(min_score),
            Rule::Scored(_) => None,
        };
        let mut examiner =
            min_score.map(|least| Examiner::new(&self.texts, &self.frequencies, least));
        move |a, b| {
            self.rule.looks_at_documents(self.corpus, a, b)
                && examiner
                    .as_mut()
                    .is_none_or(|e| e.compare(a, b).is_ok_and(|measured| measured.is_some()))
        }
    }
}
