//! Scoring candidates with the instructions that the processor has.
//!
//! Every kernel is the same safe code, compiled once for each instruction set: counting the ones of a word takes one
//! instruction or a dozen.

#![expect(unsafe_code, reason = "functions compiled for instructions found at run time")]

use nearsift::sketch::{Score, Sketch, WORDS};

use nearsift::prefetch::prefetch_start;

/// Sketches that are scored against one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidates<'a> {
    /// All sketches of a table, by number.
    pub(crate) sketches: &'a [[u64; WORDS]],
    /// Which of them.
    pub(crate) numbers: &'a [u32],
}

/// Candidates that a sketch is asked for ahead of its turn. Nearly each is a line of memory by itself.
const AHEAD: usize = 24;

/// The instruction set that scoring runs on. Only sets that this processor has can be obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// Every kernel that this processor can run, slowest first.
    #[cfg(test)]
    fn available() -> Vec<Kernel> {
        let mut kernels = vec![Kernel(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(has_avx2().then_some(Kernel(Set::Avx2)));
            kernels.extend(has_avx512().then_some(Kernel(Set::Avx512)));
        }
        kernels
    }

    /// The fastest kernel that this processor can run.
    pub(crate) fn best() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Kernel(Set::Avx512);
            }
            if has_avx2() {
                return Kernel(Set::Avx2);
            }
        }
        Kernel(Set::Portable)
    }

    /// Calls `near` with the number and the score of every candidate that scores at least `least`, in order.
    pub(crate) fn each_near(
        self,
        query: &Sketch,
        least: Score,
        candidates: Candidates<'_>,
        near: &mut dyn FnMut(u32, Score),
    ) {
        match self.0 {
            Set::Portable => each_near(query, least, candidates, near),
            // SAFETY: a kernel is only made after its instructions were found on this processor.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { x86::each_near_avx2(query, least, candidates, near) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { x86::each_near_avx512(query, least, candidates, near) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use nearsift::sketch::{Score, Sketch};

    use super::{Candidates, each_near};

    macro_rules! compiled_for {
        ($features:literal, $each_near:ident) => {
            #[target_feature(enable = $features)]
            pub(super) fn $each_near(
                query: &Sketch,
                least: Score,
                candidates: Candidates<'_>,
                near: &mut dyn FnMut(u32, Score),
            ) {
                each_near(query, least, candidates, near);
            }
        };
    }

    compiled_for!("avx2,popcnt", each_near_avx2);
    compiled_for!("avx512f,avx512vl,avx512vpopcntdq,popcnt", each_near_avx512);
}

#[inline(always)]
fn each_near(
    query: &Sketch,
    least: Score,
    candidates: Candidates<'_>,
    near: &mut dyn FnMut(u32, Score),
) {
    let Candidates { sketches, numbers } = candidates;
    for (i, &number) in numbers.iter().enumerate() {
        let ahead = numbers.get(i + AHEAD).and_then(|&ahead| sketches.get(ahead as usize));
        ahead.into_iter().for_each(prefetch_start);
        let Some(words) = sketches.get(number as usize) else { continue };
        let score = query.score(&Sketch::from_words(*words));
        if score >= least {
            near(number, score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_kernel_scores_as_a_plain_loop(
            flips in prop::collection::vec(prop::collection::vec(0..64 * WORDS, 0..160), 1..60),
            numbers in prop::collection::vec(0u32..64, 0..80),
            least in prop_oneof![0.0..=1.0, 0.3..=0.6],
        ) {
            let query = Sketch::from_words([0x9e37_79b9_7f4a_7c15; WORDS]);
            let sketches: Vec<[u64; WORDS]> = flips.iter().map(|flips| {
                let mut words = *query.words();
                flips.iter().for_each(|bit| words[bit / 64] ^= 1 << (bit % 64));
                words
            }).collect();
            let least = Score::at_least(least);
            let expect: Vec<(u32, Score)> = numbers
                .iter()
                .filter_map(|&number| {
                    let words = sketches.get(number as usize)?;
                    Some((number, query.score(&Sketch::from_words(*words))))
                })
                .filter(|&(_, score)| score >= least)
                .collect();
            let candidates = Candidates { sketches: &sketches, numbers: &numbers };
            for kernel in Kernel::available() {
                let mut found = Vec::new();
                kernel.each_near(&query, least, candidates, &mut |number, score| found.push((number, score)));
                prop_assert_eq!(&found, &expect, "{:?}", kernel);
            }
        }
    }
}
