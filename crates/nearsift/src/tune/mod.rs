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
//! - [`Estimate`]: what the anchors say of the whole, with its standard error.
//!
//! No tail is extrapolated from a fitted curve: the pairs near the threshold are found and verified.
//!
//! ```
//! use nearsift::tune::{Evidence, Proposal};
//! // 300 related pairs up to 0.55, and 200 copies from 0.7 on.
//! let related = (0..300).map(|i| 0.25 + 0.001 * f64::from(i));
//! let copies = (0..200).map(|i| 0.7 + 0.0015 * f64::from(i));
//! let scores: Vec<f64> = related.chain(copies).collect();
//! let proposal = Proposal::of_scores(&scores, 0.3);
//! assert!(matches!(proposal.evidence, Evidence::Valley { .. }));
//! assert!((0.55..=0.7).contains(&proposal.min_score));
//! ```

mod anchors;
mod before;
mod estimate;
mod histogram;
mod proposal;

pub use anchors::{Anchors, RandomPairs, Reservoir};
pub use before::near_before;
pub use estimate::{Estimate, Growth};
pub use histogram::Histogram;
pub use proposal::{AtDistance, Evidence, Proposal, WhyNot, max_distance};
