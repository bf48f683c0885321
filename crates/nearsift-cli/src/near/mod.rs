//! What counts as near, from the command line, and how sketches find it.

mod chunks;
mod crowds;
mod order;
mod recent;
mod runs;
mod search;
mod templates;
mod texts;
mod verify;

use nearsift::dedup::{Clustering, SketchCorpus};
use nearsift::join::Threads;
use nearsift::recipe::Recipe;
use nearsift::sketch::join::{Pair, Settings};
use nearsift::sketch::{self, Score};
use nearsift::verify::MIN_SCORE;

pub use runs::{Sorted, Sorter, Stored};
pub use search::{
    Candidates, Decision, Extent, Near, OfOneForm, PairLine, Workspace, decide, judge_by_neighbours,
};
pub use templates::Templates;
pub use texts::{Cut, IN_MEMORY, TextSource, Texts, Wanted, read_at};
pub use verify::{Material, verify};

use crate::args::{Matching, Method, RecipeArgs, Verify};
use crate::commands::max_distance;
use crate::failure::Failure;

/// How near duplicates are found.
#[derive(Debug, Clone)]
pub enum Way {
    /// SimHash fingerprints within a Hamming distance.
    Simhash { recipe: Recipe, max_distance: u32 },
    /// Dual sketches that score high enough, checked against the texts or not.
    Sketch { recipe: Recipe, rule: Rule },
}

impl Way {
    /// How pairs become groups, unless it is said.
    pub fn clustering(&self) -> Clustering {
        match self {
            Way::Simhash { recipe, max_distance } => {
                clustering_within(*max_distance, recipe.bits().count())
            }
            Way::Sketch { .. } => Clustering::Majority,
        }
    }
}

/// How fingerprints within a distance become groups, unless it is said: components, which lose nothing, up to an eighth of
/// the bits; beyond, chance links and texts of one form join them into chains, and majority link. docs/QUALITY.md has the figures.
pub fn clustering_within(max_distance: u32, bits: u32) -> Clustering {
    match 8 * max_distance <= bits {
        true => Clustering::Components,
        false => Clustering::Majority,
    }
}

/// Which pairs of sketched documents are near duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Those whose texts, compared exactly, score at least this.
    Verified(f64),
    /// Those whose sketches are.
    Scored(Score),
}

/// Pairs of sketches with less than this are not worth a look at the texts: up to so many documents.
/// Chance pairs grow with the square of the documents and thin out tenfold with every few hundredths of
/// the score, while of near duplicates almost none score so low: in large corpora a higher bound keeps
/// the work for each document what it is. docs/SCALE.md has the figures.
const CANDIDATE: [(usize, f64); 3] = [(1 << 18, 0.2), (1 << 22, 0.25), (usize::MAX, 0.28)];

/// The least of longer texts in any corpus: they hardly ever have less and score [`CLOSE`] or more.
const LONG_CANDIDATE: f64 = 0.24;

/// See [`LONG_CANDIDATE`].
const CLOSE: f64 = 0.6;

/// The least score of near duplicates where sketches decide alone, unless another is asked: the best mean F1 over the
/// development sets, of which docs/QUALITY.md has the curve. A store keeps [`sketch::MIN_SCORE`], which its schema records.
const SKETCHES_ALONE: f64 = 0.46;

impl Rule {
    /// The least score of a near duplicate, from 0 to 1.
    pub fn min_score(self) -> f64 {
        match self {
            Rule::Verified(score) => score,
            Rule::Scored(score) => score.value(),
        }
    }

    /// Whether a pair of documents whose sketches score this is worth a look at the texts.
    pub fn looks_at(self, corpus: &SketchCorpus, pair: &Pair) -> bool {
        let is_near_enough = match self {
            Rule::Verified(min_score) if min_score >= CLOSE => {
                pair.score >= Score::at_least(LONG_CANDIDATE)
                    || corpus.is_short(pair.a)
                    || corpus.is_short(pair.b)
            }
            _ => true,
        };
        is_near_enough && pair.score >= self.candidate(corpus.len())
    }

    /// The least score of sketches that are near where there is no text to look at.
    pub fn sketch_score(self) -> Score {
        match self {
            Rule::Verified(_) => Score::at_least(sketch::MIN_SCORE),
            Rule::Scored(score) => score,
        }
    }

    /// The least score of a pair of sketches that is looked at among so many documents, however short
    /// the texts.
    pub fn candidate(self, documents: usize) -> Score {
        let of_size = CANDIDATE.iter().find(|(most, _)| documents <= *most);
        match (self, of_size) {
            (Rule::Verified(_), Some((_, least))) => Score::at_least(*least),
            (Rule::Verified(_), None) => Score::at_least(0.0),
            (Rule::Scored(score), _) => score,
        }
    }
}

/// Two documents and how alike their sketches are, if both have one.
pub fn pair_of(corpus: &SketchCorpus, a: u32, b: u32) -> Option<Pair> {
    let (x, y) = corpus.sketch(a).zip(corpus.sketch(b))?;
    Some(Pair { a, b, score: x.score(&y) })
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rule::Verified(score) => write!(f, "verified score at least {score}"),
            Rule::Scored(score) => write!(f, "sketch score at least {}", score.value()),
        }
    }
}

/// How candidates are searched for among so many documents.
pub fn join_settings(rule: Rule, documents: usize, memory_bytes: Option<u64>) -> Settings {
    let least = rule.candidate(documents);
    Settings { threads: Threads::Current, memory_bytes, ..Settings::new(least) }
}

/// The way that the options ask for: a largest distance, a width or a recipe of fingerprints means
/// SimHash, and nothing means sketches.
///
/// # Errors
/// An unknown recipe, options that contradict each other, or a distance beyond the width.
pub fn way(
    recipe: &RecipeArgs,
    matching: &Matching,
    verify: Option<Verify>,
) -> Result<Way, Failure> {
    let written = recipe.recipe.as_deref();
    let is_sketch = |written: &str| written == "sketch" || written.starts_with("sketch:");
    let method = matching.method.unwrap_or(
        if matching.max_distance.is_some()
            || recipe.bits.is_some()
            || written.is_some_and(|written| !is_sketch(written))
        {
            Method::Simhash
        } else {
            Method::Sketch
        },
    );
    let contradiction = |option: &str| {
        Err(Failure::new(format!(
            "{option} is of --method simhash, and --method sketch was asked: leave one of them out"
        )))
    };
    match method {
        Method::Simhash => {
            if verify.is_some() {
                return Err(Failure::new(
                    "--verify is of --method sketch, and SimHash was asked by --method, --max-distance, --bits or --recipe: leave it out",
                ));
            }
            if matching.preset.is_some() {
                return Err(Failure::new(
                    "--preset is for --method sketch, and SimHash was chosen by --method, --max-distance, --bits or --recipe: use --max-distance instead",
                ));
            }
            if let Some(written) = written.filter(|written| is_sketch(written)) {
                return Err(Failure::new(format!(
                    "--recipe {written} makes sketches, and SimHash was asked by --method, --max-distance or --bits: leave one of them out"
                )));
            }
            let recipe = crate::recipes::recipe(recipe, "simhash64")?;
            let max_distance = max_distance(matching, &recipe)?;
            Ok(Way::Simhash { recipe, max_distance })
        }
        Method::Sketch if matching.max_distance.is_some() => contradiction("--max-distance"),
        Method::Sketch if recipe.bits.is_some() => contradiction("--bits"),
        Method::Sketch if written.is_some_and(|written| !is_sketch(written)) => {
            contradiction(&format!("--recipe {}", written.unwrap_or_default()))
        }
        Method::Sketch => {
            let recipe = crate::recipes::recipe(recipe, "sketch")?;
            let rule = match verify.unwrap_or(Verify::Exact) {
                Verify::Exact => Rule::Verified(matching.min_score().unwrap_or(MIN_SCORE)),
                Verify::Off if matching.preset.is_some() => {
                    return Err(Failure::new(
                        "--preset sets the score of compared texts, and --verify off compares none: leave one of them out",
                    ));
                }
                Verify::Off => {
                    Rule::Scored(Score::at_least(matching.min_score.unwrap_or(SKETCHES_ALONE)))
                }
            };
            Ok(Way::Sketch { recipe, rule })
        }
    }
}
