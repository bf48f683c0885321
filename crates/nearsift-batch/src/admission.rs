//! Large documents are admitted by what they take, so that all that are worked on at once stay within the memory limit.
//!
//! A thread's usual working memory has a share of its own; a thread asks for what a large document takes beside it first,
//! and waits until others are done: it holds nothing yet, so no thread waits for ever. A document that would not fit alone is
//! refused with the limit that it needs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use nearsift::text::normalise::normalise_into;

use crate::context::Context;
use crate::error::Error;

/// Bytes that work on a document takes at the most for each byte of its normalised text: to sketch it, or to compare it with
/// one as long.
const A_BYTE: u64 = 64;

/// Copies of a raw record that are in memory: in batches that wait, and as it is parsed.
const COPIES: u64 = 4;

/// What a page takes while its main text is looked for, for each of its bytes.
const OF_PAGE: u64 = 24;

/// What takes no more than this has room in the working memory of its thread.
const FREE: u64 = 32 << 20;

/// Texts of fewer bytes take no more than [`FREE`], even where each character becomes eleven times as long.
const SHORT: usize = (FREE / A_BYTE / 11) as usize;

impl Context<'_> {
    /// The same job, in which all large documents together take at most `bytes` of the `of` bytes that the job may take.
    pub(crate) fn admitting(self, bytes: u64, of: u64) -> Self {
        Context { admission: Some(Arc::new(Admission::new(bytes, of))), ..self }
    }

    /// Waits until the main text of a page of `bytes` bytes may be extracted.
    ///
    /// # Errors
    /// It would not fit alone.
    pub(crate) fn admit_page(&self, bytes: usize) -> Result<Ticket<'_>, TooLarge> {
        self.admit(bytes as u64 * OF_PAGE)
    }

    /// Waits until a text may be worked on that stood in a record of `record` bytes.
    ///
    /// # Errors
    /// It would not fit alone.
    pub(crate) fn admit_text(&self, text: &str, record: usize) -> Result<Ticket<'_>, TooLarge> {
        if self.admission.is_none() || text.len().max(record) < SHORT {
            return Ok(Ticket::default());
        }
        self.admit(cost(normalised_len(text), record as u64))
    }

    /// Waits until two normalised texts may be compared, of at most `longer` bytes each.
    ///
    /// # Errors
    /// It would not fit alone.
    pub(crate) fn admit_pair(&self, longer: usize) -> Result<Ticket<'_>, TooLarge> {
        self.admit(cost(longer as u64, 0))
    }

    fn admit(&self, cost: u64) -> Result<Ticket<'_>, TooLarge> {
        match &self.admission {
            Some(admission) if cost > FREE => admission.enter(cost),
            _ => Ok(Ticket::default()),
        }
    }
}

/// What work on a text takes, by the bytes of its normalised form and of its record.
pub fn cost(normalised: u64, record: u64) -> u64 {
    normalised * A_BYTE + record * COPIES
}

/// The largest record of a plain text, in bytes, that fits in `bytes`.
pub fn largest_record(bytes: u64) -> u64 {
    bytes / (A_BYTE + COPIES)
}

/// The bytes of a text after normalisation, a part at a time.
fn normalised_len(text: &str) -> u64 {
    const PART: usize = 64 << 10;
    let (mut rest, mut part, mut len) = (text, String::new(), 0);
    while !rest.is_empty() {
        let (begin, after) = rest.split_at(rest.floor_char_boundary(PART));
        part.clear();
        normalise_into(begin, &mut part);
        len += part.len() as u64;
        rest = after;
    }
    len
}

/// What takes more than all that large documents may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    needed: u64,
    available: u64,
    /// All that the process may take.
    of: u64,
}

impl TooLarge {
    /// What to do about a document at some place.
    pub fn at(self, place: &str) -> Error {
        let TooLarge { needed, available, of } = self;
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        Error::invalid(format!(
            "{place}: this document takes up to {}MB, and `memory` {}MB leaves {}MB: give `memory` {}MB, or leave out records as large by `max-record-bytes` {}",
            megabytes(needed),
            of / 1_000_000,
            available / 1_000_000,
            megabytes(of + needed - available),
            largest_record(available),
        ))
    }
}

/// The bytes that large documents may take, and that they take now.
#[derive(Debug)]
pub(crate) struct Admission {
    capacity: u64,
    of: u64,
    taken: Mutex<u64>,
    freed: Condvar,
}

impl Admission {
    fn new(capacity: u64, of: u64) -> Admission {
        Admission { capacity, of, taken: Mutex::new(0), freed: Condvar::new() }
    }

    fn enter(&self, cost: u64) -> Result<Ticket<'_>, TooLarge> {
        if cost > self.capacity {
            return Err(TooLarge { needed: cost, available: self.capacity, of: self.of });
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken + cost > self.capacity {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += cost;
        Ok(Ticket { of: Some(self), cost })
    }
}

/// Leave to take memory, until it is dropped.
#[derive(Debug, Default)]
pub struct Ticket<'a> {
    of: Option<&'a Admission>,
    cost: u64,
}

impl Ticket<'_> {
    /// Whether it is for more than a thread's usual working memory: what was taken is to be given back.
    pub fn is_large(&self) -> bool {
        self.of.is_some()
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(admission) = self.of {
            *admission.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.cost;
            admission.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Whatever order the threads come in, what they hold is within the limit, and all are let in.
    #[test]
    fn what_is_admitted_stays_within_the_limit() {
        const CAPACITY: u64 = 100;
        let admission = Admission::new(CAPACITY, CAPACITY);
        let (held, most, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (admission, held, most, done) = (&admission, &held, &most, &done);
                scope.spawn(move || {
                    for turn in 0..200 {
                        let cost = 1 + (thread * 37 + turn * 101) % CAPACITY;
                        let ticket = admission.enter(cost).expect("it fits alone");
                        most.fetch_max(
                            held.fetch_add(cost, Ordering::SeqCst) + cost,
                            Ordering::SeqCst,
                        );
                        std::thread::yield_now();
                        held.fetch_sub(cost, Ordering::SeqCst);
                        drop(ticket);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 8 * 200);
        let most = most.into_inner();
        assert!(CAPACITY / 2 < most && most <= CAPACITY, "{most}");
        assert_eq!(*admission.taken.lock().expect("a lock"), 0);
    }

    #[test]
    fn what_does_not_fit_alone_is_told() {
        let admission = Admission::new(1_000_000_000, 1_700_000_000);
        assert!(admission.enter(1_000_000_000).is_ok());
        let error = admission.enter(3_000_000_001).expect_err("too large");
        let told = error.at("a.jsonl: 7").to_string();
        assert!(told.starts_with("a.jsonl: 7: "), "{told}");
        assert!(told.contains("takes up to 3001MB, and `memory` 1700MB leaves 1000MB"), "{told}");
        assert!(told.contains("give `memory` 3701MB"), "{told}");
        let largest = largest_record(1_000_000_000);
        assert!(told.ends_with(&format!("`max-record-bytes` {largest}")), "{told}");
        assert!(cost(largest, largest) <= 1_000_000_000);
    }

    #[test]
    fn a_text_is_as_long_as_its_normal_form() {
        for text in ["", "abc", "ＡＢＣ臺灣", "\u{fdfa}", "e\u{301}"] {
            let text = text.repeat(1000);
            let len = nearsift::text::normalise::normalise(&text).len() as u64;
            assert_eq!(normalised_len(&text), len);
        }
        let long = "\u{fdfa}中a".repeat(50_000);
        assert_eq!(normalised_len(&long), 50_000 * (33 + 3 + 1));
        assert!(cost(11 * SHORT as u64, 0) <= FREE);
    }
}
