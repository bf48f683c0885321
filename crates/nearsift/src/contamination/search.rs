//! Documents, searched for the texts of an index.

use std::collections::BTreeMap;
use std::ops::Range;

use super::index::{Index, MEMBERS_LOOKED_AT, NONE, Reach, Text};
use super::tokens::{Tokenizer, Tokens};
use super::{ContaminationError, Member};
use crate::partial::Letters;

/// Tokens that are searched at a time: what the occurrences of grams may take of memory.
const PART: usize = 1 << 16;
/// Grams for which memory is asked ahead.
const AHEAD: usize = 16;
/// Characters between two whose places in bytes are kept.
const STRIDE: usize = 1024;

/// A text of the index that a document has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The number of the text.
    pub text: u32,
    /// The weight of the passage, in 256ths of a bit.
    pub weight: u64,
    /// The weight of the whole text, in 256ths of a bit.
    pub total: u64,
    /// The tokens of the document that the passage has.
    pub tokens: Range<u32>,
    /// The tokens of the text from the first to the last that the passage covers.
    pub text_tokens: Range<u32>,
    /// Other fields of the text's first 256 items that stand beside the passage whole.
    pub beside: Vec<Member>,
}

impl Hit {
    /// The share of the text's weight, from 0 to 1.
    pub fn coverage(&self) -> f64 {
        self.weight as f64 / self.total.max(1) as f64
    }

    /// The weight in bits.
    pub fn bits(&self) -> f64 {
        self.weight as f64 / 256.0
    }
}

/// Where a passage stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Located {
    /// In the document, in characters, the end not included.
    pub characters: Range<u64>,
    /// In the document, in bytes of UTF-8.
    pub bytes: Range<usize>,
    /// In the text of the index, in characters.
    pub text_characters: Range<u64>,
}

/// An occurrence of a gram in the document.
#[derive(Debug, Clone, Copy)]
struct Match {
    text: u32,
    /// Its first token in the document.
    at: u32,
    /// Its first place in the text.
    first: u32,
    /// Its tokens.
    len: u32,
    /// As its posting has it.
    weight: u32,
}

/// Searches documents, and keeps its working memory from one to the next.
#[derive(Debug)]
pub struct Searcher<'i> {
    index: &'i Index,
    /// The tokens that are searched at a time, at least.
    part: usize,
    tokenizer: Tokenizer,
    tokens: Tokens,
    grams: Vec<(u32, u32, u64)>,
    matches: Vec<Match>,
    window: Window,
    hits: Vec<Hit>,
    places: Option<Places>,
    scratch: Tokens,
}

impl<'i> Searcher<'i> {
    /// A searcher of an index.
    pub fn new(index: &'i Index) -> Searcher<'i> {
        Searcher {
            index,
            part: PART,
            tokenizer: Tokenizer::default(),
            tokens: Tokens::default(),
            grams: Vec::new(),
            matches: Vec::new(),
            window: Window::default(),
            hits: Vec::new(),
            places: None,
            scratch: Tokens::default(),
        }
    }

    /// A searcher of few tokens at a time.
    #[cfg(test)]
    pub(super) fn in_small_parts(index: &'i Index) -> Searcher<'i> {
        Searcher { part: 1, ..Searcher::new(index) }
    }

    /// The texts that a document has, one hit each: by their passages' first tokens, then by their numbers.
    ///
    /// # Errors
    /// [`ContaminationError::LongDocument`].
    ///
    /// # Complexity
    /// O(bytes) time, and at most [`max_texts`](super::Rule::max_texts) steps a token for texts that share its grams; memory of O(bytes), and
    /// for the occurrences of grams in 2^16 tokens, or in two windows of the longest text.
    pub fn search(&mut self, document: &str) -> Result<&[Hit], ContaminationError> {
        self.places = None;
        self.hits.clear();
        let filled = self.tokenizer.fill(document, &mut self.tokens, |_, _| {});
        filled.map_err(|_| ContaminationError::LongDocument)?;
        let window = self.index.window;
        let part = self.part.max(2 * window);
        self.collect_grams();
        let mut best: BTreeMap<u32, Best> = BTreeMap::new();
        let (mut from, mut first) = (0, 0);
        // Every window lies in one of the parts.
        loop {
            let to = (from + part).min(self.tokens.len());
            first += self.grams[first..].partition_point(|gram| (gram.0 as usize) < from);
            self.match_grams(first, to);
            let is_last = to == self.tokens.len();
            // A window that begins later is whole in the next part.
            let next = if is_last { to } else { from + part - window };
            self.decide(next as u32, &mut best);
            if is_last {
                break;
            }
            from = next;
        }
        for (text, best) in best {
            self.take(text, &best);
        }
        self.hits.sort_unstable_by_key(|hit| (hit.tokens.start, hit.text));
        Ok(&self.hits)
    }

    /// The grams of the document that the filter lets pass, by their places.
    fn collect_grams(&mut self) {
        let Searcher { index, tokens, grams, .. } = self;
        grams.clear();
        let units = index.rule().gram_units;
        // Hashes wait in a ring until what the filter looks at has come near.
        let mut ring = [(0_u32, 0_u32, 0_u64); AHEAD];
        let mut seen = 0;
        let filter = &index.grams.filter;
        tokens.each_gram(units, |at, len, hash| {
            filter.prefetch(hash);
            let slot = &mut ring[seen % AHEAD];
            if seen >= AHEAD && filter.may_have(slot.2) {
                grams.push(*slot);
            }
            *slot = (at as u32, len as u32, hash);
            seen += 1;
        });
        for i in seen.saturating_sub(AHEAD)..seen {
            let waiting = ring[i % AHEAD];
            if filter.may_have(waiting.2) {
                grams.push(waiting);
            }
        }
        let before = grams.len();
        for &len in &index.whole_lens {
            for at in 0..(tokens.len() + 1).saturating_sub(len) {
                let Some(hash) = tokens.whole(at, len) else { break };
                if index.wholes.may_have(hash) {
                    grams.push((at as u32, len as u32, hash));
                }
            }
        }
        if grams.len() > before {
            grams.sort_unstable();
        }
    }

    /// The occurrences of grams from `first` on that end by token `to`, by text and place.
    fn match_grams(&mut self, first: usize, to: usize) {
        let Searcher { index, grams, matches, .. } = self;
        matches.clear();
        for &(at, len, hash) in &grams[first..] {
            if at as usize >= to {
                break;
            }
            if (at + len) as usize > to {
                continue;
            }
            let postings = index.grams.postings(hash);
            matches.extend(postings.iter().map(|p| Match {
                text: p.text,
                at,
                first: p.first,
                len,
                weight: p.weight,
            }));
        }
        matches.sort_unstable_by_key(|found| u64::from(found.text) << 32 | u64::from(found.at));
    }

    /// Weighs the windows that begin before a token, of every text that has enough grams.
    fn decide(&mut self, before: u32, best: &mut BTreeMap<u32, Best>) {
        let Searcher { index, matches, window, .. } = self;
        for own in matches.chunk_by(|a, b| a.text == b.text) {
            let text = own[0].text;
            let needed = index.needed[text as usize];
            // Most texts share a gram or two, too few for any window.
            if own.iter().map(|found| u64::from(found.weight)).sum::<u64>() < needed {
                continue;
            }
            let of = &index.texts[text as usize];
            let heaviest = window.heaviest(index, of, own, before);
            if heaviest.weight < needed {
                continue;
            }
            match best.get_mut(&text) {
                Some(known) if known.weight >= heaviest.weight => {}
                Some(known) => *known = heaviest,
                None => drop(best.insert(text, heaviest)),
            }
        }
    }

    /// Adds a hit, if it needs no company or has some.
    fn take(&mut self, text: u32, best: &Best) {
        let index = self.index;
        let of = &index.texts[text as usize];
        if best.units < index.needed_units(of) {
            return;
        }
        let passage = best.tokens.start as usize..best.tokens.end as usize;
        let mut beside = Vec::new();
        let mut is_helped = false;
        for member in index.members(text).iter().take(MEMBERS_LOOKED_AT) {
            for &(field, other) in index.texts_of(member.item) {
                if other == text || field == member.field {
                    continue;
                }
                let with = &index.texts[other as usize];
                if self.stands_beside(with, &passage) {
                    let together = best.weight + with.plain_weight;
                    is_helped |= together >= index.rule().least_weight();
                    beside.push(Member { item: member.item, field });
                }
            }
        }
        if of.reach == Reach::Alone || is_helped {
            self.hits.push(Hit {
                text,
                weight: best.weight,
                total: of.weight,
                tokens: best.tokens.clone(),
                text_tokens: best.text_tokens.clone(),
                beside,
            });
        }
    }

    /// Whether a text stands whole before or behind a passage, not far away.
    fn stands_beside(&self, text: &Text, passage: &Range<usize>) -> bool {
        let Some(last) = self.tokens.len().checked_sub(text.tokens) else { return false };
        let beside = self.index.rule().beside as usize;
        let before = passage.start.saturating_sub(beside + text.tokens)
            ..(passage.start + 1).saturating_sub(text.tokens);
        let behind = passage.end..(passage.end + beside + 1).min(last + 1);
        before.chain(behind).any(|at| self.tokens.whole(at, text.tokens) == Some(text.whole))
    }

    /// Where the passage of a hit of the last search stands in `document`, which must be the one that was searched, and in the text.
    ///
    /// # Complexity
    /// O(bytes of the document) for the first hit of a search, O(bytes of the text) for each.
    pub fn locate(&mut self, document: &str, hit: &Hit) -> Located {
        let places = match &mut self.places {
            Some(places) => places,
            none => {
                let mut places = Places::default();
                self.tokenizer.letters(&mut places.starts);
                places.letters.fill(document);
                let every = document.char_indices().step_by(STRIDE);
                places.bytes = every.map(|(at, _)| at).collect();
                none.insert(places)
            }
        };
        let characters = places.characters(document, &hit.tokens);
        let bytes = places.byte(document, characters.start)..places.byte(document, characters.end);
        let text = self.index.text(hit.text);
        // The document's own letters are known by now.
        let mut own = Places::default();
        let is_filled = self.tokenizer.fill(text, &mut self.scratch, |_, _| {}).is_ok();
        if is_filled {
            self.tokenizer.letters(&mut own.starts);
        }
        own.letters.fill(text);
        Located { characters, bytes, text_characters: own.characters(text, &hit.text_tokens) }
    }
}

/// The way from tokens back to characters.
#[derive(Debug, Default)]
struct Places {
    letters: Letters,
    /// Where each token begins, and the last ends, in letters.
    starts: Vec<u32>,
    /// Where every 1,024th character begins, in bytes.
    bytes: Vec<usize>,
}

impl Places {
    fn characters(&self, text: &str, tokens: &Range<u32>) -> Range<u64> {
        let letter = |token: u32| self.starts.get(token as usize).map_or(0, |&at| at as usize);
        let letters = letter(tokens.start)..letter(tokens.end);
        self.letters.original(text, letters, &mut String::new())
    }

    fn byte(&self, text: &str, character: u64) -> usize {
        let character = character as usize;
        let Some(&from) = self.bytes.get(character / STRIDE) else { return text.len() };
        let mut rest = text[from..].char_indices();
        rest.nth(character % STRIDE).map_or(text.len(), |(at, _)| from + at)
    }
}

/// The heaviest window of a text in a document.
#[derive(Debug, Clone)]
struct Best {
    weight: u64,
    /// Of the places that it covers.
    units: u64,
    tokens: Range<u32>,
    text_tokens: Range<u32>,
}

/// What a window of the document covers of a text.
#[derive(Debug, Default)]
struct Window {
    /// By first place of a gram in the text, its occurrences in the window.
    counts: Vec<u32>,
    /// By place in the text, the grams over it.
    covers: Vec<u32>,
    weight: u64,
}

impl Window {
    /// The heaviest window that begins before a token, the first of equal ones; without weight where none does. `matches` are of the text, by place, and not empty.
    ///
    /// # Complexity
    /// O(matches + tokens of the document / tokens of the text x tokens of the text): a gram that comes into the window and had gone is
    /// a whole window later than before, and all grams cover each token of the text at most as often as a gram has tokens.
    fn heaviest(&mut self, index: &Index, text: &Text, matches: &[Match], before: u32) -> Best {
        self.clear(text.tokens);
        let length = index.rule().window(text.tokens) as u32;
        let mut best = (0, 0..0);
        let mut end = 0;
        for (start, first) in matches.iter().take_while(|first| first.at < before).enumerate() {
            while let Some(next) = matches.get(end).filter(|m| m.at + m.len <= first.at + length) {
                self.enter(index, text, next);
                end += 1;
            }
            if self.weight > best.0 {
                best = (self.weight, start..end);
            }
            self.leave(index, text, first);
        }
        let (weight, range) = best;
        let within = &matches[range];
        self.clear(text.tokens);
        within.iter().for_each(|found| self.enter(index, text, found));
        let covered = |place: &u32| *place > 0;
        let from = self.covers.iter().position(covered).unwrap_or(0);
        let to = self.covers.iter().rposition(covered).map_or(0, |last| last + 1);
        let tokens = match within {
            [first, ..] => first.at..within.iter().map(|m| m.at + m.len).max().unwrap_or(first.at),
            [] => 0..0,
        };
        let units = self.covers.iter().zip(&index.units[text.start..]);
        let units = units.filter(|(cover, _)| covered(cover)).map(|(_, &units)| u64::from(units));
        Best { weight, units: units.sum(), tokens, text_tokens: from as u32..to as u32 }
    }

    fn clear(&mut self, tokens: usize) {
        for column in [&mut self.counts, &mut self.covers] {
            column.clear();
            column.resize(tokens, 0);
        }
        self.weight = 0;
    }

    fn enter(&mut self, index: &Index, text: &Text, found: &Match) {
        let count = &mut self.counts[found.first as usize];
        *count += 1;
        if *count > 1 {
            return;
        }
        for place in places(index, text, found) {
            let cover = &mut self.covers[place];
            if *cover == 0 {
                self.weight += u64::from(index.weights[text.start + place]);
            }
            *cover += 1;
        }
    }

    fn leave(&mut self, index: &Index, text: &Text, found: &Match) {
        let count = &mut self.counts[found.first as usize];
        *count -= 1;
        if *count > 0 {
            return;
        }
        for place in places(index, text, found) {
            let cover = &mut self.covers[place];
            *cover -= 1;
            if *cover == 0 {
                self.weight -= u64::from(index.weights[text.start + place]);
            }
        }
    }
}

/// The places of a text that all occurrences of a gram cover, those that two cover twice.
fn places<'a>(index: &'a Index, text: &Text, found: &Match) -> impl Iterator<Item = usize> + 'a {
    let (start, len) = (text.start, found.len as usize);
    let occurrences = std::iter::successors(Some(found.first), move |&at| {
        Some(index.nexts[start + at as usize]).filter(|&next| next != NONE)
    });
    occurrences.flat_map(move |at| at as usize..at as usize + len)
}
