//! Recipes: everything that decides a fingerprint, under one name.

use std::ffi::c_char;

use nearsift::recipe::Recipe;
use nearsift::recipe::compat::{Compat, InputKind};

use crate::failure::{Failure, guard, nearsift_status};
use crate::fingerprinters::Fingerprinters;
use crate::pointer::{optional, out, reference, take_back, text};
use crate::string::nearsift_string;

/// A recipe: what makes a fingerprint or a sketch of a text. It never changes. All threads may use one at the same time.
pub struct nearsift_recipe {
    pub(crate) fingerprinters: Fingerprinters,
    /// Of a compatibility recipe.
    pub(crate) compat: Option<Compat>,
}

/// What a recipe makes a fingerprint of.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum nearsift_input {
    /// A text alone.
    Text = 0,
    /// A text, which the library cuts into words, or the caller's words.
    Words = 1,
    /// A text, whose keywords the library finds, or the caller's words with weights.
    Keywords = 2,
    /// The caller's hashes alone.
    Hashes = 3,
}

impl nearsift_recipe {
    pub(crate) fn new(recipe: Recipe) -> nearsift_recipe {
        let parameters = recipe.parameters();
        let parameters = parameters.iter().map(|(name, value)| (*name, value.as_str()));
        // Only the name of a compatibility recipe is one.
        let compat = Compat::parse(recipe.name(), parameters).ok();
        nearsift_recipe { fingerprinters: Fingerprinters::new(recipe), compat }
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        self.fingerprinters.recipe()
    }
}

/// Reads the written form of a recipe: `sketch`, `simhash64`, `keywords64:top=30`, `text-dedup:ngram=5`, ... docs/understand/recipes.md has them
/// all.
///
/// Fails with `NEARSIFT_STATUS_RECIPE`; the message says what was expected. On failure `*recipe` is NULL. Free it with
/// `nearsift_recipe_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_parse(
    written: *const c_char,
    written_length: usize,
    recipe: *mut *mut nearsift_recipe,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let recipe = unsafe { out(recipe, "recipe") }?.cleared();
        // SAFETY: the same.
        let written = unsafe { text(written, written_length, "written") }?;
        recipe.hand_over(nearsift_recipe::new(Recipe::parse(written)?));
        Ok(())
    })
}

/// The default recipe: `sketch`. On failure `*recipe` is NULL. Free it with `nearsift_recipe_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_default(
    recipe: *mut *mut nearsift_recipe,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let recipe = unsafe { out(recipe, "recipe") }?.cleared();
        recipe.hand_over(nearsift_recipe::new(Recipe::parse("sketch")?));
        Ok(())
    })
}

/// Frees a recipe. NULL is fine. Methods and indexes that were made with it keep what they need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_free(recipe: *mut nearsift_recipe) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        drop(unsafe { take_back(recipe) });
        Ok(())
    })
}

/// The canonical written form, with every parameter that matters. Free it with `nearsift_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_written(
    recipe: *const nearsift_recipe,
    written: *mut nearsift_string,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, written) = unsafe { (reference(recipe, "recipe")?, out(written, "written")?) };
        written.write(nearsift_string::new(&recipe.recipe().to_string()));
        Ok(())
    })
}

/// What identifies the recipe with its dictionaries: fingerprints of two digests must not be compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_digest(
    recipe: *const nearsift_recipe,
    digest: *mut u64,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, digest) = unsafe { (reference(recipe, "recipe")?, out(digest, "digest")?) };
        digest.write(recipe.recipe().digest());
        Ok(())
    })
}

/// The width of its fingerprints in bits: 32, 64, 128 or 256. Of a recipe of sketches, that of their SimHash half.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_bits(
    recipe: *const nearsift_recipe,
    bits: *mut u32,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, bits) = unsafe { (reference(recipe, "recipe")?, out(bits, "bits")?) };
        bits.write(recipe.recipe().bits().count());
        Ok(())
    })
}

/// Whether it makes sketches, by `nearsift_sketch_text`, and no fingerprints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_is_sketch(
    recipe: *const nearsift_recipe,
    is_sketch: *mut bool,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, is_sketch) =
            unsafe { (reference(recipe, "recipe")?, out(is_sketch, "is_sketch")?) };
        is_sketch.write(recipe.recipe().is_sketch());
        Ok(())
    })
}

/// What it makes a fingerprint of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_input(
    recipe: *const nearsift_recipe,
    input: *mut nearsift_input,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let (recipe, input) = unsafe { (reference(recipe, "recipe")?, out(input, "input")?) };
        input.write(match recipe.compat.map(|compat| compat.input_kind()) {
            None | Some(InputKind::Text) => nearsift_input::Text,
            Some(InputKind::Words) => nearsift_input::Words,
            Some(InputKind::Keywords) => nearsift_input::Keywords,
            Some(InputKind::Hashes) => nearsift_input::Hashes,
        });
        Ok(())
    })
}

/// The number of recipes that `nearsift_recipe_get` lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_count(count: *mut usize) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        unsafe { out(count, "count") }?.write(Recipe::all().len());
        Ok(())
    })
}

/// A recipe of the list of all, by its place from 0, with its default parameters; and a line about it, unless `about` is NULL.
///
/// Free both. On failure `*recipe` is NULL and `*about` is not written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_recipe_get(
    place: usize,
    recipe: *mut *mut nearsift_recipe,
    about: *mut nearsift_string,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let recipe = unsafe { out(recipe, "recipe") }?.cleared();
        // SAFETY: the same.
        let about = unsafe { optional(about, "about") }?;
        let all = Recipe::all();
        let Some((found, line)) = all.get(place) else {
            return Err(Failure::argument(format_args!(
                "there is no recipe {place}: expected a place below {}",
                all.len()
            )));
        };
        recipe.hand_over(nearsift_recipe::new(found.clone()));
        if let Some(about) = about {
            about.write(nearsift_string::new(line));
        }
        Ok(())
    })
}
