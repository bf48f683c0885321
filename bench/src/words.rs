//! Word segmentation and keywords against jieba-rs, on the same text.

use std::hint::black_box;
use std::time::Instant;

use jieba_rs::{Jieba, KeywordExtract, TfIdf};
use nearsift::feature::keywords::{KeywordExtractor, KeywordOptions};
use nearsift::text::words::{Lexicon, Segmenter};
use serde::Serialize;

/// Ours and a peer's speed on the same text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What was measured.
    pub name: &'static str,
    /// The peer.
    pub peer: &'static str,
    /// Bytes of text a round.
    pub bytes: usize,
    /// Our median, in MB (10^6 bytes) a second.
    pub mb_per_second: f64,
    /// The peer's median.
    pub peer_mb_per_second: f64,
    /// Ours / the peer's.
    pub ratio: f64,
}

/// Rounds of each side; the median counts.
const ROUNDS: usize = 7;

/// Times both sides in turn, so that a change of the machine's speed meets both alike, after one
/// round each that warms up and whose answers must be equal.
fn compare(
    name: &'static str,
    texts: &[String],
    mut ours: impl FnMut(&str) -> u64,
    mut peer: impl FnMut(&str) -> u64,
) -> Comparison {
    for text in texts {
        assert_eq!(ours(text), peer(text), "{name}: the answers differ on '{text}'");
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    let (mut own, mut others) = ([0.0; ROUNDS], [0.0; ROUNDS]);
    for (own, other) in own.iter_mut().zip(&mut others) {
        *own = seconds(texts, &mut ours);
        *other = seconds(texts, &mut peer);
    }
    let speed = |times: &mut [f64; ROUNDS]| {
        times.sort_unstable_by(f64::total_cmp);
        bytes as f64 / 1e6 / times[ROUNDS / 2]
    };
    let (mb_per_second, peer_mb_per_second) = (speed(&mut own), speed(&mut others));
    let ratio = mb_per_second / peer_mb_per_second;
    Comparison { name, peer: "jieba-rs 0.11", bytes, mb_per_second, peer_mb_per_second, ratio }
}

fn seconds(texts: &[String], run: &mut impl FnMut(&str) -> u64) -> f64 {
    let (start, on_processor) = (Instant::now(), processor_seconds());
    for text in texts {
        black_box(run(black_box(text)));
    }
    match (on_processor, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// The seconds that this thread has spent on a processor, where the system tells: other programs
/// then slow the figures down less.
fn processor_seconds() -> Option<f64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(line.split(' ').next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// Segmentation against `Jieba::cut` with its hidden Markov model off. The answers compared are
/// the numbers of words and the sums of their places.
pub fn segmentation(texts: &[String]) -> Comparison {
    let jieba = Jieba::new();
    let mut segmenter = Segmenter::new(Lexicon::embedded());
    let mut words = Vec::new();
    compare(
        "word segmentation",
        texts,
        |text| {
            segmenter.segment_words(text, &mut words).expect("a text below 4 GiB");
            words.iter().map(|w| 1 + u64::from(w.start)).sum()
        },
        |text| jieba.cut(text, false).iter().map(|t| 1 + t.byte_start as u64).sum(),
    )
}

/// The ten best keywords by TF-IDF against `TfIdf::extract_keywords`. The answers compared are the
/// numbers of keywords: equally good ones may differ.
pub fn keywords(texts: &[String]) -> Comparison {
    let jieba = Jieba::new();
    let peer = TfIdf::default();
    let mut extractor = KeywordExtractor::new(
        Segmenter::new(Lexicon::embedded()),
        KeywordOptions { top: 10, ..KeywordOptions::tf_idf() },
    );
    compare(
        "TF-IDF top 10",
        texts,
        |text| extractor.rank(text).expect("a text below 4 GiB").len() as u64,
        |text| peer.extract_keywords(&jieba, text, 10, Vec::new()).len() as u64,
    )
}
