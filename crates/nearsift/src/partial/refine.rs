//! From chains of seeds to passages, by the texts of a pair.
//!
//! # References
//! Ruzzo and Tompa, 'A linear time algorithm for finding all maximal scoring subsequences', ISMB 1999:
//! which parts of a chain are worth keeping.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::chain::Hit;
use super::corpus::Candidate;
use super::extend::{Extender, Worth};
use super::letters::{Letters, utf8_length};
use super::seed::SEED;
use super::{Kind, Passage, Settings};
use crate::verify::Verifier;

/// The share of a document that makes it contained.
const WHOLE: f64 = 0.8;

/// Letters of documents that are kept for later pairs.
const CACHED_LETTERS: usize = 1 << 22;

/// Settles candidates by their texts, and keeps its working memory from pair to pair: some 16 MB,
/// and the letters of two documents.
#[derive(Debug)]
pub struct Refiner {
    min_bytes: usize,
    min_score: f64,
    worth: Worth,
    cache: HashMap<u32, Arc<Letters>>,
    cached: usize,
    extender: Extender,
    verifier: Verifier,
}

/// A passage in letters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    a: Range<usize>,
    b: Range<usize>,
}

/// A passage, and how many letters both sides have in common.
#[derive(Debug)]
struct Scored {
    span: Span,
    common: usize,
}

impl Refiner {
    /// A refiner that has seen no pair yet.
    pub fn new(settings: &Settings) -> Refiner {
        let worth = Worth::of(settings.min_score);
        Refiner {
            min_bytes: settings.min_bytes as usize,
            min_score: settings.min_score,
            worth,
            cache: HashMap::new(),
            cached: 0,
            extender: Extender::new(worth),
            verifier: Verifier::new(),
        }
    }

    /// The passages that a pair shares, in the order of the first document; perhaps none. The texts must
    /// be those that the seeds come from, and a document must have one text for all calls.
    ///
    /// # Complexity
    /// O(bytes) for each text that is not remembered from a call before; O(65) for a letter by which a
    /// passage is extended; and an exact alignment of what is between seeds, and of each passage (see
    /// [`Verifier`]).
    pub fn refine(&mut self, candidate: &Candidate, text_a: &str, text_b: &str) -> Vec<Passage> {
        let a = self.letters(candidate.a, text_a);
        let b = self.letters(candidate.b, text_b);
        let sides = [a.as_slice(), b.as_slice()];
        let mut all: Vec<Scored> = Vec::new();
        for chain in candidate.chains() {
            for part in self.alike([&a, &b], chain) {
                let part = extended(&mut self.extender, sides, part);
                let next = self.scored(sides, part);
                let joined = all.last().filter(|last| last.span.meets(&next.span)).map(|last| {
                    self.scored(
                        sides,
                        Span {
                            a: last.span.a.start..next.span.a.end,
                            b: last.span.b.start..next.span.b.end,
                        },
                    )
                });
                match joined.filter(|joined| joined.score() >= self.min_score) {
                    Some(joined) => {
                        all.pop();
                        all.push(joined);
                    }
                    None => all.push(next),
                }
            }
        }
        all.retain(|passage| {
            passage.score() >= self.min_score && passage.bytes(sides) >= self.min_bytes
        });
        let lengths = sides.map(|letters| letters.len() as f64);
        let shares = [covered(&all, |span| &span.a), covered(&all, |span| &span.b)];
        let kind = match [0, 1].map(|side| shares[side] >= WHOLE * lengths[side]) {
            [true, true] => Kind::Whole,
            [true, false] => Kind::Contained,
            [false, true] => Kind::Contains,
            [false, false] => Kind::Overlap,
        };
        let mut normalised = String::new();
        let passages = all.into_iter().map(|passage| Passage {
            kind,
            share_of_a: passage.common as f64 / lengths[0],
            share_of_b: passage.common as f64 / lengths[1],
            score: passage.score(),
            a_range: a.original(text_a, passage.span.a, &mut normalised),
            b_range: b.original(text_b, passage.span.b, &mut normalised),
        });
        passages.collect()
    }

    /// The letters of a document.
    fn letters(&mut self, document: u32, text: &str) -> Arc<Letters> {
        if let Some(letters) = self.cache.get(&document) {
            return letters.clone();
        }
        let mut letters = Letters::default();
        letters.fill(text);
        let (letters, length) = (Arc::new(letters), text.len());
        if self.cached + length > CACHED_LETTERS {
            self.cache.clear();
            self.cached = 0;
        }
        if length <= CACHED_LETTERS {
            self.cached += length;
            self.cache.insert(document, letters.clone());
        }
        letters
    }

    /// The parts of a chain that are alike: all maximal stretches of seeds and what is between them by
    /// their worth. A seed may be a passage's only one.
    fn alike(&mut self, sides: [&Letters; 2], chain: &[Hit]) -> Vec<Span> {
        let at = |(a, b): Hit| [sides[0].letters_before(a), sides[1].letters_before(b)];
        let end = |(a, b): Hit| at((a + SEED as u32, b + SEED as u32));
        let mut worths = MaximalStretches::default();
        let mut before = at(chain[0]);
        let mut stretches = Vec::with_capacity(2 * chain.len());
        for &hit in chain {
            // Seeds overlap: what is before counts once.
            let (start, end) = (at(hit), end(hit));
            for to in [start, end] {
                let to = [to[0].max(before[0]), to[1].max(before[1])];
                let [x, y] = [0, 1].map(|side| &sides[side].as_slice()[before[side]..to[side]]);
                if !(x.is_empty() && y.is_empty()) {
                    let common = self.verifier.common(x, y);
                    worths.push(self.worth.of_texts(common, x.len(), y.len()));
                    stretches.push((before, to));
                }
                before = to;
            }
        }
        let parts = worths.finish().into_iter();
        parts
            .map(|part| {
                let (from, to) = (stretches[part.start].0, stretches[part.end - 1].1);
                Span { a: from[0]..to[0], b: from[1]..to[1] }
            })
            .collect()
    }

    fn scored(&mut self, sides: [&[u32]; 2], span: Span) -> Scored {
        let common = self.verifier.common(&sides[0][span.a.clone()], &sides[1][span.b.clone()]);
        Scored { span, common }
    }
}

/// A span, as far as the texts agree on both sides of it.
fn extended(extender: &mut Extender, [a, b]: [&[u32]; 2], span: Span) -> Span {
    let Span { a: x, b: y } = span;
    let (before_a, before_b) = extender.backward(&a[..x.start], &b[..y.start]);
    let (after_a, after_b) = extender.forward(&a[x.end..], &b[y.end..]);
    Span { a: x.start - before_a..x.end + after_a, b: y.start - before_b..y.end + after_b }
}

/// Letters that passages have in common, where a document's letters count once even if two passages have
/// them.
fn covered(passages: &[Scored], side: impl Fn(&Span) -> &Range<usize>) -> f64 {
    let mut ranges: Vec<(Range<usize>, f64)> = (passages.iter())
        .map(|passage| {
            let range = side(&passage.span);
            (range.clone(), passage.common as f64 / range.len().max(1) as f64)
        })
        .collect();
    ranges.sort_unstable_by_key(|(range, _)| (range.start, range.end));
    let (mut sum, mut to) = (0.0, 0);
    for (range, density) in ranges {
        sum += range.end.saturating_sub(range.start.max(to)) as f64 * density;
        to = to.max(range.end);
    }
    sum
}

impl Scored {
    fn score(&self) -> f64 {
        2.0 * self.common as f64 / (self.span.a.len() + self.span.b.len()).max(1) as f64
    }

    /// Bytes of the shorter side.
    fn bytes(&self, sides: [&[u32]; 2]) -> usize {
        let bytes = |letters: &[u32]| letters.iter().map(|&c| utf8_length(c)).sum::<usize>();
        bytes(&sides[0][self.span.a.clone()]).min(bytes(&sides[1][self.span.b.clone()]))
    }
}

impl Span {
    /// Whether another span that starts later goes on, in both texts, where this one is.
    fn meets(&self, next: &Span) -> bool {
        next.a.start <= self.a.end
            && next.b.start <= self.b.end
            && self.a.start <= next.a.start
            && self.b.start <= next.b.start
            && self.a.end <= next.a.end
            && self.b.end <= next.b.end
    }
}

/// Finds all maximal stretches of a sequence of numbers: those whose sum is more than that of any
/// stretch inside them, and which are in no other such stretch.
#[derive(Debug, Default)]
struct MaximalStretches {
    length: usize,
    sum: i64,
    candidates: Vec<Stretch>,
}

#[derive(Debug)]
struct Stretch {
    range: Range<usize>,
    /// The sum of all numbers before it, and up to its end.
    before: i64,
    upto: i64,
    /// The last candidate before it whose `before` is less.
    lower: Option<usize>,
}

impl MaximalStretches {
    fn push(&mut self, number: i64) {
        let before = self.sum;
        self.sum += number;
        self.length += 1;
        if number <= 0 {
            return;
        }
        let mut range = self.length - 1..self.length;
        let (mut before, upto) = (before, self.sum);
        loop {
            let mut lower = self.candidates.len().checked_sub(1);
            while let Some(at) = lower
                && self.candidates[at].before >= before
            {
                lower = self.candidates[at].lower;
            }
            match lower.map(|at| &self.candidates[at]) {
                Some(other) if other.upto < upto => {
                    (range.start, before) = (other.range.start, other.before);
                    self.candidates.truncate(lower.unwrap_or_default());
                }
                _ => return self.candidates.push(Stretch { range, before, upto, lower }),
            }
        }
    }

    fn finish(self) -> Vec<Range<usize>> {
        self.candidates.into_iter().map(|stretch| stretch.range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretches(numbers: &[i64]) -> Vec<Range<usize>> {
        let mut stretches = MaximalStretches::default();
        numbers.iter().for_each(|&n| stretches.push(n));
        stretches.finish()
    }

    /// The greatest stretch, the shortest and first of equal ones; then the same on both sides of it.
    fn naive(numbers: &[i64], from: usize, all: &mut Vec<Range<usize>>) {
        let mut best = (0, 0..0);
        for start in 0..numbers.len() {
            for end in start + 1..=numbers.len() {
                let sum: i64 = numbers[start..end].iter().sum();
                if sum > best.0 || sum == best.0 && sum > 0 && end - start < best.1.len() {
                    best = (sum, start..end);
                }
            }
        }
        if best.0 > 0 {
            naive(&numbers[..best.1.start], from, all);
            all.push(from + best.1.start..from + best.1.end);
            naive(&numbers[best.1.end..], from + best.1.end, all);
        }
    }

    #[test]
    fn the_example_of_the_paper() {
        assert_eq!(stretches(&[4, -5, 3, -3, 1, 2, -2, 2, -2, 1, 5]), [0..1, 2..3, 4..11]);
    }

    proptest! {
        #[test]
        fn stretches_equal_the_naive_ones(numbers in prop::collection::vec(-9i64..9, 0..40)) {
            let mut expect = Vec::new();
            naive(&numbers, 0, &mut expect);
            let sums = |of: &[Range<usize>]| of.iter().map(|r| numbers[r.clone()].iter().sum::<i64>()).collect::<Vec<_>>();
            prop_assert_eq!(sums(&stretches(&numbers)), sums(&expect));
        }
    }
}
