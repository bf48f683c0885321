//! Exact repeats: the stretches of a corpus's texts that stand earlier in it.
//!
//! A window is `L` bytes in a row of one text. A window repeats if an equal one stands in an earlier text, or earlier in its own text without
//! overlapping it. The repeats of a corpus are the bytes of all windows that repeat: every repeat of `L` bytes and more, whole, and nothing else. The
//! first copy of a stretch has no earlier one and stays.
//!
//! No index of all positions is built, as a suffix array is. Three steps find the same bytes:
//!
//! 1. [`Sampler`] selects of each window its gram of least hash, a gram being `L / 2` bytes in a row. Equal windows select the same gram at the same
//!    offset, and neighbouring windows mostly select one and the same, so that about 4 samples stand in `L` bytes. A [`Sample`] stands for the
//!    windows that selected it, and has a key of all bytes of these windows, its hull.
//! 2. Samples with equal keys are equal in all their windows: [`Groups`] makes repeats of all but the first. This needs no text.
//! 3. Samples of one gram with different hulls share some windows, or none. [`resolve`] reads their hulls and finds the windows, by parts: occurrences
//!    whose common core differs have no window in common, and those with the same hull have all.
//!
//! Samples are sorted between the steps, in memory or on disk; [`repeats`] does all of it in memory.
//!
//! ```
//! use nearsift::substrings::{MinBytes, repeats};
//!
//! let licence = "Permission is granted to use, copy and sell this, if this notice is kept in all copies. ";
//! let texts = [format!("One. {licence}"), format!("Two. {licence}And on.")];
//! let found = repeats(&texts, MinBytes::new(50)?)?;
//! assert_eq!(found.len(), 1);
//! assert_eq!(&texts[1][found[0].range()], format!(". {licence}"));
//! assert_eq!((found[0].first_document, found[0].first_start), (0, 3));
//! # Ok::<(), nearsift::substrings::SubstringsError>(())
//! ```
//!
//! # References
//! - Schleimer, Wilkerson and Aiken, 'Winnowing: local algorithms for document fingerprinting', SIGMOD 2003: the samples, their guarantee and their
//!   density.
//! - Lee et al., 'Deduplicating training data makes language models better', ACL 2022: exact repeats of a corpus, by a suffix array.

mod resolve;
mod sample;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::Range;

pub use resolve::{Groups, Occurrence, Placed, resolve};
pub use sample::{Hull, Sample, SampleOrder, Sampler};

/// The length of a window: bytes of the shortest repeat, from [`MinBytes::LEAST`] to [`MinBytes::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinBytes(u32);

/// Why repeats cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubstringsError {
    /// The shortest repeat is out of bounds.
    #[error("{0} bytes is no length of a repeat: expected {least} to {most} bytes", least = MinBytes::LEAST, most = MinBytes::MOST)]
    MinBytes(usize),
    /// A text is too long for the numbers of its bytes.
    #[error(
        "a text of {0} bytes is too long to be searched for repeats: expected less than 4 GiB; split it into documents"
    )]
    TextTooLong(usize),
}

impl MinBytes {
    /// The least bound. Common phrases are as long, and there are more samples than every eighth byte.
    pub const LEAST: usize = 32;
    /// The greatest bound, so that offsets in windows have 16 bits.
    pub const MOST: usize = u16::MAX as usize;

    /// # Errors
    /// A length out of bounds.
    pub fn new(bytes: usize) -> Result<MinBytes, SubstringsError> {
        match bytes {
            MinBytes::LEAST..=MinBytes::MOST => Ok(MinBytes(bytes as u32)),
            _ => Err(SubstringsError::MinBytes(bytes)),
        }
    }

    /// The length in bytes.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// The length of a gram in bytes.
    fn gram(self) -> u32 {
        self.0 / 2
    }
}

/// Bytes of a text that stand earlier. Those of one stretch may come as several that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repeat {
    /// The number of the text.
    pub document: u32,
    /// The first byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
    /// The number of the text with the earlier bytes.
    pub first_document: u32,
    /// The first of the earlier bytes. They equal the whole repeat, or its first `min_bytes` bytes and more if copies of them that overlap make it up.
    pub first_start: u32,
}

impl Repeat {
    /// The bytes of the text.
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Appends another repeat of the same text, that does not begin before this one, if the two touch and repeat the same stretch.
    #[must_use]
    pub fn append(&mut self, next: &Repeat) -> bool {
        let shift = |r: &Repeat| i64::from(r.first_start) - i64::from(r.start);
        let is_one = self.document == next.document
            && self.first_document == next.first_document
            && next.start <= self.end
            && (shift(self) == shift(next) || next.end <= self.end);
        if is_one {
            self.end = self.end.max(next.end);
        }
        is_one
    }
}

/// All repeats of `texts`, by text and start. Those that touch and repeat the same stretch are one; others may overlap.
///
/// # Errors
/// A text of 4 GiB and more.
///
/// # Complexity
/// O(bytes) time for texts without repeats, and with them as good as; at most O(bytes · log `min_bytes`). About 150 bytes of memory for `min_bytes` bytes of text.
pub fn repeats<T: AsRef<[u8]>>(
    texts: &[T],
    min_bytes: MinBytes,
) -> Result<Vec<Repeat>, SubstringsError> {
    let mut sampler = Sampler::new(min_bytes);
    let mut samples = Vec::new();
    let mut found = Vec::new();
    for (document, text) in (0..).zip(texts) {
        sampler.sample(text.as_ref())?;
        samples.extend(sampler.samples().iter().map(|&sample| (sample, document)));
        found.extend(sampler.own_repeats(document));
    }
    samples.sort_unstable_by_key(|(sample, document)| sample.order(*document));
    let mut groups = Groups::new(min_bytes);
    let mut open = Vec::new();
    for (sample, document) in samples {
        match groups.place(&sample, document) {
            Placed::Held => {}
            Placed::Repeat(repeat) => found.push(repeat),
            Placed::Open { group, held, own } => {
                open.extend(held.into_iter().chain([own]).map(|occurrence| (group, occurrence)));
            }
        }
    }
    open.sort_unstable_by_key(|(group, occurrence)| (*group, occurrence.order()));
    for group in open.chunk_by(|a, b| a.0 == b.0) {
        let occurrences: Vec<Occurrence> = group.iter().map(|(_, own)| *own).collect();
        let mut read = |nth: usize, bytes: Range<u32>, into: &mut Vec<u8>| {
            let text = texts[occurrences[nth].document as usize].as_ref();
            into.extend_from_slice(&text[bytes.start as usize..bytes.end as usize]);
            Ok::<(), Infallible>(())
        };
        let mut take = |repeat| {
            found.push(repeat);
            Ok(())
        };
        let Ok(()) = resolve(&occurrences, min_bytes, &mut read, &mut take);
    }
    found.sort_unstable();
    found.dedup_by(|next, last| last.append(next));
    Ok(found)
}
