//! Real documents: the evaluation data, where it is at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use testkit::{data_dir, json_lines, read};

use crate::support::{Folder, string};

#[test]
fn golden_vectors() {
    let Some(data) = data_dir() else { return };
    let file = data.join("../vectors/compat.jsonl");
    let file = file.to_str().expect("a UTF-8 path");
    let run = Folder::new().run(["vectors", file]).expect(0);
    let count = read(file.as_ref()).split(|&b| b == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!(run.stdout, format!("passed {count}, failed 0\n"));
}

type Pair = (String, String);

fn pair(a: &str, b: &str) -> Pair {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    (a.to_owned(), b.to_owned())
}

/// True pairs, and those that are neither true nor false.
struct TruePairs {
    positive: BTreeSet<Pair>,
    grey: BTreeSet<Pair>,
}

impl TruePairs {
    fn of(table: &[u8]) -> TruePairs {
        let table = std::str::from_utf8(table).expect("UTF-8");
        let mut all = TruePairs { positive: BTreeSet::new(), grey: BTreeSet::new() };
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let set = match cells.last() {
                Some(&"POS") => &mut all.positive,
                Some(&"GREY") => &mut all.grey,
                other => panic!("label {other:?}"),
            };
            set.insert(pair(cells[0], cells[1]));
        }
        all
    }

    /// Precision and recall, grey pairs left out.
    fn judge(&self, found: &BTreeSet<Pair>) -> (f64, f64) {
        let right = found.intersection(&self.positive).count() as f64;
        let judged = found.difference(&self.grey).count() as f64;
        (right / judged, right / self.positive.len() as f64)
    }
}

#[test]
fn chinese_near_duplicates_by_fingerprints() {
    check_near_duplicates(&["--method", "simhash"], 0.999, 0.2, 0.99);
}

/// The truth of this set asks for nearer pairs than the program does unless told: of its pairs that
/// score from 0.63 to 0.8, which the program takes, most are alike by half and count as none here.
#[test]
fn chinese_near_duplicates_by_sketches() {
    check_near_duplicates(&["--min-score", "0.8"], 0.99, 0.95, 0.98);
}

/// Precision and recall of the pairs, and precision of groups and removals, are at least these.
fn check_near_duplicates(options: &[&str], precise: f64, complete: f64, groups_precise: f64) {
    let Some(data) = data_dir() else { return };
    let documents = data.join("zh-neardup/docs.jsonl.zst");
    let ids: Vec<String> = json_lines(&documents).iter().map(|d| string(&d["id"])).collect();
    let truth = TruePairs::of(&read(&data.join("zh-neardup/pairs.tsv.zst")));
    let documents = documents.to_str().expect("a UTF-8 path");

    let folder = Folder::new();
    folder.dedup(&[documents], "out", &[&["-q"], options].concat()).expect(0);
    let results = folder.results("out");
    results.check_invariants(&ids);

    let pairs = folder.run([&["pairs", documents, "-q"], options].concat()).expect(0).json_lines();
    let found: BTreeSet<Pair> = pairs
        .iter()
        .map(|p| pair(p["a"].as_str().expect("an id"), p["b"].as_str().expect("an id")))
        .collect();
    let (precision, recall) = truth.judge(&found);
    let grouped: BTreeSet<Pair> = results
        .groups()
        .iter()
        .flat_map(|g| g.iter().enumerate().flat_map(|(i, a)| g[i + 1..].iter().map(|b| pair(a, b))))
        .collect();
    let (group_precision, group_recall) = truth.judge(&grouped);
    let removed: BTreeSet<Pair> = results
        .lines("removed.jsonl")
        .iter()
        .map(|l| {
            pair(l["id"].as_str().expect("an id"), l["representative"].as_str().expect("an id"))
        })
        .collect();
    let (removal_precision, _) = truth.judge(&removed);
    say(&format!(
        "zh-neardup {options:?}: {} documents, {} groups, {} removed ({} with the same text)\n\
         pairs:    {:>5} found, precision {precision:.4}, recall {recall:.4}\n\
         grouped:  {:>5} pairs, precision {group_precision:.4}, recall {group_recall:.4}\n\
         removals: {:>5}, precision {removal_precision:.4}",
        ids.len(),
        results.groups().len(),
        removed.len(),
        results.count("/removed/exact"),
        found.len(),
        grouped.len(),
        removed.len(),
    ));
    assert!(precision >= precise && recall >= complete, "{precision} {recall}");
    assert!(
        group_precision >= groups_precise && removal_precision >= groups_precise,
        "{group_precision} {removal_precision}"
    );
}

#[test]
fn chinese_pages() {
    let Some(data) = data_dir() else { return };
    let folder = Folder::new();
    let archive = read(&data.join("html-zh/debian-zh-150.tar.zst"));
    tar::Archive::new(&archive[..]).unpack(folder.path("")).expect("unpacked");
    let before = folder.tree("html");
    let run = folder.dedup(&["html"], "out", &["-q"]);
    assert!(run.status == 0 || run.status == 3, "{}", run.stderr);
    let results = folder.results("out");
    let removed = results.lines("removed.jsonl");
    let kept = folder.tree("out/kept");
    assert_eq!(kept.len() + removed.len(), before.len(), "kept + removed = all");
    assert!(kept.iter().all(|(path, bytes)| before.get(path) == Some(bytes)), "byte for byte");
    assert!(folder.tree("html") == before);

    // A page and its Traditional twin are one article; all else is not known to be.
    let aligned = String::from_utf8(read(&folder.path("aligned.tsv"))).expect("UTF-8");
    let twins: HashMap<&str, usize> = aligned
        .lines()
        .skip(1)
        .enumerate()
        .flat_map(|(n, line)| line.split('\t').map(move |page| (page, n)))
        .collect();
    let article = |id: &str| twins.get(id.strip_prefix("html/").expect("a page")).copied();
    let groups = results.groups();
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut of_twins, mut of_others) = (0, 0);
    for group in &groups {
        *sizes.entry(group.len()).or_default() += 1;
        let articles: BTreeSet<Option<usize>> = group.iter().map(|id| article(id)).collect();
        if articles.len() == 1 { of_twins += 1 } else { of_others += 1 }
    }
    say(&format!(
        "html-zh: {} pages, {} groups ({of_twins} of twins alone, {of_others} of several articles), {} removed, sizes {sizes:?}, {} without fingerprint",
        before.len(),
        groups.len(),
        removed.len(),
        results.count("/navigation_only")
            + results.count("/without_text")
            + results.count("/too_few_features"),
    ));
}

/// Figures, shown with `--nocapture`.
#[allow(clippy::print_stderr, reason = "figures of a test")]
fn say(figures: &str) {
    eprintln!("{figures}");
}
