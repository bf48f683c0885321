//! Candidates are compared exactly, in parallel.

use std::sync::Arc;

use nearsift::dedup::SketchCorpus;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::sketch::join::Pair;
use nearsift::verify::{Profile, Profiler, Verified, Verifier};

use super::chunks::in_chunks;
use super::order::by_neighbourhood;
use super::recent::Recent;
use super::search::Near;
use super::templates::{KeptSlots, SlotReader, Templates, slots};
use super::texts::TextSource;
use super::{Rule, pair_of};
use crate::admission;
use crate::failure::Failure;

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

/// What documents are compared by.
pub struct Material<'t, T> {
    pub texts: &'t T,
    pub frequencies: &'t DocumentFrequencies,
    /// What varies among documents of one form; nothing where that is not known.
    pub templates: &'t Templates,
}

impl<T> Clone for Material<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Material<'_, T> {}

/// What was made of the documents that were compared last, for any number of examiners.
pub struct Made {
    profiles: Profiles,
    slots: KeptSlots,
}

impl Default for Made {
    fn default() -> Made {
        Made { profiles: profiles(), slots: slots() }
    }
}

/// Which pairs are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Least {
    /// Those that score so much or more.
    Score(f64),
    /// Those whose form does, whatever facts they differ in.
    Form(f64),
}

/// What those pairs measure that are wanted, each with its place among the pairs, in
/// ascending order. The pairs may come in any order.
///
/// 16 bytes a pair while it runs, and 64 for each that is returned.
///
/// # Errors
/// When a text cannot be read back, or an interruption.
pub fn verify(
    pairs: &[Pair],
    material: Material<'_, impl TextSource>,
    min_score: f64,
) -> Result<Vec<(usize, Verified)>, Failure> {
    verify_in_order(pairs, &by_neighbourhood(pairs), material, Least::Score(min_score))
}

/// Does the same given an order in which [pairs of the same documents are close](by_neighbourhood).
///
/// # Errors
/// When a text cannot be read back, or an interruption.
pub fn verify_in_order(
    pairs: &[Pair],
    order: &[u32],
    material: Material<'_, impl TextSource>,
    least: Least,
) -> Result<Vec<(usize, Verified)>, Failure> {
    // Pairs of the same documents follow each other, so that each profile is made about once, and the
    // workers take turns along that order, so that they need the same profiles at the same time.
    let made = Made::default();
    let examiner = || Examiner::new(material, least, &made);
    let mut found = in_chunks(order.len(), CHUNK, examiner, |examiner, turn| {
        let place = order[turn] as usize;
        let verified = examiner.compare(pairs[place].a, pairs[place].b)?;
        Ok(verified.map(|verified| (place, verified)))
    })?;
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(found)
}

/// How alike two documents are that no shared key made a candidate, as the bits of the score: when they are near
/// duplicates by the rule.
///
/// A text that cannot be read back is like no other.
pub fn judge<'t, T: TextSource>(
    rule: Rule,
    corpus: &'t SketchCorpus,
    material: Material<'t, T>,
    made: &'t Made,
) -> impl FnMut(u32, u32) -> Option<u32> {
    let mut examiner = match rule {
        Rule::Verified(least) => Some(Examiner::new(material, Least::Score(least), made)),
        Rule::Scored(_) => None,
    };
    move |a, b| {
        let pair = pair_of(corpus, a, b).filter(|pair| rule.looks_at(corpus, pair))?;
        let texts = match &mut examiner {
            Some(examiner) => Some(examiner.compare(a, b).ok()??.into()),
            None => None,
        };
        Some(Near::of(&pair, texts).accepted().strength)
    }
}

/// Compares documents one pair after another.
struct Examiner<'t, T> {
    material: Material<'t, T>,
    least: Least,
    profiler: Profiler,
    verifier: Verifier,
    profiles: &'t Profiles,
    slots: SlotReader<'t, T>,
}

impl<'t, T: TextSource> Examiner<'t, T> {
    fn new(material: Material<'t, T>, least: Least, made: &'t Made) -> Examiner<'t, T> {
        Examiner {
            material,
            least,
            profiler: Profiler::default(),
            verifier: Verifier::new(),
            profiles: &made.profiles,
            slots: SlotReader::new(material.texts, &made.slots),
        }
    }

    /// What two documents measure when they are alike enough.
    fn compare(&mut self, a: u32, b: u32) -> Result<Option<Verified>, Failure> {
        let Material { texts, templates, .. } = self.material;
        let longer = texts.len_of(a).max(texts.len_of(b));
        // The first pass lets no text in that would not fit; the text of a reference may be longer.
        let ticket = admission::for_pair(longer)
            .map_err(|too_large| too_large.at("a document of --against"))?;
        let (x, y) = (self.profile(a)?, self.profile(b)?);
        let mut verified = match self.least {
            Least::Score(least) => self.verifier.compare_at_least(&x, &y, least),
            Least::Form(least) => self.verifier.compare_form_at_least(&x, &y, least),
        };
        if ticket.is_large() {
            self.verifier = Verifier::new();
        }
        if let Some(by_numbers) = verified.filter(|_| templates.concern(a, b)) {
            let facts = templates.facts(&mut self.slots, a, b)?;
            let letters = x.characters() + y.characters();
            let by_facts = by_numbers.with_facts(facts, letters);
            let is_wanted = match self.least {
                Least::Score(least) => by_facts.score >= least,
                Least::Form(_) => true,
            };
            verified = Some(by_facts).filter(|_| is_wanted);
        }
        Ok(verified)
    }

    fn profile(&mut self, document: u32) -> Result<Arc<Profile>, Failure> {
        if let Some(profile) = self.profiles.get(document) {
            return Ok(profile);
        }
        let idf = |hash| u32::from(self.material.frequencies.idf_sixteenths(hash));
        let mut profile = Profile::default();
        self.material.texts.with_text(document, |text| {
            // One that is too long has no letter here, and is like no other.
            profile = self.profiler.profile(text, idf).unwrap_or_default();
        })?;
        let profile = Arc::new(profile);
        if profile.characters() > LARGE {
            // What was taken for it would stay while it is compared.
            self.profiler = Profiler::default();
        }
        self.profiles.keep(document, Arc::clone(&profile));
        Ok(profile)
    }
}
