//! The decision on two texts.

use std::ffi::c_char;

use nearsift::feature::frequency::DocumentFrequencies;
use nearsift::search::{ComparedDocument, Decision};
use nearsift::verify::Verifier;

use crate::failure::{guard, nearsift_status};
use crate::method::nearsift_method;
use crate::pointer::{out, text};

/// Whether two texts are near duplicates, with every figure that this rests on. Measures are from 0 to 1.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct nearsift_comparison {
    /// Whether the two are near duplicates: the same text, or as near as the method asks.
    pub is_near: bool,
    /// Whether the two have one text but for letter case, width, script and punctuation.
    pub is_same_text: bool,
    /// Whether both have a fingerprint or sketch. Where not, only the same text counts, and `score`, `distance`, `equal_values` and
    /// `sketch_score` are 0.
    pub has_score: bool,
    /// The score that decides: of the texts, of the sketches or of the fingerprints, as the method has it.
    pub score: f64,
    /// The score of the texts.
    pub text_score: f64,
    /// The cosine of the angle between the texts' weighted features.
    pub cosine: f64,
    /// 2 x (the length of the longest common subsequence of letters) / (both lengths).
    pub alignment: f64,
    /// The weighted Jaccard similarity of the texts' features.
    pub jaccard: f64,
    /// 1 when one text contains the other.
    pub containment: f64,
    /// The different numbers that both texts have in the same place.
    pub agree: u32,
    /// The pairs of different numbers that stand in the same place.
    pub differ: u32,
    /// The Hamming distance of the fingerprints or of the sketches' SimHash halves, in bits.
    pub distance: u32,
    /// How many of the sketches' 64 minwise values are equal; 0 of fingerprints.
    pub equal_values: u32,
    /// The score of the sketches; 0 of fingerprints.
    pub sketch_score: f64,
}

/// Decides on two texts as the program `nearsift compare` does. `method` may be NULL for the default.
///
/// Linear in the texts' bytes to make their values; the alignment takes up to the product of the texts' characters / 64 steps, of
/// texts beyond 4,096 characters each at most some 64 steps a character.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_compare(
    a: *const c_char,
    a_length: usize,
    b: *const c_char,
    b_length: usize,
    method: *const nearsift_method,
    comparison: *mut nearsift_comparison,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (a, b, method, comparison) = unsafe {
            (
                text(a, a_length, "a")?,
                text(b, b_length, "b")?,
                nearsift_method::given(method)?,
                out(comparison, "comparison")?,
            )
        };
        let bytes = a.len().max(b.len());
        let decision = method.fingerprinters.with(bytes, |fingerprinter| {
            let frequencies = DocumentFrequencies::shipped();
            let mut of =
                |text| ComparedDocument::of_text(text, &method.method, frequencies, fingerprinter);
            let (a, b) = (of(a)?, of(b)?);
            Ok(Decision::of(&method.method, &a, &b, &mut Verifier::new()))
        })?;
        comparison.write(decision.into());
        Ok(())
    })
}

impl From<Decision> for nearsift_comparison {
    fn from(decision: Decision) -> nearsift_comparison {
        let texts = decision.texts;
        nearsift_comparison {
            is_near: decision.is_near,
            is_same_text: decision.is_same_text,
            has_score: decision.score.is_some(),
            score: decision.score.unwrap_or(0.0),
            text_score: texts.score.into(),
            cosine: texts.cosine.into(),
            alignment: texts.alignment.into(),
            jaccard: texts.jaccard.into(),
            containment: texts.containment.into(),
            agree: texts.facts.agree,
            differ: texts.facts.differ,
            distance: decision.distance.unwrap_or(0),
            equal_values: decision.equal_values.unwrap_or(0),
            sketch_score: decision.sketch_score.unwrap_or(0.0),
        }
    }
}
