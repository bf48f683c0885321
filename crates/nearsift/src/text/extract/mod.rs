//! The main text of a web page, without navigation, adverts and footers.
//!
//! Two extractors share the work. The first builds the document's tree and scores its elements (the
//! crate `dom_smoothie`, a port of Mozilla's Readability); it is the better one, and on hostile pages
//! its time grows with the square or the cube of the page. The second takes the densest run of blocks
//! from one linear pass over the page's tokens; it steps in wherever the first may not be used or
//! finds nothing plausible.
//!
//! There is no clock here: the same page gives the same text on every machine. What the first
//! extractor would cost is estimated beforehand, by the same linear pass, and held to [`Limits`].
//!
//! # References
//! See the private modules: Kohlschütter et al., WSDM 2010; Pasternack and Roth, WWW 2009.

mod densest;
mod marks;
mod page;
mod posts;
mod structured;
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_smoothie::{Config, Readability, TextMode};

use densest::{Densest, everything, in_frames, outside_frames};
use marks::Marks;
use page::{Page, push_collapsed};
use view::{Blocks, View};

/// How far the tree-building extractor may go. Past any of these the densest text is taken, in time
/// linear in the page.
///
/// The defaults are far above real pages (of 181 news pages the deepest has depth 49, the most
/// laborious 16,000 steps) and keep the worst page that was found, by hand and by random tag soup, at
/// about 0.6 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Bytes of HTML, inclusive.
    pub max_bytes: usize,
    /// Levels of nested elements, inclusive.
    pub max_depth: usize,
    /// Steps of estimated work, inclusive: one for each element, each attribute, each formatting
    /// element that would be opened anew in a block, each 16 levels above an element, each 16
    /// pairs of attributes in one tag, each `<` that is text, each `&` and each NUL anywhere. A step
    /// took up to about 5 microseconds in what was measured.
    pub max_work: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_bytes: 4 << 20, max_depth: 256, max_work: 100_000 }
    }
}

/// The main text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// `<title>` with white space collapsed, if there is one that is not blank.
    pub title: Option<String>,
    /// Paragraphs parted by one line feed, white space collapsed, entities decoded, no markup.
    pub text: String,
    /// What the text is.
    pub kind: PageKind,
    /// Why the tree-building extractor's text was not taken, where it was not.
    pub fallback: Option<Fallback>,
    /// What two pages of the same text must also agree in to be the same page: the title or, without one,
    /// all visible words. Empty where the text is already all that the page shows.
    pub identity: String,
}

/// What a page turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// It has an article: the text is that.
    Article,
    /// No article was found by the page's structure: the text is its densest run of blocks or, where
    /// all are short, all outside navigation, footers and links.
    Densest,
    /// Nothing but links, footers and crumbs of text: the text is all that the page has. Comparing
    /// such pages compares the site's menus.
    NavigationOnly,
    /// It has no text at all.
    Empty,
}

/// Why the densest text was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// The page is longer than [`Limits::max_bytes`].
    TooLong,
    /// Its elements are nested deeper than [`Limits::max_depth`].
    TooDeep,
    /// Its work is above [`Limits::max_work`].
    TooLaborious,
    /// The tree-building extractor found no article, or failed.
    NoArticle,
    /// It found one of fewer than 50 words (100 characters of Chinese), less than a quarter of the
    /// densest text's.
    ArticleTooShort,
    /// It found one of fewer than 50 words that stands in a footer, in navigation or in a hidden
    /// element.
    ArticleInFrame,
}

/// Fewer words than this (20, or 40 characters of Chinese) on a page made of links are no main text.
const FEWEST_HALF_WORDS: u64 = 40;

/// An article of this many words (50, or 100 characters of Chinese) is one, whatever else is there.
const ARTICLE_HALF_WORDS: u64 = 100;

/// The main text of a page.
///
/// ```
/// use nearsift::text::extract::{Limits, PageKind, extract};
/// let html = "<title>News</title><nav><a href=/>Home</a> <a href=/a>About</a></nav>
///     <article><h1>Rain</h1><p>It rained in the north today, and it will rain again tomorrow, the
///     weather service says.</p><p>Farmers are glad &amp; walkers are not.</p></article>";
/// let page = extract(html, &Limits::default());
/// assert_eq!(page.title.as_deref(), Some("News"));
/// assert!(page.text.ends_with("\nFarmers are glad & walkers are not."));
/// assert!(!page.text.contains("About"));
///
/// let links = "<ul><li><a href=/>Home</a><li><a href=/a>About</a></ul>";
/// assert_eq!(extract(links, &Limits::default()).kind, PageKind::NavigationOnly);
/// ```
///
/// # Complexity
/// Linear in the page's bytes outside the tree-building extractor, whose cost [`Limits`] bound. No
/// page makes it panic or return an error.
pub fn extract(html: &str, limits: &Limits) -> Extracted {
    let page = page::parse(html);
    let view = View::of(&page);
    let title = Some(page.title.clone()).filter(|title| !title.is_empty());
    let main = main_text(&view, past_limits(html, &page, limits));
    let identity = match (main.kind, &title) {
        (PageKind::NavigationOnly | PageKind::Empty, _) => String::new(),
        (_, Some(title)) => title.clone(),
        (_, None) => everything(&view.with_frames().blocks()),
    };
    Extracted { title, text: main.text, kind: main.kind, fallback: main.fallback, identity }
}

/// What is chosen of a page.
struct MainText {
    kind: PageKind,
    text: String,
    fallback: Option<Fallback>,
}

impl MainText {
    fn article(text: String) -> MainText {
        MainText { kind: PageKind::Article, text, fallback: None }
    }
}

/// The posts of a discussion; else what its structured data hold, where the page shows less; else the article, what
/// describes the product, or the main area; else the densest text; else all that it shows. `past_limits`: why no tree
/// may be built.
fn main_text(view: &View<'_>, past_limits: Option<Fallback>) -> MainText {
    let blocks = view.blocks();
    let structured = structured::read(view.page);
    let types = view.page.nodes.iter().fold(structured.types, |types, node| types | node.marks);
    let body_words = half_words(&structured.body);
    let has_body = |than: u64| body_words >= FEWEST_HALF_WORDS && body_words > 2 * than;
    let is_product = types & marks::PRODUCT != 0;
    if !is_product && let Some(posts) = posts::posts(view, &blocks, types) {
        return MainText::article(posts.text);
    }
    let mut densest = posts::densest_without(view, &blocks, marks::COMMENT);
    if densest.half_words < FEWEST_HALF_WORDS {
        densest = densest::densest(&blocks);
    }
    if densest.half_words < FEWEST_HALF_WORDS {
        // A page of nothing but short lines has no dense run: all of them are the text.
        densest = outside_frames(&blocks);
        if densest.text.is_empty() || is_mostly_links(&blocks) {
            if has_body(densest.half_words) {
                return MainText::article(structured.body);
            }
            let text = everything(&view.with_frames().blocks());
            let kind = if text.is_empty() { PageKind::Empty } else { PageKind::NavigationOnly };
            return MainText { kind, text, fallback: None };
        }
    }
    let article = past_limits.map_or_else(|| article(&view.html()), Err);
    let article = article.and_then(|text| match implausible(&text, &blocks, &densest) {
        None => Ok(text),
        Some(why) => Err(why),
    });
    let words = article.as_ref().map_or(0, |text| half_words(text));
    if is_product
        && let Some(product) = posts::product(view, &blocks, &structured.description, words)
    {
        return MainText::article(product.text);
    }
    match article {
        Ok(_) if words < ARTICLE_HALF_WORDS && has_body(words) => {
            MainText::article(structured.body)
        }
        Ok(text) => {
            let longer = longer_than_article(view, &blocks, words, types);
            MainText::article(longer.unwrap_or(text))
        }
        Err(_) if densest.half_words < ARTICLE_HALF_WORDS && has_body(densest.half_words) => {
            MainText::article(structured.body)
        }
        Err(why) => MainText { kind: PageKind::Densest, text: densest.text, fallback: Some(why) },
    }
}

/// What is taken in place of an article that is a small part of the page: the element that says that it is the main
/// area or, where nothing says that the page is an article, the densest text.
fn longer_than_article(
    view: &View<'_>,
    blocks: &Blocks,
    words: u64,
    types: Marks,
) -> Option<String> {
    if let Some(area) = posts::main_area(view, blocks)
        && words * 5 < area.half_words * 2
    {
        return Some(area.text);
    }
    if words >= 2 * ARTICLE_HALF_WORDS || types & marks::ARTICLE != 0 {
        return None;
    }
    let aside = marks::ASIDE | marks::COMMENT | marks::SIGNATURE;
    let densest = posts::densest_without(view, blocks, aside);
    (words * 2 < densest.half_words).then_some(densest.text)
}

/// A long article may well stand among longer comments; a crumb beside a long text is none, nor is one
/// that stands in the page's footer.
fn implausible(article: &str, blocks: &Blocks, densest: &Densest) -> Option<Fallback> {
    let all = half_words(article);
    if all >= ARTICLE_HALF_WORDS {
        return None;
    }
    let frames = in_frames(blocks);
    let framed: u64 = article.lines().filter(|l| frames.contains(l)).map(half_words).sum();
    match () {
        () if framed * 2 > all => Some(Fallback::ArticleInFrame),
        () if all * 4 < densest.half_words => Some(Fallback::ArticleTooShort),
        () => None,
    }
}

fn past_limits(html: &str, page: &Page, limits: &Limits) -> Option<Fallback> {
    match () {
        () if html.len() > limits.max_bytes => Some(Fallback::TooLong),
        () if page.load.depth > limits.max_depth => Some(Fallback::TooDeep),
        () if page.load.work > limits.max_work => Some(Fallback::TooLaborious),
        () => None,
    }
}

fn is_mostly_links(page: &Blocks) -> bool {
    let sum = |of: fn(&view::Block) -> u32| page.blocks.iter().map(|b| u64::from(of(b))).sum();
    let (words, links): (u64, u64) = (sum(|b| b.half_words), sum(|b| b.link_half_words));
    links > 0 && links * 2 >= words
}

/// The text by the tree-building extractor.
fn article(html: &str) -> Result<String, Fallback> {
    let config = Config {
        text_mode: TextMode::Formatted,
        // Only metadata, which are not used here.
        disable_json_ld: true,
        ..Config::default()
    };
    // A page is data: should the extractor panic on one, that page has no article.
    let parsed = catch_unwind(AssertUnwindSafe(|| {
        Readability::new(html, None, Some(config)).and_then(|mut page| page.parse())
    }));
    let Ok(Ok(article)) = parsed else { return Err(Fallback::NoArticle) };
    let mut text = String::with_capacity(article.text_content.len());
    for line in article.text_content.lines() {
        let mut paragraph = String::new();
        push_collapsed(&mut paragraph, line);
        densest::push_line(&mut text, &paragraph);
    }
    if text.is_empty() { Err(Fallback::NoArticle) } else { Ok(text) }
}

fn half_words(text: &str) -> u64 {
    u64::from(page::half_words(text))
}

#[cfg(test)]
mod tests;
