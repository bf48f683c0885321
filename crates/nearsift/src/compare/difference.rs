//! Where two texts differ, in bounded time.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::moved;
use crate::text::normalise::normalise_into;
use crate::text::script::{Class, class, is_sign};

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
    /// Whether the difference counts as none: the other text has the same here but for letter case, width, Traditional or
    /// Simplified characters and invisible ones, or the piece is only white space and punctuation. Always true of
    /// [`Side::Both`].
    pub is_equal: bool,
    /// The number of the passage that it is part of, where one text has it here and the other has it elsewhere: from 1 in the
    /// order of the first text, the same in both. `None` for what was not moved, and always of [`Side::Both`] and of what is
    /// equal.
    pub moved: Option<u32>,
}

/// The differences of two texts.
///
/// The pieces of [`Side::Both`] and [`Side::OnlyA`] in order are the first text, those of
/// [`Side::Both`] and [`Side::OnlyB`] the second: whole, unless `truncated`. [`Piece::moved`] is a label of pieces that are there
/// without it too.
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
/// spaces) inside the sentences that differ. Words are aligned by their normalised form. A passage of at least 8 words, or 16
/// characters of such scripts, that one text has here and the other elsewhere is labelled as moved.
///
/// The cap on time is a cap on work, so that the same texts give the same pieces on every machine:
/// each text is cut after 100,000 characters, and the quadratic comparison never sees more than 4,000
/// sentences or 3,000 words at once.
///
/// ```
/// use nearsift::compare::{Side, differences};
/// let found = differences("今天北京晴。", "今天上海晴。");
/// let changed: Vec<_> = found.pieces.iter().filter(|p| p.side != Side::Both).map(|p| p.text).collect();
/// assert_eq!(changed, ["北京", "上海"]);
///
/// // What normalisation makes equal is a difference that counts as none.
/// let found = differences("漢語，OK", "汉语,ok!");
/// assert!(found.pieces.iter().all(|piece| piece.is_equal));
///
/// // A sentence that changed its place is not gone.
/// let found = differences("会议改在下周三下午两点举行，地点不变。请各部门准时参加并提前提交材料，逾期不再受理，也不另行通知。",
///     "请各部门准时参加并提前提交材料，逾期不再受理，也不另行通知。会议改在下周三下午两点举行，地点不变。");
/// assert!(found.pieces.iter().all(|piece| piece.side == Side::Both || piece.moved == Some(1)));
/// ```
///
/// # Complexity
/// O(length x differences) inside the caps, so at most some hundred milliseconds for hostile texts.
///
/// # References
/// Myers, 'An O(ND) difference algorithm and its variations', Algorithmica 1986.
pub fn differences<'t>(a: &'t str, b: &'t str) -> Differences<'t> {
    let ([a, b], mut compared) = compared(a, b);
    moved::label(&mut compared.pieces);
    Differences { pieces: join(a, b, &compared.pieces), truncated: compared.truncated }
}

/// The texts as far as they are compared, and their tokens side by side.
fn compared<'t>(a: &'t str, b: &'t str) -> ([&'t str; 2], Collector<'t>) {
    let (a, cut_a) = cut(a);
    let (b, cut_b) = cut(b);
    let mut out = Collector { truncated: cut_a || cut_b, ..Collector::default() };
    // Equal ends cost nothing, and they are most of two near duplicates.
    let mut forms = Forms::default();
    let (a_tokens, b_tokens) = (forms.tokens(a), forms.tokens(b));
    let prefix = common(a_tokens.iter(), b_tokens.iter());
    let suffix = common(a_tokens[prefix..].iter().rev(), b_tokens[prefix..].iter().rev());
    let (a_middle, a_end) = a_tokens[prefix..].split_at(a_tokens.len() - prefix - suffix);
    let (b_middle, b_end) = b_tokens[prefix..].split_at(b_tokens.len() - prefix - suffix);
    out.alike(&a_tokens[..prefix], &b_tokens[..prefix]);
    let whole = if a_middle.len() + b_middle.len() <= FINE_TOKENS {
        out.fine(a_middle, b_middle);
        true
    } else {
        out.coarse(a_middle, b_middle)
    };
    // Past a part that was left out there is nothing that the equal ends could follow.
    if whole {
        out.alike(a_end, b_end);
    }
    out.truncated |= !whole;
    ([a, b], out)
}

/// A word, a run of white space or a character. Tokens are equal when their normalised forms are.
#[derive(Debug, Clone, Copy)]
struct Token<'t> {
    /// The number of its normalised form.
    form: u32,
    text: &'t str,
}

impl PartialEq for Token<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

impl Eq for Token<'_> {}

impl Hash for Token<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.form.hash(state);
    }
}

/// The normalised forms of tokens, numbered as they come.
#[derive(Default)]
struct Forms {
    numbers: HashMap<String, u32>,
    form: String,
}

impl Forms {
    fn tokens<'t>(&mut self, text: &'t str) -> Vec<Token<'t>> {
        tokens(text).into_iter().map(|text| Token { form: self.number(text), text }).collect()
    }

    fn number(&mut self, token: &str) -> u32 {
        self.form.clear();
        // Line feeds end sentences: they are no white space among other.
        match token {
            "\n" => self.form.push('\n'),
            _ => normalise_into(token, &mut self.form),
        }
        if let Some(number) = self.numbers.get(&self.form) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(self.form.clone(), number);
        number
    }
}

/// Whether a token that the other text lacks makes no difference: white space, invisible characters, or punctuation that
/// never carries meaning.
pub(super) fn is_empty_of_meaning(token: &str) -> bool {
    let may_carry = |c| is_sign(c) || "#*&@/\\_^-.\u{2010}\u{2013}\u{2212}".contains(c);
    token.chars().all(|c| class(c) == Class::Separator && !may_carry(c))
}

/// A piece of one token.
pub(super) struct TokenPiece<'t> {
    pub piece: Piece<'t>,
    /// The number of the token's normalised form.
    pub form: u32,
}

#[derive(Default)]
struct Collector<'t> {
    pieces: Vec<TokenPiece<'t>>,
    truncated: bool,
}

impl<'t> Collector<'t> {
    fn push(&mut self, side: Side, token: &Token<'t>, is_equal: bool) {
        let piece = Piece { side, text: token.text, is_equal, moved: None };
        self.pieces.push(TokenPiece { piece, form: token.form });
    }

    /// Tokens that one text alone has. Punctuation and spaces among words belong to them.
    fn only(&mut self, side: Side, tokens: &[Token<'t>]) {
        let is_equal = tokens.iter().all(|token| is_empty_of_meaning(token.text));
        tokens.iter().for_each(|token| self.push(side, token, is_equal));
    }

    /// Tokens of equal forms: those that are written in two ways are a piece of each side.
    fn alike(&mut self, a: &[Token<'t>], b: &[Token<'t>]) {
        let pairs: Vec<_> = a.iter().zip(b).collect();
        for run in pairs.chunk_by(|x, y| (x.0.text == x.1.text) == (y.0.text == y.1.text)) {
            if run[0].0.text == run[0].1.text {
                run.iter().for_each(|(a, _)| self.push(Side::Both, a, true));
            } else {
                run.iter().for_each(|(a, _)| self.push(Side::OnlyA, a, true));
                run.iter().for_each(|(_, b)| self.push(Side::OnlyB, b, true));
            }
        }
    }

    fn fine(&mut self, a: &[Token<'t>], b: &[Token<'t>]) {
        for op in capture_diff_slices(Algorithm::Myers, a, b) {
            let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
            if let DiffOp::Equal { .. } = op {
                self.alike(old, new);
            } else {
                self.only(Side::OnlyA, old);
                self.only(Side::OnlyB, new);
            }
        }
    }

    /// Whether all was compared: of more sentences than half of the cap the rest is left out.
    fn coarse(&mut self, a: &[Token<'t>], b: &[Token<'t>]) -> bool {
        let (all_a, all_b) = (sentences(a), sentences(b));
        let a = &all_a[..all_a.len().min(MAX_SENTENCES / 2)];
        let b = &all_b[..all_b.len().min(MAX_SENTENCES / 2)];
        for op in capture_diff_slices(Algorithm::Myers, a, b) {
            let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
            let size = old.iter().chain(new).map(|s| s.len()).sum::<usize>();
            let (old, new) = (old.concat(), new.concat());
            if let DiffOp::Equal { .. } = op {
                self.alike(&old, &new);
            } else if size <= FINE_TOKENS {
                self.fine(&old, &new);
            } else {
                self.only(Side::OnlyA, &old);
                self.only(Side::OnlyB, &new);
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

fn common<'s, 't: 's>(
    a: impl Iterator<Item = &'s Token<'t>>,
    b: impl Iterator<Item = &'s Token<'t>>,
) -> usize {
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
fn sentences<'s, 't>(tokens: &'s [Token<'t>]) -> Vec<&'s [Token<'t>]> {
    tokens
        .split_inclusive(|t| {
            matches!(t.text, "。" | "！" | "？" | "." | "!" | "?" | ";" | "；" | "\n")
        })
        .collect()
}

/// Neighbouring pieces of one side that touch in their text become one.
fn join<'t>(a: &'t str, b: &'t str, pieces: &[TokenPiece<'t>]) -> Vec<Piece<'t>> {
    let mut joined: Vec<Piece<'t>> = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    let mut rest = pieces;
    while let Some(first) = rest.first().map(|token| token.piece) {
        let is_same = |token: &&TokenPiece<'_>| {
            let Piece { side, is_equal, moved, .. } = token.piece;
            (side, is_equal, moved) == (first.side, first.is_equal, first.moved)
        };
        let run = rest.iter().take_while(is_same).count();
        let length: usize = rest[..run].iter().map(|token| token.piece.text.len()).sum();
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
        joined.push(Piece { text, ..first });
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

    #[test]
    fn what_normalisation_makes_equal_counts_as_none() {
        let check = |a: &str, b: &str, expect: &str| {
            let shown = |p: &Piece<'_>| match (p.side, p.is_equal) {
                (Side::Both, _) => p.text.to_owned(),
                (Side::OnlyA, true) => format!("(-{}-)", p.text),
                (Side::OnlyB, true) => format!("(+{}+)", p.text),
                (Side::OnlyA, false) => format!("[-{}-]", p.text),
                (Side::OnlyB, false) => format!("[+{}+]", p.text),
            };
            let found = differences(a, b);
            assert_eq!(found.pieces.iter().map(shown).collect::<String>(), expect);
            assert_eq!(side(&found, Side::OnlyB), a);
            assert_eq!(side(&found, Side::OnlyA), b);
        };
        check("漢語好", "汉语好", "(-漢語-)(+汉语+)好");
        check("說漢語壞", "说汉语好", "(-說漢語-)(+说汉语+)[-壞-][+好+]");
        check("Hello world", "HELLO world", "(-Hello-)(+HELLO+) world");
        check("价１２元", "价12元", "价(-１２-)(+12+)元");
        check("好，的", "好的", "好(-，-)的");
        check("好的", "好「的」", "好(+「+)的(+」+)");
        check("a\nb", "a b", "a(-\n-)(+ +)b");
        check("甲。乙，丙。", "甲。", "甲。[-乙，丙。-]");
        check("a", "a b, c", "a[+ b, c+]");
        // Signs carry meaning.
        check("C++", "C", "C[-++-]");
        check("5<7", "5>7", "5[-<-][+>+]7");
        check("-5", "5", "[---]5");
    }

    #[test]
    fn passages_that_changed_their_place_are_moved() {
        let check = |a: &str, b: &str, expect: &str| {
            let shown = |p: &Piece<'_>| match (p.side, p.moved) {
                (Side::Both, _) => p.text.to_owned(),
                (Side::OnlyA, Some(number)) => format!("<{number}:{}>", p.text),
                (Side::OnlyB, Some(number)) => format!("<+{number}:{}>", p.text),
                (Side::OnlyA, None) => format!("[-{}-]", p.text),
                (Side::OnlyB, None) => format!("[+{}+]", p.text),
            };
            let found = differences(a, b);
            assert_eq!(found.pieces.iter().map(shown).collect::<String>(), expect);
            assert_eq!(side(&found, Side::OnlyB), a);
            assert_eq!(side(&found, Side::OnlyA), b);
        };
        let long = "The committee will publish its final report in spring, and every member may comment on the draft before";
        let short = "Rain is expected along the whole coast until Sunday evening";
        // The punctuation around a passage belongs to it where one text alone has it.
        check(
            &format!("{short}. {long}. "),
            &format!("{long}. {short}. "),
            &format!("<1:{short}. >{long}<+1:. {short}>. "),
        );
        // Case, width, script and punctuation within a passage count as equal.
        let traditional = "據新華社報導，沿海地區預計降雨將持續至週日晚上，請注意防範！";
        let simplified = "据新华社报导 沿海地区预计降雨将持续至周日晚上,请注意防范！";
        let between = "委员会将于明年春天发表最终报告，所有成员都可以在此之前对草案提出意见和建议，也可以书面反映。";
        check(
            &format!("{traditional}{between}"),
            &format!("{between}{simplified}"),
            &format!("<1:{traditional}>{between}<+1:{simplified}>"),
        );
        // Too short.
        let shorter = "Rain is expected on Sunday";
        check(
            &format!("{shorter}. {long}. "),
            &format!("{long}. {shorter}. "),
            &format!("[-{shorter}. -]{long}[+. {shorter}+]. "),
        );
        // Of what stands twice in the second text one is new.
        let (a, b) = (format!("{short}. {long}."), format!("{long}. {short}. {short}."));
        let found = differences(&a, &b);
        let trimmed = |p: &Piece<'_>| p.text.trim_matches(['.', ' ']).to_owned();
        let moved = found.pieces.iter().filter(|p| p.moved.is_some()).map(trimmed);
        assert_eq!(moved.collect::<Vec<_>>(), [short, short]);
        let is_new = |p: &&Piece<'_>| p.side == Side::OnlyB && p.moved.is_none();
        assert_eq!(found.pieces.iter().find(is_new).map(trimmed).as_deref(), Some(short));
    }

    #[test]
    fn moved_passages_of_long_texts_are_found() {
        let sentence = |i: usize| format!("这是第{i}句话，它说的是第{}件事情。", i * 7);
        let a: String = (0..1_500).map(sentence).collect();
        let b: String = (1_000..1_500).chain(0..1_000).map(sentence).collect();
        let found = differences(&a, &b);
        assert!(!found.truncated);
        let moved = |side| -> usize {
            let of_side = found.pieces.iter().filter(|p| p.side == side && p.moved.is_some());
            of_side.map(|p| p.text.len()).sum()
        };
        let all: usize = (1_000..1_500).map(|i| sentence(i).len()).sum();
        assert!(moved(Side::OnlyA) >= all * 9 / 10, "{} of {all}", moved(Side::OnlyA));
        assert!(moved(Side::OnlyB) >= all * 9 / 10, "{} of {all}", moved(Side::OnlyB));
    }

    #[test]
    fn hostile_passages_end_soon() {
        // Each gram is everywhere, and each passage is nearly long enough.
        let a = "甲".repeat(90_000) + "。" + &"一二三四五六七八九十一二三四五。甲".repeat(500);
        let b = "乙".repeat(90_000) + "。" + &"一二三四五六七八九十一二三四五。乙".repeat(500);
        differences(&a, &b);
        differences(
            &("x y ".repeat(25_000) + "z"),
            &("w ".repeat(25_000) + &"x y ".repeat(12_500)),
        );
    }

    /// Without labels, and with what they parted as one again.
    fn without_labels(found: &Differences<'_>) -> Vec<(Side, String, bool)> {
        let mut joined: Vec<(Side, String, bool)> = Vec::new();
        for piece in &found.pieces {
            match joined.last_mut() {
                Some((side, text, is_equal))
                    if (*side, *is_equal) == (piece.side, piece.is_equal) =>
                {
                    text.push_str(piece.text);
                }
                _ => joined.push((piece.side, piece.text.to_owned(), piece.is_equal)),
            }
        }
        joined
    }

    fn check_labels(a: &str, b: &str) {
        let found = differences(a, b);
        let ([cut_a, cut_b], unlabelled) = compared(a, b);
        let before = Differences {
            pieces: join(cut_a, cut_b, &unlabelled.pieces),
            truncated: unlabelled.truncated,
        };
        assert_eq!(without_labels(&found), without_labels(&before));
        assert_eq!(before.pieces.len(), without_labels(&before).len());
        let mut numbers: Vec<(u32, Side)> = found
            .pieces
            .iter()
            .filter_map(|piece| {
                assert!(piece.moved.is_none() || piece.side != Side::Both && !piece.is_equal);
                Some((piece.moved?, piece.side))
            })
            .collect();
        numbers.dedup();
        let most = numbers.iter().map(|(number, _)| *number).max().unwrap_or(0);
        for number in 1..=most {
            for side in [Side::OnlyA, Side::OnlyB] {
                assert!(numbers.contains(&(number, side)), "{number} of {most}: {side:?}");
            }
        }
        assert_eq!(found, differences(a, b));
    }

    proptest! {
        #[test]
        fn labels_of_moved_passages_change_no_difference(
            a in prop::collection::vec(0usize..6, 0..8),
            b in prop::collection::vec(0usize..6, 0..8),
            noise in "[甲a 。]{0,4}",
        ) {
            const PARTS: [&str; 6] = [
                "沿海地区预计降雨将持续至周日晚上，请注意防范。",
                "Rain is expected along the whole coast until Sunday evening. ",
                "甲乙丙丁甲乙丙丁甲乙丙丁甲乙丙丁甲乙丙丁。",
                "yes, no. ",
                "委员会将于明年春天发表最终报告，所有成员都可以提出意见\n",
                "語",
            ];
            let text = |order: &[usize]| order.iter().map(|&nth| PARTS[nth]).collect::<Vec<_>>().join(&noise);
            check_labels(&text(&a), &text(&b));
        }

        #[test]
        fn labels_of_few_letters_change_no_difference(a in "[ab甲 。]{0,80}", b in "[ab甲 。]{0,80}") {
            check_labels(&a, &b);
        }

        #[test]
        fn both_texts_can_be_read_back(a in "[abAB 。.甲乙語语，\n]{0,60}", b in "[abAB 。.甲乙語语,\n]{0,60}") {
            let differences = differences(&a, &b);
            prop_assert_eq!(side(&differences, Side::OnlyB), a.as_str());
            prop_assert_eq!(side(&differences, Side::OnlyA), b.as_str());
            // Texts that differ in nothing that counts have one normalised form but for separators.
            let letters = |text: &str| {
                let normalised = crate::text::normalise::normalise(text);
                normalised.chars().filter(|&c| !is_empty_of_meaning(&c.to_string())).collect::<String>()
            };
            if differences.pieces.iter().all(|piece| piece.is_equal) {
                prop_assert_eq!(letters(&a), letters(&b));
            }
        }
    }
}
