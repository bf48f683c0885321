//! Words with the frequencies that they have in natural text.

use std::collections::BTreeMap;

use testkit::random::Random;

/// Words of one language that are drawn by their frequency in constant time.
///
/// # References
/// Walker, 'An efficient method for generating discrete random variables with general distributions',
/// ACM TOMS 3(3), 1977: the alias method, here in integers.
pub struct Vocabulary {
    /// The most frequent first.
    words: Vec<String>,
    /// Of each slot: below how much of 2^32 its own word is drawn, and which is drawn else.
    slots: Vec<(u32, u32)>,
}

/// Chinese words of the dictionary that are rarer than this are left out: most are names.
const LEAST_FREQUENCY: u64 = 4;

impl Vocabulary {
    /// Chinese, from a dictionary with `word frequency tag` on each line.
    ///
    /// # Errors
    /// When no line has a Chinese word.
    pub fn chinese(dictionary: &str) -> Result<Vocabulary, String> {
        let counted = dictionary.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let (word, frequency) = (fields.next()?, fields.next()?.parse().ok()?);
            let is_chinese = word.chars().all(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            (is_chinese && frequency >= LEAST_FREQUENCY).then(|| (word.to_owned(), frequency))
        });
        Vocabulary::new(counted.collect())
    }

    /// English, from texts: their words as often as they stand there, and behind them as many names
    /// again, put together from two words each, that are as rare as the rarest words are.
    ///
    /// # Errors
    /// When the texts hold no English word.
    pub fn english<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Vocabulary, String> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for text in texts {
            for word in text.split(|c: char| !c.is_ascii_alphabetic()) {
                let is_word = word.len() > 1 || word == "a";
                if is_word && word.bytes().all(|b| b.is_ascii_lowercase()) {
                    *counts.entry(word).or_default() += RATE;
                }
            }
        }
        let stems: Vec<&str> = counts.keys().copied().filter(|word| word.len() > 3).collect();
        if stems.len() < 100 {
            return Err(format!("{} English words are too few", stems.len()));
        }
        let mut random = Random::new(0x006e_616d_6573);
        let mut counted: BTreeMap<String, u64> =
            counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
        // Heaps' law: a corpus always has more words than any part of it showed.
        for _ in 0..NAMES {
            let (first, second) = (random.pick(&stems), random.pick(&stems));
            let name =
                format!("{}{}", &first[..first.len().min(5)], &second[..second.len().min(4)]);
            *counted.entry(name).or_default() += 1;
        }
        Vocabulary::new(counted.into_iter().collect())
    }

    fn new(mut counted: Vec<(String, u64)>) -> Result<Vocabulary, String> {
        if counted.is_empty() {
            return Err("no word at all".to_owned());
        }
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let slots = aliases(&counted.iter().map(|(_, count)| *count).collect::<Vec<_>>());
        Ok(Vocabulary { words: counted.into_iter().map(|(word, _)| word).collect(), slots })
    }

    /// A word.
    pub fn word(&self, index: u32) -> &str {
        &self.words[index as usize]
    }

    /// A word by its frequency.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let bits = random.next_u64();
        let slot = ((bits >> 32) * self.slots.len() as u64) >> 32;
        let (own, other) = self.slots[slot as usize];
        if (bits as u32) < own { slot as u32 } else { other }
    }
}

/// One occurrence of a word in a text counts as so many of a name.
const RATE: u64 = 16;
const NAMES: usize = 60_000;

/// The slots of the alias method.
fn aliases(counts: &[u64]) -> Vec<(u32, u32)> {
    let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    let n = counts.len() as u128;
    // How much of a slot's 2^32 each word fills, on average one slot.
    let mut shares: Vec<u64> =
        counts.iter().map(|&count| (((u128::from(count) * n) << 32) / total) as u64).collect();
    let full = 1u64 << 32;
    let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
        (0..counts.len() as u32).partition(|&i| shares[i as usize] < full);
    let mut slots: Vec<(u32, u32)> = (0..counts.len() as u32).map(|i| (u32::MAX, i)).collect();
    while let (Some(small), Some(&large)) = (poor.pop(), rich.last()) {
        let share = shares[small as usize];
        slots[small as usize] = (share as u32, large);
        let left = shares[large as usize] - (full - share);
        shares[large as usize] = left;
        if left < full {
            rich.pop();
            poor.push(large);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_drawn_by_their_frequency() {
        let words = Vocabulary::chinese("的 900 u\n经济 90 n\n罕见 10 a\nx 5 n\n太少 3 n").unwrap();
        let mut random = Random::new(1);
        let mut seen = [0u32; 3];
        for _ in 0..100_000 {
            seen[words.draw(&mut random) as usize] += 1;
        }
        assert_eq!(words.word(0), "的");
        assert!(seen[0].abs_diff(90_000) < 500, "{seen:?}");
        assert!(seen[1].abs_diff(9_000) < 400, "{seen:?}");
        assert!(seen[2].abs_diff(1_000) < 200, "{seen:?}");
        assert!(Vocabulary::chinese("x 9 n").is_err());
        assert!(Vocabulary::english(["a few words only"]).is_err());
    }
}
