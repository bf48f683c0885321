//! The features that suit a text's scripts: character n-grams where words are written without
//! spaces, words and character n-grams elsewhere.
//!
//! A [`Class::Unspaced`] stretch of a reduced text gives its 2- and 3-grams (a stretch of one
//! character gives that character), any other stretch its 5-grams, and every word of a script that is
//! written with spaces is a feature besides. A mixed text gets both, stretch by stretch.

use super::hash::{hash_pairs_and_triples, hash_parts};
use super::shingle::{Reduced, char_shingles};
use super::{hash_char_shingles, hash_token};
use crate::text::script::Class;

/// Calls `each` with every occurrence of a feature: first those of the stretches in order, then the
/// words.
///
/// ```
/// use nearsift::feature::by_script;
/// use nearsift::feature::shingle::Reduced;
/// let mut reduced = Reduced::default();
/// reduced.fill("用 rust 写的")?;
/// let mut features = Vec::new();
/// by_script::each_feature(&reduced, |feature| features.push(feature.to_owned()));
/// assert_eq!(features, ["用", "写的", "rust"]);
/// # Ok::<(), nearsift::text::words::TextTooLong>(())
/// ```
///
/// # Complexity
/// O(characters).
pub fn each_feature(reduced: &Reduced, mut each: impl FnMut(&str)) {
    for (class, stretch) in reduced.stretches() {
        if class == Class::Unspaced {
            // A lone character between words of another script is its own feature.
            if stretch.chars().nth(1).is_none() {
                each(stretch);
            }
            char_shingles(stretch, 2, &mut each);
            char_shingles(stretch, 3, &mut each);
        } else {
            char_shingles(stretch, 5, &mut each);
        }
    }
    reduced.words().for_each(each);
}

/// Appends the hash of every occurrence of a feature, in the order of [`each_feature`].
///
/// # Complexity
/// O(bytes); about 1.5 ns a feature.
pub fn hash_features(reduced: &Reduced, out: &mut Vec<u64>) {
    for (class, stretch) in reduced.stretches() {
        if class == Class::Unspaced {
            if stretch.chars().nth(1).is_none() {
                out.push(hash_token(stretch));
            }
            hash_pairs_and_triples(stretch, out);
        } else {
            hash_char_shingles(stretch, 5, out);
        }
    }
    hash_parts(reduced.text(), reduced.places_of_words(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn features_by_script() {
        let check = |text: &str, expect: &[&str]| {
            let mut reduced = Reduced::default();
            reduced.fill(text).expect("short");
            let mut found = Vec::new();
            each_feature(&reduced, |feature| found.push(feature.to_owned()));
            assert_eq!(found, expect, "{text}");
        };
        check("", &[]);
        check("，。!", &[]);
        check("中", &["中"]);
        check("今天，晴", &["今天", "天晴", "今天晴"]);
        check("it is", &["it", "is"]);
        check("no rain", &["norai", "orain", "no", "rain"]);
        check("第3章", &["第", "章", "3"]);
    }

    proptest! {
        #[test]
        fn hashes_are_those_of_the_features(text in "[ab1 ,.中文。のア한ไท😀]{0,60}|\\PC{0,40}") {
            let mut reduced = Reduced::default();
            reduced.fill(&text).expect("short");
            let (mut expect, mut found) = (Vec::new(), Vec::new());
            each_feature(&reduced, |feature| expect.push(hash_token(feature)));
            hash_features(&reduced, &mut found);
            prop_assert_eq!(found, expect);
        }
    }
}
