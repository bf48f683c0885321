//! The samples of a text: winnowed grams, and the windows that selected them.

use std::collections::HashMap;

use super::{MinBytes, Repeat, SubstringsError};
use crate::split_mix::split_mix;
use crate::text::key::content_key;

/// The base of the polynomial over a gram's bytes: odd, so that no power of it is 0.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The first 96 bits of the key of a hull, which are as hard to forge as a document's key.
pub type Hull = [u8; 12];

/// What the samples of a corpus are sorted by: gram, hull, least and greatest offset, document, place.
pub type SampleOrder = (u64, Hull, u16, u16, u32, u32);

/// A gram that windows selected, and these windows.
///
/// A window's offset is the number of its bytes before the gram. Where text is periodic, samples that are equal follow each other at one distance
/// and overlap: they are one sample with a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The hash of the gram. Grams that differ may share it.
    pub gram: u64,
    /// The key of all bytes of the windows.
    pub hull: Hull,
    /// The first byte of the gram in the text.
    pub at: u32,
    /// The least offset of a window, inclusive.
    pub least: u16,
    /// The greatest offset of a window, inclusive.
    pub most: u16,
    /// The distance of the samples; 0 if there is one.
    pub stride: u16,
    /// How many there are: at least 1. The last begins fewer than `min_bytes` bytes behind the first.
    pub count: u16,
}

impl Sample {
    /// What samples are sorted by: those of one gram together, and among them the equal ones in the order of the texts.
    pub fn order(&self, document: u32) -> SampleOrder {
        (self.gram, self.hull, self.least, self.most, document, self.at)
    }
}

/// Finds the samples of texts. Keeps its working memory from text to text.
pub struct Sampler {
    min_bytes: MinBytes,
    /// [`BASE`] to the power of a gram's length.
    power: u64,
    least: LeastGram,
    samples: Vec<Sample>,
    seen: HashMap<(Hull, u64, u16, u16), Seen>,
    /// Samples that equal an earlier one of the text and do not overlap it: their number, and where they and the earlier one begin.
    own: Vec<(usize, [u32; 2])>,
}

/// Where a sample stands for the first time in a text, and among the samples the last that has its equals.
struct Seen {
    first: u32,
    sample: usize,
}

impl Sampler {
    /// A sampler of windows of `min_bytes` bytes.
    pub fn new(min_bytes: MinBytes) -> Sampler {
        Sampler {
            min_bytes,
            power: BASE.wrapping_pow(min_bytes.gram()),
            least: LeastGram::new(min_bytes.0 - min_bytes.gram() + 1),
            samples: Vec::new(),
            seen: HashMap::new(),
            own: Vec::new(),
        }
    }

    /// Replaces the samples by those of `text`.
    ///
    /// # Errors
    /// A text of 4 GiB and more. There are no samples then.
    ///
    /// # Complexity
    /// O(bytes).
    pub fn sample(&mut self, text: &[u8]) -> Result<(), SubstringsError> {
        self.samples.clear();
        self.seen.clear();
        self.own.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(SubstringsError::TextTooLong(text.len()));
        }
        let (window, gram) = (self.min_bytes.get(), self.min_bytes.gram() as usize);
        if text.len() < window {
            return Ok(());
        }
        // The last windows in a row that selected one gram: where the first of them begins, and the gram.
        let mut run: Option<(u32, Gram)> = None;
        self.least.clear();
        let widest = (window - gram) as u32;
        let mut sum = text[..gram].iter().fold(0u64, |sum, &byte| step(sum, byte));
        let entering = text[gram..].iter().map(Some).chain([None]);
        for (at, (&leaving, entering)) in (0u32..).zip(text.iter().zip(entering)) {
            let least = self.least.push(Gram { hash: split_mix(sum, 1), at });
            if let Some(start) = at.checked_sub(widest) {
                match run {
                    Some((_, gram)) if gram.at == least.at => {}
                    Some((first, gram)) => {
                        self.end_of_run(text, gram, first, start - 1);
                        run = Some((start, least));
                    }
                    None => run = Some((start, least)),
                }
            }
            let Some(&entering) = entering else { break };
            let left = self.power.wrapping_mul(u64::from(leaving) + 1);
            sum = step(sum, entering).wrapping_sub(left);
        }
        if let Some((first, gram)) = run {
            self.end_of_run(text, gram, first, (text.len() - window) as u32);
        }
        Ok(())
    }

    /// Takes the windows that begin from `first` to `last`, which selected a gram.
    fn end_of_run(&mut self, text: &[u8], gram: Gram, first: u32, last: u32) {
        let Gram { hash, at } = gram;
        let hull = &text[first as usize..last as usize + self.min_bytes.get()];
        let key = content_key([hull]).to_be_bytes();
        let hull = *key.first_chunk().expect("16 bytes");
        let (least, most) = ((at - last) as u16, (at - first) as u16);
        let next = self.samples.len();
        let seen = self.seen.entry((hull, hash, least, most));
        let seen = seen.or_insert(Seen { first: at, sample: next });
        if at - seen.first >= self.min_bytes.0 {
            self.own.push((seen.sample, [at, seen.first]));
            return;
        }
        if let Some(sample) = self.samples.get_mut(seen.sample) {
            let stride = (at - sample.at) / u32::from(sample.count);
            let is_next = sample.at + stride * u32::from(sample.count) == at;
            if is_next && (sample.count == 1 || stride == u32::from(sample.stride)) {
                (sample.stride, sample.count) = (stride as u16, sample.count + 1);
                return;
            }
        }
        seen.sample = next;
        self.samples.push(Sample { gram: hash, hull, at, least, most, stride: 0, count: 1 });
    }

    /// The samples of the text, without those that equal an earlier one and do not overlap it.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Stretches of the text that repeat an earlier one of it, by their start: part of its repeats. `document` is the text's number.
    pub fn own_repeats(&self, document: u32) -> impl Iterator<Item = Repeat> {
        let repeat = move |&(sample, [at, first]): &(usize, [u32; 2])| {
            let Sample { least, most, .. } = self.samples[sample];
            let end = at - u32::from(least) + self.min_bytes.0;
            let start = at - u32::from(most);
            let first_start = first - u32::from(most);
            Repeat { document, start, end, first_document: document, first_start }
        };
        // Copies of one sample that overlap are one repeat: a text of one letter has as many as letters.
        let overlaps = |a: &(usize, [u32; 2]), b: &(usize, [u32; 2])| {
            a.0 == b.0 && b.1[0] - a.1[0] < self.min_bytes.0
        };
        self.own.chunk_by(overlaps).map(move |copies| {
            let [first, last] = [copies.first(), copies.last()].map(|own| own.map(repeat));
            let (first, last) = first.zip(last).expect("a chunk is not empty");
            Repeat { end: last.end, ..first }
        })
    }
}

/// The polynomial of a gram with one byte more.
#[inline]
fn step(sum: u64, byte: u8) -> u64 {
    sum.wrapping_mul(BASE).wrapping_add(u64::from(byte) + 1)
}

#[derive(Debug, Clone, Copy)]
struct Gram {
    hash: u64,
    at: u32,
}

/// The least gram of the last window. It is looked for again only when it has left the window, which on random text is once in half a window.
#[derive(Debug)]
struct LeastGram {
    /// The hashes of the last grams, by their place in a ring of a power of two.
    ring: Vec<u64>,
    /// Grams of a window.
    grams: u32,
    least: Gram,
}

impl LeastGram {
    fn new(grams: u32) -> LeastGram {
        let ring = vec![0; grams.next_power_of_two() as usize];
        LeastGram { ring, grams, least: Gram { hash: u64::MAX, at: 0 } }
    }

    /// Before the first gram of a text.
    fn clear(&mut self) {
        self.least = Gram { hash: u64::MAX, at: 0 };
    }

    /// Takes the next gram, and returns the least of the last [`LeastGram::grams`]: of those with the least hash the last.
    #[inline]
    fn push(&mut self, gram: Gram) -> Gram {
        let mask = self.ring.len() - 1;
        self.ring[gram.at as usize & mask] = gram.hash;
        if gram.hash <= self.least.hash {
            self.least = gram;
        } else if gram.at - self.least.at >= self.grams {
            self.least = self.find(gram.at);
        }
        self.least
    }

    /// The last of the least grams up to `last`.
    #[cold]
    fn find(&self, last: u32) -> Gram {
        let mask = self.ring.len() - 1;
        let (start, end) = ((last + 1 - self.grams) as usize & mask, last as usize & mask);
        // Two stretches of the ring, or one.
        let parts = match start <= end {
            true => [&self.ring[start..=end], &[]],
            false => [&self.ring[start..], &self.ring[..=end]],
        };
        let least = |part: &[u64]| part.iter().copied().fold(u64::MAX, u64::min);
        let hash = least(parts[0]).min(least(parts[1]));
        let place = |part: &[u64]| part.iter().rposition(|&own| own == hash);
        let behind = match (place(parts[1]), place(parts[0])) {
            (Some(at), _) => parts[0].len() + at,
            (None, at) => at.unwrap_or(0),
        };
        Gram { hash, at: last + 1 - self.grams + behind as u32 }
    }
}
