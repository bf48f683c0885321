//! The store as its users see it, on the machine's disk and on a simulated one.

mod crash;
mod damage;
mod faults;
mod format;
mod kept;
mod kill;
mod model;
mod operations;
mod support;
