//! Settings from a user's own documents, without labels.
//!
//! What makes two documents near duplicates shows in the scores of their pairs: a bulk of pairs that are
//! only related, a mode of copies, and between the two, with luck, a valley. This module holds what it
//! takes to look at it honestly:
//!
//! - [`Reservoir`] and [`Anchors`]: a sample of *documents*, each of which is compared with all documents
//!   before it. Within a sample of documents pairs are rare, for their number falls with its square; of the
//!   pairs that an anchor has with all documents, none is lost.
//! - [`near_before`]: what fingerprints an anchor is near to.
//! - [`RandomPairs`]: what pairs score that have nothing to do with each other.
//! - [`Histogram`]: how many pairs score what.
//! - [`Proposal`]: the least score in the valley, or the default where there is none.
//! - [`expected_precision`]: how many of the accepted pairs are copies, with an interval, from the two modes.
//! - [`max_distance`] and [`best_f1`]: the same for distances of fingerprints, judged by the texts.
//! - [`Estimate`]: what the anchors say of the whole, with its standard error.
//!
//! No count of pairs is extrapolated from a fitted curve: the pairs near the threshold are found and verified. The
//! expected precision alone extends a slope, which is measured, across the valley.
//!
//! ```
//! use nearsift::evaluate::ScoredPair;
//! use nearsift::tune::{Evidence, Proposal, expected_precision};
//! // 300 related pairs up to 0.55, and 200 copies from 0.7 on.
//! let related = (0..300).map(|i| 0.25 + 0.001 * f64::from(i));
//! let copies = (0..200).map(|i| 0.7 + 0.0015 * f64::from(i));
//! let pair = |(number, score): (u32, f64)| ScoredPair { a: 2 * number, b: 2 * number + 1, score };
//! let pairs: Vec<ScoredPair> = (0..).zip(related.chain(copies)).map(pair).collect();
//! let proposal = Proposal::of_pairs(&pairs, 0.3);
//! let Evidence::Valley(valley) = proposal.evidence else { panic!("no valley") };
//! assert!((0.55..=0.7).contains(&proposal.min_score));
//! let precision = expected_precision(&pairs, &valley, proposal.min_score, 1).unwrap();
//! assert!(precision.low <= precision.value && precision.value <= precision.high);
//! ```

mod anchors;
mod before;
mod distance;
mod estimate;
mod histogram;
mod precision;
mod proposal;
mod valley;

pub use anchors::{Anchors, RandomPairs, Reservoir};
pub use before::near_before;
pub use distance::{AtDistance, BestF1, best_f1, max_distance};
pub use estimate::{Estimate, Growth};
pub use histogram::Histogram;
pub use precision::{Precision, expected_precision};
pub use proposal::{Evidence, Proposal, Valley, WhyNot};
