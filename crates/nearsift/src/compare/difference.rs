//! Where two texts differ, in bounded time.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::text::script::{Class, class};

/// On which side a piece of text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// On both.
    Both,
    /// Only in the first text.
    OnlyA,
    /// Only in the second text.
    OnlyB,
}

/// A piece of one of the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'t> {
    /// Where it stands.
    pub side: Side,
    /// The text.
    pub text: &'t str,
}

/// The differences of two texts.
///
/// The pieces of [`Side::Both`] and [`Side::OnlyA`] in order are the first text, those of
/// [`Side::Both`] and [`Side::OnlyB`] the second: whole, unless `truncated`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differences<'t> {
    /// The pieces in reading order; what was replaced stands before what replaces it.
    pub pieces: Vec<Piece<'t>>,
    /// Whether the texts were longer than what is compared: the pieces end early.
    pub truncated: bool,
}

/// The longest text that is compared, in characters; the rest is cut off.
const MAX_CHARS: usize = 100_000;
/// Up to this many tokens on both sides together are compared token by token.
const FINE_TOKENS: usize = 3_000;
/// Up to this many sentences on both sides together are compared.
const MAX_SENTENCES: usize = 4_000;

/// Finds the differences of two texts: by sentence, then by word (by character in scripts without
/// spaces) inside the sentences that differ.
///
/// The cap on time is a cap on work, so that the same texts give the same pieces on every machine:
/// each text is cut after 100,000 characters, and the quadratic comparison never sees more than 4,000
/// sentences or 3,000 words at once.
///
/// ```
/// use nearsift::compare::{Side, differences};
/// let differences = differences("今天北京晴。", "今天上海晴。");
/// let changed: Vec<_> = differences.pieces.iter().filter(|p| p.side != Side::Both).map(|p| p.text).collect();
/// assert_eq!(changed, ["北京", "上海"]);
/// ```
///
/// # Complexity
/// O(length x differences) inside the caps, so at most some hundred milliseconds for hostile texts.
///
/// # References
/// Myers, 'An O(ND) difference algorithm and its variations', Algorithmica 1986.
pub fn differences<'t>(a: &'t str, b: &'t str) -> Differences<'t> {
    let (a, cut_a) = cut(a);
    let (b, cut_b) = cut(b);
    let mut out = Collector { pieces: Vec::new(), truncated: cut_a || cut_b };
    // Equal ends cost nothing, and they are most of two near duplicates.
    let (a_tokens, b_tokens) = (tokens(a), tokens(b));
    let prefix = common(a_tokens.iter(), b_tokens.iter());
    let suffix = common(a_tokens[prefix..].iter().rev(), b_tokens[prefix..].iter().rev());
    let (a_middle, a_end) = a_tokens[prefix..].split_at(a_tokens.len() - prefix - suffix);
    let b_middle = &b_tokens[prefix..b_tokens.len() - suffix];
    a_tokens[..prefix].iter().for_each(|t| out.push(Side::Both, t));
    let whole = if a_middle.len() + b_middle.len() <= FINE_TOKENS {
        out.fine(a_middle, b_middle);
        true
    } else {
        out.coarse(a_middle, b_middle)
    };
    // Past a part that was left out there is nothing that the equal ends could follow.
    if whole {
        a_end.iter().for_each(|t| out.push(Side::Both, t));
    }
    out.truncated |= !whole;
    let joined = join(a, b, &out.pieces);
    Differences { pieces: joined, truncated: out.truncated }
}

struct Collector<'t> {
    pieces: Vec<Piece<'t>>,
    truncated: bool,
}

impl<'t> Collector<'t> {
    fn push(&mut self, side: Side, text: &'t str) {
        self.pieces.push(Piece { side, text });
    }

    fn all(&mut self, side: Side, tokens: &[&'t str]) {
        tokens.iter().for_each(|t| self.push(side, t));
    }

    fn fine(&mut self, a: &[&'t str], b: &[&'t str]) {
        for op in capture_diff_slices(Algorithm::Myers, a, b) {
            if let DiffOp::Equal { .. } = op {
                self.all(Side::Both, &a[op.old_range()]);
            } else {
                self.all(Side::OnlyA, &a[op.old_range()]);
                self.all(Side::OnlyB, &b[op.new_range()]);
            }
        }
    }

    /// Whether all was compared: of more sentences than half of the cap the rest is left out.
    fn coarse(&mut self, a: &[&'t str], b: &[&'t str]) -> bool {
        let (all_a, all_b) = (sentences(a), sentences(b));
        let a = &all_a[..all_a.len().min(MAX_SENTENCES / 2)];
        let b = &all_b[..all_b.len().min(MAX_SENTENCES / 2)];
        for op in capture_diff_slices(Algorithm::Myers, a, b) {
            let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
            let size = old.iter().chain(new).map(|s| s.len()).sum::<usize>();
            let (old, new) = (old.concat(), new.concat());
            if let DiffOp::Equal { .. } = op {
                self.all(Side::Both, &old);
            } else if size <= FINE_TOKENS {
                self.fine(&old, &new);
            } else {
                self.all(Side::OnlyA, &old);
                self.all(Side::OnlyB, &new);
            }
        }
        a.len() == all_a.len() && b.len() == all_b.len()
    }
}

fn cut(text: &str) -> (&str, bool) {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => (&text[..at], true),
        None => (text, false),
    }
}

fn common<'t>(a: impl Iterator<Item = &'t &'t str>, b: impl Iterator<Item = &'t &'t str>) -> usize {
    a.zip(b).take_while(|(x, y)| x == y).count()
}

/// Words of alphabetic scripts, runs of white space, and all other characters one by one.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match class(c) {
        Class::Alphabetic => 1,
        _ if c.is_whitespace() && c != '\n' => 2,
        _ => 0,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, character) in text.char_indices() {
        let new = kind(character);
        if at > start && (new == 0 || new != last) {
            tokens.push(&text[start..at]);
            start = at;
        }
        last = new;
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

/// Groups of tokens that end with a sentence's end.
fn sentences<'s, 't>(tokens: &'s [&'t str]) -> Vec<&'s [&'t str]> {
    tokens
        .split_inclusive(|t| matches!(*t, "。" | "！" | "？" | "." | "!" | "?" | ";" | "；" | "\n"))
        .collect()
}

/// Neighbouring pieces of one side that touch in their text become one.
fn join<'t>(a: &'t str, b: &'t str, pieces: &[Piece<'t>]) -> Vec<Piece<'t>> {
    let mut joined: Vec<Piece<'t>> = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|p| p.side == first.side).count();
        let length: usize = rest[..run].iter().map(|p| p.text.len()).sum();
        let text = match first.side {
            Side::OnlyB => &b[at_b..at_b + length],
            _ => &a[at_a..at_a + length],
        };
        if first.side != Side::OnlyB {
            at_a += length;
        }
        if first.side != Side::OnlyA {
            at_b += length;
        }
        joined.push(Piece { side: first.side, text });
        rest = &rest[run..];
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(differences: &Differences<'_>, without: Side) -> String {
        differences.pieces.iter().filter(|p| p.side != without).map(|p| p.text).collect()
    }

    fn check(a: &str, b: &str, marked: &str) {
        let found: Vec<String> = differences(a, b)
            .pieces
            .iter()
            .map(|p| match p.side {
                Side::Both => p.text.to_owned(),
                Side::OnlyA => format!("[-{}-]", p.text),
                Side::OnlyB => format!("[+{}+]", p.text),
            })
            .collect();
        assert_eq!(found.concat(), marked);
    }

    #[test]
    fn pieces_of_one_long_text_and_a_short_one_end_early_and_say_so() {
        // More sentences than are compared on one side only, and an equal end that cannot follow.
        let (a, b) = (format!("{}end", "x. ".repeat(2_500)), "y. end".to_owned());
        let differences = differences(&a, &b);
        assert!(differences.truncated);
        assert!(a.starts_with(&side(&differences, Side::OnlyB)));
        assert!(b.starts_with(&side(&differences, Side::OnlyA)));
    }

    #[test]
    fn small_differences_are_marked_by_word() {
        check("", "", "");
        check("same", "same", "same");
        check("", "new", "[+new+]");
        check("the quick fox", "the slow fox", "the [-quick-][+slow+] fox");
        check("你妈妈喊你回家吃饭", "你妈妈叫你回家吃饭", "你妈妈[-喊-][+叫+]你回家吃饭");
        check("a b", "a  b", "a[- -][+  +]b");
    }

    #[test]
    fn long_texts_are_compared_by_sentence() {
        let a: String = (0..3_000).map(|i| format!("这是第{i}句话。")).collect();
        let b = a.replace("第1500句", "那1500句");
        let differences = differences(&a, &b);
        assert!(!differences.truncated);
        assert_eq!(side(&differences, Side::OnlyB), a.as_str());
        assert_eq!(side(&differences, Side::OnlyA), b.as_str());
        assert!(differences.pieces.len() < 6);
    }

    #[test]
    fn hostile_texts_end_soon() {
        // Nothing in common: the worst case of the algorithm.
        let a: String =
            (0..200_000u32).map(|i| char::from_u32(0x4e00 + i % 7_000).unwrap_or('a')).collect();
        let b: String =
            (0..200_000u32).map(|i| char::from_u32(0xac00 + i % 7_000).unwrap_or('b')).collect();
        assert!(differences(&a, &b).truncated);
        let (a, b) = ("a。b.".repeat(40_000), "c。d.".repeat(40_000));
        assert!(differences(&a, &b).truncated);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_back(a in "[ab 。.甲乙\n]{0,60}", b in "[ab 。.甲乙\n]{0,60}") {
            let differences = differences(&a, &b);
            prop_assert_eq!(side(&differences, Side::OnlyB), a.as_str());
            prop_assert_eq!(side(&differences, Side::OnlyA), b.as_str());
        }
    }
}
