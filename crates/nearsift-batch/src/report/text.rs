//! What strangers wrote, so that it can be looked at without harm.

use std::borrow::Cow;

use nearsift::compare::{Differences, Side};
use serde::Serialize;

/// The longest name or id that is shown, in characters.
const NAME_CHARS: usize = 200;
/// Longer runs that both texts share are cut in their middle to this many characters at either end.
const SHARED_CHARS: usize = 160;
/// The most characters that are shown of one text.
const TEXT_CHARS: usize = 3_000;

/// A part of a text beside another.
#[derive(Debug, Serialize)]
pub struct Passage {
    pub text: String,
    /// Whether the other text has it not.
    pub changed: bool,
}

/// The passages of one side of the differences, with the characters that could mislead a reader made visible. What both
/// sides share is shown around the differences alone.
pub fn passages(differences: &Differences<'_>, other: Side) -> Vec<Passage> {
    let mut left = TEXT_CHARS;
    let mut passages: Vec<Passage> = Vec::new();
    let last = differences.pieces.len().saturating_sub(1);
    for (i, piece) in differences.pieces.iter().enumerate() {
        if piece.side == other {
            continue;
        }
        let changed = piece.side != Side::Both && !piece.is_equal;
        let text = match changed {
            true => Cow::Borrowed(piece.text),
            false => shared(piece.text, i == 0, i == last),
        };
        let end = text.char_indices().nth(left).map(|(at, _)| at);
        left = left.saturating_sub(text.chars().count());
        passages.push(Passage { text: visible(&text[..end.unwrap_or(text.len())]), changed });
        if end.is_some() {
            passages.push(Passage { text: " […]".to_owned(), changed: false });
            break;
        }
    }
    passages
}

/// What both texts have, without the middle of it; at the start and at the end of the texts without the outer part.
fn shared(text: &str, is_first: bool, is_last: bool) -> Cow<'_, str> {
    let chars = text.chars().count();
    let head = if is_first && !is_last { 0 } else { SHARED_CHARS };
    let tail = if is_last && !is_first { 0 } else { SHARED_CHARS };
    if chars <= 2 * SHARED_CHARS + 40 {
        return Cow::Borrowed(text);
    }
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let left_out = grouped((chars - head - tail) as u64);
    let (start, end) = (&text[..place(head)], &text[place(chars - tail)..]);
    Cow::Owned(format!("{start} [… {left_out} characters that both have …] {end}"))
}

/// The text with control characters and those that turn the direction of writing as visible symbols; line feeds and tabs
/// stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            // The Unicode block 'Control Pictures' has a symbol for each C0 control.
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => out.push_str(&format!("⟨U+{:04X}⟩", c as u32)),
            _ => out.push(c),
        }
    }
    out
}

/// A name or an id in one line of bounded length.
pub fn visible_line(text: &str) -> String {
    let cut = text.char_indices().nth(NAME_CHARS).map_or(text.len(), |(at, _)| at);
    let mut line = visible(&text[..cut]).replace(['\n', '\t'], " ");
    if cut < text.len() {
        line.push('…');
    }
    line
}

/// A number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use nearsift::compare::differences;

    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let check = |number, expect: &str| assert_eq!(grouped(number), expect);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn steering_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\u{1b}[31m\u{0}"), "a⟨U+202E⟩b␛[31m␀");
        assert_eq!(visible_line("a\nb"), "a b");
        assert_eq!(visible_line(&"字".repeat(1000)).chars().count(), NAME_CHARS + 1);
    }

    #[test]
    fn long_texts_are_shown_around_their_differences() {
        let same = "相同的句子。".repeat(2_000);
        let (a, b) = (format!("{same}旧{same}"), format!("{same}新{same}"));
        let found = differences(&a, &b);
        let shown = passages(&found, Side::OnlyB);
        let text: String = shown.iter().map(|p| p.text.as_str()).collect();
        assert!(text.chars().count() < 600, "{}", text.chars().count());
        assert!(shown.iter().any(|p| p.changed && p.text == "旧"), "{text}");
        let (a, b) = ("a ".repeat(5_000), "b ".repeat(5_000));
        let shown = passages(&differences(&a, &b), Side::OnlyB);
        let chars: usize = shown.iter().map(|p| p.text.chars().count()).sum();
        assert!(chars <= TEXT_CHARS + 10, "{chars}");
    }
}
