//! The program in Chinese, where the environment asks for it.

mod errors;
mod help;

pub use errors::translated;
pub use help::translate;
