//! nearsift finds near-duplicate documents: the pipeline from bytes to clusters.
//!
//! ```
//! let texts = ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
//!              "今天下午，市图书馆举办了一场儿童绘本阅读活动。"];
//! let found = nearsift::dedup(&texts)?;
//! assert_eq!(found.kept().collect::<Vec<_>>(), [0, 1]);
//! let gone = &found.removals()[0];
//! println!("text {} goes: near to text {}, score {:.3}", gone.text, gone.representative, gone.score.unwrap_or(0.0));
//! # Ok::<(), nearsift::dedup::DedupError>(())
//! ```
//!
//! [`Dedup`] has the settings of that: the method, the smallest score, which text of a group stays. Files, folders and archives of
//! documents are the crate `nearsift-batch`; a durable index is `nearsift-store`.
//!
//! Data goes one way through these modules, and none imports one that stands later in the list:
//!
//! | module | from | to |
//! |---|---|---|
//! | [`text`] | bytes | decoded, main text of a page, normalised, words |
//! | [`feature`] | text | hashed, weighted features |
//! | [`fingerprint`] | features | SimHash fingerprints of 32 to 256 bits |
//! | [`recipe`] | text | the whole of the above under one name, with golden vectors |
//! | [`compare`] | two texts | every measure of likeness, and the differences |
//! | [`hamming`] | fingerprints | distances, scans, indexes |
//! | [`join`] | fingerprints | all pairs within a distance |
//! | [`verify`] | two texts of a pair | exact measures of their likeness |
//! | [`partial`] | texts | passages that two documents share |
//! | [`contamination`] | texts, and items of benchmarks | the items that each text has |
//! | [`substrings`] | texts | stretches that stand earlier |
//! | [`cluster`] | pairs | groups |
//! | [`mod@dedup`] | columns of a corpus | groups, and the member of each that stays |
//! | [`search`] | sketches and texts of a corpus | near-duplicate pairs |
//! | [`evaluate`] | scored pairs, clusters and a truth | recall, precision, agreement |
//! | [`tune`] | the scores of a corpus's own pairs | a proposed threshold, estimates for all |
//!
//! This crate opens no file and no socket, reads no clock and no environment, and starts no thread
//! unless it is asked to: the same input gives the same output, always.

pub mod cluster;
pub mod compare;
pub mod contamination;
mod cpu;
pub mod dedup;
pub mod evaluate;
pub mod feature;
pub mod fingerprint;
pub mod hamming;
pub mod join;
#[doc(hidden)]
pub mod pages;
pub mod partial;
#[doc(hidden)]
pub mod prefetch;
pub mod recipe;
pub mod search;
pub mod sketch;
mod sort;
mod split_mix;
pub mod substrings;
pub mod text;
mod threads;
pub mod tune;
pub mod verify;

pub use dedup::{Dedup, dedup};
pub use threads::Threads;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
