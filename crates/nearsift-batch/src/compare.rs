//! Two documents by every measure, with their differences.

use nearsift::compare::{Likeness, Side, differences};
use nearsift::feature::FeatureSet;
use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::recipe::{Fingerprinter, Outcome};
use nearsift::search::{ComparedDocument, Decision, Method, MethodValue, TextMeasures};
use nearsift::text::normalise::normalise;
use nearsift::verify::{Profile, Verifier};
use serde::Serialize;

use crate::dedup::RunOfSketches;
use crate::documents::Text;
use crate::error::Error;
use crate::fingerprint::Value;

pub use crate::report::PageLanguage;

/// Two documents by every measure.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The recipe in full.
    pub recipe: String,
    /// The first document.
    pub a: ComparedSide,
    /// The second document.
    pub b: ComparedSide,
    /// What the fingerprints or sketches say.
    #[serde(flatten)]
    pub judged: Judged,
    /// The table that says how rare each feature is: `shipped`, or `file:` and the digest of a run's.
    pub rarity: String,
    /// What the texts measure.
    pub verified: Verification,
    /// What the recipe's features measure.
    #[serde(flatten)]
    pub likeness: Likeness,
    /// Whether the two have one text but for letter case, width, script and punctuation.
    pub same_text: bool,
    /// Whether the two are near duplicates.
    pub near_duplicates: bool,
    /// Both texts in pieces, in reading order.
    pub differences: Vec<Marked>,
    /// Whether the pieces end before the texts do.
    pub differences_truncated: bool,
}

/// One of two documents that were compared.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ComparedSide {
    /// Its file or id.
    pub file: String,
    /// Its fingerprint or sketch.
    #[serde(flatten)]
    pub value: Value,
    /// Why it has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The length of its normalised text, in characters.
    pub characters: u32,
}

/// What two fingerprints or sketches say; null when a document has none.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Judged {
    /// Bits that differ.
    pub distance: Option<u32>,
    /// Their share, from 0 to 1.
    pub ratio: Option<f64>,
    /// What sketches say beside.
    #[serde(flatten)]
    pub sketches: Option<SketchMeasures>,
    /// What decides, from 0 to 1.
    pub score: Option<f64>,
    /// The threshold.
    #[serde(flatten)]
    pub wanted: Wanted,
}

/// What two sketches measure.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct SketchMeasures {
    /// How many of the 64 minwise values are equal.
    pub equal_values: Option<u32>,
    /// From 0 to 1.
    pub sketch_score: Option<f64>,
}

/// What near duplicates have at most or at least, inclusive.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// The largest Hamming distance, in bits.
    MaxDistance(u32),
    /// The smallest score, from 0 to 1.
    MinScore(f64),
}

/// What two texts measure, in the precision of `pairs.jsonl`.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// From 0 to 1.
    pub score: f32,
    /// Each measure.
    #[serde(flatten)]
    pub texts: TextMeasures,
}

impl Verification {
    fn of(texts: TextMeasures) -> Verification {
        Verification { score: texts.score, texts }
    }
}

/// A piece of one of the texts, or of both.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Marked {
    /// `both`, `a` or `b`.
    pub side: &'static str,
    /// The text.
    pub text: String,
    /// Whether the difference counts as none: see [`nearsift::compare::Piece`].
    #[serde(skip_serializing_if = "is_counted")]
    pub is_equal: bool,
    /// The number of the passage that it is part of, where the other text has it elsewhere: see [`nearsift::compare::Piece`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<u32>,
}

/// Differences that count are the usual ones, and carry no mark.
fn is_counted(is_equal: &bool) -> bool {
    !is_equal
}

/// Two documents to compare.
#[derive(Debug, Clone)]
pub struct PairOfTexts {
    /// What they are called: files or ids.
    pub names: [String; 2],
    /// Their texts.
    pub texts: [Text<'static>; 2],
}

impl PairOfTexts {
    /// All measures, and the differences; with the rarities of a run where one is given.
    ///
    /// # Errors
    /// A text of 4 GiB or more.
    pub fn compare(
        &self,
        method: &Method,
        like: Option<&RunOfSketches>,
    ) -> Result<Comparison, Error> {
        let shipped = DocumentFrequencies::shipped();
        let (frequencies, rarity) = match like {
            Some(run) => (&run.frequencies, format!("file:{:016x}", run.frequencies.digest())),
            None => (shipped, shipped.name()),
        };
        let recipe = method.recipe();
        let mut fingerprinter = recipe.fingerprinter()?;
        let [one_a, one_b] = &self.texts;
        let a = Looked::at(&self.names[0], one_a, method, frequencies, &mut fingerprinter)?;
        let b = Looked::at(&self.names[1], one_b, method, frequencies, &mut fingerprinter)?;
        let decision = Decision::of(method, &a.compared, &b.compared, &mut Verifier::new());
        let marked = differences(&one_a.text, &one_b.text);
        Ok(Comparison {
            recipe: recipe.to_string(),
            rarity,
            verified: Verification::of(decision.texts),
            likeness: Likeness::of(&a.features, &b.features),
            a: a.document,
            b: b.document,
            same_text: decision.is_same_text,
            near_duplicates: decision.is_near,
            judged: Judged::of(method, &decision),
            differences: marked
                .pieces
                .iter()
                .map(|piece| Marked {
                    side: match piece.side {
                        Side::Both => "both",
                        Side::OnlyA => "a",
                        Side::OnlyB => "b",
                    },
                    text: piece.text.to_owned(),
                    is_equal: piece.side != Side::Both && piece.is_equal,
                    moved: piece.moved,
                })
                .collect(),
            differences_truncated: marked.truncated,
        })
    }
}

/// All that is compared of one document.
struct Looked {
    document: ComparedSide,
    compared: ComparedDocument,
    features: FeatureSet,
}

impl Looked {
    /// # Errors
    /// A text of 4 GiB or more.
    fn at(
        name: &str,
        one: &Text<'_>,
        method: &Method,
        frequencies: &DocumentFrequencies,
        fingerprinter: &mut Fingerprinter<'_>,
    ) -> Result<Looked, Error> {
        let made = match method {
            Method::Simhash { .. } => match one.fingerprint(fingerprinter) {
                Outcome::Fingerprint(fingerprint) => Ok(MethodValue::Fingerprint(fingerprint)),
                Outcome::None(reason) => Err(reason),
            },
            Method::Sketch { .. } => {
                one.sketch(fingerprinter).map(|made| MethodValue::Sketch(made.sketch))
            }
        };
        let (text_key, characters) = (one.key(fingerprinter), fingerprinter.length());
        let value = match (&made, method) {
            (Ok(MethodValue::Fingerprint(fingerprint)), _) => {
                Value::Fingerprint(Some(fingerprint.to_string()))
            }
            (Ok(MethodValue::Sketch(sketch)), _) => Value::Sketch(Some(sketch.to_string())),
            (Err(_), Method::Simhash { .. }) => Value::Fingerprint(None),
            (Err(_), Method::Sketch { .. }) => Value::Sketch(None),
        };
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let too_long = |e| Error::invalid(format!("{name}: {e}"));
        let profile = Profile::of(&normalise(&one.text), idf).map_err(too_long)?;
        Ok(Looked {
            document: ComparedSide {
                file: name.to_owned(),
                value,
                reason: made.err().map(|reason| reason.to_string()),
                characters,
            },
            compared: ComparedDocument { value: made, text_key, profile },
            features: fingerprinter.features(&one.text).clone(),
        })
    }
}

impl Comparison {
    /// Why a run has no pair of the two.
    pub fn no_candidate(&self, min_score: Option<f64>) -> String {
        match (self.judged.score, min_score) {
            (Some(score), Some(least)) if score < least => {
                format!("they score {score:.4}, and near is at least {least}")
            }
            (Some(_), Some(_)) => {
                "their texts are near, and the search did not make them candidates: their sketches share no key, or are too far apart".to_owned()
            }
            _ => "they are too far apart".to_owned(),
        }
    }
}

impl Judged {
    fn of(method: &Method, decision: &Decision) -> Judged {
        let Decision { distance, ratio, equal_values, sketch_score, score, .. } = *decision;
        let (sketches, wanted) = match method {
            Method::Simhash { max_distance, .. } => (None, Wanted::MaxDistance(*max_distance)),
            Method::Sketch { acceptance, .. } => (
                Some(SketchMeasures { equal_values, sketch_score }),
                Wanted::MinScore(acceptance.min_score()),
            ),
        };
        Judged { distance, ratio, sketches, score, wanted }
    }
}
