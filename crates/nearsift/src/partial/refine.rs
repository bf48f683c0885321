//! From chains of seeds to passages, by the texts of a pair.

use std::ops::Range;

use super::chain::Chain;
use super::corpus::Candidate;
use super::extend::Extender;
use super::letters::{Letters, utf8_length};
use super::{Kind, Passage, Settings, WHOLE_PERCENT};
use crate::verify::{Profile, Verifier};

/// The share of a document that makes it contained.
const WHOLE: f64 = WHOLE_PERCENT as f64 / 100.0;

/// Settles candidates by their texts, and keeps its working memory from pair to pair.
#[derive(Debug, Default)]
pub struct Refiner {
    sides: [Letters; 2],
    /// The document whose letters are in the first side: candidates come in its order.
    first: Option<u32>,
    extender: Extender,
    verifier: Verifier,
}

/// What the texts of a candidate say.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The documents share most of both: they are whole duplicates.
    Whole,
    /// The passages that they share, in the order of the first document; perhaps none.
    Parts(Vec<Passage>),
}

/// A passage in letters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    a: Range<usize>,
    b: Range<usize>,
}

impl Refiner {
    /// A refiner that has seen no pair yet.
    pub fn new() -> Refiner {
        Refiner::default()
    }

    /// The passages that a pair shares. The texts must be those that the seeds come from, and a document
    /// must have one text for all calls.
    ///
    /// # Complexity
    /// O(bytes of both texts) once for a first document, and an exact alignment of each passage (see
    /// [`Verifier`]).
    pub fn refine(
        &mut self,
        candidate: &Candidate,
        text_a: &str,
        text_b: &str,
        settings: &Settings,
    ) -> Verdict {
        if self.first != Some(candidate.a) {
            self.sides[0].fill(text_a);
            self.first = Some(candidate.a);
        }
        self.sides[1].fill(text_b);
        let mut spans: Vec<Span> = Vec::new();
        for chain in &candidate.chains {
            let span = self.extended(chain);
            match spans.last_mut() {
                Some(last) if last.meets(&span) => last.join(&span),
                _ => spans.push(span),
            }
        }
        let scored: Vec<(Span, f64)> = (spans.into_iter())
            .filter_map(|span| self.score(&span, settings).map(|score| (span, score)))
            .collect();
        if scored.is_empty() {
            return Verdict::Parts(Vec::new());
        }
        let [a, b] = &mut self.sides;
        let lengths = [&*a, &*b].map(|letters| letters.as_slice().len() as f64);
        let shared: f64 = scored.iter().map(|(span, score)| span.shared(*score)).sum();
        let kind = match lengths.map(|length| shared >= WHOLE * length) {
            [true, true] => return Verdict::Whole,
            [true, false] => Kind::Contained,
            [false, true] => Kind::Contains,
            [false, false] => Kind::Overlap,
        };
        let passages = scored.into_iter().map(|(span, score)| Passage {
            kind,
            share_of_a: span.shared(score) / lengths[0],
            share_of_b: span.shared(score) / lengths[1],
            a_range: a.original(text_a, span.a),
            b_range: b.original(text_b, span.b),
            score,
        });
        Verdict::Parts(passages.collect())
    }

    /// A chain, as far as the texts agree on both sides of it.
    fn extended(&mut self, chain: &Chain) -> Span {
        let [a, b] = &self.sides;
        let of = |letters: &Letters, range: &Range<u32>| {
            letters.letters_before(range.start)..letters.letters_before(range.end)
        };
        let (mut x, mut y) = (of(a, &chain.a), of(b, &chain.b));
        let (a, b) = (a.as_slice(), b.as_slice());
        let (before_a, before_b) = self.extender.backward(&a[..x.start], &b[..y.start]);
        let (after_a, after_b) = self.extender.forward(&a[x.end..], &b[y.end..]);
        x = x.start - before_a..x.end + after_a;
        y = y.start - before_b..y.end + after_b;
        Span { a: x, b: y }
    }

    /// How alike a passage is on both sides; `None` when it is too short or too little alike.
    fn score(&mut self, span: &Span, settings: &Settings) -> Option<f64> {
        let texts = [
            &self.sides[0].as_slice()[span.a.clone()],
            &self.sides[1].as_slice()[span.b.clone()],
        ];
        let bytes = texts.map(|letters| letters.iter().map(|&c| utf8_length(c)).sum::<usize>());
        if bytes[0].min(bytes[1]) < settings.min_bytes as usize {
            return None;
        }
        let [a, b] = texts.map(|letters| {
            let text: String = letters.iter().filter_map(|&c| char::from_u32(c)).collect();
            Profile::of(&text, |_| 16)
        });
        let score = self.verifier.compare(&a, &b).alignment;
        (score >= settings.min_score).then_some(score)
    }
}

impl Span {
    /// The letters that both sides have in common, by the score.
    fn shared(&self, score: f64) -> f64 {
        score * (self.a.len() + self.b.len()) as f64 / 2.0
    }

    /// Whether another span that starts later goes on, in both texts, where this one is.
    fn meets(&self, next: &Span) -> bool {
        next.a.start <= self.a.end
            && next.b.start <= self.b.end
            && self.b.start <= next.b.start
            && self.a.end <= next.a.end
            && self.b.end <= next.b.end
    }

    fn join(&mut self, next: &Span) {
        self.a.end = next.a.end;
        self.b.end = next.b.end;
    }
}
