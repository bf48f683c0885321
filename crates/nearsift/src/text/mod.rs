//! From bytes to words: [`decode`], [`extract`], [`normalise`](mod@normalise), [`words`]. Each works alone.

pub mod decode;
pub mod extract;
pub mod normalise;
pub mod script;
pub mod words;
