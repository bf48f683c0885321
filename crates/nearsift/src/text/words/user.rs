//! A user's own words, laid over the compiled dictionary.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::log::ln;
use super::segment::{Scratch, segment};
use super::table::{EMBEDDED, Info};
use super::{Dictionary, Overlaid, Word, WordId, char_count};

/// The characters of the longest word that a user dictionary may have. Segmentation looks at no
/// more than the longest word from each position, so this bounds its time.
pub const MAX_USER_WORD_CHARS: usize = 255;

/// Why a user dictionary was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("user dictionary, line {line}: {problem} in '{text}'; expected 'word [frequency] [tag]'")]
pub struct UserDictionaryError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: UserDictionaryProblem,
    /// The line itself, cut off after 80 characters.
    pub text: String,
}

/// What may be wrong with a line of a user dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UserDictionaryProblem {
    /// More than three fields.
    #[error("more than three fields")]
    TooManyFields,
    /// A second field of three, or one that begins like a number, which is no frequency.
    #[error("a frequency that is not an integer from 0 to 4294967295")]
    Frequency,
    /// A word of more than [`MAX_USER_WORD_CHARS`] characters.
    #[error("a word of more than {MAX_USER_WORD_CHARS} characters")]
    LongWord,
}

/// One line: a word, with a frequency and a tag where they are given.
#[derive(Debug, PartialEq, Eq)]
struct Line<'t> {
    word: &'t str,
    frequency: Option<u32>,
    tag: Option<&'t str>,
}

fn parse(line: &str) -> Result<Option<Line<'_>>, UserDictionaryProblem> {
    let mut fields = line.split_whitespace();
    let Some(word) = fields.next() else { return Ok(None) };
    let (second, third) = (fields.next(), fields.next());
    if fields.next().is_some() {
        return Err(UserDictionaryProblem::TooManyFields);
    }
    if char_count(word) > MAX_USER_WORD_CHARS {
        return Err(UserDictionaryProblem::LongWord);
    }
    let like_a_number = |field: &str| field.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let (frequency, tag) = match (second, third) {
        (Some(tag), None) if !like_a_number(tag) => (None, Some(tag)),
        (Some(frequency), tag) => {
            (Some(frequency.parse().map_err(|_| UserDictionaryProblem::Frequency)?), tag)
        }
        (None, _) => (None, None),
    };
    Ok(Some(Line { word, frequency, tag }))
}

/// An entry as it took effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) word: Box<str>,
    pub(super) frequency: u32,
    pub(super) tag: Option<Box<str>>,
}

/// The state of all words after a user dictionary was laid over the compiled one.
pub(super) struct UserWords {
    /// The words that the compiled dictionary lacks.
    trie: HashTrie,
    /// By word number, the compiled words first; entry 0 is unused.
    frequencies: Vec<u32>,
    logs: Vec<f64>,
    total: u64,
    log_total: f64,
    ascii_words_need: u128,
    /// Of the new words, from the first number after the compiled ones.
    hashes: Vec<u64>,
    idf_indexes: Vec<u16>,
    /// The tags that were given, by word number, as indexes into `entries`.
    tagged: std::collections::BTreeMap<u32, u32>,
    entries: Vec<Entry>,
}

impl UserWords {
    pub(super) fn parse(text: &str) -> Result<UserWords, UserDictionaryError> {
        let mut words = UserWords::empty();
        let mut scratch = Scratch::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let parsed = parse(line).map_err(|problem| UserDictionaryError {
                line: number,
                problem,
                text: line.trim().chars().take(80).collect(),
            })?;
            if let Some(line) = parsed {
                words.add(&line, &mut scratch);
            }
        }
        Ok(words)
    }

    fn empty() -> UserWords {
        let mut frequencies = vec![0];
        frequencies.extend((1..=EMBEDDED.words()).map(|id| EMBEDDED.frequency(id)));
        let logs = frequencies.iter().map(|&f| ln(u64::from(f))).collect();
        UserWords {
            trie: HashTrie::new(),
            frequencies,
            logs,
            total: EMBEDDED.total(),
            log_total: ln(EMBEDDED.total()),
            ascii_words_need: EMBEDDED.ascii_words_need(),
            hashes: Vec::new(),
            idf_indexes: Vec::new(),
            tagged: std::collections::BTreeMap::new(),
            entries: Vec::new(),
        }
    }

    fn add(&mut self, line: &Line<'_>, scratch: &mut Scratch) {
        let frequency = line.frequency.unwrap_or_else(|| self.suggest(line.word, scratch));
        let id = Overlaid(self).find(line.word).unwrap_or_else(|| self.push(line.word));
        self.total = self.total + u64::from(frequency) - u64::from(self.frequencies[id as usize]);
        self.log_total = ln(self.total);
        self.frequencies[id as usize] = frequency;
        self.logs[id as usize] = ln(u64::from(frequency));
        if line.tag.is_some() {
            self.tagged.insert(id, self.entries.len() as u32);
        }
        self.entries.push(Entry {
            word: line.word.into(),
            frequency,
            tag: line.tag.map(Into::into),
        });
    }

    fn push(&mut self, word: &str) -> u32 {
        let id = self.frequencies.len() as u32;
        self.trie.insert(word, id);
        if word.is_ascii() {
            self.ascii_words_need |= 1 << word.as_bytes()[0];
        }
        self.frequencies.push(0);
        self.logs.push(0.0);
        let hash = xxh3_64(word.as_bytes());
        self.hashes.push(hash);
        self.idf_indexes.push(EMBEDDED.idf_index_by_hash(hash));
        id
    }

    /// The frequency that just makes a word win over its present segmentation: one more than the
    /// total times the product of its parts' probabilities, and no less than it has.
    fn suggest(&self, word: &str, scratch: &mut Scratch) -> u32 {
        let mut parts: Vec<Word> = Vec::new();
        segment(&Overlaid(self), word, scratch, &mut parts);
        let frequency = |id: Option<WordId>| id.map_or(1, |id| self.frequency(id));
        let product = match &parts[..] {
            // Written apart because a division and a multiplication by the total would round.
            [part] => f64::from(frequency(part.id())),
            _ => {
                let total = self.total as f64;
                parts.iter().fold(total, |p, part| p * (f64::from(frequency(part.id())) / total))
            }
        };
        let own = Overlaid(self).find(word).map_or(1, |id| self.frequencies[id as usize]);
        // A cast saturates.
        (product as u32).saturating_add(1).max(own)
    }

    pub(super) fn len(&self) -> u32 {
        self.frequencies.len() as u32 - 1
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn frequency(&self, id: WordId) -> u32 {
        self.frequencies[id.index()]
    }

    fn new_index(id: WordId) -> Option<usize> {
        id.index().checked_sub(EMBEDDED.words() as usize + 1)
    }

    pub(super) fn hash(&self, id: WordId) -> u64 {
        Self::new_index(id).map_or_else(|| EMBEDDED.hash(id.raw()), |i| self.hashes[i])
    }

    pub(super) fn idf_index(&self, id: WordId) -> u16 {
        match Self::new_index(id) {
            Some(i) => self.idf_indexes[i],
            None => EMBEDDED.info(id.raw()).idf_index,
        }
    }

    /// The tag of a word: the one that was given last, else that of the compiled dictionary, else
    /// none.
    pub(super) fn tag(&self, id: WordId) -> &str {
        if let Some(&entry) = self.tagged.get(&id.raw()) {
            return self.entries[entry as usize].tag.as_deref().unwrap_or_default();
        }
        match Self::new_index(id) {
            Some(_) => "",
            None => {
                let Info { tag, .. } = EMBEDDED.info(id.raw());
                EMBEDDED.tag(tag)
            }
        }
    }

    /// ln(frequency / total).
    #[inline]
    pub(super) fn log_probability(&self, id: u32) -> f64 {
        self.logs[id as usize] - self.log_total
    }

    #[inline]
    pub(super) fn log_unknown(&self) -> f64 {
        0.0 - self.log_total
    }

    #[inline]
    pub(super) fn ascii_words_need(&self) -> u128 {
        self.ascii_words_need
    }

    #[inline]
    pub(super) fn trie(&self) -> &HashTrie {
        &self.trie
    }

    /// A hash of everything that was given, in order.
    pub(super) fn digest(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(&EMBEDDED.digest().to_le_bytes());
        for Entry { word, frequency, tag } in &self.entries {
            hash.update(word.as_bytes());
            hash.update(
                format!("\t{frequency}\t{}\n", tag.as_deref().unwrap_or_default()).as_bytes(),
            );
        }
        hash.digest()
    }
}

/// A trie that grows: edges in an open-addressing table keyed by (node, character).
pub(super) struct HashTrie {
    /// Which characters of the basic plane start a word: most positions of a text end here.
    starts: Box<[u64; 1024]>,
    /// A power of two long, at most half full.
    slots: Vec<Slot>,
    nodes: u32,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// (node << 21 | character) + 1, 0 for an empty slot.
    key: u64,
    child: u32,
    /// The number of the word that ends here, or 0.
    id: u32,
}

impl HashTrie {
    fn new() -> HashTrie {
        HashTrie { starts: Box::new([0; 1024]), slots: vec![Slot::default(); 64], nodes: 1 }
    }

    #[inline]
    fn key(node: u32, c: char) -> u64 {
        (u64::from(node) << 21 | u64::from(c)) + 1
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot].key != 0 && self.slots[slot].key != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn insert(&mut self, word: &str, id: u32) {
        let mut node = 0;
        let mut last = None;
        for c in word.chars() {
            if node == 0
                && let Some(bits) = self.starts.get_mut(c as usize / 64)
            {
                *bits |= 1 << (c as usize % 64);
            }
            if self.nodes as usize * 2 >= self.slots.len() {
                self.grow();
            }
            let key = Self::key(node, c);
            let slot = self.slot(key);
            if self.slots[slot].key == 0 {
                self.slots[slot] = Slot { key, child: self.nodes, id: 0 };
                self.nodes += 1;
            }
            node = self.slots[slot].child;
            last = Some(slot);
        }
        if let Some(slot) = last {
            self.slots[slot].id = id;
        }
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        for old in std::mem::replace(&mut self.slots, larger) {
            if old.key != 0 {
                let slot = self.slot(old.key);
                self.slots[slot] = old;
            }
        }
    }

    /// Calls `found(characters, id)` for each word that the characters start with, shortest first.
    #[inline]
    pub(super) fn prefixes(
        &self,
        chars: impl Iterator<Item = char>,
        mut found: impl FnMut(u32, u32),
    ) {
        let mut node = 0;
        for (c, length) in chars.zip(1..) {
            if node == 0
                && self
                    .starts
                    .get(c as usize / 64)
                    .is_some_and(|bits| bits >> (c as usize % 64) & 1 == 0)
            {
                return;
            }
            let Slot { key, child, id } = self.slots[self.slot(Self::key(node, c))];
            if key == 0 {
                return;
            }
            if id != 0 {
                found(length, id);
            }
            node = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_documented() {
        let line = |word, frequency, tag| Ok(Some(Line { word, frequency, tag }));
        for (text, expect) in [
            ("", Ok(None)),
            (" \t ", Ok(None)),
            ("云计算", line("云计算", None, None)),
            ("云计算 5", line("云计算", Some(5), None)),
            ("云计算 n", line("云计算", None, Some("n"))),
            ("云计算\t5  nz ", line("云计算", Some(5), Some("nz"))),
            ("c++ 0", line("c++", Some(0), None)),
            ("云计算 5 n x", Err(UserDictionaryProblem::TooManyFields)),
            ("云计算 n 5", Err(UserDictionaryProblem::Frequency)),
            ("云计算 -5", Err(UserDictionaryProblem::Frequency)),
            ("云计算 4294967296", Err(UserDictionaryProblem::Frequency)),
            ("云计算 5n", Err(UserDictionaryProblem::Frequency)),
        ] {
            assert_eq!(parse(text), expect, "{text}");
        }
        let long = "长".repeat(MAX_USER_WORD_CHARS + 1);
        assert_eq!(parse(&long), Err(UserDictionaryProblem::LongWord));
        assert!(parse(&long[3..]).is_ok());
    }

    #[test]
    fn an_error_names_the_line() {
        let error = UserWords::parse("\u{feff}云计算 5\n\n小数点 1.5 n\n").err().unwrap();
        assert_eq!(
            error.to_string(),
            "user dictionary, line 3: a frequency that is not an integer from 0 to 4294967295 in \
             '小数点 1.5 n'; expected 'word [frequency] [tag]'"
        );
    }

    #[test]
    fn the_trie_finds_every_prefix_that_is_a_word() {
        let mut trie = HashTrie::new();
        let words: Vec<String> = (0..500u32).map(|i| format!("{i}字{}", i % 7)).collect();
        for (word, id) in words.iter().zip(1..) {
            trie.insert(word, id);
        }
        trie.insert("1字", 9000);
        trie.insert("𠀀", 9001);
        let prefixes = |text: &str| {
            let mut found = Vec::new();
            trie.prefixes(text.chars(), |length, id| found.push((length, id)));
            found
        };
        assert_eq!(prefixes("1字1后"), [(2, 9000), (3, 2)]);
        assert_eq!(prefixes("𠀀"), [(1, 9001)]);
        for (word, id) in words.iter().zip(1..) {
            assert_eq!(prefixes(word).last(), Some(&(char_count(word) as u32, id)));
        }
        assert_eq!(prefixes("没有"), []);
    }
}
