//! The densest text of a page: which of its blocks are the main text, by words and links alone.
//!
//! # References
//! Kohlschütter, Fankhauser and Nejdl, 'Boilerplate detection using shallow text features', WSDM
//! 2010, algorithm 2 (which block is content); Pasternack and Roth, 'Extracting article text from the
//! web with maximum subsequence segmentation', WWW 2009 (which run of blocks is the article).

use std::collections::BTreeSet;
use std::ops::Range;

use super::view::{Block, Blocks};

/// The main text by blocks.
pub(super) struct Densest {
    pub(super) text: String,
    /// Twice the words of it.
    pub(super) half_words: u64,
}

pub(super) fn densest(page: &Blocks) -> Densest {
    densest_outside(page, |_| false)
}

/// The densest text outside some blocks, which are as framed as others that no main text stands in.
///
/// # Complexity
/// Linear in the number of blocks, and in the text of the run that is returned.
pub(super) fn densest_outside(page: &Blocks, is_barred: impl Fn(&Block) -> bool) -> Densest {
    let bar = |block: &Block| Block { framed: block.framed || is_barred(block), ..*block };
    let blocks: Vec<Block> = page.blocks.iter().map(bar).collect();
    let content: Vec<bool> = (0..blocks.len()).map(|i| is_content(&blocks, i)).collect();
    let run = best_run(blocks.iter().zip(&content).map(|(block, &is)| score(block, is)));
    text_of(paragraphs_of(&page.text, &blocks, run))
}

/// All text but navigation, footers, what is hidden, and links.
pub(super) fn outside_frames(page: &Blocks) -> Densest {
    text_of(paragraphs(page, 0..page.blocks.len()))
}

fn text_of<'p>(paragraphs: impl Iterator<Item = (&'p Block, &'p str)>) -> Densest {
    let mut densest = Densest { text: String::new(), half_words: 0 };
    for (block, text) in paragraphs {
        if !block.framed && u64::from(block.link_half_words) * 2 <= u64::from(block.half_words) {
            push_line(&mut densest.text, text);
            densest.half_words += u64::from(block.half_words);
        }
    }
    densest
}

/// All text of the page.
pub(super) fn everything(page: &Blocks) -> String {
    let mut out = String::new();
    for (_, text) in paragraphs(page, 0..page.blocks.len()) {
        push_line(&mut out, text);
    }
    out
}

/// The lines of navigation, footers and what is hidden.
pub(super) fn in_frames(page: &Blocks) -> BTreeSet<&str> {
    let framed = paragraphs(page, 0..page.blocks.len()).filter(|(block, _)| block.framed);
    framed.flat_map(|(_, text)| text.lines()).collect()
}

/// Appends a line unless it is empty.
pub(super) fn push_line(out: &mut String, line: &str) {
    if !out.is_empty() && !line.is_empty() {
        out.push('\n');
    }
    out.push_str(line);
}

pub(super) fn paragraphs(
    page: &Blocks,
    run: Range<usize>,
) -> impl Iterator<Item = (&Block, &str)> + '_ {
    paragraphs_of(&page.text, &page.blocks, run)
}

/// The blocks of a run, each with its part of a page's text.
fn paragraphs_of<'p>(
    text: &'p str,
    blocks: &'p [Block],
    run: Range<usize>,
) -> impl Iterator<Item = (&'p Block, &'p str)> {
    run.map(move |i| {
        let begin = if i == 0 { 0 } else { blocks[i - 1].end };
        (&blocks[i], &text[begin..blocks[i].end])
    })
}

/// The tree of algorithm 2: by the share of links and the number of words of the block and of the
/// blocks before and after it.
fn is_content(blocks: &[Block], index: usize) -> bool {
    let at = |i: usize| blocks.get(i).copied().unwrap_or_default();
    let words = |b: Block| b.half_words / 2;
    let links = |b: Block, nineths: u64| {
        u64::from(b.link_half_words) * 9 > u64::from(b.half_words) * nineths
    };
    let before = if index == 0 { Block::default() } else { at(index - 1) };
    let (this, after) = (at(index), at(index + 1));
    if this.framed || links(this, 3) {
        return false;
    }
    if links(before, 5) {
        words(this) > 40 || words(after) > 17
    } else {
        words(this) > 16 || words(after) > 15 || words(before) > 4
    }
}

fn score(block: &Block, is_content: bool) -> i64 {
    let (words, links) = (i64::from(block.half_words), i64::from(block.link_half_words));
    if is_content { words } else { -(20 + (words / 2 + links).min(100)) }
}

/// The run of blocks with the largest sum of scores; the first of several.
fn best_run(scores: impl Iterator<Item = i64>) -> Range<usize> {
    let (mut best, mut best_sum) = (0..0, 0);
    let (mut begin, mut sum) = (0, 0);
    for (index, score) in scores.enumerate() {
        if sum <= 0 {
            (begin, sum) = (index, 0);
        }
        sum += score;
        if sum > best_sum {
            (best, best_sum) = (begin..index + 1, sum);
        }
    }
    best
}
