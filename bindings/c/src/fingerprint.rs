//! Fingerprints and sketches: made of texts, written, read and compared.

use std::ffi::c_char;

use nearsift::fingerprint::{Bits, Fingerprint};
use nearsift::recipe::compat::{Compat, Input, InputKind};
use nearsift::recipe::{NoFingerprint, Outcome};
use nearsift::sketch::{Sketch, WORDS};

use crate::failure::{Failure, guard, nearsift_status};
use crate::pointer::{Out, optional, out, reference, slice, text, texts};
use crate::recipe::nearsift_recipe;
use crate::string::{nearsift_str, nearsift_string};

/// A SimHash fingerprint.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nearsift_fingerprint {
    /// Its width in bits: 32, 64, 128 or 256.
    pub bits: u32,
    /// Its bits, the lowest 64 first; those beyond the width are 0.
    pub words: [u64; 4],
}

/// A dual sketch of 64 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct nearsift_sketch {
    /// Four words of the SimHash half, the lowest bits first; four words of 16 minwise values each, of four bits.
    pub words: [u64; 8],
}

// The header has the number.
const _: () = assert!(WORDS == 8);

impl From<Fingerprint> for nearsift_fingerprint {
    fn from(fingerprint: Fingerprint) -> nearsift_fingerprint {
        let mut words = [0; 4];
        words[..fingerprint.words().len()].copy_from_slice(fingerprint.words());
        nearsift_fingerprint { bits: fingerprint.bits().count(), words }
    }
}

impl nearsift_fingerprint {
    pub(crate) fn checked(&self, what: &str) -> Result<Fingerprint, Failure> {
        Ok(Fingerprint::from_words(width(self.bits, what)?, &self.words))
    }
}

/// A width of fingerprints.
pub(crate) fn width(bits: u32, what: &str) -> Result<Bits, Failure> {
    Bits::from_count(bits).ok_or_else(|| {
        Failure::argument(format_args!("'{what}' has {bits} bits: expected 32, 64, 128 or 256"))
    })
}

/// Where a fingerprint goes, and the number of its features.
struct Wanted {
    fingerprint: Out<nearsift_fingerprint>,
    features: Option<Out<usize>>,
}

impl Wanted {
    fn write(self, fingerprint: Fingerprint, features: impl FnOnce() -> usize) {
        self.fingerprint.write(fingerprint.into());
        if let Some(out) = self.features {
            out.write(features());
        }
    }

    /// Of a text without a fingerprint.
    fn count(self, features: impl FnOnce() -> usize) {
        if let Some(out) = self.features {
            out.write(features());
        }
    }
}

/// Where the caller wants a fingerprint.
///
/// # Safety
/// The contract of this crate.
unsafe fn wanted(
    fingerprint: *mut nearsift_fingerprint,
    features: *mut usize,
) -> Result<Wanted, Failure> {
    // SAFETY: the contract is the same.
    let (fingerprint, features) =
        unsafe { (out(fingerprint, "fingerprint")?, optional(features, "features")?) };
    Ok(Wanted { fingerprint, features })
}

/// The fingerprint of a text, and the number of its features unless `features` is NULL.
///
/// `NEARSIFT_STATUS_NO_FINGERPRINT` when it has none: the message has the reason, `*features` is written, and `*fingerprint` only by a
/// compatibility recipe that takes texts, with the value that the imitated library gives, which means nothing. Recipes of words and
/// keywords cut the text with the library's dictionary. `NEARSIFT_STATUS_WRONG_RECIPE` when the recipe makes sketches or takes hashes.
///
/// Linear in the text's bytes. Counting features makes the text's features once more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_text(
    recipe: *const nearsift_recipe,
    text_data: *const c_char,
    text_length: usize,
    fingerprint: *mut nearsift_fingerprint,
    features: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, text, wanted) = unsafe {
            (
                reference(recipe, "recipe")?,
                text(text_data, text_length, "text")?,
                wanted(fingerprint, features)?,
            )
        };
        if recipe.recipe().is_sketch() {
            return Err(wrong(recipe, "makes sketches: use nearsift_sketch_text"));
        }
        let of_texts = recipe.compat.filter(|compat| compat.input_kind() == InputKind::Text);
        if of_texts.is_none() && recipe.compat.is_some_and(|c| c.input_kind() == InputKind::Hashes)
        {
            return Err(wrong(recipe, "takes hashes: use nearsift_fingerprint_hashes"));
        }
        recipe.fingerprinters.with(text.len(), |fingerprinter| {
            let outcome = fingerprinter.fingerprint(text);
            let reason = match outcome {
                Outcome::Fingerprint(_) => None,
                Outcome::None(reason) => Some(reason),
            };
            match (of_texts, outcome) {
                // It is too long for the imitated library, too.
                (_, Outcome::None(NoFingerprint::TooLong { .. })) => {}
                (Some(compat), _) => imitate(&compat, Input::Text(text), wanted)?,
                (None, Outcome::Fingerprint(found)) => {
                    wanted.write(found, || fingerprinter.features(text).len());
                }
                (None, Outcome::None(_)) => wanted.count(|| fingerprinter.features(text).len()),
            }
            reason.map_or(Ok(()), |reason| Err(reason.into()))
        })
    })
}

/// The fingerprint of words in order, by a compatibility recipe of words; and the number of its features unless `features` is NULL.
///
/// Without words the imitated library's value for nothing, which means nothing. `NEARSIFT_STATUS_WRONG_RECIPE` when the recipe takes
/// something else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_words(
    recipe: *const nearsift_recipe,
    words: *const nearsift_str,
    count: usize,
    fingerprint: *mut nearsift_fingerprint,
    features: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, words, wanted) = unsafe {
            (
                reference(recipe, "recipe")?,
                texts(words, count, "words")?,
                wanted(fingerprint, features)?,
            )
        };
        imitate(&compat(recipe, "words")?, Input::Words(&words), wanted)
    })
}

/// The fingerprint of keywords with their weights, in order of weight, by a compatibility recipe of keywords; and the number of its
/// features unless `features` is NULL. See `nearsift_fingerprint_words`.
///
/// `NEARSIFT_STATUS_INVALID_ARGUMENT` when a weight is not a finite number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_keywords(
    recipe: *const nearsift_recipe,
    words: *const nearsift_str,
    weights: *const f64,
    count: usize,
    fingerprint: *mut nearsift_fingerprint,
    features: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, words, weights, wanted) = unsafe {
            (
                reference(recipe, "recipe")?,
                texts(words, count, "words")?,
                slice(weights, count, "weights")?,
                wanted(fingerprint, features)?,
            )
        };
        if let Some(place) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(Failure::argument(format_args!(
                "'weights[{place}]' is {}: expected a finite number",
                weights[place]
            )));
        }
        let pairs: Vec<(&str, f64)> = words.into_iter().zip(weights.iter().copied()).collect();
        imitate(&compat(recipe, "keywords")?, Input::Keywords(&pairs), wanted)
    })
}

/// The fingerprint of hashes of features, by the recipe `seomoz`; and the number of its features unless `features` is NULL. See
/// `nearsift_fingerprint_words`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_hashes(
    recipe: *const nearsift_recipe,
    hashes: *const u64,
    count: usize,
    fingerprint: *mut nearsift_fingerprint,
    features: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, hashes, wanted) = unsafe {
            (
                reference(recipe, "recipe")?,
                slice(hashes, count, "hashes")?,
                wanted(fingerprint, features)?,
            )
        };
        imitate(&compat(recipe, "hashes")?, Input::Hashes(hashes), wanted)
    })
}

/// The sketch of a text, and the number of its features unless `features` is NULL.
///
/// `NEARSIFT_STATUS_NO_FINGERPRINT` when it has none: the message has the reason, and `*features` is written. `NEARSIFT_STATUS_WRONG_RECIPE` when the recipe
/// makes fingerprints. Linear in the text's bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_sketch_text(
    recipe: *const nearsift_recipe,
    text_data: *const c_char,
    text_length: usize,
    sketch: *mut nearsift_sketch,
    features: *mut usize,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, text, sketch, features) = unsafe {
            (
                reference(recipe, "recipe")?,
                text(text_data, text_length, "text")?,
                out(sketch, "sketch")?,
                optional(features, "features")?,
            )
        };
        if !recipe.recipe().is_sketch() {
            return Err(wrong(recipe, "makes fingerprints: use nearsift_fingerprint_text"));
        }
        recipe.fingerprinters.with(text.len(), |fingerprinter| {
            let made = fingerprinter.sketch(text);
            if let Some(features) = features {
                features.write(match made {
                    Ok(made) => made.features as usize,
                    Err(_) => fingerprinter.features(text).len(),
                });
            }
            sketch.write(nearsift_sketch { words: *made?.sketch.words() });
            Ok(())
        })
    })
}

/// The Hamming distance of two fingerprints of one width, in bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_distance(
    a: *const nearsift_fingerprint,
    b: *const nearsift_fingerprint,
    distance: *mut u32,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (a, b, distance) =
            unsafe { (reference(a, "a")?, reference(b, "b")?, out(distance, "distance")?) };
        let (a, b) = (a.checked("a")?, b.checked("b")?);
        if a.bits() != b.bits() {
            return Err(Failure::argument(format_args!(
                "a fingerprint of {} bits and one of {} cannot be compared: expected two of one recipe",
                a.bits().count(),
                b.bits().count()
            )));
        }
        distance.write(a.distance(&b));
        Ok(())
    })
}

/// How alike two sketches say that their texts are, from 0 to 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_sketch_score(
    a: *const nearsift_sketch,
    b: *const nearsift_sketch,
    score: *mut f64,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (a, b, score) =
            unsafe { (reference(a, "a")?, reference(b, "b")?, out(score, "score")?) };
        score.write(Sketch::from_words(a.words).score(&Sketch::from_words(b.words)).value());
        Ok(())
    })
}

/// A fingerprint in hex digits, the most significant first, bits / 4 of them. Free it with `nearsift_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_write(
    fingerprint: *const nearsift_fingerprint,
    hex: *mut nearsift_string,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (fingerprint, hex) =
            unsafe { (reference(fingerprint, "fingerprint")?, out(hex, "hex")?) };
        hex.write(nearsift_string::new(&fingerprint.checked("fingerprint")?.to_string()));
        Ok(())
    })
}

/// A fingerprint from 8, 16, 32 or 64 hex digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_fingerprint_read(
    hex: *const c_char,
    hex_length: usize,
    fingerprint: *mut nearsift_fingerprint,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (hex, fingerprint) =
            unsafe { (text(hex, hex_length, "hex")?, out(fingerprint, "fingerprint")?) };
        fingerprint.write(hex.parse::<Fingerprint>().map_err(Failure::argument)?.into());
        Ok(())
    })
}

/// A sketch in 128 hex digits, as the program `nearsift` prints it. Free it with `nearsift_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_sketch_write(
    sketch: *const nearsift_sketch,
    hex: *mut nearsift_string,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (sketch, hex) = unsafe { (reference(sketch, "sketch")?, out(hex, "hex")?) };
        hex.write(nearsift_string::new(&Sketch::from_words(sketch.words).to_string()));
        Ok(())
    })
}

/// A sketch from 128 hex digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_sketch_read(
    hex: *const c_char,
    hex_length: usize,
    sketch: *mut nearsift_sketch,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (hex, sketch) = unsafe { (text(hex, hex_length, "hex")?, out(sketch, "sketch")?) };
        let read = hex.parse::<Sketch>().map_err(Failure::argument)?;
        sketch.write(nearsift_sketch { words: *read.words() });
        Ok(())
    })
}

fn wrong(recipe: &nearsift_recipe, what: &str) -> Failure {
    let message = format_args!("recipe '{}' {what}", recipe.recipe());
    Failure::new(nearsift_status::WrongRecipe, message)
}

fn compat(recipe: &nearsift_recipe, given: &str) -> Result<Compat, Failure> {
    let takes_texts =
        || format!("takes texts, and {given} were given: use nearsift_fingerprint_text");
    recipe.compat.ok_or_else(|| wrong(recipe, &takes_texts()))
}

/// The value of an input as the imitated library gives it.
fn imitate(compat: &Compat, input: Input<'_>, wanted: Wanted) -> Result<(), Failure> {
    let value = compat
        .fingerprint(input)
        .map_err(|error| Failure::new(nearsift_status::WrongRecipe, error))?;
    wanted.write(value.fingerprint, || value.features);
    Ok(())
}
