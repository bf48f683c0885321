//! Threads for work that must not hold up connections: a bounded queue, and a deadline for waiting in it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ServeError;
use crate::queue::{Bounds, Queue, Slot, Waiter};

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undone {
    /// The queue is full.
    Full,
    /// It waited longer than it may.
    Late,
    /// It took longer than it may.
    TooLong,
    /// It panicked: a mistake of ours.
    Panicked,
    /// The service stops.
    Stopped,
}

type Work = Box<dyn FnOnce() + Send>;

/// Threads with a bounded queue.
pub(crate) struct Pool {
    queue: Arc<Queue<Arc<Slot<Work>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How long a job may take.
    limit: Duration,
}

impl Pool {
    pub(crate) fn start(
        name: &str,
        threads: usize,
        bounds: Bounds,
        limit: Duration,
    ) -> Result<Pool, ServeError> {
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
        Ok(Pool { queue, threads: Mutex::new(threads), limit })
    }

    /// Does the work on one of the threads. It is not done when nobody waits for the answer any more before its turn has
    /// come. The times are kept here, whatever the threads do: a job that has no turn in time is taken back, and of one
    /// that takes too long the answer is not waited for.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let (begin, begun) = oneshot::channel();
        let (answer, mut answered) = oneshot::channel();
        let slot = Slot::new(Box::new(move || {
            if answer.is_closed() {
                return;
            }
            let _nobody_waits = begin.send(());
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Undone::Panicked);
            let _nobody_waits = answer.send(done);
        }) as Work);
        let waiter = Waiter(Arc::clone(&slot));
        self.queue.push(slot)?;
        if timeout(self.queue.patience(), begun).await.is_err() && waiter.0.take().is_some() {
            return Err(Undone::Late);
        }
        match timeout(self.limit, &mut answered).await {
            Ok(done) => done.unwrap_or(Err(Undone::Stopped)),
            Err(_) => Err(Undone::TooLong),
        }
    }

    /// Jobs that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Ends the threads after what is queued, and waits for them until a moment. A thread that is busy then is left to
    /// itself.
    pub(crate) fn stop(&self, until: Instant) {
        self.queue.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            join_until(thread, until);
        }
    }
}

/// Waits for a thread to end until a moment; tells whether it has.
pub(crate) fn join_until(thread: JoinHandle<()>, until: Instant) -> bool {
    while !thread.is_finished() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _panics_were_caught = thread.join();
    true
}

/// Lets the threads of connections and of writes go first: this one has a third of their weight. Each of their turns is short, and
/// without them nobody is answered, not even that it is too much. On Linux; elsewhere it would be the whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    let _changes_nothing_but_the_order = rustix::process::nice(5);
}

fn work(queue: &Queue<Arc<Slot<Work>>>) {
    while let Some(queued) = queue.take(VecDeque::pop_front).flatten() {
        // A late one is left to the request that waits for it.
        if !queue.is_late(&queued)
            && let Some(work) = queued.job.take()
        {
            work();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn bounds(capacity: usize, patience: Duration) -> Bounds {
        Bounds { capacity, patience }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
    }

    /// A job that holds its thread until its sender is dropped.
    fn holds() -> (mpsc::Receiver<()>, mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let work = move || {
            begun.send(()).unwrap();
            let _dropped = may_go_on.recv();
        };
        (has_begun, go_on, work)
    }

    #[test]
    fn a_full_queue_refuses_and_a_late_job_is_told_while_the_thread_is_busy() {
        let patience = Duration::from_millis(50);
        let pool = Arc::new(Pool::start("test", 1, bounds(1, patience), LONG).unwrap());
        let runtime = runtime();
        let (has_begun, go_on, work) = holds();
        let submit = |work: Work| {
            let pool = Arc::clone(&pool);
            runtime.spawn(async move { pool.run(work).await })
        };
        let first = submit(Box::new(work));
        has_begun.recv().unwrap();
        let held = Arc::new(());
        let second = {
            let held = Arc::clone(&held);
            submit(Box::new(move || {
                drop(held);
                panic!("was late");
            }))
        };
        while pool.waiting() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(runtime.block_on(pool.run(|| ())), Err(Undone::Full));
        // Told, and what it held is free, though no thread had a turn for it.
        assert_eq!(runtime.block_on(second).unwrap(), Err(Undone::Late));
        assert_eq!(Arc::strong_count(&held), 1);
        // Its place is not in the way either.
        assert_eq!(runtime.block_on(pool.run(|| ())), Err(Undone::Late));
        drop(go_on);
        assert_eq!(runtime.block_on(first).unwrap(), Ok(()));
        pool.stop(Instant::now() + LONG);
        assert_eq!(runtime.block_on(pool.run(|| ())), Err(Undone::Stopped));
    }

    #[test]
    fn work_that_takes_too_long_is_not_waited_for() {
        let limit = Duration::from_millis(50);
        let pool = Pool::start("test", 1, bounds(4, LONG), limit).unwrap();
        let (_has_begun, go_on, work) = holds();
        assert_eq!(runtime().block_on(pool.run(work)), Err(Undone::TooLong));
        let begun = Instant::now();
        pool.stop(begun + limit);
        assert!(begun.elapsed() < LONG / 2, "stopping waits for a busy thread");
        drop(go_on);
    }

    #[test]
    fn a_panic_costs_its_own_job_alone() {
        let pool = Pool::start("test", 1, bounds(4, LONG), LONG).unwrap();
        let runtime = runtime();
        let done = runtime.block_on(pool.run(|| -> u8 { panic!("as meant") }));
        assert_eq!(done, Err(Undone::Panicked));
        assert_eq!(runtime.block_on(pool.run(|| 7)), Ok(7));
    }
}
