//! One form for texts that mean the same: compatibility forms, capital and small letters, simplified
//! Chinese, and no mark that a reader does without.
//!
//! # Definition
//! 1. Invisible characters are dropped: those with the property `Default_Ignorable_Code_Point`, but for
//!    U+200B, which parts words. A zero width joiner stays between two symbols (emoji), and tags stay
//!    behind U+1F3F4 (flags of regions). Where it makes a letter of Malayalam or Bengali that has a
//!    character of its own, this character takes its place;
//! 2. NFKC, which brings full width to half width too;
//! 3. letter case is folded: each character becomes the small form of its capital form (full mappings,
//!    no context, no language). So ß becomes ss, ς becomes σ and ı becomes i;
//! 4. marks that ordinary writing leaves out are dropped, after canonical decomposition: vowel signs and
//!    reading marks of Arabic, Hebrew and Syriac, signs of recitation, gemination marks of Ethiopic,
//!    letters that only stretch a word (tatweel), the accents of Greek, which capitals have not, the
//!    stress mark on Cyrillic vowels, and the dot above i and j;
//! 5. NFC;
//! 6. each traditional Chinese character becomes the first simplified one that OpenCC's
//!    `TSCharacters` lists for it; where that is listed itself, the end of the chain.
//!
//! Every other mark stays: accents of Latin letters, vowel signs of Indic scripts, Thai and the like, and
//! the voicing of kana distinguish words. The result is a fixed point: normalising it again changes
//! nothing. Steps 3 and 6 go by character, so a few words differ from what a phrase dictionary would make of
//! them; both texts of a pair differ in the same way, which is all that comparing needs.
//!
//! Nearly every character of real text can be done by one look into a table of the Basic
//! Multilingual Plane that joins all six steps. A character that may combine with its neighbours,
//! goes, or becomes several, sends the stretch it stands in through the six steps as defined.
//!
//! # References
//! Unicode Standard Annex 15, 'Unicode normalization forms'; Unicode Standard, sections 3.13 (case) and 5.21
//! (ignoring characters).

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::script::ascii_prefix;
use super::table::{self, MAP, SIGN, SLOW};

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
    /// Invisible characters, and marks that ordinary writing leaves out.
    pub optional: Optional,
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
    /// They become small, and so do small letters that share a capital with another: ß becomes ss.
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

/// What becomes of invisible characters and of marks that ordinary writing leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Optional {
    /// They stay.
    Keep,
    /// They go.
    #[default]
    Drop,
}

/// The text after all steps.
///
/// ```
/// use nearsift::text::normalise::normalise;
/// assert_eq!(normalise("臺灣ＮＥＷＳ：ﬁve ㈱"), "台湾news:five (株)");
/// assert_eq!(normalise("İSTANBUL Straße co\u{ad}operate كِتَاب"), "istanbul strasse cooperate كتاب");
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
    let mut visible = String::new();
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
            push_by_steps(&text[begin..at], &text[at..], Steps::default(), &mut visible, out);
            chars = text[at..].chars();
            waiting = at;
            settled = at;
        }
        out.push_str(&text[waiting..at]);
    }
}

/// The text in pieces whose normalised forms joined are the normalised form of the text. They say where in a text a part of its
/// normalised form stands. Most are single characters; what may combine with the character before it, goes, or becomes several is in
/// one piece with that character.
///
/// ```
/// use nearsift::text::normalise::{normalise, stretches};
/// let text = "e\u{301}漢A";
/// let parts: Vec<_> = stretches(text).map(|part| (part, normalise(part))).collect();
/// let expect = [("e\u{301}", "é"), ("漢", "汉"), ("A", "a")];
/// assert!(parts.iter().map(|(part, form)| (*part, form.as_str())).eq(expect));
/// ```
///
/// # Complexity
/// O(bytes) over the whole iteration; no allocation.
pub fn stretches(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut last = rest.chars().next()?;
        let mut end = last.len_utf8();
        for c in rest[end..].chars() {
            // A joiner looks at the character behind it.
            if last != JOINER && (c.is_ascii() || map(c).is_some()) {
                break;
            }
            last = c;
            end += c.len_utf8();
        }
        let (stretch, after) = rest.split_at(end);
        rest = after;
        Some(stretch)
    })
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
    pub const NONE: Steps = Steps {
        form: Form::Keep,
        case: LetterCase::Keep,
        chinese: Chinese::Keep,
        optional: Optional::Keep,
    };

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
            push_by_steps(text, "", self, &mut String::new(), out);
        }
    }
}

/// The definition, as it stands at the head of this module, for a text that `after` follows. `visible` is working memory.
fn push_by_steps(text: &str, after: &str, steps: Steps, visible: &mut String, out: &mut String) {
    let mut text = text;
    if steps.optional == Optional::Drop && text.contains(is_invisible) {
        visible.clear();
        drop_invisible(text, after, visible);
        text = visible;
    }
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
    match steps.case {
        LetterCase::Keep => push_marked(chars, steps, out),
        LetterCase::Lower => push_marked(chars.flat_map(fold_case), steps, out),
    }
}

fn push_marked(chars: impl Iterator<Item = char>, steps: Steps, out: &mut String) {
    match (steps.form, steps.optional) {
        (Form::Nfkc, Optional::Drop) => {
            let parts = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(chars);
            push_composed(WithoutMarks { chars: parts, base: '\0' }, steps, out);
        }
        (Form::Nfkc, Optional::Keep) => push_composed(chars, steps, out),
        (_, Optional::Drop) => push_chinese(WithoutMarks { chars, base: '\0' }, steps, out),
        (_, Optional::Keep) => push_chinese(chars, steps, out),
    }
}

fn push_composed(chars: impl Iterator<Item = char>, steps: Steps, out: &mut String) {
    push_chinese(ComposingNormalizerBorrowed::new_nfc().normalize_iter(chars), steps, out);
}

fn push_chinese(chars: impl Iterator<Item = char>, steps: Steps, out: &mut String) {
    match steps.chinese {
        Chinese::Keep => out.extend(chars),
        Chinese::Simplified => out.extend(chars.map(to_simplified)),
    }
}

/// The small form of the capital form of a character: what folding case is, but for a few letters that
/// have two capitals.
fn fold_case(c: char) -> impl Iterator<Item = char> {
    let cased = may_have_case(c);
    let itself = (!cased).then_some(c).into_iter();
    let small = cased.then(|| c.to_lowercase()).into_iter().flatten();
    itself.chain(small.flat_map(char::to_uppercase).flat_map(char::to_lowercase))
}

/// False for most characters without case, at less than the cost of asking for their mappings.
fn may_have_case(c: char) -> bool {
    !matches!(c, '\u{590}'..='\u{109f}' | '\u{1100}'..='\u{139f}' | '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{faff}')
}

/// Whether a character shows nothing by itself and parts no word: `Default_Ignorable_Code_Point` without
/// U+200B, a place where a line may end.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

const JOINER: char = '\u{200d}';
const BLACK_FLAG: char = '\u{1f3f4}';

/// Appends `text`, which `after` follows, without what is invisible and means nothing.
fn drop_invisible(text: &str, after: &str, out: &mut String) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if !is_invisible(c) {
            out.push(c);
            continue;
        }
        let mut before = out.chars().rev();
        let last = before.next();
        match c {
            JOINER => {
                let next = chars.clone().next().or_else(|| after.chars().next());
                if let Some(letter) = joined_letter(before.next(), last) {
                    out.truncate(out.len() - 2 * letter.len_utf8());
                    out.push(letter);
                } else if last.is_some_and(is_symbol) && next.is_some_and(is_symbol) {
                    out.push(c);
                }
            }
            '\u{e0020}'..='\u{e007f}'
                if last.is_some_and(|last| last == BLACK_FLAG || is_tag(last)) =>
            {
                out.push(c);
            }
            _ => {}
        }
    }
}

/// Whether a character is a tag, as in the flags of regions.
pub(super) fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0020}'..='\u{e007f}')
}

/// Whether a character is an emoji or another symbol that no step changes.
fn is_symbol(c: char) -> bool {
    c >= '\u{2190}' && table::class_bits(c) == SIGN && map(c) == Some(c)
}

/// The character of a letter that older texts write as a consonant, a virama and a zero width joiner. All of these
/// take three bytes.
fn joined_letter(consonant: Option<char>, virama: Option<char>) -> Option<char> {
    Some(match (consonant?, virama?) {
        ('\u{9a4}', '\u{9cd}') => '\u{9ce}',
        ('\u{d23}', '\u{d4d}') => '\u{d7a}',
        ('\u{d28}', '\u{d4d}') => '\u{d7b}',
        ('\u{d30}', '\u{d4d}') => '\u{d7c}',
        ('\u{d32}', '\u{d4d}') => '\u{d7d}',
        ('\u{d33}', '\u{d4d}') => '\u{d7e}',
        ('\u{d15}', '\u{d4d}') => '\u{d7f}',
        _ => return None,
    })
}

/// Folded characters without the marks that ordinary writing leaves out.
struct WithoutMarks<I> {
    chars: I,
    /// The letter that marks belong to.
    base: char,
}

impl<I: Iterator<Item = char>> Iterator for WithoutMarks<I> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let c = self.chars.next()?;
            if is_optional(c) {
                continue;
            }
            if !matches!(c, '\u{300}'..='\u{36f}') {
                self.base = c;
            } else if is_optional_on(self.base, c) {
                continue;
            }
            return Some(c);
        }
    }
}

/// Whether ordinary writing leaves a character out, whatever letter it stands on.
fn is_optional(c: char) -> bool {
    matches!(c,
        // Hebrew: accents and points.
        '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{fb1e}'
        // Arabic: vowel signs and Koranic marks, not the marks that are part of a letter (madda, hamza).
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{652}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}' | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{8ca}'..='\u{8e1}'
        | '\u{8f0}'..='\u{8f2}'
        // Syriac: points.
        | '\u{711}' | '\u{730}'..='\u{74a}'
        // Vedic: tones.
        | '\u{951}'..='\u{954}' | '\u{1cd0}'..='\u{1cd2}' | '\u{1cd4}'..='\u{1ce0}' | '\u{1ce2}'..='\u{1ce8}'
        // Ethiopic: length of vowels and consonants.
        | '\u{135d}'..='\u{135f}'
        // What stretches a word: Arabic, N'Ko, Mongolian.
        | '\u{640}' | '\u{7fa}' | '\u{180a}')
}

/// Whether ordinary writing, or writing in capitals, leaves a mark out on this letter.
fn is_optional_on(base: char, mark: char) -> bool {
    match base {
        'i' | 'j' => mark == '\u{307}',
        'α' | 'ε' | 'η' | 'ι' | 'ο' | 'ρ' | 'υ' | 'ω' => {
            matches!(
                mark,
                '\u{300}'
                    | '\u{301}'
                    | '\u{304}'
                    | '\u{306}'
                    | '\u{308}'
                    | '\u{313}'
                    | '\u{314}'
                    | '\u{342}'
            )
        }
        'а' | 'е' | 'и' | 'о' | 'у' | 'ы' | 'э' | 'ю' | 'я' | 'є' | 'і' => {
            mark == '\u{301}'
        }
        _ => false,
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
    use icu_properties::CodePointSetData;
    use icu_properties::props::DefaultIgnorableCodePoint;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    /// The definition by another Unicode library than the one that made the table, a step at a time.
    fn oracle(text: &str) -> String {
        let mut visible = String::new();
        drop_invisible(text, "", &mut visible);
        let small = visible.nfkc().flat_map(char::to_lowercase);
        let parts = small.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd();
        WithoutMarks { chars: parts, base: '\0' }.nfc().map(to_simplified).collect()
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
        check("İIıi", "iiii");
        check("ΣΑΣ σας", "σασ σασ");
        check("STRASSE Straße", "strasse strasse");
        check("각\u{1100}\u{1161}\u{11a8}", "각각");
        check("薴", "苎");
        check("\u{f900}", "岂");
        check("a\u{315}\u{300}b", "à\u{315}b");
        check("𠮷😀𝐀𐐀", "𠮷😀a𐐨");
        check("\0\u{fffd}\u{ffff}\u{10ffff}", "\0\u{fffd}\u{ffff}\u{10ffff}");
    }

    #[test]
    fn invisible_characters_are_those_of_the_property() {
        let property = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for c in '\0'..=char::MAX {
            let expect = property.contains(c) && c != '\u{200b}';
            assert_eq!(is_invisible(c), expect, "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn invisible_characters_part_no_word() {
        let property = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for c in property.iter_ranges().flatten().filter_map(char::from_u32) {
            for (text, expect) in [
                ("über|raschung", "überraschung"),
                ("e|\u{301}t|é", "été"),
                ("近|似", "近似"),
                ("|", ""),
            ] {
                let found = normalise(&text.replace('|', c.encode_utf8(&mut [0; 4])));
                assert_eq!(found == expect, c != '\u{200b}', "U+{:04X}", u32::from(c));
            }
        }
        let check = |text: &str, expect: &str| assert_eq!(normalise(text), expect, "{text:?}");
        check("می\u{200c}خواهم", "میخواهم");
        check("ශ\u{dca}\u{200d}ර\u{dd3}", "ශ\u{dca}ර\u{dd3}");
        check("\u{202b}עברית\u{202c}\u{200f}", "עברית");
        check("葛\u{e0100}城", "葛城");
        // An invisible joiner makes a letter of its own.
        check("അവന\u{d4d}\u{200d}", "അവൻ");
        check("অর\u{9cd}থাৎ অর\u{9cd}থাত\u{9cd}\u{200d}", "অর\u{9cd}থাৎ অর\u{9cd}থাৎ");
        // What distinguishes emoji stays, and their presentation does not.
        check("❤\u{fe0f} 👩\u{200d}💻 👩\u{200d}🌾", "❤ 👩\u{200d}💻 👩\u{200d}🌾");
        check("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴\u{e0067}\u{e0062}\u{e007f}");
        check("a\u{200d}👩 👩\u{200d}a +\u{200d}+ a\u{e0067}\u{e007f}", "a👩 👩a ++ a");
    }

    #[test]
    fn a_headline_in_capitals_is_the_same() {
        for text in [
            "İstanbul'da ılık bir kış günü, Iğdır'da ise kar: ışıklar söndü",
            "Bakı şəhərində İlham və Işıq",
            "Große Straßen, süße Grüße: Maß für Maß",
            "Ο Οδυσσέας ταξίδεψε μακριά, στους δρόμους της Ιθάκης· Μάιος, προϊόν, ρΰαξ",
            "Čia yra įdomus žodis: ėjo į mišką",
            "L'été à Noël, où l'œuvre naît",
            "Dziś ćma źle śpi",
            "Երևան, Հայաստան",
            "Съешь ещё этих мягких французских булок",
            "Đường phố Hà Nội",
            "ﬁve oﬃces ŉ ǰ ẞ ſ µ ᾳ ῴ",
        ] {
            let capitals: String = text.chars().flat_map(char::to_uppercase).collect();
            assert_eq!(normalise(&capitals), normalise(text), "{text}");
        }
        // Languages with rules of their own.
        let check = |a: &str, b: &str| assert_eq!(normalise(a), normalise(b), "{a} {b}");
        check("İZMİR LİMANI AÇILDI", "İzmir limanı açıldı");
        check("ΣΤΟΥΣ ΔΡΟΜΟΥΣ ΤΗΣ ΙΘΑΚΗΣ, ΜΑΪΟΣ", "στους δρόμους της Ιθάκης, Μάιος");
        check("i\u{307}\u{301}j\u{328}\u{307}", "íj\u{328}");
    }

    #[test]
    fn marks_that_ordinary_writing_leaves_out() {
        let check = |text: &str, expect: &str| assert_eq!(normalise(text), expect, "{text:?}");
        check("كَتَبَ الطَّالِبُ دَرْسًا فِي هٰذَا البَيْتِ", "كتب الطالب درسا في هذا البيت");
        check("قـــواعد اللغـة", "قواعد اللغة");
        check("ﷲ ﹶ ﱠ", "الله    ");
        check("قُلۡ هُوَ ٱللَّهُ أَحَدٌۖ", "قل هو ٱلله أحد");
        check("בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים", "בראשית ברא אלהים");
        check("שׁ שׂ \u{fb2a}\u{fb4b}", "ש ש שו");
        check("ܡܰܠܟܳܐ", "ܡܠܟܐ");
        check("अग्नि\u{951}मी\u{952}ळे", "अग्निमीळे");
        check("Москва\u{301} за\u{301}мок", "москва замок");
        check("ἐν ἀρχῇ ἦν ὁ λόγος", "εν αρχηι ην ο λογοσ");
    }

    #[test]
    fn marks_that_distinguish_words_stay() {
        let check =
            |text: &str| assert_eq!(normalise(text), text.nfkc().collect::<String>(), "{text:?}");
        check("हिन्दी की किताब में ज़मीन और चाँद");
        check("ภาษาไทย ที่นี่ น้ำ ก็");
        check("বাংলা ভাষা தமிழ் నెలలు ಕನ್ನಡ മലയാളം සිංහල ខ្មែរ မြန်မာ བོད་ཡིག");
        check("がぎぐ は\u{3099} パ");
        check("أإآؤئ ٱ");
        check("été ñandú über žluťoučký kůň ơ ư ế");
        check("ёлка йод їжак ѓ ќ и\u{300}");
        check("ދިވެހި ߒߞߏ\u{7eb}");
    }

    #[test]
    fn only_what_has_no_case_is_passed_by() {
        for c in ('\0'..=char::MAX).filter(|&c| !may_have_case(c)) {
            assert!(c.to_lowercase().eq([c]) && c.to_uppercase().eq([c]), "U+{:04X}", u32::from(c));
        }
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
        \0\u{200d}\u{feff}\u{fffd}\u{ffff}\u{378}\u{ad}\u{200b}\u{200c}ıȷßſ\u{307}їёέᾳᾴ\u{342}و\u{640}\u{670}ש\u{5c1}\
        ന\u{d4d}ত\u{9cd}👩💻❤\u{1f3f4}\u{e0067}\u{e007f}㈱\u{1d175}\u{3164}";

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
        fn stretches_normalise_by_themselves(text in nasty_text()) {
            let parts: Vec<&str> = stretches(&text).collect();
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert_eq!(parts.iter().map(|part| normalise(part)).collect::<String>(), normalise(&text));
        }

        #[test]
        fn the_table_equals_the_definition(text in nasty_text()) {
            prop_assert_eq!(normalise(&text), oracle(&text));
        }

        #[test]
        fn every_set_of_steps_is_idempotent(text in nasty_text()) {
            for form in [Form::Keep, Form::HalfWidth, Form::Nfkc] {
                for case in [LetterCase::Keep, LetterCase::Lower] {
                    for chinese in [Chinese::Keep, Chinese::Simplified] {
                        for optional in [Optional::Keep, Optional::Drop] {
                            let steps = Steps { form, case, chinese, optional };
                            let once = steps.normalise(&text);
                            prop_assert_eq!(steps.normalise(&once), once, "{:?}", steps);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn steps_can_be_left_out() {
        let check = |form, case, chinese, expect: &str| {
            let steps = Steps { form, case, chinese, optional: Optional::Keep };
            assert_eq!(
                steps.normalise("Ａ①　臺ﬁＺ￥ｶ\u{ad}"),
                format!("{expect}\u{ad}"),
                "{steps:?}"
            );
        };
        use LetterCase as L;
        check(Form::Keep, L::Keep, Chinese::Keep, "Ａ①　臺ﬁＺ￥ｶ");
        check(Form::Keep, L::Lower, Chinese::Keep, "ａ①　臺fiｚ￥ｶ");
        check(Form::Keep, L::Keep, Chinese::Simplified, "Ａ①　台ﬁＺ￥ｶ");
        check(Form::HalfWidth, L::Keep, Chinese::Keep, "A① 臺ﬁZ¥ｶ");
        check(Form::HalfWidth, L::Lower, Chinese::Simplified, "a① 台fiz¥ｶ");
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
