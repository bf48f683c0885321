//! Exact comparison of two documents whose texts are at hand.
//!
//! A sketch estimates likeness; where the texts can be read again, the estimate is replaced by two
//! exact measures that fail in different ways. The *cosine* of the angle between the documents'
//! weighted features does not mind order, and gives rare features their due. The *alignment*, 2 x (the
//! length of the longest common subsequence) / (both lengths), does mind order, and an edit costs it
//! no more than the characters that were edited. The *value* of a pair is the quadratic mean of the two.
//!
//! ```
//! use nearsift::verify::{Profile, Verifier};
//! let of = |text| Profile::of(text, |_| 16).expect("below 4 GiB");
//! let mut verifier = Verifier::new();
//! let found = verifier.compare(&of("今天北京晴"), &of("今天上海晴"));
//! assert_eq!(found.alignment, 2.0 * 3.0 / 10.0);
//! assert_eq!(found.cosine, 1.0 / 7.0);
//! let (cosine, alignment) = (found.cosine, found.alignment);
//! assert_eq!(found.value, ((cosine * cosine + alignment * alignment) / 2.0).sqrt());
//! assert_eq!(verifier.compare_at_least(&of("今天北京晴"), &of("今天上海晴"), 0.5), None);
//! ```
//!
//! Weights are integers, and a measure is made of exact integers by a fixed sequence of divisions,
//! multiplications, additions and square roots, which IEEE 754 rounds in one way: two documents have
//! the same value on every machine, whichever comes first.
//!
//! # References
//! Salton and Buckley, 'Term-weighting approaches in automatic text retrieval', 1988 (the cosine of
//! weighted terms); Navarro, 'A guided tour to approximate string matching', ACM Computing Surveys
//! 33(1), 2001 (the longest common subsequence as an edit distance by insertions and deletions);
//! Ioffe, 'Improved consistent sampling, weighted minhash and L1 sketching', ICDM 2010 (weighted
//! Jaccard similarity); Broder, 'On the resemblance and containment of documents', SEQUENCES 1997.

mod align;
mod anchor;
mod profile;
mod sort;
#[cfg(test)]
mod tests;

pub use profile::{Profile, Profiler};

use std::ops::Range;

use serde::Serialize;

use align::Aligner;

/// How alike two documents are, by exact measures from 0 to 1.
///
/// A document without a feature, or without a letter, has 0 with every other for the measures that need
/// one: nothing was seen that could be alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verified {
    /// The value on one scale for all scripts: near duplicates begin at [`MIN_SCORE`].
    pub score: f64,
    /// The quadratic mean of `cosine` and `alignment`.
    pub value: f64,
    /// The cosine of the angle between the weight vectors.
    pub cosine: f64,
    /// 2 x (the length of the longest common subsequence of letters and digits) / (both lengths). Of
    /// texts that are too long for the exact length a lower bound, close where edits are few.
    pub alignment: f64,
    /// The sum of the smaller weights / the sum of the larger weights.
    pub jaccard: f64,
    /// The sum of the smaller weights / the sum of the weights of the document where it is smaller: 1
    /// when one document contains the other.
    pub containment: f64,
}

impl Verified {
    /// The score on an integer scale from 0 to 2^32 - 1, rounded down: an order of pairs.
    pub fn strength(&self) -> u32 {
        (self.score * f64::from(u32::MAX)) as u32
    }
}

/// The least score of near duplicates, unless another is asked.
pub const MIN_SCORE: f64 = 0.63;

/// The value that has the score [`MIN_SCORE`] where words are written with spaces: one wrong letter
/// costs such a text a word and five shingles, and unrelated ones share less.
const SPACED: f64 = 0.605;

/// The score of a value: both lines from 0 and from 1 meet where near duplicates begin.
fn score(value: f64, spaced: bool) -> f64 {
    match spaced {
        false => value,
        true if value <= SPACED => value * (MIN_SCORE / SPACED),
        true => MIN_SCORE + (value - SPACED) * ((1.0 - MIN_SCORE) / (1.0 - SPACED)),
    }
}

/// The value of a score, but for rounding.
fn value(score: f64, spaced: bool) -> f64 {
    match spaced {
        false => score,
        true if score <= MIN_SCORE => score * (SPACED / MIN_SCORE),
        true => SPACED + (score - MIN_SCORE) * ((1.0 - SPACED) / (1.0 - MIN_SCORE)),
    }
}

/// Whether most letters of two documents are of scripts that are written with spaces.
fn is_spaced(a: &Profile, b: &Profile) -> bool {
    2 * (a.spaced + b.spaced) > a.characters() + b.characters()
}

/// Compares profiles, and keeps its working memory from pair to pair.
///
/// # Complexity
/// For n features: O(n). For texts of l and m characters without their equal ends: O(l x m / 64) while
/// l x m is at most 2^24 (a quarter of that for near duplicates), for longer ones O((l + m) log(l + m))
/// and at most some 64 steps a character. The working memory is at most 5 MB, and 32 bytes for each
/// character of longer texts.
#[derive(Debug)]
pub struct Verifier {
    aligner: Aligner,
}

impl Default for Verifier {
    fn default() -> Verifier {
        Verifier::new()
    }
}

impl Verifier {
    /// A verifier that has compared nothing yet.
    pub fn new() -> Verifier {
        Verifier { aligner: Aligner::new() }
    }

    /// The length of the longest common subsequence of two texts' letters; of long texts, a lower
    /// bound. At the costs of the alignment alone.
    pub(crate) fn common(&mut self, a: &[u32], b: &[u32]) -> usize {
        self.aligner.common(a, b, 0, align::usual(a, b))
    }

    /// All measures of two documents whose weights follow from the same document frequencies.
    pub fn compare(&mut self, a: &Profile, b: &Profile) -> Verified {
        self.measure(a, b, Overlap::of(a, b), 0)
    }

    /// All measures of two documents whose score is `minimum` or more; `None` for all others, which
    /// cost less than [`Verifier::compare`] does.
    pub fn compare_at_least(&mut self, a: &Profile, b: &Profile, minimum: f64) -> Option<Verified> {
        let least = value(minimum, is_spaced(a, b));
        let overlap = Overlap::of(a, b);
        // What the alignment must have in common, less one for the rounding of the two lines.
        let both = (a.characters() + b.characters()) as f64;
        let cosine = overlap.cosine(a, b);
        let alignment = (2.0 * least * least - cosine * cosine).max(0.0).sqrt();
        let needed = (alignment * both / 2.0).floor() - 1.0;
        if needed > a.characters().min(b.characters()) as f64 {
            return None;
        }
        let verified = self.measure(a, b, overlap, needed.max(0.0) as usize);
        (verified.score >= minimum).then_some(verified)
    }

    /// All measures; a wrong and lower alignment when less than `least` characters are in common.
    fn measure(&mut self, a: &Profile, b: &Profile, overlap: Overlap, least: usize) -> Verified {
        let cosine = overlap.cosine(a, b);
        let both = (a.characters() + b.characters()) as u64;
        let likely = ((1.0 - likely_loss(cosine)) * both as f64 / 2.0) as usize;
        let common = self.aligner.common(a.letters(), b.letters(), least, likely);
        let alignment = ratio(2 * common as u64, both);
        let value = ((cosine * cosine + alignment * alignment) / 2.0).sqrt();
        Verified {
            score: score(value, is_spaced(a, b)),
            value,
            cosine,
            alignment,
            jaccard: ratio(overlap.smaller, a.sum + b.sum - overlap.smaller),
            containment: ratio(overlap.smaller, a.sum.min(b.sum)),
        }
    }
}

/// How much of both texts four of five near duplicates of such a cosine lose in the alignment. It
/// decides how soon the alignment is found, and never which it is.
fn likely_loss(cosine: f64) -> f64 {
    0.6 * (1.0 - cosine) + 0.03
}

/// What two documents' features have in common.
#[derive(Debug, Clone, Copy)]
struct Overlap {
    /// The sum of the products of the weights.
    product: u64,
    /// The sum of the smaller weights.
    smaller: u64,
}

impl Overlap {
    /// Merges both lists of hashes, the halves of them in turns: a step of a merge waits for the step
    /// before it, and the processor has room for two.
    fn of(a: &Profile, b: &Profile) -> Overlap {
        let (x, y) = (Features::of(a), Features::of(b));
        let mut low = Merge::new(0..a.low, 0..b.low);
        let mut high = Merge::new(a.low..x.hashes.len(), b.low..y.hashes.len());
        while low.goes_on() && high.goes_on() {
            low.step(x, y);
            high.step(x, y);
        }
        while low.goes_on() {
            low.step(x, y);
        }
        while high.goes_on() {
            high.step(x, y);
        }
        Overlap {
            product: low.shared.product + high.shared.product,
            smaller: low.shared.smaller + high.shared.smaller,
        }
    }

    /// The product of the squares is rounded before its root is taken, and not after: so the root of a
    /// document's own square is that square.
    fn cosine(&self, a: &Profile, b: &Profile) -> f64 {
        if self.product == 0 {
            return 0.0;
        }
        (self.product as f64 / (a.square as f64 * b.square as f64).sqrt()).min(1.0)
    }
}

/// A document's features: as many weights as hashes, which ascend.
#[derive(Clone, Copy)]
struct Features<'p> {
    hashes: &'p [u64],
    weights: &'p [u16],
}

impl<'p> Features<'p> {
    fn of(profile: &'p Profile) -> Features<'p> {
        let (hashes, weights) = profile.weighted();
        Features { hashes, weights }
    }
}

/// A part of two lists on the way to what they share.
struct Merge {
    i: usize,
    j: usize,
    ends: [usize; 2],
    shared: Overlap,
}

impl Merge {
    #[inline(always)]
    fn new(a: Range<usize>, b: Range<usize>) -> Merge {
        let shared = Overlap { product: 0, smaller: 0 };
        Merge { i: a.start, j: b.start, ends: [a.end, b.end], shared }
    }

    #[inline(always)]
    fn goes_on(&self) -> bool {
        self.i < self.ends[0] && self.j < self.ends[1]
    }

    #[inline(always)]
    fn step(&mut self, a: Features<'_>, b: Features<'_>) {
        let Merge { i, j, shared, .. } = self;
        let (x, y) = (a.hashes[*i], b.hashes[*j]);
        // Which of the two is smaller is a coin toss: no branch asks.
        let is_shared = u64::from(x == y);
        let (v, w) = (u64::from(a.weights[*i]), u64::from(b.weights[*j]));
        shared.product += is_shared * v * w;
        shared.smaller += is_shared * v.min(w);
        *i += usize::from(x <= y);
        *j += usize::from(y <= x);
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
