//! What documents and pairs are grouped by.

use unicode_script::{Script, UnicodeScript};

use crate::text::script::{Class, class};

/// What a text is written in, by the script of most of it: `Han`, `Latin`, `Hangul` and so on as Unicode
/// names scripts, but `Japanese` when a tenth of the Chinese characters and kana are kana; `None` when
/// there are no letters.
///
/// ```
/// use nearsift::evaluate::script_of;
/// assert_eq!(script_of("手机 iPhone 降价"), Some("Han"));
/// assert_eq!(script_of("東京で雨"), Some("Japanese"));
/// assert_eq!(script_of("it rains in 東京"), Some("Latin"));
/// assert_eq!(script_of("2026!"), None);
/// ```
///
/// # Complexity
/// O(characters).
pub fn script_of(text: &str) -> Option<&'static str> {
    let mut counts: Vec<(Script, usize)> = Vec::new();
    for c in text.chars() {
        // A character that stands for a syllable or a word weighs as much as several letters.
        let weight = match class(c) {
            Class::Separator => continue,
            Class::Alphabetic => 1,
            Class::Unspaced => 3,
        };
        let script = c.script();
        if matches!(script, Script::Common | Script::Inherited | Script::Unknown) {
            continue;
        }
        match counts.iter_mut().find(|known| known.0 == script) {
            Some(known) => known.1 += weight,
            None => counts.push((script, weight)),
        }
    }
    let count = |script| counts.iter().find(|known| known.0 == script).map_or(0, |known| known.1);
    let kana = count(Script::Hiragana) + count(Script::Katakana);
    let east = kana + count(Script::Han);
    let most =
        counts.iter().copied().reduce(|best, own| if own.1 > best.1 { own } else { best })?;
    Some(match most.0 {
        Script::Han | Script::Hiragana | Script::Katakana if 10 * kana >= east => "Japanese",
        script => script.full_name(),
    })
}

/// The class of most letters and digits of a text: whether it is better cut into characters or into
/// words; `None` when there are no letters.
pub fn main_class(text: &str) -> Option<Class> {
    let mut counts = [0usize; 2];
    for c in text.chars() {
        match class(c) {
            Class::Unspaced => counts[0] += 1,
            Class::Alphabetic => counts[1] += 1,
            Class::Separator => {}
        }
    }
    match counts {
        [0, 0] => None,
        // As above.
        [unspaced, alphabetic] if 3 * unspaced >= alphabetic => Some(Class::Unspaced),
        _ => Some(Class::Alphabetic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let check = |text, expect| assert_eq!(main_class(text), expect, "{text}");
        check("iPhone 手机降价", Some(Class::Unspaced));
        check("the word 道 in English", Some(Class::Alphabetic));
        check("!", None);
    }
}
