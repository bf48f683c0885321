//! The decision on two documents.

use super::{Acceptance, Method, TextMeasures};
use crate::compare::score_of_distance;
use crate::feature::frequency::DocumentFrequencies;
use crate::fingerprint::Fingerprint;
use crate::recipe::{Fingerprinter, NoFingerprint, Outcome, RecipeError};
use crate::sketch::{BITS, Sketch};
use crate::text::normalise::normalise;
use crate::text::words::TextTooLong;
use crate::verify::{Profile, Verifier};

/// What a method makes of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodValue {
    /// The fingerprint of [`Method::Simhash`].
    Fingerprint(Fingerprint),
    /// The sketch of [`Method::Sketch`].
    Sketch(Sketch),
}

/// One of two documents that are compared.
#[derive(Debug, Clone)]
pub struct ComparedDocument {
    /// Its fingerprint or sketch, or why it has none.
    pub value: Result<MethodValue, NoFingerprint>,
    /// The key of its normalised text, `None` for a text without letters, digits and signs.
    pub text_key: Option<u128>,
    /// Its text, as the exact measures take it.
    pub profile: Profile,
}

impl ComparedDocument {
    /// A document that is a plain text. The fingerprinter is that of the method's recipe.
    ///
    /// # Errors
    /// [`TextTooLong`]: the text has 4 GiB or more.
    pub fn of_text(
        text: &str,
        method: &Method,
        frequencies: &DocumentFrequencies,
        fingerprinter: &mut Fingerprinter<'_>,
    ) -> Result<ComparedDocument, TextTooLong> {
        let value = match method {
            Method::Simhash { .. } => match fingerprinter.fingerprint(text) {
                Outcome::Fingerprint(fingerprint) => Ok(MethodValue::Fingerprint(fingerprint)),
                Outcome::None(reason) => Err(reason),
            },
            Method::Sketch { .. } => {
                fingerprinter.sketch(text).map(|made| MethodValue::Sketch(made.sketch))
            }
        };
        let text_key = fingerprinter.text_key();
        let idf = |hash| u32::from(frequencies.idf_sixteenths(hash));
        let profile = Profile::of(&normalise(text), idf)?;
        Ok(ComparedDocument { value, text_key, profile })
    }
}

/// Whether two documents are near duplicates, and every figure that this rests on.
///
/// What compares fingerprints or sketches is `None` where one of the documents has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The Hamming distance of the fingerprints or of the sketches' SimHash halves, in bits.
    pub distance: Option<u32>,
    /// The share of the bits that differ, from 0 to 1.
    pub ratio: Option<f64>,
    /// How many of the sketches' 64 minwise values are equal; `None` of fingerprints.
    pub equal_values: Option<u32>,
    /// The score of the sketches, from 0 to 1; `None` of fingerprints.
    pub sketch_score: Option<f64>,
    /// The exact measures of the two texts.
    pub texts: TextMeasures,
    /// The score that decides, from 0 to 1: of the texts, of the sketches or of the fingerprints, as the method has it.
    pub score: Option<f64>,
    /// Whether the two have one text but for letter case, width, script and punctuation.
    pub is_same_text: bool,
    /// Whether the two are near duplicates: the same text, or within the method's distance or score.
    pub is_near: bool,
}

impl Decision {
    /// The decision of a method on two documents whose values and profiles are its own.
    ///
    /// # Complexity
    /// That of [`Verifier::compare`].
    pub fn of(
        method: &Method,
        a: &ComparedDocument,
        b: &ComparedDocument,
        verifier: &mut Verifier,
    ) -> Decision {
        let texts = TextMeasures::from(verifier.compare(&a.profile, &b.profile));
        let is_same_text = a.text_key.is_some() && a.text_key == b.text_key;
        let none = Decision {
            distance: None,
            ratio: None,
            equal_values: None,
            sketch_score: None,
            texts,
            score: None,
            is_same_text,
            is_near: is_same_text,
        };
        match (method, a.value, b.value) {
            (
                Method::Simhash { recipe, max_distance },
                Ok(MethodValue::Fingerprint(a)),
                Ok(MethodValue::Fingerprint(b)),
            ) => {
                let (bits, distance) = (recipe.bits().count(), a.distance(&b));
                Decision {
                    distance: Some(distance),
                    ratio: Some(f64::from(distance) / f64::from(bits)),
                    score: Some(score_of_distance(distance, bits)),
                    is_near: is_same_text || distance <= *max_distance,
                    ..none
                }
            }
            (
                Method::Sketch { acceptance, .. },
                Ok(MethodValue::Sketch(a)),
                Ok(MethodValue::Sketch(b)),
            ) => {
                let (distance, sketch_score) = (a.distance(&b), a.score(&b).value());
                let score = match acceptance {
                    Acceptance::Verified(_) => same_digits(texts.score),
                    Acceptance::Scored(_) => sketch_score,
                };
                Decision {
                    distance: Some(distance),
                    ratio: Some(f64::from(distance) / f64::from(BITS)),
                    equal_values: Some(a.equal_values(&b)),
                    sketch_score: Some(sketch_score),
                    score: Some(score),
                    is_near: is_same_text || score >= acceptance.min_score(),
                    ..none
                }
            }
            // Without a fingerprint or a sketch only the same text counts.
            _ => none,
        }
    }
}

/// The number of the same decimal digits in double precision: 0.8 for the single 0.8, and not 0.800000011920929.
pub fn same_digits(single: f32) -> f64 {
    single.to_string().parse().unwrap_or(f64::from(single))
}

/// Why two texts cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// The recipe lacks a table.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A text is too long.
    #[error(transparent)]
    TooLong(#[from] TextTooLong),
}

/// Decides whether two texts are near duplicates, as the program `nearsift compare` does for two files of plain text: with
/// the shipped table of how rare each feature is.
///
/// ```
/// use nearsift::search::{Method, decide};
/// let found = decide(&Method::default(), "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。",
///                    "今天下午，市图书馆举办了一场儿童绘本阅读活动。")?;
/// assert!(found.is_near && !found.is_same_text);
/// assert!(found.score >= Some(0.63));
/// # Ok::<(), nearsift::search::DecisionError>(())
/// ```
///
/// # Errors
/// A recipe that lacks a table, or a text of 4 GiB or more.
///
/// # Complexity
/// Linear in the texts' bytes to make their values, and that of [`Verifier::compare`].
pub fn decide(method: &Method, a: &str, b: &str) -> Result<Decision, DecisionError> {
    let mut fingerprinter = method.recipe().fingerprinter()?;
    let frequencies = DocumentFrequencies::shipped();
    let mut of = |text| ComparedDocument::of_text(text, method, frequencies, &mut fingerprinter);
    let (a, b) = (of(a)?, of(b)?);
    Ok(Decision::of(method, &a, &b, &mut Verifier::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;
    use crate::sketch::Score;

    const A: &str = "今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。";
    const B: &str = "今天下午，市图书馆举办了一场儿童绘本阅读活动。";
    const OTHER: &str = "本报讯：昨天的大雨使两条地铁线路停运了三个小时。";

    #[test]
    fn methods_decide_by_their_own_figures() {
        let recipe = |name| Recipe::parse(name).expect("a recipe");
        let simhash = |max_distance| Method::Simhash { recipe: recipe("simhash64"), max_distance };
        let sketch = |acceptance| Method::Sketch { recipe: recipe("sketch"), acceptance };
        let check = |method: &Method, (a, b): (&str, &str), [is_near, is_same]: [bool; 2]| {
            let found = decide(method, a, b).expect("a decision");
            assert_eq!(
                [found.is_near, found.is_same_text],
                [is_near, is_same],
                "{method:?} {a} {b}"
            );
            assert_eq!(found, decide(method, b, a).expect("a decision"));
            found
        };
        let distance = check(&simhash(64), (A, B), [true, false]).distance.expect("a distance");
        check(&simhash(distance), (A, B), [true, false]);
        check(&simhash(distance - 1), (A, B), [false, false]);
        let verified = check(&sketch(Acceptance::default()), (A, B), [true, false]);
        check(&sketch(Acceptance::Verified(1.0)), (A, B), [false, false]);
        assert_eq!(verified.score.map(|score| score as f32), Some(verified.texts.score));
        let scored =
            check(&sketch(Acceptance::Scored(Score::at_least(0.0))), (A, OTHER), [true, false]);
        assert_eq!(scored.score, scored.sketch_score);
        check(&sketch(Acceptance::Scored(Score::MAX)), (A, OTHER), [false, false]);
        for method in [simhash(3), Method::default()] {
            check(&method, (A, OTHER), [false, false]);
            // The same text is near whatever the method says, also where there is too little for a value.
            let same = check(&method, ("你好", "你好。"), [true, true]);
            assert_eq!((same.distance, same.score), (None, None));
            check(&method, ("你好", "再见"), [false, false]);
            check(&method, ("", ""), [false, false]);
        }
    }

    #[test]
    fn a_recipe_without_its_table_is_refused() {
        let recipe = Recipe::parse("keywords64:idf=corpus").expect("a recipe");
        let refused = decide(&Method::Simhash { recipe, max_distance: 3 }, A, B);
        assert!(matches!(refused, Err(DecisionError::Recipe(RecipeError::Missing { .. }))));
    }
}
