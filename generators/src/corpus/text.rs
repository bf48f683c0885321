//! Documents of a generated corpus: any of them from the seed and its number alone.

use testkit::prose::{Part, push_chinese, push_english};
use testkit::random::Random;

use super::vocabulary::Vocabulary;

/// What decides a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of documents.
    pub documents: u64,
    /// Another seed is another corpus.
    pub seed: u64,
    /// How many of 1,000 documents are near-duplicates of an earlier one.
    pub duplicates_per_mille: u32,
}

/// How a near-duplicate differs from its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// Not at all.
    Exact,
    /// Words are other words.
    Replace,
    /// Words are put in.
    Insert,
    /// Words are left out.
    Delete,
    /// A passage stands elsewhere.
    Move,
    /// The end is missing.
    Truncate,
}

impl Edit {
    const ALL: [Edit; 6] =
        [Edit::Exact, Edit::Replace, Edit::Insert, Edit::Delete, Edit::Move, Edit::Truncate];

    /// The name in the corpus.
    pub fn name(self) -> &'static str {
        match self {
            Edit::Exact => "exact",
            Edit::Replace => "replace",
            Edit::Insert => "insert",
            Edit::Delete => "delete",
            Edit::Move => "move",
            Edit::Truncate => "trunc",
        }
    }
}

/// The original of a near-duplicate, and what was done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The number of the original, which is no duplicate itself.
    pub original: u64,
    /// The kind of edit.
    pub edit: Edit,
    /// The part of the words that it touches, in 1/100.
    pub percent: u32,
}

/// Originals and their duplicates are spread over the whole corpus, and each belongs to a class of about
/// this many documents. So the largest groups, of some two thousand, are as large in a corpus of 10^6
/// documents as in one of 10^7.
const CLASS: u64 = 1 << 18;

/// Ends a sentence, in place of a word.
const STOP: u32 = u32::MAX;
/// Parts a sentence, in place of a word.
const COMMA: u32 = u32::MAX - 1;

/// A corpus, ready to give any of its documents.
pub struct Corpus {
    settings: Settings,
    chinese: Vocabulary,
    english: Vocabulary,
}

impl Corpus {
    /// The corpus of these settings, in these words.
    pub fn new(settings: Settings, chinese: Vocabulary, english: Vocabulary) -> Corpus {
        Corpus { settings, chinese, english }
    }

    /// What decides it.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Where document `index` comes from, if it is a near-duplicate. The first documents never are.
    pub fn origin(&self, index: u64) -> Option<Origin> {
        let classes = self.settings.documents.div_ceil(CLASS).max(1);
        let place = index / classes;
        let mut random = Random::of_item(self.settings.seed ^ 0x6f72_6967_696e, index);
        if place == 0 || !random.per_mille(self.settings.duplicates_per_mille) {
            return None;
        }
        let edit = *random.pick(&Edit::ALL);
        let percent = if edit == Edit::Exact { 0 } else { *random.pick(&[1, 2, 5, 10, 20]) };
        // The square of an even number from 0 to 1: of the documents of a class the earliest have most
        // duplicates, so that the sizes of groups follow a power law, with exponent 3.
        let even = u128::from(random.next_u64() >> 32);
        let mut original = ((u128::from(place) * (even * even)) >> 64) as u64;
        original = original * classes + index % classes;
        // A duplicate of a duplicate would differ from the first by both edits.
        if let Some(origin) = self.origin(original) {
            original = origin.original;
        }
        Some(Origin { original, edit, percent })
    }

    /// Whether the original of a document is in Chinese.
    pub fn is_chinese(&self, original: u64) -> bool {
        Random::of_item(self.settings.seed, original).per_mille(500)
    }

    /// Appends the text of document `index`.
    pub fn push_text(&self, index: u64, text: &mut String) {
        let origin = self.origin(index);
        let source = origin.map_or(index, |origin| origin.original);
        let mut random = Random::of_item(self.settings.seed, source);
        let is_chinese = random.per_mille(500);
        let words = if is_chinese { &self.chinese } else { &self.english };
        // An English word with its blank has about 5.5 bytes in a text, a Chinese one about 4.5.
        let per_word = if is_chinese { 45 } else { 55 };
        let bytes = if random.per_mille(900) {
            300 + random.below(1_800)
        } else {
            2_000 + random.below(4_400)
        };
        let mut body = compose(words, bytes * 10 / per_word, &mut random);
        if let Some(Origin { edit, percent, .. }) = origin {
            let mut random = Random::of_item(self.settings.seed ^ 0x6564_6974, index);
            apply(edit, percent as usize, &mut body, words, &mut random);
        }
        let parts = body.iter().map(|&word| part(words, word));
        if is_chinese {
            push_chinese(parts, text);
        } else {
            push_english(parts, text);
        }
    }
}

/// So many words: most by their frequency, and a third from the few hundred of the text's own subject,
/// because texts on two subjects share fewer words than their language would make them.
fn compose(words: &Vocabulary, count: usize, random: &mut Random) -> Vec<u32> {
    let subject: Vec<u32> = (0..48).map(|_| words.draw(random)).collect();
    let mut body = Vec::with_capacity(count + count / 8 + 16);
    while body.len() < count {
        let length = 5 + random.below(16);
        for position in 1..=length {
            let word = if random.below(3) == 0 {
                // The smaller of two draws: some words of a subject come again and again.
                subject[random.below(subject.len()).min(random.below(subject.len()))]
            } else {
                words.draw(random)
            };
            body.push(word);
            if position % 7 == 0 && position < length {
                body.push(COMMA);
            }
        }
        body.push(STOP);
    }
    body
}

fn apply(edit: Edit, percent: usize, body: &mut Vec<u32>, words: &Vocabulary, random: &mut Random) {
    let touched = (body.len() * percent / 100).max(1);
    // A place that holds a word: marks stay.
    let place = |body: &[u32], random: &mut Random| {
        loop {
            let at = random.below(body.len());
            if body[at] < COMMA {
                return at;
            }
        }
    };
    match edit {
        Edit::Exact => {}
        Edit::Replace => {
            for _ in 0..touched {
                let at = place(body, random);
                body[at] = words.draw(random);
            }
        }
        Edit::Insert => {
            for _ in 0..touched {
                let at = place(body, random);
                body.insert(at, words.draw(random));
            }
        }
        Edit::Delete => {
            for _ in 0..touched {
                let at = place(body, random);
                body.remove(at);
            }
        }
        Edit::Move => {
            let from = random.below(body.len() - touched + 1);
            let passage: Vec<u32> = body.drain(from..from + touched).collect();
            let to = random.below(body.len() + 1);
            body.splice(to..to, passage);
        }
        Edit::Truncate => body.truncate(body.len() - touched),
    }
}

/// A word or a mark as it is written.
fn part(words: &Vocabulary, word: u32) -> Part<'_> {
    match word {
        STOP => Part::Stop,
        COMMA => Part::Comma,
        word => Part::Word(words.word(word)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn corpus(documents: u64) -> Corpus {
        let dictionary: String = (0..5_000u32)
            .map(|i| {
                let c = |n: u32| char::from_u32(0x4e00 + n % 20_000).unwrap();
                format!("{}{} {} n\n", c(i * 7), c(i * 13 + 1), 100_000 / (i + 1) + 4)
            })
            .collect();
        let letters = |n: usize| char::from(b'a' + (n % 26) as u8);
        let texts: String = (0..5_000usize)
            .map(|n| {
                format!("w{}{}{}o ", letters(n), letters(n / 26), letters(n / 676))
                    .repeat(5_000 / (n + 1))
            })
            .collect();
        let settings = Settings { documents, seed: 1, duplicates_per_mille: 300 };
        Corpus::new(
            settings,
            Vocabulary::chinese(&dictionary).unwrap(),
            Vocabulary::english([texts.as_str()]).unwrap(),
        )
    }

    fn text(corpus: &Corpus, index: u64) -> String {
        let mut text = String::new();
        corpus.push_text(index, &mut text);
        text
    }

    #[test]
    fn three_in_ten_come_from_an_earlier_original() {
        let corpus = corpus(20_000);
        let mut groups: BTreeMap<u64, u32> = BTreeMap::new();
        for index in 0..20_000 {
            let Some(origin) = corpus.origin(index) else { continue };
            assert!(origin.original < index);
            assert_eq!(corpus.origin(origin.original), None, "an original is no duplicate");
            *groups.entry(origin.original).or_default() += 1;
        }
        let duplicates: u32 = groups.values().sum();
        assert!((5_700..6_300).contains(&duplicates), "{duplicates}");
        let largest = groups.values().max().copied().unwrap();
        assert!((20..400).contains(&largest), "a heavy tail: {largest}");
        assert!(groups.values().filter(|&&size| size == 1).count() > 1_000);
    }

    #[test]
    fn texts_are_of_the_size_asked_and_the_same_each_time() {
        let corpus = corpus(1_000);
        let bytes: usize = (0..1_000).map(|index| text(&corpus, index).len()).sum();
        assert!((1_200_000..2_200_000).contains(&bytes), "{bytes}");
        assert_eq!(text(&corpus, 77), text(&corpus, 77));
        for index in 0..1_000 {
            let Some(origin) = corpus.origin(index) else { continue };
            let same = text(&corpus, index) == text(&corpus, origin.original);
            assert!(same || origin.edit != Edit::Exact);
        }
    }
}
