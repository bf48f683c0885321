//! Threads for work that must not hold up connections: a bounded queue, and a deadline for waiting in it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::ServeError;
use crate::queue::{Bounds, Queue};

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

type Job = Box<dyn FnOnce(Turn) + Send>;

/// Threads with a bounded queue.
pub(crate) struct Pool {
    queue: Arc<Queue<Job>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    pub(crate) fn start(name: &str, threads: usize, bounds: Bounds) -> Result<Pool, ServeError> {
        let queue = Arc::new(Queue::new(bounds));
        let threads = (0..threads).map(|_| {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                give_way();
                work(&queue);
            })
        });
        let threads = threads
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        Ok(Pool { queue, threads: Mutex::new(threads) })
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
        self.queue.push(run)?;
        answered.await.unwrap_or(Err(Undone::Stopped))
    }

    /// Jobs that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Ends the threads after what is queued.
    pub(crate) fn stop(&self) {
        self.queue.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _panics_were_caught = thread.join();
        }
    }
}

/// Lets the threads of connections and of writes go first: this one has a third of their weight. Each of their turns is short, and
/// without them nobody is answered, not even that it is too much. On Linux; elsewhere it would be the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    let _changes_nothing_but_the_order = rustix::process::nice(5);
}

fn work(queue: &Queue<Job>) {
    while let Some(queued) = queue.take(VecDeque::pop_front).flatten() {
        let turn = if queue.is_late(&queued) { Turn::Late } else { Turn::InTime };
        (queued.job)(turn);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn bounds(capacity: usize, patience: Duration) -> Bounds {
        Bounds { capacity, patience }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
    }

    #[test]
    fn a_full_queue_refuses_and_a_late_job_is_not_done() {
        let pool = Arc::new(Pool::start("test", 1, bounds(1, Duration::from_millis(20))).unwrap());
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
        let pool = Pool::start("test", 1, bounds(4, Duration::from_secs(60))).unwrap();
        let runtime = runtime();
        let done = runtime.block_on(pool.run(|| -> u8 { panic!("as meant") }));
        assert_eq!(done, Err(Undone::Panicked));
        assert_eq!(runtime.block_on(pool.run(|| 7)), Ok(7));
    }
}
