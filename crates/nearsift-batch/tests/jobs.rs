//! Jobs beside each other in one process, interrupted, resumed, and watched by observers that fail.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nearsift_batch::dedup::{self, Done, Output, Settings};
use nearsift_batch::{Bounds, Context, Error, Interrupt, Notice, Observer, Phase};
use nearsift_io::{Inputs, ReadOptions};
use testkit::random::Random;

/// Documents of which a third repeat or nearly repeat an earlier one.
fn corpus(folder: &Path, seed: u64, documents: u64) -> PathBuf {
    let words = |number: u64| -> Vec<String> {
        let mut random = Random::of_item(seed, number);
        (0..60).map(|_| format!("w{}", random.below(5000))).collect()
    };
    let mut lines = String::new();
    for number in 0..documents {
        let mut random = Random::of_item(seed + 1, number);
        let text = match random.below(6) {
            0 => words(random.below(number as usize + 1) as u64).join(" "),
            1 => {
                let mut words = words(random.below(number as usize + 1) as u64);
                words[7] = "changed".to_owned();
                words.join(" ")
            }
            _ => words(number).join(" "),
        };
        lines += &format!("{{\"id\": {number}, \"text\": \"{text}\"}}\n");
        if number % 97 == 5 {
            lines += "{\"id\": broken\n";
        }
    }
    let path = folder.join(format!("in-{seed}.jsonl"));
    fs::write(&path, lines).expect("written");
    path
}

fn open(path: &Path) -> Inputs {
    let options = ReadOptions { batch_bytes: 16 << 10, ..ReadOptions::default() };
    nearsift_batch::open(&[path], options).expect("opened")
}

fn output(folder: &Path, name: &str, resume: bool) -> Output {
    let mut output = Output::new(folder.join(name));
    output.resume = resume;
    output
}

/// A context in which a small input takes the paths of a large one.
fn small_bounds(context: &mut Context<'_>) {
    let mut bounds = Bounds::default();
    (bounds.resumable_bytes, bounds.checkpoint_bytes) = (1, 50_000);
    (bounds.sorted_records, bounds.id_bytes) = (40, 1_000);
    context.bounds = bounds;
}

/// Every file below a folder, but for what differs from run to run.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, all);
            } else if path.file_name().is_some_and(|name| name != "run.json") {
                let name = path.strip_prefix(root).expect("below").to_owned();
                all.insert(name, testkit::result_bytes(&path).expect("read"));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(folder, folder, &mut all);
    all
}

/// Interrupts a job at the `at`th report of progress.
struct Interrupting {
    interrupt: Interrupt,
    at: u64,
    seen: AtomicU64,
}

impl Observer for Interrupting {
    fn advance(&self, _: Phase, _: u64) {
        if self.seen.fetch_add(1, Ordering::SeqCst) == self.at {
            self.interrupt.request();
        }
    }
}

#[test]
fn two_jobs_in_one_process_one_of_them_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (corpus(folder.path(), 1, 3000), corpus(folder.path(), 7, 3000));
    let settings = Settings::default();
    for (name, input) in [("one", &one), ("two", &two)] {
        let output = output(folder.path(), name, false);
        dedup::run(&open(input), &settings, &output, &Context::default()).expect("done");
    }
    for at in [0, 3, 20] {
        let whole = format!("whole-{at}");
        let stopped = format!("stopped-{at}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut context = Context::default();
                small_bounds(&mut context);
                let output = output(folder.path(), &whole, false);
                dedup::run(&open(&one), &settings, &output, &context).expect("not interrupted");
            });
            scope.spawn(|| {
                let interrupt = Interrupt::default();
                let observer =
                    Interrupting { interrupt: interrupt.clone(), at, seen: AtomicU64::new(0) };
                let mut context = Context::observed_by(&observer);
                small_bounds(&mut context);
                context.interrupt = interrupt;
                let output = output(folder.path(), &stopped, false);
                let error = dedup::run(&open(&two), &settings, &output, &context);
                let Err(Error::Interrupted { is_resumable }) = error else {
                    panic!("{error:?}");
                };
                assert!(is_resumable, "stopped at {at}");
            });
        });
        assert_eq!(tree(&folder.path().join(&whole)), tree(&folder.path().join("one")));
        let mut context = Context::default();
        small_bounds(&mut context);
        let output = output(folder.path(), &stopped, true);
        let done = dedup::run(&open(&two), &settings, &output, &context).expect("resumed");
        assert!(matches!(done, Done::Finished(_)));
        assert_eq!(tree(&folder.path().join(&stopped)), tree(&folder.path().join("two")));
    }
}

#[test]
fn a_job_runs_in_a_pool_of_any_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 11, 2_000);
    let run = |name: &str| {
        let mut context = Context::default();
        small_bounds(&mut context);
        let output = output(folder.path(), name, false);
        dedup::run(&open(&input), &Settings::default(), &output, &context).expect("it runs");
        tree(&output.folder)
    };
    let expected = run("outside");
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        assert_eq!(pool.install(|| run(&format!("in {threads}"))), expected, "{threads} threads");
    }
}

#[test]
fn an_interrupt_before_the_first_batch_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 3, 200);
    let context = Context::default();
    context.interrupt.request();
    let output = output(folder.path(), "out", false);
    let error = dedup::run(&open(&input), &Settings::default(), &output, &context);
    assert!(matches!(error, Err(Error::Interrupted { is_resumable: false })), "{error:?}");
    assert!(tree(&output.folder).is_empty());
}

/// Panics when a phase begins or makes progress.
struct Panicking(Phase);

impl Observer for Panicking {
    fn advance(&self, phase: Phase, _: u64) {
        assert!(phase != self.0, "an observer panics");
    }
}

#[test]
fn a_panic_of_an_observer_reaches_the_caller_and_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 5, 400);
    for phase in [Phase::Fingerprints, Phase::Comparing, Phase::Verifying, Phase::Writing] {
        let observer = Panicking(phase);
        let output = output(folder.path(), "out", false);
        let run = || {
            let context = Context::observed_by(&observer);
            dedup::run(&open(&input), &Settings::default(), &output, &context)
        };
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{phase:?}");
        assert!(tree(&output.folder).is_empty(), "{phase:?}");
    }
}

/// Starts a second job into the same folder while the first is at work.
struct Second<'a> {
    input: &'a Path,
    output: &'a Output,
    refused: AtomicU64,
}

impl Observer for Second<'_> {
    fn begin(&self, phase: Phase, _: u64) {
        if phase == Phase::Comparing {
            let mut context = Context::default();
            small_bounds(&mut context);
            for resume in [false, true] {
                let mut output = self.output.clone();
                output.resume = resume;
                let error = dedup::run(&open(self.input), &Settings::default(), &output, &context);
                error.map(|_| ()).expect_err("the folder is in use");
                self.refused.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

#[test]
fn a_second_job_into_the_same_folder_is_refused_and_the_first_unharmed() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 9, 1000);
    let alone = output(folder.path(), "alone", false);
    dedup::run(&open(&input), &Settings::default(), &alone, &Context::default()).expect("done");
    let output = output(folder.path(), "out", false);
    let observer = Second { input: &input, output: &output, refused: AtomicU64::new(0) };
    let mut context = Context::observed_by(&observer);
    small_bounds(&mut context);
    dedup::run(&open(&input), &Settings::default(), &output, &context).expect("the first ends");
    assert_eq!(observer.refused.into_inner(), 2);
    assert_eq!(tree(&output.folder), tree(&alone.folder));
}

/// Cuts a checkpoint's keys short when the first pass ends.
struct Damaging<'a>(&'a Path);

impl Observer for Damaging<'_> {
    fn end(&self, phase: Phase) {
        if phase == Phase::Fingerprints {
            let keys = self.0.join(".unfinished/state/000-00000000.keys");
            fs::write(keys, b"short").expect("written");
        }
    }
}

#[test]
fn a_read_that_fails_in_the_middle_of_columns_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    // So many that their keys are read.
    let input = corpus(folder.path(), 11, 40_000);
    let output = output(folder.path(), "out", false);
    let observer = Damaging(&output.folder);
    let mut context = Context::observed_by(&observer);
    small_bounds(&mut context);
    let settings = Settings::default();
    let error = dedup::run(&open(&input), &settings, &output, &context);
    let Err(Error::Io { path, .. }) = error else { panic!("{error:?}") };
    assert!(path.ends_with("000-00000000.keys"), "{}", path.display());
    assert!(!output.folder.join("summary.json").exists());
}

/// Remembers notices.
#[derive(Default)]
struct Listening(std::sync::Mutex<Vec<String>>);

impl Observer for Listening {
    fn notice(&self, notice: &Notice<'_>) {
        self.0.lock().expect("a lock").push(notice.message.to_owned());
    }
}

#[test]
fn what_is_found_is_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 13, 1500);
    let output = output(folder.path(), "out", false);
    let observer = Listening::default();
    let context = Context::observed_by(&observer);
    let inputs = open(&input);
    let settings = Settings::default();
    let Done::Finished(summary) = dedup::run(&inputs, &settings, &output, &context).expect("done")
    else {
        panic!("it was not there before");
    };
    let found = dedup::find(&inputs, &settings, &Context::default()).expect("found");
    let said = observer.0.into_inner().expect("a lock");
    assert!(said.iter().any(|line| line.contains("not valid JSON")), "{said:?}");

    let lines = |name: &str| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(output.folder.join(name)).expect("read");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let removed: Vec<u64> = lines("removed.jsonl")
        .iter()
        .map(|line| line["record"].as_u64().expect("a number") - 1)
        .collect();
    let by_value: Vec<u64> = found.removals().map(|gone| found.record(gone.document)).collect();
    assert_eq!(by_value, removed);
    assert_eq!(found.clusters().count(), lines("clusters.jsonl").len());
    assert_eq!(found.pairs().len(), lines("pairs.jsonl").len());
    assert_eq!(found.summary().removed.total(), summary.removed.total());
    let kept = fs::read_to_string(output.folder.join("kept/in-13.jsonl")).expect("read");
    let is_kept = (0..inputs.ends().last().expect("a file").0).filter(|&r| found.is_kept(r));
    assert_eq!(is_kept.count(), kept.lines().count());
}

/// The groups, removals and scores of texts in memory are those of the job over the same documents.
fn check_library(name: &str, input: &Path, settings: &Settings, library: &nearsift::Dedup) {
    let lines = fs::read_to_string(input).expect("read");
    let texts: Vec<String> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|document| document["text"].as_str().map(str::to_owned))
        .collect();
    let by_job = dedup::find(&open(input), settings, &Context::default()).expect("found");
    let by_library = library.find(&texts).expect("found");
    assert_eq!(by_job.len(), texts.len(), "{name}");
    let groups: Vec<&[u32]> = by_job.clusters().map(|cluster| cluster.members).collect();
    assert_eq!(by_library.groups().collect::<Vec<_>>(), groups, "{name}");
    let job: Vec<_> = by_job.removals().map(|r| (r.document, r.representative, r.score)).collect();
    let own: Vec<_> =
        by_library.removals().iter().map(|r| (r.text, r.representative, r.score)).collect();
    assert_eq!(own, job, "{name}");
    assert!(!job.is_empty(), "{name}");
}

#[test]
fn the_library_decides_as_the_job_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/corpus.jsonl");
    let generated = corpus(folder.path(), 19, 1200);
    // Reports of one form, of which some are copies: neighbours decide.
    let mut reports = String::new();
    for number in 0..240 {
        let mut random = Random::of_item(23, number / 2 * u64::from(number % 6 != 0) + number % 6);
        let mut value = || random.below(90_000);
        reports += &format!(
            "{{\"id\": {number}, \"text\": \"Report of station {} on day {}: at {} in the morning the gauge stood at {} millimetres, {} more than on the day before, and the pump moved {} litres. The watch was held by crew {}. No incident was noted, and the next reading is due in {} minutes.\"}}\n",
            value(),
            value(),
            value(),
            value(),
            value(),
            value(),
            value(),
            value()
        );
    }
    let forms = folder.path().join("forms.jsonl");
    fs::write(&forms, reports).expect("written");
    for (name, input) in [("examples", &examples), ("generated", &generated), ("forms", &forms)] {
        check_library(name, input, &Settings::default(), &nearsift::Dedup::default());
        let mut settings = Settings::default();
        settings.keep = "longest".parse().expect("a policy");
        let library = nearsift::Dedup::default().keep(settings.keep.clone());
        check_library(name, input, &settings, &library);
        let recipe = nearsift::recipe::Recipe::parse("simhash64").expect("a recipe");
        settings.method = nearsift_batch::Method::Simhash { recipe, max_distance: 10 };
        let library = library.method(settings.method.clone());
        check_library(name, input, &settings, &library);
    }
}

#[test]
fn copies_are_counted_the_same_at_every_threshold() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = corpus(folder.path(), 17, 1500);
    let mut counts = Vec::new();
    for min_score in [0.3, 0.63, 0.9, 1.0] {
        for keep in ["first", "longest"] {
            let mut settings = Settings::default();
            settings.method = match settings.method {
                nearsift_batch::Method::Sketch { recipe, .. } => nearsift_batch::Method::Sketch {
                    recipe,
                    acceptance: nearsift_batch::Acceptance::Verified(min_score),
                },
                other => other,
            };
            settings.keep = keep.parse().expect("a policy");
            let found = dedup::find(&open(&input), &settings, &Context::default()).expect("found");
            counts.push(found.summary().removed.exact);
        }
    }
    assert!(counts[0] > 100, "{counts:?}");
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn a_finished_run_is_asked_about_every_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = corpus(folder.path(), 11, 6_000);
    let inputs = open(&path);
    let output = output(folder.path(), "out", false);
    dedup::run(&inputs, &Settings::default(), &output, &Context::default()).expect("run");
    let lines = |name: &str| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(output.folder.join(name)).expect("a table");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (removed, clusters, pairs) =
        (lines("removed.jsonl"), lines("clusters.jsonl"), lines("pairs.jsonl"));
    // Several blocks of each table.
    let bytes = |name: &str| fs::metadata(output.folder.join(name)).expect("a table").len();
    let tables = ["removed.jsonl", "clusters.jsonl", "pairs.jsonl"].map(bytes);
    assert!(tables.iter().all(|bytes| *bytes > 2 << 16), "{tables:?}");
    let results = dedup::RunResults::open(&output.folder).expect("results");
    assert_eq!(results.documents(), 6_000);
    let mut told = Vec::new();
    for id in 0..6_000u64 {
        let [one] = &results.find(&id.to_string()).expect("found")[..] else { panic!("{id}") };
        told.push(serde_json::to_value(one).expect("JSON"));
    }
    for line in &removed {
        let one = &told[line["id"].as_u64().expect("an id") as usize];
        assert_eq!(&one["removed"], line);
        assert_eq!(one["record"], line["record"]);
        let is_own = |pair: &&serde_json::Value| {
            [&pair["a"], &pair["b"]].contains(&&line["id"])
                && [&pair["a"], &pair["b"]].contains(&&line["representative"])
        };
        let own: Vec<&serde_json::Value> = pairs.iter().filter(is_own).collect();
        let found: Vec<&serde_json::Value> =
            one["pairs"].as_array().into_iter().flatten().collect();
        assert_eq!(found, own, "{line}");
    }
    assert_eq!(told.iter().filter(|one| one["kept"] == false).count(), removed.len());
    let mut members = 0;
    for line in &clusters {
        for id in line["members"].as_array().expect("members") {
            assert_eq!(&told[id.as_u64().expect("an id") as usize]["cluster"], line);
            members += 1;
        }
    }
    assert_eq!(told.iter().filter(|one| !one["cluster"].is_null()).count(), members);
}
