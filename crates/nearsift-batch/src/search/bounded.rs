//! Texts that are compared within the bounds of a job.

use nearsift::search::TextSource;

use crate::context::Context;
use crate::error::Error;

/// Texts whose comparison stops when the job does, and waits for memory where the job has a limit.
pub struct Bounded<'c, T> {
    context: &'c Context<'c>,
    texts: T,
}

impl<'c, T> Bounded<'c, T> {
    pub fn by(context: &'c Context<'c>, texts: T) -> Bounded<'c, T> {
        Bounded { context, texts }
    }
}

impl<T: TextSource<Error = Error>> TextSource for Bounded<'_, T> {
    type Error = Error;

    fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Error> {
        self.texts.with_text(document, f)
    }

    fn len_of(&self, document: u32) -> usize {
        self.texts.len_of(document)
    }

    fn check(&self) -> Result<(), Error> {
        self.context.check()
    }

    fn with_room<R>(&self, bytes: usize, f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        // The first pass admits no text that would not fit; the text of a reference may be longer.
        let ticket = self.context.admit_pair(bytes);
        let _ticket = ticket.map_err(|too_large| too_large.at("a document of `against`"))?;
        f()
    }
}
