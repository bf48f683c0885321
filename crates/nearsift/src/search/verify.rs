//! Candidates are compared exactly, in parallel.

use std::sync::Arc;

use crate::cluster::Judge;
use crate::dedup::{Accepted, SketchCorpus};
use crate::feature::frequency::DocumentFrequencies;
use crate::sketch::join::Pair;
use crate::verify::{Profile, Profiler, Verified, Verifier};

use super::chunks::in_chunks;
use super::lru::LruCache;
use super::order::by_neighbourhood;
use super::pair::Near;
use super::templates::{KeptSlots, SlotReader, Templates, kept_slots};
use super::{Acceptance, TextSource, pair_of};

/// Pairs that one worker takes at a time.
const CHUNK: usize = 256;

/// The profiles of the documents that were compared last, for any number of examiners.
pub type Profiles = LruCache<u32, Profile>;

/// Bytes of profiles that are kept.
const KEPT: usize = 128 << 20;

/// Working memory for longer texts is not kept, in characters.
const LARGE: usize = 1 << 17;

/// None yet.
pub fn profiles() -> Profiles {
    LruCache::new(KEPT, Profile::bytes)
}

/// What documents are compared by.
pub struct Material<'t, T> {
    /// The normalised texts.
    pub texts: &'t T,
    /// How common each feature is.
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
        Made { profiles: profiles(), slots: kept_slots() }
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
/// When a text cannot be read back, or what [`TextSource::check`] returns.
pub fn verify<T: TextSource>(
    pairs: &[Pair],
    material: Material<'_, T>,
    min_score: f64,
) -> Result<Vec<(usize, Verified)>, T::Error> {
    verify_in_order(pairs, &by_neighbourhood(pairs), material, Least::Score(min_score))
}

/// Does the same given an order in which [pairs of the same documents are close](by_neighbourhood).
///
/// # Errors
/// When a text cannot be read back, or what [`TextSource::check`] returns.
pub fn verify_in_order<T: TextSource>(
    pairs: &[Pair],
    order: &[u32],
    material: Material<'_, T>,
    least: Least,
) -> Result<Vec<(usize, Verified)>, T::Error> {
    // Pairs of the same documents follow each other, so that each profile is made about once, and the
    // workers take turns along that order, so that they need the same profiles at the same time.
    let made = Made::default();
    let examiner = || Examiner::new(material, least, &made);
    let mut found = in_chunks(
        || material.texts.check(),
        order.len(),
        CHUNK,
        examiner,
        |examiner, turn| {
            let place = order[turn] as usize;
            let verified = examiner.compare(pairs[place].a, pairs[place].b)?;
            Ok(verified.map(|verified| (place, verified)))
        },
    )?;
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(found)
}

/// Judges pairs of documents that no shared key made candidates, by the rule of acceptance: what clustering asks.
pub struct PairJudge<'t, T: TextSource> {
    acceptance: Acceptance,
    corpus: &'t SketchCorpus,
    examiner: Option<Examiner<'t, T>>,
}

impl<'t, T: TextSource> PairJudge<'t, T> {
    /// A judge for one thread; all share what was `made` of documents.
    pub fn new(
        acceptance: Acceptance,
        corpus: &'t SketchCorpus,
        material: Material<'t, T>,
        made: &'t Made,
    ) -> PairJudge<'t, T> {
        let examiner = match acceptance {
            Acceptance::Verified(least) => Some(Examiner::new(material, Least::Score(least), made)),
            Acceptance::Scored(_) => None,
        };
        PairJudge { acceptance, corpus, examiner }
    }
}

impl<T: TextSource> Judge for PairJudge<'_, T> {
    type Error = T::Error;

    /// How near two documents are, as [`Accepted::strength`](crate::dedup::Accepted::strength), when they are near
    /// duplicates.
    ///
    /// # Errors
    /// When a text cannot be read back.
    fn strength(&mut self, a: u32, b: u32) -> Result<Option<u32>, T::Error> {
        let PairJudge { acceptance, corpus, examiner } = self;
        let pair = pair_of(corpus, a, b).filter(|pair| acceptance.is_candidate(corpus, pair));
        let Some(pair) = pair else { return Ok(None) };
        let texts = match examiner {
            None => None,
            Some(examiner) => match examiner.compare(a, b)? {
                Some(texts) => Some(texts.into()),
                None => return Ok(None),
            },
        };
        Ok(Some(Near::of(&pair, texts).accepted().strength))
    }
}

/// Takes from the scores of compared pairs what documents of one form differ in: the neighbours of a document are those of
/// its pairs whose form scores `min_form` or more. Returns what varies among them.
///
/// # Errors
/// When a text cannot be read back, or what [`TextSource::check`] returns.
pub fn judge_by_neighbours<T: TextSource>(
    measured: &mut [(Pair, Verified)],
    texts: &T,
    min_form: f64,
) -> Result<Templates, T::Error> {
    let neighbours = measured.iter().filter(|(_, texts)| texts.form >= min_form);
    let neighbours: Vec<Accepted> =
        neighbours.map(|(pair, texts)| Near::of(pair, Some((*texts).into())).accepted()).collect();
    let templates = Templates::among(&neighbours, texts)?;
    let documents: Vec<(u32, u32)> = measured.iter().map(|(pair, _)| (pair.a, pair.b)).collect();
    let facts = templates.facts_of_all(&documents, texts, &kept_slots())?;
    for ((_, texts), facts) in measured.iter_mut().zip(facts) {
        if let Some((facts, letters)) = facts {
            *texts = texts.with_facts(facts, letters);
        }
    }
    Ok(templates)
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
    fn compare(&mut self, a: u32, b: u32) -> Result<Option<Verified>, T::Error> {
        let texts = self.material.texts;
        let longer = texts.len_of(a).max(texts.len_of(b));
        texts.with_room(longer, || self.compare_in_room(a, b))
    }

    fn compare_in_room(&mut self, a: u32, b: u32) -> Result<Option<Verified>, T::Error> {
        let templates = self.material.templates;
        let (x, y) = (self.profile(a)?, self.profile(b)?);
        let mut verified = match self.least {
            Least::Score(least) => self.verifier.compare_at_least(&x, &y, least),
            Least::Form(least) => self.verifier.compare_form_at_least(&x, &y, least),
        };
        if x.characters().max(y.characters()) > LARGE {
            // What was taken for them would stay while others are compared.
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

    fn profile(&mut self, document: u32) -> Result<Arc<Profile>, T::Error> {
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
