//! The posts of a forum's page, and the main area of a page that has no article.

use super::densest::{Densest, paragraphs, push_line};
use super::marks;
use super::view::{Blocks, View};

/// The posts in order, each without its signature; `None` where there are fewer than two.
pub(super) fn posts(view: &View<'_>, blocks: &Blocks) -> Option<Densest> {
    let page = view.page;
    let signature = view.within(marks::SIGNATURE);
    // For each node the outermost post that it stands in; 0 for none.
    let mut post = vec![0u32; page.nodes.len()];
    for (index, node) in page.nodes.iter().enumerate().skip(1) {
        post[index] = match post[node.parent as usize] {
            0 if node.has(marks::POST) && view.reads(index) => index as u32,
            around => around,
        };
    }
    let mut found = Densest { text: String::new(), half_words: 0 };
    let (mut last, mut count) = (0, 0);
    for (block, text) in paragraphs(blocks, 0..blocks.blocks.len()) {
        let of = post[block.node as usize];
        if of == 0 || signature[block.node as usize] {
            continue;
        }
        count += u32::from(of != last);
        last = of;
        push_line(&mut found.text, text);
        found.half_words += u64::from(block.half_words);
    }
    (count >= 2).then_some(found)
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
    let mut found = Densest { text: String::new(), half_words: 0 };
    for (block, text) in paragraphs(blocks, 0..blocks.blocks.len()) {
        let at = block.node as usize;
        if within.contains(&at)
            && !aside[at]
            && !block.framed
            && block.link_half_words * 2 <= block.half_words
        {
            push_line(&mut found.text, text);
            found.half_words += u64::from(block.half_words);
        }
    }
    Some(found)
}
