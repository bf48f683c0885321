//! Locks and threads: the standard library's, or those of shuttle in the package `nearsift-store-schedules`, where a scheduler
//! decides who goes on.

#[cfg(schedules)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    thread,
};
#[cfg(not(schedules))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    thread,
};
