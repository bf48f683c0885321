//! Fingerprints in memory that come and go, searched by distance.

use std::sync::{Mutex, PoisonError, RwLock};

use nearsift::fingerprint::Bits;
use nearsift::hamming::index::{Ask, MutableIndex, Scratch, Search};

use crate::failure::{Failure, guard, nearsift_status};
use crate::fingerprint::{nearsift_fingerprint, width};
use crate::method::check_distance;
use crate::pointer::{out, reference, slice_mut, take_back};

/// Fingerprints in memory with ids of the caller's, searched exactly by distance. All threads may use one at the same time: queries
/// beside each other, changes one after the other.
pub struct nearsift_memory_index {
    bits: Bits,
    max_distance: u32,
    table: RwLock<MutableIndex>,
    /// Memory of earlier queries.
    scratches: Mutex<Vec<Scratch>>,
}

/// An id whose fingerprint is within the distance that was asked.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nearsift_neighbour {
    /// The id that was given with the fingerprint.
    pub id: u64,
    /// The Hamming distance in bits.
    pub distance: u32,
}

impl nearsift_memory_index {
    fn poisoned() -> Failure {
        Failure::new(
            nearsift_status::Internal,
            "the index was left half changed by a fault: free it and fill a new one",
        )
    }

    /// The words of a fingerprint of this index.
    fn words<'f>(&self, fingerprint: &'f nearsift_fingerprint) -> Result<&'f [u64], Failure> {
        if fingerprint.bits != self.bits.count() {
            return Err(Failure::argument(format_args!(
                "'fingerprint' has {} bits, and the index holds fingerprints of {}: expected one of the same recipe",
                fingerprint.bits,
                self.bits.count()
            )));
        }
        Ok(&fingerprint.words[..self.bits.words()])
    }
}

/// An empty index of fingerprints of 64, 128 or 256 bits for distances up to `max_distance`, laid out for about `expected` of them; it
/// takes more, and grows slower at it.
///
/// On failure `*index` is NULL. Free it with `nearsift_memory_index_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_new(
    bits: u32,
    max_distance: u32,
    expected: u64,
    index: *mut *mut nearsift_memory_index,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let index = unsafe { out(index, "index") }?.cleared();
        let bits = width(bits, "bits")?;
        check_distance(max_distance, bits)?;
        let table = RwLock::new(MutableIndex::new(bits, max_distance, expected)?);
        let scratches = Mutex::default();
        index.hand_over(nearsift_memory_index { bits, max_distance, table, scratches });
        Ok(())
    })
}

/// Adds a fingerprint with an id. The same may be added more than once, and is then found so often.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_insert(
    index: *const nearsift_memory_index,
    fingerprint: *const nearsift_fingerprint,
    id: u64,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, fingerprint) =
            unsafe { (reference(index, "index")?, reference(fingerprint, "fingerprint")?) };
        let words = index.words(fingerprint)?;
        let mut table = index.table.write().map_err(|_| nearsift_memory_index::poisoned())?;
        Ok(table.insert(words, id)?)
    })
}

/// Removes a fingerprint with its id, once if it was added more often, and returns whether it was there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_remove(
    index: *const nearsift_memory_index,
    fingerprint: *const nearsift_fingerprint,
    id: u64,
    was_there: *mut bool,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, fingerprint, was_there) = unsafe {
            (
                reference(index, "index")?,
                reference(fingerprint, "fingerprint")?,
                out(was_there, "was_there")?,
            )
        };
        let words = index.words(fingerprint)?;
        let mut table = index.table.write().map_err(|_| nearsift_memory_index::poisoned())?;
        was_there.write(table.remove(words, id)?);
        Ok(())
    })
}

/// The number of fingerprints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_count(
    index: *const nearsift_memory_index,
    count: *mut u64,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, count) = unsafe { (reference(index, "index")?, out(count, "count")?) };
        let table = index.table.read().map_err(|_| nearsift_memory_index::poisoned())?;
        count.write(table.documents());
        Ok(())
    })
}

/// Finds all fingerprints within `max_distance` bits, inclusive, which is at most that of the index.
///
/// Writes the nearest `capacity` of them to `neighbours`, the nearest first and equally near ones by ascending id, and to `*found` how
/// many there are: when there are more than `capacity`, call again with room for all. `neighbours` may be NULL when `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_query(
    index: *const nearsift_memory_index,
    fingerprint: *const nearsift_fingerprint,
    max_distance: u32,
    neighbours: *mut nearsift_neighbour,
    capacity: usize,
    found: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (index, fingerprint, neighbours, found) = unsafe {
            (
                reference(index, "index")?,
                reference(fingerprint, "fingerprint")?,
                slice_mut(neighbours, capacity, "neighbours")?,
                out(found, "found")?,
            )
        };
        let words = index.words(fingerprint)?;
        if max_distance > index.max_distance {
            return Err(Failure::argument(format_args!(
                "'max_distance' is {max_distance}, and the index was made for {} at most: make it for {max_distance}",
                index.max_distance
            )));
        }
        let scratches = || index.scratches.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = scratches().pop();
        let mut scratch = kept.unwrap_or_default();
        let table = index.table.read().map_err(|_| nearsift_memory_index::poisoned())?;
        let answer = table.range(words, &Ask::within(max_distance), &mut scratch)?;
        drop(table);
        scratches().push(scratch);
        for (place, near) in neighbours.iter_mut().zip(&answer.matches) {
            place.write(nearsift_neighbour { id: near.id, distance: near.distance });
        }
        found.write(answer.matches.len());
        Ok(())
    })
}

/// Frees an index. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_memory_index_free(
    index: *mut nearsift_memory_index,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        drop(unsafe { take_back(index) });
        Ok(())
    })
}
