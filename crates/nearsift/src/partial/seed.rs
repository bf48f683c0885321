//! Seeds: the places by which a passage is found wherever it stands.
//!
//! # Specification
//! A text is normalised and reduced to its letters, in UTF-8. Every 24 bytes of them that begin with a
//! character have a hash: 8 Chinese characters, or 24 Latin letters, which are about as
//! unlikely to be equal by chance. Of all hashes that begin within 48 bytes the least is a seed.
//! So two documents that share 72 bytes, 24 Chinese characters, share a seed, whatever stands
//! before and after, and on average two hashes of every 49 bytes are kept.
//!
//! # References
//! Schleimer, Wilkerson and Aiken, 'Winnowing: local algorithms for document fingerprinting', SIGMOD
//! 2003, section 3 (robust winnowing); Roberts, Hayes, Hunt, Mount and Yorke, 'Reducing storage
//! requirements for biological sequence comparison', Bioinformatics 20, 2004 (the same as minimizers).

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use crate::feature::shingle::Reduced;
use crate::text::key::content_key;
use crate::text::normalise::normalise_into;

/// Bytes of a seed.
pub(super) const SEED: usize = 24;

/// The window in bytes. The least hash that begins in a window is a seed.
pub(super) const WINDOW: usize = 48;

/// A text with more seeds is given a window twice as wide, as often as it takes. The seeds of the wider
/// window are some of those of the narrower one, so they still meet those of other documents.
pub(super) const MAX_SEEDS: usize = 1 << 18;

/// A seed that a document has more often is its own boilerplate, and finds nothing.
pub(super) const MAX_REPEATS: usize = 4;

/// The seeds of one document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seeds {
    /// Each a hash and the byte of the letters at which it begins; by hash, then by place.
    pub(super) seeds: Vec<(u64, u32)>,
    /// Bytes of the letters.
    pub(super) bytes: u32,
    /// The same for two documents when their letters are.
    pub(super) key: u128,
}

impl Seeds {
    /// The number of seeds.
    pub fn len(&self) -> usize {
        self.seeds.len()
    }

    /// Whether there is no seed: the text has fewer than 24 bytes of letters.
    pub fn is_empty(&self) -> bool {
        self.seeds.is_empty()
    }
}

/// Finds seeds, and keeps its working memory from text to text.
#[derive(Debug, Default)]
pub struct Seeder {
    normalised: String,
    reduced: Reduced,
    queue: VecDeque<(u64, u32)>,
}

impl Seeder {
    /// The seeds of a text. One of 4 GiB or more, which no place of 32 bits can speak of, has none.
    ///
    /// # Complexity
    /// O(bytes); at most 2^18 seeds.
    pub fn seeds(&mut self, text: &str) -> Seeds {
        self.normalised.clear();
        normalise_into(text, &mut self.normalised);
        if self.reduced.fill(&self.normalised).is_err() {
            return Seeds::default();
        }
        let letters = self.reduced.text();
        let mut seeds = Vec::with_capacity(3 * letters.len() / WINDOW + 1);
        let mut window = WINDOW;
        while !select(letters, window, &mut self.queue, &mut seeds) {
            window *= 2;
        }
        seeds.sort_unstable();
        let mut kept = Vec::with_capacity(seeds.len());
        for run in seeds.chunk_by(|a, b| a.0 == b.0) {
            if run.len() <= MAX_REPEATS {
                kept.extend_from_slice(run);
            }
        }
        Seeds { seeds: kept, bytes: letters.len() as u32, key: content_key([letters]) }
    }
}

/// Fills `seeds` with those of a window, in the order of the text; `false` when they are too many.
fn select(
    letters: &str,
    window: usize,
    queue: &mut VecDeque<(u64, u32)>,
    seeds: &mut Vec<(u64, u32)>,
) -> bool {
    seeds.clear();
    // The places of the window at which no hash that comes later is as small, the least first.
    queue.clear();
    let bytes = letters.as_bytes();
    let Some(last) = bytes.len().checked_sub(SEED) else { return true };
    for at in (0..=last).filter(|&at| letters.is_char_boundary(at)) {
        let hash = xxh3_64(&bytes[at..at + SEED]);
        while queue.pop_back_if(|back| back.0 >= hash).is_some() {}
        queue.push_back((hash, at as u32));
        while queue.pop_front_if(|front| front.1 as usize + window <= at).is_some() {}
        // The next character may be up to four bytes on: a window is complete when none more fits.
        let complete = at + next_width(bytes, at) >= window || at + next_width(bytes, at) > last;
        let Some(&least) = queue.front().filter(|_| complete) else { continue };
        // In a text that repeats itself one of equal hashes is enough for a window.
        let again = seeds.last().is_some_and(|&(hash, place)| {
            place == least.1 || hash == least.0 && place as usize + window > at
        });
        if !again {
            if seeds.len() == MAX_SEEDS {
                return false;
            }
            seeds.push(least);
        }
    }
    true
}

/// Bytes of the character that begins at `at`.
fn next_width(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn select_of(letters: &str, window: usize) -> Vec<(u64, u32)> {
        let mut seeds = Vec::new();
        assert!(select(letters, window, &mut VecDeque::new(), &mut seeds));
        seeds
    }

    /// The least hash of every window, by looking at all of it.
    fn naive(letters: &str, window: usize) -> BTreeSet<u64> {
        let hashes: Vec<(usize, u64)> = letters
            .char_indices()
            .filter(|(at, _)| at + SEED <= letters.len())
            .map(|(at, _)| (at, xxh3_64(&letters.as_bytes()[at..at + SEED])))
            .collect();
        let Some(&(last, _)) = hashes.last() else { return BTreeSet::new() };
        let least = |to: usize| {
            let own = hashes.iter().filter(|(at, _)| *at <= to && at + window > to);
            own.map(|(_, hash)| *hash).min()
        };
        let width = |at: usize| letters[at..].chars().next().map_or(0, char::len_utf8);
        let ends = hashes.iter().map(|(at, _)| *at);
        ends.filter(|&to| to == last || to + width(to) >= window).filter_map(least).collect()
    }

    #[test]
    fn how_many() {
        let check = |text: &str, expect| assert_eq!(Seeder::default().seeds(text).len(), expect);
        check("", 0);
        check("今天北京", 0);
        check("今天北京今天上海", 1);
        // One for each window, less those that repeat too often.
        check(&"今".repeat(60), 3);
        check(&"今".repeat(6000), 0);
    }

    #[test]
    fn long_texts_have_wider_windows() {
        let mut random = testkit::random::Random::new(1);
        // Letters that normalisation leaves alone, and three bytes each.
        let text: String = (0..5_000_000)
            .filter_map(|_| char::from_u32(0xac00 + random.below(5000) as u32))
            .collect();
        let mut seeder = Seeder::default();
        let whole = seeder.seeds(&text);
        assert!(whole.len() <= MAX_SEEDS && whole.len() > MAX_SEEDS / 3, "{}", whole.len());
        // A part of it has a narrower window: all seeds of the whole are among its own.
        let (from, to) = (3_000_000, 3_060_000);
        let part: BTreeSet<u64> = seeder.seeds(&text[from..to]).seeds.iter().map(|s| s.0).collect();
        let inside: Vec<u64> = (whole.seeds.iter())
            .filter(|s| (from + 2000..to - 2000).contains(&(s.1 as usize)))
            .map(|s| s.0)
            .collect();
        assert!(inside.len() > 100);
        assert!(
            inside.iter().all(|hash| part.contains(hash)),
            "{} of {}",
            inside.len(),
            part.len()
        );
    }

    proptest! {
        #[test]
        fn seeds_are_the_least_of_windows(text in "[一-三]{0,200}|[abé]{0,300}|[a一é😀]{0,200}") {
            let found = select_of(&text, 48);
            prop_assert!(found.is_sorted_by_key(|seed| seed.1));
            let hashes: BTreeSet<u64> = found.iter().map(|seed| seed.0).collect();
            prop_assert!(naive(&text, 48).is_subset(&hashes));
        }

        #[test]
        fn a_shared_passage_shares_a_seed(
            before in "[一-龥]{0,90}", after in "[一-龥]{0,90}",
            other in "[a-z]{0,90}", passage in "[一-龥]{40,60}",
        ) {
            let mut seeder = Seeder::default();
            let a = seeder.seeds(&format!("{before}{passage}{after}"));
            let b = seeder.seeds(&format!("{other}{passage}"));
            let of: BTreeSet<u64> = a.seeds.iter().map(|s| s.0).collect();
            prop_assert!(b.seeds.iter().any(|s| of.contains(&s.0)));
        }
    }
}
