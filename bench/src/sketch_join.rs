//! Candidates of simulated dual sketches: time, memory, and the planted pairs that are found.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

use nearsift::join::Threads;
use nearsift::sketch::join::{
    KeyColumns, NO_KEY, Pair, Plan, Settings, SketchJoin, Sketches, Work,
};
use nearsift::sketch::{KEYS, Score, Sketch};
use testkit::random::Random;
use testkit::sketches::Document;

use crate::harness::{Report, Row};
use crate::join::cpu_seconds;

/// The lowest score of a pair.
const MIN_SCORE: f64 = 0.4;

/// Similarities of the planted near-duplicates.
const SIMILARITIES: [f64; 6] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// What the documents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    /// Three in ten are like the first document of a cluster; clusters' sizes follow a power law.
    Clusters,
    /// One sketch.
    Identical,
    /// All share every key and minwise value, and have a SimHash of their own.
    SharedKeys,
    /// Documents without a sketch.
    Empty,
}

struct Case {
    data: Data,
    documents: usize,
    plan: Plan,
}

const CASES: &[Case] = &[
    Case { data: Data::Clusters, documents: 100_000, plan: Plan::AllPairs },
    Case { data: Data::Clusters, documents: 100_000, plan: Plan::Keys },
    Case { data: Data::Clusters, documents: 1_000_000, plan: Plan::Keys },
    Case { data: Data::Identical, documents: 1_000_000, plan: Plan::Keys },
    Case { data: Data::SharedKeys, documents: 1_000_000, plan: Plan::Keys },
    Case { data: Data::Empty, documents: 1_000_000, plan: Plan::Keys },
];

/// Sketches and keys, and the planted pairs.
struct Corpus {
    sketches: Sketches,
    keys: KeyColumns,
    /// `(a, b)`, and the place of their similarity in [`SIMILARITIES`].
    planted: Vec<(u32, u32, usize)>,
}

impl Corpus {
    fn new(data: Data, documents: usize) -> Corpus {
        let seed = documents as u64;
        let mut random = Random::new(seed);
        let mut corpus = Corpus {
            sketches: Sketches::with_capacity(documents),
            keys: KeyColumns::with_capacity(documents),
            planted: Vec::new(),
        };
        let one = Document::random(&mut random);
        let mut first_of_cluster: HashMap<usize, u32> = HashMap::new();
        for number in 0..documents as u32 {
            let document = match data {
                Data::Empty => None,
                Data::Identical => Some(one.clone()),
                Data::SharedKeys => Some(one.with_simhash_of(&Document::random(&mut random))),
                Data::Clusters if random.below(10) >= 3 => Some(Document::random(&mut random)),
                Data::Clusters => {
                    // The cluster of rank c is about 50 / (50 + c) times as large as the largest.
                    let octave = 50 << random.below(12);
                    let cluster = octave + random.below(octave);
                    let centre = Document::random(&mut Random::of_item(seed, cluster as u64));
                    if let Some(&first) = first_of_cluster.get(&cluster) {
                        let band = random.below(SIMILARITIES.len());
                        corpus.planted.push((first, number, band));
                        Some(centre.like(SIMILARITIES[band], &mut random))
                    } else {
                        first_of_cluster.insert(cluster, number);
                        Some(centre)
                    }
                }
            };
            let sketch = document.as_ref().map(|document| Sketch::from_words(document.words()));
            corpus.sketches.push(sketch.as_ref());
            corpus.keys.push(&document.map_or([NO_KEY; KEYS], |document| document.keys()));
        }
        corpus
    }

    /// For each similarity the planted pairs that score high enough, and how many of them are among
    /// the links, which ascend.
    fn found(&self, links: &[Pair]) -> [(u32, u32); SIMILARITIES.len()] {
        let mut counts = [(0, 0); SIMILARITIES.len()];
        for &(a, b, band) in &self.planted {
            let sketch = |document: u32| self.sketches.get(document as usize);
            let scored = sketch(a).zip(sketch(b)).map(|(a, b)| a.score(&b));
            if scored.is_some_and(|score| score >= Score::at_least(MIN_SCORE)) {
                counts[band].0 += 1;
                let found = links.binary_search_by_key(&(a, b), |link| (link.a, link.b)).is_ok();
                counts[band].1 += u32::from(found);
            }
        }
        counts
    }
}

/// What a join took.
struct Measured {
    seconds: f64,
    cpu_seconds: Option<f64>,
    links: u64,
    kept: Vec<Pair>,
    work: Work,
    peak_bytes: Option<u64>,
    expected_seconds: f64,
}

fn measure(case: &Case, corpus: &Corpus) -> Measured {
    let settings = Settings {
        plan: Some(case.plan),
        threads: Threads::One,
        ..Settings::new(Score::at_least(MIN_SCORE))
    };
    let before = start_peak();
    let (start, cpu) = (Instant::now(), cpu_seconds(1));
    let join = SketchJoin::new(&corpus.sketches, Some(&corpus.keys), settings).expect("a join");
    let mut links = 0;
    let Ok((ended, work)) = join.for_each_link(|_| {
        links += 1;
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.is_continue());
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = cpu_seconds(1).zip(cpu).map(|(end, start)| end - start);
    let peak_bytes =
        before.zip(resident("VmHWM:")).map(|(before, peak)| peak.saturating_sub(before));
    let kept = match case.data {
        Data::Clusters => {
            let Ok((links, _)) = join.links();
            links
        }
        _ => Vec::new(),
    };
    let Ok(explained) = join.explain();
    let expected_seconds = explained.seconds;
    Measured { seconds, cpu_seconds, links, kept, work, peak_bytes, expected_seconds }
}

/// Begins a new high-water mark of this process's memory, and gives what is resident.
fn start_peak() -> Option<u64> {
    // See proc(5) on clear_refs.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    resident("VmRSS:")
}

fn resident(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// All cases, on one thread.
pub fn run(_: &crate::Settings) -> Result<Report, String> {
    let mut report = Report::new(
        "sketch-join",
        "Candidates of simulated 64-byte sketches, score 0.4 and more, on one thread: grouping equal \
         ones, then the links in order. Bytes are those of the search, beside the 64 of a sketch \
         and the 128 of its keys. Found: of the planted pairs that score high enough.",
    );
    for case in CASES {
        let corpus = Corpus::new(case.data, case.documents);
        let found = measure(case, &corpus);
        let data = match case.data {
            Data::Clusters => "clusters",
            Data::Identical => "identical",
            Data::SharedKeys => "all keys shared",
            Data::Empty => "empty",
        };
        let n = case.documents as f64;
        let name = format!("{data} {}, {}", case.documents, case.plan);
        let mut row = Row::new(&name)
            .with("s", found.seconds)
            .with("expected s", found.expected_seconds)
            .with("links", found.links as f64)
            .with("comparisons a document", found.work.comparisons as f64 / n)
            .with("hot keys", found.work.hot_keys as f64);
        if let Some(cpu) = found.cpu_seconds {
            row = row.with("cpu s", cpu);
        }
        if let Some(peak) = found.peak_bytes {
            row = row.with("bytes a document", peak as f64 / n);
        }
        if case.data == Data::Clusters {
            for (similarity, (wanted, among)) in SIMILARITIES.iter().zip(corpus.found(&found.kept))
            {
                let share = f64::from(among) / f64::from(wanted.max(1));
                row = row.with(format!("found at {similarity}"), share);
                let expected = case.plan.recall(*similarity);
                // Sampling error, and links of a crowd that stand for others.
                let bound = if case.plan == Plan::AllPairs { 1.0 } else { expected - 0.02 };
                report.check_at_least(&format!("found at {similarity}, {name}"), bound, share);
            }
        }
        report.add(row);
        let most = n * f64::from(Settings::MAX_COMPARISONS);
        let most = if case.plan == Plan::AllPairs { n * n / 2.0 } else { most };
        let spared = most - found.work.comparisons as f64;
        report.check_at_least(&format!("comparisons left of the bound, {name}"), 0.0, spared);
        let links = match case.data {
            Data::Identical => Some(case.documents as u64 - 1),
            Data::Empty => Some(0),
            Data::Clusters | Data::SharedKeys => None,
        };
        if let Some(links) = links {
            report.check(&format!("links, {name}"), &links, &found.links);
        }
    }
    Ok(report)
}
