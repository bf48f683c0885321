//! Writes to a collection: one thread, which hands to the store at once whatever has come while it was syncing. What
//! documents are near was looked for before, by the threads that work on documents.
//!
//! Requests that wait share a sync, and each is answered as soon as its own write is durable. What one request writes
//! is never parted: it is there as a whole or not at all.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nearsift_store::{
    Batch, Cancellation, Content, MAX_BATCH_BYTES, Metadata, Outcome, OwnId, Sighting, Store,
    StoreError, Text, Value,
};
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ServeError;
use crate::pool::Undone;
use crate::problem::Problem;
use crate::queue::{Bounds, Coming, Queue, Queued, Slot, Waiter};

/// Operations of requests that are written together, and bytes of their texts. One request may have more, and is then written alone.
const GROUP: usize = 1024;
const GROUP_BYTES: usize = MAX_BATCH_BYTES / 2;

/// What is done to a document.
#[derive(Debug)]
pub(crate) enum Operation {
    Put { what: Put, id: OwnId, metadata: Metadata },
    Delete(OwnId),
}

impl Operation {
    /// Bytes of its text, where the collection keeps texts.
    fn text_bytes(&self) -> usize {
        let text = match self {
            Operation::Put { what: Put::Insert(made) | Put::Replace(made), .. } => {
                made.text.as_ref()
            }
            Operation::Put { what: Put::InsertUnlessNear(sighting), .. } => sighting.content().text,
            Operation::Delete(_) => None,
        };
        text.map_or(0, Text::bytes)
    }
}

/// What is stored, and when.
#[derive(Debug)]
pub(crate) enum Put {
    Insert(Box<Made>),
    InsertUnlessNear(Sighting),
    Replace(Box<Made>),
}

/// A value, with its text where the collection keeps texts.
#[derive(Debug)]
pub(crate) struct Made {
    value: Value,
    text: Option<Text>,
}

impl Made {
    fn content(&self) -> Content<'_> {
        Content { value: &self.value, text: self.text.as_ref() }
    }
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

/// Near documents that a sighting tells for the writer: should one be removed until then, the next one is told.
const SIGHTED: usize = 4;

impl Mode {
    /// Does what can be done of it before its turn to be written comes, which for
    /// [`Mode::InsertUnlessNear`] is nearly all. CPU work.
    pub(crate) fn prepare(
        self,
        value: Value,
        text: Option<Text>,
        store: &Store,
        cancellation: Cancellation<'_>,
    ) -> Result<Put, StoreError> {
        let made = Made { value, text };
        match self {
            Mode::Insert => Ok(Put::Insert(Box::new(made))),
            Mode::InsertUnlessNear => {
                store.look_unless(made.content(), SIGHTED, cancellation).map(Put::InsertUnlessNear)
            }
            Mode::Replace => Ok(Put::Replace(Box::new(made))),
        }
    }
}

/// What became of each operation, or why it could not be put into a batch.
pub(crate) type Written = Vec<Result<Outcome, StoreError>>;

type Answer = Result<Result<Written, StoreError>, Undone>;

struct Job {
    operations: Vec<Operation>,
    answer: oneshot::Sender<Answer>,
}

/// A write on its way.
pub(crate) struct Pending {
    answered: oneshot::Receiver<Answer>,
    waiter: Waiter<Job>,
    patience: Duration,
}

impl Pending {
    /// Waits until it is durable. One that has no turn in time is taken back; one whose turn has come is waited for, since
    /// it is done or not done as a whole.
    pub(crate) async fn done(mut self) -> Result<Written, Problem> {
        let answer = match timeout(self.patience, &mut self.answered).await {
            Ok(answer) => answer,
            Err(_) if self.waiter.0.take().is_some() => return Err(Undone::Late.into()),
            Err(_) => self.answered.await,
        };
        Ok(answer.unwrap_or(Err(Undone::Panicked))??)
    }
}

/// The thread that writes to a store.
pub(crate) struct Writer {
    queue: Arc<Queue<Arc<Slot<Job>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// `times` is told how long each write took that requests shared.
    pub(crate) fn start(
        store: Arc<Store>,
        bounds: Bounds,
        times: Histogram,
    ) -> Result<Writer, ServeError> {
        let queue = Arc::new(Queue::new(bounds));
        let own = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("nearsift-writes".to_owned())
            .spawn(move || work(&own, &store, &times))
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        Ok(Writer { queue, thread: Some(thread) })
    }

    /// Tells that a write is being prepared: others wait a little, to share a sync with it.
    pub(crate) fn announce(&self) -> Announced {
        Announced(self.queue.announce())
    }

    /// Writes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Ends the thread after what is queued.
    pub(crate) fn stop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            let _panics_were_caught = thread.join();
        }
    }
}

/// A write that is being prepared.
pub(crate) struct Announced(Coming<Arc<Slot<Job>>>);

impl Announced {
    /// Queues it.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn submit(self, operations: Vec<Operation>) -> Result<Pending, Undone> {
        let (answer, answered) = oneshot::channel();
        let slot = Slot::new(Job { operations, answer });
        let (waiter, patience) = (Waiter(Arc::clone(&slot)), self.0.patience());
        self.0.push(slot)?;
        Ok(Pending { answered, waiter, patience })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(queue: &Queue<Arc<Slot<Job>>>, store: &Store, times: &Histogram) {
    let mut batch = store.batch();
    while let Some(group) = queue.take(take_group) {
        // A late one is left to the request that waits for it.
        let in_time = group.into_iter().filter(|queued| !queue.is_late(queued));
        let group: Vec<Job> = in_time.filter_map(|queued| queued.job.take()).collect();
        if !group.is_empty() {
            // Those of a group that panicked learn it by the end of their channel.
            let write = || write(store, &mut batch, group, times);
            let _answered = catch_unwind(AssertUnwindSafe(write));
        }
    }
}

/// The first jobs, as many as are written together.
fn take_group(jobs: &mut VecDeque<Queued<Arc<Slot<Job>>>>) -> Vec<Queued<Arc<Slot<Job>>>> {
    let (mut operations, mut bytes) = (0, 0);
    let fits = |queued: &&Queued<Arc<Slot<Job>>>| {
        let size = |job: &Job| {
            (job.operations.len(), job.operations.iter().map(Operation::text_bytes).sum::<usize>())
        };
        let (own, own_bytes) = queued.job.look(size).unwrap_or((0, 0));
        operations += own;
        bytes += own_bytes;
        operations <= GROUP && bytes <= GROUP_BYTES
    };
    let count = jobs.iter().take_while(fits).count().max(1);
    jobs.drain(..count).collect()
}

fn write(store: &Store, batch: &mut Batch, group: Vec<Job>, times: &Histogram) {
    batch.clear();
    // Of each operation, whether it is in the batch.
    let put: Vec<Vec<Result<(), StoreError>>> = group
        .iter()
        .map(|job| job.operations.iter().map(|operation| put(batch, operation)).collect())
        .collect();
    let begun = Instant::now();
    let outcomes = if batch.is_empty() { Ok(Vec::new()) } else { store.write(batch) };
    times.observe(begun.elapsed().as_secs_f64());
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
        Operation::Put { what, id, metadata } => match what {
            Put::Insert(made) => batch.insert(id.as_id(), made.content(), metadata),
            Put::InsertUnlessNear(sighting) => {
                batch.insert_unless_near_since(id.as_id(), sighting, metadata)
            }
            Put::Replace(made) => batch.upsert(id.as_id(), made.content(), metadata),
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
            texts: None,
        };
        Arc::new(Store::create(&folder.path().join("store"), &settings).unwrap())
    }

    fn insert(store: &Store, id: u64, value: u64) -> Operation {
        let value = Fingerprint::from_u64(value).into();
        let what = Mode::InsertUnlessNear.prepare(value, None, store, Cancellation::NEVER).unwrap();
        Operation::Put { what, id: OwnId::Number(id), metadata: Metadata::default() }
    }

    fn times() -> Histogram {
        Histogram::new([1.0])
    }

    fn bounds(capacity: usize) -> Bounds {
        Bounds { capacity, patience: Duration::from_secs(60) }
    }

    #[test]
    fn every_request_gets_the_outcomes_of_its_own_operations() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let mut writer = Writer::start(Arc::clone(&store), bounds(10_000), times()).unwrap();
        // Of each three that are near each other the first is added.
        let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pending: Vec<Pending> = (0..500)
            .map(|n| {
                let three = (0..3).map(|i| insert(&store, 3 * n + i, spread(n) ^ i)).collect();
                writer.announce().submit(three).unwrap()
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for (n, pending) in pending.into_iter().enumerate() {
            let written = runtime.block_on(pending.done()).unwrap();
            let written: Vec<Outcome> = written.into_iter().map(Result::unwrap).collect();
            assert_eq!(written[0], Outcome::Added, "{n}");
            for other in &written[1..] {
                let is_near = matches!(other, Outcome::Near { id: OwnId::Number(id), .. } if *id == 3 * n as u64);
                assert!(is_near, "{n} {other:?}");
            }
        }
        let gone = writer.announce().submit(vec![Operation::Delete(OwnId::Number(0))]).unwrap();
        let gone = runtime.block_on(gone.done()).unwrap();
        assert!(matches!(gone[..], [Ok(Outcome::Removed)]), "{gone:?}");
        writer.stop();
        assert!(matches!(writer.announce().submit(Vec::new()), Err(Undone::Stopped)));
    }

    #[test]
    fn an_operation_that_does_not_fit_costs_no_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let writer = Writer::start(Arc::clone(&store), bounds(10), times()).unwrap();
        let text = Operation::Delete(OwnId::Text("a text".into()));
        let operations = vec![insert(&store, 1, 1), text, insert(&store, 2, 1 << 40)];
        let pending = writer.announce().submit(operations).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let written = runtime.block_on(pending.done()).unwrap();
        let is_right = matches!(
            written[..],
            [Ok(Outcome::Added), Err(StoreError::Id(_)), Ok(Outcome::Near { .. } | Outcome::Added)]
        );
        assert!(is_right, "{written:?}");
    }

    #[test]
    fn groups_keep_requests_whole() {
        let queue = Queue::new(bounds(10));
        for operations in [1, GROUP - 2, 1, 1, 2 * GROUP, 1] {
            let operations =
                (0..operations as u64).map(|n| Operation::Delete(OwnId::Number(n))).collect();
            queue.push(Slot::new(Job { operations, answer: oneshot::channel().0 })).unwrap();
        }
        queue.close();
        let mut groups = Vec::new();
        while let Some(group) = queue.take(take_group) {
            let operations = group.iter().map(|queued| queued.job.take().unwrap().operations.len());
            groups.push(operations.collect::<Vec<_>>());
        }
        assert_eq!(groups, [vec![1, GROUP - 2, 1], vec![1], vec![2 * GROUP], vec![1]]);
    }
}
