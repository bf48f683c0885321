//! Passages of one text that stand elsewhere in the other: a labelling of what only one of them has.

use std::collections::HashMap;

use super::difference::{Side, TokenPiece, is_empty_of_meaning};
use crate::text::script::{Class, class, is_sign};

/// The least length of a passage. A word of a spaced script counts 2, a character of the other scripts 1, so that 8 words or 16
/// Chinese characters are the least: about a short sentence.
const LEAST_LENGTH: usize = 16;

/// Tokens that equal passages begin with. No token counts more than 2, so that no passage of the least length has fewer.
const GRAM: usize = LEAST_LENGTH / 2;

/// Places of a gram that are looked at. A gram that repeats more often is found at the first ones.
const MOST_PLACES: usize = 8;

/// Tokens in a row that a passage may contain though they are aligned already: single characters are shared by chance.
const MOST_ALIGNED: usize = 2;

/// Numbers the passages that were moved, from 1 in the order of the first text: a run of tokens that only the first text has
/// and whose normalised forms only the second has too, in the same order, at another place. Nothing but
/// [`Piece::moved`](super::Piece::moved) changes.
///
/// White space and punctuation within a passage and around it may differ. Each token is part of one passage at most. At each place of the
/// first text the longest passage is taken; of equal ones the first.
///
/// # Complexity
/// O(tokens): a place of the first text is compared with [`MOST_PLACES`] places of the second, each comparison that finds no passage
/// ends after some multiple of [`LEAST_LENGTH`] tokens, and one that finds a passage takes its tokens out of the search.
pub(super) fn label(pieces: &mut [TokenPiece<'_>]) {
    let a = Sequence::of(pieces, Side::OnlyB);
    let mut b = Sequence::of(pieces, Side::OnlyA);
    if a.length().min(b.length()) < LEAST_LENGTH {
        return;
    }
    let forms = b.forms.clone();
    let places = b.grams(&forms);
    let mut number = 0;
    let mut at = 0;
    while at + GRAM <= a.forms.len() {
        let found = match a.is_free[at] {
            true => places.get(&a.forms[at..at + GRAM]),
            false => None,
        };
        let passages = found.into_iter().flatten().filter_map(|&place| passage(&a, at, &b, place));
        // The first of the longest: `max_by_key` takes the last.
        let Some(longest) = passages.rev().max_by_key(|found| found.tokens) else {
            at += 1;
            continue;
        };
        number += 1;
        for (side, own, from) in [(Side::OnlyA, &a, at), (Side::OnlyB, &b, longest.place)] {
            let ends = (own.tokens[from], own.tokens[from + longest.tokens - 1]);
            mark(&mut pieces[ends.0..=ends.1], side, number);
            mark_around(pieces, side, ends, number);
        }
        b.is_free[longest.place..longest.place + longest.tokens].fill(false);
        at += longest.tokens;
    }
}

/// The tokens of one text that carry meaning.
struct Sequence {
    /// Where each stands among the pieces.
    tokens: Vec<usize>,
    /// Their normalised forms.
    forms: Vec<u32>,
    /// Whether this text alone has it, and no passage has taken it.
    is_free: Vec<bool>,
    /// How much each counts.
    weights: Vec<usize>,
}

impl Sequence {
    fn of(pieces: &[TokenPiece<'_>], other: Side) -> Sequence {
        let own = pieces.iter().enumerate().filter(|(_, token)| token.piece.side != other);
        let own = own.filter(|(_, token)| !is_empty_of_meaning(token.piece.text));
        let mut sequence = Sequence {
            tokens: Vec::new(),
            forms: Vec::new(),
            is_free: Vec::new(),
            weights: Vec::new(),
        };
        for (at, TokenPiece { piece, form }) in own {
            sequence.tokens.push(at);
            sequence.forms.push(*form);
            sequence.is_free.push(piece.side != Side::Both && !piece.is_equal);
            sequence.weights.push(piece.text.chars().next().map_or(0, |c| match class(c) {
                Class::Separator => 0,
                Class::Alphabetic => 2,
                Class::Unspaced => 1,
            }));
        }
        sequence
    }

    /// The length of all that this text alone has.
    fn length(&self) -> usize {
        self.weights
            .iter()
            .zip(&self.is_free)
            .filter(|(_, is_free)| **is_free)
            .map(|(w, _)| w)
            .sum()
    }

    /// The first places of each gram that begins with a free token.
    fn grams<'f>(&self, forms: &'f [u32]) -> HashMap<&'f [u32], Vec<usize>> {
        let mut places: HashMap<&[u32], Vec<usize>> = HashMap::new();
        for (at, gram) in forms.windows(GRAM).enumerate().filter(|(at, _)| self.is_free[*at]) {
            let places = places.entry(gram).or_default();
            if places.len() < MOST_PLACES {
                places.push(at);
            }
        }
        places
    }
}

/// A passage of the second text.
struct Passage {
    place: usize,
    tokens: usize,
}

/// The passage that begins at a place of either text, when it is long enough.
fn passage(a: &Sequence, at: usize, b: &Sequence, place: usize) -> Option<Passage> {
    let (mut length, mut tokens, mut aligned) = (0, 0, 0);
    let both = (at..a.forms.len()).zip(place..b.forms.len());
    for (nth, (x, y)) in both.enumerate() {
        if a.forms[x] != b.forms[y] {
            break;
        }
        if a.is_free[x] && b.is_free[y] {
            (tokens, aligned) = (nth + 1, 0);
            length += a.weights[x].min(b.weights[y]);
        } else {
            aligned += 1;
            if aligned > MOST_ALIGNED {
                break;
            }
        }
    }
    (length >= LEAST_LENGTH).then_some(Passage { place, tokens })
}

/// Labels what is of one text alone.
fn mark(pieces: &mut [TokenPiece<'_>], side: Side, number: u32) {
    pieces.iter_mut().filter(|token| is_markable(token, side)).for_each(|token| {
        token.piece.moved = Some(number);
    });
}

fn is_markable(token: &TokenPiece<'_>, side: Side) -> bool {
    token.piece.side == side && !token.piece.is_equal && token.piece.moved.is_none()
}

/// Labels the white space and punctuation around a passage that its text alone has: as within a passage, they may differ.
fn mark_around(
    pieces: &mut [TokenPiece<'_>],
    side: Side,
    (first, last): (usize, usize),
    number: u32,
) {
    let (before, rest) = pieces.split_at_mut(first);
    let behind = &mut rest[last + 1 - first..];
    for around in
        [&mut before.iter_mut().rev() as &mut dyn Iterator<Item = _>, &mut behind.iter_mut()]
    {
        around
            .take_while(|token| is_markable(token, side) && is_punctuation(token.piece.text))
            .for_each(|token| token.piece.moved = Some(number));
    }
}

fn is_punctuation(token: &str) -> bool {
    token.chars().all(|c| class(c) == Class::Separator && !is_sign(c))
}
