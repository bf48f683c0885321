//! From a text to its dual sketch.

use super::fingerprinter::{Fingerprinter, Rarity};
use super::spec::Form;
use super::{Kind, NoFingerprint};
use crate::feature::count::count_by_sorting;
use crate::feature::frequency::{DocumentFrequencies, SIXTEENTHS};
use crate::feature::weight::Weighting;
use crate::sketch::{Keys, Sketch, minwise};
use crate::text::decode::is_undecodable;

/// A document's sketch, and the keys that find candidates for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketched {
    /// The sketch.
    pub sketch: Sketch,
    /// The candidate keys.
    pub keys: Keys,
    /// The number of distinct features that it is made of.
    pub features: u32,
}

/// A feature in more than about one document of seven, by its rarity in sixteenths of a bit, takes no
/// part in the minwise values: what so many documents have says nothing.
const COMMON: u32 = 44;

/// The rarity in sixteenths of a bit at which the shipped table ends.
const RAREST: u32 = 165;

/// Weights of features that occur up to this often are in a table.
const FEW: u32 = 16;

/// Memory for more features than this is not kept, and more occurrences are counted by sorting. Tests count both ways.
const HUGE: usize = if cfg!(test) { 1 << 7 } else { 1 << 20 };

/// The features of a document, parted by what becomes of them. Their order in a part means nothing.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Those that occur once and have a level, by level: those of one level have one weight, and vote
    /// together.
    once: Vec<u64>,
    /// Where those of each level end.
    ends: Vec<usize>,
    /// How many levels are of features that take no part in the minwise values.
    common_levels: usize,
    /// The others: up to `telling_end` those that take part in the minwise values, and from
    /// `common_begin` to `end` those that do not.
    hashes: Vec<u64>,
    weights: Vec<u8>,
    telling_end: usize,
    common_begin: usize,
    end: usize,
    levels: Vec<u8>,
    /// The weights of features by their count and level, where the count is small.
    known_weights: Vec<u8>,
}

/// Rarities as a document's features are sorted by them: there are `LEVELS` levels, each of one rarity, and
/// those of a higher level are rarer.
trait Scale<const LEVELS: usize> {
    /// The level of a feature; `LEVELS` when it is rarer than all of them.
    fn level(&self, hash: u64) -> u8;

    /// The rarity of a feature in sixteenths of a bit, given its level.
    fn rarity(&self, level: u8, hash: u64) -> u32;
}

impl Scale<{ SIXTEENTHS.len() }> for DocumentFrequencies {
    #[inline(always)]
    fn level(&self, hash: u64) -> u8 {
        self.step(hash)
    }

    #[inline(always)]
    fn rarity(&self, level: u8, _hash: u64) -> u32 {
        SIXTEENTHS[usize::from(level)].into()
    }
}

/// The rarities up to [`RAREST`].
const RARITIES: usize = RAREST as usize + 1;

impl Scale<RARITIES> for Rarity<'_> {
    fn level(&self, hash: u64) -> u8 {
        self.sixteenths(hash, None).min(RAREST + 1) as u8
    }

    fn rarity(&self, level: u8, hash: u64) -> u32 {
        if usize::from(level) < RARITIES { level.into() } else { self.sixteenths(hash, None) }
    }
}

/// Places that features of one level are put at in turns: each waits for what was put at its own before.
const TURNS: usize = 4;

impl Sorted {
    /// Takes the features of a document: hashes that occur once, and others with their counts.
    ///
    /// # Complexity
    /// O(features), about 3 ns each.
    fn fill<const LEVELS: usize>(
        &mut self,
        once: &[u64],
        (others, counts): (&[u64], &[u32]),
        weighting: Weighting,
        scale: &impl Scale<LEVELS>,
    ) {
        let weigh = |count, rarity| weighting.weight(count, rarity).min(255) as u8;
        // A fingerprinter has one weighting and one scale: its table is made once.
        if self.known_weights.is_empty() {
            let levels = || (0..LEVELS as u8).map(|level| scale.rarity(level, 0));
            self.common_levels = levels().filter(|&rarity| rarity <= COMMON).count();
            self.known_weights.extend((1..=FEW).flat_map(|c| levels().map(move |r| weigh(c, r))));
        }
        self.make_room(once.len() + others.len());

        // By itself: the table is larger than the nearest caches, and a loop that does nothing else
        // waits for many of its entries at a time.
        self.levels.resize(once.len() + others.len(), 0);
        for (level, &hash) in self.levels.iter_mut().zip(once.iter().chain(others)) {
            *level = scale.level(hash);
        }
        let beyond = self.sort_by_level::<LEVELS>(once);

        let Sorted { once: sorted, hashes, weights, levels, known_weights, end, .. } = self;
        let common_levels = self.common_levels;
        let (hashes, weights) = (&mut hashes[..*end], &mut weights[..*end]);
        let (mut telling_end, mut common_begin) = (0, *end);
        // Without a branch, which would be wrong every other time: where a feature does not belong, the
        // next one overwrites it.
        let mut part = |hash, weight, is_common: bool| {
            let place = if is_common { common_begin - 1 } else { telling_end };
            hashes[place] = hash;
            weights[place] = weight;
            telling_end += usize::from(!is_common);
            common_begin -= usize::from(is_common);
        };
        let of_others = &levels[once.len()..];
        for ((&hash, &count), &level) in others.iter().zip(counts).zip(of_others) {
            let place = usize::from(level);
            let weight = if count <= FEW && place < LEVELS {
                known_weights[(count as usize - 1) * LEVELS + place]
            } else {
                weigh(count, scale.rarity(level, hash))
            };
            part(hash, weight, place < common_levels);
        }
        for hash in sorted.drain(beyond..) {
            part(hash, weigh(1, scale.rarity(LEVELS as u8, hash)), false);
        }
        self.telling_end = telling_end;
        self.common_begin = common_begin;
    }

    /// Sorts features by their levels, and returns where those begin that are beyond all.
    fn sort_by_level<const LEVELS: usize>(&mut self, features: &[u64]) -> usize {
        let Sorted { once, ends, levels, .. } = self;
        let (by_turns, levels_left) = levels[..features.len()].as_chunks::<TURNS>();
        // One place for each byte that there is: none is out of bounds.
        let mut places = [[0u32; TURNS]; 256];
        for levels in by_turns {
            for turn in 0..TURNS {
                places[usize::from(levels[turn])][turn] += 1;
            }
        }
        levels_left.iter().for_each(|&level| places[usize::from(level)][0] += 1);
        let mut start = 0;
        ends.clear();
        for turns in &mut places[..=LEVELS] {
            for place in turns {
                start += std::mem::replace(place, start);
            }
            ends.push(start as usize);
        }
        // What is there already is overwritten.
        once.resize(features.len(), 0);
        let once = &mut once[..];
        let mut put = |feature, level: u8, turn: usize| {
            let place = &mut places[usize::from(level)][turn];
            once[*place as usize] = feature;
            *place += 1;
        };
        let (features_by_turns, features_left) = features.as_chunks::<TURNS>();
        for (features, levels) in features_by_turns.iter().zip(by_turns) {
            for turn in 0..TURNS {
                put(features[turn], levels[turn], turn);
            }
        }
        features_left.iter().zip(levels_left).for_each(|(&feature, &level)| put(feature, level, 0));
        ends.pop();
        ends[LEVELS - 1]
    }

    fn make_room(&mut self, n: usize) {
        if self.hashes.len() > HUGE {
            // One huge document must not hold its memory for ever.
            let (common_levels, known_weights) =
                (self.common_levels, std::mem::take(&mut self.known_weights));
            *self = Sorted { common_levels, known_weights, ..Sorted::default() };
        }
        if self.hashes.len() < n {
            self.hashes.resize(n, 0);
            self.weights.resize(n, 0);
        }
        self.end = n;
    }

    fn len(&self) -> usize {
        self.once.len() + self.telling_end + self.end - self.common_begin
    }

    /// Features that occur once, each level's with their weight.
    fn by_weight(&self) -> impl Iterator<Item = (&[u64], u8)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let parts = starts.zip(&self.ends).map(|(&start, &end)| &self.once[start..end]);
        parts.zip(self.known_weights.iter().copied()).filter(|(part, _)| !part.is_empty())
    }

    /// The others with their weights.
    fn weighted(&self) -> [(&[u64], &[u8]); 2] {
        let (telling, common) = (0..self.telling_end, self.common_begin..self.end);
        [telling, common].map(|range| (&self.hashes[range.clone()], &self.weights[range]))
    }

    /// Those that take part in the minwise values.
    fn telling(&self) -> [&[u64]; 2] {
        [&self.once[self.end_of_common()..], &self.hashes[..self.telling_end]]
    }

    /// Those that do not.
    fn common(&self) -> [&[u64]; 2] {
        [&self.once[..self.end_of_common()], &self.hashes[self.common_begin..self.end]]
    }

    /// Where the common ones end among those that occur once.
    fn end_of_common(&self) -> usize {
        self.common_levels.checked_sub(1).map_or(0, |last| self.ends[last])
    }
}

impl Fingerprinter<'_> {
    /// The hashes of the distinct features of the text that [`sketch`](Fingerprinter::sketch) was last
    /// called with, whether or not it has a sketch. The text alone decides their order.
    pub fn sketched_features(&self) -> Vec<u64> {
        [self.sorted.telling(), self.sorted.common()].concat().concat()
    }

    /// The dual sketch of a text, or why it has none.
    ///
    /// # Panics
    /// When the recipe [makes no sketches](super::Recipe::is_sketch).
    ///
    /// # Complexity
    /// O(bytes).
    ///
    /// ```
    /// use nearsift::recipe::Recipe;
    /// let recipe = Recipe::parse("sketch")?;
    /// let mut fingerprinter = recipe.fingerprinter()?;
    /// let a = fingerprinter.sketch("今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。").unwrap();
    /// let b = fingerprinter.sketch("今天下午，市图书馆举办了一场儿童绘本阅读活动。").unwrap();
    /// let c = fingerprinter.sketch("本报讯：昨天的大雨使两条地铁线路停运了三个小时。").unwrap();
    /// assert!(a.sketch.score(&b.sketch) > a.sketch.score(&c.sketch));
    /// # Ok::<(), nearsift::recipe::RecipeError>(())
    /// ```
    pub fn sketch(&mut self, text: &str) -> Result<Sketched, NoFingerprint> {
        let recipe = self.recipe;
        let Kind::Native(spec) = &recipe.kind else { panic!("{recipe} makes no sketches") };
        assert!(spec.form == Form::Sketch, "{recipe} makes no sketches");
        let rarity = Rarity::of_weight(recipe, spec).expect("a sketch weighs by rarity");

        // A text without a sketch has a key all the same: that of the text before would make it a copy of that one.
        let prepared = self.prepare(spec, text).and_then(|()| match is_undecodable(text) {
            true => Err(NoFingerprint::Undecodable),
            false => Ok(()),
        });
        if let Err(reason) = prepared {
            // What the text before left.
            self.sorted = Sorted::default();
            return Err(reason);
        }
        self.hash_features(spec);
        let Fingerprinter { hashes, once, tally, sorted, votes, .. } = self;
        let by_sorting;
        let (once, counted): (&[u64], (&[u64], &[u32])) = if hashes.len() > HUGE {
            by_sorting = count_by_sorting(hashes);
            let (once, others, counts) = &by_sorting;
            (&hashes[..*once], (others, counts))
        } else {
            let (once, rest) = once.split(hashes);
            (once, tally.count(rest))
        };
        match rarity {
            Rarity::ByScript(table) => sorted.fill(once, counted, spec.weight, table),
            rarity => sorted.fill(once, counted, spec.weight, &rarity),
        }
        let found = sorted.len() as u32;
        if found < spec.min_features {
            return Err(if self.has_letters() {
                NoFingerprint::TooFewFeatures { found, needed: spec.min_features }
            } else {
                NoFingerprint::Empty
            });
        }
        votes.clear();
        for (hashes, weight) in sorted.by_weight() {
            votes.add_uniform(hashes, weight);
        }
        for (hashes, weights) in sorted.weighted() {
            votes.add(hashes, weights);
        }
        let simhash = votes.finish().expect("every feature has a weight");
        // A text of common features alone has nothing else to tell it by.
        let values =
            minwise::values(&sorted.telling()).or_else(|| minwise::values(&sorted.common()));
        let values = values.expect("there are features");
        let mut words = [0; crate::sketch::WORDS];
        words[..4].copy_from_slice(simhash.words());
        words[4..].copy_from_slice(&minwise::nibbles(&values));
        let sketch = Sketch::from_words(words);
        Ok(Sketched { sketch, keys: minwise::keys(&values), features: found })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::feature::frequency::DocumentFrequencies;
    use crate::feature::rarity::RarityTable;
    use crate::feature::shingle::Reduced;
    use crate::feature::{by_script, hash_token};
    use crate::fingerprint::votes::lane_hash;
    use crate::recipe::{Recipe, Tables};
    use crate::text::normalise::normalise;

    /// The definition: features counted in a map, sums of ± weight, the least value of each bin.
    fn naive(
        recipe: &Recipe,
        mut rarity: impl FnMut(u64) -> u32,
        text: &str,
    ) -> Result<Sketched, NoFingerprint> {
        let Kind::Native(spec) = &recipe.kind else { panic!("a native recipe") };
        let mut reduced = Reduced::default();
        reduced.fill(&normalise(text)).expect("short");
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        by_script::each_feature(&reduced, |feature| {
            *counts.entry(hash_token(feature)).or_default() += 1;
        });
        let (found, needed) = (counts.len() as u32, spec.min_features);
        if found == 0 {
            return Err(NoFingerprint::Empty);
        }
        if found < needed {
            return Err(NoFingerprint::TooFewFeatures { found, needed });
        }
        let mut sums = [0i64; 256];
        for (&hash, &count) in &counts {
            let weight = spec.weight.weight(count, rarity(hash)).min(255) as i64;
            for (bit, sum) in sums.iter_mut().enumerate() {
                let one = lane_hash(hash, bit / 64) >> (bit % 64) & 1 == 1;
                *sum += if one { weight } else { -weight };
            }
        }
        let mut words = [0; 8];
        for (bit, &sum) in sums.iter().enumerate() {
            words[bit / 64] |= u64::from(sum > 0) << (bit % 64);
        }
        let mut telling: Vec<u64> = counts.keys().copied().filter(|&h| rarity(h) > 44).collect();
        if telling.is_empty() {
            telling.extend(counts.keys());
        }
        let values = minwise::tests::naive(&telling).expect("there are features");
        for (i, value) in values.iter().enumerate() {
            words[4 + i / 16] |= (value & 15) << (4 * (i % 16));
        }
        let sketch = Sketch::from_words(words);
        Ok(Sketched { sketch, keys: minwise::keys(&values), features: found })
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[一-龥，。]{0,900}",
            "[一-三 。]{0,120}",
            "(的|我们|中国|人民|法院){0,20}",
            "[a-c一-三ßé ,。1カ한ไ😀]{0,120}",
            "([a-z]{1,7}[ ,.]){0,150}",
            // Counts whose weights pass 255.
            "a{0,3}(一二三四五){0,2000}",
            "(the|of|and|water)( the| of| and| to| water){0,40}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn a_sketch_equals_its_definition(
            texts in prop::collection::vec(text(), 1..4),
            written in prop::sample::select(vec![
                "sketch",
                "sketch:min-features=1",
                "sketch:weight=log-tf-idf,min-features=3",
                "sketch:weight=tf-idf,min-features=1",
            ]),
        ) {
            let recipe = Recipe::parse(written).expect("a recipe");
            let table = DocumentFrequencies::shipped();
            let mut fingerprinter = recipe.fingerprinter().expect("complete");
            for text in texts {
                let expect = naive(&recipe, |hash| table.idf_sixteenths(hash).into(), &text);
                prop_assert_eq!(fingerprinter.sketch(&text), expect);
            }
        }

        #[test]
        fn a_table_of_the_user_is_heeded(texts in prop::collection::vec(text(), 1..3)) {
            let written = "中国 0.5\n我们 2.9\n一二 11\n的 0\n";
            let table = RarityTable::parse_idf(written).expect("a table");
            let tables = Tables { idf: Some(table.clone().into()), ..Tables::default() };
            let recipe = Recipe::parse("sketch:idf=file,min-features=1").expect("a recipe");
            let recipe = recipe.with_tables(tables);
            let mut fingerprinter = recipe.fingerprinter().expect("complete");
            let mut known: HashMap<u64, u32> = HashMap::new();
            for text in texts {
                let expect = naive(
                    &recipe,
                    |hash| *known.entry(hash).or_insert((table.get(hash) * 16.0).round() as u32),
                    &text,
                );
                prop_assert_eq!(fingerprinter.sketch(&text), expect);
            }
        }
    }
}
