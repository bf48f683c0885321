//! From bytes to words: [`decode`], [`extract`], [`normalise`](mod@normalise), [`words`], with the
//! classes of characters ([`script`]) and [keys of equal content](key) beside them. Each works alone.

pub mod decode;
pub mod extract;
pub mod key;
mod markup;
pub mod normalise;
pub mod script;
mod table;
pub mod words;
