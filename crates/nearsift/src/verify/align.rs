//! The longest common subsequence of two texts.
//!
//! # References
//! Crochemore, Iliopoulos, Pinzon and Reid, 'A fast and practical bit-vector algorithm for the longest
//! common subsequence problem', Information Processing Letters 80, 2001; Hyyrö, 'Bit-parallel
//! LCS-length computation revisited', AWOCA 2004; Ukkonen, 'Algorithms for approximate string
//! matching', Information and Control 64, 1985, for the band.

use super::anchor::{self, Anchors};

/// Texts whose lengths, without their equal ends, have a larger product are compared by anchors.
const EXACT_PRODUCT: usize = 1 << 24;

/// Rows of the table that are filled at a time: the carry of each is a bit of a word.
const ROWS: usize = 64;

/// The fewest characters of the shorter text whose loss a band has room for.
const LEAST_LOSS: usize = 24;

/// How many times as many characters the next band may lose.
const WIDER: usize = 3;

/// Rows between two looks at whether the least can still be reached.
const ROWS_PER_LOOK: usize = 2 * ROWS;

/// A number for each character that stands in the shorter text.
const CHARACTERS: usize = char::MAX as usize + 1;

/// Computes longest common subsequences, and keeps its memory from pair to pair.
///
/// # Complexity
/// 2 MB of address space for the characters' numbers, of which a pair touches the pages of its own
/// scripts; at most 2.2 MB for match masks.
#[derive(Debug)]
pub(super) struct Aligner {
    /// The number of each character that the shorter text has, from 1; 0 for all others.
    numbers: Vec<u16>,
    /// For each number a bit vector over the shorter text: where that character stands.
    masks: Vec<u64>,
    /// One bit a character of the shorter text: 0 where a longest common subsequence grows.
    column: Vec<u64>,
    anchors: Anchors,
}

impl Aligner {
    pub(super) fn new() -> Aligner {
        Aligner {
            numbers: vec![0; CHARACTERS],
            masks: Vec::new(),
            column: Vec::new(),
            anchors: Anchors::default(),
        }
    }

    /// The length of the longest common subsequence if it is `least` or more, else some number below
    /// `least` that it is not below. Of texts too long for that, a lower bound.
    ///
    /// It is found soonest when `likely` is not above it, and not far below.
    pub(super) fn common(&mut self, a: &[u32], b: &[u32], least: usize, likely: usize) -> usize {
        let (ends, a, b) = without_equal_ends(a, b);
        if fits(a, b) {
            ends + self.exact(a, b, least.saturating_sub(ends), likely.saturating_sub(ends))
        } else if ends + a.len().min(b.len()) < least {
            0
        } else {
            ends + anchor::common(self, a, b)
        }
    }

    /// What is lent to the search for anchors.
    pub(super) fn take_anchors(&mut self) -> Anchors {
        std::mem::take(&mut self.anchors)
    }

    pub(super) fn give_anchors(&mut self, anchors: Anchors) {
        self.anchors = anchors;
    }

    /// As [`Aligner::common`] of texts that [fit](fits).
    ///
    /// Near duplicates differ little, so the narrow band of the table is tried first that `likely`
    /// needs, then wider ones: one that is too narrow is left as soon as that many characters are lost.
    pub(super) fn exact(&mut self, a: &[u32], b: &[u32], least: usize, likely: usize) -> usize {
        let (rows, columns) = if a.len() < b.len() { (b, a) } else { (a, b) };
        if columns.is_empty() || columns.len() < least {
            return 0;
        }
        self.fill_masks(columns);
        // A band narrower than a block saves nothing.
        let mut bound = likely.min(columns.len().saturating_sub(LEAST_LOSS)).max(least);
        let length = loop {
            let length = self.banded(rows, columns.len(), bound);
            if length >= bound || bound == least {
                break length;
            }
            let lost = WIDER * (columns.len() - bound);
            bound = columns.len().saturating_sub(lost).max(least);
        };
        for &character in columns {
            self.numbers[character as usize] = 0;
        }
        length
    }

    fn fill_masks(&mut self, columns: &[u32]) {
        let blocks = columns.len().div_ceil(64);
        let mut distinct = 0;
        self.masks.clear();
        // The first is of the characters that the shorter text does not have.
        self.masks.resize(blocks, 0);
        for (at, &character) in columns.iter().enumerate() {
            let number = &mut self.numbers[character as usize];
            if *number == 0 {
                distinct += 1;
                *number = distinct;
                self.masks.resize((usize::from(distinct) + 1) * blocks, 0);
            }
            self.masks[usize::from(*number) * blocks + at / 64] |= 1 << (at % 64);
        }
    }

    /// As [`Aligner::common`], by a table of which only those cells are filled that a common
    /// subsequence of `least` characters can go through.
    ///
    /// Row j stands for the first j characters of the longer text, and the bits of `column` for the
    /// steps by which the length grows along the shorter one. A match (i, j) of such a subsequence
    /// leaves at most `columns - least` characters of one text and `rows - least` of the other
    /// unmatched, so i - j is bounded on both sides. Blocks to the left of the band keep their
    /// bits and pass no carry on, as if their later matches did not exist; blocks to its right are all
    /// ones, through which a carry changes nothing.
    fn banded(&mut self, rows: &[u32], columns: usize, least: usize) -> usize {
        let blocks = columns.div_ceil(64);
        self.column.clear();
        self.column.resize(blocks, !0);
        let (left, right) = (rows.len() - least, columns - least);
        for (row, rows_here) in (0..).step_by(ROWS).zip(rows.chunks(ROWS)) {
            if row > 0
                && row % ROWS_PER_LOOK == 0
                && self.grown(columns) + (rows.len() - row) < least
            {
                return 0;
            }
            // A band that is somewhat wider than asked lets more matches count, and no wrong ones.
            let mut block = row.saturating_sub(left) / 64;
            let end = (row + rows_here.len() - 1 + right).min(columns - 1) / 64 + 1;
            let mut starts = [0; ROWS];
            for (start, &character) in starts.iter_mut().zip(rows_here) {
                *start = usize::from(self.numbers[character as usize]) * blocks;
            }
            let starts = &starts[..rows_here.len()];
            let mut carries = 0;
            while block < end {
                let (column, masks) = (&mut self.column[block..end], &self.masks[block..]);
                let taken = match column.len() {
                    4.. => fill::<4>(column, masks, starts, &mut carries),
                    3 => fill::<3>(column, masks, starts, &mut carries),
                    2 => fill::<2>(column, masks, starts, &mut carries),
                    _ => fill::<1>(column, masks, starts, &mut carries),
                };
                block += taken;
            }
        }
        self.grown(columns)
    }

    /// The length so far: the zeros among the bits of `column`.
    fn grown(&self, columns: usize) -> usize {
        let ones: u32 = self.column.iter().map(|block| block.count_ones()).sum();
        // The bits above the text's own stay ones: no match is there, and a carry leaves them.
        columns.next_multiple_of(64) - ones as usize
    }
}

/// Fills some rows of the first `WIDTH` blocks of a column, in registers. The masks of a row begin at
/// its start; `carries` has a bit for each row, of what comes from the blocks to the left and then of
/// what goes to those on the right. Returns `WIDTH`.
///
/// In each run of ones that ends with a zero, a row's first match becomes the zero.
#[inline]
fn fill<const WIDTH: usize>(
    column: &mut [u64],
    masks: &[u64],
    starts: &[usize],
    carries: &mut u64,
) -> usize {
    let Some(column) = column.first_chunk_mut::<WIDTH>() else { return WIDTH };
    let (mut bits, mut to_right) = (*column, 0);
    for (row, &start) in starts.iter().enumerate() {
        let Some(masks) = masks.get(start..).and_then(|own| own.first_chunk::<WIDTH>()) else {
            continue;
        };
        let mut carry = *carries >> row & 1 == 1;
        // Step by step over all blocks: the additions are then one chain that the carry runs through.
        let mut matches = [0; WIDTH];
        for i in 0..WIDTH {
            matches[i] = bits[i] & masks[i];
        }
        let mut sums = [0; WIDTH];
        for i in 0..WIDTH {
            (sums[i], carry) = bits[i].carrying_add(matches[i], carry);
        }
        for i in 0..WIDTH {
            bits[i] = sums[i] | (bits[i] ^ matches[i]);
        }
        to_right |= u64::from(carry) << row;
    }
    *column = bits;
    *carries = to_right;
    WIDTH
}

/// A length that is likely of near duplicates of which nothing more is known.
pub(super) fn usual(a: &[u32], b: &[u32]) -> usize {
    let shorter = a.len().min(b.len());
    shorter - shorter / 8
}

/// Whether the table of two texts is small enough to be filled.
pub(super) fn fits(a: &[u32], b: &[u32]) -> bool {
    a.len().saturating_mul(b.len()) <= EXACT_PRODUCT
}

/// The characters in the equal beginnings and endings, which are part of some longest common
/// subsequence, and what is left of both texts.
pub(super) fn without_equal_ends<'t>(a: &'t [u32], b: &'t [u32]) -> (usize, &'t [u32], &'t [u32]) {
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    (start + end, &a[..a.len() - end], &b[..b.len() - end])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition's recursion, one cell after the other.
    pub(in super::super) fn naive(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for &x in a {
            let mut diagonal = 0;
            for (j, &y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    pub(in super::super) fn characters(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    /// A text and a copy of it with some characters replaced, removed and put in.
    pub(in super::super) fn edited(
        alphabet: u32,
        length: std::ops::Range<usize>,
        edits: std::ops::Range<usize>,
    ) -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        let edit = (any::<prop::sample::Index>(), 0u8..3, 0..alphabet);
        (prop::collection::vec(0..alphabet, length), prop::collection::vec(edit, edits)).prop_map(
            |(text, edits)| {
                let mut copy = text.clone();
                for (at, kind, character) in edits {
                    let at = at.index(copy.len() + 1);
                    match kind {
                        0 => copy.insert(at, character),
                        1 if at < copy.len() => drop(copy.remove(at)),
                        _ if at < copy.len() => copy[at] = character,
                        _ => {}
                    }
                }
                (text, copy)
            },
        )
    }

    fn check(aligner: &mut Aligner, a: &[u32], b: &[u32], least: usize) {
        let expect = naive(a, b);
        for likely in [0, expect / 2, expect.saturating_sub(9), expect, expect + 40, usize::MAX] {
            let found = aligner.common(a, b, least, likely);
            if expect >= least {
                assert_eq!(found, expect, "{a:?} {b:?} {least} {likely}");
            } else {
                assert!(found <= expect, "{a:?} {b:?} {least} {likely}");
            }
        }
        let number = |character: &u32| aligner.numbers[*character as usize];
        assert!(a.iter().chain(b).all(|c| number(c) == 0), "all numbers are taken back");
    }

    #[test]
    fn lengths_people_can_count() {
        let check = |a: &str, b: &str, expect| {
            let found = Aligner::new().common(&characters(a), &characters(b), 0, 0);
            assert_eq!(found, expect, "{a} {b}");
        };
        check("", "", 0);
        check("", "a", 0);
        check("今天北京晴", "今天上海晴", 3);
        check("abcbdab", "bdcaba", 4);
        check("😀a\u{10ffff}", "a\u{10ffff}😀", 2);
        check(&"a".repeat(1000), &"a".repeat(64), 64);
    }

    proptest! {
        #[test]
        fn equals_the_table_of_any_texts(
            a in prop::collection::vec(0u32..4, 0..300),
            b in prop::collection::vec(0u32..4, 0..300),
            least in 0usize..300,
        ) {
            check(&mut Aligner::new(), &a, &b, 0);
            check(&mut Aligner::new(), &a, &b, least);
        }

        #[test]
        fn equals_the_table_of_edited_texts(
            (a, b) in edited(60, 0..900, 0..120),
            share in 0.5f64..1.01,
        ) {
            let mut aligner = Aligner::new();
            check(&mut aligner, &a, &b, 0);
            check(&mut aligner, &b, &a, (share * a.len() as f64) as usize);
        }
    }
}
