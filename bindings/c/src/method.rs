//! How near duplicates are found.

use std::sync::LazyLock;

use nearsift::fingerprint::Bits;
use nearsift::recipe::Recipe;
use nearsift::search::{Acceptance, Method};
use nearsift::sketch::Score;

use crate::failure::{Failure, guard, nearsift_status};
use crate::fingerprinters::Fingerprinters;
use crate::pointer::{out, reference, take_back};
use crate::recipe::nearsift_recipe;

/// How near duplicates are found, and from which score or distance on texts are near. It never changes. All threads may use one
/// at the same time.
///
/// Functions that take a method take NULL for the default: sketches find the pairs that may be near, and the texts decide, from a
/// score of 0.63 on.
pub struct nearsift_method {
    pub(crate) method: Method,
    pub(crate) fingerprinters: Fingerprinters,
}

impl nearsift_method {
    fn new(method: Method) -> nearsift_method {
        let fingerprinters = Fingerprinters::new(method.recipe().clone());
        nearsift_method { method, fingerprinters }
    }

    /// The method of the caller's, or the default for NULL.
    ///
    /// # Safety
    /// The contract of this crate.
    pub(crate) unsafe fn given<'a>(
        method: *const nearsift_method,
    ) -> Result<&'a nearsift_method, Failure> {
        static USUAL: LazyLock<nearsift_method> =
            LazyLock::new(|| nearsift_method::new(Method::default()));
        if method.is_null() {
            return Ok(&USUAL);
        }
        // SAFETY: the contract is the same.
        unsafe { reference(method, "method") }
    }
}

/// Sketches find the pairs that may be near, and the texts decide: they are near when they score at least `min_score`, from 0 to 1.
///
/// `recipe` may be NULL for `sketch`. On failure `*method` is NULL. Free it with `nearsift_method_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_method_texts(
    recipe: *const nearsift_recipe,
    min_score: f64,
    method: *mut *mut nearsift_method,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let method = unsafe { out(method, "method") }?.cleared();
        // SAFETY: the same.
        let recipe = unsafe { recipe_of_sketches(recipe) }?;
        let acceptance = Acceptance::Verified(checked_score(min_score)?);
        method.hand_over(nearsift_method::new(Method::Sketch { recipe, acceptance }));
        Ok(())
    })
}

/// Sketches decide alone: texts are near when their sketches score at least `min_score`, from 0 to 1; 0.46 is usual.
///
/// `recipe` may be NULL for `sketch`. On failure `*method` is NULL. Free it with `nearsift_method_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_method_sketches(
    recipe: *const nearsift_recipe,
    min_score: f64,
    method: *mut *mut nearsift_method,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let method = unsafe { out(method, "method") }?.cleared();
        // SAFETY: the same.
        let recipe = unsafe { recipe_of_sketches(recipe) }?;
        let acceptance = Acceptance::Scored(Score::at_least(checked_score(min_score)?));
        method.hand_over(nearsift_method::new(Method::Sketch { recipe, acceptance }));
        Ok(())
    })
}

/// Fingerprints decide: texts are near when theirs are within `max_distance` bits, inclusive.
///
/// `recipe` makes fingerprints, of a text. On failure `*method` is NULL. Free it with `nearsift_method_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_method_fingerprints(
    recipe: *const nearsift_recipe,
    max_distance: u32,
    method: *mut *mut nearsift_method,
) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        let method = unsafe { out(method, "method") }?.cleared();
        // SAFETY: the same.
        let recipe = unsafe { reference(recipe, "recipe") }?.recipe().clone();
        if recipe.is_sketch() {
            return Err(wrong(
                &recipe,
                "makes sketches, and a recipe of fingerprints was expected",
            ));
        }
        check_tables(&recipe)?;
        check_distance(max_distance, recipe.bits())?;
        method.hand_over(nearsift_method::new(Method::Simhash { recipe, max_distance }));
        Ok(())
    })
}

/// Frees a method. NULL is fine. Indexes that were made with it keep what they need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nearsift_method_free(method: *mut nearsift_method) -> nearsift_status {
    guard(|| {
        // SAFETY: the contract of this crate.
        drop(unsafe { take_back(method) });
        Ok(())
    })
}

/// The recipe of sketches that is given, or `sketch`.
///
/// # Safety
/// The contract of this crate.
unsafe fn recipe_of_sketches(recipe: *const nearsift_recipe) -> Result<Recipe, Failure> {
    if recipe.is_null() {
        return Ok(Recipe::parse("sketch")?);
    }
    // SAFETY: the contract is the same.
    let recipe = unsafe { reference(recipe, "recipe") }?.recipe();
    if !recipe.is_sketch() {
        return Err(wrong(recipe, "makes fingerprints, and a recipe of sketches was expected"));
    }
    check_tables(recipe)?;
    Ok(recipe.clone())
}

/// Refuses a recipe that needs more than texts.
fn check_tables(recipe: &Recipe) -> Result<(), Failure> {
    if recipe.needs_corpus() {
        // A corpus that is at hand is counted.
        return Ok(());
    }
    recipe.fingerprinter()?;
    Ok(())
}

fn wrong(recipe: &Recipe, what: &str) -> Failure {
    Failure::new(nearsift_status::WrongRecipe, format_args!("recipe '{recipe}' {what}"))
}

pub(crate) fn check_distance(max_distance: u32, bits: Bits) -> Result<(), Failure> {
    if max_distance <= bits.count() {
        return Ok(());
    }
    Err(Failure::argument(format_args!(
        "'max_distance' is {max_distance}: expected at most the {} bits of a fingerprint",
        bits.count()
    )))
}

pub(crate) fn checked_score(score: f64) -> Result<f64, Failure> {
    if (0.0..=1.0).contains(&score) {
        return Ok(score);
    }
    Err(Failure::argument(format_args!("'min_score' is {score}: expected a number from 0 to 1")))
}
