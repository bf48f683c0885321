//! How a store is opened and run. None of it changes what is stored.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nearsift::Threads;

use crate::disk::{Disk, RealDisk};
use crate::priority::Priority;
use crate::schema::{Kind, RecipeMark, Schema};

/// How a store is opened and run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its files are.
    pub disk: Arc<dyn Disk>,
    /// What it is opened for.
    pub access: Access,
    /// The recipe that the caller's fingerprints are from: another one's store is refused. `None` opens any.
    pub recipe: Option<RecipeMark>,
    /// Who makes and merges segments.
    pub maintenance: Maintenance,
    /// Documents that are held in memory before they become a segment, or `None` for what suits the kind:
    /// 2^20 fingerprints or 2^16 sketches.
    pub memory_documents: Option<u32>,
    /// Bytes of packed texts that are held in memory before they become a segment, but for those of the last batches.
    pub memory_text_bytes: u64,
    /// Bytes of the log after which the documents in memory become a segment.
    pub log_bytes: u64,
    /// A segment is merged with smaller ones when together they have more than one in this many of its documents.
    pub ratio: u32,
    /// How urgent it is to make and merge segments.
    pub priority: Priority,
    /// Who builds the index of a segment.
    pub threads: Threads,
    /// What tells the time, for documents that expire.
    pub clock: Clock,
    /// Whose memory texts are compared in.
    pub text_memory: TextMemory,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            disk: Arc::new(RealDisk),
            access: Access::ReadWrite,
            recipe: None,
            maintenance: Maintenance::Background,
            memory_documents: None,
            memory_text_bytes: 64 << 20,
            log_bytes: 256 << 20,
            ratio: 8,
            priority: Priority::Usual,
            threads: Threads::One,
            clock: Clock::System,
            text_memory: TextMemory::Own,
        }
    }
}

impl Options {
    pub(crate) fn memory_documents(&self, schema: &Schema) -> u32 {
        let usual = match schema.kind {
            Kind::Fingerprints { .. } => 1 << 20,
            Kind::Sketches { .. } => 1 << 16,
        };
        self.memory_documents.unwrap_or(usual).max(1)
    }

    /// The same with an index built by that many threads.
    #[must_use]
    pub fn with_threads(self, count: NonZeroUsize) -> Options {
        Options { threads: Threads::Own(count), ..self }
    }
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing, by one process at a time.
    ReadWrite,
    /// Reading what was written before it was opened, beside a process that writes.
    ReadOnly,
}

/// Who makes and merges segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// Two threads of the store.
    Background,
    /// The thread that writes, after it has written: the same operations then make the same files.
    Inline,
}

/// Whose memory texts are compared in: where texts are kept, two long ones take hundreds of MB.
#[derive(Clone, Default)]
pub enum TextMemory {
    /// The store's own, as much as comparisons take at a time.
    #[default]
    Own,
    /// The caller's memory. It lends the estimated bytes of a comparison of long texts until the loan is dropped. The function may
    /// wait: a thread that waits holds no other loan, and one that has its loan waits for no other.
    Lent(Arc<dyn Fn(usize) -> Loan + Send + Sync>),
}

/// Memory that is lent until this is dropped.
pub type Loan = Box<dyn std::any::Any + Send>;

impl TextMemory {
    /// Borrows this many bytes; `None` where the memory is the store's own.
    pub(crate) fn borrow(&self, bytes: usize) -> Option<Loan> {
        match self {
            TextMemory::Own => None,
            TextMemory::Lent(lend) => Some(lend(bytes)),
        }
    }
}

impl fmt::Debug for TextMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextMemory::Own => "Own",
            TextMemory::Lent(_) => "Lent",
        })
    }
}

/// What tells the time.
#[derive(Clone)]
pub enum Clock {
    /// The system's clock.
    System,
    /// A function that gives the seconds since 1970.
    Own(Arc<dyn Fn() -> u64 + Send + Sync>),
}

impl Clock {
    /// Always the same time, in seconds since 1970.
    pub fn fixed(seconds: u64) -> Clock {
        Clock::Own(Arc::new(move || seconds))
    }

    pub(crate) fn now(&self) -> u64 {
        match self {
            Clock::System => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
            }
            Clock::Own(tell) => tell(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::System => "System",
            Clock::Own(_) => "Own",
        })
    }
}
