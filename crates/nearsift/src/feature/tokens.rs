//! The words of a text in every script, as features.

use crate::text::script::{Class, class};
use crate::text::words::{Lexicon, Segmenter, TextTooLong, Word, WordId};

/// A word of a text: a byte range, and the number of a dictionary word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Where it starts, in bytes.
    pub start: u32,
    /// Where it ends, in bytes, exclusive.
    pub end: u32,
    /// Its number in the lexicon, if it is there.
    pub id: Option<WordId>,
}

impl Token {
    /// The word itself, of the text that it was found in.
    #[inline]
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start as usize..self.end as usize]
    }
}

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
/// let text = "小明喝café，食べる";
/// let words: Vec<&str> = cutter.cut(text)?.iter().map(|t| t.of(text)).collect();
/// assert_eq!(words, ["小明", "喝", "café", "食", "べる"]);
/// # Ok::<(), nearsift::text::words::TextTooLong>(())
/// ```
pub struct WordCutter<'l> {
    segmenter: Segmenter<'l>,
    words: Vec<Word>,
    tokens: Vec<Token>,
}

impl<'l> WordCutter<'l> {
    /// A cutter on top of a segmenter.
    pub fn new(segmenter: Segmenter<'l>) -> WordCutter<'l> {
        WordCutter { segmenter, words: Vec::new(), tokens: Vec::new() }
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
    pub fn cut(&mut self, text: &str) -> Result<&[Token], TextTooLong> {
        self.segmenter.segment_words(text, &mut self.words)?;
        self.tokens.clear();
        let mut open: Option<(Class, u32, u32)> = None;
        for word in &self.words {
            let own = word.of(text);
            let kind = match word.id() {
                Some(_) => None,
                None => Some(own.chars().next().map_or(Class::Separator, class)),
            };
            match (kind, open) {
                (Some(kind), Some((open_kind, start, end))) if kind == open_kind && end == word.start && !is_han(own) => {
                    open = Some((kind, start, word.end));
                    continue;
                }
                _ => close(text, open.take(), &mut self.tokens),
            }
            match kind {
                Some(Class::Separator) => {}
                Some(kind) if !is_han(own) => open = Some((kind, word.start, word.end)),
                _ => self.tokens.push(Token { start: word.start, end: word.end, id: word.id() }),
            }
        }
        close(text, open, &mut self.tokens);
        Ok(&self.tokens)
    }
}

/// Ends a run of letters of scripts that the dictionary does not cover.
fn close(text: &str, open: Option<(Class, u32, u32)>, tokens: &mut Vec<Token>) {
    let Some((kind, start, end)) = open else { return };
    let run = &text[start as usize..end as usize];
    if kind == Class::Alphabetic || run.chars().nth(1).is_none() {
        tokens.push(Token { start, end, id: None });
        return;
    }
    let ends = run.char_indices().map(|(at, c)| start + (at + c.len_utf8()) as u32).skip(1);
    let starts = run.char_indices().map(|(at, _)| start + at as u32);
    tokens.extend(starts.zip(ends).map(|(start, end)| Token { start, end, id: None }));
}

/// Whether a token of the segmenter is a Chinese character outside the dictionary.
fn is_han(token: &str) -> bool {
    token.chars().next().is_some_and(|c| {
        matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_words() {
        let check = |text: &str, expect: &[&str]| {
            let mut cutter = WordCutter::new(Segmenter::new(Lexicon::embedded()));
            let found: Vec<&str> = cutter.cut(text).expect("short").iter().map(|t| t.of(text)).collect();
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
