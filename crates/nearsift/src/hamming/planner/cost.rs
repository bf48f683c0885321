//! What a plan costs, by a model of memory: the cache lines that a query touches, and the entries that
//! it compares.

use std::fmt;

use super::{COUNTED, Plan, PlanError, binomial};
use crate::fingerprint::Bits;
use crate::hamming::scan::Fold;
use crate::hamming::{CHANCE_WARNING, chance_neighbours};

/// What an index is to do: the planner decides by these alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    /// Distinct fingerprints.
    pub values: u64,
    /// Their width.
    pub bits: Bits,
    /// The inclusive distance, in bits.
    pub max_distance: u32,
    /// Bytes that the index may take, without ids, or `None` for no limit.
    pub memory_bytes: Option<u64>,
}

impl Question {
    /// Queries within `max_distance`, in any memory.
    pub const fn new(values: u64, bits: Bits, max_distance: u32) -> Question {
        Question { values, bits, max_distance, memory_bytes: None }
    }
}

// Nominal speeds of one thread, in nanoseconds.
/// A query, whatever it does.
const QUERY_NS: f64 = 50.0;
/// A table: bringing the query into its order of bits.
const TABLE_NS: f64 = 25.0;
/// A bucket, apart from the memory that it touches.
const PROBE_NS: f64 = 12.0;
/// A line of the cache that an index up to [`CACHE_BYTES`] stays in.
const NEAR_LINE_NS: f64 = 3.0;
/// A random line of memory, others being fetched at the same time, up to 1 GiB.
const FAR_LINE_NS: f64 = 12.0;
/// What is added for each doubling of the index beyond 1 GiB.
const FARTHER_LINE_NS: f64 = 3.0;
/// A packed entry of one word that is compared.
const ENTRY_NS: f64 = 0.55;
/// A word of a scan from memory, and one that is in the cache.
const SCAN_WORD_NS: f64 = 0.6;
const COMPARE_WORD_NS: f64 = 0.1;
/// A line that is waited for.
const WAIT_NS: f64 = 250.0;
/// Bytes of the cache.
const CACHE_BYTES: f64 = 16e6;

/// What a plan is expected to do for one query among evenly spread values.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The plan.
    pub plan: Plan,
    /// What it answers.
    pub question: Question,
    /// Tables that are searched.
    pub tables: u32,
    /// Buckets that are looked up.
    pub probes: f64,
    /// Fingerprints that the query is compared with.
    pub candidates: f64,
    /// Size of the index without ids, in bytes.
    pub bytes: u64,
    /// Expected time of a query on one thread, in nanoseconds: good to a small factor.
    pub nanoseconds: f64,
    /// The mean number of fingerprints within the distance of one by chance alone.
    pub chance_neighbours: f64,
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { values, bits, max_distance, .. } = self.question;
        writeln!(
            f,
            "index of {values} distinct {}-bit values, distance at most {max_distance}",
            bits.count()
        )?;
        writeln!(f, "plan               {}", self.plan)?;
        if self.plan == Plan::Linear {
            writeln!(
                f,
                "                   only a scan is left: no table pays at this size and distance"
            )?;
        } else {
            writeln!(f, "probes             {:.0} buckets in {} tables", self.probes, self.tables)?;
        }
        writeln!(f, "candidates         {:.1} compared", self.candidates)?;
        let each = self.bytes as f64 / values.max(1) as f64;
        writeln!(f, "bytes              {}, {each:.1} a value, without ids", self.bytes)?;
        writeln!(f, "time               {} a query expected, one thread", Time(self.nanoseconds))?;
        write!(f, "chance neighbours  {:.3e} a query", self.chance_neighbours)?;
        if self.chance_neighbours > CHANCE_WARNING {
            write!(
                f,
                " (above {CHANCE_WARNING}: near values are weak evidence; use more bits or less distance)"
            )?;
        }
        Ok(())
    }
}

/// Nanoseconds, for people.
struct Time(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1e3 => write!(f, "{ns:.0} ns"),
            ns if ns < 1e6 => write!(f, "{:.1} us", ns / 1e3),
            ns => write!(f, "{:.1} ms", ns / 1e6),
        }
    }
}

/// What share of a packed entry's time one in planes takes.
const IN_PLANES: f64 = 0.2;
/// What share of a line's time each takes that follows the first three of a bucket.
const STREAMED: f64 = 0.5;
/// Below this, memory is not worth saving.
const SMALL_BYTES: u64 = 192 << 20;

/// Nanoseconds in which one table is weighed against others, when a radius is raised.
const CHOICE_NS: f64 = 15.0;
/// Bytes of a line of the cache.
const LINE_BYTES: f64 = 64.0;
/// Bytes up to which a random line of memory takes the same.
const GIB: f64 = (1u64 << 30) as f64;

impl Plan {
    /// The plan with the least product of expected time and bytes: twice the memory has to save half the
    /// time. What stays below 192 MiB is chosen by time alone. It depends on the question alone, not on the machine.
    ///
    /// # Errors
    /// [`PlanError`]: the distance is beyond the width, or no plan fits into the memory.
    pub fn choose(question: &Question) -> Result<Plan, PlanError> {
        let linear = Plan::Linear.forecast(question)?;
        let limit = question.memory_bytes.unwrap_or(u64::MAX);
        let score =
            |forecast: &Forecast| forecast.nanoseconds * forecast.bytes.max(SMALL_BYTES) as f64;
        // A scan is the surest plan: others have to be clearly better.
        let mut best = (linear.bytes <= limit).then(|| (0.95 * score(&linear), Plan::Linear));
        let mut least = linear.bytes;
        for plan in candidates(question) {
            let Ok(forecast) = plan.forecast(question) else { continue };
            least = least.min(forecast.bytes);
            let score = score(&forecast);
            if forecast.bytes <= limit && best.is_none_or(|(best, _)| score < best) {
                best = Some((score, plan));
            }
        }
        best.map(|(_, plan)| plan).ok_or(PlanError::Memory {
            values: question.values,
            needed: least,
            limit,
        })
    }

    /// What a plan is expected to cost.
    ///
    /// # Errors
    /// [`PlanError`]: the plan does not fit the width or does not reach the distance.
    pub fn forecast(self, question: &Question) -> Result<Forecast, PlanError> {
        let plan = self;
        plan.fits(question.bits, question.max_distance)?;
        let n = question.values as f64;
        let mut tables = tables_of(plan, question);
        spread(plan, question, &mut tables);
        let of_all =
            |each: &dyn Fn(&Table) -> f64| tables.iter().map(|t| t.count * each(t)).sum::<f64>();
        let plane = match plan {
            Plan::Linear => Fold::for_distance(question.bits.count(), question.max_distance),
            _ => None,
        };
        let plane = n * plane.map_or(0.0, |fold| f64::from(fold.bits() / 8));
        let bytes = 4096.0 + plane + of_all(&|t| t.directory + n * t.entry_bytes);
        let probes = of_all(&|t| t.probes);
        let candidates = of_all(&|t| t.probes * t.mean);
        let nanoseconds = if plan == Plan::Linear {
            QUERY_NS + n * scan_ns(question, bytes < CACHE_BYTES)
        } else {
            let cache = Cache::of(&tables, n, CACHE_BYTES / LINE_BYTES);
            let far_ns = FAR_LINE_NS + FARTHER_LINE_NS * log2(bytes / GIB).max(0.0);
            let line_ns = |missed: f64| NEAR_LINE_NS + missed * (far_ns - NEAR_LINE_NS);
            let levels = f64::from(question.max_distance + 1);
            // Radii that are raised by what a directory said are looked up while the query waits, and of what is
            // found in planes the further bytes are waited for.
            let in_order = matches!(plan, Plan::MultiIndex { .. });
            let raised = if in_order { (levels - of_all(&|_| 1.0)).max(0.0) } else { 0.0 };
            let choices = if raised > 0.0 { levels * of_all(&|_| 1.0) } else { 0.0 };
            let in_planes = plan.in_planes(question.bits, question.max_distance);
            let found = if in_planes { cache.entries_missed } else { 0.0 };
            let first = cache.directories_missed + cache.entries_missed;
            let probe_ns = |t: &Table| {
                let lines = 1.0 + t.length.min(2.0) + STREAMED * (t.length - 2.0).max(0.0);
                PROBE_NS
                    + line_ns(cache.directories_missed)
                    + t.filled * line_ns(cache.entries_missed) * lines
                    + t.mean * t.entry_share * ENTRY_NS
            };
            QUERY_NS
                + choices * CHOICE_NS
                + (raised * cache.directories_missed + first + found) * WAIT_NS
                + of_all(&|t| {
                    if t.probes > 0.0 { TABLE_NS + t.probes * probe_ns(t) } else { 0.0 }
                })
        };
        Ok(Forecast {
            plan,
            question: *question,
            tables: of_all(&|_| 1.0) as u32,
            probes,
            candidates,
            bytes: bytes as u64,
            nanoseconds,
            chance_neighbours: chance_neighbours(
                question.values,
                question.bits.count(),
                question.max_distance,
            ),
        })
    }
}

/// A value of a scan, which reads a plane of folds where one helps.
fn scan_ns(question: &Question, cached: bool) -> f64 {
    let bits = question.bits.count();
    let fold = Fold::for_distance(bits, question.max_distance).map_or(bits, Fold::bits);
    let words = f64::from(fold) / 64.0;
    let left = if fold == bits { 0.0 } else { chance_neighbours(1, fold, question.max_distance) };
    let read = if cached { COMPARE_WORD_NS } else { SCAN_WORD_NS };
    words * read + left * (FAR_LINE_NS + PROBE_NS)
}

/// Gives every table the buckets that a query looks up: radii are raised where the next shell is the
/// cheapest, sum of (radius + 1) = distance + 1.
fn spread(plan: Plan, question: &Question, tables: &mut [Table]) {
    if plan == Plan::Linear {
        tables.iter_mut().for_each(|table| table.probes = 1.0);
        return;
    }
    let mut levels = f64::from(question.max_distance + 1);
    let mut radii = vec![0; tables.len()];
    while levels > 0.0 {
        let cost = |t: &Table, radius: u32| {
            let lines = 1.0 + t.filled * (1.0 + STREAMED * t.length);
            let bucket = PROBE_NS + FAR_LINE_NS * lines;
            t.shell(radius) * (bucket + t.mean * t.entry_share * ENTRY_NS)
        };
        let next = (0..tables.len())
            .map(|i| (i, cost(&tables[i], radii[i])))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((i, _)) = next else { return };
        // All of a kind, or as many as are left.
        let table = &mut tables[i];
        table.probes += table.shell(radii[i]) * (levels / table.count).min(1.0);
        levels -= table.count;
        radii[i] += 1;
    }
}

/// Tables of a kind, as the model sees them.
struct Table {
    /// How many there are.
    count: f64,
    key_bits: u32,
    by_code: bool,
    /// Bytes of the directory.
    directory: f64,
    entry_bytes: f64,
    /// Bytes of an entry that are read to compare it, and its share of the time of a packed word.
    read_bytes: f64,
    entry_share: f64,
    /// Values of a bucket, the share of buckets that hold any, and the lines that a filled one takes.
    mean: f64,
    filled: f64,
    length: f64,
    /// Buckets that a query looks up, for each of them.
    probes: f64,
}

impl Table {
    /// Buckets at exactly this radius.
    fn shell(&self, radius: u32) -> f64 {
        match (self.by_code, radius) {
            (_, 0) => 1.0,
            // 15 of 16 codewords, for 31 of 32 words, and each further bit.
            (true, 1) => 15.0 * 31.0 / 32.0 + f64::from(self.key_bits.saturating_sub(26)),
            (true, _) => f64::INFINITY,
            (false, _) if radius > self.key_bits => f64::INFINITY,
            (false, _) => binomial(self.key_bits, radius),
        }
    }
}

fn tables_of(plan: Plan, question: &Question) -> Vec<Table> {
    let bits = question.bits;
    let (n, width, words) = (question.values as f64, bits.count(), bits.words() as f64);
    // Where entries stand in planes, the low words alone are read.
    let in_planes = plan.in_planes(bits, question.max_distance);
    let table = |count: u32, key_bits: u32, entry_bits: u32, by_code: bool| {
        let buckets = f64::from(2u32.pow(key_bits));
        let mean = n / buckets;
        let filled = 1.0 - exp_of_minus(mean);
        let entry_bytes = f64::from(entry_bits.div_ceil(8));
        let (read_bytes, entry_share) =
            if in_planes { (4.0, IN_PLANES) } else { (entry_bytes, words) };
        Table {
            count: f64::from(count),
            key_bits,
            by_code,
            directory: if mean > f64::from(COUNTED) {
                4.0 * buckets
            } else {
                buckets * LINE_BYTES / 56.0
            },
            entry_bytes,
            read_bytes,
            entry_share,
            mean,
            filled,
            length: mean / filled.max(1e-9) * read_bytes / LINE_BYTES,
            probes: 0.0,
        }
    };
    let prefix = |count, key_bits: u32| table(count, key_bits, width - key_bits, false);
    match plan {
        Plan::Linear => vec![prefix(1, 0)],
        Plan::MultiIndex { blocks, key_bits } if key_bits <= width / blocks => {
            vec![prefix(blocks, key_bits)]
        }
        Plan::MultiIndex { blocks, key_bits } => {
            let others = (width - key_bits) / (blocks - 1).max(1);
            vec![prefix(1, key_bits), prefix(blocks - 1, others)]
        }
        Plan::PerfectCode { tables, key_bits } => {
            let dropped = 26u32.saturating_sub(key_bits);
            // Up to three dropped bits stand in the entry without the parity bits.
            let repeated = if dropped > 3 { 5 } else { 0 };
            let entry_bits = width - key_bits + repeated;
            vec![table(tables, key_bits, entry_bits, true)]
        }
    }
}

/// The shares of reads that miss the cache. It holds the lines read last, and a line of a small table is read
/// more often than one of a big one.
struct Cache {
    directories_missed: f64,
    entries_missed: f64,
}

impl Cache {
    /// The misses of a cache of `lines` lines, by the time after which an unread line is evicted (Che, Tung and Wang,
    /// 'Hierarchical web caching systems', IEEE JSAC 20(7), 2002, section III).
    fn of(tables: &[Table], values: f64, lines: f64) -> Cache {
        // All lines, and those that a query reads.
        let directories =
            tables.iter().map(|t| (t.count * t.directory / LINE_BYTES, t.count * t.probes));
        let entries = tables.iter().map(|t| {
            let read = t.probes * t.filled * (1.0 + t.length);
            (t.count * values * t.read_bytes / LINE_BYTES, t.count * read)
        });
        let sum = |(a, b): (f64, f64), (c, d): (f64, f64)| (a + c, b + d);
        let (directories, entries) =
            (directories.fold((0.0, 0.0), sum), entries.fold((0.0, 0.0), sum));
        if directories.0 + entries.0 <= lines {
            return Cache { directories_missed: 0.0, entries_missed: 0.0 };
        }
        let missed =
            |(all, read): (f64, f64), queries: f64| exp_of_minus(queries * read / all.max(1.0));
        let held = |queries: f64| {
            directories.0 * (1.0 - missed(directories, queries))
                + entries.0 * (1.0 - missed(entries, queries))
        };
        // At least so many queries pass until the cache is full, as if none read a line again.
        let mut least = lines / (directories.1 + entries.1).max(1.0);
        let mut most = 2.0 * least;
        for _ in 0..40 {
            if held(most) >= lines {
                break;
            }
            (least, most) = (most, 2.0 * most);
        }
        for _ in 0..12 {
            let middle = (least + most) / 2.0;
            if held(middle) < lines { least = middle } else { most = middle }
        }
        Cache {
            directories_missed: missed(directories, least),
            entries_missed: missed(entries, least),
        }
    }
}

/// e^-x within 1 in 100 of what it makes a difference to. Plans depend on it, so it is made of operations with
/// one right result each.
fn exp_of_minus(x: f64) -> f64 {
    (0..8).fold(1.0 / (1.0 + x / 256.0), |power, _| power * power)
}

/// The logarithm, by straight lines between powers of 2; at most 0 below 1.
fn log2(x: f64) -> f64 {
    if x < 1.0 {
        return 0.0;
    }
    let whole = (x as u64).ilog2();
    f64::from(whole) + x / 2f64.powi(whole as i32) - 1.0
}

/// The plans that may be the best.
fn candidates(question: &Question) -> Vec<Plan> {
    let Question { values, bits, max_distance: k, .. } = *question;
    let lg = values.max(16).ilog2();
    // Buckets are emptier than one value where lines of entries cost more than the directory grows.
    let keys = lg.saturating_sub(7).max(1)..=lg + 2;
    let mut plans = vec![];
    for blocks in 1..=(k + 2).min(48) {
        plans.extend(keys.clone().map(|key_bits| Plan::MultiIndex { blocks, key_bits }));
        plans.push(Plan::MultiIndex { blocks, key_bits: bits.count() / blocks });
    }
    for tables in (k + 1).div_ceil(2)..=bits.count() / 31 {
        let keys = keys.clone().filter(|b| (12..=28).contains(b));
        plans.extend(keys.map(|key_bits| Plan::PerfectCode { tables, key_bits }));
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planner_prefers_what_is_cheap() {
        let check = |values, bits, k, expect: fn(Plan) -> bool| {
            let plan = Plan::choose(&Question::new(values, bits, k)).unwrap();
            assert!(expect(plan), "{values} {bits:?} {k}: {plan}");
        };
        let code = |plan| matches!(plan, Plan::PerfectCode { .. });
        let prefix = |plan| matches!(plan, Plan::MultiIndex { .. });
        let scan = |plan| plan == Plan::Linear;
        check(0, Bits::B64, 3, scan);
        check(10, Bits::B64, 3, scan);
        check(1_000_000, Bits::B64, 3, prefix);
        // Directories that would fit into the cache are not kept there: more buckets are worth it.
        check(10_000_000, Bits::B64, 3, |plan| {
            matches!(plan, Plan::PerfectCode { key_bits: 24.., .. })
        });
        // A few entries in each bucket.
        check(100_000_000, Bits::B64, 3, |plan| {
            matches!(plan, Plan::PerfectCode { key_bits: 25 | 26, .. })
        });
        check(1_000_000_000, Bits::B64, 3, |plan| {
            matches!(plan, Plan::PerfectCode { key_bits: 27, .. })
        });
        check(3_000_000_000, Bits::B64, 3, code);
        check(100_000_000, Bits::B64, 6, prefix);
        check(100_000_000, Bits::B64, 8, prefix);
        check(100_000_000, Bits::B128, 7, code);
        check(1_000_000, Bits::B64, 16, scan);
        check(1_000_000, Bits::B256, 64, scan);
        check(1_000_000, Bits::B64, 64, scan);
    }

    #[test]
    fn what_is_read_more_often_is_in_the_cache() {
        let forecast = |values: u64, key_bits| {
            let question = Question::new(values, Bits::B64, 3);
            let plan = Plan::PerfectCode { tables: 2, key_bits };
            let mut tables = tables_of(plan, &question);
            spread(plan, &question, &mut tables);
            Cache::of(&tables, values as f64, 250_000.0)
        };
        let all = forecast(100_000, 16);
        assert_eq!((all.directories_missed, all.entries_missed), (0.0, 0.0));
        let some = forecast(10_000_000, 22);
        assert!(some.directories_missed > 0.1, "{}", some.directories_missed);
        assert!(some.directories_missed < some.entries_missed);
        let few = forecast(30_000_000, 25);
        assert!(few.directories_missed > 0.6 && few.entries_missed > 0.8);
        assert!(few.directories_missed <= 1.0 && few.entries_missed <= 1.0);
    }

    #[test]
    fn functions_made_of_plain_operations_are_near_the_real_ones() {
        for i in 0..2_000 {
            let x = f64::from(i) / 100.0;
            assert!((exp_of_minus(x) - (-x).exp()).abs() < 2e-3, "{x}");
            assert!((log2(x.max(1.0)) - x.max(1.0).log2()).abs() < 0.1, "{x}");
        }
    }

    #[test]
    fn a_memory_limit_is_kept_or_named() {
        let question = Question::new(100_000_000, Bits::B64, 6);
        let limited = Question { memory_bytes: Some(1_000_000_000), ..question };
        let plan = Plan::choose(&limited).unwrap();
        assert!(plan.forecast(&limited).unwrap().bytes <= 1_000_000_000);
        let limited = Question { memory_bytes: Some(1000), ..question };
        let error = Plan::choose(&limited).unwrap_err();
        let PlanError::Memory { needed, .. } = error else { panic!("{error}") };
        let limited = Question { memory_bytes: Some(needed), ..question };
        assert!(Plan::choose(&limited).is_ok());
        assert!(Plan::choose(&Question { memory_bytes: Some(needed - 1), ..limited }).is_err());
    }

    #[test]
    fn explanations_are_for_people() {
        let explain = |n, bits, k| {
            let question = Question::new(n, bits, k);
            let plan = Plan::choose(&question).unwrap();
            plan.forecast(&question).unwrap().to_string()
        };
        assert!(explain(1_000_000, Bits::B256, 64).contains("only a scan is left"));
        assert!(explain(1_000_000_000, Bits::B64, 8).contains("weak evidence"));
        assert!(explain(100_000_000, Bits::B64, 3).contains("2 windows of 31 bits"));
    }

    #[test]
    fn plans_that_cannot_answer_say_what_can() {
        let check = |plan: Plan, bits, k, expect: &str| {
            let error = plan.fits(bits, k).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(Plan::PerfectCode { tables: 2, key_bits: 26 }, Bits::B64, 4, "reaches distance 3");
        check(Plan::PerfectCode { tables: 3, key_bits: 26 }, Bits::B64, 4, "from 1 to 2");
        check(Plan::PerfectCode { tables: 2, key_bits: 28 }, Bits::B64, 3, "from 8 to 27");
        check(Plan::MultiIndex { blocks: 0, key_bits: 8 }, Bits::B64, 4, "blocks must be");
        check(Plan::Linear, Bits::B64, 65, "64 at most");
    }
}
