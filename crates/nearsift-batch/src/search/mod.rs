//! The decision of [`nearsift::search`] over more documents than the memory should hold: pairs are sorted on the disk, texts lie
//! in files, and what was compared is kept for a job that resumes this one.

mod bounded;
mod decide;
mod refused;
mod stored;
mod texts;

pub use bounded::Bounded;
pub use decide::{Decision, KeptScores, OfOneForm, PairLine, Workspace, decide};
pub use refused::{Refused, SCORE_BINS, score_bin};
pub use stored::{CANDIDATES, TEMPLATES, load_candidates, save_candidates};
pub use texts::{IN_MEMORY, Segmentation, TextStore, Texts, Wanted};
