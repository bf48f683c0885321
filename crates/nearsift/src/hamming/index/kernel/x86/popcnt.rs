//! The population count of words, and else what every processor has.

use super::super::{Job, Kernel, Lanes, Set};

/// The population count of words.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Popcnt(());

#[target_feature(enable = "popcnt")]
pub(in super::super) fn run<J: Job>(job: J) -> J::Output {
    job.run(Popcnt(()))
}

impl Lanes for Popcnt {
    fn kernel(self) -> Kernel {
        Kernel(Set::Popcnt)
    }
}
