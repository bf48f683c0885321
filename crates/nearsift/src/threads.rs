//! Who does the work of a build or a join.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

/// Who does the work. The result is the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// The calling thread alone.
    #[default]
    One,
    /// That many threads, started for this work and ended with it.
    Own(NonZeroUsize),
    /// The rayon pool that the caller runs in, or rayon's global one.
    Current,
}

/// Locks. A poisoned lock means that another thread panicked; the panic itself is what reaches the caller.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the mutex held, poisoned or not.
pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this runs in a rayon pool: who runs in none has not asked for threads.
pub(crate) fn in_pool() -> bool {
    rayon::current_thread_index().is_some()
}

/// Sorts items by a key on the threads of the rayon pool that this is called in, if it is in one.
pub(crate) fn sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    match in_pool() {
        true => items.par_sort_unstable_by_key(key),
        false => items.sort_unstable_by_key(key),
    }
}

/// Started [`Threads`].
#[derive(Debug)]
pub(crate) enum Workers {
    One,
    Own(rayon::ThreadPool),
    Current,
}

impl Workers {
    pub(crate) fn start(threads: Threads) -> Result<Workers, rayon::ThreadPoolBuildError> {
        match threads {
            Threads::One => Ok(Workers::One),
            Threads::Own(count) if count.get() == 1 => Ok(Workers::One),
            Threads::Own(count) => {
                rayon::ThreadPoolBuilder::new().num_threads(count.get()).build().map(Workers::Own)
            }
            Threads::Current => Ok(Workers::Current),
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Workers::One => 1,
            Workers::Own(pool) => pool.current_num_threads(),
            Workers::Current => rayon::current_num_threads(),
        }
    }

    /// Runs `task(0)` to `task(count - 1)`, in any order; ends early when one breaks.
    pub(crate) fn run(
        &self,
        count: usize,
        task: &(dyn Fn(usize) -> ControlFlow<()> + Sync),
    ) -> ControlFlow<()> {
        let parallel = || (0..count).into_par_iter().with_max_len(1).try_for_each(task);
        match self {
            Workers::One => (0..count).try_for_each(task),
            Workers::Own(pool) => pool.install(parallel),
            Workers::Current => parallel(),
        }
    }

    /// Applies a function to every item.
    pub(crate) fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        f: impl Fn(T) -> R + Sync + Send,
    ) -> Vec<R> {
        match self {
            Workers::One => items.into_iter().map(f).collect(),
            Workers::Own(pool) => pool.install(|| items.into_par_iter().map(f).collect()),
            Workers::Current => items.into_par_iter().map(f).collect(),
        }
    }

    pub(crate) fn sort<T: Ord + Send>(&self, items: &mut [T]) {
        match self {
            Workers::One => items.sort_unstable(),
            Workers::Own(pool) => pool.install(|| items.par_sort_unstable()),
            Workers::Current => items.par_sort_unstable(),
        }
    }
}
