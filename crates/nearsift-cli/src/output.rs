//! Standard output and standard error.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};
use nearsift_batch::PageLanguage;
use serde::Serialize;

use crate::args::Global;
use crate::failure::Failure;
use crate::{chinese, language, terminal};

/// Buffered standard output. A closed pipe ends the program quietly.
pub struct Out {
    writer: BufWriter<io::StdoutLock<'static>>,
    has_color: bool,
    is_terminal: bool,
}

impl Out {
    pub fn new() -> Out {
        let has_color = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let is_terminal = io::stdout().is_terminal();
        let writer = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Out { writer, has_color, is_terminal }
    }

    /// The text in a style, where colour is wanted and can be shown.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.has_color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub fn line(&mut self, line: &str) -> Result<(), Failure> {
        check(writeln!(self.writer, "{line}"))
    }

    /// One JSON line. On a terminal what could steer it is written as JSON's escapes, which mean the same.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(Failure::new)?;
        if self.is_terminal { self.line(&harmless_json(&line)) } else { self.line(&line) }
    }

    /// Shows what was written so far.
    pub fn flush(&mut self) -> Result<(), Failure> {
        check(self.writer.flush())
    }

    /// Must be called at the end: what a buffer holds back may not be writable.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

fn check(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::new(format!("standard output: cannot write: {error}")),
    })
}

/// Standard output as a job writes documents to it.
#[derive(Clone, Default)]
pub struct StandardOutput {
    is_closed: Arc<AtomicBool>,
}

impl StandardOutput {
    /// Whether its reader has closed it.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.noted(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.noted(io::stdout().flush())
    }
}

/// Prints the summary of a run whose results are in their folder: as JSON, for people, or not at all. When nobody reads
/// it any more, the run has succeeded all the same.
pub fn sum_up(
    global: &Global,
    summary: &impl Serialize,
    for_people: impl FnOnce(&mut Out) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = Out::new();
    let told = match (global.json, global.quiet) {
        (true, _) => out.json(summary),
        (false, true) => Ok(()),
        (false, false) => for_people(&mut out),
    };
    match told.and_then(|()| out.finish()) {
        Err(Failure::ClosedPipe) => Ok(()),
        told => told,
    }
}

/// Whether notes and warnings are left out: `--quiet`.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on [`tell`] tells errors only.
pub fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// A line on standard error, unless it is left out. Whether it can be written changes nothing.
pub fn tell(level: Severity, message: &str) {
    if level != Severity::Error && IS_QUIET.load(Ordering::Relaxed) {
        return;
    }
    let language = language::of_environment();
    let translated = match language {
        PageLanguage::Chinese => chinese::translated(message),
        PageLanguage::English => None,
    };
    let (style, message) = (level.style(), escaped(translated.as_deref().unwrap_or(message)));
    // The colon of Chinese has the gap in it.
    let (name, gap) = (level.name(language), language.pick([" ", ""]));
    terminal::beside(|| {
        let _ = writeln!(anstream::stderr(), "{style}{name}{style:#}{gap}{message}");
    });
}

/// A setting as the command line has it.
pub fn option(setting: &str) -> String {
    format!("--{setting}")
}

/// Lines of an explanation, on standard error.
pub fn explain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", escaped_text(text));
}

/// How much a line on standard error matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    /// What a line begins with.
    fn name(self, language: PageLanguage) -> &'static str {
        match (self, language) {
            (Severity::Error, PageLanguage::English) => "error:",
            (Severity::Warning, PageLanguage::English) => "warning:",
            (Severity::Note, PageLanguage::English) => "note:",
            (Severity::Error, PageLanguage::Chinese) => "错误：",
            (Severity::Warning, PageLanguage::Chinese) => "警告：",
            (Severity::Note, PageLanguage::Chinese) => "说明：",
        }
    }

    fn style(self) -> Style {
        let color = match self {
            Severity::Error => AnsiColor::Red,
            Severity::Warning => AnsiColor::Yellow,
            Severity::Note => AnsiColor::Cyan,
        };
        color.on_default().bold()
    }
}

/// What only one of two texts has, in `nearsift compare`.
pub const REMOVED: Style = AnsiColor::Red.on_default();
/// What only the other has.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// What stands elsewhere in the other text.
pub const MOVED: Style = AnsiColor::Blue.on_default();

/// A name made harmless for one line of a terminal: control characters and those that turn the
/// direction of writing are escaped. It must not steer the terminal, nor look like another line.
pub fn escaped(name: &str) -> String {
    harmless(name, is_unsafe)
}

/// The same for a text of several lines.
pub fn escaped_text(text: &str) -> String {
    harmless(text, |c| is_unsafe(c) && c != '\n' && c != '\t')
}

fn harmless(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_unsafe(c) => out.push(c),
            // Not `escape_default`, which writes the turns of direction as they are.
            '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

/// JSON in which no character steers a terminal: such characters stand in strings alone, and are escaped there.
fn harmless_json(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) {
            // All of them are of the basic plane, and so one unit.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters, line separators, and the characters that turn the direction of writing.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless() {
        let check = |name: &str, expect: &str| assert_eq!(escaped(name), expect);
        check("文件 one.txt", "文件 one.txt");
        check("a\nerror: b", "a\\nerror: b");
        check("\u{1b}[31m", "\\u{1b}[31m");
        check("a\u{202e}txt.exe", "a\\u{202e}txt.exe");
        let json = serde_json::to_string("a\u{1b}\u{9b}\u{202e}\u{2028}文").expect("a string");
        assert_eq!(harmless_json(&json), r#""a\u001b\u009b\u202e\u2028文""#);
        assert_eq!(escaped_text("a\n\tb\r\u{9b}"), "a\n\tb\\r\\u{9b}");
    }
}
