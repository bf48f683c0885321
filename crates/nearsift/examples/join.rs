//! Measures a self-join: `join [N] [MAX_DISTANCE] [distinct|uniform|skewed|block|ball] [count|pairs|links] [THREADS]`.
//!
//! Times are those of the clock and, which a busy machine changes less, those of the processor.

#![allow(clippy::print_stdout, reason = "a program that reports")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::Threads;
use nearsift::fingerprint::{Bits, Fingerprints};
use nearsift::join::{SelfJoin, Settings};
use testkit::random::Random;

/// Seconds that all threads of this process have used the processor.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    // User and system time, in hundredths.
    (ticks(12) + ticks(13)) / 100.0
}

fn value(random: &mut Random, shape: &str, i: usize, n: usize, earlier: &[u64]) -> u64 {
    let flipped = |random: &mut Random, value: u64, flips: usize| {
        (0..flips).fold(value, |value, _| value ^ 1 << random.below(64))
    };
    match shape {
        "uniform" if i > 0 && random.below(20) == 0 => {
            let (near, flips) = (earlier[random.below(i)], random.below(9));
            flipped(random, near, flips)
        }
        // Half stand alone; of the others, cluster c holds about 1 / (50 + c) of them.
        "skewed" => {
            let alone = random.below(2) == 0;
            let place = random.below(1 << 30) as f64 / f64::from(1 << 30);
            let rank = (50.0 * ((n as f64 / 50.0 + 1.0).powf(place) - 1.0)) as u64;
            let mut own = Random::of_item(5, if alone { n as u64 + i as u64 } else { rank });
            let biased = own.next_u64() & own.next_u64() & 0xffff_ffff | own.next_u64() << 32;
            let flips = if random.below(3) == 0 { 0 } else { random.below(4) };
            flipped(random, biased, flips)
        }
        "block" if i < n / 10 => random.next_u64() << 32 | 0x1234_5678,
        "ball" if i < n / 10 => flipped(random, 0x0123_4567_89ab_cdef, 5),
        _ => random.next_u64(),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |i: usize, default| arguments.get(i).map_or(default, String::as_str);
    let number = |i: usize, default| word(i, default).parse::<usize>().expect("a number");
    let (n, max_distance) = (number(0, "1000000"), number(1, "3") as u32);
    let (shape, mode) = (word(2, "distinct"), word(3, "count"));
    let threads = NonZeroUsize::new(number(4, "1")).expect("a thread");

    let mut random = Random::new(7);
    let mut words = Vec::with_capacity(n);
    for i in 0..n {
        words.push(value(&mut random, shape, i, n, &words));
    }
    let column = Fingerprints::from_words(Bits::B64, words);
    for _ in 0..3 {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let settings = Settings { threads: Threads::Own(threads), ..Settings::new(max_distance) };
        let join = SelfJoin::new(&column, settings).expect("a join");
        let (prepared, prepared_cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let mut found = 0u64;
        let mut work = String::new();
        match mode {
            "count" => {
                let (pairs, done) = join.count_pairs();
                (found, work) = (pairs, format!("{done:?}"));
            }
            "links" => {
                let ended = join.for_each_link(|_| {
                    found += 1;
                    ControlFlow::<()>::Continue(())
                });
                assert!(ended.is_continue());
            }
            _ => {
                let ended = join.for_each_pair(|_| {
                    found += 1;
                    ControlFlow::<()>::Continue(())
                });
                assert!(ended.is_continue());
            }
        }
        println!(
            "{shape} {n}, distance {max_distance}, {mode}: {} distinct, {found} found, {:.3} s of the clock ({prepared:.3} to prepare), {:.2} of the processor ({prepared_cpu:.2}) {work}",
            join.distinct(),
            wall.elapsed().as_secs_f64(),
            cpu_seconds() - cpu,
        );
    }
}
