//! What a service reads again while it runs: its keys and its certificate.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that is replaced while others use it: a caller keeps the value that it got.
#[derive(Debug)]
pub(crate) struct Current<T>(RwLock<Arc<T>>);

impl<T> Current<T> {
    pub(crate) fn new(value: T) -> Current<T> {
        Current(RwLock::new(Arc::new(value)))
    }

    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

/// What is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reloaded {
    Keys,
    Certificate,
}

impl Reloaded {
    pub(crate) const ALL: [Reloaded; 2] = [Reloaded::Keys, Reloaded::Certificate];

    /// As metrics and logs name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reloaded::Keys => "keys",
            Reloaded::Certificate => "certificate",
        }
    }
}
