//! How the imitated libraries cut a text into features.

use super::python;
use std::collections::HashSet;

/// All runs of `n` characters, at every character; none when the text is shorter.
pub(super) fn character_ngrams(text: &str, n: usize) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = starts.clone().chain([text.len()]).skip(n);
    starts.zip(ends).map(|(start, end)| &text[start..end])
}

/// leonsim's features: distinct 4-grams with their counts, in the order of the strings.
pub(super) fn leonsim(text: &str, mut feature: impl FnMut(&str, usize)) {
    let mut kept = python::lower(text);
    kept.retain(python::is_word);
    let mut grams: Vec<&str> = character_ngrams(&kept, 4).collect();
    if grams.is_empty() {
        grams.push(&kept);
    }
    grams.sort_unstable();
    for equal in grams.chunk_by(|a, b| a == b) {
        feature(equal[0], equal.len());
    }
}

/// data-juicer's features in mode `character`.
pub(super) fn data_juicer_character(text: &str, window: usize, feature: impl FnMut(&str)) {
    character_ngrams(&python::lower(text), window).for_each(feature);
}

/// data-juicer's features in mode `space`.
pub(super) fn data_juicer_space(text: &str, window: usize, mut feature: impl FnMut(&str)) {
    let text = python::lower(text);
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    words.windows(window).for_each(|words| feature(&words.join(" ")));
}

/// text-dedup's features, each once, in the order of their first occurrence.
pub(super) fn text_dedup(
    text: &str,
    ngram: usize,
    min_length: usize,
    mut feature: impl FnMut(&str),
) {
    let text = python::lower(text);
    let words: Vec<&str> =
        text.split(|c| !python::is_word(c)).filter(|word| !word.is_empty()).collect();
    if words.len() < min_length {
        return;
    }
    if words.len() < ngram {
        feature(&words.join(" "));
        return;
    }
    let mut seen = HashSet::new();
    for words in words.windows(ngram) {
        if !seen.contains(words) {
            seen.insert(words);
            feature(&words.join(" "));
        }
    }
}

/// The features of text-dedup 0.4.0, each once.
pub(super) fn text_dedup_char(text: &str, ngram: usize, mut feature: impl FnMut(&str)) {
    let characters = text.chars().count();
    if characters < TEXT_DEDUP_CHARACTERS {
        return;
    }
    let mut seen = HashSet::new();
    for gram in character_ngrams(text, ngram.min(characters)) {
        let gram = python::lower(gram);
        if !seen.contains(&gram) {
            feature(&gram);
            seen.insert(gram);
        }
    }
}

/// Characters of the shortest text that has features.
const TEXT_DEDUP_CHARACTERS: usize = 5;

/// gaoya's words.
pub(super) fn gaoya_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
}
