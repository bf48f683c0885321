//! The most probable segmentation of a text, by dynamic programming from right to left.

use std::hint::select_unpredictable;

use super::table::{EMBEDDED, Unit};
use super::{Dictionary, Embedded, Overlaid, Word};

/// What segmentation keeps between texts, so that it allocates nothing in the long run.
#[derive(Default)]
pub(super) struct Scratch {
    chars: Vec<Char>,
    /// By place, the nodes of two characters.
    pairs: Vec<Unit>,
    ways: Vec<Ways>,
    logs: Vec<f64>,
    choices: Vec<Choice>,
}

/// A character of a block, or a whole token between blocks.
#[derive(Clone, Copy)]
struct Char {
    /// Its node in the dictionary; [`Unit::NONE`] for a token, which no word reaches into.
    unit: Unit,
    /// Its place in the text in bytes.
    offset: u32,
    role: Role,
}

/// What a [`Char`] is, in 32 bits: a number below [`ALPHANUMERIC`] makes it a token between blocks,
/// of the word with this number or, for 0, of none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Role(u32);

const ALPHANUMERIC: u32 = u32::MAX - 1;

impl Role {
    /// An ASCII letter or digit of a block: in a row they are one word, where none of them is part
    /// of a longer one.
    const ALPHANUMERIC: Role = Role(ALPHANUMERIC);
    /// Any other character of a block.
    const OTHER: Role = Role(u32::MAX);

    fn token(self) -> Option<u32> {
        (self.0 < ALPHANUMERIC).then_some(self.0)
    }

    fn is_token(self) -> bool {
        self.0 < ALPHANUMERIC
    }
}

/// What the words of one to three characters from a place add, before anything is chosen.
#[derive(Clone, Copy)]
struct Ways {
    /// ln(probability) of the first character as a word.
    one: f64,
    /// The same of two characters.
    two: f64,
    /// The node of three characters.
    three: Unit,
}

/// The first word of the best way on from a place.
#[derive(Clone, Copy)]
struct Choice {
    /// Its characters.
    length: u32,
    /// Its number, 0 for a character that the dictionary lacks.
    id: u32,
}

/// So many characters are worked on at once: they and all that is known of them fit the
/// first-level cache. Blocks are never cut, so a longer one makes a longer batch.
const BATCH: usize = 256;

/// Past this many characters the memory is given back: one huge block does not hold it for ever.
const HUGE: usize = 1 << 18;

/// How an ASCII character takes part in words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ascii {
    /// A token of its own.
    Token,
    Alphanumeric,
    /// Part of blocks.
    Other,
}

const ASCII: [Ascii; 128] = {
    let mut table = [Ascii::Token; 128];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() {
            table[byte] = Ascii::Alphanumeric;
        } else if matches!(b, b'+' | b'#' | b'&' | b'.' | b'_' | b'%' | b'-') {
            table[byte] = Ascii::Other;
        }
        byte += 1;
    }
    table
};

/// Whether a character beyond ASCII is part of blocks: the Han characters but for the latest
/// extensions.
#[inline]
fn is_in_block(c: u32) -> bool {
    (0x4e00..=0x9fff).contains(&c)
        || matches!(c,
            0x3400..=0x4dbf | 0xf900..=0xfaff | 0x20000..=0x2a6df | 0x2a700..=0x2ebef
            | 0x2f800..=0x2fa1f)
}

/// The first character of a text that starts beyond ASCII: its code point and length in bytes.
#[inline]
fn decode(text: &str, at: usize) -> (u32, usize) {
    if let [lead @ 0xe0..=0xef, second, third, ..] = text.as_bytes()[at..] {
        let bits = |byte: u8| u32::from(byte & 0x3f);
        return (u32::from(lead & 0x0f) << 12 | bits(second) << 6 | bits(third), 3);
    }
    text[at..].chars().next().map_or((0, 1), |c| (c as u32, c.len_utf8()))
}

/// How the best ways are found.
pub(super) trait Search: Dictionary {
    fn best_choices(&self, text: &str, scratch: &mut Scratch);
}

impl Search for Embedded {
    fn best_choices(&self, _: &str, scratch: &mut Scratch) {
        best_choices_by_ways(scratch);
    }
}

impl Search for Overlaid<'_> {
    fn best_choices(&self, text: &str, scratch: &mut Scratch) {
        best_choices(self, text, scratch);
    }
}

/// Appends the words of a text of at most `u32::MAX` bytes.
pub(super) fn segment<D: Search>(
    dictionary: &D,
    text: &str,
    scratch: &mut Scratch,
    out: &mut Vec<Word>,
) {
    scratch.chars.clear();
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut between_blocks = true;
    while at < bytes.len() {
        let offset = at as u32;
        let byte = bytes[at];
        let (unit, role) = if byte < 0x80 {
            let class = ASCII[usize::from(byte)];
            if class == Ascii::Token {
                let line_end = byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
                at += if line_end { 2 } else { 1 };
                let id = if line_end { 0 } else { dictionary.single(u32::from(byte)) };
                (Unit::NONE, Role(id))
            } else {
                if between_blocks && let Some(end) = plain_ascii_block(dictionary, text, at) {
                    push_plain(bytes, at, end, &mut scratch.chars);
                    at = end;
                    continue;
                }
                at += 1;
                let alphanumeric = class == Ascii::Alphanumeric;
                let role = if alphanumeric { Role::ALPHANUMERIC } else { Role::OTHER };
                (EMBEDDED.root(u32::from(byte)), role)
            }
        } else {
            let (c, width) = decode(text, at);
            at += width;
            if is_in_block(c) {
                (EMBEDDED.root(c), Role::OTHER)
            } else {
                (Unit::NONE, Role(dictionary.single(c)))
            }
        };
        between_blocks = role.is_token();
        if between_blocks && scratch.chars.len() >= BATCH {
            flush(dictionary, text, offset, scratch, out);
        }
        scratch.chars.push(Char { unit, offset, role });
    }
    flush(dictionary, text, text.len() as u32, scratch, out);
    if scratch.chars.capacity() > HUGE {
        *scratch = Scratch::default();
    }
}

/// The end of a block that starts at `at`, if it has ASCII characters alone, and none that a word of
/// ASCII characters must have: then no word of the dictionary is in it.
#[inline]
fn plain_ascii_block<D: Dictionary>(dictionary: &D, text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let needed = dictionary.ascii_words_need();
    let mut end = at;
    while let Some(&byte) = bytes.get(end) {
        if byte >= 0x80 {
            return (!is_in_block(decode(text, end).0)).then_some(end);
        }
        if ASCII[usize::from(byte)] == Ascii::Token {
            return Some(end);
        }
        if needed >> byte & 1 != 0 {
            return None;
        }
        end += 1;
    }
    Some(end)
}

/// Adds the words of a plain ASCII block as tokens: letters and digits in a row, and each other
/// character.
#[inline]
fn push_plain(bytes: &[u8], start: usize, end: usize, chars: &mut Vec<Char>) {
    let mut after_alphanumeric = false;
    for (offset, byte) in (start as u32..).zip(&bytes[start..end]) {
        let alphanumeric = byte.is_ascii_alphanumeric();
        if !(alphanumeric && after_alphanumeric) {
            chars.push(Char { unit: Unit::NONE, offset, role: Role(0) });
        }
        after_alphanumeric = alphanumeric;
    }
}

/// Appends the words of the batch that `scratch` holds and that ends at byte `end`, and empties it.
fn flush<D: Search>(
    dictionary: &D,
    text: &str,
    end: u32,
    scratch: &mut Scratch,
    out: &mut Vec<Word>,
) {
    // A token ends every walk and every row of letters; two, since walks look two places ahead.
    let sentinel = Char { unit: Unit::NONE, offset: end, role: Role(0) };
    scratch.chars.extend([sentinel; 2]);
    dictionary.best_choices(text, scratch);
    emit(dictionary, text, scratch, out);
    scratch.chars.clear();
}

/// Finds the best way on from every character of a batch, which ends with two sentinels.
///
/// Of two equally probable ways the one with the longer first word is better. A character with no
/// word at all counts as a word of frequency 1. The sums start anew at each block and are made in
/// the order that jieba makes them in, so that even ways which differ by rounding alone are chosen
/// alike.
fn best_choices<D: Dictionary>(dictionary: &D, text: &str, scratch: &mut Scratch) {
    let Scratch { chars, logs, choices, .. } = scratch;
    let n = chars.len() - 2;
    grow(logs, n + 2, 0.0);
    grow(choices, n, Choice { length: 1, id: 0 });
    logs[n] = 0.0;
    for at in (0..n).rev() {
        let (mut best, mut choice) = (f64::NEG_INFINITY, Choice { length: 0, id: 0 });
        let mut consider = |length: u32, id: u32| {
            let log = dictionary.log_probability(id) + logs[at + length as usize];
            if log > best || (log == best && length > choice.length) {
                (best, choice) = (log, Choice { length, id });
            }
        };
        let mut unit = chars[at].unit;
        if unit.id() != 0 {
            consider(1, unit.id());
        }
        for (next, length) in chars[at + 1..].iter().zip(2..) {
            let Some(child) = EMBEDDED.child(unit, next.unit.label()) else { break };
            unit = child;
            if unit.id() != 0 {
                consider(length, unit.id());
            }
        }
        let is_token = chars[at].role.is_token();
        if !is_token {
            let block = chars[at..].iter().take_while(|c| !c.role.is_token());
            let letters = text[chars[at].offset as usize..].chars();
            dictionary.added(block.zip(letters).map(|(_, c)| c), &mut consider);
        }
        if choice.length == 0 {
            choice.length = 1;
            best = if is_token { 0.0 } else { dictionary.log_unknown() + logs[at + 1] };
        }
        logs[at] = best;
        choices[at] = choice;
    }
}

/// [`best_choices`] over the embedded dictionary.
///
/// Most words have one to three characters. What these add is looked up for the whole batch first,
/// with no branch that waits for memory; the choice then reads neighbours alone, and goes to the
/// dictionary for longer words only.
fn best_choices_by_ways(scratch: &mut Scratch) {
    let Scratch { chars, pairs, ways, logs, choices } = scratch;
    let n = chars.len() - 2;
    let chars = &chars[..n + 2];
    pairs.clear();
    pairs.extend(chars.windows(2).map(|w| EMBEDDED.pair(w[0].unit, w[1].unit.label())));
    ways.clear();
    ways.extend(chars.windows(3).zip(&*pairs).map(|(w, &pair)| Ways {
        one: EMBEDDED.log_probability(w[0].unit.id()),
        two: EMBEDDED.log_probability(pair.id()),
        three: EMBEDDED.child_or_none(pair, w[2].unit.label()),
    }));
    grow(logs, n + 2, 0.0);
    grow(choices, n, Choice { length: 1, id: 0 });
    let (pairs, ways) = (&pairs[..n], &ways[..n]);
    let (logs, choices) = (&mut logs[..n + 2], &mut choices[..n]);
    logs[n..].fill(0.0);
    // The sums of the next two places stay in registers: reading them back would wait for the
    // writes.
    let (mut next, mut after_next) = (0.0, 0.0);
    for at in (0..n).rev() {
        let Ways { one, two, three } = ways[at];
        // The absent word 0 has the logarithm of negative infinity.
        let (one, two) = (one + next, two + after_next);
        let mut best = if two > one { two } else { one };
        let first_two = two >= one;
        let mut choice = Choice {
            length: 1 + u32::from(first_two),
            id: select_unpredictable(first_two, pairs[at], chars[at].unit).id(),
        };
        let (mut unit, mut length) = (three, 3);
        while unit != Unit::NONE {
            let log = EMBEDDED.log_probability(unit.id()) + logs[at + length];
            if log >= best {
                (best, choice) = (log, Choice { length: length as u32, id: unit.id() });
            }
            // A sentinel ends the walk before the end.
            unit = EMBEDDED.child(unit, chars[at + length].unit.label()).unwrap_or(Unit::NONE);
            length += 1;
        }
        if best == f64::NEG_INFINITY {
            choice = Choice { length: 1, id: 0 };
            let is_token = chars[at].role.is_token();
            best = if is_token { 0.0 } else { EMBEDDED.log_unknown() + next };
        }
        (next, after_next) = (best, next);
        logs[at] = best;
        choices[at] = choice;
    }
}

fn grow<T: Clone>(values: &mut Vec<T>, length: usize, value: T) {
    if values.len() < length {
        values.resize(length, value);
    }
}

/// Appends the words along the best way. Single ASCII letters and digits in a row are one word.
fn emit<D: Dictionary>(dictionary: &D, text: &str, scratch: &Scratch, out: &mut Vec<Word>) {
    let Scratch { chars, choices, .. } = scratch;
    let n = chars.len() - 2;
    let is_letter = |at: usize| chars[at].role == Role::ALPHANUMERIC && choices[at].length == 1;
    let mut at = 0;
    while at < n {
        let Choice { length, mut id } = choices[at];
        let mut next = at + length as usize;
        let start = chars[at].offset;
        if let Some(token) = chars[at].role.token() {
            id = token;
        } else if is_letter(at) {
            // The sentinel is no letter.
            while is_letter(next) {
                next += 1;
            }
            if next > at + 1 {
                let word = &text[start as usize..chars[next].offset as usize];
                id = dictionary.find(word).unwrap_or(0);
            }
        }
        out.push(Word::new(start, chars[next].offset, id));
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words::tests::nasty_text;
    use proptest::prelude::*;

    /// The embedded dictionary by the general search: the oracle of the fast one.
    struct General;

    impl Dictionary for General {
        fn log_probability(&self, id: u32) -> f64 {
            Embedded.log_probability(id)
        }

        fn log_unknown(&self) -> f64 {
            Embedded.log_unknown()
        }

        fn added(&self, _: impl Iterator<Item = char>, _: impl FnMut(u32, u32)) {}

        /// Every character is needed, so no block is plain.
        fn ascii_words_need(&self) -> u128 {
            u128::MAX
        }
    }

    impl Search for General {
        fn best_choices(&self, text: &str, scratch: &mut Scratch) {
            best_choices(self, text, scratch);
        }
    }

    proptest! {
        #[test]
        fn the_fast_search_finds_what_the_general_one_finds(text in nasty_text()) {
            let (mut fast, mut general) = (Vec::new(), Vec::new());
            let text = text.repeat(40);
            segment(&Embedded, &text, &mut Scratch::default(), &mut fast);
            segment(&General, &text, &mut Scratch::default(), &mut general);
            prop_assert_eq!(fast, general);
        }
    }

    /// A word of ASCII characters alone that lacks all that such words need would be overlooked.
    #[test]
    fn every_ascii_word_has_a_character_that_such_words_need() {
        fn visit(unit: Unit, has_needed: bool, found: &mut u32) {
            assert!(unit.id() == 0 || has_needed);
            *found += u32::from(unit.id() != 0);
            for byte in 0..0x80u32 {
                if let Some(child) = EMBEDDED.child(unit, EMBEDDED.root(byte).label()) {
                    visit(child, has_needed || Embedded.ascii_words_need() >> byte & 1 != 0, found);
                }
            }
        }
        let mut found = 0;
        for byte in 0..0x80 {
            visit(EMBEDDED.root(byte), Embedded.ascii_words_need() >> byte & 1 != 0, &mut found);
        }
        assert_eq!(found, 5);
    }
}
