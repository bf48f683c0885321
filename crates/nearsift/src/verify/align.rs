//! The longest common subsequence of two texts.
//!
//! # References
//! Crochemore, Iliopoulos, Pinzon and Reid, 'A fast and practical bit-vector algorithm for the longest
//! common subsequence problem', Information Processing Letters 80, 2001; Hyyrö, 'Bit-parallel
//! LCS-length computation revisited', AWOCA 2004; Ukkonen, 'Algorithms for approximate string
//! matching', Information and Control 64, 1985, for the band; Myers, 'A fast bit-vector algorithm for
//! approximate string matching based on dynamic programming', Journal of the ACM 46(3), 1999, section 4,
//! for blocks that come into the band and leave it as the table is filled.

use std::ops::Range;

use super::anchor::{self, Anchors};

/// Texts whose lengths, without their equal ends, have a larger product are compared by anchors.
const EXACT_PRODUCT: usize = 1 << 24;

/// Rows of the table that are filled at a time: the carry of each is a bit of a word.
const ROWS: usize = 64;

/// The fewest characters of the shorter text whose loss a band has room for.
const LEAST_LOSS: usize = 24;

/// How many times as many characters the next band may lose.
const WIDER: usize = 3;

/// A number for each character that stands in the shorter text.
const CHARACTERS: usize = char::MAX as usize + 1;

/// Characters below this are ASCII.
const ASCII: u32 = 128;

/// Memory for the numbers of more characters than this is not kept.
const HUGE: usize = 1 << 20;

/// The most blocks of 64 characters that a shorter text has whose table is filled.
const BLOCKS: usize = 64;

/// The most blocks that are filled at a time, in registers.
const MOST_WIDTH: usize = 4;

/// Computes longest common subsequences, and keeps its memory from pair to pair.
///
/// # Complexity
/// 2 MB of address space for the characters' numbers, of which a pair touches the pages of its own
/// scripts; at most 2.2 MB for match masks.
#[derive(Debug)]
pub(super) struct Aligner {
    /// The number of each character that the shorter text has, from 1; 0 for all others, and where both texts are ASCII.
    numbers: Vec<u16>,
    /// The numbers of the characters of the longer text and of the shorter one.
    rows: Vec<u16>,
    columns: Vec<u16>,
    /// For each number and each block that is in the band a bit vector: where in the block that character
    /// stands. All zeros between two tables.
    masks: Vec<u64>,
    /// One bit a character of the shorter text: 0 where a longest common subsequence grows.
    column: Vec<u64>,
    anchors: Anchors,
}

impl Aligner {
    pub(super) fn new() -> Aligner {
        Aligner {
            numbers: vec![0; CHARACTERS],
            rows: Vec::new(),
            columns: Vec::new(),
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
        let distinct = self.number(rows, columns);
        // A band narrower than a block saves nothing.
        let mut bound = likely.min(columns.len().saturating_sub(LEAST_LOSS)).max(least);
        loop {
            let length = self.banded(distinct, bound);
            if length >= bound || bound == least {
                return length;
            }
            let lost = WIDER * (columns.len() - bound);
            bound = columns.len().saturating_sub(lost).max(least);
        }
    }

    /// Numbers the distinct characters of the shorter text, up to the number that is returned, and writes both texts in
    /// these numbers.
    fn number(&mut self, rows: &[u32], columns: &[u32]) -> usize {
        let Aligner { numbers, rows: own_rows, columns: own_columns, .. } = self;
        own_columns.clear();
        if own_rows.capacity() > HUGE {
            *own_rows = Vec::new();
        }
        own_rows.clear();
        // So few characters are their own numbers.
        let bits = |text: &[u32]| text.iter().fold(0, |bits, character| bits | character);
        if (bits(rows) | bits(columns)) < ASCII {
            own_columns.extend(columns.iter().map(|&character| character as u16));
            own_rows.extend(rows.iter().map(|&character| character as u16));
            return ASCII as usize - 1;
        }
        let mut distinct = 0;
        own_columns.extend(columns.iter().map(|&character| {
            let number = &mut numbers[character as usize];
            // Without a branch: whether a character came before is a coin toss.
            distinct += u16::from(*number == 0);
            *number = if *number == 0 { distinct } else { *number };
            *number
        }));
        own_rows.extend(rows.iter().map(|&character| numbers[character as usize]));
        for &character in columns {
            numbers[character as usize] = 0;
        }
        distinct.into()
    }

    /// As [`Aligner::common`] of the numbered texts, by a table of which only those cells are filled
    /// that a common subsequence of `least` characters can go through.
    fn banded(&mut self, distinct: usize, least: usize) -> usize {
        let lost = self.rows.len() + self.columns.len() - 2 * least;
        // Between the first block of a band and its last lie at most as many columns as are lost, and those
        // that a run of rows goes on by.
        let blocks = lost.div_ceil(64) + 2;
        match blocks.min(self.columns.len().div_ceil(64)) {
            ..=8 => self.filled::<8, { 8 + MOST_WIDTH - 1 }>(distinct, least),
            9..=16 => self.filled::<16, { 16 + MOST_WIDTH - 1 }>(distinct, least),
            _ => self.filled::<BLOCKS, { BLOCKS + MOST_WIDTH - 1 }>(distinct, least),
        }
    }

    /// [`Aligner::banded`] for bands of up to `RING` blocks: the masks of block b have the place b modulo
    /// `RING` among the `PLACES` of their character, and the first of them are repeated behind the last.
    ///
    /// Row i stands for the first i characters of the longer text, and the bits of `column` for the
    /// steps by which the length grows along the shorter one: of its first j characters, as many zeros
    /// are common to both. Blocks to the left of the band keep their bits and pass no carry on, as if
    /// their later matches did not exist; blocks to its right are all ones, through which a carry changes
    /// nothing. So a band only ever hides matches.
    fn filled<const RING: usize, const PLACES: usize>(
        &mut self,
        distinct: usize,
        least: usize,
    ) -> usize {
        let Aligner { rows, columns, masks, column, .. } = self;
        let blocks = columns.len().div_ceil(64);
        column.clear();
        column.resize(blocks, !0);
        // The first number is that of the characters that the shorter text does not have, if these have one.
        let places = (distinct + 1) * PLACES;
        if masks.len() < places {
            masks.resize(places, 0);
        }
        let (masks, _) = masks[..places].as_chunks_mut::<PLACES>();
        let mut band = Band { blocks: 0..0, zeros_before: 0 };
        let mut is_possible = true;
        for (row, rows_here) in (0..).step_by(ROWS).zip(rows.chunks(ROWS)) {
            let before = band.blocks.clone();
            is_possible = band.advance(column, row, rows.len() - least, columns.len() - least);
            for block in before.start..before.end.min(band.blocks.start) {
                take_out::<RING, PLACES>(masks, columns, block);
            }
            for block in before.end.max(band.blocks.start)..band.blocks.end {
                put_in::<RING, PLACES>(masks, columns, block);
            }
            if !is_possible {
                break;
            }
            let (mut block, mut carries) = (band.blocks.start, 0);
            while block < band.blocks.end {
                let column = &mut column[block..band.blocks.end];
                block += match column.len() {
                    4.. => fill::<4, RING, PLACES>(column, masks, block, rows_here, &mut carries),
                    3 => fill::<3, RING, PLACES>(column, masks, block, rows_here, &mut carries),
                    2 => fill::<2, RING, PLACES>(column, masks, block, rows_here, &mut carries),
                    _ => fill::<1, RING, PLACES>(column, masks, block, rows_here, &mut carries),
                };
            }
        }
        for block in band.blocks {
            take_out::<RING, PLACES>(masks, columns, block);
        }
        if is_possible { zeros(column) } else { 0 }
    }
}

/// The blocks that matter to a run of rows.
struct Band {
    blocks: Range<usize>,
    /// The zeros in the blocks to the left, which stay as they are.
    zeros_before: usize,
}

impl Band {
    /// Moves on to the rows from `row` on, [`ROWS`] at most, of a common subsequence that leaves out
    /// at most `left` characters of the longer text and `right` of the shorter one. `false` when there is
    /// none.
    ///
    /// Where such a subsequence has passed the first `row` characters of the one and j of the other, with V
    /// in common, `row` - V <= `left` and j - V <= `right`. V is at most the number of zeros among the first j
    /// bits, so the zeros tell where j begins, and the ones where it ends. Each row turns at most
    /// one of the first j ones into a zero, so that the end holds for the rows that follow with as many ones
    /// more. Neither end ever goes back.
    fn advance(&mut self, column: &[u64], row: usize, left: usize, right: usize) -> bool {
        let Band { blocks, zeros_before } = self;
        while let Some(block) = column.get(blocks.start) {
            let zeros = *zeros_before + block.count_zeros() as usize;
            if zeros + left >= row {
                break;
            }
            *zeros_before = zeros;
            blocks.start += 1;
        }
        let mut ones = 64 * blocks.start - *zeros_before;
        let mut end = blocks.start;
        while let Some(block) = column.get(end).filter(|_| ones < right + ROWS) {
            ones += block.count_ones() as usize;
            end += 1;
        }
        blocks.end = end;
        blocks.start < end
    }
}

/// The place of a block among those of the ring, and the one where it is repeated behind them: so some blocks
/// in a row are some places in a row, wherever they begin.
fn places<const RING: usize, const PLACES: usize>(block: usize) -> (usize, Option<usize>) {
    let place = block % RING;
    (place, Some(place + RING).filter(|&again| again < PLACES))
}

/// Sets the bits of a block's characters.
fn put_in<const RING: usize, const PLACES: usize>(
    masks: &mut [[u64; PLACES]],
    columns: &[u16],
    block: usize,
) {
    let (place, again) = places::<RING, PLACES>(block);
    let columns = &columns[64 * block..];
    for (bit, &number) in columns.iter().take(64).enumerate() {
        masks[usize::from(number)][place] |= 1 << bit;
    }
    let Some(again) = again else { return };
    for &number in columns.iter().take(64) {
        let masks = &mut masks[usize::from(number)];
        masks[again] = masks[place];
    }
}

/// Takes them back.
fn take_out<const RING: usize, const PLACES: usize>(
    masks: &mut [[u64; PLACES]],
    columns: &[u16],
    block: usize,
) {
    let (place, again) = places::<RING, PLACES>(block);
    for &number in columns[64 * block..].iter().take(64) {
        let masks = &mut masks[usize::from(number)];
        masks[place] = 0;
        if let Some(again) = again {
            masks[again] = 0;
        }
    }
}

/// The length so far. The bits above the text's own stay ones: no match is there, and a carry leaves them.
fn zeros(column: &[u64]) -> usize {
    column.iter().map(|block| block.count_zeros() as usize).sum()
}

/// Fills some rows of the first `WIDTH` blocks of a column, the first of which is number `block` of all, in
/// registers. `carries` has a bit for each row, of what comes from the blocks to the left and then of
/// what goes to those on the right. Returns `WIDTH`.
///
/// In each run of ones that ends with a zero, a row's first match becomes the zero.
#[inline]
fn fill<const WIDTH: usize, const RING: usize, const PLACES: usize>(
    column: &mut [u64],
    masks: &[[u64; PLACES]],
    block: usize,
    rows: &[u16],
    carries: &mut u64,
) -> usize {
    const { assert!(WIDTH <= MOST_WIDTH && PLACES == RING + MOST_WIDTH - 1) };
    let Some(column) = column.first_chunk_mut::<WIDTH>() else { return WIDTH };
    let mut bits = *column;
    let first = block % RING;
    let (mut from_left, mut to_right) = (*carries, 0u64);
    for &number in rows {
        let masks = &masks[usize::from(number)];
        let mut matches = [0; WIDTH];
        for i in 0..WIDTH {
            matches[i] = bits[i] & masks[first + i];
        }
        // One chain of additions, through which the carry runs: over all blocks, and into the lowest bit of those
        // that leave, of which the first row's then is the highest.
        let mut carry = from_left & 1 == 1;
        from_left >>= 1;
        let mut sums = [0; WIDTH];
        for i in 0..WIDTH {
            (sums[i], carry) = bits[i].carrying_add(matches[i], carry);
        }
        (to_right, _) = to_right.carrying_add(to_right, carry);
        for i in 0..WIDTH {
            bits[i] = sums[i] | (bits[i] ^ matches[i]);
        }
    }
    *column = bits;
    *carries = to_right.reverse_bits() >> (ROWS - rows.len());
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
        length: Range<usize>,
        edits: Range<usize>,
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
        // The same in ASCII, in both, and beyond.
        for (times, plus) in [(1, 0), (9, 0), (1, 0x4e00)] {
            let other =
                |text: &[u32]| -> Vec<u32> { text.iter().map(|c| times * c + plus).collect() };
            let (a, b) = (other(a), other(b));
            for likely in [0, expect / 2, expect.saturating_sub(9), expect, expect + 40, usize::MAX]
            {
                let found = aligner.common(&a, &b, least, likely);
                if expect >= least {
                    assert_eq!(found, expect, "{a:?} {b:?} {least} {likely}");
                } else {
                    assert!(found <= expect, "{a:?} {b:?} {least} {likely}");
                }
            }
            let number = |character: &u32| aligner.numbers[*character as usize];
            assert!(a.iter().chain(&b).all(|c| number(c) == 0), "all numbers are taken back");
        }
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
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Bands of every width, and passages that stand elsewhere.
        #[test]
        fn equals_the_table_of_long_texts(
            (a, mut b) in edited(200, 900..2600, 0..400),
            passage in 1usize..700,
            from in any::<prop::sample::Index>(),
            to in any::<prop::sample::Index>(),
            share in 0.3f64..1.01,
        ) {
            let from = from.index(b.len());
            let passage: Vec<u32> = b.drain(from..(from + passage).min(b.len())).collect();
            let to = to.index(b.len() + 1);
            b.splice(to..to, passage);
            let expect = naive(&a, &b);
            let mut aligner = Aligner::new();
            for (least, likely) in [(0, 0), (0, usize::MAX), (expect / 2, expect), (expect, expect)] {
                prop_assert_eq!(aligner.common(&a, &b, least, likely), expect);
                prop_assert!(aligner.masks.iter().all(|&mask| mask == 0));
            }
            prop_assert!(aligner.common(&a, &b, expect + 1, expect + 1) <= expect);
            let least = (share * a.len() as f64) as usize;
            let found = aligner.common(&b, &a, least, expect);
            let is_right = if expect >= least { found == expect } else { found <= expect };
            prop_assert!(is_right, "{} {} {}", found, expect, least);
        }
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
