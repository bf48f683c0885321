//! Standard output and standard error.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Buffered standard output. A closed pipe ends the program quietly.
pub struct Out {
    writer: BufWriter<io::StdoutLock<'static>>,
}

impl Out {
    pub fn new() -> Out {
        Out { writer: BufWriter::with_capacity(1 << 16, io::stdout().lock()) }
    }

    pub fn line(&mut self, line: &str) -> Result<(), Failure> {
        check(writeln!(self.writer, "{line}"))
    }

    /// One JSON line.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(Failure::new)?;
        self.line(&line)
    }

    /// Must be called at the end: what a buffer holds back may not be writable.
    pub fn finish(mut self) -> Result<(), Failure> {
        check(self.writer.flush())
    }
}

fn check(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::new(format!("standard output: cannot write: {error}")),
    })
}

/// A line on standard error. Whether it can be written changes nothing.
pub fn warn(line: &str) {
    let _ = writeln!(anstream::stderr(), "{}", escaped(line));
}

/// Control characters made harmless: a file name or a field must not steer the terminal.
pub fn escaped(text: &str) -> String {
    if !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
