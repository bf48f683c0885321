//! The store as its users see it, on the machine's disk and on a simulated one.

mod batches;
mod crash;
mod crowds;
mod damage;
mod faults;
mod folder;
mod forged;
mod forging;
mod format;
mod full;
mod kept;
mod kill;
mod load;
mod model;
mod operations;
mod planted;
mod power;
mod rent;
mod support;
mod syscalls;
mod texts;
mod tools;
mod witness;
