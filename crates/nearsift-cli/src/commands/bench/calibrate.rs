//! `nearsift bench --calibrate`: the constants of the cost models, measured on one thread.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::fingerprint::votes::lane_hash;
use nearsift::fingerprint::{Bits, Fingerprints};
use nearsift::hamming::Budget;
use nearsift::hamming::index::{Ask, Ids, Index, Search, Settings};
use nearsift::hamming::kernels::{Kernel, QUERIES};
use nearsift::hamming::planner::{self, Plan};
use nearsift::hamming::scan::Scan;
use nearsift::join::{self, SelfJoin};

use super::table::median_time;
use crate::Status;
use crate::args::Global;
use crate::calibration::Calibration;
use crate::failure::Failure;
use crate::output::Out;

/// Rounds of each measurement.
const ROUNDS: u32 = 5;
/// Words of memory that no cache holds: 256 MiB.
const FAR: usize = 1 << 25;
/// Words that the caches hold: 1 MiB.
const NEAR: usize = 1 << 17;
/// Values of an index that the caches hold.
const VALUES: usize = 1 << 15;
/// Queries put to it.
const ASKED: usize = 1 << 13;

pub fn run(global: &Global) -> Result<Status, Failure> {
    let calibration = Calibration {
        kernel: Kernel::best().to_string(),
        index: index()?,
        join: [Bits::B64, Bits::B128, Bits::B256]
            .into_iter()
            .map(|bits| Ok((bits.count(), join_speed(bits)?)))
            .collect::<Result<BTreeMap<_, _>, Failure>>()?,
    };
    let file = calibration.save()?;
    let mut out = Out::new();
    if global.json {
        out.json(&calibration)?;
    } else {
        let planner::Calibration {
            query_ns,
            table_ns,
            probe_ns,
            near_line_ns,
            far_line_ns,
            entry_ns,
            scan_word_ns,
            compare_word_ns,
            wait_ns,
            ..
        } = calibration.index;
        out.line(&format!("one thread, {}, nanoseconds", calibration.kernel))?;
        for (what, ns) in [
            ("a query", query_ns),
            ("a table", table_ns),
            ("a bucket", probe_ns),
            ("a line of the cache", near_line_ns),
            ("a random line of memory", far_line_ns),
            ("a random line that is waited for", wait_ns),
            ("a packed entry", entry_ns),
            ("a word of a scan from memory", scan_word_ns),
            ("a word that is compared in the cache", compare_word_ns),
        ] {
            out.line(&format!("{what:<40} {ns:>8.2}"))?;
        }
        for (bits, speed) in &calibration.join {
            let join::Speed { comparison_ns, move_ns } = speed;
            out.line(&format!(
                "{:<40} {comparison_ns:>8.3}",
                format!("join of {bits} bits: a comparison")
            ))?;
            out.line(&format!("{:<40} {move_ns:>8.2}", format!("join of {bits} bits: a move")))?;
        }
        out.line(&format!("written to {}", file.display()))?;
    }
    out.finish()?;
    Ok(Status::Done)
}

/// Nanoseconds of one of `count` things, of which `work` does all.
fn ns_of(count: usize, work: impl FnMut() -> u64) -> f64 {
    median_time(ROUNDS, work).0.as_secs_f64() * 1e9 / count as f64
}

fn index() -> Result<planner::Calibration, Failure> {
    let far: Vec<u64> = (0..FAR as u64).map(|i| lane_hash(i, 1)).collect();
    let near = &far[..NEAR];
    let nominal = planner::Calibration::default();
    let near_line_ns = random_line(near);
    let scan = |values: &[u64], queries: usize| {
        let (scan, queries) = (Scan::new(values.as_chunks::<1>().0), vec![[!0u64]; queries]);
        ns_of(values.len(), || {
            let mut hits = 0;
            scan.range_many(&queries, 3, Budget::Unlimited, |_, _| {
                hits += 1;
                ControlFlow::Continue(())
            });
            hits
        })
    };
    let scan_word_ns = scan(&far, 1);
    let compare_word_ns = scan(near, QUERIES) / QUERIES as f64;
    let [query_ns, table_ns, probe_ns, entry_ns] = steps(&far[..VALUES], near_line_ns)?;
    Ok(planner::Calibration {
        query_ns,
        table_ns,
        probe_ns,
        near_line_ns,
        far_line_ns: random_line(&far).max(near_line_ns),
        entry_ns,
        scan_word_ns,
        compare_word_ns,
        wait_ns: waited_line(&far),
        ..nominal
    })
}

/// Reads at places that do not depend on one another.
fn random_line(words: &[u64]) -> f64 {
    const READS: u64 = 1 << 20;
    let mask = words.len() as u64 - 1;
    ns_of(READS as usize, || {
        (0..READS).fold(0u64, |sum, i| sum.wrapping_add(words[(lane_hash(i, 2) & mask) as usize]))
    })
}

/// Reads at places that the read before tells.
fn waited_line(words: &[u64]) -> f64 {
    const READS: u64 = 1 << 17;
    let mask = words.len() as u64 - 1;
    ns_of(READS as usize, || (0..READS).fold(0, |at, i| words[((at ^ i) & mask) as usize]))
}

/// A query, a table, a bucket and an entry, from indexes in the cache with few and many of each.
fn steps(values: &[u64], near_line_ns: f64) -> Result<[f64; 4], Failure> {
    let queries: Vec<u64> = (0..ASKED as u64).map(|q| lane_hash(q, 7)).collect();
    // Nanoseconds, buckets and entries of a query.
    let measure = |blocks: u32, key_bits: u32, max_distance: u32| {
        let plan = Some(Plan::MultiIndex { blocks, key_bits });
        let settings = Settings { plan, ..Settings::new(max_distance) };
        let index = Index::build(Bits::B64, values, Ids::None, &settings).map_err(Failure::new)?;
        let (ask, mut scratch) = (Ask::within(max_distance), index.scratch());
        let mut work = nearsift::hamming::Work::default();
        let ns = ns_of(ASKED, || {
            let outcome =
                index.batch(&queries, &ask, &mut scratch, |_, _| ControlFlow::Continue(()));
            work = outcome.map_or_else(|_| work, |outcome| outcome.work);
            work.candidates
        });
        let each = |count: u64| count as f64 / ASKED as f64;
        Ok::<_, Failure>([ns, each(work.probes), each(work.candidates)])
    };
    let few = measure(1, 15, 0)?;
    let entries = measure(1, 5, 0)?;
    let buckets = measure(2, 14, 5)?;
    let tables = measure(4, 15, 3)?;
    // The second differs from the first in entries alone, the third by one table and many buckets, the
    // fourth by three tables and as many buckets.
    let entry_ns = ((entries[0] - few[0]) / (entries[2] - few[2])).max(0.01);
    let more = |of: [f64; 3]| of[0] - few[0] - entry_ns * (of[2] - few[2]);
    let table_and_bucket = more(tables) / 3.0;
    let bucket_ns = ((more(buckets) - table_and_bucket) / (buckets[1] - few[1] - 1.0)).max(0.1);
    let table_ns = (table_and_bucket - bucket_ns).max(0.1);
    let query_ns = (few[0] - table_and_bucket - entry_ns * few[2]).max(1.0);
    // A bucket's lines in the cache are counted apart.
    Ok([query_ns, table_ns, (bucket_ns - 2.0 * near_line_ns).max(0.1), entry_ns])
}

fn join_speed(bits: Bits) -> Result<join::Speed, Failure> {
    let column = |n: usize| {
        let words = (0..(n * bits.words()) as u64).map(|i| lane_hash(i, 3)).collect();
        Fingerprints::from_words(bits, words)
    };
    let time = |column: &Fingerprints, plan| {
        let settings = join::Settings { plan: Some(plan), ..join::Settings::new(3) };
        let join = SelfJoin::new(column, settings).map_err(Failure::new)?;
        let mut best = (f64::INFINITY, join::Work::default());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let (pairs, work) = black_box(join.count_pairs());
            let _ = pairs;
            let ns = begun.elapsed().as_secs_f64() * 1e9;
            if ns < best.0 {
                best = (ns, work);
            }
        }
        Ok::<_, Failure>(best)
    };
    let (ns, work) = time(&column(1 << 13), join::Plan::AllPairs)?;
    let comparison_ns = ns / work.comparisons as f64;
    let (ns, work) = time(&column(1 << 20), join::Plan::Nested)?;
    let move_ns = (ns - work.comparisons as f64 * comparison_ns) / work.moves as f64;
    Ok(join::Speed { comparison_ns, move_ns: move_ns.max(0.1) })
}
