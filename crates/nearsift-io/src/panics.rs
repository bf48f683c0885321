//! Calls of libraries that may panic on what they are given.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught, and told as what it is about.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs a call of a library; `None` when it panics, of which nothing is printed.
///
/// A hook is set once for the whole process, before the one that was there, which goes on to print all other panics.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !CAUGHT.get() {
                before(info);
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(outer);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing_and_all_else_is_itself() {
        assert_eq!(caught(|| 1), Some(1));
        assert_eq!(caught(|| -> u8 { panic!("not printed") }), None);
        assert_eq!(caught(|| caught(|| -> u8 { panic!("not printed") })), Some(None));
        assert!(!CAUGHT.get());
    }
}
