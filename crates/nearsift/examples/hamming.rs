//! Measures indexes: `hamming [N] [BITS] [MAX_DISTANCE] [uniform|skewed|block|ball] [PLAN ...]`, each plan a word like
//! `code:2:25`, `multi:4:16`, `linear` or `best`, the planner's.
//!
//! Several plans are timed in turn, so that they can be compared with one another and with what the planner
//! expects of them. Answers of a sample of queries are checked against a scan in the same run.

#![allow(clippy::print_stdout, reason = "a program that reports")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::fingerprint::Bits;
use nearsift::hamming::Work;
use nearsift::hamming::distance;
use nearsift::hamming::index::{Ask, Ids, Index, Scratch, Search, Settings, Threads};
use nearsift::hamming::planner::{Plan, Question};
use testkit::random::Random;

const QUERIES: usize = 200_000;
const CHECKED: usize = 5;
const ROUNDS: usize = 5;

fn values(n: usize, words: usize, shape: &str) -> Vec<u64> {
    let mut random = Random::new(7);
    let mut all = Vec::with_capacity(n * words);
    let centre: Vec<u64> = (0..words).map(|_| random.next_u64()).collect();
    // Every bit is biased, by up to 3 in 4; a value is drawn from a group of power-law size.
    let lean: Vec<u64> = (0..words).map(|_| random.next_u64()).collect();
    let apart = n.min(1_000_000);
    for i in 0..n {
        match shape {
            "skewed" => {
                let group = (n as f64).powf(random.below(1 << 30) as f64 / f64::from(1 << 30));
                let mut of_group = Random::of_item(3, group as u64);
                for lean in &lean {
                    let value = of_group.next_u64();
                    let noise = random.next_u64() & random.next_u64() & random.next_u64();
                    let pull = of_group.next_u64() & of_group.next_u64();
                    all.push((value & !pull | lean & pull) ^ noise);
                }
            }
            "block" if i < apart => {
                all.extend((0..words).map(|_| random.next_u64()));
                let first = i * words;
                all[first] = all[first] & !0x7fff_ffff | centre[0] & 0x7fff_ffff;
            }
            "ball" if i < apart => {
                all.extend(&centre);
                for _ in 0..5 {
                    let bit = random.below(64 * words);
                    all[i * words + bit / 64] ^= 1 << (bit % 64);
                }
            }
            _ => all.extend((0..words).map(|_| random.next_u64())),
        }
    }
    all
}

/// The time below which so many of 1,000 lie, in microseconds.
fn percentile(times: &mut [u64], per_mille: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * per_mille / 1000] as f64 / 1e3
}

fn plan_of(word: &str, question: &Question) -> Plan {
    let mut parts = word.split(':');
    let name = parts.next().unwrap_or_default();
    let numbers: Vec<u32> = parts.map(|n| n.parse().expect("a number")).collect();
    match (name, &numbers[..]) {
        ("code", &[tables, key_bits]) => Plan::PerfectCode { tables, key_bits },
        ("multi", &[blocks, key_bits]) => Plan::MultiIndex { blocks, key_bits },
        ("linear", []) => Plan::Linear,
        ("best", []) => Plan::choose(question).expect("a plan"),
        _ => panic!("no plan: {word}"),
    }
}

/// An index and what was measured of it.
struct Measured {
    index: Index<'static>,
    scratch: Scratch,
    /// Nanoseconds of a query, in each round.
    rounds: Vec<f64>,
}

impl Measured {
    fn build(bits: Bits, values: &[u64], max_distance: u32, plan: Plan) -> Measured {
        let started = Instant::now();
        let threads = Threads::Own(NonZeroUsize::new(2).expect("not 0"));
        let settings = Settings { plan: Some(plan), threads, ..Settings::new(max_distance) };
        let index = Index::build(bits, values, Ids::None, &settings).expect("an index");
        let n = values.len() / bits.words();
        println!(
            "{plan}: built in {:.2} s, {} values, {:.2} bytes each",
            started.elapsed().as_secs_f64(),
            index.values(),
            index.as_bytes().len() as f64 / n as f64,
        );
        let scratch = index.scratch();
        Measured { index, scratch, rounds: Vec::new() }
    }

    fn check(&mut self, values: &[u64], query: &[u64], max_distance: u32) {
        let words = query.len();
        let mut expect: Vec<(u32, &[u64])> = values
            .chunks_exact(words)
            .map(|value| (distance(value, query), value))
            .filter(|(distance, _)| *distance <= max_distance)
            .collect();
        let mut found: Vec<(u32, Vec<u64>)> = Vec::new();
        self.index
            .visit(query, &Ask::within(max_distance), &mut self.scratch, &mut |hit| {
                found.push((hit.distance(), hit.value().to_vec()));
                ControlFlow::Continue(())
            })
            .expect("an answer");
        expect.sort_unstable();
        expect.dedup();
        found.sort_unstable();
        assert!(expect.iter().map(|e| e.1).eq(found.iter().map(|f| &f.1[..])), "exact");
    }

    /// One round: all queries, one after the other. Gives the work and the hits.
    fn round(&mut self, queries: &[u64], words: usize, ask: &Ask) -> (Work, u64) {
        let number = (queries.len() / words) as f64;
        let (mut work, mut hits) = (Work::default(), 0u64);
        let started = Instant::now();
        for query in queries.chunks_exact(words) {
            let outcome = self.index.visit(query, ask, &mut self.scratch, &mut |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
            let of_query = outcome.expect("an answer").work;
            work.probes += of_query.probes;
            work.candidates += of_query.candidates;
        }
        self.rounds.push(started.elapsed().as_nanos() as f64 / number);
        (work, hits)
    }

    /// What each query takes alone, and what that is for each of its hits.
    fn times(&mut self, queries: &[u64], words: usize, ask: &Ask) -> (Vec<u64>, Vec<u64>) {
        let times = queries.chunks_exact(words).map(|query| {
            let mut hits = 0u64;
            let started = Instant::now();
            let outcome = self.index.visit(query, ask, &mut self.scratch, &mut |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
            outcome.expect("an answer");
            let ns = started.elapsed().as_nanos() as u64;
            (ns, ns / hits.max(1))
        });
        times.unzip()
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: u32| arguments.get(i).map_or(default, |a| a.parse().expect("a number"));
    let n = number(0, 1_000_000) as usize;
    let bits = Bits::from_count(number(1, 64)).expect("a width");
    let max_distance = number(2, 3);
    let shape = arguments.get(3).map_or("uniform", |s| s.as_str());
    let words = bits.words();
    let question = Question::new(n as u64, bits, max_distance);
    let mut plans: Vec<Plan> =
        arguments.iter().skip(4).map(|word| plan_of(word, &question)).collect();
    if plans.is_empty() {
        plans.push(plan_of("best", &question));
    }

    let values = values(n, words, shape);
    let mut random = Random::new(11);
    let query = |random: &mut Random| {
        let from = random.below(n) * words;
        let mut query = values[from..from + words].to_vec();
        for _ in 0..random.below(max_distance as usize + 1) {
            let bit = random.below(64 * words);
            query[bit / 64] ^= 1 << (bit % 64);
        }
        query
    };
    let ask = Ask::within(max_distance);
    let mut measured: Vec<Measured> =
        plans.iter().map(|plan| Measured::build(bits, &values, max_distance, *plan)).collect();
    for _ in 0..CHECKED {
        let query = query(&mut random);
        measured.iter_mut().for_each(|index| index.check(&values, &query, max_distance));
    }
    // Slow questions are asked less often.
    let slow = plans.contains(&Plan::Linear) || max_distance > 3;
    let number = if slow { QUERIES / 100 } else { QUERIES };
    let queries: Vec<u64> = (0..number).flat_map(|_| query(&mut random)).collect();
    let mut work = vec![(Work::default(), 0); plans.len()];
    for round in 0..ROUNDS {
        for turn in 0..plans.len() {
            let i = (round + turn) % plans.len();
            work[i] = measured[i].round(&queries, words, &ask);
        }
    }
    println!(
        "{:<38} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>7} {:>10} {:>7}",
        "nanoseconds a query",
        "measured",
        "expected",
        "p50 us",
        "p90 us",
        "p99 us",
        "p99 a hit",
        "probes",
        "candidates",
        "hits"
    );
    for ((plan, index), (work, hits)) in plans.iter().zip(&mut measured).zip(work) {
        let (mut times, mut by_hit) = index.times(&queries, words, &ask);
        let expected = plan.forecast(&question).expect("a forecast").nanoseconds;
        println!(
            "{:<38} {:>9.0} {:>8.0} {:>8.2} {:>8.2} {:>8.2} {:>9.2} {:>7.1} {:>10.0} {:>7.2}",
            plan.to_string(),
            median(&mut index.rounds),
            expected,
            percentile(&mut times, 500),
            percentile(&mut times, 900),
            percentile(&mut times, 990),
            percentile(&mut by_hit, 990),
            work.probes as f64 / number as f64,
            work.candidates as f64 / number as f64,
            hits as f64 / number as f64,
        );
    }
}
