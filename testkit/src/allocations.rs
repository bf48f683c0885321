//! What work asks of the allocator, counted by thread: the same on every machine.

#![expect(unsafe_code, reason = "an allocator that counts: it hands every call on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNTED: Cell<Counted> = const { Cell::new(Counted { held: 0, peak: 0, bytes: 0, calls: 0 }) };
}

/// What a thread has asked of the allocator.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Bytes that it holds.
    pub held: i64,
    /// The most that it held.
    pub peak: i64,
    /// Bytes of all that it asked for.
    pub bytes: i64,
    /// How often it asked.
    pub calls: i64,
}

/// The system's allocator, which counts; a test makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

fn count(allocated: i64, freed: i64) {
    let mut counted = COUNTED.get();
    counted.held += allocated - freed;
    counted.peak = counted.peak.max(counted.held);
    counted.bytes += allocated;
    counted.calls += i64::from(allocated > 0);
    COUNTED.set(counted);
}

// SAFETY: each call is the system allocator's own with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, 0);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What work asks of the allocator, on this thread.
pub fn counted(work: impl FnOnce()) -> Counted {
    let before = COUNTED.get();
    COUNTED.set(Counted { held: 0, peak: 0, bytes: 0, calls: 0 });
    work();
    let counted = COUNTED.get();
    COUNTED.set(Counted { held: before.held + counted.held, ..before });
    counted
}
