//! The C library as its callers see it: from C, C++ and Java, and function by function.

#![expect(unsafe_code, reason = "the tests call the functions as C does")]
#![allow(clippy::print_stderr, reason = "tests say on standard error why they skip")]

/// Calls a function of the library.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: pointers are NULL or point to objects of the test that live, or to memory that the function must refuse
        // to read.
        unsafe { nearsift_c::$function($($argument),*) }
    }};
}

mod agreement;
mod bad_input;
#[cfg(target_os = "linux")]
mod programs;
mod support;
mod threads;
mod vectors;
