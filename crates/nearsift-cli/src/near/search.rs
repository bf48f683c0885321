//! From a corpus of sketches to its near-duplicate pairs.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use nearsift::cluster::{Clusters, Components};
use nearsift::dedup::{Accepted, Clustering, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::sketch::Score;
use nearsift::sketch::join::{Pair, Plan, SketchJoin, Work};

use nearsift::verify::{Facts, Verified};
use rayon::prelude::*;
use serde::Serialize;

use super::Rule;
use super::crowds::{Crowds, best};
use super::order::by_neighbourhood;
use super::runs::{Sorted, Sorter, Stored};
use super::templates::{Templates, slots};
use super::texts::{PARTS, TextSource, Wanted};
use super::verify::{Least, Made, Material, judge, verify_in_order};
use crate::commands::dedup::collect::{Id, Ids};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::state::State;
use crate::state::file::Taken;

/// Two different texts that are near duplicates; 52 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// The earlier document.
    pub a: u32,
    /// The later document.
    pub b: u32,
    /// How alike their sketches are.
    sketches: Score,
    /// Whether the two have the same letters and digits.
    pub same_text: bool,
    /// What the texts measure, when they were compared.
    pub texts: Option<TextMeasures>,
}

/// What the texts of a pair measure, where they were compared: of single precision, because there may be
/// hundreds of millions of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TextMeasures {
    #[serde(skip)]
    pub score: f32,
    pub cosine: f32,
    pub alignment: f32,
    pub jaccard: f32,
    pub containment: f32,
    /// The score before what differs in their facts was taken from it.
    #[serde(skip)]
    pub form: f32,
    /// In how many values they agree and differ.
    #[serde(flatten, skip_serializing_if = "are_no_evidence")]
    pub facts: Facts,
}

/// Whether values say nothing about two texts: none of them differ.
fn are_no_evidence(facts: &Facts) -> bool {
    facts.differ == 0
}

impl TextMeasures {
    /// See [`Verified::with_facts`].
    fn with_facts(self, facts: Facts, letters: usize) -> TextMeasures {
        let cost = facts.cost(letters) as f32;
        TextMeasures { score: (self.form - cost).clamp(0.0, self.score), facts, ..self }
    }
}

impl From<Verified> for TextMeasures {
    fn from(texts: Verified) -> TextMeasures {
        TextMeasures {
            score: texts.score as f32,
            cosine: texts.cosine as f32,
            alignment: texts.alignment as f32,
            jaccard: texts.jaccard as f32,
            containment: texts.containment as f32,
            form: texts.form as f32,
            facts: texts.facts,
        }
    }
}

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
    pub fn of(pair: &Near, ids: &'a Ids, corpus: &SketchCorpus) -> PairLine<'a> {
        let both = corpus.sketch(pair.a).zip(corpus.sketch(pair.b));
        PairLine {
            a: ids.get(pair.a),
            b: ids.get(pair.b),
            score: pair.score(),
            distance: both.map(|(a, b)| a.distance(&b)),
            sketch_score: both.map(|(a, b)| a.score(&b).value()),
            texts: pair.texts,
        }
    }
}

impl Near {
    /// Two documents with the same letters and digits.
    fn of_same_text(a: u32, b: u32) -> Near {
        Near { a, b, sketches: Score::MAX, same_text: true, texts: None }
    }

    pub(super) fn of(pair: &Pair, texts: Option<TextMeasures>) -> Near {
        Near { a: pair.a, b: pair.b, sketches: pair.score, same_text: false, texts }
    }

    /// What decided: the score of the texts, else that of the sketches.
    pub fn score(&self) -> f32 {
        self.texts.map_or(self.sketches.value() as f32, |texts| texts.score)
    }

    /// The pair given more of its facts, with the letters of both texts.
    fn with_facts(self, facts: Option<(Facts, usize)>) -> Near {
        let texts = self.texts.map(|texts| match facts {
            Some((facts, letters)) => texts.with_facts(facts, letters),
            None => texts,
        });
        Near { texts, ..self }
    }

    /// In how many values the texts agree and differ.
    pub fn facts(&self) -> Facts {
        self.texts.map_or(Facts::default(), |texts| texts.facts)
    }

    /// Whether the two may have no more than a form in common: two of five values that stand at the same places
    /// differ, or more.
    fn is_of_one_form(&self) -> bool {
        let Facts { agree, differ, .. } = self.facts();
        differ >= 2 && 3 * differ >= 2 * agree
    }

    /// The pair as the clustering rules take it.
    pub(super) fn accepted(&self) -> Accepted {
        // The bits of numbers that are not negative are in the order of the numbers.
        Accepted { a: self.a, b: self.b, strength: self.score().to_bits() }
    }

    /// The pair in a file of the state.
    fn save(&self, content: &mut Vec<u8>) {
        content.extend_from_slice(&self.a.to_le_bytes());
        content.extend_from_slice(&self.b.to_le_bytes());
        content.extend_from_slice(&self.sketches.points().to_le_bytes());
        if let Some(texts) = self.texts {
            let TextMeasures { score, cosine, alignment, jaccard, containment, form, facts } =
                texts;
            for measure in [score, cosine, alignment, jaccard, containment, form] {
                content.extend_from_slice(&measure.to_le_bytes());
            }
            content.extend_from_slice(&facts.agree.to_le_bytes());
            content.extend_from_slice(&facts.differ.to_le_bytes());
            content.extend_from_slice(&facts.letters.to_le_bytes());
        }
    }

    /// A pair whose texts were compared, as [`Near::save`] wrote it.
    fn load(content: &mut Taken<'_>) -> Option<Near> {
        let mut near = Near::of(&read_candidate(content)?, None);
        near.texts = Some(TextMeasures {
            score: content.f32()?,
            cosine: content.f32()?,
            alignment: content.f32()?,
            jaccard: content.f32()?,
            containment: content.f32()?,
            form: content.f32()?,
            facts: Facts { agree: content.u32()?, differ: content.u32()?, letters: content.u32()? },
        });
        Some(near)
    }
}

impl Stored for Near {
    type Key = (u32, u32);
    const BYTES: usize = 46;

    fn key(&self) -> (u32, u32) {
        (self.a, self.b)
    }

    /// Without measures, these are none of a number.
    fn write(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        self.save(bytes);
        while bytes.len() < start + Near::BYTES {
            bytes.extend_from_slice(&f32::NAN.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Near> {
        let near = Near::load(&mut Taken(bytes))?;
        Some(Near { texts: near.texts.filter(|texts| !texts.score.is_nan()), ..near })
    }
}

/// A candidate among those of its component.
#[derive(Debug, Clone, Copy)]
struct OfComponent {
    root: u32,
    pair: Pair,
}

impl Stored for OfComponent {
    type Key = (u32, u32, u32);
    const BYTES: usize = 14;

    fn key(&self) -> (u32, u32, u32) {
        (self.root, self.pair.a, self.pair.b)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.root.to_le_bytes());
        Near::of(&self.pair, None).save(bytes);
    }

    fn read(bytes: &[u8]) -> Option<OfComponent> {
        let mut content = Taken(bytes);
        Some(OfComponent { root: content.u32()?, pair: read_candidate(&mut content)? })
    }
}

fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

fn read_candidate(content: &mut Taken<'_>) -> Option<Pair> {
    let (a, b) = (content.u32()?, content.u32()?);
    Some(Pair { a, b, score: Score::from_points(content.u16()?)? })
}

/// The near-duplicate pairs of a corpus, and how they were found.
pub struct Decision<'c, T> {
    /// In ascending order. Of documents with the same text or the same sketch, the first stands for all.
    pairs: Sorted<Near>,
    /// The same as the clustering rules take them; the strength is the bits of the score.
    pub accepted: Vec<Accepted>,
    places: Places,
    /// Pairs that a judge accepted while groups were made, ascending.
    judged: Vec<Accepted>,
    /// Pairs whose sketches scored high enough to be looked at.
    pub candidates: u64,
    /// Of documents with very many candidates, those that were not looked at.
    pub passed_over: u64,
    /// Pairs of one form that differ in their facts.
    pub apart: Apart,
    pub work: Work,
    pub plan: Plan,
    corpus: &'c SketchCorpus,
    rule: Rule,
    texts: T,
    frequencies: DocumentFrequencies,
    templates: Templates,
    /// Of documents that were compared after the candidates.
    made: Made,
}

/// Where the pairs of some earlier documents stand among all: what is searched there lies in few cache lines.
struct Places(Vec<usize>);

impl Places {
    /// Documents that are told together, as a power of two: 1/8 of a byte for each.
    const TOGETHER: u32 = 6;

    /// Of the earlier documents of pairs, which ascend, among so many.
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

/// Which pairs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that hold groups together: of equal sketches only the first is compared with others, and
    /// a document that is like many others is compared with the nearest of them, as many as the rule wants.
    Links(Clustering),
    /// Those of every two different texts.
    All,
}

/// What the search for candidates found.
pub struct Candidates {
    /// Ascending.
    pub pairs: Vec<Pair>,
    /// Of documents with very many candidates, those that are not among them.
    pub passed_over: u64,
    pub work: Work,
    pub plan: Plan,
}

impl Candidates {
    /// Finds the candidates.
    pub fn find(
        corpus: &SketchCorpus,
        join: &SketchJoin<'_>,
        extent: Extent,
        rule: Rule,
    ) -> Candidates {
        let ((pairs, passed_over), work) = match extent {
            Extent::Links(clustering) => links(corpus, join, rule, best(clustering)),
            Extent::All => {
                let (mut pairs, work) = corpus.all_candidates(join);
                pairs.retain(|pair| rule.looks_at(corpus, pair));
                ((pairs, 0), work)
            }
        };
        Candidates { pairs, passed_over, work, plan: join.plan() }
    }

    /// The name of their file in the state.
    const NAME: &str = "candidates";

    /// Takes up what an earlier run found.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn load(state: &State) -> Result<Option<Candidates>, Failure> {
        let content = state.read(Candidates::NAME)?;
        Ok(content.and_then(|content| Candidates::decode(&mut Taken(&content))))
    }

    /// Keeps them for a later run.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn save(&self, state: &State) -> Result<(), Failure> {
        let Work { comparisons, crowded_keys, crowded_sketches, passed_over } = self.work;
        let mut content = vec![u8::from(self.plan == Plan::Keys)];
        for number in [comparisons, crowded_keys, crowded_sketches, passed_over, self.passed_over] {
            content.extend_from_slice(&number.to_le_bytes());
        }
        content.extend_from_slice(&(self.pairs.len() as u64).to_le_bytes());
        let mut writer = state.begin(Candidates::NAME)?;
        for pair in &self.pairs {
            Near::of(pair, None).save(&mut content);
            if content.len() >= 1 << 20 {
                writer.write(&content)?;
                content.clear();
            }
        }
        writer.write(&content)?;
        writer.finish()
    }

    fn decode(content: &mut Taken<'_>) -> Option<Candidates> {
        let plan = if content.array()? == [1] { Plan::Keys } else { Plan::AllPairs };
        let work = Work {
            comparisons: content.u64()?,
            crowded_keys: content.u64()?,
            crowded_sketches: content.u64()?,
            passed_over: content.u64()?,
        };
        let passed_over = content.u64()?;
        let pairs = (0..content.u64()?).map(|_| read_candidate(content)).collect::<Option<_>>()?;
        Some(Candidates { pairs, passed_over, work, plan })
    }

    /// The documents in a candidate, ascending.
    fn documents(&self, corpus: &SketchCorpus) -> Vec<u32> {
        let mut is_in = vec![0u64; corpus.len().div_ceil(64)];
        for document in self.pairs.iter().flat_map(|pair| [pair.a, pair.b]) {
            is_in[document as usize / 64] |= 1 << (document % 64);
        }
        let is_in = |document: &u32| is_in[*document as usize / 64] >> (document % 64) & 1 == 1;
        (0..corpus.len() as u32).filter(is_in).collect()
    }
}

/// Where work is kept that the memory should not hold.
#[derive(Clone, Copy)]
pub struct Workspace<'a> {
    /// What a later run can take up.
    pub state: Option<&'a State>,
    /// For files without a name.
    pub folder: &'a Path,
}

/// Decides about candidates. `texts` is asked once for the texts of documents, ascending: of those in a
/// candidate, when the rule wants to see them. With a state, what was compared before is taken up, and
/// what is compared is kept.
///
/// # Errors
/// What `texts` returns, a text that cannot be read back, a disk that is full or refuses, or an interruption.
pub fn decide<'c, T: TextSource>(
    corpus: &'c SketchCorpus,
    candidates: Candidates,
    frequencies: DocumentFrequencies,
    rule: Rule,
    workspace: Workspace<'_>,
    texts: impl FnOnce(Wanted) -> Result<T, Failure>,
) -> Result<Decision<'c, T>, Failure> {
    let documents = match rule {
        Rule::Verified(_) => candidates.documents(corpus),
        Rule::Scored(_) => Vec::new(),
    };
    let Candidates { pairs, passed_over, work, plan } = candidates;
    let count = pairs.len() as u64;
    let mut near = Sorter::new(workspace.folder);
    let texts = match rule {
        Rule::Scored(_) => {
            pairs.iter().try_for_each(|pair| near.push(Near::of(pair, None)))?;
            texts(documents.into())?
        }
        Rule::Verified(min_score) => {
            let (ordered, mut components) = by_component(corpus.len(), pairs, workspace.folder)?;
            // Pairs come in the order of the roots, and so are texts wanted.
            let parts = EvenParts::of(corpus.len(), documents.iter().map(|&d| components.root(d)));
            let wanted = Wanted::in_parts(documents, |&d| parts.part(components.root(d)));
            drop(components);
            let texts = texts(wanted)?;
            let progress = Progress::pairs("verifying", count);
            let mut rest = ordered.iter().map(|of| of.map(|of| of.pair));
            let mut next = Part::take(0, &mut rest, workspace.state)?;
            let mut done: Option<Compared> = None;
            while let Some(part) = next.take() {
                let number = part.number;
                progress.at(count.min((number * PART) as u64));
                let mut compared = Ok(None);
                // While the workers compare, the pairs before are kept and those after are made ready.
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| {
                        compared = part.compare(&texts, &frequencies, min_score).map(Some);
                    });
                    done.take().map_or(Ok(()), |done| done.keep(workspace.state, &mut near))?;
                    interrupt::check()?;
                    next = Part::take(number + 1, &mut rest, workspace.state)?;
                    Ok::<(), Failure>(())
                })?;
                done = compared?;
            }
            done.map_or(Ok(()), |done| done.keep(workspace.state, &mut near))?;
            progress.at(count);
            texts
        }
    };
    let mut pairs = near.finish()?;
    let mut accepted = accepted_of(&pairs)?;
    let (mut templates, mut apart) = (Templates::default(), Apart::default());
    if let Rule::Verified(min_score) = rule {
        templates = Templates::among(&accepted, &texts)?;
        (pairs, apart) = by_facts(&pairs, &templates, &texts, min_score, workspace.folder)?;
        accepted = accepted_of(&pairs)?;
    }
    Ok(Decision {
        pairs,
        places: Places::of_earlier(&accepted, corpus.len()),
        accepted,
        judged: Vec::new(),
        candidates: count,
        passed_over,
        work,
        plan,
        corpus,
        rule,
        apart,
        texts,
        frequencies,
        templates,
        made: Made::default(),
    })
}

/// Pairs as the clustering rules take them.
fn accepted_of(pairs: &Sorted<Near>) -> Result<Vec<Accepted>, Failure> {
    let mut accepted = Vec::with_capacity(usize::try_from(pairs.len()).unwrap_or(0));
    for pair in pairs.iter() {
        accepted.push(pair?.accepted());
    }
    Ok(accepted)
}

/// Pairs of one form that differ in their facts: they are no near duplicates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Apart {
    pub pairs: u64,
    /// The pair with the most values that differ; of equal ones the first.
    pub example: Option<Near>,
}

impl Apart {
    fn add(&mut self, pair: Near) {
        self.pairs += 1;
        if self.example.is_none_or(|example| example.facts().differ < pair.facts().differ) {
            self.example = Some(pair);
        }
    }
}

/// The pairs of one form that score `min_score` or more with what is known of their facts.
fn by_facts(
    pairs: &Sorted<Near>,
    templates: &Templates,
    texts: &impl TextSource,
    min_score: f64,
    folder: &Path,
) -> Result<(Sorted<Near>, Apart), Failure> {
    let kept = slots();
    let (mut near, mut apart) = (Sorter::new(folder), Apart::default());
    let mut rest = pairs.iter();
    loop {
        let part: Vec<Near> = rest.by_ref().take(PART).collect::<Result<_, Failure>>()?;
        if part.is_empty() {
            return Ok((near.finish()?, apart));
        }
        interrupt::check()?;
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

/// Takes from the scores of compared pairs what [`decide`] takes for the values in which documents of one form
/// differ: the neighbours of a document are those of its pairs whose form scores `min_form` or more.
///
/// # Errors
/// When a text cannot be read back, or an interruption.
pub fn judge_by_neighbours(
    measured: &mut [(Pair, Verified)],
    texts: &impl TextSource,
    min_form: f64,
) -> Result<Templates, Failure> {
    let neighbours = measured.iter().filter(|(_, texts)| texts.form >= min_form);
    let neighbours: Vec<Accepted> =
        neighbours.map(|(pair, texts)| Near::of(pair, Some((*texts).into())).accepted()).collect();
    let templates = Templates::among(&neighbours, texts)?;
    let documents: Vec<(u32, u32)> = measured.iter().map(|(pair, _)| (pair.a, pair.b)).collect();
    let facts = templates.facts_of_all(&documents, texts, &slots())?;
    for ((_, texts), facts) in measured.iter_mut().zip(facts) {
        if let Some((facts, letters)) = facts {
            *texts = texts.with_facts(facts, letters);
        }
    }
    Ok(templates)
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
}

/// The name of a part's file in the state.
fn name_of_part(number: usize) -> String {
    format!("{number:08}.pairs")
}

impl Part {
    /// The next candidates, if there are any.
    fn take(
        number: usize,
        rest: &mut impl Iterator<Item = Result<Pair, Failure>>,
        state: Option<&State>,
    ) -> Result<Option<Part>, Failure> {
        let pairs: Vec<Pair> = rest.take(PART).collect::<Result<_, Failure>>()?;
        if pairs.is_empty() {
            return Ok(None);
        }
        let content = match state {
            Some(state) => state.read(&name_of_part(number))?,
            None => None,
        };
        let known = content.map(|content| {
            let mut content = Taken(&content);
            std::iter::from_fn(|| Near::load(&mut content)).collect()
        });
        let order = if known.is_none() { by_neighbourhood(&pairs) } else { Vec::new() };
        Ok(Some(Part { number, pairs, order, known }))
    }

    fn compare(
        self,
        texts: &impl TextSource,
        frequencies: &DocumentFrequencies,
        min_score: f64,
    ) -> Result<Compared, Failure> {
        let Part { number, pairs, order, known } = self;
        if let Some(near) = known {
            return Ok(Compared { number, is_known: true, near });
        }
        let templates = &Templates::default();
        let material = Material { texts, frequencies, templates };
        let measured = verify_in_order(&pairs, &order, material, Least::Form(min_score))?;
        let near = |(place, texts): (usize, Verified)| Near::of(&pairs[place], Some(texts.into()));
        let near = measured.into_iter().map(near).collect();
        Ok(Compared { number, is_known: false, near })
    }
}

impl Compared {
    fn keep(self, state: Option<&State>, near: &mut Sorter<Near>) -> Result<(), Failure> {
        if let Some(state) = state.filter(|_| !self.is_known) {
            let mut content = Vec::with_capacity(Near::BYTES * self.near.len());
            self.near.iter().for_each(|near| near.save(&mut content));
            state.write(&name_of_part(self.number), &content)?;
        }
        self.near.into_iter().try_for_each(|pair| near.push(pair))
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
    /// Of a corpus of so many documents, given the root of each that is wanted.
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
    folder: &Path,
) -> Result<(Sorted<OfComponent>, Components), Failure> {
    // Unlikely pairs would link almost all.
    let likely = Score::at_least(0.35);
    let mut components = Components::new(documents);
    let links = pairs.iter().filter(|pair| pair.score >= likely);
    links.for_each(|pair| components.link(pair.a, pair.b));
    let mut sorter = Sorter::new(folder);
    for pair in pairs {
        sorter.push(OfComponent { root: components.root(pair.a), pair })?;
    }
    Ok((sorter.finish()?, components))
}

/// The candidates in compact form, the best of each document, and how many there are beside these.
fn links(
    corpus: &SketchCorpus,
    join: &SketchJoin<'_>,
    rule: Rule,
    best: usize,
) -> ((Vec<Pair>, u64), Work) {
    /// Pairs that all threads look at together.
    const TOGETHER: usize = 1 << 16;
    let is_wanted = |pair: &Pair| !corpus.same_text(pair.a, pair.b) && rule.looks_at(corpus, pair);
    let mut crowds = Crowds::new(best);
    let mut found = Vec::with_capacity(TOGETHER);
    let mut push = |found: &mut Vec<Pair>| {
        let are_wanted: Vec<bool> = found.par_iter().with_min_len(1 << 10).map(is_wanted).collect();
        let pairs = found.drain(..).zip(are_wanted);
        pairs.filter(|(_, is_wanted)| *is_wanted).for_each(|(pair, _)| crowds.push(pair));
    };
    let (ControlFlow::Continue(()), work) = join.for_each_link(|pair| {
        found.push(pair);
        if found.len() == TOGETHER {
            push(&mut found);
        }
        ControlFlow::<Infallible>::Continue(())
    });
    push(&mut found);
    (crowds.finish(), work)
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

impl<T: TextSource> Decision<'_, T> {
    /// The groups with a pair whose texts may have no more than a form in common.
    ///
    /// # Errors
    /// When pairs that were kept aside cannot be read back.
    pub fn of_one_form(&self, clusters: &Clusters) -> Result<OfOneForm, Failure> {
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
    pub fn with_same_texts(&self, first: &[u32]) -> impl Iterator<Item = Result<Near, Failure>> {
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
    /// [`Extent::All`], and each two of the same text.
    ///
    /// 12 bytes a pair, and 36 for each that was found.
    ///
    /// # Errors
    /// When pairs that were kept aside cannot be read back.
    pub fn of_all_documents(&self, first: &[u32]) -> Result<impl Iterator<Item = Near>, Failure> {
        const SAME: u32 = u32::MAX;
        let pairs: Vec<Near> = self.pairs.iter().collect::<Result<_, Failure>>()?;
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
        let among = |accepted: &[Accepted]| {
            let place = accepted.binary_search_by_key(&pair, |near| (near.a, near.b)).ok()?;
            Some(f32::from_bits(accepted[place].strength))
        };
        among(&self.accepted[self.places.of(pair.0)]).or_else(|| among(&self.judged))
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
    ) -> Result<FactsOfPairs, Failure> {
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
            if wanted.next_if_eq(&place).is_some() && !are_no_evidence(&pair.facts()) {
                found.push((place, pair.facts()));
            }
        }
        Ok(FactsOfPairs(found))
    }

    /// Takes up pairs that its [judges](Decision::judge) accepted, ascending.
    pub fn take_up(&mut self, judged: &[Accepted]) {
        self.judged = judged.to_vec();
    }

    /// How alike two documents are that are in no accepted pair, when they are near duplicates all the same: what is
    /// asked of pairs that no shared key made a candidate, on any number of threads.
    ///
    /// A text that cannot be read back is like no other.
    pub fn judge(&self) -> impl FnMut(u32, u32) -> Option<u32> {
        judge(self.rule, self.corpus, self.material(), &self.made)
    }

    fn material(&self) -> Material<'_, T> {
        Material { texts: &self.texts, frequencies: &self.frequencies, templates: &self.templates }
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
