//! Documents of one form: what varies among those that are near each other counts for more than what they share.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::TextSource;
use super::chunks::in_chunks;
use super::lru::LruCache;
use super::order::by_neighbourhood_of;
use crate::cluster::Components;
use crate::dedup::Accepted;
use crate::feature::shingle::Reduced;
use crate::verify::{Facts, Slots, Varying};

/// The neighbours of a document that are looked at: the nearest, of equal ones the earliest.
const NEIGHBOURS: usize = 16;

/// With fewer neighbours nothing is known to vary.
const FEWEST: usize = 5;

/// Documents that one worker takes at a time.
const CHUNK: usize = 64;

/// Longer texts are not looked at, in bytes: few values count for nothing in them.
const LONGEST: usize = 1 << 20;

/// Bytes of slots that are kept.
const KEPT: usize = 64 << 20;

/// The slots that vary among a document and its near neighbours, for each document that has any.
#[derive(Default)]
pub struct Templates {
    varying: HashMap<u32, Varying>,
    none: Varying,
}

impl Templates {
    /// Those of documents that are in pairs. Documents with few neighbours have none.
    ///
    /// 24 bytes for each pair of a document with many neighbours while it runs, and some 100 for each such document.
    ///
    /// # Errors
    /// When a text cannot be read back, or what [`TextSource::check`] returns.
    pub fn among<T: TextSource>(pairs: &[Accepted], texts: &T) -> Result<Templates, T::Error> {
        let neighbours = nearest(pairs, |document| texts.len_of(document) <= LONGEST);
        let mut groups: Vec<&[Neighbour]> = neighbours.chunk_by(|x, y| x.of == y.of).collect();
        // Those of linked documents follow each other, so that the slots of each are made about once.
        let last = neighbours.iter().map(|of| of.of.max(of.document)).max();
        let mut components = Components::new(last.map_or(0, |last| last as usize + 1));
        neighbours.iter().for_each(|of| components.link(of.of, of.document));
        groups.sort_by_cached_key(|group| (components.root(group[0].of), group[0].of));
        drop(components);
        let kept = kept_slots();
        let reader = || SlotReader::new(texts, &kept);
        let found = in_chunks(
            || texts.check(),
            groups.len(),
            CHUNK,
            reader,
            |reader, place| {
                let group = groups[place];
                let own = reader.slots(group[0].of)?;
                let others = group.iter().map(|neighbour| reader.slots(neighbour.document));
                let others: Vec<Arc<Slots>> = others.collect::<Result<_, T::Error>>()?;
                let others: Vec<&Slots> = others.iter().map(|slots| &**slots).collect();
                let varying = Varying::among(&own, &others);
                Ok((!varying.is_empty()).then_some((group[0].of, varying)))
            },
        )?;
        Ok(Templates { varying: found.into_iter().collect(), none: Varying::default() })
    }

    /// Whether something is known to vary around one of two documents.
    pub fn concern(&self, a: u32, b: u32) -> bool {
        self.varying.contains_key(&a) || self.varying.contains_key(&b)
    }

    /// In how many values two documents agree and differ.
    ///
    /// # Errors
    /// When a text cannot be read back.
    pub fn facts<T: TextSource>(
        &self,
        reader: &mut SlotReader<'_, T>,
        a: u32,
        b: u32,
    ) -> Result<Facts, T::Error> {
        let varying = |document| self.varying.get(&document).unwrap_or(&self.none);
        let (x, y) = (reader.slots(a)?, reader.slots(b)?);
        Ok(Facts::between(&x, &y, [varying(a), varying(b)]))
    }

    /// The facts of pairs, in their order, each with the letters of both texts; `None` for a pair about which
    /// nothing is known to vary.
    ///
    /// # Errors
    /// When a text cannot be read back, or what [`TextSource::check`] returns.
    pub fn facts_of_all<T: TextSource>(
        &self,
        pairs: &[(u32, u32)],
        texts: &T,
        kept: &KeptSlots,
    ) -> Result<Vec<Option<(Facts, usize)>>, T::Error> {
        let concerned = (0..pairs.len()).filter(|&place| {
            let (a, b) = pairs[place];
            self.concern(a, b)
        });
        let concerned: Vec<usize> = concerned.collect();
        let order = by_neighbourhood_of(concerned.iter().map(|&place| pairs[place]));
        let reader = || SlotReader::new(texts, kept);
        let found = in_chunks(
            || texts.check(),
            order.len(),
            CHUNK,
            reader,
            |reader, turn| {
                let place = concerned[order[turn] as usize];
                let (a, b) = pairs[place];
                let facts = self.facts(reader, a, b)?;
                Ok(Some((place, (facts, reader.letters(a)? + reader.letters(b)?))))
            },
        )?;
        let mut facts = vec![None; pairs.len()];
        found.into_iter().for_each(|(place, found)| facts[place] = Some(found));
        Ok(facts)
    }
}

/// A document near another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Neighbour {
    of: u32,
    strength: Reverse<u32>,
    document: u32,
}

/// The nearest wanted neighbours of each document that has enough of them, in the order of these documents.
fn nearest(pairs: &[Accepted], is_wanted: impl Fn(u32) -> bool + Sync) -> Vec<Neighbour> {
    let documents = pairs.iter().map(|pair| pair.b as usize + 1).max().unwrap_or(0);
    let mut counts = vec![0u32; documents];
    for pair in pairs {
        counts[pair.a as usize] += 1;
        counts[pair.b as usize] += 1;
    }
    let has_many =
        |document: u32| counts[document as usize] as usize >= FEWEST && is_wanted(document);
    let both = pairs.iter().flat_map(|pair| {
        let strength = Reverse(pair.strength);
        let of = |of, document| Neighbour { of, strength, document };
        [of(pair.a, pair.b), of(pair.b, pair.a)]
    });
    let mut neighbours: Vec<Neighbour> =
        both.filter(|neighbour| has_many(neighbour.of) && is_wanted(neighbour.document)).collect();
    neighbours.par_sort_unstable();
    let (mut of, mut nth) = (None, 0);
    neighbours.retain(|neighbour| {
        nth = if of == Some(neighbour.of) { nth + 1 } else { 0 };
        of = Some(neighbour.of);
        nth < NEIGHBOURS
    });
    neighbours
}

/// The slots of the documents that were looked at last.
pub type KeptSlots = LruCache<u32, Slots>;

/// None yet.
pub fn kept_slots() -> KeptSlots {
    LruCache::new(KEPT, Slots::bytes)
}

/// Reads the slots of documents.
pub struct SlotReader<'t, T> {
    texts: &'t T,
    kept: &'t KeptSlots,
    reduced: Reduced,
}

impl<'t, T: TextSource> SlotReader<'t, T> {
    pub fn new(texts: &'t T, kept: &'t KeptSlots) -> SlotReader<'t, T> {
        SlotReader { texts, kept, reduced: Reduced::default() }
    }

    /// The letters and digits of a document.
    fn letters(&mut self, document: u32) -> Result<usize, T::Error> {
        Ok(self.slots(document)?.letters())
    }

    fn slots(&mut self, document: u32) -> Result<Arc<Slots>, T::Error> {
        if let Some(slots) = self.kept.get(document) {
            return Ok(slots);
        }
        let mut slots = Slots::default();
        self.texts.with_text(document, |text| {
            // A text that is too long has no letter here.
            if self.reduced.fill(text).is_ok() {
                slots = Slots::of(&self.reduced);
            }
        })?;
        let slots = Arc::new(slots);
        self.kept.keep(document, Arc::clone(&slots));
        Ok(slots)
    }
}
