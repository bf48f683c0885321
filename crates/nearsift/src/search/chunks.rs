//! Work that the threads share in chunks.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` finds at the places below `len`, in no order to rely on.
///
/// The threads take chunks of places in turn, so that all are at neighbouring places at one time. Each thread has a
/// state of its own, which `state` makes.
///
/// # Errors
/// The first that `work` returns in some thread, or that `check` returns before a chunk.
pub(super) fn in_chunks<S, R: Send, E: Send>(
    check: impl Fn() -> Result<(), E> + Sync,
    len: usize,
    chunk: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<Option<R>, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let of_thread = |_: rayon::BroadcastContext<'_>| {
        let (mut state, mut found) = (state(), Vec::new());
        loop {
            check()?;
            let from = next.fetch_add(chunk, Ordering::Relaxed).min(len);
            if from == len {
                return Ok(found);
            }
            for place in from..(from + chunk).min(len) {
                found.extend(work(&mut state, place)?);
            }
        }
    };
    let found: Vec<Vec<R>> = rayon::broadcast(of_thread).into_iter().collect::<Result<_, E>>()?;
    Ok(found.into_iter().flatten().collect())
}
