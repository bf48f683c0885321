//! The index of a segment, in memory.

use nearsift::hamming::index::{FormatError, Index};
use self_cell::self_cell;

/// Bytes that start at a multiple of 64, where searches are fastest.
pub(super) struct AlignedBytes {
    /// Whole cache lines and one to spare.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    pub(super) fn zeroed(len: usize) -> AlignedBytes {
        let bytes = vec![0; len + 63];
        let start = bytes.as_ptr().align_offset(64).min(63);
        AlignedBytes { bytes, start, len }
    }

    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

type Borrowed<'a> = Index<'a>;

self_cell!(
    /// An index with the bytes that it borrows from.
    pub(super) struct Loaded {
        owner: AlignedBytes,
        #[covariant]
        dependent: Borrowed,
    }
);

/// An index that owns its bytes.
pub(super) enum Filed {
    /// As it was built.
    Built(Index<'static>),
    /// As it was read.
    Loaded(Loaded),
}

impl Filed {
    pub(super) fn from_bytes(bytes: AlignedBytes) -> Result<Filed, FormatError> {
        let loaded = Loaded::try_new(bytes, |bytes| Index::from_bytes(bytes.as_slice()))?;
        Ok(Filed::Loaded(loaded))
    }

    #[inline]
    pub(super) fn get(&self) -> &Index<'_> {
        match self {
            Filed::Built(index) => index,
            Filed::Loaded(loaded) => loaded.borrow_dependent(),
        }
    }
}

impl std::fmt::Debug for Filed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filed").field("plan", &self.get().plan()).finish()
    }
}
