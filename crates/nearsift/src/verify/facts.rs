//! What two texts of one form differ in: the values at equal places.
//!
//! Reports of one template, forms that were filled in, and records of a catalogue share most of their letters. What
//! they say stands in few *slots*: the forecast 'a temperature of 12 degrees' in the slot 'temperature of _ degrees'. A
//! slot is found by the letters beside it, five before or five after, in whatever document it stands. Two documents
//! *agree* in a slot when both have the same value there, and *differ* when they have different ones; a passage that one
//! of them lacks is neither.
//!
//! Which slots count: those that *vary* among a document's near neighbours, so that no value is that of many. An edit
//! makes no such slot: where one copy of a story has another word, the other copies agree with each other. Of two texts
//! alone nothing is known to vary; then the slots of numbers count, and take no more than [`MOST_OF_NUMBERS`]: a table with new
//! figures may be the same table.

use crate::feature::shingle::Reduced;
use crate::split_mix::split_mix;
use crate::text::script::Class;

/// Letters beside a value that make its slot.
const CONTEXT: usize = 5;

/// The fewest documents with a slot that tell whether it varies.
const FEWEST: usize = 6;

/// Values at equal places stand no further from each other than a tenth of the text, or this number of letters: what is found
/// elsewhere has the same letters beside it by chance.
const SHIFT: u32 = 10;
const LEAST_SHIFT: u32 = 64;

/// A slot varies when its most frequent value is in at most this share of the documents that have it: 9 of 20.
const MOST_FREQUENT: (usize, usize) = (9, 20);

/// A slot is searched for among this many neighbours of its expected place, and then by binary search.
const BESIDE_LIKELY: usize = 64;

/// Fewer values that differ than this say nothing.
const FEWEST_DIFFERENT: u32 = 3;

/// Values with no more letters from one to the next stand in one passage.
const PASSAGE: u32 = 16;

/// The letters that a passage counts for beyond its own in which values differ: the first of them, and each other. Values
/// all over a text say more than those of one footer.
const BESIDE_FIRST: u32 = 4;
const BESIDE_OTHER: u32 = 56;

/// The most that numbers take from a score where nothing is known of what varies.
const MOST_OF_NUMBERS: f64 = 0.2;

/// Shorter texts count as if they had as many letters.
const SHORTEST: f64 = 40.0;

/// A slot, and a value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The hash of the letters beside it, of their side, and of whether the value is a number.
    place: u32,
    /// The hash of the value.
    value: u32,
    /// The pairs of letters in a word, each a bit.
    letters: u64,
    /// The letters before the value where it stands first; those of scripts without spaces count twice.
    at: u32,
    /// Whether the document has no other value at this place.
    is_alone: bool,
}

impl Slot {
    /// The place and the value.
    fn key(&self) -> u64 {
        u64::from(self.place) << 32 | u64::from(self.value)
    }

    /// The lowest bit of a place tells numbers from words.
    fn is_number(&self) -> bool {
        self.place & 1 == 1
    }

    /// Whether two different values of one slot may be the same word, damaged or inflected: most pairs of letters
    /// are the same.
    fn resembles(&self, other: &Slot) -> bool {
        let both = (self.letters & other.letters).count_ones();
        !self.is_number() && 5 * both >= self.letters.count_ones() + other.letters.count_ones()
    }
}

/// The slots of a document, with their values.
///
/// 28 bytes for each number or word, twice; an unspaced letter counts as a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    slots: Box<[Slot]>,
    /// Their places, once more: a look for one takes few lines of memory.
    places: Box<[u32]>,
    letters: usize,
    /// By how many letters a value may stand elsewhere in another text and still be at an equal place.
    shift: u32,
}

/// The slots of a document that vary among its neighbours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Varying(Box<[u32]>);

impl Slots {
    /// All slots of a text.
    ///
    /// # Complexity
    /// O(n log n) for n letters.
    pub fn of(reduced: &Reduced) -> Slots {
        Slots::filled(reduced, |_| true)
    }

    /// Those of numbers.
    pub(super) fn of_numbers(reduced: &Reduced) -> Slots {
        if !reduced.text().bytes().any(|byte| byte.is_ascii_digit()) {
            return Slots::default();
        }
        Slots::filled(reduced, |kind| kind == Kind::Number)
    }

    fn filled(reduced: &Reduced, is_wanted: impl Fn(Kind) -> bool) -> Slots {
        let (tokens, letters) = tokens(reduced);
        let mut contexts = Contexts::of(&letters);
        let mut slots = Vec::new();
        // Of two letters in a row, the value that they make.
        let mut of_last = None;
        for (at, token) in tokens.iter().enumerate() {
            let with_last = of_last.take();
            if !is_wanted(token.kind) {
                continue;
            }
            // With the letter beside it, a letter of a script without spaces says as much as a word.
            let next = tokens.get(at + 1);
            let next = next.filter(|next| [next.kind, token.kind] == [Kind::Letter; 2]);
            let own = Value::of([Some(token), next]);
            let value_before = match (token.kind, with_last) {
                (Kind::Letter, Some(both)) => both,
                (Kind::Letter, None) => Value::of([Some(token), None]),
                _ => own,
            };
            of_last = next.map(|_| own);
            let before = token.start.checked_sub(CONTEXT).and_then(|from| contexts.at(from));
            let after = contexts.at(token.end());
            slots.extend(before.map(|context| token.slot(0, context, own)));
            slots.extend(after.map(|context| token.slot(1, context, value_before)));
        }
        slots.sort_unstable_by_key(|slot| (slot.key(), slot.at));
        slots.dedup_by_key(|slot| slot.key());
        for same_place in slots.chunk_by_mut(|a, b| a.place == b.place) {
            let is_alone = same_place.len() == 1;
            same_place.iter_mut().for_each(|slot| slot.is_alone = is_alone);
        }
        let end = tokens.last().map_or(0, |token| token.at);
        let shift = (end / SHIFT).max(LEAST_SHIFT);
        let places = slots.iter().map(|slot| slot.place).collect();
        Slots { slots: slots.into(), places, letters: reduced.text().chars().count(), shift }
    }

    /// The memory that they take beside their own size, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.places)
    }

    /// The slots from the first one on that does not come before a place.
    ///
    /// # Complexity
    /// Expected O(sqrt(n)) for n slots, nearly always within one or two lines of memory, because places are hashes; O(log n) more where many
    /// are alike.
    fn starting_at(&self, place: u32) -> &[Slot] {
        let places = &*self.places;
        // Hashes are spread evenly.
        let likely = (u64::from(place) * places.len() as u64) >> u32::BITS;
        let likely = likely as usize;
        let (before, after) = places.split_at(likely);
        let is_before = |other: &u32| *other < place;
        let beyond =
            before.iter().rev().take(BESIDE_LIKELY).take_while(|other| !is_before(other)).count();
        let at = if beyond == BESIDE_LIKELY {
            before.partition_point(is_before)
        } else if beyond > 0 {
            likely - beyond
        } else {
            let short =
                after.iter().take(BESIDE_LIKELY).take_while(|other| is_before(other)).count();
            let far = &after[short..];
            let more = if short == BESIDE_LIKELY { far.partition_point(is_before) } else { 0 };
            likely + short + more
        };
        &self.slots[at..]
    }

    /// The letters and digits of the text.
    pub fn letters(&self) -> usize {
        self.letters
    }

    /// The first value of each slot, but for slots whose value so many neighbours have that it is too frequent to vary.
    ///
    /// Of copies that is nearly all of them, and a merge without a branch finds it. As many neighbours are asked as that
    /// takes at least.
    fn not_shared_by_most(&self, neighbours: &[&Slots]) -> Vec<&Slot> {
        let documents = neighbours.len() + 1;
        let enough = (1..documents).find(|&same| is_frequent(same, documents)).unwrap_or(documents);
        let mut same: Vec<usize> =
            self.slots.iter().map(|slot| usize::from(slot.is_alone)).collect();
        let asked = &neighbours[..neighbours.len().min(enough - 1)];
        for other in asked {
            let (mut i, mut j) = (0, 0);
            while let (Some(own), Some(slot)) = (self.slots.get(i), other.slots.get(j)) {
                let is_near = slot.at.abs_diff(own.at) <= self.shift;
                same[i] += usize::from((own.key() == slot.key()) & slot.is_alone & is_near);
                i += usize::from(own.key() <= slot.key());
                j += usize::from(slot.key() <= own.key());
            }
        }
        let is_first = |i: usize| i == 0 || self.slots[i - 1].place != self.slots[i].place;
        let is_open = |i: &usize| is_first(*i) && (!self.slots[*i].is_alone || same[*i] < enough);
        (0..self.slots.len()).filter(is_open).map(|i| &self.slots[i]).collect()
    }

    /// The values of each slot.
    fn places(&self) -> impl Iterator<Item = &[Slot]> {
        self.slots.chunk_by(|a, b| a.place == b.place)
    }
}

impl Varying {
    /// The slots of a document that vary in it and its neighbours: documents that are near it in form.
    ///
    /// # Complexity
    /// O(slots x neighbours); where most neighbours agree in most slots, only the others are looked up.
    pub fn among(own: &Slots, neighbours: &[&Slots]) -> Varying {
        let documents = neighbours.len() + 1;
        if documents < FEWEST {
            return Varying::default();
        }
        let places = own.not_shared_by_most(neighbours);
        // The values at each place, and how many there are. A place is given up once one value is too frequent.
        let mut values = vec![0; places.len() * documents];
        let mut counts = vec![0; places.len()];
        let mut open: Vec<usize> = (0..places.len()).collect();
        for slots in std::iter::once(&own).chain(neighbours) {
            open.retain(|&nth| {
                let there = slots.starting_at(places[nth].place);
                let Some(value) = only_value(there, places[nth], own.shift) else { return true };
                let seen = &mut values[nth * documents..][..=counts[nth]];
                seen[counts[nth]] = value;
                counts[nth] += 1;
                let same = seen.iter().filter(|other| **other == value).count();
                !is_frequent(same, documents)
            });
        }
        let varies = |nth: &usize| {
            let values = &mut values[nth * documents..][..counts[*nth]];
            values.sort_unstable();
            let most = values.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
            values.len() >= FEWEST && !is_frequent(most, values.len())
        };
        open.retain(varies);
        Varying(open.into_iter().map(|nth| places[nth].place).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their hashes, ascending, for [`of_places`](Varying::of_places).
    pub fn places(&self) -> &[u32] {
        &self.0
    }

    /// Those of [`places`](Varying::places); `None` of hashes that do not ascend.
    pub fn of_places(places: Vec<u32>) -> Option<Varying> {
        let ascend = places.windows(2).all(|pair| pair[0] < pair[1]);
        ascend.then(|| Varying(places.into()))
    }

    fn contains(&self, place: u32) -> bool {
        self.0.binary_search(&place).is_ok()
    }
}

/// The value at the place of a slot, given what a document has from there on, where it has one and not several.
fn only_value(slots: &[Slot], own: &Slot, shift: u32) -> Option<u32> {
    let only = slots.first().filter(|slot| slot.place == own.place)?;
    (only.is_alone && only.at.abs_diff(own.at) <= shift).then_some(only.value)
}

/// Whether a value that some of a number of documents have is too frequent to vary.
fn is_frequent(same: usize, documents: usize) -> bool {
    same * MOST_FREQUENT.1 > documents * MOST_FREQUENT.0
}

/// In how many values two documents agree and differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Facts {
    /// Different values that both have in the same slot.
    pub agree: u32,
    /// Pairs of different values that stand in the same slot.
    pub differ: u32,
    /// The letters for which these count: those of the passages that they stand in, and some beside each.
    #[serde(skip)]
    pub letters: u32,
}

impl Facts {
    /// Compares the values in the slots that vary among the neighbours of either document.
    pub fn between(a: &Slots, b: &Slots, varying: [&Varying; 2]) -> Facts {
        Facts::in_slots(a, b, |place| varying.iter().any(|slots| slots.contains(place)))
    }

    /// Compares the values in all slots of two documents.
    pub(super) fn in_all(a: &Slots, b: &Slots) -> Facts {
        Facts::in_slots(a, b, |_| true)
    }

    fn in_slots(a: &Slots, b: &Slots, counts: impl Fn(u32) -> bool) -> Facts {
        let (mut agreed, mut differing, mut at) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rest, shift) = (&*b.slots, a.shift.max(b.shift));
        for x in a.places() {
            let place = x[0].place;
            let from = rest.iter().take_while(|slot| slot.place < place).count();
            rest = &rest[from..];
            let y = &rest[..rest.iter().take_while(|slot| slot.place == place).count()];
            let is_there = y.first().is_some_and(|y| x[0].at.abs_diff(y.at) <= shift);
            if !is_there || !counts(place) {
                continue;
            }
            // Numbers that follow each other have the same letters beside them.
            let in_both =
                |slot: &&Slot, other: &[Slot]| other.iter().any(|o| o.value == slot.value);
            agreed.extend(x.iter().filter(|slot| in_both(slot, y)).map(|slot| slot.value));
            if x.len() != y.len() {
                // One text has more numbers there: which of them stand for each other is not known.
                continue;
            }
            let only_x = x.iter().filter(|slot| !in_both(slot, y));
            let only_y = y.iter().filter(|slot| !in_both(slot, x));
            let pairs = only_x.zip(only_y).filter(|(x, y)| !x.resembles(y));
            for (x, y) in pairs {
                differing.push((x.value, y.value));
                at.push(x.at.min(y.at));
            }
        }
        // What differs in many places may be one fact: a version in every link of a page.
        agreed.sort_unstable();
        agreed.dedup();
        differing.sort_unstable();
        differing.dedup();
        at.sort_unstable();
        let mut letters = 0;
        for passage in at.chunk_by(|before, after| after - before <= PASSAGE) {
            let beside = if letters == 0 { BESIDE_FIRST } else { BESIDE_OTHER };
            letters += passage[passage.len() - 1] - passage[0] + beside;
        }
        Facts { agree: agreed.len() as u32, differ: differing.len() as u32, letters }
    }

    /// What the values that differ take from the score of two documents that have `letters` together.
    ///
    /// They count for as much as they have a share in the values of both, so that a few that differ among many that
    /// agree, as edits and damage make them, take little.
    ///
    /// From 0 on, and above 1 where nearly all is said in few letters.
    pub fn cost(self, letters: usize) -> f64 {
        if self.differ < FEWEST_DIFFERENT {
            return 0.0;
        }
        f64::from(self.letters) * self.share() / (letters as f64 / 2.0).max(SHORTEST)
    }

    /// The share of the values that differ in all that stand at equal places; 0 where there are none.
    fn share(self) -> f64 {
        f64::from(self.differ) / f64::from(self.agree + self.differ).max(1.0)
    }
}

/// What the numbers of two texts take from their score where nothing more is known about the texts.
pub(super) fn cost_of_numbers(facts: Facts, letters: usize) -> f64 {
    // Few that differ among many that agree are damage more often than other facts.
    (facts.cost(letters) * facts.share()).min(MOST_OF_NUMBERS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Word,
    /// Of a script without spaces.
    Letter,
}

/// A number, a word, or a letter of a script without spaces.
#[derive(Debug, Clone, Copy)]
struct Token<'t> {
    kind: Kind,
    text: &'t str,
    /// How many letters stand before it, digits not among them.
    start: usize,
    /// The same with letters of scripts without spaces counted twice.
    at: u32,
    letters: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.letters
    }

    /// The slot after or before some letters, with a value.
    fn slot(&self, side: u32, mut context: Hash, value: Value) -> Slot {
        let is_number = u32::from(self.kind == Kind::Number);
        context.add(side << 1 | is_number);
        let place = context.finish() & !1 | is_number;
        Slot { place, value: value.hash, letters: value.letters, at: self.at, is_alone: true }
    }
}

/// What stands in a slot: its hash, and the pairs of letters in it as bits.
#[derive(Debug, Clone, Copy)]
struct Value {
    hash: u32,
    letters: u64,
}

impl Value {
    fn of(tokens: [Option<&Token<'_>>; 2]) -> Value {
        let bit = |letters: [Option<char>; 2]| {
            1 << (Hash::of(letters.into_iter().flatten().map(u32::from)).finish() & 63)
        };
        let (mut hash, mut letters, mut last) = (Hash::default(), 0u64, None);
        for c in tokens.into_iter().flatten().flat_map(|token| token.text.chars()) {
            hash.add(c.into());
            // A word of one letter has one bit, too.
            if let Some(last) = last.replace(c) {
                letters |= bit([Some(last), Some(c)]);
            }
        }
        if let (0, Some(last)) = (letters, last) {
            letters = bit([Some(last), None]);
        }
        Value { hash: hash.finish(), letters }
    }
}

/// The hashes of [`CONTEXT`] letters in a row. Those that were asked for last are kept: in a script without spaces each
/// stands after one value and before another, six letters on.
struct Contexts<'l> {
    letters: &'l [char],
    /// Each with its place, at the place modulo the length.
    last: [(usize, Hash); 16],
}

impl Contexts<'_> {
    fn of(letters: &[char]) -> Contexts<'_> {
        Contexts { letters, last: [(usize::MAX, Hash::default()); 16] }
    }

    /// That of the letters from a place on; `None` where the text ends before.
    fn at(&mut self, from: usize) -> Option<Hash> {
        let letters = self.letters.get(from..from + CONTEXT)?;
        let kept = &mut self.last[from % self.last.len()];
        if kept.0 != from {
            *kept = (from, Hash::of(letters.iter().map(|&letter| letter.into())));
        }
        Some(kept.1)
    }
}

/// The tokens of a text in order, and its letters without digits.
fn tokens(reduced: &Reduced) -> (Vec<Token<'_>>, Vec<char>) {
    let mut tokens: Vec<Token<'_>> = Vec::with_capacity(reduced.words().count());
    let mut letters: Vec<char> = Vec::with_capacity(reduced.text().len());
    let mut words = reduced.words();
    let mut at = 0u32;
    for (class, stretch) in reduced.stretches() {
        match class {
            Class::Alphabetic => {
                let mut left = stretch.len();
                while left > 0 {
                    let Some(word) = words.next() else { break };
                    left -= word.len();
                    for (is_number, text) in runs_by(word, char::is_numeric) {
                        let start = letters.len();
                        let kind = if is_number { Kind::Number } else { Kind::Word };
                        if !is_number {
                            letters.extend(text.chars());
                        }
                        let own = letters.len() - start;
                        tokens.push(Token { kind, text, start, at, letters: own });
                        at += own as u32;
                    }
                }
            }
            _ => {
                for (place, c) in stretch.char_indices() {
                    let text = &stretch[place..place + c.len_utf8()];
                    let start = letters.len();
                    tokens.push(Token { kind: Kind::Letter, text, start, at, letters: 1 });
                    at += 2;
                    letters.push(c);
                }
            }
        }
    }
    (tokens, letters)
}

/// A text as runs of characters, each with one answer of `is`.
fn runs_by(text: &str, is: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = is(rest.chars().next()?);
        let end = rest.find(|c| is(c) != first).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((first, run))
    })
}

/// The hash of a name.
pub(super) fn hash_of_name(name: &str) -> u32 {
    Hash::of(name.chars().map(u32::from)).finish()
}

/// A hash of few numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Hash(u64);

impl Hash {
    fn of(numbers: impl IntoIterator<Item = u32>) -> Hash {
        let mut hash = Hash::default();
        numbers.into_iter().for_each(|number| hash.add(number));
        hash
    }

    fn add(&mut self, number: u32) {
        self.0 = split_mix(self.0, u64::from(number) + 1);
    }

    fn finish(&self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn slots(text: &str) -> Slots {
        let mut reduced = Reduced::default();
        reduced.fill(text).expect("a short text");
        Slots::of(&reduced)
    }

    /// By the definition: the values of each place of the first document, in all of them.
    fn varying_of(documents: &[Slots]) -> Vec<u32> {
        let own = &documents[0];
        let varies = |first: &Slot| {
            let is_value =
                |slot: &&Slot| slot.place == first.place && slot.at.abs_diff(first.at) <= own.shift;
            let mut counts = HashMap::new();
            for document in documents {
                let there = document.slots.iter().filter(|slot| slot.place == first.place).count();
                if let (1, Some(only)) = (there, document.slots.iter().find(is_value)) {
                    *counts.entry(only.value).or_insert(0) += 1;
                }
            }
            let all: usize = counts.values().sum();
            let most = counts.values().copied().max().unwrap_or(0);
            all >= FEWEST && !is_frequent(most, all)
        };
        own.places().map(|slots| &slots[0]).filter(|first| varies(first)).map(|s| s.place).collect()
    }

    proptest! {
        #[test]
        fn places_are_found_wherever_they_crowd(
            places in prop::collection::vec(
                prop_oneof![any::<u32>(), 0u32..300, u32::MAX - 300..=u32::MAX, 1u32 << 30..(1 << 30) + 300],
                0..700,
            ),
            asked in any::<u32>(),
        ) {
            let mut places = places;
            places.sort_unstable();
            let slot = |&place: &u32| Slot { place, value: 0, letters: 0, at: 0, is_alone: false };
            let all = Slots { slots: places.iter().map(slot).collect(), places: places.clone().into(), letters: 0, shift: 0 };
            let beside = places.iter().flat_map(|&p| [p.saturating_sub(1), p, p.saturating_add(1)]);
            for place in beside.chain([asked, 0, u32::MAX]) {
                let expect = places.partition_point(|&other| other < place);
                prop_assert_eq!(places.len() - all.starting_at(place).len(), expect, "{}", place);
            }
        }

        #[test]
        fn slots_vary_as_defined(
            documents in prop::collection::vec(
                prop::collection::vec((0usize..12, 0usize..6), 12..30),
                FEWEST..18,
            ),
            same in 0usize..18,
        ) {
            // A form of many words, with a value of six after each; some documents are copies of the first.
            const WORDS: [&str; 12] = [
                "harbour", "evening", "今天", "temperature", "wind", "the", "of", "下午", "ferry",
                "town", "gauge", "明天",
            ];
            let text = |values: &[(usize, usize)]| -> String {
                values
                    .iter()
                    .enumerate()
                    .map(|(at, (word, value))| match value {
                        0 | 1 => format!("{} {} ", WORDS[at % 12], WORDS[*word]),
                        2 => format!("{} {word} ", WORDS[at % 12]),
                        _ => format!("{} {value}{value} ", WORDS[at % 12]),
                    })
                    .collect()
            };
            let first = text(&documents[0]);
            let documents: Vec<Slots> = documents
                .iter()
                .enumerate()
                .map(|(at, values)| if at < same { slots(&first) } else { slots(&text(values)) })
                .collect();
            let others: Vec<&Slots> = documents[1..].iter().collect();
            let found = Varying::among(&documents[0], &others);
            prop_assert_eq!(&*found.0, &*varying_of(&documents));
        }
    }
}
