//! Exact comparison of two documents whose texts are at hand.
//!
//! A sketch estimates likeness; where the texts can be read again, the estimate is replaced by two
//! exact measures that fail in different ways. The *cosine* of the angle between the documents'
//! weighted features does not mind order, and gives rare features their due. The *alignment*, 2 x (the
//! length of the longest common subsequence) / (both lengths), does mind order, and an edit costs it
//! no more than the characters that were edited. The *value* of a pair is the quadratic mean of the two.
//!
//! Three kinds of texts need more:
//! - Lines that stand in another order count as aligned.
//! - The value of texts with code is the mean of that value and the value of their *bodies*: of source code without
//!   comments, of a page with examples without these. Source code that defines other names is less alike.
//! - Texts of one form differ in [facts](Facts): what differs in their slots takes from the score.
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
mod facts;
mod lines;
mod parts;
mod profile;
mod sort;
#[cfg(test)]
mod tests;

pub use facts::{Facts, Slots, Varying};
pub use profile::{Profile, Profiler};

use std::ops::Range;

use serde::Serialize;

use align::Aligner;
use parts::Kind;
use profile::Parts;

/// How alike two documents are, by exact measures from 0 to 1.
///
/// A document without a feature, or without a letter, has 0 with every other for the measures that need
/// one: nothing was seen that could be alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verified {
    /// How alike they are on one scale for all scripts and kinds: near duplicates begin at [`MIN_SCORE`].
    /// At most [`OTHER_SIGNS`] where nothing but signs that carry meaning differs.
    pub score: f64,
    /// The score before what differs in their facts was taken from it.
    pub form: f64,
    /// The quadratic mean of `cosine` and `alignment`; of long texts the cosine counts for at most so much more than the
    /// alignment, because unrelated ones share more short features the longer they are.
    pub value: f64,
    /// The cosine of the angle between the weight vectors.
    pub cosine: f64,
    /// 2 x (the length of the longest common subsequence of letters and digits) / (both lengths). Of
    /// texts that are too long for the exact length a lower bound, close where edits are few. Where more letters
    /// stand in lines that both texts have, in whatever order, these instead.
    pub alignment: f64,
    /// The sum of the smaller weights / the sum of the larger weights.
    pub jaccard: f64,
    /// The sum of the smaller weights / the sum of the weights of the document where it is smaller: 1
    /// when one document contains the other.
    pub containment: f64,
    /// The value of the bodies of two texts with code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<f64>,
    /// In how many values they agree and differ.
    pub facts: Facts,
}

impl Verified {
    /// The measures of two documents that have `letters` together, given more of their facts: the
    /// score falls, or stays.
    pub fn with_facts(self, facts: Facts, letters: usize) -> Verified {
        let score = (self.form - facts.cost(letters)).clamp(0.0, self.score);
        Verified { score, facts, ..self }
    }

    /// The score on an integer scale from 0 to 2^32 - 1, rounded down: an order of pairs.
    pub fn strength(&self) -> u32 {
        (self.score * f64::from(u32::MAX)) as u32
    }
}

/// The least score of near duplicates, unless another is asked.
pub const MIN_SCORE: f64 = 0.63;

/// How a pair's texts are written, which decides what values near duplicates have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Without spaces, for the most part.
    Unspaced,
    /// With spaces: one wrong letter costs such a text a word and five shingles, and unrelated ones share less.
    Spaced,
    /// Source code: few words make all of it, and much of it is alike.
    Code,
}

/// The most that two documents score whose letters and digits are the same and whose
/// [signs that carry meaning](crate::feature::shingle::Reduced::signs) are not: they are near, and not the same text.
pub const OTHER_SIGNS: f64 = 0.99;

/// Whether two documents have the same letters and digits and different signs, which no other measure sees.
fn only_signs_differ(a: &Profile, b: &Profile) -> bool {
    a.signs != b.signs && a.letters() == b.letters()
}

impl Script {
    fn of(a: &Profile, b: &Profile) -> Script {
        let is_spaced = 2 * (a.spaced + b.spaced) > a.characters() + b.characters();
        match (Bodies::of(a, b), is_spaced) {
            (Some(Bodies { names: Some(_), .. }), _) => Script::Code,
            (_, true) => Script::Spaced,
            (_, false) => Script::Unspaced,
        }
    }

    /// The least value of near duplicates: it has the score [`MIN_SCORE`].
    fn least(self) -> f64 {
        match self {
            Script::Unspaced => MIN_SCORE,
            Script::Spaced => 0.605,
            Script::Code => 0.8,
        }
    }

    /// The score of a value: both lines from 0 and from 1 meet where near duplicates begin.
    fn score(self, value: f64) -> f64 {
        match self {
            Script::Unspaced => value,
            _ if value <= self.least() => value * (MIN_SCORE / self.least()),
            _ => MIN_SCORE + (value - self.least()) * ((1.0 - MIN_SCORE) / (1.0 - self.least())),
        }
    }

    /// The value of a score, but for rounding.
    fn value(self, score: f64) -> f64 {
        match self {
            Script::Unspaced => score,
            _ if score <= MIN_SCORE => score * (self.least() / MIN_SCORE),
            _ => self.least() + (score - MIN_SCORE) * ((1.0 - self.least()) / (1.0 - MIN_SCORE)),
        }
    }
}

/// What source code loses from its value that defines none of the names that the other defines.
const OTHER_NAMES: f64 = 0.1;

/// The parts of two texts that are compared once more.
struct Bodies<'p> {
    a: &'p Profile,
    b: &'p Profile,
    /// Of source code the share of the names that only one of both defines.
    names: Option<f64>,
}

impl<'p> Bodies<'p> {
    /// Both are code, or one is a page with examples and the other is no code.
    fn of(a: &'p Profile, b: &'p Profile) -> Option<Bodies<'p>> {
        let kind = |of: &Profile| of.parts.as_ref().map_or(Kind::Prose, |parts| parts.kind);
        fn body(of: &Profile) -> &Profile {
            of.parts.as_ref().map_or(of, |parts| &parts.body)
        }
        let names = match (kind(a), kind(b)) {
            (Kind::Prose, Kind::Prose) => return None,
            (Kind::Code, Kind::Code) => {
                let names =
                    |of: &'p Profile| of.parts.as_deref().map_or(&[][..], |p: &Parts| &p.names);
                Some(share_of_others(names(a), names(b)))
            }
            (Kind::Code, _) | (_, Kind::Code) => return None,
            _ => None,
        };
        Some(Bodies { a: body(a), b: body(b), names })
    }
}

/// The share of names that are in one of two ascending lists alone.
fn share_of_others(a: &[u32], b: &[u32]) -> f64 {
    let both = a.iter().filter(|name| b.binary_search(name).is_ok()).count();
    let all = a.len() + b.len();
    if all == 0 { 0.0 } else { 1.0 - (2 * both) as f64 / all as f64 }
}

/// Texts with fewer characters may have any cosine: a power of two.
const LONG: u32 = 14;

/// By how much a cosine may exceed the alignment and still count, by the texts' average number of characters. It
/// falls by .06 for each doubling from 16,384 on, to .2: two unrelated books of 1 MB in English have a cosine of .7.
fn most_beyond_alignment(characters: usize) -> f64 {
    let doublings = characters.max(1).ilog2();
    if doublings < LONG {
        return 0.7;
    }
    let part = characters as f64 / (1u64 << doublings) as f64 - 1.0;
    (0.7 - 0.06 * (f64::from(doublings - LONG) + part)).max(0.2)
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
        self.measure(a, b, 0.0)
    }

    /// All measures of two documents whose score is `minimum` or more; `None` for all others, which
    /// cost less than [`Verifier::compare`] does.
    pub fn compare_at_least(&mut self, a: &Profile, b: &Profile, minimum: f64) -> Option<Verified> {
        let verified = self.compare_form_at_least(a, b, minimum);
        verified.filter(|verified| verified.score >= minimum)
    }

    /// All measures of two documents whose form scores `minimum` or more, whatever facts they differ in: both as single
    /// precision numbers, as results keep them, so that who decides by these anew decides alike.
    pub fn compare_form_at_least(
        &mut self,
        a: &Profile,
        b: &Profile,
        minimum: f64,
    ) -> Option<Verified> {
        /// More than rounding to single precision changes a score.
        const ROUNDING: f64 = 1e-6;
        let least = (minimum - ROUNDING).max(0.0);
        let verified = self.measure(a, b, Script::of(a, b).value(least));
        (verified.form as f32 >= minimum as f32).then_some(verified)
    }

    /// All measures; wrong and lower ones when the value is below `least`.
    fn measure(&mut self, a: &Profile, b: &Profile, least: f64) -> Verified {
        let bodies = Bodies::of(a, b);
        // No value is above 1: of a mean at least this is in either part.
        let body =
            bodies.as_ref().map(|of| self.measure_whole(of.a, of.b, 2.0 * least - 1.0).value);
        let whole = match body {
            Some(body) => self.measure_whole(a, b, 2.0 * least - body),
            None => self.measure_whole(a, b, least),
        };
        let names = bodies.and_then(|of| of.names).unwrap_or(0.0);
        let value =
            body.map_or(whole.value, |body| (whole.value + body) / 2.0) - OTHER_NAMES * names;
        let form = Script::of(a, b).score(value.max(0.0));
        let facts = Facts::in_all(&a.numbers, &b.numbers);
        let cost = facts::cost_of_numbers(facts, a.characters() + b.characters());
        let most = if only_signs_differ(a, b) { OTHER_SIGNS } else { 1.0 };
        Verified { score: (form - cost).clamp(0.0, most), form, body, facts, ..whole }
    }

    /// The measures of whole texts; wrong and lower ones when the value is below `least`.
    fn measure_whole(&mut self, a: &Profile, b: &Profile, least: f64) -> Verified {
        let overlap = Overlap::of(a, b);
        let cosine = overlap.cosine(a, b);
        let both = (a.characters() + b.characters()) as u64;
        // What the alignment must have in common, less two for the rounding of the lines.
        let alignment = (2.0 * least * least.abs() - cosine * cosine).max(0.0).sqrt();
        let needed = ((alignment * both as f64 / 2.0).floor() - 2.0).max(0.0) as usize;
        let likely = ((1.0 - likely_loss(cosine)) * both as f64 / 2.0) as usize;
        let of_lines = a.lines.common(&b.lines);
        let common = match needed > a.characters().min(b.characters()) {
            true => 0,
            false => self.aligner.common(a.letters(), b.letters(), needed.max(of_lines), likely),
        };
        let alignment = ratio(2 * common.max(of_lines) as u64, both);
        let counted = cosine.min(alignment + most_beyond_alignment(both as usize / 2));
        let value = ((counted * counted + alignment * alignment) / 2.0).sqrt();
        Verified {
            score: value,
            form: value,
            value,
            cosine,
            alignment,
            jaccard: ratio(overlap.smaller, a.sum + b.sum - overlap.smaller),
            containment: ratio(overlap.smaller, a.sum.min(b.sum)),
            body: None,
            facts: Facts::default(),
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
