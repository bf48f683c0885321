//! A text as its letters, and the way back to the characters that they come from.

use std::ops::Range;

use crate::text::normalise::normalise_into;
use crate::text::script::{Class, class};

/// Bytes of the original text after which a piece ends where it can.
const PIECE: usize = 512;

/// The letters and digits of a normalised text, and where in the original text they come from.
///
/// Normalisation puts characters together and takes them apart, so no place in its result says by
/// itself where it comes from. But it goes piece by piece wherever a piece begins with a character that
/// nothing before it can change, which ASCII characters and unified ideographs are. So a mark
/// every few hundred bytes is kept, and only the piece in which a wanted place lies is normalised again.
#[derive(Debug, Default)]
pub struct Letters {
    letters: Vec<u32>,
    /// Bytes of the letters in UTF-8.
    bytes: usize,
    pieces: Vec<Piece>,
}

/// Where a piece begins.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// In letters, and in bytes of letters.
    letter: usize,
    letter_byte: usize,
    /// In bytes and in characters of the original text.
    byte: usize,
    character: usize,
}

impl Letters {
    /// Replaces the content by the letters of `text`.
    ///
    /// # Complexity
    /// O(bytes) time; 4 bytes of memory a letter, kept from text to text.
    pub fn fill(&mut self, text: &str) {
        self.letters.clear();
        self.pieces.clear();
        self.bytes = 0;
        let (mut byte, mut character) = (0, 0);
        let mut normalised = String::new();
        while byte < text.len() {
            self.pieces.push(Piece {
                letter: self.letters.len(),
                letter_byte: self.bytes,
                byte,
                character,
            });
            let end = piece_end(text, byte);
            normalised.clear();
            normalise_into(&text[byte..end], &mut normalised);
            for c in normalised.chars().filter(|&c| class(c) != Class::Separator) {
                self.letters.push(u32::from(c));
                self.bytes += c.len_utf8();
            }
            character += text[byte..end].chars().count();
            byte = end;
        }
    }

    /// The letters, as code points.
    pub fn as_slice(&self) -> &[u32] {
        &self.letters
    }

    /// Appends the letters in UTF-8.
    pub fn utf8_into(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes);
        for c in self.letters.iter().filter_map(|&c| char::from_u32(c)) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// The number of letters before a byte of the letters in UTF-8; where the byte is inside a
    /// letter, of those that end before it.
    pub fn letters_before(&self, byte: u32) -> usize {
        let byte = byte as usize;
        let Some(piece) = self.pieces.partition_point(|p| p.letter_byte <= byte).checked_sub(1)
        else {
            return 0;
        };
        let Piece { letter, letter_byte, .. } = self.pieces[piece];
        let mut at = letter_byte;
        letter
            + self.letters[letter..]
                .iter()
                .take_while(|&&c| {
                    at += utf8_length(c);
                    at <= byte
                })
                .count()
    }

    /// The characters of `text`, which must be the text of these letters, that a range of letters
    /// comes from. A character that gives several letters is in the range when one of them is.
    ///
    /// # Complexity
    /// O(log) in the pieces, and some ten normalisations of a few hundred bytes into `normalised`, whose
    /// content is of no use.
    pub fn original(
        &self,
        text: &str,
        letters: Range<usize>,
        normalised: &mut String,
    ) -> Range<u64> {
        if letters.is_empty() {
            let at = if letters.start < self.letters.len() {
                self.character_of(text, letters.start, normalised).start
            } else {
                text.chars().count()
            };
            return at as u64..at as u64;
        }
        let from = self.character_of(text, letters.start, normalised).start;
        let to = self.character_of(text, letters.end - 1, normalised).end;
        from as u64..to as u64
    }

    /// The character that a letter comes from, with the marks that are part of it.
    fn character_of(&self, text: &str, letter: usize, normalised: &mut String) -> Range<usize> {
        let piece = self.pieces.partition_point(|p| p.letter <= letter) - 1;
        let Piece { letter: first, byte, character, .. } = self.pieces[piece];
        let end = self.pieces.get(piece + 1).map_or(text.len(), |next| next.byte);
        let piece = &text[byte..end];
        let ends: Vec<usize> = piece.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        let wanted = letter - first + 1;
        // The first prefix with so many letters.
        let (mut low, mut high) = (0, ends.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if count(normalised, &piece[..ends[middle]]) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut last = low;
        let have = count(normalised, &piece[..ends[low]]);
        // A mark that adds no letter was put together with the letter before it.
        for (at, c) in piece[ends[low]..].char_indices().take(4) {
            let end = ends[low] + at + c.len_utf8();
            if class(c) == Class::Separator || count(normalised, &piece[..end]) != have {
                break;
            }
            last += 1;
        }
        character + low..character + last + 1
    }
}

/// The number of letters of a text.
fn count(normalised: &mut String, text: &str) -> usize {
    normalised.clear();
    normalise_into(text, normalised);
    normalised.chars().filter(|&c| class(c) != Class::Separator).count()
}

/// Where the piece that begins at `from` ends: before a character that nothing before it changes.
fn piece_end(text: &str, from: usize) -> usize {
    let least = text.ceil_char_boundary(from + PIECE);
    let cut = text[least..].char_indices().find(|&(_, c)| begins_anew(c));
    cut.map_or(text.len(), |(at, _)| least + at)
}

/// Whether what stands before a character never changes what it, and what follows it, becomes: it is a
/// starter that composes with nothing before it.
fn begins_anew(c: char) -> bool {
    c.is_ascii() || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
}

/// Bytes of a character in UTF-8.
pub(super) fn utf8_length(c: u32) -> usize {
    char::from_u32(c).map_or(3, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::shingle::Reduced;
    use crate::text::normalise::normalise;
    use proptest::prelude::*;

    fn of(text: &str) -> Letters {
        let mut letters = Letters::default();
        letters.fill("before 之前");
        letters.fill(text);
        letters
    }

    fn reduced(text: &str) -> String {
        let mut reduced = Reduced::default();
        reduced.fill(&normalise(text)).expect("short");
        reduced.text().to_owned()
    }

    fn string(letters: &[u32]) -> String {
        letters.iter().filter_map(|&c| char::from_u32(c)).collect()
    }

    #[test]
    fn ranges_by_example() {
        let check = |text: &str, letters: &str, expect: Range<u64>| {
            let of = of(text);
            let all = string(of.as_slice());
            let at = all[..all.find(letters).expect("the letters")].chars().count();
            let found = of.original(text, at..at + letters.chars().count(), &mut String::new());
            assert_eq!(found, expect, "{text}: {letters}");
        };
        check("abc", "b", 1..2);
        check("今天，北京。晴", "天北", 1..4);
        check("㈱臺灣ＡＢ", "株台湾", 0..3);
        check("ﬁve", "i", 0..1);
        check("cafe\u{301} noir", "café", 0..5);
        check("\u{1112}\u{1161}\u{11ab}글", "한", 0..3);
        check(&format!("{}，终", "一。".repeat(3000)), "终", 6001..6002);
    }

    proptest! {
        #[test]
        fn letters_are_those_of_the_whole(
            text in prop::collection::vec("\\PC{0,30}|[一-三a-c\u{301}\u{3099}ｶﾞｷ각\u{1100}\u{1161}，㈱ﬁ ]{0,60}", 0..40),
        ) {
            let text = text.concat();
            let expect = reduced(&text);
            let letters = of(&text);
            prop_assert_eq!(string(letters.as_slice()), expect.as_str());
            prop_assert_eq!(letters.bytes, expect.len());
            for (number, (at, _)) in expect.char_indices().enumerate().step_by(17) {
                prop_assert_eq!(letters.letters_before(at as u32), number);
            }
            let n = letters.as_slice().len();
            prop_assert_eq!(letters.original(&text, 0..n, &mut String::new()).end <= text.chars().count() as u64, true);
        }

        #[test]
        fn a_range_has_its_letters(
            text in "[一-三a-cＡ臺，。 é]{1,2000}", from: prop::sample::Index, length in 1usize..50,
        ) {
            let letters = of(&text);
            let n = letters.as_slice().len();
            prop_assume!(n > 0);
            let from = from.index(n);
            let range = from..n.min(from + length);
            let found = letters.original(&text, range.clone(), &mut String::new());
            let passage: String = text.chars()
                .skip(found.start as usize).take((found.end - found.start) as usize).collect();
            prop_assert_eq!(reduced(&passage), string(&letters.as_slice()[range]));
        }
    }
}
