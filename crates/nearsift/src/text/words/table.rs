//! The compiled dictionary, read in place.
//!
//! The layout is described in `data/README.md`. All integers are little-endian; every section
//! starts on a cache line. Word numbers start at 1 and go by falling frequency.

use std::hint::select_unpredictable;

use xxhash_rust::xxh3::xxh3_64;

/// The widths of a unit's fields in bits, lowest first: label, word number, filter, one unused, base.
const LABEL_BITS: u32 = 14;
const ID_BITS: u32 = 20;
const FILTER_BITS: u32 = 8;
const BASE_BITS: u32 = 21;

const MAGIC: [u8; 8] = *b"nswords\0";
const VERSION: u32 = 1;
const HEADER: usize = 128;
const ALIGNMENT: usize = 64;
const BUCKET_BITS: u32 = 12;
const PAIR_FILTER_BITS: u32 = 20;
const PAIR_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

static BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../data/words.bin"));

/// The embedded table. A file that is not one does not compile.
pub(super) static EMBEDDED: Table = Table::new(&BYTES.0);

/// One unit of the double array: a node of the trie over labels of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit(u64);

impl Unit {
    /// A unit that is no node: no label equals its own, and it leads nowhere.
    pub(super) const NONE: Unit = Unit(0);

    /// The label of the character that leads here; 0 for [`Unit::NONE`].
    #[inline]
    pub(super) const fn label(self) -> u32 {
        self.0 as u32 & ((1 << LABEL_BITS) - 1)
    }

    /// The number of the word that ends here, 0 where none does.
    #[inline]
    pub(super) const fn id(self) -> u32 {
        (self.0 >> LABEL_BITS) as u32 & ((1 << ID_BITS) - 1)
    }

    /// Whether a child with this label may exist. 'No' is certain, and saves most loads that would
    /// find nothing.
    #[inline]
    const fn may_have_child(self, label: u32) -> bool {
        self.0 >> (LABEL_BITS + ID_BITS + label % FILTER_BITS) & 1 != 0
    }

    #[inline]
    const fn base(self) -> u32 {
        (self.0 >> (64 - BASE_BITS)) as u32
    }
}

/// What is stored of a word beside its frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) idf_index: u16,
    pub(super) tag: u8,
}

/// The sections of a compiled dictionary.
pub(super) struct Table {
    labels: &'static [[u8; 2]],
    pair_filter: &'static [[u8; 8]],
    units: &'static [[u8; 8]],
    classes: &'static [[u8; 2]],
    infos: &'static [[u8; 4]],
    hashes: &'static [[u8; 8]],
    log_probabilities: &'static [[u8; 8]],
    frequencies: &'static [[u8; 4]],
    idfs: &'static [[u8; 8]],
    other_buckets: &'static [[u8; 2]],
    other_hashes: &'static [[u8; 8]],
    other_idfs: &'static [[u8; 2]],
    tags: &'static [[u8; 8]],
    median_idf: u16,
    total: u64,
    digest: u64,
    log_unknown: f64,
    ascii_words_need: u128,
    bytes: &'static [u8],
}

impl Table {
    /// The table in `bytes`.
    ///
    /// # Panics
    /// When they are not a whole table of this version: at compile time, for the embedded one.
    const fn new(bytes: &'static [u8]) -> Table {
        let mut magic = 0;
        while magic < MAGIC.len() {
            assert!(bytes[magic] == MAGIC[magic], "not a word table");
            magic += 1;
        }
        assert!(u32_at(bytes, 8) == VERSION, "a word table of another version");
        let units = u32_at(bytes, 12) as usize;
        let words = u32_at(bytes, 16) as usize;
        let frequencies = u32_at(bytes, 20) as usize;
        let idfs = u32_at(bytes, 24) as usize;
        let others = u32_at(bytes, 28) as usize;
        let tags = u32_at(bytes, 32) as usize;

        let rest = bytes.split_at(HEADER).1;
        let (labels, rest) = section::<2>(rest, 1 << 16);
        let (pair_filter, rest) = section::<8>(rest, 1 << (PAIR_FILTER_BITS - 6));
        let (unit_section, rest) = section::<8>(rest, units);
        let (classes, rest) = section::<2>(rest, words + 1);
        let (infos, rest) = section::<4>(rest, words + 1);
        let (hashes, rest) = section::<8>(rest, words + 1);
        let (log_probabilities, rest) = section::<8>(rest, frequencies + 1);
        let (frequency_section, rest) = section::<4>(rest, frequencies + 1);
        let (idf_section, rest) = section::<8>(rest, idfs);
        let (other_buckets, rest) = section::<2>(rest, (1 << BUCKET_BITS) + 1);
        let (other_hashes, rest) = section::<8>(rest, others);
        let (other_idfs, rest) = section::<2>(rest, others);
        let (tag_section, rest) = section::<8>(rest, tags);
        assert!(rest.is_empty(), "bytes after the end of the word table");
        Table {
            labels,
            pair_filter,
            units: unit_section,
            classes,
            infos,
            hashes,
            log_probabilities,
            frequencies: frequency_section,
            idfs: idf_section,
            other_buckets,
            other_hashes,
            other_idfs,
            tags: tag_section,
            median_idf: u32_at(bytes, 36) as u16,
            total: u64_at(bytes, 40),
            digest: u64_at(bytes, 48),
            log_unknown: f64::from_bits(u64_at(bytes, 64)),
            ascii_words_need: u64_at(bytes, 72) as u128 | (u64_at(bytes, 80) as u128) << 64,
            bytes,
        }
    }

    /// The number of words, which is the highest word number.
    pub(super) const fn words(&self) -> u32 {
        self.classes.len() as u32 - 1
    }

    /// The sum of all words' frequencies.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// XXH3-64 over all sections, as the header has it.
    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    /// The same, computed over the bytes that are there.
    pub(super) fn computed_digest(&self) -> u64 {
        xxh3_64(&self.bytes[HEADER..])
    }

    /// The ASCII characters, as bits, of which every word of ASCII characters alone has one.
    pub(super) const fn ascii_words_need(&self) -> u128 {
        self.ascii_words_need
    }

    /// The node of one character, [`Unit::NONE`] for one that starts no word and is in none.
    #[inline]
    pub(super) fn root(&self, c: u32) -> Unit {
        let Some(&label) = self.labels.get(c as usize) else { return Unit::NONE };
        let label = u16::from_le_bytes(label);
        if label == 0 {
            return Unit::NONE;
        }
        // The children of the root have base 0. A character inside words alone still needs its
        // label, and no unit of its own.
        let unit = Unit(u64::from_le_bytes(self.units[usize::from(label)]));
        if unit.label() == u32::from(label) { unit } else { Unit(u64::from(label)) }
    }

    /// The child of a node by a label.
    #[inline]
    pub(super) fn child(&self, unit: Unit, label: u32) -> Option<Unit> {
        if !unit.may_have_child(label) {
            return None;
        }
        let child = Unit(u64::from_le_bytes(*self.units.get((unit.base() + label) as usize)?));
        (child.label() == label).then_some(child)
    }

    /// The node of two characters, the first of which has the node `unit` and the second a label.
    ///
    /// Half of the pairs of a text begin no word, and the units that would say so lie all over the
    /// table; most are told by a filter that stays in the cache.
    #[inline]
    pub(super) fn pair(&self, unit: Unit, label: u32) -> Unit {
        let pair = u64::from(unit.label()) << LABEL_BITS | u64::from(label);
        let bit = pair.wrapping_mul(PAIR_MULTIPLIER) >> (64 - PAIR_FILTER_BITS);
        let word = u64::from_le_bytes(self.pair_filter[bit as usize / 64]);
        let possible = (word >> (bit % 64)) & 1 != 0;
        // The unit's own filter keeps a leaf, whose base is the root's, from having children.
        self.child_if(possible & unit.may_have_child(label), unit, label)
    }

    /// The child of a node by a label, or [`Unit::NONE`], without a branch.
    #[inline]
    pub(super) fn child_or_none(&self, unit: Unit, label: u32) -> Unit {
        self.child_if(unit.may_have_child(label), unit, label)
    }

    /// The same, [`Unit::NONE`] unless it is `possible`. Neither condition can be foreseen, and with
    /// no branch many of these wait for memory at the same time.
    #[inline]
    fn child_if(&self, possible: bool, unit: Unit, label: u32) -> Unit {
        // Unit 0 is no node, and always at hand.
        let place = select_unpredictable(possible, unit.base() + label, 0);
        // Always within the units: past the last base there is room for every label.
        let Some(child) = self.units.get(place as usize) else { return Unit::NONE };
        let child = Unit(u64::from_le_bytes(*child));
        select_unpredictable(child.label() == label, child, Unit::NONE)
    }

    /// ln(frequency / total) of a word; negative infinity for the absent word 0.
    #[inline]
    pub(super) fn log_probability(&self, id: u32) -> f64 {
        f64::from_le_bytes(self.log_probabilities[self.class(id)])
    }

    /// ln(1 / total): of a character that the dictionary lacks.
    #[inline]
    pub(super) const fn log_unknown(&self) -> f64 {
        self.log_unknown
    }

    /// The frequency of a word.
    pub(super) fn frequency(&self, id: u32) -> u32 {
        u32::from_le_bytes(self.frequencies[self.class(id)])
    }

    #[inline]
    fn class(&self, id: u32) -> usize {
        usize::from(u16::from_le_bytes(self.classes[id as usize]))
    }

    /// IDF and tag of a word.
    #[inline]
    pub(super) fn info(&self, id: u32) -> Info {
        let [low, high, tag, _characters] = self.infos[id as usize];
        Info { idf_index: u16::from_le_bytes([low, high]), tag }
    }

    /// The hash of a word.
    #[inline]
    pub(super) fn hash(&self, id: u32) -> u64 {
        u64::from_le_bytes(self.hashes[id as usize])
    }

    /// An IDF by its index.
    #[inline]
    pub(super) fn idf(&self, index: u16) -> f64 {
        f64::from_le_bytes(self.idfs[usize::from(index)])
    }

    /// The index of the IDF of a word that has no number, by its hash: its own where the IDF list
    /// has the word, else the median.
    pub(super) fn idf_index_by_hash(&self, hash: u64) -> u16 {
        let bucket = (hash >> (64 - BUCKET_BITS)) as usize;
        let start = usize::from(u16::from_le_bytes(self.other_buckets[bucket]));
        let end = usize::from(u16::from_le_bytes(self.other_buckets[bucket + 1]));
        self.other_hashes[start..end]
            .iter()
            .position(|other| u64::from_le_bytes(*other) == hash)
            .map_or(self.median_idf, |i| u16::from_le_bytes(self.other_idfs[start + i]))
    }

    /// A part-of-speech tag by its index.
    pub(super) fn tag(&self, index: u8) -> &'static str {
        let bytes = &self.tags[usize::from(index)];
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).unwrap_or_default()
    }
}

/// `count` items of `N` bytes, and what comes after them from the next cache line on.
const fn section<const N: usize>(bytes: &[u8], count: usize) -> (&[[u8; N]], &[u8]) {
    let length = count * N;
    let (section, rest) = bytes.split_at(length);
    let padding = length.next_multiple_of(ALIGNMENT) - length;
    (section.as_chunks::<N>().0, rest.split_at(padding).1)
}

const fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u64_at(bytes, at) as u32
}

const fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = 0;
    let mut i = 0;
    while i < 8 {
        value |= (bytes[at + i] as u64) << (8 * i);
        i += 1;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words::log::ln;

    #[test]
    fn the_embedded_table_is_whole() {
        assert_eq!(EMBEDDED.computed_digest(), EMBEDDED.digest());
        assert_eq!(EMBEDDED.words(), 349_045);
        let total: u64 = (1..=EMBEDDED.words()).map(|id| u64::from(EMBEDDED.frequency(id))).sum();
        assert_eq!(total, EMBEDDED.total());
    }

    /// The table was written with the logarithm of some machine; it must be the one we define.
    #[test]
    fn log_probabilities_do_not_depend_on_a_mathematics_library() {
        let log_total = ln(EMBEDDED.total());
        assert_eq!(EMBEDDED.log_unknown(), 0.0 - log_total);
        assert_eq!(EMBEDDED.log_probability(0), f64::NEG_INFINITY);
        for (frequency, log) in
            EMBEDDED.frequencies[1..].iter().zip(&EMBEDDED.log_probabilities[1..])
        {
            let frequency = u32::from_le_bytes(*frequency);
            assert_eq!(ln(u64::from(frequency)) - log_total, f64::from_le_bytes(*log));
        }
    }

    #[test]
    fn a_word_that_the_dictionary_lacks_has_its_own_idf_or_the_median() {
        let idf = |word: &str| EMBEDDED.idf(EMBEDDED.idf_index_by_hash(xxh3_64(word.as_bytes())));
        assert_eq!(idf("卢巴"), 12.1089181827);
        assert_eq!(idf("no such word"), 11.9547675029);
    }
}
