//! The lines that two texts have in common, in whatever order.

use crate::feature::hash_token;
use crate::text::script::{Class, class};

/// Fewer lines of one text are no list.
const FEWEST: usize = 3;

/// The letters of a line with which it counts: two of a script without spaces, or four.
const LETTERS: usize = 4;

/// The lines of a text by the hashes of their letters and digits, ascending, with the number of these.
///
/// 16 bytes a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lines(Box<[(u64, u32)]>);

impl Lines {
    /// The lines of a normalised text; none of a text with fewer than three.
    pub(super) fn of(normalised: &str) -> Lines {
        if normalised.lines().nth(FEWEST - 1).is_none() {
            return Lines::default();
        }
        let mut letters = String::new();
        let mut lines = Vec::new();
        for line in normalised.lines() {
            letters.clear();
            let (mut count, mut weight) = (0, 0);
            for c in line.chars() {
                let own = match class(c) {
                    Class::Separator => continue,
                    Class::Alphabetic => 1,
                    Class::Unspaced => 2,
                };
                letters.push(c);
                count += 1;
                weight += own;
            }
            if weight >= LETTERS {
                lines.push((hash_token(&letters), count));
            }
        }
        if lines.len() < FEWEST {
            return Lines::default();
        }
        lines.sort_unstable();
        Lines(lines.into())
    }

    /// How many letters and digits are in lines that both texts have, each line as often as both have it.
    pub(super) fn common(&self, other: &Lines) -> usize {
        let (mut a, mut b) = (&*self.0, &*other.0);
        let mut common = 0;
        while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
            if x == y {
                common += x.1 as usize;
            }
            if x <= y {
                a = a_rest;
            }
            if y <= x {
                b = b_rest;
            }
        }
        common
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}
