//! The definition, word by word, beside what is fast.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::feature::frequency::DocumentFrequencies;
use crate::feature::hash_token;
use crate::text::normalise::normalise;
use crate::text::script::{Class, class};

/// A token, and its units.
type Token = (String, u32);

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut in_word = false;
    for c in normalise(text).chars() {
        match class(c) {
            Class::Separator => in_word = false,
            Class::Alphabetic if in_word => tokens.last_mut().expect("a word").0.push(c),
            Class::Alphabetic => {
                tokens.push((c.to_string(), 3));
                in_word = true;
            }
            Class::Unspaced => {
                tokens.push((c.to_string(), 2));
                in_word = false;
            }
        }
    }
    tokens
}

/// The gram that begins at a token, if there are units enough.
fn gram(tokens: &[Token], at: usize, units: u32) -> Option<&[Token]> {
    let mut sum = 0;
    for (i, token) in tokens[at..].iter().enumerate() {
        sum += token.1;
        if sum >= units {
            return Some(&tokens[at..=at + i]);
        }
    }
    None
}

/// The weight of a token by the language alone.
fn plain(tokens: &[Token], at: usize) -> u64 {
    let is_letter = |i: usize| tokens.get(i).is_some_and(|token| token.1 == 2);
    let idf =
        |text: &str| u64::from(DocumentFrequencies::shipped().idf_sixteenths(hash_token(text)));
    let pair = |i: usize| format!("{}{}", tokens[i].0, tokens[i + 1].0);
    match is_letter(at) {
        false => 16 * idf(&tokens[at].0),
        true if is_letter(at + 1) => 8 * idf(&pair(at)),
        true if at > 0 && is_letter(at - 1) => 8 * idf(&pair(at - 1)),
        true => 8 * idf(&tokens[at].0),
    }
}

/// All windows of a document against all texts.
struct Oracle {
    rule: Rule,
    texts: Vec<Vec<Token>>,
    members: Vec<Vec<Member>>,
    /// In how many texts each gram is.
    counts: BTreeMap<Vec<Token>, usize>,
}

impl Oracle {
    fn new(rule: Rule, items: &[Vec<String>]) -> Oracle {
        let mut oracle =
            Oracle { rule, texts: Vec::new(), members: Vec::new(), counts: BTreeMap::new() };
        for (item, fields) in items.iter().enumerate() {
            for (field, text) in fields.iter().enumerate() {
                let own = tokens(text);
                if own.is_empty() {
                    continue;
                }
                let number = oracle.texts.iter().position(|text| *text == own);
                let number = number.unwrap_or_else(|| {
                    oracle.texts.push(own);
                    oracle.members.push(Vec::new());
                    oracle.texts.len() - 1
                });
                oracle.members[number].push(Member { item: item as u32, field: field as u16 });
            }
        }
        for text in &oracle.texts {
            let grams: BTreeSet<_> =
                (0..text.len()).filter_map(|at| gram(text, at, rule.gram_units)).collect();
            for gram in grams {
                *oracle.counts.entry(gram.to_vec()).or_default() += 1;
            }
        }
        oracle
    }

    fn is_short(&self, text: &[Token]) -> bool {
        gram(text, 0, self.rule.gram_units).is_none()
    }

    /// What tells a text: its telling grams, or all of a short one.
    fn telling(&self, text: &[Token]) -> BTreeMap<Vec<Token>, Vec<Range<usize>>> {
        let mut telling: BTreeMap<Vec<Token>, Vec<Range<usize>>> = BTreeMap::new();
        if self.is_short(text) {
            telling.insert(text.to_vec(), std::iter::once(0..text.len()).collect());
            return telling;
        }
        for at in 0..text.len() {
            let Some(gram) = gram(text, at, self.rule.gram_units) else { continue };
            if self.counts[gram] <= self.rule.max_texts as usize {
                telling.entry(gram.to_vec()).or_default().push(at..at + gram.len());
            }
        }
        telling
    }

    fn weights(&self, text: &[Token]) -> Vec<u64> {
        let telling = self.telling(text);
        let shared = u64::from(self.rule.shared_texts);
        let weight = |place: usize| {
            if self.is_short(text) {
                return plain(text, place);
            }
            let over = telling.iter().filter(|(_, at)| at.iter().any(|r| r.contains(&place)));
            match over.map(|(gram, _)| self.counts[gram] as u64).min() {
                None => 0,
                Some(count) => plain(text, place) * shared / count.max(shared),
            }
        };
        (0..text.len()).map(weight).collect()
    }

    fn search(&self, document: &str) -> Vec<Hit> {
        let document = tokens(document);
        let found = (0..self.texts.len()).filter_map(|text| self.hit(&document, text));
        let mut hits: Vec<Hit> = found.collect();
        hits.sort_by_key(|hit| (hit.tokens.start, hit.text));
        hits
    }

    fn hit(&self, document: &[Token], number: usize) -> Option<Hit> {
        let text = &self.texts[number];
        let (telling, weights) = (self.telling(text), self.weights(text));
        let total: u64 = weights.iter().sum();
        let least = self.rule.least_weight();
        if self.is_short(text) && total < least {
            return None;
        }
        let is_at = |at: usize, gram: &[Token]| document[at..].starts_with(gram);
        let length = text.len() + text.len() / 4 + 8;
        let mut best: Option<(u64, u32, Range<u32>, Range<u32>)> = None;
        for from in 0..document.len() {
            let to = document.len().min(from + length);
            let mut covered = BTreeSet::new();
            let mut end = from;
            for at in from..to {
                for (gram, places) in &telling {
                    if at + gram.len() <= to && is_at(at, gram) {
                        covered.extend(places.iter().cloned().flatten());
                        end = end.max(at + gram.len());
                    }
                }
            }
            if !telling.keys().any(|gram| from + gram.len() <= to && is_at(from, gram)) {
                continue;
            }
            let weight: u64 = covered.iter().map(|&place| weights[place]).sum();
            if best.as_ref().is_none_or(|best| weight > best.0) {
                let of_text = *covered.first()? as u32..*covered.last()? as u32 + 1;
                let units = covered.iter().map(|&place| text[place].1).sum();
                best = Some((weight, units, from as u32..end as u32, of_text));
            }
        }
        let (weight, units, tokens, text_tokens) = best?;
        let thousandths = (self.rule.min_coverage * 1000.0).round() as u64;
        if weight == 0 || weight * 1000 < total * thousandths || (total >= least && weight < least)
        {
            return None;
        }
        let all: u32 = text.iter().map(|token| token.1).sum();
        let enough = u64::from(all) * thousandths <= u64::from(units) * 1000;
        if units < 2 * self.rule.gram_units && !enough {
            return None;
        }
        let mut beside = Vec::new();
        let mut is_helped = false;
        for member in &self.members[number] {
            for (other, members) in self.members.iter().enumerate() {
                for own in members.iter().filter(|own| own.item == member.item) {
                    if other == number || !self.is_beside(document, &tokens, other) {
                        continue;
                    }
                    let text = &self.texts[other];
                    let plain: u64 = (0..text.len()).map(|at| plain(text, at)).sum();
                    is_helped |= weight + plain >= least;
                    beside.push(*own);
                }
            }
        }
        beside.sort();
        (total >= least || is_helped).then_some(Hit {
            text: number as u32,
            weight,
            total,
            tokens,
            text_tokens,
            beside,
        })
    }

    fn is_beside(&self, document: &[Token], passage: &Range<u32>, other: usize) -> bool {
        let text = &self.texts[other];
        let (start, end) = (passage.start as usize, passage.end as usize);
        (0..document.len()).any(|at| {
            let own = at..at + text.len();
            let is_before = own.end <= start && start - own.end <= self.rule.beside as usize;
            let is_behind = own.start >= end && own.start - end <= self.rule.beside as usize;
            (is_before || is_behind) && document[at..].starts_with(text)
        })
    }
}

fn index(rule: Rule, items: &[Vec<String>]) -> Index {
    let mut builder = IndexBuilder::new(rule).expect("a rule");
    for item in items {
        let fields: Vec<Option<&str>> = item.iter().map(|text| Some(text.as_str())).collect();
        builder.push(&fields).expect("short");
    }
    builder.build().expect("an index")
}

fn check_against_oracle(rule: Rule, items: &[Vec<String>], document: &str) {
    let index = index(rule, items);
    let expect = Oracle::new(rule, items).search(document);
    for mut searcher in [Searcher::new(&index), Searcher::in_small_parts(&index)] {
        let mut hits = searcher.search(document).expect("short").to_vec();
        hits.iter_mut().for_each(|hit| hit.beside.sort());
        assert_eq!(hits, expect, "{items:?}\nin {document:?}");
    }
}

/// Words and letters of a small alphabet, so that runs repeat.
fn text(tokens: Range<usize>) -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => "[a-d]{1}".prop_map(|word| format!("{word} ")),
        2 => "[甲乙丙]",
        1 => prop_oneof!["zebra ", "Einstein, ", "夸克", "the "],
    ];
    prop::collection::vec(token, tokens).prop_map(|tokens| tokens.concat())
}

fn rule() -> impl Strategy<Value = Rule> {
    (6_u32..14, 1_u32..5, 1_u32..3, 5_u32..100, 1.0..40.0, 0_u32..6).prop_map(
        |(gram_units, max_texts, shared_texts, coverage, min_bits, beside)| Rule {
            gram_units,
            max_texts,
            shared_texts: shared_texts.min(max_texts),
            min_coverage: f64::from(coverage) / 100.0,
            min_bits,
            beside,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_search_equals_all_windows_against_all_texts(
        rule in rule(),
        items in prop::collection::vec(prop::collection::vec(text(0..14), 1..4), 1..6),
        noise in prop::collection::vec(text(0..20), 6),
        order in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, 4_usize..30), 0..6),
    ) {
        let texts: Vec<&String> = items.iter().flatten().collect();
        let mut document = noise[0].clone();
        for (i, (which, from, len)) in order.iter().enumerate() {
            // A piece of a text: what is left out at either end is as if it had been changed.
            let text = texts[which.index(texts.len())];
            document.extend(text.chars().skip(*from / 3).take(2 * *len));
            document.push_str(&noise[i]);
        }
        check_against_oracle(rule, &items, &document);
    }

    #[test]
    fn a_text_is_found_in_itself(
        item in text(8..60), before in text(0..80), after in text(0..80),
    ) {
        let rule = Rule { min_bits: 1.0, max_texts: 1, shared_texts: 1, ..Rule::default() };
        let index = index(rule, &[vec![item.clone()]]);
        let document = format!("{before}\n{}\n{after}", item.to_uppercase());
        let mut searcher = Searcher::new(&index);
        let hits = searcher.search(&document).expect("short").to_vec();
        prop_assert_eq!(hits.len(), 1);
        prop_assert_eq!(hits[0].weight, hits[0].total);
        let found = searcher.locate(&document, &hits[0]);
        let passage = &document[found.bytes];
        let chars = found.characters.end - found.characters.start;
        prop_assert_eq!(passage.chars().count() as u64, chars);
        let of_document = tokens(passage);
        prop_assert_eq!(of_document.len() as u32, hits[0].tokens.end - hits[0].tokens.start);
    }
}

/// The coverage of the only item by the document; `None` where it is not found.
fn coverage(item: &[&str], document: &str) -> Option<f64> {
    let item = vec![item.iter().map(|&field| field.to_owned()).collect()];
    let index = index(Rule::default(), &item);
    let mut searcher = Searcher::new(&index);
    searcher.search(document).expect("short").first().map(Hit::coverage)
}

#[test]
fn what_is_found_and_what_is_not() {
    const PAULI: &str = "Which physicist proposed the exclusion principle for electrons in 1925?";
    const LIBRARY: &str = "今天下午，市圖書館舉辦了一場面向兒童的繪本閱讀活動，請問活動由誰主持？";
    let check = |item: &[&str], document: &str, expect: Option<f64>| {
        assert_eq!(coverage(item, document), expect, "{item:?} in {document:?}");
    };
    check(&[PAULI], PAULI, Some(1.0));
    check(
        &[PAULI],
        "which PHYSICIST proposed\nthe exclusion\nprinciple, for electrons; in (1925)",
        Some(1.0),
    );
    check(
        &[PAULI],
        "Ｗｈｉｃｈ ｐｈｙｓｉｃｉｓｔ proposed the exclusion principle for electrons in １９２５?",
        Some(1.0),
    );
    check(
        &[PAULI],
        "The exclusion principle for electrons was proposed by a physicist in 1925.",
        None,
    );
    check(
        &[LIBRARY],
        "今天下午市图书馆举办了一场面向儿童的绘本阅读活动\n请问活动由谁主持",
        Some(1.0),
    );
    check(&[LIBRARY], "今天下午，市图书馆有一场面向儿童的活动。", None);
    // A short answer counts for nothing alone.
    for answer in ["yes", "Paris", "42", "B", "是", "巴黎"] {
        check(&["", answer], &format!("{answer} {answer} {answer}. {answer}"), None);
    }
    // A light question counts beside its answer.
    const CAPITAL: &str = "What is the capital of France?";
    check(&[CAPITAL, "Paris"], CAPITAL, None);
    check(
        &[CAPITAL, "Antananarivo Zwischenahn"],
        &format!("Q: {CAPITAL} A: Antananarivo Zwischenahn."),
        Some(1.0),
    );
    check(&[CAPITAL, "Antananarivo Zwischenahn"], &format!("{CAPITAL} Somewhere else."), None);
    check(&["", ""], "", None);
    check(&["!?"], "!?", None);
}

#[test]
fn prompts_of_a_benchmark_count_nothing() {
    let prompt = "Read the passage about zoological taxonomy attentively and choose the appropriate continuation";
    let items: Vec<Vec<String>> = (0..100)
        .map(|n| vec![format!("{prompt} zebra{n} quagga{n} okapi{n} bongo{n} nyala{n}")])
        .collect();
    let index = index(Rule::default(), &items);
    let mut searcher = Searcher::new(&index);
    assert_eq!(searcher.search(prompt).expect("short"), []);
    let hits = searcher.search(&items[7][0]).expect("short");
    assert_eq!(hits.iter().map(|hit| hit.text).collect::<Vec<_>>(), [7]);
    assert!(index.stats().common_grams > 0);
}

#[test]
fn equal_texts_are_one() {
    let question = "Which enzyme unwinds the double helix during replication of chromosomes?";
    let items: Vec<Vec<String>> = (0..3)
        .map(|n| {
            vec![if n == 1 { question.to_uppercase() } else { question.to_owned() }, n.to_string()]
        })
        .collect();
    let index = index(Rule::default(), &items);
    let mut searcher = Searcher::new(&index);
    let hits = searcher.search(&format!("x {question} 2")).expect("short").to_vec();
    assert_eq!(hits.len(), 1);
    assert_eq!(
        index.members(hits[0].text).iter().map(|member| member.item).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(hits[0].beside, [Member { item: 2, field: 1 }]);
    assert_eq!(index.text(hits[0].text), question);
}

#[test]
fn hostile_documents_take_linear_time() {
    let long = |piece: &str, n: usize| piece.repeat(n);
    let items: Vec<Vec<String>> = (0..40)
        .map(|n| {
            vec![
                long("一", 6 + n),
                long("a ", 4 + n),
                long("甲乙", 3 + n),
                long("rare words repeated here ", 1 + n),
            ]
        })
        .collect();
    let index = index(Rule { min_bits: 1.0, ..Rule::default() }, &items);
    let mut searcher = Searcher::new(&index);
    for piece in ["一", "a ", "甲乙", "rare words repeated here ", "a", " ", "一a"] {
        let document = long(piece, 1_000_000 / piece.len());
        searcher.search(&document).expect("short");
    }
}

#[test]
fn values_out_of_range_are_named() {
    let check = |rule: Rule, expect: &str| {
        let error = IndexBuilder::new(rule).expect_err("refused").to_string();
        assert!(error.contains(expect), "{error}");
    };
    let rule = Rule::default();
    check(Rule { gram_units: 5, ..rule }, "gram_units");
    check(Rule { max_texts: 0, ..rule }, "max_texts");
    check(Rule { shared_texts: 33, ..rule }, "shared_texts");
    check(Rule { min_coverage: f64::NAN, ..rule }, "min_coverage");
    check(Rule { min_bits: 0.5, ..rule }, "min_bits");
    check(Rule { beside: 5000, ..rule }, "beside");
}
