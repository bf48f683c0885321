//! Writes to a collection: one thread, which hands to the store at once whatever has come while it was syncing.
//!
//! Requests that wait share a sync, and each is answered as soon as its own write is durable. What one request writes
//! is never parted: it is there as a whole or not at all.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearsift_store::{Batch, Metadata, Outcome, OwnId, Store, StoreError, Value};
use tokio::sync::oneshot;

use crate::ServeError;
use crate::pool::Undone;
use crate::problem::Problem;

/// Operations of requests that are written together. One request may have more, and is then written alone.
const GROUP: usize = 1024;

/// What is done to a document.
#[derive(Debug)]
pub(crate) enum Operation {
    Put { mode: Mode, id: OwnId, value: Box<Value>, metadata: Metadata },
    Delete(OwnId),
}

/// When a document is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// When its id is free.
    Insert,
    /// When its id is free and no document is near.
    InsertUnlessNear,
    /// Always.
    Replace,
}

/// What became of each operation, or why it could not be put into a batch.
pub(crate) type Written = Vec<Result<Outcome, StoreError>>;

type Answer = Result<Result<Written, StoreError>, Undone>;

struct Job {
    queued: Instant,
    operations: Vec<Operation>,
    answer: oneshot::Sender<Answer>,
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

/// A write on its way.
pub(crate) struct Pending(oneshot::Receiver<Answer>);

impl Pending {
    /// Waits until it is durable.
    pub(crate) async fn done(self) -> Result<Written, Problem> {
        Ok(self.0.await.unwrap_or(Err(Undone::Panicked))??)
    }
}

/// How many writes wait, and for how long they may.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) capacity: usize,
    pub(crate) patience: Duration,
}

/// The thread that writes to a store.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(store: Arc<Store>, bounds: Bounds) -> Result<Writer, ServeError> {
        let Bounds { capacity, patience } = bounds;
        let shared =
            Arc::new(Shared { queue: Mutex::default(), ready: Condvar::new(), capacity, patience });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("nearsift-writes".to_owned())
            .spawn(move || work(&own, &store))
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        Ok(Writer { shared, thread: Some(thread) })
    }

    /// Queues a write.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn submit(&self, operations: Vec<Operation>) -> Result<Pending, Undone> {
        let (answer, answered) = oneshot::channel();
        let was_empty = {
            let mut queue = self.shared.queue();
            if queue.is_closed {
                return Err(Undone::Stopped);
            }
            if queue.jobs.len() >= self.shared.capacity {
                return Err(Undone::Full);
            }
            queue.jobs.push_back(Job { queued: Instant::now(), operations, answer });
            queue.jobs.len() == 1
        };
        // The thread takes all that wait: it is woken for the first of them alone.
        if was_empty {
            self.shared.ready.notify_one();
        }
        Ok(Pending(answered))
    }

    /// Writes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.queue().jobs.len()
    }

    /// Ends the thread after what is queued.
    pub(crate) fn stop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.ready.notify_one();
        if let Some(thread) = self.thread.take() {
            let _panics_were_caught = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(shared: &Shared, store: &Store) {
    let mut batch = store.batch();
    loop {
        let mut group = {
            let mut queue = shared.queue();
            loop {
                if !queue.jobs.is_empty() {
                    break take_group(&mut queue.jobs);
                }
                if queue.is_closed {
                    return;
                }
                queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        group.retain_mut(|job| {
            let is_wanted = !job.answer.is_closed();
            let is_late = job.queued.elapsed() > shared.patience;
            if is_wanted && is_late {
                let (nobody, _) = oneshot::channel();
                let _nobody_waits =
                    std::mem::replace(&mut job.answer, nobody).send(Err(Undone::Late));
            }
            is_wanted && !is_late
        });
        if !group.is_empty() {
            // Those of a group that panicked learn it by the end of their channel.
            let _answered = catch_unwind(AssertUnwindSafe(|| write(store, &mut batch, group)));
        }
    }
}

/// The first jobs, as many as are written together.
fn take_group(jobs: &mut VecDeque<Job>) -> Vec<Job> {
    let mut operations = 0;
    let fits = |job: &&Job| {
        operations += job.operations.len();
        operations <= GROUP
    };
    let count = jobs.iter().take_while(fits).count().max(1);
    jobs.drain(..count).collect()
}

fn write(store: &Store, batch: &mut Batch, group: Vec<Job>) {
    batch.clear();
    // Of each operation, whether it is in the batch.
    let put: Vec<Vec<Result<(), StoreError>>> = group
        .iter()
        .map(|job| job.operations.iter().map(|operation| put(batch, operation)).collect())
        .collect();
    let outcomes = if batch.is_empty() { Ok(Vec::new()) } else { store.write(batch) };
    let mut outcomes = outcomes.map(Vec::into_iter);
    for (job, put) in group.into_iter().zip(put) {
        let answer = match &mut outcomes {
            Ok(outcomes) => Ok(put
                .into_iter()
                .map(|put| put.map(|()| outcomes.next().expect("an outcome for each operation")))
                .collect()),
            Err(error) => Err(error.clone()),
        };
        let _nobody_waits = job.answer.send(Ok(answer));
    }
}

fn put(batch: &mut Batch, operation: &Operation) -> Result<(), StoreError> {
    match operation {
        Operation::Put { mode, id, value, metadata } => match mode {
            Mode::Insert => batch.insert(id.as_id(), value, metadata),
            Mode::InsertUnlessNear => batch.insert_unless_near(id.as_id(), value, metadata),
            Mode::Replace => batch.upsert(id.as_id(), value, metadata),
        },
        Operation::Delete(id) => batch.delete(id.as_id()),
    }
}

#[cfg(test)]
mod tests {
    use nearsift::fingerprint::{Bits, Fingerprint};
    use nearsift_store::{IdKind, Kind, RecipeMark, Settings};

    use super::*;

    fn store(folder: &tempfile::TempDir) -> Arc<Store> {
        let settings = Settings {
            kind: Kind::Fingerprints { bits: Bits::B64, max_distance: 3 },
            ids: IdKind::Numbers,
            recipe: RecipeMark { written: "simhash64".into(), digest: 1 },
            hash_key: None,
        };
        Arc::new(Store::create(&folder.path().join("store"), &settings).unwrap())
    }

    fn insert(id: u64, value: u64) -> Operation {
        Operation::Put {
            mode: Mode::InsertUnlessNear,
            id: OwnId::Number(id),
            value: Box::new(Fingerprint::from_u64(value).into()),
            metadata: Metadata::default(),
        }
    }

    fn bounds(capacity: usize) -> Bounds {
        Bounds { capacity, patience: Duration::from_secs(60) }
    }

    #[test]
    fn every_request_gets_the_outcomes_of_its_own_operations() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::start(store(&folder), bounds(10_000)).unwrap();
        // Of each three that are near each other the first is added.
        let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pending: Vec<Pending> = (0..500)
            .map(|n| {
                let three = (0..3).map(|i| insert(3 * n + i, spread(n) ^ i)).collect();
                writer.submit(three).unwrap()
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (n, pending) in pending.into_iter().enumerate() {
            let written = runtime.block_on(pending.done()).unwrap();
            let written: Vec<Outcome> = written.into_iter().map(Result::unwrap).collect();
            assert_eq!(written[0], Outcome::Added, "{n}");
            for other in &written[1..] {
                let is_near = matches!(other, Outcome::Near { id: OwnId::Number(id), .. } if *id == 3 * n as u64);
                assert!(is_near, "{n} {other:?}");
            }
        }
        let gone = writer.submit(vec![Operation::Delete(OwnId::Number(0))]).unwrap();
        let gone = runtime.block_on(gone.done()).unwrap();
        assert!(matches!(gone[..], [Ok(Outcome::Removed)]), "{gone:?}");
        writer.stop();
        assert!(matches!(writer.submit(Vec::new()), Err(Undone::Stopped)));
    }

    #[test]
    fn an_operation_that_does_not_fit_costs_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::start(store(&folder), bounds(10)).unwrap();
        let text = Operation::Delete(OwnId::Text("a text".into()));
        let pending = writer.submit(vec![insert(1, 1), text, insert(2, 1 << 40)]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let written = runtime.block_on(pending.done()).unwrap();
        let is_right = matches!(
            written[..],
            [Ok(Outcome::Added), Err(StoreError::Id(_)), Ok(Outcome::Near { .. } | Outcome::Added)]
        );
        assert!(is_right, "{written:?}");
    }

    #[test]
    fn groups_keep_requests_whole() {
        let job = |operations: usize| Job {
            queued: Instant::now(),
            operations: (0..operations as u64).map(|n| insert(n, n)).collect(),
            answer: oneshot::channel().0,
        };
        let mut jobs: VecDeque<Job> =
            [1, GROUP - 2, 1, 1, 2 * GROUP, 1].into_iter().map(job).collect();
        let mut groups = Vec::new();
        while !jobs.is_empty() {
            let group = take_group(&mut jobs);
            groups.push(group.iter().map(|job| job.operations.len()).collect::<Vec<_>>());
        }
        assert_eq!(groups, [vec![1, GROUP - 2, 1], vec![1], vec![2 * GROUP], vec![1]]);
    }
}
