//! `nearsift bench hamming`: one function for each group of rows.
//!
//! An index is built, and pairs are joined, by all threads that the program has; every other figure is
//! that of one thread.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use nearsift::cluster::{Components, KeepOrder};
use nearsift::fingerprint::Bits;
use nearsift::fingerprint::votes::lane_hash;
use nearsift::hamming::Budget;
use nearsift::hamming::index::{self, Ask, Ids, Index, Scratch, Search};
use nearsift::hamming::kernels::{Kernel, QUERIES};
use nearsift::hamming::scan::Scan;
use nearsift::join::{self, SelfJoin};
use rayon::prelude::*;

use super::fingerprints::{Sample, Shape};
use super::table::{Format, Row, Table, median_time};
use crate::Status;
use crate::args::{BenchHamming, Global};
use crate::failure::Failure;
use crate::output::Out;

/// A group of rows: what is measured on a sample.
type Measure = fn(&Sample, u32) -> Result<Vec<Row>, Failure>;

/// Queries put to an index, and how many of the first of them are answered by a scan too.
const ASKED: usize = 20_000;
const CHECKED: usize = 256;

/// Fingerprints past which only queries within distance 3 of uniform ones are measured: more would take
/// more memory than most machines have.
const LARGE: u64 = 200_000_000;

/// All groups, in the order of the table.
const MEASURES: &[Measure] = &[read, scans, passes, queries, self_join];

/// What is measured of each shape.
const SHAPES: &[(Shape, &[Measure])] = &[
    (Shape::Uniform, MEASURES),
    (Shape::Uniform, &[wide_queries]),
    (Shape::Skewed, MEASURES),
    (Shape::Block, &[queries]),
    (Shape::Ball, &[queries]),
];

/// The same where there are more than [`LARGE`] fingerprints.
const LARGE_SHAPES: &[(Shape, &[Measure])] = &[(Shape::Uniform, &[read, queries])];

pub fn run(args: &BenchHamming, global: &Global) -> Result<Status, Failure> {
    let BenchHamming { n, seed, rounds } = *args;
    let format = if global.json { Format::Json } else { Format::Text };
    let kernel = Kernel::best().to_string();
    let mut out = Out::new();
    if format == Format::Text {
        out.line(&format!("{n} fingerprints of 64 bits, seed {seed}, {rounds} rounds, {kernel}"))?;
    }
    let mut table = Table { benchmark: "hamming", n, seed, rounds, kernel, rows: Vec::new() };
    for (shape, measures) in if n > LARGE { LARGE_SHAPES } else { SHAPES } {
        let sample = Sample::new(*shape, n, ASKED, seed)?;
        for measure in *measures {
            for row in measure(&sample, rounds)? {
                table.add(row, &mut out, format)?;
            }
        }
    }
    table.finish(out, format)?;
    Ok(Status::Done)
}

/// How fast memory is read in order by one thread: what bounds a scan.
fn read(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    let words = sample.column.as_words();
    let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    let (time, found) = median_time(rounds, || sum_of(words));
    let figure = size_of_val(words) as f64 / time.as_secs_f64() / 1e9;
    Ok(vec![
        Row::new(format!("{}: read in order", sample.shape.name()), figure, "GB/s")
            .checked(sum, found),
    ])
}

/// The sum of the words, in as many parts as keep every load independent.
fn sum_of(words: &[u64]) -> u64 {
    let (chunks, rest) = words.as_chunks::<64>();
    let mut sums = [0u64; 64];
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// One query a pass, by whole fingerprints and by the plane that suits the distance.
fn scans(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    let query = &sample.queries[1];
    let scan_row = |scan: &Scan<'_, 1>, max: u32| {
        let bits = scan.planes().first().map_or(64, |plane| plane.fold().bits());
        let (time, found) = median_time(rounds, || {
            let mut hits = 0;
            scan.range(query, max, Budget::Unlimited, |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
            hits
        });
        let rate = sample.column.len() as f64 / time.as_secs_f64() / 1e9;
        let what = format!("{}: scan of {bits} bits, distance {max}", sample.shape.name());
        Row::new(what, rate, "G fingerprints/s")
            .reading(rate * f64::from(bits / 8))
            .checked(sample.count(&[*query], max), found)
    };
    let mut rows = vec![scan_row(&Scan::new(sample.fingerprints()), 3)];
    for max in [1, 3, 6, 8] {
        rows.push(scan_row(&Scan::for_distance(sample.fingerprints(), max), max));
    }
    Ok(rows)
}

/// Sixteen queries a pass.
fn passes(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    let queries = &sample.queries[..QUERIES];
    let row = |max: u32| {
        let scan = Scan::for_distance(sample.fingerprints(), max);
        let (time, found) = median_time(rounds, || {
            let mut hits = 0;
            scan.range_many(queries, max, Budget::Unlimited, |_, _| {
                hits += 1;
                ControlFlow::Continue(())
            });
            hits
        });
        let comparisons = (sample.column.len() * QUERIES) as f64;
        let shape = sample.shape.name();
        Row::new(
            format!("{shape}: {QUERIES} queries a pass, distance {max}"),
            comparisons / time.as_secs_f64() / 1e9,
            "G comparisons/s",
        )
        .checked(sample.count(queries, max), found)
    };
    Ok([3, 6, 8].map(row).into())
}

/// Queries by an index.
fn queries(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    let values = sample.column.as_words();
    let distances: &[u32] = match sample.shape {
        Shape::Uniform | Shape::Skewed if values.len() as u64 <= LARGE => &[3, 6, 8],
        _ => &[3],
    };
    let mut rows = Vec::new();
    for &max in distances {
        let asked = sample.queries.as_flattened();
        let expected = distinct_hits(sample.fingerprints(), &sample.queries[..CHECKED], max);
        let what = format!("{}: index, distance {max}", sample.shape.name());
        rows.extend(index_rows(&what, Bits::B64, values, asked, max, expected, rounds)?);
    }
    Ok(rows)
}

/// Queries among fingerprints of 128 bits: each is one of the sample and its hash.
fn wide_queries(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    const MAX: u32 = 7;
    let too_many = |_| Failure::new("expected twice the memory for fingerprints of 128 bits");
    let mut values: Vec<[u64; 2]> = Vec::new();
    values.try_reserve_exact(sample.column.len()).map_err(too_many)?;
    values.extend(sample.column.as_words().iter().map(|&word| [word, lane_hash(word, 6)]));
    let asked: Vec<[u64; 2]> = (0..ASKED as u64)
        .map(|q| {
            let [low, high] = values[(lane_hash(q, 7) % values.len() as u64) as usize];
            // Up to four bits of each word.
            let place = lane_hash(q, 8) % 60;
            let ones = |count: u64| ((1_u64 << count) - 1) << place;
            [low ^ ones(q % 5), high ^ ones(q % 4)]
        })
        .collect();
    let expected = distinct_hits(&values, &asked[..CHECKED], MAX);
    let what = format!("128 bits: index, distance {MAX}");
    let (values, asked) = (values.as_flattened(), asked.as_flattened());
    index_rows(&what, Bits::B128, values, asked, MAX, expected, rounds)
}

/// The rows of one index: queries one after the other, on one thread and on all.
/// The first [`CHECKED`] have as many hits as expected.
fn index_rows(
    what: &str,
    bits: Bits,
    values: &[u64],
    asked: &[u64],
    max: u32,
    expected: u64,
    rounds: u32,
) -> Result<Vec<Row>, Failure> {
    let settings =
        index::Settings { threads: index::Threads::Current, ..index::Settings::new(max) };
    let begun = Instant::now();
    let index = Index::build(bits, values, Ids::None, &settings).map_err(Failure::new)?;
    let seconds = begun.elapsed().as_secs_f64();
    let ask = Ask::within(max);
    let mut scratch = index.scratch();
    let (n, number) = (values.len() / bits.words(), asked.len() / bits.words());
    let mut alone = || answers_alone(&index, asked, &ask, &mut scratch);
    let (answers, again, once_more) = (alone()?, alone()?, alone()?);
    let found = answers.iter().take(CHECKED).map(|answer| answer.hits).sum();
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.time).collect();
    let mut times_of_hits: Vec<Duration> = answers.iter().map(Answer::time_of_a_hit).collect();
    let mut middle_times: Vec<Duration> = (times.iter().zip(&again).zip(&once_more))
        .map(|((time, again), once_more)| {
            let mut three = [*time, again.time, once_more.time];
            three.sort_unstable();
            three[1]
        })
        .collect();
    let all = |asked: &[u64], scratch: &mut Scratch| {
        let mut hits = 0;
        for query in asked.chunks_exact(bits.words()) {
            let outcome = index.visit(query, &ask, scratch, &mut |_| {
                hits += 1;
                ControlFlow::Continue(())
            });
            if outcome.is_err() {
                return 0;
            }
        }
        hits
    };
    let (time, hits) = median_time(rounds, || all(asked, &mut scratch));
    let shared = |asked: &[u64]| {
        let number = asked.len() / bits.words();
        let share = number.div_ceil(rayon::current_num_threads()) * bits.words();
        median_time(rounds, || {
            asked.par_chunks(share).map(|asked| all(asked, &mut index.scratch())).sum()
        })
    };
    let (shared_time, shared_hits) = shared(asked);
    times.sort_unstable();
    times_of_hits.sort_unstable();
    middle_times.sort_unstable();
    let part = |times: &[Duration], share: usize| times[(times.len() - 1) * share / 100];
    let mut waits = waits(part(&times, 50), number);
    waits.sort_unstable();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let bytes = index.as_bytes().len() as f64 / n as f64;
    let rate = |time: Duration| number as f64 / time.as_secs_f64();
    let row = |of: &str, figure: f64, unit| Row::new(format!("{what}, {of}"), figure, unit);
    let rows = vec![
        row("build", seconds, "s"),
        row("size", bytes, "bytes/fingerprint"),
        row("median", micros(part(&times, 50)), "us").checked(expected, found),
        row("99 of 100", micros(part(&times, 99)), "us"),
        row("99 of 100, the middle of three times", micros(part(&middle_times, 99)), "us"),
        row("99 of 100 waits of the median", micros(part(&waits, 99)), "us"),
        row("99 of 100, time of a hit", micros(part(&times_of_hits, 99)), "us"),
        row("one thread", rate(time), "queries/s"),
        row("all threads", rate(shared_time), "queries/s").checked(hits, shared_hits),
    ];
    Ok(rows)
}

/// What became of one query.
struct Answer {
    time: Duration,
    hits: u64,
}

impl Answer {
    /// An answer takes as long as its hits at least: what is left to compare is the time of each.
    fn time_of_a_hit(&self) -> Duration {
        self.time.div_f64(self.hits.max(1) as f64)
    }
}

/// Puts queries to an index, one after the other. All of the index is read before: what was asked earlier has left no more of
/// it in the caches than anything else, and a virtual machine has again what its host took back while it lay unused.
fn answers_alone(
    index: &Index<'_>,
    asked: &[u64],
    ask: &Ask,
    scratch: &mut Scratch,
) -> Result<Vec<Answer>, Failure> {
    const LINE: usize = 64;
    std::hint::black_box(index.as_bytes().iter().step_by(LINE).fold(0u8, |sum, byte| sum ^ byte));
    let answer = |query| {
        let begun = Instant::now();
        let mut hits = 0;
        let outcome = index.visit(query, ask, scratch, &mut |hit| {
            hits += u64::from(hit.distance() <= ask.max_distance);
            ControlFlow::Continue(())
        });
        outcome.map_err(Failure::new)?;
        Ok(Answer { time: begun.elapsed(), hits })
    };
    asked.chunks_exact(index.bits().words()).map(answer).collect()
}

/// What some waits of one length take that do nothing but read the clock. What is above the length was taken by the
/// machine, and is taken from queries too.
fn waits(length: Duration, number: usize) -> Vec<Duration> {
    let wait = || {
        let begun = Instant::now();
        loop {
            let time = begun.elapsed();
            if time >= length {
                return time;
            }
        }
    };
    (0..number).map(|_| wait()).collect()
}

/// How many distinct fingerprints are near each query, in all, by scans.
fn distinct_hits<const W: usize>(values: &[[u64; W]], queries: &[[u64; W]], max: u32) -> u64 {
    // Without a plane, which would take half as much memory again.
    let scan = Scan::new(values);
    let mut near: Vec<Vec<[u64; W]>> = vec![Vec::new(); queries.len()];
    scan.range_many(queries, max, Budget::Unlimited, |q, hit| {
        near[q].push(values[hit.id as usize]);
        ControlFlow::Continue(())
    });
    let distinct = |values: &mut Vec<[u64; W]>| {
        values.sort_unstable();
        values.dedup();
        values.len() as u64
    };
    near.iter_mut().map(distinct).sum()
}

/// All pairs of uniform fingerprints; of skewed ones the groups by their links, for their pairs are
/// quadratic in the size of a cluster.
fn self_join(sample: &Sample, rounds: u32) -> Result<Vec<Row>, Failure> {
    let join = |threads: join::Threads| {
        let settings = join::Settings { threads, ..join::Settings::new(3) };
        SelfJoin::new(&sample.column, settings).map_err(Failure::new)
    };
    let shape = sample.shape;
    let count = |join: &SelfJoin<'_>| match shape {
        Shape::Uniform => join.count_pairs().0,
        _ => {
            let mut groups = Components::new(join.documents());
            let ControlFlow::Continue(()) = join.for_each_link(|link| {
                groups.link(link.a, link.b);
                ControlFlow::<Infallible>::Continue(())
            });
            groups.finish(&KeepOrder::first(join.documents())).kept().count() as u64
        }
    };
    // The same on one thread.
    let planned = join(join::Threads::One)?;
    let expected = count(&planned);
    let (time, found) = median_time(rounds.min(3), || match join(join::Threads::Current) {
        Ok(join) => count(&join),
        Err(_) => u64::MAX,
    });
    let what = match shape {
        Shape::Uniform => format!("uniform: self-join, distance 3, {}", planned.plan()),
        _ => format!("{}: self-join into groups, {}", shape.name(), planned.plan()),
    };
    Ok(vec![Row::new(what, time.as_secs_f64(), "s").checked(expected, found)])
}
