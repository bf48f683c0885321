//! The memory of work on documents: bounded for all together by estimate before the work begins, kept for the next
//! document when it is little, given back when it is much, and shared by collections of one recipe.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nearsift::recipe::{Fingerprinter, Recipe};
use nearsift::text::normalise::normalise_into;
use nearsift_store::{RecipeMark, TextMemory};
use self_cell::self_cell;

use crate::problem::{Kind, Problem};

/// Working memory for a character of a normalised text, and for a byte of a page: what a fingerprinter documents, and what
/// the tree of a page of the shortest elements takes.
const BYTES_EACH: usize = 64;

/// Texts and pages up to this many bytes are not counted: even all workers together take little for them.
const SMALL: usize = 64 << 10;

/// A share of this size, in bytes, is worth a call that gives its memory back.
const LARGE: usize = 32 << 20;

self_cell! {
    /// A fingerprinter with the recipe that it borrows.
    struct Maker {
        owner: Recipe,
        #[not_covariant]
        dependent: Fingerprinter,
    }
}

/// The memory of all work on documents.
pub(crate) struct Scratch {
    all: usize,
    free: Mutex<usize>,
    freed: Condvar,
    /// How long work waits for memory.
    patience: Duration,
    /// Fingerprinters that nobody uses, the one that was used last at the end.
    idle: Mutex<Vec<(RecipeMark, Maker)>>,
    most_idle: usize,
}

/// A share of the memory, until it is dropped.
pub(crate) struct Share<'a> {
    scratch: &'a Scratch,
    bytes: usize,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.scratch.take_back(self.bytes);
    }
}

/// Memory in which a store compares texts, until it is dropped.
struct Lent {
    scratch: Arc<Scratch>,
    bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.scratch.take_back(self.bytes);
    }
}

/// Returns what the allocator keeps of memory that was freed to the system. Of pieces that are smaller than some MB it keeps
/// all, and for each thread its own: after a few large texts that was 400 MiB of a service that had nothing to do.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(
            unsafe_code,
            reason = "a call of the system that the standard library does not have"
        )]
        // SAFETY: it takes no memory of ours, and may be called from any thread at any time.
        let _whether_some_was = unsafe { libc::malloc_trim(0) };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scratch {
    /// `all` bytes for all work, and as many idle fingerprinters as `workers`.
    pub(crate) fn new(all: usize, workers: usize, patience: Duration) -> Scratch {
        Scratch {
            all,
            free: Mutex::new(all),
            freed: Condvar::new(),
            patience,
            idle: Mutex::default(),
            most_idle: workers,
        }
    }

    /// A share for work on a text, which is counted as it is after normalisation: there a character may become 18.
    ///
    /// # Errors
    /// [`Kind::DocumentTooLarge`] when the text needs more than there is at all; [`Kind::Busy`] when other work has the
    /// memory and does not give it back in time.
    pub(crate) fn for_text(&self, text: &str) -> Result<Share<'_>, Problem> {
        if text.len() <= SMALL {
            return Ok(Share { scratch: self, bytes: 0 });
        }
        let most = self.all / BYTES_EACH;
        let characters = normalised_characters(text, most);
        if characters > most {
            return Err(Problem::new(
                Kind::DocumentTooLarge,
                format!(
                    "The text has more than {most} characters after normalisation, which is what max-work-memory has room for."
                ),
            ));
        }
        self.share(characters * BYTES_EACH)
    }

    /// A share for reading a page.
    ///
    /// # Errors
    /// As [`Scratch::for_text`].
    pub(crate) fn for_page(&self, bytes: usize) -> Result<Share<'_>, Problem> {
        if bytes <= SMALL {
            return Ok(Share { scratch: self, bytes: 0 });
        }
        let needed = bytes.saturating_mul(BYTES_EACH);
        if needed > self.all {
            return Err(Problem::new(
                Kind::DocumentTooLarge,
                format!(
                    "The page has more than {} bytes, which is what max-work-memory has room for.",
                    self.all / BYTES_EACH
                ),
            ));
        }
        self.share(needed)
    }

    /// The memory in which a store compares texts. A comparison that needs more than there is waits for all of it. None is refused,
    /// so that what is near is told however busy the service is; a comparison waits for nothing else, so the
    /// memory that others have comes back.
    pub(crate) fn for_comparisons(self: &Arc<Scratch>) -> TextMemory {
        let scratch = Arc::clone(self);
        TextMemory::Lent(Arc::new(move |bytes| {
            let bytes = bytes.min(scratch.all);
            let free = lock(&scratch.free);
            let waited = scratch.freed.wait_while(free, |free| *free < bytes);
            *waited.unwrap_or_else(PoisonError::into_inner) -= bytes;
            Box::new(Lent { scratch: Arc::clone(&scratch), bytes })
        }))
    }

    fn take_back(&self, bytes: usize) {
        if bytes > 0 {
            *lock(&self.free) += bytes;
            self.freed.notify_all();
        }
        if bytes >= LARGE {
            give_back();
        }
    }

    fn share(&self, bytes: usize) -> Result<Share<'_>, Problem> {
        let free = lock(&self.free);
        let is_short = |free: &mut usize| *free < bytes;
        let waited = self.freed.wait_timeout_while(free, self.patience, is_short);
        let (mut free, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *free < bytes {
            let detail = "Work on other documents takes the memory that there is: try again later.";
            return Err(Problem::new(Kind::Busy, detail));
        }
        *free -= bytes;
        Ok(Share { scratch: self, bytes })
    }

    /// Lends a fingerprinter of a recipe for work on a text of so many bytes.
    pub(crate) fn with_fingerprinter<T>(
        &self,
        recipe: &Recipe,
        mark: &RecipeMark,
        bytes: usize,
        work: impl for<'r> FnOnce(&mut Fingerprinter<'r>) -> T,
    ) -> Result<T, Problem> {
        let idle = {
            let mut idle = lock(&self.idle);
            let place = idle.iter().rposition(|(of, _)| of == mark);
            place.map(|place| idle.remove(place).1)
        };
        let mut maker = match idle {
            Some(maker) => maker,
            None => Maker::try_new(recipe.clone(), Recipe::fingerprinter)
                .map_err(|error| Problem::new(Kind::RecipeNeedsTable, error.to_string()))?,
        };
        let done = maker.with_dependent_mut(|_, fingerprinter| work(fingerprinter));
        // One that has worked on a large text keeps the memory for it, and is not kept.
        if bytes <= SMALL {
            let mut idle = lock(&self.idle);
            idle.push((mark.clone(), maker));
            if idle.len() > self.most_idle {
                drop(idle.remove(0));
            }
        }
        Ok(done)
    }
}

/// The characters of a text after normalisation, or some number above `most`. A piece at a time is normalised, so that a
/// text that grows takes no memory; what two pieces would share is little.
fn normalised_characters(text: &str, most: usize) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let (mut left, mut piece, mut sum) = (text, String::new(), 0);
    while !left.is_empty() && sum <= most {
        let (first, rest) = left.split_at(left.floor_char_boundary(SMALL));
        piece.clear();
        normalise_into(first, &mut piece);
        sum += piece.chars().count();
        left = rest;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_count_as_they_are_after_normalisation() {
        for (text, each) in
            [("a", 1), ("\u{4e00}", 1), ("\u{fdfa}", 18), ("\u{33a5}", 2), ("\u{fb03}", 3)]
        {
            let repeats = 100_000;
            let found = normalised_characters(&text.repeat(repeats), usize::MAX);
            assert_eq!(found, each * repeats, "{text:?}");
        }
        assert!(normalised_characters(&"\u{fdfa}".repeat(1 << 20), 1000) < 1 << 20);
    }

    #[test]
    fn memory_is_shared_waited_for_and_refused() {
        let scratch = Scratch::new(BYTES_EACH * 300_000, 2, Duration::from_millis(20));
        let kind = |result: Result<Share<'_>, Problem>| result.err().map(|problem| problem.kind);
        // 20,000 characters of 60 kB are few, and the same that become 18 times as many are too many.
        assert_eq!(
            kind(scratch.for_text(&"\u{fdfa}".repeat(30_000))),
            Some(Kind::DocumentTooLarge)
        );
        assert_eq!(kind(scratch.for_page(300_001)), Some(Kind::DocumentTooLarge));
        let first = scratch.for_text(&"\u{4e00}".repeat(200_000)).unwrap();
        assert_eq!(kind(scratch.for_page(200_000)), Some(Kind::Busy));
        let second = scratch.for_page(100_000).unwrap();
        drop(first);
        assert!(scratch.for_text(&"a".repeat(200_000)).is_ok());
        drop(second);
        assert_eq!(*lock(&scratch.free), scratch.all);
    }

    /// Texts that a store compares take their memory from that of all work, and wait for it.
    #[test]
    fn comparisons_wait_for_memory() {
        let scratch = Arc::new(Scratch::new(1 << 20, 2, Duration::from_millis(20)));
        let TextMemory::Lent(lend) = scratch.for_comparisons() else { panic!("it is lent") };
        assert_eq!(*lock(&scratch.free), 1 << 20);
        drop(lend(0));
        let first = lend(700_000);
        assert_eq!(*lock(&scratch.free), (1 << 20) - 700_000);
        let kind = |result: Result<Share<'_>, Problem>| result.err().map(|problem| problem.kind);
        let page = (1 << 20) / BYTES_EACH - 1;
        // Small pages are not counted, and this service has memory for no other.
        assert_eq!(kind(scratch.for_page(page)), None);
        let waiting = {
            let lend = Arc::clone(&lend);
            // More than there is at all.
            std::thread::spawn(move || drop(lend(usize::MAX)))
        };
        drop(first);
        waiting.join().expect("it had all the memory, and gave it back");
        assert_eq!(*lock(&scratch.free), 1 << 20);
    }

    #[test]
    fn fingerprinters_are_kept_by_recipe_within_bounds_and_not_after_large_texts() {
        let scratch = Scratch::new(1 << 30, 2, Duration::from_millis(20));
        let recipes = ["sketch", "simhash64", "sketch"].map(|name| Recipe::parse(name).unwrap());
        let work = |recipe: &Recipe, bytes: usize| {
            let mark = RecipeMark::of(recipe);
            scratch.with_fingerprinter(recipe, &mark, bytes, |_| ()).unwrap();
            lock(&scratch.idle).len()
        };
        assert_eq!(recipes.each_ref().map(|recipe| work(recipe, 100)), [1, 2, 2]);
        assert_eq!(work(&recipes[0], 1 << 20), 1);
        assert_eq!(work(&Recipe::parse("simhash128").unwrap(), 100), 2);
        assert_eq!(work(&recipes[0], 100), 2);
    }
}
