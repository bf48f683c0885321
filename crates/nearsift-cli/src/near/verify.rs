//! Candidates are compared exactly, in parallel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearsift::dedup::SketchCorpus;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::feature::shingle::Reduced;
use nearsift::sketch::join::Pair;
use nearsift::verify::{Profile, Profiler, Verified, Verifier};

use super::Rule;
use super::order::by_neighbourhood;
use super::recent::Recent;
use super::texts::TextSource;
use crate::admission;
use crate::failure::Failure;
use crate::interrupt;

/// Pairs that one worker takes at a time.
const CHUNK: usize = 256;

/// The profiles of the documents that were compared last, for any number of examiners.
pub type Profiles = Recent<u32, Profile>;

/// Bytes of profiles that are kept.
const KEPT: usize = 128 << 20;

/// Working memory for longer texts is not kept.
const LARGE: usize = 1 << 20;

/// None yet.
pub fn profiles() -> Profiles {
    Recent::new(KEPT, Profile::bytes)
}

/// What those pairs measure that score `min_score` or more, each with its place among the pairs, in
/// ascending order. The pairs may come in any order.
///
/// 16 bytes a pair while it runs, and 64 for each that is returned.
///
/// # Errors
/// When a text cannot be read back, or an interruption.
pub fn verify(
    pairs: &[Pair],
    texts: &impl TextSource,
    frequencies: &DocumentFrequencies,
    min_score: f64,
) -> Result<Vec<(usize, Verified)>, Failure> {
    verify_in_order(pairs, &by_neighbourhood(pairs), texts, frequencies, min_score)
}

/// As [`verify`], given an order in which [those of the same documents are close](by_neighbourhood).
///
/// # Errors
/// As there.
pub fn verify_in_order(
    pairs: &[Pair],
    order: &[u32],
    texts: &impl TextSource,
    frequencies: &DocumentFrequencies,
    min_score: f64,
) -> Result<Vec<(usize, Verified)>, Failure> {
    // Pairs of the same documents follow each other, so that each profile is made about once, and the
    // workers take turns along that order, so that they need the same profiles at the same time.
    let profiles = profiles();
    let next = AtomicUsize::new(0);
    let work = |_: rayon::BroadcastContext<'_>| {
        let mut examiner = Examiner::new(texts, frequencies, min_score, &profiles);
        let mut found = Vec::new();
        loop {
            interrupt::check()?;
            let from = next.fetch_add(CHUNK, Ordering::Relaxed).min(order.len());
            if from == order.len() {
                return Ok(found);
            }
            for &place in &order[from..(from + CHUNK).min(order.len())] {
                let pair = pairs[place as usize];
                if let Some(verified) = examiner.compare(pair.a, pair.b)? {
                    found.push((place as usize, verified));
                }
            }
        }
    };
    let found: Vec<Vec<(usize, Verified)>> =
        rayon::broadcast(work).into_iter().collect::<Result<_, Failure>>()?;
    let mut found = found.concat();
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(found)
}

/// Whether two documents are near duplicates by the rule, though no shared key made them a candidate.
///
/// A text that cannot be read back is like no other.
pub fn judge<'t, T: TextSource>(
    rule: Rule,
    corpus: &'t SketchCorpus,
    texts: &'t T,
    frequencies: &'t DocumentFrequencies,
    profiles: &'t Profiles,
) -> impl FnMut(u32, u32) -> bool {
    let mut examiner = match rule {
        Rule::Verified(least) => Some(Examiner::new(texts, frequencies, least, profiles)),
        Rule::Scored(_) => None,
    };
    move |a, b| {
        rule.looks_at_documents(corpus, a, b)
            && examiner
                .as_mut()
                .is_none_or(|e| e.compare(a, b).is_ok_and(|measured| measured.is_some()))
    }
}

/// Compares documents one pair after another.
struct Examiner<'t, T> {
    texts: &'t T,
    frequencies: &'t DocumentFrequencies,
    min_score: f64,
    reduced: Reduced,
    profiler: Profiler,
    verifier: Verifier,
    profiles: &'t Profiles,
}

impl<'t, T: TextSource> Examiner<'t, T> {
    fn new(
        texts: &'t T,
        frequencies: &'t DocumentFrequencies,
        min_score: f64,
        profiles: &'t Profiles,
    ) -> Examiner<'t, T> {
        Examiner {
            texts,
            frequencies,
            min_score,
            reduced: Reduced::default(),
            profiler: Profiler::default(),
            verifier: Verifier::new(),
            profiles,
        }
    }

    /// What two documents measure when they are alike enough.
    fn compare(&mut self, a: u32, b: u32) -> Result<Option<Verified>, Failure> {
        let longer = self.texts.len_of(a).max(self.texts.len_of(b));
        // The first pass lets no text in that would not fit; the text of a reference may be longer.
        let ticket = admission::for_pair(longer)
            .map_err(|too_large| too_large.at("a document of --against"))?;
        let (a, b) = (self.profile(a)?, self.profile(b)?);
        let verified = self.verifier.compare_at_least(&a, &b, self.min_score);
        if ticket.is_large() {
            self.verifier = Verifier::new();
        }
        Ok(verified)
    }

    fn profile(&mut self, document: u32) -> Result<Arc<Profile>, Failure> {
        if let Some(profile) = self.profiles.get(document) {
            return Ok(profile);
        }
        // One of 4 GiB or more has no letter here, and is like no other.
        self.texts.with_text(document, |text| _ = self.reduced.fill(text))?;
        let idf = |hash| u32::from(self.frequencies.idf_sixteenths(hash));
        let profile = Arc::new(self.profiler.profile(&self.reduced, idf));
        if self.reduced.text().len() > LARGE {
            // What was taken for it would stay while it is compared.
            (self.reduced, self.profiler) = (Reduced::default(), Profiler::default());
        }
        self.profiles.keep(document, Arc::clone(&profile));
        Ok(profile)
    }
}
