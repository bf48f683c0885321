//! Measures an index: `hamming [N] [BITS] [MAX_DISTANCE] [uniform|skewed|block|ball] [PLAN NUMBERS]`.
//!
//! Answers of a sample of queries are checked against a scan in the same run.

#![allow(clippy::print_stdout, reason = "a program that reports")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::fingerprint::Bits;
use nearsift::hamming::distance;
use nearsift::hamming::index::{Ask, Ids, Index, Search, Settings, Threads};
use nearsift::hamming::planner::{Plan, Planner, Question};
use testkit::random::Random;

const QUERIES: usize = 200_000;
const CHECKED: usize = 5;

/// Nanoseconds that this thread has used the processor.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

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

fn percentile(times: &mut [u64], per_mille: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * per_mille / 1000] as f64 / 1e3
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
    let plan = match arguments.get(4).map(String::as_str) {
        Some("code") => Plan::PerfectCode { tables: number(5, 2), key_bits: number(6, 26) },
        Some("multi") => Plan::MultiIndex { blocks: number(5, 3), key_bits: number(6, 16) },
        Some("permuted") => {
            Plan::Permuted { blocks: number(5, 5), matched: number(6, 2), key_bits: number(7, 16) }
        }
        Some("linear") => Plan::Linear,
        Some("4x16") => Plan::Blocks4x16,
        _ => Plan::choose(&question).expect("a plan"),
    };
    println!("{}", Planner::default().forecast(plan, &question).expect("a forecast"));

    let values = values(n, words, shape);
    let started = Instant::now();
    let threads = Threads::Own(NonZeroUsize::new(2).expect("not 0"));
    let settings = Settings { plan: Some(plan), threads, ..Settings::new(max_distance) };
    let index = Index::build(bits, &values, Ids::None, &settings).expect("an index");
    let bytes = index.as_bytes().len() as f64 / n as f64;
    println!(
        "built in {:.2} s, {} values, {bytes:.2} bytes each",
        started.elapsed().as_secs_f64(),
        index.values()
    );

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
    let mut scratch = index.scratch();
    for _ in 0..CHECKED {
        let query = query(&mut random);
        let mut expect: Vec<(u32, &[u64])> = values
            .chunks_exact(words)
            .map(|value| (distance(value, &query), value))
            .filter(|(distance, _)| *distance <= max_distance)
            .collect();
        let mut found: Vec<(u32, Vec<u64>)> = Vec::new();
        index
            .visit(&query, &ask, &mut scratch, &mut |hit| {
                found.push((hit.distance(), hit.value().to_vec()));
                ControlFlow::Continue(())
            })
            .expect("an answer");
        expect.sort_unstable();
        expect.dedup();
        found.sort_unstable();
        assert!(expect.iter().map(|e| e.1).eq(found.iter().map(|f| &f.1[..])), "exact");
    }
    let number = if plan == Plan::Linear { 200 } else { QUERIES };
    let queries: Vec<u64> = (0..number).flat_map(|_| query(&mut random)).collect();
    let mut hits = 0u64;
    for round in 0..3 {
        let (wall, cpu) = (Instant::now(), cpu_ns());
        hits = 0;
        let outcome = index
            .batch(&queries, &ask, &mut scratch, |_, _| {
                hits += 1;
                ControlFlow::Continue(())
            })
            .expect("answers");
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), (cpu_ns() - cpu) as f64 / 1e9);
        if round > 0 {
            println!(
                "batch: {:.0} queries/s of thread time, {:.0} of the clock; {:.1} probes, {:.0} candidates, {:.2} hits",
                number as f64 / cpu,
                number as f64 / wall,
                outcome.work.probes as f64 / number as f64,
                outcome.work.candidates as f64 / number as f64,
                hits as f64 / number as f64
            );
        }
    }
    let mut single = 0u64;
    let mut times: Vec<u64> = queries
        .chunks_exact(words)
        .map(|query| {
            let started = Instant::now();
            let outcome = index.visit(query, &ask, &mut scratch, &mut |_| {
                single += 1;
                ControlFlow::Continue(())
            });
            outcome.expect("an answer");
            started.elapsed().as_nanos() as u64
        })
        .collect();
    assert_eq!(single, hits, "batched and single queries find the same");
    println!(
        "single: p50 {:.2} us, p90 {:.2}, p99 {:.2}",
        percentile(&mut times, 500),
        percentile(&mut times, 900),
        percentile(&mut times, 990)
    );
}
