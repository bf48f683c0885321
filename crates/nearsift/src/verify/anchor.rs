//! A lower bound of the longest common subsequence of long texts: what both have once stays in place.
//!
//! Runs of characters that each text has exactly once are brought together, the longest chain of them
//! that ascends in both texts is kept, and the gaps between them are filled by the exact table, or by
//! shorter runs where a gap is still too large. Where even these are missing, as in a text that
//! repeats itself, the gap is cut in proportion into parts that the table takes. Texts with few edits
//! have so many anchors that the bound is the length itself.
//!
//! # References
//! Hunt and Szymanski, 'A fast algorithm for computing longest common subsequences', CACM 20(5), 1977,
//! for the chain; Cohen, 'Patience diff advantages', 2010, for unique lines as anchors, here runs of characters.

use super::align::{Aligner, fits, usual, without_equal_ends};
use super::sort::HashSorter;

/// The length of an anchor in characters: of the whole texts, then of a gap too large for the table.
const ANCHOR: [usize; 2] = [12, 6];

/// The side of the parts into which a gap without anchors is cut.
const PART: usize = 4096;

/// Working memory, reused from pair to pair.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    runs: [Vec<(u64, u32)>; 2],
    sorter: HashSorter<(u64, u32)>,
    /// Where a run that is unique in both texts stands in each, by its place in the first.
    places: Vec<(u32, u32)>,
    /// For each length of a chain the number of the place where the best one of that length ends.
    tails: Vec<u32>,
    /// The number of the place before in the best chain.
    before: Vec<u32>,
}

/// A number of characters that is at most the length of the longest common subsequence.
///
/// # Complexity
/// O(n log n) for the anchors, and at most some 64 steps of the exact table for each character.
pub(super) fn common(aligner: &mut Aligner, a: &[u32], b: &[u32]) -> usize {
    let mut anchors = aligner.take_anchors();
    // Of equally long chains one is taken, which must not depend on which text comes first.
    let (a, b) = if (b.len(), b) < (a.len(), a) { (b, a) } else { (a, b) };
    let length = fill(aligner, &mut anchors, a, b, &ANCHOR);
    aligner.give_anchors(anchors);
    length
}

fn fill(
    aligner: &mut Aligner,
    anchors: &mut Anchors,
    a: &[u32],
    b: &[u32],
    lengths: &[usize],
) -> usize {
    let (ends, a, b) = without_equal_ends(a, b);
    if fits(a, b) {
        return ends + aligner.exact(a, b, 0, usual(a, b));
    }
    let Some((&run, shorter)) = lengths.split_first() else {
        return ends + in_proportion(aligner, a, b);
    };
    let matched = anchors.matched(a, b, run);
    if matched.is_empty() {
        return ends + fill(aligner, anchors, a, b, shorter);
    }
    let mut length = ends;
    let (mut from_a, mut from_b) = (0, 0);
    for (at_a, at_b, run) in matched {
        length += run + fill(aligner, anchors, &a[from_a..at_a], &b[from_b..at_b], shorter);
        (from_a, from_b) = (at_a + run, at_b + run);
    }
    length + fill(aligner, anchors, &a[from_a..], &b[from_b..], shorter)
}

/// Both texts cut into equally many parts in proportion, which are compared one by one.
fn in_proportion(aligner: &mut Aligner, a: &[u32], b: &[u32]) -> usize {
    let parts = a.len().max(b.len()).div_ceil(PART);
    let part = |text: &[u32], at: usize| (text.len() as u64 * at as u64 / parts as u64) as usize;
    (0..parts)
        .map(|at| {
            let own = |text: &[u32]| part(text, at)..part(text, at + 1);
            let (a, b) = (&a[own(a)], &b[own(b)]);
            aligner.exact(a, b, 0, usual(a, b))
        })
        .sum()
}

impl Anchors {
    /// Equal ranges of both texts, ascending in both and apart: (place in `a`, place in `b`, length).
    fn matched(&mut self, a: &[u32], b: &[u32], run: usize) -> Vec<(usize, usize, usize)> {
        let [runs_a, runs_b] = &mut self.runs;
        unique_runs(a, run, runs_a, &mut self.sorter);
        unique_runs(b, run, runs_b, &mut self.sorter);
        self.places.clear();
        let mut rest = runs_b.iter().peekable();
        for &(hash, at_a) in &*runs_a {
            while rest.next_if(|other| other.0 < hash).is_some() {}
            if let Some(&(_, at_b)) = rest.next_if(|other| other.0 == hash) {
                let (i, j) = (at_a as usize, at_b as usize);
                // Runs of one hash may differ.
                if a[i..i + run] == b[j..j + run] {
                    self.places.push((at_a, at_b));
                }
            }
        }
        self.places.sort_unstable();
        let mut matched: Vec<(usize, usize, usize)> = Vec::new();
        for place in self.longest_chain() {
            let (mut at_a, mut at_b) =
                (self.places[place].0 as usize, self.places[place].1 as usize);
            let mut length = run;
            if let Some(last) = matched.last_mut() {
                let (end_a, end_b) = (last.0 + last.2, last.1 + last.2);
                let over = end_a.saturating_sub(at_a).max(end_b.saturating_sub(at_b));
                if at_a + last.1 == at_b + last.0 && over > 0 {
                    last.2 = at_a + run - last.0;
                    continue;
                }
                if over >= run {
                    continue;
                }
                (at_a, at_b, length) = (at_a + over, at_b + over, run - over);
            }
            matched.push((at_a, at_b, length));
        }
        matched
    }

    /// The numbers of the places of a longest chain that ascends in both texts, ascending: `places`
    /// ascends in the first text, so it is a longest ascending subsequence in the second.
    fn longest_chain(&mut self) -> Vec<usize> {
        let Anchors { places, tails, before, .. } = self;
        tails.clear();
        before.clear();
        for (number, &(_, at)) in places.iter().enumerate() {
            // Most places go on the longest chain: what an edit moves is little.
            let goes_on = tails.last().is_none_or(|&tail| places[tail as usize].1 < at);
            let length = match goes_on {
                true => tails.len(),
                false => tails.partition_point(|&tail| places[tail as usize].1 < at),
            };
            before.push(if length == 0 { u32::MAX } else { tails[length - 1] });
            if length == tails.len() {
                tails.push(number as u32);
            } else {
                tails[length] = number as u32;
            }
        }
        let mut chain = Vec::with_capacity(tails.len());
        let mut at = tails.last().copied().unwrap_or(u32::MAX);
        while at != u32::MAX {
            chain.push(at as usize);
            at = before[at as usize];
        }
        chain.reverse();
        chain
    }
}

/// Fills `out` with the hash and the place of every run of the length that no other run shares its
/// hash with, by hash.
fn unique_runs(
    text: &[u32],
    run: usize,
    out: &mut Vec<(u64, u32)>,
    sorter: &mut HashSorter<(u64, u32)>,
) {
    /// An odd number without a pattern: 2^64 divided by the golden ratio.
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    out.clear();
    if text.len() < run {
        return;
    }
    // A polynomial modulo 2^64, rolled along the text.
    let power = (1..run).fold(1u64, |power, _| power.wrapping_mul(BASE));
    let value = |character: u32| u64::from(character) + 1;
    let mut hash = 0u64;
    for (at, &character) in text.iter().enumerate() {
        hash = hash.wrapping_mul(BASE).wrapping_add(value(character));
        if at + 1 >= run {
            let start = at + 1 - run;
            out.push((hash, start as u32));
            hash = hash.wrapping_sub(value(text[start]).wrapping_mul(power));
        }
    }
    sorter.sort(out, |&(hash, _)| hash);
    let mut kept = 0;
    let mut at = 0;
    while at < out.len() {
        let same = out[at..].iter().take_while(|other| other.0 == out[at].0).count();
        if same == 1 {
            out[kept] = out[at];
            kept += 1;
        }
        at += same;
    }
    out.truncate(kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::align::tests::{edited, naive};
    use super::*;

    /// The anchors of texts that would be compared exactly.
    fn anchored(a: &[u32], b: &[u32], run: usize) -> usize {
        let mut aligner = Aligner::new();
        let mut anchors = Anchors::default();
        let mut length = 0;
        let (mut from_a, mut from_b) = (0, 0);
        for (at_a, at_b, run) in anchors.matched(a, b, run) {
            assert!(at_a >= from_a && at_b >= from_b, "matched ranges ascend");
            assert_eq!(a[at_a..at_a + run], b[at_b..at_b + run]);
            length += run + aligner.exact(&a[from_a..at_a], &b[from_b..at_b], 0, 0);
            (from_a, from_b) = (at_a + run, at_b + run);
        }
        length + aligner.exact(&a[from_a..], &b[from_b..], 0, 0)
    }

    proptest! {
        #[test]
        fn never_more_than_the_longest(
            a in prop::collection::vec(0u32..5, 0..200),
            b in prop::collection::vec(0u32..5, 0..200),
            run in 1usize..7,
        ) {
            prop_assert!(anchored(&a, &b, run) <= naive(&a, &b));
        }

        #[test]
        fn never_more_on_edited_texts((a, b) in edited(9, 0..400, 0..60), run in 2usize..9) {
            prop_assert!(anchored(&a, &b, run) <= naive(&a, &b));
        }

        #[test]
        fn the_longest_itself_on_light_edits((a, b) in edited(3000, 400..1500, 0..20)) {
            prop_assert_eq!(anchored(&a, &b, 12), naive(&a, &b));
        }

        #[test]
        fn chains_are_longest(seconds in prop::collection::vec(0u32..60, 0..40)) {
            let places = seconds.iter().enumerate().map(|(i, s)| (i as u32, *s)).collect();
            let mut anchors = Anchors { places, ..Anchors::default() };
            let chain = anchors.longest_chain();
            let at = |place: usize| anchors.places[place];
            prop_assert!(chain.windows(2).all(|w| at(w[0]) < at(w[1]) && at(w[0]).1 < at(w[1]).1));
            let mut best = vec![1; seconds.len()];
            for i in 0..seconds.len() {
                for j in 0..i {
                    if seconds[j] < seconds[i] {
                        best[i] = best[i].max(best[j] + 1);
                    }
                }
            }
            prop_assert_eq!(chain.len(), best.into_iter().max().unwrap_or(0));
        }
    }

    /// A reproducible text without meaning.
    fn noise(length: usize, alphabet: u32, mut seed: u64) -> Vec<u32> {
        (0..length)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as u32 % alphabet
            })
            .collect()
    }

    #[test]
    fn long_texts() {
        let mut aligner = Aligner::new();
        let text = noise(60_000, 3000, 7);
        let mut copy = text.clone();
        // Each edit is far from the others, so what they cost is known.
        for at in (50..copy.len()).step_by(100) {
            copy[at] = 4000;
        }
        assert_eq!(common(&mut aligner, &text, &copy), 60_000 - 600);
        copy.drain(30_000..40_000);
        assert_eq!(common(&mut aligner, &text, &copy), 50_000 - 500);
        assert_eq!(common(&mut aligner, &copy, &text), 50_000 - 500);
    }

    #[test]
    fn hostile_texts_take_bounded_time() {
        let mut aligner = Aligner::new();
        let same = vec![7; 300_000];
        assert_eq!(common(&mut aligner, &same, &same[..200_000]), 200_000);
        let period =
            |length: u32, step: u32| (0..length).map(|i| i * step % 5).collect::<Vec<u32>>();
        assert!(common(&mut aligner, &period(100_000, 1), &period(100_000, 2)) > 30_000);
        assert_eq!(common(&mut aligner, &vec![1; 1_000_000], &vec![2; 1_000_000]), 0);
        let (a, b) = (noise(100_000, 2, 1), noise(100_000, 2, 2));
        assert!(common(&mut aligner, &a, &b) > 50_000);
    }
}
