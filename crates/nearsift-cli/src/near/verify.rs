//! Candidates are compared exactly, in parallel.

use std::collections::HashMap;
use std::rc::Rc;

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::feature::shingle::Reduced;
use nearsift::sketch::join::Pair;
use nearsift::verify::{Profile, Profiler, Verified, Verifier};
use rayon::prelude::*;

use super::texts::TextSource;
use crate::failure::Failure;
use crate::interrupt;

/// Pairs that one worker takes at a time: neighbours share documents, whose profiles are made once.
const CHUNK: usize = 1024;
/// Bytes of profiles that one worker keeps.
const KEPT: usize = 64 << 20;

/// What the pairs, which are ascending, measure; `None` for those that are not alike enough.
///
/// # Errors
/// When a text cannot be read back, or an interruption.
pub fn verify(
    pairs: &[Pair],
    texts: &impl TextSource,
    frequencies: &DocumentFrequencies,
    min_score: f64,
) -> Result<Vec<Option<Verified>>, Failure> {
    let chunks: Vec<Vec<Option<Verified>>> = pairs
        .par_chunks(CHUNK)
        .map_init(
            || Examiner::new(texts, frequencies, min_score),
            |examiner, pairs| {
                interrupt::check()?;
                pairs.iter().map(|pair| examiner.compare(pair.a, pair.b)).collect()
            },
        )
        .collect::<Result<_, Failure>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

/// Compares documents one pair after another, and keeps the profiles of the last ones.
pub struct Examiner<'t, T> {
    texts: &'t T,
    frequencies: &'t DocumentFrequencies,
    min_score: f64,
    reduced: Reduced,
    profiler: Profiler,
    verifier: Verifier,
    profiles: HashMap<u32, Rc<Profile>>,
    bytes: usize,
}

impl<'t, T: TextSource> Examiner<'t, T> {
    pub fn new(
        texts: &'t T,
        frequencies: &'t DocumentFrequencies,
        min_score: f64,
    ) -> Examiner<'t, T> {
        Examiner {
            texts,
            frequencies,
            min_score,
            reduced: Reduced::default(),
            profiler: Profiler::default(),
            verifier: Verifier::new(),
            profiles: HashMap::new(),
            bytes: 0,
        }
    }

    /// What two documents measure when they are alike enough.
    pub fn compare(&mut self, a: u32, b: u32) -> Result<Option<Verified>, Failure> {
        let (a, b) = (self.profile(a)?, self.profile(b)?);
        Ok(self.verifier.compare_at_least(&a, &b, self.min_score))
    }

    fn profile(&mut self, document: u32) -> Result<Rc<Profile>, Failure> {
        if let Some(profile) = self.profiles.get(&document) {
            return Ok(Rc::clone(profile));
        }
        self.reduced.fill(&self.texts.text(document)?);
        let idf = |hash| u32::from(self.frequencies.idf_sixteenths(hash));
        let profile = Rc::new(self.profiler.profile(&self.reduced, idf));
        if self.bytes > KEPT {
            self.profiles.clear();
            self.bytes = 0;
        }
        self.bytes += profile.bytes();
        self.profiles.insert(document, Rc::clone(&profile));
        Ok(profile)
    }
}
