//! The self-join: seeded fingerprints with planted pairs, timed, and every count checked.

use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::fingerprint::{Bits, Fingerprint, Fingerprints};
use nearsift::join::{Plan, SelfJoin, Settings, Threads};
use serde::Serialize;

use crate::hamming::peers::{JOINERS, Joiner};
use crate::python;

/// How the values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Evenly spread, and one value in ten within 8 bits of an earlier one.
    Uniform,
    /// Biased bits, clusters of sizes that follow a power law, and repeated values.
    Skewed,
    /// Evenly spread, all different, and near each other by chance alone.
    Distinct,
}

impl Data {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Data::Uniform => "uniform",
            Data::Skewed => "skewed",
            Data::Distinct => "distinct",
        }
    }
}

/// One join to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// How the values lie.
    pub data: Data,
    /// Documents.
    pub n: usize,
    /// Inclusive distance in bits.
    pub max_distance: u32,
    /// The pairs that there are, counted once by comparing all or, at 10^7, by plans of
    /// different blocks. Without a count the benchmark compares all in the same run.
    pub expect_pairs: Option<u64>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// How the values lie.
    pub data: Data,
    /// Documents.
    pub n: usize,
    /// Distinct values among them.
    pub distinct: usize,
    /// Inclusive distance in bits.
    pub max_distance: u32,
    /// Threads asked for.
    pub threads: usize,
    /// The plan, as it names itself.
    pub plan: String,
    /// Seconds from the column to all pairs, given out in order.
    pub pairs_seconds: f64,
    /// Seconds from the column to the links of groups, given out in order: what `dedup` takes.
    pub links_seconds: f64,
    /// Processor seconds for the pairs, where the system tells those of a thread and it was one.
    pub pairs_cpu_seconds: Option<f64>,
    /// Processor seconds for the links, likewise.
    pub links_cpu_seconds: Option<f64>,
    /// Seconds that the planner expected.
    pub expected_seconds: f64,
    /// Distances computed.
    pub comparisons: u64,
    /// Values moved into buckets.
    pub moves: u64,
    /// Pairs of documents found.
    pub pairs: u64,
    /// Whether the count is that of comparing all.
    pub correct: bool,
}

/// What another crate took for the distinct values of a case, on one thread.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// Its time, without that of making the values distinct.
    pub seconds: f64,
    /// The time of this join for the same values, in the same run.
    pub own_seconds: f64,
    /// Whether both found the same number of pairs.
    pub agrees: bool,
}

/// What was measured of a large case.
#[derive(Debug, Clone, Copy)]
pub struct Large {
    /// Seconds from the column to all pairs, given out in order.
    pub seconds: f64,
    /// Pairs found.
    pub pairs: u64,
    /// The most memory that the process held so far, in bytes, where the system tells.
    pub peak_bytes: Option<u64>,
    /// Whether the count is that of the case.
    pub correct: bool,
}

/// The cases of the record.
pub const CASES: &[Case] = &[
    Case { data: Data::Uniform, n: 100_000, max_distance: 3, expect_pairs: None },
    Case { data: Data::Uniform, n: 100_000, max_distance: 8, expect_pairs: None },
    Case { data: Data::Skewed, n: 100_000, max_distance: 3, expect_pairs: None },
    Case { data: Data::Skewed, n: 100_000, max_distance: 8, expect_pairs: None },
    Case { data: Data::Uniform, n: 1_000_000, max_distance: 3, expect_pairs: Some(50_997) },
    Case { data: Data::Uniform, n: 1_000_000, max_distance: 6, expect_pairs: Some(95_356) },
    Case { data: Data::Uniform, n: 1_000_000, max_distance: 8, expect_pairs: Some(115_937) },
    Case { data: Data::Uniform, n: 10_000_000, max_distance: 3, expect_pairs: Some(504_422) },
    Case { data: Data::Uniform, n: 10_000_000, max_distance: 6, expect_pairs: Some(944_532) },
    Case { data: Data::Uniform, n: 10_000_000, max_distance: 8, expect_pairs: Some(1_164_291) },
    Case { data: Data::Distinct, n: 10_000_000, max_distance: 3, expect_pairs: Some(0) },
    Case { data: Data::Distinct, n: 10_000_000, max_distance: 6, expect_pairs: Some(227) },
    Case { data: Data::Distinct, n: 10_000_000, max_distance: 8, expect_pairs: Some(13_774) },
    Case { data: Data::Skewed, n: 1_000_000, max_distance: 3, expect_pairs: Some(22_886_401) },
    Case { data: Data::Skewed, n: 1_000_000, max_distance: 6, expect_pairs: Some(34_663_329) },
    Case { data: Data::Skewed, n: 1_000_000, max_distance: 8, expect_pairs: Some(37_325_862) },
];

/// The cases that take most of a large machine.
pub const LARGE_CASES: &[Case] = &[
    Case { data: Data::Distinct, n: 100_000_000, max_distance: 3, expect_pairs: Some(8) },
    Case { data: Data::Distinct, n: 1_000_000_000, max_distance: 3, expect_pairs: Some(1_157) },
];

/// Cases that take no longer than so many seconds are run twice.
const SHORT: f64 = 7.0;

/// What was timed once, or the faster of two times where the first was `short`: in a virtual machine the first also waits
/// for the host, which provides memory when it is written to and takes it back when it lies unused.
fn timed<T>(threads: usize, short: f64, mut run: impl FnMut() -> T) -> (T, f64, Option<f64>) {
    let mut once = || {
        let (start, cpu) = (Instant::now(), cpu_seconds(threads));
        let result = run();
        let seconds = start.elapsed().as_secs_f64();
        (result, seconds, cpu_seconds(threads).zip(cpu).map(|(end, start)| end - start))
    };
    let first = once();
    if first.1 > short {
        return first;
    }
    let second = once();
    if first.1 <= second.1 { first } else { second }
}

/// Times one case on a number of threads.
///
/// # Panics
/// When the join cannot be made, which for the cases here is an error of the benchmark.
pub fn measure(case: &Case, threads: usize) -> Measured {
    let column = column(case.data, case.n);
    let settings = Settings {
        threads: std::num::NonZeroUsize::new(threads).map_or(Threads::One, Threads::Own),
        ..Settings::new(case.max_distance)
    };
    let expect =
        case.expect_pairs.unwrap_or_else(|| count_by_all_pairs(&column, case.max_distance));
    let ((join, pairs), pairs_seconds, pairs_cpu_seconds) =
        timed(threads, SHORT, || search(&column, settings));
    // Equal values are grouped again.
    let links = || {
        let mut links = 0u64;
        let join = SelfJoin::new(&column, settings).expect("a join");
        let ended = join.for_each_link(|_| {
            links += 1;
            ControlFlow::<()>::Continue(())
        });
        assert!(ended.is_continue());
        links
    };
    let (links, links_seconds, links_cpu_seconds) = timed(threads, SHORT, links);
    let (counted, work) = join.count_pairs();
    Measured {
        data: case.data,
        n: case.n,
        distinct: join.distinct(),
        max_distance: case.max_distance,
        threads,
        plan: join.plan().to_string(),
        pairs_seconds,
        links_seconds,
        pairs_cpu_seconds,
        links_cpu_seconds,
        expected_seconds: join.explain().seconds,
        comparisons: work.comparisons,
        moves: work.moves,
        pairs,
        correct: pairs == expect && counted == expect && links <= pairs,
    }
}

/// A join, and how many pairs it gave out in order.
fn search(column: &Fingerprints, settings: Settings) -> (SelfJoin<'_>, u64) {
    let join = SelfJoin::new(column, settings).expect("a join");
    let mut pairs = 0;
    let ended = join.for_each_pair(|_| {
        pairs += 1;
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.is_continue());
    (join, pairs)
}

/// Times the distinct values of a case on one thread, and other joins on the same values.
///
/// # Panics
/// As [`measure`].
pub fn against_peers(case: &Case) -> Vec<Peer> {
    let column = column(case.data, case.n);
    let mut values = column.as_words().to_vec();
    values.sort_unstable();
    values.dedup();
    SplitMix(case.n as u64).shuffle(&mut values);
    let (own, others) = JOINERS.split_first().expect("this join and others");
    let faster = |joiner: &Joiner| {
        let runs = [(); 2].map(|()| (joiner.join)(&values, case.max_distance));
        assert_eq!(runs[0].0, runs[1].0, "the same pairs in both runs");
        (runs[0].0, runs[0].1.min(runs[1].1))
    };
    let (pairs, own_seconds) = faster(own);
    let compare = |peer: &Joiner| {
        let (found, seconds) = faster(peer);
        Peer { name: peer.name, seconds, own_seconds, agrees: found == pairs }
    };
    others.iter().map(compare).collect()
}

/// Times one large case on a number of threads.
///
/// # Panics
/// As [`measure`].
pub fn measure_large(case: &Case, threads: usize) -> Large {
    let column = column(case.data, case.n);
    let settings = Settings {
        threads: std::num::NonZeroUsize::new(threads).map_or(Threads::One, Threads::Own),
        ..Settings::new(case.max_distance)
    };
    // Always twice: this needs the most memory of all.
    let ((join, pairs), seconds, _) = timed(threads, f64::INFINITY, || search(&column, settings));
    Large {
        seconds,
        pairs,
        peak_bytes: peak_bytes(),
        correct: case.expect_pairs == Some(pairs) && join.distinct() == case.n,
    }
}

/// What simhash (leonsim) would take for the distinct values of a case: the time to build its index, and
/// to ask it for the neighbours of every value as long as for the first of them. An error tells why it
/// was left out.
pub fn simhash_seconds(case: &Case, place: &std::path::Path) -> Result<f64, String> {
    const QUERIES: usize = 200;
    let python = python::interpreter()?;
    let column = column(case.data, case.n);
    let mut values = column.as_words().to_vec();
    values.sort_unstable();
    values.dedup();
    SplitMix(case.n as u64).shuffle(&mut values);
    std::fs::create_dir_all(place).map_err(|e| format!("{}: {e}", place.display()))?;
    let write = |name: &str, values: &[u64]| {
        let path = place.join(name);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok::<_, String>(path)
    };
    let fingerprints = write("join.bin", &values)?;
    let queries = write("join-queries.bin", &values[..values.len().min(QUERIES)])?;
    let answer = python::ask(&python, "simhash", &fingerprints, &queries, case.max_distance)?;
    let (asked, all) = (answer.queries as f64, values.len() as f64);
    // It takes a million at most; its time grows at least in proportion.
    Ok((answer.build_seconds + answer.query_seconds / asked * answer.n as f64) * all
        / answer.n as f64)
}

/// The most memory that this process held so far, where Linux tells it.
fn peak_bytes() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The processor time so far, where Linux tells it: of this thread when it does all the work, else of the
/// process.
pub fn cpu_seconds(threads: usize) -> Option<f64> {
    if threads > 1 {
        let told = std::fs::read_to_string("/proc/self/stat").ok()?;
        let mut fields = told.rsplit(')').next()?.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        // User time and system time, in hundredths.
        return Some((ticks()? + ticks()?) / 100.0);
    }
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = told.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// The number of pairs by comparing every two distinct values.
///
/// # Panics
/// As [`measure`].
pub fn count_by_all_pairs(column: &Fingerprints, max_distance: u32) -> u64 {
    let settings = Settings { plan: Some(Plan::AllPairs), ..Settings::new(max_distance) };
    SelfJoin::new(column, settings).expect("a join").count_pairs().0
}

/// The 64-bit fingerprints of a case, the same on every machine.
pub fn column(data: Data, n: usize) -> Fingerprints {
    let mut random = SplitMix(n as u64);
    let mut column = Fingerprints::new(Bits::B64);
    for i in 0..n as u64 {
        let word = match data {
            Data::Uniform if i > 0 && random.below(10) == 0 => {
                let earlier = column.as_words()[random.below(i) as usize];
                let flips = random.below(9);
                random.flipped(earlier, flips)
            }
            // The generator is one to one in its counter.
            Data::Uniform | Data::Distinct => random.next(),
            Data::Skewed => {
                // Half of the documents are in clusters, the one of rank c about 50 / (50 + c) times
                // as large as the largest; the rest stand alone.
                let octave = 50 << random.below(12);
                let centre = octave + random.below(octave);
                let alone = random.below(2) == 0;
                let centre = if alone { (1 << 32) + i } else { centre };
                let mut own = SplitMix(centre);
                let (fixed, free) = (own.next() & own.next() & own.next(), own.next());
                let value = fixed & 0xffff_ffff | free & !0xffff_ffff;
                let flips = random.below(4);
                random.flipped(value, flips)
            }
        };
        column.push(&Fingerprint::from_u64(word));
    }
    column
}

/// Steele, Lea and Flood's SplitMix64.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn shuffle(&mut self, values: &mut [u64]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// With up to `flips` bits changed.
    fn flipped(&mut self, value: u64, flips: u64) -> u64 {
        (0..flips).fold(value, |value, _| value ^ 1 << self.below(64))
    }
}
