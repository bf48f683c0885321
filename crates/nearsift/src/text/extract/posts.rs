//! Pages whose main text is not one article: the posts of a discussion, what describes a product, and the main area of
//! a page that has none of these.

use std::collections::BTreeMap;

use super::densest::{Densest, densest_outside, paragraphs, push_line};
use super::marks::{self, Marks};
use super::view::{Block, Blocks, View};
use super::{ARTICLE_HALF_WORDS, FEWEST_HALF_WORDS};

/// Fewer half words than this, on average, are no posts but names, dates and buttons.
const POST_HALF_WORDS: u64 = 10;

/// The parts of posts that have one name.
#[derive(Debug, Default)]
struct Part {
    /// The half words of each.
    elements: BTreeMap<u32, u64>,
    half_words: u64,
    /// It has a name that forum software gives to the text of a post.
    known: bool,
    /// It is named as a comment, a reply or a review, which stand below articles too.
    is_comment: bool,
    /// It is named as what a discussion begins with, and may be the only one of its name.
    is_question: bool,
}

impl Part {
    /// Whether it is the text of posts, rather than what stands beside it.
    fn is_text(&self) -> bool {
        let elements = self.elements.len() as u64;
        (elements >= 2 || self.is_question) && self.half_words >= POST_HALF_WORDS * elements
    }
}

/// The posts of a discussion in order, below its title and without by-lines and signatures; `None` where the page is
/// none. `types`: what its structured data say that it is.
///
/// A page is a discussion if it says so, if its posts have the names of known forum software, or, where it does not say
/// that it is an article, if they outweigh all that stands outside them, with no one post longer than all others together twice over: posts twice, and comments, replies and
/// reviews only where next to nothing stands outside.
///
/// # References
/// Elements of one name in a row are the data records of Liu, Grossman and Zhai, 'Mining data records in web pages', KDD
/// 2003; names stand in for the comparison of subtrees.
pub(super) fn posts(view: &View<'_>, blocks: &Blocks, types: Marks) -> Option<Densest> {
    let around = post_around(view);
    let names = names_of(view, blocks, &around);
    let parts = parts_of(view, blocks, &around, &names);
    let part_of = |block: &Block| {
        names.get(&around[block.node as usize]).and_then(|name| parts.get(name.as_str()))
    };
    let in_posts = |block: &Block| is_text(block) && part_of(block).is_some_and(Part::is_text);

    let outside = densest_outside(blocks, in_posts).half_words;
    let posts: Vec<&Part> = parts.values().filter(|part| part.is_text()).collect();
    let half_words: u64 = posts.iter().map(|part| part.half_words).sum();
    let is_discussion = is_discussion(&posts, half_words, outside, types);
    let count: usize = posts.iter().map(|part| part.elements.len()).sum();
    if count < 2 || half_words < FEWEST_HALF_WORDS || !is_discussion {
        return None;
    }
    // The question above its answers may have a name of its own.
    let in_question = |block: &Block| {
        is_text(block)
            && part_of(block).is_some_and(|part| {
                part.elements.len() == 1 && part.half_words >= FEWEST_HALF_WORDS
            })
    };
    let heading = heading(view, blocks);
    Some(text_of(blocks, |index, block| {
        Some(index) == heading || in_posts(block) || in_question(block)
    }))
}

/// The name of each element that is a post with text, by its node.
fn names_of(view: &View<'_>, blocks: &Blocks, around: &[u32]) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::<u32, String>::new();
    for block in &blocks.blocks {
        let of = around[block.node as usize];
        if of != NONE && is_text(block) {
            names.entry(of).or_insert_with(|| {
                marks::post_name(view.page.attributes_of(&view.page.nodes[of as usize]))
                    .unwrap_or_default()
            });
        }
    }
    names
}

/// The posts of each name, with their text.
fn parts_of<'n>(
    view: &View<'_>,
    blocks: &Blocks,
    around: &[u32],
    names: &'n BTreeMap<u32, String>,
) -> BTreeMap<&'n str, Part> {
    let mut parts = BTreeMap::<&str, Part>::new();
    for block in &blocks.blocks {
        let of = around[block.node as usize];
        let Some(name) = names.get(&of).filter(|_| is_text(block)) else { continue };
        let part = parts.entry(name).or_default();
        *part.elements.entry(of).or_default() += u64::from(block.half_words);
        part.half_words += u64::from(block.half_words);
        part.known |= view.page.nodes[of as usize].has(marks::POST);
        let holds = |words: &[&str]| words.iter().any(|word| name.contains(word));
        part.is_comment = view.page.nodes[of as usize].has(marks::COMMENT);
        part.is_question = !part.is_comment && holds(&["question", "topic", "thread"]);
    }
    parts
}

/// Whether the page is a discussion: its posts have enough text beside the text `outside` of them, in half words.
fn is_discussion(posts: &[&Part], half_words: u64, outside: u64, types: Marks) -> bool {
    let elements = posts.iter().flat_map(|part| part.elements.values());
    let largest = elements.copied().max().unwrap_or_default();
    let is_known = posts.iter().any(|part| part.known);
    if is_known || types & marks::DISCUSSION != 0 {
        half_words * 2 >= outside
    } else if types & marks::ARTICLE != 0 {
        false
    } else if posts.iter().all(|part| part.is_comment) {
        half_words >= 3 * outside && outside < ARTICLE_HALF_WORDS
    } else {
        // An article among teasers of others is no discussion, nor is a long one above its readers' letters.
        half_words >= 2 * outside
            && outside < 3 * ARTICLE_HALF_WORDS
            && largest * 3 <= half_words * 2
    }
}

/// The number of no post.
const NONE: u32 = 0;

/// For each node the innermost element around it that is named as a part of a post; [`NONE`] outside posts and in
/// by-lines and signatures.
fn post_around(view: &View<'_>) -> Vec<u32> {
    let mut around = vec![NONE; view.page.nodes.len()];
    let mut barred = vec![false; view.page.nodes.len()];
    for (index, node) in view.page.nodes.iter().enumerate().skip(1) {
        let parent = node.parent as usize;
        barred[index] = (barred[parent] || node.has(marks::BYLINE | marks::SIGNATURE))
            && !node.has(marks::POST);
        around[index] = match () {
            () if barred[index] => NONE,
            () if node.has(marks::POST | marks::RECORD) && view.reads(index) => index as u32,
            () => around[parent],
        };
    }
    around
}

/// The densest text outside elements with one of these marks.
pub(super) fn densest_without(view: &View<'_>, blocks: &Blocks, marks: Marks) -> Densest {
    let barred = view.within(marks);
    densest_outside(blocks, |block| barred[block.node as usize])
}

/// What describes a product: the heading, its description and its specification; `None` where what is marked as these
/// is less than half of the text outside reviews, other products and the like, and less than half of the `article`'s
/// half words. `description` is that of the structured data.
pub(super) fn product(
    view: &View<'_>,
    blocks: &Blocks,
    description: &str,
    article: u64,
) -> Option<Densest> {
    let mut describes = view.within(marks::DESCRIBES);
    for (index, node) in view.page.nodes.iter().enumerate() {
        describes[index] |= describes[node.parent as usize] || matches!(node.name, "table" | "dl");
    }
    let beside = view.within(marks::BESIDE | marks::ASIDE | marks::COMMENT);
    let heading = heading(view, blocks);
    let is_calm = |block: &Block| !beside[block.node as usize] && is_text(block);
    let calm = text_of(blocks, |_, block| is_calm(block)).half_words;
    let mut found = text_of(blocks, |index, block| {
        Some(index) == heading || (describes[block.node as usize] && is_calm(block))
    });
    let begins: String = description.chars().take(40).collect();
    if !begins.is_empty() && !found.text.replace('\n', " ").contains(&begins) {
        push_line(&mut found.text, description);
        found.half_words += super::half_words(description);
    }
    let is_most = found.half_words * 2 >= calm.min(article);
    (found.half_words >= FEWEST_HALF_WORDS && is_most).then_some(found)
}

/// The text of the one element that says that it is the main area, without navigation and the like in
/// it; `None` where there is none.
pub(super) fn main_area(view: &View<'_>, blocks: &Blocks) -> Option<Densest> {
    let page = view.page;
    let is_main = |index: usize| page.nodes[index].has(marks::MAIN) && view.reads(index);
    let main =
        (1..page.nodes.len()).filter(|&i| is_main(i)).max_by_key(|&i| page.nodes[i].half_words)?;
    let within = page.subtree(main);
    let aside = view.within(marks::ASIDE | marks::SIGNATURE);
    Some(text_of(blocks, |_, block| {
        let at = block.node as usize;
        within.contains(&at) && !aside[at] && is_text(block)
    }))
}

/// Whether a block may be main text: outside navigation, and not made of links.
fn is_text(block: &Block) -> bool {
    !block.framed && block.link_half_words * 2 <= block.half_words
}

/// The first heading of the first order.
fn heading(view: &View<'_>, blocks: &Blocks) -> Option<usize> {
    let nodes = &view.page.nodes;
    let is_heading = |block: &Block| {
        let mut at = block.node as usize;
        // A heading holds a link, or a few words that stand out.
        for _ in 0..4 {
            at = nodes[at].parent as usize;
            if nodes[at].name == "h1" {
                return true;
            }
        }
        false
    };
    blocks.blocks.iter().position(is_heading)
}

fn text_of(blocks: &Blocks, mut is_wanted: impl FnMut(usize, &Block) -> bool) -> Densest {
    let mut found = Densest { text: String::new(), half_words: 0 };
    for (index, (block, text)) in paragraphs(blocks, 0..blocks.blocks.len()).enumerate() {
        if is_wanted(index, block) {
            push_line(&mut found.text, text);
            found.half_words += u64::from(block.half_words);
        }
    }
    found
}
