//! How a character's script writes words: the question that decides between character n-grams and
//! words as features.

use super::normalise::is_tag;
use super::table::{self, SIGN};

/// What a character is to feature extraction.
///
/// A combining mark is of its script's class, so a Thai vowel sign or a Devanagari matra never parts
/// a word; a mark or letter that several scripts share is [`Unspaced`](Class::Unspaced) when all of
/// them are (the prolonged sound mark of Hiragana and Katakana), else
/// [`Alphabetic`](Class::Alphabetic).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Anything but a letter, mark or number: space, punctuation, symbol, control, variation selector.
    Separator,
    /// A letter, mark or number of a script that parts words by spaces. ASCII digits are here.
    Alphabetic,
    /// A letter, mark or number of a script that does not, or whose words carry their particles
    /// so that character n-grams serve better: Han, Bopomofo, Hiragana, Katakana, Hangul, Yi, Nushu,
    /// Tangut, Khitan, Thai, Lao, Khmer, Myanmar, Tibetan, Tai Le, New Tai Lue, Tai Tham, Tai Viet,
    /// Ahom, Javanese, Balinese and Buginese.
    Unspaced,
}

/// The class of a character, normalised or not.
///
/// ```
/// use nearsift::text::script::{Class, class};
/// assert_eq!(class('国'), Class::Unspaced);
/// assert_eq!(class('ー'), Class::Unspaced);
/// assert_eq!(class('é'), Class::Alphabetic);
/// assert_eq!(class('7'), Class::Alphabetic);
/// assert_eq!(class('。'), Class::Separator);
/// ```
///
/// # Complexity
/// Two table reads; the tables take 13 KB, of which one script touches few lines.
///
/// # References
/// Unicode Standard Annex 24, 'Unicode script property', with script extensions; General_Category.
#[inline]
pub fn class(c: char) -> Class {
    match table::class_bits(c) {
        0 | SIGN => Class::Separator,
        1 => Class::Alphabetic,
        _ => Class::Unspaced,
    }
}

/// Whether a character that is no letter carries meaning by itself: a mathematical or currency sign or another symbol
/// (general categories Sm, Sc and So, but for what stands for a character or object that is not there), a percent or permille
/// sign, a colour of skin, and what joins or completes emoji of several characters.
#[inline]
pub(crate) fn is_sign(c: char) -> bool {
    table::class_bits(c) == SIGN || c == '\u{200d}' || is_tag(c)
}

/// A stretch of characters of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// The class of each of its characters.
    pub class: Class,
    /// The stretch: never empty.
    pub text: &'a str,
}

/// The text as runs, each as long as it can be; joined they are the text again.
///
/// ```
/// use nearsift::text::script::{Class, Run, runs};
/// let of: Vec<_> = runs("用rust写的").map(|run| (run.class, run.text)).collect();
/// use Class::*;
/// assert_eq!(of, [(Unspaced, "用"), (Alphabetic, "rust"), (Unspaced, "写的")]);
/// ```
///
/// # Complexity
/// O(bytes) over the whole iteration; no allocation.
pub fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = class(rest.chars().next()?);
        let end = rest.char_indices().find(|&(_, c)| class(c) != first).map_or(rest.len(), |f| f.0);
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(Run { class: first, text: run })
    })
}

/// The number of ASCII bytes that come first.
pub(crate) fn ascii_prefix(bytes: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let high = u64::from_le_bytes(*word) & HIGH;
        if high != 0 {
            return 8 * at + high.trailing_zeros() as usize / 8;
        }
    }
    8 * words.len() + rest.iter().take_while(|byte| byte.is_ascii()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::char::is_combining_mark;
    use unicode_script::{Script, UnicodeScript};

    const UNSPACED: [Script; 22] = [
        Script::Han,
        Script::Bopomofo,
        Script::Hiragana,
        Script::Katakana,
        Script::Hangul,
        Script::Yi,
        Script::Nushu,
        Script::Tangut,
        Script::Khitan_Small_Script,
        Script::Thai,
        Script::Lao,
        Script::Khmer,
        Script::Myanmar,
        Script::Tibetan,
        Script::Tai_Le,
        Script::New_Tai_Lue,
        Script::Tai_Tham,
        Script::Tai_Viet,
        Script::Ahom,
        Script::Javanese,
        Script::Balinese,
        Script::Buginese,
    ];

    fn oracle(c: char) -> Class {
        let selector = matches!(u32::from(c),
            0x34f | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0xfe00..=0xfe0f | 0xe0100..=0xe01ef);
        let in_word = c.is_alphanumeric() || is_combining_mark(c);
        let scripts: Vec<Script> = c.script_extension().iter().collect();
        let shared = matches!(c.script(), Script::Common | Script::Inherited);
        match () {
            () if selector || !in_word => Class::Separator,
            () if UNSPACED.contains(&c.script()) => Class::Unspaced,
            () if !shared || scripts.is_empty() => Class::Alphabetic,
            () if scripts.iter().all(|s| UNSPACED.contains(s)) => Class::Unspaced,
            () => Class::Alphabetic,
        }
    }

    #[test]
    fn every_character_is_classed_as_its_properties_say() {
        if char::UNICODE_VERSION != table::UNICODE_CASE {
            return;
        }
        for c in '\0'..=char::MAX {
            assert_eq!(class(c), oracle(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn characters_people_know() {
        let check = |text: &str, expect: Class| {
            for c in text.chars() {
                assert_eq!(class(c), expect, "{c:?}");
            }
        };
        check(
            "汉字〇々𠮷ひらカターㄅ한국ไทยก็ำລາວខ្មែរမြန်မာབོད་".trim_end_matches('་'),
            Class::Unspaced,
        );
        check("ゝヽ\u{3099}๑๒", Class::Unspaced);
        check("azAZ09éßЖעבعربيहिन्दीमराठीಕನ್ನಡ\u{301}²½Ⅷ", Class::Alphabetic);
        check(
            " \0\n\u{3000}，。、・「」！+-_€©😀\u{200b}\u{200d}\u{fe0f}\u{e0101}་",
            Class::Separator,
        );
    }

    proptest! {
        #[test]
        fn ascii_ends_at_the_first_other_byte(text in "[ab]{0,40}(中[a中]{0,9})?") {
            let expect = text.bytes().take_while(u8::is_ascii).count();
            prop_assert_eq!(ascii_prefix(text.as_bytes()), expect);
        }

        #[test]
        fn runs_partition_the_text(text in "[a-c汉字 ,\u{301}ไ่]{0,30}|\\PC{0,20}") {
            let runs: Vec<_> = runs(&text).collect();
            prop_assert_eq!(runs.iter().map(|r| r.text).collect::<String>(), &*text);
            for run in &runs {
                prop_assert!(!run.text.is_empty());
                prop_assert!(run.text.chars().all(|c| class(c) == run.class));
            }
            for pair in runs.windows(2) {
                prop_assert_ne!(pair[0].class, pair[1].class);
            }
        }
    }
}
