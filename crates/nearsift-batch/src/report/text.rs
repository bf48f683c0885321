//! What strangers wrote, so that it can be looked at without harm.

use nearsift::compare::{Differences, Side};
use serde::Serialize;

use super::is_zero;

/// The longest name or id that is shown, in characters.
const NAME_CHARS: usize = 200;
/// Longer runs that both texts share are cut in their middle to this many characters at either end.
const SHARED_CHARS: usize = 160;
/// The most characters that are shown of one text.
const TEXT_CHARS: usize = 3_000;

/// A part of a text beside another.
#[derive(Debug, Default, Serialize)]
pub struct Passage {
    pub text: String,
    /// Whether the other text has it not.
    pub changed: bool,
    /// The number of the passage that it is part of, where the other text has it elsewhere; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub moved: u64,
    /// Characters that both texts have and that are not shown, behind the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl Passage {
    /// A part that both texts have.
    fn shared(text: &str) -> Passage {
        Passage { text: visible(text), ..Passage::default() }
    }
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
        let (text, behind) = match changed {
            true => (piece.text, None),
            false => around_differences(piece.text, i == 0, i == last),
        };
        let end = text.char_indices().nth(left).map(|(at, _)| at);
        left = left.saturating_sub(text.chars().count());
        let (left_out, rest) = behind.unwrap_or_default();
        let text = visible(&text[..end.unwrap_or(text.len())]);
        let moved = piece.moved.map_or(0, u64::from);
        passages.push(Passage { text, changed, moved, left_out });
        if end.is_some() {
            passages.push(Passage::shared(" […]"));
            break;
        }
        if !rest.is_empty() {
            left = left.saturating_sub(SHARED_CHARS);
            passages.push(Passage::shared(rest));
        }
    }
    passages
}

/// What both texts have, and where that is long its start alone, with how many characters are left out behind it and its end; at
/// the start and at the end of the texts without the outer part.
fn around_differences(text: &str, is_first: bool, is_last: bool) -> (&str, Option<(u64, &str)>) {
    let chars = text.chars().count();
    let head = if is_first && !is_last { 0 } else { SHARED_CHARS };
    let tail = if is_last && !is_first { 0 } else { SHARED_CHARS };
    if chars <= 2 * SHARED_CHARS + 40 {
        return (text, None);
    }
    let place = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let left_out = (chars - head - tail) as u64;
    (&text[..place(head)], Some((left_out, &text[place(chars - tail)..])))
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

/// The most characters of a text that stand for it in a list.
const SNIPPET_CHARS: usize = 160;

/// The first words of a text in one line.
pub fn snippet(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(SNIPPET_CHARS + 1));
        if line.chars().count() > SNIPPET_CHARS {
            break;
        }
    }
    match line.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => visible(line[..end].trim_end()) + "…",
        None => visible(&line),
    }
}

/// A name with so many characters at most: a longer one loses its middle, because paths differ at their ends.
pub fn shortened(name: &str, most: usize) -> String {
    let chars = name.chars().count();
    if chars <= most {
        return name.to_owned();
    }
    let head = most / 3;
    let tail = most - head - 1;
    let place = |n: usize| name.char_indices().nth(n).map_or(name.len(), |(at, _)| at);
    format!("{}…{}", &name[..place(head)], &name[place(chars - tail)..])
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
    fn snippets_are_one_short_line() {
        let check = |text: &str, expect: &str| assert_eq!(snippet(text), expect);
        check("", "");
        check(" a\n\n b\t", "a b");
        check("x\u{202e}y", "x⟨U+202E⟩y");
        check(&"字".repeat(160), &"字".repeat(160));
        check(&"字".repeat(161), &("字".repeat(160) + "…"));
        let words = snippet(&"word ".repeat(100));
        assert!(words.ends_with("word…") && words.chars().count() <= 161, "{words}");
    }

    #[test]
    fn names_lose_their_middle() {
        let check = |name: &str, most, expect: &str| assert_eq!(shortened(name, most), expect);
        check("a.jsonl", 7, "a.jsonl");
        check("data/2024/part.jsonl:12", 16, "data/…t.jsonl:12");
        check("零一二三四五六七八九", 7, "零一…六七八九");
    }

    #[test]
    fn long_texts_are_shown_around_their_differences() {
        let same = "相同的句子。".repeat(2_000);
        let (a, b) = (format!("{same}旧{same}"), format!("{same}新{same}"));
        let found = differences(&a, &b);
        let shown = passages(&found, Side::OnlyB);
        let text: String = shown.iter().map(|p| p.text.as_str()).collect();
        assert!(text.chars().count() < 600, "{}", text.chars().count());
        let left_out: u64 = shown.iter().map(|p| p.left_out).sum();
        assert_eq!(text.chars().count() as u64 + left_out, a.chars().count() as u64);
        assert!(shown.iter().any(|p| p.changed && p.text == "旧"), "{text}");
        let (a, b) = ("a ".repeat(5_000), "b ".repeat(5_000));
        let shown = passages(&differences(&a, &b), Side::OnlyB);
        let chars: usize = shown.iter().map(|p| p.text.chars().count()).sum();
        assert!(chars <= TEXT_CHARS + 10, "{chars}");
    }
}
