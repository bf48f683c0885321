//! How well partial duplicates are found in the evaluation data, and what it costs:
//!
//!     cargo run --release -p nearsift --example partial [MAX_DOCUMENTS [MIN_SCORE]]
//!
//! For every kind of edit: how many of the edited documents are found with the text that they come from.
//! For every set: how many of all pairs that have a run of 120 equal bytes of letters are found, where
//! an exact search of all such runs says which they are; and the pairs that no label relates.

#![allow(clippy::print_stdout, reason = "results go to standard output")]
#![allow(clippy::disallowed_methods, reason = "times are among the results")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use nearsift::partial::{Corpus, Kind, Letters, Partial, Refiner, Seeder, Settings, Work};
use testkit::{data_dir, json_lines, read};

type Pair = (u32, u32);

/// Documents, and what is known about them.
struct Set {
    name: String,
    texts: Vec<String>,
    /// An edited document, the one that it comes from, and the edit.
    edits: Vec<(Pair, String)>,
    /// Documents of one number are related by a label.
    groups: Vec<Option<String>>,
    related: HashSet<Pair>,
}

fn ordered(a: u32, b: u32) -> Pair {
    (a.min(b), a.max(b))
}

/// A set whose documents carry `origin`, `edit` and `rate`.
fn derived(path: &Path) -> Set {
    let documents = json_lines(path);
    let field = |i: usize, name: &str| documents[i][name].as_str().unwrap_or_default().to_owned();
    let groups: Vec<Option<String>> =
        documents.iter().map(|d| d.get("origin").map(ToString::to_string)).collect();
    let mut base: HashMap<&Option<String>, u32> = HashMap::new();
    for (i, group) in (0..).zip(&groups).filter(|(i, _)| field(*i as usize, "edit") == "base") {
        base.entry(group).or_insert(i);
    }
    let edits = (0..documents.len())
        .filter_map(|i| {
            let from = *base.get(&groups[i])?;
            let edit = format!("{} {}", field(i, "edit"), documents[i]["rate"]);
            (from != i as u32).then(|| (ordered(from, i as u32), edit))
        })
        .collect();
    let texts = (0..documents.len()).map(|i| field(i, "text")).collect();
    let name = path.file_name().map(|n| n.to_string_lossy().replace(".jsonl.zst", ""));
    Set { name: name.unwrap_or_default(), texts, edits, groups, related: HashSet::new() }
}

/// A set with tables of edits, clusters and pairs.
fn tables(folder: &Path) -> Set {
    let documents = json_lines(&folder.join("docs.jsonl.zst"));
    let field = |d: &serde_json::Value, name: &str| d[name].as_str().unwrap_or_default().to_owned();
    let number: HashMap<String, u32> =
        (0..).zip(&documents).map(|(i, d)| (field(d, "id"), i)).collect();
    let rows = |name: &str| -> Vec<Vec<String>> {
        let table = String::from_utf8(read(&folder.join(name))).expect("UTF-8");
        table.lines().skip(1).map(|l| l.split('\t').map(str::to_owned).collect()).collect()
    };
    let edits = rows("edits.tsv.zst")
        .iter()
        .map(|row| (ordered(number[&row[0]], number[&row[1]]), format!("{} {}", row[2], row[3])))
        .collect();
    let mut groups = vec![None; documents.len()];
    for row in rows("clusters.tsv.zst") {
        groups[number[&row[0]] as usize] = Some(row[1].clone());
    }
    let related =
        rows("pairs.tsv.zst").iter().map(|r| ordered(number[&r[0]], number[&r[1]])).collect();
    let texts = documents.iter().map(|d| field(d, "text")).collect();
    Set { name: "zh-neardup".into(), texts, edits, groups, related }
}

struct Found {
    partials: Vec<Partial>,
    work: Work,
    seeds: Duration,
    search: Duration,
}

/// As `nearsift::partial::find` does, with the time of its steps.
fn find(texts: &[String], settings: &Settings) -> Found {
    let start = Instant::now();
    let (mut corpus, mut seeder) = (Corpus::new(), Seeder::default());
    texts.iter().for_each(|text| corpus.push(&seeder.seeds(text)));
    let seeds = start.elapsed();
    let (mut partials, mut refiner) = (Vec::new(), Refiner::new(settings));
    let mut search = corpus.search(settings).expect("one thread");
    let _: std::ops::ControlFlow<()> = search.each(settings, |pairs| {
        for pair in pairs {
            let (a, b) = (pair.a, pair.b);
            let passages = refiner.refine(pair, &texts[a as usize], &texts[b as usize]);
            partials.extend(passages.into_iter().map(|passage| Partial { a, b, passage }));
        }
        std::ops::ControlFlow::Continue(())
    });
    Found { partials, work: search.work(), seeds, search: start.elapsed() - seeds }
}

/// The first document with the same letters, and the letters of the first ones.
fn representatives(texts: &[String]) -> (Vec<u32>, Vec<String>) {
    let mut firsts: HashMap<String, u32> = HashMap::new();
    let (mut representative, mut all) = (Vec::new(), Vec::new());
    for (i, text) in (0..).zip(texts) {
        let mut letters = Letters::default();
        letters.fill(text);
        let text: String = letters.as_slice().iter().filter_map(|&c| char::from_u32(c)).collect();
        let first = *firsts.entry(text.clone()).or_insert(i);
        representative.push(first);
        all.push(if first == i { text } else { String::new() });
    }
    (representative, all)
}

/// All pairs with an equal run of so many bytes of letters that at most `most` documents have.
fn sharing_runs(letters: &[String], bytes: usize, most: usize) -> HashSet<Pair> {
    let mut runs: Vec<(u64, u32)> = Vec::new();
    for (i, text) in (0..).zip(letters) {
        let from = runs.len();
        let starts = text.char_indices().map(|(at, _)| at);
        // The least number of characters with so many bytes.
        let mut end = 0;
        for start in starts {
            while end < text.len() && end - start < bytes {
                end = text.ceil_char_boundary(end + 1);
            }
            if end - start < bytes {
                break;
            }
            runs.push((nearsift::feature::hash_token(&text[start..end]), i));
        }
        runs[from..].sort_unstable();
    }
    runs.sort_unstable();
    runs.dedup();
    let mut pairs = HashSet::new();
    for run in runs.chunk_by(|x, y| x.0 == y.0).filter(|run| run.len() <= most) {
        for (i, a) in run.iter().enumerate() {
            pairs.extend(run[i + 1..].iter().map(|b| (a.1, b.1)));
        }
    }
    pairs
}

fn report(set: &Set, settings: &Settings) {
    let Found { partials, work, seeds, search } = find(&set.texts, settings);
    let (first, letters) = representatives(&set.texts);
    let bytes: usize = set.texts.iter().map(String::len).sum();
    let n = set.texts.len();
    let micros = |d: Duration| d.as_secs_f64() * 1e6 / n as f64;
    println!("\n## {} ({n} documents, {} bytes each)\n", set.name, bytes / n);
    println!(
        "{} seeds, {} bytes a document; {} hot seeds with {} places; {} pairs with a seed in common",
        work.seeds,
        16 * work.seeds / n as u64,
        work.hot_seeds,
        work.hot_places,
        work.pairs
    );
    println!(
        "seeds {:.1} us, pairs and passages {:.1} us a document",
        micros(seeds),
        micros(search)
    );

    let mut kinds: BTreeMap<Pair, Kind> = BTreeMap::new();
    kinds.extend(partials.iter().map(|p| ((p.a, p.b), p.passage.kind)));
    let of = |pair: Pair| ordered(first[pair.0 as usize], first[pair.1 as usize]);
    let mut by_edit: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for (pair, edit) in &set.edits {
        let (a, b) = of(*pair);
        let counts = by_edit.entry(edit).or_default();
        counts[0] += 1;
        match kinds.get(&(a, b)) {
            _ if a == b => counts[1] += 1,
            Some(Kind::Whole) => counts[1] += 1,
            Some(Kind::Contains | Kind::Contained) => counts[2] += 1,
            Some(Kind::Overlap) => counts[3] += 1,
            None => {}
        }
    }
    if !by_edit.is_empty() {
        println!(
            "\n| edit | pairs | found | as whole | as contained | as overlap |\n|---|---|---|---|---|---|"
        );
    }
    for (edit, [all, parts @ ..]) in by_edit {
        let share = |n: usize| n as f64 / all as f64;
        let found = share(parts.iter().sum());
        println!(
            "| {edit} | {all} | {found:.3} | {:.3} | {:.3} | {:.3} |",
            share(parts[0]),
            share(parts[1]),
            share(parts[2])
        );
    }

    let exact = sharing_runs(&letters, 120, settings.max_documents as usize);
    let have = exact.iter().filter(|pair| kinds.contains_key(pair)).count();
    println!(
        "\n{} of {} pairs with 120 equal bytes in at most {} documents",
        have,
        exact.len(),
        settings.max_documents
    );
    let group = |d: u32| set.groups[d as usize].as_ref();
    let related = |&(a, b): &Pair| {
        group(a).is_some() && group(a) == group(b) || set.related.contains(&(a, b))
    };
    let unrelated: BTreeSet<&Pair> = kinds.keys().filter(|pair| !related(pair)).collect();
    let run = unrelated.iter().filter(|pair| exact.contains(pair)).count();
    println!(
        "{} passages of {} pairs; {} pairs that no label relates, {run} of them with 120 equal bytes",
        partials.len(),
        kinds.len(),
        unrelated.len()
    );
}

fn main() {
    let Some(data) = data_dir() else { return };
    let mut args = std::env::args().skip(1);
    let mut settings = Settings::default();
    if let Some(documents) = args.next() {
        settings.max_documents = documents.parse().expect("MAX_DOCUMENTS: a number");
    }
    if let Some(score) = args.next() {
        settings.min_score = score.parse().expect("MIN_SCORE: a number");
    }
    for name in ["zh_news", "zh_legal", "en_news", "en_ncopy"] {
        report(&derived(&data.join(format!("derived/{name}.jsonl.zst"))), &settings);
    }
    report(&derived(&data.join("plagiarism-en/articles_2500.jsonl.zst")), &settings);
    report(&tables(&data.join("zh-neardup")), &settings);
}
