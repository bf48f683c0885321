//! A text as tokens, and the hashes of their runs.

use crate::feature::hash_token;
use crate::feature::shingle::Reduced;
use crate::split_mix::split_mix;
use crate::text::normalise::normalise_into;
use crate::text::script::Class;
use crate::text::words::TextTooLong;

/// Units of a word of a script that is written with spaces.
pub(super) const WORD: u8 = 3;
/// Units of a letter of a script that is not.
pub(super) const LETTER: u8 = 2;

/// The base of the polynomial over tokens: odd, so that no power of it is 0.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
/// What distinguishes a letter's value from a word's.
const LETTERS: u64 = 0x6c65_7474_6572_7321;
/// What distinguishes a gram from a whole text of as many tokens.
const GRAMS: u64 = 0x6772_616d_732e_2e2e;
const WHOLES: u64 = 0x7768_6f6c_652e_2e2e;

/// Makes tokens of texts, and keeps its working memory from text to text.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    normal: String,
    reduced: Reduced,
}

impl Tokenizer {
    /// Replaces `tokens` by those of a text, and calls `each` with every one.
    ///
    /// # Errors
    /// [`TextTooLong`]: the tokens are empty then.
    pub fn fill(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        mut each: impl FnMut(&str, Class),
    ) -> Result<(), TextTooLong> {
        tokens.clear();
        self.normal.clear();
        normalise_into(text, &mut self.normal);
        self.reduced.fill(&self.normal)?;
        each_token(&self.reduced, |token, class| {
            tokens.push(token, class);
            each(token, class);
        });
        Ok(())
    }

    /// Where each token of the text that was filled in last begins, and the last ends, in letters.
    pub fn letters(&self, starts: &mut Vec<u32>) {
        starts.clear();
        let mut at = 0;
        each_token(&self.reduced, |token, _| {
            starts.push(at);
            at += token.chars().count() as u32;
        });
        starts.push(at);
    }
}

/// Calls `each` with every word and every letter of unspaced scripts, in order.
fn each_token(reduced: &Reduced, mut each: impl FnMut(&str, Class)) {
    let mut words = reduced.words();
    for (class, stretch) in reduced.stretches() {
        if class == Class::Alphabetic {
            let mut left = stretch.len();
            while left > 0 {
                // Every word lies within one stretch, and all letters of such a stretch in words.
                let Some(word) = words.next() else { break };
                left -= word.len();
                each(word, class);
            }
        } else {
            let mut rest = stretch;
            while let Some(c) = rest.chars().next() {
                let (letter, after) = rest.split_at(c.len_utf8());
                each(letter, class);
                rest = after;
            }
        }
    }
}

/// The tokens of a text, as values whose runs are hashed in constant time.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    units: Vec<u8>,
    /// Before each token, the polynomial of all before it; one more than tokens.
    prefixes: Vec<u64>,
}

/// The powers of [`BASE`] that grams and whole short texts need.
const POWERS: [u64; 256] = {
    let mut powers = [1; 256];
    let mut n = 1;
    while n < 256 {
        powers[n] = BASE.wrapping_mul(powers[n - 1]);
        n += 1;
    }
    powers
};

impl Tokens {
    fn clear(&mut self) {
        self.units.clear();
        self.prefixes.clear();
        self.prefixes.push(0);
    }

    #[inline]
    fn push(&mut self, token: &str, class: Class) {
        let (units, value) = match class {
            Class::Alphabetic => (WORD, hash_token(token)),
            _ => {
                let letter = token.chars().next().map_or(0, u32::from);
                (LETTER, split_mix(LETTERS, u64::from(letter)))
            }
        };
        self.units.push(units);
        let before = self.prefixes.last().copied().unwrap_or(0);
        self.prefixes.push(before.wrapping_mul(BASE).wrapping_add(value));
    }

    /// The units of each token.
    pub fn units(&self) -> &[u8] {
        &self.units
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Calls `each` with the start, the length in tokens and the hash of every gram: for each start the shortest run of `units` or more.
    #[inline]
    pub fn each_gram(&self, units: u32, mut each: impl FnMut(usize, usize, u64)) {
        let (mut end, mut sum) = (0, 0_u32);
        for start in 0..self.units.len() {
            while sum < units {
                let Some(&more) = self.units.get(end) else { return };
                sum += u32::from(more);
                end += 1;
            }
            let len = end - start;
            each(start, len, split_mix(self.polynomial(start, len) ^ GRAMS, len as u64));
            sum -= u32::from(self.units[start]);
        }
    }

    /// The hash of `len` tokens from `start` on as a whole short text, which no gram has; `None` where the text ends before.
    #[inline]
    pub fn whole(&self, start: usize, len: usize) -> Option<u64> {
        (start + len <= self.len())
            .then(|| split_mix(self.polynomial(start, len) ^ WHOLES, len as u64))
    }

    #[inline]
    fn polynomial(&self, start: usize, len: usize) -> u64 {
        let power = match POWERS.get(len) {
            Some(&power) => power,
            None => BASE.wrapping_pow(len as u32),
        };
        self.prefixes[start + len].wrapping_sub(self.prefixes[start].wrapping_mul(power))
    }
}

impl Tokens {
    /// Calls `each` with a value for every beginning of the text.
    pub fn each_prefix(&self, each: impl FnMut(u64)) {
        self.prefixes[1..].iter().copied().for_each(each);
    }
}
