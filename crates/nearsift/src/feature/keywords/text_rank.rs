//! TextRank: words ranked by the words that stand near them.

use std::cmp::Ordering;

/// Two words are neighbours when they are fewer places than this apart.
const SPAN: usize = 5;
const DAMPING: f64 = 0.85;
const SWEEPS: usize = 10;

/// The working memory.
#[derive(Debug, Default)]
pub(super) struct TextRank {
    graph: Graph,
    /// Node and raw rank, then term and scaled rank.
    ranks: Vec<(u32, f64)>,
}

impl TextRank {
    /// The terms that have a neighbour, in the order in which they first have one, with their ranks
    /// from 0 to 1. `sequence` is the text's words in order, `None` for those that are left out but
    /// keep their place.
    ///
    /// Every sum is made in an order that the text alone fixes, from additions, multiplications and
    /// divisions: the ranks are the same bits on every machine, and those of jieba 0.42.1.
    pub(super) fn rank(
        &mut self,
        sequence: impl Iterator<Item = Option<u32>>,
        compare: impl Fn(&u32, &u32) -> Ordering,
    ) -> &[(u32, f64)] {
        self.graph.build(sequence);
        let terms = &self.graph.terms;
        let mut order: Vec<u32> = (0..terms.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| compare(&terms[a as usize], &terms[b as usize]));
        let ranks = self.graph.sweep(&order, SWEEPS);
        let smallest = ranks.iter().copied().fold(f64::MAX, f64::min);
        let largest = ranks.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let scale = |rank| (rank - smallest / 10.0) / (largest - smallest / 10.0);
        self.ranks.clear();
        self.ranks.extend(terms.iter().copied().zip(ranks.into_iter().map(scale)));
        &self.ranks
    }
}

/// The undirected graph of neighbours, as adjacency lists one after the other.
#[derive(Debug, Default)]
struct Graph {
    /// The term of each node, in the order in which they join.
    terms: Vec<u32>,
    /// Where each node's list starts, and the end of the last.
    starts: Vec<usize>,
    /// The neighbour, and the share of its rank that it hands over.
    edges: Vec<(u32, f64)>,
}

impl Graph {
    fn build(&mut self, sequence: impl Iterator<Item = Option<u32>>) {
        let (pairs, terms) = pairs(sequence);
        self.terms = terms;
        let nodes = self.terms.len();
        self.starts.clear();
        self.starts.resize(nodes + 1, 0);
        let mut outflow = vec![0.0; nodes];
        for &(a, b, weight) in &pairs {
            for node in [a, b] {
                self.starts[node as usize + 1] += 1;
                outflow[node as usize] += weight;
            }
        }
        for node in 0..nodes {
            self.starts[node + 1] += self.starts[node];
        }
        let mut next = self.starts.clone();
        self.edges.clear();
        self.edges.resize(2 * pairs.len(), (0, 0.0));
        for &(a, b, weight) in &pairs {
            for (from, to) in [(a, b), (b, a)] {
                let edge = &mut next[from as usize];
                self.edges[*edge] = (to, weight / outflow[to as usize]);
                *edge += 1;
            }
        }
    }

    /// The ranks after some sweeps over the nodes in a given order, each of which sees the ranks
    /// that the sweep has made so far.
    fn sweep(&self, order: &[u32], sweeps: usize) -> Vec<f64> {
        let nodes = self.terms.len();
        let mut ranks = vec![1.0 / nodes as f64; nodes];
        for _ in 0..sweeps {
            for &node in order {
                let node = node as usize;
                let sum = self.edges[self.starts[node]..self.starts[node + 1]]
                    .iter()
                    .fold(0.0, |sum, &(from, share)| sum + share * ranks[from as usize]);
                ranks[node] = (1.0 - DAMPING) + DAMPING * sum;
            }
        }
        ranks
    }
}

/// The distinct ordered pairs of neighbours with the number of their occurrences, in order of the
/// first, over the numbers of the nodes; and the term of each node, numbered as they come up.
fn pairs(sequence: impl Iterator<Item = Option<u32>>) -> (Vec<(u32, u32, f64)>, Vec<u32>) {
    let mut window = [None; SPAN - 1];
    // The pair, and the places of its first and second word: the order in which jieba meets it.
    let mut met: Vec<(u32, u32, u64)> = Vec::new();
    for (at, term) in sequence.enumerate() {
        if let Some(second) = term {
            for back in 1..SPAN.min(at + 1) {
                if let Some(first) = window[(at - back) % (SPAN - 1)] {
                    met.push((first, second, (at - back) as u64 * SPAN as u64 + back as u64));
                }
            }
        }
        window[at % (SPAN - 1)] = term;
    }
    met.sort_unstable();
    let mut counted: Vec<(u64, u32, u32, f64)> = met
        .chunk_by(|x, y| (x.0, x.1) == (y.0, y.1))
        .map(|same| (same[0].2, same[0].0, same[0].1, same.len() as f64))
        .collect();
    counted.sort_unstable_by_key(|pair| pair.0);

    let highest = counted.iter().map(|pair| pair.1.max(pair.2)).max();
    let mut node_of = vec![u32::MAX; highest.map_or(0, |term| term as usize + 1)];
    let mut terms = Vec::new();
    let mut node = |term: u32| {
        let node = &mut node_of[term as usize];
        if *node == u32::MAX {
            *node = terms.len() as u32;
            terms.push(term);
        }
        *node
    };
    let pairs = counted.iter().map(|&(_, a, b, count)| (node(a), node(b), count)).collect();
    (pairs, terms)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jieba_rs::{Jieba, KeywordExtract};
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word: every window of five places.
    fn naive_pairs(sequence: &[Option<u32>]) -> Vec<(u32, u32, f64)> {
        let mut pairs: Vec<(u32, u32, f64)> = Vec::new();
        for (i, first) in sequence.iter().enumerate() {
            for second in sequence.iter().take(i + SPAN).skip(i + 1) {
                let (Some(a), Some(b)) = (*first, *second) else { continue };
                match pairs.iter_mut().find(|p| (p.0, p.1) == (a, b)) {
                    Some(pair) => pair.2 += 1.0,
                    None => pairs.push((a, b, 1.0)),
                }
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_the_definition(
            sequence in prop::collection::vec(prop::option::weighted(0.7, 0u32..12), 0..80),
        ) {
            let (pairs, terms) = pairs(sequence.iter().copied());
            let term = |node: u32| terms[node as usize];
            let ours: Vec<_> = pairs.iter().map(|&(a, b, w)| (term(a), term(b), w)).collect();
            prop_assert_eq!(ours, naive_pairs(&sequence));
        }
    }

    /// jieba-rs makes twenty sweeps in the order of first occurrence, sums in no fixed order, and
    /// does not scale: with the same sweeps our graph must give the same ranks.
    #[test]
    fn ranks_are_those_of_jieba_rs() {
        let jieba = Jieba::new();
        let text = "此外，公司拟对全资子公司吉林欧亚置业有限公司增资4.3亿元，增资后，吉林欧亚置业注册资本\
                    由7000万元增加到5亿元。吉林欧亚置业主要经营范围为房地产开发及百货零售等业务。目前在建\
                    吉林欧亚城市商业综合体项目。2013年，实现营业收入0万元，实现净利润-139.13万元。";
        let tags = ["ns", "n", "vn", "v"];
        let theirs: HashMap<String, f64> = jieba_rs::TextRank::default()
            .extract_keywords(&jieba, text, usize::MAX, tags.map(str::to_owned).into())
            .into_iter()
            .map(|k| (k.keyword, k.weight / 1e10))
            .collect();
        let mut words: Vec<&str> = Vec::new();
        let sequence: Vec<Option<u32>> = jieba
            .tag(text, false)
            .iter()
            .map(|t| {
                (tags.contains(&t.tag) && t.word.chars().count() > 1).then(|| {
                    let known = words.iter().position(|w| *w == t.word);
                    known.unwrap_or_else(|| {
                        words.push(t.word);
                        words.len() - 1
                    }) as u32
                })
            })
            .collect();
        let mut graph = Graph::default();
        graph.build(sequence.into_iter());
        let mut order: Vec<u32> = (0..graph.terms.len() as u32).collect();
        order.sort_unstable_by_key(|&node| graph.terms[node as usize]);
        let ranks = graph.sweep(&order, 20);
        assert!(ranks.len() > 20);
        for (term, rank) in graph.terms.iter().zip(ranks) {
            let word = words[*term as usize];
            assert!((theirs[word] - rank).abs() < 1e-12, "{word}: {} {rank}", theirs[word]);
        }
    }
}
