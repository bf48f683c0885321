//! The pieces of a text, and which of them repeat others.

use nearsift::text::key::content_key;
use nearsift::text::normalise::normalise_into;
use serde::Serialize;

use crate::error::Error;
use crate::external_sort::{Sorted, Sorter, Stored};

/// What a text is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Each line.
    Line,
    /// Lines without a blank one between them.
    Paragraph,
}

impl Unit {
    /// The pieces, which together are the text: each with the line break, and of paragraphs the blank lines, behind it.
    pub fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (piece, after) = rest.split_at(match self {
                Unit::Line => line(rest),
                Unit::Paragraph => paragraph(rest),
            });
            rest = after;
            Some(piece)
        })
    }
}

/// The length of the first line.
fn line(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

/// The length of the first paragraph, of blank lines before it and those behind.
fn paragraph(text: &str) -> usize {
    let (mut end, mut seen) = (0, [false; 2]);
    while end < text.len() {
        let len = line(&text[end..]);
        let is_blank = text[end..end + len].trim().is_empty();
        // A line after blank ones, which follow lines of this paragraph, is of the next.
        if seen == [true; 2] && !is_blank {
            break;
        }
        seen = [seen[0] || !is_blank, is_blank && seen[0]];
        end += len;
    }
    end
}

/// What makes a piece the same as another: its letters and digits, after normalisation.
#[derive(Default)]
pub struct Keys {
    normal: String,
    letters: String,
}

impl Keys {
    /// The key of a piece; `None` when its letters and digits are fewer bytes in UTF-8.
    pub fn key(&mut self, piece: &str, least_bytes: usize) -> Option<u128> {
        self.normal.clear();
        self.letters.clear();
        normalise_into(piece, &mut self.normal);
        self.letters.extend(self.normal.chars().filter(|c| c.is_alphanumeric()));
        let counts = self.letters.len() >= least_bytes.max(1);
        counts.then(|| content_key([&self.letters]))
    }
}

/// A piece that counts: by its key, then in the order of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub key: u128,
    pub document: u32,
    /// Its number among all pieces of the document.
    pub number: u32,
    /// How many of the document's pieces count.
    pub of: u32,
}

impl Piece {
    /// This piece as one that goes, because of another, given by its document and its number there.
    pub fn repeats(self, (first, first_number): (u32, u32), likeness: Likeness) -> Repeat {
        let Piece { document, number, of, .. } = self;
        Repeat { document, number, of, first, first_number, likeness }
    }
}

impl Stored for Piece {
    type Key = (u128, u32, u32);
    const BYTES: usize = 28;

    fn key(&self) -> Self::Key {
        (self.key, self.document, self.number)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.key.to_le_bytes());
        for number in [self.document, self.number, self.of] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Piece> {
        let (key, rest) = bytes.split_first_chunk::<16>()?;
        let [document, number, of] = words(rest)?;
        Some(Piece { key: u128::from_le_bytes(*key), document, number, of })
    }
}

/// A piece that goes, in the order of the input, and the first like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    pub document: u32,
    pub number: u32,
    pub of: u32,
    pub first: u32,
    pub first_number: u32,
    /// How alike the two are when they are not the same.
    pub likeness: Likeness,
}

/// Whether a piece is the same as another, or how alike the two are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Likeness(u32);

impl Likeness {
    /// The same letters and digits.
    pub const SAME: Likeness = Likeness(u32::MAX);

    /// Of pieces that are nearly the same.
    pub fn of_score(score: f32) -> Likeness {
        Likeness(score.to_bits())
    }

    /// The score of pieces that are nearly the same.
    pub fn score(self) -> Option<f32> {
        (self != Likeness::SAME).then(|| f32::from_bits(self.0))
    }
}

impl Stored for Repeat {
    type Key = (u32, u32);
    const BYTES: usize = 24;

    fn key(&self) -> (u32, u32) {
        (self.document, self.number)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let &Repeat { document, number, of, first, first_number, likeness } = self;
        for number in [document, number, of, first, first_number, likeness.0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Repeat> {
        let [document, number, of, first, first_number, likeness] = words(bytes)?;
        let likeness = Likeness(likeness);
        Some(Repeat { document, number, of, first, first_number, likeness })
    }
}

fn words<const N: usize>(bytes: &[u8]) -> Option<[u32; N]> {
    let (words, rest) = bytes.as_chunks::<4>();
    let words: &[[u8; 4]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(u32::from_le_bytes))
}

/// Which of equal pieces stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stays {
    /// The first in the order of the input.
    First,
    /// None.
    None,
}

/// Of pieces that are there at least `least` times (2 or more), those that go, in the order of the input.
///
/// # Errors
/// When the disk is full or refuses.
pub fn repeats(
    pieces: &Sorted<Piece>,
    mut sorter: Sorter<Repeat>,
    least: usize,
    stays: Stays,
) -> Result<Sorted<Repeat>, Error> {
    // The first of a key, until there are enough of it.
    let mut same: Vec<Piece> = Vec::with_capacity(least);
    for piece in pieces.iter() {
        let piece = piece?;
        if same.first().is_some_and(|first| first.key != piece.key) {
            same.clear();
        }
        let is_past = same.len() == least;
        if !is_past {
            same.push(piece);
        }
        let first = same[0];
        let goes = match stays {
            _ if same.len() < least => &[],
            _ if is_past => std::slice::from_ref(&piece),
            Stays::First => &same[1..],
            Stays::None => &same[..],
        };
        for piece in goes {
            sorter.push(piece.repeats((first.document, first.number), Likeness::SAME))?;
        }
    }
    sorter.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use testkit::random::Random;

    use super::*;

    #[test]
    fn pieces_of_a_text() {
        let check = |unit: Unit, text: &str, expect: &[&str]| {
            let got: Vec<&str> = unit.pieces(text).collect();
            assert_eq!(got, expect, "{text:?}");
            assert_eq!(got.concat(), text);
        };
        check(Unit::Line, "", &[]);
        check(Unit::Line, "a", &["a"]);
        check(Unit::Line, "a\r\n\nb\n", &["a\r\n", "\n", "b\n"]);
        check(Unit::Paragraph, "", &[]);
        check(Unit::Paragraph, "\n \n", &["\n \n"]);
        check(Unit::Paragraph, "\na\nb\n\n \nc\r\n\r\nd", &["\na\nb\n\n \n", "c\r\n\r\n", "d"]);
        check(Unit::Paragraph, "一段\n\n二段\n", &["一段\n\n", "二段\n"]);
    }

    #[test]
    fn keys_of_pieces() {
        let mut keys = Keys::default();
        let mut same = |a: &str, b: &str| keys.key(a, 1) == keys.key(b, 1);
        assert!(same("點擊ＨＥＲＥ！\n", "点击here"));
        assert!(!same("点击", "点出"));
        assert_eq!(keys.key("——\n", 0), None);
        assert_eq!(keys.key("八个汉字也不够长", 25), None);
        assert!(keys.key("八个汉字正好够长", 24).is_some());
    }

    /// Every piece with all that are like it, by a table.
    fn oracle(pieces: &[Piece], least: usize, stays: Stays) -> Vec<Repeat> {
        let mut groups: BTreeMap<u128, Vec<Piece>> = BTreeMap::new();
        let mut ordered = pieces.to_vec();
        ordered.sort_by_key(|piece| (piece.document, piece.number));
        ordered.iter().for_each(|piece| groups.entry(piece.key).or_default().push(*piece));
        let mut gone = Vec::new();
        for group in groups.values().filter(|group| group.len() >= least) {
            let kept = usize::from(stays == Stays::First);
            let first = (group[0].document, group[0].number);
            let own = group[kept..].iter().map(|piece| piece.repeats(first, Likeness::SAME));
            gone.extend(own);
        }
        gone.sort_by_key(|repeat| (repeat.document, repeat.number));
        gone
    }

    #[test]
    fn repeats_are_those_of_a_table() {
        let folder = tempfile::tempdir().expect("a folder");
        for case in 0..200u64 {
            let mut random = Random::of_item(7, case);
            let mut pieces = Vec::new();
            for document in 0..random.below(20) as u32 {
                let of = random.below(8) as u32;
                pieces.extend((0..of).map(|number| {
                    let key = random.below(1 + case as usize / 4) as u128;
                    Piece { key, document, number: number * 2, of }
                }));
            }
            let (least, stays) =
                (2 + random.below(3), [Stays::First, Stays::None][random.below(2)]);
            let mut sorter = Sorter::new(folder.path(), 1000);
            pieces.iter().try_for_each(|piece| sorter.push(*piece)).expect("taken");
            let sorted = sorter.finish().expect("sorted");
            let got =
                repeats(&sorted, Sorter::new(folder.path(), 1000), least, stays).expect("found");
            let got: Vec<Repeat> = got.iter().collect::<Result<_, _>>().expect("read");
            assert_eq!(got, oracle(&pieces, least, stays), "case {case}");
        }
    }

    #[test]
    fn what_is_stored_is_read() {
        let piece = Piece { key: 1 << 100 | 3, document: 5, number: 7, of: 9 };
        let repeat = piece.repeats((4, u32::MAX), Likeness::of_score(0.75));
        assert_eq!((repeat.likeness.score(), Likeness::SAME.score()), (Some(0.75), None));
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        assert_eq!((bytes.len(), Piece::read(&bytes)), (Piece::BYTES, Some(piece)));
        bytes.clear();
        repeat.write(&mut bytes);
        assert_eq!((bytes.len(), Repeat::read(&bytes)), (Repeat::BYTES, Some(repeat)));
        assert_eq!(Repeat::read(&bytes[1..]), None);
    }
}
