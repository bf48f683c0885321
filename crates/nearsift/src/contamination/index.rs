//! The texts of benchmarks, with the weights of their tokens.

use std::collections::HashMap;
use std::ops::Range;

use xxhash_rust::xxh3::Xxh3Default;

use super::grams::{Grams, HashFilter, Posting};
use super::tokens::{Tokenizer, Tokens};
use super::{ContaminationError, Member, Rule};
use crate::feature::frequency::DocumentFrequencies;
use crate::feature::hash_token;
use crate::text::script::Class;

/// No gram begins here that tells a text from others.
pub(super) const NONE: u32 = u32::MAX;

/// Members of a text whose other fields are looked for beside a passage.
pub(super) const MEMBERS_LOOKED_AT: usize = 256;

/// Collects the items of benchmarks.
///
/// # Complexity
/// O(bytes) time for an item; about 12 bytes of memory a token until [`build`](IndexBuilder::build), beside the texts.
#[derive(Debug)]
pub struct IndexBuilder {
    rule: Rule,
    tokenizer: Tokenizer,
    tokens: Tokens,
    /// The tokens of the text at hand, one after the other, and where each begins.
    spelled: String,
    parts: Vec<(Class, usize)>,
    /// Texts by their tokens.
    known: HashMap<u128, u32>,
    texts: Vec<Text>,
    sources: String,
    /// Of all texts, one after the other.
    weights: Vec<u32>,
    units: Vec<u8>,
    lens: Vec<u8>,
    grams: Vec<(u64, u32, u32)>,
    members: Vec<(u32, Member)>,
    items: u32,
    empty: u64,
}

/// A text of one or several items.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// Where its tokens begin among those of all texts.
    pub start: usize,
    pub tokens: usize,
    /// The weight of all tokens, in 256ths of a bit.
    pub weight: u64,
    /// The same without regard to the benchmark's other texts.
    pub plain_weight: u64,
    /// The hash of the whole text.
    pub whole: u64,
    pub reach: Reach,
    source: Range<usize>,
}

/// How a text can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A passage of its own.
    Alone,
    /// A passage beside another field of the same item.
    InCompany,
    /// Not at all: it weighs too little.
    Never,
}

impl IndexBuilder {
    /// A builder without items.
    ///
    /// # Errors
    /// [`ContaminationError::Rule`] when a value is out of its range.
    pub fn new(rule: Rule) -> Result<IndexBuilder, ContaminationError> {
        rule.check()?;
        Ok(IndexBuilder {
            rule,
            tokenizer: Tokenizer::default(),
            tokens: Tokens::default(),
            spelled: String::new(),
            parts: Vec::new(),
            known: HashMap::new(),
            texts: Vec::new(),
            sources: String::new(),
            weights: Vec::new(),
            units: Vec::new(),
            lens: Vec::new(),
            grams: Vec::new(),
            members: Vec::new(),
            items: 0,
            empty: 0,
        })
    }

    /// Adds an item and returns its number, from 0. A field is absent, or has a text; its number is its place.
    ///
    /// # Errors
    /// [`ContaminationError::TooMuch`] beyond 2^32 - 1 tokens, and for a text that is too long.
    pub fn push(&mut self, fields: &[Option<&str>]) -> Result<u32, ContaminationError> {
        let item = self.items;
        self.items = item.checked_add(1).ok_or(ContaminationError::TooMuch)?;
        for (field, text) in fields.iter().enumerate() {
            let Some(text) = text else { continue };
            match self.text(text)? {
                Some(number) => self.members.push((number, Member { item, field: field as u16 })),
                None => self.empty += 1,
            }
        }
        Ok(item)
    }

    /// The most bytes of memory that [`build`](IndexBuilder::build) takes.
    pub fn bytes(&self) -> u64 {
        // The grams twice, once as they are sorted and once as they are looked for, and six columns of tokens.
        let grams = self.grams.len() * (2 * size_of::<(u64, u32, u32)>() + 48);
        let texts = self.texts.len() * (size_of::<Text>() + 64);
        let members = self.members.len() * 64;
        (grams + texts + members + self.weights.len() * 28 + self.sources.len()) as u64
    }

    /// The number of the text with the same tokens; `None` when it has none.
    fn text(&mut self, text: &str) -> Result<Option<u32>, ContaminationError> {
        let IndexBuilder { tokenizer, tokens, spelled, parts, .. } = self;
        spelled.clear();
        parts.clear();
        let filled = tokenizer.fill(text, tokens, |token, class| {
            parts.push((class, spelled.len()));
            spelled.push_str(token);
        });
        filled.map_err(|_| ContaminationError::TooMuch)?;
        let tokens = self.tokens.len();
        if tokens == 0 {
            return Ok(None);
        }
        let number = self.texts.len() as u32;
        let key = self.key();
        let known = *self.known.entry(key).or_insert(number);
        if known != number {
            return Ok(Some(known));
        }
        let start = self.weights.len();
        if (start + tokens) as u64 >= u64::from(NONE) {
            return Err(ContaminationError::TooMuch);
        }
        let weights = (0..tokens).map(|token| plain_weight(&self.spelled, &self.parts, token));
        self.weights.extend(weights);
        self.units.extend_from_slice(self.tokens.units());
        let units = self.rule.gram_units;
        self.lens.resize(start + tokens, 0);
        let (lens, grams) = (&mut self.lens[start..], &mut self.grams);
        self.tokens.each_gram(units, |at, len, hash| {
            lens[at] = len as u8;
            grams.push((hash, number, at as u32));
        });
        let whole = self.tokens.whole(0, tokens).unwrap_or(0);
        let from = self.sources.len();
        self.sources.push_str(text);
        self.texts.push(Text {
            start,
            tokens,
            weight: 0,
            plain_weight: self.weights[start..].iter().map(|&w| u64::from(w)).sum(),
            whole,
            reach: Reach::Never,
            source: from..self.sources.len(),
        });
        Ok(Some(number))
    }

    /// A hash of the tokens. Texts with the same tokens have the same key.
    fn key(&self) -> u128 {
        let mut hasher = Xxh3Default::new();
        self.tokens.each_prefix(|prefix| hasher.update(&prefix.to_le_bytes()));
        hasher.digest128()
    }

    /// Builds the index of all items.
    ///
    /// # Errors
    /// [`ContaminationError::TooMuch`] from 2^32 grams on.
    ///
    /// # Complexity
    /// O(n log n) in the tokens of different texts.
    pub fn build(self) -> Result<Index, ContaminationError> {
        let IndexBuilder {
            rule, mut texts, mut grams, mut weights, units, lens, mut members, ..
        } = self;
        if grams.len() as u64 >= u64::from(u32::MAX) {
            return Err(ContaminationError::TooMuch);
        }
        grams.sort_unstable();
        members.sort_unstable();
        let places = Places::of(&grams, &texts, &lens, rule.max_texts);
        for text in &mut texts {
            text.weigh(&mut weights, &lens, &places.shared, &rule);
        }
        let of_text = starts(texts.len(), members.iter().map(|(text, _)| *text));
        let members: Vec<Member> = members.into_iter().map(|(_, member)| member).collect();
        let (of_item, item_texts) = by_item(self.items, &of_text, &members);
        let mut index = Index {
            rule,
            sources: self.sources,
            texts,
            needed: Vec::new(),
            weights,
            units,
            lens,
            firsts: places.firsts,
            nexts: places.nexts,
            of_text,
            members,
            of_item,
            item_texts,
            grams: Grams::new(Vec::new(), std::iter::empty(), Vec::new()),
            whole_lens: Vec::new(),
            wholes: HashFilter::new(&[]),
            window: 0,
            empty: self.empty,
            common_grams: places.common_grams,
        };
        index.leave_out_hopeless();
        index.fill_grams(&grams);
        Ok(index)
    }
}

/// What the grams of all texts say about each place, a token of a text.
struct Places {
    /// The least number of texts that share a gram over the place; 0 where every gram is common.
    shared: Vec<u32>,
    /// The first place in the text of the gram that begins here; [`NONE`] if no gram does or it is common.
    firsts: Vec<u32>,
    /// The next place in the text of the gram that begins here, or [`NONE`].
    nexts: Vec<u32>,
    /// The number of different grams that more texts have than `max_texts`.
    common_grams: u64,
}

impl Places {
    /// The places of some texts, given their sorted grams (hash, text, token) and the lengths of the grams that begin at each token.
    fn of(grams: &[(u64, u32, u32)], texts: &[Text], lens: &[u8], max_texts: u32) -> Places {
        let none = vec![NONE; lens.len()];
        let mut places = Places {
            shared: vec![0; lens.len()],
            firsts: none.clone(),
            nexts: none,
            common_grams: 0,
        };
        for same in grams.chunk_by(|a, b| a.0 == b.0) {
            let count = same.chunk_by(|a, b| a.1 == b.1).count() as u32;
            if count > max_texts {
                places.common_grams += 1;
                continue;
            }
            for own in same.chunk_by(|a, b| a.1 == b.1) {
                let start = texts[own[0].1 as usize].start;
                for (i, &(_, _, at)) in own.iter().enumerate() {
                    let at = start + at as usize;
                    places.firsts[at] = own[0].2;
                    places.nexts[at] = own.get(i + 1).map_or(NONE, |next| next.2);
                    for place in &mut places.shared[at..at + usize::from(lens[at])] {
                        *place = if *place == 0 { count } else { count.min(*place) };
                    }
                }
            }
        }
        places
    }
}

impl Text {
    /// Reduces the weights of tokens that other texts share, and sets the text's weight and reach.
    fn weigh(&mut self, weights: &mut [u32], lens: &[u8], shared: &[u32], rule: &Rule) {
        let own = self.start..self.start + self.tokens;
        let is_whole = lens[own.clone()].iter().all(|&len| len == 0);
        if !is_whole {
            for (weight, &count) in weights[own.clone()].iter_mut().zip(&shared[own.clone()]) {
                *weight = match count {
                    0 => 0,
                    count => *weight * rule.shared_texts / count.max(rule.shared_texts),
                };
            }
        }
        self.weight = weights[own].iter().map(|&w| u64::from(w)).sum();
        self.reach = match (self.weight >= rule.least_weight(), is_whole) {
            (true, _) => Reach::Alone,
            (false, true) => Reach::Never,
            (false, false) => Reach::InCompany,
        };
    }
}

/// The weight of a token without regard to the benchmark, in 256ths of a bit. A letter has half that of the pair that it begins; of the
/// pair that it ends where no letter follows; its own where it stands alone.
fn plain_weight(spelled: &str, parts: &[(Class, usize)], token: usize) -> u32 {
    let start = |at: usize| parts.get(at).map_or(spelled.len(), |part| part.1);
    let is_letter = |at: usize| parts.get(at).is_some_and(|part| part.0 != Class::Alphabetic);
    let (range, scale) = match (is_letter(token), is_letter(token + 1)) {
        (false, _) => (start(token)..start(token + 1), Rule::WORD_SCALE),
        (true, true) => (start(token)..start(token + 2), Rule::LETTER_SCALE),
        (true, false) if token > 0 && is_letter(token - 1) => {
            (start(token - 1)..start(token + 1), Rule::LETTER_SCALE)
        }
        (true, false) => (start(token)..start(token + 1), Rule::LETTER_SCALE),
    };
    let idf = DocumentFrequencies::shipped().idf_sixteenths(hash_token(&spelled[range]));
    u32::from(idf) * scale
}

/// Where the members of each of `n` groups begin, from their groups in ascending order.
fn starts(n: usize, groups: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0_u32; n + 1];
    for group in groups {
        starts[group as usize + 1] += 1;
    }
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    starts
}

/// The texts of each item, with their fields.
fn by_item(items: u32, of_text: &[u32], members: &[Member]) -> (Vec<u32>, Vec<(u16, u32)>) {
    let mut own: Vec<(u32, u16, u32)> = Vec::with_capacity(members.len());
    for (text, range) in of_text.windows(2).enumerate() {
        let members = &members[range[0] as usize..range[1] as usize];
        own.extend(members.iter().map(|member| (member.item, member.field, text as u32)));
    }
    own.sort_unstable();
    let starts = starts(items as usize, own.iter().map(|own| own.0));
    (starts, own.into_iter().map(|(_, field, text)| (field, text)).collect())
}

/// The items of benchmarks, ready to be looked for in documents.
#[derive(Debug)]
pub struct Index {
    rule: Rule,
    sources: String,
    pub(super) texts: Vec<Text>,
    /// Of each text, the least weight of a passage of it.
    pub(super) needed: Vec<u64>,
    pub(super) weights: Vec<u32>,
    pub(super) units: Vec<u8>,
    /// Tokens of the gram that begins at a place, 0 where none does.
    pub(super) lens: Vec<u8>,
    /// The first place in the text of the gram that begins at a place, and the next.
    pub(super) firsts: Vec<u32>,
    pub(super) nexts: Vec<u32>,
    of_text: Vec<u32>,
    members: Vec<Member>,
    of_item: Vec<u32>,
    item_texts: Vec<(u16, u32)>,
    pub(super) grams: Grams,
    /// The lengths in tokens of texts that are shorter than a gram.
    pub(super) whole_lens: Vec<usize>,
    /// The hashes of these texts, which are among the grams, too. They are few: a lookup here stays in the L1 cache.
    pub(super) wholes: HashFilter,
    /// The longest window of a text, in tokens.
    pub(super) window: usize,
    empty: u64,
    common_grams: u64,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct IndexStats {
    /// Items.
    pub items: u64,
    /// Fields that are there without a letter or digit.
    pub empty: u64,
    /// Texts that differ in their letters and digits.
    pub texts: u64,
    /// Texts that a passage can be found by, alone or beside another field.
    pub searched: u64,
    /// Texts that weigh too little: they count only beside another field.
    pub light: u64,
    /// Items of which no text can be found.
    pub unreachable_items: u64,
    /// Grams that are looked for.
    pub grams: u64,
    /// Grams that stand in more texts than the rule allows: prompts and instructions. They count nothing.
    pub common_grams: u64,
}

impl Index {
    /// The rule that it was built by.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// What it holds.
    pub fn stats(&self) -> IndexStats {
        let items = self.of_item.len() - 1;
        let is_found = |text: u32| self.texts[text as usize].reach != Reach::Never;
        let is_reached = |item: usize| self.texts_of(item as u32).iter().any(|own| is_found(own.1));
        let count = |is: &dyn Fn(&Text) -> bool| self.texts.iter().filter(|t| is(t)).count() as u64;
        IndexStats {
            items: items as u64,
            empty: self.empty,
            texts: self.texts.len() as u64,
            searched: count(&|text| text.reach != Reach::Never),
            light: count(&|text| text.reach != Reach::Alone),
            unreachable_items: (0..items).filter(|&item| !is_reached(item)).count() as u64,
            grams: self.grams.len() as u64,
            common_grams: self.common_grams,
        }
    }

    /// A text as the first of its items has it.
    ///
    /// # Panics
    /// When there is no such text.
    pub fn text(&self, text: u32) -> &str {
        &self.sources[self.texts[text as usize].source.clone()]
    }

    /// The items and fields that have a text, in their order.
    ///
    /// # Panics
    /// When there is no such text.
    pub fn members(&self, text: u32) -> &[Member] {
        let text = text as usize;
        &self.members[self.of_text[text] as usize..self.of_text[text + 1] as usize]
    }

    /// The texts of an item, each with its field.
    pub(super) fn texts_of(&self, item: u32) -> &[(u16, u32)] {
        let item = item as usize;
        &self.item_texts[self.of_item[item] as usize..self.of_item[item + 1] as usize]
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        let columns = size_of_val(&*self.weights)
            + size_of_val(&*self.units)
            + size_of_val(&*self.lens)
            + size_of_val(&*self.firsts)
            + size_of_val(&*self.nexts)
            + size_of_val(&*self.texts)
            + size_of_val(&*self.needed)
            + size_of_val(&*self.of_text)
            + size_of_val(&*self.members)
            + size_of_val(&*self.of_item)
            + size_of_val(&*self.item_texts);
        (columns + self.sources.len()) as u64 + self.grams.bytes()
    }

    /// Texts that no other field can help are never found.
    fn leave_out_hopeless(&mut self) {
        let least = self.rule.least_weight();
        for text in 0..self.texts.len() as u32 {
            let Text { weight, reach, .. } = self.texts[text as usize];
            if reach != Reach::InCompany {
                continue;
            }
            let helps = |&(_, other): &(u16, u32)| {
                other != text && weight + self.texts[other as usize].plain_weight >= least
            };
            let looked_at = self.members(text).iter().take(MEMBERS_LOOKED_AT);
            let is_helped = weight > 0
                && looked_at.map(|m| self.texts_of(m.item)).any(|own| own.iter().any(helps));
            if !is_helped {
                self.texts[text as usize].reach = Reach::Never;
            }
        }
    }

    fn fill_grams(&mut self, grams: &[(u64, u32, u32)]) {
        let mut wholes = Vec::new();
        let mut hashes = Vec::new();
        let mut counts = Vec::new();
        let mut postings = Vec::new();
        for (number, text) in self.texts.iter().enumerate() {
            if text.reach == Reach::Alone && self.lens[text.start] == 0 {
                wholes.push((text.whole, number as u32, 0));
                self.whole_lens.push(text.tokens);
            }
        }
        self.whole_lens.sort_unstable();
        self.whole_lens.dedup();
        wholes.sort_unstable();
        for text in wholes.iter().map(|whole| &self.texts[whole.1 as usize]) {
            self.lens[text.start] = text.tokens as u8;
            self.firsts[text.start] = 0;
        }
        self.wholes = HashFilter::new(&wholes.iter().map(|whole| whole.0).collect::<Vec<u64>>());
        let is_searched = |&&(_, text, at): &&(u64, u32, u32)| {
            let Text { start, reach, .. } = self.texts[text as usize];
            // Of each gram of a text its first place.
            reach != Reach::Never && self.firsts[start + at as usize] == at
        };
        let mut all: Vec<(u64, u32, u32)> = grams.iter().filter(is_searched).copied().collect();
        all.append(&mut wholes);
        all.sort_unstable();
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            hashes.push(same[0].0);
            counts.push(same.len() as u32);
            postings.extend(same.iter().map(|&(_, text, first)| {
                let weight = self.weight_of_gram(&self.texts[text as usize], first);
                Posting { text, first, weight }
            }));
        }
        self.grams = Grams::new(hashes, counts.into_iter(), postings);
        self.needed = self.texts.iter().map(|text| self.needed(text)).collect();
        let searched = self.texts.iter().filter(|text| text.reach != Reach::Never);
        self.window = searched.map(|text| self.rule.window(text.tokens)).max().unwrap_or(0);
    }

    /// The weight of what all occurrences of a gram in a text cover, those that two cover twice.
    fn weight_of_gram(&self, text: &Text, first: u32) -> u32 {
        let mut weight = 0_u32;
        let mut at = first;
        while at != NONE {
            let place = text.start + at as usize;
            let own = &self.weights[place..place + usize::from(self.lens[place])];
            weight = own.iter().fold(weight, |sum, &more| sum.saturating_add(more));
            at = self.nexts[place];
        }
        weight
    }

    /// The least units of what a passage of the text covers.
    pub(super) fn needed_units(&self, text: &Text) -> u64 {
        let own = &self.units[text.start..text.start + text.tokens];
        let units: u64 = own.iter().map(|&units| u64::from(units)).sum();
        self.rule.share_of(units).min(2 * u64::from(self.rule.gram_units))
    }

    /// The least weight of a passage of the text.
    fn needed(&self, text: &Text) -> u64 {
        let share = self.rule.share_of(text.weight);
        match text.reach {
            Reach::Alone => share.max(self.rule.least_weight()),
            Reach::InCompany | Reach::Never => share,
        }
    }
}
