//! Words outside the dictionary by jieba's hidden Markov model, as jieba-rs has it.

use jieba_rs::Jieba;

use super::{GUESSED, Lexicon, Word};

/// The tags that a guess may have, those of jieba's part-of-speech model, which has `m`, `eng` and
/// `x` as well.
const GUESSED_TAGS: &[&str] = &[
    "a", "ad", "ag", "an", "b", "bg", "c", "d", "df", "dg", "e", "en", "f", "g", "h", "i", "in",
    "j", "jn", "k", "l", "ln", "m", "mg", "mq", "n", "ng", "nr", "nrfg", "nrt", "ns", "nt", "nz",
    "o", "p", "q", "qe", "qg", "r", "rg", "rr", "rz", "s", "t", "tg", "u", "ud", "ug", "uj", "ul",
    "uv", "uz", "v", "vd", "vg", "vi", "vn", "vq", "w", "x", "y", "yg", "z", "zg", "eng",
];

/// The tag behind a guessed tag's index.
pub(super) fn guessed_tag(index: u32) -> &'static str {
    GUESSED_TAGS.get(index as usize).copied().unwrap_or("x")
}

/// jieba's model for words outside the dictionary, with a dictionary of its own.
///
/// Making one takes about a tenth of a second and 65 MB; share it between threads.
pub struct HiddenMarkov {
    jieba: Jieba,
}

impl HiddenMarkov {
    /// The model over the words of a lexicon.
    pub fn new(lexicon: &Lexicon) -> HiddenMarkov {
        let mut jieba = Jieba::new();
        for (word, frequency, tag) in lexicon.user_entries() {
            jieba.add_word(word, Some(frequency as usize), tag);
        }
        HiddenMarkov { jieba }
    }

    /// Appends the words of a text of at most `u32::MAX` bytes.
    pub(super) fn segment(&self, lexicon: &Lexicon, text: &str, out: &mut Vec<Word>) {
        out.extend(self.jieba.tag(text, true).into_iter().map(|tag| {
            let code = match lexicon.find(tag.word) {
                Some(id) => id.raw(),
                None => {
                    let guess = GUESSED_TAGS.iter().position(|t| *t == tag.tag);
                    GUESSED + guess.unwrap_or(GUESSED_TAGS.len()) as u32
                }
            };
            Word::new(tag.byte_start as u32, tag.byte_end as u32, code)
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::text::words::{Segmenter, UnknownWords};

    #[test]
    fn words_outside_the_dictionary_are_found_and_tagged() {
        let lexicon = Lexicon::with_user_dictionary("石墨烯 5 nz\n").unwrap();
        let model = Arc::new(HiddenMarkov::new(&lexicon));
        let text = "他来到了网易杭研大厦，买石墨烯2025abc。";
        let mut words = Vec::new();
        let unknown = UnknownWords::HiddenMarkov(Arc::clone(&model));
        let mut segmenter = Segmenter::with_unknown_words(&lexicon, unknown);
        segmenter.segment_words(text, &mut words).unwrap();
        let ours: Vec<(&str, &str)> =
            words.iter().map(|w| (w.of(text), segmenter.tag(text, w))).collect();
        let theirs: Vec<(&str, &str)> =
            model.jieba.tag(text, true).iter().map(|t| (t.word, t.tag)).collect();
        assert!(ours.contains(&("杭研", "nr")) || ours.contains(&("杭研", "nz")), "{ours:?}");
        assert_eq!(ours, theirs);
    }
}
