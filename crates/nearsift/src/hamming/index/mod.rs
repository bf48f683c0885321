//! x
mod bits;
mod code;
mod kernel;
mod table;
