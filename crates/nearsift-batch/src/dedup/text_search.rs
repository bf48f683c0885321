//! Words that texts are searched for: where a text has them, and what stands around the first.

use std::collections::VecDeque;

use memchr::memmem::Finder;
use nearsift::text::normalise::{normalise, stretches};
use serde::Serialize;

use crate::error::Error;

/// Characters of a snippet before the first word that was found, and from there on.
const BEFORE: usize = 40;
const BEHIND: usize = 120;

/// Words that a text must contain, all of them, at any place and in any order. Letter case, width, and Traditional or Simplified
/// characters count as equal; a word is found within a longer one too.
#[derive(Debug, Clone)]
pub struct WantedWords(Vec<Finder<'static>>);

/// What stands around the first word that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Snippet {
    /// The part of the text in pieces, in reading order.
    pub pieces: Vec<SnippetPiece>,
    /// Whether the text has more before it.
    pub cut_before: bool,
    /// Whether the text has more behind it.
    pub cut_behind: bool,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SnippetPiece {
    /// The text, as the document writes it.
    pub text: String,
    /// Whether it is one of the words.
    pub is_hit: bool,
}

impl WantedWords {
    /// The most words of a question.
    pub const MOST: usize = 16;

    /// The words of a question, parted by white space.
    ///
    /// # Errors
    /// No word, or more than [`MOST`](WantedWords::MOST).
    ///
    /// ```
    /// use nearsift_batch::dedup::WantedWords;
    /// assert!(WantedWords::of("漢語 ＯＫ").is_ok() && WantedWords::of(" ").is_err());
    /// ```
    pub fn of(question: &str) -> Result<WantedWords, Error> {
        let normalised = normalise(question);
        let mut words: Vec<&str> = Vec::new();
        for word in normalised.split_whitespace() {
            if !words.contains(&word) {
                words.push(word);
            }
            if words.len() > WantedWords::MOST {
                let most = WantedWords::MOST;
                return Err(Error::invalid(format!("more than {most} words to search for")));
            }
        }
        match words.is_empty() {
            true => Err(Error::invalid("no word to search for")),
            false => {
                Ok(WantedWords(words.iter().map(|word| Finder::new(word).into_owned()).collect()))
            }
        }
    }

    /// The snippet of a text that has all words.
    pub(super) fn find(&self, text: &str) -> Option<Snippet> {
        let normalised = normalise(text);
        let first = self.0[0].find(normalised.as_bytes())?;
        let has = |word: &Finder<'_>| word.find(normalised.as_bytes()).is_some();
        self.0[1..].iter().all(has).then(|| self.snippet(text, &normalised, first))
    }

    /// What stands around a place of the normalised text, with all words in it marked.
    fn snippet(&self, text: &str, normalised: &str, place: usize) -> Snippet {
        // The stretches of the snippet, with where each begins in the text and in its normalised form.
        let mut shown: VecDeque<(usize, usize)> = VecDeque::new();
        let mut ends = (0, 0);
        let mut behind = 0;
        let mut form = String::new();
        for stretch in stretches(text) {
            if behind == BEHIND {
                break;
            }
            shown.push_back(ends);
            form.clear();
            nearsift::text::normalise::normalise_into(stretch, &mut form);
            ends = (ends.0 + stretch.len(), ends.1 + form.len());
            if ends.1 > place {
                behind += 1;
            } else if shown.len() > BEFORE {
                shown.pop_front();
            }
        }
        let begin = shown.front().copied().unwrap_or_default();
        let window = &normalised.as_bytes()[begin.1..ends.1];
        let mut is_hit = vec![false; window.len()];
        for word in &self.0 {
            for at in word.find_iter(window) {
                is_hit[at..at + word.needle().len()].fill(true);
            }
        }
        let next = shown.iter().skip(1).copied().chain([ends]);
        let mut pieces: Vec<SnippetPiece> = Vec::new();
        for ((from, form_from), (to, form_to)) in shown.iter().copied().zip(next) {
            let hit = is_hit[form_from - begin.1..form_to - begin.1].contains(&true);
            match pieces.last_mut() {
                // What normalises to nothing belongs to what it stands behind.
                Some(last) if last.is_hit == hit || form_from == form_to => {
                    last.text.push_str(&text[from..to]);
                }
                _ => pieces.push(SnippetPiece { text: text[from..to].to_owned(), is_hit: hit }),
            }
        }
        Snippet { pieces, cut_before: begin.0 > 0, cut_behind: ends.0 < text.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(snippet: &Snippet) -> String {
        let piece = |piece: &SnippetPiece| match piece.is_hit {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        let text: String = snippet.pieces.iter().map(piece).collect();
        let dots = |is_cut| if is_cut { "…" } else { "" };
        format!("{}{text}{}", dots(snippet.cut_before), dots(snippet.cut_behind))
    }

    #[test]
    fn words_are_found_as_they_count_and_shown_as_they_stand() {
        let check = |question: &str, text: &str, expect: Option<&str>| {
            let words = WantedWords::of(question).expect("words");
            assert_eq!(words.find(text).as_ref().map(shown).as_deref(), expect, "{question}");
        };
        check("汉语", "今天的漢語課", Some("今天的[漢語]課"));
        check("漢語 ok", "ＯＫ，汉语", Some("[ＯＫ]，[汉语]"));
        check("news", "the NEWS\nof newsmen", Some("the [NEWS]\nof [news]men"));
        check("株", "(㈱)", Some("[(㈱])"));
        check("café", "un cafe\u{301}, deux", Some("un [cafe\u{301}], deux"));
        check("cooperate", "co\u{ad}operate", Some("[co\u{ad}operate]"));
        check("one two", "two, then one", Some("[two], then [one]"));
        check("one two", "only one", None);
        check("one one", "one", Some("[one]"));
        check("x", "", None);
        let long = format!("{}here{}", "前".repeat(1_000), "后".repeat(1_000));
        let expect = format!("…{}[here]{}…", "前".repeat(BEFORE), "后".repeat(BEHIND - 4));
        check("here", &long, Some(&expect));
        let question: String = (0..17).map(|n| format!("w{n} ")).collect();
        assert!(WantedWords::of(&question).is_err() && WantedWords::of(" \u{3000}\n").is_err());
    }
}
