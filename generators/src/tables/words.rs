//! Compiles jieba's dictionary and IDF list into `crates/nearsift/data/words.bin`, the table that
//! the core crate's word segmentation reads in place. Its layout is described in
//! `crates/nearsift/data/README.md`; the reader is `nearsift::text::words`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use xxhash_rust::xxh3::xxh3_64;

use super::Mode;
use crate::sources::package_folder;

/// The table, from the root of the repository.
pub const TABLE: &str = "crates/nearsift/data/words.bin";

const MAGIC: [u8; 8] = *b"nswords\0";
const VERSION: u32 = 1;
const HEADER: usize = 128;
const ALIGNMENT: usize = 64;

/// The widths of a unit's fields in bits, lowest first, as the reader has them.
const LABEL_BITS: u32 = 14;
const ID_BITS: u32 = 20;
const FILTER_BITS: u32 = 8;
const BASE_BITS: u32 = 21;

/// The label of a unit that belongs to no node. Labels of characters start at 1, and 0 stands for
/// a character without one, so neither ever equals it.
const EMPTY: u64 = (1 << LABEL_BITS) - 1;

/// The words with an IDF that the dictionary lacks are found by the top bits of their hash.
const BUCKET_BITS: u32 = 12;

/// The filter of pairs has 2 to the power of this bits.
const PAIR_FILTER_BITS: u32 = 20;
/// 2^64 divided by the golden ratio, made odd: it spreads neighbours far apart.
const PAIR_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Writes or checks the table.
///
/// # Errors
/// A sentence for the terminal: the sources were not found or are not understood, the file could
/// not be written, or, when checking, it differs.
pub fn run(mode: Mode) -> Result<(), String> {
    let folder = package_folder("jieba-rs")?;
    let read = |name: &str| {
        let path = folder.join("src/data").join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    mode.apply(TABLE, &build(&read("dict.txt")?, &read("idf.txt")?)?)
}

/// The bytes of the table for the text of a dictionary (`word frequency tag` a line) and of an IDF
/// list (`word idf` a line).
///
/// # Errors
/// A sentence that names the line or the limit of the format that was met.
pub fn build(dictionary: &str, idf: &str) -> Result<Vec<u8>, String> {
    let mut words = parse_dictionary(dictionary)?;
    // The more frequent a word, the smaller its number: what a text touches lies close together.
    words.sort_by(|a, b| b.frequency.cmp(&a.frequency).then_with(|| a.text.cmp(b.text)));
    let idf = parse_idf(idf)?;
    limit("words", words.len(), (1 << ID_BITS) - 1)?;

    let labels = labels(&words)?;
    let units = double_array(&words, &labels)?;
    let frequencies: Vec<u64> =
        words.iter().map(|w| w.frequency).collect::<BTreeSet<_>>().into_iter().rev().collect();
    limit("distinct frequencies", frequencies.len(), usize::from(u16::MAX))?;
    // Class 0 is that of the absent word 0.
    let class_of: BTreeMap<u64, u16> = frequencies.iter().copied().zip(1..).collect();
    let total: u64 = words.iter().map(|w| w.frequency).sum();

    // Order by bits is order by value: an IDF is positive.
    let idfs: Vec<u64> = idf.values().copied().collect::<BTreeSet<_>>().into_iter().collect();
    limit("distinct IDFs", idfs.len(), usize::from(u16::MAX))?;
    let idf_index: BTreeMap<u64, u16> = idfs.iter().copied().zip(0..).collect();
    let mut all: Vec<u64> = idf.values().copied().collect();
    all.sort_unstable();
    let median = idf_index[&all[all.len() / 2]];

    let tags: Vec<&str> =
        words.iter().map(|w| w.tag).collect::<BTreeSet<_>>().into_iter().collect();
    limit("tags", tags.len(), usize::from(u8::MAX))?;
    let tag_index: BTreeMap<&str, u8> = tags.iter().copied().zip(0..).collect();

    let known: BTreeSet<&str> = words.iter().map(|w| w.text).collect();
    let mut others: Vec<(u64, u16)> = idf
        .iter()
        .filter(|(word, _)| !known.contains(*word))
        .map(|(word, bits)| (xxh3_64(word.as_bytes()), idf_index[bits]))
        .collect();
    others.sort_unstable();
    if others.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("two words of the IDF list share one hash".to_owned());
    }
    limit("words with an IDF and no frequency", others.len(), usize::from(u16::MAX))?;

    let mut table = vec![0; HEADER];
    let mut section = |bytes: Vec<u8>| {
        table.extend(bytes);
        table.resize(table.len().next_multiple_of(ALIGNMENT), 0);
    };
    section(labels.iter().flat_map(|label| label.to_le_bytes()).collect());
    section(pair_filter(&words, &labels));
    section(units.iter().flat_map(|unit| unit.to_le_bytes()).collect());
    // Numbers start at 1, so the columns by number have an unused first entry.
    let mut column: Vec<u8> = 0u16.to_le_bytes().into();
    column.extend(words.iter().flat_map(|w| class_of[&w.frequency].to_le_bytes()));
    section(column);
    let mut column: Vec<u8> = vec![0; 4];
    for word in &words {
        let idf = idf.get(word.text).map_or(median, |bits| idf_index[bits]);
        column.extend(idf.to_le_bytes());
        column.push(tag_index[word.tag]);
        column.push(word.text.chars().count() as u8);
    }
    section(column);
    let mut column: Vec<u8> = 0u64.to_le_bytes().into();
    column.extend(words.iter().flat_map(|w| xxh3_64(w.text.as_bytes()).to_le_bytes()));
    section(column);
    let log_total = (total as f64).ln();
    let logs = frequencies.iter().map(|&f| (f as f64).ln() - log_total);
    section(once(f64::NEG_INFINITY).chain(logs).flat_map(f64::to_le_bytes).collect());
    let frequency_column = once(0).chain(frequencies.iter().map(|&f| f as u32));
    section(frequency_column.flat_map(u32::to_le_bytes).collect());
    section(idfs.iter().flat_map(|bits| bits.to_le_bytes()).collect());
    section(
        (0..=1u64 << BUCKET_BITS)
            .map(|bucket| others.partition_point(|o| o.0 >> (64 - BUCKET_BITS) < bucket) as u16)
            .flat_map(u16::to_le_bytes)
            .collect(),
    );
    section(others.iter().flat_map(|o| o.0.to_le_bytes()).collect());
    section(others.iter().flat_map(|o| o.1.to_le_bytes()).collect());
    let mut padded = Vec::new();
    for tag in &tags {
        let mut bytes = [0; 8];
        let slot = bytes.get_mut(..tag.len()).ok_or_else(|| format!("tag '{tag}' is too long"))?;
        slot.copy_from_slice(tag.as_bytes());
        padded.extend(bytes);
    }
    section(padded);

    let digest = xxh3_64(&table[HEADER..]);
    let longest = words.iter().map(|w| w.text.chars().count()).max().unwrap_or(0);
    let mut header: Vec<u8> = MAGIC.into();
    header.extend(VERSION.to_le_bytes());
    for count in [units.len(), words.len(), frequencies.len(), idfs.len(), others.len(), tags.len()]
    {
        header.extend((count as u32).to_le_bytes());
    }
    header.extend(u32::from(median).to_le_bytes());
    header.extend(total.to_le_bytes());
    header.extend(digest.to_le_bytes());
    header.extend((longest as u32).to_le_bytes());
    header.extend(0u32.to_le_bytes());
    header.extend((0.0 - log_total).to_le_bytes());
    header.extend(ascii_words_need(&words).to_le_bytes());
    table[..header.len()].copy_from_slice(&header);
    Ok(table)
}

struct Entry<'t> {
    text: &'t str,
    frequency: u64,
    tag: &'t str,
}

fn parse_dictionary(text: &str) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        let mut fields = line.split_whitespace();
        let entry = (|| {
            let text = fields.next()?;
            let frequency = fields.next()?.parse().ok().filter(|f| (1..1 << 32).contains(f))?;
            Some(Entry { text, frequency, tag: fields.next()? })
        })();
        let entry = entry.ok_or_else(|| format!("dictionary, line {number}: '{line}'"))?;
        limit("characters of a word", entry.text.chars().count(), usize::from(u8::MAX))?;
        if !seen.insert(entry.text) {
            return Err(format!("dictionary, line {number}: '{}' is there twice", entry.text));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Each word's IDF as the bits of an `f64`.
fn parse_idf(text: &str) -> Result<BTreeMap<&str, u64>, String> {
    let mut values = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let mut fields = line.split_whitespace();
        let (word, value) = (|| {
            let word = fields.next()?;
            let value: f64 = fields.next()?.parse().ok().filter(|v| *v > 0.0)?;
            Some((word, value.to_bits()))
        })()
        .ok_or_else(|| format!("IDF list, line {number}: '{line}'"))?;
        if values.insert(word, value).is_some() {
            return Err(format!("IDF list, line {number}: '{word}' is there twice"));
        }
    }
    Ok(values)
}

fn limit(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{count} {what}: the format has room for {most}"))
}

/// The label of each character of the basic plane, 0 for one that no word has. The more often a
/// character comes up in words, weighted by their frequency, the smaller its label.
fn labels(words: &[Entry<'_>]) -> Result<Vec<u16>, String> {
    let mut weight: BTreeMap<char, u64> = BTreeMap::new();
    for word in words {
        for c in word.text.chars() {
            *weight.entry(c).or_default() += word.frequency;
        }
    }
    limit("characters", weight.len(), EMPTY as usize - 1)?;
    let mut order: Vec<(char, u64)> = weight.into_iter().collect();
    order.sort_by_key(|&(c, weight)| (Reverse(weight), c));
    let mut labels = vec![0; 0x1_0000];
    for (label, (c, _)) in (1..).zip(order) {
        *labels
            .get_mut(c as usize)
            .ok_or_else(|| format!("'{c}' lies outside the basic plane"))? = label;
    }
    Ok(labels)
}

/// ASCII characters, as bits, of which every word of ASCII characters alone has one: text without
/// them has no such word. Letters are avoided, as they are in all English text.
fn ascii_words_need(words: &[Entry<'_>]) -> u128 {
    let needed = |word: &[u8]| {
        let mark = word.iter().find(|byte| !byte.is_ascii_alphanumeric());
        1u128 << mark.or(word.first()).copied().unwrap_or(0)
    };
    words.iter().filter(|w| w.text.is_ascii()).fold(0, |bits, w| bits | needed(w.text.as_bytes()))
}

/// A Bloom filter with one hash function of the pairs of labels that words begin with.
///
/// # References
/// Bloom, 'Space/time trade-offs in hash coding with allowable errors', CACM 13(7), 1970.
fn pair_filter(words: &[Entry<'_>], labels: &[u16]) -> Vec<u8> {
    let mut bits = vec![0; 1 << (PAIR_FILTER_BITS - 3)];
    for word in words {
        let mut letters = word.text.chars().map(|c| u64::from(labels[c as usize]));
        if let (Some(first), Some(second)) = (letters.next(), letters.next()) {
            let pair = first << LABEL_BITS | second;
            let bit = pair.wrapping_mul(PAIR_MULTIPLIER) >> (64 - PAIR_FILTER_BITS);
            bits[bit as usize / 8] |= 1 << (bit % 8);
        }
    }
    bits
}

/// A node of the trie over labels.
struct Node {
    /// The number of the word that ends here, or 0.
    id: u64,
    parent: usize,
    label: u64,
    children: Vec<u64>,
    /// The sum of the frequencies of all words below.
    weight: u64,
}

/// The double array over labels: the children of a node with base `b` are at `b + label`. No two
/// nodes with children share a base, so a unit whose label fits is a child of the node at hand.
///
/// # References
/// Aoe, 'An efficient digital search algorithm by using a double-array structure', IEEE
/// Transactions on Software Engineering 15(9), 1989.
fn double_array(words: &[Entry<'_>], labels: &[u16]) -> Result<Vec<u64>, String> {
    let nodes = trie(words, labels);
    // Heavy nodes first: what most texts touch then lies together, near the front, for frequent
    // characters have small labels. Wide nodes first would take 7% less room, and more time.
    let mut order: Vec<usize> =
        (1..nodes.len()).filter(|&n| !nodes[n].children.is_empty()).collect();
    order.sort_by_key(|&n| Reverse((nodes[n].weight, Reverse(n))));

    let mut base = vec![0; nodes.len()];
    let mut slots = Slots::default();
    slots.take(0, &[0]);
    slots.take(0, &nodes[0].children);
    for n in order {
        base[n] = slots.place(&nodes[n].children);
    }

    let mut units = vec![EMPTY; slots.len() + (1 << LABEL_BITS)];
    for (n, node) in nodes.iter().enumerate().skip(1) {
        let filter =
            node.children.iter().fold(0, |bits, c| bits | 1u64 << (c % u64::from(FILTER_BITS)));
        limit("units", base[n], (1 << BASE_BITS) - 1)?;
        units[base[node.parent] + node.label as usize] = node.label
            | node.id << LABEL_BITS
            | filter << (LABEL_BITS + ID_BITS)
            | (base[n] as u64) << (64 - BASE_BITS);
    }
    Ok(units)
}

fn trie(words: &[Entry<'_>], labels: &[u16]) -> Vec<Node> {
    let mut nodes = vec![Node { id: 0, parent: 0, label: 0, children: Vec::new(), weight: 0 }];
    let mut child: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (id, word) in (1..).zip(words) {
        let mut at = 0;
        for c in word.text.chars() {
            let label = u64::from(labels[c as usize]);
            at = *child.entry((at, label)).or_insert_with(|| {
                nodes[at].children.push(label);
                nodes.push(Node { id: 0, parent: at, label, children: Vec::new(), weight: 0 });
                nodes.len() - 1
            });
            nodes[at].weight += word.frequency;
        }
        nodes[at].id = id;
    }
    for node in &mut nodes {
        node.children.sort_unstable();
    }
    nodes
}

/// Which units are taken, and which bases.
#[derive(Default)]
struct Slots {
    taken: Vec<bool>,
    base_used: Vec<bool>,
    first_free: usize,
}

impl Slots {
    fn len(&self) -> usize {
        self.taken.len()
    }

    fn is_free(&self, slot: usize) -> bool {
        self.taken.get(slot).is_none_or(|taken| !taken)
    }

    /// The lowest unused base at which all labels fall on free units; it is taken.
    fn place(&mut self, labels: &[u64]) -> usize {
        let first = labels[0] as usize;
        let mut slot = self.first_free.max(first + 1);
        loop {
            let base = slot - first;
            if self.base_used.get(base).is_none_or(|used| !used)
                && labels.iter().all(|&label| self.is_free(base + label as usize))
            {
                self.take(base, labels);
                return base;
            }
            slot += 1;
        }
    }

    fn take(&mut self, base: usize, labels: &[u64]) {
        let end = base + labels.iter().max().map_or(0, |&label| label as usize) + 1;
        self.taken.resize(self.taken.len().max(end), false);
        self.base_used.resize(self.base_used.len().max(base + 1), false);
        self.base_used[base] = true;
        for &label in labels {
            self.taken[base + label as usize] = true;
        }
        while !self.is_free(self.first_free) {
            self.first_free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_dictionary_gives_the_same_bytes_twice() {
        let dictionary = "中国 30 ns\n中 20 f\n国 10 n\n";
        let idf = "中国 3.5\n人民 2.25\n中 1.5\n";
        let table = build(dictionary, idf).unwrap();
        assert_eq!(table, build(dictionary, idf).unwrap());
        assert_eq!(table[..8], MAGIC);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (dictionary, expect) in [
            ("中国 ns 3\n", "line 1"),
            ("中 3 n\n中国 0 n\n", "line 2"),
            ("中 3 n\n中 4 n\n", "'中' is there twice"),
            ("𠀀 3 n\n", "outside the basic plane"),
            ("中 3 averylongtag\n", "too long"),
        ] {
            let error = build(dictionary, "中 1.5\n").unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
