//! The most probable segmentation of a text, by dynamic programming from right to left.

use super::table::Unit;
use super::{Dictionary, Word};

/// What segmentation keeps between texts, so that it allocates nothing in the long run.
#[derive(Default)]
pub(super) struct Scratch {
    chars: Vec<Char>,
    steps: Vec<Step>,
}

/// A character of the block at hand.
#[derive(Clone, Copy)]
struct Char {
    /// Its node in the dictionary.
    unit: Unit,
    /// Its place in the text in bytes.
    offset: u32,
    c: char,
}

/// The best way on from a character.
#[derive(Clone, Copy)]
struct Step {
    /// ln of the probability of the rest of the block.
    log: f64,
    /// The characters of the first word.
    length: u32,
    /// Its number, 0 for a character that the dictionary lacks.
    id: u32,
}

const END: Step = Step { log: 0.0, length: 0, id: 0 };

/// Past this much memory the scratch is given back: one huge text does not hold it for ever.
const SCRATCH_CHARS: usize = 1 << 18;

/// How a character takes part in words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a block, which the dictionary splits.
    Block,
    /// A token of its own.
    Single,
}

#[inline]
fn class(c: char) -> Class {
    let in_block = match c {
        '\u{4e00}'..='\u{9fff}' => true,
        '\0'..='\x7f' => {
            c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
        }
        _ => matches!(c,
            '\u{3400}'..='\u{4dbf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2ebef}'
            | '\u{2f800}'..='\u{2fa1f}'),
    };
    if in_block { Class::Block } else { Class::Single }
}

/// Appends the words of a text of at most `u32::MAX` bytes.
pub(super) fn segment<D: Dictionary>(
    dictionary: &D,
    text: &str,
    scratch: &mut Scratch,
    out: &mut Vec<Word>,
) {
    scratch.chars.clear();
    let mut chars = text.char_indices();
    while let Some((offset, c)) = chars.next() {
        let offset = offset as u32;
        if class(c) == Class::Block {
            scratch.chars.push(Char { unit: dictionary.root(c), offset, c });
            continue;
        }
        flush(dictionary, offset, scratch, out);
        let rest = chars.as_str();
        if c == '\r' && rest.starts_with('\n') {
            chars.next();
            out.push(Word::new(offset, offset + 2, 0));
        } else {
            out.push(Word::new(offset, offset + c.len_utf8() as u32, dictionary.single(c)));
        }
    }
    flush(dictionary, text.len() as u32, scratch, out);
    if scratch.chars.capacity() > SCRATCH_CHARS {
        *scratch = Scratch::default();
    }
}

/// Appends the words of the block that `scratch` holds and that ends at byte `end`, and empties it.
#[inline]
fn flush<D: Dictionary>(dictionary: &D, end: u32, scratch: &mut Scratch, out: &mut Vec<Word>) {
    let Scratch { chars, steps } = scratch;
    if chars.is_empty() {
        return;
    }
    // A character that no word has ends every walk.
    chars.push(Char { unit: Unit::NONE, offset: end, c: '\0' });
    best_steps(dictionary, chars, steps);
    emit(dictionary, chars, steps, out);
    chars.clear();
}

/// Finds the best way on from every character; `chars` ends with a sentinel.
///
/// Of two equally probable ways the one with the longer first word is better. A character with no
/// word at all counts as a word of frequency 1. The sums are made in the order that jieba makes
/// them in, so that even ways which differ by rounding alone are chosen alike.
fn best_steps<D: Dictionary>(dictionary: &D, chars: &[Char], steps: &mut Vec<Step>) {
    let n = chars.len() - 1;
    if steps.len() <= n {
        steps.resize(n + 1, END);
    }
    let steps = &mut steps[..=n];
    steps[n] = END;
    for at in (0..n).rev() {
        let mut best = Step { log: f64::NEG_INFINITY, length: 0, id: 0 };
        let mut consider = |length: u32, id: u32| {
            let log = dictionary.log_probability(id) + steps[at + length as usize].log;
            if log > best.log || (log == best.log && length > best.length) {
                best = Step { log, length, id };
            }
        };
        let mut unit = chars[at].unit;
        if unit.id() != 0 {
            consider(1, unit.id());
        }
        for (next, length) in chars[at + 1..].iter().zip(2..) {
            let Some(child) = dictionary.child(unit, next.unit.label()) else { break };
            unit = child;
            if unit.id() != 0 {
                consider(length, unit.id());
            }
        }
        dictionary.added(chars[at..n].iter().map(|c| c.c), &mut consider);
        if best.length == 0 {
            best = Step { log: dictionary.log_unknown() + steps[at + 1].log, length: 1, id: 0 };
        }
        steps[at] = best;
    }
}

/// Appends the words along the best way. Single ASCII letters and digits in a row are one word.
fn emit<D: Dictionary>(dictionary: &D, chars: &[Char], steps: &[Step], out: &mut Vec<Word>) {
    let n = chars.len() - 1;
    let mut at = 0;
    while at < n {
        let Step { length, id, .. } = steps[at];
        let next = at + length as usize;
        if length > 1 || !chars[at].c.is_ascii_alphanumeric() {
            out.push(Word::new(chars[at].offset, chars[next].offset, id));
            at = next;
            continue;
        }
        let mut end = next;
        while end < n && steps[end].length == 1 && chars[end].c.is_ascii_alphanumeric() {
            end += 1;
        }
        let id = match end - at {
            1 => id,
            _ => dictionary.find_chars(chars[at..end].iter().map(|c| c.c)).unwrap_or(0),
        };
        out.push(Word::new(chars[at].offset, chars[end].offset, id));
        at = end;
    }
}
