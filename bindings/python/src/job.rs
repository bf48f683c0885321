//! Jobs run on threads of their own, while Python's signals, callbacks and other threads go on.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nearsift_batch::{Context, Error, Interrupt, Level, Notice, Observer, Phase};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Class, exception, keyword, of_job, said};

/// How a job runs. Nothing here changes its result.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    /// The threads; `None` for as many as there are processors.
    threads: Option<usize>,
    /// The most memory, in bytes.
    memory: Option<u64>,
    /// The folder for files without a name.
    scratch: Option<PathBuf>,
    /// Called with the phase, the work that is done, all of it, and its unit.
    progress: Option<Py<PyAny>>,
}

/// How often signals and callbacks are looked at.
const TICK: Duration = Duration::from_millis(50);

/// Between two calls for the progress of one phase.
const EVERY: Duration = Duration::from_millis(100);

/// Runs a job without the interpreter's lock. Ctrl-C, or an exception in a callback, interrupts it.
pub fn run<T: Send>(
    py: Python<'_>,
    options: &Options,
    job: impl FnOnce(&Context<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let pool = pool(options.threads)?;
    let watch = Watch::default();
    let interrupt = Interrupt::default();
    let mut context = Context::observed_by(&watch);
    context.memory_bytes = options.memory;
    context.interrupt = interrupt.clone();
    context.spelling = keyword;
    if let Some(scratch) = &options.scratch {
        context.scratch.clone_from(scratch);
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| job(&context))));
            watch.finish();
            done
        });
        let mut raised = None;
        loop {
            let (events, is_finished) = py.detach(|| watch.wait());
            if raised.is_none() {
                let heard = events.into_iter().try_for_each(|event| event.tell(py, options));
                raised = heard.and_then(|()| py.check_signals()).err();
                if raised.is_some() {
                    interrupt.request();
                }
            }
            if is_finished {
                break;
            }
        }
        let done = worker.join().unwrap_or_else(Err);
        if let Some(error) = raised {
            return Err(error);
        }
        done.map_err(|panic| bug(panic.as_ref()))?.map_err(|error| of_job(&error))
    })
}

/// A panic is a fault of nearsift's own, and never one of the caller.
fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    exception(Class::Error, format!("a fault of nearsift itself, please report it: {said}"))
}

/// The pools of this process, by the number of their threads.
struct Pools {
    process: u32,
    pools: HashMap<usize, Arc<ThreadPool>>,
}

/// The pool with a number of threads. A forked process has none of its parent's threads, and gets pools of its own.
fn pool(threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);
    if threads == Some(0) {
        return Err(exception(Class::Value, "threads=0: expected 1 or more, or None for all"));
    }
    let mut held = lock(&POOLS);
    let process = std::process::id();
    if held.as_ref().is_some_and(|held| held.process != process) {
        // To end these threads would be to wait for threads that are not there.
        std::mem::forget(held.take());
    }
    let Pools { pools, .. } = held.get_or_insert_with(|| Pools { process, pools: HashMap::new() });
    let threads = threads.unwrap_or(0);
    if let Some(pool) = pools.get(&threads) {
        return Ok(Arc::clone(pool));
    }
    let name = |thread| format!("nearsift-{thread}");
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
    let pool = Arc::new(pool.map_err(|e| {
        exception(Class::Value, format!("threads={threads} cannot be started: {e}; give fewer"))
    })?);
    pools.insert(threads, Arc::clone(&pool));
    Ok(pool)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a job reports to Python.
enum Event {
    Progress { phase: Phase, done: u64, total: u64 },
    Notice { level: Level, message: String },
}

impl Event {
    fn tell(self, py: Python<'_>, options: &Options) -> PyResult<()> {
        match self {
            Event::Progress { phase, done, total } => {
                if let Some(progress) = &options.progress {
                    progress.call1(py, (phase.name(), done, total, phase.unit()))?;
                }
            }
            Event::Notice { level, message } => {
                let logger = py.import("logging")?.call_method1("getLogger", ("nearsift",))?;
                let name = match level {
                    Level::Warning => "warning",
                    Level::Note => "info",
                };
                logger.call_method1(name, ("%s", message))?;
            }
        }
        Ok(())
    }
}

/// Keeps what a job reports until the calling thread passes it on.
#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    /// Of each phase at work: all of its work, and when it was last told.
    phases: HashMap<Phase, (u64, Option<Instant>)>,
    is_finished: bool,
}

impl Watch {
    /// What was reported since, and whether the job has ended: at once when it has.
    fn wait(&self) -> (Vec<Event>, bool) {
        let state = lock(&self.state);
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, TICK, |state| !state.is_finished)
            .unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut state.events), state.is_finished)
    }

    fn finish(&self) {
        lock(&self.state).is_finished = true;
        self.changed.notify_all();
    }
}

impl Observer for Watch {
    fn begin(&self, phase: Phase, total: u64) {
        let mut state = lock(&self.state);
        state.phases.insert(phase, (total, None));
        state.events.push(Event::Progress { phase, done: 0, total });
    }

    fn advance(&self, phase: Phase, done: u64) {
        let mut state = lock(&self.state);
        let Some((total, last)) = state.phases.get_mut(&phase) else { return };
        if last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        *last = Some(Instant::now());
        let total = *total;
        state.events.push(Event::Progress { phase, done: done.min(total), total });
    }

    fn end(&self, phase: Phase) {
        let mut state = lock(&self.state);
        if let Some((total, _)) = state.phases.remove(&phase) {
            state.events.push(Event::Progress { phase, done: total, total });
        }
    }

    fn notice(&self, notice: &Notice<'_>) {
        let message = said(notice.message);
        lock(&self.state).events.push(Event::Notice { level: notice.level, message });
    }
}
