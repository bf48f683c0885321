//! Work that waits for a thread: bounded, and closed when the service stops.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::pool::Undone;

/// How many jobs wait, and for how long they may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) capacity: usize,
    pub(crate) patience: Duration,
}

/// A job that waits.
pub(crate) struct Queued<T> {
    since: Instant,
    pub(crate) job: T,
}

/// Jobs in the order in which they came.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    ready: Condvar,
    bounds: Bounds,
}

struct Waiting<T> {
    jobs: VecDeque<Queued<T>>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(bounds: Bounds) -> Queue<T> {
        let waiting = Mutex::new(Waiting { jobs: VecDeque::new(), is_closed: false });
        Queue { waiting, ready: Condvar::new(), bounds }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job and wakes a thread for it.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn push(&self, job: T) -> Result<(), Undone> {
        {
            let mut waiting = self.waiting();
            if waiting.is_closed {
                return Err(Undone::Stopped);
            }
            if waiting.jobs.len() >= self.bounds.capacity {
                return Err(Undone::Full);
            }
            waiting.jobs.push_back(Queued { since: Instant::now(), job });
        }
        self.ready.notify_one();
        Ok(())
    }

    /// Waits for jobs and takes what `take` takes of them; `None` when the queue is closed and empty.
    pub(crate) fn take<R>(&self, take: impl FnOnce(&mut VecDeque<Queued<T>>) -> R) -> Option<R> {
        let mut waiting = self.waiting();
        while waiting.jobs.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.ready.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        Some(take(&mut waiting.jobs))
    }

    /// Whether a job has waited longer than it may.
    pub(crate) fn is_late(&self, queued: &Queued<T>) -> bool {
        queued.since.elapsed() > self.bounds.patience
    }

    /// Jobs that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting().jobs.len()
    }

    /// Takes no more jobs. Those that wait are still given out.
    pub(crate) fn close(&self) {
        self.waiting().is_closed = true;
        self.ready.notify_all();
    }
}
