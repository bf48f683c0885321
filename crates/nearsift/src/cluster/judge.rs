//! What clustering asks about pairs of documents that no link joins.

/// Says how near two documents are that no link joins: whatever has the documents.
///
/// A function of two documents that returns a strength is one.
pub trait Judge {
    /// Why it cannot judge. It ends the clustering.
    type Error: Send;

    /// The strength of a pair, on the scale of the links, when the two are near duplicates; `a` is the smaller number.
    ///
    /// # Errors
    /// When it cannot be known, such as when a text cannot be read back.
    fn strength(&mut self, a: u32, b: u32) -> Result<Option<u32>, Self::Error>;
}

impl<F: FnMut(u32, u32) -> Result<Option<u32>, E>, E: Send> Judge for F {
    type Error = E;

    fn strength(&mut self, a: u32, b: u32) -> Result<Option<u32>, E> {
        self(a, b)
    }
}

/// The judge that accepts no pair: links alone decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinksAlone;

impl Judge for LinksAlone {
    type Error = std::convert::Infallible;

    fn strength(&mut self, _: u32, _: u32) -> Result<Option<u32>, Self::Error> {
        Ok(None)
    }
}
