//! Nanoseconds a feature for every vote kernel of this machine.

use nearsift::fingerprint::votes::{Kernel, Votes, lane_hash};
use nearsift::fingerprint::{Bits, Fingerprint};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// How the features of a run are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// From 1 to 255.
    Weighted,
    /// All 1, and known to be.
    Unweighted,
}

/// One kernel on one kind of input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VotesResult {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The width of the fingerprint.
    pub bits: u32,
    /// The weights.
    pub weights: Weights,
    /// The features of a document.
    pub features: usize,
    /// The median over the rounds, for a whole document from no votes to the fingerprint.
    pub ns_per_feature: f64,
}

/// Features whose votes are timed together, in documents of any length.
const FEATURES_PER_SAMPLE: usize = 1 << 19;

/// Measures every available kernel.
///
/// The kernels take turns in each round, so that a slow phase of the machine meets all of them; the
/// result is the median round.
///
/// # Panics
/// When two kernels disagree on a fingerprint, or `rounds` is 0.
pub fn run(rounds: usize) -> Vec<VotesResult> {
    assert!(rounds > 0, "at least one round");
    let mut results = Vec::new();
    for features in [256, 2048] {
        let hashes: Vec<u64> = (0..features as u64).map(|i| lane_hash(i, 1)).collect();
        let weights: Vec<u8> = hashes.iter().map(|hash| (hash >> 40) as u8 | 1).collect();
        for (bits, kind) in [
            (Bits::B64, Weights::Weighted),
            (Bits::B64, Weights::Unweighted),
            (Bits::B256, Weights::Weighted),
        ] {
            let one = |kernel| fingerprint(kernel, bits, kind, &hashes, &weights);
            let expect = one(Kernel::Portable);
            let kernels: Vec<Kernel> = Kernel::available().collect();
            let mut samples = vec![Vec::with_capacity(rounds); kernels.len()];
            for _ in 0..rounds {
                for (&kernel, samples) in kernels.iter().zip(&mut samples) {
                    let documents = FEATURES_PER_SAMPLE / features;
                    let start = Instant::now();
                    for _ in 0..documents {
                        assert_eq!(black_box(one(black_box(kernel))), expect, "{kernel}");
                    }
                    let elapsed = start.elapsed().as_nanos() as f64;
                    samples.push(elapsed / (documents * features) as f64);
                }
            }
            results.extend(kernels.iter().zip(samples).map(|(kernel, samples)| VotesResult {
                kernel: kernel.name(),
                bits: bits.count(),
                weights: kind,
                features,
                ns_per_feature: median(samples),
            }));
        }
    }
    results
}

fn fingerprint(
    kernel: Kernel,
    bits: Bits,
    kind: Weights,
    hashes: &[u64],
    weights: &[u8],
) -> Option<Fingerprint> {
    let mut votes = Votes::with_kernel(bits, kernel);
    match kind {
        Weights::Weighted => votes.add(black_box(hashes), weights),
        Weights::Unweighted => votes.add_unweighted(black_box(hashes)),
    }
    votes.finish()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
