//! Fingerprinters of a recipe that keep their memory from call to call, one for each thread that calls at a time.

use std::sync::{Mutex, PoisonError};

use nearsift::recipe::{Fingerprinter, Recipe};
use self_cell::self_cell;

use crate::failure::Failure;

self_cell! {
    /// A fingerprinter with the recipe that it borrows.
    struct OwnFingerprinter {
        owner: Recipe,
        #[not_covariant]
        dependent: Fingerprinter,
    }
}

/// The memory of a fingerprinter grows with its longest text, and is not kept after a longer one than this, in bytes.
const LARGE: usize = 1 << 20;

/// Fingerprinters that are kept while nobody uses them.
const MOST_IDLE: usize = 64;

/// The fingerprinters of a recipe.
pub(crate) struct Fingerprinters {
    recipe: Recipe,
    idle: Mutex<Vec<OwnFingerprinter>>,
}

impl Fingerprinters {
    pub(crate) fn new(recipe: Recipe) -> Fingerprinters {
        Fingerprinters { recipe, idle: Mutex::default() }
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Does something with a fingerprinter, for texts of at most that number of bytes.
    ///
    /// # Errors
    /// The recipe lacks a table, or what `work` returns.
    pub(crate) fn with<R>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut Fingerprinter<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut own = match kept {
            Some(own) => own,
            None => OwnFingerprinter::try_new(self.recipe.clone(), Recipe::fingerprinter)?,
        };
        let result = own.with_dependent_mut(|_, fingerprinter| work(fingerprinter));
        let mut idle = idle();
        if bytes <= LARGE && idle.len() < MOST_IDLE {
            idle.push(own);
        }
        result
    }
}
