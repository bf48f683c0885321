//! The program `nearsift`.
fn main() {}
