//! One form for texts that mean the same: compatibility forms, lower case and simplified Chinese.
//!
//! # Definition
//! 1. NFKC, which brings full width to half width too;
//! 2. the lower case of each character (full mapping, no context, no language);
//! 3. NFC again, since lower case opens a few compositions: J with a caron has none, j with a caron
//!    is U+01F0;
//! 4. each traditional Chinese character becomes the first simplified one that OpenCC's
//!    `TSCharacters` lists for it; where that is listed itself, the end of the chain.
//!
//! Nothing is removed. The result is a fixed point: normalising it again changes nothing. Steps 2
//! and 4 go by character, so a few words differ from what a phrase dictionary would make of them;
//! both texts of a pair differ in the same way, which is all that comparing needs.
//!
//! Nearly every character of real text can be done by one look into a table of the Basic
//! Multilingual Plane that joins all four steps. A character that may combine with its neighbours,
//! or becomes several, sends the stretch it stands in through the four steps as defined.
//!
//! # References
//! Unicode Standard Annex 15, 'Unicode normalization forms'; Unicode Standard, section 3.13 (case).

use icu_normalizer::ComposingNormalizerBorrowed;

use super::script::ascii_prefix;
use super::table::{self, MAP, SLOW};

/// The version of the mapping. A character assigned in [`UNICODE_VERSION`] keeps its value as long
/// as this stays, and it belongs to every recipe that normalises.
pub const VERSION: u32 = table::VERSION;

/// The Unicode version of the compatibility forms (major, minor, patch).
pub const UNICODE_VERSION: (u8, u8, u8) = table::UNICODE_NFKC;

/// The Unicode version of lower case. Unicode promises that a pair of assigned letters never changes,
/// so a later version can differ for characters that this one does not know, and for no other.
pub const CASE_UNICODE_VERSION: (u8, u8, u8) = table::UNICODE_CASE;

/// Which steps to take. The default takes all, and is the fastest.
///
/// ```
/// use nearsift::text::normalise::{Chinese, Form, LetterCase, Steps};
/// let keep_case = Steps { case: LetterCase::Keep, ..Steps::default() };
/// assert_eq!(keep_case.normalise("ＮＥＷＳ 臺灣"), "NEWS 台湾");
/// let width_only = Steps { form: Form::HalfWidth, ..Steps::NONE };
/// assert_eq!(width_only.normalise("ＡＢＣ① 臺灣"), "ABC① 臺灣");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Steps {
    /// Compatibility forms and width.
    pub form: Form,
    /// Capital and small letters.
    pub case: LetterCase,
    /// Traditional and simplified Chinese.
    pub chinese: Chinese,
}

/// What becomes of compatibility forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// They stay.
    Keep,
    /// Full-width forms (Unicode's `<wide>`) and the ideographic space become half width.
    HalfWidth,
    /// NFKC, of which half width is a part.
    #[default]
    Nfkc,
}

/// What becomes of capital letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LetterCase {
    /// They stay.
    Keep,
    /// They become small.
    #[default]
    Lower,
}

/// What becomes of traditional Chinese characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Chinese {
    /// They stay.
    Keep,
    /// They become simplified.
    #[default]
    Simplified,
}

/// The text after all steps.
///
/// ```
/// use nearsift::text::normalise::normalise;
/// assert_eq!(normalise("臺灣ＮＥＷＳ：ﬁve ㈱"), "台湾news:five (株)");
/// ```
///
/// # Complexity
/// O(bytes). Chinese text goes at several hundred MB/s, ASCII faster; runs of combining marks go at
/// the pace of the NFKC library.
pub fn normalise(text: &str) -> String {
    let mut out = String::new();
    normalise_into(text, &mut out);
    out
}

/// Appends the text after all steps to `out`.
///
/// What `out` holds already is left alone, even where the new text begins with a combining mark.
pub fn normalise_into(text: &str, out: &mut String) {
    out.reserve(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    // Where the last stretch ended that took the slow path: no character before it is taken back.
    let mut settled = 0;
    while at < bytes.len() {
        let end = at + ascii_prefix(&bytes[at..]);
        if end > at {
            let begin = out.len();
            out.push_str(&text[at..end]);
            out[begin..].make_ascii_lowercase();
            at = end;
        }
        // Characters that stay as they are wait, to be copied together.
        let mut waiting = at;
        let mut chars = text[at..].chars();
        while let Some(c) = chars.next() {
            if c.is_ascii() {
                break;
            }
            let value = map(c);
            if value == Some(c) {
                at += c.len_utf8();
                continue;
            }
            if let Some(to) = value {
                out.push_str(&text[waiting..at]);
                out.push(to);
                at += c.len_utf8();
                waiting = at;
                continue;
            }
            let begin = at - text[settled..at].chars().next_back().map_or(0, char::len_utf8);
            if begin < waiting {
                out.pop();
            } else {
                out.push_str(&text[waiting..begin]);
            }
            let rest = &text[at..];
            at += rest.find(|c| map(c).is_some()).unwrap_or(rest.len());
            push_by_steps(&text[begin..at], Steps::default(), out);
            chars = text[at..].chars();
            waiting = at;
            settled = at;
        }
        out.push_str(&text[waiting..at]);
    }
}

/// What `c` becomes whatever stands beside it, or `None` where that cannot be said.
#[inline]
fn map(c: char) -> Option<char> {
    match u16::try_from(u32::from(c)) {
        // The table holds surrogates for SLOW only, and no surrogate is a character.
        Ok(unit) => char::from_u32(u32::from(MAP[usize::from(unit)])),
        Err(_) => table::is_inert_past_bmp(c).then_some(c),
    }
}

const _: () = assert!(char::from_u32(SLOW as u32).is_none());

impl Steps {
    /// No step: the text stays.
    pub const NONE: Steps =
        Steps { form: Form::Keep, case: LetterCase::Keep, chinese: Chinese::Keep };

    /// The text after these steps. Each set of steps is idempotent.
    ///
    /// # Complexity
    /// O(bytes); any set but all and none goes step by step, without the joint table.
    pub fn normalise(self, text: &str) -> String {
        let mut out = String::new();
        self.normalise_into(text, &mut out);
        out
    }

    /// Appends the text after these steps to `out`.
    pub fn normalise_into(self, text: &str, out: &mut String) {
        if self == Steps::default() {
            normalise_into(text, out);
        } else if self == Steps::NONE {
            out.push_str(text);
        } else {
            out.reserve(text.len());
            push_by_steps(text, self, out);
        }
    }
}

/// The definition, as it stands at the head of this module.
fn push_by_steps(text: &str, steps: Steps, out: &mut String) {
    let chars = text.chars();
    match steps.form {
        Form::Keep => push_cased(chars, steps, out),
        Form::HalfWidth => push_cased(chars.map(half_width), steps, out),
        Form::Nfkc => {
            push_cased(ComposingNormalizerBorrowed::new_nfkc().normalize_iter(chars), steps, out);
        }
    }
}

fn push_cased(chars: impl Iterator<Item = char>, steps: Steps, out: &mut String) {
    match (steps.case, steps.form) {
        (LetterCase::Keep, _) => push_chinese(chars, steps, out),
        (LetterCase::Lower, Form::Nfkc) => {
            let lower = chars.flat_map(char::to_lowercase);
            let composed = ComposingNormalizerBorrowed::new_nfc().normalize_iter(lower);
            push_chinese(composed, steps, out);
        }
        (LetterCase::Lower, _) => push_chinese(chars.flat_map(char::to_lowercase), steps, out),
    }
}

fn push_chinese(chars: impl Iterator<Item = char>, steps: Steps, out: &mut String) {
    match steps.chinese {
        Chinese::Keep => out.extend(chars),
        Chinese::Simplified => out.extend(chars.map(to_simplified)),
    }
}

fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        '\u{ffe0}' => '¢',
        '\u{ffe1}' => '£',
        '\u{ffe2}' => '¬',
        '\u{ffe3}' => '¯',
        '\u{ffe4}' => '¦',
        '\u{ffe5}' => '¥',
        '\u{ffe6}' => '₩',
        _ => c,
    }
}

/// The simplified form of a traditional Chinese character; any other character stays.
///
/// ```
/// use nearsift::text::normalise::to_simplified;
/// assert_eq!(to_simplified('龍'), '龙');
/// assert_eq!(to_simplified('龙'), '龙');
/// assert_eq!(to_simplified('A'), 'A');
/// ```
#[inline]
pub fn to_simplified(c: char) -> char {
    match c {
        // No other step changes a unified ideograph, so the joint table holds this step alone.
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => {
            map(c).unwrap_or_else(|| table::simplified_past_bmp(c).unwrap_or(c))
        }
        '\u{20000}'.. => table::simplified_past_bmp(c).unwrap_or(c),
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    /// The definition by another Unicode library than the one that made the table.
    fn oracle(text: &str) -> String {
        text.nfkc().flat_map(char::to_lowercase).nfc().map(to_simplified).collect()
    }

    #[track_caller]
    fn check_against_definition(text: &str) {
        let fast = normalise(text);
        assert_eq!(fast, oracle(text), "{text:?} = {}", text.escape_unicode());
        assert_eq!(normalise(&fast), fast, "a fixed point: {}", text.escape_unicode());
    }

    /// A toolchain that knows more letters lowers letters that the table does not know.
    fn same_letters() -> bool {
        char::UNICODE_VERSION == CASE_UNICODE_VERSION
    }

    #[test]
    fn by_example() {
        let check = |text: &str, expect: &str| assert_eq!(normalise(text), expect, "{text:?}");
        check("", "");
        check("Hello, World", "hello, world");
        check("臺灣大學", "台湾大学");
        check("ＡＢＣ１２３，。：", "abc123,。:");
        check("ｶﾞｷﾞ㌔㍻", "ガギキロ平成");
        check("ﬁ ﷺ ㈱ ½ ① Ⅷ", "fi صلى الله عليه وسلم (株) 1⁄2 1 viii");
        check("E\u{301}e\u{301}É", "ééé");
        check("J\u{30c}", "ǰ");
        check("İI", "i\u{307}i");
        check("ΣΑΣ", "σασ");
        check("각\u{1100}\u{1161}\u{11a8}", "각각");
        check("薴", "苎");
        check("\u{f900}", "岂");
        check("a\u{315}\u{300}b", "à\u{315}b");
        check("𠮷😀𝐀𐐀", "𠮷😀a𐐨");
        check("\0\u{fffd}\u{ffff}\u{10ffff}", "\0\u{fffd}\u{ffff}\u{10ffff}");
    }

    #[test]
    fn what_was_there_is_left_alone() {
        let mut out = "E".to_owned();
        normalise_into("\u{301}X", &mut out);
        assert_eq!(out, "E\u{301}x");
    }

    #[test]
    fn every_character_alone_and_between_neighbours() {
        if !same_letters() {
            return;
        }
        let mut text = String::new();
        for c in '\0'..=char::MAX {
            text.clear();
            text.extend(['A', c, '\u{301}', '\u{ac00}', c, c, '漢']);
            if normalise(&text) != oracle(&text) {
                check_against_definition(&text);
            }
            text.clear();
            text.push(c);
            check_against_definition(&text);
        }
    }

    /// One or more of every kind that can go wrong.
    const NASTY: &str = "aZ 09İßẞΣςﬁé中龍薴臺㑮𠮷𪚏ガｶﾞﾊﾟ\u{3099}\u{309a}ー가각\u{1100}\u{1161}\u{11a8}ￂￇ\
        \u{300}\u{301}\u{308}\u{30c}\u{315}\u{316}\u{323}\u{334}\u{338}\u{344}\u{345}\u{34f}ͅǰJŁΐΩΪ\
        กำ่ิ\u{9c7}\u{9be}ক\u{9bc}क़\u{93c}\u{94d}ཱི\u{f71}\u{f72}\u{f80}\u{f900}\u{2f00}㈱①½㌔Ⅷ℃㎏＝≠Å\
        \u{fb1d}\u{5b4}יﷺ\u{64b}\u{651}ا\u{653}𝐀𐐀\u{1d15e}\u{11099}\u{110ba}\u{1f130}😀\u{fe0f}\u{2f800}\u{e0101}\
        \0\u{200d}\u{feff}\u{fffd}\u{ffff}\u{378}";

    #[test]
    fn every_pair_and_triple_of_the_nasty_ones() {
        let nasty: Vec<char> = NASTY.chars().collect();
        for &a in &nasty {
            for &b in &nasty {
                check_against_definition(&String::from_iter([a, b]));
                for &c in nasty.iter().step_by(3) {
                    check_against_definition(&String::from_iter([a, b, c]));
                }
            }
        }
    }

    fn nasty_text() -> impl Strategy<Value = String> {
        let nasty: Vec<char> = NASTY.chars().collect();
        let one = prop_oneof![
            4 => proptest::sample::select(nasty),
            1 => any::<char>(),
            1 => proptest::char::range('\0', '\u{ffff}'),
        ];
        proptest::collection::vec(one, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_table_equals_the_definition(text in nasty_text()) {
            prop_assert_eq!(normalise(&text), oracle(&text));
        }

        #[test]
        fn every_set_of_steps_is_idempotent(text in nasty_text()) {
            for form in [Form::Keep, Form::HalfWidth, Form::Nfkc] {
                for case in [LetterCase::Keep, LetterCase::Lower] {
                    for chinese in [Chinese::Keep, Chinese::Simplified] {
                        let steps = Steps { form, case, chinese };
                        let once = steps.normalise(&text);
                        prop_assert_eq!(steps.normalise(&once), once, "{:?}", steps);
                    }
                }
            }
        }
    }

    #[test]
    fn steps_can_be_left_out() {
        let check = |form, case, chinese, expect: &str| {
            let steps = Steps { form, case, chinese };
            assert_eq!(steps.normalise("Ａ①　臺ﬁＺ￥ｶ"), expect, "{steps:?}");
        };
        use LetterCase as L;
        check(Form::Keep, L::Keep, Chinese::Keep, "Ａ①　臺ﬁＺ￥ｶ");
        check(Form::Keep, L::Lower, Chinese::Keep, "ａ①　臺ﬁｚ￥ｶ");
        check(Form::Keep, L::Keep, Chinese::Simplified, "Ａ①　台ﬁＺ￥ｶ");
        check(Form::HalfWidth, L::Keep, Chinese::Keep, "A① 臺ﬁZ¥ｶ");
        check(Form::HalfWidth, L::Lower, Chinese::Simplified, "a① 台ﬁz¥ｶ");
        check(Form::Nfkc, L::Keep, Chinese::Keep, "A1 臺fiZ¥カ");
        check(Form::Nfkc, L::Lower, Chinese::Keep, "a1 臺fiz¥カ");
        check(Form::Nfkc, L::Lower, Chinese::Simplified, "a1 台fiz¥カ");
    }

    #[test]
    fn to_simplified_goes_to_the_end_of_each_chain() {
        let changed: Vec<char> = ('\0'..=char::MAX).filter(|&c| to_simplified(c) != c).collect();
        // OpenCC's list has 4,113 lines, of which 8 give a character as its own first candidate.
        assert_eq!(changed.len(), 4105);
        for c in changed {
            assert_eq!(to_simplified(to_simplified(c)), to_simplified(c), "{c}");
        }
        for (from, to) in "漢語體發後麵乾㑮㒓𠁞".chars().zip("汉语体发后面干𫝈𠉂𠀾".chars())
        {
            assert_eq!(to_simplified(from), to);
        }
    }

    #[test]
    fn the_evaluation_data_normalises_as_defined() {
        let Some(data) = testkit::data_dir() else { return };
        for set in testkit::TEXT_SETS {
            for text in testkit::texts(&data.join(set)) {
                assert!(normalise(&text) == oracle(&text), "{set}: {text}");
            }
        }
    }
}
