//! Which of a page's nodes a reader reads.
//!
//! Dialogs, consent boxes, notices and forms are frame and are not read. What is hidden, and what is
//! there for readers without scripts, is read only where it is plainly the page: the rest of an article
//! behind a button, a page behind a dialog, or more than is left otherwise.

use super::marks::{self, Marks};
use super::page::{Node, Page, parts_text, push_collapsed};

/// Why a node is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Read,
    /// Dialogs, consent boxes, notices, forms.
    Frame,
    /// A dialog, read if it is all that there is.
    Dialog,
    Hidden,
    /// `aria-hidden` or `inert`: shown, though not to everybody.
    Inert,
    /// `noscript`.
    NoScript,
    /// `textarea`.
    Field,
}

/// Fewer half words than this are a crumb.
const CRUMB: u32 = 40;

/// Which nodes are read.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) page: &'a Page,
    status: Vec<Status>,
    /// Before each node the number of things to fill in or to press.
    controls: Vec<u32>,
}

/// A stretch of text between the edges of block elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Where its text ends in [`Blocks::text`]; it begins where the one before ends.
    pub(super) end: usize,
    /// Twice its words: a word of an alphabetic script counts 2, a character of others 1.
    pub(super) half_words: u32,
    /// Those of them inside links.
    pub(super) link_half_words: u32,
    /// What surrounds it says that it is no main text: navigation, footer.
    pub(super) framed: bool,
    /// Its first text node.
    pub(super) node: u32,
}

/// The paragraphs of the nodes that are read.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The text of all blocks, one after the other.
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
}

impl<'a> View<'a> {
    /// Decides what is read.
    ///
    /// # Complexity
    /// Linear in the number of nodes.
    pub(super) fn of(page: &'a Page) -> View<'a> {
        let status = vec![Status::Read; page.nodes.len()];
        let mut view = View { page, status, controls: controls(page) };
        for index in 0..page.nodes.len() {
            let own = view.own_status(index);
            let around = view.status[page.nodes[index].parent as usize];
            view.status[index] = if around == Status::Read { own } else { around };
        }
        view.read_the_rest_of_articles();
        view.read_more_than_crumbs();
        view
    }

    /// All that is shown, frames and dialogs too.
    pub(super) fn with_frames(&self) -> View<'a> {
        let shown = |&status: &Status| match status {
            Status::Frame | Status::Dialog | Status::Inert => Status::Read,
            status => status,
        };
        let status = self.status.iter().map(shown).collect();
        View { page: self.page, status, controls: Vec::new() }
    }

    pub(super) fn reads(&self, index: usize) -> bool {
        self.status[index] == Status::Read
    }

    fn own_status(&self, index: usize) -> Status {
        let node = &self.page.nodes[index];
        if node.is_text() || index == 0 || matches!(node.name, "body" | "html" | "main" | "article")
        {
            return Status::Read;
        }
        match node.name {
            "noscript" => return Status::NoScript,
            "template" => return Status::Hidden,
            "textarea" => return Status::Field,
            _ => {}
        }
        let holds = node.has(marks::HOLDS_CONTENT);
        if node.has(marks::DIALOG) {
            return Status::Dialog;
        }
        let words = node.half_words;
        let whole = self.page.nodes[0].half_words;
        let fields = self.controls[node.end as usize] - self.controls[index];
        let by_class = (node.has(marks::CONSENT) && words <= 800)
            || (node.has(marks::BROWSER) && words <= 200)
            || (node.has(marks::SPLASH) && words <= CRUMB)
            || (node.has(marks::NOTICE)
                && words <= 100
                && words * 2 <= whole
                && parts_text(node.name));
        if by_class && !holds {
            return Status::Frame;
        }
        if node.has(marks::POPUP) && !holds && (fields > 0 || words * 2 <= whole) {
            return Status::Dialog;
        }
        let asks_for_consent =
            node.has(marks::COOKIE_TEXT) && words <= 300 && words * 2 <= whole && fields > 0;
        if asks_for_consent && !holds && matches!(node.name, "div" | "section" | "aside" | "form") {
            return Status::Frame;
        }
        if node.has(marks::CAPTION) && !holds && words * 4 <= whole && words <= 400 {
            return Status::Frame;
        }
        if node.has(marks::ASIDE)
            && !holds
            && words <= 60
            && words * 4 <= whole
            && parts_text(node.name)
        {
            return Status::Frame;
        }
        let is_form = node.name == "form" && fields > 0 && !holds;
        if is_form && (words <= 24 * fields || (words <= 80 + 30 * fields && words * 2 <= whole)) {
            return Status::Frame;
        }
        match () {
            () if node.has(marks::STREAMED) => Status::Read,
            () if node.has(marks::HIDDEN) => Status::Hidden,
            () if node.has(marks::INERT) => Status::Inert,
            () => Status::Read,
        }
    }

    /// Whether a node is the outermost one that is not read.
    fn is_root(&self, index: usize) -> bool {
        index > 0
            && self.status[index] != Status::Read
            && self.status[self.page.nodes[index].parent as usize] == Status::Read
    }

    /// Paragraphs that are hidden beside paragraphs that are shown: the rest of an article.
    fn read_the_rest_of_articles(&mut self) {
        // For each element the words of its paragraphs and headings that are shown.
        let mut shown = vec![0u32; self.page.nodes.len()];
        for (index, node) in self.page.nodes.iter().enumerate() {
            if matches!(node.name, "p" | "h1" | "h2" | "h3") && self.reads(index) {
                let parent = &mut shown[node.parent as usize];
                *parent = parent.saturating_add(node.half_words - node.link_half_words);
            }
        }
        let mut index = 0;
        while index < self.page.nodes.len() {
            let end = self.page.nodes[index].end as usize;
            if !self.is_root(index) || self.status[index] != Status::Hidden {
                index += 1;
                continue;
            }
            if shown[self.page.nodes[index].parent as usize] >= 20 && self.is_prose(index) {
                self.read(index);
            }
            index = end;
        }
    }

    /// Whether a subtree is made of paragraphs, with few links and nothing to fill in.
    fn is_prose(&self, index: usize) -> bool {
        let node = &self.page.nodes[index];
        let held = &self.page.nodes[self.page.subtree(index)];
        let (mut paragraphs, mut asides) = (0u32, false);
        for inner in held {
            if inner.name == "p" {
                paragraphs += inner.half_words - inner.link_half_words;
            }
            asides |= inner.has(
                marks::CONTROL
                    | marks::CONSENT
                    | marks::POPUP
                    | marks::DIALOG
                    | marks::BROWSER
                    | marks::ASIDE
                    | marks::FRAME
                    | marks::SPLASH,
            );
        }
        !asides
            && node.half_words >= CRUMB
            && paragraphs * 2 >= node.half_words
            && node.link_half_words * 3 <= node.half_words
    }

    /// Where only crumbs are left, the largest part that is not shown is the page.
    fn read_more_than_crumbs(&mut self) {
        let mut visible = 0u32;
        let mut framed = vec![false; self.page.nodes.len()];
        let (mut no_script, mut largest, mut dialog) =
            (0u32, None::<(u32, usize)>, None::<(u32, usize)>);
        for (index, node) in self.page.nodes.iter().enumerate() {
            framed[index] = framed[node.parent as usize] || node.has(marks::FRAME);
            let own = node.half_words - node.link_half_words;
            if node.is_text() && self.reads(index) && !framed[index] {
                visible += own;
            }
            if !self.is_root(index) || framed[index] {
                continue;
            }
            let weight = match self.status[index] {
                Status::NoScript => {
                    if own >= CRUMB {
                        no_script += own;
                    }
                    continue;
                }
                // It is seen but by those who have the page read out to them.
                Status::Inert => own.saturating_mul(3),
                Status::Hidden | Status::Field => own,
                Status::Dialog => {
                    if dialog.is_none_or(|(most, _)| own > most) {
                        dialog = Some((own, index));
                    }
                    continue;
                }
                Status::Frame | Status::Read => continue,
            };
            if own >= CRUMB && largest.is_none_or(|(most, _)| weight > most) {
                largest = Some((weight, index));
            }
        }
        let (hidden, at) = largest.unwrap_or_default();
        if no_script >= CRUMB && no_script > hidden && no_script >= visible.saturating_mul(3) {
            self.leave_out_crumbs(visible);
            for index in 0..self.page.nodes.len() {
                let own =
                    self.page.nodes[index].half_words - self.page.nodes[index].link_half_words;
                if self.status[index] == Status::NoScript && self.is_root(index) && own >= CRUMB {
                    self.read(index);
                }
            }
        } else if hidden >= CRUMB && hidden >= visible.saturating_mul(3) {
            self.leave_out_crumbs(visible);
            self.read(at);
        } else if let Some((words, at)) = dialog
            && words >= 2 * CRUMB
            && words >= visible.saturating_mul(10)
        {
            self.read(at);
        }
    }

    /// 'Please wait' and the like are not read beside the page: all text that is shown but headings, where it
    /// is a crumb.
    fn leave_out_crumbs(&mut self, visible: u32) {
        if visible >= CRUMB {
            return;
        }
        for (index, node) in self.page.nodes.iter().enumerate() {
            let around = self.page.nodes[node.parent as usize].name;
            let is_crumb = node.is_text() && !matches!(around, "h1" | "h2" | "h3");
            if is_crumb && self.status[index] == Status::Read {
                self.status[index] = Status::Frame;
            }
        }
    }

    /// Reads a subtree, but for the frames and the hidden parts in it.
    fn read(&mut self, root: usize) {
        self.status[root] = Status::Read;
        for index in self.page.subtree(root).skip(1) {
            let around = self.status[self.page.nodes[index].parent as usize];
            let own = self.own_status(index);
            self.status[index] = if around == Status::Read { own } else { around };
        }
    }

    /// The paragraphs of what is read.
    pub(super) fn blocks(&self) -> Blocks {
        let mut walk = Walk::default();
        let mut framed = vec![false; self.page.nodes.len()];
        let mut ends: Vec<usize> = Vec::new();
        let mut index = 0;
        while index < self.page.nodes.len() {
            while ends.last().is_some_and(|&end| end <= index) {
                ends.pop();
                walk.end_block();
            }
            let node = &self.page.nodes[index];
            framed[index] = framed[node.parent as usize] || node.has(marks::FRAME);
            if node.is_text() {
                walk.text(index, node, self.page.text_of(node), framed[index]);
            } else if node.name == "br" {
                walk.gap = Some('\n');
            } else if parts_text(node.name) && (self.reads(index) || !is_inline_apart(node.name)) {
                walk.end_block();
                ends.push(node.end as usize);
            }
            index = if self.reads(index) { index + 1 } else { node.end as usize };
        }
        walk.end_block();
        walk.out
    }

    /// What is read as HTML again, with the attributes that a scoring of elements looks at.
    pub(super) fn html(&self) -> String {
        let mut out = String::with_capacity(self.page.text.len() * 2);
        out.push_str("<!doctype html><html><head><title>");
        push_escaped(&mut out, &self.page.title);
        out.push_str("</title></head><body>");
        let mut open: Vec<usize> = Vec::new();
        let close = |out: &mut String, index: usize| {
            out.push_str("</");
            out.push_str(self.page.nodes[index].name);
            out.push('>');
        };
        let mut index = 1;
        while index < self.page.nodes.len() {
            while let Some(&last) = open.last()
                && self.page.nodes[last].end as usize <= index
            {
                close(&mut out, last);
                open.pop();
            }
            let node = &self.page.nodes[index];
            if !self.reads(index) {
                index = node.end as usize;
                continue;
            }
            match node.name {
                "" => push_escaped(&mut out, self.page.text_of(node)),
                "html" | "head" | "body" | "input" | "noscript" | "template" | "textarea" => {}
                "br" | "hr" => {
                    out.push('<');
                    out.push_str(node.name);
                    out.push('>');
                }
                name => {
                    out.push('<');
                    out.push_str(name);
                    let [class, id, itemprop] = self.page.attributes_of(node);
                    for (key, value) in [("class", class), ("id", id), ("itemprop", itemprop)] {
                        if !value.is_empty() {
                            out.extend([" ", key, "=\""]);
                            push_escaped(&mut out, value);
                            out.push('"');
                        }
                    }
                    if name == "a" && node.link_half_words > 0 {
                        out.push_str(" href=\"/\"");
                    }
                    out.push('>');
                    open.push(index);
                }
            }
            index += 1;
        }
        while let Some(last) = open.pop() {
            close(&mut out, last);
        }
        out
    }

    /// For each node whether it stands in an element with one of these marks, or is one.
    pub(super) fn within(&self, marks: Marks) -> Vec<bool> {
        let mut within = vec![false; self.page.nodes.len()];
        for (index, node) in self.page.nodes.iter().enumerate() {
            within[index] = within[node.parent as usize] || node.has(marks);
        }
        within
    }
}

/// Before each node the number of things to fill in or to press.
fn controls(page: &Page) -> Vec<u32> {
    let mut before = Vec::with_capacity(page.nodes.len() + 1);
    let mut count = 0;
    for node in &page.nodes {
        before.push(count);
        count += u32::from(
            node.has(marks::CONTROL) && !(node.name == "input" && node.has(marks::HIDDEN)),
        );
    }
    before.push(count);
    before
}

/// Elements that part no text where they are not read.
fn is_inline_apart(name: &str) -> bool {
    matches!(name, "noscript" | "template" | "textarea")
}

#[derive(Debug, Default)]
struct Walk {
    out: Blocks,
    block: Block,
    /// White space that waits for the next word: space, or line feed after `<br>`.
    gap: Option<char>,
}

impl Walk {
    fn text(&mut self, index: usize, node: &Node, text: &str, framed: bool) {
        let begin = self.begin();
        if self.out.text.len() == begin {
            self.block.node = index as u32;
        }
        for c in text.chars() {
            if c.is_whitespace() {
                self.gap = self.gap.or(Some(' '));
                continue;
            }
            if let Some(gap) = self.gap.take()
                && self.out.text.len() > begin
            {
                self.out.text.push(gap);
            }
            self.out.text.push(c);
        }
        self.block.half_words += node.half_words;
        self.block.link_half_words += node.link_half_words;
        self.block.framed |= framed;
    }

    /// Where the text of the block that is being read begins.
    fn begin(&self) -> usize {
        self.out.blocks.last().map_or(0, |block| block.end)
    }

    fn end_block(&mut self) {
        if self.out.text.len() > self.begin() {
            self.out.blocks.push(Block { end: self.out.text.len(), ..self.block });
        }
        self.block = Block::default();
        self.gap = None;
    }
}

fn push_escaped(out: &mut String, text: &str) {
    let mut begin = 0;
    for at in memchr::memchr3_iter(b'<', b'&', b'"', text.as_bytes()) {
        out.push_str(&text[begin..at]);
        out.push_str(match text.as_bytes()[at] {
            b'<' => "&lt;",
            b'&' => "&amp;",
            _ => "&quot;",
        });
        begin = at + 1;
    }
    out.push_str(&text[begin..]);
}

/// The text of some HTML, as structured data may hold it.
pub(super) fn plain(html: &str) -> String {
    let page = super::page::parse(html);
    let blocks = View::of(&page).blocks();
    let mut out = String::new();
    let mut begin = 0;
    for block in &blocks.blocks {
        for line in blocks.text[begin..block.end].lines() {
            let mut paragraph = String::new();
            push_collapsed(&mut paragraph, line);
            super::densest::push_line(&mut out, &paragraph);
        }
        begin = block.end;
    }
    out
}
