//! The words of a text in every script, as features.

use crate::text::script::{Class, class};
use crate::text::words::{Lexicon, Segmenter, TextTooLong, Word};

/// Cuts text of any script into words.
///
/// Chinese goes by the dictionary, exactly as jieba cuts it. What jieba leaves as single characters
/// is put together again: letters and digits of scripts with spaces become words; Kana, Hangul, Thai
/// and other scripts without spaces become pairs of neighbouring characters (a run of one character
/// is that character). Punctuation and white space are left out.
///
/// ```
/// use nearsift::feature::tokens::WordCutter;
/// use nearsift::text::words::{Lexicon, Segmenter};
/// let mut cutter = WordCutter::new(Segmenter::new(Lexicon::embedded()));
/// let text = "朋友喝café，食べる";
/// let words: Vec<&str> = cutter.cut(text)?.iter().map(|t| t.of(text)).collect();
/// assert_eq!(words, ["朋友", "喝", "café", "食", "べる"]);
/// # Ok::<(), nearsift::text::words::TextTooLong>(())
/// ```
pub struct WordCutter<'l> {
    segmenter: Segmenter<'l>,
    cut: Vec<Word>,
    words: Vec<Word>,
}

impl<'l> WordCutter<'l> {
    /// A cutter on top of a segmenter.
    pub fn new(segmenter: Segmenter<'l>) -> WordCutter<'l> {
        WordCutter { segmenter, cut: Vec::new(), words: Vec::new() }
    }

    /// The lexicon that knows the words' numbers.
    pub fn lexicon(&self) -> &'l Lexicon {
        self.segmenter.lexicon()
    }

    /// The words of a text, in order.
    ///
    /// # Errors
    /// [`TextTooLong`] for 4 GiB and more.
    ///
    /// # Complexity
    /// O(bytes).
    pub fn cut(&mut self, text: &str) -> Result<&[Word], TextTooLong> {
        self.segmenter.segment_words(text, &mut self.cut)?;
        join_unknown(text, &self.cut, &mut self.words);
        Ok(&self.words)
    }
}

/// Replaces the content of `out` by the segmenter's words with those of other scripts put together,
/// and without punctuation and white space.
pub(crate) fn join_unknown(text: &str, words: &[Word], out: &mut Vec<Word>) {
    out.clear();
    let mut open: Option<(Class, u32, u32)> = None;
    for &word in words {
        let own = word.of(text);
        let first = own.chars().next().unwrap_or(' ');
        let kind = if word.id().is_some() || is_han(first) { None } else { Some(class(first)) };
        match (kind, open) {
            (Some(kind), Some((open_kind, start, end)))
                if kind == open_kind && end == word.start =>
            {
                open = Some((kind, start, word.end));
                continue;
            }
            _ => close(text, open.take(), out),
        }
        match kind {
            Some(Class::Separator) => {}
            Some(kind) => open = Some((kind, word.start, word.end)),
            None => out.push(word),
        }
    }
    close(text, open, out);
}

/// Ends a run of letters of scripts that the dictionary does not cover.
fn close(text: &str, open: Option<(Class, u32, u32)>, out: &mut Vec<Word>) {
    let Some((kind, start, end)) = open else { return };
    let run = &text[start as usize..end as usize];
    if kind == Class::Alphabetic || run.chars().nth(1).is_none() {
        out.push(Word::unknown(start, end));
        return;
    }
    let ends = run.char_indices().map(|(at, c)| start + (at + c.len_utf8()) as u32).skip(1);
    let starts = run.char_indices().map(|(at, _)| start + at as u32);
    out.extend(starts.zip(ends).map(|(start, end)| Word::unknown(start, end)));
}

/// Whether a character is Chinese: one outside the dictionary is a word of its own.
fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_words() {
        let check = |text: &str, expect: &[&str]| {
            let mut cutter = WordCutter::new(Segmenter::new(Lexicon::embedded()));
            let found: Vec<&str> =
                cutter.cut(text).expect("short").iter().map(|t| t.of(text)).collect();
            assert_eq!(found, expect, "{text}");
        };
        check("", &[]);
        check(" ，。!", &[]);
        check("我来到北京清华大学", &["我", "来到", "北京", "清华大学"]);
        check("it's fine", &["it", "s", "fine"]);
        check("naïve café", &["naïve", "café"]);
        check("Привет, мир", &["Привет", "мир"]);
        check("ひらがな", &["ひら", "らが", "がな"]);
        check("の", &["の"]);
        check("한국어 문서", &["한국", "국어", "문서"]);
        check("ภาษา", &["ภา", "าษ", "ษา"]);
        check("第3章abc", &["第", "3", "章", "abc"]);
        check("𠀀𠀁", &["𠀀", "𠀁"]);
    }
}
