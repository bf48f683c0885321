//! Threads for work that must not hold up connections: a bounded queue, and a deadline for waiting in it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::ServeError;

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undone {
    /// The queue is full.
    Full,
    /// It waited longer than it may.
    Late,
    /// It panicked: a mistake of ours.
    Panicked,
    /// The service stops.
    Stopped,
}

/// Whether a job's time in the queue was within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    InTime,
    Late,
}

struct Job {
    queued: Instant,
    run: Box<dyn FnOnce(Turn) + Send>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    capacity: usize,
    patience: Duration,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads with a bounded queue.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(crate) fn start(
        name: &str,
        threads: usize,
        capacity: usize,
        patience: Duration,
    ) -> Result<Pool, ServeError> {
        let shared =
            Arc::new(Shared { queue: Mutex::default(), ready: Condvar::new(), capacity, patience });
        let threads = (0..threads).map(|_| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared))
        });
        let threads = threads
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        Ok(Pool { shared, threads: Mutex::new(threads) })
    }

    /// Does the work on one of the threads. When nobody waits for the answer any more before its turn has come, it
    /// is not done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let (answer, answered) = oneshot::channel();
        let run = Box::new(move |turn: Turn| {
            if answer.is_closed() {
                return;
            }
            let done = match turn {
                Turn::Late => Err(Undone::Late),
                Turn::InTime => catch_unwind(AssertUnwindSafe(work)).map_err(|_| Undone::Panicked),
            };
            let _nobody_waits = answer.send(done);
        });
        {
            let mut queue = self.shared.queue();
            if queue.is_closed {
                return Err(Undone::Stopped);
            }
            if queue.jobs.len() >= self.shared.capacity {
                return Err(Undone::Full);
            }
            queue.jobs.push_back(Job { queued: Instant::now(), run });
        }
        self.shared.ready.notify_one();
        answered.await.unwrap_or(Err(Undone::Stopped))
    }

    /// Jobs that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.queue().jobs.len()
    }

    /// Ends the threads after what is queued.
    pub(crate) fn stop(&self) {
        self.shared.queue().is_closed = true;
        self.shared.ready.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _panics_were_caught = thread.join();
        }
    }
}

fn work(shared: &Shared) {
    loop {
        let mut queue = shared.queue();
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.is_closed {
                return;
            }
            queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        let turn = if job.queued.elapsed() > shared.patience { Turn::Late } else { Turn::InTime };
        (job.run)(turn);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
    }

    #[test]
    fn a_full_queue_refuses_and_a_late_job_is_not_done() {
        let pool = Arc::new(Pool::start("test", 1, 1, Duration::from_millis(20)).unwrap());
        let runtime = runtime();
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let submit = |work: Box<dyn FnOnce() + Send>| {
            let pool = Arc::clone(&pool);
            runtime.spawn(async move { pool.run(work).await })
        };
        let first = submit(Box::new(move || {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
        }));
        has_begun.recv().unwrap();
        let second = submit(Box::new(|| panic!("was late")));
        while pool.waiting() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(runtime.block_on(pool.run(|| ())), Err(Undone::Full));
        std::thread::sleep(Duration::from_millis(40));
        go_on.send(()).unwrap();
        assert_eq!(runtime.block_on(first).unwrap(), Ok(()));
        assert_eq!(runtime.block_on(second).unwrap(), Err(Undone::Late));
        pool.stop();
        assert_eq!(runtime.block_on(pool.run(|| ())), Err(Undone::Stopped));
    }

    #[test]
    fn a_panic_costs_its_own_job_alone() {
        let pool = Pool::start("test", 1, 4, Duration::from_secs(60)).unwrap();
        let runtime = runtime();
        let done = runtime.block_on(pool.run(|| -> u8 { panic!("as meant") }));
        assert_eq!(done, Err(Undone::Panicked));
        assert_eq!(runtime.block_on(pool.run(|| 7)), Ok(7));
    }
}
