//! One pass over a page's tokens: its blocks of text, and how much work a document tree of it would be.
//!
//! Linear in the page's bytes, whatever they are: the stack of open elements is never deeper than
//! [`TRACKED_DEPTH`].

use std::convert::Infallible;

use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};

use super::super::script::{Class, class};

/// Deeper elements are no longer followed, only counted.
const TRACKED_DEPTH: usize = 512;

/// What a page holds.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// `<title>`, white space collapsed.
    pub(super) title: String,
    /// The text of all blocks, one after the other.
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
    pub(super) load: Load,
}

/// A stretch of text between the edges of block elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// Where its text ends in [`Scan::text`]; it begins where the one before ends.
    pub(super) end: usize,
    /// Twice its words: a word of an alphabetic script counts 2, a character of others 1.
    pub(super) half_words: u32,
    /// Those of them inside links.
    pub(super) link_half_words: u32,
    /// What surrounds it says that it is no main text: navigation, footer, hidden.
    pub(super) framed: bool,
    /// A heading.
    pub(super) heading: bool,
}

/// What a tree builder and a walk over the tree would have to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// The deepest nesting, up to a little past [`TRACKED_DEPTH`].
    pub(super) depth: usize,
    /// Steps; see [`Scanner::open`] for what is a step.
    pub(super) work: u64,
}

pub(super) fn scan(html: &str) -> Scan {
    let mut scan = Scan::default();
    let reader = Reader(CallbackEmitter::new(Scanner::new(&mut scan)));
    let Ok(()) = Tokenizer::new_with_emitter(html, reader).finish();
    // A tree builder gets each of these as a text of its own.
    scan.load.work += memchr::memchr2_iter(b'&', 0, html.as_bytes()).count() as u64;
    scan
}

/// Tells the tokenizer which elements hold raw text.
struct Reader<'a>(CallbackEmitter<Scanner<'a>>);

impl ForwardingEmitter for Reader<'_> {
    type Token = Infallible;

    fn inner(&mut self) -> &mut impl Emitter<Token = Infallible> {
        &mut self.0
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        let state = self.0.emit_current_tag();
        self.0.callback_mut().raw.take().or(state)
    }

    fn emit_eof(&mut self) {
        self.0.emit_eof();
        self.0.callback_mut().end_block();
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

fn kind(name: &[u8]) -> Kind {
    match name {
        b"area" | b"base" | b"basefont" | b"bgsound" | b"br" | b"col" | b"embed" | b"frame"
        | b"hr" | b"img" | b"input" | b"keygen" | b"link" | b"meta" | b"param" | b"source"
        | b"track" | b"wbr" => Kind::Void,
        b"script" | b"style" | b"noscript" | b"template" | b"svg" | b"math" | b"select"
        | b"textarea" | b"button" | b"iframe" | b"canvas" | b"audio" | b"video" | b"title"
        | b"noembed" | b"noframes" | b"xmp" | b"plaintext" => Kind::Dropped,
        b"html" | b"head" | b"body" | b"p" | b"li" | b"dt" | b"dd" | b"option" | b"optgroup"
        | b"tr" | b"td" | b"th" | b"thead" | b"tbody" | b"tfoot" | b"caption" | b"colgroup" => {
            Kind::Implied
        }
        b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small"
        | b"strike" | b"strong" | b"tt" | b"u" => Kind::Formatting,
        b"table" | b"object" | b"marquee" | b"applet" => Kind::Barrier,
        b"address" | b"article" | b"aside" | b"blockquote" | b"center" | b"details" | b"dialog"
        | b"dir" | b"div" | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"footer"
        | b"form" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header" | b"hgroup"
        | b"legend" | b"main" | b"menu" | b"nav" | b"ol" | b"pre" | b"search" | b"section"
        | b"summary" | b"ul" => Kind::Block,
        _ => Kind::Inline,
    }
}

impl Kind {
    fn parts_text(self, name: &[u8]) -> bool {
        match self {
            Kind::Barrier | Kind::Block => true,
            Kind::Implied => !matches!(name, b"option" | b"optgroup"),
            Kind::Void => name == b"hr",
            _ => false,
        }
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
    framed: bool,
}

/// The attribute whose value is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attribute {
    Role,
    Style,
    AriaHidden,
    Other,
}

#[derive(Debug)]
struct Scanner<'a> {
    scan: &'a mut Scan,
    open: Vec<Open>,
    /// Elements opened past [`TRACKED_DEPTH`].
    untracked: usize,
    framed: usize,
    formatting: u64,
    in_link: bool,
    in_heading: bool,
    in_title: bool,
    /// The element whose content is dropped, while inside it.
    dropped: Option<u64>,
    block: Block,
    /// White space that waits for the next word: space, or line feed after `<br>`.
    gap: Option<char>,
    /// The start tag that is being read: name, attribute, number of attributes, and what they said.
    name: Vec<u8>,
    attribute: Attribute,
    attributes: u64,
    has_href: bool,
    frames: bool,
    /// How the tokenizer is to read on after this tag, where it is not as usual.
    raw: Option<State>,
}

impl Callback<Infallible, ()> for Scanner<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.name.clear();
                self.name.extend_from_slice(name);
                self.attributes = 0;
                self.has_href = false;
                self.frames = matches!(name, b"nav" | b"footer" | b"aside");
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes += 1;
                self.frames |= name == b"hidden";
                self.has_href |= name == b"href";
                self.attribute = match name {
                    b"role" => Attribute::Role,
                    b"style" => Attribute::Style,
                    b"aria-hidden" => Attribute::AriaHidden,
                    _ => Attribute::Other,
                };
            }
            CallbackEvent::AttributeValue { value } => {
                self.frames |= match self.attribute {
                    Attribute::Role => matches!(
                        value,
                        b"navigation" | b"contentinfo" | b"complementary" | b"search" | b"menu"
                    ),
                    Attribute::Style => hides(value),
                    Attribute::AriaHidden => value == b"true",
                    _ => false,
                };
            }
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None
    }
}

impl<'a> Scanner<'a> {
    fn new(scan: &'a mut Scan) -> Scanner<'a> {
        Scanner {
            scan,
            open: Vec::new(),
            untracked: 0,
            framed: 0,
            formatting: 0,
            in_link: false,
            in_heading: false,
            in_title: false,
            dropped: None,
            block: Block::default(),
            gap: None,
            name: Vec::new(),
            attribute: Attribute::Other,
            attributes: 0,
            has_href: false,
            frames: false,
            raw: None,
        }
    }

    fn start(&mut self, self_closing: bool) {
        let name = std::mem::take(&mut self.name);
        let kind = kind(&name);
        self.open(tag(&name), kind);
        // Inside a drawing a script or title is an element like any other.
        let in_drawing = self.dropped.is_some_and(|d| d == tag(b"svg") || d == tag(b"math"));
        self.raw = if in_drawing { None } else { raw_text(&name) };
        if self.dropped.is_some_and(|d| d != tag(b"noscript")) && kind.parts_text(&name) {
            // No block stands inside a button, a drawing and the like: its end tag is missing.
            // Raw text (script, style) never comes here: the tokenizer reads to its end tag.
            self.dropped = None;
        }
        if self.dropped.is_none() {
            match (kind, name.as_slice()) {
                (Kind::Dropped, b"title") if self.scan.title.is_empty() => {
                    self.in_title = true;
                    self.dropped = Some(tag(&name));
                }
                (Kind::Dropped, _) if !self_closing => self.dropped = Some(tag(&name)),
                (Kind::Void, b"br") => self.gap = Some('\n'),
                (Kind::Formatting, b"a") => self.in_link = self.has_href,
                _ if kind.parts_text(&name) => {
                    self.end_block();
                    self.in_heading = is_heading(&name);
                    // The stack does not hold a paragraph or list item: its first block must do.
                    self.block.framed = self.frames;
                }
                _ => {}
            }
        }
        self.name = name;
    }

    /// Follows the nesting, and counts steps: one for each element, attribute, formatting element that
    /// would be opened anew, 16 levels that a walk to the root would climb, and 16 pairs of attributes,
    /// which a tree builder compares with each other; in text one for each `<`, and anywhere one for
    /// each `&` and each NUL.
    fn open(&mut self, tag: u64, kind: Kind) {
        let load = &mut self.scan.load;
        let depth = self.open.len() + self.untracked;
        load.work += 1 + self.attributes + self.attributes * self.attributes / 16;
        load.work += self.formatting + depth as u64 / 16;
        if matches!(kind, Kind::Void | Kind::Implied) {
            return;
        }
        load.depth = load.depth.max(depth + 1);
        if self.open.len() == TRACKED_DEPTH {
            self.untracked += 1;
            return;
        }
        self.formatting += u64::from(kind == Kind::Formatting);
        self.framed += usize::from(self.frames);
        self.open.push(Open { tag, kind, framed: self.frames });
    }

    fn end(&mut self, name: &[u8]) {
        let (tag, kind) = (tag(name), kind(name));
        if self.dropped == Some(tag) {
            self.dropped = None;
            self.in_title = false;
        }
        if self.dropped.is_none() && kind.parts_text(name) {
            self.end_block();
            self.in_heading = false;
        }
        match kind {
            _ if name == b"a" => self.in_link = false,
            Kind::Void if name == b"br" => self.gap = Some('\n'),
            _ => {}
        }
        self.close(tag, kind);
    }

    /// Closes the innermost element of this name as tree construction would: a block closes all
    /// inside it, a formatting element only itself, any other only what is no block.
    fn close(&mut self, tag: u64, kind: Kind) {
        if matches!(kind, Kind::Void | Kind::Implied) {
            return;
        }
        if self.untracked > 0 {
            self.untracked -= 1;
            return;
        }
        let mut found = None;
        for (index, open) in self.open.iter().enumerate().rev() {
            self.scan.load.work += u64::from(index % 16 == 0);
            if open.tag == tag {
                found = Some(index);
                break;
            }
            let stops = match kind {
                Kind::Block => open.kind == Kind::Barrier,
                Kind::Inline => matches!(open.kind, Kind::Block | Kind::Barrier),
                _ => false,
            };
            if stops {
                break;
            }
        }
        let Some(at) = found else { return };
        let closed = if kind == Kind::Formatting { at..at + 1 } else { at..self.open.len() };
        for open in self.open.drain(closed) {
            self.formatting -= u64::from(open.kind == Kind::Formatting);
            self.framed -= usize::from(open.framed);
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            push_collapsed(&mut self.scan.title, text);
        }
        if self.dropped.is_some() {
            return;
        }
        self.scan.load.work += memchr::memchr_iter(b'<', text.as_bytes()).count() as u64;
        let begin = self.begin();
        let mut half_words = 0;
        let mut before = Class::Separator;
        for c in text.chars() {
            if c.is_whitespace() {
                self.gap = self.gap.or(Some(' '));
                before = Class::Separator;
                continue;
            }
            if let Some(gap) = self.gap.take()
                && self.scan.text.len() > begin
            {
                self.scan.text.push(gap);
            }
            self.scan.text.push(c);
            let now = class(c);
            half_words += match now {
                Class::Unspaced => 1,
                Class::Alphabetic if before != Class::Alphabetic => 2,
                _ => 0,
            };
            before = now;
        }
        self.block.half_words += half_words;
        self.block.link_half_words += if self.in_link { half_words } else { 0 };
        self.block.framed |= self.framed > 0;
        self.block.heading |= self.in_heading;
    }

    /// Where the text of the block that is being read begins.
    fn begin(&self) -> usize {
        self.scan.blocks.last().map_or(0, |block| block.end)
    }

    fn end_block(&mut self) {
        if self.scan.text.len() > self.begin() {
            self.scan.blocks.push(Block { end: self.scan.text.len(), ..self.block });
        }
        self.block = Block::default();
        self.gap = None;
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

fn is_heading(name: &[u8]) -> bool {
    matches!(name, [b'h', b'1'..=b'6'])
}

/// Whether a `style` hides the element.
fn hides(style: &[u8]) -> bool {
    let compact: Vec<u8> = style
        .iter()
        .take(256)
        .filter(|b| !b.is_ascii_whitespace())
        .map(u8::to_ascii_lowercase)
        .collect();
    memchr::memmem::find(&compact, b"display:none").is_some()
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
