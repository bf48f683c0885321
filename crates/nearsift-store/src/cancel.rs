//! Work that is not wanted any more.

use std::fmt;

use crate::StoreError;

/// Tells whether work is not wanted any more.
pub(crate) type IsCancelled<'a> = dyn Fn() -> bool + Sync + 'a;

/// Tells a query whether its answer is still wanted: a deadline that has passed, a client that has gone, a service that
/// stops.
///
/// It is asked at least once for each memory table and segment and for each 64 documents that are described, from the
/// thread that asks the query, and must answer fast.
#[derive(Clone, Copy)]
pub struct Cancellation<'a>(Option<&'a IsCancelled<'a>>);

impl<'a> Cancellation<'a> {
    /// An answer that is always wanted.
    pub const NEVER: Cancellation<'static> = Cancellation(None);

    /// Cancelled from when a function says so.
    pub fn when(is_cancelled: &'a (dyn Fn() -> bool + Sync + 'a)) -> Cancellation<'a> {
        Cancellation(Some(is_cancelled))
    }

    /// # Errors
    /// [`StoreError::Cancelled`].
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.0 {
            Some(is_cancelled) if is_cancelled() => Err(StoreError::Cancelled),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Cancellation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation").field(&self.0.is_some()).finish()
    }
}
