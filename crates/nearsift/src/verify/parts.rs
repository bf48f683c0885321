//! Code and prose in one text.
//!
//! A source file's comments and its licence say little about what the file is; in a page of a manual the prose says more
//! than an example that its translations share. So a text with code has a *body*, which is compared
//! once more by itself: of source code the lines that are no comments, of other texts the lines that are no code.

use super::facts::hash_of_name;
use crate::text::script::{Class, class};

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    #[default]
    Prose,
    /// Prose with examples in code.
    Mixed,
    /// Source code.
    Code,
}

/// The parts of a text with code.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) kind: Kind,
    /// The part that says most.
    pub(super) body: String,
    /// The hashes of the names that code defines, ascending, each once.
    pub(super) names: Vec<u32>,
}

/// Source code has at least this many times as many letters in code as in prose.
const MOSTLY: usize = 4;

/// A page with examples has at most this many times as many letters in prose as in code.
const PARTLY: usize = 9;

/// How often a letter of a script without spaces counts: it says as much as several others.
const UNSPACED: usize = 2;

/// Fewer lines of code and comments are no code.
const FEWEST_LINES: usize = 2;

/// Less prose than this is not compared by itself.
const SHORTEST_BODY: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Code,
    Comment,
    Prose,
    /// A few words, which may be either.
    Short,
}

/// The parts of a normalised text, unless it is prose alone.
///
/// # Complexity
/// O(bytes).
pub(super) fn parts(text: &str) -> Option<Parts> {
    if !may_have_code(text) {
        return None;
    }
    let kind = kind(text)?;
    // Read twice rather than kept: a text may be all lines.
    let (mut body, mut names) = (String::new(), Vec::new());
    for (line, is_fenced, content) in lines(text) {
        let is_of_body = match kind {
            Kind::Code => line != Line::Comment,
            // What begins as a comment is a heading there, or an item of a list.
            _ => line != Line::Code && !is_fenced,
        };
        if is_of_body {
            body += content;
            body.push('\n');
        }
        if line == Line::Code {
            names.extend(defined(content).map(hash_of_name));
        }
    }
    if kind == Kind::Mixed && weight(&body) < SHORTEST_BODY {
        return None;
    }
    names.sort_unstable();
    names.dedup();
    Some(Parts { kind, body, names })
}

/// What a text is; `None` for prose.
fn kind(text: &str) -> Option<Kind> {
    let (mut letters, mut counts) = ([0usize; 4], [0usize; 4]);
    for (line, _, content) in lines(text) {
        let [alphabetic, unspaced] = weights(content);
        letters[line as usize] += alphabetic;
        // Code is written in letters of the other kind: these are what it talks about.
        letters[if line == Line::Code { Line::Prose } else { line } as usize] += unspaced;
        counts[line as usize] += 1;
    }
    let [code, _, prose, short] = letters;
    let [code_lines, comment_lines, ..] = counts;
    let too_few = code_lines == 0 || code_lines + comment_lines < FEWEST_LINES;
    if too_few || code * PARTLY < prose + short {
        return None;
    }
    let is_code = code >= MOSTLY * prose && 2 * code >= short;
    Some(if is_code { Kind::Code } else { Kind::Mixed })
}

/// The lines of a text, what each is, and whether it stands between fences.
fn lines(text: &str) -> impl Iterator<Item = (Line, bool, &str)> {
    let mut reader = Reader::default();
    text.lines().map(move |content| {
        let (line, is_fenced) = reader.read(content);
        (line, is_fenced, content)
    })
}

/// Whether signs that code is full of are in a text, and lines.
fn may_have_code(text: &str) -> bool {
    let is_sign = |byte: &&u8| STRONG.contains(byte);
    text.as_bytes().iter().filter(is_sign).count() * 100 >= text.len()
        && text.lines().nth(FEWEST_LINES - 1).is_some()
}

/// Signs that are frequent in code and rare in prose.
const STRONG: &[u8] = b"{}()[];=<>_@$|&\\";

/// Words that statements begin with.
const STATEMENTS: &[&str] = &[
    "import",
    "from",
    "def",
    "class",
    "return",
    "if",
    "elif",
    "else",
    "for",
    "while",
    "try",
    "except",
    "finally",
    "with",
    "raise",
    "yield",
    "await",
    "async",
    "pass",
    "break",
    "continue",
    "assert",
    "const",
    "let",
    "var",
    "function",
    "export",
    "public",
    "private",
    "protected",
    "static",
    "fn",
    "func",
    "impl",
    "struct",
    "enum",
    "match",
    "switch",
    "case",
    "end",
    "use",
    "package",
    "module",
    "#include",
    "#define",
    "#if",
    "#endif",
];

/// Words before a name that is defined.
const DEFINING: &[&str] = &[
    "def",
    "class",
    "function",
    "fn",
    "func",
    "sub",
    "struct",
    "enum",
    "interface",
    "trait",
    "type",
    "module",
    "namespace",
    "package",
    "const",
    "let",
    "var",
];

/// Reads lines, and knows what they stand in.
#[derive(Default)]
struct Reader {
    /// In a comment of several lines, how it ends.
    comment_until: Option<&'static str>,
    in_fence: bool,
}

/// How comments of several lines begin and end: those of C and of markup, and the texts that document Python.
const COMMENTS: [(&str, &str); 5] =
    [("/*", "*/"), ("<!--", "-->"), ("\"\"\"", "\"\"\""), ("r\"\"\"", "\"\"\""), ("'''", "'''")];

impl Reader {
    /// What a line is, and whether it stands between fences.
    fn read(&mut self, line: &str) -> (Line, bool) {
        let line = line.trim();
        if let Some(end) = self.comment_until {
            if line.contains(end) {
                self.comment_until = None;
            }
            return (Line::Comment, self.in_fence);
        }
        if line.starts_with("```") || line.starts_with("~~~") {
            self.in_fence = !self.in_fence;
            return (Line::Comment, true);
        }
        if let Some((begin, end)) = COMMENTS.iter().find(|(begin, _)| line.starts_with(begin)) {
            if !line[begin.len()..].contains(end) {
                self.comment_until = Some(end);
            }
            return (Line::Comment, self.in_fence);
        }
        let kind = match line {
            _ if is_comment(line) => Line::Comment,
            _ if self.in_fence || is_code(line) => Line::Code,
            _ if is_prose(line) => Line::Prose,
            _ => Line::Short,
        };
        (kind, self.in_fence)
    }
}

fn is_comment(line: &str) -> bool {
    let is_statement =
        || line.starts_with("#include") || line.starts_with("#define") || line.starts_with("#if");
    line.starts_with("//")
        || line.starts_with("* ")
        || line.starts_with("-- ")
        || (line.starts_with('#') && !is_statement())
}

fn is_code(line: &str) -> bool {
    let signs = line.bytes().filter(|byte| STRONG.contains(byte)).count();
    let letters = line.chars().filter(|c| c.is_alphanumeric()).count();
    let first = line.split(|c: char| c.is_whitespace() || "({:;".contains(c)).next().unwrap_or("");
    let ends_as_code = line.ends_with(['{', '}', ';', '(', ')', '[', ']', ',', ':', '=']);
    signs * 8 >= letters.max(1)
        || (signs >= 2 && signs >= line.split_whitespace().count())
        || (STATEMENTS.contains(&first)
            && (signs > 0 || ends_as_code || line.split_whitespace().count() <= 4))
        || (signs > 0 && line.ends_with(['{', '}', ';', '(', '[', ',']))
}

/// Words in a row, without the signs that join names; a text in quotes may be a string.
fn is_prose(line: &str) -> bool {
    if line.starts_with(['"', '\'']) {
        return false;
    }
    let is_word = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        !word.is_empty() && !word.contains(['_', '.', '=', '(', '/', ':'])
    };
    line.split_whitespace().filter(is_word).count() >= PROSE_WORDS
        || weight(line) > 2 * line.chars().filter(char::is_ascii_alphanumeric).count() + PROSE_WORDS
}

/// A line with at least this many plain words is prose.
const PROSE_WORDS: usize = 6;

/// Letters and digits of scripts with spaces, and of those without, which count more than once.
fn weights(text: &str) -> [usize; 2] {
    let mut weights = [0; 2];
    for c in text.chars() {
        match class(c) {
            Class::Separator => {}
            Class::Alphabetic => weights[0] += 1,
            Class::Unspaced => weights[1] += UNSPACED,
        }
    }
    weights
}

fn weight(text: &str) -> usize {
    weights(text).iter().sum()
}

/// The names that a line of code defines.
fn defined(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = line.split(move |c| !is_part(c)).filter(|word| !word.is_empty());
    std::iter::from_fn(move || {
        words.find(|word| DEFINING.contains(word))?;
        words.next()
    })
}
