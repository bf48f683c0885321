//! From a corpus of sketches to its near-duplicate pairs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use nearsift::cluster::{Clusters, Components};
use nearsift::dedup::{Accepted, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::search::{
    Acceptance, Candidates, Least, Made, Material, Near, Neighbourhoods, PairJudge, Templates,
    TextMeasures, TextSource, by_neighbourhood, kept_slots, score_among, verify_in_order,
};
use nearsift::sketch::Score;
use nearsift::sketch::join::{Pair, Plan, Work};
use nearsift::verify::{Facts, Verified};
use serde::Serialize;

use super::bounded::Bounded;
use super::refused::{Refused, RefusedSample, SCORE_BINS, score_bin};
use super::stored::{OfComponent, load, load_templates, save, save_templates};
use super::texts::{PARTS, Wanted};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::file::{self, ByteReader};
use crate::context::{Context, Phase};
use crate::corpus::{Id, Ids};
use crate::error::Error;
use crate::external_sort::{Sorted, Sorter, Stored};

/// A pair as a JSON line.
#[derive(Debug, Serialize)]
pub struct PairLine<'a> {
    a: Id<'a>,
    b: Id<'a>,
    /// What decided: from the texts where these were compared, else from the sketches.
    score: f32,
    /// The Hamming distance of the sketches' SimHash halves, in bits of 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch_score: Option<f64>,
    #[serde(flatten)]
    texts: Option<TextMeasures>,
}

impl<'a> PairLine<'a> {
    /// # Errors
    /// When an id cannot be read back.
    pub(crate) fn of(
        pair: &Near,
        ids: &'a Ids,
        corpus: &SketchCorpus,
    ) -> Result<PairLine<'a>, Error> {
        let both = corpus.sketch(pair.a).zip(corpus.sketch(pair.b));
        Ok(PairLine {
            a: ids.get(pair.a)?,
            b: ids.get(pair.b)?,
            score: pair.score(),
            distance: both.map(|(a, b)| a.distance(&b)),
            sketch_score: both.map(|(a, b)| a.score(&b).value()),
            texts: pair.texts,
        })
    }
}

fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// The near-duplicate pairs of a corpus, and how they were found.
pub struct Decision<'c, T> {
    /// In ascending order. Of documents with the same text or the same sketch, the first stands for all.
    pairs: Sorted<Near>,
    /// The same as clustering takes them; the strength is the bits of the score.
    pub accepted: Vec<Accepted>,
    places: Places,
    /// Pairs that a judge accepted while groups were made, ascending.
    judged: Vec<Accepted>,
    /// Pairs whose sketches scored high enough to be looked at.
    pub candidates: u64,
    /// Of documents with very many candidates, those that were not looked at.
    pub skipped: u64,
    /// Pairs of one form that differ in their facts.
    pub apart: Apart,
    /// Candidates whose texts are not alike enough, but for those that are apart.
    refused: RefusedSample,
    pub work: Work,
    pub plan: Plan,
    corpus: &'c SketchCorpus,
    acceptance: Acceptance,
    texts: Bounded<'c, T>,
    frequencies: DocumentFrequencies,
    templates: Templates,
    /// Of documents that were compared after the candidates.
    made: Made,
}

/// Where the pairs of some earlier documents stand among all: what is searched there lies in few cache lines.
struct Places(Vec<usize>);

impl Places {
    /// Documents whose pairs share an entry, as a power of two: 1/8 of a byte for each.
    const TOGETHER: u32 = 6;

    /// Of the earlier documents of pairs, which ascend, in a corpus of `documents`.
    fn of_earlier(pairs: &[Accepted], documents: usize) -> Places {
        let mut ends = vec![0; (documents >> Places::TOGETHER) + 2];
        pairs.iter().for_each(|pair| ends[(pair.a >> Places::TOGETHER) as usize + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        Places(ends)
    }

    /// Those among which all pairs of an earlier document are.
    fn of(&self, document: u32) -> Range<usize> {
        let together = (document >> Places::TOGETHER) as usize;
        self.0[together]..self.0[together + 1]
    }
}

/// Where work is kept that the memory should not hold.
#[derive(Clone, Copy)]
pub struct Workspace<'a> {
    pub context: &'a Context<'a>,
    /// What a later run can take up.
    pub state: Option<&'a Checkpoint>,
    /// For files without a name.
    pub folder: &'a Path,
    /// What was measured of the candidates.
    pub scores: KeptScores<'a>,
}

impl<'a> Workspace<'a> {
    /// For work that no later job takes up.
    pub fn scratch(context: &'a Context<'a>, folder: &'a Path) -> Workspace<'a> {
        Workspace { context, state: None, folder, scores: KeptScores::default() }
    }
}

/// What is kept of comparisons beside what this job accepts, and what an earlier job kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptScores<'a> {
    /// The state keeps pairs whose form scores this or more, where that is less than what is accepted.
    pub from: Option<f64>,
    /// The folder with all pairs of the same candidates that this job may accept, as an earlier job compared them.
    pub earlier: Option<&'a Path>,
}

/// Decides about candidates. `texts` is asked once for the texts of documents, ascending: of those in a
/// candidate, when texts decide. With a state, what was compared before is taken up, and
/// what is compared is kept.
///
/// # Errors
/// What `texts` returns, a text that cannot be read back, a disk that is full or refuses, or an interruption.
pub fn decide<'c, T: TextSource<Error = Error>>(
    corpus: &'c SketchCorpus,
    candidates: Candidates,
    frequencies: DocumentFrequencies,
    acceptance: Acceptance,
    workspace: Workspace<'c>,
    texts: impl FnOnce(Wanted) -> Result<T, Error>,
) -> Result<Decision<'c, T>, Error> {
    let context = workspace.context;
    let candidate_documents = match acceptance {
        Acceptance::Verified(_) => candidates.documents(corpus),
        Acceptance::Scored(_) => Vec::new(),
    };
    let Candidates { pairs, skipped, work, plan } = candidates;
    let count = pairs.len() as u64;
    let (mut near, refused, texts) = match acceptance {
        Acceptance::Scored(_) => {
            let mut near = Sorter::new(workspace.folder, context.bounds.sorted_records);
            pairs.iter().try_for_each(|pair| near.push(Near::of(pair, None)))?;
            let texts = Bounded::by(context, texts(candidate_documents.into())?);
            (near.finish()?, RefusedSample::default(), texts)
        }
        Acceptance::Verified(min_score) => {
            let (ordered, mut components) = by_component(corpus.len(), pairs, workspace)?;
            let wanted = in_parts(corpus.len(), candidate_documents, &mut components);
            drop(components);
            let texts = Bounded::by(context, texts(wanted)?);
            let least = workspace.scores.from.map_or(min_score, |from| from.min(min_score));
            let comparison =
                Comparison { texts: &texts, frequencies: &frequencies, least, min_score };
            let (near, refused) = comparison.near_among(&ordered, workspace)?;
            (near, refused, texts)
        }
    };
    let mut accepted = accepted_of(&near)?;
    let (mut templates, mut apart) = (Templates::default(), Apart::default());
    if let Acceptance::Verified(min_score) = acceptance {
        templates = templates_among(&accepted, &texts, workspace)?;
        (near, apart) = by_facts(&near, &templates, &texts, min_score, workspace)?;
        accepted = accepted_of(&near)?;
    }
    Ok(Decision {
        pairs: near,
        places: Places::of_earlier(&accepted, corpus.len()),
        accepted,
        judged: Vec::new(),
        candidates: count,
        skipped,
        work,
        plan,
        corpus,
        acceptance,
        apart,
        refused,
        texts,
        frequencies,
        templates,
        made: Made::default(),
    })
}

/// The documents of candidates, each with the part of the work in which its text is wanted: pairs come in the order of the
/// roots of their components, and so are texts wanted.
fn in_parts(all: usize, documents: Vec<u32>, components: &mut Components) -> Wanted {
    let parts = EvenParts::of(all, documents.iter().map(|&document| components.root(document)));
    Wanted::in_parts(documents, |&document| parts.part(components.root(document)))
}

/// How the texts of candidates are compared.
struct Comparison<'a, T> {
    texts: &'a T,
    frequencies: &'a DocumentFrequencies,
    /// The least form of pairs that are kept for later jobs.
    least: f64,
    /// The least form of pairs that this job may accept.
    min_score: f64,
}

impl<T: TextSource<Error = Error>> Comparison<'_, T> {
    /// The candidates that are near, and a sample of the others, compared a part after the other. While the workers compare one,
    /// the part before is kept and the next is made ready.
    fn near_among(
        &self,
        candidates: &Sorted<OfComponent>,
        workspace: Workspace<'_>,
    ) -> Result<(Sorted<Near>, RefusedSample), Error> {
        let Workspace { context, state, folder, scores } = workspace;
        let count = candidates.len();
        let progress = context.begin(Phase::Verifying, count);
        let mut near = Sorter::new(folder, context.bounds.sorted_records);
        let mut refused = RefusedSample::default();
        let mut rest = candidates.iter().map(|of| of.map(|of| of.pair));
        let take = |number, rest: &mut _| Part::take(number, rest, state, scores.earlier);
        let mut next = take(0, &mut rest)?;
        let mut done: Option<Compared> = None;
        while let Some(part) = next.take() {
            let number = part.number;
            progress.at(count.min((number * PART) as u64));
            let mut compared = Ok(None);
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| compared = self.compare(part).map(Some));
                done.take()
                    .map_or(Ok(()), |done| self.keep(done, state, &mut near, &mut refused))?;
                context.check()?;
                next = take(number + 1, &mut rest)?;
                Ok::<(), Error>(())
            })?;
            done = compared?;
        }
        done.map_or(Ok(()), |done| self.keep(done, state, &mut near, &mut refused))?;
        progress.at(count);
        Ok((near.finish()?, refused))
    }

    fn compare(&self, part: Part) -> Result<Compared, Error> {
        let Part { number, pairs, order, known } = part;
        if let Some(near) = known {
            let refused = self.refused_of(&pairs, &near);
            return Ok(Compared { number, is_known: true, near, refused });
        }
        let &Comparison { texts, frequencies, least, .. } = self;
        let templates = &Templates::default();
        let material = Material { texts, frequencies, templates };
        let measured = verify_in_order(&pairs, &order, material, Least::Form(least))?;
        let near = |(place, texts): (usize, Verified)| Near::of(&pairs[place], Some(texts.into()));
        let near: Vec<Near> = measured.into_iter().map(near).collect();
        let refused = self.refused_of(&pairs, &near);
        Ok(Compared { number, is_known: false, near, refused })
    }

    /// Keeps what was found among some of the candidates, and adds those that may be accepted to `near`.
    fn keep(
        &self,
        compared: Compared,
        state: Option<&Checkpoint>,
        near: &mut Sorter<Near>,
        refused: &mut RefusedSample,
    ) -> Result<(), Error> {
        refused.merge(compared.refused);
        if let Some(state) = state.filter(|_| !compared.is_known) {
            let mut content = Vec::with_capacity(<Near as Stored>::BYTES * compared.near.len());
            compared.near.iter().for_each(|near| save(near, &mut content));
            state.write(&name_of_part(compared.number), &content)?;
        }
        let mut accepted = compared.near.into_iter().filter(|pair| self.may_accept(pair));
        accepted.try_for_each(|pair| near.push(pair))
    }

    /// Whether a pair may be accepted: its form scores enough, whatever facts differ.
    fn may_accept(&self, pair: &Near) -> bool {
        pair.texts.is_none_or(|texts| texts.form >= self.min_score as f32)
    }

    /// A sample of the candidates that cannot be accepted.
    fn refused_of(&self, candidates: &[Pair], near: &[Near]) -> RefusedSample {
        RefusedSample::of_others(candidates, near.iter().filter(|pair| self.may_accept(pair)))
    }
}

/// Pairs as clustering takes them.
fn accepted_of(pairs: &Sorted<Near>) -> Result<Vec<Accepted>, Error> {
    let mut accepted = Vec::with_capacity(usize::try_from(pairs.len()).unwrap_or(0));
    for pair in pairs.iter() {
        accepted.push(pair?.accepted());
    }
    Ok(accepted)
}

/// What varies among the documents of pairs, as an earlier job found it where it kept that; for later ones it is kept.
fn templates_among(
    accepted: &[Accepted],
    texts: &impl TextSource<Error = Error>,
    workspace: Workspace<'_>,
) -> Result<Templates, Error> {
    let Workspace { state, scores, .. } = workspace;
    let known = scores.earlier.map(load_templates).transpose()?.unwrap_or_default();
    let neighbourhoods = Neighbourhoods::of(accepted, texts);
    let templates = Templates::of(&neighbourhoods, texts, &known)?;
    if let Some(state) = state.filter(|_| scores.from.is_some()) {
        save_templates(&neighbourhoods, &templates, state)?;
    }
    Ok(templates)
}

/// Pairs of one form that differ in their facts: they are no near duplicates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Apart {
    pub pairs: u64,
    /// The pair with the most values that differ; of equal ones the first.
    pub example: Option<Near>,
    /// How many of them are in each bin of scores.
    pub scores: [u64; SCORE_BINS],
}

impl Apart {
    fn add(&mut self, pair: Near) {
        self.pairs += 1;
        self.scores[score_bin(f64::from(pair.score()))] += 1;
        if self.example.is_none_or(|example| example.facts().differ < pair.facts().differ) {
            self.example = Some(pair);
        }
    }
}

/// The pairs of one form that score `min_score` or more with what is known of their facts.
fn by_facts(
    pairs: &Sorted<Near>,
    templates: &Templates,
    texts: &impl TextSource<Error = Error>,
    min_score: f64,
    workspace: Workspace<'_>,
) -> Result<(Sorted<Near>, Apart), Error> {
    let Workspace { context, folder, .. } = workspace;
    let kept = kept_slots();
    let (mut near, mut apart) =
        (Sorter::new(folder, context.bounds.sorted_records), Apart::default());
    let mut rest = pairs.iter();
    loop {
        let part: Vec<Near> = rest.by_ref().take(PART).collect::<Result<_, Error>>()?;
        if part.is_empty() {
            return Ok((near.finish()?, apart));
        }
        context.check()?;
        let documents: Vec<(u32, u32)> = part.iter().map(|pair| (pair.a, pair.b)).collect();
        let facts = templates.facts_of_all(&documents, texts, &kept)?;
        let looked = part.into_iter().zip(facts).map(|(pair, facts)| pair.with_facts(facts));
        for pair in looked {
            match pair.score() >= min_score as f32 {
                true => near.push(pair)?,
                false => apart.add(pair),
            }
        }
    }
}

/// Candidates that are compared between two looks at whether to go on; with a state, they are kept
/// together.
const PART: usize = 1 << 17;

/// Some of the candidates.
struct Part {
    number: usize,
    pairs: Vec<Pair>,
    /// The places of those of the same documents close to each other.
    order: Vec<u32>,
    /// What an earlier run found.
    known: Option<Vec<Near>>,
}

/// What was found among them.
struct Compared {
    number: usize,
    is_known: bool,
    near: Vec<Near>,
    refused: RefusedSample,
}

/// The name of a part's file in the state.
fn name_of_part(number: usize) -> String {
    format!("{number:08}.pairs")
}

impl Part {
    /// The next candidates, if there are any.
    fn take(
        number: usize,
        rest: &mut impl Iterator<Item = Result<Pair, Error>>,
        state: Option<&Checkpoint>,
        earlier: Option<&Path>,
    ) -> Result<Option<Part>, Error> {
        let pairs: Vec<Pair> = rest.take(PART).collect::<Result<_, Error>>()?;
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut content = state.map_or(Ok(None), |state| state.read(&name_of_part(number)))?;
        if let (None, Some(folder)) = (&content, earlier) {
            let path = folder.join(name_of_part(number));
            content = file::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        }
        let known = content.map(|content| {
            let mut content = ByteReader(&content);
            std::iter::from_fn(|| load(&mut content)).collect()
        });
        let order = if known.is_none() { by_neighbourhood(&pairs) } else { Vec::new() };
        Ok(Some(Part { number, pairs, order, known }))
    }
}

/// Parts of the work in the order of the roots of components, each with about as many documents: the first roots are those of
/// the largest components.
struct EvenParts {
    documents: usize,
    /// Of each stretch of roots the part.
    parts: Vec<u8>,
}

impl EvenParts {
    /// Of a corpus of `documents`, given the root of each that is wanted.
    fn of(documents: usize, roots: impl Iterator<Item = u32>) -> EvenParts {
        const STRETCHES: usize = 1 << 16;
        let mut even = EvenParts { documents, parts: vec![0; STRETCHES] };
        let mut counts = vec![0usize; STRETCHES];
        roots.for_each(|root| counts[even.stretch(root)] += 1);
        let all = counts.iter().sum::<usize>().max(1);
        let mut before = 0;
        for (part, count) in even.parts.iter_mut().zip(counts) {
            *part = (before * PARTS / all).min(PARTS - 1) as u8;
            before += count;
        }
        even
    }

    fn stretch(&self, root: u32) -> usize {
        root as usize * self.parts.len() / self.documents.max(1)
    }

    fn part(&self, root: u32) -> u8 {
        self.parts[self.stretch(root)]
    }
}

/// The pairs, those of one connected component of likely ones after the other: each document is then
/// wanted in one stretch, and what was made of its text is still at hand.
fn by_component(
    documents: usize,
    pairs: Vec<Pair>,
    workspace: Workspace<'_>,
) -> Result<(Sorted<OfComponent>, Components), Error> {
    // Unlikely pairs would link almost all.
    let likely = Score::at_least(0.35);
    let mut components = Components::new(documents);
    let links = pairs.iter().filter(|pair| pair.score >= likely);
    links.for_each(|pair| components.link(pair.a, pair.b));
    let mut sorter = Sorter::new(workspace.folder, workspace.context.bounds.sorted_records);
    for pair in pairs {
        sorter.push(OfComponent { root: components.root(pair.a), pair })?;
    }
    Ok((sorter.finish()?, components))
}

/// Groups with a pair whose texts may have no more than a form in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfOneForm {
    pub groups: u64,
    /// All documents in these groups.
    pub documents: u64,
    /// The first such pair.
    pub example: Option<Near>,
}

/// In how many values the documents of some pairs agree and differ, in ascending order of the pairs.
pub struct FactsOfPairs(Vec<((u32, u32), Facts)>);

impl FactsOfPairs {
    /// Those of two documents, given the first document of each text; `None` where no value differs.
    pub fn of(&self, a: u32, b: u32, first: &[u32]) -> Option<Facts> {
        let pair = ordered(first[a as usize], first[b as usize]);
        let place = self.0.binary_search_by_key(&pair, |(pair, _)| *pair).ok()?;
        Some(self.0[place].1)
    }
}

impl<T> Decision<'_, T> {
    /// The least score of near duplicates, inclusive, from 0 to 1.
    pub fn min_score(&self) -> f64 {
        self.acceptance.min_score()
    }

    /// How common each feature is, as the texts were compared.
    pub fn frequencies(&self) -> &DocumentFrequencies {
        &self.frequencies
    }
}

impl<T: TextSource<Error = Error>> Decision<'_, T> {
    /// The groups with a pair whose texts may have no more than a form in common.
    ///
    /// # Errors
    /// When pairs that were kept aside cannot be read back.
    pub fn of_one_form(&self, clusters: &Clusters) -> Result<OfOneForm, Error> {
        let mut found = OfOneForm::default();
        let mut labels = HashSet::new();
        for pair in self.pairs.iter() {
            let pair = pair?;
            let label = clusters.label(pair.a);
            if pair.is_of_one_form() && label == clusters.label(pair.b) {
                found.example.get_or_insert(pair);
                labels.insert(label);
            }
        }
        found.groups = labels.len() as u64;
        if !labels.is_empty() {
            let documents = 0..clusters.documents() as u32;
            found.documents = documents
                .filter(|&document| labels.contains(&clusters.label(document)))
                .count() as u64;
        }
        Ok(found)
    }

    /// The pairs, and each document that repeats a text with the first that has it: in ascending order,
    /// given the first document of each text.
    pub fn with_same_texts(&self, first: &[u32]) -> impl Iterator<Item = Result<Near, Error>> {
        let repeats = (0u32..).zip(first).filter(|(document, first)| document != *first);
        let mut same: Vec<(u32, u32)> = repeats.map(|(b, &a)| (a, b)).collect();
        same.sort_unstable();
        let mut same = same.into_iter().map(|(a, b)| Near::of_same_text(a, b)).peekable();
        let mut pairs = self.pairs.iter().peekable();
        std::iter::from_fn(move || match (pairs.peek(), same.peek()) {
            (Some(Ok(pair)), Some(text)) if (text.a, text.b) < (pair.a, pair.b) => {
                same.next().map(Ok)
            }
            (None, _) => same.next().map(Ok),
            _ => pairs.next(),
        })
    }

    /// The pairs of all documents, in ascending order, given the first document of each text: of
    /// [`PairScope::AllPairs`], and each two of the same text.
    ///
    /// 12 bytes a pair, and 36 for each that was found.
    ///
    /// # Errors
    /// When pairs that were kept aside cannot be read back.
    pub fn of_all_documents(&self, first: &[u32]) -> Result<impl Iterator<Item = Near>, Error> {
        const SAME: u32 = u32::MAX;
        let pairs: Vec<Near> = self.pairs.iter().collect::<Result<_, Error>>()?;
        let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
        for (document, &first) in (0u32..).zip(first) {
            copies.entry(first).or_default().push(document);
        }
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for (place, near) in (0u32..).zip(&pairs) {
            for &a in &copies[&near.a] {
                all.extend(copies[&near.b].iter().map(|&b| (a.min(b), a.max(b), place)));
            }
        }
        for same in copies.values().filter(|same| same.len() > 1) {
            for (at, &a) in same.iter().enumerate() {
                all.extend(same[at + 1..].iter().map(|&b| (a, b, SAME)));
            }
        }
        all.sort_unstable();
        Ok(all.into_iter().map(move |(a, b, place)| match pairs.get(place as usize) {
            Some(near) => Near { a, b, ..*near },
            None => Near::of_same_text(a, b),
        }))
    }

    /// How alike two documents are, given the first document of each text: what decided about them, among the candidates or
    /// [since](Decision::take_up); `None` for all others.
    pub fn score_of(&self, a: u32, b: u32, first: &[u32]) -> Option<f32> {
        let pair = ordered(first[a as usize], first[b as usize]);
        score_among(&self.accepted[self.places.of(pair.0)], pair)
            .or_else(|| score_among(&self.judged, pair))
    }

    /// In how many values documents agree and differ that are in accepted pairs, given the first document of each text;
    /// the documents may come in any order.
    ///
    /// 20 bytes for each pair that some values differ in.
    ///
    /// # Errors
    /// When pairs that were kept aside cannot be read back.
    pub fn facts_of(
        &self,
        documents: impl Iterator<Item = (u32, u32)>,
        first: &[u32],
    ) -> Result<FactsOfPairs, Error> {
        let pairs = documents.map(|(a, b)| ordered(first[a as usize], first[b as usize]));
        let mut wanted: Vec<(u32, u32)> = pairs.collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = Vec::new();
        let mut wanted = wanted.into_iter().peekable();
        for pair in self.pairs.iter() {
            let pair = pair?;
            let place = (pair.a, pair.b);
            while wanted.next_if(|wanted| *wanted < place).is_some() {}
            if wanted.next_if_eq(&place).is_some() && pair.facts().differ > 0 {
                found.push((place, pair.facts()));
            }
        }
        Ok(FactsOfPairs(found))
    }

    /// Candidates whose texts were compared and are no near duplicates: how many, by score, and the most alike that were
    /// measured. `None` where sketches decide, because no others are searched for.
    ///
    /// # Errors
    /// When a text cannot be read back, or the job is to stop.
    pub fn refused(&self) -> Result<Option<Refused>, Error> {
        if let Acceptance::Scored(_) = self.acceptance {
            return Ok(None);
        }
        let Decision { texts, frequencies, templates, .. } = self;
        let pairs = self.refused.pairs_of(texts);
        let material = Material { texts, frequencies, templates };
        let order = by_neighbourhood(&pairs);
        let measured = verify_in_order(&pairs, &order, material, Least::Score(0.0))?;
        let near = |(place, texts): (usize, Verified)| Near::of(&pairs[place], Some(texts.into()));
        let measured: Vec<Near> = measured.into_iter().map(near).collect();
        Ok(Some(Refused::of(&self.refused, measured, &self.apart)))
    }

    /// Takes up pairs that its [judges](Decision::judge) accepted, ascending.
    pub fn take_up(&mut self, judged: &[Accepted]) {
        self.judged = judged.to_vec();
    }

    /// Judges pairs that no shared key made candidates: one judge for each thread.
    pub fn judge(&self) -> PairJudge<'_, Bounded<'_, T>> {
        let Decision { acceptance, corpus, texts, frequencies, templates, made, .. } = self;
        PairJudge::new(*acceptance, corpus, Material { texts, frequencies, templates }, made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_about_as_many_documents() {
        // The earlier a root, the more documents it has.
        let root = |d: u32, documents: u32| {
            let group = u64::from(d / 64);
            (group * group * 64 / u64::from(documents)) as u32
        };
        for documents in [1, 64, 200_000, 3_000_000] {
            let roots = || (0..documents).map(|d| root(d, documents));
            let even = EvenParts::of(documents as usize, roots());
            let (mut of_parts, mut of_stretches) = (vec![0; PARTS], vec![0; even.parts.len()]);
            for root in roots() {
                of_parts[usize::from(even.part(root))] += 1;
                of_stretches[even.stretch(root)] += 1;
            }
            assert!((1..documents).all(|root| even.part(root - 1) <= even.part(root)));
            // A stretch is in one part.
            let most = documents / PARTS as u32 + 1 + of_stretches.into_iter().max().unwrap_or(0);
            assert!(of_parts.iter().all(|&count| count <= most), "{of_parts:?}");
        }
    }
}
