//! Work that waits for a thread: bounded, and closed when the service stops.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::pool::Undone;

/// How many jobs wait, and for how long they may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) capacity: usize,
    pub(crate) patience: Duration,
}

/// The longest that a job waits for those that are on their way, from when it came.
const GATHERING: Duration = Duration::from_millis(2);

/// A job that waits.
pub(crate) struct Queued<T> {
    since: Instant,
    pub(crate) job: T,
}

/// A job until somebody takes it: the thread whose turn it is, or the request that waited for it too long. What the job
/// holds goes with it, so that a job that was given up costs no memory while its place in the queue remains.
pub(crate) struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    pub(crate) fn new(job: T) -> Arc<Slot<T>> {
        Arc::new(Slot(Mutex::new(Some(job))))
    }

    fn job(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job, if nobody has taken it yet.
    pub(crate) fn take(&self) -> Option<T> {
        self.job().take()
    }

    /// What is known of the job, if nobody has taken it yet.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.job().as_ref().map(look)
    }
}

/// A request's interest in its job. When it is dropped, the job is given up unless its turn has come.
pub(crate) struct Waiter<T>(pub(crate) Arc<Slot<T>>);

impl<T> Drop for Waiter<T> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// Jobs in the order in which they came.
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    ready: Condvar,
    bounds: Bounds,
    gathering: Duration,
}

struct Waiting<T> {
    jobs: VecDeque<Queued<T>>,
    /// Jobs that are on their way.
    coming: usize,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(bounds: Bounds) -> Queue<T> {
        let waiting = Waiting { jobs: VecDeque::new(), coming: 0, is_closed: false };
        let waiting = Mutex::new(waiting);
        Queue { waiting, ready: Condvar::new(), bounds, gathering: GATHERING }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job and wakes a thread for it.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn push(&self, job: T) -> Result<(), Undone> {
        self.add(&mut self.waiting(), job)?;
        self.ready.notify_one();
        Ok(())
    }

    fn add(&self, waiting: &mut Waiting<T>, job: T) -> Result<(), Undone> {
        if waiting.is_closed {
            return Err(Undone::Stopped);
        }
        if waiting.jobs.len() >= self.bounds.capacity {
            // Nobody waits for the late ones any more: only their places are left.
            waiting.jobs.retain(|queued| !self.is_late(queued));
        }
        if waiting.jobs.len() >= self.bounds.capacity {
            return Err(Undone::Full);
        }
        waiting.jobs.push_back(Queued { since: Instant::now(), job });
        Ok(())
    }

    /// Tells that a job is on its way: those that wait go on without it after [`GATHERING`] only.
    pub(crate) fn announce(self: &Arc<Queue<T>>) -> Coming<T> {
        self.waiting().coming += 1;
        Coming { queue: Arc::clone(self) }
    }

    /// Waits for jobs, and a little for those that are on their way, and takes what `take` takes of them; `None` when
    /// the queue is closed and empty.
    pub(crate) fn take<R>(&self, take: impl FnOnce(&mut VecDeque<Queued<T>>) -> R) -> Option<R> {
        let mut waiting = self.waiting();
        loop {
            let Some(first) = waiting.jobs.front() else {
                if waiting.is_closed {
                    return None;
                }
                waiting = self.ready.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = self.gathering.saturating_sub(first.since.elapsed());
            if waiting.coming == 0 || waiting.is_closed || left.is_zero() {
                return Some(take(&mut waiting.jobs));
            }
            let waited = self.ready.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How long a job may wait.
    pub(crate) fn patience(&self) -> Duration {
        self.bounds.patience
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

/// A job that is on its way. When it is dropped, nobody waits for it any more.
pub(crate) struct Coming<T> {
    queue: Arc<Queue<T>>,
}

impl<T> Coming<T> {
    /// How long the job may wait.
    pub(crate) fn patience(&self) -> Duration {
        self.queue.patience()
    }

    /// Adds the job.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub(crate) fn push(self, job: T) -> Result<(), Undone> {
        let mut waiting = self.queue.waiting();
        self.queue.add(&mut waiting, job)?;
        // Who takes jobs waits for the first one, and then for the last that is on its way: `drop` tells of that.
        let begins_to_wait = waiting.jobs.len() == 1 && waiting.coming > 1;
        drop(waiting);
        if begins_to_wait {
            self.queue.ready.notify_one();
        }
        Ok(())
    }
}

impl<T> Drop for Coming<T> {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting();
        waiting.coming -= 1;
        let all_are_here = waiting.coming == 0 && !waiting.jobs.is_empty();
        drop(waiting);
        if all_are_here {
            self.queue.ready.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(gathering: Duration) -> Arc<Queue<u32>> {
        let queue = Queue::new(Bounds { capacity: 3, patience: Duration::from_secs(60) });
        Arc::new(Queue { gathering, ..queue })
    }

    fn all(jobs: &mut VecDeque<Queued<u32>>) -> Vec<u32> {
        jobs.drain(..).map(|queued| queued.job).collect()
    }

    #[test]
    fn jobs_are_taken_together_with_those_that_were_on_their_way() {
        let queue = queue(Duration::from_secs(600));
        let (first, second, given_up) = (queue.announce(), queue.announce(), queue.announce());
        let taken = std::thread::scope(|scope| {
            let taken = scope.spawn(|| queue.take(all));
            first.push(1).unwrap();
            queue.push(2).unwrap();
            drop(given_up);
            second.push(3).unwrap();
            taken.join().unwrap()
        });
        assert_eq!(taken, Some(vec![1, 2, 3]));
    }

    #[test]
    fn the_last_on_its_way_may_be_given_up_or_refused() {
        let queue = queue(Duration::from_secs(600));
        for refused in [false, true] {
            let last = queue.announce();
            (1..=3).for_each(|job| queue.push(job).unwrap());
            let taken = std::thread::scope(|scope| {
                let taken = scope.spawn(|| queue.take(all));
                match refused {
                    true => assert_eq!(last.push(4), Err(Undone::Full)),
                    false => drop(last),
                }
                taken.join().unwrap()
            });
            assert_eq!(taken, Some(vec![1, 2, 3]));
        }
    }

    #[test]
    fn jobs_do_not_wait_for_long_nor_when_the_queue_is_closed() {
        let queue_of_little_time = queue(Duration::from_millis(1));
        let _never_comes = queue_of_little_time.announce();
        queue_of_little_time.push(1).unwrap();
        assert_eq!(queue_of_little_time.take(all), Some(vec![1]));
        let queue = queue(Duration::from_secs(600));
        let late = queue.announce();
        queue.push(1).unwrap();
        let taken = std::thread::scope(|scope| {
            let taken = scope.spawn(|| queue.take(all));
            queue.close();
            taken.join().unwrap()
        });
        assert_eq!((taken, queue.take(all)), (Some(vec![1]), None));
        assert_eq!(late.push(2), Err(Undone::Stopped));
    }
}
