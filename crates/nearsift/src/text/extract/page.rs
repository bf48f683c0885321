//! A page's elements and texts in order, from one pass over its tokens, and how much work a document
//! tree of it would be.
//!
//! Linear in the page's bytes, whatever they are: the stack of open elements is never deeper than
//! [`TRACKED_DEPTH`], and a page has at most [`MAX_NODES`] nodes.

use std::convert::Infallible;
use std::ops::Range;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};

use super::super::markup::MarkupReader;
use super::super::script::{Class, class};
use super::marks::{self, Marks};

/// Deeper elements are no longer followed, only counted.
const TRACKED_DEPTH: usize = 512;

/// Further elements have no node of their own: their text is that of the element around them.
const MAX_NODES: usize = 1 << 19;

/// Bytes of a `class`, an `id` and an `itemprop` that are kept.
const MAX_ATTRIBUTE: usize = 200;

/// Bytes of all structured data (`application/ld+json`) that are kept.
const MAX_JSON: usize = 1 << 20;

/// What a page holds.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// `<title>`, white space collapsed.
    pub(super) title: String,
    /// Elements and texts, each before what it holds.
    pub(super) nodes: Vec<Node>,
    /// The decoded text of all text nodes, one after the other.
    pub(super) text: String,
    /// The attributes that were kept, one after the other.
    pub(super) attributes: String,
    /// The scripts of structured data.
    pub(super) json: Vec<String>,
    pub(super) load: Load,
}

/// An element or a stretch of text.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The element around it; the first node is its own.
    pub(super) parent: u32,
    /// The node after all that it holds.
    pub(super) end: u32,
    /// The element's name, `""` for text; names without a role here are `span`.
    pub(super) name: &'static str,
    pub(super) marks: Marks,
    /// For text: where it stands in [`Page::text`]. For an element: its `class`, `id` and `itemprop` in
    /// [`Page::attributes`], each but the last followed by a line feed.
    pub(super) range: (u32, u32),
    /// Twice the words: a word of an alphabetic script counts 2, a character of others 1. Of an element: of
    /// all its texts.
    pub(super) half_words: u32,
    /// Those of them inside links.
    pub(super) link_half_words: u32,
}

impl Node {
    pub(super) fn is_text(&self) -> bool {
        self.name.is_empty()
    }

    pub(super) fn has(&self, marks: Marks) -> bool {
        self.marks & marks != 0
    }
}

impl Page {
    pub(super) fn text_of(&self, node: &Node) -> &str {
        &self.text[node.range.0 as usize..node.range.1 as usize]
    }

    /// `class`, `id` and `itemprop` of an element.
    pub(super) fn attributes_of(&self, node: &Node) -> [&str; 3] {
        let all = &self.attributes[node.range.0 as usize..node.range.1 as usize];
        let mut parts = all.split('\n');
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    }

    /// The nodes that an element holds, and itself.
    pub(super) fn subtree(&self, index: usize) -> Range<usize> {
        index..self.nodes[index].end as usize
    }
}

/// What a tree builder and a walk over the tree would have to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// The deepest nesting, up to a little past [`TRACKED_DEPTH`].
    pub(super) depth: usize,
    /// Steps; see [`Builder::count`] for what is a step.
    pub(super) work: u64,
}

pub(super) fn parse(html: &str) -> Page {
    let mut page = Page::default();
    let reader = Reader(CallbackEmitter::new(Builder::new(&mut page)));
    let Ok(()) = Tokenizer::new_with_emitter(MarkupReader::new(html.as_bytes()), reader).finish();
    // A tree builder gets each of these as a text of its own.
    page.load.work += memchr::memchr2_iter(b'&', 0, html.as_bytes()).count() as u64;
    page.sum();
    page
}

impl Page {
    /// Where each element ends and how many words it holds, from the last node to the first.
    fn sum(&mut self) {
        for index in (1..self.nodes.len()).rev() {
            let Node { parent, end, name, marks, half_words, link_half_words, .. } =
                self.nodes[index];
            let parent = &mut self.nodes[parent as usize];
            parent.end = parent.end.max(end);
            parent.half_words += half_words;
            parent.link_half_words += link_half_words;
            parent.marks |= marks & marks::UPWARDS | marks::upwards_of(name);
        }
    }
}

/// Passes on which elements hold raw text.
struct Reader<'a>(CallbackEmitter<Builder<'a>>);

impl ForwardingEmitter for Reader<'_> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.0
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        let state = self.0.emit_current_tag();
        self.0.callback_mut().raw.take().or(state)
    }
}

/// What the rules of tree construction make of an element, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has no content.
    Void,
    /// Its content is no text of the page.
    Dropped,
    /// Ends by itself where the next of its kind begins, so it adds no depth.
    Implied,
    /// Reopened in each block that begins before it is closed.
    Formatting,
    /// An end tag of a block outside it does not reach inside.
    Barrier,
    /// A block.
    Block,
    /// Any other.
    Inline,
}

/// The name as it is kept, and its kind.
fn known(name: &[u8]) -> (&'static str, Kind) {
    macro_rules! table {
        ($($kind:ident: $($name:literal)*;)*) => {
            match std::str::from_utf8(name).unwrap_or_default() {
                $($($name => ($name, Kind::$kind),)*)*
                _ => ("span", Kind::Inline),
            }
        };
    }
    table! {
        Void: "area" "base" "basefont" "bgsound" "br" "col" "embed" "frame" "hr" "img" "input" "keygen" "link"
            "meta" "param" "source" "track" "wbr";
        Dropped: "script" "style" "svg" "math" "select" "button" "iframe" "canvas" "audio" "video" "title"
            "noembed" "noframes" "xmp" "plaintext" "rt" "rp" "rtc" "datalist";
        Implied: "html" "head" "body" "p" "li" "dt" "dd" "option" "optgroup" "tr" "td" "th" "thead" "tbody"
            "tfoot" "caption" "colgroup";
        Formatting: "a" "b" "big" "code" "em" "font" "i" "nobr" "s" "small" "strike" "strong" "tt" "u";
        Barrier: "table" "object" "marquee" "applet" "noscript" "template" "textarea";
        Block: "address" "article" "aside" "blockquote" "center" "details" "dialog" "dir" "div" "dl" "fieldset"
            "figcaption" "figure" "footer" "form" "h1" "h2" "h3" "h4" "h5" "h6" "header" "hgroup" "legend"
            "main" "menu" "nav" "ol" "pre" "search" "section" "summary" "ul";
        Inline: "label" "time" "cite" "q" "sup" "sub" "ruby" "rb" "mark" "abbr" "del" "ins" "kbd" "samp" "var";
    }
}

/// Whether text before the element and text in it are two paragraphs.
pub(super) fn parts_text(name: &str) -> bool {
    match known(name.as_bytes()).1 {
        Kind::Barrier | Kind::Block => true,
        Kind::Implied => !matches!(name, "option" | "optgroup"),
        Kind::Void => name == "hr",
        _ => false,
    }
}

/// The elements that the start of one of these ends, and the ones past which it does not look.
fn implied_end(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["ul", "ol", "menu", "dir"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "td" | "th" => (&["td", "th"], &["tr", "table"]),
        "tr" => (&["tr"], &["table", "tbody", "thead", "tfoot"]),
        "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
        _ => (&[], &[]),
    }
}

/// A name as a number: its length and its first 7 bytes, enough to tell elements apart.
fn tag(name: &[u8]) -> u64 {
    let head = name.iter().take(7).fold(0, |n, &b| n << 8 | u64::from(b));
    head << 8 | name.len().min(255) as u64
}

#[derive(Debug, Clone, Copy)]
struct Open {
    tag: u64,
    kind: Kind,
    name: &'static str,
    node: u32,
}

/// The attribute whose value is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    Class,
    Id,
    Itemprop,
    Type,
    Other,
    Marked(marks::Attribute),
}

#[derive(Debug)]
struct Builder<'a> {
    page: &'a mut Page,
    open: Vec<Open>,
    /// How many of the open elements add depth.
    depth: usize,
    /// Elements opened past [`TRACKED_DEPTH`].
    untracked: usize,
    formatting: u64,
    in_link: bool,
    in_title: bool,
    in_json: bool,
    json_bytes: usize,
    /// The element whose content is dropped, while inside it.
    dropped: Option<u64>,
    /// Whether the last node is a text that goes on.
    in_text: bool,
    /// The start tag that is being read: name, attribute, number of attributes, and what they said.
    name: Vec<u8>,
    attribute: Attribute,
    attributes: u64,
    has_href: bool,
    is_json: bool,
    marks: Marks,
    class: String,
    id: String,
    itemprop: String,
    /// How the tokenizer is to read on after this tag, where it is not as usual.
    raw: Option<State>,
}

impl Callback<Infallible, ()> for Builder<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.name.clear();
                self.name.extend_from_slice(name);
                self.attributes = 0;
                self.has_href = false;
                self.is_json = false;
                self.marks = marks::of_name(name);
                self.class.clear();
                self.id.clear();
                self.itemprop.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes += 1;
                self.has_href |= name == b"href";
                self.attribute = match name {
                    b"class" => Attribute::Class,
                    b"id" => Attribute::Id,
                    b"itemprop" => Attribute::Itemprop,
                    b"type" => Attribute::Type,
                    b"hidden" | b"inert" => {
                        let hides = if name == b"hidden" { marks::HIDDEN } else { marks::INERT };
                        self.marks |= hides;
                        Attribute::Other
                    }
                    _ => marks::attribute(name).map_or(Attribute::Other, Attribute::Marked),
                };
            }
            CallbackEvent::AttributeValue { value } => self.value(value),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None
    }
}

impl<'a> Builder<'a> {
    fn new(page: &'a mut Page) -> Builder<'a> {
        let root = Node {
            parent: 0,
            end: 1,
            name: "body",
            marks: 0,
            range: (0, 0),
            half_words: 0,
            link_half_words: 0,
        };
        page.nodes.push(root);
        Builder {
            page,
            open: Vec::new(),
            depth: 0,
            untracked: 0,
            formatting: 0,
            in_link: false,
            in_title: false,
            in_json: false,
            json_bytes: 0,
            dropped: None,
            in_text: false,
            name: Vec::new(),
            attribute: Attribute::Other,
            attributes: 0,
            has_href: false,
            is_json: false,
            marks: 0,
            class: String::new(),
            id: String::new(),
            itemprop: String::new(),
            raw: None,
        }
    }

    fn value(&mut self, value: &[u8]) {
        let kept = match self.attribute {
            Attribute::Class => &mut self.class,
            Attribute::Id => &mut self.id,
            Attribute::Itemprop => &mut self.itemprop,
            Attribute::Type => {
                self.is_json |= value.trim_ascii().eq_ignore_ascii_case(b"application/ld+json");
                self.marks |= marks::of_input_type(value);
                return;
            }
            Attribute::Marked(attribute) => {
                self.marks |= marks::of_value(attribute, value);
                return;
            }
            Attribute::Other => return,
        };
        let value = &value[..value.len().min(MAX_ATTRIBUTE)];
        kept.extend(String::from_utf8_lossy(value).chars().map(|c| match c {
            c if c.is_whitespace() || c.is_control() => ' ',
            c => c,
        }));
    }

    fn start(&mut self, self_closing: bool) {
        let bytes = std::mem::take(&mut self.name);
        let (name, kind) = known(&bytes);
        let tag = tag(&bytes);
        // Inside a drawing a script or title is an element like any other.
        let in_drawing =
            self.dropped.is_some_and(|d| d == self::tag(b"svg") || d == self::tag(b"math"));
        self.raw = if in_drawing { None } else { raw_text(&bytes) };
        if self.dropped.is_some() && parts_text(name) {
            // No block stands inside a button, a drawing and the like: its end tag is missing.
            // Raw text (script, style) never comes here: the tokenizer reads to its end tag.
            self.dropped = None;
        }
        self.count(kind);
        if self.dropped.is_none() {
            self.open_element(name, kind, tag, self_closing);
        } else {
            self.push_open(Open { tag, kind, name, node: self.parent() });
        }
        self.name = bytes;
    }

    fn open_element(&mut self, name: &'static str, kind: Kind, tag: u64, self_closing: bool) {
        match kind {
            Kind::Dropped => {
                if name == "title" && self.page.title.is_empty() {
                    self.in_title = true;
                }
                if name == "script" && self.is_json && self.json_bytes < MAX_JSON {
                    self.in_json = true;
                    self.page.json.push(String::new());
                }
                if matches!(name, "select" | "button") {
                    let parent = self.parent() as usize;
                    self.page.nodes[parent].marks |= marks::CONTROL;
                }
                if !self_closing {
                    self.dropped = Some(tag);
                }
                let node = self.parent();
                self.push_open(Open { tag, kind, name, node });
            }
            Kind::Void => {
                if matches!(name, "br" | "hr" | "input") {
                    self.add_node(name);
                }
            }
            _ => {
                if kind != Kind::Formatting && kind != Kind::Inline {
                    self.end_paragraph(name);
                }
                let node = self.add_node(name);
                if name == "a" {
                    self.in_link = self.has_href;
                }
                self.push_open(Open { tag, kind, name, node });
            }
        }
    }

    /// Ends the elements that end by themselves where this one begins.
    fn end_paragraph(&mut self, name: &str) {
        let (ended, barriers) = implied_end(name);
        if self.untracked > 0 {
            return;
        }
        // A paragraph holds no block.
        let paragraph =
            self.open.iter().rev().take(16).position(|open| {
                open.name == "p" || matches!(open.kind, Kind::Block | Kind::Barrier)
            });
        if let Some(above) = paragraph {
            let at = self.open.len() - 1 - above;
            if self.open[at].name == "p" {
                self.close_from(at);
            }
        }
        if !ended.is_empty() {
            let found = self
                .open
                .iter()
                .rev()
                .take(16)
                .position(|open| ended.contains(&open.name) || barriers.contains(&open.name));
            if let Some(above) = found {
                let at = self.open.len() - 1 - above;
                if ended.contains(&self.open[at].name) {
                    self.close_from(at);
                }
            }
        }
    }

    /// Counts steps: one for each element, attribute, formatting element that would be opened anew, 16
    /// levels that a walk to the root would climb, and 16 pairs of attributes, which a tree builder
    /// compares with each other; in text one for each `<`, and anywhere one for each `&` and each NUL.
    fn count(&mut self, kind: Kind) {
        let load = &mut self.page.load;
        let depth = self.depth + self.untracked;
        load.work += 1 + self.attributes + self.attributes * self.attributes / 16;
        load.work += self.formatting + depth as u64 / 16;
        if !matches!(kind, Kind::Void | Kind::Implied) {
            load.depth = load.depth.max(depth + 1);
        }
    }

    fn push_open(&mut self, open: Open) {
        let implied = matches!(open.kind, Kind::Void | Kind::Implied);
        if self.open.len() == TRACKED_DEPTH {
            self.untracked += usize::from(!implied);
            return;
        }
        self.depth += usize::from(!implied);
        self.formatting += u64::from(open.kind == Kind::Formatting);
        self.open.push(open);
    }

    /// The node of the innermost open element.
    fn parent(&self) -> u32 {
        self.open.last().map_or(0, |open| open.node)
    }

    /// Adds an element and returns its node, or its parent's where no more are added.
    fn add_node(&mut self, name: &'static str) -> u32 {
        self.in_text = false;
        let parent = self.parent();
        if self.page.nodes.len() >= MAX_NODES {
            return parent;
        }
        let begin = self.page.attributes.len() as u32;
        if self.class.len() + self.id.len() + self.itemprop.len() > 0 {
            for part in [&self.class, "\n", &self.id, "\n", &self.itemprop] {
                self.page.attributes.push_str(part);
            }
            self.marks |= marks::of_tokens(&self.class, &self.id, &self.itemprop);
        }
        let range = (begin, self.page.attributes.len() as u32);
        self.push_node(Node {
            parent,
            end: 0,
            name,
            marks: self.marks,
            range,
            half_words: 0,
            link_half_words: 0,
        })
    }

    fn push_node(&mut self, mut node: Node) -> u32 {
        let index = self.page.nodes.len() as u32;
        node.end = index + 1;
        self.page.nodes.push(node);
        index
    }

    fn end(&mut self, name: &[u8]) {
        let tag = tag(name);
        let (known, kind) = known(name);
        if self.dropped == Some(tag) {
            self.dropped = None;
            self.in_title = false;
            self.in_json = false;
        }
        match known {
            "a" => self.in_link = false,
            "br" if self.dropped.is_none() => {
                self.marks = 0;
                self.class.clear();
                self.id.clear();
                self.itemprop.clear();
                self.add_node("br");
            }
            _ => {}
        }
        self.close(tag, kind);
    }

    /// Closes the innermost element of this name as tree construction would: a block closes all
    /// inside it, a formatting element only itself, any other only what is no block.
    fn close(&mut self, tag: u64, kind: Kind) {
        if kind == Kind::Void {
            return;
        }
        if self.untracked > 0 {
            self.untracked -= usize::from(kind != Kind::Implied);
            return;
        }
        let mut found = None;
        for (index, open) in self.open.iter().enumerate().rev() {
            self.page.load.work += u64::from(index % 16 == 0);
            if open.tag == tag {
                found = Some(index);
                break;
            }
            let stops = match kind {
                Kind::Block => open.kind == Kind::Barrier,
                Kind::Inline | Kind::Dropped => matches!(open.kind, Kind::Block | Kind::Barrier),
                Kind::Implied => open.kind == Kind::Barrier || (open.kind == Kind::Block),
                _ => false,
            };
            if stops {
                break;
            }
        }
        let Some(at) = found else { return };
        if kind == Kind::Formatting {
            self.open.remove(at);
            self.formatting -= 1;
            self.depth -= 1;
        } else {
            self.close_from(at);
        }
        self.in_text = false;
    }

    fn close_from(&mut self, at: usize) {
        for open in self.open.drain(at..) {
            self.formatting -= u64::from(open.kind == Kind::Formatting);
            self.depth -= usize::from(!matches!(open.kind, Kind::Void | Kind::Implied));
        }
        self.in_text = false;
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            push_collapsed(&mut self.page.title, text);
        }
        if self.in_json
            && let Some(json) = self.page.json.last_mut()
        {
            self.json_bytes += text.len();
            json.push_str(text);
        }
        if self.dropped.is_some() || self.page.text.len() + text.len() > u32::MAX as usize {
            return;
        }
        self.page.load.work += memchr::memchr_iter(b'<', text.as_bytes()).count() as u64;
        let half_words = half_words(text);
        let link_half_words = if self.in_link { half_words } else { 0 };
        let begin = self.page.text.len() as u32 + u32::from(!self.in_text);
        if !self.in_text {
            // Only past the largest number of nodes is it seen: there paragraphs share a node.
            self.page.text.push('\n');
        }
        self.page.text.push_str(text);
        let end = self.page.text.len() as u32;
        if (self.page.nodes.len() >= MAX_NODES || self.in_text)
            && let Some(last) = self.page.nodes.last_mut().filter(|last| last.is_text())
        {
            last.range.1 = end;
            last.half_words += half_words;
            last.marks |= marks::of_text(text);
            last.link_half_words += link_half_words;
            return;
        }
        let parent = self.parent();
        self.push_node(Node {
            parent,
            end: 0,
            name: "",
            marks: marks::of_text(text),
            range: (begin, end),
            half_words,
            link_half_words,
        });
        self.in_text = true;
    }
}

/// The elements whose content the tokenizer must not take for tags. `noscript` is none of them where
/// no script runs.
fn raw_text(name: &[u8]) -> Option<State> {
    match name {
        b"title" | b"textarea" => Some(State::RcData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
        b"script" => Some(State::ScriptData),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

/// Twice the words: a word of an alphabetic script counts 2, a character of others 1.
pub(super) fn half_words(text: &str) -> u32 {
    let mut before = Class::Separator;
    let mut count = 0u32;
    for c in text.chars() {
        let now = class(c);
        count += match now {
            Class::Unspaced => 1,
            Class::Alphabetic if before != Class::Alphabetic => 2,
            _ => 0,
        };
        before = now;
    }
    count
}

/// Appends text with each stretch of white space as one space, and none at the ends.
pub(super) fn push_collapsed(out: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}
