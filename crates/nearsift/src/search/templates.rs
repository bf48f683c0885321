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
    /// Those of documents that are in pairs, as [`Templates::of`] finds them.
    ///
    /// # Errors
    /// When a text cannot be read back, or what [`TextSource::check`] returns.
    pub fn among<T: TextSource>(pairs: &[Accepted], texts: &T) -> Result<Templates, T::Error> {
        Templates::of(&Neighbourhoods::of(pairs, texts), texts, &KnownTemplates::default())
    }

    /// Those of documents and their near neighbours. Where an earlier search had a document with the same neighbours, no text
    /// is read.
    ///
    /// 16 bytes for each neighbour while it runs, and some 100 for each document with any.
    ///
    /// # Errors
    /// When a text cannot be read back, or what [`TextSource::check`] returns.
    pub fn of<T: TextSource>(
        neighbourhoods: &Neighbourhoods,
        texts: &T,
        known: &KnownTemplates,
    ) -> Result<Templates, T::Error> {
        let groups = neighbourhoods.by_component();
        let kept = kept_slots();
        let reader = || SlotReader::new(texts, &kept);
        let found = in_chunks(
            || texts.check(),
            groups.len(),
            CHUNK,
            reader,
            |reader, place| {
                let group = groups[place];
                if let Some(varying) = known.of(group) {
                    return Ok((!varying.is_empty()).then(|| (group[0].of, varying.clone())));
                }
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

    /// The slots that vary among a document and its near neighbours.
    pub fn varying(&self, document: u32) -> &Varying {
        self.varying.get(&document).unwrap_or(&self.none)
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
        let (x, y) = (reader.slots(a)?, reader.slots(b)?);
        Ok(Facts::between(&x, &y, [self.varying(a), self.varying(b)]))
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

/// The near neighbours of each document that has enough of them to tell what varies: at most 16, the nearest first.
pub struct Neighbourhoods(Vec<Neighbour>);

impl Neighbourhoods {
    /// Those of documents that are in pairs.
    ///
    /// 24 bytes for each pair of a document with many neighbours while it runs.
    pub fn of(pairs: &[Accepted], texts: &impl TextSource) -> Neighbourhoods {
        Neighbourhoods(nearest(pairs, |document| texts.len_of(document) <= LONGEST))
    }

    /// Each document with its neighbours, in ascending order of the documents.
    pub fn iter(&self) -> impl Iterator<Item = (u32, impl ExactSizeIterator<Item = u32>)> {
        self.groups().map(|group| (group[0].of, group.iter().map(|of| of.document)))
    }

    fn groups(&self) -> impl Iterator<Item = &[Neighbour]> {
        self.0.chunk_by(|x, y| x.of == y.of)
    }

    /// Those of linked documents one after the other, so that the slots of each are made about once.
    fn by_component(&self) -> Vec<&[Neighbour]> {
        let last = self.0.iter().map(|of| of.of.max(of.document)).max();
        let mut components = Components::new(last.map_or(0, |last| last as usize + 1));
        self.0.iter().for_each(|of| components.link(of.of, of.document));
        let mut groups: Vec<&[Neighbour]> = self.groups().collect();
        groups.sort_by_cached_key(|group| (components.root(group[0].of), group[0].of));
        groups
    }
}

/// What an earlier search over the same texts found to vary around documents, and among which neighbours.
#[derive(Default)]
pub struct KnownTemplates(HashMap<u32, (Box<[u32]>, Varying)>);

impl KnownTemplates {
    /// Adds a document with its neighbours in their order, and the slots that vary among them.
    pub fn add(&mut self, document: u32, neighbours: Box<[u32]>, varying: Varying) {
        self.0.insert(document, (neighbours, varying));
    }

    /// What varies around a document, if it had just these neighbours.
    fn of(&self, group: &[Neighbour]) -> Option<&Varying> {
        let (neighbours, varying) = self.0.get(&group[0].of)?;
        let is_same = neighbours.iter().eq(group.iter().map(|of| &of.document));
        is_same.then_some(varying)
    }
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::convert::Infallible;
    use std::sync::Mutex;

    use super::*;
    use crate::text::normalise::normalise;

    /// Texts of one form, and which of them were read.
    struct Forms {
        texts: Vec<String>,
        read: Mutex<HashSet<u32>>,
    }

    impl TextSource for Forms {
        type Error = Infallible;

        fn with_text<R>(&self, document: u32, f: impl FnOnce(&str) -> R) -> Result<R, Infallible> {
            self.read.lock().expect("a lock").insert(document);
            Ok(f(&normalise(&self.texts[document as usize])))
        }

        fn len_of(&self, document: u32) -> usize {
            self.texts[document as usize].len()
        }
    }

    /// Two families, of documents 0 to 9 and 10 to 19, whose members have other temperatures and winds.
    fn forms() -> Forms {
        let text = |document: u32| {
            let place = if document < 10 { "harbour" } else { "airfield" };
            format!(
                "This evening the {place} expects a temperature of {} degrees and a wind of {} knots, and the ferry leaves at {} as usual.",
                10 + document,
                30 + document,
                50 + document,
            )
        };
        Forms { texts: (0..20).map(text).collect(), read: Mutex::default() }
    }

    fn pairs(family: std::ops::Range<u32>) -> Vec<Accepted> {
        let pair = |a: u32, b: u32| Accepted { a, b, strength: 1000 - (b - a) };
        family.clone().flat_map(|a| (a + 1..family.end).map(move |b| pair(a, b))).collect()
    }

    #[test]
    fn what_is_known_of_the_same_neighbours_is_taken_up() {
        let texts = forms();
        let earlier: Vec<Accepted> = [pairs(0..10), pairs(10..18)].concat();
        let neighbourhoods = Neighbourhoods::of(&earlier, &texts);
        let found = Templates::among(&earlier, &texts).expect("texts in memory");
        assert!(!found.varying(3).is_empty(), "the values vary");
        let mut known = KnownTemplates::default();
        for (document, neighbours) in neighbourhoods.iter() {
            let varying = found.varying(document).clone();
            known.add(document, neighbours.collect(), varying);
        }

        // The second family has two more members now, and is looked at again.
        let now: Vec<Accepted> = [pairs(0..10), pairs(10..20)].concat();
        let alone = Templates::among(&now, &texts).expect("texts in memory");
        texts.read.lock().expect("a lock").clear();
        let both = Templates::of(&Neighbourhoods::of(&now, &texts), &texts, &known);
        let both = both.expect("texts in memory");
        (0..20).for_each(|d| assert_eq!(both.varying(d), alone.varying(d), "document {d}"));
        let read = texts.read.lock().expect("a lock");
        assert_eq!(*read, (10..20).collect::<HashSet<u32>>(), "texts that were read");
    }
}
