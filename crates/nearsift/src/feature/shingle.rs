//! Shingles: contiguous runs of characters or words.
//!
//! # References
//! Broder, 'On the resemblance and containment of documents', SEQUENCES 1997, section 2.

use std::ops::Range;

use super::signs::{Sign, push_signs};
use crate::text::script::{Class, ascii_prefix, class};
use crate::text::words::{MAX_TEXT_BYTES, TextTooLong};

/// Text reduced to its letters and digits, cut into stretches of one kind of script.
///
/// Punctuation and spaces are dropped, so that an edit of them changes nothing. A *stretch* is a
/// maximal range of one [`Class`]; a *word* is a maximal range of letters and digits of a script that
/// is written with spaces, and every word lies within one stretch.
///
/// ```
/// use nearsift::feature::shingle::Reduced;
/// let mut reduced = Reduced::default();
/// reduced.fill("我用 rust 语言，it is fast。")?;
/// assert_eq!(reduced.text(), "我用rust语言itisfast");
/// assert_eq!(reduced.words().collect::<Vec<_>>(), ["rust", "it", "is", "fast"]);
/// # Ok::<(), nearsift::text::words::TextTooLong>(())
/// ```
#[derive(Debug, Default, Clone)]
pub struct Reduced {
    text: String,
    stretches: Vec<(Class, Range<u32>)>,
    words: Vec<Range<u32>>,
    signs: Vec<Sign>,
    ascii: AsciiPart,
}

/// A part of a run of ASCII, without what separates its words.
#[derive(Debug, Default, Clone)]
struct AsciiPart {
    kept: Vec<u8>,
    /// Where words begin and end by turns.
    turns: Vec<u32>,
}

/// Bytes of ASCII that are reduced at a time.
const ASCII_PART: usize = 256;

/// A run of ASCII that is shorter, as between Han characters, goes by stretches of one class.
const SHORT_ASCII: usize = 16;

impl Reduced {
    /// Replaces the content by the reduced form of a normalised text.
    ///
    /// # Errors
    /// [`TextTooLong`] past [`MAX_TEXT_BYTES`]: places are kept in 32 bits. Nothing is left then.
    ///
    /// # Complexity
    /// O(bytes) time; the memory is reused from call to call.
    pub fn fill(&mut self, normalised: &str) -> Result<(), TextTooLong> {
        self.text.clear();
        self.stretches.clear();
        self.words.clear();
        self.signs.clear();
        if normalised.len() > MAX_TEXT_BYTES {
            return Err(TextTooLong { bytes: normalised.len() });
        }
        self.text.reserve(normalised.len());
        let mut current = Class::Separator;
        let mut in_word = false;
        let mut rest = normalised;
        // Run by run: what is copied at once costs little.
        loop {
            let ascii = ascii_prefix(rest.as_bytes());
            if ascii >= SHORT_ASCII {
                let (run, after) = rest.split_at(ascii);
                rest = after;
                let at = self.text.len() as u32;
                in_word = self.push_ascii(run.as_bytes(), in_word);
                let end = self.text.len() as u32;
                match self.stretches.last_mut() {
                    _ if at == end => {}
                    Some((_, stretch)) if current == Class::Alphabetic => stretch.end = end,
                    _ => self.stretches.push((Class::Alphabetic, at..end)),
                }
                if at < end {
                    current = Class::Alphabetic;
                }
                continue;
            }
            let Some((class, run, after)) = next_run(rest) else { break };
            rest = after;
            if class == Class::Separator {
                in_word = false;
                continue;
            }
            let at = self.text.len() as u32;
            self.text.push_str(run);
            let end = self.text.len() as u32;
            match self.stretches.last_mut() {
                Some((_, stretch)) if class == current => stretch.end = end,
                _ => {
                    self.stretches.push((class, at..end));
                    current = class;
                    in_word = false;
                }
            }
            if class == Class::Alphabetic {
                match self.words.last_mut() {
                    Some(word) if in_word => word.end = end,
                    _ => self.words.push(at..end),
                }
                in_word = true;
            }
        }
        push_signs(normalised, &mut self.signs);
        Ok(())
    }

    /// Appends the letters and digits of a run of ASCII, and its words; the first goes on with the last word so
    /// far when `in_word`. Returns whether the run ends in a word.
    ///
    /// Where words end no processor can guess, so that no branch asks: both a letter and a turn are written
    /// and overwritten by what comes next where they are none.
    fn push_ascii(&mut self, run: &[u8], mut in_word: bool) -> bool {
        let Reduced { text, words, ascii: AsciiPart { kept, turns }, .. } = self;
        kept.resize(ASCII_PART, 0);
        turns.resize(ASCII_PART, 0);
        let (kept, turns) = (&mut kept[..ASCII_PART], &mut turns[..ASCII_PART]);
        for part in run.chunks(ASCII_PART) {
            let (mut letters, mut turned) = (0, 0);
            let mut in_letters = in_word;
            for &byte in part {
                let is_letter = LETTERS[usize::from(byte)];
                // There are at most as many of both as bytes before this one.
                kept[letters % ASCII_PART] = byte;
                turns[turned % ASCII_PART] = letters as u32;
                letters += usize::from(is_letter);
                turned += usize::from(is_letter != in_letters);
                in_letters = is_letter;
            }
            let base = text.len() as u32;
            text.push_str(std::str::from_utf8(&kept[..letters]).unwrap_or_default());
            let mut turns = turns[..turned].iter().map(|turn| base + turn);
            if in_word && let Some(word) = words.last_mut() {
                word.end = turns.next().unwrap_or(text.len() as u32);
            }
            while let Some(start) = turns.next() {
                words.push(start..turns.next().unwrap_or(text.len() as u32));
            }
            in_word = in_letters;
        }
        in_word
    }

    /// The bytes of text that it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// The reduced text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The stretches in order, each with its class.
    pub fn stretches(&self) -> impl Iterator<Item = (Class, &str)> {
        self.stretches.iter().map(|(class, range)| (*class, self.slice(range)))
    }

    /// The words of scripts that are written with spaces, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|range| self.slice(range))
    }

    /// The signs that distinguish texts of the same letters, in order, each with the number of bytes of the reduced
    /// text before it: mathematical and currency signs, symbols and emoji, a minus before a number, signs attached to a word
    /// (`C#`, `AT&T`).
    ///
    /// ```
    /// use nearsift::feature::shingle::Reduced;
    /// let mut reduced = Reduced::default();
    /// reduced.fill("c# at -5 °c, and more.")?;
    /// assert_eq!(reduced.signs().collect::<Vec<_>>(), [(1, '#'), (3, '\u{2212}'), (4, '°')]);
    /// # Ok::<(), nearsift::text::words::TextTooLong>(())
    /// ```
    pub fn signs(&self) -> impl Iterator<Item = (u32, char)> {
        self.signs.iter().copied()
    }

    /// Where in the reduced text they are.
    pub(super) fn places_of_words(&self) -> &[Range<u32>] {
        &self.words
    }

    fn slice(&self, range: &Range<u32>) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }
}

/// The longest run of one class that the text begins with, and what comes after it. A run of ASCII and
/// the run of other letters after it may be of one class.
#[inline]
fn next_run(text: &str) -> Option<(Class, &str, &str)> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    let (own, end) = if first.is_ascii() {
        let own = ASCII[usize::from(first)];
        let same = |&&b: &&u8| b.is_ascii() && ASCII[usize::from(b)] == own;
        (own, bytes.iter().take_while(same).count())
    } else {
        let own = text.chars().next().map_or(Class::Separator, class);
        let mut at = 0;
        while let Some(first) = bytes.get(at).filter(|first| !first.is_ascii()) {
            if own == Class::Unspaced && is_han([*first, bytes[at + 1]]) {
                at += han_prefix(&bytes[at..]);
                continue;
            }
            match text[at..].chars().next().filter(|&c| class(c) == own) {
                Some(c) => at += c.len_utf8(),
                None => break,
            }
        }
        (own, at)
    };
    let (run, after) = text.split_at(end);
    Some((own, run, after))
}

/// The length in bytes of the characters from U+4E00 to U+9FBF that valid UTF-8 begins with: nearly all
/// Han characters, told by their first two bytes.
pub(super) fn han_prefix(bytes: &[u8]) -> usize {
    3 * bytes.as_chunks::<3>().0.iter().take_while(|c| is_han([c[0], c[1]])).count()
}

/// Whether these are the first two bytes of U+4E00 to U+9FBF, all of which are Han.
#[inline]
pub(super) fn is_han(first: [u8; 2]) -> bool {
    (0xe4b8..=0xe9be).contains(&u16::from_be_bytes(first))
}

/// The class of each ASCII character: no punctuation is a letter, and no letter is unspaced.
const ASCII: [Class; 128] = {
    let mut classes = [Class::Separator; 128];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            classes[byte] = Class::Alphabetic;
        }
        byte += 1;
    }
    classes
};

/// Whether an ASCII character is a letter or digit; all other bytes are none.
pub(super) const LETTERS: [bool; 256] = {
    let mut letters = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        letters[byte] = matches!(ASCII[byte], Class::Alphabetic);
        byte += 1;
    }
    letters
};

/// Calls `each` with every run of `n` consecutive characters, in order. A text of fewer than `n`
/// characters has none.
///
/// # Panics
/// When `n` is 0.
///
/// # Complexity
/// O(characters), whatever `n`.
#[inline]
pub fn char_shingles<'t>(text: &'t str, n: usize, mut each: impl FnMut(&'t str)) {
    assert!(n > 0, "a shingle has at least one character");
    let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).skip(n - 1);
    let starts = text.char_indices().map(|(at, _)| at);
    for (start, end) in starts.zip(&mut ends) {
        each(&text[start..end]);
    }
}

/// Calls `each` with every run of `n` consecutive words joined by one space, in order. Fewer than `n`
/// words, but at least one, give one shingle of them all.
///
/// # Panics
/// When `n` is 0.
///
/// # Complexity
/// O(n x bytes).
pub fn word_shingles(words: &[&str], n: usize, joined: &mut String, mut each: impl FnMut(&str)) {
    assert!(n > 0, "a shingle has at least one word");
    if words.is_empty() {
        return;
    }
    for window in words.windows(n.min(words.len())) {
        joined.clear();
        for (position, word) in window.iter().enumerate() {
            if position > 0 {
                joined.push(' ');
            }
            joined.push_str(word);
        }
        each(joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive_shingles(text: &str, n: usize) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters.windows(n).map(|w| w.iter().collect()).collect()
    }

    #[test]
    fn reduced() {
        let check = |text: &str, kept: &str, stretches: &[&str], words: &[&str]| {
            let mut reduced = Reduced::default();
            // What was there before leaves no trace.
            reduced.fill("前 before 前").expect("short");
            reduced.fill(text).expect("short");
            assert_eq!(reduced.text(), kept);
            assert_eq!(reduced.stretches().map(|s| s.1).collect::<Vec<_>>(), stretches);
            assert_eq!(reduced.words().collect::<Vec<_>>(), words);
        };
        check("", "", &[], &[]);
        check("。，! \n", "", &[], &[]);
        check("今天，晴。", "今天晴", &["今天晴"], &[]);
        check("it's 5pm", "its5pm", &["its5pm"], &["it", "s", "5pm"]);
        check("用iphone 15拍照", "用iphone15拍照", &["用", "iphone15", "拍照"], &["iphone", "15"]);
        check("abc中", "abc中", &["abc", "中"], &["abc"]);
        check("日本語のテスト", "日本語のテスト", &["日本語のテスト"], &[]);
        check("한국어 문서", "한국어문서", &["한국어문서"], &[]);
        check("ภาษาไทย", "ภาษาไทย", &["ภาษาไทย"], &[]);
    }

    #[test]
    fn word_shingles_join_by_one_space() {
        let check = |words: &[&str], n, expect: &[&str]| {
            let mut found = Vec::new();
            word_shingles(words, n, &mut String::new(), |s| found.push(s.to_owned()));
            assert_eq!(found, expect);
        };
        check(&[], 2, &[]);
        check(&["a"], 2, &["a"]);
        check(&["a", "b", "c"], 1, &["a", "b", "c"]);
        check(&["a", "b", "c"], 2, &["a b", "b c"]);
        check(&["a", "b", "c"], 9, &["a b c"]);
    }

    #[test]
    fn ascii_has_the_classes_of_the_table() {
        for byte in 0..128u8 {
            assert_eq!(ASCII[usize::from(byte)], class(char::from(byte)), "{byte}");
        }
    }

    #[test]
    fn first_bytes_tell_han() {
        for c in '\u{800}'..='\u{ffff}' {
            let first = *c.to_string().as_bytes().first_chunk().expect("three bytes");
            let is_han = is_han(first);
            assert_eq!(is_han, ('\u{4e00}'..='\u{9fbf}').contains(&c));
            if is_han {
                assert_eq!(class(c), Class::Unspaced, "{c}");
            }
        }
    }

    proptest! {
        #[test]
        fn char_shingles_equal_windows(text in "[a中é😀 ]{0,40}", n in 1usize..8) {
            let mut found = Vec::new();
            char_shingles(&text, n, |s| found.push(s.to_owned()));
            prop_assert_eq!(found, naive_shingles(&text, n));
        }

        #[test]
        fn stretches_cover_the_reduced_text(
            text in "[ab1 ,.中文。のア한ไท😀]{0,60}|([a-z0-9 .,]{0,300}[é中。]{0,3}){0,4}",
        ) {
            let mut reduced = Reduced::default();
            reduced.fill(&text).expect("short");
            let kept: String = text.chars().filter(|c| class(*c) != Class::Separator).collect();
            prop_assert_eq!(reduced.text(), kept.as_str());
            prop_assert_eq!(reduced.stretches().map(|s| s.1).collect::<String>(), kept);
            for (own, stretch) in reduced.stretches() {
                prop_assert!(!stretch.is_empty());
                prop_assert!(stretch.chars().all(|c| class(c) == own));
            }
            let words: Vec<String> = text
                .split(|c| class(c) != Class::Alphabetic)
                .filter(|w| !w.is_empty())
                .map(str::to_owned)
                .collect();
            prop_assert_eq!(reduced.words().map(str::to_owned).collect::<Vec<_>>(), words);
        }
    }
}
