//! From a corpus of sketches to its near-duplicate pairs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use nearsift::cluster::Components;
use nearsift::dedup::{Accepted, SketchCorpus};
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::sketch::Score;
use nearsift::sketch::join::{Pair, Plan, SketchJoin, Work};

use nearsift::verify::Verified;
use rayon::prelude::*;
use serde::Serialize;

use super::Rule;
use super::crowds::{BEST, Crowds};
use super::texts::TextSource;
use super::verify::{Examiner, verify};
use crate::commands::dedup::collect::Ids;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::state::State;
use crate::state::file::Taken;

/// Two different texts that are near duplicates; 36 bytes.
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
}

impl From<Verified> for TextMeasures {
    fn from(texts: Verified) -> TextMeasures {
        TextMeasures {
            score: texts.score as f32,
            cosine: texts.cosine as f32,
            alignment: texts.alignment as f32,
            jaccard: texts.jaccard as f32,
            containment: texts.containment as f32,
        }
    }
}

/// A pair as a JSON line.
#[derive(Debug, Serialize)]
pub struct PairLine<'a> {
    a: &'a str,
    b: &'a str,
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

    fn of(pair: &Pair, texts: Option<TextMeasures>) -> Near {
        Near { a: pair.a, b: pair.b, sketches: pair.score, same_text: false, texts }
    }

    /// What decided: the score of the texts, else that of the sketches.
    pub fn score(&self) -> f32 {
        self.texts.map_or(self.sketches.value() as f32, |texts| texts.score)
    }

    /// The pair as the clustering rules take it.
    pub fn accepted(&self) -> Accepted {
        let strength = (f64::from(self.score()) * f64::from(u32::MAX)) as u32;
        Accepted { a: self.a, b: self.b, strength }
    }

    /// The pair in a file of the state.
    fn write(&self, content: &mut Vec<u8>) {
        content.extend_from_slice(&self.a.to_le_bytes());
        content.extend_from_slice(&self.b.to_le_bytes());
        content.extend_from_slice(&self.sketches.points().to_le_bytes());
        if let Some(TextMeasures { score, cosine, alignment, jaccard, containment }) = self.texts {
            for measure in [score, cosine, alignment, jaccard, containment] {
                content.extend_from_slice(&measure.to_le_bytes());
            }
        }
    }

    /// A pair whose texts were compared, as [`Near::write`] wrote it.
    fn read(content: &mut Taken<'_>) -> Option<Near> {
        let mut near = Near::of(&read_candidate(content)?, None);
        near.texts = Some(TextMeasures {
            score: content.f32()?,
            cosine: content.f32()?,
            alignment: content.f32()?,
            jaccard: content.f32()?,
            containment: content.f32()?,
        });
        Some(near)
    }
}

fn read_candidate(content: &mut Taken<'_>) -> Option<Pair> {
    let (a, b) = (content.u32()?, content.u32()?);
    Some(Pair { a, b, score: Score::from_points(content.u16()?)? })
}

/// The near-duplicate pairs of a corpus, and how they were found.
pub struct Decision<'c, T> {
    /// In ascending order. Of documents with the same text or the same sketch, the first stands for all.
    pub pairs: Vec<Near>,
    /// Pairs whose sketches scored high enough to be looked at.
    pub candidates: u64,
    /// Of documents with very many candidates, those that were not looked at.
    pub passed_over: u64,
    pub work: Work,
    pub plan: Plan,
    corpus: &'c SketchCorpus,
    rule: Rule,
    texts: T,
    frequencies: DocumentFrequencies,
}

/// Which pairs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Those that hold groups together: of equal sketches only the first is compared with others, and
    /// a document that is like very many others is compared with the nearest of them.
    Links,
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
            Extent::Links => links(corpus, join, rule),
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
        for pair in &self.pairs {
            Near::of(pair, None).write(&mut content);
        }
        state.write(Candidates::NAME, &content)
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
    fn documents(&self) -> Vec<u32> {
        let mut documents: Vec<u32> = Vec::with_capacity(2 * self.pairs.len());
        documents.extend(self.pairs.iter().flat_map(|pair| [pair.a, pair.b]));
        documents.par_sort_unstable();
        documents.dedup();
        documents.shrink_to_fit();
        documents
    }
}

/// Decides about candidates. `texts` is asked once for the texts of documents, ascending: of those in a
/// candidate, when the rule wants to see them. With a state, what was compared before is taken up, and
/// what is compared is kept.
///
/// # Errors
/// What `texts` returns, a text that cannot be read back, or an interruption.
pub fn decide<'c, T: TextSource>(
    corpus: &'c SketchCorpus,
    candidates: Candidates,
    frequencies: DocumentFrequencies,
    rule: Rule,
    state: Option<&State>,
    texts: impl FnOnce(Vec<u32>) -> Result<T, Failure>,
) -> Result<Decision<'c, T>, Failure> {
    let compared = match rule {
        Rule::Verified(_) => candidates.documents(),
        Rule::Scored(_) => Vec::new(),
    };
    let texts = texts(compared)?;
    let Candidates { pairs, passed_over, work, plan } = candidates;
    let count = pairs.len() as u64;
    let pairs = match rule {
        Rule::Scored(_) => pairs.iter().map(|pair| Near::of(pair, None)).collect(),
        Rule::Verified(min_score) => {
            let order = by_component(corpus.len(), &pairs);
            let mut near = Vec::new();
            let progress = Progress::pairs("verifying", count);
            for (part, places) in order.chunks(PART).enumerate() {
                interrupt::check()?;
                progress.at((part * PART) as u64);
                near.extend(compare_part(
                    part,
                    places,
                    &pairs,
                    &texts,
                    &frequencies,
                    min_score,
                    state,
                )?);
            }
            drop((order, pairs));
            near.par_sort_unstable_by_key(|near| (near.a, near.b));
            near
        }
    };
    Ok(Decision {
        pairs,
        candidates: count,
        passed_over,
        work,
        plan,
        corpus,
        rule,
        texts,
        frequencies,
    })
}

/// Candidates that are compared between two looks at whether to go on; with a state, they are kept
/// together.
const PART: usize = 1 << 17;

/// Compares some of the candidates, or takes up what an earlier run found.
fn compare_part(
    part: usize,
    places: &[u32],
    pairs: &[Pair],
    texts: &impl TextSource,
    frequencies: &DocumentFrequencies,
    min_score: f64,
    state: Option<&State>,
) -> Result<Vec<Near>, Failure> {
    let name = format!("{part:08}.pairs");
    if let Some(state) = state
        && let Some(content) = state.read(&name)?
    {
        let mut content = Taken(&content);
        return Ok(std::iter::from_fn(|| Near::read(&mut content)).collect());
    }
    let pairs: Vec<Pair> = places.iter().map(|&place| pairs[place as usize]).collect();
    let measured = verify(&pairs, texts, frequencies, min_score)?;
    let near = |(place, texts): (usize, Verified)| Near::of(&pairs[place], Some(texts.into()));
    let near: Vec<Near> = measured.into_iter().map(near).collect();
    if let Some(state) = state {
        let mut content = Vec::with_capacity(30 * near.len());
        near.iter().for_each(|near| near.write(&mut content));
        state.write(&name, &content)?;
    }
    Ok(near)
}

/// The places of the pairs, those of one connected component of likely ones after the other: each
/// document is then wanted in one stretch, and what was made of its text is still at hand.
fn by_component(documents: usize, pairs: &[Pair]) -> Vec<u32> {
    // Unlikely pairs would link almost all.
    let likely = Score::at_least(0.35);
    let mut components = Components::new(documents);
    let links = pairs.iter().filter(|pair| pair.score >= likely);
    links.for_each(|pair| components.link(pair.a, pair.b));
    let mut places: Vec<u64> = (0u64..)
        .zip(pairs)
        .map(|(place, pair)| u64::from(components.root(pair.a)) << 32 | place)
        .collect();
    places.par_sort_unstable();
    places.into_iter().map(|place| place as u32).collect()
}

/// The candidates in compact form, the best of each document, and how many there are beside these.
fn links(corpus: &SketchCorpus, join: &SketchJoin<'_>, rule: Rule) -> ((Vec<Pair>, u64), Work) {
    let mut crowds = Crowds::new(BEST);
    let (ControlFlow::Continue(()), work) = join.for_each_link(|pair| {
        if !corpus.same_text(pair.a, pair.b) && rule.looks_at(corpus, &pair) {
            crowds.push(pair);
        }
        ControlFlow::<Infallible>::Continue(())
    });
    let score = |a, b| match corpus.sketch(a).zip(corpus.sketch(b)) {
        Some((a, b)) => a.score(&b),
        None => Score::at_least(0.0),
    };
    (crowds.finish(score), work)
}

impl<T: TextSource> Decision<'_, T> {
    /// The pairs, and each document that repeats a text with the first that has it: in ascending order,
    /// given the first document of each text.
    pub fn with_same_texts(&self, first: &[u32]) -> impl Iterator<Item = Near> {
        let repeats = (0u32..).zip(first).filter(|(document, first)| document != *first);
        let mut same: Vec<(u32, u32)> = repeats.map(|(b, &a)| (a, b)).collect();
        same.sort_unstable();
        let mut same = same.into_iter().map(|(a, b)| Near::of_same_text(a, b)).peekable();
        let mut pairs = self.pairs.iter().copied().peekable();
        std::iter::from_fn(move || match (pairs.peek(), same.peek()) {
            (Some(pair), Some(text)) if (text.a, text.b) < (pair.a, pair.b) => same.next(),
            (None, _) => same.next(),
            _ => pairs.next(),
        })
    }

    /// The pairs of all documents, in ascending order, given the first document of each text: of
    /// [`Extent::All`], and each two of the same text.
    ///
    /// 12 bytes a pair.
    pub fn of_all_documents(&self, first: &[u32]) -> impl Iterator<Item = Near> {
        const SAME: u32 = u32::MAX;
        let mut copies: HashMap<u32, Vec<u32>> = HashMap::new();
        for (document, &first) in (0u32..).zip(first) {
            copies.entry(first).or_default().push(document);
        }
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for (place, near) in (0u32..).zip(&self.pairs) {
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
        all.into_iter().map(|(a, b, place)| match self.pairs.get(place as usize) {
            Some(near) => Near { a, b, ..*near },
            None => Near::of_same_text(a, b),
        })
    }

    /// What decided about two documents, given the first document of each text; `None` when they were
    /// not accepted as a pair of their own.
    pub fn score_of(&self, a: u32, b: u32, first: &[u32]) -> Option<f32> {
        let (a, b) = (first[a as usize], first[b as usize]);
        let pair = (a.min(b), a.max(b));
        let place = self.pairs.binary_search_by_key(&pair, |near| (near.a, near.b)).ok()?;
        Some(self.pairs[place].score())
    }

    /// Whether two documents that are in no accepted pair are near duplicates all the same: what is
    /// asked of pairs that no shared key made a candidate.
    ///
    /// A text that cannot be read back is like no other.
    pub fn judge(&self) -> impl FnMut(u32, u32) -> bool {
        let min_score = match self.rule {
            Rule::Verified(min_score) => Some(min_score),
            Rule::Scored(_) => None,
        };
        let mut examiner =
            min_score.map(|least| Examiner::new(&self.texts, &self.frequencies, least));
        move |a, b| {
            self.rule.looks_at_documents(self.corpus, a, b)
                && examiner
                    .as_mut()
                    .is_none_or(|e| e.compare(a, b).is_ok_and(|measured| measured.is_some()))
        }
    }
}
