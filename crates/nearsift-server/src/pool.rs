//! Threads for work that must not hold up connections: a bounded queue, and a deadline for waiting in it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearsift_store::Cancellation;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ServeError;
use crate::problem::{Kind, Problem};
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

/// Tells a job whether its answer is still wanted: not after its time, when the client has hung up, or when the time to
/// stop is over.
#[derive(Clone, Copy)]
pub(crate) struct Interest<'a>(&'a (dyn Fn() -> bool + Sync));

impl<'a> Interest<'a> {
    /// For searches of a store.
    pub(crate) fn cancellation(self) -> Cancellation<'a> {
        Cancellation::when(self.0)
    }

    /// Ends work whose answer is not wanted any more. To be asked between the steps of the work.
    ///
    /// # Errors
    /// It is not, and nobody will see the problem.
    pub(crate) fn check(self) -> Result<(), Problem> {
        if (self.0)() {
            return Err(Problem::new(Kind::Stopping, "The answer is not wanted any more."));
        }
        Ok(())
    }
}

/// Threads with a bounded queue.
pub(crate) struct Pool {
    queue: Arc<Queue<Arc<Slot<Work>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the time for jobs that are worked on is over.
    is_over: Arc<AtomicBool>,
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
        Ok(Pool { queue, threads: Mutex::new(threads), is_over: Arc::default(), limit })
    }

    /// Does the work on one of the threads. It is not done when nobody waits for the answer any more before its turn has
    /// come, and is told when nobody does later. The times are kept here, whatever the threads do: a job that has no turn
    /// in time is taken back, and of one that takes too long the answer is not waited for.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Interest<'_>) -> T + Send + 'static,
    ) -> Result<T, Undone> {
        let (begin, begun) = oneshot::channel();
        let (answer, mut answered) = oneshot::channel();
        let is_over = Arc::clone(&self.is_over);
        let slot = Slot::new(Box::new(move || {
            if answer.is_closed() {
                return;
            }
            let _nobody_waits = begin.send(());
            let is_lost = || answer.is_closed() || is_over.load(Ordering::Relaxed);
            let done = catch_unwind(AssertUnwindSafe(|| work(Interest(&is_lost))));
            let done = done.map_err(|_| Undone::Panicked);
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

    /// Ends the threads after what is queued, and waits for them until a moment. A thread that is busy then learns that
    /// its answer is not wanted any more, and is left to itself.
    pub(crate) fn stop(&self, until: Instant) {
        self.queue.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            join_until(thread, until);
        }
        self.is_over.store(true, Ordering::Relaxed);
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
    fn holds() -> (mpsc::Receiver<()>, mpsc::Sender<()>, impl FnOnce(Interest<'_>) + Send + 'static)
    {
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let work = move |_: Interest<'_>| {
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
        let submit = |work: Box<dyn FnOnce(Interest<'_>) + Send>| {
            let pool = Arc::clone(&pool);
            runtime.spawn(async move { pool.run(work).await })
        };
        let first = submit(Box::new(work));
        has_begun.recv().unwrap();
        let held = Arc::new(());
        let second = {
            let held = Arc::clone(&held);
            submit(Box::new(move |_| {
                drop(held);
                panic!("was late");
            }))
        };
        while pool.waiting() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(runtime.block_on(pool.run(|_| ())), Err(Undone::Full));
        // Told, and what it held is free, though no thread had a turn for it.
        assert_eq!(runtime.block_on(second).unwrap(), Err(Undone::Late));
        assert_eq!(Arc::strong_count(&held), 1);
        // Its place is not in the way either.
        assert_eq!(runtime.block_on(pool.run(|_| ())), Err(Undone::Late));
        drop(go_on);
        assert_eq!(runtime.block_on(first).unwrap(), Ok(()));
        pool.stop(Instant::now() + LONG);
        assert_eq!(runtime.block_on(pool.run(|_| ())), Err(Undone::Stopped));
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
    fn a_job_learns_that_its_answer_is_not_wanted() {
        /// Works until it is cancelled, and reports that it was.
        fn works(told: mpsc::Sender<&'static str>, why: &'static str) -> impl FnOnce(Interest<'_>) {
            move |interest| {
                let begun = Instant::now();
                while interest.check().is_ok() && begun.elapsed() < LONG {
                    std::thread::yield_now();
                }
                if begun.elapsed() < LONG {
                    told.send(why).unwrap();
                }
            }
        }
        let runtime = runtime();
        let (tell, told) = mpsc::channel();
        let pool = Pool::start("test", 1, bounds(4, LONG), Duration::from_millis(50)).unwrap();
        let done = runtime.block_on(pool.run(works(tell.clone(), "time")));
        assert_eq!((done, told.recv()), (Err(Undone::TooLong), Ok("time")));
        let pool = Arc::new(Pool::start("test", 1, bounds(4, LONG), LONG).unwrap());
        let submit = |told: mpsc::Sender<&'static str>, why| {
            let work = works(told, why);
            let (pool, (begin, begun)) = (Arc::clone(&pool), mpsc::channel());
            let work = move |interest: Interest<'_>| {
                begin.send(()).unwrap();
                work(interest);
            };
            let asked = runtime.spawn(async move { pool.run(work).await });
            begun.recv().unwrap();
            asked
        };
        submit(tell.clone(), "client").abort();
        assert_eq!(told.recv(), Ok("client"));
        let _asked = submit(tell, "end");
        pool.stop(Instant::now());
        assert_eq!(told.recv(), Ok("end"));
    }

    #[test]
    fn a_panic_costs_its_own_job_alone() {
        let pool = Pool::start("test", 1, bounds(4, LONG), LONG).unwrap();
        let runtime = runtime();
        let done = runtime.block_on(pool.run(|_| -> u8 { panic!("as meant") }));
        assert_eq!(done, Err(Undone::Panicked));
        assert_eq!(runtime.block_on(pool.run(|_| 7)), Ok(7));
    }
}
