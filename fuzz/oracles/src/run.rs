//! Oracles on seeded inputs, without coverage guidance and so on any toolchain: the inputs of a run
//! are decided by its seed and their number.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use testkit::random::Random;

use crate::Target;

/// No input grows past this many bytes.
const MAX_LEN: usize = 16 << 10;

/// What a run came to.
#[derive(Debug)]
pub struct Summary {
    /// Inputs tried, the failing one included.
    pub inputs: u32,
    /// The longest that one input took.
    pub slowest: Duration,
    /// The input for which the oracle panicked, if any: the run stops there.
    pub failure: Option<Vec<u8>>,
}

/// Runs a target on all its seeds and then on mutations of them, `inputs` in all.
pub fn run(target: &Target, seed: u64, inputs: u32) -> Summary {
    let seeds = (target.seeds)();
    let mut summary = Summary { inputs: 0, slowest: Duration::ZERO, failure: None };
    for index in 0..inputs {
        let input = input(&seeds, seed, index);
        let begun = Instant::now();
        let outcome = catch_unwind(|| (target.oracle)(&input));
        summary.slowest = summary.slowest.max(begun.elapsed());
        summary.inputs += 1;
        if outcome.is_err() {
            summary.failure = Some(input);
            break;
        }
    }
    summary
}

/// Input `index` of a run: first the target's seeds, then mutations of them.
pub fn input(seeds: &[Vec<u8>], seed: u64, index: u32) -> Vec<u8> {
    match seeds.get(index as usize) {
        Some(seed) => seed.clone(),
        None => mutated(seeds, &mut Random::of_item(seed, u64::from(index))),
    }
}

/// A seed with one to eight changes, or, once in sixteen, bytes without any order.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if random.below(16) == 0 {
        return (0..random.below(256)).map(|_| random.next_u64() as u8).collect();
    }
    let mut data = random.pick(seeds).clone();
    for _ in 0..=random.below(8) {
        change(&mut data, seeds, random);
    }
    data.truncate(MAX_LEN);
    data
}

fn change(data: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const EDGES: &[u8] =
        &[0, 1, 0x7f, 0x80, 0xff, b' ', b'\n', b'"', b'<', b'\\', 0xc2, 0xe4, 0xed];
    let at = random.below(data.len() + 1);
    match random.below(8) {
        0 if at < data.len() => data[at] ^= 1 << random.below(8),
        1 if at < data.len() => data[at] = *random.pick(EDGES),
        2 => data.insert(at, random.next_u64() as u8),
        3 => data.truncate(at),
        4 => drop(data.drain(part(data, random))),
        5 => {
            // Repetition finds what costs more than linear time, and what recurses.
            let piece = data[part(data, random)].to_vec();
            let copies = 1 << random.below(10);
            let room = (MAX_LEN.saturating_sub(data.len())) / piece.len().max(1);
            let copies = piece.repeat(copies.min(room));
            data.splice(at..at, copies);
        }
        6 => {
            let other = random.pick(seeds);
            let piece = part(other, random);
            data.splice(at..at, other[piece].iter().copied());
        }
        _ => {
            let source = part(data, random);
            let to = random.below(data.len() - source.len() + 1);
            data.copy_within(source, to);
        }
    }
}

fn part(data: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let (a, b) = (random.below(data.len() + 1), random.below(data.len() + 1));
    a.min(b)..a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;

    #[test]
    fn the_seed_decides_the_inputs() {
        let seeds = vec![b"abc".to_vec(), b"<p>".repeat(50)];
        let inputs = |seed| -> Vec<Vec<u8>> {
            (0..500).map(|i| mutated(&seeds, &mut Random::of_item(seed, i))).collect()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().all(|input| input.len() <= MAX_LEN));
    }

    #[test]
    fn a_panic_is_reported_with_its_input() {
        const PICKY: Target = Target {
            name: "picky",
            about: "no input is longer than ten bytes",
            oracle: |data| assert!(data.len() <= 10),
            seeds: || vec![b"0123456789".to_vec()],
            inputs: 1_000,
        };
        let summary = run(&PICKY, 1, PICKY.inputs);
        assert!(summary.failure.is_some_and(|input| input.len() > 10));
        assert!(summary.inputs > 1, "the seed itself passes");
    }

    #[test]
    fn every_target_passes_its_own_seeds() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{} has no seed", target.name);
            let summary = run(target, 1, seeds.len() as u32);
            assert_eq!(summary.failure, None, "{}", target.name);
        }
    }
}
