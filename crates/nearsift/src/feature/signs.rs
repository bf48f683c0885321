//! Signs that distinguish texts of the same letters: `C++` and `C#`, `5 < 7` and `5 > 7`, five stars and one.
//!
//! A sign counts when it is
//! - a mathematical or currency sign or another symbol (general categories Sm, Sc and So: arrows, stars, emoji, degree),
//!   a percent or permille sign, or a colour of skin;
//! - one of `# * & @ / \ _ ^` directly behind a letter, a digit, a closing bracket or another of these that counts;
//! - a minus before a number: `-`, U+2010 or U+2013 at the beginning or behind white space, an opening bracket,
//!   a comma, a colon, a semicolon or a symbol, and directly before a digit, or before a full stop or a symbol and a digit. All are
//!   the same sign as U+2212;
//! - a full stop at the beginning or behind white space or an opening bracket, and directly before a letter or digit: `.NET`.
//!
//! Quotes, commas, dashes between words and all other punctuation do not count.

use super::shingle::{LETTERS, han_prefix, is_han};
use crate::text::script::{Class, class, is_sign};

/// A sign, and the number of bytes of letters and digits before it.
pub(super) type Sign = (u32, char);

const MINUS: char = '\u{2212}';

/// Appends the signs of a normalised text of less than 4 GiB that count.
///
/// # Complexity
/// O(bytes) time; 8 bytes for each sign.
pub(super) fn push_signs(normalised: &str, signs: &mut Vec<Sign>) {
    let bytes = normalised.as_bytes();
    // Letters before this byte are counted: most texts have few signs.
    let (mut counted, mut letters) = (0, 0);
    // Where the last attached sign that counts ends.
    let mut attached = usize::MAX;
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        if first.is_ascii() && !MAY_COUNT[usize::from(first)] {
            at += 1;
            continue;
        }
        if !first.is_ascii() && is_han([first, bytes[at + 1]]) {
            at += han_prefix(&bytes[at..]);
            continue;
        }
        let (before, rest) = normalised.split_at(at);
        let mut after = rest.chars();
        let Some(c) = after.next() else { break };
        let end = at + c.len_utf8();
        let sign = match c {
            '-' | '\u{2010}' | '\u{2013}' => is_minus(before, after.as_str()).then_some(MINUS),
            '.' => is_initial(before, after.as_str()).then_some(c),
            '#' | '*' | '&' | '@' | '/' | '\\' | '_' | '^' => {
                let is_attached =
                    at == attached || before.chars().next_back().is_some_and(ends_word);
                if is_attached {
                    attached = end;
                }
                is_attached.then_some(c)
            }
            _ => is_sign(c).then_some(c),
        };
        if let Some(sign) = sign {
            letters += letter_bytes(&normalised[counted..at]);
            counted = at;
            signs.push((letters as u32, sign));
        }
        at = end;
    }
}

/// Whether a dash between these is a minus.
fn is_minus(before: &str, after: &str) -> bool {
    let mut after = after.chars();
    let is_number = match after.next() {
        Some(c) if c == '.' || is_sign(c) => after.next().is_some_and(char::is_numeric),
        first => first.is_some_and(char::is_numeric),
    };
    let begins = |c| opens(c) || matches!(c, ',' | ';' | ':') || is_sign(c);
    is_number && before.chars().next_back().is_none_or(begins)
}

/// Whether a full stop between these begins a name or a number.
fn is_initial(before: &str, after: &str) -> bool {
    after.chars().next().is_some_and(is_letter) && before.chars().next_back().is_none_or(opens)
}

fn opens(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | '[' | '{')
}

fn ends_word(c: char) -> bool {
    is_letter(c) || matches!(c, ')' | ']')
}

fn is_letter(c: char) -> bool {
    class(c) != Class::Separator
}

/// The bytes of the letters and digits of a text.
fn letter_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut sum) = (0, 0);
    while let Some(&first) = bytes.get(at) {
        let length = match first {
            0..0x80 => {
                sum += usize::from(LETTERS[usize::from(first)]);
                at += 1;
                continue;
            }
            _ if is_han([first, bytes[at + 1]]) => han_prefix(&bytes[at..]),
            _ => {
                let c = text[at..].chars().next().map_or(1, char::len_utf8);
                at += c;
                sum += if text[at - c..].chars().next().is_some_and(is_letter) { c } else { 0 };
                continue;
            }
        };
        at += length;
        sum += length;
    }
    sum
}

/// Whether an ASCII character may be a sign that counts; all other bytes are none.
const MAY_COUNT: [bool; 256] = {
    let mut may = [false; 256];
    let signs = b"$+<=>|~%#*&@/\\_^.-";
    let mut at = 0;
    while at < signs.len() {
        may[signs[at] as usize] = true;
        at += 1;
    }
    may
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signs(text: &str) -> Vec<Sign> {
        let mut signs = Vec::new();
        push_signs(text, &mut signs);
        signs
    }

    #[test]
    fn signs_that_count() {
        let check = |text: &str, expect: &str| {
            let found: String = signs(text).iter().map(|sign| sign.1).collect();
            assert_eq!(found, expect, "{text:?}");
        };
        // Symbols, wherever they stand.
        check("a + b = c, x < y > z | ~w", "+=<>|~");
        check("★★☆ → 👍🏻 °c € £ № 5 ✓", "★★☆→👍🏻°€£№✓");
        check("5% and 5 %, ‰", "%%‰");
        check("a\u{fffc}b\u{fffd}c", "");
        // Attached signs.
        check("c++ c# f# a* at&t km/h foo_bar x^2 user@host c:\\x", "++##*&/_^@");
        check("x**2 f(x)/g[1]*h a//b", "**/*//");
        check("# title * item / or & @user _ _x 中#文", "#");
        check("#tag *bold* \"quoted\"* ***", "*");
        // Minus.
        check("-5 (−5) to –3,-2 -.5 =-1 -$5 ‐7", "−−−−−=−−$−");
        check("5-3 covid-19 2010–2020 a - b - 5 -x --5 well-known —5 1.-2", "");
        // Full stops.
        check(".net .5 (.7", "...");
        check("a.b end. next .. x ...and 3.5 .", "");
        // Punctuation.
        check("“it's”, he—said: «no»! (why?) §1; ‘x’ · 你好，世界。、《书》「」…", "");
        check("", "");
    }

    #[test]
    fn places_are_in_letters() {
        assert_eq!(signs("ab é中文字★ - 5, x+"), [(2 + 2 + 9, '★'), (2 + 2 + 9 + 2, '+')]);
    }

    /// All by the definition, without leaving anything out.
    fn naive(text: &str) -> Vec<Sign> {
        let chars: Vec<char> = text.chars().collect();
        let mut found: Vec<Sign> = Vec::new();
        let (mut letters, mut last) = (0, usize::MAX);
        for (at, &c) in chars.iter().enumerate() {
            let before: String = chars[..at].iter().collect();
            let after: String = chars[at + 1..].iter().collect();
            let sign = match c {
                '-' | '\u{2010}' | '\u{2013}' if is_minus(&before, &after) => Some(MINUS),
                '.' if is_initial(&before, &after) => Some(c),
                _ if "#*&@/\\_^".contains(c) => {
                    let counts = last == at || before.chars().next_back().is_some_and(ends_word);
                    last = if counts { at + 1 } else { last };
                    counts.then_some(c)
                }
                _ => is_sign(c).then_some(c),
            };
            found.extend(sign.map(|sign| (letters, sign)));
            letters += if is_letter(c) { c.len_utf8() as u32 } else { 0 };
        }
        found
    }

    proptest! {
        #[test]
        fn the_fast_way_finds_what_the_definition_does(text in "[ab5 .,()#*/_^$+<%\u{2013}-]{0,24}|[é中文★👍·5a .#+-]{0,24}|\\PC{0,24}") {
            prop_assert_eq!(signs(&text), naive(&text));
        }
    }
}
